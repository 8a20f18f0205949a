/* A window as ot_access_window and as a rule that is read once (window_rule.c) have it: the same.
 */
#ifndef WINDOW_CHECK_H
#define WINDOW_CHECK_H

#include "ops/ops.h"

#define WINDOWS_MAX 16

static inline bool window_both(const ot_graph *g, const ot_node *n, uint32_t out_index,
                               uint32_t axis, ot_op_tile *t, ot_why *why)
{
    ot_win in[WINDOWS_MAX];
    ot_why says = OT_WHY_NONE;
    ot_op_tile by_rule = *t;
    const ot_window_rule rule = ot_window_rule_of(g, n, out_index, axis);
    by_rule.in = in;
    for (uint32_t k = 0; k < n->n_in && k < WINDOWS_MAX; k++) in[k] = t->in[k] = (ot_win){0, 0};
    const bool ok = ot_access_window(g, n, out_index, axis, t, why);
    if (n->n_in > WINDOWS_MAX) return ok;
    assert_int_equal(ot_window_by_rule(&rule, &by_rule, &says), ok);
    if (!ok) {
        assert_int_equal(says, *why);
        return false;
    }
    assert_true(by_rule.made.lo == t->made.lo && by_rule.made.hi == t->made.hi);
    assert_true(by_rule.pad_lo == t->pad_lo && by_rule.pad_hi == t->pad_hi);
    assert_true(by_rule.extra == t->extra);
    for (uint32_t k = 0; k < n->n_in; k++)
        assert_true(in[k].lo == t->in[k].lo && in[k].hi == t->in[k].hi);
    return true;
}

#endif
