/* Keys for skyline packings: orders that are good for many problems, then what the problem
 * itself teaches.
 *
 *   orders   long lifetimes first, sizes, areas, and items from where most bytes are alive first:
 *            the places that decide the height
 *            must be packed without a loss, others have room.
 *   squeak   the wheel that squeaks gets the grease (Joslin and Clements 1999): items that end
 *            above the goal get larger keys, and
 *            the next packing takes them earlier. Where nothing is too high nothing changes, so
 *            many places are mended at a time.
 *   climb    where it is too high, keys of some items that are alive there change at random; the
 *            change stays unless the packing
 *            got worse. For small and tight problems.
 *
 * What gets worse and better is the excess over the goal, summed over the items; high powers, so
 * that the highest counts most.
 *
 * Skyline packings know neither gaps nor fixed items. In such problems they only give an order:
 * items by ascending offset, each at its lowest place. That never makes a packing higher that
 * was valid.
 */
#include "improve_skyline.h"

#include <math.h>

#define WEIGHT_MAX 1e15
#define KEY_MIN    1e-30 /* keys are positive */

/* key = contention^a * length^b * size^c */
static const struct order {
    /* exponent; contention: most bytes alive during the lifetime, 1 at the peak */
    uint32_t contention;
    double length, size; /* exponents: 0, 0.25, 0.5 or 1 */
    bool time;           /* length in time; else in sections */
} ORDERS[] = {
    {0, 1, 0, false},   {0, 1, 1, false},     {0, 0, 1, false},   {0, 1, 0, true},
    {0, 1, 0.5, false}, {16, 0.25, 0, false}, {128, 1, 0, false}, {600, 1, 0, false},
    {600, 1, 0, true},  {128, 1, 0, true},    {2, 1, 0, false},   {4, 1, 0.5, false},
};
#define N_ORDERS (sizeof ORDERS / sizeof *ORDERS)

struct pack_keys {
    pack_improver *s;
    pack_skyline sky;
    bool fits_exactly;  /* skyline packings give an order only */
    double *contention; /* [n] */
    /* [n] key = base * weight; kept: weights before the last change */
    double *base, *weight, *kept, *key;
    uint32_t *sorted; /* [n] scratch */
    struct ranked {
        int64_t height;
        uint32_t order;
    } rank[N_ORDERS];
};

/* ---- orders ---- */

/* Most bytes alive in each lifetime, by a tree of maxima over sections. */
static ot_status find_contention(pack_keys *k)
{
    const pack_skyline *y = &k->sky;
    size_t n = y->n_sections + 1u;
    int64_t *most = OT_NEW_N(k->s->arena, int64_t, 2 * n), live = 0;
    if (!most) return OT_E_NOMEM;
    for (uint32_t j = 0; j < y->n; j++) {
        int64_t size = y->p->items[y->item[j]].size;
        most[n + y->life[j].first] += size;
        most[n + y->life[j].last] -= size;
    }
    for (size_t t = n; t < 2 * n; t++) most[t] = live += most[t];
    for (size_t t = n; --t >= 1;) most[t] = ot_max(most[2 * t], most[2 * t + 1]);
    for (uint32_t j = 0; j < y->n; j++) {
        int64_t peak = 0;
        for (size_t a = n + y->life[j].first, b = n + y->life[j].last; a < b; a /= 2, b /= 2) {
            if (a & 1) peak = ot_max(peak, most[a++]);
            if (b & 1) peak = ot_max(peak, most[--b]);
        }
        k->contention[y->item[j]] = (double)peak / (double)most[1];
    }
    return OT_OK;
}

static double power(double x, double exponent)
{
    if (exponent == 0) return 1;
    if (exponent == 1) return x;
    return exponent == 0.5 ? sqrt(x) : sqrt(sqrt(x));
}

static double whole_power(double x, uint32_t exponent)
{
    double y = 1;
    for (; exponent; exponent /= 2, x *= x)
        if (exponent & 1) y *= x;
    return y;
}

static void set_order(pack_keys *k, const struct order *o)
{
    const pack_skyline *y = &k->sky;
    for (uint32_t j = 0; j < y->n; j++) {
        uint32_t i = y->item[j];
        const ot_pack_item *x = &y->p->items[i];
        double length = o->time ? (double)x->upper - (double)x->lower
                                : (double)(y->life[j].last - y->life[j].first);
        k->base[i] = fmax(KEY_MIN, whole_power(k->contention[i], o->contention) *
                                       power(length, o->length) * power((double)x->size, o->size));
        k->weight[i] = k->kept[i] = 1;
    }
}

ot_status pack_keys_new(pack_improver *s, pack_keys **out)
{
    pack_keys *k = *out = OT_NEW(s->arena, pack_keys);
    uint32_t n = s->p->n + 1u;
    if (!k) return OT_E_NOMEM;
    k->s = s;
    k->contention = OT_NEW_N(s->arena, double, n);
    k->base = OT_NEW_N(s->arena, double, n);
    k->weight = OT_NEW_N(s->arena, double, n);
    k->kept = OT_NEW_N(s->arena, double, n);
    k->key = OT_NEW_N(s->arena, double, n);
    k->sorted = OT_NEW_N(s->arena, uint32_t, n);
    if (!k->contention || !k->base || !k->weight || !k->kept || !k->key || !k->sorted)
        return OT_E_NOMEM;
    OT_TRY(pack_skyline_new(s->p, s->arena, &k->sky));
    k->fits_exactly = s->map.gaps;
    for (uint32_t j = 0; j < s->p->n; j++) k->fits_exactly |= s->p->items[j].fixed >= 0;
    for (uint32_t r = 0; r < N_ORDERS; r++) k->rank[r].order = r;
    return find_contention(k);
}

/* ---- packings ---- */

static void sift(uint32_t *heap, uint32_t n, uint32_t k, const int64_t *offsets)
{
    uint32_t x = heap[k];
    for (uint32_t child; (child = 2 * k + 1) < n; k = child) {
        if (child + 1 < n) {
            uint32_t a = heap[child], b = heap[child + 1];
            child += offsets[b] > offsets[a] || (offsets[b] == offsets[a] && b > a);
        }
        uint32_t c = heap[child];
        if (offsets[c] < offsets[x] || (offsets[c] == offsets[x] && c < x)) break;
        heap[k] = c;
    }
    heap[k] = x;
}

/* Items by ascending offset, equal ones by number. */
static void sort_by_offset(uint32_t *items, uint32_t n, const int64_t *offsets)
{
    for (uint32_t k = n / 2; k-- > 0;) sift(items, n, k, offsets);
    for (uint32_t left = n; left > 1;) {
        uint32_t top = items[0];
        items[0] = items[--left];
        items[left] = top;
        sift(items, left, 0, offsets);
    }
}

/* The packing at hand anew, gaps and fixed items considered. Returns its height. */
static ot_status place_exactly(pack_keys *k, int64_t *height)
{
    pack_map *m = &k->s->map;
    const ot_pack_problem *p = k->s->p;
    uint32_t n = k->sky.n;
    pack_map_clear(m);
    *height = 0;
    memcpy(k->sorted, k->sky.item, n * sizeof *k->sorted);
    sort_by_offset(k->sorted, n, k->s->offsets);
    for (uint32_t j = 0; j < p->n; j++) {
        if (p->items[j].fixed < 0) continue;
        if (!pack_map_put(m, j, p->items[j].fixed)) return OT_E_NOMEM;
        *height = ot_max(*height, p->items[j].fixed + p->items[j].size);
    }
    for (uint32_t j = 0; j < n; j++) {
        uint32_t i = k->sorted[j];
        int64_t at = pack_map_place(m, i, PACK_FIRST_FIT);
        if (!pack_map_put(m, i, at)) return OT_E_NOMEM;
        k->s->offsets[i] = at;
        *height = ot_max(*height, at + p->items[i].size);
    }
    return OT_OK;
}

/* Pack by base * weight and offer the result. */
static ot_status pack_once(pack_keys *k, int64_t *height)
{
    pack_improver *s = k->s;
    for (uint32_t j = 0; j < k->sky.n; j++) {
        uint32_t i = k->sky.item[j];
        k->key[i] = fmax(KEY_MIN, k->base[i] * k->weight[i]);
    }
    *height = pack_skyline_run(&k->sky, k->key, s->offsets);
    if (k->fits_exactly) OT_TRY(place_exactly(k, height));
    pack_offer(s, s->offsets, *height);
    pack_count(s, k->fits_exactly ? 4 * (int64_t)k->sky.n : k->sky.n);
    return OT_OK;
}

ot_status pack_keys_orders(pack_keys *k)
{
    for (uint32_t r = 0; r < N_ORDERS && !pack_done(k->s); r++) {
        set_order(k, &ORDERS[r]);
        OT_TRY(pack_once(k, &k->rank[r].height));
        struct ranked x = k->rank[r];
        uint32_t at = r;
        for (; at > 0 && k->rank[at - 1].height > x.height; at--) k->rank[at] = k->rank[at - 1];
        k->rank[at] = x;
    }
    return OT_OK;
}

/* ---- learning ---- */

ot_status pack_keys_squeak(pack_keys *k, uint32_t rank, int64_t steps)
{
    pack_improver *s = k->s;
    int64_t end = s->budget->steps + steps;
    set_order(k, &ORDERS[k->rank[rank % N_ORDERS].order]);
    while (!pack_done(s) && s->budget->steps < end) {
        int64_t height;
        OT_TRY(pack_once(k, &height));
        int64_t limit = s->goal + (s->height - s->goal) / 10;
        for (uint32_t j = 0; j < k->sky.n; j++) {
            uint32_t i = k->sky.item[j];
            if (s->offsets[i] + s->p->items[i].size <= limit) continue;
            k->weight[i] = fmin(WEIGHT_MAX, k->weight[i] * (1 + 0.3 * pack_random_unit(s)));
        }
    }
    return OT_OK;
}

/* Sum of the eighth powers of the excess; *highest: one of the items above the goal, by chance
 * and excess. */
static double excess(pack_keys *k, uint32_t *highest)
{
    pack_improver *s = k->s;
    double sum = 0, powers = 0;
    for (uint32_t j = 0; j < k->sky.n; j++) {
        uint32_t i = k->sky.item[j];
        double over = (double)(s->offsets[i] + s->p->items[i].size - s->goal) /
                      fmax(1, (double)s->goal);
        if (over <= 0) continue;
        sum += over;
        powers += whole_power(over, 8);
        if (pack_random_unit(s) * sum <= over) *highest = i;
    }
    return powers;
}

static void disturb(pack_keys *k, uint32_t around)
{
    pack_improver *s = k->s;
    const ot_pack_item *x = &s->p->items[around];
    for (uint32_t j = 0; j < k->sky.n; j++) {
        uint32_t i = k->sky.item[j];
        const ot_pack_item *y = &s->p->items[i];
        if (y->lower >= x->upper || x->lower >= y->upper || pack_random_unit(s) >= 0.05) continue;
        double factor = 1 + 1.5 * pack_random_unit(s);
        k->weight[i] = fmin(WEIGHT_MAX, ot_next_random(&s->random) & 1 ? k->weight[i] * factor
                                                                       : k->weight[i] / factor);
    }
    k->weight[around] = fmin(WEIGHT_MAX, k->weight[around] * (1 + pack_random_unit(s)));
}

ot_status pack_keys_climb(pack_keys *k, uint32_t rank, int64_t steps)
{
    pack_improver *s = k->s;
    int64_t end = s->budget->steps + steps;
    double now = INFINITY;
    set_order(k, &ORDERS[k->rank[rank % N_ORDERS].order]);
    while (!pack_done(s) && s->budget->steps < end) {
        int64_t height;
        uint32_t highest = k->sky.item[0];
        OT_TRY(pack_once(k, &height));
        double next = excess(k, &highest);
        bool better = next <= now;
        if (better) now = next;
        for (uint32_t j = 0; j < k->sky.n; j++) {
            uint32_t i = k->sky.item[j];
            if (better)
                k->kept[i] = k->weight[i];
            else
                k->weight[i] = k->kept[i];
        }
        disturb(k, highest);
    }
    return OT_OK;
}
