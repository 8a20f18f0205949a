/* Grouped convolutions for AVX-512: vectors of 16. */
#include "grouped_lanes.h"

#ifdef OT_GROUPED_X86
#include <immintrin.h>

#define LANES           16
#define TARGET          __attribute__((target("avx512f")))
#define MADD(a, b, c)   ((vec)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define PICKED(p, pick) ((vec)_mm512_permutexvar_ps((__m512i)(pick), _mm512_loadu_ps(p)))
#define LARGER(a, b)    ((vec)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define SMALLER(a, b)   ((vec)_mm512_min_ps((__m512)(a), (__m512)(b)))
#define LONGEST         16 /* and 3 weights, a pick, a mask and a pixel: of 32 registers */
#define CODE            ot_grouped_avx512
#include "grouped_code.h"
#endif
