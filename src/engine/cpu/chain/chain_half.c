/* Instructions between float and numbers of 16 bits (engine/core/half.h). */
#include "chain_ops.h"

#include "engine/core/half.h"

void ot_chain_half(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                   const void *c, int64_t n)
{
    (void)single, (void)b, (void)c;
    switch ((int)code) {
    case OT_CH_FROM_F16: ot_half_widen(OT_F16, to, a, n); break;
    case OT_CH_FROM_BF16: ot_half_widen(OT_BF16, to, a, n); break;
    case OT_CH_TO_F16: ot_half_narrow(OT_F16, to, a, n); break;
    case OT_CH_TO_BF16: ot_half_narrow(OT_BF16, to, a, n); break;
    default: memmove(to, a, (size_t)n * sizeof(uint16_t)); break; /* COPY_F16, COPY_BF16 */
    }
}
