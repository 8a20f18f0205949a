/* Weights of convolutions in the layouts that oneDNN's implementations take (private to
 * src/engine/cpu/conv). */
#ifndef OT_ENGINE_CPU_CONV_DNNL_WEIGHTS_H
#define OT_ENGINE_CPU_CONV_DNNL_WEIGHTS_H

#include "conv.h"
#include "engine/core/dnnl_util.h"

/* The form of k's weights in the model's layout; any: in the one that oneDNN chooses. */
bool lw_weights_md(const lw_conv *k, dnnl_memory_desc_t *md, bool any);
/* Memory of packed weights: found, or kept from now on. The model's are packed when all schedules
 * are made, what was computed from them at once. */
ot_status lw_weights_pack(lw_pass *l, const lw_conv *k, const dnnl_memory_desc_t *md, void **out);

#endif
