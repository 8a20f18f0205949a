/* For tests of fast kernels: one node on arrays of the test, run by the kernel of a table;
 * random arrays; comparison with doubles.
 *
 * Sessions are made of reference kernels, and the kernel under test is put into the step: so it
 * is this kernel that runs, whatever the engine would choose.
 */
#ifndef TEST_FAST_CHECK_H
#define TEST_FAST_CHECK_H

#include "engine_check.h"

#include <math.h>
#include <stdlib.h>

#include "engine/cpu/rows/rows.h"

#define FAST_IN  9
#define FAST_OUT 4

static uint64_t fast_state = 1;

static inline uint32_t fast_random(uint32_t below)
{
    fast_state = fast_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((fast_state >> 33) % below);
}

static inline float fast_number(void) { return (float)fast_random(20001) / 5000.0f - 2.0f; }

static inline ot_nd fast_array(ot_dtype t, uint32_t rank, const int64_t *dims)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < rank; d++) n *= dims[d];
    ot_nd a = over(t, test_malloc((size_t)n * 8 + 8), rank, dims);
    for (int64_t i = 0; i < n; i++) {
        if (t == OT_F32)
            ((float *)a.data)[i] = fast_number();
        else if (t == OT_I32)
            ((int32_t *)a.data)[i] = (int32_t)fast_random(2001) - 1000;
        else
            ((int64_t *)a.data)[i] = (int64_t)fast_random(2001) - 1000;
    }
    return a;
}
#define FAST_ARRAY(t, ...) \
    fast_array(t, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static inline int64_t fast_count(const ot_nd *a)
{
    int64_t n = 0;
    assert_true(ot_nd_elems(a, &n));
    return n;
}

typedef struct fast_run {
    bench b;
    ot_nd in[FAST_IN], out[FAST_OUT];
    uint32_t n_in, n_out;
    char what[600];
} fast_run;

static inline ot_op_fn fast_op(const ot_node *n)
{
    ot_op_fn run = ot_op_fast(n);
    if (run) return run;
    fail_msg("%s is in no table", n->op_type);
    return NULL;
}

/* Inputs are %a, %b...; r->in and n_in, n_out are set. `run` NULL: the kernel of the table. */
static inline ot_status fast_try(fast_run *r, int opset, const char *node, uint32_t threads,
                                 ot_op_fn run)
{
    char text[4000], dims[200];
    size_t at = (size_t)snprintf(text, sizeof text, "model ir 8 opset %d\ngraph main {\n", opset),
           w;
    w = (size_t)snprintf(r->what, sizeof r->what, "%s, opset %d, %u threads", node, opset, threads);
    for (uint32_t k = 0; k < r->n_in; k++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "input %%%c : %s\n", 'a' + (int)k,
                               ot_dtype_name(r->in[k].dtype));
        w += (size_t)snprintf(r->what + w, sizeof r->what - w, ", %s",
                              ot_dims_text(r->in[k].rank, r->in[k].dims, dims, sizeof dims));
    }
    for (uint32_t k = 0; k < r->n_out; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%%y%u", k ? ", " : "", k);
    at += (size_t)snprintf(text + at, sizeof text - at, " = %s\n", node);
    for (uint32_t k = 0; k < r->n_out; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "output %%y%u\n", k);
    snprintf(text + at, sizeof text - at, "}\n");
    r->b = (bench){0};
    if (ot_text_parse(text, strlen(text), &r->b.d, &r->b.m) != OT_OK)
        fail_msg("%s: %s", text, r->b.d.message);
    ot_session_options o = {.reference = true, .poison = true, .threads = threads};
    if (ot_session_new(r->b.m, &o, &r->b.d, &r->b.s) != OT_OK)
        fail_msg("%s: %s", r->what, r->b.d.message);
    ot_step *step = &r->b.s->top->steps[0];
    step->run = run ? run : fast_op(step->node);
    memset(r->out, 0, sizeof r->out);
    return ot_session_run(r->b.s, r->in, r->out, &r->b.d);
}

static inline void fast_right(fast_run *r, int opset, const char *node, uint32_t threads)
{
    if (fast_try(r, opset, node, threads, NULL) != OT_OK)
        fail_msg("%s: %s", r->what, r->b.d.message);
}

/* Everything but the inputs' memory. */
static inline void fast_end(fast_run *r) { close_bench(&r->b); }

static inline void fast_close(fast_run *r)
{
    fast_end(r);
    for (uint32_t k = 0; k < r->n_in; k++) test_free(r->in[k].data);
}

static inline double fast_element(const ot_nd *a, int64_t i)
{
    if (a->dtype == OT_F64) return ((const double *)a->data)[i];
    return a->dtype == OT_F32 ? (double)((const float *)a->data)[i] : (double)ot_nd_int(a, i);
}

/* Output k has this shape and these numbers: within `rel` of themselves and `abs` besides. */
static inline void fast_same(const fast_run *r, uint32_t k, uint32_t rank, const int64_t *dims,
                             const double *want, double rel, double abs)
{
    const ot_nd *got = &r->out[k];
    char a[200], b[200];
    if (got->rank != rank || (rank && memcmp(got->dims, dims, rank * sizeof *dims) != 0))
        fail_msg("%s: output %u is %s, not %s", r->what, k,
                 ot_dims_text(got->rank, got->dims, a, sizeof a),
                 ot_dims_text(rank, dims, b, sizeof b));
    for (int64_t i = 0; i < fast_count(got); i++) {
        double g = fast_element(got, i), w = want[i];
        if (isnan(w) ? !isnan(g) : !(g == w || fabs(g - w) <= rel * fabs(w) + abs))
            fail_msg("%s: output %u, element %d is %.9g, not %.9g", r->what, k, (int)i, g, w);
    }
}

static inline double *fast_doubles(const ot_nd *a)
{
    int64_t n = fast_count(a);
    double *v = test_malloc((size_t)n * sizeof *v + 8);
    for (int64_t i = 0; i < n; i++) v[i] = fast_element(a, i);
    return v;
}

/* The kernel of the table and the reference make the same, within 1e-5 of themselves and `abs`
 * besides. */
static inline void fast_twins(fast_run *r, int opset, const char *node, uint32_t threads,
                              ot_op_fn reference, double abs)
{
    fast_run twin = *r;
    fast_right(r, opset, node, threads);
    if (fast_try(&twin, opset, node, threads, reference) != OT_OK)
        fail_msg("%s: %s", twin.what, twin.b.d.message);
    for (uint32_t k = 0; k < r->n_out; k++) {
        double *want = fast_doubles(&twin.out[k]);
        fast_same(r, k, twin.out[k].rank, twin.out[k].dims, want, 1e-5, abs);
        test_free(want);
    }
    fast_end(&twin);
}

/* Random shape whose axis `axis` is sometimes long, sometimes everything is small. */
static inline ot_nd lanes_array(uint32_t rank, uint32_t axis)
{
    int64_t dims[4];
    for (uint32_t d = 0; d < rank; d++) dims[d] = 1 + fast_random(6);
    if (fast_random(3) == 0)
        dims[axis] = 1 + fast_random(1300);
    else if (fast_random(3) == 0)
        dims[rank - 1] = 1 + fast_random(400);
    return fast_array(OT_F32, rank, dims);
}

#endif
