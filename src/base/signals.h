/* Signals that end a program, while files are written. */
#ifndef OT_BASE_SIGNALS_H
#define OT_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* From hold to release, SIGTERM, SIGINT, SIGHUP and SIGQUIT wait, as far as this thread would get
 * them; then they do what they do. Holds are released in reverse order. */
typedef struct ot_signal_hold {
    sigset_t before; /* blocked signals */
    bool held;
} ot_signal_hold;
void ot_signals_hold(ot_signal_hold *h);
/* One of them waits: what is being written should be given up. */
bool ot_signals_wait(const ot_signal_hold *h);
void ot_signals_release(ot_signal_hold *h);

#endif
