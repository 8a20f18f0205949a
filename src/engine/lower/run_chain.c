/* A chain as a step: which layout it computes in, how its operands lie there.
 *
 *   logical [N, C, H, W]  blocked [N, ceil(C / b), H, W, b]
 *   x     [N, C, H, W]    its own strides, those of a window too
 *   bias  [1, C, 1, 1]    constant: copied to [ceil(C / b), b] when the session is made; strides 0
 *                         b 0 0 1
 *   gate  [N, C, 1, 1]    blocked, too: strides . . 0 0 1
 *   scale [], [1]         strides 0
 *
 * What only a Deslice reads is written into its place in the whole array (lw_tile_place): the
 * output's memory comes as one more input of the step.
 *
 * It computes blocked when most of what it reads is there in that layout. Channels that only pad
 * the last block are set to zero afterwards: they took part, and log(0) is no zero.
 */
#include "engine/cpu/move/box.h"
#include "lower.h"

typedef struct chain_operand {
    const void *copy; /* [ceil(C / b) * b] of a constant along the channel, or NULL */
    int64_t strides[OT_CHAIN_RANK];
    /* strides are known; else they come from the array at run time, masked by `follows` */
    bool is_fixed;
    bool follows[OT_CHAIN_RANK];  /* dims in which the operand varies */
    uint32_t axis[OT_CHAIN_RANK]; /* of the array, for each dim of the box */
} chain_operand;

typedef struct chain_setup {
    const ot_chain *chain;
    bool blocked;
    uint32_t rank;
    int64_t dims[OT_CHAIN_RANK];
    uint32_t n_in, n_out;
    chain_operand *in;
    uint32_t n_arrays;     /* operands that are inputs of the step: the first of them */
    const uint32_t *array; /* [n_in] input of the step, or OT_NONE (a copy) */
    /* [n_out] input of the step that is the output's memory, or OT_NONE: it is an output */
    uint32_t places[OT_CHAIN_OUTPUTS];
    int64_t tail; /* channels in the last block; 0: whole blocks */
    uint32_t block;
} chain_setup;

/* ---- running ---- */

static void operand_strides(const chain_setup *p, const chain_operand *o, const ot_nd *a,
                            int64_t *strides)
{
    for (uint32_t k = 0; k < p->rank; k++) {
        if (o->is_fixed)
            strides[k] = o->strides[k];
        else if (!o->follows[k])
            strides[k] = 0;
        else
            strides[k] = o->axis[k] == OT_NONE ? 1 : a->strides[o->axis[k]];
    }
}

static void clear_tail(const chain_setup *p, const ot_nd *y)
{
    int64_t dims[OT_CHAIN_RANK], strides[OT_CHAIN_RANK];
    static const char zero[4] = {0};
    size_t size = ot_dtype_bytes(y->dtype);
    memcpy(dims, p->dims, sizeof dims);
    for (uint32_t k = 0; k + 1 < p->rank; k++) strides[k] = y->strides[k];
    strides[p->rank - 1] = 1;
    dims[1] = 1;
    dims[p->rank - 1] = (int64_t)p->block - p->tail;
    char *last = (char *)y->data + ((p->dims[1] - 1) * y->strides[1] + p->tail) * (int64_t)size;
    ot_box_fill((ot_box_shape){size, p->rank, dims}, last, strides, zero, 1);
}

static ot_status run_chain(ot_call *c)
{
    const chain_setup *p = c->plan;
    ot_chain_array in[OT_CHAIN_INPUTS], out[OT_CHAIN_OUTPUTS];
    for (uint32_t k = 0, made = 0; k < p->n_out; k++) {
        const ot_nd *y;
        if (p->places[k] == OT_NONE) {
            OT_TRY(ot_call_place(c, made));
            y = c->out[made++];
        } else {
            y = c->in[p->places[k]];
        }
        out[k].data = y->data;
        for (uint32_t a = 0; a < p->rank; a++)
            out[k].strides[a] = p->blocked && a + 1 == p->rank ? 1 : y->strides[a];
    }
    for (uint32_t k = 0; k < p->n_in; k++) {
        const ot_nd *a = p->array[k] == OT_NONE ? NULL : c->in[p->array[k]];
        in[k].data = a ? a->data : (void *)(uintptr_t)p->in[k].copy;
        operand_strides(p, &p->in[k], a, in[k].strides);
    }
    ot_chain_run(p->chain, p->rank, p->dims, in, out, c->threads);
    for (uint32_t k = 0; p->tail && k < p->n_out; k++) clear_tail(p, c->out[k]);
    return OT_OK;
}

/* ---- how operands lie ---- */

static int64_t count_of(const ot_nd *a)
{
    int64_t n = 0;
    return ot_nd_elems(a, &n) ? n : 0;
}

/* Dim of the operand that meets axis k of the result; 1 where it has none. */
static int64_t aligned(const ot_nd *a, bool channel, uint32_t rank, uint32_t k)
{
    if (channel) return k == 1 ? a->dims[0] : 1;
    return k + a->rank < rank ? 1 : a->dims[k + a->rank - rank];
}

/* A constant that varies along the channel only. */
static bool along_channel(const lw_value *w, bool channel, uint32_t rank, int64_t channels)
{
    const ot_nd *a = &w->slot->fore;
    if (!w->slot->is_const || !ot_dtype_is_real(a->dtype) ||
        aligned(a, channel, rank, 1) != channels)
        return false;
    return count_of(a) == channels;
}

/* Can the chain compute in blocks, and what speaks for it: bytes of operands of full size there
 * now, less those that are not. */
static bool can_block(const lw_pass *l, const lw_unit *u, const ot_chain *chain, double *gain)
{
    const ot_nd *y = &l->v[u->out[0]].slot->fore;
    *gain = 0;
    if (y->rank < 3 || y->rank > 5) return false;
    for (uint32_t k = 0; k < u->n_out; k++)
        if (!ot_dtype_is_real(l->v[u->out[k]].slot->fore.dtype)) return false;
    for (uint32_t k = 0; k < u->n_in; k++) {
        const lw_value *w = &l->v[u->in[k]];
        const ot_nd *a = &w->slot->fore;
        bool channel = ot_chain_is_channel(chain, k);
        if (count_of(a) == 1 || along_channel(w, channel, y->rank, y->dims[1])) continue;
        if (!ot_dtype_is_real(a->dtype) || channel || a->rank != y->rank ||
            a->dims[1] != y->dims[1])
            return false;
        if (!lw_same_dims(l, u->in[k], u->out[0])) continue;
        *gain += lw_has(l, u->in[k], LW_ANY_BLOCK) ? (double)count_of(a) : -(double)count_of(a);
    }
    return true;
}

static ot_status channel_copy(lw_pass *l, const ot_nd *a, chain_operand *o, const chain_setup *p)
{
    size_t n = (size_t)(p->dims[1] * p->block), channels = (size_t)count_of(a),
           size = ot_dtype_bytes(a->dtype);
    char *copy = ot_alloc(l->a, n * size + 64);
    if (!copy) return ot_fail_nomem(l->p->s->d);
    memset(copy, 0, n * size);
    memcpy(copy, a->data, channels * size);
    o->copy = copy;
    o->is_fixed = true;
    o->strides[1] = p->block;
    o->strides[p->rank - 1] = 1;
    return OT_OK;
}

/* The operand's strides for each dim of the box, from its array's. */
static void describe(const chain_setup *p, const ot_nd *a, bool channel, uint32_t rank,
                     chain_operand *o)
{
    for (uint32_t k = 0; k < p->rank; k++) {
        uint32_t axis = k < rank ? k : 1; /* the channels within a block */
        int64_t d = aligned(a, channel, rank, axis);
        o->follows[k] = d > 1;
        o->axis[k] = channel ? 0 : d > 1 ? axis + a->rank - rank : 0;
        if (p->blocked && k == rank) o->axis[k] = OT_NONE;
    }
}

static ot_status plan_operand(lw_pass *l, const lw_unit *u, chain_setup *p, uint32_t k,
                              uint32_t *array, ot_id *ids, uint32_t *n_ids)
{
    const ot_nd *y = &l->v[u->out[0]].slot->fore;
    lw_value *w = &l->v[u->in[k]];
    bool channel = ot_chain_is_channel(p->chain, k);
    if (p->blocked && count_of(&w->slot->fore) > 1 &&
        along_channel(w, channel, y->rank, y->dims[1])) {
        array[k] = OT_NONE;
        return channel_copy(l, &w->slot->nd, &p->in[k], p);
    }
    bool blocked = p->blocked && count_of(&w->slot->fore) > 1;
    OT_TRY(lw_need(l, u->in[k], blocked ? LW_ANY_BLOCK : LW_ANY_PLAIN,
                   blocked ? LW_BLOCK : LW_PLAIN, &ids[*n_ids]));
    array[k] = (*n_ids)++;
    describe(p, &w->slot->fore, channel, y->rank, &p->in[k]);
    return OT_OK;
}

static void set_box(const lw_pass *l, const ot_nd *y, chain_setup *p)
{
    p->rank = y->rank;
    p->block = l->block;
    memcpy(p->dims, y->dims, y->rank * sizeof *p->dims);
    if (p->rank == 0) p->dims[p->rank++] = 1;
    if (!p->blocked) return;
    p->dims[1] = ot_ceil_div(y->dims[1], l->block);
    p->dims[p->rank++] = l->block;
    p->tail = y->dims[1] % l->block;
}

/* An array of the result's own shape, size and layout that may be overwritten. */
static uint32_t overwritable(const lw_pass *l, const lw_unit *u, const chain_setup *p,
                             const ot_id *ids)
{
    for (uint32_t k = 0; k < u->n_in; k++) {
        const lw_value *w = &l->v[u->in[k]];
        if (p->array[k] == OT_NONE || !lw_same_dims(l, u->in[k], u->out[0])) continue;
        if (ot_dtype_bytes(w->slot->fore.dtype) != ot_dtype_bytes(l->v[u->out[0]].slot->fore.dtype))
            continue;
        if (ids[p->array[k]] == w->version[p->blocked ? LW_BLOCK : LW_PLAIN]) return p->array[k];
    }
    return OT_NONE;
}

/* Where the outputs go: *n_outs ids that the step makes; places join its inputs. */
static ot_status plan_outputs(lw_pass *l, const lw_unit *u, chain_setup *p, ot_id *ids,
                              uint32_t *n_ids, ot_id *outs, uint32_t *n_outs)
{
    for (uint32_t k = 0; k < u->n_out; k++) {
        ot_id place = OT_NONE;
        if (!p->blocked) OT_TRY(lw_tile_place(l, u->out[k], &place));
        p->places[k] = OT_NONE;
        if (place == OT_NONE) {
            OT_TRY(lw_make(l, u->out[k], p->blocked ? LW_BLOCK : LW_PLAIN, &outs[(*n_outs)++]));
        } else {
            p->places[k] = *n_ids;
            ids[(*n_ids)++] = place;
        }
    }
    return OT_OK;
}

ot_status lw_write_chain(lw_pass *l, lw_unit *u)
{
    chain_setup *p = OT_NEW(l->a, chain_setup);
    uint32_t *array = OT_NEW_N(l->a, uint32_t, u->n_in + 1u), n_ids = 0;
    ot_id ids[OT_CHAIN_INPUTS + OT_CHAIN_OUTPUTS], outs[OT_CHAIN_OUTPUTS];
    uint32_t n_outs = 0;
    double gain;
    ot_step *step = NULL;
    if (!p || !array) return ot_fail_nomem(l->p->s->d);
    *p = (chain_setup){.chain = u->plan,
                       .n_in = u->n_in,
                       .n_out = u->n_out,
                       .in = OT_NEW_N(l->a, chain_operand, u->n_in + 1u),
                       .array = array};
    if (!p->in) return ot_fail_nomem(l->p->s->d);
    p->blocked = can_block(l, u, p->chain, &gain) && gain > 0;
    set_box(l, &l->v[u->out[0]].slot->fore, p);
    for (uint32_t k = 0; k < u->n_in; k++) OT_TRY(plan_operand(l, u, p, k, array, ids, &n_ids));
    OT_TRY(plan_outputs(l, u, p, ids, &n_ids, outs, &n_outs));
    OT_TRY(lw_push(l, u->nodes[u->n_nodes - 1], run_chain, p, (ot_id_list){ids, n_ids},
                   (ot_id_list){outs, n_outs}, &step));
    if (p->places[0] == OT_NONE) step->in_place = overwritable(l, u, p, ids);
    return OT_OK;
}
