/* Which nodes have a faster kernel than the reference. Asked once a node, when a session is made, unless it is to use references.
 *
 * Fast kernels look at what they are given and leave to the reference what they cannot do. Fused steps (lower.h) come on top.
 */
#include "engine/move/fast_move.h"
#include "engine/product/fast_product.h"
#include "engine/rows/fast_rows.h"

ot_kernel_fn ot_kernel_fast_named(const ot_node *n)
{
    const ot_kernel_named *const tables[] = {ot_fast_rows_named, ot_fast_product_named};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        for (const ot_kernel_named *e = tables[k]; e->op_type; e++)
            if (strcmp(e->op_type, n->op_type) == 0 && strcmp(e->domain, n->domain) == 0) return e->run;
    return NULL;
}

ot_kernel_fn ot_kernel_fast(const ot_graph *g, const ot_node *n)
{
    const ot_kernel_entry *const tables[] = {ot_fast_rows, ot_fast_product, ot_fast_move};
    (void)g;
    if (n->op == OT_OP_OPAQUE) return ot_kernel_fast_named(n);
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        for (const ot_kernel_entry *e = tables[k]; e->op != OT_OP_OPAQUE; e++)
            if (e->op == n->op) return e->run;
    return NULL;
}
