/* One input through the whole path, in memory: import, shapes, plan, rewrite, verify, export,
 * and in again.
 *
 *   bytes --import--> graph --shapes, plan, plan check, rewrite, verify--> graph --export--> bytes
 *   --import--> must work
 *                                       `--facts--> reports in all four forms
 *
 * Bytes that begin with "model " are the text form. The contents choose the options, so that one
 * file always does the same. LLVMFuzzerTestOneInput is libFuzzer's entry (`make fuzz`); driver.c
 * calls it without libFuzzer (`make asan`, `make ubsan`). Whatever is wrong with an input must
 * end in a status and one line; what passes must verify and be readable again.
 */
#include "ops/ops.h"
#include "report/facts/facts.h"
#include "onnx/import/model_io.h"
#include "select/search/plan_search.h"
#include "transform/transform.h"
#include "../oracle/region_prices.h"
#include "fuzz_input.h"

#define VERSION_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A failure has one line that says so; anything else is our bug. */
static void expect_line(ot_status s, const ot_diag *d)
{
    if (s == OT_OK || s == OT_E_NOMEM) return;
    if (!*d->message || strchr(d->message, '\n')) OT_BUG("a failure without its one line");
}

/* A report of the plan in one of the forms, to nowhere. */
static ot_status report(const ot_graph *g, const ot_plan *p, const ot_target *t,
                        const ot_plan_options *o, uint32_t h)
{
    static ot_status (*const writers[])(const ot_facts *, FILE *) = {ot_report_html, ot_report_xml,
                                                                     ot_report_json, ot_report_csv};
    ot_facts *f = NULL;
    ot_status s = ot_facts_from_plan(g, p, t, o, "fuzz", NULL, OT_FACTS_INSPECT, &f);
    FILE *nowhere = s == OT_OK ? fopen("/dev/null", "we") : NULL;
    if (nowhere) {
        s = writers[(h >> 13) & 3](f, nowhere);
        if (s == OT_E_INPUT) OT_BUG("a report blames the input");
        fclose(nowhere);
    }
    ot_facts_free(f);
    return s == OT_E_SYSTEM ? OT_OK : s;
}

/* Shapes as the model states them, or with other extents of its first input. */
static ot_status infer(ot_model *m, uint32_t h)
{
    static const int64_t factors[] = {1, 2, 3, 1 << 20};
    const ot_graph *g = m->graph;
    const ot_value *v = g->n_inputs > 0 ? &g->values[g->inputs[0]] : NULL;
    int64_t dims[OT_RANK_MAX];
    if (!v || v->rank < 1 || (h >> 17) % 4 != 0) return ot_infer_shapes(m->graph, NULL, 0);
    for (int32_t k = 0; k < v->rank; k++)
        if (!ot_mul_i64(v->dims[k] > 0 ? v->dims[k] : 4,
                        k == 1 ? 1 : factors[(h >> (19 + k % 8)) & 3], &dims[k]))
            dims[k] = 1;
    const ot_shape_binding b = {v->name, (uint32_t)v->rank, dims, true, NULL};
    return ot_infer_shapes(m->graph, &b, 1);
}

static ot_status tile(ot_model *m, uint32_t h, ot_diag *d)
{
    static const char *const targets[] = {"cpu-generic", "ascend-a2", "mcu-512k", "tlf-16m"};
    ot_plan_options o = {.goal = h & 1 ? OT_GOAL_MEMORY : OT_GOAL_TIME,
                         .force = (h & 6) != 0,
                         .tie_break = (h & 8) != 0,
                         .max_slowdown = 0.1,
                         .detail = (h >> 15) % 4 == 0,
                         .force_form = (ot_form)((h >> 4) % 8)};
    ot_target t;
    ot_plan *p = NULL;
    if (o.force_form > OT_FORM_PRESCAN) o.force_form = OT_FORM_NONE;
    if ((h >> 21) % 4 == 0) o.max_tensor = INT64_C(64) << ((h >> 23) % 20);
    OT_TRY(infer(m, h));
    OT_TRY(ot_target_load(targets[(h >> 8) & 3], 0, d, &t));
    t.fast_bytes = 1024 << ((h >> 10) & 7);
    ot_status s = ot_plan_graph(m->graph, &t, &o, &p);
    if (s == OT_OK && check_plan_and_prices(m->graph, p, &t, &o, d) != OT_OK) {
        fprintf(stderr, "%s\n", d->message);
        OT_BUG("the plan check refuses the plan");
    }
    if (s == OT_OK && o.detail) s = report(m->graph, p, &t, &o, h);
    if (s == OT_OK && p->n_regions > 0) s = ot_overlay(m->graph, p);
    if (s == OT_OK && p->n_regions > 0) s = ot_fold_static(m->graph, p);
    if (s == OT_OK && p->n_regions > 0 && (s = ot_transform_tiles(m->graph, p)) == OT_E_INPUT)
        OT_BUG("a plan cannot be written");
    if (s == OT_OK && ot_verify(m->graph) != OT_OK) OT_BUG("the result does not verify");
    ot_plan_free(p);
    return s;
}

/* What was written can be read. */
static void read_again(const ot_model *m, ot_diag *d)
{
    void *bytes = NULL;
    size_t n = 0;
    ot_model *again = NULL;
    ot_diag other = {0};
    ot_status s = ot_export_memory(m, &bytes, &n);
    expect_line(s, d);
    if (s != OT_OK) return;
    s = ot_import_memory(bytes, n, NULL, &other, &again);
    if (s == OT_E_INPUT) {
        fprintf(stderr, "%s\n", other.message);
        OT_BUG("the tool does not read its own output");
    }
    ot_model_free(again);
    free(bytes);
}

/* The text form; NULL when it cannot be printed (no memory). The caller frees it. */
static char *text_of(const ot_model *m, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    bool ok = f && ot_text_print(m->graph, f) == OT_OK;
    if (f) ok &= fclose(f) == 0;
    if (ok) return text;
    free(text);
    return NULL;
}

/* The text form holds versions and element types that make sense only. */
static bool has_text(const ot_model *m)
{
    const ot_graph *g = m->graph;
    bool ok = m->ir_version >= 0 && m->ir_version <= VERSION_MAX && m->opset <= VERSION_MAX;
    for (uint32_t k = 0; k < g->n_values; k++)
        ok &= !g->values[k].init || g->values[k].init->dtype != OT_DT_UNKNOWN;
    for (uint32_t k = 0; k < g->n_nodes; k++) {
        const ot_node *n = &g->nodes[k];
        ok &= n->version >= 0 && n->version <= VERSION_MAX;
        for (uint32_t a = 0; a < n->n_attrs; a++)
            ok &= n->attrs[a].kind != OT_ATTR_TENSOR || n->attrs[a].t->dtype != OT_DT_UNKNOWN;
    }
    return ok;
}

/* Printed, parsed and printed again, the text is the same. */
static void print_again(const ot_model *m)
{
    if (!has_text(m)) return;
    size_t n = 0, n2 = 0;
    ot_diag d = {0};
    ot_model *again = NULL;
    char *text = text_of(m, &n), *other = NULL;
    if (text && ot_text_parse(text, n, &d, &again) == OT_E_INPUT) {
        fprintf(stderr, "%s\n%s\n", text, d.message);
        OT_BUG("the tool does not read its own text");
    }
    if (again && (other = text_of(again, &n2)) && (n != n2 || memcmp(text, other, n) != 0)) {
        fprintf(stderr, "%s\n--- became ---\n%s\n", text, other);
        OT_BUG("the text form changes when it is read and printed");
    }
    ot_model_free(again);
    free(text);
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_status s = fuzz_load(data, size, &d, &m);
    if (s == OT_OK) print_again(m);
    if (s == OT_OK) s = tile(m, fuzz_hash(data, size), &d);
    expect_line(s, &d);
    if (s == OT_OK) read_again(m, &d);
    ot_model_free(m);
    return 0;
}
