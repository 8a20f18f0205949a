/* Inputs of a part that have a value unless the caller gives one. Private to src/ort. */
#ifndef OT_ORT_EP_DEFAULTS_H
#define OT_ORT_EP_DEFAULTS_H

#include "ep_graph.h"

/* What tells contents apart. */
typedef struct ep_print {
    uint64_t lane[4];
    size_t bytes;
} ep_print;

typedef struct ep_default {
    bool there; /* the input has one */
    ep_print print;
} ep_default;

/* Defaults of the inputs called names[n] in graph g; *out, [n], is the caller's to free, *count of
 * them are there. */
ort_status *ep_defaults_find(const ep_tables *t, const ort_graph *g, char *const *names, size_t n,
                             ep_default **out, size_t *count);
/* Has the value that contents, whosever memory it is? */
ort_status *ep_default_is(const ort_api *api, const ep_default *d, const ort_value *v, bool *out);

#endif
