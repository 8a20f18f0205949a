/* The inside of ot_lp, shared by lp.c and lp_glpk.c only. */
#ifndef OT_LP_H
#define OT_LP_H

#include "region/region.h"

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
