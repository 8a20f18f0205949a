/* Making nodes: names, values, constants, crops, Reshape, Concat.
 *
 * Every node written by this stage passes through rw_op (or tile_nodes.c's clone), so that
 * names, types and static shapes are always there. Constants and crops are remembered per target
 * graph by their contents: tiles that need the same shape vector or the same window share it.
 *
 *   names   tile/r3/slice/x_t0     region 3, window of x for tile 0
 *           tile/r3/t0/conv1       operator conv1 of tile 0
 *           tile/r3/body/conv1     the same in a loop body
 *           tile/r3/deslice/y      joins the pieces of y
 */
#include <stdarg.h>

#include "transform_internal.h"

#define KEY_DATA_MAX 256 /* bytes of a constant that is shared by contents */
/* bytes of a constant's window that is copied, not sliced at run time */
#define CUT_CONST_MAX (64u << 10)
/* opset from which Constant holds more than floating point */
#define CONSTANT_OF_ANY_TYPE 9

ot_status rw_nomem(const rw_region *w) { return ot_fail_nomem(w->g->model->diag); }

ot_status rw_target_init(rw_region *w, rw_target *t, ot_graph *g, const char *label)
{
    *t = (rw_target){.g = g, .is_body = g != w->g, .label = label};
    t->consts = ot_map_new(w->arena);
    t->crops = ot_map_new(w->arena);
    if (!t->consts || !t->crops) return rw_nomem(w);
    if (!t->is_body) return OT_OK;
    t->n_outer = w->g->n_values;
    t->from_outer = ot_map_new(w->arena);
    return t->from_outer ? OT_OK : rw_nomem(w);
}

const char *rw_name(rw_region *w, const char *role, const char *name)
{
    if (w->g->model->is_sketch) return ot_fresh_name(w->g->model, "");
    char number[OT_DECIMAL];
    const char *id = ot_decimal(w->r->id, number);
    const char *parts[] = {"tile/r", id, "/", role ? role : name, "/", name};
    const char *base = ot_join(w->arena, parts, role && name ? 6 : 4);
    return base ? ot_fresh_name(w->g->model, base) : NULL;
}

const char *rw_labelled(rw_region *w, const rw_target *t, const char *value)
{
    return t->label ? ot_join(w->arena, (const char *[]){value, "_", t->label}, 3) : value;
}

ot_status rw_value(rw_region *w, rw_target *t, const char *role, const char *name,
                   ot_tensor_type type, ot_id *out)
{
    const char *fresh = rw_name(w, role, name);
    if (!fresh) return rw_nomem(w);
    *out = ot_value_new(t->g, fresh, type.dtype, type.rank, type.dims);
    return *out == OT_NONE ? rw_nomem(w) : OT_OK;
}

ot_status rw_op(rw_region *w, rw_target *t, const char *role, const ot_node_def *def,
                ot_tensor_type type, ot_id *out)
{
    ot_node_def own = *def;
    own.name = rw_name(w, role, def->name);
    own.out = (ot_id_list){out, 1};
    if (!own.name) return rw_nomem(w);
    if (*out == OT_NONE) {
        const bool is_plain = w->g->model->is_sketch || !def->name;
        const char *value = !is_plain ? ot_join(w->arena, (const char *[]){def->name, "/out"}, 2)
                                      : "out";
        if (!value) return rw_nomem(w);
        OT_TRY(rw_value(w, t, role, value, type, out));
    }
    return ot_node_new(t->g, &own) == OT_NONE ? rw_nomem(w) : OT_OK;
}

/* ---- constants ---- */

#define KEY_PART (OT_DECIMAL + 1) /* characters that put_part writes at most */

/* One number of a key, behind `mark` if it is not 0; returns the end. */
static char *put_part(char *at, uint64_t number, char mark)
{
    char text[OT_DECIMAL];
    if (mark) *at++ = mark;
    for (const char *from = ot_decimal(number, text); *from;) *at++ = *from++;
    return at;
}

/* *out: a string that is equal for equal constants; NULL when the constant is too large to
 * compare. false: no memory. */
static bool contents_key(rw_region *w, const ot_tensor *x, char **out)
{
    static const char hex[] = "0123456789abcdef";
    *out = NULL;
    if (!x->data || x->bytes > KEY_DATA_MAX) return true;
    char *at = *out = ot_alloc(w->arena, (1 + (size_t)x->rank) * KEY_PART + 2 * x->bytes + 2);
    if (!at) return false;
    at = put_part(at, (uint64_t)x->dtype, 0);
    for (uint32_t k = 0; k < x->rank; k++) at = put_part(at, (uint64_t)x->dims[k], ',');
    *at++ = ':';
    for (size_t k = 0; k < x->bytes; k++) {
        unsigned char b = ((const unsigned char *)x->data)[k];
        *at++ = hex[b >> 4];
        *at++ = hex[b & 15];
    }
    *at = 0;
    return true;
}

/* Element k of a tensor of integers (0 when it is not held); false for other types. */
static bool integer_at(const ot_tensor *x, size_t k, double *out)
{
    size_t size = ot_dtype_bits(x->dtype) / 8;
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
    } u = {0};
    if (size == 0 || size > sizeof u) return false;
    if (x->data && (k + 1) * size <= x->bytes) memcpy(&u, (const char *)x->data + k * size, size);
    switch (x->dtype) {
    case OT_I8: *out = u.i8; return true;
    case OT_I16: *out = u.i16; return true;
    case OT_I32: *out = u.i32; return true;
    case OT_I64: *out = (double)u.i64; return true;
    case OT_U8: *out = u.u8; return true;
    case OT_U16: *out = u.u16; return true;
    case OT_U32: *out = u.u32; return true;
    case OT_BOOL: *out = u.u8 != 0; return true;
    default: return false;
    }
}

/* Before IR 4, an initializer would have to be a graph input, so new constants are written as
 * Constant nodes; and before opset 9, those hold floating point only. */
static bool must_cast(const rw_region *w, const ot_tensor *x)
{
    double one;
    bool integer = integer_at(x, 0, &one);
    return w->g->model->ir_version < 4 && w->g->model->opset < CONSTANT_OF_ANY_TYPE && integer &&
           x->data;
}

/* The integers of x as float64 in a Constant, cast back. Shapes and windows are far below 2^53. */
static ot_status const_by_cast(rw_region *w, rw_target *t, const char *role, const char *name,
                               const ot_tensor *x, ot_id *out)
{
    ot_arena *a = w->g->model->arena;
    size_t size = ot_dtype_bits(x->dtype) / 8, n = x->bytes / size;
    ot_tensor *y = OT_NEW(a, ot_tensor);
    double *data = ot_alloc_n(a, n + 1, sizeof *data);
    if (!y || !data) return rw_nomem(w);
    for (size_t k = 0; k < n; k++)
        if (!integer_at(x, k, &data[k]))
            OT_BUG("a constant that is no integer goes through a Cast");
    *y = (ot_tensor){
        .dtype = OT_F64, .rank = x->rank, .dims = x->dims, .data = data, .bytes = n * sizeof *data};
    ot_attr value = ot_mk_tensor("value", y), to = ot_mk_int("to", x->dtype);
    ot_id plain = OT_NONE;
    OT_TRY(rw_op(w, t, role, &(ot_node_def){.op = "Constant", .name = name, .attrs = {&value, 1}},
                 (ot_tensor_type){OT_F64, (int32_t)x->rank, x->dims}, &plain));
    *out = OT_NONE;
    return rw_op(w, t, role,
                 &(ot_node_def){.op = "Cast", .name = name, .in = {&plain, 1}, .attrs = {&to, 1}},
                 (ot_tensor_type){x->dtype, (int32_t)x->rank, x->dims}, out);
}

ot_status rw_const(rw_region *w, rw_target *t, const char *name, const ot_tensor *x, ot_id *out)
{
    char *key;
    const char *role = t->is_body ? t->label : "const";
    bool cast = must_cast(w, x);
    if (!contents_key(w, x, &key)) return rw_nomem(w);
    if (key && (*out = ot_map_get(t->consts, key)) != OT_NONE) return OT_OK;
    if (cast)
        OT_TRY(const_by_cast(w, t, role, name, x, out));
    else
        OT_TRY(
            rw_value(w, t, role, name, (ot_tensor_type){x->dtype, (int32_t)x->rank, x->dims}, out));
    ot_value *v = &t->g->values[*out];
    if (!cast) v->init = x;
    v->is_const = true;
    if (x->dtype == OT_I64 && x->data && x->bytes / 8 <= OT_KNOWN_MAX) {
        v->known = x->data;
        v->known_n = (uint32_t)(x->bytes / 8);
    }
    return key && !ot_map_put(t->consts, key, *out) ? rw_nomem(w) : OT_OK;
}

ot_status rw_const_i64(rw_region *w, rw_target *t, const char *name, const int64_t *data, size_t n,
                       bool scalar, ot_id *out)
{
    ot_arena *a = w->g->model->arena;
    ot_tensor *x = OT_NEW(a, ot_tensor);
    int64_t *dims = OT_NEW_N(a, int64_t, 1);
    if (!x || !dims) return rw_nomem(w);
    dims[0] = (int64_t)n;
    *x = (ot_tensor){.dtype = OT_I64, .rank = !scalar, .dims = dims, .bytes = n * sizeof *data};
    x->data = n ? ot_memdup(a, data, n * sizeof *data) : ot_alloc(a, 1);
    return x->data ? rw_const(w, t, name, x, out) : rw_nomem(w);
}

ot_status rw_const_true(rw_region *w, rw_target *t, ot_id *out)
{
    static const unsigned char yes = 1;
    ot_arena *a = w->g->model->arena;
    ot_tensor *x = OT_NEW(a, ot_tensor);
    if (!x) return rw_nomem(w);
    *x = (ot_tensor){.dtype = OT_BOOL, .data = &yes, .bytes = sizeof yes};
    return rw_const(w, t, "go_on", x, out);
}

/* ---- crops ---- */

/* Copy a window of one axis of a densely packed tensor. */
static void copy_window(const ot_tensor *x, size_t size, const rw_cut *cut, const void *from,
                        void *to)
{
    size_t outer = 1, inner = size, extent = (size_t)x->dims[cut->axis];
    for (uint32_t k = 0; k < cut->axis; k++) outer *= (size_t)x->dims[k];
    for (uint32_t k = cut->axis + 1; k < x->rank; k++) inner *= (size_t)x->dims[k];
    size_t part = (size_t)(cut->hi - cut->lo) * inner;
    for (size_t o = 0; o < outer; o++)
        memcpy((char *)to + o * part, (const char *)from + (o * extent + (size_t)cut->lo) * inner,
               part);
}

/* The windows of constant x as a new constant, one axis after the other; NULL when memory ran out.
 */
static const ot_tensor *cut_tensor(rw_region *w, const ot_tensor *x, const rw_cut *cuts, uint32_t n)
{
    ot_arena *a = w->g->model->arena;
    size_t size = ot_dtype_bits(x->dtype) / 8;
    for (uint32_t k = 0; k < n; k++) {
        ot_tensor *y = OT_NEW(a, ot_tensor);
        int64_t *dims = ot_memdup(a, x->dims, x->rank * sizeof *dims), elems;
        if (!y || !dims) return NULL;
        dims[cuts[k].axis] = cuts[k].hi - cuts[k].lo;
        if (!ot_product(dims, x->rank, &elems)) return NULL;
        void *data = ot_alloc(a, (size_t)elems * size + 1);
        if (!data) return NULL;
        copy_window(x, size, &cuts[k], x->data, data);
        *y = (ot_tensor){.dtype = x->dtype,
                         .rank = x->rank,
                         .dims = dims,
                         .data = data,
                         .bytes = (size_t)elems * size};
        x = y;
    }
    return x;
}

/* Constants small enough to be cut here and now. */
static bool can_cut_tensor(const ot_value *v)
{
    return v->init && !v->overridable && v->init->data && v->init->bytes <= CUT_CONST_MAX &&
           ot_dtype_bits(v->init->dtype) >= 8;
}

/* The cuts of a Slice, and of a neighbouring axis, kept whole, where one is to be named besides;
 * [*n] ordered by axis. */
static void name_axes(const rw_region *w, const rw_target *t, const ot_value *src, rw_cut *cuts,
                      uint32_t *n)
{
    if (!w->slices_apart || t->is_body || *n != 1 || src->rank < 2 || !ot_value_is_static(src))
        return;
    const bool last = cuts[0].axis + 1 == (uint32_t)src->rank;
    const uint32_t axis = last ? cuts[0].axis - 1 : cuts[0].axis + 1;
    if (last) cuts[1] = cuts[0];
    cuts[last ? 0 : 1] = (rw_cut){axis, 0, src->dims[axis]};
    *n = 2;
}

/* cuts: room for OT_RANK_MAX. */
static ot_status slice(rw_region *w, rw_target *t, ot_id src, rw_cut *cuts, uint32_t n,
                       const char *name, ot_id *out)
{
    ot_arena *a = w->g->model->arena;
    const ot_value v = t->g->values[src];
    int64_t lo[OT_RANK_MAX], hi[OT_RANK_MAX], axes[OT_RANK_MAX], dims[OT_RANK_MAX];
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    name_axes(w, t, &v, cuts, &n);
    for (uint32_t k = 0; k < n; k++) {
        lo[k] = cuts[k].lo;
        hi[k] = cuts[k].hi;
        axes[k] = cuts[k].axis;
        dims[axes[k]] = hi[k] == OT_TO_END ? OT_DIM_UNKNOWN : hi[k] - lo[k];
    }
    const char *label = rw_labelled(w, t, name);
    if (!label) return rw_nomem(w);
    *out = OT_NONE;
    if (w->g->model->opset < OT_SLICE_HAS_INPUTS) {
        ot_attr at[3] = {ot_mk_ints(a, "axes", axes, n), ot_mk_ints(a, "starts", lo, n),
                         ot_mk_ints(a, "ends", hi, n)};
        for (int k = 0; k < 3; k++)
            if (at[k].kind != OT_ATTR_INTS) return rw_nomem(w);
        return rw_op(
            w, t, "slice",
            &(ot_node_def){.op = "Slice", .name = label, .in = {&src, 1}, .attrs = {at, 3}},
            (ot_tensor_type){v.dtype, v.rank, dims}, out);
    }
    ot_id in[4] = {src, OT_NONE, OT_NONE, OT_NONE};
    OT_TRY(rw_const_i64(w, t, "starts", lo, n, false, &in[1]));
    OT_TRY(rw_const_i64(w, t, "ends", hi, n, false, &in[2]));
    OT_TRY(rw_const_i64(w, t, "axes", axes, n, false, &in[3]));
    return rw_op(w, t, "slice", &(ot_node_def){.op = "Slice", .name = label, .in = {in, 4}},
                 (ot_tensor_type){v.dtype, v.rank, dims}, out);
}

ot_status rw_crop(rw_region *w, rw_target *t, ot_id src, const rw_cut *cuts, uint32_t n,
                  const char *name, ot_id *out)
{
    const ot_value *v = &t->g->values[src];
    rw_cut real[OT_RANK_MAX];
    uint32_t m = 0;
    char key[(1 + 3 * OT_RANK_MAX) * KEY_PART + 1], *end;
    for (uint32_t k = 0; k < n; k++) {
        if (cuts[k].lo == 0 && (cuts[k].hi == OT_TO_END || cuts[k].hi == v->dims[cuts[k].axis]))
            continue;
        uint32_t at = m++; /* keep them ordered by axis */
        for (; at > 0 && real[at - 1].axis > cuts[k].axis; at--) real[at] = real[at - 1];
        real[at] = cuts[k];
    }
    *out = src;
    if (m == 0) return OT_OK;
    end = put_part(key, src, 0);
    for (uint32_t k = 0; k < m; k++) {
        end = put_part(end, real[k].axis, ';');
        end = put_part(end, (uint64_t)real[k].lo, ':');
        end = put_part(end, (uint64_t)real[k].hi, ',');
    }
    *end = 0;
    if ((*out = ot_map_get(t->crops, key)) != OT_NONE) return OT_OK;
    bool to_end = false;
    for (uint32_t k = 0; k < m; k++) to_end |= real[k].hi == OT_TO_END;
    if (can_cut_tensor(v) && !to_end) {
        const ot_tensor *x = cut_tensor(w, v->init, real, m);
        if (!x) return rw_nomem(w);
        OT_TRY(rw_const(w, t, name, x, out));
    } else {
        OT_TRY(slice(w, t, src, real, m, name, out));
    }
    char *kept = ot_strdup(w->arena, key);
    return kept && ot_map_put(t->crops, kept, *out) ? OT_OK : rw_nomem(w);
}

/* ---- Reshape, Concat ---- */

ot_status rw_reshape(rw_region *w, rw_target *t, const char *role, const char *name, ot_id in,
                     int32_t rank, const int64_t *dims, ot_id *out)
{
    const ot_value v = t->g->values[in];
    ot_id ops[2] = {in, OT_NONE};
    if (*out == OT_NONE && v.rank == rank && !memcmp(v.dims, dims, (size_t)rank * sizeof *dims)) {
        *out = in;
        return OT_OK;
    }
    int64_t shape[OT_RANK_MAX];
    for (int32_t k = 0; k < rank; k++) shape[k] = dims[k] < 0 ? 0 : dims[k];
    OT_TRY(rw_const_i64(w, t, "shape", shape, (size_t)rank, false, &ops[1]));
    return rw_op(w, t, role, &(ot_node_def){.op = "Reshape", .name = name, .in = {ops, 2}},
                 (ot_tensor_type){v.dtype, rank, dims}, out);
}

ot_status rw_concat(rw_region *w, rw_target *t, const char *name, const ot_id *in, uint32_t n,
                    uint32_t axis, ot_id *out)
{
    const ot_value v = t->g->values[in[0]];
    int64_t dims[OT_RANK_MAX], sum = 0;
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    for (uint32_t k = 0; k < n; k++) {
        const int64_t extent = t->g->values[in[k]].dims[axis];
        sum = sum < 0 || extent < 0 ? OT_DIM_UNKNOWN : sum + extent;
    }
    dims[axis] = sum;
    ot_attr at = ot_mk_int("axis", axis);
    return rw_op(w, t, "deslice",
                 &(ot_node_def){.op = "Concat", .name = name, .in = {in, n}, .attrs = {&at, 1}},
                 (ot_tensor_type){v.dtype, v.rank, dims}, out);
}
