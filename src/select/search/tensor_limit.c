/* --max-tensor: which values must not be whole, whether a plan sees to that, and why one that
 * cannot be cut is not.
 *
 *   x --Conv--> a (large) --Relu--> b (large) --Conv--> y  a and b must be inside of a region, in
 *                                                          tiles that are small enough
 *
 * The search counts what a path leaves too large, and takes the paths that leave least before it
 * looks at time and memory; regions are fitted in forms and tiles that hold. What is written in
 * the end is measured apart from all this (ops/largest.c).
 */
#include "search.h"

#include "ops/ops.h"

static ot_status refuse_fixed(const ot_seq *s, int64_t most, const char *what, const ot_value *v,
                              int64_t bytes)
{
    char a[64], b[64];
    return ot_fail(s->g->model->diag, OT_E_BUDGET,
                   "max tensor cannot be kept: %s '%.300s' takes %s, %s are allowed: inputs, "
                   "outputs and constants are not cut",
                   what, v->name, ot_format_exact_bytes(bytes, a, sizeof a),
                   ot_format_limit(most, b, sizeof b));
}

static bool is_made(const ot_seq *s, ot_id v) { return s->act[v] && s->def[v] != OT_NONE; }

/* Values that exist whole whatever the plan is. */
static ot_status check_fixed(const ot_seq *s, int64_t most)
{
    const ot_graph *g = s->g;
    for (ot_id id = 0; id < g->n_values; id++) {
        const ot_value *v = &g->values[id];
        int64_t bytes;
        if (!v->is_tensor || v->dtype == OT_STRING || v->is_outer) continue;
        if (!ot_value_bytes(v, &bytes)) {
            if (!v->is_input || v->init) continue;
            return ot_fail(g->model->diag, OT_E_BUDGET,
                           "max tensor cannot be kept: the size of input '%.300s' is not known: "
                           "give it a --shape",
                           v->name);
        }
        if (bytes <= most) continue;
        if (v->init && v->n_uses > 0) return refuse_fixed(s, most, "constant", v, bytes);
        if (v->is_input && !v->init) return refuse_fixed(s, most, "input", v, bytes);
        if (v->is_output) return refuse_fixed(s, most, "output", v, bytes);
        if (v->producer != OT_NONE && !is_made(s, id) && v->n_uses > 0)
            return refuse_fixed(s, most, "constant", v, bytes);
    }
    return OT_OK;
}

/* requires sizes and positions of the sequence. Fails: OT_E_BUDGET, OT_E_NOMEM. */
ot_status ot_limit_find(const ot_seq *s, int64_t most, ot_limit *out)
{
    const ot_graph *g = s->g;
    size_t cap = 0;
    *out = (ot_limit){.most = most};
    if (most == 0) return OT_OK;
    OT_TRY(check_fixed(s, most));
    out->before = OT_NEW_N(s->arena, uint32_t, s->n + 1u);
    if (!out->before) return ot_fail_nomem(g->model->diag);
    for (uint32_t p = 0; p < s->n; p++) {
        const ot_node *n = &g->nodes[s->node[p]];
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] != OT_NONE && s->bytes[n->out[k]] > most &&
                !OT_PUSH(s->arena, out->large, out->n_large, cap, n->out[k]))
                return ot_fail_nomem(g->model->diag);
        out->before[p + 1] = out->n_large;
    }
    return OT_OK;
}

bool ot_limit_concerns(const ot_limit *x, uint32_t first, uint32_t end)
{
    return x->n_large > 0 && x->before[end + 1] > x->before[first];
}

uint32_t ot_limit_missed(const ot_limit *x, const ot_seq *s, const ot_walk *w, const ot_trial *tr,
                         uint32_t pair, uint32_t first, uint32_t end)
{
    uint32_t missed = 0;
    if (x->n_large == 0) return 0;
    for (uint32_t k = x->before[first]; k < x->before[end + 1]; k++) {
        ot_id v = x->large[k];
        bool inside = w->state[s->def[v]] == OT_ST_IN && !ot_walk_escapes(w, v);
        if (!inside || ot_trial_tile_bytes(tr, pair, v) > (double)x->most) missed++;
    }
    return missed;
}

bool ot_limit_needs(const ot_limit *x, const ot_seq *s, const ot_region *r)
{
    for (uint32_t v = r->n_inputs; v < r->n_values && x->n_large > 0; v++)
        if (!r->values[v].is_output && s->bytes[r->values[v].value] > x->most) return true;
    return false;
}

/* Whether v is made in tiles only. */
static bool is_tiled(const ot_plan *p, ot_id v)
{
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t i = p->regions[k].n_inputs; i < p->regions[k].n_values; i++)
            if (p->regions[k].values[i].value == v) return !p->regions[k].values[i].is_output;
    return false;
}

ot_id ot_limit_left(const ot_limit *x, const ot_plan *p)
{
    for (uint32_t k = 0; k < x->n_large; k++)
        if (!is_tiled(p, x->large[k])) return x->large[k];
    return OT_NONE;
}

/* What a reader by itself does to v, where v is read later, too, and both are in one region. */
static ot_why reduces(const ot_node *n)
{
    const ot_access_kind kind = ot_op_access(n->op);
    return kind == OT_ACC_GLOBALPOOL ? OT_WHY_GLOBAL_POOL
           : kind == OT_ACC_REDUCE   ? OT_WHY_REDUCE
                                     : OT_WHY_NONE;
}

/* n reads or makes a tensor that is too large: what is computed of a pooled value is not in the
 * way of what is not. */
static bool touches_large(const ot_seq *s, const ot_node *n, int64_t most)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && s->act[n->in[k]] && s->bytes[n->in[k]] > most) return true;
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE && s->bytes[n->out[k]] > most) return true;
    return false;
}

/* The node that keeps v whole, and why: its maker, a reader that needs all of it, or one on the
 * way from the first to the last of them, which must be in one region. *why OT_WHY_NONE: none of
 * them. */
static ot_status culprit(const ot_seq *s, const ot_plan *p, ot_id v, int64_t most, ot_id *node,
                         ot_why *why)
{
    const ot_value *x = &s->g->values[v];
    *node = x->producer;
    OT_TRY(ot_barrier_reason(s, x->producer, why));
    for (uint32_t k = 0; k < x->n_uses && *why == OT_WHY_NONE; k++) {
        *node = x->uses[k];
        if (s->pos[*node] != OT_NONE) OT_TRY(ot_barrier_reason(s, *node, why));
    }
    for (uint32_t k = 0; k < p->n_barriers && *why == OT_WHY_NONE;
         k++) /* where the region before it ends */
        for (uint32_t u = 0; u < x->n_uses; u++)
            if (x->uses[u] == p->barriers[k].node)
                *node = x->uses[u], *why = p->barriers[k].reason.why;
    for (uint32_t k = 0; k < x->n_uses && *why == OT_WHY_NONE; k++)
        if (s->pos[x->uses[k]] != OT_NONE && s->pos[x->uses[k]] < s->last[v])
            *node = x->uses[k], *why = reduces(&s->g->nodes[*node]);
    for (uint32_t at = s->def[v] + 1;
         at < s->last[v] && at < s->n && s->last[v] != OT_NONE && *why == OT_WHY_NONE; at++) {
        *node = s->node[at];
        if (touches_large(s, &s->g->nodes[*node], most)) OT_TRY(ot_barrier_reason(s, *node, why));
    }
    return OT_OK;
}

/* Any other reason that the plan has for it. */
static ot_why refusal(const ot_seq *s, const ot_plan *p, ot_id v)
{
    for (uint32_t k = 0; k < p->n_refused; k++)
        for (uint32_t i = 0; i < p->refused[k].n; i++)
            if (p->refused[k].nodes[i] == s->g->values[v].producer &&
                p->refused[k].reason.why != OT_WHY_LOSES)
                return p->refused[k].reason.why;
    return OT_WHY_TENSOR_LIMIT;
}

ot_status ot_limit_fail(const ot_limit *x, const ot_seq *s, const ot_plan *p)
{
    const ot_graph *g = s->g;
    ot_id left = OT_NONE, node = OT_NONE;
    uint32_t n_left = 0;
    ot_why why = OT_WHY_NONE;
    for (uint32_t k = 0; k < x->n_large; k++) {
        if (is_tiled(p, x->large[k])) continue;
        n_left++;
        if (why != OT_WHY_NONE) continue;
        left = x->large[k];
        OT_TRY(culprit(s, p, left, x->most, &node, &why));
    }
    if (why == OT_WHY_NONE) {
        left = ot_limit_left(x, p);
        node = g->values[left].producer;
        why = refusal(s, p, left);
    }
    char more[64] = "", a[64], b[64];
    if (n_left > 1) snprintf(more, sizeof more, ", and %u tensors more are too large", n_left - 1);
    const ot_node *n = &g->nodes[node];
    bool named = n->name && *n->name;
    return ot_fail(g->model->diag, OT_E_BUDGET,
                   "max tensor cannot be kept: '%.200s' takes %s, %s are allowed%s: node "
                   "%s'%.200s' (%s): %s",
                   g->values[left].name, ot_format_exact_bytes(s->bytes[left], a, sizeof a),
                   ot_format_limit(x->most, b, sizeof b), more, named ? "" : "making ",
                   named ? n->name : g->values[n->out[0]].name, n->op_type,
                   ot_reason_sentence(why));
}
