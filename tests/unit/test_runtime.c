/* Runtimes: every table is sane, every form that one accepts has a price, and what was measured
 * on CPUs stays there. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx/import/import.h"
#include "ops/quirks.h"
#include "cost/cost.h"

static ot_target preset(const char *name)
{
    static ot_diag d;
    ot_target t;
    if (ot_target_load(name, 0, &d, &t) != OT_OK) fail_msg("%s", d.message);
    return t;
}

/* ---- the tables ---- */

static void fields_are_sane(void **state)
{
    (void)state;
    for (size_t k = 0; k < OT_RUNTIMES; k++) {
        const ot_runtime *r = ot_runtimes[k];
        assert_ptr_equal(ot_runtime_named(r->name), r); /* names are unique */
        assert_true(*r->title && (r->bit & ~OT_BY_ALL) == 0);
        assert_true(r->forms != 0 && (r->forms & 1u << OT_FORM_NONE) == 0);
        assert_true(r->overlap >= 0 && r->overlap <= 1 && r->weights_seen >= 0 &&
                    r->weights_seen <= 1);
        assert_true(r->recompute >= 1 && r->recompute_forced >= r->recompute && r->doubt >= 1 &&
                    r->short_rows >= 1);
        assert_true(r->about >= 0 && r->about < 0.5);
        assert_true(r->conv.transposed_part > 0 && r->conv.transposed_part <= 1 &&
                    r->conv.bytes_part >= 0 && r->conv.bytes_part <= 1);
        assert_true(!r->conv.winograd || (r->conv.block > 0 && r->conv.direct_part > 0));
        assert_true(
            !r->blocks.has_blocks ||
            (r->blocks.border_into > 0 && r->blocks.border_out_of > 0 && r->blocks.copies >= 0));
        assert_true(r->node_bytes >= 0);
        assert_true(!r->blocks.has_blocks ||
                    (r->blocks.n_makes > 0 && r->blocks.into > 0 && r->blocks.out_of > 0));
        assert_true(r->blocks.crop > 0 && r->blocks.crop_blocked >= r->blocks.crop);
        for (uint32_t j = 0; j < r->n_slow; j++) assert_true(r->slow[j].factor > 0);
        for (uint32_t j = 1; j < r->conv.n_few; j++)
            assert_true(r->conv.few[j].below > r->conv.few[j - 1].below);
        /* What reads a whole number of blocks of many channels loses nothing. */
        assert_true(ot_runtime_conv_part(r, 64, 64, 0) == 1);
    }
    assert_null(ot_runtime_named("nobody"));
}

static void targets_have_runtimes(void **state)
{
    (void)state;
    const struct {
        const char *target;
        const ot_runtime *r, *emitting;
    } rows[] = {
        {"host", ot_runtime_with_lanes(&ot_runtime_onnxruntime, ot_cpu_lanes()),
         &ot_runtime_engine},
        {"cpu-generic", &ot_runtime_onnxruntime, &ot_runtime_engine},
        {"h200", &ot_runtime_gpu, &ot_runtime_engine_device},
        {"ascend-a2", &ot_runtime_gpu, &ot_runtime_engine_device},
        {"ethos-u55", &ot_runtime_device, &ot_runtime_device_while},
        {"mcu-512k", &ot_runtime_device, &ot_runtime_device_while},
        {"tlf-16m", &ot_runtime_device_plain, &ot_runtime_device_while_plain},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        ot_target t = preset(rows[k].target);
        assert_ptr_equal(t.runtime, rows[k].r);
        ot_target_set_engine(&t);
        assert_ptr_equal(t.runtime, rows[k].emitting);
        ot_target_set_engine(&t); /* once more changes nothing */
        assert_ptr_equal(t.runtime, rows[k].emitting);
    }
    const ot_runtime *narrow = ot_runtime_with_lanes(&ot_runtime_onnxruntime, 8);
    assert_int_equal(narrow->conv.block, 8);
    assert_int_equal(narrow->blocks.least, 8);
    assert_string_equal(narrow->name, "onnxruntime");
    assert_ptr_equal(ot_runtime_with_lanes(narrow, 8), narrow);
    assert_ptr_equal(ot_runtime_with_lanes(&ot_runtime_onnxruntime, 16), &ot_runtime_onnxruntime);
    assert_ptr_equal(ot_runtime_with_lanes(&ot_runtime_onnxruntime, 0), &ot_runtime_onnxruntime);
    assert_ptr_equal(ot_runtime_with_lanes(&ot_runtime_device, 8), &ot_runtime_device);
    const ot_runtime *plugin = ot_runtime_with_lanes(&ot_runtime_openvino, 8);
    assert_int_equal(plugin->conv.block, 8);
    assert_string_equal(plugin->name, "openvino");
    assert_true(plugin->one_block && plugin->folds_norms);
    assert_ptr_equal(ot_runtime_with_lanes(&ot_runtime_openvino, 16), &ot_runtime_openvino);
    assert_ptr_equal(ot_runtime_of(true, true), &ot_runtime_onnxruntime);
    assert_ptr_equal(ot_runtime_of(true, false), &ot_runtime_gpu_plain);
    assert_ptr_equal(ot_runtime_of(false, true), &ot_runtime_device);
    assert_ptr_equal(ot_runtime_of(false, false), &ot_runtime_device_plain);
}

/* --runtime takes six names; scratchpads have a runtime of their own, and the engine's. */
static void runtimes_are_asked_for(void **state)
{
    (void)state;
    static const char *const asked[] = {"onnxruntime", "openvino", "loop", "portable"};
    char names[256];
    ot_diag d = {0};
    for (size_t k = 0; k < 4; k++) {
        ot_target host = preset("cpu-generic"), npu = preset("ethos-u55");
        assert_int_equal(ot_target_set_runtime(&host, asked[k], &d), OT_OK);
        assert_string_equal(host.runtime->name, asked[k]);
        assert_true(ot_runtime_drives(host.runtime, true) &&
                    !ot_runtime_drives(host.runtime, false));
        d = (ot_diag){0};
        assert_int_equal(ot_target_set_runtime(&npu, asked[k], &d), OT_E_USAGE);
        assert_non_null(strstr(d.message, "scratchpad"));
        assert_ptr_equal(npu.runtime, &ot_runtime_device);
        d = (ot_diag){0};
    }
    ot_target npu = preset("ethos-u55"), host = preset("cpu-generic");
    assert_int_equal(ot_target_set_runtime(&npu, "engine", &d), OT_OK);
    assert_ptr_equal(npu.runtime, &ot_runtime_device_while);
    assert_int_equal(ot_target_set_runtime(&host, "engine", &d), OT_OK);
    assert_ptr_equal(host.runtime, &ot_runtime_engine);
    assert_int_equal(ot_target_set_runtime(&host, "engine-device", &d), OT_OK);
    ot_target_set_engine(&host); /* it takes the engine's form already */
    assert_ptr_equal(host.runtime, &ot_runtime_engine_device);
    assert_int_equal(ot_target_set_runtime(&npu, "engine-device", &d), OT_E_USAGE);
    d = (ot_diag){0};
    assert_null(ot_runtime_asked("gpu", names, sizeof names));
    assert_string_equal(names, "onnxruntime, openvino, loop, portable, engine, engine-device");
    assert_int_equal(ot_target_set_runtime(&host, "device", &d), OT_E_USAGE);
    assert_non_null(strstr(d.message, names));
}

static void has_overheads(const ot_target *t, const ot_overheads *o)
{
    assert_true(t->node_overhead == o->node && t->loop_overhead == o->loop &&
                t->region_overhead == o->region);
}

/* This machine says nothing of overheads: those of the runtime's table count, by default too.
 * What a preset says counts for its own runtime, and for those that start operators alike. */
static void overheads_are_the_runtimes(void **state)
{
    (void)state;
    static const char *const names[] = {"openvino", "onnxruntime", "portable", "engine"};
    ot_target host = preset("host"), cpu = preset("cpu-generic"), chip = preset("h200");
    const ot_overheads said = {cpu.node_overhead, cpu.loop_overhead, cpu.region_overhead},
                       launch = {chip.node_overhead, chip.loop_overhead, chip.region_overhead};
    ot_diag d = {0};
    has_overheads(&host, ot_runtime_onnxruntime.overheads);
    assert_true(said.loop != ot_runtime_onnxruntime.overheads->loop && launch.node > 0);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        assert_int_equal(ot_target_set_runtime(&host, names[k], &d), OT_OK);
        has_overheads(&host, host.runtime->overheads);
        assert_int_equal(ot_target_set_runtime(&cpu, names[k], &d), OT_OK);
        has_overheads(&cpu, cpu.runtime->overheads == ot_runtime_onnxruntime.overheads
                                ? &said
                                : cpu.runtime->overheads);
    }
    ot_target_set_engine(&chip);
    has_overheads(&chip, ot_runtime_engine_device.overheads);
    ot_target npu = preset("ethos-u55");
    const double node = npu.node_overhead;
    ot_target_set_engine(&npu); /* a launch of the chip, whoever starts it */
    assert_true(node > 0 && npu.node_overhead == node);
}

/* What may be written out one by one is bounded where models must stay small. */
static void written_tiles_are_bounded(void **state)
{
    (void)state;
    assert_true(ot_runtime_writes_out(&ot_runtime_onnxruntime, 1e6));
    assert_true(ot_runtime_writes_out(&ot_runtime_portable, ot_runtime_portable.written_most));
    assert_false(
        ot_runtime_writes_out(&ot_runtime_portable, ot_runtime_portable.written_most + 1.0));
}

/* ---- forms ---- */

static ot_totals some_totals(bool grid, bool halo, bool outermost)
{
    return (ot_totals){.t_fast = 1e-3,
                       .t_mid = 2e-3,
                       .t_slow = 3e-3,
                       .nodes = 40,
                       .in_bytes = 1 << 22,
                       .in_slow = 1 << 22,
                       .in_seconds = 1e-4,
                       .out_bytes = 1 << 22,
                       .out_seconds = 1e-4,
                       .out_kept = 1 << 22,
                       .weights = 1 << 16,
                       .tiles = 8,
                       .n_dims = grid ? 2 : 1,
                       .chain = 5,
                       .ws = 1 << 20,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .halo = halo,
                       .outermost = outermost};
}

static void every_form_has_a_price(void **state)
{
    (void)state;
    for (size_t k = 0; k < OT_RUNTIMES; k++) {
        ot_target t = preset("cpu-generic");
        t.runtime = ot_runtimes[k];
        for (ot_form f = OT_FORM_SCAN; f <= OT_FORM_WHILE; f++) {
            if (!ot_runtime_takes(ot_runtimes[k], f)) continue;
            for (int bits = 0; bits < 8; bits++) {
                if (f == OT_FORM_SCAN && !(bits & 4)) continue; /* always outermost */
                ot_totals x = some_totals(bits & 1, bits & 2, bits & 4), twice = x;
                double time, traffic, longer;
                int64_t peak;
                ot_form_cost(&t, &x, f, &time, &traffic, &peak);
                assert_true(time > t.region_overhead && traffic >= x.in_slow + x.out_bytes);
                assert_true(peak >= (int64_t)x.out_bytes); /* the outputs themselves */
                twice.t_fast *= 2, twice.t_mid *= 2, twice.t_slow *= 2;
                ot_form_cost(&t, &twice, f, &longer, &traffic, &peak);
                assert_true(longer > time);
            }
        }
    }
}

/* The same tiles in a larger fast memory, below, at and above the size of the middle level. */
static void a_larger_fast_memory_makes_no_region_dearer(void **state)
{
    (void)state;
    for (size_t k = 0; k < OT_RUNTIMES; k++) {
        ot_target t = preset("cpu-generic");
        t.runtime = ot_runtimes[k];
        for (int64_t ws = 1 << 18; ws <= 1 << 26; ws += ws / 2) {
            ot_totals x = some_totals(false, false, true);
            double last = DBL_MAX, time, traffic;
            int64_t peak;
            x.ws = ws;
            for (int64_t fast = 1 << 17; fast <= 1 << 26; fast += fast / 4) {
                ot_target_set_l2(&t, fast);
                ot_form_cost(&t, &x, OT_FORM_UNROLLED, &time, &traffic, &peak);
                if (time > last + 1e-12)
                    fail_msg("%s, tiles of %lld bytes: %g s in %lld bytes, %g in less",
                             ot_runtimes[k]->name, (long long)ws, time, (long long)fast, last);
                last = time;
            }
        }
    }
}

/* ---- CPU habits ---- */

typedef struct figured {
    ot_diag d;
    ot_arena *a;
    ot_model *m;
    ot_target t;
    ot_seq s;
} figured;

static void figures(figured *x, const char *body, const char *target)
{
    char text[2048];
    snprintf(text, sizeof text, "model ir 8 opset 17\ngraph g {\n%s\n}\n", body);
    *x = (figured){.a = ot_arena_new(), .t = preset(target)};
    if (ot_text_parse(text, strlen(text), &x->d, &x->m) != OT_OK) fail_msg("%s", x->d.message);
    assert_int_equal(ot_infer_shapes(x->m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(x->m->graph, OT_P_ORDER | OT_P_USES | OT_P_SHAPES), OT_OK);
    assert_int_equal(ot_seq_build(x->m->graph, x->a, &x->s), OT_OK);
    assert_int_equal(ot_cost_fill(&x->s, &x->t), OT_OK);
}

static void close_figures(figured *x)
{
    ot_model_free(x->m);
    ot_arena_free(x->a);
}

static double compute_of(const figured *x, uint32_t p)
{
    ot_node_cost c;
    ot_cost_node(&x->s, p, &x->t, &c);
    return c.compute;
}

#define PRELU                                                                               \
    "input %x : float32[1,32,64,64]\ninit %a : float32[32,1,1] = random 1\n%y = PRelu(%x, " \
    "%a)\noutput %y"
#define CONVS                                                                                      \
    "input %x : float32[1,32,64,64]\ninit %w : float32[20,32,3,3] = random 1\n%y = Conv(%x, %w) "  \
    "{pads=[1,1,1,1]}\n"                                                                           \
    "init %v : float32[20,12,2,2] = random 2\n%z = ConvTranspose(%y, %v) {strides=[2,2]}\noutput " \
    "%z"

/* Element-wise at the rate of its class, but where ONNX Runtime on a CPU was measured. */
static void prelu_is_elementwise(void **state)
{
    (void)state;
    static const char *const names[] = {"h200",      "ascend-a2", "ascend-a2-16m",
                                        "ethos-u55", "mcu-512k",  "tlf-16m"};
    figured x;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        figures(&x, PRELU, names[k]);
        assert_true(compute_of(&x, 0) == 32 * 64 * 64 / x.t.rate_elem);
        close_figures(&x);
    }
    figures(&x, PRELU, "cpu-generic");
    assert_true(compute_of(&x, 0) == 25 * 32 * 64 * 64 / x.t.rate_elem);
    close_figures(&x);
}

/* No change of layout, no padding of blocks, no column buffers. */
static void conv_keeps_its_layout(void **state)
{
    (void)state;
    static const char *const names[] = {"h200",      "ascend-a2", "ascend-a2-16m",
                                        "ethos-u55", "mcu-512k",  "tlf-16m"};
    figured x;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        figures(&x, CONVS, names[k]);
        for (uint32_t p = 0; p < x.s.n; p++) {
            assert_true(x.s.extra[p] == 0 && x.s.work[p] == 0);
            assert_true(compute_of(&x, p) == x.s.macs[p] / x.t.rate_conv);
        }
        for (ot_id v = 0; v < x.m->graph->n_values; v++)
            assert_false(x.s.blocked[v] || ot_cost_blocked(&x.s, v, &x.t));
        assert_true(ot_cost_pack(&x.t, 1e6, 4) == 0);
        close_figures(&x);
    }
    figures(&x, CONVS, "cpu-generic");
    assert_true(x.s.extra[0] > 0 && x.s.work[1] > 0 &&
                compute_of(&x, 0) > x.s.macs[0] / x.t.rate_conv);
    close_figures(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_sane),
        cmocka_unit_test(targets_have_runtimes),
        cmocka_unit_test(runtimes_are_asked_for),
        cmocka_unit_test(written_tiles_are_bounded),
        cmocka_unit_test(overheads_are_the_runtimes),
        cmocka_unit_test(every_form_has_a_price),
        cmocka_unit_test(a_larger_fast_memory_makes_no_region_dearer),
        cmocka_unit_test(prelu_is_elementwise),
        cmocka_unit_test(conv_keeps_its_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
