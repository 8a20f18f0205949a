/* Results as one JSON object, for programs. Keys are a promise: see docs/onnx-tile.1. */
#include "facts.h"

#include "base/json.h"

static void put_names(const char *const *names, uint32_t n, FILE *f)
{
    fputc('[', f);
    for (uint32_t k = 0; k < n; k++) {
        if (k) fputs(", ", f);
        ot_json_string(names[k], f);
    }
    fputc(']', f);
}

static void put_nodes(const ot_facts *x, const uint32_t *nodes, uint32_t n, FILE *f)
{
    fputc('[', f);
    for (uint32_t k = 0; k < n; k++) {
        if (k) fputs(", ", f);
        ot_json_string(x->nodes[nodes[k]].name, f);
    }
    fputc(']', f);
}

static void put_figures(const char *key, const ot_figures *v, FILE *f)
{
    fprintf(f, "  \"%s\": {\"time_s\": ", key);
    ot_json_number(v->time_s, f);
    fprintf(f, ", \"peak_bytes\": %lld, \"traffic_bytes\": ", (long long)v->peak_bytes);
    ot_json_number(v->traffic_bytes, f);
    fputs("},\n", f);
}

static void put_region(const ot_facts *x, const ot_fact_region *r, FILE *f)
{
    fprintf(f, "{\"id\": %u, \"nodes\": ", r->id);
    put_nodes(x, r->nodes, r->n_nodes, f);
    fputs(", \"axes\": ", f);
    put_names(r->axes, r->n_dims, f);
    fputs(", \"tiles\": [", f);
    for (uint32_t d = 0; d < r->n_dims; d++) fprintf(f, "%s%u", d ? ", " : "", r->tiles[d]);
    fputs("], \"form\": ", f);
    ot_json_string(r->form, f);
    fprintf(f, ", \"working_set_bytes\": %lld, \"working_set_lower_bound_bytes\": %lld", (long long)r->working_set,
            (long long)r->working_set_bound);
    fprintf(f, ", \"weight_bytes\": %lld, \"weights_stay\": %s, \"time_untiled_s\": ", (long long)r->weights,
            r->weights_stay ? "true" : "false");
    ot_json_number(r->time_untiled, f);
    fputs(", \"time_tiled_s\": ", f);
    ot_json_number(r->time_tiled, f);
    fputs(", \"benefit_s\": ", f);
    ot_json_number(r->benefit, f);
    fputs(", \"mac_ratio\": ", f);
    ot_json_number(r->mac_ratio, f);
    fputs(", \"traffic_bytes\": ", f);
    ot_json_number(r->traffic, f);
    if (*r->residence) {
        fputs(", \"residence\": ", f);
        ot_json_string(r->residence, f);
    }
    fputc('}', f);
}

/* The untiled model's activations in one memory. */
static void put_arena(const ot_facts *r, FILE *f)
{
    const ot_arena_figures *a = &r->totals.activations;
    fprintf(f, "  \"arena\": {\"naive_bytes\": %lld, \"lower_bound_bytes\": %lld, \"planned_bytes\": %lld, ", (long long)a->naive,
            (long long)a->lower_bound, (long long)a->planned);
    fprintf(f, "\"greedy_by_size_bytes\": %lld, \"in_place_bytes\": %lld, \"buffers\": %u, \"unsized\": %u, \"proved\": %s},\n",
            (long long)a->greedy, (long long)a->in_place, a->n_buffers, r->totals.n_unsized, a->proved ? "true" : "false");
}

/* Between list items: a new line, and a comma after the first. */
static void put_separator(uint32_t k, FILE *f) { fputs(k ? ",\n    " : "\n    ", f); }

static void put_lists(const ot_facts *r, FILE *f)
{
    fputs("  \"regions\": [", f);
    for (uint32_t k = 0; k < r->n_regions; k++) {
        put_separator(k, f);
        put_region(r, &r->regions[k], f);
    }
    fputs("],\n  \"barriers\": [", f);
    for (uint32_t k = 0; k < r->n_barriers; k++) {
        put_separator(k, f);
        fputs("{\"node\": ", f);
        ot_json_string(r->nodes[r->barriers[k].node].name, f);
        fputs(", \"op\": ", f);
        ot_json_string(r->nodes[r->barriers[k].node].op, f);
        fputs(", \"reason_id\": ", f);
        ot_json_string(r->barriers[k].reason_id, f);
        fputs(", \"reason\": ", f);
        ot_json_string(r->barriers[k].reason, f);
        fputc('}', f);
    }
    fputs("],\n  \"refused\": [", f);
    for (uint32_t k = 0; k < r->n_refusals; k++) {
        put_separator(k, f);
        fputs("{\"nodes\": ", f);
        put_nodes(r, r->refusals[k].nodes, r->refusals[k].n_nodes, f);
        fputs(", \"reason_id\": ", f);
        ot_json_string(r->refusals[k].reason_id, f);
        fputs(", \"reason\": ", f);
        ot_json_string(r->refusals[k].reason, f);
        fputc('}', f);
    }
    fputs("]\n}\n", f);
}

ot_status ot_results_json(const ot_facts *r, FILE *f)
{
    double before = r->totals.untiled.time_s, after = r->totals.tiled.time_s;

    fputs("{\n  \"model\": ", f);
    ot_json_string(r->model, f);
    fputs(",\n  \"target\": {\"name\": ", f);
    ot_json_string(r->target, f);
    fprintf(f, ", \"l2_bytes\": %lld},\n", (long long)r->fast_bytes);
    put_figures("untiled", &r->totals.untiled, f);
    put_figures("tiled", &r->totals.tiled, f);
    fputs("  \"compulsory_bytes\": ", f);
    ot_json_number(r->totals.compulsory_bytes, f);
    fputs(",\n  \"activation_sum_bytes\": ", f);
    ot_json_number(r->totals.activation_sum, f);
    fputs(",\n", f);
    put_arena(r, f);
    fputs("  \"benefit_s\": ", f);
    ot_json_number(before - after, f);
    fputs(",\n  \"speedup\": ", f);
    ot_json_number(after > 0 ? before / after : 1.0, f);
    fputs(",\n", f);
    put_lists(r, f);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
