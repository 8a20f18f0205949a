/* The operators that the engine's form is written in: shapes, and what a file must keep to.
 * Domain onnx_tile, version 1.
 *
 *   y0 = Alloc()                   shape, dtype
 *   y  = While(y0...)              count, body; as many outputs as inputs, same types
 *     body (i, y'...) -> y''...    each output is its input with one or more Deslices behind it,
 *                                  and nothing else reads it
 *   s  = Slice(x, i)               axes, sizes, starts [count x axes]: window number i of x
 *   y' = Deslice(t, y, i)          axes, starts: t written into y at place number i
 *
 * A reader may rely on what is checked here: every window and every place lies inside its
 * tensor, so tables need no check when the model runs, and no element of a buffer is written
 * twice, so iterations may run at once.
 *
 * Attribute `carried` of a While: iterations run in order, and the last so many of its buffers
 * go from one to the next. A body may take windows of such a buffer as it is given it, and its
 * Deslices, which have attribute `again`, write where others wrote before.
 */
#include "ops.h"
#include "onnx/import/model_io.h"
#include "shape.h"
#include "tile_places.h"

#define TILES_MAX ((int64_t)1 << 24) /* iterations of one While */

bool ot_is_tile_op(const ot_node *n, const char *op_type)
{
    return n->op == OT_OP_OPAQUE && strcmp(n->domain, OT_TILE_DOMAIN) == 0 &&
           strcmp(n->op_type, op_type) == 0;
}

/* ---- shapes ---- */

ot_status ot_shape_tile_alloc(ot_infer *c)
{
    size_t n = 0;
    const int64_t *d = ot_attr_ints(c->n, "shape", &n),
                  t = ot_attr_int(c->n, "dtype", OT_DT_UNKNOWN);
    if (n <= OT_RANK_MAX && (d || n == 0))
        ot_shape_set(c, 0, t > 0 && t <= OT_I2 ? (ot_dtype)t : OT_DT_UNKNOWN, (int32_t)n, d);
    return OT_OK;
}

ot_status ot_shape_tile_while(ot_infer *c)
{
    for (uint32_t k = 0; k < c->n->n_in; k++)
        ot_shape_set_like(c, k, ot_shape_dtype(c, k), ot_shape_ranked(c, k));
    return OT_OK;
}

ot_status ot_shape_tile_slice(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    size_t n = 0, n_sizes = 0;
    const int64_t *axes = ot_attr_ints(c->n, "axes", &n),
                  *sizes = ot_attr_ints(c->n, "sizes", &n_sizes);
    int64_t d[OT_RANK_MAX];
    if (!x || n != n_sizes) return OT_OK;
    for (int32_t a = 0; a < x->rank; a++) d[a] = x->dims[a];
    for (size_t k = 0; k < n; k++)
        if (axes[k] >= 0 && axes[k] < x->rank) d[axes[k]] = sizes[k];
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

ot_status ot_shape_tile_deslice(ot_infer *c)
{
    ot_shape_set_like(c, 0, ot_shape_dtype(c, 1), ot_shape_ranked(c, 1));
    return OT_OK;
}

/* ---- rules ---- */

/* Places that are written into one buffer. */
typedef struct written {
    ot_place_table *first, *last;
} written;

/* All Whiles of a graph. */
typedef struct graph_check {
    ot_graph *g;
    ot_graph *const *bodies; /* [g n_nodes] or NULL: see ot_check_tile_ops */
    ot_arena *a;
    bool *carried; /* [g n_values] of Whiles' outputs: carried by their While */
    /* [g n_values] the buffer that a While's output began as; of other values not set */
    ot_id *origin;
    written *written; /* [g n_values] by origin */
} graph_check;

/* One While under examination. */
typedef struct loop_check {
    graph_check *all;
    ot_graph *g; /* its body */
    int64_t count;
    uint32_t first_carried; /* buffers from that one on are carried */
} loop_check;

static ot_status broken(const ot_graph *g, const ot_node *n, const char *rule)
{
    return ot_fail(g->model->diag, OT_E_INPUT, "node '%s' (%s::%s): %s", n->name, n->domain,
                   n->op_type, rule);
}

/* Exactly so many operands and results, all there. */
static bool has_links(const ot_node *n, uint32_t n_in, uint32_t n_out)
{
    if (n->n_in != n_in || n->n_out != n_out) return false;
    for (uint32_t k = 0; k < n_in; k++)
        if (n->in[k] == OT_NONE) return false;
    for (uint32_t k = 0; k < n_out; k++)
        if (n->out[k] == OT_NONE) return false;
    return true;
}

static bool same_type(const ot_value *a, const ot_value *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || !ot_value_is_static(a)) return false;
    return a->rank == 0 || !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

static ot_status check_alloc(const ot_graph *g, const ot_node *n)
{
    size_t rank = 0;
    int64_t bytes;
    const ot_attr *shape = ot_attr_find(n, "shape");
    const int64_t *d = ot_attr_ints(n, "shape", &rank), t = ot_attr_int(n, "dtype", 0);
    if (!has_links(n, 0, 1)) return broken(g, n, "it takes no input and makes one output");
    if (!shape || rank > OT_RANK_MAX || (rank > 0 && !d))
        return broken(g, n, "it needs a 'shape' of at most 16 axes");
    for (size_t k = 0; k < rank; k++)
        if (d[k] < 0 || d[k] > OT_SHAPE_DIM_MAX)
            return broken(g, n, "'shape' has an impossible extent");
    if (t <= 0 || t > OT_I2 || ot_dtype_bits((ot_dtype)t) < 8)
        return broken(g, n, "it needs a 'dtype' whose elements are whole bytes");
    if (!ot_value_bytes(&g->values[n->out[0]], &bytes)) return broken(g, n, "its size overflows");
    return OT_OK;
}

/* Windows of `sizes` (of tile, at the axes) inside of x. */
static ot_status check_table(const loop_check *c, const ot_node *n, const ot_value *x,
                             const ot_value *tile)
{
    size_t n_axes = 0, n_starts = 0;
    const int64_t *axes = ot_attr_ints(n, "axes", &n_axes),
                  *starts = ot_attr_ints(n, "starts", &n_starts);
    bool cut[OT_RANK_MAX] = {false};
    if (!axes || n_axes < 1 || n_axes > OT_RANK_MAX) return broken(c->g, n, "it needs 'axes'");
    if (!starts || n_starts != n_axes * (size_t)c->count)
        return broken(c->g, n, "'starts' needs one number per iteration and axis");
    if (!ot_value_is_static(x) || !ot_value_is_static(tile) || x->dtype != tile->dtype ||
        x->rank != tile->rank)
        return broken(c->g, n, "its operands must be of one type, rank and known shapes");
    for (size_t k = 0; k < n_axes; k++) {
        if (axes[k] < 0 || axes[k] >= x->rank || cut[axes[k]])
            return broken(c->g, n, "'axes' names an axis twice or none of its tensor");
        cut[axes[k]] = true;
        int64_t room = x->dims[axes[k]] - tile->dims[axes[k]];
        if (tile->dims[axes[k]] < 1 || room < 0)
            return broken(c->g, n, "its window is empty or longer than its tensor");
        for (size_t i = k; i < n_starts; i += n_axes)
            if (starts[i] < 0 || starts[i] > room)
                return broken(c->g, n, "'starts' has a window that leaves its tensor");
    }
    for (int32_t a = 0; a < x->rank; a++)
        if (!cut[a] && x->dims[a] != tile->dims[a])
            return broken(c->g, n, "an axis that is not cut has another extent");
    return OT_OK;
}

static ot_status check_slice(const loop_check *c, const ot_node *n)
{
    size_t n_axes = 0, n_sizes = 0;
    (void)ot_attr_ints(n, "axes", &n_axes);
    const int64_t *sizes = ot_attr_ints(n, "sizes", &n_sizes);
    if (!has_links(n, 2, 1) || n->in[1] != c->g->inputs[0])
        return broken(c->g, n, "it takes a tensor and the iteration");
    if (!sizes || n_sizes != n_axes) return broken(c->g, n, "'sizes' needs one number per axis");
    return check_table(c, n, &c->g->values[n->in[0]], &c->g->values[n->out[0]]);
}

/* The one node that is no window of v; NULL: there is none, or several. */
static const ot_node *only_writer(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    const ot_node *writer = NULL;
    for (uint32_t u = 0; u < x->n_uses; u++) {
        const ot_node *n = &g->nodes[x->uses[u]];
        if (ot_is_tile_op(n, "Slice") && n->n_in == 2 && n->in[0] == v) continue;
        if (writer) return NULL;
        writer = n;
    }
    return writer;
}

/* What a body does with a buffer that it is given, and with the ones it makes of it: the next
 * Deslice takes it, or it is handed out; nobody else sees a buffer that other iterations are
 * writing to. All Deslices of the body have good tables. */
static ot_status check_buffer(const loop_check *c, const ot_node *loop, uint32_t k)
{
    ot_graph *g = c->g;
    const bool carried = k >= c->first_carried;
    ot_id v = g->inputs[1 + k];
    for (uint32_t steps = 0; v != g->outputs[k]; steps++) {
        const ot_value *x = &g->values[v];
        const ot_node *n = steps == 0 && carried ? only_writer(g, v)
                           : x->n_uses == 1      ? &g->nodes[x->uses[0]]
                                                 : NULL;
        if (!n || x->is_output || steps > g->n_nodes || !ot_is_tile_op(n, "Deslice") ||
            n->n_in != 3 || n->in[1] != v || n->in[0] == v)
            return broken(
                c->all->g, loop,
                "a buffer of its body does not go from input to output through Deslice alone");
        if (carried != (ot_attr_int(n, "again", 0) == 1))
            return broken(
                g, n, "'again' belongs to the buffers that its While carries, and to no others");
        v = n->out[0];
    }
    const ot_value *end = &g->values[v];
    if (end->n_uses > 0 || end->is_input)
        return broken(c->all->g, loop, "an output of its body is an input, or read inside");
    return OT_OK;
}

static ot_status check_deslice(const loop_check *c, const ot_node *n)
{
    if (!has_links(n, 3, 1) || n->in[2] != c->g->inputs[0])
        return broken(c->g, n, "it takes a tile, a buffer and the iteration");
    return check_table(c, n, &c->g->values[n->in[1]], &c->g->values[n->in[0]]);
}

static ot_status check_body_node(const loop_check *c, const ot_node *n)
{
    if (strcmp(n->domain, OT_TILE_DOMAIN) != 0 || n->op != OT_OP_OPAQUE) return OT_OK;
    if (ot_is_tile_op(n, "Slice")) return check_slice(c, n);
    if (ot_is_tile_op(n, "Deslice")) return check_deslice(c, n);
    return broken(c->g, n,
                  "the body of a While holds no operator of this domain but Slice and Deslice");
}

/* The places that a good body writes in its buffer k. */
static ot_status note_places(const loop_check *c, const ot_node *loop, uint32_t k)
{
    ot_graph *outer = c->all->g;
    ot_id from = c->all->origin[loop->out[k]], v = c->g->inputs[1 + k];
    written *w = &c->all->written[from];
    while (v != c->g->outputs[k]) {
        const ot_node *n = &c->g->nodes[c->g->values[v].uses[0]];
        ot_place_table *t = OT_NEW(c->all->a, ot_place_table);
        size_t n_axes = 0;
        if (!t) return ot_fail_nomem(outer->model->diag);
        t->axes = ot_attr_ints(n, "axes", &n_axes);
        *t = (ot_place_table){.node = n,
                              .axes = t->axes,
                              .starts = ot_attr_ints(n, "starts", &(size_t){0}),
                              .sizes = c->g->values[n->in[0]].dims,
                              .n_axes = (uint32_t)n_axes,
                              .rows = c->count};
        *(w->last ? &w->last->next : &w->first) = t;
        w->last = t;
        v = n->out[0];
    }
    return OT_OK;
}

/* The body as a graph with shapes: given, ours, or read from the file. */
static ot_status body_of(const graph_check *all, const ot_node *n, ot_graph **out)
{
    ot_graph *g = all->g;
    const ot_attr *a = ot_attr_find(n, "body");
    *out = all->bodies ? all->bodies[n - g->nodes] : NULL;
    if (*out) return ot_assure(*out, OT_P_ORDER | OT_P_USES);
    if (!a || !ot_attr_has_graph(g->model, a)) return broken(g, n, "it needs a graph 'body'");
    if (a->kind == OT_ATTR_GRAPH) {
        *out = a->g;
        return ot_assure(*out, OT_P_ORDER | OT_P_USES);
    }
    OT_TRY(ot_import_body(g->model, a, g, out));
    OT_TRY(ot_infer_shapes(*out, NULL, 0));
    return ot_assure(*out, OT_P_ORDER | OT_P_USES);
}

static bool captures_buffer(const ot_node *n)
{
    for (uint32_t c = 0; c < n->n_captured; c++)
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->captured[c] == n->in[k]) return true;
    return false;
}

/* Is list[k] in the list once? */
static bool once(const ot_id *list, uint32_t n, uint32_t k)
{
    for (uint32_t j = 0; j < n; j++)
        if (j != k && list[j] == list[k]) return false;
    return true;
}

static ot_status check_while(graph_check *all, const ot_node *n)
{
    ot_graph *g = all->g;
    loop_check c = {.all = all, .count = ot_attr_int(n, "count", 0)};
    if (n->n_in < 1 || !has_links(n, n->n_in, n->n_in))
        return broken(g, n, "it takes at least one buffer and hands out as many");
    if (captures_buffer(n)) return broken(g, n, "its body reads a buffer that it writes");
    if (c.count < 1 || c.count > TILES_MAX)
        return broken(g, n, "'count' must be from 1 to 16777216");
    const int64_t carried = ot_attr_int(n, "carried", 0);
    if (carried < 0 || carried > n->n_in)
        return broken(g, n, "'carried' counts more buffers than it takes");
    c.first_carried = n->n_in - (uint32_t)carried;
    OT_TRY(body_of(all, n, &c.g));
    const ot_graph *b = c.g;
    if (b->n_inputs != n->n_in + 1 || b->n_outputs != n->n_in)
        return broken(
            g, n, "its body must take the iteration and every buffer, and hand out every buffer");
    const ot_value *i = &b->values[b->inputs[0]];
    if (i->dtype != OT_I64 || i->rank != 0)
        return broken(g, n, "the first input of its body must be an int64 scalar");
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_value *x = &g->values[n->in[k]];
        if (!same_type(x, &g->values[n->out[k]]) || !same_type(x, &b->values[b->inputs[1 + k]]))
            return broken(g, n, "a buffer has another type or shape outside than in its body");
        if (!once(n->in, n->n_in, k)) return broken(g, n, "it takes a buffer twice");
        OT_TRY(check_buffer(&c, n, k));
    }
    for (uint32_t k = 0; k < b->n_order; k++) OT_TRY(check_body_node(&c, &b->nodes[b->order[k]]));
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_value *x = &g->values[n->in[k]];
        bool continues = x->n_uses == 1 && x->producer != OT_NONE &&
                         ot_is_tile_op(&g->nodes[x->producer], "While");
        all->origin[n->out[k]] = continues ? all->origin[n->in[k]] : n->in[k];
        if (k < c.first_carried) OT_TRY(note_places(&c, n, k));
        all->carried[n->out[k]] = k >= c.first_carried;
        if (x->producer != OT_NONE && ot_is_tile_op(&g->nodes[x->producer], "While") &&
            all->carried[n->in[k]] != (k >= c.first_carried))
            return broken(g, n, "a buffer that one While carries, the next one does not");
    }
    return OT_OK;
}

/* No element of the buffer is written twice. */
static ot_status check_places(const graph_check *all, ot_id buffer)
{
    const ot_value *y = &all->g->values[buffer];
    ot_places answer;
    ot_place p[2];
    if (!all->written[buffer].first) return OT_OK;
    if (ot_places_compare(all->written[buffer].first, y->rank, y->dims, &answer, p) != OT_OK)
        return ot_fail_nomem(all->g->model->diag);
    if (answer == OT_PLACES_APART) return OT_OK;
    const ot_node *n = answer == OT_PLACES_MEET ? p[1].table->node
                                                : all->written[buffer].first->node;
    if (answer == OT_PLACES_UNKNOWN)
        return ot_fail(all->g->model->diag, OT_E_INPUT,
                       "node '%s' (%s::%s): buffer '%s' is cut along too many axes to tell whether "
                       "its places are disjoint",
                       n->name, n->domain, n->op_type, y->name);
    return ot_fail(all->g->model->diag, OT_E_INPUT,
                   "node '%s' (%s::%s): iteration %lld writes elements of buffer '%s' that node "
                   "'%s' writes in iteration %lld: places "
                   "must be disjoint",
                   n->name, n->domain, n->op_type, (long long)p[1].row, y->name,
                   p[0].table->node->name, (long long)p[0].row);
}

static ot_status check_nodes(graph_check *all)
{
    ot_graph *g = all->g;
    for (uint32_t k = 0; k < g->n_order; k++) { /* in order: a chain of Whiles from its first on */
        const ot_node *n = &g->nodes[g->order[k]];
        if (strcmp(n->domain, OT_TILE_DOMAIN) != 0 || n->op != OT_OP_OPAQUE) continue;
        if (ot_is_tile_op(n, "Alloc"))
            OT_TRY(check_alloc(g, n));
        else if (ot_is_tile_op(n, "While"))
            OT_TRY(check_while(all, n));
        else
            return broken(g, n, "outside of a While's body, this domain has Alloc and While only");
    }
    for (ot_id v = 0; v < g->n_values; v++) OT_TRY(check_places(all, v));
    return OT_OK;
}

/* requires SHAPES. keeps everything. Fails: OT_E_INPUT, OT_E_NOMEM. */
ot_status ot_check_tile_ops(ot_graph *g, ot_graph *const *bodies)
{
    graph_check all = {.g = g, .bodies = bodies};
    bool any = false;
    for (ot_id id = 0; id < g->n_nodes && !any; id++)
        any = !g->nodes[id].dead && !strcmp(g->nodes[id].domain, OT_TILE_DOMAIN);
    if (!any) return OT_OK;
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    all.a = ot_arena_new();
    if (all.a) all.origin = OT_NEW_N(all.a, ot_id, g->n_values + 1u);
    if (all.a) all.carried = OT_NEW_N(all.a, bool, g->n_values + 1u);
    if (all.a) all.written = OT_NEW_N(all.a, written, g->n_values + 1u);
    ot_status st = all.origin && all.carried && all.written ? check_nodes(&all)
                                                            : ot_fail_nomem(g->model->diag);
    ot_arena_free(all.a);
    return st;
}

/* The buffer of which n takes a window as the body was given it; OT_NONE: it takes none. */
static ot_id read_as_given(const ot_graph *body, const ot_node *n)
{
    const bool reads = ot_is_tile_op(n, "Slice") && n->n_in == 2 && n->in[0] != OT_NONE &&
                       body->values[n->in[0]].is_input;
    return reads ? n->in[0] : OT_NONE;
}

ot_status ot_tile_reads_order(const ot_graph *body, ot_arena *a, ot_id *order)
{
    bool *put = OT_NEW_N(a, bool, body->n_nodes + 1u);
    uint32_t n = 0;
    if (!put) return OT_E_NOMEM;
    for (uint32_t k = 0; k < body->n_order; k++) {
        const ot_node *x = &body->nodes[body->order[k]];
        const bool writes = ot_is_tile_op(x, "Deslice") && x->n_in > 1 && x->in[1] != OT_NONE &&
                            body->values[x->in[1]].is_input;
        const ot_value *buffer = writes ? &body->values[x->in[1]] : NULL;
        for (uint32_t j = 0; buffer && j < buffer->n_uses; j++) {
            const ot_id by = buffer->uses[j];
            if (put[by] || read_as_given(body, &body->nodes[by]) != x->in[1]) continue;
            order[n++] = by;
            put[by] = true;
        }
        if (put[body->order[k]]) continue;
        order[n++] = body->order[k];
        put[body->order[k]] = true;
    }
    return OT_OK;
}

ot_status ot_tile_reads_first(ot_graph *body)
{
    OT_TRY(ot_assure(body, OT_P_ORDER | OT_P_USES));
    ot_id *order = OT_NEW_N(body->model->arena, ot_id, body->n_order + 1u);
    if (!order || ot_tile_reads_order(body, body->model->arena, order) != OT_OK)
        return ot_fail_nomem(body->model->diag);
    if (memcmp(order, body->order, body->n_order * sizeof *order) == 0) return OT_OK;
    body->order = order;
    return ot_take_order(body);
}
