/* Which extents are fastest is a question for the device: what fits best in its memories is a good
 * first answer, but a compiler may vectorise a smaller tile better, and several groups may share a
 * unit. */
#include "kernel_tune.h"

#include <math.h>

#define MOST_TRIALS 40
#define MISSES      2    /* in one direction, one after the other */
#define FASTER      0.98 /* of the best so far: less is noise */

/* What is varied: a size, or the items of a work-group. */
typedef struct knob {
    uint32_t at; /* of the sizes; n_sizes: items */
    int64_t multiple, most;
} knob;

typedef struct work {
    const ot_kernel_tuner *by;
    ot_arena *a;
    ot_diag *d;
    ot_kernel_tuning *out;
} work;

static int64_t value_of(const work *w, const ot_kernel_trial *t, const knob *n)
{
    return n->at == w->out->n_sizes ? t->items : t->sizes[n->at].value;
}

static bool is_same(const ot_kernel_trial *a, const ot_kernel_trial *b, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (a->sizes[k].value != b->sizes[k].value) return false;
    return a->items == b->items;
}

/* The best trial with another value of one knob. *at: where it stands. */
static ot_status try_value(work *w, const knob *n, int64_t value, size_t *at)
{
    ot_kernel_tuning *x = w->out;
    ot_kernel_trial t = x->trials[x->best];
    t.sizes = ot_memdup(w->a, t.sizes, (x->n_sizes + 1u) * sizeof *t.sizes);
    if (!t.sizes) return ot_fail_nomem(w->d);
    if (n->at == x->n_sizes)
        t.items = (uint32_t)value;
    else
        t.sizes[n->at].value = value;
    for (*at = 0; *at < x->n_trials; ++*at)
        if (is_same(&x->trials[*at], &t, x->n_sizes)) return OT_OK;
    OT_TRY(w->by->run(w->by->of, &t));
    if (!OT_PUSH(w->a, x->trials, x->n_trials, x->cap_trials, t)) return ot_fail_nomem(w->d);
    return OT_OK;
}

/* Twice as much and again, or half, while that is faster. */
static ot_status climb(work *w, const knob *n, bool up)
{
    ot_kernel_tuning *x = w->out;
    int64_t v = value_of(w, &x->trials[x->best], n);
    for (int misses = 0; misses < MISSES;) {
        const int64_t next = up ? v * 2 : v / 2 / n->multiple * n->multiple;
        size_t at = 0;
        if (next < n->multiple || next > n->most || x->n_trials == MOST_TRIALS) return OT_OK;
        v = next;
        OT_TRY(try_value(w, n, v, &at));
        if (x->trials[at].seconds < FASTER * x->trials[x->best].seconds) {
            x->best = at;
            misses = 0;
        } else {
            misses++;
        }
    }
    return OT_OK;
}

/* Sizes to vary, as they are. */
static ot_status begin(work *w, const ot_kernel *k, double seconds, knob *knobs)
{
    ot_kernel_tuning *x = w->out;
    ot_kernel_trial first = {.items = w->by->items, .seconds = seconds};
    first.sizes = OT_NEW_N(w->a, ot_tk_binding, k->n_sizes + 1u);
    if (!first.sizes) return ot_fail_nomem(w->d);
    for (uint32_t i = 0; i < k->n_sizes; i++) {
        const ot_tk_size *s = &k->sizes[i];
        const bool fixed = s->is_fixed && s->multiple > 1;
        if (!s->is_auto && !fixed) continue;
        if (ot_tk_binding_of(w->by->given, w->by->n_given, s->name)) continue;
        const char *name = ot_strdup(w->a, s->name);
        if (!name) return ot_fail_nomem(w->d);
        knobs[x->n_sizes] = (knob){x->n_sizes, s->multiple, s->is_auto ? s->bound : INT32_MAX};
        first.sizes[x->n_sizes++] = (ot_tk_binding){name, s->value};
    }
    knobs[x->n_sizes] = (knob){x->n_sizes, 1, w->by->items_most};
    return OT_PUSH(w->a, x->trials, x->n_trials, x->cap_trials, first) ? OT_OK
                                                                       : ot_fail_nomem(w->d);
}

ot_status ot_kernel_tune(const ot_kernel *k, double first_seconds, const ot_kernel_tuner *by,
                         ot_arena *a, ot_diag *d, ot_kernel_tuning *out)
{
    work w = {.by = by, .a = a, .d = d, .out = out};
    *out = (ot_kernel_tuning){0};
    knob *knobs = OT_NEW_N(a, knob, k->n_sizes + 1u);
    if (!knobs) return ot_fail_nomem(d);
    OT_TRY(begin(&w, k, first_seconds, knobs));
    for (uint32_t i = 0; i < out->n_sizes + !by->keeps_items; i++) {
        OT_TRY(climb(&w, &knobs[i], false));
        OT_TRY(climb(&w, &knobs[i], true));
    }
    return OT_OK;
}
