/* The profiler: counts, bytes, bandwidths and times add up, and its JSON and trace say the same. */
#include "fake_driver.h"
#include "device/profile.h"

static char *text_of(ot_device *dev, const ot_dev_heap *h, bool trace)
{
    char *said = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&said, &n);
    if (trace) {
        ot_device_profile_trace(&dev, (const char *const[]){"fake \"one\""}, 1, f);
    } else {
        ot_json j = {.f = f};
        ot_json_open(&j, NULL);
        ot_device_profile_json(dev, &h, 1, (const double[3]){200000, 0, 0}, &j);
        ot_json_close(&j);
    }
    fclose(f);
    return said;
}

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;
    for (const char *p = text; (p = strstr(p, what)) != NULL; p++) n++;
    return n;
}

static void says(const char *text, const char *what)
{
    if (!strstr(text, what)) fail_msg("no %s in\n%s", what, text);
}

static void sums_and_texts_agree(void **state)
{
    (void)state;
    uint8_t bytes[100] = {0};
    ot_device *dev = open_fake(0);
    ot_dev_queue q;
    ot_dev_heap *h;
    ot_dev_slice s;
    ot_dev_program p;
    FINE(ot_device_profile_start(dev, e));
    FINE(ot_dev_queue_new(dev, e, &q));
    FINE(ot_dev_heap_new(dev, &(ot_dev_heap_options){.name = "pool"}, e, &h));
    FINE(ot_dev_take(h, "x", 100, e, &s));
    FINE(ot_dev_program_new(dev, &(ot_dev_source){.name = "p"}, e, &p));
    for (int k = 0; k < 3; k++) FINE(ot_dev_upload(dev, q, s, bytes, NULL, e, NULL));
    ot_dev_arg args[] = {ot_dev_writes(s)};
    for (int k = 0; k < 2; k++)
        FINE(ot_dev_run(dev, q,
                        &(ot_dev_launch){.program = p, .entry = "conv", .args = args, .n_args = 1},
                        NULL, e, NULL));
    ot_device_profile none = ot_device_profile_sum(dev);
    assert_int_equal(none.work[OT_DEV_WORK_UPLOAD].n, 0); /* nothing ran yet */
    FINE(ot_dev_finish(dev, q, e));
    ot_device_profile sum = ot_device_profile_sum(dev);
    assert_true(sum.work[OT_DEV_WORK_UPLOAD].n == 3 && sum.work[OT_DEV_WORK_UPLOAD].bytes == 300);
    assert_true(sum.work[OT_DEV_WORK_KERNEL].n == 2 && sum.work[OT_DEV_WORK_KERNEL].bytes == 200);
    assert_true(sum.work[OT_DEV_WORK_UPLOAD].fastest > 99e3 &&
                sum.work[OT_DEV_WORK_UPLOAD].fastest < 101e3);
    assert_true(sum.busy_seconds > 4.99e-3 && sum.busy_seconds < 5.01e-3 &&
                sum.span_seconds >= sum.busy_seconds - 1e-9);
    assert_true(sum.usage.peak == 100 && sum.usage.n_allocated == 1);
    char *json = text_of(dev, h, false), *trace = text_of(dev, h, true);
    says(json, "\"direction\": \"upload\", \"count\": 3, \"bytes\": 300, \"time_seconds\": 0.003, "
               "\"bytes_per_second\": 100000, \"of_peak\": 0.5");
    says(json, "\"name\": \"conv\", \"count\": 2, \"bytes\": 200, \"time_seconds\": 0.002");
    says(json, "\"peak_bytes\": 100");
    says(json, "\"name\": \"pool\", \"held_bytes\": 100, \"peak_bytes\": 100, \"taken\": 1");
    assert_int_equal(count(json, "\"conv\""), 1);
    assert_int_equal(count(trace, "\"ph\": \"X\""), 5);
    assert_int_equal(count(trace, "\"ph\": \"C\""), 1);
    says(trace, "\"args\": {\"bytes\": 100}");
    says(trace, "\"process_name\", \"pid\": 1, \"args\": {\"name\": \"fake \\\"one\\\"\"}");
    says(trace, "\"name\": \"conv\", \"cat\": \"kernel\", \"pid\": 1,");
    free(json);
    free(trace);
    /* a copy through a map, a second behind the commands by the host's clock */
    const double later = ot_now() + 1;
    ot_device_profile_mapped(dev, "map", OT_DEV_WORK_DOWNLOAD, 50, later, later + 2e-3);
    sum = ot_device_profile_sum(dev);
    assert_true(sum.work[OT_DEV_WORK_DOWNLOAD].n == 1 &&
                sum.work[OT_DEV_WORK_DOWNLOAD].bytes == 50);
    assert_true(sum.busy_seconds > 6.99e-3 && sum.busy_seconds < 7.01e-3 && sum.span_seconds > 1);
    trace = text_of(dev, h, true);
    says(trace, "\"name\": \"map\", \"cat\": \"download\", \"pid\": 1, \"tid\": 16,");
    free(trace);
    ot_dev_heap_free(h);
    ot_device_close(dev);
}

static void opencl_is_measured(void **state)
{
    (void)state;
    double rate[3];
    ot_device *dev = open_rig(OT_DEV_OPENCL, NULL);
    if (!dev) skip();
    FINE(ot_device_profile_start(dev, e));
    FINE(ot_device_measure_bandwidth(dev, e, rate));
    ot_device_profile sum = ot_device_profile_sum(dev);
    for (int k = 0; k < 3; k++) {
        assert_true(rate[k] > 1e6);
        assert_true(sum.work[k].n == 5 && sum.work[k].bytes == 5ll << 24 &&
                    sum.work[k].seconds > 0);
    }
    assert_int_equal(sum.usage.used, 0);
    assert_int_equal(sum.usage.peak, 2 << 24);
    ot_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_and_texts_agree),
                                       cmocka_unit_test(opencl_is_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
