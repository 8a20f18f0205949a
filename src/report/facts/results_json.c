/* Results of a plan as one JSON object, for programs: docs/json.md is the contract. Members that
 * the report has, too, have its names and units; older names of the same figures stay beside
 * them. */
#include "facts.h"
#include "facts_range.h"

#include "base/json.h"

void ot_design_put(const ot_facts *f, ot_json *j)
{
    if (!f->design || !*f->design) return;
    ot_json_put_text(j, "design", f->design);
    ot_json_put_truth(j, "design_guessed", f->design_guessed);
    ot_json_put_truth(j, "stays_free", f->stays_free);
}

static void put_names(ot_json *j, const char *key, const ot_facts *f, const uint32_t *nodes,
                      uint32_t n)
{
    ot_json_list(j, key);
    for (uint32_t k = 0; k < n; k++) ot_json_put_text(j, NULL, f->nodes[nodes[k]].name);
    ot_json_close(j);
}

static void put_figures(ot_json *j, const char *key, const ot_figures *v)
{
    ot_json_open(j, key);
    ot_json_put_figure(j, "time_s", v->time_s);
    ot_json_put_int(j, "peak_bytes", v->peak_bytes);
    ot_json_put_int(j, "largest_tensor_bytes", v->largest_bytes);
    if (v->growth_bytes > 0) ot_json_put_int(j, "growth_bytes", v->growth_bytes);
    if (v->loaded_bytes > 0) ot_json_put_int(j, "loaded_bytes", v->loaded_bytes);
    ot_json_put_figure(j, "traffic_bytes", v->traffic_bytes);
    ot_json_put_figure(j, "time_seconds", v->time_s);
    ot_json_put_figure(j, "macs", v->macs);
    ot_json_close(j);
}

/* As in reports: {"axis": "H", "tiles": 4, "tile": 14, "extent": 56} a dimension. */
static void put_dims(ot_json *j, const ot_fact_region *r)
{
    ot_json_list(j, "dims");
    for (uint32_t d = 0; d < r->n_dims; d++) {
        ot_json_open(j, NULL);
        ot_json_put_text(j, "axis", r->axes[d]);
        ot_json_put_int(j, "tiles", r->tiles[d]);
        ot_json_put_int(j, "tile", r->tile[d]);
        ot_json_put_int(j, "extent", r->extent[d]);
        ot_json_close(j);
    }
    ot_json_close(j);
}

/* Names of before there was one dialect. */
static void put_older(ot_json *j, const ot_fact_region *r)
{
    ot_json_list(j, "axes");
    for (uint32_t d = 0; d < r->n_dims; d++) ot_json_put_text(j, NULL, r->axes[d]);
    ot_json_close(j);
    ot_json_list(j, "tiles");
    for (uint32_t d = 0; d < r->n_dims; d++) ot_json_put_int(j, NULL, r->tiles[d]);
    ot_json_close(j);
    ot_json_put_int(j, "working_set_lower_bound_bytes", r->working_set_bound);
    ot_json_put_figure(j, "time_untiled_s", r->time_untiled);
    ot_json_put_figure(j, "time_tiled_s", r->time_tiled);
    ot_json_put_figure(j, "benefit_s", r->benefit);
}

/* Where its buffers are. */
static void put_places(ot_json *j, const ot_fact_region *r)
{
    ot_json_open(j, "arena");
    ot_json_put_int(j, "height_bytes", r->arena);
    ot_json_put_text(j, "mode", r->placed_by);
    if (r->reuse_level == OT_LEVEL_NONE)
        ot_json_put_null(j, "level"); /* nothing shares */
    else
        ot_json_put_int(j, "level", r->reuse_level);
    ot_json_put_int(j, "cross_pipe", r->cross_pipe);
    ot_json_put_figure(j, "stall_seconds", r->stall);
    ot_json_list(j, "buffers");
    for (uint32_t k = 0; k < r->n_places; k++) {
        ot_json_open(j, NULL);
        ot_json_put_text(j, "name", r->places[k].name);
        ot_json_put_int(j, "size_bytes", r->places[k].bytes);
        ot_json_list(j, "offsets_bytes");
        for (uint32_t s = 0; s < r->places[k].n; s++)
            ot_json_put_int(j, NULL, r->places[k].offsets[s]);
        ot_json_close(j);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_close(j);
}

/* The second level. */
static void put_cores(ot_json *j, const ot_fact_region *r)
{
    ot_json_open(j, "cores");
    ot_json_put_text(j, "text", r->cores);
    ot_json_list(j, "scopes");
    for (uint32_t k = 0; k < r->n_scopes; k++) {
        const ot_scope_plan *s = &r->scopes[k];
        ot_json_open(j, NULL);
        ot_json_put_text(j, "scope", ot_scope_name(s->scope));
        ot_json_put_int(j, "height_bytes", s->height);
        ot_json_put_int(j, "capacity_bytes", s->capacity);
        ot_json_put_text(j, "mode", ot_mem_mode_name(s->mode));
        ot_json_put_int(j, "cross_pipe", s->n_cross_pipe);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_list(j, "blocks");
    for (uint32_t k = 0; k < r->n_blocks; k++) {
        const ot_fact_block *b = &r->blocks[k];
        ot_json_open(j, NULL);
        ot_json_put_text(j, "name", b->node);
        ot_json_put_text(j, "operation", b->operation);
        ot_json_put_text(j, "unit", b->unit);
        ot_json_put_text(j, "extent", b->extent);
        ot_json_put_text(j, "block", b->block);
        ot_json_put_int(j, "depth", b->depth);
        ot_json_put_int(j, "depth_block", b->depth_block);
        ot_json_put_int(j, "blocks", b->n_blocks);
        ot_json_put_int(j, "moved_bytes", b->bytes);
        ot_json_put_int(j, "granules_saved_bytes", b->granules_saved);
        ot_json_put_figure(j, "moving_seconds", b->time);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_close(j);
}

static void put_region(ot_json *j, const ot_facts *f, const ot_fact_region *r)
{
    ot_json_open(j, NULL);
    ot_json_put_int(j, "id", r->id);
    put_names(j, "nodes", f, r->nodes, r->n_nodes);
    put_older(j, r);
    put_dims(j, r);
    ot_json_put_text(j, "form", r->form);
    ot_json_put_int(j, "working_set_bytes", r->working_set);
    ot_json_put_int(j, "working_set_bound_bytes", r->working_set_bound);
    ot_json_put_int(j, "capacity_bytes", r->capacity);
    if (*r->residence) ot_json_put_text(j, "residence", r->residence);
    if (r->arena > 0) put_places(j, r);
    if (*r->cores) put_cores(j, r);
    ot_json_put_int(j, "weight_bytes", r->weights);
    ot_json_put_truth(j, "weights_stay", r->weights_stay);
    ot_json_put_figure(j, "untiled_seconds", r->time_untiled);
    ot_json_put_figure(j, "tiled_seconds", r->time_tiled);
    ot_json_put_figure(j, "benefit_seconds", r->benefit);
    ot_json_put_figure(j, "mac_ratio", r->mac_ratio);
    ot_json_put_figure(j, "untiled_traffic_bytes", r->traffic_untiled);
    ot_json_put_figure(j, "traffic_bytes", r->traffic);
    ot_json_close(j);
}

/* The untiled model's activations in one memory. */
static void put_arena(ot_json *j, const ot_fact_totals *t)
{
    const ot_arena_figures *a = &t->activations;
    ot_json_open(j, "arena");
    ot_json_put_int(j, "naive_bytes", a->naive);
    ot_json_put_int(j, "lower_bound_bytes", a->lower_bound);
    ot_json_put_int(j, "planned_bytes", a->planned);
    ot_json_put_int(j, "greedy_by_size_bytes", a->greedy);
    ot_json_put_int(j, "in_place_bytes", a->in_place);
    ot_json_put_int(j, "buffers", a->n_buffers);
    ot_json_put_int(j, "unsized", t->n_unsized);
    ot_json_put_truth(j, "proved", a->proved);
    ot_json_close(j);
}

static void put_reason(ot_json *j, const char *id, const char *reason, const char *lift)
{
    ot_json_put_text(j, "reason_id", id);
    ot_json_put_text(j, "reason", reason);
    if (*lift) ot_json_put_text(j, "lift", lift);
    ot_json_close(j);
}

static void put_lists(ot_json *j, const ot_facts *f)
{
    ot_json_list(j, "regions");
    for (uint32_t k = 0; k < f->n_regions; k++) put_region(j, f, &f->regions[k]);
    ot_json_close(j);
    ot_json_list(j, "barriers");
    for (uint32_t k = 0; k < f->n_barriers; k++) {
        const ot_fact_barrier *b = &f->barriers[k];
        ot_json_open(j, NULL);
        ot_json_put_text(j, "node", f->nodes[b->node].name);
        ot_json_put_text(j, "op", f->nodes[b->node].op);
        put_reason(j, b->reason_id, b->reason, b->lift);
    }
    ot_json_close(j);
    ot_json_list(j, "refused");
    for (uint32_t k = 0; k < f->n_refusals; k++) {
        const ot_fact_refusal *r = &f->refusals[k];
        ot_json_open(j, NULL);
        put_names(j, "nodes", f, r->nodes, r->n_nodes);
        put_reason(j, r->reason_id, r->reason, r->lift);
    }
    ot_json_close(j);
}

ot_status ot_results_json(const ot_facts *f, FILE *out)
{
    const ot_fact_totals *t = &f->totals;
    double before = t->untiled.time_s, after = t->tiled.time_s;
    ot_json j = {.f = out};

    ot_json_open(&j, NULL);
    ot_json_put_text(&j, "model", f->model);
    ot_json_open(&j, "target");
    ot_json_put_text(&j, "name", f->target);
    ot_json_put_int(&j, "l2_bytes", f->fast_bytes);
    ot_json_put_int(&j, "fast_bytes", f->fast_bytes);
    ot_json_close(&j);
    ot_json_put_text(&j, "runtime", f->runtime);
    put_figures(&j, "untiled", &t->untiled);
    put_figures(&j, "tiled", &t->tiled);
    ot_json_put_figure(&j, "compulsory_bytes", t->compulsory_bytes);
    ot_json_put_figure(&j, "activation_sum_bytes", t->activation_sum);
    put_arena(&j, t);
    ot_json_put_truth(&j, "in_branch", t->in_branch);
    if (t->defer_from > 0) ot_json_put_int(&j, "late_weights_from_bytes", t->defer_from);
    if (t->dynamic_dims) ot_json_put_truth(&j, "free_dims", true);
    ot_design_put(f, &j);
    if (f->range) ot_bounds_put(f->range, &j);
    ot_json_put_figure(&j, "benefit_s", before - after);
    ot_json_put_figure(&j, "benefit_seconds", before - after);
    ot_json_put_figure(&j, "speedup", after > 0 ? before / after : 1.0);
    put_lists(&j, f);
    ot_json_close(&j);
    return ferror(out) ? OT_E_SYSTEM : OT_OK;
}
