/* Floats of 16 bits against their definition: sign, exponent and fraction put together by ldexp.
 */
#include "base/half_float.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static double value_of(uint32_t bits, int exponent_bits, int fraction_bits)
{
    int top = (1 << exponent_bits) - 1, exponent = (int)(bits >> fraction_bits) & top,
        fraction = (int)bits & ((1 << fraction_bits) - 1), unit = top / 2 + fraction_bits;
    double sign = bits & 0x8000u ? -1 : 1;
    if (exponent == top) return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - unit);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - unit);
}

static void assert_same(float f, double want)
{
    if (isnan(want)) {
        assert_true(isnan(f));
        assert_int_equal(ot_float_bits(f) & 0x400000u, 0x400000u); /* quiet */
    } else {
        assert_int_equal(ot_float_bits(f), ot_float_bits((float)want)); /* signs of zeros, too */
    }
}

static void every_code_is_what_it_means(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        assert_same(ot_f16_to_f32((uint16_t)h), value_of(h, 5, 10));
        double brain = value_of(h, 8, 7);
        if (!isnan(brain)) assert_same(ot_bf16_to_f32((uint16_t)h), brain);
        if (isnan(brain)) assert_true(isnan(ot_bf16_to_f32((uint16_t)h)));
    }
}

/* Every half and every bfloat16 survives the way to float or double and back. */
static void every_code_survives(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = ot_f16_to_f32((uint16_t)h), b = ot_bf16_to_f32((uint16_t)h);
        if (isnan(f)) {
            assert_int_equal(ot_f32_to_f16(f), (h & 0x8000u) | 0x7e00u);
            assert_true(isnan(ot_f16_to_f32(ot_f64_to_f16((double)f))));
        } else {
            assert_int_equal(ot_f32_to_f16(f), h);
            assert_int_equal(ot_f64_to_f16((double)f), h);
        }
        if (isnan(b)) {
            assert_true(isnan(ot_bf16_to_f32(ot_f32_to_bf16(b))));
            assert_true(isnan(ot_bf16_to_f32(ot_f64_to_bf16((double)b))));
        } else {
            assert_int_equal(ot_f32_to_bf16(b), h);
            assert_int_equal(ot_f64_to_bf16((double)b), h);
        }
    }
}

/* Between two neighbours: below the middle down, above it up, the middle to the even one. A double
 * next to the middle is told from it, although no float32 lies between. */
static void half_is_rounded_to_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        double mid = (value_of(h, 5, 10) + value_of(h + 1, 5, 10)) / 2;
        uint32_t even = h + (h & 1);
        assert_int_equal(ot_f32_to_f16((float)mid), even);
        assert_int_equal(ot_f32_to_f16(nextafterf((float)mid, 0)), h);
        assert_int_equal(ot_f32_to_f16(nextafterf((float)mid, INFINITY)), h + 1);
        assert_int_equal(ot_f32_to_f16((float)-mid), even | 0x8000);
        assert_int_equal(ot_f64_to_f16(mid), even);
        assert_int_equal(ot_f64_to_f16(nextafter(mid, 0)), h);
        assert_int_equal(ot_f64_to_f16(-nextafter(mid, (double)INFINITY)), (h + 1) | 0x8000);
    }
    assert_int_equal(ot_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(ot_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(ot_f64_to_f16(nextafter(65520, 0)), 0x7bff);
}

static void bfloat_is_rounded_to_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7f7f; h++) {
        double mid = (value_of(h, 8, 7) + value_of(h + 1, 8, 7)) / 2;
        uint32_t even = h + (h & 1);
        assert_int_equal(ot_f32_to_bf16((float)mid), even);
        assert_int_equal(ot_f32_to_bf16(nextafterf((float)mid, 0)), h);
        assert_int_equal(ot_f32_to_bf16(nextafterf((float)mid, INFINITY)), h + 1);
        assert_int_equal(ot_f64_to_bf16(mid), even);
        assert_int_equal(ot_f64_to_bf16(nextafter(mid, 0)), h);
        assert_int_equal(ot_f64_to_bf16(-nextafter(mid, (double)INFINITY)), (h + 1) | 0x8000);
    }
}

static void what_is_out_of_range(void **state)
{
    (void)state;
    static const struct {
        double d;
        uint16_t half, brain;
    } cases[] = {{1e300, 0x7c00, 0x7f80},
                 {-1e300, 0xfc00, 0xff80},
                 {1e-300, 0, 0},
                 {-1e-300, 0x8000, 0x8000},
                 {3.4028235e38, 0x7c00, 0x7f80},
                 {(double)INFINITY, 0x7c00, 0x7f80},
                 {-0.0, 0x8000, 0x8000},
                 {-(double)INFINITY, 0xfc00, 0xff80}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(ot_f64_to_f16(cases[k].d), cases[k].half);
        assert_int_equal(ot_f64_to_bf16(cases[k].d), cases[k].brain);
        assert_int_equal(ot_f32_to_f16((float)cases[k].d), cases[k].half);
        assert_int_equal(ot_f32_to_bf16((float)cases[k].d), cases[k].brain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_is_what_it_means), cmocka_unit_test(every_code_survives),
        cmocka_unit_test(half_is_rounded_to_even),     cmocka_unit_test(bfloat_is_rounded_to_even),
        cmocka_unit_test(what_is_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
