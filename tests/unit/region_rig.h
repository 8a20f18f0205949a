/* A model as text, a region of it cut by hand or at random, its kernel: what the tests of
 * regions' memory share. */
#ifndef REGION_RIG_H
#define REGION_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tiling/lower/region_held.h"
#include "tiling/lower/region_names.h"
#include "hand_plan.h"
#include "tiling/lower/lowering.h"

typedef struct rig {
    ot_diag diag;
    ot_model *m;
    ot_arena *a;
    ot_region r;
    ot_target t;
    ot_kernel *k;
} rig;

static inline ot_target scratchpad(void)
{
    ot_target t = {
        .name = "tlf-16m", .fast_bytes = 1 << 20, .granule = 64, .cores = 1, .double_buffer = true};
    t.runtime = &ot_runtime_device_plain;
    for (int s = 0; s < OT_SCOPE_COUNT; s++) t.scopes[s].alignment = 1;
    t.scopes[OT_SCOPE_L2].bytes = t.fast_bytes;
    return t;
}

static inline ot_target cache(void)
{
    ot_target t = scratchpad();
    t.is_cache = true;
    t.runtime = &ot_runtime_gpu_plain;
    return t;
}

static inline void open_model(rig *x, const char *text)
{
    *x = (rig){.t = scratchpad()};
    if (ot_text_parse(text, strlen(text), &x->diag, &x->m) != OT_OK)
        fail_msg("%s", x->diag.message);
    x->a = ot_arena_new();
    assert_int_equal(ot_infer_shapes(x->m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(x->m->graph, OT_P_ORDER | OT_P_USES | OT_P_SHAPES), OT_OK);
}

/* The region that ends at the model's first output. */
static inline void cut(rig *x, uint32_t n_dims, uint32_t a0, uint32_t t0, uint32_t a1, uint32_t t1,
                       ot_form form)
{
    const uint32_t axes[2] = {a0, a1}, tiles[2] = {t0, t1};
    ot_why why = OT_WHY_NONE;
    if (!hand_plan(x->m->graph, x->m->graph->outputs[0], n_dims, axes, tiles, form, x->a, &x->r,
                   &why))
        fail_msg("%s", ot_reason_sentence(why));
    x->r.overlap = true;
}

static inline void lower(rig *x)
{
    ot_kernel_free(x->k);
    x->k = NULL;
    if (ot_region_kernel_held(&(ot_region_job){x->m->graph, &x->r, &x->t, NULL, &x->diag}, NULL,
                              &x->k) != OT_OK)
        fail_msg("%s", x->diag.message);
    if (ot_kernel_verify(x->k, "test", &x->diag) != OT_OK) fail_msg("%s", x->diag.message);
}

static inline void done(rig *x)
{
    ot_kernel_free(x->k);
    ot_model_free(x->m);
    ot_arena_free(x->a);
}

__attribute__((unused)) static const char CHAIN[] = "model ir 8 opset 17\n"
                                                    "graph g {\n"
                                                    "  input %x : float32[1,4,64,16]\n"
                                                    "  init %w0 : float32[4,4,3,3] = random 1\n"
                                                    "  init %w1 : float32[4,4,3,3] = random 2\n"
                                                    "  %a = Conv(%x, %w0) {pads=[1,1,1,1]}\n"
                                                    "  %b = Relu(%a)\n"
                                                    "  %y = Conv(%b, %w1) {pads=[1,1,1,1]}\n"
                                                    "  output %y\n"
                                                    "}\n";

__attribute__((unused)) static uint64_t rng;

static inline uint32_t next_random(uint32_t n) { return (uint32_t)(ot_next_random(&rng) % n); }

/* A chain with skips on [2,c,h,h]; every third value or so is read again later. */
static inline char *random_text(char *buf, size_t size, uint32_t n)
{
    uint32_t h = 16u << next_random(3), c = 4u << next_random(3);
    int len = snprintf(
        buf, size, "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[2,%u,%u,%u]\n", c, h, h);
    for (uint32_t k = 0; k < n; k++)
        len += snprintf(buf + len, size - (size_t)len,
                        "  init %%w%u : float32[%u,%u,3,3] = random %u\n", k, c, c, k + 1);
    for (uint32_t k = 0; k < n; k++) {
        const char *at = buf + len;
        uint32_t kind = next_random(5), back = next_random(k + 1);
        if (kind == 0)
            len += snprintf(buf + len, size - (size_t)len, "  %%v%u = Relu(%%v%u)\n", k + 1, k);
        else if (kind == 1)
            len += snprintf(buf + len, size - (size_t)len, "  %%v%u = Add(%%v%u, %%v%u)\n", k + 1,
                            k, back);
        else if (kind == 2)
            len += snprintf(buf + len, size - (size_t)len, "  %%v%u = Identity(%%v%u)\n", k + 1, k);
        else
            len += snprintf(buf + len, size - (size_t)len,
                            "  %%v%u = Conv(%%v%u, %%w%u) {pads=[1,1,1,1]}\n", k + 1, k, k);
        assert_ptr_not_equal(at, buf + len);
    }
    snprintf(buf + len, size - (size_t)len, "  output %%v%u\n}\n", n);
    return buf;
}

#endif
