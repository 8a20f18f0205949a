/* Tiles of whole granules: what is counted against every granule that every tile touches, and
 * what the search makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "select/search/plan_search.h"
#include "select/search/search.h"

#define ROWS    5
#define COLUMNS 6464 /* 101 granules of 64 floats */

static ot_model *chain_of(int64_t rows, int64_t columns)
{
    static ot_diag d;
    char text[400];
    ot_model *m = NULL;
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,4,%lld,%lld]\n  %%a = "
             "Sigmoid(%%x)\n"
             "  %%b = Tanh(%%a)\n  %%y = Neg(%%b)\n  output %%y\n}\n",
             (long long)rows, (long long)columns);
    if (ot_text_parse(text, strlen(text), &d, &m) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES | OT_P_SHAPES), OT_OK);
    return m;
}

static ot_plan *plan_of(const ot_model *m, const char *target, int64_t l2, ot_target *t)
{
    static ot_diag d;
    ot_plan *p = NULL;
    const ot_plan_options o = {.goal = OT_GOAL_TIME, .force = true};
    assert_int_equal(ot_target_load(target, 1, &d, t), OT_OK);
    ot_target_set_l2(t, l2);
    assert_int_equal(ot_plan_graph(m->graph, t, &o, &p), OT_OK);
    assert_int_equal(p->n_regions, 1);
    return p;
}

/* Extent of the tiles along the last axis, or `columns` when it is not cut. */
static int64_t columns_of(const ot_region *r, int64_t columns)
{
    for (uint32_t d = 0; d < r->n_dims; d++)
        if (r->values[r->dims[d].sink].axis[d] == 3) return r->dims[d].tile;
    return columns;
}

/* Tensors of four axes that are read once and written once, element by element: every granule of
 * every row of every tile. */
static double count_by_hand(const ot_region *r, const int64_t *dims, int64_t granule)
{
    int64_t tile[4] = {dims[0], dims[1], dims[2], dims[3]}, at[4];
    double bytes = 0;
    for (uint32_t d = 0; d < r->n_dims; d++)
        tile[r->values[r->dims[d].sink].axis[d]] = r->dims[d].tile;
    for (at[0] = 0; at[0] < dims[0]; at[0]++)
        for (at[1] = 0; at[1] < dims[1]; at[1]++)
            for (at[2] = 0; at[2] < dims[2]; at[2]++)
                for (at[3] = 0; at[3] < dims[3]; at[3] += tile[3]) {
                    const int64_t row = ((at[0] * dims[1] + at[1]) * dims[2] + at[2]) * dims[3];
                    const int64_t lo = 4 * (row + at[3]),
                                  hi = 4 * (row + ot_min(at[3] + tile[3], dims[3]));
                    bytes += (double)((hi - 1) / granule - lo / granule + 1) * (double)granule;
                }
    return 2 * bytes;
}

static void granules_are_those_of_every_tile(void **state)
{
    (void)state;
    const int64_t dims[4] = {1, 4, ROWS, COLUMNS};
    ot_target t;
    ot_model *m = chain_of(ROWS, COLUMNS);
    for (int64_t l2 = 20000; l2 <= 100000; l2 += 20000) {
        ot_plan *p = plan_of(m, "tlf-16m", l2, &t);
        const ot_region *r = &p->regions[0];
        ot_arena *a = ot_arena_new();
        double moved;
        assert_non_null(a);
        assert_int_equal(ot_granules_moved(m->graph, r, t.granule, a, &moved), OT_OK);
        if (columns_of(r, COLUMNS) < COLUMNS)
            assert_true(moved == count_by_hand(r, dims, t.granule));
        ot_arena_free(a);
        ot_plan_free(p);
    }
    ot_model_free(m);
}

/* 404 columns are a sixteenth of them; 448 are 7 granules, fit, and are moved in fewer transfers.
 */
static void tiles_become_whole_granules_on_a_scratchpad(void **state)
{
    (void)state;
    ot_target t;
    ot_model *m = chain_of(ROWS, COLUMNS);
    ot_plan *p = plan_of(m, "tlf-16m", 60 << 10, &t);
    assert_int_equal(t.granule, 256);
    assert_int_equal(columns_of(&p->regions[0], COLUMNS), 448);
    assert_int_equal(ot_granule_steps(m->graph, &p->regions[0], 1, t.granule), 64);
    assert_int_equal(ot_granule_steps(m->graph, &p->regions[0], 0, t.granule), 0);
    ot_plan_free(p);
    ot_model_free(m);
}

/* Rows that begin inside of granules have no better places: extents stay as they are. */
static void rows_that_lie_anywhere_stay(void **state)
{
    (void)state;
    ot_target t;
    ot_model *m = chain_of(ROWS, COLUMNS + 2);
    ot_plan *p = plan_of(m, "tlf-16m", 60 << 10, &t);
    for (uint32_t d = 0; d < p->regions[0].n_dims; d++)
        assert_int_equal(ot_granule_steps(m->graph, &p->regions[0], d, t.granule), 0);
    ot_plan_free(p);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(granules_are_those_of_every_tile),
        cmocka_unit_test(tiles_become_whole_granules_on_a_scratchpad),
        cmocka_unit_test(rows_that_lie_anywhere_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
