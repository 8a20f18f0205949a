/* Extents as terms of dynamic dimensions: what an extent is at every size of a range, and whether
 * it grows with each dimension.
 *
 *   x [n, 3, h, w] --Conv k3 s2 p1--> [n, 32, (h + 2 - 3) / 2 + 1, ...]
 *
 *   term   h     h + -1  (h + -1) / 2  (h + -1) / 2 + 1  hash-consed: equal terms have equal
 *                                                        numbers
 *   least  256   255     127           128               over the range
 *   most   2160  2159    1079          1080
 *   falls  no    no      no            no                in no dynamic dimension does it ever fall
 *
 * A term that never falls is largest at the upper corner of the range: that is what a proved
 * bound rests on. Numbers are exact integers below 2^50; what would be larger, or is computed of
 * data, is no term (OT_NONE).
 */
#ifndef OT_OPS_SIZE_TERMS_H
#define OT_OPS_SIZE_TERMS_H

#include "ops.h"

#define OT_SIZE_VARS_MAX 32

/* A dynamic dimension and where it may lie: lo, lo + step, ... up to hi, which is one of them. */
typedef struct ot_size_var {
    int64_t lo, hi, step; /* 1 <= lo <= hi, step >= 1 */
} ot_size_var;

typedef struct ot_size_terms ot_size_terms;
typedef uint32_t ot_term; /* OT_NONE: no term */

/* Terms over vars ([n] <= OT_SIZE_VARS_MAX, copied). NULL when memory ran out. */
ot_size_terms *ot_size_terms_new(ot_arena *a, const ot_size_var *vars, uint32_t n);
uint32_t ot_size_n_vars(const ot_size_terms *s);
const ot_size_var *ot_size_var_at(const ot_size_terms *s, uint32_t k);
bool ot_size_failed(const ot_size_terms *s); /* memory ran out: terms since then are OT_NONE */

/* Each is OT_NONE where an operand is, or where the result might leave the range of exact numbers.
 */
ot_term ot_term_const(ot_size_terms *s, int64_t v);
ot_term ot_term_var(ot_size_terms *s, uint32_t k);
ot_term ot_term_add(ot_size_terms *s, ot_term a, ot_term b);
ot_term ot_term_sub(ot_size_terms *s, ot_term a, ot_term b);
ot_term ot_term_mul(ot_size_terms *s, ot_term a, ot_term b);
/* floor; a >= 0 and b >= 1 over the range, else OT_NONE */
ot_term ot_term_div(ot_size_terms *s, ot_term a, ot_term b);
ot_term ot_term_max(ot_size_terms *s, ot_term a, ot_term b);
ot_term ot_term_min(ot_size_terms *s, ot_term a, ot_term b);
/* floorf((float)a * by); a >= 0, by > 0, else OT_NONE */
ot_term ot_term_scale(ot_size_terms *s, ot_term a, float by);

/* false: it varies, or is no term */
bool ot_term_is_const(const ot_size_terms *s, ot_term t, int64_t *v);
/* not above its least value in the range */
int64_t ot_term_least(const ot_size_terms *s, ot_term t);
int64_t ot_term_most(const ot_size_terms *s, ot_term t); /* not below its largest */
/* it may be smaller where a dynamic dimension is larger; OT_NONE: true */
bool ot_term_falls(const ot_size_terms *s, ot_term t);
uint32_t ot_term_vars(const ot_size_terms *s, ot_term t); /* bit k: variable k is in it */
size_t ot_size_n_terms(const ot_size_terms *s);
/* Values of all terms where variable k is at[k], a size of the range: out[t] of term t,
 * [ot_size_n_terms]. */
void ot_size_values(const ot_size_terms *s, const int64_t *at, int64_t *out);

/* ---- size_rules.c: the terms of a graph ---- */

typedef struct ot_size_table {
    ot_size_terms *terms;
    ot_term **dims; /* [n_values] of each value [rank]; NULL: its rank is not known */
    /* [n_values] of small integers, or floats that are whole; NULL: computed of data, or too
     * many */
    ot_term **content;
    uint32_t *n_content;
    uint32_t n_values;
} ot_size_table;

/* Terms of all values of g, the file's graph, whose inputs have the terms `inputs`
 * [g->n_inputs][rank] (NULL: as the file says). What holds at every size (ot_infer_shapes
 * without bindings) is believed. Requires ORDER, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_size_table_fill(const ot_graph *g, ot_size_terms *terms, ot_term *const *inputs,
                             ot_arena *a, ot_size_table *out) OT_MUST_USE;

#endif
