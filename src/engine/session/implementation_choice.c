/* Which implementation computes a node. Asked once a node, when a session is made.
 *
 * Each folder of implementations has a table by operator and perhaps one by domain and name, for
 * operators that ops.def does not have; they are searched front to back. Fast implementations look
 * at what they are given and leave to the reference what they cannot do. Fused steps (lower.h) come
 * on top.
 */
#include "engine/cpu/conv/fast_conv.h"
#include "engine/cpu/int8/int8_product.h"
#include "engine/cpu/move/fast_move.h"
#include "engine/cpu/product/fast_product.h"
#include "engine/cpu/rows/rows.h"
#include "fusion/chain_rule.h"

static ot_op_fn fast_named(const ot_node *n)
{
    const ot_op_named *const tables[] = {ot_fast_rows_named, ot_fast_product_named,
                                         ot_fast_window_named, ot_fast_int8_named};
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

/* ---- what has no fast implementation ---- */

enum { FEW_ELEMENTS = 4096 };

/* Makes no more elements than anybody would wait for. */
static bool is_small(const ot_graph *g, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++) {
        int64_t count;
        if (n->out[k] == OT_NONE) continue;
        const ot_value *v = &g->values[n->out[k]];
        if (!ot_value_is_static(v) || v->rank < 0 ||
            !ot_product(v->dims, (uint32_t)v->rank, &count) || count > FEW_ELEMENTS)
            return false;
    }
    return true;
}

/* Fused steps of one node, views, and what only hands on what others made. */
static bool is_no_step(const ot_node *n)
{
    static const ot_op of_units[] = {
        OT_OP_AveragePool, OT_OP_QLinearConv, OT_OP_ConvInteger, OT_OP_Reshape, OT_OP_Flatten,
        OT_OP_Squeeze,     OT_OP_Unsqueeze,   OT_OP_Identity,    OT_OP_Dropout, OT_OP_Shape,
        OT_OP_Size,        OT_OP_Constant,    OT_OP_If,          OT_OP_Loop,    OT_OP_Scan};
    static const char *const handed_on[] = {"Sequence", "Optional", "ConcatFromSequence",
                                            "SplitToSequence"};
    for (size_t k = 0; k < sizeof of_units / sizeof *of_units; k++)
        if (n->op == of_units[k]) return true;
    for (size_t k = 0; k < sizeof handed_on / sizeof *handed_on; k++)
        if (strncmp(n->op_type, handed_on[k], strlen(handed_on[k])) == 0) return true;
    return false;
}

bool ot_op_is_slow(const ot_graph *g, const ot_node *n)
{
    return !ot_op_fast(n) && ot_op_reference_of(n) && !is_no_step(n) && !ot_chain_takes(g, n) &&
           !is_small(g, n);
}
