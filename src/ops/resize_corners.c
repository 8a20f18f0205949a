/* Resize with align_corners as interpolation by constants: which rows its first resized axis
 * takes, with which weights.
 *
 *   f(o) = o * (in - 1) / (out - 1)          in single precision, as runtimes compute it: the same
 *                                            rows and weights as theirs
 *
 * ONNX Runtime reckons with extents, opset 19's reference with in * scale, which may be no whole
 * number: only where these are the same.
 */
#include <math.h>

#include "access_resize.h"
#include "resize_corners.h"

#define LENGTH_MAX (1 << 23) /* coordinates of longer axes have no fraction in single precision */

bool ot_corners_read(const ot_graph *g, const ot_node *n, ot_corners *out)
{
    ot_resize r;
    ot_why why;
    *out = (ot_corners){.axis = OT_NONE};
    if (n->op != OT_OP_Resize || n->n_in < 1 || n->n_out != 1) return false;
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    if (!x || !y || !x->is_tensor || !ot_value_is_static(x) || !ot_value_is_static(y)) return false;
    if (!ot_resize_read(g, n, &r, &why) || r.legacy || r.map != RS_CORNERS || r.antialias ||
        r.aspect)
        return false;
    for (int32_t a = x->rank; a-- > 0;) {
        const int64_t in = x->dims[a], len = y->dims[a];
        const int8_t e = r.entry[a];
        if (in < 1 || len < 1 || in > LENGTH_MAX || len > LENGTH_MAX) return false;
        if (e < 0        ? in != len
            : r.by_sizes ? r.sizes[e] != len
                         : r.scales[e] * (float)in != (float)len)
            return false;
        if (in == len) continue;
        out->others |= out->axis != OT_NONE;
        out->axis = (uint32_t)a;
        out->in = in;
        out->out = len;
    }
    if (out->axis == OT_NONE) return false;
    out->operand = r.operand;
    out->by_sizes = r.by_sizes;
    out->n_entries = r.n_entries;
    memcpy(out->sizes, r.sizes, sizeof out->sizes);
    memcpy(out->scales, r.scales, sizeof out->scales);
    out->sizes[r.entry[out->axis]] = out->out;
    out->scales[r.entry[out->axis]] = 1;
    out->n_taps = r.mode == RS_NEAREST ? 1 : r.mode == RS_LINEAR ? 2 : 4;
    out->before = r.mode == RS_CUBIC ? 1 : 0;
    out->behind = r.mode == RS_CUBIC ? 2 : 1;
    /* rounding may take a coordinate over the next row */
    if ((double)out->in * (double)out->out >= (1 << 24)) {
        out->before++;
        out->behind++;
    }
    out->round = (int)r.round;
    out->exclude = r.exclude;
    out->cubic_a = ot_attr_float(n, "cubic_coeff_a", -0.75f);
    return true;
}

/* The coordinate of output row o. */
static float coordinate(const ot_corners *c, int64_t o)
{
    const float f = c->out == 1 ? 0.0f : (float)o * (float)(c->in - 1) / (float)(c->out - 1);
    return fminf(f, (float)(c->in - 1));
}

/* Keys' weights of the four rows around a coordinate that lies s behind the second of them. */
static void cubic_weights(float a, float s, float w[4])
{
    w[0] = ((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a;
    w[1] = ((a + 2) * s - (a + 3)) * s * s + 1;
    w[2] = ((a + 2) * (1 - s) - (a + 3)) * (1 - s) * (1 - s) + 1;
    w[3] = ((a * (2 - s) - 5 * a) * (2 - s) + 8 * a) * (2 - s) - 4 * a;
}

static void cubic_taps(const ot_corners *c, float f, int64_t row[4], float weight[4])
{
    const float low = floorf(f);
    float sum = 0;
    cubic_weights(c->cubic_a, f - low, weight);
    for (int k = 0; k < 4; k++) {
        row[k] = (int64_t)low - 1 + k;
        if (c->exclude && (row[k] < 0 || row[k] >= c->in)) weight[k] = 0;
        sum += weight[k];
        row[k] = ot_max(0, ot_min(row[k], c->in - 1));
    }
    for (int k = 0; k < 4 && c->exclude; k++) weight[k] /= sum;
}

bool ot_corners_taps(const ot_corners *c, int64_t o, int64_t row[OT_CORNER_TAPS],
                     float weight[OT_CORNER_TAPS])
{
    const float f = coordinate(c, o);
    weight[0] = 1;
    if (c->n_taps == 4) {
        cubic_taps(c, f, row, weight);
    } else if (c->n_taps == 2) {
        row[0] = (int64_t)f;
        row[1] = ot_min(row[0] + 1, c->in - 1);
        weight[1] = f - (float)row[0];
        weight[0] = 1 - weight[1];
    } else {
        row[0] = ot_resize_round((rs_round)c->round, f, RS_TIE_SLACK);
        if (row[0] != ot_resize_round((rs_round)c->round, f, 0)) return false;
        row[0] = ot_max(0, ot_min(row[0], c->in - 1));
    }
    return true;
}
