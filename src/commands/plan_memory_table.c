/* plan-memory of a table of buffers (CSV). */
#include "kernel_file.h"
#include "plan_memory_work.h"

static ot_status check_table_options(const ot_memory_work *w)
{
    const ot_memory_run *run = w->run;
    const char *name = run->target                             ? "target"
                       : run->function                         ? "function"
                       : run->plan.workspace_reuse             ? "workspace-reuse"
                       : run->plan.fast_capacity               ? "fast-memory"
                       : run->plan.lifetimes.no_in_place       ? "no-inplace"
                       : run->plan.lifetimes.restrict_in_place ? "restrict-inplace"
                       : run->plan.part != OT_MEM_BOTH         ? "mem-plan-mode"
                       : run->analyse                          ? "analyse"
                       : run->footprint                        ? "footprint"
                                                               : NULL;
    return name ? ot_fail(w->d, OT_E_USAGE, "--%s is for kernels: '%.300s' is a table", name,
                          w->path)
                : OT_OK;
}

/* One box for each stretch between gaps. */
static ot_map_box *table_boxes(const ot_pack_file *f, const int64_t *offsets, ot_arena *a,
                               uint32_t *count)
{
    size_t n = 0;
    for (uint32_t k = 0; k < f->problem.n; k++) n += 1 + (size_t)f->problem.items[k].n_gaps;
    ot_map_box *boxes = n < UINT32_MAX ? OT_NEW_N(a, ot_map_box, n) : NULL;
    if (!boxes) return NULL;
    n = 0;
    for (uint32_t k = 0; k < f->problem.n; k++) {
        const ot_pack_item *i = &f->problem.items[k];
        int64_t from = i->lower;
        for (uint32_t j = 0; j <= i->n_gaps; j++) {
            int64_t to = j < i->n_gaps ? i->gaps[j].lower : i->upper;
            if (from < to) boxes[n++] = (ot_map_box){f->names[k], from, to, offsets[k], i->size, 0};
            if (j < i->n_gaps) from = i->gaps[j].upper;
        }
    }
    *count = (uint32_t)n;
    return boxes;
}

static ot_status render_table(ot_memory_work *w, const ot_pack_file *f, const int64_t *offsets)
{
    if (w->run->output) {
        FILE *out = open_memstream(&w->plan.bytes, &w->plan.n);
        if (!out) return ot_fail_nomem(w->d);
        OT_TRY(ot_memory_close_text(w, out, &w->plan, ot_pack_write_csv(f, offsets, out)));
    }
    if (!w->run->svg && !w->run->keep_maps) return OT_OK;
    ot_map_plot plot = ot_memory_plot_of(&w->r->plans[0], "", "time");
    plot.boxes = table_boxes(f, offsets, f->arena, &plot.n);
    if (!plot.boxes) return ot_fail_nomem(w->d);
    return ot_memory_use_plots(w, &plot, 1, ot_memory_base_name(w->path));
}

/* costs 12: proved optimal within 4096 bytes        costs 12: best known, at least 3 */
static ot_status say_price(ot_memory_work *w, ot_scope_plan *p)
{
    const long long cost = p->reuse_cost, within = p->capacity > 0 ? p->capacity : p->height;
    if (!p->priced) return OT_OK;
    p->reuse = p->reuse_cost_proved
                   ? ot_format(w->r->arena, "costs %lld: proved optimal within %lld bytes", cost,
                               within)
                   : ot_format(w->r->arena, "costs %lld: best known, at least %lld", cost,
                               (long long)p->reuse_cost_bound);
    return p->reuse ? OT_OK : ot_fail_nomem(w->d);
}

static ot_status plan_table(ot_memory_work *w, const ot_pack_file *f)
{
    const ot_mem_options *m = &w->run->plan;
    ot_memory_results *r = w->r;
    const ot_pack_options o = {.capacity = m->capacity,
                               .time_limit = m->time_limit,
                               .threads = m->threads,
                               .rules = OT_PACK_RULES_ALL};
    int64_t *offsets = OT_NEW_N(f->arena, int64_t, f->problem.n);
    double start = ot_now();

    r->plans = OT_NEW(r->arena, ot_scope_plan);
    if (!offsets || !r->plans) return ot_fail_nomem(w->d);
    ot_table_layout plan = {.offsets = offsets};
    OT_TRY(ot_pack_table(f, w->path, m->mode, &o, w->d, &plan));
    r->plans[0] = plan.memory;
    OT_TRY(say_price(w, &r->plans[0]));
    r->steps = plan.steps;
    r->n_plans = 1;
    r->n_buffers = f->problem.n;
    r->seconds = ot_now() - start;
    ot_memory_log_time(w, "plan", start);
    if (f->n_windows > 0) {
        const char **warning = OT_NEW(r->arena, const char *);
        if (warning)
            *warning = ot_format(
                r->arena,
                "%u gap%s that keep%s a part of the buffer counted as none: lower plans may exist",
                f->n_windows, f->n_windows == 1 ? "" : "s", f->n_windows == 1 ? "s" : "");
        if (!warning || !*warning) return ot_fail_nomem(w->d);
        r->warnings = warning;
        r->n_warnings = 1;
    }
    if (ot_memory_results_keep_table(r, f, offsets) != OT_OK) return ot_fail_nomem(w->d);
    return render_table(w, f, offsets);
}

static ot_status read_pairs(ot_memory_work *w, ot_pack_file *f)
{
    const char *path = w->run->pairs;
    char *text = NULL;
    size_t n = 0;
    OT_TRY(ot_read_text(path, f->arena, w->d, &text, &n));
    return ot_pack_read_pairs(f, strcmp(path, "-") == 0 ? "stdin" : path, text, n, w->d);
}

ot_status ot_memory_run_table(ot_memory_work *w)
{
    ot_pack_file *f = NULL;
    double start = ot_now();

    OT_TRY(check_table_options(w));
    OT_TRY(ot_pack_read_csv(w->path, w->input, w->n_input, w->d, &f));
    ot_status s = w->run->pairs ? read_pairs(w, f) : OT_OK;
    ot_memory_log_time(w, "parse", start);
    if (s == OT_OK) s = plan_table(w, f);
    ot_pack_file_free(f);
    return s;
}
