/* Sets of regions, of whichever plan they are: from the best plans on, one region comes in the
 * place of those that it overlaps, or one goes, as long as the process then takes less.
 *
 *   plan 1  [ a ][  b   ]     [ c ]  a, b, c  ->  a, d, c  (d is of plan 2, and overlaps b)  ->  a,
 *                                                          d
 *   plan 2       [  d  ]   [  e  ]
 *
 * What the user allows of time holds for each set. Work is counted in nodes that are written and
 * simulated; the same set comes up again in each round, and is scored once.
 */
#include "candidates.h"

#define ABOUT 0.02 /* what differs by less is taken to be equal */
#define LESS  0.01 /* a region that comes in must save that much, or time */
/* may be taken on the way: each step that is written takes some memory */
#define MORE 0.05
/* what slower steps that come in must save: U-Net's are predicted at x0.98, measured at x1.07 */
#define STEPS_SAVE 0.05
/* of what the untiled model scores: what smaller tiles must save that take longer */
#define SLOWER_SAVES 300
#define STARTS_RICH  3     /* the same where plans that pay for kept bytes are among them */
#define STARTS       2     /* plans from which sets are looked for */
#define ROUNDS       4     /* through all regions */
#define MOST_WORK    40000 /* nodes that are written and simulated: half a second */

static bool same_region(const ot_region *a, const ot_region *b)
{
    if (a->first != b->first || a->last != b->last || a->form != b->form ||
        a->n_dims != b->n_dims || a->n_nodes != b->n_nodes)
        return false;
    for (uint32_t d = 0; d < a->n_dims; d++)
        if (a->dims[d].tile != b->dims[d].tile ||
            a->values[a->dims[d].sink].axis[d] != b->values[b->dims[d].sink].axis[d])
            return false;
    return true;
}

/* It becomes one of the pool; false: no memory. */
static bool put_in_pool(ot_candidates *x, const ot_region *r)
{
    const ot_pool_link link = {.next = x->pool_head[r->first], .late = x->finds_late};
    if (x->n_pool == OT_NONE || !OT_PUSH(x->arena, x->links, x->n_links, x->cap_links, link))
        return false;
    x->pool_head[r->first] = (uint32_t)x->n_pool;
    return OT_PUSH(x->arena, x->pool, x->n_pool, x->cap_pool, r);
}

/* Its place in the pool, where it is put if it is new; OT_NONE: no memory. */
static uint32_t place_of(ot_candidates *x, const ot_region *r)
{
    if (!x->pool_head) {
        x->pool_head = OT_NEW_N(x->arena, uint32_t, x->g->n_nodes + 1u);
        if (!x->pool_head) return OT_NONE;
        memset(x->pool_head, 0xff, (x->g->n_nodes + 1u) * sizeof *x->pool_head); /* OT_NONE */
    }
    for (uint32_t j = x->pool_head[r->first]; j != OT_NONE; j = x->links[j].next)
        if (same_region(r, x->pool[j])) {
            x->links[j].late &= x->finds_late;
            return j;
        }
    if (ot_dbg['P'])
        fprintf(stderr, "> Region: steps %u to %u, form %s, %u tiles of %lld: %.3f ms\n", r->first,
                r->last, ot_form_name(r->form), r->dims[0].n_tiles, (long long)r->dims[0].tile,
                r->benefit * 1e3);
    return put_in_pool(x, r) ? (uint32_t)(x->n_pool - 1) : OT_NONE;
}

/* A region that sets may have. */
static ot_status add_region(ot_candidates *x, const ot_region *r)
{
    const uint32_t at = place_of(x, r);
    if (at == OT_NONE) return ot_fail_nomem(x->g->model->diag);
    if (x->links[at].lap == x->lap) return OT_OK;
    x->links[at].lap = x->lap;
    return OT_PUSH(x->arena, x->lap_pool, x->n_lap_pool, x->cap_lap_pool, at)
               ? OT_OK
               : ot_fail_nomem(x->g->model->diag);
}

ot_status ot_candidates_add(ot_candidates *x, const ot_plan *p, int64_t bytes)
{
    ot_region_set set = {.all = p->regions, .n = p->n_regions, .bytes = bytes};
    for (uint32_t k = 0; k < p->n_regions; k++) {
        set.gain += ot_set_saves(x, &p->regions[k]);
        OT_TRY(add_region(x, &p->regions[k]));
    }
    for (uint32_t k = 0; k < p->n_spare; k++) OT_TRY(add_region(x, &p->spare[k]));
    return OT_PUSH(x->arena, x->sets, x->n_sets, x->cap_sets, set)
               ? OT_OK
               : ot_fail_nomem(x->g->model->diag);
}

ot_status ot_candidates_offer(ot_candidates *x, ot_plan *p)
{
    if (!OT_PUSH(x->arena, x->plans, x->n_plans, x->cap_plans, p)) {
        ot_plan_free(p);
        return ot_fail_nomem(x->g->model->diag);
    }
    for (uint32_t k = 0; k < p->n_spare; k++) OT_TRY(add_region(x, &p->spare[k]));
    return OT_OK;
}

/* Both are one region of the same nodes in the same form: they differ by the size of its tiles. */
static bool only_tiles_differ(const ot_region_set *a, const ot_region_set *b)
{
    return a->n == 1 && b->n == 1 && a->all[0].first == b->all[0].first &&
           a->all[0].last == b->all[0].last && a->all[0].form == b->all[0].form;
}

/* a is to be preferred to b. Smaller tiles that take longer must save something of what the
 * untiled model takes: steps of two rows in place of four took a super-resolution network from
 * 26 to 24 MB of 852, and 35 % longer. */
static bool beats(const ot_candidates *x, const ot_region_set *a, const ot_region_set *b,
                  double about)
{
    if (only_tiles_differ(a, b) && a->gain != b->gain) {
        const int64_t least = x->base.untiled / SLOWER_SAVES;
        if (a->gain < b->gain && a->bytes > b->bytes - least) return false;
        if (a->gain > b->gain && a->bytes < b->bytes + least) return true;
    }
    if ((double)a->bytes < (double)b->bytes * (1 - about)) return true;
    return (double)a->bytes <= (double)b->bytes * (1 + about) && a->gain > b->gain;
}

bool ot_set_in_time(const ot_candidates *x, const ot_region_set *to, const ot_region_set *from)
{
    return to->gain - x->unpacked_s >= -x->o.max_slowdown * x->untiled_s ||
           (from && to->gain >= from->gain);
}

static bool is_allowed(const ot_candidates *x, const ot_region_set *set)
{
    return set->gain - x->unpacked_s >= -(x->o.max_slowdown + OT_TIME_ABOUT) * x->untiled_s;
}

static void take_out(const ot_candidates *x, const ot_region_set *from, uint32_t which,
                     ot_region_set *to)
{
    *to = (ot_region_set){.all = to->all, .gain = from->gain - ot_set_saves(x, &from->all[which])};
    for (uint32_t k = 0; k < from->n; k++)
        if (k != which) to->all[to->n++] = from->all[k];
}

void ot_set_swap(ot_region_set *a, ot_region_set *b)
{
    ot_region_set t = *a;
    *a = *b;
    *b = t;
}

ot_status ot_set_allow(ot_candidates *x, ot_region_set *set)
{
    if (x->o.max_tensor || is_allowed(x, set)) return OT_OK;
    ot_region_set a = *set, b = {.all = OT_NEW_N(x->arena, ot_region, set->n + 1u)};
    a.all = OT_NEW_N(x->arena, ot_region, set->n + 1u);
    if (!a.all || !b.all) return ot_fail_nomem(x->g->model->diag);
    memcpy(a.all, set->all, set->n * sizeof *a.all);
    while (a.n > 0 && !is_allowed(x, &a)) {
        uint32_t worst = 0;
        for (uint32_t k = 1; k < a.n; k++)
            if (ot_set_saves(x, &a.all[k]) < ot_set_saves(x, &a.all[worst])) worst = k;
        take_out(x, &a, worst, &b);
        ot_set_swap(&a, &b);
    }
    *set = a;
    return OT_OK;
}

bool ot_set_put_in(const ot_candidates *x, const ot_region_set *from, const ot_region *r,
                   ot_region_set *to)
{
    bool done = false;
    *to = (ot_region_set){.all = to->all, .gain = ot_set_saves(x, r)};
    for (uint32_t k = 0; k < from->n; k++) {
        const ot_region *y = &from->all[k];
        if (same_region(y, r)) return false;
        if (!done && y->first > r->first) {
            to->all[to->n++] = *r;
            done = true;
        }
        if (y->last >= r->first && y->first <= r->last) continue;
        to->all[to->n++] = *y;
        to->gain += ot_set_saves(x, y);
    }
    if (!done) to->all[to->n++] = *r;
    return true;
}

uint64_t ot_set_key(const ot_candidates *x, const ot_region_set *set)
{
    const ot_writing *w = &x->how;
    const uint64_t base[12] = {w->branch,
                               w->hidden,
                               w->views,
                               w->blocks,
                               w->folds_norms,
                               w->data_file,
                               (uint64_t)w->unjoined_from,
                               (uint64_t)w->defer_from,
                               (uint64_t)w->unpacked_from,
                               (uint64_t)w->first_block,
                               (uint64_t)w->piece_bytes,
                               x->at_design};
    uint64_t key = ot_hash_bytes(0, base, sizeof base);
    if (w->n_plain > 0) key = ot_hash_bytes(key, w->plain, w->n_plain * sizeof *w->plain);
    for (uint32_t k = 0; k < set->n; k++) {
        const ot_region *r = &set->all[k];
        const uint64_t of[5] = {r->first, r->last, (uint64_t)r->form, r->n_dims, r->n_nodes};
        key = ot_hash_bytes(key, of, sizeof of);
        for (uint32_t d = 0; d < r->n_dims; d++) {
            const int64_t dim[2] = {r->dims[d].tile, r->values[r->dims[d].sink].axis[d]};
            key = ot_hash_bytes(key, dim, sizeof dim);
        }
    }
    return key;
}

/* Nodes of tiles that are written out one after another, less what is simulated as fast as nodes
 * of loops. */
static uint64_t unrolled(const ot_region_set *set)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < set->n; k++) {
        uint64_t tiles = set->all[k].form == OT_FORM_UNROLLED ? set->all[k].n_nodes : 0;
        for (uint32_t d = 0; d < set->all[k].n_dims && tiles; d++)
            tiles *= (uint64_t)set->all[k].dims[d].n_tiles;
        n += tiles;
    }
    return n / 2;
}

/* Work counts once for each set, however often it is simulated: where somebody wants to know more
 * of what it scores. */
ot_status ot_set_score(ot_candidates *x, int64_t most, ot_region_set *set)
{
    const uint64_t key = ot_set_key(x, set), work = x->work;
    size_t at = 0;
    while (at < x->n_scored && x->scored[at].key != key) at++;
    const bool known = at < x->n_scored;
    if (known && (!x->scored[at].is_more || x->scored[at].bytes >= most)) {
        set->bytes = x->scored[at].is_more ? INT64_MAX : x->scored[at].bytes;
        return OT_OK;
    }
    OT_TRY(ot_candidates_score_to(x, set->all, set->n, most, &set->bytes));
    const bool more = set->bytes == INT64_MAX;
    const ot_scored now = {key, more ? most : set->bytes, more};
    if (known) {
        x->work = work;
        x->scored[at] = now;
        return OT_OK;
    }
    x->work += unrolled(set);
    return OT_PUSH(x->arena, x->scored, x->n_scored, x->cap_scored, now)
               ? OT_OK
               : ot_fail_nomem(x->g->model->diag);
}

/* The most that a may score if it is to beat b. */
static int64_t most_to_beat(const ot_candidates *x, const ot_region_set *a, const ot_region_set *b,
                            double about)
{
    const double most = (double)b->bytes * (a->gain > b->gain ? 1 + about : 1 - about);
    if (!(most < 0x1p60)) return INT64_MAX;
    if (a->gain > b->gain && only_tiles_differ(a, b))
        return ot_max((int64_t)most, b->bytes + x->base.untiled / SLOWER_SAVES);
    return (int64_t)most;
}

bool ot_candidates_comes_in(const ot_candidates *x, const ot_region *r, const ot_region_set *from,
                            const ot_region_set *to)
{
    const bool slower_steps = r->form == OT_FORM_STREAM && from->n > 0 && to->gain < from->gain;
    if (slower_steps && (double)to->bytes >= (double)from->bytes * (1 - STEPS_SAVE)) return false;
    return beats(x, to, from, LESS);
}

/* The k-th region that may come in: of the lap at hand, or of all; NULL: there are no more. */
static const ot_region *pooled(const ot_candidates *x, bool all, size_t k)
{
    if (all) return k < x->n_pool ? x->pool[k] : NULL;
    return k < x->n_lap_pool ? x->pool[x->lap_pool[k]] : NULL;
}

/* A climb: from a set to better ones. */
typedef struct climbing {
    bool all;      /* regions of all laps come in */
    uint64_t most; /* work that it may have done at its end */
    ot_region_set set, spare;
    ot_region *other; /* what spare.all takes when the set that it began with gives way */
} climbing;

/* The spare set is the better one. That which the climb began with is others'. */
static void go_on_from_spare(climbing *c)
{
    ot_set_swap(&c->set, &c->spare);
    if (!c->other) return;
    c->spare.all = c->other;
    c->other = NULL;
}

/* One round through all regions; *better: the set has changed. */
static ot_status round_of(ot_candidates *x, climbing *c, bool *better)
{
    const ot_region *r;
    *better = false;
    for (uint32_t k = c->set.n; k-- > 0 && x->work < c->most;) {
        take_out(x, &c->set, k, &c->spare);
        if (!ot_set_in_time(x, &c->spare, &c->set)) continue;
        OT_TRY(ot_set_score(x, most_to_beat(x, &c->spare, &c->set, ABOUT), &c->spare));
        if (!beats(x, &c->spare, &c->set, ABOUT)) continue;
        go_on_from_spare(c);
        *better = true;
    }
    for (size_t k = 0; (r = pooled(x, c->all, k)) != NULL && x->work < c->most; k++) {
        if (c->all && x->links[k].late) continue;
        if (!ot_set_put_in(x, &c->set, r, &c->spare) || !ot_set_in_time(x, &c->spare, &c->set))
            continue;
        OT_TRY(ot_set_score(x, most_to_beat(x, &c->spare, &c->set, LESS), &c->spare));
        if (!ot_candidates_comes_in(x, r, &c->set, &c->spare)) continue;
        go_on_from_spare(c);
        *better = true;
    }
    return OT_OK;
}

/* *set: from it as far as `most` work allows, with room for sets in arena a. */
static ot_status climb_in(ot_candidates *x, bool all, uint64_t most, ot_arena *a,
                          ot_region_set *set)
{
    climbing c = {.all = all,
                  .most = most,
                  .set = *set,
                  .spare.all = OT_NEW_N(a, ot_region, x->n_pool + 1),
                  .other = OT_NEW_N(a, ot_region, x->n_pool + 1)};
    bool better = true;
    if (!c.spare.all || !c.other) return ot_fail_nomem(x->g->model->diag);
    for (int round = 0; round < ROUNDS && better && x->work < most; round++)
        OT_TRY(round_of(x, &c, &better));
    if (ot_dbg['P'])
        fprintf(stderr, "> Set: %.2f MB -> %.2f MB, %u regions, work %llu\n",
                (double)set->bytes / 1048576.0, (double)c.set.bytes / 1048576.0, c.set.n,
                (unsigned long long)x->work);
    if (c.set.all != set->all) {
        c.set.all = ot_memdup(x->arena, c.set.all, c.set.n * sizeof *c.set.all);
        if (!c.set.all) return ot_fail_nomem(x->g->model->diag);
    }
    *set = c.set;
    return OT_OK;
}

static ot_status climb(ot_candidates *x, bool all, uint64_t most, ot_region_set *set)
{
    ot_arena *a = ot_arena_new();
    const ot_status st = a ? climb_in(x, all, most, a, set) : ot_fail_nomem(x->g->model->diag);
    ot_arena_free(a);
    return st;
}

/* Regions of the same steps, in whatever form: from there, the same sets are found. */
static bool same_steps(const ot_region_set *a, const ot_region_set *b)
{
    if (a->n != b->n || a->bytes == b->bytes) return a->n == b->n;
    for (uint32_t k = 0; k < a->n; k++)
        if (a->all[k].first != b->all[k].first || a->all[k].last != b->all[k].last) return false;
    return true;
}

/* From the best of sets [n] that is none of done; *won, where that is better and allowed. *any:
 * *won is a set. */
static ot_status climb_best(ot_candidates *x, const ot_region_set *sets, bool *done, size_t n,
                            climbing *how, ot_region_set *won, bool *any)
{
    size_t best = n;
    for (size_t k = 0; k < n; k++)
        if (!done[k] && sets[k].bytes < INT64_MAX &&
            (best == n || beats(x, &sets[k], &sets[best], ABOUT)))
            best = k;
    if (best == n) return OT_OK;
    for (size_t k = 0; k < n; k++) done[k] |= same_steps(&sets[k], &sets[best]);
    ot_region_set set = sets[best];
    OT_TRY(climb(x, how->all, how->most, &set));
    if (!is_allowed(x, &set) || (*any && !beats(x, &set, won, ABOUT))) return OT_OK;
    *won = set;
    *any = true;
    return OT_OK;
}

ot_status ot_candidates_search(ot_candidates *x, ot_region_set *won)
{
    /* plans to begin with that pay for kept bytes bring as much work as the goal's own */
    const uint64_t share = (x->starts_rich ? 3 : 1) * MOST_WORK / STARTS;
    bool *done = OT_NEW_N(x->arena, bool, x->n_sets + x->n_kept + 1), any = false;
    climbing how = {.all = false};
    if (!done) return ot_fail_nomem(x->g->model->diag);
    x->work = 0;
    for (uint64_t start = 0; start < (x->starts_rich ? STARTS_RICH : STARTS); start++) {
        how.most = share * (start + 1);
        OT_TRY(climb_best(x, x->sets, done, x->n_sets, &how, won, &any));
    }
    if (x->n_kept == 0) return OT_OK;
    how = (climbing){.all = true, .most = x->work + MOST_WORK / STARTS};
    if (any) OT_TRY(climb(x, true, how.most, won));
    how.most = x->work + MOST_WORK / STARTS;
    return climb_best(x, x->kept, done + x->n_sets, x->n_kept, &how, won, &any);
}

ot_status ot_candidates_climb(ot_candidates *x, ot_region_set *won)
{
    x->work = 0;
    return climb(x, true, MOST_WORK / STARTS, won);
}

/* ---- where one region alone lowers nothing ---- */

static bool makes_any(const ot_region *r, const ot_id *nodes, uint32_t n)
{
    for (uint32_t i = 0; i < r->n_nodes; i++)
        for (uint32_t k = 0; k < n; k++)
            if (r->nodes[i].node == nodes[k]) return true;
    return false;
}

/* The step where the block is fullest in `now` is another than in `before`: none of the
 * values is there in both, nor in pieces, which nodes make that a region has written. */
static bool is_elsewhere(const ot_candidates *x, const ot_sim_figures *before,
                         const ot_sim_figures *now)
{
    for (uint32_t i = 0; i < now->n_fullest; i++) {
        if (now->fullest[i] >= x->g->n_nodes) return false;
        for (uint32_t k = 0; k < before->n_fullest; k++)
            if (now->fullest[i] == before->fullest[k]) return false;
    }
    return true;
}

/* The block may be as full at several steps, so that no region lowers it alone: one comes in
 * that empties the step where it is fullest now, even if the block stays as large, and the next
 * step is looked at then. */
static ot_status leave_step(ot_candidates *x, const ot_sim_figures *full, const ot_region_set *from,
                            ot_region_set *best, ot_region_set *spare)
{
    best->n = 0;
    for (size_t k = 0; k < x->n_pool; k++) {
        ot_sim_figures f = {0};
        if (!makes_any(x->pool[k], full->fullest, full->n_fullest)) continue;
        if (!ot_set_put_in(x, from, x->pool[k], spare) || !ot_set_in_time(x, spare, from)) continue;
        OT_TRY(ot_candidates_simulate(x, spare->all, spare->n, &f));
        spare->bytes = ot_score_bytes(&f, &x->base);
        const bool less = (double)spare->bytes < (double)from->bytes * (1 - LESS);
        /* with as many regions: there and back again */
        if (!less && (!is_elsewhere(x, full, &f) || spare->n <= from->n)) continue;
        if ((double)spare->bytes > (double)from->bytes * (1 + MORE)) continue;
        if (best->n == 0 || beats(x, spare, best, LESS)) ot_set_swap(best, spare);
    }
    return OT_OK;
}

ot_status ot_candidates_leave(ot_candidates *x, const ot_sim_figures *full, ot_region_set *at,
                              bool *left)
{
    ot_region_set best = {.all = OT_NEW_N(x->arena, ot_region, x->n_pool + at->n + 1)},
                  spare = best;
    spare.all = OT_NEW_N(x->arena, ot_region, x->n_pool + at->n + 1);
    *left = false;
    if (!best.all || !spare.all) return ot_fail_nomem(x->g->model->diag);
    OT_TRY(leave_step(x, full, at, &best, &spare));
    if (best.n == 0) return OT_OK;
    *left = true;
    *at = best;
    if (ot_dbg['P'])
        fprintf(stderr, "> Left: %.2f MB, %u regions\n", (double)at->bytes / 1048576.0, at->n);
    return OT_PUSH(x->arena, x->sets, x->n_sets, x->cap_sets, *at)
               ? OT_OK
               : ot_fail_nomem(x->g->model->diag);
}

static bool owns(const ot_plan *p, const ot_region *r)
{
    for (uint32_t k = 0; k < p->n_regions; k++)
        if (p->regions[k].nodes == r->nodes) return true;
    for (uint32_t k = 0; k < p->n_spare; k++)
        if (p->spare[k].nodes == r->nodes) return true;
    return false;
}

/* The plan as it was made has just these regions. */
static bool is_whole(const ot_plan *p, const ot_region_set *won)
{
    if (p->n_regions != won->n) return false;
    for (uint32_t k = 0; k < won->n; k++)
        if (!ot_region_is(&p->regions[k], &won->all[k])) return false;
    return true;
}

static void give_away(ot_candidates *x, size_t k)
{
    for (size_t j = k + 1; j < x->n_plans; j++) x->plans[j - 1] = x->plans[j];
    x->n_plans--;
}

ot_status ot_candidates_keep(ot_candidates *x, const ot_region_set *set)
{
    ot_region_set own = *set;
    own.all = OT_NEW_N(x->arena, ot_region, set->n + 1u);
    if (!own.all) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t k = 0; k < set->n; k++) own.all[k] = set->all[k];
    return OT_PUSH(x->arena, x->kept, x->n_kept, x->cap_kept, own)
               ? OT_OK
               : ot_fail_nomem(x->g->model->diag);
}

/* The plans that own regions of *won, and x->own, into lenders; they are given away. */
static uint32_t give_lenders(ot_candidates *x, const ot_region_set *won, ot_plan **lenders)
{
    uint32_t n = 0;
    for (size_t k = x->n_plans; k-- > 0;) {
        bool any = x->plans[k] == x->own; /* what is idle is its */
        for (uint32_t j = 0; j < won->n; j++) any |= owns(x->plans[k], &won->all[j]);
        if (!any) continue;
        lenders[n++] = x->plans[k];
        give_away(x, k);
    }
    return n;
}

ot_status ot_candidates_plan(ot_candidates *x, const ot_region_set *won, ot_plan **out)
{
    ot_plan *own = x->own;
    ot_plan **lenders = OT_NEW_N(x->arena, ot_plan *, x->n_plans + 1);
    if (!lenders) return ot_fail_nomem(x->g->model->diag);
    if (is_whole(own, won)) {
        for (size_t k = x->n_plans; k-- > 0;)
            if (x->plans[k] == own) give_away(x, k);
        for (uint32_t k = 0; k < won->n; k++) own->regions[k].id = x->o.search.first_region + k;
        *out = own;
        return OT_OK;
    }
    ot_plan_parts of = {.regions = won->all,
                        .n = won->n,
                        .idle = own->regions,
                        .n_idle = own->n_regions,
                        .reason = OT_WHY_GROWTH,
                        .lenders = lenders};
    of.n_lenders = give_lenders(x, won, lenders);
    return ot_planner_take(x->planner, &x->o, &of, out);
}
