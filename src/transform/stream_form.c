/* A streaming region (tiling/stream.h) as Loops.
 *
 *     top    SequenceEmpty --> Loop {prologue} --+--seq---> Loop {steady} --+--seq---> Loop
 *            {epilogue} --seq--> ConcatFromSequence
 *                                                +--rows-->   | carried |   +--rows--> (captured)
 *     body   x --Slice--> conv --fresh--+--> SequenceInsert
 *            rows carried in ----Concat-+--> next conv
 *                                     `--Slice--> rows carried on
 *
 * Rows are put together for the readers that want some of both kinds, cut out of one kind for
 * the others; what is carried on is cut in the same way. The prologue makes the rows that are
 * carried first: its Loop of one iteration carries an empty tensor in, which nobody reads, and
 * the rows out, so that they go from hand to hand and are never copied or stacked. A step that
 * runs once reads what is carried to it by name.
 */
#include "transform_internal.h"

/* ---- rows in a step ---- */

static uint32_t cut_axis(const rw_region *w, uint32_t v)
{
    return (uint32_t)w->r->values[v].axis[0];
}

/* What the step made of v; empty: nothing. */
static ot_win fresh_of(const rw_chain *c, uint32_t v)
{
    return c->win[0]->ops[c->w->r->values[v].node].made;
}

/* Rows [lo, hi) of x, which holds v's rows from `base` on. */
static ot_status cut_rows(rw_chain *c, uint32_t v, ot_id x, int64_t base, int64_t lo, int64_t hi,
                          ot_id *out)
{
    const rw_cut cut = {cut_axis(c->w, v), lo - base, hi == OT_TO_END ? OT_TO_END : hi - base};
    if (x == OT_NONE) OT_BUG("a step reads rows that are not there");
    return rw_crop(c->w, c->t, x, &cut, 1, c->w->g->values[c->w->r->values[v].value].name, out);
}

ot_status rw_stream_rows(rw_chain *c, uint32_t v, int64_t lo, int64_t hi, ot_id *out)
{
    const ot_win fresh = fresh_of(c, v), kept = c->win[0]->kept[v];
    const char *name = c->w->g->values[c->w->r->values[v].value].name;
    char key[80];
    ot_id parts[2];
    if (!ot_win_empty(fresh) && lo >= fresh.lo)
        return cut_rows(c, v, c->val[v], fresh.lo, lo, hi, out);
    if (hi <= kept.hi || ot_win_empty(fresh))
        return cut_rows(c, v, c->kept[v], kept.lo, lo, ot_min(hi, kept.hi), out);
    snprintf(key, sizeof key, "rows %u;%lld,%lld", v, (long long)lo, (long long)hi);
    if ((*out = ot_map_get(c->t->crops, key)) != OT_NONE) return OT_OK;
    OT_TRY(cut_rows(c, v, c->kept[v], kept.lo, lo, kept.hi, &parts[0]));
    OT_TRY(cut_rows(c, v, c->val[v], fresh.lo, fresh.lo, hi, &parts[1]));
    OT_TRY(rw_concat(c->w, c->t, name, parts, 2, cut_axis(c->w, v), out));
    char *stays = ot_strdup(c->w->arena, key);
    return stays && ot_map_put(c->t->crops, stays, *out) ? OT_OK : rw_nomem(c->w);
}

/* ---- a run of steps ---- */

/* A run on its way. What goes through the Loop: rows of values first, then sequences. */
typedef struct run_writer {
    rw_region *w;
    const ot_tile_windows *win; /* of its first step */
    /* [n_values] rows that it hands on after that step, as the same kind of windows; NULL: none */
    const ot_win *handed;
    bool once;
    ot_id *state; /* [n_values] rows that are carried, in the region's graph; OT_NONE */
    ot_id *seq;   /* [n_values] sequences likewise */
    rw_loop l;
    rw_chain c;
    uint32_t *rows, n_rows;     /* region values whose rows are handed on */
    uint32_t *pieces, n_pieces; /* region outputs of which it makes a piece */
    ot_id *before;              /* [n_pieces] their sequences in the body */
} run_writer;

static bool is_carried(const run_writer *x, uint32_t v)
{
    return x->handed && !ot_win_empty(x->handed[v]);
}

static void dims_of_rows(const rw_region *w, uint32_t v, int64_t rows, int64_t *dims)
{
    const ot_value *x = &w->g->values[w->r->values[v].value];
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[cut_axis(w, v)] = rows;
}

/* A body input that is handed v's rows; `rows` OT_DIM_UNKNOWN: not to be read. */
static ot_status carried_input(run_writer *x, uint32_t v, int64_t rows, ot_id *out)
{
    rw_region *w = x->w;
    rw_loop *l = &x->l;
    const ot_value of = w->g->values[w->r->values[v].value];
    int64_t dims[OT_RANK_MAX];
    dims_of_rows(w, v, rows, dims);
    OT_TRY(rw_value(w, &l->body, "rows", of.name, (ot_tensor_type){of.dtype, of.rank, dims}, out));
    l->body.g->values[*out].is_input = true;
    return OT_PUSH(w->arena, l->inputs, l->n_inputs, l->cap_inputs, *out) ? OT_OK : rw_nomem(w);
}

/* Inputs of the body, and where it finds what was carried to it. */
static ot_status open_run(run_writer *x)
{
    rw_region *w = x->w;
    ot_id unread;
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        const int64_t rows = ot_win_len(x->win->kept[v]);
        if (is_carried(x, v)) x->rows[x->n_rows++] = v;
        if (x->once && rows > 0) OT_TRY(rw_capture(w, &x->l.body, x->state[v], &x->c.kept[v]));
        if (is_carried(x, v))
            OT_TRY(carried_input(x, v, x->once ? OT_DIM_UNKNOWN : rows,
                                 x->once ? &unread : &x->c.kept[v]));
    }
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        if (!rw_has_piece(&x->c, v)) continue;
        const ot_value of = w->g->values[w->r->values[v].value];
        OT_TRY(rw_loop_input(&x->l, of.name, of.dtype, &x->before[x->n_pieces]));
        rw_make_sequence(x->l.body.g, x->before[x->n_pieces]);
        x->pieces[x->n_pieces++] = v;
    }
    return OT_OK;
}

ot_status rw_no_rows(rw_region *w, uint32_t v, ot_id *out)
{
    ot_arena *a = w->g->model->arena;
    const ot_value of = w->g->values[w->r->values[v].value];
    ot_tensor *t = OT_NEW(a, ot_tensor);
    int64_t *dims = OT_NEW_N(a, int64_t, (size_t)of.rank);
    if (!t || !dims) return rw_nomem(w);
    dims_of_rows(w, v, 0, dims);
    /* nobody reads it: any extent will do */
    for (int32_t k = 0; k < of.rank; k++) dims[k] = ot_max(dims[k], 0);
    *t = (ot_tensor){
        .dtype = of.dtype, .rank = (uint32_t)of.rank, .dims = dims, .data = ot_alloc(a, 1)};
    return t->data ? rw_const(w, &w->top, "no_rows", t, out) : rw_nomem(w);
}

/* Results of the body, in the order of its inputs: rows, then sequences. */
static ot_status body_results(run_writer *x, ot_id *outs)
{
    rw_region *w = x->w;
    uint32_t n = 0;
    for (uint32_t k = 0; k < x->n_rows; k++) {
        const uint32_t v = x->rows[k];
        OT_TRY(rw_stream_rows(&x->c, v, x->handed[v].lo, x->handed[v].hi, &outs[n]));
        OT_TRY(rw_loop_own(&x->l, w->g->values[w->r->values[v].value].name, &outs[n++]));
    }
    for (uint32_t k = 0; k < x->n_pieces; k++) {
        const uint32_t v = x->pieces[k];
        const ot_value of = w->g->values[w->r->values[v].value];
        const ot_id in[2] = {x->before[k], x->c.val[v]};
        OT_TRY(rw_sequence_op(
            w, &x->l.body, &(ot_node_def){.op = "SequenceInsert", .name = of.name, .in = {in, 2}},
            of.dtype, &outs[n]));
        x->l.body.g->values[outs[n++]].is_output = true;
    }
    return OT_OK;
}

/* What goes into the Loop, and what comes out of it in its place. */
static ot_status loop_operands(run_writer *x, ot_id *in, ot_id *made)
{
    rw_region *w = x->w;
    uint32_t n = 0;
    for (uint32_t k = 0; k < x->n_rows; k++, n++) {
        const uint32_t v = x->rows[k];
        const ot_value of = w->g->values[w->r->values[v].value];
        int64_t dims[OT_RANK_MAX];
        dims_of_rows(w, v, ot_win_len(x->handed[v]), dims);
        in[n] = x->state[v];
        if (x->once) OT_TRY(rw_no_rows(w, v, &in[n]));
        OT_TRY(rw_value(w, &w->top, "rows", of.name, (ot_tensor_type){of.dtype, of.rank, dims},
                        &made[n]));
        x->state[v] = made[n];
    }
    for (uint32_t k = 0; k < x->n_pieces; k++, n++) {
        const uint32_t v = x->pieces[k];
        const ot_value of = w->g->values[w->r->values[v].value];
        in[n] = x->seq[v];
        OT_TRY(
            rw_value(w, &w->top, "while", of.name, (ot_tensor_type){of.dtype, 0, NULL}, &made[n]));
        rw_make_sequence(w->g, made[n]);
        x->seq[v] = made[n];
    }
    return OT_OK;
}

/* Rows that are handed on stand at the end of the body, those that are made last first. ONNX
 * Runtime goes down from results that nobody reads, the last of the file first: so it cuts out
 * the rows of a layer before it goes on to the next one. In any other order the layers' values
 * wait for their cut (measured: 20 convolutions, steps of 8 rows, 26 MB so, 52 MB otherwise).
 * Requires ORDER, keeps it. */
ot_status rw_stream_order(rw_loop *l, const ot_id *rows, uint32_t n_rows)
{
    ot_graph *body = l->body.g;
    ot_id *order = OT_NEW_N(l->w->arena, ot_id, body->n_order + 1u);
    bool *is_last = OT_NEW_N(l->w->arena, bool, body->n_nodes + 1u);
    uint32_t n = 0;
    if (!order || !is_last) return rw_nomem(l->w);
    for (uint32_t k = 0; k < n_rows; k++) {
        const ot_value *v = &body->values[rows[k]];
        /* a leaf: any place behind the rest will do */
        if (v->producer != OT_NONE && v->n_uses == 0) is_last[v->producer] = true;
    }
    for (uint32_t k = 0; k < body->n_order; k++)
        if (!is_last[body->order[k]]) order[n++] = body->order[k];
    for (uint32_t k = body->n_order; k-- > 0;)
        if (is_last[body->order[k]]) order[n++] = body->order[k];
    memcpy(body->order, order, n * sizeof *order);
    return ot_take_order(body);
}

static ot_status close_run(run_writer *x)
{
    rw_region *w = x->w;
    rw_loop *l = &x->l;
    ot_arena *a = w->g->model->arena;
    const uint32_t n = x->n_rows + x->n_pieces;
    const int64_t trips = l->b->n_tiles;
    ot_id *outs = OT_NEW_N(a, ot_id, n + 1u), *in = OT_NEW_N(w->arena, ot_id, n + 2u),
          *made = OT_NEW_N(w->arena, ot_id, n + 1u);
    if (!outs || !in || !made) return rw_nomem(w);
    outs[0] = l->inputs[1];
    OT_TRY(rw_loop_own(l, "continue", &outs[0]));
    OT_TRY(body_results(x, outs + 1));
    OT_TRY(rw_const_i64(w, &w->top, "trips", &trips, 1, true, &in[0]));
    OT_TRY(rw_const_true(w, &w->top, &in[1]));
    OT_TRY(loop_operands(x, in + 2, made));
    OT_TRY(rw_loop_write(l, in, n, outs, made, n));
    return rw_stream_order(l, outs + 1, x->n_rows);
}

/* The windows of rows that a run hands on, seen from its first step: what the next step keeps,
 * moved by as much as the run walks. */
static ot_status handed_rows(rw_region *w, uint32_t k, const ot_win **out)
{
    const ot_dim_runs *x = &w->tiles->dims[0];
    const uint32_t first = x->runs[k].first;
    *out = NULL;
    if (first + 1 >= x->n) return OT_OK;
    ot_win *handed = OT_NEW_N(w->arena, ot_win, w->r->n_values + 1u);
    if (!handed) return rw_nomem(w);
    memcpy(handed, x->tiles[first + 1].kept, w->r->n_values * sizeof *handed);
    *out = handed;
    return OT_OK;
}

static ot_status write_run(rw_region *w, uint32_t k, ot_id *state, ot_id *seq)
{
    const ot_tile_run run = w->tiles->dims[0].runs[k];
    const rw_block b = {
        .first = {run.first}, .count = {run.count, 1, 1}, .n_tiles = run.count, .looped = true};
    const ot_tile_windows *win[OT_DIMS_MAX] = {&w->tiles->dims[0].tiles[run.first]};
    const uint32_t n = w->r->n_values + 1u;
    run_writer x = {.w = w, .win = win[0], .once = run.count == 1, .state = state, .seq = seq};
    OT_TRY(handed_rows(w, k, &x.handed));
    OT_TRY(rw_loop_open(&x.l, w, &b, true));
    OT_TRY(rw_chain_plan(&x.c, w, &x.l.body, win));
    x.rows = OT_NEW_N(w->arena, uint32_t, n);
    x.pieces = OT_NEW_N(w->arena, uint32_t, n);
    x.before = OT_NEW_N(w->arena, ot_id, n);
    x.c.kept = OT_NEW_N(w->arena, ot_id, n);
    if (!x.rows || !x.pieces || !x.before || !x.c.kept) return rw_nomem(w);
    for (uint32_t v = 0; v < n; v++) x.c.kept[v] = OT_NONE;
    OT_TRY(open_run(&x));
    OT_TRY(rw_loop_bring(&x.l, &x.c));
    OT_TRY(rw_chain_emit(&x.c));
    return close_run(&x);
}

/* requires windows prepared for form stream. Fails: OT_E_NOMEM. */
ot_status rw_stream(rw_region *w)
{
    const uint32_t n = w->r->n_values + 1u;
    ot_id *seq = OT_NEW_N(w->arena, ot_id, n), *state = OT_NEW_N(w->arena, ot_id, n);
    if (!seq || !state) return rw_nomem(w);
    for (uint32_t v = 0; v < n; v++) state[v] = OT_NONE;
    OT_TRY(rw_sequences_start(w, seq));
    for (uint32_t k = 0; k < w->tiles->dims[0].n_runs; k++) OT_TRY(write_run(w, k, state, seq));
    return rw_sequences_join(w, seq);
}
