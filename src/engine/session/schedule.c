/* A graph -> what runs it: slots for values, steps for nodes.
 *
 *   1. every value gets a slot; an outer value is the slot of an enclosing schedule
 *   2. nodes that no output depends on are left out; the others become steps in graph.order:
 *   implementation, operands, subgraphs
 *   3. steps that depend on constants only are computed at once, where that is cheap, and left out,
 *   too
 *   4. each step learns which slots nobody reads after it
 *
 * Functions are schedules, too, one a call, so that a call's attributes and omitted inputs are
 * known when it is made.
 */
#include "engine/lower/lower.h"

#include "base/watch.h"
#include "lifetime/lifetime.h"
#include "onnx/import/model_io.h"

/* ---- values ---- */

/* The slot of an outer value: that of the innermost schedule around that knows the name. */
static ot_slot *outer_slot(const ot_schedule *p, const char *name)
{
    for (const ot_schedule *up = p->outer; up; up = up->outer) {
        ot_id v = ot_value_find(up->g, name);
        if (v != OT_NONE && up->at[v]) return up->at[v];
    }
    return NULL;
}

static ot_status make_slots(ot_schedule *p, const bool *absent)
{
    ot_graph *g = p->g;
    p->slots = OT_NEW_N(p->s->a, ot_slot, g->n_values + 1u);
    p->at = OT_NEW_N(p->s->a, ot_slot *, g->n_values + 1u);
    p->n_ids = g->n_values;
    if (!p->slots || !p->at) return ot_fail_nomem(p->s->d);
    for (ot_id v = 0; v < g->n_values; v++) {
        const ot_value *x = &g->values[v];
        p->at[v] = x->is_outer ? outer_slot(p, x->name) : &p->slots[v];
        if (!p->at[v])
            return ot_fail(p->s->d, OT_E_INPUT,
                           "value '%.200s' of graph '%.200s' is defined nowhere", x->name, g->name);
        if (!x->is_outer && x->init) OT_TRY(ot_slot_set_tensor(p, &p->slots[v], x->init));
    }
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        ot_slot *slot = &p->slots[g->inputs[k]];
        slot->is_borrowed = !slot->is_const;
        slot->absent = absent && absent[k];
    }
    for (uint32_t k = 0; k < g->n_outputs; k++)
        if (!g->values[g->outputs[k]].is_outer) p->slots[g->outputs[k]].is_result = true;
    return OT_OK;
}

/* wanted: [n_values] read by a node that runs, or an output of the graph. needed: [n_nodes] */
static ot_status find_needed(const ot_schedule *p, ot_arena *a, bool **wanted, bool **needed)
{
    const ot_graph *g = p->g;
    *wanted = OT_NEW_N(a, bool, g->n_values + 1u);
    *needed = OT_NEW_N(a, bool, g->n_nodes + 1u);
    if (!*wanted || !*needed) return ot_fail_nomem(p->s->d);
    for (uint32_t k = 0; k < g->n_outputs; k++) (*wanted)[g->outputs[k]] = true;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[g->order[k]];
        bool need = false;
        for (uint32_t j = 0; j < n->n_out; j++)
            need = need || (n->out[j] != OT_NONE && (*wanted)[n->out[j]]);
        (*needed)[g->order[k]] = need;
        for (uint32_t j = 0; need && j < n->n_in; j++)
            if (n->in[j] != OT_NONE) (*wanted)[n->in[j]] = true;
        for (uint32_t j = 0; need && j < n->n_captured; j++) (*wanted)[n->captured[j]] = true;
    }
    return OT_OK;
}

/* ---- steps ---- */

/* Operators of opsets too old for the passes are opaque to them, but not to implementations. */
static ot_status known_node(const ot_schedule *p, const ot_node *n, const ot_node **out)
{
    ot_op op = ot_op_of(n->domain, n->op_type);
    *out = n;
    if (n->op != OT_OP_OPAQUE || op == OT_OP_OPAQUE) return OT_OK;
    ot_node *own = ot_memdup(p->s->a, n, sizeof *n);
    if (!own) return ot_fail_nomem(p->s->d);
    own->op = op;
    *out = own;
    return OT_OK;
}

static bool handles_lists(const ot_node *n)
{
    static const char *const names[] = {"ConcatFromSequence", "SplitToSequence", "Identity"};
    if (n->op == OT_OP_If || n->op == OT_OP_Loop || n->op == OT_OP_Scan) return true;
    if (n->domain[0]) return false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(n->op_type, names[k]) == 0) return true;
    return strncmp(n->op_type, "Sequence", 8) == 0 || strncmp(n->op_type, "Optional", 8) == 0;
}

static ot_status operands(ot_schedule *p, ot_step *step, const bool *wanted)
{
    const ot_node *n = step->node;
    step->n_in = n->n_in;
    step->n_out = n->n_out;
    step->in_ids = n->in;
    step->out_ids = n->out;
    step->in = OT_NEW_N(p->s->a, const ot_nd *, n->n_in + 1u);
    step->out = OT_NEW_N(p->s->a, ot_nd *, n->n_out + 1u);
    step->out_slots = OT_NEW_N(p->s->a, ot_slot *, n->n_out + 1u);
    if (!step->in || !step->out || !step->out_slots) return ot_fail_nomem(p->s->d);
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && !p->at[n->in[k]]->absent) step->in[k] = &p->at[n->in[k]]->nd;
    for (uint32_t k = 0; k < n->n_out; k++) {
        /* implementations may count on the first */
        if (n->out[k] == OT_NONE || (k > 0 && !wanted[n->out[k]])) continue;
        step->out_slots[k] = &p->slots[n->out[k]];
        step->out[k] = &step->out_slots[k]->nd;
    }
    return OT_OK;
}

/* Threads that share a step of the body: tiles that run side by side have one each. */
static uint32_t threads_inside(const ot_schedule *p, const ot_node *n)
{
    const bool apart = ot_is_tile_op(n, "While") && ot_attr_int(n, "carried", 0) <= 0 &&
                       ot_attr_int(n, "in_order", 0) <= 0;
    return apart ? 1 : p->threads;
}

static ot_status add_body(ot_schedule *p, ot_step *step, const char *attr, ot_graph *g, bool inside,
                          uint32_t depth, const bool *absent)
{
    ot_schedule *body;
    if (depth >= OT_NESTING_MAX) {
        char label[OT_LABEL_MAX];
        return ot_fail(p->s->d, OT_E_INPUT,
                       "%s: subgraphs and functions are nested more than %d deep",
                       ot_node_label(step->node, label, sizeof label), OT_NESTING_MAX);
    }
    OT_TRY(ot_schedule_new(p->s, g, inside ? p : NULL,
                           inside ? threads_inside(p, step->node) : p->s->threads, depth + 1,
                           absent, &body));
    step->bodies[step->n_bodies++] = (ot_body){attr, body};
    return OT_OK;
}

/* Schedules of the subgraphs among the attributes. */
static ot_status add_bodies(ot_schedule *p, ot_step *step, uint32_t depth)
{
    const ot_node *n = step->node;
    uint32_t count = 0;
    for (uint32_t k = 0; k < n->n_attrs; k++) count += ot_attr_has_graph(p->s->m, &n->attrs[k]);
    if (count == 0) return OT_OK;
    step->bodies = OT_NEW_N(p->s->a, ot_body, count);
    if (!step->bodies) return ot_fail_nomem(p->s->d);
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        ot_graph *g = n->attrs[k].g;
        if (!ot_attr_has_graph(p->s->m, &n->attrs[k])) continue;
        if (n->attrs[k].kind != OT_ATTR_GRAPH)
            OT_TRY(ot_import_body(p->s->m, &n->attrs[k], p->g, &g));
        OT_TRY(ot_infer_body(p->g, n, g));
        OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
        if (ot_is_tile_op(n, "While")) OT_TRY(ot_tile_reads_first(g));
        OT_TRY(add_body(p, step, n->attrs[k].name, g, true, depth, NULL));
    }
    return OT_OK;
}

/* The node calls a model-local function whose body is f. */
static ot_status add_function(ot_schedule *p, ot_step *step, ot_graph *f, uint32_t depth)
{
    const ot_node *n = step->node;
    char label[OT_LABEL_MAX];
    if (n->n_in > f->n_inputs || n->n_out > f->n_outputs)
        return ot_fail(p->s->d, OT_E_INPUT,
                       "%s: its function takes %u inputs and makes %u outputs, not %u and %u",
                       ot_node_label(n, label, sizeof label), f->n_inputs, f->n_outputs, n->n_in,
                       n->n_out);
    bool *absent = OT_NEW_N(p->s->a, bool, f->n_inputs + 1u);
    step->bodies = OT_NEW(p->s->a, ot_body);
    if (!absent || !step->bodies) return ot_fail_nomem(p->s->d);
    for (uint32_t k = 0; k < f->n_inputs; k++) absent[k] = k >= n->n_in || !step->in[k];
    step->run = ot_call_function;
    step->takes_lists = true;
    return add_body(p, step, "", f, false, depth, absent);
}

static ot_status no_implementation(const ot_schedule *p, const ot_node *n)
{
    char label[OT_LABEL_MAX];
    return ot_fail(p->s->d, OT_E_INPUT, "%s: the engine does not have this operator%s%.100s%s",
                   ot_node_label(n, label, sizeof label), n->domain[0] ? " (domain '" : "",
                   n->domain, n->domain[0] ? "')" : "");
}

static ot_status too_many(const ot_schedule *p, const ot_node *n)
{
    char label[OT_LABEL_MAX];
    return ot_fail(p->s->d, OT_E_INPUT, "%s: the model's functions call one another too often",
                   ot_node_label(n, label, sizeof label));
}

/* Nothing makes or hands it over, and no contents are known. */
static bool is_sparse(const ot_value *v)
{
    return !v->is_tensor && !v->init && !v->is_input && !v->is_outer && v->producer == OT_NONE;
}

/* Implementations find the operands that their operator needs. Nodes of opsets too old for the
 * passes had others: their implementations look themselves. */
static ot_status check_operands(const ot_schedule *p, const ot_node *n)
{
    char label[OT_LABEL_MAX], why[80];
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && is_sparse(&p->g->values[n->in[k]]))
            return ot_fail(p->s->d, OT_E_INPUT,
                           "%s: initializer '%.160s' is sparse, which the engine does not take",
                           ot_node_label(n, label, sizeof label), p->g->values[n->in[k]].name);
    if (!ot_node_lacks(n, why, sizeof why)) return OT_OK;
    return ot_fail(p->s->d, OT_E_INPUT, "%s: %s", ot_node_label(n, label, sizeof label), why);
}

static ot_status make_step(ot_schedule *p, const ot_node *n, const bool *wanted, uint32_t depth,
                           ot_step *step)
{
    ot_session *s = p->s;
    *step = (ot_step){.node = n, .in_place = OT_NONE, .work_at = -1};
    if (++s->n_steps_all > OT_STEPS_MAX) return too_many(p, n);
    OT_TRY(check_operands(p, n));
    OT_TRY(operands(p, step, wanted));
    if (n->op == OT_OP_OPAQUE) {
        ot_graph *f;
        OT_TRY(ot_import_call(s->m, n, &f));
        if (f && ++s->n_calls > OT_CALLS_MAX) return too_many(p, n);
        if (f) return add_function(p, step, f, depth);
    }
    OT_TRY(known_node(p, n, &step->node));
    step->run = ot_op_choose(step->node, s->reference);
    if (!step->run && strcmp(n->domain, "onnx_tile") == 0) step->run = ot_run_tile_op;
    if (!step->run) return no_implementation(p, n);
    step->takes_lists = handles_lists(step->node);
    return ot_is_tile_op(n, "While") ? OT_OK : add_bodies(p, step, depth);
}

/* Bodies of tiles, those that run often first: the weights that a session may hold in other
 * forms (Winograd's) go to them, and not to steps in front of a stream or corners, whose sizes
 * may ask for a form of their own. */
static ot_status add_tiles(ot_schedule *p, uint32_t depth)
{
    for (int often = 1; often >= 0; often--)
        for (uint32_t k = 0; k < p->n_steps; k++) {
            const ot_node *n = p->steps[k].node;
            if (ot_is_tile_op(n, "While") && (ot_attr_int(n, "count", 1) > 1) == often)
                OT_TRY(add_bodies(p, &p->steps[k], depth));
        }
    return OT_OK;
}

/* ---- lifetimes ---- */

/* Windows of fused steps hold no reference: what they look at lives as long as they do. */
static void keep_viewed(const ot_schedule *p, ot_value_lifetimes *l)
{
    for (uint32_t k = p->n_steps; k-- > 0;) {
        const ot_step *step = &p->steps[k];
        if (step->is_fused && step->is_view)
            ot_lifetime_read(l, step->in_ids[0], ot_lifetime_end(l, step->out_ids[0]));
    }
}

/* What is captured counts as read by the step whose node captures it; values of schedules around
 * are theirs. */
static ot_status find_lifetimes(ot_schedule *p, ot_arena *a)
{
    ot_value_lifetimes l;
    if (ot_value_lifetimes_new(p->n_ids, a, &l) != OT_OK) return ot_fail_nomem(p->s->d);
    for (uint32_t k = 0; k < p->n_steps; k++) {
        const ot_step *step = &p->steps[k];
        for (uint32_t j = 0; j < step->n_in; j++)
            if (step->in_ids[j] != OT_NONE) ot_lifetime_read(&l, step->in_ids[j], k);
        for (uint32_t j = 0; j < step->node->n_captured; j++)
            ot_lifetime_read(&l, step->node->captured[j], k);
        for (uint32_t j = 0; j < step->n_out; j++)
            if (step->out_slots[j]) l.made[step->out_ids[j]] = k;
    }
    keep_viewed(p, &l);
    for (ot_id v = 0; v < p->n_ids; v++)
        if (l.made[v] != OT_NONE) {
            p->at[v]->born = l.made[v];
            p->at[v]->last = ot_lifetime_end(&l, v);
        }
    return OT_OK;
}

/* Fill release lists. */
static ot_status find_last(ot_schedule *p, ot_arena *a)
{
    uint32_t *count = OT_NEW_N(p->s->a, uint32_t, p->n_steps + 1u);
    if (!count) return ot_fail_nomem(p->s->d);
    OT_TRY(find_lifetimes(p, a));
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; k < p->n_steps; k++)
            for (uint32_t j = 0; j < p->steps[k].n_out; j++) {
                ot_slot *slot = p->steps[k].out_slots[j];
                if (!slot || slot->is_result) continue;
                ot_step *last = &p->steps[slot->last];
                if (pass == 0) {
                    count[slot->last]++;
                    continue;
                }
                if (!last->release) last->release = OT_NEW_N(p->s->a, ot_slot *, count[slot->last]);
                if (!last->release) return ot_fail_nomem(p->s->d);
                last->release[last->n_release++] = slot;
            }
    return OT_OK;
}

/* ---- the whole ---- */

static ot_status make_steps(ot_schedule *p, ot_arena *scratch, uint32_t depth)
{
    ot_graph *g = p->g;
    bool *wanted, *needed;
    OT_TRY(find_needed(p, scratch, &wanted, &needed));
    p->steps = OT_NEW_N(p->s->a, ot_step, g->n_order + 1u);
    if (!p->steps) return ot_fail_nomem(p->s->d);
    for (uint32_t k = 0; k < g->n_order; k++) {
        bool folded = false;
        ot_step *step = &p->steps[p->n_steps];
        if (!needed[g->order[k]]) continue;
        OT_TRY(ot_watch_look(p->s->d));
        OT_TRY(make_step(p, &g->nodes[g->order[k]], wanted, depth, step));
        OT_TRY(ot_step_fold(p, step, &folded));
        if (!folded) p->n_steps++;
    }
    OT_TRY(add_tiles(p, depth));
    if (!p->s->place) OT_TRY(ot_lower(p));
    return find_last(p, scratch);
}

ot_status ot_schedule_new(ot_session *s, ot_graph *g, ot_schedule *outer, uint32_t threads,
                          uint32_t depth, const bool *absent, ot_schedule **out)
{
    ot_schedule *p = *out = OT_NEW(s->a, ot_schedule);
    ot_arena *scratch = ot_arena_new();
    ot_status st = p && scratch ? OT_OK : ot_fail_nomem(s->d);
    if (p) {
        *p = (ot_schedule){
            .s = s, .next = s->all, .outer = outer, .g = g, .threads = threads, .tile = -1};
        p->frame.schedule = p;
        s->all = p;
    }
    if (st == OT_OK) st = make_slots(p, absent);
    if (st == OT_OK) st = make_steps(p, scratch, depth);
    ot_arena_free(scratch);
    return st;
}

ot_status ot_schedule_hire(ot_schedule *outer, ot_graph *g, uint32_t threads, ot_schedule **p)
{
    if (!*p) OT_TRY(ot_schedule_new(outer->s, g, outer, threads, 1, NULL, p));
    OT_TRY(ot_schedule_plan(*p));
    return ot_schedule_time(*p);
}

ot_status ot_schedule_time(ot_schedule *p)
{
    p->times = OT_NEW_N(p->s->a, ot_node_time, p->n_steps + 1u);
    if (!p->times) return ot_fail_nomem(p->s->d);
    for (uint32_t k = 0; k < p->n_steps; k++)
        p->times[k] = (ot_node_time){p->steps[k].node->name, p->steps[k].node->op_type, 0};
    return OT_OK;
}

void ot_schedule_release(ot_schedule *p)
{
    for (uint32_t k = 0; p->slots && k < p->g->n_values; k++) ot_nd_release(&p->slots[k].nd);
    for (uint32_t k = p->g->n_values; k < p->n_ids; k++) ot_nd_release(&p->at[k]->nd);
    for (uint32_t k = 0; k < p->n_steps; k++)
        if (p->steps[k].state.free) p->steps[k].state.free(p->steps[k].state.data);
    while (p->n_streams) ot_dnnl_release_stream(p->streams[--p->n_streams]);
    (void)!ot_hook_alloc(p->frame.scratch, p->frame.cap_scratch * sizeof *p->frame.scratch, 0);
}
