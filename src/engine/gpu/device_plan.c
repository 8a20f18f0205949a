/* Where values lie on the device.
 *
 *   unit      0     1       2        3  arena
 *   x (input) |=====|                   [x       ]     uploaded before the first unit that reads it
 *   a         .     |=======|           .        [a   ]
 *   tiles     .     .       |========|  [body's arena  ]   the same for every iteration
 *   b         .     |================|  .              [b  ]
 *
 * A body's arena is laid out for itself, and takes part in the plan of the graph as the scratch
 * of its While. Constants and the numbers of kernels lie in a memory of their own, which is
 * written once: one block, or several where the device has none as large.
 *
 */
#include "device_internal.h"

#include "tiling/lower/lowering.h"

#define ALIGN 256 /* of values: rows of vectors and cache lines begin with them */

typedef struct plan_work {
    dv_prog *q;
    ot_pack_item *items; /* [n] */
    dv_value **of;       /* [n] whose they are; NULL: a loop's scratch */
    uint32_t *unit;      /* [n] of scratch: the loop */
    size_t n, cap, cap_of, cap_unit;
} plan_work;

static int64_t aligned(int64_t bytes) { return ot_ceil_div(bytes, ALIGN) * ALIGN; }

static ot_status bytes_of(const dv_session *s, const dv_value *x, int64_t *bytes)
{
    if (ot_nd_bytes(x->nd.dtype, x->nd.rank, x->nd.dims, bytes)) return OT_OK;
    return ot_fail(s->s->d, OT_E_INPUT, "an array is larger than any memory");
}

/* ---- lifetimes ---- */

static void touch(const dv_prog *q, dv_value *x, uint32_t unit)
{
    dv_value *root = dv_root(x);
    if (root->owner != q || root->memory != DV_ARENA || !root->used) return;
    if (root->born == OT_NONE) root->born = unit;
    root->last = unit;
}

/* All that unit u of `inner` touches of q's values; inner is q, or a body in it. */
static void touch_unit(const dv_prog *q, const dv_prog *inner, const dv_unit *u, uint32_t unit)
{
    for (uint32_t k = 0; k < u->n_kernels; k++)
        for (uint32_t j = 0; j < u->kernels[k].k->n_args; j++)
            touch(q, u->kernels[k].args[j].value, unit);
    for (uint32_t k = 0; k < u->n_uploads; k++) touch(q, inner->at[u->uploads[k]], unit);
    for (uint32_t k = 0; k < u->n_downloads; k++) touch(q, inner->at[u->from[k]], unit);
    for (size_t k = 0; u->body && k < u->body->n_units; k++)
        touch_unit(q, u->body, &u->body->units[k], unit);
}

/* Inputs are uploaded before the unit that touches them first. */
static ot_status upload_inputs(dv_prog *q)
{
    const ot_graph *g = q->p->g;
    for (uint32_t k = 0; k < g->n_inputs && !q->outer; k++) {
        dv_value *x = q->at[g->inputs[k]];
        if (!x->used || x->memory != DV_ARENA || x->born == OT_NONE) continue;
        dv_unit *u = &q->units[x->born];
        ot_id *list = OT_NEW_N(q->s->a, ot_id, u->n_inputs + 1u);
        if (!list) return ot_fail_nomem(q->s->s->d);
        if (u->n_inputs) memcpy(list, u->inputs, u->n_inputs * sizeof *list);
        list[u->n_inputs++] = g->inputs[k];
        u->inputs = list;
    }
    return OT_OK;
}

/* ---- the arena ---- */

static ot_status add_item(plan_work *w, dv_value *of, uint32_t lower, uint32_t upper, int64_t bytes)
{
    const ot_pack_item item = {.lower = lower,
                               .upper = (int64_t)upper + 1,
                               .size = bytes,
                               .alignment = ALIGN,
                               .fixed = -1,
                               .hint = -1};
    size_t n = w->n, n_of = w->n, n_unit = w->n;
    if (of) of->item = (uint32_t)n;
    if (!OT_PUSH(w->q->s->a, w->items, n, w->cap, item) ||
        !OT_PUSH(w->q->s->a, w->of, n_of, w->cap_of, of) ||
        !OT_PUSH(w->q->s->a, w->unit, n_unit, w->cap_unit, lower))
        return ot_fail_nomem(w->q->s->s->d);
    w->n = n;
    return OT_OK;
}

static ot_status add_value(plan_work *w, dv_value *x)
{
    int64_t bytes;
    dv_value *root = dv_root(x);
    if (root->owner != w->q || root->memory != DV_ARENA || root->item != OT_NONE ||
        root->born == OT_NONE)
        return OT_OK;
    OT_TRY(bytes_of(w->q->s, root, &bytes));
    if (root->nd.chan_block) dv_count_blocks(w->q->s, bytes);
    if (!root->twice) return add_item(w, root, root->born, root->last, aligned(bytes));
    root->turn = aligned(bytes); /* it moves while all units of the next iteration run */
    return add_item(w, root, 0, (uint32_t)w->q->n_units - 1, 2 * root->turn);
}

static ot_status pack(plan_work *w)
{
    dv_prog *q = w->q;
    ot_pack_problem problem = {w->items, (uint32_t)w->n};
    ot_pack_options o = {.step_limit = ot_graph_arena_steps((uint32_t)w->n),
                         .threads = 1,
                         .rules = OT_PACK_RULES_ALL};
    ot_pack_result r;
    int64_t *offsets = OT_NEW_N(q->s->a, int64_t, w->n + 1);
    if (!offsets) return ot_fail_nomem(q->s->s->d);
    OT_TRY(ot_pack(&problem, &o, q->s->s->d, offsets, &r));
    OT_TRY(ot_pack_check(&problem, offsets, 0, NULL, q->s->s->d));
    for (size_t k = 0; k < w->n; k++) {
        if (w->of[k])
            w->of[k]->offset = offsets[k];
        else
            q->units[w->unit[k]].body->base = offsets[k];
    }
    q->arena_bytes = r.height;
    for (size_t k = 0; k < w->n; k++) /* of a body's arena what lives there */
        if (!w->of[k]) w->items[k].size = q->units[w->unit[k]].body->live_bytes;
    return ot_pack_find_bound(&problem, &q->live_bytes) == OT_OK ? OT_OK
                                                                 : ot_fail_nomem(q->s->s->d);
}

static ot_status plan(dv_prog *q)
{
    plan_work w = {.q = q};
    for (size_t k = 0; k < q->n_units; k++)
        if (q->units[k].body) OT_TRY(plan(q->units[k].body));
    for (size_t k = 0; k < q->n_units; k++) touch_unit(q, q, &q->units[k], (uint32_t)k);
    OT_TRY(upload_inputs(q));
    for (ot_id v = 0; v < q->n_ids; v++) OT_TRY(add_value(&w, q->at[v]));
    for (size_t k = 0; k < q->n_units; k++)
        if (q->units[k].body && q->units[k].body->arena_bytes > 0)
            OT_TRY(add_item(&w, NULL, (uint32_t)k, (uint32_t)k, q->units[k].body->arena_bytes));
    return w.n ? pack(&w) : OT_OK;
}

/* ---- constants ---- */

/* Room for so many bytes in the last block, or in a new one. */
static ot_status put_constant(dv_session *s, int64_t bytes, uint32_t *block, int64_t *offset)
{
    const int64_t most = ot_device_about(s->dev)->allocation_most;
    const size_t n = s->n_blocks;
    size_t n_now = n, cap = s->cap_blocks;
    if (n == 0 || (most > 0 && s->block_bytes[n - 1] > 0 && bytes > most - s->block_bytes[n - 1])) {
        if (!OT_PUSH(s->a, s->block_bytes, n_now, cap, 0)) return ot_fail_nomem(s->s->d);
        s->n_blocks = (uint32_t)n_now;
        s->cap_blocks = (uint32_t)cap;
    }
    *block = s->n_blocks - 1;
    *offset = s->block_bytes[*block];
    s->block_bytes[*block] += bytes;
    s->weight_bytes += bytes;
    return OT_OK;
}

static ot_status plan_constants(dv_session *s)
{
    int64_t bytes;
    uint32_t last;
    for (size_t k = 0; k < s->n_constants; k++) {
        OT_TRY(bytes_of(s, s->constants[k], &bytes));
        OT_TRY(put_constant(s, aligned(bytes), &s->constants[k]->block, &s->constants[k]->offset));
    }
    return put_constant(s, aligned(ot_max(4, (int64_t)(s->n_numbers * sizeof *s->numbers))), &last,
                        &s->numbers_offset);
}

ot_status dv_plan(dv_session *s)
{
    OT_TRY(plan(s->top));
    return plan_constants(s);
}
