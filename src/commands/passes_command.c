/* passes: see passes_command.h. */
#include "passes_command.h"

#include "app/pipeline.h"

ot_status ot_passes_command(const ot_passes_request *r, ot_diag *d)
{
    ot_run run = {.diag = d, .source = {.path = r->model}};
    ot_passes *x = NULL;
    ot_status s = ot_run_load(&run);
    if (s == OT_OK) s = ot_passes_write(run.model, r->shapes, r->n_shapes, r->store, r->folder, &x);
    if (s == OT_OK && r->json)
        s = ot_passes_json(x, stdout);
    else if (s == OT_OK && !r->quiet)
        s = ot_passes_print(x, stdout);
    ot_passes_free(x);
    ot_run_free(&run);
    return s;
}
