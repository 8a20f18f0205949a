/* What the exact search learns from failures.
 *
 * A conflict is a set of sections Q with the meaning: the boxes to come in Q do not fit over the floors of Q, whatever lies in other
 * sections. Floors are the raw ones: tops of placed boxes and height given up. Three things follow.
 *
 *   jump     a branch that changes nothing in Q cannot mend it: its node fails at once, with the same Q
 *   memo     the state of all sections of a node, by hash, with the Q of its failure
 *   nogood   the state of the sections of Q only: it is met again in quite different surroundings, and with higher floors it holds
 *            all the more
 *
 * Where Q comes from:
 *
 *   a bound is broken in section t     t, and for each box c whose low is part of the bound a section that holds c up there
 *   a node has failed                  what its branches blame, united; its section; for every box that is no candidate there, and
 *                                      every box on which a candidate could rest, a section that shows why no packing has the next
 *                                      level lower than claimed
 *   a box lies over a hole             (floor above raw) what keeps the boxes to come out of the hole
 *
 * A section that is in the set already is taken for a reason when it can be, else the nearest one: small sets travel far.
 */
#include "search_internal.h"

#define NOGOODS      32u                  /* per section; the oldest goes */
#define NOGOOD_SIZE  96u                  /* sections; larger ones are hardly met again */
#define POOL_MIN     ((uint64_t)1 << 12)
#define POOL_MAX     ((uint64_t)1 << 19)
#define MEMO_WORDS   ((size_t)1 << 21)    /* at most this much memory */
#define MEMO_MIN     ((size_t)1 << 10)
#define MEMO_PER_BOX 1024u

static uint64_t *blame_of(const search *s, uint32_t node)
{
    return s->blame + (size_t)node * s->words;
}

static void add(uint64_t *set, uint32_t section)
{
    set[section >> 6] |= (uint64_t)1 << (section & 63);
}

/* Next section of the set from `at` on, or n. */
static uint32_t next_of(const search *s, const uint64_t *set, uint32_t at)
{
    for (size_t w = at >> 6; w < s->words; w++) {
        uint64_t bits = w == at >> 6 ? set[w] & ~(uint64_t)0 << (at & 63) : set[w];
        if (bits) return (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
    }
    return s->n_sections;
}

/* Does the floor of section t by itself put box b at `low` or higher? */
static bool holds_up(const search *s, uint32_t t, uint32_t b, int64_t low)
{
    return s->raw[t] >= low || (s->box[b].special && search_lowest(s, b, s->raw[t]) >= low);
}

/* Nearest section that does, or OT_NONE. */
static uint32_t nearest_reason(search *s, uint32_t b, int64_t low, uint32_t near)
{
    const search_shape *shape = &s->shape[b];
    uint32_t first = s->box[b].first, last = s->box[b].last, best = OT_NONE, best_distance = OT_NONE;
    if (s->box[b].gappy) {
        for (uint32_t k = 0; k < shape->n_sections; k++) {
            uint32_t t = shape->sections[k], distance = t > near ? t - near : near - t;
            if (distance >= best_distance || !holds_up(s, t, b, low)) continue;
            best = t;
            best_distance = distance;
        }
        s->work += shape->n_sections;
        return best;
    }
    near = near < first ? first : near >= last ? last - 1 : near;
    uint32_t far = near - first > last - 1 - near ? near - first : last - 1 - near;
    for (uint32_t d = 0; d <= far; d++) {
        best_distance = d;
        if (d <= near - first && holds_up(s, near - d, b, low)) best = near - d;
        else if (near + d < last && holds_up(s, near + d, b, low)) best = near + d;
        else continue;
        break;
    }
    s->work += best_distance;
    return best;
}

/* Add a section that by itself puts box b at `low` or higher, unless the set has one. Does the set grow? */
static bool blame_low(search *s, uint64_t *set, uint32_t b, int64_t low, uint32_t near)
{
    uint32_t first = s->box[b].first, last = s->box[b].last;
    if (low <= 0 || (s->box[b].special && search_lowest(s, b, 0) >= low)) return false;
    for (uint32_t t = next_of(s, set, first); t < last; t = next_of(s, set, t + 1))
        if (holds_up(s, t, b, low) && (!s->box[b].gappy || search_lives(s, b, t))) return false;
    uint32_t reason = nearest_reason(s, b, low, near);
    if (reason == OT_NONE) OT_BUG("no section explains where a box is");
    add(set, reason);
    return true;
}

/* ---- failures of bounds ---- */

void search_blame_all(search *s)
{
    memset(s->conflict, 0xff, s->words * sizeof *s->conflict);
}

/* Of the last boxes, as few as do not fit above the lowest of them; or all, when they do not fit above what is placed. */
void search_blame_section(search *s, uint32_t section)
{
    const search_section *t = &s->section[section];
    if (!s->jumps) {
        search_blame_all(s);
        return;
    }
    memset(s->conflict, 0, s->words * sizeof *s->conflict);
    add(s->conflict, section);
    if (s->raw[section] + t->rest > s->capacity) return;
    int64_t sum = 0;
    uint32_t k = t->end;
    do {
        k--;
        sum += s->size[t->list[k]];
    } while (k > t->start && s->low[t->list[k]] + sum <= s->capacity);
    for (; k < t->end; k++) blame_low(s, s->conflict, t->list[k], s->capacity - sum + 1, section);
}

void search_blame_box(search *s, uint32_t box)
{
    if (!s->jumps) {
        search_blame_all(s);
        return;
    }
    memset(s->conflict, 0, s->words * sizeof *s->conflict);
    blame_low(s, s->conflict, box, s->shape[box].highest + 1, s->box[box].first);
}

/* ---- failures of branches and nodes ---- */

bool search_blame_node(search *s, uint32_t node)
{
    size_t want = (node + (size_t)1) * s->words;
    if (want > s->cap_blame && !ot_grow(s->arena, (void **)&s->blame, &s->cap_blame, want, sizeof *s->blame)) {
        s->nomem = s->stopped = true;
        return false;
    }
    memset(blame_of(s, node), 0, s->words * sizeof *s->blame);
    return true;
}

/* Nothing to come in section t gets below its floor. */
static void blame_hole(search *s, uint64_t *set, uint32_t t, int64_t floor)
{
    const search_section *x = &s->section[t];
    if (s->raw[t] >= floor) return;
    for (uint32_t k = x->start; k < x->end; k++) blame_low(s, set, x->list[k], floor, t);
    s->work += x->end - x->start;
}

bool search_branch_failed(search *s, uint32_t node, uint32_t box)
{
    const search_node *x = &s->nodes[node];
    uint64_t *set = blame_of(s, node);
    if (s->jumps) {
        const uint32_t *sections = box == OT_NONE ? &x->section : s->shape[box].sections;
        uint32_t n = box == OT_NONE ? 1 : s->shape[box].n_sections;
        bool touched = false;
        for (uint32_t k = 0; k < n; k++) {
            if (!search_has(s->conflict, sections[k])) continue;
            touched = true;
            if (box != OT_NONE) blame_hole(s, set, sections[k], x->level);
        }
        if (!touched) return true;
    }
    for (size_t w = 0; w < s->words; w++) set[w] |= s->conflict[w];
    return false;
}

/* Boxes that live in section t but not in the node's own and on which candidate boxes could rest: their tops are not below the next
 * level. */
static bool blame_rests(search *s, const search_node *node, uint64_t *set, uint32_t t)
{
    const search_section *x = &s->section[t];
    bool grown = false;
    for (uint32_t k = x->start; k < x->end; k++) {
        int64_t low = node->next_level - s->size[x->list[k]];
        if (s->raw[t] >= low || search_lives(s, x->list[k], node->section)) continue;
        grown |= blame_low(s, set, x->list[k], low, t);
    }
    s->work += x->end - x->start;
    return grown;
}

/* Why the boxes of the node's section start at its level, or at the next one it claims. */
static void blame_choice(search *s, const search_node *node, uint64_t *set)
{
    const search_section *x = &s->section[node->section];
    add(set, node->section);
    for (uint32_t k = x->start; k < x->end; k++) {
        int64_t low = s->low[x->list[k]];
        blame_low(s, set, x->list[k], ot_max(node->level, ot_min(low, node->next_level)), node->section);
    }
    if (node->next_level <= node->level + 1) return;
    for (bool grown = true; grown;) {
        grown = false;
        for (uint32_t k = x->start; k < x->end; k++) {
            const search_shape *b = &s->shape[x->list[k]];
            if (s->low[x->list[k]] != node->level) continue;
            for (uint32_t j = 0; j < b->n_sections; j++)
                if (b->sections[j] != node->section && search_has(set, b->sections[j])) grown |= blame_rests(s, node, set, b->sections[j]);
        }
    }
}

/* ---- memo: whole nodes ---- */

static uint64_t *memo_entry(const search *s, uint64_t hash)
{
    return s->memo + (hash & s->memo_mask) * (s->words + 2);
}

static void hash_node(search *s, search_node *node)
{
    node->hash = node->hash2 = 0;
    for (uint32_t t = node->from; t < node->to; t++) {
        const search_section *x = &s->section[t];
        if (x->start == x->end) continue;
        uint64_t h = search_mix((uint64_t)s->floor[t] * 0x9e3779b97f4a7c15u + (x->set ^ x->salt));
        node->hash += h;
        node->hash2 += (h ^ h >> 32) * x->salt;
    }
    node->hash = search_mix(node->hash);
    node->hash2 |= 1; /* an entry in use is not 0 */
    s->work += node->to - node->from;
}

bool search_failed_before(search *s, search_node *node)
{
    if (!(s->rules & OT_PACK_MEMO)) return false;
    hash_node(s, node);
    const uint64_t *e = memo_entry(s, node->hash);
    if (e[0] != node->hash || e[1] != node->hash2) return false;
    memcpy(s->conflict, e + 2, s->words * sizeof *e);
    if (!s->jumps) return true;
    for (uint32_t t = next_of(s, e + 2, 0); t < s->n_sections; t = next_of(s, e + 2, t + 1))
        blame_hole(s, s->conflict, t, s->floor[t]);
    return true;
}

/* ---- nogoods: the sections of a conflict ---- */

static uint64_t sets_key(const search *s, const uint32_t *sections, uint64_t at, uint64_t mask, uint32_t n)
{
    uint64_t key = 0;
    for (uint32_t k = 0; k < n; k++) {
        const search_section *x = &s->section[sections[(at + k) & mask]];
        key += x->set * x->salt;
    }
    return key;
}

static bool holds(search *s, const search_nogood *g)
{
    s->work += g->n;
    if (sets_key(s, s->pool_section, g->at, s->pool_mask, g->n) != g->key) return false;
    for (uint32_t k = 0; k < g->n; k++) {
        uint64_t at = (g->at + k) & s->pool_mask;
        if (s->floor[s->pool_section[at]] < s->pool_floor[at]) return false;
    }
    return true;
}

bool search_failed_alike(search *s, const search_node *node)
{
    const search_nogood *g = s->nogoods + (size_t)node->section * NOGOODS;
    if (!s->jumps || !(s->rules & OT_PACK_MEMO)) return false;
    for (uint32_t k = 0; k < NOGOODS; k++, g++) {
        if (g->n == 0 || g->set != s->section[node->section].set || g->at + s->pool_mask + 1 < s->pool_at || !holds(s, g)) continue;
        memset(s->conflict, 0, s->words * sizeof *s->conflict);
        for (uint32_t j = 0; j < g->n; j++) add(s->conflict, s->pool_section[(g->at + j) & s->pool_mask]);
        for (uint32_t j = 0; j < g->n; j++) {
            uint64_t at = (g->at + j) & s->pool_mask;
            blame_hole(s, s->conflict, s->pool_section[at], s->pool_floor[at]);
        }
        return true;
    }
    s->work += NOGOODS / 4;
    return false;
}

static void remember_nogood(search *s, const search_node *node, const uint64_t *set)
{
    uint32_t n = 0;
    for (size_t w = 0; w < s->words; w++) n += (uint32_t)__builtin_popcountll(set[w]);
    if (n > NOGOOD_SIZE) return;
    search_nogood *g = &s->nogoods[(size_t)node->section * NOGOODS + s->nogood_next[node->section]++ % NOGOODS];
    *g = (search_nogood){.set = s->section[node->section].set, .at = s->pool_at, .n = n};
    for (uint32_t t = next_of(s, set, 0); t < s->n_sections; t = next_of(s, set, t + 1)) {
        s->pool_section[s->pool_at & s->pool_mask] = t;
        s->pool_floor[s->pool_at & s->pool_mask] = s->raw[t];
        s->pool_at++;
    }
    g->key = sets_key(s, s->pool_section, g->at, s->pool_mask, n);
    s->work += n;
}

void search_node_failed(search *s, uint32_t node)
{
    const search_node *x = &s->nodes[node];
    uint64_t *set = blame_of(s, node);
    if (s->jumps) blame_choice(s, x, set);
    else memset(set, 0xff, s->words * sizeof *set);
    memcpy(s->conflict, set, s->words * sizeof *set);
    if (!(s->rules & OT_PACK_MEMO)) return;
    uint64_t *e = memo_entry(s, x->hash);
    e[0] = x->hash;
    e[1] = x->hash2;
    memcpy(e + 2, set, s->words * sizeof *set);
    if (s->jumps) remember_nogood(s, x, set);
}

bool search_learn_init(search *s)
{
    size_t entries = MEMO_MIN, want = (size_t)s->n * MEMO_PER_BOX;
    if (s->budget->step_limit > 0 && (size_t)s->budget->step_limit * 2 < want) want = (size_t)s->budget->step_limit * 2;
    uint64_t pool = POOL_MIN;
    s->words = (s->n_sections + 63u) / 64u;
    if (s->words == 0) s->words = 1;
    while (entries < want && entries * 2 * (s->words + 2) <= MEMO_WORDS) entries *= 2;
    while (pool < POOL_MAX && pool < (uint64_t)s->n_sections * NOGOODS * 16 && pool < want * 16) pool *= 2;
    s->memo_mask = entries - 1;
    s->pool_mask = pool - 1;
    s->conflict = OT_NEW_N(s->arena, uint64_t, s->words);
    s->memo = OT_NEW_N(s->arena, uint64_t, entries * (s->words + 2));
    s->nogoods = OT_NEW_N(s->arena, search_nogood, (size_t)(s->n_sections + 1u) * NOGOODS);
    s->nogood_next = OT_NEW_N(s->arena, uint32_t, s->n_sections + 1u);
    s->pool_section = OT_NEW_N(s->arena, uint32_t, pool);
    s->pool_floor = OT_NEW_N(s->arena, int64_t, pool);
    return s->conflict && s->memo && s->nogoods && s->nogood_next && s->pool_section && s->pool_floor;
}
