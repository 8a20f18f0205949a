/* Which nodes have a faster kernel than the reference. Asked once a node, when a session is made, unless it is to use references. */
#include "engine.h"

ot_kernel_fn ot_kernel_fast(const ot_graph *g, const ot_node *n)
{
    (void)g;
    (void)n;
    return NULL;
}
