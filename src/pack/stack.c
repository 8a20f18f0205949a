/* Items on top of what is placed: each above all that is alive together with it.
 *
 *   offset ^        +-------+              tops, by moments:  0  0  3  3  3  1  1
 *          |  +--+  |   b   |
 *          |  | a|  +---+---+  c, alive     a tree over the moments knows the highest top of
 *          |  |  |  |   |      here, lies   ranges of them
 *          +--+--+--+---+-----> on b
 *                      time
 *
 * No hole is looked for, so an item takes the logarithm of the moments, however many others are
 * alive: what is left of a large problem when its time is over.
 */
#include "improve.h"

/* Of a range of moments: the highest top in it, and a top that all of it has at least. */
typedef struct range {
    int64_t most, all;
} range;

typedef struct stack {
    range *tree; /* [4 * n_moments] node k has children 2k and 2k + 1 */
    uint32_t n_moments;
} stack;

/* A node of the tree: moments [first, last). */
typedef struct span {
    uint32_t node, first, last;
} span;

static span child(span s, uint32_t which)
{
    const uint32_t middle = s.first + (s.last - s.first) / 2;
    return which == 0 ? (span){2 * s.node, s.first, middle}
                      : (span){2 * s.node + 1, middle, s.last};
}

/* The highest top in life. */
static int64_t top_of(const stack *t, span s, pack_life life)
{
    const range *r = &t->tree[s.node];
    if (life.last <= s.first || s.last <= life.first) return 0;
    if (life.first <= s.first && s.last <= life.last) return r->most;
    return ot_max(r->all, ot_max(top_of(t, child(s, 0), life), top_of(t, child(s, 1), life)));
}

static void raise_top(stack *t, span s, pack_life life, int64_t top)
{
    range *r = &t->tree[s.node];
    if (life.last <= s.first || s.last <= life.first) return;
    r->most = ot_max(r->most, top);
    if (life.first <= s.first && s.last <= life.last) {
        r->all = ot_max(r->all, top);
        return;
    }
    raise_top(t, child(s, 0), life, top);
    raise_top(t, child(s, 1), life, top);
}

ot_status pack_stack(pack_map *m, const uint32_t *order)
{
    const ot_pack_problem *p = m->p;
    stack t = {.n_moments = m->n_moments};
    t.tree = OT_NEW_N(m->arena, range, 4 * (size_t)t.n_moments + 2);
    if (!t.tree) return OT_E_NOMEM;
    const span whole = {1, 0, t.n_moments};
    for (uint32_t k = 0; k < p->n; k++)
        if (m->offset[k] >= 0) raise_top(&t, whole, m->life[k], m->offset[k] + p->items[k].size);
    for (uint32_t k = 0; k < p->n; k++) {
        const uint32_t i = order[k];
        if (m->offset[i] >= 0) continue;
        m->offset[i] = pack_align_up(top_of(&t, whole, m->life[i]), p->items[i].alignment);
        raise_top(&t, whole, m->life[i], m->offset[i] + p->items[i].size);
    }
    return OT_OK;
}
