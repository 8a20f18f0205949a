/* A block of alike tiles as one loop.
 *
 *     top     x, table --> Scan { body } --> [T, tile...] --Reshape [--Transpose--Reshape]--> piece
 *             of y
 *     body    row --> Slice(x) --> conv --> relu --> crop --> result
 *
 * The carrier is Scan where there is one, because runtimes let its body write into the stacked
 * result directly; Loop (trip count, condition, rows by Gather, scan outputs) is for older
 * opsets and form loop. Results are stacked along a new first axis; when the cut axis is
 * outermost in memory a Reshape alone restores the value. Otherwise a Scan stacks at the cut
 * axis, which leaves a Reshape; with several counted dimensions, or in a Loop, a Transpose
 * brings the counts next to the axes that they cut.
 */
#include "transform_internal.h"

#define LOOP_STATELESS 11 /* before that opset, Loop must carry a value */

/* ---- opening and closing the body ---- */

ot_status rw_loop_input(rw_loop *l, const char *name, ot_dtype dtype, ot_id *out)
{
    OT_TRY(rw_value(l->w, &l->body, "body", name, (ot_tensor_type){dtype, 0, NULL}, out));
    l->body.g->values[*out].is_input = true;
    return OT_PUSH(l->w->arena, l->inputs, l->n_inputs, l->cap_inputs, *out) ? OT_OK
                                                                             : rw_nomem(l->w);
}

ot_status rw_loop_open(rw_loop *l, rw_region *w, const rw_block *b, bool sequence)
{
    *l = (rw_loop){.w = w,
                   .b = b,
                   .scan = !sequence && rw_use_scan(w),
                   .inside = sequence || w->r->form == OT_FORM_PEELED,
                   .iter = OT_NONE};
    const char *name = rw_name(w, "body", NULL);
    ot_graph *g = name ? ot_graph_new(w->g->model, w->g, name) : NULL;
    l->tables = ot_map_new(w->arena);
    if (!g || !l->tables) return rw_nomem(w);
    OT_TRY(rw_target_init(w, &l->body, g, "body"));
    if (l->scan) return OT_OK;
    ot_id state;
    OT_TRY(rw_loop_input(l, "iteration", OT_I64, &l->iter));
    OT_TRY(rw_loop_input(l, "go_on", OT_BOOL, &state));
    return w->g->model->opset < LOOP_STATELESS ? rw_loop_input(l, "carried", OT_I64, &state)
                                               : OT_OK;
}

/* A value that a body may hand out: made by a node of the body and handed out once. In form loop
 * by an Identity: OpenCV's dnn module stacks what a convolution made in blocks of channels as it
 * lies, and takes it for plain (tests/runtimes/opencv_loop_blocks.py). */
ot_status rw_loop_own(rw_loop *l, const char *name, ot_id *v)
{
    const ot_value x = l->body.g->values[*v];
    ot_id out = OT_NONE;
    bool plain = l->w->r->form == OT_FORM_LOOP && !l->scan && x.rank > 0;
    if (x.producer == OT_NONE || x.is_output || plain)
        OT_TRY(rw_op(l->w, &l->body, "body",
                     &(ot_node_def){.op = "Identity", .name = name, .in = {v, 1}}, ot_type_of(&x),
                     &out));
    else
        out = *v;
    l->body.g->values[out].is_output = true;
    *v = out;
    return OT_OK;
}

ot_status rw_body_finish(rw_region *w, ot_graph *body, ot_id_list in, ot_id_list out)
{
    ot_arena *a = w->g->model->arena;
    body->inputs = ot_memdup(a, in.at, in.n * sizeof *in.at);
    body->outputs = ot_memdup(a, out.at, out.n * sizeof *out.at);
    if (!body->inputs || !body->outputs) return rw_nomem(w);
    body->n_inputs = in.n;
    body->n_outputs = out.n;
    OT_TRY(ot_topo_sort(body));
    ot_confirm(body, body->props | OT_P_SHAPES);
    return OT_OK;
}

static ot_status finish_body(rw_loop *l, const ot_id *outs, uint32_t n)
{
    return rw_body_finish(l->w, l->body.g, (ot_id_list){l->inputs, l->n_inputs},
                          (ot_id_list){outs, n});
}

ot_status rw_loop_write(rw_loop *l, const ot_id *in, uint32_t n_carried, ot_id *outs,
                        const ot_id *made, uint32_t n)
{
    rw_region *w = l->w;
    OT_TRY(finish_body(l, outs, n + 1));
    const ot_attr body = ot_mk_graph("body", l->body.g);
    const char *name = rw_name(w, "while", NULL);
    if (!name) return rw_nomem(w);
    return ot_node_new(w->g, &(ot_node_def){.op = "Loop",
                                            .name = name,
                                            .in = {in, n_carried + 2},
                                            .out = {made, n},
                                            .attrs = {&body, 1}}) == OT_NONE
               ? rw_nomem(w)
               : OT_OK;
}

/* Finish the body and make the node; results: [n] body values, stacked: [n] values of the top
 * graph, at: [n] where a Scan puts the count among their axes. */
static ot_status close_body(rw_loop *l, const ot_id *results, const ot_id *stacked,
                            const int64_t *at, uint32_t n)
{
    rw_region *w = l->w;
    ot_arena *a = w->g->model->arena;
    /* go_on, and what a Loop must carry */
    uint32_t own = l->scan ? 0 : l->n_inputs - 1, carried = own > 1;
    ot_id *outs = OT_NEW_N(a, ot_id, own + n), *made = OT_NEW_N(w->arena, ot_id, carried + n);
    if (!outs || !made) return rw_nomem(w);
    for (uint32_t k = 0; k < own; k++) {
        outs[k] = l->inputs[k + 1];
        OT_TRY(rw_loop_own(l, k ? "carry" : "continue", &outs[k]));
    }
    memcpy(outs + own, results, n * sizeof *results);
    OT_TRY(finish_body(l, outs, own + n));
    if (l->nest.n > 0) return rw_nest_write(l, stacked[0]);
    ot_attr attrs[3] = {ot_mk_graph("body", l->body.g), ot_mk_int("num_scan_inputs", l->n_scan)};
    uint32_t n_attrs = l->scan ? 2 : 1;
    for (uint32_t k = 0; k < n && n_attrs == 2; k++)
        if (at[k] != 0) attrs[n_attrs++] = ot_mk_ints(a, "scan_output_axes", at, n);
    if (n_attrs == 3 && attrs[2].kind != OT_ATTR_INTS) return rw_nomem(w);
    ot_id loop_in[3] = {OT_NONE, OT_NONE, OT_NONE};
    int64_t trips = l->b->n_tiles;
    if (!l->scan) {
        OT_TRY(rw_const_i64(w, &w->top, "trips", &trips, 1, true, &loop_in[0]));
        OT_TRY(rw_const_true(w, &w->top, &loop_in[1]));
        loop_in[2] = loop_in[0];
        if (carried)
            OT_TRY(rw_value(w, &w->top, "while", "carried", (ot_tensor_type){OT_I64, 0, NULL},
                            &made[0]));
    }
    memcpy(made + carried, stacked, n * sizeof *stacked);
    const char *name = rw_name(w, l->scan ? "scan" : "while", NULL);
    if (!name) return rw_nomem(w);
    ot_id id = l->scan ? ot_node_new(w->g, &(ot_node_def){.op = "Scan",
                                                          .name = name,
                                                          .in = {l->scan_in, l->n_scan},
                                                          .out = {made, n},
                                                          .attrs = {attrs, n_attrs}})
                       : ot_node_new(w->g, &(ot_node_def){.op = "Loop",
                                                          .name = name,
                                                          .in = {loop_in, carried ? 3 : 2},
                                                          .out = {made, carried + n},
                                                          .attrs = {attrs, 1}});
    return id == OT_NONE ? rw_nomem(w) : OT_OK;
}

/* ---- reassembly ---- */

/* Output v is stacked in place: its first axis is cut to extent 1, so the stack of [rest] is the
 * value itself. Only worth a Reshape in the body where the one behind the loop would copy: at a
 * graph output. Not of a Loop: some concatenate its results. */
static bool stacks_itself(const rw_loop *l, uint32_t v, const int64_t *tile, bool final)
{
    const ot_rvalue *rv = &l->w->r->values[v];
    const ot_value *x = &l->w->g->values[rv->value];
    uint32_t counts = 0, dim = 0;
    for (uint32_t d = 0; d < l->w->r->n_dims; d++)
        if (l->b->count[d] > 1) {
            counts++;
            dim = d;
        }
    return l->scan && final && x->is_output && x->rank > 1 && counts == 1 && rv->axis[dim] == 0 &&
           tile[0] == 1;
}

/* Results are stacked along a new first axis, whatever that costs. */
static bool keeps_to_first(const rw_loop *l)
{
    return !l->scan || l->w->r->form == OT_FORM_PRESCAN;
}

/* Where a Scan had best put the count: at the cut axis, which saves a Transpose; first when that
 * is as good. */
static int64_t stack_axis(const rw_loop *l, uint32_t v, const int64_t *tile)
{
    ot_reassembly layout;
    int64_t axis = 0;
    uint32_t counts = 0;
    for (uint32_t d = 0; d < l->w->r->n_dims; d++)
        if (l->b->count[d] > 1) {
            counts++;
            axis = l->w->r->values[v].axis[d];
        }
    if (keeps_to_first(l) || counts != 1 ||
        ot_reassemble_layout(l->w->g, l->w->r, l->b->count, v, tile, &layout))
        return 0;
    return axis;
}

/* Turn the stack of tiles into the block's piece of v. */
static ot_status reassemble(rw_loop *l, uint32_t v, const int64_t *tile, int64_t stack_at,
                            ot_id stacked, ot_id *out)
{
    rw_region *w = l->w;
    const ot_value x = w->g->values[w->r->values[v].value];
    ot_reassembly at;
    int64_t moved[OT_RANK_MAX];
    ot_id src = stacked, turned = OT_NONE, parts = OT_NONE;
    if (!ot_reassemble_layout(w->g, w->r, l->b->count, v, tile, &at) && stack_at == 0) {
        /* Always there behind a Loop: who concatenates results along their first axis, instead
         * of stacking them, gets the same. */
        if (keeps_to_first(l))
            OT_TRY(rw_value(w, &w->top, "deslice", x.name,
                            (ot_tensor_type){x.dtype, (int32_t)at.n, at.split}, &parts));
        OT_TRY(rw_reshape(w, &w->top, "deslice", x.name, stacked, (int32_t)at.n, at.split, &parts));
        for (uint32_t k = 0; k < at.n; k++) moved[k] = at.split[at.perm[k]];
        ot_attr perm = ot_mk_ints(w->g->model->arena, "perm", at.perm, at.n);
        if (perm.kind != OT_ATTR_INTS) return rw_nomem(w);
        OT_TRY(rw_op(w, &w->top, "deslice",
                     &(ot_node_def){
                         .op = "Transpose", .name = x.name, .in = {&parts, 1}, .attrs = {&perm, 1}},
                     (ot_tensor_type){x.dtype, (int32_t)at.n, moved}, &turned));
        src = turned;
    }
    return rw_reshape(w, &w->top, "deslice", x.name, src, x.rank, at.whole, out);
}

/* ---- the block ---- */

ot_status rw_loop_bring(rw_loop *l, rw_chain *c)
{
    for (uint32_t v = 0; v < l->w->r->n_inputs; v++) {
        if (!c->needed[v]) continue;
        if (l->scan && ot_scan_sliced(l->w->tiles, l->b->first, l->b->count, v))
            OT_TRY(rw_scan_input(l, v, &c->val[v]));
        else if (l->scan && l->w->r->form == OT_FORM_PRESCAN)
            OT_TRY(rw_gathered_input(l, v, &c->val[v]));
        else
            OT_TRY(rw_window_input(l, v, &c->val[v]));
    }
    if (!l->scan || l->n_scan) return OT_OK;
    /* A Scan needs an input to count by. */
    int64_t *rows = OT_NEW_N(l->w->arena, int64_t, l->b->n_tiles);
    ot_id row;
    return rows ? rw_table(l, "iterations", rows, 1, &row) : rw_nomem(l->w);
}

/* The tile of x, without its first axes, of these dims, as the body's result. The shape is read
 * from a table, so that no runtime knows it beforehand: the stack then comes after what the body
 * works in. A stack that comes first fills a region of the arena, the next one is as large, and
 * of two such free regions the second run takes the other one (docs/allocator-simulation.md). */
static ot_status flatten(rw_loop *l, const ot_value *x, uint32_t first, const int64_t *dims,
                         ot_id *tile)
{
    rw_region *w = l->w;
    const uint32_t n = (uint32_t)x->rank - first, tiles = (uint32_t)l->b->n_tiles;
    int64_t *rows = OT_NEW_N(w->arena, int64_t, (size_t)tiles * n);
    ot_id in[2] = {*tile, OT_NONE}, flat = OT_NONE;
    if (!rows) return rw_nomem(w);
    for (uint32_t k = 0; k < tiles * n; k++) rows[k] = dims[k % n];
    OT_TRY(rw_table(l, "shapes", rows, n, &in[1]));
    OT_TRY(rw_read_sequence(l, &l->body, x, &in[1]));
    OT_TRY(rw_op(w, &l->body, "body",
                 &(ot_node_def){.op = "Reshape", .name = x->name, .in = {in, 2}},
                 (ot_tensor_type){x->dtype, (int32_t)n, dims}, &flat));
    l->body.g->values[flat].is_unstated = true;
    *tile = flat;
    return OT_OK;
}

/* What the loop makes for output v: the body's result and the stacked value in the top graph. */
static ot_status make_result(rw_loop *l, rw_chain *c, uint32_t v, bool final, ot_id *result,
                             ot_id *stacked, int64_t *at)
{
    rw_region *w = l->w;
    const ot_id id = w->r->values[v].value;
    const ot_value x = w->g->values[id];
    int64_t dims[OT_RANK_MAX];
    dims[0] = l->b->n_tiles;
    ot_piece_dims(w->g, w->r, c->win, v, dims + 1);
    if (rw_is_part(w, v)) {
        *at = 0;
        *result = c->val[v];
        OT_TRY(rw_part(w, &l->body, c->win, v, 0, result));
        OT_TRY(rw_value(w, &w->top, "stack", x.name, (ot_tensor_type){x.dtype, x.rank + 1, dims},
                        stacked));
        return rw_loop_own(l, x.name, result);
    }
    *at = stack_axis(l, v, dims + 1);
    OT_TRY(rw_window_piece(l, v, c->val[v], result));
    if (l->nest.n > 0 || stacks_itself(l, v, dims + 1, final)) {
        const uint32_t first = l->nest.n > 0 ? l->nest.n : 1;
        if (l->nest.rest <= 1) OT_TRY(flatten(l, &x, first, dims + 1 + first, result));
        *stacked = id;
    } else {
        for (int64_t k = 0; k < *at; k++) dims[k] = dims[k + 1];
        dims[*at] = l->b->n_tiles;
        OT_TRY(rw_value(w, &w->top, "stack", x.name, (ot_tensor_type){x.dtype, x.rank + 1, dims},
                        stacked));
    }
    return rw_loop_own(l, x.name, result);
}

/* The one result of the chain, if there is one only, may be written by Scans in Scans. */
static void nest(rw_loop *l, const rw_chain *c)
{
    int64_t tile[OT_RANK_MAX];
    uint32_t n = 0, only = 0;
    for (uint32_t v = l->w->r->n_inputs; v < l->w->r->n_values; v++) {
        if (!rw_has_piece(c, v)) continue;
        only = v;
        n++;
    }
    if (n != 1 || rw_is_part(l->w, only)) return;
    ot_piece_dims(l->w->g, l->w->r, c->win, only, tile);
    if (!stacks_itself(l, only, tile, true)) rw_nest_find(l, only, tile, &l->nest);
}

ot_status rw_loop_block(rw_region *w, rw_block *b, bool final)
{
    rw_loop l;
    rw_chain c;
    const ot_tile_windows *win[OT_DIMS_MAX];
    uint32_t n = 0;
    ot_id *results = OT_NEW_N(w->arena, ot_id, w->r->n_values),
          *stacked = OT_NEW_N(w->arena, ot_id, w->r->n_values);
    int64_t *at = OT_NEW_N(w->arena, int64_t, w->r->n_values);
    if (!results || !stacked || !at) return rw_nomem(w);
    for (uint32_t d = 0; d < w->r->n_dims; d++) win[d] = &w->tiles->dims[d].tiles[b->first[d]];
    for (uint32_t v = 0; v < w->r->n_values; v++) b->out[v] = OT_NONE;
    if (rw_no_piece(w, win)) return OT_OK;
    OT_TRY(rw_loop_open(&l, w, b, false));
    OT_TRY(rw_chain_plan(&c, w, &l.body, win));
    OT_TRY(rw_loop_bring(&l, &c));
    OT_TRY(rw_chain_emit(&c));
    if (final) nest(&l, &c);
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++)
        if (rw_has_piece(&c, v)) {
            OT_TRY(make_result(&l, &c, v, final, &results[n], &stacked[n], &at[n]));
            n++;
        }
    OT_TRY(close_body(&l, results, stacked, at, n));
    n = 0;
    for (uint32_t v = 0; v < w->r->n_values; v++) {
        int64_t tile[OT_RANK_MAX];
        b->out[v] = OT_NONE;
        if (!rw_has_piece(&c, v)) continue;
        int64_t axis = at[n];
        if (rw_is_part(w, v)) {
            b->out[v] = stacked[n++];
            continue;
        }
        ot_id from = stacked[n++], to = final ? w->r->values[v].value : OT_NONE;
        ot_piece_dims(w->g, w->r, win, v, tile);
        if (from != to) OT_TRY(reassemble(&l, v, tile, axis, from, &to));
        b->out[v] = to;
    }
    return OT_OK;
}
