/* Small mixed-integer programs: built by lp.c, solved by lp_glpk.c. */
#ifndef OT_SELECT_SEARCH_LP_H
#define OT_SELECT_SEARCH_LP_H

#include "base/base.h"

typedef struct ot_lp ot_lp; /* minimise, rows lo <= a.x <= hi, columns with bounds, some integer */
ot_lp *ot_lp_new(ot_arena *a);
/* Returns column index, or OT_NONE on no memory. */
uint32_t ot_lp_col(ot_lp *lp, const char *name, double lo, double hi, double cost, bool integer);
/* Row over n columns. false on no memory. */
bool ot_lp_row(ot_lp *lp, const char *name, double lo, double hi, const uint32_t *cols,
               const double *coef, uint32_t n);
void ot_lp_set_cost(ot_lp *lp, uint32_t col, double cost);
ot_status ot_lp_dump(const ot_lp *lp, FILE *f) OT_MUST_USE; /* CPLEX LP text */
/* Solve with GLPK (bounded: at most `node_limit` branch-and-bound nodes... time limits would not
 * be deterministic). x: [n_cols] out. *optimal false: infeasible or the limit was hit (x then
 * holds the best found if *feasible). */
ot_status ot_lp_solve(const ot_lp *lp, uint32_t node_limit, double *x, double *objective,
                      bool *feasible, bool *optimal) OT_MUST_USE;

/* ---- the inside, for these two files ---- */

typedef struct ot_lp_column {
    char *name;
    double lo, hi, cost; /* +-1e300 and beyond: unbounded */
    bool integer;
} ot_lp_column;

typedef struct ot_lp_line {
    char *name;
    double lo, hi;
    uint32_t *cols; /* [n] */
    double *coef;   /* [n] */
    uint32_t n;
} ot_lp_line;

struct ot_lp {
    ot_arena *arena;
    ot_lp_column *cols;
    uint32_t n_cols;
    size_t cap_cols;
    ot_lp_line *rows;
    uint32_t n_rows;
    size_t cap_rows;
};

#endif
