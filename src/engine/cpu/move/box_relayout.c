/* Changes of layout between plain arrays and arrays blocked by channel.
 *
 *   plain    [N, C, H, W]                 c0: . . . .   c1: . . . .   c2: . . . .
 *   blocked  [N, ceil(C/b), H, W, b]      (c0 c1 c2 0) (c0 c1 c2 0) (c0 c1 c2 0) (c0 c1 c2 0)
 *
 * Channels go in groups as long as the shorter block. Whole groups are boxes with one dim more,
 * that of the channels in a group, and so squares of 8 channels x 8 pixels turn through
 * registers. What is left of the last group is packed with zeros.
 */
#include "box.h"

#include "box_leaf.h"
#include "engine/core/pool.h"

#define PACK_PIECE 2048 /* pixels of a tail that one thread packs at a time */

/* One side: group k of `group` channels begins at start(k), channels in it are `lane` elements
 * apart. */
typedef struct side {
    const ot_nd *a;
    int64_t block, group, lane;
} side;

static side side_of(const ot_nd *a, int64_t group)
{
    return a->chan_block > 1 ? (side){a, a->chan_block, group, 1}
                             : (side){a, 1, group, a->strides[1]};
}

static int64_t size_of(const side *s) { return (int64_t)ot_dtype_bytes(s->a->dtype); }

/* In elements. */
static int64_t side_offset(const side *s, int64_t k)
{
    int64_t c = k * s->group;
    return c / s->block * s->a->strides[1] + c % s->block;
}

static char *side_start(const side *s, int64_t k)
{
    return (char *)s->a->data + side_offset(s, k) * size_of(s);
}

/* The box of `groups` groups from k on, of `lanes` channels each: [N, groups, spatial..., lanes].
 */
static void copy_groups(const side *to, const side *from, int64_t k, int64_t groups, int64_t lanes,
                        uint32_t threads)
{
    int64_t dims[OT_BOX_RANK], dst[OT_BOX_RANK], src[OT_BOX_RANK];
    uint32_t rank = to->a->rank;
    memcpy(dims, to->a->dims, rank * sizeof *dims);
    memcpy(dst, to->a->strides, rank * sizeof *dst);
    memcpy(src, from->a->strides, rank * sizeof *src);
    dims[1] = groups;
    dst[1] = side_offset(to, k + 1) - side_offset(to, k);
    src[1] = side_offset(from, k + 1) - side_offset(from, k);
    dims[rank] = lanes;
    dst[rank] = to->lane;
    src[rank] = from->lane;
    ot_box_copy((ot_box_shape){(size_t)size_of(to), rank + 1, dims}, side_start(to, k), dst,
                side_start(from, k), src, threads);
}

/* Lanes of the last block of `to` that are no channel. */
static void zero_pads(const side *to, int64_t channels, uint32_t threads)
{
    static const char zero[8] = {0};
    int64_t dims[OT_BOX_RANK], dst[OT_BOX_RANK], used = channels % to->block;
    uint32_t rank = to->a->rank;
    if (used == 0) return;
    memcpy(dims, to->a->dims, rank * sizeof *dims);
    memcpy(dst, to->a->strides, rank * sizeof *dst);
    dims[1] = 1;
    dims[rank] = to->block - used;
    dst[rank] = 1;
    char *last = (char *)to->a->data +
                 (channels / to->block * to->a->strides[1] + used) * size_of(to);
    ot_box_fill((ot_box_shape){(size_t)size_of(to), rank + 1, dims}, last, dst, zero, threads);
}

/* ---- the last block, from plain channels ---- */

/* Batch and spatial dims, joined where both sides run on; the last one is swept by
 * ot_box_pack_tail. */
typedef struct tail {
    uint32_t rank;
    int64_t dims[OT_RANK_MAX], to[OT_RANK_MAX], from[OT_RANK_MAX];
} tail;

static tail tail_dims(const ot_nd *to, const ot_nd *from)
{
    tail t = {0};
    for (uint32_t k = 0; k < to->rank; k++) {
        if (k == 1 || (to->dims[k] == 1 && k + 1 < to->rank)) continue;
        uint32_t at = t.rank;
        bool runs_on = at > 0 && t.to[at - 1] == to->dims[k] * to->strides[k] &&
                       t.from[at - 1] == to->dims[k] * from->strides[k];
        if (runs_on) at--;
        t.dims[at] = runs_on ? t.dims[at] * to->dims[k] : to->dims[k];
        t.to[at] = to->strides[k];
        t.from[at] = from->strides[k];
        t.rank = at + 1;
    }
    return t;
}

typedef struct tail_job {
    const tail *t;
    int64_t block, used, lane;
    char *dst;
    const char *src;
} tail_job;

static void tail_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const tail_job *j = job;
    const tail *t = j->t;
    uint32_t last = t->rank - 1;
    int64_t n = t->dims[last], pieces = ot_ceil_div(n, PACK_PIECE), size = sizeof(float);
    (void)worker;
    for (int64_t p = first; p < end; p++) {
        int64_t line = p / pieces, q = p % pieces * PACK_PIECE, at_to = q * t->to[last],
                at_from = q * t->from[last];
        for (uint32_t k = last; k-- > 0; line /= t->dims[k]) {
            at_to += line % t->dims[k] * t->to[k];
            at_from += line % t->dims[k] * t->from[k];
        }
        ot_box_pack_tail(j->block, j->used, ot_min(PACK_PIECE, n - q), j->dst + at_to * size,
                         t->to[last] * size, j->src + at_from * size, j->lane * size);
    }
}

static void pack_tail(const side *to, const side *from, int64_t channels, uint32_t threads)
{
    const tail t = tail_dims(to->a, from->a);
    uint32_t last = t.rank - 1;
    int64_t lines = 1, n = t.dims[last];
    for (uint32_t k = 0; k < last; k++) lines *= t.dims[k];
    tail_job j = {.t = &t, .block = to->block, .used = channels % to->block, .lane = from->lane};
    j.dst = side_start(to, channels / to->block);
    j.src = side_start(from, channels / to->block);
    int64_t parts = ot_box_shares(lines * n * to->block * (int64_t)sizeof(float), threads);
    ot_pool_share((uint32_t)parts, lines * ot_ceil_div(n, PACK_PIECE), 1, tail_share, &j);
}

/* ---- all ---- */

static int64_t group_of(int64_t to_block, int64_t from_block)
{
    if (to_block <= 1) return from_block > 1 ? from_block : 1;
    return from_block > 1 ? ot_gcd(to_block, from_block) : to_block;
}

void ot_box_relayout(const ot_nd *to, const ot_nd *from, uint32_t threads)
{
    int64_t group = group_of(to->chan_block, from->chan_block);
    for (uint32_t k = 0; k < to->rank; k++)
        if (to->dims[k] == 0) return;
    if (group == 1) {
        ot_box_copy((ot_box_shape){ot_dtype_bytes(to->dtype), to->rank, to->dims}, to->data,
                    to->strides, from->data, from->strides, threads);
        return;
    }
    const side dst = side_of(to, group), src = side_of(from, group);
    int64_t channels = to->dims[1], whole = channels / group, rest = channels % group;
    bool uniform = (dst.block == 1 || dst.block == group) && (src.block == 1 || src.block == group);
    for (int64_t k = 0, n; k < whole; k += n) {
        n = uniform ? whole : 1;
        copy_groups(&dst, &src, k, n, group, threads);
    }
    bool pixels_adjacent = from->rank > 2 && from->strides[from->rank - 1] == 1;
    if (rest > 0 && pixels_adjacent && size_of(&dst) == sizeof(float) && src.block == 1 &&
        dst.block == group && (group == 8 || group == 16)) {
        pack_tail(&dst, &src, channels, threads);
        return;
    }
    if (rest > 0) copy_groups(&dst, &src, whole, 1, rest, threads);
    if (dst.block > 1) zero_pads(&dst, channels, threads);
}
