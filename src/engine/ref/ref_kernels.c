/* Which reference kernel computes an operator.
 *
 * Each family of reference kernels exports a table by operator, and perhaps one by name for
 * operators outside ops.def. The tables are searched front to back: it happens once a node, when
 * a session is made.
 *
 */
#include "ref_kernels.h"

ot_kernel_fn ot_kernel_reference(ot_op op)
{
    const ot_kernel_entry *const tables[] = {ot_kernels_math,   ot_kernels_reduce,
                                             ot_kernels_window, ot_kernels_product,
                                             ot_kernels_move,   ot_kernels_control};
    if (op == OT_OP_OPAQUE) return NULL;
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        for (const ot_kernel_entry *e = tables[k]; e->op != OT_OP_OPAQUE; e++)
            if (e->op == op) return e->run;
    return NULL;
}

static ot_kernel_fn find_named(const char *domain, const char *op_type)
{
    const ot_kernel_named *const tables[] = {ot_kernels_window_named, ot_kernels_product_named,
                                             ot_kernels_move_named, ot_kernels_control_named};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        for (const ot_kernel_named *e = tables[k]; e->op_type; e++)
            if (strcmp(e->op_type, op_type) == 0 && strcmp(e->domain, domain) == 0) return e->run;
    return NULL;
}

/* Operators of opsets too old for the passes are opaque to them; the kernels know all versions. */
ot_kernel_fn ot_kernel_reference_of(const ot_node *n)
{
    ot_op op = n->op != OT_OP_OPAQUE || n->domain[0] ? n->op : ot_op_find(n->op_type);
    ot_kernel_fn run = ot_kernel_reference(op);
    return run ? run : find_named(n->domain, n->op_type);
}
