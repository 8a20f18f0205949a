/* Lifetimes of small kernels, as text: one line for each buffer, the names of its allocs and the
 * lines of the kernel's body (from 1) at which it is alive. What holds for all kernels is in
 * test_kernel_run.c. */
#ifndef TEST_LIFETIMES_CHECK_H
#define TEST_LIFETIMES_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tk/planmem/planmem.h"

#define HEAD       "kernel k {\nparam x: 64 i8 @gm\nparam y: 64 i8 @gm\n"
#define HEAD_LINES 3

static const ot_lifetime_options PLAIN = {0}, RESTRICTED = {.restrict_in_place = true},
                                 APART = {.no_in_place = true}, HOLD = {.hold_multi = true};

static inline ot_tk_machine target(void)
{
    ot_tk_machine t = {0};
    for (int s = 0; s < OT_SCOPE_COUNT; s++) t.scopes[s].alignment = 32;
    return t;
}

static inline ot_kernel *parse(const char *body)
{
    char text[8192];
    ot_diag d = {0};
    ot_kernel *k = NULL;
    int n = snprintf(text, sizeof text, HEAD "%s}\n", body);
    assert_true(n > 0 && (size_t)n < sizeof text);
    if (ot_kernel_parse("k.tk", text, (size_t)n, &d, &k) != OT_OK)
        fail_msg("%s\n%s", d.message, text);
    return k;
}

static inline ot_lifetimes *find(const ot_kernel *k, const ot_lifetime_options *o)
{
    ot_tk_machine t = target();
    ot_diag d = {0};
    ot_lifetimes *l = NULL;
    if (ot_lifetimes_find(k, "k.tk", &t, o, &d, &l) != OT_OK) fail_msg("%s", d.message);
    return l;
}

static inline void put(char *out, size_t cap, const char *fmt, ...) OT_PRINTF(3, 4);
static inline void put(char *out, size_t cap, const char *fmt, ...)
{
    size_t at = strlen(out);
    va_list args;
    va_start(args, fmt);
    vsnprintf(out + at, cap - at, fmt, args);
    va_end(args);
}

/* "a+b x2 @0 2-5 7-7\n" for each buffer (of 2 slots, fixed at offset 0), "N copies\n", "warning
 * ...\n". */
static inline void describe(const ot_kernel *k, const ot_lifetimes *l, char *out, size_t cap)
{
    out[0] = 0;
    for (uint32_t b = 0; b < l->n_buffers; b++) {
        const ot_buffer *x = &l->buffers[b];
        for (uint32_t v = 0; v < x->n_values; v++)
            put(out, cap, "%s%s", v ? "+" : "", k->values[x->values[v]].name);
        if (x->multi > 1) put(out, cap, " x%u", x->multi);
        if (x->fixed[0] >= 0) put(out, cap, " @%d", (int)x->fixed[0]);
        for (uint32_t i = 0; i < x->n_live; i++) {
            put(out, cap, " %u-%u", k->stmts[x->live[i].lower].line - HEAD_LINES,
                k->stmts[x->live[i].upper - 1].line - HEAD_LINES);
        }
        put(out, cap, "\n");
    }
    if (l->n_copies) put(out, cap, "%u copies\n", l->n_copies);
    for (uint32_t i = 0; i < l->n_warnings; i++) {
        unsigned line, col;
        int at = 0;
        assert_int_equal(sscanf(l->warnings[i], "%u:%u: %n", &line, &col, &at), 2);
        put(out, cap, "warning %u: %s\n", line - HEAD_LINES, l->warnings[i] + at);
    }
}

static inline void check_with(const char *body, const ot_lifetime_options *o, const char *want)
{
    char got[2048];
    ot_kernel *k = parse(body);
    ot_lifetimes *l = find(k, o);
    describe(k, l, got, sizeof got);
    assert_string_equal(got, want);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
}

static inline void check(const char *body, const char *want) { check_with(body, &PLAIN, want); }

static inline void check_fails(const char *body, const char *want)
{
    ot_kernel *k = parse(body);
    ot_tk_machine t = target();
    ot_diag d = {0};
    ot_lifetimes *l;
    assert_int_equal(ot_lifetimes_find(k, "k.tk", &t, &PLAIN, &d, &l), OT_E_INPUT);
    assert_null(l);
    assert_string_equal(d.message, want);
    ot_kernel_free(k);
}

#endif
