/* For tests of fast kernels: a node with random operands, run by the reference and by the fast
 * kernel of one session, by one thread and by three. */
#ifndef TEST_ENGINE_NODE_CASE_H
#define TEST_ENGINE_NODE_CASE_H

#include "engine_check.h"
#include "pool_check.h"

#include <math.h>
#include <time.h>

#define INPUTS_MAX 8

static uint64_t seed;
static int n_run, n_refused; /* cases */

static inline int64_t below(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

static inline int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }

static inline int start(void **state)
{
    const char *given = getenv("SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    return pool_start(state);
}

/* ---- one node ---- */

/* A graph of one node over inputs %x0, %x1, ... */
typedef struct node_case {
    ot_op op;
    const char *name; /* of an operator without one in ops.def; else NULL */
    int opset;
    double tolerance; /* relative, of floats; 0: the same bits */
    ot_nd in[INPUTS_MAX];
    uint32_t n_in, n_out;
    char attrs[400];
    bool omitted[INPUTS_MAX];
} node_case;

static inline ot_nd *add_input(node_case *t, ot_dtype type, uint32_t rank, const int64_t *dims)
{
    ot_nd *a = &t->in[t->n_in++];
    int64_t n;
    *a = (ot_nd){0};
    ot_nd_set_dense(a, type, rank, dims);
    assert_true(ot_nd_elems(a, &n));
    a->data = malloc((size_t)n * ot_dtype_bytes(type) + 1);
    assert_non_null(a->data);
    for (int64_t k = 0; k < n * (int64_t)ot_dtype_bytes(type); k++)
        ((uint8_t *)a->data)[k] = (uint8_t)below(type == OT_BOOL ? 2 : 256);
    for (int64_t k = 0; k < n && type == OT_F32; k++)
        ((float *)a->data)[k] = (float)between(-100000, 100000) / 1024;
    return a;
}

static inline void add_list(node_case *t, int64_t n, const int64_t *v)
{
    ot_nd *a = add_input(t, OT_I64, 1, &n);
    if (n > 0) memcpy(a->data, v, (size_t)n * sizeof *v);
}

static inline void omit_input(node_case *t) { t->omitted[t->n_in++] = true; }

static inline void case_text(const node_case *t, char *text, size_t size)
{
    int n = snprintf(text, size, "model ir 8 opset %d\ngraph main {\n", t->opset);
    for (uint32_t k = 0; k < t->n_in; k++) {
        char dims[200];
        if (t->omitted[k]) continue;
        const ot_nd *a = &t->in[k];
        n += snprintf(text + n, size - (size_t)n, "input %%x%u : %s%s\n", k,
                      ot_dtype_name(a->dtype), ot_dims_text(a->rank, a->dims, dims, sizeof dims));
    }
    for (uint32_t k = 0; k < t->n_out; k++)
        n += snprintf(text + n, size - (size_t)n, "%s%%y%u", k ? ", " : "", k);
    n += snprintf(text + n, size - (size_t)n, " = %s(", t->name ? t->name : ot_op_name(t->op));
    for (uint32_t k = 0; k < t->n_in; k++) {
        n += snprintf(text + n, size - (size_t)n, "%s", k ? ", " : "");
        n += t->omitted[k] ? snprintf(text + n, size - (size_t)n, "_")
                           : snprintf(text + n, size - (size_t)n, "%%x%u", k);
    }
    n += snprintf(text + n, size - (size_t)n, ") {%s}\n", t->attrs);
    for (uint32_t k = 0; k < t->n_out; k++)
        n += snprintf(text + n, size - (size_t)n, "output %%y%u\n", k);
    n += snprintf(text + n, size - (size_t)n, "}\n");
    assert_in_range(n, 1, size - 1);
}

static inline void same_arrays(const char *text, const ot_nd *got, const ot_nd *want,
                               double tolerance)
{
    int64_t n;
    if (!ot_nd_same_shape(got, want->dtype, want->rank, want->dims))
        fail_msg("%s: type or shape differ", text);
    assert_true(ot_nd_elems(want, &n));
    if (tolerance == 0) {
        if (memcmp(got->data, want->data, (size_t)n * ot_dtype_bytes(want->dtype)) != 0)
            fail_msg("%s: contents differ", text);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        double g = ot_nd_double(got, k), w = ot_nd_double(want, k);
        if (!(g == w || fabs(g - w) <= tolerance * (fabs(w) + 100))) /* sums of numbers up to 100 */
            fail_msg("%s: element %lld is %.9g, not %.9g", text, (long long)k, g, w);
    }
}

/* Both kernels make the same, or refuse with the same line. */
static inline void check_case(node_case *t, uint32_t threads)
{
    char text[4000];
    bench b = {0};
    ot_nd want[4] = {0}, out[4] = {0}, in[INPUTS_MAX];
    uint32_t n_in = 0;
    case_text(t, text, sizeof text);
    if (ot_text_parse(text, strlen(text), &b.d, &b.m) != OT_OK)
        fail_msg("%s: %s", text, b.d.message);
    ot_session_options o = {.reference = true, .poison = true, .threads = threads};
    if (ot_session_new(b.m, &o, &b.d, &b.s) != OT_OK) { /* refused before any kernel sees it */
        n_refused++;
        close_bench(&b);
        return;
    }
    n_run++;
    for (uint32_t k = 0; k < t->n_in; k++)
        if (!t->omitted[k]) in[n_in++] = t->in[k];
    ot_status expected = ot_session_run(b.s, in, out, &b.d);
    for (uint32_t k = 0; k < t->n_out && expected == OT_OK; k++)
        assert_int_equal(ot_nd_copy(&want[k], &out[k], NULL, NULL), OT_OK);
    char line[OT_DIAG_MAX];
    memcpy(line, b.d.message, sizeof line);
    b.d = (ot_diag){0};
    assert_int_equal(b.s->top->n_steps, 1);
    b.s->top->steps[0].run = ot_op_fast(b.s->top->steps[0].node);
    assert_non_null(b.s->top->steps[0].run);
    memset(out, 0, sizeof out);
    ot_status got = ot_session_run(b.s, in, out, &b.d);
    if (got != expected)
        fail_msg("%s: status %d, not %d: %s", text, (int)got, (int)expected, b.d.message);
    if (got != OT_OK) assert_string_equal(b.d.message, line);
    for (uint32_t k = 0; k < t->n_out && got == OT_OK; k++)
        same_arrays(text, &out[k], &want[k], t->tolerance);
    for (uint32_t k = 0; k < t->n_out; k++) ot_nd_release(&want[k]);
    close_bench(&b);
}

static inline void check_both(node_case *t)
{
    check_case(t, 1);
    check_case(t, 3);
    for (uint32_t k = 0; k < t->n_in; k++) free(t->in[k].data);
}

/* ---- random operands ---- */

static inline ot_dtype any_type(void)
{
    static const ot_dtype types[] = {OT_F32, OT_F32,  OT_U8,  OT_F16,
                                     OT_I64, OT_BOOL, OT_I32, OT_F64};
    return types[below(8)];
}

/* At times large enough for several threads. */
static inline uint32_t any_dims(uint32_t least, uint32_t most, int64_t *dims)
{
    uint32_t rank = (uint32_t)between(least, most);
    int64_t left = below(5) ? 3000 : 100000;
    for (uint32_t k = 0; k < rank; k++) {
        dims[k] = between(1, ot_max(1, ot_min(40, left)));
        left /= dims[k];
    }
    if (rank > 0 && !below(40)) dims[below(rank)] = 0;
    return rank;
}

static inline node_case new_case(ot_op op, int opset)
{
    return (node_case){.op = op, .opset = opset, .n_out = 1};
}

/* An array of indices into `size` elements; seldom one is out of range. */
static inline void add_index(node_case *t, uint32_t rank, const int64_t *dims, int64_t size)
{
    ot_nd *a = add_input(t, below(2) ? OT_I64 : OT_I32, rank, dims);
    int64_t n;
    assert_true(ot_nd_elems(a, &n));
    for (int64_t k = 0; k < n; k++) {
        int64_t v = below(3000) ? between(-size, size - (size > 0)) : size;
        if (a->dtype == OT_I64)
            ((int64_t *)a->data)[k] = v;
        else
            ((int32_t *)a->data)[k] = (int32_t)v;
    }
}

static inline int finish(void **state)
{
    (void)pool_end(state);
    return n_run > 5 * n_refused ? 0 : -1;
}

#endif
