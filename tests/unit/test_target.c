/* Targets: every preset is sane and survives the trip through XML; scaling; the host's caps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "machine/target/target.h"

static const char *const NAMES[] = {"host", "ascend-a2", "ascend-a2-16m", "tlf-16m",
                                    "h200", "ethos-u55", "mcu-512k",      "cpu-generic"};
#define N_NAMES (sizeof NAMES / sizeof *NAMES)

static ot_target load(const char *name, uint32_t threads)
{
    ot_target t;
    ot_diag d = {0};
    if (ot_target_load(name, threads, &d, &t) != OT_OK) fail_msg("%s: %s", name, d.message);
    return t;
}

static void presets_are_sane(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_NAMES; k++) {
        ot_target t = load(NAMES[k], 0);
        assert_string_equal(t.name, NAMES[k]);
        assert_true(t.fast_bytes >= 64 * 1024 && t.granule >= 1 && t.cores >= 1);
        assert_true(t.bw_fast >= t.bw_mid && t.bw_mid >= t.bw_slow && t.bw_slow > 0);
        assert_true(t.mid_bytes == 0 || t.mid_bytes > t.fast_bytes);
        assert_true(t.mid_bytes != 0 || t.bw_mid == t.bw_slow);
        const double rates[] = {
            t.rate_conv, t.rate_conv_depthwise, t.rate_conv_pointwise, t.rate_gemm,
            t.rate_elem, t.rate_trans,          t.rate_reduce,         t.rate_pool};
        for (size_t j = 0; j < sizeof rates / sizeof *rates; j++) assert_true(rates[j] > 0);
        assert_true(t.rate_conv_depthwise <= t.rate_conv && t.rate_trans <= t.rate_elem);
        assert_true(t.node_overhead >= 0 && t.loop_overhead >= 0 && t.region_overhead >= 0);
    }
}

static void xml_round_trip(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_NAMES; k++) {
        ot_target t = load(NAMES[k], 0);
        ot_diag d = {0};
        char path[] = "/tmp/ot_target_XXXXXX.xml";
        int fd = mkstemps(path, 4);
        FILE *f = fdopen(fd, "w");
        assert_non_null(f);
        assert_int_equal(ot_target_save(&t, f, &d), OT_OK);
        assert_int_equal(fclose(f), 0);
        ot_target u = load(path, 0);
        unlink(path);
        assert_string_equal(u.name, t.name);
        assert_string_equal(u.description, t.description);
        assert_int_equal(u.fast_bytes, t.fast_bytes);
        assert_int_equal(u.mid_bytes, t.mid_bytes);
        assert_int_equal(u.memory_bytes, t.memory_bytes);
        assert_int_equal(u.cores, t.cores);
        assert_int_equal(u.is_cache, t.is_cache);
        assert_int_equal(u.double_buffer, t.double_buffer);
        assert_ptr_equal(u.runtime, t.runtime);
        assert_int_equal(u.inplace_depthwise, t.inplace_depthwise);
        assert_true(u.bw_slow == t.bw_slow && u.bw_mid == t.bw_mid && u.bw_fast == t.bw_fast);
        assert_true(u.rate_pool == t.rate_pool && u.rate_conv == t.rate_conv &&
                    u.loop_overhead == t.loop_overhead);
        for (int s = 0; s < OT_SCOPE_COUNT; s++) {
            assert_int_equal(u.scopes[s].bytes, t.scopes[s].bytes);
            assert_int_equal(u.scopes[s].alignment, t.scopes[s].alignment);
        }
    }
}

static const char WITH_TRANSFERS[] =
    "<target name=\"gpu\" cores=\"16\">\n  <fast bytes=\"1048576\" bandwidth=\"1e12\" "
    "granule=\"64\" cache=\"true\" double-buffer=\"false\"/>\n"
    "  <slow bandwidth=\"2e11\"/>\n  <rates conv=\"1e12\" conv-depthwise=\"2e11\" "
    "conv-pointwise=\"1e12\" gemm=\"1e12\" elementwise=\"5e10\" "
    "transcendental=\"1e10\" reduction=\"5e10\" pooling=\"5e10\"/>\n  <overheads node=\"5e-6\" "
    "loop=\"1e-6\" region=\"5e-6\"/>\n  %s\n</target>\n";

static ot_status load_text(const char *transfers, ot_target *t, ot_diag *d)
{
    char path[] = "/tmp/ot_target_XXXXXX.xml";
    FILE *f = fdopen(mkstemps(path, 4), "w");
    assert_non_null(f);
    fprintf(f, WITH_TRANSFERS, transfers);
    assert_int_equal(fclose(f), 0);
    ot_status s = ot_target_load(path, 0, d, t);
    unlink(path);
    return s;
}

/* What a device's transfers cost: read, written and read again; left out, or refused. */
static void transfers_of_devices(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "<transfers upload=\"1e10\" upload-seconds=\"0\" download=\"1e10\"/>",
        "<transfers upload=\"0\" upload-seconds=\"0\" download=\"1e10\" download-seconds=\"0\"/>",
        "<transfers upload=\"1e10\" upload-seconds=\"2\" download=\"1e10\" "
        "download-seconds=\"0\"/>"};
    ot_target t, again;
    ot_diag d = {0};
    if (load_text("<transfers upload=\"1.5e10\" upload-seconds=\"8e-06\" download=\"1.25e10\" "
                  "download-seconds=\"9.5e-06\"/>",
                  &t, &d) != OT_OK)
        fail_msg("%s", d.message);
    assert_true(t.transfers.upload == 1.5e10 && t.transfers.download == 1.25e10);
    assert_true(t.transfers.upload_start == 8e-6 && t.transfers.download_start == 9.5e-6);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    assert_int_equal(ot_target_save(&t, f, &d), OT_OK);
    assert_int_equal(fclose(f), 0);
    const char *element = strstr(text, "<transfers ");
    assert_non_null(element);
    char *kept = strndup(element, strcspn(element, ">") + 1);
    assert_int_equal(load_text(kept, &again, &d), OT_OK);
    assert_memory_equal(&again.transfers, &t.transfers, sizeof t.transfers);
    free(kept);
    free(text);
    assert_int_equal(load_text("", &t, &d), OT_OK);
    assert_true(t.transfers.upload == 0 && t.transfers.download == 0);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_int_equal(load_text(wrong[k], &t, &d), OT_E_INPUT);
        assert_non_null(strstr(d.message, "<transfers"));
    }
}

static void check_scope(const char *target, ot_scope s, int64_t bytes, int64_t alignment)
{
    ot_target t = load(target, 0);
    if (t.scopes[s].bytes != bytes || t.scopes[s].alignment != alignment)
        fail_msg("%s, %s: %lld bytes, alignment %lld", target, ot_scope_name(s),
                 (long long)t.scopes[s].bytes, (long long)t.scopes[s].alignment);
}

/* The unified buffer is the one of the overflow message: 1572864 bits. */
static void scopes_of_presets(void **state)
{
    (void)state;
    static const char *const a2[] = {"ascend-a2", "ascend-a2-16m"};
    for (int k = 0; k < 2; k++) {
        check_scope(a2[k], OT_SCOPE_UB, 1572864 / 8, 32);
        check_scope(a2[k], OT_SCOPE_L1, 512 << 10, 32);
        check_scope(a2[k], OT_SCOPE_L0A, 64 << 10, 512);
        check_scope(a2[k], OT_SCOPE_L0B, 64 << 10, 512);
        check_scope(a2[k], OT_SCOPE_L0C, 128 << 10, 512);
        check_scope(a2[k], OT_SCOPE_BT, 1024, 64);
        check_scope(a2[k], OT_SCOPE_FP, 2048, 64);
        check_scope(a2[k], OT_SCOPE_L2, (k ? 16 : 192) << 20, 64);
        check_scope(a2[k], OT_SCOPE_GM, 64LL << 30, 256);
        check_scope(a2[k], OT_SCOPE_SHARED, 0, 128);
    }
    check_scope("h200", OT_SCOPE_SHARED, 232448, 128);
    check_scope("h200", OT_SCOPE_UB, 0, 32);
    check_scope("tlf-16m", OT_SCOPE_L2, 16 << 20, 256);
    check_scope("ethos-u55", OT_SCOPE_L2, 256 << 10, 16);
    check_scope("mcu-512k", OT_SCOPE_L2, 512 << 10, 8);
    check_scope("cpu-generic", OT_SCOPE_L2, 1 << 20, 64);
    check_scope("cpu-generic", OT_SCOPE_GM, 0, 64);
}

/* Whatever the target, l2 and gm are the fast and the slow memory, and no alignment is missing. */
static void scopes_follow_the_memories(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_NAMES; k++) {
        ot_target t = load(NAMES[k], 0);
        assert_int_equal(t.scopes[OT_SCOPE_L2].bytes, t.fast_bytes);
        assert_int_equal(t.scopes[OT_SCOPE_GM].bytes, t.memory_bytes);
        for (int s = 0; s < OT_SCOPE_COUNT; s++) assert_true(t.scopes[s].alignment >= 1);
        ot_target_set_l2(&t, 12345);
        assert_int_equal(t.fast_bytes, 12345);
        assert_int_equal(t.scopes[OT_SCOPE_L2].bytes, 12345);
    }
    ot_target host = load("host", 0);
    assert_int_equal(host.scopes[OT_SCOPE_GM].alignment, 64);
    assert_true(host.scopes[OT_SCOPE_GM].bytes > 0);
}

static void threads_scale_cpus_and_only_count_elsewhere(void **state)
{
    (void)state;
    ot_target one = load("cpu-generic", 1), eight = load("cpu-generic", 8);
    assert_int_equal(eight.fast_bytes, one.fast_bytes); /* private: a tile is shared by all cores */
    assert_true(eight.rate_conv == 8 * one.rate_conv);
    assert_true(eight.bw_slow > one.bw_slow && eight.bw_slow < 8 * one.bw_slow);
    ot_target chip = load("tlf-16m", 0), same = load("tlf-16m", 8);
    assert_int_equal(same.fast_bytes, chip.fast_bytes);
    assert_true(same.rate_conv == chip.rate_conv);
    assert_int_equal(same.cores, 8);
}

static void host_is_capped(void **state)
{
    (void)state;
    ot_target t = load("host", 2);
    assert_int_equal(t.cores, 2);
    assert_true(t.fast_bytes <= 4 * 1024 * 1024LL);
    assert_true(t.mid_bytes <= 64 * 1024 * 1024LL);
}

/* On the chip of the worked example, element-wise work must be bound by slow memory by a wide
 * margin. */
static void worked_example_is_bound_by_memory(void **state)
{
    (void)state;
    ot_target t = load("tlf-16m", 0);
    double elements = 1e9, traffic = 2 * 4 * elements / t.bw_slow, compute = elements / t.rate_elem;
    assert_int_equal(t.fast_bytes, 16 << 20);
    assert_int_equal(t.granule, 256);
    assert_true(t.double_buffer);
    assert_true(traffic > 10 * compute);
    assert_true(t.bw_fast >= 10 * t.bw_slow);
}

static void unknown_names_list_the_known(void **state)
{
    (void)state;
    ot_target t;
    ot_diag d = {0};
    assert_int_equal(ot_target_load("nope", 0, &d, &t), OT_E_USAGE);
    for (size_t k = 0; k < N_NAMES; k++) assert_non_null(strstr(d.message, NAMES[k]));
}

/* ---- <runtime>: measured factors ---- */

/* Files in the order of what the table below changes in GOOD. */
#define GOOD                                                                                  \
    "<target name='here' cores='1'><fast bytes='65536' bandwidth='1e11' granule='64' "        \
    "cache='true' double-buffer='false'/>"                                                    \
    "<slow bandwidth='1e10'/><rates conv='1e10' conv-depthwise='1e9' conv-pointwise='1e10' "  \
    "gemm='1e10' elementwise='1e9' "                                                          \
    "transcendental='1e8' reduction='1e9' pooling='1e9'/><overheads node='1e-6' loop='1e-6' " \
    "region='0'/>%s</target>"
#define FACTORS_GOOD                                                                          \
    "<runtime name='onnxruntime' overlap='0.25' run-seconds='5e-8' crop-blocked='4.5'><slow " \
    "op='PRelu' factor='3'/>"                                                                 \
    "<slow op='Resize' mode='linear' factor='7'/><few below='8' part='0.5'/><few below='32' " \
    "part='0.875'/></runtime>"

static ot_status read_text(const char *factors, ot_diag *d, ot_target *t)
{
    char path[] = "/tmp/ot_target_XXXXXX.xml";
    int fd = mkstemps(path, 4);
    FILE *f = fdopen(fd, "w");
    assert_non_null(f);
    assert_true(fprintf(f, GOOD, factors) > 0);
    assert_int_equal(fclose(f), 0);
    ot_status s = ot_target_load(path, 0, d, t);
    unlink(path);
    return s;
}

static ot_node node_of(ot_op op) { return (ot_node){.op = op}; }

static void check_factors(const ot_target *t)
{
    const ot_runtime *r = t->runtime;
    ot_node prelu = node_of(OT_OP_PRelu), erf = node_of(OT_OP_Erf);
    assert_string_equal(r->name, "onnxruntime");
    assert_true(r->overlap == 0.25 && r->run_seconds == 5e-8 && r->blocks.crop_blocked == 4.5);
    assert_true(r->blocks.into == ot_runtime_onnxruntime.blocks.into); /* not given */
    assert_true(ot_runtime_slowness(r, &prelu) == 3);
    assert_true(ot_runtime_slowness(r, &erf) == ot_runtime_slowness(&ot_runtime_onnxruntime, &erf));
    assert_true(ot_runtime_conv_part(r, 16, 4, 0) == 0.5 &&
                ot_runtime_conv_part(r, 16, 31, 0) == 0.875);
    assert_true(ot_runtime_conv_part(r, 16, 32, 0) == 1);
    assert_true(ot_runtime_conv_part(r, 16, 4, 1.5) == 0.75 &&
                ot_runtime_conv_part(r, 16, 31, 1.5) == 1);
    assert_int_equal(r->forms, ot_runtime_onnxruntime.forms);
}

static void factors_of_a_file(void **state)
{
    (void)state;
    ot_target t, u;
    ot_diag d = {0};
    if (read_text(FACTORS_GOOD, &d, &t) != OT_OK) fail_msg("%s", d.message);
    check_factors(&t);
    /* written and read back */
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_int_equal(ot_target_save(&t, f, &d), OT_OK);
    fclose(f);
    char *from = strstr(text, "<runtime"), *to = strstr(text, "</runtime>");
    assert_true(from && to);
    to[strlen("</runtime>")] = '\0';
    if (read_text(from, &d, &u) != OT_OK) fail_msg("%s", d.message);
    free(text);
    check_factors(&u);
    /* another runtime has its own table, this one its measured one again */
    assert_true(u.node_overhead == 1e-6 && u.region_overhead == 0);
    assert_int_equal(ot_target_set_runtime(&u, "openvino", &d), OT_OK);
    assert_ptr_equal(u.runtime, &ot_runtime_openvino);
    assert_true(u.loop_overhead == ot_runtime_openvino.overheads->loop && u.region_overhead > 0);
    assert_int_equal(ot_target_set_runtime(&u, "onnxruntime", &d), OT_OK);
    check_factors(&u);
    assert_true(u.loop_overhead == 1e-6 && u.region_overhead == 0);
    ot_target_set_engine(&t);
    assert_ptr_equal(t.runtime, &ot_runtime_engine);
    ot_target_free(&t);
    assert_ptr_equal(t.runtime, &ot_runtime_engine);
    ot_target_free(&u);
    assert_ptr_equal(u.runtime, &ot_runtime_onnxruntime);
    ot_target_free(&u);
}

/* Each thing that is wrong is told, in the order of the file. */
static void all_errors_at_once(void **state)
{
    (void)state;
    ot_target t;
    ot_diag d = {0};
    assert_int_equal(read_text("<runtime name='nobody'/><memory scope='ub' bytes='-1'/>"
                               "<memory scope='nowhere'/><memory bytes='1'/>",
                               &d, &t),
                     OT_E_INPUT);
    const char *says[] = {"<runtime name=\"nobody\">: must be", "; <memory bytes=\"-1\">: must be",
                          "; <memory scope=\"nowhere\">: must be one of ub, ",
                          "; <memory>: attribute 'scope' is missing"},
               *at = d.message;
    for (size_t k = 0; k < sizeof says / sizeof *says; k++) {
        at = strstr(at, says[k]);
        if (!at) fail_msg("'%s' is not told: %s", says[k], d.message);
    }
}

static void broken_factors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"<runtime/>", "<runtime>: attribute 'name' is missing"},
        {"<runtime name='nobody'/>",
         "<runtime name=\"nobody\">: must be a runtime of --list-runtimes"},
        {"<runtime name='engine'/>", "and not the engine"},
        {"<runtime name='gpu'/>", "must be a runtime of --list-runtimes"},
        {"<runtime name='onnxruntime' speed='1'/>", "<runtime>: no attribute 'speed' here"},
        {"<runtime name='onnxruntime' overlap='1.5'/>",
         "<runtime overlap=\"1.5\">: must be a number from 0 to 1"},
        {"<runtime name='onnxruntime' overlap=''/>", "must be a number from 0 to 1"},
        {"<runtime name='onnxruntime' doubt='nan'/>", "must be a number from 1 to 10"},
        {"<runtime name='onnxruntime'>words</runtime>", "<runtime>: text is not allowed here"},
        {"<runtime name='onnxruntime'><fast/></runtime>", "<runtime>: <fast> is not allowed here"},
        {"<runtime name='onnxruntime'><slow op='Nope' factor='2'/></runtime>",
         "<slow op=\"Nope\">: must be an operator"},
        {"<runtime name='onnxruntime'><slow op='Erf'/></runtime>",
         "<slow>: attribute 'factor' is missing"},
        {"<runtime name='onnxruntime'><slow op='Erf' factor='0'/></runtime>",
         "must be a number from 0.001 to 100000"},
        {"<runtime name='onnxruntime'><slow op='Erf' factor='2' x='1'/></runtime>",
         "<slow>: no attribute 'x' here"},
        {"<runtime name='onnxruntime'><slow op='Erf' factor='2'><a/></slow></runtime>",
         "<slow> must be empty"},
        {"<runtime name='onnxruntime'><slow op='Resize' mode='a very long mode of it' "
         "factor='2'/></runtime>",
         "is too long"},
        {"<runtime name='onnxruntime'><few below='8' part='1'/><slow op='Erf' "
         "factor='2'/></runtime>",
         "<slow> is not allowed here"},
        {"<runtime name='onnxruntime'><few below='8' part='1'/><few below='8' part='1'/></runtime>",
         "above that of the row before"},
        {"<runtime name='onnxruntime'><few below='8.5' part='1'/></runtime>",
         "must be a whole number"},
        {"<runtime name='onnxruntime'/><runtime name='onnxruntime'/>",
         "<runtime> is not allowed here"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        ot_target t;
        ot_diag d = {0};
        assert_int_equal(read_text(bad[k].text, &d, &t), OT_E_INPUT);
        if (!strstr(d.message, bad[k].says)) fail_msg("%s: %s", bad[k].text, d.message);
        assert_null(t.factors);
    }
}

/* A good file cut off anywhere, or with bytes changed: read or refused in one line, never
 * anything else. */
static void mutated_files(void **state)
{
    (void)state;
    char good[2048];
    int n = snprintf(good, sizeof good, GOOD, FACTORS_GOOD);
    assert_true(n > 0 && n < (int)sizeof good);
    uint32_t h = 12345;
    for (int k = 0; k < 3 * n; k++) {
        char text[2048], path[] = "/tmp/ot_target_XXXXXX.xml";
        size_t size = (size_t)(k < n ? k : n);
        memcpy(text, good, (size_t)n);
        for (int j = k < n ? 0 : 2; j > 0; j--) {
            h = h * 1664525u + 1013904223u;
            text[h % (uint32_t)n] = "<>'\"/=0e-Z &\xff"[(h >> 16) % 14];
        }
        int fd = mkstemps(path, 4);
        assert_int_equal(write(fd, text, size), size);
        close(fd);
        ot_target t;
        ot_diag d = {0};
        ot_status s = ot_target_load(path, 0, &d, &t);
        unlink(path);
        if (s != OT_OK && (s != OT_E_INPUT || !*d.message))
            fail_msg("change %d: status %d", k, (int)s);
        ot_target_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_are_sane),
        cmocka_unit_test(xml_round_trip),
        cmocka_unit_test(transfers_of_devices),
        cmocka_unit_test(scopes_of_presets),
        cmocka_unit_test(scopes_follow_the_memories),
        cmocka_unit_test(threads_scale_cpus_and_only_count_elsewhere),
        cmocka_unit_test(host_is_capped),
        cmocka_unit_test(worked_example_is_bound_by_memory),
        cmocka_unit_test(unknown_names_list_the_known),
        cmocka_unit_test(factors_of_a_file),
        cmocka_unit_test(all_errors_at_once),
        cmocka_unit_test(broken_factors),
        cmocka_unit_test(mutated_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
