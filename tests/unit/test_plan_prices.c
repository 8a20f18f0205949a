/* What plans say that their regions cost, added up a second time: random graphs, for every machine
 * and runtime, in every form and for both goals. */
#include "select/search/plan_search.h"
#include "region_prices.h"
#include "shaped_model.h"

static uint64_t rng;

static uint32_t draw(uint32_t n) { return (uint32_t)(ot_next_random(&rng) % n); }

/* Operators on [1, c, h, h], each of the value before it, some of an older one of its size. */
static void write_graph(FILE *f, uint32_t n)
{
    const uint32_t c = 8u << draw(3);
    uint32_t h = 32u << draw(3), size[16] = {h};
    fprintf(f, "model ir 8 opset %u\ngraph g {\n  input %%v0 : float32[1,%u,%u,%u]\n",
            draw(4) ? 17u : 9u, c, h, h);
    fprintf(f, "  init %%b : float32[%u] = random 1\n  init %%d : float32[%u,1,3,3] = random 2\n",
            c, c);
    fprintf(f, "  init %%w : float32[%u,%u,3,3] = random 3\n", c, c);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t other = draw(k + 1);
        while (size[other] != h) other++;
        switch (draw(8)) {
        case 0: fprintf(f, "  %%v%u = Relu(%%v%u)\n", k + 1, k); break;
        case 1: fprintf(f, "  %%v%u = Add(%%v%u, %%v%u)\n", k + 1, k, other); break;
        case 2: fprintf(f, "  %%v%u = Softmax(%%v%u) {axis=%u}\n", k + 1, k, 1 + draw(3)); break;
        case 3:
            fprintf(f, "  %%v%u = MaxPool(%%v%u) {kernel_shape=[2,2], strides=[2,2]}\n", k + 1, k);
            h /= 2;
            break;
        case 4:
            fprintf(f, "  %%v%u = Conv(%%v%u, %%d, %%b) {group=%u, pads=[1,1,1,1]}\n", k + 1, k, c);
            break;
        case 5:
            fprintf(
                f,
                "  %%v%u = ConvTranspose(%%v%u, %%d) {group=%u, strides=[1,1], pads=[1,1,1,1]}\n",
                k + 1, k, c);
            break;
        case 6: fprintf(f, "  %%v%u = Sigmoid(%%v%u)\n", k + 1, k); break;
        default: fprintf(f, "  %%v%u = Conv(%%v%u, %%w) {pads=[1,1,1,1]}\n", k + 1, k);
        }
        size[k + 1] = h;
    }
    fprintf(f, "  output %%v%u\n}\n", n);
}

static const struct {
    const char *target, *runtime; /* NULL: the target's own */
} WHERE[] = {{"cpu-generic", NULL},
             {"cpu-generic", "openvino"},
             {"cpu-generic", "loop"},
             {"cpu-generic", "portable"},
             {"cpu-generic", "engine"},
             {"h200", NULL},
             {"ascend-a2-16m", NULL},
             {"ethos-u55", NULL},
             {"mcu-512k", NULL},
             {"tlf-16m", NULL},
             {"cpu-generic", "engine-device"}};

/* Regions of one plan, by their form. */
static void check_graph(uint64_t seed, uint32_t *regions)
{
    char *text = NULL;
    size_t length = 0;
    ot_diag d;
    ot_target t;
    ot_plan *p = NULL;
    rng = seed;
    FILE *f = open_memstream(&text, &length);
    assert_non_null(f);
    write_graph(f, 3 + draw(8));
    fclose(f);
    ot_model *m = read_model(text, &d);
    const uint32_t where = (uint32_t)(seed % (sizeof WHERE / sizeof *WHERE));
    assert_int_equal(ot_target_load(WHERE[where].target, 1 + draw(2), &d, &t), OT_OK);
    if (WHERE[where].runtime)
        assert_int_equal(ot_target_set_runtime(&t, WHERE[where].runtime, &d), OT_OK);
    if (t.is_cache) ot_target_set_l2(&t, 4096 << draw(6));
    const ot_plan_options o = {.goal = draw(2) ? OT_GOAL_TIME : OT_GOAL_MEMORY,
                               .max_slowdown = 0.3,
                               .force = draw(4) > 0,
                               .tie_break = true,
                               .force_form = (ot_form)(draw(2) ? draw(OT_FORM_COUNT) : 0)};
    ot_status st = ot_plan_graph(m->graph, &t, &o, &p);
    if (st != OT_OK) fail_msg("seed %d: %s\n%s", (int)seed, d.message, text);
    if (check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK)
        fail_msg("seed %d, %s %s: %s\n%s", (int)seed, WHERE[where].target,
                 WHERE[where].runtime ? WHERE[where].runtime : "", d.message, text);
    for (uint32_t k = 0; k < p->n_regions; k++) regions[p->regions[k].form]++;
    ot_plan_free(p);
    ot_model_free(m);
    free(text);
}

static void prices_are_what_tiles_come_to(void **state)
{
    (void)state;
    uint32_t regions[OT_FORM_COUNT] = {0};
    for (uint64_t seed = 1; seed <= 660; seed++) check_graph(seed, regions);
    for (ot_form k = OT_FORM_SCAN; k < OT_FORM_COUNT; k++) {
        print_message("%s: %u\n", ot_form_name(k), regions[k]);
        if (regions[k] == 0 && k != OT_FORM_SCAN) fail_msg("no region in form %s", ot_form_name(k));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prices_are_what_tiles_come_to)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
