/* Constants that the graph computes become initializers, equal ones one.
 *
 *   Shape --> ConstantOfShape --> ScatterND ... --> mask 1 --> Add        mask --> Add
 *   Shape --> ConstantOfShape --> ScatterND ... --> mask 2 --> Add   =>        '-> Add
 *
 * Runtimes compute them while they load the model, each for itself: what they make on the way
 * stays in the heap, and so do equal results (SwinIR: 900 MB for 8 MB of masks and biases).
 * Operators whose results are the same bits in every runtime are computed. Where rounding may
 * differ, so are those that round, as long as nothing behind them makes a step of that:
 *
 *   weights --> ReduceMean --> Sub --> Mul --> Conv       computed: another last bit, as in a Conv
 *   distances --> Log --> Mul --> Cast to int --> Gather  Log stays: another row of the table
 */
#include "transform.h"
#include "constant_ops.h"

#include "ops/ops.h"

/* bytes that nodes make while the model loads, in all */
#define LEAST     (INT64_C(4) << 20)
#define MADE_MOST (INT64_C(4) << 30)   /* they are made here, too */
#define MOST      (INT64_C(256) << 20) /* bytes of constants in the end, and of each on the way */

static bool is_exact(ot_op op) { return (ot_constant_op(op) & OT_CONSTANT_EXACT) != 0; }
static bool rounds(ot_op op) { return (ot_constant_op(op) & OT_CONSTANT_ROUNDS) != 0; }

static bool is_integer(ot_dtype t)
{
    return (t >= OT_U8 && t <= OT_I64) || t == OT_BOOL || t == OT_U32 || t == OT_U64;
}

static bool is_real(ot_dtype t) { return ot_dtype_is_real(t) || t == OT_F64; }

/* Of operators that are exact: this one is. Numbers outside of an integer's range become whatever
 * a runtime makes of them, sums in Range and of scattered elements come in its own order. */
static bool is_exact_here(const ot_graph *g, const ot_node *n)
{
    const ot_dtype from = n->n_in > 0 && n->in[0] != OT_NONE ? g->values[n->in[0]].dtype
                                                             : OT_DT_UNKNOWN,
                   to = n->n_out > 0 && n->out[0] != OT_NONE ? g->values[n->out[0]].dtype
                                                             : OT_DT_UNKNOWN;
    if (n->op == OT_OP_Cast)
        return (is_integer(from) || is_real(from)) &&
               (is_real(to) || to == OT_BOOL || (is_integer(to) && is_integer(from)));
    if (n->op == OT_OP_Range) return is_integer(to);
    if (n->op == OT_OP_ScatterND || n->op == OT_OP_ScatterElements)
        return ot_attr_find(n, "reduction") == NULL;
    return is_exact(n->op);
}

/* Its contents are in the file or follow from the shapes that the graph states. */
static bool is_leaf(const ot_value *v)
{
    return (v->init && !v->overridable) || v->known || v->known_floats;
}

/* A tensor that can be computed here and written as an initializer. */
static bool is_writable(const ot_value *v)
{
    int64_t bytes;
    return v->is_tensor && !v->is_output && v->dtype != OT_STRING && v->dtype != OT_DT_UNKNOWN &&
           ot_dtype_bits(v->dtype) >= 8 && ot_value_is_static(v) && ot_value_bytes(v, &bytes) &&
           bytes <= MOST;
}

/* Its results are near to one another where its inputs are, by operators that compute constants:
 * no comparison, no number of whole steps. */
static bool is_smooth(const ot_graph *g, const ot_node *n)
{
    switch (n->op) {
    case OT_OP_Ceil:
    case OT_OP_Equal:
    case OT_OP_Floor:
    case OT_OP_Greater:
    case OT_OP_GreaterOrEqual:
    case OT_OP_Less:
    case OT_OP_LessOrEqual:
    case OT_OP_Range: return false;
    case OT_OP_Cast: return n->out[0] != OT_NONE && is_real(g->values[n->out[0]].dtype);
    default: return is_exact(n->op) || rounds(n->op);
    }
}

/* Of operators that run: they may make a step of the last bit of a constant. */
static bool may_step(const ot_graph *g, const ot_node *n)
{
    switch (n->op) {
    case OT_OP_OPAQUE:
    case OT_OP_ArgMax:
    case OT_OP_ArgMin:
    case OT_OP_GridSample:
    case OT_OP_Mod:
    case OT_OP_NonMaxSuppression:
    case OT_OP_NonZero:
    case OT_OP_OneHot:
    case OT_OP_QLinearConv:
    case OT_OP_QLinearMatMul:
    case OT_OP_QuantizeLinear:
    case OT_OP_Resize:
    case OT_OP_RoiAlign:
    case OT_OP_Round:
    case OT_OP_Sign:
    case OT_OP_TopK:
    case OT_OP_Unique:
    case OT_OP_Upsample: return true;
    default:
        return n->n_captured > 0 || ((is_exact(n->op) || n->op == OT_OP_Cast) && !is_smooth(g, n));
    }
}

typedef struct finding {
    const ot_graph *g;
    bool *computed; /* [n_nodes] */
    bool *steps;    /* [n_values] something makes a step of its last bits; NULL: bits are kept */
} finding;

/* Nothing but constants leads to n, by operators of which any may be computed. */
static bool is_of_constants(const finding *x, const ot_node *n, const bool *constant)
{
    if (n->n_captured > 0 || n->n_out == 0 || !(is_exact(n->op) || rounds(n->op))) return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (n->in[k] == OT_NONE) continue;
        const ot_value *v = &x->g->values[n->in[k]];
        if (!is_leaf(v) && (v->producer == OT_NONE || !constant[v->producer])) return false;
    }
    return true;
}

/* x->steps, from the last nodes to the first. */
static ot_status find_steps(finding *x, ot_arena *a)
{
    const ot_graph *g = x->g;
    bool *constant = OT_NEW_N(a, bool, g->n_nodes + 1u);
    x->steps = OT_NEW_N(a, bool, g->n_values + 1u);
    if (!constant || !x->steps) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < g->n_order; k++)
        constant[g->order[k]] = is_of_constants(x, &g->nodes[g->order[k]], constant);
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[g->order[k]];
        bool steps = constant[g->order[k]] ? !is_smooth(g, n) : may_step(g, n);
        for (uint32_t j = 0; j < n->n_out && constant[g->order[k]]; j++)
            steps |= n->out[j] != OT_NONE && x->steps[n->out[j]];
        for (uint32_t j = 0; j < n->n_in && steps; j++)
            if (n->in[j] != OT_NONE) x->steps[n->in[j]] = true;
        for (uint32_t j = 0; j < n->n_captured; j++) x->steps[n->captured[j]] = true;
    }
    return OT_OK;
}

/* n rounds, which is no harm: to single precision or finer, and nothing makes a step of it. */
static bool rounds_here(const finding *x, const ot_node *n)
{
    if (!x->steps || !rounds(n->op)) return false;
    for (uint32_t k = 0; k < n->n_out; k++) {
        const ot_value *v = n->out[k] == OT_NONE ? NULL : &x->g->values[n->out[k]];
        if (v && ((v->dtype != OT_F32 && v->dtype != OT_F64) || x->steps[n->out[k]])) return false;
    }
    return true;
}

static bool computes(const finding *x, const ot_node *n)
{
    const ot_graph *g = x->g;
    bool leaf = n->n_out > 0;
    const bool exact = is_exact(n->op) && is_exact_here(g, n);
    if (!(exact || rounds_here(x, n)) || n->n_captured > 0) return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (n->in[k] == OT_NONE) continue;
        const ot_value *v = &g->values[n->in[k]];
        if (!is_leaf(v) && (v->producer == OT_NONE || !x->computed[v->producer])) return false;
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (n->out[k] == OT_NONE) continue;
        if (!is_writable(&g->values[n->out[k]])) return false;
        leaf = leaf && is_leaf(&g->values[n->out[k]]);
    }
    return !leaf; /* what is known needs no computing */
}

/* The contents of the file itself, by another name or shape. */
static bool is_view(const ot_graph *g, const ot_node *n)
{
    const bool moves = n->op == OT_OP_Identity || n->op == OT_OP_Reshape ||
                       n->op == OT_OP_Squeeze || n->op == OT_OP_Unsqueeze || n->op == OT_OP_Flatten;
    return n->op == OT_OP_Constant ||
           (moves && n->n_in > 0 && n->in[0] != OT_NONE && g->values[n->in[0]].init);
}

/* A node that runs, or that stays, reads v; no subgraph does, which would know it by its name. */
static bool is_wanted(const ot_graph *g, ot_id v, const bool *computed)
{
    bool read = false;
    for (uint32_t k = 0; k < g->values[v].n_uses; k++) {
        const ot_node *n = &g->nodes[g->values[v].uses[k]];
        for (uint32_t j = 0; j < n->n_captured; j++)
            if (n->captured[j] == v) return false;
        read |= !computed[g->values[v].uses[k]];
    }
    return read;
}

ot_status ot_find_constants(const ot_graph *g, bool bit_exact, ot_arena *a, ot_computed *out)
{
    int64_t made = 0, kept = 0, bytes;
    *out = (ot_computed){.nodes = OT_NEW_N(a, bool, g->n_nodes + 1u),
                         .values = OT_NEW_N(a, ot_id, g->n_values + 1u)};
    if (!out->nodes || !out->values) return ot_fail_nomem(g->model->diag);
    finding x = {.g = g, .computed = out->nodes};
    if (!bit_exact) OT_TRY(find_steps(&x, a));
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (!computes(&x, n)) continue;
        out->nodes[g->order[k]] = true;
        for (uint32_t j = 0; j < n->n_out; j++)
            if (n->out[j] != OT_NONE && ot_value_bytes(&g->values[n->out[j]], &bytes) &&
                n->op != OT_OP_Constant && !ot_add_i64(made, bytes, &made))
                made = INT64_MAX;
    }
    if (made < LEAST || made > MADE_MOST) return OT_OK;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        for (uint32_t j = 0; j < n->n_out && out->nodes[g->order[k]] && !is_view(g, n); j++) {
            const ot_id v = n->out[j];
            if (v == OT_NONE || !is_wanted(g, v, out->nodes)) continue;
            if (!ot_value_bytes(&g->values[v], &bytes) || bytes > MOST - kept) {
                out->n = 0;
                return OT_OK;
            }
            kept += bytes;
            out->values[out->n++] = v;
        }
    }
    return OT_OK;
}

/* An initializer in place of v. */
static ot_status new_initializer(ot_graph *g, const char *name, const ot_tensor *t, ot_id *out)
{
    const char *base = ot_format(g->model->arena, "tile/constant/%s", name),
               *fresh = base ? ot_fresh_name(g->model, base) : NULL;
    *out = fresh ? ot_value_new(g, fresh, t->dtype, (int32_t)t->rank, t->dims) : OT_NONE;
    if (*out == OT_NONE) return ot_fail_nomem(g->model->diag);
    g->values[*out].init = t;
    g->values[*out].is_const = true;
    return OT_OK;
}

/* What led to the constants alone goes; n_dropped: so many nodes. */
static ot_status drop_unread(ot_graph *g, const bool *computed, uint32_t *n_dropped)
{
    ot_arena *a = ot_arena_new();
    uint32_t *uses = a ? OT_NEW_N(a, uint32_t, g->n_values + 1u) : NULL;
    if (!uses) {
        ot_arena_free(a);
        return ot_fail_nomem(g->model->diag);
    }
    for (uint32_t k = 0; k < g->n_values; k++) uses[k] = g->values[k].n_uses;
    const uint32_t n_order = g->n_order;
    for (uint32_t k = n_order; k-- > 0;) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        bool read = n->n_captured > 0;
        for (uint32_t j = 0; j < n->n_out && !read; j++)
            read = n->out[j] != OT_NONE && (uses[n->out[j]] > 0 || g->values[n->out[j]].is_output);
        if (read || !(computed[id] || n->is_static)) continue;
        for (uint32_t j = 0; j < n->n_in; j++) {
            const ot_id v = n->in[j];
            bool again = v == OT_NONE; /* a node counts once for each value */
            for (uint32_t i = 0; i < j && !again; i++) again = n->in[i] == v;
            if (again || --uses[v] > 0) continue;
            if (g->values[v].init && !g->values[v].is_input && !g->values[v].is_output)
                g->values[v].removed = true;
        }
        ot_node_remove(g, id);
        (*n_dropped)++;
    }
    ot_arena_free(a);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}

ot_status ot_fold_constants(ot_graph *g, const ot_constants *c, uint32_t *n_dropped)
{
    *n_dropped = 0;
    for (uint32_t k = 0; k < c->computed.n; k++) {
        const char *name = g->values[c->computed.values[k]].name;
        ot_id v = OT_NONE;
        for (uint32_t j = 0; j < k && v == OT_NONE; j++)
            if (c->contents[j] == c->contents[k]) v = c->made[j];
        if (v == OT_NONE) OT_TRY(new_initializer(g, name, c->contents[k], &v));
        c->made[k] = v;
        OT_TRY(ot_replace_uses(g, c->computed.values[k], v));
    }
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    return drop_unread(g, c->computed.nodes, n_dropped);
}
