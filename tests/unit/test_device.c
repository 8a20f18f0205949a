/* Devices through the layer: buffers, transfers, kernels, events, and each typed error, on what
 * OpenCL there is. */
#include "device_rig.h"

#include <pthread.h>

static const char KERNELS[] =
    "kernel void add(global const float *a, global const float *b, global float *c, int n, local "
    "float *scratch)\n"
    "{\n"
    "    int i = (int)get_global_id(0);\n"
    "    scratch[get_local_id(0)] = i < n ? a[i] + b[i] : 0.0f;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (i < n) c[i] = scratch[get_local_id(0)];\n"
    "}\n"
    "kernel void scale(global float *a, float by, long n)\n"
    "{\n"
    "    for (long i = (long)get_global_id(0); i < n; i += (long)get_global_size(0)) a[i] *= by;\n"
    "}\n";

static ot_dev_program build(ot_device *dev)
{
    ot_dev_program p;
    FINE(ot_dev_program_new(
        dev, &(ot_dev_source){"kernels", OT_DEV_NATIVE, KERNELS, sizeof KERNELS - 1, NULL}, e, &p));
    return p;
}

#define OPEN(options)                                  \
    ot_device *dev = open_rig(OT_DEV_OPENCL, options); \
    ot_dev_queue q;                                    \
    (void)state;                                       \
    if (!dev) skip();                                  \
    FINE(ot_dev_queue_new(dev, e, &q))

static void transfers_move_bytes(void **state)
{
    uint8_t in[1000], out[1000] = {0};
    OPEN(NULL);
    for (int k = 0; k < 1000; k++) in[k] = (uint8_t)(k * 7);
    ot_dev_buffer a = make_buffer(dev, "a", 1000, OT_DEV_MEM_DEVICE),
                  b = make_buffer(dev, "b", 1000, OT_DEV_MEM_DEVICE);
    ot_dev_event done;
    FINE(ot_dev_upload(dev, q, ot_dev_whole(dev, a), in, NULL, e, NULL));
    FINE(ot_dev_fill(dev, q, ot_dev_whole(dev, b), 0x01020304, NULL, e, NULL));
    FINE(ot_dev_copy(dev, q, part(b, 100, 50), part(a, 3, 50), NULL, e, NULL));
    FINE(ot_dev_download(dev, q, out, ot_dev_whole(dev, b), NULL, e, &done));
    FINE(ot_dev_wait(dev, done, e));
    for (int k = 0; k < 1000; k++)
        assert_int_equal(out[k], k >= 100 && k < 150 ? in[k - 97] : 4 - k % 4);
    double start, end;
    assert_true(ot_dev_times(dev, done, &start, &end));
    assert_true(start > 0 && end >= start);
    ot_device_usage u = ot_device_use(dev);
    assert_int_equal(u.used, 2000);
    assert_int_equal(u.n_buffers, 2);
    FINE(ot_dev_buffer_free(dev, a, e));
    assert_int_equal(ot_device_leaks(dev, NULL), 1);
    FINE(ot_dev_buffer_free(dev, b, e));
    assert_int_equal(ot_device_leaks(dev, NULL), 0);
    assert_int_equal(ot_device_use(dev).peak, 2000);
    ot_device_close(dev);
}

/* c = a + b from slices of one buffer, then scaled by a binary of the same program, on another
 * queue. */
static void kernels_compute(void **state)
{
    enum { N = 777 };
    float a[N], b[N], c[N];
    OPEN(NULL);
    ot_dev_queue q2;
    FINE(ot_dev_queue_new(dev, e, &q2));
    int64_t al = ot_device_about(dev)->alignment, each = (N * 4 + al - 1) / al * al;
    ot_dev_buffer arena = make_buffer(dev, "arena", 3 * each, OT_DEV_MEM_DEVICE);
    ot_dev_slice sa = part(arena, 0, N * 4), sb = part(arena, each, N * 4),
                 sc = part(arena, 2 * each, N * 4);
    for (int k = 0; k < N; k++) a[k] = (float)k, b[k] = (float)(k * k);
    ot_dev_program p = build(dev), again;
    ot_arena *mem = ot_arena_new();
    void *binary;
    size_t n;
    FINE(ot_dev_program_binary(dev, p, mem, e, &binary, &n));
    FINE(ot_dev_program_new(dev, &(ot_dev_source){"binary", OT_DEV_BINARY, binary, n, NULL}, e,
                            &again));
    FINE(ot_dev_upload(dev, q, sa, a, NULL, e, NULL));
    FINE(ot_dev_upload(dev, q, sb, b, NULL, e, NULL));
    ot_dev_arg args[] = {ot_dev_reads(sa), ot_dev_reads(sb), ot_dev_writes(sc), ot_dev_i32(N),
                         ot_dev_shared(16 * 4)};
    ot_dev_event added, done;
    FINE(ot_dev_run(dev, q,
                    &(ot_dev_launch){.program = p,
                                     .entry = "add",
                                     .args = args,
                                     .n_args = 5,
                                     .groups = {(N + 15) / 16},
                                     .items = {16}},
                    NULL, e, &added));
    ot_dev_arg scaling[] = {ot_dev_writes(sc), ot_dev_f32(0.5f), ot_dev_i64(N)};
    FINE(ot_dev_run(dev, q2,
                    &(ot_dev_launch){.program = again,
                                     .entry = "scale",
                                     .args = scaling,
                                     .n_args = 3,
                                     .groups = {2},
                                     .items = {8}},
                    &(ot_dev_after){&added, 1}, e, NULL));
    FINE(ot_dev_download(dev, q2, c, sc, NULL, e, &done));
    FINE(ot_dev_wait(dev, done, e));
    for (int k = 0; k < N; k++) assert_true(c[k] == (a[k] + b[k]) * 0.5f);
    ot_arena_free(mem);
    FINE(ot_dev_program_free(dev, p, e));
    FAULT(OT_DEV_INVALID_OBJECT, "freed before", ot_dev_program_free(dev, p, e));
    ot_device_close(dev); /* with what is left */
}

static void errors_are_typed(void **state)
{
    OPEN((&(ot_device_options){.budget = 10000}));
    ot_device *other = open_rig(OT_DEV_OPENCL, NULL);
    uint8_t bytes[64] = {0};
    ot_device_error full;
    ot_device *none_such;
    ot_dev_buffer b = make_buffer(dev, "b", 6000, OT_DEV_MEM_DEVICE), x,
                  foreign = make_buffer(other, "foreign", 64, OT_DEV_MEM_DEVICE);
    assert_int_equal(
        ot_dev_buffer_new(dev, &(ot_dev_buffer_options){.name = "big", .bytes = 4001}, &full, &x),
        OT_E_BUDGET);
    assert_int_equal(full.fault, OT_DEV_OUT_OF_MEMORY);
    assert_true(full.requested == 4001 && full.free == 4000 && full.largest == 4000);
    assert_int_equal(x.id, 0);
    assert_non_null(strstr(full.message,
                           "buffer 'big': out of device memory: 4001 bytes requested, 4000 free"));
    ot_dev_buffer_options none = {.bytes = 0},
                          read_only = {.name = "ro",
                                       .bytes = 64,
                                       .access = OT_DEV_KERNEL_READS | OT_DEV_HOST_WRITES},
                          constant = {.bytes = 64,
                                      .kind = OT_DEV_MEM_CONSTANT,
                                      .access = OT_DEV_KERNEL_WRITES},
                          import = {.bytes = 64, .host = bytes};
    FAULT(OT_DEV_INVALID_OBJECT, "0 bytes are none", ot_dev_buffer_new(dev, &none, e, &x));
    FAULT(OT_DEV_NO_MEMORY_TYPE, "constant", ot_dev_buffer_new(dev, &constant, e, &x));
    FAULT(OT_DEV_NO_MEMORY_TYPE, "imported memory is the host's",
          ot_dev_buffer_new(dev, &import, e, &x));
    FAULT(OT_DEV_INVALID_POINTER, "6000 bytes: 64 bytes from 5990 are outside",
          ot_dev_upload(dev, q, part(b, 5990, 64), bytes, NULL, e, NULL));
    FAULT(OT_DEV_INVALID_POINTER, "outside",
          ot_dev_upload(dev, q, part(b, -1, 64), bytes, NULL, e, NULL));
    FAULT(OT_DEV_INVALID_POINTER, "outside",
          ot_dev_upload(dev, q, part(b, 8, INT64_MAX), bytes, NULL, e, NULL));
    FAULT(OT_DEV_INVALID_POINTER, "another device's",
          ot_dev_upload(dev, q, part(foreign, 0, 64), bytes, NULL, e, NULL));
    FAULT(OT_DEV_INVALID_POINTER, "another device's", ot_dev_buffer_free(dev, foreign, e));
    FAULT(OT_DEV_INVALID_POINTER, "the handle is zero", ot_dev_buffer_free(dev, x, e));
    FAULT(OT_DEV_INVALID_POINTER, "is no buffer",
          ot_dev_buffer_free(dev, (ot_dev_buffer){q.id}, e));
    FAULT(OT_DEV_INVALID_POINTER, "onto itself",
          ot_dev_copy(dev, q, part(b, 0, 64), part(b, 63, 64), NULL, e, NULL));
    FAULT(OT_DEV_INVALID_POINTER, "no whole words",
          ot_dev_fill(dev, q, part(b, 2, 64), 0, NULL, e, NULL));
    FAULT(OT_DEV_INVALID_OBJECT, "never given", ot_dev_wait(dev, (ot_dev_event){q, 5}, e));
    FINE(ot_dev_buffer_new(dev, &read_only, e, &x));
    FAULT(OT_DEV_INVALID_OBJECT, "buffer 'ro' is not for reads of the host",
          ot_dev_download(dev, q, bytes, part(x, 0, 8), NULL, e, NULL));
    FINE(ot_dev_buffer_free(dev, b, e));
    FAULT(OT_DEV_INVALID_POINTER, "was freed before", ot_dev_buffer_free(dev, b, e));
    FAULT(OT_DEV_INVALID_POINTER, "was freed before",
          ot_dev_upload(dev, q, part(b, 0, 8), bytes, NULL, e, NULL));
    FAULT(OT_DEV_NOT_HERE, "no OpenCL device 999",
          ot_device_open(OT_DEV_OPENCL, 999, NULL, e, &none_such));
    ot_device_close(other);
    ot_device_close(dev);
}

static void programs_and_launches_are_checked(void **state)
{
    OPEN(NULL);
    ot_dev_program p = build(dev), bad;
    ot_dev_buffer b = make_buffer(dev, "b", 4096, OT_DEV_MEM_DEVICE);
    static const char wrong[] = "kernel void f(global float *x) { x[0] = nothing; }";
    ot_dev_source source = {"wrong", OT_DEV_NATIVE, wrong, sizeof wrong - 1, NULL};
    FAULT(OT_DEV_COMPILE, "program 'wrong'", ot_dev_program_new(dev, &source, e, &bad));
    ot_dev_arg args[] = {ot_dev_writes(part(b, 0, 4096)), ot_dev_f32(1), ot_dev_i64(1)};
    ot_dev_launch l = {.program = p, .entry = "nothing", .args = args, .n_args = 3};
    FAULT(OT_DEV_INVALID_OBJECT, "has no kernel 'nothing'", ot_dev_run(dev, q, &l, NULL, e, NULL));
    l.entry = "scale";
    args[0].slice.offset = 2;
    args[0].slice.bytes = 64;
    FAULT(OT_DEV_INVALID_POINTER, "not a multiple of", ot_dev_run(dev, q, &l, NULL, e, NULL));
    args[0].slice.offset = 0;
    args[1].bytes = 3;
    FAULT(OT_DEV_INVALID_OBJECT, "a number of 3 bytes", ot_dev_run(dev, q, &l, NULL, e, NULL));
    args[1].bytes = 4;
    l.items[0] = 1u << 30;
    FAULT(OT_DEV_UNSUPPORTED, "work-items in a group", ot_dev_run(dev, q, &l, NULL, e, NULL));
    l.items[0] = 1;
    args[2] = ot_dev_shared((int64_t)1 << 40);
    FAULT(OT_DEV_NO_MEMORY_TYPE, "of a work-group's memory", ot_dev_run(dev, q, &l, NULL, e, NULL));
    args[2] = ot_dev_i64(1);
    FINE(ot_dev_run(dev, q, &l, NULL, e, NULL));
    FINE(ot_dev_finish(dev, q, e));
    ot_device_close(dev);
}

/* Two threads, a queue and buffers each, on one device. */
typedef struct worker {
    ot_device *dev;
    uint8_t mark;
    bool ok;
} worker;

static void *work(void *of)
{
    worker *w = of;
    uint8_t in[4096], out[4096];
    ot_dev_queue q;
    memset(in, w->mark, sizeof in);
    if (ot_dev_queue_new(w->dev, NULL, &q) != OT_OK) return NULL;
    w->ok = true;
    for (int k = 0; k < 200 && w->ok; k++) {
        ot_dev_buffer b;
        ot_dev_event done;
        w->ok = ot_dev_buffer_new(w->dev, &(ot_dev_buffer_options){.name = "w", .bytes = 4096},
                                  NULL, &b) == OT_OK &&
                ot_dev_upload(w->dev, q, part(b, 0, 4096), in, NULL, NULL, NULL) == OT_OK &&
                ot_dev_download(w->dev, q, out, part(b, 0, 4096), NULL, NULL, &done) == OT_OK &&
                ot_dev_wait(w->dev, done, NULL) == OT_OK && memcmp(in, out, sizeof in) == 0 &&
                ot_dev_buffer_free(w->dev, b, NULL) == OT_OK;
    }
    w->ok = ot_dev_queue_free(w->dev, q, NULL) == OT_OK && w->ok;
    return NULL;
}

static void two_threads_share_a_device(void **state)
{
    OPEN(NULL);
    worker w[2] = {{dev, 1, false}, {dev, 2, false}};
    pthread_t t[2];
    for (int k = 0; k < 2; k++) assert_int_equal(pthread_create(&t[k], NULL, work, &w[k]), 0);
    for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
    assert_true(w[0].ok && w[1].ok);
    assert_int_equal(ot_device_use(dev).used, 0);
    assert_int_equal(ot_device_use(dev).n_freed, 400);
    ot_device_close(dev);
}

static void names_are_parsed(void **state)
{
    (void)state;
    ot_dev_api api;
    uint32_t n;
    assert_true(ot_device_parse("vulkan:12", &api, &n) && api == OT_DEV_VULKAN && n == 12);
    assert_true(ot_device_parse("opencl", &api, &n) && api == OT_DEV_OPENCL && n == 0);
    assert_false(ot_device_parse("opencl:", &api, &n));
    assert_false(ot_device_parse("openclx", &api, &n));
    assert_false(ot_device_parse("cuda:1x", &api, &n));
    assert_false(ot_device_parse("metal", &api, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_parsed),
        cmocka_unit_test(transfers_move_bytes),
        cmocka_unit_test(kernels_compute),
        cmocka_unit_test(errors_are_typed),
        cmocka_unit_test(programs_and_launches_are_checked),
        cmocka_unit_test(two_threads_share_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
