/* Liveness of all variables, 64 at a time: one bit of a word each.
 *
 *   backward   a variable is needed before a point if the point reads it, or if it is needed after
 *              and not overwritten
 *   forward    a variable may be written after a point if the point writes it, or if it was before
 *              and was not forgotten
 *   live       needed and maybe written: it holds something that is read later
 *   forward    a variable is surely written after a point if the point writes it, or if it was on
 *              every path to it: for warnings
 *
 * All are swept to their fixed points, but only over the points that access any of the 64 and
 * those where control flow parts and joins in the blocks around them: in the gaps between
 * nothing changes for the 64, and a block without an access is passed as if it was not there.
 *
 *   points       .  x  .  .  test  .  x  .  latch  .  test  .  latch  .  x  .        x: accesses
 *   looked at       x        test     x     latch                        x
 *
 * Variables are numbered as they are defined, so those of one word are accessed close to each
 * other, and all words together cost about as much as the accesses and the nesting.
 *
 * The result are spans: of points, after which the variable is live (merge.c asks those), and of
 * statements, at which it is live or accessed, where a value alive around a back edge counts for
 * the whole loop (plans ask those).
 */
#include "lifetime_internal.h"

#define CHUNK 64

/* What one point means for the 64 variables, and what holds there. */
typedef struct facts {
    uint32_t point;
    uint32_t next[2]; /* indices of facts, OT_NONE: none */
    bool early[2];    /* the edge leads to a point that is not looked at, and on to next */
    uint64_t read, write, full, forget;
    uint64_t need_in, need_out;       /* read later, before it is overwritten */
    uint64_t written_in, written_out; /* maybe written */
    uint64_t sure_in;                 /* written, by whatever path */
    /* maybe written in the gap before it, of points that are not looked at */
    uint64_t written_before;
} facts;

typedef struct sweep {
    lt_flow *f;
    facts *facts; /* [n] points looked at, ascending; room for all */
    uint32_t n;
    uint32_t *list; /* [n] their numbers; room for all */
    uint32_t *seen; /* [f->n_points] number of the last word that looked at one */
    /* [k->n_stmts] of FOR, WHILE, IF: of the last word that looked at the block */
    uint32_t *entered;
    uint64_t *around;    /* stack: alive around the back edges of the loops that are open */
    uint32_t v0, n_vars; /* number of the first variable; at most 64 */
    uint32_t word;       /* from 1 */
    lt_spans live[CHUNK], after[CHUNK];
    int64_t open[CHUNK]; /* begin of the span that is growing */
} sweep;

/* ---- what to look at ---- */

static void look_at(sweep *w, uint32_t point)
{
    if (w->seen[point] != w->word) w->list[w->n++] = point;
    w->seen[point] = w->word;
}

/* The points of a block where control flow parts or joins, then those of the blocks around it. */
static void look_around(sweep *w, uint32_t block)
{
    const lt_flow *f = w->f;
    const ot_tk_stmt *stmts = f->k->stmts;
    for (; block != OT_NONE && w->entered[block] != w->word; block = stmts[block].parent) {
        w->entered[block] = w->word;
        uint32_t mate = stmts[block].mate;
        if (stmts[block].op != OT_TK_IF) {
            look_at(w, f->body[block] - 1); /* the test */
            look_at(w, f->latch[block]);
            continue;
        }
        look_at(w, f->start[block]);
        if (stmts[mate].op == OT_TK_ELSE) {
            look_at(w, f->start[mate]); /* the jump */
            look_at(w, f->start[mate] + 1);
            mate = stmts[mate].mate;
        }
        look_at(w, f->start[mate]);
    }
}

static void look_at_access(sweep *w, const lt_access *a)
{
    const ot_tk_stmt *stmts = w->f->k->stmts;
    uint32_t stmt = w->f->points[a->point].stmt;
    look_at(w, a->point);
    ot_tk_op op = stmts[stmt].op;
    if (op == OT_TK_END)
        look_around(w, stmts[stmt].mate);
    else if (op == OT_TK_FOR || op == OT_TK_WHILE || op == OT_TK_IF)
        look_around(w, stmt);
    else
        look_around(w, stmts[stmt].parent);
}

static int by_number(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

/* Index of the first point looked at from `point` on; OT_NONE: none. */
static uint32_t index_from(const sweep *w, uint32_t point)
{
    uint32_t low = 0, high = w->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (w->facts[mid].point < point)
            low = mid + 1;
        else
            high = mid;
    }
    return low < w->n ? low : OT_NONE;
}

static void add_points(sweep *w)
{
    qsort(w->list, w->n, sizeof *w->list, by_number);
    for (uint32_t i = 0; i < w->n; i++) w->facts[i] = (facts){.point = w->list[i]};
    for (uint32_t i = 0; i < w->n; i++) {
        for (uint32_t j = 0; j < 2; j++) {
            uint32_t next = w->f->points[w->facts[i].point].next[j];
            uint32_t to = next == OT_NONE ? OT_NONE : index_from(w, next);
            w->facts[i].next[j] = to;
            w->facts[i].early[j] = to != OT_NONE && w->facts[to].point != next;
        }
    }
}

/* Collect the points, and fill in what they do. false: nothing accesses these variables. */
static bool load_chunk(sweep *w)
{
    const lt_flow *f = w->f;
    w->n = 0;
    for (uint32_t v = w->v0; v < w->v0 + w->n_vars; v++) {
        for (uint32_t i = 0; i < f->vars[v].n_access; i++)
            look_at_access(w, &f->accesses[f->vars[v].access[i]]);
    }
    if (!w->n) return false;
    add_points(w);
    for (uint32_t v = w->v0; v < w->v0 + w->n_vars; v++) {
        uint64_t bit = (uint64_t)1 << (v - w->v0);
        for (uint32_t i = 0; i < f->vars[v].n_access; i++) {
            const lt_access *a = &f->accesses[f->vars[v].access[i]];
            facts *x = &w->facts[index_from(w, a->point)];
            if (a->what & LT_READ) x->read |= bit;
            if (a->what & LT_WRITE) x->write |= bit;
            if (a->what & LT_FULL) x->full |= bit;
            if (a->what & LT_FORGET) x->forget |= bit;
        }
    }
    return true;
}

/* ---- fixed points ---- */

static void sweep_backward(sweep *w)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = w->n; i-- > 0;) {
            facts *x = &w->facts[i];
            uint64_t out = 0;
            for (uint32_t j = 0; j < 2; j++) {
                if (x->next[j] != OT_NONE) out |= w->facts[x->next[j]].need_in;
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
        for (uint32_t i = 0; i < w->n; i++) {
            facts *x = &w->facts[i];
            x->written_out = (x->written_in & ~x->forget) | x->write;
            for (uint32_t j = 0; j < 2; j++) {
                if (x->next[j] == OT_NONE) continue;
                facts *next = &w->facts[x->next[j]];
                changed = changed || (x->next[j] <= i && (x->written_out & ~next->written_in));
                next->written_in |= x->written_out;
                if (x->early[j]) next->written_before |= x->written_out;
            }
        }
    }
}

/* What every path to a point writes: first all is taken to be, then what some path leaves out goes.
 */
static void sweep_sure(sweep *w)
{
    for (uint32_t i = 0; i < w->n; i++) w->facts[i].sure_in = i > 0 ? UINT64_MAX : 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < w->n; i++) {
            const facts *x = &w->facts[i];
            const uint64_t out = (x->sure_in & ~x->forget) | x->write;
            for (uint32_t j = 0; j < 2; j++) {
                if (x->next[j] == OT_NONE) continue;
                facts *next = &w->facts[x->next[j]];
                changed = changed || (x->next[j] <= i && (next->sure_in & ~out));
                next->sure_in &= out;
            }
        }
    }
}

/* ---- spans ---- */

/* Bits that change from *before to `now` begin or end a span at x. */
static bool step(sweep *w, lt_spans *lists, uint64_t *before, uint64_t now, int64_t x)
{
    for (uint64_t change = *before ^ now; change; change &= change - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(change);
        lt_spans *l = &lists[i];
        if (now >> i & 1) {
            w->open[i] = x;
            continue;
        }
        ot_span s = {w->open[i], x};
        if (!OT_PUSH(w->f->arena, l->at, l->n, l->cap, s)) return false;
    }
    *before = now;
    return true;
}

static uint64_t live_out(const facts *x) { return x->need_out & x->written_out; }

/* In the gap before point i. What is written may be less than at i, where branches may join. */
static uint64_t live_before(const sweep *w, uint32_t i)
{
    return i < w->n ? w->facts[i].written_before & w->facts[i].need_in : 0;
}

static bool after_spans(sweep *w)
{
    uint64_t now = 0;
    int64_t done = 0; /* points before this one have their bits */
    for (uint32_t i = 0; i < w->n; i++) {
        const facts *x = &w->facts[i];
        if (x->point > done && !step(w, w->after, &now, live_before(w, i), done)) return false;
        if (!step(w, w->after, &now, live_out(x), x->point)) return false;
        done = (int64_t)x->point + 1;
    }
    return step(w, w->after, &now, 0, done);
}

/* The statement of a point; of the jump at the end of an if's first branch: ELSE. */
static uint32_t owner(const lt_flow *f, uint32_t point)
{
    uint32_t stmt = f->points[point].stmt;
    return point < f->start[stmt + 1] ? stmt : stmt + 1;
}

/* All that is live or accessed at the points of the statement that point *at belongs to; *at:
 * the next statement's. */
static uint64_t live_at(const sweep *w, uint32_t *at)
{
    uint64_t live = 0;
    uint32_t stmt = owner(w->f, w->facts[*at].point);
    for (; *at < w->n && owner(w->f, w->facts[*at].point) == stmt; ++*at) {
        const facts *x = &w->facts[*at];
        /* A jump is none of ELSE; what is live there is live at the statement before, too. */
        if (w->f->points[x->point].stmt == stmt) live |= live_out(x) | x->read | x->write;
    }
    return live;
}

/* Alive around the back edge of a loop. */
static uint64_t around(const sweep *w, uint32_t loop)
{
    const lt_flow *f = w->f;
    if (f->points[f->latch[loop]].next[1] == OT_NONE) return 0;
    return w->facts[index_from(w, f->body[loop])].need_in &
           w->facts[index_from(w, f->latch[loop])].written_out;
}

static bool live_spans(sweep *w)
{
    const ot_tk_stmt *stmts = w->f->k->stmts;
    uint64_t now = 0;
    uint32_t depth = 0;
    int64_t done = 0; /* statements before this one have their bits */
    w->around[0] = 0;
    for (uint32_t at = 0; at < w->n;) {
        uint32_t i = owner(w->f, w->facts[at].point);
        ot_tk_op op = stmts[i].op;
        if (i > done && !step(w, w->live, &now, live_before(w, at) | w->around[depth], done))
            return false;
        if (op == OT_TK_FOR || op == OT_TK_WHILE) {
            w->around[depth + 1] = w->around[depth] | around(w, i);
            depth++;
        }
        if (!step(w, w->live, &now, live_at(w, &at) | w->around[depth], i)) return false;
        if (op == OT_TK_END && stmts[stmts[i].mate].op != OT_TK_IF) depth--;
        done = (int64_t)i + 1;
    }
    return step(w, w->live, &now, 0, done);
}

static void unwritten_reads(const sweep *w)
{
    uint64_t seen = 0, unsure = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        const facts *x = &w->facts[i];
        uint64_t reads = x->read & ~x->written_in & ~seen,
                 some = x->read & x->written_in & ~x->sure_in & ~unsure;
        seen |= reads;
        unsure |= some;
        for (; reads; reads &= reads - 1)
            w->f->vars[w->v0 + (uint32_t)__builtin_ctzll(reads)].unwritten = x->point;
        for (; some; some &= some - 1)
            w->f->vars[w->v0 + (uint32_t)__builtin_ctzll(some)].unsure = x->point;
    }
}

static bool chunk(sweep *w)
{
    for (uint32_t i = 0; i < CHUNK; i++) w->live[i] = w->after[i] = (lt_spans){0};
    if (!load_chunk(w)) return true;
    sweep_backward(w);
    sweep_forward(w);
    sweep_sure(w);
    unwritten_reads(w);
    if (!after_spans(w) || !live_spans(w)) return false;
    for (uint32_t i = 0; i < w->n_vars; i++) {
        lt_var *v = &w->f->vars[w->v0 + i];
        v->live = w->live[i];
        v->after = w->after[i];
    }
    return true;
}

static uint32_t deepest(const ot_kernel *k)
{
    uint32_t depth = 0, most = 0;
    for (uint32_t i = 0; i < k->n_stmts; i++) {
        ot_tk_op op = k->stmts[i].op;
        if (op == OT_TK_FOR || op == OT_TK_WHILE || op == OT_TK_IF) depth++;
        if (op == OT_TK_END) depth--;
        if (depth > most) most = depth;
    }
    return most;
}

ot_status lt_liveness(lt_flow *f, ot_diag *d)
{
    sweep w = {.f = f};
    w.facts = OT_NEW_N(f->arena, facts, f->n_points);
    w.list = OT_NEW_N(f->arena, uint32_t, f->n_points);
    w.seen = OT_NEW_N(f->arena, uint32_t, f->n_points);
    w.entered = OT_NEW_N(f->arena, uint32_t, f->k->n_stmts);
    w.around = OT_NEW_N(f->arena, uint64_t, (size_t)deepest(f->k) + 1);
    if (!w.facts || !w.list || !w.seen || !w.entered || !w.around) return ot_fail_nomem(d);
    for (size_t v = 0; v < f->n_vars; v += CHUNK) {
        w.v0 = (uint32_t)v;
        w.n_vars = f->n_vars - v < CHUNK ? (uint32_t)(f->n_vars - v) : CHUNK;
        w.word++;
        if (!chunk(&w)) return ot_fail_nomem(d);
    }
    return OT_OK;
}
