/* What sets of regions take, once for each: searches come to the same set again and again, and
 * laps look at all that were found before.
 */
#include "candidates.h"

uint64_t ot_written_key(const ot_candidates *x, const ot_region *regions, uint32_t n)
{
    const ot_region_set set = {.all = (ot_region *)regions, .n = n};
    uint64_t key = ot_set_key(x, &set);
    key = ot_hash_bytes(key, &x->o.max_tensor, sizeof x->o.max_tensor);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < regions[k].n_nodes; i++)
            key = ot_hash_bytes(key, &regions[k].nodes[i].node, sizeof(ot_id));
    return key;
}

/* all->n: it is not there. */
static size_t place_of(const ot_simulations *all, uint64_t key)
{
    size_t at = 0;
    while (at < all->n && all->keys[at] != key) at++;
    return at;
}

const ot_simulated *ot_simulations_find(const ot_simulations *all, uint64_t key)
{
    const size_t at = place_of(all, key);
    return at < all->n ? &all->all[at] : NULL;
}

bool ot_simulations_keep(ot_simulations *all, ot_arena *a, uint64_t key, const ot_simulated *now)
{
    const size_t at = place_of(all, key);
    if (at < all->n) {
        all->all[at] = *now;
        return true;
    }
    if (!OT_PUSH(a, all->all, all->n_all, all->cap_all, *now)) return false;
    if (OT_PUSH(a, all->keys, all->n, all->cap, key)) return true;
    all->n_all--;
    return false;
}
