/* Reference kernels of products (matrices, quantization, recurrence, attention, Fourier),
 * against results worked out by hand. */
#include "ref_case.h"

/* ---- matrix products ---- */

#define M22 "float32[2,2] = [1, 2, 3, 4]"

static void matmul(void **state)
{
    (void)state;
    RIGHT(13, "MatMul(%a, %b)", WANT("float32[2,2] = [21, 43, 43, 89]"), M22,
          "float32[2,2] = [1, 3, 10, 20]");
    RIGHT(13, "MatMul(%a, %b)", WANT("float32[] = [11]"), "float32[2] = [1, 2]",
          "float32[2] = [3, 4]");
    RIGHT(13, "MatMul(%a, %b)", WANT("float32[2] = [7, 10]"), "float32[2] = [1, 2]", M22);
    RIGHT(13, "MatMul(%a, %b)", WANT("float32[2] = [5, 11]"), M22, "float32[2] = [1, 2]");
    RIGHT(13, "MatMul(%a, %b)", WANT("float32[2,2,1,1] = [3, 30, 4, 40]"),
          "float32[2,1,1,1] = [3, 4]", "float32[2,1,1] = [1, 10]");
    RIGHT(13, "MatMul(%a, %b)", WANT("int64[1,1] = [-9223372036854775808]"),
          "int64[1,2] = [9223372036854775807, 1]", "int64[2,1] = [1, 1]");
    RIGHT(13, "MatMul(%a, %b)", WANT("uint32[1,1] = [4294967294]"), "uint32[1,1] = [4294967295]",
          "uint32[1,1] = [2]");
    RIGHT(13, "MatMul(%a, %b)", WANT("float32[2,3] = fill 0"), "float32[2,0] = []",
          "float32[0,3] = []");
    RIGHT(13, "MatMul(%a, %b)", WANT("bfloat16[1,1] = [258]"), "bfloat16[1,1] = [129]",
          "bfloat16[1,1] = [2]");
    WRONG(13, "MatMul(%a, %b)", "2 columns meet 3 rows", M22, "float32[3,1] = [1, 2, 3]");
    WRONG(13, "MatMul(%a, %b)", "do not broadcast", "float32[2,1,1] = [1, 2]",
          "float32[3,1,1] = [1, 2, 3]");
    WRONG(13, "MatMul(%a, %b)", "scalar", "float32[] = [1]", "float32[1] = [1]");
    RIGHT(17, "\"com.microsoft\"::FusedMatMul@1(%a, %b) {transA=1, alpha=0.5}",
          WANT("float32[2,1] = [3.5, 5]"), M22, "float32[2,1] = [1, 2]");
    RIGHT(17, "\"com.microsoft\"::FusedMatMul@1(%a, %b) {transB=1}",
          WANT("float32[1,1,2] = [5, 11]"), "float32[1,1,2] = [1, 2]", M22);
}

static void integer_products(void **state)
{
    (void)state;
    RIGHT(10, "MatMulInteger(%a, %b, %c, %d)", WANT("int32[2,2] = [0, 0, 5, 10]"),
          "uint8[2,1] = [1, 7]", "int8[1,2] = [3, 5]", "uint8[2,1] = [1, 2]", "int8[2] = [2, 3]");
    RIGHT(10, "MatMulInteger(%a, %b, %c)", WANT("int32[] = [-4]"), "uint8[1] = [3]",
          "uint8[1] = [2]", "uint8[] = [5]");
    /* 5 * 0.5 and 7 * 0.5: to the even 2 and 4, then the zero point */
    RIGHT(10, "QLinearMatMul(%a, %b, %c, %d, %e, %f, %g, %h)", WANT("uint8[2,1] = [3, 5]"),
          "uint8[2,1] = [5, 7]", "float32[] = [0.5]", "uint8[] = [0]", "uint8[1,1] = [1]",
          "float32[] = [1]", "uint8[] = [0]", "float32[] = [1]", "uint8[] = [1]");
    RIGHT(21, "QLinearMatMul(%a, %b, %c, %d, %e, %f, %g, %h)",
          WANT("int8[2,2] = [10, -100, 20, -128]"), "int8[2,1] = [10, 20]", "float16[] = [1]",
          "int8[] = [0]", "int8[1,2] = [1, -20]", "float16[2] = [1, 0.5]", "int8[2] = [0, 0]",
          "float16[] = [1]", "int8[] = [0]");
    WRONG(10, "MatMulInteger(%a, %b, %c)", "must have 1 or 2", "uint8[2,1] = [1, 7]",
          "int8[1,2] = [3, 5]", "uint8[3] = [1, 2, 3]");
    WRONG(10, "MatMulInteger(%a, %b, %c)", "type int8, input 0 has uint8", "uint8[2,1] = [1, 7]",
          "int8[1,2] = [3, 5]", "int8[] = [1]");
}

static void gemm(void **state)
{
    (void)state;
    RIGHT(13, "Gemm(%a, %b)", WANT("float32[2,1] = [5, 11]"), M22, "float32[2,1] = [1, 2]");
    RIGHT(13, "Gemm(%a, %b) {transA=1, transB=1}", WANT("float32[2,1] = [7, 10]"), M22,
          "float32[1,2] = [1, 2]");
    RIGHT(11, "Gemm(%a, %b, %c) {alpha=2.0, beta=0.5}", WANT("float32[2,1] = [11, 24]"), M22,
          "float32[2,1] = [1, 2]", "float32[2,1] = [2, 4]");
    RIGHT(6, "Gemm(%a, %b, %c) {broadcast=1}", WANT("float32[2,2] = [11, 22, 13, 24]"), M22,
          "float32[2,2] = [1, 0, 0, 1]", "float32[2] = [10, 20]");
    RIGHT(13, "Gemm(%a, %b, %c)", WANT("float32[1,1] = [5]"), "float32[1,0] = []",
          "float32[0,1] = []", "float32[] = [5]");
    RIGHT(13, "Gemm(%a, %b, %c) {alpha=2.0}", WANT("int32[1,1] = [9]"), "int32[1,1] = [2]",
          "int32[1,1] = [2]", "int32[1] = [1]");
    WRONG(13, "Gemm(%a, %b) {alpha=0.5}", "must be whole", "int32[1,1] = [2]", "int32[1,1] = [2]");
    WRONG(13, "Gemm(%a, %b, %c)", "does not broadcast", M22, "float32[2,1] = [1, 2]",
          "float32[3] = [1, 2, 3]");
    WRONG(13, "Gemm(%a, %b)", "rank", M22, "float32[2] = [1, 2]");
    RIGHT(17, "\"com.microsoft\"::FusedGemm@1(%a, %b) {activation=\"Relu\"}",
          WANT("float32[1,1] = [0]"), "float32[1,1] = [-2]", "float32[1,1] = [2]");
}

static void einsum(void **state)
{
    (void)state;
    RIGHT(12, "Einsum(%a, %b) {equation=\"ij, jk -> ik\"}", WANT("float32[2,1] = [5, 11]"), M22,
          "float32[2,1] = [1, 2]");
    RIGHT(12, "Einsum(%a) {equation=\"ii\"}", WANT("float32[] = [5]"), M22);
    RIGHT(12, "Einsum(%a) {equation=\"ii->i\"}", WANT("float32[2] = [1, 4]"), M22);
    RIGHT(12, "Einsum(%a) {equation=\"ba\"}", WANT("float32[2,2] = [1, 3, 2, 4]"), M22);
    RIGHT(12, "Einsum(%a, %b) {equation=\"...i,i...->...\"}", WANT("float32[2] = [5, 11]"), M22,
          "float32[2] = [1, 2]");
    RIGHT(12, "Einsum(%a, %b) {equation=\"...,...\"}", WANT("int32[2,2] = [10, 20, 30, 40]"),
          "int32[2,2] = [1, 2, 3, 4]", "int32[] = [10]");
    RIGHT(12, "Einsum(%a, %b) {equation=\"ij,ij->i\"}", WANT("float32[2] = [5, 11]"), M22,
          "float32[1,2] = [1, 2]");
    RIGHT(12, "Einsum(%a, %b) {equation=\"i,i->\"}", WANT("float32[] = [0]"), "float32[0] = []",
          "float32[0] = []");
    WRONG(12, "Einsum(%a) {equation=\"ij->k\"}", "in no operand", M22);
    WRONG(12, "Einsum(%a) {equation=\"ij->ii\"}", "different ones of the inputs", M22);
    WRONG(12, "Einsum(%a) {equation=\"i\"}", "1 labels, its operand 2 axes", M22);
    WRONG(12, "Einsum(%a) {equation=\"ijk\"}", "more labels", M22);
    WRONG(12, "Einsum(%a) {equation=\"ij,jk\"}", "more terms", M22);
    WRONG(12, "Einsum(%a, %b) {equation=\"ij\"}", "fewer terms", M22, M22);
    WRONG(12, "Einsum(%a) {equation=\"..j\"}", "unexpected '.'", M22);
    WRONG(12, "Einsum(%a) {equation=\"i1\"}", "'1'", M22);
    WRONG(12, "Einsum(%a, %b) {equation=\"i,i\"}", "stands for 2 and 3", "float32[2] = [1, 2]",
          "float32[3] = [1, 2, 3]");
    WRONG(12, "Einsum(%a)", "equation is missing", M22);
}

/* ---- quantization ---- */

static void quantize(void **state)
{
    (void)state;
    RIGHT(13, "QuantizeLinear(%a, %b, %c)", WANT("uint8[6] = [1, 3, 3, 0, 255, 0]"),
          "float32[6] = [0.5, 1.5, 2.5, -9, 1e30, nan]", "float32[] = [1]", "uint8[] = [1]");
    RIGHT(13, "QuantizeLinear(%a, %b)", WANT("uint8[2] = [4, 255]"), "float32[2] = [2, inf]",
          "float32[] = [0.5]");
    RIGHT(13, "QuantizeLinear(%a, %b, %c) {axis=-1}", WANT("int8[2,2] = [2, 3, 6, 5]"), M22,
          "float32[2] = [0.5, 1]", "int8[2] = [0, 1]");
    RIGHT(21, "QuantizeLinear(%a, %b) {axis=1, block_size=2, output_dtype=5}",
          WANT("int16[1,3] = [2, 4, 30]"), "float32[1,3] = [1, 2, 3]", "float32[1,2] = [0.5, 0.1]");
    WRONG(21, "QuantizeLinear(%a, %b)", "needs a block_size", "float32[1,3] = [1, 2, 3]",
          "float32[1,2] = [0.5, 0.1]");
    WRONG(21, "QuantizeLinear(%a, %b) {block_size=1}", "along axis 1, must have 3",
          "float32[1,3] = [1, 2, 3]", "float32[1,2] = [0.5, 0.1]");
    WRONG(13, "QuantizeLinear(%a, %b)", "axis 1 has 3", "float32[1,3] = [1, 2, 3]",
          "float32[2] = [0.5, 0.1]");
    WRONG(13, "QuantizeLinear(%a, %b) {axis=2}", "axis 2 is out of range",
          "float32[1,3] = [1, 2, 3]", "float32[2] = [0.5, 0.1]");
    WRONG(13, "QuantizeLinear(%a, %b, %c)", "quantizing to int32", "float32[1] = [1]",
          "float32[] = [0.5]", "int32[] = [0]");
    RIGHT(13, "QuantizeLinear(%a, %b, %c)", WANT("uint8[1] = [3]"), "float32[1] = [1]",
          "float32[] = [0.5]", "uint8[1] = [1]");
    WRONG(13, "QuantizeLinear(%a, %b, %c)", "input 2 has rank 2", "float32[1] = [1]",
          "float32[] = [0.5]", "uint8[1,1] = [0]");
}

static void dequantize(void **state)
{
    (void)state;
    RIGHT(13, "DequantizeLinear(%a, %b, %c)", WANT("float32[2] = [-1, 126.5]"),
          "uint8[2] = [0, 255]", "float32[] = [0.5]", "uint8[] = [2]");
    RIGHT(13, "DequantizeLinear(%a, %b, %c) {axis=0}", WANT("float32[2,1] = [-1, 3]"),
          "int8[2,1] = [-1, 3]", "float32[2] = [0.5, 1]", "int8[2] = [1, 0]");
    RIGHT(19, "DequantizeLinear(%a, %b)", WANT("float16[1] = [-8]"), "int32[1] = [-16]",
          "float16[] = [0.5]");
    RIGHT(21, "DequantizeLinear(%a, %b) {axis=0, block_size=2}", WANT("float32[3,1] = [1, 2, 30]"),
          "int16[3,1] = [1, 2, 3]", "float32[2,1] = [1, 10]");
    RIGHT(13, "DequantizeLinear(%a, %b, %c)", WANT("float32[2] = [1, 1.5]"), "int32[2] = [2, 3]",
          "float32[1] = [0.5]", /* [] and [1] */
          "int32[] = [0]");
    WRONG(13, "DequantizeLinear(%a, %b, %c)", "input 2 has 2 elements", "int8[2] = [1, 2]",
          "float32[1] = [1]", "int8[2] = [0, 0]");
    WRONG(13, "DequantizeLinear(%a, %b, %c)", "type uint8, input 0 has int8", "int8[1] = [1]",
          "float32[] = [1]", "uint8[] = [0]");
    RIGHT(11, "DynamicQuantizeLinear(%a)",
          WANT("uint8[6] = [153, 255, 0, 26, 221, 179]", "float32[] = [0.019607844]",
               "uint8[] = [153]"),
          "float32[6] = [0, 2, -3, -2.5, 1.34, 0.5]");
    RIGHT(11, "DynamicQuantizeLinear(%a)",
          WANT("uint8[2] = [0, 0]", "float32[] = [1]", "uint8[] = [0]"), "float32[2] = [0, 0]");
}

/* ---- recurrence: H = relu(x + 10 H) ---- */

#define SEQ   "float32[2,1,1] = [1, 2]"
#define ONE11 "float32[1,1,1] = [1]"
#define TEN11 "float32[1,1,1] = [10]"

static void rnn(void **state)
{
    (void)state;
    RIGHT(14, "RNN(%a, %b, %c) {hidden_size=1, activations=[\"Relu\"]}",
          WANT("float32[2,1,1,1] = [1, 12]", "float32[1,1,1] = [12]"), SEQ, ONE11, TEN11);
    RIGHT(7, "RNN(%a, %b, %c) {hidden_size=1, activations=[\"Relu\"], direction=\"reverse\"}",
          WANT("float32[2,1,1,1] = [21, 2]", "float32[1,1,1] = [21]"), SEQ, ONE11, TEN11);
    RIGHT(14, "RNN(%a, %b, %c, _, %d) {activations=[\"Relu\"], direction=\"reverse\"}",
          WANT("float32[2,1,1,1] = [1, 0]", "float32[1,1,1] = [1]"), SEQ, ONE11, TEN11,
          "int32[1] = [1]");
    RIGHT(14, "RNN(%a, %b, %c, _, _, %d) {activations=[\"Relu\"], layout=1}",
          WANT("float32[1,2,1,1] = [51, 512]", "float32[1,1,1] = [512]"), "float32[1,2,1] = [1, 2]",
          ONE11, TEN11, "float32[1,1,1] = [5]");
    RIGHT(14,
          "RNN(%a, %b, %c) {activations=[\"Relu\", \"Affine\"], activation_alpha=[2.0], "
          "activation_beta=[1.0], "
          "direction=\"bidirectional\"}",
          WANT("float32[1,2,1,1] = [3, 7]", "float32[2,1,1] = [3, 7]"), "float32[1,1,1] = [3]",
          "float32[2,1,1] = [1, 1]", "float32[2,1,1] = [0, 0]");
    RIGHT(14, "RNN(%a, %b, %c, %d) {activations=[\"Relu\"], clip=2.5}",
          WANT("float32[2,1,1,1] = [2.5, 2.5]"), SEQ, ONE11, TEN11, "float32[1,2] = [3, 4]");
    WRONG(14, "RNN(%a, %b, %c) {direction=\"sideways\"}", "'sideways'", SEQ, ONE11, TEN11);
    WRONG(14, "RNN(%a, %b, %c) {activations=[\"Cosine\"]}", "'Cosine'", SEQ, ONE11, TEN11);
    WRONG(14, "RNN(%a, %b, %c) {activations=[\"Relu\", \"Relu\"]}", "2 activations, must be 1", SEQ,
          ONE11, TEN11);
    WRONG(14, "RNN(%a, %b, %c) {direction=\"bidirectional\"}", "along axis 0", SEQ, ONE11, TEN11);
    WRONG(14, "RNN(%a, %b, %c) {hidden_size=2}", "hidden_size is 2", SEQ, ONE11, TEN11);
    WRONG(14, "RNN(%a, %b, %c, _, %d)", "sequence_lens[0] is 3", SEQ, ONE11, TEN11,
          "int32[1] = [3]");
}

/* z = 1/2, r = 2, state 1, x 1, recurrent bias of the last gate 1 */
static void gru(void **state)
{
    (void)state;
    const char *w = "float32[1,3,1] = [0, 0, 1]", *b = "float32[1,6] = [0.5, 2, 0, 0, 0, 1]";
    RIGHT(14, "GRU(%a, %b, %c, %d, _, %e) {activations=[\"Relu\", \"Relu\"]}",
          WANT("float32[1,1,1,1] = [2.5]", "float32[1,1,1] = [2.5]"), ONE11, w, w, b, ONE11);
    RIGHT(14,
          "GRU(%a, %b, %c, %d, _, %e) {activations=[\"Relu\", \"Relu\"], linear_before_reset=1}",
          WANT("float32[1,1,1,1] = [3]"), ONE11, w, w, b, ONE11);
    WRONG(14, "GRU(%a, %b, %c, %d)", "along axis 1", ONE11, w, w, "float32[1,3] = [1, 2, 3]");
}

/* gates i, o, f open, the cell sums x */
static void lstm(void **state)
{
    (void)state;
    const char *w = "float32[1,4,1] = [0, 0, 0, 1]", *r = "float32[1,4,1] = [0, 0, 0, 0]",
               *b = "float32[1,8] = [1, 1, 1, 0, 0, 0, 0, 0]";
#define RELUS "activations=[\"Relu\", \"Relu\", \"Relu\"]"
    RIGHT(14, "LSTM(%a, %b, %c, %d) {" RELUS "}",
          WANT("float32[2,1,1,1] = [1, 3]", "float32[1,1,1] = [3]", "float32[1,1,1] = [3]"), SEQ, w,
          r, b);
    RIGHT(14, "LSTM(%a, %b, %c, %d) {" RELUS ", input_forget=1}",
          WANT("float32[2,1,1,1] = [1, 2]", "float32[1,1,1] = [2]", "float32[1,1,1] = [2]"), SEQ, w,
          r, b);
#undef RELUS
}

/* peepholes of i, o, f: 0, 1, 0 and 1, 0, 0; first cell 1 */
static void lstm_peepholes(void **state)
{
    (void)state;
    const char *w = "float32[1,4,1] = [0, 0, 0, 1]", *r = "float32[1,4,1] = [0, 0, 0, 0]",
               *b = "float32[1,8] = [1, 1, 1, 0, 0, 0, 0, 0]";
#define NODE "LSTM(%a, %b, %c, %d, _, _, %e, %f) {activations=[\"Relu\", \"Relu\", \"Relu\"]}"
    RIGHT(14, NODE, WANT("float32[1,1,1,1] = [6]", "float32[1,1,1] = [6]", "float32[1,1,1] = [2]"),
          ONE11, w, r, b, ONE11, "float32[1,3] = [0, 1, 0]");
    RIGHT(14, NODE, WANT("float32[1,1,1,1] = [3]", "float32[1,1,1] = [3]", "float32[1,1,1] = [3]"),
          ONE11, w, r, b, ONE11, "float32[1,3] = [1, 0, 0]");
    RIGHT(14, NODE, WANT("float32[1,1,1,1] = [3]", "float32[1,1,1] = [3]", "float32[1,1,1] = [3]"),
          ONE11, w, r, b, ONE11, "float32[1,3] = [0, 0, 1]");
#undef NODE
}

/* ---- attention ---- */

#define Q "float32[1,1,2,1] = [1, 1]"
#define K "float32[1,1,2,1] = [0, 0]"
#define V "float32[1,1,2,1] = [2, 4]"

static void attention(void **state)
{
    (void)state;
    RIGHT(23, "Attention(%a, %b, %c)",
          WANT("float32[1,1,2,1] = [3, 3]", K, V, "float32[1,1,2,2] = fill 0"), Q, K, V);
    RIGHT(23, "Attention(%a, %b, %c) {is_causal=1, qk_matmul_output_mode=3}",
          WANT("float32[1,1,2,1] = [2, 3]", K, V, "float32[1,1,2,2] = [1, 0, 0.5, 0.5]"), Q, K, V);
    RIGHT(23, "Attention(%a, %b, %c, %d)", WANT("float32[1,1,2,1] = [4, 0]"), Q, K, V,
          "bool[2,2] = [0, 1, 0, 0]");
    RIGHT(23, "Attention(%a, %b, %c, %d) {qk_matmul_output_mode=2}",
          WANT("float32[1,1,2,1] = [2, 2]", K, V, "float32[1,1,2,2] = [3, -inf, 3, -inf]"), Q, K, V,
          "float32[1] = [3]");
    RIGHT(23, "Attention(%a, %b, %c) {scale=1.0, softcap=1.0, qk_matmul_output_mode=1}",
          WANT("float32[1,1,1,1] = [5]", "float32[1,1,1,1] = [9]", "float32[1,1,1,1] = [5]",
               "float32[1,1,1,1] = [1]"),
          "float32[1,1,1,1] = [9]", "float32[1,1,1,1] = [9]", "float32[1,1,1,1] = [5]");
    RIGHT(23, "Attention(%a, %b, %c, _, %d, %e) {is_causal=1}",
          WANT("float32[1,1,1,1] = [3]", "float32[1,1,2,1] = [0, 0]", "float32[1,1,2,1] = [4, 2]"),
          "float32[1,1,1,1] = [1]", "float32[1,1,1,1] = [0]", "float32[1,1,1,1] = [2]",
          "float32[1,1,1,1] = [0]", "float32[1,1,1,1] = [4]");
    /* two heads of Q for one of K and V, three dimensions */
    RIGHT(23, "Attention(%a, %b, %c) {q_num_heads=2, kv_num_heads=1}",
          WANT("float32[1,1,4] = [2, 3, 2, 3]"), "float32[1,1,2] = [1, 2]", "float32[1,1,1] = [0]",
          "float32[1,1,2] = [2, 3]");
    /* one valid key, two queries: the first stands before it */
    RIGHT(24, "Attention(%a, %b, %c, _, _, _, %d) {is_causal=1}", WANT("float32[1,1,2,1] = [0, 2]"),
          Q, K, V, "int64[1] = [1]");
    RIGHT(25, "Attention(%a, %b, %c) {left_window_size=0}", WANT("float32[1,1,2,1] = [3, 4]"), Q, K,
          V);
    RIGHT(25, "Attention(%a, %b, %c) {left_window_size=0, right_window_size=0}",
          WANT("float32[1,1,2,1] = [2, 4]"), Q, K, V);
    WRONG(23, "Attention(%a, %b, %c, %d)", "the mask has 3", Q, K, V, "float32[3] = [3, 3, 3]");
    WRONG(23, "Attention(%a, %b, %c) {q_num_heads=2, kv_num_heads=1}", "to share out",
          "float32[1,1,3] = [1, 2, 3]", "float32[1,1,1] = [0]", "float32[1,1,2] = [2, 3]");
    WRONG(23, "Attention(%a, %b, %c)", "do not agree", Q, K, "float32[1,1,1,1] = [0]");
    WRONG(23, "Attention(%a, %b, %c, _, %d)", "come together", Q, K, V, K);
}

static void projected_attention(void **state)
{
    (void)state;
#define NODE(operands, attrs) "\"com.microsoft\"::Attention@1(" operands ") {num_heads=1" attrs "}"
    /* queries and keys are 0; values 2 x + 1 */
    const char *x = "float32[1,2,1] = [1, 2]", *w = "float32[1,3] = [0, 0, 2]",
               *b = "float32[3] = [0, 0, 1]";
    RIGHT(17, NODE("%a, %b, %c", ""), WANT("float32[1,2,1] = [4, 4]"), x, w, b);
    RIGHT(17, NODE("%a, %b, %c", ", unidirectional=1"), WANT("float32[1,2,1] = [3, 4]"), x, w, b);
    RIGHT(17, NODE("%a, %b, %c, %d", ""), WANT("float32[1,2,1] = [5, 5]"), x, w, b,
          "int32[1,2] = [0, 1]");
    RIGHT(17, NODE("%a, %b, %c, %d", ""), WANT("float32[1,2,1] = [3, 3]"), x, w, b,
          "int32[1] = [1]");
    RIGHT(17, NODE("%a, %b, %c, _, %d", ", unidirectional=1"),
          WANT("float32[1,2,1] = [5, 5]", "float32[2,1,1,3,1] = [0, 0, 0, 7, 3, 5]"), x, w, b,
          "float32[2,1,1,1,1] = [0, 7]");
    WRONG(17, NODE("%a, %b, %c", ", do_rotary=1"), "not supported", x, w, b);
    WRONG(17, NODE("%a, %b", ""), "do not share out", x, "float32[1,2] = [0, 0]");
#undef NODE
}

static void rotary_and_linear(void **state)
{
    (void)state;
    const char *zero = "float32[1,1,2] = [0, 0]", *one = "float32[1,1,2] = [1, 1]";
    RIGHT(23, "RotaryEmbedding(%a, %b, %c)", WANT("float32[1,1,1,4] = [-3, -4, 1, 2]"),
          "float32[1,1,1,4] = [1, 2, 3, 4]", zero, one);
    RIGHT(23, "RotaryEmbedding(%a, %b, %c) {interleaved=1, num_heads=1}",
          WANT("float32[1,1,4] = [-2, 1, -4, 3]"), "float32[1,1,4] = [1, 2, 3, 4]", zero, one);
    RIGHT(23, "RotaryEmbedding(%a, %b, %c, %d) {rotary_embedding_dim=2}",
          WANT("float32[1,1,1,4] = [-2, 1, 3, 4]"), "float32[1,1,1,4] = [1, 2, 3, 4]",
          "float32[2,1] = [1, 0]", "float32[2,1] = [0, 1]", "int64[1,1] = [1]");
    WRONG(23, "RotaryEmbedding(%a, %b, %c, %d)", "position 2", "float32[1,1,1,2] = [1, 2]",
          "float32[2,1] = [1, 0]", "float32[2,1] = [0, 1]", "int64[1,1] = [2]");
#define LINEAR(rule) "{q_num_heads=1, kv_num_heads=1, scale=1.0, update_rule=\"" rule "\"}"
    RIGHT(27, "LinearAttention(%a, %b, %c) " LINEAR("linear"),
          WANT("float32[1,2,1] = [3, 16]", "float32[1,1,1,1] = [8]"), "float32[1,2,1] = [1, 2]",
          "float32[1,2,1] = [1, 1]", "float32[1,2,1] = [3, 5]");
    /* the state halves, the second value is what is missing: 5 - 1.5 */
    RIGHT(27, "LinearAttention(%a, %b, %c, _, %d, %e) " LINEAR("gated_delta"),
          WANT("float32[1,2,1] = [3, 10]", "float32[1,1,1,1] = [5]"), "float32[1,2,1] = [1, 2]",
          "float32[1,2,1] = [1, 1]", "float32[1,2,1] = [3, 5]",
          "float32[1,2,1] = [-0.69314718, -0.69314718]", "float32[1,2,1] = [1, 1]");
    WRONG(27, "LinearAttention(%a, %b, %c) " LINEAR("gated"), "'gated'", ONE11, ONE11, ONE11);
#undef LINEAR
}

/* ---- Fourier ---- */

static void fourier(void **state)
{
    (void)state;
    RIGHT(17, "DFT(%a)", WANT("float32[1,2,2] = [3, 0, -1, 0]"), "float32[1,2,1] = [1, 2]");
    /* i^-k of 0 1 0 0 */
    RIGHT(20, "DFT(%a, _, %b)", WANT("float32[4,2] = [1, 0, 0, -1, -1, 0, 0, 1]"),
          "float32[4,1] = [0, 1, 0, 0]", "int64[] = [0]");
    RIGHT(20, "DFT(%a, %b) {onesided=1}", WANT("float32[2,2] = [1, 0, 1, 0]"), "float32[1,1] = [1]",
          "int64[] = [2]");
    RIGHT(20, "DFT(%a) {inverse=1}", WANT("float32[2,2] = [1, 0, 2, 0]"),
          "float32[2,2] = [3, 0, -1, 0]");
    RIGHT(20, "DFT(%a) {inverse=1, onesided=1}", WANT("float32[2,1] = [1, 2]"),
          "float32[2,2] = [3, 0, -1, 0]");
    WRONG(20, "DFT(%a, _, %b)", "parts of complex", "float32[2,2] = [3, 0, -1, 0]",
          "int64[] = [1]");
    WRONG(20, "DFT(%a, %b)", "is 0", "float32[2,2] = [3, 0, -1, 0]", "int64[] = [0]");
    WRONG(20, "DFT(%a) {onesided=1}", "real input", "float32[2,2] = [3, 0, -1, 0]");
    RIGHT(17, "STFT(%a, %b, _, %c)", WANT("float32[1,2,2,2] = [3, 0, -1, 0, 5, 0, -1, 0]"),
          "float32[1,3,1] = [1, 2, 3]", "int64[] = [1]", "int64[] = [2]");
    RIGHT(17, "STFT(%a, %b, %c) {onesided=0}", WANT("float32[1,1,2,2] = [11, 0, 9, 0]"),
          "float32[1,2,1] = [1, 1]", "int64[] = [1]", "float32[2] = [10, 1]");
    WRONG(17, "STFT(%a, %b, _, %c)", "do not fit", "float32[1,3,1] = [1, 2, 3]", "int64[] = [1]",
          "int64[] = [4]");
    WRONG(17, "STFT(%a, %b)", "do not fit", "float32[1,3,1] = [1, 2, 3]", "int64[] = [0]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul),
        cmocka_unit_test(integer_products),
        cmocka_unit_test(gemm),
        cmocka_unit_test(einsum),
        cmocka_unit_test(quantize),
        cmocka_unit_test(dequantize),
        cmocka_unit_test(rnn),
        cmocka_unit_test(gru),
        cmocka_unit_test(lstm),
        cmocka_unit_test(lstm_peepholes),
        cmocka_unit_test(attention),
        cmocka_unit_test(projected_attention),
        cmocka_unit_test(rotary_and_linear),
        cmocka_unit_test(fourier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
