/* Operands whose rows before the first and behind the last are something else.
 *
 *   one value    Where(0 <= place + [0, 1, ...] < extent, x, value)
 *   other rows   Gather(x, rows that they stand for): the edge, or mirrored at it
 *   nothing      zeros, and the average is divided by that of ones and zeros in the same places
 */
#include "step_internal.h"

#include "base/half_float.h"

static ot_status nomem(const step_writer *w) { return ot_fail_nomem(w->g->model->diag); }

/* 0, 1, ... n - 1 as [n, 1, ...] with `behind` axes of one element. */
static ot_status count_up(step_writer *w, int64_t n, int32_t behind, ot_id *out)
{
    int64_t dims[OT_RANK_MAX];
    int64_t *data = OT_NEW_N(w->p->a, int64_t, (size_t)n);
    const char *key = ot_format(w->p->a, "count %lld,%d", (long long)n, behind);
    if (!data || !key) return nomem(w);
    if ((*out = ot_map_get(w->made, key)) != OT_NONE) return OT_OK;
    for (int64_t k = 0; k < n; k++) data[k] = k;
    for (int32_t k = 0; k <= behind; k++) dims[k] = k == 0 ? n : 1;
    const char *name = ot_fresh_name(w->g->model, "step/count");
    *out = name ? ot_const_i64(w->g, name, data, behind + 1, dims) : OT_NONE;
    return *out != OT_NONE && ot_map_put(w->made, key, *out) ? OT_OK : nomem(w);
}

/* Numbers and truths about each row. */
typedef struct per_row {
    step_writer *w;
    int64_t dims[OT_RANK_MAX];
    int32_t rank;
} per_row;

static ot_status row_op(const per_row *r, const char *op, ot_dtype dtype, const ot_id *in,
                        uint32_t n, ot_id *out)
{
    return step_op(r->w, op, in, n, (ot_attr_list){0}, (ot_tensor_type){dtype, r->rank, r->dims},
                   out);
}

static ot_status less(const per_row *r, ot_id a, ot_id b, ot_id *out)
{
    return row_op(r, "Less", OT_BOOL, (ot_id[2]){a, b}, 2, out);
}

static ot_status number(step_writer *w, int64_t n, ot_id *out)
{
    return step_ints(w, "number", &n, 1, out);
}

/* Which of `rows` of v there are, as truths; low, high: at which end it matters. */
static ot_status inside(const per_row *r, ot_id v, ot_win rows, const step_read *x, ot_id *out)
{
    step_writer *w = r->w;
    ot_id count, place, low, high, extent, zero;
    OT_TRY(count_up(w, rows.hi - rows.lo, r->rank - 1, &count));
    OT_TRY(step_place(w, v, rows.lo, &place));
    OT_TRY(number(w, 0, &zero));
    OT_TRY(row_op(r, "Add", OT_I64, (ot_id[2]){count, place}, 2, &count));
    if (x->low) {
        OT_TRY(less(r, count, zero, &low));
        OT_TRY(row_op(r, "Not", OT_BOOL, &low, 1, &low));
        *out = low;
    }
    if (x->high) {
        OT_TRY(step_extent(w, v, &extent));
        OT_TRY(less(r, count, extent, &high));
        *out = high;
    }
    if (x->low && x->high) OT_TRY(row_op(r, "And", OT_BOOL, (ot_id[2]){low, high}, 2, out));
    return OT_OK;
}

/* ---- one value ---- */

/* The bytes of the value that stands outside; false: of a type without one. */
static bool value_bytes(ot_dtype t, ot_outside o, unsigned char out[8])
{
    const bool lowest = o.kind == OT_OUTSIDE_LOWEST;
    const float f = lowest ? -__builtin_inff() : o.number;
    const double d = f;
    const int64_t least = lowest ? INT64_MIN : (int64_t)o.number;
    memset(out, 0, 8);
    switch (t) {
    case OT_F32: memcpy(out, &f, sizeof f); return true;
    case OT_F64: memcpy(out, &d, sizeof d); return true;
    case OT_F16: {
        const uint16_t half = ot_f32_to_f16(f);
        memcpy(out, &half, sizeof half);
        return true;
    }
    case OT_U8: out[0] = lowest ? 0 : (unsigned char)o.number; return true;
    case OT_I8: out[0] = lowest ? 0x80 : (unsigned char)(int)o.number; return true;
    case OT_I32: {
        const int32_t narrow = lowest ? INT32_MIN : (int32_t)o.number;
        memcpy(out, &narrow, sizeof narrow);
        return true;
    }
    case OT_I64: memcpy(out, &least, sizeof least); return true;
    case OT_BOOL: out[0] = o.number != 0; return !lowest;
    default: return false;
    }
}

/* The value that stands outside of node id's operand, as a scalar. */
static ot_status value_of(step_writer *w, ot_outside o, ot_id id, ot_dtype dtype, ot_id *out)
{
    ot_arena *a = w->g->model->arena;
    *out = o.operand;
    if (*out != OT_NONE) {
        int64_t n = 0;
        const ot_value *v = &w->g->values[*out];
        if (!ot_value_elems(v, &n) || n != 1 || v->rank > 1)
            return step_refuse(w->p, id, "what stands for rows outside is no single value");
        return OT_OK;
    }
    unsigned char bytes[8];
    if (!value_bytes(dtype, o, bytes))
        return step_refuse(w->p, id, "its type has no value for rows outside");
    ot_tensor *t = OT_NEW(a, ot_tensor);
    void *data = ot_memdup(a, bytes, sizeof bytes);
    const char *name = ot_fresh_name(w->g->model, "step/outside");
    if (!t || !data || !name) return nomem(w);
    *t = (ot_tensor){.dtype = dtype, .data = data, .bytes = ot_dtype_bits(dtype) / 8};
    t->dims = data; /* of none */
    *out = ot_value_new(w->g, name, dtype, 0, NULL);
    if (*out == OT_NONE) return nomem(w);
    w->g->values[*out].init = t;
    w->g->values[*out].is_const = true;
    return OT_OK;
}

/* Which rows of operand j of node id there are: `of` is what it reads. */
static ot_status inside_of(step_writer *w, ot_id id, uint32_t j, const ot_value *of, ot_id *out)
{
    const ot_id v = w->g->nodes[id].in[j];
    const step_read *r = &w->p->nodes[id].read[j];
    const int32_t axis = w->p->flow->s->axis[v];
    per_row rows = {.w = w, .rank = of->rank - axis};
    for (int32_t k = 0; k < rows.rank; k++) rows.dims[k] = k == 0 ? r->from.hi - r->from.lo : 1;
    return inside(&rows, v, r->from, r, out);
}

/* Where of these is to be had in runtimes. */
static bool chooses(ot_dtype t)
{
    return t == OT_U8 || t == OT_I32 || t == OT_I64 || ot_dtype_is_real(t) || t == OT_F64;
}

static ot_status cast(step_writer *w, ot_id x, ot_dtype to, ot_id *out)
{
    const ot_value of = w->g->values[x];
    const ot_attr type = ot_mk_int("to", to);
    return step_op(w, "Cast", &x, 1, (ot_attr_list){&type, 1},
                   (ot_tensor_type){to, of.rank, of.dims}, out);
}

/* Where(in) by way of 32 bits. */
static ot_status replace_wide(step_writer *w, const ot_id in[3], const ot_value *of, ot_id *out)
{
    ot_id wide[3] = {in[0], OT_NONE, OT_NONE};
    OT_TRY(cast(w, in[1], OT_I32, &wide[1]));
    OT_TRY(cast(w, in[2], OT_I32, &wide[2]));
    OT_TRY(step_op(w, "Where", wide, 3, (ot_attr_list){0},
                   (ot_tensor_type){OT_I32, of->rank, of->dims}, out));
    return cast(w, *out, of->dtype, out);
}

static ot_status replace(step_writer *w, ot_id id, uint32_t j, ot_id x, ot_id *out)
{
    const ot_value of = w->g->values[x];
    ot_id is, value;
    OT_TRY(inside_of(w, id, j, &of, &is));
    OT_TRY(value_of(w, w->p->nodes[id].outside, id, of.dtype, &value));
    if (!chooses(of.dtype)) return replace_wide(w, (ot_id[3]){is, x, value}, &of, out);
    return step_op(w, "Where", (ot_id[3]){is, x, value}, 3, (ot_attr_list){0}, ot_type_of(&of),
                   out);
}

/* ---- nothing ---- */

ot_status step_leave_out(step_writer *w, ot_id id, const ot_node *was, ot_id made)
{
    const ot_adapted *how = &w->p->nodes[id].how;
    const ot_outside one = {OT_OUTSIDE_VALUE, OT_NONE, 1}, none = {OT_OUTSIDE_VALUE, OT_NONE, 0};
    const ot_value x = w->g->values[was->in[0]], y = w->g->values[was->out[0]];
    const step_read *r = &w->p->nodes[id].read[0];
    const int32_t axis = w->p->flow->s->axis[was->in[0]];
    int64_t dims[OT_RANK_MAX];
    ot_id is, row, ones, zero, share;
    for (int32_t k = 0; k < x.rank; k++)
        dims[k] = k < 2 ? 1 : k == axis ? r->from.hi - r->from.lo : x.dims[k];
    const ot_tensor_type type = {x.dtype, x.rank, dims};
    OT_TRY(inside_of(w, id, 0, &x, &is));
    OT_TRY(value_of(w, one, id, x.dtype, &ones));
    OT_TRY(value_of(w, none, id, x.dtype, &zero));
    OT_TRY(step_ints(w, "shape", dims, x.rank, &row));
    OT_TRY(step_op(w, "Expand", (ot_id[2]){ones, row}, 2, (ot_attr_list){0}, type, &ones));
    OT_TRY(step_op(w, "Where", (ot_id[3]){is, ones, zero}, 3, (ot_attr_list){0}, type, &ones));
    for (int32_t k = 2; k < x.rank; k++) dims[k] = y.dims[k];
    OT_TRY(
        step_op(w, was->op_type, &ones, 1, (ot_attr_list){how->attrs, how->n_attrs}, type, &share));
    return step_op_into(w, "Div", (ot_id[2]){made, share}, 2, (ot_attr_list){0}, was->out[0]);
}

/* ---- other rows ---- */

/* Where(a < b, to, from). */
static ot_status choose(const per_row *r, ot_id a, ot_id b, ot_id to, ot_id from, ot_id *out)
{
    ot_id is;
    OT_TRY(less(r, a, b, &is));
    return row_op(r, "Where", OT_I64, (ot_id[3]){is, to, from}, 3, out);
}

/* Rows that `at` stand for. */
static ot_status stand_for(const per_row *r, ot_outside_kind kind, ot_id at, ot_id extent,
                           ot_id *out)
{
    step_writer *w = r->w;
    ot_id zero, one, last, mirrored;
    const int64_t n = 1;
    per_row single = {.w = w, .rank = 1, .dims = {n}};
    OT_TRY(number(w, 0, &zero));
    OT_TRY(number(w, 1, &one));
    OT_TRY(row_op(&single, "Sub", OT_I64, (ot_id[2]){extent, one}, 2, &last));
    if (kind == OT_OUTSIDE_EDGE) {
        OT_TRY(choose(r, at, zero, zero, at, &at));
        return choose(r, at, last, at, last, out);
    }
    OT_TRY(row_op(r, "Abs", OT_I64, &at, 1, &at));
    OT_TRY(row_op(&single, "Add", OT_I64, (ot_id[2]){last, last}, 2, &extent));
    OT_TRY(row_op(r, "Sub", OT_I64, (ot_id[2]){extent, at}, 2, &mirrored));
    return choose(r, at, last, at, mirrored, out);
}

static ot_status gather(step_writer *w, ot_id id, uint32_t j, ot_id x, ot_id *out)
{
    const ot_id v = w->g->nodes[id].in[j];
    const step_read *r = &w->p->nodes[id].read[j];
    const ot_value of = w->g->values[x];
    const int32_t axis = w->p->flow->s->axis[v];
    const int64_t n = r->need.hi - r->need.lo;
    per_row rows = {.w = w, .rank = 1, .dims = {n}};
    ot_id count, place, at, extent, zero, last;
    int64_t dims[OT_RANK_MAX];
    OT_TRY(count_up(w, n, 0, &count));
    OT_TRY(step_place(w, v, r->need.lo, &place));
    OT_TRY(step_extent(w, v, &extent));
    OT_TRY(row_op(&rows, "Add", OT_I64, (ot_id[2]){count, place}, 2, &at));
    OT_TRY(stand_for(&rows, w->p->nodes[id].outside.kind, at, extent, &at));
    /* among the rows at hand; those that nobody wants may lie anywhere */
    OT_TRY(step_place(w, v, r->from.lo, &place));
    OT_TRY(row_op(&rows, "Sub", OT_I64, (ot_id[2]){at, place}, 2, &at));
    OT_TRY(number(w, 0, &zero));
    OT_TRY(number(w, r->from.hi - r->from.lo - 1, &last));
    OT_TRY(choose(&rows, at, zero, zero, at, &at));
    OT_TRY(choose(&rows, last, at, last, at, &at));
    const ot_attr along = ot_mk_int("axis", axis);
    memcpy(dims, of.dims, (size_t)of.rank * sizeof *dims);
    dims[axis] = n;
    return step_op(w, "Gather", (ot_id[2]){x, at}, 2, (ot_attr_list){&along, 1},
                   (ot_tensor_type){of.dtype, of.rank, dims}, out);
}

ot_status step_outside(step_writer *w, ot_id id, uint32_t j, ot_id x, ot_id *out)
{
    switch (w->p->nodes[id].outside.kind) {
    case OT_OUTSIDE_EDGE:
    case OT_OUTSIDE_REFLECT: return gather(w, id, j, x, out);
    default: return replace(w, id, j, x, out);
    }
}
