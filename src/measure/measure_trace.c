/* A trace as a file: made in memory, so that the file appears whole or not at all. */
#include "measure.h"

#include "export/out_file.h"

static ot_status put_text(const char *text, size_t n, const char *path, ot_arena *a, ot_diag *d)
{
    ot_out out;
    OT_TRY(ot_out_open(&out, path, a, d));
    ot_sink_put(&out.sink, text, n);
    ot_status s = ot_out_seal(&out);
    if (s == OT_OK) s = ot_out_publish(&out);
    ot_out_close(&out);
    return s;
}

ot_status ot_trace_save(const ot_trace *t, const char *path, ot_arena *a, ot_diag *d)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    ot_status s = f ? ot_trace_write(t, f, d) : ot_fail_nomem(d);
    if (f && fclose(f) != 0 && s == OT_OK) s = ot_fail_nomem(d);
    if (s == OT_OK) s = put_text(text, n, path, a, d);
    free(text);
    return s;
}
