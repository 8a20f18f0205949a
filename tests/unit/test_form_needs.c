/* What forms ask of who runs them (src/tiling/needs.c), and what forms loop and prescan write:
 * one carrier with a trip count and a condition, bodies that capture no more than they may. That
 * the numbers are right is tests/oracle/forms.py's job.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transform/transform_internal.h"
#include "hand_plan.h"

typedef struct rig {
    ot_diag diag;
    ot_model *m;
    ot_arena *a;
    ot_region r;
} rig;

#define CONV "{kernel_shape=[3,3], pads=[1,1,1,1]}"
#define CHAIN                                       \
    "graph g {\n input %x : float32[2,4,32,24]\n"   \
    " init %w : float32[4,4,3,3] = random 1\n"      \
    " %a = Conv(%x, %w) " CONV "\n %b = Relu(%a)\n" \
    " %y = Conv(%b, %w) " CONV "\n output %y\n}\n"
/* Every tile reads k whole. */
#define READS_WHOLE                            \
    "graph g {\n input %x : float32[1,32,8]\n" \
    " input %k : float32[1,8,6]\n"             \
    " %a = Relu(%x)\n %y = MatMul(%a, %k)\n output %y\n}\n"
/* A normalisation of maps of 256 x `rows` numbers, behind what is cut. */
#define SUMMED(rows)                                                                              \
    "graph g {\n input %x : float32[1,2," #rows ",256]\n init %w : float32[2,2,1,1] = random 1\n" \
    " init %s : float32[2] = random 2\n %y = Conv(%x, %w)\n %n = InstanceNormalization(%y, %s, "  \
    "%s)\n output %n\n}\n"
/* A weight that the caller may put another in the place of is no constant. */
#define OVERRIDABLE                              \
    "graph g {\n input %x : float32[1,32,8]\n"   \
    " input init %k : float32[8,6] = random 1\n" \
    " %a = Relu(%x)\n %y = MatMul(%a, %k)\n output %y\n}\n"

#define NORMALIZES                                          \
    "graph g {\n input %x : float32[4,4,8,8]\n"             \
    " init %s : float32[4] = random 1\n"                    \
    " %a = GroupNormalization(%x, %s, %s) {num_groups=2}\n" \
    " %y = Relu(%a)\n output %y\n}\n"

/* Nine rows in tiles: the last one is padded behind and not in front. */
#define POOLS(pads)                                             \
    "graph g {\n input %x : float32[1,4,9,8]\n %a = Relu(%x)\n" \
    " %y = AveragePool(%a) {kernel_shape=[3,3], " pads "}\n output %y\n}\n"

/* The model, and its longest region that ends at that value, cut as given. */
static void build_to(rig *x, const char *graph, const char *end, int32_t opset, uint32_t n_dims,
                     const uint32_t *axes, const uint32_t *tiles, ot_form f)
{
    char text[2048];
    ot_why why;
    *x = (rig){.a = ot_arena_new()};
    snprintf(text, sizeof text, "model ir 8 opset %d\n%s", (int)opset, graph);
    if (ot_text_parse(text, strlen(text), &x->diag, &x->m) != OT_OK)
        fail_msg("%s", x->diag.message);
    assert_int_equal(ot_infer_shapes(x->m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(x->m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_true(hand_plan(x->m->graph, ot_value_find(x->m->graph, end), n_dims, axes, tiles, f,
                          x->a, &x->r, &why) > 0);
}

static void build(rig *x, const char *graph, int32_t opset, uint32_t n_dims, const uint32_t *axes,
                  const uint32_t *tiles, ot_form f)
{
    build_to(x, graph, "y", opset, n_dims, axes, tiles, f);
}

static void done(rig *x)
{
    ot_model_free(x->m);
    ot_arena_free(x->a);
}

static bool legal(const rig *x, ot_form f, unsigned cannot, ot_why *why)
{
    bool is;
    assert_int_equal(ot_form_legal(x->m->graph, &x->r, f, cannot, &is, why), OT_OK);
    return is;
}

/* ---- needs ---- */

static unsigned needs_of(const char *graph, int32_t opset, uint32_t n_dims, const uint32_t *axes,
                         const uint32_t *tiles, ot_form f)
{
    rig x;
    bool is;
    ot_why why;
    unsigned needs;
    build(&x, graph, opset, n_dims, axes, tiles, f);
    ot_form_tiles t = {.g = x.m->graph, .r = &x.r, .arena = x.a};
    assert_int_equal(ot_form_prepare(&t, f, &is, &why), OT_OK);
    if (!is) fail_msg("%s at opset %d: %s", ot_form_name(f), (int)opset, ot_reason_sentence(why));
    assert_int_equal(ot_form_needs(&t, f, &needs), OT_OK);
    /* who lacks one of them refuses the form, with a reason of its own; who lacks the rest takes it
     */
    for (unsigned bit = 1; bit < OT_NEEDS_ALL; bit <<= 1) {
        assert_int_equal(legal(&x, f, bit, &why), (needs & bit) == 0);
        if (needs & bit) assert_int_equal(why, ot_needs_refusal(bit));
        assert_int_not_equal(ot_needs_refusal(bit), OT_WHY_NONE);
    }
    assert_true(legal(&x, f, OT_NEEDS_ALL & ~needs, &why));
    done(&x);
    return needs;
}

static void forms_say_what_they_need(void **state)
{
    (void)state;
    const uint32_t rows[] = {2}, batch[] = {0}, grid[] = {2, 3}, eight[] = {8}, two[] = {2},
                   grid_tiles[] = {8, 6};
    const unsigned captures = OT_NEEDS_SCAN | OT_NEEDS_SCAN_CAPTURE;
    assert_int_equal(needs_of(CHAIN, 17, 1, rows, eight, OT_FORM_UNROLLED), 0);
    assert_int_equal(needs_of(CHAIN, 17, 1, rows, eight, OT_FORM_PEELED),
                     OT_NEEDS_LOOP | OT_NEEDS_SEQUENCE);
    assert_int_equal(needs_of(CHAIN, 17, 2, grid, grid_tiles, OT_FORM_PEELED),
                     captures | OT_NEEDS_SCAN_AXES);
    assert_int_equal(needs_of(CHAIN, 12, 1, rows, eight, OT_FORM_PEELED),
                     captures | OT_NEEDS_SCAN_AXES);
    assert_int_equal(needs_of(CHAIN, 9, 1, rows, eight, OT_FORM_PEELED),
                     captures | OT_NEEDS_SCAN_AXES | OT_NEEDS_MOVING_GATHER);
    assert_int_equal(needs_of(CHAIN, 8, 1, rows, eight, OT_FORM_PEELED),
                     OT_NEEDS_LOOP | OT_NEEDS_MOVING_GATHER);
    assert_int_equal(needs_of(CHAIN, 17, 1, batch, two, OT_FORM_SCAN), OT_NEEDS_SCAN);
    assert_int_equal(needs_of(CHAIN, 17, 1, rows, eight, OT_FORM_LOOP), OT_NEEDS_LOOP);
    assert_int_equal(needs_of(CHAIN, 9, 2, grid, grid_tiles, OT_FORM_LOOP),
                     OT_NEEDS_LOOP | OT_NEEDS_MOVING_GATHER);
    assert_int_equal(needs_of(CHAIN, 17, 1, rows, eight, OT_FORM_PRESCAN), OT_NEEDS_SCAN);
    assert_int_equal(needs_of(CHAIN, 9, 2, grid, grid_tiles, OT_FORM_PRESCAN), OT_NEEDS_SCAN);
    const uint32_t axis[] = {1};
    assert_int_equal(needs_of(READS_WHOLE, 17, 1, axis, eight, OT_FORM_SCAN), captures);
    assert_int_equal(needs_of(OVERRIDABLE, 17, 1, axis, eight, OT_FORM_SCAN), captures);
    const uint32_t four[] = {4};
    assert_int_equal(needs_of(NORMALIZES, 21, 1, batch, four, OT_FORM_UNROLLED), 0);
    assert_int_equal(needs_of(NORMALIZES, 21, 1, batch, four, OT_FORM_LOOP),
                     OT_NEEDS_LOOP | OT_NEEDS_GROUP_NORM);
    const uint32_t height[] = {2}, five[] = {5}, three[] = {3};
    const char *const counted = POOLS("count_include_pad=1, pads=[1,1,1,1]");
    assert_int_equal(needs_of(counted, 17, 1, height, three, OT_FORM_UNROLLED),
                     OT_NEEDS_UNEVEN_POOL);
    assert_int_equal(needs_of(counted, 17, 1, height, five, OT_FORM_LOOP),
                     OT_NEEDS_UNEVEN_POOL | OT_NEEDS_LOOP);
    assert_int_equal(needs_of(POOLS("count_include_pad=1, pads=[1,1,0,1]"), 17, 1, height, three,
                              OT_FORM_UNROLLED),
                     0);
    assert_int_equal(needs_of(POOLS("pads=[1,1,1,1]"), 17, 1, height, three, OT_FORM_UNROLLED), 0);
    const uint32_t strips[] = {16}, half[] = {8};
    assert_int_equal(needs_of(SUMMED(256), 17, 1, height, strips, OT_FORM_UNROLLED),
                     OT_NEEDS_LONG_SUM);
    assert_int_equal(needs_of(SUMMED(256), 17, 1, height, strips, OT_FORM_LOOP),
                     OT_NEEDS_LOOP | OT_NEEDS_LONG_SUM);
    assert_int_equal(needs_of(SUMMED(255), 17, 1, height, half, OT_FORM_UNROLLED), 0);
    assert_int_equal(ot_needs_refusal(0), OT_WHY_NONE);
    assert_int_equal(ot_needs_refusal(OT_NEEDS_UNEVEN_POOL), OT_WHY_RUNS_NO_UNEVEN_POOL);
}

/* A body that captures nothing cannot read what every tile reads whole. */
static void prescan_is_refused(void **state)
{
    (void)state;
    static const char *const graphs[] = {READS_WHOLE, OVERRIDABLE};
    const uint32_t axes[] = {1}, tiles[] = {8}, rows[] = {2};
    ot_why why;
    rig x;
    for (size_t k = 0; k < 2; k++) {
        build(&x, graphs[k], 17, 1, axes, tiles, OT_FORM_PRESCAN);
        assert_false(legal(&x, OT_FORM_PRESCAN, 0, &why));
        assert_int_equal(why, OT_WHY_READ_WHOLE);
        assert_true(legal(&x, OT_FORM_LOOP, 0, &why));
        done(&x);
    }
    build(&x, CHAIN, 8, 1, rows, tiles, OT_FORM_PRESCAN);
    assert_false(legal(&x, OT_FORM_PRESCAN, 0, &why));
    assert_int_equal(why, OT_WHY_SCAN_OPSET);
    done(&x);
}

/* ---- what is written ---- */

static const ot_graph *body_of(const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].kind == OT_ATTR_GRAPH) return n->attrs[k].g;
    return NULL;
}

/* A trip count, a condition that is true, and a body that hands it on. */
static void check_loop(const ot_graph *g, const ot_node *n)
{
    const ot_graph *body = body_of(n);
    assert_true(n->n_in >= 2 && n->in[0] != OT_NONE && n->in[1] != OT_NONE);
    const ot_tensor *go_on = g->values[n->in[1]].init;
    assert_non_null(go_on);
    assert_int_equal(go_on->dtype, OT_BOOL);
    assert_int_equal(*(const unsigned char *)go_on->data, 1);
    const ot_value *out = &body->values[body->outputs[0]];
    assert_int_not_equal(out->producer, OT_NONE);
    const ot_node *pass = &body->nodes[out->producer];
    assert_string_equal(pass->op_type, "Identity");
    assert_int_equal(pass->in[0], body->inputs[1]);
}

/* How many carriers of that type there are; each is checked. outer: values that their bodies
 * capture, all together. */
static uint32_t carriers(const ot_graph *g, const char *op, uint32_t *outer)
{
    uint32_t n = 0;
    *outer = 0;
    for (uint32_t k = 0; k < g->n_nodes; k++) {
        const ot_node *x = &g->nodes[k];
        const ot_graph *body = body_of(x);
        if (x->dead || !body) continue;
        assert_string_equal(x->op_type, op);
        if (!strcmp(op, "Loop")) check_loop(g, x);
        if (!strcmp(op, "Scan")) assert_int_equal(x->n_attrs, 2); /* no axes, no directions */
        for (ot_id v = 0; v < body->n_values; v++) *outer += body->values[v].is_outer;
        n++;
    }
    return n;
}

static void written(rig *x, int32_t opset, uint32_t n_dims, const uint32_t *tiles, ot_form f)
{
    const uint32_t axes[] = {2, 3};
    build(x, CHAIN, opset, n_dims, axes, tiles, f);
    ot_plan p = {.arena = x->a, .regions = &x->r, .n_regions = 1};
    if (ot_transform_tiles(x->m->graph, &p) != OT_OK || ot_verify(x->m->graph) != OT_OK)
        fail_msg("%s", x->diag.message);
}

static void one_loop_a_region(void **state)
{
    (void)state;
    static const int32_t opsets[] = {8, 9, 10, 11, 13, 17, 21};
    for (size_t k = 0; k < sizeof opsets / sizeof *opsets; k++)
        for (uint32_t n_dims = 1; n_dims <= 2; n_dims++) {
            rig x;
            uint32_t outer;
            written(&x, opsets[k], n_dims, (const uint32_t[]){6, 4}, OT_FORM_LOOP);
            /* border tiles are written out */
            assert_int_equal(carriers(x.m->graph, "Loop", &outer), 1);
            assert_int_equal(outer, 1); /* x */
            done(&x);
        }
}

/* Many border tiles: those along a side become a loop each, over a strip of x; what the body
 * captures is no longer than that. */
static void many_border_tiles(void **state)
{
    (void)state;
    rig x;
    uint32_t outer;
    written(&x, 17, 2, (const uint32_t[]){32, 24}, OT_FORM_LOOP);
    uint32_t n = carriers(x.m->graph, "Loop", &outer), whole = 0;
    assert_true(n > 1);
    assert_int_equal(outer, n);
    for (uint32_t k = 0; k < x.m->graph->n_nodes; k++) {
        const ot_graph *body = x.m->graph->nodes[k].dead ? NULL : body_of(&x.m->graph->nodes[k]);
        for (ot_id v = 0; body && v < body->n_values; v++)
            whole += body->values[v].is_outer && !strcmp(body->values[v].name, "x");
    }
    assert_int_equal(whole, 1);
    done(&x);
}

static void prescan_captures_nothing(void **state)
{
    (void)state;
    static const int32_t opsets[] = {9, 10, 13, 17, 21};
    static const uint32_t tiles[][2] = {{8, 6}, {32, 24}, {7, 5}};
    for (size_t k = 0; k < sizeof opsets / sizeof *opsets; k++)
        for (uint32_t n_dims = 1; n_dims <= 2; n_dims++)
            for (size_t t = 0; t < 3; t++) {
                rig x;
                uint32_t outer;
                written(&x, opsets[k], n_dims, tiles[t], OT_FORM_PRESCAN);
                assert_true(carriers(x.m->graph, "Scan", &outer) > 0);
                assert_int_equal(outer, 0);
                done(&x);
            }
}

/* Sequences: each Loop has its condition, and an inner value its shape behind the join. */
static void sequences_state_shapes(void **state)
{
    (void)state;
    rig x;
    uint32_t outer;
    const uint32_t axes[] = {2}, tiles[] = {8};
    build_to(&x,
             "graph g {\n input %x : float32[1,4,32,24]\n init %w : float32[4,4,3,3] = random 1\n "
             "%a = Conv(%x, %w) " CONV "\n"
             " %b = Relu(%a)\n %y = Flatten(%b)\n output %y\n}\n",
             "b", 17, 1, axes, tiles, OT_FORM_PEELED);
    ot_plan p = {.arena = x.a, .regions = &x.r, .n_regions = 1};
    if (ot_transform_tiles(x.m->graph, &p) != OT_OK || ot_verify(x.m->graph) != OT_OK)
        fail_msg("%s", x.diag.message);
    assert_int_equal(carriers(x.m->graph, "Loop", &outer), 3);
    ot_id b = ot_value_find(x.m->graph, "b");
    const ot_node *last = &x.m->graph->nodes[x.m->graph->values[b].producer];
    assert_string_equal(last->op_type, "Reshape");
    assert_string_equal(x.m->graph->nodes[x.m->graph->values[last->in[0]].producer].op_type,
                        "ConcatFromSequence");
    done(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_say_what_they_need), cmocka_unit_test(prescan_is_refused),
        cmocka_unit_test(one_loop_a_region),        cmocka_unit_test(many_border_tiles),
        cmocka_unit_test(prescan_captures_nothing), cmocka_unit_test(sequences_state_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
