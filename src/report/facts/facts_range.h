/* Sizes as they are told: the design, a range (private to this folder, and the XML report). */
#ifndef OT_REPORT_FACTS_FACTS_RANGE_H
#define OT_REPORT_FACTS_FACTS_RANGE_H

#include "base/json.h"
#include "facts.h"
#include "select/bounds/size_bounds.h"

/* results_json.c: members "design", "design_guessed" and "stays_dynamic" of the open object; none
 * where all sizes are fixed. */
void ot_design_put(const ot_facts *f, ot_json *j);

/* Two lines, one for each form of the model. */
void ot_bounds_print(const ot_bounds_facts *r, FILE *f);
/* Member "range" of the open object. */
void ot_bounds_put(const ot_bounds_facts *r, ot_json *j);

#endif
