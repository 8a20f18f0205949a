/* Reference kernels against results worked out by hand from the operators' definitions.
 *
 * A case is a graph of initializers, one or more nodes, and pairs of outputs: what a node made
 * and what it should have made. */
#ifndef TEST_REF_MATH_CHECK_H
#define TEST_REF_MATH_CHECK_H

#include "engine_check.h"

#include <math.h>

/* ---- running a case ---- */

static inline ot_status run_text(bench *b, int opset, const char *graph, ot_nd *out,
                                 uint32_t *n_out)
{
    char text[40000];
    *b = (bench){0};
    snprintf(text, sizeof text, "model ir 8 opset %d\ngraph main {\n%s\n}\n", opset, graph);
    if (ot_text_parse(text, strlen(text), &b->d, &b->m) != OT_OK)
        fail_msg("%s: %s", graph, b->d.message);
    ot_session_options o = {.reference = true, .poison = true};
    ot_status s = ot_session_new(b->m, &o, &b->d, &b->s);
    if (s != OT_OK) return s;
    *n_out = ot_session_outputs(b->s);
    assert_in_range(*n_out, 1, 8);
    return ot_session_run(b->s, NULL, out, &b->d);
}

static inline void check_same(const char *graph, const ot_nd *got, const ot_nd *want)
{
    int64_t n;
    if (got->dtype != want->dtype)
        fail_msg("%s: %s, not %s", graph, ot_dtype_name(got->dtype), ot_dtype_name(want->dtype));
    if (!ot_nd_same_shape(got, want->dtype, want->rank, want->dims))
        fail_msg("%s: wrong shape", graph);
    assert_true(ot_nd_elems(got, &n));
    bool fractions = want->dtype == OT_F32 || want->dtype == OT_F64 || want->dtype == OT_F16 ||
                     want->dtype == OT_BF16;
    for (int64_t k = 0; k < n && fractions; k++) {
        double g = ot_nd_double(got, k), w = ot_nd_double(want, k),
               slack = want->dtype == OT_F64 ? 1e-6 : 1e-5;
        if (isnan(w) ? !isnan(g) : !(g == w || fabs(g - w) <= slack * fabs(w)))
            fail_msg("%s: element %d is %.9g, not %.9g", graph, (int)k, g, w);
        if (w == 0 && signbit(w) && !signbit(g))
            fail_msg("%s: element %d is 0, not -0", graph, (int)k);
    }
    if (!fractions && n &&
        memcmp(got->data, want->data, (size_t)n * ot_dtype_bytes(want->dtype)) != 0) {
        for (int64_t k = 0; k < n; k++)
            if (ot_nd_int(got, k) != ot_nd_int(want, k))
                fail_msg("%s: element %d is %lld, not %lld", graph, (int)k,
                         (long long)ot_nd_int(got, k), (long long)ot_nd_int(want, k));
        fail_msg("%s: bytes differ", graph);
    }
}

/* Outputs 2k and 2k + 1 are the same. */
static inline void right(int opset, const char *graph)
{
    bench b;
    ot_nd out[8] = {0};
    uint32_t n = 0;
    if (run_text(&b, opset, graph, out, &n) != OT_OK) fail_msg("%s: %s", graph, b.d.message);
    assert_int_equal(n % 2, 0);
    for (uint32_t k = 0; k < n; k += 2) check_same(graph, &out[k], &out[k + 1]);
    close_bench(&b);
}

/* One line that says `why`. */
static inline void refused(int opset, const char *graph, const char *why)
{
    bench b;
    ot_nd out[8] = {0};
    uint32_t n = 0;
    ot_status s = run_text(&b, opset, graph, out, &n);
    if (s != OT_E_INPUT) fail_msg("%s: status %d", graph, (int)s);
    if (!strstr(b.d.message, why)) fail_msg("%s: '%s' does not say '%s'", graph, b.d.message, why);
    close_bench(&b);
}

/* y = node, of inits a, b, c; it is `want` (type and contents). NULL: no such operand. */
static const char *graph_of(char *text, size_t size, const char *a, const char *b, const char *c,
                            const char *node, const char *want)
{
    const char *operands[] = {a, b, c};
    size_t at = 0;
    for (int k = 0; k < 3; k++)
        if (operands[k])
            at += (size_t)snprintf(text + at, size - at, "init %%%c : %s\n", 'a' + k, operands[k]);
    at += (size_t)snprintf(text + at, size - at, "%%y = %s\noutput %%y\n", node);
    if (want) snprintf(text + at, size - at, "init %%w : %s\noutput %%w", want);
    return text;
}

static inline void one(int opset, const char *a, const char *node, const char *want)
{
    char text[20000];
    right(opset, graph_of(text, sizeof text, a, NULL, NULL, node, want));
}
static inline void two(int opset, const char *a, const char *b, const char *node, const char *want)
{
    char text[20000];
    right(opset, graph_of(text, sizeof text, a, b, NULL, node, want));
}
static inline void three(int opset, const char *a, const char *b, const char *c, const char *node,
                         const char *want)
{
    char text[20000];
    right(opset, graph_of(text, sizeof text, a, b, c, node, want));
}

/* The same refused by the kernel itself: what it is given are inputs of unknown shape, so that
 * nothing is found before it runs. */
static inline void no(int opset, const char *a, const char *b, const char *node, const char *why)
{
    char text[2000];
    const char *operands[] = {a, b};
    ot_nd in[2] = {0}, out[8] = {0};
    ot_diag d = {0};
    ot_model *contents;
    snprintf(text, sizeof text,
             "model ir 8 opset 13\ngraph main {\ninit %%a : %s\ninit %%b : %s\n}\n", a,
             b ? b : "int64[0] = []");
    if (ot_text_parse(text, strlen(text), &d, &contents) != OT_OK)
        fail_msg("%s: %s", text, d.message);
    size_t at = (size_t)snprintf(text, sizeof text, "model ir 8 opset %d\ngraph main {\n", opset);
    for (int k = 0; k < 2 && operands[k]; k++) {
        const ot_tensor *t =
            contents->graph->values[ot_value_find(contents->graph, k ? "b" : "a")].init;
        ot_nd_set_dense(&in[k], t->dtype, t->rank, t->dims);
        in[k].data = (void *)t->data;
        at += (size_t)snprintf(text + at, sizeof text - at, "input %%%c : %s\n", 'a' + k,
                               ot_dtype_name(t->dtype));
    }
    snprintf(text + at, sizeof text - at, "%%y = %s\noutput %%y\n}\n", node);
    bench run = {0};
    if (ot_text_parse(text, strlen(text), &run.d, &run.m) != OT_OK)
        fail_msg("%s: %s", text, run.d.message);
    ot_session_options o = {.reference = true, .poison = true};
    ot_status s = ot_session_new(run.m, &o, &run.d, &run.s);
    if (s == OT_OK) s = ot_session_run(run.s, in, out, &run.d);
    if (s != OT_E_INPUT) fail_msg("%s: status %d", text, (int)s);
    if (!strstr(run.d.message, why))
        fail_msg("%s: '%s' does not say '%s'", text, run.d.message, why);
    close_bench(&run);
    ot_model_free(contents);
}

#endif
