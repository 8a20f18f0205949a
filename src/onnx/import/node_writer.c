/* Writing nodes in the place of others (node_writer.h). */
#include "node_writer.h"

#include "model_io.h"

static ot_status nomem(const ot_node_writer *w) { return ot_fail_nomem(w->g->model->diag); }

ot_node_writer ot_writer_in_place_of(ot_graph *g, ot_id id, ot_node *old)
{
    *old = g->nodes[id];
    ot_node_remove(g, id);
    return (ot_node_writer){g, old->name[0] ? old->name : g->values[old->out[0]].name, ""};
}

const char *ot_writer_name(const ot_node_writer *w, const char *role)
{
    const char *name = ot_format(w->g->model->arena, "%s/%s", w->base, role);
    return name ? ot_fresh_name(w->g->model, name) : NULL;
}

ot_status ot_write_ints(const ot_node_writer *w, const char *role, const int64_t *data, int64_t n,
                        ot_id *out)
{
    return ot_const_ints(w->g, ot_format(w->g->model->arena, "%s/%s", w->base, role), data, n, out);
}

ot_status ot_write_floats(const ot_node_writer *w, const char *role, const float *data, int64_t n,
                          ot_id *out)
{
    const char *name = ot_writer_name(w, role);
    *out = name ? ot_const_f32(w->g, name, data, n > 0, &n) : OT_NONE;
    return *out == OT_NONE ? nomem(w) : OT_OK;
}

ot_status ot_write_node(const ot_node_writer *w, const char *type, ot_id_list in,
                        ot_attr_list attrs, ot_id *out)
{
    const char *name = ot_writer_name(w, type);
    if (!name) return nomem(w);
    if (*out == OT_NONE) {
        const char *result = ot_writer_name(w, "out");
        *out = result ? ot_value_new(w->g, result, OT_DT_UNKNOWN, -1, NULL) : OT_NONE;
        if (*out == OT_NONE) return nomem(w);
    }
    return ot_node_new(w->g, &(ot_node_def){.op = type,
                                            .domain = w->domain,
                                            .name = name,
                                            .in = in,
                                            .out = {out, 1},
                                            .attrs = attrs}) == OT_NONE
               ? nomem(w)
               : OT_OK;
}

static bool is_left_out(const char *name, const char *const *without)
{
    for (; *without; without++)
        if (strncmp(name, *without, strlen(*without)) == 0) return true;
    return false;
}

ot_status ot_write_attrs_of(const ot_node_writer *w, const ot_node *n, const char *const *without,
                            ot_attr **attrs, uint32_t *n_attrs)
{
    *n_attrs = 0;
    *attrs = OT_NEW_N(w->g->model->arena, ot_attr, n->n_attrs + 2u);
    if (!*attrs) return nomem(w);
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (!is_left_out(n->attrs[k].name, without)) (*attrs)[(*n_attrs)++] = n->attrs[k];
    return OT_OK;
}

/* ---- merged activations ---- */

/* Names of the attributes that the parameters become; Clip's are operands from opset 11 on. */
static const struct {
    const char *op;
    int32_t since; /* opset of the form that is written */
    uint32_t n;
    const char *names[2];
} ACTIVATIONS[] = {
    {"Relu", 6, 0, {NULL, NULL}},
    {"Sigmoid", 6, 0, {NULL, NULL}},
    {"Tanh", 6, 0, {NULL, NULL}},
    {"Softplus", 1, 0, {NULL, NULL}},
    {"Softsign", 1, 0, {NULL, NULL}},
    {"HardSwish", 14, 0, {NULL, NULL}},
    {"LeakyRelu", 6, 1, {"alpha", NULL}},
    {"Elu", 6, 1, {"alpha", NULL}},
    {"ThresholdedRelu", 10, 1, {"alpha", NULL}},
    {"Clip", 6, 2, {"min", "max"}},
    {"HardSigmoid", 6, 2, {"alpha", "beta"}},
};
#define N_ACTIVATIONS (sizeof ACTIVATIONS / sizeof *ACTIVATIONS)
#define CLIP_OPERANDS 11 /* opset from which on Clip's limits are operands */

static size_t row_of(const ot_activation *a)
{
    size_t k = 0;
    while (k < N_ACTIVATIONS && strcmp(ACTIVATIONS[k].op, a->op) != 0) k++;
    return k;
}

bool ot_activation_is_known(const ot_activation *a, int32_t opset)
{
    const size_t k = row_of(a);
    if (!a->op[0]) return true;
    return k < N_ACTIVATIONS && opset >= ACTIVATIONS[k].since && a->n >= ACTIVATIONS[k].n;
}

ot_status ot_write_activation(const ot_node_writer *w, const ot_activation *a, ot_id x, ot_id *y)
{
    const size_t row = row_of(a);
    ot_id in[3] = {x};
    ot_attr attrs[2];
    uint32_t n_in = 1, n_attrs = 0;
    const bool limits = strcmp(a->op, "Clip") == 0 && w->g->model->opset >= CLIP_OPERANDS;
    for (uint32_t k = 0; k < ACTIVATIONS[row].n; k++) {
        const char *name = ACTIVATIONS[row].names[k];
        if (limits)
            OT_TRY(ot_write_floats(w, name, &a->params[k], 0, &in[n_in++]));
        else
            attrs[n_attrs++] = ot_mk_float(name, a->params[k]);
    }
    return ot_write_node(w, a->op, (ot_id_list){in, n_in}, (ot_attr_list){attrs, n_attrs}, y);
}

ot_activation ot_activation_of_conv(const ot_node *n)
{
    const ot_attr *given = ot_attr_find(n, "activation_params");
    ot_activation a = {.op = ot_attr_str(n, "activation", "")};
    for (; given && given->kind == OT_ATTR_FLOATS && a.n < given->n && a.n < 2; a.n++)
        a.params[a.n] = given->floats[a.n];
    return a;
}

ot_status ot_write_conv(const ot_node_writer *w, const ot_merged_conv *c, ot_id y)
{
    const bool adds = c->sum != OT_NONE, acts = c->act.op[0];
    ot_id at = !adds && !acts ? y : OT_NONE;
    OT_TRY(ot_write_node(w, "Conv", c->in, c->attrs, &at));
    if (adds) {
        ot_id total = acts ? OT_NONE : y;
        const ot_id both[2] = {at, c->sum};
        OT_TRY(ot_write_node(w, "Add", (ot_id_list){both, 2}, (ot_attr_list){0}, &total));
        at = total;
    }
    return acts ? ot_write_activation(w, &c->act, at, &y) : OT_OK;
}
