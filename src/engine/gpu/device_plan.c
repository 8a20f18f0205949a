/* Where values lie on the device: those of each program in an arena (tiling/lower/device_arena.h)
 * by the units that touch them; constants and the numbers of kernels in a memory of their own,
 * which is written once: one block, or several where the device has none as large.
 */
#include "device_internal.h"

static int64_t aligned(int64_t bytes) { return bytes + dv_padding(bytes); }

static ot_status bytes_of(const dv_session *s, const dv_value *x, int64_t *bytes)
{
    if (ot_nd_bytes(x->nd.dtype, x->nd.rank, x->nd.dims, bytes)) return OT_OK;
    return ot_fail(s->s->d, OT_E_INPUT, "an array is larger than any memory");
}

/* ---- lifetimes ---- */

static bool is_of(const dv_schedule *q, const dv_value *root)
{
    return root->owner == q && root->memory == DV_ARENA;
}

static void touch(const dv_schedule *q, dv_value *x, uint32_t unit)
{
    dv_value *root = dv_root(x);
    if (is_of(q, root) && root->used) ot_device_touch(&root->room, unit);
}

/* All that unit u of `inner` touches of q's values; inner is q, or a body in it. */
static void touch_unit(const dv_schedule *q, const dv_schedule *inner, const dv_unit *u,
                       uint32_t unit)
{
    for (uint32_t k = 0; k < u->n_kernels; k++)
        for (uint32_t j = 0; j < u->kernels[k].k->n_args; j++)
            touch(q, u->kernels[k].args[j].value, unit);
    for (uint32_t k = 0; k < u->n_uploads; k++) touch(q, inner->at[u->uploads[k]], unit);
    for (uint32_t k = 0; k < u->n_downloads; k++) touch(q, inner->at[u->from[k]], unit);
    for (size_t k = 0; u->body && k < u->body->n_units; k++)
        touch_unit(q, u->body, &u->body->units[k], unit);
}

/* ---- when inputs and results move ---- */

/* Before the unit that touches it first: at once, or behind the unit that has its bytes before. */
static ot_status add_input(dv_schedule *q, ot_id v)
{
    const dv_value *x = q->at[v];
    uint32_t behind, after;
    if (!x->used || x->memory != DV_ARENA || x->room.first == OT_NONE) return OT_OK;
    ot_device_arena_neighbours(&q->arena, &x->room, &behind, &after);
    dv_unit *u = &q->units[x->room.first];
    dv_input *list = OT_NEW_N(q->s->a, dv_input, u->n_inputs + 1u);
    if (!list) return ot_fail_nomem(q->s->s->d);
    if (u->n_inputs) memcpy(list, u->inputs, u->n_inputs * sizeof *list);
    list[u->n_inputs++] = (dv_input){v, behind};
    u->inputs = list;
    if (behind == OT_NONE) return OT_OK;
    dv_unit *before = &q->units[behind];
    ot_id *sends = OT_NEW_N(q->s->a, ot_id, before->n_sends + 1u);
    if (!sends) return ot_fail_nomem(q->s->s->d);
    if (before->n_sends) memcpy(sends, before->sends, before->n_sends * sizeof *sends);
    sends[before->n_sends++] = v;
    before->sends = sends;
    return OT_OK;
}

/* Does it keep its bytes until the run ends? Else who gets them waits until it has left. */
static ot_status add_results(dv_schedule *q, dv_unit *u)
{
    if (u->kind == DV_HOST || u->n_downloads == 0) return OT_OK;
    u->stays = OT_NEW_N(q->s->a, bool, u->n_downloads);
    if (!u->stays) return ot_fail_nomem(q->s->s->d);
    for (uint32_t k = 0; k < u->n_downloads; k++) {
        const dv_value *x = dv_root(q->at[u->from[k]]);
        uint32_t before, after = OT_NONE;
        if (is_of(q, x)) ot_device_arena_neighbours(&q->arena, &x->room, &before, &after);
        u->stays[k] = after == OT_NONE;
        if (after != OT_NONE) q->units[after].after_results = true;
    }
    return OT_OK;
}

static ot_status add_moves(dv_schedule *q)
{
    for (uint32_t k = 0; k < q->p->g->n_inputs && !q->outer; k++)
        OT_TRY(add_input(q, q->p->g->inputs[k]));
    for (size_t k = 0; k < q->n_units && !q->outer; k++) OT_TRY(add_results(q, &q->units[k]));
    return OT_OK;
}

/* ---- the arena ---- */

/* Some block holds it. */
static ot_status check_block(const dv_schedule *q, ot_id v, const dv_value *root)
{
    char needs[32], has[32];
    const int64_t most = ot_device_about(q->s->dev)->allocation_most / DV_ALIGN * DV_ALIGN,
                  bytes = aligned(root->room.bytes);
    if (most == 0 || bytes <= (root->room.twice ? most / 2 / DV_ALIGN * DV_ALIGN : most))
        return OT_OK;
    return ot_fail(q->s->s->d, OT_E_BUDGET,
                   "value '%.200s' takes %s of device memory%s; the device has %s in one block: "
                   "tiles take less, by --emit engine --max-tensor %lldM",
                   v < q->p->g->n_values ? q->p->g->values[v].name : "a copy",
                   ot_format_bytes((double)bytes, needs, sizeof needs),
                   root->room.twice ? ", twice" : "",
                   ot_format_bytes((double)most, has, sizeof has),
                   (long long)ot_max(1, (root->room.twice ? most / 2 : most) >> 20));
}

static ot_status add_value(dv_schedule *q, ot_id v)
{
    dv_value *x = q->at[v];
    dv_value *root = dv_root(x);
    if (!is_of(q, root) || root->room.listed || root->room.first == OT_NONE) return OT_OK;
    OT_TRY(bytes_of(q->s, root, &root->room.bytes));
    OT_TRY(check_block(q, v, root));
    if (root->nd.chan_block) dv_count_blocks(q->s, root->room.bytes);
    if (ot_device_arena_add(&q->arena, q->s->a, &root->room) == OT_OK) return OT_OK;
    return ot_fail_nomem(q->s->s->d);
}

static ot_status plan(dv_schedule *q)
{
    q->arena = (ot_device_arena){.n_units = (uint32_t)q->n_units};
    for (size_t k = 0; k < q->n_units; k++)
        if (q->units[k].body) OT_TRY(plan(q->units[k].body));
    for (size_t k = 0; k < q->n_units; k++) touch_unit(q, q, &q->units[k], (uint32_t)k);
    for (ot_id v = 0; v < q->n_ids; v++) OT_TRY(add_value(q, v));
    for (size_t k = 0; k < q->n_units; k++)
        if (q->units[k].body &&
            ot_device_arena_add_body(&q->arena, q->s->a, &q->units[k].body->arena, (uint32_t)k) !=
                OT_OK)
            return ot_fail_nomem(q->s->s->d);
    OT_TRY(ot_device_arena_place(&q->arena, ot_device_about(q->s->dev)->allocation_most, q->s->a,
                                 q->s->s->d));
    if (ot_device_arena_measure(&q->arena, q->s->a) != OT_OK) return ot_fail_nomem(q->s->s->d);
    return add_moves(q);
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
