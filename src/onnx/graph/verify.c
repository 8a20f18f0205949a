/* The verifier: is this graph what ir.h promises?
 *
 * Runs after every pass in tests, after parsing text, and whenever a pass is in doubt. It shares
 * no code with topo.c or graph.c: producers, positions and uses are computed again here, the
 * plain way, and compared.
 *
 *   names      every value has one, found under it, once per graph; bodies do not shadow visible
 *              outer names
 *   structure  ids in range; one producer per value; every read value defined; attributes unique
 *   order      exactly the live nodes, each after what it reads          (when OT_P_ORDER is
 *                                                                        claimed)
 *   uses       exactly the readers, ascending in order, each once        (when OT_P_USES is
 *                                                                        claimed)
 *   shapes     rank and dims within limits; constants and known contents agree with their value
 *   bodies     the same, recursively; outer values resolve; outputs have a type and a rank
 *
 * The first violation is described through the model's diag. Linear in the size of the graph;
 * scratch is in an arena of this pass.
 */
#include "ir.h"

#define NEST_MAX 64 /* bodies inside bodies; the importer's and the parser's own limits are lower */

typedef struct ot_check {
    ot_graph *g;
    ot_arena *a;
    ot_diag *diag;
    ot_id *producer; /* [n_values] recomputed; OT_NONE */
    uint32_t *pos;   /* [n_nodes] position in order; OT_NONE for nodes that are not in it */
} ot_check;

/* What kind of graph a message speaks of. */
static const char *where(const ot_graph *g) { return g->parent ? "body" : "graph"; }

static ot_status bad_value(const ot_check *c, const ot_value *v, const char *rule)
{
    return ot_fail(c->diag, OT_E_INPUT, "%s '%s': value '%s': %s", where(c->g), c->g->name, v->name,
                   rule);
}

static ot_status bad_node(const ot_check *c, const ot_node *n, const ot_value *v, const char *rule)
{
    return ot_fail(c->diag, OT_E_INPUT, "node '%s' (%s): %s%s%s%s", n->name, n->op_type, rule,
                   v ? " '" : "", v ? v->name : "", v ? "'" : "");
}

static ot_status nomem(const ot_check *c) { return ot_fail_nomem(c->diag); }

/* ---- values ---- */

static bool dims_sane(int64_t rank, const int64_t *dims, int64_t least)
{
    if (rank > OT_RANK_MAX || (rank > 0 && !dims)) return false;
    for (int64_t k = 0; k < rank; k++)
        if (dims[k] < least) return false;
    return true;
}

static ot_status check_tensor(const ot_check *c, const ot_value *v, const ot_tensor *t)
{
    if (!dims_sane(t->rank, t->dims, 0)) return bad_value(c, v, "constant with a bad shape");
    int64_t elems, bits = ot_dtype_bits(t->dtype), bytes;
    if (!ot_product(t->dims, t->rank, &elems)) return bad_value(c, v, "constant too large");
    if (t->data &&
        (bits < 8 || !ot_mul_i64(elems, bits / 8, &bytes) || (uint64_t)bytes != t->bytes))
        return bad_value(c, v, "constant whose contents do not fill its shape");
    if (v->dtype != OT_DT_UNKNOWN && v->dtype != t->dtype)
        return bad_value(c, v, "element type differs from that of its constant");
    if (v->rank < 0) return OT_OK;
    if ((uint32_t)v->rank != t->rank)
        return bad_value(c, v, "rank differs from that of its constant");
    for (uint32_t k = 0; k < t->rank; k++)
        if (v->dims[k] >= 0 && v->dims[k] != t->dims[k])
            return bad_value(c, v, "shape differs from that of its constant");
    return OT_OK;
}

static ot_status check_value(const ot_check *c, ot_id id)
{
    const ot_value *v = &c->g->values[id];
    if (!v->name || !v->name[0])
        return ot_fail(c->diag, OT_E_INPUT, "%s '%s': value number %u has no name", where(c->g),
                       c->g->name, id);
    if (ot_value_find(c->g, v->name) != id)
        return bad_value(c, v, "another value has the same name, or it is not listed by name");
    if (v->rank < -1 || !dims_sane(v->rank, v->dims, OT_DIM_UNKNOWN))
        return bad_value(c, v, "rank above the limit, or a negative dimension");
    if ((unsigned)v->dtype > OT_I2) return bad_value(c, v, "element type out of range");
    if (v->init) OT_TRY(check_tensor(c, v, v->init));
    if (v->known && v->known_floats) return bad_value(c, v, "known contents of two kinds");
    if (v->known || v->known_floats) {
        int64_t n;
        if (v->known_n > OT_KNOWN_MAX) return bad_value(c, v, "too many known elements");
        if (ot_value_elems(v, &n) && n != v->known_n)
            return bad_value(c, v, "known contents do not fill its shape");
    }
    if (v->is_outer && !c->g->parent) return bad_value(c, v, "an outer value in the top graph");
    if (v->is_outer && (v->is_input || v->init))
        return bad_value(c, v, "an outer value cannot be an input or hold contents");
    return OT_OK;
}

static ot_status check_io(const ot_check *c)
{
    const ot_graph *g = c->g;
    bool *seen = OT_NEW_N(c->a, bool, g->n_values);
    if (!seen) return nomem(c);
    uint32_t in_flags = 0;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        if (g->inputs[k] >= g->n_values)
            return ot_fail(c->diag, OT_E_INPUT, "%s '%s': input number %u is no value", where(g),
                           g->name, k);
        const ot_value *v = &g->values[g->inputs[k]];
        if (!v->is_input) return bad_value(c, v, "listed as an input but not marked as one");
        if (seen[g->inputs[k]]) return bad_value(c, v, "listed twice as an input");
        seen[g->inputs[k]] = true;
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        if (g->outputs[k] >= g->n_values)
            return ot_fail(c->diag, OT_E_INPUT, "%s '%s': output number %u is no value", where(g),
                           g->name, k);
        const ot_value *v = &g->values[g->outputs[k]];
        if (!v->is_output) return bad_value(c, v, "listed as an output but not marked as one");
        if (g->parent && (v->dtype == OT_DT_UNKNOWN || v->rank < 0) && v->is_tensor)
            return bad_value(c, v, "a body output needs an element type and a rank");
    }
    for (ot_id v = 0; v < g->n_values; v++) in_flags += g->values[v].is_input;
    if (in_flags != g->n_inputs)
        return ot_fail(c->diag, OT_E_INPUT,
                       "%s '%s': %u values are marked as inputs, %u are listed", where(g), g->name,
                       in_flags, g->n_inputs);
    return OT_OK;
}

/* ---- nodes ---- */

static ot_status check_ids(const ot_check *c, const ot_node *n, const ot_id *ids, uint32_t count,
                           bool may_omit)
{
    for (uint32_t k = 0; k < count; k++)
        if (ids[k] >= c->g->n_values && !(may_omit && ids[k] == OT_NONE))
            return bad_node(c, n, NULL, "an operand is no value of the graph");
    return OT_OK;
}

static ot_status check_attrs(const ot_check *c, const ot_node *n)
{
    ot_map *names = n->n_attrs > 1 ? ot_map_new(c->a) : NULL;
    if (n->n_attrs > 1 && !names) return nomem(c);
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        const ot_attr *at = &n->attrs[k];
        if (!at->name) return bad_node(c, n, NULL, "an attribute has no name");
        if (names && ot_map_get(names, at->name) != OT_NONE)
            return ot_fail(c->diag, OT_E_INPUT, "node '%s' (%s): attribute '%s' is given twice",
                           n->name, n->op_type, at->name);
        if (names && !ot_map_put(names, at->name, k)) return nomem(c);
        bool ok = (at->kind != OT_ATTR_TENSOR || at->t) && (at->kind != OT_ATTR_GRAPH || at->g) &&
                  (at->kind != OT_ATTR_STRING || at->s) &&
                  (at->kind != OT_ATTR_INTS || at->ints || at->n == 0) &&
                  (at->kind != OT_ATTR_FLOATS || at->floats || at->n == 0) &&
                  (at->kind != OT_ATTR_STRINGS || at->strings || at->n == 0);
        if (!ok)
            return ot_fail(c->diag, OT_E_INPUT, "node '%s' (%s): attribute '%s' has no value",
                           n->name, n->op_type, at->name);
    }
    return OT_OK;
}

static ot_status check_node(const ot_check *c, ot_id id)
{
    const ot_graph *g = c->g;
    const ot_node *n = &g->nodes[id];
    if (!n->op_type || !n->op_type[0] || !n->domain || !n->name)
        return ot_fail(c->diag, OT_E_INPUT, "%s '%s': node number %u has no operator type",
                       where(g), g->name, id);
    if (n->op != OT_OP_OPAQUE && ot_op_of(n->domain, n->op_type) != n->op)
        return bad_node(c, n, NULL, "its operator number does not match its type");
    OT_TRY(check_ids(c, n, n->in, n->n_in, true));
    OT_TRY(check_ids(c, n, n->out, n->n_out, true));
    OT_TRY(check_ids(c, n, n->captured, n->n_captured, false));
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (n->out[k] == OT_NONE) continue;
        const ot_value *v = &g->values[n->out[k]];
        if (c->producer[n->out[k]] != OT_NONE)
            return bad_node(c, n, v, "produces a value a second time:");
        if (v->is_input || v->is_outer)
            return bad_node(c, n, v, "produces a value that is an input or an outer value:");
        if ((g->props & OT_P_USES) && (v->producer != id || v->out_index != k))
            return bad_node(c, n, v, "is not recorded as the producer of");
        c->producer[n->out[k]] = id;
    }
    return check_attrs(c, n);
}

/* Every read resolves; with an order, to something earlier. */
static ot_status check_read(const ot_check *c, ot_id id, ot_id r)
{
    const ot_node *n = &c->g->nodes[id];
    const ot_value *v = &c->g->values[r];
    ot_id p = c->producer[r];
    if (p == OT_NONE) {
        if (v->removed) return bad_node(c, n, v, "reads a removed initializer:");
        if (!v->is_input && !v->init && !v->is_outer && v->is_tensor)
            return bad_node(c, n, v, "reads a value that nothing defines:");
        return OT_OK;
    }
    if ((c->g->props & OT_P_ORDER) && c->pos[p] >= c->pos[id])
        return bad_node(c, n, v, "comes before the producer of");
    return OT_OK;
}

static ot_status check_reads(const ot_check *c)
{
    const ot_graph *g = c->g;
    for (ot_id id = 0; id < g->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        if (n->dead) continue;
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OT_NONE) OT_TRY(check_read(c, id, n->in[k]));
        for (uint32_t k = 0; k < n->n_captured; k++) OT_TRY(check_read(c, id, n->captured[k]));
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        const ot_value *v = &g->values[g->outputs[k]];
        if (c->producer[g->outputs[k]] == OT_NONE && !v->is_input && !v->init && !v->is_outer &&
            v->is_tensor)
            return bad_value(c, v, "is an output that nothing defines");
    }
    for (ot_id v = 0; (g->props & OT_P_USES) && v < g->n_values; v++)
        if (g->values[v].producer != c->producer[v])
            return bad_value(c, &g->values[v], "its recorded producer does not produce it");
    return OT_OK;
}

/* ---- order and uses ---- */

static ot_status check_order(const ot_check *c)
{
    const ot_graph *g = c->g;
    uint32_t live = 0;
    for (ot_id id = 0; id < g->n_nodes; id++) live += !g->nodes[id].dead;
    if (g->n_order != live)
        return ot_fail(c->diag, OT_E_INPUT, "%s '%s': the order lists %u nodes, %u are live",
                       where(g), g->name, g->n_order, live);
    for (uint32_t p = 0; p < g->n_order; p++) {
        ot_id id = g->order[p];
        if (id >= g->n_nodes || g->nodes[id].dead)
            return ot_fail(c->diag, OT_E_INPUT, "%s '%s': the order lists a node that is not live",
                           where(g), g->name);
        if (c->pos[id] != OT_NONE)
            return bad_node(c, &g->nodes[id], NULL, "is listed twice in the order");
        c->pos[id] = p;
    }
    return OT_OK;
}

/* The next expected use of every value is compared while walking the order. `done` counts the
 * uses met; `last` is the reader met last, so that one node reading twice counts once. */
static ot_status check_uses(const ot_check *c)
{
    const ot_graph *g = c->g;
    uint32_t *done = OT_NEW_N(c->a, uint32_t, g->n_values);
    ot_id *last = OT_NEW_N(c->a, ot_id, g->n_values);
    if (!done || !last) return nomem(c);
    memset(last, 0xff, g->n_values * sizeof *last);
    for (uint32_t p = 0; p < g->n_order; p++) {
        const ot_node *n = &g->nodes[g->order[p]];
        for (uint32_t k = 0; k < n->n_in + n->n_captured; k++) {
            ot_id r = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
            if (r == OT_NONE || last[r] == g->order[p]) continue;
            last[r] = g->order[p];
            const ot_value *v = &g->values[r];
            if (done[r] >= v->n_uses || v->uses[done[r]] != g->order[p])
                return bad_node(c, n, v, "is missing, or at the wrong place, among the uses of");
            done[r]++;
        }
    }
    for (ot_id v = 0; v < g->n_values; v++)
        if (done[v] != g->values[v].n_uses)
            return bad_value(c, &g->values[v], "lists a use that does not exist");
    return OT_OK;
}

/* ---- bodies ---- */

static ot_status verify_graph(ot_graph *g, ot_arena *a, unsigned depth);

/* Does anything still define v? Leftovers of removed nodes keep their entry but are invisible in
 * the file. */
static bool is_visible(const ot_value *v)
{
    return v->producer != OT_NONE || v->is_input || (v->init && !v->removed) || v->is_outer ||
           !v->is_tensor;
}

static ot_status check_scope(const ot_check *c, ot_id owner, const ot_graph *body)
{
    for (ot_id id = 0; id < body->n_values; id++) {
        const ot_value *v = &body->values[id];
        if (v->is_outer) {
            if (ot_value_find(c->g, v->name) == OT_NONE)
                return ot_fail(c->diag, OT_E_INPUT,
                               "body '%s': outer value '%s' is unknown outside", body->name,
                               v->name);
            continue;
        }
        if (!is_visible(v)) continue;
        for (const ot_graph *up = c->g; up; up = up->parent) {
            ot_id o = ot_value_find(up, v->name);
            /* what the node makes comes after its bodies */
            if (o != OT_NONE && up == c->g && c->producer[o] == owner) continue;
            if (o != OT_NONE && is_visible(&up->values[o]))
                return ot_fail(c->diag, OT_E_INPUT,
                               "body '%s': value '%s' hides a value of an enclosing graph",
                               body->name, v->name);
        }
    }
    return OT_OK;
}

/* The node must list what its bodies read; a body without order may still be under construction. */
static ot_status check_captures(const ot_check *c, const ot_node *n, const ot_graph *body)
{
    ot_map *listed = ot_map_new(c->a);
    if (!listed) return nomem(c);
    for (uint32_t k = 0; k < n->n_captured; k++)
        if (!ot_map_put(listed, c->g->values[n->captured[k]].name, k)) return nomem(c);
    for (ot_id id = 0; id < body->n_values; id++) {
        const ot_value *v = &body->values[id];
        if (v->is_outer && ot_map_get(listed, v->name) == OT_NONE)
            return bad_node(c, n, v, "its body reads a value that it does not list as captured:");
    }
    return OT_OK;
}

static ot_status check_bodies(const ot_check *c, unsigned depth)
{
    for (ot_id id = 0; id < c->g->n_nodes; id++) {
        const ot_node *n = &c->g->nodes[id];
        for (uint32_t k = 0; !n->dead && k < n->n_attrs; k++) {
            ot_graph *body = n->attrs[k].kind == OT_ATTR_GRAPH ? n->attrs[k].g : NULL;
            if (!body) continue;
            if (depth >= NEST_MAX) return bad_node(c, n, NULL, "bodies are nested too deep");
            if (body->parent != c->g || body->model != c->g->model)
                return bad_node(c, n, NULL, "its body belongs to another graph");
            OT_TRY(check_scope(c, id, body));
            OT_TRY(check_captures(c, n, body));
            OT_TRY(verify_graph(body, c->a, depth + 1));
        }
    }
    return OT_OK;
}

static ot_status verify_graph(ot_graph *g, ot_arena *a, unsigned depth)
{
    ot_check c = {.g = g, .a = a, .diag = g->model->diag};
    c.producer = OT_NEW_N(a, ot_id, g->n_values);
    c.pos = OT_NEW_N(a, uint32_t, g->n_nodes);
    if (!c.producer || !c.pos) return nomem(&c);
    memset(c.producer, 0xff, g->n_values * sizeof *c.producer);
    memset(c.pos, 0xff, g->n_nodes * sizeof *c.pos);
    for (ot_id v = 0; v < g->n_values; v++) OT_TRY(check_value(&c, v));
    OT_TRY(check_io(&c));
    for (ot_id n = 0; n < g->n_nodes; n++)
        if (!g->nodes[n].dead) OT_TRY(check_node(&c, n));
    if (g->props & OT_P_ORDER) OT_TRY(check_order(&c));
    OT_TRY(check_reads(&c));
    if ((g->props & OT_P_USES) && (g->props & OT_P_ORDER)) OT_TRY(check_uses(&c));
    return check_bodies(&c, depth);
}

/* requires nothing. keeps everything. Fails: OT_E_INPUT (first violation), OT_E_NOMEM. */
ot_status ot_verify(ot_graph *g)
{
    ot_arena *a = ot_arena_new();
    if (!a) return ot_fail_nomem(g->model->diag);
    ot_status st = verify_graph(g, a, 0);
    ot_arena_free(a);
    return st;
}
