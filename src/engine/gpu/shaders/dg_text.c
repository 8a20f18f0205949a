/* Text of kernels: lines, numbers, arguments, places of elements. */
#include "dg_internal.h"

#include <math.h>

#define GPU_GROUP 128 /* work-items: a unit has room for many such groups */

#include <stdarg.h>

/* ---- types ---- */

static const struct {
    ot_dtype t;
    dg_type type;
} TYPES[] = {
    {OT_F32, {"float", "float", true, false, 32}},
    {OT_F16, {"half", "float", true, false, 32}},
    {OT_BF16, {"ushort", "float", true, false, 32}},
    {OT_F64, {"double", "double", true, false, 64}},
    {OT_I8, {"char", "int", false, false, 32}},
    {OT_I16, {"short", "int", false, false, 32}},
    {OT_I32, {"int", "int", false, false, 32}},
    {OT_I64, {"long", "long", false, false, 64}},
    {OT_U8, {"uchar", "int", false, false, 32}},
    {OT_U16, {"ushort", "int", false, false, 32}},
    {OT_U32, {"uint", "uint", false, true, 32}},
    {OT_U64, {"ulong", "ulong", false, true, 64}},
    {OT_BOOL, {"uchar", "int", false, false, 32}},
};

bool dg_type_of(ot_dtype t, dg_type *out)
{
    for (size_t k = 0; k < sizeof TYPES / sizeof *TYPES; k++)
        if (TYPES[k].t == t) {
            *out = TYPES[k].type;
            return true;
        }
    return false;
}

/* ---- text ---- */

void dg_append(dg_build *b, dg_text *t, const char *s)
{
    const size_t n = strlen(s);
    if (t->n + n + 1 > t->cap) {
        size_t cap = t->cap ? t->cap : 1024;
        while (cap < t->n + n + 1) cap *= 2;
        char *more = ot_alloc(b->a, cap);
        if (!more) {
            b->starved = true;
            return;
        }
        if (t->n) memcpy(more, t->s, t->n);
        t->s = more;
        t->cap = cap;
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
}

static const char *vfmt(dg_build *b, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *text = n < 0 ? NULL : ot_alloc(b->a, (size_t)n + 1);
    if (text) vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    if (text) return text;
    b->starved = true;
    return "";
}

const char *dg_fmt(dg_build *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = vfmt(b, fmt, args);
    va_end(args);
    return text;
}

void dg_line(dg_build *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = vfmt(b, fmt, args);
    va_end(args);
    dg_append(b, &b->body, text);
    dg_append(b, &b->body, "\n");
}

bool dg_refuse(dg_build *b, const char *why)
{
    if (!b->why) b->why = why;
    return false;
}

bool dg_steps(dg_build *b, double iterations)
{
    if (b->target->steps_most == 0 || iterations < (double)b->target->steps_most) return true;
    return dg_refuse(b, "loops of more iterations than this device makes");
}

/* ---- numbers and arguments ---- */

const char *dg_num(dg_build *b, int64_t value)
{
    if (value == 0) return "0";
    if (value == 1) return "1";
    if (value > INT32_MAX || value < INT32_MIN || b->n_numbers >= DG_NUMBERS_MAX) {
        (void)dg_refuse(b, "an extent or a stride beyond 32 bits");
        return "0";
    }
    if (!OT_PUSH(b->a, b->numbers, b->n_numbers, b->cap_numbers, (int32_t)value)) b->starved = true;
    return dg_fmt(b, "p%zu", b->n_numbers - 1);
}

/* Elements from the first to the last fit in 31 bits, strides of either sign. */
static bool spans_31_bits(const ot_nd *x)
{
    int64_t span = 0;
    for (uint32_t k = 0; k < x->rank; k++) {
        int64_t step, extent = x->dims[k];
        if (k == 1 && x->chan_block) {
            extent = ot_ceil_div(extent, x->chan_block);
            span += x->chan_block - 1;
        }
        if (!ot_mul_i64(extent - 1, x->strides[k] < 0 ? -x->strides[k] : x->strides[k], &step) ||
            !ot_add_i64(span, step, &span))
            return false;
    }
    return span < INT32_MAX;
}

static bool lacks_type(const ot_dg_target *t, ot_dtype type)
{
    if (type == OT_F64) return !t->has_f64;
    const size_t bytes = ot_dtype_bytes(type);
    return (bytes == 1 && !t->has_bytes) || (bytes == 2 && !t->has_shorts) ||
           (bytes == 8 && !t->has_i64);
}

/* Elements of memory: along an axis without a stride all are the same one. */
static int64_t places(const ot_nd *x)
{
    int64_t n = 1;
    for (uint32_t k = 0; k < x->rank; k++)
        n *= x->strides[k] != 0 ? x->dims[k] : ot_min(x->dims[k], 1);
    return n;
}

static uint32_t add_arg(dg_build *b, const ot_dg_arg *arg, const ot_nd *x)
{
    const uint32_t most = b->target->args_most;
    if (b->n_args == OT_DG_ARGS_MAX || (most > 0 && b->n_args >= most)) {
        (void)dg_refuse(b, "too many operands");
        return 0;
    }
    dg_type t;
    if (!dg_type_of(x->dtype, &t)) (void)dg_refuse(b, "a type that devices do not have");
    if (lacks_type(b->target, x->dtype)) (void)dg_refuse(b, "a type that the device does not have");
    if (!spans_31_bits(x)) (void)dg_refuse(b, "an array of more than 2^31 elements");
    b->args[b->n_args] = *arg;
    b->arrays[b->n_args] = *x;
    b->touched[b->n_args] = places(x);
    b->from[b->n_args] = NULL;
    return b->n_args++;
}

void dg_reads_at_most(dg_build *b, uint32_t arg, int64_t elements)
{
    if (arg < b->n_args) b->touched[arg] = ot_min(b->touched[arg], elements);
}

/* A value that is there twice, seen with other axes, counts once. */
static int64_t touched_bytes(const dg_build *b)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < b->n_args; k++) {
        bool again = false;
        for (uint32_t j = 0; j < k; j++)
            again = again || (b->args[k].value != OT_NONE && b->args[j].value == b->args[k].value &&
                              b->args[j].first == b->args[k].first);
        if (!again) bytes += b->touched[k] * (int64_t)ot_dtype_bytes(b->arrays[k].dtype);
    }
    return bytes;
}

uint32_t dg_arg_at(dg_build *b, const dg_view *p, bool written)
{
    const size_t size = p->x.rank * sizeof *p->x.dims;
    for (uint32_t k = 0; k < b->n_args; k++) {
        const ot_nd *x = &b->arrays[k];
        bool same = b->args[k].value == p->v && b->args[k].pack.block == 0 &&
                    b->args[k].first == p->first && x->rank == p->x.rank &&
                    x->dtype == p->x.dtype && x->chan_block == p->x.chan_block;
        if (!same || memcmp(x->strides, p->x.strides, size) || memcmp(x->dims, p->x.dims, size))
            continue;
        b->args[k].written |= written;
        return k;
    }
    const ot_dg_arg arg = {.value = p->v, .first = p->first, .written = written};
    return add_arg(b, &arg, &p->x);
}

uint32_t dg_arg(dg_build *b, ot_id v, const ot_nd *x, bool written)
{
    const dg_view p = {.v = v, .x = x ? *x : *dg_nd(b, v)};
    return dg_arg_at(b, &p, written);
}

uint32_t dg_table(dg_build *b, ot_dtype t, int64_t n, const void *data)
{
    ot_nd *x = OT_NEW(b->a, ot_nd);
    if (!x) {
        b->starved = true;
        return 0;
    }
    ot_nd_set_dense(x, t, 1, &n);
    x->data = (void *)(uintptr_t)data;
    const ot_dg_arg arg = {.value = OT_NONE, .table = x};
    return add_arg(b, &arg, x);
}

uint32_t dg_packed(dg_build *b, ot_id v, const ot_dg_packing *p)
{
    const int64_t blocks = p->groups * ot_ceil_div(p->maps, p->block);
    const int64_t dims[4] = {blocks, p->depth_dims[0], p->depth_dims[1], p->block};
    ot_nd x;
    ot_nd_set_dense(&x, dg_nd(b, v)->dtype, 4, dims);
    const ot_dg_arg arg = {.value = v, .pack = *p};
    return add_arg(b, &arg, &x);
}

bool dg_broadcasts(const ot_nd *x, uint32_t rank, const int64_t *dims)
{
    if (x->rank > rank) return false;
    for (uint32_t k = 0; k < x->rank; k++)
        if (x->dims[k] != 1 && x->dims[k] != dims[rank - x->rank + k]) return false;
    return true;
}

/* ---- elements ---- */

const char *dg_index(dg_build *b, uint32_t arg, const char *const *coords)
{
    const ot_nd x = b->arrays[arg];
    const char *text = "";
    for (uint32_t k = 0; k < x.rank; k++) {
        if (x.dims[k] == 1 || x.strides[k] == 0 || strcmp(coords[k], "0") == 0) continue;
        const char *term = x.strides[k] == 1
                               ? coords[k]
                               : dg_fmt(b, "%s * %s", coords[k], dg_num(b, x.strides[k]));
        if (k == 1 && x.chan_block) {
            const bool apart = b->chan && strcmp(coords[k], b->chan) == 0;
            const char *block = apart ? b->chan_block
                                      : dg_fmt(b, "%s / %u", coords[k], x.chan_block);
            const char *lane = apart ? b->chan_lane
                                     : dg_fmt(b, "%s %% %u", coords[k], x.chan_block);
            term = dg_fmt(b, "%s * %s + %s", block, dg_num(b, x.strides[k]), lane);
        }
        text = *text ? dg_fmt(b, "%s + %s", text, term) : term;
    }
    return *text ? text : "0";
}

void dg_split(dg_build *b, const char *prefix, uint32_t rank, const int64_t *dims,
              const char **coords)
{
    uint32_t first = 0; /* the outermost axis that is cut off the number takes what is left of it */
    while (first < rank && dims[first] == 1) first++;
    if (first < rank) dg_line(b, "int %sr = i;", prefix);
    for (uint32_t k = rank; k-- > 0;) {
        coords[k] = "0";
        if (dims[k] == 1) continue;
        coords[k] = dg_fmt(b, "%s%u", prefix, k);
        if (k == first) {
            dg_line(b, "const int %s = %sr;", coords[k], prefix);
            continue;
        }
        const char *extent = dg_num(b, dims[k]);
        dg_line(b, "const int %s = %sr %% %s; %sr /= %s;", coords[k], prefix, extent, prefix,
                extent);
    }
}

/* ---- kernels ---- */

void dg_begin(dg_build *b, int64_t items)
{
    dg_line(b, "const int i = work_item();\nif (i >= %s) return;", dg_num(b, items));
}

/* A GPU's groups are whole subgroups, and less where its units would get none: each runs a group at
 * a time in each of four places. */
static uint32_t group_of(const ot_dg_layout *l, int64_t items, uint32_t group_items)
{
    if (l->together <= 1) return group_items;
    if (items >= ot_max(l->busy, 1)) return GPU_GROUP;
    const int64_t places = 4 * l->busy / OT_DG_UNIT_ITEMS;
    uint32_t group = l->together;
    while (group > 1 && items < group * places) group /= 2;
    return group;
}

void dg_begin_group(dg_build *b, int64_t groups, uint32_t items)
{
    b->group_items = items;
    dg_line(b, "const int i = work_group(), me = local_item();");
    /* Vulkan's groups may stand in rows, the last of which is filled up: a whole group returns */
    if (b->target->dialect == OT_DG_GLSL) dg_line(b, "if (i >= %s) return;", dg_num(b, groups));
}

void dg_shared(dg_build *b, const char *type, const char *name, int64_t n)
{
    static const char *const space[] = {[OT_DG_OPENCL] = "__local ",
                                        [OT_DG_CUDA] = "__shared__ together ",
                                        [OT_DG_GLSL] = "shared "};
    dg_append(b, &b->shared,
              dg_fmt(b, "%s%s %s[%lld];\n", space[b->target->dialect], type, name, (long long)n));
}

void dg_shared_pool(dg_build *b, int64_t bytes)
{
    dg_append(b, &b->shared, "extern __shared__ together uint pool[];\n");
    b->pool_bytes = bytes;
}

void dg_meet(dg_build *b) { dg_line(b, "meet();"); }

double dg_work(const dg_build *b, double items, uint32_t lanes, uint32_t block)
{
    const double busy = (double)b->target->layout.busy;
    return fmax(items, busy) * (4.0 * (lanes + block) + lanes * block);
}

void dg_end(dg_build *b, int64_t items, uint32_t group_items, double operations)
{
    dg_text text = {0};
    if (b->group_items > 0)
        group_items = b->group_items;
    else
        group_items = group_of(&b->target->layout, items, group_items);
    dg_open_function(b, &text, group_items);
    if (b->body.n) dg_append(b, &text, b->body.s);
    dg_append(b, &text, "}\n");
    ot_dg_shader x = {.text = text.s,
                      .n_text = text.n,
                      .args = ot_memdup(b->a, b->args, b->n_args * sizeof *b->args),
                      .n_args = b->n_args,
                      .numbers = b->numbers,
                      .n_numbers = (uint32_t)b->n_numbers,
                      .items = items,
                      .group_items = group_items,
                      .shared_bytes = b->pool_bytes,
                      .groups_on_unit = b->groups_on_unit,
                      .bytes = touched_bytes(b),
                      .operations = operations,
                      .transactions = b->transactions[0],
                      .transactions_plain = b->transactions[1] > 0 ? b->transactions[1]
                                                                   : b->transactions[0],
                      .transactions_ideal = b->transactions[2],
                      .spreads = b->spreads};
    if (items > INT32_MAX / 2) (void)dg_refuse(b, "more than 2^30 work-items");
    if (!x.args || !OT_PUSH(b->a, b->done, b->n_done, b->cap_done, x)) b->starved = true;
    b->body = (dg_text){0};
    memset(b->transactions, 0, sizeof b->transactions);
    b->spreads = false;
    b->group_items = 0;
    b->shared = (dg_text){0};
    b->pool_bytes = 0;
    b->groups_on_unit = 0;
    b->n_args = 0;
    b->chan = NULL;
    b->numbers = NULL;
    b->n_numbers = b->cap_numbers = 0;
}

bool dg_const_ints(const dg_build *b, const ot_node *n, uint32_t k, int64_t *out, uint32_t most,
                   uint32_t *count)
{
    ot_id v = dg_in(n, k);
    const ot_nd *x = v == OT_NONE ? NULL : dg_nd(b, v);
    int64_t elems;
    if (!x || !x->data || (x->dtype != OT_I64 && x->dtype != OT_I32) || !ot_nd_elems(x, &elems) ||
        elems > most)
        return false;
    for (int64_t i = 0; i < elems; i++) out[i] = ot_nd_int(x, i);
    *count = (uint32_t)elems;
    return true;
}
