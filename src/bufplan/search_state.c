/* State of the exact search: floors, the boxes to come over them, bounds, and taking all of it back.
 *
 *   offset ^            +---+           low of a box: the highest floor under its lifetime; it can start there or higher.
 *          |      +-----+ c |           floor of a section: top of what is placed there, raised to the least low of the boxes to
 *          |  a?  |  b  +---+           come in it, for nothing else can start below.
 *          |      |     |:::|           Here a has low 0, and a box that spans all of the picture starts on c.
 *          +------+-----+---+--> time
 *
 * The bound of a section is that of one machine with release times: take its boxes by ascending low, each at its low or at the end of
 * the one before; no order ends earlier. It counts the holes that walls to the left and right force on the section, which a mere sum
 * of sizes does not see.
 *
 * Lists of boxes per section are kept ascending by low. A step raises lows to one level only (unless some box is special), so one pass
 * puts a list in order again; what it had before is kept for undoing.
 */
#include "search_internal.h"

static int64_t align_up(int64_t x, int64_t align)
{
    int64_t over = align > 1 ? x % align : 0;
    return over ? x + (align - over) : x;
}

int64_t search_lowest(const search *s, uint32_t box, int64_t from)
{
    if (!s->box[box].special) return from;
    const search_shape *b = &s->shape[box];
    int64_t size = s->size[box], at = align_up(from, b->align);
    if (b->fixed >= 0) return ot_max(from, b->fixed);
    for (uint32_t k = 0; k < b->n_taken && b->taken[k].lower < at + size; k++)
        if (b->taken[k].upper > at) at = align_up(b->taken[k].upper, b->align);
    return at;
}

bool search_lives(const search *s, uint32_t box, uint32_t section)
{
    const search_box *b = &s->box[box];
    if (section < b->first || section >= b->last) return false;
    if (!b->gappy) return true;
    const search_shape *shape = &s->shape[box];
    for (uint32_t k = 0; k < shape->n_sections && shape->sections[k] <= section; k++)
        if (shape->sections[k] == section) return true;
    return false;
}

/* ---- lists ---- */

/* Keep list[from, to) for undoing. */
static bool save_list(search *s, uint32_t section, uint32_t from, uint32_t to)
{
    size_t want = s->n_saved + (to - from) + 3;
    if (want > s->cap_saved && !ot_grow(s->arena, (void **)&s->saved, &s->cap_saved, want, sizeof *s->saved))
        return !(s->nomem = s->stopped = true);
    uint32_t *out = s->saved + s->n_saved;
    memcpy(out, s->section[section].list + from, (to - from) * sizeof *out);
    out[to - from] = from;
    out[to - from + 1] = to - from;
    out[to - from + 2] = section;
    s->n_saved = want;
    return true;
}

static void restore_lists(search *s, size_t n_saved)
{
    while (s->n_saved > n_saved) {
        const uint32_t *in = s->saved + s->n_saved - 3;
        uint32_t n = in[1];
        memcpy(s->section[in[2]].list + in[0], in - n, n * sizeof *in);
        s->n_saved -= n + (size_t)3;
    }
}

/* Put a list in order after some lows of at least s->least have risen to `level`, and none to another value. */
static void sort_to_level(search *s, uint32_t section, int64_t level)
{
    const search_section *t = &s->section[section];
    uint32_t *list = t->list, from = t->start, to = t->end, last = 0;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (s->low[list[mid]] < s->least) from = mid + 1;
        else to = mid;
    }
    uint32_t begin = from;
    while (from < t->end && s->low[list[from]] < level) from++;
    for (to = from; to < t->end && s->low[list[to]] <= level; to++)
        if (s->low[list[to]] < level) last = to + 1;
    s->work += to - begin + 2;
    if (last == 0 || !save_list(s, section, from, last)) return;
    const uint32_t *old = s->saved + s->n_saved - 3 - (last - from);
    uint32_t at = from;
    for (uint32_t k = 0; k < last - from; k++)
        if (s->low[old[k]] < level) list[at++] = old[k];
    for (uint32_t k = 0; k < last - from; k++)
        if (s->low[old[k]] == level) list[at++] = old[k];
}

/* Put a list in order after any change. */
static void sort_list(search *s, uint32_t section)
{
    search_section *t = &s->section[section];
    uint32_t *list = t->list, k = t->start + 1;
    while (k < t->end && s->low[list[k - 1]] <= s->low[list[k]]) k++;
    s->work += k - t->start;
    if (k >= t->end || !save_list(s, section, t->start, t->end)) return;
    for (; k < t->end; k++) {
        uint32_t b = list[k], j = k;
        int64_t low = s->low[b];
        for (; j > t->start && s->low[list[j - 1]] > low; j--) list[j] = list[j - 1];
        list[j] = b;
        s->work += k - j;
    }
}

/* ---- changes that can be taken back ---- */

static void set_value(search *s, int64_t *where, int64_t value)
{
    search_undo u = {where, *where};
    if (*where == value) return;
    if (!OT_PUSH(s->arena, s->trail, s->n_trail, s->cap_trail, u))
        s->nomem = s->stopped = true;
    else
        *where = value;
}

static void touch(search *s, uint32_t from, uint32_t to)
{
    if (from < s->from) s->from = from;
    if (to > s->to) s->to = to;
}

/* Everything below `floor` is taken or given up in this section. */
static void raise_floor(search *s, uint32_t section, int64_t floor)
{
    const search_section *t = &s->section[section];
    set_value(s, &s->raw[section], floor);
    set_value(s, &s->floor[section], floor);
    uint32_t k = t->start;
    for (; k < t->end; k++) {
        uint32_t b = t->list[k];
        if (s->low[b] >= floor) {
            if (s->plain && s->low[b] > floor) break;
            continue;
        }
        int64_t low = search_lowest(s, b, floor);
        s->least = ot_min(s->least, s->low[b]);
        set_value(s, &s->low[b], low);
        touch(s, s->box[b].first, s->box[b].last);
        if (s->box[b].special && low > s->shape[b].highest) s->misplaced = b;
    }
    s->work += k - t->start;
}

/* ---- bounds ---- */

/* Where the boxes of a section end at the earliest. */
static int64_t earliest_end(search *s, uint32_t section)
{
    const search_section *t = &s->section[section];
    int64_t at = s->floor[section], rest = t->rest, last = s->low[t->list[t->end - 1]];
    uint32_t k = t->start;
    for (; at < last; k++) {
        uint32_t b = t->list[k];
        at = ot_max(at, s->low[b]) + s->size[b];
        rest -= s->size[b];
    }
    s->work += k - t->start;
    return at + rest;
}

static bool boxes_fit(const search *s, const search_section *t)
{
    for (uint32_t k = t->start; k < t->end; k++)
        if (s->low[t->list[k]] + s->size[t->list[k]] > s->capacity) return false;
    return true;
}

/* Raise the floors of sections [from, to), check bounds; false: conflict is set. */
static bool settle(search *s, uint32_t from, uint32_t to)
{
    for (uint32_t k = from; k < to; k++) {
        search_section *t = &s->section[k];
        if (t->start == t->end) continue;
        int64_t low = s->low[t->list[t->start]];
        if ((s->rules & OT_PACK_RAISE) && low > s->floor[k]) set_value(s, &s->floor[k], low);
        if ((s->rules & OT_PACK_SECTIONS) ? earliest_end(s, k) > s->capacity : !boxes_fit(s, t)) {
            t->weight++;
            search_blame_section(s, k);
            return false;
        }
    }
    return true;
}

/* ---- steps ---- */

bool search_begin(search *s)
{
    for (uint32_t t = 0; t < s->n_sections; t++) sort_list(s, t);
    return settle(s, 0, s->n_sections);
}

static bool begin_step(search *s, uint32_t box, uint32_t from, uint32_t to)
{
    search_step step = {box, s->n_trail, s->n_saved};
    s->from = from;
    s->to = to;
    s->least = INT64_MAX;
    s->misplaced = OT_NONE;
    return OT_PUSH(s->arena, s->steps, s->n_steps, s->cap_steps, step) || !(s->nomem = s->stopped = true);
}

static bool end_step(search *s, int64_t level)
{
    if (s->misplaced != OT_NONE) {
        search_blame_box(s, s->misplaced);
        return false;
    }
    for (uint32_t t = s->from; t < s->to; t++) {
        if (s->plain) sort_to_level(s, t, level);
        else sort_list(s, t);
    }
    return settle(s, s->from, s->to);
}

bool search_place(search *s, uint32_t box)
{
    search_box *b = &s->box[box];
    const search_shape *shape = &s->shape[box];
    int64_t top = s->low[box] + s->size[box];
    if (!begin_step(s, box, b->first, b->last)) return false;
    s->offset[box] = s->low[box];
    b->placed = true;
    s->n_placed++;
    for (uint32_t k = 0; k < shape->n_sections; k++) {
        search_section *t = &s->section[shape->sections[k]];
        uint32_t at = t->start;
        while (t->list[at] != box) at++;
        if (at > t->start && !save_list(s, shape->sections[k], t->start, at + 1)) return false;
        t->list[at] = t->list[t->start]; /* all before it have the same low */
        t->list[t->start++] = box;
        t->rest -= s->size[box];
        t->set ^= shape->hash;
    }
    for (uint32_t t = b->first; t + 1 < b->last; t++) s->section[t].crossing--;
    for (uint32_t k = 0; k < shape->n_sections; k++) raise_floor(s, shape->sections[k], top);
    return end_step(s, top);
}

bool search_give_up(search *s, uint32_t section, int64_t floor)
{
    if (!begin_step(s, OT_NONE, section, section + 1)) return false;
    raise_floor(s, section, floor);
    return end_step(s, floor);
}

void search_undo_to(search *s, size_t n_steps)
{
    while (s->n_steps > n_steps) {
        const search_step *step = &s->steps[--s->n_steps];
        while (s->n_trail > step->trail) {
            s->n_trail--;
            *s->trail[s->n_trail].where = s->trail[s->n_trail].old;
        }
        restore_lists(s, step->saved);
        if (step->box == OT_NONE) continue;
        search_box *b = &s->box[step->box];
        const search_shape *shape = &s->shape[step->box];
        b->placed = false;
        s->n_placed--;
        for (uint32_t k = 0; k < shape->n_sections; k++) {
            search_section *t = &s->section[shape->sections[k]];
            t->start--;
            t->rest += s->size[step->box];
            t->set ^= shape->hash;
        }
        for (uint32_t t = b->first; t + 1 < b->last; t++) s->section[t].crossing++;
    }
}
