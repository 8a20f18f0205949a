/* What is told of passes. */
#include "passes.h"

#include "base/json.h"

static void put_statistic(ot_json *j, const ot_statistic *s)
{
    ot_json_open(j, NULL);
    ot_json_put_text(j, "name", s->name);
    ot_json_put_int(j, "pass", s->pass);
    ot_json_put_text(j, "kind", ot_statistic_kind_name(s->kind));
    ot_json_put_text(j, "node", s->node);
    ot_json_put_text(j, "op", s->op);
    ot_json_put_text(j, "value", s->value);
    ot_json_put_int(j, "rank", s->rank);
    ot_json_put_int(j, "numbers", s->size);
    ot_json_list(j, "owned");
    for (uint32_t k = 0; k < s->n_axes; k++) {
        ot_json_open(j, NULL);
        ot_json_put_int(j, "axis", s->axes[k]);
        ot_json_put_text(j, "input", s->owned[k]);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_close(j);
}

static void put_stored(ot_json *j, const ot_stored *s)
{
    ot_json_open(j, NULL);
    ot_json_put_text(j, "value", s->value);
    ot_json_put_int(j, "pass", s->pass);
    ot_json_put_text(j, "type", ot_dtype_name(s->dtype));
    ot_json_list(j, "shape");
    for (uint32_t k = 0; k < s->rank; k++) ot_json_put_int(j, NULL, s->dims[k]);
    ot_json_close(j);
    ot_json_put_int(j, "bytes", s->bytes);
    ot_json_close(j);
}

static void put_model(ot_json *j, const ot_pass_model *m)
{
    ot_json_open(j, NULL);
    ot_json_put_text(j, "model", m->file);
    ot_json_list(j, "inputs");
    for (uint32_t k = 0; k < m->n_inputs; k++) ot_json_put_text(j, NULL, m->inputs[k]);
    ot_json_close(j);
    ot_json_put_number(j, "macs", m->macs);
    ot_json_close(j);
}

ot_status ot_passes_json(const ot_passes *x, FILE *f)
{
    ot_json j = {.f = f};
    ot_json_open(&j, NULL);
    ot_json_put_int(&j, "version", 1);
    ot_json_put_number(&j, "macs", x->macs);
    ot_json_list(&j, "passes");
    for (uint32_t k = 0; k <= x->n_passes; k++) put_model(&j, &x->models[k]);
    ot_json_close(&j);
    ot_json_list(&j, "statistics");
    for (uint32_t k = 0; k < x->n_statistics; k++) put_statistic(&j, &x->statistics[k]);
    ot_json_close(&j);
    ot_json_list(&j, "stored");
    for (uint32_t k = 0; k < x->n_stored; k++) put_stored(&j, &x->stored[k]);
    ot_json_close(&j);
    ot_geometry_put(&j, x->geometry);
    if (x->n_stored > 0) {
        ot_json_open(&j, "whole");
        ot_geometry_put(&j, x->whole);
        ot_json_close(&j);
    }
    ot_json_close(&j);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

static void print_statistic(const ot_statistic *s, FILE *f)
{
    fprintf(f, "  %s of ", ot_statistic_kind_name(s->kind));
    ot_put_shown(s->value, f);
    fprintf(f, " for node ");
    ot_put_shown(s->node, f);
    fprintf(f, " (");
    ot_put_shown(s->op, f);
    fprintf(f, "): %lld number%s\n", (long long)s->size, s->size == 1 ? "" : "s");
}

static void print_stored(const ot_stored *s, FILE *f)
{
    char size[32];
    fprintf(f, "  writes ");
    ot_put_shown(s->value, f);
    fprintf(f, ", %s\n", ot_format_bytes((double)s->bytes, size, sizeof size));
}

ot_status ot_passes_print(const ot_passes *x, FILE *f)
{
    double sum = 0, written = 0;
    char size[32];
    for (uint32_t k = 0; k < x->n_stored; k++) written += (double)x->stored[k].bytes;
    for (uint32_t k = 0; k <= x->n_passes; k++) sum += x->models[k].macs;
    for (uint32_t k = 0; k <= x->n_passes; k++) {
        fprintf(f, "%-13s", x->models[k].file);
        if (x->macs > 0) fprintf(f, " x%.2f of the arithmetic", x->models[k].macs / x->macs);
        fputc('\n', f);
        for (uint32_t j = 0; j < x->n_statistics; j++)
            if (x->statistics[j].pass == k + 1) print_statistic(&x->statistics[j], f);
        for (uint32_t j = 0; j < x->n_stored; j++)
            if (x->stored[j].pass == k + 1) print_stored(&x->stored[j], f);
    }
    if (x->macs > 0 || written > 0) fprintf(f, "all passes   ");
    if (x->macs > 0) fprintf(f, " x%.2f of the arithmetic", sum / x->macs);
    if (written > 0)
        fprintf(f, "%s %s written", x->macs > 0 ? "," : "",
                ot_format_bytes(written, size, sizeof size));
    if (x->macs > 0 || written > 0) fputc('\n', f);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
