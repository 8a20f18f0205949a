/* A model that is run again and again: its session, memory for its outputs, and how long each
 * run took.
 *
 *   outputs of known shape  --> places, allocated once; the engine writes there  (the caller's
 *                           memory: no part of the arena)
 *   other outputs           --> the session's memory, until the next run
 *
 * Shape inference may be wrong about an output (a file states another shape than its nodes
 * make): then the first run fails for want of a fitting place, and all runs go on without
 * places.
 */
#include "measure.h"

#include "engine/core/session.h"

/* ---- opening ---- */

static ot_status make_places(ot_measured *x, ot_diag *d)
{
    for (uint32_t k = 0; k < x->n_outputs; k++) {
        const ot_value *v = ot_session_output(x->s, k);
        if (x->places[k].data || !v->is_tensor || v->is_sequence || !ot_value_is_static(v) ||
            ot_dtype_bytes(v->dtype) == 0)
            continue;
        OT_TRY(ot_nd_new(&x->places[k], v->dtype, (uint32_t)v->rank, v->dims, d));
    }
    return OT_OK;
}

ot_status ot_measured_open(ot_measured *x, ot_model *m, const ot_feed *f,
                           const ot_session_options *base, ot_arena *a, ot_diag *d)
{
    const ot_graph *g = m->graph;
    ot_session_options o = *base;
    uint32_t at = 0;

    *x = (ot_measured){.m = m, .a = a};
    o.shapes = f->shapes;
    o.n_shapes = f->n_shapes;
    o.overrides = f->overrides;
    o.n_overrides = f->n_overrides;
    OT_TRY(ot_session_new(m, &o, d, &x->s));
    uint32_t n = ot_session_inputs(x->s);
    x->n_outputs = ot_session_outputs(x->s);
    x->in = OT_NEW_N(a, ot_nd, n + 1u);
    x->out = OT_NEW_N(a, ot_nd, x->n_outputs + 1u);
    x->places = OT_NEW_N(a, ot_nd, x->n_outputs + 1u);
    if (!x->in || !x->out || !x->places) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < g->n_inputs && at < n; k++)
        if (&g->values[g->inputs[k]] == ot_session_input(x->s, at)) x->in[at++] = f->arrays[k];
    return OT_OK;
}

void ot_measured_place(ot_measured *x, uint32_t k, const ot_nd *place)
{
    x->places[k] = *place;
    x->places[k].block = NULL; /* the caller's */
}

static void drop_places(ot_measured *x)
{
    for (uint32_t k = 0; x->places && k < x->n_outputs; k++) ot_nd_release(&x->places[k]);
}

void ot_measured_close(ot_measured *x)
{
    ot_session_free(x->s);
    drop_places(x);
    *x = (ot_measured){0};
}

/* ---- running ---- */

static ot_status run_once(ot_measured *x, double *took, ot_diag *d)
{
    for (uint32_t k = 0; k < x->n_outputs; k++) x->out[k] = x->places[k];
    double start = ot_now();
    ot_status s = ot_session_run(x->s, x->in, x->out, d);
    *took = ot_now() - start;
    return s;
}

static bool has_places(const ot_measured *x)
{
    for (uint32_t k = 0; k < x->n_outputs; k++)
        if (x->places[k].data) return true;
    return false;
}

ot_status ot_measured_run(ot_measured *x, bool keep, ot_diag *d)
{
    double took;
    ot_diag first = {0};
    if (!x->has_places) OT_TRY(make_places(x, d));
    x->has_places = true;
    ot_status s = run_once(x, &took, &first);
    if (s == OT_E_INPUT && x->n_runs == 0 && has_places(x)) {
        drop_places(x);
        first = (ot_diag){0};
        s = run_once(x, &took, &first);
    }
    if (s != OT_OK) return ot_fail(d, s, "%s", first.message);
    if (!keep) return OT_OK;
    size_t n = x->n_runs;
    if (!OT_PUSH(x->a, x->seconds, n, x->cap_runs, took)) return ot_fail_nomem(d);
    x->n_runs = (uint32_t)n;
    return OT_OK;
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The least time that at least `percent` of all are not above. */
static double quantile(const double *sorted, uint32_t n, uint32_t percent)
{
    uint64_t rank = ((uint64_t)n * percent + 99) / 100;
    return sorted[rank ? rank - 1 : 0];
}

ot_spread ot_spread_of(double *seconds, uint32_t n)
{
    qsort(seconds, n, sizeof *seconds, by_value);
    return (ot_spread){seconds[0], quantile(seconds, n, 50), quantile(seconds, n, 90),
                       quantile(seconds, n, 99)};
}

int64_t ot_resident_peak(void)
{
    char line[256];
    long long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtoll(line + 6, NULL, 10);
    if (f) fclose(f);
    return kib * 1024;
}
