/* Bodies that lie: random networks of standard operators in the branches of an If, in a Loop or in
 * a Scan, whose value_info, inputs and outputs state other types and shapes than there are, and
 * whose nodes lack operands.
 *
 *   network   Conv Relu MaxPool Sigmoid     as it is: float32 [3,8,7,7], [3,8,7,7], [3,8,5,5] ...
 *   stated    .    bool  .      [1,8,5,5]
 *
 * Each either runs or is refused with one line. Guards stand around all memory (engine/core/
 * guards.c), and what runs makes the types and shapes that the slow and obvious implementations
 * make, and about the same numbers.
 */
#include "engine_check.h"

#include "onnx/import/model_io.h"
#include "wire.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define BODIES      10000
#define VALUES_MOST 40
#define NODES_MOST  7

static uint64_t seed;

/* 0 <= result < n */
static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static bool one_in(int n) { return below(n) == 0; }

/* ---- a network ---- */

/* What a value is like; dims of rank 4 but for what Reshape makes. */
typedef struct made {
    char name[16];
    int type, rank;
    int64_t dims[4];
} made;

typedef struct network {
    wire nodes, stated, inits; /* fields of GraphProto */
    made v[VALUES_MOST];
    int n, n_names;
    bool rough; /* rounding may show: 8 bits, 16 bits, comparisons */
} network;

/* How a file lies: of each value something else, or one thing of all of them, so that what it
 * states agrees with itself. */
static enum { ANYHOW, OF_ONE_TYPE, OLD_BATCH, FEWER_CHANNELS, STYLES } style;
static int one_type;

static wire state_agreeing(const made *v)
{
    int64_t dims[5];
    for (int k = 0; k < v->rank; k++) dims[k] = v->dims[k];
    dims[v->rank] = -9;
    if (style == OLD_BATCH) dims[0] = 1;
    if (style == FEWER_CHANNELS) dims[1] = ot_max(1, dims[1] / 2);
    return x_value_info(v->name, style == OF_ONE_TYPE ? one_type : v->type, dims);
}

/* What the file states of v; with a lie, mostly something else. */
static wire state(const made *v, bool lie)
{
    int64_t dims[6], type = v->type;
    int rank = v->rank;
    static const int types[] = {1, 2, 3, 6, 7, 9, 10, 11, 16, 21};
    if (style != ANYHOW) return state_agreeing(v);
    for (int k = 0; k < rank; k++) dims[k] = v->dims[k];
    if (lie && !one_in(3)) type = types[below(10)];
    if (lie && one_in(2)) dims[0] = 1; /* an old batch */
    if (lie && one_in(3)) dims[below(rank)] = below(40) - 1;
    if (lie && one_in(8)) dims[rank++] = below(4);
    if (lie && one_in(12)) rank--;
    for (int k = 0; k < rank && !lie; k++)
        if (one_in(12)) dims[k] = -1;
    dims[rank] = -9;
    return x_value_info(v->name, (int)type, dims);
}

static size_t size_of(int type)
{
    static const uint8_t bytes[] = {[1] = 4, [2] = 1, [3] = 1, [6] = 4, [7] = 8, [9] = 1, [10] = 2};
    return bytes[type];
}

/* A constant of random numbers; its name in `name`. */
static void constant(network *w, int type, int rank, const int64_t *dims, char name[16])
{
    int64_t list[8], n = 1;
    for (int k = 0; k < rank; k++) n *= list[k] = ot_max(dims[k], 1);
    list[rank] = -9;
    unsigned char *raw = calloc((size_t)n + 1, 8);
    for (int64_t k = 0; raw && k < n; k++) {
        float f = (float)(below(2001) - 1000) / 1000;
        if (type == 1) memcpy(raw + 4 * k, &f, 4);
        if (type == 10) memcpy(raw + 2 * k, &(uint16_t){(uint16_t)(0x3000 + below(2048))}, 2);
        if (type == 2 || type == 3) raw[k] = (unsigned char)below(256);
        if (type == 6) memcpy(raw + 4 * k, &(int32_t){below(9) - 4}, 4);
    }
    snprintf(name, 16, "c%d", w->n_names++);
    w->inits = W(w->inits, w_msg(5, x_tensor(name, type, list, raw, (size_t)n * size_of(type))));
    free(raw);
}

static void integers(network *w, int n, const int64_t *list, char name[16])
{
    snprintf(name, 16, "c%d", w->n_names++);
    w->inits = W(w->inits, w_msg(5, x_tensor(name, 7, DIMS(n), list, (size_t)n * 8)));
}

static wire ints(const char *name, int n, const int64_t *list)
{
    wire all = W_NONE;
    for (int k = 0; k < n; k++) all = W(all, w_int(8, list[k]));
    return w_msg(5, W(w_str(1, name), all, w_int(20, 7)));
}
#define INTS(name, ...) \
    ints(name, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

/* A node of `op` on these operands, which makes `out`; now and then an operand is missing, or the
 * node has an output that nobody reads. */
static void node(network *w, const char *op, const char *operands, made out, wire attrs)
{
    char ins[200] = "", outs[40], word[40];
    if (w->n == VALUES_MOST) return;
    for (const char *at = operands; *at;) {
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s ", (int)n, at);
        if (one_in(60)) snprintf(word, sizeof word, "_ ");
        strcat(ins, word);
        at += n + (at[n] == ' ');
        if (one_in(150)) break;
    }
    if (ins[0]) ins[strlen(ins) - 1] = 0;
    snprintf(out.name, sizeof out.name, "v%d", w->n_names++);
    snprintf(outs, sizeof outs, one_in(80) ? "%s extra%d" : "%s", out.name, w->n_names);
    w->nodes = W(w->nodes, w_msg(1, x_node(op, ins, outs, "", attrs)));
    if (style != ANYHOW || !one_in(3)) w->stated = W(w->stated, w_msg(13, state(&out, !one_in(3))));
    w->v[w->n++] = out;
}

static void op1(network *w, const char *op, const made *x, made out, wire attrs)
{
    node(w, op, x->name, out, attrs);
}

static bool is_real(const made *x) { return x->type == 1 || x->type == 10; }
static bool is_map(const made *x) { return x->rank == 4; }

/* The newest value, or any; of a kind if there is one. */
static const made *pick(const network *w, bool (*fits)(const made *))
{
    for (int tries = 0; tries < 20; tries++) {
        const made *x = &w->v[one_in(3) ? below(w->n) : w->n - 1];
        if (!fits || fits(x)) return x;
    }
    return &w->v[0];
}

static const made *same_as(const network *w, const made *x)
{
    for (int tries = 0; tries < 20; tries++) {
        const made *y = &w->v[below(w->n)];
        if (y->type == x->type && y->rank == x->rank && !memcmp(y->dims, x->dims, sizeof x->dims))
            return y;
    }
    return x;
}

static made typed(const made *x, int type)
{
    made y = *x;
    y.type = type;
    return y;
}

/* ---- kinds of nodes ---- */

static void add_unary(network *w)
{
    static const char *const ops[] = {
        "Relu",      "Sigmoid",  "Tanh",       "Neg",      "Abs",  "LeakyRelu",   "Elu",
        "HardSwish", "Softplus", "Erf",        "Identity", "Exp",  "HardSigmoid", "Selu",
        "Softsign",  "Dropout",  "LogSoftmax", "Softmax",  "Mish", "Clip"};
    const made *x = pick(w, is_real);
    op1(w, ops[below(20)], x, *x, W_NONE);
}

static void add_binary(network *w)
{
    static const char *const ops[] = {"Add", "Mul", "Sub", "Max", "Min", "Sum", "Mean", "PRelu"};
    const made *x = pick(w, is_real), *y = same_as(w, x);
    char text[40], name[16];
    snprintf(text, sizeof text, "%s %s", x->name, y->name);
    if (one_in(3) && is_map(x) && x->type == 1) {
        constant(w, 1, 3, (int64_t[]){x->dims[1], 1, 1}, name);
        snprintf(text, sizeof text, "%s %s", x->name, name);
    }
    node(w, ops[below(8)], text, *x, W_NONE);
}

static void add_compared(network *w)
{
    static const char *const ops[] = {"Greater", "Less", "LessOrEqual", "Equal"};
    const made *x = pick(w, is_real);
    made mask;
    char text[60];
    snprintf(text, sizeof text, "%s %s", x->name, same_as(w, x)->name);
    made like = *x;
    node(w, ops[below(4)], text, typed(x, 9), W_NONE);
    mask = w->v[w->n - 1];
    w->rough = true;
    if (one_in(4)) op1(w, "Not", &mask, mask, W_NONE);
    snprintf(text, sizeof text, "%s %s %s", mask.name, like.name, like.name);
    node(w, "Where", text, like, W_NONE);
}

static void add_cast(network *w)
{
    static const int types[] = {1, 10, 1, 6, 2, 9};
    const made *x = pick(w, NULL);
    int type = types[below(6)];
    w->rough = true;
    op1(w, "Cast", x, typed(x, type), x_attr_int("to", type));
}

static void add_conv(network *w)
{
    const made *x = pick(w, is_map);
    const int k = one_in(2) ? 3 : 1, stride = one_in(4) ? 2 : 1, maps = 4 * (1 + below(6));
    const bool turned = one_in(6), by_channel = one_in(5);
    char weight[16], bias[16], text[60];
    made y = *x;
    if (!is_real(x) || !is_map(x)) return;
    int64_t dims[4] = {turned       ? x->dims[1]
                       : by_channel ? x->dims[1]
                                    : maps,
                       turned       ? maps
                       : by_channel ? 1
                                    : x->dims[1],
                       k, k};
    constant(w, x->type, 4, dims, weight);
    y.dims[1] = turned ? maps : dims[0];
    for (int a = 2; a < 4; a++)
        y.dims[a] = turned ? (x->dims[a] - 1) * stride + k - 2 * (k / 2)
                           : (x->dims[a] - 1) / stride + 1;
    constant(w, x->type, 1, (int64_t[]){y.dims[1]}, bias);
    snprintf(text, sizeof text, one_in(3) ? "%s %s" : "%s %s %s", x->name, weight, bias);
    node(w, turned ? "ConvTranspose" : "Conv", text, y,
         W(INTS("pads", k / 2, k / 2, k / 2, k / 2), INTS("strides", stride, stride),
           x_attr_int("group", by_channel && !turned ? x->dims[1] : 1)));
}

static void add_pool(network *w)
{
    static const char *const ops[] = {"MaxPool", "AveragePool", "LpPool", "GlobalAveragePool",
                                      "GlobalMaxPool"};
    const made *x = pick(w, is_map);
    const int op = below(5), k = 2 + below(2), stride = 1 + below(2);
    made y = *x;
    if (!is_map(x)) return;
    for (int a = 2; a < 4; a++) y.dims[a] = op >= 3 ? 1 : (x->dims[a] - k) / stride + 1;
    op1(w, ops[op], x, y,
        op >= 3 ? W_NONE : W(INTS("kernel_shape", k, k), INTS("strides", stride, stride)));
}

static void add_norm(network *w)
{
    static const char *const ops[] = {"BatchNormalization", "InstanceNormalization",
                                      "LayerNormalization", "LRN"};
    const made *x = pick(w, is_map);
    const int op = below(4);
    char c[4][16], text[120];
    if (!is_map(x) || x->type != 1) return;
    for (int k = 0; k < 4; k++) constant(w, 1, 1, &x->dims[op == 2 ? 3 : 1], c[k]);
    snprintf(text, sizeof text,
             op == 0   ? "%s %s %s %s %s"
             : op == 3 ? "%s"
                       : "%s %s %s",
             x->name, c[0], c[1], c[2], c[3]);
    w->rough |= op == 0; /* variances below zero */
    node(w, ops[op], text, *x, op == 3 ? x_attr_int("size", 3) : W_NONE);
}

static void add_moved(network *w)
{
    const made *x = pick(w, is_map);
    char c[4][16], text[120];
    made y = *x;
    if (!is_map(x)) return;
    switch (below(6)) {
    case 0:
        y.dims[1] *= 2;
        snprintf(text, sizeof text, "%s %s", x->name, same_as(w, x)->name);
        node(w, "Concat", text, y, x_attr_int("axis", 1));
        break;
    case 1:
        for (int k = 0; k < 4; k++)
            integers(w, 1, &(int64_t){k == 0 ? 0 : k == 1 ? 2 : k - 1}, c[k]);
        y.dims[1] = ot_min(2, y.dims[1]);
        snprintf(text, sizeof text, "%s %s %s %s", x->name, c[0], c[1], c[2]);
        node(w, "Slice", text, y, W_NONE);
        break;
    case 2:
        for (int k = 0; k < 4; k++) y.dims[k] = x->dims[(int[]){0, 2, 3, 1}[k]];
        op1(w, "Transpose", x, y, INTS("perm", 0, 2, 3, 1));
        break;
    case 3:
        integers(w, 3, (int64_t[]){x->dims[0], x->dims[1], -1}, c[0]);
        y = (made){.type = x->type,
                   .rank = 3,
                   .dims = {x->dims[0], x->dims[1], x->dims[2] * x->dims[3], 0}};
        snprintf(text, sizeof text, "%s %s", x->name, c[0]);
        node(w, "Reshape", text, y, W_NONE);
        break;
    case 4:
        integers(w, 8, (int64_t[]){0, 0, 1, 0, 0, 0, 0, 1}, c[0]);
        y.dims[2]++;
        y.dims[3]++;
        snprintf(text, sizeof text, "%s %s", x->name, c[0]);
        node(w, "Pad", text, y, W_NONE);
        break;
    default:
        integers(w, 4, (int64_t[]){y.dims[0], y.dims[1], y.dims[2] *= 2, y.dims[3] *= 2}, c[0]);
        snprintf(text, sizeof text, "%s _ _ %s", x->name, c[0]);
        node(w, "Resize", text, y,
             w_msg(5, W(w_str(1, "mode"), w_str(4, "nearest"), w_int(20, 3))));
    }
}

static void add_product(network *w)
{
    const made *x = pick(w, NULL);
    char weight[16], text[60];
    made y = *x;
    const int axis = x->rank - 1, columns = 1 + below(20);
    if (!is_real(x)) return;
    constant(w, x->type, 2, (int64_t[]){x->dims[axis], columns}, weight);
    y.dims[axis] = columns;
    snprintf(text, sizeof text, "%s %s", x->name, weight);
    node(w, "MatMul", text, y, W_NONE);
}

static void add_reduced(network *w)
{
    static const char *const ops[] = {"ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2", "ArgMax"};
    const made *x = pick(w, is_map);
    const int op = below(5);
    char axes[16], text[60];
    made y = *x;
    if (!is_map(x) || !is_real(x)) return;
    integers(w, 1, &(int64_t){1}, axes);
    y.dims[1] = 1;
    if (op == 4) y.type = 7;
    w->rough |= op == 4;
    snprintf(text, sizeof text, op == 4 ? "%s" : "%s %s", x->name, axes);
    node(w, ops[op], text, y, op == 4 ? x_attr_int("axis", 1) : W_NONE);
}

/* Quantized, moved, convolved, and back. */
static void add_bytes(network *w)
{
    const made *x = pick(w, is_map);
    char scale[16], zero[16], weight[16], text[120];
    made bytes = typed(x, 2);
    if (!is_map(x) || x->type != 1) return;
    w->rough = true;
    constant(w, 1, 0, NULL, scale);
    constant(w, 2, 0, NULL, zero);
    snprintf(text, sizeof text, "%s %s %s", x->name, scale, zero);
    node(w, "QuantizeLinear", text, bytes, W_NONE);
    bytes = w->v[w->n - 1];
    if (one_in(2)) {
        constant(w, 3, 4, (int64_t[]){8, x->dims[1], 1, 1}, weight);
        snprintf(text, sizeof text, "%s %s", bytes.name, weight);
        made sums = typed(&bytes, 6);
        sums.dims[1] = 8;
        node(w, "ConvInteger", text, sums, W_NONE);
        return;
    }
    if (one_in(2)) op1(w, "MaxPool", &bytes, bytes, INTS("kernel_shape", 1, 1));
    snprintf(text, sizeof text, "%s %s %s", w->v[w->n - 1].name, scale, zero);
    node(w, "DequantizeLinear", text, typed(&bytes, 1), W_NONE);
}

/* ---- bodies ---- */

static void add_nodes(network *w)
{
    static void (*const kinds[])(network *) = {
        add_unary, add_unary, add_unary, add_binary, add_binary,  add_compared, add_cast, add_conv,
        add_conv,  add_pool,  add_norm,  add_moved,  add_product, add_reduced,  add_bytes};
    for (int k = 1 + below(NODES_MOST); k > 0 && w->n < VALUES_MOST - 4; k--)
        kinds[below(sizeof kinds / sizeof *kinds)](w);
}

static wire graph_of(const network *w, const char *name, wire inputs, wire outputs)
{
    return W(w->nodes, w_str(2, name), w->inits, inputs, outputs, w->stated);
}

/* A body around the network on `x`, whose result is the last value. */
static wire body_of(network *w, made x, wire inputs, wire before, wire outputs)
{
    *w = (network){.v = {x}, .n = 1, .n_names = 100};
    w->nodes = before;
    add_nodes(w);
    const made *last = &w->v[w->n - 1];
    outputs = W(outputs, w_msg(12, state(last, !one_in(3))));
    return graph_of(w, "body", inputs, outputs);
}

static wire other_branch(void)
{
    wire n = w_msg(1, x_node("Neg", "x", "other", "", W_NONE));
    return W(n, w_str(2, "other"), w_msg(12, x_value_info("other", 1, DIMS(-1, -1, -1, -1))));
}

/* An If, Loop or Scan of a lying body on x; *w: the network inside. */
static wire control(network *w, made x, int kind)
{
    made inside = x;
    const wire carried = W(w_msg(11, x_value_info("i", 7, DIMS(-9))),
                           w_msg(11, x_value_info("go", 9, DIMS(-9))));
    if (kind == 0)
        return x_node("If", "yes", "y", "if",
                      W(x_attr_graph("then_branch", body_of(w, x, W_NONE, W_NONE, W_NONE)),
                        x_attr_graph("else_branch", other_branch())));
    snprintf(inside.name, sizeof inside.name, "a");
    const wire given = w_msg(11, state(&inside, one_in(2)));
    if (kind == 1)
        return x_node(
            "Loop", "times yes x", "y", "loop",
            x_attr_graph("body", body_of(w, inside, W(carried, given),
                                         w_msg(1, x_node("Identity", "go", "again", "", W_NONE)),
                                         w_msg(12, x_value_info("again", 9, DIMS(-9))))));
    return x_node("Scan", "xs", "y", "scan",
                  W(x_attr_graph("body", body_of(w, inside, given, W_NONE, W_NONE)),
                    x_attr_int("num_scan_inputs", 1)));
}

typedef struct lie {
    wire model;
    bool rough;
    int64_t dims[5];
} lie;

static void tell(lie *l)
{
    static const int channels[] = {3, 4, 8, 16, 24};
    network top = {.n = 1, .n_names = 1}, inner;
    made x = {.name = "x", .type = 1, .rank = 4};
    static const int some_types[] = {9, 9, 2, 3, 10};
    const int kind = below(3);
    style = below(STYLES);
    one_type = some_types[below(5)];
    const int64_t scans = 2, times = 1 + below(3);
    for (int k = 0; k < 4; k++)
        x.dims[k] = k == 0 ? 1 + below(4) : k == 1 ? channels[below(5)] : 1 + below(9);
    const int64_t all[] = {scans, x.dims[0], x.dims[1], x.dims[2], x.dims[3], -9};
    memcpy(l->dims, kind == 2 ? all : all + 1, sizeof l->dims);
    wire n = w_msg(1, control(&inner, x, kind)),
         yes = w_msg(5, x_tensor("yes", 9, DIMS(-9), &(bool){true}, 1)),
         count = w_msg(5, x_tensor("times", 7, DIMS(-9), &times, 8));
    made y = inner.v[inner.n - 1];
    snprintf(y.name, sizeof y.name, "y");
    top.v[0] = y;
    top.nodes = n;
    if (one_in(3)) {
        top.stated = w_msg(13, state(&y, one_in(2)));
        add_unary(&top);
    }
    l->rough = inner.rough || top.rough || y.type != 1;
    wire in = w_msg(11, x_value_info(kind == 2 ? "xs" : "x", 1, kind == 2 ? all : all + 1)),
         out = w_msg(12, w_str(1, top.v[top.n - 1].name));
    top.inits = W(top.inits, yes, count);
    l->model = x_model(8, 18, graph_of(&top, "main", in, out));
}

/* ---- running them ---- */

/* The model's session runs on x; the result is the caller's. */
static ot_status answer(const lie *l, bool reference, const ot_nd *x, ot_diag *d, ot_nd *out)
{
    ot_session_options o = {.reference = reference, .threads = 2, .poison = true, .guards = true};
    ot_model *m = NULL;
    ot_session *s = NULL;
    ot_nd y = {0};
    ot_status st = ot_import_memory(l->model.data, l->model.n, NULL, d, &m);
    if (st == OT_OK) st = ot_session_new(m, &o, d, &s);
    if (st == OT_OK) st = ot_session_run(s, x, &y, d);
    if (st == OT_OK) st = ot_nd_copy(out, &y, NULL, d);
    ot_session_free(s);
    ot_model_free(m);
    return st;
}

/* The largest difference over the largest number; 0 where numbers are none. */
static double difference(const ot_nd *a, const ot_nd *b)
{
    double most = 1e-3, off = 0;
    int64_t n = 0;
    assert_true(ot_nd_elems(a, &n));
    for (int64_t k = 0; k < n; k++) {
        double x = ot_nd_double(a, k), y = ot_nd_double(b, k);
        if (!isfinite(x) || !isfinite(y) || fabs(x) > 1e6) return 0;
        most = fmax(most, fabs(x));
        off = fmax(off, fabs(x - y));
    }
    return off / most;
}

typedef struct counts {
    int ran, refused, compared;
} counts;

static void check(const lie *l, uint64_t at, counts *c)
{
    static float numbers[4 * 4 * 24 * 9 * 9];
    ot_nd x = {0}, want = {0}, got = {0};
    ot_diag d = {0}, d_ref = {0};
    uint32_t rank = 0;
    while (rank < 5 && l->dims[rank] != -9) rank++;
    x = over(OT_F32, numbers, rank, l->dims);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        numbers[k] = (float)((k * 7919) % 401) / 100 - 2;
    ot_status st = answer(l, false, &x, &d, &got), ref = answer(l, true, &x, &d_ref, &want);
    if (st != OT_OK && (st != OT_E_INPUT || !d.message[0] || strchr(d.message, '\n')))
        fail_msg("SEED=%llu: status %d: %s", (unsigned long long)at, st, d.message);
    c->ran += st == OT_OK;
    c->refused += st != OT_OK;
    if (st == OT_OK && ref != OT_OK)
        fail_msg("SEED=%llu: only the reference says %s", (unsigned long long)at, d_ref.message);
    if (st == OT_OK) {
        if (!ot_nd_same_shape(&got, want.dtype, want.rank, want.dims))
            fail_msg("SEED=%llu: another type or shape", (unsigned long long)at);
        c->compared += !l->rough;
        if (!l->rough && !(difference(&want, &got) < 1e-3))
            fail_msg("SEED=%llu: other numbers: %g", (unsigned long long)at,
                     difference(&want, &got));
    }
    ot_nd_release(&want);
    ot_nd_release(&got);
}

/* SEED: one body only, which is left in lie.onnx. */
static void lying_bodies(void **state)
{
    (void)state;
    const char *one = getenv("SEED"), *many = getenv("BODIES");
    const uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    const int n = one ? 1 : many ? atoi(many) : BODIES;
    counts c = {0};
    for (uint64_t k = first; k < first + (uint64_t)n; k++) {
        lie l;
        seed = k * 0x9E3779B97F4A7C15u;
        tell(&l);
        if (one && *one) {
            FILE *f = fopen("lie.onnx", "wb");
            if (f) (void)!fwrite(l.model.data, 1, l.model.n, f);
            if (f) fclose(f);
        }
        check(&l, k, &c);
        wire_reset();
    }
    print_message("%d ran, %d of them compared, %d were refused\n", c.ran, c.compared, c.refused);
    assert_true(one || (c.ran > n / 2 && c.refused > n / 20 && c.compared > n / 8));
}

/* ---- what guards see ---- */

static int offset; /* from the end of the 24 bytes of its output to where the step writes */

static ot_status write_too_far(ot_call *c)
{
    const ot_nd *x = c->in[0];
    OT_TRY(ot_call_output(c, 0, OT_F32, x->rank, x->dims));
    char *y = c->out[0]->data;
    memset(y, 0, 24);
    y[24 + offset] = 1;
    return OT_OK;
}

/* How a process ends in which that step of two writes so far: the first makes planned memory, the
 * second a result on the heap. */
static int end_of(uint32_t step, int at)
{
    int status = 0;
    bench b;
    float x[6] = {1, 2, 3, 4, 5, 6};
    ot_nd in = F32S(x, 2, 3), out = {0};
    open_with(&b, "input %x : float32[2,3]\n%h = Softmax(%x)\n%y = Softmax(%h)\noutput %y",
              (ot_session_options){.guards = true});
    assert_int_equal(b.status, OT_OK);
    assert_int_equal(b.s->top->n_steps, 2);
    assert_true(b.s->arena_bytes > 0);
    b.s->top->steps[step].run = write_too_far;
    offset = at;
    const pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        signal(SIGABRT, SIG_DFL);
        _exit(ot_session_run(b.s, &in, &out, &b.d) == OT_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    close_bench(&b);
    return status;
}

static void guards_see_what_writes_too_far(void **state)
{
    (void)state;
    static const int at[] = {0, 3, 63, -25, -88};
    for (uint32_t step = 0; step < 2; step++) {
        assert_int_equal(end_of(step, -24), 0); /* within: no complaint */
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            const int status = end_of(step, at[k]);
            assert_true(WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), SIGABRT);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guards_see_what_writes_too_far),
        cmocka_unit_test(lying_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
