/* Sequences and optionals.
 *
 * A sequence is a list of references to arrays: inserting makes a new list, but copies no array,
 * and an element that is taken out is a view. Elements own their memory (ot_ctl_own), since a
 * sequence may live longer than the values around it. An optional is its element itself, or an
 * array that is all zero.
 */
#include "ref_control.h"

/* ---- checks ---- */

static ot_status need_sequence(ot_call *c, uint32_t k)
{
    OT_TRY(ot_call_need(c, k + 1));
    return c->in[k]->list ? OT_OK : ot_call_fail(c, "input %u is no sequence", k);
}

static ot_status need_tensor(ot_call *c, uint32_t k)
{
    OT_TRY(ot_call_need(c, k + 1));
    return c->in[k]->data ? OT_OK : ot_call_fail(c, "input %u is no tensor", k);
}

/* Position input k in [-n, n), or [-n, n] with `end`; `dflt` when it is not given. */
static ot_status position(ot_call *c, uint32_t k, int64_t n, bool end, int64_t dflt, int64_t *out)
{
    int64_t at = dflt;
    if (ot_num_in(c, k)) {
        OT_TRY(need_tensor(c, k));
        OT_TRY(ot_mv_scalar(c, k, &at));
    }
    if (at < -n || at >= n + end)
        return ot_call_fail(c, "position %lld in a sequence of %lld", (long long)at, (long long)n);
    *out = at < 0 ? at + n : at;
    return OT_OK;
}

/* Append a, which becomes a reference of the list's own. */
static ot_status push_own(ot_call *c, ot_nd *list, const ot_nd *a)
{
    ot_nd own;
    OT_TRY(ot_ctl_own(c, a, &own));
    ot_status s = ot_nd_list_push(list, &own, c->diag);
    ot_nd_release(&own);
    return s;
}

/* What is done becomes output k, unless it failed. */
static ot_status finish(ot_call *c, uint32_t k, ot_nd *list, ot_status s)
{
    if (s != OT_OK) {
        ot_nd_release(list);
        return s;
    }
    ot_mv_give(c, k, list);
    return OT_OK;
}

/* ---- SequenceConstruct, SequenceEmpty, SequenceInsert, SequenceErase ---- */

ot_status ot_ctl_sequence_construct(ot_call *c)
{
    ot_nd list;
    OT_TRY(need_tensor(c, 0));
    OT_TRY(ot_nd_list_new(&list, c->in[0]->dtype, c->diag));
    ot_status s = OT_OK;
    for (uint32_t k = 0; k < c->n_in && s == OT_OK; k++) {
        s = need_tensor(c, k);
        if (s == OT_OK) s = ot_num_same_type(c, k, 0);
        if (s == OT_OK) s = push_own(c, &list, c->in[k]);
    }
    return finish(c, 0, &list, s);
}

ot_status ot_ctl_sequence_empty(ot_call *c)
{
    ot_nd list;
    int64_t type = ot_attr_int(c->node, "dtype", OT_F32);
    if (type <= 0 || type > OT_I2) return ot_call_fail(c, "type %lld is unknown", (long long)type);
    OT_TRY(ot_nd_list_new(&list, (ot_dtype)type, c->diag));
    ot_mv_give(c, 0, &list);
    return OT_OK;
}

/* A sequence may be empty and of a type of its own; else types agree. */
ot_status ot_ctl_sequence_insert(ot_call *c)
{
    ot_nd list;
    int64_t at;
    OT_TRY(need_sequence(c, 0));
    OT_TRY(need_tensor(c, 1));
    const ot_nd_list *l = c->in[0]->list;
    if (l->n > 0 && l->items[0].dtype != c->in[1]->dtype)
        return ot_call_fail(c, "a tensor of type %s goes into a sequence of %s",
                            ot_dtype_name(c->in[1]->dtype), ot_dtype_name(l->items[0].dtype));
    OT_TRY(position(c, 2, (int64_t)l->n, true, (int64_t)l->n, &at));
    OT_TRY(ot_nd_list_new(&list, c->in[1]->dtype, c->diag));
    ot_status s = OT_OK;
    for (size_t k = 0; k <= l->n && s == OT_OK; k++) {
        if (k == (size_t)at) s = push_own(c, &list, c->in[1]);
        if (k < l->n && s == OT_OK) s = push_own(c, &list, &l->items[k]);
    }
    return finish(c, 0, &list, s);
}

ot_status ot_ctl_sequence_erase(ot_call *c)
{
    ot_nd list;
    int64_t at;
    OT_TRY(need_sequence(c, 0));
    const ot_nd_list *l = c->in[0]->list;
    OT_TRY(position(c, 1, (int64_t)l->n, false, (int64_t)l->n - 1, &at));
    OT_TRY(ot_nd_list_new(&list, c->in[0]->dtype, c->diag));
    ot_status s = OT_OK;
    for (size_t k = 0; k < l->n && s == OT_OK; k++)
        if (k != (size_t)at) s = push_own(c, &list, &l->items[k]);
    return finish(c, 0, &list, s);
}

/* ---- SequenceAt, SequenceLength ---- */

ot_status ot_ctl_sequence_at(ot_call *c)
{
    int64_t at;
    OT_TRY(need_sequence(c, 0));
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(position(c, 1, (int64_t)c->in[0]->list->n, false, 0, &at));
    ot_mv_share(c, 0, &c->in[0]->list->items[at]);
    return OT_OK;
}

ot_status ot_ctl_sequence_length(ot_call *c)
{
    OT_TRY(need_sequence(c, 0));
    OT_TRY(ot_call_output(c, 0, OT_I64, 0, NULL));
    *(int64_t *)c->out[0]->data = (int64_t)c->in[0]->list->n;
    return OT_OK;
}

/* ---- SequenceMap ---- */

/* Run the body for element `at` of every sequence; tensors are given to all runs. Appends what
 * it makes to lists. */
static ot_status map_one(ot_call *c, size_t at, ot_nd *in, ot_nd *out, ot_nd *lists, uint32_t n)
{
    for (uint32_t k = 0; k < c->n_in; k++)
        in[k] = c->in[k]->list ? c->in[k]->list->items[at] : *c->in[k];
    OT_TRY(ot_call_body(c, "body", in, c->n_in, out, n));
    ot_status s = OT_OK;
    for (uint32_t k = 0; k < n && s == OT_OK; k++) {
        lists[k].dtype = out[k].dtype;
        s = out[k].data ? push_own(c, &lists[k], &out[k])
                        : ot_call_fail(c, "output %u of its subgraph is no tensor", k);
    }
    ot_ctl_release(out, n);
    return s;
}

ot_status ot_ctl_sequence_map(ot_call *c)
{
    OT_TRY(need_sequence(c, 0));
    OT_TRY(ot_call_need(c, c->n_in));
    uint32_t n = ot_call_body_outputs(c, "body");
    size_t length = c->in[0]->list->n;
    if (c->n_out > n) return ot_call_fail(c, "it has %u outputs, its subgraph %u", c->n_out, n);
    for (uint32_t k = 1; k < c->n_in; k++)
        if (c->in[k]->list && c->in[k]->list->n != length)
            return ot_call_fail(c, "its sequences differ in length");
    ot_nd *in = ot_num_scratch(c, c->n_in, sizeof *in), *out = ot_num_scratch(c, n, sizeof *out);
    ot_nd *lists = ot_num_scratch(c, n, sizeof *lists);
    if (!in || !out || !lists) return OT_E_NOMEM;
    ot_status s = OT_OK;
    for (uint32_t k = 0; k < n && s == OT_OK; k++)
        s = ot_nd_list_new(&lists[k], OT_DT_UNKNOWN, c->diag);
    for (size_t at = 0; at < length && s == OT_OK; at++) s = map_one(c, at, in, out, lists, n);
    for (uint32_t k = 0; k < n; k++) s = finish(c, k, &lists[k], s);
    return s;
}

/* ---- SplitToSequence ---- */

/* Part [from, from + size) of x on the axis, without the axis when it is not kept. */
static ot_status push_part(ot_call *c, ot_nd *list, const ot_nd *x, uint32_t axis, int64_t from,
                           int64_t size, bool keep)
{
    int64_t dims[OT_RANK_MAX];
    ot_nd part, whole = {0};
    uint32_t rank = 0;
    for (uint32_t k = 0; k < x->rank; k++)
        if (k != axis || keep) dims[rank++] = k == axis ? size : x->dims[k];
    OT_TRY(ot_nd_new(&part, x->dtype, rank, dims, c->diag));
    if (ot_num_count(&part) > 0) {
        memcpy(dims, x->dims, sizeof dims);
        dims[axis] = size;
        ot_nd_set_dense(&whole, x->dtype, x->rank, dims);
        ot_mv_copy(ot_mv_size(x), x->rank, dims, part.data, whole.strides,
                   ot_mv_at(x, from * x->strides[axis]), x->strides);
    }
    ot_status s = ot_nd_list_push(list, &part, c->diag);
    ot_nd_release(&part);
    return s;
}

/* split: absent, every slice for itself; one number, parts of that size, the last may be
 * smaller; a list of sizes. */
static ot_status split_parts(ot_call *c, uint32_t axis, ot_nd *list)
{
    const ot_nd *x = c->in[0], *split = ot_num_in(c, 1);
    int64_t total = x->dims[axis], at = 0;
    bool keep = split || ot_attr_int(c->node, "keepdims", 1) != 0,
         listed = split && split->rank == 1;
    int64_t each = split && !listed ? ot_nd_int(split, 0) : 1;
    if (each <= 0) return ot_call_fail(c, "parts of %lld elements", (long long)each);
    for (int64_t k = 0; listed ? k < split->dims[0] : at < total; k++) {
        int64_t size = listed ? ot_nd_int(split, k) : ot_min(each, total - at);
        if (size < 0 || size > total - at)
            return ot_call_fail(c, "part %lld of %lld elements does not fit", (long long)k,
                                (long long)size);
        OT_TRY(push_part(c, list, x, axis, at, size, keep));
        at += size;
    }
    if (at != total)
        return ot_call_fail(c, "its parts have %lld elements, the input %lld", (long long)at,
                            (long long)total);
    return OT_OK;
}

ot_status ot_ctl_split_to_sequence(ot_call *c)
{
    ot_nd list;
    uint32_t axis;
    OT_TRY(need_tensor(c, 0));
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 0), c->in[0]->rank, &axis));
    const ot_nd *split = ot_num_in(c, 1);
    if (split) OT_TRY(need_tensor(c, 1));
    OT_TRY(ot_num_type(c, 1, OT_NUM_INDEX));
    if (split && split->rank > 1)
        return ot_call_fail(c, "input 1 has rank %u, must be a number or a list", split->rank);
    OT_TRY(ot_nd_list_new(&list, c->in[0]->dtype, c->diag));
    return finish(c, 0, &list, split_parts(c, axis, &list));
}

/* ---- ConcatFromSequence ---- */

/* Dimensions of the result; the elements agree but for the axis. */
static ot_status join_dims(ot_call *c, const ot_nd_list *l, uint32_t axis, bool new_axis,
                           uint32_t *rank, int64_t *dims)
{
    const ot_nd *first = &l->items[0];
    uint32_t from = 0;
    *rank = first->rank + new_axis;
    for (uint32_t k = 0; k < *rank; k++)
        dims[k] = new_axis && k == axis ? (int64_t)l->n : first->dims[from++];
    for (size_t j = 1; j < l->n; j++) {
        const ot_nd *x = &l->items[j];
        bool same = x->rank == first->rank && x->dtype == first->dtype;
        for (uint32_t k = 0; same && k < x->rank; k++)
            same = x->dims[k] == first->dims[k] || (!new_axis && k == axis);
        if (!same)
            return ot_call_fail(
                c, "element %zu of the sequence has another type or shape than element 0", j);
        if (!new_axis && !ot_add_i64(dims[axis], x->dims[axis], &dims[axis]))
            return ot_call_fail(c, "its elements are too large together");
    }
    return OT_OK;
}

ot_status ot_ctl_concat_from_sequence(ot_call *c)
{
    int64_t dims[OT_RANK_MAX + 1], at = 0;
    uint32_t axis, rank;
    OT_TRY(need_sequence(c, 0));
    const ot_nd_list *l = c->in[0]->list;
    bool new_axis = ot_attr_int(c->node, "new_axis", 0) != 0;
    if (l->n == 0) return ot_call_fail(c, "its sequence is empty");
    if (!ot_attr_find(c->node, "axis")) return ot_call_fail(c, "attribute 'axis' is missing");
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 0), l->items[0].rank + new_axis, &axis));
    OT_TRY(join_dims(c, l, axis, new_axis, &rank, dims));
    OT_TRY(ot_call_output(c, 0, l->items[0].dtype, rank, dims));
    ot_nd *y = c->out[0];
    if (ot_num_count(y) == 0) return OT_OK;
    for (size_t j = 0; j < l->n; j++) {
        const ot_nd *x = &l->items[j];
        ot_nd as = {0};
        dims[axis] = new_axis ? 1 : x->dims[axis];
        ot_nd_set_dense(&as, x->dtype, rank, dims);
        ot_mv_copy(ot_mv_size(x), rank, dims, ot_mv_at(y, at * y->strides[axis]), y->strides,
                   x->data, as.strides);
        at += dims[axis];
    }
    return OT_OK;
}

/* ---- optionals ---- */

static bool is_empty(const ot_nd *a) { return !a || (!a->data && !a->list); }

ot_status ot_ctl_optional(ot_call *c)
{
    static const ot_nd empty = {0};
    ot_mv_share(c, 0, ot_num_in(c, 0) ? c->in[0] : &empty);
    return OT_OK;
}

ot_status ot_ctl_optional_get_element(ot_call *c)
{
    OT_TRY(ot_call_need(c, 1));
    if (is_empty(c->in[0])) return ot_call_fail(c, "its optional is empty");
    ot_mv_share(c, 0, c->in[0]);
    return OT_OK;
}

ot_status ot_ctl_optional_has_element(ot_call *c)
{
    OT_TRY(ot_call_output(c, 0, OT_BOOL, 0, NULL));
    *(uint8_t *)c->out[0]->data = !is_empty(ot_num_in(c, 0));
    return OT_OK;
}
