/* Hold what the engine merges against what the planner believes, for each model given.
 *
 *   compare_groups MODEL...
 *
 * Prints a line for each group that differs and one for each model; exit 1 when some differ.
 * Models that cannot be read, or that the engine does not run, are skipped: other tests speak of
 * them.
 */
#include "merged.h"

#include "ops/ops.h"
#include "onnx/import/model_io.h"

/* A model, or a graph in text form (.ot). */
static ot_status load(const char *path, ot_diag *d, ot_model **m)
{
    static char text[1 << 20];
    size_t n = strlen(path);
    if (n < 3 || strcmp(path + n - 3, ".ot")) return ot_import_file(path, d, m);
    FILE *f = fopen(path, "rb");
    if (!f) return ot_fail(d, OT_E_INPUT, "cannot open it");
    n = fread(text, 1, sizeof text, f);
    fclose(f);
    return ot_text_parse(text, n, d, m);
}

static uint32_t compare(const char *path)
{
    ot_diag d = {0};
    ot_model *m = NULL, *twin = NULL;
    ot_session *s = NULL;
    ot_arena *a = ot_arena_new();
    ot_target t;
    ot_seq seq;
    uint32_t differ = 0;
    if (!a || load(path, &d, &m) != OT_OK || load(path, &d, &twin) != OT_OK ||
        ot_session_new(twin, &(ot_session_options){0}, &d, &s) != OT_OK ||
        ot_infer_shapes(m->graph, NULL, 0) != OT_OK || ot_target_load("host", 1, &d, &t) != OT_OK) {
        printf("%s: skipped: %s\n", path, d.message);
    } else {
        ot_target_set_engine(&t);
        if (ot_seq_build(m->graph, a, &seq) != OT_OK || ot_cost_fill(&seq, &t) != OT_OK) {
            printf("%s: skipped: %s\n", path, d.message);
        } else {
            printf("%s: ", path);
            differ = merged_differences(s, &seq, stdout);
        }
    }
    ot_session_free(s);
    ot_model_free(twin);
    ot_model_free(m);
    ot_arena_free(a);
    return differ;
}

int main(int argc, char **argv)
{
    uint32_t differ = 0;
    for (int k = 1; k < argc; k++) differ += compare(argv[k]);
    return differ ? 1 : 0;
}
