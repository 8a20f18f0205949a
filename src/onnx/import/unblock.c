/* Models whose convolutions run on blocks of channels, as ONNX Runtime saves them with all of its
 * optimisations, read as the standard operators that mean the same. Values between such operators
 * (domain com.microsoft.nchwc) lie in memory as
 *
 *   [N, C/B, H, W, B]   under the shape [N, C, H, W], C a multiple of B
 *
 * where no window of rows is a Slice. Here they are plain, of the same shape:
 *
 *   ReorderInput(x)             x, or a Pad of its channels up to C     Transpose, channels_last
 *   ReorderOutput(v) {channels} v, or its first channels                Transpose, channels_last
 *   Conv(v, w, b, z)            Conv(v, plain w, b), Add(.., z), its activation
 *   MaxPool, AveragePool, ...   the same
 *   Upsample {scales, mode}     Resize
 *   Add, Relu, Concat of channels and other standard operators between them stay what they are;
 *   two Reshapes around them, which make B an axis and take that back, go
 *
 * Weights are [O, I, h, w], whose memory is in blocks of output channels, and of input channels
 * where the input lies in blocks:
 *
 *   x plain, or one channel a group   [O/B, I, h, w, B]
 *   else                              [O/B, I/B, h, w, B, B]
 *
 * No file states B. ONNX Runtime takes 16 or 8 by the processor, and such a file is good for
 * processors of one B alone: here it is the one that the numbers of channels allow, or, where
 * they allow both, this processor's. One node that does not fit leaves all as they are.
 */
#include "blocked_nodes.h"
#include "model_io.h"
#include "node_writer.h"

#define OLDEST         7  /* opset whose operators are known */
#define SCALE_OPERAND  9  /* opset from which on Upsample's scales are an operand */
#define SLICE_OPERANDS 10 /* opset from which on Slice has its places as operands */
#define PAD_OPERANDS   11 /* opset from which on Pad has its pads as an operand */
#define OMITS_ROIS     13 /* opset from which on Resize needs none */

typedef struct unblocking {
    ot_blocked b;
    ot_arena *scratch;
    int64_t *kept;  /* [n_values] channels that are written of a value in blocks */
    ot_id *plain;   /* [n_values] what has the same contents; itself: it is written */
    ot_id *weights; /* [n_values] plain copy of these weights; OT_NONE: none yet */
} unblocking;

/* ---- which values are the same ---- */

static ot_id stands_for(const unblocking *u, ot_id v)
{
    while (u->plain[v] != v) v = u->plain[v];
    return v;
}

/* A convolution whose result is only given back: what is left out there is not computed. */
static int64_t channels_given(const unblocking *u, const ot_node *conv)
{
    const ot_value *y = &u->b.g->values[conv->out[0]];
    int64_t channels = 0;
    if (ot_attr_int(conv, "group", 1) != 1 || (conv->n_in > 3 && conv->in[3] != OT_NONE))
        return u->b.width[conv->out[0]];
    for (uint32_t k = 0; k < y->n_uses; k++) {
        const ot_node *reader = &u->b.g->nodes[y->uses[k]];
        const int64_t given = ot_attr_int(reader, "channels", 0);
        if (u->b.parts[y->uses[k]] != OT_BLOCKED_GIVE || (k > 0 && given != channels))
            return u->b.width[conv->out[0]];
        channels = given;
    }
    return channels > 0 ? channels : u->b.width[conv->out[0]];
}

static void find_same(unblocking *u)
{
    const ot_graph *g = u->b.g;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        const ot_blocked_part what = u->b.parts[g->order[k]];
        if (what == OT_BLOCKED_NONE) continue;
        const ot_id x = n->in[0], y = n->out[0];
        const ot_id from = stands_for(u, x);
        u->kept[y] = what == OT_BLOCKED_CONV ? channels_given(u, n) : u->b.width[y];
        if (what == OT_BLOCKED_SPLIT || what == OT_BLOCKED_JOIN) u->plain[y] = from;
        if (what == OT_BLOCKED_TAKE && !ot_blocked_is_last(n) &&
            ot_blocked_taken(&u->b, n) == u->b.width[y])
            u->plain[y] = from;
        if (what == OT_BLOCKED_GIVE && !ot_blocked_is_last(n) &&
            ot_attr_int(n, "channels", 0) == u->kept[x] && u->b.width[from] > 0)
            u->plain[from] = y;
    }
}

/* ---- writing ---- */

static ot_status write_turned(const ot_node_writer *w, ot_id x, int32_t rank, bool to_last,
                              ot_id *y)
{
    int64_t perm[OT_RANK_MAX] = {0};
    for (int32_t a = 1; a < rank; a++)
        perm[a] = to_last ? (a == rank - 1 ? 1 : a + 1) : (a == 1 ? rank - 1 : a - 1);
    const ot_attr attr = ot_mk_ints(w->g->model->arena, "perm", perm, (size_t)rank);
    return ot_write_node(w, "Transpose", (ot_id_list){&x, 1}, (ot_attr_list){&attr, 1}, y);
}

static ot_status write_taken(const unblocking *u, const ot_node_writer *w, const ot_node *old)
{
    ot_id x = stands_for(u, old->in[0]), y = stands_for(u, old->out[0]);
    const int32_t rank = (int32_t)u->b.rank;
    const int64_t more = u->b.width[old->out[0]] - ot_blocked_taken(&u->b, old);
    if (!ot_blocked_is_last(old) && more == 0) return OT_OK;
    if (ot_blocked_is_last(old)) {
        ot_id turned = more > 0 ? OT_NONE : y;
        OT_TRY(write_turned(w, x, rank, false, &turned));
        x = turned;
    }
    if (more == 0) return OT_OK;
    int64_t pads[2 * OT_RANK_MAX] = {0};
    pads[rank + 1] = more;
    ot_id in[2] = {x};
    const bool operand = u->b.g->model->opset >= PAD_OPERANDS;
    const ot_attr attr = ot_mk_ints(w->g->model->arena, "pads", pads, 2 * (size_t)rank);
    if (operand) OT_TRY(ot_write_ints(w, "pads", pads, 2 * (int64_t)rank, &in[1]));
    return ot_write_node(w, "Pad", (ot_id_list){in, operand ? 2 : 1},
                         (ot_attr_list){&attr, operand ? 0 : 1}, &y);
}

/* The first channels of x -> *y. */
static ot_status write_first(const unblocking *u, const ot_node_writer *w, ot_id x,
                             int64_t channels, ot_id *y)
{
    const int64_t axis = 1, begin = 0;
    ot_id in[4] = {x};
    if (u->b.g->model->opset < SLICE_OPERANDS) {
        ot_arena *a = w->g->model->arena;
        const ot_attr attrs[3] = {ot_mk_ints(a, "starts", &begin, 1),
                                  ot_mk_ints(a, "ends", &channels, 1),
                                  ot_mk_ints(a, "axes", &axis, 1)};
        return ot_write_node(w, "Slice", (ot_id_list){in, 1}, (ot_attr_list){attrs, 3}, y);
    }
    OT_TRY(ot_write_ints(w, "starts", &begin, 1, &in[1]));
    OT_TRY(ot_write_ints(w, "ends", &channels, 1, &in[2]));
    OT_TRY(ot_write_ints(w, "axes", &axis, 1, &in[3]));
    return ot_write_node(w, "Slice", (ot_id_list){in, 4}, (ot_attr_list){0}, y);
}

static ot_status write_given(const unblocking *u, const ot_node_writer *w, const ot_node *old)
{
    ot_id x = old->in[0], y = old->out[0];
    const int64_t channels = ot_attr_int(old, "channels", 0);
    const bool last = ot_blocked_is_last(old), cuts = channels < u->kept[x];
    ot_id from = stands_for(u, x), out = last ? OT_NONE : y;
    if (from == y) return OT_OK;
    if (cuts) {
        OT_TRY(write_first(u, w, from, channels, &out));
        from = out;
    }
    if (last) return write_turned(w, from, (int32_t)u->b.rank, true, &y);
    return cuts ? OT_OK
                : ot_write_node(w, "Identity", (ot_id_list){&from, 1}, (ot_attr_list){0}, &y);
}

/* The first `kept` output channels of the weights, in plain order. */
static void unblock(const ot_tensor *w, int64_t block, bool both, int64_t kept, float *out)
{
    int64_t area = 1;
    for (uint32_t a = 2; a < w->rank; a++) area *= w->dims[a];
    for (int64_t o = 0; o < kept; o++)
        for (int64_t i = 0; i < w->dims[1]; i++)
            for (int64_t s = 0; s < area; s++)
                *out++ = ot_blocked_weight(w, block, both, (int64_t[]){o, i, s}, area);
}

/* Plain weights of operand 1, or, where channels are left out, those of the bias. */
static ot_status write_weights(const unblocking *u, const ot_node_writer *w, const ot_node *old,
                               ot_id *out)
{
    const ot_tensor *t = ot_blocked_constant(&u->b, old, 1);
    const int64_t kept = u->kept[old->out[0]];
    const bool shared = kept == t->dims[0];
    int64_t dims[OT_RANK_MAX];
    if (shared && u->weights[old->in[1]] != OT_NONE) return *out = u->weights[old->in[1]], OT_OK;
    ot_arena *a = ot_arena_new();
    float *data = a ? ot_alloc_n(a, t->bytes, 1) : NULL;
    const char *name = data ? ot_writer_name(w, "weights") : NULL;
    *out = OT_NONE;
    if (name) {
        unblock(t, u->b.block, ot_blocked_both(old, t, u->b.block), kept, data);
        for (uint32_t k = 0; k < t->rank; k++) dims[k] = k == 0 ? kept : t->dims[k];
        *out = ot_const_f32(u->b.g, name, data, (int32_t)t->rank, dims);
    }
    ot_arena_free(a);
    if (*out == OT_NONE) return ot_fail_nomem(u->b.g->model->diag);
    if (shared) u->weights[old->in[1]] = *out;
    return OT_OK;
}

static ot_status write_bias(const unblocking *u, const ot_node_writer *w, const ot_node *old,
                            ot_id *out)
{
    const ot_tensor *t = ot_blocked_constant(&u->b, old, 2);
    const int64_t kept = u->kept[old->out[0]];
    *out = old->in[2];
    if (kept == t->dims[0]) return OT_OK;
    float *data = OT_NEW_N(u->scratch, float, (size_t)kept);
    if (!data) return ot_fail_nomem(u->b.g->model->diag);
    memcpy(data, t->data, (size_t)kept * sizeof *data);
    return ot_write_floats(w, "bias", data, kept, out);
}

static ot_status write_conv(const unblocking *u, const ot_node_writer *w, const ot_node *old)
{
    static const char *const without[] = {"activation", "group", NULL};
    const ot_tensor *t = ot_blocked_constant(&u->b, old, 1);
    const bool sums = old->n_in > 3 && old->in[3] != OT_NONE;
    int64_t groups = ot_attr_int(old, "group", 1);
    ot_id in[3] = {stands_for(u, old->in[0])};
    ot_attr *attrs;
    ot_merged_conv c = {.in = {in, 2},
                        .sum = sums ? stands_for(u, old->in[3]) : OT_NONE,
                        .act = ot_activation_of_conv(old)};
    OT_TRY(write_weights(u, w, old, &in[1]));
    if (ot_blocked_constant(&u->b, old, 2)) OT_TRY(write_bias(u, w, old, &in[c.in.n++]));
    OT_TRY(ot_write_attrs_of(w, old, without, &attrs, &c.attrs.n));
    if (groups > 1 && t->dims[1] == 1) groups = t->dims[0]; /* padded channels are groups, too */
    attrs[c.attrs.n++] = ot_mk_int("group", groups);
    c.attrs.at = attrs;
    return ot_write_conv(w, &c, stands_for(u, old->out[0]));
}

static ot_status write_empty(const unblocking *u, const ot_node_writer *w, const char *role,
                             ot_id *out)
{
    const int64_t none = 0;
    const float nothing = 0;
    const char *name = ot_writer_name(w, role);
    *out = name ? ot_const_f32(u->b.g, name, &nothing, 1, &none) : OT_NONE;
    return *out == OT_NONE ? ot_fail_nomem(u->b.g->model->diag) : OT_OK;
}

/* Before opset 11 samples of a Resize, or Upsample, lie where nearest ones do now. */
static ot_status write_old_resize(const unblocking *u, const ot_node_writer *w, const ot_node *old,
                                  const float *factors, size_t count)
{
    const int32_t opset = u->b.g->model->opset;
    const bool operand = opset >= SCALE_OPERAND;
    const float *kept = ot_memdup(w->g->model->arena, factors, count * sizeof *factors);
    const ot_attr attrs[2] = {
        ot_mk_str("mode", ot_attr_str(old, "mode", "nearest")),
        {.name = "scales", .kind = OT_ATTR_FLOATS, .floats = kept, .n = count}};
    ot_id in[2] = {stands_for(u, old->in[0])}, y = stands_for(u, old->out[0]);
    if (!kept) return ot_fail_nomem(w->g->model->diag);
    if (operand) OT_TRY(ot_write_floats(w, "scales", factors, (int64_t)count, &in[1]));
    return ot_write_node(w, opset >= SLICE_OPERANDS ? "Resize" : "Upsample",
                         (ot_id_list){in, operand ? 2 : 1}, (ot_attr_list){attrs, operand ? 1 : 2},
                         &y);
}

static ot_status write_resize(const unblocking *u, const ot_node_writer *w, const ot_node *old)
{
    size_t count;
    const int64_t *scales = ot_attr_ints(old, "scales", &count);
    const bool nearest = strcmp(ot_attr_str(old, "mode", "nearest"), "nearest") == 0;
    const char *where = nearest ? "asymmetric"
                                : ot_attr_str(old, "coordinate_transformation_mode", "half_pixel");
    const ot_attr attrs[3] = {ot_mk_str("mode", nearest ? "nearest" : "linear"),
                              ot_mk_str("coordinate_transformation_mode", where),
                              ot_mk_str("nearest_mode", "floor")};
    float factors[OT_RANK_MAX];
    ot_id in[3] = {stands_for(u, old->in[0]), OT_NONE, OT_NONE}, y = stands_for(u, old->out[0]);
    for (size_t k = 0; k < count; k++) factors[k] = (float)scales[k];
    if (u->b.g->model->opset < OT_RESIZES_BY_MODE)
        return write_old_resize(u, w, old, factors, count);
    if (u->b.g->model->opset < OMITS_ROIS)
        OT_TRY(write_empty(u, w, "roi", &in[1])); /* cannot be omitted */
    OT_TRY(ot_write_floats(w, "scales", factors, (int64_t)count, &in[2]));
    return ot_write_node(w, "Resize", (ot_id_list){in, 3}, (ot_attr_list){attrs, nearest ? 3 : 2},
                         &y);
}

/* The same operator on the plain values. */
static ot_status write_same(const unblocking *u, const ot_node_writer *w, const ot_node *old,
                            ot_id id)
{
    static const char *const all[] = {NULL}, *const average[] = {"dilations", NULL},
                             *const pool[] = {"dilations", "ceil_mode", "storage_order", NULL};
    const bool averages = strcmp(old->op_type, "AveragePool") == 0,
               early = u->b.parts[id] == OT_BLOCKED_POOL &&
                       u->b.g->model->opset < OT_POOLS_ROUND_UP;
    ot_attr *attrs;
    uint32_t n_attrs;
    ot_id *in = OT_NEW_N(u->scratch, ot_id, old->n_in), y = stands_for(u, old->out[0]);
    if (!in) return ot_fail_nomem(u->b.g->model->diag);
    for (uint32_t k = 0; k < old->n_in; k++)
        in[k] = old->in[k] == OT_NONE ? OT_NONE : stands_for(u, old->in[k]);
    OT_TRY(ot_write_attrs_of(w, old, early ? pool : averages ? average : all, &attrs, &n_attrs));
    return ot_write_node(w, old->op_type, (ot_id_list){in, old->n_in},
                         (ot_attr_list){attrs, n_attrs}, &y);
}

static ot_status write_node(const unblocking *u, ot_id id)
{
    ot_node old;
    ot_node_writer w = ot_writer_in_place_of(u->b.g, id, &old);
    switch (u->b.parts[id]) {
    case OT_BLOCKED_TAKE: return write_taken(u, &w, &old);
    case OT_BLOCKED_GIVE: return write_given(u, &w, &old);
    case OT_BLOCKED_CONV: return write_conv(u, &w, &old);
    case OT_BLOCKED_RESIZE: return write_resize(u, &w, &old);
    case OT_BLOCKED_BETWEEN: w.domain = old.domain; return write_same(u, &w, &old, id);
    case OT_BLOCKED_SPLIT:
    case OT_BLOCKED_JOIN: return OT_OK;
    default: return write_same(u, &w, &old, id);
    }
}

static bool allocate(unblocking *u, ot_arena *a)
{
    const ot_graph *g = u->b.g;
    u->scratch = a;
    u->kept = OT_NEW_N(a, int64_t, g->n_values + 1u);
    u->plain = OT_NEW_N(a, ot_id, g->n_values + 1u);
    u->weights = OT_NEW_N(a, ot_id, g->n_values + 1u);
    if (!u->kept || !u->plain || !u->weights) return false;
    for (ot_id v = 0; v < g->n_values; v++) {
        u->plain[v] = v;
        u->weights[v] = OT_NONE;
    }
    return true;
}

ot_status ot_unblock_nodes(ot_importer *im)
{
    ot_graph *g = im->g;
    unblocking u;
    bool any = false;
    for (ot_id id = 0; id < g->n_nodes; id++)
        any |= !g->nodes[id].dead && ot_blocked_is_op(&g->nodes[id]);
    if (!any || im->opset < OLDEST) return OT_OK;
    OT_TRY(ot_topo_sort(g));
    OT_TRY(ot_blocked_read(g, im->scratch, &u.b));
    if (u.b.block == 0) return OT_OK;
    if (!allocate(&u, im->scratch)) return ot_fail_nomem(im->d);
    find_same(&u);
    const ot_id n_nodes = g->n_nodes;
    for (ot_id id = 0; id < n_nodes; id++)
        if (!g->nodes[id].dead && u.b.parts[id] != OT_BLOCKED_NONE) OT_TRY(write_node(&u, id));
    return ot_raise_constants(im);
}
