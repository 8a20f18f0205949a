/* One block for the values of a graph and of all its bodies, each at an offset of its own from
 * the step that writes it to the last that reads it (OpenVINO on a CPU, measured):
 *
 *   step  0     1        2                               9     10
 *   main  Conv  to plain Loop                            Loop  Concat  what a Loop reads and makes
 *                                                                      lives through all of it;
 *   body                 3 Slice  4 Conv ... 8 to plain                its body's values share the
 *                                                                      block, in between
 *
 * In memory of their own, as long as the model is loaded: graph inputs and outputs; what a body
 * is given, which includes a copy of every tensor that it reads from outside; what a body hands
 * out for an iteration. Weights are there twice, as they are and as implementations read them: once
 * for each graph that has them, but once for each convolution where a BatchNormalization is folded
 * into them. Implementations and tables of each step that is written take memory, too (node_bytes,
 * loop_bytes of the runtime's table).
 *
 * Convolutions compute channels-last and element-wise steps hand that on; a value that is read
 * both ways exists twice.
 */
#include "one_block.h"

#include "simulate.h"
#include "live_boxes.h"

#include "fusion/steps.h"

/* what is freed of less than this stays with the process (malloc) */
#define HEAP_BYTES (INT64_C(32) << 20)
#define OWN        (INT64_C(3) << 19) /* what the first run of a model of no size takes */

typedef struct place {
    int64_t bytes;
    uint32_t box;     /* OT_NONE: a block of its own, a constant, or nobody made it */
    uint32_t changed; /* in the other layout; OT_NONE: nobody asked for it */
    bool is_last;     /* channels last */
} place;

typedef struct tally {
    const ot_runtime *r;
    ot_arena *a;
    ot_live_box *boxes; /* [n] */
    size_t n, cap;
    uint32_t now;       /* the step that runs next */
    int64_t own;        /* bytes outside the block */
    int64_t given_back; /* and inputs, before it runs */
    int64_t results;    /* of the graph: as they are made, and as they are handed out */
    uint32_t n_unknown;
} tally;

/* A graph that is walked. */
typedef struct walk {
    tally *x;
    const ot_graph *g;
    bool is_body;
    ot_node_list list; /* places: numbers in the order */
    ot_steps steps;
    place *places; /* [n_values] */
    bool *counted; /* [n_values] constants that were counted, as weights of a product */
    bool *ran;     /* [places] leaders of steps that ran */
} walk;

static ot_status walk_graph(tally *x, const ot_graph *g, bool is_body);

static int64_t bytes_of(tally *x, const ot_value *v)
{
    int64_t bytes = 0;
    if (ot_sim_held_bytes(v, &bytes)) return bytes;
    x->n_unknown += v->is_tensor;
    return 0;
}

static ot_status new_box(tally *x, uint32_t first, int64_t bytes, ot_id maker, uint32_t *box)
{
    *box = (uint32_t)x->n;
    return OT_PUSH(x->a, x->boxes, x->n, x->cap, ((ot_live_box){first, first, bytes, 0, maker}))
               ? OT_OK
               : OT_E_NOMEM;
}

static void read_at(tally *x, uint32_t box, uint32_t step)
{
    if (box != OT_NONE && step > x->boxes[box].last) x->boxes[box].last = step;
}

/* ---- layouts ---- */

static bool is_convolution(ot_op op) { return op == OT_OP_Conv || op == OT_OP_ConvTranspose; }

/* The activation that the step is about: what its first node reads first. */
static ot_id first_read(const walk *w, uint32_t leader)
{
    const ot_node *n = w->list.node[leader];
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && !ot_is_fixed(w->g, n->in[k])) return n->in[k];
    return OT_NONE;
}

static bool step_is_last(const walk *w, uint32_t leader)
{
    const uint32_t product = w->steps.product[leader], v = first_read(w, leader);
    if (product != OT_NONE) {
        const ot_node *n = w->list.node[product];
        return is_convolution(n->op) && ot_runtime_makes_blocks(w->x->r, n) &&
               w->g->values[n->in[0]].rank > 2;
    }
    return v != OT_NONE && w->places[v].is_last &&
           ot_runtime_keeps_blocks(w->x->r, w->list.node[leader]);
}

/* The step `t` reads v in that layout. Changing it is a step before. */
static ot_status bring(walk *w, ot_id v, bool last, uint32_t *box)
{
    place *p = &w->places[v];
    *box = p->box;
    if (p->is_last == last || w->g->values[v].rank < 3 || p->bytes == 0) return OT_OK;
    if (p->changed == OT_NONE) {
        OT_TRY(new_box(w->x, w->x->now, p->bytes, w->is_body ? OT_NONE : w->g->values[v].producer,
                       &p->changed));
        read_at(w->x, p->box, w->x->now++);
    }
    *box = p->changed;
    return OT_OK;
}

/* ---- constants ---- */

static void count_weights(walk *w, uint32_t leader)
{
    const uint32_t product = w->steps.product[leader];
    if (product == OT_NONE || w->list.node[product]->n_in < 2) return;
    const ot_id v = w->list.node[product]->in[1];
    bool folded = false;
    if (v == OT_NONE || !ot_is_fixed(w->g, v)) return;
    for (uint32_t k = leader; k != OT_NONE; k = w->steps.next[k])
        folded |= w->list.node[k]->op == OT_OP_BatchNormalization;
    /* transposed, and packed */
    const int64_t copies = w->list.node[product]->op == OT_OP_MatMul ? 3 : 2;
    if (folded || !w->counted[v]) w->x->own += copies * bytes_of(w->x, &w->g->values[v]);
    w->counted[v] = true;
}

static void count_constants(walk *w)
{
    for (ot_id v = 0; v < w->g->n_values; v++)
        if (w->g->values[v].init && !w->counted[v] && ot_list_readers(&w->list, v) > 0)
            w->x->own += bytes_of(w->x, &w->g->values[v]);
}

/* ---- steps ---- */

static const ot_graph *body_of(const ot_node *n)
{
    const ot_attr *a = ot_attr_find(n, "body");
    return a && a->kind == OT_ATTR_GRAPH && (n->op == OT_OP_Loop || n->op == OT_OP_Scan) ? a->g
                                                                                         : NULL;
}

static bool is_inside(const walk *w, ot_id v, uint32_t leader)
{
    const uint32_t by = w->list.maker[v];
    return by != OT_NONE && w->steps.leader[by] == leader;
}

/* What the step reads, brought to its layout: [*n] boxes. */
static ot_status bring_all(walk *w, uint32_t leader, bool last, uint32_t **boxes, size_t *n)
{
    size_t cap = 0;
    *boxes = NULL;
    *n = 0;
    for (uint32_t k = leader; k != OT_NONE; k = w->steps.next[k]) {
        const ot_node *node = w->list.node[k];
        for (uint32_t j = 0; j < node->n_in + node->n_captured; j++) {
            ot_id v = j < node->n_in ? node->in[j] : node->captured[j - node->n_in];
            uint32_t box;
            if (v == OT_NONE || ot_is_fixed(w->g, v) || is_inside(w, v, leader)) continue;
            OT_TRY(bring(w, v, last, &box));
            if (box != OT_NONE && !OT_PUSH(w->x->a, *boxes, *n, cap, box)) return OT_E_NOMEM;
        }
    }
    return OT_OK;
}

/* The tensor that a convolution adds to its result, if its memory can take the result: nobody
 * reads it later. */
static uint32_t added_to(const walk *w, uint32_t leader, ot_id result)
{
    const uint32_t product = w->steps.product[leader];
    if (product == OT_NONE || !is_convolution(w->list.node[product]->op)) return OT_NONE;
    for (uint32_t k = w->steps.next[leader]; k != OT_NONE; k = w->steps.next[k]) {
        const ot_node *n = w->list.node[k];
        for (uint32_t j = 0;
             (n->op == OT_OP_Add || n->op == OT_OP_Sub || n->op == OT_OP_Sum) && j < n->n_in; j++) {
            ot_id v = n->in[j];
            if (v == OT_NONE || ot_is_fixed(w->g, v) || is_inside(w, v, leader) ||
                w->places[v].bytes != w->places[result].bytes)
                continue;
            const place *p = &w->places[v];
            bool later = false;
            for (uint32_t i = w->list.first[v]; i < w->list.first[v + 1]; i++)
                later |= !w->ran[w->steps.leader[w->list.readers[i]]];
            if (!later) return p->is_last ? p->box : p->changed;
        }
    }
    return OT_NONE;
}

/* A result of the graph lies in memory of its own, plain. */
static ot_status hand_out(walk *w, ot_id v)
{
    place *p = &w->places[v];
    if (w->is_body)
        w->x->own += p->bytes;
    else
        w->x->results += 2 * p->bytes;
    if (p->is_last && w->g->values[v].rank > 2) {
        read_at(w->x, p->box, w->x->now++);
    } else if (p->box != OT_NONE) {
        w->x->boxes[p->box].bytes = 0; /* a view of it is handed out */
        p->box = OT_NONE;
    }
    return OT_OK;
}

static ot_status make_result(walk *w, ot_id v, uint32_t leader, bool last, uint32_t from,
                             uint32_t to)
{
    const ot_node *n = w->list.node[leader];
    place *p = &w->places[v];
    *p = (place){bytes_of(w->x, &w->g->values[v]), OT_NONE, OT_NONE, last};
    const bool view = (ot_op_is_view(n->op) || n->op == OT_OP_Identity) && n->n_in > 0 &&
                      n->in[0] != OT_NONE && !ot_is_fixed(w->g, n->in[0]);
    if (view) {
        const place *of = &w->places[n->in[0]];
        p->box = of->is_last == last ? of->box : of->changed;
    } else {
        p->box = added_to(w, leader, v);
    }
    const bool outside = view && w->places[n->in[0]].box == OT_NONE &&
                         w->places[n->in[0]].bytes > 0;
    if (p->box == OT_NONE && p->bytes > 0 && !outside)
        OT_TRY(new_box(w->x, from, p->bytes, w->is_body ? OT_NONE : w->g->values[v].producer,
                       &p->box));
    read_at(w->x, p->box, to);
    return w->g->values[v].is_output ? hand_out(w, v) : OT_OK;
}

/* A body with an extent that is not known before it runs: what it hands out is stacked in a
 * buffer that stays, then copied. */
static void count_stacks(walk *w, uint32_t loop)
{
    const ot_node *n = w->list.node[loop];
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) w->x->own += bytes_of(w->x, &w->g->values[n->out[k]]);
}

/* Implementations and their tables: one for the step, one for each node of it that has constants
 * besides the weights of a product. */
static int64_t tables(const walk *w, uint32_t leader)
{
    int64_t n = 1;
    for (uint32_t k = leader; k != OT_NONE; k = w->steps.next[k]) {
        const ot_node *node = w->list.node[k];
        bool has = false;
        for (uint32_t j = k == w->steps.product[leader] ? 2 : 0; j < node->n_in; j++)
            has |= node->in[j] != OT_NONE && w->g->values[node->in[j]].init;
        n += has && (is_convolution(node->op) || w->steps.product[leader] != k);
    }
    return n;
}

/* What lives inside of the step's nodes while they run. */
static ot_status run_inner(walk *w, uint32_t leader, uint32_t now)
{
    for (uint32_t k = leader; k != OT_NONE; k = w->steps.next[k]) {
        const int64_t bytes = w->list.node[k]->inner.bytes;
        uint32_t box;
        if (bytes < 0) w->x->n_unknown++;
        if (bytes > 0) OT_TRY(new_box(w->x, now, bytes, OT_NONE, &box));
    }
    return OT_OK;
}

static ot_status run_step(walk *w, uint32_t leader)
{
    const ot_graph *body = body_of(w->list.node[leader]);
    const bool last = step_is_last(w, leader);
    uint32_t *read;
    size_t n;
    OT_TRY(bring_all(w, leader, last, &read, &n));
    uint32_t from = w->x->now++, to = from;
    w->x->own += tables(w, leader) * w->x->r->node_bytes;
    if (body) {
        const uint32_t unknown = w->x->n_unknown;
        w->x->own += w->x->r->loop_bytes;
        OT_TRY(walk_graph(w->x, body, true));
        to = w->x->now++;
        if (w->x->n_unknown > unknown) count_stacks(w, leader);
    }
    OT_TRY(run_inner(w, leader, from));
    for (size_t k = 0; k < n; k++) read_at(w->x, read[k], to);
    count_weights(w, leader);
    w->ran[leader] = true;
    for (uint32_t k = leader; k != OT_NONE; k = w->steps.next[k])
        for (uint32_t j = 0; j < w->list.node[k]->n_out; j++) {
            ot_id v = w->list.node[k]->out[j];
            if (v != OT_NONE && ot_step_stores(&w->list, &w->steps, v, leader))
                OT_TRY(make_result(w, v, leader, last, from, to));
        }
    return OT_OK;
}

/* ---- graphs ---- */

static ot_status walk_graph(tally *x, const ot_graph *g, bool is_body)
{
    walk w = {.x = x, .g = g, .is_body = is_body};
    w.list = (ot_node_list){
        .g = g, .n = g->n_order, .node = OT_NEW_N(x->a, const ot_node *, g->n_order + 1u)};
    if (!w.list.node) return OT_E_NOMEM;
    for (uint32_t k = 0; k < g->n_order; k++) w.list.node[k] = &g->nodes[g->order[k]];
    OT_TRY(ot_node_list_fill(&w.list, x->a));
    OT_TRY(ot_steps_find(&w.list, x->r->merges, x->a, &w.steps));
    w.places = OT_NEW_N(x->a, place, g->n_values + 1u);
    w.counted = OT_NEW_N(x->a, bool, g->n_values + 1u);
    w.ran = OT_NEW_N(x->a, bool, g->n_order + 1u);
    if (!w.places || !w.counted || !w.ran) return OT_E_NOMEM;
    for (ot_id v = 0; v < g->n_values; v++) {
        const ot_value *of = &g->values[v];
        w.places[v] = (place){0, OT_NONE, OT_NONE, false};
        if (ot_is_fixed(g, v) || !(of->is_input || of->is_outer)) continue;
        w.places[v].bytes = bytes_of(x, of);
        if (is_body || w.places[v].bytes < HEAP_BYTES)
            x->own += w.places[v].bytes;
        else
            x->given_back += w.places[v].bytes;
    }
    for (uint32_t k = 0; k < g->n_order; k++) {
        const uint32_t leader = w.steps.leader[k];
        if (!w.list.node[k]->is_static && w.steps.last[leader] == k) OT_TRY(run_step(&w, leader));
    }
    count_constants(&w);
    return OT_OK;
}

ot_status ot_one_block_growth(const ot_graph *g, const ot_runtime *r, ot_arena *a,
                              ot_sim_figures *out)
{
    tally x = {.r = r, .a = a};
    OT_TRY(walk_graph(&x, g, false));
    out->pattern = ot_boxes_place(x.boxes, x.n);
    OT_TRY(ot_boxes_fullest(x.boxes, x.n, x.now + 1, a, out->fullest, OT_FULLEST, &out->n_fullest));
    out->growth = out->first_run = ot_max(out->pattern + x.results, x.given_back) + x.own + OWN;
    out->n_unknown = x.n_unknown;
    return OT_OK;
}
