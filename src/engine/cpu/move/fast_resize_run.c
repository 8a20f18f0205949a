/* Resize: the loops over pixels. See fast_resize.h.
 *
 *   jobs      rows of the output: positions on all axes before `last`
 *   row       nearest: elements spread or picked; the row before once more where it has the same
 *             source
 *             else: input rows blended into one (scratch), then its elements blended along `last`
 *   piece     what is dense after `last`: 1 element in NCHW, chan_block, or the channels of NHWC
 */
#include "fast_resize.h"

#include "box_leaf.h"
#include "engine/core/half.h"
#include "engine/ref/ref_number.h"
#include "engine/core/pool.h"

/* of one thread, so that a source row serves its neighbours from the cache */
#define ROWS_AT_A_TIME 8

/* What a run knows of its arrays. */
typedef struct run {
    const ot_resize *r;
    const ot_nd *x, *y;
    size_t size;
    bool half; /* elements of 16 bits: rows are widened, and rounded when they are done */
    /* axis that rows run along: that of the tables, or a later one that is not dense */
    uint32_t last;
    int64_t piece, rows; /* elements; output rows */
} run;

static int64_t piece_of(const ot_resize *r, uint32_t last, uint32_t chan_block)
{
    int64_t n = chan_block > 1 ? chan_block : 1;
    for (uint32_t k = last + 1; k < r->rank; k++) n *= r->axes[k].out;
    return n;
}

/* The first axis from r->last on from which all is dense: rows run along it. In blocks a pixel's
 * axis, also where no axis changes (r->last is 0 then): along the axis of channels there are
 * blocks, not channels. */
static uint32_t row_axis(const ot_resize *r, const ot_nd *a)
{
    int64_t step = a->chan_block > 1 ? a->chan_block : 1;
    uint32_t at = r->rank - 1, least = a->chan_block > 1 && r->last < 2 ? 2 : r->last;
    for (; at > least; at--) {
        step *= a->dims[at];
        if (a->dims[at - 1] > 1 && a->strides[at - 1] != step) break;
    }
    return at;
}

/* Of one row of float32 of the input, or of the output. */
static int64_t row_bytes(const ot_resize *r, uint32_t chan_block, bool of_output)
{
    const ot_resize_axis *a = &r->axes[r->last];
    int64_t row = (of_output ? a->out : a->in) * piece_of(r, r->last, chan_block) *
                  (int64_t)sizeof(float);
    return ot_ceil_div(row, 64) * 64 + 64;
}

int64_t ot_resize_scratch(const ot_resize *r, ot_dtype type, uint32_t chan_block, uint32_t threads)
{
    int64_t row = row_bytes(r, chan_block, false);
    if (ot_dtype_is_half(type)) row = 3 * row + row_bytes(r, chan_block, true);
    return r->mode == OT_RESIZE_NEAREST ? 64 : ot_max(1, threads) * row;
}

/* ---- nearest ---- */

#define SPREAD_BY(type, k)          \
    for (int64_t i = 0; i < n; i++) \
        for (int j = 0; j < k; j++) to[i * k + j] = from[i]

#define SPREAD(type)                                                                             \
    OT_CLONES static void spread_##type(int64_t factor, int64_t n, type *restrict to,            \
                                        const type *restrict from)                               \
    {                                                                                            \
        if (factor == 2)                                                                         \
            SPREAD_BY(type, 2);                                                                  \
        else if (factor == 3)                                                                    \
            SPREAD_BY(type, 3);                                                                  \
        else if (factor == 4)                                                                    \
            SPREAD_BY(type, 4);                                                                  \
        else                                                                                     \
            for (int64_t i = 0; i < n; i++)                                                      \
                for (int64_t j = 0; j < factor; j++) to[i * factor + j] = from[i];               \
    }                                                                                            \
    OT_CLONES static void choose_##type(int64_t n, type *restrict to, const type *restrict from, \
                                        const int32_t *restrict index)                           \
    {                                                                                            \
        for (int64_t i = 0; i < n; i++) to[i] = from[index[i]];                                  \
    }

SPREAD(uint8_t)
SPREAD(uint16_t)
SPREAD(uint32_t)
SPREAD(uint64_t)

typedef float piece_16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float piece_8 __attribute__((vector_size(32), aligned(4), may_alias));

OT_CLONES static void choose_pieces(size_t bytes, int64_t n, char *to, const char *from,
                                    const int32_t *index)
{
    if (bytes == sizeof(piece_8)) {
        for (int64_t i = 0; i < n; i++) ((piece_8 *)to)[i] = ((const piece_8 *)from)[index[i]];
    } else if (bytes == sizeof(piece_16)) {
        for (int64_t i = 0; i < n; i++) ((piece_16 *)to)[i] = ((const piece_16 *)from)[index[i]];
    } else if (bytes == 16) {
        for (int64_t i = 0; i < n; i++) memcpy(to + i * 16, from + (int64_t)index[i] * 16, 16);
    } else {
        for (int64_t i = 0; i < n; i++)
            memcpy(to + (size_t)i * bytes, from + (size_t)index[i] * bytes, bytes);
    }
}

#define NEAREST_ROW(type)                                                    \
    do {                                                                     \
        if (a->factor > 0)                                                   \
            spread_##type(a->factor, a->in, (type *)to, (const type *)from); \
        else                                                                 \
            choose_##type(a->out, (type *)to, (const type *)from, a->index); \
        return;                                                              \
    } while (0)

static void nearest_row(const run *u, char *to, const char *from)
{
    const ot_resize_axis *a = &u->r->axes[u->last];
    size_t bytes = u->size * (size_t)u->piece;
    if (a->same) {
        memcpy(to, from, bytes * (size_t)a->out);
        return;
    }
    if (u->piece == 1) {
        switch (u->size) {
        case 1: NEAREST_ROW(uint8_t);
        case 2: NEAREST_ROW(uint16_t);
        case 4: NEAREST_ROW(uint32_t);
        case 8: NEAREST_ROW(uint64_t);
        default: break;
        }
    }
    choose_pieces(bytes, a->out, to, from, a->index);
}

/* ---- weighted sums ---- */

/* to[i] = sum of weights[t] * rows[t][i]; the first call of a row sets it, later ones add. */
OT_CLONES static void blend_two(int64_t n, float *restrict to, const float *a, const float *b,
                                float wa, float wb, bool add)
{
    if (add)
        for (int64_t i = 0; i < n; i++) to[i] += wa * a[i] + wb * b[i];
    else
        for (int64_t i = 0; i < n; i++) to[i] = wa * a[i] + wb * b[i];
}

/* Along `last`, pieces of one element. */
OT_CLONES static void cross_two(const ot_resize_axis *a, int64_t from, int64_t to,
                                float *restrict y, const float *restrict x)
{
    const int32_t *restrict i0 = a->index, *restrict i1 = a->index + a->out;
    const float *restrict w0 = a->weight, *restrict w1 = a->weight + a->out;
    for (int64_t i = from; i < to; i++) y[i] = w0[i] * x[i0[i]] + w1[i] * x[i1[i]];
}

/* Outputs 2 i and 2 i + 1 from taps at fixed distances of x[i]. */
OT_CLONES static void cross_pairs_two(int64_t n, float *restrict y, const float *const *even,
                                      const float *const *odd, const float *we, const float *wo)
{
    const float *e0 = even[0], *e1 = even[1], *o0 = odd[0], *o1 = odd[1];
    for (int64_t i = 0; i < n; i++) {
        y[2 * i] = we[0] * e0[i] + we[1] * e1[i];
        y[2 * i + 1] = wo[0] * o0[i] + wo[1] * o1[i];
    }
}

OT_CLONES static void cross_pairs_four(int64_t n, float *restrict y, const float *const *even,
                                       const float *const *odd, const float *we, const float *wo)
{
    const float *e0 = even[0], *e1 = even[1], *e2 = even[2], *e3 = even[3], *o0 = odd[0],
                *o1 = odd[1], *o2 = odd[2], *o3 = odd[3];
    for (int64_t i = 0; i < n; i++) {
        y[2 * i] = we[0] * e0[i] + we[1] * e1[i] + we[2] * e2[i] + we[3] * e3[i];
        y[2 * i + 1] = wo[0] * o0[i] + wo[1] * o1[i] + wo[2] * o2[i] + wo[3] * o3[i];
    }
}

static void cross_pairs(const ot_resize_axis *a, float *y, const float *x)
{
    const float *even[4], *odd[4];
    float we[4], wo[4];
    int64_t first = 2 * a->even_from, n = a->even_to - a->even_from;
    for (int64_t t = 0; t < a->n_taps; t++) {
        int64_t k = t * a->out + first;
        even[t] = x + a->index[k];
        odd[t] = x + a->index[k + 1];
        we[t] = a->weight[k];
        wo[t] = a->weight[k + 1];
    }
    if (a->n_taps == 2)
        cross_pairs_two(n, y + first, even, odd, we, wo);
    else
        cross_pairs_four(n, y + first, even, odd, we, wo);
}

OT_CLONES static void cross_four(const ot_resize_axis *a, int64_t from, int64_t to,
                                 float *restrict y, const float *restrict x)
{
    int64_t n = a->out;
    const int32_t *restrict at = a->index;
    const float *restrict w = a->weight;
    for (int64_t i = from; i < to; i++)
        y[i] = w[i] * x[at[i]] + w[n + i] * x[at[n + i]] + w[2 * n + i] * x[at[2 * n + i]] +
               w[3 * n + i] * x[at[3 * n + i]];
}

static void cross_many(const ot_resize_axis *a, float *y, const float *x)
{
    for (int64_t i = 0; i < a->out; i++) {
        double sum = 0;
        for (int64_t t = 0; t < a->n_taps; t++)
            sum += (double)a->weight[t * a->out + i] * (double)x[a->index[t * a->out + i]];
        y[i] = (float)sum;
    }
}

#define CROSS_PIECES(k)                                                                          \
    for (int64_t i = 0; i < a->out; i++) {                                                       \
        piece_##k sum = a->weight[i] * ((const piece_##k *)x)[a->index[i]];                      \
        for (int64_t t = 1; t < a->n_taps; t++)                                                  \
            sum += a->weight[t * a->out + i] * ((const piece_##k *)x)[a->index[t * a->out + i]]; \
        ((piece_##k *)y)[i] = sum;                                                               \
    }

OT_CLONES static void cross_pieces(const ot_resize_axis *a, int64_t piece, float *restrict y,
                                   const float *restrict x)
{
    if (piece == 8) {
        CROSS_PIECES(8)
    } else if (piece == 16) {
        CROSS_PIECES(16)
    } else {
        for (int64_t i = 0; i < a->out; i++)
            for (int64_t t = 0; t < a->n_taps; t++) {
                const float *from = x + a->index[t * a->out + i] * piece;
                float w = a->weight[t * a->out + i], *to = y + i * piece;
                if (t == 0)
                    for (int64_t j = 0; j < piece; j++) to[j] = w * from[j];
                else
                    for (int64_t j = 0; j < piece; j++) to[j] += w * from[j];
            }
    }
}

static void cross(const ot_resize_axis *a, int64_t piece, float *y, const float *x)
{
    int64_t paired = a->even_to > a->even_from, from = paired ? 2 * a->even_from : a->out,
            to = paired ? 2 * a->even_to : a->out;
    if (piece > 1) {
        cross_pieces(a, piece, y, x);
        return;
    }
    if (paired) cross_pairs(a, y, x);
    if (a->n_taps == 2) {
        cross_two(a, 0, from, y, x);
        cross_two(a, to, a->out, y, x);
    } else if (a->n_taps == 4) {
        cross_four(a, 0, from, y, x);
        cross_four(a, to, a->out, y, x);
    } else {
        cross_many(a, y, x);
    }
}

static void fill_floats(float *y, int64_t n, float v)
{
    for (int64_t i = 0; i < n; i++) y[i] = v;
}

/* Where a row of the output lies on an axis that changes. */
typedef struct place {
    const ot_resize_axis *axis;
    int64_t at, step; /* position; elements from one input position to the next */
} place;

/* Tap t of a place: its weight; *x, in elements, moves to its row. */
static float tap_of(const place *p, int64_t t, int64_t *x)
{
    int64_t k = t * p->axis->out + p->at;
    *x += p->axis->index[k] * p->step;
    return p->axis->weight[k];
}

/* n elements from `at` on, as float32: as they lie, or widened in `room`. */
static const float *row_at(const run *u, const char *x, int64_t at, int64_t n, float *room)
{
    x += at * (int64_t)u->size;
    if (!u->half) return (const float *)(const void *)x;
    ot_half_widen(u->x->dtype, room, (const uint16_t *)(const void *)x, n);
    return room;
}

/* n elements: the sum of the rows that the taps of all places name, two at a time (there are
 * always pairs). room: for two rows. */
static void blend_rows(const run *u, const place *places, uint32_t n_places, int64_t n, float *to,
                       const char *x, float *room)
{
    int64_t tap[OT_RANK_MAX], taps[OT_RANK_MAX];
    const place *inner = &places[n_places - 1];
    bool add = false;
    for (uint32_t k = 0; k < n_places; k++) {
        tap[k] = 0;
        taps[k] = places[k].axis->n_taps;
    }
    do {
        int64_t row = 0;
        float w = 1;
        for (uint32_t k = 0; k + 1 < n_places; k++) w *= tap_of(&places[k], tap[k], &row);
        for (int64_t t = 0; t < inner->axis->n_taps; t += 2) {
            int64_t a = row, b = row;
            float wa = w * tap_of(inner, t, &a), wb = w * tap_of(inner, t + 1, &b);
            if (wa == 0 && wb == 0) continue;
            blend_two(n, to, row_at(u, x, a, n, room), row_at(u, x, b, n, room + n), wa, wb, add);
            add = true;
        }
    } while (ot_num_next(n_places - 1, taps, tap));
    if (!add) fill_floats(to, n, 0);
}

static void weighted_row(const run *u, const place *places, uint32_t n_places, float *to,
                         const char *x, float *scratch)
{
    const ot_resize_axis *a = &u->r->axes[u->last];
    int64_t n = a->in * u->piece;
    const float *from;
    for (uint32_t k = 0; k < n_places; k++)
        if (places[k].axis->outside && places[k].axis->outside[places[k].at]) {
            fill_floats(to, a->out * u->piece, u->r->extrapolation);
            return;
        }
    if (n_places > 0) {
        float *blended = a->same ? to : scratch;
        blend_rows(u, places, n_places, n, blended, x, scratch + n);
        from = blended;
    } else {
        from = row_at(u, x, 0, n, a->same ? to : scratch);
    }
    if (a->same) {
        if (from != to) memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    cross(a, u->piece, to, from);
    for (int64_t i = 0; i < a->out && a->outside; i++)
        if (a->outside[i]) fill_floats(to + i * u->piece, u->piece, u->r->extrapolation);
}

/* The same of 16 bits: made in scratch, then rounded. */
static void weighted_half_row(const run *u, const place *places, uint32_t n_places, char *to,
                              const char *x, float *scratch)
{
    const ot_resize_axis *a = &u->r->axes[u->last];
    float *row = scratch + 3 * a->in * u->piece;
    weighted_row(u, places, n_places, row, x, scratch);
    ot_half_narrow(u->y->dtype, (uint16_t *)(void *)to, row, a->out * u->piece);
}

/* ---- rows ---- */

/* How many positions rows have on axis k. */
static int64_t row_extent(const run *u, uint32_t k)
{
    int64_t block = k == 1 && u->x->chan_block > 1 ? u->x->chan_block : 1;
    return ot_ceil_div(u->r->axes[k].out, block);
}

/* The row at pos: offsets into x and y; what changes on the way becomes a place, or part of the
 * offset (NEAREST). */
static uint32_t find_row(const run *u, const int64_t *pos, int64_t *at_x, int64_t *at_y,
                         place *places)
{
    uint32_t n = 0;
    *at_x = *at_y = 0;
    for (uint32_t k = 0; k < u->last; k++) {
        const ot_resize_axis *a = &u->r->axes[k];
        *at_y += pos[k] * u->y->strides[k];
        if (a->same)
            *at_x += pos[k] * u->x->strides[k];
        else if (u->r->mode == OT_RESIZE_NEAREST)
            *at_x += a->index[pos[k]] * u->x->strides[k];
        else
            places[n++] = (place){a, pos[k], u->x->strides[k]};
    }
    return n;
}

/* Rows [from, to) of the output; `scratch` is this thread's. */
static void some_rows(const run *u, int64_t from, int64_t to, float *scratch)
{
    int64_t last_source = -1, size = (int64_t)u->size, at_x, at_y;
    char *last_row = NULL;
    place places[OT_RANK_MAX];
    int64_t pos[OT_RANK_MAX], extents[OT_RANK_MAX], rest = from;
    for (uint32_t k = u->last; k-- > 0; rest /= extents[k]) {
        extents[k] = row_extent(u, k);
        pos[k] = rest % extents[k];
    }
    for (int64_t row = from; row < to; row++, (void)ot_num_next(u->last, extents, pos)) {
        uint32_t n = find_row(u, pos, &at_x, &at_y, places);
        char *y = (char *)u->y->data + at_y * size;
        const char *x = (const char *)u->x->data + at_x * size;
        if (u->r->mode != OT_RESIZE_NEAREST && u->half)
            weighted_half_row(u, places, n, y, x, scratch);
        else if (u->r->mode != OT_RESIZE_NEAREST)
            weighted_row(u, places, n, (float *)y, x, scratch);
        else if (at_x == last_source)
            memcpy(y, last_row, (size_t)(u->r->axes[u->last].out * u->piece * size));
        else
            nearest_row(u, y, x);
        last_source = at_x;
        last_row = y;
    }
}

typedef struct rows_job {
    const run *u;
    char *scratch; /* [threads][room] */
    int64_t room;
} rows_job;

static void rows_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const rows_job *j = job;
    some_rows(j->u, first, end, (float *)(void *)(j->scratch + worker * j->room));
}

void ot_resize_run(const ot_resize *r, const ot_nd *y, const ot_nd *x, void *scratch,
                   uint32_t threads)
{
    uint32_t at_x = row_axis(r, x), at_y = row_axis(r, y), last = at_x > at_y ? at_x : at_y;
    bool half = ot_dtype_is_half(x->dtype);
    run u = {r, x, y, ot_dtype_bytes(x->dtype), half, last, piece_of(r, last, x->chan_block), 1};
    for (uint32_t k = 0; k < last; k++) u.rows *= row_extent(&u, k);
    rows_job j = {
        .u = &u, .scratch = scratch, .room = ot_resize_scratch(r, x->dtype, x->chan_block, 1)};
    int64_t parts = ot_box_shares(u.rows * r->axes[last].out * u.piece * (int64_t)u.size, threads);
    ot_pool_share((uint32_t)parts, u.rows, ROWS_AT_A_TIME, rows_share, &j);
}
