/* Transfers, and what loops carry.
 *
 *   load a <- x[2*i-1:2*i+3, 0:64]      a[..] = inside ? x[..] : 0
 *   store y[window] <- b                if (inside) y[..] = b[..]
 *   yield (q, p) to (p, q)              both are read before either is written
 */
#include "kgen_internal.h"

/* Elements of o by their number: what has gaps gets a map. */
ot_status kgen_number_elements(kgen *g, kgen_operand *o)
{
    int64_t dense[OT_TK_RANK_MAX], n = 1;
    bool canonical = true;
    for (uint32_t d = o->rank; d-- > 0; n *= o->dims[d])
        canonical = canonical && (o->dims[d] == 1 || o->stride[d] == n);
    if (!canonical && o->map_rank > 0)
        return kgen_fail(g, "device-view", "'%s' has gaps in what has gaps: no strides describe it",
                         kgen_value(g, o->value)->name);
    if (!canonical) {
        o->map_rank = o->rank;
        memcpy(o->map_dims, o->dims, sizeof dense);
        memcpy(o->map_stride, o->stride, sizeof dense);
        kgen_dense(o->dims, o->rank, o->stride);
    }
    return OT_OK;
}

static bool same_axes(const int64_t *a, uint32_t a_rank, const int64_t *b, uint32_t b_rank)
{
    uint32_t i = 0, j = 0;
    for (;; i++, j++) {
        while (i < a_rank && a[i] == 1) i++;
        while (j < b_rank && b[j] == 1) j++;
        if (i == a_rank || j == b_rank) return i == a_rank && j == b_rank;
        if (a[i] != b[j]) return false;
    }
}

/* Over the elements of `main`, whose window has guards; `other` has the same, in its own shape. */
static ot_status nest_of(kgen *g, const kgen_operand *main, kgen_operand *other, kgen_nest *n)
{
    int64_t dense[OT_TK_RANK_MAX];
    kgen_nest_init(n, main->dims, main->rank);
    kgen_nest_strides(n, main, main->stride);
    kgen_nest_guard(n, main);
    if (same_axes(main->dims, main->rank, other->dims, other->rank)) {
        kgen_nest_same(n, other);
    } else {
        OT_TRY(kgen_number_elements(g, other));
        kgen_dense(main->dims, main->rank, dense);
        kgen_nest_strides(n, other, dense);
    }
    kgen_nest_fold(n);
    return OT_OK;
}

/* What converts from one type to another: wide enough for both. */
static ot_tk_class class_between(const char *from, const char *to)
{
    if (strcmp(from, "f64") == 0 || strcmp(to, "f64") == 0) return OT_TK_F64;
    if (ot_tk_is_float(from)) return OT_TK_F32;
    bool wide = ot_tk_dtype_bits(from) == 64 || strcmp(from, "u32") == 0;
    if (ot_tk_is_float(to) && !wide) return OT_TK_F32;
    return wide ? OT_TK_I64 : OT_TK_I32;
}

static void body(kgen *g, const kgen_operand *from, const kgen_operand *to, const kgen_nest *n,
                 uint32_t main_is_to)
{
    bool raw = strcmp(from->dtype, to->dtype) == 0;
    const char *source = kgen_index(g, from, n->lin[main_is_to]),
               *dest = kgen_index(g, to, n->lin[!main_is_to]);
    ot_tk_class c = class_between(from->dtype, to->dtype);
    const char *x = raw ? kgen_text(g, "a0[%s]", source)
                        : kgen_get(g, from->dtype, c, "a0", source);
    if (n->guard && !main_is_to) x = kgen_text(g, "(%s) ? %s : 0", n->guard, x);
    const char *put = raw ? kgen_text(g, "out[%s] = %s;", dest, x)
                          : kgen_put(g, to->dtype, c, "out", dest, x);
    if (n->guard && main_is_to)
        kgen_line(g, "if (%s) %s", n->guard, put);
    else
        kgen_line(g, "%s", put);
    g->uses_f64 = g->uses_f64 || (!raw && c == OT_TK_F64);
}

/* ---- beside the items ---- */

/* The number of a stream; a new one is the last. */
static uint32_t stream_number(kgen *g, const char *name)
{
    uint32_t k = 0;
    while (k < g->n_streams && strcmp(g->streams[k], name) != 0) k++;
    if (k == g->n_streams) g->streams[g->n_streams++] = name;
    return k;
}

void kgen_wait(kgen *g, const char *stream)
{
    for (uint32_t k = 0; k < g->n_streams; k++) {
        if (stream && strcmp(g->streams[k], stream) != 0) continue;
        kgen_open(g, "if (going%u)", k); /* an event is waited for once */
        kgen_line(g, "wait_group_events(1, &event%u);", k);
        kgen_line(g, "event%u = no_event;", k);
        kgen_line(g, "going%u = 0;", k);
        kgen_close(g);
    }
}

/* Can the device copy it by itself: whole rows, as they are, between local and global memory? */
static bool is_async(const kgen *g, const ot_tk_stmt *s, const kgen_operand *from,
                     const kgen_operand *to, const kgen_nest *n)
{
    bool rows = n->stride[0][n->rank - 1] == 1 && n->stride[1][n->rank - 1] == 1 &&
                from->map_rank == 0 && to->map_rank == 0;
    for (uint32_t d = 0; d < n->rank; d++) rows = rows && !n->first[d];
    return g->dialect->has_async && s->stream && strcmp(from->dtype, to->dtype) == 0 &&
           from->is_local != to->is_local && rows;
}

/* All items ask for each row together. */
static void copy_async(kgen *g, const char *stream, const kgen_nest *n, bool main_is_to)
{
    uint32_t event = stream_number(g, stream), last = n->rank - 1;
    const char *at[2] = {"", ""};
    for (uint32_t d = 0; d < last; d++) {
        kgen_open(g, "for (int c%u = 0; c%u < %lld; c%u++)", d, d, (long long)n->dims[d], d);
        for (int k = 0; k < 2; k++)
            at[k] = kgen_term(g, at[k], kgen_text(g, "c%u", d), n->stride[k][d]);
    }
    for (int k = 0; k < 2; k++) at[k] = *at[k] ? kgen_text(g, " + %s", at[k]) : "";
    kgen_line(g, "event%u = async_work_group_copy(out%s, a0%s, (size_t)%lld, event%u);", event,
              at[!main_is_to], at[main_is_to], (long long)n->dims[last], event);
    for (uint32_t d = 0; d < last; d++) kgen_close(g);
    kgen_line(g, "going%u = 1;", event);
}

ot_status kgen_move(kgen *g, const ot_tk_stmt *s)
{
    kgen_operand from, to;
    kgen_nest n;
    bool stores = s->op == OT_TK_STORE;
    OT_TRY(kgen_locate(g, s->in[0], &from));
    OT_TRY(kgen_locate(g, s->out[0], &to));
    OT_TRY(kgen_window(g, stores ? &to : &from, s->ranges));
    if (kgen_elements(&from) != kgen_elements(&to))
        return kgen_fail(g, "shape", "%lld elements do not fill %lld",
                         (long long)kgen_elements(&from), (long long)kgen_elements(&to));
    OT_TRY(stores ? nest_of(g, &to, &from, &n) : nest_of(g, &from, &to, &n));
    bool async = is_async(g, s, &from, &to, &n);
    kgen_share share = async ? (kgen_share){0} : kgen_nest_share(g, &n);
    /* the nest has `to` first */
    if (stores) share.walks = (share.walks & 1) << 1 | share.walks >> 1;
    OT_TRY(kgen_touch(g, &from, 1, &to, share));
    bool raw = strcmp(from.dtype, to.dtype) == 0;
    kgen_block(g);
    kgen_pointer(g, &from, "a0", true, raw);
    kgen_pointer(g, &to, "out", false, raw);
    if (async) {
        copy_async(g, s->stream, &n, stores);
    } else {
        kgen_nest_open(g, &n);
        body(g, &from, &to, &n, stores);
        kgen_nest_close(g, &n);
    }
    kgen_close(g);
    return OT_OK;
}

/* ---- what is carried ---- */

typedef struct pair {
    kgen_operand from, to;
} pair;

static bool same_place(const kgen_operand *a, const kgen_operand *b)
{
    return a->memory == b->memory && a->constant == b->constant &&
           strcmp(a->dynamic, b->dynamic) == 0 && kgen_is_dense(a) && kgen_is_dense(b);
}

static bool overlap(const kgen_operand *a, const kgen_operand *b)
{
    return a->memory == b->memory && a->low < b->high && b->low < a->high;
}

static ot_status copy(kgen *g, kgen_operand *from, kgen_operand *to)
{
    kgen_nest n;
    OT_TRY(nest_of(g, from, to, &n));
    OT_TRY(kgen_touch(g, from, 1, to, kgen_nest_share(g, &n)));
    kgen_block(g);
    kgen_pointer(g, from, "a0", true, true);
    kgen_pointer(g, to, "out", false, true);
    kgen_nest_open(g, &n);
    kgen_line(g, "out[%s] = a0[%s];", kgen_index(g, to, n.lin[1]), kgen_index(g, from, n.lin[0]));
    kgen_nest_close(g, &n);
    kgen_close(g);
    return OT_OK;
}

/* Through the stage: all that is read lies there before anything is written. */
static ot_status copy_staged(kgen *g, pair *pairs, uint32_t n)
{
    int64_t at = 0;
    for (int round = 0; round < 2; round++) {
        at = 0;
        for (uint32_t k = 0; k < n; k++) {
            int64_t bytes = kgen_elements(&pairs[k].from) * pairs[k].from.width;
            kgen_operand stage = pairs[k].to;
            stage.memory = OT_SCOPE_AUTO; /* no value is there: it stands for the stage */
            stage.is_local = false;
            stage.base = "stage";
            stage.dynamic = stage.origin = "";
            stage.constant = stage.low = at;
            stage.high = at + bytes;
            stage.map_rank = 0;
            kgen_dense(stage.dims, stage.rank, stage.stride);
            OT_TRY(round == 0 ? copy(g, &pairs[k].from, &stage) : copy(g, &stage, &pairs[k].to));
            at = (at + bytes + 15) / 16 * 16;
        }
    }
    g->stage_bytes = ot_max(g->stage_bytes, at);
    return OT_OK;
}

ot_status kgen_carry(kgen *g, const uint32_t *to, const uint32_t *from, uint32_t n)
{
    pair *pairs = OT_NEW_N(g->a, pair, n + 1u);
    uint32_t n_pairs = 0;
    bool crossed = false;
    if (!pairs) return ot_fail_nomem(g->d);
    for (uint32_t k = 0; k < n; k++) {
        pair *p = &pairs[n_pairs];
        /* nothing reads it */
        if (g->plan->lifetimes->buffers[g->plan->lifetimes->buffer_of[to[k]]].n_live == 0) continue;
        OT_TRY(kgen_locate(g, from[k], &p->from));
        OT_TRY(kgen_locate(g, to[k], &p->to));
        n_pairs += !same_place(&p->from, &p->to);
    }
    for (uint32_t i = 0; i < n_pairs; i++)
        for (uint32_t j = 0; j < n_pairs; j++)
            crossed = crossed || overlap(&pairs[i].from, &pairs[j].to);
    if (crossed) return copy_staged(g, pairs, n_pairs);
    for (uint32_t k = 0; k < n_pairs; k++) OT_TRY(copy(g, &pairs[k].from, &pairs[k].to));
    return OT_OK;
}
