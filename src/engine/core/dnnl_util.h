/* oneDNN (C API) for the engine: one dnnl engine a session, a stream for each thread of a
 * schedule, and what makes its descriptors.
 *
 * oneDNN shares its loops out by OpenMP. Here it never does: sessions set its threads to one
 * while they are made and run, and share out parts of the work by their own pool (pool.h).
 */
#ifndef OT_ENGINE_CORE_DNNL_UTIL_H
#define OT_ENGINE_CORE_DNNL_UTIL_H

#include "session.h"

#include <dnnl.h>

/* Of the session; NULL: oneDNN does not work here. */
dnnl_engine_t ot_dnnl_engine(ot_session *s);
dnnl_stream_t ot_dnnl_stream(ot_schedule *p);
/* One for each of n threads, n at most the schedule's; NULL: no memory. */
const dnnl_stream_t *ot_dnnl_streams(ot_schedule *p, uint32_t n);
/* A thread of a pool is about to call oneDNN: it takes no other threads. */
void ot_dnnl_alone(void);
/* Descriptor of a float32 array as it lies: dense plain, blocked without holes, or NULL layout
 * "any". false: it has none. */
bool ot_dnnl_md(dnnl_memory_desc_t *md, const ot_nd *a);
/* The slow but general implementations, which must never run. */
bool ot_dnnl_is_reference(const_dnnl_primitive_desc_t pd);

/* A primitive, ready to run: memory objects whose addresses are set at each run. */
#define OT_DNNL_ARGS 10
typedef struct ot_dnnl_op {
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    uint32_t n;
    dnnl_exec_arg_t args[OT_DNNL_ARGS];
} ot_dnnl_op;

/* Add an argument of that form; `data` may be set later. */
bool ot_dnnl_arg(ot_dnnl_op *op, dnnl_engine_t e, int arg, const dnnl_memory_desc_t *md,
                 void *data);
void ot_dnnl_set(ot_dnnl_op *op, uint32_t k, void *data); /* of the k-th argument that was added */
bool ot_dnnl_run(const ot_dnnl_op *op);
void ot_dnnl_op_free(ot_dnnl_op *op);

#endif
