/* A report goes to the form that its file's name asks for, and appears whole or not at all.
 *
 *   facts --> writer of .html, .xml, .json, .csv --> memory --> temporary file beside it -->
 *   renamed
 */
#include "report/facts/facts_table.h"

#include "onnx/export/out_file.h"

#include <strings.h>

typedef ot_status (*report_writer)(const ot_facts *f, FILE *out);

static report_writer writer_of(const char *path)
{
    static const struct {
        const char *end;
        report_writer write;
    } forms[] = {{".html", ot_report_html},
                 {".xml", ot_report_xml},
                 {".json", ot_report_json},
                 {".csv", ot_report_csv}};
    size_t n = strlen(path);
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        size_t m = strlen(forms[k].end);
        if (n > m && strcasecmp(path + n - m, forms[k].end) == 0) return forms[k].write;
    }
    return NULL;
}

bool ot_report_is_known(const char *path) { return writer_of(path) != NULL; }

ot_status ot_report_write(const ot_facts *f, const char *path, ot_diag *d)
{
    report_writer write = writer_of(path);
    char *text = NULL;
    size_t n = 0;
    if (!write)
        return ot_fail(d, OT_E_USAGE, "'%s': a report's name ends in .html, .xml, .json or .csv",
                       path);

    ot_arena *a = ot_arena_new();
    FILE *memory = a ? open_memstream(&text, &n) : NULL;
    /* nothing can fail in memory but memory */
    ot_status st = memory ? write(f, memory) : OT_E_NOMEM;
    if (memory && fclose(memory) != 0) st = OT_E_NOMEM;
    st = st == OT_OK ? ot_out_write(path, text, n, d) : ot_fail_nomem(d);
    free(text);
    ot_arena_free(a);
    return st;
}
