/* Einsum: one loop over all labels.
 *
 *   "bij,bjk->bik"   labels b i k of the output, then j that is summed:
 *   for b, i, k:  y = sum over j of  a[b, i, j] * b[b, j, k]       each operand is addressed by its
 *                                                                  own step per label
 *
 * A label that an operand has twice walks its diagonal: the steps add up. The dimensions under
 * an ellipsis are labels, too, aligned at the right; dimensions of 1 broadcast. Without "->" the
 * output has the ellipsis and the labels that occur once, in alphabetical order.
 */
#include "ref_product.h"

#define LETTERS 52
#define LABELS  OT_EINSUM_LABELS /* ellipsis dimensions first, then A-Z a-z */
_Static_assert(LABELS == OT_RANK_MAX + LETTERS, "labels of an equation");

static int label_of(char ch)
{
    if (ch >= 'A' && ch <= 'Z') return OT_RANK_MAX + (ch - 'A');
    if (ch >= 'a' && ch <= 'z') return OT_RANK_MAX + 26 + (ch - 'a');
    return -1;
}

/* Labels of one term (up to `end`) for an operand of this rank; an ellipsis takes what the
 * letters leave. */
static ot_status term_labels(ot_call *c, const char *s, const char *end, uint32_t rank,
                             uint32_t *labels, uint32_t *n_ellipsis)
{
    uint32_t letters = 0, n = 0;
    bool dots = false;
    for (const char *p = s; p < end; p++) letters += *p != ' ' && *p != '.';
    *n_ellipsis = letters <= rank ? rank - letters : 0;
    for (const char *p = s; p < end; p++) {
        if (*p == ' ') continue;
        if (*p == '.') {
            if (dots || end - p < 3 || p[1] != '.' || p[2] != '.')
                return ot_call_fail(c, "the equation has a stray dot");
            for (uint32_t e = 0; e < *n_ellipsis; e++) labels[n++] = OT_RANK_MAX - *n_ellipsis + e;
            dots = true;
            p += 2;
            continue;
        }
        int l = label_of(*p);
        if (l < 0) return ot_call_fail(c, "the equation holds '%c'", *p);
        if (n == rank)
            return ot_call_fail(c, "a term has more labels than its operand has axes (%u)", rank);
        labels[n++] = (uint32_t)l;
    }
    if (!dots) *n_ellipsis = 0;
    return n == rank ? OT_OK
                     : ot_call_fail(c, "a term has %u labels, its operand %u axes", n, rank);
}

static ot_status add_operand(ot_call *c, ot_einsum *e, uint32_t k, const char *s, const char *end)
{
    const ot_nd *x = c->in[k];
    uint32_t labels[OT_RANK_MAX], n_ellipsis;
    int64_t step = 1;
    OT_TRY(term_labels(c, s, end, x->rank, labels, &n_ellipsis));
    if (n_ellipsis > e->ellipsis) e->ellipsis = n_ellipsis;
    for (uint32_t a = x->rank; a-- > 0;) {
        int64_t *extent = &e->extent[labels[a]], d = x->dims[a];
        if (*extent >= 0 && *extent != d && *extent != 1 && d != 1)
            return ot_call_fail(c, "a label stands for %lld and %lld", (long long)*extent,
                                (long long)d);
        if (*extent < 0 || *extent == 1) *extent = d;
        if (d != 1) e->step[k][labels[a]] += step;
        e->count[labels[a]]++;
        if (d > 0 && !ot_mul_i64(step, d, &step)) return ot_call_fail(c, "an operand is too large");
    }
    return OT_OK;
}

/* Labels of the output: after "->", or the implicit ones. */
static ot_status output_labels(ot_call *c, ot_einsum *e, const char *s)
{
    uint32_t labels[OT_RANK_MAX], n_ellipsis, rank = 0;
    if (s) {
        const char *end = s + strlen(s);
        bool dots = strchr(s, '.') != NULL;
        for (const char *p = s; p < end; p++) rank += *p != ' ' && *p != '.';
        if (dots) rank += e->ellipsis;
        if (rank > OT_RANK_MAX) return ot_call_fail(c, "the output has too many axes");
        OT_TRY(term_labels(c, s, end, rank, labels, &n_ellipsis));
        for (uint32_t k = 0; k < rank; k++) e->order[e->n_out++] = labels[k];
    } else {
        for (uint32_t l = OT_RANK_MAX - e->ellipsis; l < LABELS; l++) {
            if (l >= OT_RANK_MAX && e->count[l] != 1) continue;
            if (e->n_out == OT_RANK_MAX) return ot_call_fail(c, "the output has too many axes");
            e->order[e->n_out++] = l;
        }
    }
    bool used[LABELS] = {false};
    for (uint32_t k = 0; k < e->n_out; k++) {
        uint32_t l = e->order[k];
        if (e->extent[l] < 0 || used[l])
            return ot_call_fail(c, "the output's labels must be different ones of the inputs");
        used[l] = true;
    }
    e->n_all = e->n_out;
    for (uint32_t l = 0; l < LABELS; l++)
        if (e->extent[l] >= 0 && !used[l]) e->order[e->n_all++] = l;
    return OT_OK;
}

static ot_status parse(ot_call *c, ot_einsum *e)
{
    const char *s = ot_attr_str(c->node, "equation", NULL);
    if (!s) return ot_call_fail(c, "attribute equation is missing");
    const char *arrow = strstr(s, "->"), *end = arrow ? arrow : s + strlen(s);
    for (uint32_t l = 0; l < LABELS; l++) e->extent[l] = -1;
    for (uint32_t k = 0; k < e->n_ops; k++) {
        const char *comma = memchr(s, ',', (size_t)(end - s)), *stop = comma ? comma : end;
        if (!comma && k + 1 < e->n_ops)
            return ot_call_fail(c, "the equation has fewer terms than there are inputs");
        OT_TRY(add_operand(c, e, k, s, stop));
        s = comma ? comma + 1 : end;
        if (comma && k + 1 == e->n_ops)
            return ot_call_fail(c, "the equation has more terms than there are inputs");
    }
    return output_labels(c, e, arrow ? arrow + 2 : NULL);
}

ot_status ot_einsum_open(ot_call *c, ot_einsum *e)
{
    *e = (ot_einsum){.n_ops = c->n_in};
    OT_TRY(ot_call_need(c, c->n_in > 0 ? c->n_in : 1));
    for (uint32_t k = 0; k < c->n_in; k++) {
        OT_TRY(ot_num_type(c, k, OT_NUM_FLOATS | OT_NUM_INTS));
        OT_TRY(ot_num_same_type(c, k, 0));
    }
    e->step = ot_num_scratch(c, e->n_ops, sizeof *e->step);
    if (!e->step) return OT_E_NOMEM;
    OT_TRY(parse(c, e));
    for (uint32_t j = 0; j < e->n_out; j++) e->dims[j] = e->extent[e->order[j]];
    return OT_OK;
}

/* Elements of the operands, as one of two kinds. */
typedef struct operands {
    const double **f; /* [n_ops] */
    const int64_t **i;
    bool is_float;
} operands;

/* Where the operands' elements lie along the labels that are summed. */
typedef struct summed_labels {
    uint32_t n;               /* beside the last one, */
    int64_t dims[LABELS];     /* [n] */
    const int64_t **step;     /* [n_ops][n] */
    int64_t last, *last_step; /* of the last: its extent, [n_ops] steps; 1 and 0 without any */
} summed_labels;

static ot_status find_summed(ot_call *c, const ot_einsum *e, summed_labels *out)
{
    const uint32_t all = e->n_all - e->n_out;
    *out = (summed_labels){.n = all ? all - 1 : 0, .last = 1};
    out->step = ot_num_scratch(c, e->n_ops, sizeof *out->step);
    out->last_step = ot_num_scratch(c, e->n_ops, sizeof *out->last_step);
    if (!out->step || !out->last_step) return OT_E_NOMEM;
    for (uint32_t j = 0; j < out->n; j++) out->dims[j] = e->extent[e->order[e->n_out + j]];
    if (all) out->last = e->extent[e->order[e->n_all - 1]];
    for (uint32_t k = 0; k < e->n_ops; k++) {
        int64_t *step = ot_num_scratch(c, LABELS, sizeof *step);
        if (!step) return OT_E_NOMEM;
        for (uint32_t j = 0; j < out->n; j++) step[j] = e->step[k][e->order[e->n_out + j]];
        out->step[k] = step;
        out->last_step[k] = all ? e->step[k][e->order[e->n_all - 1]] : 0;
    }
    return OT_OK;
}

/* The sums of products of float64 along the last label, one after another. */
static double sum_floats(const ot_einsum *e, const operands *x, const summed_labels *l,
                         const int64_t *from, double sum)
{
    if (e->n_ops == 2) {
        const double *a = x->f[0] + from[0], *b = x->f[1] + from[1];
        const int64_t sa = l->last_step[0], sb = l->last_step[1];
        for (int64_t i = 0; i < l->last; i++) sum += a[i * sa] * b[i * sb];
        return sum;
    }
    for (int64_t i = 0; i < l->last; i++) {
        double product = 1;
        for (uint32_t k = 0; k < e->n_ops; k++) product *= x->f[k][from[k] + i * l->last_step[k]];
        sum += product;
    }
    return sum;
}

static uint64_t sum_ints(const ot_einsum *e, const operands *x, const summed_labels *l,
                         const int64_t *from, uint64_t sum)
{
    for (int64_t i = 0; i < l->last; i++) {
        uint64_t product = 1;
        for (uint32_t k = 0; k < e->n_ops; k++)
            product *= (uint64_t)x->i[k][from[k] + i * l->last_step[k]];
        sum += product;
    }
    return sum;
}

/* The sum at one output position (`at`: first element of each operand there; `from`: scratch). */
static void sum_labels(const ot_einsum *e, const operands *x, const summed_labels *l,
                       const int64_t *at, int64_t *from, double *f, uint64_t *i)
{
    int64_t pos[LABELS] = {0};
    *f = 0;
    *i = 0;
    do {
        for (uint32_t k = 0; k < e->n_ops; k++) {
            from[k] = at[k];
            for (uint32_t j = 0; j < l->n; j++) from[k] += pos[j] * l->step[k][j];
        }
        if (x->is_float)
            *f = sum_floats(e, x, l, from, *f);
        else
            *i = sum_ints(e, x, l, from, *i);
    } while (ot_num_next(l->n, l->dims, pos));
}

static ot_status compute(ot_call *c, const ot_einsum *e, const operands *x, ot_nd *y)
{
    int64_t pos[OT_RANK_MAX] = {0}, n = ot_num_count(y), empty = 0;
    int64_t *at = ot_num_scratch(c, e->n_ops, sizeof *at),
            *from = ot_num_scratch(c, e->n_ops, sizeof *from);
    summed_labels summed;
    if (!at || !from) return OT_E_NOMEM;
    OT_TRY(find_summed(c, e, &summed));
    for (uint32_t j = e->n_out; j < e->n_all; j++) empty += e->extent[e->order[j]] == 0;
    for (int64_t o = 0; o < n; o++, (void)ot_num_next(e->n_out, y->dims, pos)) {
        double f = 0;
        uint64_t i = 0;
        for (uint32_t k = 0; k < e->n_ops; k++) {
            at[k] = 0;
            for (uint32_t j = 0; j < e->n_out; j++) at[k] += pos[j] * e->step[k][e->order[j]];
        }
        if (!empty) sum_labels(e, x, &summed, at, from, &f, &i);
        if (x->is_float)
            ot_num_put(y, o, f);
        else
            ot_num_put_int(y, o, (int64_t)i);
    }
    return OT_OK;
}

ot_status ot_ref_einsum(ot_call *c)
{
    ot_einsum e;
    operands x = {0};
    OT_TRY(ot_einsum_open(c, &e));
    x.is_float = ot_num_is(c->in[0]->dtype, OT_NUM_FLOATS);
    x.f = ot_num_scratch(c, e.n_ops, sizeof *x.f);
    x.i = ot_num_scratch(c, e.n_ops, sizeof *x.i);
    if (!x.f || !x.i) return OT_E_NOMEM;
    for (uint32_t k = 0; k < e.n_ops; k++) {
        if (x.is_float)
            x.f[k] = ot_num_doubles(c, c->in[k]);
        else
            x.i[k] = ot_num_ints(c, c->in[k]);
        if (!x.f[k] && !x.i[k]) return OT_E_NOMEM;
    }
    if (!ot_num_out(c, 0)) return OT_OK;
    OT_TRY(ot_call_output(c, 0, c->in[0]->dtype, e.n_out, e.dims));
    return compute(c, &e, &x, c->out[0]);
}
