/* What a region's planned kernel needs of its tiles: the largest of each value, where it begins,
 * how it moves; shapes of buffers.
 *
 *   tiles of x: [0, 9) [7, 17) [15, 25) [23, 32)        len 10, start -1, stride 8
 *
 * The affine form is that of a tile in the middle and its successor: it holds away from the
 * borders.
 */
#include "tiling/stream.h"
#include "region_lowering.h"

/* ---- windows ---- */

static int64_t extent_of(const lowering *l, uint32_t d, uint32_t v)
{
    const ot_rvalue *rv = &l->r->values[v];
    return l->g->values[rv->value].dims[rv->axis[d]];
}

/* Take in tile k. `middle`: the tile whose place, with its successor's, gives the affine form. */
static void note_tile(lowering *l, uint32_t d, uint32_t k, uint32_t middle,
                      const ot_tile_windows *w)
{
    const ot_region *r = l->r;
    for (uint32_t v = 0; v < r->n_values; v++) {
        span_of_tiles *s = &l->span[d][v];
        ot_win made = r->rolling && d == 0 ? ot_stream_new(w, v) : w->made[v], piece = w->piece[v];
        if (r->values[v].axis[d] == OT_AX_WHOLE) continue;
        s->len = ot_max(s->len, made.hi - made.lo);
        s->piece = ot_max(s->piece, piece.hi - piece.lo);
        if (k == middle) {
            s->start = made.lo;
            s->piece_start = piece.lo;
            s->inset = ot_max(0, piece.lo - made.lo);
        }
        if (k == middle + 1) s->stride = made.lo - s->start;
    }
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        double share = ot_tile_share(l->g, r, d, i, w);
        if (share > l->share[d][i]) l->share[d][i] = share;
    }
}

/* Take in the steps of a streaming region. The place of a step is counted in tiles of the sink. */
static ot_status note_steps(lowering *l, uint32_t *middle)
{
    const ot_region *r = l->r;
    ot_stream s;
    bool legal;
    ot_why why;
    OT_TRY(ot_stream_steps(l->g, r, l->a, &s, &legal, &why));
    if (!legal) return ot_fail(l->d, OT_E_INPUT, "region %u: %s", r->id, ot_reason_sentence(why));
    uint32_t steady = 0;
    for (uint32_t k = 0; k < s.n_runs; k++)
        if (s.runs[k].count > 1) steady = s.runs[k].first + (s.runs[k].count - 1) / 2;
    for (uint32_t k = 0; k < s.n; k++) {
        note_tile(l, 0, k, steady, &s.steps[k]);
        for (uint32_t v = 0; v < r->n_values; v++)
            l->kept[v] = ot_max(l->kept[v], ot_win_len(s.steps[k].kept[v]));
    }
    *middle = (uint32_t)(s.steps[steady].piece[r->dims[0].sink].lo / r->dims[0].tile);
    return OT_OK;
}

/* Spans of dimension d. Where a tile of the sink is a whole number of elements of the value,
 * that is the stride. */
ot_status lower_measure(lowering *l, uint32_t d)
{
    const ot_region *r = l->r;
    const ot_dim *m = &r->dims[d];
    ot_tile_windows w;
    ot_why why = OT_WHY_NONE;
    uint32_t middle = m->n_tiles > 2 ? (m->n_tiles - 1) / 2 : 0;
    l->span[d] = OT_NEW_N(l->a, span_of_tiles, r->n_values + 1u);
    l->share[d] = OT_NEW_N(l->a, double, r->n_nodes + 1u);
    if (!l->span[d] || !l->share[d]) return lower_nomem(l);
    OT_TRY(ot_tile_windows_new(l->g, r, l->a, &w));
    const bool stream = r->form == OT_FORM_STREAM && d == 0;
    if (stream) OT_TRY(note_steps(l, &middle));
    bool ok = true;
    for (uint32_t k = 0; ok && !stream && k < m->n_tiles; k++) {
        ok = ot_tile_windows_get(l->g, r, d, k, &w, &why);
        if (ok) note_tile(l, d, k, middle, &w);
    }
    if (!ok) return ot_fail(l->d, OT_E_INPUT, "region %u: %s", r->id, ot_reason_sentence(why));
    for (uint32_t v = 0; v < r->n_values; v++) {
        span_of_tiles *s = &l->span[d][v];
        int64_t tile;
        if (ot_is_part(r, v, d)) *s = (span_of_tiles){.len = 1, .piece = 1, .stride = 1};
        if (r->values[v].axis[d] == OT_AX_WHOLE) continue;
        bool whole = ot_mul_i64(extent_of(l, d, v), m->tile, &tile) && tile % m->extent == 0;
        if (m->n_tiles > 2 && whole) s->stride = tile / m->extent;
        s->start -= s->stride * middle;
        s->piece_start -= s->stride * middle;
        s->inset = ot_min(s->inset, s->len - s->piece);
    }
    return OT_OK;
}

/* ---- types and shapes ---- */

const char *ot_region_type_name(ot_dtype t)
{
    switch (t) {
    case OT_F32: return "f32";
    case OT_F16: return "f16";
    case OT_BF16: return "bf16";
    case OT_F64: return "f64";
    case OT_I8: return "i8";
    case OT_I16: return "i16";
    case OT_I32: return "i32";
    case OT_I64: return "i64";
    case OT_U8: return "u8";
    case OT_U16: return "u16";
    case OT_U32: return "u32";
    case OT_U64: return "u64";
    case OT_BOOL: return "bool";
    case OT_C64: return "c64";
    case OT_C128: return "c128";
    case OT_F8E4M3FN:
    case OT_F8E4M3FNUZ: return "f8e4m3";
    case OT_F8E5M2:
    case OT_F8E5M2FNUZ: return "f8e5m2";
    case OT_F8E8M0: return "f8e8m0";
    case OT_F4E2M1: return "f4e2m1";
    case OT_I4: return "i4";
    case OT_U4: return "u4";
    case OT_I2: return "i2";
    case OT_U2: return "u2";
    default: return NULL;
    }
}

static bool join_axis(shape *s, int64_t extent)
{
    uint32_t last = s->rank - 1;
    return ot_mul_i64(s->whole[last], extent, &s->whole[last]) &&
           ot_mul_i64(s->tile[last], extent, &s->tile[last]);
}

bool lower_shape(const lowering *l, uint32_t v, shape *s)
{
    const ot_rvalue *rv = &l->r->values[v];
    const ot_value *x = &l->g->values[rv->value];
    int64_t elems;
    *s = (shape){0};
    if (!ot_value_elems(x, &elems) || elems == 0) return false;
    for (uint32_t d = 0; d < l->r->n_dims; d++) {
        if (!ot_is_part(l->r, v, d)) continue; /* else: parts lie one behind the other */
        s->dim[s->rank] = (int)d;
        s->whole[s->rank] = l->r->dims[d].n_tiles;
        s->tile[s->rank++] = 1;
    }
    for (int32_t a = 0; a < x->rank; a++) {
        int dim = -1;
        for (uint32_t d = 0; d < l->r->n_dims; d++)
            if (rv->axis[d] == a) dim = (int)d;
        if (dim < 0 && x->rank > OT_TK_RANK_MAX && s->rank > 0 && s->dim[s->rank - 1] < 0) {
            if (!join_axis(s, x->dims[a])) return false;
            continue;
        }
        if (s->rank == OT_TK_RANK_MAX) return false;
        s->dim[s->rank] = dim;
        s->whole[s->rank] = x->dims[a];
        s->tile[s->rank] = dim < 0 ? x->dims[a] : l->span[dim][v].len;
        if (s->tile[s->rank++] < 1) return false;
    }
    if (s->rank == 0) {
        s->whole[0] = s->tile[0] = 1;
        s->dim[0] = -1;
        s->rank = 1;
    }
    /* float values inside a quantized group have the width of its integers: rv->bytes says so */
    s->type = x->dtype == OT_F32 && rv->bytes == elems ? "u8" : ot_region_type_name(x->dtype);
    return s->type != NULL;
}

bool lower_tile_bytes(const shape *s, int64_t *out)
{
    int64_t elems;
    if (!ot_product(s->tile, s->rank, &elems) || !ot_mul_i64(elems, ot_tk_dtype_bits(s->type), out))
        return false;
    *out = ot_ceil_div(*out, 8);
    return true;
}

bool lower_is_cut(const lowering *l, uint32_t v)
{
    for (uint32_t d = 0; d < l->r->n_dims; d++)
        if (l->r->values[v].axis[d] != OT_AX_WHOLE) return true;
    return false;
}

void lower_ranges(const lowering *l, uint32_t v, const shape *s, bool piece, ot_tk_range *out)
{
    for (uint32_t k = 0; k < s->rank; k++) {
        out[k] = (ot_tk_range){.hi = {.constant = s->whole[k]}};
        if (s->dim[k] < 0) continue;
        const span_of_tiles *x = &l->span[s->dim[k]][v];
        ot_tk_affine lo = {.constant = piece ? x->piece_start : x->start};
        if (x->stride != 0) {
            lo.n = 1;
            lo.terms[0].var = l->var[s->dim[k]];
            lo.terms[0].coef = x->stride;
        }
        out[k].lo = out[k].hi = lo;
        out[k].hi.constant += piece ? x->piece : x->len;
    }
}

uint32_t *ot_region_last_readers(const ot_graph *g, const ot_region *r, ot_arena *a)
{
    uint32_t *last = OT_NEW_N(a, uint32_t, r->n_values + 1u);
    if (!last) return NULL;
    for (uint32_t v = 0; v < r->n_values; v++) last[v] = OT_NONE;
    for (uint32_t i = 0; i < r->n_nodes; i++)
        for (uint32_t j = 0; j < g->nodes[r->nodes[i].node].n_in; j++)
            if (r->nodes[i].in[j] != OT_NONE) last[r->nodes[i].in[j]] = i;
    return last;
}
