/* Counting: how many wavefronts, sectors or granules a walk takes.
 *
 * Iterations whose addresses differ by whole units take the same, so that only the rest of the
 * start by the unit counts, and what of the window is inside of its tensor: each such case is
 * counted once and multiplied.
 *
 *   32 lanes, 4 bytes each, 128 bytes apart --> all in one bank of 32: 32 wavefronts where 1 would
 *   do; 132 bytes apart --> 32 banks: 1
 *   rows of 400 bytes, granules of 256      --> row 0: [0, 400) 2 granules, row 1: [400, 800) 3,
 *                                           ...; in one piece ceil(400 * n / 256)
 */
#include "kacc_internal.h"

#define CASES_MAX 4096

/* Iterations that take the same. */
typedef struct kcase {
    int64_t rest;                                      /* of the start, by the unit */
    int64_t low[OT_TK_RANK_MAX], high[OT_TK_RANK_MAX]; /* the window's part that is there */
    int64_t times;
} kcase;

typedef struct counter {
    const kacc_walk *w;
    ot_kaccess_kind kind;
    const ot_tk_machine *t;
    int64_t unit;
    kcase *cases; /* [n] */
    size_t n, cap;
    int64_t left_out; /* iterations beyond CASES_MAX cases */
    bool is_part;
} counter;

/* ---- cases ---- */

static int64_t rest_of(int64_t x, int64_t unit) { return (x % unit + unit) % unit; }

static bool add_case(counter *c, const kcase *x)
{
    for (size_t k = c->n; k-- > 0;) {
        kcase *y = &c->cases[k];
        if (y->rest != x->rest || memcmp(y->low, x->low, sizeof x->low) != 0 ||
            memcmp(y->high, x->high, sizeof x->high) != 0)
            continue;
        y->times++;
        return true;
    }
    if (c->n == CASES_MAX) {
        c->is_part = true;
        c->left_out++;
        return true;
    }
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 64;
        kcase *more = realloc(c->cases, cap * sizeof *more);
        if (!more) return false;
        c->cases = more;
        c->cap = cap;
    }
    c->cases[c->n++] = *x;
    return true;
}

/* How many indices first, first + each, ... are below `end`. */
static int64_t lanes_before(const kacc_walk *w, uint32_t d, int64_t first, int64_t end)
{
    return first < end ? ot_ceil_div(end - first, w->each[d]) : 0;
}

/* Every iteration, up to KACC_TIMES of them; *seen: how many. */
static bool find_cases(counter *c, int64_t *seen)
{
    const kacc_walk *w = c->w;
    int64_t at[KACC_AXES] = {0};
    for (*seen = 0; *seen < KACC_TIMES; ++*seen) {
        kcase x = {.times = 1};
        int64_t start = w->start, first[OT_TK_RANK_MAX];
        memcpy(first, w->first, sizeof first);
        for (uint32_t a = 0; a < w->n_axes; a++) {
            start += at[a] * w->axes[a].shift;
            for (uint32_t d = 0; d < w->rank; d++) first[d] += at[a] * w->axes[a].first[d];
        }
        x.rest = rest_of(start, c->unit);
        for (uint32_t d = 0; d < w->rank; d++) {
            x.low[d] = w->is_window ? ot_min(lanes_before(w, d, first[d], 0), w->extent[d]) : 0;
            x.high[d] = w->is_window
                            ? ot_max(x.low[d], ot_min(lanes_before(w, d, first[d], w->limit[d]),
                                                      w->extent[d]))
                            : w->extent[d];
        }
        if (!add_case(c, &x)) return false;
        uint32_t a = 0;
        while (a < w->n_axes && ++at[a] == w->axes[a].count) at[a++] = 0;
        if (a == w->n_axes) {
            ++*seen;
            break;
        }
    }
    return true;
}

/* ---- lanes ---- */

/* Different numbers of list[n]; they stand in front then. */
static uint32_t distinct(int64_t *list, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t j = kept;
        while (j > 0 && list[j - 1] != list[k]) j--;
        if (j == 0) list[kept++] = list[k];
    }
    return kept;
}

#define LANES_MAX OT_LANES_MAX
#define WORDS_MAX (LANES_MAX * 16)

/* One access of up to LANES_MAX lanes at these bytes. */
static void count_access(const counter *c, int64_t *at, uint32_t n, kacc_sum *sum)
{
    int64_t units[WORDS_MAX], width = c->w->width;
    uint32_t n_units = 0, banks = c->t->access.banks, load[OT_BANKS_MAX] = {0}, most = 0;
    n = distinct(at, n);
    for (uint32_t k = 0; k < n; k++)
        for (int64_t u = at[k] / c->unit; u <= (at[k] + width - 1) / c->unit && n_units < WORDS_MAX;
             u++)
            units[n_units++] = u;
    n_units = distinct(units, n_units);
    if (c->kind == OT_KACCESS_SECTORS) {
        sum->taken += n_units;
        sum->least += ot_ceil_div(n * width, c->unit);
        return;
    }
    for (uint32_t k = 0; k < n_units; k++) {
        uint32_t *b = &load[units[k] % banks];
        if (++*b > most) most = *b;
    }
    sum->taken += most;
    sum->least += ot_ceil_div(ot_ceil_div(n * width, c->unit), banks);
}

static kacc_sum count_lanes(counter *c, const kcase *x)
{
    const kacc_walk *w = c->w;
    kacc_sum sum = {0};
    int64_t at[LANES_MAX], index[OT_TK_RANK_MAX] = {0}, n = 1;
    uint32_t lane = 0, active = 0, lanes = c->t->access.lanes;
    for (uint32_t d = 0; d < w->rank; d++)
        if (!ot_mul_i64(n, w->extent[d], &n)) n = INT64_MAX;
    if (n > KACC_TIMES) c->is_part = true;
    for (int64_t e = 0; e < n && e < KACC_TIMES; e++) {
        int64_t byte = x->rest;
        bool there = true;
        for (uint32_t d = 0; d < w->rank; d++) {
            there = there && index[d] >= x->low[d] && index[d] < x->high[d];
            byte += index[d] * w->stride[d];
        }
        if (there) at[active++] = byte;
        for (uint32_t d = w->rank; d-- > 0 && ++index[d] == w->extent[d];) index[d] = 0;
        if (++lane < lanes && e + 1 < n) continue;
        if (active > 0) count_access(c, at, active, &sum);
        lane = active = 0;
    }
    if (n > KACC_TIMES) {
        double more = (double)n / (double)KACC_TIMES;
        sum.taken = (int64_t)((double)sum.taken * more);
        sum.least = (int64_t)((double)sum.least * more);
    }
    return sum;
}

/* ---- DMA ---- */

static kacc_sum count_rows(counter *c, const kcase *x)
{
    const kacc_walk *w = c->w;
    kacc_sum sum = {0};
    int64_t run = w->width, index[OT_TK_RANK_MAX], rows = 1, whole, start = x->rest;
    uint32_t outer = w->rank; /* axes in front of what lies in one piece */
    for (uint32_t d = 0; d < w->rank; d++) {
        if (x->high[d] <= x->low[d]) return sum;
        index[d] = x->low[d];
        start += x->low[d] * w->stride[d];
    }
    while (outer > 0 &&
           (w->stride[outer - 1] == run || x->high[outer - 1] - x->low[outer - 1] == 1)) {
        outer--;
        run *= x->high[outer] - x->low[outer];
    }
    for (uint32_t d = 0; d < outer; d++)
        if (!ot_mul_i64(rows, x->high[d] - x->low[d], &rows)) rows = INT64_MAX;
    int64_t counted = ot_min(rows, KACC_TIMES);
    for (int64_t r = 0; r < counted; r++) {
        int64_t byte = start;
        for (uint32_t d = 0; d < outer; d++) byte += (index[d] - x->low[d]) * w->stride[d];
        int64_t taken = (byte + run - 1) / c->unit - byte / c->unit + 1;
        sum.taken += taken;
        sum.off += taken - ot_ceil_div(run, c->unit);
        for (uint32_t d = outer; d-- > 0 && ++index[d] == x->high[d];) index[d] = x->low[d];
    }
    if (counted < rows) {
        c->is_part = true;
        sum.taken = (int64_t)((double)sum.taken * (double)rows / (double)counted);
        sum.off = (int64_t)((double)sum.off * (double)rows / (double)counted);
    }
    sum.least = ot_mul_i64(rows, run, &whole) ? ot_ceil_div(whole, c->unit) : 0;
    return sum;
}

/* ---- all iterations ---- */

static int64_t times(int64_t a, double b)
{
    return (double)a * b < 9e18 ? (int64_t)((double)a * b) : INT64_MAX;
}

/* Does an axis change what is taken? Not when it moves by whole units, and the window with
 * nothing of its first indices. */
static bool changes(const kacc_walk *w, const kacc_axis *a, int64_t unit)
{
    bool moves = a->shift % unit != 0;
    for (uint32_t d = 0; d < w->rank; d++) moves = moves || a->first[d] != 0;
    return moves;
}

/* The walk without the axes that change nothing, which count as times. */
static kacc_walk without_idle(const kacc_walk *w, int64_t unit)
{
    kacc_walk x = *w;
    x.n_axes = 0;
    for (uint32_t a = 0; a < w->n_axes; a++) {
        if (changes(w, &w->axes[a], unit))
            x.axes[x.n_axes++] = w->axes[a];
        else if (!ot_mul_i64(x.times, w->axes[a].count, &x.times))
            x.times = INT64_MAX;
    }
    return x;
}

bool kacc_count(const kacc_walk *given, ot_kaccess_kind kind, const ot_tk_machine *t, kacc_sum *out)
{
    kacc_walk reduced;
    counter c = {.w = &reduced, .kind = kind, .t = t};
    double all = 1;
    int64_t seen;
    *out = (kacc_sum){0};
    c.unit = kind == OT_KACCESS_BANKS     ? t->access.bank_bytes
             : kind == OT_KACCESS_SECTORS ? t->access.sector
                                          : t->granule;
    reduced = without_idle(given, c.unit);
    const kacc_walk *w = &reduced;
    for (uint32_t a = 0; a < w->n_axes; a++) all *= (double)w->axes[a].count;
    if (all == 0 || w->times == 0) return true;
    if (!find_cases(&c, &seen)) {
        free(c.cases);
        return false;
    }
    for (size_t k = 0; k < c.n; k++) {
        kacc_sum s = kind == OT_KACCESS_GRANULES ? count_rows(&c, &c.cases[k])
                                                 : count_lanes(&c, &c.cases[k]);
        out->taken += s.taken * c.cases[k].times;
        out->least += s.least * c.cases[k].times;
        out->off += s.off * c.cases[k].times;
    }
    free(c.cases);
    out->is_part = c.is_part || all > (double)seen;
    double more = (all > (double)(seen - c.left_out) ? all / (double)(seen - c.left_out) : 1) *
                  (double)w->times;
    if (more != 1) {
        out->taken = times(out->taken, more);
        out->least = times(out->least, more);
        out->off = times(out->off, more);
    }
    return true;
}
