/* Chains of operators along one axis, the region over all of them, and what is written of it. */
#ifndef TEST_REWRITE_RIG_H
#define TEST_REWRITE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transform/transform_internal.h"
#include "hand_plan.h"

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
static inline bool form_legal(const ot_graph *g, const ot_region *r, ot_form f, ot_why *why)
{
    bool legal;
    assert_int_equal(ot_form_legal(g, r, f, 0, &legal, why), OT_OK);
    return legal;
}

static inline ot_id add_value(ot_graph *g, const char *name, int64_t n, int64_t c, int64_t h,
                              int64_t w)
{
    const int64_t dims[4] = {n, c, h, w};
    ot_id v = ot_value_new(g, name, OT_F32, 4, dims);
    assert_int_not_equal(v, OT_NONE);
    return v;
}

static inline ot_id add_weight(ot_graph *g, ot_arena *a, const char *name, int64_t k)
{
    const int64_t dims[4] = {2, 2, k, 1};
    float *data = OT_NEW_N(a, float, (size_t)(4 * k));
    for (int64_t i = 0; i < 4 * k; i++) data[i] = (float)i;
    return ot_const_f32(g, name, data, 4, dims);
}

static inline void add_conv(rig *x, const step *l, uint32_t i, ot_id in, ot_id out)
{
    ot_arena *a = x->m->arena;
    const int64_t k[2] = {l->k, 1}, s[2] = {l->s, 1}, p[4] = {l->p, 0, l->p, 0};
    ot_attr at[3] = {ot_mk_ints(a, "kernel_shape", k, 2), ot_mk_ints(a, "strides", s, 2),
                     ot_mk_ints(a, "pads", p, 4)};
    ot_id ops[2] = {in, add_weight(x->m->graph, a, ot_format(a, "w%u", i), l->k)};
    assert_int_not_equal(ot_node_new(x->m->graph, &(ot_node_def){.op = "Conv",
                                                                 .name = ot_format(a, "conv%u", i),
                                                                 .in = {ops, 2},
                                                                 .out = {&out, 1},
                                                                 .attrs = {at, 3}}),
                         OT_NONE);
}

static inline void set_io(ot_graph *g, ot_id in, ot_id out)
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
static inline void build(rig *x, int32_t opset, int64_t extent, const step *links, uint32_t n)
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
        extent = links[i].kind == 'c' ? (extent + 2 * links[i].p - links[i].k) / links[i].s + 1
                                      : extent;
        x->extents[i + 1] = extent;
        ot_id out = add_value(g, i + 1 == n ? "y" : ot_format(x->m->arena, "v%u", i), 1, 2, extent,
                              3);
        if (links[i].kind == 'c')
            add_conv(x, &links[i], i, in, out);
        else
            assert_int_not_equal(
                ot_node_new(
                    g, &(ot_node_def){.op = "Relu", .name = "", .in = {&in, 1}, .out = {&out, 1}}),
                OT_NONE);
        in = out;
    }
    set_io(g, first, in);
}

static inline void done(rig *x)
{
    ot_model_free(x->m);
    ot_arena_free(x->a);
}

/* Region over the whole model, cut along H (and W for two dimensions). */
static inline void plan(rig *x, uint32_t n_dims, uint32_t t0, uint32_t t1, ot_form form)
{
    const uint32_t axes[2] = {2, 3}, tiles[2] = {t0, t1};
    ot_why why;
    uint32_t n = hand_plan(x->m->graph, x->m->graph->outputs[0], n_dims, axes, tiles, form, x->a,
                           &x->r, &why);
    assert_int_equal(n, x->n_links);
}

static const step SAME[] = {{'c', 3, 1, 1}, {'r', 0, 0, 0}, {'c', 3, 1, 1}};

static inline uint32_t count(const ot_graph *g, const char *op)
{
    uint32_t n = 0;
    for (ot_id i = 0; i < g->n_nodes; i++)
        n += !g->nodes[i].dead && !strcmp(g->nodes[i].op_type, op);
    return n;
}

/* Rewrite the planned region; the graph must verify, its interface must be as before, all names
 * must say tile/r7/. */
static inline void rewrite(rig *x, bool force_loop)
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

#endif
