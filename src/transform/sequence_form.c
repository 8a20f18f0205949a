/* Tiles cut in one dimension, collected in a sequence.
 *
 *     SequenceEmpty --> Loop(first) --> Loop(interior) --> Loop(last) --> ConcatFromSequence [-->
 *     Reshape] --> y
 *                        body: Slice(x), operators, SequenceInsert
 *
 * Each run of alike tiles is a Loop of its own, the single border tiles too, so no tile lives in
 * the outer graph. Runtimes that plan memory per graph (ONNX Runtime records a pattern for every
 * frame of plain tensors) then reserve nothing for tiles: the peak is the pieces, the result and
 * one tile, about half of what scan outputs and a Transpose take. Pieces may have any extent
 * along the cut axis.
 */
#include "transform_internal.h"

void rw_make_sequence(ot_graph *g, ot_id v)
{
    g->values[v].is_tensor = false;
    g->values[v].is_sequence = true;
    g->values[v].rank = -1;
    g->values[v].dims = NULL;
}

ot_status rw_sequence_op(rw_region *w, rw_target *t, const ot_node_def *def, ot_dtype dtype,
                         ot_id *out)
{
    *out = OT_NONE;
    OT_TRY(rw_op(w, t, "deslice", def, (ot_tensor_type){dtype, 0, NULL}, out));
    rw_make_sequence(t->g, *out);
    return OT_OK;
}

ot_status rw_sequences_start(rw_region *w, ot_id *seq)
{
    for (uint32_t v = 0; v < w->r->n_values; v++) {
        seq[v] = OT_NONE;
        if (!w->r->values[v].is_output || rw_is_part(w, v)) continue;
        const ot_value x = w->g->values[w->r->values[v].value];
        ot_attr type = ot_mk_int("dtype", x.dtype);
        OT_TRY(rw_sequence_op(
            w, &w->top, &(ot_node_def){.op = "SequenceEmpty", .name = x.name, .attrs = {&type, 1}},
            x.dtype, &seq[v]));
    }
    return OT_OK;
}

/* What a run's loop hands on: pieces in sequences, parts of reductions stacked. */
typedef struct handed {
    uint32_t *carried; /* [n] region values whose sequences the loop carries */
    uint32_t *parts;   /* [n_parts] region values of which it hands out parts */
    uint32_t n, n_parts;
    ot_id *before;  /* [n] sequences as the body gets them */
    ot_id *results; /* [n + n_parts] what the body makes */
} handed;

/* Hand the carried values to the Loop node and make it; seq: sequences before the loop, then
 * behind it. Stacks of parts go to b->out. */
static ot_status close_loop(rw_loop *l, const rw_block *b, const handed *h, ot_id *seq)
{
    const uint32_t n = h->n, all = h->n + h->n_parts;
    rw_region *w = l->w;
    ot_arena *a = w->g->model->arena;
    ot_graph *body = l->body.g;
    ot_id *outs = OT_NEW_N(a, ot_id, all + 1u), *in = OT_NEW_N(w->arena, ot_id, n + 2u),
          *made = OT_NEW_N(w->arena, ot_id, all + 1u);
    if (!outs || !in || !made) return rw_nomem(w);
    outs[0] = l->inputs[1];
    OT_TRY(rw_loop_own(l, "continue", &outs[0]));
    int64_t trips = l->b->n_tiles;
    OT_TRY(rw_const_i64(w, &w->top, "trips", &trips, 1, true, &in[0]));
    OT_TRY(rw_const_true(w, &w->top, &in[1]));
    for (uint32_t k = 0; k < n; k++) {
        const ot_value x = w->g->values[w->r->values[h->carried[k]].value];
        in[k + 2] = seq[h->carried[k]];
        OT_TRY(rw_value(w, &w->top, "while", x.name, (ot_tensor_type){x.dtype, 0, NULL}, &made[k]));
        rw_make_sequence(w->g, made[k]);
        seq[h->carried[k]] = made[k];
    }
    for (uint32_t k = 0; k < h->n_parts; k++) {
        const ot_value x = w->g->values[w->r->values[h->parts[k]].value];
        int64_t dims[OT_RANK_MAX];
        dims[0] = trips;
        if (x.rank > 0) memcpy(dims + 1, x.dims, (size_t)x.rank * sizeof *dims);
        OT_TRY(rw_value(w, &w->top, "stack", x.name, (ot_tensor_type){x.dtype, x.rank + 1, dims},
                        &made[n + k]));
        b->out[h->parts[k]] = made[n + k];
    }
    for (uint32_t k = 0; k < all; k++) {
        outs[k + 1] = h->results[k];
        body->values[h->results[k]].is_output = true;
    }
    return rw_loop_write(l, in, n, outs, made, all);
}

/* What the chain makes for the region's outputs goes into sequences, or out. */
static ot_status hand_out(rw_loop *l, const rw_chain *c, handed *h)
{
    rw_region *w = l->w;
    for (uint32_t k = 0; k < h->n; k++) {
        const ot_value x = w->g->values[w->r->values[h->carried[k]].value];
        ot_id in[2] = {h->before[k], OT_NONE};
        OT_TRY(rw_window_piece(l, h->carried[k], c->val[h->carried[k]], &in[1]));
        OT_TRY(rw_sequence_op(w, &l->body,
                              &(ot_node_def){.op = "SequenceInsert", .name = x.name, .in = {in, 2}},
                              x.dtype, &h->results[k]));
    }
    for (uint32_t k = 0; k < h->n_parts; k++) {
        ot_id *part = &h->results[h->n + k];
        *part = c->val[h->parts[k]];
        OT_TRY(rw_part(w, &l->body, c->win, h->parts[k], 0, part));
        OT_TRY(rw_loop_own(l, w->g->values[w->r->values[h->parts[k]].value].name, part));
    }
    return OT_OK;
}

/* Write the tiles of b as a loop of their own. */
static ot_status write_run(rw_region *w, const rw_block *b, ot_id *seq)
{
    const ot_tile_windows *win[OT_DIMS_MAX] = {&w->tiles->dims[0].tiles[b->first[0]]};
    const size_t room = w->r->n_values + 1u;
    rw_loop l;
    rw_chain c;
    handed h = {OT_NEW_N(w->arena, uint32_t, room), OT_NEW_N(w->arena, uint32_t, room), 0, 0,
                OT_NEW_N(w->arena, ot_id, room),    OT_NEW_N(w->arena, ot_id, room)};
    if (!h.carried || !h.parts || !h.results || !h.before) return rw_nomem(w);
    if (rw_no_piece(w, win)) return OT_OK;
    OT_TRY(rw_loop_open(&l, w, b, true));
    OT_TRY(rw_chain_plan(&c, w, &l.body, win));
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        if (!rw_has_piece(&c, v)) continue;
        const ot_value x = w->g->values[w->r->values[v].value];
        if (rw_is_part(w, v)) {
            h.parts[h.n_parts++] = v;
            continue;
        }
        OT_TRY(rw_loop_input(&l, x.name, x.dtype, &h.before[h.n]));
        rw_make_sequence(l.body.g, h.before[h.n]);
        h.carried[h.n++] = v;
    }
    OT_TRY(rw_loop_bring(&l, &c));
    OT_TRY(rw_chain_emit(&c));
    OT_TRY(hand_out(&l, &c, &h));
    return h.n + h.n_parts ? close_loop(&l, b, &h, seq) : OT_OK;
}

ot_status rw_sequences_join(rw_region *w, const ot_id *seq)
{
    for (uint32_t v = 0; v < w->r->n_values; v++) {
        if (seq[v] == OT_NONE || rw_pieces_keep(w, v, seq[v])) continue;
        ot_id out = w->r->values[v].value;
        const ot_value x = w->g->values[out];
        ot_id joined = x.is_output ? out : OT_NONE;
        ot_attr axis = ot_mk_int("axis", w->r->values[v].axis[0]);
        if (!x.is_output) OT_TRY(rw_value(w, &w->top, "deslice", x.name, ot_type_of(&x), &joined));
        OT_TRY(rw_op(w, &w->top, "deslice",
                     &(ot_node_def){.op = "ConcatFromSequence",
                                    .name = x.name,
                                    .in = {&seq[v], 1},
                                    .attrs = {&axis, 1}},
                     ot_type_of(&x), &joined));
        /* States the shape, which nobody can infer behind a sequence: what follows stays static,
         * and a wrong join is an error. */
        if (joined != out)
            OT_TRY(rw_reshape(w, &w->top, "deslice", x.name, joined, x.rank, x.dims, &out));
    }
    return OT_OK;
}

/* requires rw_sequence_fits and prepared windows. Fails: OT_E_NOMEM. */
ot_status rw_sequence(rw_region *w)
{
    const uint32_t n = w->tiles->dims[0].n_runs;
    ot_id *seq = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u);
    rw_block *blocks = OT_NEW_N(w->arena, rw_block, n);
    if (!seq || !blocks) return rw_nomem(w);
    OT_TRY(rw_sequences_start(w, seq));
    for (uint32_t k = 0; k < n; k++) {
        const ot_tile_run run = w->tiles->dims[0].runs[k];
        blocks[k] = (rw_block){
            .first = {run.first}, .count = {run.count, 1, 1}, .n_tiles = run.count, .looped = true};
        blocks[k].out = OT_NEW_N(w->arena, ot_id, w->r->n_values);
        if (!blocks[k].out) return rw_nomem(w);
        for (uint32_t v = 0; v < w->r->n_values; v++) blocks[k].out[v] = OT_NONE;
        OT_TRY(write_run(w, &blocks[k], seq));
    }
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++)
        if (w->r->values[v].is_output && rw_is_part(w, v))
            OT_TRY(rw_combine_blocks(w, v, blocks, n));
    return rw_sequences_join(w, seq);
}
