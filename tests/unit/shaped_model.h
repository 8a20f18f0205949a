/* Models from text, with shapes, order and uses. */
#ifndef TEST_SHAPED_MODEL_H
#define TEST_SHAPED_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/shape.h"

/* The caller frees it; it tells its failures to *d, which must live as long. */
static inline ot_model *read_model(const char *text, ot_diag *d)
{
    ot_model *m = NULL;
    *d = (ot_diag){0};
    if (ot_text_parse(text, strlen(text), d, &m) != OT_OK) fail_msg("%s\n%s", d->message, text);
    if (ot_infer_shapes(m->graph, NULL, 0) != OT_OK ||
        ot_assure(m->graph, OT_P_ORDER | OT_P_USES) != OT_OK)
        fail_msg("%s\n%s", d->message, text);
    return m;
}

/* Nodes of that operator which run. Requires ORDER. */
static inline uint32_t count_nodes(const ot_graph *g, ot_op op)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n_order; k++) n += g->nodes[g->order[k]].op == op;
    return n;
}

#endif
