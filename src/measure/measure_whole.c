/* Whole networks against their prediction: what single operators do not show.
 *
 *   rates of single operators --> plan of a small network --> time predicted
 *                                 the network, run        --> time measured  rates = rates x
 *                                                                            predicted / measured
 *
 * Alone, an operator runs at its best: its operands lie in one layout, its shape suits it. In a
 * network layouts change, maps are narrow and operators come in all shapes. The networks here
 * are what convolutional networks are made of (a stem and dense blocks, inverted residual
 * blocks, residual bottlenecks); the geometric mean of their errors corrects all rates.
 */
#include "calibrate.h"
#include "select/search/plan_search.h"

#include <math.h>
#include <stdlib.h>

#define CORRECTION_MAX 4.0 /* either way: more is a disturbance, not a property */

typedef struct network {
    FILE *f;
    int value, weight; /* numbers of the last of each */
} network;

static int conv(network *n, int from, int in, int out, int kernel, int stride, int group, bool relu)
{
    int to = ++n->value, w = ++n->weight, pad = kernel / 2;
    fprintf(n->f, "init %%w%d : float32[%d,%d,%d,%d] = random %d * 0.05\n", w, out, in / group,
            kernel, kernel, w);
    fprintf(n->f,
            "%%v%d = Conv(%%v%d, %%w%d) {pads=[%d, %d, %d, %d], strides=[%d, %d], group=%d}\n", to,
            from, w, pad, pad, pad, pad, stride, stride, group);
    if (!relu) return to;
    fprintf(n->f, "%%v%d = Relu(%%v%d)\n", to + 1, to);
    return ++n->value;
}

static int add(network *n, int a, int b)
{
    fprintf(n->f, "%%v%d = Add(%%v%d, %%v%d)\n", n->value + 1, a, b);
    return ++n->value;
}

static void begin(network *n, int channels, int side)
{
    fprintf(n->f, "input %%v0 : float32[1,%d,%d,%d]\n", channels, side, side);
}

static void dense_blocks(network *n)
{
    begin(n, 3, 384);
    int v = conv(n, 0, 3, 24, 3, 1, 1, true);
    v = conv(n, v, 24, 24, 3, 1, 1, true);
    fprintf(n->f, "%%v%d = MaxPool(%%v%d) {kernel_shape=[2, 2], strides=[2, 2]}\n", n->value + 1,
            v);
    v = conv(n, ++n->value, 24, 48, 3, 1, 1, true);
    v = conv(n, v, 48, 48, 3, 1, 1, true);
    (void)conv(n, v, 48, 12, 3, 1, 1, false);
}

static void inverted_residuals(network *n)
{
    int channels = 24;
    begin(n, 3, 448);
    int v = conv(n, 0, 3, channels, 3, 2, 1, true);
    for (int k = 0; k < 4; k++) {
        int wide = conv(n, v, channels, 4 * channels, 1, 1, 1, true);
        bool down = k == 1;
        wide = conv(n, wide, 4 * channels, 4 * channels, 3, down ? 2 : 1, 4 * channels, true);
        int narrow = conv(n, wide, 4 * channels, channels, 1, 1, 1, false);
        v = down ? narrow : add(n, v, narrow);
    }
}

static void bottlenecks(network *n)
{
    begin(n, 128, 56);
    int v = 0;
    for (int k = 0; k < 3; k++) {
        int w = conv(n, v, 128, 48, 1, 1, 1, true);
        w = conv(n, w, 48, 48, 3, 1, 1, true);
        w = conv(n, w, 48, 128, 1, 1, 1, false);
        v = add(n, v, w);
    }
    (void)conv(n, v, 128, 256, 1, 2, 1, true);
}

/* Seconds that the cost model predicts for the model as it is. */
static ot_status predict(const char *graph, const ot_target *t, double *seconds, ot_diag *d)
{
    ot_model *m;
    ot_plan *plan = NULL;
    ot_plan_options o = {0};
    OT_TRY(ot_parse_inside(graph, d, &m));
    ot_status s = ot_infer_shapes(m->graph, NULL, 0);
    if (s == OT_OK) s = ot_assure(m->graph, OT_P_ORDER | OT_P_USES | OT_P_SHAPES);
    if (s == OT_OK) s = ot_plan_graph(m->graph, t, &o, &plan);
    if (s == OT_OK) *seconds = plan->untiled.time_s;
    ot_plan_free(plan);
    ot_model_free(m);
    return s;
}

static ot_status error_of(ot_calibration *c, void (*write)(network *), double *error, ot_diag *d)
{
    char *text = NULL;
    size_t size = 0;
    double predicted = 0, measured = 0;
    network n = {.f = open_memstream(&text, &size)};
    if (n.f) write(&n);
    if (n.f) fprintf(n.f, "output %%v%d\n", n.value);
    if (!n.f || fclose(n.f) != 0) {
        free(text);
        return ot_fail_nomem(d);
    }
    ot_status s = predict(text, &c->target, &predicted, d);
    if (s == OT_OK) s = ot_measure_graph(c, text, c->threads, &measured, d);
    free(text);
    if (s != OT_OK) return s;
    *error = predicted > 0 && measured > 0 ? measured / predicted : 1;
    if (c->log)
        fprintf(c->log, "onnx-tile: network  predicted %.3g ms, measured %.3g ms\n",
                predicted * 1e3, measured * 1e3);
    return OT_OK;
}

ot_status ot_measure_whole(ot_calibration *c, ot_diag *d)
{
    void (*const networks[])(network *) = {dense_blocks, inverted_residuals, bottlenecks};
    const uint32_t count = sizeof networks / sizeof *networks;
    ot_target *t = &c->target;
    double sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        double error = 1;
        OT_TRY(error_of(c, networks[k], &error, d));
        sum += log(fmin(fmax(error, 1 / CORRECTION_MAX), CORRECTION_MAX));
    }
    double slower = exp(sum / count);
    t->rate_conv /= slower;
    t->rate_conv_depthwise /= slower;
    t->rate_conv_pointwise /= slower;
    t->rate_conv_winograd /= slower;
    t->rate_gemm /= slower;
    t->rate_elem /= slower;
    t->rate_trans /= slower;
    t->rate_reduce /= slower;
    t->rate_pool /= slower;
    return OT_OK;
}
