/* Views of files, guarded against SIGBUS.
 *
 *   read behind the end of the file -> SIGBUS -> the view that holds the address?
 *     yes: anonymous zeros over the rest of the view, damaged = true; the read goes on
 *     no:  the handler that was there before
 *
 * A signal handler has no argument of ours and may not lock, so the views are a list that only
 * grows and is read without a lock; a view that is freed leaves its entry to a later one.
 */
#include "file_view.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

struct ot_file_view {
    _Atomic uintptr_t begin; /* 0: of no file */
    _Atomic size_t size;
    atomic_bool damaged;
    atomic_bool written; /* into the file */
    ot_file_view *next;
};

static _Atomic(ot_file_view *) views;                    /* all there ever were */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of changes to the list and below */
static struct sigaction before;
static uintptr_t page_size;
static atomic_bool passed_on; /* a fault that is not ours */

static ot_file_view *view_of(uintptr_t address)
{
    for (ot_file_view *v = atomic_load(&views); v; v = v->next) {
        uintptr_t begin = atomic_load(&v->begin);
        if (begin && address >= begin && address - begin < atomic_load(&v->size)) return v;
    }
    return NULL;
}

/* Zeros from the page of `address` to the end of its view; false: it is in none. */
static bool put_zeros(uintptr_t address)
{
    ot_file_view *v = view_of(address);
    if (!v) return false;
    uintptr_t first = address / page_size * page_size;
    size_t n = atomic_load(&v->begin) + atomic_load(&v->size) - first;
    void *p = mmap((void *)first, n, PROT_READ | (atomic_load(&v->written) ? PROT_WRITE : 0),
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    atomic_store(&v->damaged, true);
    return true;
}

/* Handlers that restore the one before them and raise the signal anew come back here: the second
 * time the process ends as it would without any. */
static void pass_on(int signal_number, siginfo_t *info, void *context)
{
    bool again = atomic_exchange(&passed_on, true);
    if (!again && (before.sa_flags & SA_SIGINFO)) {
        before.sa_sigaction(signal_number, info, context);
        return;
    }
    if (!again && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signal_number);
        return;
    }
    struct sigaction end = {.sa_handler = SIG_DFL};
    (void)sigaction(signal_number, &end, NULL);
    if (info->si_code <= 0) (void)raise(signal_number); /* nothing is read again that would */
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    int error = errno;
    if (info->si_code <= 0 || !put_zeros((uintptr_t)info->si_addr))
        pass_on(signal_number, info, context);
    errno = error;
}

/* With the lock held. false: errno says why. */
static bool install(void)
{
    struct sigaction now;
    if (sigaction(SIGBUS, NULL, &now) != 0) return false;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return true;
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    before = now;
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    return sigemptyset(&ours.sa_mask) == 0 && sigaction(SIGBUS, &ours, NULL) == 0;
}

/* An entry of no file, with the lock held; NULL: no memory. The list is of the process, not of a
 * model: not from the allocation hook. */
static ot_file_view *take_entry(void)
{
    for (ot_file_view *v = atomic_load(&views); v; v = v->next)
        if (atomic_load(&v->begin) == 0) return v;
    ot_file_view *v = calloc(1, sizeof *v);
    if (!v) return NULL;
    v->next = atomic_load(&views);
    atomic_store(&views, v);
    return v;
}

/* With the lock held. */
static ot_status map_guarded(int fd, size_t size, bool written, ot_file_view **out)
{
    if (!install()) return OT_E_SYSTEM;
    ot_file_view *v = take_entry();
    if (!v) return OT_E_NOMEM;
    void *p = written ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                      : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) return errno == ENOMEM ? OT_E_NOMEM : OT_E_SYSTEM;
    atomic_store(&v->damaged, false);
    atomic_store(&v->written, written);
    atomic_store(&v->size, size);
    atomic_store(&v->begin, (uintptr_t)p);
    *out = v;
    return OT_OK;
}

static ot_status map_locked(int fd, size_t size, bool written, ot_file_view **out)
{
    pthread_mutex_lock(&lock);
    ot_status s = map_guarded(fd, size, written, out);
    pthread_mutex_unlock(&lock);
    return s;
}

ot_status ot_file_view_new(int fd, size_t size, ot_file_view **out)
{
    return map_locked(fd, size, false, out);
}

ot_status ot_file_view_write(int fd, size_t size, ot_file_view **out)
{
    return map_locked(fd, size, true, out);
}

const void *ot_file_view_data(const ot_file_view *v)
{
    return (const void *)atomic_load(&v->begin);
}

void *ot_file_view_place(ot_file_view *v)
{
    return atomic_load(&v->written) ? (void *)atomic_load(&v->begin) : NULL;
}

bool ot_file_view_damaged(const ot_file_view *v) { return atomic_load(&v->damaged); }

void ot_file_view_free(ot_file_view *v)
{
    if (!v) return;
    pthread_mutex_lock(&lock);
    void *data = (void *)atomic_exchange(&v->begin, 0);
    (void)munmap(data, atomic_load(&v->size));
    pthread_mutex_unlock(&lock);
}
