/* Loops: so many iterations of a body, up to the point from which they repeat.
 *
 *   iteration   1            2        3        4 ... n
 *   body        makes the    a block  as 2     nothing else: what is free and what is handed on
 *               pattern                        are as before 2 and 3
 *
 * Where pieces are kept, no iteration is like another, and all are simulated.
 */
#include "simulate_run.h"

#define MOST_TRIPS 512                /* of a loop that are simulated, each for as many of */
#define MOST_STOOD (INT64_C(1) << 20) /* that there are at most */

static int64_t trips_of(const ot_graph *g, const ot_node *n)
{
    if (n->n_in == 0 || n->in[0] == OT_NONE) return 1;
    const ot_value *v = &g->values[n->in[0]];
    int64_t trips = 1;
    if (n->op == OT_OP_Scan) {
        size_t n_axes = 0;
        const int64_t *axes = ot_attr_ints(n, "scan_input_axes", &n_axes);
        int64_t axis = axes && n_axes ? axes[0] : 0;
        if (axis < 0) axis += v->rank;
        if (v->rank > 0 && axis >= 0 && axis < v->rank) trips = v->dims[axis];
    } else if (v->init && v->init->data && v->init->dtype == OT_I64 &&
               v->init->bytes >= sizeof trips) {
        memcpy(&trips, v->init->data, sizeof trips);
    } else if (v->known && v->known_n == 1) { /* counted by shape arithmetic: there may be none */
        return ot_max(0, ot_min(v->known[0], MOST_STOOD));
    }
    return ot_max(1, ot_min(trips, MOST_STOOD));
}

/* Bytes of results that a Scan collects elsewhere first, since they are not cut along their
 * first axis. */
static int64_t collected(const ot_sim_run *u, const ot_node *n)
{
    size_t n_axes = 0;
    const int64_t *axes = ot_attr_ints(n, "scan_output_axes", &n_axes);
    int64_t sum = 0;
    for (uint32_t k = 0; axes && k < n_axes && k < n->n_out; k++)
        if (axes[k] != 0 && n->out[k] != OT_NONE)
            sum += ot_max(0, u->f->plan.values[n->out[k]].bytes);
    return sum;
}

/* What a Loop carries besides sequences: tensors that the body hands from one iteration to the
 * next. */
typedef struct carried {
    uint32_t *now, *next; /* [n_outputs of the body] chunks */
    bool *is;             /* [n_outputs of the body] */
} carried;

static ot_status new_carried(ot_sim_run *u, const ot_node *n, const ot_graph *body, carried *c)
{
    *c = (carried){.now = OT_NEW_N(u->x->a, uint32_t, body->n_outputs + 1u),
                   .next = OT_NEW_N(u->x->a, uint32_t, body->n_outputs + 1u),
                   .is = OT_NEW_N(u->x->a, bool, body->n_outputs + 1u)};
    if (!c->now || !c->next || !c->is) return OT_E_NOMEM;
    for (uint32_t k = 0; k < body->n_outputs; k++) {
        c->now[k] = c->next[k] = OT_NONE;
        c->is[k] = n->op == OT_OP_Loop && k >= 1 && k + 1 < body->n_inputs &&
                   body->values[body->outputs[k]].is_tensor;
    }
    return OT_OK;
}

/* What the Loop carried in the end is copied, into the block where there is one, and goes then. */
static ot_status hand_out(ot_sim_run *u, const ot_node *n, const ot_graph *body, carried *c)
{
    for (uint32_t k = 1; k < body->n_outputs; k++) {
        const uint32_t b = c->is[k] && k - 1 < n->n_out && n->out[k - 1] != OT_NONE
                               ? u->f->plan.values[n->out[k - 1]].buffer
                               : OT_NONE;
        if (b == OT_NONE || u->f->plan.buffers[b].kind != OT_BUFFER_HANDED || u->in_block) continue;
        OT_TRY(ot_sim_take(u->x, u->f->plan.buffers[b].bytes, &u->chunk[b]));
        if (u->chunk[b] != OT_NONE) OT_TRY(ot_sim_record(u, b));
    }
    for (uint32_t k = 0; k < body->n_outputs; k++) {
        ot_sim_release(u->x, &c->now[k]);
        ot_sim_release(u->x, &c->next[k]);
    }
    return OT_OK;
}

/* What an iteration starts from; equal for two of them, it will be so for ever: what a body takes
 * follows from what is free, where what it was handed lies, and nothing else. */
typedef struct footing {
    uint64_t layout, handed;
    int64_t touched;
    size_t n_kept; /* ot_sim_pieces */
} footing;

static footing footing_of(const ot_sim_run *u, const ot_graph *body, const carried *c,
                          const ot_sim_pieces *stack)
{
    footing f = {.layout = ot_chunk_layout(u->x->memory),
                 .touched = ot_chunk_touched(u->x->memory),
                 .n_kept = stack->n};
    for (uint32_t k = 0; k < body->n_outputs; k++)
        f.handed = f.handed * 31 + ot_chunk_mark(u->x->memory, c->now[k]);
    return f;
}

static bool same_footing(const footing *a, const footing *b)
{
    return a->layout == b->layout && a->handed == b->handed && a->touched == b->touched &&
           a->n_kept == b->n_kept;
}

/* Iterations to come, of `left`, without whole rounds of the last one or two, which would change
 * nothing any more. seen: [2] footings of the two iterations before, the latest first, of those
 * [n_seen] behind the first, which makes patterns. */
static int64_t iterations_left(int64_t left, const footing *now, const footing *seen, int n_seen)
{
    for (int period = 1; period <= n_seen; period++)
        if (same_footing(now, &seen[period - 1])) return (left - 1) % period + 1;
    return left;
}

typedef struct looping {
    const ot_graph *body;
    bool is_scan;
    ot_sim_stack *stacks;        /* [outputs of the body] of a Scan */
    ot_sim_pieces stack;         /* results that are kept */
    ot_sim_pieces **fed, **made; /* [inputs, outputs of the body] */
    carried c;
    ot_sim_tape tape;
} looping;

static ot_status iterate(ot_sim_run *u, looping *l)
{
    const ot_sim_visit v = {.fed = l->fed,
                            .n_fed = l->body->n_inputs,
                            .elsewhere = l->is_scan,
                            .stacks = l->stacks,
                            .kept = &l->stack,
                            .made = l->made,
                            .into = l->c.next,
                            .handed = l->c.is,
                            .tape = &l->tape};
    u->x->n_loops++;
    OT_TRY(ot_sim_run_graph(u->x, l->body, &v));
    u->x->n_loops--;
    for (uint32_t k = 2; !l->is_scan && k < l->body->n_inputs && k <= l->body->n_outputs; k++) {
        l->tape.is_done &= l->fed[k] == l->made[k - 1]; /* else it is another iteration */
        l->fed[k] = l->made[k - 1];
    }
    return OT_OK;
}

/* What the iteration before the last was given goes. */
static void advance(ot_sim_run *u, looping *l)
{
    for (uint32_t k = 0; k < l->body->n_outputs; k++) {
        ot_sim_release(u->x, &l->c.now[k]);
        l->c.now[k] = l->c.next[k];
        l->c.next[k] = OT_NONE;
    }
}

static ot_status iterate_all(ot_sim_run *u, looping *l, int64_t trips)
{
    footing seen[2] = {{0}};
    bool sequences = false;
    for (uint32_t k = 0; k < l->body->n_inputs; k++) sequences |= l->fed[k] != NULL;
    for (int64_t t = 0, left = trips; left > 0 && !u->x->stops; t++, left--) {
        advance(u, l);
        if (!sequences && !ot_tape_keeps(&l->tape)) {
            const footing now = footing_of(u, l->body, &l->c, &l->stack);
            left = iterations_left(left, &now, seen, t < 2 ? 0 : t == 2 ? 1 : 2);
            seen[1] = seen[0];
            seen[0] = now;
        }
        OT_TRY(iterate(u, l));
    }
    return OT_OK;
}

/* Results of a Scan come before its first iteration, but for those of which the body states no
 * extents: they come when the first part of them is made. */
static ot_status take_stacks(ot_sim_run *u, const ot_sim_step *s, const ot_node *n, looping *l)
{
    const ot_sim_schedule *p = &u->f->plan;
    ot_sim_step rest = *s;
    uint32_t *writes = OT_NEW_N(u->x->a, uint32_t, s->n_writes + 1u);
    l->stacks = OT_NEW_N(u->x->a, ot_sim_stack, l->body->n_outputs + 1u);
    if (!writes || !l->stacks) return OT_E_NOMEM;
    rest.writes = writes;
    rest.n_writes = 0;
    for (uint32_t k = 0; k < s->n_writes; k++) {
        const uint32_t v = s->writes[k], b = p->values[v].buffer;
        const ot_sim_stack *outer = ot_sim_stack_of(u, v); /* of which it is a part */
        uint32_t at = 0;
        while (at < n->n_out && n->out[at] != v % p->g->n_values) at++;

        if (b == OT_NONE || u->chunk[b] != OT_NONE || ot_sim_lies_elsewhere(u, v) ||
            at >= l->body->n_outputs || !l->body->values[l->body->outputs[at]].is_unstated)
            writes[rest.n_writes++] = v;
        else
            l->stacks[at] = outer ? *outer : (ot_sim_stack){p->buffers[b].bytes, &u->chunk[b]};
    }
    return ot_sim_take_results(u, &rest);
}

ot_status ot_sim_loop_step(ot_sim_run *u, const ot_sim_step *s, const ot_node *n,
                           const ot_graph *body)
{
    const ot_graph *g = u->f->plan.g;
    const int64_t trips = trips_of(g, n), before = u->x->each,
                  each = ot_max(1, ot_ceil_div(trips, MOST_TRIPS));
    looping l = {.body = body,
                 .is_scan = n->op == OT_OP_Scan,
                 .fed = OT_NEW_N(u->x->a, ot_sim_pieces *, body->n_inputs + 1u),
                 .made = OT_NEW_N(u->x->a, ot_sim_pieces *, body->n_outputs + 1u)};
    uint32_t beside = OT_NONE;
    if (!l.fed || !l.made) return OT_E_NOMEM;
    OT_TRY(new_carried(u, n, body, &l.c));
    if (l.is_scan) {
        OT_TRY(ot_sim_take(u->x, collected(u, n), &beside));
        OT_TRY(take_stacks(u, s, n, &l));
    }
    for (uint32_t k = 2; !l.is_scan && k < n->n_in && k < body->n_inputs; k++)
        if (n->in[k] != OT_NONE) l.fed[k] = u->held[n->in[k]];
    u->x->each = ot_min(before * each, MOST_STOOD);
    OT_TRY(iterate_all(u, &l, ot_ceil_div(trips, each)));
    for (uint32_t k = 0; !l.is_scan && k < n->n_out; k++)
        if (n->out[k] != OT_NONE && k + 1 < body->n_outputs)
            u->held[n->out[k]] = trips > 0 ? l.made[k + 1] : l.fed[k + 2];
    u->x->each = before;
    OT_TRY(hand_out(u, n, body, &l.c));
    if (!l.is_scan) OT_TRY(ot_sim_take_results(u, s));
    ot_sim_release_pieces(u->x, &l.stack);
    ot_sim_release(u->x, &beside);
    return OT_OK;
}
