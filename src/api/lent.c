#include "lent.h"

ot_status ot_lent_source(const void *bytes, size_t n, const onnx_tile_lent *lent, size_t n_lent,
                         ot_diag *d, ot_source *source)
{
    *source = (ot_source){0};
    if ((!bytes && n) || (!lent && n_lent))
        return ot_fail(d, OT_E_USAGE, "a model in memory needs its bytes, and what is lent to it");
    ot_lent *all = calloc(n_lent + 1, sizeof *all);
    if (!all) return ot_fail_nomem(d);
    *source = (ot_source){.bytes = bytes ? bytes : "", .n = n, .lent = all, .n_lent = n_lent};
    for (size_t k = 0; k < n_lent; k++) {
        all[k] = (ot_lent){lent[k].data, lent[k].bytes, lent[k].release, lent[k].of};
        if (lent[k].data || lent[k].bytes == 0) continue;
        free(all);
        return ot_fail(d, OT_E_USAGE, "piece %zu of what is lent needs its memory", k);
    }
    return OT_OK;
}
