/* Options that would help, tried before they are named (private to this folder). */
#ifndef OT_APP_CURES_H
#define OT_APP_CURES_H

#include "pipeline.h"

/* Before shapes are inferred: keep a copy of the model as it was loaded, and the options, where
 * cures are to be tried. Fails: OT_E_NOMEM. */
ot_status ot_run_keep_untouched(ot_run *r) OT_MUST_USE;
/* A pass: plan the model with options that may lift what is in the way, and add those that help to
 * its facts. Requires the plan and complete facts. Fails: OT_E_NOMEM. Deterministic, bounded. */
ot_status ot_run_try_cures(ot_run *r) OT_MUST_USE;
/* pipeline.c: infer shapes and plan, nothing else. Requires load. Fails as ot_run_tile does. */
ot_status ot_run_plan(ot_run *r) OT_MUST_USE;

#endif
