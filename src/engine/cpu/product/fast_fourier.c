/* STFT of a real float32 signal: all frames of a signal are one matrix (its rows overlap in
 * memory), the transform another.
 *
 *   signal   . . . . . . . . . .          row f begins at f * step
 *   frames   [. . . .]                            [ w0 cos   -w0 sin  ... ]  t
 *              [. . . .]           times          [ w1 cos   -w1 sin  ... ]    = [frames, bins * 2]
 *                [. . . .]                          bin 0      bin 0
 *
 * The second matrix is kept from call to call, packed, while frame and window stay what they
 * were. Complex signals, long frames and what the operator refuses go to the reference.
 */
#include "engine/core/half.h"
#include "engine/cpu/rows/rows.h"

#include "engine/ref/ref_product.h"
#include "engine/core/session.h"

#include <math.h>

#define FRAME_MAX 4096 /* the matrix grows with its square */

typedef struct transform {
    int64_t frame, bins;
    float *window; /* [frame] it was made for; NULL: all ones */
    float *panels;
} transform;

typedef struct stft {
    int64_t batch, length, step, frame, frames, bins;
    const float *x, *window; /* window: [frame] or NULL */
} stft;

/* ---- what is done here ---- */

static bool single_int(const ot_nd *a, int64_t *out)
{
    int64_t n;
    if (!a) return true;
    if ((a->dtype != OT_I64 && a->dtype != OT_I32) || !ot_nd_elems(a, &n) || n != 1) return false;
    *out = ot_nd_int(a, 0);
    return true;
}

static bool usual(const ot_call *c, stft *s)
{
    const ot_nd *x = ot_num_in(c, 0), *step = ot_num_in(c, 1), *window = ot_num_in(c, 2);
    if (!x || !step || x->dtype != OT_F32 || (x->rank != 2 && (x->rank != 3 || x->dims[2] != 1)))
        return false;
    s->x = x->data;
    s->batch = x->dims[0];
    s->length = s->frame = x->dims[1];
    if (window) {
        if (window->dtype != OT_F32 || window->rank != 1) return false;
        s->frame = window->dims[0];
        s->window = window->data;
    }
    if (!single_int(step, &s->step) || !single_int(ot_num_in(c, 3), &s->frame)) return false;
    if (window && window->dims[0] != s->frame) return false;
    if (s->step < 1 || s->frame < 1 || s->frame > s->length || s->frame > FRAME_MAX || s->batch < 1)
        return false;
    s->frames = (s->length - s->frame) / s->step + 1;
    s->bins = ot_attr_int(c->node, "onesided", 1) != 0 ? s->frame / 2 + 1 : s->frame;
    return true;
}

/* ---- the matrix ---- */

static void free_transform(void *data)
{
    transform *t = data;
    if (!t) return;
    free(t->window);
    free(t->panels);
    free(t);
}

static bool serves(const transform *t, const stft *s)
{
    if (!t || t->frame != s->frame || t->bins != s->bins || !t->window != !s->window) return false;
    return !s->window || memcmp(t->window, s->window, (size_t)s->frame * sizeof *s->window) == 0;
}

/* m [frame][bins * 2] */
static void fill(float *m, const stft *s, const double *cosines)
{
    int64_t n = s->frame;
    for (int64_t t = 0; t < n; t++) {
        double w = s->window ? (double)s->window[t] : 1;
        for (int64_t k = 0; k < s->bins; k++) {
            int64_t j = k * t % n; /* exact angles */
            m[(t * s->bins + k) * 2] = (float)(w * cosines[j]);
            m[(t * s->bins + k) * 2 + 1] = (float)(-w * cosines[n + j]);
        }
    }
}

/* Cosines, then sines, of the angles 2 pi j / n. */
static void fill_circle(double *circle, int64_t n)
{
    static const double quarter[4] = {1, 0, -1, 0}; /* exact, unlike the functions */
    for (int64_t j = 0; j < n; j++) {
        double angle = 2 * 3.14159265358979323846 * (double)j / (double)n;
        bool exact = 4 * j % n == 0;
        circle[j] = exact ? quarter[4 * j / n] : cos(angle);
        circle[n + j] = exact ? quarter[(4 * j / n + 3) % 4] : sin(angle);
    }
}

static transform *make(ot_call *c, const stft *s)
{
    int64_t columns = 2 * s->bins, floats = ot_panels_size(s->frame, columns);
    transform *t = calloc(1, sizeof *t);
    double *circle = ot_num_scratch(c, 2 * s->frame, sizeof *circle);
    float *m = ot_num_scratch(c, s->frame * columns, sizeof *m);
    bool ok = t && circle && m && floats > 0;
    if (ok) {
        *t = (transform){.frame = s->frame, .bins = s->bins};
        t->panels = aligned_alloc(64,
                                  (size_t)ot_ceil_div(floats * (int64_t)sizeof(float), 64) * 64);
        t->window = s->window ? malloc((size_t)s->frame * sizeof *t->window) : NULL;
        ok = t->panels && (t->window || !s->window);
    }
    if (!ok) {
        free_transform(t);
        return NULL;
    }
    if (s->window) memcpy(t->window, s->window, (size_t)s->frame * sizeof *t->window);
    fill_circle(circle, s->frame);
    fill(m, s, circle);
    ot_panels_pack(t->panels, m, &(ot_matrix_layout){s->frame, columns, columns, 1}, 0,
                   ot_ceil_div(columns, OT_PANEL));
    return t;
}

/* The one that the node keeps, or a new one in its place. */
static const transform *find(ot_call *c, const stft *s)
{
    if (serves(c->state->data, s)) return c->state->data;
    free_transform(c->state->data);
    *c->state = (ot_op_state){make(c, s), free_transform};
    return c->state->data;
}

/* ---- the implementation ---- */

enum { FRAMES_LEAST = 12 }; /* rows of a product that a thread takes at least */

typedef struct frame_job {
    const stft *s;
    const transform *t;
    float *y;
    int64_t b; /* signal */
} frame_job;

static void frames_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const frame_job *f = job;
    const stft *s = f->s;
    int64_t columns = 2 * s->bins;
    ot_panels_job j = {.m = end - first,
                       .n = columns,
                       .k = s->frame,
                       .lda = s->step,
                       .ldc = columns,
                       .alpha = 1,
                       .a = s->x + f->b * s->length + first * s->step,
                       .panels = f->t->panels,
                       .c = f->y + (f->b * s->frames + first) * columns};
    (void)worker;
    ot_panels_product(&j, 0, ot_ceil_div(columns, OT_PANEL));
}

ot_status ot_fast_stft(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_stft, 0);
    stft s = {0};
    if (!c->state || !usual(c, &s)) return ot_ref_stft(c);
    int64_t dims[4] = {s.batch, s.frames, s.bins, 2}, columns = 2 * s.bins;
    OT_TRY(ot_call_output(c, 0, OT_F32, 4, dims));
    if (!ot_num_out(c, 0)) return OT_OK;
    const transform *t = find(c, &s);
    if (!t) return OT_E_NOMEM;
    int threads = ot_rows_threads(c, (double)s.batch * (double)s.frames * (double)columns *
                                         (double)s.frame / 8);
    frame_job j = {.s = &s, .t = t, .y = c->out[0]->data};
    for (j.b = 0; j.b < s.batch; j.b++)
        ot_pool_share((uint32_t)threads, s.frames, FRAMES_LEAST, frames_share, &j);
    return OT_OK;
}
