/* Who reads what, what is known of values, and several units that become one. */
#include "units.h"

#include "engine/core/half.h"

/* ---- readers ---- */

/* ids a unit reads, each once: operands, then what its subgraphs capture. `seen` is stamped with
 * the unit's number. */
static void each_read(lw_pass *l, uint32_t u, uint32_t *seen, bool count)
{
    const lw_unit *unit = &l->units[u];
    const ot_node *n = unit->step->node;
    if (unit->kind == LW_GONE) return;
    for (uint32_t k = 0; k < unit->n_in + n->n_captured; k++) {
        ot_id v = k < unit->n_in ? unit->in[k] : n->captured[k - unit->n_in];
        if (v == OT_NONE) continue;
        if (k >= unit->n_in) l->v[v].is_kept = true;
        if (seen[v] == u) continue;
        seen[v] = u;
        if (!count) l->readers[l->v[v].first + l->v[v].n_readers] = u;
        l->v[v].n_readers++;
    }
}

ot_status lw_find_readers(lw_pass *l)
{
    uint32_t n = l->p->g->n_values, total = 0;
    uint32_t *seen = OT_NEW_N(l->scratch, uint32_t, n + 1u);
    if (!seen) return ot_fail_nomem(l->p->s->d);
    for (uint32_t v = 0; v < n; v++) {
        seen[v] = OT_NONE;
        l->v[v].n_readers = 0;
    }
    for (uint32_t u = 0; u < l->n_units; u++) each_read(l, u, seen, true);
    for (uint32_t v = 0; v < n; v++) {
        l->v[v].first = total;
        total += l->v[v].n_readers;
        l->v[v].n_readers = 0;
        seen[v] = OT_NONE;
    }
    l->readers = OT_NEW_N(l->scratch, uint32_t, total + 1u);
    if (!l->readers) return ot_fail_nomem(l->p->s->d);
    for (uint32_t u = 0; u < l->n_units; u++) each_read(l, u, seen, false);
    return OT_OK;
}

/* ---- questions ---- */

uint32_t lw_only_reader(const lw_pass *l, ot_id v)
{
    const lw_value *w = &l->v[v];
    return w->is_kept || w->n_readers != 1 ? OT_NONE : l->readers[w->first];
}

bool lw_is_real(const lw_pass *l, ot_id v)
{
    if (v == OT_NONE || !l->v[v].is_static) return false;
    const ot_nd *a = &l->v[v].slot->fore;
    int64_t n;
    return ot_dtype_is_real(a->dtype) && a->rank <= 8 && ot_nd_elems(a, &n) && n > 0 &&
           n < INT64_MAX / 64;
}

bool lw_is_f32(const lw_pass *l, ot_id v)
{
    return lw_is_real(l, v) && l->v[v].slot->fore.dtype == OT_F32;
}

bool lw_same_dims(const lw_pass *l, ot_id a, ot_id b)
{
    const ot_nd *x = &l->v[a].slot->fore, *y = &l->v[b].slot->fore;
    return x->rank == y->rank && !memcmp(x->dims, y->dims, x->rank * sizeof *x->dims);
}

const float *lw_const_f32(const lw_pass *l, ot_id v)
{
    if (!lw_is_f32(l, v) || !l->v[v].slot->is_const) return NULL;
    return l->v[v].slot->nd.data;
}

const float *lw_const_real(lw_pass *l, ot_id v)
{
    if (!lw_is_real(l, v) || !l->v[v].slot->is_const) return NULL;
    lw_value *w = &l->v[v];
    const ot_nd *a = &w->slot->nd;
    int64_t n;
    if (a->dtype == OT_F32 || !a->data || w->wide)
        return a->dtype == OT_F32 || !a->data ? a->data : w->wide;
    float *wide = ot_nd_elems(a, &n) ? OT_NEW_N(l->scratch, float, n) : NULL;
    if (wide) ot_half_widen(a->dtype, wide, a->data, n);
    if (!wide) l->starved = true;
    return w->wide = wide;
}

bool lw_scalar(const lw_pass *l, ot_id v, float *out)
{
    int64_t n;
    if (!lw_is_real(l, v) || !l->v[v].slot->is_const) return false;
    const ot_nd *a = &l->v[v].slot->nd;
    if (!a->data || !ot_nd_elems(a, &n) || n != 1) return false;
    *out = (float)ot_nd_double(a, 0);
    return true;
}

#define WORK_SHARED 1e6 /* multiply-adds: some twenty microseconds of one core */

uint32_t lw_threads(const lw_pass *l, double work)
{
    return work < WORK_SHARED ? 1 : l->p->threads;
}

/* ---- merging ---- */

ot_status lw_merge(lw_pass *l, const uint32_t *parts, uint32_t n, lw_kind kind, ot_id_list in,
                   ot_id_list out, void *plan)
{
    uint32_t last = parts[0], count = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (parts[k] > last) last = parts[k];
        count += l->units[parts[k]].n_nodes;
    }
    const ot_node **nodes = OT_NEW_N(l->a, const ot_node *, count);
    ot_id *ins = ot_memdup(l->a, in.at, in.n * sizeof *in.at),
          *outs = ot_memdup(l->a, out.at, out.n * sizeof *out.at);
    if (!nodes || !ins || !outs) return ot_fail_nomem(l->p->s->d);
    count = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < l->units[parts[k]].n_nodes; j++)
            nodes[count++] = l->units[parts[k]].nodes[j];
    ot_step *step = l->units[last].step;
    for (uint32_t k = 0; k < n; k++) l->units[parts[k]].kind = LW_GONE;
    l->units[last] = (lw_unit){.kind = kind,
                               .step = step,
                               .nodes = nodes,
                               .n_nodes = count,
                               .in = ins,
                               .n_in = in.n,
                               .out = outs,
                               .n_out = out.n,
                               .plan = plan};
    for (uint32_t k = 0; k < out.n; k++)
        if (outs[k] != OT_NONE) l->v[outs[k]].maker = last;
    return OT_OK;
}
