/* The placed items, found by time and in the order of their offsets.
 *
 *   time --->  0        1         2         3  moments * stride
 *              |---- window 0 ----|
 *                       |----- window 1 ----|  Windows overlap by half, so a lifetime no longer
 *                                              than a stride lies inside one:
 *                                 |--- 2 ...   then that window has all that it can meet, already
 *                                              sorted by offset.
 *        short      [=====]                    in windows 0 and 1; neighbours: those of window 0
 *                                              that overlap it
 *        long    [======================]      in windows 0, 1, 2; neighbours: gathered from 0, 2
 *                                              and sorted
 *
 * The stride is the mean number of living items, that is the mean lifetime counted in starts:
 * windows are a few times as full as one moment, and items are in three of them on the average.
 * Dense problems have one window, which is a plain sorted list.
 */
#include "improve.h"

#define STRIDE_MIN 32

/* ---- lifetimes ---- */

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* How many of v are less than x. */
static uint32_t count_below(const int64_t *v, uint32_t n, int64_t x)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (v[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

ot_status pack_lives(const ot_pack_problem *p, ot_arena *a, pack_life *life, uint32_t *n_moments)
{
    int64_t *starts = OT_NEW_N(a, int64_t, p->n + 1u);
    uint32_t n = 0;
    if (!starts) return OT_E_NOMEM;
    for (uint32_t k = 0; k < p->n; k++) starts[k] = p->items[k].lower;
    qsort(starts, p->n, sizeof *starts, compare_i64);
    for (uint32_t k = 0; k < p->n; k++)
        if (n == 0 || starts[n - 1] != starts[k]) starts[n++] = starts[k];
    for (uint32_t k = 0; k < p->n; k++)
        life[k] = (pack_life){count_below(starts, n, p->items[k].lower),
                              count_below(starts, n, p->items[k].upper)};
    *n_moments = n ? n : 1;
    return OT_OK;
}

/* ---- the map ---- */

ot_status pack_map_new(const ot_pack_problem *p, ot_arena *a, pack_map *out)
{
    uint32_t moments;
    uint64_t living = 0;
    *out = (pack_map){.p = p, .arena = a};
    out->life = OT_NEW_N(a, pack_life, p->n + 1u);
    out->offset = OT_NEW_N(a, int64_t, p->n + 1u);
    out->near = OT_NEW_N(a, pack_block, 2 * (size_t)p->n + 1); /* gather finds some twice */
    out->spare = OT_NEW_N(a, pack_block, p->n + 1u);
    if (!out->life || !out->offset || !out->near || !out->spare) return OT_E_NOMEM;
    OT_TRY(pack_lives(p, a, out->life, &moments));
    out->n_moments = moments;
    for (uint32_t k = 0; k < p->n; k++) {
        out->gaps |= p->items[k].n_gaps > 0;
        out->offset[k] = -1;
        living += out->life[k].last - out->life[k].first;
    }
    living /= moments;
    out->stride = living > STRIDE_MIN ? (uint32_t)living : STRIDE_MIN;
    out->n_windows = (moments + out->stride - 1) / out->stride;
    out->windows = OT_NEW_N(a, pack_window, out->n_windows);
    return out->windows ? OT_OK : OT_E_NOMEM;
}

void pack_map_clear(pack_map *m)
{
    for (uint32_t k = 0; k < m->p->n; k++) m->offset[k] = -1;
    for (uint32_t w = 0; w < m->n_windows; w++) m->windows[w].n = 0;
}

/* First and last window that an item is in. */
static uint32_t first_window(const pack_map *m, uint32_t item)
{
    uint32_t w = m->life[item].first / m->stride;
    return w > 0 ? w - 1 : 0;
}

static uint32_t last_window(const pack_map *m, uint32_t item)
{
    return (m->life[item].last - 1) / m->stride;
}

/* How many blocks lie lower; among equal ones those of smaller items. */
static size_t rank_in(const pack_window *w, int64_t lower, uint32_t item)
{
    size_t lo = 0, hi = w->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const pack_block *b = &w->blocks[mid];
        if (b->lower < lower || (b->lower == lower && b->item < item))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool pack_map_put(pack_map *m, uint32_t item, int64_t offset)
{
    pack_block b = {offset, offset + m->p->items[item].size, m->life[item], item};
    uint32_t last = last_window(m, item);
    m->offset[item] = offset;
    if (b.lower == b.upper) return true;
    for (uint32_t k = first_window(m, item); k <= last; k++) {
        pack_window *w = &m->windows[k];
        size_t at = rank_in(w, offset, item);
        if (!OT_PUSH(m->arena, w->blocks, w->n, w->cap, b)) return false;
        memmove(w->blocks + at + 1, w->blocks + at, (w->n - 1 - at) * sizeof *w->blocks);
        w->blocks[at] = b;
    }
    return true;
}

void pack_map_take(pack_map *m, uint32_t item)
{
    uint32_t last = last_window(m, item);
    int64_t offset = m->offset[item];
    m->offset[item] = -1;
    if (m->p->items[item].size == 0) return;
    for (uint32_t k = first_window(m, item); k <= last; k++) {
        pack_window *w = &m->windows[k];
        size_t at = rank_in(w, offset, item);
        w->n--;
        memmove(w->blocks + at, w->blocks + at + 1, (w->n - at) * sizeof *w->blocks);
    }
}

/* Those of the window that overlap me, appended to m->near[n..]. */
static uint32_t filter(pack_map *m, const pack_window *w, pack_life me, uint32_t n)
{
    pack_block *out = m->near;
    for (size_t k = 0; k < w->n; k++) {
        out[n] = w->blocks[k]; /* without a branch that nobody can foresee */
        n += (out[n].life.first < me.last) & (me.first < out[n].life.last);
    }
    return n;
}

/* From every other window; each item in the first of them that it and I am in. */
static uint32_t gather(pack_map *m, pack_life me, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t k = from; k <= to; k += 2) {
        uint32_t kept = n, start = k > from ? k * m->stride : 0;
        uint32_t end = filter(m, &m->windows[k], me, n);
        for (uint32_t j = n; j < end; j++) {
            m->near[kept] = m->near[j];
            kept += m->near[j].life.first >= start;
        }
        n = kept;
    }
    pack_blocks_sort(m->near, n, m->spare);
    return n;
}

/* Does one window hold all that the item can meet? */
static bool is_short(const pack_map *m, uint32_t item)
{
    return last_window(m, item) <= m->life[item].first / m->stride + 1;
}

uint32_t pack_map_near(pack_map *m, uint32_t item)
{
    pack_life me = m->life[item];
    uint32_t from = me.first / m->stride, kept = 0;
    uint32_t n = is_short(m, item) ? filter(m, &m->windows[from], me, 0)
                                   : gather(m, me, from, last_window(m, item));
    if (!m->gaps && m->offset[item] < 0) return n;
    for (uint32_t k = 0; k < n; k++) {
        if (m->near[k].item == item ||
            (m->gaps && !ot_pack_meet(&m->p->items[item], &m->p->items[m->near[k].item])))
            continue;
        m->near[kept++] = m->near[k];
    }
    return kept;
}

int64_t pack_map_place(pack_map *m, uint32_t item, pack_fit fit)
{
    const ot_pack_item *x = &m->p->items[item];
    if (is_short(m, item) && !m->gaps && m->offset[item] < 0) {
        const pack_window *w = &m->windows[m->life[item].first / m->stride];
        return pack_blocks_place(w->blocks, x->size > 0 ? w->n : 0, m->life[item], x, fit);
    }
    uint32_t n = x->size > 0 ? pack_map_near(m, item) : 0;
    return pack_blocks_place(m->near, n, m->life[item], x, fit);
}
