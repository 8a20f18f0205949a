/* --emit step: see step_command.h. */
#include "step_command.h"

#include "app/pipeline.h"

#include <errno.h>

ot_status ot_step_command(const ot_step_command_request *r, ot_diag *d)
{
    ot_run run = {.diag = d, .source = {.path = r->model}, .output = r->output};
    ot_step_facts *facts = NULL;
    ot_status s = ot_run_load(&run);
    if (s == OT_OK) s = ot_step_write(run.model, &r->step, &facts);
    if (s == OT_OK && r->json)
        s = ot_step_json(facts, stdout);
    else if (s == OT_OK && r->table)
        s = ot_step_print(facts, r->table);
    if (s == OT_OK && fflush(stdout) != 0)
        s = ot_fail(d, OT_E_SYSTEM, "cannot write standard output: %s", strerror(errno));
    if (s == OT_OK) s = ot_run_save(&run);
    ot_run_free(&run);
    return s;
}
