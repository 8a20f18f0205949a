/* What sessions of one model share: packed weights. They are found by the address of the contents
 * that they were made of, so only those are taken whose contents stay where they are: the
 * model's, and packed ones. What a session computed itself from constants is given back when it is
 * packed, and something else may lie there then.
 */
#include "engine/core/session_beside.h"

#include "session_make.h"

typedef struct sources {
    const void **all; /* [n] sorted */
    size_t n, cap;
} sources;

static int compare(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (const void *const *)a,
                    y = (uintptr_t) * (const void *const *)b;
    return (x > y) - (x < y);
}

static bool find_sources(const ot_session *of, ot_arena *a, sources *x)
{
    for (const ot_schedule *p = of->all; p; p = p->next)
        for (ot_id v = 0; v < p->g->n_values; v++) {
            const ot_tensor *t = p->g->values[v].init;
            if (t && t->data && !OT_PUSH(a, x->all, x->n, x->cap, t->data)) return false;
        }
    for (const ot_packed *k = of->packed; k; k = k->next)
        if (!OT_PUSH(a, x->all, x->n, x->cap, k->data)) return false;
    if (x->n) qsort(x->all, x->n, sizeof *x->all, compare);
    return true;
}

/* They are the other session's. */
static void keep(void *data) { (void)data; }

ot_status ot_session_borrow(ot_session *s, const ot_session *of)
{
    ot_arena *a = ot_arena_new();
    sources x = {0};
    ot_status st = a && find_sources(of, a, &x) ? OT_OK : ot_fail_nomem(s->d);
    for (const ot_packed *k = of->packed; st == OT_OK && k; k = k->next)
        if (x.n && bsearch(&k->source, x.all, x.n, sizeof *x.all, compare))
            st = ot_packed_keep(s, k->source, k->form, k->data, keep);
    ot_arena_free(a);
    s->winograd_growth = of->winograd_growth; /* what did not fit there does not fit here */
    return st;
}

ot_status ot_session_new_beside(ot_session *of, const ot_session_options *o, ot_diag *d,
                                ot_session **out)
{
    return ot_session_make(of->m, o, of, d, out);
}
