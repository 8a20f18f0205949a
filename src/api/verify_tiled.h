/* Is the tiled model the same function? Both run in the native engine on the same random inputs. */
#ifndef OT_API_VERIFY_TILED_H
#define OT_API_VERIFY_TILED_H

#include "app/pipeline.h"

typedef enum ot_verify_mode {
    OT_VERIFY_NONE = 0,
    OT_VERIFY_OUTPUTS, /* the graph's outputs */
    OT_VERIFY_ALL      /* and the values inside that both graphs have */
} ot_verify_mode;

typedef struct ot_verify_facts {
    uint32_t n_values;    /* compared */
    uint32_t n_noisy;     /* of these, as far apart as the original from itself by rounding */
    double nmse, max_rel; /* the largest of all */
} ot_verify_facts;

#ifdef OT_ENGINE
/* The state of a model before it is tiled, for ot_verify_tiled: *bytes is malloc'ed, the caller
 * frees it. NULL when the model can be read from its file again. Requires ot_run_load, and no
 * more. */
ot_status ot_verify_keep(const ot_run *run, void **bytes, size_t *n) OT_MUST_USE;
/* Compare what run->model was (`bytes`, or its file) with what it would be written as, which is
 * read back for this. Requires ot_run_tile; leaves the run as it is. Fails: OT_E_SYSTEM naming a
 * value that differs and by how much; OT_E_INPUT naming node and operator when the engine cannot
 * run one of the two. */
ot_status ot_verify_tiled(const ot_run *run, const void *bytes, size_t n, ot_verify_mode mode,
                          ot_verify_facts *out) OT_MUST_USE;
#else
static inline ot_status ot_verify_keep(const ot_run *run, void **bytes, size_t *n)
{
    *bytes = NULL;
    *n = 0;
    return ot_fail(run->diag, OT_E_USAGE, "this build lacks the native engine");
}
static inline ot_status ot_verify_tiled(const ot_run *run, const void *bytes, size_t n,
                                        ot_verify_mode mode, ot_verify_facts *out)
{
    (void)bytes;
    (void)n;
    (void)mode;
    *out = (ot_verify_facts){0};
    return ot_fail(run->diag, OT_E_USAGE, "this build lacks the native engine");
}
#endif

#endif
