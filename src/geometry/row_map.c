/* The slice relation of one operand as a formula, found by asking it row by row.
 *
 *   rows asked    0 1 2 ...        |middle: 3 periods and more|        ... out-1
 *                 begin            p, q, lo[], hi[]                    end
 *
 * In the middle windows repeat: p rows of the output later, q rows of the operand later. Towards
 * both ends every window has to be the formula's, less what lies outside of the operand; where it
 * reads other rows beside (mirrored or repeated ones), those are kept as `begin` and `end`. Between
 * the rows asked nothing can be otherwise: a relation has one rule inside and one at each border
 * (what joins or repeats along the axis is refused, see is_uniform).
 */
#include "geometry_internal.h"

#define PERIOD     64   /* looked for at first */
#define PERIOD_MAX 1024 /* and then: a Reshape may put all columns of a row one behind the other */
#define BORDER     64   /* rows asked at each end, and more until windows are inside */
#define BORDER_MAX 100000
#define LONG       8192 /* rows that show any period */

typedef struct asking {
    const ot_graph *g;
    const ot_node *n;
    uint32_t out, axis, k;
    int64_t extent, made; /* rows of the operand, and of the output */
    ot_win *windows;      /* [n_in] scratch */
} asking;

/* Rows of the operand that output row o needs. */
static bool ask(const asking *q, int64_t o, ot_win *w)
{
    ot_op_tile t = {.need = {o, o + 1}, .in = q->windows};
    ot_why why;
    q->windows[q->k] = (ot_win){0, 0};
    if (!ot_access_window(q->g, q->n, q->out, q->axis, &t, &why)) return false;
    *w = t.in[q->k];
    return w->lo < w->hi;
}

/* Operators that have one rule along the whole axis: not those that put operands one behind the
 * other, or repeat one. */
static bool is_uniform(const asking *q)
{
    switch (ot_op_access(q->n->op)) {
    case OT_ACC_CONV:
    case OT_ACC_CONVT:
    case OT_ACC_POOL:
    case OT_ACC_SLICE:
    case OT_ACC_PAD:
    case OT_ACC_BLOCK:
    case OT_ACC_RESHAPE: return true;
    case OT_ACC_RESIZE: return ot_resize_repeats(q->g, q->n, q->axis);
    default: return q->extent == q->made || ot_is_fused_conv(q->n);
    }
}

static ot_win formula(const ot_row_map *m, int64_t o)
{
    const int64_t t = ot_floor_div(o, m->p), k = o - t * m->p;
    return (ot_win){m->q * t + m->lo[k], m->q * t + m->hi[k]};
}

/* Windows w[0..n) of rows that follow each other repeat after p rows. */
static bool repeats(const ot_win *w, int64_t n, int64_t p, int64_t *q)
{
    *q = w[p].lo - w[0].lo;
    for (int64_t k = 0; k + p < n; k++)
        if (w[k + p].lo - w[k].lo != *q || w[k + p].hi - w[k].hi != *q) return false;
    return *q > 0;
}

/* The formula, of rows in the middle, of a period up to `most`. */
static ot_status fit_middle(const asking *x, int64_t most, ot_arena *a, ot_row_map *m,
                            ot_row_fit *fit)
{
    const int64_t n = ot_min(3 * most, x->made / 2), first = (x->made - n) / 2;
    *fit = x->made < LONG ? OT_ROWS_SHORT : OT_ROWS_ODD;
    if (n < 3) return OT_OK;
    ot_win *w = OT_NEW_N(a, ot_win, (size_t)n);
    if (!w) return ot_fail_nomem(x->g->model->diag);
    for (int64_t k = 0; k < n; k++) {
        if (!ask(x, first + k, &w[k])) return OT_OK;
        if (k > 0 && (w[k].lo < w[k - 1].lo || w[k].hi < w[k - 1].hi)) return OT_OK;
    }
    for (m->p = 1; 3 * m->p <= n; m->p++)
        if (repeats(w, n, m->p, &m->q)) break;
    if (3 * m->p > n) return OT_OK;
    int64_t *lo = OT_NEW_N(a, int64_t, (size_t)m->p), *hi = OT_NEW_N(a, int64_t, (size_t)m->p);
    if (!lo || !hi) return ot_fail_nomem(x->g->model->diag);
    for (int64_t k = 0; k < m->p; k++) {
        const int64_t o = first + k, t = o / m->p;
        lo[o - t * m->p] = w[k].lo - m->q * t;
        hi[o - t * m->p] = w[k].hi - m->q * t;
    }
    m->lo = lo;
    m->hi = hi;
    *fit = OT_ROWS_FIT;
    return OT_OK;
}

/* What row o reads is what the formula says; where it is not, rows beside. */
static bool check_row(const asking *x, ot_row_map *m, int64_t o, bool at_end, bool *inside)
{
    const ot_win f = formula(m, o);
    const ot_win cut = {ot_max(f.lo, 0), ot_min(f.hi, x->extent)};
    ot_win w;
    *inside = f.lo >= 0 && f.hi <= x->extent;
    if (!ask(x, o, &w)) return false;
    if (*inside) return w.lo == f.lo && w.hi == f.hi;
    if (w.lo >= cut.lo && w.hi <= cut.hi) return true;
    if (at_end)
        m->end = ot_max(m->end, x->extent - w.lo);
    else
        m->begin = ot_max(m->begin, w.hi);
    return true;
}

static ot_row_fit check_borders(const asking *x, ot_row_map *m)
{
    const int64_t half = ot_min(x->made / 2, BORDER_MAX);
    for (int at_end = 0; at_end < 2; at_end++) {
        int64_t k = 0, asked = 0;
        for (; k < half && asked < BORDER; k++) {
            bool inside;
            if (!check_row(x, m, at_end ? x->made - 1 - k : k, at_end, &inside))
                return x->made < LONG ? OT_ROWS_SHORT : OT_ROWS_ODD;
            asked += inside;
        }
        if (asked < ot_min(BORDER, m->p)) return OT_ROWS_SHORT;
    }
    return m->begin < x->extent / 4 && m->end < x->extent / 4 ? OT_ROWS_FIT : OT_ROWS_SHORT;
}

/* Row o of what runs along the axis comes of row o, and of the state. */
static const int64_t OWN_ROW[] = {0}, NEXT_ROW[] = {1};
static const ot_row_map SAME_ROW = {.p = 1, .q = 1, .lo = OWN_ROW, .hi = NEXT_ROW};

/* Of operand k of node n. */
static ot_status start_asking(const ot_spread *s, ot_id n, uint32_t k, ot_arena *a, asking *q)
{
    const ot_node *x = &s->g->nodes[n];
    const ot_id y = x->out[s->lead[n]];
    *q = (asking){.g = s->g,
                  .n = x,
                  .out = s->lead[n],
                  .axis = (uint32_t)s->axis[y],
                  .k = k,
                  .extent = s->g->values[x->in[k]].dims[s->axis[x->in[k]]],
                  .made = s->g->values[y].dims[s->axis[y]],
                  .windows = OT_NEW_N(a, ot_win, x->n_in + 1u)};
    return q->windows ? OT_OK : ot_fail_nomem(s->g->model->diag);
}

ot_status ot_row_map_find(const ot_spread *s, ot_id n, uint32_t k, ot_arena *a, ot_row_map *out,
                          ot_row_fit *fit)
{
    asking q;
    *out = (ot_row_map){0};
    *fit = OT_ROWS_ODD;
    if (ot_spread_runs(s, &s->g->nodes[n])) {
        *out = SAME_ROW;
        *fit = OT_ROWS_FIT;
        return OT_OK;
    }
    OT_TRY(start_asking(s, n, k, a, &q));
    if (!is_uniform(&q)) return OT_OK;
    OT_TRY(fit_middle(&q, PERIOD, a, out, fit));
    if (*fit == OT_ROWS_ODD) OT_TRY(fit_middle(&q, PERIOD_MAX, a, out, fit));
    if (*fit == OT_ROWS_FIT) *fit = check_borders(&q, out);
    return OT_OK;
}

ot_status ot_row_map_holds(const ot_spread *s, ot_id n, uint32_t k, const ot_row_map *m,
                           ot_arena *a, bool *holds)
{
    asking q;
    ot_row_map there = {.p = m->p, .q = m->q, .lo = m->lo, .hi = m->hi};
    *holds = ot_spread_runs(s, &s->g->nodes[n]);
    if (*holds) return OT_OK;
    OT_TRY(start_asking(s, n, k, a, &q));
    *holds = is_uniform(&q) && check_borders(&q, &there) == OT_ROWS_FIT &&
             ot_row_map_equal(m, &there);
    for (int64_t j = 0; *holds && j < m->p; j++) {
        const int64_t o = q.made / 2 + j;
        const ot_win f = formula(m, o);
        ot_win w;
        *holds = ask(&q, o, &w) && w.lo == f.lo && w.hi == f.hi;
    }
    return OT_OK;
}

bool ot_row_map_equal(const ot_row_map *x, const ot_row_map *y)
{
    if (x->p != y->p || x->q != y->q || x->begin != y->begin || x->end != y->end) return false;
    return memcmp(x->lo, y->lo, (size_t)x->p * sizeof *x->lo) == 0 &&
           memcmp(x->hi, y->hi, (size_t)x->p * sizeof *x->hi) == 0;
}
