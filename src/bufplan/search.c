/* Exact search for a packing of at most a given height: a tree over skylines, with conflicts and restarts.
 *
 *   offset ^        +---+
 *          |  +-----+   |   +--       A node takes an open section (search_choose.c) and asks: which box rests on its floor, or none?
 *          |  |     | u |   |         Every branch places that box, or gives up the height to the next level; then floors rise as
 *          |  |     |   |___|         far as they must and bounds are checked (search_state.c).
 *          +------------------>
 *
 *   part      boxes to come that share no section with the others. Parts are solved one after the other; the first that fails,
 *             fails the branch that cut them off, whatever the parts before it did
 *   conflict  a failure blames a set of sections (search_learn.c). Branches that do not touch it are left at once
 *   restart   the time to a packing has a heavy tail, so the tree is left after some nodes and entered again with other noise in the
 *             order of the candidates. What was learnt stays: failed states, failures per section, the deepest packing's offsets
 *
 * A tree that ends by itself has been searched wholly, memories of older failures included: then there is no packing.
 *
 * Sources of the ideas: minimalloc (ASPLOS 2023; sections, canonical order, decomposition), conflict-directed backjumping (Prosser
 * 1993), state-based nogoods, dom/wdeg (Boussemart et al. 2004), Luby, Sinclair, Zuckerman 1993 (restarts), phase saving of SAT.
 */
#include "search_internal.h"

#define RESTART_NODES 1000
#define WORK_PER_STEP 8192 /* list entries; a plain node is less */

typedef enum move { ENTER, BRANCH, FAILED, FOUND, NONE, STOPPED } move;

/* ---- the tree ---- */

/* Fewest boxes first: a part that fails should do so soon. */
static void sort_parts(search_part *parts, size_t n, const search *s)
{
    for (size_t k = 1; k < n; k++) {
        search_part x = parts[k];
        uint64_t mine = 0;
        for (uint32_t t = x.from; t < x.to; t++) mine += s->section[t].end - s->section[t].start;
        size_t j = k;
        for (; j > 0; j--) {
            uint64_t other = 0;
            for (uint32_t t = parts[j - 1].from; t < parts[j - 1].to; t++) other += s->section[t].end - s->section[t].start;
            if (other <= mine) break;
            parts[j] = parts[j - 1];
        }
        parts[j] = x;
    }
}

/* Cut the sections [from, to) into parts: one becomes s->part, the others wait in front of `todo`. With nothing to come, the first that
 * waits is next; when none waits, all is placed. */
static move split(search *s, uint32_t from, uint32_t to, uint32_t parent, uint32_t todo)
{
    size_t first = s->n_waiting;
    bool apart = s->rules & OT_PACK_DECOMPOSE;
    for (uint32_t t = from, last; t < to; t = last) {
        last = t + 1;
        if (s->section[t].start == s->section[t].end) continue;
        while (last < to && (!apart || s->section[last - 1].crossing > 0)) last++;
        search_part part = {t, last, parent, OT_NONE};
        if (!OT_PUSH(s->arena, s->waiting, s->n_waiting, s->cap_waiting, part)) {
            s->nomem = true;
            return STOPPED;
        }
    }
    s->work += to - from;
    size_t n = s->n_waiting - first;
    if (n == 0 && todo == OT_NONE) return FOUND;
    if (n == 0) {
        s->part = s->waiting[todo];
        return ENTER;
    }
    if (n > 1) sort_parts(s->waiting + first, n, s);
    for (size_t k = 0; k < n; k++) s->waiting[first + k].todo = k + 1 < n ? (uint32_t)(first + k + 1) : todo;
    s->part = s->waiting[first];
    return ENTER;
}

/* Count the effort of a node. */
static bool spend(search *s)
{
    int64_t n = 1 + s->work / WORK_PER_STEP;
    s->work %= WORK_PER_STEP;
    if (s->nodes_left-- <= 0) return false;
    if (!pack_spend(s->budget, n)) s->stopped = true;
    return !s->stopped;
}

static void save_phase(search *s)
{
    s->best_placed = s->n_placed;
    for (size_t k = 0; k < s->n_steps; k++)
        if (s->steps[k].box != OT_NONE) s->phase[s->steps[k].box] = s->offset[s->steps[k].box];
    s->work += (int64_t)s->n_steps;
}

/* A node for s->part. */
static move enter(search *s)
{
    search_node x = {.from = s->part.from, .to = s->part.to, .parent = s->part.parent, .todo = s->part.todo};
    if (!spend(s)) return STOPPED;
    if (s->n_placed > s->best_placed) save_phase(s);
    s->failed = x.parent;
    if (search_failed_before(s, &x)) return FAILED;
    x.steps = (uint32_t)s->n_steps;
    x.waiting = (uint32_t)s->n_waiting;
    search_choose(s, &x);
    if (search_failed_alike(s, &x)) {
        s->n_candidates = x.candidates;
        return FAILED;
    }
    if (!search_blame_node(s, (uint32_t)s->n_nodes) || !OT_PUSH(s->arena, s->nodes, s->n_nodes, s->cap_nodes, x)) {
        s->nomem = true;
        return STOPPED;
    }
    return BRANCH;
}

/* The next branch of the newest node. */
static move branch(search *s)
{
    uint32_t node = (uint32_t)s->n_nodes - 1;
    search_node *x = &s->nodes[node];
    bool ok;
    if (x->next < x->n_candidates) {
        ok = search_place(s, s->candidates[x->candidates + x->next++]);
    } else if (x->next == x->n_candidates && x->gives_up >= 0) {
        x->next++;
        ok = search_give_up(s, x->section, x->gives_up);
    } else {
        search_node_failed(s, node);
        s->failed = x->parent;
        s->n_candidates = x->candidates;
        s->n_nodes--;
        return FAILED;
    }
    if (s->nomem) return STOPPED;
    if (ok) return split(s, x->from, x->to, node, x->todo);
    s->failed = node;
    return FAILED;
}

/* The branch under way of node s->failed has failed: drop what is above, take the branch back, and go on, or fail further down. */
static move fail(search *s)
{
    if (s->failed == OT_NONE) return NONE;
    search_node *x = &s->nodes[s->failed];
    s->n_nodes = (size_t)s->failed + 1;
    s->n_candidates = x->candidates + x->n_candidates;
    s->n_waiting = x->waiting;
    search_undo_to(s, x->steps);
    uint32_t tried = x->next - 1;
    uint32_t box = tried < x->n_candidates ? s->candidates[x->candidates + tried] : OT_NONE;
    if (!search_branch_failed(s, s->failed, box)) return BRANCH;
    s->n_candidates = x->candidates;
    s->n_nodes--;
    s->failed = x->parent;
    return FAILED;
}

/* One tree, until it ends or nodes_left are used up. FOUND: all boxes are placed. */
static move explore(search *s)
{
    move m = split(s, 0, s->n_sections, OT_NONE, OT_NONE);
    while (m == ENTER || m == BRANCH || m == FAILED) {
        if (m == ENTER) m = enter(s);
        else if (m == BRANCH) m = branch(s);
        else m = fail(s);
        if (s->nomem) return STOPPED;
    }
    return m;
}

/* ---- restarts ---- */

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

static move run(search *s, uint32_t order, uint32_t restart)
{
    s->random = ((uint64_t)order << 32) + restart;
    s->keep_phase = restart > 0 && search_random(s) % 5 > 0;
    s->noise = order + restart > 0 ? 1024 : 0;
    s->best_placed = 0;
    s->nodes_left = RESTART_NODES * luby(restart);
    search_set_order(s, order + restart);
    return explore(s);
}

static void read_offsets(const search *s, const ot_pack_problem *p, int64_t *offsets)
{
    for (uint32_t k = 0; k < p->n; k++) offsets[k] = ot_max(p->items[k].fixed, 0); /* of the items that are never alive */
    for (uint32_t b = 0; b < s->n; b++) offsets[s->shape[b].item] = s->offset[b] * s->unit;
}

static ot_status search_all(search *s, const ot_pack_problem *p, uint32_t order, int64_t *offsets, pack_answer *answer)
{
    if (!search_begin(s)) {
        *answer = PACK_NONE;
        return s->nomem ? OT_E_NOMEM : OT_OK;
    }
    size_t settled = s->n_trail;
    for (uint32_t restart = 0; *answer == PACK_LIMIT && !s->stopped && !s->nomem; restart++) {
        switch (run(s, order, restart)) {
        case FOUND:
            *answer = PACK_FOUND;
            read_offsets(s, p, offsets);
            break;
        case NONE: *answer = PACK_NONE; break;
        default: break;
        }
        search_undo_to(s, 0);
        s->n_nodes = s->n_candidates = s->n_waiting = 0;
        if (s->n_trail != settled) OT_BUG("a step was not taken back");
    }
    return s->nomem ? OT_E_NOMEM : OT_OK;
}

ot_status pack_search(const ot_pack_problem *p, int64_t capacity, uint32_t order, uint32_t rules, pack_budget *b, int64_t *offsets,
                      pack_answer *answer)
{
    search *s;
    *answer = PACK_LIMIT;
    for (uint32_t k = 0; k < p->n; k++) { /* also of the items without a size or a moment alive */
        if (ot_max(p->items[k].fixed, 0) > capacity - p->items[k].size) {
            *answer = PACK_NONE;
            return OT_OK;
        }
    }
    OT_TRY(search_new(p, capacity, rules, b, &s, answer));
    if (!s) return OT_OK;
    ot_status st = search_all(s, p, order, offsets, answer);
    ot_arena_free(s->arena);
    return st;
}
