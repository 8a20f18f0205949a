/* Results of a plan as one JSON object, for programs: docs/json.md is the contract. What reports
 * tell, too, is written by their tables (facts_table.h), with nodes by name. */
#include "facts_range.h"
#include "facts_table.h"

void ot_design_put(const ot_facts *f, ot_json *j)
{
    if (!f->design || !*f->design) return;
    ot_json_put_text(j, "design", f->design);
    ot_json_put_truth(j, "design_guessed", f->design_guessed);
    ot_json_put_truth(j, "stays_dynamic", f->stays_dynamic);
}

/* A figure of the whole model; null: not known. */
static void put_known(ot_json *j, const ot_facts *f, const char *key, double x)
{
    if (ot_fact_known(f, x) < 0)
        ot_json_put_null(j, key);
    else
        ot_json_put_figure(j, key, x);
}

static void put_bytes(ot_json *j, const ot_facts *f, const char *key, int64_t x)
{
    if (ot_fact_known(f, (double)x) < 0)
        ot_json_put_null(j, key);
    else
        ot_json_put_int(j, key, x);
}

static void put_figures(ot_json *j, const ot_facts *f, const char *key, const ot_figures *v)
{
    const bool grows = *f->unknown_sizes && f->totals.predicts_growth;
    ot_json_open(j, key);
    put_bytes(j, f, "peak_bytes", v->peak_bytes);
    put_bytes(j, f, "largest_tensor_bytes", v->largest_bytes);
    if (v->growth_bytes > 0 || grows) put_bytes(j, f, "growth_bytes", v->growth_bytes);
    if (v->loaded_bytes > 0) {
        ot_json_put_int(j, "loaded_bytes", v->loaded_bytes);
        ot_json_put_int(j, "loading_bytes", v->loading_bytes);
    }
    if (f->totals.predicts_process && (v->process_bytes > 0 || *f->unknown_sizes))
        put_bytes(j, f, "process_bytes", v->process_bytes);
    put_known(j, f, "traffic_bytes", v->traffic_bytes);
    put_known(j, f, "time_seconds", v->time_s);
    put_known(j, f, "macs", v->macs);
    ot_json_close(j);
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

static void put_region(ot_json *j, const ot_facts *f, const ot_fact_region *r)
{
    fact_json to = ot_facts_json_sink(j, true);
    ot_json_open(j, NULL);
    ot_facts_put_struct(f, &FACTS_REGION, r, &to.base);
    if (r->arena > 0) put_places(j, r);
    ot_json_close(j);
}

/* The untiled model's activations in one memory. */
static void put_arena(ot_json *j, const ot_facts *f)
{
    const ot_fact_totals *t = &f->totals;
    const ot_arena_figures *a = &t->activations;
    ot_json_open(j, "arena");
    put_bytes(j, f, "naive_bytes", a->naive);
    put_bytes(j, f, "lower_bound_bytes", a->lower_bound);
    put_bytes(j, f, "planned_bytes", a->planned);
    put_bytes(j, f, "greedy_by_size_bytes", a->greedy);
    put_bytes(j, f, "in_place_bytes", a->in_place);
    ot_json_put_int(j, "buffers", a->n_buffers);
    ot_json_put_int(j, "unsized", t->n_unsized);
    ot_json_put_truth(j, "proved", a->proved);
    ot_json_close(j);
}

static void put_lists(ot_json *j, const ot_facts *f)
{
    fact_json to = ot_facts_json_sink(j, true);
    ot_json_list(j, "regions");
    for (uint32_t k = 0; k < f->n_regions; k++) put_region(j, f, &f->regions[k]);
    ot_json_close(j);
    ot_json_list(j, "barriers");
    for (uint32_t k = 0; k < f->n_barriers; k++) {
        ot_json_open(j, NULL);
        ot_facts_put_struct(f, &FACTS_BARRIER, &f->barriers[k], &to.base);
        ot_json_put_text(j, "op", f->nodes[f->barriers[k].node].op);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_list(j, "refusals");
    for (uint32_t k = 0; k < f->n_refusals; k++) {
        ot_json_open(j, NULL);
        ot_facts_put_struct(f, &FACTS_REFUSAL, &f->refusals[k], &to.base);
        ot_json_close(j);
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
    ot_json_put_int(&j, "fast_bytes", f->fast_bytes);
    ot_json_close(&j);
    ot_json_put_text(&j, "runtime", f->runtime);
    put_figures(&j, f, "untiled", &t->untiled);
    put_figures(&j, f, "tiled", &t->tiled);
    if (*f->missed) ot_json_put_text(&j, "missed", f->missed);
    if (*f->slow_nodes) ot_json_put_text(&j, "slow_nodes", f->slow_nodes);
    if (*f->unknown_sizes) ot_json_put_text(&j, "unknown_sizes", f->unknown_sizes);
    if (t->compulsory_bytes >= 0) put_known(&j, f, "compulsory_bytes", t->compulsory_bytes);
    put_known(&j, f, "activation_sum_bytes", t->activation_sum);
    put_arena(&j, f);
    ot_json_put_truth(&j, "in_branch", t->in_branch);
    ot_json_put_truth(&j, "hides_extents", t->hides_extents);
    ot_json_put_truth(&j, "data_file", t->data_file);
    if (t->narrowed_nodes > 0) {
        ot_json_put_int(&j, "narrowed_nodes", t->narrowed_nodes);
        ot_json_put_figure(&j, "unread_macs", t->unread_macs);
        put_known(&j, f, "unread_bytes", t->unread_bytes);
    }
    if (t->folded_nodes > 0) ot_json_put_int(&j, "folded_nodes", t->folded_nodes);
    if (t->defer_from > 0) ot_json_put_int(&j, "deferred_packing_from_bytes", t->defer_from);
    if (t->unpacked_from > 0) ot_json_put_int(&j, "unpacked_weights_from_bytes", t->unpacked_from);
    if (t->piece_bytes > 0) ot_json_put_int(&j, "weight_piece_bytes", t->piece_bytes);
    if (t->first_block > 0) ot_json_put_int(&j, "first_block_bytes", t->first_block);
    if (t->n_plain > 0) ot_json_put_int(&j, "plain_maps", t->n_plain);
    if (t->dynamic_dims) ot_json_put_truth(&j, "dynamic_dims", true);
    ot_design_put(f, &j);
    if (f->range) ot_bounds_put(f->range, &j);
    ot_json_put_figure(&j, "benefit_seconds", before - after);
    ot_json_put_figure(&j, "speedup", after > 0 ? before / after : 1.0);
    put_lists(&j, f);
    ot_json_close(&j);
    return ferror(out) ? OT_E_SYSTEM : OT_OK;
}
