/* A trace as a file: made in memory, so that the file appears whole or not at all. */
#include "measure.h"

#include "onnx/export/out_file.h"

ot_status ot_trace_save(const ot_trace *t, const char *path, ot_diag *d)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    ot_status s = f ? ot_trace_write(t, f, d) : ot_fail_nomem(d);
    if (f && fclose(f) != 0 && s == OT_OK) s = ot_fail_nomem(d);
    if (s == OT_OK) s = ot_out_write(path, text, n, d);
    free(text);
    return s;
}
