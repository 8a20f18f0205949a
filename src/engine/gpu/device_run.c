/* A run: units in order, all in one queue.
 *
 *   kernels     launched; nobody waits
 *   host        downloads, wait, the step, uploads
 *   loops       the body's units, iteration by iteration; nothing of it comes back
 *   the end     results have been downloaded behind the units that make them; wait
 */
#include "device_internal.h"

ot_status dv_told(dv_session *s, ot_status status, const ot_device_error *e)
{
    return status == OT_OK ? OT_OK : ot_device_tell(e, s->s->d);
}

/* ---- places ---- */

/* Where the first element of x (and `more` elements) lies in this iteration: the buffer, bytes
 * before it there. */
static int64_t place_of(const dv_at *r, const dv_value *x, int64_t more, ot_dev_slice *whole)
{
    int64_t elements = more;
    size_t size = ot_dtype_bytes(x->nd.dtype);
    for (; x->of; x = x->of) elements += x->first + (x->moves ? x->moves[r->i] : 0);
    if (x->memory == DV_WEIGHTS) {
        *whole = r->s->weights[x->block];
        return x->offset + elements * (int64_t)size;
    }
    int64_t at = x->room.offset + elements * (int64_t)size;
    uint32_t block = x->room.block;
    for (const dv_schedule *q = x->owner; q; q = q->outer) {
        at += q->arena.blocks[block].base;
        block = q->arena.blocks[block].block;
    }
    if (x->room.twice && r->i & 1) at += x->room.turn;
    *whole = r->s->arena[block];
    return at;
}

ot_status dv_slice_of(const dv_at *r, const dv_value *x, ot_dev_slice *out)
{
    int64_t bytes;
    ot_dev_slice whole;
    if (!ot_nd_bytes(x->nd.dtype, x->nd.rank, x->nd.dims, &bytes))
        OT_BUG("an array of impossible size");
    const int64_t at = place_of(r, x, 0, &whole);
    *out = (ot_dev_slice){whole.buffer, whole.offset + at, bytes};
    return OT_OK;
}

/* ---- commands of the queue ---- */

/* What its next command waits for, once. */
static ot_dev_after take_waits(dv_session *s, ot_dev_event waits[DV_WAITS])
{
    memcpy(waits, s->waits, sizeof s->waits);
    memset(s->waits, 0, sizeof s->waits);
    return (ot_dev_after){waits, DV_WAITS};
}

/* A number of elements to skip: GLSL has it in 32 bits, which the buffers of Vulkan fit in. */
static ot_dev_arg skip(const dv_session *s, int64_t elements)
{
    return s->target.dialect == OT_DG_GLSL ? ot_dev_i32((int32_t)(uint32_t)elements)
                                           : ot_dev_i64(elements);
}

/* Work-groups in rows, where one row would be too long. */
static void set_groups(const dv_session *s, const ot_dg_shader *k, ot_dev_launch *l)
{
    const int64_t all = ot_ceil_div(k->items, k->group_items),
                  rows = ot_ceil_div(all, ot_device_about(s->dev)->groups_most);
    l->groups[0] = (uint32_t)ot_ceil_div(all, rows);
    l->groups[1] = (uint32_t)rows;
    l->items[0] = k->group_items;
}

static ot_status launch(const dv_at *r, const dv_shader *k)
{
    dv_session *s = r->s;
    ot_dev_arg args[3 + 2 * OT_DG_ARGS_MAX];
    ot_device_error e;
    char entry[32];
    uint32_t n = 0;
    ot_dev_slice whole;
    args[n++] = ot_dev_reads(s->weights[s->n_blocks - 1]);
    args[n++] = skip(s, s->numbers_offset / (int64_t)sizeof(int32_t) + k->numbers_at);
    for (uint32_t j = 0; j < k->k->n_args; j++) {
        const dv_arg *a = &k->args[j];
        const dv_value *root = a->value;
        while (root->of) root = root->of;
        int64_t at = place_of(r, a->value, a->first + (a->moves ? a->moves[r->i] : 0), &whole);
        args[n++] = k->k->args[j].written ? ot_dev_writes(whole) : ot_dev_reads(whole);
        args[n++] = skip(s, at / (int64_t)ot_dtype_bytes(root->nd.dtype));
    }
    if (k->k->shared_bytes) args[n++] = ot_dev_shared(k->k->shared_bytes);
    ot_dev_event waits[DV_WAITS];
    const ot_dev_after after = take_waits(s, waits);
    OT_TRY(dv_windows_close(s, false));
    s->idle = false;
    snprintf(entry, sizeof entry, "k%u", k->function);
    ot_dev_launch l = {.program = s->programs[s->n_programs > 1 ? k->function : 0],
                       .entry = entry,
                       .name = k->name,
                       .args = args,
                       .n_args = n,
                       .bytes = k->k->bytes};
    set_groups(s, k->k, &l);
    s->figures.n_launches++;
    return dv_told(s, ot_dev_run(s->dev, s->queue, &l, &after, &e, &s->last), &e);
}

ot_status dv_check_array(dv_session *s, const char *v, const ot_nd *array, const ot_nd *planned)
{
    char made[400], wanted[400];
    if (ot_nd_same_shape(array, planned->dtype, planned->rank, planned->dims)) return OT_OK;
    return ot_fail(
        s->s->d, OT_E_INPUT, "value '%.200s' is %s %s, which the model's shapes contradict: %s %s",
        v, ot_dtype_name(array->dtype), ot_dims_text(array->rank, array->dims, made, sizeof made),
        ot_dtype_name(planned->dtype),
        ot_dims_text(planned->rank, planned->dims, wanted, sizeof wanted));
}

static ot_status finish_queue(dv_session *s, ot_dev_queue q)
{
    ot_device_error e;
    return dv_told(s, ot_dev_finish(s->dev, q, &e), &e);
}

/* Everything that was asked has ended; or, where something failed, what had begun. */
static ot_status finish(dv_session *s, bool failed)
{
    ot_device_error e;
    ot_status st = finish_queue(s, s->queue), moved = OT_OK, loads = OT_OK, stores = OT_OK;
    if (s->mover && failed) (void)ot_dev_mover_cancel(s->mover);
    if (s->mover) moved = dv_told(s, ot_dev_mover_finish(s->mover, &e), &e);
    if (s->streams) loads = finish_queue(s, s->loads);
    if (s->streams) stores = finish_queue(s, s->stores);
    s->idle = true;
    return st != OT_OK ? st : moved != OT_OK ? moved : loads != OT_OK ? loads : stores;
}

/* ---- units ---- */

static ot_status run_host(const dv_at *r, const dv_unit *u)
{
    OT_TRY(dv_fetch_operands(r, u));
    OT_TRY(ot_step_run(r->q->p, u->step));
    return dv_send_made(r, u);
}

static ot_status run_schedule(const dv_at *r);

/* Kernels begin, while the host packs the next windows. */
static ot_status flush_and_store(const dv_at *r)
{
    ot_device_error e;
    OT_TRY(dv_told(r->s, ot_dev_flush(r->s->dev, r->s->queue, &e), &e));
    return dv_moves_store(r);
}

static ot_status run_tiles(const dv_at *r, const dv_unit *u)
{
    dv_at inner = {.s = r->s, .q = u->body};
    const bool moves = u->body->n_streams > 0;
    if (moves) OT_TRY(dv_moves_begin(&inner, u->count));
    for (; inner.i < u->count; inner.i++) {
        if (moves) OT_TRY(dv_moves_load(&inner, u->count));
        OT_TRY(run_schedule(&inner));
        if (moves) OT_TRY(flush_and_store(&inner));
        if (u->body->on_host) OT_TRY(finish(r->s, false)); /* uploads read what is cleared */
        ot_schedule_clear(u->body->p);
    }
    return OT_OK;
}

static ot_status run_unit(const dv_at *r, const dv_unit *u)
{
    if (r->q == r->s->top) OT_TRY(dv_await_moves(r->s, u));
    if (u->kind == DV_HOST) OT_TRY(run_host(r, u));
    for (uint32_t k = 0; k < u->n_kernels; k++) OT_TRY(launch(r, &u->kernels[k]));
    if (u->kind == DV_TILES) OT_TRY(run_tiles(r, u));
    if (u->kind != DV_HOST) OT_TRY(dv_fetch_results(r, u));
    return dv_send_behind(r, u);
}

static ot_status run_schedule(const dv_at *r)
{
    for (size_t k = 0; k < r->q->n_units; k++) OT_TRY(run_unit(r, &r->q->units[k]));
    return OT_OK;
}

/* What the run before left is gone: nothing of it can be taken for what a kernel makes now. */
static ot_status poison(dv_session *s)
{
    ot_device_error e;
    OT_TRY(dv_windows_close(s, false));
    for (uint32_t k = 0; k < s->top->arena.n_blocks; k++) {
        ot_dev_slice x = s->arena[k];
        x.bytes -= x.bytes % 4;
        if (x.bytes == 0) continue;
        OT_TRY(dv_told(s, ot_dev_fill(s->dev, s->queue, x, UINT32_MAX, NULL, &e, &s->last), &e));
        s->figures.poisoned += x.bytes;
    }
    return finish_queue(s, s->queue);
}

ot_status dv_run(dv_session *s)
{
    const dv_at r = {.s = s, .q = s->top};
    ot_device_figures *f = &s->figures;
    f->uploaded = f->downloaded = 0;
    f->n_uploads = f->n_downloads = f->n_launches = 0;
    f->mapped_up = f->mapped_down = 0;
    memset(s->waits, 0, sizeof s->waits);
    f->poisoned = 0;
    ot_status st = s->poisons ? poison(s) : OT_OK;
    if (st == OT_OK) st = dv_send_first(s);
    if (st == OT_OK) st = run_schedule(&r);
    ot_diag *told = s->s->d, later = {0};
    /* what is under way must end all the same: it reads and writes memory of this run */
    if (st != OT_OK) s->s->d = &later;
    ot_status end = dv_moves_end(s, st != OT_OK);
    const ot_status done = finish(s, st != OT_OK);
    if (end == OT_OK) end = done;
    if (end == OT_OK && st == OT_OK) end = dv_fetch_last(s);
    const ot_status closed = dv_windows_close(s, false);
    if (end == OT_OK) end = closed;
    s->s->d = told;
    return st != OT_OK ? st : end;
}
