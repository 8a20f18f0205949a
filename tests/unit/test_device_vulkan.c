/* Vulkan under the validation layer: transfers, kernels of GLSL, queues that wait for each
 * other, maps; and which memory type. */
#include "device_rig.h"

#include <pthread.h>

static const char ADD[] = "#version 450\n"
                          "layout(local_size_x = 16) in;\n"
                          "layout(set = 0, binding = 0) readonly buffer A { float a[]; };\n"
                          "layout(set = 0, binding = 1) readonly buffer B { float b[]; };\n"
                          "layout(set = 0, binding = 2) buffer C { float c[]; };\n"
                          "layout(push_constant) uniform P { int n; float by; };\n"
                          "shared float part[16];\n"
                          "void main()\n"
                          "{\n"
                          "    uint i = gl_GlobalInvocationID.x, l = gl_LocalInvocationID.x;\n"
                          "    part[l] = i < n ? a[i] + b[i] : 0.0;\n"
                          "    barrier();\n"
                          "    if (i < n) c[i] = part[l] * by;\n"
                          "}\n";

#define OPEN                                        \
    (void)state;                                    \
    ot_dev_queue q;                                 \
    ot_device *dev = open_validated(OT_DEV_VULKAN); \
    if (!dev) skip();                               \
    FINE(ot_dev_queue_new(dev, e, &q))

static ot_dev_program build(ot_device *dev)
{
    ot_dev_program p = {0};
    ot_device_error err = {0};
    if (ot_dev_program_new(dev, &(ot_dev_source){"add", OT_DEV_NATIVE, ADD, sizeof ADD - 1, NULL},
                           &err, &p) == OT_OK)
        return p;
    if (err.fault != OT_DEV_UNSUPPORTED) fail_msg("%s", err.message);
    print_message("skipped: %s\n", err.message);
    ot_device_close(dev);
    skip();
    return p;
}

static void kernels_compute(void **state)
{
    enum { N = 777 };
    float a[N], b[N], c[N];
    OPEN;
    ot_dev_queue q2;
    ot_dev_program p = build(dev), again;
    FINE(ot_dev_queue_new(dev, e, &q2));
    int64_t al = ot_device_about(dev)->alignment, each = (N * 4 + al - 1) / al * al;
    ot_dev_buffer arena = make_buffer(dev, "arena", 3 * each, OT_DEV_MEM_DEVICE);
    ot_dev_slice sa = part(arena, 0, N * 4), sb = part(arena, each, N * 4),
                 sc = part(arena, 2 * each, N * 4);
    for (int k = 0; k < N; k++) a[k] = (float)k, b[k] = (float)(k * k);
    ot_arena *mem = ot_arena_new();
    void *binary;
    size_t n;
    FINE(ot_dev_program_binary(dev, p, mem, e, &binary, &n));
    FINE(ot_dev_program_new(dev, &(ot_dev_source){"binary", OT_DEV_BINARY, binary, n, NULL}, e,
                            &again));
    FAULT(OT_DEV_COMPILE, "no SPIR-V",
          ot_dev_program_new(dev, &(ot_dev_source){"none", OT_DEV_BINARY, a, 40, NULL}, e,
                             &(ot_dev_program){0}));
    ot_dev_event up, added, done;
    FINE(ot_dev_upload(dev, q2, sa, a, NULL, e, NULL));
    FINE(ot_dev_upload(dev, q2, sb, b, NULL, e, &up));
    ot_dev_arg args[] = {ot_dev_reads(sa), ot_dev_reads(sb), ot_dev_writes(sc), ot_dev_i32(N),
                         ot_dev_f32(0.5f)};
    ot_dev_launch l = {
        .program = p, .entry = "add", .args = args, .n_args = 5, .groups = {(N + 15) / 16}};
    FINE(ot_dev_run(dev, q, &l, &(ot_dev_after){&up, 1}, e, NULL));
    l.program = again;
    args[0] = ot_dev_reads(sc); /* c = (c + b) / 2 */
    FINE(ot_dev_run(dev, q, &l, NULL, e, &added));
    FINE(ot_dev_download(dev, q2, c, sc, &(ot_dev_after){&added, 1}, e, &done));
    FINE(ot_dev_wait(dev, done, e));
    for (int k = 0; k < N; k++) assert_true(c[k] == ((a[k] + b[k]) * 0.5f + b[k]) * 0.5f);
    double start, end;
    assert_true(ot_dev_times(dev, added, &start, &end) && end >= start);
    args[4] = ot_dev_shared(16);
    FAULT(OT_DEV_UNSUPPORTED, "shared memory stands in the text",
          ot_dev_run(dev, q, &l, NULL, e, NULL));
    static const char wrong[] = "#version 450\nvoid main() { nothing(); }";
    ot_dev_source source = {"wrong", OT_DEV_NATIVE, wrong, sizeof wrong - 1, NULL};
    FAULT(OT_DEV_COMPILE,
          "program 'wrong': the compiler:", ot_dev_program_new(dev, &source, e, &again));
    ot_arena_free(mem);
    close_validated(dev);
}

static void transfers_and_maps_move_bytes(void **state)
{
    uint8_t in[1000], out[1000] = {0};
    OPEN;
    for (int k = 0; k < 1000; k++) in[k] = (uint8_t)(k * 7);
    ot_dev_buffer a = make_buffer(dev, "a", 1000, OT_DEV_MEM_DEVICE),
                  b = make_buffer(dev, "b", 1000, OT_DEV_MEM_HOST);
    ot_dev_event done;
    ot_dev_map m, inner;
    void *data;
    FINE(ot_dev_upload(dev, q, ot_dev_whole(dev, a), in, NULL, e, NULL));
    FINE(ot_dev_map_open(dev, ot_dev_whole(dev, b), OT_DEV_HOST_WRITES | OT_DEV_HOST_READS, e, &m,
                         &data));
    memset(data, 9, 1000);
    FINE(ot_dev_map_flush(dev, m, 10, 500, e));
    FINE(ot_dev_map_open(dev, part(b, 30, 100), OT_DEV_HOST_READS, e, &inner, &data));
    assert_int_equal(((uint8_t *)data)[99], 9);
    FAULT(OT_DEV_INVALID_OBJECT, "opened later", ot_dev_map_close(dev, m, e));
    FINE(ot_dev_map_close(dev, inner, e));
    FINE(ot_dev_map_close(dev, m, e));
    FINE(ot_dev_copy(dev, q, part(b, 100, 50), part(a, 3, 50), NULL, e, NULL));
    FINE(ot_dev_fill(dev, q, part(b, 200, 8), 0x01010101, NULL, e, NULL));
    FINE(ot_dev_download(dev, q, out, ot_dev_whole(dev, b), NULL, e, &done));
    FINE(ot_dev_wait(dev, done, e));
    for (int k = 0; k < 1000; k++)
        assert_int_equal(out[k], k >= 100 && k < 150 ? in[k - 97] : k >= 200 && k < 208 ? 1 : 9);
    FAULT(
        OT_DEV_NO_MEMORY_TYPE, "imports no memory",
        ot_dev_buffer_new(
            dev, &(ot_dev_buffer_options){.bytes = 8, .kind = OT_DEV_MEM_HOST, .host = in}, e, &a));
    FAULT(OT_DEV_NOT_HERE, "no Vulkan device 999",
          ot_device_open(OT_DEV_VULKAN, 999, NULL, e, &(ot_device *){0}));
    close_validated(dev);
}

static void memory_types_fall_back(void **state)
{
    (void)state;
    /* 1 device, 2 host, 4 coherent, 8 cached */
    const uint32_t flags[] = {0, 1, 2 | 4, 2 | 4 | 8, 1 | 2 | 4};
    assert_int_equal(dev_choose_memory(flags, 5, 31, 0, 1), 1);
    assert_int_equal(dev_choose_memory(flags, 5, 31, 2, 2 | 8), 3);
    /* without what is preferred */
    assert_int_equal(dev_choose_memory(flags, 5, 31 & ~8u, 2, 2 | 8), 2);
    assert_int_equal(dev_choose_memory(flags, 5, 31, 1 | 2, 1 | 2), 4);
    assert_int_equal(dev_choose_memory(flags, 5, 15, 1 | 2, 1 | 2), OT_NONE);
    assert_int_equal(dev_choose_memory(flags, 5, 0, 0, 0), OT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_types_fall_back),
                                       cmocka_unit_test(kernels_compute),
                                       cmocka_unit_test(transfers_and_maps_move_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
