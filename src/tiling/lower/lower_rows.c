/* Form stream as a lowered kernel: rows that a step hands on to the next one, in the planned
 * kernel's buffers.
 *
 *   line buffers (region.rolling)                      rows put together
 *
 *     x_rows: rows 4..5 of x, x_tile: 6..9       y_tile: rows 3..8, of which
 *     join:   4..9 in global memory, where a       y_tile[2:6] = conv(...)   are made in this step,
 *             reader wants rows of both            y_tile[0:2] <- y_rows     were handed on
 *     x_rows <- 8..9 behind the last reader      y_rows <- y_tile[4:6]
 *
 * The buffer of rows holds what the step wants of those before it, the first of them in front;
 * of a loop's steps each finds as many. What readers want together is workspace that the planned
 * kernel does not count: a machine with line buffers reads both where they lie.
 */
#include "lower_ops.h"
#include "tiling/stream.h"

static const lowered_run *run_at_hand(const lowered *p) { return &p->runs[0][p->at[0]]; }

/* Rows of value v that are in its buffer when the step at hand begins. Behind a loop they are as
 * many as the loop hands on. */
static ot_win handed(const lowered *p, uint32_t v)
{
    const lowered_run *run = run_at_hand(p);
    ot_win kept = p->windows[0][run->first].kept[v];
    if (p->at[0] > 0 && run[-1].count > 1)
        kept.lo = kept.hi - ot_win_len(p->windows[0][run[-1].first].kept[v]);
    return kept;
}

/* Rows that the next step is to find; none behind the last one. */
static ot_win wanted_next(const lowered *p, uint32_t v)
{
    const uint32_t next = run_at_hand(p)->first + 1;
    return next < p->n_steps ? p->windows[0][next].kept[v] : (ot_win){0, 0};
}

/* n rows of value v, as wide as they are in this strip. false: there is nothing. */
static bool rows_shape(const lowered *p, uint32_t v, int64_t n, lowered_tensor *out)
{
    if (!lowered_whole_shape(p, v, out)) return false;
    for (uint32_t d = 0; d < p->r->n_dims; d++) {
        const int8_t axis = p->r->values[v].axis[d];
        if (axis >= 0) out->dims[axis] = d == 0 ? n : ot_win_len(lowered_tile_window(p, d, v));
        if (axis >= 0 && out->dims[axis] < 1) return false;
    }
    return true;
}

ot_status lowered_declare_rows(lowered *p)
{
    for (uint32_t v = 0; v < p->r->n_values; v++) {
        int64_t most = 0;
        lowered_tensor like;
        p->rows[v].v = OT_NONE;
        for (uint32_t k = 0; k < p->n_steps; k++)
            most = ot_max(most, ot_win_len(p->windows[0][k].kept[v]));
        if (most == 0 || p->held->rows[v] == OT_NONE || !rows_shape(p, v, most, &like)) continue;
        OT_TRY(lowered_alloc(p, p->g->values[p->r->values[v].value].name, "_rows", OT_SCOPE_L2, 1,
                             &like, &p->rows[v]));
        OT_TRY(lowered_place_as(p, p->rows[v].v, p->held->rows[v]));
        lowered_op clear = {.pipe = OT_PIPE_VECTOR, .name = "fill", .out = p->rows[v]};
        if (p->one_kind) OT_TRY(lowered_statement(p, &clear)); /* no step before it has made any */
    }
    return OT_OK;
}

/* Rows w of x, which begins with row `first`. */
static ot_status part_of_rows(lowered *p, uint32_t v, const lowered_tensor *x, int64_t first,
                              ot_win w, lowered_tensor *out)
{
    const int8_t axis = p->r->values[v].axis[0];
    ot_tk_affine lo[OT_TK_RANK_MAX] = {0};
    lowered_tensor part = *x;
    lo[axis].constant = w.lo - first;
    part.dims[axis] = ot_win_len(w);
    return lowered_part(p, x, lo, part.dims, out);
}

/* The part of them that is new in this step, and lies in the tile. */
static ot_win new_rows(const lowered *p, uint32_t v, ot_win rows)
{
    return (ot_win){ot_max(rows.lo, handed(p, v).hi), rows.hi};
}

static ot_win old_rows(const lowered *p, uint32_t v, ot_win rows)
{
    return (ot_win){rows.lo, ot_min(rows.hi, handed(p, v).hi)};
}

static ot_status refuse_missing(lowered *p)
{
    return lowered_refuse(p, "rows that nobody has brought");
}

/* Rows of v, old and new ones, put one behind the other in `to`; at [lo, ...) of the axes that
 * they are not cut along. */
static ot_status put_together(lowered *p, uint32_t v, ot_win rows, const ot_tk_affine *lo,
                              const lowered_tensor *to)
{
    const int8_t axis = p->r->values[v].axis[0];
    const ot_win w[2] = {old_rows(p, v, rows), new_rows(p, v, rows)};
    const lowered_tensor *from[2] = {&p->rows[v], &p->tile[v]};
    const int64_t first[2] = {handed(p, v).lo, lowered_tile_window(p, 0, v).lo};
    for (uint32_t k = 0; k < 2; k++) {
        ot_tk_affine at[OT_TK_RANK_MAX];
        lowered_tensor src, dst;
        if (ot_win_empty(w[k])) continue;
        if (from[k]->v == OT_NONE) return refuse_missing(p);
        OT_TRY(part_of_rows(p, v, to, rows.lo, w[k], &dst));
        memcpy(at, lo, sizeof at);
        at[axis] = (ot_tk_affine){.constant = w[k].lo - first[k]};
        OT_TRY(lowered_part(p, from[k], at, dst.dims, &src));
        OT_TRY(lowered_move(p, &dst, &src));
    }
    return OT_OK;
}

ot_status lowered_rows_of(lowered *p, uint32_t v, ot_win rows, const ot_tk_affine *lo,
                          const int64_t *dims, lowered_tensor *out)
{
    const int8_t axis = p->r->values[v].axis[0];
    const bool old = !ot_win_empty(old_rows(p, v, rows)),
               fresh = !ot_win_empty(new_rows(p, v, rows));
    lowered_tensor like = old ? p->rows[v] : p->tile[v];
    if (like.v == OT_NONE) return refuse_missing(p);
    memcpy(like.dims, dims, sizeof like.dims);
    like.dims[axis] = ot_win_len(rows);
    if (old && fresh) {
        OT_TRY(lowered_alloc(p, p->g->values[p->r->values[v].value].name, "_join", OT_SCOPE_GM, 1,
                             &like, out));
        return put_together(p, v, rows, lo, out);
    }
    ot_tk_affine at[OT_TK_RANK_MAX];
    memcpy(at, lo, sizeof at);
    at[axis] = (ot_tk_affine){
        .constant = rows.lo - (old ? handed(p, v).lo : lowered_tile_window(p, 0, v).lo)};
    return lowered_part(p, old ? &p->rows[v] : &p->tile[v], at, like.dims, out);
}

/* Line buffers: behind the last reader of v. Rows that stay and do not lie in front move by way
 * of workspace. */
static ot_status keep_lines(lowered *p, uint32_t v)
{
    const ot_win next = wanted_next(p, v), have = handed(p, v);
    const ot_tk_affine none[OT_TK_RANK_MAX] = {0};
    lowered_tensor to, moved;
    if (p->rows[v].v == OT_NONE || ot_win_empty(next)) return OT_OK;
    if (next.lo == have.lo && next.hi == have.hi) return OT_OK;
    OT_TRY(part_of_rows(p, v, &p->rows[v], next.lo, next, &to));
    if (ot_win_empty(old_rows(p, v, next))) return put_together(p, v, next, none, &to);
    OT_TRY(lowered_alloc(p, p->g->values[p->r->values[v].value].name, "_moved", OT_SCOPE_GM, 1, &to,
                         &moved));
    OT_TRY(put_together(p, v, next, none, &moved));
    return lowered_move(p, &to, &moved);
}

ot_status lowered_fresh_part(lowered *p, uint32_t v, lowered_tensor *out)
{
    *out = p->tile[v];
    if (!lowered_joins_rows(p)) return OT_OK;
    const ot_tile_windows *w = lowered_windows(p, 0);
    return part_of_rows(p, v, &p->tile[v], w->made[v].lo, ot_stream_new(w, v), out);
}

/* Rows put together: what was handed on goes in front of what is new, or stands alone; what is
 * wanted again is copied. */
static ot_status join_rows(lowered *p, uint32_t v)
{
    const ot_tile_windows *w = lowered_windows(p, 0);
    const ot_win next = wanted_next(p, v), have = handed(p, v), kept = w->kept[v];
    lowered_tensor like, from, to;
    ot_tk_affine lo[OT_TK_RANK_MAX];
    if (p->rows[v].v == OT_NONE || !lowered_tile_shape(p, v, false, &like, lo)) return OT_OK;
    if (p->tile[v].v == OT_NONE) OT_TRY(lowered_new_tile(p, v, &like, &p->tile[v]));
    if (!ot_win_empty(kept)) {
        OT_TRY(part_of_rows(p, v, &p->tile[v], w->made[v].lo, kept, &to));
        OT_TRY(part_of_rows(p, v, &p->rows[v], have.lo, kept, &from));
        OT_TRY(lowered_move(p, &to, &from));
    }
    if (ot_win_empty(next) || (next.lo == have.lo && next.hi == have.hi)) return OT_OK;
    OT_TRY(part_of_rows(p, v, &p->tile[v], w->made[v].lo, next, &from));
    OT_TRY(part_of_rows(p, v, &p->rows[v], next.lo, next, &to));
    return lowered_move(p, &to, &from);
}

ot_status lowered_hand_on(lowered *p, uint32_t i)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const ot_node *n = &p->g->nodes[rn->node];
    if (p->r->form != OT_FORM_STREAM) return OT_OK;
    p->node = n->name[0] ? n->name : n->op_type;
    for (uint32_t o = 0; o < n->n_out && lowered_joins_rows(p); o++)
        if (rn->out[o] != OT_NONE) OT_TRY(join_rows(p, rn->out[o]));
    for (uint32_t j = 0; j < n->n_in && p->r->rolling; j++) {
        const uint32_t v = rn->in[j];
        bool again = v == OT_NONE || p->last[v] != i;
        for (uint32_t k = 0; k < j; k++) again |= rn->in[k] == v;
        if (!again) OT_TRY(keep_lines(p, v));
    }
    return OT_OK;
}
