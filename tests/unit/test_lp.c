/* The solver of small integer programs: what it answers, that it leaves its caller's GLPK alone,
 * and what it does without memory. */
#include "select/search/lp.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <glpk.h>

/* ---- memory that runs out ---- */

static long allowed = -1; /* allocations that still succeed; -1: all */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
#define OWN_MALLOC true
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);

static bool refused(void)
{
    if (allowed > 0) allowed--;
    return allowed == 0;
}

/* A program's own functions go before the C library's, for GLPK as well. */
void *malloc(size_t size) { return refused() ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return refused() ? NULL : __libc_calloc(n, size); }
#else
#define OWN_MALLOC false
#endif

/* Least cost of three things of weights 5, 4, 3 that weigh 7 or more: the first and the last. */
static ot_lp *small(ot_arena *a)
{
    ot_lp *lp = ot_lp_new(a);
    uint32_t cols[3];
    double weights[3] = {5, 4, 3}, costs[3] = {3, 4, 2};
    assert_non_null(lp);
    for (uint32_t k = 0; k < 3; k++) cols[k] = ot_lp_col(lp, "x", 0, 1, costs[k], true);
    assert_true(ot_lp_row(lp, "weight", 7, 1e300, cols, weights, 3));
    return lp;
}

/* x [3]. most: allocations that succeed, or -1. */
static ot_status solve(double *x, bool *optimal, long most)
{
    ot_arena *a = ot_arena_new();
    double cost = 0;
    bool feasible = false;
    assert_non_null(a);
    ot_lp *lp = small(a);
    allowed = most;
    ot_status st = ot_lp_solve(lp, 1000, x, &cost, &feasible, optimal);
    allowed = -1;
    if (st == OT_OK) assert_true(feasible && cost > 4.999 && cost < 5.001);
    ot_arena_free(a);
    return st;
}

static void test_solves(void **state)
{
    (void)state;
    double x[3] = {9, 9, 9};
    bool optimal;
    assert_int_equal(solve(x, &optimal, -1), OT_OK);
    assert_true(optimal && x[0] == 1 && x[1] == 0 && x[2] == 1);
}

/* A program that uses GLPK itself calls the library. */
static void test_leaves_the_callers_problems(void **state)
{
    (void)state;
    double x[3];
    bool optimal;
    glp_prob *mine = glp_create_prob();
    glp_add_cols(mine, 2);
    glp_set_col_bnds(mine, 1, GLP_DB, 1, 4);
    int output = glp_term_out(GLP_OFF);
    assert_int_equal(solve(x, &optimal, -1), OT_OK);
    assert_int_equal(glp_term_out(GLP_OFF), GLP_OFF);
    assert_int_equal(glp_get_num_cols(mine), 2); /* freed memory, had its environment been freed */
    assert_true(glp_get_col_ub(mine, 1) == 4);
    glp_add_rows(mine, 3);
    glp_set_obj_coef(mine, 1, 1);
    glp_set_obj_dir(mine, GLP_MAX);
    assert_int_equal(glp_simplex(mine, NULL), 0);
    assert_true(glp_get_obj_val(mine) == 4);
    glp_delete_prob(mine);
    glp_term_out(output);
    glp_free_env();
}

/* Whichever allocation fails, GLPK's or ours: the answer is the right one, or that memory ran out.
 */
static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    double x[3];
    bool optimal;
    ot_status st = OT_E_NOMEM;
    long k = 1;
    if (!OWN_MALLOC) skip();
    glp_prob *mine = glp_create_prob();
    glp_add_cols(mine, 2);
    for (; st != OT_OK; k++) {
        st = solve(x, &optimal, k);
        if (st != OT_OK && st != OT_E_NOMEM) fail_msg("allocation %ld: status %d", k, st);
    }
    print_message("%ld allocations\n", k);
    assert_true(k > 50 && optimal && x[0] == 1 && x[1] == 0 && x[2] == 1);
    assert_int_equal(glp_get_num_cols(mine), 2);
    glp_delete_prob(mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solves),
        cmocka_unit_test(test_leaves_the_callers_problems),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
