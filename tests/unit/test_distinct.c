/* Large constants with few distinct values: what is computed of those, and looked up. */
#include "shaped_model.h"

#include "transform/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SIDE 256

/* Distances of rows and columns in place of what the text says of %d. */
static ot_model *model_of(const char *body, const char *rows, bool few)
{
    char text[2048];
    ot_diag d;
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[8,256,256]\n"
             "  init %%d : int64[256,256] = fill 1\n  init %%five : float32[] = [5]\n"
             "  init %%t : float32[%s] = fill 2\n%s  %%y = Add(%%x, %%b)\n  output %%y\n}\n",
             rows, body);
    ot_model *m = read_model(text, &d);
    int64_t *data = OT_NEW_N(m->arena, int64_t, SIDE * SIDE);
    assert_non_null(data);
    for (int64_t p = 0; p < SIDE * SIDE; p++) data[p] = few ? p / SIDE - p % SIDE + SIDE : p;
    ot_value *v = &m->graph->values[ot_value_find(m->graph, "d")];
    ot_tensor *t = ot_memdup(m->arena, v->init, sizeof *t);
    assert_non_null(t);
    t->data = data;
    t->bytes = sizeof *data * SIDE * SIDE;
    v->init = t;
    assert_int_equal(ot_fold_distinct(m->graph), OT_OK);
    assert_int_equal(ot_verify(m->graph), OT_OK);
    return m;
}

static const ot_node *maker(const ot_model *m, ot_id v)
{
    return &m->graph->nodes[m->graph->values[v].producer];
}

#define BUCKETS                                                       \
    "  %f = Cast(%d) {to=1}\n  %l = Log(%f)\n  %m = Mul(%l, %five)\n" \
    "  %i = Cast(%m) {to=7}\n"
#define BIAS "  %g = Gather(%t, %i)\n  %b = Transpose(%g) {perm=[2,0,1]}\n"

/* Logarithms, rows and their Transpose are of distinct distances; every place looks up its own. */
static void distances_are_looked_up(void **state)
{
    (void)state;
    ot_model *m = model_of(BUCKETS BIAS, "32,8", true);
    const ot_graph *g = m->graph;
    const ot_node *sum = maker(m, ot_value_find(g, "y")), *all = maker(m, sum->in[1]);
    assert_int_equal(all->op, OT_OP_Gather);
    assert_int_equal(ot_attr_int(all, "axis", 0), 1);
    const ot_node *turned = maker(m, all->in[0]);
    assert_int_equal(turned->op, OT_OP_Transpose);
    const ot_value *table = &g->values[all->in[0]], *which = &g->values[all->in[1]];
    assert_int_equal(table->dims[0], 8);
    assert_int_equal(table->dims[1], 2 * SIDE); /* 511 distances, and one more for whole packets */
    const ot_node *rows = maker(m, turned->in[0]), *whole = maker(m, rows->in[1]),
                  *scaled = maker(m, whole->in[0]), *log = maker(m, scaled->in[0]),
                  *cast = maker(m, log->in[0]);
    assert_int_equal(log->op, OT_OP_Log);
    const int64_t *distinct = g->values[cast->in[0]].init->data;
    const int32_t *places = which->init->data;
    for (int64_t p = 0; p < SIDE * SIDE; p++)
        assert_int_equal(distinct[places[p]], p / SIDE - p % SIDE + SIDE);
    assert_true(g->values[ot_value_find(g, "d")].removed);
    assert_int_equal(g->n_order, 8);
    ot_model_free(m);
}

/* Where axes come apart, the lookup stands before the Transpose. */
static void axes_that_come_apart_stay(void **state)
{
    (void)state;
    ot_model *m = model_of(BUCKETS "  %g = Gather(%t, %i)\n  %c = Transpose(%g) {perm=[0,2,1]}\n"
                                   "  init %s : int64[3] = [8,256,256]\n  %b = Reshape(%c, %s)\n",
                           "32,8", true);
    const ot_graph *g = m->graph;
    const ot_node *turned = maker(m, ot_value_find(g, "c")), *all = maker(m, turned->in[0]);
    assert_int_equal(all->op, OT_OP_Gather);
    assert_int_equal(ot_attr_int(all, "axis", 0), 0);
    assert_int_equal(g->values[all->in[0]].dims[0], 2 * SIDE);
    ot_model_free(m);
}

/* As many values as places, nothing changes. */
static void others_stay(void **state)
{
    (void)state;
    ot_model *m = model_of(BUCKETS BIAS, "32,8", false);
    assert_int_equal(maker(m, ot_value_find(m->graph, "b"))->op, OT_OP_Transpose);
    assert_int_equal(m->graph->n_order, 7);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_looked_up),
        cmocka_unit_test(axes_that_come_apart_stay),
        cmocka_unit_test(others_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
