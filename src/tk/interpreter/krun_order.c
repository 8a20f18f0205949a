/* Order: which of two accesses to one byte is surely done when the other begins.
 *
 * Agents do one thing after the other: each stream, and the rest of the kernel as one agent, or,
 * with sync=explicit, each pipe. An agent's clock tells how many operations of every agent are
 * done as far as it knows. A transfer in a stream knows what the statement's agent knew; a wait
 * teaches the one that waits; a barrier passes on what arrived.
 *
 *   load a <- x stream=in     in 1     {in: 1}
 *   b = vector.relu(a)        main 1   {main: 1}         reads a, and does not know of in 1: a race
 *   wait in                            {main: 1, in: 1}
 *   c = vector.relu(a)        main 2   {main: 2, in: 1}  ordered
 *
 * Accesses that some agent does not know to be done are kept, one a statement and place.
 * Iterations of a parallel loop know nothing of each other: what two of them touch, one writing,
 * must be their own (allocated inside the loop).
 */
#include "krun_internal.h"

static bool is_access(const ot_tk_stmt *s)
{
    return s->op == OT_TK_LOAD || s->op == OT_TK_STORE || s->op == OT_TK_COPY ||
           s->op == OT_TK_COMPUTE;
}

static uint32_t stream_number(const krun_order *o, const char *name)
{
    uint32_t k = 0;
    while (k < o->n_streams && strcmp(o->streams[k].name, name) != 0) k++;
    return k;
}

ot_status krun_order_init(krun *m)
{
    krun_order *o = &m->order;
    o->pipes = m->k->explicit_sync;
    o->on = o->pipes;
    uint32_t n = 0;
    for (uint32_t v = 0; v < m->k->n_values; v++) n += krun_value(m, v)->arrive > 0;
    if (n > KRUN_BARRIERS_MAX)
        return ot_fail(m->d, OT_E_INPUT, "%s: %u barriers, at most %d are run [barrier-number]",
                       m->path, n, KRUN_BARRIERS_MAX);
    o->streams = OT_NEW_N(m->a, krun_stream, OT_TK_STREAMS_MAX);
    o->barriers = OT_NEW_N(m->a, krun_barrier, n + 1u);
    if (!o->streams || !o->barriers) return ot_fail_nomem(m->d);
    for (uint32_t v = 0; v < m->k->n_values; v++)
        if (krun_value(m, v)->arrive > 0) o->barriers[o->n_barriers++].value = v;
    o->used[0] = !o->pipes;
    for (uint32_t i = 0; i < m->k->n_stmts; i++) {
        const ot_tk_stmt *s = &m->k->stmts[i];
        if (o->pipes && (is_access(s) || s->op == OT_TK_WAIT || s->op == OT_TK_ARRIVE))
            o->used[s->pipe] = true;
        o->on = o->on || s->parallel || s->stream;
        if (!s->stream || s->op == OT_TK_WAIT) continue;
        uint32_t k = stream_number(o, s->stream);
        o->streams[k].name = s->stream;
        if (k == o->n_streams) o->n_streams++;
        o->used[OT_PIPE_COUNT + k] = true;
    }
    return OT_OK;
}

/* ---- clocks ---- */

static void learn(krun_clock *to, const krun_clock *from)
{
    for (uint32_t k = 0; k < KRUN_AGENTS; k++)
        if (from->at[k] > to->at[k]) to->at[k] = from->at[k];
}

/* Who runs a statement that is in no stream. */
static uint32_t issuer(const krun_order *o, const ot_tk_stmt *s)
{
    return o->pipes ? (uint32_t)s->pipe : 0;
}

/* The agent of the current statement, one operation further. */
static uint32_t advance(krun_order *o, const ot_tk_stmt *s)
{
    uint32_t agent = issuer(o, s);
    if (s->stream) {
        uint32_t k = stream_number(o, s->stream), stream = OT_PIPE_COUNT + k;
        learn(&o->clock[stream], &o->clock[agent]);
        agent = stream;
        o->clock[agent].at[agent]++;
        o->streams[k].past[o->streams[k].n++ % KRUN_KEEP_MAX] = o->clock[agent];
        return agent;
    }
    o->clock[agent].at[agent]++;
    return agent;
}

/* ---- accesses ---- */

/* Do two of the parallel iterations around differ? */
static bool apart(const krun_order *o, const krun_access *x)
{
    for (uint32_t i = 0; i < x->n_turns; i++)
        for (uint32_t j = 0; j < o->n_turns; j++)
            if (x->turns[i].run == o->turns[j].run &&
                x->turns[i].iteration != o->turns[j].iteration)
                return true;
    return false;
}

/* Is the value one of each iteration of its own: allocated inside the outermost parallel loop?
 * Or made to be shared: a reducer. */
static bool is_private(const krun *m, uint32_t root)
{
    const ot_tk_value *x = krun_value(m, root);
    if (x->scope == OT_SCOPE_REDUCER) return true;
    return x->kind != OT_TK_PARAM && m->order.n_turns > 0 && x->stmt > m->order.turns[0].loop;
}

static bool meet(const krun_access *x, const krun_operand *y)
{
    for (size_t i = 0; i < x->n; i++)
        for (size_t j = 0; j < y->spans.n && x->spans[i].at >= 0; j++) {
            const krun_span *a = &x->spans[i], *b = &y->spans.at[j];
            if (b->at >= 0 && a->at < b->at + b->n && b->at < a->at + a->n) return true;
        }
    return false;
}

static void hull(const krun_spans *s, int64_t *low, int64_t *high)
{
    *low = INT64_MAX;
    *high = 0;
    for (size_t k = 0; k < s->n; k++) {
        if (s->at[k].at < 0) continue;
        *low = ot_min(*low, s->at[k].at);
        *high = ot_max(*high, s->at[k].at + s->at[k].n);
    }
}

static const char *who(const krun *m, uint32_t agent)
{
    if (agent >= OT_PIPE_COUNT) return m->order.streams[agent - OT_PIPE_COUNT].name;
    return m->order.pipes ? ot_pipe_name((ot_pipe)agent) : "the kernel";
}

static ot_status race(const krun *m, const krun_access *x, const krun_operand *y, bool write,
                      uint32_t agent, bool turns)
{
    const ot_tk_stmt *other = &m->k->stmts[x->stmt];
    const char *first = krun_value(m, x->value)->name, *second = krun_value(m, y->value)->name;
    if (turns)
        return krun_fail(m, "race-parallel",
                         "race: '%s' is %s here, and '%s' in the same bytes is %s in line %u by "
                         "another iteration of the parallel loop",
                         second, write ? "written" : "read", first, x->write ? "written" : "read",
                         other->line);
    return krun_fail(m, "race",
                     "race: %s %s '%s' here, and nothing orders that after line %u, where %s %s "
                     "'%s' in the same bytes",
                     who(m, agent), write ? "writes" : "reads", second, other->line,
                     who(m, x->agent), x->write ? "writes" : "reads", first);
}

static ot_status check(krun *m, const krun_operand *y, bool write, uint32_t agent)
{
    const krun_order *o = &m->order;
    int64_t low, high;
    hull(&y->spans, &low, &high);
    for (size_t k = 0; k < o->n_accesses; k++) {
        const krun_access *x = &o->accesses[k];
        if (x->memory != y->memory || (!write && !x->write) || x->low >= high || low >= x->high)
            continue;
        bool turns = apart(o, x) && !is_private(m, y->root) && !is_private(m, x->root);
        bool known = x->agent == agent || o->clock[agent].at[x->agent] >= x->epoch;
        if ((known && !turns) || !meet(x, y)) continue;
        return race(m, x, y, write, agent, turns);
    }
    return OT_OK;
}

/* Does every agent know that the access is done? */
static bool is_done(const krun_order *o, const krun_access *x)
{
    if (x->n_turns > 0) return false;
    for (uint32_t k = 0; k < KRUN_AGENTS; k++)
        if (o->used[k] && k != x->agent && o->clock[k].at[x->agent] < x->epoch) return false;
    /* the streams begin with what the kernel knows */
    return x->agent >= OT_PIPE_COUNT || o->pipes;
}

static void prune(krun_order *o)
{
    size_t kept = 0;
    for (size_t k = 0; k < o->n_accesses; k++) {
        if (is_done(o, &o->accesses[k])) continue;
        krun_access x = o->accesses[k]; /* spans move with it; the gap's are used again */
        o->accesses[k] = o->accesses[kept];
        o->accesses[kept++] = x;
    }
    o->n_accesses = kept;
}

static bool same(const krun_access *x, const krun_operand *y, uint32_t agent, uint32_t stmt,
                 int64_t low, int64_t high)
{
    return x->agent == agent && x->stmt == stmt && x->value == y->value && x->memory == y->memory &&
           x->n == y->spans.n && x->low == low && x->high == high && x->n_turns == 0;
}

static ot_status note(krun *m, const krun_operand *y, bool write, uint32_t agent)
{
    krun_order *o = &m->order;
    int64_t low, high;
    hull(&y->spans, &low, &high);
    /* all that follows, in streams too, comes after it */
    bool alone = !o->pipes && agent == 0 && o->n_turns == 0;
    if (low >= high || alone) return OT_OK;
    for (size_t k = 0; k < o->n_accesses && o->n_turns == 0; k++) {
        krun_access *x = &o->accesses[k];
        if (!same(x, y, agent, m->pc, low, high) || x->write != write) continue;
        x->epoch = o->clock[agent].at[agent];
        return OT_OK;
    }
    if (o->n_accesses == o->cap_accesses) {
        size_t had = o->cap_accesses;
        if (!ot_grow(m->a, (void **)&o->accesses, &o->cap_accesses, had + 1, sizeof *o->accesses))
            return ot_fail_nomem(m->d);
        memset(o->accesses + had, 0, (o->cap_accesses - had) * sizeof *o->accesses);
    }
    krun_access *x = &o->accesses[o->n_accesses];
    krun_span *spans = x->spans;
    size_t cap = x->cap;
    if (cap < y->spans.n && !ot_grow(m->a, (void **)&spans, &cap, y->spans.n, sizeof *spans))
        return ot_fail_nomem(m->d);
    memcpy(spans, y->spans.at, y->spans.n * sizeof *spans);
    *x = (krun_access){.memory = y->memory,
                       .value = y->value,
                       .root = y->root,
                       .stmt = m->pc,
                       .agent = agent,
                       .epoch = o->clock[agent].at[agent],
                       .write = write,
                       .spans = spans,
                       .n = y->spans.n,
                       .cap = cap,
                       .low = low,
                       .high = high,
                       .n_turns = o->n_turns};
    memcpy(x->turns, o->turns, sizeof x->turns);
    o->n_accesses++;
    return OT_OK;
}

ot_status krun_order_touch(krun *m, const krun_operand *in, uint32_t n_in, const krun_operand *out,
                           uint32_t n_out)
{
    krun_order *o = &m->order;
    if (!o->on) return OT_OK;
    uint32_t agent = advance(o, &m->k->stmts[m->pc]);
    if (o->n_accesses > 0) prune(o);
    for (uint32_t k = 0; k < n_in; k++) OT_TRY(check(m, &in[k], false, agent));
    for (uint32_t k = 0; k < n_out; k++) OT_TRY(check(m, &out[k], true, agent));
    for (uint32_t k = 0; k < n_in; k++) OT_TRY(note(m, &in[k], false, agent));
    for (uint32_t k = 0; k < n_out; k++) OT_TRY(note(m, &out[k], true, agent));
    return OT_OK;
}

/* ---- waits ---- */

static krun_barrier *barrier_of(krun_order *o, uint32_t value)
{
    uint32_t k = 0;
    while (k < o->n_barriers && o->barriers[k].value != value) k++;
    return k < o->n_barriers ? &o->barriers[k] : NULL;
}

static void arrive(krun_barrier *b, int64_t count, const krun_clock *clock)
{
    learn(&b->now, clock);
    if (++b->arrived % count != 0) return;
    b->past[(b->arrived / count - 1) % KRUN_KEEP_MAX] = b->now;
    b->now = (krun_clock){{0}};
}

static ot_status wait_barrier(krun *m, krun_barrier *b, uint32_t pipe, uint32_t agent)
{
    int64_t count = krun_value(m, b->value)->arrive, phase = b->waits[pipe]++;
    if (b->arrived < (phase + 1) * count)
        return krun_fail(
            m, "barrier-deadlock",
            "'%s' never opens here: it takes %lld arrivals, and in this phase there are %lld",
            krun_value(m, b->value)->name, (long long)count,
            (long long)ot_max(0, b->arrived - phase * count));
    if (b->arrived / count - phase > KRUN_KEEP_MAX)
        return krun_fail(m, "barrier-behind", "a pipe waits for '%s' more than %d phases behind",
                         krun_value(m, b->value)->name, KRUN_KEEP_MAX);
    learn(&m->order.clock[agent], &b->past[phase % KRUN_KEEP_MAX]);
    return OT_OK;
}

static void fence(krun_order *o)
{
    krun_clock all = {{0}};
    for (uint32_t k = 0; k < KRUN_AGENTS; k++) learn(&all, &o->clock[k]);
    for (uint32_t k = 0; k < KRUN_AGENTS; k++) o->clock[k] = all;
}

ot_status krun_order_sync(krun *m, const ot_tk_stmt *s)
{
    krun_order *o = &m->order;
    uint32_t agent = issuer(o, s);
    if (s->op == OT_TK_FENCE) {
        fence(o);
    } else if (s->n_in > 0) {
        krun_barrier *b = barrier_of(o, ot_tk_root(m->k, s->in[0], NULL));
        if (!b) return OT_OK;
        if (s->op == OT_TK_WAIT) return wait_barrier(m, b, (uint32_t)s->pipe, agent);
        arrive(b, krun_value(m, b->value)->arrive, &o->clock[agent]);
    } else {
        const krun_stream *x = &o->streams[stream_number(o, s->stream)];
        if (s->keep >= KRUN_KEEP_MAX)
            return krun_fail(m, "wait-keep", "a wait keeps at most %d transfers",
                             KRUN_KEEP_MAX - 1);
        if (x->n > s->keep) learn(&o->clock[agent], &x->past[(x->n - s->keep - 1) % KRUN_KEEP_MAX]);
    }
    return OT_OK;
}

/* ---- parallel loops ---- */

ot_status krun_order_turn(krun *m, uint32_t loop, int64_t iteration)
{
    krun_order *o = &m->order;
    if (iteration == 0) {
        if (o->n_turns == KRUN_PARALLEL_MAX)
            return krun_fail(m, "parallel-depth", "more than %d parallel loops inside each other",
                             KRUN_PARALLEL_MAX);
        o->turns[o->n_turns++] = (krun_turn){loop, ++o->runs, 0};
    }
    o->turns[o->n_turns - 1].iteration = iteration;
    return OT_OK;
}

void krun_order_end(krun *m)
{
    krun_order *o = &m->order;
    o->n_turns--;
    size_t kept = 0;
    for (size_t k = 0; k < o->n_accesses; k++) {
        krun_access *x = &o->accesses[k];
        if (x->n_turns > o->n_turns) x->n_turns = o->n_turns;
        /* all that follows comes after the loop */
        if (!o->pipes && x->agent == 0 && x->n_turns == 0) continue;
        krun_access kept_one = *x;
        *x = o->accesses[kept];
        o->accesses[kept++] = kept_one;
    }
    o->n_accesses = kept;
}
