/* Locks that whoever holds them may take again. */
#ifndef OT_BASE_LOCK_H
#define OT_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/* A recursive lock, for pthread_mutex_destroy to end; false: the system has none to give. */
bool ot_lock_new(pthread_mutex_t *lock) __attribute__((warn_unused_result));

#endif
