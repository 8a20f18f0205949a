/* Reference kernels of windows (convolutions, pools, resampling), against results worked out by
 * hand. */
#include "ref_case.h"

/* ---- convolutions ---- */

#define X4 "float32[1,1,4] = [1, 2, 3, 4]"
#define W2 "float32[1,1,2] = [1, 10]"

static void conv_attributes(void **state)
{
    (void)state;
    RIGHT(11, "Conv(%a, %b)", WANT("float32[1,1,3] = [21, 32, 43]"), X4, W2);
    RIGHT(1, "Conv(%a, %b) {pads=[1, 0], kernel_shape=[2]}",
          WANT("float32[1,1,4] = [10, 21, 32, 43]"), X4, W2);
    RIGHT(11, "Conv(%a, %b) {strides=[2]}", WANT("float32[1,1,2] = [21, 43]"), X4, W2);
    RIGHT(11, "Conv(%a, %b) {dilations=[2]}", WANT("float32[1,1,2] = [31, 42]"), X4, W2);
    RIGHT(11, "Conv(%a, %b) {auto_pad=\"SAME_UPPER\"}", WANT("float32[1,1,4] = [21, 32, 43, 4]"),
          X4, W2);
    RIGHT(11, "Conv(%a, %b) {auto_pad=\"SAME_LOWER\"}", WANT("float32[1,1,4] = [10, 21, 32, 43]"),
          X4, W2);
    RIGHT(11, "Conv(%a, %b) {auto_pad=\"VALID\"}", WANT("float32[1,1,3] = [21, 32, 43]"), X4, W2);
    RIGHT(11, "Conv(%a, %b, %c) {group=2}", WANT("float32[1,2,2] = [11, 21, 302, 402]"),
          "float32[1,2,2] = [1, 2, 3, 4]", "float32[2,1,1] = [10, 100]", "float32[2] = [1, 2]");
    RIGHT(22, "Conv(%a, %b)", WANT("float16[1,1,3] = [21, 32, 43]"),
          "float16[1,1,4] = [1, 2, 3, 4]", "float16[1,1,2] = [1, 10]");
    RIGHT(11, "Conv(%a, %b)", WANT("float64[1,1,1,1,1] = [30]"),
          "float64[1,1,1,2,2] = [1, 2, 3, 4]", "float64[1,1,1,2,2] = [1, 2, 3, 4]");
    RIGHT(11, "Conv(%a, %b)", WANT("float32[0,1,3] = []"), "float32[0,1,4] = []", W2);
    RIGHT(11, "Conv(%a, %b)", WANT("float32[1,2,4] = fill 0"), "float32[1,0,4] = []",
          "float32[2,0,1] = []");
}

static void conv_refuses(void **state)
{
    (void)state;
    WRONG(11, "Conv(%a, %b)", "larger than the padded input", "float32[1,1,1] = [1]", W2);
    WRONG(11, "Conv(%a, %b)", "do not agree for group 1", "float32[1,2,2] = [1, 2, 3, 4]", W2);
    WRONG(11, "Conv(%a, %b) {group=0}", "group", X4, W2);
    WRONG(11, "Conv(%a, %b) {strides=[0]}", "strides[0] is 0", X4, W2);
    WRONG(11, "Conv(%a, %b) {pads=[-1, 0]}", "pads[0] is -1", X4, W2);
    WRONG(11, "Conv(%a, %b) {pads=[1]}", "pads has 1 values", X4, W2);
    WRONG(11, "Conv(%a, %b) {kernel_shape=[3]}", "kernel_shape[0] is 3", X4, W2);
    WRONG(11, "Conv(%a, %b) {auto_pad=\"SAME\"}", "'SAME'", X4, W2);
    WRONG(11, "Conv(%a, %b)", "has type float64", X4, "float64[1,1,2] = [1, 10]");
    WRONG(11, "Conv(%a, %b)", "rank", X4, "float32[1,2] = [1, 10]");
    WRONG(11, "Conv(%a, %b)", "type int32", "int32[1,1,1] = [1]", "int32[1,1,1] = [1]");
    WRONG(11, "Conv(%a, %b, %c)", "must have 1", X4, W2, "float32[2] = [1, 2]");
    WRONG(11, "Conv(%a, %b)", "kernel is empty", X4, "float32[1,1,0] = []");
}

static void quantized_conv(void **state)
{
    (void)state;
    /* pads are zero points: x - 1 is 1 2 3 */
    RIGHT(10, "ConvInteger(%a, %b, %c) {pads=[1, 0]}", WANT("int32[1,1,3] = [10, 21, 32]"),
          "uint8[1,1,3] = [2, 3, 4]", "uint8[1,1,2] = [1, 10]", "uint8[] = [1]");
    RIGHT(10, "ConvInteger(%a, %b, _, %c)", WANT("int32[1,2,1] = [-2, 10]"), "int8[1,1,1] = [-2]",
          "int8[2,1,1] = [2, -2]", "int8[2] = [1, 3]");
    /* sums 10 21 32, a quarter of each: 2.5 goes to the even 2 */
    RIGHT(10, "QLinearConv(%a, %b, %c, %d, %e, %f, %g, %h) {pads=[1, 0]}",
          WANT("uint8[1,1,3] = [5, 8, 11]"), "uint8[1,1,3] = [2, 3, 4]", "float32[] = [0.5]",
          "uint8[] = [1]", "uint8[1,1,2] = [1, 10]", "float32[] = [0.5]", "uint8[] = [0]",
          "float32[] = [1]", "uint8[] = [3]");
    RIGHT(10, "QLinearConv(%a, %b, %c, %d, %e, %f, %g, %h, %i)", WANT("int8[1,2,1] = [127, -28]"),
          "uint8[1,1,1] = [100]", "float32[] = [1]", "uint8[] = [0]", "int8[2,1,1] = [2, -2]",
          "float32[2] = [1, 0.125]", "int8[2] = [0, 0]", "float32[] = [1]", "int8[] = [-3]",
          "int32[2] = [5, 0]");
    WRONG(10, "QLinearConv(%a, %b, %c, %d, %e, %f, %g, %h)", "scale has 2 elements",
          "uint8[1,1,1] = [1]", "float32[] = [1]", "uint8[] = [0]", "int8[1,1,1] = [2]",
          "float32[2] = [1, 1]", "int8[] = [0]", "float32[] = [1]", "int8[] = [0]");
    WRONG(10, "ConvInteger(%a, %b, %c)", "zero point", "uint8[1,1,1] = [1]", "uint8[1,1,1] = [1]",
          "uint8[2] = [1, 2]");
}

static void causal_conv(void **state)
{
    (void)state;
    RIGHT(27, "CausalConvWithState(%a, %b)",
          WANT("float32[1,1,3] = [10, 21, 32]", "float32[1,1,1] = [3]"),
          "float32[1,1,3] = [1, 2, 3]", W2);
    RIGHT(27, "CausalConvWithState(%a, %b, %c, %d)",
          WANT("float32[1,1,1] = [16]", "float32[1,1,1] = [1]"), "float32[1,1,1] = [1]", W2,
          "float32[1] = [2]", "float32[1,1,1] = [4]");
    WRONG(27, "CausalConvWithState(%a, %b)", "along axis 0", "float32[1,2,1] = [1, 2]", W2);
}

#define X2 "float32[1,1,2] = [1, 2]"
#define W3 "float32[1,1,3] = [1, 10, 100]"

static void conv_transpose(void **state)
{
    (void)state;
    RIGHT(11, "ConvTranspose(%a, %b)", WANT("float32[1,1,3] = [1, 12, 20]"), X2, W2);
    RIGHT(11, "ConvTranspose(%a, %b) {strides=[2]}", WANT("float32[1,1,4] = [1, 10, 2, 20]"), X2,
          W2);
    RIGHT(11, "ConvTranspose(%a, %b) {pads=[1, 0]}", WANT("float32[1,1,2] = [12, 20]"), X2, W2);
    RIGHT(11, "ConvTranspose(%a, %b) {dilations=[2]}", WANT("float32[1,1,4] = [1, 2, 10, 20]"), X2,
          W2);
    RIGHT(11, "ConvTranspose(%a, %b) {strides=[2], output_padding=[1]}",
          WANT("float32[1,1,5] = [1, 10, 2, 20, 0]"), X2, W2);
    RIGHT(11, "ConvTranspose(%a, %b) {strides=[2], output_shape=[5]}",
          WANT("float32[1,1,5] = [1, 10, 2, 20, 0]"), X2, W2);
    RIGHT(1, "ConvTranspose(%a, %b) {strides=[2], output_shape=[1, 1, 3]}",
          WANT("float32[1,1,3] = [10, 2, 20]"), X2, W2);
    RIGHT(11, "ConvTranspose(%a, %b) {strides=[2], auto_pad=\"SAME_UPPER\"}",
          WANT("float32[1,1,4] = [1, 10, 102, 20]"), X2, W3);
    RIGHT(11, "ConvTranspose(%a, %b) {strides=[2], auto_pad=\"SAME_LOWER\"}",
          WANT("float32[1,1,4] = [10, 102, 20, 200]"), X2, W3);
    RIGHT(11, "ConvTranspose(%a, %b, %c) {group=2}", WANT("float32[1,2,1] = [11, 202]"),
          "float32[1,2,1] = [1, 2]", "float32[2,1,1] = [10, 100]", "float32[2] = [1, 2]");
    WRONG(11, "ConvTranspose(%a, %b) {pads=[2, 2]}", "output size", X2, W2);
    WRONG(11, "ConvTranspose(%a, %b) {output_shape=[0]}", "output size", X2, W2);
    WRONG(11, "ConvTranspose(%a, %b) {strides=[2147483648], output_padding=[2147483649]}",
          "output_padding", X2, W2);
    WRONG(11, "ConvTranspose(%a, %b) {group=2}", "do not agree", X2, W2);
}

static void scattering(void **state)
{
    (void)state;
    RIGHT(18, "Col2Im(%a, %b, %c)", WANT("float32[1,1,4] = [1, 12, 23, 30]"),
          "float32[1,2,3] = [1, 2, 3, 10, 20, 30]", "int64[1] = [4]", "int64[1] = [2]");
    RIGHT(18, "Col2Im(%a, %b, %c) {strides=[2], pads=[1, 1]}", WANT("int32[1,1,2] = [10, 2]"),
          "int32[1,2,2] = [1, 2, 10, 20]", "int64[1] = [2]", "int64[1] = [2]");
    WRONG(18, "Col2Im(%a, %b, %c)", "do not agree", "float32[1,2,3] = [1, 2, 3, 10, 20, 30]",
          "int64[1] = [5]", "int64[1] = [2]");
    WRONG(18, "Col2Im(%a, %b, %c)", "holds 0", "float32[1,2,3] = [1, 2, 3, 10, 20, 30]",
          "int64[1] = [0]", "int64[1] = [2]");
    RIGHT(11, "MaxUnpool(%a, %b) {kernel_shape=[2], strides=[2]}",
          WANT("float32[1,1,4] = [0, 5, 7, 0]"), "float32[1,1,2] = [5, 7]",
          "int64[1,1,2] = [1, 2]");
    RIGHT(11, "MaxUnpool(%a, %b, %c) {kernel_shape=[2, 1]}",
          WANT("float32[1,1,2,2] = [0, 0, 5, 0]"), "float32[1,1,1,1] = [5]", "int64[1,1,1,1] = [1]",
          "int64[4] = [1, 1, 2, 2]");
    WRONG(11, "MaxUnpool(%a, %b) {kernel_shape=[2]}", "index 2 is outside", "float32[1,1,1] = [5]",
          "int64[1,1,1] = [2]");
    WRONG(11, "MaxUnpool(%a, %b) {kernel_shape=[2]}", "index -1 is outside", "float32[1,1,1] = [5]",
          "int64[1,1,1] = [-1]");
}

/* ---- pools ---- */

#define X23 "float32[1,1,2,3] = [1, 5, 2, 7, 3, 4]"

static void max_pool(void **state)
{
    (void)state;
    RIGHT(12, "MaxPool(%a) {kernel_shape=[2, 2]}",
          WANT("float32[1,1,1,2] = [7, 5]", "int64[1,1,1,2] = [3, 1]"), X23);
    RIGHT(12, "MaxPool(%a) {kernel_shape=[2, 2], storage_order=1}",
          WANT("float32[1,1,1,2] = [7, 5]", "int64[1,1,1,2] = [1, 2]"), X23);
    RIGHT(12, "MaxPool(%a) {kernel_shape=[1], strides=[2]}",
          WANT("int8[2,1,1] = [-3, 4]", "int64[2,1,1] = [0, 2]"), "int8[2,1,2] = [-3, 9, 4, -5]");
    RIGHT(12, "MaxPool(%a) {kernel_shape=[2], strides=[2], ceil_mode=1}",
          WANT("float32[1,1,2] = [2, 3]"), "float32[1,1,3] = [1, 2, 3]");
    RIGHT(12, "MaxPool(%a) {kernel_shape=[2], strides=[2]}", WANT("float32[1,1,1] = [2]"),
          "float32[1,1,3] = [1, 2, 3]");
    /* a second window would start in the end padding */
    RIGHT(12, "MaxPool(%a) {kernel_shape=[2], strides=[3], pads=[1, 1], ceil_mode=1}",
          WANT("float32[1,1,1] = [-1]"), "float32[1,1,2] = [-1, 2]");
    RIGHT(12, "MaxPool(%a) {kernel_shape=[2], dilations=[2]}", WANT("float32[1,1,2] = [3, 4]"),
          "float32[1,1,4] = [1, 2, 3, 4]");
    RIGHT(12, "MaxPool(%a) {kernel_shape=[2], strides=[2], auto_pad=\"SAME_LOWER\"}",
          WANT("float32[1,1,2] = [1, 3]"), "float32[1,1,3] = [1, 2, 3]");
    RIGHT(12, "MaxPool(%a) {kernel_shape=[2147483647], pads=[2147483646, 0]}",
          WANT("float32[1,1,2] = [1, 1]"), "float32[1,1,2] = [1, -2]");
    WRONG(12, "MaxPool(%a)", "kernel_shape", X23);
    WRONG(12, "MaxPool(%a) {kernel_shape=[2]}", "kernel_shape has 1 values", X23);
    WRONG(12, "MaxPool(%a) {kernel_shape=[3, 1]}", "larger than the padded input", X23);
    WRONG(12, "MaxPool(%a) {kernel_shape=[1]}", "needs N, C", "float32[2,2] = [1, 2, 3, 4]");
}

static void average_and_lp_pool(void **state)
{
    (void)state;
    RIGHT(11, "AveragePool(%a) {kernel_shape=[2], pads=[1, 0]}",
          WANT("float32[1,1,4] = [1, 1.5, 2.5, 3.5]"), X4);
    RIGHT(11, "AveragePool(%a) {kernel_shape=[2], pads=[1, 0], count_include_pad=1}",
          WANT("float32[1,1,4] = [0.5, 1.5, 2.5, 3.5]"), X4);
    /* what ceil_mode adds is no padding */
    RIGHT(19, "AveragePool(%a) {kernel_shape=[2], strides=[2], ceil_mode=1, count_include_pad=1}",
          WANT("float32[1,1,2] = [1.5, 3]"), "float32[1,1,3] = [1, 2, 3]");
    RIGHT(19, "AveragePool(%a) {kernel_shape=[2], dilations=[2]}", WANT("float32[1,1,2] = [2, 3]"),
          X4);
    /* strides beyond the kernel crop under SAME_*, as ONNX Runtime has it */
    RIGHT(11, "AveragePool(%a) {kernel_shape=[1], strides=[3], auto_pad=\"SAME_UPPER\"}",
          WANT("float32[1,1,2] = [2, 5]"), "float32[1,1,6] = [1, 2, 3, 4, 5, 6]");
    RIGHT(18, "LpPool(%a) {kernel_shape=[2]}", WANT("float32[1,1,1] = [5]"),
          "float32[1,1,2] = [-3, 4]");
    RIGHT(18, "LpPool(%a) {kernel_shape=[2], p=1, pads=[1, 0]}", WANT("float32[1,1,2] = [3, 7]"),
          "float32[1,1,2] = [-3, 4]");
    RIGHT(1, "LpPool(%a) {kernel_shape=[2], p=1.0}", WANT("float32[1,1,1] = [7]"),
          "float32[1,1,2] = [-3, 4]");
    WRONG(18, "LpPool(%a) {kernel_shape=[2], p=0}", "p is 0", X4);
    WRONG(11, "AveragePool(%a) {kernel_shape=[2]}", "type int8", "int8[1,1,2] = [1, 2]");
}

static void global_pools_and_lrn(void **state)
{
    (void)state;
    RIGHT(1, "GlobalAveragePool(%a)", WANT("float32[1,2,1,1] = [1.5, 3.5]"),
          "float32[1,2,1,2] = [1, 2, 3, 4]");
    RIGHT(1, "GlobalMaxPool(%a)", WANT("float32[1,2,1] = [-1, 4]"),
          "float32[1,2,2] = [-1, -2, 3, 4]");
    RIGHT(2, "GlobalLpPool(%a)", WANT("float32[1,1,1] = [5]"), "float32[1,1,2] = [-3, 4]");
    RIGHT(13, "LRN(%a) {size=3, alpha=3.0, beta=1.0}",
          WANT("float32[1,3,1] = [0.16666667, 0.13333333, 0.21428571]"),
          "float32[1,3,1] = [1, 2, 3]");
    RIGHT(13, "LRN(%a) {size=2, alpha=2.0, beta=1.0}", WANT("float32[1,2,1] = [0.16666667, 0.4]"),
          "float32[1,2,1] = [1, 2]");
    RIGHT(13, "LRN(%a) {size=9223372036854775807, alpha=0.0}", WANT("float32[1,2,1] = [1, 2]"),
          "float32[1,2,1] = [1, 2]");
    WRONG(13, "LRN(%a)", "size is 0", "float32[1,2,1] = [1, 2]");
    WRONG(1, "GlobalAveragePool(%a)", "needs N and C", "float32[2] = [1, 2]");
}

/* ---- resampling ---- */

static void resize_coordinates(void **state)
{
    (void)state;
    RIGHT(13, "Resize(%a, _, %b) {mode=\"linear\"}", WANT("float32[4] = [0, 2.5, 7.5, 10]"),
          "float32[2] = [0, 10]", "float32[1] = [2]");
    RIGHT(13, "Resize(%a, _, %b) {mode=\"linear\", coordinate_transformation_mode=\"asymmetric\"}",
          WANT("float32[4] = [0, 5, 10, 10]"), "float32[2] = [0, 10]", "float32[1] = [2]");
    RIGHT(
        13,
        "Resize(%a, _, _, %b) {mode=\"linear\", coordinate_transformation_mode=\"align_corners\"}",
        WANT("float32[3] = [0, 5, 10]"), "float32[2] = [0, 10]", "int64[1] = [3]");
    RIGHT(13,
          "Resize(%a, _, _, %b) {mode=\"linear\", "
          "coordinate_transformation_mode=\"pytorch_half_pixel\"}",
          WANT("float32[1] = [0]"), "float32[2] = [0, 10]", "int64[1] = [1]");
    RIGHT(13, "Resize(%a, _, _, %b) {mode=\"linear\"}", WANT("float32[1] = [5]"),
          "float32[2] = [0, 10]", "int64[1] = [1]");
    /* a length of 3.2: cut to 3, or (opset 19) as it is */
    RIGHT(18,
          "Resize(%a, _, %b) {mode=\"linear\", coordinate_transformation_mode=\"align_corners\"}",
          WANT("float32[3] = [0, 5, 10]"), "float32[2] = [0, 10]", "float32[1] = [1.6]");
    RIGHT(19,
          "Resize(%a, _, %b) {mode=\"linear\", coordinate_transformation_mode=\"align_corners\"}",
          WANT("float32[3] = [0, 4.5454545, 9.0909091]"), "float32[2] = [0, 10]",
          "float32[1] = [1.6]");
    /* 1.5 pixels, of which 1 is made: it lies in the middle of the input */
    RIGHT(19,
          "Resize(%a, _, %b) {mode=\"linear\", "
          "coordinate_transformation_mode=\"half_pixel_symmetric\"}",
          WANT("float32[1] = [1]"), "float32[3] = [0, 1, 2]", "float32[1] = [0.5]");
    RIGHT(13,
          "Resize(%a, %b, _, %c) {mode=\"linear\", "
          "coordinate_transformation_mode=\"tf_crop_and_resize\", extrapolation_value=9.0}",
          WANT("float32[3] = [0, 2, 9]"), "float32[4] = [0, 1, 2, 3]",
          "float32[2] = [0, 1.3333334]", "int64[1] = [3]");
    WRONG(13, "Resize(%a, _, _, %b) {coordinate_transformation_mode=\"tf_crop_and_resize\"}",
          "roi of 2 values", "float32[1] = [0]", "int64[1] = [3]");
    WRONG(13, "Resize(%a, _, _, %b) {coordinate_transformation_mode=\"half\"}", "'half' is unknown",
          "float32[1] = [0]", "int64[1] = [3]");
}

static void resize_nearest(void **state)
{
    (void)state;
#define NEAR(rounding)                                              \
    "Resize(%a, _, %b) {mode=\"nearest\", nearest_mode=\"" rounding \
    "\", coordinate_transformation_mode=\"asymmetric\"}"
    RIGHT(13, NEAR("floor"), WANT("int64[4] = [9007199254740993, 9007199254740993, 2, 2]"),
          "int64[2] = [9007199254740993, 2]", "float32[1] = [2]");
    RIGHT(13, NEAR("ceil"), WANT("bool[4] = [0, 1, 1, 1]"), "bool[2] = [0, 1]", "float32[1] = [2]");
    RIGHT(13, NEAR("round_prefer_floor"), WANT("float32[4] = [1, 1, 2, 2]"), "float32[2] = [1, 2]",
          "float32[1] = [2]");
    RIGHT(13, NEAR("round_prefer_ceil"), WANT("float32[4] = [1, 2, 2, 2]"), "float32[2] = [1, 2]",
          "float32[1] = [2]");
    /* 0, 1.33, 2.67: before opset 11, up when the tensor shrinks, else towards zero */
    RIGHT(10, "Resize(%a, %b)", WANT("float32[3] = [0, 2, 3]"), "float32[4] = [0, 1, 2, 3]",
          "float32[1] = [0.75]");
    RIGHT(10, "Resize(%a, %b)", WANT("float32[3] = [0, 0, 1]"), "float32[2] = [0, 1]",
          "float32[1] = [1.5]");
    RIGHT(7, "Upsample(%a) {scales=[2.0]}", WANT("float32[4] = [1, 1, 2, 2]"),
          "float32[2] = [1, 2]");
    RIGHT(9, "Upsample(%a, %b) {mode=\"linear\"}", WANT("float32[4] = [0, 5, 10, 10]"),
          "float32[2] = [0, 10]", "float32[1] = [2]");
    RIGHT(13, "Resize(%a, _, %b)", WANT("float32[0] = []"), "float32[0] = []", "float32[1] = [2]");
    RIGHT(13, "Resize(%a, _, %b)", WANT("float32[0] = []"), "float32[1] = [5]",
          "float32[1] = [0.5]");
#undef NEAR
}

/* Coordinates that are in the middle between two elements, but for the rounding of a scale that
 * is no float: as ONNX Runtime has them. */
static void resize_nearest_at_ties(void **state)
{
    (void)state;
#define TIES(map, rounding)                                                         \
    "Resize(%a, _, _, %b) {mode=\"nearest\", nearest_mode=\"round_prefer_" rounding \
    "\", coordinate_transformation_mode=\"" map "\"}"
    static const char
        up_to_7[] = "int32[7] = [0, 1, 2, 3, 4, 5, 6]",
        up_to_10[] = "int32[10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]",
        up_to_11[] = "int32[11] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]",
        up_to_14[] = "int32[14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]",
        up_to_20[] =
            "int32[20] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]";
    static const char half[] =
        "int32[19] = [0, 1, 1, 2, 3, 4, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12, 12, 13]";
    RIGHT(13, TIES("asymmetric", "ceil"), WANT("int32[2] = [0, 4]"), up_to_7, "int64[1] = [2]");
    RIGHT(13, TIES("asymmetric", "floor"),
          WANT("int32[26] = [0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 7, 7, 8, 8, 8, 9, 9, "
               "10, 10, 10]"),
          up_to_11, "int64[1] = [26]");
    RIGHT(13, TIES("half_pixel", "ceil"), WANT("int32[6] = [1, 5, 8, 11, 15, 18]"), up_to_20,
          "int64[1] = [6]");
    RIGHT(13, TIES("half_pixel", "floor"), WANT(half), up_to_14, "int64[1] = [19]");
    RIGHT(13, TIES("pytorch_half_pixel", "floor"), WANT(half), up_to_14, "int64[1] = [19]");
    RIGHT(19, TIES("half_pixel_symmetric", "floor"), WANT(half), up_to_14, "int64[1] = [19]");
    RIGHT(13, TIES("tf_half_pixel_for_nn", "ceil"), WANT("int32[6] = [1, 3, 4, 6, 8, 9]"), up_to_10,
          "int64[1] = [6]");
    RIGHT(13, TIES("tf_half_pixel_for_nn", "floor"),
          WANT("int32[13] = [0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10]"), up_to_11,
          "int64[1] = [13]");
#undef TIES
    /* half_pixel_symmetric adds up in double precision: (6 + 0.5) / 4.5 less its offset is just
     * below 1 */
    RIGHT(19,
          "Resize(%a, _, %b) {nearest_mode=\"floor\", "
          "coordinate_transformation_mode=\"half_pixel_symmetric\"}",
          WANT("int32[13] = [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2]"), "int32[3] = [0, 1, 2]",
          "float32[1] = [4.5]");
}

static void resize_sizes(void **state)
{
    (void)state;
    /* a triangle of twice the width: weights 1/4 3/4 3/4 1/4; what lies before the first element
     * is the first, or left out */
    RIGHT(18, "Resize(%a, _, %b) {mode=\"linear\", antialias=1}",
          WANT("float32[2] = [1.625, 3.375]"), "float32[4] = [1, 2, 3, 4]", "float32[1] = [0.5]");
    RIGHT(18, "Resize(%a, _, %b) {mode=\"linear\", antialias=1, exclude_outside=1}",
          WANT("float32[2] = [1.7142857, 3.2857143]"), "float32[4] = [1, 2, 3, 4]",
          "float32[1] = [0.5]");
    RIGHT(13, "Resize(%a, _, %b) {mode=\"linear\"}", WANT("int32[4] = [0, 0, 2, 3]"),
          "int32[2] = [0, 3]", "float32[1] = [2]");
    RIGHT(18, "Resize(%a, _, _, %b) {keep_aspect_ratio_policy=\"not_larger\"}",
          WANT("float32[1,2] = [1, 2]"), "float32[1,2] = [1, 2]", "int64[2] = [2, 2]");
    RIGHT(18, "Resize(%a, _, _, %b) {keep_aspect_ratio_policy=\"not_smaller\"}",
          WANT("float32[2,4] = [1, 1, 2, 2, 1, 1, 2, 2]"), "float32[1,2] = [1, 2]",
          "int64[2] = [2, 2]");
    RIGHT(18, "Resize(%a, _, _, %b) {axes=[-1]}", WANT("float32[2,2] = [1, 1, 2, 2]"),
          "float32[2,1] = [1, 2]", "int64[1] = [2]");
    WRONG(18, "Resize(%a, _, _, %b) {axes=[1, -1]}", "named twice", "float32[2,1] = [1, 2]",
          "int64[2] = [2, 2]");
    WRONG(18, "Resize(%a, _, _, %b) {axes=[2]}", "out of range", "float32[2,1] = [1, 2]",
          "int64[1] = [2]");
    WRONG(13, "Resize(%a)", "neither scales nor sizes", "float32[1] = [1]");
    WRONG(13, "Resize(%a, _, %b)", "must be positive", "float32[1] = [1]", "float32[1] = [-1]");
    WRONG(13, "Resize(%a, _, %b)", "must be positive", "float32[1] = [1]", "float32[1] = [nan]");
    WRONG(13, "Resize(%a, _, %b)", "too large", "float32[1] = [1]", "float32[1] = [inf]");
    WRONG(13, "Resize(%a, _, %b)", "2 scales for 1 axes", "float32[1] = [1]",
          "float32[2] = [1, 1]");
    WRONG(13, "Resize(%a, _, _, %b)", "a size is -1", "float32[1] = [1]", "int64[1] = [-1]");
    WRONG(13, "Resize(%a, _, _, %b)", "no elements to resize", "float32[0] = []", "int64[1] = [2]");
}

static void cubic(void **state)
{
    (void)state;
    /* halfway between 2 and 3 of 1 2 3 4 with a = -0.5: -1/16 9/16 9/16 -1/16 */
    RIGHT(13, "Resize(%a, _, _, %b) {mode=\"cubic\", cubic_coeff_a=-0.5}",
          WANT("float32[1] = [2.5]"), "float32[4] = [1, 2, 3, 4]", "int64[1] = [1]");
    RIGHT(13, "Resize(%a, _, _, %b) {mode=\"cubic\", cubic_coeff_a=-0.5}",
          WANT("float32[1] = [8.625]"), "float32[4] = [0, 16, 0, 6]", "int64[1] = [1]");
    /* of two elements, the outer ones are the edges again, or left out */
    RIGHT(13, "Resize(%a, _, _, %b) {mode=\"cubic\", cubic_coeff_a=-0.5}", WANT("float32[1] = [4]"),
          "float32[2] = [0, 8]", "int64[1] = [1]");
    RIGHT(13, "Resize(%a, _, _, %b) {mode=\"cubic\", cubic_coeff_a=-0.5, exclude_outside=1}",
          WANT("float32[1] = [4]"), "float32[2] = [0, 8]", "int64[1] = [1]");
}

#define ROW "float32[1,1,1,3] = [10, 20, 30]"

static void grid_sample(void **state)
{
    (void)state;
#define GRID(mode, padding) \
    "GridSample(%a, %b) {align_corners=1, mode=\"" mode "\", padding_mode=\"" padding "\"}"
    RIGHT(16, GRID("bilinear", "zeros"), WANT("float32[1,1,1,3] = [20, 25, 0]"), ROW,
          "float32[1,1,3,2] = [0, 0, 0.5, 0, 2, 0]");
    RIGHT(20, GRID("linear", "border"), WANT("float32[1,1,1,1] = [30]"), ROW,
          "float32[1,1,1,2] = [2, 0]");
    RIGHT(20, GRID("nearest", "reflection"), WANT("float32[1,1,1,1] = [20]"), ROW,
          "float32[1,1,1,2] = [2, 0]");
    RIGHT(20, GRID("nearest", "zeros"), WANT("float32[1,1,1,2] = [0, 20]"), ROW,
          "float32[1,1,2,2] = [nan, 0, 0.4, 0]");
    RIGHT(20, GRID("linear", "reflection"), WANT("float32[1,1,1,1] = [10]"),
          "float32[1,1,1,1] = [10]", "float32[1,1,1,2] = [1000000.0, -7]");
    RIGHT(20, GRID("cubic", "border"), WANT("float32[1,1,1,1] = [20]"), ROW,
          "float32[1,1,1,2] = [0, 0]");
    WRONG(20, GRID("cube", "border"), "'cube'", ROW, "float32[1,1,1,2] = [0, 0]");
    WRONG(20, GRID("cubic", "wrap"), "'wrap'", ROW, "float32[1,1,1,2] = [0, 0]");
    WRONG(20, GRID("cubic", "border"), "does not fit", ROW, "float32[1,1,1,3] = [0, 0, 0]");
    WRONG(20, GRID("cubic", "border"), "no elements", "float32[1,1,1,0] = []",
          "float32[1,1,1,2] = [0, 0]");
    RIGHT(20, "AffineGrid(%a, %b) {align_corners=1}",
          WANT("float32[1,2,2,2] = [-1, -1, 1, -1, -1, 1, 1, 1]"),
          "float32[1,2,3] = [1, 0, 0, 0, 1, 0]", "int64[4] = [1, 1, 2, 2]");
    WRONG(20, "AffineGrid(%a, %b)", "out of range", "float32[1,2,3] = [1, 0, 0, 0, 1, 0]",
          "int64[4] = [1, 1, -2, 2]");
#undef GRID
}

static void deform_conv(void **state)
{
    (void)state;
    RIGHT(19, "DeformConv(%a, %b, %c)", WANT("float32[1,1,1,3] = [15, 30, 20]"),
          "float32[1,1,1,3] = [1, 2, 4]", "float32[1,1,1,1] = [10]",
          "float32[1,2,1,3] = [0, 0, 0, 0.5, 0.5, 0.5]");
    RIGHT(19, "DeformConv(%a, %b, %c, %d, %e)", WANT("float32[1,1,1,1] = [7]"),
          "float32[1,1,1,1] = [4]", "float32[1,1,1,1] = [3]", "float32[1,2,1,1] = [0, 0]",
          "float32[1] = [1]", "float32[1,1,1,1] = [0.5]");
    WRONG(19, "DeformConv(%a, %b, %c)", "input 2", "float32[1,1,1,1] = [4]",
          "float32[1,1,1,1] = [3]", "float32[1,1,1,1] = [0]");
    WRONG(19, "DeformConv(%a, %b, %c) {offset_group=2}", "offset_group 2", "float32[1,1,1,1] = [4]",
          "float32[1,1,1,1] = [3]", "float32[1,4,1,1] = fill 0");
}

#define RAMP "float32[1,1,4,4] = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]"

static void regions(void **state)
{
    (void)state;
    RIGHT(16, "RoiAlign(%a, %b, %c) {output_width=2, sampling_ratio=1}",
          WANT("float32[1,1,1,2] = [0.5, 2.5]"), RAMP, "float32[1,4] = [0, 0, 4, 4]",
          "int64[1] = [0]");
    RIGHT(10, "RoiAlign(%a, %b, %c) {output_width=2, sampling_ratio=1}",
          WANT("float32[1,1,1,2] = [1, 3]"), RAMP, "float32[1,4] = [0, 0, 4, 4]", "int64[1] = [0]");
    /* the largest of four neighbours, a quarter each */
    RIGHT(16, "RoiAlign(%a, %b, %c) {mode=\"max\", sampling_ratio=1}",
          WANT("float32[1,1,1,1] = [0.25]"), RAMP, "float32[1,4] = [0, 0, 2, 2]", "int64[1] = [0]");
    WRONG(16, "RoiAlign(%a, %b, %c)", "batch index 1", RAMP, "float32[1,4] = [0, 0, 4, 4]",
          "int64[1] = [1]");
    WRONG(16, "RoiAlign(%a, %b, %c)", "too many samples", RAMP, "float32[1,4] = [0, 0, 1e30, 1]",
          "int64[1] = [0]");
    WRONG(16, "RoiAlign(%a, %b, %c)", "too many samples", RAMP, "float32[1,4] = [0, 0, nan, 1]",
          "int64[1] = [0]");
    WRONG(16, "RoiAlign(%a, %b, %c) {mode=\"min\"}", "'min'", RAMP, "float32[1,4] = [0, 0, 4, 4]",
          "int64[1] = [0]");
    RIGHT(1, "MaxRoiPool(%a, %b) {pooled_shape=[1, 2]}", WANT("float32[1,1,1,2] = [5, 7]"),
          "float32[1,1,2,4] = [0, 1, 2, 3, 4, 5, 6, 7]", "float32[1,5] = [0, 0, 0, 3, 1]");
    RIGHT(1, "MaxRoiPool(%a, %b) {pooled_shape=[1, 1]}", WANT("float32[1,1,1,1] = [0]"),
          "float32[1,1,1,1] = [-5]", "float32[1,5] = [0, 9, 9, 10, 10]");
    WRONG(1, "MaxRoiPool(%a, %b) {pooled_shape=[1, 1]}", "image number", "float32[1,1,1,1] = [-5]",
          "float32[1,5] = [nan, 0, 0, 1, 1]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_attributes),
        cmocka_unit_test(conv_refuses),
        cmocka_unit_test(quantized_conv),
        cmocka_unit_test(causal_conv),
        cmocka_unit_test(conv_transpose),
        cmocka_unit_test(scattering),
        cmocka_unit_test(max_pool),
        cmocka_unit_test(average_and_lp_pool),
        cmocka_unit_test(global_pools_and_lrn),
        cmocka_unit_test(resize_coordinates),
        cmocka_unit_test(resize_nearest),
        cmocka_unit_test(resize_nearest_at_ties),
        cmocka_unit_test(resize_sizes),
        cmocka_unit_test(cubic),
        cmocka_unit_test(grid_sample),
        cmocka_unit_test(deform_conv),
        cmocka_unit_test(regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
