/* Which nodes of a model the engine runs by reference implementations: told before anything runs.
 *
 *   "Det 'd'; Unique 'u1', 'u2', 'u3' and 4 more"
 */
#include "pipeline.h"

#ifdef OT_ENGINE
#include "engine/core/engine.h"

enum { NAMED = 3, TEXT = 600 }; /* nodes of an operator that are named; characters in all */

/* Is it slow, and of the same operator as n? */
static bool is_alike(const ot_graph *g, const ot_node *x, const ot_node *n)
{
    return !x->dead && strcmp(x->op_type, n->op_type) == 0 && ot_op_is_slow(g, x);
}

static bool was_told(const ot_graph *g, const ot_node *n)
{
    for (const ot_node *x = g->nodes; x < n; x++)
        if (is_alike(g, x, n)) return true;
    return false;
}

/* More text behind what there is; what finds no room is cut. */
static void put(char *text, const char *format, const char *what)
{
    size_t at = strlen(text);
    snprintf(text + at, TEXT - at, format, what);
}

/* Node n and those behind it that are like it. */
static void put_operator(const ot_graph *g, const ot_node *n, char *text)
{
    uint32_t count = 0;
    char more[40];
    put(text, *text ? "; %.100s" : "%.100s", n->op_type);
    for (const ot_node *x = n; x < g->nodes + g->n_nodes; x++) {
        if (!is_alike(g, x, n)) continue;
        const char *name = x->name[0] || x->n_out == 0 || x->out[0] == OT_NONE
                               ? x->name
                               : g->values[x->out[0]].name;
        if (++count <= NAMED) put(text, count > 1 ? ", '%.100s'" : " '%.100s'", name);
    }
    snprintf(more, sizeof more, "%u", count - NAMED);
    if (count > NAMED) put(text, " and %s more", more);
}

const char *ot_slow_nodes_text(const ot_graph *g, ot_arena *a)
{
    char text[TEXT] = "";
    for (const ot_node *n = g->nodes; n < g->nodes + g->n_nodes; n++)
        if (!n->dead && ot_op_is_slow(g, n) && !was_told(g, n)) put_operator(g, n, text);
    return ot_strdup(a, text);
}
#else
const char *ot_slow_nodes_text(const ot_graph *g, ot_arena *a) { return (void)g, ot_strdup(a, ""); }
#endif
