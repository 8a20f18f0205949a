/* geometry: see geometry_command.h. */
#include "geometry_command.h"

#include "app/pipeline.h"
#include "geometry/geometry.h"

ot_status ot_geometry_command(const ot_geometry_request *r, ot_diag *d)
{
    ot_run run = {.diag = d, .source = {.path = r->model}};
    ot_geometry *g = NULL;
    ot_status s = ot_run_load(&run);
    if (s == OT_OK) s = ot_geometry_find(run.model, r->shapes, r->n_shapes, &g);
    if (s == OT_OK && r->json)
        s = ot_geometry_json(g, stdout);
    else if (s == OT_OK && r->bioimage)
        s = ot_geometry_bioimage(g, stdout);
    else if (s == OT_OK && !r->quiet)
        s = ot_geometry_print(g, stdout);
    ot_geometry_free(g);
    ot_run_free(&run);
    return s;
}
