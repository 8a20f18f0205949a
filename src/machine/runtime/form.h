/* The forms that a tiled region can be written in, and what each asks of the runtime that runs it.
 */
#ifndef OT_MACHINE_RUNTIME_FORM_H
#define OT_MACHINE_RUNTIME_FORM_H

#include <stdbool.h>

/* How the tiles are expressed in plain ONNX (docs/design-notes.md). */
typedef enum ot_form {
    OT_FORM_NONE = 0,
    /* one cut axis outermost in memory for all inputs and outputs, no halo, even tiles: Scan
     * inputs and outputs are slices of the outer tensors, nothing is copied */
    OT_FORM_SCAN,
    OT_FORM_UNROLLED, /* every tile written out: Slice ... Concat, exact pads */
    OT_FORM_PEELED,   /* interior tiles in one Loop/Scan body, the others written out; Concat */
    /* alike interior tiles in one Loop with scan outputs, border tiles written out: what most
     * runtimes take */
    OT_FORM_LOOP,
    /* windows of the interior tiles gathered ahead, a Scan over them that captures nothing,
     * border tiles written out */
    OT_FORM_PRESCAN,
    /* Loops that walk along one axis and carry the last rows of each value: nothing is computed
     * twice (stream.h) */
    OT_FORM_STREAM,
    /* the engine's operators (domain onnx_tile): a While per class of alike tiles, pieces written
     * in place */
    OT_FORM_WHILE
} ot_form;
#define OT_FORM_COUNT (OT_FORM_WHILE + 1)
/* "scan", "unrolled", "loop-peeled", "loop", "prescan", "stream", "while" */
const char *ot_form_name(ot_form f);

/* Whether bodies of form f cut windows that move with the iteration. */
static inline bool ot_form_gathers(ot_form f) { return f == OT_FORM_PEELED || f == OT_FORM_LOOP; }

/* What a written region asks of who runs it, besides the region's own operators and Slice,
 * Gather, Concat, Reshape and Transpose: bits of a set. What a runtime lacks, or gets wrong, is
 * the same set in its table (`cannot` of struct ot_runtime). */
/* Loop, with a trip count and a condition; its body captures values */
#define OT_NEEDS_LOOP 1u
/* sequences that a Loop carries and several Loops hand on, ConcatFromSequence */
#define OT_NEEDS_SEQUENCE     2u
#define OT_NEEDS_SCAN         4u /* Scan */
#define OT_NEEDS_SCAN_CAPTURE 8u /* a Scan whose body reads values of the enclosing graph */
/* a Scan that stacks its results along another axis than the first */
#define OT_NEEDS_SCAN_AXES 16u
/* Gather by a list of indices that differs from iteration to iteration (before opset 10) */
#define OT_NEEDS_MOVING_GATHER 32u
#define OT_NEEDS_GROUP_NORM    64u /* a body with GroupNormalization */
/* an AveragePool that counts padding, in a tile that has more of it behind than in front */
#define OT_NEEDS_UNEVEN_POOL 128u
/* an InstanceNormalization of large maps that are joined from tiles, in other layouts than
 * untiled */
#define OT_NEEDS_LONG_SUM 256u
#define OT_NEEDS_ALL      511u

#endif
