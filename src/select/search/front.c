/* Pareto sets of score and peak, of bounded size. */
#include "front.h"

static bool dominates(const ot_plan_state *a, const ot_plan_state *b)
{
    return a->score <= b->score * (1 + 1e-9) + 1e-12 && a->peak <= b->peak;
}

uint32_t ot_front_place(ot_front *f, const ot_plan_state *x)
{
    /* all states of a front have missed equally few */
    if (f->n > 0 && x->missed > f->s[0].missed) return OT_NONE;
    if (f->n > 0 && x->missed < f->s[0].missed) f->n = 0;
    for (uint32_t k = 0; k < f->n; k++)
        if (dominates(&f->s[k], x)) return OT_NONE;
    uint32_t n = 0;
    for (uint32_t k = 0; k < f->n; k++)
        if (!dominates(x, &f->s[k])) f->s[n++] = f->s[k];
    f->n = n;
    if (n < OT_STATES_MAX) return n;
    /* Full: drop the state (not an extreme one) whose neighbour in peak is nearest. */
    uint32_t victim = OT_NONE;
    double best = 1e300;
    for (uint32_t k = 0; k < n; k++) {
        bool fastest = true, leanest = true;
        double near = 1e300;
        for (uint32_t j = 0; j < n; j++) {
            if (j == k) continue;
            fastest &= f->s[k].score <= f->s[j].score;
            leanest &= f->s[k].peak <= f->s[j].peak;
            double d = (double)llabs(f->s[j].peak - f->s[k].peak) /
                           ((double)(f->s[j].peak + f->s[k].peak) + 1) +
                       2 *
                           (f->s[j].score > f->s[k].score ? f->s[j].score - f->s[k].score
                                                          : f->s[k].score - f->s[j].score) /
                           (f->s[j].score + f->s[k].score + 1e-12);
            if (d < near) near = d;
        }
        if (!fastest && !leanest && near < best) best = near, victim = k;
    }
    return victim;
}

/* ---- the end ---- */

static bool allowed(const ot_front_wish *x, const ot_plan_state *s)
{
    return s->time <= x->time && s->peak <= x->peak;
}

/* Of the allowed states that take no longer than `limit`, the one with the least peak. */
static uint32_t leanest(const ot_front *f, const ot_front_wish *x, double limit)
{
    uint32_t best = OT_NONE;
    for (uint32_t k = 0; k < f->n; k++) {
        const ot_plan_state *s = &f->s[k], *b = best == OT_NONE ? NULL : &f->s[best];
        if (!allowed(x, s) || s->time > limit) continue;
        if (!b || s->peak < b->peak || (s->peak == b->peak && s->time < b->time)) best = k;
    }
    return best;
}

uint32_t ot_front_final(const ot_front *f, const ot_front_wish *x)
{
    uint32_t best = OT_NONE;
    int64_t least = INT64_MAX;
    for (uint32_t k = 0; k < f->n; k++)
        if (allowed(x, &f->s[k])) least = ot_min(least, f->s[k].peak);
    for (uint32_t k = 0; k < f->n; k++) {
        const ot_plan_state *s = &f->s[k], *b = best == OT_NONE ? NULL : &f->s[best];
        if (!allowed(x, s) || (x->lean && s->peak > least + least / 10)) continue;
        if (!b || s->score < b->score || (s->score == b->score && s->peak < b->peak)) best = k;
    }
    return best == OT_NONE || x->lean_limit <= 0 ? best
                                                 : leanest(f, x, x->lean_limit * f->s[best].time);
}

uint32_t ot_front_fastest(const ot_front *f, int64_t peak)
{
    uint32_t best = OT_NONE;
    for (uint32_t k = 0; k < f->n; k++) {
        if (f->s[k].peak > peak) continue;
        if (best == OT_NONE || f->s[k].time < f->s[best].time) best = k;
    }
    return best;
}
