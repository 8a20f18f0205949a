/* Dimensions of inputs as callers of the library give them: of a tiler's and of a session's. */
#include "shape_list.h"

ot_status ot_shape_list_put(ot_shape_list *l, ot_shape_binding b, ot_arena *a, ot_diag *d)
{
    if (!b.input || !*b.input || !b.dims || b.rank == 0 || b.rank > OT_RANK_MAX)
        return ot_fail(d, OT_E_USAGE, "a shape needs an input and 1 to 16 dimensions");
    for (uint32_t k = 0; k < b.rank; k++)
        if (b.dims[k] < 1) return ot_fail(d, OT_E_USAGE, "a dimension is not positive");
    b.input = ot_strdup(a, b.input);
    b.dims = ot_memdup(a, b.dims, b.rank * sizeof *b.dims);
    if (!b.input || !b.dims) return ot_fail_nomem(d);
    for (size_t k = 0; k < l->n; k++) {
        if (strcmp(l->all[k].input, b.input) != 0) continue;
        l->all[k] = b;
        return OT_OK;
    }
    return OT_PUSH(a, l->all, l->n, l->cap, b) ? OT_OK : ot_fail_nomem(d);
}
