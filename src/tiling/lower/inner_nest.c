/* The second level: an operation on tiles of the fast memory, done in blocks in the memories of
 * the cores.
 *
 *   Ascend                                         GPU
 *     l2 --dma--> ub --vector--> ub --dma--> l2      l2 --> shared --> fragment --> l2  element by
 *                                                    element, rows, pools
 *     l2 --> l1 --> l0a, l0b --cube--> l0c --> l2    l2 --> shared --> fragment --> l2  products:
 *                                                    inner_product.c
 *
 *   for i0 in 0..3 {                            one loop for each axis in blocks, for blocks that
 *                                               are alike; what is left
 *     alloc x_block: 1x64x8x56 f32 @ub multi=2  over, and blocks at borders, whose windows are
 *                                               shorter, are written apart
 *     copy x_block <- x_tile[...]
 *     alloc y_block: 1x64x8x56 f32 @ub multi=2
 *     y_block = vector.relu(x_block)
 *     copy y_tile[...] <- y_block
 *   }
 *
 * Blocks are as long as possible: all of the inner axes, a part of one, single places of the
 * outer ones. What they cost is what they move, rows rounded up to DMA granules, and a start for
 * each; so a block whose rows are whole granules is taken where it saves more than the blocks
 * that it makes more.
 */
#include "inner_nest.h"

#include <float.h>
#include <math.h>

bool ot_target_has_cores(const ot_target *t)
{
    return (t->scopes[OT_SCOPE_UB].bytes > 0 && t->scopes[OT_SCOPE_L0C].bytes > 0) ||
           t->scopes[OT_SCOPE_SHARED].bytes > 0;
}

bool inner_is_gpu(const ot_target *t) { return t->scopes[OT_SCOPE_UB].bytes == 0; }

/* ---- blocks along an axis ---- */

#define BLOCKS_MAX (1 << 20) /* that are looked at: sizes of files are no limit */

ot_status inner_runs(lowered *p, int64_t extent, int64_t block, const lowered_window *w,
                     int64_t in_extent, inner_run **out, uint32_t *n)
{
    const int64_t n_blocks = ot_ceil_div(extent, block);
    inner_run *list = NULL;
    size_t cap = 0, n_runs = 0;
    *n = 0;
    if (n_blocks > BLOCKS_MAX) return lowered_refuse(p, "too many blocks along an axis");
    for (int64_t k = 0; k < n_blocks; k++) {
        const int64_t lo = k * block, hi = ot_min(lo + block, extent);
        inner_run r = {
            .first = k, .count = 1, .lo = lo, .len = hi - lo, .in_lo = lo, .in_len = hi - lo};
        if (w && w->kernel > 0) {
            const int64_t from = lo * w->stride - w->pad_lo,
                          to = (hi - 1) * w->stride - w->pad_lo + (w->kernel - 1) * w->dilation + 1;
            if (to <= 0 || from >= in_extent)
                return lowered_refuse(p, "a block that is padding alone");
            r.in_lo = ot_min(ot_max(from, 0), in_extent - 1);
            r.in_len = ot_max(ot_min(to, in_extent) - r.in_lo, 1);
            r.pad_lo = ot_max(r.in_lo - from, 0);
            r.pad_hi = ot_max(to - r.in_lo - r.in_len, 0);
        }
        inner_run *last = n_runs > 0 ? &list[n_runs - 1] : NULL;
        bool same = last && last->len == r.len && last->in_len == r.in_len &&
                    last->pad_lo == r.pad_lo && last->pad_hi == r.pad_hi;
        const int64_t step = last ? (r.in_lo - last->in_lo) / last->count : 0;
        if (same && last->count > 1)
            same = step == last->in_step && r.in_lo == last->in_lo + last->count * step;
        if (same) {
            last->in_step = step;
            last->count++;
        } else if (!OT_PUSH(p->a, list, n_runs, cap, r)) {
            return lowered_nomem(p);
        }
    }
    for (size_t k = 0; k < n_runs; k++) list[k].step = block;
    *n = (uint32_t)n_runs;
    *out = list;
    return OT_OK;
}

ot_status inner_open(lowered *p, inner_axis *x, uint32_t k)
{
    x->at = &x->runs[k];
    x->var = ot_format(p->a, "b%u", p->n_inner++);
    if (!x->var) return lowered_nomem(p);
    return ot_kb_for(p->b, x->var, x->at->first, x->at->first + x->at->count, 1) ? OT_OK
                                                                                 : lowered_nomem(p);
}

ot_status inner_close(lowered *p) { return ot_kb_end(p->b) ? OT_OK : lowered_nomem(p); }

/* lo + step * (block - first). */
static ot_tk_affine place(const inner_axis *x, int64_t lo, int64_t step)
{
    ot_tk_affine a = {.constant = lo};
    if (x->at->count == 1 || step == 0) return a;
    a.constant -= step * x->at->first;
    a.n = 1;
    a.terms[0].var = x->var;
    a.terms[0].coef = step;
    return a;
}

ot_tk_affine inner_out(const inner_axis *x) { return place(x, x->at->lo, x->at->step); }

ot_tk_affine inner_in(const inner_axis *x) { return place(x, x->at->in_lo, x->at->in_step); }

/* ---- what blocks take and cost ---- */

/* Elements along axis k of the output that a block of `block` reads of input 0. */
int64_t inner_reach(const lowered_window *w, int64_t block, int64_t in_extent)
{
    return w->kernel > 0
               ? ot_min((block - 1) * w->stride + (w->kernel - 1) * w->dilation + 1, in_extent)
               : block;
}

double inner_moved(const lowered_tensor *x, const int64_t *dims, int64_t granule)
{
    double rows = 1, run = (double)ot_tk_dtype_bits(x->type) / 8;
    uint32_t k = x->rank;
    while (k > 0) {
        run *= (double)dims[--k];
        if (dims[k] != x->dims[k]) break;
    }
    while (k > 0) rows *= (double)dims[--k];
    double whole = (double)granule * (double)ot_ceil_div((int64_t)run, granule);
    return rows * (granule > 1 ? whole : run);
}

static int64_t bytes_of(const lowered_tensor *x, const int64_t *dims)
{
    int64_t n = ot_tk_dtype_bits(x->type);
    for (uint32_t k = 0; k < x->rank; k++)
        if (!ot_mul_i64(n, dims[k], &n)) return INT64_MAX / 64;
    return ot_ceil_div(n, 8);
}

/* Dims of operand j for a block of the output. */
static void operand_block(const lowered_op *op, uint32_t j, const int64_t *block, int64_t *dims)
{
    memcpy(dims, op->in[j].dims, sizeof op->in[j].dims);
    for (uint32_t k = 0; k < op->out.rank; k++) {
        const int8_t a = op->axis[j][k];
        if (a >= 0)
            dims[a] = j == 0 ? inner_reach(&op->window[k], block[k], op->in[0].dims[a]) : block[k];
    }
}

int64_t inner_room(const ot_target *t, ot_scope s, int64_t bytes)
{
    const int64_t align = ot_max(t->scopes[s].alignment, 1);
    return ot_ceil_div(bytes, align) * align;
}

typedef struct block_choice {
    int64_t block[OT_TK_RANK_MAX];
    double seconds, bytes;
    int64_t n;
    bool found;
} block_choice;

/* What block costs; false: it does not fit. granule 1: rows of any length. */
static bool score(const lowered *p, const lowered_op *op, const int64_t *block, int64_t granule,
                  block_choice *c)
{
    const ot_scope in_scope = inner_is_gpu(p->t) ? OT_SCOPE_SHARED : OT_SCOPE_UB,
                   out_scope = inner_is_gpu(p->t) ? OT_SCOPE_FRAGMENT : OT_SCOPE_UB;
    int64_t held[OT_SCOPE_COUNT] = {0}, dims[OT_TK_RANK_MAX], n = 1;
    for (uint32_t k = 0; k < op->out.rank; k++) n *= ot_ceil_div(op->out.dims[k], block[k]);
    const int64_t slots = n > 1 ? 2 : 1;
    double bytes = inner_moved(&op->out, block, granule);
    held[out_scope] += slots * inner_room(p->t, out_scope, bytes_of(&op->out, block));
    for (uint32_t j = 0; j < op->n_in; j++) {
        operand_block(op, j, block, dims);
        held[in_scope] += slots * inner_room(p->t, in_scope, bytes_of(&op->in[j], dims));
        bytes += inner_moved(&op->in[j], dims, granule);
    }
    for (int s = 0; s < OT_SCOPE_COUNT; s++)
        if (held[s] > inner_capacity(p->t, (ot_scope)s)) return false;
    *c = (block_choice){.seconds = inner_seconds(p->t, bytes * (double)n, n),
                        .bytes = bytes * (double)n,
                        .n = n,
                        .found = true};
    memcpy(c->block, block, sizeof c->block);
    return true;
}

int64_t inner_capacity(const ot_target *t, ot_scope s)
{
    const int64_t registers = 256 * 1024; /* of a multiprocessor, where a target does not say */
    return t->scopes[s].bytes > 0 ? t->scopes[s].bytes : s == OT_SCOPE_FRAGMENT ? registers : 0;
}

double inner_seconds(const ot_target *t, double bytes, int64_t n)
{
    return bytes / t->bw_fast + (double)n * t->loop_overhead / (double)ot_max(t->cores, 1);
}

/* Lengths worth trying on an axis of `extent`, whose element takes `unit` bytes in a row: parts,
 * and whole granules. */
uint32_t inner_lengths(int64_t extent, int64_t unit, int64_t granule,
                       int64_t out[INNER_LENGTHS_MAX])
{
    uint32_t n = 0;
    for (int64_t parts = 1; parts <= extent && n + 2 < INNER_LENGTHS_MAX;
         parts = parts < 8 ? parts + 1 : parts + parts / 2) {
        /* elements of whole granules */
        const int64_t length = ot_ceil_div(extent, parts), whole = granule / ot_gcd(granule, unit);
        if (n == 0 || out[n - 1] != length) out[n++] = length;
        const int64_t snapped = length / whole * whole;
        if (snapped > 0 && snapped != length) out[n++] = snapped;
    }
    if (out[n - 1] != 1) out[n++] = 1;
    return n;
}

/* Whole inner axes, a part of one, single places of the outer ones: the cheapest that fits. */
static block_choice choose(const lowered *p, const lowered_op *op, int64_t granule)
{
    block_choice best = {.seconds = DBL_MAX}, c;
    int64_t unit = ot_tk_dtype_bits(op->out.type) / 8;
    for (uint32_t pivot = op->out.rank; pivot-- > 0;) {
        int64_t block[OT_TK_RANK_MAX], lengths[INNER_LENGTHS_MAX];
        memcpy(block, op->out.dims, sizeof block);
        for (uint32_t k = 0; k < pivot; k++)
            if (op->cut[k]) block[k] = 1;
        const uint32_t n = op->cut[pivot]
                               ? inner_lengths(op->out.dims[pivot], unit, granule, lengths)
                               : 1;
        for (uint32_t k = 0; k < n; k++) {
            if (op->cut[pivot]) block[pivot] = lengths[k];
            if (score(p, op, block, granule, &c) && c.seconds < best.seconds) best = c;
        }
        unit *= op->out.dims[pivot];
    }
    return best;
}

/* ---- the nest ---- */

typedef struct nest {
    lowered *p;
    const lowered_op *op;
    inner_axis axis[OT_TK_RANK_MAX];
    uint32_t slots;
} nest;

/* Operand j's block comes in. */
static ot_status bring(const nest *x, uint32_t j, lowered_tensor *out)
{
    const lowered_op *op = x->op;
    ot_tk_affine lo[OT_TK_RANK_MAX] = {0};
    lowered_tensor part, like = op->in[j];
    for (uint32_t k = 0; k < op->out.rank; k++) {
        const int8_t a = op->axis[j][k];
        if (a < 0) continue;
        const bool windowed = j == 0 && op->window[k].kernel > 0;
        lo[a] = windowed ? inner_in(&x->axis[k]) : inner_out(&x->axis[k]);
        like.dims[a] = windowed ? x->axis[k].at->in_len : x->axis[k].at->len;
    }
    OT_TRY(lowered_part(x->p, &op->in[j], lo, like.dims, &part));
    OT_TRY(lowered_alloc(x->p, "in_block", "",
                         inner_is_gpu(x->p->t) ? OT_SCOPE_SHARED : OT_SCOPE_UB, x->slots, &like,
                         out));
    return lowered_copy(x->p, out, &part);
}

/* Pads and groups are the block's own. */
static void adjust(const nest *x, lowered_op *block)
{
    const uint32_t rank = block->out.rank;
    for (uint32_t k = 0; k < block->n_attrs; k++) {
        lowered_attr *a = &block->attrs[k];
        if (strcmp(a->name, "group") == 0 && x->op->cut[1] && x->op->axis[0][1] >= 0)
            a->values[0] = (double)x->axis[1].at->len;
        if (strcmp(a->name, "pad") != 0) continue;
        for (uint32_t d = 2; d < rank; d++) {
            if (!x->op->cut[d]) continue; /* whole: the tile's */
            a->values[d - 2] = (double)x->axis[d].at->pad_lo;
            a->values[d - 2 + rank - 2] = (double)x->axis[d].at->pad_hi;
        }
    }
}

static ot_status put_block(const nest *x)
{
    lowered *p = x->p;
    lowered_op block = *x->op;
    ot_tk_affine lo[OT_TK_RANK_MAX] = {0};
    lowered_tensor to;
    for (uint32_t k = 0; k < block.out.rank; k++) {
        lo[k] = inner_out(&x->axis[k]);
        block.out.dims[k] = x->axis[k].at->len;
    }
    for (uint32_t j = 0; j < block.n_in; j++) OT_TRY(bring(x, j, &block.in[j]));
    OT_TRY(lowered_part(p, &x->op->out, lo, block.out.dims, &to));
    OT_TRY(lowered_alloc(p, "out_block", "", inner_is_gpu(p->t) ? OT_SCOPE_FRAGMENT : OT_SCOPE_UB,
                         x->slots, &block.out, &block.out));
    adjust(x, &block);
    block.pipe = OT_PIPE_VECTOR;
    OT_TRY(lowered_statement(p, &block));
    return lowered_copy(p, &to, &block.out);
}

static ot_status put_axis(nest *x, uint32_t k)
{
    if (k == x->op->out.rank) return put_block(x);
    for (uint32_t r = 0; r < x->axis[k].n; r++) {
        OT_TRY(inner_open(x->p, &x->axis[k], r));
        OT_TRY(put_axis(x, k + 1));
        OT_TRY(inner_close(x->p));
    }
    return OT_OK;
}

ot_status inner_note(lowered *p, ot_inner_op note)
{
    ot_inner_op *last = p->n_inner_ops > 0 ? p->inner : NULL;
    note.node = p->node;
    for (uint32_t k = 0; last && k < p->n_inner_ops; k++)
        if (p->inner[k].node == note.node && p->inner[k].operation == note.operation) {
            if (p->inner[k].bytes < note.bytes) p->inner[k] = note; /* of the largest tile */
            return OT_OK;
        }
    return OT_PUSH(p->a, p->inner, p->n_inner_ops, p->cap_inner_ops, note) ? OT_OK
                                                                           : lowered_nomem(p);
}

static ot_status put_vector(lowered *p, const lowered_op *op)
{
    const block_choice c = choose(p, op, p->t->granule), plain = choose(p, op, 1);
    /* larger than a core's memory however it is cut: where it lies */
    if (!c.found) return lowered_statement(p, op);
    block_choice rounded = c;
    if (plain.found) (void)score(p, op, plain.block, p->t->granule, &rounded);
    ot_inner_op note = {.operation = op->name,
                        .unit = "vector",
                        .rank = op->out.rank,
                        .n_blocks = c.n,
                        .bytes = (int64_t)c.bytes,
                        .granules_saved = (int64_t)fmax(rounded.bytes - c.bytes, 0),
                        .time = c.seconds};
    memcpy(note.extent, op->out.dims, sizeof note.extent);
    memcpy(note.block, c.block, sizeof note.block);
    OT_TRY(inner_note(p, note));
    nest x = {.p = p, .op = op, .slots = c.n > 1 ? 2 : 1};
    for (uint32_t k = 0; k < op->out.rank; k++) {
        const int64_t in_extent = op->axis[0][k] >= 0 ? op->in[0].dims[op->axis[0][k]] : 1;
        OT_TRY(inner_runs(p, op->out.dims[k], c.block[k], &op->window[k], in_extent,
                          &x.axis[k].runs, &x.axis[k].n));
    }
    return put_axis(&x, 0);
}

ot_status inner_op(lowered *p, const lowered_op *op)
{
    bool done = false;
    if (op->pipe == OT_PIPE_CUBE) OT_TRY(inner_product(p, op, &done));
    return done ? OT_OK : put_vector(p, op);
}
