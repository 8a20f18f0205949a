/* Shape inference: the driver.
 *
 * One walk in topological order. For each node the operator's rule (shape_rules.c) proposes types
 * and shapes from the inputs; the proposal is merged with what the file states (value_info, an
 * earlier run) and stored; then small contents are evaluated (known.c), so that Shape -> Gather ->
 * Concat -> Reshape chains resolve on the way.
 *
 *   inferred   stated     stored      note
 *   4          4          4
 *   4          ?          4
 *   ?          4          ?           the file's word may be of another size than what runs
 *   ?          4          4           no rule, all operands known (believes_stated): "inexact"
 *   4          8          4           as runtimes do
 *
 * What the file states and is not followed is noted in the model, for one warning
 * (model.unfollowed), unless sizes were given. Inexactness spreads to readers. A violated rule is
 * reported only where all inputs are exact; elsewhere the outputs become unknown, since the file's
 * word is no proof of an error.
 *
 * Where a binding replaces extents that the file fixes, the walk is done twice (other_size.c):
 * with the file's own, and with the new ones, when every node that depends on them is examined
 * for constants that only fit the old.
 */
#include "onnx/import/model_io.h"
#include "dim_names.h"
#include "other_size.h"
#include "shape.h"
#include "tile_places.h"

#define BODY_DEPTH_MAX 64

static ot_status infer_graph(ot_graph *g, const ot_shape_binding *bind, size_t n_bind,
                             ot_other_size *other, uint32_t depth, bool bound);

/* "[1,3,?]" into buf; returns buf. */
static char *print_dims(int32_t rank, const int64_t *d, char *buf, size_t n)
{
    if (rank < 0) {
        snprintf(buf, n, "of any shape");
        return buf;
    }
    size_t at = (size_t)snprintf(buf, n, "[");
    for (int32_t k = 0; k < rank && at < n; k++) {
        const char *comma = k == 0 ? "" : ",";
        int w = d[k] < 0 ? snprintf(buf + at, n - at, "%s?", comma)
                         : snprintf(buf + at, n - at, "%s%lld", comma, (long long)d[k]);
        at += w < 0 ? 0 : (size_t)w;
    }
    if (at < n) snprintf(buf + at, n - at, "]");
    return buf;
}

/* ---- graph inputs and initializers ---- */

/* The names of the inputs that are fed, in quotes; the nearest to a word. */
static void list_inputs(const ot_graph *g, char *buf, size_t size, ot_nearest *near)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (v->init) continue;
        ot_nearest_try(near, v->name, strlen(v->name));
        if (at >= size) continue;
        int n = snprintf(buf + at, size - at, "%s'%s'", at ? ", " : "", v->name);
        at += n < 0 ? 0 : (size_t)n;
    }
    if (at >= size) memcpy(buf + size - 4, "...", 4);
}

ot_status ot_no_such_input(const ot_graph *g, const char *option, const char *name)
{
    char names[300], meant[120];
    const ot_id id = ot_value_find(g, name);
    if (id != OT_NONE && g->values[id].init)
        return ot_fail(g->model->diag, OT_E_USAGE,
                       "%s %.200s: the model has no input of that name (it is an initializer)",
                       option, name);
    ot_nearest near = ot_nearest_to(name, strlen(name));
    list_inputs(g, names, sizeof names, &near);
    return ot_fail(g->model->diag, OT_E_USAGE,
                   "%s %.200s: the model has no input of that name; it has %s%s", option, name,
                   *names ? names : "none", ot_nearest_hint(&near, "; ", meant, sizeof meant));
}

/* One --shape binding onto its graph input; `replace`: also onto fixed extents. Fails:
 * OT_E_USAGE, OT_E_NOMEM. */
static ot_status bind_input(ot_graph *g, const ot_shape_binding *b, bool replace)
{
    ot_diag *diag = g->model->diag;
    const char *option = b->option ? b->option : "--shape";
    ot_id id = ot_value_find(g, b->input);
    if (id == OT_NONE || !g->values[id].is_input || g->values[id].init != NULL)
        return ot_no_such_input(g, option, b->input);
    const ot_value *v = &g->values[id];
    if (!v->is_tensor)
        return ot_fail(diag, OT_E_USAGE, "%s %s: the input is not a tensor", option, b->input);
    char have[320];
    print_dims(v->rank, v->dims, have, sizeof have);
    if (b->rank > OT_RANK_MAX || (v->rank >= 0 && (uint32_t)v->rank != b->rank))
        return ot_fail(diag, OT_E_USAGE, "%s %s: %u dims given, the input has shape %s", option,
                       b->input, b->rank, have);
    for (uint32_t k = 0; k < b->rank; k++) {
        if (b->dims[k] < 0 || b->dims[k] > OT_SHAPE_DIM_MAX)
            return ot_fail(diag, OT_E_USAGE, "%s %s: dim %u is %lld, which is no extent", option,
                           b->input, k, (long long)b->dims[k]);
        if (v->rank >= 0 && v->dims[k] >= 0 && v->dims[k] != b->dims[k] && !replace)
            return ot_fail(diag, OT_E_USAGE, "%s %s: dim %u is %lld, but the input has shape %s",
                           option, b->input, k, (long long)b->dims[k], have);
    }
    return ot_value_set_shape(g, id, (int32_t)b->rank, b->dims);
}

/* Stated dims as they may be used: negative ones unknown, absurd ones refused. */
static ot_status clean_stated(ot_graph *g, ot_value *v)
{
    for (int32_t k = 0; k < v->rank; k++) {
        if (v->dims[k] > OT_SHAPE_DIM_MAX && (v->is_input || v->init != NULL))
            return ot_fail(g->model->diag, OT_E_INPUT,
                           "value '%s': dim %d is %lld, larger than 2^48", v->name, k,
                           (long long)v->dims[k]);
        if (v->dims[k] < 0 || v->dims[k] > OT_SHAPE_DIM_MAX) v->dims[k] = OT_DIM_UNKNOWN;
    }
    return OT_OK;
}

/* An outer value of a body: all that its definition in an enclosing graph says. */
static ot_status copy_outer(ot_infer *c, ot_id id)
{
    ot_value *v = &c->g->values[id];
    for (const ot_graph *up = c->g->parent; up != NULL; up = up->parent) {
        ot_id at = ot_value_find(up, v->name);
        if (at == OT_NONE) continue;
        const ot_value *def = &up->values[at];
        v->dtype = def->dtype;
        v->is_inferred = ot_shape_is_sure(up, def);
        v->is_const = def->is_const;
        v->known = def->known;
        v->known_floats = def->known_floats;
        v->known_n = def->known_n;
        if (def->known != NULL || def->known_floats != NULL)
            c->known[id] = (ot_known){
                .n = def->known_n, .valid = true, .i = def->known, .f = def->known_floats};
        else if (def->init && !def->overridable && !ot_known_of_tensor(c, def->init, &c->known[id]))
            return ot_fail_nomem(c->g->model->diag);
        return ot_value_set_shape(c->g, id, def->rank, def->dims);
    }
    return OT_OK;
}

/* What the branch of an If handed on stays known in a graph that had shapes, at the same size: a
 * copy has no file to read branches from. */
static void keep_taken(ot_infer *c, ot_id id)
{
    const ot_graph *g = c->g;
    const ot_value *v = &g->values[id];
    if (v->producer == OT_NONE || g->nodes[v->producer].op != OT_OP_If || !g->model->shaped ||
        c->lenient || c->bound || !(v->known || v->known_floats))
        return;
    c->known[id] = (ot_known){.n = v->known_n, .valid = true, .i = v->known, .f = v->known_floats};
}

/* Reset what this pass sets, take initializers' shapes and contents. */
static ot_status start_values(ot_infer *c)
{
    ot_graph *g = c->g;
    for (ot_id id = 0; id < g->n_values; id++) {
        ot_value *v = &g->values[id];
        keep_taken(c, id);
        v->known = NULL;
        v->known_floats = NULL;
        v->known_n = 0;
        v->is_const = false;
        v->is_inferred = false;
        OT_TRY(clean_stated(g, v));
        if (v->is_outer) OT_TRY(copy_outer(c, id));
        if (v->init == NULL || v->producer != OT_NONE) continue;
        v->dtype = v->init->dtype;
        if (v->init->rank <= OT_RANK_MAX)
            OT_TRY(ot_value_set_shape(g, id, (int32_t)v->init->rank, v->init->dims));
        OT_TRY(clean_stated(g, v));
        if (v->overridable) continue;
        v->is_const = true;
        ot_known *k = &c->known[id];
        if (!ot_known_of_tensor(c, v->init, k)) return ot_fail_nomem(g->model->diag);
        if (k->valid && k->i != NULL) {
            v->known = k->i;
            v->known_n = k->n;
        }
    }
    return OT_OK;
}

/* ---- one node ---- */

static bool fully_known(int32_t rank, const int64_t *d)
{
    if (rank < 0) return false;
    for (int32_t k = 0; k < rank; k++)
        if (d[k] < 0) return false;
    return true;
}

/* Whether extents that are stated of what n makes count where inference knows none. Those of the
 * file may be of the one size that it was made with: they do behind an operator without a rule,
 * all of whose operands are known to the last extent. Those of the rewriter's bodies, and of graphs
 * that have had shapes before, are our own, but of operators that are not known. */
static bool believes_stated(const ot_infer *c)
{
    const ot_node *n = c->n;
    if (c->impossible)
        return false; /* text may state what cannot be made: a file is read without */
    if (strcmp(n->domain, OT_TILE_DOMAIN) == 0) return true;
    const bool ours = !c->lenient && (c->g->parent != NULL || c->g->model->shaped);
    if (ours && (n->op != OT_OP_OPAQUE || ot_access_known(n) || n->calls_function)) return true;
    if (n->op != OT_OP_OPAQUE && (c->lenient || ot_shape_rule_of(n->op) != NULL)) return false;
    if (!n->domain[0] && ot_access_known(n))
        return false; /* a rule beside ops.def (shape_extra.c) */
    for (uint32_t k = 0; k < n->n_in + n->n_captured; k++) {
        const ot_id v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
        if (v != OT_NONE && c->g->values[v].is_tensor &&
            !fully_known(c->g->values[v].rank, c->g->values[v].dims))
            return false;
    }
    return true;
}

/* Extents of v as the file states them, where o has none; true where there are some. */
static bool fill_stated(const ot_value *v, ot_shp *o)
{
    bool any = false;
    if (o->rank < 0) {
        o->rank = v->rank;
        for (int32_t a = 0; a < v->rank; a++) o->d[a] = v->dims[a];
        return true;
    }
    for (int32_t a = 0; a < o->rank && o->rank == v->rank; a++) {
        if (o->d[a] != OT_DIM_UNKNOWN || v->dims[a] < 0) continue;
        o->d[a] = v->dims[a];
        any = true;
    }
    return any;
}

/* The file states an extent of v that o has not. */
static bool is_at_odds(const ot_value *v, const ot_shp *o)
{
    if (v->rank < 0) return false;
    if (o->rank != v->rank) return true;
    for (int32_t a = 0; a < o->rank; a++)
        if (v->dims[a] >= 0 && o->d[a] != v->dims[a]) return true;
    return false;
}

/* Note that what the file states of v is not followed; it is not written again. */
static ot_status leave_stated(ot_infer *c, ot_value *v, const ot_shp *o)
{
    ot_model *m = c->g->model;
    char made[320], said[320], node[OT_DIAG_MAX];
    if (c->g->parent != NULL) return OT_OK; /* a body is written as it was */
    m->restated = true;
    /* tiles' ends are the original model's, which was checked when it was tiled */
    if (c->bound || ot_node_is_of_tiles(c->n) || m->n_unfollowed++ > 0) return OT_OK;
    m->unfollowed = ot_format(
        m->arena, "%s: output '%.300s' is taken as %s, not as %s, which the file states",
        ot_shape_node_text(c, node, sizeof node), v->name,
        print_dims(o->rank, o->d, made, sizeof made),
        print_dims(v->rank, v->dims, said, sizeof said));
    return m->unfollowed ? OT_OK : ot_fail_nomem(m->diag);
}

/* Merge the inferred shape o of output k with the stated one of its value. Sets inexact and
 * is_inferred. */
static ot_status reconcile(ot_infer *c, uint32_t k, ot_shp *o)
{
    ot_id id = c->n->out[k];
    ot_value *v = &c->g->values[id];
    bool sure = c->sure && (o->dtype != OT_DT_UNKNOWN || v->dtype == OT_DT_UNKNOWN);
    if (o->dtype == OT_DT_UNKNOWN) o->dtype = v->dtype;
    for (int32_t a = 0; a < o->rank; a++) {
        if (o->d[a] > OT_SHAPE_DIM_MAX && c->exact)
            return ot_shape_fail(c, "dim %d of output '%s' is %lld, larger than 2^48", a, v->name,
                                 (long long)o->d[a]);
        if (o->d[a] < 0 || o->d[a] > OT_SHAPE_DIM_MAX) o->d[a] = OT_DIM_UNKNOWN;
    }
    const bool filled = v->is_tensor && believes_stated(c) && fill_stated(v, o);
    c->inexact[id] = !c->exact || filled;
    v->is_inferred = sure && !(filled && v->rank >= 0);
    v->dtype = o->dtype;
    if (is_at_odds(v, o)) OT_TRY(leave_stated(c, v, o));
    if (o->rank == v->rank &&
        (o->rank <= 0 || !memcmp(o->d, v->dims, (size_t)o->rank * sizeof *o->d)))
        return OT_OK;
    return ot_value_set_shape(c->g, id, o->rank, o->d);
}

static void clear_outputs(ot_infer *c)
{
    for (uint32_t k = 0; k < c->n->n_out; k++)
        c->out[k] = (ot_shp){.dtype = OT_DT_UNKNOWN, .rank = -1};
}

/* Depends on constants only, and gives the same result every time. */
static bool is_deterministic_const(const ot_infer *c)
{
    const ot_node *n = c->n;
    if (ot_shape_rule_of(n->op) == NULL) return false;
    if (n->n_captured != 0) return false;
    int64_t training = 0;
    if (n->op == OT_OP_Dropout && ot_shape_in(c, 2) != NULL &&
        (!ot_shape_int(c, 2, &training) || training != 0))
        return false;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && !c->g->values[n->in[k]].is_const) return false;
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].kind == OT_ATTR_GRAPH) return false;
    return true;
}

static void set_static(ot_infer *c, ot_node *n)
{
    bool constant = is_deterministic_const(c);
    bool all = n->n_out > 0;
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (n->out[k] == OT_NONE) continue;
        ot_value *v = &c->g->values[n->out[k]];
        v->is_const = constant;
        all = all && (constant || v->known != NULL || v->known_floats != NULL);
    }
    n->is_static = all && n->op != OT_OP_If; /* it reads what its branches do */
}

/* A Loop of no iterations, as shape arithmetic says: its body need not even be possible at this
 * size. */
static bool never_runs(const ot_graph *g, const ot_node *n)
{
    const ot_value *trips = n->op == OT_OP_Loop && n->n_in > 0 && n->in[0] != OT_NONE
                                ? &g->values[n->in[0]]
                                : NULL;
    return trips && trips->known && trips->known_n == 1 && trips->known[0] <= 0;
}

/* Extents of `from` where `to` has none that are known. */
static ot_status fill_extents(ot_graph *g, ot_id to, const ot_value *from)
{
    const ot_value *v = &g->values[to];
    int64_t dims[OT_RANK_MAX];
    bool any = false;
    if (!v->is_tensor || !from->is_tensor || v->rank != from->rank || v->rank < 1) return OT_OK;
    for (int32_t k = 0; k < v->rank; k++) {
        dims[k] = v->dims[k] >= 0 ? v->dims[k] : from->dims[k];
        any |= dims[k] != v->dims[k];
    }
    return any ? ot_value_set_shape(g, to, v->rank, dims) : OT_OK;
}

/* What a Loop carries: its body gets what it is handed at first, and hands on what the body makes.
 */
static ot_status bind_carried(ot_graph *g, const ot_node *n, ot_graph *body)
{
    for (uint32_t k = 2; k < n->n_in && k < body->n_inputs; k++)
        if (n->in[k] != OT_NONE) OT_TRY(fill_extents(body, body->inputs[k], &g->values[n->in[k]]));
    return OT_OK;
}

static ot_status take_carried(ot_graph *g, const ot_node *n)
{
    const ot_attr *a = ot_attr_find(n, "body");
    if (n->op != OT_OP_Loop || !a || a->kind != OT_ATTR_GRAPH || !a->g) return OT_OK;
    for (uint32_t k = 0; k + 2 < n->n_in && k < n->n_out && k + 1 < a->g->n_outputs; k++) {
        if (n->out[k] == OT_NONE || n->in[k + 2] == OT_NONE) continue;
        const ot_value *last = never_runs(g, n) ? &g->values[n->in[k + 2]]
                                                : &a->g->values[a->g->outputs[k + 1]];
        OT_TRY(fill_extents(g, n->out[k], last));
    }
    return OT_OK;
}

/* Bodies made by the rewriter (or read from .ot text). */
static ot_status infer_bodies(ot_graph *g, const ot_node *n, uint32_t depth)
{
    if (never_runs(g, n)) return OT_OK;
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        if (n->attrs[k].kind != OT_ATTR_GRAPH || n->attrs[k].g == NULL || depth >= BODY_DEPTH_MAX)
            continue;
        if (n->op == OT_OP_Loop) OT_TRY(bind_carried(g, n, n->attrs[k].g));
        OT_TRY(infer_graph(n->attrs[k].g, NULL, 0, NULL, depth + 1, false));
    }
    return OT_OK;
}

static ot_status grow_outputs(ot_infer *c, uint32_t n_out)
{
    if (n_out <= c->cap_out) return OT_OK;
    c->out = OT_NEW_N(c->scratch, ot_shp, n_out);
    if (c->out == NULL) return ot_fail_nomem(c->g->model->diag);
    c->cap_out = n_out;
    return OT_OK;
}

static ot_status infer_node(ot_infer *c, ot_node *n, uint32_t depth)
{
    c->n = n;
    c->exact = !c->lenient;
    if (!c->lenient) OT_TRY(infer_bodies(c->g, n, depth));
    OT_TRY(grow_outputs(c, n->n_out));
    clear_outputs(c);
    bool known = n->op != OT_OP_OPAQUE;
    ot_shape_rule rule = known ? ot_shape_rule_of(n->op) : ot_shape_extra_rule(n);
    char why[80];
    ot_status s = ot_node_lacks(n, why, sizeof why) ? ot_shape_fail(c, "%s", why) : OT_OK;
    if (s != OT_OK && c->exact) return s;
    c->exact = c->exact && known && rule != NULL;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && c->inexact[n->in[k]]) c->exact = false;
    c->sure = rule != NULL;
    for (uint32_t k = 0; k < n->n_in && c->sure; k++)
        c->sure = n->in[k] == OT_NONE || ot_shape_is_sure(c->g, &c->g->values[n->in[k]]);
    bool resized = ot_size_depends(c);
    if (s == OT_OK && rule != NULL) s = rule(c);
    if (s == OT_OK) ot_shape_branches(c);
    if (s != OT_OK && (s != OT_E_INPUT || (c->exact && !resized))) return s;
    if (resized) OT_TRY(ot_size_check(c, s));
    c->impossible = s != OT_OK;
    if (s != OT_OK) clear_outputs(c);
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_status r = n->out[k] == OT_NONE ? OT_OK : reconcile(c, k, &c->out[k]);
        if (r == OT_E_INPUT && resized) return ot_size_check(c, r);
        if (r == OT_E_INPUT && !c->exact) r = ot_value_set_shape(c->g, n->out[k], -1, NULL);
        OT_TRY(r);
    }
    OT_TRY(take_carried(c->g, n));
    /* it relies on what the rule has checked */
    if (known && s == OT_OK) OT_TRY(ot_known_propagate(c));
    if (resized) OT_TRY(ot_size_check_outputs(c));
    set_static(c, n);
    return OT_OK;
}

/* ---- the graph ---- */

/* Sizes of inputs that are given, and what they say of inputs that share names of dimensions. */
static ot_status bind_inputs(ot_infer *c, const ot_shape_binding *bind, size_t n)
{
    ot_dim_names names;
    if (n == 0) return OT_OK;
    OT_TRY(ot_dim_names_new(c->g, c->scratch, &names));
    ot_dim_names_take(&names, c->g, bind, n);
    for (size_t k = 0; k < n; k++)
        OT_TRY(bind_input(c->g, &bind[k], c->other != NULL && bind[k].replace));
    return ot_dim_names_apply(&names, c->g);
}

static ot_status infer_with(ot_infer *c, const ot_shape_binding *bind, size_t n_bind,
                            uint32_t depth)
{
    ot_graph *g = c->g;
    c->known = OT_NEW_N(c->scratch, ot_known, g->n_values);
    c->inexact = OT_NEW_N(c->scratch, bool, g->n_values);
    if (c->known == NULL || c->inexact == NULL) return ot_fail_nomem(g->model->diag);
    OT_TRY(bind_inputs(c, bind, n_bind));
    OT_TRY(start_values(c));
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_status s = infer_node(c, &g->nodes[g->order[k]], depth);
        if (s != OT_OK && g->model->graph == g) g->model->failed_node = g->order[k];
        OT_TRY(s);
    }
    return OT_OK;
}

static ot_status infer_into(ot_infer *c, const ot_shape_binding *bind, size_t n_bind,
                            uint32_t depth)
{
    ot_graph *g = c->g;
    OT_TRY(ot_assure(g, OT_P_ORDER));
    c->keep = g->model->arena;
    c->scratch = ot_arena_new();
    if (c->scratch == NULL) return ot_fail_nomem(g->model->diag);
    ot_status s = infer_with(c, bind, n_bind, depth);
    ot_arena_free(c->scratch);
    if (s == OT_OK) ot_confirm(g, g->props | OT_P_SHAPES);
    return s;
}

static ot_status infer_graph(ot_graph *g, const ot_shape_binding *bind, size_t n_bind,
                             ot_other_size *other, uint32_t depth, bool bound)
{
    ot_infer c = {.g = g, .bound = bound, .other = other};
    return infer_into(&c, bind, n_bind, depth);
}

ot_status ot_infer_lenient(ot_graph *g)
{
    ot_infer c = {.g = g, .lenient = true};
    return infer_into(&c, NULL, 0, 0);
}

ot_status ot_infer_sized(ot_graph *g, const ot_shape_binding *bind, size_t n_bind,
                         ot_other_size *other)
{
    return infer_graph(g, bind, n_bind, other, 0, n_bind > 0);
}

/* requires ORDER (re-established when missing). keeps ORDER, USES. gives SHAPES. */
ot_status ot_infer_shapes(ot_graph *g, const ot_shape_binding *bind, size_t n_bind)
{
    ot_status s = OT_OK;
    if (ot_size_is_other(g, bind, n_bind)) {
        s = ot_size_infer(g, bind, n_bind);
    } else {
        /* what the file states of free sizes goes before any is given */
        if (n_bind > 0 && !g->parent && !g->model->shaped)
            s = infer_graph(g, NULL, 0, NULL, 0, true);
        if (s == OT_OK) s = infer_graph(g, bind, n_bind, NULL, 0, n_bind > 0);
    }
    if (s == OT_OK && !g->parent) s = ot_size_bodies(g);
    if (s == OT_OK && !g->parent) g->model->shaped = true;
    return s;
}
