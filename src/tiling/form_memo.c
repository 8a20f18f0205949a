/* Prepared tiles of regions that are written again and again, with others each time.
 *
 *   set 1    r1  r2          windows of r1, r2: computed
 *   set 2    r1      r3      of r3: computed; of r1: as before
 *   set 3    r1  r4          of r4: computed; r2 was not in the set before: where much is held, its
 *                            windows are gone
 *
 * They follow from the region and the graph as it was planned, whatever else is tiled.
 */
#include "forms.h"

#define MOST_HELD ((size_t)4 << 20) /* bytes; what is more is computed and not kept */

typedef struct prepared {
    bool legal;
    ot_why why;
    ot_dim_runs dims[OT_DIMS_MAX];
    ot_arena *arena; /* they are in it */
    uint32_t set;    /* that had it last */
} prepared;

struct ot_form_memo {
    ot_arena *a;
    uint64_t *keys; /* [n] of all */
    prepared *all;  /* [n] */
    size_t n, n_keys, cap, cap_keys, held;
    uint32_t set; /* at hand */
};

ot_form_memo *ot_form_memo_new(ot_arena *a)
{
    ot_form_memo *m = OT_NEW(a, ot_form_memo);
    if (m) m->a = a;
    return m;
}

void ot_form_memo_free(ot_form_memo *m)
{
    for (size_t k = 0; m && k < m->n; k++) ot_arena_free(m->all[k].arena);
}

void ot_form_memo_next(ot_form_memo *m)
{
    size_t kept = 0;
    if (!m) return;
    const uint32_t last = m->set++;
    if (m->held <= MOST_HELD) return;
    for (size_t k = 0; k < m->n; k++) {
        if (m->all[k].set == last) {
            m->keys[kept] = m->keys[k];
            m->all[kept++] = m->all[k];
            continue;
        }
        m->held -= ot_arena_bytes(m->all[k].arena);
        ot_arena_free(m->all[k].arena);
    }
    m->n = m->n_keys = kept;
}

/* Of all that the tiles follow from. */
static uint64_t key_of(const ot_region *r, ot_form f)
{
    const uint32_t counts[] = {r->n_nodes,  r->n_values, r->n_inputs,   r->n_dims,
                               (uint32_t)f, r->rolling,  r->in_classes, (uint32_t)r->form};
    uint64_t key = ot_hash_bytes(0, counts, sizeof counts);
    for (uint32_t d = 0; d < r->n_dims; d++) {
        const int64_t dim[] = {r->dims[d].n_tiles, r->dims[d].extent, r->dims[d].tile,
                               r->dims[d].sink};
        key = ot_hash_bytes(key, dim, sizeof dim);
    }
    for (uint32_t k = 0; k < r->n_nodes; k++) {
        const ot_rnode *n = &r->nodes[k];
        key = ot_hash_bytes(key, &n->node, sizeof n->node);
        key = ot_hash_bytes(key, n->lead_out, sizeof n->lead_out);
        key = ot_hash_bytes(key, n->lead_axis, sizeof n->lead_axis);
    }
    for (uint32_t k = 0; k < r->n_values; k++) {
        const ot_rvalue *v = &r->values[k];
        const uint32_t of[] = {v->value, v->node, v->is_output};
        key = ot_hash_bytes(key, of, sizeof of);
        key = ot_hash_bytes(key, v->axis, sizeof v->axis);
    }
    return key;
}

/* The tiles of t->r, prepared in an arena of their own. */
static ot_status prepare(const ot_form_tiles *t, ot_form f, prepared *x)
{
    ot_region alone = *t->r;
    alone.memo = NULL; /* its arena may go first */
    ot_form_tiles own = {.g = t->g, .r = &alone, .arena = ot_arena_new()};
    if (!own.arena) return ot_fail_nomem(t->g->model->diag);
    x->arena = own.arena;
    const ot_status s = ot_form_prepare(&own, f, &x->legal, &x->why);
    memcpy(x->dims, own.dims, sizeof x->dims);
    if (s != OT_OK) ot_arena_free(own.arena);
    return s;
}

static ot_status keep(ot_form_memo *m, uint64_t key, const prepared *x, ot_diag *d)
{
    if (OT_PUSH(m->a, m->keys, m->n_keys, m->cap_keys, key)) {
        if (OT_PUSH(m->a, m->all, m->n, m->cap, *x)) {
            m->held += ot_arena_bytes(x->arena);
            return OT_OK;
        }
        m->n_keys--;
    }
    ot_arena_free(x->arena);
    return ot_fail_nomem(d);
}

ot_status ot_form_recall(ot_form_memo *m, ot_form_tiles *t, ot_form f, bool *legal, ot_why *why)
{
    if (!m) return ot_form_prepare(t, f, legal, why);
    const uint64_t key = key_of(t->r, f);
    size_t at = 0;
    while (at < m->n && m->keys[at] != key) at++;
    if (at == m->n) {
        if (m->held > MOST_HELD) return ot_form_prepare(t, f, legal, why);
        prepared x = {.why = *why};
        OT_TRY(prepare(t, f, &x));
        OT_TRY(keep(m, key, &x, t->g->model->diag));
    }
    m->all[at].set = m->set;
    memcpy(t->dims, m->all[at].dims, sizeof t->dims);
    *legal = m->all[at].legal;
    *why = m->all[at].why;
    return OT_OK;
}
