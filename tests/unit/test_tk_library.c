/* The library of tile kernels on its own: one header, one archive, nothing of ONNX linked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tk/tk.h"

/* Two tiles of a vector: load, add to itself, store. */
static const char TEXT[] = "kernel twice {\n"
                           "  param x: 64 f32 @gm\n"
                           "  param y: 64 f32 @gm\n"
                           "  for i in 0..2 {\n"
                           "    alloc a: 32 f32 @ub\n"
                           "    alloc b: 32 f32 @ub\n"
                           "    load a <- x[32*i:32*i+32]\n"
                           "    b = vector.add(a, a)\n"
                           "    store y[32*i:32*i+32] <- b\n"
                           "    free a\n"
                           "    free b\n"
                           "  }\n"
                           "}\n";

static ot_tk_machine machine_of(int64_t ub_bytes)
{
    ot_tk_machine m = {.name = "small", .granule = 32};
    for (int s = 0; s < OT_SCOPE_COUNT; s++) m.scopes[s].alignment = 32;
    m.scopes[OT_SCOPE_UB].bytes = ub_bytes;
    return m;
}

static ot_kernel *parse(const char *text)
{
    ot_kernel *k = NULL;
    ot_diag d = {0};
    if (ot_kernel_parse("twice.tk", text, strlen(text), &d, &k) != OT_OK) fail_msg("%s", d.message);
    return k;
}

static ot_status plan(const ot_kernel *k, int64_t ub_bytes, ot_diag *d, ot_mem_plan **p)
{
    const ot_tk_machine m = machine_of(ub_bytes);
    const ot_mem_options o = {.threads = 1, .lifetimes = {.no_in_place = true}};
    return ot_mem_plan_kernel(k, "twice.tk", &m, &o, d, p);
}

static void planned_and_run(void **state)
{
    ot_kernel *k = parse(TEXT);
    ot_mem_plan *p = NULL;
    ot_krun_result *r = NULL;
    ot_diag d = {0};
    float x[64];
    (void)state;
    for (int i = 0; i < 64; i++) x[i] = (float)i - 7;
    if (plan(k, 256, &d, &p) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(p->n_scopes, 1);
    assert_int_equal(p->scopes[0].scope, OT_SCOPE_UB);
    assert_int_equal(p->scopes[0].height, 256);
    assert_int_equal(ot_mem_plan_check(k, p, &d), OT_OK);
    const ot_krun_array in = {.name = "x", .dtype = "f32", .rank = 1, .dims = {64}, .data = x};
    const ot_krun_request q = {.inputs = &in, .n_inputs = 1};
    if (ot_krun(k, "twice.tk", p, &q, &d, &r) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(r->n_outputs, 1);
    assert_string_equal(r->outputs[0].name, "y");
    for (int i = 0; i < 64; i++) assert_true(((const float *)r->outputs[0].data)[i] == 2 * x[i]);
    ot_krun_free(r);
    ot_mem_plan_free(p);
    ot_kernel_free(k);
}

static void too_little_memory(void **state)
{
    ot_kernel *k = parse(TEXT);
    ot_mem_plan *p = NULL;
    ot_diag d = {0};
    (void)state;
    assert_int_equal(plan(k, 224, &d, &p), OT_E_BUDGET);
    assert_non_null(strstr(d.message, "ub overflow, requires 2048 bits while 1792 bits available"));
    assert_null(p);
    d = (ot_diag){0};
    assert_int_equal(plan(k, 0, &d, &p), OT_E_INPUT);
    assert_non_null(strstr(d.message, "target 'small' has no such memory"));
    ot_kernel_free(k);
}

static void printed_and_generated(void **state)
{
    ot_kernel *k = parse(TEXT);
    ot_mem_plan *p = NULL;
    ot_kg_code *c = NULL;
    ot_diag d = {0};
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    (void)state;
    if (plan(k, 4096, &d, &p) != OT_OK) fail_msg("%s", d.message);
    ot_mem_plan_apply(p, k);
    assert_non_null(f);
    assert_int_equal(ot_kernel_print(k, f), OT_OK);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "offset=128"));
    ot_kernel_free(parse(text));
    const ot_kg_options o = {
        .language = OT_KG_OPENCL, .items = 4, .local_bytes = OT_KG_LOCAL_DEFAULT};
    if (ot_kg_make(k, "twice.tk", p, &o, &d, &c) != OT_OK) fail_msg("%s", d.message);
    assert_non_null(strstr(c->text, "__kernel"));
    ot_kg_free(c);
    free(text);
    ot_mem_plan_free(p);
    ot_kernel_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned_and_run),
        cmocka_unit_test(too_little_memory),
        cmocka_unit_test(printed_and_generated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
