/* Where the exact search branches, and what it tries first.
 *
 *   offset ^  |   |           |       A section is open when every box that could start on its floor has that floor under its whole
 *          |  |   +-----------+       lifetime: put there it leaves no hole. The lowest sections always are, and so are those of
 *          |  +---+  u                every valley whose boxes fit between its walls. In an open section u either one of these boxes
 *          +----------------------->  rests on the floor, or none does and the next one starts higher: all cases, each once.
 *
 * How much higher? In a packing where no box can move down by itself, a box that does not rest on the floor of u rests on another
 * one. So nothing starts in u below the least of: the low of the boxes that cannot rest here; the least top of a box outside u on
 * which one of the others could rest. When that is more than the section can spare, some box must rest here.
 *
 * Of the open sections the one with the fewest cases divided by its failures is taken (dom/wdeg of Boussemart et al.), and at once
 * one that leaves no choice. Candidates are tried long lifetimes first, or by area, with noise that differs between restarts;
 * before that, where the deepest packing of the restart before had them.
 */
#include "search_internal.h"

#define KEY_BITS 40 /* of a candidate's key before noise */

uint64_t search_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t search_random(search *s)
{
    s->random += 0x9e3779b97f4a7c15u;
    return search_mix(s->random);
}

/* ---- the section ---- */

/* For each section with boxes to come: the stretch around it with the same floor. */
static void find_runs(search *s, uint32_t from, uint32_t to)
{
    for (uint32_t t = from; t < to; t++) {
        const search_section *x = &s->section[t];
        bool joins = t > from && s->floor[t - 1] == s->floor[t] && x[-1].start < x[-1].end && x->start < x->end;
        s->run_first[t] = joins ? s->run_first[t - 1] : t;
    }
    for (uint32_t t = to; t-- > from;) s->run_last[t] = t + 1 < to && s->run_first[t + 1] < t + 1 ? s->run_last[t + 1] : t + 1;
}

/* Does box b lie on one floor, that of section t? */
static bool lies_flat(const search *s, uint32_t b, uint32_t t)
{
    if (!s->box[b].gappy) return s->box[b].first >= s->run_first[t] && s->box[b].last <= s->run_last[t];
    const search_shape *shape = &s->shape[b];
    for (uint32_t k = 0; k < shape->n_sections; k++)
        if (s->floor[shape->sections[k]] != s->floor[t]) return false;
    return true;
}

/* Equal boxes are interchangeable: only the first of those to come is tried. */
static bool waits_for_twin(const search *s, uint32_t b)
{
    uint32_t twin = s->box[b].twin;
    return twin != OT_NONE && (s->rules & OT_PACK_SYMMETRY) && !s->box[twin].placed;
}

/* Number of boxes that can rest on the floor of t; false when t is not open or they are more than `most`. */
static bool count_options(search *s, uint32_t t, uint64_t most, uint32_t *options)
{
    const search_section *x = &s->section[t];
    uint32_t k = x->start;
    *options = 0;
    bool open = true;
    for (; open && k < x->end && s->low[x->list[k]] == s->floor[t]; k++) {
        *options += !waits_for_twin(s, x->list[k]);
        open = *options <= most && lies_flat(s, x->list[k], t);
    }
    s->work += k - x->start + 1;
    return open;
}

static int64_t spare(const search *s, uint32_t t)
{
    int64_t room = s->capacity - s->floor[t];
    return (s->rules & OT_PACK_SECTIONS) ? room - s->section[t].rest : room;
}

static uint32_t choose_section(search *s, uint32_t from, uint32_t to)
{
    uint32_t best = OT_NONE, best_options = 0, options;
    int64_t best_spare = 0;
    find_runs(s, from, to);
    s->work += 2 * (to - from);
    for (uint32_t t = from; t < to; t++) {
        const search_section *x = &s->section[t], *y = &s->section[best == OT_NONE ? t : best];
        if (x->start == x->end) continue;
        if (!(s->rules & OT_PACK_DYNAMIC)) { /* lowest, then leftmost */
            if (best == OT_NONE || s->floor[t] < s->floor[best]) best = t;
            continue;
        }
        uint64_t most = best == OT_NONE ? UINT64_MAX : (uint64_t)best_options * x->weight / y->weight;
        if (!count_options(s, t, most, &options)) continue;
        int64_t room = spare(s, t);
        if (options == 1 && room == 0) return t;
        uint64_t mine = (uint64_t)options * y->weight, other = (uint64_t)best_options * x->weight;
        if (best == OT_NONE || mine < other || (mine == other && room < best_spare)) {
            best = t;
            best_options = options;
            best_spare = room;
        }
    }
    if (best == OT_NONE) OT_BUG("no section is open");
    return best;
}

/* ---- the next level ---- */

/* Lowest top of a box outside section u on which candidate b could rest, if less than `level`. */
static int64_t lowest_rest(search *s, uint32_t b, uint32_t u, int64_t level)
{
    const search_shape *shape = &s->shape[b];
    for (uint32_t j = 0; j < shape->n_sections; j++) {
        const search_section *t = &s->section[shape->sections[j]];
        if (shape->sections[j] == u) continue;
        uint32_t k = t->start;
        for (; k < t->end && s->low[t->list[k]] < level; k++) {
            int64_t top = s->low[t->list[k]] + s->size[t->list[k]];
            if (top < level && !search_lives(s, t->list[k], u)) level = top;
        }
        s->work += k - t->start + 1;
    }
    return level;
}

/* Fills next_level and gives_up of a node whose section and level are set. */
static void find_next_level(search *s, search_node *node)
{
    const search_section *x = &s->section[node->section];
    int64_t most = node->level + spare(s, node->section), level = most + 1;
    uint32_t k = x->start, lone = OT_NONE;
    node->gives_up = -1;
    node->next_level = level;
    for (; k < x->end && s->low[x->list[k]] == node->level; k++) {
        uint32_t b = x->list[k];
        if (s->shape[b].fixed >= 0) { /* it must rest here: the next box in the section is this one */
            node->next_level = node->level;
            return;
        }
        if (s->shape[b].n_sections == 1 && (lone == OT_NONE || s->size[b] < s->size[lone])) lone = b;
    }
    if (most == node->level) return;
    if (s->rules & OT_PACK_DOMINANCE) {
        if (k < x->end) level = ot_min(level, s->low[x->list[k]]);
        for (uint32_t j = x->start; j < k; j++) level = lowest_rest(s, x->list[j], node->section, level);
    } else {
        level = node->level + 1;
    }
    node->next_level = level;
    bool filled = lone != OT_NONE && (s->rules & OT_PACK_DOMINANCE) && level - node->level >= s->size[lone];
    if (level <= most && !filled) node->gives_up = level; /* else the gap would take a box that lives here only */
}

/* ---- the candidates ---- */

static uint64_t root_of(uint64_t x)
{
    uint64_t r = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit; bit /= 2)
        if ((r + bit) * (r + bit) <= x) r += bit;
    return r;
}

void search_set_order(search *s, uint32_t kind)
{
    uint64_t most = 1, shift = 0, top = 1;
    for (uint32_t b = 0; b < s->n; b++) most = most > (uint64_t)s->size[b] ? most : (uint64_t)s->size[b];
    while (most >> shift >= (uint64_t)1 << 20) shift++;
    for (uint32_t b = 0; b < s->n; b++) {
        uint64_t length = s->shape[b].n_sections, size = ((uint64_t)s->size[b] >> shift) + 1;
        switch (kind % 3) {
        case 0: s->key[b] = (length << 21) + size; break; /* longest, then largest */
        case 1: s->key[b] = length * root_of(size << 20); break;
        default: s->key[b] = length * size; break;
        }
        top = top > s->key[b] ? top : s->key[b];
    }
    for (shift = 0; top >> shift >= (uint64_t)1 << KEY_BITS;) shift++;
    for (uint32_t b = 0; b < s->n; b++) s->key[b] = (s->key[b] >> shift) + 1;
}

static uint64_t candidate_key(search *s, uint32_t b)
{
    uint64_t key = s->key[b] * 1024;
    if (s->noise > 0) key += s->key[b] * (search_random(s) % s->noise);
    if (s->keep_phase && s->phase[b] == s->low[b]) key += (uint64_t)1 << (KEY_BITS + 13);
    if (s->shape[b].hint == s->low[b]) key += (uint64_t)1 << (KEY_BITS + 15);
    return key;
}

static void push_candidates(search *s, search_node *node)
{
    const search_section *x = &s->section[node->section];
    node->candidates = (uint32_t)s->n_candidates;
    node->n_candidates = 0;
    if (s->n_candidates + (x->end - x->start) > s->cap_candidates &&
        !ot_grow(s->arena, (void **)&s->candidates, &s->cap_candidates, s->n_candidates + (x->end - x->start), sizeof *s->candidates)) {
        s->nomem = s->stopped = true;
        return;
    }
    uint32_t *out = s->candidates + s->n_candidates, n = 0;
    for (uint32_t k = x->start; k < x->end && s->low[x->list[k]] == node->level; k++) {
        uint32_t b = x->list[k], at = n;
        if (waits_for_twin(s, b)) continue;
        uint64_t key = candidate_key(s, b);
        for (; at > 0 && (s->rank[at - 1] < key || (s->rank[at - 1] == key && out[at - 1] > b)); at--) {
            out[at] = out[at - 1];
            s->rank[at] = s->rank[at - 1];
        }
        out[at] = b;
        s->rank[at] = key;
        n++;
    }
    node->n_candidates = n;
    s->n_candidates += n;
}

void search_choose(search *s, search_node *node)
{
    node->section = choose_section(s, node->from, node->to);
    node->level = s->floor[node->section];
    find_next_level(s, node);
    push_candidates(s, node);
}
