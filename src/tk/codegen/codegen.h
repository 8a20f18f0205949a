/* Stage tk/codegen/: a planned kernel becomes a C program of a device: OpenCL C or CUDA C.
 *
 *   kernel + plan --kgen_walk.c--> loops, branches, what is carried  kgen_place.c: where an operand
 *                                                                    is, as text
 *        a statement ------------> a loop nest over its elements     kgen_nest.c: who does which
 *                                                                    element
 *                                  that a work-group's items share   kgen_order.c: barriers between
 *                                                                    what depends
 *        kgen_dialect.c: the words of the language
 *
 * A work-group runs the whole kernel: the memories of the plan lie in one local arena of the
 * group, as far as it goes, and else in the group's part of one global arena. Where the kernel
 * is one parallel loop of which the iterations share nothing, its iterations are spread over the
 * groups. Nothing is shared with the interpreter (tk/interpreter) but the language.
 */
#ifndef OT_TK_CODEGEN_CODEGEN_H
#define OT_TK_CODEGEN_CODEGEN_H

#include "tk/planmem/planmem.h"

typedef enum ot_kg_language { OT_KG_OPENCL, OT_KG_CUDA } ot_kg_language;

#define OT_KG_ITEMS_MAX     1024
#define OT_KG_ITEMS_DEFAULT 64
#define OT_KG_LOCAL_DEFAULT (48 << 10) /* what every GPU has for a group without being asked */

typedef struct ot_kg_options {
    ot_kg_language language;
    uint32_t items;      /* work items of a group: 1 to OT_KG_ITEMS_MAX */
    int64_t local_bytes; /* of the local arena at most */
} ot_kg_options;

typedef struct ot_kg_code {
    ot_arena *arena;  /* owns everything, itself included */
    const char *text; /* [n], 0 behind it */
    size_t n;
    const char *entry; /* name of the kernel function */
    /* [n_params] value ids: the first arguments, in order; then the global arena */
    const uint32_t *params;
    uint32_t n_params;
    int64_t local_bytes; /* of the local arena; in CUDA C the launch gives them */
    int64_t slow_bytes;  /* of the global arena, for each group */
    int64_t n_groups;    /* how many have something to do; 1: the kernel is not spread */
    uint32_t items;
    bool needs_f64;
} ot_kg_code;

/* The program of a verified kernel whose buffers lie where p says. Fails with OT_E_INPUT,
 * "path:line:col: ... [rule]": an operation that is not known or does not fit its operands, an
 * unknown trip count, a view that cannot be addressed. *out is to be freed with ot_kg_free. What
 * only happens when it runs (a race, a read of what was not written) is for the interpreter to
 * find. */
ot_status ot_kg_make(const ot_kernel *k, const char *path, const ot_mem_plan *p,
                     const ot_kg_options *o, ot_diag *d, ot_kg_code **out) OT_MUST_USE;
void ot_kg_free(ot_kg_code *c); /* accepts NULL */

#endif
