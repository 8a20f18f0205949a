/* Element-wise nodes: a line of text for each.
 *
 *   const float t0 = b0[o0 + i];
 *   const float t1 = 1 / (1 + exp(-t0));
 *   const float t2 = t0 * t1;
 *
 * In expressions $x, $y, $z are operands and $a, $b attributes. Floats are computed in float32
 * (float64 in its own), integers in 32 or 64 bits as C does, wrapping through unsigned where a
 * sum may overflow. Where NaN is to pass a comparison, is_nan says so (dg_prelude.c).
 */
#include "dg_internal.h"

typedef struct operation {
    ot_op op;
    uint8_t n_in;
    const char *floats, *integers; /* NULL: there is none */
    const char *attr[2];
    float defaults[2];
} operation;

#define UNARY(name, floats, integers)                    \
    {                                                    \
        OT_OP_##name, 1, floats, integers, {NULL}, { 0 } \
    }
#define BINARY(name, floats, integers)                   \
    {                                                    \
        OT_OP_##name, 2, floats, integers, {NULL}, { 0 } \
    }

static const operation OPERATIONS[] = {
    UNARY(Abs, "fabs($x)", "$x < 0 ? -$x : $x"),
    UNARY(Neg, "-$x", "to_$t(0 - to_$u($x))"),
    UNARY(Sign, "is_nan($x) ? $x : $x > 0 ? 1 : $x < 0 ? -1 : $x", "to_$t($x > 0) - to_$t($x < 0)"),
    UNARY(Floor, "floor($x)", NULL),
    UNARY(Ceil, "ceil($x)", NULL),
    UNARY(Round, "rint($x)", NULL),
    UNARY(Sqrt, "sqrt($x)", NULL),
    UNARY(Reciprocal, "1 / $x", NULL),
    UNARY(Exp, "exp($x)", NULL),
    UNARY(Log, "log($x)", NULL),
    UNARY(Erf, "erf($x)", NULL),
    UNARY(Sin, "sin($x)", NULL),
    UNARY(Cos, "cos($x)", NULL),
    UNARY(Tan, "tan($x)", NULL),
    UNARY(Asin, "asin($x)", NULL),
    UNARY(Acos, "acos($x)", NULL),
    UNARY(Atan, "atan($x)", NULL),
    UNARY(Sinh, "sinh($x)", NULL),
    UNARY(Cosh, "cosh($x)", NULL),
    UNARY(Tanh, "tanh($x)", NULL),
    UNARY(Asinh, "asinh($x)", NULL),
    UNARY(Acosh, "acosh($x)", NULL),
    UNARY(Atanh, "atanh($x)", NULL),
    UNARY(Relu, "$x < 0 && !is_nan($x) ? 0 : $x", "$x < 0 ? 0 : $x"),
    UNARY(Sigmoid, "1 / (1 + exp(-$x))", NULL),
    UNARY(HardSwish, "$x * clamp($x / 6 + 0.5f, 0.0f, 1.0f)", NULL),
    UNARY(Softplus, "log1p(exp(-fabs($x))) + ($x > 0 ? $x : 0)", NULL),
    UNARY(Softsign, "isinf($x) ? ($x > 0 ? 1 : -1) : $x / (1 + fabs($x))", NULL),
    UNARY(Mish, "$x * tanh(log1p(exp(-fabs($x))) + ($x > 0 ? $x : 0))", NULL),
    UNARY(IsNaN, "to_int(is_nan($x))", NULL),
    UNARY(Not, NULL, "to_int($x == 0)"),
    UNARY(BitwiseNot, NULL, "~$x"),
    UNARY(Identity, "$x", "$x"),
    UNARY(Dropout, "$x", NULL),
    UNARY(Cast, "$x", "$x"),
    UNARY(CastLike, "$x", "$x"),
    {OT_OP_LeakyRelu, 1, "$x < 0 ? $x * $a : $x", NULL, {"alpha"}, {0.01f, 0}},
    {OT_OP_ThresholdedRelu, 1, "$x > $a ? $x : 0", NULL, {"alpha"}, {1, 0}},
    {OT_OP_HardSigmoid,
     1,
     "is_nan($x) ? $x : clamp($x * $a + $b, 0.0f, 1.0f)",
     NULL,
     {"alpha", "beta"},
     {0.2f, 0.5f}},
    {OT_OP_Elu, 1, "$x < 0 ? $a * expm1($x) : $x", NULL, {"alpha"}, {1, 0}},
    {OT_OP_Celu, 1, "$x > 0 ? $x : $a * expm1($x / $a)", NULL, {"alpha"}, {1, 0}},
    {OT_OP_Selu,
     1,
     "$b * ($x > 0 ? $x : $a * expm1($x))",
     NULL,
     {"alpha", "gamma"},
     {1.67326319217681884765625f, 1.05070102214813232421875f}},
    {OT_OP_Swish, 1, "$x / (1 + exp(-$a * $x))", NULL, {"alpha"}, {1, 0}},
    {OT_OP_Shrink,
     1,
     "$x < -$a ? $x + $b : $x > $a ? $x - $b : 0",
     NULL,
     {"lambd", "bias"},
     {0.5f, 0}},
    {OT_OP_Affine, 1, "$x * $a + $b", NULL, {"alpha", "beta"}, {1, 0}},
    {OT_OP_Gelu, 1, "0.5f * $x * (1 + erf($x * 0.70710678118654752f))", NULL, {NULL}, {0}},
    BINARY(Add, "$x + $y", "to_$t(to_$u($x) + to_$u($y))"),
    BINARY(Sub, "$x - $y", "to_$t(to_$u($x) - to_$u($y))"),
    BINARY(Mul, "$x * $y", "to_$t(to_$u($x) * to_$u($y))"),
    BINARY(Div, "$x / $y", "$y == 0 ? 0 : $y == -1 ? to_$t(0 - to_$u($x)) : $x / $y"),
    BINARY(Pow, "power($x, to_$t($y))", NULL),
    BINARY(PRelu, "$x < 0 ? $x * $y : $x", NULL),
    BINARY(And, NULL, "to_int($x != 0 && $y != 0)"),
    BINARY(Or, NULL, "to_int($x != 0 || $y != 0)"),
    BINARY(Xor, NULL, "to_int(($x != 0) != ($y != 0))"),
    BINARY(BitwiseAnd, NULL, "$x & $y"),
    BINARY(BitwiseOr, NULL, "$x | $y"),
    BINARY(BitwiseXor, NULL, "$x ^ $y"),
    BINARY(Equal, "to_int($x == $y)", "to_int($x == $y)"),
    BINARY(Less, "to_int($x < $y)", "to_int($x < $y)"),
    BINARY(LessOrEqual, "to_int($x <= $y)", "to_int($x <= $y)"),
    BINARY(Greater, "to_int($x > $y)", "to_int($x > $y)"),
    BINARY(GreaterOrEqual, "to_int($x >= $y)", "to_int($x >= $y)"),
    /* n-ary: the first operand with the second, the result with the third, and so on */
    BINARY(Max, "!is_nan($y) && ($x > $y || is_nan($x)) ? $x : $y", "$x > $y ? $x : $y"),
    BINARY(Min, "!is_nan($y) && ($x < $y || is_nan($x)) ? $x : $y", "$x < $y ? $x : $y"),
    BINARY(Sum, "$x + $y", NULL),
    BINARY(Mean, "$x + $y", NULL),
    /* with code of their own */
    {OT_OP_Mod, 2, "fmod($x, $y)", "", {NULL}, {0}},
    {OT_OP_Where, 3, "", "", {NULL}, {0}},
    {OT_OP_Clip, 3, "", "", {NULL}, {0}},
    {OT_OP_BatchNormalization, 5, "", NULL, {NULL}, {0}},
};

static const operation *operation_of(ot_op op)
{
    for (size_t k = 0; k < sizeof OPERATIONS / sizeof *OPERATIONS; k++)
        if (OPERATIONS[k].op == op) return &OPERATIONS[k];
    return NULL;
}

/* The operand whose type an expression computes in. */
static ot_id typed_operand(const ot_node *n) { return dg_in(n, n->op == OT_OP_Where ? 1 : 0); }

bool ot_dg_is_element(const ot_node *n, const ot_nd *arrays)
{
    const operation *o = operation_of(n->op);
    dg_type in, out;
    if (!o || n->n_out < 1 || n->out[0] == OT_NONE || typed_operand(n) == OT_NONE) return false;
    const ot_nd *x = &arrays[typed_operand(n)];
    if (!dg_type_of(x->dtype, &in) || !dg_type_of(arrays[n->out[0]].dtype, &out)) return false;
    if (!(in.is_float ? o->floats : o->integers)) return false;
    if (n->op == OT_OP_BatchNormalization)
        return ot_attr_int(n, "training_mode", 0) == 0 && x->rank >= 2 && n->n_in == 5;
    if (n->op == OT_OP_Dropout) return dg_in(n, 2) == OT_NONE;
    if (n->op == OT_OP_Gelu)
        return strcmp(ot_attr_str(n, "approximate", "none"), "none") == 0 || in.bits == 32;
    if (n->op == OT_OP_Mod) return !in.is_float || ot_attr_int(n, "fmod", 0) != 0;
    return true;
}

/* ---- operands ---- */

static const char *literal(dg_build *b, double v, const dg_type *t)
{
    return dg_float(b, v, t->bits == 64);
}

/* The contents of a constant of one element. */
static const char *scalar(dg_build *b, const ot_nd *x)
{
    dg_type t;
    int64_t n;
    if (!x->data || !ot_nd_elems(x, &n) || n != 1 || !dg_type_of(x->dtype, &t)) return NULL;
    if (t.is_float) return literal(b, ot_nd_double(x, 0), &t);
    return t.is_unsigned ? NULL : dg_int(b, &t, ot_nd_int(x, 0));
}

/* Aligned at the last axis; an axis of extent 1 is repeated. */
static const char *broadcast_index(dg_build *b, const dg_element *e, uint32_t arg)
{
    const char *coords[OT_RANK_MAX];
    const ot_nd *x = &b->arrays[arg];
    bool whole = x->rank == e->rank && !memcmp(x->dims, e->dims, e->rank * sizeof *e->dims);
    if (e->linear && whole) return e->linear;
    if (!e->coords) {
        (void)dg_refuse(b, "operands of several shapes");
        return "0";
    }
    if (!dg_broadcasts(x, e->rank, e->dims)) {
        (void)dg_refuse(b, DG_CONTRADICT);
        return "0";
    }
    for (uint32_t k = 0; k < x->rank; k++)
        coords[k] = x->dims[k] == 1 ? "0" : e->coords[e->rank - x->rank + k];
    return dg_index(b, arg, coords);
}

void dg_element_var(dg_build *b, dg_element *e, ot_id v, const char *name)
{
    if (e->n_vars == DG_VARS_MAX) {
        (void)dg_refuse(b, "too many nodes");
        return;
    }
    e->vars[e->n_vars] = v;
    e->names[e->n_vars++] = name;
}

static const char *new_var(dg_build *b, dg_element *e, ot_id v)
{
    const char *name = dg_fmt(b, "t%u", e->n_vars);
    dg_element_var(b, e, v, name);
    return name;
}

static const char *find_var(const dg_element *e, ot_id v)
{
    for (uint32_t k = e->n_vars; k-- > 0;)
        if (e->vars[k] == v) return e->names[k];
    return NULL;
}

const char *dg_element_value(dg_build *b, dg_element *e, ot_id v)
{
    const char *name = find_var(e, v), *known = name ? NULL : scalar(b, dg_nd(b, v));
    dg_type t;
    if (name || known) return name ? name : known;
    if (!dg_type_of(dg_nd(b, v)->dtype, &t)) {
        (void)dg_refuse(b, "a type that devices do not have");
        return "0";
    }
    uint32_t arg = dg_arg(b, v, NULL, false);
    const char *load = dg_load(b, arg, broadcast_index(b, e, arg));
    name = new_var(b, e, v);
    dg_line(b, "const %s %s = %s;", t.computed, name, load);
    return name;
}

/* One number for each channel: of BatchNormalization. */
static const char *channel_value(dg_build *b, const dg_element *e, ot_id v)
{
    uint32_t arg = dg_arg(b, v, NULL, false);
    const ot_nd *x = &b->arrays[arg];
    if (x->rank != 1 || e->rank < 2 || x->dims[0] != e->dims[1]) (void)dg_refuse(b, DG_CONTRADICT);
    if (e->coords && !b->why)
        return dg_load(b, arg, dg_index(b, arg, (const char *const[]){e->coords[1]}));
    (void)dg_refuse(b, "operands of several shapes");
    return "0";
}

/* ---- expressions ---- */

/* The template with its operands; in double, constants have another suffix. */
static const char *expand(dg_build *b, const char *form, const dg_type *t, const char *const x[3],
                          const char *const attr[2])
{
    const char *out = "";
    const char *u = t->bits == 64 ? "ulong" : "uint";
    for (const char *c = form; *c; c++) {
        bool suffix = *c == 'f' && t->bits == 64 && c > form && c[-1] >= '0' && c[-1] <= '9';
        if (suffix) {
            out = dg_fmt(b, "%s%s", out, dg_double_suffix(b));
            continue;
        }
        if (*c != '$') {
            const char *end = c + 1;
            while (*end && *end != '$' && *end != 'f') end++;
            out = dg_fmt(b, "%s%.*s", out, (int)(end - c), c);
            c = end - 1;
            continue;
        }
        c++;
        const char *what = *c == 'x'   ? x[0]
                           : *c == 'y' ? x[1]
                           : *c == 'z' ? x[2]
                           : *c == 'a' ? attr[0]
                           : *c == 'b' ? attr[1]
                           : *c == 'u' ? u
                                       : t->computed;
        out = dg_fmt(b, "%s%s", out, what);
    }
    return out;
}

static const char *power(dg_build *b, const ot_nd *y, const char *const x[3], const char *plain)
{
    double p = y->data && (y->dtype == OT_F32 || y->dtype == OT_F64) ? ot_nd_double(y, 0) : 0;
    int64_t n;
    if (!ot_nd_elems(y, &n) || n != 1) return plain;
    if (p == 2) return dg_fmt(b, "%s * %s", x[0], x[0]);
    if (p == 3) return dg_fmt(b, "%s * %s * %s", x[0], x[0], x[0]);
    return p == 0.5 ? dg_fmt(b, "sqrt(%s)", x[0]) : plain;
}

static const char *limits(dg_build *b, dg_element *e, const ot_node *n, const dg_type *t,
                          const char *x)
{
    const char *lo = NULL, *hi = NULL;
    if (n->version >= 11) {
        if (dg_in(n, 1) != OT_NONE) lo = dg_element_value(b, e, n->in[1]);
        if (dg_in(n, 2) != OT_NONE) hi = dg_element_value(b, e, n->in[2]);
    } else {
        if (ot_attr_find(n, "min")) lo = literal(b, (double)ot_attr_float(n, "min", 0), t);
        if (ot_attr_find(n, "max")) hi = literal(b, (double)ot_attr_float(n, "max", 0), t);
    }
    if (lo) x = dg_fmt(b, "(%s < %s && !is_nan(%s) ? %s : %s)", x, lo, x, lo, x);
    if (!hi) return x;
    dg_line(b, "const %s low%u = %s;", t->computed, e->n_vars, x);
    return dg_fmt(b, "low%u > %s && !is_nan(low%u) ? %s : low%u", e->n_vars, hi, e->n_vars, hi,
                  e->n_vars);
}

static const char *batch_norm(dg_build *b, const dg_element *e, const ot_node *n, const dg_type *t,
                              const char *x)
{
    const char *scale = channel_value(b, e, n->in[1]), *shift = channel_value(b, e, n->in[2]);
    const char *mean = channel_value(b, e, n->in[3]), *var = channel_value(b, e, n->in[4]);
    return dg_fmt(b, "(%s - %s) * (%s / sqrt(%s + %s)) + %s", x, mean, scale, var,
                  literal(b, (double)ot_attr_float(n, "epsilon", 1e-5f), t), shift);
}

static const char *expression(dg_build *b, dg_element *e, const ot_node *n, const operation *o,
                              const dg_type *t)
{
    const char *x[3] = {"0", "0", "0"}, *attr[2] = {"0", "0"};
    for (uint32_t k = 0; k < o->n_in && k < 3 && k < n->n_in && n->op != OT_OP_Clip &&
                         n->op != OT_OP_BatchNormalization;
         k++)
        if (n->in[k] != OT_NONE) x[k] = dg_element_value(b, e, n->in[k]);
    for (uint32_t k = 0; k < 2; k++)
        if (o->attr[k])
            attr[k] = literal(b, (double)ot_attr_float(n, o->attr[k], o->defaults[k]), t);
    switch ((int)n->op) {
    case OT_OP_Clip: return limits(b, e, n, t, dg_element_value(b, e, n->in[0]));
    case OT_OP_BatchNormalization: return batch_norm(b, e, n, t, dg_element_value(b, e, n->in[0]));
    case OT_OP_Where: return dg_fmt(b, "%s != 0 ? %s : %s", x[0], x[1], x[2]);
    case OT_OP_Mod:
        if (t->is_float) return dg_fmt(b, "fmod(%s, %s)", x[0], x[1]);
        if (ot_attr_int(n, "fmod", 0))
            return dg_fmt(b, "%s == 0 ? 0 : rem(%s, %s)", x[1], x[0], x[1]);
        return dg_fmt(
            b,
            "%s == 0 ? 0 : (rem(%s, %s) + ((rem(%s, %s) != 0 && ((%s < 0) != (%s < 0))) ? %s : 0))",
            x[1], x[0], x[1], x[0], x[1], x[0], x[1], x[1]);
    case OT_OP_Pow: return power(b, dg_nd(b, n->in[1]), x, expand(b, o->floats, t, x, attr));
    case OT_OP_Gelu:
        if (strcmp(ot_attr_str(n, "approximate", "none"), "tanh") == 0)
            return dg_fmt(b,
                          "0.5f * %s * (1 + tanh(0.7978845608f * (%s + 0.044715f * %s * %s * %s)))",
                          x[0], x[0], x[0], x[0], x[0]);
        break;
    default: break;
    }
    const char *text = n->n_in == 1 && o->n_in == 2
                           ? x[0]
                           : expand(b, t->is_float ? o->floats : o->integers, t, x, attr);
    for (uint32_t k = 2; k < n->n_in && o->n_in == 2; k++) {
        const char *so_far = dg_fmt(b, "m%u_%u", e->n_vars, k);
        dg_line(b, "const %s %s = %s;", t->computed, so_far, text);
        text = expand(b, t->is_float ? o->floats : o->integers, t,
                      (const char *const[]){so_far, dg_element_value(b, e, n->in[k]), "0"}, attr);
    }
    return n->op == OT_OP_Mean ? dg_fmt(b, "(%s) / %u", text, n->n_in) : text;
}

/* Of a Cast: what the number of one type is in the other. */
static const char *converted(dg_build *b, const dg_type *from, const dg_type *to, ot_dtype type,
                             const char *text)
{
    if (type == OT_BOOL) return dg_fmt(b, "to_int((%s) != 0)", text);
    if (from->is_float && !to->is_float && b->target->has_i64)
        text = dg_fmt(b, "to_long(%s)", text);
    /* narrow integers wrap around at once, as they would where they are stored */
    switch ((int)type) {
    case OT_I8: return dg_fmt(b, "wrap_char(%s)", text);
    case OT_U8: return dg_fmt(b, "wrap_uchar(%s)", text);
    case OT_I16: return dg_fmt(b, "wrap_short(%s)", text);
    case OT_U16: return dg_fmt(b, "wrap_ushort(%s)", text);
    default: return dg_fmt(b, "to_%s(%s)", to->computed, text);
    }
}

bool dg_element_node(dg_build *b, dg_element *e, const ot_node *n)
{
    dg_type from, to;
    const operation *o = operation_of(n->op);
    const ot_nd *y = dg_nd(b, n->out[0]);
    if (!o || !ot_dg_is_element(n, b->g->arrays))
        return dg_refuse(b, "an operator that is not element by element");
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE && n->op != OT_OP_BatchNormalization && n->op != OT_OP_Dropout)
            return dg_refuse(b, "more than one output");
    (void)dg_type_of(dg_nd(b, typed_operand(n))->dtype, &from);
    (void)dg_type_of(y->dtype, &to);
    const char *text = expression(b, e, n, o, &from);
    if (from.bits == 64 && from.is_float && dg_lacks_in_double(b, text))
        return dg_refuse(b, DG_FLOAT_ALONE);
    bool mask = y->dtype == OT_BOOL || strcmp(from.computed, to.computed) != 0 ||
                to.is_float == false;
    if (mask) text = converted(b, &from, &to, y->dtype, text);
    if (b->why) return false;
    const char *name = new_var(b, e, n->out[0]);
    dg_line(b, "const %s %s = %s;", to.computed, name, text);
    return !b->why;
}

bool dg_element_rest(dg_build *b, dg_element *e, uint32_t first)
{
    for (uint32_t k = first; k < b->g->n_nodes; k++)
        if (!dg_element_node(b, e, b->g->nodes[k])) return false;
    for (uint32_t k = 0; k < b->g->n_stores; k++) {
        ot_id v = b->g->stores[k];
        const char *name = find_var(e, v);
        if (!name) return dg_refuse(b, "a result that is not computed");
        uint32_t arg = dg_arg(b, v, NULL, true);
        dg_store(b, arg, broadcast_index(b, e, arg), name);
    }
    return !b->why;
}

/* ---- groups without a head ---- */

/* Do they lie in the same order, without holes? */
static bool lie_alike(const ot_nd *x, const ot_nd *y)
{
    return dg_same_dims(x, y) && x->chan_block == y->chan_block && dg_is_whole(x) && dg_is_whole(y);
}

/* Does a node of the group make v, which nobody stores? */
static bool in_registers(const dg_build *b, ot_id v)
{
    for (uint32_t k = 0; k < b->g->n_stores; k++)
        if (b->g->stores[k] == v) return false;
    for (uint32_t k = 0; k < b->g->n_nodes; k++)
        if (b->g->nodes[k]->out[0] == v) return true;
    return false;
}

/* All operands and results that are not one number lie as the result does: one index serves all. */
static bool is_linear(const dg_build *b, const ot_nd *y)
{
    for (uint32_t k = 0; k < b->g->n_nodes; k++) {
        const ot_node *n = b->g->nodes[k];
        if (n->op == OT_OP_BatchNormalization) return false;
        for (uint32_t j = 0; j < n->n_in + 1; j++) {
            ot_id v = j < n->n_in ? n->in[j] : n->out[0];
            const ot_nd *x = v == OT_NONE ? NULL : dg_nd(b, v);
            int64_t elems;
            if (!x || (x->data && ot_nd_elems(x, &elems) && elems == 1)) continue;
            if (in_registers(b, v) ? !dg_same_dims(x, y) : !lie_alike(x, y)) return false;
        }
    }
    return true;
}

bool dg_chain(dg_build *b)
{
    const ot_nd *y = dg_nd(b, b->g->stores[0]);
    const char *coords[OT_RANK_MAX];
    int64_t items;
    dg_element e = {.rank = y->rank, .dims = y->dims};
    if (!ot_nd_elems(y, &items) || items == 0) return dg_refuse(b, "an empty result");
    dg_begin(b, items);
    if (is_linear(b, y)) {
        e.linear = "i";
    } else {
        dg_split_as(b, "c", y, coords);
        e.coords = coords;
    }
    if (!dg_element_rest(b, &e, 0)) return false;
    dg_end(b, items, 64, (double)items * b->g->n_nodes);
    return !b->why;
}
