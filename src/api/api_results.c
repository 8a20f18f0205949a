/* The public C API: what a run found, as text, JSON or a report. */
#include "report/facts/facts.h"
#include "handle.h"

static ot_status put_text(const ot_facts *f, onnx_tile_text form, FILE *out)
{
    switch (form) {
    case ONNX_TILE_TEXT_TABLE: return ot_results_print(f, f->kind == OT_FACTS_INSPECT, 0, out);
    case ONNX_TILE_TEXT_JSON: return ot_results_json(f, out);
    case ONNX_TILE_TEXT_EXPLAIN: return ot_explain_print(f, 0, out);
    case ONNX_TILE_TEXT_EXPLAIN_JSON: return ot_explain_json(f, out);
    case ONNX_TILE_TEXT_HTML: return ot_report_html(f, out);
    case ONNX_TILE_TEXT_XML: return ot_report_xml(f, out);
    case ONNX_TILE_TEXT_CSV: return ot_report_csv(f, out);
    }
    return OT_E_USAGE;
}

/* *text: malloc'ed; NULL on failure, which leaves its line. */
static ot_status make_text(onnx_tile *t, onnx_tile_text form, char **text)
{
    size_t n = 0;
    *text = NULL;
    if (t->progress != PLANNED)
        return ot_fail(&t->diag, OT_E_USAGE, "no results: optimise or inspect first");
    if (form < ONNX_TILE_TEXT_TABLE || form > ONNX_TILE_TEXT_CSV)
        return ot_fail(&t->diag, OT_E_USAGE, "results have no such form");
    if (form > ONNX_TILE_TEXT_JSON && !t->run.facts->complete)
        return ot_fail(&t->diag, OT_E_USAGE,
                       "no report was kept: call onnx_tile_keep_report before planning");
    FILE *f = open_memstream(text, &n);
    ot_status s = f ? put_text(t->run.facts, form, f) : OT_E_NOMEM;
    if (f && fclose(f) != 0) s = OT_E_NOMEM;
    if (s == OT_OK) return OT_OK;
    free(*text);
    *text = NULL;
    return ot_fail_nomem(&t->diag);
}

onnx_tile_status onnx_tile_results_text(onnx_tile *t, onnx_tile_text form, char **text)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    return text ? done(make_text(t, form, text)) : misuse(t, "the results need a place");
}

onnx_tile_status onnx_tile_results_json(onnx_tile *t, const char **json)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (!json) return misuse(t, "the results need a place");
    ot_status s = t->json && t->progress == PLANNED ? OT_OK
                                                    : make_text(t, ONNX_TILE_TEXT_JSON, &t->json);
    *json = t->json;
    return done(s);
}

onnx_tile_status onnx_tile_save_report(onnx_tile *t, const char *path)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (!path || !ot_report_is_known(path))
        return misuse(t, "a report's name ends in .html, .xml, .json or .csv");
    if (t->progress != PLANNED) return misuse(t, "no results: optimise or inspect first");
    if (!t->run.facts->complete)
        return misuse(t, "no report was kept: call onnx_tile_keep_report before planning");
    return done(ot_report_write(t->run.facts, path, &t->diag));
}

uint32_t onnx_tile_region_count(const onnx_tile *t)
{
    return t && t->progress == PLANNED ? t->run.facts->n_regions : 0;
}
