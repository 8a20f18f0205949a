/* See step.h. */
#include "step_internal.h"

#define OPSET_MIN 11 /* operators with operands for bounds and values */
#define ROWS_MAX  ((int64_t)1 << 32)

/* Rows of the reference in a step, of the named input's `rows`. */
static ot_status choose_rows(step_model *p, const ot_step_request *r, ot_step_facts *x)
{
    const ot_axis_flow *f = p->flow;
    const ot_id named = f->input[f->named];
    const int64_t num = f->flow->num[named], den = f->flow->den[named];
    x->align = f->flow->align * num / den;
    x->named_rows = r->rows > 0 ? r->rows : x->align;
    if (x->named_rows % x->align != 0 || x->named_rows > ROWS_MAX)
        return ot_fail(p->m->diag, OT_E_USAGE,
                       "--axis %.300s:%lld=%lld: rows of a step must be a multiple of %lld, which "
                       "the model can be cut in",
                       r->input, (long long)r->axis, (long long)x->named_rows, (long long)x->align);
    p->rows = x->named_rows * den / num;
    return OT_OK;
}

/* All extents of the named input that the model takes, modulo align. */
static ot_status note_remainders(const step_model *p, ot_step_facts *x)
{
    const ot_axis_flow *f = p->flow;
    const ot_id named = f->input[f->named];
    const int64_t num = f->flow->num[named], den = f->flow->den[named];
    x->remainders = OT_NEW_N(p->m->arena, int64_t, (size_t)f->flow->align);
    if (!x->remainders) return ot_fail_nomem(p->m->diag);
    for (int64_t k = 0; k < f->flow->align; k++)
        if (f->made[k]) x->remainders[x->n_remainders++] = k * num / den;
    if (x->n_remainders == x->align) x->n_remainders = 0; /* any */
    return OT_OK;
}

/* Which outputs say what rows of theirs there are, and whether anything depends on where rows
 * lie. */
static ot_status find_counting(step_model *p)
{
    const ot_flow *f = p->flow->flow;
    const int64_t before = f->extent - f->extent % f->align + f->align;
    p->told = OT_NEW_N(p->a, bool, p->g->n_outputs + 1u);
    if (!p->told) return ot_fail_nomem(p->m->diag);
    for (uint32_t o = 0; o < p->g->n_outputs; o++) {
        const ot_id y = p->g->outputs[o];
        step_value *v = &p->values[y];
        if (v->rows == 0) continue;
        p->told[o] = v->out_lag > 0;
        for (int64_t r = 0; r < f->align; r++) {
            const int64_t *made = p->flow->made[r];
            p->told[o] |= !made || made[y] * f->den[y] != (before + r) * f->num[y];
            if (made) v->most = ot_max(v->most, made[y] - (before + r) * f->num[y] / f->den[y]);
        }
        p->counts |= p->told[o];
    }
    for (ot_id id = 0; id < p->g->n_nodes; id++) {
        const step_node *x = &p->nodes[id];
        if (!x->used || !x->has_rows) continue;
        const ot_node *n = &p->g->nodes[id];
        for (uint32_t j = 5; x->runs && j < n->n_in && j < 7; j++)
            p->counts |= n->in[j] != OT_NONE; /* a state that it begins with */
        p->counts |= x->runs && p->values[n->out[0]].lag > 0;
        for (uint32_t j = 0; j < n->n_in; j++) p->counts |= x->read[j].low || x->read[j].high;
    }
    return OT_OK;
}

/* m at a size that holds the place for which nodes are written, and as many steps behind it. */
static ot_status infer_there(step_model *p)
{
    const ot_axis_flow *f = p->flow;
    const int64_t rows = f->flow->extent % f->flow->align + 2 * p->place * p->rows;
    for (uint32_t k = 0; k < f->n_inputs; k++)
        if (f->extent[k] > 0)
            f->dims[k][f->s->axis[f->input[k]]] = rows / f->flow->den[f->input[k]] *
                                                  f->flow->num[f->input[k]];
    p->m->unchanged = true;
    OT_TRY(ot_infer_shapes(p->g, f->bind, f->n_inputs));
    return ot_assure(p->g, OT_P_ORDER | OT_P_USES);
}

/* What the model says of itself. */
static ot_status put_metadata(ot_model *m, const ot_step_facts *x)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    ot_status s = f ? ot_step_json(x, f) : OT_E_NOMEM;
    if (f && fclose(f) != 0) s = OT_E_NOMEM;
    if (s == OT_OK) m->step = ot_strdup(m->arena, text);
    free(text);
    return m->step ? OT_OK : ot_fail_nomem(m->diag);
}

static ot_status write(step_model *p, const ot_step_request *r, ot_step_facts *x)
{
    OT_TRY(ot_axis_flow_find(p->m, r->shapes, r->n_shapes, r->input, r->axis, p->flow));
    OT_TRY(choose_rows(p, r, x));
    OT_TRY(note_remainders(p, x));
    OT_TRY(ot_assure(p->g, OT_P_ORDER | OT_P_USES));
    p->n_values = p->g->n_values;
    OT_TRY(step_plan_rows(p));
    OT_TRY(infer_there(p));
    OT_TRY(step_plan_nodes(p));
    OT_TRY(find_counting(p));
    OT_TRY(step_write_model(p, x));
    p->m->static_inputs = p->m->resized = true;
    OT_TRY(put_metadata(p->m, x));
    return ot_verify(p->g);
}

ot_status ot_step_write(ot_model *m, const ot_step_request *r, ot_step_facts **out)
{
    ot_axis_flow flow = {0};
    step_model p = {.m = m, .g = m->graph, .flow = &flow, .a = ot_arena_new()};
    *out = OT_NEW(m->arena, ot_step_facts);
    ot_status s = OT_OK;
    if (!p.a || !*out)
        s = ot_fail_nomem(m->diag);
    else if (m->opset < OPSET_MIN)
        s = ot_fail(m->diag, OT_E_INPUT, "steps need opset %d or newer: the model has %d",
                    OPSET_MIN, (int)m->opset);
    if (s == OT_OK) (*out)->named = r->input;
    if (s == OT_OK) s = write(&p, r, *out);
    ot_axis_flow_free(&flow);
    ot_arena_free(p.a);
    return s;
}
