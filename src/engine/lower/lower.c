/* The pass: steps -> units -> steps.
 *
 *   1. values: which are static tensors, who makes them, which units read them
 *   2. fuse: windows, tiles, convolutions with what follows, pools, element-wise chains; what is left stays a node
 *   3. write: layout.c
 *
 * A unit that several steps became stands where the last of them stood, so all it reads is there; nobody reads
 * what it makes before that (the fusers see to it).
 */
#include "lower.h"

#include "engine/move/box.h"
#include "engine/core/simd.h"

/* ---- values ---- */

/* What is known of value v of p: an outer one is described where it is made. */
static const ot_value *described(const ot_prog *p, ot_id v)
{
    const ot_value *x = &p->g->values[v];
    for (const ot_prog *up = p->outer; x->is_outer && up; up = up->outer) {
        ot_id found = ot_value_find(up->g, x->name);
        if (found != OT_NONE) x = &up->g->values[found];
    }
    return x;
}

/* What subgraphs do not say of outer values, kernels that look at their graph want to know all the same. */
static void import_outer(ot_value *own, const ot_value *x)
{
    if (own == x || !own->is_outer) return;
    own->dtype = x->dtype;
    own->rank = x->rank;
    own->dims = x->dims;
    own->is_tensor = x->is_tensor;
    own->is_sequence = x->is_sequence;
    own->is_const = x->is_const;
    own->init = x->init;
    own->known = x->known;
    own->known_n = x->known_n;
}

static void describe(lw_pass *l, ot_id v)
{
    lw_value *w = &l->v[v];
    import_outer(&l->p->g->values[v], described(l->p, v));
    *w = (lw_value){.x = described(l->p, v), .slot = l->p->at[v], .maker = OT_NONE, .of = OT_NONE};
    for (uint32_t k = 0; k < LW_LAYOUTS; k++) w->version[k] = OT_NONE;
    const ot_nd *c = w->slot->is_const && w->slot->nd.data ? &w->slot->nd : NULL;
    ot_nd *fore = &w->slot->fore;
    w->pinned = w->slot->is_result;
    if (c) {
        ot_nd_set_dense(fore, c->dtype, c->rank, c->dims);
        w->is_static = true;
    } else if (w->x->is_tensor && !w->x->is_sequence && ot_value_is_static(w->x) && w->x->rank <= OT_RANK_MAX &&
               ot_dtype_bytes(w->x->dtype) > 0) {
        ot_nd_set_dense(fore, w->x->dtype, (uint32_t)w->x->rank, w->x->dims);
        w->is_static = true;
    }
}

/* ids a unit reads, each once: operands, then what its subgraphs capture. `seen` is stamped with the unit's number. */
static void each_read(lw_pass *l, uint32_t u, uint32_t *seen, bool count)
{
    const lw_unit *unit = &l->units[u];
    const ot_node *n = unit->step->node;
    if (unit->kind == LW_GONE) return;
    for (uint32_t k = 0; k < unit->n_in + n->n_captured; k++) {
        ot_id v = k < unit->n_in ? unit->in[k] : n->captured[k - unit->n_in];
        if (v == OT_NONE) continue;
        if (k >= unit->n_in) l->v[v].pinned = true;
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

static ot_status begin(lw_pass *l)
{
    ot_prog *p = l->p;
    l->n_units = p->n_steps;
    l->v = OT_NEW_N(l->scratch, lw_value, p->g->n_values + 1u);
    l->units = OT_NEW_N(l->scratch, lw_unit, p->n_steps + 1u);
    const ot_node **nodes = OT_NEW_N(l->scratch, const ot_node *, p->n_steps + 1u);
    if (!l->v || !l->units || !nodes) return ot_fail_nomem(p->s->d);
    for (ot_id v = 0; v < p->g->n_values; v++) {
        describe(l, v);
        if (!OT_PUSH(l->scratch, l->ids, l->n_ids, l->cap_ids, p->at[v])) return ot_fail_nomem(p->s->d);
    }
    for (uint32_t u = 0; u < l->n_units; u++) {
        ot_step *step = &p->steps[u];
        nodes[u] = step->node;
        l->units[u] = (lw_unit){.step = step,
                                .nodes = &nodes[u],
                                .n_nodes = 1,
                                .in = step->in_ids,
                                .n_in = step->n_in,
                                .out = step->out_ids,
                                .n_out = step->n_out};
        for (uint32_t k = 0; k < step->n_out; k++)
            if (step->out_slots[k]) l->v[step->out_ids[k]].maker = u;
    }
    for (ot_id v = 0; v < p->g->n_values; v++)
        if (l->v[v].maker == OT_NONE) l->v[v].version[LW_PLAIN] = v;
    return lw_find_readers(l);
}

/* ---- questions ---- */

uint32_t lw_only_reader(const lw_pass *l, ot_id v)
{
    const lw_value *w = &l->v[v];
    return w->pinned || w->n_readers != 1 ? OT_NONE : l->readers[w->first];
}

ot_status lw_drop_dequantized(lw_pass *l)
{
    OT_TRY(lw_find_readers(l));
    for (uint32_t u = 0; u < l->n_units; u++) {
        lw_unit *unit = &l->units[u];
        if (unit->kind != LW_NODE || unit->nodes[0]->op != OT_OP_DequantizeLinear || unit->out[0] == OT_NONE) continue;
        const lw_value *v = &l->v[unit->out[0]];
        if (v->n_readers == 0 && !v->pinned) unit->kind = LW_GONE;
    }
    return lw_find_readers(l);
}

bool lw_is_f32(const lw_pass *l, ot_id v)
{
    if (v == OT_NONE || !l->v[v].is_static) return false;
    const ot_nd *a = &l->v[v].slot->fore;
    int64_t n;
    return a->dtype == OT_F32 && a->rank <= 8 && ot_nd_elems(a, &n) && n > 0 && n < INT64_MAX / 64;
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

bool lw_scalar(const lw_pass *l, ot_id v, float *out)
{
    int64_t n;
    const float *data = v == OT_NONE ? NULL : lw_const_f32(l, v);
    if (!data || !ot_nd_elems(&l->v[v].slot->nd, &n) || n != 1) return false;
    *out = data[0];
    return true;
}

#define WORK_SHARED 1e6 /* multiply-adds: some twenty microseconds of one core */

uint32_t lw_threads(const lw_pass *l, double work) { return work < WORK_SHARED ? 1 : l->p->threads; }

/* ---- merging ---- */

ot_status lw_merge(lw_pass *l, const uint32_t *parts, uint32_t n, lw_kind kind, const ot_id *in, uint32_t n_in, const ot_id *out,
                   uint32_t n_out, void *plan)
{
    uint32_t last = parts[0], count = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (parts[k] > last) last = parts[k];
        count += l->units[parts[k]].n_nodes;
    }
    const ot_node **nodes = OT_NEW_N(l->a, const ot_node *, count);
    ot_id *ins = ot_memdup(l->a, in, n_in * sizeof *in), *outs = ot_memdup(l->a, out, n_out * sizeof *out);
    if (!nodes || !ins || !outs) return ot_fail_nomem(l->p->s->d);
    count = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < l->units[parts[k]].n_nodes; j++) nodes[count++] = l->units[parts[k]].nodes[j];
    ot_step *step = l->units[last].step;
    for (uint32_t k = 0; k < n; k++) l->units[parts[k]].kind = LW_GONE;
    l->units[last] = (lw_unit){.kind = kind,
                               .step = step,
                               .nodes = nodes,
                               .n_nodes = count,
                               .in = ins,
                               .n_in = n_in,
                               .out = outs,
                               .n_out = n_out,
                               .plan = plan};
    for (uint32_t k = 0; k < n_out; k++)
        if (outs[k] != OT_NONE) l->v[outs[k]].maker = last;
    return OT_OK;
}

/* ---- packed weights ---- */

void *ot_packed_find(const ot_session *s, const void *source, uint64_t form)
{
    for (const ot_packed *k = s->packed; k; k = k->next)
        if (k->source == source && k->form == form) return k->data;
    return NULL;
}

ot_status ot_packed_keep(ot_session *s, const void *source, uint64_t form, void *data, void (*release)(void *))
{
    return ot_packed_later(s, source, form, data, release, NULL, NULL);
}

ot_status ot_packed_later(ot_session *s, const void *source, uint64_t form, void *data, void (*release)(void *),
                          ot_packed_fill fill, const void *how)
{
    ot_packed *k = OT_NEW(s->a, ot_packed);
    if (!k) {
        release(data);
        return ot_fail_nomem(s->d);
    }
    *k = (ot_packed){s->packed, source, form, data, release, fill, how};
    s->packed = k;
    return OT_OK;
}

void ot_packed_free(ot_packed *list)
{
    for (; list; list = list->next) list->free(list->data);
}

/* ---- the pass ---- */

static ot_status lower(lw_pass *l)
{
    OT_TRY(begin(l));
    OT_TRY(lw_fuse_tiles(l));
    if (l->p->s->reference) return lw_write(l);
    OT_TRY(lw_fuse_qmove(l));
    OT_TRY(lw_find_windows(l));
    OT_TRY(lw_fuse_qconv(l));
    OT_TRY(lw_fuse_int8(l));
    OT_TRY(lw_fuse_conv(l));
    OT_TRY(lw_fuse_pool(l));
    OT_TRY(lw_fuse_resize(l));
    OT_TRY(lw_fuse_attention(l));
    OT_TRY(lw_fuse_product(l));
    OT_TRY(lw_fuse_chain(l));
    OT_TRY(lw_fuse_move(l));
    return lw_write(l);
}

/* What fused steps hold, when they are not to run after all. Nodes as they were are still the program's. */
static void drop_steps(lw_pass *l)
{
    for (size_t k = 0; k < l->n_steps; k++)
        if (l->steps[k].plan && l->steps[k].state.free) l->steps[k].state.free(l->steps[k].state.data);
}

ot_status ot_lower(ot_prog *p)
{
    lw_pass l = {.p = p, .a = p->s->a, .scratch = ot_arena_new(), .block = ot_simd_block()};
    ot_status st = l.scratch ? lower(&l) : ot_fail_nomem(p->s->d);
    if (st == OT_OK) {
        ot_slot **at = ot_memdup(p->s->a, l.ids, l.n_ids * sizeof *at);
        ot_step *steps = ot_memdup(p->s->a, l.steps, l.n_steps * sizeof *steps);
        if (!at || !steps) st = ot_fail_nomem(p->s->d);
        if (st == OT_OK) {
            p->at = at;
            p->n_ids = (uint32_t)l.n_ids;
            p->steps = steps;
            p->n_steps = (uint32_t)l.n_steps;
        }
    }
    if (st != OT_OK) drop_steps(&l);
    ot_arena_free(l.scratch);
    return st;
}
