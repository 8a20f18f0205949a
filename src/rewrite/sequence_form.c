/* Tiles cut in one dimension, collected in a sequence.
 *
 *     SequenceEmpty --> Loop(first) --> Loop(interior) --> Loop(last) --> ConcatFromSequence [--> Reshape] --> y
 *                        body: Slice(x), operators, SequenceInsert
 *
 * Each run of alike tiles is a Loop of its own, the single border tiles too, so no tile lives in the outer graph. Runtimes
 * that plan memory per graph (ONNX Runtime records a pattern for every frame of plain tensors) then reserve nothing for
 * tiles: the peak is the pieces, the result and one tile, about half of what scan outputs and a Transpose take. Pieces may
 * have any extent along the cut axis.
 */
#include "rewrite_internal.h"

void rw_make_sequence(ot_graph *g, ot_id v)
{
    g->values[v].is_tensor = false;
    g->values[v].is_sequence = true;
    g->values[v].rank = -1;
    g->values[v].dims = NULL;
}

ot_status rw_sequence_op(rw_region *w, rw_target *t, const char *op, const char *name, const ot_id *in, uint32_t n_in,
                         const ot_attr *attrs, uint32_t n_attrs, ot_dtype dtype, ot_id *out)
{
    *out = OT_NONE;
    OT_TRY(rw_op(w, t, op, "deslice", name, in, n_in, attrs, n_attrs, dtype, 0, NULL, out));
    rw_make_sequence(t->g, *out);
    return OT_OK;
}

ot_status rw_sequences_start(rw_region *w, ot_id *seq)
{
    for (uint32_t v = 0; v < w->r->n_values; v++) {
        seq[v] = OT_NONE;
        if (!w->r->values[v].is_output) continue;
        const ot_value x = w->g->values[w->r->values[v].value];
        ot_attr type = ot_mk_int("dtype", x.dtype);
        OT_TRY(rw_sequence_op(w, &w->top, "SequenceEmpty", x.name, NULL, 0, &type, 1, x.dtype, &seq[v]));
    }
    return OT_OK;
}

/* Hand the carried values to the Loop node and make it; carried: [n] region values with their sequences before the loop. */
static ot_status close_loop(rw_loop *l, const uint32_t *carried, const ot_id *results, uint32_t n, ot_id *seq)
{
    rw_region *w = l->w;
    ot_arena *a = w->g->model->arena;
    ot_graph *body = l->body.g;
    ot_id *outs = OT_NEW_N(a, ot_id, n + 1u), *in = OT_NEW_N(w->arena, ot_id, n + 2u), *made = OT_NEW_N(w->arena, ot_id, n + 1u);
    if (!outs || !in || !made) return rw_nomem(w);
    outs[0] = l->inputs[1];
    OT_TRY(rw_loop_own(l, "continue", &outs[0]));
    int64_t trips = l->b->n_tiles;
    OT_TRY(rw_const_i64(w, &w->top, "trips", &trips, 1, true, &in[0]));
    OT_TRY(rw_const_true(w, &w->top, &in[1]));
    for (uint32_t k = 0; k < n; k++) {
        const ot_value x = w->g->values[w->r->values[carried[k]].value];
        outs[k + 1] = results[k];
        body->values[results[k]].is_output = true;
        in[k + 2] = seq[carried[k]];
        OT_TRY(rw_value(w, &w->top, "while", x.name, x.dtype, 0, NULL, &made[k]));
        rw_make_sequence(w->g, made[k]);
        seq[carried[k]] = made[k];
    }
    body->inputs = ot_memdup(a, l->inputs, l->n_inputs * sizeof *l->inputs);
    if (!body->inputs) return rw_nomem(w);
    body->n_inputs = l->n_inputs;
    body->outputs = outs;
    body->n_outputs = n + 1;
    OT_TRY(ot_topo_sort(body));
    ot_confirm(body, body->props | OT_P_SHAPES);
    ot_attr at = ot_mk_graph("body", body);
    const char *name = rw_name(w, "while", NULL);
    if (!name) return rw_nomem(w);
    return ot_node_new(w->g, "Loop", "", name, in, n + 2, made, n, &at, 1) == OT_NONE ? rw_nomem(w) : OT_OK;
}

static ot_status write_run(rw_region *w, ot_tile_run run, ot_id *seq)
{
    rw_block b = {.first = {run.first}, .count = {run.count, 1, 1}, .n_tiles = run.count, .looped = true};
    const ot_tile_windows *win[OT_DIMS_MAX] = {&w->tiles->dims[0].exact[run.first]};
    rw_loop l;
    rw_chain c;
    uint32_t n = 0;
    uint32_t *carried = OT_NEW_N(w->arena, uint32_t, w->r->n_values + 1u);
    ot_id *results = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u);
    ot_id *before = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u);
    if (!carried || !results || !before) return rw_nomem(w);
    if (rw_no_piece(w, win)) return OT_OK;
    OT_TRY(rw_loop_open(&l, w, &b, true));
    OT_TRY(rw_chain_plan(&c, w, &l.body, win));
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        if (!rw_has_piece(&c, v)) continue;
        const ot_value x = w->g->values[w->r->values[v].value];
        OT_TRY(rw_loop_input(&l, x.name, x.dtype, &before[n]));
        rw_make_sequence(l.body.g, before[n]);
        carried[n++] = v;
    }
    OT_TRY(rw_loop_bring(&l, &c));
    OT_TRY(rw_chain_emit(&c));
    for (uint32_t k = 0; k < n; k++) {
        const ot_value x = w->g->values[w->r->values[carried[k]].value];
        ot_id in[2] = {before[k], OT_NONE};
        OT_TRY(rw_window_piece(&l, carried[k], c.val[carried[k]], &in[1]));
        OT_TRY(rw_sequence_op(w, &l.body, "SequenceInsert", x.name, in, 2, NULL, 0, x.dtype, &results[k]));
    }
    return n ? close_loop(&l, carried, results, n, seq) : OT_OK;
}

ot_status rw_sequences_join(rw_region *w, const ot_id *seq)
{
    for (uint32_t v = 0; v < w->r->n_values; v++) {
        if (seq[v] == OT_NONE) continue;
        ot_id out = w->r->values[v].value;
        const ot_value x = w->g->values[out];
        ot_id joined = x.is_output ? out : OT_NONE;
        ot_attr axis = ot_mk_int("axis", w->r->values[v].axis[0]);
        if (!x.is_output) OT_TRY(rw_value(w, &w->top, "deslice", x.name, x.dtype, x.rank, x.dims, &joined));
        OT_TRY(rw_op(w, &w->top, "ConcatFromSequence", "deslice", x.name, &seq[v], 1, &axis, 1, x.dtype, x.rank, x.dims, &joined));
        /* States the shape, which nobody can infer behind a sequence: what follows stays static, and a wrong join is an error. */
        if (joined != out) OT_TRY(rw_reshape(w, &w->top, "deslice", x.name, joined, x.rank, x.dims, &out));
    }
    return OT_OK;
}

/* requires rw_sequence_fits and prepared windows. Fails: OT_E_NOMEM. */
ot_status rw_sequence(rw_region *w)
{
    ot_id *seq = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u);
    if (!seq) return rw_nomem(w);
    OT_TRY(rw_sequences_start(w, seq));
    for (uint32_t k = 0; k < w->tiles->dims[0].n_runs; k++) OT_TRY(write_run(w, w->tiles->dims[0].runs[k], seq));
    return rw_sequences_join(w, seq);
}
