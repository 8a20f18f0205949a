/* The words of each language: what OpenCL C and CUDA C say differently. A third one is another row.
 *
 *   element types of the text     f32 f64 i8 u8 i16 u16 i32 u32 i64 u64, which may lie where
 *                                 another type lay before; half; bf16 is
 *                                 an integer of 16 bits
 */
#include "kgen_internal.h"

#define ELEMENTS(ALIAS)                                                                        \
    "typedef float f32" ALIAS ";\ntypedef signed char i8" ALIAS                                \
    ";\ntypedef unsigned char u8" ALIAS ";\n"                                                  \
    "typedef short i16" ALIAS ";\ntypedef unsigned short u16" ALIAS ";\ntypedef int i32" ALIAS \
    ";\n"                                                                                      \
    "typedef unsigned int u32" ALIAS ";\ntypedef long i64" ALIAS                               \
    ";\ntypedef unsigned long u64" ALIAS ";\n"

static const char opencl_prelude[] =
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "#ifdef __clang__\n"
    "#define ALIASED __attribute__((may_alias)) /* tiles of several types share the arenas */\n"
    "#else\n"
    "#define ALIASED\n"
    "#endif\n" ELEMENTS(" ALIASED") "#if defined(FP_FAST_FMAF) || defined(__FMA__)\n"
                                    "#define MAD(x, y, z) fma(x, y, z)\n"
                                    "#else\n"
                                    "#define MAD(x, y, z) ((x) * (y) + (z))\n"
                                    "#endif\n"
                                    "#define FLOAT_OF(bits) as_float(bits)\n"
                                    "#define BITS_OF(x) as_uint(x)\n";

static const char cuda_prelude[] =
    "#include <math.h>\n"
    "#define ALIASED __attribute__((may_alias)) /* tiles of several types share the arenas */\n"
    "typedef unsigned int uint;\ntypedef unsigned long ulong;\n" ELEMENTS(
        " ALIASED") "#define MAD(x, y, z) fma(x, y, z)\n"
                    "#define FLOAT_OF(bits) __uint_as_float(bits)\n"
                    "#define BITS_OF(x) __float_as_uint(x)\n";

const kgen_dialect kgen_dialects[] = {
    [OT_KG_OPENCL] =
        {.name = "OpenCL C",
         .prelude = opencl_prelude,
         .f64_prelude =
             "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\ntypedef double f64 ALIASED;\n",
         .half_prelude = "#define GET_HALF(p, i) vload_half(i, p)\n#define PUT_HALF(p, i, x) "
                         "vstore_half_rte(x, i, p)\n",
         .function = "static inline",
         .global = "__global ",
         .local = "__local ",
         .item = "(int)get_local_id(0)",
         .group = "(int)get_group_id(0)",
         .groups = "(int)get_num_groups(0)",
         .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
         .has_async = true,
         .restricted = "restrict"},
    [OT_KG_CUDA] = {.name = "CUDA C",
                    .prelude = cuda_prelude,
                    .f64_prelude = "typedef double f64 ALIASED;\n",
                    .half_prelude =
                        "#include <cuda_fp16.h>\n#define GET_HALF(p, i) __half2float((p)[i])\n"
                        "#define PUT_HALF(p, i, x) ((p)[i] = __float2half_rn(x))\n",
                    .function = "static __device__ inline",
                    .global = "",
                    .local = "",
                    .item = "(int)threadIdx.x",
                    .group = "(int)blockIdx.x",
                    .groups = "(int)gridDim.x",
                    .barrier = "__syncthreads()",
                    .restricted = "__restrict__"},
};
