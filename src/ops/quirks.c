/* The table of quirks; see quirks.h. */
#include "quirks.h"

const ot_quirk_row ot_quirk_rows[OT_QUIRK_COUNT] = {
#define QUIRK(id, by, ops, why, seen) [OT_QUIRK_##id] = {#id, by, ops, why, seen},
#include "ops/quirks.def"
#undef QUIRK
};

bool ot_quirk_concerns(ot_quirk q, uint32_t by) { return (ot_quirk_rows[q].by & by) != 0; }

bool ot_quirk_hits(ot_quirk q, uint32_t by, const char *op_type)
{
    size_t n = strlen(op_type);
    if (!ot_quirk_concerns(q, by) || n == 0) return false;
    for (const char *at = ot_quirk_rows[q].ops; (at = strstr(at, op_type)); at += n)
        if ((at == ot_quirk_rows[q].ops || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}
