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
/* Where a form's own figures begin; what is before them, all forms share. */
#define OWN       offsetof(ot_region, form)
#define MOST_KEPT 200000u /* tilings; others are looked at again */

/* Of a large graph tilings are many: of a region's bytes those words are held that differ from
 * others, which are known; without any, those that are not 0. */
#define WORD  sizeof(uint64_t)
#define WORDS ((sizeof(ot_region) + WORD - 1) / WORD)
typedef struct packed {
    uint64_t differs; /* a bit for each word */
    uint64_t words[]; /* those that do */
} packed;
_Static_assert(sizeof(ot_region) % WORD == 0 && OWN % WORD == 0 && WORDS <= 64, "whole words");

/* A region in one form. */
typedef struct form_seen {
    struct form_seen *next;   /* the one before it, which it is packed against */
    ot_region_memory *memory; /* NULL: not known yet */
    const packed *own;        /* as estimated: forms compete so; NULL: not expressed by the form */
    uint8_t how, form;
} form_seen;

/* Which tiling it is. */
typedef struct tiling_key {
    uint32_t first, end, out_index;
    uint8_t n_dims;
    int8_t axes[OT_DIMS_MAX];
    int64_t tile[OT_DIMS_MAX];
} tiling_key;

struct ot_fitted {
    ot_fitted *next; /* of the same slot */
    uint64_t hash;
    form_seen *forms;
    tiling_key key;
    bool kept;           /* for the next plan, too */
    const packed *built; /* the region, as far as it is no form's */
};

/* n bytes at p, where `known` are; NULL: no memory. */
static packed *pack(ot_arena *a, const void *p, const void *known, size_t n)
{
    uint64_t words[WORDS], before[WORDS];
    uint32_t n_held = 0;
    memcpy(words, p, n);
    memcpy(before, known, n);
    for (size_t k = 0; k < n / WORD; k++) n_held += words[k] != before[k];
    packed *x = ot_alloc(a, sizeof *x + n_held * WORD);
    if (!x) return NULL;
    n_held = 0;
    for (size_t k = 0; k < n / WORD; k++) {
        if (words[k] == before[k]) continue;
        x->differs |= UINT64_C(1) << k;
        x->words[n_held++] = words[k];
    }
    return x;
}

/* p: what it was packed against, then what was packed. */
static void unpack(const packed *x, void *p)
{
    const uint64_t *word = x->words;
    for (uint64_t left = x->differs; left; left &= left - 1)
        memcpy((char *)p + (size_t)__builtin_ctzll(left) * WORD, word++, WORD);
}

static tiling_key key_of(const ot_choice *c)
{
    tiling_key k;
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
    const tiling_key key = key_of(c);
    const uint64_t hash = ot_hash_bytes(0, &key, sizeof key);
    ot_fitted *f = x->n_slots ? x->slots[hash & (x->n_slots - 1)] : NULL;
    while (f && (f->hash != hash || memcmp(&f->key, &key, sizeof key) != 0)) f = f->next;
    *out = f;
    if (f) return OT_OK;
    const bool keep = x->n < MOST_KEPT;
    f = OT_NEW(keep ? x->arena : s->arena, ot_fitted);
    if (!f || (keep && x->n >= x->n_slots && !grow(x))) return ot_fail_nomem(s->g->model->diag);
    f->hash = hash;
    f->kept = keep;
    f->key = key;
    ot_region built;
    OT_TRY(ot_region_build(s, w, c, x->store->arena, &built));
    const ot_region none = {0};
    f->built = pack(keep ? x->arena : s->arena, &built, &none, OWN);
    if (!f->built) return ot_fail_nomem(s->g->model->diag);
    if (keep) {
        f->next = x->slots[hash & (x->n_slots - 1)];
        x->slots[hash & (x->n_slots - 1)] = f;
        x->n++;
    }
    *out = f;
    return OT_OK;
}

void ot_fitted_built(const ot_fitted *f, ot_region *out)
{
    *out = (ot_region){.form = OT_FORM_NONE};
    unpack(f->built, out);
    out->first = f->key.first;
    out->last = f->key.end;
}

/* The figures of a form, at p, where those of k, and all before it, are known. */
static void unpack_own(const form_seen *k, void *p)
{
    if (!k) return;
    unpack_own(k->next, p);
    if (k->own) unpack(k->own, p);
}

/* *out: f's region in the form that was looked at. */
static void take_seen(const ot_fitted *f, const form_seen *k, ot_region *out)
{
    memset(out, 0, sizeof *out);
    unpack(f->built, out);
    unpack_own(k, (char *)out + OWN);
}

static form_seen *seen_as(const ot_fitted *f, ot_form form, unsigned how)
{
    for (form_seen *k = f->forms; k; k = k->next)
        if (k->form == (uint8_t)form && k->how == how) return k;
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
    k->next = f->forms;
    k->how = (uint8_t)how;
    k->form = (uint8_t)r->form;
    if (legal || r->memo) {
        char before[sizeof *r - OWN] = {0};
        unpack_own(k->next, before);
        k->own = pack(a, (const char *)r + OWN, before, sizeof before);
        if (!k->own) return ot_fail_nomem(s->g->model->diag);
    }
    f->forms = k;
    return OT_OK;
}

ot_status ot_fitted_form(ot_fitted_cache *x, const ot_seq *s, const ot_target *t, ot_fitted *f,
                         ot_form form, unsigned how, ot_region *out)
{
    const form_seen *known = seen_as(f, form, how);
    if (known && known->own) {
        take_seen(f, known, out);
        return OT_OK;
    }
    ot_fitted_built(f, out);
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
        ot_region seen;
        if (!memory) return ot_fail_nomem(s->g->model->diag);
        take_seen(f, k, &seen);
        OT_TRY(ot_region_plan_memory(s->g, &seen, t, s->g->model->diag, memory, NULL));
        k->memory = memory;
    }
    ot_region_take_memory(r, k->memory);
    return OT_OK;
}
