/* Which kernel computes a node. Asked once a node, when a session is made.
 *
 * Each room of kernels has a table by operator and perhaps one by domain and name, for operators
 * that ops.def does not have; they are searched front to back. Fast kernels look at what they
 * are given and leave to the reference what they cannot do. Fused steps (lower.h) come on top.
 *
 */
#include "engine/cpu/conv/fast_conv.h"
#include "engine/cpu/int8/int8_product.h"
#include "engine/cpu/move/fast_move.h"
#include "engine/cpu/product/fast_product.h"
#include "engine/cpu/rows/rows.h"

static ot_op_fn fast_named(const ot_node *n)
{
    const ot_op_named *const tables[] = {ot_fast_rows_named, ot_fast_product_named,
                                         ot_fast_int8_named};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        for (const ot_op_named *e = tables[k]; e->op_type; e++)
            if (strcmp(e->op_type, n->op_type) == 0 && strcmp(e->domain, n->domain) == 0)
                return e->run;
    return NULL;
}

ot_op_fn ot_op_fast(const ot_node *n)
{
    const ot_op_entry *const tables[] = {ot_fast_rows, ot_fast_product, ot_fast_window,
                                         ot_fast_int8, ot_fast_move};
    if (n->op == OT_OP_OPAQUE) return fast_named(n);
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        for (const ot_op_entry *e = tables[k]; e->op != OT_OP_OPAQUE; e++)
            if (e->op == n->op) return e->run;
    return NULL;
}

ot_op_fn ot_op_choose(const ot_node *n, bool reference)
{
    ot_op_fn run = reference ? NULL : ot_op_fast(n);
    if (!run) run = ot_op_reference_of(n);
    return run ? run : fast_named(n);
}
