/* Affine expressions of loop variables: c0 + c1*i + c2*j.
 *
 * They are the bounds of windows and subviews. Each variable stands in one term, with a
 * coefficient that is not 0, so that two expressions are equal when their constants and terms
 * are. All arithmetic is checked: the numbers are a stranger's.
 */
#include "tk_internal.h"

#define TERMS_MAX (sizeof((ot_tk_affine *)0)->terms / sizeof *((ot_tk_affine *)0)->terms)

bool tk_affine_add(ot_tk_affine *a, const char *var, int64_t coef)
{
    uint32_t k = 0;
    while (k < a->n && strcmp(a->terms[k].var, var) != 0) k++;
    if (k == TERMS_MAX) return false;
    if (k == a->n) {
        a->terms[k].var = var;
        a->terms[k].coef = 0;
        a->n++;
    }
    return ot_add_i64(a->terms[k].coef, coef, &a->terms[k].coef) && a->terms[k].coef != INT64_MIN;
}

void tk_affine_tidy(ot_tk_affine *a)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < a->n; k++)
        if (a->terms[k].coef != 0) a->terms[kept++] = a->terms[k];
    a->n = kept;
}

/* requires tidy expressions: each variable once. */
static bool same_terms(const ot_tk_affine *a, const ot_tk_affine *b)
{
    if (a->n != b->n || a->n > TERMS_MAX) return false;
    for (uint32_t k = 0; k < a->n; k++) {
        uint32_t j = 0;
        while (j < b->n && strcmp(a->terms[k].var, b->terms[j].var) != 0) j++;
        if (j == b->n || a->terms[k].coef != b->terms[j].coef) return false;
    }
    return true;
}

bool tk_extent(const ot_tk_range *r, int64_t *out)
{
    return same_terms(&r->lo, &r->hi) &&
           !__builtin_sub_overflow(r->hi.constant, r->lo.constant, out);
}
