#include "control.h"

#include <math.h>

void ot_control_begin(ot_control *c, ot_watch *w, ot_watch **before)
{
    atomic_store(&c->stop, 0);
    *w = (ot_watch){.stop = &c->stop, .seconds = c->seconds, .tell = c->tell, .of = c->of};
    *before = ot_watch_use(w);
}

onnx_tile_status ot_control_end(const ot_watch *w, ot_watch *before, ot_status s, const char *what,
                                ot_diag *d)
{
    (void)ot_watch_use(before);
    const ot_watch_end why = ot_watch_ended(w);
    if (s == OT_OK || why == OT_WATCH_GOES_ON) return (onnx_tile_status)s;
    *d = (ot_diag){0};
    if (why == OT_WATCH_STOPPED) {
        (void)!ot_fail(d, OT_E_SYSTEM, "%s was cancelled", what);
        return ONNX_TILE_CANCELLED;
    }
    (void)!ot_fail(d, OT_E_SYSTEM, "%s took longer than %g seconds", what, w->seconds);
    return ONNX_TILE_TIMEOUT;
}

const char *ot_control_set_timeout(ot_control *c, double seconds)
{
    if (!isfinite(seconds) || seconds < 0) return "a time-out is a number of seconds, 0: none";
    c->seconds = seconds;
    return NULL;
}
