/* Loops over numbers, compiled for several instruction sets; the one that the machine has is
 * chosen when the program starts. Sanitized and non-x86 builds have one version. */
#ifndef OT_ENGINE_CORE_SIMD_H
#define OT_ENGINE_CORE_SIMD_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_UNDEFINED__) && !defined(OT_ONE_ISA)
#define OT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OT_CLONES
#endif

/* Elements per block of channels in blocked arrays (ot_nd.chan_block): 16 where the machine has
 * AVX-512 and oneDNN uses it, else 8. */
uint32_t ot_simd_block(void);

/* f(t, height) with a height from 1 to 6 that the compiler knows: the rows of a register tile,
 * each in accumulators of its own. */
#define OT_BY_HEIGHT(f, t, height) \
    do {                           \
        switch (height) {          \
        case 1: f(t, 1); break;    \
        case 2: f(t, 2); break;    \
        case 3: f(t, 3); break;    \
        case 4: f(t, 4); break;    \
        case 5: f(t, 5); break;    \
        default: f(t, 6); break;   \
        }                          \
    } while (0)

#endif
