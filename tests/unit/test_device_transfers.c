/* Movers: random requests give what they would one after the other; merging, priorities,
 * cancelling. Seed: SEED. */
#include "fake_driver.h"
#include "device/transfers.h"
#include "seeded.h"

static ot_dev_mover *open_mover(ot_device *dev, const ot_dev_mover_options *o)
{
    ot_dev_mover *m;
    FINE(ot_dev_mover_new(dev, o, e, &m));
    return m;
}

static ot_dev_ticket put(ot_dev_mover *m, ot_dev_request r)
{
    ot_dev_ticket t;
    FINE(ot_dev_request_put(m, &r, e, &t));
    return t;
}

#define UP(slice, data) ((ot_dev_request){.to = slice, .source = data})
#define DOWN(slice, data) \
    ((ot_dev_request){.direction = OT_DEV_TO_HOST, .from = slice, .sink = data})

static void neighbours_become_one(void **state)
{
    (void)state;
    uint8_t in[256], out[256] = {0};
    ot_device *dev = open_fake(0);
    ot_dev_mover *m = open_mover(dev, NULL);
    ot_dev_buffer b = make_buffer(dev, "b", 256, OT_DEV_MEM_DEVICE);
    for (int k = 0; k < 256; k++) in[k] = (uint8_t)k;
    for (int k = 3; k >= 0; k--) put(m, UP(part(b, k * 64, 64), in + k * 64));
    put(m, UP(part(b, 60, 8), in)); /* over two of them, later */
    FINE(ot_dev_mover_finish(m, e));
    ot_dev_mover_stats s = ot_dev_mover_count(m);
    assert_true(s.n_requests == 5 && s.n_transfers == 1 && s.n_merged == 4 &&
                s.bytes_moved == 256 && s.bytes_asked == 264);
    put(m, DOWN(part(b, 0, 100), out));
    put(m, DOWN(part(b, 100, 156), out + 100));
    FINE(ot_dev_mover_finish(m, e));
    assert_int_equal(ot_dev_mover_count(m).n_transfers, 2);
    for (int k = 0; k < 256; k++) assert_int_equal(out[k], k >= 60 && k < 68 ? k - 60 : k);
    memset(out, 0, sizeof out);
    put(m, DOWN(part(b, 0, 100), out));
    put(m, DOWN(part(b, 100, 156), out + 100));
    FINE(ot_dev_mover_issue(m, e));
    ot_dev_mover_free(m); /* what is under way lands */
    assert_int_equal(out[200], 200);
    ot_device_close(dev);
}

/* Uploads merge over bytes that one of them says nobody reads, and over no others. */
static void room_between_uploads_is_filled(void **state)
{
    (void)state;
    uint8_t in[256], out[256] = {0};
    ot_device *dev = open_fake(0);
    ot_dev_mover *m = open_mover(dev, NULL);
    ot_dev_buffer b = make_buffer(dev, "b", 256, OT_DEV_MEM_DEVICE);
    for (int k = 0; k < 256; k++) in[k] = (uint8_t)k;
    ot_dev_request one = UP(part(b, 128, 20), in), two = UP(part(b, 0, 100), in + 50),
                   apart = UP(part(b, 160, 4), in);
    two.room = 28; /* up to 128; there is none behind 148 */
    put(m, one);
    put(m, two);
    put(m, apart);
    FINE(ot_dev_mover_finish(m, e));
    const ot_dev_mover_stats s = ot_dev_mover_count(m);
    assert_true(s.n_transfers == 2 && s.n_merged == 1 && s.bytes_asked == 124 &&
                s.bytes_moved == 152);
    put(m, DOWN(part(b, 0, 256), out));
    FINE(ot_dev_mover_finish(m, e));
    assert_memory_equal(out, in + 50, 100);
    assert_memory_equal(out + 128, in, 20);
    assert_memory_equal(out + 160, in, 4);
    assert_true(out[148] == 0xcd && out[159] == 0xcd && out[164] == 0xcd);
    ot_dev_mover_free(m);
    ot_device_close(dev);
}

static void priorities_go_first_but_pass_nothing_they_meet(void **state)
{
    (void)state;
    uint8_t in[64] = {0};
    ot_device *dev = open_fake(0);
    ot_dev_mover *m = open_mover(dev, NULL);
    ot_dev_buffer b = make_buffer(dev, "b", 1024, OT_DEV_MEM_DEVICE);
    ot_dev_request low = UP(part(b, 0, 64), in), normal = UP(part(b, 128, 64), in),
                   high = UP(part(b, 256, 64), in), behind = UP(part(b, 32, 8), in + 1);
    low.priority = OT_DEV_LOW;
    high.priority = behind.priority = OT_DEV_HIGH;
    fake_runs = 0;
    ot_dev_mover_free(m);
    m = open_mover(dev, &(ot_dev_mover_options){.no_merge = true});
    put(m, low);
    put(m, normal);
    put(m, behind);
    put(m, high);
    FINE(ot_dev_mover_finish(m, e));
    const int64_t want[] = {256, 128, 0, 32};
    for (int k = 0; k < 4; k++) assert_int_equal(fake_ranges[k].offset, want[k]);
    ot_dev_mover_free(m);
    ot_device_close(dev);
}

static void what_fails_cancels_what_waits(void **state)
{
    (void)state;
    uint8_t in[64] = {0};
    ot_dev_ticket t[5];
    ot_device *dev;
    dev_driver d = faulty(&fake_driver);
    fault_at = -1;
    FINE(dev_open_with(&d, 0, NULL, e, &dev));
    ot_dev_mover *m = open_mover(dev, &(ot_dev_mover_options){.no_merge = true});
    ot_dev_buffer b = make_buffer(dev, "b", 1024, OT_DEV_MEM_DEVICE);
    for (int k = 0; k < 4; k++) t[k] = put(m, UP(part(b, k * 64, 64), in));
    fault_kind = OT_DEV_FAILED;
    fault_at = fault_calls + 1; /* the second submission */
    FAULT(OT_DEV_FAILED, "injected", ot_dev_mover_issue(m, e));
    fault_at = -1;
    FINE(ot_dev_ticket_wait(m, t[0], e));
    FAULT(OT_DEV_FAILED, "a transfer failed: injected", ot_dev_ticket_wait(m, t[1], e));
    FAULT(OT_DEV_CANCELLED, "never ran: injected", ot_dev_ticket_wait(m, t[2], e));
    FAULT(OT_DEV_FAILED, "injected", ot_dev_mover_finish(m, e));
    assert_int_equal(ot_dev_mover_count(m).n_cancelled, 2);
    t[4] = put(m, UP(part(b, 0, 64), in));
    FINE(ot_dev_ticket_wait(m, t[4], e)); /* it works again */
    FAULT(OT_DEV_INVALID_OBJECT, "never given", ot_dev_ticket_wait(m, t[4] + 1, e));
    put(m, UP(part(b, 0, 64), in));
    assert_int_equal(ot_dev_mover_cancel(m), 1);
    ot_dev_mover_free(m);
    ot_device_close(dev);
}

/* ---- random requests against one after the other ---- */

enum { BUFFERS = 3, BYTES = 600, HOST = 4000 };

static void run_batch(ot_device *dev, ot_dev_mover *m, ot_dev_buffer *b)
{
    static uint8_t host[HOST], twin_host[HOST], twin[BUFFERS][BYTES];
    ot_dev_ticket tickets[40];
    int n = 1 + below(40);
    for (int k = 0; k < HOST; k++) host[k] = twin_host[k] = (uint8_t)draw(256);
    for (int k = 0; k < BUFFERS; k++) {
        memset(twin[k], k, BYTES);
        put(m, UP(part(b[k], 0, BYTES), memset(host, k, BYTES)));
        FINE(ot_dev_mover_finish(m, e));
    }
    memcpy(host, twin_host, HOST);
    for (int k = 0; k < n; k++) {
        int to = below(BUFFERS), from = below(BUFFERS), bytes = 1 + below(60),
            at = below(BYTES - 60), at2 = below(BYTES - 60);
        int h = below(HOST - 60), what = below(3);
        if (draw(2)) at = at / 30 * 30, bytes = 30; /* neighbours are likely */
        ot_dev_slice a = part(b[to], at, bytes), c = part(b[from], at2, bytes);
        ot_dev_request r = {.direction = (ot_dev_direction)what,
                            .priority = (ot_dev_priority)(below(3) - 1)};
        if (what == OT_DEV_ON_DEVICE && to == from)
            what = OT_DEV_TO_HOST, r.direction = OT_DEV_TO_HOST;
        if (what == OT_DEV_TO_DEVICE)
            r.to = a, r.source = host + h, memcpy(twin[to] + at, twin_host + h, (size_t)bytes);
        if (what == OT_DEV_TO_HOST)
            r.from = a, r.sink = host + h, memcpy(twin_host + h, twin[to] + at, (size_t)bytes);
        if (what == OT_DEV_ON_DEVICE)
            r.to = a, r.from = c, memcpy(twin[to] + at, twin[from] + at2, (size_t)bytes);
        tickets[k] = put(m, r);
        if (draw(10) == 0) FINE(ot_dev_mover_issue(m, e));
        if (draw(20) == 0) FINE(ot_dev_ticket_wait(m, tickets[draw((uint32_t)k + 1)], e));
    }
    FINE(ot_dev_mover_finish(m, e));
    assert_memory_equal(host, twin_host, HOST);
    for (int k = 0; k < BUFFERS; k++) {
        put(m, DOWN(part(b[k], 0, BYTES), host));
        FINE(ot_dev_mover_finish(m, e));
        assert_memory_equal(host, twin[k], BYTES);
    }
    assert_int_equal(ot_device_use(dev).n_buffers, BUFFERS);
}

static void run_batches(ot_device *dev, int n)
{
    uint64_t merged = 0;
    ot_dev_buffer b[BUFFERS];
    for (int k = 0; k < BUFFERS; k++) b[k] = make_buffer(dev, "b", BYTES, OT_DEV_MEM_DEVICE);
    for (int k = 0; k < n; k++) {
        ot_dev_mover *m = open_mover(dev,
                                     &(ot_dev_mover_options){.staging_bytes = 100 + below(3000)});
        run_batch(dev, m, b);
        merged += ot_dev_mover_count(m).n_merged;
        ot_dev_mover_free(m);
    }
    assert_true(4 * merged > (uint64_t)n);
}

static void random_requests_equal_their_order(void **state)
{
    (void)state;
    ot_device *dev = open_fake(0);
    run_batches(dev, 3000);
    ot_device_close(dev);
}

static void run_on(ot_dev_api api)
{
    ot_device *dev = open_validated(api);
    if (!dev) skip();
    run_batches(dev, 40);
    close_validated(dev);
}

static void random_requests_on_opencl(void **state)
{
    (void)state;
    run_on(OT_DEV_OPENCL);
}

static void random_requests_on_vulkan(void **state)
{
    (void)state;
    run_on(OT_DEV_VULKAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_become_one),
        cmocka_unit_test(room_between_uploads_is_filled),
        cmocka_unit_test(priorities_go_first_but_pass_nothing_they_meet),
        cmocka_unit_test(what_fails_cancels_what_waits),
        cmocka_unit_test(random_requests_equal_their_order),
        cmocka_unit_test(random_requests_on_opencl),
        cmocka_unit_test(random_requests_on_vulkan),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
