/* A session of the engine on ONNX Runtime's arrays and threads: what the operator and the execution
 * provider share. Private to src/ort. */
#ifndef OT_ORT_ORT_RUN_H
#define OT_ORT_ORT_RUN_H

#include "onnx_tile.h"
#include "ort_abi.h"

#include <pthread.h>
#include <stdbool.h>

#define ORT_THREADS_LIMIT 4096

/* The function of that index, by its signature. */
#define CALL(api, index, type) ((type)(api)->at[index])

/* Return when a call of ours or of the runtime's fails. */
#define TRY_ORT(expr)                 \
    do {                              \
        ort_status *status_ = (expr); \
        if (status_) return status_;  \
    } while (0)

/* A node of the runtime's that the engine computes. */
typedef struct ort_computed {
    const ort_api *api;
    const char *what;           /* of whom failures speak */
    onnx_tile_session *session; /* owned by whoever made it */
    pthread_mutex_t lock;       /* a session belongs to one thread at a time */
    ort_parallel_for parallel;  /* NULL: threads of the session's own */
    const ort_context *running; /* NULL: no run is under way */
    /* [inputs of the session] which input of the node each is; NULL: the same, and as many */
    const uint32_t *from;
} ort_computed;

/* "onnx_tile: what: why"; why may be NULL. */
ort_status *ort_failure(const ort_api *api, const char *what, const char *why);
/* The runtime's version, x of "1.x"; a later major one has all that is asked for. */
int ort_minor_version(const ort_base *base);
/* `threads` of its own for the kernel's session, which is not loaded yet; 0: the runtime's, through
 * `parallel`, which do not tell how many they are. */
ort_status *ort_computed_set_threads(ort_computed *k, uint32_t threads, ort_parallel_for parallel);
/* Bytes of an array; -1: dimensions that are not known, or a type that is not bound. */
int64_t ort_tensor_bytes(const onnx_tile_tensor *t);
/* Run the session on the arrays of c: inputs are read where they lie, outputs of fixed dimensions
 * are computed in the runtime's memory, others are copied there. Under the lock. */
ort_status *ort_computed_run(ort_computed *k, ort_context *c);

#endif
