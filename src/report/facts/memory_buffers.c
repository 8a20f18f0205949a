/* Where plan-memory put each buffer, copied out of a plan: the plan and its file may go, the
 * list stays. */
#include "memory_results.h"

/* Names of the values that share a storage: allocs, or the carried values of one that has no
 * alloc. false: no memory. */
static bool copy_names(ot_arena *a, const ot_kernel *k, const ot_buffer *u, ot_memory_buffer *out)
{
    const char **names = OT_NEW_N(a, const char *, u->n_values);
    if (!names) return false;
    for (uint32_t v = 0; v < u->n_values; v++)
        if (!(names[v] = ot_strdup(a, k->values[u->values[v]].name))) return false;
    out->names = names;
    out->n_names = u->n_values;
    return true;
}

ot_status ot_memory_results_keep_kernel(ot_memory_results *r, const ot_kernel *k,
                                        const ot_mem_plan *p)
{
    const ot_lifetimes *l = p->lifetimes;
    ot_memory_buffer *list = OT_NEW_N(r->arena, ot_memory_buffer, l->n_buffers + 1u);
    uint32_t n = 0;
    if (!list) return OT_E_NOMEM;
    for (uint32_t b = 0; b < l->n_buffers; b++) {
        const ot_buffer *u = &l->buffers[b];
        if (p->multi[b] == 0) continue; /* in a memory that is not planned */
        int64_t *offsets = ot_memdup(r->arena, p->offsets[b], p->multi[b] * sizeof *offsets);
        ot_span *live = u->n_live > 0 ? ot_memdup(r->arena, u->live, u->n_live * sizeof *live)
                                      : NULL;
        ot_memory_buffer *to = &list[n++];
        if (!offsets || (u->n_live > 0 && !live) || !copy_names(r->arena, k, u, to))
            return OT_E_NOMEM;
        to->scope = u->scope;
        to->size = u->size;
        to->offsets = offsets;
        to->n_slots = p->multi[b];
        to->live = live;
        to->n_live = u->n_live;
    }
    r->list = list;
    r->n_list = n;
    return OT_OK;
}

/* Lifetime of a row less its gaps. false: no memory. */
static bool copy_live(ot_arena *a, const ot_pack_item *x, ot_memory_buffer *out)
{
    ot_span *live = OT_NEW_N(a, ot_span, (size_t)x->n_gaps + 1);
    int64_t from = x->lower;
    if (!live) return false;
    for (uint32_t g = 0; g < x->n_gaps; g++) {
        if (x->gaps[g].lower > from) live[out->n_live++] = (ot_span){from, x->gaps[g].lower};
        from = x->gaps[g].upper;
    }
    if (x->upper > from) live[out->n_live++] = (ot_span){from, x->upper};
    out->live = live;
    return true;
}

ot_status ot_memory_results_keep_table(ot_memory_results *r, const ot_pack_file *f,
                                       const int64_t *offsets)
{
    uint32_t n = f->problem.n;
    ot_memory_buffer *list = OT_NEW_N(r->arena, ot_memory_buffer, n);
    int64_t *kept = ot_memdup(r->arena, offsets, n * sizeof *kept);
    const char **names = OT_NEW_N(r->arena, const char *, n);
    if (!list || !kept || !names) return OT_E_NOMEM;
    for (uint32_t b = 0; b < n; b++) {
        const ot_pack_item *x = &f->problem.items[b];
        names[b] = ot_strdup(r->arena, f->names[b]);
        if (!names[b] || !copy_live(r->arena, x, &list[b])) return OT_E_NOMEM;
        list[b].names = &names[b];
        list[b].n_names = 1;
        list[b].size = x->size;
        list[b].offsets = &kept[b];
        list[b].n_slots = 1;
    }
    r->list = list;
    r->n_list = n;
    return OT_OK;
}
