/* Liveness of all variables, 64 at a time: one bit of a word each.
 *
 *   backward   a variable is needed before a point if the point reads it, or if it is needed after and not overwritten
 *   forward    a variable may be written after a point if the point writes it, or if it was before and was not forgotten
 *   live       needed and maybe written: it holds something that is read later
 *
 * Both are swept to their fixed points over the statements of the outermost blocks that touch any of the 64; variables are
 * numbered as they are defined, so these are few. In words and points the cost is what bit sets would cost, in memory it is one
 * word for each point instead of one set.
 *
 * The result are spans: of points, after which the variable is live (merge.c asks those), and of statements, at which it is
 * live or accessed, where a value alive around a back edge counts for the whole loop (plans ask those).
 */
#include "lifetime_internal.h"

#define CHUNK 64

/* What one point means for the 64 variables, and what holds there. */
typedef struct facts {
    uint64_t read, write, full, forget;
    uint64_t need_in, need_out;       /* read later, before it is overwritten */
    uint64_t written_in, written_out; /* maybe written */
} facts;

typedef struct sweep {
    lt_flow *f;
    facts *facts;           /* [f->n_points] */
    uint32_t *first, *last; /* [k->n_stmts] statements of the outermost block that holds one */
    uint64_t *around;       /* stack: alive around the back edges of the loops that are open */
    uint32_t v0;            /* number of the first variable */
    uint32_t n;             /* variables, at most 64 */
    uint32_t lo, hi;        /* points to look at, half-open */
    uint32_t stmt_lo, stmt_hi;
    lt_spans live[CHUNK], after[CHUNK];
    int64_t open[CHUNK];    /* begin of the span that is growing */
} sweep;

/* Does the statement's mate lie behind it? */
static bool opens(ot_tk_op op)
{
    return op == OT_TK_FOR || op == OT_TK_WHILE || op == OT_TK_IF || op == OT_TK_ELSE;
}

static void find_blocks(sweep *w)
{
    const ot_kernel *k = w->f->k;
    for (uint32_t i = 0; i < k->n_stmts;) {
        uint32_t end = i;
        while (opens(k->stmts[end].op)) end = k->stmts[end].mate;
        for (uint32_t j = i; j <= end; j++) {
            w->first[j] = i;
            w->last[j] = end;
        }
        i = end + 1;
    }
}

/* Fill in what the points do. false: nothing accesses these variables. */
static bool load_chunk(sweep *w)
{
    const lt_flow *f = w->f;
    uint32_t lo = OT_NONE, hi = 0; /* statements */
    for (uint32_t v = w->v0; v < w->v0 + w->n; v++) {
        const lt_var *var = &f->vars[v];
        if (!var->n_access) continue;
        uint32_t a = f->points[f->accesses[var->access[0]].point].stmt;
        uint32_t b = f->points[f->accesses[var->access[var->n_access - 1]].point].stmt;
        if (w->first[a] < lo) lo = w->first[a];
        if (w->last[b] > hi) hi = w->last[b];
    }
    if (lo == OT_NONE) return false;
    w->stmt_lo = lo;
    w->stmt_hi = hi + 1;
    w->lo = f->start[lo];
    w->hi = f->start[hi + 1];
    memset(w->facts + w->lo, 0, (w->hi - w->lo) * sizeof *w->facts);
    for (uint32_t v = w->v0; v < w->v0 + w->n; v++) {
        uint64_t bit = (uint64_t)1 << (v - w->v0);
        for (uint32_t i = 0; i < f->vars[v].n_access; i++) {
            const lt_access *a = &f->accesses[f->vars[v].access[i]];
            facts *x = &w->facts[a->point];
            if (a->what & LT_READ) x->read |= bit;
            if (a->what & LT_WRITE) x->write |= bit;
            if (a->what & LT_FULL) x->full |= bit;
            if (a->what & LT_FORGET) x->forget |= bit;
        }
    }
    return true;
}

static bool inside(const sweep *w, uint32_t p)
{
    return p >= w->lo && p < w->hi;
}

static void sweep_backward(sweep *w)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t p = w->hi; p-- > w->lo;) {
            facts *x = &w->facts[p];
            uint64_t out = 0;
            for (uint32_t j = 0; j < 2; j++) {
                uint32_t q = w->f->points[p].next[j];
                if (inside(w, q)) out |= w->facts[q].need_in;
            }
            uint64_t in = x->read | (out & ~(x->full | x->forget));
            changed = changed || in != x->need_in || out != x->need_out;
            x->need_in = in;
            x->need_out = out;
        }
    }
}

static void sweep_forward(sweep *w)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t p = w->lo; p < w->hi; p++) {
            facts *x = &w->facts[p];
            x->written_out = (x->written_in & ~x->forget) | x->write;
            for (uint32_t j = 0; j < 2; j++) {
                uint32_t q = w->f->points[p].next[j];
                if (!inside(w, q) || !(x->written_out & ~w->facts[q].written_in)) continue;
                w->facts[q].written_in |= x->written_out;
                changed = changed || q <= p;
            }
        }
    }
}

/* ---- spans ---- */

/* Bits that changed from `before` to `now` begin or end a span at x. */
static bool step(sweep *w, lt_spans *lists, uint64_t before, uint64_t now, int64_t x)
{
    for (uint64_t change = before ^ now; change; change &= change - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(change);
        lt_spans *l = &lists[i];
        if (now >> i & 1) {
            w->open[i] = x;
            continue;
        }
        ot_span s = {w->open[i], x};
        if (!OT_PUSH(w->f->arena, l->at, l->n, l->cap, s)) return false;
    }
    return true;
}

static bool after_spans(sweep *w)
{
    uint64_t before = 0;
    for (uint32_t p = w->lo; p < w->hi; p++) {
        uint64_t now = w->facts[p].need_out & w->facts[p].written_out;
        if (!step(w, w->after, before, now, p)) return false;
        before = now;
    }
    return step(w, w->after, before, 0, w->hi);
}

static bool live_spans(sweep *w)
{
    const lt_flow *f = w->f;
    uint64_t before = 0;
    uint32_t depth = 0;
    w->around[0] = 0;
    for (uint32_t i = w->stmt_lo; i < w->stmt_hi; i++) {
        const ot_tk_stmt *s = &f->k->stmts[i];
        uint64_t now = 0;
        if (s->op == OT_TK_FOR || s->op == OT_TK_WHILE) {
            bool back = f->points[f->latch[i]].next[1] != OT_NONE;
            uint64_t edge = back ? w->facts[f->body[i]].need_in & w->facts[f->latch[i]].written_out : 0;
            w->around[depth + 1] = w->around[depth] | edge;
            depth++;
        }
        for (uint32_t p = f->start[i]; p < f->start[i + 1]; p++) {
            const facts *x = &w->facts[p];
            now |= (x->need_in & x->written_in) | (x->need_out & x->written_out) | x->read | x->write;
        }
        now |= w->around[depth];
        if (s->op == OT_TK_END && f->k->stmts[s->mate].op != OT_TK_IF) depth--;
        if (!step(w, w->live, before, now, i)) return false;
        before = now;
    }
    return step(w, w->live, before, 0, w->stmt_hi);
}

static void unwritten_reads(const sweep *w)
{
    uint64_t seen = 0;
    for (uint32_t p = w->lo; p < w->hi; p++) {
        uint64_t reads = w->facts[p].read & ~w->facts[p].written_in & ~seen;
        seen |= reads;
        for (; reads; reads &= reads - 1) w->f->vars[w->v0 + (uint32_t)__builtin_ctzll(reads)].unwritten = p;
    }
}

static bool chunk(sweep *w)
{
    for (uint32_t i = 0; i < CHUNK; i++) w->live[i] = w->after[i] = (lt_spans){0};
    if (!load_chunk(w)) return true;
    sweep_backward(w);
    sweep_forward(w);
    unwritten_reads(w);
    if (!after_spans(w) || !live_spans(w)) return false;
    for (uint32_t i = 0; i < w->n; i++) {
        lt_var *v = &w->f->vars[w->v0 + i];
        v->live = w->live[i];
        v->after = w->after[i];
    }
    return true;
}

ot_status lt_liveness(lt_flow *f, ot_diag *d)
{
    sweep w = {.f = f};
    uint32_t depth = 0, deepest = 0;
    for (uint32_t i = 0; i < f->k->n_stmts; i++) {
        ot_tk_op op = f->k->stmts[i].op;
        if (op == OT_TK_FOR || op == OT_TK_WHILE || op == OT_TK_IF) depth++;
        if (op == OT_TK_END) depth--;
        if (depth > deepest) deepest = depth;
    }
    w.facts = OT_NEW_N(f->arena, facts, f->n_points);
    w.first = OT_NEW_N(f->arena, uint32_t, f->k->n_stmts);
    w.last = OT_NEW_N(f->arena, uint32_t, f->k->n_stmts);
    w.around = OT_NEW_N(f->arena, uint64_t, (size_t)deepest + 1);
    if (!w.facts || !w.first || !w.last || !w.around) return ot_fail_nomem(d);
    find_blocks(&w);
    for (size_t v = 0; v < f->n_vars; v += CHUNK) {
        w.v0 = (uint32_t)v;
        w.n = f->n_vars - v < CHUNK ? (uint32_t)(f->n_vars - v) : CHUNK;
        if (!chunk(&w)) return ot_fail_nomem(d);
    }
    return OT_OK;
}
