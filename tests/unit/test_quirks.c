/* Quirks and types: the tables are whole, and name what they should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/quirks.h"
#include "tiling/reassemble_types.h"

static void rows_are_whole(void **state)
{
    (void)state;
    for (int q = 0; q < OT_QUIRK_COUNT; q++) {
        const ot_quirk_row *r = &ot_quirk_rows[q];
        assert_true(*r->name && *r->ops && *r->seen && r->why < OT_WHYS);
        assert_true(r->by != 0 && (r->by & ~OT_BY_ALL) == 0);
        /* what is kept for whoever runs it, keeps to every row */
        assert_true(ot_quirk_concerns((ot_quirk)q, OT_BY_ALL));
        assert_false(ot_quirk_concerns((ot_quirk)q, 0));
        assert_false(ot_quirk_hits((ot_quirk)q, OT_BY_ALL, ""));
    }
}

static void names_are_whole_words(void **state)
{
    (void)state;
    assert_true(ot_quirk_hits(OT_QUIRK_SPECTRAL_SHAPE, OT_BY_ALL, "STFT"));
    assert_true(ot_quirk_hits(OT_QUIRK_SPECTRAL_SHAPE, OT_BY_ALL, "DFT"));
    assert_false(ot_quirk_hits(OT_QUIRK_SPECTRAL_SHAPE, OT_BY_ALL, "FT"));
    assert_false(ot_quirk_hits(OT_QUIRK_SPECTRAL_SHAPE, OT_BY_ENGINE, "DFT"));
    assert_true(ot_quirk_hits(OT_QUIRK_CHANNEL_AVERAGE, OT_BY_ALL, "GlobalAveragePool"));
    assert_true(ot_quirk_hits(OT_QUIRK_CHANNEL_AVERAGE, OT_BY_ONNXRUNTIME, "LpPool"));
    assert_false(ot_quirk_hits(OT_QUIRK_CHANNEL_AVERAGE, OT_BY_ALL, "MaxPool"));
}

/* A type that an operator takes at one opset it takes at every later one; the oldest fifteen are
 * taken by all. */
static void types_come_and_stay(void **state)
{
    (void)state;
    for (int s = 0; s < OT_REASSEMBLE_COUNT; s++) {
        for (int t = OT_F32; t <= OT_I2; t++) {
            bool before = false;
            for (int64_t opset = 7; opset <= 25; opset++) {
                bool takes = ot_reassemble_takes((ot_reassemble)s, (ot_dtype)t, opset);
                assert_true(takes || !before);
                assert_true(takes || t > OT_C128);
                before = takes;
            }
        }
        assert_false(ot_reassemble_takes((ot_reassemble)s, OT_DT_UNKNOWN, 25));
    }
    assert_false(ot_reassemble_takes(OT_REASSEMBLE_SLICE, OT_BF16, 12));
    assert_true(ot_reassemble_takes(OT_REASSEMBLE_SLICE, OT_BF16, 13));
    assert_false(ot_reassemble_takes(OT_REASSEMBLE_LOOP, OT_BF16, 15));
    assert_false(ot_reassemble_takes(OT_REASSEMBLE_CONCAT, OT_F8E4M3FN, 25));
    assert_true(ot_reassemble_takes(OT_REASSEMBLE_LOOP, OT_F8E4M3FN, 19));
    assert_false(ot_reassemble_takes(OT_REASSEMBLE_SEQUENCE, OT_BF16, 25));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(names_are_whole_words),
        cmocka_unit_test(types_come_and_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
