/* Which memory an alloc with `@auto` is in.
 *
 *   one element           var       registers: fastest
 *   at most 256 bytes     local     private to a thread, where the target is a GPU (it has shared
 *                                   memory)
 *   fits the fast memory  its name  ub, shared or l2, whichever the target has (in this order);
 *                         large tiles that are used once
 *                                   stay out of it
 *   else                  gm        as large as it is
 *
 * The fast memory takes half of its capacity at the most for one buffer, all slots together: a
 * tile is never alone. Used once means written once and read once, both outside of loops: such a
 * value gains nothing by being near.
 */
#include "planmem.h"

#define LOCAL_MAX 256 /* bytes that a thread has for itself */

typedef struct use {
    uint32_t n;   /* statements that touch it */
    bool in_loop; /* any of them in a loop that its alloc is not in, or that repeats them */
} use;

typedef struct chooser {
    ot_kernel *k;
    const ot_tk_machine *t;
    ot_arena *a;
    use *uses; /* [n_values] of roots */
    ot_scope fast;
    const char **reasons; /* [n_reasons] */
    size_t n_reasons, cap_reasons;
} chooser;

static ot_scope fast_memory(const ot_tk_machine *t)
{
    static const ot_scope order[] = {OT_SCOPE_UB, OT_SCOPE_SHARED, OT_SCOPE_L2};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (t->scopes[order[i]].bytes > 0) return order[i];
    return OT_SCOPE_GM;
}

static void count_uses(chooser *c)
{
    for (uint32_t i = 0; i < c->k->n_stmts; i++) {
        const ot_tk_stmt *s = &c->k->stmts[i];
        if (s->op == OT_TK_ALLOC || s->op == OT_TK_VIEW || s->op == OT_TK_FREE ||
            s->op == OT_TK_CHECK)
            continue;
        bool in_loop = false;
        for (uint32_t b = s->parent; b != OT_NONE; b = c->k->stmts[b].parent)
            in_loop = in_loop || c->k->stmts[b].op != OT_TK_IF;
        for (uint32_t j = 0; j < s->n_in + s->n_out; j++) {
            use *u = &c->uses[ot_tk_root(c->k, j < s->n_in ? s->in[j] : s->out[j - s->n_in], NULL)];
            u->n++;
            u->in_loop = u->in_loop || in_loop;
        }
    }
}

static bool choose(chooser *c, uint32_t v)
{
    ot_tk_value *x = &c->k->values[v];
    const use *u = &c->uses[v];
    int64_t all = x->bytes * x->multi, room = c->t->scopes[c->fast].bytes;
    const char *why, *name;
    if (x->bytes <= 8 && x->rank == 1 && x->dims[0] == 1 && x->multi == 1) {
        x->scope = OT_SCOPE_VAR;
        why = "one element";
    } else if (c->t->scopes[OT_SCOPE_SHARED].bytes > 0 && all <= LOCAL_MAX) {
        x->scope = OT_SCOPE_LOCAL;
        why = "so small that a thread has it for itself";
    } else if (c->fast != OT_SCOPE_GM && all <= room / 2 && (u->n > 2 || u->in_loop)) {
        x->scope = c->fast;
        x->dynamic = c->fast == OT_SCOPE_SHARED;
        why = u->in_loop ? "used in a loop, and at most half of the memory"
                         : "used again, and at most half of the memory";
    } else {
        x->scope = OT_SCOPE_GM;
        why = c->fast != OT_SCOPE_GM && all <= room / 2 ? "used once: nearness would gain nothing"
                                                        : "more than half of the fast memory";
    }
    name = ot_scope_name(x->scope);
    const char *text = ot_format(
        c->a, "line %u: '%s' (%lld bytes, touched by %u statements) is in %s: %s", x->line, x->name,
        (long long)all, u->n, name, why);
    return text && OT_PUSH(c->a, c->reasons, c->n_reasons, c->cap_reasons, text);
}

/* What is made of a value is where it is. */
static void follow(ot_kernel *k)
{
    for (uint32_t i = 0; i < k->n_stmts; i++) {
        ot_tk_stmt *s = &k->stmts[i];
        bool loop = s->op == OT_TK_FOR || s->op == OT_TK_WHILE;
        if (s->op == OT_TK_VIEW)
            k->values[s->out[0]].scope = k->values[k->values[s->out[0]].base].scope;
        for (uint32_t j = 0; loop && j < s->n_out; j++)
            k->values[s->carried[j]].scope = k->values[s->out[j]].scope = k->values[s->in[j]].scope;
        const ot_tk_stmt *opener = s->op == OT_TK_YIELD ? &k->stmts[s->mate] : NULL;
        for (uint32_t j = 0; opener && opener->op == OT_TK_IF && j < s->n_in; j++)
            k->values[opener->out[j]].scope = k->values[s->in[j]].scope;
        if (s->op == OT_TK_COPY && !s->explicit_pipe)
            s->pipe = ot_tk_copy_pipe(k->values[s->in[0]].scope, k->values[s->out[0]].scope);
    }
}

ot_status ot_mem_choose_scopes(ot_kernel *k, const char *path, const ot_tk_machine *t, ot_diag *d,
                               ot_arena *a, const char ***reasons, uint32_t *n)
{
    chooser c = {.k = k, .t = t, .a = a, .fast = fast_memory(t)};
    bool any = false, ok = true;
    if (reasons) *n = 0;
    for (uint32_t v = 0; v < k->n_values; v++) any = any || k->values[v].scope == OT_SCOPE_AUTO;
    if (!any) return OT_OK;
    c.uses = OT_NEW_N(a, use, (size_t)k->n_values + 1);
    if (!c.uses) return ot_fail_nomem(d);
    count_uses(&c);
    for (uint32_t v = 0; v < k->n_values && ok; v++)
        if (k->values[v].scope == OT_SCOPE_AUTO && k->values[v].kind == OT_TK_BUFFER)
            ok = choose(&c, v);
    if (!ok) return ot_fail_nomem(d);
    follow(k);
    if (reasons) *reasons = c.reasons;
    if (reasons) *n = (uint32_t)c.n_reasons;
    return ot_kernel_verify(k, path, d);
}
