/* Stage tk/access/: what the addresses of a kernel cost on a target, and what would cost less.
 *
 *   kernel --kacc_walk.c--> walks: an affine address for each operand of each statement
 *   --kacc_count.c--> findings --kacc_pad.c--> padded kernel
 *
 *   shared memory   neighbouring lanes in one bank, but in different words, wait for each other:
 *                   wavefronts, least 1 for each 128 bytes
 *   gm, by lanes    the sectors that the lanes of one access touch; least: those that their bytes
 *                   would fill
 *   gm, by DMA      the granules that the rows of a window touch; least: those that the window
 *                   would fill in one piece
 *
 * Lanes take the elements of a window or of an operation's result one after the other. Of
 * reductions, products, convolutions and pools each makes an element, and goes through what is
 * summed up in step with its neighbours.
 */
#ifndef OT_TK_ACCESS_KERNEL_ACCESS_H
#define OT_TK_ACCESS_KERNEL_ACCESS_H

#include "tk/language/kernel.h"
#include "machine/tk_machine.h"

typedef enum ot_kaccess_kind {
    OT_KACCESS_BANKS,
    OT_KACCESS_SECTORS,
    OT_KACCESS_GRANULES
} ot_kaccess_kind;
const char *ot_kaccess_kind_name(ot_kaccess_kind k); /* "bank-conflict", "uncoalesced", "granule" */
const char *ot_kaccess_unit_name(ot_kaccess_kind k); /* "wavefronts", "sectors", "granules" */

/* An operand that takes more than it would have to. */
typedef struct ot_kaccess_finding {
    ot_kaccess_kind kind;
    uint32_t stmt, value; /* of the kernel */
    uint32_t line, col;   /* of the statement */
    const char *name;     /* of the value; in the kernel's memory or the report's */
    bool write;
    int64_t least, taken; /* units in all iterations; of loops of unknown length in one */
    /* GRANULES: of those too many, how many because rows begin inside of a granule */
    int64_t off;
    int64_t unit;       /* bytes of one */
    bool is_part;       /* too many to count: scaled up from the first 2^20 */
    double seconds;     /* that the difference takes, on the whole target */
    const char *advice; /* NULL: none */
} ot_kaccess_finding;

/* A shared buffer whose rows are to be longer. */
typedef struct ot_kaccess_pad {
    uint32_t value;
    int64_t elements;      /* more at the end of its last axis */
    int64_t before, after; /* wavefronts of all accesses of the buffer */
} ot_kaccess_pad;

typedef struct ot_kaccess_report {
    const ot_kaccess_finding *findings; /* [n_findings] by statement */
    uint32_t n_findings;
    const ot_kaccess_pad *pads; /* [n_pads] by value */
    uint32_t n_pads;
    /* operands looked at; those of operations that lanes walk in no affine way */
    uint32_t n_walks, n_skipped;
} ot_kaccess_report;

/* Requires a verified kernel. Everything is in `a`, but names, which are the kernel's. Fails:
 * OT_E_NOMEM. */
ot_status ot_kaccess_analyse(const ot_kernel *k, const ot_tk_machine *t, ot_arena *a, ot_diag *d,
                             ot_kaccess_report *out) OT_MUST_USE;
/* The kernel with these pads: `alloc a: 32x32` becomes `alloc a.pad: 32x33` and `subview a =
 * a.pad[0:32, 0:32]`. Requires pads of ot_kaccess_analyse for this kernel; the kernel is to be
 * verified and planned anew. Fails: OT_E_NOMEM. */
ot_status ot_kaccess_apply(ot_kernel *k, const ot_kaccess_pad *pads, uint32_t n,
                           ot_diag *d) OT_MUST_USE;

#endif
