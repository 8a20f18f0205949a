/* The tiles of a lowered kernel: their windows, which of them are alike and move evenly, and where
 * each is.
 *
 *   windows [0, 9) [7, 17) [15, 25) [23, 32)   runs {0}, {1, 2}, {3}: tile 1 + k reads from 8 k + 7
 */
#include "tiling/stream.h"
#include "lower_region.h"

/* By how much everything moves from tile k to the next one. */
static void find_steps(const lowered *p, uint32_t d, uint32_t k, lowered_run *run)
{
    const ot_tile_windows *a = &p->windows[d][k], *b = &p->windows[d][k + 1];
    for (uint32_t v = 0; v < p->r->n_values; v++) {
        run->step[v] = b->made[v].lo - a->made[v].lo;
        run->piece_step[v] = b->piece[v].lo - a->piece[v].lo;
    }
}

static bool moves_as(const lowered *p, uint32_t d, uint32_t k, const lowered_run *run)
{
    const ot_tile_windows *a = &p->windows[d][k], *b = &p->windows[d][k + 1];
    for (uint32_t v = 0; v < p->r->n_values; v++)
        if (run->step[v] != b->made[v].lo - a->made[v].lo ||
            run->piece_step[v] != b->piece[v].lo - a->piece[v].lo)
            return false;
    return true;
}

/* The steps of a region that streams. */
static ot_status fill_steps(lowered *p, uint32_t *n)
{
    ot_stream s;
    bool legal;
    ot_why why;
    OT_TRY(ot_stream_steps(p->g, p->r, p->a, &s, &legal, &why));
    if (!legal)
        return ot_fail(p->d, OT_E_INPUT, "region %u: %s", p->r->id, ot_reason_sentence(why));
    p->windows[0] = s.steps;
    *n = p->n_steps = s.n;
    return OT_OK;
}

static ot_status fill_windows(lowered *p, uint32_t d, uint32_t *out)
{
    const uint32_t n = *out = p->r->dims[d].n_tiles;
    ot_why why;
    if (p->r->form == OT_FORM_STREAM && d == 0) return fill_steps(p, out);
    p->windows[d] = OT_NEW_N(p->a, ot_tile_windows, n + 1u);
    if (!p->windows[d]) return lowered_nomem(p);
    for (uint32_t k = 0; k < n; k++) {
        OT_TRY(ot_tile_windows_new(p->g, p->r, p->a, &p->windows[d][k]));
        if (!ot_tile_windows_get(p->g, p->r, d, k, &p->windows[d][k], &why))
            return ot_fail(p->d, OT_E_INPUT, "region %u: %s", p->r->id, ot_reason_sentence(why));
    }
    return OT_OK;
}

/* Are as many rows handed to step b as to step a, of every value? Those that are not cut hand on
 * none. */
static bool takes_as_many(const lowered *p, uint32_t a, uint32_t b)
{
    for (uint32_t v = 0; v < p->r->n_values; v++)
        if (ot_win_len(p->windows[0][a].kept[v]) != ot_win_len(p->windows[0][b].kept[v]))
            return false;
    return true;
}

/* May step k join the run, for what is handed on? The step behind a loop finds as many rows as
 * the loop takes: where it wants fewer, it stays alone. */
static bool hands_on_alike(const lowered *p, const lowered_run *run, const lowered_run *before,
                           uint32_t k)
{
    if (before && before->count > 1 && !takes_as_many(p, before->first, run->first)) return false;
    return takes_as_many(p, run->first, k);
}

ot_status lowered_find_runs(lowered *p, uint32_t d)
{
    const bool stream = p->r->form == OT_FORM_STREAM && d == 0;
    uint32_t n;
    ot_form_tiles tiles = {.g = p->g, .r = p->r, .arena = p->a};
    OT_TRY(fill_windows(p, d, &n));
    p->runs[d] = OT_NEW_N(p->a, lowered_run, n + 1u);
    if (!p->runs[d]) return lowered_nomem(p);
    for (uint32_t k = 0; k < n; k++) {
        lowered_run *last = p->n_runs[d] > 0 ? &p->runs[d][p->n_runs[d] - 1] : NULL;
        bool same = false;
        if (last && (!stream || hands_on_alike(p, last, p->n_runs[d] > 1 ? last - 1 : NULL, k)))
            OT_TRY(ot_tiles_alike(&tiles, d, &p->windows[d][last->first], &p->windows[d][k], p->a,
                                  &same));
        if (same && last->count == 1) find_steps(p, d, k - 1, last);
        if (same && moves_as(p, d, k - 1, last)) {
            last->count++;
            continue;
        }
        lowered_run *run = &p->runs[d][p->n_runs[d]++];
        *run = (lowered_run){k, 1, OT_NEW_N(p->a, int64_t, p->r->n_values + 1u),
                             OT_NEW_N(p->a, int64_t, p->r->n_values + 1u)};
        if (!run->step || !run->piece_step) return lowered_nomem(p);
    }
    return OT_OK;
}

void lowered_keep_longest(lowered *p, uint32_t d)
{
    for (uint32_t k = 1; k < p->n_runs[d]; k++)
        if (p->runs[d][k].count > p->runs[d][0].count) p->runs[d][0] = p->runs[d][k];
    if (p->n_runs[d] > 1) p->n_runs[d] = 1;
}

/* ---- windows of the tile at hand ---- */

const ot_tile_windows *lowered_windows(const lowered *p, uint32_t d)
{
    return &p->windows[d][p->runs[d][p->at[d]].first];
}

ot_win lowered_tile_window(const lowered *p, uint32_t d, uint32_t v)
{
    const ot_tile_windows *w = lowered_windows(p, d);
    return p->r->rolling && d == 0 ? ot_stream_new(w, v) : w->made[v];
}

ot_tk_affine lowered_moving(const lowered *p, uint32_t d, int64_t lo, int64_t step)
{
    const lowered_run *run = &p->runs[d][p->at[d]];
    ot_tk_affine x = {.constant = lo};
    if (run->count == 1 || step == 0) return x;
    x.constant -= step * run->first;
    x.n = 1;
    x.terms[0].var = p->var[d];
    x.terms[0].coef = step;
    return x;
}

bool lowered_whole_shape(const lowered *p, uint32_t v, lowered_tensor *out)
{
    const ot_value *x = &p->g->values[p->r->values[v].value];
    int64_t elems;
    *out = (lowered_tensor){
        .v = OT_NONE, .rank = 1, .dims = {1}, .type = ot_region_type_name(x->dtype)};
    if (!out->type || x->rank > OT_TK_RANK_MAX || !ot_value_elems(x, &elems) || elems == 0)
        return false;
    /* merged quantized operators: it is bytes */
    if (x->dtype == OT_F32 && p->r->values[v].bytes == elems) return false;
    for (int32_t k = 0; k < x->rank; k++) out->dims[k] = x->dims[k];
    if (x->rank > 0) out->rank = (uint32_t)x->rank;
    return true;
}

bool lowered_tile_shape(const lowered *p, uint32_t v, bool piece, lowered_tensor *out,
                        ot_tk_affine *lo)
{
    if (!lowered_whole_shape(p, v, out)) return false;
    memset(lo, 0, OT_TK_RANK_MAX * sizeof *lo);
    for (uint32_t d = 0; d < p->r->n_dims; d++) {
        const int8_t axis = p->r->values[v].axis[d];
        if (axis < 0) continue;
        const ot_win w = piece ? lowered_windows(p, d)->piece[v] : lowered_tile_window(p, d, v);
        const lowered_run *run = &p->runs[d][p->at[d]];
        if (ot_win_empty(w)) return false;
        out->dims[axis] = w.hi - w.lo;
        lo[axis] = lowered_moving(p, d, w.lo, piece ? run->piece_step[v] : run->step[v]);
    }
    return true;
}
