/* Grouped convolutions for AVX2 and FMA: vectors of 8. */
#include "grouped_lanes.h"

#ifdef OT_GROUPED_X86
#include <immintrin.h>

#define LANES           8
#define TARGET          __attribute__((target("avx2,fma")))
#define MADD(a, b, c)   ((vec)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define PICKED(p, pick) ((vec)_mm256_permutevar8x32_ps(_mm256_loadu_ps(p), (__m256i)(pick)))
#define LARGER(a, b)    ((vec)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define SMALLER(a, b)   ((vec)_mm256_min_ps((__m256)(a), (__m256)(b)))
#define LONGEST         8 /* and 3 weights, a pick, a mask and a pixel: of 16 registers */
#define CODE            ot_grouped_avx2
#include "grouped_code.h"
#endif
