/* Windows of rows. See row_window.h.
 *
 *   [1, 3, H, W], axis 2     plane 0: rows 0 .. H    plane 1: rows 0 .. H    plane 2: ...
 *   rows [a, b)                   |==|                    |==|                    |==|
 *
 * A plane is what lies at one place along the axes before that of the rows. Rows of a tile are so
 * many pieces of memory as there are planes.
 *
 * Behind: rows below all that tiles which run have read. A tile that has begun and not read yet may
 * read any row. Going back (the next region begins at the top) is no error: rows are asked for
 * anew.
 */
#include "row_window.h"

#include "session.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define NO_AXIS UINT32_MAX
/* Rows are asked for, handed on and given back in pieces of about so many bytes. */
#define PIECE ((int64_t)1 << 20)

typedef enum lease_state { LEASE_NONE = 0, LEASE_BEGUN, LEASE_HELD } lease_state;

/* The rows that the tile of a worker has read so far. */
typedef struct lease {
    lease_state state;
    int64_t first;
} lease;

struct ot_row_window {
    pthread_mutex_t lock;
    ot_nd array;
    const char *name;
    bool reserved;        /* the addresses are ours: memory is where rows are */
    bool written;         /* an output */
    ot_row_reader reader; /* read NULL: none */
    ot_row_writer writer;
    uint32_t axis; /* NO_AXIS: not known yet, which no reader or writer knows */
    int64_t planes, rows, row_bytes;
    int64_t bytes; /* of all */
    uint8_t *here; /* [rows] of a reader: the row was read */
    /* [rows] of an output: bytes of the row that are not written; NULL before the axis is known */
    int64_t *missing;
    int64_t complete; /* rows of an output, from the first, that are written */
    int64_t gone;     /* rows below were handed on, or given back */
    bool kept;        /* of an output: rows stay until the run ends */
    bool pinned;      /* something outside of tiles reads while tiles run */
    lease *leases;    /* [n_leases] of workers */
    uint32_t n_leases;
    char *piece; /* [piece_bytes] rows of several planes, dense */
    int64_t piece_bytes;
};

/* ---- making ---- */

static void set_axis(ot_row_window *w, uint32_t axis)
{
    w->axis = axis;
    w->planes = 1;
    for (uint32_t k = 0; k < axis; k++) w->planes *= w->array.dims[k];
    w->rows = w->array.dims[axis];
    w->row_bytes = w->planes && w->rows ? w->bytes / w->planes / w->rows : 0;
}

static void *resize(void *p, int64_t from, int64_t to)
{
    return ot_hook_alloc(p, (size_t)from, (size_t)to);
}

/* Tables of rows, where the axis is known. */
static ot_status make_tables(ot_row_window *w, ot_diag *d)
{
    if (w->axis == NO_AXIS || w->rows == 0) return OT_OK;
    if (w->reader.read) w->here = resize(NULL, 0, w->rows);
    if (w->written) w->missing = resize(NULL, 0, w->rows * (int64_t)sizeof *w->missing);
    return (w->reader.read && !w->here) || (w->written && !w->missing) ? ot_fail_nomem(d) : OT_OK;
}

static ot_status new_window(const ot_nd *form, const char *name, ot_diag *d, ot_row_window **out)
{
    int64_t bytes;
    if (!ot_nd_bytes(form->dtype, form->rank, form->dims, &bytes))
        return ot_fail(d, OT_E_INPUT, "'%.200s' has more bytes than can be counted", name);
    ot_row_window *w = *out = ot_hook_alloc(NULL, 0, sizeof *w);
    if (!w) return ot_fail_nomem(d);
    *w = (ot_row_window){.array = *form, .name = name, .axis = NO_AXIS, .bytes = bytes};
    w->array.block = NULL;
    pthread_mutex_init(&w->lock, NULL); /* of default attributes: it cannot fail */
    return OT_OK;
}

ot_status ot_row_window_mapped(const ot_nd *array, const char *name, bool written, ot_diag *d,
                               ot_row_window **out)
{
    OT_TRY(new_window(array, name, d, out));
    (*out)->written = written;
    return OT_OK;
}

/* Addresses for all; memory comes where something is written. Huge pages would make a row of
 * a plane two megabytes. */
static ot_status reserve(ot_row_window *w, uint32_t axis, ot_diag *d)
{
    if (axis >= w->array.rank)
        return ot_fail(d, OT_E_USAGE, "'%.200s' has %u dimensions: it has no rows along axis %u",
                       w->name, w->array.rank, axis);
    set_axis(w, axis);
    OT_TRY(make_tables(w, d));
    const size_t n = w->bytes ? (size_t)w->bytes : 1;
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0);
    if (p == MAP_FAILED)
        return ot_fail(d, OT_E_NOMEM, "no addresses for the %lld bytes of '%.200s'",
                       (long long)w->bytes, w->name);
    (void)madvise(p, n, MADV_NOHUGEPAGE);
    w->array.data = p;
    w->reserved = true;
    ot_nd_set_dense(&w->array, w->array.dtype, w->array.rank, w->array.dims);
    return OT_OK;
}

static ot_status reserved(ot_row_window *w, uint32_t axis, ot_diag *d, ot_row_window **out)
{
    const ot_status s = reserve(w, axis, d);
    if (s == OT_OK) return OT_OK;
    ot_row_window_free(w);
    *out = NULL;
    return s;
}

ot_status ot_row_window_read(const ot_nd *form, uint32_t axis, const char *name, ot_row_reader by,
                             ot_diag *d, ot_row_window **out)
{
    OT_TRY(new_window(form, name, d, out));
    (*out)->reader = by;
    return reserved(*out, axis, d, out);
}

ot_status ot_row_window_write(const ot_nd *form, uint32_t axis, const char *name, ot_row_writer by,
                              ot_diag *d, ot_row_window **out)
{
    OT_TRY(new_window(form, name, d, out));
    (*out)->writer = by;
    (*out)->written = true;
    return reserved(*out, axis, d, out);
}

void ot_row_window_free(ot_row_window *w)
{
    if (!w) return;
    if (w->reserved) (void)munmap(w->array.data, w->bytes ? (size_t)w->bytes : 1);
    if (w->here) (void)resize(w->here, w->rows, 0);
    if (w->missing) (void)resize(w->missing, w->rows * (int64_t)sizeof *w->missing, 0);
    if (w->leases) (void)resize(w->leases, w->n_leases * (int64_t)sizeof *w->leases, 0);
    if (w->piece) (void)resize(w->piece, w->piece_bytes, 0);
    pthread_mutex_destroy(&w->lock);
    (void)!ot_hook_alloc(w, sizeof *w, 0);
}

const ot_nd *ot_row_window_array(const ot_row_window *w) { return &w->array; }

/* ---- where rows lie ---- */

static ot_row_window *window_at(const ot_row_windows *w, const void *data, bool written)
{
    for (uint32_t k = 0; k < w->n; k++) {
        ot_row_window *x = w->all[k];
        uintptr_t at = (uintptr_t)data, base = (uintptr_t)x->array.data;
        if (data && x->written == written && at >= base && at - base < (size_t)x->bytes) return x;
    }
    return NULL;
}

/* The rows [*first, *end) that hold all elements of `a`, which lies in w. */
static void rows_of(const ot_row_window *w, const ot_nd *a, int64_t *first, int64_t *end)
{
    const int64_t plane = w->rows * w->row_bytes, size = (int64_t)ot_dtype_bytes(a->dtype);
    const int64_t at = ((const char *)a->data - (const char *)w->array.data) % plane;
    int64_t span = size;
    bool whole = a->chan_block > 1;
    for (uint32_t k = 0; k < a->rank && !whole; k++) {
        const int64_t stride = a->strides[k] * size;
        if (a->dims[k] <= 1) continue;
        whole = stride < 0 || (stride >= plane && stride % plane != 0);
        if (stride < plane) span += (a->dims[k] - 1) * stride;
    }
    whole = whole || at + span > plane;
    *first = whole ? 0 : at / w->row_bytes;
    *end = whole ? w->rows : ot_ceil_div(at + span, w->row_bytes);
}

/* The first axis along which `a`, a part of the array, is not all of it. */
static uint32_t cut_axis(const ot_row_window *w, const ot_nd *a)
{
    for (uint32_t k = 0; a->rank == w->array.rank && k < a->rank; k++)
        if (a->dims[k] < w->array.dims[k]) return k;
    return NO_AXIS;
}

/* ---- memory ---- */

static uintptr_t page_down(uintptr_t at)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return at / page * page;
}

/* Give back the memory of rows [first, end), below which there is nothing; pages that hold
 * something else stay. */
static void give_back(const ot_row_window *w, int64_t first, int64_t end)
{
    for (int64_t p = 0; p < w->planes; p++) {
        const uintptr_t plane = (uintptr_t)w->array.data + (uintptr_t)(p * w->rows * w->row_bytes);
        const uintptr_t above = page_down(plane + (uintptr_t)sysconf(_SC_PAGESIZE) - 1);
        const uintptr_t from = page_down(plane + (uintptr_t)(first * w->row_bytes));
        const uintptr_t begin = from > above ? from : above;
        const uintptr_t stop = page_down(plane + (uintptr_t)(end * w->row_bytes));
        if (stop > begin) (void)madvise((void *)begin, stop - begin, MADV_DONTNEED);
    }
}

/* Room for n dense rows; NULL: no memory. */
static char *piece_of(ot_row_window *w, int64_t n)
{
    const int64_t need = n * w->planes * w->row_bytes;
    if (w->piece_bytes >= need) return w->piece;
    char *p = resize(w->piece, w->piece_bytes, need);
    if (!p) return NULL;
    w->piece = p;
    w->piece_bytes = need;
    return p;
}

/* As many rows as are moved at a time, of n. */
static int64_t rows_at_once(const ot_row_window *w, int64_t n)
{
    return ot_max(1, ot_min(n, PIECE / ot_max(1, w->planes * w->row_bytes)));
}

/* Rows [first, end) between a dense piece and their places. */
static void spread(const ot_row_window *w, char *piece, int64_t first, int64_t end, bool in)
{
    const size_t n = (size_t)((end - first) * w->row_bytes);
    for (int64_t p = 0; p < w->planes; p++) {
        char *place = (char *)w->array.data + (p * w->rows + first) * w->row_bytes;
        memcpy(in ? place : piece + (size_t)p * n, in ? piece + (size_t)p * n : place, n);
    }
}

/* ---- reading ---- */

static ot_status load(ot_row_window *w, int64_t first, int64_t end, ot_diag *d)
{
    char *place = w->planes == 1 ? (char *)w->array.data + first * w->row_bytes
                                 : piece_of(w, end - first);
    if (!place) return ot_fail_nomem(d);
    if (w->reader.read(w->reader.of, first, end, place) != 0)
        return ot_fail(d, OT_E_SYSTEM, "input '%.200s': its reader failed at rows [%lld, %lld)",
                       w->name, (long long)first, (long long)end);
    if (w->planes != 1) spread(w, place, first, end, true);
    memset(w->here + first, 1, (size_t)(end - first));
    return OT_OK;
}

static ot_status load_missing(ot_row_window *w, int64_t first, int64_t end, ot_diag *d)
{
    for (int64_t k = first; k < end;) {
        int64_t n = 0, most = rows_at_once(w, end - k);
        while (n < most && !w->here[k + n]) n++;
        if (n > 0) OT_TRY(load(w, k, k + n, d));
        k += n > 0 ? n : 1;
    }
    return OT_OK;
}

static bool any_lease(const ot_row_window *w)
{
    for (uint32_t k = 0; k < w->n_leases; k++)
        if (w->leases[k].state != LEASE_NONE) return true;
    return false;
}

/* Forget rows below all that tiles have read which run now. */
static void drop_behind(ot_row_window *w)
{
    int64_t low = INT64_MAX;
    for (uint32_t k = 0; k < w->n_leases; k++) {
        if (w->leases[k].state == LEASE_BEGUN) return;
        if (w->leases[k].state == LEASE_HELD) low = ot_min(low, w->leases[k].first);
    }
    if (w->pinned || low == INT64_MAX || (low - w->gone) * w->planes * w->row_bytes < PIECE) return;
    give_back(w, w->gone, low);
    if (w->here) memset(w->here + w->gone, 0, (size_t)(low - w->gone));
    w->gone = low;
}

static ot_status need(ot_row_window *w, const ot_nd *a, uint32_t worker, ot_diag *d)
{
    int64_t first, end;
    if (w->axis == NO_AXIS && cut_axis(w, a) != NO_AXIS) set_axis(w, cut_axis(w, a));
    if (w->axis == NO_AXIS || w->row_bytes == 0) return OT_OK;
    rows_of(w, a, &first, &end);
    w->gone = ot_min(w->gone, first);
    if (w->reader.read) OT_TRY(load_missing(w, first, end, d));
    if (worker < w->n_leases) {
        lease *l = &w->leases[worker];
        l->first = l->state == LEASE_HELD ? ot_min(l->first, first) : first;
        l->state = LEASE_HELD;
        drop_behind(w);
    } else
        w->pinned = w->pinned || any_lease(w);
    return OT_OK;
}

ot_status ot_row_windows_need(const ot_row_windows *w, const ot_nd *a, uint32_t worker, ot_diag *d)
{
    ot_row_window *x = w && a ? window_at(w, a->data, false) : NULL;
    if (!x) return OT_OK;
    pthread_mutex_lock(&x->lock);
    const ot_status s = need(x, a, worker, d);
    pthread_mutex_unlock(&x->lock);
    return s;
}

void ot_row_windows_enter(const ot_row_windows *w, uint32_t worker)
{
    for (uint32_t k = 0; w && k < w->n; k++) {
        ot_row_window *x = w->all[k];
        pthread_mutex_lock(&x->lock);
        if (worker < x->n_leases) x->leases[worker].state = LEASE_BEGUN;
        pthread_mutex_unlock(&x->lock);
    }
}

void ot_row_windows_leave(const ot_row_windows *w, uint32_t worker)
{
    for (uint32_t k = 0; w && k < w->n; k++) {
        ot_row_window *x = w->all[k];
        pthread_mutex_lock(&x->lock);
        if (worker < x->n_leases) x->leases[worker].state = LEASE_NONE;
        if (!any_lease(x)) x->pinned = false;
        pthread_mutex_unlock(&x->lock);
    }
}

/* ---- writing ---- */

static ot_status hand_on(ot_row_window *w, int64_t end, ot_diag *d)
{
    while (w->writer.write && w->gone < end) {
        const int64_t first = w->gone, stop = first + rows_at_once(w, end - first);
        char *rows = w->planes == 1 ? (char *)w->array.data + first * w->row_bytes
                                    : piece_of(w, stop - first);
        if (!rows) return ot_fail_nomem(d);
        if (w->planes != 1) spread(w, rows, first, stop, false);
        if (w->writer.write(w->writer.of, first, stop, rows) != 0)
            return ot_fail(d, OT_E_SYSTEM,
                           "output '%.200s': its writer failed at rows [%lld, %lld)", w->name,
                           (long long)first, (long long)stop);
        give_back(w, first, stop);
        w->gone = stop;
    }
    if (w->gone < end) give_back(w, w->gone, end);
    w->gone = end;
    return OT_OK;
}

static void all_missing(ot_row_window *w)
{
    for (int64_t k = 0; w->missing && k < w->rows; k++) w->missing[k] = w->planes * w->row_bytes;
}

/* `a` is a part of the array with the same axes. */
static ot_status wrote(ot_row_window *w, const ot_nd *a, ot_diag *d)
{
    int64_t first, end, elems;
    if (w->axis == NO_AXIS && cut_axis(w, a) != NO_AXIS) {
        set_axis(w, cut_axis(w, a));
        OT_TRY(make_tables(w, d));
        all_missing(w);
    }
    if (!w->missing || a->rank != w->array.rank || !ot_nd_elems(a, &elems) || elems == 0)
        return OT_OK;
    rows_of(w, a, &first, &end);
    const int64_t bytes = elems / a->dims[w->axis] * (int64_t)ot_dtype_bytes(a->dtype);
    for (int64_t k = first; k < ot_min(end, first + a->dims[w->axis]); k++) w->missing[k] -= bytes;
    while (w->complete < w->rows && w->missing[w->complete] <= 0) w->complete++;
    if (w->kept || (w->complete - w->gone) * w->planes * w->row_bytes < PIECE) return OT_OK;
    return hand_on(w, w->complete, d);
}

ot_status ot_row_windows_wrote(const ot_row_windows *w, const ot_nd *a, bool again, ot_diag *d)
{
    ot_row_window *x = w ? window_at(w, a->data, true) : NULL;
    if (!x) return OT_OK;
    pthread_mutex_lock(&x->lock);
    x->kept = x->kept || (again && x->writer.write);
    const ot_status s = wrote(x, a, d);
    pthread_mutex_unlock(&x->lock);
    return s;
}

/* ---- runs ---- */

void ot_session_row_windows(ot_session *s, const ot_row_windows *w) { s->windows = w; }

static ot_status begin(ot_row_window *w, uint32_t threads, ot_diag *d)
{
    if (w->n_leases < threads) {
        lease *l = resize(w->leases, w->n_leases * (int64_t)sizeof *l,
                          threads * (int64_t)sizeof *l);
        if (!l) return ot_fail_nomem(d);
        w->leases = l;
        w->n_leases = threads;
    }
    memset(w->leases, 0, w->n_leases * sizeof *w->leases);
    if (w->reserved && w->bytes) (void)madvise(w->array.data, (size_t)w->bytes, MADV_DONTNEED);
    if (w->here) memset(w->here, 0, (size_t)w->rows);
    all_missing(w);
    w->complete = w->gone = 0;
    w->kept = w->pinned = false;
    return OT_OK;
}

ot_status ot_row_windows_begin(const ot_row_windows *w, uint32_t threads, ot_diag *d)
{
    for (uint32_t k = 0; w && k < w->n; k++) OT_TRY(begin(w->all[k], threads, d));
    return OT_OK;
}

void ot_row_windows_keep(const ot_row_windows *w, const void *data)
{
    ot_row_window *x = w ? window_at(w, data, true) : NULL;
    if (x && x->writer.write) x->kept = true;
}

ot_status ot_row_windows_stop(const ot_row_windows *w, ot_diag *d)
{
    if (!w || !w->hold || !ot_signals_wait(w->hold)) return OT_OK;
    return ot_fail(d, OT_E_SYSTEM, "the run was stopped by a signal");
}

ot_status ot_row_windows_end(const ot_row_windows *w, ot_diag *d)
{
    for (uint32_t k = 0; w && k < w->n; k++) {
        ot_row_window *x = w->all[k];
        if (x->writer.write && x->row_bytes > 0) OT_TRY(hand_on(x, x->rows, d));
    }
    return OT_OK;
}
