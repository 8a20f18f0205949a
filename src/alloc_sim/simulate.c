/* Steps become allocations and releases: some runs of the graph in a row, in each the iterations
 * of its loops.
 *
 *   run 1       every buffer comes from the arena and goes back to it; what came and went makes the
 *               pattern
 *   run 2, ...  a block of the pattern's height, if everything that is fed is a tensor; results,
 *               pieces and scratch from the arena
 *
 * A loop's body is a graph with a pattern of its own, from its second iteration on. Scan writes
 * its results where they belong; Loop keeps the pieces and joins them at the end; a sequence
 * holds a copy of each piece until it is joined.
 *
 */
#include "chunk_arena.h"
#include "simulate.h"
#include "device_growth.h"
#include "one_block.h"

#define GROWS_MUCH \
    32 /* of what it has then: by that part a process grows at the step that counts */
#define RUNS       2
#define MOST_TRIPS 512                /* of a loop that are simulated, each for as many of */
#define MOST_STOOD (INT64_C(1) << 20) /* that there are at most */
/* code and tables that the first run touches; measured: 1.2 to 1.9 MB for models of no size */
#define OWN (INT64_C(3) << 19)

/* A graph that runs again and again. */
typedef struct frame {
    ot_sim_plan plan;
    ot_pattern pattern;
    bool has_pattern;  /* it ran once */
    int64_t converted; /* bytes of weights that are converted anew in each run, before all else */
} frame;

/* Pieces that live together: of a sequence, of a loop's results. */
typedef struct pieces {
    uint32_t *chunks; /* [n] */
    size_t n, cap;
} pieces;

typedef struct simulator {
    const ot_runtime *r;
    bool static_shape;
    uint32_t order; /* of changes of layout */
    ot_arena *a;
    ot_chunk_arena *memory;
    const ot_graph **graphs; /* [n] of frames */
    frame **frames;
    size_t n, cap, cap_frames, n_frames;
    uint32_t n_unknown;
    /* iterations that one which is simulated stands for, in long loops: its pieces are so many
     * times as large */
    int64_t each;
    uint32_t n_loops; /* bodies that run, one in another */
    /* the step that runs, of the graph or its branch: a loop is one */
    const ot_sim_step *now;
    const frame *now_frame;
    int64_t most;            /* bytes that were touched up to now, */
    const ot_sim_step *last; /* since this step, */
    const frame *last_frame; /* of this frame */
    bool is_first;           /* run: the next one may take a block for all of it before it starts */
    const ot_sim_step *much; /* the last step of the first run that took much, */
    const frame *much_frame; /* of this frame */
} simulator;

/* One run of a frame. */
typedef struct run {
    simulator *x;
    frame *f;
    uint32_t *left;  /* [n_buffers] readers to come */
    uint32_t *chunk; /* [n_buffers] OT_NONE: not there, or in the block */
    pieces **held;   /* [n_values] pieces of a sequence */
    pieces late;     /* results of a branch that are handed out */
    bool in_block, elsewhere;
} run;

/* What a graph is run with, and what becomes of its results. */
typedef struct visit {
    pieces *const *fed; /* [n_fed] pieces of its inputs, NULL: a tensor */
    uint32_t n_fed;
    bool elsewhere; /* results are written into memory that is there already */
    pieces *kept;   /* else they are added here; NULL: they are given back at once */
    /* [g->n_outputs] but for those that are to be handed on: chunks of these; NULL: none are */
    uint32_t *into;
    const bool *handed; /* [g->n_outputs] which */
    pieces **made;      /* [g->n_outputs] pieces of its outputs, or NULL */
} visit;

static ot_status simulate(simulator *x, const ot_graph *g, const visit *v);

static ot_status take(simulator *x, int64_t bytes, uint32_t *chunk)
{
    *chunk = OT_NONE;
    if (bytes <= 0) return OT_OK;
    *chunk = ot_chunk_take(x->memory, bytes);
    return *chunk == OT_NONE ? OT_E_NOMEM : OT_OK;
}

/* What is joined lies apart from the pieces. */
static ot_status take_joined(simulator *x, int64_t bytes, uint32_t *chunk)
{
    *chunk = bytes > 0 ? ot_chunk_take_roomy(x->memory, bytes) : OT_NONE;
    return *chunk == OT_NONE && bytes > 0 ? OT_E_NOMEM : OT_OK;
}

static void release(simulator *x, uint32_t *chunk)
{
    if (*chunk != OT_NONE) ot_chunk_release(x->memory, *chunk);
    *chunk = OT_NONE;
}

static void release_pieces(simulator *x, pieces *p)
{
    for (size_t k = 0; p && k < p->n; k++) release(x, &p->chunks[k]);
    if (p) p->n = 0;
}

/* Weights of half precision that nodes of g read, in float32. ONNX Runtime converts those of the
 * top graph when it loads; in a subgraph that is a Cast of each, which no other node has to wait
 * for: all of them run first. A detector of 65 MB in a branch: 150 MB in place of 58. */
static ot_status count_converted(simulator *x, const ot_graph *g, int64_t *bytes)
{
    *bytes = 0;
    if (!g->parent) return OT_OK;
    bool *seen = OT_NEW_N(x->a, bool, g->n_values + 1u);
    if (!seen) return OT_E_NOMEM;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        /* which moves nothing */
        for (uint32_t j = 0; j < n->n_in && !n->is_static && n->op != OT_OP_Reshape; j++) {
            const ot_id v = n->in[j];
            int64_t of = 0;
            if (v == OT_NONE || seen[v] || g->values[v].dtype != OT_F16 ||
                !ot_value_is_precomputed(g, v))
                continue;
            seen[v] = true;
            if (ot_sim_held_bytes(&g->values[v], &of)) *bytes += of;
        }
    }
    return OT_OK;
}

static ot_status frame_of(simulator *x, const ot_graph *g, frame **out)
{
    for (size_t k = x->n; k-- > 0;)
        if (x->graphs[k] == g) {
            *out = x->frames[k];
            return OT_OK;
        }
    frame *f = OT_NEW(x->a, frame);
    if (!f || !OT_PUSH(x->a, x->graphs, x->n, x->cap, g) ||
        !OT_PUSH(x->a, x->frames, x->n_frames, x->cap_frames, f))
        return OT_E_NOMEM;
    OT_TRY(ot_sim_plan_make(g, x->r, x->static_shape, x->order, x->a, &f->plan));
    OT_TRY(count_converted(x, g, &f->converted));
    x->n_unknown += f->plan.n_unknown;
    *out = f;
    return OT_OK;
}

/* ---- loops ---- */

static const ot_graph *body_of(const ot_node *n)
{
    const ot_attr *a = ot_attr_find(n, "body");
    return a && a->kind == OT_ATTR_GRAPH && (n->op == OT_OP_Loop || n->op == OT_OP_Scan) ? a->g
                                                                                         : NULL;
}

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
static int64_t collected(const run *u, const ot_node *n)
{
    size_t n_axes = 0;
    const int64_t *axes = ot_attr_ints(n, "scan_output_axes", &n_axes);
    int64_t sum = 0;
    for (uint32_t k = 0; axes && k < n_axes && k < n->n_out; k++)
        if (axes[k] != 0 && n->out[k] != OT_NONE)
            sum += ot_max(0, u->f->plan.values[n->out[k]].bytes);
    return sum;
}

static bool is(const ot_node *n, const char *op_type)
{
    return n && n->domain[0] == 0 && strcmp(n->op_type, op_type) == 0;
}

/* The graph states the extents of what step value v is. */
static bool is_stated(const ot_graph *g, uint32_t v)
{
    return ot_value_is_static(&g->values[v % g->n_values]);
}

/* Buffer b, which was taken, becomes part of the pattern. */
static ot_status record(run *u, uint32_t b)
{
    if (!u->f->plan.tensors_only || u->f->has_pattern) return OT_OK;
    return ot_pattern_take(&u->f->pattern, u->x->a, b, u->f->plan.buffers[b].bytes) ? OT_OK
                                                                                    : OT_E_NOMEM;
}

static ot_status take_results(run *u, const ot_sim_step *s)
{
    const bool joined = s->node != OT_NONE &&
                        is(&u->f->plan.g->nodes[s->node], "ConcatFromSequence");
    for (uint32_t k = 0; k < s->n_writes; k++) {
        uint32_t b = u->f->plan.values[s->writes[k]].buffer;
        if (b == OT_NONE) continue;
        const ot_sim_buffer *x = &u->f->plan.buffers[b];
        if (u->chunk[b] != OT_NONE || x->kind == OT_BUFFER_PIECES || x->kind == OT_BUFFER_HANDED ||
            x->bytes == 0)
            continue;
        if (x->kind == OT_BUFFER_RESULT && u->elsewhere && is_stated(u->f->plan.g, s->writes[k]))
            continue;
        /* it lies where an earlier value lay */
        if (x->kind == OT_BUFFER_PLANNED && u->left[b] != x->uses) continue;
        if (x->kind == OT_BUFFER_PLANNED && u->in_block) continue;
        OT_TRY(joined ? take_joined(u->x, x->bytes, &u->chunk[b])
                      : take(u->x, x->bytes, &u->chunk[b]));
        if (x->kind == OT_BUFFER_PLANNED) OT_TRY(record(u, b));
    }
    return OT_OK;
}

/* What the step holds while it runs comes; chunks: of those bytes. */
static ot_status take_scratch(run *u, const ot_sim_scratch *x, uint32_t chunks[OT_SIM_SCRATCH])
{
    ot_sim_plan *p = &u->f->plan;
    for (uint32_t k = 0; k < OT_SIM_SCRATCH; k++) {
        chunks[k] = OT_NONE;
        if (x->bytes[k] == 0 || (x->in_pattern && u->in_block)) continue;
        OT_TRY(take(u->x, x->bytes[k], &chunks[k]));
        if (x->in_pattern && p->tensors_only && !u->f->has_pattern &&
            !ot_pattern_take(&u->f->pattern, u->x->a, (uint32_t)p->n_buffers + k, x->bytes[k]))
            return OT_E_NOMEM;
    }
    return OT_OK;
}

static void release_scratch(run *u, const ot_sim_scratch *x, uint32_t chunks[OT_SIM_SCRATCH])
{
    for (uint32_t k = 0; k < OT_SIM_SCRATCH; k++) {
        if (x->in_pattern && chunks[k] != OT_NONE)
            ot_pattern_release(&u->f->pattern, (uint32_t)u->f->plan.n_buffers + k);
        release(u->x, &chunks[k]);
    }
}

/* A kernel runs: its results come, and what it holds besides comes and goes. */
static ot_status kernel_step(run *u, const ot_sim_step *s)
{
    uint32_t chunks[OT_SIM_SCRATCH];
    if (!s->scratch.is_first) OT_TRY(take_results(u, s));
    OT_TRY(take_scratch(u, &s->scratch, chunks));
    if (s->scratch.is_first) OT_TRY(take_results(u, s));
    release_scratch(u, &s->scratch, chunks);
    return OT_OK;
}

/* What a Loop carries besides sequences: tensors that the body hands from one iteration to the
 * next. */
typedef struct carried {
    uint32_t *now, *next; /* [n_outputs of the body] chunks */
    bool *is;             /* [n_outputs of the body] */
} carried;

static ot_status new_carried(run *u, const ot_node *n, const ot_graph *body, carried *c)
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
static ot_status hand_out(run *u, const ot_node *n, const ot_graph *body, carried *c)
{
    for (uint32_t k = 1; k < body->n_outputs; k++) {
        const uint32_t b = c->is[k] && k - 1 < n->n_out && n->out[k - 1] != OT_NONE
                               ? u->f->plan.values[n->out[k - 1]].buffer
                               : OT_NONE;
        if (b == OT_NONE || u->f->plan.buffers[b].kind != OT_BUFFER_HANDED || u->in_block) continue;
        OT_TRY(take(u->x, u->f->plan.buffers[b].bytes, &u->chunk[b]));
        if (u->chunk[b] != OT_NONE) OT_TRY(record(u, b));
    }
    for (uint32_t k = 0; k < body->n_outputs; k++) {
        release(u->x, &c->now[k]);
        release(u->x, &c->next[k]);
    }
    return OT_OK;
}

static ot_status loop_step(run *u, const ot_sim_step *s, const ot_node *n, const ot_graph *body)
{
    const ot_graph *g = u->f->plan.g;
    const bool scan = n->op == OT_OP_Scan;
    const int64_t trips = trips_of(g, n), before = u->x->each,
                  each = ot_max(1, ot_ceil_div(trips, MOST_TRIPS)),
                  simulated = ot_ceil_div(trips, each);
    pieces stack = {0}, **fed = OT_NEW_N(u->x->a, pieces *, body->n_inputs + 1u),
           **made = OT_NEW_N(u->x->a, pieces *, body->n_outputs + 1u);
    uint32_t beside = OT_NONE;
    carried c;
    if (!fed || !made) return OT_E_NOMEM;
    OT_TRY(new_carried(u, n, body, &c));
    if (scan) {
        OT_TRY(take(u->x, collected(u, n), &beside));
        OT_TRY(take_results(u, s));
    }
    for (uint32_t k = 2; !scan && k < n->n_in && k < body->n_inputs; k++)
        if (n->in[k] != OT_NONE) fed[k] = u->held[n->in[k]];
    u->x->each = ot_min(before * each, MOST_STOOD);
    for (int64_t t = 0; t < simulated; t++) {
        visit v = {.fed = fed,
                   .n_fed = body->n_inputs,
                   .elsewhere = scan,
                   .kept = &stack,
                   .made = made,
                   .into = c.next,
                   .handed = c.is};
        /* what the iteration before the last was given goes */
        for (uint32_t k = 0; k < body->n_outputs; k++) {
            release(u->x, &c.now[k]);
            c.now[k] = c.next[k];
            c.next[k] = OT_NONE;
        }
        u->x->n_loops++;
        OT_TRY(simulate(u->x, body, &v));
        u->x->n_loops--;
        for (uint32_t k = 2; !scan && k < body->n_inputs && k <= body->n_outputs; k++)
            fed[k] = made[k - 1];
    }
    for (uint32_t k = 0; !scan && k < n->n_out; k++)
        if (n->out[k] != OT_NONE && k + 1 < body->n_outputs)
            u->held[n->out[k]] = trips > 0 ? made[k + 1] : fed[k + 2];
    u->x->each = before;
    OT_TRY(hand_out(u, n, body, &c));
    if (!scan) OT_TRY(take_results(u, s));
    release_pieces(u->x, &stack);
    release(u->x, &beside);
    return OT_OK;
}

/* ---- branches ---- */

/* The branch that the rewriter makes a graph of; it is always taken. */
static const ot_graph *branch_of(const ot_node *n)
{
    const ot_attr *a = n->op == OT_OP_If ? ot_attr_find(n, "then_branch") : NULL;
    return a && a->kind == OT_ATTR_GRAPH ? a->g : NULL;
}

/* Results of stated extents lie where the If wants them, from its start on. */
static ot_status branch_step(run *u, const ot_sim_step *s, const ot_graph *branch)
{
    const visit v = {.elsewhere = u->x->static_shape, .kept = &u->late};
    for (uint32_t k = 0; k < s->n_writes && k < branch->n_outputs && u->x->static_shape; k++) {
        const uint32_t b = u->f->plan.values[s->writes[k]].buffer;
        if (b != OT_NONE && u->chunk[b] == OT_NONE && is_stated(branch, branch->outputs[k]))
            OT_TRY(take(u->x, u->f->plan.buffers[b].bytes, &u->chunk[b]));
    }
    return simulate(u->x, branch, &v);
}

/* ---- steps ---- */

/* A sequence: nothing yet, or one more copy. */
static ot_status sequence_step(run *u, const ot_node *n)
{
    int64_t bytes;
    uint32_t chunk;
    if (n->n_out == 0 || n->out[0] == OT_NONE) return OT_OK;
    if (is(n, "SequenceEmpty")) {
        u->held[n->out[0]] = OT_NEW(u->x->a, pieces);
        return u->held[n->out[0]] ? OT_OK : OT_E_NOMEM;
    }
    pieces *p = n->n_in == 0 || n->in[0] == OT_NONE ? NULL : u->held[n->in[0]];
    u->held[n->out[0]] = p;
    if (!p || n->n_in < 2 || n->in[1] == OT_NONE ||
        !ot_value_bytes(&u->f->plan.g->values[n->in[1]], &bytes))
        return OT_OK;
    if (bytes == 0 || bytes > OT_SIM_MOST_BYTES / u->x->each) return OT_OK;
    OT_TRY(take(u->x, bytes * u->x->each, &chunk));
    return OT_PUSH(u->x->a, p->chunks, p->n, p->cap, chunk) ? OT_OK : OT_E_NOMEM;
}

static void drop(run *u, uint32_t b)
{
    ot_buffer_kind kind = u->f->plan.buffers[b].kind;
    if (kind != OT_BUFFER_PLANNED && kind != OT_BUFFER_HANDED) return;
    if (u->chunk[b] != OT_NONE && u->f->plan.tensors_only && !u->f->has_pattern)
        ot_pattern_release(&u->f->pattern, b);
    release(u->x, &u->chunk[b]);
}

/* Node n has handed on the pieces that it was given: as a sequence that they are part of. */
static bool hands_on(const run *u, const ot_node *n, const pieces *p)
{
    if (is(n, "SequenceInsert")) return true;
    for (uint32_t k = 0; n && k < n->n_out; k++)
        if (n->out[k] != OT_NONE && u->held[n->out[k]] == p) return true;
    return false;
}

/* What nobody reads any more goes. */
static void after_step(run *u, const ot_sim_step *s, const ot_node *n)
{
    const ot_sim_plan *p = &u->f->plan;
    for (uint32_t k = 0; k < s->n_reads; k++) {
        uint32_t v = s->reads[k], b = p->values[v].buffer;
        pieces *held = v < p->g->n_values ? u->held[v] : NULL;
        if (held && (b == OT_NONE || u->left[b] == 1) && !hands_on(u, n, held))
            release_pieces(u->x, held);
        if (b != OT_NONE && --u->left[b] == 0) drop(u, b);
    }
    for (uint32_t k = 0; k < s->n_writes; k++) {
        uint32_t b = p->values[s->writes[k]].buffer;
        if (b != OT_NONE && u->left[b] == 0) drop(u, b);
    }
}

/* With -d P: the steps at which the process grew, and what of that its own results are. */
static void trace(const run *u, const ot_sim_step *s, int64_t before)
{
    const ot_graph *g = u->f->plan.g;
    const int64_t after = ot_chunk_touched(u->x->memory);
    if (after == before) return;
    const ot_node *n = s->node == OT_NONE ? NULL : &g->nodes[s->node];
    const ot_sim_value *y = s->n_writes ? &u->f->plan.values[s->writes[0]] : NULL;
    fprintf(stderr, "  %10.2f MB  +%.2f  %s%s%s  (%.2f MB)\n", (double)after / 1048576.0,
            (double)(after - before) / 1048576.0, n ? n->op_type : "layout of", n ? " " : " ",
            n   ? n->name
            : y ? g->values[s->writes[0] % g->n_values].name
                : "",
            y ? (double)y->bytes / 1048576.0 : 0.0);
}

static ot_status step(run *u, const ot_sim_step *s)
{
    const int64_t before = ot_dbg['P'] ? ot_chunk_touched(u->x->memory) : 0;
    const ot_node *n = s->node == OT_NONE ? NULL : &u->f->plan.g->nodes[s->node];
    const ot_graph *body = n ? body_of(n) : NULL, *branch = n ? branch_of(n) : NULL;
    if (!branch && u->x->n_loops == 0) {
        u->x->now = s;
        u->x->now_frame = u->f;
    }
    if (branch) {
        OT_TRY(branch_step(u, s, branch));
    } else if (body) {
        OT_TRY(loop_step(u, s, n, body));
    } else if (is(n, "SequenceEmpty") || is(n, "SequenceInsert")) {
        OT_TRY(sequence_step(u, n));
    } else {
        OT_TRY(kernel_step(u, s));
    }
    if (ot_dbg['P']) trace(u, s, before);
    const int64_t grown = ot_chunk_touched(u->x->memory) - u->x->most;
    if (!branch && grown > 0) {
        u->x->most = ot_chunk_touched(u->x->memory);
        u->x->last = u->x->now;
        u->x->last_frame = u->x->now_frame;
        if (u->x->is_first && grown >= ot_chunk_touched(u->x->memory) / GROWS_MUCH) {
            u->x->much = u->x->now;
            u->x->much_frame = u->x->now_frame;
        }
    }
    after_step(u, s, n);
    return OT_OK;
}

/* ---- runs ---- */

static ot_status begin(run *u, simulator *x, frame *f, const visit *v)
{
    const ot_sim_plan *p = &f->plan;
    *u = (run){
        .x = x, .f = f, .elsewhere = v->elsewhere, .in_block = f->has_pattern && p->tensors_only};
    u->left = OT_NEW_N(x->a, uint32_t, p->n_buffers + 1);
    u->chunk = OT_NEW_N(x->a, uint32_t, p->n_buffers + 1);
    u->held = OT_NEW_N(x->a, pieces *, p->g->n_values + 1u);
    if (!u->left || !u->chunk || !u->held) return OT_E_NOMEM;
    for (size_t b = 0; b < p->n_buffers; b++) {
        u->left[b] = p->buffers[b].uses;
        u->chunk[b] = OT_NONE;
    }
    for (uint32_t k = 0; k < p->g->n_inputs && k < v->n_fed; k++)
        u->held[p->g->inputs[k]] = v->fed[k];
    return OT_OK;
}

/* Chunks of the results that somebody waits for. */
static void hand_on(run *u, const visit *v)
{
    const ot_sim_plan *p = &u->f->plan;
    for (uint32_t k = 0; v->into && k < p->g->n_outputs; k++) {
        if (!v->handed[k]) continue;
        /* what was made in blocks is handed out plain */
        uint32_t at = p->g->outputs[k], plain = at + p->g->n_values;
        uint32_t b = p->values[plain].is_result ? p->values[plain].buffer : p->values[at].buffer;
        if (b == OT_NONE) continue;
        v->into[k] = u->chunk[b];
        u->chunk[b] = OT_NONE;
    }
}

static ot_status end(run *u, const visit *v)
{
    const ot_sim_plan *p = &u->f->plan;
    hand_on(u, v);
    for (size_t b = 0; b < p->n_buffers; b++) {
        if (u->chunk[b] == OT_NONE) continue;
        if (p->buffers[b].kind == OT_BUFFER_RESULT && v->kept) {
            if (!OT_PUSH(u->x->a, v->kept->chunks, v->kept->n, v->kept->cap, u->chunk[b]))
                return OT_E_NOMEM;
        } else {
            release(u->x, &u->chunk[b]);
        }
    }
    release_pieces(u->x, &u->late);
    for (uint32_t k = 0; v->made && k < p->g->n_outputs; k++)
        v->made[k] = u->held[p->g->outputs[k]];
    if (p->tensors_only) u->f->has_pattern = true;
    return OT_OK;
}

static ot_status simulate(simulator *x, const ot_graph *g, const visit *v)
{
    frame *f = NULL;
    run u;
    uint32_t block = OT_NONE, converted = OT_NONE;
    OT_TRY(frame_of(x, g, &f));
    OT_TRY(begin(&u, x, f, v));
    if (u.in_block) OT_TRY(take(x, f->pattern.height, &block));
    OT_TRY(take(x, f->converted, &converted));
    for (size_t k = 0; k < f->plan.n; k++)
        if (!f->plan.steps[k].is_gone) OT_TRY(step(&u, &f->plan.steps[k]));
    OT_TRY(end(&u, v));
    release(x, &converted);
    release(x, &block);
    return OT_OK;
}

static ot_status simulate_runs(simulator *x, const ot_graph *g, ot_sim_figures *out)
{
    OT_TRY(ot_loaded_bytes(g, x->r, x->a, out));
    x->is_first = true;
    for (int k = 0; k < RUNS; k++) {
        const visit v = {0};
        if (ot_dbg['P']) fprintf(stderr, "> Process: run %d\n", k + 1);
        OT_TRY(simulate(x, g, &v));
        x->is_first = false;
        if (k == 0) out->first_run = ot_chunk_touched(x->memory) + OWN;
    }
    out->growth = ot_chunk_touched(x->memory) + OWN;
    out->reused = ot_min(out->reused, out->growth / 2);
    if (x->last) OT_TRY(ot_sim_list_waiting(&x->last_frame->plan, x->last, x->a, out));
    if (x->much) OT_TRY(ot_sim_list_held(&x->much_frame->plan, x->much, x->a, out));
    out->pattern = x->n ? x->frames[0]->pattern.height : 0;
    out->n_unknown = x->n_unknown;
    return OT_OK;
}

ot_status ot_sim_growth_in(const ot_graph *g, const ot_runtime *r, bool static_shape,
                           uint32_t order, ot_sim_figures *out)
{
    *out = (ot_sim_figures){.waiting = {OT_NONE, OT_NONE}};
    ot_arena *a = ot_arena_new();
    simulator x = {.r = r,
                   .static_shape = static_shape,
                   .order = order,
                   .a = a,
                   .memory = a ? ot_chunk_arena_new(a) : NULL,
                   .each = 1};
    ot_status s = !x.memory         ? OT_E_NOMEM
                  : r->one_block    ? ot_one_block_growth(g, r, a, out)
                  : r->device_arena ? ot_device_growth(g, a, out)
                                    : simulate_runs(&x, g, out);
    ot_arena_free(a);
    return s;
}

ot_status ot_sim_growth(const ot_graph *g, const ot_runtime *r, bool static_shape,
                        ot_sim_figures *out)
{
    return ot_sim_growth_in(g, r, static_shape, 0, out);
}
