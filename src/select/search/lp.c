/* Small mixed-integer programs, kept apart from the solver so that they can be built, dumped and
 * tested without it. */
#include "lp.h"

ot_lp *ot_lp_new(ot_arena *a)
{
    ot_lp *lp = OT_NEW(a, ot_lp);
    if (lp) lp->arena = a;
    return lp;
}

uint32_t ot_lp_col(ot_lp *lp, const char *name, double lo, double hi, double cost, bool integer)
{
    ot_lp_column c = {ot_strdup(lp->arena, name), lo, hi, cost, integer};
    if (!c.name || !OT_PUSH(lp->arena, lp->cols, lp->n_cols, lp->cap_cols, c)) return OT_NONE;
    return lp->n_cols - 1;
}

bool ot_lp_row(ot_lp *lp, const char *name, double lo, double hi, const uint32_t *cols,
               const double *coef, uint32_t n)
{
    ot_lp_line r = {ot_strdup(lp->arena, name),
                    lo,
                    hi,
                    ot_memdup(lp->arena, cols, n * sizeof *cols),
                    ot_memdup(lp->arena, coef, n * sizeof *coef),
                    n};
    return r.name && r.cols && r.coef && OT_PUSH(lp->arena, lp->rows, lp->n_rows, lp->cap_rows, r);
}

void ot_lp_set_cost(ot_lp *lp, uint32_t col, double cost) { lp->cols[col].cost = cost; }

static void print_bound(FILE *f, double x)
{
    if (x >= 1e300)
        fputs("+inf", f);
    else if (x <= -1e300)
        fputs("-inf", f);
    else
        fprintf(f, "%.9g", x);
}

ot_status ot_lp_dump(const ot_lp *lp, FILE *f)
{
    fputs("Minimize\n obj:", f);
    for (uint32_t k = 0; k < lp->n_cols; k++)
        if (lp->cols[k].cost != 0) fprintf(f, " %+.9g %s", lp->cols[k].cost, lp->cols[k].name);
    fputs("\nSubject To\n", f);
    for (uint32_t k = 0; k < lp->n_rows; k++) {
        const ot_lp_line *r = &lp->rows[k];
        for (int side = 0; side < 2; side++) {
            double b = side ? r->hi : r->lo;
            if (b >= 1e300 || b <= -1e300 || (side && r->lo == r->hi)) continue;
            fprintf(f, " %s_%s:", r->name, r->lo == r->hi ? "eq" : side ? "hi" : "lo");
            for (uint32_t j = 0; j < r->n; j++)
                fprintf(f, " %+.9g %s", r->coef[j], lp->cols[r->cols[j]].name);
            fprintf(f, " %s %.9g\n", r->lo == r->hi ? "=" : side ? "<=" : ">=", b);
        }
    }
    fputs("Bounds\n", f);
    for (uint32_t k = 0; k < lp->n_cols; k++) {
        fputc(' ', f);
        print_bound(f, lp->cols[k].lo);
        fprintf(f, " <= %s <= ", lp->cols[k].name);
        print_bound(f, lp->cols[k].hi);
        fputc('\n', f);
    }
    fputs("Generals\n", f);
    for (uint32_t k = 0; k < lp->n_cols; k++)
        if (lp->cols[k].integer) fprintf(f, " %s\n", lp->cols[k].name);
    fputs("End\n", f);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
