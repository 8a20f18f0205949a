/* What stands before kernels: the words that their bodies use, in each language.
 *
 *   to_float(x)                    conversions
 *   x.s3, splat8(x), madd(a, x, s), madd_each(x, y, s), spread8(x, lane)
 *                                  lanes: vectors of OpenCL C, structures elsewhere; s + a * x,
 *                                  lane by lane; into an array
 *   rem(x, y)                      remainder with the sign of x
 *   power, erf, log1p, ...         functions, written out where a language lacks them
 *   work_item()                    number of the work-item, of all in the launch
 *   work_group(), local_item()     of its group, and of the work-item in that
 *   meet()                         a barrier of the group, for the memory that it shares
 *   near4(a, i), near8(a, i)       lanes of a shared array of float from i on, a multiple of 4
 *   unrolled                       before a loop with a constant number of iterations
 *   is_nan(x)                      whatever the compiler takes for granted of floats
 */
#include "shaders.h"

/* Types by the call that GLSL has, and arithmetic of the same meaning: as OpenCL C and CUDA C
 * write them. */
#define CASTS_OF_C                                \
    "#define to_uchar(x) ((uchar)(x))\n"          \
    "#define to_short(x) ((short)(x))\n"          \
    "#define to_ushort(x) ((ushort)(x))\n"        \
    "#define to_int(x) ((int)(x))\n"              \
    "#define to_uint(x) ((uint)(x))\n"            \
    "#define to_long(x) ((long)(x))\n"            \
    "#define to_ulong(x) ((ulong)(x))\n"          \
    "#define to_float(x) ((float)(x))\n"          \
    "#define to_double(x) ((double)(x))\n"        \
    "#define to_sum_t(x) ((sum_t)(x))\n"          \
    "#define wrap_uchar(x) ((int)(uchar)(x))\n"   \
    "#define wrap_short(x) ((int)(short)(x))\n"   \
    "#define wrap_ushort(x) ((int)(ushort)(x))\n" \
    "#define rem(x, y) ((x) % (y))\n"             \
    "#define power pow\n"

static const char OPENCL[] =
    "#ifdef cl_khr_fp64\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "typedef double sum_t;\n"
    "#else\n"
    "typedef float sum_t;\n"
    "#endif\n"
    "#define work_item() get_global_id(0)\n"
    "#define work_group() get_group_id(0)\n"
    "#define local_item() get_local_id(0)\n"
    "#define meet() barrier(CLK_LOCAL_MEM_FENCE)\n"
    "#define near4(a, i) vload4(0, (a) + (i))\n"
    "#define near8(a, i) vload8(0, (a) + (i))\n"
    "#define lanes4(...) ((float4)(__VA_ARGS__))\n"
    "#define lanes8(...) ((float8)(__VA_ARGS__))\n"
    "#define unrolled\n"
    "#define is_nan(x) ((x) != (x))\n" CASTS_OF_C "#define to_char(x) ((char)(x))\n"
    "#define wrap_char(x) ((int)(char)(x))\n"
    "#define madd(a, x, s) ((s) + (a) * (x))\n"
    "#define madd_each madd\n"
    "#define splat1(x) (x)\n"
    "#define splat4(x) ((float4)(x))\n"
    "#define splat8(x) ((float8)(x))\n"
    "#define spread4(x, lane) vstore4(x, 0, lane)\n"
    "#define spread8(x, lane) vstore8(x, 0, lane)\n"
    "float of_bf16(ushort h) { return as_float((uint)h << 16); }\n"
    "ushort to_bf16(float f)\n"
    "{\n"
    "    const uint u = as_uint(f);\n"
    "    return f != f ? (ushort)(u >> 16 | 64) : (ushort)((u + 0x7fff + (u >> 16 & 1)) >> 16);\n"
    "}\n";

/* Lanes of languages whose vectors end at four, and have no members of these names. */
static const char LANES[] =
    "struct together float4 { float s0, s1, s2, s3; };\n"
    "struct float8 { float s0, s1, s2, s3, s4, s5, s6, s7; };\n"
    "#define splat1(x) (x)\n"
    "#define splat4(x) lanes4(x, x, x, x)\n"
    "#define splat8(x) lanes8(x, x, x, x, x, x, x, x)\n"
    "#define spread4(x, lane) lane[0] = x.s0; lane[1] = x.s1; lane[2] = x.s2; lane[3] = x.s3\n"
    "#define spread8(x, lane) spread4(x, lane); lane[4] = x.s4; lane[5] = x.s5; lane[6] = x.s6; "
    "lane[7] = x.s7\n"
    "function float madd(float a, float x, float s) { return s + a * x; }\n"
    "function float4 madd(float a, float4 x, float4 s)\n"
    "{\n"
    "    return lanes4(s.s0 + a * x.s0, s.s1 + a * x.s1, s.s2 + a * x.s2, s.s3 + a * x.s3);\n"
    "}\n"
    "function float8 madd(float a, float8 x, float8 s)\n"
    "{\n"
    "    return lanes8(s.s0 + a * x.s0, s.s1 + a * x.s1, s.s2 + a * x.s2, s.s3 + a * x.s3,\n"
    "                  s.s4 + a * x.s4, s.s5 + a * x.s5, s.s6 + a * x.s6, s.s7 + a * x.s7);\n"
    "}\n"
    "function float4 madd_each(float4 a, float4 x, float4 s)\n"
    "{\n"
    "    return lanes4(s.s0 + a.s0 * x.s0, s.s1 + a.s1 * x.s1, s.s2 + a.s2 * x.s2, s.s3 + a.s3 * "
    "x.s3);\n"
    "}\n"
    "function float8 madd_each(float8 a, float8 x, float8 s)\n"
    "{\n"
    "    return lanes8(s.s0 + a.s0 * x.s0, s.s1 + a.s1 * x.s1, s.s2 + a.s2 * x.s2, s.s3 + a.s3 * "
    "x.s3,\n"
    "                  s.s4 + a.s4 * x.s4, s.s5 + a.s5 * x.s5, s.s6 + a.s6 * x.s6, s.s7 + a.s7 * "
    "x.s7);\n"
    "}\n";

/* Types by the names of OpenCL C. Extensions that are not used ask nothing of the device. */
static const char GLSL[] = "#version 460\n"
                           "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
                           "#extension GL_EXT_shader_8bit_storage : require\n"
                           "#extension GL_EXT_shader_16bit_storage : require\n"
                           "#define char int8_t\n"
                           "#define uchar uint8_t\n"
                           "#define short int16_t\n"
                           "#define ushort uint16_t\n"
                           "#define half float16_t\n"
                           "#define long int64_t\n"
                           "#define ulong uint64_t\n"
                           "#define to_char(x) int8_t(x)\n"
                           "#define to_uchar(x) uint8_t(x)\n"
                           "#define to_short(x) int16_t(x)\n"
                           "#define to_ushort(x) uint16_t(x)\n"
                           "#define to_half(x) float16_t(x)\n"
                           "#define to_int(x) int(x)\n"
                           "#define to_uint(x) uint(x)\n"
                           "#define to_long(x) int64_t(x)\n"
                           "#define to_ulong(x) uint64_t(x)\n"
                           "#define to_float(x) float(x)\n"
                           "#define to_double(x) double(x)\n"
                           "#define to_sum_t(x) sum_t(x)\n"
                           "#define wrap_char(x) bitfieldExtract(int(x), 0, 8)\n"
                           "#define wrap_uchar(x) (int(x) & 255)\n"
                           "#define wrap_short(x) bitfieldExtract(int(x), 0, 16)\n"
                           "#define wrap_ushort(x) (int(x) & 65535)\n"
                           "#define work_item() int((gl_WorkGroupID.y * gl_NumWorkGroups.x + "
                           "gl_WorkGroupID.x) * gl_WorkGroupSize.x + "
                           "gl_LocalInvocationID.x)\n"
                           "#define work_group() int(gl_WorkGroupID.y * gl_NumWorkGroups.x + "
                           "gl_WorkGroupID.x)\n"
                           "#define local_item() int(gl_LocalInvocationID.x)\n"
                           "#define meet() memoryBarrierShared(); barrier()\n"
                           "#define near4(a, i) lanes4(a[i], a[(i) + 1], a[(i) + 2], a[(i) + 3])\n"
                           "#define near8(a, i) lanes8(a[i], a[(i) + 1], a[(i) + 2], a[(i) + 3], "
                           "a[(i) + 4], a[(i) + 5], a[(i) + 6], a[(i) + 7])\n"
                           "#define unrolled\n"
                           "#define together\n"
                           "#define rem(x, y) ((x) - (y) * ((x) / (y)))\n"
                           "#define INFINITY uintBitsToFloat(0x7f800000u)\n"
                           "#define NAN uintBitsToFloat(0x7fc00000u)\n"
                           "#define lanes4 float4\n"
                           "#define lanes8 float8\n"
                           "#define function\n";

/* erf: a series up to 1, then formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical
 * Functions (1.5e-7); log1p: the series of 2 artanh(x / (2 + x)), for x from 0 to 1; expm1: a
 * series near 0; asin, atan: series after their halving formulas, since Vulkan's own may be off
 * by thousands of units in the last place. Vulkan leaves powers of negative numbers open.
 * NaN is told by its bits: compilers of Vulkan may take for granted that there is none, and make
 * x < 0 ? 0 : x a maximum, which is 0. */
static const char GLSL_FUNCTIONS[] =
    "bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }\n"
    "bool is_nan(int x) { return false; }\n"
    "bool is_nan(uint x) { return false; }\n"
    "#define fabs abs\n"
    "#define fmax max\n"
    "#define rint roundEven\n"
    "#define fmod(x, y) ((x) - (y) * trunc((x) / (y)))\n"
    "float of_bf16(uint h) { return uintBitsToFloat(h << 16); }\n"
    "uint to_bf16(float f)\n"
    "{\n"
    "    const uint u = floatBitsToUint(f);\n"
    "    return is_nan(f) ? u >> 16 | 64u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16;\n"
    "}\n"
    "float erf(float x)\n"
    "{\n"
    "    const float a = abs(x), q = x * x;\n"
    "    if (a < 1) {\n"
    "        float term = x, sum = x;\n"
    "        for (int k = 1; k < 12; k++) {\n"
    "            term *= -q / k;\n"
    "            sum += term / (2 * k + 1);\n"
    "        }\n"
    "        return sum * 1.1283791670955126f;\n"
    "    }\n"
    "    const float t = 1 / (1 + 0.3275911f * a);\n"
    "    const float p = (((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - "
    "0.284496736f) * t + 0.254829592f;\n"
    "    return sign(x) * (1 - p * t * exp(-q));\n"
    "}\n"
    "#define asin arcsin\n"
    "#define acos(x) (1.5707963267948966f - arcsin(x))\n"
    "#define atan arctan\n"
    "float asin_series(float x)\n"
    "{\n"
    "    float term = x, sum = x;\n"
    "    for (int k = 1; k < 12; k++) {\n"
    "        term *= x * x * ((2 * k - 1.0f) / (2 * k));\n"
    "        sum += term / (2 * k + 1);\n"
    "    }\n"
    "    return sum;\n"
    "}\n"
    "float arcsin(float x)\n"
    "{\n"
    "    const float a = abs(x);\n"
    "    return a <= 0.5f ? asin_series(x) : sign(x) * (1.5707963267948966f - 2 * "
    "asin_series(sqrt((1 - a) * 0.5f)));\n"
    "}\n"
    "float arctan(float x)\n"
    "{\n"
    "    const float a = abs(x), b = a > 1 ? 1 / a : a;\n"
    "    const float h = b / (1 + sqrt(1 + b * b)), z = h / (1 + sqrt(1 + h * h)), q = z * z;\n"
    "    float sum = 0;\n"
    "    for (int k = 13; k > 0; k -= 2) sum = 1.0f / k - sum * q;\n"
    "    sum *= 4 * z;\n"
    "    return sign(x) * (a > 1 ? 1.5707963267948966f - sum : sum);\n"
    "}\n"
    "float expm1(float x)\n"
    "{\n"
    "    if (abs(x) > 0.5f) return exp(x) - 1;\n"
    "    float term = x, sum = x;\n"
    "    for (int k = 2; k < 9; k++) {\n"
    "        term *= x / k;\n"
    "        sum += term;\n"
    "    }\n"
    "    return sum;\n"
    "}\n"
    "float log1p(float x)\n"
    "{\n"
    "    const float z = x / (2 + x), q = z * z;\n"
    "    float sum = 0;\n"
    "    for (int k = 17; k > 0; k -= 2) sum = sum * q + 1.0f / k;\n"
    "    return 2 * z * sum;\n"
    "}\n"
    "float power(float x, float y)\n"
    "{\n"
    "    if (y == 0 || x == 1) return 1;\n"
    "    if (is_nan(x) || is_nan(y)) return NAN;\n"
    "    const float p = x == 0 ? (y > 0 ? 0 : INFINITY) : pow(abs(x), y);\n"
    "    if (x >= 0 || isinf(y)) return p;\n"
    "    if (y != floor(y)) return isinf(x) ? p : NAN;\n"
    "    return y * 0.5f == floor(y * 0.5f) ? p : -p;\n"
    "}\n";

static const char GLSL_DOUBLES[] =
    "bool is_nan(double x)\n"
    "{\n"
    "    const uvec2 u = unpackDouble2x32(x);\n"
    "    const uint high = u.y & 0x7fffffffu;\n"
    "    return high > 0x7ff00000u || (high == 0x7ff00000u && u.x != 0u);\n"
    "}\n";
static const char GLSL_LONGS[] = "bool is_nan(long x) { return false; }\n"
                                 "bool is_nan(ulong x) { return false; }\n";

/* Types by the names of OpenCL C, without the toolkit's headers, which NVRTC might not find:
 * half precision is converted by PTX. CUDA C has a float4 with other members. */
static const char CUDA[] =
    "typedef unsigned char uchar;\n"
    "typedef unsigned short ushort;\n"
    "typedef unsigned int uint;\n"
    "typedef unsigned long ulong;\n"
    "typedef ushort half;\n"
    "typedef double sum_t;\n"
    "#define function static __device__ inline\n"
    "#define float4 lanes_of_4\n"
    "#define float8 lanes_of_8\n"
    "#define lanes4(...) (float4{__VA_ARGS__})\n"
    "#define lanes8(...) (float8{__VA_ARGS__})\n"
    "#define work_item() (int)(blockIdx.x * blockDim.x + threadIdx.x)\n"
    "#define work_group() (int)blockIdx.x\n"
    "#define local_item() (int)threadIdx.x\n"
    "#define meet() __syncthreads()\n"
    "#define unrolled _Pragma(\"unroll\")\n"
    "#define is_nan(x) ((x) != (x))\n"
    "#define together __align__(16)\n"
    "#define near4(a, i) (*(const float4 *)&(a)[i])\n"
    "#define near8(a, i) near_lanes(&(a)[i])\n"
    "#undef INFINITY\n"
    "#undef NAN\n"
    "#define INFINITY __int_as_float(0x7f800000)\n"
    "#define NAN __int_as_float(0x7fc00000)\n" CASTS_OF_C "#define to_char(x) ((signed char)(x))\n"
    "#define wrap_char(x) ((int)(signed char)(x))\n"
    "function int clamp(int x, int lo, int hi) { return min(max(x, lo), hi); }\n"
    "function float clamp(float x, float lo, float hi) { return fminf(fmaxf(x, lo), hi); }\n"
    "function double clamp(double x, double lo, double hi) { return fmin(fmax(x, lo), hi); }\n"
    "function float of_half(half h)\n"
    "{\n"
    "    float f;\n"
    "    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(h));\n"
    "    return f;\n"
    "}\n"
    "function half to_half(float f)\n"
    "{\n"
    "    half h;\n"
    "    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(f));\n"
    "    return h;\n"
    "}\n"
    "function float of_bf16(ushort h) { return __uint_as_float((uint)h << 16); }\n"
    "function ushort to_bf16(float f)\n"
    "{\n"
    "    const uint u = __float_as_uint(f);\n"
    "    return f != f ? (ushort)(u >> 16 | 64) : (ushort)((u + 0x7fff + (u >> 16 & 1)) >> 16);\n"
    "}\n";

/* Matrix instructions of compute capability 8.0, copies into shared memory beside what is computed
 * (cp.async). An instruction is a line. tf32_pair: instructions read 19 bits; the first is cut off
 * there, the second rounded. */
#define MMA(name, shape)                                                                      \
    "function void mma_" name "(float *d, const uint *a, const uint *b)\n{\n"                 \
    "    asm(\"mma.sync.aligned." shape ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
    "{%0, %1, %2, %3};\" : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : "         \
    "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));\n}\n"
static const char CUDA_MATRICES[] = MMA("f16", "m16n8k16.row.col.f32.f16.f16")
    MMA("bf16", "m16n8k16.row.col.f32.bf16.bf16") MMA(
        "tf32",
        "m16n8k8.row.col.f32.tf32.tf32") "function void tf32_pair(uint x, uint &high, uint &low)\n"
                                         "{\n"
                                         "    high = x & 0xffffe000u;\n"
                                         "    low = __float_as_uint(__uint_as_float(x) - "
                                         "__uint_as_float(high)) + 0x1000u;\n"
                                         "}\n"
                                         "function void mma_split(float *sums, const uint *a, "
                                         "const uint *b)\n"
                                         "{\n"
                                         "    float d[4] = {0, 0, 0, 0};\n"
                                         "    mma_tf32(d, a + 4, b);\n"
                                         "    mma_tf32(d, a, b + 2);\n"
                                         "    mma_tf32(d, a, b);\n"
                                         "    for (int k = 0; k < 4; k++) sums[k] += d[k];\n"
                                         "}\n"
                                         "function void bring(uint *to, const void *from, bool "
                                         "there)\n"
                                         "{\n"
                                         "    const uint at = (uint)__cvta_generic_to_shared(to);\n"
                                         "    asm volatile(\"cp.async.ca.shared.global [%0], [%1], "
                                         "4, %2;\" :: \"r\"(at), \"l\"(from), "
                                         "\"r\"(there ? 4 : 0) : \"memory\");\n"
                                         "}\n"
                                         "function void bring4(uint *to, const void *from, bool "
                                         "there, bool even)\n"
                                         "{\n"
                                         "    const ushort *x = (const ushort *)from;\n"
                                         "    const uint at = (uint)__cvta_generic_to_shared(to);\n"
                                         "    if (even)\n"
                                         "    asm volatile(\"cp.async.cg.shared.global [%0], [%1], "
                                         "16, %2;\" :: \"r\"(at), "
                                         "\"l\"(from), \"r\"(there ? 16 : 0) : \"memory\");\n"
                                         "    else for (int k = 0; k < 4; k++) to[k] = there ? x[2 "
                                         "* k] | (uint)x[2 * k + 1] << 16 : 0;\n"
                                         "}\n"
                                         "function void sent()\n{\n"
                                         "    asm volatile(\"cp.async.commit_group;\" ::: "
                                         "\"memory\");\n}\n"
                                         "#define arrived(later) asm "
                                         "volatile(\"cp.async.wait_group \" #later \";\" ::: "
                                         "\"memory\")\n"
                                         "#define any_of_group(x) (__syncthreads_or(x) != 0)\n";

/* After LANES: loads of four floats at once. */
static const char CUDA_LANES[] =
    "function float8 near_lanes(const float *a)\n"
    "{\n"
    "    const float4 x = near4(a, 0), y = near4(a, 4);\n"
    "    return lanes8(x.s0, x.s1, x.s2, x.s3, y.s0, y.s1, y.s2, y.s3);\n"
    "}\n";

const char *ot_dg_prelude(const ot_dg_target *t, ot_arena *a)
{
    if (t->dialect == OT_DG_OPENCL) return OPENCL;
    if (t->dialect == OT_DG_CUDA)
        return ot_format(a, "%s%s%s%s", CUDA, LANES, CUDA_LANES,
                         t->has_matrices ? CUDA_MATRICES : "");
    return ot_format(a, "%s#define sum_t %s\n%s%s%s%s", GLSL, t->has_f64 ? "double" : "float",
                     LANES, GLSL_FUNCTIONS, t->has_f64 ? GLSL_DOUBLES : "",
                     t->has_i64 ? GLSL_LONGS : "");
}
