/* What tile languages declare besides plain buffers: texts that are read and printed, sizes that
 * are solved, memories that are chosen, pools that are packed, addresses that are checked. */
#include "kernel_check.h"

#include "tk/planmem/planmem.h"

/* One of each, as it is printed. */
static const char KINDS[] = "kernel kinds target \"h200\" sync=explicit {\n"
                            "  size n <= 4096\n"
                            "  pool P max=1048576 block=4096 @shared\n"
                            "  param x: [n, 128] f16 @gm\n"
                            "  param h: [n, 128] f16 @host\n"
                            "  empty y: [n, 128] f16 @gm\n"
                            "  var i: i32 = 1\n"
                            "  var j: f32\n"
                            "  barrier b arrive=128\n"
                            "  alloc t: 128x64 f32 @tmem warp=3\n"
                            "  alloc big: 256x256 f16 @shared.dyn multi=2\n"
                            "  alloc p: 64x64 f16 from P\n"
                            "  alloc a: 16x16 f32 @auto\n"
                            "  alloc l: 4 f32 @local\n"
                            "  reducer r: 16 f32 op=max replication=none\n"
                            "  reducer s: 16x4 f32 op=sum\n"
                            "  descriptor d: u64 wgmma\n"
                            "  descriptor e: u64 tcgen05\n"
                            "  descriptor g: u32 tcgen05.instruction\n"
                            "  load p <- x[0:64, 0:64] stream=in1\n"
                            "  wait.vector in1 keep=2\n"
                            "  wait.cube b\n"
                            "  arrive.dma_in b\n"
                            "  fence\n"
                            "  copy.dma_in y <- h\n"
                            "  parallel for k in 0..n step 64 {\n"
                            "    a = vector.fill(value=-inf)\n"
                            "    a = vector.conv(a, a, pad=[0, 1, 0, 1], alpha=0.125)\n"
                            "  }\n"
                            "  r = vector.fill(value=-inf)\n"
                            "  check is_aligned(p, 4096)\n"
                            "  check address_of(big) == 4096\n"
                            "  free t warp=3\n"
                            "}\n";

static void reads_and_prints(void **state)
{
    (void)state;
    ot_kernel *k = parse(KINDS);
    char *text = round_trip(k);
    assert_string_equal(text, KINDS);
    free(text);
    ot_kernel_free(k);
}

/* The five calls of a var, and other spellings. */
static void other_spellings(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"var a: i32 = 1", "var a: i32 = 1"},
        {"var a: i32 @local.var", "var a: i32"},
        {"var a: i32 = 1 @local.var", "var a: i32 = 1"},
        {"var a: i32 @local.var init=1", "var a: i32 = 1"},
        {"var a: i32 init=1", "var a: i32 = 1"},
        {"var a: f32 = -2.5e-3", "var a: f32 = -0.0025"},
        {"alloc a: 4 f32 @global", "alloc a: 4 f32 @gm"},
        {"alloc a: 4 f32 @local.fragment", "alloc a: 4 f32 @fragment"},
        {"descriptor a: u64 utcmma", "descriptor a: u64 tcgen05"},
        {"alloc a: [2, 3] f32 @ub", "alloc a: 2x3 f32 @ub"},
        {"block { alloc a: 4 f32 @ub }", "alloc a: 4 f32 @ub\n  free a"},
        {"alloc var: 4 f32 @ub\n  var = vector.fill()",
         "alloc var: 4 f32 @ub\n  var = vector.fill()"},
        {"alloc pool: 4 f32 @ub\n  alloc size: 4 f32 @ub\n  pool, size = vector.f()",
         "alloc pool: 4 f32 @ub\n  alloc size: 4 f32 @ub\n  pool, size = vector.f()"},
        {"alloc stream: 4 f32 @ub\n  load stream <- x\n  stream = vector.relu(stream)",
         "alloc stream: 4 f32 @ub\n  load stream <- x\n  stream = vector.relu(stream)"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char text[400], want[400];
        snprintf(text, sizeof text, "kernel k {\n  param x: 4 f32 @gm\n  %s\n}\n", pairs[i][0]);
        snprintf(want, sizeof want, "kernel k {\n  param x: 4 f32 @gm\n  %s\n}\n", pairs[i][1]);
        ot_kernel *k = parse(text);
        char *got = round_trip(k);
        assert_string_equal(got, want);
        free(got);
        ot_kernel_free(k);
    }
}

/* Damaged texts: refused with a place, or read, printed and read again. */
static void damage_is_answered(void **state)
{
    (void)state;
    seed_from_environment();
    size_t n = strlen(KINDS), good = 0;
    for (int round = 0; round < 30000; round++) {
        char text[2 * sizeof KINDS], *cut;
        ot_diag d = {0};
        ot_kernel *k = NULL;
        memcpy(text, KINDS, n + 1);
        for (uint32_t edits = 1 + below(3); edits > 0; edits--) {
            size_t len = strlen(text);
            char *from = text + below((uint32_t)len), *to = text + below((uint32_t)len);
            uint32_t what = below(4), m = 1 + below(12);
            if (what == 0) *from = KINDS[below((uint32_t)n)];
            if (what == 1 && (cut = strchr(from, '\n')) && (to = strchr(cut + 1, '\n')))
                memmove(cut, to, strlen(to) + 1);
            if (what == 2 && (size_t)(from - text) + m < len && (size_t)(to - text) + m < len)
                memmove(to, from, m);
            if (what == 3 && (size_t)(from - text) + m < len)
                memmove(from, from + m, strlen(from + m) + 1);
        }
        ot_status s = ot_kernel_parse("k.tk", text, strlen(text), &d, &k);
        if (s == OT_OK) {
            free(round_trip(k));
            good++;
        } else if (s != OT_E_INPUT || strncmp(d.message, "k.tk:", 5) != 0) {
            fail_msg("%s\n%s", d.message, text);
        }
        ot_kernel_free(k);
    }
    print_message("%zu of 30000 damaged texts are kernels\n", good);
    assert_true(good > 300);
}

static ot_tk_machine target_of(int64_t ub)
{
    ot_tk_machine t = {.name = "test"};
    for (int s = 0; s < OT_SCOPE_COUNT; s++) t.scopes[s].alignment = 32;
    t.scopes[OT_SCOPE_UB].bytes = ub;
    return t;
}

static ot_status plan_text(const char *text, int64_t ub, const ot_tk_binding *given, uint32_t n,
                           ot_arena *a, ot_diag *d, ot_mem_text *m, ot_kernel **k, ot_mem_plan **p)
{
    static ot_tk_machine t;
    static ot_mem_options o;
    t = target_of(ub);
    o = (ot_mem_options){.threads = 1};
    *m = (ot_mem_text){.path = "k.tk",
                       .text = text,
                       .n = strlen(text),
                       .given = given,
                       .n_given = n,
                       .target = &t,
                       .options = &o};
    return ot_mem_plan_text(m, a, d, k, p);
}

static const char TILED[] = "kernel k {\n  size n <= 1000\n  size t = auto multiple=8 <= 512\n  "
                            "param x: [n, 32] f32 @gm\n  param y: [n, 32] f32 @gm\n"
                            "  for i in 0..n step t {\n    alloc a: [t, 32] f32 @ub multi=2\n    "
                            "load a <- x[i:i+t, 0:32]\n    store y[i:i+t, 0:32] <- a\n  }\n}\n";

/* The largest multiple that fits, found by trying all. */
static void sizes_are_solved(void **state)
{
    (void)state;
    for (int64_t ub = 2048; ub < 200000; ub += 7777) {
        ot_arena *a = ot_arena_new();
        ot_kernel *k;
        ot_mem_plan *p;
        ot_diag d = {0};
        ot_mem_text m;
        int64_t want = ot_min(512, ub / 256 / 8 * 8); /* two slots of 128 bytes a row */
        ot_status s = plan_text(TILED, ub, NULL, 0, a, &d, &m, &k, &p);
        if (s != OT_OK) fail_msg("%s", d.message);
        assert_int_equal(k->sizes[1].value, want);
        assert_int_equal(m.n_notes, 1);
        ot_mem_plan_free(p);
        ot_kernel_free(k);
        ot_arena_free(a);
    }
}

static void sizes_are_given(void **state)
{
    (void)state;
    ot_arena *a = ot_arena_new();
    ot_kernel *k;
    ot_mem_plan *p;
    ot_diag d = {0};
    ot_mem_text m;
    const ot_tk_binding given[] = {{"n", 100}, {"t", 24}};
    if (plan_text(TILED, 100000, given, 2, a, &d, &m, &k, &p) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(k->values[0].dims[0], 100);
    assert_int_equal(k->stmts[0].hi, 100);
    assert_int_equal(k->stmts[0].step, 24);
    assert_int_equal(p->lifetimes->buffers[0].size, 24 * 128);
    ot_mem_plan_free(p);
    ot_kernel_free(k);
    const ot_tk_binding wrong[] = {{"q", 100}};
    assert_int_equal(plan_text(TILED, 100000, wrong, 1, a, &d, &m, &k, &p), OT_E_USAGE);
    d = (ot_diag){0};
    /* not even 8 rows */
    assert_int_equal(plan_text(TILED, 1000, NULL, 0, a, &d, &m, &k, &p), OT_E_BUDGET);
    ot_arena_free(a);
}

/* By size and use: near, in a register, or not at all. */
static void memories_are_chosen(void **state)
{
    (void)state;
    const char *text = "kernel k {\n  param x: 64x64 f32 @gm\n  alloc one: 1 f32 @auto\n  alloc "
                       "twice: 64x64 f32 @auto\n  alloc once: 64x64 f32 @auto\n"
                       "  alloc large: 256x64 f32 @auto\n  one = vector.fill()\n  load twice <- "
                       "x\n  twice = vector.add(twice, one)\n  store large[0:64, 0:64] <- twice\n"
                       "  load once <- x\n  copy large <- once\n}\n";
    ot_arena *a = ot_arena_new();
    ot_kernel *k;
    ot_mem_plan *p;
    ot_diag d = {0};
    ot_mem_text m;
    if (plan_text(text, 65536, NULL, 0, a, &d, &m, &k, &p) != OT_OK) fail_msg("%s", d.message);
    const ot_scope want[] = {OT_SCOPE_GM, OT_SCOPE_VAR, OT_SCOPE_UB, OT_SCOPE_GM, OT_SCOPE_GM};
    for (uint32_t v = 0; v < 5; v++) assert_int_equal(k->values[v].scope, want[v]);
    assert_int_equal(m.n_notes, 4);
    assert_non_null(
        strstr(m.notes[2], "'once' (16384 bytes, touched by 2 statements) is in gm: used once"));
    ot_mem_plan_free(p);
    ot_kernel_free(k);
    ot_arena_free(a);
}

/* Members lie in their pool, block by block, and the pool where nothing else is. */
static void pools_are_packed(void **state)
{
    (void)state;
    seed_from_environment();
    for (int round = 0; round < 300; round++) {
        char text[4000];
        int n = 0, members = 2 + (int)below(6);
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "kernel k {\n  pool P max=64K block=1K @ub\n  param x: 64x64 f32 @gm\n  "
                      "param y: 64x64 f32 @gm\n");
        for (int i = 0; i < members; i++)
            n += snprintf(text + n, sizeof text - (size_t)n,
                          "  alloc a%d: %dx64 f32 %s\n  load a%d <- x[0:%d, 0:64]\n", i,
                          1 + (int)below(20), below(4) ? "from P" : "@ub", i, 1);
        for (int i = 0; i < members; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, "  store y[0:1, 0:64] <- a%d\n", i);
        snprintf(text + n, sizeof text - (size_t)n, "}\n");
        ot_arena *a = ot_arena_new();
        ot_kernel *k;
        ot_mem_plan *p;
        ot_diag d = {0};
        ot_mem_text m;
        ot_status s = plan_text(text, 1 << 20, NULL, 0, a, &d, &m, &k, &p);
        if (s != OT_OK) fail_msg("%s\n%s", d.message, text);
        int64_t low = INT64_MAX, high = 0;
        const ot_lifetimes *l = p->lifetimes;
        for (uint32_t i = 0; i < l->n_buffers; i++) {
            if (!l->buffers[i].pool) continue;
            low = ot_min(low, p->offsets[i][0]);
            high = ot_max(high, p->offsets[i][0] + l->buffers[i].size);
        }
        for (uint32_t i = 0; i < l->n_buffers; i++) {
            int64_t at = p->offsets[i][0];
            if (l->buffers[i].pool && (at - low) % 1024 != 0)
                fail_msg("not on a block's edge\n%s", text);
            if (!l->buffers[i].pool && at < high && low < at + l->buffers[i].size)
                fail_msg("inside the pool\n%s", text);
        }
        assert_true(high == 0 || high <= low + 65536);
        ot_mem_plan_free(p);
        ot_kernel_free(k);
        ot_arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_prints), cmocka_unit_test(damage_is_answered),
        cmocka_unit_test(other_spellings),  cmocka_unit_test(sizes_are_solved),
        cmocka_unit_test(sizes_are_given),  cmocka_unit_test(memories_are_chosen),
        cmocka_unit_test(pools_are_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
