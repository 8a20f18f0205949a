/* Windows of tiles (src/region/windows.c) and the tiled forms (src/rewrite/).
 *
 * Windows are compared with brute force: for every output element of a chain of 1-D dependencies, the
 * set of input elements it reaches is marked one by one from the operators' definitions. The forms are
 * checked for structure here (verified graph, what was written, what was removed, same text twice);
 * that they compute the same numbers is tests/oracle/forms.py's job, which runs them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rewrite/rewrite_internal.h"
#include "hand_plan.h"
#include "stingy.h"

/* ---- models ---- */

/* One operator along the cut axis, as the oracle understands it. */
typedef struct step {
    char kind; /* 'c' convolution or pool, 'r' pointwise */
    int64_t k, s, p;
} step;

typedef struct rig {
    ot_diag diag;
    ot_model *m;
    ot_arena *a;
    ot_region r;
    const step *links;
    uint32_t n_links;
    int64_t extents[8]; /* of the cut axis: [0] the input, [n_links] the output */
} rig;

/* Memory does not run out here. */
static bool form_legal(const ot_graph *g, const ot_region *r, ot_form f, ot_why *why)
{
    bool legal;
    assert_int_equal(ot_form_legal(g, r, f, 0, &legal, why), OT_OK);
    return legal;
}

static ot_id add_value(ot_graph *g, const char *name, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const int64_t dims[4] = {n, c, h, w};
    ot_id v = ot_value_new(g, name, OT_F32, 4, dims);
    assert_int_not_equal(v, OT_NONE);
    return v;
}

static ot_id add_weight(ot_graph *g, ot_arena *a, const char *name, int64_t k)
{
    const int64_t dims[4] = {2, 2, k, 1};
    float *data = OT_NEW_N(a, float, (size_t)(4 * k));
    for (int64_t i = 0; i < 4 * k; i++) data[i] = (float)i;
    return ot_const_f32(g, name, data, 4, dims);
}

static void add_conv(rig *x, const step *l, uint32_t i, ot_id in, ot_id out)
{
    ot_arena *a = x->m->arena;
    const int64_t k[2] = {l->k, 1}, s[2] = {l->s, 1}, p[4] = {l->p, 0, l->p, 0};
    ot_attr at[3] = {ot_mk_ints(a, "kernel_shape", k, 2), ot_mk_ints(a, "strides", s, 2), ot_mk_ints(a, "pads", p, 4)};
    ot_id ops[2] = {in, add_weight(x->m->graph, a, ot_format(a, "w%u", i), l->k)};
    assert_int_not_equal(ot_node_new(x->m->graph, "Conv", "", ot_format(a, "conv%u", i), ops, 2, &out, 1, at, 3), OT_NONE);
}

static void set_io(ot_graph *g, ot_id in, ot_id out)
{
    ot_arena *a = g->model->arena;
    g->inputs = ot_memdup(a, &in, sizeof in);
    g->outputs = ot_memdup(a, &out, sizeof out);
    g->n_inputs = g->n_outputs = 1;
    g->values[in].is_input = g->values[out].is_output = true;
    assert_int_equal(ot_topo_sort(g), OT_OK);
    assert_int_equal(ot_infer_shapes(g, NULL, 0), OT_OK);
}

/* x [1,2,extent,3] -> links -> y */
static void build(rig *x, int32_t opset, int64_t extent, const step *links, uint32_t n)
{
    *x = (rig){.links = links, .n_links = n};
    x->m = ot_model_new(&x->diag);
    x->a = ot_arena_new();
    x->m->opset = opset;
    x->m->ir_version = 8;
    ot_graph *g = x->m->graph;
    ot_id in = add_value(g, "x", 1, 2, extent, 3), first = in;
    x->extents[0] = extent;
    for (uint32_t i = 0; i < n; i++) {
        extent = links[i].kind == 'c' ? (extent + 2 * links[i].p - links[i].k) / links[i].s + 1 : extent;
        x->extents[i + 1] = extent;
        ot_id out = add_value(g, i + 1 == n ? "y" : ot_format(x->m->arena, "v%u", i), 1, 2, extent, 3);
        if (links[i].kind == 'c')
            add_conv(x, &links[i], i, in, out);
        else
            assert_int_not_equal(ot_node_new(g, "Relu", "", "", &in, 1, &out, 1, NULL, 0), OT_NONE);
        in = out;
    }
    set_io(g, first, in);
}

static void done(rig *x)
{
    ot_model_free(x->m);
    ot_arena_free(x->a);
}

/* Region over the whole model, cut along H (and W for two dimensions). */
static void plan(rig *x, uint32_t n_dims, uint32_t t0, uint32_t t1, ot_form form)
{
    const uint32_t axes[2] = {2, 3}, tiles[2] = {t0, t1};
    ot_why why;
    uint32_t n = hand_plan(x->m->graph, x->m->graph->outputs[0], n_dims, axes, tiles, form, x->a, &x->r, &why);
    assert_int_equal(n, x->n_links);
}

static const step CHAIN[] = {{'c', 3, 1, 1}, {'r', 0, 0, 0}, {'c', 5, 2, 2}, {'c', 3, 1, 1}};
static const step SAME[] = {{'c', 3, 1, 1}, {'r', 0, 0, 0}, {'c', 3, 1, 1}};
static const step PLAIN[] = {{'r', 0, 0, 0}, {'r', 0, 0, 0}};

/* ---- windows against brute force ---- */

/* Mark what element o of the last extent reaches on the extents above it. */
static void reach(const rig *x, uint32_t level, int64_t o, bool hit[8][256])
{
    hit[level][o] = true;
    if (level == 0) return;
    const step *l = &x->links[level - 1];
    if (l->kind == 'r') {
        reach(x, level - 1, o, hit);
        return;
    }
    for (int64_t j = 0; j < l->k; j++) {
        int64_t i = o * l->s - l->p + j;
        if (i >= 0 && i < x->extents[level - 1]) reach(x, level - 1, i, hit);
    }
}

/* Level of region value v: 0 the input, then the links' outputs (the plan numbers values in that order). */
static void check_tile(const rig *x, uint32_t k, const ot_tile_windows *w, bool exact)
{
    bool hit[8][256] = {{false}};
    const ot_dim *d = &x->r.dims[0];
    int64_t lo = k * d->tile, hi = ot_min(lo + d->tile, d->extent);
    for (int64_t o = lo; o < hi; o++) reach(x, x->n_links, o, hit);
    assert_int_equal(w->piece[x->n_links].lo, lo);
    assert_int_equal(w->piece[x->n_links].hi, hi);
    for (uint32_t v = 0; v <= x->n_links; v++) {
        int64_t first = -1, last = -1;
        for (int64_t i = 0; i < x->extents[v]; i++)
            if (hit[v][i]) {
                if (first < 0) first = i;
                last = i;
            }
        if (exact) {
            assert_int_equal(w->made[v].lo, first);
            assert_int_equal(w->made[v].hi, last + 1);
        } else {
            assert_true(w->made[v].lo >= 0 && w->made[v].lo <= first && w->made[v].hi > last);
            assert_true(w->made[v].hi <= x->extents[v]);
        }
    }
}

static void test_exact_windows(void **state)
{
    (void)state;
    for (uint32_t tiles = 2; tiles <= 9; tiles++) {
        rig x;
        ot_tile_windows w;
        ot_why why;
        build(&x, 13, 53, CHAIN, 4);
        plan(&x, 1, tiles, 0, OT_FORM_UNROLLED);
        assert_int_equal(ot_tile_windows_new(x.m->graph, &x.r, x.a, &w), OT_OK);
        for (uint32_t k = 0; k < x.r.dims[0].n_tiles; k++) {
            assert_true(ot_tile_windows_get(x.m->graph, &x.r, 0, k, &w, &why));
            check_tile(&x, k, &w, true);
        }
        done(&x);
    }
}

static void test_clamped_windows(void **state)
{
    (void)state;
    for (uint32_t tiles = 3; tiles <= 8; tiles++) {
        rig x;
        ot_tile_windows w;
        ot_why why = OT_WHY_NONE;
        int64_t len[8] = {0};
        build(&x, 13, 96, CHAIN, 4);
        plan(&x, 1, tiles, 0, OT_FORM_WINDOW);
        assert_int_equal(ot_tile_windows_new(x.m->graph, &x.r, x.a, &w), OT_OK);
        for (uint32_t k = 0; k < x.r.dims[0].n_tiles; k++) {
            if (!ot_tile_windows_clamped(x.m->graph, &x.r, 0, k, &w, &why)) fail_msg("%s", ot_reason_sentence(why));
            check_tile(&x, k, &w, false);
            for (uint32_t v = 0; v <= x.n_links; v++) {
                if (k == 0) len[v] = w.made[v].hi - w.made[v].lo;
                assert_int_equal(w.made[v].hi - w.made[v].lo, len[v]);
            }
            for (uint32_t i = 0; i < x.n_links; i++) /* the operators keep their own border */
                assert_int_equal(w.ops[i].pad_lo, x.links[i].kind == 'c' ? x.links[i].p : 0);
        }
        assert_int_equal(len[0], 2 * len[x.n_links]); /* stride 2: equal windows stay in proportion */
        done(&x);
    }
}

static void test_clamped_refusals(void **state)
{
    (void)state;
    const step valid[] = {{'c', 3, 1, 0}, {'c', 3, 1, 0}};
    ot_tile_windows w;
    ot_why why = OT_WHY_NONE;
    rig x;
    build(&x, 13, 64, valid, 2); /* extents shrink by 2: no unit */
    plan(&x, 1, 4, 0, OT_FORM_WINDOW);
    assert_int_equal(ot_tile_windows_new(x.m->graph, &x.r, x.a, &w), OT_OK);
    assert_false(ot_tile_windows_clamped(x.m->graph, &x.r, 0, 0, &w, &why));
    assert_int_equal(why, OT_WHY_NO_COMMON_UNIT);
    done(&x);
    build(&x, 13, 12, CHAIN, 4); /* 6 outputs in 2 tiles: the halo leaves nothing out */
    plan(&x, 1, 2, 0, OT_FORM_WINDOW);
    assert_int_equal(ot_tile_windows_new(x.m->graph, &x.r, x.a, &w), OT_OK);
    assert_false(ot_tile_windows_clamped(x.m->graph, &x.r, 0, 0, &w, &why));
    assert_non_null(strstr(ot_reason_sentence(why), "whole axis"));
    done(&x);
}

/* ---- forms ---- */

static uint32_t count(const ot_graph *g, const char *op)
{
    uint32_t n = 0;
    for (ot_id i = 0; i < g->n_nodes; i++) n += !g->nodes[i].dead && !strcmp(g->nodes[i].op_type, op);
    return n;
}

/* Body of the node number `skip` of that operator, in the order they were made. */
static const ot_graph *body_number(const ot_graph *g, const char *op, uint32_t skip)
{
    for (ot_id i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].dead && !strcmp(g->nodes[i].op_type, op) && skip-- == 0) {
            const ot_attr *at = ot_attr_find(&g->nodes[i], "body");
            assert_non_null(at);
            return at->g;
        }
    return NULL;
}

static const ot_graph *body_of(const ot_graph *g, const char *op) { return body_number(g, op, 0); }

/* Rewrite the planned region; the graph must verify, its interface must be as before, all names must say tile/r7/. */
static void rewrite(rig *x, bool force_loop)
{
    ot_graph *g = x->m->graph;
    ot_id in = g->inputs[0], out = g->outputs[0], before = g->n_nodes;
    ot_plan p = {.arena = x->a, .regions = &x->r, .n_regions = 1};
    ot_why why = OT_WHY_NONE;
    x->r.id = 7;
    if (!form_legal(g, &x->r, x->r.form, &why)) fail_msg("%s", ot_reason_sentence(why));
    assert_int_equal(g->n_nodes, before); /* asking changes nothing */
    if (rw_rewrite(g, g, &p, force_loop) != OT_OK) fail_msg("%s", x->diag.message);
    if (ot_verify(g) != OT_OK) fail_msg("%s", x->diag.message);
    assert_true((g->props & (OT_P_ORDER | OT_P_USES)) == (OT_P_ORDER | OT_P_USES));
    assert_int_equal(g->inputs[0], in);
    assert_int_equal(g->outputs[0], out);
    assert_true(g->values[out].producer >= before);
    for (ot_id i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].dead) assert_int_equal(strncmp(g->nodes[i].name, "tile/r7/", 8), 0);
}

static void test_unrolled(void **state)
{
    (void)state;
    rig x;
    build(&x, 13, 24, SAME, 3);
    plan(&x, 1, 4, 0, OT_FORM_UNROLLED);
    rewrite(&x, false);
    const ot_graph *g = x.m->graph;
    assert_int_equal(count(g, "Conv"), 8);
    assert_int_equal(count(g, "Relu"), 4);
    assert_int_equal(count(g, "Slice"), 4); /* the inputs; every piece is exactly what the last conv makes */
    assert_int_equal(count(g, "Concat"), 1);
    assert_false(g->values[ot_value_find(g, "w0")].removed); /* shared by all tiles */
    done(&x);
}

/* Three runs of alike tiles (first, interior, last), each in a body of its own: the border tiles with their own pads,
 * interior tiles without. From opset 13 on they hand a sequence along, before that each is a Scan and Concat joins them. */
static void check_peeled(int32_t opset, const char *op)
{
    rig x;
    build(&x, opset, 24, SAME, 3);
    plan(&x, 1, 6, 0, OT_FORM_PEELED);
    rewrite(&x, false);
    const ot_graph *g = x.m->graph, *body = body_number(g, op, 1);
    bool sequence = opset >= 13;
    assert_int_equal(count(g, op), 3);
    assert_int_equal(count(g, "Conv"), 0);
    assert_int_equal(count(g, "Slice"), 0);
    assert_int_equal(count(g, "Concat"), !sequence);
    assert_int_equal(count(g, "SequenceEmpty"), sequence);
    assert_int_equal(count(g, "ConcatFromSequence"), sequence);
    assert_int_equal(count(body, "SequenceInsert"), sequence);
    assert_int_equal(count(body_number(g, op, 0), "Conv") + count(body_number(g, op, 2), "Conv"), 4);
    assert_non_null(body);
    assert_int_equal(count(body, "Conv"), 2);
    for (ot_id i = 0; i < body->n_nodes; i++) {
        if (body->nodes[i].op != OT_OP_Conv) continue;
        size_t n;
        const int64_t *pads = ot_attr_ints(&body->nodes[i], "pads", &n);
        assert_true(n == 0 || (pads[0] == 0 && pads[2] == 0));
        /* weights are constants of the body, not captured */
        assert_non_null(body->values[body->nodes[i].in[1]].init);
    }
    for (ot_id v = 0; v < body->n_values; v++)
        if (body->values[v].is_outer) assert_string_equal(body->values[v].name, "x");
    done(&x);
}

static void test_peeled(void **state)
{
    (void)state;
    check_peeled(12, "Scan");
    check_peeled(13, "Loop");
    check_peeled(17, "Loop");
}

/* Tiles in two dimensions: a body that moves along one of them takes its window out of the outer tensor at once, by one Slice of both axes;
 * cut one after the other, the axis that stays would be copied over the whole of the other one in every iteration. */
static void test_peeled_in_two(void **state)
{
    (void)state;
    for (int32_t opset = 12; opset <= 17; opset += 5) {
        rig x;
        uint32_t bodies = 0;
        build(&x, opset, 24, SAME, 3);
        plan(&x, 2, 6, 3, OT_FORM_PEELED);
        rewrite(&x, false);
        const ot_graph *g = x.m->graph;
        for (ot_id i = 0; i < g->n_nodes; i++) {
            const ot_attr *at = g->nodes[i].dead ? NULL : ot_attr_find(&g->nodes[i], "body");
            if (!at) continue;
            uint32_t slices = 0;
            for (ot_id k = 0; k < at->g->n_nodes; k++) {
                const ot_node *n = &at->g->nodes[k];
                if (n->op != OT_OP_Slice || !at->g->values[n->in[0]].is_outer) continue;
                assert_int_equal(at->g->values[n->in[3]].init->dims[0], 2); /* axes */
                slices++;
            }
            assert_int_equal(slices, 1);
            bodies++;
        }
        assert_true(bodies > 0);
        done(&x);
    }
}

/* One body for all tiles; the weights move into it and leave the outer graph. */
static void test_window(void **state)
{
    (void)state;
    rig x;
    build(&x, 13, 24, SAME, 3);
    plan(&x, 2, 6, 3, OT_FORM_WINDOW);
    rewrite(&x, false);
    const ot_graph *g = x.m->graph, *body = body_of(g, "Scan");
    assert_int_equal(count(g, "Scan"), 1);
    assert_int_equal(count(g, "Conv") + count(g, "Concat"), 0);
    assert_int_equal(count(g, "Transpose"), 1);
    assert_int_equal(count(body, "Conv"), 2);
    assert_true(g->values[ot_value_find(g, "w0")].removed);
    for (ot_id v = 0; v < body->n_values; v++)
        if (body->values[v].producer != OT_NONE && body->nodes[body->values[v].producer].op != OT_OP_Slice)
            assert_true(ot_value_is_static(&body->values[v]));
    done(&x);
}

/* Old opsets: Loop with a carried value, Gather instead of Slice with inputs. */
static void test_old_opset(void **state)
{
    (void)state;
    rig x;
    build(&x, 8, 24, SAME, 3);
    plan(&x, 1, 6, 0, OT_FORM_WINDOW);
    rewrite(&x, false);
    const ot_graph *g = x.m->graph, *body = body_of(g, "Loop");
    assert_int_equal(count(g, "Scan"), 0);
    assert_non_null(body);
    assert_int_equal(body->n_inputs, 3);
    assert_int_equal(body->n_outputs, 3);
    assert_int_equal(count(body, "Slice"), 0);
    assert_int_equal(count(body, "Gather"), 4); /* rows of two tables, and two windows */
    done(&x);
    build(&x, 13, 24, SAME, 3);
    plan(&x, 1, 6, 0, OT_FORM_WINDOW);
    rewrite(&x, true);
    body = body_of(x.m->graph, "Loop");
    assert_non_null(body);
    assert_int_equal(body->n_inputs, 2);
    done(&x);
}

/* x [1,2,24,3] has its H inside C in memory: not in place. With one channel axis of extent 1 it is. */
static void test_scan(void **state)
{
    (void)state;
    rig x;
    ot_why why = OT_WHY_NONE;
    build(&x, 13, 24, PLAIN, 2);
    plan(&x, 1, 6, 0, OT_FORM_SCAN);
    assert_false(form_legal(x.m->graph, &x.r, OT_FORM_SCAN, &why));
    assert_non_null(strstr(ot_reason_sentence(why), "outermost"));
    const uint32_t axis = 1, tiles = 2;
    assert_int_equal(hand_plan(x.m->graph, x.m->graph->outputs[0], 1, &axis, &tiles, OT_FORM_SCAN, x.a, &x.r, &why), 2);
    rewrite(&x, false);
    const ot_graph *g = x.m->graph, *body = body_of(g, "Scan");
    assert_int_equal(count(g, "Slice") + count(g, "Transpose") + count(g, "Concat"), 0);
    assert_int_equal(count(body, "Slice") + count(body, "Reshape"), 0);
    assert_int_equal(count(body, "Relu"), 2);
    done(&x);
    build(&x, 8, 24, PLAIN, 2);
    assert_int_equal(hand_plan(x.m->graph, x.m->graph->outputs[0], 1, &axis, &tiles, OT_FORM_SCAN, x.a, &x.r, &why), 2);
    assert_false(form_legal(x.m->graph, &x.r, OT_FORM_SCAN, &why));
    assert_non_null(strstr(ot_reason_sentence(why), "opset 9"));
    done(&x);
}

/* ---- the engine's form ---- */

static ot_node *tile_node(const ot_graph *g, const char *op, uint32_t skip)
{
    for (ot_id i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].dead && ot_is_tile_op(&g->nodes[i], op) && skip-- == 0) return &g->nodes[i];
    return NULL;
}

static const int64_t *ints_of(const ot_node *n, const char *name, size_t *count)
{
    const int64_t *x = ot_attr_ints(n, name, count);
    assert_non_null(x);
    return x;
}

/* Count every place [h][w] of the output that the class's Deslice writes; returns its iterations. */
static int64_t count_places(const ot_node *loop, int hits[64][8])
{
    const ot_graph *body = ot_attr_find(loop, "body")->g;
    const ot_node *put = tile_node(body, "Deslice", 0);
    size_t n_axes, n;
    assert_non_null(put);
    assert_null(tile_node(body, "Deslice", 1));
    const int64_t *axes = ints_of(put, "axes", &n_axes), *starts = ints_of(put, "starts", &n);
    const int64_t *tile = body->values[put->in[0]].dims;
    int64_t times = ot_attr_int(loop, "count", 0);
    assert_int_equal(n, n_axes * (size_t)times);
    for (int64_t i = 0; i < times; i++) {
        int64_t at[4] = {0};
        for (size_t k = 0; k < n_axes; k++) at[axes[k]] = starts[(size_t)i * n_axes + k];
        for (int64_t h = 0; h < tile[2]; h++)
            for (int64_t v = 0; v < tile[3]; v++) hits[at[2] + h][at[3] + v]++;
    }
    return times;
}

/* Classes first, interior, last, chained through one buffer; together they write every place once. */
static void check_while(uint32_t n_dims, uint32_t n_w, uint32_t n_tiles)
{
    rig x;
    int hits[64][8] = {{0}};
    int64_t tiles = 0;
    build(&x, 13, 24, SAME, 3);
    plan(&x, n_dims, 6, n_w, OT_FORM_WHILE);
    rewrite(&x, false);
    const ot_graph *g = x.m->graph;
    assert_int_equal(count(g, "Alloc"), 1);
    assert_int_equal(count(g, "While"), 3);
    assert_int_equal(count(g, "Conv") + count(g, "Concat") + count(g, "Reshape"), 0);
    assert_int_equal(ot_check_tile_ops(x.m->graph, NULL), OT_OK);
    for (uint32_t k = 0; k < 3; k++) {
        const ot_node *loop = tile_node(g, "While", k), *before = k ? tile_node(g, "While", k - 1) : tile_node(g, "Alloc", 0);
        const ot_graph *body = ot_attr_find(loop, "body")->g;
        assert_int_equal(loop->in[0], before->out[0]);
        assert_int_equal(loop->version, 1);
        tiles += count_places(loop, hits);
        assert_int_equal(count(body, "Conv"), 2);
        for (ot_id v = 0; v < body->n_values; v++) assert_true(ot_value_is_static(&body->values[v]));
    }
    assert_int_equal(tiles, n_tiles);
    for (int h = 0; h < 24; h++)
        for (int w = 0; w < 3; w++) assert_int_equal(hits[h][w], 1);
    assert_false(g->values[ot_value_find(g, "w0")].removed); /* captured by every class */
    done(&x);
}

static void test_while(void **state)
{
    (void)state;
    check_while(1, 0, 6);
    check_while(2, 3, 18);
}

/* A border that reaches over 32 tiles on either side: 65 kinds of tiles. */
static void test_while_kinds(void **state)
{
    (void)state;
    static const step far[] = {{'c', 33, 1, 16}, {'c', 33, 1, 16}};
    ot_why why = OT_WHY_NONE;
    rig x;
    build(&x, 13, 128, far, 2);
    plan(&x, 1, 128, 0, OT_FORM_WHILE);
    assert_false(form_legal(x.m->graph, &x.r, OT_FORM_WHILE, &why));
    assert_non_null(strstr(ot_reason_sentence(why), "kinds"));
    plan(&x, 1, 64, 0, OT_FORM_WHILE);
    rewrite(&x, false);
    assert_int_equal(count(x.m->graph, "While"), 33);
    done(&x);
}

/* Set element k of a list of integers. */
static void spoil(const ot_node *n, const char *name, size_t k, int64_t v)
{
    size_t count;
    ((int64_t *)(uintptr_t)ints_of(n, name, &count))[k] = v;
    assert_true(k < count);
}

static ot_attr *attr_of(ot_node *n, const char *name) { return (ot_attr *)(uintptr_t)ot_attr_find(n, name); }

/* Break rule `which` of the form; NULL: there is no such rule. */
static const char *break_rule(ot_graph *g, uint32_t which)
{
    ot_node *alloc = tile_node(g, "Alloc", 0), *loop = tile_node(g, "While", 1);
    ot_graph *body = attr_of(loop, "body")->g;
    ot_node *cut = tile_node(body, "Slice", 0), *put = tile_node(body, "Deslice", 0);
    switch (which) {
    case 0: spoil(alloc, "shape", 2, -1); return "impossible extent";
    case 1: attr_of(alloc, "dtype")->i = OT_STRING; return "'dtype'";
    case 2: attr_of(loop, "count")->i = 0; return "'count'";
    case 3: attr_of(loop, "count")->i = 5; return "one number per iteration";
    case 4: attr_of(loop, "body")->kind = OT_ATTR_OPAQUE; return "needs a graph 'body'";
    case 5: spoil(cut, "starts", 1, -1); return "leaves its tensor";
    case 6: spoil(put, "starts", 3, 21); return "leaves its tensor";
    case 7: spoil(cut, "axes", 0, 4); return "'axes'";
    case 8: attr_of(put, "starts")->n--; return "one number per iteration";
    case 9: attr_of(cut, "sizes")->n = 0; return "one number per axis";
    case 10: put->in[1] = put->in[0]; return "through Deslice alone";
    case 11: cut->in[1] = cut->in[0]; return "the iteration";
    case 12: body->n_outputs = 0; return "hand out every buffer";
    case 13: cut->op_type = "Alloc"; return "Slice and Deslice";
    case 14: alloc->op_type = "Slice"; return "Alloc and While only";
    case 15: loop->captured[0] = loop->in[0]; return "reads a buffer that it writes";
    default: return NULL;
    }
}

static void test_while_malformed(void **state)
{
    (void)state;
    const char *rule = "";
    for (uint32_t k = 0; rule; k++) {
        rig x;
        build(&x, 13, 24, SAME, 3);
        plan(&x, 1, 6, 0, OT_FORM_WHILE);
        rewrite(&x, false);
        rule = break_rule(x.m->graph, k);
        x.m->graph->props &= ~(unsigned)OT_P_USES;
        for (ot_id i = 0; i < x.m->graph->n_nodes; i++) {
            const ot_attr *body = ot_attr_find(&x.m->graph->nodes[i], "body");
            if (body && body->g) body->g->props &= ~(unsigned)OT_P_USES;
        }
        assert_int_equal(ot_check_tile_ops(x.m->graph, NULL), rule ? OT_E_INPUT : OT_OK);
        if (rule && !strstr(x.diag.message, rule)) fail_msg("rule %u: '%s' does not say '%s'", k, x.diag.message, rule);
        done(&x);
    }
}

/* Break rule `which` of buffers that are carried; the last While runs once, the one before it takes the steps that are alike. */
static const char *break_carried(ot_graph *g, uint32_t which)
{
    uint32_t last = 0;
    while (tile_node(g, "While", last + 1)) last++;
    ot_node *loop = tile_node(g, "While", last - 1);
    ot_graph *body = attr_of(loop, "body")->g;
    ot_node *put = NULL;
    for (uint32_t k = 0; tile_node(body, "Deslice", k); k++)
        if (ot_attr_find(tile_node(body, "Deslice", k), "again")) put = tile_node(body, "Deslice", k);
    switch (which) {
    case 0: attr_of(loop, "carried")->i = -1; return "'carried' counts more";
    case 1: attr_of(loop, "carried")->i = loop->n_in + 1; return "'carried' counts more";
    case 2: attr_of(loop, "carried")->i = 0; return "through Deslice alone"; /* somebody takes windows of it */
    case 3: attr_of(put, "again")->i = 0; return "'again' belongs";
    case 4: attr_of(tile_node(g, "While", last), "carried")->i = 0; return "";
    default: return NULL;
    }
}

/* Rows go from one While to the next in buffers that they carry. */
static void test_while_stream(void **state)
{
    (void)state;
    const char *rule = "";
    for (uint32_t k = 0; rule; k++) {
        rig x;
        build(&x, 13, 24, SAME, 3);
        plan(&x, 1, 6, 0, OT_FORM_STREAM);
        x.r.in_classes = true;
        rewrite(&x, false);
        ot_graph *g = x.m->graph;
        uint32_t steps = 0;
        for (uint32_t n = 0; tile_node(g, "While", n); n++) {
            ot_node *loop = tile_node(g, "While", n);
            steps += (uint32_t)ot_attr_int(loop, "count", 0);
            assert_true(ot_attr_int(loop, "carried", 0) >= 1);
        }
        assert_true(steps == 6 || steps == 7); /* a tile each, and one in front where the lag is more than a tile */
        rule = break_carried(g, k);
        g->props &= ~(unsigned)OT_P_USES;
        for (ot_id i = 0; i < g->n_nodes; i++) {
            const ot_attr *body = ot_attr_find(&g->nodes[i], "body");
            if (body && body->g) body->g->props &= ~(unsigned)OT_P_USES;
        }
        assert_int_equal(ot_check_tile_ops(g, NULL), rule ? OT_E_INPUT : OT_OK);
        if (rule && !strstr(x.diag.message, rule)) fail_msg("rule %u: '%s' does not say '%s'", k, x.diag.message, rule);
        done(&x);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    rig x;
    ot_why why = OT_WHY_NONE;
    build(&x, 12, 24, SAME, 3); /* from opset 13 on, peeled tiles need not be alike */
    plan(&x, 1, 6, 0, OT_FORM_SCAN);
    assert_false(form_legal(x.m->graph, &x.r, OT_FORM_SCAN, &why)); /* borders differ */
    assert_non_null(strstr(ot_reason_sentence(why), "differ"));
    assert_false(form_legal(x.m->graph, &x.r, OT_FORM_NONE, &why));
    plan(&x, 1, 2, 0, OT_FORM_PEELED); /* two border tiles, nothing between */
    assert_false(form_legal(x.m->graph, &x.r, OT_FORM_PEELED, &why));
    assert_non_null(strstr(ot_reason_sentence(why), "alike"));
    ot_plan p = {.arena = x.a, .regions = &x.r, .n_regions = 1};
    assert_int_equal(ot_rewrite(x.m->graph, &p), OT_E_INPUT); /* and the rewriter says the same */
    assert_non_null(strstr(x.diag.message, "alike"));
    assert_int_equal(count(x.m->graph, "Conv"), 2); /* nothing was touched */
    done(&x);
}

static char *text_of(const ot_graph *g)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    assert_int_equal(ot_text_print(g, f), OT_OK);
    fclose(f);
    return text;
}

static void test_deterministic(void **state)
{
    (void)state;
    for (ot_form f = OT_FORM_UNROLLED; f <= OT_FORM_WHILE; f++) {
        const bool stream = f == OT_FORM_STREAM; /* along one axis */
        char *text[2];
        for (int i = 0; i < 2; i++) {
            rig x;
            build(&x, 13, 24, SAME, 3);
            plan(&x, stream ? 1 : 2, 6, 3, f);
            rewrite(&x, false);
            text[i] = text_of(x.m->graph);
            done(&x);
        }
        assert_string_equal(text[0], text[1]);
        free(text[0]);
        free(text[1]);
    }
}

/* ---- running out of memory ---- */

/* Let 0, 1, 2... blocks through: either the memory error comes back, or all is well. */
static void test_out_of_memory(void **state)
{
    (void)state;
    uint32_t ok = 0; /* a bit for each form that got through */
    for (long n = 0; n < 1000 && ok != 31; n++) {
        rig x;
        ot_why why;
        build(&x, 13, 24, SAME, 3);
        plan(&x, 2, 6, 3, (const ot_form[]){OT_FORM_PEELED, OT_FORM_WINDOW, OT_FORM_WHILE, OT_FORM_LOOP, OT_FORM_PRESCAN}[n % 5]);
        ot_plan p = {.arena = x.a, .regions = &x.r, .n_regions = 1};
        ot_set_alloc_hook(stingy);
        allowed = n;
        bool legal;
        if (ot_form_legal(x.m->graph, &x.r, x.r.form, 0, &legal, &why) != OT_OK) legal = false;
        allowed = n;
        ot_status st = ot_rewrite(x.m->graph, &p);
        allowed = 1000000;
        assert_true(st == OT_OK || st == OT_E_NOMEM);
        if (st == OT_OK && legal) ok |= 1u << n % 5;
        done(&x);
        ot_set_alloc_hook(NULL);
    }
    assert_int_equal(ok, 31);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_windows), cmocka_unit_test(test_clamped_windows), cmocka_unit_test(test_clamped_refusals),
        cmocka_unit_test(test_unrolled),      cmocka_unit_test(test_peeled),          cmocka_unit_test(test_peeled_in_two),
        cmocka_unit_test(test_window),        cmocka_unit_test(test_old_opset),       cmocka_unit_test(test_scan),
        cmocka_unit_test(test_while),         cmocka_unit_test(test_while_kinds),     cmocka_unit_test(test_while_malformed),
        cmocka_unit_test(test_while_stream),  cmocka_unit_test(test_refusals),        cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
