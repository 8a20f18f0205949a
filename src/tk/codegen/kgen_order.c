/* Barriers: what a group's items must have done before they go on.
 *
 *   load a <- x       pending: a written             by item e % ITEMS, element e
 *   b = relu(a)       pending: a read, b written     the same items touch the same elements: no
 *                                                    barrier
 *   s = reduce_sum(b) barrier, pending: b read, s written
 *
 * Accesses that wait for no barrier yet are pending. A statement that touches the bytes of one,
 * either of them writing, comes behind a barrier, and then nothing is pending. So it is at the
 * head and at the end of every loop's body and branch. Statements keep the order of the text,
 * which streams and pipes leave to the machine: a barrier is never missing where they overlap in
 * memory.
 */
#include "kgen_internal.h"

static bool same_items(const kgen_access *a, const kgen_access *b)
{
    return a->place && b->place && a->share.total > 0 && a->share.total == b->share.total &&
           a->share.inner == b->share.inner && a->width == b->width &&
           strcmp(a->place, b->place) == 0;
}

static bool depends(const kgen_access *a, const kgen_access *b)
{
    if (a->memory != b->memory || (!a->write && !b->write) || a->low >= b->high ||
        b->low >= a->high)
        return false;
    return !same_items(a, b);
}

void kgen_flush(kgen *g)
{
    if (g->n_pending > 0) kgen_line(g, "BARRIER();");
    g->n_pending = 0;
}

static kgen_access access_of(kgen *g, const kgen_operand *o, bool write, kgen_share share,
                             uint32_t number)
{
    kgen_access x = {.memory = o->memory,
                     .low = o->low,
                     .high = o->high,
                     .write = write,
                     .share = share,
                     .width = o->width};
    if (share.walks >> number & 1)
        x.place = kgen_text(g, "%s%s + %lld", o->base, o->dynamic, (long long)o->constant);
    return x;
}

ot_status kgen_touch(kgen *g, const kgen_operand *in, uint32_t n_in, const kgen_operand *out,
                     kgen_share share)
{
    uint32_t n = n_in + (out != NULL);
    kgen_access mine[KGEN_OPERANDS_MAX + 1];
    bool wait = false;
    for (uint32_t k = 0; k < n; k++) {
        mine[k] = access_of(g, k < n_in ? &in[k] : out, k >= n_in, share, k);
        for (size_t j = 0; j < g->n_pending; j++) wait = wait || depends(&g->pending[j], &mine[k]);
    }
    if (wait) kgen_flush(g);
    for (uint32_t k = 0; k < n; k++)
        if (!OT_PUSH(g->a, g->pending, g->n_pending, g->cap_pending, mine[k]))
            return ot_fail_nomem(g->d);
    return OT_OK;
}

/* ---- work-groups ---- */

static bool inside(const kgen *g, uint32_t stmt, uint32_t loop)
{
    return stmt > loop && stmt < g->k->stmts[loop].mate;
}

static bool is_quiet(ot_tk_op op)
{
    return op == OT_TK_ALLOC || op == OT_TK_FREE || op == OT_TK_VIEW || op == OT_TK_WAIT ||
           op == OT_TK_ARRIVE || op == OT_TK_FENCE || op == OT_TK_CHECK;
}

/* Does a statement outside of the loop do something that every group may do for itself, before
 * the loop? */
static bool may_repeat(const kgen *g, uint32_t i, uint32_t loop)
{
    const ot_tk_stmt *s = &g->k->stmts[i];
    if (i > loop) return is_quiet(s->op);
    for (uint32_t k = 0; k < s->n_out; k++)
        if (kgen_value(g, ot_tk_root(g->k, s->out[k], NULL))->kind == OT_TK_PARAM) return false;
    return true;
}

/* Is all that a statement inside writes the iteration's own, or a param, of which every
 * iteration writes its own part? */
static bool is_own(const kgen *g, uint32_t i, uint32_t loop)
{
    const ot_tk_stmt *s = &g->k->stmts[i];
    if (s->op == OT_TK_ALLOC || s->op == OT_TK_VIEW) return true;
    for (uint32_t k = 0; k < s->n_out; k++) {
        const ot_tk_value *x = kgen_value(g, ot_tk_root(g->k, s->out[k], NULL));
        if (x->kind != OT_TK_PARAM && !inside(g, x->stmt, loop)) return false;
    }
    return true;
}

uint32_t kgen_find_spread(const kgen *g)
{
    uint32_t loop = OT_NONE;
    for (uint32_t i = 0; i < g->k->n_stmts; i++) {
        const ot_tk_stmt *s = &g->k->stmts[i];
        if (s->op != OT_TK_FOR || !s->parallel || s->parent != OT_NONE || s->hi < 0) continue;
        if (loop != OT_NONE) return OT_NONE;
        loop = i;
    }
    for (uint32_t i = 0; i < g->k->n_stmts && loop != OT_NONE; i++) {
        if (i == loop || i == g->k->stmts[loop].mate) continue;
        if (!(inside(g, i, loop) ? is_own(g, i, loop) : may_repeat(g, i, loop))) loop = OT_NONE;
    }
    return loop;
}
