/* Bytes that nodes read and write, by the memory level that their operands fit into.
 *
 *   value         120 KiB  3 MiB  40 MiB
 *   fast 512 KiB  fast     mid    slow   level by size: where data of that size lies between two
 *                                        nodes
 *   mid   32 MiB
 *
 * Inside the body of a loop a value is small, unless it is a window of a large one or a piece of
 * it:
 *
 *   x (40 MiB) --Slice--> window --conv--> t --relu--> piece --Deslice--> y (40 MiB)
 *     slow                 slow            fast          slow                slow
 *
 * The engine's Slice and Deslice move nothing themselves (views in, pieces written in place):
 * their bytes are those of the nodes at either end. Bodies count as often as they run. What one
 * kernel does for several nodes is counted as if each ran alone: the figures compare an original
 * with its tiled form, they do not measure; measure_perf.c does.
 */
#include "measure.h"

#include "onnx/import/model_io.h"

typedef enum level { FAST, MID, SLOW, LEVELS } level;

#define DEPTH_MAX 16

/* A graph that is being walked. */
typedef struct walk {
    const struct walk *outer;
    ot_graph *g;
    uint8_t *level; /* [n_values] */
    double times;   /* that the graph runs */
    uint32_t depth;
} walk;

typedef struct counter {
    ot_model *m;
    const ot_target *t;
    ot_arena *a;
    double bytes[LEVELS];
    uint32_t n_unsized;
} counter;

static ot_status count_graph(counter *c, walk *w);

/* ---- levels ---- */

static level level_of_size(const counter *c, const ot_value *v)
{
    int64_t bytes;
    if (!ot_value_bytes(v, &bytes) || bytes <= c->t->fast_bytes) return FAST;
    return c->t->mid_bytes > 0 && bytes <= c->t->mid_bytes ? MID : SLOW;
}

/* The level of a value that an enclosing graph defines. */
static level outer_level(const walk *w, const char *name, level otherwise)
{
    for (const walk *o = w->outer; o; o = o->outer) {
        ot_id v = ot_value_find(o->g, name);
        if (v != OT_NONE && !o->g->values[v].is_outer) return o->level[v];
    }
    return otherwise;
}

/* Windows lie where their source does, pieces where they go. Nodes are in order, so sources come
 * first. */
static void set_levels(counter *c, walk *w)
{
    ot_graph *g = w->g;
    for (ot_id v = 0; v < g->n_values; v++) {
        level own = level_of_size(c, &g->values[v]);
        if (w->level[v] < LEVELS) continue; /* an input: set by whoever runs the graph */
        w->level[v] = (uint8_t)(g->values[v].is_outer ? outer_level(w, g->values[v].name, own)
                                                      : own);
    }
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (ot_is_tile_op(n, "Slice")) w->level[n->out[0]] = w->level[n->in[0]];
        if (!ot_is_tile_op(n, "Deslice")) continue;
        w->level[n->out[0]] = w->level[n->in[1]];
        w->level[n->in[0]] = w->level[n->in[1]];
    }
}

/* ---- nodes ---- */

static void add(counter *c, const walk *w, ot_id v, const ot_value *sized)
{
    int64_t bytes;
    if (v == OT_NONE) return;
    if (ot_value_bytes(sized, &bytes))
        c->bytes[w->level[v]] += (double)bytes * w->times;
    else
        c->n_unsized++;
}

static bool moves_nothing(const ot_node *n)
{
    switch ((int)n->op) {
    case OT_OP_Reshape:
    case OT_OP_Flatten:
    case OT_OP_Squeeze:
    case OT_OP_Unsqueeze:
    case OT_OP_Identity:
    case OT_OP_Shape:
    case OT_OP_Size:
    case OT_OP_Constant: return true;
    default:
        return n->is_static || ot_is_tile_op(n, "Alloc") || ot_is_tile_op(n, "Slice") ||
               ot_is_tile_op(n, "Deslice");
    }
}

/* Only as much of the first input as there is output. */
static bool reads_a_part(const ot_node *n) { return n->op == OT_OP_Slice || n->op == OT_OP_Gather; }

static void count_operands(counter *c, const walk *w, const ot_node *n)
{
    const ot_value *values = w->g->values;
    if (moves_nothing(n)) return;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE)
            add(c, w, n->in[k],
                k == 0 && reads_a_part(n) && n->out[0] != OT_NONE ? &values[n->out[0]]
                                                                  : &values[n->in[k]]);
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) add(c, w, n->out[k], &values[n->out[k]]);
}

/* ---- bodies ---- */

/* The graph of an attribute, made when it is still in the file's form; NULL: it has none. */
static ot_status body_of(counter *c, const walk *w, const ot_attr *a, ot_graph **out)
{
    ot_diag *told = c->m->diag, ignored = {0};
    *out = a->kind == OT_ATTR_GRAPH ? a->g : NULL;
    if (*out || !ot_attr_has_graph(c->m, a)) return OT_OK;
    c->m->diag = &ignored;
    ot_status s = ot_import_body(c->m, a, w->g, out);
    if (s == OT_OK) s = ot_infer_shapes(*out, NULL, 0);
    c->m->diag = told;
    if (s != OT_OK && s != OT_E_NOMEM) *out = NULL; /* what cannot be sized is not counted */
    if (!*out) c->n_unsized++;
    return s == OT_E_NOMEM ? s : OT_OK;
}

/* Dimension of the last scan input along which a Scan steps; 0: not known. */
static double scan_length(const walk *w, const ot_node *n)
{
    const ot_value *v = n->n_in > 0 && n->in[n->n_in - 1] != OT_NONE
                            ? &w->g->values[n->in[n->n_in - 1]]
                            : NULL;
    size_t k = 0;
    const int64_t *axes = ot_attr_ints(n, "scan_input_axes", &k);
    int64_t axis = axes && k > 0 ? axes[k - 1] : 0;
    if (v && axis < 0 && v->rank > 0) axis += v->rank;
    return v && axis >= 0 && axis < v->rank && v->dims[axis] > 0 ? (double)v->dims[axis] : 0;
}

/* How often the body of a node runs; 0: not known. */
static double trips_of(const walk *w, const ot_node *n)
{
    if (ot_is_tile_op(n, "While")) return (double)ot_attr_int(n, "count", 0);
    if (n->op == OT_OP_If) return 1;
    if (n->op == OT_OP_Scan) return scan_length(w, n);
    if (n->op != OT_OP_Loop || n->n_in == 0 || n->in[0] == OT_NONE) return 0;
    const ot_value *v = &w->g->values[n->in[0]];
    return v->known && v->known_n == 1 && v->known[0] > 0 ? (double)v->known[0] : 0;
}

/* Inputs of the body lie where what they are bound to lies. The first `skip` are counters and
 * conditions; `from`: the node's input that the next one is bound to. */
static void bind_levels(const walk *w, const ot_node *n, uint32_t skip, uint32_t from, walk *body)
{
    const ot_graph *g = body->g;
    memset(body->level, LEVELS, g->n_values);
    for (uint32_t k = skip; k < g->n_inputs && from + k - skip < n->n_in; k++)
        if (n->in[from + k - skip] != OT_NONE)
            body->level[g->inputs[k]] = w->level[n->in[from + k - skip]];
}

static ot_status count_body(counter *c, const walk *w, const ot_node *n, ot_graph *g)
{
    double trips = trips_of(w, n);
    /* the iteration number, the condition */
    uint32_t own = n->op == OT_OP_Loop ? 2 : ot_is_tile_op(n, "While") ? 1 : 0;
    walk body = {
        .outer = w, .g = g, .times = w->times * (trips > 0 ? trips : 1), .depth = w->depth + 1};
    if (trips <= 0) c->n_unsized++;
    if (body.depth > DEPTH_MAX) return OT_OK;
    body.level = OT_NEW_N(c->a, uint8_t, g->n_values + 1u);
    if (!body.level) return ot_fail_nomem(c->m->diag);
    bind_levels(w, n, own, n->op == OT_OP_Loop ? 2 : 0, &body);
    return count_graph(c, &body);
}

/* Of the two branches of an If the one that moves more counts. */
static ot_status count_branches(counter *c, const walk *w, const ot_node *n)
{
    counter best = *c;
    double most = -1;
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        counter branch = *c;
        ot_graph *g;
        OT_TRY(body_of(&branch, w, &n->attrs[k], &g));
        if (!g) continue;
        OT_TRY(count_body(&branch, w, n, g));
        double sum = branch.bytes[FAST] + branch.bytes[MID] + branch.bytes[SLOW];
        if (sum <= most) continue;
        most = sum;
        best = branch;
    }
    *c = best;
    return OT_OK;
}

static ot_status count_node(counter *c, const walk *w, const ot_node *n)
{
    bool has_body = false;
    if (n->op == OT_OP_If) return count_branches(c, w, n);
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        ot_graph *g;
        OT_TRY(body_of(c, w, &n->attrs[k], &g));
        if (!g) continue;
        has_body = true;
        OT_TRY(count_body(c, w, n, g));
    }
    if (!has_body) count_operands(c, w, n);
    return OT_OK;
}

static ot_status count_graph(counter *c, walk *w)
{
    OT_TRY(ot_assure(w->g, OT_P_ORDER));
    set_levels(c, w);
    for (uint32_t k = 0; k < w->g->n_order; k++)
        OT_TRY(count_node(c, w, &w->g->nodes[w->g->order[k]]));
    return OT_OK;
}

ot_status ot_count_bytes(ot_model *m, const ot_target *t, ot_arena *a, ot_level_bytes *out)
{
    counter c = {.m = m, .t = t, .a = a};
    walk top = {.g = m->graph, .times = 1, .level = OT_NEW_N(a, uint8_t, m->graph->n_values + 1u)};
    if (!top.level) return ot_fail_nomem(m->diag);
    memset(top.level, LEVELS, m->graph->n_values);
    OT_TRY(count_graph(&c, &top));
    *out = (ot_level_bytes){c.bytes[FAST], c.bytes[MID], c.bytes[SLOW], c.n_unsized};
    return OT_OK;
}
