/* CUDA: on a GPU where there is one, else on a library that computes on the host (stub_cuda.c),
 * which shows what the driver calls. */
#include "cuda_rig.h"
#include "device_rig.h"

#include <math.h>

static const char PTX[] = ".version 7.0\n.target sm_50\n.address_size 64\n";

#define OPEN                                      \
    (void)state;                                  \
    ot_device *dev = open_rig(OT_DEV_CUDA, NULL); \
    ot_dev_queue q;                               \
    if (!dev) skip();                             \
    FINE(ot_dev_queue_new(dev, e, &q))

static void transfers_and_maps(void **state)
{
    uint8_t in[1000], out[1000] = {0}, own[256];
    OPEN;
    for (int k = 0; k < 1000; k++) in[k] = (uint8_t)(k * 7);
    ot_dev_queue q2;
    FINE(ot_dev_queue_new(dev, e, &q2));
    ot_dev_buffer a = make_buffer(dev, "a", 1000, OT_DEV_MEM_DEVICE),
                  b = make_buffer(dev, "b", 1000, OT_DEV_MEM_HOST), imported;
    FINE(ot_dev_buffer_new(
        dev,
        &(ot_dev_buffer_options){.name = "own", .bytes = 256, .kind = OT_DEV_MEM_HOST, .host = own},
        e, &imported));
    ot_dev_event up, done;
    ot_dev_map m;
    void *data;
    FINE(ot_dev_upload(dev, q2, ot_dev_whole(dev, a), in, NULL, e, &up));
    FINE(ot_dev_fill(dev, q, ot_dev_whole(dev, b), 0x09090909, NULL, e, NULL));
    FINE(ot_dev_copy(dev, q, part(b, 100, 50), part(a, 3, 50), &(ot_dev_after){&up, 1}, e, NULL));
    FINE(ot_dev_copy(dev, q, part(imported, 0, 256), part(a, 0, 256), NULL, e, NULL));
    FINE(ot_dev_download(dev, q, out, ot_dev_whole(dev, b), NULL, e, &done));
    FINE(ot_dev_wait(dev, done, e));
    for (int k = 0; k < 1000; k++) assert_int_equal(out[k], k >= 100 && k < 150 ? in[k - 97] : 9);
    FINE(ot_dev_map_open(dev, part(b, 100, 50), OT_DEV_HOST_READS, e, &m, &data));
    assert_memory_equal(data, in + 3, 50);
    FINE(ot_dev_map_close(dev, m, e));
    FINE(ot_dev_map_open(dev, part(imported, 6, 50), OT_DEV_HOST_READS, e, &m, &data));
    assert_ptr_equal(data, own + 6);
    assert_memory_equal(data, in + 6, 50);
    FINE(ot_dev_map_close(dev, m, e));
    double start, end;
    assert_true(ot_dev_times(dev, done, &start, &end) && end >= start);
    ot_device_close(dev);
}

/* A command takes as long on a queue that is days old, from which floats of milliseconds count in
 * steps of 16. */
static void old_queues_have_exact_times(void **state)
{
    uint32_t word = 7;
    double start, end;
    void (*advance)(double);
    OPEN;
    *(void **)&advance = dlsym(RTLD_DEFAULT, "stub_advance");
    if (!cuda_is_stub || !advance) {
        ot_device_close(dev);
        skip(); /* the stub's clock */
    }
    ot_dev_buffer b = make_buffer(dev, "b", 4, OT_DEV_MEM_DEVICE);
    ot_dev_event done;
    advance(3 * 86400e3);
    FINE(ot_dev_upload(dev, q, ot_dev_whole(dev, b), &word, NULL, e, &done));
    FINE(ot_dev_wait(dev, done, e));
    assert_true(ot_dev_times(dev, done, &start, &end));
    assert_true(fabs(end - start - 0.25e-3) < 1e-5);
    ot_device_close(dev);
}

static void memory_is_pinned(void **state)
{
    static char page[2 * 4096];
    char *at = page + (4096 - (uintptr_t)page % 4096) % 4096, word[4];
    OPEN;
    assert_true(ot_device_about(dev)->pins);
    ot_dev_buffer b = make_buffer(dev, "b", 4, OT_DEV_MEM_DEVICE);
    int before = cuda_stub_count("stub_pageable");
    assert_true(ot_dev_pin(dev, at, 4096));
    FINE(ot_dev_upload(dev, q, ot_dev_whole(dev, b), at, NULL, e, NULL));
    FINE(ot_dev_download(dev, q, at, ot_dev_whole(dev, b), NULL, e, NULL));
    FINE(ot_dev_finish(dev, q, e));
    assert_int_equal(cuda_stub_count("stub_pageable"), before);
    ot_dev_unpin(dev, at);
    FINE(ot_dev_download(dev, q, word, ot_dev_whole(dev, b), NULL, e, NULL));
    FINE(ot_dev_finish(dev, q, e));
    assert_int_equal(cuda_stub_count("stub_pageable"), before + cuda_is_stub);
    ot_device_close(dev);
}

/* The stub's name has an escape sequence in it. */
static void names_are_printable(void **state)
{
    OPEN;
    (void)q;
    (void)state;
    if (cuda_is_stub) assert_string_equal(ot_device_about(dev)->name, "stub?[31m?");
    for (const char *c = ot_device_about(dev)->name; *c; c += ot_utf8_printable(c))
        assert_true(ot_utf8_printable(c) > 0);
    ot_device_close(dev);
}

static void programs_and_faults(void **state)
{
    uint8_t out[64];
    ot_dev_program p, bad;
    OPEN;
    if (!cuda_is_stub) {
        ot_device_close(dev);
        skip(); /* the stub's kernel */
    }
    FINE(ot_dev_program_new(dev, &(ot_dev_source){"p", OT_DEV_NATIVE, PTX, sizeof PTX - 1, NULL}, e,
                            &p));
    FAULT(
        OT_DEV_COMPILE, "takes its PTX not",
        ot_dev_program_new(dev, &(ot_dev_source){"x", OT_DEV_BINARY, "nothing", 7, NULL}, e, &bad));
    ot_dev_buffer b = make_buffer(dev, "b", 512, OT_DEV_MEM_DEVICE),
                  u = make_buffer(dev, "u", 512, OT_DEV_MEM_UNIFIED);
    ot_dev_arg args[] = {ot_dev_writes(part(b, 256, 64)), ot_dev_i32(64), ot_dev_shared(100)};
    ot_dev_launch l = {
        .program = p, .entry = "incr", .args = args, .n_args = 3, .groups = {2}, .items = {32}};
    FINE(ot_dev_fill(dev, q, ot_dev_whole(dev, b), 0, NULL, e, NULL));
    FINE(ot_dev_run(dev, q, &l, NULL, e, NULL));
    FINE(ot_dev_download(dev, q, out, part(b, 256, 64), NULL, e, NULL));
    FINE(ot_dev_finish(dev, q, e));
    for (int k = 0; k < 64; k++) assert_int_equal(out[k], 1);
    l.entry = "nothing";
    FAULT(OT_DEV_INVALID_OBJECT, "has no kernel 'nothing'", ot_dev_run(dev, q, &l, NULL, e, NULL));
    ot_device_error full = {0};
    ot_dev_buffer big;
    assert_int_equal(ot_dev_buffer_new(dev,
                                       &(ot_dev_buffer_options){.name = "big", .bytes = 10000001},
                                       &full, &big),
                     OT_E_BUDGET);
    assert_true(full.fault == OT_DEV_OUT_OF_MEMORY && full.requested == 10000001 &&
                full.free == (1 << 30) - 1024);
    l.entry = "incr";
    args[2] = ot_dev_shared(4000);
    FAULT(OT_DEV_LOST, "CUDA_ERROR_ILLEGAL_ADDRESS", ot_dev_run(dev, q, &l, NULL, e, NULL));
    FAULT(OT_DEV_LOST, "was lost", ot_dev_download(dev, q, out, part(u, 0, 64), NULL, e, NULL));
    ot_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transfers_and_maps), cmocka_unit_test(old_queues_have_exact_times),
        cmocka_unit_test(memory_is_pinned), cmocka_unit_test(names_are_printable),
        cmocka_unit_test(programs_and_faults)};
    cuda_load_stub();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
