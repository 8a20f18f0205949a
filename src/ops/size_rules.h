/* Terms of one operator's results (private to size_rules.c and size_contents.c). */
#ifndef OT_OPS_SIZE_RULES_H
#define OT_OPS_SIZE_RULES_H

#include "size_terms.h"

#define OT_SIZE_CONTENT_MAX 64

typedef struct ot_sizing {
    const ot_graph *g;
    ot_arena *a;
    ot_size_table *t;
    bool nomem;
} ot_sizing;

/* Terms of dims of operand k; NULL: omitted, or of unknown rank. */
const ot_term *ot_sizing_dims(const ot_sizing *x, const ot_node *n, uint32_t k);
/* Terms of the contents of operand k, *count of them; NULL: omitted, or not known. */
const ot_term *ot_sizing_content(const ot_sizing *x, const ot_node *n, uint32_t k, uint32_t *count);
/* Contents of the first result of n, as far as it is arithmetic on shapes, once its dims are set.
 */
void ot_sizing_fill_content(ot_sizing *x, const ot_node *n);

#endif
