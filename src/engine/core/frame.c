/* Running a schedule: one implementation call a step.
 *
 *   operands ready? --> it computes --> outputs ours? --> scratch freed --> values that nobody
 *   reads any more freed
 *
 * Implementations may put arrays of their own into outputs; what no block owns (a further reference
 * to an input that lies in the arena) is copied, since it may outlive its owner.
 */
#include "session.h"

#include "engine_trace.h"
#include "row_window.h"

#include "base/watch.h"

/* ---- operands ---- */

static const char *kind_of(const ot_nd *a)
{
    if (a->list) return "a sequence";
    return "an empty optional";
}

/* Implementations see tensors in memory; only some know sequences and empty optionals. */
static ot_status check_inputs(ot_call *c, const ot_step *step)
{
    for (uint32_t k = 0; k < c->n_in; k++) {
        const ot_nd *a = c->in[k];
        if (!a || a->data || (step->takes_lists && (a->list || a->dtype == OT_DT_UNKNOWN)))
            continue;
        if (!a->list && a->dtype != OT_DT_UNKNOWN)
            return ot_call_fail(c,
                                "the contents of input %u (%s) are not held: the text form of a "
                                "model has those of small tensors only",
                                k, ot_dtype_name(a->dtype));
        return ot_call_fail(c, "input %u is %s, which this operator of the engine does not take", k,
                            kind_of(a));
    }
    return OT_OK;
}

/* Fused steps were made for operands that lowering foresaw, and so was the memory of what they
 * make: what another step made, a caller gave or an iteration handed on is compared here. */
static ot_status check_foreseen(ot_call *c, const ot_step *step)
{
    const ot_schedule *p = c->frame->schedule;
    char given[400], wanted[400];
    for (uint32_t k = 0; k < step->n_in; k++) {
        if (step->in_ids[k] == OT_NONE) continue;
        const ot_nd *fore = &p->at[step->in_ids[k]]->fore, *a = c->in[k];
        if (fore->dtype == OT_DT_UNKNOWN) continue; /* a body's business */
        if (ot_nd_same_shape(fore, a->dtype, a->rank, a->dims) &&
            a->chan_block == fore->chan_block && (!ot_nd_is_dense(fore) || ot_nd_is_dense(a)))
            continue;
        return ot_call_fail(
            c, "it reads '%.200s', which is %s %s, and the model's shapes say %s %s",
            step->in_ids[k] < p->g->n_values ? p->g->values[step->in_ids[k]].name : "",
            ot_dtype_name(a->dtype), ot_dims_text(a->rank, a->dims, given, sizeof given),
            ot_dtype_name(fore->dtype),
            ot_dims_text(fore->rank, fore->dims, wanted, sizeof wanted));
    }
    return OT_OK;
}

/* The worker whose tile runs the schedule; UINT32_MAX: it is part of none. */
static uint32_t worker_of(const ot_schedule *p)
{
    while (p && p->tile < 0) p = p->outer;
    return p ? p->worker : UINT32_MAX;
}

/* Of operands larger than memory, the rows that the step reads. */
static ot_status bring_rows(const ot_schedule *p, const ot_step *step, ot_diag *d)
{
    const ot_row_windows *w = p->s->windows;
    OT_TRY(ot_row_windows_stop(w, d));
    for (uint32_t k = 0; k < step->n_in && !step->is_view && !step->is_tiles; k++)
        OT_TRY(ot_row_windows_need(w, step->in[k], worker_of(p), d));
    return OT_OK;
}

/* ---- outputs ---- */

/* The session counts memory that an implementation got elsewhere. */
static void adopt(ot_session *s, ot_nd *a)
{
    for (size_t k = 0; a->list && k < a->list->n; k++) adopt(s, &a->list->items[k]);
    if (!a->block || a->block->heap) return;
    a->block->heap = &s->heap;
    ot_heap_add(&s->heap, (int64_t)a->block->bytes);
}

static ot_status take_output(ot_call *c, const ot_step *step, uint32_t k)
{
    ot_slot *slot = step->out_slots[k];
    ot_session *s = c->frame->schedule->s;
    if (slot->handed) return OT_OK;
    if (!slot->nd.data && !slot->nd.list && !(step->takes_lists && slot->nd.dtype == OT_DT_UNKNOWN))
        return ot_call_fail(c, "output %u is not computed by the engine", k);
    if (!ot_nd_is_owned(&slot->nd)) {
        ot_nd copy;
        OT_TRY(ot_nd_copy(&copy, &slot->nd, &s->heap, c->diag));
        ot_nd_release(&slot->nd);
        slot->nd = copy;
    }
    adopt(s, &slot->nd);
    return OT_OK;
}

static void drop_scratch(ot_frame *f)
{
    while (f->n_scratch) ot_block_unref(f->scratch[--f->n_scratch]);
}

void ot_frame_release(ot_frame *f)
{
    drop_scratch(f);
    (void)!ot_hook_alloc(f->scratch, f->cap_scratch * sizeof *f->scratch, 0);
    *f = (ot_frame){.schedule = f->schedule};
}

/* A fused step's scratch. */
static ot_status find_work(ot_call *c, const ot_step *step)
{
    if (step->work == 0) return OT_OK;
    c->work = step->work_at >= 0 ? c->frame->schedule->base + step->work_at
                                 : ot_call_scratch(c, (size_t)step->work);
    return c->work ? OT_OK : OT_E_NOMEM;
}

ot_status ot_step_run(ot_schedule *p, ot_step *step)
{
    ot_session *s = p->s;
    ot_call c = {.g = p->g,
                 .node = step->node,
                 .n_in = step->n_in,
                 .n_out = step->n_out,
                 .in = step->in,
                 .out = step->out,
                 .frame = &p->frame,
                 .threads = p->threads,
                 .state = &step->state,
                 .plan = step->plan,
                 .diag = p->d ? p->d : s->d};
    p->frame.step = step;
    for (uint32_t k = 0; k < step->n_out; k++)
        if (step->out_slots[k]) step->out_slots[k]->handed = false;
    ot_status st = check_inputs(&c, step);
    if (st == OT_OK && step->is_fused) st = check_foreseen(&c, step);
    if (st == OT_OK && s->windows) st = bring_rows(p, step, c.diag);
    if (st == OT_OK) st = find_work(&c, step);
    if (st == OT_OK) st = step->run(&c);
    for (uint32_t k = 0; st == OT_OK && k < step->n_out; k++) {
        if (step->out_slots[k]) st = take_output(&c, step, k);
    }
    drop_scratch(&p->frame);
    if (st == OT_E_NOMEM) return ot_fail_nomem(c.diag);
    return st;
}

/* ---- schedules ---- */

/* Fill with junk what the plan says is dead after step k. */
static void poison_dead(const ot_schedule *p, uint32_t k)
{
    for (uint32_t j = 0; p->base && j < p->n_items; j++)
        if (p->items[j].upper == (int64_t)k + 1)
            memset(p->base + p->offsets[j], OT_POISON, (size_t)p->items[j].size);
}

void ot_schedule_clear(ot_schedule *p)
{
    for (ot_id v = 0; v < p->g->n_values; v++)
        if (!p->slots[v].is_const) ot_nd_release(&p->slots[v].nd);
    for (ot_id v = p->g->n_values; v < p->n_ids; v++)
        if (!p->at[v]->is_const) ot_nd_release(&p->at[v]->nd);
}

static void record(const ot_schedule *p, ot_node_time *times, uint32_t k, double start)
{
    double end = ot_now();
    times[k].seconds += end - start;
    if (p->s->trace)
        ot_trace_add(p->s->trace, p->worker, times[k].name, times[k].op, p->tile, start, end);
}

ot_status ot_schedule_run(ot_schedule *p, ot_node_time *times)
{
    for (uint32_t k = 0; k < p->n_steps; k++) {
        ot_step *step = &p->steps[k];
        double start = times ? ot_now() : 0;
        if (p->s->guards) ot_guards_open(p, k);
        if (p == p->s->top) ot_watch_at("run", k, p->n_steps);
        ot_status st = ot_watch_look(p->d ? p->d : p->s->d);
        if (st == OT_OK) st = ot_step_run(p, step);
        if (p->s->guards) ot_guards_check(p, k);
        if (st != OT_OK) {
            ot_schedule_clear(p);
            return st;
        }
        if (times) record(p, times, k, start);
        for (uint32_t j = 0; j < step->n_release; j++) ot_nd_release(&step->release[j]->nd);
        if (p->s->poison) poison_dead(p, k);
    }
    return OT_OK;
}
