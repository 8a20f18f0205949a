/* A fresh folder under /tmp for each test of import and export, and models in it. */
#ifndef OT_IMPORT_FILES_H
#define OT_IMPORT_FILES_H

#include "import_check.h"

#include <glob.h>
#include <fcntl.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static inline int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/onnx-tile-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    wire_reset();
    return system(command);
}

static inline void bad(wire file, const char *part)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_status st = ot_import_memory(file.data, file.n, folder, &d, &m);
    if (st != OT_E_INPUT || !strstr(d.message, part))
        fail_msg("wanted '%s', got status %d: %s", part, st, d.message);
    assert_null(m);
}

static inline const ot_value *value(const ot_model *m, const char *name)
{
    ot_id v = ot_value_find(m->graph, name);
    if (v == OT_NONE) fail_msg("no value '%s'", name);
    return &m->graph->values[v];
}

/* x -> Relu -> y, with room for more of the graph's fields behind. */
static inline wire relu_graph(wire more)
{
    return W(w_msg(1, x_node("Relu", "x", "y", "r", W_NONE)), w_str(2, "g"), more,
             f32_info(11, "x"), f32_info(12, "y"));
}

static inline wire function(const char *name, const char *callee)
{
    wire n = W(x_node(callee, "a", "b", "", W_NONE), w_str(7, "d"));
    return w_msg(25, W(w_str(1, name), w_str(4, "a"), w_str(5, "b"), w_msg(7, n), w_str(10, "d")));
}

#endif
