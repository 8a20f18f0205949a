/* The one clock that durations are taken from. */
#include "base.h"

#include <time.h>

double ot_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
