/* The pass: steps -> units -> steps.
 *
 *   1. values: which are static tensors, who makes them, which units read them
 *   2. fuse: windows, tiles, convolutions with what follows, pools, element-wise chains; what is
 *   left stays a node
 *   3. write: write_units.c
 *
 * A unit that several steps became stands where the last of them stood, so all it reads is
 * there; nobody reads what it makes before that (the fusers see to it).
 */
#include "lower.h"

#include "engine/cpu/conv/conv.h"
#include "engine/core/simd.h"

/* ---- values ---- */

/* What is known of value v of p: an outer one is described where it is made, in *g. */
static const ot_value *described(const ot_schedule *p, ot_id v, const ot_graph **g)
{
    const ot_value *x = &p->g->values[v];
    *g = p->g;
    for (const ot_schedule *up = p->outer; x->is_outer && up; up = up->outer) {
        ot_id found = ot_value_find(up->g, x->name);
        if (found == OT_NONE) continue;
        x = &up->g->values[found];
        *g = up->g;
    }
    return x;
}

/* What subgraphs do not say of outer values, implementations that look at their graph want to know
 * all the same. */
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
    own->known_floats = x->known_floats;
    own->known_n = x->known_n;
}

void ot_schedule_describe_outer(ot_schedule *p)
{
    const ot_graph *g;
    for (ot_id v = 0; v < p->g->n_values; v++) import_outer(&p->g->values[v], described(p, v, &g));
}

static void describe(lw_pass *l, ot_id v)
{
    lw_value *w = &l->v[v];
    const ot_graph *g;
    *w = (lw_value){.slot = l->p->at[v], .maker = OT_NONE, .of = OT_NONE};
    w->x = described(l->p, v, &g);
    for (uint32_t k = 0; k < LW_LAYOUTS; k++) w->version[k] = OT_NONE;
    const ot_nd *c = w->slot->is_const && w->slot->nd.data ? &w->slot->nd : NULL;
    ot_nd *fore = &w->slot->fore;
    w->is_kept = w->slot->is_result;
    if (c) {
        ot_nd_set_dense(fore, c->dtype, c->rank, c->dims);
        w->is_static = true;
    } else if (w->x->is_tensor && !w->x->is_sequence && ot_shape_is_sure(g, w->x) &&
               ot_value_is_static(w->x) && w->x->rank <= OT_RANK_MAX &&
               ot_dtype_bytes(w->x->dtype) > 0) {
        ot_nd_set_dense(fore, w->x->dtype, (uint32_t)w->x->rank, w->x->dims);
        w->is_static = true;
    }
}

static ot_status begin(lw_pass *l)
{
    ot_schedule *p = l->p;
    l->n_units = p->n_steps;
    l->v = OT_NEW_N(l->scratch, lw_value, p->g->n_values + 1u);
    l->units = OT_NEW_N(l->scratch, lw_unit, p->n_steps + 1u);
    const ot_node **nodes = OT_NEW_N(l->scratch, const ot_node *, p->n_steps + 1u);
    if (!l->v || !l->units || !nodes) return ot_fail_nomem(p->s->d);
    ot_schedule_describe_outer(p);
    for (ot_id v = 0; v < p->g->n_values; v++) {
        describe(l, v);
        if (!OT_PUSH(l->scratch, l->ids, l->n_ids, l->cap_ids, p->at[v]))
            return ot_fail_nomem(p->s->d);
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

/* ---- the pass ---- */

ot_status lw_drop_dequantized(lw_pass *l)
{
    OT_TRY(lw_find_readers(l));
    for (uint32_t u = 0; u < l->n_units; u++) {
        lw_unit *unit = &l->units[u];
        if (unit->kind != LW_NODE || unit->nodes[0]->op != OT_OP_DequantizeLinear ||
            unit->out[0] == OT_NONE)
            continue;
        const lw_value *v = &l->v[unit->out[0]];
        if (v->n_readers == 0 && !v->is_kept) unit->kind = LW_GONE;
    }
    return lw_find_readers(l);
}

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
    return l->starved ? ot_fail_nomem(l->p->s->d) : lw_write(l);
}

/* What fused steps hold, when they are not to run after all. Nodes as they were are still the
 * schedule's. */
static void drop_steps(lw_pass *l)
{
    for (size_t k = 0; k < l->n_steps; k++)
        if (l->steps[k].plan && l->steps[k].state.free)
            l->steps[k].state.free(l->steps[k].state.data);
}

ot_status ot_lower(ot_schedule *p)
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
