/* Quirks of runtimes and checkers that tilings must not touch: one table, quirks.def, tagged by
 * whom it concerns.
 *
 * Who asks says for whom a model is made: a runtime's bit, or OT_BY_ALL where the answer is kept
 * for whoever runs it later. The slice relation is asked before a runtime is known, so it
 * answers for all.
 */
#ifndef OT_OPS_QUIRKS_H
#define OT_OPS_QUIRKS_H

#include "ops/reasons.h"

/* Runtimes by family, and onnx.checker, which reads every model. */
#define OT_BY_ONNXRUNTIME 1u
#define OT_BY_ENGINE      2u
#define OT_BY_DEVICE      4u
#define OT_BY_CHECKER     8u
#define OT_BY_OPENVINO    16u
#define OT_BY_ALL         31u

typedef enum ot_quirk {
#define QUIRK(id, by, ops, why, seen) OT_QUIRK_##id,
#include "ops/quirks.def"
#undef QUIRK
    OT_QUIRK_COUNT
} ot_quirk;

typedef struct ot_quirk_row {
    const char *name;
    uint32_t by;      /* bit set of OT_BY_ */
    const char *ops;  /* names with spaces between */
    ot_why why;       /* of refusals */
    const char *seen; /* how it shows */
} ot_quirk_row;

extern const ot_quirk_row ot_quirk_rows[OT_QUIRK_COUNT];
/* Whether some of `by` have the quirk. */
bool ot_quirk_concerns(ot_quirk q, uint32_t by);
/* The same, and an operator of that name is one of its. */
bool ot_quirk_hits(ot_quirk q, uint32_t by, const char *op_type);

#endif
