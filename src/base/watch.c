/* Watches: one a thread at a time, so that no function between hands one on. */
#include "watch.h"

#define EVERY_S 0.02 /* between two calls of `tell` */

static _Thread_local struct {
    ot_watch *watch;
    bool helps, inner;
    double part; /* of the running piece */
} here;

ot_watch *ot_watch_use(ot_watch *w)
{
    ot_watch *before = here.watch;
    here.watch = w;
    here.helps = here.inner = false;
    here.part = 0;
    if (!w) return before;
    const double now = ot_now();
    if (w->seconds > 0 && w->until == 0) w->until = now + w->seconds;
    if (w->told == 0) w->told = now;
    return before;
}

ot_watch *ot_watch_lend(ot_watch *w)
{
    ot_watch *before = here.watch;
    if (before == w) return before; /* the caller itself */
    here.watch = w;
    here.helps = w != NULL;
    return before;
}

ot_watch *ot_watch_here(void) { return here.watch; }

void ot_watch_at(const char *stage, double k, double n)
{
    ot_watch *w = here.watch;
    if (!w || here.helps || here.inner || n <= 0) return;
    w->stage = stage;
    w->done = k / n;
    w->width = 1 / n;
    here.part = 0;
}

void ot_watch_part(double k, double n)
{
    if (here.watch && !here.helps && !here.inner && n > 0) here.part = k / n;
}

bool ot_watch_inner(bool inner)
{
    const bool before = here.inner;
    here.inner = inner;
    return before;
}

ot_watch_end ot_watch_ended(const ot_watch *w)
{
    return w ? (ot_watch_end)atomic_load_explicit(&w->ended, memory_order_relaxed)
             : OT_WATCH_GOES_ON;
}

/* The first reason stays. */
static void end(ot_watch *w, ot_watch_end why)
{
    int none = OT_WATCH_GOES_ON;
    (void)atomic_compare_exchange_strong(&w->ended, &none, (int)why);
}

static void look(ot_watch *w)
{
    if (w->stop && atomic_load_explicit(w->stop, memory_order_relaxed)) end(w, OT_WATCH_STOPPED);
    const bool tells = w->tell && !here.helps;
    if (!here.helps) w->looks++;
    if (w->until <= 0 && !tells) return;
    const double now = ot_now();
    if (w->until > 0 && now > w->until) end(w, OT_WATCH_LATE);
    if (!tells || now - w->told < EVERY_S) return;
    w->told = now;
    if (w->tell(w->of, w->stage ? w->stage : "", w->done + w->width * here.part) != 0)
        end(w, OT_WATCH_STOPPED);
}

ot_status ot_watch_look(ot_diag *d)
{
    ot_watch *w = here.watch;
    if (!w) return OT_OK;
    if (ot_watch_ended(w) == OT_WATCH_GOES_ON) look(w);
    switch (ot_watch_ended(w)) {
    case OT_WATCH_GOES_ON: return OT_OK;
    case OT_WATCH_STOPPED: return ot_fail(d, OT_E_SYSTEM, "it was cancelled");
    case OT_WATCH_LATE: break;
    }
    return ot_fail(d, OT_E_SYSTEM, "it took longer than %g seconds", w->seconds);
}
