/* force_unjoined MODEL OUT VALUE AXIS FORM TILES FORM TILES: two regions, what makes VALUE and
 * what makes the first graph output of it, each with its form (peeled, stream) and as many tiles
 * along the axis. What goes from the first to the second stays in pieces where that is possible
 * (src/transform/unjoined_tiles.c). Used by tests/e2e/unjoined_tiles.sh, which compares MODEL
 * and OUT.
 *
 * Exit: 0 written, 5 a region has no such form (the reason is printed), 1 anything else.
 */
#include "transform/transform_internal.h"
#include "hand_plan.h"
#include "onnx/import/model_io.h"

static int plan_region(ot_graph *g, ot_id from, ot_id sink, uint32_t axis, char **how, ot_arena *a,
                       ot_region *r)
{
    const ot_form form = strcmp(how[0], "stream") == 0 ? OT_FORM_STREAM : OT_FORM_PEELED;
    const uint32_t tiles = (uint32_t)strtoul(how[1], NULL, 10);
    ot_why why = OT_WHY_NONE;
    bool legal = hand_plan_from(g, from, sink, 1, &axis, &tiles, form, a, r, &why) > 0;
    if (legal && ot_form_legal(g, r, form, 0, &legal, &why) != OT_OK) return 1;
    if (!legal) printf("not legal: %s\n", ot_reason_sentence(why));
    return legal ? 0 : 5;
}

static int tile(ot_model *m, char **argv, ot_arena *a)
{
    ot_graph *g = m->graph;
    ot_region r[2];
    if (ot_infer_shapes(g, NULL, 0) || ot_assure(g, OT_P_ORDER | OT_P_USES)) return 1;
    const ot_id between = ot_value_find(g, argv[3]);
    const uint32_t axis = (uint32_t)strtoul(argv[4], NULL, 10);
    if (between == OT_NONE) return fprintf(stderr, "no value '%s'\n", argv[3]), 1;
    int rc = plan_region(g, OT_NONE, between, axis, argv + 5, a, &r[0]);
    if (rc == 0) rc = plan_region(g, between, g->outputs[0], axis, argv + 7, a, &r[1]);
    if (rc) return rc;
    r[1].id = 1;
    ot_plan p = {.arena = a, .regions = r, .n_regions = 2, .unjoined_from = 1};
    if (ot_fold_static(g, &p) || rw_rewrite(g, g, &p, false) || ot_verify(g)) return 1;
    return ot_export_file(m, argv[2]) != OT_OK;
}

int main(int argc, char **argv)
{
    ot_diag diag = {0};
    ot_model *m = NULL;
    if (argc != 9)
        return fprintf(stderr, "force_unjoined MODEL OUT VALUE AXIS FORM TILES FORM TILES\n"), 1;
    ot_arena *a = ot_arena_new();
    int rc = 1;
    if (a && ot_import_file(argv[1], &diag, &m) == OT_OK) rc = tile(m, argv, a);
    if (rc == 1) fprintf(stderr, "force_unjoined: %s\n", diag.message);
    ot_model_free(m);
    ot_arena_free(a);
    return rc;
}
