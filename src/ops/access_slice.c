/* Slice, and Crop, its picture-only ancestor: a cut axis with start s0 and step st > 0 reads
 *
 *   out [o0, o1)  <-  in [s0 + o0*st, s0 + (o1-1)*st + 1)
 *
 *   in   . . . s0 . . # . . # . . # . .        st = 3; the tile's window begins at its
 *   out         0     1     2     3            first element: the adapted Slice starts at 0
 *
 * Axes that the node does not list pass through. Negative steps run backwards and are not cut. When
 * on every axis the tile's window is exactly the result, no node is needed: the rewriter's own
 * slice has done the work.
 */
#include "access.h"

#define SLICE_HAS_INPUTS 10
#define TO_END_LEAST     INT32_MAX   /* ends from here on mean: to the end, whatever the extent */
#define CROP_MOST        (1LL << 40) /* rows: more than any axis has */

typedef struct slice_info {
    uint32_t n;                /* listed axes */
    int64_t axis[OT_RANK_MAX]; /* [n] 0..rank-1 */
    /* [n], start and stop clamped */
    int64_t start[OT_RANK_MAX], stop[OT_RANK_MAX], step[OT_RANK_MAX];
    /* start, stop and step are filled */
    bool bounds_known;
    /* axis -> index into the lists, or -1 */
    int8_t listed[OT_RANK_MAX];
} slice_info;

/* Vector from an operand (opset 10 on) or an attribute; -1 when absent or not constant. */
static int64_t vector(const ot_graph *g, const ot_node *n, const char *attr, uint32_t operand,
                      int64_t *out)
{
    if (n->version >= 10) return ot_acc_ints(g, n, operand, out, OT_RANK_MAX);
    size_t count = 0;
    const int64_t *v = ot_attr_ints(n, attr, &count);
    if (!v || count > OT_RANK_MAX) return -1;
    memcpy(out, v, count * sizeof *out);
    return (int64_t)count;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return ot_min(ot_max(v, lo), hi); }

/* Bounds of one listed axis as the standard reads them. */
static bool resolve(int64_t extent, int64_t *start, int64_t *stop, int64_t step)
{
    if (step == 0) return false;
    if (*start < 0) *start += extent;
    if (*stop < 0) *stop += extent;
    *start = step > 0 ? clamp(*start, 0, extent) : clamp(*start, 0, extent - 1);
    *stop = step > 0 ? clamp(*stop, 0, extent) : clamp(*stop, -1, extent - 1);
    return true;
}

/* Crop (opsets 1 to 9): rows and columns of a picture, between borders (left, top, right, bottom).
 */
static bool read_crop(const ot_node *n, const ot_value *x, const ot_value *y, slice_info *s,
                      ot_why *why)
{
    size_t count = 0;
    const int64_t *border = ot_attr_ints(n, "border", &count);
    if (x->rank != 4 || count != 4 || !border) return ot_acc_refuse(why, OT_WHY_SLICE_EXTENT);
    s->n = 2;
    s->bounds_known = true;
    for (int8_t i = 0; i < 2; i++) {
        s->axis[i] = 2 + i;
        s->start[i] = border[1 - i];
        s->stop[i] = border[1 - i] + y->dims[2 + i];
        s->step[i] = 1;
        s->listed[2 + i] = i;
        if (s->start[i] < 0 || s->start[i] > x->dims[2 + i] || s->stop[i] > x->dims[2 + i])
            return ot_acc_refuse(why, OT_WHY_SLICE_EXTENT);
    }
    return true;
}

static bool read(const ot_graph *g, const ot_node *n, slice_info *s, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    *s = (slice_info){0};
    memset(s->listed, -1, sizeof s->listed);
    if (x && y && x->rank == y->rank && n->op == OT_OP_Crop) return read_crop(n, x, y, s, why);
    if (!x || !y || x->rank < 1 || x->rank > OT_RANK_MAX || x->rank != y->rank)
        return ot_acc_refuse(why, OT_WHY_SLICE_RANK);
    bool has_axes = n->version >= 10 ? ot_acc_in(g, n, 3) != NULL : ot_attr_find(n, "axes") != NULL;
    bool has_steps = n->version >= 10 && ot_acc_in(g, n, 4);
    int64_t n_axes = vector(g, n, "axes", 3, s->axis);
    int64_t n_start = vector(g, n, "starts", 1, s->start),
            n_stop = vector(g, n, "ends", 2, s->stop);
    int64_t n_step = has_steps ? ot_acc_ints(g, n, 4, s->step, OT_RANK_MAX) : n_start;
    if (has_axes && n_axes < 0) return ot_acc_refuse(why, OT_WHY_SLICE_AXES_RUNTIME);
    if (!has_axes && n_start < 0) return ot_acc_refuse(why, OT_WHY_SLICE_BOUNDS_RUNTIME);
    s->n = (uint32_t)(has_axes ? n_axes : n_start);
    if (s->n > (uint32_t)x->rank) return ot_acc_refuse(why, OT_WHY_SLICE_AXES_COUNT);
    s->bounds_known = n_start == s->n && n_stop == s->n && n_step == s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        int32_t a = ot_acc_norm_axis(has_axes ? s->axis[i] : (int64_t)i, x->rank);
        if (a < 0 || s->listed[a] >= 0) return ot_acc_refuse(why, OT_WHY_SLICE_AXES_WRONG);
        s->axis[i] = a;
        s->listed[a] = (int8_t)i;
        if (!has_steps) s->step[i] = 1;
        if (s->bounds_known && !resolve(x->dims[a], &s->start[i], &s->stop[i], s->step[i]))
            return ot_acc_refuse(why, OT_WHY_SLICE_STEP_ZERO);
    }
    return true;
}

/* Is the listed axis i cuttable, and does it have the extent that its bounds give? */
static bool check_axis(const ot_graph *g, const ot_node *n, const slice_info *s, int8_t i,
                       ot_why *why)
{
    if (!s->bounds_known) return ot_acc_refuse(why, OT_WHY_SLICE_BOUNDS_RUNTIME);
    if (s->step[i] < 0) return ot_acc_refuse(why, OT_WHY_SLICE_BACKWARDS);
    int64_t span = s->stop[i] - s->start[i];
    int64_t count = span > 0 ? (span - 1) / s->step[i] + 1 : 0;
    if (count != ot_acc_out(g, n, 0)->dims[s->axis[i]])
        return ot_acc_refuse(why, OT_WHY_SLICE_EXTENT);
    return true;
}

static bool slice_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    (void)out_index;
    (void)out_axis;
    slice_info s;
    if (!read(g, n, &s, why)) return false;
    if (s.listed[axis] >= 0 && !check_axis(g, n, &s, s.listed[axis], why)) return false;
    in_axis[0] = (int8_t)axis;
    return true;
}

static bool slice_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         ot_op_tile *t, ot_why *why)
{
    (void)out_index;
    slice_info s;
    if (!read(g, n, &s, why)) return false;
    t->in[0] = t->need;
    int8_t i = s.listed[axis];
    if (i < 0) return true;
    if (!check_axis(g, n, &s, i, why)) return false;
    /* o1-1 < count, so the products stay inside the extent. */
    t->in[0].lo = s.start[i] + t->need.lo * s.step[i];
    t->in[0].hi = s.start[i] + (t->need.hi - 1) * s.step[i] + 1;
    return true;
}

/* Would the adapted Slice copy its input as it is? */
static bool is_copy(const ot_graph *g, const ot_node *n, const slice_info *s,
                    const ot_tile_axis *axes, uint32_t n_axes)
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    for (int32_t d = 0; d < x->rank; d++) {
        const ot_op_tile *t = ot_acc_cut(axes, n_axes, (uint32_t)d);
        int64_t in = t ? t->in[0].hi - t->in[0].lo : x->dims[d];
        int64_t out = t ? t->made.hi - t->made.lo : y->dims[d];
        if (in != out) return false;
        if (s->listed[d] >= 0 && s->step[s->listed[d]] < 0 && in > 1) return false;
    }
    return true;
}

/* Every runtime has the Slice of its opset; Crop is experimental, and graphs inside others are
 * checked for such. */
static ot_status crop_adapt(const ot_graph *g, slice_info *s, const ot_tile_axis *axes,
                            uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    for (uint32_t i = 0; i < 2; i++) {
        const ot_op_tile *t = ot_acc_cut(axes, n_axes, 2 + i);
        if (!t) continue;
        s->start[i] = 0;
        s->stop[i] = t->in[0].hi - t->in[0].lo;
    }
    out->op_type = "Slice";
    out->n_attrs = 0;
    if (g->model->opset < SLICE_HAS_INPUTS) {
        OT_TRY(ot_adapt_set_ints(arena, out, "starts", s->start, 2));
        OT_TRY(ot_adapt_set_ints(arena, out, "ends", s->stop, 2));
        return ot_adapt_set_ints(arena, out, "axes", s->axis, 2);
    }
    OT_TRY(ot_adapt_set_i64(arena, out, 1, s->start, 2));
    OT_TRY(ot_adapt_set_i64(arena, out, 2, s->stop, 2));
    return ot_adapt_set_i64(arena, out, 3, s->axis, 2);
}

/* Operands of a Slice, all four together: they must share one integer type. */
static ot_status set_lists(ot_arena *arena, ot_adapted *out, const int64_t *starts,
                           const int64_t *ends, const slice_info *s)
{
    OT_TRY(ot_adapt_set_i64(arena, out, 1, starts, s->n));
    OT_TRY(ot_adapt_set_i64(arena, out, 2, ends, s->n));
    OT_TRY(ot_adapt_set_i64(arena, out, 3, s->axis, s->n));
    return ot_adapt_set_i64(arena, out, 4, s->step, s->n);
}

/* Bounds as the node has them, negative ones from the end; false where it has none that are
 * known, or no lists of operands. */
static bool raw_bounds(const ot_graph *g, const ot_node *n, const slice_info *s, int64_t *starts,
                       int64_t *ends)
{
    return n->op == OT_OP_Slice && n->version >= SLICE_HAS_INPUTS && s->bounds_known &&
           ot_acc_ints(g, n, 1, starts, OT_RANK_MAX) == s->n &&
           ot_acc_ints(g, n, 2, ends, OT_RANK_MAX) == s->n;
}

bool ot_slice_end(const ot_graph *g, const ot_node *n, uint32_t axis, bool any_extent,
                  int64_t *crop)
{
    int64_t starts[OT_RANK_MAX], ends[OT_RANK_MAX];
    slice_info s;
    ot_why why = OT_WHY_NONE;
    *crop = 0;
    if (!read(g, n, &s, &why)) return false;
    const int8_t i = s.listed[axis];
    if (i < 0) return true;
    if (!raw_bounds(g, n, &s, starts, ends) || s.step[i] < 1) return false;
    *crop = ot_acc_in(g, n, 0)->dims[axis] - s.stop[i];
    if (!any_extent) return true;
    if (ends[i] < 0) *crop = ends[i] < -CROP_MOST ? CROP_MOST : -ends[i];
    return starts[i] >= 0 && (ends[i] < 0 || ends[i] >= TO_END_LEAST);
}

/* Where extents are free: tiles begin at their first element, the last one ends where the node
 * does. */
static ot_status free_adapt(const ot_graph *g, const ot_node *n, slice_info *s,
                            const ot_tile_axis *axes, uint32_t n_axes, ot_arena *arena,
                            ot_adapted *out)
{
    int64_t starts[OT_RANK_MAX], ends[OT_RANK_MAX];
    uint32_t cut = 0, copied = 0;
    /* then only axes that the node does not list are cut */
    if (!raw_bounds(g, n, s, starts, ends)) return OT_OK;
    for (uint32_t i = 0; i < s->n; i++) {
        const ot_op_tile *t = ot_acc_cut(axes, n_axes, (uint32_t)s->axis[i]);
        if (!t) continue;
        starts[i] = 0;
        ends[i] = t->pad_hi > 0 ? -t->pad_hi : INT64_MAX;
        cut++;
        copied += t->pad_hi == 0 && s->step[i] == 1;
    }
    if (cut == 0) return OT_OK;
    if (copied == s->n) {
        out->kind = OT_ADAPT_FORWARD;
        out->forward = 0;
        return OT_OK;
    }
    return set_lists(arena, out, starts, ends, s);
}

static ot_status slice_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                             uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    ot_why why = OT_WHY_NONE;
    slice_info s;
    if (!read(g, n, &s, &why)) OT_BUG("a tile was made of a Slice that refuses to be cut");
    if (g->model->dynamic_dims) return free_adapt(g, n, &s, axes, n_axes, arena, out);
    if (!s.bounds_known) return OT_OK; /* then only axes that the node does not list are cut */
    if (is_copy(g, n, &s, axes, n_axes)) {
        out->kind = OT_ADAPT_FORWARD;
        out->forward = 0;
        return OT_OK;
    }
    if (n->op == OT_OP_Crop) return crop_adapt(g, &s, axes, n_axes, arena, out);
    for (uint32_t i = 0; i < s.n; i++) {
        const ot_op_tile *t = ot_acc_cut(axes, n_axes, (uint32_t)s.axis[i]);
        if (t) {
            s.start[i] = 0;
            s.stop[i] = t->in[0].hi - t->in[0].lo;
        } else if (s.step[i] < 0 && s.stop[i] < 0) {
            s.stop[i] = INT64_MIN + 1; /* "past the beginning", which -1 would not say */
        }
    }
    if (n->version < 10) {
        OT_TRY(ot_adapt_set_ints(arena, out, "starts", s.start, s.n));
        OT_TRY(ot_adapt_set_ints(arena, out, "ends", s.stop, s.n));
        return ot_adapt_set_ints(arena, out, "axes", s.axis, s.n);
    }
    return set_lists(arena, out, s.start, s.stop, &s);
}

const ot_access_ops ot_access_slice = {slice_axis, slice_window, slice_adapt};
