/* Draw a graph for Graphviz (`dot -Tsvg`).
 *
 *   box       an operator, filled with the colour of its region; a thick red frame marks a barrier
 *             that keeps a value
 *             from being cut; a plain white box is in no region
 *   ellipse   a graph input or output
 *   edge      a value; its label is the shape. Weights are not drawn: a node says how many it reads
 *   dashed    a value that a body captures
 *
 * Bodies become one box with their number of nodes; they can be drawn by themselves. Names come
 * from strangers, so labels are escaped and cut. Output depends on the graph only.
 */
#include "ir.h"

#define LABEL_MAX 48 /* bytes of a name that are shown */

/* Light fills with dark text; twelve, then again from the start. */
static const char *const region_fill[] = {"#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6",
                                          "#ffff99", "#fb9a99", "#8dd3c7", "#bebada",
                                          "#80b1d3", "#fdb462", "#b3de69", "#fccde5"};

#define N_FILLS (sizeof region_fill / sizeof *region_fill)

static void put_label(FILE *f, const char *s)
{
    /* the end of a path says most */
    size_t n = strlen(s), from = n > LABEL_MAX ? n - LABEL_MAX : 0;
    if (from) fputs("...", f);
    for (s += from; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else
            fputc(c < 0x20 || c >= 0x7f ? '?' : c, f);
    }
}

static void put_shape(FILE *f, const ot_value *v)
{
    if (v->rank < 0) return;
    for (int32_t k = 0; k < v->rank; k++) {
        if (k) fputc('x', f);
        if (v->dims[k] < 0)
            fputc('?', f);
        else
            fprintf(f, "%lld", (long long)v->dims[k]);
    }
    if (v->rank == 0) fputs("scalar", f);
}

static bool is_weight(const ot_value *v)
{
    return v->producer == OT_NONE && v->init && !v->overridable;
}

static void put_node(FILE *f, const ot_graph *g, ot_id id, uint32_t region)
{
    const ot_node *n = &g->nodes[id];
    uint32_t weights = 0, body_nodes = 0;
    for (uint32_t k = 0; k < n->n_in; k++)
        weights += n->in[k] != OT_NONE && is_weight(&g->values[n->in[k]]);
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].kind == OT_ATTR_GRAPH && n->attrs[k].g)
            body_nodes += n->attrs[k].g->n_nodes;
    fprintf(f, "  n%u [label=\"", id);
    if (n->domain[0]) {
        put_label(f, n->domain);
        fputs("::", f);
    }
    put_label(f, n->op_type);
    if (n->name[0]) {
        fputs("\\n", f);
        put_label(f, n->name);
    }
    if (weights) fprintf(f, "\\n%u constant%s", weights, weights > 1 ? "s" : "");
    if (body_nodes) fprintf(f, "\\nbody of %u nodes", body_nodes);
    if (region != OT_NONE) fprintf(f, "\\nregion %u", region);
    fputc('"', f);
    if (region != OT_NONE) fprintf(f, ", fillcolor=\"%s\"", region_fill[region % N_FILLS]);
    if (ot_op_access(n->op) == OT_ACC_BARRIER) fputs(", color=\"#c00000\", penwidth=2", f);
    fputs("];\n", f);
}

static void put_edge_label(FILE *f, const ot_value *v, const char *style)
{
    fputs(" [label=\"", f);
    put_shape(f, v);
    fprintf(f, "\"%s];\n", style);
}

/* Edges into node `reader`. A weight has no box, so it has no edge. */
static void put_edges(FILE *f, const ot_graph *g, ot_id reader)
{
    const ot_node *n = &g->nodes[reader];
    for (uint32_t k = 0; k < n->n_in + n->n_captured; k++) {
        bool captured = k >= n->n_in;
        ot_id r = captured ? n->captured[k - n->n_in] : n->in[k];
        if (r == OT_NONE) continue;
        const ot_value *v = &g->values[r];
        if (v->producer != OT_NONE)
            fprintf(f, "  n%u -> n%u", v->producer, reader);
        else if (v->is_input || v->is_outer)
            fprintf(f, "  v%u -> n%u", r, reader);
        else
            continue;
        put_edge_label(f, v, captured ? ", style=dashed" : "");
    }
}

static void put_terminal(FILE *f, const char *id_prefix, ot_id id, const ot_value *v,
                         const char *what)
{
    fprintf(f, "  %s%u [shape=ellipse, fillcolor=\"#eeeeee\", label=\"%s ", id_prefix, id, what);
    put_label(f, v->name);
    fputs("\"];\n", f);
}

/* requires USES (producers); uses ORDER when it holds. keeps everything. */
ot_status ot_dot_print(const ot_graph *g, const uint32_t *region_of, FILE *f)
{
    fputs("digraph \"", f);
    put_label(f, g->name);
    fputs(
        "\" {\n  rankdir=TB;\n"
        "  node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\", fontsize=10];\n"
        "  edge [fontname=\"sans-serif\", fontsize=8];\n",
        f);
    for (ot_id v = 0; v < g->n_values; v++) {
        if (g->values[v].is_outer)
            put_terminal(f, "v", v, &g->values[v], "outer");
        else if (g->values[v].is_input)
            put_terminal(f, "v", v, &g->values[v], "input");
    }
    bool ordered = g->props & OT_P_ORDER;
    uint32_t count = ordered ? g->n_order : g->n_nodes;
    for (uint32_t k = 0; k < count; k++) {
        ot_id id = ordered ? g->order[k] : k;
        if (!g->nodes[id].dead) put_node(f, g, id, region_of ? region_of[id] : OT_NONE);
    }
    for (uint32_t k = 0; k < count; k++) {
        ot_id id = ordered ? g->order[k] : k;
        if (!g->nodes[id].dead) put_edges(f, g, id);
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        const ot_value *v = &g->values[g->outputs[k]];
        put_terminal(f, "o", k, v, "output");
        if (v->producer != OT_NONE)
            fprintf(f, "  n%u -> o%u", v->producer, k);
        else if (v->is_input || v->is_outer)
            fprintf(f, "  v%u -> o%u", g->outputs[k], k);
        else
            continue;
        put_edge_label(f, v, "");
    }
    fputs("}\n", f);
    return fflush(f) != 0 || ferror(f) ? OT_E_SYSTEM : OT_OK;
}
