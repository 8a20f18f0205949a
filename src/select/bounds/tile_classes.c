/* Which sizes of a range must be looked at for a region. See tile_classes.h.
 *
 *   extent e      ... 249 250 251 252 253 254 255 256 ...  step 8, least 10, the last tile begins
 *                 at 8 n
 *   n = (e - 10) / 8   29  30  30  30  30  30  30  30
 *   last tile          17  10  11  12  13  14  15  16      256 is looked at, then 249: no larger
 *                                                          one has as long a last tile
 *
 * What lives in a region's loops is a matter of the extents beside the cut axis, of how long the
 * last tile is, and of how many pieces there are. All of them grow with the size where the last
 * tile is as long; so of sizes with equal last tiles the largest counts.
 */
#include "tile_classes.h"

#include "tiling/dynamic_tiles.h"

#define SIZES_MOST (1 << 17) /* that are told apart, of a region */
#define TESTS_MOST 512       /* sizes that the model is asked for, of a region */
#define KEPT_MOST  48        /* classes that no other covers */

typedef struct sizing_class {
    const int64_t *at;   /* [n_vars] */
    const int64_t *rows; /* [n_cut] of the last tile; NULL: the region is run whole */
} sizing_class;

typedef struct sorting {
    const ot_region *r;
    const ot_size_table *t;
    const ot_dynamic_tiles *f;
    ot_term *extent; /* [n_inputs] of the cut axis; OT_NONE: it is not cut */
    uint32_t vars;   /* that these depend on */
    ot_arena *a;
    int64_t *values;    /* [terms] */
    sizing_class *kept; /* [n_kept] */
    size_t n_kept, cap_kept;
} sorting;

/* Rows of each cut input in the last tile; false: the region is run whole. */
static bool last_rows(const sorting *x, int64_t *rows)
{
    int64_t n = INT64_MAX, first = -1;
    bool tiled = true;
    for (uint32_t v = 0; v < x->r->n_inputs; v++) {
        if (x->extent[v] == OT_NONE) continue;
        const int64_t e = x->values[x->extent[v]];
        if (e < x->f->least[v]) tiled = false;
        if (x->f->same && first >= 0 && e != first) tiled = false;
        if (first < 0) first = e;
        if (tiled && x->f->step[v] > 0) n = ot_min(n, (e - x->f->least[v]) / x->f->step[v]);
    }
    for (uint32_t v = 0; tiled && v < x->r->n_inputs; v++) {
        rows[v] = 0;
        if (x->extent[v] == OT_NONE || x->f->step[v] == 0) continue;
        rows[v] = x->values[x->extent[v]] - x->f->inner->made[v].lo - n * x->f->step[v];
    }
    return tiled;
}

/* Some kept size takes as much as this one, whatever it takes. */
static bool is_covered(const sorting *x, const int64_t *at, const int64_t *rows)
{
    for (size_t k = 0; k < x->n_kept; k++) {
        const sizing_class *c = &x->kept[k];
        bool covers = (rows != NULL) == (c->rows != NULL);
        for (uint32_t v = 0; covers && v < ot_size_n_vars(x->t->terms); v++)
            covers = c->at[v] >= at[v];
        for (uint32_t v = 0; covers && rows && v < x->r->n_inputs; v++)
            covers = c->rows[v] >= rows[v];
        if (covers) return true;
    }
    return false;
}

static bool keep(sorting *x, const int64_t *at, const int64_t *rows)
{
    sizing_class c = {.at = ot_memdup(x->a, at, ot_size_n_vars(x->t->terms) * sizeof *at)};
    if (rows) c.rows = ot_memdup(x->a, rows, x->r->n_inputs * sizeof *rows);
    return c.at && (!rows || c.rows) && OT_PUSH(x->a, x->kept, x->n_kept, x->cap_kept, c);
}

/* The next smaller size in the variables that count; false: there is none. */
static bool next_size(const sorting *x, int64_t *at)
{
    for (uint32_t k = 0; k < ot_size_n_vars(x->t->terms); k++) {
        const ot_size_var *v = ot_size_var_at(x->t->terms, k);
        if (!(x->vars >> k & 1)) continue;
        if (at[k] - v->step >= v->lo) {
            at[k] -= v->step;
            return true;
        }
        at[k] = v->hi;
    }
    return false;
}

static ot_status walk_sizes(sorting *x, ot_size_takes takes, void *context, ot_tile_sizes *out)
{
    const uint32_t n = ot_size_n_vars(x->t->terms);
    int64_t *at = OT_NEW_N(x->a, int64_t, n + 1u),
            *rows = OT_NEW_N(x->a, int64_t, x->r->n_inputs + 1u);
    uint32_t tests = 0;
    if (!at || !rows) return OT_E_NOMEM;
    for (uint32_t k = 0; k < n; k++) at[k] = ot_size_var_at(x->t->terms, k)->hi;
    do {
        bool ok = true;
        ot_size_values(x->t->terms, at, x->values);
        const int64_t *tuple = last_rows(x, rows) ? rows : NULL;
        if (is_covered(x, at, tuple)) continue;
        if (x->n_kept == KEPT_MOST || tests == TESTS_MOST) {
            out->why = "the sizes of the range differ in too many ways";
            return OT_OK;
        }
        tests++;
        OT_TRY(takes(context, at, &ok));
        if (ok && !keep(x, at, tuple)) return OT_E_NOMEM;
    } while (next_size(x, at));
    return OT_OK;
}

static const char *look_at(sorting *x)
{
    double count = 1;
    for (uint32_t v = 0; v < x->r->n_inputs; v++) {
        const ot_rvalue *rv = &x->r->values[v];
        x->extent[v] = OT_NONE;
        if (rv->axis[0] == OT_AX_WHOLE) continue;
        const ot_term *d = rv->value < x->t->n_values ? x->t->dims[rv->value] : NULL;
        x->extent[v] = d ? d[rv->axis[0]] : OT_NONE;
        if (x->extent[v] == OT_NONE) return "the extent of a cut axis is computed of data";
        x->vars |= ot_term_vars(x->t->terms, x->extent[v]);
    }
    for (uint32_t k = 0; k < ot_size_n_vars(x->t->terms); k++) {
        const ot_size_var *v = ot_size_var_at(x->t->terms, k);
        if (x->vars >> k & 1) count *= (double)((v->hi - v->lo) / v->step + 1);
    }
    return count > SIZES_MOST ? "the range has too many sizes: give it steps" : NULL;
}

ot_status ot_tile_sizes_add(const ot_graph *g, const ot_region *r, const ot_size_table *t,
                            ot_size_takes takes, void *context, ot_arena *a, ot_tile_sizes *out)
{
    ot_region copy = *r;
    ot_form_tiles tiles = {.g = g, .r = &copy, .arena = a};
    ot_dynamic_tiles f;
    bool legal;
    ot_why why;
    OT_TRY(ot_dynamic_tiles_plan(&tiles, &f, &legal, &why));
    if (!legal) OT_BUG("a region with dynamic dimensions is planned that has no such form");
    sorting x = {.r = r,
                 .t = t,
                 .f = &f,
                 .a = a,
                 .extent = OT_NEW_N(a, ot_term, r->n_inputs + 1u),
                 .values = OT_NEW_N(a, int64_t, ot_size_n_terms(t->terms) + 1)};
    if (!x.extent || !x.values) return OT_E_NOMEM;
    const char *no = look_at(&x);
    if (no) {
        out->why = no;
        return OT_OK;
    }
    OT_TRY(walk_sizes(&x, takes, context, out));
    for (size_t k = 0; k < x.n_kept; k++)
        if (!OT_PUSH(a, out->at, out->n, out->cap, (int64_t *)x.kept[k].at)) return OT_E_NOMEM;
    return OT_OK;
}
