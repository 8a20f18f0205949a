/* Element by element: one, two or three operands, broadcast to each other as NumPy does.
 *
 *   4x1x8
 *     3x8     axes pair from the last one; an axis of 1, or none, stands for all places of the
 *             other
 *   4x3x8
 */
#include "krun_internal.h"

#include <math.h>

/* ---- the functions; p: settings alpha, beta ---- */

typedef double (*unary)(double x, const double *p);
typedef double (*binary)(double x, double y);

static double abs_(double x, const double *p) { return (void)p, fabs(x); }
static double neg_(double x, const double *p) { return (void)p, -x; }
static double exp_(double x, const double *p) { return (void)p, exp(x); }
static double log_(double x, const double *p) { return (void)p, log(x); }
static double sqrt_(double x, const double *p) { return (void)p, sqrt(x); }
static double rsqrt_(double x, const double *p) { return (void)p, 1 / sqrt(x); }
static double reciprocal(double x, const double *p) { return (void)p, 1 / x; }
static double relu(double x, const double *p) { return (void)p, x < 0 ? 0 : x; }
static double leaky(double x, const double *p) { return x < 0 ? x * p[0] : x; }
static double sigmoid(double x, const double *p) { return (void)p, 1 / (1 + exp(-x)); }
static double tanh_(double x, const double *p) { return (void)p, tanh(x); }
static double silu(double x, const double *p) { return (void)p, x / (1 + exp(-x)); }
static double gelu(double x, const double *p) { return (void)p, x / 2 * (1 + erf(x / sqrt(2))); }
static double erf_(double x, const double *p) { return (void)p, erf(x); }
static double floor_(double x, const double *p) { return (void)p, floor(x); }
static double ceil_(double x, const double *p) { return (void)p, ceil(x); }
static double round_(double x, const double *p) { return (void)p, nearbyint(x); }
static double trunc_(double x, const double *p) { return (void)p, trunc(x); }
static double not_(double x, const double *p) { return (void)p, x == 0; }
static double sign(double x, const double *p) { return (void)p, (x > 0) - (x < 0); }
static double sin_(double x, const double *p) { return (void)p, sin(x); }
static double cos_(double x, const double *p) { return (void)p, cos(x); }
static double square(double x, const double *p) { return (void)p, x * x; }
static double same(double x, const double *p) { return (void)p, x; }
static double clip(double x, const double *p) { return x < p[0] ? p[0] : x > p[1] ? p[1] : x; }
static double adds(double x, const double *p) { return x + p[0]; }
static double muls(double x, const double *p) { return x * p[0]; }
static double maxs(double x, const double *p) { return x > p[0] || x != x ? x : p[0]; }
static double mins(double x, const double *p) { return x < p[0] || x != x ? x : p[0]; }

static double add(double x, double y) { return x + y; }
static double sub(double x, double y) { return x - y; }
static double mul(double x, double y) { return x * y; }
static double div_(double x, double y) { return x / y; }
static double max_(double x, double y)
{
    return x != x || x > y ? x : y;
} /* NaN wins, as in NumPy */
static double min_(double x, double y) { return x != x || x < y ? x : y; }
static double pow_(double x, double y) { return pow(x, y); }
static double and_(double x, double y) { return x != 0 && y != 0; }
static double or_(double x, double y) { return x != 0 || y != 0; }
static double xor_(double x, double y) { return (x != 0) != (y != 0); }
static double equal(double x, double y) { return x == y; }
static double notequal(double x, double y) { return x != y; }
static double less(double x, double y) { return x < y; }
static double lessorequal(double x, double y) { return x <= y; }
static double greater(double x, double y) { return x > y; }
static double greaterorequal(double x, double y) { return x >= y; }
static double prelu(double x, double y) { return x < 0 ? x * y : x; }

static const struct {
    const char *name;
    unary f;
    const char *settings[2]; /* NULL: none */
    double defaults[2];
} UNARY[] = {
    {"abs", abs_, {0}, {0}},
    {"neg", neg_, {0}, {0}},
    {"exp", exp_, {0}, {0}},
    {"log", log_, {0}, {0}},
    {"ln", log_, {0}, {0}},
    {"sqrt", sqrt_, {0}, {0}},
    {"rsqrt", rsqrt_, {0}, {0}},
    {"reciprocal", reciprocal, {0}, {0}},
    {"relu", relu, {0}, {0}},
    {"leakyrelu", leaky, {"alpha"}, {0.01, 0}},
    {"sigmoid", sigmoid, {0}, {0}},
    {"tanh", tanh_, {0}, {0}},
    {"silu", silu, {0}, {0}},
    {"gelu", gelu, {0}, {0}},
    {"erf", erf_, {0}, {0}},
    {"floor", floor_, {0}, {0}},
    {"ceil", ceil_, {0}, {0}},
    {"round", round_, {0}, {0}},
    {"rint", round_, {0}, {0}},
    {"trunc", trunc_, {0}, {0}},
    {"not", not_, {0}, {0}},
    {"sign", sign, {0}, {0}},
    {"sin", sin_, {0}, {0}},
    {"cos", cos_, {0}, {0}},
    {"square", square, {0}, {0}},
    {"identity", same, {0}, {0}},
    {"cast", same, {0}, {0}},
    {"clip", clip, {"min", "max"}, {-(double)INFINITY, (double)INFINITY}},
    {"adds", adds, {"value"}, {0, 0}},
    {"muls", muls, {"value"}, {1, 0}},
    {"maxs", maxs, {"value"}, {-(double)INFINITY, 0}},
    {"mins", mins, {"value"}, {(double)INFINITY, 0}},
};

static const struct {
    const char *name;
    binary f;
} BINARY[] = {
    {"add", add},         {"sub", sub},
    {"mul", mul},         {"div", div_},
    {"max", max_},        {"min", min_},
    {"pow", pow_},        {"and", and_},
    {"or", or_},          {"xor", xor_},
    {"equal", equal},     {"notequal", notequal},
    {"less", less},       {"lessorequal", lessorequal},
    {"greater", greater}, {"greaterorequal", greaterorequal},
    {"prelu", prelu},
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static size_t unary_number(const char *name)
{
    size_t k = 0;
    while (k < COUNT(UNARY) && strcmp(UNARY[k].name, name) != 0) k++;
    return k;
}

static size_t binary_number(const char *name)
{
    size_t k = 0;
    while (k < COUNT(BINARY) && strcmp(BINARY[k].name, name) != 0) k++;
    return k;
}

/* ---- broadcasting ---- */

typedef struct broadcast {
    uint32_t rank;
    int64_t dims[OT_TK_RANK_MAX];
    int64_t stride[3][OT_TK_RANK_MAX]; /* of each input, 0 where it stands still */
} broadcast;

static ot_status pair(const krun_call *c, broadcast *b)
{
    *b = (broadcast){0};
    for (uint32_t k = 0; k < c->n_in; k++)
        b->rank = c->in[k].rank > b->rank ? c->in[k].rank : b->rank;
    for (uint32_t d = 0; d < b->rank; d++) b->dims[d] = 1;
    for (uint32_t k = 0; k < c->n_in; k++) {
        int64_t stride = 1;
        for (uint32_t d = c->in[k].rank; d-- > 0;) {
            int64_t n = c->in[k].dims[d], *all = &b->dims[d + b->rank - c->in[k].rank];
            if (n != 1 && *all != 1 && n != *all)
                return krun_fail(c->m, "broadcast",
                                 "the operands of %s do not fit each other: %lld and %lld elements "
                                 "along an axis",
                                 c->s->name, (long long)*all, (long long)n);
            if (n != 1) *all = n;
            b->stride[k][d + b->rank - c->in[k].rank] = n == 1 ? 0 : stride;
            stride *= n;
        }
    }
    return ot_tk_makes(&c->at, b->dims, b->rank, c->out->x);
}

/* Places of the inputs' elements for element e of the result. */
static void places(const broadcast *b, uint32_t n_in, int64_t e, int64_t at[3])
{
    at[0] = at[1] = at[2] = 0;
    for (uint32_t d = b->rank; d-- > 0;) {
        int64_t i = e % b->dims[d];
        e /= b->dims[d];
        for (uint32_t k = 0; k < n_in; k++) at[k] += i * b->stride[k][d];
    }
}

/* ---- the operations ---- */

static ot_status run_unary(const krun_call *c)
{
    size_t f = unary_number(c->name);
    double p[2];
    for (int k = 0; k < 2; k++) {
        const char *name = UNARY[f].settings[k];
        p[k] = name ? krun_round(c->c == OT_TK_F32 ? OT_TK_F32 : OT_TK_F64,
                                 ot_tk_setting(c->s, name, UNARY[f].defaults[k]))
                    : 0;
    }
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    OT_TRY(ot_tk_makes(&c->at, c->in[0].dims, c->in[0].rank, c->out->x));
    for (int64_t i = 0; i < c->out->n; i++) c->out->v[i] = UNARY[f].f(c->in[0].v[i], p);
    return OT_OK;
}

static ot_status run_binary(const krun_call *c)
{
    size_t f = binary_number(c->name);
    broadcast b;
    int64_t at[3];
    bool integers = c->c != OT_TK_F32 && c->c != OT_TK_F64;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 2, 2));
    OT_TRY(pair(c, &b));
    for (int64_t i = 0; i < c->out->n; i++) {
        places(&b, 2, i, at);
        double x = c->in[0].v[at[0]], y = c->in[1].v[at[1]], z = BINARY[f].f(x, y);
        /* an integer by 0 is 0 */
        c->out->v[i] = integers && (z != z || z - z != 0) ? 0 : integers ? trunc(z) : z;
    }
    return OT_OK;
}

/* where(c, a, b); fma(a, b, c) is a * b + c, the product rounded to the class. */
static ot_status run_ternary(const krun_call *c)
{
    bool chooses = strcmp(c->name, "where") == 0 || strcmp(c->name, "select") == 0;
    broadcast b;
    int64_t at[3];
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 3, 3));
    OT_TRY(pair(c, &b));
    for (int64_t i = 0; i < c->out->n; i++) {
        places(&b, 3, i, at);
        double x = c->in[0].v[at[0]], y = c->in[1].v[at[1]], z = c->in[2].v[at[2]];
        c->out->v[i] = chooses ? (x != 0 ? y : z) : krun_round(c->c, x * y) + z;
    }
    return OT_OK;
}

/* The same elements in another shape. */
static ot_status run_renamed(const krun_call *c)
{
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    if (c->in[0].n != c->out->n)
        return krun_fail(c->m, "shape", "%s keeps its %lld elements, but '%s' has %lld", c->s->name,
                         (long long)c->in[0].n, c->out->x->name, (long long)c->out->n);
    memcpy(c->out->v, c->in[0].v, (size_t)c->out->n * sizeof *c->out->v);
    return OT_OK;
}

krun_op krun_elementwise(const char *name)
{
    static const char *const renamed[] = {"reshape",   "flatten", "squeeze",
                                          "unsqueeze", "dropout", "finalize"};
    static const char *const ternary[] = {"where", "select", "fma", "madd"};
    if (unary_number(name) < COUNT(UNARY)) return run_unary;
    if (binary_number(name) < COUNT(BINARY)) return run_binary;
    for (size_t k = 0; k < COUNT(ternary); k++)
        if (strcmp(ternary[k], name) == 0) return run_ternary;
    for (size_t k = 0; k < COUNT(renamed); k++)
        if (strcmp(renamed[k], name) == 0) return run_renamed;
    return NULL;
}
