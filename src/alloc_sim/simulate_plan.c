/* From a graph to the steps that a runtime takes.
 *
 *   graph   Conv -> BN -> Relu -> Resize -> Add               a step for each group; a change of
 *                                                             layout is a step of its own
 *   steps   [Conv BN Relu] -> (to plain) -> [Resize] -> [Add]
 *   layout  blocked           plain         plain
 */
#include "simulate.h"

#include "ops/access_resize.h"

#include <math.h>

#define LARGE 10000 /* nodes */

typedef struct maker {
    const ot_graph *g;
    const ot_runtime *r;
    ot_arena *a;     /* of the schedule */
    ot_arena *aside; /* of what nobody reads once it is made */
    ot_sim_schedule *p;
    bool *merged;  /* [n_nodes] it runs within the step of another node, or not at all */
    ot_id *head;   /* [n_nodes] of what is folded into a convolution: that; else itself */
    ot_id *tail;   /* [n_nodes] where it runs if it is replaced (ot_onnxruntime_replaced) */
    ot_id *others; /* [n_nodes] of such a last node: another of its group, and so on; OT_NONE */
    uint32_t *by;  /* [n_values] step that makes v; OT_NONE */
    ot_on_bytes bytes;
    ot_sim_places places;
} maker;

/* ---- groups ---- */

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
static int64_t layout_bytes(const maker *m, const ot_value *x, bool blocked)
{
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

static ot_sim_sequence sequence_of(const ot_node *n)
{
    if (n->op != OT_OP_OPAQUE || n->domain[0] != 0) return OT_SIM_NO_SEQUENCE;
    if (strcmp(n->op_type, "SequenceEmpty") == 0) return OT_SIM_SEQUENCE_EMPTY;
    if (strcmp(n->op_type, "SequenceInsert") == 0) return OT_SIM_SEQUENCE_INSERT;
    if (strcmp(n->op_type, "ConcatFromSequence") == 0) return OT_SIM_SEQUENCE_JOIN;
    return OT_SIM_NO_SEQUENCE;
}

static ot_status new_step(maker *m, ot_id node, uint32_t reads, uint32_t writes, ot_sim_step **out)
{
    ot_sim_step s = {.node = node,
                     .sequence = node == OT_NONE ? OT_SIM_NO_SEQUENCE
                                                 : sequence_of(&m->g->nodes[node]),
                     .rank = m->p->n,
                     .reads = OT_NEW_N(m->a, uint32_t, reads + 1u),
                     .writes = OT_NEW_N(m->a, uint32_t, writes + 1u)};
    if (!s.reads || !s.writes || !OT_PUSH(m->a, m->p->steps, m->p->n, m->p->cap, s))
        return OT_E_NOMEM;
    *out = &m->p->steps[m->p->n - 1];
    return OT_OK;
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
    *y = (ot_sim_value){.bytes = layout_bytes(m, &m->g->values[v], blocked),
                        .buffer = OT_NONE,
                        .is_blocked = blocked};
    s->rank += OT_RANK_LATER;
    s->is_turn = !blocked;
    s->writes[s->n_writes++] = *out;
    add_read(m, s, v, false);
    return OT_OK;
}

/* Rows and columns of n's result are whole multiples of those of its operand, which nothing else
 * of it changes: by extents, or where they are not stated by constant scales. */
static bool repeats_rows(const ot_graph *g, const ot_node *n)
{
    const ot_value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    if (x->rank != 4) return false;
    if (ot_value_is_static(x) && ot_value_is_static(y)) {
        for (int k = 2; k < 4; k++)
            if (x->dims[k] == 0 || y->dims[k] % x->dims[k] != 0) return false;
        return x->dims[0] == y->dims[0] && x->dims[1] == y->dims[1];
    }
    ot_resize r;
    ot_why why;
    if (!ot_resize_read(g, n, &r, &why) || r.by_sizes) return false;
    for (int k = 0; k < 4; k++) {
        const float scale = r.entry[k] < 0 ? 1 : r.scales[r.entry[k]];
        if (k < 2 ? scale != 1 : !(scale >= 1 && scale == floorf(scale))) return false;
    }
    return true;
}

/* Upsampling by whole factors of rows and columns, which the blocked implementation does. */
static bool resizes_blocked(const ot_graph *g, const ot_node *n)
{
    if ((n->op != OT_OP_Resize && n->op != OT_OP_Upsample) || !repeats_rows(g, n)) return false;
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
    return activations > 0 && ot_sim_suits_blocks(m->p, m->r->conv.block, n);
}

/* Bytes of the columns of a transposed convolution. */
static int64_t columns_of(const maker *m, const ot_node *n)
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

/* Bytes of the columns of a convolution whose weights are not packed: implementations that make
 * more channels than pixels unfold the whole input. */
static int64_t unfolded(const maker *m, const ot_node *n)
{
    if (n->op != OT_OP_Conv || !m->r->expands_columns || n->n_in < 2 || n->in[1] == OT_NONE)
        return 0;
    const ot_value *w = &m->g->values[n->in[1]], *y = &m->g->values[n->out[0]];
    int64_t pixels = 1, taps = 1, bytes;
    if (ot_value_is_precomputed(m->g, n->in[1]) || w->rank != y->rank || w->rank < 3 ||
        !ot_value_is_static(w) || !ot_value_is_static(y))
        return 0;
    for (int32_t k = 2; k < w->rank; k++)
        if (!ot_mul_i64(pixels, y->dims[k], &pixels) || !ot_mul_i64(taps, w->dims[k], &taps))
            return 0;
    if (w->dims[0] <= pixels || (taps == 1 && !ot_sim_is_strided(n))) return 0;
    const bool ok = ot_mul_i64(pixels, taps, &bytes) && ot_mul_i64(bytes, w->dims[1], &bytes) &&
                    ot_mul_i64(bytes, 4, &bytes);
    return ok && bytes <= OT_SIM_MOST_BYTES ? bytes : 0;
}

/* Bytes of operand k of a Where as far as the condition, which repeats, selects it. */
static int64_t selected_bytes(const maker *m, const ot_node *n, uint32_t k)
{
    const ot_value *y = &m->g->values[n->out[0]];
    const uint32_t operands[2] = {0, k};
    int64_t bytes = 0;
    if (!ot_sim_held_bytes(y, &bytes)) return 0;
    for (int32_t d = 1; d <= y->rank; d++) {
        const int64_t extent = y->dims[y->rank - d];
        int64_t own = 1;
        for (uint32_t j = 0; j < 2; j++) {
            const ot_value *x = &m->g->values[n->in[operands[j]]];
            if (x->rank >= d) own = ot_max(own, x->dims[x->rank - d]);
        }
        if (extent > 0 && own > 0) bytes = bytes / extent * own;
    }
    return bytes;
}

/* What an implementation holds besides operands and results, or what is inside of the node does. */
static ot_sim_scratch scratch_of(const maker *m, const ot_node *n)
{
    if (m->bytes.nodes[n - m->g->nodes] || (n->op == OT_OP_QLinearConv && n->n_in > 3))
        return (ot_sim_scratch){.bytes = {ot_sim_scratch_on_bytes(m->g, n)}};
    if (n->inner.bytes < 0) m->p->n_unknown++;
    if (n->inner.bytes > 0)
        return (ot_sim_scratch){.bytes = {ot_min(n->inner.bytes, OT_SIM_MOST_BYTES)}};
    const ot_op_memory *of = ot_runtime_scratch(m->r, n);
    ot_sim_scratch s = {.bytes = {ot_max(columns_of(m, n), unfolded(m, n))}};
    int64_t bytes;
    if (!of || !has_result(n) || !ot_sim_held_bytes(&m->g->values[n->out[0]], &bytes)) return s;
    s = (ot_sim_scratch){.is_first = true, .in_pattern = of->kind == OT_SCRATCH_INLINED};
    for (uint32_t k = 0; k < of->values && k < OT_SIM_SCRATCH; k++)
        s.bytes[k] = of->kind == OT_SCRATCH_SELECTED ? selected_bytes(m, n, k + 1) : bytes;
    return s;
}

static void set_result(maker *m, ot_sim_step *s, ot_id v, bool blocked)
{
    const ot_value *x = &m->g->values[v];
    int64_t bytes = layout_bytes(m, x, blocked), elems = 0;
    if (m->bytes.values[v] && ot_value_elems(x, &elems) && elems <= OT_SIM_MOST_BYTES)
        bytes = elems;
    if (x->is_tensor && bytes < 0) m->p->n_unknown++;
    m->p->values[v] = (ot_sim_value){.bytes = bytes,
                                     .buffer = OT_NONE,
                                     .is_blocked = blocked,
                                     .is_result = x->is_output && !blocked,
                                     .rows = blocked ? ot_sim_rows_of(m->p, v) : v};
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
        if (!blocked) s.rank = m->places.rank[n - m->g->nodes];
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
    blocked = blocked && ot_sim_same_extents(m->p, n);
    const uint32_t k = ot_onnxruntime_joins(m->g, n, by, blocked);
    *done = k != OT_NONE;
    if (!*done) return OT_OK;
    const bool adds = !ot_onnxruntime_fuses_activation(n->op);
    return continue_as(m, step_of(m, n->in[k]), n, adds ? n->in[1 - k] : OT_NONE);
}

/* How a node's step reads: blocked activations, or only the first of them (a convolution's). */
typedef struct layout_reads {
    bool makes, input, blocked;
} layout_reads;

/* v is never made: it lies within the group whose last node is `tail`; OT_NONE: there is none. */
static bool is_within(const maker *m, ot_id v, ot_id tail)
{
    const ot_id by = m->g->values[v].producer;
    return tail != OT_NONE && by != OT_NONE && m->tail[by] == tail;
}

/* A matrix product is in the group. */
static bool is_product(const maker *m, ot_id id)
{
    while (id != OT_NONE && m->g->nodes[id].op != OT_OP_MatMul) id = m->others[id];
    return id != OT_NONE;
}

/* Operands of n, which runs in the step whose last node is `tail`, in their layouts. */
static ot_status change_layouts(maker *m, const ot_node *n, ot_id tail, layout_reads how,
                                uint32_t *reads)
{
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_id of = m->bytes.nodes[n - m->g->nodes] ? ot_dequantized_from(m->g, n->in[k])
                                                         : OT_NONE;
        reads[k] = OT_NONE;
        if (n->in[k] == OT_NONE) continue;
        if (is_within(m, n->in[k], tail)) continue;
        OT_TRY(in_layout(m, of == OT_NONE ? n->in[k] : of,
                         how.makes ? k == 0 && how.input : how.blocked, &reads[k]));
    }
    return OT_OK;
}

/* Everything that the group whose last node is `id` reads from outside, and how many that is. */
static ot_status group_reads(maker *m, ot_id id, layout_reads how, uint32_t **reads, uint32_t *n)
{
    uint32_t most = 0;
    for (ot_id k = id; k != OT_NONE; k = m->others[k]) most += m->g->nodes[k].n_in;
    *reads = OT_NEW_N(m->aside, uint32_t, most + 1u);
    *n = 0;
    if (!*reads) return OT_E_NOMEM;
    for (ot_id k = id; k != OT_NONE; k = m->others[k]) {
        OT_TRY(change_layouts(m, &m->g->nodes[k], m->tail[id], how, *reads + *n));
        *n += m->g->nodes[k].n_in;
    }
    return OT_OK;
}

/* What the runtime replaces by one operator: it hands blocks on where all that it reads from
 * outside is blocked, if the node that it ends with does. */
static bool group_stays_blocked(const maker *m, ot_id id)
{
    const ot_node *tail = &m->g->nodes[id];
    uint32_t activations = 0;
    if (!has_result(tail) || m->g->values[tail->out[0]].rank != 4 ||
        !ot_runtime_keeps_blocks(m->r, tail))
        return false;
    for (ot_id k = id; k != OT_NONE; k = m->others[k])
        for (uint32_t j = 0; j < m->g->nodes[k].n_in; j++) {
            const ot_id v = m->g->nodes[k].in[j];
            if (v == OT_NONE || ot_value_is_precomputed(m->g, v) || is_within(m, v, id)) continue;
            if (!m->p->values[v].is_blocked) return false;
            activations++;
        }
    return activations > 0;
}

/* The last node of a group that is replaced by one operator. */
static ot_status group_step(maker *m, ot_id id)
{
    const ot_node *tail = &m->g->nodes[id];
    const bool blocked = group_stays_blocked(m, id);
    uint32_t *reads, n_reads;
    ot_sim_step *s = NULL;
    OT_TRY(group_reads(m, id, (layout_reads){.blocked = blocked}, &reads, &n_reads));
    OT_TRY(new_step(m, id, n_reads, tail->n_out, &s));
    s->rank = m->places.rank[id];
    for (uint32_t k = 0; k < n_reads; k++)
        if (reads[k] != OT_NONE) add_read(m, s, reads[k], false);
    for (uint32_t k = 0; k < tail->n_out; k++)
        if (tail->out[k] != OT_NONE) set_result(m, s, tail->out[k], blocked);
    if (is_product(m, id)) m->p->values[tail->out[0]].is_matrix = true;
    return hand_out_plain(m, tail->out[0]);
}

static ot_status node_step(maker *m, ot_id id)
{
    const ot_graph *g = m->g;
    const ot_node *tail = &g->nodes[id], *n = &g->nodes[m->head[id]];
    bool input = false, done;
    OT_TRY(join_convolution(m, tail, &done));
    if (done) return OT_OK;
    const bool on_bytes = m->bytes.nodes[m->head[id]];
    bool makes = n->op == OT_OP_Conv && !on_bytes && n->n_in >= 2 &&
                 ot_sim_is_blocked(m->g, m->r, n, &input);
    bool blocked = makes || (!on_bytes && n->op != OT_OP_Conv && stays_blocked(m, n));
    uint32_t *reads = OT_NEW_N(m->aside, uint32_t, n->n_in + 1u);
    if (!reads) return OT_E_NOMEM;
    OT_TRY(change_layouts(m, n, OT_NONE, (layout_reads){makes, input, blocked}, reads));
    /* bodies read plain tensors */
    uint32_t *captured = OT_NEW_N(m->aside, uint32_t, n->n_captured + 1u);
    if (!captured) return OT_E_NOMEM;
    for (uint32_t k = 0; k < n->n_captured; k++)
        if (n->captured[k] != OT_NONE) OT_TRY(in_layout(m, n->captured[k], false, &captured[k]));
    ot_sim_step *s = NULL;
    /* one more: what an Add brings */
    OT_TRY(new_step(m, m->head[id], n->n_in + n->n_captured + 1, tail->n_out, &s));
    for (uint32_t k = 0; k < n->n_in; k++)
        if (reads[k] != OT_NONE) add_read(m, s, reads[k], ot_runtime_overwrites(m->r, n, k));
    for (uint32_t k = 0; k < n->n_captured; k++)
        if (n->captured[k] != OT_NONE) add_read(m, s, captured[k], false);
    s->is_view = ot_op_is_view(n->op) || m->bytes.names[id] || ot_onnxruntime_reads_through(g, n);
    s->conv.is_conv = n->op == OT_OP_Conv && !on_bytes;
    if (blocked && (s->conv.is_conv || ot_op_access(n->op) == OT_ACC_POOL ||
                    ot_op_access(n->op) == OT_ACC_GLOBALPOOL || n->op == OT_OP_Resize ||
                    n->op == OT_OP_Upsample || n->op == OT_OP_BatchNormalization))
        s->rank += OT_RANK_LATER;
    else
        s->rank = m->places.rank[id];
    s->scratch = scratch_of(m, n);
    for (uint32_t k = 0; k < tail->n_out; k++)
        if (tail->out[k] != OT_NONE) set_result(m, s, tail->out[k], blocked);
    return tail->n_out ? hand_out_plain(m, tail->out[0]) : OT_OK;
}

/* Groups that the runtime replaces by one operator each: lists of their nodes. */
static ot_status list_groups(maker *m)
{
    m->others = OT_NEW_N(m->aside, ot_id, m->g->n_nodes + 1u);
    m->tail = OT_NEW_N(m->aside, ot_id, m->g->n_nodes + 1u);
    if (!m->others || !m->tail) return OT_E_NOMEM;
    for (ot_id k = 0; k < m->g->n_nodes; k++) m->others[k] = m->tail[k] = OT_NONE;
    if (ot_runtime_fuses(m->r)) OT_TRY(ot_onnxruntime_replaced(m->g, m->aside, &m->tail));
    for (ot_id k = 0; k < m->g->n_nodes; k++) {
        const ot_id at = m->tail[k];
        if (at == OT_NONE || at == k) continue;
        m->merged[k] = true;
        m->others[k] = m->others[at];
        m->others[at] = k;
    }
    return OT_OK;
}

/* ---- extents that others state ---- */

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

/* Bytes of results that a branch does not state, in blocks and plain: those of the If say them. */
static void measure_unstated(maker *m, const ot_node *if_node)
{
    const ot_graph *g = m->g, *outside = g->parent;
    if (!if_node || !outside) return;
    for (uint32_t j = 0; j < if_node->n_out && j < g->n_outputs; j++) {
        const ot_id v = g->outputs[j], result = if_node->out[j];
        ot_sim_value *x = &m->p->values[v], *plain = &m->p->values[g->n_values + v];
        if (x->bytes >= 0 || result == OT_NONE) continue;
        const ot_value *of = &outside->values[result];
        const int64_t bytes = layout_bytes(m, of, x->is_blocked);
        if (bytes < 0) continue;
        x->bytes = bytes;
        if (plain->bytes < 0) plain->bytes = layout_bytes(m, of, false);
        m->p->n_unknown--;
    }
}

/* Steps of m's graph as they come. */
static ot_status make_steps(maker *m)
{
    const ot_graph *g = m->g;
    ot_arena *a = m->aside;
    m->head = OT_NEW_N(a, ot_id, g->n_nodes + 1u);
    m->by = OT_NEW_N(a, uint32_t, g->n_values + 1u);
    m->merged = OT_NEW_N(a, bool, g->n_nodes + 1u);
    if (!m->head || !m->by || !m->merged) return OT_E_NOMEM;
    for (uint32_t v = 0; v < g->n_values; v++) m->by[v] = OT_NONE;
    for (ot_id k = 0; k < g->n_nodes; k++) m->head[k] = k;
    OT_TRY(ot_sim_find_unread(g, a, m->merged));
    OT_TRY(list_groups(m));
    OT_TRY(ot_onnxruntime_on_bytes(g, ot_runtime_fuses(m->r), a, &m->bytes));
    for (ot_id k = 0; k < g->n_nodes; k++) m->merged[k] |= m->bytes.gone[k];
    for (uint32_t k = 0; ot_runtime_fuses(m->r) && k < g->n_order; k++)
        if (g->nodes[g->order[k]].op == OT_OP_Conv) fold_into_weights(m, g->order[k]);
    OT_TRY(ot_sim_find_places(g, ot_runtime_fuses(m->r), m->tail, a, &m->places));
    for (uint32_t k = 0; k < m->places.n; k++) {
        ot_id id = m->places.order[k];
        if (m->merged[id] || g->nodes[id].is_static) continue;
        OT_TRY(m->tail[id] == OT_NONE ? node_step(m, id) : group_step(m, id));
    }
    return OT_OK;
}

ot_status ot_sim_plan_make(const ot_graph *g, const ot_node *if_node, const ot_runtime *r,
                           bool static_shape, ot_sim_orders orders, ot_arena *a,
                           ot_sim_schedule *out)
{
    maker m = {.g = g, .r = r, .a = a, .p = out};
    *out = (ot_sim_schedule){.g = g, .tensors_only = true};
    out->values = OT_NEW_N(a, ot_sim_value, 2 * (size_t)g->n_values + 1);
    if (!out->values) return OT_E_NOMEM;
    /* nodes and changes of layout; a large list that grew would leave its smaller ones behind */
    const size_t n = g->n_nodes, likely = n + (n < LARGE ? n / 4 : n) + 1;
    if (!ot_grow(a, (void **)&out->steps, &out->cap, likely, sizeof *out->steps)) return OT_E_NOMEM;
    for (uint32_t v = 0; v < 2 * g->n_values; v++) out->values[v].buffer = OT_NONE;
    for (uint32_t k = 0; k < g->n_inputs; k++)
        out->tensors_only &= g->values[g->inputs[k]].is_tensor;
    for (uint32_t v = 0; v < g->n_values; v++)
        out->tensors_only &= !g->values[v].is_outer || g->values[v].is_tensor;
    m.aside = ot_arena_new();
    const ot_status st = m.aside ? make_steps(&m) : OT_E_NOMEM;
    if (st == OT_OK) measure_unstated(&m, if_node);
    if (st == OT_OK) measure_viewed(&m);
    ot_arena_free(m.aside);
    OT_TRY(st);
    OT_TRY(ot_sim_order(out, orders));
    return ot_sim_plan_buffers(out, static_shape, a);
}
