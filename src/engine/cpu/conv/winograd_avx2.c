/* Winograd convolutions for AVX2 and FMA: vectors of 8. */
#include "winograd_lanes.h"

#ifdef OT_WINO_X86
#include <immintrin.h>

#define LANES         8
#define TARGET        __attribute__((target("avx2,fma")))
#define MADD(a, b, c) ((vec)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define SPREAD(p)     ((vec)_mm256_broadcast_ss(p))
#define LARGER(a, b)  ((vec)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define SMALLER(a, b) ((vec)_mm256_min_ps((__m256)(a), (__m256)(b)))
#define ROWS_OF_TWO   6 /* 12 accumulators, 2 weights and a value: of 16 registers */
#define CODE          ot_wino_avx2
#define NAME          "AVX2"
#include "winograd_code.h"
#endif
