/* Grow a region backwards from a sink: walk down the sequence and say of each node whether it
 * joins (IN), must run before the region because somebody needs its result whole (PRE), or runs
 * after it (POST).
 *
 *   position   3: MatMul(q,k)   IN, rows of q follow the sink's rows; k is needed whole
 *              2: Transpose k   PRE (its output is needed whole)
 *              1: Squeeze q     IN
 *              0: Split         PRE (one of its outputs is needed whole)
 *
 * No path leads from an IN node through a PRE or POST node back to an IN node, so the IN nodes
 * are convex: values that PRE nodes read are marked whole, hence their producers become PRE; a
 * node becomes POST only when nobody in the region reads it. Each step takes time linear in the
 * node's operands.
 */
#include "walk.h"

#include "ops/dynamic_dims.h"
#include "ops/quirks.h"

ot_status ot_walk_new(const ot_seq *s, ot_walk *w)
{
    const ot_graph *g = s->g;
    uint32_t max_in = 0, max_out = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_node *n = &g->nodes[s->node[k]];
        if (n->n_in > max_in) max_in = n->n_in;
        if (n->n_out > max_out) max_out = n->n_out;
    }
    memset(w, 0, sizeof *w);
    w->s = s;
    w->stamp = OT_NEW_N(s->arena, uint32_t, g->n_values + 1u);
    w->axis = ot_alloc_n(s->arena, g->n_values + 1u, sizeof *w->axis);
    w->whole = OT_NEW_N(s->arena, uint8_t, g->n_values + 1u);
    w->outside = OT_NEW_N(s->arena, uint8_t, g->n_values + 1u);
    w->state = OT_NEW_N(s->arena, uint8_t, s->n + 1u);
    w->number = OT_NEW_N(s->arena, uint32_t, g->n_values + 1u);
    bool ok = w->stamp && w->axis && w->whole && w->outside && w->state && w->number;
    for (uint32_t v = 0; ok && v < g->n_values; v++) w->number[v] = OT_NONE;
    for (uint32_t d = 0; d < OT_DIMS_MAX; d++) {
        w->in_axis[d] = OT_NEW_N(s->arena, int8_t, max_in + 1u);
        w->out_axis[d] = OT_NEW_N(s->arena, int8_t, max_out + 1u);
        ok = ok && w->in_axis[d] && w->out_axis[d];
    }
    return ok ? OT_OK : ot_fail_nomem(g->model->diag);
}

static void touch(ot_walk *w, ot_id v)
{
    if (w->stamp[v] == w->epoch) return;
    w->stamp[v] = w->epoch;
    for (uint32_t d = 0; d < OT_DIMS_MAX; d++) w->axis[v][d] = OT_AX_UNSET;
    w->whole[v] = w->outside[v] = 0;
}

void ot_walk_start(ot_walk *w, uint32_t end, uint32_t out_index, const int8_t *axes,
                   uint32_t n_dims)
{
    w->epoch++;
    w->end = end;
    w->n_dims = n_dims;
    w->lo = end + 1;
    w->n_pre_run = 0;
    const ot_node *n = &w->s->g->nodes[w->s->node[end]];
    w->sink = out_index == OT_SUM_SINK ? n->in[0] : n->out[out_index];
    touch(w, w->sink);
    for (uint32_t d = 0; d < n_dims; d++) w->sink_axis[d] = w->axis[w->sink][d] = axes[d];
}

static bool cut_anywhere(const ot_walk *w, ot_id v)
{
    for (uint32_t d = 0; d < w->n_dims; d++)
        if (ot_walk_axis(w, v, d) >= 0) return true;
    return false;
}

/* Nobody in the region cuts an output of n yet: is there an output axis that goes with the axes
 * its inputs already have? */
static bool attach_forward(ot_walk *w, const ot_node *n, int8_t *axes)
{
    const ot_graph *g = w->s->g;
    if (n->n_out == 0 || n->out[0] == OT_NONE) return false;
    const ot_value *out = &g->values[n->out[0]];
    for (uint32_t d = 0; d < w->n_dims; d++) {
        axes[d] = OT_AX_UNSET;
        for (int32_t a = 0; a < out->rank && axes[d] == OT_AX_UNSET; a++) {
            ot_why why;
            if (out->dims[a] < 2 ||
                !ot_access_axis(g, n, 0, (uint32_t)a, w->in_axis[d], w->out_axis[d], &why))
                continue;
            bool linked = false, clash = false;
            for (uint32_t k = 0; k < n->n_in; k++) {
                ot_id v = n->in[k];
                if (v == OT_NONE || !w->s->act[v]) continue;
                int8_t have = ot_walk_axis(w, v, d);
                linked |= have >= 0 && have == w->in_axis[d][k];
                clash |= have >= 0 && have != w->in_axis[d][k];
            }
            if (linked && !clash) axes[d] = (int8_t)a;
        }
        if (axes[d] == OT_AX_UNSET) return false;
    }
    return true;
}

/* Whether cutting the node along that axis of its output leaves rounding as it is. */
static bool keeps_rounding(const ot_node *n, int8_t axis)
{
    return axis != 1 || !ot_quirk_hits(OT_QUIRK_CHANNEL_AVERAGE, OT_BY_ALL, n->op_type);
}

/* Nobody in the region reads what n reduces its input to, and the region cuts that input: then
 * every tile reduces its piece, along at least one of the dims. */
static bool attach_sum(ot_walk *w, const ot_node *n, int8_t *axes)
{
    const ot_graph *g = w->s->g;
    bool reduced[OT_RANK_MAX], any = false;
    if (ot_seq_sum(w->s, n, reduced) == OT_SUM_NONE) return false;
    const ot_value *out = &g->values[n->out[0]];
    for (uint32_t d = 0; d < w->n_dims; d++) {
        int8_t have = ot_walk_axis(w, n->in[0], d);
        axes[d] = OT_AX_UNSET;
        if (have < 0) return false;
        if (reduced[have]) {
            memset(w->in_axis[d], OT_AX_WHOLE, n->n_in);
            w->in_axis[d][0] = have;
            w->out_axis[d][0] = axes[d] = OT_AX_SUM;
            any = true;
            continue;
        }
        for (int32_t a = 0; a < out->rank && axes[d] == OT_AX_UNSET; a++) {
            ot_why why;
            if (!ot_access_axis(g, n, 0, (uint32_t)a, w->in_axis[d], w->out_axis[d], &why))
                continue;
            if (w->in_axis[d][0] == have && keeps_rounding(n, (int8_t)a)) axes[d] = (int8_t)a;
        }
        if (axes[d] == OT_AX_UNSET) return false;
    }
    return any;
}

/* Ask the slice relation in every dim for lead output `o`; false when the node cannot be cut as
 * the region wants it. */
static bool maps_fit(ot_walk *w, const ot_node *n, uint32_t o, const int8_t *axes)
{
    const ot_graph *g = w->s->g;
    ot_why why;
    for (uint32_t d = 0; d < w->n_dims; d++) {
        if (axes[d] < 0 || !keeps_rounding(n, axes[d])) return false;
        if (!ot_access_axis(g, n, o, (uint32_t)axes[d], w->in_axis[d], w->out_axis[d], &why))
            return false;
        for (uint32_t k = 0; k < n->n_out; k++) {
            ot_id v = n->out[k];
            if (v == OT_NONE || k == o) continue;
            bool read = g->values[v].n_uses > 0 || g->values[v].is_output;
            if (read && w->out_axis[d][k] < 0) return false;
            int8_t have = ot_walk_axis(w, v, d);
            if (have >= 0 && have != w->out_axis[d][k]) return false;
        }
        for (uint32_t k = 0; k < n->n_in; k++) {
            ot_id v = n->in[k];
            if (v == OT_NONE) continue;
            int8_t have = ot_walk_axis(w, v, d), want = w->in_axis[d][k];
            if (have >= 0 && want >= 0 && have != want) return false;
            /* The same value twice with different axes (x * transpose-like uses). */
            for (uint32_t j = 0; j < k; j++)
                if (n->in[j] == v && w->in_axis[d][j] >= 0 && want >= 0 && w->in_axis[d][j] != want)
                    return false;
        }
    }
    return true;
}

/* With dynamic dimensions, what static nodes compute is computed at run time: activations whose
 * shapes it needs are needed whole before whoever reads it (mark whole), or until then (mark
 * outside). */
static void note_sources(ot_walk *w, ot_id v, bool whole)
{
    const ot_dynamic_dims *t = w->s->g->model->dynamic_dims;
    if (!t || v >= t->n_values) return;
    for (uint32_t k = 0; k < t->n_source[v]; k++) {
        const ot_id x = t->source[v][k];
        touch(w, x);
        if (whole)
            w->whole[x] = 1;
        else
            w->outside[x] = 1;
    }
}

/* In two dims an input may be cut in one and needed whole in the other: then it comes from
 * outside, or from a node that would be recomputed for every tile of that other dim. We keep
 * such inputs outside: mark them whole. */
static void join(ot_walk *w, const ot_node *n, uint32_t o, const int8_t *axes)
{
    w->lead_out = o;
    for (uint32_t d = 0; d < w->n_dims; d++) {
        w->lead_axis[d] = axes[d];
        for (uint32_t k = 0; k < n->n_out; k++) {
            if (n->out[k] == OT_NONE) continue;
            touch(w, n->out[k]);
            w->axis[n->out[k]][d] = k == o ? axes[d] : w->out_axis[d][k];
        }
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE) continue;
        if (ot_value_varies(w->s->g, v)) note_sources(w, v, true);
        bool any_whole = false;
        for (uint32_t d = 0; d < w->n_dims; d++) any_whole |= w->in_axis[d][k] < 0;
        bool any_cut = false;
        for (uint32_t d = 0; d < w->n_dims; d++) any_cut |= w->in_axis[d][k] >= 0;
        if (!w->s->act[v] && !any_cut) continue; /* a constant used whole */
        touch(w, v);
        for (uint32_t d = 0; d < w->n_dims; d++)
            if (w->in_axis[d][k] >= 0) w->axis[v][d] = w->in_axis[d][k];
        if (any_whole && w->s->act[v]) w->whole[v] = 1;
    }
}

static int leave_before(ot_walk *w, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_in + n->n_captured; k++) {
        ot_id v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
        if (v != OT_NONE && ot_value_varies(w->s->g, v)) note_sources(w, v, true);
        if (v == OT_NONE || !w->s->act[v]) continue;
        touch(w, v);
        w->whole[v] = 1;
    }
    w->n_pre_run++;
    return OT_ST_PRE;
}

static int leave_after(ot_walk *w, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_in + n->n_captured; k++) {
        ot_id v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
        if (v != OT_NONE && ot_value_varies(w->s->g, v)) note_sources(w, v, false);
        if (v == OT_NONE || !w->s->act[v]) continue;
        touch(w, v);
        w->outside[v] = 1;
    }
    return OT_ST_POST;
}

static int classify(ot_walk *w, const ot_node *n)
{
    uint32_t lead = OT_NONE;
    bool whole = false;
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v == OT_NONE || w->stamp[v] != w->epoch) continue;
        whole |= w->whole[v] != 0;
        if (lead == OT_NONE && cut_anywhere(w, v)) lead = k;
    }
    if (whole) return leave_before(w, n);
    int8_t axes[OT_DIMS_MAX];
    if (lead == OT_NONE) {
        bool known = n->n_captured == 0 && ot_access_known(n) && !w->s->odd[w->lo];
        if (known &&
            ((attach_forward(w, n, axes) && maps_fit(w, n, 0, axes)) || attach_sum(w, n, axes))) {
            join(w, n, 0, axes);
            w->n_pre_run = 0;
            return OT_ST_IN;
        }
        return leave_after(w, n);
    }
    for (uint32_t d = 0; d < w->n_dims; d++) axes[d] = ot_walk_axis(w, n->out[lead], d);
    if (!ot_access_known(n) || n->n_captured > 0 || w->s->odd[w->lo] || !maps_fit(w, n, lead, axes))
        return leave_before(w, n);
    join(w, n, lead, axes);
    w->n_pre_run = 0;
    return OT_ST_IN;
}

int ot_walk_step(ot_walk *w)
{
    if (w->lo == 0) OT_BUG("walk below position 0");
    w->lo--;
    int st = classify(w, &w->s->g->nodes[w->s->node[w->lo]]);
    w->state[w->lo] = (uint8_t)st;
    return st;
}

bool ot_walk_escapes(const ot_walk *w, ot_id v)
{
    const ot_value *x = &w->s->g->values[v];
    if (x->is_output) return true;
    if (w->stamp[v] == w->epoch && w->outside[v]) return true;
    return w->s->last[v] != OT_NONE && w->s->last[v] > w->end;
}
