/* Transfers in streams: what they read and write is taken until they are surely done.
 *
 *   for i in 0..8 {                        held: what a transfer touches, from it to
 *     load a <- x[i:i+1] stream=in           the next full wait for its stream in its own block,
 *     ...                                    else to the end of the whole loop and on from there in
 *                                            the block around it,
 *     wait in                                at last to the end of the kernel
 *     store y[i:i+1] <- b stream=out       b: the whole loop, and on to the wait behind it
 *     wait out keep=1                      (a wait that keeps something is none here)
 *   }
 *   wait out
 *
 * Statements are looked at from the last to the first, once for each stream, with the next wait
 * of each block that is open. The back edges of the loops around a transfer are left out of the
 * points after which a buffer holds a value: a slot that is still being read when the next
 * iteration begins is no value that the next iteration finds.
 */
#include "lifetime_internal.h"

typedef struct level {
    uint32_t block; /* opener, or OT_NONE: the kernel */
    uint32_t wait;  /* next full wait in it, or OT_NONE */
} level;

typedef struct holder {
    lt_flow *f;
    const char *stream;
    level levels[OT_TK_DEPTH_MAX + 1]; /* [depth + 1] open blocks, the kernel first */
    uint32_t depth;
} holder;

static bool is_loop(const lt_flow *f, uint32_t block)
{
    return block != OT_NONE && f->k->stmts[block].op != OT_TK_IF;
}

/* The points [from, to) without the back edges of the loops around the transfer; appended to *s. */
static bool points_between(const holder *h, uint32_t from, uint32_t to, lt_spans *s)
{
    for (uint32_t d = h->depth; d > 0 && from < to; d--) { /* inner loops end first */
        if (!is_loop(h->f, h->levels[d].block)) continue;
        uint32_t latch = h->f->latch[h->levels[d].block];
        if (latch < from || latch >= to) continue;
        ot_span part = {from, latch};
        if (latch > from && !OT_PUSH(h->f->arena, s->at, s->n, s->cap, part)) return false;
        from = latch + 1;
    }
    ot_span rest = {from, to};
    return from >= to || OT_PUSH(h->f->arena, s->at, s->n, s->cap, rest);
}

/* Hold variable v in statements [from, to). */
static bool hold(const holder *h, uint32_t v, uint32_t from, uint32_t to)
{
    ot_span stmts = {from, to};
    lt_spans whole = {.at = &stmts, .n = 1}, points = {0};
    if (v == OT_NONE) return true;
    return points_between(h, h->f->start[from], h->f->start[to], &points) &&
           lt_spans_join(h->f->arena, &h->f->vars[v].live, &whole) &&
           lt_spans_join(h->f->arena, &h->f->vars[v].after, &points);
}

/* Transfer i goes on until the next wait that it surely meets. */
static bool hold_transfer(const holder *h, uint32_t i)
{
    const ot_kernel *k = h->f->k;
    uint32_t from = i, to = k->n_stmts, d = h->depth;
    for (;; d--) {
        if (h->levels[d].wait != OT_NONE) {
            to = h->levels[d].wait + 1;
            break;
        }
        if (is_loop(h->f, h->levels[d].block)) from = h->levels[d].block;
        if (d == 0) break;
    }
    const ot_tk_stmt *s = &k->stmts[i];
    return hold(h, h->f->var_of[s->in[0]], from, to) && hold(h, h->f->var_of[s->out[0]], from, to);
}

static bool is_full_wait(const ot_tk_stmt *s, const char *stream)
{
    if (s->op == OT_TK_FENCE) return true;
    return s->op == OT_TK_WAIT && s->stream && s->keep == 0 && strcmp(s->stream, stream) == 0;
}

static bool hold_stream(holder *h)
{
    const ot_kernel *k = h->f->k;
    h->depth = 0;
    h->levels[0] = (level){OT_NONE, OT_NONE};
    for (uint32_t i = k->n_stmts; i-- > 0;) {
        const ot_tk_stmt *s = &k->stmts[i];
        if (s->op == OT_TK_END) h->levels[++h->depth] = (level){s->mate, OT_NONE};
        if (s->op == OT_TK_ELSE) h->levels[h->depth].wait = OT_NONE;
        if (s->op == OT_TK_FOR || s->op == OT_TK_WHILE || s->op == OT_TK_IF) h->depth--;
        if (is_full_wait(s, h->stream)) h->levels[h->depth].wait = i;
        bool in_stream = s->op != OT_TK_WAIT && s->stream && strcmp(s->stream, h->stream) == 0;
        if (in_stream && !hold_transfer(h, i)) return false;
    }
    return true;
}

ot_status lt_async(lt_flow *f, ot_diag *d)
{
    const ot_kernel *k = f->k;
    ot_map *seen = NULL;
    for (uint32_t i = 0; i < k->n_stmts; i++) {
        const ot_tk_stmt *s = &k->stmts[i];
        if (s->op == OT_TK_WAIT || !s->stream) continue;
        if (!seen) seen = ot_map_new(f->arena);
        if (!seen) return ot_fail_nomem(d);
        if (ot_map_get(seen, s->stream) != OT_NONE) continue;
        holder h = {.f = f, .stream = s->stream};
        if (!ot_map_put(seen, s->stream, i) || !hold_stream(&h)) return ot_fail_nomem(d);
    }
    return OT_OK;
}
