/* Runs in which free dimensions stay free (private to this folder). docs/dynamic-shapes.md. */
#ifndef OT_APP_DYNAMIC_RUN_H
#define OT_APP_DYNAMIC_RUN_H

#include "pipeline.h"

/* Where nobody says a word of sizes, free dimensions stay free, if a size can be found to plan
 * for: options.keep_dynamic, a design. Requires was_fixed. Fails: OT_E_NOMEM. */
ot_status ot_run_choose_design(ot_run *r) OT_MUST_USE;
/* With keep_dynamic: the model's shapes as far as they are known, and its copies at the design
 * size and others. Fails: OT_E_USAGE (what does not go together; an input without a size), as
 * ot_infer_shapes does. */
ot_status ot_run_bind_design(ot_run *r) OT_MUST_USE;
/* The copies anew: the model has changed, in types alone. Fails: as that. */
ot_status ot_run_bind_again(ot_run *r) OT_MUST_USE;
/* Of such a run: half precision becomes float32 (options.narrow), without the casts that are
 * left with nothing to do: nobody knows the shapes of what they copy. Requires a target. Fails:
 * OT_E_NOMEM. */
ot_status ot_run_widen_dynamic(ot_run *r) OT_MUST_USE;
/* After that, and planned: the untiled model's figures are those of the file's, in half
 * precision; whether the plan takes enough less than that. */
void ot_run_tell_untiled(ot_run *r);
bool ot_run_wide_pays(const ot_run *r);
/* Of such a run: its plan is replaced where the model with its normalisations taken apart has a
 * better one; model and copies are then taken apart, too. Not for a range: their parts have no
 * bound. Fails: OT_E_NOMEM. */
ot_status ot_run_select_decomposed(ot_run *r) OT_MUST_USE;

/* Before a size is bound: keep a copy of the model as it is, where ot_run_select_dynamic may
 * want it. Fails: OT_E_NOMEM. */
ot_status ot_run_keep_pristine(ot_run *r) OT_MUST_USE;
/* A run of a size that was given, with its plan: where the model takes less when it does not
 * know the size, its free dimensions stay free. ONNX Runtime keeps a buffer of known shape until
 * another of that shape has been in it, and knows none of what is computed of a free dimension.
 * Fails: OT_E_NOMEM. */
ot_status ot_run_select_dynamic(ot_run *r) OT_MUST_USE;

#endif
