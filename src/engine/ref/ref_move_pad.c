/* Operators that read each dimension through a map of its own: Pad, Tile, CenterCropPad.
 *
 *   Pad, reflect, [a b c] by 2 and 1      map  2 1 0 1 2 1
 *   Pad, constant                         map  - - 0 1 2 -      '-' is the padding value
 *   Tile, twice                           map  0 1 2 0 1 2
 */
#include "ref_move.h"

/* A table for each dimension of output 0, which has elements. NULL: no memory. */
static int64_t **new_maps(ot_call *c)
{
    const ot_nd *y = c->out[0];
    int64_t **map = ot_num_scratch(c, y->rank, sizeof *map);
    for (uint32_t k = 0; map && k < y->rank; k++) {
        map[k] = ot_num_scratch(c, y->dims[k], sizeof **map);
        if (!map[k]) return NULL;
    }
    return map;
}

/* ---- Pad ---- */

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

static ot_status pad_read_mode(ot_call *c, pad_mode *mode)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *name = ot_attr_str(c->node, "mode", "constant");
    for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {
        if (strcmp(name, names[k]) != 0) continue;
        *mode = (pad_mode)k;
        return OT_OK;
    }
    return ot_call_fail(c, "mode '%.40s' is unknown", name);
}

/* What is added before and after each dimension of the input. */
static ot_status pad_read(ot_call *c, int64_t *before, int64_t *after)
{
    const int64_t *v, *which;
    int64_t n, n_which;
    uint32_t axes[OT_RANK_MAX], count, rank = c->in[0]->rank;
    OT_TRY(ot_mv_list(c, 1, ot_attr_find(c->node, "paddings") ? "paddings" : "pads", &v, &n));
    OT_TRY(ot_mv_list(c, 3, NULL, &which, &n_which));
    OT_TRY(ot_mv_axes(c, which, n_which, rank, axes, &count));
    if (!v) return ot_call_fail(c, "no pads are given");
    if (n != 2 * (int64_t)count)
        return ot_call_fail(c, "%lld pads for %u axes", (long long)n, count);
    for (uint32_t k = 0; k < rank; k++) before[k] = after[k] = 0;
    for (uint32_t k = 0; k < count; k++) {
        before[axes[k]] = v[k];
        after[axes[k]] = v[count + k];
    }
    return OT_OK;
}

/* The padding value into buf[16]. */
static ot_status pad_value(ot_call *c, void *buf)
{
    const ot_nd *x = c->in[0], *v = ot_num_in(c, 2);
    memset(buf, 0, 16);
    if (v) {
        OT_TRY(ot_num_same_type(c, 2, 0));
        OT_TRY(ot_num_single(c, 2));
        memcpy(buf, v->data, ot_mv_size(v));
    } else if (ot_num_is(x->dtype, OT_NUM_ALL)) {
        ot_nd one = {.dtype = x->dtype, .data = buf};
        ot_num_put(&one, 0, (double)ot_attr_float(c->node, "value", 0));
    }
    return OT_OK;
}

/* Which of n elements lies at position p of the padded line, 0 being the first element; -1: none.
 */
static int64_t pad_source(pad_mode mode, int64_t p, int64_t n)
{
    if (p >= 0 && p < n) return p;
    switch (mode) {
    case PAD_EDGE: return p < 0 ? 0 : n - 1;
    case PAD_WRAP: return (p % n + n) % n;
    case PAD_REFLECT:
        if (n == 1) return 0;
        p = p < 0 ? -p : p;
        p %= 2 * (n - 1);
        return p < n ? p : 2 * (n - 1) - p;
    default: return -1;
    }
}

/* Negative pads take elements away before the others are added. */
static ot_status pad_map(ot_call *c, pad_mode mode, uint32_t k, int64_t before, int64_t after,
                         int64_t *map)
{
    int64_t size = c->in[0]->dims[k];
    int64_t low = before < 0 ? -before : 0, high = after < 0 ? size + after : size;
    if (mode != PAD_CONSTANT && low >= high && c->out[0]->dims[k] > 0)
        return ot_call_fail(c, "dimension %u has no elements to pad with", k);
    for (int64_t o = 0; o < c->out[0]->dims[k]; o++) {
        int64_t from = pad_source(mode, o - ot_max(before, 0), high - low);
        map[o] = from < 0 ? -1 : from + low;
    }
    return OT_OK;
}

ot_status ot_mv_pad(ot_call *c)
{
    int64_t before[OT_RANK_MAX], after[OT_RANK_MAX], dims[OT_RANK_MAX];
    char value[16];
    pad_mode mode = PAD_CONSTANT;
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    OT_TRY(pad_read_mode(c, &mode));
    OT_TRY(pad_read(c, before, after));
    OT_TRY(pad_value(c, value));
    for (uint32_t k = 0; k < x->rank; k++) {
        bool fits = before[k] >= -INT64_MAX && after[k] >= -INT64_MAX &&
                    ot_add_i64(x->dims[k], before[k], &dims[k]) &&
                    ot_add_i64(dims[k], after[k], &dims[k]);
        if (!fits || dims[k] < 0)
            return ot_call_fail(c, "pads %lld and %lld do not suit dimension %u of %lld elements",
                                (long long)before[k], (long long)after[k], k,
                                (long long)x->dims[k]);
    }
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, dims));
    if (ot_num_count(c->out[0]) == 0) return OT_OK;
    int64_t **map = new_maps(c);
    if (!map) return OT_E_NOMEM;
    for (uint32_t k = 0; k < x->rank; k++) OT_TRY(pad_map(c, mode, k, before[k], after[k], map[k]));
    ot_mv_mapped(c->out[0], x, map, value);
    return OT_OK;
}

/* ---- Tile ---- */

/* Opset 1: a count and an axis; later: a count for each dimension. */
static ot_status tile_repeats(ot_call *c, int64_t *repeats)
{
    const ot_nd *x = c->in[0];
    const int64_t *v;
    int64_t n, tiles, axis;
    for (uint32_t k = 0; k < x->rank; k++) repeats[k] = 1;
    if (c->node->version < 6 && c->n_in == 3) {
        uint32_t at;
        OT_TRY(ot_mv_scalar(c, 1, &tiles));
        OT_TRY(ot_mv_scalar(c, 2, &axis));
        OT_TRY(ot_num_axis(c, axis, x->rank, &at));
        repeats[at] = tiles;
        return OT_OK;
    }
    OT_TRY(ot_mv_list(c, 1, NULL, &v, &n));
    if (!v || n != x->rank)
        return ot_call_fail(c, "%lld repeats for %u dimensions", (long long)n, x->rank);
    if (n > 0) memcpy(repeats, v, (size_t)n * sizeof *v);
    return OT_OK;
}

ot_status ot_mv_tile(ot_call *c)
{
    int64_t repeats[OT_RANK_MAX], dims[OT_RANK_MAX];
    OT_TRY(ot_call_need(c, 2));
    const ot_nd *x = c->in[0];
    OT_TRY(tile_repeats(c, repeats));
    for (uint32_t k = 0; k < x->rank; k++)
        if (repeats[k] < 0 || !ot_mul_i64(x->dims[k], repeats[k], &dims[k]))
            return ot_call_fail(c, "dimension %u cannot be repeated %lld times", k,
                                (long long)repeats[k]);
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, dims));
    if (ot_num_count(c->out[0]) == 0) return OT_OK;
    int64_t **map = new_maps(c);
    if (!map) return OT_E_NOMEM;
    for (uint32_t k = 0; k < x->rank; k++)
        for (int64_t o = 0; o < dims[k]; o++) map[k][o] = o % x->dims[k];
    ot_mv_mapped(c->out[0], x, map, NULL);
    return OT_OK;
}

/* ---- CenterCropPad ---- */

/* The input's middle in the output's, both rounded down; zeros around it. */
ot_status ot_mv_center_crop_pad(ot_call *c)
{
    static const char zero[16] = {0};
    const int64_t *which;
    int64_t n, want[OT_RANK_MAX], dims[OT_RANK_MAX];
    uint32_t axes[OT_RANK_MAX], count, n_want;
    OT_TRY(ot_call_need(c, 2));
    const ot_nd *x = c->in[0];
    OT_TRY(ot_mv_shape(c, 1, &n_want, want));
    OT_TRY(ot_mv_list(c, OT_NONE, "axes", &which, &n));
    OT_TRY(ot_mv_axes(c, which, n, x->rank, axes, &count));
    if (n_want != count)
        return ot_call_fail(c, "a shape of %u dimensions for %u axes", n_want, count);
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t k = 0; k < count; k++) dims[axes[k]] = want[k];
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, dims));
    if (ot_num_count(c->out[0]) == 0) return OT_OK;
    int64_t **map = new_maps(c);
    if (!map) return OT_E_NOMEM;
    for (uint32_t k = 0; k < x->rank; k++) {
        int64_t size = x->dims[k],
                start = dims[k] < size ? (size - dims[k]) / 2 : -((dims[k] - size) / 2);
        for (int64_t o = 0; o < dims[k]; o++) map[k][o] = pad_source(PAD_CONSTANT, o + start, size);
    }
    ot_mv_mapped(c->out[0], x, map, zero);
    return OT_OK;
}
