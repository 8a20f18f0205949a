/* Runs in which dimensions stay dynamic (private to this folder). docs/dynamic-shapes.md. */
#ifndef OT_APP_DYNAMIC_SHAPES_H
#define OT_APP_DYNAMIC_SHAPES_H

#include "pipeline.h"

/* Where nobody says a word of sizes, dimensions stay dynamic, if a size can be found to plan for:
 * options.keep_dynamic, a design. Requires was_fixed. Fails: OT_E_NOMEM. */
ot_status ot_run_choose_design(ot_run *r) OT_MUST_USE;
/* With keep_dynamic: the model's shapes as far as they are known. Fails: OT_E_USAGE (what does not
 * go together), as ot_infer_shapes does. */
ot_status ot_run_infer_dynamic(ot_run *r) OT_MUST_USE;
/* Before a size is bound: keep a copy of the model as it is (r->unbound), where it may be written
 * for every size all the same. Fails: OT_E_NOMEM. */
ot_status ot_run_keep_unbound(ot_run *r) OT_MUST_USE;

#endif
