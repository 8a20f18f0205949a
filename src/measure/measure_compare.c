/* Are two results the same?
 *
 *   integers, booleans   every element equal
 *   floats               NMSE = sum (a-b)^2 / sum a^2, and max |a-b| against max |a|, both below a
 *                        tolerance
 *
 * Not-a-number equals not-a-number and infinities equal themselves; where only one side is not
 * finite, the results differ by an infinite amount. float16 and bfloat16 hold 11 and 8 bits:
 * another order of summing rounds to a neighbour.
 */
#include "measure.h"

#include <math.h>

#define HALF_NMSE  1e-4
#define HALF_REL   2e-2
#define HALF_LEAST 0x1p-24 /* the least number of float16: less is none, or that */

typedef struct sums {
    double error, square; /* sums of squares */
    double max_error, max_value;
    int64_t n_unequal;
} sums;

/* Differences between values that are all but zero mean nothing: magnitudes count as 1e-6 at least.
 */
static inline void add_pair(sums *s, double x, double y)
{
    if (isnan(x) && isnan(y)) return;
    if (isinf(x) && x == y) return;
    double e = fabs(x - y);
    if (isnan(e)) e = INFINITY;
    s->error += e * e;
    s->n_unequal += x != y;
    if (e > s->max_error) s->max_error = e;
    if (!isfinite(x)) return;
    s->square += x * x;
    if (fabs(x) > s->max_value) s->max_value = fabs(x);
}

static void add_arrays(sums *s, const ot_nd *a, const ot_nd *b, int64_t n)
{
    if (a->dtype == OT_F32) {
        const float *x = a->data, *y = b->data;
        for (int64_t k = 0; k < n; k++) add_pair(s, (double)x[k], (double)y[k]);
        return;
    }
    for (int64_t k = 0; k < n; k++) add_pair(s, ot_nd_double(a, k), ot_nd_double(b, k));
}

static bool is_float(ot_dtype t)
{
    return t == OT_F32 || t == OT_F64 || t == OT_F16 || t == OT_BF16;
}

static const char *kind_difference(const ot_nd *a, const ot_nd *b)
{
    if (!a->list != !b->list) return "one is a sequence, one is none";
    if (a->dtype != b->dtype) return "the types differ";
    if (!a->data != !b->data) return "one has no contents";
    if (a->rank != b->rank) return "the ranks differ";
    for (uint32_t k = 0; k < a->rank; k++)
        if (a->dims[k] != b->dims[k]) return "the shapes differ";
    return NULL;
}

static ot_difference compare_tensors(const ot_nd *a, const ot_nd *b, bool half)
{
    ot_difference r = {.why = kind_difference(a, b), .is_float = is_float(a->dtype)};
    int64_t n = 0;
    sums s = {0};
    r.alike = !r.why;
    if (r.why || !a->data) {
        r.same = !r.why;
        return r;
    }
    if (!ot_nd_elems(a, &n)) n = 0;
    add_arrays(&s, a, b, n);
    half |= ot_dtype_is_half(a->dtype);
    r.nmse = s.error / fmax(s.square, 1e-30);
    r.max_abs = s.max_error;
    r.max_rel = s.max_error / fmax(s.max_value, 1e-6);
    r.n_unequal = s.n_unequal;
    r.same = s.n_unequal == 0;
    if (is_float(a->dtype))
        r.same = (half && s.max_error <= HALF_LEAST) ||
                 (r.nmse <= (half ? HALF_NMSE : OT_SAME_NMSE) &&
                  r.max_rel <= (half ? HALF_REL : OT_SAME_REL));
    if (!r.same) r.why = "the contents differ";
    return r;
}

ot_difference ot_compare(const ot_nd *a, const ot_nd *b, bool half)
{
    if (!a->list || !b->list) return compare_tensors(a, b, half);
    ot_difference worst = {.same = true, .alike = true};
    if (a->list->n != b->list->n)
        return (ot_difference){.why = "the sequences have different lengths"};
    for (size_t k = 0; k < a->list->n; k++) {
        ot_difference x = compare_tensors(&a->list->items[k], &b->list->items[k], half);
        if (worst.same && !x.same) {
            worst.same = false;
            worst.why = x.why;
        }
        worst.alike = worst.alike && x.alike;
        worst.is_float = worst.is_float || x.is_float;
        worst.n_unequal += x.n_unequal;
        worst.nmse = fmax(worst.nmse, x.nmse);
        worst.max_abs = fmax(worst.max_abs, x.max_abs);
        worst.max_rel = fmax(worst.max_rel, x.max_rel);
    }
    return worst;
}

bool ot_has_half(const ot_graph *g)
{
    for (ot_id v = 0; v < g->n_values; v++)
        if (ot_dtype_is_half(g->values[v].dtype)) return true;
    return false;
}
