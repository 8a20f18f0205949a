/* What a graph viewer shows beside the nodes of a tiled region: metadata_props of every node of
 * the top graph that belongs to it.
 *
 *   node tile/r3/loop  onnx_tile.region 3  onnx_tile.tiles "H 8 x W 4"  onnx_tile.form loop-peeled
 *                      onnx_tile.predicted_ms 1.23 ...
 *
 * Here the texts are made, one list a region; the exporter attaches them by the region's number
 * in the node's name.
 */
#include "transform.h"

#define NOTES 7

static char *tiles_text(ot_arena *a, const ot_graph *g, const ot_region *r)
{
    char *text = ot_strdup(a, "");
    for (uint32_t d = 0; text && d < r->n_dims; d++) {
        const ot_rvalue *sink = &r->values[r->dims[d].sink];
        text = ot_format(a, "%s%s%s %u", text, d ? " x " : "",
                         ot_axis_name(g->values[sink->value].rank, sink->axis[d]),
                         r->dims[d].n_tiles);
    }
    return text;
}

static bool fill_note(ot_arena *a, const ot_graph *g, const ot_region *r, ot_node_note *n)
{
    const ot_note_entry e[NOTES] = {
        {"onnx_tile.region", ot_format(a, "%u", r->id)},
        {"onnx_tile.tiles", tiles_text(a, g, r)},
        {"onnx_tile.form", ot_form_name(r->form)},
        {"onnx_tile.operators", ot_format(a, "%u", r->n_nodes)},
        {"onnx_tile.working_set_bytes", ot_format(a, "%lld", (long long)r->working_set)},
        {"onnx_tile.predicted_ms", ot_format(a, "%.4g", r->time_tiled * 1e3)},
        {"onnx_tile.predicted_untiled_ms", ot_format(a, "%.4g", r->time_untiled * 1e3)},
    };
    n->id = r->id;
    n->entries = ot_memdup(a, e, sizeof e);
    n->n = NOTES;
    for (uint32_t k = 0; k < NOTES; k++)
        if (!e[k].value) return false;
    return n->entries != NULL;
}

ot_status ot_overlay(ot_graph *g, const ot_plan *p)
{
    ot_model *m = g->model;
    ot_node_note *notes = OT_NEW_N(m->arena, ot_node_note, p->n_regions + 1u);
    if (!notes) return ot_fail_nomem(m->diag);
    for (uint32_t k = 0; k < p->n_regions; k++)
        if (!fill_note(m->arena, g, &p->regions[k], &notes[k])) return ot_fail_nomem(m->diag);
    m->notes = notes;
    m->n_notes = p->n_regions;
    return OT_OK;
}
