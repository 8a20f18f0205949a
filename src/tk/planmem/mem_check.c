/* The validator of memory plans. It looks at the plan and at the live spans, compares all pairs,
 * and shares no code with the planners, so that a mistake there cannot hide here. Every rule has
 * a reason of its own. */
#include "planmem.h"

typedef struct check {
    const ot_kernel *k;
    const ot_mem_plan *p;
    ot_diag *d;
} check;

static const char *name_of(const check *c, uint32_t i)
{
    return c->k->values[c->p->lifetimes->buffers[i].values[0]].name;
}

static ot_status broken(const check *c, uint32_t i, uint32_t slot, const char *rule)
{
    return ot_fail(c->d, OT_E_INPUT, "memory plan check: buffer '%s' slot %u: %s", name_of(c, i),
                   slot, rule);
}

/* One buffer: slot count, alignment, fixed offsets, limits, and its slots among themselves. */
static ot_status check_buffer(const check *c, uint32_t i)
{
    const ot_buffer *b = &c->p->lifetimes->buffers[i];
    const int64_t *at = c->p->offsets[i];
    const ot_scope_plan *s = NULL;
    if (!ot_mem_plans(c->p->part, b->scope))
        return c->p->multi[i] == 0 ? OT_OK
                                   : broken(c, i, 0, "planned in a memory that stays as it is");
    for (uint32_t q = 0; q < c->p->n_scopes; q++)
        if (c->p->scopes[q].scope == b->scope) s = &c->p->scopes[q];
    if (!s) return broken(c, i, 0, "its scope is not planned");
    if (c->p->multi[i] < b->multi || c->p->multi[i] > OT_TK_MULTI_MAX)
        return broken(c, i, 0, "wrong number of slots");
    for (uint32_t k = 0; k < OT_TK_MULTI_MAX; k++) {
        if (k >= c->p->multi[i]) {
            if (at[k] != -1) return broken(c, i, k, "offset beyond the slots");
            continue;
        }
        if (at[k] < 0) return broken(c, i, k, "no offset");
        if (b->n_live == 0) continue;
        if (at[k] % b->align != 0) return broken(c, i, k, "not aligned");
        if (k < b->multi && b->fixed[k] >= 0 && b->fixed[k] != at[k])
            return broken(c, i, k, "fixed offset moved");
        if (at[k] > INT64_MAX - b->size || at[k] + b->size > s->height)
            return broken(c, i, k, "above the height of the scope");
        if (s->capacity > 0 && at[k] + b->size > s->capacity)
            return broken(c, i, k, "above the capacity of the scope");
        for (uint32_t q = 0; q < k; q++)
            if (at[q] < at[k] + b->size && at[k] < at[q] + b->size)
                return broken(c, i, k, "overlaps another slot of the buffer");
    }
    return OT_OK;
}

static bool alive_together(const ot_buffer *a, const ot_buffer *b)
{
    for (uint32_t x = 0; x < a->n_live; x++)
        for (uint32_t y = 0; y < b->n_live; y++)
            if (a->live[x].lower < b->live[y].upper && b->live[y].lower < a->live[x].upper)
                return true;
    return false;
}

static ot_status check_pair(const check *c, uint32_t i, uint32_t j)
{
    const ot_buffer *a = &c->p->lifetimes->buffers[i], *b = &c->p->lifetimes->buffers[j];
    if (a->scope != b->scope || !alive_together(a, b)) return OT_OK;
    for (uint32_t x = 0; x < c->p->multi[i]; x++)
        for (uint32_t y = 0; y < c->p->multi[j]; y++) {
            int64_t pa = c->p->offsets[i][x], pb = c->p->offsets[j][y];
            if (pa < pb + b->size && pb < pa + a->size)
                return ot_fail(
                    c->d, OT_E_INPUT,
                    "memory plan check: buffers '%s' and '%s' overlap while both are alive",
                    name_of(c, i), name_of(c, j));
        }
    return OT_OK;
}

ot_status ot_mem_plan_check(const ot_kernel *k, const ot_mem_plan *p, ot_diag *d)
{
    check c = {k, p, d};
    for (uint32_t i = 0; i < p->lifetimes->n_buffers; i++) {
        OT_TRY(check_buffer(&c, i));
        for (uint32_t j = 0; j < i; j++) OT_TRY(check_pair(&c, j, i));
    }
    return OT_OK;
}
