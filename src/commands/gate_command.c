/* gate: see gate_command.h. */
#include "gate_command.h"

#include "report/facts/facts_table.h"

static bool is_report(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".xml") == 0;
}

static ot_status judge(const ot_gate_request *r, const ot_facts *now, ot_diag *d)
{
    ot_facts *base = NULL;
    ot_gate gate;
    ot_status s = r->baseline ? ot_report_read(r->baseline, d, &base) : OT_OK;
    if (s == OT_OK) s = ot_gate_judge(now, base, r->baseline, &r->limits, d, &gate);
    if (s == OT_OK && r->json)
        s = ot_gate_json(&gate, stdout);
    else if (s == OT_OK && !r->quiet)
        s = ot_gate_print(&gate, stdout);
    if (s == OT_OK) s = ot_gate_result(&gate, d);
    ot_facts_free(base);
    return s;
}

static ot_status gate_report(const ot_gate_request *r, ot_diag *d)
{
    ot_facts *now = NULL;
    if (r->n_reports)
        return ot_fail(d, OT_E_USAGE, "'%s' is a report already: --report is for models", r->model);
    ot_status s = ot_report_read(r->model, d, &now);
    if (s == OT_OK) s = judge(r, now, d);
    ot_facts_free(now);
    return s;
}

ot_status ot_gate_command(const ot_gate_request *r, ot_diag *d)
{
    ot_run run = {.diag = d, .options = r->tile, .source = {.path = r->model}};
    if (is_report(r->model)) return gate_report(r, d);
    ot_status s = ot_run_load(&run);
    if (s == OT_OK) s = ot_run_tile(&run, true);
    for (size_t k = 0; k < r->n_reports && s == OT_OK; k++)
        s = ot_report_write(run.facts, r->reports[k], d);
    if (s == OT_OK) s = judge(r, run.facts, d);
    ot_run_free(&run);
    return s;
}
