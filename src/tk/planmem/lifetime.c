/* Lifetimes of a kernel's buffers:
 *
 *   points.c     statements -> flow graph of points over variables (allocs, carried values,
 *                results)
 *   liveness.c   -> where each variable holds something that is read later
 *   merge.c      -> classes of variables that share a storage, by inplace.c's rules and where
 *                copies vanish
 *   here         -> one ot_buffer for each class, and warnings
 *
 *   alloc a   |      a written by 2, read by 3 and 6: live [2, 7)
 *   a = f(x)  2 a    b written by 3, read by 4:       live [3, 5)  meets a: both hold position 3
 *                                                                  and 4
 *   b = g(a)  3 a b  c written by 6:                  live [6, 7)  meets a, unless h works in place
 *   y <- b    4 a b
 *   ...       5 a
 *   c = h(a)  6 a c
 */
#include "lifetime_internal.h"

typedef struct maker {
    const lt_flow *f;
    const ot_lifetime_options *options;
    const lt_classes *c;
    ot_lifetimes *out;
    uint32_t *buffer_of;
    const char **warnings;
    size_t n_warnings, cap_warnings;
} maker;

/* ---- buffers ---- */

/* Order of buffers: by first write, then by first member. */
typedef struct place {
    uint32_t first_write, var, class;
} place;

static int by_first_write(const void *x, const void *y)
{
    const place *a = x, *b = y;
    if (a->first_write != b->first_write) return a->first_write < b->first_write ? -1 : 1;
    return a->var < b->var ? -1 : a->var > b->var;
}

static int by_id(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

/* Ids of the allocs of a class, or of its other values when it has none. */
static bool fill_values(maker *m, const lt_class *x, ot_buffer *b)
{
    uint32_t *ids = OT_NEW_N(m->out->arena, uint32_t, x->n_members);
    if (!ids) return false;
    for (int allocs = 1; allocs >= 0 && b->n_values == 0; allocs--) {
        for (uint32_t v = x->first; v != OT_NONE; v = m->c->next[v]) {
            uint32_t id = m->f->vars[v].value;
            if (!allocs || m->f->k->values[id].kind == OT_TK_BUFFER) ids[b->n_values++] = id;
        }
    }
    qsort(ids, b->n_values, sizeof *ids, by_id);
    uint32_t n = 0; /* a temporary has the id of its carried value */
    for (uint32_t i = 0; i < b->n_values; i++) {
        if (n == 0 || ids[n - 1] != ids[i]) ids[n++] = ids[i];
    }
    b->n_values = n;
    b->values = ids;
    return true;
}

/* Bit set of the pipes that work at a point. */
static uint32_t pipes_at(const maker *m, const lt_point *p)
{
    const ot_tk_stmt *s = &m->f->k->stmts[p->stmt];
    bool moves = s->op == OT_TK_LOAD || s->op == OT_TK_STORE || s->op == OT_TK_COPY ||
                 s->op == OT_TK_COMPUTE;
    if (moves) return 1u << s->pipe;
    if (p->to == OT_NONE) return 1u << OT_PIPE_SCALAR; /* a condition */
    /* the copy vanished */
    if (p->from != OT_NONE && m->c->of[p->to] == m->c->of[p->from]) return 0;
    switch (m->f->k->values[m->f->vars[p->to].value].scope) {
    case OT_SCOPE_GM: return 1u << OT_PIPE_DMA_IN | 1u << OT_PIPE_DMA_OUT;
    case OT_SCOPE_L0C: return 1u << OT_PIPE_DMA_OUT;
    default: return 1u << OT_PIPE_VECTOR;
    }
}

static void fill_pipes(const maker *m, const lt_class *x, ot_buffer *b)
{
    for (uint32_t v = x->first; v != OT_NONE; v = m->c->next[v]) {
        const lt_var *var = &m->f->vars[v];
        for (uint32_t i = 0; i < var->n_access; i++) {
            const lt_access *a = &m->f->accesses[var->access[i]];
            if (a->what & (LT_READ | LT_WRITE)) b->pipes |= pipes_at(m, &m->f->points[a->point]);
        }
    }
    b->dma = (b->pipes & (1u << OT_PIPE_DMA_IN | 1u << OT_PIPE_DMA_OUT)) != 0;
}

/* One span over the whole loop in place of those inside it. */
static void hold(const maker *m, ot_span *live, ot_buffer *b)
{
    const ot_tk_stmt *loop = &m->f->k->stmts[b->loop];
    live[0] = (ot_span){ot_min(live[0].lower, b->loop),
                        ot_max(live[b->n_live - 1].upper, (int64_t)loop->mate + 1)};
    b->n_live = 1;
}

/* One span over all that x keeps its place for. */
static void keep(const maker *m, const lt_class *x, ot_span *live, ot_buffer *b)
{
    const ot_kernel *k = m->f->k;
    ot_span all = {0, k->n_stmts};
    if (x->keep == OT_TK_KEEP_LOOP && x->keep_loop != OT_NONE)
        all = (ot_span){x->keep_loop, (int64_t)k->stmts[x->keep_loop].mate + 1};
    live[0] = (ot_span){ot_min(live[0].lower, all.lower),
                        ot_max(live[b->n_live - 1].upper, all.upper)};
    b->n_live = 1;
}

static bool fill_buffer(maker *m, const lt_class *x, ot_buffer *b)
{
    *b = (ot_buffer){.scope = x->scope,
                     .pool = x->pool,
                     .size = x->size,
                     .align = x->align,
                     .multi = x->multi ? x->multi : 1,
                     .loop = x->loop};
    for (uint32_t i = 0; i < OT_TK_MULTI_MAX; i++)
        b->fixed[i] = x->fixed && i < b->multi ? x->offsets[i] : -1;
    b->n_live = (uint32_t)x->live.n;
    if (x->live.n) {
        ot_span *live = ot_memdup(m->out->arena, x->live.at, x->live.n * sizeof *x->live.at);
        if (!live) return false;
        b->live = live;
        if (m->options->hold_multi && b->multi > 1 && b->loop != OT_NONE) hold(m, live, b);
        if (x->keep) keep(m, x, live, b);
    }
    fill_pipes(m, x, b);
    return fill_values(m, x, b);
}

static bool make_buffers(maker *m, ot_arena *scratch)
{
    const lt_flow *f = m->f;
    place *places = OT_NEW_N(scratch, place, f->n_vars);
    uint32_t *index = OT_NEW_N(scratch, uint32_t, f->n_vars); /* of a class */
    m->buffer_of = OT_NEW_N(m->out->arena, uint32_t, f->k->n_values);
    if (!places || !index || !m->buffer_of) return false;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_vars; i++) {
        const lt_class *x = &m->c->classes[i];
        if (x->first == OT_NONE) continue;
        place p = {x->n_writes ? x->writes[0] : OT_NONE, x->first, i};
        places[n++] = p;
    }
    if (n > 1) qsort(places, n, sizeof *places, by_first_write);
    m->out->buffers = OT_NEW_N(m->out->arena, ot_buffer, n);
    if (!m->out->buffers) return false;
    m->out->n_buffers = n;
    for (uint32_t i = 0; i < n; i++) {
        index[places[i].class] = i;
        if (!fill_buffer(m, &m->c->classes[places[i].class], &m->out->buffers[i])) return false;
    }
    for (uint32_t v = 0; v < f->k->n_values; v++) {
        m->buffer_of[v] = f->var_of[v] == OT_NONE ? OT_NONE : index[m->c->of[f->var_of[v]]];
    }
    m->out->buffer_of = m->buffer_of;
    return true;
}

/* ---- warnings ---- */

static bool warn(maker *m, uint32_t line, uint32_t col, const char *name, const char *what)
{
    const char *text = ot_format(m->out->arena, "%u:%u: '%s' %s", line, col, name, what);
    return text && OT_PUSH(m->out->arena, m->warnings, m->n_warnings, m->cap_warnings, text);
}

/* Does the statement compute from v, which it does not write? */
static bool computes_from(const lt_flow *f, const ot_tk_stmt *s, uint32_t v)
{
    bool in = false;
    if (s->op != OT_TK_COMPUTE || strcmp(s->name, "call") == 0) return false;
    for (uint32_t j = 0; j < s->n_out; j++)
        if (f->var_of[s->out[j]] == v) return false;
    for (uint32_t j = 0; j < s->n_in; j++) in = in || f->var_of[s->in[j]] == v;
    return in;
}

static bool warn_all(maker *m)
{
    m->out->unwritten = m->out->unwritten_stmt = OT_NONE;
    for (size_t i = 0; i < m->f->n_vars; i++) {
        const lt_var *v = &m->f->vars[i];
        const ot_tk_value *value = &m->f->k->values[v->value];
        uint32_t what = 0;
        for (uint32_t j = 0; j < v->n_access; j++) what |= m->f->accesses[v->access[j]].what;
        bool ok = true;
        if (v->unwritten != OT_NONE && value->kind == OT_TK_BUFFER) {
            const ot_tk_stmt *s = &m->f->k->stmts[m->f->points[v->unwritten].stmt];
            ok = warn(m, s->line, s->col, value->name,
                      "is read here before anything is written to it");
            if (m->out->unwritten == OT_NONE && computes_from(m->f, s, (uint32_t)i)) {
                m->out->unwritten = v->value;
                m->out->unwritten_stmt = m->f->points[v->unwritten].stmt;
            }
        }
        if (v->unsure != OT_NONE && v->unwritten == OT_NONE && value->kind == OT_TK_BUFFER &&
            m->options->by_path) {
            const ot_tk_stmt *s = &m->f->k->stmts[m->f->points[v->unsure].stmt];
            ok = ok && warn(m, s->line, s->col, value->name,
                            "is read here, and some path to it writes nothing to it");
        }
        if (value->kind == OT_TK_BUFFER && !(what & LT_READ)) {
            ok = ok && warn(m, value->line, value->col, value->name,
                            what & LT_WRITE ? "is never read" : "is never used");
        }
        if (!ok) return false;
    }
    m->out->warnings = m->warnings;
    m->out->n_warnings = (uint32_t)m->n_warnings;
    return true;
}

static ot_status find(const ot_kernel *k, const char *path, const ot_tk_machine *t,
                      const ot_lifetime_options *o, ot_diag *d, ot_lifetimes *out,
                      ot_arena *scratch)
{
    lt_flow f;
    lt_classes c;
    OT_TRY(lt_points_build(&f, k, scratch, d));
    OT_TRY(lt_liveness(&f, d));
    OT_TRY(lt_async(&f, d));
    OT_TRY(lt_merge(&c, &f, t, o, path, scratch, d));
    maker m = {.f = &f, .options = o, .c = &c, .out = out};
    if (!make_buffers(&m, scratch) || !warn_all(&m)) return ot_fail_nomem(d);
    out->n_in_place = c.n_in_place;
    out->n_copies = c.n_copies;
    return OT_OK;
}

ot_status ot_lifetimes_find(const ot_kernel *k, const char *path, const ot_tk_machine *t,
                            const ot_lifetime_options *o, ot_diag *d, ot_lifetimes **out)
{
    *out = NULL;
    ot_arena *arena = ot_arena_new(), *scratch = ot_arena_new();
    ot_lifetimes *l = arena ? OT_NEW(arena, ot_lifetimes) : NULL;
    ot_status s = OT_E_NOMEM;
    if (!l || !scratch) {
        s = ot_fail_nomem(d);
    } else {
        l->arena = arena;
        s = find(k, path, t, o, d, l, scratch);
    }
    ot_arena_free(scratch);
    if (s == OT_OK)
        *out = l;
    else
        ot_arena_free(arena);
    return s;
}

void ot_lifetimes_free(ot_lifetimes *l)
{
    if (l) ot_arena_free(l->arena);
}
