/* Reading a graph of blocked operators: every node fits (blocked_nodes.h, unblock.c). */
#include "blocked_nodes.h"

#include "model_io.h"
#include "node_writer.h"

#define BLOCKED "com.microsoft.nchwc"
#define FOURS   4 /* numbers of channels that are put in blocks are multiples of */

#define PICTURES 4 /* axes of what ONNX Runtime puts in blocks */

/* Operators with one result of the shape of all their operands, but for numbers behind the first
 * operand of Clip. */
static const char *const ALIKE[] = {
    "Abs",         "Add",       "Clip",      "Div", "Elu", "Exp",  "Gelu",
    "HardSigmoid", "HardSwish", "LeakyRelu", "Max", "Min", "Mul",  "QuickGelu",
    "Relu",        "Sigmoid",   "Softplus",  "Sub", "Sum", "Tanh",
};

bool ot_is_among(const char *op_type, const char *const *names, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(op_type, names[k]) == 0) return true;
    return false;
}

bool ot_blocked_is_alike(const char *op_type) { return OT_IS_AMONG(op_type, ALIKE); }

bool ot_blocked_is_op(const ot_node *n) { return strcmp(n->domain, BLOCKED) == 0; }

static ot_blocked_part part_of(const ot_node *n)
{
    static const struct {
        const char *op;
        ot_blocked_part what;
    } rows[] = {{"ReorderInput", OT_BLOCKED_TAKE},
                {"ReorderOutput", OT_BLOCKED_GIVE},
                {"Conv", OT_BLOCKED_CONV},
                {"MaxPool", OT_BLOCKED_POOL},
                {"AveragePool", OT_BLOCKED_POOL},
                {"GlobalMaxPool", OT_BLOCKED_POOL},
                {"GlobalAveragePool", OT_BLOCKED_POOL},
                {"Upsample", OT_BLOCKED_RESIZE}};
    for (size_t k = 0; ot_blocked_is_op(n) && k < sizeof rows / sizeof *rows; k++)
        if (strcmp(n->op_type, rows[k].op) == 0) return rows[k].what;
    return OT_BLOCKED_NONE;
}

bool ot_blocked_is_last(const ot_node *n) { return ot_attr_int(n, "channels_last", 0) != 0; }

static int64_t width_of(const ot_blocked *b, const ot_node *n, uint32_t k)
{
    return k < n->n_in && n->in[k] != OT_NONE ? b->width[n->in[k]] : 0;
}

/* Constant float32 of operand k, its contents at hand; NULL: it is none. */
const ot_tensor *ot_blocked_constant(const ot_blocked *b, const ot_node *n, uint32_t k)
{
    const ot_value *v = k < n->n_in && n->in[k] != OT_NONE ? &b->g->values[n->in[k]] : NULL;
    int64_t elems;
    if (!v || !v->init || v->overridable || v->init->dtype != OT_F32 || !v->init->data) return NULL;
    if (!ot_product(v->init->dims, v->init->rank, &elems) || elems < 1) return NULL;
    return (uint64_t)elems * sizeof(float) == v->init->bytes ? v->init : NULL;
}

/* The input of these weights lies in blocks of channels that are blocks of the weights, too. */
bool ot_blocked_both(const ot_node *n, const ot_tensor *w, int64_t block)
{
    return ot_attr_int(n, "group", 1) == 1 ? w->dims[1] >= block : w->dims[1] > 1;
}

/* The weight of output channel, input channel and place in the window, of `area` places. */
float ot_blocked_weight(const ot_tensor *w, int64_t block, bool both, const int64_t *at,
                        int64_t area)
{
    const int64_t o = at[0], i = at[1], s = at[2], ins = w->dims[1];
    const int64_t plane = both ? ((o / block * (ins / block) + i / block) * area + s) * block +
                                     i % block
                               : (o / block * ins + i) * area + s;
    float found;
    memcpy(&found, (const char *)w->data + sizeof found * (size_t)(plane * block + o % block),
           sizeof found);
    return found;
}

static bool conv_fits(const ot_blocked *b, const ot_node *n)
{
    const ot_tensor *w = ot_blocked_constant(b, n, 1), *bias = ot_blocked_constant(b, n, 2);
    const int64_t groups = ot_attr_int(n, "group", 1), in = width_of(b, n, 0);
    const ot_activation act = ot_activation_of_conv(n);
    if (!w || w->rank < 3 || w->rank > OT_RANK_MAX || groups < 1 || n->n_in > 4 ||
        !ot_activation_is_known(&act, b->g->model->opset))
        return false;
    const int64_t out = w->dims[0], each = w->dims[1];
    if (b->rank != 0 && w->rank != b->rank) return false;
    if (out % b->block || (ot_blocked_both(n, w, b->block) && each % b->block)) return false;
    if (n->n_in > 2 && n->in[2] != OT_NONE && (!bias || bias->rank != 1 || bias->dims[0] != out))
        return false;
    if (n->n_in > 3 && n->in[3] != OT_NONE && width_of(b, n, 3) != out) return false;
    if (groups == 1) return each < b->block ? in == 0 : in == each;
    if (each == 1) return in == out;
    return out % groups == 0 && out / groups % b->block == 0 && in % groups == 0 &&
           in / groups == each;
}

/* Channels that a convolution reads or (one a group) makes of the blocked v, where its weights show
 * that the last ones are no padding, which has zeros: channels come in fours. 0: they do not. */
static int64_t width_weighed(const ot_blocked *b, const ot_node *conv)
{
    const ot_tensor *w = ot_blocked_constant(b, conv, 1);
    if (!w || w->rank < 3) return 0;
    const bool both = ot_blocked_both(conv, w, b->block), one = w->dims[1] == 1;
    const int64_t width = one ? w->dims[0] : w->dims[1];
    int64_t area = 1;
    if (ot_attr_int(conv, "group", 1) > 1 ? !one : !both) return 0;
    if (width % b->block || w->dims[0] % b->block) return 0;
    for (uint32_t a = 2; a < w->rank; a++) area *= w->dims[a];
    for (int64_t o = one ? width - FOURS : 0; o < w->dims[0]; o++)
        for (int64_t i = one ? 0 : width - FOURS; i < w->dims[1]; i++)
            for (int64_t s = 0; s < area; s++)
                if (ot_blocked_weight(w, b->block, both, (int64_t[]){o, i, s}, area) != 0)
                    return width;
    return 0;
}

/* Channels of the plain value that is put in blocks; 0: not known. */
int64_t ot_blocked_taken(const ot_blocked *b, const ot_node *n)
{
    const ot_value *x = &b->g->values[n->in[0]], *y = &b->g->values[n->out[0]];
    int64_t width = ot_blocked_is_last(n) ? (x->rank < 3 ? 0 : ot_max(x->dims[x->rank - 1], 0))
                                          : b->plain_width[n->in[0]];
    for (uint32_t k = 0; width == 0 && k < y->n_uses; k++) {
        const ot_node *reader = &b->g->nodes[y->uses[k]];
        if (part_of(reader) == OT_BLOCKED_CONV && reader->in[0] == n->out[0])
            width = width_weighed(b, reader);
    }
    return width;
}

static bool give_fits(const ot_blocked *b, const ot_node *n)
{
    const int64_t channels = ot_attr_int(n, "channels", 0), in = width_of(b, n, 0);
    return in > 0 && channels > in - b->block && channels > 0 && channels <= in;
}

static bool resize_fits(const ot_node *n, int32_t opset)
{
    size_t count;
    const int64_t *scales = ot_attr_ints(n, "scales", &count);
    const char *mode = ot_attr_str(n, "mode", "nearest");
    if (!scales || count < 3 || count > OT_RANK_MAX || scales[0] != 1 || scales[1] != 1)
        return false;
    for (size_t k = 0; k < count; k++)
        if (scales[k] < 1 || scales[k] > 4096) return false;
    if (strcmp(mode, "nearest") == 0) return true;
    return strcmp(mode, "linear") == 0 &&
           (opset >= OT_RESIZES_BY_MODE ||
            strcmp(ot_attr_str(n, "coordinate_transformation_mode", ""), "asymmetric") == 0);
}

/* Averages have no dilations before opset 19; no window has them, nor rounds up, before 10. */
static bool pool_fits(const ot_node *n, int32_t opset)
{
    size_t count = 0;
    const int64_t *by = ot_attr_ints(n, "dilations", &count);
    const bool plain = opset < OT_POOLS_ROUND_UP || strcmp(n->op_type, "AveragePool") == 0;
    for (size_t k = 0; by && plain && k < count; k++)
        if (by[k] != 1) return false;
    return n->n_in == 1 && (opset >= OT_POOLS_ROUND_UP || ot_attr_int(n, "ceil_mode", 0) == 0);
}

static bool is_split(const ot_blocked *b, const ot_node *n, uint32_t k)
{
    return width_of(b, n, k) > 0 && b->split[n->in[k]];
}

/* Channels of what a standard operator makes of blocked operands, which are all split or all not;
 * 0: it is not the same there. */
static int64_t width_between(const ot_blocked *b, const ot_node *n)
{
    const bool joins = strcmp(n->op_type, "Concat") == 0, limits = strcmp(n->op_type, "Clip") == 0;
    const bool known = !n->domain[0] || strcmp(n->domain, "com.microsoft") == 0;
    int64_t width = 0;
    if (n->n_captured > 0 || !known || n->calls_function) return 0;
    if (joins ? ot_attr_int(n, "axis", 0) != 1 : !ot_blocked_is_alike(n->op_type)) return 0;
    for (uint32_t k = 0; k < (limits ? 1 : n->n_in); k++) {
        const int64_t one = width_of(b, n, k);
        if (one == 0 || (!joins && k > 0 && one != width)) return 0;
        if (is_split(b, n, k) != is_split(b, n, 0)) return 0;
        if (!ot_add_i64(joins ? width : 0, one, &width)) return 0;
    }
    return width;
}

/* Reshape(v, [0,-1,0,0,B]) makes blocks an axis, Reshape(v, [0,-1,0,0]) takes it back: between them
 * operands broadcast. OT_BLOCKED_NONE: it is neither. */
static ot_blocked_part reshaping(const ot_blocked *b, const ot_node *n)
{
    int64_t to[OT_RANK_MAX];
    size_t count = 0;
    const ot_value *shape = n->n_in == 2 && n->in[1] != OT_NONE ? &b->g->values[n->in[1]] : NULL;
    if (strcmp(n->op_type, "Reshape") != 0 || n->domain[0] || !shape || shape->overridable)
        return OT_BLOCKED_NONE;
    if (!ot_tensor_ints(shape->init, to, OT_RANK_MAX, &count) || count < 3) return OT_BLOCKED_NONE;
    const bool splits = !is_split(b, n, 0);
    if (splits && to[--count] != b->block) return OT_BLOCKED_NONE;
    for (size_t k = 0; k < count; k++)
        if (to[k] != (k == 1 ? -1 : 0)) return OT_BLOCKED_NONE;
    return splits ? OT_BLOCKED_SPLIT : OT_BLOCKED_JOIN;
}

static bool reads_blocked(const ot_blocked *b, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (width_of(b, n, k) > 0) return true;
    for (uint32_t k = 0; k < n->n_captured; k++)
        if (b->width[n->captured[k]] > 0) return true;
    return false;
}

static bool reads_split(const ot_blocked *b, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (is_split(b, n, k)) return true;
    return false;
}

/* Node id as one of ours: what it is, the channels of what it makes. */
static bool node_fits(ot_blocked *b, ot_id id)
{
    const ot_node *n = &b->g->nodes[id];
    ot_blocked_part what = part_of(n);
    int64_t made = 0;
    b->parts[id] = what;
    if (!ot_blocked_is_op(n) && !reads_blocked(b, n)) {
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] != OT_NONE && b->plain_width[n->out[k]] == 0)
                b->plain_width[n->out[k]] = ot_plain_width(b, n, k);
        return true;
    }
    if (n->n_in < 1 || n->in[0] == OT_NONE || n->n_out != 1 || n->out[0] == OT_NONE) return false;
    switch (what) {
    case OT_BLOCKED_TAKE: {
        const int64_t channels = width_of(b, n, 0) == 0 ? ot_blocked_taken(b, n) : 0;
        if (channels < 1 || channels > INT32_MAX) return false;
        made = ot_ceil_div(channels, b->block) * b->block;
        break;
    }
    case OT_BLOCKED_GIVE:
        if (!give_fits(b, n)) return false;
        if (!ot_blocked_is_last(n)) b->plain_width[n->out[0]] = ot_attr_int(n, "channels", 0);
        break;
    case OT_BLOCKED_CONV:
        if (!conv_fits(b, n)) return false;
        made = ot_blocked_constant(b, n, 1)->dims[0];
        b->rank = ot_blocked_constant(b, n, 1)->rank;
        break;
    case OT_BLOCKED_RESIZE:
        if (!resize_fits(n, b->g->model->opset)) return false;
        made = width_of(b, n, 0);
        break;
    case OT_BLOCKED_POOL:
        if (!pool_fits(n, b->g->model->opset)) return false;
        made = width_of(b, n, 0);
        break;
    default:
        if (ot_blocked_is_op(n)) return false;
        what = reshaping(b, n);
        made = what != OT_BLOCKED_NONE ? width_of(b, n, 0) : width_between(b, n);
        if (what == OT_BLOCKED_NONE) what = OT_BLOCKED_BETWEEN;
    }
    if (ot_blocked_is_op(n) && reads_split(b, n)) return false;
    if (what != OT_BLOCKED_GIVE && (made == 0 || b->g->values[n->out[0]].is_output)) return false;
    b->width[n->out[0]] = made;
    b->split[n->out[0]] = what == OT_BLOCKED_SPLIT ||
                          (what == OT_BLOCKED_BETWEEN && is_split(b, n, 0));
    b->parts[id] = what;
    return true;
}

static bool all_fit(ot_blocked *b, int64_t block)
{
    b->block = block;
    b->rank = 0;
    for (ot_id v = 0; v < b->g->n_values; v++) {
        const ot_value *x = &b->g->values[v];
        b->width[v] = 0;
        b->plain_width[v] = x->rank >= 2 ? ot_max(x->dims[1], 0) : 0;
    }
    for (uint32_t k = 0; k < b->g->n_order; k++)
        if (!node_fits(b, b->g->order[k])) return false;
    if (b->rank == 0) b->rank = PICTURES; /* pools alone */
    return true;
}

/* The size of blocks that every node fits; 0: there is none. */
static int64_t find_block(ot_blocked *b)
{
    const bool wide = all_fit(b, 16), narrow = all_fit(b, 8);
    if (!wide && !narrow) return 0;
    const int64_t block = wide && narrow ? ot_cpu_channel_block() : wide ? 16 : 8;
    return block != 0 && all_fit(b, block) ? block : 0;
}

ot_status ot_blocked_read(ot_graph *g, ot_arena *scratch, ot_blocked *b)
{
    *b = (ot_blocked){.g = g,
                      .width = OT_NEW_N(scratch, int64_t, g->n_values + 1u),
                      .plain_width = OT_NEW_N(scratch, int64_t, g->n_values + 1u),
                      .split = OT_NEW_N(scratch, bool, g->n_values + 1u),
                      .parts = OT_NEW_N(scratch, ot_blocked_part, g->n_nodes + 1u)};
    if (!b->width || !b->plain_width || !b->split || !b->parts)
        return ot_fail_nomem(g->model->diag);
    b->block = find_block(b);
    return OT_OK;
}
