/* Preloaded: the N-th allocation that the program itself asks for fails (N from OOM_AT), or that
 * and all later ones (OOM_ALL=1). Counted are calls that come from the program's own code: a
 * library's are let through, since some (libxml2, GLPK, oneDNN, the loader) take a failure for
 * something else or end the process. OOM_COUNT names a file for the number of calls. */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static uintptr_t from, to; /* code of the program */
static long at = -1, n;
static int all;

static int first_object(struct dl_phdr_info *i, size_t size, void *data)
{
    (void)size, (void)data;
    for (int k = 0; k < i->dlpi_phnum; k++)
        if (i->dlpi_phdr[k].p_type == PT_LOAD && i->dlpi_phdr[k].p_flags & PF_X) {
            from = i->dlpi_addr + i->dlpi_phdr[k].p_vaddr;
            to = from + i->dlpi_phdr[k].p_memsz;
        }
    return 1; /* the program comes first */
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("OOM_AT");
    all = getenv("OOM_ALL") != NULL;
    dl_iterate_phdr(first_object, NULL);
    n = 0;
    if (text) at = atol(text);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("OOM_COUNT");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    fprintf(f, "%ld\n", n);
    fclose(f);
}

static int fails(void *caller)
{
    if ((uintptr_t)caller < from || (uintptr_t)caller >= to) return 0;
    long k = __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED);
    return at >= 0 && (all ? k >= at : k == at);
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}
void *realloc(void *p, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, size);
}
