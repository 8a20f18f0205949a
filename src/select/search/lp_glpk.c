/* Solve an ot_lp with GLPK: simplex, then branch and cut with a bound on the number of nodes
 * visited, so that the answer does not depend on the clock. The only user of glpk.h.
 *
 *   our thread   -- arrays for a row --> starts a thread, waits for it ------------------------->
 *                status
 *   its thread                            GLPK's environment: made, hooks set, solved in, freed
 *
 * GLPK keeps its state, and all its memory, in an environment of the calling thread. The caller
 * of this library may have one, with problems in it that glp_free_env would destroy: so each
 * solve has a thread, and with it an environment, of its own. When memory runs out GLPK calls
 * abort(), unless an error hook does not return; jumping out of the hook and then freeing the
 * environment is the way that its manual gives. The jump passes over GLPK's frames and
 * count_node, which own nothing of ours, and stays in that thread.
 */
#include "lp.h"

#include <glpk.h>
#include <pthread.h>
#include <setjmp.h>

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

typedef struct job {
    const ot_lp *lp;
    uint32_t node_limit;
    double *x;        /* [n_cols] result */
    double objective; /* valid when feasible */
    bool feasible, optimal;
    bool done;   /* false: GLPK gave up, because memory ran out */
    int *ind;    /* [longest row + 1] scratch */
    double *val; /* [longest row + 1] scratch */
    jmp_buf out;
} job;

static glp_prob *build(const job *j)
{
    const ot_lp *lp = j->lp;
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
        for (uint32_t i = 0; i < r->n; i++) {
            j->ind[i + 1] = (int)r->cols[i] + 1;
            j->val[i + 1] = r->coef[i];
        }
        glp_set_row_bnds(p, (int)k + 1, bound_kind(r->lo, r->hi), r->lo, r->hi);
        glp_set_mat_row(p, (int)k + 1, (int)r->n, j->ind, j->val);
    }
    return p;
}

static void solve(job *j)
{
    glp_prob *p = build(j);
    glp_smcp sm;
    glp_iocp io;
    glp_init_smcp(&sm);
    glp_init_iocp(&io);
    sm.msg_lev = io.msg_lev = GLP_MSG_OFF;
    sm.it_lim = 200000;
    budget b = {j->node_limit};
    io.cb_func = count_node;
    io.cb_info = &b;
    int rc = glp_simplex(p, &sm);
    if (rc != 0 || glp_get_status(p) != GLP_OPT) return;
    rc = glp_intopt(p, &io);
    int st = glp_mip_status(p);
    j->optimal = rc == 0 && st == GLP_OPT;
    j->feasible = st == GLP_OPT || st == GLP_FEAS;
    for (uint32_t k = 0; k < j->lp->n_cols && j->feasible; k++)
        j->x[k] = glp_mip_col_val(p, (int)k + 1);
    j->objective = j->feasible ? glp_mip_obj_val(p) : 0;
}

/* GLPK's error hook: it prints and calls abort() if this returns. */
static void give_up(void *info)
{
    job *j = info;
    longjmp(j->out, 1);
}

static int say_nothing(void *info, const char *text)
{
    (void)info;
    (void)text;
    return 1;
}

/* Body of the thread. Nothing here or above it owns memory when GLPK jumps. */
static void *run_job(void *data)
{
    job *j = data;
    if (glp_init_env() != 0) return NULL;
    if (setjmp(j->out) == 0) {
        glp_term_hook(say_nothing, NULL);
        glp_error_hook(give_up, j);
        solve(j);
        j->done = true;
    }
    glp_free_env(); /* and all that this thread's GLPK has allocated */
    return NULL;
}

ot_status ot_lp_solve(const ot_lp *lp, uint32_t node_limit, double *x, double *objective,
                      bool *feasible, bool *optimal)
{
    job j = {.lp = lp, .node_limit = node_limit, .x = x};
    uint32_t longest = 0;
    pthread_t thread;
    for (uint32_t k = 0; k < lp->n_rows; k++)
        longest = lp->rows[k].n > longest ? lp->rows[k].n : longest;
    *feasible = *optimal = false;
    *objective = 0;
    j.ind = OT_NEW_N(lp->arena, int, longest + 1u);
    j.val = OT_NEW_N(lp->arena, double, longest + 1u);
    if (!j.ind || !j.val || pthread_create(&thread, NULL, run_job, &j) != 0) return OT_E_NOMEM;
    (void)pthread_join(thread, NULL);
    if (!j.done) return OT_E_NOMEM;
    *objective = j.objective;
    *feasible = j.feasible;
    *optimal = j.optimal;
    return OT_OK;
}
