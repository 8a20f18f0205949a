/* --verify: run the original and the tiled model in the native engine on the same inputs, compare.
 *
 *   source file (or bytes kept) --import--> original --. same arrays .--> outputs --.
 *                                                      +-------------+              +--> compare
 *   run->model --export--> bytes --import--> tiled  ---'             '--> outputs --'    one by one
 *
 * What is compared is what would be written, read back: an error of the exporter counts, too. A
 * model that does not fit into one message (external data) goes through a folder next to the
 * output, which is removed again. For OT_VERIFY_ALL both graphs get further outputs: values that
 * have the same name in both.
 */
#include "verify_tiled.h"

#include "measure/measure.h"
#include "onnx/import/model_io.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

typedef struct work {
    const ot_run *run;
    const void *bytes; /* [n] the original; NULL: it is read from the run's file */
    size_t n;
    bool inner; /* values inside are outputs of both */
    ot_diag *d;
    ot_arena *a;
    ot_model *m[2]; /* original, tiled */
    ot_feed feed[2];
    ot_measured x[2];
    bool half;       /* the original has half precision inside */
    uint32_t n_own;  /* outputs of the original, before what is inside */
    char temp[4096]; /* folder that holds the tiled model and its data; "": none */
} work;

/* ---- the two models ---- */

ot_status ot_verify_keep(const ot_run *run, void **bytes, size_t *n)
{
    *bytes = NULL;
    *n = 0;
    if (run->source.path && strcmp(run->source.path, "-") != 0) return OT_OK;
    return ot_export_memory(run->model, bytes, n);
}

static ot_status load_original(const work *w, ot_model **m)
{
    ot_run run = {.diag = w->d, .source = w->run->source};
    if (w->bytes) return ot_import_memory(w->bytes, w->n, w->run->source.dir, w->d, m);
    const ot_status s = ot_run_load(&run);
    *m = run.model;
    return s;
}

/* Next to the output, where there is room for it; with another output, where temporary files go. */
static ot_status choose_temp(work *w)
{
    const char *output = w->run->output ? w->run->output : "-", *slash = strrchr(output, '/');
    bool special = strcmp(output, "-") == 0 || strncmp(output, "/dev/", 5) == 0;
    int n = special ? snprintf(w->temp, sizeof w->temp, "%s/onnx-tile-XXXXXX", ot_temp_folder())
                    : snprintf(w->temp, sizeof w->temp, "%.*s.onnx-tile-XXXXXX",
                               slash ? (int)(slash - output) + 1 : 0, output);
    if (n > 0 && (size_t)n < sizeof w->temp && mkdtemp(w->temp)) return OT_OK;
    w->temp[0] = '\0';
    return ot_fail(w->d, OT_E_SYSTEM, "cannot make a temporary folder for --verify: %s",
                   strerror(errno));
}

static ot_status load_tiled(work *w)
{
    void *bytes = NULL;
    size_t n = 0;
    ot_diag *told = w->run->model->diag, ignored = {0};
    w->run->model->diag = &ignored;
    ot_status s = ot_export_memory(w->run->model, &bytes, &n);
    w->run->model->diag = told;
    if (s == OT_OK) s = ot_import_memory(bytes, n, NULL, w->d, &w->m[1]);
    free(bytes);
    if (s == OT_OK || w->m[1] || ignored.status != OT_E_INPUT) return s;
    OT_TRY(choose_temp(w));
    const char *path = ot_format(w->a, "%s/tiled.onnx", w->temp);
    if (!path) return ot_fail_nomem(w->d);
    OT_TRY(ot_export_file(w->run->model, path));
    return ot_import_file(path, w->d, &w->m[1]);
}

/* Whatever was written there: data files are named by their contents. */
static void remove_temp(const work *w)
{
    if (!w->temp[0]) return;
    DIR *folder = opendir(w->temp);
    for (const struct dirent *e; folder && (e = readdir(folder));)
        unlinkat(dirfd(folder), e->d_name, 0);
    if (folder) closedir(folder);
    rmdir(w->temp);
}

/* ---- values inside ---- */

static bool is_inner(const ot_value *v)
{
    return v->producer != OT_NONE && !v->is_output && !v->init && !v->is_const && !v->removed &&
           v->is_tensor && !v->is_outer;
}

static ot_status add_outputs(ot_graph *g, const ot_id *values, uint32_t n, ot_diag *d)
{
    ot_id *all = OT_NEW_N(g->model->arena, ot_id, g->n_outputs + n + 1u);
    if (!all) return ot_fail_nomem(d);
    memcpy(all, g->outputs, g->n_outputs * sizeof *all);
    memcpy(all + g->n_outputs, values, n * sizeof *all);
    for (uint32_t k = 0; k < n; k++) g->values[values[k]].is_output = true;
    g->outputs = all;
    g->n_outputs += n;
    return OT_OK;
}

/* Every value that a node of each graph makes under the same name becomes an output of both. */
static ot_status widen(work *w)
{
    ot_graph *o = w->m[0]->graph, *t = w->m[1]->graph;
    ot_id *of_original = OT_NEW_N(w->a, ot_id, o->n_values + 1u),
          *of_tiled = OT_NEW_N(w->a, ot_id, o->n_values + 1u);
    uint32_t n = 0;
    if (!of_original || !of_tiled) return ot_fail_nomem(w->d);
    for (ot_id v = 0; v < o->n_values; v++) {
        ot_id u = is_inner(&o->values[v]) ? ot_value_find(t, o->values[v].name) : OT_NONE;
        if (u == OT_NONE || !is_inner(&t->values[u])) continue;
        of_original[n] = v;
        of_tiled[n++] = u;
    }
    OT_TRY(add_outputs(o, of_original, n, w->d));
    return add_outputs(t, of_tiled, n, w->d);
}

/* ---- running ---- */

static ot_status run_both(work *w)
{
    const ot_run_options *ro = &w->run->options;
    /* bound, or what was planned for */
    const bool bound = ro->n_shapes > 0;
    ot_feed_request f = {.shapes = bound ? ro->shapes : ro->design,
                         .n_shapes = bound ? ro->n_shapes : ro->n_design};
    ot_session_options o = {.threads = ro->threads ? ro->threads : 1};
    OT_TRY(ot_feed_new(w->m[0]->graph, &f, w->a, w->d, &w->feed[0]));
    OT_TRY(ot_feed_adopt(w->m[1]->graph, w->m[0]->graph, &w->feed[0], w->a, w->d, &w->feed[1]));
    for (int k = 0; k < 2; k++) {
        OT_TRY(ot_measured_open(&w->x[k], w->m[k], &w->feed[k], &o, w->a, w->d));
        OT_TRY(ot_measured_run(&w->x[k], false, w->d));
    }
    if (w->x[0].n_outputs == w->x[1].n_outputs) return OT_OK;
    return ot_fail(w->d, OT_E_SYSTEM, "--verify: the tiled model has %u outputs, the original %u",
                   w->x[1].n_outputs, w->x[0].n_outputs);
}

static ot_status load_again(void *of, ot_model **m)
{
    const work *w = of;
    ot_model *again = NULL;
    const ot_status s = load_original(w, &again);
    *m = again;
    return s;
}

static ot_status compare_all(work *w, ot_verify_facts *out)
{
    const ot_comparison c = {.original = &w->x[0],
                             .other = &w->x[1],
                             .feed = &w->feed[0],
                             .half = w->half,
                             .load = w->inner ? NULL : load_again,
                             .of = w};
    ot_difference *found = OT_NEW_N(w->a, ot_difference, w->x[0].n_outputs + 1u);
    if (!found) return ot_fail_nomem(w->d);
    OT_TRY(ot_compare_outputs(&c, w->a, w->d, found));
    for (uint32_t k = 0; k < w->x[0].n_outputs; k++) {
        const char *name = ot_session_output(w->x[0].s, k)->name;
        const ot_nd *a = &w->x[0].out[k], *b = &w->x[1].out[k];
        /* computed in float32 now (transform/widen.c) */
        if (k >= w->n_own && a->dtype == OT_F16 && b->dtype == OT_F32) continue;
        const ot_difference x = found[k];
        if (!x.same)
            return ot_fail(w->d, OT_E_SYSTEM,
                           "--verify: value '%.300s' of the tiled model is not the original's: %s "
                           "(NMSE %.2e, largest difference "
                           "%.3e, %.2e of the largest value)",
                           name, x.why, x.nmse, x.max_abs, x.max_rel);
        out->n_values++;
        out->n_noisy += x.own_noise;
        if (x.nmse > out->nmse) out->nmse = x.nmse;
        if (x.max_rel > out->max_rel) out->max_rel = x.max_rel;
    }
    return OT_OK;
}

static ot_status verify(work *w, ot_verify_mode mode, ot_verify_facts *out)
{
    OT_TRY(load_original(w, &w->m[0]));
    w->inner = mode == OT_VERIFY_ALL;
    w->half = ot_has_half(w->m[0]->graph);
    w->n_own = w->m[0]->graph->n_outputs;
    OT_TRY(load_tiled(w));
    if (mode == OT_VERIFY_ALL) OT_TRY(widen(w));
    OT_TRY(run_both(w));
    return compare_all(w, out);
}

ot_status ot_verify_tiled(const ot_run *run, const void *bytes, size_t n, ot_verify_mode mode,
                          ot_verify_facts *out)
{
    work w = {.run = run, .bytes = bytes, .n = n, .d = run->diag, .a = ot_arena_new()};
    *out = (ot_verify_facts){0};
    ot_status s = w.a ? verify(&w, mode, out) : ot_fail_nomem(w.d);
    for (int k = 0; k < 2; k++) {
        ot_measured_close(&w.x[k]);
        ot_feed_release(&w.feed[k]);
        ot_model_free(w.m[k]);
    }
    remove_temp(&w);
    ot_arena_free(w.a);
    return s;
}
