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
static ot_dev_after take_waits(dv_session *s, ot_dev_event waits[2])
{
    memcpy(waits, s->waits, sizeof s->waits);
    memset(s->waits, 0, sizeof s->waits);
    return (ot_dev_after){waits, 2};
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
    ot_dev_event waits[2];
    const ot_dev_after after = take_waits(s, waits);
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

static ot_status upload(const dv_at *r, ot_id v)
{
    dv_session *s = r->s;
    ot_dev_slice to;
    ot_device_error e;
    const ot_nd *from = &r->q->p->at[v]->nd;
    const dv_value *x = r->q->at[v];
    ot_dev_event waits[2];
    if (!dv_root(r->q->at[v])->used) return OT_OK;
    OT_TRY(dv_check_array(s, r->q->p->g->values[v].name, from, &x->nd));
    OT_TRY(dv_slice_of(r, x, &to));
    s->figures.uploaded += to.bytes;
    s->figures.n_uploads++;
    const ot_dev_after after = take_waits(s, waits);
    return dv_told(s, ot_dev_upload(s->dev, s->queue, to, from->data, &after, &e, &s->last), &e);
}

ot_status dv_make_array(dv_session *s, ot_slot *slot, const ot_nd *x)
{
    if (slot->place == OT_PLACE_CALLER &&
        ot_nd_same_shape(&slot->want, x->dtype, x->rank, x->dims)) {
        slot->nd = slot->want;
        slot->nd.block = NULL;
        return OT_OK;
    }
    ot_nd_set_dense(&slot->nd, x->dtype, x->rank, x->dims);
    return ot_nd_allocate(&slot->nd, &s->s->heap, s->s->d);
}

/* Into the slot of v. */
static ot_status download(const dv_at *r, ot_id v, ot_id dense)
{
    dv_session *s = r->s;
    ot_slot *slot = r->q->p->at[v];
    const dv_value *x = r->q->at[dense];
    ot_dev_slice from;
    ot_device_error e;
    ot_dev_event waits[2];
    if (slot->nd.data) return OT_OK; /* for another reader */
    OT_TRY(dv_make_array(s, slot, &x->nd));
    OT_TRY(dv_slice_of(r, x, &from));
    s->figures.downloaded += from.bytes;
    s->figures.n_downloads++;
    const ot_dev_after after = take_waits(s, waits);
    return dv_told(s, ot_dev_download(s->dev, s->queue, slot->nd.data, from, &after, &e, &s->last),
                   &e);
}

static ot_status finish_queue(dv_session *s, ot_dev_queue q)
{
    ot_device_error e;
    return dv_told(s, ot_dev_finish(s->dev, q, &e), &e);
}

static ot_status finish(dv_session *s) { return finish_queue(s, s->queue); }

/* ---- units ---- */

static ot_status run_host(const dv_at *r, const dv_unit *u)
{
    for (uint32_t k = 0; k < u->n_downloads; k++) OT_TRY(download(r, u->downloads[k], u->from[k]));
    if (u->n_downloads) OT_TRY(finish(r->s));
    OT_TRY(ot_step_run(r->q->p, u->step));
    for (uint32_t k = 0; k < u->n_uploads; k++) OT_TRY(upload(r, u->uploads[k]));
    return OT_OK;
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
        if (u->body->on_host) OT_TRY(finish(r->s)); /* uploads read what is cleared */
        ot_schedule_clear(u->body->p);
    }
    return OT_OK;
}

static ot_status run_unit(const dv_at *r, const dv_unit *u)
{
    for (uint32_t k = 0; k < u->n_inputs; k++) OT_TRY(upload(r, u->inputs[k]));
    if (u->kind == DV_HOST) return run_host(r, u);
    for (uint32_t k = 0; k < u->n_kernels; k++) OT_TRY(launch(r, &u->kernels[k]));
    if (u->kind == DV_TILES) OT_TRY(run_tiles(r, u));
    for (uint32_t k = 0; k < u->n_downloads; k++) OT_TRY(download(r, u->downloads[k], u->from[k]));
    return OT_OK;
}

static ot_status run_schedule(const dv_at *r)
{
    for (size_t k = 0; k < r->q->n_units; k++) OT_TRY(run_unit(r, &r->q->units[k]));
    return OT_OK;
}

ot_status dv_run(dv_session *s)
{
    const dv_at r = {.s = s, .q = s->top};
    ot_device_figures *f = &s->figures;
    f->uploaded = f->downloaded = 0;
    f->n_uploads = f->n_downloads = f->n_launches = 0;
    memset(s->waits, 0, sizeof s->waits);
    ot_status st = run_schedule(&r);
    ot_diag *told = s->s->d, later = {0};
    /* what is under way must end all the same: it reads and writes memory of this run */
    if (st != OT_OK) s->s->d = &later;
    ot_status end = dv_moves_end(s, st != OT_OK);
    const ot_dev_queue queues[] = {s->queue, s->loads, s->stores};
    for (uint32_t k = 0; k < (s->streams ? 3 : 1); k++) {
        ot_status one = finish_queue(s, queues[k]);
        if (end == OT_OK) end = one;
    }
    s->s->d = told;
    return st != OT_OK ? st : end;
}

/* ---- constants ---- */

static ot_dev_slice part_of(ot_dev_slice whole, int64_t offset, int64_t bytes)
{
    return (ot_dev_slice){whole.buffer, whole.offset + offset, bytes};
}

/* One at a time: a copy of the largest is all that the host needs. */
static ot_status upload_packed(dv_session *s, const dv_value *x, const ot_dev_slice *to)
{
    ot_device_error e;
    void *copy = malloc((size_t)to->bytes);
    if (!copy) return ot_fail_nomem(s->s->d);
    dv_pack_contents(x, copy);
    ot_status st = dv_told(s, ot_dev_upload(s->dev, s->queue, *to, copy, NULL, &e, NULL), &e);
    ot_status done = finish(s);
    free(copy);
    return st != OT_OK ? st : done;
}

ot_status dv_upload_weights(dv_session *s)
{
    ot_device_error e;
    for (size_t k = 0; k < s->n_constants; k++) {
        const dv_value *x = s->constants[k];
        int64_t bytes;
        if (!ot_nd_bytes(x->nd.dtype, x->nd.rank, x->nd.dims, &bytes))
            OT_BUG("an array of impossible size");
        const ot_dev_slice to = part_of(s->weights[x->block], x->offset, bytes);
        if (bytes && x->plain)
            OT_TRY(upload_packed(s, x, &to));
        else if (bytes)
            OT_TRY(dv_told(s, ot_dev_upload(s->dev, s->queue, to, x->nd.data, NULL, &e, NULL), &e));
    }
    const ot_dev_slice to = part_of(s->weights[s->n_blocks - 1], s->numbers_offset,
                                    (int64_t)(s->n_numbers * sizeof *s->numbers));
    if (s->n_numbers)
        OT_TRY(dv_told(s, ot_dev_upload(s->dev, s->queue, to, s->numbers, NULL, &e, NULL), &e));
    return finish(s);
}
