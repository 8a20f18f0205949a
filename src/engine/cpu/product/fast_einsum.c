/* Einsum of float32 by products, sums and copies.
 *
 *   labels that one term alone has are summed first; then the cheapest pair of terms becomes one,
 *   until one is left:
 *
 *       label in   A  B  result
 *                  x  x    x      batch   y[batch, m, n] = sum over k of
 *                  x       x      m                        a[batch, m, k] * b[batch, k, n]
 *                     x    x      n
 *                  x  x           k
 *
 *   Labels of a kind that lie one after another in every array count as one axis (contraction.c).
 *   Operands, and a result, that do not lie as a product needs them are copied. Without k, with
 *   vectors and in small products a nest of plain loops computes the same. A single term is summed,
 *   transposed, its diagonal taken.
 *
 * Types other than floats of 16 and 32 bits, empty arrays, and what the operator refuses go to
 * the reference.
 */
#include "contraction.h"

#include "engine/core/half.h"
#include "engine/cpu/move/fast_move.h"

enum {
    LABELS = OT_EINSUM_LABELS,
    TERMS_MAX = 16,
    SMALL_PRODUCT = 512 /* multiplications, below which loops are faster */
};

/* An operand or what came of some: the element at a position is the sum of position times step
 * over the labels. */
typedef struct term {
    const float *data;
    int64_t step[LABELS]; /* 0: has it not */
} term;

/* Dense steps for the labels in `order`, the last one fastest; returns the number of elements. */
static int64_t lay_out(const ot_einsum *e, const uint32_t *order, uint32_t n, int64_t *step)
{
    int64_t size = 1;
    memset(step, 0, LABELS * sizeof *step);
    for (uint32_t k = n; k-- > 0;) {
        step[order[k]] = size;
        if (!ot_mul_i64(size, e->extent[order[k]], &size)) return -1;
    }
    return size;
}

/* ---- contractions ---- */

typedef struct pairing {
    ot_call *call;
    const ot_einsum *e;
    term a, b, y;
    float *to;    /* y.data, for writing */
    bool *wanted; /* [LABELS] of y */
    bool *beyond; /* set when there are more axes than can be copied: the result is void */
} pairing;

static int kind_of(const pairing *p, uint32_t l)
{
    bool a = p->a.step[l] != 0, b = p->b.step[l] != 0;
    if (!a && !b) return OT_AXES_KINDS;
    if (!p->wanted[l]) return OT_AXES_SUMMED;
    return a && b ? OT_AXES_BATCH : a ? OT_AXES_ROWS : OT_AXES_COLUMNS;
}

static void split(const pairing *p, ot_contraction *out)
{
    *out = (ot_contraction){.a = p->a.data, .b = p->b.data, .y = p->to};
    for (uint32_t l = 0; l < LABELS; l++) {
        int kind = kind_of(p, l);
        if (kind == OT_AXES_KINDS) continue;
        ot_strided_axes *x = &out->kind[kind];
        x->at[x->count++] = (ot_strided_axis){p->e->extent[l], p->a.step[l], p->b.step[l],
                                              p->y.step[l]};
    }
    for (int kind = 0; kind < OT_AXES_KINDS; kind++) ot_axes_merge(&out->kind[kind]);
}

/* Labels of these kinds, in this order, into order[]; within a kind as the result has them. */
static uint32_t in_order(const pairing *p, const int *kinds, uint32_t n_kinds, uint32_t *order)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < n_kinds; k++) {
        uint32_t first = n;
        for (uint32_t l = 0; l < LABELS; l++) {
            if (kind_of(p, l) != kinds[k]) continue;
            uint32_t at = n++;
            for (; at > first && p->y.step[order[at - 1]] < p->y.step[l]; at--)
                order[at] = order[at - 1];
            order[at] = l;
        }
    }
    return n;
}

/* to = from, of all elements of the labels that `to` has. */
static void copy_term(const pairing *p, float *to, const int64_t *to_step, const float *from,
                      const int64_t *from_step)
{
    int64_t dims[OT_RANK_MAX], steps[2][OT_RANK_MAX];
    ot_strided_axes x = {0};
    for (uint32_t l = 0; l < LABELS; l++)
        if (to_step[l] != 0)
            x.at[x.count++] = (ot_strided_axis){p->e->extent[l], from_step[l], 0, to_step[l]};
    ot_axes_merge(&x);
    if (x.count > OT_RANK_MAX) {
        *p->beyond = true;
        return;
    }
    for (uint32_t k = 0; k < x.count; k++) {
        dims[k] = x.at[k].n;
        steps[0][k] = x.at[k].c;
        steps[1][k] = x.at[k].a;
    }
    ot_move_box(p->call, (ot_box_shape){sizeof(float), x.count, dims}, (char *)to, steps[0],
                (const char *)from, steps[1]);
}

/* A dense copy of one operand. */
static ot_status pack_term(const pairing *p, const int kinds[3], term *x)
{
    uint32_t order[LABELS], n = in_order(p, kinds, 3, order);
    int64_t step[LABELS], size = lay_out(p->e, order, n, step);
    float *data = ot_num_scratch(p->call, size, sizeof *data);
    if (!data) return OT_E_NOMEM;
    copy_term(p, data, step, x->data, x->step);
    x->data = data;
    memcpy(x->step, step, sizeof step);
    return OT_OK;
}

/* Copies of what does not lie well, one after the other until it does: A, B, the result. */
static ot_status run_packed(pairing *p)
{
    static const int a_order[3] = {OT_AXES_BATCH, OT_AXES_ROWS, OT_AXES_SUMMED},
                     b_order[3] = {OT_AXES_BATCH, OT_AXES_SUMMED, OT_AXES_COLUMNS},
                     y_order[3] = {OT_AXES_BATCH, OT_AXES_ROWS, OT_AXES_COLUMNS};
    ot_contraction x;
    bool fits;
    OT_TRY(pack_term(p, a_order, &p->a));
    split(p, &x);
    OT_TRY(ot_contract_by_products(p->call, &x, &fits));
    if (fits) return OT_OK;
    OT_TRY(pack_term(p, b_order, &p->b));
    split(p, &x);
    OT_TRY(ot_contract_by_products(p->call, &x, &fits));
    if (fits) return OT_OK;
    uint32_t order[LABELS], n = in_order(p, y_order, 3, order);
    term y = p->y;
    float *to = p->to;
    int64_t size = lay_out(p->e, order, n, p->y.step);
    p->to = ot_num_scratch(p->call, size, sizeof *p->to);
    if (!p->to) return OT_E_NOMEM;
    split(p, &x);
    OT_TRY(ot_contract_by_products(p->call, &x, &fits));
    if (!fits) OT_BUG("a packed product does not lie well");
    copy_term(p, to, y.step, p->to, p->y.step);
    p->to = to;
    p->y = y;
    return OT_OK;
}

/* Are inner products what is asked for, and do both vectors lie without steps? */
static bool is_dots(const ot_contraction *x)
{
    const ot_strided_axes *k = &x->kind[OT_AXES_SUMMED];
    return k->count == 1 && k->at[0].a == 1 && k->at[0].b == 1 && k->at[0].n >= 8;
}

/* y = a * b, of which a and b have no labels to be summed alone. */
static ot_status contract(pairing *p)
{
    ot_contraction x;
    bool fits;
    split(p, &x);
    for (uint32_t k = 0; k < x.kind[OT_AXES_ROWS].count; k++) {
        if (x.kind[OT_AXES_ROWS].at[k].c != 1)
            continue; /* columns are what lies without steps in y */
        term swap = p->a;
        p->a = p->b;
        p->b = swap;
        split(p, &x);
        break;
    }
    int64_t m = ot_axes_extent(&x.kind[OT_AXES_ROWS]), c = ot_axes_extent(&x.kind[OT_AXES_COLUMNS]),
            k = ot_axes_extent(&x.kind[OT_AXES_SUMMED]);
    bool vectors = (m == 1 || c == 1) && !is_dots(&x);
    if ((k == 1 || vectors || m * c * k < SMALL_PRODUCT) && ot_contract_in_nest(p->call, &x))
        return OT_OK;
    OT_TRY(ot_contract_by_products(p->call, &x, &fits));
    return fits ? OT_OK : run_packed(p);
}

/* ---- one term ---- */

/* y = the sum of a over the labels that y has not. */
static ot_status sum_term(pairing *p)
{
    static const float unit = 1;
    ot_contraction x;
    p->b = (term){.data = &unit};
    split(p, &x);
    ot_strided_axes *k = &x.kind[OT_AXES_SUMMED];
    if (k->count == 0) {
        copy_term(p, p->to, p->y.step, p->a.data, p->a.step);
        return OT_OK;
    }
    uint32_t last = k->count - 1;
    if (k->at[last].a != 1 && ot_contract_in_nest(p->call, &x)) return OT_OK;
    /* rows; what is summed beside them is a loop */
    ot_strided_axis row = k->at[last];
    k->count = last;
    int64_t sums = ot_axes_extent(k), count = ot_axes_extent(&x.kind[OT_AXES_ROWS]);
    for (int64_t i = 0; i < count; i++) {
        const float *a = p->a.data, *b = &unit;
        float *y = p->to;
        double sum = 0;
        ot_axes_go_to(&x.kind[OT_AXES_ROWS], i, &a, &b, &y);
        for (int64_t s = 0; s < sums; s++) {
            const float *from = a;
            ot_axes_go_to(k, s, &from, &b, NULL);
            if (row.a == 1) sum += ot_rows_mean(from, row.n) * (double)row.n;
            for (int64_t j = 0; row.a != 1 && j < row.n; j++) sum += (double)from[j * row.a];
        }
        *y = (float)sum;
    }
    return OT_OK;
}

/* ---- all terms ---- */

typedef struct state {
    ot_call *call;
    ot_einsum e;
    term t[TERMS_MAX];
    uint32_t n;
    bool beyond;
} state;

/* Labels of the output, and of the terms but those numbered `a` and `b`. */
static void mark_wanted(const state *s, uint32_t a, uint32_t b, bool *wanted)
{
    memset(wanted, 0, LABELS * sizeof *wanted);
    for (uint32_t k = 0; k < s->e.n_out; k++) wanted[s->e.order[k]] = true;
    for (uint32_t k = 0; k < s->n; k++)
        for (uint32_t l = 0; k != a && k != b && l < LABELS; l++)
            wanted[l] = wanted[l] || s->t[k].step[l] != 0;
}

static pairing pair_of(state *s, uint32_t a, uint32_t b, bool *wanted)
{
    return (pairing){.call = s->call,
                     .e = &s->e,
                     .a = s->t[a],
                     .b = s->t[b],
                     .wanted = wanted,
                     .beyond = &s->beyond};
}

/* Where the result of p goes: the output, or memory of its own. */
static ot_status open_result(state *s, pairing *p, bool is_output)
{
    static const int all[3] = {OT_AXES_BATCH, OT_AXES_ROWS, OT_AXES_COLUMNS};
    uint32_t order[LABELS], n = 0;
    if (is_output) {
        int64_t size = lay_out(&s->e, s->e.order, s->e.n_out, p->y.step);
        for (uint32_t l = 0; l < LABELS; l++)
            if (s->e.extent[l] == 1) p->y.step[l] = 0;
        p->to = s->call->out[0]->data;
        return size < 0 ? OT_E_NOMEM : OT_OK;
    }
    /* as the larger steps of the operands have them */
    for (uint32_t l = 0; l < LABELS; l++) p->y.step[l] = ot_max(p->a.step[l], p->b.step[l]);
    n = in_order(p, all, 3, order);
    int64_t size = lay_out(&s->e, order, n, p->y.step);
    p->to = ot_num_scratch(s->call, size, sizeof *p->to);
    return p->to ? OT_OK : OT_E_NOMEM;
}

/* Sums the labels that term k alone has; nothing to do without any. */
static ot_status sum_own(state *s, uint32_t k)
{
    bool wanted[LABELS], any = false;
    mark_wanted(s, k, k, wanted);
    for (uint32_t l = 0; l < LABELS; l++) any = any || (s->t[k].step[l] != 0 && !wanted[l]);
    if (!any) return OT_OK;
    pairing p = pair_of(s, k, k, wanted);
    p.b = (term){0};
    OT_TRY(open_result(s, &p, false));
    OT_TRY(sum_term(&p));
    s->t[k] = p.y;
    s->t[k].data = p.to;
    return OT_OK;
}

/* Multiplications of the product of terms a and b, and elements of its result. */
static double cost_of(const state *s, uint32_t a, uint32_t b)
{
    bool wanted[LABELS];
    double work = 1, result = 1;
    mark_wanted(s, a, b, wanted);
    for (uint32_t l = 0; l < LABELS; l++) {
        if (s->t[a].step[l] == 0 && s->t[b].step[l] == 0) continue;
        work *= (double)s->e.extent[l];
        if (wanted[l]) result *= (double)s->e.extent[l];
    }
    return work + 4 * result;
}

static void cheapest_pair(const state *s, uint32_t *a, uint32_t *b)
{
    double least = -1;
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = i + 1; k < s->n; k++) {
            double cost = cost_of(s, i, k);
            if (least >= 0 && cost >= least) continue;
            least = cost;
            *a = i;
            *b = k;
        }
}

static ot_status join_pair(state *s)
{
    uint32_t a = 0, b = 1;
    bool wanted[LABELS];
    cheapest_pair(s, &a, &b);
    mark_wanted(s, a, b, wanted);
    pairing p = pair_of(s, a, b, wanted);
    OT_TRY(open_result(s, &p, s->n == 2));
    OT_TRY(contract(&p));
    s->t[a] = p.y;
    s->t[a].data = p.to;
    s->t[b] = s->t[--s->n];
    return OT_OK;
}

static ot_status run_all(state *s)
{
    bool wanted[LABELS];
    if (s->n == 1) {
        mark_wanted(s, 0, 0, wanted);
        pairing p = pair_of(s, 0, 0, wanted);
        p.b = (term){0};
        OT_TRY(open_result(s, &p, true));
        return sum_term(&p);
    }
    for (uint32_t k = 0; k < s->n; k++) OT_TRY(sum_own(s, k));
    while (s->n > 1) OT_TRY(join_pair(s));
    return OT_OK;
}

/* Terms of the operands. A label of one position is none. */
static bool open_terms(state *s)
{
    const ot_call *c = s->call;
    s->n = s->e.n_ops;
    for (uint32_t l = 0; l < LABELS; l++)
        if (s->e.extent[l] == 0) return false;
    for (uint32_t k = 0; k < s->n; k++) {
        s->t[k].data = c->in[k]->data;
        memcpy(s->t[k].step, s->e.step[k], sizeof s->t[k].step);
    }
    return true;
}

ot_status ot_fast_einsum(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_einsum, 0);
    bool usual = c->n_in >= 1 && c->n_in <= TERMS_MAX;
    for (uint32_t k = 0; k < c->n_in; k++) usual = usual && c->in[k] && c->in[k]->dtype == OT_F32;
    state *s = usual ? ot_call_scratch(c, sizeof *s) : NULL;
    if (!s) return ot_ref_einsum(c);
    s->call = c;
    OT_TRY(ot_einsum_open(c, &s->e));
    if (!ot_num_out(c, 0)) return OT_OK;
    if (!open_terms(s)) return ot_ref_einsum(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, s->e.n_out, s->e.dims));
    OT_TRY(run_all(s));
    return s->beyond ? ot_ref_einsum(c) : OT_OK;
}
