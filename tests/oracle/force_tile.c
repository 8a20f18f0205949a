/* force_tile MODEL OUT FORM AXES TILES [VALUE] [--loop]: tile what ends at VALUE (default: the
 * first graph output) in one given form, whether it pays or not. AXES and TILES are numbers or
 * comma lists ("2" "4", "2,3" "4,3"). Used by forms.py, which compares MODEL and OUT in a
 * runtime.
 *
 * Exit: 0 written (prints "nodes N"), 5 the form is not legal for that region (the reason is
 * printed), 1 anything else.
 */
#include "transform/transform_internal.h"
#include "hand_plan.h"
#include "onnx/import/model_io.h"

static uint32_t numbers(const char *text, long rank, uint32_t *out)
{
    uint32_t n = 0;
    for (const char *p = text; *p && n < OT_DIMS_MAX; p += *p == ',') {
        char *end;
        long x = strtol(p, &end, 10);
        if (end == p) return 0;
        out[n++] = (uint32_t)(x < 0 ? x + rank : x);
        p = end;
    }
    return n;
}

static ot_form form_of(const char *name)
{
    static const char *const names[] = {"none", "scan", "unrolled", "peeled", "loop", "prescan"};
    for (int f = OT_FORM_SCAN; f <= OT_FORM_PRESCAN; f++)
        if (!strcmp(name, names[f])) return (ot_form)f;
    return OT_FORM_NONE;
}

static int tile(ot_model *m, char **argv, const char *value, bool force_loop, ot_arena *a)
{
    ot_graph *g = m->graph;
    uint32_t axes[OT_DIMS_MAX], tiles[OT_DIMS_MAX];
    ot_why why = OT_WHY_NONE;
    ot_region r;
    if (ot_infer_shapes(g, NULL, 0) || ot_assure(g, OT_P_ORDER | OT_P_USES)) return 1;
    ot_id sink = value ? ot_value_find(g, value) : g->outputs[0];
    if (sink == OT_NONE) return fprintf(stderr, "no value '%s'\n", value), 1;
    uint32_t n = numbers(argv[4], g->values[sink].rank, axes);
    if (n == 0 || numbers(argv[5], 0, tiles) != n)
        return fprintf(stderr, "AXES and TILES do not match\n"), 1;
    ot_form form = form_of(argv[3]);
    if (!hand_plan(g, sink, n, axes, tiles, form, a, &r, &why)) {
        printf("cannot be cut: %s\n", ot_reason_sentence(why));
        return 5;
    }
    bool legal;
    if (ot_form_legal(g, &r, form, 0, &legal, &why) != OT_OK || !legal) {
        printf("not legal: %s\n", ot_reason_sentence(why));
        return 5;
    }
    ot_plan p = {.arena = a, .regions = &r, .n_regions = 1};
    printf("nodes %u\n", r.n_nodes);
    if (ot_fold_static(g, &p) || rw_rewrite(g, g, &p, force_loop) || ot_verify(g)) return 1;
    return ot_export_file(m, argv[2]) != OT_OK;
}

int main(int argc, char **argv)
{
    ot_diag diag = {0};
    ot_model *m = NULL;
    bool force_loop = argc > 6 && !strcmp(argv[argc - 1], "--loop");
    argc -= force_loop;
    if (argc < 6 || argc > 7)
        return fprintf(stderr, "force_tile MODEL OUT FORM AXES TILES [VALUE] [--loop]\n"), 1;
    ot_arena *a = ot_arena_new();
    int rc = 1;
    if (a && ot_import_file(argv[1], &diag, &m) == OT_OK)
        rc = tile(m, argv, argc > 6 ? argv[6] : NULL, force_loop, a);
    if (rc == 1) fprintf(stderr, "force_tile: %s\n", diag.message);
    ot_model_free(m);
    ot_arena_free(a);
    return rc;
}
