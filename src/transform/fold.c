/* Fold shape arithmetic that would keep a tiled value alive.
 *
 *   x (made inside a region) --> Shape --> Gather --> Concat --> Reshape
 *
 * Shape reads x, but its contents are known. Without folding, x would have to be a whole tensor
 * again just to be asked for its shape. Every static node that reads a value made in a region is
 * replaced by a constant.
 */
#include "transform_internal.h"

#include "ops/dynamic_dims.h"

/* Before IR 4 a constant that is no input is written as a Constant node, which before opset 9
 * holds floating point only: the contents as float64, and a Cast. */
static bool must_cast(const ot_graph *g) { return g->model->ir_version < 4 && g->model->opset < 9; }

static ot_status cast_known(ot_graph *g, ot_id v)
{
    ot_arena *a = g->model->arena;
    const ot_value x = g->values[v];
    ot_tensor *t = OT_NEW(a, ot_tensor);
    double *data = ot_alloc_n(a, x.known_n + 1u, sizeof *data);
    const char *base = ot_format(a, "tile/const/%s", x.name);
    if (!t || !data || !base) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < x.known_n; k++)
        data[k] = x.known ? (double)x.known[k] : x.known_floats[k];
    *t = (ot_tensor){.dtype = OT_F64,
                     .rank = (uint32_t)x.rank,
                     .dims = x.dims,
                     .data = data,
                     .bytes = x.known_n * sizeof *data};
    const char *plain = ot_fresh_name(g->model, base), *constant = ot_fresh_name(g->model, base),
               *cast = ot_fresh_name(g->model, base);
    if (!plain || !constant || !cast) return ot_fail_nomem(g->model->diag);
    ot_attr value = ot_mk_tensor("value", t), to = ot_mk_int("to", x.dtype);
    ot_id from = ot_value_new(g, plain, OT_F64, x.rank, x.dims);
    if (from == OT_NONE) return ot_fail_nomem(g->model->diag);
    ot_id made = ot_node_new(
        g, &(ot_node_def){
               .op = "Constant", .name = constant, .out = {&from, 1}, .attrs = {&value, 1}});
    ot_id end = made == OT_NONE ? OT_NONE
                                : ot_node_new(g, &(ot_node_def){.op = "Cast",
                                                                .name = cast,
                                                                .in = {&from, 1},
                                                                .out = {&v, 1},
                                                                .attrs = {&to, 1}});
    if (end == OT_NONE) return ot_fail_nomem(g->model->diag);
    g->values[from].is_const = g->values[v].is_const = true;
    g->nodes[made].is_static = g->nodes[end].is_static = true;
    return OT_OK;
}

ot_status rw_fold_value(ot_graph *g, ot_id id)
{
    ot_value *v = &g->values[id];
    if (must_cast(g)) return cast_known(g, id);
    v->init = ot_known_tensor(g->model->arena, v);
    if (!v->init) return ot_fail_nomem(g->model->diag);
    v->is_const = true;
    v->proto = NULL;
    return OT_OK;
}

/* What a region makes, and what static nodes that stay compute of it. */
typedef enum origin {
    ELSEWHERE,
    INSIDE,  /* is no more once the region is written */
    OUTPUT,  /* of a region */
    COMPUTED /* there once the region has run: regions that read it might wait for themselves */
} origin;

static origin *origins_of(const ot_graph *g, const ot_plan *p)
{
    origin *from = ot_alloc_n(p->arena, g->n_values + 1u, sizeof *from);
    for (uint32_t k = 0; from && k < p->n_regions; k++)
        for (uint32_t v = p->regions[k].n_inputs; v < p->regions[k].n_values; v++)
            from[p->regions[k].values[v].value] = p->regions[k].values[v].is_output ? OUTPUT
                                                                                    : INSIDE;
    return from;
}

/* Static nodes behind the regions' outputs, which may stay where no region waits for them that is
 * itself what they wait for:
 *
 *     region: x --> a --> y ----------> c            y is joined from all tiles, and every tile
 *                         |             |            waits for s: a cycle
 *                         '--> Shape --> s --> Reshape of a weight
 */
typedef struct behind {
    const uint32_t *of; /* [n_nodes] the region of each node; OT_NONE: none */
    uint32_t *after;  /* [n_values] 1 + the last region whose output it is computed from; 0: none */
    uint32_t *before; /* [n_values] the first region that waits for it; OT_NONE: none */
} behind;

/* NULL when memory ran out. */
static const uint32_t *regions_of(const ot_graph *g, const ot_plan *p)
{
    uint32_t *of = OT_NEW_N(p->arena, uint32_t, g->n_nodes + 1u);
    if (!of) return NULL;
    memset(of, 0xff, g->n_nodes * sizeof *of);
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t i = 0; i < p->regions[k].n_nodes; i++) of[p->regions[k].nodes[i].node] = k;
    return of;
}

static bool behind_new(const ot_graph *g, const ot_plan *p, behind *b)
{
    b->of = regions_of(g, p);
    b->after = OT_NEW_N(p->arena, uint32_t, g->n_values + 1u);
    b->before = OT_NEW_N(p->arena, uint32_t, g->n_values + 1u);
    if (!b->of || !b->after || !b->before) return false;
    memset(b->before, 0xff, g->n_values * sizeof *b->before);
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t v = p->regions[k].n_inputs; v < p->regions[k].n_values; v++)
            if (p->regions[k].values[v].is_output) b->after[p->regions[k].values[v].value] = k + 1;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[g->order[k]];
        const uint32_t own = b->of[g->order[k]];
        uint32_t first = own;
        for (uint32_t o = 0; o < n->n_out && own == OT_NONE; o++)
            if (n->out[o] != OT_NONE && b->before[n->out[o]] < first) first = b->before[n->out[o]];
        for (uint32_t j = 0; j < n->n_in; j++)
            if (n->in[j] != OT_NONE && first < b->before[n->in[j]]) b->before[n->in[j]] = first;
    }
    return true;
}

/* What n computes comes after some region that reads it. Notes what its results wait for. */
static bool waits_for_reader(const ot_graph *g, const behind *b, const ot_node *n)
{
    uint32_t after = 0;
    bool waits = false;
    if (b->of[n - g->nodes] != OT_NONE) return false; /* of regions, their outputs are noted */
    for (uint32_t j = 0; j < n->n_in; j++)
        if (n->in[j] != OT_NONE && b->after[n->in[j]] > after) after = b->after[n->in[j]];
    for (uint32_t o = 0; o < n->n_out; o++) {
        if (n->out[o] == OT_NONE) continue;
        b->after[n->out[o]] = after;
        /* by region after - 1, or one before it */
        waits |= b->before[n->out[o]] < after;
    }
    return waits;
}

/* requires ORDER, SHAPES and a plan. keeps SHAPES, breaks ORDER and USES. Fails: OT_E_NOMEM,
 * OT_E_INPUT when a reader cannot be folded (the planner then should have made the value an
 * output). */
ot_status ot_fold_static(ot_graph *g, const ot_plan *p)
{
    origin *from = origins_of(g, p);
    behind b;
    if (!from || !behind_new(g, p, &b)) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        bool reads[COMPUTED + 1] = {false};
        const bool waits = waits_for_reader(g, &b, n);
        if (!n->is_static || n->dead) continue;
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i] != OT_NONE) reads[from[n->in[i]]] = true;
        const bool needs = reads[INSIDE] || reads[COMPUTED] || waits ||
                           (reads[OUTPUT] && g->model->dynamic_dims);
        if (!ot_static_foldable(g, n)) {
            if (reads[INSIDE])
                return ot_fail(g->model->diag, OT_E_INPUT, "node '%s' (%s): cannot be folded",
                               n->name, n->op_type);
            for (uint32_t o = 0; o < n->n_out && (needs || reads[OUTPUT]); o++)
                if (n->out[o] != OT_NONE) from[n->out[o]] = COMPUTED;
            continue;
        }
        if (!needs) continue;
        ot_id outs[8];
        uint32_t n_outs = n->n_out < 8 ? n->n_out : 8;
        memcpy(outs, n->out, n_outs * sizeof *outs);
        ot_node_remove(g, g->order[k]);
        for (uint32_t o = 0; o < n_outs; o++) {
            if (outs[o] == OT_NONE) continue;
            OT_TRY(rw_fold_value(g, outs[o]));
            b.after[outs[o]] = 0;
        }
    }
    return OT_OK;
}

/* requires SHAPES, ORDER and USES of both. keeps SHAPES, establishes ORDER and USES. Fails:
 * OT_E_NOMEM. */
ot_status ot_fold_dynamic(ot_graph *g, const ot_graph *planned)
{
    const ot_dynamic_dims *t = planned->model->dynamic_dims;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        const ot_node n = g->nodes[id];
        bool constant = true;
        if (id >= t->n_nodes || !t->foldable[id] || !planned->nodes[id].is_static) continue;
        for (uint32_t o = 0; o < n.n_out; o++)
            constant &= n.out[o] == OT_NONE || g->values[n.out[o]].is_const;
        if (constant) continue; /* computed when the model is loaded */
        const bool known = ot_static_foldable(g, &n);
        ot_node_remove(g, id);
        for (uint32_t o = 0; o < n.n_out && known; o++)
            if (n.out[o] != OT_NONE) OT_TRY(rw_fold_value(g, n.out[o]));
    }
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}
