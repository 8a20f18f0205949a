/* The walk: statements one after the other, loops, branches, what is carried.
 *
 *   memories     one for each scope of the plan, as high as it is, all poison; one for each param
 *   alloc        what the name held is gone, in the slot that the iteration has
 *   end of block its allocations are freed
 *   yield        all yielded values are read before any carried one is written
 */
#include "krun_internal.h"

#include <stdarg.h>

#define STEPS_MAX  (INT64_C(1) << 30)
#define MEMORY_MAX (INT64_C(1) << 31) /* bytes of all memories and params */
#define POISON     0xcb

ot_status(krun_fail)(const krun *m, const char *rule, const char *fmt, ...)
{
    const ot_tk_site at = {m->path, &m->k->stmts[m->pc < m->k->n_stmts ? m->pc : 0], m->d};
    va_list args;
    va_start(args, fmt);
    ot_status s = ot_tk_vfail_at(&at, rule, fmt, args);
    va_end(args);
    return s;
}

bool krun_room(krun *m, uint8_t **buffer, size_t *cap, int64_t n)
{
    while ((int64_t)*cap < n)
        if (!ot_grow(m->a, (void **)buffer, cap, (size_t)n, 1)) return false;
    return true;
}

/* ---- figures ---- */

static ot_status event(krun *m, ot_krun_what what, uint32_t stmt, uint32_t value, int64_t bytes,
                       int64_t offset)
{
    ot_krun_event e = {m->steps, what, stmt, value, bytes, offset};
    if (!m->request->events) return OT_OK;
    return OT_PUSH(m->r->arena, m->r->events, m->r->n_events, m->cap_events, e)
               ? OT_OK
               : ot_fail_nomem(m->d);
}

static ot_krun_scope *scope_figures(const krun *m, ot_scope scope)
{
    uint32_t k = 0;
    while (m->r->scopes[k].scope != scope) k++;
    return &m->r->scopes[k];
}

static int64_t footprint(const krun *m, uint32_t v)
{
    return krun_value(m, v)->bytes * m->plan->multi[m->plan->lifetimes->buffer_of[v]];
}

static ot_status allocated(krun *m, uint32_t v)
{
    const ot_tk_value *x = krun_value(m, v);
    ot_krun_scope *f = scope_figures(m, x->scope);
    m->live[x->scope] += footprint(m, v);
    f->peak = ot_max(f->peak, m->live[x->scope]);
    m->is_alive[v] = true;
    m->alive[m->n_alive++] = v;
    return event(m, OT_KRUN_ALLOC, m->pc, v, footprint(m, v),
                 krun_slot(m, m->plan->lifetimes->buffer_of[v]));
}

static ot_status freed(krun *m, uint32_t v)
{
    const ot_tk_value *x = krun_value(m, v);
    if (!m->is_alive[v]) return OT_OK;
    m->is_alive[v] = false;
    m->live[x->scope] -= footprint(m, v);
    scope_figures(m, x->scope)->freed += footprint(m, v);
    return event(m, OT_KRUN_FREE, m->pc, v, footprint(m, v), 0);
}

/* A block or an iteration of it is over: what it allocated is free. */
static ot_status end_block(krun *m, uint32_t n_alive)
{
    while (m->n_alive > n_alive) OT_TRY(freed(m, m->alive[--m->n_alive]));
    return OT_OK;
}

/* ---- transfers ---- */

static int64_t width(const krun *m, uint32_t v)
{
    return ot_tk_dtype_bits(krun_value(m, v)->dtype) / 8;
}

static ot_status move(krun *m, const ot_tk_stmt *s)
{
    krun_operand *from = &m->in[0], *to = &m->out[0];
    OT_TRY(krun_locate(m, s->in[0], from));
    OT_TRY(krun_locate(m, s->out[0], to));
    OT_TRY(krun_window(m, s->op == OT_TK_STORE ? to : from, s->ranges));
    int64_t a = width(m, s->in[0]), b = width(m, s->out[0]);
    int64_t n = ot_min(from->spans.bytes / a, to->spans.bytes / b);
    krun_cut(&from->spans, n * a);
    krun_cut(&to->spans, n * b);
    OT_TRY(krun_order_touch(m, from, 1, to, 1));
    if (krun_overlap(from, to))
        return krun_fail(m, "overlap", "'%s' and '%s' share bytes", krun_value(m, s->in[0])->name,
                         krun_value(m, s->out[0])->name);
    if (!krun_room(m, &m->bytes, &m->cap_bytes, n * a) ||
        !krun_room(m, &m->more, &m->cap_more, n * b))
        return ot_fail_nomem(m->d);
    OT_TRY(krun_read(m, from, m->bytes));
    krun_convert(krun_value(m, s->in[0])->dtype, m->bytes, krun_value(m, s->out[0])->dtype, m->more,
                 n);
    OT_TRY(krun_write(m, to, m->more));
    m->r->pipes[s->pipe].operations++;
    m->r->pipes[s->pipe].bytes += n * (a + b);
    return event(m, OT_KRUN_MOVE, m->pc, s->out[0], n * b, 0);
}

static ot_status compute(krun *m, const ot_tk_stmt *s)
{
    if (s->n_in > KRUN_INPUTS_MAX || s->n_out > KRUN_INPUTS_MAX)
        return krun_fail(m, "operands", "run-kernel takes at most %d operands", KRUN_INPUTS_MAX);
    int64_t bytes = 0;
    for (uint32_t k = 0; k < s->n_in; k++) {
        OT_TRY(krun_locate(m, s->in[k], &m->in[k]));
        bytes += m->in[k].spans.bytes;
    }
    for (uint32_t k = 0; k < s->n_out; k++) {
        OT_TRY(krun_locate(m, s->out[k], &m->out[k]));
        bytes += m->out[k].spans.bytes;
    }
    OT_TRY(krun_order_touch(m, m->in, s->n_in, m->out, s->n_out));
    OT_TRY(krun_compute(m, s));
    m->r->pipes[s->pipe].operations++;
    m->r->pipes[s->pipe].bytes += bytes;
    return event(m, OT_KRUN_COMPUTE, m->pc, s->out[0], krun_value(m, s->out[0])->bytes, 0);
}

/* ---- blocks ---- */

/* The first element of the condition is not 0. */
static ot_status condition(krun *m, const ot_tk_stmt *s, bool *yes)
{
    if (!s->has_condition)
        return krun_fail(m, "unknown-condition", "'?' cannot be run: nobody knows which way to go");
    uint32_t v = s->in[s->n_in - 1];
    OT_TRY(krun_locate(m, v, &m->in[0]));
    krun_cut(&m->in[0].spans, width(m, v));
    if (!krun_room(m, &m->bytes, &m->cap_bytes, 8)) return ot_fail_nomem(m->d);
    OT_TRY(krun_read(m, &m->in[0], m->bytes));
    *yes = krun_decode(krun_value(m, v)->dtype, m->bytes) != 0;
    return OT_OK;
}

/* Go on behind the loop. */
static ot_status leave(krun *m, uint32_t opener)
{
    const ot_tk_stmt *s = &m->k->stmts[opener];
    if (s->parallel && m->loops[opener].turn >= 0) krun_order_end(m);
    m->pc = s->mate;
    OT_TRY(krun_carry(m, s->out, s->carried, s->n_out));
    m->loops[opener].turn = -1;
    m->pc = s->mate + 1;
    return OT_OK;
}

static ot_status enter_loop(krun *m, const ot_tk_stmt *s)
{
    krun_loop *x = &m->loops[m->pc];
    uint32_t opener = m->pc;
    if (s->op == OT_TK_FOR && s->hi < 0)
        return krun_fail(m, "unknown-trips", "'?' cannot be run: nobody knows how often");
    x->trips = s->op == OT_TK_FOR ? (s->hi - s->lo + s->step - 1) / s->step : INT64_MAX;
    x->n_alive = m->n_alive;
    OT_TRY(krun_carry(m, s->carried, s->in, s->n_out));
    bool more = x->trips > 0;
    if (s->op == OT_TK_WHILE) OT_TRY(condition(m, s, &more));
    if (!more) return leave(m, opener);
    x->turn = 0;
    m->pc++;
    return s->parallel ? krun_order_turn(m, opener, 0) : OT_OK;
}

static ot_status end_loop(krun *m, uint32_t opener)
{
    const ot_tk_stmt *s = &m->k->stmts[opener];
    krun_loop *x = &m->loops[opener];
    OT_TRY(end_block(m, x->n_alive));
    bool more = x->turn + 1 < x->trips;
    if (s->op == OT_TK_WHILE) OT_TRY(condition(m, s, &more));
    if (!more) return leave(m, opener);
    x->turn++;
    m->pc = opener + 1;
    return s->parallel ? krun_order_turn(m, opener, x->turn) : OT_OK;
}

static ot_status enter_if(krun *m, const ot_tk_stmt *s)
{
    bool yes = false;
    m->loops[m->pc].n_alive = m->n_alive;
    OT_TRY(condition(m, s, &yes));
    m->pc = yes ? m->pc + 1 : m->k->stmts[s->mate].op == OT_TK_ELSE ? s->mate + 1 : s->mate;
    return OT_OK;
}

static ot_status yield(krun *m, const ot_tk_stmt *s)
{
    const ot_tk_stmt *opener = &m->k->stmts[s->mate];
    OT_TRY(krun_carry(m, opener->op == OT_TK_IF ? opener->out : opener->carried, s->in, s->n_in));
    m->pc++;
    return OT_OK;
}

static ot_status block_end(krun *m, const ot_tk_stmt *s)
{
    if (m->k->stmts[s->mate].op != OT_TK_IF) return end_loop(m, s->mate);
    OT_TRY(end_block(m, m->loops[s->mate].n_alive));
    m->pc++;
    return OT_OK;
}

/* A var begins with its value. */
static ot_status set_up(krun *m, uint32_t v)
{
    uint8_t bytes[16] = {0};
    if (m->plan->lifetimes->buffers[m->plan->lifetimes->buffer_of[v]].n_live == 0) return OT_OK;
    krun_encode(krun_value(m, v)->dtype, krun_value(m, v)->init, bytes);
    OT_TRY(krun_locate(m, v, &m->moved));
    return krun_write(m, &m->moved, bytes);
}

static ot_status step(krun *m)
{
    const ot_tk_stmt *s = &m->k->stmts[m->pc];
    ot_status status = OT_OK;
    switch (s->op) {
    case OT_TK_ALLOC:
        krun_forget(m, s->out[0]);
        status = allocated(m, s->out[0]);
        if (status == OT_OK && krun_value(m, s->out[0])->scope == OT_SCOPE_VAR)
            status = set_up(m, s->out[0]);
        break;
    case OT_TK_FREE:
        krun_forget(m, ot_tk_root(m->k, s->in[0], NULL));
        status = freed(m, ot_tk_root(m->k, s->in[0], NULL));
        break;
    case OT_TK_VIEW: break;
    case OT_TK_LOAD:
    case OT_TK_STORE:
    case OT_TK_COPY: status = move(m, s); break;
    case OT_TK_COMPUTE: status = compute(m, s); break;
    case OT_TK_FOR:
    case OT_TK_WHILE: return enter_loop(m, s);
    case OT_TK_IF: return enter_if(m, s);
    case OT_TK_ELSE: m->pc = s->mate; return OT_OK;
    case OT_TK_YIELD: return yield(m, s);
    case OT_TK_END: return block_end(m, s);
    case OT_TK_WAIT:
    case OT_TK_ARRIVE:
    case OT_TK_FENCE: status = krun_order_sync(m, s); break;
    case OT_TK_CHECK: break; /* of the plan */
    }
    if (status == OT_OK) m->pc++;
    return status;
}

static ot_status run_all(krun *m)
{
    int64_t limit = m->request->step_limit > 0 ? m->request->step_limit : STEPS_MAX;
    while (m->pc < m->k->n_stmts) {
        if (m->steps == limit)
            return krun_fail(m, "steps", "the kernel runs more than %lld statements",
                             (long long)limit);
        OT_TRY(step(m));
        m->steps++;
    }
    return OT_OK;
}

/* ---- before and after ---- */

static const ot_krun_array *input_of(const krun *m, const char *name)
{
    for (uint32_t k = 0; k < m->request->n_inputs; k++)
        if (strcmp(m->request->inputs[k].name, name) == 0) return &m->request->inputs[k];
    return NULL;
}

static ot_status fail_value(const krun *m, const ot_tk_value *x, const char *rule, const char *text)
{
    return ot_fail(m->d, OT_E_INPUT, "%s:%u:%u: '%s' %s [%s]", m->path, x->line, x->col, x->name,
                   text, rule);
}

static ot_status check_input(const krun *m, const ot_tk_value *x, const ot_krun_array *in)
{
    if (x->empty)
        return fail_value(m, x, "input-empty", "is made by the kernel: it takes no input");
    bool same = strcmp(in->dtype, x->dtype) == 0 && in->rank == x->rank;
    for (uint32_t d = 0; same && d < x->rank; d++) same = in->dims[d] == x->dims[d];
    return same
               ? OT_OK
               : fail_value(m, x, "input-type", "has another shape or element type than its input");
}

static ot_status make_param(krun *m, uint32_t v, int64_t *total)
{
    const ot_tk_value *x = krun_value(m, v);
    const ot_krun_array *in = input_of(m, x->name);
    krun_memory *p = &m->params[v];
    *total += 2 * x->bytes;
    if (*total > MEMORY_MAX)
        return fail_value(m, x, "run-size", "and the rest take more than 2 GiB");
    if (in) OT_TRY(check_input(m, x, in));
    p->size = x->bytes;
    p->bytes = ot_alloc(m->r->arena, (size_t)x->bytes);
    p->defined = ot_alloc(m->a, (size_t)x->bytes);
    if (!p->bytes || !p->defined) return ot_fail_nomem(m->d);
    memset(p->defined, in != NULL, (size_t)x->bytes);
    if (in) memcpy(p->bytes, in->data, (size_t)x->bytes);
    return OT_OK;
}

/* Which params does any statement write, or read? */
static void find_used(krun *m)
{
    for (uint32_t i = 0; i < m->k->n_stmts; i++) {
        const ot_tk_stmt *s = &m->k->stmts[i];
        bool moves = s->op == OT_TK_STORE || s->op == OT_TK_COPY || s->op == OT_TK_LOAD;
        if (moves) m->written[ot_tk_root(m->k, s->out[0], NULL)] = true;
        for (uint32_t j = 0; j < s->n_in; j++) m->read[ot_tk_root(m->k, s->in[j], NULL)] = true;
    }
}

static ot_status make_params(krun *m, int64_t *total)
{
    for (uint32_t v = 0; v < m->k->n_values; v++) {
        const ot_tk_value *x = krun_value(m, v);
        if (ot_tk_dtype_bits(x->dtype) % 8 != 0 || x->dtype[0] == 'c' ||
            strncmp(x->dtype, "f8", 2) == 0)
            return fail_value(m, x, "run-type", "is of a type that run-kernel does not compute in");
        if (x->kind != OT_TK_PARAM) continue;
        OT_TRY(make_param(m, v, total));
        if (!input_of(m, x->name) && m->read[v] && !m->written[v])
            return fail_value(m, x, "input-missing", "has no input");
    }
    for (uint32_t k = 0; k < m->request->n_inputs; k++) {
        uint32_t v = 0;
        while (v < m->k->n_values &&
               strcmp(krun_value(m, v)->name, m->request->inputs[k].name) != 0)
            v++;
        if (v == m->k->n_values || krun_value(m, v)->kind != OT_TK_PARAM)
            return ot_fail(m->d, OT_E_USAGE, "%s: the kernel has no param '%.200s'", m->path,
                           m->request->inputs[k].name);
    }
    return OT_OK;
}

static ot_status make_memories(krun *m, int64_t total)
{
    const ot_mem_plan *p = m->plan;
    for (uint32_t k = 0; k < p->n_scopes; k++) {
        krun_memory *mem = &m->memories[p->scopes[k].scope];
        int64_t n = mem->size = p->scopes[k].height;
        if (n > MEMORY_MAX || (total += 9 * n) > MEMORY_MAX)
            return ot_fail(m->d, OT_E_INPUT,
                           "%s: the memories and params take more than 2 GiB here [run-size]",
                           m->path);
        mem->bytes = ot_alloc(m->a, (size_t)n);
        mem->owner = OT_NEW_N(m->a, uint32_t, (size_t)n);
        mem->writer = OT_NEW_N(m->a, uint32_t, (size_t)n);
        if (!mem->bytes || !mem->owner || !mem->writer) return ot_fail_nomem(m->d);
        memset(mem->bytes, POISON, (size_t)n);
        m->r->scopes[m->r->n_scopes++] = (ot_krun_scope){.scope = p->scopes[k].scope, .height = n};
    }
    return OT_OK;
}

static ot_status prepare(krun *m)
{
    const ot_kernel *k = m->k;
    int64_t total = 0;
    m->params = OT_NEW_N(m->a, krun_memory, (size_t)k->n_values + 1);
    m->loops = OT_NEW_N(m->a, krun_loop, (size_t)k->n_stmts + 1);
    m->alive = OT_NEW_N(m->a, uint32_t, (size_t)k->n_values + 1);
    m->is_alive = OT_NEW_N(m->a, bool, (size_t)k->n_values + 1);
    m->written = OT_NEW_N(m->a, bool, (size_t)k->n_values + 1);
    m->read = OT_NEW_N(m->a, bool, (size_t)k->n_values + 1);
    if (!m->params || !m->loops || !m->alive || !m->is_alive || !m->written || !m->read)
        return ot_fail_nomem(m->d);
    for (uint32_t i = 0; i < k->n_stmts; i++) m->loops[i].turn = -1;
    find_used(m);
    OT_TRY(make_params(m, &total));
    OT_TRY(make_memories(m, total));
    return krun_order_init(m);
}

static ot_status collect_outputs(krun *m)
{
    ot_krun_result *r = m->r;
    r->outputs = OT_NEW_N(r->arena, ot_krun_array, (size_t)m->k->n_values + 1);
    r->unwritten = OT_NEW_N(r->arena, int64_t, (size_t)m->k->n_values + 1);
    if (!r->outputs || !r->unwritten) return ot_fail_nomem(m->d);
    for (uint32_t v = 0; v < m->k->n_values; v++) {
        const ot_tk_value *x = krun_value(m, v);
        if (x->kind != OT_TK_PARAM || (!x->empty && !m->written[v])) continue;
        ot_krun_array *o = &r->outputs[r->n_outputs];
        *o = (ot_krun_array){.rank = x->rank, .data = m->params[v].bytes};
        o->name = ot_strdup(r->arena, x->name);
        o->dtype = ot_strdup(r->arena, x->dtype);
        memcpy(o->dims, x->dims, sizeof o->dims);
        if (!o->name || !o->dtype) return ot_fail_nomem(m->d);
        for (int64_t i = 0; i < x->bytes; i++)
            r->unwritten[r->n_outputs] += !m->params[v].defined[i];
        r->n_outputs++;
    }
    return OT_OK;
}

/* What is allocated outside of blocks and still there. */
static ot_status collect_leaks(krun *m)
{
    for (uint32_t k = 0; k < m->n_alive; k++) {
        uint32_t v = m->alive[k];
        ot_krun_leak leak = {v, footprint(m, v)};
        if (!m->is_alive[v]) continue;
        scope_figures(m, krun_value(m, v)->scope)->allocated += leak.bytes;
        if (!OT_PUSH(m->r->arena, m->r->leaks, m->r->n_leaks, m->cap_leaks, leak))
            return ot_fail_nomem(m->d);
    }
    m->r->steps = m->steps;
    return OT_OK;
}

ot_status ot_krun(const ot_kernel *k, const char *path, const ot_mem_plan *p,
                  const ot_krun_request *request, ot_diag *d, ot_krun_result **out)
{
    ot_arena *a = ot_arena_new(), *own = ot_arena_new();
    krun *m = a ? OT_NEW(a, krun) : NULL;
    ot_krun_result *r = own ? OT_NEW(own, ot_krun_result) : NULL;
    ot_status s = OT_E_NOMEM;
    *out = NULL;
    if (!m || !r) {
        s = ot_fail_nomem(d);
    } else {
        r->arena = own;
        *m = (krun){.k = k, .path = path, .plan = p, .request = request, .d = d, .a = a, .r = r};
        s = prepare(m);
        if (s == OT_OK) s = run_all(m);
        if (s == OT_OK) s = collect_outputs(m);
        if (s == OT_OK) s = collect_leaks(m);
    }
    ot_arena_free(a);
    if (s == OT_OK)
        *out = r;
    else
        ot_arena_free(own);
    return s;
}

void ot_krun_free(ot_krun_result *r)
{
    if (r) ot_arena_free(r->arena);
}
