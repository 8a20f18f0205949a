/* What the system is asked for: sizes, processors, random numbers, libraries. */
#include "port.h"

#include <windows.h>
/* after windows.h */
#include <bcrypt.h>

/* Bytes of the first cache of that level; -1. */
static long cache_size(int level)
{
    DWORD n = 0;
    long size = -1;
    GetLogicalProcessorInformation(NULL, &n);
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION *all = n ? malloc(n) : NULL;
    if (all && GetLogicalProcessorInformation(all, &n))
        for (size_t k = 0; k < n / sizeof *all && size < 0; k++)
            if (all[k].Relationship == RelationCache && all[k].Cache.Level == level)
                size = (long)all[k].Cache.Size;
    free(all);
    return size;
}

static long page_size(void)
{
    SYSTEM_INFO told;
    GetSystemInfo(&told);
    return (long)told.dwPageSize;
}

static long page_count(void)
{
    MEMORYSTATUSEX told = {.dwLength = sizeof told};
    if (!GlobalMemoryStatusEx(&told)) return -1;
    uint64_t n = told.ullTotalPhys / (uint64_t)page_size();
    return n < LONG_MAX ? (long)n : LONG_MAX;
}

long ot_port_sysconf(int what)
{
    switch (what) {
    case _SC_PAGESIZE: return page_size();
    case _SC_PHYS_PAGES: return page_count();
    case _SC_NPROCESSORS_ONLN: return (long)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    case _SC_LEVEL2_CACHE_SIZE: return cache_size(2);
    case _SC_LEVEL3_CACHE_SIZE: return cache_size(3);
    default: return -1;
    }
}

int ot_port_window(int fd, struct winsize *w)
{
    CONSOLE_SCREEN_BUFFER_INFO told;
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(fd), &told)) return -1;
    w->ws_row = (unsigned short)(told.srWindow.Bottom - told.srWindow.Top + 1);
    w->ws_col = (unsigned short)(told.srWindow.Right - told.srWindow.Left + 1);
    return 0;
}

int ot_port_affinity(ot_port_cpus *set)
{
    DWORD_PTR ours, there;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &ours, &there) || !ours) return -1;
    set->bits = ours;
    return 0;
}

ssize_t ot_port_random(void *bytes, size_t n, unsigned flags)
{
    (void)flags;
    return BCryptGenRandom(NULL, bytes, (ULONG)n, BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0 ? (ssize_t)n
                                                                                        : -1;
}

void *ot_port_dlopen(const char *name, int flags)
{
    (void)flags;
    return (void *)LoadLibraryA(name);
}

void *ot_port_dlsym(void *library, const char *name)
{
    FARPROC f = GetProcAddress(library, name);
    void *p;
    memcpy(&p, &f, sizeof p);
    return p;
}

int ot_port_dlclose(void *library) { return FreeLibrary(library) ? 0 : -1; }

const char *ot_port_dlerror(void) { return "there is no such library"; }
