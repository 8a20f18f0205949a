/* Signals that end a program wait while a file is half written. */
#include "signals.h"

#include <stddef.h>

static const int STOPS[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

void ot_signals_hold(ot_signal_hold *h)
{
    sigset_t stops;
    sigemptyset(&stops);
    for (size_t k = 0; k < sizeof STOPS / sizeof *STOPS; k++) sigaddset(&stops, STOPS[k]);
    h->held = pthread_sigmask(SIG_BLOCK, &stops, &h->before) == 0;
}

bool ot_signals_wait(const ot_signal_hold *h)
{
    sigset_t now;
    if (!h->held || sigpending(&now) != 0) return false;
    for (size_t k = 0; k < sizeof STOPS / sizeof *STOPS; k++)
        if (sigismember(&now, STOPS[k]) == 1 && sigismember(&h->before, STOPS[k]) == 0) return true;
    return false;
}

void ot_signals_release(ot_signal_hold *h)
{
    if (h->held) pthread_sigmask(SIG_SETMASK, &h->before, NULL);
    h->held = false;
}
