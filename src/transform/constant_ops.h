/* What operators that compute constants do, for whoever computes them beforehand. */
#ifndef OT_TRANSFORM_CONSTANT_OPS_H
#define OT_TRANSFORM_CONSTANT_OPS_H

#include "ops/ops.h"

enum {
    /* an element of the result is made of the elements at its place, so of equal ones comes an
     * equal one */
    OT_CONSTANT_EACH = 1,
    /* moves elements, compares them, or rounds once: IEEE says what comes out */
    OT_CONSTANT_EXACT = 2,
    /* rounds in its own way: results of two runtimes differ in their last bits */
    OT_CONSTANT_ROUNDS = 4
};

/* A set of these; 0: another operator. */
unsigned ot_constant_op(ot_op op);

#endif
