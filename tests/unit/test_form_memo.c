/* Tiles that are remembered are those that are computed, for each region its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "hand_plan.h"
#include "shaped_model.h"
#include "tiling/forms.h"

static void check_same(const ot_form_tiles *a, const ot_form_tiles *b)
{
    for (uint32_t d = 0; d < a->r->n_dims; d++) {
        const ot_dim_runs *p = &a->dims[d], *q = &b->dims[d];
        assert_int_equal(p->n, q->n);
        assert_int_equal(p->n_runs, q->n_runs);
        assert_memory_equal(p->runs, q->runs, p->n_runs * sizeof *p->runs);
        for (uint32_t k = 0; k < p->n; k++)
            for (uint32_t v = 0; v < a->r->n_values; v++)
                assert_memory_equal(&p->tiles[k].made[v], &q->tiles[k].made[v], sizeof(ot_win));
    }
}

/* Asked in turn, twice each, from an arena that is gone by then. */
static void what_is_recalled_is_what_is_prepared(void **state)
{
    (void)state;
    static const ot_form FORMS[] = {OT_FORM_UNROLLED, OT_FORM_PEELED, OT_FORM_LOOP, OT_FORM_SCAN};
    static const uint32_t TILES[] = {2, 3, 4, 8};
    ot_diag d;
    ot_model *m = read_model("model ir 8 opset 17\ngraph g {\n input %x : float32[1,4,32,24]\n"
                             " init %w : float32[4,4,3,3] = random 1\n"
                             " %a = Conv(%x, %w) {pads=[1,1,1,1]}\n %b = Relu(%a)\n"
                             " %y = Conv(%b, %w) {pads=[1,1,1,1]}\n output %y\n}\n",
                             &d);
    ot_form_memo *memo = ot_form_memo_new(m->arena);
    uint32_t n_legal = 0, n_not = 0;
    assert_non_null(memo);
    for (int again = 0; again < 2; again++)
        for (size_t f = 0; f < sizeof FORMS / sizeof *FORMS; f++)
            for (size_t t = 0; t < sizeof TILES / sizeof *TILES; t++)
                for (uint32_t axis = 2; axis < 4; axis++) {
                    ot_arena *a = ot_arena_new(), *gone = ot_arena_new();
                    ot_region r;
                    ot_why why = OT_WHY_NONE, other = OT_WHY_NONE;
                    bool legal, known;
                    assert_true(hand_plan(m->graph, ot_value_find(m->graph, "y"), 1, &axis,
                                          &TILES[t], FORMS[f], a, &r, &why) > 0);
                    why = OT_WHY_NONE;
                    ot_form_tiles p = {.g = m->graph, .r = &r, .arena = a}, q = p;
                    q.arena = gone;
                    assert_int_equal(ot_form_prepare(&p, FORMS[f], &legal, &why), OT_OK);
                    assert_int_equal(ot_form_recall(memo, &q, FORMS[f], &known, &other), OT_OK);
                    ot_arena_free(gone);
                    assert_int_equal(known, legal);
                    if (!legal) assert_int_equal(other, why);
                    if (legal) check_same(&p, &q);
                    n_legal += legal;
                    n_not += !legal;
                    ot_arena_free(a);
                }
    assert_true(n_legal > 0 && n_not > 0);
    ot_form_memo_free(memo);
    ot_model_free(m);
}

/* ---- memory ---- */

static size_t held; /* bytes that the hook gave */

static void *counted(void *ptr, size_t old_size, size_t new_size)
{
    held += new_size - old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

#define MOST (8 << 20) /* bytes that a memo has after any number of sets */

/* Sets of hundreds of tiles, another each time beside one that stays: what is held stays bounded,
 * and what is recalled is right all the same. */
static void what_is_held_is_bounded(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = read_model("model ir 8 opset 17\ngraph g {\n input %x : float32[1,4,4096,24]\n"
                             " init %w : float32[4,4,3,3] = random 1\n"
                             " %a = Conv(%x, %w) {pads=[1,1,1,1]}\n %b = Relu(%a)\n"
                             " %y = Conv(%b, %w) {pads=[1,1,1,1]}\n output %y\n}\n",
                             &d);
    static const uint32_t AXIS = 2;
    size_t computed = 0;
    held = 0;
    ot_set_alloc_hook(counted);
    ot_arena *own = ot_arena_new();
    ot_form_memo *memo = ot_form_memo_new(own);
    for (uint32_t set = 0; set < 90; set++) {
        ot_form_memo_next(memo);
        for (uint32_t tiles = 512; tiles <= 513 + set; tiles += 1 + set) {
            ot_arena *a = ot_arena_new();
            ot_region r;
            ot_why why = OT_WHY_NONE;
            bool legal, known;
            assert_true(hand_plan(m->graph, ot_value_find(m->graph, "y"), 1, &AXIS, &tiles,
                                  OT_FORM_UNROLLED, a, &r, &why) > 0);
            ot_form_tiles p = {.g = m->graph, .r = &r, .arena = a}, q = p;
            assert_int_equal(ot_form_prepare(&p, r.form, &legal, &why), OT_OK);
            assert_int_equal(ot_form_recall(memo, &q, r.form, &known, &why), OT_OK);
            assert_true(legal && known);
            check_same(&p, &q);
            computed += ot_arena_bytes(a);
            ot_arena_free(a);
        }
    }
    assert_true(computed > 4 * (size_t)MOST); /* there was more than it may have */
    assert_true(held < (size_t)MOST);
    ot_form_memo_free(memo);
    ot_arena_free(own);
    assert_int_equal(held, 0);
    ot_set_alloc_hook(NULL);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_recalled_is_what_is_prepared),
                                       cmocka_unit_test(what_is_held_is_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
