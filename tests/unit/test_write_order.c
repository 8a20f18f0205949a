/* The order in which nodes are written, and what a process takes in it. */
#include "alloc_sim/alloc_sim.h"
#include "machine/runtime/runtime.h"
#include "shaped_model.h"

#define MB     (INT64_C(1) << 20)
#define LAYERS 8

/* y1 = Exp(x) * Exp(z), y2 = Exp(y1) * Exp(z), ..., values of 1 MB. What comes of z stands in front
 * of what comes of the layer before, or behind it. text: room for all. */
static void write_chain(char *text, size_t room, bool in_front)
{
    size_t n = (size_t)snprintf(text, room,
                                "model ir 8 opset 17\ngraph g {\ninput %%y0 : "
                                "float32[512,512]\ninput %%z : float32[512,512]\n");
    for (int k = 1; k <= LAYERS; k++) {
        const char *form = in_front ? "%%a%d = Exp(%%z)\n%%c%d = Exp(%%y%d)\n"
                                    : "%%c%d = Exp(%%y%d)\n%%a%d = Exp(%%z)\n";
        const int first = k, second = in_front ? k : k - 1, third = in_front ? k - 1 : k;
        n += (size_t)snprintf(text + n, room - n, form, first, second, third);
        n += (size_t)snprintf(text + n, room - n, "%%y%d = Mul(%%c%d, %%a%d)\n", k, k, k);
    }
    snprintf(text + n, room - n, "output %%y%d\n}\n", LAYERS);
}

/* ONNX Runtime goes down first to what stands last: the layers before, or all that comes of z. */
static void growth_follows_the_file(void **state)
{
    (void)state;
    for (int in_front = 0; in_front < 2; in_front++) {
        char text[2048];
        ot_diag d;
        ot_sim_figures f;
        write_chain(text, sizeof text, in_front);
        ot_model *m = read_model(text, &d);
        assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
        if (in_front)
            assert_true(f.first_run < (LAYERS - 2) * MB);
        else
            assert_true(f.first_run > LAYERS * MB);
        ot_model_free(m);
    }
}

/* A graph is written as it was read, until a node is made in it. */
static void nodes_are_written_as_read(void **state)
{
    (void)state;
    char text[2048];
    ot_diag d;
    write_chain(text, sizeof text, true);
    ot_model *m = read_model(text, &d);
    ot_graph *g = m->graph;
    ot_arena *a = ot_arena_new();
    const ot_id *order = ot_write_order(g, a);
    assert_int_equal(g->n_order, 3 * LAYERS);
    for (ot_id k = 0; k < g->n_order; k++) assert_int_equal(order[k], k);
    g->nodes[3].source = OT_NONE;
    assert_ptr_equal(ot_write_order(g, a), g->order);
    g->nodes[3].source = 100; /* behind its readers */
    assert_ptr_equal(ot_write_order(g, a), g->order);
    ot_arena_free(a);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_follows_the_file),
        cmocka_unit_test(nodes_are_written_as_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
