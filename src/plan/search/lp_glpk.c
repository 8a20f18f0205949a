/* Solve an ot_lp with GLPK: simplex, then branch and cut with a bound on the number of nodes visited, so that the answer
 * does not depend on the clock. The only user of glpk.h. */
#include "lp.h"

#include <glpk.h>

typedef struct budget {
    uint32_t left;
} budget;

static void count_node(glp_tree *tree, void *info)
{
    budget *b = info;
    if (glp_ios_reason(tree) != GLP_ISELECT) return;
    if (b->left == 0)
        glp_ios_terminate(tree);
    else
        b->left--;
}

static int bound_kind(double lo, double hi)
{
    if (lo <= -1e300 && hi >= 1e300) return GLP_FR;
    if (lo <= -1e300) return GLP_UP;
    if (hi >= 1e300) return GLP_LO;
    return lo == hi ? GLP_FX : GLP_DB;
}

static glp_prob *build(const ot_lp *lp)
{
    glp_prob *p = glp_create_prob();
    glp_set_obj_dir(p, GLP_MIN);
    if (lp->n_cols > 0) glp_add_cols(p, (int)lp->n_cols);
    if (lp->n_rows > 0) glp_add_rows(p, (int)lp->n_rows);
    for (uint32_t k = 0; k < lp->n_cols; k++) {
        const ot_lp_column *c = &lp->cols[k];
        glp_set_col_bnds(p, (int)k + 1, bound_kind(c->lo, c->hi), c->lo, c->hi);
        glp_set_obj_coef(p, (int)k + 1, c->cost);
        if (c->integer) glp_set_col_kind(p, (int)k + 1, GLP_IV);
    }
    for (uint32_t k = 0; k < lp->n_rows; k++) {
        const ot_lp_line *r = &lp->rows[k];
        int *ind = malloc((r->n + 1u) * sizeof *ind);
        double *val = malloc((r->n + 1u) * sizeof *val);
        for (uint32_t j = 0; ind && val && j < r->n; j++) ind[j + 1] = (int)r->cols[j] + 1, val[j + 1] = r->coef[j];
        glp_set_row_bnds(p, (int)k + 1, bound_kind(r->lo, r->hi), r->lo, r->hi);
        if (ind && val) glp_set_mat_row(p, (int)k + 1, (int)r->n, ind, val);
        free(ind);
        free(val);
    }
    return p;
}

ot_status ot_lp_solve(const ot_lp *lp, uint32_t node_limit, double *x, double *objective, bool *feasible, bool *optimal)
{
    glp_term_out(GLP_OFF);
    glp_prob *p = build(lp);
    glp_smcp sm;
    glp_iocp io;
    glp_init_smcp(&sm);
    glp_init_iocp(&io);
    sm.msg_lev = io.msg_lev = GLP_MSG_OFF;
    sm.it_lim = 200000;
    budget b = {node_limit};
    io.cb_func = count_node;
    io.cb_info = &b;
    *feasible = *optimal = false;
    int rc = glp_simplex(p, &sm);
    if (rc == 0 && glp_get_status(p) == GLP_OPT) {
        rc = glp_intopt(p, &io);
        int st = glp_mip_status(p);
        *optimal = rc == 0 && st == GLP_OPT;
        *feasible = st == GLP_OPT || st == GLP_FEAS;
        for (uint32_t k = 0; k < lp->n_cols && *feasible; k++) x[k] = glp_mip_col_val(p, (int)k + 1);
        *objective = *feasible ? glp_mip_obj_val(p) : 0;
    }
    glp_delete_prob(p);
    glp_free_env();
    return OT_OK;
}
