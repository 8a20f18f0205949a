/* One list of operators for fold_constants.c and distinct_values.c. */
#include "constant_ops.h"

unsigned ot_constant_op(ot_op op)
{
    switch (op) {
    case OT_OP_Abs:
    case OT_OP_Add:
    case OT_OP_And:
    case OT_OP_Cast:
    case OT_OP_Ceil:
    case OT_OP_Div:
    case OT_OP_Equal:
    case OT_OP_Floor:
    case OT_OP_Greater:
    case OT_OP_GreaterOrEqual:
    case OT_OP_Less:
    case OT_OP_LessOrEqual:
    case OT_OP_Max:
    case OT_OP_Min:
    case OT_OP_Mul:
    case OT_OP_Neg:
    case OT_OP_Not:
    case OT_OP_Or:
    case OT_OP_Sub:
    case OT_OP_Where: return OT_CONSTANT_EACH | OT_CONSTANT_EXACT;
    case OT_OP_Exp:
    case OT_OP_Log:
    case OT_OP_Pow:
    case OT_OP_Sqrt: return OT_CONSTANT_EACH | OT_CONSTANT_ROUNDS;
    case OT_OP_Clip:
    case OT_OP_Concat:
    case OT_OP_Constant:
    case OT_OP_ConstantOfShape:
    case OT_OP_Expand:
    case OT_OP_Flatten:
    case OT_OP_Gather:
    case OT_OP_GatherElements:
    case OT_OP_GatherND:
    case OT_OP_Identity:
    case OT_OP_Pad:
    case OT_OP_Range:
    case OT_OP_ReduceMax:
    case OT_OP_ReduceMin:
    case OT_OP_Relu:
    case OT_OP_Reshape:
    case OT_OP_ScatterElements:
    case OT_OP_ScatterND:
    case OT_OP_Slice:
    case OT_OP_Split:
    case OT_OP_Squeeze:
    case OT_OP_Tile:
    case OT_OP_Transpose:
    case OT_OP_Trilu:
    case OT_OP_Unsqueeze: return OT_CONSTANT_EXACT;
    case OT_OP_BatchNormalization:
    case OT_OP_Cos:
    case OT_OP_CumSum:
    case OT_OP_Einsum:
    case OT_OP_Erf:
    case OT_OP_Gelu:
    case OT_OP_Gemm:
    case OT_OP_InstanceNormalization:
    case OT_OP_LayerNormalization:
    case OT_OP_LeakyRelu:
    case OT_OP_MatMul:
    case OT_OP_Reciprocal:
    case OT_OP_ReduceL2:
    case OT_OP_ReduceMean:
    case OT_OP_ReduceProd:
    case OT_OP_ReduceSum:
    case OT_OP_ReduceSumSquare:
    case OT_OP_Sigmoid:
    case OT_OP_Sin:
    case OT_OP_Softmax:
    case OT_OP_Softplus:
    case OT_OP_Sum:
    case OT_OP_Tanh: return OT_CONSTANT_ROUNDS;
    default: return 0;
    }
}
