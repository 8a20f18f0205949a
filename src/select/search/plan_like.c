/* Regions as other plans have them, of the same nodes at another size, or in tiles of other
 * extents: built and priced anew.
 *
 *   region of any plan:  nodes, cut axis, rows of a tile, form --> region of this graph with exact
 *                        figures, where it is legal
 */
#include "search.h"

#include "tiling/forms.h"

static bool has_nodes(const ot_region *r, const ot_region *like)
{
    if (r->n_nodes != like->n_nodes) return false;
    for (uint32_t k = 0; k < r->n_nodes; k++)
        if (r->nodes[k].node != like->nodes[k].node) return false;
    return true;
}

/* The axis of v is cut, at another size into two whole tiles at least. */
static bool is_cut(const ot_value *v, int8_t axis, int64_t tile, bool same_size)
{
    return ot_value_is_static(v) && (same_size ? tile : 2 * tile - 1) < v->dims[axis];
}

/* `like` in s; *found false: it cannot be. */
static ot_status build_like(const ot_seq *s, ot_walk *w, const ot_target *t, const ot_region *like,
                            bool same_size, ot_arena *a, ot_region *r, bool *found)
{
    ot_choice c = {.first = like->first,
                   .end = like->last,
                   .n_dims = (uint8_t)like->n_dims,
                   .form = (uint8_t)like->form};
    ot_why why;
    *found = false;
    if (like->last >= s->n) return OT_OK;
    c.out_index = ot_sink_output(s, like);
    if (c.out_index == OT_NONE) return OT_OK;
    const ot_rvalue *sink = &like->values[like->dims[0].sink];
    const ot_value *v = &s->g->values[sink->value];
    for (uint32_t d = 0; d < c.n_dims; d++) {
        c.axes[d] = sink->axis[d];
        c.tile[d] = like->dims[d].tile;
        if (!is_cut(v, c.axes[d], c.tile[d], same_size)) return OT_OK;
    }
    OT_TRY(ot_region_build(s, w, &c, a, r));
    if (!has_nodes(r, like)) return OT_OK;
    r->form = like->form;
    OT_TRY(ot_form_legal(s->g, r, r->form, t->runtime->cannot, found, &why));
    if (!*found) return OT_OK;
    OT_TRY(ot_region_exact(s, t, 0, r));
    *found = r->time_tiled >= 0;
    return *found ? ot_region_fit_memory(s, t, r) : OT_OK;
}

static ot_status build_all(ot_graph *g, const ot_target *t, const ot_region *like, uint32_t n,
                           bool same_size, ot_arena *scratch, ot_plan *p)
{
    ot_seq s;
    ot_walk w;
    OT_TRY(ot_seq_build(g, scratch, &s));
    OT_TRY(ot_cost_fill(&s, t));
    OT_TRY(ot_walk_new(&s, &w));
    p->spare = OT_NEW_N(p->arena, ot_region, n + 1u);
    if (!p->spare) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < n; k++) {
        bool found;
        OT_TRY(build_like(&s, &w, t, &like[k], same_size, p->arena, &p->spare[p->n_spare], &found));
        p->n_spare += found;
    }
    return OT_OK;
}

ot_status ot_plan_like(ot_graph *g, const ot_target *t, const ot_region *like, uint32_t n,
                       bool same_size, ot_plan **out)
{
    ot_arena *scratch = ot_arena_new(), *arena = ot_arena_new();
    ot_plan *p = arena ? OT_NEW(arena, ot_plan) : NULL;
    ot_status s = scratch && p ? OT_OK : ot_fail_nomem(g->model->diag);
    *out = NULL;
    if (s == OT_OK) {
        p->arena = arena;
        s = build_all(g, t, like, n, same_size, scratch, p);
    }
    ot_arena_free(scratch);
    if (s == OT_OK)
        *out = p;
    else
        ot_arena_free(arena);
    return s;
}
