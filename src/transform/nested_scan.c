/* Results that tiles of several axes write where they belong.
 *
 * A Scan writes what its body makes into a slice along the first axis of its result, and only
 * there. A result [1, C, H, W], cut along C and H, would come as a stack [C x tiles, ...] that a
 * Reshape makes the result of; at an output of the graph that is a copy. Scans in Scans do without:
 * each writes into the slice that the one around it is at.
 *
 *     x [1, C, ...] --> Scan, 1 step    y [1, C, H, W]
 *                         Scan, C steps      y[0]
 *                           Scan, tiles of H; Reshape --> y[0, c]
 *
 * Only axes that are cut to extent 1, or have it, can be written so: the first ones. What is left
 * of the tiles is stacked in the innermost slice's step, and copied from there.
 *
 * Each slice's shape is read from a table, so that no runtime knows it beforehand (loop.c), and the
 * length of an empty sequence is added to it: ONNX Runtime keeps no second block of memory for the
 * tensors of a body that reads a sequence (docs/allocator-simulation.md).
 */
#include "transform_internal.h"

/* Bytes of a result that is worth it: of less, no more is saved than two ways of the search differ
 * by. */
#define LEAST     (INT64_C(8) << 20)
#define SEQUENCES 11 /* opset */

/* Axis a of the result is cut to extent 1, by the first dimension from *dim on that counts. */
static bool is_cut_to_one(const rw_loop *l, uint32_t v, const int64_t *tile, uint32_t a,
                          uint32_t *dim)
{
    while (*dim < l->w->r->n_dims && l->b->count[*dim] <= 1) ++*dim;
    return *dim < l->w->r->n_dims && l->w->r->values[v].axis[*dim] == (int8_t)a && tile[a] == 1;
}

/* The body captures nothing that a runtime would want packed: it is, but one level down only. */
static bool captures_little(const rw_loop *l)
{
    const ot_graph *body = l->body.g;
    for (uint32_t k = 0; k < body->n_values; k++) {
        const ot_value *v = &body->values[k];
        int64_t bytes;
        if (v->is_outer && v->is_const && (!ot_value_bytes(v, &bytes) || bytes >= OT_OUTER_WEIGHT))
            return false;
    }
    return true;
}

void rw_nest_find(const rw_loop *l, uint32_t v, const int64_t *tile, rw_nest *out)
{
    const ot_value *x = &l->w->g->values[l->w->r->values[v].value];
    ot_reassembly layout;
    int64_t bytes, done = 1;
    uint32_t dim = 0, n = 0;
    *out = (rw_nest){0};
    if (!l->w->nests_scans || !l->scan || l->w->r->form != OT_FORM_SCAN || !x->is_output ||
        !ot_value_bytes(x, &bytes) || bytes < LEAST || !captures_little(l) ||
        !ot_reassemble_layout(l->w->g, l->w->r, l->b->count, v, tile, &layout))
        return;
    for (uint32_t a = 0; a + 1 < (uint32_t)x->rank; a++) {
        const bool cut = is_cut_to_one(l, v, tile, a, &dim);
        if (!cut && x->dims[a] != 1) break;
        out->count[n++] = cut ? l->b->count[dim] : 1;
        if (!cut) continue;
        done *= l->b->count[dim++];
        out->n = n; /* an axis of extent 1 needs no Scan where none follows that is cut */
    }
    out->rest = (int64_t)l->b->n_tiles / done;
    for (uint32_t k = 0; k < l->n_scan && out->n > 0; k++) { /* each is to have an axis a level */
        const ot_value *s = &l->w->g->values[l->scan_in[k]];
        if (!ot_value_is_static(s) || (uint32_t)s->rank + out->n > OT_RANK_MAX) out->n = 0;
    }
}

/* The scanned value as the outermost Scan takes it: its count of tiles becomes those of levels. */
static ot_status take_levels(rw_loop *l, const int64_t *count, uint32_t levels, ot_id *scanned)
{
    rw_region *w = l->w;
    const ot_value x = w->g->values[*scanned];
    const uint32_t rank = (uint32_t)x.rank - 1 + levels;
    int64_t dims[OT_RANK_MAX];
    ot_id out = OT_NONE;
    memcpy(dims, count, levels * sizeof *dims);
    memcpy(dims + levels, x.dims + 1, ((size_t)x.rank - 1) * sizeof *dims);
    if (x.init && x.init->data) {
        ot_tensor *t = ot_memdup(w->g->model->arena, x.init, sizeof *t);
        if (!t) return rw_nomem(w);
        t->rank = rank;
        t->dims = ot_memdup(w->g->model->arena, dims, rank * sizeof *dims);
        if (!t->dims) return rw_nomem(w);
        OT_TRY(rw_const(w, &w->top, "levels", t, &out));
    } else {
        OT_TRY(rw_reshape(w, &w->top, "levels", NULL, *scanned, (int32_t)rank, dims, &out));
    }
    *scanned = out;
    return OT_OK;
}

ot_status rw_read_sequence(rw_loop *l, rw_target *t, const ot_value *x, ot_id *shape)
{
    rw_region *w = l->w;
    const ot_value s = t->g->values[*shape];
    const ot_attr type = ot_mk_int("dtype", OT_I64);
    ot_id in[2] = {*shape, OT_NONE}, sequence = OT_NONE;
    int64_t bytes;
    if (!w->nests_scans || w->g->model->opset < SEQUENCES || !ot_value_bytes(x, &bytes) ||
        bytes < LEAST)
        return OT_OK;
    OT_TRY(rw_sequence_op(w, &w->top, &(ot_node_def){.op = "SequenceEmpty", .attrs = {&type, 1}},
                          OT_I64, &sequence));
    OT_TRY(rw_capture(w, t, sequence, &sequence));
    rw_make_sequence(t->g, sequence);
    OT_TRY(rw_op(w, t, "body", &(ot_node_def){.op = "SequenceLength", .in = {&sequence, 1}},
                 (ot_tensor_type){OT_I64, 0, NULL}, &in[1]));
    *shape = OT_NONE;
    return rw_op(w, t, "body", &(ot_node_def){.op = "Add", .in = {in, 2}},
                 (ot_tensor_type){OT_I64, s.rank, s.dims}, shape);
}

/* ---- one Scan around another ---- */

typedef struct nesting {
    rw_loop *l;
    const rw_nest *nest;
    const ot_value *x;         /* the result */
    ot_id *scanned;            /* [n_scanned] what the outermost Scan cuts */
    uint32_t n_scanned, n_all; /* of the innermost body; of the others, which read shapes besides */
} nesting;

/* What the Scan of level `at` reads: in t, whose steps are those of the Scan around it. */
static ot_status read_inputs(nesting *x, rw_target *t, uint32_t at, ot_id *in)
{
    rw_region *w = x->l->w;
    for (uint32_t k = 0; k < x->n_all; k++) {
        const ot_value s = w->g->values[x->scanned[k]];
        in[k] = x->scanned[k];
        if (at == 0) continue;
        OT_TRY(rw_value(w, t, "body", "levels",
                        (ot_tensor_type){s.dtype, s.rank - (int32_t)at, s.dims + at}, &in[k]));
        t->g->values[in[k]].is_input = true;
    }
    return OT_OK;
}

/* The innermost tiles, stacked, become the slice of the result: their shape is the last input. */
static ot_status join_rest(nesting *x, rw_target *t, ot_id stacked, ot_id shape, ot_id *out)
{
    const uint32_t n = x->nest->n;
    ot_id in[2] = {stacked, shape};
    OT_TRY(rw_read_sequence(x->l, t, x->x, &in[1]));
    return rw_op(x->l->w, t, "deslice",
                 &(ot_node_def){.op = "Reshape", .name = x->x->name, .in = {in, 2}},
                 (ot_tensor_type){x->x->dtype, x->x->rank - (int32_t)n, x->x->dims + n}, out);
}

/* The Scan of level `at` with this body, in t; *out: what it makes, or what to write into. */
static ot_status write_scan(nesting *x, rw_target *t, uint32_t at, ot_graph *body, const ot_id *in,
                            ot_id *out)
{
    rw_region *w = x->l->w;
    const bool is_rest = at == x->nest->n;
    const ot_value *tile = &x->l->body.g->values[x->l->body.g->outputs[0]];
    const uint32_t n = is_rest ? x->n_scanned : x->n_all;
    int64_t dims[OT_RANK_MAX];
    ot_id made = *out;
    dims[0] = x->nest->rest;
    if (is_rest) memcpy(dims + 1, tile->dims, (size_t)tile->rank * sizeof *dims);
    if (made == OT_NONE)
        OT_TRY(rw_value(
            w, t, "stack", x->x->name,
            is_rest ? (ot_tensor_type){tile->dtype, tile->rank + 1, dims}
                    : (ot_tensor_type){x->x->dtype, x->x->rank - (int32_t)at, x->x->dims + at},
            &made));
    const ot_attr attrs[2] = {ot_mk_graph("body", body), ot_mk_int("num_scan_inputs", n)};
    const char *name = rw_name(w, "scan", NULL);
    body->parent = t->g;
    if (!name || ot_node_new(t->g, &(ot_node_def){.op = "Scan",
                                                  .name = name,
                                                  .in = {in, n},
                                                  .out = {&made, 1},
                                                  .attrs = {attrs, 2}}) == OT_NONE)
        return rw_nomem(w);
    *out = made;
    return is_rest ? join_rest(x, t, made, in[n], (*out = OT_NONE, out)) : OT_OK;
}

/* t reads by name what the body in it does. */
static ot_status pass_captured(rw_region *w, rw_target *t, const ot_graph *body)
{
    for (uint32_t k = 0; k < body->n_values; k++) {
        ot_id out;
        if (!body->values[k].is_outer) continue;
        OT_TRY(rw_capture(w, t, ot_value_find(w->g, body->values[k].name), &out));
        if (body->values[k].is_sequence) rw_make_sequence(t->g, out);
    }
    return OT_OK;
}

static ot_status write_level(nesting *x, uint32_t at, ot_graph **body)
{
    rw_region *w = x->l->w;
    rw_target t;
    const char *name = rw_name(w, "body", NULL);
    ot_graph *g = name ? ot_graph_new(w->g->model, w->g, name) : NULL;
    ot_id *in = OT_NEW_N(w->arena, ot_id, x->n_all), *out = OT_NEW_N(w->g->model->arena, ot_id, 1);
    if (!g || !in || !out) return rw_nomem(w);
    *out = OT_NONE;
    OT_TRY(rw_target_init(w, &t, g, "body"));
    OT_TRY(read_inputs(x, &t, at, in));
    OT_TRY(pass_captured(w, &t, *body));
    OT_TRY(write_scan(x, &t, at, *body, in, out));
    g->values[*out].is_output = g->values[*out].is_unstated = true;
    *body = g;
    return rw_body_finish(w, g, (ot_id_list){in, x->n_all}, (ot_id_list){out, 1});
}

ot_status rw_nest_write(rw_loop *l, ot_id to)
{
    rw_region *w = l->w;
    const rw_nest *nest = &l->nest;
    const ot_value result = w->g->values[to];
    const uint32_t levels = nest->n + (nest->rest > 1), n = (uint32_t)result.rank - nest->n,
                   slices = l->b->n_tiles / (uint32_t)nest->rest;
    nesting x = {.l = l, .nest = nest, .x = &result, .n_scanned = l->n_scan, .n_all = l->n_scan};
    int64_t count[OT_RANK_MAX + 1];
    ot_graph *body = l->body.g;
    memcpy(count, nest->count, nest->n * sizeof *count);
    count[nest->n] = nest->rest;
    if (!(x.scanned = OT_NEW_N(w->arena, ot_id, l->n_scan + 1u))) return rw_nomem(w);
    for (uint32_t k = 0; k < l->n_scan; k++) {
        x.scanned[k] = l->scan_in[k];
        OT_TRY(take_levels(l, count, levels, &x.scanned[k]));
    }
    if (nest->rest > 1) {
        int64_t *rows = OT_NEW_N(w->arena, int64_t, (size_t)slices * n);
        if (!rows) return rw_nomem(w);
        for (uint32_t k = 0; k < slices * n; k++) rows[k] = result.dims[nest->n + k % n];
        OT_TRY(rw_const_rows(w, &w->top, "shapes", rows, slices, n, &x.scanned[x.n_all]));
        OT_TRY(take_levels(l, count, nest->n, &x.scanned[x.n_all++]));
    }
    for (uint32_t at = levels - 1; at > 0; at--) OT_TRY(write_level(&x, at, &body));
    return write_scan(&x, &w->top, 0, body, x.scanned, &to);
}
