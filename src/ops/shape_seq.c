/* Shape rules of Einsum, Attention and the recurrent layers. */
#include "shape.h"

/* ---- Einsum ---- */

/* What is known of each letter while the equation is read. */
typedef struct letters {
    int64_t dim[128]; /* extent; OT_DIM_UNKNOWN */
    int uses[128];    /* occurrences on the left */
    ot_shp dots;      /* broadcast of what the ellipses stand for */
    bool dots_known;  /* false: some operand with an ellipsis has unknown rank */
} letters;

static bool is_letter(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z'); }

/* One term of the left side, from s to the next ',' or '-' or the end; gives the end. */
static ot_status read_term(ot_infer *c, const char *s, const ot_value *x, letters *l,
                           const char **end)
{
    int32_t named = 0, at = 0;
    bool dots = false;
    const char *e = s;
    for (; *e != '\0' && *e != ',' && *e != '-'; e++) {
        if (is_letter(*e))
            named++;
        else if (e[0] == '.' && e[1] == '.' && e[2] == '.' && !dots) {
            dots = true;
            e += 2;
        } else if (*e != ' ')
            return ot_shape_fail(c, "equation has an unexpected '%c'", *e);
    }
    *end = e;
    if (dots && x == NULL) l->dots_known = false;
    if (x != NULL && (dots ? named > x->rank : named != x->rank))
        return ot_shape_fail(c, "a term names %d axes, its operand has rank %d", named, x->rank);
    for (const char *p = s; p < e; p++) {
        if (*p == ' ') continue;
        if (*p == '.') {
            p += 2;
            int32_t n = x == NULL ? 0 : x->rank - named;
            if (x != NULL && !ot_shape_broadcast(&l->dots, n, x->dims + at))
                return ot_shape_fail(c, "the ellipses do not broadcast");
            at += n;
            continue;
        }
        int64_t *d = &l->dim[(int)*p], have = x == NULL ? OT_DIM_UNKNOWN : x->dims[at];
        at++;
        l->uses[(int)*p]++;
        if (*d == OT_DIM_UNKNOWN || *d == 1)
            *d = have == OT_DIM_UNKNOWN ? *d == 1 ? OT_DIM_UNKNOWN : *d : have;
        else if (have != OT_DIM_UNKNOWN && have != 1 && have != *d)
            return ot_shape_fail(c, "letter '%c' has extents %lld and %lld", *p, (long long)*d,
                                 (long long)have);
    }
    return OT_OK;
}

/* Output from the letters: the right side, or by default the ellipsis and the letters used once,
 * sorted. */
static ot_status einsum_out(ot_infer *c, const char *right, const letters *l, ot_shp *o)
{
    char text[160];
    if (right == NULL) {
        size_t n = (size_t)snprintf(text, sizeof text, "%s",
                                    l->dots.rank > 0 || !l->dots_known ? "..." : "");
        for (int ch = 'A'; ch <= 'z'; ch++)
            if (is_letter((char)ch) && l->uses[ch] == 1) text[n++] = (char)ch;
        text[n] = '\0';
        right = text;
    }
    o->rank = 0;
    for (const char *p = right; *p != '\0'; p++) {
        if (*p == ' ') continue;
        if (p[0] == '.' && p[1] == '.' && p[2] == '.') {
            if (!l->dots_known || o->rank + l->dots.rank > OT_RANK_MAX) {
                o->rank = -1;
                return OT_OK;
            }
            for (int32_t a = 0; a < l->dots.rank; a++) o->d[o->rank++] = l->dots.d[a];
            p += 2;
        } else if (is_letter(*p)) {
            if (l->uses[(int)*p] == 0)
                return ot_shape_fail(c, "letter '%c' of the result is in no operand", *p);
            if (o->rank >= OT_RANK_MAX)
                return ot_shape_fail(c, "the result has more than %d axes", OT_RANK_MAX);
            o->d[o->rank++] = l->dim[(int)*p];
        } else {
            return ot_shape_fail(c, "equation has an unexpected '%c'", *p);
        }
    }
    return OT_OK;
}

ot_status ot_shape_einsum(ot_infer *c)
{
    const char *s = ot_attr_str(c->n, "equation", NULL), *right = NULL;
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (s == NULL) return ot_shape_fail(c, "attribute equation is missing");
    letters l = {.dots = {.rank = 0}, .dots_known = true};
    for (int k = 0; k < 128; k++) l.dim[k] = OT_DIM_UNKNOWN;
    for (uint32_t k = 0; k < c->n->n_in; k++) {
        OT_TRY(read_term(c, s, ot_shape_ranked(c, k), &l, &s));
        if (k + 1 < c->n->n_in) {
            if (*s != ',')
                return ot_shape_fail(c, "equation has fewer terms than the node has inputs");
            s++;
        }
    }
    if (*s == ',') return ot_shape_fail(c, "equation has more terms than the node has inputs");
    if (*s == '-') {
        if (s[1] != '>') return ot_shape_fail(c, "equation has an unexpected '-'");
        right = s + 2;
    }
    ot_shp o;
    OT_TRY(einsum_out(c, right, &l, &o));
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), o.rank, o.d);
    return OT_OK;
}

/* ---- Attention (opset 23) ---- */

/* Input k as (batch, heads, sequence, size); 3-D inputs are (batch, sequence, heads * size). */
static ot_status read_heads(ot_infer *c, uint32_t k, const char *attr, int64_t d[4])
{
    const ot_value *x = ot_shape_ranked(c, k);
    for (int a = 0; a < 4; a++) d[a] = OT_DIM_UNKNOWN;
    if (x == NULL) return OT_OK;
    if (x->rank != 3 && x->rank != 4)
        return ot_shape_fail(c, "input %u has rank %d, must have 3 or 4", k, x->rank);
    if (x->rank == 4) {
        for (int a = 0; a < 4; a++) d[a] = x->dims[a];
        return OT_OK;
    }
    d[0] = x->dims[0];
    d[1] = ot_attr_int(c->n, attr, 0);
    d[2] = x->dims[1];
    if (d[1] < 1) return ot_shape_fail(c, "3-D inputs need attribute %s", attr);
    if (x->dims[2] < 0) return OT_OK;
    if (x->dims[2] % d[1] != 0)
        return ot_shape_fail(c, "input %u: %lld features do not divide into %lld heads", k,
                             (long long)x->dims[2], (long long)d[1]);
    d[3] = x->dims[2] / d[1];
    return OT_OK;
}

/* present = past (input k) followed by new along the sequence. */
static int64_t total_length(const ot_infer *c, uint32_t past, int64_t fresh)
{
    const ot_value *p = ot_shape_ranked(c, past);
    int64_t total;
    if (ot_shape_in(c, past) == NULL) return fresh;
    if (p == NULL || p->rank != 4 || p->dims[2] < 0 || fresh < 0 ||
        !ot_add_i64(p->dims[2], fresh, &total))
        return OT_DIM_UNKNOWN;
    return total;
}

ot_status ot_shape_attention(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_dtype type = ot_shape_dtype(c, 0);
    int64_t q[4], k[4], v[4], width;
    for (uint32_t i = 0; i < 4; i++)
        ot_shape_set_type(c, i,
                          i == 2   ? ot_shape_dtype(c, 2)
                          : i == 1 ? ot_shape_dtype(c, 1)
                                   : type);
    OT_TRY(read_heads(c, 0, "q_num_heads", q));
    OT_TRY(read_heads(c, 1, "kv_num_heads", k));
    OT_TRY(read_heads(c, 2, "kv_num_heads", v));
    if (q[3] >= 0 && k[3] >= 0 && q[3] != k[3])
        return ot_shape_fail(c, "heads of Q have %lld features, of K %lld", (long long)q[3],
                             (long long)k[3]);
    if (k[2] >= 0 && v[2] >= 0 && k[2] != v[2])
        return ot_shape_fail(c, "K has %lld positions, V has %lld", (long long)k[2],
                             (long long)v[2]);
    if (q[1] > 0 && k[1] > 0 && q[1] % k[1] != 0)
        return ot_shape_fail(c, "%lld heads of Q do not divide into %lld of K", (long long)q[1],
                             (long long)k[1]);
    if (x != NULL && x->rank == 4) {
        int64_t d[4] = {q[0], q[1], q[2], v[3]};
        ot_shape_set(c, 0, type, 4, d);
    } else if (x != NULL) {
        if (v[3] < 0 || q[1] < 0 || !ot_mul_i64(q[1], v[3], &width)) width = OT_DIM_UNKNOWN;
        int64_t d[3] = {q[0], q[2], width};
        ot_shape_set(c, 0, type, 3, d);
    }
    int64_t keys = total_length(c, 4, k[2]), values = total_length(c, 5, v[2]);
    int64_t pk[4] = {k[0], k[1], keys, k[3]}, pv[4] = {v[0], v[1], values, v[3]},
            qk[4] = {q[0], q[1], q[2], keys};
    ot_shape_set(c, 1, ot_shape_dtype(c, 1), 4, pk);
    ot_shape_set(c, 2, ot_shape_dtype(c, 2), 4, pv);
    ot_shape_set(c, 3, type, 4, qk);
    return OT_OK;
}

/* ---- LSTM, GRU, RNN ---- */

ot_status ot_shape_recurrent(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *w = ot_shape_ranked(c, 1),
                   *r = ot_shape_ranked(c, 2);
    ot_dtype type = ot_shape_dtype(c, 0);
    const char *direction = ot_attr_str(c->n, "direction", "forward");
    int64_t dirs = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    int64_t hidden = ot_attr_int(c->n, "hidden_size", OT_DIM_UNKNOWN);
    if ((x != NULL && x->rank != 3) || (w != NULL && w->rank != 3) || (r != NULL && r->rank != 3))
        return ot_shape_fail(c, "X, W and R must have rank 3");
    if (hidden == OT_DIM_UNKNOWN && r != NULL) hidden = r->dims[2];
    if (hidden < OT_DIM_UNKNOWN || hidden == 0 ||
        (r != NULL && !ot_shape_merge(&hidden, r->dims[2])))
        return ot_shape_fail(c, "hidden_size is %lld, R has %lld", (long long)hidden,
                             (long long)(r == NULL ? 0 : r->dims[2]));
    if (r != NULL && r->dims[0] >= 0 && r->dims[0] != dirs)
        return ot_shape_fail(c, "direction '%s', but R has %lld directions", direction,
                             (long long)r->dims[0]);
    if (x != NULL && w != NULL && x->dims[2] >= 0 && w->dims[2] >= 0 && x->dims[2] != w->dims[2])
        return ot_shape_fail(c, "input has %lld features, W wants %lld", (long long)x->dims[2],
                             (long long)w->dims[2]);
    bool batch_first = ot_attr_int(c->n, "layout", 0) != 0;
    int64_t a = x == NULL ? OT_DIM_UNKNOWN : x->dims[0],
            b = x == NULL ? OT_DIM_UNKNOWN : x->dims[1];
    int64_t all[2][4] = {{a, dirs, b, hidden}, {a, b, dirs, hidden}};
    int64_t last[2][3] = {{dirs, b, hidden}, {a, dirs, hidden}};
    ot_shape_set(c, 0, type, 4, all[batch_first]);
    ot_shape_set(c, 1, type, 3, last[batch_first]);
    ot_shape_set(c, 2, type, 3, last[batch_first]);
    return OT_OK;
}
