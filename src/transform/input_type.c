/* An input comes as another type: bytes of a picture in place of floats.
 *
 *   x uint8 --Cast--> . --Mul scale--> x/float32 --> what read x
 *
 * In tiled models of the engine's form the bodies of While convert their windows, so that x is
 * never held in the larger type:
 *
 *   x uint8 ==> body: --Slice--> . --Cast--> . --Mul--> what read the window
 *
 * Half precision is multiplied as float32 and rounded once.
 */
#include "transform.h"

#include "onnx/import/model_io.h"

#define SINCE 7 /* opset: Mul of a scalar */

typedef struct conversion {
    ot_model *m;
    const char *input;
    ot_dtype from, to; /* in the file of the array, in the model */
    double scale;
} conversion;

static ot_status refuse(const conversion *c, const char *why)
{
    return ot_fail(c->m->diag, OT_E_INPUT, "input '%.200s' cannot come as %s: %s", c->input,
                   ot_dtype_name(c->from), why);
}

/* ---- Cast and Mul ---- */

/* A new value like v, of another type. */
static ot_id like(ot_graph *g, ot_id v, ot_dtype type)
{
    const ot_value x = g->values[v];
    const char *base = ot_format(g->model->arena, "tile/as/%s/%s", ot_dtype_name(type), x.name);
    const char *name = base ? ot_fresh_name(g->model, base) : NULL;
    return name ? ot_value_new(g, name, type, x.rank, x.dims) : OT_NONE;
}

static ot_id scalar(ot_graph *g, ot_dtype type, double value)
{
    const float narrow = (float)value;
    const char *name = ot_fresh_name(g->model, "tile/as/scale");
    if (!name) return OT_NONE;
    return type == OT_F64 ? ot_const_f64(g, name, &value, 0, NULL)
                          : ot_const_f32(g, name, &narrow, 0, NULL);
}

/* Node op of `in`, [n]; what it makes, like v, or OT_NONE. */
static ot_id append(ot_graph *g, const char *op, ot_id_list in, ot_id v, ot_dtype type)
{
    const ot_attr to = ot_mk_int("to", type);
    const char *base = ot_format(g->model->arena, "tile/as/%s", op);
    const char *name = base ? ot_fresh_name(g->model, base) : NULL;
    ot_id out = name ? like(g, v, type) : OT_NONE;
    if (out == OT_NONE) return OT_NONE;
    const ot_node_def def = {.op = op,
                             .name = name,
                             .in = in,
                             .out = {&out, 1},
                             .attrs = {&to, strcmp(op, "Cast") == 0 ? 1 : 0}};
    return ot_node_new(g, &def) == OT_NONE ? OT_NONE : out;
}

/* v as the model wants it, where v is as the array is. */
static ot_status convert(const conversion *c, ot_graph *g, ot_id v, ot_id *out)
{
    const bool scales = c->scale != 1, half = ot_dtype_is_half(c->to);
    const ot_dtype works = scales && half ? OT_F32 : c->to;
    *out = append(g, "Cast", (ot_id_list){&v, 1}, v, works);
    if (scales && *out != OT_NONE) {
        ot_id by[2] = {*out, scalar(g, works, c->scale)};
        *out = by[1] == OT_NONE ? OT_NONE : append(g, "Mul", (ot_id_list){by, 2}, v, works);
    }
    if (works != c->to && *out != OT_NONE) {
        const ot_id wide = *out;
        *out = append(g, "Cast", (ot_id_list){&wide, 1}, v, c->to);
    }
    return *out == OT_NONE ? ot_fail_nomem(c->m->diag) : OT_OK;
}

/* ---- who reads it ---- */

static bool captures(const ot_node *n, ot_id v)
{
    for (uint32_t k = 0; k < n->n_captured; k++)
        if (n->captured[k] == v) return true;
    return false;
}

/* The nodes of g before the first new one that read v read `to`. */
static void reroute(ot_graph *g, ot_id v, ot_id to, ot_id first_new)
{
    for (ot_id k = 0; k < first_new; k++)
        for (uint32_t j = 0; j < g->nodes[k].n_in; j++) {
            if (g->nodes[k].in[j] != v) continue;
            g->nodes[k].in[j] = to;
            g->nodes[k].proto = NULL;
        }
}

/* Nodes of g that read v, which are no Slices of tiles; *inside: a subgraph does, which is no body
 * of tiles. */
static bool is_read(const ot_graph *g, ot_id v, bool *inside)
{
    bool reads = false;
    for (ot_id k = 0; k < g->n_nodes; k++) {
        const ot_node *n = &g->nodes[k];
        if (n->dead) continue;
        *inside = *inside || (captures(n, v) && !ot_is_tile_op(n, "While"));
        for (uint32_t j = 0; j < n->n_in; j++)
            reads = reads || (n->in[j] == v && !ot_is_tile_op(n, "Slice"));
    }
    return reads;
}

/* Who reads v in g, but for Slices of tiles and bodies of While, reads what it becomes. */
static ot_status convert_reads(const conversion *c, ot_graph *g, ot_id v)
{
    bool inside = false;
    ot_id as;
    const bool reads = is_read(g, v, &inside);
    if (inside) return refuse(c, "a subgraph of the model reads it");
    if (!reads) return OT_OK;
    const ot_id first_new = g->n_nodes;
    OT_TRY(convert(c, g, v, &as));
    for (ot_id k = 0; k < first_new; k++) {
        ot_node *n = &g->nodes[k];
        for (uint32_t j = 0; j < n->n_in && !ot_is_tile_op(n, "Slice"); j++)
            if (n->in[j] == v) {
                n->in[j] = as;
                n->proto = NULL;
            }
    }
    return OT_OK;
}

/* Windows of v, an outer value of the body, are converted where they are taken. */
static ot_status convert_windows(const conversion *c, ot_graph *body, ot_id v)
{
    const uint32_t n_nodes = body->n_nodes;
    for (ot_id k = 0; k < n_nodes; k++) {
        ot_id as;
        if (body->nodes[k].dead || !ot_is_tile_op(&body->nodes[k], "Slice") ||
            body->nodes[k].in[0] != v)
            continue;
        const ot_id w = body->nodes[k].out[0];
        if (body->values[w].is_output) return refuse(c, "a tile hands it on as it is");
        body->values[w].dtype = c->from;
        const ot_id first_new = body->n_nodes;
        OT_TRY(convert(c, body, w, &as));
        reroute(body, w, as, first_new);
    }
    return OT_OK;
}

static ot_status convert_body(const conversion *c, ot_graph *g, ot_node *n)
{
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        ot_attr *a = &n->attrs[k];
        if (!ot_attr_has_graph(c->m, a)) continue;
        if (a->kind != OT_ATTR_GRAPH) {
            ot_graph *body;
            OT_TRY(ot_import_body(c->m, a, g, &body));
            a->g = body;
            a->kind = OT_ATTR_GRAPH;
        }
        const ot_id v = ot_value_find(a->g, c->input);
        if (v == OT_NONE || !a->g->values[v].is_outer) continue;
        a->g->values[v].dtype = c->from;
        OT_TRY(convert_reads(c, a->g, v));
        OT_TRY(convert_windows(c, a->g, v));
        ot_confirm(a->g, 0);
    }
    n->proto = NULL;
    return OT_OK;
}

/* ---- the input ---- */

static ot_status check(const conversion *c, const ot_value *x)
{
    const ot_dtype to = x->dtype;
    if (!x->is_input || x->init)
        return ot_fail(c->m->diag, OT_E_USAGE, "the model has no input '%.200s' to convert",
                       c->input);
    if (!x->is_tensor || ot_dtype_bits(to) < 8 || to == OT_BOOL || to == OT_STRING)
        return refuse(c, "it is no tensor of numbers");
    if (ot_dtype_bits(c->from) < 8 || c->from == OT_BOOL || c->from == OT_STRING)
        return refuse(c, "this is no type of numbers that files hold");
    if (c->scale != 1 && !ot_dtype_is_real(to) && to != OT_F64)
        return refuse(c, "whole numbers of the model cannot be scaled");
    if (c->m->opset > 0 && c->m->opset < SINCE)
        return refuse(c, "operators of its opset are too old");
    if (x->is_output) return refuse(c, "it is an output of the model, too");
    return OT_OK;
}

ot_status ot_convert_input(ot_model *m, const char *input, ot_dtype type, double scale)
{
    ot_graph *g = m->graph;
    const ot_id v = ot_value_find(g, input);
    if (v == OT_NONE)
        return ot_fail(m->diag, OT_E_USAGE, "the model has no input '%.200s' to convert", input);
    ot_value *x = &g->values[v];
    const conversion c = {m, input, type == OT_DT_UNKNOWN ? x->dtype : type, x->dtype, scale};
    OT_TRY(check(&c, x));
    if (c.from == c.to && scale == 1) return OT_OK;
    x->dtype = c.from;
    x->proto = NULL;
    const uint32_t n_nodes = g->n_nodes;
    OT_TRY(convert_reads(&c, g, v));
    for (ot_id k = 0; k < n_nodes; k++)
        if (!g->nodes[k].dead && captures(&g->nodes[k], v))
            OT_TRY(convert_body(&c, g, &g->nodes[k]));
    ot_confirm(g, 0);
    return OT_OK;
}
