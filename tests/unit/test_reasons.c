/* The table of reasons: ids unique and as they always were, sentences and what lifts them, and
 * no sentence outside of the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>

#include "ops/reasons.h"

/* The name that scripts read is the id in lower case with '-': neither can change alone. */
static void names_are_ids(void **state)
{
    (void)state;
    static const char *const ids[] = {
#define REASON(id, name, sentence, lift) [OT_WHY_##id] = #id,
#include "ops/reasons.def"
    };
    for (ot_why w = OT_WHY_NONE + 1; w < OT_WHYS; w++) {
        const char *name = ot_reason_name(w), *id = ids[w];
        assert_int_equal(strlen(name), strlen(id));
        for (size_t k = 0; id[k]; k++)
            assert_int_equal(name[k], id[k] == '_' ? '-' : tolower((unsigned char)id[k]));
        assert_int_equal(ot_reason_find(name), w); /* and no other row has it */
    }
}

/* One sentence, one row: a reason has not two names. */
static void sentences_are_unique(void **state)
{
    (void)state;
    for (ot_why w = OT_WHY_NONE + 1; w < OT_WHYS; w++) {
        const char *s = ot_reason_sentence(w);
        assert_true(strlen(s) > 5 && strlen(s) < 160);
        assert_true(s[strlen(s) - 1] != '.' && s[0] != ' ' && !strchr(s, '%') && !strchr(s, '\n'));
        for (ot_why v = w + 1; v < OT_WHYS; v++)
            if (strcmp(s, ot_reason_sentence(v)) == 0) fail_msg("%s twice", s);
    }
}

/* Names that reports of released versions hold: scripts compare with them. */
static void names_stay(void **state)
{
    (void)state;
    static const char *const known[] = {"softmax",          "global-pool",      "whole-input",
                                        "unknown-operator", "not-faster",       "loses",
                                        "input-shape",      "kept-control-flow"};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        assert_int_not_equal(ot_reason_find(known[k]), OT_WHY_NONE);
    assert_int_equal(ot_reason_find("no such reason"), OT_WHY_NONE);
}

static void numbers_are_put_in(void **state)
{
    (void)state;
    ot_arena *a = ot_arena_new();
    assert_non_null(a);
    assert_string_equal(ot_reason_text(a, (ot_reason){OT_WHY_LOSES, 0.0012345}),
                        "predicted to lose 1.234 ms: windows, reassembly and recomputation cost "
                        "more than the traffic saved");
    assert_string_equal(ot_reason_text(a, (ot_reason){OT_WHY_SOFTMAX, 3}),
                        "Softmax needs its whole axis");
    for (ot_why w = OT_WHY_NONE; w < OT_WHYS; w++)
        assert_null(strchr(ot_reason_text(a, (ot_reason){w, 1}), '{'));
    ot_arena_free(a);
}

/* What lifts a reason is a change of the model: options are tried before they are named. */
static void lifts_name_no_option(void **state)
{
    (void)state;
    for (ot_why w = OT_WHY_NONE; w < OT_WHYS; w++) {
        assert_null(strstr(ot_reason_lift(w), "--"));
        assert_null(strstr(ot_reason_sentence(w), "--"));
        assert_null(strstr(ot_reason_lift(w), "tiles along"));
    }
    assert_string_equal(ot_reason_lift(OT_WHYS), "");
    assert_int_equal(ot_reason_cures(OT_WHYS), 0);
    assert_int_equal(ot_reason_cures(OT_WHY_PEAK), OT_CURE_SLOWDOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_ids),        cmocka_unit_test(sentences_are_unique),
        cmocka_unit_test(names_stay),           cmocka_unit_test(numbers_are_put_in),
        cmocka_unit_test(lifts_name_no_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
