/* Element-wise expressions computed in one pass, block by block, without storing what lies between.
 *
 *   a = x + b ; s = sigmoid(a) ; y = a * s          nodes --compile--> instructions on registers
 *
 *   for each block of some hundred elements:         x, b ---load---> r0 r1
 *       r0 = r0 + r1; r1 = sigmoid(r0); r0 = r0*r1   r0   ---store--> y
 *
 * Results are those of float arithmetic, one operator after another, but x * y + z may be
 * rounded once, and exp, log, tanh and the like differ from the correctly rounded by an ulp or
 * some (chain_math.h). Numbers below 1.2e-38 may become 0. float16 and bfloat16 are types of
 * arrays: what is read of them is widened, what is written rounded; in between only a Cast
 * rounds.
 *
 * A chain knows nothing of layouts: dims and strides are those of the memory as it lies (a
 * channel-blocked array is one of five dims), broadcast operands have stride 0.
 */
#ifndef OT_ENGINE_CPU_CHAIN_CHAIN_H
#define OT_ENGINE_CPU_CHAIN_CHAIN_H

#include "engine/core/engine.h"
#include "fusion/chain_rule.h"

#define OT_CHAIN_RANK    9  /* dims of a run */
#define OT_CHAIN_INPUTS  24 /* arrays read */
#define OT_CHAIN_OUTPUTS 8  /* arrays written */

typedef struct ot_chain ot_chain; /* immutable once made: threads may share it */

/* Which nodes a chain takes: fusion/chain_rule.h. */

/* Operands of a chain: values of the graph. A value whose contents are known (ot_value.known or
 * init, one element) is folded into the instructions where that helps. BatchNormalization is
 * computed as x * scale' + shift' with both derived from its four parameters element by element
 * (they are ordinary operands that the caller broadcasts along the channel). */
typedef struct ot_chain_spec {
    const ot_graph *g;
    /* [n_nodes] in an order in which values are made before they are read */
    const ot_node *const *nodes;
    uint32_t n_nodes;
    const ot_id *outputs; /* [n_outputs] values that must be stored */
    uint32_t n_outputs;
} ot_chain_spec;

/* In arena a. Fails: OT_E_NOMEM; OT_E_INPUT for more operands or deeper expressions than it can
 * hold (say which; the caller splits the nodes). */
ot_status ot_chain_new(ot_arena *a, const ot_chain_spec *s, ot_diag *d,
                       const ot_chain **out) OT_MUST_USE;
/* Values that must be given at each run, in this order; folded constants are not among them. The
 * caller broadcasts parameters of BatchNormalization along the channel; all others, PRelu's
 * slope included, follow ONNX broadcasting (what broadcasts otherwise, before version 7, is not
 * taken). A value may be here twice, as a parameter of channels and as an array. */
uint32_t ot_chain_inputs(const ot_chain *c, const ot_id **values);
/* Is input k a per-channel parameter (scale, bias, mean or variance of BatchNormalization: rank
 * 1, along axis 1)? */
bool ot_chain_is_channel(const ot_chain *c, uint32_t k);

typedef struct ot_chain_array {
    /* float; uint8_t for bool values; uint8_t, int8_t; uint16_t for float16 and bfloat16 */
    void *data;
    int64_t strides[OT_CHAIN_RANK]; /* in elements, may be 0 (inputs) or negative */
} ot_chain_array;

/* Compute all elements of a box of `dims`. Outputs may be the very memory of an input with the
 * same strides. Several calls may run at once. threads > 1: blocks are shared out
 * (ot_pool_share). Never fails, allocates nothing: registers live on the stack (some 80 KiB).
 * The order of dims does not matter. Outputs of 40 MiB and more are written past the caches. */
void ot_chain_run(const ot_chain *c, uint32_t rank, const int64_t *dims, const ot_chain_array *in,
                  const ot_chain_array *out, uint32_t threads);

#endif
