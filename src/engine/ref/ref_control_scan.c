/* Scan: a subgraph run over the slices of its scan inputs, with state from run to run.
 *
 *   opset 9 and later  x [..., T, ...]  one sequence; any axis, either direction, inputs and
 *                      outputs
 *   opset 8            x [B, T, ...]    a batch of sequences, each with a length of its own; the
 *                                       state starts anew for each
 *
 * Both are one thing here: `batches` sequences, of which the later form has one. Scan outputs
 * are made when their first slice is known; slices are put where they belong, so a reversed
 * output is filled from its end.
 */
#include "ref_control.h"

typedef struct scan {
    bool batched;                     /* opset 8 */
    uint32_t first;                   /* input that is the first state */
    uint32_t n_state, n_scan, n_made; /* states, scan inputs, scan outputs */
    int64_t batches, length;          /* the longest sequence's */
    bool *reversed;                   /* [n_scan] inputs read from the end */
    int64_t *axis;                    /* [n_scan] of scan inputs, non-negative */
    ot_nd *in;                        /* [n_state + n_scan] references of ours */
    ot_nd *out;                       /* [n_state + n_made] */
    bool *started;                    /* [n_state + n_made] the node's output exists */
} scan;

/* ---- reading the node ---- */

/* Attribute `name`: n integers, or absent. */
static ot_status read_list(ot_call *c, const char *name, uint32_t n, const int64_t **v)
{
    int64_t count;
    OT_TRY(ot_mv_list(c, OT_NONE, name, v, &count));
    if (*v && count != n)
        return ot_call_fail(c, "attribute '%s' has %lld values, needs %u", name, (long long)count,
                            n);
    return OT_OK;
}

static ot_status scan_count(ot_call *c, scan *s)
{
    int64_t n = ot_attr_int(c->node, "num_scan_inputs", 0);
    uint32_t n_body = ot_call_body_outputs(c, "body");
    *s = (scan){.batched = c->node->version < 9, .batches = 1};
    s->first = s->batched;
    if (n < 1 || n > (int64_t)c->n_in - s->first)
        return ot_call_fail(c, "num_scan_inputs %lld is out of range", (long long)n);
    s->n_scan = (uint32_t)n;
    s->n_state = c->n_in - s->first - s->n_scan;
    if (n_body < s->n_state)
        return ot_call_fail(c, "its subgraph has %u outputs for %u states", n_body, s->n_state);
    s->n_made = n_body - s->n_state;
    if (c->n_out > n_body)
        return ot_call_fail(c, "it has %u outputs, its subgraph %u", c->n_out, n_body);
    for (uint32_t k = s->first; k < c->n_in; k++)
        if (!c->in[k] || !c->in[k]->data) return ot_call_fail(c, "input %u is no tensor", k);
    return OT_OK;
}

static ot_status scan_memory(ot_call *c, scan *s)
{
    uint32_t n_body = s->n_state + s->n_made;
    s->reversed = ot_num_scratch(c, s->n_scan, sizeof *s->reversed);
    s->axis = ot_num_scratch(c, s->n_scan, sizeof *s->axis);
    s->started = ot_num_scratch(c, n_body, sizeof *s->started);
    ot_nd *in = ot_num_scratch(c, (int64_t)s->n_state + s->n_scan, sizeof *in),
          *out = ot_num_scratch(c, n_body, sizeof *out);
    if (!s->reversed || !s->axis || !s->started || !in || !out) return OT_E_NOMEM;
    s->in = in;
    s->out = out;
    return OT_OK;
}

/* All scan inputs are equally long; all inputs of opset 8 are equally many. */
static ot_status scan_sizes(ot_call *c, scan *s)
{
    for (uint32_t k = 0; k < s->n_scan; k++) {
        const ot_nd *x = c->in[s->first + s->n_state + k];
        if (k == 0) s->length = x->dims[s->axis[0]];
        if (x->dims[s->axis[k]] != s->length)
            return ot_call_fail(c, "scan input %u is %lld long, the first %lld", k,
                                (long long)x->dims[s->axis[k]], (long long)s->length);
    }
    if (!s->batched) return OT_OK;
    s->batches = c->in[s->first + s->n_state]->dims[0];
    for (uint32_t k = s->first; k < c->n_in; k++)
        if (c->in[k]->rank == 0 || c->in[k]->dims[0] != s->batches)
            return ot_call_fail(c, "input %u is of another batch", k);
    OT_TRY(ot_num_type(c, 0, OT_NUM_INDEX));
    return ot_num_dims(c, 0, 1, &s->batches);
}

static ot_status scan_read(ot_call *c, scan *s)
{
    const int64_t *axes = NULL, *directions;
    OT_TRY(scan_memory(c, s));
    OT_TRY(
        read_list(c, s->batched ? "directions" : "scan_input_directions", s->n_scan, &directions));
    if (!s->batched) OT_TRY(read_list(c, "scan_input_axes", s->n_scan, &axes));
    for (uint32_t k = 0; k < s->n_scan; k++) {
        const ot_nd *x = c->in[s->first + s->n_state + k];
        uint32_t axis;
        OT_TRY(ot_num_axis(c, s->batched ? 1 : axes ? axes[k] : 0, x->rank, &axis));
        s->axis[k] = axis;
        s->reversed[k] = directions && directions[k];
    }
    return scan_sizes(c, s);
}

/* ---- slices in ---- */

/* Slice `at` of x on an axis, without it: the same memory when it lies in one piece, else a
 * copy. A reference of the caller's. */
static ot_status take_slice(ot_call *c, const ot_nd *x, uint32_t axis, int64_t at, ot_nd *out)
{
    int64_t dims[OT_RANK_MAX], strides[OT_RANK_MAX];
    ot_nd row = {0};
    if (axis == 0) {
        row = ot_ctl_row(x, at);
        ot_nd_share(out, &row);
        return OT_OK;
    }
    for (uint32_t k = 0; k + 1 < x->rank; k++) {
        dims[k] = x->dims[k < axis ? k : k + 1];
        strides[k] = x->strides[k < axis ? k : k + 1];
    }
    OT_TRY(ot_nd_new(out, x->dtype, x->rank - 1, dims, c->diag));
    if (ot_num_count(out) > 0)
        ot_mv_copy(ot_mv_size(x), out->rank, dims, out->data, out->strides,
                   ot_mv_at(x, at * x->strides[axis]), strides);
    return OT_OK;
}

/* ---- slices out ---- */

/* Where slice t of scan output k goes: axis of the node's output, position on it. `rank`: of the
 * output. */
static ot_status out_place(ot_call *c, const scan *s, uint32_t k, uint32_t rank, int64_t t,
                           uint32_t *axis, int64_t *at)
{
    const int64_t *axes, *directions;
    *axis = 0;
    *at = t;
    if (s->batched) return OT_OK;
    OT_TRY(read_list(c, "scan_output_axes", s->n_made, &axes));
    OT_TRY(read_list(c, "scan_output_directions", s->n_made, &directions));
    if (directions && directions[k]) *at = s->length - 1 - t;
    return axes ? ot_num_axis(c, axes[k], rank, axis) : OT_OK;
}

/* Make output k of the node when its first part is known: the part's dims, with n on a new axis.
 * With a batch: in front of that, the batch. What sequences shorter than others leave out stays
 * 0. */
static ot_status start_output(ot_call *c, scan *s, uint32_t k, const ot_nd *item, bool stacked,
                              uint32_t axis)
{
    int64_t dims[OT_RANK_MAX + 2];
    uint32_t rank = 0, from = 0, inner = item->rank + stacked;
    if (s->started[k]) return OT_OK;
    if (s->batched) dims[rank++] = s->batches;
    for (uint32_t j = 0; j < inner; j++)
        dims[rank++] = stacked && j == axis ? s->length : item->dims[from++];
    OT_TRY(ot_call_output(c, k, item->dtype, rank, dims));
    size_t bytes = (size_t)ot_num_count(c->out[k]) * ot_mv_size(c->out[k]);
    if (s->batched && bytes) memset(c->out[k]->data, 0, bytes);
    s->started[k] = true;
    return OT_OK;
}

/* The item has the shape of the output without the batch and the axis. */
static ot_status check_item(ot_call *c, const ot_nd *y, const ot_nd *item, bool batched,
                            bool stacked, uint32_t axis)
{
    bool same = y->rank == item->rank + batched + stacked && y->dtype == item->dtype;
    for (uint32_t j = 0; same && j < item->rank; j++)
        same = y->dims[j + batched + (stacked && j >= axis)] == item->dims[j];
    return same ? OT_OK : ot_call_fail(c, "the slices of an output differ in type or shape");
}

/* Put an item into output k of the node: scan output `made` at step t, or a final state (made
 * OT_NONE). */
static ot_status put_item(ot_call *c, scan *s, uint32_t k, uint32_t made, const ot_nd *item,
                          int64_t b, int64_t t)
{
    bool stacked = made != OT_NONE;
    uint32_t axis = 0;
    int64_t at = 0, strides[OT_RANK_MAX];
    if (!ot_num_out(c, k)) return OT_OK;
    if (!item->data) return ot_call_fail(c, "output %u of its subgraph is no tensor", k);
    if (item->rank + 2 > OT_RANK_MAX)
        return ot_call_fail(c, "output %u has too many dimensions", k);
    if (stacked) OT_TRY(out_place(c, s, made, item->rank + 1, t, &axis, &at));
    OT_TRY(start_output(c, s, k, item, stacked, axis));
    ot_nd *y = c->out[k];
    OT_TRY(check_item(c, y, item, s->batched, stacked, axis));
    if (ot_num_count(item) == 0) return OT_OK;
    for (uint32_t j = 0; j < item->rank; j++)
        strides[j] = y->strides[j + s->batched + (stacked && j >= axis)];
    int64_t to = (s->batched ? b * y->strides[0] : 0) +
                 (stacked ? at * y->strides[axis + s->batched] : 0);
    ot_mv_copy(ot_mv_size(y), item->rank, item->dims, ot_mv_at(y, to), strides, item->data,
               item->strides);
    return OT_OK;
}

/* An output that no slice was made for. */
static ot_status empty_output(ot_call *c, scan *s, uint32_t k)
{
    int64_t dims[OT_RANK_MAX + 2];
    uint32_t rank, axis;
    ot_dtype t;
    int64_t at;
    if (!ot_num_out(c, k) || s->started[k]) return OT_OK;
    OT_TRY(ot_ctl_empty_scan(c, "body", k, &t, &rank, dims + 1));
    if (s->batched) {
        dims[0] = s->batches;
        dims[1] = s->length;
        OT_TRY(ot_call_output(c, k, t, rank + 1, dims));
        size_t bytes = (size_t)ot_num_count(c->out[k]) * ot_mv_size(c->out[k]);
        if (bytes) memset(c->out[k]->data, 0, bytes);
        return OT_OK;
    }
    OT_TRY(out_place(c, s, k - s->n_state, rank, 0, &axis, &at));
    for (uint32_t j = 0; j < axis; j++) dims[1 + j] = dims[2 + j];
    dims[1 + axis] = s->length;
    return ot_call_output(c, k, t, rank, dims + 1);
}

/* ---- running ---- */

/* Step t of batch b, whose sequence has `length` steps. */
static ot_status scan_step(ot_call *c, scan *s, int64_t b, int64_t t, int64_t length)
{
    uint32_t n_in = s->n_state + s->n_scan;
    for (uint32_t k = 0; k < s->n_scan; k++) {
        const ot_nd *x = c->in[s->first + s->n_state + k];
        ot_nd row = s->batched ? ot_ctl_row(x, b) : *x;
        OT_TRY(take_slice(c, &row, (uint32_t)s->axis[k] - s->batched,
                          s->reversed[k] ? length - 1 - t : t, &s->in[s->n_state + k]));
    }
    OT_TRY(ot_call_body(c, "body", s->in, n_in, s->out, s->n_state + s->n_made));
    ot_ctl_release(s->in, n_in);
    for (uint32_t k = 0; k < s->n_state; k++) {
        s->in[k] = s->out[k];
        s->out[k] = (ot_nd){0};
    }
    for (uint32_t k = 0; k < s->n_made; k++) {
        ot_nd *item = &s->out[s->n_state + k];
        OT_TRY(put_item(c, s, s->n_state + k, k, item, b, t));
        ot_nd_release(item);
    }
    return OT_OK;
}

static ot_status scan_sequence(ot_call *c, scan *s, int64_t b)
{
    int64_t length = s->batched && c->in[0] ? ot_nd_int(c->in[0], b) : s->length;
    if (length < 0 || length > s->length)
        return ot_call_fail(c, "sequence length %lld is out of range", (long long)length);
    for (uint32_t k = 0; k < s->n_state; k++) {
        const ot_nd *x = c->in[s->first + k];
        ot_nd row = s->batched ? ot_ctl_row(x, b) : *x;
        ot_nd_release(&s->in[k]);
        ot_nd_share(&s->in[k], &row);
    }
    for (int64_t t = 0; t < length; t++) OT_TRY(scan_step(c, s, b, t, length));
    for (uint32_t k = 0; k < s->n_state; k++) {
        if (s->batched)
            OT_TRY(put_item(c, s, k, OT_NONE, &s->in[k], b, 0));
        else
            ot_mv_give(c, k, &s->in[k]);
    }
    return OT_OK;
}

static ot_status scan_run(ot_call *c, scan *s)
{
    OT_TRY(scan_read(c, s));
    for (int64_t b = 0; b < s->batches; b++) OT_TRY(scan_sequence(c, s, b));
    for (uint32_t k = 0; s->batches == 0 && k < s->n_state; k++)
        OT_TRY(ot_call_output(c, k, c->in[s->first + k]->dtype, c->in[s->first + k]->rank,
                              c->in[s->first + k]->dims));
    for (uint32_t k = 0; k < s->n_made; k++) OT_TRY(empty_output(c, s, s->n_state + k));
    return OT_OK;
}

ot_status ot_ctl_scan(ot_call *c)
{
    scan s;
    OT_TRY(scan_count(c, &s));
    ot_status st = scan_run(c, &s);
    if (s.in) ot_ctl_release(s.in, s.n_state + s.n_scan);
    if (s.out) ot_ctl_release(s.out, s.n_state + s.n_made);
    return st;
}
