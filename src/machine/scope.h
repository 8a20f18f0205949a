/* The memories that a machine may have, as tile kernels and target files name them. */
#ifndef OT_MACHINE_SCOPE_H
#define OT_MACHINE_SCOPE_H

#include "base/base.h"

/* name in text, description */
#define OT_SCOPES(X)                                                       \
    X(UB, "ub", "unified buffer of the vector unit")                       \
    X(L1, "l1", "feature maps of the cube unit")                           \
    X(L0A, "l0a", "left matrix")                                           \
    X(L0B, "l0b", "right matrix")                                          \
    X(L0C, "l0c", "matrix accumulator")                                    \
    X(BT, "bt", "bias table")                                              \
    X(FP, "fp", "fixpipe parameters")                                      \
    X(L2, "l2", "fast memory that tiles live in: a cache or a scratchpad") \
    X(SHARED, "shared", "shared memory of a GPU block")                    \
    X(GM, "gm", "global (slow) memory: parameters and workspace")          \
    X(LOCAL, "local", "private memory of a thread")                        \
    X(FRAGMENT, "fragment", "registers of all threads as one tile")        \
    X(VAR, "var", "variables of one element")                              \
    X(BARRIER, "barrier", "barriers that pipes arrive at and wait for")    \
    X(TMEM, "tmem", "tensor memory: 128 lanes by 512 columns of 32 bits")  \
    X(REDUCER, "reducer", "partial results of reductions, a thread each")  \
    X(DESCRIPTOR, "descriptor", "descriptors of matrix operands")          \
    X(HOST, "host", "memory of the host: parameters only")                 \
    X(AUTO, "auto", "the planner chooses: ot_mem_choose_scopes")
typedef enum ot_scope {
#define X(id, name, text) OT_SCOPE_##id,
    OT_SCOPES(X)
#undef X
        OT_SCOPE_COUNT
} ot_scope;
const char *ot_scope_name(ot_scope s);
/* false when there is no such scope. */
bool ot_scope_parse(const char *name, ot_scope *out);

#endif
