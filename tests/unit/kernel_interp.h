/* Runs a planned kernel twice at once, statement by statement:
 *
 *   ideal   every alloc, carried value and result has a storage of its own, without end; copies are
 *           by value
 *   real    one array of bytes for each memory; a value is where the plan has put it
 *
 * A byte is a tag. Every write makes new ones, in both; every read compares them. What the ideal
 * machine has never written may be anything. The real machine is as hostile as the contract
 * allows: an operation writes its output before it reads those inputs that it must not
 * overwrite; a buffer is filled with poison when the run comes to a statement at which it is not
 * alive; several values are carried over without any memory but the plan's.
 *
 * It also notes at which statements each buffer really held something: between a write and a
 * later read of it.
 */
#ifndef KERNEL_INTERP_H
#define KERNEL_INTERP_H

#include "tk/planmem/planmem.h"

#define KI_BYTES_MAX  512 /* of one value */
#define KI_VALUES_MAX 8192
#define KI_STEPS_MAX  6000 /* then a run ends early */
#define KI_POISON     ((uint64_t)1 << 63)

/* Where the plan has put the buffers. */
typedef struct ki_layout {
    const ot_lifetimes *lifetimes;
    int64_t (*offsets)[OT_TK_MULTI_MAX]; /* [n_buffers] per slot */
    const uint32_t *multi;               /* [n_buffers] */
    bool restricted;                     /* in-place rules of the instruction set */
} ki_layout;

typedef struct ki_step {
    uint32_t stmt;
    uint32_t back; /* the loop whose back edge led here, or OT_NONE */
} ki_step;

typedef struct ki {
    const ot_kernel *k;
    const ki_layout *lay;
    ot_arena *arena;
    uint64_t random;
    uint64_t tag;                   /* of the next write */
    uint64_t *ideal[KI_VALUES_MAX]; /* [k->n_values] of roots: tags, 0: never written */
    uint32_t *since[KI_VALUES_MAX]; /* step of the write */
    uint64_t *memory[OT_SCOPE_COUNT];
    int64_t height[OT_SCOPE_COUNT];
    uint32_t *touched; /* [n_touched] buffers that are alive at all */
    uint32_t n_touched;
    bool *was_live; /* [n_buffers] at the statement before */
    /* [k->n_stmts] of loops under way: iterations to do, the current one; -1: not under way */
    int64_t *trips, *turn;
    bool *used; /* [k->n_values] results that are read */
    ki_step *steps;
    uint32_t n_steps;
    bool *held;      /* [n_buffers * n_stmts] or NULL */
    char error[300]; /* empty: all reads were right */
} ki;

static uint64_t ki_rnd(ki *m, uint64_t n)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random % n;
}

static void ki_fail(ki *m, uint32_t v, const char *what)
{
    if (m->error[0]) return;
    uint32_t stmt = m->steps[m->n_steps - 1].stmt;
    snprintf(m->error, sizeof m->error, "line %u (statement %u, step %u): '%s' %s",
             m->k->stmts[stmt].line, stmt, m->n_steps, m->k->values[v].name, what);
}

static uint32_t ki_root(const ki *m, uint32_t v)
{
    while (m->k->values[v].base != OT_NONE) v = m->k->values[v].base;
    return v;
}

static bool ki_is_param(const ki *m, uint32_t v)
{
    return m->k->values[ki_root(m, v)].kind == OT_TK_PARAM;
}

/* ---- bytes of values ---- */

static int64_t ki_eval(const ki *m, const ot_tk_affine *a)
{
    int64_t x = a->constant;
    for (uint32_t t = 0; t < a->n; t++) {
        for (uint32_t i = 0; i < m->k->n_stmts; i++) {
            const ot_tk_stmt *s = &m->k->stmts[i];
            if (s->op == OT_TK_FOR && m->turn[i] >= 0 && strcmp(s->var, a->terms[t].var) == 0)
                x += a->terms[t].coef * (s->lo + m->turn[i] * s->step);
        }
    }
    return x;
}

/* Bytes of a window of a tensor, row by row, as far as they are inside; each is given as
 * bytes[byte of the tensor]. */
static uint32_t ki_window(const ki *m, const ot_tk_value *tensor, const ot_tk_range *r,
                          const uint32_t *bytes, uint32_t *out)
{
    int64_t width = ot_tk_dtype_bits(tensor->dtype) / 8, n = tensor->bytes / width;
    uint32_t found = 0;
    for (int64_t e = 0; e < n; e++) {
        int64_t rest = e;
        bool in = true;
        for (uint32_t d = tensor->rank; d-- > 0;) {
            int64_t at = rest % tensor->dims[d];
            rest /= tensor->dims[d];
            in = in && at >= ki_eval(m, &r[d].lo) && at < ki_eval(m, &r[d].hi);
        }
        for (int64_t b = 0; b < width && in; b++) out[found++] = bytes[e * width + b];
    }
    return found;
}

/* Bytes of v as bytes of its root, in v's order; returns their number. */
static uint32_t ki_bytes(const ki *m, uint32_t v, uint32_t *out)
{
    const ot_tk_value *x = &m->k->values[v];
    if (x->base == OT_NONE) {
        for (uint32_t i = 0; i < x->bytes; i++) out[i] = i;
        return (uint32_t)x->bytes;
    }
    uint32_t base[KI_BYTES_MAX];
    uint32_t n = ki_bytes(m, x->base, base);
    if (x->kind == OT_TK_SUBVIEW) return ki_window(m, &m->k->values[x->base], x->ranges, base, out);
    n = n < x->bytes ? n : (uint32_t)x->bytes;
    memcpy(out, base, n * sizeof *out);
    return n;
}

/* Address of a buffer in its memory now. */
static int64_t ki_address(const ki *m, uint32_t buffer)
{
    const ot_buffer *b = &m->lay->lifetimes->buffers[buffer];
    int64_t turn = b->loop == OT_NONE || m->turn[b->loop] < 0 ? 0 : m->turn[b->loop];
    return m->lay->offsets[buffer][turn % m->lay->multi[buffer]];
}

static uint64_t *ki_real(const ki *m, uint32_t root)
{
    uint32_t buffer = m->lay->lifetimes->buffer_of[root];
    return m->memory[m->lay->lifetimes->buffers[buffer].scope] + ki_address(m, buffer);
}

/* ---- reads and writes ---- */

static void ki_hold(ki *m, uint32_t root, uint32_t from)
{
    if (!m->held) return;
    bool *held = m->held + (size_t)m->lay->lifetimes->buffer_of[root] * m->k->n_stmts;
    for (uint32_t s = from; s < m->n_steps; s++) {
        held[m->steps[s].stmt] = true;
        if (s == from || m->steps[s].back == OT_NONE) continue;
        for (uint32_t i = m->steps[s].back; i <= m->k->stmts[m->steps[s].back].mate; i++)
            held[i] = true;
    }
}

/* Compare one byte; `want` is its tag on the ideal machine. */
static void ki_compare(ki *m, uint32_t v, uint32_t root, uint32_t byte, uint64_t want)
{
    uint64_t got = ki_real(m, root)[byte];
    if (want && got != want)
        ki_fail(m, v,
                got & KI_POISON ? "is read when it is not alive"
                                : "was overwritten before it is read");
}

static void ki_note_read(ki *m, uint32_t root, const uint32_t *bytes, uint32_t n)
{
    uint32_t from = m->n_steps - 1;
    for (uint32_t i = 0; i < n; i++) {
        if (m->ideal[root][bytes[i]] && m->since[root][bytes[i]] < from)
            from = m->since[root][bytes[i]];
    }
    ki_hold(m, root, from);
}

static void ki_write_byte(ki *m, uint32_t root, uint32_t byte)
{
    uint64_t tag = ++m->tag;
    m->ideal[root][byte] = tag;
    m->since[root][byte] = m->n_steps - 1;
    ki_real(m, root)[byte] = tag;
}

typedef struct ki_operand {
    uint32_t v, root, n;
    uint32_t bytes[KI_BYTES_MAX];
    uint64_t want[KI_BYTES_MAX]; /* inputs: tags on the ideal machine */
    bool streamed;               /* an input that is read byte by byte, each before the output's */
    /* an input in the storage that the statement itself names as output */
    bool early;
} ki_operand;

static void ki_read_all(ki *m, const ki_operand *x)
{
    for (uint32_t i = 0; i < x->n; i++) ki_compare(m, x->v, x->root, x->bytes[i], x->want[i]);
}

static void ki_load_operand(ki *m, ki_operand *x, uint32_t v)
{
    x->v = v;
    x->root = ki_root(m, v);
    x->n = ki_bytes(m, v, x->bytes);
    for (uint32_t i = 0; i < x->n; i++) x->want[i] = m->ideal[x->root][x->bytes[i]];
}

static bool ki_streams(const ki *m, const ot_tk_stmt *s, uint32_t in)
{
    if (s->op != OT_TK_COMPUTE || s->n_out != 1 ||
        !ot_in_place_rule(s->name, in, m->lay->restricted))
        return false;
    const ot_tk_value *a = &m->k->values[s->in[in]], *o = &m->k->values[s->out[0]];
    return a->bytes == o->bytes && ot_tk_dtype_bits(a->dtype) == ot_tk_dtype_bits(o->dtype);
}

/* Bytes that the statement writes of its output `j`. */
static void ki_written(const ki *m, const ot_tk_stmt *s, uint32_t j, ki_operand *x)
{
    x->v = s->out[j];
    x->root = ki_root(m, x->v);
    x->n = ki_bytes(m, x->v, x->bytes);
    const ot_tk_value *out = &m->k->values[x->v];
    uint32_t width = ot_tk_dtype_bits(out->dtype) / 8;
    if (s->op == OT_TK_COMPUTE) return;
    if (s->op == OT_TK_STORE && s->ranges) {
        uint32_t all[KI_BYTES_MAX];
        memcpy(all, x->bytes, sizeof all);
        x->n = ki_window(m, out, s->ranges, all, x->bytes);
        return;
    }
    int64_t moved = 1;
    const ot_tk_value *in = &m->k->values[s->in[0]];
    for (uint32_t d = 0; d < in->rank; d++)
        moved *= s->op == OT_TK_LOAD && s->ranges
                     ? s->ranges[d].hi.constant - s->ranges[d].lo.constant
                     : in->dims[d];
    if (moved * width < x->n) x->n = (uint32_t)(moved * width);
}

/* load, store, copy, compute */
static void ki_execute(ki *m, const ot_tk_stmt *s)
{
    static ki_operand in[8], out[2];
    uint32_t n_in = 0, n_out = 0;
    for (uint32_t j = 0; j < s->n_out; j++) {
        if (!ki_is_param(m, s->out[j])) ki_written(m, s, j, &out[n_out++]);
    }
    for (uint32_t j = 0; j < s->n_in; j++) {
        if (ki_is_param(m, s->in[j])) continue;
        ki_operand *x = &in[n_in++];
        ki_load_operand(m, x, s->in[j]);
        x->streamed = n_out == 1 && ki_streams(m, s, j) && x->n == out[0].n;
        x->early = false;
        for (uint32_t o = 0; o < n_out; o++) x->early = x->early || out[o].root == x->root;
        ki_note_read(m, x->root, x->bytes, x->n);
        if (x->early && !x->streamed) ki_read_all(m, x);
    }
    for (uint32_t o = 0; o < n_out; o++) {
        for (uint32_t i = 0; i < out[o].n; i++) {
            for (uint32_t j = 0; j < n_in; j++) {
                if (in[j].streamed)
                    ki_compare(m, in[j].v, in[j].root, in[j].bytes[i], in[j].want[i]);
            }
            ki_write_byte(m, out[o].root, out[o].bytes[i]);
        }
        ki_hold(m, out[o].root, m->n_steps - 1);
    }
    for (uint32_t j = 0; j < n_in; j++) {
        if (!in[j].streamed && !in[j].early) ki_read_all(m, &in[j]);
    }
}

/* ---- carried values ---- */

typedef struct ki_move {
    uint32_t to; /* carried value or result */
    ki_operand from;
    bool done;
    bool defined;     /* any byte of it: else it may be overwritten before it is moved */
    uint64_t *parked; /* in the plan's own memory for it: read from there */
} ki_move;

static bool ki_overlap(const ki *m, const uint64_t *a, uint32_t va, const uint64_t *b, uint32_t vb)
{
    return a < b + m->k->values[vb].bytes && b < a + m->k->values[va].bytes;
}

/* May move i write now: is no other value to be moved in its way? */
static bool ki_may_move(const ki *m, const ki_move *moves, uint32_t n, uint32_t i)
{
    uint64_t *to = ki_real(m, moves[i].to);
    const ki_operand *from = &moves[i].from;
    bool first_bytes = from->n > 0 && from->bytes[0] == 0 &&
                       from->bytes[from->n - 1] == from->n - 1;
    /* nothing moves */
    if (first_bytes && !moves[i].parked && to == ki_real(m, from->root)) return true;
    for (uint32_t j = 0; j < n; j++) {
        if (j == i || moves[j].done || moves[j].parked || !moves[j].defined) continue;
        if (ki_overlap(m, to, moves[i].to, ki_real(m, moves[j].from.root), moves[j].from.root))
            return false;
    }
    return true;
}

static void ki_move_one(ki *m, ki_move *x)
{
    uint64_t *to = ki_real(m, x->to), value[KI_BYTES_MAX];
    if (!x->parked) ki_read_all(m, &x->from);
    for (uint32_t i = 0; i < x->from.n; i++)
        value[i] = x->parked ? x->parked[i] : ki_real(m, x->from.root)[x->from.bytes[i]];
    memcpy(to, value, x->from.n * sizeof *to);
    x->done = true;
}

/* Put a value that nothing may overwrite yet where the plan keeps it meanwhile. */
static bool ki_park(ki *m, ki_move *x)
{
    const ot_lifetimes *l = m->lay->lifetimes;
    for (uint32_t b = 0; b < l->n_buffers && !x->done && !x->parked; b++) {
        for (uint32_t i = 0; i < l->buffers[b].n_values; i++) {
            if (l->buffers[b].values[i] != x->to || l->buffer_of[x->to] == b) continue;
            ki_read_all(m, &x->from);
            x->parked = m->memory[l->buffers[b].scope] + ki_address(m, b);
            for (uint32_t j = 0; j < x->from.n; j++)
                x->parked[j] = ki_real(m, x->from.root)[x->from.bytes[j]];
            ki_hold(m, x->to, m->n_steps - 1);
            return true;
        }
    }
    return false;
}

/* to[j] = from[j], all at once. `late`: the ideal machine writes at the next step. */
static void ki_move_all(ki *m, const uint32_t *to, const uint32_t *from, uint32_t n, bool late)
{
    static ki_move moves[8];
    uint32_t left = 0;
    for (uint32_t j = 0; j < n; j++) {
        if (m->k->values[to[j]].kind == OT_TK_RESULT && !m->used[to[j]]) continue;
        ki_move *x = &moves[left++];
        *x = (ki_move){.to = to[j]};
        ki_load_operand(m, &x->from, from[j]);
        ki_note_read(m, x->from.root, x->from.bytes, x->from.n);
        for (uint32_t i = 0; i < x->from.n; i++) x->defined = x->defined || x->from.want[i];
    }
    n = left;
    while (left) {
        uint32_t before = left;
        for (uint32_t j = 0; j < n; j++) {
            if (moves[j].done || !ki_may_move(m, moves, n, j)) continue;
            ki_move_one(m, &moves[j]);
            left--;
        }
        bool parked = false;
        for (uint32_t j = 0; j < n && left == before && !parked; j++)
            parked = ki_park(m, &moves[j]);
        if (left == before && !parked) {
            ki_fail(m, moves[0].to,
                    "and others cannot be carried over: each is in the way of another");
            return;
        }
    }
    for (uint32_t j = 0; j < n; j++) {
        for (uint32_t i = 0; i < moves[j].from.n; i++) {
            m->ideal[moves[j].to][i] = moves[j].from.want[i];
            m->since[moves[j].to][i] = m->n_steps - 1 + late;
        }
        if (!late) ki_hold(m, moves[j].to, m->n_steps - 1);
    }
}

/* ---- control ---- */

static bool ki_live_at(const ot_buffer *b, uint32_t stmt)
{
    for (uint32_t i = 0; i < b->n_live; i++) {
        if (stmt >= b->live[i].lower && stmt < b->live[i].upper) return true;
    }
    return false;
}

static void ki_arrive(ki *m, uint32_t stmt, uint32_t back)
{
    m->steps[m->n_steps++] = (ki_step){stmt, back};
    for (uint32_t i = 0; i < m->n_touched; i++) {
        uint32_t b = m->touched[i];
        const ot_buffer *x = &m->lay->lifetimes->buffers[b];
        bool live = ki_live_at(x, stmt);
        for (uint32_t k = 0; k < m->lay->multi[b] && m->was_live[b] && !live; k++) {
            uint64_t *at = m->memory[x->scope] + m->lay->offsets[b][k];
            for (int64_t j = 0; j < x->size; j++) at[j] = KI_POISON | stmt;
        }
        m->was_live[b] = live;
    }
}

static void ki_read_condition(ki *m, const ot_tk_stmt *s)
{
    static ki_operand x;
    if (!s->has_condition || ki_is_param(m, s->in[s->n_in - 1])) return;
    ki_load_operand(m, &x, s->in[s->n_in - 1]);
    ki_note_read(m, x.root, x.bytes, x.n);
    ki_read_all(m, &x);
}

static int64_t ki_trips(ki *m, const ot_tk_stmt *s)
{
    if (s->op == OT_TK_WHILE || s->hi == -1) return (int64_t)ki_rnd(m, 4);
    return s->hi > s->lo ? ot_ceil_div(s->hi - s->lo, s->step) : 0;
}

/* Leave the loop: results are written at its END. */
static void ki_leave(ki *m, uint32_t loop)
{
    const ot_tk_stmt *s = &m->k->stmts[loop];
    m->turn[loop] = -1;
    ki_move_all(m, s->out, s->carried, s->n_out, false);
}

static uint32_t ki_enter(ki *m, uint32_t i)
{
    const ot_tk_stmt *s = &m->k->stmts[i];
    ki_move_all(m, s->carried, s->in, s->n_out, false);
    ki_read_condition(m, s);
    m->trips[i] = ki_trips(m, s);
    if (m->trips[i] > 0) {
        m->turn[i] = 0;
        return i + 1;
    }
    ki_arrive(m, s->mate, OT_NONE);
    ki_leave(m, i);
    return s->mate + 1;
}

/* At the END of a loop; the next statement, *back the loop if by its back edge. */
static uint32_t ki_repeat(ki *m, uint32_t i, uint32_t *back)
{
    uint32_t loop = m->k->stmts[i].mate;
    for (uint32_t j = 0; j < m->k->stmts[loop].n_out; j++)
        ki_hold(m, m->k->stmts[loop].carried[j], m->n_steps - 1);
    ki_read_condition(m, &m->k->stmts[loop]);
    if (++m->turn[loop] < m->trips[loop]) {
        *back = loop;
        return loop + 1;
    }
    ki_leave(m, loop);
    return i + 1;
}

/* Execute statement i; returns the next. */
static uint32_t ki_stmt(ki *m, uint32_t i, uint32_t *back)
{
    const ot_tk_stmt *s = &m->k->stmts[i];
    if (s->op == OT_TK_ELSE) return s->mate; /* the first branch ends here */
    ki_arrive(m, i, *back);
    *back = OT_NONE;
    switch (s->op) {
    case OT_TK_ALLOC:
        memset(m->ideal[s->out[0]], 0, (size_t)m->k->values[s->out[0]].bytes * sizeof(uint64_t));
        return i + 1;
    case OT_TK_FREE:
    case OT_TK_WAIT: /* one thing after the other here: nothing to wait for */
    case OT_TK_ARRIVE:
    case OT_TK_FENCE:
    case OT_TK_CHECK:
    case OT_TK_VIEW: return i + 1;
    case OT_TK_LOAD:
    case OT_TK_STORE:
    case OT_TK_COPY:
    case OT_TK_COMPUTE: ki_execute(m, s); return i + 1;
    case OT_TK_FOR:
    case OT_TK_WHILE: return ki_enter(m, i);
    case OT_TK_IF:
        ki_read_condition(m, s);
        if (ki_rnd(m, 2)) return i + 1;
        if (m->k->stmts[s->mate].op == OT_TK_END) return s->mate;
        ki_arrive(m, s->mate, OT_NONE);
        return s->mate + 1;
    case OT_TK_YIELD: {
        const ot_tk_stmt *opener = &m->k->stmts[s->mate];
        bool loop = opener->op != OT_TK_IF;
        ki_move_all(m, loop ? opener->carried : opener->out, s->in, s->n_in, loop);
        return i + 1;
    }
    case OT_TK_ELSE: break;
    case OT_TK_END: return m->k->stmts[s->mate].op == OT_TK_IF ? i + 1 : ki_repeat(m, i, back);
    }
    return i + 1;
}

static void ki_find_used(ki *m)
{
    for (uint32_t i = 0; i < m->k->n_stmts; i++) {
        const ot_tk_stmt *s = &m->k->stmts[i];
        if (s->op == OT_TK_VIEW) continue;
        bool block = s->op == OT_TK_FOR || s->op == OT_TK_WHILE || s->op == OT_TK_IF;
        for (uint32_t j = 0; j < s->n_in; j++) m->used[ki_root(m, s->in[j])] = true;
        for (uint32_t j = 0; j < s->n_out && !block; j++) m->used[ki_root(m, s->out[j])] = true;
    }
}

/* Run once; m->error says what went wrong. `held`: [n_buffers * n_stmts], added to, or NULL. */
static void ki_run(ki *m, const ot_kernel *k, const ki_layout *lay, uint64_t random, bool *held)
{
    const ot_lifetimes *l = lay->lifetimes;
    *m = (ki){.k = k,
              .lay = lay,
              .arena = ot_arena_new(),
              .random = random * 0x9E3779B97F4A7C15u + 1,
              .held = held};
    if (k->n_values > KI_VALUES_MAX) abort();
    m->was_live = OT_NEW_N(m->arena, bool, l->n_buffers + 1);
    m->trips = OT_NEW_N(m->arena, int64_t, k->n_stmts + 1);
    m->turn = OT_NEW_N(m->arena, int64_t, k->n_stmts + 1);
    m->used = OT_NEW_N(m->arena, bool, k->n_values + 1);
    m->steps = OT_NEW_N(m->arena, ki_step, KI_STEPS_MAX + 200);
    for (uint32_t i = 0; i < k->n_stmts; i++) m->turn[i] = -1;
    int64_t bytes = 0;
    for (uint32_t v = 0; v < k->n_values; v++) {
        if (k->values[v].bytes > KI_BYTES_MAX && k->values[v].kind != OT_TK_PARAM) abort();
        bytes += k->values[v].bytes;
    }
    uint64_t *ideal = OT_NEW_N(m->arena, uint64_t, bytes);
    uint32_t *since = OT_NEW_N(m->arena, uint32_t, bytes);
    for (uint32_t v = 0; v < k->n_values;
         ideal += k->values[v].bytes, since += k->values[v++].bytes) {
        m->ideal[v] = ideal;
        m->since[v] = since;
    }
    m->touched = OT_NEW_N(m->arena, uint32_t, l->n_buffers + 1);
    for (uint32_t b = 0; b < l->n_buffers; b++) {
        const ot_buffer *x = &l->buffers[b];
        if (!x->n_live) continue;
        m->touched[m->n_touched++] = b;
        for (uint32_t s = 0; s < lay->multi[b]; s++)
            m->height[x->scope] = ot_max(m->height[x->scope], lay->offsets[b][s] + x->size);
    }
    for (int s = 0; s < OT_SCOPE_COUNT; s++) {
        m->memory[s] = OT_NEW_N(m->arena, uint64_t, m->height[s]);
        for (int64_t i = 0; i < m->height[s]; i++) m->memory[s][i] = KI_POISON;
    }
    ki_find_used(m);
    uint32_t back = OT_NONE;
    for (uint32_t i = 0; i < k->n_stmts && m->n_steps < KI_STEPS_MAX && !m->error[0];)
        i = ki_stmt(m, i, &back);
    ot_arena_free(m->arena);
}

#endif
