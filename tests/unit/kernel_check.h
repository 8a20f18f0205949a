/* What the tests of the kernel language share: reading and printing, random numbers, a kernel
 * with one of each construct. */
#ifndef OT_KERNEL_CHECK_H
#define OT_KERNEL_CHECK_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tk/language/kernel.h"

static ot_kernel *parse_n(const char *text, size_t n)
{
    ot_diag d = {0};
    ot_kernel *k = NULL;
    if (ot_kernel_parse("k.tk", text, n, &d, &k) != OT_OK) fail_msg("%s\nin:\n%s", d.message, text);
    return k;
}

static ot_kernel *parse(const char *text) { return parse_n(text, strlen(text)); }

static char *print(const ot_kernel *k)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    assert_int_equal(ot_kernel_print(k, f), OT_OK);
    fclose(f);
    return text;
}

/* The text of k, which parses and prints the same; to be freed. */
static inline char *round_trip(const ot_kernel *k)
{
    char *first = print(k);
    ot_kernel *again = parse(first);
    char *second = print(again);
    assert_string_equal(first, second);
    ot_kernel_free(again);
    free(second);
    return first;
}

static uint64_t rng = 88172645463325252ull;

static inline uint32_t below(uint32_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)(rng >> 33) % n;
}

/* One of each construct, as it is printed. */
static const char EVERYTHING[] =
    "kernel every.thing target \"ascend-a2\" {\n"
    "  param x: 1x16x64x64 f32 @gm\n"
    "  param weights: 16x16x3x3 f32 @gm\n"
    "  param y: 1x16x64x64 f32 @gm\n"
    "  workspace ws: 4096 f32 align=512 multi=2 offset=0,16384\n"
    "  alloc w: 16x16x3x3 f32 @ub\n"
    "  alloc far: 2304 f32 @gm\n"
    "  load w <- weights\n"
    "  for i in 0..4 {\n"
    "    alloc a: 1x16x18x64 f32 @ub multi=2\n"
    "    alloc b: 1x16x16x64 f32 @ub align=64 multi=3\n"
    "    alloc d: 1x16x18x64 f32 @ub offset=4096\n"
    "    load a <- x[0:1, 0:16, 16*i-1:16*i+17, 0:64]\n"
    "    b = vector.conv(a, w)\n"
    "    copy d <- a\n"
    "    copy.dma_in d <- a\n"
    "    alias v = a: 2304 f32\n"
    "    alias v.2 = v: 1152x2 f16\n"
    "    subview s = a[0:1, 0:8, 0:18, 0:64]\n"
    "    b, d = cube.split(s, v.2)\n"
    "    store y[0:1, 0:16, 16*i:16*i+16, 0:64] <- b\n"
    "    free v\n"
    "  }\n"
    "  store far <- w\n"
    "  alloc init: 16 f32 @ub\n"
    "  r = for i in 0..8 step 2 carry (acc = init) {\n"
    "    for j in 3..? {\n"
    "      subview part = w[0:1, i+2*j:i+2*j+1, 0:3, -2*i-j+3:-j-2*i+4]\n"
    "    }\n"
    "    alloc n: 16 f32 @ub\n"
    "    n = scalar.add(acc, acc)\n"
    "    yield (n)\n"
    "  }\n"
    "  p1, p2 = while (r) carry (u = r, v2 = init) {\n"
    "    init = dma_out.fill()\n"
    "    yield (v2, u)\n"
    "  }\n"
    "  q = if (?) {\n"
    "    yield (p1)\n"
    "  } else {\n"
    "    if (p1) {\n"
    "    } else {\n"
    "      free w\n"
    "    }\n"
    "    yield (p2)\n"
    "  }\n"
    "  while (?) {\n"
    "    if (q) {\n"
    "      q = vector.exp(q)\n"
    "    }\n"
    "  }\n"
    "}\n";
/* head, n times `piece` (its %zu is the number), tail */
static inline char *repeat(const char *head, const char *piece, size_t n, const char *tail)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    fputs(head, f);
    for (size_t k = 0; k < n; k++)
        for (const char *c = piece; *c; c++) {
            if (*c == '%')
                fprintf(f, "%zu", k);
            else if (*c == '^')
                fprintf(f, "%zu", k + 1);
            else
                fputc(*c, f);
        }
    fputs(tail, f);
    fclose(f);
    return text;
}

/* Another seed from OT_SEED. */
static inline void seed_from_environment(void)
{
    const char *seed = getenv("OT_SEED");
    if (seed) rng += strtoull(seed, NULL, 10);
    printf("seed %s\n", seed ? seed : "0");
}

/* "k.tk:" place ": " ... fragment ... */
static inline void expect_message(const char *message, const char *place, const char *fragment,
                                  const char *text)
{
    char start[64];
    snprintf(start, sizeof start, "k.tk:%s: ", place);
    if (strncmp(message, start, strlen(start)) != 0 || !strstr(message, fragment))
        fail_msg("message '%s', wanted '%s...%s'\nin:\n%s", message, start, fragment, text);
}

static inline void parse_fails_n(const char *text, size_t n, const char *place,
                                 const char *fragment)
{
    ot_diag d = {0};
    ot_kernel *k = NULL;
    if (ot_kernel_parse("k.tk", text, n, &d, &k) != OT_E_INPUT) fail_msg("this parses:\n%s", text);
    assert_null(k);
    expect_message(d.message, place, fragment, text);
}

static inline void parse_fails(const char *text, const char *place, const char *fragment)
{
    parse_fails_n(text, strlen(text), place, fragment);
}

#endif
