/* Every call of a driver made to fail, one after the other: the fault comes through as it is,
 * nothing is left behind (the sanitizer looks), and a second attempt on the same device works. */
#include "fake_driver.h"
#include "device/heap.h"

typedef struct session { /* what a run made, as far as it came */
    ot_device *dev;
    ot_dev_heap *heap, *arena;
    ot_arena *mem;
} session;

/* A bit of everything, on a device that is open. program: of the driver's language. */
static ot_status use(session *s, const char *program, ot_device_error *e)
{
    static uint8_t in[512] = {1}, out[512]; /* what failed in between may still run */
    ot_dev_queue q;
    ot_dev_program p;
    ot_dev_slice a, b, host;
    ot_dev_map m;
    ot_dev_event done;
    void *data;
    size_t n;
    OT_TRY(ot_dev_queue_new(s->dev, e, &q));
    OT_TRY(ot_dev_program_new(
        s->dev, &(ot_dev_source){"p", OT_DEV_NATIVE, program, strlen(program), NULL}, e, &p));
    OT_TRY(ot_dev_program_binary(s->dev, p, s->mem, e, &data, &n));
    OT_TRY(ot_dev_heap_new(s->dev, &(ot_dev_heap_options){.kind = OT_DEV_MEM_HOST}, e, &s->heap));
    OT_TRY(ot_dev_heap_new(s->dev, &(ot_dev_heap_options){0}, e, &s->arena));
    OT_TRY(ot_dev_take(s->arena, "a", 512, e, &a));
    OT_TRY(ot_dev_take(s->arena, "b", 300, e, &b));
    OT_TRY(ot_dev_take(s->heap, "host", 512, e, &host));
    OT_TRY(ot_dev_map_open(s->dev, host, OT_DEV_HOST_WRITES, e, &m, &data));
    memset(data, 3, 512);
    OT_TRY(ot_dev_map_flush(s->dev, m, 0, 512, e));
    OT_TRY(ot_dev_map_close(s->dev, m, e));
    OT_TRY(ot_dev_upload(s->dev, q, a, in, NULL, e, NULL));
    OT_TRY(ot_dev_fill(s->dev, q, b, 0, NULL, e, NULL));
    host.bytes = 300;
    OT_TRY(ot_dev_copy(s->dev, q, b, host, NULL, e, NULL));
    ot_dev_arg args[] = {ot_dev_writes(b)};
    OT_TRY(ot_dev_run(
        s->dev, q,
        &(ot_dev_launch){.program = p, .entry = "f", .args = args, .n_args = 1, .groups = {300}},
        NULL, e, NULL));
    OT_TRY(ot_dev_download(s->dev, q, out, b, NULL, e, &done));
    OT_TRY(ot_dev_flush(s->dev, q, e));
    OT_TRY(ot_dev_wait(s->dev, done, e));
    for (int k = 0; k < 300; k++) assert_int_equal(out[k], 4);
    OT_TRY(ot_dev_queue_free(s->dev, q, e));
    return ot_dev_program_free(s->dev, p, e);
}

static ot_status attempt(session *s, const char *program, ot_device_error *e)
{
    s->mem = ot_arena_new();
    ot_status st = use(s, program, e);
    ot_dev_heap_free(s->heap);
    ot_dev_heap_free(s->arena);
    ot_arena_free(s->mem);
    *s = (session){.dev = s->dev};
    return st;
}

/* The faults of one kind at every call; returns how many calls there are. */
static int64_t walk(const dev_driver *driver, const char *program, ot_device_fault kind,
                    int64_t most)
{
    fault_kind = kind;
    for (fault_at = 0; fault_at < most; fault_at++) {
        session s = {0};
        ot_device_error e = {0};
        fault_calls = 0;
        ot_status st = dev_open_with(driver, 0, NULL, &e, &s.dev);
        if (st == OT_OK) st = attempt(&s, program, &e);
        int64_t calls = fault_calls;
        fault_calls = 1 << 20; /* no fault any more */
        if (calls > fault_at && (st == OT_OK || e.fault != kind))
            fail_msg("call %d: %d, %s: %s", (int)fault_at, (int)st, fault_name(e.fault), e.message);
        if (s.dev && attempt(&s, program, &e) != OT_OK)
            fail_msg("second attempt after call %d: %s", (int)fault_at, e.message);
        ot_device_close(s.dev);
        if (calls <= fault_at) return calls;
    }
    return most;
}

static void every_call_of_the_fake_fails_once(void **state)
{
    (void)state;
    dev_driver d = faulty(&fake_driver);
    const ot_device_fault kinds[] = {OT_DEV_OUT_OF_MEMORY, OT_DEV_HOST_MEMORY, OT_DEV_FAILED};
    for (int k = 0; k < 3; k++) {
        int64_t calls = walk(&d, "f", kinds[k], 1000);
        assert_in_range(calls, 12, 100);
    }
}

static void every_call_of_opencl_fails_once(void **state)
{
    (void)state;
    ot_device *dev = open_rig(OT_DEV_OPENCL, NULL);
    if (!dev) skip();
    ot_device_close(dev);
    dev_driver d = faulty(dev_drivers[OT_DEV_OPENCL]);
    int64_t calls = walk(&d, "kernel void f(global uchar *x) { x[get_global_id(0)]++; }",
                         OT_DEV_OUT_OF_MEMORY, 1000);
    assert_in_range(calls, 12, 100);
}

static void every_call_of_vulkan_fails_once(void **state)
{
    (void)state;
    ot_device *dev = open_rig(OT_DEV_VULKAN, NULL);
    ot_dev_program p;
    if (!dev) skip();
    static const char empty[] = "#version 450\nvoid main() {}";
    ot_status compiler = ot_dev_program_new(
        dev, &(ot_dev_source){"empty", OT_DEV_NATIVE, empty, sizeof empty - 1, NULL}, NULL, &p);
    ot_device_close(dev);
    if (compiler != OT_OK) skip();
    dev_driver d = faulty(dev_drivers[OT_DEV_VULKAN]);
    const char *text =
        "#version 450\nlayout(set = 0, binding = 0) buffer X { uint x[]; };\n"
        "void main() { if (gl_WorkGroupID.x < 75) x[gl_WorkGroupID.x] += 0x01010101u; }";
    int64_t calls = walk(&d, text, OT_DEV_OUT_OF_MEMORY, 1000);
    assert_in_range(calls, 12, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_the_fake_fails_once),
        cmocka_unit_test(every_call_of_opencl_fails_once),
        cmocka_unit_test(every_call_of_vulkan_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
