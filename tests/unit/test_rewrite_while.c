/* The engine's form (Alloc, While, Slice, Deslice) as the rewriter writes it: classes of tiles,
 * the places that they write, and the rules of the form, broken one by one. */
#include "rewrite_rig.h"

static ot_node *tile_node(const ot_graph *g, const char *op, uint32_t skip)
{
    for (ot_id i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].dead && ot_is_tile_op(&g->nodes[i], op) && skip-- == 0)
            return &g->nodes[i];
    return NULL;
}

static const int64_t *ints_of(const ot_node *n, const char *name, size_t *count)
{
    const int64_t *x = ot_attr_ints(n, name, count);
    assert_non_null(x);
    return x;
}

/* Count every place [h][w] of the output that the class's Deslice writes; returns its iterations.
 */
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

/* Classes first, interior, last, chained through one buffer; together they write every place once.
 */
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
        const ot_node *loop = tile_node(g, "While", k),
                      *before = k ? tile_node(g, "While", k - 1) : tile_node(g, "Alloc", 0);
        const ot_graph *body = ot_attr_find(loop, "body")->g;
        assert_int_equal(loop->in[0], before->out[0]);
        assert_int_equal(loop->version, 1);
        tiles += count_places(loop, hits);
        assert_int_equal(count(body, "Conv"), 2);
        for (ot_id v = 0; v < body->n_values; v++)
            assert_true(ot_value_is_static(&body->values[v]));
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

static ot_attr *attr_of(ot_node *n, const char *name)
{
    return (ot_attr *)(uintptr_t)ot_attr_find(n, name);
}

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

/* The form's rules are looked at again, after one of them was broken; rule: what is said of
 * number k; NULL: nothing was. */
static void check_broken(rig *x, uint32_t k, const char *rule)
{
    ot_graph *g = x->m->graph;
    g->props &= ~(unsigned)OT_P_USES;
    for (ot_id i = 0; i < g->n_nodes; i++) {
        const ot_attr *body = ot_attr_find(&g->nodes[i], "body");
        if (body && body->g) body->g->props &= ~(unsigned)OT_P_USES;
    }
    assert_int_equal(ot_check_tile_ops(g, NULL), rule ? OT_E_INPUT : OT_OK);
    if (rule && !strstr(x->diag.message, rule))
        fail_msg("rule %u: '%s' does not say '%s'", k, x->diag.message, rule);
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
        check_broken(&x, k, rule);
        done(&x);
    }
}

/* Break rule `which` of buffers that are carried; the last While runs once, the one before it
 * takes the steps that are alike. */
static const char *break_carried(ot_graph *g, uint32_t which)
{
    uint32_t last = 0;
    while (tile_node(g, "While", last + 1)) last++;
    ot_node *loop = tile_node(g, "While", last - 1);
    ot_graph *body = attr_of(loop, "body")->g;
    ot_node *put = NULL;
    for (uint32_t k = 0; tile_node(body, "Deslice", k); k++)
        if (ot_attr_find(tile_node(body, "Deslice", k), "again"))
            put = tile_node(body, "Deslice", k);
    switch (which) {
    case 0: attr_of(loop, "carried")->i = -1; return "'carried' counts more";
    case 1: attr_of(loop, "carried")->i = loop->n_in + 1; return "'carried' counts more";
    /* somebody takes windows of it */
    case 2: attr_of(loop, "carried")->i = 0; return "through Deslice alone";
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
        /* a tile each, and one in front where the lag is more than a tile */
        assert_true(steps == 6 || steps == 7);
        rule = break_carried(g, k);
        check_broken(&x, k, rule);
        done(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_while),
        cmocka_unit_test(test_while_kinds),
        cmocka_unit_test(test_while_malformed),
        cmocka_unit_test(test_while_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
