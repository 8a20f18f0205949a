/* Windows of tiles (src/tiling/windows.c) and the tiled forms (src/transform/).
 *
 * Windows are compared with brute force: for every output element of a chain of 1-D
 * dependencies, the set of input elements it reaches is marked one by one from the operators'
 * definitions. The forms are checked for structure here (verified graph, what was written, what
 * was removed, same text twice); that they compute the same numbers is tests/oracle/forms.py's
 * job, which runs them.
 */
#include "rewrite_rig.h"
#include "stingy.h"

static const step CHAIN[] = {{'c', 3, 1, 1}, {'r', 0, 0, 0}, {'c', 5, 2, 2}, {'c', 3, 1, 1}};
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

/* Level of region value v: 0 the input, then the links' outputs (the plan numbers values in that
 * order). */
static void check_tile(const rig *x, uint32_t k, const ot_tile_windows *w)
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
        assert_int_equal(w->made[v].lo, first);
        assert_int_equal(w->made[v].hi, last + 1);
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
            check_tile(&x, k, &w);
        }
        done(&x);
    }
}

/* ---- forms ---- */

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
    /* the inputs; every piece is exactly what the last conv makes */
    assert_int_equal(count(g, "Slice"), 4);
    assert_int_equal(count(g, "Concat"), 1);
    assert_false(g->values[ot_value_find(g, "w0")].removed); /* shared by all tiles */
    done(&x);
}

/* Three runs of alike tiles (first, interior, last), each in a body of its own: the border tiles
 * with their own pads, interior tiles without. From opset 13 on they hand a sequence along,
 * before that each is a Scan and Concat joins them. */
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
    assert_int_equal(count(body_number(g, op, 0), "Conv") + count(body_number(g, op, 2), "Conv"),
                     4);
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

/* Tiles in two dimensions: a body that moves along one of them takes its window out of the outer
 * tensor at once, by one Slice of both axes; cut one after the other, the axis that stays would
 * be copied over the whole of the other one in every iteration. */
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

/* Old opsets: Loop with a carried value, Gather instead of Slice with inputs. */
static void test_old_opset(void **state)
{
    (void)state;
    rig x;
    build(&x, 8, 24, SAME, 3);
    plan(&x, 1, 6, 0, OT_FORM_LOOP);
    rewrite(&x, false);
    const ot_graph *g = x.m->graph, *body = body_of(g, "Loop");
    assert_int_equal(count(g, "Scan"), 0);
    assert_non_null(body);
    assert_int_equal(body->n_inputs, 3);
    assert_int_equal(body->n_outputs, 3);
    assert_int_equal(count(body, "Slice"), 0);
    assert_int_equal(count(body, "Gather"), 2); /* a row of a table, and the window */
    done(&x);
    build(&x, 13, 24, SAME, 3);
    plan(&x, 1, 6, 0, OT_FORM_LOOP);
    rewrite(&x, true);
    body = body_of(x.m->graph, "Loop");
    assert_non_null(body);
    assert_int_equal(body->n_inputs, 2);
    done(&x);
}

/* x [1,2,24,3] has its H inside C in memory: not in place. With one channel axis of extent 1 it is.
 */
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
    assert_int_equal(hand_plan(x.m->graph, x.m->graph->outputs[0], 1, &axis, &tiles, OT_FORM_SCAN,
                               x.a, &x.r, &why),
                     2);
    rewrite(&x, false);
    const ot_graph *g = x.m->graph, *body = body_of(g, "Scan");
    assert_int_equal(count(g, "Slice") + count(g, "Transpose") + count(g, "Concat"), 0);
    assert_int_equal(count(body, "Slice") + count(body, "Reshape"), 0);
    assert_int_equal(count(body, "Relu"), 2);
    done(&x);
    build(&x, 8, 24, PLAIN, 2);
    assert_int_equal(hand_plan(x.m->graph, x.m->graph->outputs[0], 1, &axis, &tiles, OT_FORM_SCAN,
                               x.a, &x.r, &why),
                     2);
    assert_false(form_legal(x.m->graph, &x.r, OT_FORM_SCAN, &why));
    assert_non_null(strstr(ot_reason_sentence(why), "opset 9"));
    done(&x);
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
    /* and the rewriter says the same */
    assert_int_equal(ot_transform_tiles(x.m->graph, &p), OT_E_INPUT);
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
    for (long n = 0; n < 1000 && ok != 15; n++) {
        rig x;
        ot_why why;
        build(&x, 13, 24, SAME, 3);
        plan(
            &x, 2, 6, 3,
            (const ot_form[]){OT_FORM_PEELED, OT_FORM_WHILE, OT_FORM_LOOP, OT_FORM_PRESCAN}[n % 4]);
        ot_plan p = {.arena = x.a, .regions = &x.r, .n_regions = 1};
        ot_set_alloc_hook(stingy);
        allowed = n;
        bool legal;
        if (ot_form_legal(x.m->graph, &x.r, x.r.form, 0, &legal, &why) != OT_OK) legal = false;
        allowed = n;
        ot_status st = ot_transform_tiles(x.m->graph, &p);
        allowed = 1000000;
        assert_true(st == OT_OK || st == OT_E_NOMEM);
        if (st == OT_OK && legal) ok |= 1u << n % 4;
        done(&x);
        ot_set_alloc_hook(NULL);
    }
    assert_int_equal(ok, 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_windows), cmocka_unit_test(test_unrolled),
        cmocka_unit_test(test_peeled),        cmocka_unit_test(test_peeled_in_two),
        cmocka_unit_test(test_old_opset),     cmocka_unit_test(test_scan),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
