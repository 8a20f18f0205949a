/* NonZero, Unique of single elements, and NonMaxSuppression.
 *
 *   NonZero  places of the elements in one pass, their coordinates in another
 *   Unique   elements become unsigned keys in the order of the elements, which are sorted with
 *            their positions byte by byte (the order of equals stays); bytes that all keys have
 *            alike are left out
 *   NMS      boxes above the score are a heap; they are taken from it in order until enough stay
 */
#include "fast_move.h"

#include "engine/ref/ref_move.h"

#include <stdlib.h>

/* ---- NonZero ---- */

#define PLACES(name, type)                                              \
    static int64_t places_##name(const type *x, int64_t n, int64_t *at) \
    {                                                                   \
        int64_t found = 0;                                              \
        for (int64_t i = 0; i < n; i++) {                               \
            at[found] = i;                                              \
            found += x[i] != 0;                                         \
        }                                                               \
        return found;                                                   \
    }

PLACES(float, float)
PLACES(byte, uint8_t)
PLACES(int32, int32_t)
PLACES(int64, int64_t)

ot_status ot_fast_non_zero(ot_call *c)
{
    const ot_nd *x = ot_num_in(c, 0);
    int64_t n = x && !x->list ? ot_num_count(x) : 0, found;
    ot_dtype t = n > 0 ? x->dtype : OT_DT_UNKNOWN;
    if (t != OT_F32 && t != OT_BOOL && t != OT_U8 && t != OT_I32 && t != OT_I64)
        return ot_op_reference(OT_OP_NonZero)(c);
    int64_t *at = ot_num_scratch(c, n + 1, sizeof *at);
    if (!at) return OT_E_NOMEM;
    switch ((int)t) {
    case OT_F32: found = places_float(x->data, n, at); break;
    case OT_I32: found = places_int32(x->data, n, at); break;
    case OT_I64: found = places_int64(x->data, n, at); break;
    default: found = places_byte(x->data, n, at); break;
    }
    uint32_t rank = x->rank ? x->rank : 1;
    OT_TRY(ot_call_output(c, 0, OT_I64, 2, (int64_t[2]){rank, found}));
    if (!ot_num_out(c, 0)) return OT_OK;
    int64_t *y = c->out[0]->data;
    for (uint32_t k = rank; k-- > 1;)
        for (int64_t i = 0; i < found; i++) {
            y[k * found + i] = at[i] % x->dims[k];
            at[i] /= x->dims[k];
        }
    if (found > 0) memcpy(y, at, (size_t)found * sizeof *at);
    return OT_OK;
}

/* ---- Unique ---- */

typedef struct keyed {
    uint64_t key;
    int64_t at;
} keyed;

typedef struct group {
    int64_t first, from, count; /* as in the reference: ref_move_select.c */
} group;

/* A number of 32 or 64 bits so that unsigned order is the order of numbers; -0 is 0, NaN above all
 * and equal to NaN. */
static uint64_t key_of(const ot_nd *a, int64_t i)
{
    const uint64_t top = (uint64_t)1 << 63;
    if (a->dtype == OT_F32 || a->dtype == OT_F64) {
        double v = a->dtype == OT_F32 ? (double)((const float *)a->data)[i]
                                      : ((const double *)a->data)[i];
        uint64_t bits;
        if (v != v) return UINT64_MAX;
        v = v == 0 ? 0 : v;
        memcpy(&bits, &v, sizeof bits);
        return bits & top ? ~bits : bits | top;
    }
    uint64_t v = (uint64_t)ot_nd_int(a, i);
    return a->dtype == OT_U64 ? v : v ^ top;
}

/* Sorts `a` by key; `other` is room for as many. Returns where the sorted ones are. */
static keyed *sorted(keyed *a, keyed *other, int64_t n)
{
    uint64_t any = 0, all = UINT64_MAX;
    for (int64_t i = 0; i < n; i++) any |= a[i].key, all &= a[i].key;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        int64_t place[256] = {0}, sum = 0;
        if (((any ^ all) >> shift & 0xff) == 0) continue;
        for (int64_t i = 0; i < n; i++) place[a[i].key >> shift & 0xff]++;
        for (int k = 0; k < 256; k++) {
            int64_t count = place[k];
            place[k] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++) other[place[a[i].key >> shift & 0xff]++] = a[i];
        keyed *t = a;
        a = other;
        other = t;
    }
    return a;
}

static int by_first(const void *p, const void *q)
{
    const group *a = p, *b = q;
    return (a->first > b->first) - (a->first < b->first);
}

ot_status ot_fast_unique(ot_call *c)
{
    const ot_nd *x = ot_num_in(c, 0);
    int64_t m = 0, n = x && !x->list ? ot_num_count(x) : 0;
    bool takes = x &&
                 (ot_num_is(x->dtype, OT_NUM_INTS) || x->dtype == OT_F32 || x->dtype == OT_F64);
    if (!takes || n == 0 || ot_attr_find(c->node, "axis")) return ot_op_reference(OT_OP_Unique)(c);
    keyed *a = ot_num_scratch(c, n, 2 * sizeof *a);
    group *g = a ? ot_num_scratch(c, n, sizeof *g) : NULL;
    if (!g) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++) a[i] = (keyed){key_of(x, i), i};
    a = sorted(a, a + n, n);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || a[i].key != a[i - 1].key) g[m++] = (group){.first = a[i].at, .from = i};
        g[m - 1].count++;
    }
    if (!ot_attr_int(c->node, "sorted", 1)) qsort(g, (size_t)m, sizeof *g, by_first);
    OT_TRY(ot_call_output(c, 0, x->dtype, 1, &m));
    OT_TRY(ot_call_output(c, 1, OT_I64, 1, &m));
    OT_TRY(ot_call_output(c, 2, OT_I64, 1, &n));
    OT_TRY(ot_call_output(c, 3, OT_I64, 1, &m));
    ot_nd *value = ot_num_out(c, 0), *first = ot_num_out(c, 1), *of = ot_num_out(c, 2),
          *count = ot_num_out(c, 3);
    for (int64_t k = 0; k < m; k++) {
        if (value) memcpy(ot_mv_at(value, k), ot_mv_at(x, g[k].first), ot_mv_size(x));
        if (first) ((int64_t *)first->data)[k] = g[k].first;
        if (count) ((int64_t *)count->data)[k] = g[k].count;
        for (int64_t i = 0; of && i < g[k].count; i++)
            ((int64_t *)of->data)[a[g[k].from + i].at] = k;
    }
    return OT_OK;
}

/* ---- NonMaxSuppression ---- */

typedef struct candidate {
    float score;
    int64_t at;
} candidate;

typedef struct box {
    double y1, x1, y2, x2, area;
} box;

/* b comes first: the higher score, of equal ones the earlier box. */
static bool is_behind(const candidate *a, const candidate *b)
{
    return a->score < b->score || (a->score == b->score && a->at > b->at);
}

/* heap [n], but for its element k, which is sunk to its place. */
static void sink(candidate *heap, int64_t n, int64_t k)
{
    candidate v = heap[k];
    for (int64_t child; (child = 2 * k + 1) < n; k = child) {
        if (child + 1 < n && is_behind(&heap[child], &heap[child + 1])) child++;
        if (!is_behind(&v, &heap[child])) break;
        heap[k] = heap[child];
    }
    heap[k] = v;
}

static inline double less(double a, double b) { return a < b ? a : b; }
static inline double more(double a, double b) { return a > b ? a : b; }

/* Corners in any order, or centre and size. */
static box box_at(const float *v, bool centre)
{
    double a = (double)v[0], b = (double)v[1], d = (double)v[2], e = (double)v[3];
    bool y = a <= d, x = b <= e;
    box r = {.y1 = y ? a : d, .x1 = x ? b : e, .y2 = y ? d : a, .x2 = x ? e : b};
    if (centre) r = (box){.y1 = b - e / 2, .x1 = a - d / 2, .y2 = b + e / 2, .x2 = a + d / 2};
    r.area = (r.y2 - r.y1) * (r.x2 - r.x1);
    return r;
}

/* Is their intersection over their union at most `most`? */
static bool is_apart(const box *a, const box *b, double most)
{
    double h = less(a->y2, b->y2) - more(a->y1, b->y1), w = less(a->x2, b->x2) - more(a->x1, b->x1);
    double both = h > 0 && w > 0 ? h * w : 0, all = a->area + b->area - both;
    return (both > 0 && all > 0 ? both / all : 0) <= most;
}

typedef struct suppression {
    int64_t boxes, per_class;
    double most; /* of the overlap */
    bool has_least, centre;
    double least;     /* score that a box must exceed */
    candidate *heap;  /* [boxes] */
    box *kept;        /* [boxes] */
    int64_t *indices; /* of what is kept: triples */
} suppression;

/* The boxes of one batch and class that stay; returns their number. */
static int64_t one_class(const suppression *s, const float *boxes, const float *scores)
{
    int64_t n = 0, kept = 0;
    for (int64_t i = 0; i < s->boxes; i++) {
        s->heap[n] = (candidate){scores[i], i};
        /* NaN never */
        n += s->has_least ? (double)scores[i] > s->least : scores[i] == scores[i];
    }
    for (int64_t k = n / 2; k-- > 0;) sink(s->heap, n, k);
    for (; n > 0 && kept < s->per_class; sink(s->heap, n, 0)) {
        int64_t at = s->heap[0].at;
        box b = box_at(boxes + 4 * at, s->centre);
        bool stays = true;
        for (int64_t k = 0; k < kept && stays; k++) stays = is_apart(&b, &s->kept[k], s->most);
        if (stays) {
            s->kept[kept] = b;
            s->indices[3 * kept++ + 2] = at;
        }
        s->heap[0] = s->heap[--n];
        if (n == 0) break;
    }
    return kept;
}

/* A number of input k, if it is given; false: the reference says what is wrong. */
static bool one_number(const ot_call *c, uint32_t k, uint32_t types, double *v)
{
    const ot_nd *a = ot_num_in(c, k);
    if (!a) return true;
    if (!ot_num_is(a->dtype, types) || ot_num_count(a) != 1) return false;
    *v = ot_nd_double(a, 0);
    return true;
}

static bool open_suppression(const ot_call *c, suppression *s)
{
    double per_class = 0;
    const ot_nd *boxes = ot_num_in(c, 0), *scores = ot_num_in(c, 1);
    if (!boxes || !scores || boxes->dtype != OT_F32 || scores->dtype != OT_F32 ||
        boxes->rank != 3 || scores->rank != 3 || boxes->dims[0] != scores->dims[0] ||
        boxes->dims[1] != scores->dims[2] || boxes->dims[2] != 4 ||
        !one_number(c, 2, OT_NUM_INDEX, &per_class) || !one_number(c, 3, OT_NUM_FLOATS, &s->most) ||
        !one_number(c, 4, OT_NUM_FLOATS, &s->least) || !(s->most >= 0 && s->most <= 1))
        return false;
    s->has_least = ot_num_in(c, 4);
    s->boxes = scores->dims[2];
    s->per_class = per_class < (double)s->boxes ? (int64_t)per_class : s->boxes;
    s->centre = ot_attr_int(c->node, "center_point_box", 0) != 0;
    return s->boxes > 0 && s->per_class > 0;
}

ot_status ot_fast_non_max_suppression(ot_call *c)
{
    suppression s = {0};
    int64_t found = 0, most;
    if (!open_suppression(c, &s)) return ot_op_reference(OT_OP_NonMaxSuppression)(c);
    int64_t batches = c->in[1]->dims[0], classes = c->in[1]->dims[1];
    if (!ot_product((int64_t[3]){batches, classes, s.per_class}, 3, &most))
        return ot_op_reference(OT_OP_NonMaxSuppression)(c);
    s.heap = ot_num_scratch(c, s.boxes, sizeof *s.heap);
    s.kept = s.heap ? ot_num_scratch(c, s.per_class, sizeof *s.kept) : NULL;
    int64_t *list = s.kept ? ot_num_scratch(c, most, 3 * sizeof *list) : NULL;
    if (!list) return OT_E_NOMEM;
    for (int64_t p = 0; p < batches * classes; p++) {
        s.indices = list + 3 * found;
        int64_t n = one_class(&s, (const float *)c->in[0]->data + p / classes * s.boxes * 4,
                              (const float *)c->in[1]->data + p * s.boxes);
        for (int64_t i = 0; i < n; i++) {
            s.indices[3 * i] = p / classes;
            s.indices[3 * i + 1] = p % classes;
        }
        found += n;
    }
    OT_TRY(ot_call_output(c, 0, OT_I64, 2, (int64_t[2]){found, 3}));
    if (found > 0) memcpy(c->out[0]->data, list, (size_t)found * 3 * sizeof *list);
    return OT_OK;
}
