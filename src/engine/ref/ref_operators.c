/* Which reference implementation computes an operator.
 *
 * Each family of reference implementations exports a table by operator, and perhaps one by name for
 * operators outside ops.def. The tables are searched front to back: it happens once a node, when
 * a session is made.
 */
#include "ref_operators.h"

ot_op_fn ot_op_reference(ot_op op)
{
    const ot_op_entry *const tables[] = {ot_ops_math,    ot_ops_reduce, ot_ops_window,
                                         ot_ops_product, ot_ops_move,   ot_ops_control};
    if (op == OT_OP_OPAQUE) return NULL;
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        for (const ot_op_entry *e = tables[k]; e->op != OT_OP_OPAQUE; e++)
            if (e->op == op) return e->run;
    return NULL;
}

static ot_op_fn find_named(const char *domain, const char *op_type)
{
    const ot_op_named *const tables[] = {ot_ops_window_named, ot_ops_product_named,
                                         ot_ops_move_named, ot_ops_control_named};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        for (const ot_op_named *e = tables[k]; e->op_type; e++)
            if (strcmp(e->op_type, op_type) == 0 && strcmp(e->domain, domain) == 0) return e->run;
    return NULL;
}

/* Operators of opsets too old for the passes are opaque to them; the implementations know all
 * versions. */
ot_op_fn ot_op_reference_of(const ot_node *n)
{
    ot_op op = n->op != OT_OP_OPAQUE || n->domain[0] ? n->op : ot_op_find(n->op_type);
    ot_op_fn run = ot_op_reference(op);
    return run ? run : find_named(n->domain, n->op_type);
}
