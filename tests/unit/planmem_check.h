/* Kernels that are planned, and what is asked of their plans. In-place merges are off where a
 * scenario counts on separate buffers. */
#ifndef TEST_PLANMEM_CHECK_H
#define TEST_PLANMEM_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tk/planmem/planmem.h"

#define UB_BYTES 196608 /* of Atlas A2 */

static inline ot_tk_machine small_target(void)
{
    ot_tk_machine t;
    memset(&t, 0, sizeof t);
    snprintf(t.name, sizeof t.name, "ascend-a2");
    const int64_t bytes[OT_SCOPE_COUNT] = {
        [OT_SCOPE_UB] = UB_BYTES, [OT_SCOPE_L1] = 524288,  [OT_SCOPE_L0A] = 65536,
        [OT_SCOPE_L0B] = 65536,   [OT_SCOPE_L0C] = 131072, [OT_SCOPE_BT] = 1024,
        [OT_SCOPE_FP] = 2048,     [OT_SCOPE_L2] = 1048576};
    const int64_t alignment[OT_SCOPE_COUNT] = {32, 32, 512, 512, 512, 64, 64, 64, 128, 256};
    for (int s = 0; s < OT_SCOPE_COUNT; s++) {
        t.scopes[s].bytes = bytes[s];
        t.scopes[s].alignment = alignment[s];
    }
    return t;
}

static inline ot_kernel *parse(const char *text)
{
    ot_kernel *k = NULL;
    ot_diag d = {0};
    if (ot_kernel_parse("k.tk", text, strlen(text), &d, &k) != OT_OK)
        fail_msg("%s\n%s", d.message, text);
    return k;
}

static inline ot_mem_options options(ot_mem_mode mode, int64_t capacity)
{
    return (ot_mem_options){.mode = mode,
                            .capacity = capacity,
                            .step_limit = 200000,
                            .lifetimes = {.no_in_place = true}};
}

typedef struct planned {
    ot_kernel *k;
    ot_mem_plan *p;
} planned;

static inline planned plan_with(const char *text, const ot_mem_options *o)
{
    ot_tk_machine t = small_target();
    ot_diag d = {0};
    planned r = {parse(text), NULL};
    if (ot_mem_plan_kernel(r.k, "k.tk", &t, o, &d, &r.p) != OT_OK)
        fail_msg("%s\n%s", d.message, text);
    assert_int_equal(ot_mem_plan_check(r.k, r.p, &d), OT_OK);
    return r;
}

static inline planned plan(const char *text, ot_mem_mode mode, int64_t capacity)
{
    ot_mem_options o = options(mode, capacity);
    return plan_with(text, &o);
}

/* The kernel must not be planned; its message. */
static inline ot_status refuse(const char *text, const char *path, const ot_mem_options *o,
                               ot_diag *d)
{
    ot_tk_machine t = small_target();
    ot_kernel *k = parse(text);
    ot_mem_plan *p = NULL;
    ot_status s = ot_mem_plan_kernel(k, path, &t, o, d, &p);
    assert_null(p);
    ot_kernel_free(k);
    return s;
}

static inline void done(planned r)
{
    ot_mem_plan_free(r.p);
    ot_kernel_free(r.k);
}

/* Index of the buffer that stores the alloc `name`. */
static inline uint32_t find(planned r, const char *name)
{
    for (uint32_t v = 0; v < r.k->n_values; v++)
        if (strcmp(r.k->values[v].name, name) == 0) return r.p->lifetimes->buffer_of[v];
    fail_msg("no buffer %s", name);
    return 0;
}

static inline int64_t at(planned r, const char *name, uint32_t slot)
{
    return r.p->offsets[find(r, name)][slot];
}

static inline const ot_scope_plan *scope(planned r, ot_scope s)
{
    for (uint32_t i = 0; i < r.p->n_scopes; i++)
        if (r.p->scopes[i].scope == s) return &r.p->scopes[i];
    fail_msg("scope %s is not planned", ot_scope_name(s));
    return NULL;
}

static inline bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

#endif
