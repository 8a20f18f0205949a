/* Nodes of old opsets that no newer one has, written anew when a model is raised (raise.c):
 *
 *   ImageScaler(x) {scale, bias}            Mul(x, scale), Add(.., bias [C,1,1])
 *   Affine(x) {alpha, beta}                 Mul(x, alpha), Add(.., beta)
 *   Crop(x) {border=[l,t,r,b], scale}       Slice(x, [t,l], [-b,-r], [2,3])
 *   Pad(x) {pads, mode, value=0}            Pad(x, pads) {mode}
 *   Clip(x) {min, max}                      Clip(x, min, max)
 *   Slice(x) {starts, ends, axes}           Slice(x, starts, ends, axes)
 *   Upsample, Resize(x, scales) {mode}      Resize(x, , scales) {mode, asymmetric, floor}
 *
 * The first three are experimental operators that runtimes have in float32 alone; Pad takes its
 * constant as an operand from opset 11 on, where zero need not be said. A model that is raised
 * all the way is raised to IR 4, too: constants are no inputs any more. The old nodes stay,
 * dead: a model that nothing else changes is taken back to what it was.
 */
#include "model_io.h"
#include "node_writer.h"

#define NEWEST 13 /* opset that models are raised to at most */
/* IR version from which on constants need not be inputs; branches and bodies are written with
 * those */
#define UNLISTED   4
#define OMITS_ROIS 13 /* opset from which on Resize needs none */

/* [n, 1, 1], or a scalar where n is 0. */
static ot_status floats(const ot_node_writer *w, const char *role, const float *data, int64_t n,
                        ot_id *out)
{
    const int64_t dims[3] = {n, 1, 1};
    const char *name = ot_writer_name(w, role);
    *out = name ? ot_const_f32(w->g, name, data, n > 0 ? 3 : 0, dims) : OT_NONE;
    return *out == OT_NONE ? ot_fail_nomem(w->g->model->diag) : OT_OK;
}

/* x * by + plus, [n, 1, 1] or (n 0) a scalar. */
static ot_status write_scaled(const ot_node_writer *w, const ot_node *old, float by,
                              const float *plus, int64_t n)
{
    ot_id factor, summand, scaled = OT_NONE, y = old->out[0];
    OT_TRY(floats(w, "scale", &by, 0, &factor));
    OT_TRY(floats(w, "bias", plus, n, &summand));
    OT_TRY(ot_write_node(w, "Mul", (ot_id_list){(ot_id[]){old->in[0], factor}, 2},
                         (ot_attr_list){0}, &scaled));
    return ot_write_node(w, "Add", (ot_id_list){(ot_id[]){scaled, summand}, 2}, (ot_attr_list){0},
                         &y);
}

static ot_status write_crop(const ot_node_writer *w, const ot_node *old)
{
    static const int64_t axes[2] = {2, 3};
    size_t n, n_size;
    const int64_t *border = ot_attr_ints(old, "border", &n),
                  *size = ot_attr_ints(old, "scale", &n_size);
    const int64_t starts[2] = {border[1], border[0]};
    int64_t ends[2];
    ot_id in[4] = {old->in[0]}, y = old->out[0];
    for (int k = 0; k < 2; k++)
        ends[k] = size ? starts[k] + size[k] : border[3 - k] > 0 ? -border[3 - k] : INT64_MAX;
    OT_TRY(ot_write_ints(w, "starts", starts, 2, &in[1]));
    OT_TRY(ot_write_ints(w, "ends", ends, 2, &in[2]));
    OT_TRY(ot_write_ints(w, "axes", axes, 2, &in[3]));
    return ot_write_node(w, "Slice", (ot_id_list){in, 4}, (ot_attr_list){0}, &y);
}

static ot_status write_pad(const ot_node_writer *w, const ot_node *old)
{
    size_t n;
    const int64_t *pads = ot_attr_ints(old, "pads", &n);
    const ot_attr *mode = ot_attr_find(old, "mode");
    ot_id in[2] = {old->in[0]}, y = old->out[0];
    OT_TRY(ot_write_ints(w, "pads", pads, (int64_t)n, &in[1]));
    return ot_write_node(w, "Pad", (ot_id_list){in, 2}, (ot_attr_list){mode, mode ? 1 : 0}, &y);
}

static ot_status write_slice(const ot_node_writer *w, const ot_node *old)
{
    static const char *const ROLES[3] = {"starts", "ends", "axes"};
    ot_id in[4] = {old->in[0]}, y = old->out[0];
    uint32_t n_in = 1;
    for (int k = 0; k < 3; k++) {
        size_t n = 0;
        const int64_t *data = ot_attr_ints(old, ROLES[k], &n);
        if (n > 0) OT_TRY(ot_write_ints(w, ROLES[k], data, (int64_t)n, &in[n_in++]));
    }
    return ot_write_node(w, "Slice", (ot_id_list){in, n_in}, (ot_attr_list){0}, &y);
}

/* Limits of the Clips of a graph, most of which have the same two. */
typedef struct limits {
    float values[8];
    ot_id made[8];
    uint32_t n;
} limits;

/* One of the limits of a Clip, where it is given. */
static ot_status write_limit(const ot_node_writer *w, const ot_node *old, const char *limit,
                             limits *all, ot_id *out)
{
    const ot_attr *a = ot_attr_find(old, limit);
    const float value = ot_attr_float(old, limit, 0);
    if (!a) return OT_OK;
    for (uint32_t k = 0; k < all->n; k++)
        if (memcmp(&all->values[k], &value, sizeof value) == 0) {
            *out = all->made[k];
            return OT_OK;
        }
    OT_TRY(ot_write_floats(w, limit, &value, 0, out));
    if (all->n < sizeof all->made / sizeof *all->made) {
        all->values[all->n] = value;
        all->made[all->n++] = *out;
    }
    return OT_OK;
}

static ot_status write_clip(const ot_node_writer *w, const ot_node *old, limits *all)
{
    ot_id in[3] = {old->in[0], OT_NONE, OT_NONE}, y = old->out[0];
    OT_TRY(write_limit(w, old, "min", all, &in[1]));
    OT_TRY(write_limit(w, old, "max", all, &in[2]));
    const uint32_t n = in[2] != OT_NONE ? 3 : in[1] != OT_NONE ? 2 : 1;
    return ot_write_node(w, "Clip", (ot_id_list){in, n}, (ot_attr_list){0}, &y);
}

/* Of nearest samples, scales are 1 and more: it is the one on the left. */
static ot_status write_resize(const ot_node_writer *w, const ot_node *old)
{
    const ot_attr attrs[3] = {ot_mk_str("mode", ot_attr_str(old, "mode", "nearest")),
                              ot_mk_str("coordinate_transformation_mode", "asymmetric"),
                              ot_mk_str("nearest_mode", "floor")};
    const ot_attr *scales = ot_attr_find(old, "scales");
    ot_id in[3] = {old->in[0], OT_NONE, old->n_in > 1 ? old->in[1] : OT_NONE}, y = old->out[0];
    const int64_t none = 0;
    const float nothing = 0;
    if (scales) OT_TRY(ot_write_floats(w, "scales", scales->floats, (int64_t)scales->n, &in[2]));
    if (w->g->model->opset < OMITS_ROIS) {
        const char *name = ot_writer_name(w, "roi");
        in[1] = name ? ot_const_f32(w->g, name, &nothing, 1, &none) : OT_NONE;
        if (in[1] == OT_NONE) return ot_fail_nomem(w->g->model->diag);
    }
    return ot_write_node(w, "Resize", (ot_id_list){in, 3}, (ot_attr_list){attrs, 3}, &y);
}

static ot_status write_anew(ot_graph *g, ot_id id, limits *all)
{
    ot_node old;
    const ot_node_writer w = ot_writer_in_place_of(g, id, &old);
    const ot_attr *bias = ot_attr_find(&old, "bias");
    const float beta = ot_attr_float(&old, "beta", 0);
    if (old.op == OT_OP_ImageScaler)
        return write_scaled(&w, &old, ot_attr_float(&old, "scale", 1), bias->floats,
                            (int64_t)bias->n);
    if (old.op == OT_OP_Affine)
        return write_scaled(&w, &old, ot_attr_float(&old, "alpha", 1), &beta, 0);
    if (old.op == OT_OP_Clip) return write_clip(&w, &old, all);
    if (old.op == OT_OP_Upsample || old.op == OT_OP_Resize) return write_resize(&w, &old);
    if (old.op == OT_OP_Slice) return write_slice(&w, &old);
    return old.op == OT_OP_Crop ? write_crop(&w, &old) : write_pad(&w, &old);
}

/* Constants are no inputs any more. Before IR 4 all had to be listed as such, and nobody could
 * give others. */
ot_status ot_raise_constants(ot_importer *im)
{
    if (im->m->ir_version >= UNLISTED) return OT_OK;
    ot_graph *g = im->g;
    ot_source *src = im->src;
    ot_id *kept = OT_NEW_N(im->m->arena, ot_id, g->n_inputs + 1u);
    if (!kept) return ot_fail_nomem(im->d);
    src->inputs = g->inputs;
    src->n_inputs = g->n_inputs;
    g->n_inputs = 0;
    for (uint32_t k = 0; k < src->n_inputs; k++) {
        ot_value *v = &g->values[src->inputs[k]];
        v->is_input = !v->init;
        if (v->is_input) kept[g->n_inputs++] = src->inputs[k];
    }
    g->inputs = kept;
    im->m->ir_version = UNLISTED;
    return OT_OK;
}

ot_status ot_raise_nodes(ot_importer *im)
{
    ot_graph *g = im->g;
    const uint32_t n = g->n_nodes;
    limits all = {.n = 0};
    im->src->n_nodes = n;
    for (ot_id id = 0; im->raised && id < n; id++) {
        const char *op = ot_op_name(g->nodes[id].op);
        if (ot_raise_replaces(op, im->src->opset, im->opset)) OT_TRY(write_anew(g, id, &all));
    }
    return im->raised && im->opset == NEWEST ? ot_raise_constants(im) : OT_OK;
}

ot_status ot_raise_undo(ot_model *m)
{
    ot_source *src = m->source;
    ot_graph *g = m->graph;
    if (!src || (src->n_nodes == g->n_nodes && !src->inputs && !src->has_lifted)) return OT_OK;
    g->n_nodes = src->n_nodes; /* what was written anew is at the end, and nothing else is */
    g->n_values = src->n_values;
    for (ot_id id = 0; id < g->n_nodes; id++) {
        if (g->nodes[id].dead) ot_node_restore(g, id);
        if (!g->nodes[id].domain[0]) g->nodes[id].version = src->opset;
    }
    m->opset = src->opset;
    m->ir_version = src->model->ir_version;
    if (src->inputs) {
        g->inputs = src->inputs;
        g->n_inputs = src->n_inputs;
        for (uint32_t k = 0; k < g->n_inputs; k++) g->values[g->inputs[k]].is_input = true;
    }
    g->props &= ~(unsigned)(OT_P_ORDER | OT_P_USES);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}
