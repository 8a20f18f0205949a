/* From a graph to the steps that a runtime takes, and the buffers that it plans for them before
 * it runs.
 *
 *   graph   Conv -> BN -> Relu -> Resize -> Add               a step for each group; a change of
 *                                                             layout is a step of its own
 *   steps   [Conv BN Relu] -> (to plain) -> [Resize] -> [Add]
 *   layout  blocked           plain         plain
 *
 * Buffers, step by step: a result lies where an input of its shape dies, if the operator can;
 * else where an earlier value of exactly its shape lay, the last one that became free first
 * (that memory waits until then); else in memory of its own. Results of the graph never share.
 * (ONNX Runtime, allocation_planner.)
 *
 *
 *
 */
#include "simulate.h"

/* what passes of the runtime make has more rank than what the file says */
#define RANK_LATER (UINT64_C(1) << 40)

typedef struct maker {
    const ot_graph *g;
    const ot_runtime *r;
    bool static_shape;
    uint32_t order; /* of changes of layout: see alloc_sim.h */
    ot_arena *a;
    ot_sim_plan *p;
    bool *merged;    /* [n_nodes] its result is that of what is folded into it */
    ot_id *head;     /* [n_nodes] of what is folded into a convolution: that; else itself */
    uint32_t *by;    /* [n_values] step that makes v; OT_NONE */
    uint32_t *freed; /* [n_freed] buffers that nobody reads any more, the latest last */
    uint32_t *first; /* [n_buffers] value that the buffer was made for */
    size_t n_freed, cap_freed, cap_first, n_first;
    uint32_t *left; /* [n_buffers] steps that still read it */
    size_t cap_left, n_left;
} maker;

/* ---- groups ---- */

bool ot_sim_held_bytes(const ot_value *v, int64_t *bytes)
{
    if (!ot_value_bytes(v, bytes) || *bytes > OT_SIM_MOST_BYTES) return false;
    if (v->dtype == OT_F16) *bytes *= 2;
    return true;
}

/* Its first result is wanted. */
static bool has_result(const ot_node *n) { return n->n_out > 0 && n->out[0] != OT_NONE; }

/* What is folded into a convolution's weights makes its result. */
static void fold_into_weights(maker *m, ot_id conv)
{
    ot_id at = conv;
    for (;;) {
        ot_id next = ot_onnxruntime_folded(m->g, at);
        if (next == OT_NONE) return;
        m->merged[at] = true;
        m->head[next] = conv;
        at = next;
    }
}

/* ---- layouts ---- */

bool ot_sim_is_blocked(const ot_graph *g, const ot_runtime *r, const ot_node *n, bool *input)
{
    const int64_t block = r->conv.block;
    *input = false;
    if (!ot_runtime_makes_blocks(r, n) || block == 0 || !has_result(n)) return false;
    const ot_value *x = &g->values[n->in[0]], *w = &g->values[n->in[1]], *y = &g->values[n->out[0]];
    if ((x->dtype != OT_F32 && x->dtype != OT_F16) || x->rank != 4 || w->rank != 4 ||
        y->rank != 4 || !ot_value_is_precomputed(g, n->in[1]))
        return false;
    int64_t in = x->dims[1], out = w->dims[0], group = ot_attr_int(n, "group", 1);
    *input = in >= block;
    if (group == 1) return !*input || in % 4 == 0;
    if (group == in && group == out) return *input = true;
    return in / group % block == 0 && out / group % block == 0;
}

/* Bytes of v, in blocks of channels or plain; -1: not known. */
static int64_t layout_bytes(const maker *m, ot_id v, bool blocked)
{
    const ot_value *x = &m->g->values[v];
    int64_t bytes, block = m->r->conv.block;
    if (!ot_sim_held_bytes(x, &bytes)) return -1;
    if (!blocked || x->rank != 4 || x->dims[1] == 0) return bytes;
    return bytes / x->dims[1] * (ot_ceil_div(x->dims[1], block) * block);
}

/* ---- steps ---- */

static void add_read(maker *m, ot_sim_step *s, uint32_t v, bool over)
{
    for (uint32_t k = 0; k < s->n_reads; k++) {
        if (s->reads[k] != v) continue;
        /* read twice: runtimes count readers, and overwrite for the only one */
        if (k < 32) s->over &= ~(1u << k);
        return;
    }
    if (over && s->n_reads < 32) s->over |= 1u << s->n_reads;
    s->reads[s->n_reads++] = v;
    m->p->values[v].uses++;
}

static ot_status new_step(maker *m, ot_id node, uint32_t reads, uint32_t writes, ot_sim_step **out)
{
    ot_sim_step s = {.node = node,
                     .rank = m->p->n,
                     .reads = OT_NEW_N(m->a, uint32_t, reads + 1u),
                     .writes = OT_NEW_N(m->a, uint32_t, writes + 1u)};
    if (!s.reads || !s.writes || !OT_PUSH(m->a, m->p->steps, m->p->n, m->p->cap, s))
        return OT_E_NOMEM;
    *out = &m->p->steps[m->p->n - 1];
    return OT_OK;
}

/* Rank of the k-th step among the changes to plain, which the runtime makes in the order of a
 * hash table of addresses: 0, as they come; 1, the other way round; else some order or other. */
static uint64_t turn_of(uint64_t k, uint32_t order)
{
    uint64_t state = k * 64 + order;
    return order == 0 ? k : order == 1 ? RANK_LATER - 1 - k : ot_next_random(&state) % RANK_LATER;
}

/* Value v in the wanted layout; a step changes it once. */
static ot_status in_layout(maker *m, ot_id v, bool blocked, uint32_t *out)
{
    ot_sim_value *x = &m->p->values[v], *y = &m->p->values[m->g->n_values + v];
    *out = v;
    if (ot_value_is_precomputed(m->g, v) || x->is_blocked == blocked) return OT_OK;
    *out = m->g->n_values + v;
    if (y->is_blocked == blocked && y->bytes != 0) return OT_OK;
    ot_sim_step *s = NULL;
    OT_TRY(new_step(m, OT_NONE, 1, 1, &s));
    *y = (ot_sim_value){
        .bytes = layout_bytes(m, v, blocked), .buffer = OT_NONE, .is_blocked = blocked};
    s->rank = blocked ? RANK_LATER + s->rank : 2 * RANK_LATER + turn_of(s->rank, m->order);
    s->writes[s->n_writes++] = *out;
    add_read(m, s, v, false);
    return OT_OK;
}

/* Upsampling by whole factors of rows and columns, which the blocked kernel does. */
static bool resizes_blocked(const ot_graph *g, const ot_node *n)
{
    if (n->op != OT_OP_Resize && n->op != OT_OP_Upsample) return false;
    const ot_value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    if (!ot_value_is_static(x) || !ot_value_is_static(y) || x->rank != 4 ||
        x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1])
        return false;
    for (int k = 2; k < 4; k++)
        if (x->dims[k] == 0 || y->dims[k] % x->dims[k] != 0) return false;
    const char *mode = ot_attr_str(n, "mode", "nearest");
    const char *where = ot_attr_str(n, "coordinate_transformation_mode",
                                    n->op == OT_OP_Resize ? "half_pixel" : "asymmetric");
    if (strcmp(mode, "nearest") == 0)
        return strcmp(where, "asymmetric") == 0 &&
               (n->op == OT_OP_Upsample ||
                strcmp(ot_attr_str(n, "nearest_mode", "round_prefer_floor"), "floor") == 0);
    return strcmp(mode, "linear") == 0 &&
           (strcmp(where, "asymmetric") == 0 || strcmp(where, "align_corners") == 0 ||
            strcmp(where, "half_pixel") == 0);
}

/* All activations that the node at the tail reads are blocked, and it hands blocks on. */
static bool stays_blocked(const maker *m, const ot_node *n)
{
    uint32_t activations = 0;
    if (!has_result(n) || m->g->values[n->out[0]].rank != 4 ||
        m->g->values[n->out[0]].dtype != OT_F32)
        return false;
    if (!ot_runtime_keeps_blocks(m->r, n) && !resizes_blocked(m->g, n)) return false;
    if (n->op == OT_OP_Concat && ot_attr_int(n, "axis", 1) != 1) return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (n->in[k] == OT_NONE || ot_value_is_precomputed(m->g, n->in[k])) continue;
        if (!m->p->values[n->in[k]].is_blocked) return false;
        if (n->op == OT_OP_Concat && m->g->values[n->in[k]].dims[1] % m->r->conv.block != 0)
            return false;
        activations++;
    }
    if (n->op != OT_OP_BatchNormalization && n->op != OT_OP_Clip && n->op != OT_OP_Resize &&
        n->op != OT_OP_Upsample)
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OT_NONE && ot_value_is_precomputed(m->g, n->in[k])) return false;
    return activations > 0;
}

/* Bytes that a kernel takes while it runs. */
static int64_t scratch_of(const maker *m, const ot_node *n)
{
    if (n->op != OT_OP_ConvTranspose || m->r->conv.transposed != OT_TRANSPOSED_COLUMNS) return 0;
    const ot_value *x = &m->g->values[n->in[0]], *w = &m->g->values[n->in[1]];
    int64_t columns = 0, pixels = 1, kernel = 1;
    if (!ot_value_is_static(x) || !ot_value_is_static(w) || x->rank < 3 || w->rank != x->rank)
        return 0;
    for (int32_t k = 2; k < x->rank; k++)
        if (!ot_mul_i64(pixels, x->dims[k], &pixels) || !ot_mul_i64(kernel, w->dims[k], &kernel))
            return 0;
    bool ok = ot_mul_i64(pixels, kernel, &columns) && ot_mul_i64(columns, w->dims[1], &columns) &&
              ot_mul_i64(columns, 4, &columns);
    return ok && columns <= OT_SIM_MOST_BYTES ? columns : 0;
}

static void set_result(maker *m, ot_sim_step *s, ot_id v, bool blocked)
{
    const ot_value *x = &m->g->values[v];
    const int64_t bytes = layout_bytes(m, v, blocked);
    if (x->is_tensor && bytes < 0) m->p->n_unknown++;
    m->p->values[v] = (ot_sim_value){.bytes = bytes,
                                     .buffer = OT_NONE,
                                     .is_blocked = blocked,
                                     .is_result = x->is_output && !blocked};
    s->writes[s->n_writes++] = v;
    m->by[v] = (uint32_t)m->p->n - 1;
}

/* A result of the graph that was made in blocks is handed out plain. */
static ot_status hand_out_plain(maker *m, ot_id v)
{
    uint32_t plain;
    if (v == OT_NONE || !m->g->values[v].is_output || !m->p->values[v].is_blocked) return OT_OK;
    OT_TRY(in_layout(m, v, false, &plain));
    m->p->values[plain].is_result = true;
    return OT_OK;
}

/* The step runs where its new last node stands, and makes what that makes. */
static ot_status continue_as(maker *m, ot_sim_step *from, const ot_node *n, uint32_t other)
{
    bool blocked = m->p->values[from->writes[0]].is_blocked;
    ot_sim_step s = *from;
    from->is_gone = true;
    s.n_writes = 0;
    if (other != OT_NONE) {
        s.conv.has_added = true;
        add_read(m, &s, other, true);
    } else {
        s.conv.has_activation = true;
    }
    if (!OT_PUSH(m->a, m->p->steps, m->p->n, m->p->cap, s)) return OT_E_NOMEM;
    set_result(m, &m->p->steps[m->p->n - 1], n->out[0], blocked);
    return hand_out_plain(m, n->out[0]);
}

/* The step that makes v, or NULL. */
static ot_sim_step *step_of(const maker *m, ot_id v)
{
    return v == OT_NONE || m->by[v] == OT_NONE ? NULL : &m->p->steps[m->by[v]];
}

/* The node runs inside the convolution before it. *done: it does. */
static ot_status join_convolution(maker *m, const ot_node *n, bool *done)
{
    ot_open_conv by[2] = {{0}};
    bool blocked = n->n_in == 2;
    *done = false;
    if (!ot_runtime_fuses(m->r)) return OT_OK;
    for (uint32_t k = 0; k < n->n_in && k < 2; k++) {
        const ot_sim_step *s = step_of(m, n->in[k]);
        if (s) by[k] = s->conv;
        blocked = blocked && n->in[k] != OT_NONE && m->p->values[n->in[k]].is_blocked;
    }
    const uint32_t k = ot_onnxruntime_joins(m->g, n, by, blocked);
    *done = k != OT_NONE;
    if (!*done) return OT_OK;
    const bool adds = !ot_onnxruntime_fuses_activation(n->op);
    return continue_as(m, step_of(m, n->in[k]), n, adds ? n->in[1 - k] : OT_NONE);
}

static ot_status node_step(maker *m, ot_id id)
{
    const ot_graph *g = m->g;
    const ot_node *tail = &g->nodes[id], *n = &g->nodes[m->head[id]];
    bool input = false, done;
    OT_TRY(join_convolution(m, tail, &done));
    if (done) return OT_OK;
    bool makes = n->op == OT_OP_Conv && n->n_in >= 2 && ot_sim_is_blocked(m->g, m->r, n, &input);
    bool blocked = makes || (n->op != OT_OP_Conv && stays_blocked(m, n));
    uint32_t *reads = OT_NEW_N(m->a, uint32_t, n->n_in + 1u), n_reads = 0;
    if (!reads) return OT_E_NOMEM;
    for (uint32_t k = 0; k < n->n_in; k++) {
        reads[k] = OT_NONE;
        if (n->in[k] == OT_NONE) continue;
        OT_TRY(in_layout(m, n->in[k], makes ? k == 0 && input : blocked, &reads[k]));
        n_reads++;
    }
    /* bodies read plain tensors */
    uint32_t *captured = OT_NEW_N(m->a, uint32_t, n->n_captured + 1u);
    if (!captured) return OT_E_NOMEM;
    for (uint32_t k = 0; k < n->n_captured; k++)
        if (n->captured[k] != OT_NONE) OT_TRY(in_layout(m, n->captured[k], false, &captured[k]));
    ot_sim_step *s = NULL;
    /* one more: what an Add brings */
    OT_TRY(new_step(m, m->head[id], n_reads + n->n_captured + 1, tail->n_out, &s));
    for (uint32_t k = 0; k < n->n_in; k++)
        if (reads[k] != OT_NONE)
            add_read(m, s, reads[k], ot_runtime_in_place(m->r, n) && ot_op_over(n->op, k));
    for (uint32_t k = 0; k < n->n_captured; k++)
        if (n->captured[k] != OT_NONE) add_read(m, s, captured[k], false);
    s->is_view = ot_op_is_view(n->op) || ot_onnxruntime_reads_through(g, n);
    s->conv.is_conv = n->op == OT_OP_Conv;
    if (blocked && (s->conv.is_conv || ot_op_access(n->op) == OT_ACC_POOL ||
                    ot_op_access(n->op) == OT_ACC_GLOBALPOOL || n->op == OT_OP_Resize ||
                    n->op == OT_OP_Upsample || n->op == OT_OP_BatchNormalization))
        s->rank += RANK_LATER;
    s->scratch = scratch_of(m, n);
    for (uint32_t k = 0; k < tail->n_out; k++)
        if (tail->out[k] != OT_NONE) set_result(m, s, tail->out[k], blocked);
    return tail->n_out ? hand_out_plain(m, tail->out[0]) : OT_OK;
}

/* ---- buffers ---- */

static ot_status new_buffer(maker *m, ot_buffer_kind kind, uint32_t v)
{
    ot_sim_value *x = &m->p->values[v];
    ot_sim_buffer b = {kind, ot_max(x->bytes, 0), 0};
    x->buffer = (uint32_t)m->p->n_buffers;
    bool ok = OT_PUSH(m->a, m->p->buffers, m->p->n_buffers, m->p->cap_buffers, b) &&
              OT_PUSH(m->a, m->first, m->n_first, m->cap_first, v) &&
              OT_PUSH(m->a, m->left, m->n_left, m->cap_left, 0);
    return ok ? OT_OK : OT_E_NOMEM;
}

/* Extents as the runtime sees them: channel blocks padded, whatever the layout. */
static bool same_shape(const maker *m, uint32_t v, uint32_t w)
{
    const uint32_t n = m->g->n_values;
    const ot_sim_value *x = &m->p->values[v], *y = &m->p->values[w];
    const ot_value *a = &m->g->values[v % n], *b = &m->g->values[w % n];
    if (!m->static_shape || x->bytes != y->bytes || a->rank != b->rank || a->rank < 0) return false;
    for (int32_t k = 0; k < a->rank; k++)
        if (a->dims[k] < 0 ||
            (a->dims[k] != b->dims[k] && (k != 1 || x->is_blocked == y->is_blocked)))
            return false;
    return true; /* equal bytes and other extents: equal channels when padded */
}

static void use_buffer(maker *m, uint32_t v, uint32_t b)
{
    m->p->values[v].buffer = b;
    m->left[b] += m->p->values[v].uses;
    m->p->buffers[b].uses += m->p->values[v].uses;
}

/* Where the first result goes, if it goes where something else lay. */
static uint32_t taken_over(maker *m, const ot_sim_step *s, uint32_t v)
{
    if (s->is_view && s->n_reads) return m->p->values[s->reads[0]].buffer;
    for (uint32_t k = 0; k < s->n_reads && k < 32; k++) {
        uint32_t b = m->p->values[s->reads[k]].buffer;
        if (!(s->over >> k & 1) || b == OT_NONE || m->p->buffers[b].kind != OT_BUFFER_PLANNED ||
            m->left[b] != 1)
            continue;
        if (same_shape(m, v, s->reads[k])) return b;
    }
    return OT_NONE;
}

static uint32_t waiting(maker *m, uint32_t v)
{
    for (size_t k = m->n_freed; k-- > 0;) {
        uint32_t b = m->freed[k];
        if (!same_shape(m, v, m->first[b])) continue;
        memmove(&m->freed[k], &m->freed[k + 1], (m->n_freed - k - 1) * sizeof *m->freed);
        m->n_freed--;
        return b;
    }
    return OT_NONE;
}

/* v is what the Loop carried in the end: the first of its results, as many as it is handed. */
static bool carries(const ot_graph *g, const ot_node *loop, uint32_t v)
{
    for (uint32_t k = 0; k + 2 < loop->n_in && k < loop->n_out; k++)
        if (loop->out[k] == v && v < g->n_values) return true;
    return false;
}

static ot_status place(maker *m, const ot_sim_step *s, uint32_t k)
{
    const uint32_t v = s->writes[k];
    const ot_sim_value *x = &m->p->values[v];
    const ot_value *of = &m->g->values[v % m->g->n_values];
    uint32_t b = OT_NONE;
    const ot_node *by = s->node == OT_NONE ? NULL : &m->g->nodes[s->node];
    if (of->is_tensor && !x->is_result && by && by->op == OT_OP_Loop && carries(m->g, by, v)) {
        OT_TRY(new_buffer(m, OT_BUFFER_HANDED, v));
    } else if (!of->is_tensor) {
        OT_TRY(new_buffer(m, OT_BUFFER_PIECES, v));
    } else if (x->is_result) {
        OT_TRY(new_buffer(m, OT_BUFFER_RESULT, v));
    } else {
        if (k == 0 && s->is_view && s->n_reads && m->p->values[s->reads[0]].buffer == OT_NONE)
            return OT_OK; /* of what is not the run's */
        if (k == 0) b = taken_over(m, s, v);
        if (b == OT_NONE && x->bytes > 0) b = waiting(m, v);
        if (b == OT_NONE) OT_TRY(new_buffer(m, OT_BUFFER_PLANNED, v));
    }
    use_buffer(m, v, b == OT_NONE ? x->buffer : b);
    return OT_OK;
}

static ot_status give_back(maker *m, uint32_t b)
{
    if (b == OT_NONE || m->p->buffers[b].kind != OT_BUFFER_PLANNED || m->left[b] > 0) return OT_OK;
    return OT_PUSH(m->a, m->freed, m->n_freed, m->cap_freed, b) ? OT_OK : OT_E_NOMEM;
}

static ot_status plan_buffers(maker *m)
{
    for (size_t p = 0; p < m->p->n; p++) {
        const ot_sim_step *s = &m->p->steps[p];
        if (s->is_gone) continue;
        for (uint32_t k = 0; k < s->n_writes; k++) OT_TRY(place(m, s, k));
        for (uint32_t k = 0; k < s->n_reads; k++) {
            uint32_t b = m->p->values[s->reads[k]].buffer;
            if (b == OT_NONE) continue;
            m->left[b]--;
            OT_TRY(give_back(m, b));
        }
        for (uint32_t k = 0; k < s->n_writes; k++)
            if (m->p->values[s->writes[k]].uses == 0)
                OT_TRY(give_back(m, m->p->values[s->writes[k]].buffer));
    }
    return OT_OK;
}

/* Bytes of windows that move with the iteration, whose extents nobody states but the Reshape
 * behind them: the view says them. */
static void measure_viewed(maker *m)
{
    for (size_t p = m->p->n; p-- > 0;) {
        const ot_sim_step *s = &m->p->steps[p];
        if (s->is_gone || !s->is_view || s->n_reads == 0 || s->n_writes == 0) continue;
        ot_sim_value *x = &m->p->values[s->reads[0]];
        const ot_value *of = &m->g->values[s->reads[0] % m->g->n_values];
        const int64_t bytes = m->p->values[s->writes[0]].bytes;
        if (x->bytes >= 0 || bytes < 0 || !of->is_tensor || of->producer == OT_NONE) continue;
        x->bytes = bytes;
        m->p->n_unknown--;
    }
}

/* Bytes of results that a branch does not state: those of the If say them. */
static void measure_unstated(maker *m)
{
    const ot_graph *g = m->g, *top = g->parent;
    for (ot_id k = 0; top && k < top->n_nodes; k++) {
        const ot_node *n = &top->nodes[k];
        const ot_attr *a = n->op == OT_OP_If ? ot_attr_find(n, "then_branch") : NULL;
        if (!a || a->kind != OT_ATTR_GRAPH || a->g != g) continue;
        for (uint32_t j = 0; j < n->n_out && j < g->n_outputs; j++) {
            ot_sim_value *x = &m->p->values[g->outputs[j]];
            int64_t bytes;
            if (x->bytes >= 0 || n->out[j] == OT_NONE ||
                !ot_sim_held_bytes(&top->values[n->out[j]], &bytes))
                continue;
            x->bytes = bytes;
            m->p->n_unknown--;
        }
    }
}

ot_status ot_sim_plan_make(const ot_graph *g, const ot_runtime *r, bool static_shape,
                           uint32_t order, ot_arena *a, ot_sim_plan *out)
{
    maker m = {.g = g, .r = r, .static_shape = static_shape, .order = order, .a = a, .p = out};
    *out = (ot_sim_plan){.g = g, .tensors_only = true};
    out->values = OT_NEW_N(a, ot_sim_value, 2 * (size_t)g->n_values + 1);
    m.head = OT_NEW_N(a, ot_id, g->n_nodes + 1u);
    m.by = OT_NEW_N(a, uint32_t, g->n_values + 1u);
    m.merged = OT_NEW_N(a, bool, g->n_nodes + 1u);
    if (!out->values || !m.head || !m.by || !m.merged) return OT_E_NOMEM;
    for (uint32_t v = 0; v < 2 * g->n_values; v++) out->values[v].buffer = OT_NONE;
    for (uint32_t v = 0; v < g->n_values; v++) m.by[v] = OT_NONE;
    for (ot_id k = 0; k < g->n_nodes; k++) m.head[k] = k;
    for (uint32_t k = 0; k < g->n_inputs; k++)
        out->tensors_only &= g->values[g->inputs[k]].is_tensor;
    for (uint32_t v = 0; v < g->n_values; v++)
        out->tensors_only &= !g->values[v].is_outer || g->values[v].is_tensor;
    for (uint32_t k = 0; ot_runtime_fuses(r) && k < g->n_order; k++)
        if (g->nodes[g->order[k]].op == OT_OP_Conv) fold_into_weights(&m, g->order[k]);
    for (uint32_t k = 0; k < g->n_order; k++) {
        ot_id id = g->order[k];
        if (!m.merged[id] && !g->nodes[id].is_static) OT_TRY(node_step(&m, id));
    }
    measure_unstated(&m);
    measure_viewed(&m);
    OT_TRY(ot_sim_order(out, a));
    OT_TRY(plan_buffers(&m));
    return OT_OK;
}
