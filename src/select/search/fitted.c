/* Tilings of intervals as regions, looked at once for all plans of a graph.
 *
 * A goal, a budget, a price: none of them changes the region that a tiling makes, the forms that
 * express it, or what it takes in each. Plans that are made one after the other choose mostly the
 * same tilings.
 *
 *   tiling --> region --> form, with or without what stands beside its tiles --> figures
 *                                                                                 '--> memory
 *
 * Each is made when somebody asks for it. What regions point to belongs to a store that plans
 * hold, too.
 */
#include "search.h"

#include "tiling/forms.h"
#include "tiling/lower/lowering.h"

#define FIRST_SLOTS 256u
#define MOST_KEPT   200000u /* tilings; others are looked at again */

/* A region in one form. */
typedef struct form_seen {
    struct form_seen *next;
    unsigned how;
    ot_form form;
    ot_region *r;             /* as estimated: forms compete so; NULL: the form cannot express it */
    ot_region_memory *memory; /* NULL: not known yet */
} form_seen;

struct ot_fitted {
    ot_fitted *next; /* of the same slot */
    uint64_t hash;
    ot_choice c; /* as far as it says which tiling it is */
    bool kept;   /* for the next plan, too */
    ot_region built;
    form_seen *forms;
};

static ot_choice key_of(const ot_choice *c)
{
    ot_choice k;
    memset(&k, 0, sizeof k); /* its bytes are compared */
    k.first = c->first;
    k.end = c->end;
    k.n_dims = c->n_dims;
    k.out_index = c->out_index;
    for (uint32_t d = 0; d < c->n_dims; d++) k.axes[d] = c->axes[d], k.tile[d] = c->tile[d];
    return k;
}

static bool grow(ot_fitted_cache *x)
{
    const uint32_t n = x->n_slots ? 2 * x->n_slots : FIRST_SLOTS;
    ot_fitted **slots = OT_NEW_N(x->arena, ot_fitted *, n);
    if (!slots) return false;
    for (uint32_t k = 0; k < x->n_slots; k++)
        for (ot_fitted *f = x->slots[k], *next; f; f = next) {
            next = f->next;
            f->next = slots[f->hash & (n - 1)];
            slots[f->hash & (n - 1)] = f;
        }
    x->slots = slots;
    x->n_slots = n;
    return true;
}

ot_status ot_fitted_region(ot_fitted_cache *x, const ot_seq *s, ot_walk *w, const ot_choice *c,
                           ot_fitted **out)
{
    const ot_choice key = key_of(c);
    const uint64_t hash = ot_hash_bytes(0, &key, sizeof key);
    ot_fitted *f = x->n_slots ? x->slots[hash & (x->n_slots - 1)] : NULL;
    while (f && (f->hash != hash || memcmp(&f->c, &key, sizeof key) != 0)) f = f->next;
    *out = f;
    if (f) return OT_OK;
    const bool keep = x->n < MOST_KEPT;
    f = OT_NEW(keep ? x->arena : s->arena, ot_fitted);
    if (!f || (keep && x->n >= x->n_slots && !grow(x))) return ot_fail_nomem(s->g->model->diag);
    f->hash = hash;
    f->kept = keep;
    memcpy(&f->c, &key, sizeof key);
    OT_TRY(ot_region_build(s, w, c, x->store->arena, &f->built));
    if (keep) {
        f->next = x->slots[hash & (x->n_slots - 1)];
        x->slots[hash & (x->n_slots - 1)] = f;
        x->n++;
    }
    *out = f;
    return OT_OK;
}

const ot_region *ot_fitted_built(const ot_fitted *f) { return &f->built; }

static form_seen *seen_as(const ot_fitted *f, ot_form form, unsigned how)
{
    for (form_seen *k = f->forms; k; k = k->next)
        if (k->form == form && k->how == how) return k;
    return NULL;
}

/* Look at *r, which is f's region in a form nobody asked for yet, and keep what is seen. */
static ot_status look(ot_fitted_cache *x, const ot_seq *s, const ot_target *t, ot_fitted *f,
                      unsigned how, ot_region *r)
{
    ot_arena *a = f->kept ? x->arena : s->arena;
    ot_why why;
    bool legal;
    OT_TRY(ot_form_legal(s->g, r, r->form, t->runtime->cannot, &legal, &why));
    if (legal) OT_TRY(ot_region_exact(s, t, how, r));
    form_seen *k = OT_NEW(a, form_seen);
    if (!k) return ot_fail_nomem(s->g->model->diag);
    *k = (form_seen){.next = f->forms, .how = how, .form = r->form};
    if (legal || r->memo) k->r = ot_memdup(a, r, sizeof *r);
    if ((legal || r->memo) && !k->r) return ot_fail_nomem(s->g->model->diag);
    f->forms = k;
    return OT_OK;
}

ot_status ot_fitted_form(ot_fitted_cache *x, const ot_seq *s, const ot_target *t, ot_fitted *f,
                         ot_form form, unsigned how, ot_region *out)
{
    const form_seen *known = seen_as(f, form, how);
    if (known && known->r) {
        *out = *known->r;
        return OT_OK;
    }
    *out = f->built;
    out->form = form;
    out->in_classes = form == OT_FORM_STREAM && ot_runtime_in_classes(t->runtime);
    out->time_tiled = -1;
    return known ? OT_OK : look(x, s, t, f, how, out);
}

ot_status ot_fitted_memory(ot_fitted_cache *x, const ot_seq *s, const ot_target *t, ot_fitted *f,
                           unsigned how, ot_region *r)
{
    form_seen *k = seen_as(f, r->form, how);
    if (!k->memory) {
        ot_region_memory *memory = OT_NEW(f->kept ? x->arena : s->arena, ot_region_memory);
        if (!memory) return ot_fail_nomem(s->g->model->diag);
        OT_TRY(ot_region_plan_memory(s->g, k->r, t, s->g->model->diag, memory, NULL));
        k->memory = memory;
    }
    ot_region_take_memory(r, k->memory);
    return OT_OK;
}
