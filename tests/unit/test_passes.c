/* Passes over crops: which statistics are found and of which pass, over which axes; the models and
 * the plan that are written; what is refused leaves nothing behind. */
#include "shaped_model.h"

#include "onnx/import/model_io.h"
#include "passes/passes.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/onnx-tile-passes-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int remove_folder(void **state)
{
    static const char *const files[] = {"pass_1.onnx", "pass_2.onnx", "final.onnx", "plan.json"};
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) (void)remove(in_folder(files[k]));
    return rmdir(folder);
}

static ot_status write_stored(const char *body, ot_passes_store store, ot_passes **out, ot_diag *d)
{
    char text[4096];
    ot_model *m = NULL;
    snprintf(text, sizeof text, "model ir 8 opset 17\ngraph g {\n%s}\n", body);
    *d = (ot_diag){0};
    if (ot_text_parse(text, strlen(text), d, &m) != OT_OK) fail_msg("%s\n%s", d->message, text);
    const ot_status s = ot_passes_write(m, NULL, 0, store, folder, out);
    ot_model_free(m);
    return s;
}

static ot_status write_passes(const char *body, ot_passes **out, ot_diag *d)
{
    return write_stored(body, OT_STORE_NEVER, out, d);
}

static void assert_statistic(const ot_statistic *s, ot_statistic_kind kind, uint32_t pass,
                             const char *value, int64_t size)
{
    assert_int_equal(s->kind, kind);
    assert_int_equal(s->pass, pass);
    assert_string_equal(s->value, value);
    assert_int_equal(s->size, size);
}

/* A norm, then a pool behind it and the largest of what is before it: two passes. */
static const char network[] =
    "  input %x : float32[2,4,64,48]\n  init %w : float32[4,4,3,3] = random 1\n"
    "  init %s : float32[4] = [1, 2, 3, 4]\n  init %b : float32[4] = [0, 1, 0, 1]\n"
    "  %c = Conv(%x, %w) {pads = [1, 1, 1, 1]}\n  %n = InstanceNormalization(%c, %s, %b)\n"
    "  %p = GlobalAveragePool(%n)\n  %m = ReduceMax(%c) {axes = [1, 2, 3]}\n"
    "  %a = Mul(%n, %p)\n  %y = Sub(%a, %m)\n  output %y\n";

static void statistics_of_passes(void **state)
{
    (void)state;
    ot_passes *p;
    ot_diag d;
    if (write_passes(network, &p, &d) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(p->n_passes, 2);
    assert_int_equal(p->n_statistics, 3);
    assert_statistic(&p->statistics[0], OT_STATISTIC_MOMENTS, 1, "c", 8);
    assert_statistic(&p->statistics[1], OT_STATISTIC_MAX, 1, "c", 2);
    assert_int_equal(p->statistics[2].kind, OT_STATISTIC_MEAN);
    assert_int_equal(p->statistics[2].pass, 2);
    for (uint32_t k = 0; k < 3; k++) {
        assert_int_equal(p->statistics[k].n_axes, 2);
        assert_int_equal(p->statistics[k].axes[0], 2);
        assert_int_equal(p->statistics[k].axes[1], 3);
    }
    assert_int_equal(p->models[0].n_inputs, 5); /* x, and which rows are owned, of two */
    assert_int_equal(p->models[2].n_inputs, 4); /* x, and three numbers */
    assert_true(p->models[0].macs > 0 && p->models[2].macs > 0 && p->macs > 0);
    ot_passes_free(p);
}

/* Later models take what earlier ones hand out, and inputs of any extent along the cut axes. */
static void models_that_are_written(void **state)
{
    (void)state;
    ot_passes *p;
    ot_model *m = NULL;
    ot_diag d;
    assert_int_equal(write_passes(network, &p, &d), OT_OK);
    if (ot_import_file(in_folder("pass_2.onnx"), &d, &m) != OT_OK) fail_msg("%s", d.message);
    const ot_graph *g = m->graph;
    const ot_id x = ot_value_find(g, "x");
    assert_int_equal(g->values[x].dims[0], 2);
    assert_int_equal(g->values[x].dims[1], 4);
    assert_int_equal(g->values[x].dims[2], OT_DIM_UNKNOWN);
    const ot_id moments = ot_value_find(g, p->statistics[0].name);
    assert_true(moments != OT_NONE && g->values[moments].is_input);
    assert_int_equal(g->values[moments].dims[0], 16);                   /* mean and variance of 8 */
    assert_int_equal(ot_value_find(g, p->statistics[1].name), OT_NONE); /* which it does not need */
    assert_int_equal(g->n_outputs, 2);                                  /* n and mean */
    ot_model_free(m);
    struct stat st;
    assert_int_equal(stat(in_folder("plan.json"), &st), 0);
    ot_passes_free(p);
}

/* A norm, a convolution, a norm: what the first is of, and then what the second one is of. */
static const char chain[] =
    "  input %x : float32[1,4,64,48]\n  init %w : float32[4,4,7,7] = random 1\n"
    "  init %s : float32[4] = [1, 2, 3, 4]\n  init %b : float32[4] = [0, 1, 0, 1]\n"
    "  %c = Conv(%x, %w) {pads = [3, 3, 3, 3]}\n  %n = InstanceNormalization(%c, %s, %b)\n"
    "  %r = Relu(%n)\n  %e = Conv(%r, %w) {pads = [3, 3, 3, 3], strides = [2, 2]}\n"
    "  %y = InstanceNormalization(%e, %s, %b)\n  output %y\n";

static void assert_stored(const ot_stored *s, const char *value, uint32_t pass, int64_t rows)
{
    assert_string_equal(s->value, value);
    assert_int_equal(s->pass, pass);
    assert_int_equal(s->rank, 4);
    assert_int_equal(s->dims[2], rows);
    assert_int_equal(s->bytes, 4 * 4 * rows * (rows * 3 / 4));
}

/* What is written is read by later models in place of the input, and each has a geometry. */
static void values_that_are_stored(void **state)
{
    (void)state;
    ot_passes *p;
    ot_model *m = NULL;
    ot_diag d;
    if (write_stored(chain, OT_STORE_ALWAYS, &p, &d) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(p->n_stored, 2);
    assert_stored(&p->stored[0], "c", 1, 64);
    assert_stored(&p->stored[1], "e", 2, 32);
    double sum = 0;
    for (uint32_t k = 0; k <= p->n_passes; k++) sum += p->models[k].macs;
    assert_true(sum < 1.2 * p->macs); /* nothing is convolved twice */
    assert_string_equal(p->geometry->pairs[p->geometry->n_pairs - 1].output, "y");
    assert_string_equal(p->geometry->pairs[p->geometry->n_pairs - 1].input, "e");
    assert_string_equal(p->whole->pairs[0].input, "x");
    if (ot_import_file(in_folder("pass_2.onnx"), &d, &m) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(ot_value_find(m->graph, "x"), OT_NONE);
    const ot_value *c = &m->graph->values[ot_value_find(m->graph, "c")];
    assert_true(c->is_input);
    assert_int_equal(c->dims[2], OT_DIM_UNKNOWN);
    assert_true(m->graph->values[ot_value_find(m->graph, "e")].is_output);
    ot_model_free(m);
    ot_passes_free(p);
}

/* A convolution of 7 x 7 costs more than its rows on a disk, a cheap one does not. */
static void stored_where_it_costs_less(void **state)
{
    (void)state;
    ot_passes *p;
    ot_diag d;
    if (write_stored(chain, OT_STORE_AUTO, &p, &d) != OT_OK) fail_msg("%s", d.message);
    assert_true(p->n_stored > 0);
    ot_passes_free(p);
    if (write_stored("  input %x : float32[1,4,64,48]\n  init %s : float32[4] = [1, 2, 3, 4]\n"
                     "  init %b : float32[4] = [0, 1, 0, 1]\n  %c = Relu(%x)\n"
                     "  %n = InstanceNormalization(%c, %s, %b)\n  %e = Abs(%n)\n"
                     "  %y = InstanceNormalization(%e, %s, %b)\n  output %y\n",
                     OT_STORE_AUTO, &p, &d) != OT_OK)
        fail_msg("%s", d.message);
    assert_int_equal(p->n_stored, 0);
    assert_null(p->whole);
    ot_passes_free(p);
}

/* Over channels alone nothing is in the way: one model, no pass. */
static void nothing_in_the_way(void **state)
{
    (void)state;
    ot_passes *p;
    ot_diag d;
    if (write_passes("  input %x : float32[1,4,64,48]\n  %m = ReduceMean(%x) {axes = [1]}\n"
                     "  %p = MaxPool(%x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n"
                     "  %y = Sub(%p, %m)\n  output %y\n",
                     &p, &d) != OT_OK)
        fail_msg("%s", d.message);
    assert_int_equal(p->n_passes, 0);
    assert_int_equal(p->n_statistics, 0);
    ot_passes_free(p);
}

static void refused_by_node(void **state)
{
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"  input %x : float32[1,4,64,48]\n  %p = ReduceProd(%x) {axes = [2, 3]}\n"
         "  %c = MaxPool(%x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n"
         "  %y = Mul(%c, %p)\n  output %y\n",
         "'p' (ReduceProd), reduce: "},
        {"  input %x : float32[1,4,64,48]\n  %g = GlobalAveragePool(%x)\n"
         "  %p = ReduceMean(%x) {axes = [3]}\n  %a = Mul(%x, %p)\n  %y = Mul(%a, %g)\n"
         "  output %y\n",
         "'p' (ReduceMean), reduce: it keeps an axis"},
        {"  input %x : float32[1,64,64]\n  init %w : float32[64,64,3] = random 1\n"
         "  %c = Conv(%x, %w) {pads = [1, 1]}\n  %t = Transpose(%c) {perm = [0, 2, 1]}\n"
         "  %p = MatMul(%t, %c)\n  %s = Softmax(%p) {axis = 2}\n  %y = MatMul(%s, %t)\n"
         "  output %y\n",
         "attention: "},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ot_passes *p;
        ot_diag d;
        assert_int_equal(write_passes(cases[k].body, &p, &d), OT_E_INPUT);
        assert_null(p);
        if (!strstr(d.message, cases[k].says)) fail_msg("%s", d.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_by_node),        cmocka_unit_test(nothing_in_the_way),
        cmocka_unit_test(values_that_are_stored), cmocka_unit_test(stored_where_it_costs_less),
        cmocka_unit_test(statistics_of_passes),   cmocka_unit_test(models_that_are_written),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
