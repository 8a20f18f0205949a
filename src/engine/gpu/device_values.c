/* Values of a graph as the device has them, and what of the graph is needed.
 *
 * Contents that shape inference knows are constants here: who computed them, and the large
 * arrays whose shape they were asked of, is not needed for them any more.
 */
#include "device_internal.h"

dv_value *dv_root(dv_value *x)
{
    while (x->of) x = x->of;
    return x;
}

void dv_set(dv_schedule *q, ot_id v, dv_value *value)
{
    q->at[v] = value;
    q->arrays[v] = value->nd;
}

static ot_status make_room(dv_schedule *q, uint32_t n)
{
    if (n <= q->cap_ids) return OT_OK;
    uint32_t cap = n + n / 2 + 16;
    dv_value **at = OT_NEW_N(q->s->a, dv_value *, cap);
    ot_nd *arrays = OT_NEW_N(q->s->a, ot_nd, cap);
    if (!at || !arrays) return ot_fail_nomem(q->s->s->d);
    if (q->n_ids) {
        memcpy(at, q->at, q->n_ids * sizeof *at);
        memcpy(arrays, q->arrays, q->n_ids * sizeof *arrays);
    }
    q->at = at;
    q->arrays = arrays;
    q->cap_ids = cap;
    return OT_OK;
}

static dv_value *new_value(dv_schedule *q)
{
    dv_value *x = OT_NEW(q->s->a, dv_value);
    if (x) *x = (dv_value){.owner = q, .memory = DV_ARENA, .room = OT_DEVICE_UNUSED};
    return x;
}

ot_status dv_add(dv_schedule *q, const ot_nd *nd, ot_id *out)
{
    dv_value *x = new_value(q);
    if (!x) return ot_fail_nomem(q->s->s->d);
    OT_TRY(make_room(q, q->n_ids + 1));
    ot_nd_set_dense(&x->nd, nd->dtype, nd->rank, nd->dims);
    *out = q->n_ids++;
    dv_set(q, *out, x);
    return OT_OK;
}

ot_status dv_window(dv_schedule *q, ot_id v, dv_value *of, const ot_nd *nd, int64_t first,
                    const int64_t *moves)
{
    dv_value *x = new_value(q);
    if (!x) return ot_fail_nomem(q->s->s->d);
    x->nd = *nd;
    x->nd.data = NULL;
    x->nd.block = NULL;
    x->of = of;
    x->first = first;
    x->moves = moves;
    dv_set(q, v, x);
    return OT_OK;
}

/* ---- describing ---- */

/* The value of an enclosing program. */
static dv_value *outer_value(const dv_schedule *q, const ot_slot *slot)
{
    for (const dv_schedule *up = q->outer; up; up = up->outer)
        if (slot >= up->p->slots && slot < up->p->slots + up->p->g->n_values)
            return up->at[slot - up->p->slots];
    return NULL;
}

/* What inference knows of the contents is as good as an initializer. */
static ot_status use_known(dv_schedule *q, ot_id v)
{
    const ot_value *x = &q->p->g->values[v];
    if (q->p->slots[v].is_const || (!x->known && !x->known_floats) || !ot_value_is_static(x))
        return OT_OK;
    const ot_tensor *t = ot_known_tensor(q->s->a, x);
    if (!t) return ot_fail_nomem(q->s->s->d);
    return ot_slot_set_tensor(q->p, &q->p->slots[v], t);
}

/* Tiles are cut from it, for the shape that the file states. */
static bool is_cut(const ot_graph *g, const ot_value *x)
{
    for (uint32_t k = 0; k < x->n_uses; k++)
        if (ot_is_tile_op(&g->nodes[x->uses[k]], "While")) return true;
    return false;
}

/* Dense arrays of known shape. What an operator that inference does not know makes has the shape
 * that the file states, which may be false: it is taken only where a plan took it, and the run
 * fails when it is (dv_check_array). */
static bool known_shape(const ot_graph *g, const ot_value *x, ot_nd *nd)
{
    const ot_node *n = x->producer == OT_NONE ? NULL : &g->nodes[x->producer];
    int64_t bytes;
    if (n && n->op == OT_OP_OPAQUE && strcmp(n->domain, "onnx_tile") != 0 && !is_cut(g, x))
        return false;
    if (!x->is_tensor || x->is_sequence || !ot_value_is_static(x) || x->rank > OT_RANK_MAX ||
        ot_dtype_bytes(x->dtype) == 0)
        return false;
    if (!ot_nd_bytes(x->dtype, (uint32_t)x->rank, x->dims, &bytes) || bytes == 0) return false;
    ot_nd_set_dense(nd, x->dtype, (uint32_t)x->rank, x->dims);
    return true;
}

static ot_status describe(dv_schedule *q, ot_id v)
{
    const ot_value *x = &q->p->g->values[v];
    const ot_slot *slot = q->p->at[v];
    if (x->is_outer) {
        dv_value *outer = outer_value(q, slot);
        if (!outer) OT_BUG("an outer value of no program");
        dv_set(q, v, outer);
        return OT_OK;
    }
    OT_TRY(use_known(q, v));
    dv_value *own = new_value(q);
    int64_t bytes;
    if (!own) return ot_fail_nomem(q->s->s->d);
    if (slot->is_const && slot->nd.data &&
        ot_nd_bytes(slot->nd.dtype, slot->nd.rank, slot->nd.dims, &bytes) && bytes > 0) {
        own->nd = slot->nd;
        own->nd.block = NULL;
        own->memory = DV_WEIGHTS;
    } else if (!slot->is_const) {
        (void)known_shape(q->p->g, x, &own->nd);
    }
    dv_set(q, v, own);
    return OT_OK;
}

/* ---- what is needed ---- */

static bool is_const(const dv_schedule *q, ot_id v) { return q->p->at[v]->is_const; }

static ot_status find_needed(dv_schedule *q)
{
    const ot_schedule *p = q->p;
    bool *wanted = OT_NEW_N(q->s->a, bool, p->g->n_values + 1u);
    q->list = (ot_node_list){.g = p->g, .n = p->n_steps};
    q->list.node = OT_NEW_N(q->s->a, const ot_node *, p->n_steps + 1u);
    if (!wanted || !q->list.node) return ot_fail_nomem(q->s->s->d);
    for (uint32_t k = 0; k < p->g->n_outputs; k++)
        wanted[p->g->outputs[k]] = !is_const(q, p->g->outputs[k]);
    for (uint32_t k = p->n_steps; k-- > 0;) {
        const ot_step *step = &p->steps[k];
        const ot_node *n = step->node;
        for (uint32_t j = 0; j < step->n_out; j++)
            if (step->out_ids[j] != OT_NONE && wanted[step->out_ids[j]] &&
                !is_const(q, step->out_ids[j]))
                q->list.node[k] = n;
        for (uint32_t j = 0; q->list.node[k] && j < step->n_in + n->n_captured; j++) {
            ot_id v = j < step->n_in ? step->in_ids[j] : n->captured[j - step->n_in];
            if (v != OT_NONE) wanted[v] = true;
        }
    }
    return OT_OK;
}

/* Who makes and who reads what, as the program has it. */
static ot_status list_nodes(dv_schedule *q)
{
    const ot_schedule *p = q->p;
    const uint32_t n_values = p->g->n_values;
    q->placed_in = OT_NEW_N(q->s->a, ot_id, n_values + 1u);
    q->made = OT_NEW_N(q->s->a, bool, p->n_steps + 1u);
    if (!q->made || !q->placed_in || ot_node_list_fill(&q->list, q->s->a) != OT_OK)
        return ot_fail_nomem(q->s->s->d);
    for (ot_id v = 0; v < n_values; v++) {
        q->placed_in[v] = OT_NONE;
        q->list.kept[v] |= p->at[v]->is_result;
        q->list.constant[v] = is_const(q, v);
    }
    for (uint32_t k = 0; k < p->n_steps; k++)
        for (uint32_t j = 0; j < p->steps[k].n_out; j++)
            if (p->steps[k].out_ids[j] != OT_NONE && !p->steps[k].out_slots[j])
                q->list.unwanted[p->steps[k].out_ids[j]] = true;
    return OT_OK;
}

ot_status dv_describe(dv_schedule *q)
{
    OT_TRY(make_room(q, q->p->g->n_values));
    q->n_ids = q->p->g->n_values;
    for (ot_id v = 0; v < q->n_ids; v++) OT_TRY(describe(q, v));
    OT_TRY(find_needed(q));
    return list_nodes(q);
}
