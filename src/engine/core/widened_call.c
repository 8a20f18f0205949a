/* An implementation of float32 arrays on arrays of 16 bits: its operands are widened, its results
 * rounded, piece by piece where it computes the parts of operand 0 along the leading axes
 * independently of one another.
 *
 *   operand 0   [2, 500, 768]  leading 2     the rows of 2 * 500 parts, some at a time: [m, 1, 768]
 *   others      scale [768]                  widened once, whole
 *   computed    [m, 1, 768] -> [m, 1, 768]   in memory of its own, on a frame of its own
 *   result 0    [2, 500, 768]                the pieces, rounded, one after another
 *
 * A result of float32 is rounded where the model says that it is of 16 bits; others (positions,
 * statistics in float32) are copied.
 */
#include "half.h"
#include "session.h"

/* of operand 0, for each thread: half of a second-level cache with the result */
#define PIECE_FLOATS ((int64_t)64 << 10)

typedef struct widening {
    ot_call *c;
    ot_dtype type;
    uint32_t leading;
    int64_t parts, part; /* of operand 0: how many, elements of one */
    const ot_nd **in;    /* [n_in] of the inner call */
    ot_nd *wide;         /* [n_in] operands as float32 */
} widening;

bool ot_call_is_half(const ot_call *c)
{
    for (uint32_t k = 0; k < c->n_in; k++)
        if (c->in[k] && ot_dtype_is_half(c->in[k]->dtype)) return true;
    return false;
}

/* ---- operands ---- */

static ot_status widen_operand(widening *w, uint32_t k)
{
    const ot_nd *a = w->c->in[k];
    int64_t n;
    w->in[k] = a;
    if (!a || !ot_dtype_is_half(a->dtype)) return OT_OK;
    if (!ot_nd_elems(a, &n) || !ot_nd_is_dense(a))
        return ot_call_fail(w->c, "input %u is too large", k);
    ot_nd_set_dense(&w->wide[k], OT_F32, a->rank, a->dims);
    w->wide[k].data = ot_call_scratch(w->c, (size_t)ot_max(n, 1) * sizeof(float));
    if (!w->wide[k].data) return OT_E_NOMEM;
    ot_half_widen(a->dtype, w->wide[k].data, a->data, n);
    w->in[k] = &w->wide[k];
    return OT_OK;
}

/* Operand 0: room for a piece of m parts. */
static ot_status open_pieces(widening *w, int64_t m)
{
    const ot_nd *x = w->c->in[0];
    int64_t dims[OT_RANK_MAX];
    for (uint32_t a = 0; a < x->rank; a++) dims[a] = a >= w->leading ? x->dims[a] : a == 0 ? m : 1;
    ot_nd_set_dense(&w->wide[0], OT_F32, x->rank, dims);
    w->wide[0].data = ot_call_scratch(w->c, (size_t)(m * w->part) * sizeof(float));
    w->in[0] = &w->wide[0];
    return w->wide[0].data ? OT_OK : OT_E_NOMEM;
}

/* ---- results ---- */

/* The whole of result k, of which `piece` is a part. */
static ot_status open_result(const widening *w, uint32_t k, const ot_nd *piece)
{
    ot_call *c = w->c;
    int64_t dims[OT_RANK_MAX];
    const ot_value *x = &c->g->values[c->node->in[0]],
                   *v = c->node->out[k] == OT_NONE ? NULL : &c->g->values[c->node->out[k]];
    /* inference began with the type that x really has */
    ot_dtype said = v && v->is_inferred && x->dtype == c->in[0]->dtype ? v->dtype : OT_DT_UNKNOWN;
    bool half = piece->dtype == OT_F32 &&
                (ot_dtype_is_half(said) || (said == OT_DT_UNKNOWN && k == 0));
    for (uint32_t a = 0; a < piece->rank; a++)
        dims[a] = a < w->leading ? c->in[0]->dims[a] : piece->dims[a];
    return ot_call_output(c, k, half ? w->type : piece->dtype, piece->rank, dims);
}

/* `piece`, of parts from `first` on, into result k. */
static void put_piece(const widening *w, uint32_t k, const ot_nd *piece, int64_t first)
{
    const ot_nd *y = w->c->out[k];
    int64_t n, each = 1;
    if (!ot_nd_elems(piece, &n)) return;
    for (uint32_t a = w->leading; a < piece->rank; a++) each *= piece->dims[a];
    if (ot_dtype_is_half(y->dtype) && piece->dtype == OT_F32)
        ot_half_narrow(y->dtype, (uint16_t *)y->data + first * each, piece->data, n);
    else if (n)
        memcpy((char *)y->data + first * each * (int64_t)ot_dtype_bytes(y->dtype), piece->data,
               (size_t)n * ot_dtype_bytes(y->dtype));
}

/* ---- the inner call ---- */

/* The implementation on w->in; its results become those of parts from `first` on. */
static ot_status run_piece(const widening *w, ot_op_fn run, ot_slot *slots, ot_slot **list,
                           ot_nd **out, int64_t first)
{
    ot_call *c = w->c;
    ot_step step = *c->frame->step;
    ot_frame frame = {.schedule = c->frame->schedule, .step = &step};
    ot_op_state none = {0};
    ot_call inner = *c;
    step.out_slots = list;
    step.out = out;
    inner.in = w->in;
    inner.out = out;
    inner.frame = &frame;
    inner.state = &none;
    for (uint32_t k = 0; k < c->n_out; k++) {
        slots[k] = (ot_slot){.place = OT_PLACE_HEAP};
        list[k] = c->out[k] ? &slots[k] : NULL;
        out[k] = c->out[k] ? &slots[k].nd : NULL;
    }
    ot_status st = run(&inner);
    for (uint32_t k = 0; st == OT_OK && k < c->n_out; k++) {
        if (!out[k]) continue;
        if (first == 0) st = open_result(w, k, out[k]);
        if (st == OT_OK) put_piece(w, k, out[k], first);
    }
    for (uint32_t k = 0; k < c->n_out; k++) ot_nd_release(&slots[k].nd);
    ot_frame_release(&frame);
    if (none.free) none.free(none.data);
    return st;
}

static ot_status run_pieces(widening *w, ot_op_fn run, ot_slot *slots, ot_slot **list, ot_nd **out)
{
    const uint16_t *x = w->c->in[0]->data;
    int64_t most = ot_max(1, PIECE_FLOATS * (int64_t)ot_max(1, w->c->threads) / w->part);
    most = ot_min(most, w->parts);
    OT_TRY(open_pieces(w, most));
    for (int64_t at = 0; at < w->parts; at += most) {
        int64_t m = ot_min(most, w->parts - at);
        w->wide[0].dims[0] = m;
        ot_half_widen(w->type, w->wide[0].data, x + at * w->part, m * w->part);
        OT_TRY(run_piece(w, run, slots, list, out, at));
    }
    return OT_OK;
}

ot_status ot_call_widened(ot_call *c, ot_op_fn run, uint32_t leading)
{
    const ot_nd *x = c->in[0];
    widening w = {.c = c, .type = OT_DT_UNKNOWN, .leading = leading, .parts = 1, .part = 1};
    for (uint32_t k = c->n_in; k-- > 0;)
        if (c->in[k] && ot_dtype_is_half(c->in[k]->dtype)) w.type = c->in[k]->dtype;
    bool pieces = leading > 0 && x && x->dtype == w.type && leading <= x->rank && ot_nd_is_dense(x);
    w.in = ot_call_scratch(c, (c->n_in + 1u) * sizeof *w.in);
    w.wide = ot_call_scratch(c, (c->n_in + 1u) * sizeof *w.wide);
    ot_slot *slots = ot_call_scratch(c, (c->n_out + 1u) * sizeof *slots),
            **list = ot_call_scratch(c, (c->n_out + 1u) * sizeof *list);
    ot_nd **out = ot_call_scratch(c, (c->n_out + 1u) * sizeof *out);
    if (!w.in || !w.wide || !slots || !list || !out) return ot_fail_nomem(c->diag);
    for (uint32_t a = 0; pieces && a < x->rank; a++)
        *(a < leading ? &w.parts : &w.part) *= x->dims[a];
    pieces = pieces && w.parts > 0 && w.part > 0;
    if (!pieces) w.leading = 0;
    for (uint32_t k = pieces ? 1 : 0; k < c->n_in; k++) OT_TRY(widen_operand(&w, k));
    return pieces ? run_pieces(&w, run, slots, list, out) : run_piece(&w, run, slots, list, out, 0);
}
