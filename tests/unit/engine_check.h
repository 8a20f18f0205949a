/* For tests of the engine: models from text, sessions, small arrays. */
#ifndef TEST_ENGINE_CHECK_H
#define TEST_ENGINE_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/core/session.h"

/* A model, its session, and how making them went. */
typedef struct bench {
    ot_diag d;
    ot_model *m;
    ot_session *s;
    ot_status status;
} bench;

static inline ot_model *text_model(const char *graph, ot_diag *d)
{
    char text[25000];
    ot_model *m = NULL;
    snprintf(text, sizeof text, "model ir 8 opset 17\ngraph main {\n%s\n}\n", graph);
    if (ot_text_parse(text, strlen(text), d, &m) != OT_OK) fail_msg("%s", d->message);
    return m;
}

/* The session of a graph in text form; poisoned, so that what is read too late or never written
 * shows. */
static inline void open_with(bench *b, const char *graph, ot_session_options o)
{
    *b = (bench){0};
    b->m = text_model(graph, &b->d);
    o.poison = true;
    b->status = ot_session_new(b->m, &o, &b->d, &b->s);
}

static inline void open_text(bench *b, const char *graph)
{
    open_with(b, graph, (ot_session_options){0});
    if (b->status != OT_OK) fail_msg("%s", b->d.message);
}

static inline void close_bench(bench *b)
{
    ot_session_free(b->s);
    ot_model_free(b->m);
}

/* A dense array over memory of the test. */
static inline ot_nd over(ot_dtype t, void *data, uint32_t rank, const int64_t *dims)
{
    ot_nd a = {.data = data};
    ot_nd_set_dense(&a, t, rank, dims);
    return a;
}
#define F32S(data, ...) \
    over(OT_F32, data, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static inline void run_ok(bench *b, const ot_nd *in, ot_nd *out)
{
    ot_status s = ot_session_run(b->s, in, out, &b->d);
    if (s != OT_OK) fail_msg("%s", b->d.message);
}

static inline void check_floats(const ot_nd *a, const float *want, size_t n)
{
    int64_t have;
    assert_int_equal(a->dtype, OT_F32);
    assert_true(ot_nd_elems(a, &have));
    assert_int_equal(have, n);
    for (size_t k = 0; k < n; k++) {
        float got = ((const float *)a->data)[k], most = want[k] < 0 ? -want[k] : want[k];
        if (!(got - want[k] <= 1e-5f * most && want[k] - got <= 1e-5f * most))
            fail_msg("element %zu: %g, not %g", k, (double)got, (double)want[k]);
    }
}
#define CHECK_FLOATS(a, ...)                      \
    check_floats(a, (const float[]){__VA_ARGS__}, \
                 sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

#endif
