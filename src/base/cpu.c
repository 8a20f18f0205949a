/* What is asked of this machine's processor. */
#include "base.h"

#include <stdlib.h>
#include <strings.h>

#if defined(__x86_64__) && defined(__GNUC__)
/* oneDNN takes a limit of instruction sets from the environment; names as it knows them. Another
 * name is no limit. */
static bool wide_is_forbidden(void)
{
    static const char *const narrow[] = {"sse41", "avx", "avx2", "avx2_vnni", "avx2_vnni_2"};
    const char *limit = getenv("ONEDNN_MAX_CPU_ISA");
    if (!limit || !*limit) limit = getenv("DNNL_MAX_CPU_ISA");
    for (size_t k = 0; limit && k < sizeof narrow / sizeof *narrow; k++)
        if (strcasecmp(limit, narrow[k]) == 0) return true;
    return false;
}
#endif

uint32_t ot_cpu_lanes(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f") && !wide_is_forbidden()) return 16;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 8;
#endif
    return 0;
}

int64_t ot_cpu_channel_block(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f")) return 16;
    if (__builtin_cpu_supports("avx")) return 8;
#endif
    return 0;
}
