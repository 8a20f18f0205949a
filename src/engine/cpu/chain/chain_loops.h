/* How the loops of chain_ops.c and chain_smooth.c are written: over n elements, and as a case of
 * an instruction whose result is some function of x (an element of a) and parameters. */
#ifndef OT_ENGINE_CPU_CHAIN_CHAIN_LOOPS_H
#define OT_ENGINE_CPU_CHAIN_CHAIN_LOOPS_H

#define EACH _Pragma("omp simd") for (int64_t i = 0; i < n; i++)
#define CASE(name, value)    \
    case OT_CH_##name:       \
        EACH                 \
        {                    \
            float x = a[i];  \
            to[i] = (value); \
        }                    \
        break

#endif
