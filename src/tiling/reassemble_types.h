/* Which element types the operators take that a form writes around and between a region's own
 * (src/transform), by opset.
 *
 *   cut out        Slice, Gather       stacked    Loop, Scan, Reshape, Transpose
 *   put together   Concat              collected  SequenceEmpty, SequenceInsert, ConcatFromSequence
 *
 * The standard's fifteen oldest types (dtype 1 to 15) are taken by all of them at every opset;
 * younger ones came late, or never: there is no Slice or Concat of float8 numbers.
 */
#ifndef OT_TILING_REASSEMBLE_TYPES_H
#define OT_TILING_REASSEMBLE_TYPES_H

#include "tiling/forms.h"

typedef enum ot_reassemble {
    OT_REASSEMBLE_SLICE, /* also Gather */
    OT_REASSEMBLE_CONCAT,
    OT_REASSEMBLE_RESHAPE,
    OT_REASSEMBLE_TRANSPOSE,
    OT_REASSEMBLE_LOOP,     /* values that a Loop carries or stacks; Scan, likewise */
    OT_REASSEMBLE_SEQUENCE, /* all three */
    OT_REASSEMBLE_COUNT
} ot_reassemble;

/* Whether the operator takes elements of that type at that opset. OT_DT_UNKNOWN: no. */
bool ot_reassemble_takes(ot_reassemble s, ot_dtype type, int64_t opset);
/* Whether tiles of region r can be taken and put together in form f, of all values that this
 * moves. w: windows are prepared. If not, *why says which. `sequence`: pieces are collected in
 * sequences. */
bool ot_reassemble_legal(const ot_form_tiles *w, ot_form f, bool sequence, ot_why *why);
/* Why no tiles of r can be written out at all for the types that enter and leave it;
 * OT_WHY_NONE: they can. */
ot_why ot_reassemble_refusal(const ot_graph *g, const ot_region *r);

#endif
