/* Largest first, each at the lowest offset that nothing that lives beside it takes. (OpenVINO,
 * MemorySolver.)
 *
 *   offset
 *     |  |___c___|                 c is the smallest: it goes above a and b
 *     |__|_a_||______b_____|
 *     +---------------------- step
 *
 * How good that is depends on the order of boxes of one size, and that follows from the way they
 * are sorted: quicksort by the median of three down to 16 boxes, then insertion, which leaves
 * more than 16 equal boxes in an order of its own. A chain of 17 convolutions takes two buffers,
 * one of 18 takes three (measured: 218 MB where two take 146). So it is sorted here in the same
 * way.
 */
#include "live_boxes.h"

#define GRANULE 32
#define SHORT   16   /* boxes that are sorted by insertion */
#define MOST    2048 /* boxes that are placed: smaller ones fit beside them */

typedef bool (*is_before)(const ot_live_box *a, const ot_live_box *b);

static bool begins_before(const ot_live_box *a, const ot_live_box *b)
{
    return a->first != b->first ? a->first < b->first : a->last < b->last;
}

static bool is_larger(const ot_live_box *a, const ot_live_box *b) { return a->bytes > b->bytes; }

static void swap(ot_live_box *a, ot_live_box *b)
{
    const ot_live_box x = *a;
    *a = *b;
    *b = x;
}

/* The median of the three to x[0]. */
static void median_to_front(ot_live_box *x, size_t a, size_t b, size_t c, is_before f)
{
    size_t least = f(&x[a], &x[b]) ? a : b, most = least == a ? b : a;
    size_t m = f(&x[most], &x[c]) ? most : f(&x[least], &x[c]) ? c : least;
    swap(&x[0], &x[m]);
}

/* Parts x[1..n) by x[0]; returns where the second part begins. Equal boxes go to either side. */
static size_t part(ot_live_box *x, size_t n, is_before f)
{
    size_t lo = 1, hi = n;
    for (;;) {
        while (f(&x[lo], &x[0])) lo++;
        hi--;
        while (f(&x[0], &x[hi])) hi--;
        if (lo >= hi) return lo;
        swap(&x[lo], &x[hi]);
        lo++;
    }
}

static void insert_all(ot_live_box *x, size_t n, is_before f)
{
    for (size_t k = 1; k < n; k++) {
        const ot_live_box b = x[k];
        size_t j = k;
        for (; j > 0 && f(&b, &x[j - 1]); j--) x[j] = x[j - 1];
        x[j] = b;
    }
}

static void sort(ot_live_box *x, size_t n, is_before f)
{
    struct {
        size_t lo, hi;
    } open[64] = {{0, n}};
    for (size_t n_open = 1; n_open > 0;) {
        size_t lo = open[n_open - 1].lo, hi = open[n_open - 1].hi;
        n_open--;
        /* A stack of parts that are full is left to the insertion, which sorts whatever it is
         * given. */
        while (hi - lo > SHORT && n_open < sizeof open / sizeof *open) {
            median_to_front(x + lo, 1, (hi - lo) / 2, hi - lo - 1, f);
            size_t cut = lo + part(x + lo, hi - lo, f);
            open[n_open].lo = cut;
            open[n_open].hi = hi;
            n_open++;
            hi = cut;
        }
    }
    insert_all(x, n, f);
}

/* The lowest offset for b beside those before it. */
static int64_t lowest(const ot_live_box *boxes, size_t n, const ot_live_box *b)
{
    int64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < n; k++) {
            const ot_live_box *o = &boxes[k];
            if (o->first > b->last || b->first > o->last || at >= o->at + o->bytes ||
                o->at >= at + b->bytes)
                continue;
            at = o->at + o->bytes;
            moved = true;
        }
    }
    return at;
}

int64_t ot_boxes_place(ot_live_box *boxes, size_t n)
{
    int64_t height = 0;
    for (size_t k = 0; k < n; k++) boxes[k].bytes = ot_ceil_div(boxes[k].bytes, GRANULE) * GRANULE;
    sort(boxes, n, begins_before);
    sort(boxes, n, is_larger);
    for (size_t k = 0; k < n && k < MOST; k++) {
        boxes[k].at = lowest(boxes, k, &boxes[k]);
        height = ot_max(height, boxes[k].at + boxes[k].bytes);
    }
    return height;
}

/* live: [n_steps] zeros; bytes that are there at each step. */
static void fill_live(const ot_live_box *boxes, size_t n, int64_t *live, uint32_t n_steps)
{
    for (size_t k = 0; k < n; k++) {
        live[boxes[k].first] += boxes[k].bytes;
        if (boxes[k].last + 1 < n_steps) live[boxes[k].last + 1] -= boxes[k].bytes;
    }
    for (uint32_t k = 1; k < n_steps; k++) live[k] += live[k - 1];
}

static uint32_t list_makers(const ot_live_box *boxes, size_t n, uint32_t at, ot_id *makers,
                            uint32_t most)
{
    uint32_t found = 0;
    for (; found < most; found++) {
        size_t best = n;
        for (size_t k = 0; k < n; k++) {
            bool known = boxes[k].maker == OT_NONE || boxes[k].first > at || at > boxes[k].last;
            for (uint32_t j = 0; j < found && !known; j++) known = makers[j] == boxes[k].maker;
            if (!known && (best == n || boxes[k].bytes > boxes[best].bytes)) best = k;
        }
        if (best == n) break;
        makers[found] = boxes[best].maker;
    }
    return found;
}

ot_status ot_boxes_fullest(const ot_live_box *boxes, size_t n, uint32_t n_steps, ot_arena *a,
                           ot_id *makers, uint32_t most, uint32_t *found)
{
    int64_t *live = OT_NEW_N(a, int64_t, n_steps + 1u);
    uint32_t at = 0;
    *found = 0;
    if (!live) return OT_E_NOMEM;
    fill_live(boxes, n, live, n_steps);
    for (uint32_t k = 1; k < n_steps; k++)
        if (live[k] > live[at]) at = k;
    *found = list_makers(boxes, n, at, makers, most);
    return OT_OK;
}
