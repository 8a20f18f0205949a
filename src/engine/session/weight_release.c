/* Weights are held once: what only packed copies are read of is given back.
 *
 *   while schedules are made   initializer --ot_packed_later--> memory of the packed form, not
 *                             written yet: no page of it exists
 *   when all are made         largest first:  initializer --fill--> packed form;  initializer's
 *                             contents given back
 *
 * So at no time do more weights lie in memory than the larger of the model's and the packed
 * ones, and one layer's more. That all schedules are made before the first is filled also says
 * who reads what: a constant is of no more use when no step of any schedule has its contents
 * among its operands and no graph hands it out. What was computed from constants (folded) is the
 * session's own; contents that came with the model are given back only if the caller said so
 * (ot_session_options.releases); so is what was lent (lent_weights.c).
 */
#include "session_make.h"

#include "engine/lower/lower.h"

#include "base/watch.h"
#include "onnx/import/model_io.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#define SMALL ((int64_t)16 << 10) /* bytes that are not worth giving back */

/* A constant that no step reads; several may be views of the same contents. */
typedef struct idle {
    const void *data;
    int64_t bytes;
    ot_slot *slot;
    ot_tensor *tensor; /* initializer whose contents it is, and that may be given back; else NULL */
} idle;

/* A packed form to be filled. */
typedef struct job {
    ot_packed *packed;
    int64_t bytes; /* that will be given back when all forms of its source are filled */
} job;

typedef struct settling {
    ot_session *s;
    ot_arena *a;
    const void **read; /* [n_read] sorted: contents that steps read */
    size_t n_read, cap_read;
    idle *idle; /* [n_idle] sorted by contents */
    size_t n_idle, cap_idle;
    job *jobs; /* [n_jobs] those that are filled one after another */
    size_t n_jobs, cap_jobs;
} settling;

static int compare_addresses(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const void *const *)a, y = (uintptr_t) * (const void *const *)b;
    return (x > y) - (x < y);
}

static int compare_idle(const void *a, const void *b)
{
    return compare_addresses(&((const idle *)a)->data, &((const idle *)b)->data);
}

/* The largest source first, and forms of one source together. */
static int compare_jobs(const void *a, const void *b)
{
    const job *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return compare_addresses(&x->packed->source, &y->packed->source);
}

/* ---- who reads what ---- */

static bool add_read(settling *w, const ot_nd *a)
{
    return !a || !a->data || OT_PUSH(w->a, w->read, w->n_read, w->cap_read, a->data);
}

/* Contents that schedules read; nothing but constants has any yet. */
static bool find_read(settling *w)
{
    for (const ot_schedule *p = w->s->all; p; p = p->next) {
        for (uint32_t k = 0; k < p->n_steps; k++)
            for (uint32_t j = 0; j < p->steps[k].n_in; j++)
                if (!ot_reads_panels(&p->steps[k], j) && !add_read(w, p->steps[k].in[j]))
                    return false;
        for (uint32_t k = 0; k < p->g->n_outputs; k++)
            if (!add_read(w, &p->at[p->g->outputs[k]]->nd)) return false;
    }
    if (w->n_read) qsort(w->read, w->n_read, sizeof *w->read, compare_addresses);
    return true;
}

static bool is_read(const settling *w, const void *data)
{
    return w->n_read && bsearch(&data, w->read, w->n_read, sizeof *w->read, compare_addresses);
}

static bool find_idle(settling *w)
{
    ot_session *s = w->s;
    ot_lent lent;
    for (ot_schedule *p = s->all; p; p = p->next)
        for (ot_id v = 0; v < p->g->n_values; v++) {
            ot_slot *slot = &p->slots[v];
            idle i = {.data = slot->nd.data, .slot = slot};
            if (!slot->is_const || !i.data || !ot_nd_span(&slot->nd, &i.bytes) || i.bytes < SMALL ||
                is_read(w, i.data))
                continue;
            const ot_tensor *t = p == s->top ? p->g->values[v].init : NULL;
            if (s->releases && t && t->data == i.data && !ot_import_lent_at(s->m, t->data, &lent))
                i.tensor = (ot_tensor *)(uintptr_t)t;
            if (!OT_PUSH(w->a, w->idle, w->n_idle, w->cap_idle, i)) return false;
        }
    if (w->n_idle) qsort(w->idle, w->n_idle, sizeof *w->idle, compare_idle);
    return true;
}

/* Those with these contents: *n of them, or NULL. */
static idle *idle_of(const settling *w, const void *data, size_t *n)
{
    idle key = {.data = data},
         *found = w->n_idle ? bsearch(&key, w->idle, w->n_idle, sizeof key, compare_idle) : NULL;
    *n = 0;
    if (!found) return NULL;
    while (found > w->idle && found[-1].data == data) found--;
    while (found + *n < w->idle + w->n_idle && found[*n].data == data) ++*n;
    return found;
}

/* ---- filling and giving back ---- */

/* Are these contents in memory that nobody else looks at: may they be overwritten before they
 * are given back? */
static bool is_own(const idle *i, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (i[k].slot->nd.block || (i[k].tensor && ot_tensor_is_own(i[k].tensor))) return true;
    return false;
}

/* Give back contents; views of them become empty. */
static void release(ot_session *s, idle *i, size_t n)
{
    bool gone = false;
    for (size_t k = 0; k < n; k++) {
        bool block = i[k].slot->nd.block,
             tensor = !block && i[k].tensor && ot_tensor_release(i[k].tensor);
        const ot_nd shape = i[k].slot->nd; /* implementations of panels look at it */
        if (block) ot_nd_release(&i[k].slot->nd);
        if (block) ot_nd_set_dense(&i[k].slot->nd, shape.dtype, shape.rank, shape.dims);
        if ((block || tensor) && !gone) s->figures.weight_bytes -= i[k].bytes;
        gone = gone || block || tensor;
    }
    for (size_t k = 0; gone && k < n; k++) i[k].slot->nd.data = NULL;
}

static bool find_jobs(settling *w)
{
    for (ot_packed *k = w->s->packed; k; k = k->next) {
        size_t n = 0;
        idle *i = k->fill ? idle_of(w, k->source, &n) : NULL;
        job j = {k, i ? i->bytes : 0};
        if (k->fill && !OT_PUSH(w->a, w->jobs, w->n_jobs, w->cap_jobs, j)) return false;
    }
    if (w->n_jobs) qsort(w->jobs, w->n_jobs, sizeof *w->jobs, compare_jobs);
    return true;
}

static bool is_awaited(const settling *w, const void *data)
{
    for (const ot_packed *k = w->s->packed; k; k = k->next)
        if (k->fill && k->source == data) return true;
    return false;
}

/* What no form is made of any more. */
static void release_unused(settling *w)
{
    for (size_t k = 0, n; k < w->n_idle; k += n) {
        idle *i = idle_of(w, w->idle[k].data, &n);
        const void *data = i->data;
        if (is_awaited(w, data)) continue;
        release(w->s, i, n);
        if (w->s->releases) ot_return_lent(w->s, data);
    }
}

static ot_status fill_all(settling *w)
{
    ot_session *s = w->s;
    for (size_t k = 0; k < w->n_jobs; k++) {
        ot_packed *packed = w->jobs[k].packed;
        const void *source = packed->source;
        bool last = k + 1 == w->n_jobs || w->jobs[k + 1].packed->source != source;
        size_t n;
        idle *i = idle_of(w, source, &n);
        OT_TRY(ot_watch_look(s->d));
        OT_TRY(packed->fill(s, packed, last && is_own(i, n)));
        packed->fill = NULL;
        if (last) release(s, i, n);
        if (last && s->releases) ot_return_lent(s, source);
    }
    return OT_OK;
}

ot_status ot_finish_weights(ot_session *s)
{
    settling w = {.s = s};
    OT_TRY(ot_pack_products(s));
    w.a = ot_arena_new();
    bool found = w.a && find_read(&w) && find_idle(&w) && find_jobs(&w);
    if (found) release_unused(&w);
    ot_status st = found ? fill_all(&w) : ot_fail_nomem(s->d);
    ot_arena_free(w.a);
    if (st == OT_OK && s->releases) st = ot_adopt_lent(s);
    if (st == OT_OK) ot_point_at_panels(s);
#ifdef __GLIBC__
    if (st == OT_OK && s->releases)
        (void)malloc_trim(0); /* small contents lie between what stays */
#endif
    return st;
}
