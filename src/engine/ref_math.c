/* Table of the element-wise operators. */
#include "kernels.h"
#include "ref_math.h"

#define K(name, run) {OT_OP_##name, run}
#define UNARY(name)  K(name, ot_rm_unary)
#define BINARY(name) K(name, ot_rm_binary)

const ot_kernel_entry ot_kernels_math[] = {
    /* one input */
    UNARY(Abs), UNARY(Neg), UNARY(Sign), UNARY(Floor), UNARY(Ceil), UNARY(Round), UNARY(Sqrt), UNARY(Reciprocal),
    UNARY(Exp), UNARY(Log), UNARY(Erf), UNARY(Sin), UNARY(Cos), UNARY(Tan), UNARY(Asin), UNARY(Acos), UNARY(Atan),
    UNARY(Sinh), UNARY(Cosh), UNARY(Tanh), UNARY(Asinh), UNARY(Acosh), UNARY(Atanh),
    UNARY(Sigmoid), UNARY(Relu), UNARY(LeakyRelu), UNARY(ThresholdedRelu), UNARY(Elu), UNARY(Selu), UNARY(Celu),
    UNARY(Gelu), UNARY(HardSigmoid), UNARY(HardSwish), UNARY(Mish), UNARY(Softplus), UNARY(Softsign), UNARY(Swish),
    UNARY(Shrink), UNARY(Not), UNARY(BitwiseNot),
    K(Clip, ot_rm_clip), K(IsNaN, ot_rm_test), K(IsInf, ot_rm_test), K(Cast, ot_rm_cast), K(CastLike, ot_rm_cast),
    /* two inputs */
    BINARY(Add), BINARY(Sub), BINARY(Mul), BINARY(Div), BINARY(Mod), BINARY(PRelu), BINARY(And), BINARY(Or),
    BINARY(Xor), BINARY(BitShift), BINARY(BitwiseAnd), BINARY(BitwiseOr), BINARY(BitwiseXor), BINARY(Equal),
    BINARY(Greater), BINARY(GreaterOrEqual), BINARY(Less), BINARY(LessOrEqual), K(Pow, ot_rm_pow),
    /* more */
    K(Max, ot_rm_variadic), K(Min, ot_rm_variadic), K(Sum, ot_rm_variadic), K(Mean, ot_rm_variadic),
    K(Where, ot_rm_where), K(BatchNormalization, ot_rm_batch_norm), K(Dropout, ot_rm_dropout),
    {OT_OP_OPAQUE, NULL}};
