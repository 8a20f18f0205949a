/* A bar for long work: one line on a terminal, drawn again in place and wiped at the end.
 *
 *   onnx-tile: bench       [##########----------]  50 %, 2.0 s left
 *
 * The time that is left is what passed since the stage began, scaled: shown once it means
 * something.
 */
#include "base.h"

#define BAR      20
#define EVERY_S  0.1 /* between two drawings of one stage */
#define SETTLE_S 0.5 /* before the time that is left is told */

static void draw(ot_progress *p, double done, double now)
{
    char bar[BAR + 1], left[32];
    int full = (int)(done * BAR + 0.5);
    for (int k = 0; k < BAR; k++) bar[k] = k < full ? '#' : '-';
    bar[BAR] = '\0';
    fprintf(p->out, "\r\033[Konnx-tile: %-11s [%s] %3.0f %%", p->stage, bar, done * 100);
    double passed = now - p->start;
    if (done > 0.02 && passed > SETTLE_S)
        fprintf(p->out, ", %s left",
                ot_format_seconds(passed * (1 - done) / done, left, sizeof left));
    fflush(p->out);
    p->shown = now;
}

void ot_progress_at(ot_progress *p, const char *stage, double done)
{
    if (!p || !p->out) return;
    double now = ot_now();
    bool fresh = !p->stage || strcmp(p->stage, stage) != 0;
    if (fresh) {
        p->stage = stage;
        p->start = now;
    }
    if (!fresh && now - p->shown < EVERY_S) return;
    draw(p, done < 0 ? 0 : done > 1 ? 1 : done, now);
}

void ot_progress_end(ot_progress *p)
{
    if (!p || !p->out || !p->stage) return;
    fputs("\r\033[K", p->out);
    fflush(p->out);
    p->stage = NULL;
}
