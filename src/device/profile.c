/* Records of what a device did, and what is written of them. */
#include "profile.h"
#include "driver.h"

#include "base/trace_events.h"

#include <math.h>

typedef struct profile_record {
    char name[OT_DEV_NAME_MAX]; /* of the buffer, of the kernel */
    bool is_memory;
    bool by_host;     /* a copy through a map: no command */
    ot_dev_work work; /* of commands */
    uint32_t queue;   /* slot of its queue */
    uint64_t queue_id, serial;
    double asked;      /* host: when it was asked */
    double start, end; /* device; host for memory and by_host. end < start: not done */
    int64_t bytes;     /* memory: + made, - freed */
    int64_t used;      /* memory in use after it */
} profile_record;

struct dev_profile {
    profile_record *records;   /* [n] */
    size_t n, cap, first_open; /* all before first_open are done */
    /* of the device's clock to the host's: the least with which nothing ran before it was asked */
    double shift;
};

#define MAPS_ROW DEV_QUEUES_MOST /* of a trace, behind those of queues */

static const char *const WORK_NAMES[OT_DEV_WORKS] = {"upload", "download", "copy", "fill",
                                                     "kernel"};

const char *ot_dev_work_name(ot_dev_work w) { return WORK_NAMES[w]; }

ot_status ot_device_profile_start(ot_device *dev, ot_device_error *e)
{
    dev_profile *p = calloc(1, sizeof *p);
    if (!p) return dev_fail_host_memory(e);
    p->shift = -1e300;
    dev_lock(dev);
    dev_profile_free(dev);
    dev->profile = p;
    dev_unlock(dev);
    return OT_OK;
}

void dev_profile_free(ot_device *dev)
{
    if (dev->profile) free(dev->profile->records);
    free(dev->profile);
    dev->profile = NULL;
}

/* A record, NULL when nothing is recorded or memory ran out: then it is left out. */
static profile_record *add(ot_device *dev, const char *name)
{
    dev_profile *p = dev->profile;
    if (!p) return NULL;
    if (p->n == p->cap) {
        size_t want = p->cap ? p->cap * 2 : 256;
        profile_record *more = realloc(p->records, want * sizeof *more);
        if (!more) return NULL;
        p->records = more;
        p->cap = want;
    }
    profile_record *r = &p->records[p->n++];
    *r = (profile_record){.used = dev->usage.used, .asked = ot_now(), .end = -1};
    snprintf(r->name, sizeof r->name, "%s", name);
    return r;
}

void dev_profile_memory(ot_device *dev, const char *name, int64_t bytes, double start, double end)
{
    profile_record *r = add(dev, name);
    if (!r) return;
    r->is_memory = true;
    r->bytes = bytes;
    r->start = start;
    r->end = end;
}

void dev_profile_command(ot_device *dev, const dev_queue *q, const dev_command *c)
{
    static const ot_dev_work works[DEV_VERBS] = {OT_DEV_WORK_UPLOAD, OT_DEV_WORK_DOWNLOAD,
                                                 OT_DEV_WORK_COPY, OT_DEV_WORK_FILL,
                                                 OT_DEV_WORK_KERNEL};
    const dev_part *p = c->to.buffer ? &c->to : &c->from;
    const ot_dev_launch *l = c->launch;
    profile_record *r = add(dev, !l ? p->buffer->name : l->name ? l->name : l->entry);
    if (!r) return;
    r->work = works[c->verb];
    r->queue = (uint32_t)(q->id & 0xffffff);
    r->queue_id = q->id;
    r->serial = c->serial;
    r->bytes = l ? l->bytes : p->bytes;
    for (uint32_t k = 0; l && l->bytes == 0 && k < l->n_args; k++)
        r->bytes += c->parts[k].buffer ? c->parts[k].bytes : 0;
}

void ot_device_profile_mapped(ot_device *dev, const char *name, ot_dev_work work, int64_t bytes,
                              double start, double end)
{
    dev_lock(dev);
    profile_record *r = add(dev, name);
    if (r) {
        r->by_host = true;
        r->work = work;
        r->queue = MAPS_ROW;
        r->bytes = bytes;
        r->start = start;
        r->end = end;
    }
    dev_unlock(dev);
}

void dev_profile_retire(ot_device *dev, const dev_queue *q, uint64_t serial, double start,
                        double end)
{
    dev_profile *p = dev->profile;
    if (!p) return;
    for (size_t k = p->first_open; k < p->n; k++) {
        profile_record *r = &p->records[k];
        if (r->is_memory || r->by_host || r->queue_id != q->id || r->serial != serial) continue;
        r->start = start;
        r->end = end;
        if (r->asked - start > p->shift) p->shift = r->asked - start;
        break;
    }
    while (p->first_open < p->n &&
           (p->records[p->first_open].is_memory || p->records[p->first_open].end >= 0))
        p->first_open++;
}

static bool is_done(const profile_record *r) { return r->is_memory || r->end >= 0; }

static double shift_of(const dev_profile *p) { return p && p->shift > -1e299 ? p->shift : 0; }

/* ---- sums ---- */

typedef struct span {
    double start, end; /* of the device's clock */
} span;

static int by_start(const void *a, const void *b)
{
    double x = ((const span *)a)->start, y = ((const span *)b)->start;
    return (x > y) - (x < y);
}

/* Span and busy time of the commands: intervals in order of their starts. */
static void sum_time(const dev_profile *p, ot_device_profile *out)
{
    span *sorted = malloc((p->n + 1) * sizeof *sorted);
    size_t n = 0;
    if (!sorted) return;
    for (size_t k = 0; k < p->n; k++) {
        const profile_record *r = &p->records[k];
        const double shift = r->by_host ? shift_of(p) : 0;
        if (!r->is_memory && is_done(r)) sorted[n++] = (span){r->start - shift, r->end - shift};
    }
    qsort(sorted, n, sizeof *sorted, by_start);
    double until = n ? sorted[0].start : 0;
    for (size_t k = 0; k < n; k++) {
        double from = sorted[k].start > until ? sorted[k].start : until;
        if (sorted[k].end <= from) continue;
        out->busy_seconds += sorted[k].end - from;
        until = sorted[k].end;
    }
    if (n) out->span_seconds = until - sorted[0].start;
    free(sorted);
}

ot_device_profile ot_device_profile_sum(ot_device *dev)
{
    ot_device_profile out = {0};
    dev_lock(dev);
    const dev_profile *p = dev->profile;
    out.usage = dev->usage;
    for (size_t k = 0; p && k < p->n; k++) {
        const profile_record *r = &p->records[k];
        if (r->is_memory || !is_done(r)) continue;
        out.work[r->work].n++;
        out.work[r->work].bytes += r->bytes;
        out.work[r->work].seconds += r->end - r->start;
        if (r->end > r->start)
            out.work[r->work].fastest = fmax(out.work[r->work].fastest,
                                             (double)r->bytes / (r->end - r->start));
    }
    if (p) sum_time(p, &out);
    dev_unlock(dev);
    return out;
}

/* The sum of that name, a new one behind the others where there is none. NULL: no memory. */
static ot_device_kernel_sum *sum_of(ot_device_kernel_sum **sums, uint32_t *n, size_t *cap,
                                    const char *name)
{
    for (uint32_t k = 0; k < *n; k++)
        if (strcmp((*sums)[k].name, name) == 0) return &(*sums)[k];
    if (*n == *cap) {
        size_t want = *cap ? *cap * 2 : 16;
        ot_device_kernel_sum *more = realloc(*sums, want * sizeof *more);
        if (!more) return NULL;
        *sums = more;
        *cap = want;
    }
    ot_device_kernel_sum *x = &(*sums)[(*n)++];
    *x = (ot_device_kernel_sum){0};
    memcpy(x->name, name, sizeof x->name);
    return x;
}

ot_device_kernel_sum *ot_device_profile_kernels(ot_device *dev, uint32_t *n)
{
    ot_device_kernel_sum *sums = NULL;
    size_t cap = 0;
    *n = 0;
    dev_lock(dev);
    const dev_profile *p = dev->profile;
    for (size_t k = 0; p && k < p->n; k++) {
        const profile_record *r = &p->records[k];
        if (r->is_memory || r->work != OT_DEV_WORK_KERNEL || !is_done(r)) continue;
        ot_device_kernel_sum *x = sum_of(&sums, n, &cap, r->name);
        if (!x) break;
        x->n++;
        x->bytes += r->bytes;
        x->seconds += r->end - r->start;
    }
    dev_unlock(dev);
    return sums;
}

/* ---- the measured peak ---- */

/* An upload, a download or a copy (what: 0, 1, 2) of the first part; of the best, its seconds. */
static ot_status time_one(ot_device *dev, ot_dev_queue q, int what, const ot_dev_slice part[2],
                          void *host, ot_device_error *e, double *seconds)
{
    ot_dev_event done;
    double start = ot_now();
    if (what == 0) OT_TRY(ot_dev_upload(dev, q, part[0], host, NULL, e, &done));
    if (what == 1) OT_TRY(ot_dev_download(dev, q, host, part[0], NULL, e, &done));
    if (what == 2) OT_TRY(ot_dev_copy(dev, q, part[1], part[0], NULL, e, &done));
    OT_TRY(ot_dev_wait(dev, done, e));
    double took = ot_now() - start;
    if (*seconds == 0 || took < *seconds) *seconds = took;
    return OT_OK;
}

ot_status ot_device_measure_bandwidth(ot_device *dev, ot_device_error *e, double out[3])
{
    ot_device_usage u = ot_device_use(dev);
    int64_t bytes = ot_max(4096, ot_min((int64_t)16 << 20, (u.budget - u.used) / 4));
    ot_dev_buffer a = {0}, b = {0};
    ot_dev_queue q = {0};
    void *host = calloc(1, (size_t)bytes);
    ot_status s = host ? ot_dev_queue_new(dev, e, &q) : dev_fail_host_memory(e);
    if (s == OT_OK)
        s = ot_dev_buffer_new(dev, &(ot_dev_buffer_options){.name = "bandwidth", .bytes = bytes}, e,
                              &a);
    if (s == OT_OK)
        s = ot_dev_buffer_new(dev, &(ot_dev_buffer_options){.name = "bandwidth", .bytes = bytes}, e,
                              &b);
    for (int what = 0; what < 3; what++) {
        double seconds = 0;
        for (int k = 0; k < 5 && s == OT_OK; k++)
            s = time_one(dev, q, what, (ot_dev_slice[]){ot_dev_whole(dev, a), ot_dev_whole(dev, b)},
                         host, e, &seconds);
        out[what] = seconds > 0 ? (double)bytes / seconds : 0;
    }
    if (q.id) ot_dev_queue_free(dev, q, NULL);
    if (a.id) ot_dev_buffer_free(dev, a, NULL);
    if (b.id) ot_dev_buffer_free(dev, b, NULL);
    free(host);
    return s;
}

/* ---- JSON ---- */

static void put_memory(const ot_device_profile *p, ot_json *j)
{
    ot_json_open(j, "memory");
    ot_json_put_int(j, "allocated", (int64_t)p->usage.n_allocated);
    ot_json_put_int(j, "freed", (int64_t)p->usage.n_freed);
    ot_json_put_int(j, "allocated_bytes", (int64_t)p->usage.bytes_allocated);
    ot_json_put_int(j, "freed_bytes", (int64_t)p->usage.bytes_freed);
    ot_json_put_int(j, "used_bytes", p->usage.used);
    ot_json_put_int(j, "peak_bytes", p->usage.peak);
    ot_json_put_int(j, "budget_bytes", p->usage.budget);
    ot_json_put_number(j, "allocate_seconds", p->usage.allocate_seconds);
    ot_json_close(j);
}

static void put_heap(const ot_dev_heap *h, ot_json *j)
{
    ot_dev_heap_stats s = ot_dev_heap_count(h);
    ot_json_open(j, NULL);
    ot_json_put_text(j, "name", ot_dev_heap_name(h));
    ot_json_put_int(j, "held_bytes", s.held);
    ot_json_put_int(j, "peak_bytes", s.peak);
    ot_json_put_int(j, "taken", (int64_t)s.n_taken);
    ot_json_put_int(j, "given", (int64_t)s.n_given);
    ot_json_close(j);
}

static void put_transfers(const ot_device_profile *p, const double *peak, ot_json *j)
{
    ot_json_list(j, "transfers");
    for (int k = 0; k < OT_DEV_WORK_KERNEL; k++) {
        double rate = p->work[k].seconds > 0 ? (double)p->work[k].bytes / p->work[k].seconds : 0;
        if (p->work[k].n == 0) continue;
        ot_json_open(j, NULL);
        ot_json_put_text(j, "direction", WORK_NAMES[k]);
        ot_json_put_int(j, "count", (int64_t)p->work[k].n);
        ot_json_put_int(j, "bytes", p->work[k].bytes);
        ot_json_put_number(j, "time_seconds", p->work[k].seconds);
        ot_json_put_figure(j, "bytes_per_second", rate);
        if (peak && k < 3 && peak[k] > 0) ot_json_put_number(j, "of_peak", rate / peak[k]);
        ot_json_close(j);
    }
    ot_json_close(j);
}

static void put_kernels(ot_device *dev, ot_json *j)
{
    uint32_t n;
    ot_device_kernel_sum *sums = ot_device_profile_kernels(dev, &n);
    ot_json_list(j, "kernels");
    for (uint32_t k = 0; k < n; k++) {
        ot_json_open(j, NULL);
        ot_json_put_text(j, "name", sums[k].name);
        ot_json_put_int(j, "count", (int64_t)sums[k].n);
        ot_json_put_int(j, "bytes", sums[k].bytes);
        ot_json_put_number(j, "time_seconds", sums[k].seconds);
        ot_json_close(j);
    }
    ot_json_close(j);
    free(sums);
}

void ot_device_profile_json(ot_device *dev, const ot_dev_heap *const *heaps, uint32_t n_heaps,
                            const double *peak, ot_json *j)
{
    ot_device_profile sum = ot_device_profile_sum(dev);
    put_memory(&sum, j);
    ot_json_list(j, "heaps");
    for (uint32_t k = 0; k < n_heaps; k++) put_heap(heaps[k], j);
    ot_json_close(j);
    put_transfers(&sum, peak, j);
    put_kernels(dev, j);
    ot_json_put_number(j, "span_seconds", sum.span_seconds);
    ot_json_put_number(j, "busy_seconds", sum.busy_seconds);
}

/* ---- the trace ---- */

static void trace_one(const profile_record *r, uint32_t process, double shift, double origin,
                      ot_trace_events *t)
{
    double start = (r->is_memory || r->by_host ? r->start : r->start + shift) - origin;
    if (r->is_memory) {
        ot_event curve = {.name = "device memory", .process = process, .start = start};
        ot_events_bytes(t, curve, r->used);
        return;
    }
    ot_event head = {r->name, WORK_NAMES[r->work], process, r->queue, start};
    ot_events_span(t, head, r->end - r->start);
    ot_json_put_int(&t->json, "bytes", r->bytes);
    ot_events_end(t);
}

static void trace_device(ot_device *dev, const char *name, uint32_t process, ot_trace_events *t)
{
    ot_events_name_process(t, process, name);
    dev_lock(dev);
    const dev_profile *p = dev->profile;
    /* the first may be a copy that was recorded when it was over */
    double origin = p && p->n ? p->records[0].asked : 0, shift = shift_of(p);
    if (p && p->n && p->records[0].by_host) origin = p->records[0].start;
    for (size_t k = 0; p && k < p->n; k++)
        if (is_done(&p->records[k])) trace_one(&p->records[k], process, shift, origin, t);
    dev_unlock(dev);
}

void ot_device_profile_trace(ot_device *const *devices, const char *const *names, uint32_t n,
                             FILE *f)
{
    ot_trace_events t;
    ot_events_open(&t, f);
    for (uint32_t k = 0; k < n; k++) trace_device(devices[k], names[k], k + 1, &t);
    ot_events_close(&t, 0);
}
