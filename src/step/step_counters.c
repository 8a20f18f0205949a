/* Where rows lie: two counters go from step to step, and what depends on them is computed in the
 * model.
 *
 *   state.first   the reference's rows before this step: whole steps
 *   state.seen    those that there have been: less at the end, when steps bring fewer rows or none
 *   rows          of the named input, that this step brings
 *
 * A value has as many rows as the model gives it for an input of `seen` rows: by a table over the
 * remainder modulo align. While steps are whole that is never less than what has been made of it.
 */
#include "step_internal.h"

#define ENDLESS ((int64_t)1 << 48) /* rows of a value where the model takes no such extent */

static ot_status nomem(const step_writer *w) { return ot_fail_nomem(w->g->model->diag); }

static ot_tensor_type ints(ot_dtype dtype, const int64_t *n)
{
    return (ot_tensor_type){dtype, 1, n};
}

static const int64_t ONE[] = {1};

/* op(a, b), [1]. */
static ot_status two(step_writer *w, const char *op, ot_id a, ot_id b, ot_id *out)
{
    const ot_id in[2] = {a, b};
    return step_op(w, op, in, 2, (ot_attr_list){0}, ints(OT_I64, ONE), out);
}

/* op(a, number), [1]; a itself where that says nothing. */
static ot_status by_number(step_writer *w, const char *op, ot_id a, int64_t number, ot_id *out)
{
    ot_id b;
    *out = a;
    if (number == (op[0] == 'M' || op[0] == 'D')) return OT_OK; /* 1, or 0 to be added */
    OT_TRY(step_ints(w, "number", &number, 1, &b));
    return two(w, op, a, b, out);
}

ot_status step_counters(step_writer *w)
{
    const ot_axis_flow *f = w->p->flow;
    const ot_id named = f->input[f->named];
    ot_id rows, first, seen, more, next;
    OT_TRY(step_new_input(w, "rows", ints(OT_I64, ONE), &rows));
    w->facts->count = w->g->values[rows].name;
    OT_TRY(step_state(w, "first", ints(OT_I64, ONE), &first));
    OT_TRY(step_state(w, "seen", ints(OT_I64, ONE), &seen));
    OT_TRY(by_number(w, "Mul", rows, f->flow->den[named], &more));
    OT_TRY(by_number(w, "Div", more, f->flow->num[named], &more));
    OT_TRY(two(w, "Add", seen, more, &w->seen));
    OT_TRY(step_next(w, seen, w->seen));
    OT_TRY(by_number(w, "Add", first, w->p->rows, &next));
    OT_TRY(step_next(w, first, next));
    w->first = first;
    return OT_OK;
}

/* What is kept in w->made under `key` of value v. */
static bool was_made(step_writer *w, const char *what, ot_id v, ot_id *out)
{
    char key[64];
    snprintf(key, sizeof key, "%s %u", what, v);
    *out = ot_map_get(w->made, key);
    return *out != OT_NONE;
}

static ot_status keep(step_writer *w, const char *what, ot_id v, ot_id x)
{
    const char *key = ot_format(w->p->a, "%s %u", what, v);
    return key && ot_map_put(w->made, key, x) ? OT_OK : nomem(w);
}

ot_status step_place(step_writer *w, ot_id v, int64_t at, ot_id *out)
{
    const ot_flow *f = w->p->flow->flow;
    OT_TRY(by_number(w, "Mul", w->first, f->num[v], out));
    OT_TRY(by_number(w, "Div", *out, f->den[v], out));
    return by_number(w, "Add", *out, at, out);
}

/* Rows beside those of whole periods of `align`, by the remainder ([align]). */
static ot_status rest_table(step_writer *w, ot_id v, ot_id *out)
{
    const ot_flow *f = w->p->flow->flow;
    const int64_t before = f->extent - f->extent % f->align + f->align;
    int64_t *table = OT_NEW_N(w->p->a, int64_t, (size_t)f->align);
    if (!table) return nomem(w);
    for (int64_t r = 0; r < f->align; r++) {
        const int64_t *made = w->p->flow->made[r];
        table[r] = made ? made[v] - before / f->den[v] * f->num[v] -
                              before % f->den[v] * f->num[v] / f->den[v]
                        : ENDLESS;
    }
    return step_ints(w, "rest", table, f->align, out);
}

ot_status step_extent(step_writer *w, ot_id v, ot_id *out)
{
    const ot_flow *f = w->p->flow->flow;
    const int64_t *made = w->p->flow->made[0];
    const int64_t before = f->extent - f->extent % f->align + f->align;
    ot_id periods, whole, rest, table;
    if (was_made(w, "extent", v, out)) return OT_OK;
    if (f->align == 1) {
        OT_TRY(by_number(w, "Mul", w->seen, f->num[v], out));
        OT_TRY(by_number(w, "Add", *out, made[v] - before * f->num[v], out));
        return keep(w, "extent", v, *out);
    }
    if (!was_made(w, "periods", 0, &periods)) {
        OT_TRY(by_number(w, "Div", w->seen, f->align, &periods));
        OT_TRY(keep(w, "periods", 0, periods));
        OT_TRY(by_number(w, "Mul", periods, f->align, &whole));
        OT_TRY(two(w, "Sub", w->seen, whole, &rest));
        OT_TRY(keep(w, "rest", 0, rest));
    }
    if (!was_made(w, "rest", 0, &rest)) OT_BUG("a remainder was not kept");
    OT_TRY(rest_table(w, v, &table));
    OT_TRY(two(w, "Gather", table, rest, &rest));
    OT_TRY(by_number(w, "Mul", periods, f->align * f->num[v] / f->den[v], &whole));
    OT_TRY(two(w, "Add", whole, rest, out));
    return keep(w, "extent", v, *out);
}

/* x, not less than 0 and not more than `most`. */
static ot_status clamp(step_writer *w, ot_id x, int64_t most, ot_id *out)
{
    const int64_t bound[2] = {0, most};
    const ot_tensor_type truth = ints(OT_BOOL, ONE);
    for (int k = 0; k < 2; k++) {
        ot_id limit, is;
        OT_TRY(step_ints(w, "number", &bound[k], 1, &limit));
        const ot_id pair[2] = {k == 0 ? x : limit, k == 0 ? limit : x};
        OT_TRY(step_op(w, "Less", pair, 2, (ot_attr_list){0}, truth, &is));
        const ot_id choice[3] = {is, limit, x};
        OT_TRY(step_op(w, "Where", choice, 3, (ot_attr_list){0}, ints(OT_I64, ONE), &x));
    }
    *out = x;
    return OT_OK;
}

ot_status step_tell(step_writer *w, ot_id y, ot_id *out)
{
    const step_value *v = &w->p->values[y];
    const char *name = ot_format(w->g->model->arena, "%s.rows", w->g->values[y].name);
    ot_id place, zero, extent, ends[2];
    const int64_t none = 0;
    if (!name) return nomem(w);
    OT_TRY(step_place(w, y, -v->out_lag, &place));
    OT_TRY(step_extent(w, y, &extent));
    OT_TRY(step_ints(w, "number", &none, 1, &zero));
    OT_TRY(two(w, "Sub", zero, place, &ends[0]));
    OT_TRY(clamp(w, ends[0], v->rows, &ends[0]));
    OT_TRY(two(w, "Sub", extent, place, &ends[1]));
    OT_TRY(clamp(w, ends[1], v->rows, &ends[1]));
    OT_TRY(step_join(w, ends[0], ends[1], 0, &extent));
    return step_new_output(w, name, extent, out);
}
