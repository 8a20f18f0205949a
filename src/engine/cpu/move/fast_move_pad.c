/* Pad: the input's box is copied to its place, then the border grows around it, one dim after
 * the other from the last to the first.
 *
 *   . . . . . .      . . . . . .      b b b b b b
 *   . . x x x .      a a x x x a      a a x x x a       what a border holds is a constant,
 *   . . x x x .  ->  a a x x x a  ->  a a x x x a       or a row of what is there already
 *   . . . . . .      . . . . . .      b b b b b b
 */
#include "fast_move.h"

#include "box.h"
#include "engine/ref/ref_move.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

typedef struct padding {
    pad_mode mode;
    uint64_t value; /* its first bytes are an element */
    /* of the output: where the input's elements begin, how many */
    int64_t before[OT_RANK_MAX], kept[OT_RANK_MAX];
    /* elements of the input that negative pads drop at the start */
    int64_t cut[OT_RANK_MAX];
} padding;

/* Which of the n elements kept belongs to position p of the border. */
static int64_t border_source(pad_mode mode, int64_t p, int64_t n)
{
    if (mode == PAD_EDGE) return p < 0 ? 0 : n - 1;
    if (mode == PAD_WRAP) return (p % n + n) % n;
    if (n == 1) return 0;
    p = (p < 0 ? -p : p) % (2 * (n - 1));
    return p < n ? p : 2 * (n - 1) - p;
}

static bool pad_read_mode(const ot_call *c, padding *p)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *name = ot_attr_str(c->node, "mode", "constant");
    for (unsigned k = 0; k < 4; k++) {
        p->mode = (pad_mode)k;
        if (strcmp(name, names[k]) == 0) return true;
    }
    return false;
}

static bool pad_read_value(const ot_call *c, padding *p)
{
    const ot_nd *x = c->in[0], *v = ot_num_in(c, 2);
    if (ot_mv_size(x) > sizeof p->value) return false;
    if (v) {
        if (v->dtype != x->dtype || ot_num_count(v) != 1) return false;
        memcpy(&p->value, v->data, ot_mv_size(v));
        return true;
    }
    ot_nd one = {.dtype = x->dtype, .data = &p->value};
    if (!ot_num_is(x->dtype, OT_NUM_ALL)) return false;
    ot_num_put(&one, 0, (double)ot_attr_float(c->node, "value", 0));
    return true;
}

/* *usual: the pads suit the input; dims are the output's. */
static ot_status pad_read(ot_call *c, padding *p, int64_t *dims, bool *usual)
{
    const int64_t *v, *which;
    int64_t n, n_which, low[OT_RANK_MAX] = {0}, high[OT_RANK_MAX] = {0};
    const ot_nd *x = c->in[0];
    uint32_t axes[OT_RANK_MAX], count;
    OT_TRY(ot_mv_list(c, 1, ot_attr_find(c->node, "paddings") ? "paddings" : "pads", &v, &n));
    OT_TRY(ot_mv_list(c, 3, NULL, &which, &n_which));
    OT_TRY(ot_mv_axes(c, which, n_which, x->rank, axes, &count));
    *usual = v && n == 2 * (int64_t)count;
    for (uint32_t k = 0; *usual && k < count; k++) {
        low[axes[k]] = v[k];
        high[axes[k]] = v[count + k];
    }
    for (uint32_t k = 0; *usual && k < x->rank; k++) {
        int64_t size = x->dims[k];
        p->cut[k] = ot_max(0, low[k] < -INT64_MAX ? INT64_MAX : -low[k]);
        p->before[k] = ot_max(0, low[k]);
        *usual = p->cut[k] <= size && high[k] >= -size && ot_add_i64(size, low[k], &dims[k]) &&
                 ot_add_i64(dims[k], high[k], &dims[k]);
        p->kept[k] = *usual ? size - p->cut[k] + ot_min(0, high[k]) : 0;
        *usual = p->kept[k] > 0 && dims[k] >= 0;
    }
    return OT_OK;
}

/* The border along dim k: positions [from, to) of it, dims after k whole, those before k as far
 * as the input's elements reach. */
static void pad_border(const ot_call *c, const padding *p, ot_nd *y, uint32_t k, int64_t from,
                       int64_t to)
{
    int64_t dims[OT_RANK_MAX], at = 0, size = (int64_t)ot_mv_size(y), step = y->strides[k] * size;
    for (uint32_t j = 0; j < y->rank; j++) {
        dims[j] = j < k ? p->kept[j] : y->dims[j];
        if (j < k) at += p->before[j] * y->strides[j];
    }
    char *base = ot_mv_at(y, at);
    dims[k] = to - from;
    if (p->mode == PAD_CONSTANT) {
        ot_box_fill((ot_box_shape){(size_t)size, y->rank, dims}, base + from * step, y->strides,
                    &p->value, c->threads);
        return;
    }
    dims[k] = 1;
    for (int64_t i = from; i < to; i++) {
        int64_t source = p->before[k] + border_source(p->mode, i - p->before[k], p->kept[k]);
        ot_box_copy((ot_box_shape){(size_t)size, y->rank, dims}, base + i * step, y->strides,
                    base + source * step, y->strides, c->threads);
    }
}

ot_status ot_fast_pad(ot_call *c)
{
    padding p = {0};
    int64_t dims[OT_RANK_MAX], from = 0, to = 0;
    bool usual = ot_move_usual(c, 1) && c->in[0]->rank <= OT_BOX_RANK && pad_read_mode(c, &p) &&
                 pad_read_value(c, &p);
    if (usual) OT_TRY(pad_read(c, &p, dims, &usual));
    if (!usual) return ot_op_reference(OT_OP_Pad)(c);
    const ot_nd *x = c->in[0];
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, dims));
    ot_nd *y = c->out[0];
    if (ot_num_count(y) == 0) return OT_OK;
    for (uint32_t k = 0; k < x->rank; k++) {
        from += p.cut[k] * x->strides[k];
        to += p.before[k] * y->strides[k];
    }
    ot_box_copy((ot_box_shape){ot_mv_size(x), x->rank, p.kept}, ot_mv_at(y, to), y->strides,
                ot_mv_at(x, from), x->strides, c->threads);
    for (uint32_t k = x->rank; k-- > 0;) {
        pad_border(c, &p, y, k, 0, p.before[k]);
        pad_border(c, &p, y, k, p.before[k] + p.kept[k], dims[k]);
    }
    return OT_OK;
}
