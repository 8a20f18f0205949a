/* Table of the product family: matrix products, quantization, recurrence, attention, Fourier
 * transforms. */
#include "ref_product.h"

const ot_op_entry ot_ops_product[] = {
    {OT_OP_MatMul, ot_ref_matmul},
    {OT_OP_MatMulInteger, ot_ref_matmul_integer},
    {OT_OP_QLinearMatMul, ot_ref_qlinear_matmul},
    {OT_OP_Gemm, ot_ref_gemm},
    {OT_OP_Einsum, ot_ref_einsum},
    {OT_OP_QuantizeLinear, ot_ref_quantize_linear},
    {OT_OP_DequantizeLinear, ot_ref_dequantize_linear},
    {OT_OP_LSTM, ot_ref_lstm},
    {OT_OP_GRU, ot_ref_gru},
    {OT_OP_RNN, ot_ref_rnn},
    {OT_OP_Attention, ot_ref_attention},
    {OT_OP_Det, ot_ref_det},
    {OT_OP_OPAQUE, NULL},
};

const ot_op_named ot_ops_product_named[] = {
    {"", "DynamicQuantizeLinear", ot_ref_dynamic_quantize_linear},
    {"", "RotaryEmbedding", ot_ref_rotary_embedding},
    {"", "LinearAttention", ot_ref_linear_attention},
    {"", "DFT", ot_ref_dft},
    {"", "STFT", ot_ref_stft},
    {"com.microsoft", "Attention", ot_ref_projected_attention},
    {"com.microsoft", "FusedGemm", ot_ref_fused_gemm},
    {"com.microsoft", "FusedMatMul", ot_ref_fused_matmul},
    {"com.microsoft", "MatMulNBits", ot_ref_matmul_nbits},
    {"com.microsoft", "QLinearAdd", ot_ref_qlinear_add},
    {"com.microsoft", "QLinearMul", ot_ref_qlinear_mul},
    {"com.microsoft", "QLinearSigmoid", ot_ref_qlinear_sigmoid},
    {"com.microsoft", "QLinearLeakyRelu", ot_ref_qlinear_leaky_relu},
    {"com.microsoft", "QLinearGlobalAveragePool", ot_ref_qlinear_global_average_pool},
    {"com.microsoft", "QLinearConcat", ot_ref_qlinear_concat},
    {"com.microsoft", "QGemm", ot_ref_qgemm},
    {NULL, NULL, NULL},
};
