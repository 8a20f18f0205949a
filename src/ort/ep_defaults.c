/* Inputs with a default: weights, in files of some exporters. A run is handed either that or what
 * the caller gives, and is not told which. So contents are compared, by a hash of four times 64
 * bits that reads as fast as memory gives. */
#include "ep_defaults.h"

#include "ort_run.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static ep_print print_of(const void *data, size_t n)
{
    ep_print p = {{1, 2, 3, 4}, n};
    const uint8_t *at = data;
    uint64_t word[4];
    for (; n >= sizeof word; n -= sizeof word, at += sizeof word) {
        memcpy(word, at, sizeof word);
        for (int k = 0; k < 4; k++) p.lane[k] = mix(p.lane[k], word[k]);
    }
    memset(word, 0, sizeof word);
    if (n) memcpy(word, at, n);
    for (int k = 0; k < 4; k++) p.lane[k] = mix(p.lane[k], word[k]);
    return p;
}

static ort_status *print_value(const ort_api *api, const ort_value *v, ep_print *out)
{
    size_t n = 0;
    const void *data = NULL;
    TRY_ORT(CALL(api, ORT_TENSOR_BYTES, ort_tensor_size)(v, &n));
    TRY_ORT(CALL(api, ORT_CONST_DATA, ort_const_data)(v, &data));
    *out = print_of(data, n);
    return NULL;
}

static ort_status *find_of(const ep_tables *t, const ort_value_info *v, char *const *names,
                           size_t n, ep_default *all, size_t *count)
{
    const char *name;
    const ort_value *value = NULL;
    bool optional = false;
    if (!v) return NULL;
    TRY_ORT(CALL(t->api, ORT_VALUE_IS_OPTIONAL, ort_value_is)(v, &optional));
    if (!optional) return NULL;
    TRY_ORT(ep_value_name(t, v, &name));
    TRY_ORT(CALL(t->api, ORT_VALUE_INITIALIZER, ort_value_initializer)(v, &value));
    for (size_t k = 0; value && k < n; k++) {
        if (all[k].there || strcmp(names[k], name) != 0) continue;
        all[k].there = true;
        ++*count;
        return print_value(t->api, value, &all[k].print);
    }
    return NULL;
}

/* By the operands of the nodes: of the one that stands for the graph, the runtime does not tell. */
static ort_status *find_all(const ep_tables *t, const ort_node *const *nodes, size_t n_nodes,
                            char *const *names, size_t n, ep_default *all, size_t *count)
{
    for (size_t k = 0; k < n_nodes; k++) {
        const ort_value_info **values;
        size_t n_values = 0;
        ort_status *st = ep_node_values(t, nodes[k], ORT_NODE_INPUT_COUNT, ORT_NODE_INPUTS, &values,
                                        &n_values);
        for (size_t j = 0; !st && j < n_values; j++)
            st = find_of(t, values[j], names, n, all, count);
        free(values);
        TRY_ORT(st);
    }
    return NULL;
}

ort_status *ep_defaults_find(const ep_tables *t, const ort_graph *g, char *const *names, size_t n,
                             ep_default **out, size_t *count)
{
    const ort_node **nodes;
    size_t n_nodes = 0;
    *count = 0;
    *out = calloc(n + 1, sizeof **out);
    if (!*out) return ep_no_memory(t);
    ort_status *st = ep_graph_nodes(t, g, &nodes, &n_nodes);
    if (!st) st = find_all(t, nodes, n_nodes, names, n, *out, count);
    free(nodes);
    return st;
}

ort_status *ep_default_is(const ort_api *api, const ep_default *d, const ort_value *v, bool *out)
{
    ep_print p;
    TRY_ORT(print_value(api, v, &p));
    *out = p.bytes == d->print.bytes && memcmp(p.lane, d->print.lane, sizeof p.lane) == 0;
    return NULL;
}
