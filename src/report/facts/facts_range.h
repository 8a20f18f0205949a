/* The range of sizes as it is told (private to this folder, and the XML report). */
#ifndef OT_FACTS_RANGE_H
#define OT_FACTS_RANGE_H

#include "base/json.h"
#include "range/range.h"

/* Two lines, one for each form of the model. */
void ot_range_print(const ot_range_facts *r, FILE *f);
/* Member "range" of the open object. */
void ot_range_put(const ot_range_facts *r, ot_json *j);

#endif
