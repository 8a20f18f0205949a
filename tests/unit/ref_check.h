/* For tests of reference kernels: a graph in text form, and what its outputs should be.
 *
 * Outputs come in pairs, what a node made and an initializer with what it should have made.
 * `input init` instead of `init` makes an operand that is no constant: nothing is computed
 * before the run.
 */
#ifndef TEST_REF_CHECK_H
#define TEST_REF_CHECK_H

#include "engine_check.h"

#include <math.h>

#define REF_OUTPUTS_MAX 12

static inline ot_status ref_run(bench *b, int opset, const char *graph, ot_nd *out, uint32_t *n_out)
{
    char text[20000];
    *b = (bench){0};
    int n = snprintf(text, sizeof text, "model ir 8 opset %d\ngraph main {\n%s\n}\n", opset, graph);
    assert_in_range(n, 1, sizeof text - 1);
    if (ot_text_parse(text, strlen(text), &b->d, &b->m) != OT_OK)
        fail_msg("%s: %s", graph, b->d.message);
    ot_session_options o = {.reference = true, .poison = true};
    ot_status s = ot_session_new(b->m, &o, &b->d, &b->s);
    if (s != OT_OK) return s;
    *n_out = ot_session_outputs(b->s);
    assert_in_range(*n_out, 1, REF_OUTPUTS_MAX);
    return ot_session_run(b->s, NULL, out, &b->d);
}

static inline void ref_same(const char *graph, const ot_nd *got, const ot_nd *want)
{
    int64_t n;
    if (got->dtype != want->dtype)
        fail_msg("%s: %s, not %s", graph, ot_dtype_name(got->dtype), ot_dtype_name(want->dtype));
    if (!ot_nd_same_shape(got, want->dtype, want->rank, want->dims))
        fail_msg("%s: wrong shape", graph);
    assert_true(ot_nd_elems(got, &n));
    for (int64_t k = 0; k < n; k++) {
        double g = ot_nd_double(got, k), w = ot_nd_double(want, k);
        if (isnan(w) ? !isnan(g) : !(g == w || fabs(g - w) <= 1e-6 * fabs(w)))
            fail_msg("%s: element %d is %.9g, not %.9g", graph, (int)k, g, w);
        if (ot_nd_int(got, k) != ot_nd_int(want, k))
            fail_msg("%s: element %d of an integer type differs", graph, (int)k);
    }
}

/* Output 2k is output 2k + 1, in two runs. */
static inline void ref_right(int opset, const char *graph)
{
    bench b;
    ot_nd out[REF_OUTPUTS_MAX] = {0};
    uint32_t n = 0;
    if (ref_run(&b, opset, graph, out, &n) != OT_OK) fail_msg("%s: %s", graph, b.d.message);
    assert_int_equal(n % 2, 0);
    for (uint32_t k = 0; k < n; k += 2) ref_same(graph, &out[k], &out[k + 1]);
    memset(out, 0, sizeof out);
    run_ok(&b, NULL, out);
    for (uint32_t k = 0; k < n; k += 2) ref_same(graph, &out[k], &out[k + 1]);
    close_bench(&b);
}

/* One line that says `why`. */
static inline void ref_refused(int opset, const char *graph, const char *why)
{
    bench b;
    ot_nd out[REF_OUTPUTS_MAX] = {0};
    uint32_t n = 0;
    ot_status s = ref_run(&b, opset, graph, out, &n);
    if (s != OT_E_INPUT) fail_msg("%s: status %d", graph, (int)s);
    if (!strstr(b.d.message, why)) fail_msg("%s: '%s' does not say '%s'", graph, b.d.message, why);
    close_bench(&b);
}

/* The body with every initializer seen through a sequence, about whose elements no analysis
 * knows anything: the kernels' own checks are the first. One declaration a line. */
static inline void ref_hide(const char *body, char *to, size_t size)
{
    size_t at = (size_t)snprintf(to, size, "init %%ref_zero : int64[] = [0]\n");
    for (const char *line = body, *end; *line; line = *end ? end + 1 : end) {
        char name[40];
        int skip = 0;
        end = strchr(line, '\n') ? strchr(line, '\n') : line + strlen(line);
        if (sscanf(line, " input init %%%39[A-Za-z0-9_]%n", name, &skip) == 1 ||
            sscanf(line, " init %%%39[A-Za-z0-9_]%n", name, &skip) == 1)
            at += (size_t)snprintf(to + at, size - at,
                                   "%%%s_l : opaque = SequenceConstruct@11(%%%s_0)\n%%%s = "
                                   "SequenceAt@11(%%%s_l, %%ref_zero)\n"
                                   "init %%%s_0%.*s\n",
                                   name, name, name, name, name, (int)(end - line) - skip,
                                   line + skip);
        else
            at += (size_t)snprintf(to + at, size - at, "%.*s\n", (int)(end - line), line);
        assert_true(at < size);
    }
}

/* The body makes %y, which is `want` (type and contents), also when nothing is known before it
 * runs. */
static inline void ref_makes(int opset, const char *body, const char *want)
{
    char text[16000], hidden[8000];
    snprintf(text, sizeof text, "%s\ninit %%want : %s\noutput %%y\noutput %%want", body, want);
    ref_right(opset, text);
    ref_hide(body, hidden, sizeof hidden);
    snprintf(text, sizeof text, "%s\ninit %%want : %s\noutput %%y\noutput %%want", hidden, want);
    ref_right(opset, text);
}

/* The body, which should make %y, is refused by its kernel with a line that says `why`. */
static inline void ref_fails(int opset, const char *body, const char *why)
{
    char text[16000], hidden[8000];
    ref_hide(body, hidden, sizeof hidden);
    snprintf(text, sizeof text, "%s\noutput %%y", hidden);
    ref_refused(opset, text, why);
}

#endif
