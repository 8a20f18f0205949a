/* Functions that emscripten's headers declare and its libraries lack. */
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

/* The one thread there is has one processor. */
int sched_getaffinity(pid_t process, size_t n, cpu_set_t *set)
{
    (void)process;
    CPU_ZERO_S(n, set);
    CPU_SET_S(0, n, set);
    return 0;
}

/* Of CPU_COUNT. */
int __sched_cpucount(size_t n, const cpu_set_t *set)
{
    int count = 0;
    for (size_t k = 0; k < n * 8; k++)
        if (CPU_ISSET_S(k, n, set)) count++;
    return count;
}

/* At most 256 bytes, as getentropy. */
ssize_t getrandom(void *bytes, size_t n, unsigned flags)
{
    (void)flags;
    return getentropy(bytes, n) == 0 ? (ssize_t)n : -1;
}

/* Of Node.js every standard stream says that it is one. */
int isatty(int fd)
{
    (void)fd;
    return 0;
}
