/* Element by element: one, two or three operands, broadcast to each other as NumPy does.
 *
 *   const float x = a0[c0 * 8 + c1];
 *   const float y = a1[c1];
 *   out[c0 * 8 + c1] = x + y;
 *
 * In expressions $c is the class that is computed in and $u its unsigned type. Where an integer
 * has no expression of its own, it is computed in double, cut, and wrapped around (32 bits) or
 * saturated (64).
 */
#include "kgen_internal.h"

#include <math.h>

typedef struct operation {
    const char *name;
    uint32_t n_in;
    const char *expr, *integers; /* NULL: expr in double */
    const char *settings[2];     /* p and q of the expression */
    double defaults[2];
} operation;

static const operation OPERATIONS[] = {
    {"abs", 1, "fabs(x)", "x < 0 ? ($c)(0 - ($u)x) : x", {0}, {0}},
    {"neg", 1, "-x", "($c)(0 - ($u)x)", {0}, {0}},
    {"exp", 1, "exp(x)", NULL, {0}, {0}},
    {"log", 1, "log(x)", NULL, {0}, {0}},
    {"ln", 1, "log(x)", NULL, {0}, {0}},
    {"sqrt", 1, "sqrt(x)", NULL, {0}, {0}},
    {"rsqrt", 1, "1 / sqrt(x)", NULL, {0}, {0}},
    {"reciprocal", 1, "1 / x", NULL, {0}, {0}},
    {"relu", 1, "x < 0 ? 0 : x", "x < 0 ? 0 : x", {0}, {0}},
    {"leakyrelu", 1, "x < 0 ? x * p : x", NULL, {"alpha"}, {0.01, 0}},
    {"sigmoid", 1, "1 / (1 + exp(-x))", NULL, {0}, {0}},
    {"tanh", 1, "tanh(x)", NULL, {0}, {0}},
    {"silu", 1, "x / (1 + exp(-x))", NULL, {0}, {0}},
    {"gelu", 1, "x / 2 * (1 + erf(x / sqrt(($f)2)))", NULL, {0}, {0}},
    {"erf", 1, "erf(x)", NULL, {0}, {0}},
    {"floor", 1, "floor(x)", "x", {0}, {0}},
    {"ceil", 1, "ceil(x)", "x", {0}, {0}},
    {"round", 1, "rint(x)", "x", {0}, {0}},
    {"rint", 1, "rint(x)", "x", {0}, {0}},
    {"trunc", 1, "trunc(x)", "x", {0}, {0}},
    {"not", 1, "($c)(x == 0)", "($c)(x == 0)", {0}, {0}},
    {"sign", 1, "($c)((x > 0) - (x < 0))", "($c)((x > 0) - (x < 0))", {0}, {0}},
    {"sin", 1, "sin(x)", NULL, {0}, {0}},
    {"cos", 1, "cos(x)", NULL, {0}, {0}},
    {"square", 1, "x * x", "($c)(($u)x * ($u)x)", {0}, {0}},
    {"identity", 1, "x", "x", {0}, {0}},
    {"cast", 1, "x", "x", {0}, {0}},
    {"clip",
     1,
     "x < p ? p : x > q ? q : x",
     NULL,
     {"min", "max"},
     {-(double)INFINITY, (double)INFINITY}},
    {"adds", 1, "x + p", NULL, {"value"}, {0, 0}},
    {"muls", 1, "x * p", NULL, {"value"}, {1, 0}},
    {"maxs", 1, "x > p || x != x ? x : p", NULL, {"value"}, {-(double)INFINITY, 0}},
    {"mins", 1, "x < p || x != x ? x : p", NULL, {"value"}, {(double)INFINITY, 0}},
    {"add", 2, "x + y", "($c)(($u)x + ($u)y)", {0}, {0}},
    {"sub", 2, "x - y", "($c)(($u)x - ($u)y)", {0}, {0}},
    {"mul", 2, "x * y", "($c)(($u)x * ($u)y)", {0}, {0}},
    {"div", 2, "x / y", NULL, {0}, {0}},
    {"max", 2, "x != x || x > y ? x : y", "x > y ? x : y", {0}, {0}},
    {"min", 2, "x != x || x < y ? x : y", "x < y ? x : y", {0}, {0}},
    {"pow", 2, "pow(x, y)", NULL, {0}, {0}},
    {"and", 2, "($c)(x != 0 && y != 0)", "($c)(x != 0 && y != 0)", {0}, {0}},
    {"or", 2, "($c)(x != 0 || y != 0)", "($c)(x != 0 || y != 0)", {0}, {0}},
    {"xor", 2, "($c)((x != 0) != (y != 0))", "($c)((x != 0) != (y != 0))", {0}, {0}},
    {"equal", 2, "($c)(x == y)", "($c)(x == y)", {0}, {0}},
    {"notequal", 2, "($c)(x != y)", "($c)(x != y)", {0}, {0}},
    {"less", 2, "($c)(x < y)", "($c)(x < y)", {0}, {0}},
    {"lessorequal", 2, "($c)(x <= y)", "($c)(x <= y)", {0}, {0}},
    {"greater", 2, "($c)(x > y)", "($c)(x > y)", {0}, {0}},
    {"greaterorequal", 2, "($c)(x >= y)", "($c)(x >= y)", {0}, {0}},
    {"prelu", 2, "x < 0 ? x * y : x", "x < 0 ? ($c)(($u)x * ($u)y) : x", {0}, {0}},
    {"where", 3, "x != 0 ? y : z", "x != 0 ? y : z", {0}, {0}},
    {"select", 3, "x != 0 ? y : z", "x != 0 ? y : z", {0}, {0}},
    {"fma", 3, "x * y + z", "($c)(($u)x * ($u)y + ($u)z)", {0}, {0}},
    {"madd", 3, "x * y + z", "($c)(($u)x * ($u)y + ($u)z)", {0}, {0}},
};
#define N_OPERATIONS (sizeof OPERATIONS / sizeof *OPERATIONS)

static const operation *find(const char *name)
{
    for (size_t k = 0; k < N_OPERATIONS; k++)
        if (strcmp(OPERATIONS[k].name, name) == 0) return &OPERATIONS[k];
    return NULL;
}

/* The result of an integer operation that was computed in double, and its class. */
static const char *back(kgen *g, ot_tk_class *c, const char *x)
{
    g->uses_f64 = g->uses_wrap = true;
    if (*c == OT_TK_I32) return kgen_text(g, "(int)wrapped(%s)", x);
    if (*c == OT_TK_U32) return kgen_text(g, "wrapped(%s)", x);
    *c = OT_TK_F64;
    return x;
}

static void body(const kgen_call *c, const operation *o, const kgen_nest *n)
{
    kgen *g = c->g;
    static const char *const names[] = {"x", "y", "z"};
    bool is_float = c->c == OT_TK_F32 || c->c == OT_TK_F64;
    ot_tk_class within = is_float || o->integers ? c->c : OT_TK_F64, after = c->c;
    for (uint32_t k = 0; k < c->n_in; k++) {
        const char *at = kgen_index(g, &c->in[k], n->lin[k]), *pointer = kgen_text(g, "a%u", k);
        kgen_line(g, "const %s %s = %s;", kgen_class_name(within), names[k],
                  kgen_get(g, c->in[k].dtype, within, pointer, at));
    }
    const char *expr = kgen_expand(g, is_float || !o->integers ? o->expr : o->integers, within);
    if (within != c->c)
        expr = back(g, &after,
                    o->n_in > 1 && c->c == OT_TK_I64 ? kgen_text(g, "finite_or_0(%s)", expr)
                                                     : expr);
    const char *at = kgen_index(g, c->out, n->lin[c->n_in]);
    kgen_line(g, "%s", kgen_put(g, c->out->dtype, after, "out", at, expr));
}

static void settings(const kgen_call *c, const operation *o)
{
    ot_tk_class within = c->c == OT_TK_F32 ? OT_TK_F32 : OT_TK_F64;
    for (int k = 0; k < 2 && o->settings[k]; k++)
        kgen_line(c->g, "const %s %s = %s;", kgen_class_name(within), k ? "q" : "p",
                  kgen_number(c->g, within, ot_tk_setting(c->s, o->settings[k], o->defaults[k])));
}

static ot_status shape(const kgen_call *c, int64_t *dims, uint32_t *rank)
{
    *rank = 0;
    for (uint32_t k = 0; k < c->n_in; k++) *rank = c->in[k].rank > *rank ? c->in[k].rank : *rank;
    for (uint32_t d = 0; d < *rank; d++) dims[d] = 1;
    for (uint32_t k = 0; k < c->n_in; k++)
        for (uint32_t d = 0; d < c->in[k].rank; d++) {
            int64_t n = c->in[k].dims[d], *all = &dims[d + *rank - c->in[k].rank];
            if (n != 1 && *all != 1 && n != *all)
                return kgen_fail(c->g, "broadcast",
                                 "the operands of %s do not fit each other: %lld and %lld elements "
                                 "along an axis",
                                 c->s->name, (long long)*all, (long long)n);
            if (n != 1) *all = n;
        }
    return ot_tk_makes(&c->at, dims, *rank, kgen_value(c->g, c->out->value));
}

static ot_status run(const kgen_call *c)
{
    const operation *o = find(c->name);
    int64_t dims[OT_TK_RANK_MAX];
    uint32_t rank;
    kgen_nest n;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, o->n_in, o->n_in));
    OT_TRY(shape(c, dims, &rank));
    kgen_nest_init(&n, dims, rank);
    for (uint32_t k = 0; k < c->n_in; k++) kgen_nest_broadcast(&n, &c->in[k]);
    kgen_nest_same(&n, c->out);
    kgen_nest_fold(&n);
    OT_TRY(kgen_begin(c, kgen_nest_share(c->g, &n)));
    settings(c, o);
    kgen_nest_open(c->g, &n);
    body(c, o, &n);
    kgen_nest_close(c->g, &n);
    kgen_close(c->g);
    return OT_OK;
}

/* The same elements in another shape. */
static ot_status rename_elements(const kgen_call *c)
{
    int64_t total, one = 1;
    kgen_nest n;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    total = kgen_elements(c->out);
    if (kgen_elements(&c->in[0]) != total)
        return kgen_fail(c->g, "shape", "%s keeps its %lld elements, but '%s' has %lld", c->s->name,
                         (long long)kgen_elements(&c->in[0]), kgen_value(c->g, c->out->value)->name,
                         (long long)total);
    OT_TRY(kgen_number_elements(c->g, &c->in[0]));
    OT_TRY(kgen_number_elements(c->g, c->out));
    kgen_nest_init(&n, &total, 1);
    kgen_nest_strides(&n, &c->in[0], &one);
    kgen_nest_strides(&n, c->out, &one);
    OT_TRY(kgen_begin(c, kgen_nest_share(c->g, &n)));
    kgen_nest_open(c->g, &n);
    kgen_out(c, n.lin[1], kgen_in(c, 0, n.lin[0]));
    kgen_nest_close(c->g, &n);
    kgen_close(c->g);
    return OT_OK;
}

kgen_op kgen_elementwise(const char *name)
{
    static const char *const renamed[] = {"reshape",   "flatten", "squeeze",
                                          "unsqueeze", "dropout", "finalize"};
    for (size_t k = 0; k < sizeof renamed / sizeof *renamed; k++)
        if (strcmp(renamed[k], name) == 0) return rename_elements;
    return find(name) ? run : NULL;
}
