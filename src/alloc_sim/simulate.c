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
 */
#include "simulate_run.h"
#include "device_growth.h"
#include "one_block.h"

#define GROWS_MUCH \
    32 /* of what it has then: by that part a process grows at the step that counts */
#define RUNS 2
/* code and tables that the first run touches; measured: 1.2 to 1.9 MB for models of no size */
#define OWN (INT64_C(3) << 19)

ot_status ot_sim_take(ot_simulator *x, int64_t bytes, uint32_t *chunk)
{
    *chunk = OT_NONE;
    if (bytes <= 0) return OT_OK;
    *chunk = ot_chunk_take(x->memory, bytes);
    ot_tape_take(x, bytes, false, *chunk);
    return *chunk == OT_NONE ? OT_E_NOMEM : OT_OK;
}

/* What is joined lies apart from the pieces. */
static ot_status take_joined(ot_simulator *x, int64_t bytes, uint32_t *chunk)
{
    *chunk = OT_NONE;
    if (bytes <= 0) return OT_OK;
    *chunk = ot_chunk_take_roomy(x->memory, bytes);
    ot_tape_take(x, bytes, true, *chunk);
    return *chunk == OT_NONE ? OT_E_NOMEM : OT_OK;
}

void ot_sim_release(ot_simulator *x, uint32_t *chunk)
{
    if (*chunk != OT_NONE) {
        ot_chunk_release(x->memory, *chunk);
        ot_tape_release(x, *chunk);
    }
    *chunk = OT_NONE;
}

void ot_sim_release_pieces(ot_simulator *x, ot_sim_pieces *p)
{
    for (size_t k = 0; p && k < p->n; k++) ot_sim_release(x, &p->chunks[k]);
    if (p) p->n = 0;
}

/* Weights of half precision that nodes of g read, in float32. ONNX Runtime converts those of the
 * top graph when it loads; in a subgraph that is a Cast of each, which no other node has to wait
 * for: all of them run first. A detector of 65 MB in a branch: 150 MB in place of 58. */
static ot_status count_converted(ot_simulator *x, const ot_graph *g, int64_t *bytes)
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

/* Where g is found, or goes: bodies run in each run, and there may be many. */
static uint32_t *slot_of(const ot_simulator *x, const ot_graph *g)
{
    size_t at = (size_t)ot_hash_bytes(0, &g, sizeof(const ot_graph *)) & (x->n_slots - 1);
    while (x->slots[at] != 0 && x->graphs[x->slots[at] - 1] != g) at = (at + 1) & (x->n_slots - 1);
    return &x->slots[at];
}

/* Twice as many slots as before. */
static ot_status more_slots(ot_simulator *x)
{
    x->n_slots = x->n_slots ? 2 * x->n_slots : 16;
    x->slots = OT_NEW_N(x->a, uint32_t, x->n_slots);
    if (!x->slots) return OT_E_NOMEM;
    for (size_t k = 0; k < x->n; k++) *slot_of(x, x->graphs[k]) = (uint32_t)k + 1;
    return OT_OK;
}

/* if_node: as of ot_sim_plan_make. */
static ot_status frame_of(ot_simulator *x, const ot_graph *g, const ot_node *if_node,
                          ot_sim_frame **out)
{
    if (2 * x->n >= x->n_slots) OT_TRY(more_slots(x));
    uint32_t *slot = slot_of(x, g);
    if (*slot != 0) {
        *out = x->frames[*slot - 1];
        return OT_OK;
    }
    ot_sim_frame *f = OT_NEW(x->a, ot_sim_frame);
    if (!f || !OT_PUSH(x->a, x->graphs, x->n, x->cap, g) ||
        !OT_PUSH(x->a, x->frames, x->n_frames, x->cap_frames, f))
        return OT_E_NOMEM;
    *slot = (uint32_t)x->n;
    OT_TRY(ot_sim_plan_make(g, if_node, x->r, x->static_shape, x->orders, x->a, &f->plan));
    x->other_orders |= f->plan.other_orders;
    OT_TRY(count_converted(x, g, &f->converted));
    f->left = OT_NEW_N(x->a, uint32_t, f->plan.n_buffers + 1);
    f->chunk = OT_NEW_N(x->a, uint32_t, f->plan.n_buffers + 1);
    f->held = OT_NEW_N(x->a, ot_sim_pieces *, g->n_values + 1u);
    if (!f->left || !f->chunk || !f->held) return OT_E_NOMEM;
    x->n_unknown += f->plan.n_unknown;
    *out = f;
    return OT_OK;
}

bool ot_sim_held_bytes(const ot_value *v, int64_t *bytes)
{
    if (!ot_value_bytes(v, bytes) || *bytes > OT_SIM_MOST_BYTES) return false;
    if (v->dtype == OT_F16) *bytes *= 2;
    return true;
}

/* ---- loops ---- */

static const ot_graph *body_of(const ot_node *n)
{
    const bool loops = n->op == OT_OP_Loop || n->op == OT_OP_Scan;
    const ot_attr *a = loops ? ot_attr_find(n, "body") : NULL;
    return a && a->kind == OT_ATTR_GRAPH ? a->g : NULL;
}

/* The graph states the extents of what step value v is. */
static bool is_stated(const ot_graph *g, uint32_t v)
{
    const ot_value *x = &g->values[v % g->n_values];
    return ot_value_is_static(x) && !x->is_unstated;
}

bool ot_sim_lies_elsewhere(const ot_sim_run *u, uint32_t v)
{
    const uint32_t b = u->f->plan.values[v].buffer;
    return b != OT_NONE && u->f->plan.buffers[b].kind == OT_BUFFER_RESULT && u->elsewhere &&
           is_stated(u->f->plan.g, v);
}

/* Buffer b, which was taken, becomes part of the pattern. */
ot_status ot_sim_record(ot_sim_run *u, uint32_t b)
{
    if (!u->f->plan.tensors_only || u->f->has_pattern) return OT_OK;
    return ot_pattern_take(&u->f->pattern, u->x->a, b, u->f->plan.buffers[b].bytes) ? OT_OK
                                                                                    : OT_E_NOMEM;
}

const ot_sim_stack *ot_sim_stack_of(const ot_sim_run *u, uint32_t v)
{
    const ot_graph *g = u->f->plan.g;
    for (uint32_t k = 0; u->stacks && k < g->n_outputs; k++)
        if (g->outputs[k] == v % g->n_values && u->stacks[k].bytes > 0) return &u->stacks[k];
    return NULL;
}

/* Value v of the graph is a part of a stack, which comes with the first part; *is: it is one. */
static ot_status take_stack(ot_sim_run *u, uint32_t v, bool *is)
{
    const ot_sim_stack *stack = ot_sim_stack_of(u, v);
    *is = stack != NULL;
    return stack && *stack->chunk == OT_NONE ? ot_sim_take(u->x, stack->bytes, stack->chunk)
                                             : OT_OK;
}

ot_status ot_sim_take_results(ot_sim_run *u, const ot_sim_step *s)
{
    const bool joined = s->sequence == OT_SIM_SEQUENCE_JOIN;
    for (uint32_t k = 0; k < s->n_writes; k++) {
        uint32_t b = u->f->plan.values[s->writes[k]].buffer;
        if (b == OT_NONE) continue;
        const ot_sim_buffer *x = &u->f->plan.buffers[b];
        if (u->chunk[b] != OT_NONE || x->kind == OT_BUFFER_PIECES || x->kind == OT_BUFFER_HANDED ||
            x->bytes == 0)
            continue;
        if (ot_sim_lies_elsewhere(u, s->writes[k])) continue;
        bool stacked;
        OT_TRY(take_stack(u, s->writes[k], &stacked));
        if (stacked) continue;
        /* it lies where an earlier value lay */
        if (x->kind == OT_BUFFER_PLANNED && u->left[b] != x->uses) continue;
        if (x->kind == OT_BUFFER_PLANNED && u->in_block) continue;
        OT_TRY(joined ? take_joined(u->x, x->bytes, &u->chunk[b])
                      : ot_sim_take(u->x, x->bytes, &u->chunk[b]));
        if (x->kind == OT_BUFFER_PLANNED) OT_TRY(ot_sim_record(u, b));
    }
    return OT_OK;
}

/* What the step holds while it runs comes; chunks: of those bytes. */
static ot_status take_scratch(ot_sim_run *u, const ot_sim_scratch *x,
                              uint32_t chunks[OT_SIM_SCRATCH])
{
    ot_sim_schedule *p = &u->f->plan;
    for (uint32_t k = 0; k < OT_SIM_SCRATCH; k++) {
        chunks[k] = OT_NONE;
        if (x->bytes[k] == 0 || (x->in_pattern && u->in_block)) continue;
        OT_TRY(ot_sim_take(u->x, x->bytes[k], &chunks[k]));
        if (x->in_pattern && p->tensors_only && !u->f->has_pattern &&
            !ot_pattern_take(&u->f->pattern, u->x->a, (uint32_t)p->n_buffers + k, x->bytes[k]))
            return OT_E_NOMEM;
    }
    return OT_OK;
}

static void release_scratch(ot_sim_run *u, const ot_sim_scratch *x, uint32_t chunks[OT_SIM_SCRATCH])
{
    for (uint32_t k = 0; k < OT_SIM_SCRATCH; k++) {
        if (x->in_pattern && chunks[k] != OT_NONE)
            ot_pattern_release(&u->f->pattern, (uint32_t)u->f->plan.n_buffers + k);
        ot_sim_release(u->x, &chunks[k]);
    }
}

/* An implementation runs: its results come, and what it holds besides comes and goes. */
static ot_status run_step(ot_sim_run *u, const ot_sim_step *s)
{
    uint32_t chunks[OT_SIM_SCRATCH];
    if (!s->scratch.is_first) OT_TRY(ot_sim_take_results(u, s));
    OT_TRY(take_scratch(u, &s->scratch, chunks));
    if (s->scratch.is_first) OT_TRY(ot_sim_take_results(u, s));
    release_scratch(u, &s->scratch, chunks);
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
static ot_status branch_step(ot_sim_run *u, const ot_sim_step *s, const ot_graph *branch)
{
    const ot_sim_visit v = {.elsewhere = u->x->static_shape,
                            .kept = &u->late,
                            .if_node = &u->f->plan.g->nodes[s->node]};
    for (uint32_t k = 0; k < s->n_writes && k < branch->n_outputs && u->x->static_shape; k++) {
        const uint32_t b = u->f->plan.values[s->writes[k]].buffer;
        if (b != OT_NONE && u->chunk[b] == OT_NONE && is_stated(branch, branch->outputs[k]))
            OT_TRY(ot_sim_take(u->x, u->f->plan.buffers[b].bytes, &u->chunk[b]));
    }
    return ot_sim_run_graph(u->x, branch, &v);
}

/* ---- steps ---- */

/* A sequence: nothing yet, or one more copy. */
static ot_status sequence_step(ot_sim_run *u, const ot_sim_step *s, const ot_node *n)
{
    int64_t bytes;
    uint32_t chunk;
    if (n->n_out == 0 || n->out[0] == OT_NONE) return OT_OK;
    if (s->sequence == OT_SIM_SEQUENCE_EMPTY) {
        u->held[n->out[0]] = OT_NEW(u->x->a, ot_sim_pieces);
        return u->held[n->out[0]] ? OT_OK : OT_E_NOMEM;
    }
    ot_sim_pieces *p = n->n_in == 0 || n->in[0] == OT_NONE ? NULL : u->held[n->in[0]];
    u->held[n->out[0]] = p;
    if (!p || n->n_in < 2 || n->in[1] == OT_NONE ||
        !ot_value_bytes(&u->f->plan.g->values[n->in[1]], &bytes))
        return OT_OK;
    if (bytes == 0 || bytes > OT_SIM_MOST_BYTES / u->x->each) return OT_OK;
    OT_TRY(ot_sim_take(u->x, bytes * u->x->each, &chunk));
    ot_tape_insert(u->x, p, chunk);
    return OT_PUSH(u->x->a, p->chunks, p->n, p->cap, chunk) ? OT_OK : OT_E_NOMEM;
}

static void drop(ot_sim_run *u, uint32_t b)
{
    ot_buffer_kind kind = u->f->plan.buffers[b].kind;
    if (kind != OT_BUFFER_PLANNED && kind != OT_BUFFER_HANDED) return;
    if (u->chunk[b] != OT_NONE && u->f->plan.tensors_only && !u->f->has_pattern)
        ot_pattern_release(&u->f->pattern, b);
    ot_sim_release(u->x, &u->chunk[b]);
}

/* Step s, of node n, has handed on the pieces that it was given: as a sequence that they are part
 * of. */
static bool hands_on(const ot_sim_run *u, const ot_sim_step *s, const ot_node *n,
                     const ot_sim_pieces *p)
{
    if (s->sequence == OT_SIM_SEQUENCE_INSERT) return true;
    for (uint32_t k = 0; n && k < n->n_out; k++)
        if (n->out[k] != OT_NONE && u->held[n->out[k]] == p) return true;
    return false;
}

/* What nobody reads any more goes. */
static void after_step(ot_sim_run *u, const ot_sim_step *s, const ot_node *n)
{
    const ot_sim_schedule *p = &u->f->plan;
    for (uint32_t k = 0; k < s->n_reads; k++) {
        uint32_t v = s->reads[k], b = p->values[v].buffer;
        ot_sim_pieces *held = v < p->g->n_values ? u->held[v] : NULL;
        if (held && (b == OT_NONE || u->left[b] == 1) && !hands_on(u, s, n, held)) {
            ot_tape_break(u->x);
            ot_sim_release_pieces(u->x, held);
        }
        if (b != OT_NONE && --u->left[b] == 0) drop(u, b);
    }
    for (uint32_t k = 0; k < s->n_writes; k++) {
        uint32_t b = p->values[s->writes[k]].buffer;
        if (b != OT_NONE && u->left[b] == 0) drop(u, b);
    }
}

/* With -d P: the steps at which the process grew, and what of that its own results are. */
static void trace(const ot_sim_run *u, const ot_sim_step *s, int64_t before)
{
    const ot_graph *g = u->f->plan.g;
    const int64_t after = ot_chunk_touched(u->x->memory);
    if (after == before) return;
    const ot_node *n = s->node == OT_NONE ? NULL : &g->nodes[s->node];
    const ot_sim_value *y = s->n_writes ? &u->f->plan.values[s->writes[0]] : NULL;
    fprintf(stderr, "  %10.2f MB  +%.2f  ", (double)after / 1048576.0,
            (double)(after - before) / 1048576.0);
    ot_put_shown(n ? n->op_type : "layout of", stderr);
    fputc(' ', stderr);
    ot_put_shown(n ? n->name : y ? g->values[s->writes[0] % g->n_values].name : "", stderr);
    fprintf(stderr, "  (%.2f MB)\n", y ? (double)y->bytes / 1048576.0 : 0.0);
}

void ot_sim_look(ot_simulator *x)
{
    const int64_t now = ot_chunk_touched(x->memory), grown = now - x->most;
    ot_tape_look(x);
    if (grown <= 0) return;
    x->most = now;
    x->stops = now > x->enough;
    x->last = x->now;
    x->last_frame = x->now_frame;
    if (!x->is_first || grown < now / GROWS_MUCH) return;
    x->much = x->now;
    x->much_frame = x->now_frame;
}

static ot_status step(ot_sim_run *u, const ot_sim_step *s)
{
    const int64_t before = ot_dbg['P'] ? ot_chunk_touched(u->x->memory) : 0;
    const ot_node *n = s->node == OT_NONE ? NULL : &u->f->plan.g->nodes[s->node];
    const ot_graph *body = n ? body_of(n) : NULL, *branch = n ? branch_of(n) : NULL;
    if (!branch && u->x->n_loops == 0) {
        u->x->now = s;
        u->x->now_frame = u->f;
    }
    if (branch || body) ot_tape_break(u->x);
    if (branch) {
        OT_TRY(branch_step(u, s, branch));
    } else if (body) {
        OT_TRY(ot_sim_loop_step(u, s, n, body));
    } else if (s->sequence == OT_SIM_SEQUENCE_EMPTY || s->sequence == OT_SIM_SEQUENCE_INSERT) {
        OT_TRY(sequence_step(u, s, n));
    } else {
        OT_TRY(run_step(u, s));
    }
    if (ot_dbg['P']) trace(u, s, before);
    if (!branch) ot_sim_look(u->x);
    after_step(u, s, n);
    return OT_OK;
}

/* ---- runs ---- */

static void begin(ot_sim_run *u, ot_simulator *x, ot_sim_frame *f, const ot_sim_visit *v)
{
    const ot_sim_schedule *p = &f->plan;
    *u = (ot_sim_run){.x = x,
                      .f = f,
                      .left = f->left,
                      .chunk = f->chunk,
                      .held = f->held,
                      .elsewhere = v->elsewhere,
                      .stacks = v->stacks,
                      .in_block = f->has_pattern && p->tensors_only};
    for (size_t b = 0; b < p->n_buffers; b++) {
        u->left[b] = p->buffers[b].uses;
        u->chunk[b] = OT_NONE;
    }
    memset(u->held, 0, p->g->n_values * sizeof *u->held);
    for (uint32_t k = 0; k < p->g->n_inputs && k < v->n_fed; k++)
        u->held[p->g->inputs[k]] = v->fed[k];
}

/* Chunks of the results that somebody waits for. */
static void hand_on(ot_sim_run *u, const ot_sim_visit *v)
{
    const ot_sim_schedule *p = &u->f->plan;
    for (uint32_t k = 0; v->into && k < p->g->n_outputs; k++) {
        if (!v->handed[k]) continue;
        /* what was made in blocks is handed out plain */
        uint32_t at = p->g->outputs[k], plain = at + p->g->n_values;
        uint32_t b = p->values[plain].is_result ? p->values[plain].buffer : p->values[at].buffer;
        if (b == OT_NONE) continue;
        v->into[k] = u->chunk[b];
        ot_tape_hand(u->x, u->chunk[b], k);
        u->chunk[b] = OT_NONE;
    }
}

static ot_status end(ot_sim_run *u, const ot_sim_visit *v)
{
    const ot_sim_schedule *p = &u->f->plan;
    hand_on(u, v);
    for (size_t b = 0; b < p->n_buffers; b++) {
        if (u->chunk[b] == OT_NONE) continue;
        if (p->buffers[b].kind == OT_BUFFER_RESULT && v->kept) {
            ot_tape_keep(u->x, u->chunk[b]);
            if (!OT_PUSH(u->x->a, v->kept->chunks, v->kept->n, v->kept->cap, u->chunk[b]))
                return OT_E_NOMEM;
        } else {
            ot_sim_release(u->x, &u->chunk[b]);
        }
    }
    ot_sim_release_pieces(u->x, &u->late);
    for (uint32_t k = 0; v->made && k < p->g->n_outputs; k++)
        v->made[k] = u->held[p->g->outputs[k]];
    if (p->tensors_only) u->f->has_pattern = true;
    return OT_OK;
}

ot_status ot_sim_run_graph(ot_simulator *x, const ot_graph *g, const ot_sim_visit *v)
{
    ot_sim_frame *f = NULL;
    ot_sim_run u;
    uint32_t block = OT_NONE, converted = OT_NONE;
    ot_sim_tape *const outer = x->tape;
    if (v->tape && v->tape->is_done) return ot_tape_replay(x, v);
    OT_TRY(frame_of(x, g, v->if_node, &f));
    begin(&u, x, f, v);
    x->tape = u.in_block || !f->plan.tensors_only ? ot_tape_begin(v->tape) : NULL;
    if (u.in_block) OT_TRY(ot_sim_take(x, f->pattern.height, &block));
    OT_TRY(ot_sim_take(x, f->converted, &converted));
    for (size_t k = 0; k < f->plan.n && !x->stops; k++)
        if (!f->plan.steps[k].is_gone) OT_TRY(step(&u, &f->plan.steps[k]));
    OT_TRY(end(&u, v));
    ot_sim_release(x, &converted);
    ot_sim_release(x, &block);
    const ot_status s = ot_tape_end(x->tape);
    x->tape = outer;
    return s;
}

int64_t ot_sim_turned_bytes(const ot_graph *g, const ot_runtime *r, const ot_node *n)
{
    int64_t bytes = 0;
    if (r->conv.transposed != OT_TRANSPOSED_COLUMNS) return 0;
    if (n->op != OT_OP_ConvTranspose || n->n_in < 2 || n->in[1] == OT_NONE) return 0;
    const ot_value *v = &g->values[n->in[1]];
    const int64_t group = ot_attr_int(n, "group", 1);
    if (v->dtype != OT_F32 || v->rank <= 2 || !ot_value_bytes(v, &bytes)) return 0;
    const bool known = ot_value_is_precomputed(g, n->in[1]) || v->is_const;
    const bool flat = v->dims[0] <= group || bytes == v->dims[0] * (int64_t)sizeof(float);
    return known && !flat ? bytes : 0;
}

/* The weights of transposed convolutions come into the arena, and stay: of a graph, then of its
 * bodies. */
static ot_status take_turned(ot_simulator *x, const ot_graph *g)
{
    uint32_t chunk;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const int64_t bytes = ot_sim_turned_bytes(g, x->r, &g->nodes[g->order[k]]);
        if (bytes > 0) OT_TRY(ot_sim_take(x, bytes, &chunk));
    }
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        for (uint32_t j = 0; j < n->n_attrs; j++)
            if (n->attrs[j].kind == OT_ATTR_GRAPH && n->attrs[j].g)
                OT_TRY(take_turned(x, n->attrs[j].g));
    }
    return OT_OK;
}

/* -d P prints all steps. */
static int64_t enough(const ot_simulator *x, int64_t loaded, const ot_sim_figures *f)
{
    const int64_t most = x->stop && !ot_dbg['P'] ? x->stop->most(f, x->stop->of) : INT64_MAX;
    return most < OT_SIM_MOST_BYTES ? most + loaded - OWN : INT64_MAX;
}

static ot_status simulate_runs(ot_simulator *x, const ot_graph *g, ot_sim_figures *out)
{
    OT_TRY(ot_loaded_bytes(g, x->r, x->a, out));
    OT_TRY(take_turned(x, g));
    const int64_t loaded = ot_chunk_touched(x->memory);
    x->is_first = true;
    x->enough = enough(x, loaded, out);
    for (int k = 0; k < RUNS && !x->stops; k++) {
        const ot_sim_visit v = {0};
        if (ot_dbg['P']) fprintf(stderr, "> Process: run %d\n", k + 1);
        OT_TRY(ot_sim_run_graph(x, g, &v));
        x->is_first = false;
        if (k == 0) out->first_run = ot_chunk_touched(x->memory) - loaded + OWN;
    }
    ot_sim_grown(out, ot_chunk_touched(x->memory) - loaded + OWN);
    out->is_cut = x->stops;
    if (x->stops) return OT_OK;
    if (x->last) OT_TRY(ot_sim_list_waiting(&x->last_frame->plan, x->last, x->a, out));
    if (x->much) OT_TRY(ot_sim_list_held(&x->much_frame->plan, x->much, x->a, out));
    out->pattern = x->n ? x->frames[0]->pattern.height : 0;
    out->n_unknown = x->n_unknown;
    return OT_OK;
}

/* In that order of changes of layout; *others: in which of n orders it may be another. */
static ot_status simulate_order(const ot_graph *g, const ot_runtime *r, bool static_shape,
                                ot_sim_orders orders, const ot_sim_stop *stop, uint32_t *others,
                                ot_sim_figures *out)
{
    *out = (ot_sim_figures){.waiting = {OT_NONE, OT_NONE}};
    ot_arena *a = ot_arena_new();
    ot_simulator x = {.r = r,
                      .static_shape = static_shape,
                      .orders = orders,
                      .stop = stop,
                      .a = a,
                      .memory = a ? ot_chunk_arena_new(a) : NULL,
                      .each = 1};
    ot_status s = !x.memory         ? OT_E_NOMEM
                  : r->one_block    ? ot_one_block_growth(g, r, a, out)
                  : r->device_arena ? ot_device_growth(g, a, out)
                                    : simulate_runs(&x, g, out);
    *others = x.other_orders;
    ot_arena_free(a);
    return s;
}

ot_status ot_sim_growth(const ot_graph *g, const ot_runtime *r, bool static_shape,
                        ot_sim_figures *out)
{
    return ot_sim_growth_until(g, r, static_shape, 1, NULL, out);
}

ot_status ot_sim_growth_most(const ot_graph *g, const ot_runtime *r, bool static_shape,
                             uint32_t n_orders, ot_sim_figures *out)
{
    return ot_sim_growth_until(g, r, static_shape, n_orders, NULL, out);
}

ot_status ot_sim_growth_until(const ot_graph *g, const ot_runtime *r, bool static_shape,
                              uint32_t n_orders, const ot_sim_stop *stop, ot_sim_figures *out)
{
    uint32_t others, none;
    OT_TRY(simulate_order(g, r, static_shape, (ot_sim_orders){0, n_orders}, stop, &others, out));
    for (uint32_t k = 1; k < n_orders && !out->is_cut; k++) {
        ot_sim_figures f;
        if (!(others >> k & 1)) continue;
        OT_TRY(simulate_order(g, r, static_shape, (ot_sim_orders){k, 0}, stop, &none, &f));
        if (f.growth > out->growth) *out = f;
    }
    return OT_OK;
}
