/* Steps to units: what is a view, what has a kernel, what runs on the host.
 *
 *   Reshape, Identity...     another shape of the same memory, where that has no holes
 *   Slice, Split, Expand     a window of the operand
 *   a group of nodes         shaders of engine/gpu/shaders; where the group has none, its nodes one
 *                            by one
 *   the rest                 the host: operands are made dense and downloaded, results uploaded
 */
#include "device_internal.h"

static ot_status nomem(const dv_schedule *q) { return ot_fail_nomem(q->s->s->d); }

ot_status dv_fall_back(dv_session *s, const ot_node *n, const char *why)
{
    for (size_t k = 0; k < s->n_fallbacks; k++)
        if (strcmp(s->fallbacks[k].op, n->op_type) == 0 && strcmp(s->fallbacks[k].why, why) == 0) {
            s->fallbacks[k].n++;
            return OT_OK;
        }
    const ot_device_fallback f = {n->op_type, n->name, why, 1};
    return OT_PUSH(s->a, s->fallbacks, s->n_fallbacks, s->cap_fallbacks, f)
               ? OT_OK
               : ot_fail_nomem(s->s->d);
}

/* ---- kernels ---- */

static ot_status use_constant(dv_session *s, dv_value *root)
{
    if (root->memory != DV_WEIGHTS || root->used) return OT_OK;
    return OT_PUSH(s->a, s->constants, s->n_constants, s->cap_constants, root)
               ? OT_OK
               : ot_fail_nomem(s->s->d);
}

/* Contents made for a kernel. */
static ot_status table_value(dv_schedule *q, const ot_nd *table, dv_value **out)
{
    *out = OT_NEW(q->s->a, dv_value);
    if (!*out) return nomem(q);
    **out = (dv_value){.nd = *table, .memory = DV_WEIGHTS};
    return OT_OK;
}

static ot_status add_function(dv_session *s, dv_shader *k)
{
    for (size_t f = 0; f < s->n_functions; f++)
        if (s->functions[f]->n_text == k->k->n_text &&
            memcmp(s->functions[f]->text, k->k->text, k->k->n_text) == 0) {
            k->function = (uint32_t)f;
            return OT_OK;
        }
    k->function = (uint32_t)s->n_functions;
    return OT_PUSH(s->a, s->functions, s->n_functions, s->cap_functions, k->k)
               ? OT_OK
               : ot_fail_nomem(s->s->d);
}

static ot_status bind_kernel(dv_schedule *q, const ot_dg_shader *code, const char *name,
                             const int64_t *const moves[2], dv_shader *k)
{
    dv_session *s = q->s;
    *k = (dv_shader){.k = code,
                     .name = name,
                     .args = OT_NEW_N(s->a, dv_arg, code->n_args + 1u),
                     .numbers_at = (int64_t)s->n_numbers};
    if (!k->args) return nomem(q);
    for (uint32_t j = 0; j < code->n_args; j++) {
        dv_value *x = code->args[j].value == OT_NONE ? NULL : q->at[code->args[j].value];
        if (!x) OT_TRY(table_value(q, code->args[j].table, &x));
        if (code->args[j].pack.block)
            OT_TRY(dv_packed_value(s, dv_root(x), &code->args[j].pack, &x));
        dv_value *root = dv_root(x);
        OT_TRY(use_constant(s, root));
        root->used = true;
        k->args[j] = (dv_arg){x, code->args[j].first, moves && j < 2 ? moves[j] : NULL};
    }
    for (uint32_t j = 0; j < code->n_numbers; j++)
        if (!OT_PUSH(s->a, s->numbers, s->n_numbers, s->cap_numbers, code->numbers[j]))
            return nomem(q);
    dv_count_layout(s, code);
    return add_function(s, k);
}

ot_status dv_push_code(dv_schedule *q, ot_step *step, const char *name, uint32_t n_nodes,
                       const ot_dg_code *code, const int64_t *const moves[2])
{
    dv_unit u = {.kind = DV_KERNELS, .step = step, .n_nodes = n_nodes, .n_kernels = code->n};
    u.kernels = OT_NEW_N(q->s->a, dv_shader, code->n + 1u);
    if (!u.kernels) return nomem(q);
    for (uint32_t k = 0; k < code->n; k++)
        OT_TRY(bind_kernel(q, &code->kernels[k], name, moves, &u.kernels[k]));
    q->s->figures.n_device += n_nodes;
    return OT_PUSH(q->s->a, q->units, q->n_units, q->cap_units, u) ? OT_OK : nomem(q);
}

ot_status dv_dense(dv_schedule *q, ot_step *step, ot_id v, ot_id *out)
{
    ot_dg_code code;
    *out = v;
    if (ot_nd_is_dense(&q->arrays[v])) return OT_OK;
    OT_TRY(dv_add(q, &q->arrays[v], out));
    OT_TRY(ot_dg_copy(&q->s->target, (ot_dg_array){v, &q->arrays[v]},
                      (ot_dg_array){*out, &q->arrays[*out]}, q->s->a, q->s->s->d, &code));
    if (code.why) OT_BUG("an array that cannot be copied");
    return dv_push_code(q, step, "copy", 0, &code, NULL);
}

/* ---- groups ---- */

/* Is v read by somebody who is no part of the group, or a result? */
static bool is_stored(const dv_schedule *q, const ot_group *x, ot_id v)
{
    if (q->p->at[v]->is_result) return true;
    for (uint32_t k = q->list.first[v]; k < q->list.first[v + 1]; k++) {
        bool inside = false;
        for (uint32_t j = 0; j < x->n; j++) inside |= x->parts[j].place == q->list.readers[k];
        if (!inside) return true;
    }
    return false;
}

static ot_status generate(dv_schedule *q, const ot_group *x, ot_dg_code *code)
{
    const ot_node *nodes[OT_GROUP_PARTS];
    ot_id stores[OT_GROUP_PARTS];
    ot_dg_group g = {.nodes = nodes, .n_nodes = x->n, .arrays = q->arrays, .stores = stores};
    for (uint32_t k = 0; k < x->n; k++) {
        const ot_step *step = &q->p->steps[x->parts[k].place];
        nodes[k] = step->node;
        for (uint32_t j = 0; j < step->n_out; j++)
            if (step->out_slots[j] && is_stored(q, x, step->out_ids[j]) &&
                g.n_stores < OT_GROUP_PARTS)
                stores[g.n_stores++] = step->out_ids[j];
        for (uint32_t j = 0; j < step->n_in + step->n_out; j++) {
            ot_id v = j < step->n_in                    ? step->in_ids[j]
                      : step->out_slots[j - step->n_in] ? step->out_ids[j - step->n_in]
                                                        : OT_NONE;
            if (v == OT_NONE || dv_known(q, v)) continue;
            *code = (ot_dg_code){.why = "shapes that are not known before it runs"};
            return OT_OK;
        }
    }
    nodes[x->n] = NULL;
    *code = (ot_dg_code){.why = "nothing that is read"};
    return g.n_stores ? ot_dg_generate(&g, &q->s->target, q->s->a, q->s->s->d, code) : OT_OK;
}

/* ---- nodes on the host ---- */

static bool push_id(dv_schedule *q, ot_id **list, uint32_t *n, ot_id v)
{
    for (uint32_t k = 0; k < *n; k++)
        if ((*list)[k] == v) return true;
    ot_id *more = OT_NEW_N(q->s->a, ot_id, *n + 1u);
    if (!more) return false;
    if (*n) memcpy(more, *list, *n * sizeof *more);
    more[(*n)++] = v;
    *list = more;
    return true;
}

/* v on the host, where it comes from the device. */
static ot_status download(dv_schedule *q, dv_unit *u, ot_step *step, ot_id v)
{
    ot_id dense;
    uint32_t n = u->n_downloads;
    OT_TRY(dv_dense(q, step, v, &dense));
    if (!push_id(q, &u->downloads, &u->n_downloads, v)) return nomem(q);
    if (u->n_downloads == n) return OT_OK;
    ot_id *from = OT_NEW_N(q->s->a, ot_id, n + 1u);
    if (!from) return nomem(q);
    if (n) memcpy(from, u->from, n * sizeof *from);
    from[n] = dense;
    u->from = from;
    dv_root(q->at[dense])->used = true;
    return OT_OK;
}

/* Do kernels make v (or a window of it)? Then its slot is empty until it is downloaded. */
static bool on_device(const dv_schedule *q, ot_id v)
{
    if (!dv_known(q, v)) return false;
    const dv_value *root = dv_root(q->at[v]);
    return root->memory == DV_ARENA && !root->host && (!root->uploaded || q->at[v]->of);
}

static ot_status host_unit(dv_schedule *q, ot_step *step, const char *why)
{
    dv_unit u = {.kind = DV_HOST, .step = step, .n_nodes = 1};
    for (uint32_t k = 0; k < step->n_in + step->node->n_captured; k++) {
        ot_id v = k < step->n_in ? step->in_ids[k] : step->node->captured[k - step->n_in];
        if (v != OT_NONE && on_device(q, v)) OT_TRY(download(q, &u, step, v));
    }
    for (uint32_t k = 0; k < step->n_out; k++) {
        ot_id v = step->out_slots[k] ? step->out_ids[k] : OT_NONE;
        if (!dv_known(q, v)) continue;
        OT_TRY(dv_unplace(q, v));
        dv_unblock(q, v);
        dv_root(q->at[v])->uploaded = true;
        if (!push_id(q, &u.uploads, &u.n_uploads, v)) return nomem(q);
    }
    q->s->figures.n_host++;
    q->on_host = true;
    OT_TRY(dv_fall_back(q->s, step->node, why));
    return OT_PUSH(q->s->a, q->units, q->n_units, q->cap_units, u) ? OT_OK : nomem(q);
}

/* ---- views ---- */

static ot_status push_nothing(dv_schedule *q, ot_step *step)
{
    const dv_unit u = {.kind = DV_NOTHING, .step = step, .n_nodes = 1};
    q->s->figures.n_device++;
    return OT_PUSH(q->s->a, q->units, q->n_units, q->cap_units, u) ? OT_OK : nomem(q);
}

/* A switch of Dropout: not there, or known to be false. */
static bool is_off(const dv_schedule *q, const ot_step *step, uint32_t k)
{
    if (k >= step->n_in || step->in_ids[k] == OT_NONE) return true;
    const ot_nd *x = &q->arrays[step->in_ids[k]];
    return x->data && ot_nd_int(x, 0) == 0;
}

/* Outputs that are windows of the operand; *done: the step needs no kernel. */
static ot_status view(dv_schedule *q, ot_step *step, bool *done)
{
    const ot_node *n = step->node;
    ot_nd shape[OT_GROUP_PARTS];
    int64_t first[OT_GROUP_PARTS];
    *done = false;
    if (step->n_in < 1 || !dv_known(q, step->in_ids[0]) || step->n_out > OT_GROUP_PARTS)
        return OT_OK;
    bool same = ot_op_is_view(n->op) && ot_nd_is_dense(&q->arrays[step->in_ids[0]]) &&
                (n->op != OT_OP_Dropout || is_off(q, step, 2));
    for (uint32_t k = 0; k < step->n_out; k++) {
        ot_id v = step->out_slots[k] ? step->out_ids[k] : OT_NONE;
        int64_t before, after;
        if (v == OT_NONE) continue;
        if (!dv_known(q, v) || q->placed_in[v] != OT_NONE) return OT_OK;
        shape[k] = q->arrays[v];
        first[k] = 0;
        bool whole = same && k == 0 && shape[k].dtype == q->arrays[step->in_ids[0]].dtype &&
                     ot_nd_elems(&shape[k], &after) &&
                     ot_nd_elems(&q->arrays[step->in_ids[0]], &before) && before == after;
        if (!whole && !ot_dg_view(n, k, q->arrays, &shape[k], &first[k])) return OT_OK;
    }
    for (uint32_t k = 0; k < step->n_out; k++)
        if (step->out_slots[k])
            OT_TRY(
                dv_window(q, step->out_ids[k], q->at[step->in_ids[0]], &shape[k], first[k], NULL));
    *done = true;
    return push_nothing(q, step);
}

/* ---- the whole ---- */

static ot_status single(dv_schedule *q, uint32_t place)
{
    ot_step *step = &q->p->steps[place];
    const ot_group alone = {.n = 1, .parts = {{place, OT_ROLE_ELEMENT}}};
    ot_dg_code code = {.why = "a body of its own"};
    bool done;
    if (step->n_bodies == 0 && step->node->n_captured == 0) {
        OT_TRY(view(q, step, &done));
        if (done) return OT_OK;
        OT_TRY(generate(q, &alone, &code));
    }
    if (!code.why) return dv_push_code(q, step, step->node->op_type, 1, &code, NULL);
    return host_unit(q, step, code.why);
}

/* "Conv, Relu, Add". NULL: out of memory. */
static const char *name_group(const dv_schedule *q, const ot_group *x)
{
    const char *name = q->p->steps[x->parts[0].place].node->op_type;
    for (uint32_t k = 1; k < x->n && name; k++)
        name = ot_format(q->s->a, "%s, %s", name, q->p->steps[x->parts[k].place].node->op_type);
    return name;
}

static ot_status group_unit(dv_schedule *q, const ot_group *x, uint32_t last)
{
    ot_dg_code code;
    if (x->n == 1) return single(q, x->parts[0].place);
    OT_TRY(generate(q, x, &code));
    const char *name = name_group(q, x);
    if (!name) return ot_fail_nomem(q->s->s->d);
    if (!code.why) return dv_push_code(q, &q->p->steps[last], name, x->n, &code, NULL);
    for (uint32_t k = 0; k < x->n; k++) OT_TRY(single(q, x->parts[k].place));
    return OT_OK;
}

/* Results that kernels have made by now go to the host. */
static ot_status push_results(dv_schedule *q, ot_step *step, bool *sent)
{
    dv_unit u = {.kind = DV_NOTHING, .step = step};
    for (uint32_t k = 0; k < q->p->g->n_outputs && !q->outer; k++) {
        ot_id v = q->p->g->outputs[k];
        uint32_t by = q->list.maker[v];
        if (sent[k] || by == OT_NONE || !q->made[by] || !on_device(q, v)) continue;
        sent[k] = true;
        OT_TRY(download(q, &u, step, v));
    }
    if (u.n_downloads == 0) return OT_OK;
    return OT_PUSH(q->s->a, q->units, q->n_units, q->cap_units, u) ? OT_OK : nomem(q);
}

ot_status dv_make_units(dv_schedule *q)
{
    ot_group *groups;
    bool *sent = OT_NEW_N(q->s->a, bool, q->p->g->n_outputs + 1u);
    if (!sent) return nomem(q);
    for (uint32_t k = 0; k < q->p->g->n_inputs && !q->outer; k++)
        q->at[q->p->g->inputs[k]]->uploaded = true;
    if (!q->outer) OT_TRY(dv_find_streams(q));
    OT_TRY(dv_place_tiles(q));
    OT_TRY(dv_find_groups(q, &groups));
    OT_TRY(dv_choose_blocks(q, groups));
    for (uint32_t k = 0; k < q->p->n_steps; k++) {
        ot_step *step = &q->p->steps[k];
        if (!q->list.node[k]) continue;
        if (strcmp(step->node->domain, "onnx_tile") == 0 && step->node->op == OT_OP_OPAQUE)
            OT_TRY(dv_tile_unit(q, step));
        else if (groups[k].n > 0)
            OT_TRY(group_unit(q, &groups[k], k));
        else if (!q->list.taken[k])
            OT_TRY(single(q, k));
        q->made[k] = !q->list.taken[k];
        for (uint32_t j = 0; j < groups[k].n; j++) q->made[groups[k].parts[j].place] = true;
        OT_TRY(push_results(q, step, sent));
    }
    return OT_OK;
}
