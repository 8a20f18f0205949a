/* What the reference implementations of control flow, sequences and optionals share.
 *
 * Arrays that an implementation holds between two runs of a subgraph are references of its own,
 * released when it is done, whether it failed or not. ot_call_body only borrows what it is given,
 * and hands over what it returns.
 */
#ifndef OT_ENGINE_REF_REF_CONTROL_H
#define OT_ENGINE_REF_REF_CONTROL_H

#include "ref_move.h"

/* Release all n arrays. */
void ot_ctl_release(ot_nd *list, uint32_t n);
/* A further reference to a, or a copy when no block owns its memory: sequences outlive the
 * arena's values. */
ot_status ot_ctl_own(ot_call *c, const ot_nd *a, ot_nd *out) OT_MUST_USE;
/* Is a single bool (or integer) true? `what` names it in the message. */
ot_status ot_ctl_truth(ot_call *c, const ot_nd *a, const char *what, bool *out) OT_MUST_USE;
/* Type and shape (unknown dimensions 0, with one more dimension of size 0 in front) that output
 * k of a subgraph declares: what a scan output is when the subgraph never ran. */
ot_status ot_ctl_empty_scan(ot_call *c, const char *attr, uint32_t k, ot_dtype *t, uint32_t *rank,
                            int64_t *dims) OT_MUST_USE;
/* Slice `at` of a dense array, without its first dimension: the same memory. Not a reference of
 * its own. */
ot_nd ot_ctl_row(const ot_nd *a, int64_t at);

/* ref_control.c */
ot_status ot_ctl_if(ot_call *c);
ot_status ot_ctl_loop(ot_call *c);
/* ref_control_scan.c */
ot_status ot_ctl_scan(ot_call *c);
/* ref_control_seq.c */
ot_status ot_ctl_sequence_construct(ot_call *c);
ot_status ot_ctl_sequence_empty(ot_call *c);
ot_status ot_ctl_sequence_insert(ot_call *c);
ot_status ot_ctl_sequence_at(ot_call *c);
ot_status ot_ctl_sequence_erase(ot_call *c);
ot_status ot_ctl_sequence_length(ot_call *c);
ot_status ot_ctl_sequence_map(ot_call *c);
ot_status ot_ctl_split_to_sequence(ot_call *c);
ot_status ot_ctl_concat_from_sequence(ot_call *c);
ot_status ot_ctl_optional(ot_call *c);
ot_status ot_ctl_optional_get_element(ot_call *c);
ot_status ot_ctl_optional_has_element(ot_call *c);

#endif
