/* For tests of reference kernels: one node, its inputs and what it should make, all in text.
 *
 *   RIGHT(13, "MatMul(%a, %b)", WANT("float32[1] = [11]"), "float32[2] = [1, 2]", "float32[2] = [3,
 *   4]");
 *   WRONG(13, "MatMul(%a, %b)", "columns meet", "float32[2] = [1, 2]", "float32[3] = [3, 4, 5]");
 *
 * Inputs are %a, %b, %c... The model says nothing about their shapes, so that it is the kernel
 * that meets them.
 */
#ifndef TEST_REF_CASE_H
#define TEST_REF_CASE_H

#include "engine_check.h"

#include <math.h>

#define CASE_INPUTS  9
#define CASE_OUTPUTS 4

typedef struct ref_case {
    ot_model *contents; /* of inputs (i0...) and wanted outputs (w0...) */
    bench run;
    uint32_t n_in, n_out;
    ot_nd in[CASE_INPUTS], want[CASE_OUTPUTS], out[CASE_OUTPUTS];
} ref_case;

/* The array that initializer `letter`k of the contents holds. */
static inline ot_nd case_array(const ot_model *m, char letter, uint32_t k)
{
    char name[16];
    snprintf(name, sizeof name, "%c%u", letter, k);
    const ot_tensor *t = m->graph->values[ot_value_find(m->graph, name)].init;
    ot_nd a = {.data = (void *)t->data};
    ot_nd_set_dense(&a, t->dtype, t->rank, t->dims);
    return a;
}

static inline void case_contents(ref_case *c, const char *const *wants, const char *const *inputs)
{
    char text[20000];
    ot_diag d = {0};
    size_t at = (size_t)snprintf(text, sizeof text, "model ir 8 opset 13\ngraph main {\n");
    for (c->n_in = 0; inputs[c->n_in]; c->n_in++)
        at += (size_t)snprintf(text + at, sizeof text - at, "init %%i%u : %s\n", c->n_in,
                               inputs[c->n_in]);
    for (c->n_out = 0; wants[c->n_out]; c->n_out++)
        at += (size_t)snprintf(text + at, sizeof text - at, "init %%w%u : %s\n", c->n_out,
                               wants[c->n_out]);
    snprintf(text + at, sizeof text - at, "}\n");
    assert_true(c->n_in <= CASE_INPUTS && c->n_out <= CASE_OUTPUTS);
    if (ot_text_parse(text, strlen(text), &d, &c->contents) != OT_OK)
        fail_msg("%s: %s", text, d.message);
    for (uint32_t k = 0; k < c->n_in; k++) c->in[k] = case_array(c->contents, 'i', k);
    for (uint32_t k = 0; k < c->n_out; k++) c->want[k] = case_array(c->contents, 'w', k);
}

/* Runs the node with n_out outputs. */
static inline ot_status case_run(ref_case *c, int opset, const char *node, uint32_t n_out)
{
    char text[4000];
    size_t at = (size_t)snprintf(text, sizeof text, "model ir 8 opset %d\ngraph main {\n", opset);
    for (uint32_t k = 0; k < c->n_in; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "input %%%c : %s\n", 'a' + (int)k,
                               ot_dtype_name(c->in[k].dtype));
    for (uint32_t k = 0; k < n_out; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%%y%u", k ? ", " : "", k);
    at += (size_t)snprintf(text + at, sizeof text - at, " = %s\n", node);
    for (uint32_t k = 0; k < n_out; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "output %%y%u\n", k);
    snprintf(text + at, sizeof text - at, "}\n");
    if (ot_text_parse(text, strlen(text), &c->run.d, &c->run.m) != OT_OK)
        fail_msg("%s: %s", text, c->run.d.message);
    ot_session_options o = {.reference = true, .poison = true};
    ot_status s = ot_session_new(c->run.m, &o, &c->run.d, &c->run.s);
    return s == OT_OK ? ot_session_run(c->run.s, c->in, c->out, &c->run.d) : s;
}

static inline void case_same(const char *node, uint32_t k, const ot_nd *got, const ot_nd *want)
{
    int64_t n;
    if (!ot_nd_same_shape(got, want->dtype, want->rank, want->dims)) {
        char a[200], b[200];
        fail_msg("%s: output %u is %s %s, not %s %s", node, k, ot_dtype_name(got->dtype),
                 ot_dims_text(got->rank, got->dims, a, sizeof a), ot_dtype_name(want->dtype),
                 ot_dims_text(want->rank, want->dims, b, sizeof b));
    }
    assert_true(ot_nd_elems(got, &n));
    for (int64_t i = 0; i < n; i++) {
        double g = ot_nd_double(got, i), w = ot_nd_double(want, i);
        bool exact = ot_nd_int(got, i) == ot_nd_int(want, i); /* of integers; floats give 0 */
        if (!exact || (isnan(w) ? !isnan(g) : !(g == w || fabs(g - w) <= 1e-5 * fabs(w))))
            fail_msg("%s: output %u, element %d is %.9g, not %.9g", node, k, (int)i, g, w);
    }
}

static inline void case_close(ref_case *c)
{
    close_bench(&c->run);
    ot_model_free(c->contents);
}

static inline void check_right(int opset, const char *node, const char *const *wants,
                               const char *const *inputs)
{
    ref_case c = {0};
    case_contents(&c, wants, inputs);
    if (case_run(&c, opset, node, c.n_out) != OT_OK) fail_msg("%s: %s", node, c.run.d.message);
    for (uint32_t k = 0; k < c.n_out; k++) case_same(node, k, &c.out[k], &c.want[k]);
    case_close(&c);
}

static inline void check_wrong(int opset, const char *node, const char *why,
                               const char *const *inputs)
{
    ref_case c = {0};
    case_contents(&c, (const char *const[]){NULL}, inputs);
    ot_status s = case_run(&c, opset, node, 1);
    if (s != OT_E_INPUT || !strstr(c.run.d.message, why))
        fail_msg("%s: status %d, '%s' does not say '%s'", node, (int)s, c.run.d.message, why);
    case_close(&c);
}

#define WANT(...) ((const char *const[]){__VA_ARGS__, NULL})
#define RIGHT(opset, node, wants, ...) \
    check_right(opset, node, wants, (const char *const[]){__VA_ARGS__, NULL})
#define WRONG(opset, node, why, ...) \
    check_wrong(opset, node, why, (const char *const[]){__VA_ARGS__, NULL})

#endif
