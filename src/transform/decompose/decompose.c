/* Decomposing normalisations and Resizes, and putting together again what no region has taken a
 * part of.
 *
 * The nodes that these were stay in the graph, dead: what is put together comes back as it was
 * read, and a part of the model that is not tiled is written as it was.
 */
#include "decompose_internal.h"

/* numbers of a group: from here on ONNX Runtime's sum in float32 is further off than all the
 * rest of a network */
#define LONG (1 << 18)

/* An element-wise operator on x, of x's type; *out as in decomp_op. */
static ot_status by_element(decomp_writer *w, const char *op, const char *role, ot_id x,
                            ot_id other, ot_id *out)
{
    const ot_node_def def = {.op = op, .name = role, .in = {(ot_id[]){x, other}, 2}};
    return decomp_op(w, &def, ot_type_of(&w->g->values[x]), out);
}

/* y of x, the factor and the summand, and what each element is scaled by. In half precision x *
 * factor + summand would cancel where the mean is large, and runtimes that normalise in bfloat16
 * need have no Mul of it: all is float32, between Casts. */
static ot_status write_affine(decomp_writer *w, const ot_norm *n, const ot_id both[2])
{
    const ot_value x = w->g->values[n->x];
    const ot_dtype type = w->g->values[both[0]].dtype;
    const int first = n->centred;
    const struct {
        const char *op, *role;
        ot_id by;
    } steps[4] = {{first ? "Add" : "Mul", first ? "shifted" : "scaled", both[first]},
                  {first ? "Mul" : "Add", first ? "scaled" : "shifted", both[1 - first]},
                  {"Mul", "each_scaled", n->each_scale},
                  {"Add", "each_shifted", n->each_bias}};
    const int last = n->each_bias != OT_NONE ? 3 : n->each_scale != OT_NONE ? 2 : 1;
    const bool half = type != x.dtype;
    const ot_attr back = ot_mk_int("to", x.dtype);
    ot_id v = n->x, y = n->y;
    if (half) OT_TRY(decomp_cast(w, "wide_x", v, type, &v));
    for (int k = 0; k <= last; k++) {
        ot_id by = steps[k].by;
        if (by == OT_NONE) continue;
        if (w->g->values[by].dtype != type) OT_TRY(decomp_cast(w, "wide_each", by, type, &by));
        ot_id made = k == last && !half ? n->y : OT_NONE;
        OT_TRY(by_element(w, steps[k].op, steps[k].role, v, by, &made));
        v = made;
    }
    return half ? decomp_op(w,
                            &(ot_node_def){
                                .op = "Cast", .name = "narrow", .in = {&v, 1}, .attrs = {&back, 1}},
                            ot_type_of(&x), &y)
                : OT_OK;
}

/* What has taken whose place. */
static ot_status note(const decomp_writer *w, const ot_id *whole, uint32_t n_whole,
                      ot_decomposed *made)
{
    ot_arena *a = w->g->model->arena;
    made->parts = ot_memdup(a, w->nodes, w->n_nodes * sizeof *w->nodes);
    made->whole = ot_memdup(a, whole, n_whole * sizeof *whole);
    made->n_parts = w->n_nodes;
    made->n_whole = n_whole;
    return made->parts && made->whole ? OT_OK : ot_fail_nomem(w->g->model->diag);
}

static ot_status write_parts(ot_graph *g, const ot_norm *n, ot_decomposed *made)
{
    ot_arena *a = g->model->arena;
    const ot_value x = g->values[n->x];
    int64_t axes[OT_RANK_MAX], dims[OT_RANK_MAX];
    decomp_writer w = {.g = g, .base = ot_format(a, "tile/norm/%s", g->values[n->y].name)};
    ot_id moments = OT_NONE, both[2];
    if (!w.base) return ot_fail_nomem(g->model->diag);
    for (int32_t k = 0; k < x.rank; k++) dims[k] = k < 2 ? x.dims[k] : 1;
    for (int32_t k = 2; k < x.rank; k++) axes[k - 2] = k;
    const int64_t last = dims[x.rank - 1];
    dims[x.rank - 1] = 2;
    const ot_attr over = ot_mk_ints(a, "axes", axes, (size_t)x.rank - 2);
    if (over.kind != OT_ATTR_INTS) return ot_fail_nomem(g->model->diag);
    OT_TRY(decomp_op(
        &w,
        &(ot_node_def){.op = "Moments", .name = "moments", .in = {&n->x, 1}, .attrs = {&over, 1}},
        (ot_tensor_type){OT_F64, x.rank, dims}, &moments));
    dims[x.rank - 1] = last;
    const ot_dtype type = x.dtype == OT_F64 ? OT_F64 : OT_F32;
    const ot_attr attrs[4] = {ot_mk_float("epsilon", n->epsilon), ot_mk_int("groups", n->groups),
                              ot_mk_int("dtype", type), ot_mk_int("centred", 1)};
    const ot_id in[5] = {moments, n->scale, n->bias, n->gamma, n->beta};
    OT_TRY(decomp_pair(
        &w,
        &(ot_node_def){.op = "NormFactors", .in = {in, 5}, .attrs = {attrs, n->centred ? 4 : 3}},
        (ot_tensor_type){type, x.rank, dims}, both));
    OT_TRY(write_affine(&w, n, both));
    return note(&w, n->nodes, n->n_nodes, made);
}

static ot_status write_lane(ot_graph *g, const ot_lane_norm *s, ot_decomposed *made)
{
    const bool lp = g->nodes[s->node].op == OT_OP_LpNormalization;
    decomp_writer w = {.g = g,
                       .base = ot_format(g->model->arena, lp ? "tile/norm/%s" : "tile/softmax/%s",
                                         g->values[g->nodes[s->node].out[0]].name)};
    if (!w.base) return ot_fail_nomem(g->model->diag);
    OT_TRY(lp ? decomp_write_lp(&w, s) : decomp_write_softmax(&w, s));
    return note(&w, &s->node, 1, made);
}

static ot_status write_corners(ot_graph *g, ot_id node, ot_decomposed *made)
{
    ot_corners c;
    decomp_writer w = {.g = g,
                       .base = ot_format(g->model->arena, "tile/resize/%s",
                                         g->values[g->nodes[node].out[0]].name)};
    if (!w.base) return ot_fail_nomem(g->model->diag);
    if (!decomp_find_corners(g, node, &c)) OT_BUG("a Resize is decomposed that cannot be");
    OT_TRY(decomp_write_corners(&w, node, &c));
    return note(&w, &node, 1, made);
}

/* Take normalisation n apart. */
static ot_status take_apart(ot_graph *g, const ot_norm *n, ot_decomposed *made)
{
    for (uint32_t i = 0; i < n->n_nodes; i++) ot_node_remove(g, n->nodes[i]);
    return write_parts(g, n, made);
}

/* These are g's splits. */
static ot_status note_all(ot_graph *g, const ot_decomposed *splits, uint32_t n)
{
    g->model->decomposed = splits;
    g->model->n_decomposed = n;
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}

ot_status ot_decompose_these(ot_graph *g, const ot_norm *norms, uint32_t n)
{
    ot_decomposed *splits = OT_NEW_N(g->model->arena, ot_decomposed, n + 1u);
    if (!splits) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < n; k++) OT_TRY(take_apart(g, &norms[k], &splits[k]));
    return note_all(g, splits, n);
}

/* What of a graph is decomposed. */
typedef struct findings {
    ot_norm *norms;      /* [n_norms] */
    ot_lane_norm *lanes; /* [n_lanes] */
    ot_id *corners;      /* [n_corners] Resizes with align_corners */
    uint32_t n_norms, n_lanes, n_corners;
    size_t cap_norms, cap_lanes, cap_corners;
} findings;

static ot_status find_all(ot_graph *g, bool softmax, findings *f)
{
    ot_arena *a = g->model->arena;
    *f = (findings){0};
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        ot_norm norm;
        ot_lane_norm lane;
        ot_corners corners;
        bool room = true;
        if (g->nodes[id].is_static) continue;
        if (ot_decompose_find(g, id, &norm))
            room = OT_PUSH(a, f->norms, f->n_norms, f->cap_norms, norm);
        else if (decomp_find_lp(g, id, &lane) || (softmax && decomp_find_softmax(g, id, &lane)))
            room = OT_PUSH(a, f->lanes, f->n_lanes, f->cap_lanes, lane);
        else if (decomp_find_corners(g, id, &corners))
            room = OT_PUSH(a, f->corners, f->n_corners, f->cap_corners, id);
        if (!room) return ot_fail_nomem(g->model->diag);
    }
    return OT_OK;
}

bool ot_decompose_any(const ot_graph *g, bool softmax)
{
    ot_norm norm;
    ot_lane_norm lane;
    ot_corners corners;
    bool any = false;
    for (uint32_t k = 0; k < g->n_order && !any; k++) {
        const ot_id id = g->order[k];
        any = !g->nodes[id].is_static &&
              (ot_decompose_find(g, id, &norm) || decomp_find_lp(g, id, &lane) ||
               (softmax && decomp_find_softmax(g, id, &lane)) ||
               decomp_find_corners(g, id, &corners));
    }
    return any;
}

ot_status ot_decompose_norms(ot_graph *g, bool softmax, uint32_t *n)
{
    findings f;
    *n = 0;
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES | OT_P_SHAPES));
    OT_TRY(find_all(g, softmax, &f));
    ot_decomposed *splits = OT_NEW_N(g->model->arena, ot_decomposed,
                                     f.n_norms + f.n_lanes + f.n_corners + 1u);
    if (!splits) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < f.n_norms; k++) OT_TRY(take_apart(g, &f.norms[k], &splits[(*n)++]));
    for (uint32_t k = 0; k < f.n_lanes; k++) OT_TRY(write_lane(g, &f.lanes[k], &splits[(*n)++]));
    for (uint32_t k = 0; k < f.n_corners; k++)
        OT_TRY(write_corners(g, f.corners[k], &splits[(*n)++]));
    return note_all(g, splits, *n);
}

/* ---- after the rewriting ---- */

static bool is_whole(const ot_graph *g, const ot_decomposed *s)
{
    for (uint32_t k = 0; k < s->n_parts; k++)
        if (g->nodes[s->parts[k]].dead) return false;
    return true;
}

/* A normalisation of so many numbers that the runtime's own sum of them loses digits. In a model
 * that is decomposed anyhow, where the moments of channels take no more time and lose less, it
 * stays apart. */
static bool is_long(const ot_graph *g, const ot_decomposed *s)
{
    const ot_node *moments = &g->nodes[s->parts[0]];
    int64_t elems;
    if (moments->op != OT_OP_Moments || s->n_parts < 2) return false;
    const ot_value *x = &g->values[moments->in[0]];
    const int64_t groups = ot_attr_int(&g->nodes[s->parts[1]], "groups", 1);
    return x->rank > 2 && x->dims[0] > 0 && groups > 0 && ot_value_elems(x, &elems) &&
           elems / x->dims[0] / groups >= LONG;
}

static void restore(ot_graph *g, const ot_decomposed *s)
{
    for (uint32_t k = 0; k < s->n_parts; k++) ot_node_remove(g, s->parts[k]);
    for (uint32_t k = 0; k < s->n_whole; k++) ot_node_restore(g, s->whole[k]);
}

/* Moments outside of all regions. */
static ot_status write_moments(ot_graph *g, ot_id id)
{
    const ot_node n = g->nodes[id];
    size_t n_axes;
    const int64_t *axes = ot_attr_ints(&n, "axes", &n_axes);
    ot_id out = n.out[0];
    if (n.dead) return OT_OK;
    ot_node_remove(g, id);
    return ot_moments_write(g, n.name, n.in[0], axes, n_axes, &out);
}

/* of: [n_values] 1 + the one of which it is a value inside; in: [n_nodes] 1 + the one whose part it
 * is. */
static void list_parts(const ot_graph *g, uint32_t *of, uint32_t *in)
{
    for (uint32_t k = 0; k < g->model->n_decomposed; k++) {
        const ot_decomposed *s = &g->model->decomposed[k];
        for (uint32_t p = 0; p < s->n_parts; p++) {
            const ot_node *n = &g->nodes[s->parts[p]];
            in[s->parts[p]] = k + 1;
            for (uint32_t o = 0; o < n->n_out; o++)
                if (n->out[o] != OT_NONE) of[n->out[o]] = k + 1;
        }
        for (uint32_t w = 0; w < s->n_whole; w++) {
            const ot_node *n = &g->nodes[s->whole[w]];
            for (uint32_t o = 0; o < n->n_out; o++)
                if (n->out[o] != OT_NONE) of[n->out[o]] = 0;
        }
    }
}

/* read: [n_decomposed] others read a value inside of it, as a normalisation does behind which this
 * one's last steps are made again. */
static ot_status find_read(const ot_graph *g, bool *read, ot_arena *a)
{
    uint32_t *of = OT_NEW_N(a, uint32_t, g->n_values + 1u),
             *in = OT_NEW_N(a, uint32_t, g->n_nodes + 1u);
    if (!of || !in) return ot_fail_nomem(g->model->diag);
    list_parts(g, of, in);
    for (ot_id id = 0; id < g->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        for (uint32_t k = 0; k < n->n_in + n->n_captured && !n->dead; k++) {
            const ot_id v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
            if (v != OT_NONE && of[v] > 0 && of[v] != in[id]) read[of[v] - 1] = true;
        }
    }
    return OT_OK;
}

static ot_status recompose(ot_graph *g, bool own_operators, ot_arena *a)
{
    const uint32_t n = g->model->n_decomposed;
    bool *once = OT_NEW_N(a, bool, n), *read = OT_NEW_N(a, bool, n);
    if (!once || !read) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < n; k++)
        OT_TRY(remat_undo_norms(g, &g->model->decomposed[k], &once[k]));
    OT_TRY(find_read(g, read, a));
    for (uint32_t k = 0; k < n; k++) {
        const ot_decomposed *s = &g->model->decomposed[k];
        if (once[k] && !read[k] && is_whole(g, s) && (own_operators || !is_long(g, s))) {
            restore(g, s);
        } else if (!own_operators && g->nodes[s->parts[0]].op == OT_OP_Moments) {
            OT_TRY(write_moments(g, s->parts[0]));
            if (!g->nodes[s->parts[1]].dead) OT_TRY(ot_norm_factors_write(g, s->parts[1]));
        }
    }
    return OT_OK;
}

ot_status ot_recompose(ot_graph *g, bool own_operators)
{
    OT_TRY(remat_undo_skips(g));
    if (g->model->n_decomposed > 0) {
        ot_arena *a = ot_arena_new();
        const ot_status s = a ? recompose(g, own_operators, a) : ot_fail_nomem(g->model->diag);
        ot_arena_free(a);
        OT_TRY(s);
    }
    return decomp_agree_rows(g);
}
