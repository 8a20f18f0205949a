/* Element types of the operators that a form writes; see reassemble_types.h. From the standard's
 * type constraints (opsets 7 to 25), less what ONNX Runtime (1.31) has no kernel for although it
 * runs the type otherwise: its Reshape takes float8 numbers from opset 21 on, where the standard
 * says 19, and no integers below 8 bits and no scales. tests/oracle/reassemble_types.py tries
 * them all. */
#include "reassemble_types.h"

/* Types that came together. */
typedef enum type_age { OLD, BF16, F8, FOUR_BITS, F4, F8_SCALE, TWO_BITS, AGES, UNKNOWN } type_age;

#define NEVER INT64_MAX

static const struct {
    int64_t since[AGES];
    ot_why refusal;
} ROWS[OT_REASSEMBLE_COUNT] = {
    /*                        old bf16  f8     4 bits f4     e8m0   2 bits */
    [OT_REASSEMBLE_SLICE] = {{1, 13, NEVER, NEVER, NEVER, NEVER, NEVER}, OT_WHY_TYPE_SLICE},
    [OT_REASSEMBLE_CONCAT] = {{1, 13, NEVER, NEVER, NEVER, NEVER, NEVER}, OT_WHY_TYPE_CONCAT},
    [OT_REASSEMBLE_RESHAPE] = {{1, 13, 21, NEVER, 23, NEVER, NEVER}, OT_WHY_TYPE_RESHAPE},
    [OT_REASSEMBLE_TRANSPOSE] = {{1, 13, 21, 21, 23, 24, 25}, OT_WHY_TYPE_TRANSPOSE},
    [OT_REASSEMBLE_LOOP] = {{1, 16, 19, 21, 23, 24, 25}, OT_WHY_TYPE_LOOP},
    [OT_REASSEMBLE_SEQUENCE] = {{1, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER},
                                OT_WHY_TYPE_SEQUENCE},
};

static type_age age_of(ot_dtype t)
{
    switch (t) {
    case OT_DT_UNKNOWN: return UNKNOWN;
    case OT_BF16: return BF16;
    case OT_F8E4M3FN:
    case OT_F8E4M3FNUZ:
    case OT_F8E5M2:
    case OT_F8E5M2FNUZ: return F8;
    case OT_U4:
    case OT_I4: return FOUR_BITS;
    case OT_F4E2M1: return F4;
    case OT_F8E8M0: return F8_SCALE;
    case OT_U2:
    case OT_I2: return TWO_BITS;
    default: return OLD;
    }
}

bool ot_reassemble_takes(ot_reassemble s, ot_dtype type, int64_t opset)
{
    type_age age = age_of(type);
    return age != UNKNOWN && opset >= ROWS[s].since[age];
}

/* Some reader in a tile wants less of v than the tile holds, or the piece is less: it is cut out.
 */
static bool is_cropped(const ot_form_tiles *w, uint32_t v)
{
    const ot_region *r = w->r;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        if (r->values[v].axis[d] < 0) continue;
        for (uint32_t k = 0; k < w->dims[d].n; k++) {
            const ot_tile_windows *x = &w->dims[d].tiles[k];
            ot_win made = x->made[v], piece = x->piece[v];
            if (!ot_win_empty(piece) && (piece.lo != made.lo || piece.hi != made.hi)) return true;
            for (uint32_t i = 0; i < r->n_nodes; i++) {
                const ot_rnode *rn = &r->nodes[i];
                for (uint32_t j = 0;
                     x->ops[i].in && rn->in_axis[d] && j < w->g->nodes[rn->node].n_in; j++) {
                    ot_win in = x->ops[i].in[j];
                    if (rn->in[j] != v || rn->in_axis[d][j] < 0 || ot_win_empty(in)) continue;
                    if (in.lo != made.lo || in.hi != made.hi) return true;
                }
            }
        }
    }
    return false;
}

/* A Scan takes all tiles of the input out of the outer tensor by itself. */
static bool is_scanned(const ot_form_tiles *w, uint32_t v)
{
    uint32_t first[OT_DIMS_MAX] = {0}, count[OT_DIMS_MAX];
    for (uint32_t d = 0; d < OT_DIMS_MAX; d++)
        count[d] = d < w->r->n_dims ? w->r->dims[d].n_tiles : 1;
    return ot_scan_sliced(w, first, count, v);
}

/* Bit set of 1 << ot_reassemble that value v passes through. */
static unsigned passes(const ot_form_tiles *w, ot_form f, bool sequence, uint32_t v)
{
    const ot_rvalue *x = &w->r->values[v];
    const unsigned stacked = 1u << OT_REASSEMBLE_LOOP | 1u << OT_REASSEMBLE_RESHAPE |
                             1u << OT_REASSEMBLE_TRANSPOSE;
    unsigned set = 0;
    bool cut = false;
    for (uint32_t d = 0; d < w->r->n_dims; d++) cut = cut || x->axis[d] >= 0;
    if (!cut) return 0;
    /* Every loop that is a Scan takes an input so, where its tiles are whole slices. */
    bool scanned = f != OT_FORM_UNROLLED && f != OT_FORM_LOOP && !sequence && v < w->r->n_inputs &&
                   is_scanned(w, v);
    if (scanned)
        set |= 1u << OT_REASSEMBLE_LOOP | 1u << OT_REASSEMBLE_RESHAPE;
    else if (v < w->r->n_inputs || is_cropped(w, v))
        set |= 1u << OT_REASSEMBLE_SLICE;
    if (v < w->r->n_inputs && f == OT_FORM_PRESCAN) set |= stacked;
    if (v >= w->r->n_inputs && f == OT_FORM_STREAM)
        set |= 1u << OT_REASSEMBLE_SLICE | 1u << OT_REASSEMBLE_CONCAT | 1u << OT_REASSEMBLE_LOOP;
    if (v < w->r->n_inputs || !x->is_output) return set;
    if (f == OT_FORM_UNROLLED) return set | 1u << OT_REASSEMBLE_CONCAT;
    if (f == OT_FORM_SCAN) return set | 1u << OT_REASSEMBLE_LOOP | 1u << OT_REASSEMBLE_RESHAPE;
    if (sequence) return set | 1u << OT_REASSEMBLE_SEQUENCE;
    return set | stacked |
           (f == OT_FORM_PEELED || f == OT_FORM_LOOP || f == OT_FORM_PRESCAN
                ? 1u << OT_REASSEMBLE_CONCAT
                : 0);
}

ot_why ot_reassemble_refusal(const ot_graph *g, const ot_region *r)
{
    for (uint32_t v = 0; v < r->n_values; v++) {
        const ot_rvalue *x = &r->values[v];
        ot_reassemble s = v < r->n_inputs ? OT_REASSEMBLE_SLICE : OT_REASSEMBLE_CONCAT;
        bool cut = false;
        for (uint32_t d = 0; d < r->n_dims; d++) cut = cut || x->axis[d] >= 0;
        if (cut && (v < r->n_inputs || x->is_output) &&
            !ot_reassemble_takes(s, g->values[x->value].dtype, g->model->opset))
            return ROWS[s].refusal;
    }
    return OT_WHY_NONE;
}

bool ot_reassemble_legal(const ot_form_tiles *w, ot_form f, bool sequence, ot_why *why)
{
    for (uint32_t v = 0; v < w->r->n_values; v++) {
        ot_dtype type = w->g->values[w->r->values[v].value].dtype;
        if (age_of(type) == OLD) continue;
        unsigned set = passes(w, f, sequence, v);
        for (int s = 0; s < OT_REASSEMBLE_COUNT; s++)
            if ((set >> s & 1u) != 0 &&
                !ot_reassemble_takes((ot_reassemble)s, type, w->g->model->opset)) {
                *why = ROWS[s].refusal;
                return false;
            }
    }
    return true;
}
