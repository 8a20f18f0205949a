/* Slice relations of windowed and resampling operators against brute force.
 *
 * Every operator is written here once more, in one dimension and by its definition: which input
 * elements an output element reads (`reads`), and what it computes (`run`). For random attributes
 * and random windows the test checks that the window holds every element that is read and (where
 * the operator has no gaps) nothing more; and that the same slow operator, run on the sliced input
 * with the adapted attributes, gives the same numbers. Nothing of the code under test is used to
 * decide what is right. OT_SEED=n repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "window_check.h"
#include "ops/ops.h"

#define LEN 256

typedef enum kind { CONV, MAXPOOL, AVGPOOL, CONVT, PAD, SLICE, RESIZE, N_KINDS } kind;
static const char *const kind_names[] = {"Conv", "MaxPool", "AveragePool", "ConvTranspose",
                                         "Pad",  "Slice",   "Resize"};

/* One operator on one axis. */
typedef struct op1 {
    kind kind;
    int64_t k, s, d, pb, pe, ceil, count_pad; /* windows; Slice: s step, pb start, pe end */
    int64_t out_pad;
    int64_t mode;       /* Pad: 0 constant 1 edge 2 reflect; Resize: 0 nearest 1 linear 2 cubic */
    int64_t map, round; /* Resize: 0 half_pixel 1 asymmetric 2 pytorch; rounding as named below */
    int64_t p, q;       /* Resize */
    int64_t by_sizes;
    double w[8];
} op1;

static uint64_t rng_state;
static int64_t rnd(int64_t lo, int64_t hi) /* lo..hi */
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return lo + (int64_t)(rng_state % (uint64_t)(hi - lo + 1));
}

/* ---- definitions ---- */

static int64_t out_extent(const op1 *a, int64_t e)
{
    int64_t dk = (a->k - 1) * a->d + 1, room = e + a->pb + a->pe - dk, n = 0;
    switch (a->kind) {
    case CONV: return room < 0 ? 0 : room / a->s + 1;
    case MAXPOOL:
    case AVGPOOL:
        if (room < 0) return 0;
        n = room / a->s + 1;
        if (a->ceil && room % a->s && n * a->s < e + a->pb) n++;
        return n;
    case CONVT: return (e - 1) * a->s + dk + a->out_pad - a->pb - a->pe;
    case PAD: return e + a->pb + a->pe;
    case SLICE:
        for (int64_t i = a->pb; i < a->pe && i < e; i += a->s) n++;
        return n;
    case RESIZE: return e * a->p / a->q;
    case N_KINDS: break;
    }
    return 0;
}

/* Coordinate of output o of a Resize, times 2p. */
static int64_t coordinate(const op1 *a, int64_t o)
{
    return a->map == 1 ? 2 * o * a->q : (2 * o + 1) * a->q - a->p;
}

static int64_t clamp(int64_t v, int64_t e) { return v < 0 ? 0 : v >= e ? e - 1 : v; }

static int64_t neighbour(const op1 *a, int64_t o)
{
    double f = (double)coordinate(a, o) / (double)(2 * a->p);
    int64_t twice = coordinate(a, o) * 2, den = 2 * a->p; /* f * 2 = twice / den */
    bool half = twice % den == 0 && ((twice / den) & 1);
    if (a->round == 0) return half ? (int64_t)floor(f) : (int64_t)floor(f + 0.5);
    if (a->round == 1) return half ? (int64_t)ceil(f) : (int64_t)floor(f + 0.5);
    return a->round == 2 ? (int64_t)floor(f + 1e-12) : (int64_t)ceil(f - 1e-12);
}

/* Which x index a padded position shows; -1: none. */
static int64_t pad_source(const op1 *a, int64_t e, int64_t o)
{
    int64_t x = o - a->pb;
    if (x >= 0 && x < e) return x;
    if (a->mode == 0) return -1;
    if (a->mode == 1) return clamp(x, e);
    return x < 0 ? -x : 2 * (e - 1) - x;
}

/* Does output o read input i, in an axis of extent e? */
static bool reads(const op1 *a, int64_t e, int64_t o, int64_t i)
{
    switch (a->kind) {
    case CONV:
    case MAXPOOL:
    case AVGPOOL:
        for (int64_t j = 0; j < a->k; j++)
            if (o * a->s - a->pb + j * a->d == i) return true;
        return false;
    case CONVT:
        for (int64_t j = 0; j < a->k; j++)
            if (i * a->s - a->pb + j * a->d == o) return true;
        return false;
    case PAD: return pad_source(a, e, o) == i;
    case SLICE: return a->pb + o * a->s == i;
    case RESIZE: {
        if (a->mode == 0) return clamp(neighbour(a, o), e) == i;
        int64_t base = (int64_t)floor((double)coordinate(a, o) / (double)(2 * a->p) + 1e-12);
        bool exact = coordinate(a, o) % (2 * a->p) == 0;
        int64_t lo = exact ? 0 : a->mode == 2 ? -1 : 0, hi = exact ? 0 : a->mode == 2 ? 2 : 1;
        for (int64_t j = lo; j <= hi; j++)
            if (clamp(base + j, e) == i) return true;
        return false;
    }
    case N_KINDS: break;
    }
    return false;
}

static double cubic(double t) /* Keys' kernel, a = -0.75 */
{
    t = fabs(t);
    if (t <= 1) return (1.25 * t - 2.25) * t * t + 1;
    return t < 2 ? ((-0.75 * t + 3.75) * t - 6) * t + 3 : 0;
}

static double run_pool(const op1 *a, const double *x, int64_t e, int64_t o)
{
    double sum = 0, best = -1e300;
    int64_t n = 0;
    for (int64_t j = 0; j < a->k; j++) {
        int64_t i = o * a->s - a->pb + j * a->d;
        if (i >= 0 && i < e) {
            sum += x[i];
            best = x[i] > best ? x[i] : best;
        }
        /* Padding counts when asked for; what ceil_mode adds beyond it never does. */
        if ((i >= 0 && i < e) || (a->count_pad && i < e + a->pe)) n++;
    }
    return a->kind == MAXPOOL ? best : sum / (double)n;
}

static double run_one(const op1 *a, const double *x, int64_t e, int64_t o)
{
    double sum = 0;
    switch (a->kind) {
    case CONV:
        for (int64_t j = 0; j < a->k; j++) {
            int64_t i = o * a->s - a->pb + j * a->d;
            if (i >= 0 && i < e) sum += a->w[j] * x[i];
        }
        return sum;
    case MAXPOOL:
    case AVGPOOL: return run_pool(a, x, e, o);
    case CONVT:
        for (int64_t i = 0; i < e; i++)
            for (int64_t j = 0; j < a->k; j++)
                if (i * a->s - a->pb + j * a->d == o) sum += a->w[j] * x[i];
        return sum;
    case PAD: {
        int64_t i = pad_source(a, e, o);
        return i < 0 ? 77 : x[i];
    }
    case SLICE: return x[a->pb + o * a->s];
    case RESIZE: {
        if (a->mode == 0) return x[clamp(neighbour(a, o), e)];
        double f = (double)coordinate(a, o) / (double)(2 * a->p);
        if (a->mode == 1) f = f < 0 ? 0 : f > (double)(e - 1) ? (double)(e - 1) : f;
        int64_t base = (int64_t)floor(f);
        double t = f - (double)base;
        if (a->mode == 1) return x[base] * (1 - t) + x[clamp(base + 1, e)] * t;
        for (int64_t j = -1; j <= 2; j++) sum += x[clamp(base + j, e)] * cubic(t - (double)j);
        return sum;
    }
    case N_KINDS: break;
    }
    return 0;
}

/* ---- random instances ---- */

static op1 random_op(kind kd, int64_t *e)
{
    static const int64_t ratios[][2] = {{2, 1}, {3, 1}, {4, 1}, {3, 2}, {1, 2},
                                        {5, 4}, {2, 3}, {7, 5}, {1, 1}};
    op1 a = {
        .kind = kd, .k = rnd(1, 5), .s = rnd(1, 4), .d = rnd(0, 2) ? 1 : rnd(1, 3), .p = 1, .q = 1};
    *e = rnd(1, 40);
    for (int i = 0; i < 8; i++) a.w[i] = (double)rnd(-9, 9);
    int64_t dk = (a.k - 1) * a.d + 1;
    if (kd == CONV) a.pb = rnd(0, dk + 2), a.pe = rnd(0, dk + 2);
    if (kd == MAXPOOL || kd == AVGPOOL) {
        a.pb = rnd(0, a.k - 1), a.pe = rnd(0, a.k - 1);
        a.ceil = rnd(0, 1), a.count_pad = kd == AVGPOOL && rnd(0, 1);
    }
    if (kd == CONVT) a.pb = rnd(0, dk), a.pe = rnd(0, dk), a.out_pad = rnd(0, a.s - 1);
    if (kd == PAD) {
        a.mode = rnd(0, 2);
        int64_t most = a.mode == 2 ? *e - 1 : 9;
        a.pb = rnd(0, most), a.pe = rnd(0, most);
        if (a.mode == 0 && rnd(0, 3) == 0)
            a.pb = -rnd(0, *e / 2), a.pe = rnd(0, 1) ? a.pe : -rnd(0, *e / 3);
    }
    if (kd == SLICE) a.pb = rnd(0, *e - 1), a.pe = rnd(a.pb, *e);
    if (kd == RESIZE) {
        const int64_t *r = ratios[rnd(0, 8)];
        a.p = r[0], a.q = r[1], a.mode = rnd(0, 2), a.map = rnd(0, 2), a.round = rnd(0, 3),
        a.by_sizes = rnd(0, 1);
        if (a.by_sizes) *e = (*e + a.q - 1) / a.q * a.q;
    }
    return a;
}

static ot_attr ints1(ot_arena *m, const char *name, int64_t a, int64_t b, size_t n)
{
    return ot_mk_ints(m, name, (int64_t[]){a, b}, n);
}

static uint32_t attrs_of(const op1 *a, ot_arena *m, ot_attr *out)
{
    static const char *const pads[] = {"constant", "edge", "reflect"},
                             *const modes[] = {"nearest", "linear", "cubic"},
                             *const maps[] = {"half_pixel", "asymmetric", "pytorch_half_pixel"},
                             *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                                "ceil"};
    uint32_t n = 0;
    if (a->kind <= CONVT) {
        out[n++] = ints1(m, "kernel_shape", a->k, 0, 1);
        out[n++] = ints1(m, "strides", a->s, 0, 1);
        out[n++] = ints1(m, "dilations", a->d, 0, 1);
        out[n++] = ints1(m, "pads", a->pb, a->pe, 2);
    }
    if (a->kind == MAXPOOL || a->kind == AVGPOOL) out[n++] = ot_mk_int("ceil_mode", a->ceil);
    if (a->kind == AVGPOOL) out[n++] = ot_mk_int("count_include_pad", a->count_pad);
    if (a->kind == CONVT) out[n++] = ints1(m, "output_padding", a->out_pad, 0, 1);
    if (a->kind == PAD) out[n++] = ot_mk_str("mode", pads[a->mode]);
    if (a->kind == RESIZE) {
        out[n++] = ot_mk_str("mode", modes[a->mode]);
        out[n++] = ot_mk_str("coordinate_transformation_mode", maps[a->map]);
        out[n++] = ot_mk_str("nearest_mode", rounds[a->round]);
    }
    return n;
}

static ot_model *new_model(ot_diag *diag, int32_t opset)
{
    ot_model *m = ot_model_new(diag);
    assert_non_null(m);
    m->opset = opset;
    return m;
}

/* Constant operands; returns their count with x at 0. */
static uint32_t operands_of(const op1 *a, ot_graph *g, int64_t e, ot_id *in)
{
    int64_t two = 2, three = 3, six = 6, k = a->k, wd[3] = {1, 1, k};
    in[0] = ot_value_new(g, "x", OT_F32, 3, (int64_t[]){1, 1, e});
    if (a->kind == CONV || a->kind == CONVT) {
        in[1] = ot_value_new(g, "w", OT_F32, 3, wd);
        return 2;
    }
    if (a->kind == PAD) {
        in[1] = ot_const_i64(g, "pads", (int64_t[]){0, 0, a->pb, 0, 0, a->pe}, 1, &six);
        return 2;
    }
    if (a->kind == SLICE) {
        in[1] = ot_const_i64(g, "starts", (int64_t[]){a->pb, 0}, 1, &two);
        in[2] = ot_const_i64(g, "ends", (int64_t[]){a->pe, INT64_MAX}, 1, &two);
        in[3] = ot_const_i64(g, "axes", (int64_t[]){-1, 1}, 1, &two);
        in[4] = ot_const_i64(g, "steps", (int64_t[]){a->s, 1}, 1, &two);
        return 5;
    }
    if (a->kind == RESIZE) {
        float sc[3] = {1, 1, (float)((double)a->p / (double)a->q)};
        in[1] = in[2] = OT_NONE;
        if (!a->by_sizes) {
            in[2] = ot_const_f32(g, "scales", sc, 1, &three);
            return 3;
        }
        in[3] = ot_const_i64(g, "sizes", (int64_t[]){1, 1, e * a->p / a->q}, 1, &three);
        return 4;
    }
    return 1;
}

/* ---- reading the adapted node back ---- */

static const ot_attr *find(const ot_adapted *ad, const char *name)
{
    for (uint32_t i = 0; i < ad->n_attrs; i++)
        if (strcmp(ad->attrs[i].name, name) == 0) return &ad->attrs[i];
    return NULL;
}

static const int64_t *operand(const ot_adapted *ad, uint32_t input)
{
    for (uint32_t i = 0; i < ad->n_operands; i++)
        if (ad->operands[i].input == input) return ad->operands[i].tensor->data;
    return NULL;
}

/* The adapted node as an op1 on n input elements. */
static op1 adapted_op(const op1 *a, const ot_adapted *ad, int64_t n)
{
    op1 b = *a;
    if (a->kind <= CONVT) {
        const ot_attr *pads = find(ad, "pads"), *ceil_mode = find(ad, "ceil_mode"),
                      *op = find(ad, "output_padding");
        assert_non_null(pads);
        assert_null(find(ad, "auto_pad"));
        assert_int_equal(pads->n, 2);
        b.pb = pads->ints[0], b.pe = pads->ints[1];
        b.ceil = ceil_mode ? ceil_mode->i : 0;
        b.out_pad = op ? op->ints[0] : 0;
        assert_true(b.pb >= 0 && b.pe >= 0 && b.out_pad >= 0 &&
                    (b.out_pad == 0 || b.out_pad < b.s));
        if (a->kind == MAXPOOL || a->kind == AVGPOOL) assert_true(b.pb < b.k && b.pe < b.k);
    }
    const int64_t *v = operand(ad, 1);
    if (a->kind == PAD && v) b.pb = v[2], b.pe = v[5];
    if (a->kind == PAD && b.mode == 2) assert_true(b.pb < n && b.pe < n);
    if (a->kind == SLICE && v) {
        b.pb = v[0], b.pe = operand(ad, 2)[0], b.s = operand(ad, 4)[0];
        assert_int_equal(operand(ad, 3)[0], 2);
    }
    if (a->kind == RESIZE && a->by_sizes && operand(ad, 3)) {
        int64_t size = operand(ad, 3)[2];
        assert_int_equal(size * a->q, n * a->p); /* the very same ratio */
    }
    return b;
}

static bool has_gaps(const op1 *a)
{
    return a->kind == RESIZE || a->kind == PAD || (a->kind <= CONVT && (a->d > 1 || a->s > a->k));
}

static void check_window(const op1 *a, int64_t e, int64_t out, const ot_op_tile *t)
{
    int64_t lo = e, hi = 0;
    assert_true(t->made.lo >= 0 && t->made.lo <= t->need.lo && t->need.hi <= t->made.hi &&
                t->made.hi <= out);
    assert_true(t->in[0].lo >= 0 && t->in[0].lo < t->in[0].hi && t->in[0].hi <= e);
    for (int64_t i = 0; i < e; i++) {
        bool wanted = false, made = false;
        for (int64_t o = t->made.lo; o < t->made.hi; o++) {
            bool r = reads(a, e, o, i);
            made |= r;
            wanted |= r && o >= t->need.lo && o < t->need.hi;
        }
        if (wanted) assert_true(i >= t->in[0].lo && i < t->in[0].hi);
        if (made && i < lo) lo = i;
        if (made) hi = i + 1;
    }
    if (!has_gaps(a) && lo < hi) {
        assert_int_equal(t->in[0].lo, lo);
        assert_int_equal(t->in[0].hi, hi);
    }
    /* alignment and reflection widen it, but not without bound */
    if (a->kind == RESIZE || a->kind == PAD) {
        int64_t slack = a->kind == RESIZE ? 2 * a->q + 4 : 1;
        if (lo < hi) assert_true(t->in[0].hi - t->in[0].lo <= hi - lo + slack);
    }
}

static void check_numbers(const op1 *a, const double *x, const double *y, const ot_op_tile *t,
                          const ot_adapted *ad)
{
    int64_t n = t->in[0].hi - t->in[0].lo, m = t->made.hi - t->made.lo;
    if (ad->kind == OT_ADAPT_FORWARD) {
        assert_int_equal(n, m);
        for (int64_t o = 0; o < m; o++) assert_true(x[t->in[0].lo + o] == y[t->made.lo + o]);
        return;
    }
    op1 b = adapted_op(a, ad, n);
    assert_int_equal(out_extent(&b, n), m);
    for (int64_t o = t->need.lo; o < t->need.hi; o++) {
        double got = run_one(&b, x + t->in[0].lo, n, o - t->made.lo);
        if (fabs(got - y[o]) > 1e-9) {
            print_error("%s k %ld s %ld d %ld pads %ld %ld ceil %ld op %ld mode %ld map %ld round "
                        "%ld p/q %ld/%ld: need %ld:%ld "
                        "made %ld:%ld in %ld:%ld, output %ld is %g instead of %g\n",
                        kind_names[a->kind], a->k, a->s, a->d, a->pb, a->pe, a->ceil, a->out_pad,
                        a->mode, a->map, a->round, a->p, a->q, t->need.lo, t->need.hi, t->made.lo,
                        t->made.hi, t->in[0].lo, t->in[0].hi, o, got, y[o]);
            fail_msg("a tile differs");
        }
    }
}

/* One random instance; returns how many windows were checked. */
static int instance(kind kd)
{
    int64_t e = 0;
    op1 a = random_op(kd, &e);
    int64_t out = out_extent(&a, e);
    if (out < 1 || out > LEN || (kd == PAD && e + ot_min(a.pb, 0) + ot_min(a.pe, 0) < 1)) return 0;
    ot_diag diag = {0};
    ot_model *m = new_model(&diag, 21);
    ot_graph *g = m->graph;
    ot_id in[8];
    ot_attr attrs[8];
    uint32_t n_in = operands_of(&a, g, e, in), n_attrs = attrs_of(&a, m->arena, attrs);
    ot_id y = ot_value_new(g, "y", OT_F32, 3, (int64_t[]){1, 1, out});
    ot_id id = ot_node_new(g, &(ot_node_def){.op = kind_names[kd],
                                             .name = "n",
                                             .in = {in, n_in},
                                             .out = {&y, 1},
                                             .attrs = {attrs, n_attrs}});
    assert_true(id != OT_NONE);
    ot_confirm(g, OT_P_SHAPES);
    const ot_node *n = &g->nodes[id];
    double xs[LEN], ys[LEN];
    for (int64_t i = 0; i < e; i++) xs[i] = (double)rnd(-500, 500);
    for (int64_t o = 0; o < out; o++) ys[o] = run_one(&a, xs, e, o);
    int8_t in_axis[8], out_axis[1];
    ot_why why = OT_WHY_NONE;
    int done = 0;
    if (ot_access_axis(g, n, 0, 2, in_axis, out_axis, &why)) {
        assert_int_equal(in_axis[0], 2);
        assert_int_equal(out_axis[0], 2);
        for (uint32_t i = 1; i < n_in; i++) assert_int_equal(in_axis[i], OT_AX_WHOLE);
        for (int r = 0; r < 6; r++) {
            ot_win win[8];
            int64_t lo = rnd(0, out - 1), hi = rnd(lo + 1, out);
            ot_op_tile t = {.need = {lo, hi}, .in = win};
            ot_adapted ad;
            if (!window_both(g, n, 0, 2, &t, &why)) continue;
            check_window(&a, e, out, &t);
            ot_tile_axis cut = {0, 2, &t};
            assert_int_equal(ot_tile_adapt(g, n, &cut, 1, m->arena, &ad), OT_OK);
            check_numbers(&a, xs, ys, &t, &ad);
            done++;
        }
    }
    ot_model_free(m);
    return done;
}

static void brute(kind kd, int instances, int at_least)
{
    const char *env = getenv("OT_SEED");
    uint64_t seed = env ? strtoull(env, NULL, 10) : 1;
    rng_state = (seed + 1) * 0x9E3779B97F4A7C15u + (uint64_t)kd;
    int done = 0;
    for (int i = 0; i < instances; i++) done += instance(kd);
    print_message("%s: %d windows, seed %llu\n", kind_names[kd], done, (unsigned long long)seed);
    assert_true(done >= at_least);
}

static void test_conv(void **state)
{
    (void)state;
    brute(CONV, 1500, 4000);
}
static void test_maxpool(void **state)
{
    (void)state;
    brute(MAXPOOL, 1500, 4000);
}
static void test_avgpool(void **state)
{
    (void)state;
    brute(AVGPOOL, 1500, 4000);
}
static void test_convt(void **state)
{
    (void)state;
    brute(CONVT, 1500, 3000);
}
static void test_pad(void **state)
{
    (void)state;
    brute(PAD, 1500, 4000);
}
static void test_slice(void **state)
{
    (void)state;
    brute(SLICE, 1500, 4000);
}
static void test_resize(void **state)
{
    (void)state;
    brute(RESIZE, 1500, 4000);
}

/* ---- answers that must be refusals ---- */

/* Axis 2 of op(x [1,1,e], w [1,1,3]) -> y [1,1,out] under one ints attribute. */
static bool accepts(const char *op, int64_t e, int64_t out, const char *attr, const int64_t *v,
                    size_t n, ot_why *why)
{
    ot_diag diag = {0};
    ot_model *m = new_model(&diag, 21);
    ot_id in[2], y;
    ot_attr attrs[2] = {ints1(m->arena, "kernel_shape", 3, 0, 1), ot_mk_ints(m->arena, attr, v, n)};
    in[0] = ot_value_new(m->graph, "x", OT_F32, 3, (int64_t[]){1, 1, e});
    in[1] = ot_value_new(m->graph, "w", OT_F32, 3, (int64_t[]){1, 1, 3});
    y = ot_value_new(m->graph, "y", OT_F32, 3, (int64_t[]){1, 1, out});
    bool pool = strstr(op, "Pool") != NULL;
    ot_id id = ot_node_new(
        m->graph,
        &(ot_node_def){
            .op = op, .name = "n", .in = {in, pool ? 1 : 2}, .out = {&y, 1}, .attrs = {attrs, 2}});
    int8_t in_axis[2], out_axis[1];
    *why = OT_WHY_NONE;
    bool ok = ot_access_axis(m->graph, &m->graph->nodes[id], 0, 2, in_axis, out_axis, why);
    if (!ok) assert_int_not_equal(*why, OT_WHY_NONE);
    ot_model_free(m);
    return ok;
}

static void test_hostile_attributes(void **state)
{
    (void)state;
    static const int64_t bad[] = {0, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 40};
    static const char *const ops[] = {"Conv", "MaxPool", "AveragePool", "LpPool", "ConvTranspose"};
    static const char *const attrs[] = {"strides", "dilations", "pads", "kernel_shape",
                                        "output_padding"};
    ot_why why = OT_WHY_NONE;
    for (size_t o = 0; o < 5; o++)
        for (size_t k = 0; k < 5; k++)
            for (size_t b = 0; b < 5; b++) {
                int64_t v[2] = {bad[b], bad[b]};
                bool ok = accepts(ops[o], 10, o == 4 ? 12 : 8, attrs[k], v, k == 2 ? 2 : 1, &why);
                /* pads and output_padding may be 0 */
                bool harmless = bad[b] == 0 && (k == 2 || k == 4);
                /* given twice; not an attribute of this operator */
                bool unread = k == 3 || (k == 4 && o != 4);
                if (!harmless && !unread) assert_false(ok);
            }
    assert_true(accepts("Conv", 10, 8, "strides", (int64_t[]){1}, 1, &why));
    /* extent does not fit */
    assert_false(accepts("Conv", 10, 9, "strides", (int64_t[]){1}, 1, &why));
    /* too many entries */
    assert_false(accepts("Conv", 10, 8, "strides", (int64_t[]){1, 1}, 2, &why));
}

static void test_gates(void **state)
{
    (void)state;
    ot_diag diag = {0};
    ot_model *m = new_model(&diag, 21);
    ot_graph *g = m->graph;
    int64_t d4[4] = {2, 3, 8, 8}, half[4] = {2, 3, 4, 4};
    ot_attr k = ot_mk_ints(m->arena, "kernel_shape", (int64_t[]){2, 2}, 2);
    ot_id x = ot_value_new(g, "x", OT_F32, 4, d4), u = ot_value_new(g, "u", OT_F32, -1, NULL);
    ot_id y = ot_value_new(g, "y", OT_F32, 4, half), z = ot_value_new(g, "z", OT_I64, 4, half);
    ot_id outs[2] = {y, z}, o1 = ot_value_new(g, "o1", OT_F32, 4, d4),
          o2 = ot_value_new(g, "o2", OT_F32, 4, d4);
    ot_attr attrs[2] = {k, ot_mk_ints(m->arena, "strides", (int64_t[]){2, 2}, 2)};
    ot_id pool = ot_node_new(
        g, &(ot_node_def){
               .op = "MaxPool", .name = "p", .in = {&x, 1}, .out = {outs, 2}, .attrs = {attrs, 2}});
    ot_id shy = ot_node_new(
        g, &(ot_node_def){.op = "Relu", .name = "r", .in = {&u, 1}, .out = {&o1, 1}});
    ot_id own = ot_node_new(
        g, &(ot_node_def){
               .op = "Relu", .domain = "my.domain", .name = "c", .in = {&x, 1}, .out = {&o2, 1}});
    int8_t ia[4], oa[4];
    ot_why why = OT_WHY_NONE;
    for (uint32_t ax = 0; ax < 6; ax++) {
        assert_false(ot_access_axis(g, &g->nodes[pool], 0, ax, ia, oa, &why));
        assert_false(ot_access_axis(g, &g->nodes[shy], 0, ax, ia, oa, &why));
        assert_false(ot_access_axis(g, &g->nodes[own], 0, ax, ia, oa, &why));
        assert_int_not_equal(why, OT_WHY_NONE);
    }
    g->nodes[pool].out[1] = OT_NONE; /* without Indices it can be cut */
    assert_true(ot_access_axis(g, &g->nodes[pool], 0, 2, ia, oa, &why));
    ot_win w[4];
    ot_op_tile t = {.need = {3, 5}, .in = w};
    assert_false(ot_access_window(g, &g->nodes[pool], 0, 2, &t, &why)); /* outside the axis */
    t.need = (ot_win){2, 2};
    assert_false(ot_access_window(g, &g->nodes[pool], 0, 2, &t, &why)); /* empty */
    ot_model_free(m);
}

/* Is axis 2 of a nearest Resize of x [1,1,in] to `out` cut? */
static bool cuts_nearest(const char *map, const char *rounding, int64_t in, int64_t out,
                         ot_why *why)
{
    ot_diag diag = {0};
    ot_model *m = new_model(&diag, 21);
    int64_t three = 3, sizes[3] = {1, 1, out};
    ot_attr attrs[2] = {ot_mk_str("coordinate_transformation_mode", map),
                        ot_mk_str("nearest_mode", rounding)};
    ot_id x = ot_value_new(m->graph, "x", OT_F32, 3, (int64_t[]){1, 1, in}),
          y = ot_value_new(m->graph, "y", OT_F32, 3, sizes);
    ot_id operands[4] = {x, OT_NONE, OT_NONE, ot_const_i64(m->graph, "n", sizes, 1, &three)};
    ot_id id = ot_node_new(
        m->graph,
        &(ot_node_def){
            .op = "Resize", .name = "n", .in = {operands, 4}, .out = {&y, 1}, .attrs = {attrs, 2}});
    int8_t in_axis[4], out_axis[1];
    *why = OT_WHY_NONE;
    bool ok = ot_access_axis(m->graph, &m->graph->nodes[id], 0, 2, in_axis, out_axis, why);
    ot_model_free(m);
    return ok;
}

/* Where rounding decides which neighbour a coordinate has, a tile may have another than the whole.
 */
static void test_resize_neighbours(void **state)
{
    (void)state;
    ot_why why;
    assert_true(cuts_nearest("half_pixel", "floor", 27, 63, &why));
    /* 7 / 3 is no float: the whole is moved by 27 / 2 * (1 - 63 / (27 * 7 / 3)), which is less
     * than 0, and a tile of 3 is not */
    assert_false(cuts_nearest("half_pixel_symmetric", "floor", 27, 63, &why));
    assert_int_equal(why, OT_WHY_RESIZE_NEIGHBOURS);
    assert_true(cuts_nearest("half_pixel_symmetric", "floor", 28, 56, &why));
    /* (4 + 0.5) * 20 / 6 - 0.5 is 14.5, as a float less: some runtimes take it for the middle */
    assert_false(cuts_nearest("half_pixel", "round_prefer_ceil", 20, 6, &why));
    assert_int_equal(why, OT_WHY_RESIZE_NEIGHBOURS);
    assert_true(cuts_nearest("half_pixel", "round_prefer_ceil", 20, 60, &why));
}

static double macs_of(const char *op, const int64_t *xd, int32_t xr, const int64_t *wd, int32_t wr,
                      const int64_t *yd, int32_t yr)
{
    ot_diag diag = {0};
    ot_model *m = new_model(&diag, 21);
    ot_graph *g = m->graph;
    ot_id in[2] = {ot_value_new(g, "x", OT_F32, xr, xd), ot_value_new(g, "w", OT_F32, wr, wd)};
    ot_id y = ot_value_new(g, "y", OT_F32, yr, yd);
    ot_attr eq = ot_mk_str("equation", "bij,bjk->bik");
    ot_id id = ot_node_new(g, &(ot_node_def){.op = op,
                                             .name = "n",
                                             .in = {in, 2},
                                             .out = {&y, 1},
                                             .attrs = {&eq, strcmp(op, "Einsum") == 0}});
    double macs = ot_node_macs(g, &g->nodes[id]);
    ot_model_free(m);
    return macs;
}

static void test_macs(void **state)
{
    (void)state;
    int64_t x[] = {1, 8, 10, 10}, w[] = {4, 8, 3, 3}, y[] = {1, 4, 8, 8}, wt[] = {8, 4, 3, 3},
            yt[] = {1, 4, 12, 12};
    int64_t a[] = {5, 6, 7}, b[] = {5, 7, 9}, c[] = {5, 6, 9};
    assert_true(macs_of("Conv", x, 4, w, 4, y, 4) == 4 * 64 * 8 * 9);
    assert_true(macs_of("ConvTranspose", x, 4, wt, 4, yt, 4) == 8 * 100 * 4 * 9);
    assert_true(macs_of("MatMul", a, 3, b, 3, c, 3) == 5 * 6 * 7 * 9);
    assert_true(macs_of("Einsum", a, 3, b, 3, c, 3) == 5 * 6 * 7 * 9);
    assert_true(macs_of("Add", x, 4, x, 4, x, 4) == 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_maxpool),
        cmocka_unit_test(test_avgpool),
        cmocka_unit_test(test_convt),
        cmocka_unit_test(test_pad),
        cmocka_unit_test(test_slice),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_resize_neighbours),
        cmocka_unit_test(test_hostile_attributes),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_macs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
