/* If and Loop, and the family's table.
 *
 *   Loop(M, cond, a0)     body(i, cond, a) -> (cond', a', s)
 *
 *     i  cond   a        scan output
 *     0  true   a0  -->  [s0         ]  made when the first slice is known: room for M slices, if
 *                                       that can be had
 *     1  true   a1  -->  [s0 s1      ]
 *     2  false           [s0 s1]        cut to what was run
 *
 * Carried values may be sequences; they change hands from one run to the next, nothing is copied.
 */
#include "ref_control.h"

#include "engine/core/session.h" /* what a subgraph declares of its outputs */

/* ---- shared ---- */

void ot_ctl_release(ot_nd *list, uint32_t n)
{
    for (uint32_t k = 0; list && k < n; k++) ot_nd_release(&list[k]);
}

ot_status ot_ctl_own(ot_call *c, const ot_nd *a, ot_nd *out)
{
    if (a->block || a->list || !a->data) {
        ot_nd_share(out, a);
        return OT_OK;
    }
    OT_TRY(ot_nd_new(out, a->dtype, a->rank, a->dims, c->diag));
    size_t bytes = (size_t)ot_num_count(a) * ot_mv_size(a);
    if (bytes) memcpy(out->data, a->data, bytes);
    return OT_OK;
}

ot_status ot_ctl_truth(ot_call *c, const ot_nd *a, const char *what, bool *out)
{
    if (!a || !a->data || !ot_num_is(a->dtype, OT_NUM_BIT(OT_BOOL)) || ot_num_count(a) != 1)
        return ot_call_fail(c, "%s is not a single bool", what);
    *out = ot_nd_int(a, 0) != 0;
    return OT_OK;
}

ot_status ot_ctl_empty_scan(ot_call *c, const char *attr, uint32_t k, ot_dtype *t, uint32_t *rank,
                            int64_t *dims)
{
    const ot_step *step = c->frame->step;
    const ot_value *v = NULL;
    for (uint32_t j = 0; j < step->n_bodies; j++) {
        const ot_graph *g = step->bodies[j].schedule->g;
        if (strcmp(step->bodies[j].attr, attr) == 0 && k < g->n_outputs)
            v = &g->values[g->outputs[k]];
    }
    if (!v || v->dtype == OT_DT_UNKNOWN)
        return ot_call_fail(c, "its subgraph never ran, and the type of output %u is not known", k);
    *t = v->dtype;
    *rank = v->rank > 0 ? (uint32_t)v->rank + 1 : 1;
    if (*rank > OT_RANK_MAX)
        return ot_call_fail(c, "output %u of its subgraph has too many dimensions", k);
    dims[0] = 0;
    for (uint32_t a = 1; a < *rank; a++) dims[a] = ot_max(0, v->dims[a - 1]);
    return OT_OK;
}

ot_nd ot_ctl_row(const ot_nd *a, int64_t at)
{
    ot_nd row = *a;
    row.rank = a->rank - 1;
    for (uint32_t k = 0; k < row.rank; k++) {
        row.dims[k] = a->dims[k + 1];
        row.strides[k] = a->strides[k + 1];
    }
    if (ot_num_count(a) > 0) row.data = ot_mv_at(a, at * a->strides[0]);
    return row;
}

/* ---- If ---- */

ot_status ot_ctl_if(ot_call *c)
{
    bool yes = false;
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_ctl_truth(c, c->in[0], "its condition", &yes));
    const char *branch = yes ? "then_branch" : "else_branch";
    uint32_t n = ot_call_body_outputs(c, branch);
    if (n < c->n_out)
        return ot_call_fail(c, "its %s has %u outputs, the node %u", branch, n, c->n_out);
    ot_nd *out = ot_num_scratch(c, n, sizeof *out);
    if (!out) return OT_E_NOMEM;
    OT_TRY(ot_call_body(c, branch, NULL, 0, out, n));
    for (uint32_t k = 0; k < n; k++) ot_mv_give(c, k, &out[k]);
    return OT_OK;
}

/* ---- Loop: scan outputs ---- */

/* slices that there is room for at first, when their number is not known */
#define ROOM_FIRST 16
/* trip counts up to here are taken for the number of slices to come */
#define ROOM_KNOWN ((int64_t)1 << 20)

/* A scan output that grows. */
typedef struct stack {
    ot_nd nd;  /* [room, ...] once there is a slice */
    int64_t n; /* slices in it */
} stack;

static ot_status stack_reserve(ot_call *c, stack *s, const ot_nd *item, int64_t room, ot_diag *d)
{
    int64_t dims[OT_RANK_MAX + 1];
    ot_nd bigger;
    dims[0] = room;
    if (item->rank >= OT_RANK_MAX)
        return ot_call_fail(c, "a scan output of more than %d dimensions", OT_RANK_MAX);
    for (uint32_t k = 0; k < item->rank; k++) dims[k + 1] = item->dims[k];
    OT_TRY(ot_nd_new(&bigger, item->dtype, item->rank + 1, dims, d));
    size_t bytes = (size_t)ot_num_count(item) * ot_mv_size(item) * (size_t)s->n;
    if (bytes) memcpy(bigger.data, s->nd.data, bytes);
    ot_nd_release(&s->nd);
    s->nd = bigger;
    return OT_OK;
}

/* Room for one more slice, of `limit` at most: for all of them when their number is known and
 * memory can be had. */
static ot_status stack_grow(ot_call *c, stack *s, const ot_nd *item, int64_t limit)
{
    ot_diag ignored = {0};
    if (s->nd.data && s->n < s->nd.dims[0]) return OT_OK;
    bool counted = s->n == 0 && limit <= ROOM_KNOWN && item->rank < OT_RANK_MAX;
    if (counted && stack_reserve(c, s, item, limit, &ignored) == OT_OK) return OT_OK;
    return stack_reserve(c, s, item, ot_min(limit, s->n == 0 ? ROOM_FIRST : 2 * s->n), c->diag);
}

static ot_status stack_push(ot_call *c, stack *s, const ot_nd *item, int64_t limit)
{
    if (!item->data) return ot_call_fail(c, "a scan output is no tensor");
    OT_TRY(stack_grow(c, s, item, limit));
    bool same = s->nd.rank == item->rank + 1 && s->nd.dtype == item->dtype;
    for (uint32_t k = 0; same && k < item->rank; k++) same = item->dims[k] == s->nd.dims[k + 1];
    if (!same) return ot_call_fail(c, "the slices of a scan output differ in type or shape");
    int64_t n = ot_num_count(item);
    if (n > 0) memcpy(ot_mv_at(&s->nd, s->n * n), item->data, (size_t)n * ot_mv_size(item));
    s->n++;
    return OT_OK;
}

/* The stack becomes output k; `body_out` is the subgraph's output that fills it. */
static ot_status stack_finish(ot_call *c, stack *s, uint32_t k, uint32_t body_out)
{
    int64_t dims[OT_RANK_MAX];
    ot_dtype t;
    uint32_t rank;
    if (!ot_num_out(c, k)) return OT_OK;
    if (s->n == 0) {
        OT_TRY(ot_ctl_empty_scan(c, "body", body_out, &t, &rank, dims));
        return ot_call_output(c, k, t, rank, dims);
    }
    if (s->n == s->nd.dims[0]) {
        ot_mv_give(c, k, &s->nd);
        return OT_OK;
    }
    memcpy(dims, s->nd.dims, sizeof dims);
    dims[0] = s->n;
    OT_TRY(ot_call_output(c, k, s->nd.dtype, s->nd.rank, dims));
    size_t bytes = (size_t)ot_num_count(c->out[k]) * ot_mv_size(c->out[k]);
    if (bytes) memcpy(c->out[k]->data, s->nd.data, bytes);
    return OT_OK;
}

/* ---- Loop ---- */

typedef struct loop {
    uint32_t n_carried, n_scan;
    int64_t i, limit; /* trip; there are fewer than limit */
    bool go;
    ot_nd *in;    /* [2 + n_carried] trip, condition, carried values (references of ours) */
    ot_nd *out;   /* [1 + n_carried + n_scan] of the subgraph */
    stack *scans; /* [n_scan] */
} loop;

static ot_status loop_begin(ot_call *c, loop *l)
{
    uint32_t n_body = ot_call_body_outputs(c, "body");
    *l = (loop){.limit = INT64_MAX, .go = true, .n_carried = c->n_in > 2 ? c->n_in - 2 : 0};
    if (n_body < 1 + l->n_carried)
        return ot_call_fail(c, "its subgraph has %u outputs for %u carried values", n_body,
                            l->n_carried);
    l->n_scan = n_body - 1 - l->n_carried;
    if (c->n_out > n_body - 1)
        return ot_call_fail(c, "it has %u outputs, its subgraph makes %u", c->n_out, n_body - 1);
    if (ot_num_in(c, 0)) OT_TRY(ot_mv_scalar(c, 0, &l->limit));
    if (ot_num_in(c, 1)) OT_TRY(ot_ctl_truth(c, c->in[1], "its condition", &l->go));
    ot_nd *in = ot_num_scratch(c, 2 + (int64_t)l->n_carried, sizeof *in);
    l->out = ot_num_scratch(c, n_body, sizeof *l->out);
    l->scans = ot_num_scratch(c, l->n_scan, sizeof *l->scans);
    if (!in || !l->out || !l->scans) return OT_E_NOMEM;
    for (uint32_t k = 0; k < l->n_carried; k++) {
        if (!c->in[2 + k]) return ot_call_fail(c, "input %u is omitted, but needed", 2 + k);
        ot_nd_share(&in[2 + k], c->in[2 + k]);
    }
    ot_nd_set_dense(&in[0], OT_I64, 0, NULL);
    ot_nd_set_dense(&in[1], OT_BOOL, 0, NULL);
    in[0].data = &l->i;
    in[1].data = &l->go;
    l->in = in;
    return OT_OK;
}

/* One run of the body. */
static ot_status loop_trip(ot_call *c, loop *l)
{
    uint32_t n_body = 1 + l->n_carried + l->n_scan;
    OT_TRY(ot_call_body(c, "body", l->in, 2 + l->n_carried, l->out, n_body));
    OT_TRY(ot_ctl_truth(c, &l->out[0], "the condition that its subgraph makes", &l->go));
    ot_nd_release(&l->out[0]);
    for (uint32_t k = 0; k < l->n_carried; k++) {
        ot_nd_release(&l->in[2 + k]);
        l->in[2 + k] = l->out[1 + k];
        l->out[1 + k] = (ot_nd){0};
    }
    for (uint32_t k = 0; k < l->n_scan; k++) {
        ot_nd *item = &l->out[1 + l->n_carried + k];
        OT_TRY(stack_push(c, &l->scans[k], item, l->limit));
        ot_nd_release(item);
    }
    return OT_OK;
}

static ot_status loop_run(ot_call *c, loop *l)
{
    for (; l->go && l->i < l->limit; l->i++) OT_TRY(loop_trip(c, l));
    for (uint32_t k = 0; k < l->n_carried; k++) ot_mv_give(c, k, &l->in[2 + k]);
    for (uint32_t k = 0; k < l->n_scan; k++)
        OT_TRY(stack_finish(c, &l->scans[k], l->n_carried + k, 1 + l->n_carried + k));
    return OT_OK;
}

ot_status ot_ctl_loop(ot_call *c)
{
    loop l;
    _Static_assert(sizeof(bool) == 1, "a bool is held as one byte");
    ot_status s = loop_begin(c, &l);
    if (s == OT_OK) s = loop_run(c, &l);
    if (l.in) ot_ctl_release(l.in + 2, l.n_carried);
    if (l.out) ot_ctl_release(l.out, 1 + l.n_carried + l.n_scan);
    for (uint32_t k = 0; l.scans && k < l.n_scan; k++) ot_nd_release(&l.scans[k].nd);
    return s;
}

/* ---- the family ---- */

const ot_op_entry ot_ops_control[] = {
    {OT_OP_If, ot_ctl_if},
    {OT_OP_Loop, ot_ctl_loop},
    {OT_OP_Scan, ot_ctl_scan},
    {OT_OP_OPAQUE, NULL},
};

const ot_op_named ot_ops_control_named[] = {
    {"", "SequenceConstruct", ot_ctl_sequence_construct},
    {"", "SequenceEmpty", ot_ctl_sequence_empty},
    {"", "SequenceInsert", ot_ctl_sequence_insert},
    {"", "SequenceAt", ot_ctl_sequence_at},
    {"", "SequenceErase", ot_ctl_sequence_erase},
    {"", "SequenceLength", ot_ctl_sequence_length},
    {"", "SequenceMap", ot_ctl_sequence_map},
    {"", "SplitToSequence", ot_ctl_split_to_sequence},
    {"", "ConcatFromSequence", ot_ctl_concat_from_sequence},
    {"", "Optional", ot_ctl_optional},
    {"", "OptionalGetElement", ot_ctl_optional_get_element},
    {"", "OptionalHasElement", ot_ctl_optional_has_element},
    {NULL, NULL, NULL},
};
