/* Plans as for smaller fast memories, in the one that the user gave.
 *
 *   all of it   laps of each limit on time -------------------------------------> kept
 *   a half      the same, for such a target --> its regions, at costs of all --> kept, if better
 *   a quarter   where the half brought something, and so on; of a small graph each half
 *   64 KiB      where a size brought nothing
 *
 * What untiled nodes and large tiles cost depends on what the fast memory holds, and with that
 * which tilings a search tries at all: SqueezeNet held 4.59 MB in 17.0 ms where tiles had 128 KiB,
 * and 4.65 MB in 17.1 ms with 512. Where no process is simulated: less_room.c.
 */
#include "laps.h"

#define LEAST_FAST (INT64_C(64) << 10) /* bytes */
/* nodes of plans for sizes, one after the other, that bring nothing: a large graph has fewer */
#define VAIN_NODES 150
#define SMALL      7    /* such sizes of a graph that may have each half */
#define LARGE      2    /* of others */
#define LESS       0.98 /* predictions that differ by less are taken to be equal */

static bool looks_for_less(const ot_laps *x, const ot_plan_options *o)
{
    return o->search.smaller_fast && !o->search.one_lap && ot_candidates_compete(o) &&
           o->max_tensor == 0 && ot_runtime_simulates(x->r->target->runtime);
}

/* `to` in the place of what is kept: it holds less, or it is as good, and worse in nothing. */
static bool is_better(const ot_pick *kept, const ot_outcome *to)
{
    const ot_outcome *a = &kept->found;
    const ot_score_base *base = &ot_group_plain(kept->group)->c->base;
    if (a->takes.growth <= 0 || to->takes.growth <= 0)
        return to->peak <= a->peak && to->seconds <= a->seconds &&
               (to->peak < a->peak || to->seconds < a->seconds);
    const double was = (double)ot_score_bytes(&a->takes, base),
                 now = (double)ot_score_bytes(&to->takes, base);
    if (now < LESS * was && ot_score_holds_less(&a->takes, &to->takes, base)) return true;
    const bool is_no_worse = to->takes.growth <= a->takes.growth && to->seconds <= a->seconds;
    return is_no_worse && LESS * now <= was &&
           (to->takes.growth < a->takes.growth || to->seconds < a->seconds);
}

/* The same nodes by the same numbers: copies of one model, with the same edits. */
static bool same_graph(const ot_graph *a, const ot_graph *b)
{
    if (a == b) return true;
    if (a->n_nodes != b->n_nodes || a->n_values != b->n_values || a->n_order != b->n_order)
        return false;
    for (uint32_t k = 0; k < a->n_order; k++) {
        const ot_id id = a->order[k];
        const ot_node *m = &a->nodes[id], *n = &b->nodes[id];
        if (id != b->order[k] || m->op != n->op || m->n_in != n->n_in || m->n_out != n->n_out)
            return false;
        for (uint32_t i = 0; i < m->n_in; i++)
            if (m->in[i] != n->in[i]) return false;
        for (uint32_t i = 0; i < m->n_out; i++)
            if (m->out[i] != n->out[i]) return false;
    }
    return true;
}

/* x's variant that `found`, a pick of other groups of the same model, is of. No variant: x's last
 * lap did not plan it, or it has other edits. */
static ot_pick pick_like(ot_laps *x, const ot_pick *found)
{
    ot_pick p = {0};
    for (uint32_t k = 0; k < x->n; k++) {
        ot_variant_group *g = &x->groups[k];
        ot_variant *v = &g->v[found->v->kind];
        if (g->is_dynamic != found->group->is_dynamic || !v->model || !v->c || !v->has_outcome ||
            !same_graph(ot_variant_graph(v), ot_variant_graph(found->v)))
            continue;
        p = (ot_pick){.group = g, .v = v};
    }
    return p;
}

/* What is found for the target `t` competes; *better: it is kept. */
static ot_status try_target(ot_laps *x, const ot_target *t, bool widened, const ot_plan_options *o,
                            ot_pick *kept, bool *better)
{
    ot_select_request r = *x->r;
    ot_variant_group groups[OT_LAPS_GROUPS] = {0};
    ot_laps own = {.r = &r, .groups = groups};
    ot_pick found = {0}, p = {0};
    bool any, same = false;
    *better = false;
    r.target = t;
    ot_status s = ot_laps_open_groups(&own, widened, &any);
    if (s == OT_OK && any) s = ot_laps_find(&own, o, &found);
    if (s == OT_OK && found.v && found.found.changes) p = pick_like(x, &found);
    if (p.v) s = ot_candidates_again(p.v->c, &found.found, &p.found, &same);
    for (uint32_t k = 0; k < OT_LAPS_GROUPS; k++) ot_group_close(&groups[k]);
    OT_TRY(s);
    *better = same && p.group == kept->group && is_better(kept, &p.found);
    if (ot_dbg['P'])
        fprintf(stderr, "> Fast memory of %lld: growth %lld, %.3f ms%s\n", (long long)t->fast_bytes,
                (long long)found.found.takes.growth, (same ? p.found : found.found).seconds * 1e3,
                *better ? ": kept" : "");
    if (*better) *kept = p;
    return OT_OK;
}

ot_status ot_laps_smaller_fast(ot_laps *x, bool widened, const ot_plan_options *o, ot_pick *kept)
{
    ot_target t = *x->r->target;
    if (!looks_for_less(x, o)) return OT_OK;
    const uint32_t most = 1 + VAIN_NODES / (ot_group_plain(kept->group)->c->g->n_order + 1);
    const bool each = most > SMALL;
    for (uint32_t vain = 0; vain < (each ? most : ot_min(most, LARGE));) {
        const int64_t fast = each || vain == 0 ? t.fast_bytes / 2 : LEAST_FAST;
        bool better;
        if (fast < LEAST_FAST || fast >= t.fast_bytes) break;
        ot_target_set_l2(&t, fast);
        OT_TRY(try_target(x, &t, widened, o, kept, &better));
        vain = better ? 0 : vain + 1;
    }
    return OT_OK;
}
