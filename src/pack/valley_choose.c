/* Bounds of the valley search and the choice of the place to branch on.
 *
 *   offset ^        +--+
 *          |  +--+  |  |      A valley: neighbouring sections with one floor, higher walls on both
 *                             sides. An item that covers a
 *          |  |  |  |  +--    section u of it and could rest on its floor lies inside the valley
 *                             with its whole lifetime, so
 *          |  |  |__|  |      putting it there leaves no hole. Either one of these items rests at u
 *                             on the floor, or nothing
 *          |  |     u  |      does and the next item at u starts at some higher level: these are
 *                             all the cases there are,
 *          +--------------->  and no packing is met twice.
 */
#include "valley.h"

#define LEVEL_MAX INT64_MAX

static int64_t align_up(int64_t x, int64_t align)
{
    int64_t over = align > 1 ? x % align : 0;
    return over ? x + (align - over) : x;
}

/* ---- ranges ----
 *
 * Lifetimes are ranges of sections, so nothing here walks them one section at a time: floors go
 * into a sparse table (maximum of every 2^k sections) that answers for any range with two
 * look-ups; "lower all sections of a range to x" is written into the two halves of such a table
 * and pushed down to single sections at the end. Lifetimes with gaps, which are rare, are
 * walked.
 */

static uint32_t log2_of(uint32_t n) /* n >= 1 */ { return 31u - (uint32_t)__builtin_clz(n); }

static int64_t *row(int64_t *table, const valley *s, uint32_t k)
{
    return table + (size_t)k * (s->n_sections + 1u);
}

static void build_highs(valley *s, uint32_t lo, uint32_t hi)
{
    memcpy(s->highs + lo, s->floor + lo, (hi - lo) * sizeof *s->floor);
    for (uint32_t k = 1, half = 1; 2 * half <= hi - lo; k++, half *= 2) {
        int64_t *up = row(s->highs, s, k), *down = row(s->highs, s, k - 1);
        for (uint32_t t = lo; t + 2 * half <= hi; t++)
            up[t] = down[t] > down[t + half] ? down[t] : down[t + half];
    }
}

static int64_t highest(valley *s, uint32_t first, uint32_t last)
{
    uint32_t k = log2_of(last - first);
    const int64_t *r = row(s->highs, s, k);
    return ot_max(r[first], r[last - (1u << k)]);
}

static void clear_lows(valley *s, uint32_t lo, uint32_t hi)
{
    for (uint32_t k = 0; (1u << k) <= hi - lo; k++) {
        int64_t *r = row(s->lows, s, k);
        for (uint32_t t = lo; t + (1u << k) <= hi; t++) r[t] = LEVEL_MAX;
    }
}

static void lower(valley *s, const valley_item *it, int64_t to)
{
    if (it->gappy) {
        for (uint32_t j = 0; j < it->n_sections; j++)
            if (to < s->lows[it->sections[j]]) s->lows[it->sections[j]] = to;
        return;
    }
    uint32_t k = log2_of(it->last - it->first);
    int64_t *r = row(s->lows, s, k), *a = r + it->first, *b = r + it->last - (1u << k);
    if (to < *a) *a = to;
    if (to < *b) *b = to;
}

/* Afterwards lows[t] is the least value of all ranges that hold t. */
static void push_lows(valley *s, uint32_t lo, uint32_t hi)
{
    for (uint32_t k = log2_of(hi - lo); k > 0; k--) {
        int64_t *up = row(s->lows, s, k), *down = row(s->lows, s, k - 1);
        uint32_t half = 1u << (k - 1);
        for (uint32_t t = lo; t + 2 * half <= hi; t++) down[t] = up[t] < down[t] ? up[t] : down[t];
        for (uint32_t t = lo; t + 2 * half <= hi; t++)
            down[t + half] = up[t] < down[t + half] ? up[t] : down[t + half];
    }
}

/* level_end[t]: first section after t whose floor differs. */
static void find_levels(valley *s, uint32_t lo, uint32_t hi)
{
    for (uint32_t t = hi; t-- > lo;)
        s->level_end[t] = t + 1 < hi && s->floor[t] == s->floor[t + 1] ? s->level_end[t + 1]
                                                                       : t + 1;
}

/* ---- bounds ---- */

/* Highest floor of a lifetime with gaps; *flat: it has one floor only. */
static int64_t highest_gappy(const valley *s, const valley_item *it, bool *flat)
{
    int64_t high = s->floor[it->sections[0]];
    *flat = true;
    for (uint32_t j = 1; j < it->n_sections; j++) {
        *flat &= s->floor[it->sections[j]] == s->floor[it->sections[0]];
        high = ot_max(high, s->floor[it->sections[j]]);
    }
    return high;
}

/* Lowest place of the item and whether its sections have one floor. false: it fits nowhere any
 * more. */
static bool bound_item(valley *s, uint32_t item)
{
    const valley_item *it = &s->items[item];
    bool flat = s->level_end[it->first] >= it->last;
    int64_t high = it->gappy ? highest_gappy(s, it, &flat) : highest(s, it->first, it->last);
    if (it->fixed >= 0) {
        s->low[item] = it->fixed;
        /* it rests on nothing: the floor must have come up to it */
        s->flat[item] = flat && high == it->fixed;
        return high <= it->fixed && it->fixed <= s->capacity - it->size;
    }
    s->flat[item] = flat;
    s->low[item] = align_up(high, it->align);
    return s->low[item] <= s->capacity - it->size;
}

static bool fail_at(valley *s, uint32_t section)
{
    s->weight[section]++;
    return false;
}

/* Raise floors to the lowest place of any item to come, until nothing changes; check that what
 * is to come still fits above. */
bool valley_bound(valley *s, const uint32_t *list, uint32_t n, uint32_t lo, uint32_t hi)
{
    for (bool changed = true; changed;) {
        changed = false;
        build_highs(s, lo, hi);
        find_levels(s, lo, hi);
        clear_lows(s, lo, hi);
        for (uint32_t k = 0; k < n; k++) {
            if (!bound_item(s, list[k])) return fail_at(s, s->items[list[k]].first);
            lower(s, &s->items[list[k]], s->low[list[k]]);
        }
        push_lows(s, lo, hi);
        for (uint32_t t = lo; t < hi; t++) {
            if (s->count[t] == 0) continue;
            if ((s->rules & OT_PACK_RAISE) && s->lows[t] > s->floor[t]) {
                if (!valley_raise(s, t, s->lows[t])) return false;
                changed = true;
            }
            if ((s->rules & OT_PACK_SECTIONS) && s->floor[t] > s->capacity - s->rest[t])
                return fail_at(s, t);
        }
    }
    return true;
}

/* ---- the place to branch on ---- */

/* Per section: how many items can rest on its floor (options), the lowest place of the others
 * (lows), tops that limit the next level. */
static void survey(valley *s, const uint32_t *list, uint32_t n, uint32_t lo, uint32_t hi)
{
    for (uint32_t t = lo; t <= hi; t++) {
        s->top_left[t] = s->top_right[t] = LEVEL_MAX;
        s->options[t] = 0;
    }
    clear_lows(s, lo, hi);
    for (uint32_t k = 0; k < n; k++) {
        const valley_item *it = &s->items[list[k]];
        int64_t low = s->low[list[k]], top = low + it->size;
        if (!s->flat[list[k]])
            lower(s, it, low);
        else if (it->twin == OT_NONE || s->placed[it->twin] || !(s->rules & OT_PACK_SYMMETRY)) {
            if (it->gappy) {
                for (uint32_t j = 0; j < it->n_sections; j++) {
                    s->options[it->sections[j]]++;
                    s->options[it->sections[j] + 1]--;
                }
            } else {
                s->options[it->first]++;
                s->options[it->last]--;
            }
        }
        if (top < s->top_left[it->last]) s->top_left[it->last] = top;
        if (top < s->top_right[it->first]) s->top_right[it->first] = top;
    }
    for (uint32_t t = lo + 1; t < hi; t++) s->options[t] += s->options[t - 1];
    push_lows(s, lo, hi);
}

/* Without DOMINANCE, or where gaps let items rest on far places: one unit above the floor. */
static int64_t next_level(const valley *s, uint32_t u, int64_t rest_on)
{
    int64_t level = s->lows[u];
    if (s->options[u] > 0) {
        if (s->gaps || !(s->rules & OT_PACK_DOMINANCE)) rest_on = s->floor[u] + s->unit;
        level = ot_min(level, rest_on);
    }
    if (!(s->rules & OT_PACK_DOMINANCE) && level != LEVEL_MAX) level = s->floor[u] + s->unit;
    return level;
}

typedef struct best_offset {
    double score;
    int64_t slack;
    bool found, dead;
} best_offset;

/* Weigh section u, whose next level is `level`. */
static void weigh(valley *s, uint32_t u, int64_t level, best_offset *best, valley_branch *out)
{
    bool waste = level != LEVEL_MAX && level <= s->capacity - s->rest[u];
    if (!(s->rules & OT_PACK_SECTIONS)) waste = level != LEVEL_MAX && level <= s->capacity;
    int64_t slack = s->capacity - s->floor[u] - s->rest[u];
    uint32_t options = s->options[u] + waste;
    double score = (double)options / (1.0 + s->weight[u]);
    if (!(s->rules & OT_PACK_DYNAMIC)) {
        score = (double)s->floor[u];
        slack = 0;
    }
    if (options == 0) {
        best->dead = true;
        s->weight[u]++;
    }
    if (best->found && (score > best->score || (score == best->score && slack >= best->slack)))
        return;
    *best = (best_offset){score, slack, true, best->dead};
    *out = (valley_branch){u, waste ? level : VALLEY_NO_LEVEL};
}

/* Sections [l, r) with one floor. Items that reach in from outside have tops above the floor
 * too. A section where an item could sit on the floor but hangs over a lower one (with gaps
 * only) has to wait. */
static void weigh_valley(valley *s, uint32_t l, uint32_t r, best_offset *best, valley_branch *out)
{
    int64_t left = LEVEL_MAX;
    int64_t *right = s->right;
    right[r - 1] = LEVEL_MAX;
    for (uint32_t u = r - 1; u-- > l;) right[u] = ot_min(right[u + 1], s->top_right[u + 1]);
    for (uint32_t u = l; u < r; u++) {
        if (u > l) left = ot_min(left, s->top_left[u]);
        if (s->lows[u] > s->floor[u])
            weigh(s, u, next_level(s, u, ot_min(left, right[u])), best, out);
    }
}

bool valley_choose(valley *s, const uint32_t *list, uint32_t n, uint32_t lo, uint32_t hi,
                   valley_branch *out)
{
    best_offset best = {0};
    survey(s, list, n, lo, hi);
    for (uint32_t l = lo; l < hi;) {
        uint32_t r = l + 1;
        if (s->count[l] == 0) {
            l++;
            continue;
        }
        while (r < hi && s->count[r] > 0 && s->floor[r] == s->floor[l]) r++;
        bool wall_left = l == lo || s->count[l - 1] == 0 || s->floor[l - 1] > s->floor[l];
        bool wall_right = r == hi || s->count[r] == 0 || s->floor[r] > s->floor[l];
        if (wall_left && wall_right) weigh_valley(s, l, r, &best, out);
        if (best.dead) return false;
        l = r;
    }
    if (!best.found) OT_BUG("a list of items without a valley");
    return true;
}

/* ---- candidates ---- */

static double candidate_key(valley *s, uint32_t item)
{
    const valley_item *it = &s->items[item];
    double length = it->n_sections, size = (double)it->size, key;
    switch (s->key_kind & 3) {
    case 0: key = length * (double)s->capacity + size; break; /* longest, then largest */
    case 1: key = length * size; break;
    case 2: key = size * (double)(s->n_sections + 1) + length; break;
    default: { /* against a wall first */
        bool wall = it->first == 0 || s->floor[it->first - 1] != s->floor[it->first] ||
                    it->last == s->n_sections || s->floor[it->last] != s->floor[it->last - 1];
        key = (length * (double)s->capacity + size) * (wall ? 4 : 1);
    }
    }
    if (s->noise > 0) key *= 1 + s->noise * (double)(ot_next_random(&s->random) >> 11) * 0x1p-53;
    if (it->hint >= 0 && it->hint == s->low[item]) key *= 1e6;
    return key;
}

/* Items of the list that can rest on the floor of `section`. out: room for n. */
uint32_t valley_candidates(valley *s, const uint32_t *list, uint32_t n, uint32_t section,
                           uint32_t *out)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < n; k++) {
        const valley_item *it = &s->items[list[k]];
        if (it->first > section) break; /* the list ascends by first section */
        if (it->last <= section || !s->flat[list[k]]) continue;
        if ((s->rules & OT_PACK_SYMMETRY) && it->twin != OT_NONE && !s->placed[it->twin]) continue;
        bool covers = !it->gappy;
        for (uint32_t j = 0; j < it->n_sections && !covers; j++)
            covers = it->sections[j] == section;
        if (!covers) continue;
        s->key[list[k]] = candidate_key(s, list[k]);
        uint32_t at = found++;
        for (; at > 0 && s->key[out[at - 1]] < s->key[list[k]]; at--) out[at] = out[at - 1];
        out[at] = list[k];
    }
    return found;
}
