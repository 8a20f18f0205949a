/* Constants of a model in memory that stay in memory of the caller's. */
#ifndef OT_API_LENT_H
#define OT_API_LENT_H

#include "onnx_tile.h"

#include "app/pipeline.h"

/* A model in memory whose external data is `lent`. source->lent must be freed with free, which
 * loading does not need any more. Fails: OT_E_USAGE, OT_E_NOMEM. */
ot_status ot_lent_source(const void *bytes, size_t n, const onnx_tile_lent *lent, size_t n_lent,
                         ot_diag *d, ot_source *source) OT_MUST_USE;

#endif
