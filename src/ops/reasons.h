/* Why something is not tiled: ids in place of sentences, which are in reasons.def and nowhere else.
 *
 *   OT_WHY_SOFTMAX --name--> "softmax" (reports, JSON)  --sentence--> "Softmax needs its whole
 *                                                       axis"  --lift--> what helps
 *
 *
 *
 */
#ifndef OT_OPS_REASONS_H
#define OT_OPS_REASONS_H

#include "base/base.h"

typedef enum ot_why {
    OT_WHY_NONE = 0, /* nothing is in the way */
#define REASON(id, name, sentence, lift) OT_WHY_##id,
#include "reasons.def"
    OT_WHYS /* how many there are, this and OT_WHY_NONE included */
} ot_why;

/* A reason with what it counts: a value, so that it outlives graph and plan. */
typedef struct ot_reason {
    ot_why why;
    double seconds; /* of rows with {ms}; else 0 */
} ot_reason;

/* All static, "" for OT_WHY_NONE. The name is what scripts see: "softmax". The sentence is as in
 * the table: a {ms} is left. */
const char *ot_reason_name(ot_why why);
const char *ot_reason_sentence(ot_why why);
/* What would lift it; "" when nothing would. forced: every legal tiling is taken already. */
const char *ot_reason_lift(ot_why why, bool forced);
/* The sentence with its number, static or in a; NULL when memory ran out. */
const char *ot_reason_text(ot_arena *a, ot_reason r);
/* The reason of that name; OT_WHY_NONE when there is none. */
ot_why ot_reason_find(const char *name);

#endif
