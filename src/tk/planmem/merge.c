/* Which variables share one storage.
 *
 * Two reasons to share: a copy that carries a value (init -> carried -> ... -> result) vanishes
 * when both sides are one storage; and an operation may work in place. Both need that the two
 * never hold different values that are still to be read:
 *
 *   a point writes u while v is live after it  they interfere, unless the point is the copy u <- v:
 *                                              then both hold the same
 *   a point writes u and reads v               they interfere, unless it is that copy, or the
 *                                              operation works in place
 *   a point writes u and v                     they interfere
 *
 * as in the coalescing of register allocators. Classes are merged greedily: copies first, those
 * in the deepest loops before the others, then in place, in the order of statements and of
 * inputs.
 */
#include "lifetime_internal.h"

/* ---- loops ---- */

static uint32_t outer_loop(const ot_kernel *k, uint32_t loop)
{
    do loop = k->stmts[loop].parent;
    while (loop != OT_NONE && k->stmts[loop].op == OT_TK_IF);
    return loop;
}

uint32_t lt_common_loop(const ot_kernel *k, uint32_t a, uint32_t b)
{
    while (a != b) { /* the later one is not around the other */
        if (a == OT_NONE || b == OT_NONE) return OT_NONE;
        if (a > b)
            a = outer_loop(k, a);
        else
            b = outer_loop(k, b);
    }
    return a;
}

/* ---- classes of one ---- */

static ot_status alignment(const lt_flow *f, uint32_t value, const ot_tk_machine *t,
                           const char *path, ot_diag *d, int64_t *out)
{
    const ot_tk_value *v = &f->k->values[value];
    int64_t a = ot_max(v->align, 1), b = ot_max(t->scopes[v->scope].alignment, 1);
    if (ot_mul_i64(a / ot_gcd(a, b), b, out)) return OT_OK;
    return ot_fail(d, OT_E_INPUT, "%s:%u:%u: the alignment of '%s' is too large", path, v->line,
                   v->col, v->name);
}

static bool find_writes(lt_classes *c, lt_class *x, const lt_var *v)
{
    uint32_t *writes = OT_NEW_N(c->arena, uint32_t, v->n_access);
    if (!writes) return false;
    bool first = true;
    for (uint32_t i = 0; i < v->n_access; i++) {
        const lt_access *a = &c->flow->accesses[v->access[i]];
        if (a->what & LT_WRITE) writes[x->n_writes++] = a->point;
        if (!(a->what & (LT_READ | LT_WRITE))) continue;
        uint32_t loop = c->flow->points[a->point].loop;
        x->loop = first ? loop : lt_common_loop(c->flow->k, x->loop, loop);
        first = false;
        x->n_access++;
    }
    x->writes = writes;
    x->cap_writes = v->n_access;
    return true;
}

/* The loop that a value is allocated in. */
static uint32_t alloc_loop(const ot_kernel *k, const ot_tk_value *v)
{
    uint32_t loop = v->stmt < k->n_stmts ? k->stmts[v->stmt].parent : OT_NONE;
    while (loop != OT_NONE && k->stmts[loop].op == OT_TK_IF) loop = k->stmts[loop].parent;
    return loop;
}

static ot_status one_class(lt_classes *c, uint32_t var, const ot_tk_machine *t, const char *path,
                           ot_diag *d)
{
    const lt_var *v = &c->flow->vars[var];
    const ot_tk_value *value = &c->flow->k->values[v->value];
    lt_class *x = &c->classes[var];
    *x = (lt_class){.first = var,
                    .last = var,
                    .n_members = 1,
                    .scope = value->scope,
                    .pool = value->pool,
                    .size = value->bytes,
                    .loop = OT_NONE,
                    .keep = value->keep,
                    .keep_loop = alloc_loop(c->flow->k, value)};
    c->of[var] = var;
    c->next[var] = OT_NONE;
    if (value->kind == OT_TK_BUFFER) {
        x->multi = value->multi;
        x->fixed = value->n_offsets > 0;
        memcpy(x->offsets, value->offsets, sizeof x->offsets);
        c->finished[x->scope] = c->finished[x->scope] && x->fixed;
        /* a place that was given to a storage without alloc */
    } else if (v->temporary ? value->n_waits : value->n_offsets) {
        x->multi = v->temporary ? value->n_waits : value->n_offsets;
        x->fixed = true;
        memcpy(x->offsets, v->temporary ? value->waits : value->offsets, sizeof x->offsets);
    }
    OT_TRY(alignment(c->flow, v->value, t, path, d, &x->align));
    if (!find_writes(c, x, v)) return ot_fail_nomem(d);
    /* copies: joining changes them */
    bool ok = lt_spans_join(c->arena, &x->live, &v->live) &&
              lt_spans_join(c->arena, &x->after, &v->after);
    return ok ? OT_OK : ot_fail_nomem(d);
}

/* Is the class alive around the back edge of `loop`, which repeats all its accesses? Then what
 * is needed after the latch is needed by the next iteration: nothing behind the loop reads it. */
static bool alive_around(const lt_classes *c, const lt_class *x, uint32_t loop)
{
    return loop != OT_NONE && lt_spans_hold(&x->after, c->flow->latch[loop]);
}

/* ---- interference ---- */

/* Is the point a copy from a storage to itself? Nothing happens there. */
static bool vanished(const lt_classes *c, const lt_point *p)
{
    return p->to != OT_NONE && p->from != OT_NONE && c->of[p->to] == c->of[p->from];
}

/* Does a write of a hit a value of b that is still to be read? */
static bool overwrites(const lt_classes *c, const lt_class *a, const lt_class *b)
{
    const lt_flow *f = c->flow;
    size_t i = 0;
    for (size_t s = 0; s < b->after.n; s++) {
        size_t high = a->n_writes; /* the first write of a in or behind the span */
        while (i < high) {
            size_t mid = (i + high) / 2;
            if (a->writes[mid] < b->after.at[s].lower)
                i = mid + 1;
            else
                high = mid;
        }
        for (; i < a->n_writes && a->writes[i] < b->after.at[s].upper; i++) {
            const lt_point *p = &f->points[a->writes[i]];
            if (vanished(c, p)) continue;
            /* What else is alive in the source's storage has the source's value, which does not
             * change. */
            bool copies_b = p->to != OT_NONE && p->from != OT_NONE &&
                            &c->classes[c->of[p->from]] == b;
            if (!copies_b) return true;
        }
    }
    return false;
}

/* May one point do both with one storage? */
static bool point_allows(const lt_classes *c, const lt_access *x, const lt_access *y)
{
    if (!((x->what | y->what) & LT_WRITE)) return true;
    if (x->what & y->what & LT_WRITE) return false;
    const lt_access *w = x->what & LT_WRITE ? x : y, *r = w == x ? y : x;
    if (!(r->what & LT_READ)) return true;
    const lt_point *p = &c->flow->points[w->point];
    if (p->to == w->var && p->from == r->var) return true;
    return lt_in_place(c->flow, c->options, p->stmt, w->var, r->var);
}

/* Is there a point that accesses both and does not allow it? */
static bool collide(const lt_classes *c, const lt_class *a, const lt_class *b)
{
    const lt_flow *f = c->flow;
    if (a->n_access > b->n_access) { /* look at the points of the smaller one */
        const lt_class *swap = a;
        a = b;
        b = swap;
    }
    for (uint32_t v = a->first; v != OT_NONE; v = c->next[v]) {
        for (uint32_t i = 0; i < f->vars[v].n_access; i++) {
            const lt_access *x = &f->accesses[f->vars[v].access[i]];
            uint32_t end = f->points[x->point + 1].first_access;
            for (uint32_t j = f->points[x->point].first_access; j < end; j++) {
                const lt_access *y = &f->accesses[j];
                if (&c->classes[c->of[y->var]] == b && !point_allows(c, x, y)) return true;
            }
        }
    }
    return false;
}

/* ---- properties ---- */

/* Do both take their slots in turn by the same loop, or none? What has no slots of its own
 * (carried values, results) takes those of the other. */
static bool multi_agrees(const lt_classes *c, const lt_class *a, const lt_class *b)
{
    bool differ = a->multi && b->multi && a->multi != b->multi;
    const lt_class *single = a->multi <= b->multi ? a : b;
    /* A single buffer that works in place in slots takes their number; where slots are not held
     * anyway, one that has joined nothing yet: read again with its slots, a plan joins the same. */
    if (differ && (single->multi > 1 || a->fixed || b->fixed)) return false;
    if (differ && !c->options->hold_multi && single->n_members > 1) return false;
    if (a->multi <= 1 && b->multi <= 1) return true;
    if (!a->n_access || !b->n_access) return true;
    return a->loop == b->loop && !alive_around(c, a, a->loop) && !alive_around(c, b, b->loop);
}

static int by_offset(const void *x, const void *y)
{
    const lt_slot *a = x, *b = y;
    if (a->scope != b->scope) return a->scope < b->scope ? -1 : 1;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return a->var < b->var ? -1 : a->var > b->var;
}

static bool list_fixed(lt_classes *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->flow->n_vars; i++) n += c->classes[i].fixed ? c->classes[i].multi : 0;
    c->fixed = OT_NEW_N(c->arena, lt_slot, n);
    if (!c->fixed) return false;
    for (uint32_t i = 0; i < c->flow->n_vars; i++) {
        const lt_class *x = &c->classes[i];
        for (uint32_t k = 0; x->fixed && k < x->multi; k++)
            c->fixed[c->n_fixed++] = (lt_slot){x->scope, x->offsets[k], i};
        if (x->fixed) c->largest[x->scope] = ot_max(c->largest[x->scope], x->size);
    }
    if (n > 1) qsort(c->fixed, n, sizeof *c->fixed, by_offset);
    return true;
}

/* Would the class `free`, at the offsets of `fixed`, meet another one that is fixed there? Never
 * when all is fixed: then it is a finished plan, and what shares in it has one offset. */
static bool fixed_clash(const lt_classes *c, const lt_class *fixed, const lt_class *free)
{
    for (uint32_t k = 0; k < fixed->multi && !c->finished[fixed->scope]; k++) {
        lt_slot at = {fixed->scope, fixed->offsets[k] - c->largest[fixed->scope], OT_NONE};
        size_t low = 0, high = c->n_fixed; /* the first slot that may reach this one */
        while (low < high) {
            size_t mid = (low + high) / 2;
            if (by_offset(&c->fixed[mid], &at) <= 0)
                low = mid + 1;
            else
                high = mid;
        }
        for (; low < c->n_fixed && c->fixed[low].scope == fixed->scope; low++) {
            const lt_slot *slot = &c->fixed[low];
            const lt_class *x = &c->classes[c->of[slot->var]];
            if (slot->offset - fixed->offsets[k] >= fixed->size) break;
            if (x == fixed || fixed->offsets[k] - slot->offset >= x->size) continue;
            if (lt_spans_meet(&x->live, &free->live)) return true;
        }
    }
    return false;
}

static bool offsets_agree(const lt_classes *c, const lt_class *a, const lt_class *b, int64_t align)
{
    if (!a->fixed && !b->fixed) return true;
    const lt_class *fixed = a->fixed ? a : b;
    for (uint32_t i = 0; i < fixed->multi; i++) {
        if (fixed->offsets[i] % align) return false;
        if (a->fixed && b->fixed && a->offsets[i] != b->offsets[i]) return false;
    }
    return (a->fixed && b->fixed) || !fixed_clash(c, fixed, fixed == a ? b : a);
}

/* ---- merging ---- */

static bool join_writes(ot_arena *arena, lt_class *a, const lt_class *b)
{
    size_t n = a->n_writes + b->n_writes, i = a->n_writes, j = b->n_writes;
    if (n > a->cap_writes &&
        !ot_grow(arena, (void **)&a->writes, &a->cap_writes, n, sizeof *a->writes))
        return false;
    a->n_writes = n;
    while (j > 0)
        a->writes[--n] = i > 0 && a->writes[i - 1] > b->writes[j - 1] ? a->writes[--i]
                                                                      : b->writes[--j];
    return true;
}

/* Put all of b into a. */
static bool unite(lt_classes *c, lt_class *a, lt_class *b, int64_t align)
{
    if (a->n_members < b->n_members) {
        lt_class *swap = a;
        a = b;
        b = swap;
    }
    for (uint32_t v = b->first; v != OT_NONE; v = c->next[v]) c->of[v] = (uint32_t)(a - c->classes);
    c->next[a->last] = b->first;
    a->last = b->last;
    a->n_members += b->n_members;
    if (!a->n_access)
        a->loop = b->loop;
    else if (b->n_access)
        a->loop = lt_common_loop(c->flow->k, a->loop, b->loop);
    a->n_access += b->n_access;
    if (a->keep && b->keep)
        a->keep_loop = lt_common_loop(c->flow->k, a->keep_loop, b->keep_loop);
    else if (b->keep)
        a->keep_loop = b->keep_loop;
    if (b->keep > a->keep) a->keep = b->keep;
    a->size = ot_max(a->size, b->size);
    a->align = align;
    a->multi = a->multi > b->multi ? a->multi : b->multi;
    if (b->fixed) memcpy(a->offsets, b->offsets, sizeof a->offsets);
    a->fixed = a->fixed || b->fixed;
    b->first = OT_NONE;
    return join_writes(c->arena, a, b) && lt_spans_join(c->arena, &a->live, &b->live) &&
           lt_spans_join(c->arena, &a->after, &b->after);
}

/* Give two variables one storage if they may have it; any_size: also one of other size. false:
 * memory ran out. */
static bool try_merge(lt_classes *c, uint32_t u, uint32_t v, bool any_size, bool *merged)
{
    lt_class *a = &c->classes[c->of[u]], *b = &c->classes[c->of[v]];
    int64_t align;
    *merged = false;
    if (a == b || a->scope != b->scope || a->pool != b->pool || (a->size != b->size && !any_size) ||
        !multi_agrees(c, a, b))
        return true;
    if (!ot_mul_i64(a->align / ot_gcd(a->align, b->align), b->align, &align) ||
        !offsets_agree(c, a, b, align))
        return true;
    if (collide(c, a, b) || overwrites(c, a, b) || overwrites(c, b, a)) return true;
    *merged = true;
    return unite(c, a, b, align);
}

static int by_weight(const void *x, const void *y)
{
    const lt_pair *a = x, *b = y;
    if (a->depth != b->depth) return a->depth > b->depth ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    if (a->a != b->a) return a->a < b->a ? -1 : 1;
    return a->b < b->b ? -1 : a->b > b->b;
}

static bool merge_copies(lt_classes *c)
{
    const lt_flow *f = c->flow;
    bool merged;
    if (f->n_pairs > 1) qsort(f->pairs, f->n_pairs, sizeof *f->pairs, by_weight);
    for (size_t i = 0; i < f->n_pairs; i++) {
        if (!try_merge(c, f->pairs[i].a, f->pairs[i].b, false, &merged)) return false;
    }
    return true;
}

/* Output k of statement i takes the place of the first input that allows it. equal: only of one
 * whose elements are as wide. */
static bool merge_output(lt_classes *c, uint32_t i, uint32_t k, bool equal)
{
    const lt_flow *f = c->flow;
    const ot_tk_stmt *s = &f->k->stmts[i];
    const uint32_t to = f->var_of[s->out[k]];
    bool merged = false;
    if (to == OT_NONE) return true;
    for (uint32_t j = 0; j < s->n_in && !merged; j++) {
        const uint32_t from = f->var_of[s->in[j]];
        if (from == OT_NONE || !lt_in_place(f, c->options, i, to, from)) continue;
        if (c->of[from] == c->of[to]) break; /* in place already */
        if (c->classes[c->of[from]].keep || c->classes[c->of[to]].keep) continue;
        const bool narrow = s->over
                                ? lt_is_narrower(&f->k->values[s->out[k]], &f->k->values[s->in[j]])
                                : lt_is_narrow(s);
        if (equal && narrow) continue;
        if (!try_merge(c, to, from, narrow, &merged)) return false;
    }
    c->n_in_place += merged;
    return true;
}

static bool merge_in_place(lt_classes *c)
{
    const lt_flow *f = c->flow;
    for (uint32_t i = 0; i < f->k->n_stmts; i++) {
        const ot_tk_stmt *s = &f->k->stmts[i];
        if (s->op != OT_TK_COMPUTE || (!s->over && s->n_out != 1 + s->n_scratch)) continue;
        const uint32_t n = s->over ? s->n_out : 1;
        for (uint32_t k = 0; k < n; k++) /* what fits exactly first */
            if (s->over && !merge_output(c, i, k, true)) return false;
        for (uint32_t k = 0; k < n; k++)
            if (!merge_output(c, i, k, false)) return false;
    }
    return true;
}

/* What is allocated `with` another lies in its place. */
static ot_status merge_with(lt_classes *c, const char *path, ot_diag *d)
{
    const ot_kernel *k = c->flow->k;
    bool merged;
    for (uint32_t i = 0; i < k->n_values; i++) {
        const ot_tk_value *v = &k->values[i];
        if (v->kind != OT_TK_BUFFER || !v->with) continue;
        const uint32_t x = c->flow->var_of[i], y = c->flow->var_of[v->with - 1];
        if (c->of[x] == c->of[y]) continue;
        const bool keeps = c->classes[c->of[x]].keep || c->classes[c->of[y]].keep;
        merged = false;
        if (!keeps && !try_merge(c, x, y, true, &merged)) return ot_fail_nomem(d);
        if (!merged)
            return ot_fail(d, OT_E_INPUT,
                           "%s:%u:%u: '%s' cannot lie where '%s' does: %s [with-place]", path,
                           v->line, v->col, v->name, k->values[v->with - 1].name,
                           keeps ? "one of them keeps its place for itself"
                                 : "both hold values at one time, or their slots or offsets "
                                   "differ");
    }
    return OT_OK;
}

/* A multi-buffer takes its slots in turn, so an iteration does not find what the one before left.
 */
static ot_status check_multi(const lt_classes *c, const char *path, ot_diag *d)
{
    const ot_kernel *k = c->flow->k;
    for (size_t i = 0; i < c->flow->n_vars; i++) {
        const lt_class *x = &c->classes[i];
        const ot_tk_value *v = &k->values[c->flow->vars[i].value];
        if (x->multi <= 1 || !alive_around(c, x, x->loop)) continue;
        return ot_fail(d, OT_E_INPUT,
                       "%s:%u:%u: '%s' has multi=%u, but keeps a value from one iteration of the "
                       "loop at line %u to the next (a "
                       "buffer that is written by parts is to be allocated inside the loop)",
                       path, v->line, v->col, v->name, x->multi, k->stmts[x->loop].line);
    }
    return OT_OK;
}

ot_status lt_merge(lt_classes *c, const lt_flow *f, const ot_tk_machine *t,
                   const ot_lifetime_options *o, const char *path, ot_arena *a, ot_diag *d)
{
    *c = (lt_classes){.flow = f, .options = o, .arena = a};
    c->classes = OT_NEW_N(a, lt_class, f->n_vars);
    c->of = OT_NEW_N(a, uint32_t, f->n_vars);
    c->next = OT_NEW_N(a, uint32_t, f->n_vars);
    if (!c->classes || !c->of || !c->next) return ot_fail_nomem(d);
    memset(c->finished, true, sizeof c->finished);
    for (size_t i = 0; i < f->n_vars; i++) OT_TRY(one_class(c, (uint32_t)i, t, path, d));
    if (!list_fixed(c)) return ot_fail_nomem(d);
    OT_TRY(check_multi(c, path, d));
    if (!merge_copies(c)) return ot_fail_nomem(d);
    OT_TRY(merge_with(c, path, d));
    if (!merge_in_place(c)) return ot_fail_nomem(d);
    for (size_t i = 0; i < f->n_points; i++) {
        const lt_point *p = &f->points[i];
        c->n_copies += p->to != OT_NONE && !vanished(c, p);
    }
    return OT_OK;
}
