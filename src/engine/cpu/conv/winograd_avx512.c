/* Winograd convolutions for AVX-512: vectors of 16. */
#include "winograd_lanes.h"

#ifdef OT_WINO_X86
#include <immintrin.h>

#define LANES         16
#define TARGET        __attribute__((target("avx512f")))
#define MADD(a, b, c) ((vec)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define SPREAD(p)     ((vec)_mm512_set1_ps(*(p)))
#define LARGER(a, b)  ((vec)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define SMALLER(a, b) ((vec)_mm512_min_ps((__m512)(a), (__m512)(b)))
#define ROWS_OF_TWO   12 /* 24 accumulators, 2 weights and a value: of 32 registers */
#define CODE          ot_wino_avx512
#define NAME          "AVX-512"
#include "winograd_code.h"
#endif
