/* Run models with guards round all memory, beside the slow and obvious implementations.
 *
 *   guarded MODEL...
 *
 * For each a line, before the next is begun:
 *
 *   MODEL ran 3e-07           largest difference over the largest number; nan: not comparable
 *   MODEL refused: why
 *   MODEL wrong: why          another type or shape, not one line, or the reference refuses alone
 *
 * Exit status 1 when one was wrong. A step that writes outside of its memory ends the program.
 */
#include "engine/core/session.h"
#include "onnx/import/model_io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUTS_MOST 8

typedef struct answer {
    ot_status status;
    ot_diag d;
    ot_nd out[INPUTS_MOST];
    uint32_t n;
} answer;

/* Small numbers of either sign in memory that the caller frees. */
static void *numbers(const ot_value *v, ot_nd *x)
{
    int64_t n = 1, dims[OT_RANK_MAX];
    for (int32_t k = 0; k < v->rank; k++) n *= dims[k] = v->dims[k] < 0 ? 2 : v->dims[k];
    const size_t bytes = ot_dtype_bits(v->dtype) / 8;
    char *data = calloc((size_t)n + 1, bytes ? bytes : 1);
    for (int64_t k = 0; data && k < n; k++) {
        const float f = (float)((k * 7919) % 401) / 100 - 2;
        if (v->dtype == OT_F32) memcpy(data + 4 * k, &f, 4);
    }
    *x = (ot_nd){.data = data};
    ot_nd_set_dense(x, v->dtype, (uint32_t)v->rank, dims);
    return data;
}

/* Two runs, as what a run leaves behind is the next one's. */
static ot_status run(ot_session *s, answer *a)
{
    ot_nd in[INPUTS_MOST] = {{0}}, out[INPUTS_MOST] = {{0}};
    void *data[INPUTS_MOST] = {NULL};
    ot_status st = OT_OK;
    a->n = ot_session_outputs(s);
    if (ot_session_inputs(s) > INPUTS_MOST || a->n > INPUTS_MOST)
        return ot_fail(&a->d, OT_E_INPUT, "more than %d inputs or outputs", INPUTS_MOST);
    for (uint32_t k = 0; k < ot_session_inputs(s); k++)
        if (ot_session_input(s, k)->rank < 0)
            return ot_fail(&a->d, OT_E_INPUT, "an input has no known rank");
    for (uint32_t k = 0; k < ot_session_inputs(s); k++)
        data[k] = numbers(ot_session_input(s, k), &in[k]);
    for (int turn = 0; turn < 2 && st == OT_OK; turn++) {
        memset(out, 0, sizeof out);
        st = ot_session_run(s, in, out, &a->d);
    }
    for (uint32_t k = 0; k < a->n && st == OT_OK; k++)
        st = ot_nd_copy(&a->out[k], &out[k], NULL, &a->d);
    for (uint32_t k = 0; k < INPUTS_MOST; k++) free(data[k]);
    return st;
}

static void ask(const char *path, bool reference, answer *a)
{
    const ot_session_options o = {
        .reference = reference, .threads = 2, .poison = true, .guards = true};
    ot_model *m = NULL;
    ot_session *s = NULL;
    *a = (answer){0};
    a->status = ot_import_file(path, &a->d, &m);
    if (a->status == OT_OK) a->status = ot_session_new(m, &o, &a->d, &s);
    if (a->status == OT_OK) a->status = run(s, a);
    ot_session_free(s);
    ot_model_free(m);
}

/* NAN where numbers are none, or too large to be compared. */
static double difference(const ot_nd *a, const ot_nd *b)
{
    double most = 1e-3, off = 0;
    int64_t n = 0;
    if (!ot_nd_elems(a, &n) || a->dtype == OT_STRING) return NAN;
    for (int64_t k = 0; k < n; k++) {
        const double x = ot_nd_double(a, k), y = ot_nd_double(b, k);
        if (!isfinite(x) || !isfinite(y) || fabs(x) > 1e6) return NAN;
        most = fmax(most, fabs(x));
        off = fmax(off, fabs(x - y));
    }
    return off / most;
}

/* What is wrong with the answer; NULL: nothing. */
static const char *fault(const answer *got, const answer *want, double *off)
{
    *off = 0;
    if (got->status != OT_OK && got->status != OT_E_INPUT && got->status != OT_E_NOMEM)
        return "another status";
    if (got->status != OT_OK)
        return !got->d.message[0] || strchr(got->d.message, '\n') ? "not one line" : NULL;
    if (want->status != OT_OK) return want->d.message;
    if (got->n != want->n) return "another number of outputs";
    for (uint32_t k = 0; k < got->n; k++) {
        const ot_nd *w = &want->out[k];
        if (!ot_nd_same_shape(&got->out[k], w->dtype, w->rank, w->dims))
            return "another type or shape";
        *off = fmax(*off, difference(w, &got->out[k]));
        if (isnan(difference(w, &got->out[k]))) *off = NAN;
    }
    return NULL;
}

static bool try_model(const char *path)
{
    static answer got, want;
    double off;
    ask(path, false, &got);
    ask(path, true, &want);
    const char *why = fault(&got, &want, &off);
    if (why)
        printf("%s wrong: %s\n", path, why);
    else if (got.status != OT_OK)
        printf("%s refused: %s\n", path, got.d.message);
    else
        printf("%s ran %g\n", path, off);
    fflush(stdout);
    for (uint32_t k = 0; k < INPUTS_MOST; k++) {
        ot_nd_release(&got.out[k]);
        ot_nd_release(&want.out[k]);
    }
    return !why;
}

int main(int argc, char **argv)
{
    bool right = true;
    for (int k = 1; k < argc; k++) right &= try_model(argv[k]);
    return right ? 0 : 1;
}
