/* Facts made by hand for the tests of the report's writers: every kind of member is filled, and
 * names are what a hostile model would choose.
 *
 *   in -> 0 Conv -> 1 Relu -> 2 Conv -> 3 MaxPool -> 4 GlobalAveragePool -> 5 Softmax -> 6 MatMul
 *         |--------- region 0, H x W ----------|     barrier                refused
 *   -> 7 Add -> out
 *      MatMul and Add: region 3, a0 (variant 0 only)
 *
 * Variant 1 is the same model after a change: another target, other times, region 0 cut along H
 * only, region 3 no more. Everything lives in the facts' arena: ot_facts_free.
 */
#ifndef OT_REPORT_SAMPLE_H
#define OT_REPORT_SAMPLE_H

#include "report/facts/facts.h"

#define SAMPLE_NODES 8

static const char *const SAMPLE_NAMES[SAMPLE_NODES] = {
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "ctl\x01\x1b[31m\ttab\nline\rreturn\x7f",
    "bad\xff\xc3 \xed\xa0\x80 \xef\xbf\xbf end",
    "=HYPERLINK(\"http://evil/\",\"x\")",
    "]]>--><!-- &amp; &#0; </svg></style><style>*{display:none}",
    "+cmd|' /C calc'!A0, \"quoted\"",
    "caf\xc3\xa9 \xe2\x80\xae \xf0\x9f\x90\x99 javascript:alert(1)",
};

#define SAMPLE_COPY(a, items) ot_memdup((a), (items), sizeof(items))
#define SAMPLE_COUNT(items)   ((uint32_t)(sizeof(items) / sizeof *(items)))
/* f->member and f->n_member. */
#define SAMPLE_SET(f, member, items) \
    ((f)->member = SAMPLE_COPY((f)->arena, items), (f)->n_##member = SAMPLE_COUNT(items))

static void sample_nodes(ot_facts *f, double scale)
{
    static const char *const ops[SAMPLE_NODES] = {
        "Conv", "Relu", "Conv", "MaxPool", "GlobalAveragePool", "Softmax", "MatMul", "Add"};
    ot_fact_node nodes[SAMPLE_NODES];
    for (uint32_t k = 0; k < SAMPLE_NODES; k++) {
        double x = k + 1;
        nodes[k] = (ot_fact_node){.name = SAMPLE_NAMES[k],
                                  .op = ops[k],
                                  .shape = k == 5 ? "" : "1x64x56x56",
                                  .depth = k,
                                  .region = OT_NONE,
                                  .barrier = OT_NONE,
                                  .refusal = OT_NONE,
                                  .is_fused = k == 1,
                                  .macs = k % 2 ? 0 : 231211008 * x,
                                  .out_bytes = 802816 * x,
                                  .traffic = 1605632.5 * x,
                                  .compute = 1e-4 * x * scale,
                                  .memory = 0.7e-4 * x,
                                  .overhead = 2e-6,
                                  .time = (1e-4 * x + 1.0 / 3e6) * scale,
                                  .measured = f->measured ? 1.1e-4 * x * scale : OT_ABSENT,
                                  .bound = (ot_bound)(k % 3)};
        if (k < 4) nodes[k].region = 0;
        if (k > 5 && f->n_regions > 1) nodes[k].region = 1;
    }
    nodes[4].barrier = 0;
    nodes[5].refusal = 0;
    SAMPLE_SET(f, nodes, nodes);
}

static void sample_edges(ot_facts *f)
{
    ot_fact_edge edges[SAMPLE_NODES + 2];
    for (uint32_t k = 0; k <= SAMPLE_NODES; k++)
        edges[k] = (ot_fact_edge){.from = k ? k - 1 : OT_NONE,
                                  .to = k < SAMPLE_NODES ? k : OT_NONE,
                                  .value = k ? SAMPLE_NAMES[k - 1] : "<in put>",
                                  .bytes = k == 6 ? OT_ABSENT : 802816.0 * (k + 1),
                                  .in_tiles = k >= 1 && k <= 3};
    edges[SAMPLE_NODES + 1] = (ot_fact_edge){0, 3, "second reader", 802816, false};
    SAMPLE_SET(f, edges, edges);
}

/* Candidates of region 0: all pairs of 1, 2, 4 tiles along H and W but 1 x 1; in variant 1 along
 * H only. */
static void sample_candidates(ot_facts *f, ot_fact_region *r)
{
    static const uint32_t counts[3] = {1, 2, 4};
    ot_fact_candidate list[8];
    uint32_t n = 0;
    for (uint32_t k = 8; k >= 1; k--) {
        uint32_t h = counts[k / 3], w = counts[k % 3];
        bool chosen = n == 0;
        if (r->n_dims == 1 && w > 1) continue;
        list[n++] = (ot_fact_candidate){
            .n_dims = r->n_dims,
            .axes = {"H", "W"},
            .tiles = {h, w},
            .tile = {56 / h, 56 / w},
            .form = k % 2 ? "scan" : "unrolled",
            .time = chosen ? r->time_tiled : r->time_tiled * (1 + 0.1 * (8 - k)),
            .traffic = r->traffic * (1 + 0.05 * k),
            .working_set = 4194304 / (int64_t)(h * w),
            .fits = h * w >= 4,
            .chosen = chosen,
            .on_front = k >= 7,
            .reason = chosen ? "least time of all that fit"
                             : "slower than the chosen one </title><script>alert(2)</script>"};
    }
    r->candidates = SAMPLE_COPY(f->arena, list);
    r->n_candidates = n;
}

static void sample_regions(ot_facts *f, int variant, double scale)
{
    static const uint32_t first[] = {0, 1, 2, 3}, second[] = {6, 7};
    const ot_fact_sum sums[] = {{7}};
    ot_fact_region regions[2] = {
        {.id = 0,
         .residence = "fits the 1.0 MiB cache",
         .nodes = first,
         .n_nodes = 4,
         .n_dims = variant ? 1 : 2,
         .axes = {"H", "W"},
         .tiles = {4, 4},
         .tile = {14, 14},
         .extent = {56, 56},
         .form = variant ? "scan" : "unrolled",
         .working_set = 262144,
         .working_set_bound = 260096,
         .capacity = f->fast_bytes,
         .fill = 262144 / (double)f->fast_bytes,
         .weights = 147456,
         .weights_stay = true,
         .time_untiled = 1.0e-3 * scale,
         .time_tiled = 6.5e-4 * scale,
         .benefit = 3.5e-4 * scale,
         .mac_ratio = 1.0625,
         .traffic_untiled = 16056325,
         .traffic = 3211264,
         .measured_untiled = f->measured ? 1.1e-3 : OT_ABSENT,
         .measured = f->measured ? 7e-4 * scale : OT_ABSENT,
         .error = f->measured ? 1.0 / 14 : OT_ABSENT,
         .bound_untiled = OT_BOUND_BANDWIDTH,
         .bound = OT_BOUND_COMPUTE},
        {.id = 3,
         .residence = "",
         .nodes = second,
         .n_nodes = 2,
         .n_dims = 1,
         .axes = {"a0"},
         .tiles = {8},
         .tile = {125},
         .extent = {1000},
         .form = "loop-peeled",
         .working_set = 300000,
         .working_set_bound = 300000,
         .capacity = f->fast_bytes,
         .fill = 300000 / (double)f->fast_bytes,
         .weights = 0,
         .time_untiled = 1.5e-3,
         .time_tiled = 1.6e-3,
         .benefit = -1e-4,
         .mac_ratio = 1,
         .traffic_untiled = 24084487.5,
         .traffic = 12042243.75,
         .measured_untiled = OT_ABSENT,
         .measured = OT_ABSENT,
         .error = OT_ABSENT,
         .bound_untiled = OT_BOUND_COMPUTE,
         .bound = OT_BOUND_OVERHEAD,
         .n_sums = 1},
    };
    const ot_scope_plan scopes[] = {{.scope = OT_SCOPE_UB,
                                     .capacity = 196608,
                                     .height = 114688,
                                     .lower_bound = 114688,
                                     .sum = 114688,
                                     .mode = OT_MEM_SEQUENTIAL,
                                     .level = OT_LEVEL_NONE,
                                     .n_buffers = 2,
                                     .proved = true},
                                    {.scope = OT_SCOPE_L0C,
                                     .capacity = 131072,
                                     .height = 65536,
                                     .lower_bound = 65536,
                                     .sum = 131072,
                                     .mode = OT_MEM_REUSE,
                                     .level = OT_LEVEL_2,
                                     .n_buffers = 2,
                                     .proved = true}};
    const ot_fact_block blocks[] = {
        {"conv <1>", "conv", "cube", "1x64x14x14", "1x64x7x14", 576, 288, 4, 200704, 512, 1.5e-6},
        {"relu", "relu", "vector", "1x64x14x14", "1x64x14x14", 0, 0, 1, 100352, 0, 1e-6}};
    regions[0].scopes = SAMPLE_COPY(f->arena, scopes);
    regions[0].n_scopes = 2;
    regions[0].blocks = SAMPLE_COPY(f->arena, blocks);
    regions[0].n_blocks = 2;
    regions[0].cores = "2 operations in 5 blocks: ub 112 KiB of 192 KiB";
    regions[1].sums = SAMPLE_COPY(f->arena, sums);
    f->regions = SAMPLE_COPY(f->arena, regions);
    f->n_regions = variant ? 1 : 2;
    if (f->regions) sample_candidates(f, &f->regions[0]);
}

static void sample_figures(ot_facts *f, double scale)
{
    ot_fact_card cards[] = {
        {"peak-memory", "Peak memory", "bytes", 9633792, 4816896, 3211264, 0.5,
         "planned; the bound is the most bytes alive at once", false},
        {"bytes-moved", "Bytes moved", "bytes", 40140812.5, 15253507.75, 12845056,
         15253507.75 / 40140812.5, "predicted <b>not bold</b>", false},
        {"time", "Time", "seconds", 3.6e-3 * scale, 3.15e-3 * scale, OT_ABSENT, 3.15 / 3.6,
         "predicted for the target", false},
        {"macs", "Multiply-accumulates", "macs", 3699376128, 3757179136, 3699376128,
         3757179136 / 3699376128.0, "halos are computed twice", false},
        {"zero", "Nothing before", "bytes", 0, 0, OT_ABSENT, OT_ABSENT, "", false},
    };
    ot_fact_roof roofs[] = {{"slow", "slow memory", 1e11 / scale, OT_ABSENT},
                            {"fast", "fast memory", 1.6e12, OT_ABSENT},
                            {"conv", "convolution", OT_ABSENT, 2.5e12}};
    ot_fact_point points[] = {
        {"region 0, untiled", 0, false, 924844032, 16056325, 1e-3, 57.6, 924844032e3, 0.37},
        {"region 0, tiled", 0, true, 982646784, 3211264, 6.5e-4, 306, 1.51e12, 0.6047}};
    SAMPLE_SET(f, cards, cards);
    SAMPLE_SET(f, roofs, roofs);
    SAMPLE_SET(f, points, points);
}

static void sample_entries(ot_facts *f, int variant, double scale)
{
    ot_fact_entry target[] = {
        {"name", "name", f->target, OT_ABSENT, ""},
        {"cores", "cores", "", variant ? 4 : 8, "count"},
        {"slow-bandwidth", "slow memory, bandwidth", "", 1e11 / scale, "bytes/s"},
        {"rate-conv", "rate of convolutions", "", 2.5e12, "ops/s"},
        {"overhead-node", "overhead of a node", "", 2e-6, "seconds"}};
    ot_fact_entry environment[] = {{"tool", "onnx-tile", f->version, OT_ABSENT, ""},
                                   {"cpu", "processor", "<Some> & \"CPU\"", OT_ABSENT, ""},
                                   {"threads", "threads", "", 2, "count"}};
    ot_fact_entry memory[] = {{"naive", "no buffer reused", "", 20070400, "bytes"},
                              {"planned", "planned", "", 9633792, "bytes"},
                              {"greedy", "greedy by size", "", 9700000, "bytes"}};
    static const ot_scope_plan scopes[] = {{.scope = OT_SCOPE_UB,
                                            .capacity = 196608,
                                            .height = 12288,
                                            .lower_bound = 12288,
                                            .sum = 40960,
                                            .mode = OT_MEM_REUSE,
                                            .level = OT_LEVEL_2,
                                            .n_buffers = 9,
                                            .rollbacks = 2,
                                            .restarts = 1,
                                            .n_upgraded = 1,
                                            .n_cross_pipe = 3,
                                            .proved = true},
                                           {.scope = OT_SCOPE_L1,
                                            .height = 600,
                                            .lower_bound = 500,
                                            .sum = 700,
                                            .mode = OT_MEM_SEQUENTIAL,
                                            .level = OT_LEVEL_NONE,
                                            .n_buffers = 2,
                                            .timed_out = true}};
    static const char *const warnings[] = {"3:1: buffer <b>dead</b> \x02 is never read",
                                           "second ]]> warning"};
    SAMPLE_SET(f, target_entries, target);
    SAMPLE_SET(f, environment, environment);
    SAMPLE_SET(f, memory_entries, memory);
    f->scopes = scopes;
    f->n_scopes = 2;
    f->warnings = warnings;
    f->n_warnings = 2;
}

static void sample_peak(ot_facts *f, int variant)
{
    static const ot_fact_entry peak[] = {
        {"peak-node", "At", "Conv <b>\x02\"quoted\"", OT_ABSENT, ""},
        {"peak-step", "Step", NULL, 4, "count"},
        {"peak-bytes", "Bytes", NULL, 802816 * 3, "bytes"},
        {"growth-bytes", "Process", NULL, 9e6, "bytes"},
        {"tiled-peak-bytes", "Tiled", NULL, 802816, "bytes"},
        {"time-seconds", "Time", NULL, 0.25, "seconds"}};
    static const ot_fact_alive alive[] = {
        {"</td><script>x</script>", "1x64x56x56", 802816, 0.5, 2, 3, true},
        {"bad\xff", "1x64x56x56", 401408, 0.25, 1, OT_NONE, false},
        {"(scratch of the operator)", "", 0, 0, 2, 2, false}};
    static const ot_fact_obstacle obstacles[] = {
        {"x", 802816, 4, "global-pool", "it reads & pools <all>", "nothing \"today\""},
        {"y", 1024, OT_NONE, "", "an output of the model has to exist", ""}};
    SAMPLE_SET(f, peak, peak);
    SAMPLE_SET(f, alive, alive);
    static const ot_fact_cure cures[] = {{"--max-slowdown 30", 6e6, 401408, 0.3},
                                         {"--shape '<in>=1,64'", OT_ABSENT, 401408, 0.25}};
    SAMPLE_SET(f, obstacles, obstacles);
    SAMPLE_SET(f, cures, cures);
    f->peak_region = variant == 0 ? 0 : OT_NONE;
    f->command = variant == 0 ? "onnx-tile 'a b.onnx' -o 'a b-tiled.onnx' --goal memory" : NULL;
    f->design = variant == 0 ? "in=1,64,56,56" : ""; /* a free size in one of them */
    f->design_guessed = variant == 0;
    f->stays_dynamic = variant == 1;
}

static void sample_maps(ot_facts *f)
{
    ot_fact_box before[SAMPLE_NODES], after[3] = {{"<in put>", 0, 2, 262144, 802816, 1},
                                                  {"working set of region 0", 1, 2, 0, 262144, 2},
                                                  {"onmouseover=alert(1) '\"", 2, 6, 0, 802816, 0}};
    for (uint32_t k = 0; k < SAMPLE_NODES; k++)
        before[k] = (ot_fact_box){SAMPLE_NAMES[k],  k,     k + 2, k % 2 ? 4816896 : 0,
                                  401408 * (k + 1), k == 7};
    ot_fact_map maps[2] = {{.id = "before",
                            .title = "Before",
                            .time_label = "nodes",
                            .steps = 9,
                            .boxes = SAMPLE_COPY(f->arena, before),
                            .n_boxes = SAMPLE_NODES,
                            .height = 9633792,
                            .lower_bound = 8028160,
                            .capacity = 0,
                            .proved = false},
                           {.id = "after",
                            .title = "After",
                            .time_label = "steps",
                            .steps = 6,
                            .boxes = SAMPLE_COPY(f->arena, after),
                            .n_boxes = 3,
                            .height = 1064960,
                            .lower_bound = 1064960,
                            .capacity = f->fast_bytes,
                            .proved = true}};
    SAMPLE_SET(f, maps, maps);
}

/* Of the original model and of the tiled one; names as a hostile driver, and a hostile model,
 * would have them. */
static void sample_devices(ot_facts *f, ot_bench_facts *b)
{
    static const ot_bench_transfer transfers[] = {{"upload", 2, 602112, 1.5e-4, 4e9, 0.8},
                                                  {"download", 1, 4000, 1e-5, 4e8, OT_ABSENT}};
    static const ot_bench_shader kernels[2][2] = {
        {{"Conv, Relu", 3, 5218304, 2.5e-3, 2.0873216e9}, {"Softmax", 1, 8000, 2e-5, 4e8}},
        {{"Conv, Relu", 48, 5918304, 2.6e-3, 2.27627077e9}, {"copy", 16, 65536, 4e-5, 1.6384e9}}};
    static const ot_bench_fallback fallbacks[] = {
        {"<b>Op</b>", "]]><script>alert(9)</script>", "has no \"kernel\" & more", 2}};
    ot_bench_device devices[2];
    for (int k = 0; k < 2; k++)
        devices[k] = (ot_bench_device){.side = k ? "tiled" : "original",
                                       .api = "opencl",
                                       .number = 1,
                                       .name = "<img src=x> & \"CPU\"",
                                       .planned = 12000000 - 5000000 * k,
                                       .arena = 9000000 - 5000000 * k,
                                       .live = 8100000 - 5000000 * k,
                                       .weights = 3000000,
                                       .peak = 12000000 - 5000000 * k,
                                       .budget = 2147483648,
                                       .n_made = 2 + k,
                                       .n_freed = k,
                                       .bytes_made = 12000000 - 4000000 * k,
                                       .bytes_freed = 1000000 * k,
                                       .fragmentation = k ? 0.225 : 0.1,
                                       .allocate_seconds = 3e-5,
                                       .span = 5e-3 - 1e-3 * k,
                                       .busy = 4e-3 - 1e-3 * k,
                                       .compile_seconds = k ? OT_ABSENT : 0.25,
                                       .n_device = 7 + 40u * (uint32_t)k,
                                       .n_host = 2 * (uint32_t)k,
                                       .n_launches = 4 + 60u * (uint32_t)k,
                                       .n_packed = 3,
                                       .n_blocked = 2,
                                       .n_spread = (uint32_t)k,
                                       .packed_bytes = 40960,
                                       .filled = 512,
                                       .blocked_bytes = 81920,
                                       .transactions = k ? 524288 : OT_ABSENT,
                                       .transactions_plain = k ? 1048576 : OT_ABSENT,
                                       .transactions_ideal = k ? 262144 : OT_ABSENT,
                                       .transfers = SAMPLE_COPY(f->arena, transfers),
                                       .n_transfers = SAMPLE_COUNT(transfers),
                                       .kernels = SAMPLE_COPY(f->arena, kernels[k]),
                                       .n_kernels = SAMPLE_COUNT(kernels[k]),
                                       .fallbacks = SAMPLE_COPY(f->arena, fallbacks),
                                       .n_fallbacks = k ? SAMPLE_COUNT(fallbacks) : 0};
    b->devices = SAMPLE_COPY(f->arena, devices);
    b->n_devices = SAMPLE_COUNT(devices);
}

static void sample_bench(ot_facts *f, double scale)
{
    static ot_bench_region regions[] = {{0, {1e-3, 6.5e-4}, {1.1e-3, 7e-4}},
                                        {3, {1.5e-3, 1.6e-3}, {0, 0}}};
    static ot_bench_output outputs[] = {
        {"out <1>", {.nmse = 1e-14, .max_abs = 2.5e-7, .max_rel = 1e-7, .same = true}},
        {"out 2", {.nmse = 0.5, .max_abs = 1, .max_rel = 1, .why = "shapes differ"}}};
    ot_bench_facts b = {.model = f->model,
                        .tiled = NULL,
                        .target = f->target,
                        .threads = 2,
                        .runs = 20,
                        .counted = true,
                        .regions = regions,
                        .n_regions = 2,
                        .outputs = outputs,
                        .n_outputs = 2,
                        .same = false,
                        .region_error = 1.0 / 14,
                        .resident = 123456789};
    for (int k = 0; k < 2; k++)
        b.side[k] = (ot_bench_side){.name = k ? "tiled" : "original",
                                    .time = {4e-3 * scale, 4.1e-3 * scale, 4.5e-3, 5e-3 - 1e-3 * k},
                                    .figures = {9633792, 10000000 - 4000000 * k, 25000000, 8, 1, 0},
                                    .bytes = {1e6, 0, 3e7 - 2e7 * k, 1},
                                    .references = 1e6,
                                    .misses = 12345,
                                    .predicted = 3.6e-3};
    sample_devices(f, &b);
    f->bench = ot_memdup(f->arena, &b, sizeof b);
    f->region_error = b.region_error;
}

/* Of `bench`, everything filled. NULL when memory ran out (some members may be missing then,
 * too: tests do not run out). */
static inline ot_facts *report_sample(int variant)
{
    double scale = variant ? 0.5 : 1;
    ot_arena *a = ot_arena_new();
    ot_facts *f = a ? OT_NEW(a, ot_facts) : NULL;
    if (!f) return NULL;
    *f = (ot_facts){.arena = a,
                    .unknown_sizes = "",
                    .missed = "",
                    .slow_nodes = "",
                    .kind = OT_FACTS_BENCH,
                    .version = "0.1.0",
                    .model = "mo<d>el & \"sons\".onnx",
                    .output = variant ? NULL : "tiled'\x02.onnx",
                    .target = variant ? "host" : "ch<i>p \"A&B\"",
                    .goal = "time",
                    .fast_bytes = 524288,
                    .measured = true};
    sample_regions(f, variant, scale);
    sample_nodes(f, scale);
    sample_edges(f);
    sample_figures(f, scale);
    sample_entries(f, variant, scale);
    sample_maps(f);
    sample_peak(f, variant);
    sample_bench(f, scale);

    static const uint32_t refused[] = {5};
    ot_fact_barrier barriers[] = {{4, "whole-input",
                                   "reads all of its input <script>alert(3)</script>",
                                   "a rule for its \"axes\" & more"}};
    ot_fact_refusal refusals[] = {
        {refused, 1, "not-faster", "tiles would cost more than they save: ]]>", ""}};
    SAMPLE_SET(f, barriers, barriers);
    SAMPLE_SET(f, refusals, refusals);
    return f;
}

/* Nothing but what every report has: an empty plan. */
static inline ot_facts *report_sample_empty(ot_fact_kind kind)
{
    ot_arena *a = ot_arena_new();
    ot_facts *f = a ? OT_NEW(a, ot_facts) : NULL;
    if (f)
        *f = (ot_facts){.arena = a,
                        .unknown_sizes = "",
                        .missed = "",
                        .slow_nodes = "",
                        .kind = kind,
                        .version = "0.1.0",
                        .model = "empty.onnx",
                        .target = "host",
                        .goal = "time",
                        .fast_bytes = 524288,
                        .region_error = OT_ABSENT};
    return f;
}

#endif
