/* Running a program: one kernel call a step.
 *
 *   operands ready? --> kernel --> outputs ours? --> scratch freed --> values nobody reads any more released
 *
 * Kernels may put arrays of their own into outputs; what no block owns (a further reference to an input that lies in the arena)
 * is copied, since it may outlive its owner.
 */
#include "session.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- operands ---- */

static const char *kind_of(const ot_nd *a)
{
    if (a->list) return "a sequence";
    return a->dtype == OT_DT_UNKNOWN ? "an empty optional" : ot_dtype_name(a->dtype);
}

/* Kernels see tensors in memory; only some know sequences and empty optionals. */
static ot_status check_inputs(ot_call *c, const ot_step *step)
{
    for (uint32_t k = 0; k < c->n_in; k++) {
        const ot_nd *a = c->in[k];
        if (!a || a->data || (step->takes_lists && (a->list || a->dtype == OT_DT_UNKNOWN))) continue;
        return ot_call_fail(c, "input %u is %s, which this operator of the engine does not take", k, kind_of(a));
    }
    return OT_OK;
}

/* ---- outputs ---- */

/* The session counts memory that a kernel got elsewhere. */
static void adopt(ot_session *s, ot_nd *a)
{
    for (size_t k = 0; a->list && k < a->list->n; k++) adopt(s, &a->list->items[k]);
    if (!a->block || a->block->heap) return;
    a->block->heap = &s->heap;
    s->heap.live += (int64_t)a->block->bytes;
    s->heap.peak = ot_max(s->heap.peak, s->heap.live);
}

static ot_status take_output(ot_call *c, const ot_step *step, uint32_t k)
{
    ot_slot *slot = step->out_slots[k];
    ot_session *s = c->frame->prog->s;
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

ot_status ot_step_run(ot_prog *p, ot_step *step)
{
    ot_session *s = p->s;
    const ot_node *n = step->node;
    ot_call c = {.g = p->g,
                 .node = n,
                 .n_in = n->n_in,
                 .n_out = n->n_out,
                 .in = step->in,
                 .out = step->out,
                 .frame = &p->frame,
                 .threads = s->threads,
                 .state = &step->state,
                 .diag = s->d};
    p->frame.step = step;
    for (uint32_t k = 0; k < n->n_out; k++)
        if (step->out_slots[k]) step->out_slots[k]->handed = false;
    ot_status st = check_inputs(&c, step);
    if (st == OT_OK) st = step->run(&c);
    for (uint32_t k = 0; st == OT_OK && k < n->n_out; k++)
        if (step->out_slots[k]) st = take_output(&c, step, k);
    drop_scratch(&p->frame);
    if (st == OT_E_NOMEM) return ot_fail_nomem(s->d);
    return st;
}

/* ---- programs ---- */

/* Fill with junk what the plan says is dead after step k of the top graph. */
static void poison_dead(const ot_session *s, uint32_t k)
{
    char *base = s->arena ? ot_block_data(s->arena) : NULL;
    for (uint32_t j = 0; j < s->n_items; j++)
        if (s->items[j].upper == (int64_t)k + 1) memset(base + s->offsets[j], OT_POISON, (size_t)s->items[j].size);
}

void ot_prog_clear(ot_prog *p)
{
    for (ot_id v = 0; v < p->g->n_values; v++)
        if (!p->slots[v].is_const) ot_nd_release(&p->slots[v].nd);
}

ot_status ot_prog_run(ot_prog *p, ot_node_time *times)
{
    for (uint32_t k = 0; k < p->n_steps; k++) {
        ot_step *step = &p->steps[k];
        double start = times ? now() : 0;
        ot_status st = ot_step_run(p, step);
        if (st != OT_OK) {
            ot_prog_clear(p);
            return st;
        }
        if (times) times[k].seconds = now() - start;
        for (uint32_t j = 0; j < step->n_release; j++) ot_nd_release(&step->release[j]->nd);
        if (p->s->poison && p == p->s->top) poison_dead(p->s, k);
    }
    return OT_OK;
}
