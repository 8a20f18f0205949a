/* Resize and Upsample by the engine's tables (engine/cpu/move/fast_resize.h): for each axis that
 * changes, which elements make an element of the result, with which weights.
 */
#include "dg_internal.h"

#include "engine/cpu/move/fast_resize.h"

static ot_status tables(dg_build *b, const ot_node *n, ot_diag *d, const ot_resize **r)
{
    const ot_nd *x = dg_nd(b, n->in[0]);
    const ot_nd **in = OT_NEW_N(b->a, const ot_nd *, n->n_in + 1u);
    if (!in) return ot_fail_nomem(d);
    for (uint32_t k = 1; k < n->n_in; k++) {
        in[k] = n->in[k] == OT_NONE ? NULL : dg_nd(b, n->in[k]);
        if (in[k] && !in[k]->data) {
            *r = NULL;
            return OT_OK;
        }
    }
    return ot_resize_new(b->a, n, x, in, n->n_in, r);
}

bool dg_resize(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *y = dg_nd(b, n->out[0]);
    const char *c[OT_RANK_MAX], *at[OT_RANK_MAX], *outside = "", *weight = "";
    const ot_resize *r = NULL;
    ot_diag d = {0};
    dg_type t;
    int64_t items;
    ot_status s = tables(b, n, &d, &r);
    if (s == OT_E_NOMEM) b->starved = true;
    if (s != OT_OK || !r) return dg_refuse(b, "sizes that are not constant");
    bool nearest = r->mode == OT_RESIZE_NEAREST;
    if (!dg_type_of(x->dtype, &t) || (!nearest && !ot_dtype_is_real(x->dtype)) ||
        x->rank != y->rank)
        return dg_refuse(b, "a Resize of this type");
    if (!ot_nd_elems(y, &items) || items == 0) return dg_refuse(b, "an empty result");
    for (uint32_t k = 0; k < x->rank; k++)
        if (y->dims[k] != (r->axes[k].same ? x->dims[k] : r->axes[k].out))
            return dg_refuse(b, DG_CONTRADICT);
    dg_begin(b, items);
    dg_split_as(b, "c", dg_nd(b, b->g->stores[0]), c);
    uint32_t in = dg_arg(b, n->in[0], NULL, false);
    int64_t taken = 1;
    for (uint32_t k = 0; k < x->rank; k++)
        taken *= r->axes[k].same ? x->dims[k]
                                 : ot_min(x->dims[k], r->axes[k].n_taps * r->axes[k].out);
    dg_reads_at_most(b, in, taken);
    dg_line(b, "%s y = 0;", t.computed);
    for (uint32_t k = 0; k < x->rank; k++) {
        const ot_resize_axis *a = &r->axes[k];
        at[k] = c[k];
        if (a->same) continue;
        uint32_t index = dg_table(b, OT_I32, a->n_taps * a->out, a->index);
        dg_line(b, "for (int k%u = 0; k%u < %lld; k%u++) {", k, k, (long long)a->n_taps, k);
        dg_line(b, "const int a%u = %s;", k,
                dg_load(b, index, dg_fmt(b, "k%u * %s + %s", k, dg_num(b, a->out), c[k])));
        at[k] = x->dims[k] == 1 ? "0" : dg_fmt(b, "a%u", k);
        if (!nearest) {
            uint32_t w = dg_table(b, OT_F32, a->n_taps * a->out, a->weight);
            dg_line(b, "const float w%u = %s;", k,
                    dg_load(b, w, dg_fmt(b, "k%u * %s + %s", k, dg_num(b, a->out), c[k])));
            weight = dg_fmt(b, "%s%sw%u", weight, *weight ? " * " : "", k);
        }
        if (a->outside) {
            uint32_t o = dg_table(b, OT_U8, a->out, a->outside);
            outside = dg_fmt(b, "%s%s%s != 0", outside, *outside ? " || " : "",
                             dg_load(b, o, c[k]));
        }
    }
    const char *load = dg_load(b, in, dg_index(b, in, at));
    if (*weight)
        dg_line(b, "y += %s * %s;", load, weight);
    else
        dg_line(b, "y = %s;", load);
    for (uint32_t k = 0; k < x->rank; k++)
        if (!r->axes[k].same) dg_line(b, "}");
    if (*outside)
        dg_line(b, "if (%s) y = to_%s(%.9g);", outside, t.computed, (double)r->extrapolation);
    dg_element e = {.rank = y->rank, .dims = y->dims, .coords = c};
    dg_element_var(b, &e, n->out[0], "y");
    if (!dg_element_rest(b, &e, 1)) return false;
    dg_end(b, items, 64, (double)items * 4);
    return !b->why;
}
