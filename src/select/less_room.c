/* Plans whose tiles take less of a scratchpad than there is.
 *
 * What a region holds at once counts at the peak, and in a large fast memory the search takes large
 * tiles: they are faster. A chain of a microcontroller held 17 KB where tiles could have 512 KiB,
 * and 12 KB, in less time, where they had 16: so plans for halves of the room compete, as they
 * would for a smaller chip. Costs are those of the target as it is.
 */
#include "candidates.h"

#define LEAST_ROOM 1024 /* bytes */
#define ROOMS      12   /* halves, one after the other */
#define ROOM_NODES 2000 /* that run, of all plans of a lap: a large graph has fewer rooms */
#define VAIN_NODES 300  /* of plans one after the other that bring nothing: it gets no better */

/* Where a runtime's process is simulated, sets of regions compete by that. */
static bool looks_for_less(const ot_candidates *x, const ot_plan_options *o)
{
    const bool memory = o->goal == OT_GOAL_MEMORY || o->memory_budget > 0;
    return memory && ot_target_hard_limit(x->t) && !ot_runtime_simulates(x->t->runtime) &&
           !o->force && o->force_form == OT_FORM_NONE && o->max_tensor == 0;
}

/* The planner of that room, which is half of the one before. */
static ot_status open_smaller(ot_candidates *x, uint32_t k)
{
    if (!x->smaller) x->smaller = OT_NEW_N(x->arena, ot_smaller, ROOMS);
    if (!x->smaller) return ot_fail_nomem(x->g->model->diag);
    ot_smaller *s = &x->smaller[k];
    if (s->planner) return OT_OK;
    s->target = *x->t;
    s->target.tile_room = x->t->fast_bytes >> (k + 1);
    return ot_planner_open(x->g, &s->target, &s->planner);
}

void ot_smaller_close(ot_candidates *x)
{
    for (uint32_t k = 0; k < ROOMS && x->smaller; k++) ot_planner_close(x->smaller[k].planner);
}

/* No tile of the plan takes more: a larger room is none that it would miss. */
static int64_t largest_set(const ot_plan *p)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; p && k < p->n_regions; k++)
        bytes = ot_max(bytes, p->regions[k].working_set);
    return bytes > 0 ? bytes : INT64_MAX;
}

/* p in the place of `kept`, NULL: nothing is. Both keep the budget and the limit on time, which
 * counts from the plan `all` of all of the room as well: tiles may be far faster than the untiled
 * model, and a tenth less memory is not worth that. */
static bool is_better(const ot_plan_options *o, const ot_plan *all, const ot_plan *kept,
                      const ot_plan *p)
{
    if (!kept) return true;
    const ot_figures *a = &kept->tiled, *b = &p->tiled;
    if (o->goal == OT_GOAL_TIME) return b->time_s < a->time_s;
    if (all && b->time_s > (1 + o->max_slowdown) * all->tiled.time_s) return false;
    return b->peak_bytes < a->peak_bytes ||
           (b->peak_bytes == a->peak_bytes && b->time_s < a->time_s);
}

ot_status ot_candidates_less_room(ot_candidates *x, const ot_plan_options *o)
{
    const uint32_t most = (uint32_t)ot_min(ROOMS, ROOM_NODES / (x->g->n_order + 1));
    const ot_plan *all = x->own;
    const int64_t filled = largest_set(all);
    const uint32_t patience = 1 + VAIN_NODES / (x->g->n_order + 1);
    if (!looks_for_less(x, o)) return OT_OK;
    for (uint32_t k = 0, made = 0, vain = 0; k < ROOMS && made < most && vain < patience; k++) {
        const int64_t room = x->t->fast_bytes >> (k + 1);
        ot_plan *p;
        ot_diag why;
        if (room >= filled) continue;
        if (room < LEAST_ROOM) break;
        OT_TRY(open_smaller(x, k));
        OT_TRY(ot_candidates_made(x, x->smaller[k].planner, o, &why, &p));
        made++;
        vain++;
        if (!p || !is_better(o, all, x->own, p)) continue;
        x->own = p;
        vain = 0;
    }
    return OT_OK;
}
