/* The processor's counters of last-level cache accesses, where the system lets a process read them.
 *
 *   open --> [start  run  stop] [start  run  stop] ... --> references, misses of the runs together
 *
 * Counters are inherited by threads that start after they were opened: open before the first
 * parallel loop. Whether a process may count its own events is the system's choice
 * (perf_event_paranoid, containers).
 */
#include "measure.h"

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_counter(uint64_t what)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof attr,
                                   .config = what,
                                   .inherit = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static double value_of(int fd)
{
    uint64_t n = 0;
    return read(fd, &n, sizeof n) == (ssize_t)sizeof n ? (double)n : 0;
}

bool ot_cache_open(ot_cache_counts *c)
{
    *c = (ot_cache_counts){.references_fd = open_counter(PERF_COUNT_HW_CACHE_REFERENCES),
                           .misses_fd = -1};
    if (c->references_fd >= 0) c->misses_fd = open_counter(PERF_COUNT_HW_CACHE_MISSES);
    if (c->misses_fd >= 0) return true;
    ot_cache_close(c);
    return false;
}

void ot_cache_start(ot_cache_counts *c)
{
    if (c->misses_fd < 0) return;
    c->references_at = value_of(c->references_fd);
    c->misses_at = value_of(c->misses_fd);
}

void ot_cache_stop(ot_cache_counts *c)
{
    if (c->misses_fd < 0) return;
    c->references += value_of(c->references_fd) - c->references_at;
    c->misses += value_of(c->misses_fd) - c->misses_at;
}

void ot_cache_close(ot_cache_counts *c)
{
    if (c->references_fd >= 0) close(c->references_fd);
    if (c->misses_fd >= 0) close(c->misses_fd);
    c->references_fd = c->misses_fd = -1;
}

#else

bool ot_cache_open(ot_cache_counts *c)
{
    *c = (ot_cache_counts){.references_fd = -1, .misses_fd = -1};
    return false;
}

void ot_cache_start(ot_cache_counts *c) { (void)c; }
void ot_cache_stop(ot_cache_counts *c) { (void)c; }
void ot_cache_close(ot_cache_counts *c) { (void)c; }

#endif
