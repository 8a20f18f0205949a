/* What buffers that share memory cost the pipes: a region's planned kernel, its tiles one after
 * the other, with each pipe doing its own statements in order and waiting for those of others
 * that touch the same bytes.
 *
 *   places of the plan                            the same, everything apart
 *     dma_in   |load x|............|load x|         dma_in   |load x|load x|load x|
 *     compute         |conv|relu|                   compute         |conv|relu|conv|relu|
 *              the next load waits for relu         the difference is what sharing stalls
 *
 * Only what the predicted time counts on can be lost: transfers beside computing, where the
 * region has them (the cost model's max of both). Operators are predicted one after the other,
 * whichever pipes they are of, so all that compute is one pipe here.
 *
 * A few tiles show the first wait and what each further tile adds. Multi-buffers take turns. How
 * long a statement takes is what its bytes, or its operations at the target's rates, take.
 */
#include "region_held.h"

#define TILES 8 /* that are gone through */
/* so many tiles back a statement may be waited for: slots of double buffers come round every
 * second one */
#define BACK 3

typedef struct access {
    int64_t lo, hi;
    double end;
    bool writes;
} access;

typedef struct timeline {
    const ot_kernel *k;
    const ot_mem_plan *plan;
    const double *seconds; /* [n_stmts] */
    bool apart;
    int64_t *base; /* [n_buffers] where each is, when all are apart */
    double pipe[OT_PIPE_COUNT], end;
    access *log;
    size_t n_log, cap_log;
    size_t tile_at[TILES + 1]; /* in the log: where each tile begins */
    uint32_t tile;
    ot_arena *a;
} timeline;

/* The bytes of value v in the tile at hand; false: it is no buffer. */
static bool bytes_of(const timeline *x, uint32_t v, int64_t *lo, int64_t *hi)
{
    const uint32_t root = ot_tk_root(x->k, v, NULL), b = x->plan->lifetimes->buffer_of[root];
    if (b == OT_NONE) return false;
    const ot_buffer *u = &x->plan->lifetimes->buffers[b];
    const uint32_t multi = x->plan->multi[b], slot = x->tile % multi;
    if (u->scope != OT_SCOPE_L2) return false;
    *lo = x->apart ? x->base[b] + slot * u->size : x->plan->offsets[b][slot];
    *hi = *lo + u->size;
    return true;
}

static double ready(const timeline *x, int64_t lo, int64_t hi, bool writes)
{
    double at = 0;
    for (size_t k = x->tile_at[x->tile >= BACK ? x->tile - BACK + 1 : 0]; k < x->n_log; k++) {
        const access *y = &x->log[k];
        if ((writes || y->writes) && y->lo < hi && lo < y->hi && y->end > at) at = y->end;
    }
    return at;
}

static bool go(timeline *x, uint32_t s)
{
    const ot_tk_stmt *p = &x->k->stmts[s];
    const bool moves = p->pipe == OT_PIPE_DMA_IN || p->pipe == OT_PIPE_DMA_OUT;
    double *pipe = &x->pipe[moves ? p->pipe : OT_PIPE_VECTOR], start = *pipe;
    int64_t lo, hi;
    if (p->op != OT_TK_LOAD && p->op != OT_TK_STORE && p->op != OT_TK_COPY &&
        p->op != OT_TK_COMPUTE)
        return true;
    for (int writes = 0; writes < 2; writes++)
        for (uint32_t j = 0; j < (writes ? p->n_out : p->n_in); j++)
            if (bytes_of(x, writes ? p->out[j] : p->in[j], &lo, &hi)) {
                const double at = ready(x, lo, hi, writes);
                if (at > start) start = at;
            }
    *pipe = start + x->seconds[s];
    if (*pipe > x->end) x->end = *pipe;
    for (int writes = 0; writes < 2; writes++)
        for (uint32_t j = 0; j < (writes ? p->n_out : p->n_in); j++)
            if (bytes_of(x, writes ? p->out[j] : p->in[j], &lo, &hi)) {
                const access y = {lo, hi, *pipe, writes};
                if (!OT_PUSH(x->a, x->log, x->n_log, x->cap_log, y)) return false;
            }
    return true;
}

/* The loop whose body is the tile, and how often it runs with those around it. */
static uint32_t tile_loop(const ot_kernel *k, double *tiles)
{
    uint32_t loop = OT_NONE;
    *tiles = 1;
    for (uint32_t s = 0; s < k->n_stmts; s++) {
        if (k->stmts[s].op != OT_TK_FOR) continue;
        loop = s;
        *tiles *= (double)(k->stmts[s].hi - k->stmts[s].lo);
    }
    return loop;
}

/* Seconds until n tiles are done. */
static bool run(timeline *x, uint32_t loop, uint32_t n, double *out)
{
    x->end = 0;
    x->n_log = 0;
    x->tile = 0;
    memset(x->pipe, 0, sizeof x->pipe);
    x->tile_at[0] = 0;
    for (uint32_t s = 0; s < loop; s++)
        if (!go(x, s)) return false;
    for (x->tile = 0; x->tile < n; x->tile++) {
        if (x->tile > 0) x->tile_at[x->tile] = x->n_log;
        for (uint32_t s = loop + 1; s < x->k->stmts[loop].mate; s++)
            if (!go(x, s)) return false;
    }
    *out = x->end;
    return true;
}

/* What n tiles take longer than with everything apart. */
static bool difference(timeline *x, uint32_t loop, uint32_t n, double *out)
{
    double shared, apart;
    x->apart = false;
    if (!run(x, loop, n, &shared)) return false;
    x->apart = true;
    if (!run(x, loop, n, &apart)) return false;
    *out = shared > apart ? shared - apart : 0;
    return true;
}

ot_status ot_region_stall(const ot_kernel *k, const ot_mem_plan *p, const double *seconds,
                          ot_diag *d, double *out)
{
    timeline x = {.k = k, .plan = p, .seconds = seconds, .a = ot_arena_new()};
    double tiles, few = 0, all = 0;
    int64_t end = 0;
    bool ok = x.a != NULL;
    const uint32_t loop = tile_loop(k, &tiles), n = tiles < TILES ? (uint32_t)tiles : TILES;
    *out = 0;
    if (ok) x.base = OT_NEW_N(x.a, int64_t, p->lifetimes->n_buffers + 1u);
    for (uint32_t b = 0; x.base && b < p->lifetimes->n_buffers; b++) {
        x.base[b] = end;
        end += p->lifetimes->buffers[b].size * p->multi[b];
    }
    ok = ok && x.base &&
         (loop == OT_NONE || (difference(&x, loop, n / 2, &few) && difference(&x, loop, n, &all)));
    ot_arena_free(x.a);
    if (!ok) return ot_fail_nomem(d);
    *out = all;
    if (tiles > n && all > few) *out += (all - few) / (n - n / 2) * (tiles - n);
    return OT_OK;
}
