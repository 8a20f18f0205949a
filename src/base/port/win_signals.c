/* Of base/signals.h on Windows: Ctrl-C and the end of the console wait while a file is written. */
#include "port.h"

#include "base/signals.h"

#include <windows.h>

#define STOPPED 130 /* exit status of a program that Ctrl-C ends */

static volatile LONG held, waiting;

/* Of a thread of its own. TRUE: nothing more is done, and release ends the program. */
static BOOL WINAPI on_stop(DWORD what)
{
    (void)what;
    if (InterlockedCompareExchange(&held, 0, 0) == 0) return FALSE;
    InterlockedExchange(&waiting, 1);
    return TRUE;
}

void ot_signals_hold(ot_signal_hold *h)
{
    h->held = true;
    if (InterlockedIncrement(&held) == 1) (void)SetConsoleCtrlHandler(on_stop, TRUE);
}

bool ot_signals_wait(const ot_signal_hold *h)
{
    return h->held && InterlockedCompareExchange(&waiting, 0, 0) != 0;
}

void ot_signals_release(ot_signal_hold *h)
{
    if (!h->held) return;
    h->held = false;
    if (InterlockedDecrement(&held) > 0) return;
    (void)SetConsoleCtrlHandler(on_stop, FALSE);
    if (InterlockedExchange(&waiting, 0)) ExitProcess(STOPPED);
}
