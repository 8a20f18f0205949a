/* Outputs of two forms of a model compared, by the rule that holds wherever that is done: the same
 * within a tolerance, or no further apart than some times what the original is from itself when
 * nothing changes but rounding.
 *
 *   original, its inputs                    --> outputs   a
 *   the same, float inputs one step aside   --> a'        |a' - a|    twice, in random directions
 *   the same, reference implementations     --> a"        |a" - a|    the largest is its own noise
 *
 * A step is the distance to the next float of 32 or 64 bits, which is what any operator rounds by;
 * of a model that computes in half precision, what those round by: a smaller one would not arrive.
 * The noise is looked for where the tolerance alone would say that the outputs differ. The Python
 * package, which runs other runtimes, has the rule a second time (_compare.py), because it works
 * without the engine; tests/e2e/noise_rule.sh holds both to the same data.
 */
#include "measure.h"

#include "engine/core/session.h"

#include <math.h>

#define TIMES       10       /* what the noise is allowed */
#define MOVES       2        /* runs with inputs moved */
#define HALF_STEP   0x1p-11f /* what half precision rounds by */
#define REFERENCE_S 0.5      /* slower models have no run with reference implementations: minutes */

typedef struct work {
    const ot_comparison *r;
    ot_arena *a;
    ot_diag *d;
    ot_nd *kept;          /* [n] copies of the original's outputs */
    ot_difference *noise; /* [n] the largest so far */
    uint32_t n;
} work;

static void add_noise(work *w, const ot_nd *out)
{
    for (uint32_t k = 0; k < w->n; k++) {
        const ot_difference x = ot_compare(&w->kept[k], &out[k], w->r->half);
        ot_noise_add(&w->noise[k], &x);
    }
}

/* ---- inputs moved ---- */

/* Whether x is what moves: floats of 16, 32 or 64 bits. */
static bool moves(const ot_nd *x)
{
    return x->data && !x->list && (x->dtype == OT_F16 || x->dtype == OT_F32 || x->dtype == OT_F64);
}

/* The neighbour of a float of 16 bits. */
static uint16_t move16(uint16_t v, bool up)
{
    const uint16_t size = v & 0x7fff;
    if (size == 0 || size >= 0x7bff) return v; /* 0, the largest, and what is not finite */
    return (uint16_t)((v & 0x8000) | (up == !(v & 0x8000) ? size + 1 : size - 1));
}

/* Every number that is finite and not 0 becomes a neighbour. half: a number that is one half step
 * of 16 bits away, at least. */
static void move(ot_nd *x, bool half, uint64_t state)
{
    int64_t n = 0;
    if (!ot_nd_elems(x, &n)) return;
    for (int64_t k = 0; k < n; k++) {
        const bool up = ot_next_random(&state) & 1;
        if (x->dtype == OT_F16) {
            uint16_t *v = (uint16_t *)x->data + k;
            *v = move16(*v, up);
        } else if (x->dtype == OT_F32) {
            float *v = (float *)x->data + k, to = up ? INFINITY : -INFINITY;
            if (!isfinite(*v) || fpclassify(*v) == FP_ZERO) continue;
            *v = half ? *v * (up ? 1 + HALF_STEP : 1 - HALF_STEP) : nextafterf(*v, to);
        } else {
            double *v = (double *)x->data + k, to = up ? INFINITY : -INFINITY;
            if (!isfinite(*v) || fpclassify(*v) == FP_ZERO) continue;
            *v = half ? *v * (up ? 1 + HALF_STEP : 1 - HALF_STEP) : nextafter(*v, to);
        }
    }
}

/* *any: there was something to move; *took: seconds of the run. */
static ot_status run_moved(work *w, uint64_t seed, bool *any, double *took)
{
    ot_measured *x = w->r->original;
    const uint32_t n = ot_session_inputs(x->s);
    ot_nd *in = x->in, *moved = OT_NEW_N(w->a, ot_nd, n + 1u);
    ot_status s = moved ? OT_OK : ot_fail_nomem(w->d);
    *any = false;
    for (uint32_t k = 0; k < n && s == OT_OK; k++) {
        if (!moves(&in[k])) {
            ot_nd_share(&moved[k], &in[k]);
            continue;
        }
        s = ot_nd_copy(&moved[k], &in[k], NULL, w->d);
        if (s == OT_OK) move(&moved[k], w->r->half, seed + k);
        *any = true;
    }
    const double start = ot_now();
    if (s == OT_OK && *any) {
        x->in = moved;
        s = ot_measured_run(x, false, w->d);
        x->in = in;
        if (s == OT_OK) add_noise(w, x->out);
    }
    *took = ot_now() - start;
    for (uint32_t k = 0; moved && k < n; k++) ot_nd_release(&moved[k]);
    return s;
}

/* ---- other implementations ---- */

static ot_status run_reference(work *w)
{
    const ot_session_options o = {.threads = 1, .reference = true};
    ot_model *m = NULL;
    ot_measured x = {0};
    if (!w->r->load) return OT_OK;
    ot_status s = w->r->load(w->r->of, &m);
    if (s == OT_OK) s = ot_measured_open(&x, m, w->r->feed, &o, w->a, w->d);
    if (s == OT_OK) s = ot_measured_run(&x, false, w->d);
    if (s == OT_OK && x.n_outputs == w->n) add_noise(w, x.out);
    ot_measured_close(&x);
    ot_model_free(m);
    return s;
}

static ot_status find_noise(work *w)
{
    bool any = false;
    double took = 0;
    for (uint64_t k = 0; k < MOVES; k++) OT_TRY(run_moved(w, k << 32, &any, &took));
    return !any || took <= REFERENCE_S ? run_reference(w) : OT_OK;
}

/* ---- the rule ---- */

static double larger(double x, double y) { return isfinite(y) && y > x ? y : x; }

void ot_noise_add(ot_difference *noise, const ot_difference *x)
{
    noise->nmse = larger(noise->nmse, x->nmse);
    noise->max_abs = larger(noise->max_abs, x->max_abs);
    noise->n_unequal = ot_max(noise->n_unequal, x->n_unequal);
}

bool ot_noise_covers(const ot_difference *noise, const ot_difference *x)
{
    if (x->same || !x->alike) return false;
    if (x->is_float)
        return x->nmse <= fmax(OT_SAME_NMSE, TIMES * noise->nmse) &&
               x->max_abs <= TIMES * noise->max_abs;
    return x->n_unequal > 0 && x->n_unequal <= TIMES * noise->n_unequal;
}

static ot_status keep(work *w)
{
    const ot_measured *x = w->r->original;
    w->kept = OT_NEW_N(w->a, ot_nd, w->n + 1u);
    w->noise = OT_NEW_N(w->a, ot_difference, w->n + 1u);
    if (!w->kept || !w->noise) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < w->n; k++) OT_TRY(ot_nd_copy(&w->kept[k], &x->out[k], NULL, w->d));
    return OT_OK;
}

ot_status ot_compare_outputs(const ot_comparison *r, ot_arena *a, ot_diag *d, ot_difference *out)
{
    work w = {.r = r, .a = a, .d = d, .n = r->original->n_outputs};
    bool differ = false;
    for (uint32_t k = 0; k < w.n; k++) {
        out[k] = ot_compare(&r->original->out[k], &r->other->out[k], r->half);
        differ = differ || (!out[k].same && out[k].alike);
    }
    if (!differ) return OT_OK;
    ot_status s = keep(&w);
    if (s == OT_OK) s = find_noise(&w);
    for (uint32_t k = 0; k < w.n && s == OT_OK; k++) {
        if (!ot_noise_covers(&w.noise[k], &out[k])) continue;
        out[k].same = out[k].own_noise = true;
        out[k].why = NULL;
    }
    for (uint32_t k = 0; w.kept && k < w.n; k++) ot_nd_release(&w.kept[k]);
    return s;
}
