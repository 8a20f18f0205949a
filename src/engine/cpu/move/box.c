/* Copies between strided boxes: what a box is made of, and which loop runs over it.
 *
 *   dims as given --> dims of 1 dropped, dst strides positive, sorted: dst's farthest first
 *                 --> dims that run on in both sides joined; a short dense run becomes one wider
 *                 element
 *                 --> one dim shared out among threads
 *                 --> two dims for a loop of box_leaf.h, an odometer over the others
 *
 *   [N,C,H,W] -> [N,H,W,C]  dst  N HW C     joined: H and W; src is adjacent along HW, dst along C:
 *                                           a turn
 *                           src  N HW C
 *   Concat along C          one run a batch
 */
#include "box.h"

#include "box_leaf.h"
#include "engine/core/pool.h"

#define SHARE_BYTES (64 << 10) /* of a thread, at least */

/* Strides in bytes. */
typedef struct box {
    size_t size;
    uint32_t rank;
    int64_t dims[OT_BOX_RANK], to[OT_BOX_RANK], from[OT_BOX_RANK];
    char *dst;
    const char *src;
} box;

/* ---- the shape ---- */

/* Insert a dim where it belongs: dst strides fall. */
static void box_insert(box *b, int64_t n, int64_t to, int64_t from)
{
    uint32_t at = b->rank++;
    if (to < 0) {
        b->dst += (n - 1) * to;
        b->src += (n - 1) * from;
        to = -to;
        from = -from;
    }
    for (; at > 0 && (b->to[at - 1] < to || (b->to[at - 1] == to && b->from[at - 1] < from));
         at--) {
        b->dims[at] = b->dims[at - 1];
        b->to[at] = b->to[at - 1];
        b->from[at] = b->from[at - 1];
    }
    b->dims[at] = n;
    b->to[at] = to;
    b->from[at] = from;
}

static void box_join(box *b)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < b->rank; k++) {
        bool runs_on = n > 0 && b->to[n - 1] == b->to[k] * b->dims[k] &&
                       b->from[n - 1] == b->from[k] * b->dims[k];
        if (runs_on) n--;
        b->dims[n] = runs_on ? b->dims[n] * b->dims[k] : b->dims[k];
        b->to[n] = b->to[k];
        b->from[n] = b->from[k];
        n++;
    }
    b->rank = n;
}

/* A dense run of 2, 4, 8 or 16 bytes is one element. */
static void box_widen(box *b)
{
    int64_t size = (int64_t)b->size;
    if (b->rank < 2 || b->to[b->rank - 1] != size || b->from[b->rank - 1] != size) return;
    int64_t run = size * b->dims[b->rank - 1];
    if (run != 2 && run != 4 && run != 8 && run != 16) return;
    b->size = (size_t)run;
    b->rank--;
}

/* false: nothing to do. `src_strides` NULL: a fill. */
static bool box_open(box *b, ot_box_shape shape, void *dst, const int64_t *dst_strides,
                     const void *src, const int64_t *src_strides)
{
    const int64_t *dims = shape.dims, size = (int64_t)shape.size;
    *b = (box){.size = shape.size, .dst = dst, .src = src};
    for (uint32_t k = 0; k < shape.rank; k++)
        if (dims[k] <= 0) return false;
    for (uint32_t k = 0; k < shape.rank; k++)
        if (dims[k] > 1)
            box_insert(b, dims[k], dst_strides[k] * size, src_strides ? src_strides[k] * size : 0);
    box_join(b);
    return true;
}

/* ---- one thread's share ---- */

/* Two dims of a box taken out for a loop over a plane, and those around them. */
typedef struct box_inner {
    int64_t n[2], to[2], from[2];
    uint32_t rank;
    int64_t dims[OT_BOX_RANK], around_to[OT_BOX_RANK], around_from[OT_BOX_RANK];
} box_inner;

/* A dim that the box does not have counts 1. */
static void box_pick(const box *b, uint32_t outer, uint32_t inner, box_inner *in)
{
    *in = (box_inner){.n = {1, 1}};
    for (uint32_t k = 0; k < b->rank; k++) {
        if (k == outer || k == inner) {
            int slot = k == inner;
            in->n[slot] = b->dims[k];
            in->to[slot] = b->to[k];
            in->from[slot] = b->from[k];
        } else {
            in->dims[in->rank] = b->dims[k];
            in->around_to[in->rank] = b->to[k];
            in->around_from[in->rank++] = b->from[k];
        }
    }
}

/* Next position around the inner dims, the last dim fastest; false: it was the last. */
static bool box_next(const box_inner *in, int64_t *pos, int64_t *to, int64_t *from)
{
    for (uint32_t k = in->rank; k-- > 0;) {
        *to += in->around_to[k];
        *from += in->around_from[k];
        if (++pos[k] < in->dims[k]) return true;
        *to -= in->dims[k] * in->around_to[k];
        *from -= in->dims[k] * in->around_from[k];
        pos[k] = 0;
    }
    return false;
}

typedef enum leaf { LEAF_ROWS, LEAF_TURN, LEAF_LINES, LEAF_FILL } leaf;

static leaf box_leaf(const box *b, bool fill, box_inner *in)
{
    int64_t size = (int64_t)b->size;
    uint32_t last = b->rank - 1, longest = last;
    if (fill) {
        box_pick(b, last ? last - 1 : OT_BOX_RANK, last, in);
        return LEAF_FILL;
    }
    if (b->to[last] == size && b->from[last] == size) {
        box_pick(b, last ? last - 1 : OT_BOX_RANK, last, in);
        return LEAF_ROWS;
    }
    for (uint32_t k = 0; k < last && b->to[last] == size && size <= 8; k++)
        if (b->from[k] == size) {
            box_pick(b, k, last, in);
            return LEAF_TURN;
        }
    for (uint32_t k = last; k-- > 0 && b->dims[last] < 8;)
        if (b->dims[k] > b->dims[longest]) longest = k;
    box_pick(b, longest == last && last ? last - 1 : last, longest, in);
    return LEAF_LINES;
}

static void box_run(const box *b, bool fill)
{
    box_inner in;
    int64_t pos[OT_BOX_RANK] = {0}, to = 0, from = 0;
    if (b->rank == 0) {
        memcpy(b->dst, b->src, b->size);
        return;
    }
    leaf which = box_leaf(b, fill, &in);
    do {
        char *dst = b->dst + to;
        const char *src = b->src + from;
        switch (which) {
        case LEAF_ROWS:
            ot_box_rows(b->size * (size_t)in.n[1], in.n[0], dst, in.to[0], src, in.from[0]);
            break;
        case LEAF_TURN:
            ot_box_turn(b->size, in.n[1], in.n[0], dst, in.to[0], src, in.from[1]);
            break;
        case LEAF_LINES: ot_box_lines(b->size, in.n, dst, in.to, src, in.from); break;
        case LEAF_FILL: ot_box_lines_fill(b->size, in.n, dst, in.to, b->src); break;
        }
    } while (box_next(&in, pos, &to, &from));
}

/* ---- all of it ---- */

/* The dim to share out: the outermost that gives every thread nearly the same, else the longest. */
static uint32_t shared_dim(const box *b, int64_t parts)
{
    uint32_t longest = 0;
    for (uint32_t k = 0; k < b->rank; k++) {
        if (b->dims[k] % parts == 0 || b->dims[k] >= 8 * parts) return k;
        if (b->dims[k] > b->dims[longest]) longest = k;
    }
    return longest;
}

int64_t ot_box_shares(int64_t bytes, uint32_t threads)
{
    return ot_pool_inside() ? 1 : ot_max(1, ot_min(threads, bytes / SHARE_BYTES));
}

typedef struct box_job {
    const box *b;
    bool fill;
    uint32_t dim;
    int64_t unit; /* positions of `dim` that stay together */
} box_job;

static void box_part(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const box_job *j = job;
    box mine = *j->b;
    int64_t at = first * j->unit;
    (void)worker;
    mine.dims[j->dim] = ot_min(end * j->unit, j->b->dims[j->dim]) - at;
    mine.dst += at * j->b->to[j->dim];
    mine.src += at * j->b->from[j->dim];
    box_run(&mine, j->fill);
}

static void box_share(const box *b, bool fill, uint32_t threads)
{
    int64_t n = 1;
    for (uint32_t k = 0; k < b->rank; k++) n *= b->dims[k];
    int64_t parts = ot_box_shares(n * (int64_t)b->size, threads);
    if (parts < 2 || b->rank == 0) {
        box_run(b, fill);
        return;
    }
    box_job j = {.b = b, .fill = fill, .dim = shared_dim(b, parts)};
    j.unit = b->dims[j.dim] > 64 * parts ? 64 : 1;
    ot_pool_share((uint32_t)parts, ot_ceil_div(b->dims[j.dim], j.unit), 1, box_part, &j);
}

void ot_box_copy(ot_box_shape shape, void *dst, const int64_t *dst_strides, const void *src,
                 const int64_t *src_strides, uint32_t threads)
{
    box b;
    if (!box_open(&b, shape, dst, dst_strides, src, src_strides)) return;
    box_widen(&b);
    box_share(&b, false, threads);
}

void ot_box_fill(ot_box_shape shape, void *dst, const int64_t *dst_strides, const void *value,
                 uint32_t threads)
{
    box b;
    if (box_open(&b, shape, dst, dst_strides, value, NULL)) box_share(&b, true, threads);
}
