/* The checker's view of a region that carries rows: the steps are taken as claims and simulated,
 * forwards.
 *
 *   step t     what a value has:   [kept from step t - 1 | fresh]     kept: part of what it had in
 *                                                                     step t - 1
 *                                                                     fresh: what its node makes,
 *                                                                     right behind that
 *   a reader asks the slice relation what it wants for its own fresh rows: all of it must be there
 *   a region's output: every row is fresh in exactly one step
 *
 * Nothing of the walk backwards (tiling/stream.c) is repeated: why a row is kept does not
 * matter, only that it is there.
 */
#include "plan_check.h"
#include "tiling/stream.h"

typedef struct simulator {
    const ot_graph *g;
    const ot_region *r;
    ot_check_extents *x;
    ot_arena *a;
    ot_diag *d;
    ot_win *had;    /* [n_values] rows of each value in the step before */
    int64_t *ready; /* [n_values] rows that were fresh in some step so far, from the first one on */
} simulator;

static ot_status broken(const simulator *p, const char *rule, uint32_t v)
{
    const char *name = v == OT_NONE ? "" : p->g->values[p->r->values[v].value].name;
    return ot_fail(p->d, OT_E_INPUT, "plan check: region %u: %s%s%s", p->r->id, rule,
                   *name ? ": value " : "", name);
}

static int64_t extent_of(const simulator *p, uint32_t v)
{
    return p->g->values[p->r->values[v].value].dims[p->r->values[v].axis[0]];
}

static bool holds(ot_win a, ot_win b) { return ot_win_empty(b) || (a.lo <= b.lo && a.hi >= b.hi); }

/* What is brought of input v: where rows stay, each once. */
static ot_status check_input(simulator *p, const ot_tile_windows *w, uint32_t v)
{
    const ot_win made = w->made[v], kept = w->kept[v];
    if (!p->r->rolling)
        return ot_win_empty(kept) ? OT_OK : broken(p, "rows of an input are kept", v);
    if (!holds(p->had[v], kept)) return broken(p, "rows are kept that were not there", v);
    if (!ot_win_empty(kept) && kept.lo != made.lo)
        return broken(p, "rows that were kept do not lie before those that are brought", v);
    if (ot_win_len(made) > ot_win_len(kept) && made.lo + ot_win_len(kept) < p->ready[v])
        return broken(p, "a row is brought twice", v);
    p->ready[v] = ot_max(p->ready[v], made.hi);
    return OT_OK;
}

/* What step w has of value v. */
static ot_status check_value(simulator *p, const ot_tile_windows *w, uint32_t v)
{
    const ot_rvalue *rv = &p->r->values[v];
    const ot_win made = w->made[v];
    if (rv->axis[0] < 0)
        return v < p->r->n_inputs ? OT_OK
                                  : broken(p, "a value that is made in steps is not cut", v);
    if (made.lo < 0 || made.hi > extent_of(p, v) || made.lo > made.hi)
        return broken(p, "rows outside the value", v);
    const ot_win kept = w->kept[v];
    /* that stand by themselves */
    const int64_t rows = ot_win_len(made) - (p->r->rolling ? ot_win_len(kept) : 0);
    p->x->kept[v] = ot_max(p->x->kept[v], ot_win_len(kept));
    p->x->most[0][v] = ot_max(p->x->most[0][v], rows);
    p->x->sum[0][v] += rows;
    if (v < p->r->n_inputs) return check_input(p, w, v);
    const ot_win fresh = w->ops[rv->node].made;
    const bool makes = !ot_win_empty(w->ops[rv->node].need);
    if (!ot_win_empty(kept))
        p->x->cropped[0][v] += ot_win_len(
            p->r->rolling ? kept : made); /* copied to stay, or to stand together */
    if (!holds(p->had[v], kept)) return broken(p, "rows are kept that were not there", v);
    if (!ot_win_empty(kept) && (kept.lo != made.lo || kept.hi != (makes ? fresh.lo : made.hi)))
        return broken(p, "rows that were kept do not lie before those that are made", v);
    if (makes ? fresh.hi != made.hi || (ot_win_empty(kept) && fresh.lo != made.lo)
              : ot_win_len(made) != ot_win_len(kept))
        return broken(p, "a step has rows that nobody made", v);
    if (rv->is_output &&
        (w->piece[v].lo != p->ready[v] || w->piece[v].hi != (makes ? fresh.hi : p->ready[v])))
        return broken(p, "pieces overlap or leave a gap", v);
    if (makes && rv->is_output && fresh.lo != p->ready[v])
        return broken(p, "a row is computed twice", v);
    if (makes) p->ready[v] = ot_max(p->ready[v], fresh.hi);
    return OT_OK;
}

/* Node i finds what it needs for its rows. */
static ot_status check_node(simulator *p, const ot_tile_windows *w, uint32_t i)
{
    const ot_rnode *x = &p->r->nodes[i];
    const ot_node *n = &p->g->nodes[x->node];
    const ot_win fresh = w->ops[i].made;
    ot_why why;
    if (x->lead_axis[0] < 0)
        return broken(p, "an operator is not cut along the axis of the steps", OT_NONE);
    if (ot_win_empty(w->ops[i].need)) return OT_OK;
    ot_op_tile t = {.need = fresh, .in = OT_NEW_N(p->a, ot_win, n->n_in + 1u)};
    if (!t.in) return ot_fail_nomem(p->d);
    if (!ot_access_window(p->g, n, x->lead_out[0], (uint32_t)x->lead_axis[0], &t, &why))
        return broken(p, ot_reason_sentence(why), OT_NONE);
    if (t.made.lo != fresh.lo || t.made.hi != fresh.hi)
        return broken(p, "an operator does not make just these rows", x->out[x->lead_out[0]]);
    p->x->done[0][i] += ot_win_len(fresh);
    p->x->done_most[0][i] = ot_max(p->x->done_most[0][i], ot_win_len(fresh));
    for (uint32_t k = 0; k < n->n_in; k++) {
        const uint32_t v = x->in[k];
        const int8_t axis = x->in_axis[0][k];
        if (v == OT_NONE) continue;
        const int8_t cut = p->r->values[v].axis[0];
        if (axis >= 0) p->x->read[0][i][k] += ot_max(0, ot_win_len(t.in[k]));
        if (cut < 0) {
            if (axis >= 0) return broken(p, "a value is cut along two axes", v);
            continue;
        }
        if (axis >= 0 && axis != cut) return broken(p, "a value is cut along two axes", v);
        const ot_win in = axis < 0 ? (ot_win){0, extent_of(p, v)} : t.in[k];
        if (!holds(w->made[v], in)) return broken(p, "a reader needs rows that are not there", v);
        if (!p->r->rolling && !ot_win_empty(in) &&
            (in.lo != w->made[v].lo || in.hi != w->made[v].hi))
            p->x->cropped[0][v] += ot_win_len(in);
    }
    return OT_OK;
}

static ot_status simulate(simulator *p, const ot_stream *s)
{
    const ot_region *r = p->r;
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_tile_windows *w = &s->steps[k];
        for (uint32_t v = 0; v < r->n_values; v++) OT_TRY(check_value(p, w, v));
        for (uint32_t i = 0; i < r->n_nodes; i++) OT_TRY(check_node(p, w, i));
        memcpy(p->had, w->made, r->n_values * sizeof *p->had);
    }
    for (uint32_t v = r->n_inputs; v < r->n_values; v++)
        if (r->values[v].is_output && p->ready[v] != extent_of(p, v))
            return broken(p, "pieces do not reach the end", v);
    return OT_OK;
}

ot_status ot_plan_check_stream(const ot_graph *g, const ot_region *r, ot_check_extents *x,
                               ot_arena *a, ot_diag *d)
{
    simulator p = {.g = g, .r = r, .x = x, .a = a, .d = d};
    ot_stream s;
    bool legal;
    ot_why why;
    x->kept = OT_NEW_N(a, int64_t, r->n_values + 1u);
    p.had = OT_NEW_N(a, ot_win, r->n_values + 1u);
    p.ready = OT_NEW_N(a, int64_t, r->n_values + 1u);
    ot_arena *scratch = ot_arena_new();
    ot_status st = x->kept && p.had && p.ready && scratch
                       ? ot_stream_steps(g, r, scratch, &s, &legal, &why)
                       : ot_fail_nomem(d);
    if (st == OT_OK) st = legal ? simulate(&p, &s) : broken(&p, ot_reason_sentence(why), OT_NONE);
    ot_arena_free(scratch);
    return st;
}
