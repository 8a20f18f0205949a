/* What is told of a step. */
#include "step.h"

#include "base/json.h"

static void put_rows(ot_json *j, const ot_step_rows *r, bool is_output)
{
    ot_json_open(j, NULL);
    ot_json_put_text(j, "name", r->name);
    ot_json_put_int(j, "axis", r->axis);
    ot_json_put_int(j, "rows", r->rows);
    ot_json_put_int(j, "num", r->num);
    ot_json_put_int(j, "den", r->den);
    if (is_output) ot_json_put_int(j, "delay", r->delay);
    if (is_output) ot_json_put_text(j, "valid", r->valid);
    ot_json_close(j);
}

ot_status ot_step_json(const ot_step_facts *x, FILE *f)
{
    ot_json j = {.f = f};
    ot_json_open(&j, NULL);
    ot_json_put_int(&j, "version", 1);
    ot_json_put_text(&j, "input", x->named);
    ot_json_put_int(&j, "rows", x->named_rows);
    ot_json_put_text(&j, "count", x->count);
    ot_json_put_int(&j, "flush", x->flush);
    ot_json_put_int(&j, "align", x->align);
    ot_json_list(&j, "remainders");
    for (uint32_t k = 0; k < x->n_remainders; k++) ot_json_put_int(&j, NULL, x->remainders[k]);
    ot_json_close(&j);
    ot_json_list(&j, "inputs");
    for (uint32_t k = 0; k < x->n_inputs; k++) put_rows(&j, &x->inputs[k], false);
    ot_json_close(&j);
    ot_json_list(&j, "outputs");
    for (uint32_t k = 0; k < x->n_outputs; k++) put_rows(&j, &x->outputs[k], true);
    ot_json_close(&j);
    ot_json_list(&j, "states");
    for (uint32_t k = 0; k < x->n_states; k++) {
        const ot_step_state *s = &x->states[k];
        ot_json_open(&j, NULL);
        ot_json_put_text(&j, "from", s->from);
        ot_json_put_text(&j, "to", s->to);
        ot_json_put_text(&j, "type", ot_dtype_name(s->type.dtype));
        ot_json_list(&j, "shape");
        for (int32_t a = 0; a < s->type.rank; a++) ot_json_put_int(&j, NULL, s->type.dims[a]);
        ot_json_close(&j);
        ot_json_close(&j);
    }
    ot_json_close(&j);
    ot_json_put_int(&j, "state_bytes", x->state_bytes);
    ot_json_close(&j);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

static void print_rows(const char *what, const ot_step_rows *r, FILE *f)
{
    fprintf(f, "%s ", what);
    ot_put_shown(r->name, f);
    fprintf(f, ": %lld row%s of axis %u", (long long)r->rows, r->rows == 1 ? "" : "s", r->axis);
    if (r->delay > 0) fprintf(f, ", %lld late", (long long)r->delay);
    if (r->valid) {
        fprintf(f, ", those that ");
        ot_put_shown(r->valid, f);
        fprintf(f, " says");
    }
    fputc('\n', f);
}

ot_status ot_step_print(const ot_step_facts *x, FILE *f)
{
    char bytes[32];
    for (uint32_t k = 0; k < x->n_inputs; k++) print_rows("input ", &x->inputs[k], f);
    for (uint32_t k = 0; k < x->n_outputs; k++) print_rows("output", &x->outputs[k], f);
    fprintf(f, "state   %u tensor%s, %s, at first 0\n", x->n_states, x->n_states == 1 ? "" : "s",
            ot_format_bytes((double)x->state_bytes, bytes, sizeof bytes));
    if (x->count) {
        fprintf(f, "end     ");
        ot_put_shown(x->count, f);
        fprintf(f, " says how many rows a step brings; then %lld step%s of 0\n",
                (long long)x->flush, x->flush == 1 ? "" : "s");
    }
    if (x->n_remainders > 0) {
        fprintf(f, "extent  of all rows: modulo %lld,", (long long)x->align);
        for (uint32_t k = 0; k < x->n_remainders && k < 8; k++)
            fprintf(f, " %lld", (long long)x->remainders[k]);
        fputs(x->n_remainders > 8 ? " ...\n" : "\n", f);
    }
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
