/* Inputs and results that stay on the host while loops move tiles of them.
 *
 *   x (input, host)   ~~window i~~>  [tile, tile']  --kernels of the body-->  [tile, tile']
 *                     ~~place i~~>  y (result, host)
 */
#include "device_arena.h"

#include "machine/runtime/runtime.h"
#include "ops/ops.h"

#include <math.h>

/* Infinite where it is not known. */
static double size_of(const ot_graph *g, ot_id v)
{
    int64_t bytes;
    return ot_value_bytes(&g->values[v], &bytes) ? (double)bytes : INFINITY;
}

/* Bytes of the windows that a body takes of the value of that name; infinite where it does
 * anything else with it. */
static double windows_of(const ot_graph *body, const char *name)
{
    double sum = 0;
    for (uint32_t k = 0; k < body->n_order; k++) {
        const ot_node *n = &body->nodes[body->order[k]];
        for (uint32_t j = 0; j < n->n_in + n->n_captured; j++) {
            const ot_id v = j < n->n_in ? n->in[j] : n->captured[j - n->n_in];
            if (v == OT_NONE || !body->values[v].is_outer ||
                strcmp(body->values[v].name, name) != 0)
                continue;
            if (j > 0 || !ot_is_tile_op(n, "Slice")) return INFINITY;
            sum += size_of(body, n->out[0]);
        }
    }
    return sum;
}

static bool input_stays(const ot_node_list *l, const ot_graph *const *bodies, ot_id v)
{
    const double whole = size_of(l->g, v);
    double tiles = 0, moved = 0;
    if (ot_list_readers(l, v) == 0 || l->g->values[v].is_output || l->constant[v] ||
        whole == INFINITY)
        return false;
    for (uint32_t k = l->first[v]; k < l->first[v + 1]; k++) {
        const ot_node *n = l->node[l->readers[k]];
        const ot_graph *body = bodies[l->readers[k]];
        if (!body) return false;
        for (uint32_t j = 0; j < n->n_in; j++)
            if (n->in[j] == v) return false;
        const double windows = windows_of(body, l->g->values[v].name);
        tiles = fmax(tiles, windows);
        moved += windows * (double)ot_attr_int(n, "count", 0);
    }
    return 2 * tiles <= OT_STREAM_PART_MOST * whole && moved <= OT_STREAM_MOVES_MOST * whole;
}

/* Bytes of the tiles that a body writes into its buffer j, by Deslices alone: ot_check_tile_ops
 * has seen to that. They follow each other in the order. */
static double tiles_of(const ot_graph *body, uint32_t j)
{
    ot_id v = body->inputs[j];
    double sum = 0;
    for (uint32_t k = 0; k < body->n_order; k++) {
        const ot_node *n = &body->nodes[body->order[k]];
        if (!ot_is_tile_op(n, "Deslice") || n->in[1] != v) continue;
        sum += size_of(body, n->in[0]);
        v = n->out[0];
    }
    return sum;
}

/* The value whose memory an Alloc made and a chain of loops has filled when v is there, v being
 * no rows that are handed on; OT_NONE: it is not made so. */
static ot_id filled(const ot_node_list *l, const ot_graph *const *bodies, ot_id v, double *tiles)
{
    for (*tiles = 0;;) {
        const uint32_t by = l->maker[v];
        uint32_t j = 0;
        if (by == OT_NONE) return OT_NONE;
        const ot_node *n = l->node[by];
        if (ot_is_tile_op(n, "Alloc")) return *tiles > 0 ? v : OT_NONE;
        if (!bodies[by] || n->n_in != n->n_out || bodies[by]->n_inputs != n->n_in + 1)
            return OT_NONE;
        while (j < n->n_out && n->out[j] != v) j++;
        if (j >= n->n_in - (uint32_t)ot_attr_int(n, "carried", 0)) return OT_NONE;
        *tiles = fmax(*tiles, tiles_of(bodies[by], j + 1));
        v = n->in[j];
        if (ot_list_only_reader(l, v) != by) return OT_NONE;
    }
}

ot_status ot_device_streams_find(const ot_node_list *l, const ot_graph *const *bodies, ot_arena *a,
                                 ot_id **host_of)
{
    const ot_graph *g = l->g;
    ot_id *of = *host_of = OT_NEW_N(a, ot_id, g->n_values + 1u);
    if (!of) return OT_E_NOMEM;
    for (ot_id v = 0; v < g->n_values; v++) of[v] = OT_NONE;
    for (uint32_t k = 0; k < g->n_inputs; k++)
        if (input_stays(l, bodies, g->inputs[k])) of[g->inputs[k]] = g->inputs[k];
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        const ot_id v = g->outputs[k];
        double tiles;
        if (ot_list_readers(l, v) != 0) continue;
        const ot_id buffer = filled(l, bodies, v, &tiles);
        if (buffer != OT_NONE && 2 * tiles <= OT_STREAM_PART_MOST * size_of(g, v)) of[buffer] = v;
    }
    return OT_OK;
}
