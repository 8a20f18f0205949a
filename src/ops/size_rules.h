/* Terms of one operator's results (private to the files size_*.c). */
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

static inline ot_term ot_sizing_number(const ot_sizing *x, int64_t v)
{
    return ot_term_const(x->t->terms, v);
}

static inline int32_t ot_sizing_rank(const ot_sizing *x, const ot_node *n, uint32_t k)
{
    return x->g->values[n->in[k]].rank;
}

/* Attribute of integers; element k of it, or dflt. */
int64_t ot_sizing_item(const ot_node *n, const char *name, size_t k, int64_t dflt);
/* Terms of dims of operand k; NULL: omitted, or of unknown rank. */
const ot_term *ot_sizing_dims(const ot_sizing *x, const ot_node *n, uint32_t k);
/* Terms of the contents of operand k, *count of them; NULL: omitted, or not known. */
const ot_term *ot_sizing_content(const ot_sizing *x, const ot_node *n, uint32_t k, uint32_t *count);
/* Contents of the first result of n, as far as it is arithmetic on shapes, once its dims are set.
 */
void ot_sizing_fill_content(ot_sizing *x, const ot_node *n);

/* What slides windows over its data, and what moves blocks between channels and rows
 * (size_windows.c): out [rank], terms of the first result's dims; those not known stay. */
void ot_size_convolution(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank);
void ot_size_transposed(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank);
void ot_size_pool(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank);
void ot_size_global_pool(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank);
void ot_size_blocks(ot_sizing *x, const ot_node *n, ot_term *out);

#endif
