/* Groups of element-wise nodes that become one pass over memory.
 *
 *   a = x + b        a group grows node by node; all it makes has one shape. It stands where its
 *                    last node stood, so
 *   s = sigmoid(a)   a node may only join if nobody outside reads anything of the group before that
 *                    place:
 *   y = a * s
 *   z = Conv(s)      fine (reads s after y)           a Conv(a) between s and y would end the group
 *
 * A node that reads several groups joins them to one.
 */
#include "fusion.h"

#define JOINED_MAX 8 /* groups that one node joins */

typedef struct search {
    const ot_group_view *v;
    ot_group *groups; /* [n] */
    uint32_t *into;   /* [n] the group that it became part of; OT_NONE: it stands for itself */
    uint32_t n;
    uint32_t *of_place; /* [v n] group, or OT_NONE */
} search;

static uint32_t group_of(const search *s, uint32_t place)
{
    uint32_t g = place == OT_NONE ? OT_NONE : s->of_place[place];
    while (g != OT_NONE && s->into[g] != OT_NONE) g = s->into[g];
    return g;
}

/* Does somebody outside of the groups in `list` read value x before `place`? */
static bool read_early(const search *s, ot_id x, const uint32_t *list, uint32_t n, uint32_t place)
{
    uint32_t n_readers;
    const uint32_t *readers = s->v->readers(s->v->of, x, &n_readers);
    for (uint32_t k = 0; k < n_readers; k++) {
        if (readers[k] >= place) continue;
        uint32_t g = group_of(s, readers[k]);
        bool inside = false;
        for (uint32_t j = 0; j < n; j++) inside = inside || (g != OT_NONE && list[j] == g);
        if (!inside) return true;
    }
    return false;
}

/* Nothing of that group is read early. */
static bool may_wait(const search *s, uint32_t group, const uint32_t *list, uint32_t n,
                     uint32_t place)
{
    const ot_group *x = &s->groups[group];
    for (uint32_t k = 0; k < x->n; k++)
        if (read_early(s, s->v->node(s->v->of, x->parts[k].place)->out[0], list, n, place))
            return false;
    return true;
}

/* Groups of the makers of operands that the node may join, into list. */
static uint32_t joinable(const search *s, uint32_t place, uint32_t *list)
{
    uint32_t n = 0, total = 1, n_in;
    const ot_id *in = s->v->operands(s->v->of, place, &n_in);
    ot_id made = s->v->node(s->v->of, place)->out[0];
    for (uint32_t k = 0; k < n_in && n < JOINED_MAX; k++) {
        uint32_t g = in[k] == OT_NONE ? OT_NONE : group_of(s, s->v->maker(s->v->of, in[k]));
        bool known = g == OT_NONE || !ot_group_same_dims(s->v, in[k], made);
        for (uint32_t j = 0; j < n; j++) known = known || list[j] == g;
        if (known || total + s->groups[g].n > OT_GROUP_PARTS) continue;
        total += s->groups[g].n;
        list[n++] = g;
    }
    for (uint32_t j = 0; j < n;) { /* a group that is left out may be the early reader of another */
        if (may_wait(s, list[j], list, n, place)) {
            j++;
            continue;
        }
        list[j] = list[--n];
        j = 0;
    }
    return n;
}

static int by_place(const void *a, const void *b)
{
    uint32_t x = ((const ot_group_part *)a)->place, y = ((const ot_group_part *)b)->place;
    return (x > y) - (x < y);
}

static void join(search *s, uint32_t place, const uint32_t *list, uint32_t n)
{
    uint32_t g = n ? list[0] : s->n++;
    ot_group *to = &s->groups[g];
    if (n == 0) {
        *to = (ot_group){.kind = OT_GROUP_CHAIN, .result = OT_NONE, .residual = OT_NONE};
        s->into[g] = OT_NONE;
    }
    for (uint32_t k = 1; k < n; k++) {
        ot_group *from = &s->groups[list[k]];
        memcpy(to->parts + to->n, from->parts, from->n * sizeof *from->parts);
        to->n += from->n;
        s->into[list[k]] = g;
    }
    to->parts[to->n++] = (ot_group_part){place, OT_ROLE_ELEMENT};
    qsort(to->parts, to->n, sizeof *to->parts, by_place);
    s->of_place[place] = g;
}

ot_status ot_group_chains(const ot_group_view *v, const ot_group_rules *r, ot_arena *a, ot_diag *d,
                          ot_group_list *out)
{
    ot_group none = {.kind = OT_GROUP_CHAIN, .result = OT_NONE, .residual = OT_NONE};
    search s = {.v = v};
    uint32_t list[JOINED_MAX], elements = 0;
    s.of_place = OT_NEW_N(a, uint32_t, v->n + 1u);
    bool *takes = OT_NEW_N(a, bool, v->n + 1u);
    if (!s.of_place || !takes) return ot_fail_nomem(d);
    for (uint32_t p = 0; p < v->n; p++) {
        takes[p] = v->node(v->of, p) && r->supported(r->ctx, v, &none, p, OT_ROLE_ELEMENT);
        s.of_place[p] = OT_NONE;
        elements += takes[p];
    }
    s.groups = OT_NEW_N(a, ot_group, elements + 1u);
    s.into = OT_NEW_N(a, uint32_t, elements + 1u);
    if (!s.groups || !s.into) return ot_fail_nomem(d);
    for (uint32_t p = 0; p < v->n; p++)
        if (takes[p]) join(&s, p, list, joinable(&s, p, list));
    *out = (ot_group_list){.groups = s.groups};
    for (uint32_t g = 0; g < s.n; g++)
        if (s.into[g] == OT_NONE) s.groups[out->n++] = s.groups[g];
    return OT_OK;
}
