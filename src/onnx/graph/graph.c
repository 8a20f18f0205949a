/* The only place that edits a graph: values, nodes, names, attributes.
 *
 * Ids are indices into two growing arrays and never change, so side arrays indexed by id stay
 * valid while a pass works; pointers to values and nodes do not survive the next
 * ot_value_new/ot_node_new. Removal marks a node dead and detaches its outputs; ot_topo_sort
 * leaves dead nodes out of `order`.
 *
 *   ot_node_new(Relu, in {x}, out {y})          x ---> [Relu #7] ---> y    (y.producer = 7)
 *   ot_node_remove(7)                           x      (#7 dead)       y    (y.producer = none)
 *
 * Every edit clears the properties it may have broken (OT_P_ORDER, OT_P_USES); the next
 * ot_assure re-establishes them. Updates happen last: a function that runs out of memory changes
 * nothing visible.
 */
#include "ir.h"

/* ---- model and graphs ---- */

ot_graph *ot_graph_new(ot_model *m, ot_graph *parent, const char *name)
{
    ot_graph *g = OT_NEW(m->arena, ot_graph);
    if (!g) return NULL;
    g->by_name = ot_map_new(m->arena);
    if (!g->by_name) return NULL;
    g->model = m;
    g->parent = parent;
    g->name = name ? name : "";
    return g;
}

bool ot_graph_reserve(ot_graph *g, size_t n_nodes, size_t n_values)
{
    ot_arena *a = g->model->arena;
    return (n_nodes <= g->cap_nodes ||
            ot_grow(a, (void **)&g->nodes, &g->cap_nodes, n_nodes, sizeof *g->nodes)) &&
           (n_values <= g->cap_values ||
            ot_grow(a, (void **)&g->values, &g->cap_values, n_values, sizeof *g->values));
}

ot_model *ot_model_new(ot_diag *diag)
{
    ot_arena *a = ot_arena_new();
    if (!a) return NULL;
    ot_model *m = OT_NEW(a, ot_model);
    if (!m) {
        ot_arena_free(a);
        return NULL;
    }
    m->arena = a;
    m->diag = diag;
    m->failed_node = OT_NONE;
    m->names = ot_map_new(a);
    m->graph = m->names ? ot_graph_new(m, NULL, "") : NULL;
    if (!m->graph) {
        ot_arena_free(a);
        return NULL;
    }
    return m;
}

void ot_model_free(ot_model *m)
{
    if (!m) return;
    if (m->free_source && m->source) m->free_source(m->source);
    ot_model_free(m->lender);
    ot_arena_free(m->arena); /* the model itself lives in its arena */
}

/* ---- names ---- */

/* Reserve a name for the whole model unless it already is. */
static bool reserve_name(ot_model *m, const char *name)
{
    bool fresh;
    if (name == m->last_fresh || m->is_sketch) return true;
    return ot_map_add(m->names, name, 0, &fresh);
}

/* One that no name of the file is: those of a sketch are numbered. */
static const char *sketched_name(ot_model *m)
{
    const bool may_be_taken = ot_map_has_initial(m->names, '~');
    char number[OT_DECIMAL];
    for (;;) {
        const char *parts[] = {"~", ot_decimal(++m->n_sketched, number)};
        const char *name = ot_join(m->arena, parts, 2);
        if (!name || !may_be_taken || ot_map_get(m->names, name) == OT_NONE) return name;
    }
}

/* The map remembers, per base name, which suffix to try next, so that n requests for one base cost
 * O(n) in all. The number is a hint only: each candidate is looked up before it is handed out. */
const char *ot_fresh_name(ot_model *m, const char *base)
{
    if (m->is_sketch) return sketched_name(m);
    const uint32_t taken = ot_map_get(m->names, base);
    bool fresh = false;
    if (taken == OT_NONE) {
        char *own = ot_strdup(m->arena, base);
        if (!own || !ot_map_add(m->names, own, 0, &fresh)) return NULL;
        return m->last_fresh = own;
    }
    for (uint32_t next = taken;;) {
        char number[OT_DECIMAL];
        next = next >= OT_NONE - 1 ? 1 : next + 1;
        char *name = ot_join(m->arena, (const char *[]){base, "_", ot_decimal(next, number)}, 3);
        if (!name || !ot_map_add(m->names, name, 0, &fresh)) return NULL;
        if (!fresh) continue;
        if (!ot_map_put(m->names, base, next)) return NULL;
        return m->last_fresh = name;
    }
}

/* ---- values ---- */

static bool copy_dims(ot_arena *a, int32_t rank, const int64_t *dims, int64_t **out)
{
    *out = NULL;
    if (rank <= 0) return true;
    *out = ot_memdup(a, dims, (size_t)rank * sizeof *dims);
    return *out != NULL;
}

ot_id ot_value_new(ot_graph *g, const char *name, ot_dtype dtype, int32_t rank, const int64_t *dims)
{
    if (!name[0]) OT_BUG("a value needs a name");
    ot_arena *a = g->model->arena;
    ot_value v = {.name = name,
                  .dtype = dtype,
                  .rank = rank < 0 ? -1 : rank,
                  .producer = OT_NONE,
                  .is_tensor = true};
    if (!copy_dims(a, v.rank, dims, &v.dims)) return OT_NONE;
    if (g->n_values >= OT_NONE - 1 || !reserve_name(g->model, name)) return OT_NONE;
    /* the map entry is made last: an id without a value must never be found */
    if (!OT_PUSH(a, g->values, g->n_values, g->cap_values, v)) return OT_NONE;
    bool fresh;
    if (!ot_map_add(g->by_name, name, g->n_values - 1, &fresh)) {
        g->n_values--;
        return OT_NONE;
    }
    if (!fresh) OT_BUG("two values of one name in a graph");
    return g->n_values - 1;
}

ot_id ot_value_find(const ot_graph *g, const char *name) { return ot_map_get(g->by_name, name); }

ot_status ot_value_set_shape(ot_graph *g, ot_id v, int32_t rank, const int64_t *dims)
{
    int64_t *copy;
    if (!copy_dims(g->model->arena, rank, dims, &copy)) return ot_fail_nomem(g->model->diag);
    g->values[v].rank = rank < 0 ? -1 : rank;
    g->values[v].dims = copy;
    return OT_OK;
}

static ot_id new_const(ot_graph *g, const char *name, ot_dtype dtype, size_t size, const void *data,
                       int32_t rank, const int64_t *dims)
{
    ot_arena *a = g->model->arena;
    int64_t n;
    if (rank < 0 || !ot_product(dims, (size_t)rank, &n)) OT_BUG("a constant needs a static shape");
    if ((uint64_t)n > SIZE_MAX / size) return OT_NONE;
    ot_tensor *t = OT_NEW(a, ot_tensor);
    if (!t) return OT_NONE;
    int64_t *own_dims;
    if (!copy_dims(a, rank, dims, &own_dims)) return OT_NONE;
    t->dtype = dtype;
    t->rank = (uint32_t)rank;
    t->dims = own_dims;
    t->bytes = (size_t)n * size;
    t->data = t->bytes ? ot_memdup(a, data, t->bytes) : ot_alloc(a, 1);
    if (!t->data) return OT_NONE;
    ot_id v = ot_value_new(g, name, dtype, rank, dims);
    if (v == OT_NONE) return OT_NONE;
    g->values[v].init = t;
    g->values[v].is_const = true;
    return v;
}

ot_id ot_const_i64(ot_graph *g, const char *name, const int64_t *data, int32_t rank,
                   const int64_t *dims)
{
    ot_id v = new_const(g, name, OT_I64, sizeof *data, data, rank, dims);
    if (v == OT_NONE) return v;
    ot_value *val = &g->values[v];
    size_t n = val->init->bytes / sizeof *data;
    if (n <= OT_KNOWN_MAX) { /* the tensor holds int64 already: share its storage */
        val->known = val->init->data;
        val->known_n = (uint32_t)n;
    }
    return v;
}

ot_status ot_const_ints(ot_graph *g, const char *base, const int64_t *data, int64_t n, ot_id *out)
{
    const char *name = base ? ot_fresh_name(g->model, base) : NULL;
    *out = name ? ot_const_i64(g, name, data, n >= 0, &n) : OT_NONE;
    return *out == OT_NONE ? ot_fail_nomem(g->model->diag) : OT_OK;
}

ot_id ot_const_f32(ot_graph *g, const char *name, const float *data, int32_t rank,
                   const int64_t *dims)
{
    return new_const(g, name, OT_F32, sizeof *data, data, rank, dims);
}

ot_id ot_const_f64(ot_graph *g, const char *name, const double *data, int32_t rank,
                   const int64_t *dims)
{
    return new_const(g, name, OT_F64, sizeof *data, data, rank, dims);
}

/* ---- nodes ---- */

/* Values of g that the bodies among `attrs` read: their outer values, by name, each once. Names
 * that g does not know are left to ot_verify, which reports them. false when memory ran out. */
static bool collect_captures(ot_graph *g, const ot_attr *attrs, uint32_t n_attrs, ot_id **out,
                             uint32_t *n_out)
{
    ot_arena *a = g->model->arena;
    ot_id *list = NULL;
    uint32_t n = 0;
    size_t cap = 0;
    ot_map *seen = NULL; /* made when the second body comes: one body cannot name a value twice */
    uint32_t n_bodies = 0;
    for (uint32_t k = 0; k < n_attrs; k++) n_bodies += attrs[k].kind == OT_ATTR_GRAPH && attrs[k].g;
    if (n_bodies > 1 && !(seen = ot_map_new(a))) return false;
    for (uint32_t k = 0; k < n_attrs; k++) {
        const ot_graph *body = attrs[k].kind == OT_ATTR_GRAPH ? attrs[k].g : NULL;
        for (uint32_t j = 0; body && j < body->n_values; j++) {
            if (!body->values[j].is_outer) continue;
            const char *name = body->values[j].name;
            ot_id v = ot_value_find(g, name);
            if (v == OT_NONE || (seen && ot_map_get(seen, name) != OT_NONE)) continue;
            if (seen && !ot_map_put(seen, name, v)) return false;
            if (!OT_PUSH(a, list, n, cap, v)) return false;
        }
    }
    *out = list;
    *n_out = n;
    return true;
}

ot_id ot_node_new(ot_graph *g, const ot_node_def *def)
{
    ot_arena *a = g->model->arena;
    ot_node n = {.name = def->name ? def->name : "",
                 .op_type = def->op,
                 .domain = def->domain ? def->domain : "",
                 .n_in = def->in.n,
                 .n_out = def->out.n,
                 .n_attrs = def->attrs.n,
                 .source = OT_NONE};
    bool standard = !n.domain[0];
    n.op = ot_op_of(n.domain, def->op);
    n.version = standard ? g->model->opset : 0;
    n.in = ot_memdup(a, def->in.at, n.n_in * sizeof *n.in);
    n.out = ot_memdup(a, def->out.at, n.n_out * sizeof *n.out);
    n.attrs = ot_memdup(a, def->attrs.at, n.n_attrs * sizeof *n.attrs);
    if (!n.in || !n.out || !n.attrs) return OT_NONE;
    if (!collect_captures(g, n.attrs, n.n_attrs, &n.captured, &n.n_captured)) return OT_NONE;
    if (g->n_nodes >= OT_NONE - 1) return OT_NONE;
    if (n.name[0] && !reserve_name(g->model, n.name)) return OT_NONE;
    if (!OT_PUSH(a, g->nodes, g->n_nodes, g->cap_nodes, n)) return OT_NONE;
    ot_id id = g->n_nodes - 1;
    for (uint32_t k = 0; k < n.n_out; k++) {
        if (n.out[k] == OT_NONE) continue;
        g->values[n.out[k]].producer = id;
        g->values[n.out[k]].out_index = k;
    }
    g->props &= ~(unsigned)(OT_P_ORDER | OT_P_USES);
    return id;
}

void ot_node_remove(ot_graph *g, ot_id n)
{
    ot_node *node = &g->nodes[n];
    for (uint32_t k = 0; k < node->n_out; k++) {
        ot_id v = node->out[k];
        if (v != OT_NONE && g->values[v].producer == n) g->values[v].producer = OT_NONE;
    }
    node->dead = true;
    g->props &= ~(unsigned)(OT_P_ORDER | OT_P_USES);
}

void ot_value_drop_unread(ot_graph *g, ot_id v)
{
    ot_value *x = &g->values[v];
    if (x->n_uses > 0 || x->is_output) return;
    if (x->producer == OT_NONE)
        x->removed = true;
    else if (g->nodes[x->producer].n_out == 1)
        ot_node_remove(g, x->producer);
}

void ot_node_restore(ot_graph *g, ot_id n)
{
    ot_node *node = &g->nodes[n];
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (node->out[k] == OT_NONE) continue;
        g->values[node->out[k]].producer = n;
        g->values[node->out[k]].out_index = k;
    }
    node->dead = false;
    g->props &= ~(unsigned)(OT_P_ORDER | OT_P_USES);
}

/* ---- replacing reads ---- */

/* In the bodies of node n, what was called `from` in the enclosing graph is now called `to`.
 * Bodies nest at most as deep as the importer and parser allow, so recursion is bounded. */
static ot_status rename_outer(ot_node *n, const char *from, const char *to)
{
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        ot_graph *body = n->attrs[k].kind == OT_ATTR_GRAPH ? n->attrs[k].g : NULL;
        ot_id v = body ? ot_value_find(body, from) : OT_NONE;
        if (v == OT_NONE || !body->values[v].is_outer) continue;
        ot_id w = ot_value_find(body, to);
        if (w == OT_NONE) {
            const ot_value old = body->values[v];
            w = ot_value_new(body, to, old.dtype, old.rank, old.dims);
            if (w == OT_NONE) return ot_fail_nomem(body->model->diag);
            body->values[w].is_outer = true;
            body->values[w].is_const = old.is_const;
            body->values[w].is_tensor = old.is_tensor;
        }
        const unsigned order = body->props & OT_P_ORDER; /* nothing in the body makes either */
        OT_TRY(ot_replace_uses(body, v, w));
        body->props |= order;
        body->values[v].is_outer = false; /* nothing reads it any more */
        body->values[v].removed = true;
    }
    return OT_OK;
}

/* Captured reads of one node. The user's own subgraphs are opaque and name their outer values in
 * the file's bytes: those cannot be renamed, and no pass may ask for it. */
static ot_status replace_captured(ot_graph *g, ot_node *n, ot_id from, ot_id to)
{
    bool hit = false, has_to = false;
    for (uint32_t k = 0; k < n->n_captured; k++) {
        hit |= n->captured[k] == from;
        has_to |= n->captured[k] == to;
    }
    if (!hit) return OT_OK;
    bool bodies_only = false;
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        if (n->attrs[k].kind == OT_ATTR_OPAQUE)
            return ot_fail(g->model->diag, OT_E_INPUT,
                           "node '%s' (%s): a subgraph reads value '%s', which cannot be renamed",
                           n->name, n->op_type, g->values[from].name);
        bodies_only |= n->attrs[k].kind == OT_ATTR_GRAPH;
    }
    if (!bodies_only) OT_BUG("a capture without a subgraph");
    OT_TRY(rename_outer(n, g->values[from].name, g->values[to].name));
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n->n_captured; k++) {
        ot_id v = n->captured[k];
        if (v == from && has_to) continue;
        n->captured[kept++] = v == from ? to : v;
    }
    n->n_captured = kept;
    n->proto = NULL;
    return OT_OK;
}

ot_status ot_replace_uses(ot_graph *g, ot_id from, ot_id to)
{
    if (from == to) return OT_OK;
    for (ot_id id = 0; id < g->n_nodes; id++) {
        ot_node *n = &g->nodes[id];
        if (n->dead) continue;
        for (uint32_t k = 0; k < n->n_in; k++) {
            if (n->in[k] != from) continue;
            n->in[k] = to;
            n->proto = NULL;
        }
        if (n->n_captured) OT_TRY(replace_captured(g, n, from, to));
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        if (g->outputs[k] != from) continue;
        g->outputs[k] = to;
        g->values[from].is_output = false;
        g->values[to].is_output = true;
    }
    g->props &= ~(unsigned)(OT_P_ORDER | OT_P_USES); /* `to` may be produced after a reader */
    return OT_OK;
}

/* ---- attributes: access ---- */

const ot_attr *ot_attr_find(const ot_node *n, const char *name)
{
    for (uint32_t k = 0; k < n->n_attrs;
         k++) /* the planner asks millions of times: mostly the first letter tells */
        if (*n->attrs[k].name == *name && strcmp(n->attrs[k].name, name) == 0) return &n->attrs[k];
    return NULL;
}

int64_t ot_attr_int(const ot_node *n, const char *name, int64_t dflt)
{
    const ot_attr *a = ot_attr_find(n, name);
    return a && a->kind == OT_ATTR_INT ? a->i : dflt;
}

float ot_attr_float(const ot_node *n, const char *name, float dflt)
{
    const ot_attr *a = ot_attr_find(n, name);
    return a && a->kind == OT_ATTR_FLOAT ? a->f : dflt;
}

const char *ot_attr_str(const ot_node *n, const char *name, const char *dflt)
{
    const ot_attr *a = ot_attr_find(n, name);
    return a && a->kind == OT_ATTR_STRING && a->s ? a->s : dflt;
}

const int64_t *ot_attr_ints(const ot_node *n, const char *name, size_t *n_out)
{
    const ot_attr *a = ot_attr_find(n, name);
    bool ok = a && a->kind == OT_ATTR_INTS;
    *n_out = ok ? a->n : 0;
    return ok ? a->ints : NULL;
}

/* ---- attributes: builders ---- */

ot_attr ot_mk_int(const char *name, int64_t v)
{
    return (ot_attr){.name = name, .kind = OT_ATTR_INT, .i = v};
}

ot_attr ot_mk_float(const char *name, float v)
{
    return (ot_attr){.name = name, .kind = OT_ATTR_FLOAT, .f = v};
}

ot_attr ot_mk_str(const char *name, const char *s)
{
    return (ot_attr){.name = name, .kind = OT_ATTR_STRING, .s = s, .n = strlen(s)};
}

ot_attr ot_mk_ints(ot_arena *a, const char *name, const int64_t *v, size_t n)
{
    ot_attr at = {.name = name, .kind = OT_ATTR_INTS, .n = n};
    at.ints = n ? ot_memdup(a, v, n * sizeof *v) : ot_alloc(a, sizeof *v);
    if (!at.ints) return (ot_attr){.name = name, .kind = OT_ATTR_OPAQUE};
    return at;
}

ot_attr ot_mk_tensor(const char *name, const ot_tensor *t)
{
    return (ot_attr){.name = name, .kind = OT_ATTR_TENSOR, .t = t};
}

ot_attr ot_mk_graph(const char *name, ot_graph *g)
{
    return (ot_attr){.name = name, .kind = OT_ATTR_GRAPH, .g = g};
}
