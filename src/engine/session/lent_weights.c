/* Constants whose contents were lent, in memory that its owner takes back when the session is made.
 *
 *   what was packed             nobody reads it any more: forgotten
 *   what steps read as it is    copied, once; arrays that lie in it, views among them, move along
 *
 * Small constants are not lent (docs/provider.md), so what kernels keep pointers to beside their
 * operands, as biases and scales, stays where it is; of products' panels the address is kept, too.
 */
#include "session_make.h"

#include "engine/cpu/product/fast_product.h"
#include "engine/lower/lower.h"

#include "onnx/import/model_io.h"

/* A piece of lent memory that is read. */
typedef struct adopted {
    ot_lent from;
    char *to;
} adopted;

typedef struct adopting {
    ot_session *s;
    ot_arena *a;
    adopted *all; /* [n] sorted by address */
    size_t n, cap;
} adopting;

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const adopted *)a)->from.data,
                    y = (uintptr_t)((const adopted *)b)->from.data;
    return (x > y) - (x < y);
}

static void free_block(void *block) { ot_block_unref(block); }

/* ---- what is read ---- */

static bool add_read(adopting *w, const ot_nd *a)
{
    adopted x = {0};
    if (!a || a->block || !a->data || !ot_import_lent_at(w->s->m, a->data, &x.from)) return true;
    return OT_PUSH(w->a, w->all, w->n, w->cap, x);
}

static bool find_read(adopting *w)
{
    size_t kept = 0;
    for (const ot_schedule *p = w->s->all; p; p = p->next) {
        for (uint32_t k = 0; k < p->n_steps; k++)
            for (uint32_t j = 0; j < p->steps[k].n_in; j++)
                if (!ot_reads_panels(&p->steps[k], j) && !add_read(w, p->steps[k].in[j]))
                    return false;
        for (uint32_t k = 0; k < p->g->n_outputs; k++)
            if (!add_read(w, &p->at[p->g->outputs[k]]->nd)) return false;
    }
    if (w->n) qsort(w->all, w->n, sizeof *w->all, by_address);
    for (size_t k = 0; k < w->n; k++)
        if (kept == 0 || w->all[kept - 1].from.data != w->all[k].from.data)
            w->all[kept++] = w->all[k];
    w->n = kept;
    return true;
}

static ot_status copy_read(adopting *w)
{
    for (size_t k = 0; k < w->n; k++) {
        adopted *x = &w->all[k];
        ot_block *block = ot_block_new(NULL, x->from.bytes);
        if (!block) return ot_fail_nomem(w->s->d);
        x->to = ot_block_data(block);
        memcpy(x->to, x->from.data, x->from.bytes);
        OT_TRY(ot_packed_keep(w->s, x->to, 0, block, free_block));
    }
    return OT_OK;
}

/* ---- moving ---- */

/* Where contents are now; NULL: nowhere. */
static const void *moved(const adopting *w, const void *data)
{
    adopted key = {0};
    if (!data || !ot_import_lent_at(w->s->m, data, &key.from)) return data;
    const adopted *x = w->n ? bsearch(&key, w->all, w->n, sizeof key, by_address) : NULL;
    return x ? x->to + ((const char *)data - (const char *)key.from.data) : NULL;
}

static void move_slots(const adopting *w, ot_schedule *p)
{
    for (uint32_t k = 0; k < p->n_ids; k++) {
        ot_slot *slot = p->at[k];
        if (slot && !slot->nd.block) slot->nd.data = (void *)(uintptr_t)moved(w, slot->nd.data);
    }
    for (ot_id v = 0; v < p->g->n_values; v++) {
        ot_tensor *t = (ot_tensor *)(uintptr_t)p->g->values[v].init;
        const void *was = t ? t->data : NULL;
        if (!was) continue;
        t->data = moved(w, was);
        if (!t->data && p == p->s->top) p->s->figures.weight_bytes -= (int64_t)t->bytes;
    }
    for (uint32_t k = 0; k < p->n_steps; k++) {
        ot_product_panels *panels = p->steps[k].state.data;
        if (ot_reads_panels(&p->steps[k], 1)) panels->from = moved(w, panels->from);
    }
}

ot_status ot_adopt_lent(ot_session *s)
{
    adopting w = {.s = s, .a = ot_arena_new()};
    ot_status st = w.a && find_read(&w) ? copy_read(&w) : ot_fail_nomem(s->d);
    for (ot_schedule *p = s->all; st == OT_OK && p; p = p->next) move_slots(&w, p);
    ot_arena_free(w.a);
    return st;
}
