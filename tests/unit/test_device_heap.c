/* Heaps and maps: what each refuses, and random allocate/free/map sequences against a
 * model. Seed: SEED. */
#include "fake_driver.h"
#include "device/heap.h"
#include "seeded.h"

static ot_dev_heap *open_heap(ot_device *dev, const ot_dev_heap_options *o)
{
    ot_dev_heap *h;
    FINE(ot_dev_heap_new(dev, o, e, &h));
    return h;
}

static void a_cap_holds(void **state)
{
    (void)state;
    ot_device *dev = open_fake(0);
    ot_dev_heap *h = open_heap(dev, &(ot_dev_heap_options){.name = "capped", .cap = 8192});
    ot_dev_slice a, b, c;
    FINE(ot_dev_take(h, "a", 4096, e, &a));
    FINE(ot_dev_take(h, "b", 3072, e, &b));
    ot_device_error full = {0};
    assert_int_equal(ot_dev_take(h, "c", 2048, &full, &c), OT_E_BUDGET);
    assert_true(full.fault == OT_DEV_OUT_OF_MEMORY && full.requested == 2048 && full.free == 1024);
    assert_non_null(strstr(full.message, "heap 'capped': 'c' of 2048 bytes does not fit"));
    FINE(ot_dev_give(h, b, e));
    FINE(ot_dev_take(h, "c", 4096, e, &c)); /* to the byte */
    const ot_dev_heap_stats s = ot_dev_heap_count(h);
    assert_true(s.held == 8192 && s.peak == 8192 && s.n_taken == 3 && s.n_given == 1);
    assert_int_equal(ot_device_use(dev).used, 8192);
    ot_dev_heap_free(h);
    assert_int_equal(ot_device_use(dev).used, 0);
    ot_device_close(dev);
}

static void wrong_frees_are_named(void **state)
{
    (void)state;
    ot_device *dev = open_fake(0);
    ot_dev_heap *h = open_heap(dev, &(ot_dev_heap_options){.name = "h"});
    ot_dev_heap *one = open_heap(dev, &(ot_dev_heap_options){.name = "d"});
    ot_dev_slice a, b, c;
    FINE(ot_dev_take(h, "weights", 600, e, &a));
    FINE(ot_dev_take(h, "bias", 40, e, &b));
    FINE(ot_dev_take(one, "alone", 100, e, &c));
    FAULT(OT_DEV_INVALID_POINTER, "no slice begins at 7",
          ot_dev_give(h, part(a.buffer, a.offset + 7, 1), e));
    FAULT(OT_DEV_INVALID_POINTER, "is not of this heap", ot_dev_give(h, c, e));
    FAULT(OT_DEV_INVALID_POINTER, "was never given",
          ot_dev_give(h, part((ot_dev_buffer){a.buffer.id + 1000}, 0, 1), e));
    FINE(ot_dev_give(h, a, e));
    FAULT(OT_DEV_INVALID_POINTER, "was freed before", ot_dev_give(h, a, e));
    FINE(ot_dev_give(one, c, e));
    FAULT(OT_DEV_INVALID_POINTER, "was freed before", ot_dev_give(one, c, e));
    char *said = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&said, &n);
    assert_int_equal(ot_dev_heap_leaks(h, f), 1);
    fclose(f);
    assert_string_equal(said, "heap 'h': 'bias' of 40 bytes was never given back\n");
    free(said);
    ot_dev_heap_free(h);
    ot_dev_heap_free(one);
    ot_device_close(dev);
}

static void maps_nest_and_are_in_step(void **state)
{
    (void)state;
    ot_device *dev = open_fake(0);
    ot_dev_queue q;
    uint8_t *p, *inner, out[1000];
    ot_dev_map m, m2, m3;
    const uint32_t both = OT_DEV_HOST_READS | OT_DEV_HOST_WRITES;
    void *data;
    FINE(ot_dev_queue_new(dev, e, &q));
    ot_dev_buffer b = make_buffer(dev, "b", 1000, OT_DEV_MEM_HOST),
                  d = make_buffer(dev, "d", 64, OT_DEV_MEM_DEVICE);
    FAULT(OT_DEV_NO_MEMORY_TYPE, "kind device, which cannot be mapped",
          ot_dev_map_open(dev, ot_dev_whole(dev, d), both, e, &m, &data));
    FINE(ot_dev_map_open(dev, part(b, 100, 800), both, e, &m, &data));
    p = data;
    FINE(ot_dev_map_open(dev, part(b, 200, 10), OT_DEV_HOST_READS, e, &m2, &data));
    inner = data;
    assert_ptr_equal(inner, p + 100);
    FINE(ot_dev_map_open(dev, part(b, 950, 50), both, e, &m3, &data));
    assert_true(ot_device_use(dev).n_mapped == 3 && ot_device_use(dev).n_map_hits == 2);
    memset(p, 7, 800);
    FINE(ot_dev_map_flush(dev, m, 0, 300, e)); /* bytes 100 to 400: granules 64 to 448 */
    FAULT(OT_DEV_INVALID_OBJECT, "not mapped for writing", ot_dev_map_flush(dev, m2, 0, 1, e));
    FAULT(OT_DEV_INVALID_POINTER, "outside of a map of 800", ot_dev_map_flush(dev, m, 700, 101, e));
    ot_dev_event done;
    FINE(ot_dev_download(dev, q, out, ot_dev_whole(dev, b), NULL, e, &done));
    FINE(ot_dev_wait(dev, done, e));
    for (int k = 0; k < 1000; k++) assert_int_equal(out[k], k >= 100 && k < 448 ? 7 : 0xcd);
    FINE(ot_dev_fill(dev, q, part(b, 448, 4), 0x01010101, NULL, e, &done));
    FINE(ot_dev_wait(dev, done, e));
    assert_int_equal(p[348], 7);
    FINE(ot_dev_map_invalidate(dev, m, 348, 4, e));
    assert_int_equal(p[348], 1);
    FAULT(OT_DEV_INVALID_OBJECT, "a map of 10 bytes from 200, opened later, is still open",
          ot_dev_map_close(dev, m, e));
    FAULT(OT_DEV_INVALID_OBJECT, "is still mapped", ot_dev_buffer_free(dev, b, e));
    FINE(ot_dev_map_close(dev, m2, e));
    FINE(ot_dev_map_close(dev, m, e)); /* m3 overlaps nothing */
    FAULT(OT_DEV_INVALID_OBJECT, "was freed before", ot_dev_map_close(dev, m, e));
    FINE(ot_dev_map_close(dev, m3, e));
    FINE(ot_dev_buffer_free(dev, b, e));
    ot_device_close(dev);
}

/* ---- random sequences against a model ---- */

enum { LIVE_MOST = 24, BYTES_MOST = 3000 };

typedef struct model_slice {
    ot_dev_slice s;
    int64_t bytes;
    uint8_t value; /* of all its bytes */
} model_slice;

typedef struct model {
    ot_device *dev;
    ot_dev_queue q;
    ot_dev_heap *h;
    bool host; /* can be mapped */
    model_slice live[LIVE_MOST];
    uint32_t n;
    int64_t requested;
    uint64_t n_taken, n_given;
} model;

/* The value everywhere, written and read by maps or by transfers. */
static void put(model *m, const model_slice *x)
{
    uint8_t bytes[BYTES_MOST];
    void *data;
    ot_dev_map map;
    ot_dev_event done;
    if (m->host && draw(2)) {
        FINE(ot_dev_map_open(m->dev, x->s, OT_DEV_HOST_WRITES, e, &map, &data));
        memset(data, x->value, (size_t)x->bytes);
        FINE(ot_dev_map_close(m->dev, map, e));
        return;
    }
    memset(bytes, x->value, sizeof bytes);
    FINE(ot_dev_upload(m->dev, m->q, x->s, bytes, NULL, e, &done));
    FINE(ot_dev_wait(m->dev, done, e));
}

static void check(model *m, const model_slice *x)
{
    uint8_t bytes[BYTES_MOST];
    void *data = bytes;
    ot_dev_map map = {0};
    ot_dev_event done;
    if (m->host && draw(2)) {
        FINE(ot_dev_map_open(m->dev, x->s, OT_DEV_HOST_READS, e, &map, &data));
    } else {
        FINE(ot_dev_download(m->dev, m->q, bytes, x->s, NULL, e, &done));
        FINE(ot_dev_wait(m->dev, done, e));
    }
    for (int64_t k = 0; k < x->bytes; k++) assert_int_equal(((uint8_t *)data)[k], x->value);
    if (map.id) FINE(ot_dev_map_close(m->dev, map, e));
}

static void take_one(model *m)
{
    model_slice x = {.bytes = 1 + below(draw(4) ? 400 : BYTES_MOST), .value = (uint8_t)draw(256)};
    ot_device_error err = {0};
    ot_status s = ot_dev_take(m->h, "x", x.bytes, &err, &x.s);
    if (s != OT_OK) {
        assert_true(s == OT_E_BUDGET && err.fault == OT_DEV_OUT_OF_MEMORY &&
                    err.requested >= x.bytes);
        return;
    }
    assert_true(x.s.bytes == x.bytes && x.s.offset % ot_device_about(m->dev)->alignment == 0);
    for (uint32_t k = 0; k < m->n; k++) {
        const ot_dev_slice *o = &m->live[k].s;
        assert_true(o->buffer.id != x.s.buffer.id || o->offset + o->bytes <= x.s.offset ||
                    x.s.offset + x.bytes <= o->offset);
    }
    put(m, &x);
    m->live[m->n++] = x;
    m->requested += x.bytes;
    m->n_taken++;
}

static void give_one(model *m)
{
    uint32_t k = draw(m->n);
    model_slice x = m->live[k];
    check(m, &x);
    FINE(ot_dev_give(m->h, x.s, e));
    m->live[k] = m->live[--m->n];
    m->requested -= x.bytes;
    m->n_given++;
    if (draw(8) == 0) assert_int_not_equal(ot_dev_give(m->h, x.s, NULL), OT_OK);
}

static void run_sequence(ot_device *dev, int steps)
{
    model m = {.dev = dev, .host = draw(2)};
    FINE(ot_dev_queue_new(dev, e, &m.q));
    m.h = open_heap(dev,
                    &(ot_dev_heap_options){.kind = m.host ? OT_DEV_MEM_HOST : OT_DEV_MEM_DEVICE,
                                           .cap = draw(2) ? 2000 + below(20000) : 0});
    for (int k = 0; k < steps; k++) {
        uint32_t what = draw(10);
        if (what < 5 && m.n < LIVE_MOST)
            take_one(&m);
        else if (what < 8 && m.n > 0)
            give_one(&m);
        else if (what == 8 && m.n > 0)
            put(&m, &m.live[draw(m.n)]);
        ot_dev_heap_stats c = ot_dev_heap_count(m.h);
        assert_true(c.n_live == m.n && c.held == m.requested && c.n_taken == m.n_taken &&
                    c.n_given == m.n_given && c.held <= c.peak);
        assert_int_equal(ot_device_use(dev).used, c.held);
    }
    for (uint32_t k = 0; k < m.n; k++) check(&m, &m.live[k]);
    assert_int_equal(ot_dev_heap_leaks(m.h, NULL), m.n);
    ot_dev_heap_free(m.h);
    assert_int_equal(ot_device_use(dev).used, 0);
    FINE(ot_dev_queue_free(dev, m.q, e));
}

static void ten_thousand_sequences_equal_the_model(void **state)
{
    (void)state;
    ot_device *dev = open_fake(0);
    for (int k = 0; k < 10000; k++) run_sequence(dev, 30);
    ot_device_close(dev);
}

static void run_on(ot_dev_api api)
{
    ot_device *dev = open_validated(api);
    if (!dev) skip();
    for (int k = 0; k < 60; k++) run_sequence(dev, 30);
    close_validated(dev);
}

static void sequences_on_opencl_equal_the_model(void **state)
{
    (void)state;
    run_on(OT_DEV_OPENCL);
}

static void sequences_on_vulkan_equal_the_model(void **state)
{
    (void)state;
    run_on(OT_DEV_VULKAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cap_holds),
        cmocka_unit_test(wrong_frees_are_named),
        cmocka_unit_test(maps_nest_and_are_in_step),
        cmocka_unit_test(ten_thousand_sequences_equal_the_model),
        cmocka_unit_test(sequences_on_opencl_equal_the_model),
        cmocka_unit_test(sequences_on_vulkan_equal_the_model),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
