/* Rows: who goes through their elements, and what becomes of what each work-item found. */
#include "dg_rows.h"

#define SHARE_MOST  1024 /* work-items of a row: more are no group anywhere */
#define ROWS_FEW    8    /* the device has room for so many times as many */
#define SHARE_LEAST 4    /* elements of a work-item's: less is done before the others are met */

void dg_row_join(const dg_row *r, uint32_t first, ot_nd *x, ot_nd *y)
{
    for (uint32_t k = first; k + 1 < x->rank; k++) {
        if (!r->reduced[k] || !r->reduced[k + 1] || (x->chan_block && k < 2)) continue;
        if (x->strides[k] != x->dims[k + 1] * x->strides[k + 1]) continue;
        if (y && y->strides[k] != y->dims[k + 1] * y->strides[k + 1]) continue;
        x->dims[k + 1] *= x->dims[k];
        x->dims[k] = 1;
        if (!y) continue;
        y->dims[k + 1] *= y->dims[k];
        y->dims[k] = 1;
    }
}

/* Are neighbours of a row neighbours in memory, and those of other rows not? */
static bool is_along_memory(const dg_row *r, const ot_nd *x)
{
    for (uint32_t k = x->rank; k-- > 0;)
        if (x->dims[k] != 1) return r->reduced[k] && x->strides[k] == 1;
    return false;
}

/* As many work-items as keep the units busy, of whole subgroups; and a subgroup where its loads are
 * of neighbours then. */
static uint32_t choose_share(const dg_build *b, const dg_row *r, const ot_nd *x)
{
    const ot_dg_layout *l = &b->target->layout;
    const uint32_t subgroup = l->together > 1 ? l->together : 32;
    /* what follows in registers may want more of them than the largest groups have */
    int64_t most = ot_min(b->g->n_nodes > 1 ? SHARE_MOST / 2 : SHARE_MOST, b->target->group_most),
            share = subgroup;
    /* a number of eight bytes and an index for each */
    while (most > 0 && most * 16 > b->target->shared_bytes) most /= 2;
    if (l->shares_rows == OT_DG_NEVER || most < subgroup || r->length < 2) return 1;
    if (l->shares_rows == OT_DG_WHERE_IT_PAYS) {
        if (l->together <= 1 || r->length < 2 * subgroup) return 1;
        /* neighbours of other rows' work-items are what a subgroup should load */
        if (!is_along_memory(r, x) && r->items * ROWS_FEW >= l->busy) return 1;
    }
    while (2 * share <= most && r->items * share < l->busy && 2 * share * SHARE_LEAST <= r->length)
        share *= 2;
    return (uint32_t)share;
}

bool dg_row_open(dg_build *b, dg_row *r, const ot_nd *x)
{
    int64_t kept[OT_RANK_MAX];
    r->items = r->length = 1;
    for (uint32_t k = 0; k < x->rank; k++) {
        kept[k] = r->reduced[k] ? 1 : x->dims[k];
        if (!ot_mul_i64(r->items, kept[k], &r->items) ||
            !ot_mul_i64(r->length, r->reduced[k] ? x->dims[k] : 1, &r->length))
            return dg_refuse(b, "more elements than can be counted");
    }
    if (r->items == 0 || r->length == 0) return dg_refuse(b, "an empty array");
    r->share = choose_share(b, r, x);
    double steps = 0, here = 1; /* loops within loops; three passes at the most */
    for (uint32_t k = 0; k < x->rank; k++)
        if (r->reduced[k]) steps += here *= (double)x->dims[k];
    /* and of sums in pairs */
    if (r->share > 1) steps = (double)ot_ceil_div(r->length, r->share) + 10;
    if (!dg_steps(b, 3 * steps)) return false;
    if (r->share > 1)
        dg_begin_group(b, r->items, r->share);
    else
        dg_begin(b, r->items);
    dg_split(b, "c", x->rank, kept, r->coords);
    for (uint32_t k = 0; k < x->rank; k++)
        if (r->reduced[k]) r->coords[k] = x->dims[k] == 1 ? "0" : dg_fmt(b, "r%u", k);
    r->rank = x->rank;
    r->dims = x->dims;
    return true;
}

/* One loop over the numbers of all elements, which coordinates follow from. */
static void shared_loop(dg_build *b, const dg_row *r)
{
    uint32_t first = 0;
    while (!r->reduced[first] || r->dims[first] == 1) first++;
    dg_line(b, "for (int e = me; e < %s; e += %u) {", dg_num(b, r->length), r->share);
    dg_line(b, "int er = e;");
    for (uint32_t k = r->rank; k-- > first + 1;) {
        if (!r->reduced[k] || r->dims[k] == 1) continue;
        const char *extent = dg_num(b, r->dims[k]);
        dg_line(b, "const int r%u = er %% %s; er /= %s;", k, extent, extent);
    }
    dg_line(b, "const int r%u = er;", first);
}

void dg_row_loops(dg_build *b, const dg_row *r)
{
    if (r->share > 1) {
        shared_loop(b, r);
        return;
    }
    for (uint32_t k = 0; k < r->rank; k++)
        if (r->reduced[k] && r->dims[k] != 1)
            dg_line(b, "for (int r%u = 0; r%u < %s; r%u++) {", k, k, dg_num(b, r->dims[k]), k);
    dg_line(b, "{");
}

void dg_row_close(dg_build *b, const dg_row *r)
{
    for (uint32_t k = 0; k < r->rank && r->share == 1; k++)
        if (r->reduced[k] && r->dims[k] != 1) dg_line(b, "}");
    dg_line(b, "}");
}

void dg_row_merge(dg_build *b, const dg_row *r, const char *type, const char *s, const char *merge)
{
    if (r->share == 1) return;
    const char *part = dg_fmt(b, "part_%s", s);
    if (!b->shared.n || !strstr(b->shared.s, dg_fmt(b, " %s[", part)))
        dg_shared(b, type, part, r->share);
    dg_line(b, "%s[me] = %s;", part, s);
    dg_meet(b);
    dg_line(b, "for (int h = %u; h > 0; h /= 2) {\nif (me < h) {", r->share / 2);
    dg_line(b, "%s s = %s[me];\nconst %s x = %s[me + h];", type, part, type, part);
    dg_line(b, "%s;\n%s[me] = s;\n}", merge, part);
    dg_meet(b);
    dg_line(b, "}\n%s = %s[0];", s, part);
    dg_meet(b);
}

void dg_row_one(dg_build *b, const dg_row *r) { dg_line(b, r->share > 1 ? "if (me == 0) {" : "{"); }

void dg_row_one_end(dg_build *b, const dg_row *r)
{
    (void)r;
    dg_line(b, "}");
}

void dg_row_end(dg_build *b, const dg_row *r, uint32_t group_items, double operations)
{
    int64_t items;
    if (!ot_mul_i64(r->items, r->share, &items)) items = INT64_MAX;
    dg_end(b, items, group_items, operations);
}
