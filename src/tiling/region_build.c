/* From a chosen interval to an ot_region: which nodes join, which values they share, which axis
 * of each is cut.
 *
 * The backward walk is repeated once and its answers are kept. Values are numbered inputs first
 * (in the order the region reads them), then produced values in node order.
 */
#include "walk.h"

#define FEW        8u  /* nodes: most regions of large graphs */
#define FEW_VALUES 32u /* that they read and make, at most */

typedef struct kept {
    uint32_t lead_out;
    int8_t lead_axis[OT_DIMS_MAX];
    int8_t *in_axis[OT_DIMS_MAX]; /* [n_in] */
} kept;

static ot_status keep_maps(const ot_seq *s, ot_walk *w, const ot_choice *c, ot_arena *a, kept *k)
{
    for (uint32_t p = c->end + 1; p-- > c->first;) {
        if (ot_walk_step(w) != OT_ST_IN) continue;
        const ot_node *n = &s->g->nodes[s->node[p]];
        kept *x = &k[p - c->first];
        x->lead_out = w->lead_out;
        memcpy(x->lead_axis, w->lead_axis, sizeof x->lead_axis);
        int8_t *axes = ot_alloc_n(a, c->n_dims, n->n_in + 1u);
        if (!axes) return ot_fail_nomem(s->g->model->diag);
        for (uint32_t d = 0; d < c->n_dims; d++, axes += n->n_in + 1u)
            x->in_axis[d] = memcpy(axes, w->in_axis[d], n->n_in + 1u);
    }
    return OT_OK;
}

/* Number the value, adding an entry when it is new. */
static uint32_t number(const ot_seq *s, const ot_walk *w, ot_region *r, uint32_t *index, ot_id v,
                       uint32_t node)
{
    if (index[v] != OT_NONE) return index[v];
    ot_rvalue *x = &r->values[r->n_values];
    x->value = v;
    x->node = node;
    x->bytes = s->bytes[v];
    for (uint32_t d = 0; d < OT_DIMS_MAX; d++) {
        int8_t axis = d < r->n_dims ? ot_walk_axis(w, v, d) : OT_AX_UNSET;
        x->axis[d] = axis >= 0 ? axis : OT_AX_WHOLE;
    }
    return index[v] = r->n_values++;
}

static bool is_cut(const ot_walk *w, ot_id v, uint32_t n_dims)
{
    for (uint32_t d = 0; d < n_dims; d++)
        if (ot_walk_axis(w, v, d) >= 0) return true;
    return false;
}

static ot_status fill_nodes(const ot_seq *s, const ot_walk *w, const ot_choice *c, ot_arena *a,
                            const kept *k, uint32_t *index, ot_region *r)
{
    const ot_graph *g = s->g;
    for (uint32_t p = c->first; p <= c->end; p++) { /* inputs */
        if (w->state[p] != OT_ST_IN) continue;
        const ot_node *n = &g->nodes[s->node[p]];
        for (uint32_t i = 0; i < n->n_in; i++) {
            ot_id v = n->in[i];
            if (v == OT_NONE) continue;
            bool made = s->def[v] != OT_NONE && s->def[v] >= c->first && s->def[v] <= c->end &&
                        w->state[s->def[v]] == OT_ST_IN;
            if (made || (!s->act[v] && !is_cut(w, v, c->n_dims))) continue;
            number(s, w, r, index, v, OT_NONE);
        }
    }
    r->n_inputs = r->n_values;
    for (uint32_t p = c->first; p <= c->end; p++) {
        if (w->state[p] != OT_ST_IN) continue;
        const ot_node *n = &g->nodes[s->node[p]];
        ot_rnode *x = &r->nodes[r->n_nodes];
        uint32_t *in = OT_NEW_N(a, uint32_t, (size_t)n->n_in + n->n_out + 2u),
                 *out = in + n->n_in + 1u;
        if (!in) return ot_fail_nomem(g->model->diag);
        x->node = s->node[p];
        x->in = in;
        x->out = out;
        x->work = s->work[p];
        for (uint32_t d = 0; d < OT_DIMS_MAX; d++) {
            x->lead_out[d] = k[p - c->first].lead_out;
            x->lead_axis[d] = d < c->n_dims ? k[p - c->first].lead_axis[d] : OT_AX_WHOLE;
            x->in_axis[d] = d < c->n_dims ? k[p - c->first].in_axis[d] : NULL;
        }
        for (uint32_t i = 0; i < n->n_in; i++) {
            ot_id v = n->in[i];
            in[i] = v == OT_NONE ? OT_NONE : index[v];
        }
        for (uint32_t o = 0; o < n->n_out; o++) {
            ot_id v = n->out[o];
            bool used = v != OT_NONE && (g->values[v].n_uses > 0 || g->values[v].is_output);
            out[o] = used || (v != OT_NONE && o == x->lead_out[0])
                         ? number(s, w, r, index, v, r->n_nodes)
                         : OT_NONE;
            if (out[o] != OT_NONE) r->values[out[o]].is_output = ot_walk_escapes(w, v);
        }
        r->n_nodes++;
    }
    return OT_OK;
}

/* Fails: OT_E_NOMEM. */
ot_status ot_region_build(const ot_seq *s, ot_walk *w, const ot_choice *c, ot_arena *a,
                          ot_region *out)
{
    const ot_graph *g = s->g;
    uint32_t span = c->end - c->first + 1, ends = 0;
    memset(out, 0, sizeof *out);
    kept few[FEW] = {{0}}, *k = span <= FEW ? few : OT_NEW_N(s->arena, kept, span);
    if (!k) return ot_fail_nomem(g->model->diag);
    ot_walk_start(w, c->end, c->out_index, c->axes, c->n_dims);
    OT_TRY(keep_maps(s, w, c, a, k));
    for (uint32_t p = c->first; p <= c->end; p++)
        if (w->state[p] == OT_ST_IN) ends += g->nodes[s->node[p]].n_in + g->nodes[s->node[p]].n_out;
    out->nodes = OT_NEW_N(a, ot_rnode, span);
    ot_rvalue small[FEW_VALUES] = {{0}};
    out->values = ends < FEW_VALUES ? small : OT_NEW_N(a, ot_rvalue, ends + 1u);
    if (!out->nodes || !out->values) return ot_fail_nomem(g->model->diag);
    out->n_dims = c->n_dims;
    out->first = c->first;
    out->last = c->end;
    OT_TRY(fill_nodes(s, w, c, a, k, w->number, out));
    if (out->values == small) { /* no more than there are */
        out->values = ot_memdup(a, small, out->n_values * sizeof *small);
        if (!out->values) return ot_fail_nomem(g->model->diag);
    }
    for (uint32_t d = 0; d < c->n_dims; d++) {
        const ot_value *sink = &g->values[w->sink];
        out->dims[d].extent = sink->dims[c->axes[d]];
        out->dims[d].tile = c->tile[d];
        out->dims[d].n_tiles = ot_tile_count(out->dims[d].extent, c->tile[d]);
        out->dims[d].sink = w->number[w->sink];
    }
    /* a region's share, not the graph's */
    for (uint32_t v = 0; v < out->n_values; v++) w->number[out->values[v].value] = OT_NONE;
    return OT_OK;
}

static bool copy_node(ot_rnode *x, const ot_node *n, ot_arena *a)
{
    x->in = ot_memdup(a, x->in, (n->n_in + 1u) * sizeof *x->in);
    x->out = ot_memdup(a, x->out, (n->n_out + 1u) * sizeof *x->out);
    bool ok = x->in && x->out;
    for (uint32_t d = 0; d < OT_DIMS_MAX && ok; d++) {
        if (!x->in_axis[d]) continue;
        x->in_axis[d] = ot_memdup(a, x->in_axis[d], n->n_in + 1u);
        ok = x->in_axis[d] != NULL;
    }
    return ok;
}

ot_status ot_region_copy(const ot_graph *g, const ot_region *r, ot_arena *a, ot_region *out)
{
    *out = *r;
    out->nodes = ot_memdup(a, r->nodes, r->n_nodes * sizeof *r->nodes);
    out->values = ot_memdup(a, r->values, r->n_values * sizeof *r->values);
    bool ok = out->nodes && out->values;
    for (uint32_t k = 0; k < r->n_nodes && ok; k++)
        ok = copy_node(&out->nodes[k], &g->nodes[r->nodes[k].node], a);
    return ok ? OT_OK : ot_fail_nomem(g->model->diag);
}

bool ot_region_is(const ot_region *a, const ot_region *b)
{
    return a->nodes == b->nodes && a->form == b->form && a->weights_stay == b->weights_stay &&
           a->overlap == b->overlap;
}

ot_region_store *ot_region_store_new(void)
{
    ot_arena *a = ot_arena_new();
    ot_region_store *x = a ? OT_NEW(a, ot_region_store) : NULL;
    if (!x) {
        ot_arena_free(a);
        return NULL;
    }
    *x = (ot_region_store){a, 1};
    return x;
}

ot_region_store *ot_region_store_hold(ot_region_store *x)
{
    x->holders++;
    return x;
}

void ot_region_store_release(ot_region_store *x)
{
    if (x && --x->holders == 0) ot_arena_free(x->arena);
}
