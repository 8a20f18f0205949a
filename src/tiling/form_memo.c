/* Prepared tiles of regions that are written again and again, with others each time.
 *
 *   set 1    r1  r2          windows of r1, r2: computed
 *   set 2    r1      r3      of r3: computed; of r1: as before
 *
 * They follow from the region and the graph as it was planned, whatever else is tiled.
 */
#include "forms.h"

#define MOST_HELD ((size_t)2 << 20) /* bytes; what comes later is computed each time */

typedef struct prepared {
    uint64_t key;
    bool legal;
    ot_why why;
    ot_dim_runs dims[OT_DIMS_MAX];
    ot_arena *arena; /* they are in it */
} prepared;

struct ot_form_memo {
    ot_arena *a;
    prepared *all; /* [n] */
    size_t n, cap, held;
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

ot_status ot_form_recall(ot_form_memo *m, ot_form_tiles *t, ot_form f, bool *legal, ot_why *why)
{
    if (!m || m->held > MOST_HELD) return ot_form_prepare(t, f, legal, why);
    prepared x = {.key = key_of(t->r, f), .why = *why};
    for (size_t k = 0; k < m->n; k++) {
        if (m->all[k].key != x.key) continue;
        memcpy(t->dims, m->all[k].dims, sizeof t->dims);
        *legal = m->all[k].legal;
        *why = m->all[k].why;
        return OT_OK;
    }
    ot_region alone = *t->r;
    alone.memo = NULL; /* its arena may go first */
    ot_form_tiles kept = {.g = t->g, .r = &alone, .arena = ot_arena_new()};
    x.arena = kept.arena;
    const ot_status s = x.arena ? ot_form_prepare(&kept, f, &x.legal, &x.why) : OT_E_NOMEM;
    memcpy(x.dims, kept.dims, sizeof x.dims);
    memcpy(t->dims, kept.dims, sizeof t->dims);
    *legal = x.legal;
    *why = x.why;
    if (s == OT_OK && OT_PUSH(m->a, m->all, m->n, m->cap, x)) {
        m->held += ot_arena_bytes(x.arena);
        return OT_OK;
    }
    ot_arena_free(x.arena);
    return s == OT_OK ? OT_E_NOMEM : s;
}
