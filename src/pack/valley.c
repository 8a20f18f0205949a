/* Exact search for a packing of at most a given height.
 *
 * Bottom up over a skyline: floor[t] per section of time, everything below it is taken or given
 * up. A node raises floors as far as they must rise and checks bounds (valley_choose.c), splits
 * what is to come into parts that share no section, and branches at one section of a valley:
 * which item rests there on the floor, or none.
 *
 *   solve(list)  bound -> seen to fail before? -> choose place -> for each candidate: put,
 *                split(list), take back
 *   split(list)  one solve per connected part; all must succeed, and the first failure is the
 *                failure of the whole
 *
 * The section is the one with the fewest options divided by the failures seen there (as dom/wdeg
 * in constraint solving), and the search restarts with other orders of the candidates: failures
 * teach it where the problem is hard. The time to a packing has a heavy tail, so restarts are
 * short (Luby's sequence), and what was learnt is forgotten now and then, for early failures
 * lead astray. Failed states are remembered across restarts (valley_memo.c): the same items to
 * come over the same floors fail again, whatever lies below. A restart that ends by itself has
 * tried everything: then there is no packing.
 *
 * Sources of the ideas: minimalloc (ASPLOS 2023; sections, canonical order, decomposition),
 * Boussemart et al. 2004 (dom/wdeg), Luby, Sinclair, Zuckerman 1993 (restarts).
 */
#include "valley.h"

#define RESTART_STEPS 300 /* times Luby's sequence */
/* restarts (whole periods of the sequence), then the failures seen count no more */
#define FORGET_AFTER 15

static bool solve(valley *s, const uint32_t *list, uint32_t n);

/* ---- the search ---- */

/* Room for n ids until the pool is cut back to its old height. Pointers into it stay valid when
 * it grows: the arena keeps the old block, and lists are not changed once they are written.
 * NULL: no memory. */
static uint32_t *pool_take(valley *s, uint32_t n)
{
    if (s->n_pool + n > s->cap_pool &&
        !ot_grow(s->arena, (void **)&s->pool, &s->cap_pool, s->n_pool + n, sizeof *s->pool)) {
        s->nomem = s->cut = true;
        return NULL;
    }
    s->n_pool += n;
    return s->pool ? s->pool + s->n_pool - n : NULL; /* none are wanted, at first */
}

/* Solve what is left of the list, part by part. */
static bool split(valley *s, const uint32_t *list, uint32_t n)
{
    bool apart = s->rules & OT_PACK_DECOMPOSE;
    size_t height = s->n_pool;
    uint32_t *part = pool_take(s, n);
    bool ok = part != NULL || n == 0;
    for (uint32_t k = 0, m = 0, reach = 0; ok && k <= n && n > 0; k++) {
        if (k < n && s->placed[list[k]]) continue;
        if (m > 0 && (k == n || (apart && s->items[list[k]].first >= reach))) {
            ok = solve(s, part, m);
            part += m;
            m = reach = 0;
        }
        if (k == n) break;
        part[m++] = list[k];
        reach = s->items[list[k]].last > reach ? s->items[list[k]].last : reach;
    }
    s->n_pool = height;
    return ok;
}

static bool out_of_steps(valley *s)
{
    s->run_steps++;
    if (!pack_spend(s->budget, 1)) s->out_of_budget = s->cut = true;
    if (s->run_steps > s->run_limit) s->cut = true;
    return s->cut;
}

/* Try what may rest at the place, then nothing. */
static bool branch(valley *s, const uint32_t *list, uint32_t n, valley_branch place)
{
    size_t trail = s->n_trail;
    uint32_t stack = s->n_stack;
    uint32_t *candidates = pool_take(s, n);
    uint32_t m = candidates ? valley_candidates(s, list, n, place.section, candidates) : 0;
    if (!candidates) return false;
    s->n_pool -= n - m;
    for (uint32_t k = 0; k < m && !s->cut; k++) {
        /* deeper nodes overwrite low: the place follows from the floor again */
        const valley_item *it = &s->items[candidates[k]];
        int64_t f = s->floor[place.section], over = f % it->align;
        if (!valley_put(s, candidates[k], over ? f + (it->align - over) : f))
            s->cut = true;
        else if (split(s, list, n))
            return true;
        valley_undo_to(s, trail, stack);
    }
    if (s->cut || place.waste == VALLEY_NO_LEVEL) return false;
    if (!valley_raise(s, place.section, place.waste))
        s->cut = true;
    else if (split(s, list, n))
        return true;
    valley_undo_to(s, trail, stack);
    return false;
}

/* Place all items of the list (none is placed, ascending by first section). false: it cannot be,
 * or the restart is over. What was placed and raised since the call is taken back by the caller. */
static bool solve(valley *s, const uint32_t *list, uint32_t n)
{
    uint32_t lo = s->items[list[0]].first, hi = lo;
    valley_branch place;
    if (out_of_steps(s)) return false;
    for (uint32_t k = 0; k < n; k++)
        if (s->items[list[k]].last > hi) hi = s->items[list[k]].last;
    if (!valley_bound(s, list, n, lo, hi)) return false;
    uint64_t h = (s->rules & OT_PACK_MEMO) ? valley_memo_hash(s, lo, hi) : 0;
    if (h && valley_memo_has(s, h, list, n, lo, hi)) return false;
    bool chosen = valley_choose(s, list, n, lo, hi, &place);
    if (chosen) {
        size_t height = s->n_pool;
        bool ok = branch(s, list, n, place);
        s->n_pool = height;
        if (ok) return true;
        if (s->cut) return false;
        s->weight[place.section]++;
    }
    if (h) valley_memo_add(s, h, list, n, lo, hi);
    return false;
}

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...; k from 0. */
static int64_t luby(uint32_t k)
{
    for (;;) {
        uint32_t p = 1; /* largest power of two up to k + 2 */
        while (p <= (k + 2) / 2) p *= 2;
        if (p == k + 2) return p / 2;
        k -= p - 1;
    }
}

/* One restart. */
static bool run(valley *s, uint32_t *all, uint32_t order, uint32_t restart)
{
    valley_reset(s);
    s->cut = false;
    s->run_steps = 0;
    s->run_limit = RESTART_STEPS * luby(restart);
    s->key_kind = order + restart / FORGET_AFTER;
    if (restart % FORGET_AFTER == 0) memset(s->weight, 0, s->n_sections * sizeof *s->weight);
    s->noise = restart == 0 ? 0 : 0.3;
    s->random = ((uint64_t)order << 32) + restart;
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        if (s->items[k].n_sections > 0) all[n++] = k; /* the others are never alive, or empty */
        s->offset[k] = ot_max(s->items[k].fixed, 0);
    }
    return split(s, all, n);
}

ot_status pack_search(const ot_pack_problem *p, int64_t capacity, uint32_t order, uint32_t rules,
                      pack_budget *b, int64_t *offsets, pack_answer *answer)
{
    valley *s;
    *answer = PACK_LIMIT;
    OT_TRY(valley_new(p, capacity, rules, &s));
    uint32_t *all = OT_NEW_N(s->arena, uint32_t, s->n + 1u);
    for (uint32_t k = 0; k < s->n; k++)
        if (s->items[k].n_sections == 0 &&
            ot_max(s->items[k].fixed, 0) > capacity - s->items[k].size)
            *answer = PACK_NONE;
    s->budget = b;
    s->nomem = !all;
    for (uint32_t restart = 0; !s->nomem && *answer == PACK_LIMIT; restart++) {
        bool found = run(s, all, order, restart);
        if (found) {
            *answer = PACK_FOUND;
            for (uint32_t k = 0; k < s->n; k++) offsets[s->source[k]] = s->offset[k];
        } else if (!s->cut) {
            *answer = PACK_NONE;
        } else if (s->out_of_budget) {
            break;
        }
    }
    ot_status st = s->nomem ? OT_E_NOMEM : OT_OK;
    ot_arena_free(s->arena);
    return st;
}
