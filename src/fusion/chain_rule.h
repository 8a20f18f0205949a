/* Which element-wise nodes run in one pass over memory with others: pure functions of the graph.
 * The engine compiles such nodes (engine/cpu/chain/chain.h), and the planner counts on it.
 */
#ifndef OT_FUSION_CHAIN_RULE_H
#define OT_FUSION_CHAIN_RULE_H

#include "onnx/graph/ir.h"

/* Can a chain compute this node? Element-wise operators on float32, float16 or bfloat16 (bool
 * where the operator makes or takes masks: comparisons, logic, Where, Not), casts between those
 * types, Quantize- and DequantizeLinear of 8 bits by one constant scale, inference-mode
 * BatchNormalization and Dropout without mask, PRelu, n-ary Sum/Max/Min/Mean. Types must be
 * known, attributes and what must be constant (Clip's bounds may also be arrays of one element;
 * BatchNormalization's parameters are arrays) must be as the chain needs them. Looks at no
 * extents. */
bool ot_chain_takes(const ot_graph *g, const ot_node *n);

/* Scale, zero point and 8-bit type of Quantize- or DequantizeLinear `n` between that type and
 * float32: constants, one of each for the whole tensor. */
bool ot_chain_quantizer(const ot_graph *g, const ot_node *n, ot_dtype *t, float *scale,
                        float *zero);

/* Constant scale (input k) and zero point (behind it) of a tensor of bytes of type t: one of each.
 */
bool ot_chain_scale(const ot_graph *g, const ot_node *n, uint32_t k, ot_dtype t, float *scale,
                    float *zero);

/* Number of an operator of com.microsoft on quantized tensors (QLinearAdd, QLinearMul,
 * QLinearSigmoid, QLinearLeakyRelu), and how many tensors it takes; OT_NONE: it is none. */
uint32_t ot_chain_quantized_op(const ot_node *n, uint32_t *tensors);

/* The type that a Cast or CastLike makes; OT_DT_UNKNOWN: none of a chain. */
ot_dtype ot_chain_cast_to(const ot_graph *g, const ot_node *n);

/* A value of one element whose contents are known (bool: 0 or 1). */
bool ot_chain_known(const ot_graph *g, ot_id v, float *out);

#endif
