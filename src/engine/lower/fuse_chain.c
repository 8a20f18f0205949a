/* Groups of element-wise nodes that become one chain (chain.h).
 *
 *   a = x + b        a group grows node by node; all it makes has one shape. It stands where its last node stood, so
 *   s = sigmoid(a)   a node may only join if nobody outside reads anything of the group before that place:
 *   y = a * s
 *   z = Conv(s)      fine (reads s after y)           a Conv(a) between s and y would end the group
 *
 * QuantizeLinear is such a node. DequantizeLinear is in no group: each chain that reads its result reads the 8-bit tensor and
 * computes it anew, so the float32 array is only made for others.
 */
#include "lower.h"

#define NODES_MAX 48

/* A group under way; `into` links groups that were joined to a larger one. */
typedef struct group {
    uint32_t into;             /* OT_NONE: it stands for itself */
    uint32_t units[NODES_MAX]; /* [n] in order */
    uint32_t n;
} group;

typedef struct work {
    lw_pass *l;
    group *groups; /* [n_groups] */
    uint32_t n_groups;
    uint32_t *of_unit; /* [n_units] group, or OT_NONE */
} work;

static uint32_t group_of(work *w, uint32_t unit)
{
    uint32_t g = unit == OT_NONE ? OT_NONE : w->of_unit[unit];
    while (g != OT_NONE && w->groups[g].into != OT_NONE) g = w->groups[g].into;
    return g;
}

static bool fits(const lw_pass *l, const lw_unit *u)
{
    const ot_node *n = u->nodes[0];
    if (u->kind != LW_NODE || u->n_out < 1 || u->out[0] == OT_NONE || u->step->n_bodies > 0) return false;
    if (n->op == OT_OP_Identity || n->op == OT_OP_Dropout || n->op == OT_OP_Constant || n->op == OT_OP_DequantizeLinear)
        return false;
    for (uint32_t k = 1; k < u->n_out; k++)
        if (u->step->out_slots[k]) return false;
    if (!ot_chain_takes(l->p->g, n)) return false;
    bool quantizes = n->op == OT_OP_QuantizeLinear, bytes = n->op == OT_OP_OPAQUE; /* scales and zero points are not looked at */
    for (uint32_t k = 0; k < u->n_in + 1u; k++) {
        ot_id v = k < u->n_in ? u->in[k] : u->out[0];
        if (v == OT_NONE || (quantizes && k > 0 && k < u->n_in) || (bytes && k % 3 && k < u->n_in)) continue;
        if (bytes && k + 2u >= u->n_in && k < u->n_in) continue;
        if (!l->v[v].is_static || l->v[v].slot->absent) return false;
        const ot_nd *a = &l->v[v].slot->fore;
        int64_t count;
        bool type = a->dtype == OT_F32 || a->dtype == OT_BOOL || bytes || (quantizes && k == u->n_in);
        if (!type || a->rank > 7 || !ot_nd_elems(a, &count) || count == 0) return false;
    }
    return true;
}

uint32_t lw_dequantizer(const lw_pass *l, ot_id v)
{
    uint32_t maker = v == OT_NONE ? OT_NONE : l->v[v].maker;
    if (maker == OT_NONE) return OT_NONE;
    const lw_unit *u = &l->units[maker];
    if (u->kind != LW_NODE || u->nodes[0]->op != OT_OP_DequantizeLinear || u->step->plan || !lw_is_f32(l, v)) return OT_NONE;
    ot_id bytes = u->in[0];
    if (bytes == OT_NONE || !l->v[bytes].is_static || l->v[bytes].slot->absent || !lw_same_dims(l, bytes, v)) return OT_NONE;
    return ot_chain_takes(l->p->g, u->nodes[0]) ? maker : OT_NONE;
}

/* Nodes that dequantize operands of the units, each once. */
static uint32_t dequantizers(const lw_pass *l, const uint32_t *units, uint32_t n, const ot_node **nodes)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < l->units[units[k]].n_in && count < OT_CHAIN_INPUTS; i++) {
            uint32_t at = lw_dequantizer(l, l->units[units[k]].in[i]);
            bool known = at == OT_NONE;
            for (uint32_t j = 0; j < count && !known; j++) known = nodes[j] == l->units[at].nodes[0];
            if (!known) nodes[count++] = l->units[at].nodes[0];
        }
    return count;
}

/* Does somebody outside of the members (and u itself) read v before unit u? */
static bool read_early(work *w, ot_id v, const uint32_t *into, uint32_t n_into, uint32_t u)
{
    const lw_value *x = &w->l->v[v];
    for (uint32_t k = 0; k < x->n_readers; k++) {
        uint32_t reader = w->l->readers[x->first + k], g;
        if (reader >= u) continue;
        g = group_of(w, reader);
        bool inside = false;
        for (uint32_t j = 0; j < n_into; j++) inside = inside || (g != OT_NONE && into[j] == g);
        if (!inside) return true;
    }
    return false;
}

/* Groups of the makers of u's operands that u may join, into list [n]. */
static uint32_t joinable(work *w, uint32_t u, uint32_t *list)
{
    const lw_unit *unit = &w->l->units[u];
    uint32_t n = 0, total = 1;
    for (uint32_t k = 0; k < unit->n_in && n < 8; k++) {
        ot_id v = unit->in[k];
        uint32_t g = v == OT_NONE ? OT_NONE : group_of(w, w->l->v[v].maker);
        bool known = g == OT_NONE || !lw_same_dims(w->l, v, unit->out[0]);
        for (uint32_t j = 0; j < n; j++) known = known || list[j] == g;
        if (known || total + w->groups[g].n > NODES_MAX) continue;
        total += w->groups[g].n;
        list[n++] = g;
    }
    bool again = true; /* a group that is left out may be the early reader of another */
    while (again) {
        again = false;
        for (uint32_t j = 0; j < n && !again; j++)
            for (uint32_t i = 0; i < w->groups[list[j]].n && !again; i++) {
                const lw_unit *member = &w->l->units[w->groups[list[j]].units[i]];
                if (!read_early(w, member->out[0], list, n, u)) continue;
                list[j] = list[--n];
                again = true;
            }
    }
    return n;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void join(work *w, uint32_t u, const uint32_t *list, uint32_t n)
{
    uint32_t g = n ? list[0] : w->n_groups++;
    group *to = &w->groups[g];
    if (n == 0) *to = (group){.into = OT_NONE};
    for (uint32_t k = 1; k < n; k++) {
        group *from = &w->groups[list[k]];
        memcpy(to->units + to->n, from->units, from->n * sizeof *from->units);
        to->n += from->n;
        from->into = g;
    }
    to->units[to->n++] = u;
    qsort(to->units, to->n, sizeof *to->units, by_number);
    w->of_unit[u] = g;
}

/* The chain of some units, as one unit; *made false: it holds more than a chain can. */
static ot_status make_chain(lw_pass *l, const uint32_t *units, uint32_t n, bool *made)
{
    const ot_node *nodes[NODES_MAX + OT_CHAIN_INPUTS];
    ot_id outputs[NODES_MAX];
    uint32_t n_out = 0, first = dequantizers(l, units, n, nodes);
    for (uint32_t k = 0; k < n; k++) {
        const lw_unit *u = &l->units[units[k]];
        const lw_value *x = &l->v[u->out[0]];
        bool outside = x->pinned;
        for (uint32_t r = 0; r < x->n_readers && !outside; r++) {
            bool inside = false;
            for (uint32_t j = 0; j < n; j++) inside = inside || units[j] == l->readers[x->first + r];
            outside = !inside;
        }
        nodes[first + k] = u->nodes[0];
        if (outside) outputs[n_out++] = u->out[0];
    }
    *made = false;
    if (n_out == 0 || n_out > OT_CHAIN_OUTPUTS) return OT_OK;
    ot_chain_spec spec = {l->p->g, nodes, first + n, outputs, n_out};
    const ot_chain *chain;
    ot_diag ignored = {0};
    ot_status st = ot_chain_new(l->a, &spec, &ignored, &chain);
    if (st == OT_E_NOMEM) return ot_fail_nomem(l->p->s->d);
    if (st != OT_OK) return OT_OK;
    const ot_id *in;
    uint32_t n_in = ot_chain_inputs(chain, &in);
    *made = true;
    return lw_merge(l, units, n, LW_CHAIN, in, n_in, outputs, n_out, (void *)(uintptr_t)chain);
}

ot_status lw_fuse_chain(lw_pass *l)
{
    work w = {.l = l};
    w.groups = OT_NEW_N(l->scratch, group, l->n_units + 1u);
    w.of_unit = OT_NEW_N(l->scratch, uint32_t, l->n_units + 1u);
    uint32_t list[8];
    if (!w.groups || !w.of_unit) return ot_fail_nomem(l->p->s->d);
    for (uint32_t u = 0; u < l->n_units; u++) w.of_unit[u] = OT_NONE;
    for (uint32_t u = 0; u < l->n_units; u++)
        if (fits(l, &l->units[u])) join(&w, u, list, joinable(&w, u, list));
    for (uint32_t g = 0; g < w.n_groups; g++) {
        const group *x = &w.groups[g];
        bool made;
        if (x->into != OT_NONE) continue;
        OT_TRY(make_chain(l, x->units, x->n, &made));
        for (uint32_t k = 0; !made && x->n > 1 && k < x->n; k++) {
            bool single;
            OT_TRY(make_chain(l, &x->units[k], 1, &single));
        }
    }
    return lw_drop_dequantized(l);
}
