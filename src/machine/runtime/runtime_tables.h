/* Parts that tables of several runtimes share (private to this folder). */
#ifndef OT_MACHINE_RUNTIME_RUNTIME_TABLES_H
#define OT_MACHINE_RUNTIME_RUNTIME_TABLES_H

#include "runtime.h"

#include "ops/quirks.h"

#define OT_FORM_BIT(f) (1u << (f))
#define OT_FORMS_STANDARD \
    (OT_FORM_BIT(OT_FORM_SCAN) | OT_FORM_BIT(OT_FORM_UNROLLED) | OT_FORM_BIT(OT_FORM_PEELED))
/* What the forms take in standard ONNX, whoever runs it. */
extern const ot_form_price ot_standard_prices[OT_FORM_COUNT];
/* Of runtimes that do not copy tiles. */
extern const ot_form_price ot_no_prices[OT_FORM_COUNT];
/* ONNX Runtime on a CPU, and what is taken to be like it. */
extern const ot_overheads ot_onnxruntime_overheads;

/* Memory of ONNX Runtime's implementations on a CPU. Operators that write over an input, and those
 * that hold more than operands and results (scripts/in_place_truth.py). */
#define OT_ONNXRUNTIME_OVERWRITERS 16
#define OT_ONNXRUNTIME_SCRATCH     7
extern const ot_op ot_onnxruntime_overwriters[OT_ONNXRUNTIME_OVERWRITERS];
extern const ot_op_memory ot_onnxruntime_scratch[OT_ONNXRUNTIME_SCRATCH];

/* Where an arena grows by chunks (ONNX Runtime): tiled models are predicted 4 % too low in the
 * median, a tenth in bad cases. Half precision: casts at the borders of bodies, of which a third
 * more was measured than is predicted. 8-bit integers: what is merged of them is predicted 57 %
 * off in the median, and both ways. */
#define OT_CHUNK_MARGINS                                                         \
    {                                                                            \
        .wins = 0.88, .wins_norms = 0.88, .wins_half = 0.70, .wins_bytes = 0.65, \
        .wins_decomposed = 0.88                                                  \
    }
/* Where one block is placed before the run: predicted within 5 %; with normalisations, untiled
 * models were predicted 20 % too high, tiled ones 5 % too low. The others as above, for want of
 * a measurement. */
#define OT_BLOCK_MARGINS                                                         \
    {                                                                            \
        .wins = 0.95, .wins_norms = 0.80, .wins_half = 0.70, .wins_bytes = 0.65, \
        .wins_decomposed = 0.88                                                  \
    }

#endif
