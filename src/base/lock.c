#include "lock.h"

bool ot_lock_new(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;
    if (pthread_mutexattr_init(&kind) != 0) return false;
    bool ok = pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE) == 0 &&
              pthread_mutex_init(lock, &kind) == 0;
    pthread_mutexattr_destroy(&kind);
    return ok;
}
