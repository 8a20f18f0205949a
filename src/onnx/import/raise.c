/* Models older than opset 11, read as newer ones that mean the same.
 *
 * Before opset 7 broadcasting was an attribute, some operators had a mode for training, and all
 * carried `consumed_inputs`, a hint that nobody reads. Most nodes of such models are written the
 * same way in later opsets, or are once an attribute that says nothing more is left out:
 *
 *   opset 6   BatchNormalization(x, s, b, m, v) {is_test=1, epsilon=1e-5}   Add(a, b) {broadcast=1}
 *   opset 13  BatchNormalization(x, s, b, m, v) {epsilon=1e-5}              Add(a, b)
 *
 * From opset 7 on the operators are known, but there are no sequences before opset 11, and no
 * loop that hands them on before opset 13. Such a model is raised only where it gets there.
 *
 * The table says for each operator in which opsets that holds, and under which conditions. The
 * model is read as the newest opset that all of its nodes allow (13 at most: sequences of tiles
 * need that). One node that the table does not cover, a subgraph or a local function leave the
 * model as it is, and its operators unknown.
 *
 * ImageScaler, Affine, Crop, Upsample and the old Clip, Pad, Resize and Slice have no form in newer
 * opsets that is written the same way: other nodes stand in their place (replace.c), and the model
 * is raised to IR 4 besides.
 *
 * The file's own nodes stay what they are until something else of the model changes: an
 * untouched model is written back byte for byte, with its old opset.
 *
 * Sources: the standard's version history of each operator.
 */
#include "import.h"

#define FIRST_READ 7  /* oldest opset whose operators the rest of the program knows */
#define SEQUENCES  11 /* oldest opset that has them: nothing newer is raised */
#define NEWEST     13 /* sequences of tiles need it; nothing gains from more */

/* Attributes that say nothing in the new opset, given the conditions. */
enum { CONSUMED = 1, TEST = 2, BROADCAST = 4, SPATIAL = 8, RATIO = 16 };
/* Conditions. */
enum {
    TESTED = 1,    /* before opset 7: is_test is 1, trained models only */
    SUFFIX = 2,    /* broadcasts nothing, or aligned at the last axis, as later opsets do */
    NORMAL = 4,    /* spatial is 1 or absent */
    WITH_AXIS = 8, /* before opset 4 the axis had a default */
    UNPADDED = 16, /* before opset 7 it was not said whether an average counts its padding */
    ONE_OUT = 32,  /* the other outputs changed */
    DEFAULTS = 64, /* alpha and gamma are given: before opset 6 their defaults were rounded */
    /* newer opsets have it no more, or otherwise: other nodes are written in its place
     * (replace.c) */
    REPLACED = 128,
    SINCE_AS_NOW = 256, /* opsets after `until` write it as all newer ones do */
    EXTENT_STEPS = 8    /* of nodes between a Shape and what is sliced of it */
};

typedef struct rule {
    const char *op;
    int32_t since, until; /* opsets in which the node means the same; since: the older file's */
    unsigned drop, check;
} rule;

/* by name, as strcmp orders them */
static const rule RULES[] = {
    {"Abs", 1, NEWEST, CONSUMED, 0},
    {"Add", 1, NEWEST, CONSUMED | BROADCAST, SUFFIX},
    /* this, Crop and ImageScaler: what ONNX Runtime still has of them */
    {"Affine", 1, 9, 0, REPLACED},
    {"And", 1, NEWEST, BROADCAST, SUFFIX},
    {"ArgMax", 1, NEWEST, 0, 0},
    {"ArgMin", 1, NEWEST, 0, 0},
    {"AveragePool", 1, NEWEST, 0, UNPADDED},
    {"BatchNormalization", 1, NEWEST, CONSUMED | TEST | SPATIAL, TESTED | NORMAL | ONE_OUT},
    {"Cast", 6, NEWEST, 0, 0},
    {"Ceil", 1, NEWEST, CONSUMED, 0},
    {"Clip", 1, 10, CONSUMED, REPLACED},
    {"Concat", 1, NEWEST, 0, WITH_AXIS},
    {"Constant", 1, NEWEST, 0, 0},
    {"ConstantOfShape", 9, NEWEST, 0, 0},
    {"Conv", 1, NEWEST, 0, 0},
    {"ConvInteger", 10, NEWEST, 0, 0},
    {"ConvTranspose", 1, NEWEST, 0, 0},
    {"Cos", 7, NEWEST, 0, 0},
    {"Crop", 1, 9, 0, REPLACED},
    {"DepthToSpace", 1, NEWEST, 0, 0},
    {"DequantizeLinear", 10, NEWEST, 0, 0},
    {"Div", 1, NEWEST, CONSUMED | BROADCAST, SUFFIX},
    {"Dropout", 1, NEWEST, CONSUMED | TEST | RATIO, TESTED | ONE_OUT},
    {"Elu", 1, NEWEST, CONSUMED, 0},
    {"Equal", 7, NEWEST, 0, 0},
    {"Erf", 9, NEWEST, 0, 0},
    {"Exp", 1, NEWEST, CONSUMED, 0},
    {"Expand", 8, NEWEST, 0, 0},
    {"Flatten", 1, NEWEST, 0, 0},
    {"Floor", 1, NEWEST, CONSUMED, 0},
    {"GRU", 7, NEWEST, 0, 0},
    {"Gather", 1, NEWEST, 0, 0},
    {"Gemm", 1, NEWEST, BROADCAST, SUFFIX},
    {"GlobalAveragePool", 1, NEWEST, 0, 0},
    {"GlobalMaxPool", 1, NEWEST, 0, 0},
    {"Greater", 7, NEWEST, 0, 0},
    {"HardSigmoid", 1, NEWEST, CONSUMED, 0},
    {"Identity", 1, NEWEST, 0, 0},
    {"ImageScaler", 1, 9, 0, REPLACED},
    {"InstanceNormalization", 1, NEWEST, CONSUMED, 0},
    {"IsNaN", 9, NEWEST, 0, 0},
    {"LRN", 1, NEWEST, 0, 0},
    {"LSTM", 7, NEWEST, 0, 0},
    {"LeakyRelu", 1, NEWEST, CONSUMED, 0},
    {"Less", 7, NEWEST, 0, 0},
    {"Log", 1, NEWEST, CONSUMED, 0},
    {"LogSoftmax", 1, 12, 0, 0},
    {"LpNormalization", 1, NEWEST, 0, 0},
    {"MatMul", 1, NEWEST, 0, 0},
    {"MatMulInteger", 10, NEWEST, 0, 0},
    {"Max", 1, NEWEST, CONSUMED, 0},
    {"MaxPool", 1, NEWEST, 0, ONE_OUT},
    {"Mean", 1, NEWEST, CONSUMED, 0},
    {"MeanVarianceNormalization", 9, NEWEST, 0, 0},
    {"Min", 1, NEWEST, CONSUMED, 0},
    {"Mod", 10, NEWEST, 0, 0},
    {"Mul", 1, NEWEST, CONSUMED | BROADCAST, SUFFIX},
    {"Neg", 1, NEWEST, CONSUMED, 0},
    {"NonMaxSuppression", 10, NEWEST, 0, 0},
    {"NonZero", 9, NEWEST, 0, 0},
    {"Not", 1, NEWEST, 0, 0},
    {"Or", 1, NEWEST, BROADCAST, SUFFIX},
    {"PRelu", 7, NEWEST, 0, 0},
    {"Pad", 2, 10, 0, REPLACED},
    {"Pow", 1, NEWEST, BROADCAST, SUFFIX},
    {"QLinearConv", 10, NEWEST, 0, 0},
    {"QLinearMatMul", 10, NEWEST, 0, 0},
    {"QuantizeLinear", 10, NEWEST, 0, 0},
    {"Reciprocal", 1, NEWEST, CONSUMED, 0},
    {"ReduceL1", 1, NEWEST, 0, 0},
    {"ReduceL2", 1, NEWEST, 0, 0},
    {"ReduceMax", 1, NEWEST, 0, 0},
    {"ReduceMean", 1, NEWEST, 0, 0},
    {"ReduceMin", 1, NEWEST, 0, 0},
    {"ReduceProd", 1, NEWEST, 0, 0},
    {"ReduceSum", 1, 12, 0, 0},
    {"ReduceSumSquare", 1, NEWEST, 0, 0},
    {"Relu", 1, NEWEST, CONSUMED, 0},
    {"Reshape", 5, NEWEST, 0, 0},
    {"Resize", 10, 10, 0, REPLACED},
    {"ReverseSequence", 10, NEWEST, 0, 0},
    {"RoiAlign", 10, NEWEST, 0, 0},
    {"Selu", 1, NEWEST, CONSUMED, DEFAULTS},
    {"Shape", 1, NEWEST, 0, 0},
    {"Sigmoid", 1, NEWEST, CONSUMED, 0},
    {"Sign", 9, NEWEST, 0, 0},
    {"Sin", 7, NEWEST, 0, 0},
    {"Size", 1, NEWEST, 0, 0},
    {"Slice", 1, 9, 0, REPLACED | SINCE_AS_NOW},
    {"Softmax", 1, 12, 0, 0},
    {"Softplus", 1, NEWEST, 0, 0},
    {"Softsign", 1, NEWEST, 0, 0},
    {"SpaceToDepth", 1, NEWEST, 0, 0},
    {"Split", 2, 12, 0, 0},
    {"Sqrt", 1, NEWEST, CONSUMED, 0},
    {"Squeeze", 1, 12, 0, 0},
    {"Sub", 1, NEWEST, CONSUMED | BROADCAST, SUFFIX},
    {"Sum", 1, NEWEST, CONSUMED, 0},
    {"Tanh", 1, NEWEST, CONSUMED, 0},
    {"ThresholdedRelu", 10, NEWEST, 0, 0},
    {"Tile", 6, NEWEST, 0, 0},
    {"TopK", 10, NEWEST, 0, 0},
    {"Transpose", 1, NEWEST, 0, 0},
    {"Unsqueeze", 1, 12, 0, 0},
    {"Upsample", 7, 9, 0, REPLACED},
    {"Where", 9, NEWEST, 0, 0},
    {"Xor", 1, NEWEST, BROADCAST, SUFFIX},
};
#define N_RULES (sizeof RULES / sizeof *RULES)

static const rule *rule_of(const char *op)
{
    for (size_t k = 0; k < N_RULES; k++)
        if (strcmp(RULES[k].op, op) == 0) return &RULES[k];
    return NULL;
}

static const Onnx__AttributeProto *attr_of(const Onnx__NodeProto *p, const char *name)
{
    for (size_t k = 0; k < p->n_attribute; k++)
        if (strcmp(ot_text(p->attribute[k]->name), name) == 0) return p->attribute[k];
    return NULL;
}

static int64_t int_of(const Onnx__NodeProto *p, const char *name, int64_t absent)
{
    const Onnx__AttributeProto *a = attr_of(p, name);
    return a ? a->i : absent;
}

static bool unpadded(const Onnx__NodeProto *p)
{
    const Onnx__AttributeProto *pads = attr_of(p, "pads"), *mode = attr_of(p, "auto_pad");
    for (size_t k = 0; pads && k < pads->n_ints; k++)
        if (pads->ints[k] != 0) return false;
    if (!mode || mode->s.len == 0) return true;
    return (mode->s.len == 5 && memcmp(mode->s.data, "VALID", 5) == 0) ||
           (mode->s.len == 6 && memcmp(mode->s.data, "NOTSET", 6) == 0);
}

static bool one_output(const Onnx__NodeProto *p)
{
    for (size_t k = 1; k < p->n_output; k++)
        if (p->output[k] && p->output[k][0]) return false;
    return true;
}

static bool holds(const Onnx__NodeProto *p, unsigned check, int32_t opset)
{
    if ((check & TESTED) && opset < 7 && int_of(p, "is_test", 0) != 1) return false;
    if ((check & SUFFIX) && int_of(p, "broadcast", 0) != 0 && attr_of(p, "axis")) return false;
    if ((check & NORMAL) && int_of(p, "spatial", 1) != 1) return false;
    if ((check & WITH_AXIS) && opset < 4 && !attr_of(p, "axis")) return false;
    if ((check & UNPADDED) && opset < 7 && !unpadded(p)) return false;
    if ((check & ONE_OUT) && !one_output(p)) return false;
    if ((check & DEFAULTS) && opset < 6 && !(attr_of(p, "alpha") && attr_of(p, "gamma")))
        return false;
    return true;
}

static bool is_named(const Onnx__AttributeProto *a, const char *text)
{
    return a->s.len == strlen(text) && memcmp(a->s.data, text, a->s.len) == 0;
}

static bool is_of(const Onnx__AttributeProto *a, Onnx__AttributeProto__AttributeType type)
{
    return a && ot_attr_type(a) == type;
}

/* [n] numbers, none of them below `least`. */
static bool counts(const Onnx__AttributeProto *a, size_t n, int64_t least)
{
    bool good = is_of(a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS) && a->n_ints == n;
    for (size_t k = 0; good && k < n; k++) good = a->ints[k] >= least && a->ints[k] <= INT32_MAX;
    return good;
}

/* Absent, or one number. */
static bool may_be_float(const Onnx__AttributeProto *a)
{
    return !a || is_of(a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
}

/* Scales are an attribute, or operand 1. */
static bool upsample_replaceable(const Onnx__NodeProto *p)
{
    const Onnx__AttributeProto *mode = attr_of(p, "mode"), *scales = attr_of(p, "scales");
    if (mode && !(is_of(mode, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING) &&
                  (is_named(mode, "nearest") || is_named(mode, "linear"))))
        return false;
    if (p->n_input == 2) return !scales && *ot_text(p->input[1]);
    return p->n_input == 1 && is_of(scales, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS) &&
           scales->n_floats > 0;
}

/* Where the values of a file's graph come from. */
typedef struct origins {
    const Onnx__GraphProto *g;
    ot_arena *a;
    /* name -> index times 4, and 0: of a node, 1: of an initializer, 2: of an input; NULL: nobody
     * has asked yet */
    ot_map *map;
} origins;

/* Inputs hide initializers, whose values a caller may then change. */
static bool list_origins(origins *x)
{
    const Onnx__GraphProto *g = x->g;
    bool done = true, fresh;
    if (x->map) return true;
    ot_map *map = ot_map_new(x->a);
    if (!map || g->n_node + g->n_initializer + g->n_input > UINT32_MAX / 4) return false;
    for (size_t k = 0; k < g->n_input && done; k++)
        done = ot_map_add(map, ot_text(g->input[k]->name), (uint32_t)k * 4 + 2, &fresh);
    for (size_t k = 0; k < g->n_initializer && done; k++)
        done = ot_map_add(map, ot_text(g->initializer[k]->name), (uint32_t)k * 4 + 1, &fresh);
    for (size_t k = 0; k < g->n_node && done; k++)
        for (size_t j = 0; j < g->node[k]->n_output && done; j++)
            done = ot_map_add(map, ot_text(g->node[k]->output[j]), (uint32_t)k * 4, &fresh);
    x->map = done ? map : NULL;
    return done;
}

/* The node that makes a value; NULL: none does. */
static const Onnx__NodeProto *maker_of(origins *x, const char *name)
{
    const uint32_t at = list_origins(x) ? ot_map_get(x->map, name) : OT_NONE;
    return at != OT_NONE && at % 4 == 0 ? x->g->node[at / 4] : NULL;
}

/* The constant of that name, an initializer or what a Constant makes; NULL: none, or one that the
 * caller may give another value. */
static const Onnx__TensorProto *constant_of(origins *x, const char *name)
{
    const Onnx__NodeProto *p = maker_of(x, name);
    const uint32_t at = x->map ? ot_map_get(x->map, name) : OT_NONE;
    if (at != OT_NONE && at % 4 == 1) return x->g->initializer[at / 4];
    const Onnx__AttributeProto *value = p ? attr_of(p, "value") : NULL;
    return p && strcmp(ot_text(p->op_type), "Constant") == 0 && value ? value->t : NULL;
}

/* Some extents of a tensor, as exporters compute sizes of it: few numbers. */
static bool is_extents(origins *x, const char *name)
{
    static const char *const KEEP[] = {"Cast",  "Gather",  "Identity",
                                       "Slice", "Squeeze", "Unsqueeze"};
    for (int step = 0; step < EXTENT_STEPS; step++) {
        const Onnx__NodeProto *p = maker_of(x, name);
        if (!p || p->n_input == 0) return false;
        const char *op = ot_text(p->op_type);
        if (strcmp(op, "Shape") == 0) return true;
        bool keeps = false;
        for (size_t k = 0; k < sizeof KEEP / sizeof *KEEP; k++) keeps |= strcmp(op, KEEP[k]) == 0;
        if (!keeps) return false;
        name = ot_text(p->input[0]);
    }
    return false;
}

static bool is_ints(const Onnx__AttributeProto *a)
{
    return is_of(a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS) && a->n_ints > 0;
}

/* Of extents alone: of a tensor, a branch is rarely worth what the model's opset was. */
static bool slice_replaceable(origins *x, const Onnx__NodeProto *p)
{
    const Onnx__AttributeProto *starts = attr_of(p, "starts"), *ends = attr_of(p, "ends"),
                               *axes = attr_of(p, "axes");
    return is_ints(starts) && is_ints(ends) && starts->n_ints == ends->n_ints &&
           (!axes || (is_ints(axes) && axes->n_ints == starts->n_ints)) &&
           is_extents(x, p->input[0]);
}

/* Constants of float32, none of them below 1. */
static bool grows(const Onnx__TensorProto *t)
{
    const size_t n = t && t->has_raw_data ? t->raw_data.len / sizeof(float)
                     : t                  ? t->n_float_data
                                          : 0;
    if (!t || t->data_type != OT_F32) return false;
    for (size_t k = 0; k < n; k++) {
        float x = 0;
        if (t->has_raw_data)
            memcpy(&x, t->raw_data.data + k * sizeof x, sizeof x);
        else
            x = t->float_data[k];
        if (!(x >= 1)) return false;
    }
    return n > 0;
}

/* The nearest sample of an old Resize lies on the left where it makes larger, else on the right. */
static bool resize_replaceable(origins *x, const Onnx__NodeProto *p)
{
    const Onnx__AttributeProto *mode = attr_of(p, "mode");
    if (!upsample_replaceable(p) || p->n_input != 2) return false;
    return (mode && is_named(mode, "linear")) || grows(constant_of(x, p->input[1]));
}

/* Other nodes can be written in the place of p. */
static bool replaceable(origins *x, const Onnx__NodeProto *p)
{
    const char *op = ot_text(p->op_type);
    const Onnx__AttributeProto *bias = attr_of(p, "bias"), *size = attr_of(p, "scale"),
                               *mode = attr_of(p, "mode"), *value = attr_of(p, "value"),
                               *pads = attr_of(p, "pads");
    if (p->n_input < 1 || p->n_output != 1 || !*ot_text(p->input[0]) || !*ot_text(p->output[0]))
        return false;
    if (strcmp(op, "Upsample") == 0) return upsample_replaceable(p);
    if (strcmp(op, "Resize") == 0) return resize_replaceable(x, p);
    if (p->n_input != 1) return false;
    if (strcmp(op, "Slice") == 0) return slice_replaceable(x, p);
    if (strcmp(op, "Clip") == 0)
        return may_be_float(attr_of(p, "min")) && may_be_float(attr_of(p, "max"));
    if (strcmp(op, "ImageScaler") == 0)
        return is_of(bias, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS) && bias->n_floats > 0;
    if (strcmp(op, "Crop") == 0)
        return counts(attr_of(p, "border"), 4, 0) && (!size || counts(size, 2, 1));
    if (strcmp(op, "Pad") == 0)
        return is_of(pads, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS) && pads->n_ints > 0 &&
               (!mode || is_of(mode, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING)) &&
               (!value || value->f == 0 || (mode && !is_named(mode, "constant")));
    return true; /* Affine */
}

/* The newest opset in which node p means the same as in `opset`, once attributes are left out;
 * 0: none. */
static int32_t newest(origins *x, const Onnx__NodeProto *p, int32_t opset, bool replace)
{
    if (*ot_domain(p->domain)) return NEWEST; /* not ours to say, nor to read */
    const rule *r = rule_of(ot_text(p->op_type));
    if (!r || opset < r->since || !holds(p, r->check, opset)) return 0;
    if ((r->check & SINCE_AS_NOW) && opset > r->until) return NEWEST;
    for (size_t k = 0; k < p->n_attribute; k++)
        if (p->attribute[k]->g || p->attribute[k]->n_graphs > 0 ||
            *ot_text(p->attribute[k]->ref_attr_name))
            return 0;
    return replace && (r->check & REPLACED) && replaceable(x, p) ? NEWEST : r->until;
}

static bool is_other_float(int64_t type)
{
    return type == OT_F16 || type == OT_F64 || type == OT_BF16;
}

static bool is_float32(const Onnx__GraphProto *g);

/* A value of another floating type begins here, or in a body. */
static bool makes_other_float(const Onnx__NodeProto *p)
{
    const bool casts = strcmp(ot_text(p->op_type), "Cast") == 0;
    for (size_t k = 0; k < p->n_attribute; k++) {
        const Onnx__AttributeProto *a = p->attribute[k];
        if (a->t && is_other_float(a->t->data_type)) return true;
        if (a->g && !is_float32(a->g)) return true;
        if (casts && (is_other_float(a->i) || is_named(a, "FLOAT16") || is_named(a, "DOUBLE")))
            return true;
    }
    return false;
}

/* Operators that are replaced have constants of float32. Bodies are as deep as were unpacked. */
static bool is_float32(const Onnx__GraphProto *g)
{
    for (size_t k = 0; k < g->n_initializer; k++)
        if (is_other_float(g->initializer[k]->data_type)) return false;
    for (size_t k = 0; k < g->n_input; k++) {
        const Onnx__TypeProto *t = g->input[k]->type;
        if (t && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            is_other_float(t->tensor_type->elem_type))
            return false;
    }
    for (size_t k = 0; k < g->n_node; k++)
        if (makes_other_float(g->node[k])) return false;
    return true;
}

bool ot_raise_replaces(const char *op, int32_t from, int32_t to)
{
    const rule *r = rule_of(op);
    return r && (r->check & REPLACED) && from <= r->until && to > r->until;
}

int32_t ot_raised_opset(const Onnx__ModelProto *mp, int32_t opset)
{
    int32_t to = NEWEST;
    const int32_t least = opset < FIRST_READ ? FIRST_READ : SEQUENCES;
    const bool replace = is_float32(mp->graph);
    if (opset < 1 || opset >= SEQUENCES || mp->n_functions > 0 || mp->n_opset_import == 0)
        return opset;
    origins x = {.g = mp->graph, .a = ot_arena_new()};
    for (size_t k = 0; x.a && k < mp->graph->n_node && to >= least; k++) {
        int32_t n = newest(&x, mp->graph->node[k], opset, replace);
        if (n < to) to = n;
    }
    const bool done = x.a != NULL; /* without memory, what is asked for next fails */
    ot_arena_free(x.a);
    return done && to >= least ? to : opset;
}

bool ot_raise_drops(const Onnx__NodeProto *p, const char *attr)
{
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {{"consumed_inputs", CONSUMED}, {"is_test", TEST}, {"broadcast", BROADCAST},
                 {"axis", BROADCAST},           {"ratio", RATIO},  {"spatial", SPATIAL}};
    const rule *r = *ot_domain(p->domain) ? NULL : rule_of(ot_text(p->op_type));
    for (size_t k = 0; r && k < sizeof names / sizeof *names; k++)
        if (strcmp(names[k].name, attr) == 0 && (r->drop & names[k].bit)) return true;
    return false;
}
