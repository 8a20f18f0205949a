/* One input as a model that is asked about crops and steps, as it was read and at other sizes.
 *
 *   bytes --import--> geometry   halos and what is in the way, in all three forms of output
 *                 `-> passes     models and plan.json in a folder, which are read again
 *                 `-> step       a model of the next rows, which must verify and be read again
 *
 * The contents choose sizes, axis and rows, so that one file always does the same.
 * LLVMFuzzerTestOneInput is libFuzzer's entry (`make fuzz`). Whatever is wrong with an input must
 * end in a status and one line, in bounded memory and time (fuzz_bounds.h).
 */
#include "geometry/geometry.h"
#include "passes/passes.h"
#include "step/step.h"
#include "onnx/import/model_io.h"

#include "fuzz_bounds.h"
#include "fuzz_input.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Text or bytes that were written are one object, or more. */
static ot_status print(ot_status (*put)(const void *x, FILE *f), const void *x)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return OT_E_NOMEM;
    ot_status s = put(x, f);
    if (fclose(f) != 0 && s == OT_OK) s = OT_E_NOMEM;
    if (s == OT_OK && n == 0) OT_BUG("nothing was printed");
    free(text);
    return s;
}

#define PUT(name, type) \
    static ot_status put_##name(const void *x, FILE *f) { return ot_##name((const type *)x, f); }
PUT(geometry_print, ot_geometry)
PUT(geometry_json, ot_geometry)
PUT(geometry_bioimage, ot_geometry)
PUT(passes_print, ot_passes)
PUT(step_print, ot_step_facts)
PUT(step_json, ot_step_facts)

/* ---- geometry ---- */

static void expect_sound(const ot_geometry *g)
{
    for (uint32_t k = 0; k < g->n_pairs; k++)
        for (uint32_t j = 0; j < g->pairs[k].n_axes; j++) {
            const ot_geometry_axis *x = &g->pairs[k].axes[j];
            if (x->align < 1 || x->num < 1 || x->den < 1 || x->halo_lo < 0 || x->halo_hi < 0 ||
                x->least < 0 || x->axis >= g->pairs[k].output_rank ||
                x->input_axis >= g->pairs[k].input_rank)
                OT_BUG("no crop has such a geometry");
        }
}

static ot_status geometry(ot_model *m, const ot_shape_binding *bind, size_t n)
{
    ot_geometry *g = NULL;
    ot_status s = ot_geometry_find(m, bind, n, &g);
    if (s == OT_OK) expect_sound(g);
    if (s == OT_OK) s = print(put_geometry_print, g);
    if (s == OT_OK) s = print(put_geometry_json, g);
    if (s == OT_OK && print(put_geometry_bioimage, g) == OT_E_INPUT) s = OT_OK; /* not its kind */
    ot_geometry_free(g);
    return s;
}

/* ---- passes ---- */

static void read_file(const char *folder, const char *name)
{
    char path[4200];
    ot_diag d = {0};
    ot_model *m = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (ot_import_file(path, &d, &m) == OT_E_INPUT) {
        fprintf(stderr, "%s\n", d.message);
        OT_BUG("the tool does not read a pass that it wrote");
    }
    ot_model_free(m);
    if (unlink(path) != 0) OT_BUG("a pass was not written");
}

static ot_status passes(ot_model *m, const ot_shape_binding *bind, size_t n)
{
    char folder[] = "/tmp/onnx-tile-fuzz-XXXXXX", plan[sizeof folder + 12];
    ot_passes *x = NULL;
    if (!mkdtemp(folder)) return OT_OK;
    snprintf(plan, sizeof plan, "%s/plan.json", folder);
    const ot_passes_store store = (ot_passes_store)(n % 3);
    ot_status s = ot_passes_write(m, bind, n, store, folder, &x);
    if (s == OT_OK) s = print(put_passes_print, x);
    for (uint32_t k = 0; x && k <= x->n_passes; k++) read_file(folder, x->models[k].file);
    if (x && unlink(plan) != 0) OT_BUG("no plan was written");
    ot_passes_free(x);
    if (rmdir(folder) != 0) OT_BUG("a file was left");
    return s;
}

/* ---- steps ---- */

static ot_status step(ot_model *m, const ot_shape_binding *bind, size_t n, uint32_t h)
{
    ot_step_facts *facts = NULL;
    const ot_graph *g = m->graph;
    const char *input = g->n_inputs > 0 ? g->values[g->inputs[(h >> 4) % g->n_inputs]].name : "x";
    const ot_step_request r = {input, (h >> 8) % 4, (h >> 10) % 3 ? (h >> 12) % 9 : 0, bind, n};
    ot_status s = ot_step_write(m, &r, &facts);
    if (s == OT_OK && ot_verify(m->graph) != OT_OK) OT_BUG("a step does not verify");
    if (s == OT_OK) s = print(put_step_print, facts);
    if (s == OT_OK) s = print(put_step_json, facts);
    void *bytes = NULL;
    size_t size = 0;
    ot_model *again = NULL;
    ot_diag d = {0};
    if (s == OT_OK) s = ot_export_memory(m, &bytes, &size);
    if (s == OT_OK && ot_import_memory(bytes, size, NULL, &d, &again) == OT_E_INPUT) {
        fprintf(stderr, "%s\n", d.message);
        OT_BUG("the tool does not read a step that it wrote");
    }
    ot_model_free(again);
    free(bytes);
    return s;
}

/* The first input at another size, where the contents say so; returns how many bindings. */
static size_t bind_first(const ot_model *m, uint32_t h, int64_t *dims, ot_shape_binding *b)
{
    const ot_graph *g = m->graph;
    const ot_value *v = g->n_inputs > 0 ? &g->values[g->inputs[0]] : NULL;
    if (!v || v->rank < 1 || (h >> 16) % 4 != 0) return 0;
    for (int32_t k = 0; k < v->rank; k++)
        dims[k] = v->dims[k] > 0 && k < 2 ? v->dims[k] : 1 + (h >> (17 + k % 8)) % 61;
    *b = (ot_shape_binding){v->name, (uint32_t)v->rank, dims, false, NULL};
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int what = 0; what < 3; what++) {
        ot_diag d = {0};
        ot_model *m = NULL;
        int64_t dims[OT_RANK_MAX];
        ot_shape_binding b;
        const uint32_t h = fuzz_hash(data, size);
        fuzz_begin();
        ot_status s = fuzz_load(data, size, &d, &m);
        const size_t n = s == OT_OK ? bind_first(m, h, dims, &b) : 0;
        if (s == OT_OK)
            s = what == 0 ? geometry(m, &b, n) : what == 1 ? passes(m, &b, n) : step(m, &b, n, h);
        fuzz_expect_line(s, d.message);
        ot_model_free(m);
        if (atomic_load(&fuzz_alive) != 0) OT_BUG("something keeps memory");
        if (!m) return 0;
    }
    return 0;
}
