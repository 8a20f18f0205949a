/* Layouts that suit a device: which ones are taken, what accesses cost by hand, packing against
 * its definition, and random convolutions and products in every layout against the engine's
 * reference kernels, on OpenCL, Vulkan and CUDA (a stub that computes on the host, where there
 * is none).
 *
 * OT_SEED=7: that seed; OT_SEEDS=50: so many of each, in each layout. OT_DEVICE=vulkan: on that
 * alone.
 */
#include "cuda_rig.h"
#include "engine_laid_rig.h"

#include "engine/gpu/shaders/dg_internal.h"

/* ---- what is chosen ---- */

static void layouts_of_devices(void **state)
{
    (void)state;
    const ot_device_facts pocl = {.is_cpu = true, .cache_line = 64, .vector_floats = 8};
    const ot_device_facts llvmpipe = {.is_cpu = true, .vector_floats = 1},
                          gpu = {.cache_line = 128, .vector_floats = 1};
    ot_dg_layout l = ot_device_layout(&pocl);
    assert_int_equal(l.together, 1);
    assert_int_equal(l.sector, 64);
    assert_int_equal(l.block, 8);
    l = ot_device_layout(&llvmpipe);
    assert_int_equal(l.sector, 64);
    assert_int_equal(l.block, 0);
    l = ot_device_layout(&gpu);
    assert_int_equal(l.together, 32);
    assert_int_equal(l.sector, 32);
    assert_int_equal(l.block, 0);
    assert_int_equal(l.packs, OT_DG_WHERE_IT_PAYS);
    assert_int_equal(l.spreads, OT_DG_WHERE_IT_PAYS);
}

#define IS(got, want) assert_true((got) == (want))

/* Sectors counted by hand; exact in float64. */
static void transactions(void **state)
{
    (void)state;
    const ot_dg_layout cpu = {.together = 1, .sector = 64}, gpu = {.together = 32, .sector = 32};
    const dg_access row = {OT_F32, 10, 8, 1, 8};      /* 32 bytes, at once */
    const dg_access column = {OT_F32, 10, 8, 100, 0}; /* eight lines */
    const dg_access strided = {OT_F16, 1, 8, 8, 64};  /* 8 x 16 bytes less 14: two lines */
    const dg_access spread = {OT_F32, 10, 8, 40, 1};  /* 32 items, 128 bytes, eight times */
    const dg_access same = {OT_F32, 3, 1, 0, 0};      /* one for all of a subgroup */
    IS(dg_transactions(&cpu, &row), 10);
    IS(dg_transactions(&cpu, &column), 80);
    IS(dg_transactions_ideal(&cpu, &column), 10);
    IS(dg_transactions(&cpu, &strided), 2);
    IS(dg_transactions(&gpu, &row), 10 * 8 * 32 / 32.0);
    IS(dg_transactions(&gpu, &spread), 10 * 8 * 4 / 32.0);
    IS(dg_transactions(&gpu, &same), 3 / 32.0);
}

/* ---- packing ---- */

/* Two groups of three maps, depth [tap][channel], in blocks of two: element by element. */
static void packing(void **state)
{
    (void)state;
    enum { GROUPS = 2, MAPS = 3, CHANNELS = 4, TAPS = 5, BLOCK = 2, BLOCKS = 2 };
    const ot_dg_packing p = {.block = BLOCK,
                             .groups = GROUPS,
                             .maps = MAPS,
                             .map_stride = CHANNELS * TAPS,
                             .depth_dims = {TAPS, CHANNELS},
                             .depth_steps = {1, TAPS}};
    int16_t from[GROUPS * MAPS][CHANNELS][TAPS], to[GROUPS * BLOCKS][TAPS][CHANNELS][BLOCK];
    int64_t n;
    for (int k = 0; k < GROUPS * MAPS * CHANNELS * TAPS; k++)
        ((int16_t *)from)[k] = (int16_t)(k + 1);
    assert_true(ot_dg_packed_elems(&p, &n));
    assert_int_equal(n, sizeof to / sizeof(int16_t));
    ot_dg_pack(&p, sizeof(int16_t), from, to);
    for (int g = 0; g < GROUPS; g++)
        for (int m = 0; m < BLOCKS * BLOCK; m++)
            for (int c = 0; c < CHANNELS; c++)
                for (int t = 0; t < TAPS; t++)
                    assert_int_equal(to[g * BLOCKS + m / BLOCK][t][c][m % BLOCK],
                                     m < MAPS ? from[g * MAPS + m][c][t] : 0);
}

/* ---- results ---- */

/* A convolution of random channels, groups, windows, strides, dilations and pads, with or
 * without a bias and what follows. */
static void put_convolution(char *text, size_t size, uint64_t *state)
{
    const int group = pick(state, 0, 2) ? 1 : pick(state, 2, 5), depthwise = pick(state, 0, 5) == 0;
    const int in = depthwise ? 1 : pick(state, 1, 9), maps = depthwise ? 1 : pick(state, 1, 19),
              groups = depthwise ? 11 : group;
    const int kh = pick(state, 1, 3), kw = pick(state, 0, 3) ? pick(state, 1, 4) : kh,
              dh = pick(state, 1, 2), dw = pick(state, 1, 2);
    const int h = (kh - 1) * dh + 1 + pick(state, 0, 6), w = (kw - 1) * dw + 1 + pick(state, 0, 40);
    const bool bias = pick(state, 0, 1), tail = pick(state, 0, 1);
    int n = snprintf(
        text, size,
        "input %%x : float32[%d,%d,%d,%d]\ninit %%w : float32[%d,%d,%d,%d] = random 1\n"
        "init %%b : float32[%d] = random 2\n%%c = Conv(%%x, %%w%s) {group=%d, dilations=[%d, %d], "
        "strides=[%d, %d], "
        "pads=[%d, %d, %d, %d]}\n",
        pick(state, 1, 2), in * groups, h, w, maps * groups, in, kh, kw, maps * groups,
        bias ? ", %b" : "", groups, dh, dw, pick(state, 1, 2), pick(state, 1, 3), pick(state, 0, 1),
        pick(state, 0, 2), pick(state, 0, 2), pick(state, 0, 1));
    snprintf(text + n, size - (size_t)n,
             tail ? "%%r = Relu(%%c)\n%%y = Add(%%r, %%c)\noutput %%y\n" : "output %%c\n");
}

/* A product of random extents with constant columns: MatMul, or Gemm with any transposes. */
static void put_product(char *text, size_t size, uint64_t *state)
{
    const int m = pick(state, 1, 20), k = pick(state, 1, 12), n = pick(state, 1, 30);
    const bool ta = pick(state, 0, 1), tb = pick(state, 0, 2) > 0;
    if (pick(state, 0, 3) == 0)
        snprintf(text, size,
                 "input %%x : float32[2,%d,%d]\ninit %%w : float32[%d,%d] = random 1\n%%y = "
                 "MatMul(%%x, %%w)\noutput %%y\n",
                 m, k, k, n);
    else
        snprintf(text, size,
                 "input %%x : float32[%d,%d]\ninit %%w : float32[%d,%d] = random 1\ninit %%b : "
                 "float32[%d] = random 2\n"
                 "%%c = Gemm(%%x, %%w, %%b) {transA=%d, transB=%d}\n%%y = Relu(%%c)\noutput %%y\n",
                 ta ? k : m, ta ? m : k, tb ? n : k, tb ? k : n, n, ta, tb);
}

/* In every layout against the reference kernels. */
static void check_layouts(const char *text, uint64_t seed)
{
    ot_device_figures f;
    laid_want want;
    want_of(&want, text, seed);
    for (int choice = 0; choice < 8; choice++) {
        const ot_dg_layout layout = {.together = choice & 4 ? 32 : 1,
                                     .sector = 64,
                                     .busy = choice & 4 ? 2000 : 0,
                                     .packs = choice & 1 ? OT_DG_ALWAYS : OT_DG_NEVER,
                                     .spreads = choice & 2 ? OT_DG_ALWAYS : OT_DG_NEVER};
        same_laid(&want, layout, &f);
        assert_int_equal(f.n_host, 0);
        if (!(choice & 1)) assert_int_equal(f.layouts.n_packed, 0);
        if (!(choice & 2)) assert_int_equal(f.layouts.n_spread, 0);
    }
    want_done(&want);
}

static void random_convolutions_and_products(void **state)
{
    NEEDS_DEVICE(state);
    const char *many = getenv("OT_SEEDS");
    const unsigned end = first_seed + (many ? (unsigned)atoi(many) : 6);
    static laid_nets all;
    char text[1000];
    for (unsigned seed = first_seed; seed < end; seed++) {
        uint64_t random = seed * 7919u;
        put_convolution(text, sizeof text, &random);
        add_net(&all, text);
        put_product(text, sizeof text, &random);
        add_net(&all, text);
        if (all.n + 2 <= LAID_INPUTS && seed + 1 < end) continue;
        check_layouts(all.text, random);
        all.used = 0;
        all.n = 0;
    }
}

/* Gemm with transB: columns lie apart until they are packed, on either kind of device. Those
 * without are as they are. */
static void columns_are_packed(void **state)
{
    NEEDS_DEVICE(state);
    const ot_device_facts gpu = {.cache_line = 128};
    ot_dg_layout layouts[2] = {ot_device_layout(&gpu), {.together = 1, .sector = 64}};
    layouts[0].tiles = OT_DG_NEVER; /* where columns lie apart does not matter */
    for (int k = 0; k < 2; k++) {
        const ot_device_laid laid = {.dev = dev, .layout = layouts[k]};
        const ot_backend place_of = ot_device_backend(&laid);
        bench b;
        ot_device_figures f;
        open_with(&b,
                  "input %x : float32[16,64]\ninit %w : float32[96,64] = random 1\ninit %v : "
                  "float32[96,32] = random 2\n"
                  "%a = Gemm(%x, %w) {transB=1}\n%y = MatMul(%a, %v)\noutput %y\n",
                  (ot_session_options){.place = &place_of});
        if (b.status != OT_OK) fail_msg("%s", b.d.message);
        ot_device_figures_get(b.s, &f);
        assert_int_equal(f.layouts.n_packed, 1);
        assert_int_equal(f.layouts.packed_bytes, 96 * 64 * 4);
        assert_int_equal(f.layouts.n_analysed, 2);
        assert_true(f.layouts.transactions < f.layouts.transactions_plain);
        close_bench(&b);
    }
}

/* ---- memory ---- */

/* Two convolutions share weights: they are packed once, and lie on the device packed alone.
 * Three maps are filled up to four. */
static void packed_weights_are_planned(void **state)
{
    NEEDS_DEVICE(state);
    const ot_device_laid laid = {.dev = dev, .layout = {.packs = OT_DG_ALWAYS}};
    const ot_backend packed = ot_device_backend(&laid);
    bench b;
    ot_device_figures f;
    open_with(&b,
              "input %x : float32[1,32,8,8]\ninit %w : float32[32,32,1,1] = random 1\ninit %v : "
              "float32[3,32,1,1] = random 2\n"
              "%a = Conv(%x, %w)\n%c = Conv(%a, %w)\n%y = Conv(%c, %v)\noutput %y\n",
              (ot_session_options){.place = &packed});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    ot_device_figures_get(b.s, &f);
    assert_int_equal(f.layouts.n_packed, 2);
    assert_int_equal(f.layouts.packed_bytes, (32 * 32 + 4 * 32) * 4);
    assert_int_equal(f.layouts.filled, 32 * 4);
    assert_int_equal(f.layouts.n_analysed, 3);
    assert_true(f.layouts.transactions < f.layouts.transactions_plain);
    /* and numbers: not the plain ones, too */
    assert_true(f.weight_bytes < f.layouts.packed_bytes + 1024);
    assert_int_equal(f.device_bytes, f.arena_bytes + f.weight_bytes);
    close_bench(&b);
}

/* On a GPU's layout neighbouring work-items read neighbours: an eighth of the transactions for
 * rows. */
static void lanes_are_spread_where_it_pays(void **state)
{
    NEEDS_DEVICE(state);
    static const char net[] =
        "input %x : float32[1,16,8,256]\ninit %w : float32[16,16,3,3] = random 1\n"
        "%y = Conv(%x, %w) {pads=[1, 1, 1, 1]}\noutput %y\n";
    const ot_device_facts gpu = {.cache_line = 128};
    ot_device_laid as_gpu = {.dev = dev, .layout = ot_device_layout(&gpu)};
    const ot_device_laid as_cpu = {.dev = dev, .layout = {.together = 1, .sector = 64}};
    as_gpu.layout.tiles = OT_DG_NEVER;
    const ot_device_laid *const laid[2] = {&as_gpu, &as_cpu};
    for (int k = 0; k < 2; k++) {
        const ot_backend place_of = ot_device_backend(laid[k]);
        bench b;
        ot_device_figures f;
        open_with(&b, net, (ot_session_options){.place = &place_of});
        if (b.status != OT_OK) fail_msg("%s", b.d.message);
        ot_device_figures_get(b.s, &f);
        assert_int_equal(f.layouts.n_spread, k == 0);
        /* a subgroup reads the same weight: one transaction, packed or not */
        assert_int_equal(f.layouts.n_packed, k == 1);
        assert_true(f.layouts.transactions < f.layouts.transactions_plain * (k == 0 ? 0.2 : 0.25));
        assert_true(f.layouts.transactions >= f.layouts.transactions_ideal);
        close_bench(&b);
    }
}

/* The kernel of a model's only node, in an arena of the caller's. */
static ot_dg_shader kernel_of(const ot_dg_target *target, const char *net, ot_arena *a)
{
    bench b;
    ot_dg_code code;
    open_with(&b, net, (ot_session_options){0});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    const ot_graph *g = b.m->graph;
    ot_nd *arrays = OT_NEW_N(a, ot_nd, g->n_values);
    assert_non_null(arrays);
    for (ot_id v = 0; v < g->n_values; v++) {
        ot_nd_set_dense(&arrays[v], g->values[v].dtype, (uint32_t)g->values[v].rank,
                        g->values[v].dims);
        if (b.s->top->slots[v].is_const) arrays[v].data = b.s->top->slots[v].nd.data;
    }
    const ot_node *node = &g->nodes[0];
    const ot_dg_group group = {&node, 1, arrays, node->out, 1};
    assert_int_equal(ot_dg_generate(&group, target, a, &b.d, &code), OT_OK);
    if (code.n != 1) fail_msg("%s", code.why ? code.why : "many kernels");
    const ot_dg_shader made = code.kernels[0];
    close_bench(&b);
    return made;
}

/* How many work-items a model's only kernel has in a layout, in groups of how many. */
static int64_t items_in(const ot_dg_layout *layout, const char *net, uint32_t *group_items)
{
    const ot_dg_target target = {.dialect = OT_DG_CUDA, .has_f64 = true, .layout = *layout};
    ot_arena *a = ot_arena_new();
    const ot_dg_shader made = kernel_of(&target, net, a);
    const int64_t items = made.items;
    *group_items = made.group_items;
    ot_arena_free(a);
    return items;
}

/* GLSL leaves open what % makes of a negative number, which indices of Pad are: rem has a meaning
 * in each language. */
static void remainders_of_negatives_are_spelled_out(void **state)
{
    (void)state;
    const ot_dg_target target = {
        .dialect = OT_DG_GLSL, .has_f64 = true, .has_i64 = true, .layout = {.together = 32}};
    static const char *const modes[] = {"reflect", "wrap"};
    char net[300], text[6000];
    for (int k = 0; k < 2; k++) {
        snprintf(
            net, sizeof net,
            "input %%x : float32[5,6]\ninit %%p : int64[4] = [2, 1, 1, 3]\n%%y = Pad(%%x, %%p) "
            "{mode=\"%s\"}\noutput %%y\n",
            modes[k]);
        ot_arena *a = ot_arena_new();
        const ot_dg_shader made = kernel_of(&target, net, a);
        assert_true(made.n_text < sizeof text);
        memcpy(text, made.text, made.n_text);
        text[made.n_text] = '\0';
        assert_non_null(strstr(text, "a0 = rem(rem(a0, "));
        assert_null(strstr(text, "a0 %"));
        ot_arena_free(a);
    }
}

/* Has a model's only kernel in a layout shared memory? In groups of how many work-items. */
static bool shares_in(const ot_dg_target *target, const char *net, uint32_t *group_items)
{
    ot_arena *a = ot_arena_new();
    const ot_dg_shader made = kernel_of(target, net, a);
    const bool shares = strstr(made.text, "meet();") != NULL;
    *group_items = made.group_items;
    ot_arena_free(a);
    return shares;
}

/* Blocks of operands in shared memory follow from the units and the result: large ones where there
 * are many, small ones with slices of the depth where there are few; none where the device shares
 * nothing, or where channels are few. The same of rows: a row that is long is a group's. */
static void what_groups_share(void **state)
{
    (void)state;
    const ot_device_facts gpu = {.units = 132}, cpu = {.is_cpu = true, .vector_floats = 8};
    const ot_dg_target large = {.dialect = OT_DG_CUDA,
                                .has_f64 = true,
                                .group_most = 1024,
                                .shared_bytes = 49152,
                                .layout = ot_device_layout(&gpu)};
    ot_dg_target none = large, vectors = large;
    none.shared_bytes = 0;
    vectors.layout = ot_device_layout(&cpu);
    static const struct {
        const char *net;
        uint32_t group; /* 0: nothing is shared */
    } nets[] = {
        {"input %x : float32[1,512,7,7]\ninit %w : float32[512,512,3,3] = random 1\n%y = Conv(%x, "
         "%w) {pads=[1, 1, 1, 1]}\noutput %y\n",
         512},
        {"input %x : float32[1,64,512,512]\ninit %w : float32[64,64,3,3] = random 1\n%y = "
         "Conv(%x, %w) {pads=[1, 1, 1, 1]}\noutput %y\n",
         128},
        {"input %x : float32[4096,1024]\ninit %w : float32[1024,4096] = random 1\n%y = MatMul(%x, "
         "%w)\noutput %y\n",
         256},
        {"input %x : float32[1,3,512,512]\ninit %w : float32[8,3,3,3] = random 1\n%y = Conv(%x, "
         "%w)\noutput %y\n",
         0},
        {"input %x : float32[1,8,300,300]\n%y = GlobalAveragePool(%x)\noutput %y\n", 1024},
        {"input %x : float32[100,50000]\n%y = Softmax(%x)\noutput %y\n", 1024},
        {"input %x : float32[100000,64]\n%y = Softmax(%x)\noutput %y\n", 32},
        {"input %x : float32[100000,12]\n%y = Softmax(%x)\noutput %y\n", 0},
        {"input %x : float32[64,20000]\n%y = ReduceMean(%x) {axes=[0]}\noutput %y\n", 0},
    };
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        uint32_t group;
        assert_int_equal(shares_in(&large, nets[k].net, &group), nets[k].group > 0);
        if (nets[k].group > 0) assert_int_equal(group, nets[k].group);
        assert_false(shares_in(&none, nets[k].net, &group));
        assert_false(shares_in(&vectors, nets[k].net, &group));
    }
}

/* Compilers of Vulkan may take for granted that there is no NaN: comparisons that it is to pass ask
 * for it by its bits. */
static void nan_is_asked_for(void **state)
{
    (void)state;
    const ot_dg_target target = {.dialect = OT_DG_GLSL,
                                 .has_f64 = true,
                                 .has_i64 = true,
                                 .has_bytes = true,
                                 .layout = {.together = 32}};
    static const char *const calls[] = {"Relu(%x)",          "Max(%x, %x)",
                                        "Min(%x, %x)",       "Sign(%x)",
                                        "IsNaN(%x)",         "HardSigmoid(%x)",
                                        "Clip(%x, %l)",      "Clip(%x, %l, %l)",
                                        "GlobalMaxPool(%x)", "MaxPool(%x) {kernel_shape=[2, 2]}",
                                        "ReduceMin(%x)"};
    char net[300];
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        snprintf(net, sizeof net,
                 "input %%x : float32[1,2,3,4]\ninit %%l : float32[] = [1]\n%%y = %s\noutput "
                 "%%y\n",
                 calls[k]);
        ot_arena *a = ot_arena_new();
        const ot_dg_shader made = kernel_of(&target, net, a);
        if (!strstr(made.text, "is_nan(")) fail_msg("%s", calls[k]);
        ot_arena_free(a);
    }
}

/* A result too small for a GPU's units is cut into more work-items; a large one is not. Groups are
 * whole subgroups. */
static void small_results_keep_units_busy(void **state)
{
    (void)state;
    static const char *const small[] = {
        "input %x : float32[1,512,7,7]\ninit %w : float32[512,512,1,1] = random 1\n%y = Conv(%x, "
        "%w)\noutput %y\n",
        "input %x : float32[1,512]\ninit %w : float32[512,4000] = random 1\n%y = MatMul(%x, "
        "%w)\noutput %y\n"};
    static const char large[] = "input %x : float32[1,8,1024,1024]\ninit %w : float32[64,8,1,1] = "
                                "random 1\n%y = Conv(%x, %w)\noutput %y\n";
    const ot_device_facts few = {.units = 2}, many = {.units = 100};
    const ot_dg_layout one = ot_device_layout(&few), all = ot_device_layout(&many);
    assert_int_equal(all.busy, 50 * one.busy);
    uint32_t group;
    for (int k = 0; k < 2; k++) {
        const int64_t least = k == 0 ? 512 * 49 : 4000;
        assert_true(items_in(&one, small[k], &group) <= least / 4);
        assert_int_equal(items_in(&all, small[k], &group), least);
        assert_int_equal(group, k == 0 ? 32 : 8);
    }
    assert_int_equal(items_in(&all, large, &group), 1024 * 1024);
    assert_int_equal(group, 128);
}

int main(void)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(layouts_of_devices),
        cmocka_unit_test(transactions),
        cmocka_unit_test(small_results_keep_units_busy),
        cmocka_unit_test(remainders_of_negatives_are_spelled_out),
        cmocka_unit_test(what_groups_share),
        cmocka_unit_test(nan_is_asked_for),
        cmocka_unit_test(packing),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_convolutions_and_products),
        cmocka_unit_test(columns_are_packed),
        cmocka_unit_test(packed_weights_are_planned),
        cmocka_unit_test(lanes_are_spread_where_it_pays),
    };
    int failed = cmocka_run_group_tests_name("layouts", alone, NULL, NULL);
    cuda_load_stub();
    return failed + RUN_ON_EVERY_DEVICE(tests);
}
