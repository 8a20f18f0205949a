/* Models of the tests of import and export: read from messages encoded by hand, and written again.
 */
#ifndef OT_IMPORT_CHECK_H
#define OT_IMPORT_CHECK_H

#include "onnx/import/model_io.h"
#include "wire.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static inline ot_model *good(wire file)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_status st = ot_import_memory(file.data, file.n, NULL, &d, &m);
    if (st != OT_OK) fail_msg("refused: %s", d.message);
    return m;
}

static inline wire exported(const ot_model *m)
{
    void *bytes = NULL;
    size_t n;
    if (ot_export_memory(m, &bytes, &n) != OT_OK) fail_msg("%s", m->diag ? m->diag->message : "?");
    wire out = w_cat((wire){bytes, n}, W_NONE);
    free(bytes);
    return out;
}

static inline wire f32_info(unsigned field, const char *name)
{
    return w_msg(field, x_value_info(name, 1, DIMS(1, 2)));
}

#endif
