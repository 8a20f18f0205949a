/* A model's results in layouts that the test asks for, against the engine's reference kernels on
 * the host. */
#ifndef TEST_ENGINE_LAID_RIG_H
#define TEST_ENGINE_LAID_RIG_H

#include "engine_check.h"
#include "engine_device_rig.h"

#include <ctype.h>

/* sum of squared differences by sum of squares; of half precision */
#define ERROR_MOST      1e-9
#define ERROR_MOST_HALF 1e-5

static inline int pick(uint64_t *state, int from, int to)
{
    return from + (int)(ot_next_random(state) % (uint64_t)(to - from + 1));
}

enum { LAID_INPUTS = 12, LAID_RESULTS = 24 };

/* Several models as one, each with names of its own: a device's compiler takes hardly longer for
 * all of them than for one. */
typedef struct laid_nets {
    char text[20000];
    size_t used;
    int n;
} laid_nets;

static inline void add_net(laid_nets *all, const char *text)
{
    const size_t most = sizeof all->text - 16;
    while (*text && all->used < most) {
        const bool name = *text == '%' && text[1] != '\0';
        all->text[all->used++] = *text++;
        if (!name) continue;
        while ((isalnum((unsigned char)*text) || *text == '_') && all->used < most)
            all->text[all->used++] = *text++;
        all->used += (size_t)snprintf(all->text + all->used, 12, "_%d", all->n);
    }
    if (*text) fail_msg("too many models in one");
    all->text[all->used] = '\0';
    all->n++;
}

/* Text of a model, what it is given, and what the reference kernels make of that. */
typedef struct laid_want {
    const char *text;
    bench b;
    ot_nd in[LAID_INPUTS], out[LAID_RESULTS];
} laid_want;

static inline void want_of(laid_want *w, const char *text, uint64_t seed)
{
    int64_t n;
    *w = (laid_want){.text = text};
    open_with(&w->b, text, (ot_session_options){.reference = true});
    if (w->b.status != OT_OK) fail_msg("%s\n%s", w->b.d.message, text);
    const uint32_t inputs = ot_session_inputs(w->b.s);
    assert_true(inputs <= LAID_INPUTS && w->b.m->graph->n_outputs <= LAID_RESULTS);
    for (uint32_t j = 0; j < inputs; j++) {
        const ot_value *v = ot_session_input(w->b.s, j);
        if (ot_nd_new(&w->in[j], v->dtype, (uint32_t)v->rank, v->dims, &w->b.d) != OT_OK ||
            !ot_nd_elems(&w->in[j], &n))
            fail_msg("memory");
        for (int64_t k = 0; k < n; k++)
            ((float *)w->in[j].data)[k] = (float)(ot_next_random(&seed) % 4001) / 1000 - 2;
    }
    run_ok(&w->b, w->in, w->out);
}

static inline void want_done(laid_want *w)
{
    for (int k = 0; k < LAID_INPUTS; k++) ot_nd_release(&w->in[k]);
    close_bench(&w->b);
}

/* The same on the device in this layout, twice; *f: what the session says of it. */
static inline void same_laid(const laid_want *w, ot_dg_layout layout, ot_device_figures *f)
{
    const ot_device_laid laid = {.dev = dev, .layout = layout, .poisons = true};
    const ot_backend in_layout = ot_device_backend(&laid);
    bench got;
    open_with(&got, w->text, (ot_session_options){.place = &in_layout});
    if (got.status != OT_OK) fail_msg("%s\n%s", got.d.message, w->text);
    for (int again = 0; again < 2; again++) {
        ot_nd out[LAID_RESULTS] = {{0}};
        run_ok(&got, w->in, out);
        for (uint32_t k = 0; k < w->b.m->graph->n_outputs; k++) {
            const double e = error_of(&w->out[k], &out[k]);
            const bool half = strstr(w->text, "float16") != NULL;
            if (!(e <= (half ? ERROR_MOST_HALF : ERROR_MOST)))
                fail_msg("result %u, packs %d, spreads %d, block %u: error %.2e\n%s", k,
                         (int)layout.packs, (int)layout.spreads, layout.block, e, w->text);
        }
    }
    ot_device_figures_get(got.s, f);
    assert_int_equal(f->device_bytes, f->arena_bytes + f->weight_bytes);
    close_bench(&got);
}

#endif
