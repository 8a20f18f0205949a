/* Pools: memory that is handed out in blocks.
 *
 *   pool P max=1M block=4K @ub        members are packed into the pool in whole blocks; the pool
 *                                     then is one buffer of its memory,
 *                                     as high as its members came, alive while any of them is
 *
 *   P  [ a a | b   ]  <- block by block      ub  [ x | P P P P | y ]
 *
 * And the checks of planned addresses.
 */
#include "planmem_internal.h"

struct mem_pools {
    const ot_buffer **all; /* [n_all] the job's buffers before */
    uint32_t n_all;
    int64_t (*inner)[OT_TK_MULTI_MAX]; /* [n_all] of members: place in their pool */
    ot_buffer *buffers;                /* [n_pools] the pools themselves */
    uint32_t *at;                      /* [n_all] in the job's new list: the buffer, or its pool */
    bool *member;                      /* [n_all] */
};

/* A member with its offset fixed has the place that a plan gave it: an absolute one. Then the
 * pool is no buffer. */
static bool is_free_member(const ot_buffer *b) { return b->pool && b->fixed[0] < 0; }

static ot_status fail_pool(const mem_job *j, const ot_tk_pool *pool, const ot_buffer *b,
                           int64_t bound)
{
    const ot_tk_value *v = &j->kernel->values[b->values[0]];
    return ot_fail(j->diag, OT_E_BUDGET,
                   "%s:%u:%u: the pool '%s' is spent: '%s' takes %lld bytes, and with what is "
                   "allocated beside it at least %lld of its %lld are "
                   "needed [pool-spent]",
                   j->path, v->line, v->col, pool->name, v->name, (long long)b->size,
                   (long long)bound, (long long)pool->max);
}

/* The pool is alive while any member is. */
static bool join_live(const mem_job *j, ot_buffer *pool, const ot_buffer *b)
{
    struct {
        ot_span *at;
        size_t n;
    } all = {NULL, 0};
    uint32_t i = 0, k = 0;
    size_t cap = 0;
    while (i < pool->n_live || k < b->n_live) {
        bool first = k == b->n_live ||
                     (i < pool->n_live && pool->live[i].lower <= b->live[k].lower);
        ot_span s = first ? pool->live[i++] : b->live[k++];
        if (all.n > 0 && s.lower <= all.at[all.n - 1].upper)
            all.at[all.n - 1].upper = ot_max(all.at[all.n - 1].upper, s.upper);
        else if (!OT_PUSH(j->scratch, all.at, all.n, cap, s))
            return false;
    }
    pool->live = all.at;
    pool->n_live = (uint32_t)all.n;
    return true;
}

/* Pack the members of pool number p; *height in bytes, whole blocks. */
static ot_status pack_pool(const mem_job *j, mem_pools *x, uint32_t p, const uint32_t *ids,
                           uint32_t n)
{
    const ot_tk_pool *pool = &j->kernel->pools[p];
    ot_buffer *own = &x->buffers[p];
    ot_buffer *copies = OT_NEW_N(j->scratch, ot_buffer, n);
    const ot_buffer **list = OT_NEW_N(j->scratch, const ot_buffer *, n);
    ot_scope_plan stats = {0};
    ot_scope_places at = {.offsets = ot_alloc_n(j->scratch, n, sizeof *at.offsets),
                          .multi = OT_NEW_N(j->scratch, uint32_t, n),
                          .level = OT_NEW_N(j->scratch, ot_reuse_level, n),
                          .stats = &stats};
    int64_t bound;
    if (!copies || !list || !at.offsets || !at.multi || !at.level) return ot_fail_nomem(j->diag);
    for (uint32_t i = 0; i < n; i++) {
        copies[i] = *x->all[ids[i]];
        int64_t unit = ot_max(pool->block, copies[i].align);
        if (unit % pool->block != 0 || unit % copies[i].align != 0)
            unit = pool->block * copies[i].align;
        copies[i].size = ot_ceil_div(copies[i].size, pool->block) * pool->block;
        copies[i].align = unit;
        own->align = ot_max(own->align, unit);
        own->pipes |= copies[i].pipes;
        own->dma = own->dma || copies[i].dma;
        list[i] = &copies[i];
        if (!join_live(j, own, &copies[i])) return ot_fail_nomem(j->diag);
    }
    OT_TRY(pm_lower_bound(list, n, j->scratch, j->diag, &bound));
    OT_TRY(ot_planmem(list, n, j->kernel, pool->max, j->scratch, j->diag, &at));
    for (uint32_t i = 0; i < n; i++) {
        if (!at.fits && at.offsets[i][0] + copies[i].size > pool->max)
            return fail_pool(j, pool, x->all[ids[i]], ot_max(bound, at.needed));
        memcpy(x->inner[ids[i]], at.offsets[i], sizeof *at.offsets);
    }
    own->size = at.needed;
    return at.fits ? OT_OK : fail_pool(j, pool, x->all[ids[n - 1]], ot_max(bound, at.needed));
}

static ot_status enter_pool(mem_job *j, mem_pools *x, uint32_t p, const ot_buffer **list,
                            uint32_t *n_list)
{
    uint32_t *ids = OT_NEW_N(j->scratch, uint32_t, x->n_all + 1u), n = 0;
    if (!ids) return ot_fail_nomem(j->diag);
    for (uint32_t i = 0; i < x->n_all; i++)
        if (is_free_member(x->all[i]) && x->all[i]->pool == p + 1) ids[n++] = i;
    if (n == 0) return OT_OK;
    ot_buffer *own = &x->buffers[p];
    *own = *x->all[ids[0]];
    own->n_live = 0;
    own->live = NULL;
    own->loop = OT_NONE;
    OT_TRY(pack_pool(j, x, p, ids, n));
    for (uint32_t i = 0; i < n; i++) {
        x->member[ids[i]] = true;
        x->at[ids[i]] = *n_list;
    }
    list[(*n_list)++] = own;
    return OT_OK;
}

ot_status mem_pools_enter(mem_job *j, mem_pools **out)
{
    uint32_t n = j->n, n_list = 0;
    bool any = false;
    *out = NULL;
    for (uint32_t i = 0; i < n; i++) any = any || is_free_member(j->buffers[i]);
    if (!any) return OT_OK;
    mem_pools *x = OT_NEW(j->scratch, mem_pools);
    const ot_buffer **list = OT_NEW_N(j->scratch, const ot_buffer *, n + 1u);
    if (!x || !list) return ot_fail_nomem(j->diag);
    *x = (mem_pools){.all = j->buffers, .n_all = n};
    x->inner = ot_alloc_n(j->scratch, n, sizeof *x->inner);
    x->buffers = OT_NEW_N(j->scratch, ot_buffer, j->kernel->n_pools + 1u);
    x->at = OT_NEW_N(j->scratch, uint32_t, n);
    x->member = OT_NEW_N(j->scratch, bool, n);
    if (!x->inner || !x->buffers || !x->at || !x->member) return ot_fail_nomem(j->diag);
    for (uint32_t i = 0; i < n; i++) {
        if (is_free_member(j->buffers[i])) continue;
        x->at[i] = n_list;
        list[n_list++] = j->buffers[i];
    }
    for (uint32_t p = 0; p < j->kernel->n_pools; p++) OT_TRY(enter_pool(j, x, p, list, &n_list));
    j->buffers = list;
    j->n = n_list;
    *out = x;
    return OT_OK;
}

void mem_pools_place(const mem_job *j, const mem_pools *x, uint32_t i,
                     int64_t offsets[OT_TK_MULTI_MAX], uint32_t *multi, ot_reuse_level *level)
{
    uint32_t at = x ? x->at[i] : i;
    memcpy(offsets, j->offsets[at], sizeof *j->offsets);
    *multi = j->multi[at];
    *level = j->level[at];
    if (!x || !x->member[i]) return;
    *multi = 1; /* the pool's slot is the members' */
    offsets[0] = j->offsets[at][0] + x->inner[i][0];
    for (uint32_t k = 1; k < OT_TK_MULTI_MAX; k++) offsets[k] = -1;
}

/* ---- checks of addresses ---- */

/* Bytes from the beginning of its buffer to a view, when that is the same in every iteration. */
static bool view_offset(const ot_kernel *k, uint32_t v, int64_t *offset)
{
    *offset = 0;
    for (; k->values[v].base != OT_NONE; v = k->values[v].base) {
        const ot_tk_value *x = &k->values[v], *base = &k->values[x->base];
        int64_t at = 0;
        for (uint32_t d = 0; x->kind == OT_TK_SUBVIEW && d < x->rank; d++) {
            if (x->ranges[d].lo.n > 0) return false;
            at = at * base->dims[d] + x->ranges[d].lo.constant;
        }
        *offset += at * ot_tk_dtype_bits(x->dtype) / 8;
    }
    return true;
}

static ot_status check_address(const ot_kernel *k, const char *path, const ot_mem_plan *p,
                               const ot_tk_machine *t, const ot_tk_stmt *s, ot_diag *d)
{
    uint32_t v = s->in[0], root = ot_tk_root(k, v, NULL), buffer = p->lifetimes->buffer_of[root];
    bool aligned = strcmp(s->name, "is_aligned") == 0;
    const char *rule = aligned ? "is-aligned" : "address-of", *name = k->values[v].name;
    int64_t offset;
    if (!view_offset(k, v, &offset))
        return ot_fail(d, OT_E_INPUT, "%s:%u:%u: '%s' begins somewhere else in each iteration [%s]",
                       path, s->line, s->col, name, rule);
    if (buffer == OT_NONE) { /* a param: as aligned as its memory */
        if (t->scopes[k->values[root].scope].alignment % s->keep == 0 && offset % s->keep == 0)
            return OT_OK;
        return ot_fail(d, OT_E_INPUT, "%s:%u:%u: '%s' is aligned to %lld bytes only [%s]", path,
                       s->line, s->col, name, (long long)t->scopes[k->values[root].scope].alignment,
                       rule);
    }
    for (uint32_t slot = 0; slot < p->multi[buffer]; slot++) {
        int64_t at = p->offsets[buffer][slot] + offset;
        if (aligned ? at % s->keep == 0 : at == s->keep) continue;
        return ot_fail(d, OT_E_INPUT, "%s:%u:%u: '%s' lies at %lld%s%lld [%s]", path, s->line,
                       s->col, name, (long long)at, aligned ? ", no multiple of " : ", not at ",
                       (long long)s->keep, rule);
    }
    return OT_OK;
}

ot_status mem_check_addresses(const ot_kernel *k, const char *path, const ot_mem_plan *p,
                              const ot_tk_machine *t, ot_diag *d)
{
    for (uint32_t i = 0; i < k->n_stmts; i++)
        if (k->stmts[i].op == OT_TK_CHECK) OT_TRY(check_address(k, path, p, t, &k->stmts[i], d));
    return OT_OK;
}
