/* The model for another size: two walks, and what every node is asked in the second. See
 * other_size.h.
 *
 * A node whose shape rule fails at the new size gets a reason that names what did not move: the
 * constant, the input that kept its size, or the node above it that makes a fixed extent.
 */
#include "other_size.h"

#include <stdarg.h>

/* ---- what the rules ask ---- */

ot_status(ot_size_refuse)(ot_infer *c, const char *fmt, ...)
{
    char text[OT_DIAG_MAX], node[OT_DIAG_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ot_fail(c->g->model->diag, OT_E_USAGE, "--shape: %.400s: %s",
                   ot_shape_node_text(c, node, sizeof node), text);
}

bool ot_size_moved(const ot_infer *c, ot_id id, int32_t a)
{
    if (id == OT_NONE) return false;
    const ot_value *v = &c->g->values[id];
    const ot_was *was = &c->other->was[id];
    if (a < 0 || a >= v->rank || a >= was->rank) return false;
    return v->dims[a] >= 0 && was->dims[a] >= 0 && v->dims[a] != was->dims[a];
}

bool ot_size_any_moved(const ot_infer *c, ot_id id)
{
    if (id == OT_NONE) return false;
    const ot_value *v = &c->g->values[id];
    if (v->rank != c->other->was[id].rank) return true;
    for (int32_t a = 0; a < v->rank; a++)
        if (ot_size_moved(c, id, a)) return true;
    return false;
}

bool ot_size_is_gone(const ot_infer *c, int64_t extent)
{
    for (uint32_t k = 0; k < c->other->n_gone; k++)
        if (c->other->gone[k] == extent) return true;
    return false;
}

static void add_gone(ot_other_size *o, int64_t extent)
{
    for (uint32_t k = 0; k < o->n_gone; k++)
        if (o->gone[k] == extent) return;
    if (o->n_gone < OT_GONE_MAX && extent > 1) o->gone[o->n_gone++] = extent;
}

ot_size_list ot_size_list_of(const ot_infer *c, const char *attr, uint32_t k)
{
    ot_size_list l = {.what = "attribute", .name = attr};
    size_t n = 0;
    const int64_t *ints = attr == NULL ? NULL : ot_attr_ints(c->n, attr, &n);
    if (ints != NULL && n <= OT_KNOWN_MAX)
        return (ot_size_list){true, (uint32_t)n, ints, ints, NULL, attr, "attribute"};
    if (k >= c->n->n_in || c->n->in[k] == OT_NONE) return l;
    const ot_value *v = &c->g->values[c->n->in[k]];
    const ot_known *known = ot_shape_known(c, k);
    const ot_was *was = &c->other->was[c->n->in[k]];
    l = (ot_size_list){.given = true, .what = "operand", .name = v->name};
    if (known == NULL || known->i == NULL) return l;
    l.n = known->n;
    l.now = known->i;
    l.ok = known->ok;
    l.was = v->is_const ? known->i : was->known_n == known->n ? was->known : NULL;
    return l;
}

bool ot_size_item(const ot_size_list *l, uint32_t e, int64_t *out)
{
    if (l->now == NULL || e >= l->n || (l->ok != NULL && !l->ok[e])) return false;
    *out = l->now[e];
    return true;
}

/* An element whose old value is not known counts as fixed: nothing shows that it follows the size.
 */
bool ot_size_fixed(const ot_size_list *l, uint32_t e)
{
    int64_t now;
    return ot_size_item(l, e, &now) && (l->was == NULL || l->was[e] == now);
}

/* ---- why a rule fails at the new size ---- */

/* "[1,64,32]" of a value now. */
static const char *dims_text(const ot_value *v, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = '\0';
    for (int32_t k = 0; k < v->rank && at < size; k++) {
        int w = snprintf(buf + at, size - at, "%s%lld", k ? "," : "[", (long long)v->dims[k]);
        at += w < 0 ? 0 : (size_t)w;
    }
    if (at < size) snprintf(buf + at, size - at, v->rank > 0 ? "]" : "[]");
    return buf;
}

/* The operand that makes its output's extents, of operators that have one; OT_NONE: none. */
static ot_id shape_operand(const ot_node *n)
{
    uint32_t k = 1;
    switch ((int)n->op) {
    case OT_OP_Reshape:
    case OT_OP_Expand:
    case OT_OP_Tile: break;
    case OT_OP_ConstantOfShape: k = 0; break;
    case OT_OP_Resize: k = n->n_in > 3 && n->in[3] != OT_NONE ? 3 : n->n_in > 2 ? 2 : 1; break;
    default: return OT_NONE;
    }
    return k < n->n_in ? n->in[k] : OT_NONE;
}

/* What fixes the extents of v, which did not move, into text; false when nothing is found. */
static bool blame_value(const ot_infer *c, ot_id id, char *text, size_t size)
{
    const ot_graph *g = c->g;
    char dims[320];
    for (uint32_t steps = 0; steps <= g->n_nodes; steps++) {
        const ot_value *v = &g->values[id];
        if (v->is_const || v->init != NULL) {
            snprintf(text, size, "the constant '%.200s' of shape %s has the old size baked in",
                     v->name, dims_text(v, dims, sizeof dims));
            return true;
        }
        if (v->producer == OT_NONE) {
            snprintf(text, size, "input '%.200s' keeps its size %s: give it a --shape, too",
                     v->name, dims_text(v, dims, sizeof dims));
            return v->is_input;
        }
        const ot_node *n = &g->nodes[v->producer];
        ot_id shape = shape_operand(n), up = OT_NONE;
        if (shape != OT_NONE && (g->values[shape].is_const || !c->other->depends[shape])) {
            snprintf(text, size, "node '%.200s' (%s) makes %s, which '%.200s' has baked in",
                     n->name, n->op_type, dims_text(v, dims, sizeof dims), g->values[shape].name);
            return true;
        }
        for (uint32_t k = 0; k < n->n_in && up == OT_NONE; k++) {
            ot_id in = n->in[k];
            if (in != OT_NONE && g->values[in].rank >= 1 && !ot_size_any_moved(c, in) &&
                !g->values[in].is_const)
                up = in;
        }
        for (uint32_t k = 0; k < n->n_in && up == OT_NONE; k++)
            if (n->in[k] != OT_NONE && g->values[n->in[k]].rank >= 1 &&
                !ot_size_any_moved(c, n->in[k]))
                up = n->in[k];
        if (up == OT_NONE || up == id) return false;
        id = up;
    }
    return false;
}

/* The rule of the running node failed: tell what did not move with the rest. */
static ot_status refuse_by_rule(ot_infer *c)
{
    char text[600];
    const char *rule = c->other->rule[0] ? c->other->rule : "its shapes do not fit";
    for (int constant = 1; constant >= 0; constant--)
        for (uint32_t k = 0; k < c->n->n_in; k++) {
            ot_id in = c->n->in[k];
            if (in == OT_NONE || ot_size_any_moved(c, in)) continue;
            bool is_const = c->g->values[in].is_const;
            if (is_const == (constant == 1) && blame_value(c, in, text, sizeof text))
                return ot_size_refuse(c, "%.350s at the new size: %s", rule, text);
        }
    return ot_size_refuse(c, "%.700s at the new size", rule);
}

/* ---- one node of the second walk ---- */

bool ot_size_depends(const ot_infer *c)
{
    if (c->other == NULL) return false;
    for (uint32_t k = 0; k < c->n->n_in; k++)
        if (c->n->in[k] != OT_NONE && c->other->depends[c->n->in[k]]) return true;
    for (uint32_t k = 0; k < c->n->n_captured; k++)
        if (c->other->depends[c->n->captured[k]]) return true;
    return false;
}

bool ot_size_note(ot_infer *c, const char *text)
{
    if (!ot_size_depends(c)) return false;
    snprintf(c->other->rule, sizeof c->other->rule, "%s", text);
    return true;
}

/* What the file says of the outputs is of the old size. */
static ot_status forget_outputs(ot_infer *c)
{
    for (uint32_t k = 0; k < c->n->n_out; k++)
        if (c->n->out[k] != OT_NONE) OT_TRY(ot_value_set_shape(c->g, c->n->out[k], -1, NULL));
    return OT_OK;
}

ot_status ot_size_check(ot_infer *c, ot_status by_rule)
{
    bool has_rule = c->n->op == OT_OP_OPAQUE ? ot_shape_extra_rule(c->n) != NULL
                                             : ot_shape_rule_of(c->n->op) != NULL;
    for (uint32_t k = 0; k < c->n->n_attrs; k++)
        if (c->n->attrs[k].kind == OT_ATTR_GRAPH) has_rule = false;
    if (!has_rule)
        return ot_size_refuse(c, c->n->op != OT_OP_OPAQUE || c->n->n_captured > 0
                                     ? "it has a body, which is not looked into: whether that "
                                       "takes another size is not known"
                                     : "the operator is not known to this tool: whether it takes "
                                       "another size is not known");
    OT_TRY(ot_size_rule(c));
    if (by_rule != OT_OK) return refuse_by_rule(c);
    c->other->rule[0] = '\0';
    return forget_outputs(c);
}

/* Whether an output of the node holds positions, given that operand k does. */
static bool passes_index(const ot_node *n, uint32_t k)
{
    switch ((int)n->op) {
    case OT_OP_Shape:
    case OT_OP_Size: return false;
    case OT_OP_Gather:
    case OT_OP_GatherElements:
    case OT_OP_GatherND:
    case OT_OP_OneHot: return k == 0;
    case OT_OP_ScatterElements:
    case OT_OP_Scatter:
    case OT_OP_ScatterND: return k != 1;
    default: return true;
    }
}

/* Positions along an axis that moved come out at output k. */
static bool makes_index(const ot_infer *c, uint32_t k)
{
    const ot_node *n = c->n;
    switch ((int)n->op) {
    case OT_OP_ArgMax:
    case OT_OP_ArgMin: {
        const ot_value *x = ot_shape_ranked(c, 0);
        int64_t axis = ot_attr_int(n, "axis", 0);
        return x != NULL && ot_size_moved(c, n->in[0], (int32_t)(axis < 0 ? axis + x->rank : axis));
    }
    case OT_OP_TopK:
    case OT_OP_Unique: return k > 0;
    case OT_OP_MaxPool: return k == 1;
    case OT_OP_NonZero:
    case OT_OP_NonMaxSuppression: return true;
    default: break;
    }
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != OT_NONE && c->other->index[n->in[i]] && passes_index(n, i)) return true;
    return false;
}

static bool fully_known(int32_t rank, const int64_t *d)
{
    for (int32_t k = 0; k < rank; k++)
        if (d[k] < 0) return false;
    return rank >= 0;
}

static ot_status check_output(ot_infer *c, ot_id id)
{
    const ot_value *v = &c->g->values[id];
    const ot_was *was = &c->other->was[id];
    if (!v->is_tensor)
        return ot_size_refuse(
            c, "'%.200s' is no tensor: what it holds at the new size is not known", v->name);
    if (fully_known(was->rank, was->dims) && !fully_known(v->rank, v->dims))
        return ot_size_refuse(c, "the shape of '%.200s' does not follow from the new size",
                              v->name);
    if (was->rank >= 0 && v->rank >= 0 && v->rank != was->rank)
        return ot_size_refuse(c, "'%.200s' has rank %d at the new size, %d at the old", v->name,
                              v->rank, was->rank);
    for (int32_t a = 0; a < v->rank && a < was->rank; a++) {
        if (v->dims[a] == 0 && was->dims[a] > 0)
            return ot_size_refuse(c, "nothing is left of axis %d of '%.200s' at the new size", a,
                                  v->name);
        if (ot_size_moved(c, id, a)) add_gone(c->other, was->dims[a]);
    }
    return OT_OK;
}

ot_status ot_size_check_outputs(ot_infer *c)
{
    for (uint32_t k = 0; k < c->n->n_out; k++) {
        ot_id id = c->n->out[k];
        if (id == OT_NONE) continue;
        c->other->depends[id] = true;
        c->other->index[id] = makes_index(c, k);
        OT_TRY(check_output(c, id));
    }
    return OT_OK;
}

/* ---- the two walks ---- */

bool ot_size_is_other(const ot_graph *g, const ot_shape_binding *bind, size_t n_bind)
{
    for (size_t k = 0; k < n_bind; k++) {
        const ot_shape_binding *b = &bind[k];
        ot_id id = ot_value_find(g, b->input);
        if (!b->replace || id == OT_NONE) continue;
        const ot_value *v = &g->values[id];
        if (!v->is_input || v->init != NULL || !v->is_tensor || v->rank < 0 ||
            (uint32_t)v->rank != b->rank)
            continue;
        for (uint32_t a = 0; a < b->rank; a++)
            if (v->dims[a] >= 0 && v->dims[a] != b->dims[a]) return true;
    }
    return false;
}

/* What the file fixes, and bindings where it does not. */
static ot_status old_bindings(const ot_graph *g, const ot_shape_binding *bind, size_t n_bind,
                              ot_arena *a, ot_shape_binding **out)
{
    ot_shape_binding *old = OT_NEW_N(a, ot_shape_binding, n_bind + 1);
    *out = old;
    if (old == NULL) return ot_fail_nomem(g->model->diag);
    for (size_t k = 0; k < n_bind; k++) {
        old[k] = bind[k];
        ot_id id = ot_value_find(g, bind[k].input);
        /* refused by the walk */
        if (id == OT_NONE || g->values[id].rank != (int32_t)bind[k].rank) continue;
        int64_t *dims = ot_memdup(a, bind[k].dims, bind[k].rank * sizeof *dims);
        if (dims == NULL) return ot_fail_nomem(g->model->diag);
        for (uint32_t x = 0; x < bind[k].rank; x++)
            if (g->values[id].dims[x] >= 0) dims[x] = g->values[id].dims[x];
        old[k].dims = dims;
    }
    return OT_OK;
}

static ot_status remember(const ot_graph *g, ot_arena *a, ot_other_size *o)
{
    o->was = OT_NEW_N(a, ot_was, g->n_values + 1u);
    o->depends = OT_NEW_N(a, bool, g->n_values + 1u);
    o->index = OT_NEW_N(a, bool, g->n_values + 1u);
    if (o->was == NULL || o->depends == NULL || o->index == NULL)
        return ot_fail_nomem(g->model->diag);
    for (ot_id id = 0; id < g->n_values; id++) {
        const ot_value *v = &g->values[id];
        ot_was *w = &o->was[id];
        *w = (ot_was){.rank = v->rank,
                      .known = v->known,
                      .known_floats = v->known_floats,
                      .known_n = v->known_n};
        if (v->rank > 0) w->dims = ot_memdup(a, v->dims, (size_t)v->rank * sizeof *v->dims);
        if (v->rank > 0 && w->dims == NULL) return ot_fail_nomem(g->model->diag);
    }
    return OT_OK;
}

/* Inputs whose extents move are where it begins. */
static void mark_inputs(const ot_graph *g, const ot_shape_binding *bind, size_t n_bind,
                        ot_other_size *o)
{
    for (size_t k = 0; k < n_bind; k++) {
        ot_id id = ot_value_find(g, bind[k].input);
        if (id == OT_NONE || o->was[id].rank != (int32_t)bind[k].rank) continue;
        for (uint32_t a = 0; a < bind[k].rank; a++) {
            if (o->was[id].dims[a] < 0 || o->was[id].dims[a] == bind[k].dims[a]) continue;
            o->depends[id] = true;
            add_gone(o, o->was[id].dims[a]);
        }
    }
    o->n_gone_inputs = o->n_gone;
}

/* Two bindings of one input (an array's, and the user's) say the same. */
static ot_status check_twice(const ot_graph *g, const ot_shape_binding *bind, size_t n_bind)
{
    for (size_t k = 0; k < n_bind; k++)
        for (size_t j = 0; j < k; j++) {
            const ot_shape_binding *a = &bind[j], *b = &bind[k];
            if (strcmp(a->input, b->input) != 0) continue;
            for (uint32_t x = 0; x < b->rank; x++)
                if (a->rank != b->rank || a->dims[x] != b->dims[x])
                    return ot_fail(g->model->diag, OT_E_USAGE,
                                   "--shape %s: dim %u is %lld, but %lld as well", b->input, x,
                                   (long long)b->dims[x],
                                   (long long)(x < a->rank ? a->dims[x] : 0));
        }
    return OT_OK;
}

static ot_status infer_both(ot_graph *g, const ot_shape_binding *bind, size_t n_bind, ot_arena *a)
{
    ot_shape_binding *old;
    ot_other_size *o = OT_NEW(a, ot_other_size);
    if (o == NULL) return ot_fail_nomem(g->model->diag);
    OT_TRY(check_twice(g, bind, n_bind));
    OT_TRY(old_bindings(g, bind, n_bind, a, &old));
    OT_TRY(ot_infer_sized(g, old, n_bind, NULL));
    OT_TRY(remember(g, a, o));
    mark_inputs(g, bind, n_bind, o);
    OT_TRY(ot_infer_sized(g, bind, n_bind, o));
    g->model->resized = true;
    return OT_OK;
}

ot_status ot_size_infer(ot_graph *g, const ot_shape_binding *bind, size_t n_bind)
{
    ot_arena *a = ot_arena_new();
    if (a == NULL) return ot_fail_nomem(g->model->diag);
    ot_status s = infer_both(g, bind, n_bind, a);
    ot_arena_free(a);
    return s;
}
