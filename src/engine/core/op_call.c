/* What a implementation asks the engine for while it runs: memory, views, scratch, failures,
 * subgraphs.
 *
 *   ot_call_output(k)   ARENA   dims as planned: its place in the arena; else from the heap, and
 *                               counted
 *                       VIEW    planned as a view, but it is computed: from the heap, and
 *                               counted
 *                       CALLER  a graph output for which the caller gave memory: there; other dims
 *                               are an error
 *                       HEAP    a block of its own
 *   ot_call_view(k, i)  the bytes of input i, when they live at least as long as output k; else a
 *                       copy
 */
#include "session.h"

#include <stdarg.h>

char *ot_node_label(const ot_node *n, char *buf, size_t size)
{
    if (n->name[0])
        snprintf(buf, size, "node '%.160s' (%.160s)", n->name, n->op_type);
    else
        snprintf(buf, size, "node #%u (%.160s)", n->source == OT_NONE ? 0 : n->source, n->op_type);
    return buf;
}

ot_status ot_call_fail(ot_call *c, const char *fmt, ...)
{
    char label[OT_LABEL_MAX], what[OT_DIAG_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return ot_fail(c->diag, OT_E_INPUT, "%s: %s", ot_node_label(c->node, label, sizeof label),
                   what);
}

ot_status ot_call_need(ot_call *c, uint32_t min_in)
{
    if (c->n_in < min_in) return ot_call_fail(c, "it has %u inputs and needs %u", c->n_in, min_in);
    for (uint32_t k = 0; k < min_in; k++)
        if (!c->in[k]) return ot_call_fail(c, "input %u is omitted, but needed", k);
    return OT_OK;
}

/* ---- outputs ---- */

static ot_status check_dims(ot_call *c, uint32_t k, ot_dtype t, uint32_t rank, const int64_t *dims)
{
    int64_t bytes;
    char text[400];
    if (rank > OT_RANK_MAX)
        return ot_call_fail(c, "output %u has %u dimensions (at most %d are supported)", k, rank,
                            OT_RANK_MAX);
    for (uint32_t a = 0; a < rank; a++)
        if (dims[a] < 0)
            return ot_call_fail(c, "output %u: dimension %u is negative (%lld)", k, a,
                                (long long)dims[a]);
    if (ot_dtype_bytes(t) == 0)
        return ot_call_fail(c, "output %u: elements of type %s are not supported", k,
                            ot_dtype_name(t));
    if (!ot_nd_bytes(t, rank, dims, &bytes) || bytes > INT64_MAX / 4)
        return ot_call_fail(c, "output %u of shape %s is larger than any memory", k,
                            ot_dims_text(rank, dims, text, sizeof text));
    return OT_OK;
}

static ot_status check_caller(ot_call *c, uint32_t k, const ot_slot *slot, ot_dtype t,
                              uint32_t rank, const int64_t *dims)
{
    char made[400], given[400];
    if (ot_nd_same_shape(&slot->want, t, rank, dims)) return OT_OK;
    return ot_call_fail(c, "output %u is %s %s, but the memory given for it is for %s %s", k,
                        ot_dtype_name(t), ot_dims_text(rank, dims, made, sizeof made),
                        ot_dtype_name(slot->want.dtype),
                        ot_dims_text(slot->want.rank, slot->want.dims, given, sizeof given));
}

ot_status ot_call_output(ot_call *c, uint32_t k, ot_dtype t, uint32_t rank, const int64_t *dims)
{
    ot_step *step = c->frame->step;
    ot_session *s = c->frame->schedule->s;
    ot_slot *slot = k < c->n_out ? step->out_slots[k] : NULL;
    if (!slot) return OT_OK;
    OT_TRY(check_dims(c, k, t, rank, dims));
    /* a fast implementation that left it to the reference */
    if (slot->handed && ot_nd_same_shape(&slot->nd, t, rank, dims)) return OT_OK;
    bool planned = slot->place == OT_PLACE_ARENA || slot->place == OT_PLACE_VIEW;
    ot_nd_release(&slot->nd);
    ot_nd_set_dense(&slot->nd, t, rank, dims);
    if (slot->place == OT_PLACE_ARENA && ot_nd_same_shape(&slot->want, t, rank, dims)) {
        slot->nd.data = c->frame->schedule->base + slot->offset;
    } else if (slot->place == OT_PLACE_CALLER) {
        OT_TRY(check_caller(c, k, slot, t, rank, dims));
        slot->nd.data = slot->want.data;
    } else {
        /* tiles run at once */
        if (planned) __atomic_fetch_add(&s->figures.n_mispredicted, 1, __ATOMIC_RELAXED);
        ot_status st = ot_nd_allocate(&slot->nd, &s->heap, c->diag);
        if (st != OT_OK) {
            slot->nd = (ot_nd){0};
            return st;
        }
    }
    int64_t bytes;
    if (s->poison && ot_nd_bytes(t, rank, dims, &bytes) && bytes)
        memset(slot->nd.data, OT_POISON, (size_t)bytes);
    slot->handed = true;
    return OT_OK;
}

ot_status ot_call_place(ot_call *c, uint32_t k)
{
    ot_schedule *p = c->frame->schedule;
    ot_slot *slot = c->frame->step->out_slots[k];
    int64_t bytes;
    if (!slot) return OT_OK;
    ot_nd_release(&slot->nd);
    slot->nd = slot->fore;
    slot->handed = true;
    if (slot->place == OT_PLACE_ARENA) {
        slot->nd.data = p->base + slot->offset;
    } else if (slot->place == OT_PLACE_VIEW && slot->under) {
        slot->nd.data = slot->under->nd.data;
        return OT_OK; /* it holds an input */
    } else if (slot->place == OT_PLACE_CALLER) {
        OT_TRY(check_caller(c, k, slot, slot->fore.dtype, slot->fore.rank, slot->fore.dims));
        slot->nd.data = slot->want.data;
    } else {
        if (!ot_nd_span(&slot->fore, &bytes))
            OT_BUG("lowering foresaw an array of impossible size");
        slot->nd.block = ot_block_new(&p->s->heap, (size_t)bytes);
        if (!slot->nd.block) {
            slot->nd = (ot_nd){0};
            return ot_fail_nomem(c->diag);
        }
        slot->nd.data = ot_block_data(slot->nd.block);
    }
    if (p->s->poison && ot_nd_span(&slot->fore, &bytes) && bytes)
        memset(slot->nd.data, OT_POISON, (size_t)bytes);
    return OT_OK;
}

static bool in_arena(const ot_session *s, const void *data)
{
    uintptr_t at = (uintptr_t)data, base = s->arena ? (uintptr_t)ot_block_data(s->arena) : 0;
    return s->arena && at >= base && at - base < (size_t)s->arena_bytes;
}

/* Do the bytes of `in` live as long as the slot? */
static bool may_alias(const ot_schedule *p, const ot_slot *slot, const ot_nd *in)
{
    if (slot->place == OT_PLACE_CALLER) return false;
    if (in->block) return true;
    if (slot->is_result) return false; /* memory of the caller, of the model or of the arena */
    return slot->place == OT_PLACE_VIEW || !in_arena(p->s, in->data) || p != p->s->top;
}

ot_status ot_call_view(ot_call *c, uint32_t k, uint32_t i, uint32_t rank, const int64_t *dims)
{
    ot_slot *slot = k < c->n_out ? c->frame->step->out_slots[k] : NULL;
    const ot_nd *in = i < c->n_in ? c->in[i] : NULL;
    int64_t before, after;
    if (!slot) return OT_OK;
    if (!in || !in->data) return ot_call_fail(c, "input %u is no tensor", i);
    OT_TRY(check_dims(c, k, in->dtype, rank, dims));
    if (!ot_nd_elems(in, &before) || !ot_product(dims, rank, &after) || before != after) {
        char text[400];
        return ot_call_fail(c, "%lld elements have not the shape %s", (long long)before,
                            ot_dims_text(rank, dims, text, sizeof text));
    }
    if (may_alias(c->frame->schedule, slot, in)) {
        ot_nd_release(&slot->nd);
        slot->nd = (ot_nd){.data = in->data, .block = in->block};
        if (in->block) ot_block_ref(in->block);
        ot_nd_set_dense(&slot->nd, in->dtype, rank, dims);
        slot->handed = true;
        return OT_OK;
    }
    OT_TRY(ot_call_output(c, k, in->dtype, rank, dims));
    size_t bytes = (size_t)after * ot_dtype_bytes(in->dtype);
    if (bytes) memcpy(slot->nd.data, in->data, bytes);
    return OT_OK;
}

/* ---- scratch ---- */

void *ot_call_scratch(ot_call *c, size_t bytes)
{
    ot_frame *f = c->frame;
    if (f->n_scratch == f->cap_scratch) {
        size_t cap = f->cap_scratch ? f->cap_scratch * 2 : 8;
        ot_block **list = ot_hook_alloc(f->scratch, f->cap_scratch * sizeof(ot_block *),
                                        cap * sizeof(ot_block *));
        if (!list) return NULL;
        f->scratch = list;
        f->cap_scratch = cap;
    }
    ot_block *b = ot_block_new(&f->schedule->s->heap, bytes);
    if (!b) return NULL;
    f->scratch[f->n_scratch++] = b;
    return memset(ot_block_data(b), 0, bytes);
}

/* ---- subgraphs ---- */

static const ot_body *find_body(const ot_call *c, const char *attr)
{
    const ot_step *step = c->frame->step;
    for (uint32_t k = 0; k < step->n_bodies; k++)
        if (strcmp(step->bodies[k].attr, attr) == 0) return &step->bodies[k];
    return NULL;
}

uint32_t ot_call_body_outputs(const ot_call *c, const char *attr)
{
    const ot_body *b = find_body(c, attr);
    return b ? b->schedule->g->n_outputs : 0;
}

/* An output of a body that ran outlives the body: what others own is copied. */
static ot_status take_result(ot_schedule *body, ot_id v, ot_nd *out)
{
    const ot_nd *a = &body->at[v]->nd;
    if (!ot_nd_is_owned(a)) return ot_nd_copy(out, a, &body->s->heap, body->d);
    ot_nd_share(out, a);
    return OT_OK;
}

/* A scalar where the body states one dimension of 1, or the other way round: runtimes let
 * counters and conditions of loops be both. */
static void as_stated(ot_nd *a, const ot_value *v)
{
    static const int64_t one = 1;
    if (!a->data) return;
    if (v->rank == 1 && a->rank == 0) ot_nd_set_dense(a, a->dtype, 1, &one);
    if (v->rank == 0 && a->rank == 1 && a->dims[0] == 1) ot_nd_set_dense(a, a->dtype, 0, NULL);
}

static void bind(ot_schedule *body, const ot_nd *const *in, uint32_t n_in)
{
    const ot_graph *g = body->g;
    for (uint32_t k = 0; k < n_in; k++) {
        ot_slot *slot = &body->slots[g->inputs[k]];
        if (slot->is_const || !in[k]) continue;
        ot_nd_release(&slot->nd);
        ot_nd_share(&slot->nd, in[k]);
        as_stated(&slot->nd, &g->values[g->inputs[k]]);
    }
}

static ot_status run_body(ot_call *c, ot_schedule *body, const ot_nd *const *in, uint32_t n_in,
                          ot_nd *out, uint32_t n_out)
{
    const ot_graph *g = body->g;
    uint32_t done = 0;
    body->d = c->diag; /* a worker's, when a tile runs this */
    bind(body, in, n_in);
    ot_status st = ot_schedule_run(body, NULL);
    for (; st == OT_OK && done < n_out; done++)
        st = take_result(body, g->outputs[done], &out[done]);
    ot_schedule_clear(body);
    if (st == OT_OK) return OT_OK;
    for (uint32_t k = 0; k + 1 < done; k++) ot_nd_release(&out[k]);
    for (uint32_t k = 0; k < n_out; k++) out[k] = (ot_nd){0};
    return st;
}

ot_status ot_call_body(ot_call *c, const char *attr, ot_nd *in, uint32_t n_in, ot_nd *out,
                       uint32_t n_out)
{
    const ot_body *b = find_body(c, attr);
    for (uint32_t k = 0; k < n_out; k++) out[k] = (ot_nd){0};
    if (!b) return ot_call_fail(c, "it has no subgraph '%s'", attr);
    const ot_graph *g = b->schedule->g;
    if (g->n_inputs != n_in || g->n_outputs != n_out)
        return ot_call_fail(c, "its subgraph '%s' has %u inputs and %u outputs, not %u and %u",
                            attr, g->n_inputs, g->n_outputs, n_in, n_out);
    const ot_nd **list = ot_call_scratch(c, (n_in + 1u) * sizeof *list);
    if (!list) return ot_fail_nomem(c->diag);
    for (uint32_t k = 0; k < n_in; k++) list[k] = &in[k];
    return run_body(c, b->schedule, list, n_in, out, n_out);
}

ot_status ot_call_function(ot_call *c)
{
    ot_schedule *f = c->frame->step->bodies[0].schedule;
    ot_nd *out = ot_call_scratch(c, (f->g->n_outputs + 1u) * sizeof *out);
    if (!out) return ot_fail_nomem(c->diag);
    OT_TRY(run_body(c, f, c->in, c->n_in, out, f->g->n_outputs));
    for (uint32_t k = 0; k < f->g->n_outputs; k++) {
        if (k < c->n_out && c->out[k])
            *c->out[k] = out[k];
        else
            ot_nd_release(&out[k]);
    }
    return OT_OK;
}
