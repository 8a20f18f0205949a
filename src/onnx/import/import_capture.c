/* What subgraphs read from outside: the captured values of a node.
 *
 * A subgraph may read any value of the graphs around it by name; names that it defines itself
 * (inputs, initializers, outputs of its nodes) hide outer ones. Scopes are chained, innermost
 * first:
 *
 *   Loop body:  {i, cond, x}  ->  If branch: {t}  ->  top graph
 *   "t" is found in the branch, "x" in the body, "w" in the top graph: captured by the Loop node.
 */
#include "import.h"

typedef struct scope {
    const struct scope *outer; /* NULL: the next one out is the top graph */
    ot_map *names;
} scope;

typedef struct collector {
    ot_importer *im;
    const char *label; /* names the top-level node */
    ot_map *seen;      /* captured names so far */
    ot_id *list;       /* [n] in scratch */
    uint32_t n;
    size_t cap;
} collector;

static ot_status nomem(const collector *c) { return ot_fail_nomem(c->im->d); }

static bool define(const scope *s, const char *name)
{
    return !name || !name[0] || ot_map_put(s->names, name, 1);
}

static ot_status define_all(const collector *c, const scope *s, const Onnx__GraphProto *p)
{
    bool ok = true;
    for (size_t k = 0; k < p->n_input; k++) ok = ok && define(s, p->input[k]->name);
    for (size_t k = 0; k < p->n_initializer; k++) ok = ok && define(s, p->initializer[k]->name);
    for (size_t k = 0; k < p->n_sparse_initializer; k++) {
        const Onnx__TensorProto *values = p->sparse_initializer[k]->values;
        ok = ok && (!values || define(s, values->name));
    }
    for (size_t k = 0; k < p->n_node; k++)
        for (size_t j = 0; j < p->node[k]->n_output; j++)
            ok = ok && define(s, p->node[k]->output[j]);
    return ok ? OT_OK : nomem(c);
}

static ot_status read_name(collector *c, const scope *s, const char *name, const char *graph)
{
    if (!name || !name[0]) return OT_OK;
    for (; s; s = s->outer)
        if (ot_map_get(s->names, name) != OT_NONE) return OT_OK;
    if (ot_map_get(c->seen, name) != OT_NONE) return OT_OK;
    bool no_memory;
    ot_id v = ot_import_lookup(c->im, name, &no_memory);
    if (no_memory) return nomem(c);
    if (v == OT_NONE)
        return ot_fail(c->im->d, OT_E_INPUT,
                       "%s: its subgraph '%.*s' reads '%.*s', which is defined nowhere", c->label,
                       OT_NAME_SHOWN, ot_text(graph), OT_NAME_SHOWN, name);
    if (!ot_map_put(c->seen, name, v)) return nomem(c);
    return OT_PUSH(c->im->scratch, c->list, c->n, c->cap, v) ? OT_OK : nomem(c);
}

static ot_status walk_attrs(collector *c, const scope *outer, const Onnx__NodeProto *p,
                            unsigned depth);

static ot_status walk_graph(collector *c, const scope *outer, const Onnx__GraphProto *p,
                            unsigned depth)
{
    if (depth > OT_NESTING_MAX)
        return ot_fail(c->im->d, OT_E_INPUT, "%s: subgraphs are nested more than %d deep", c->label,
                       OT_NESTING_MAX);
    scope s = {.outer = outer, .names = ot_map_new(c->im->scratch)};
    if (!s.names) return nomem(c);
    OT_TRY(define_all(c, &s, p));
    for (size_t k = 0; k < p->n_node; k++) {
        const Onnx__NodeProto *n = p->node[k];
        for (size_t j = 0; j < n->n_input; j++) OT_TRY(read_name(c, &s, n->input[j], p->name));
        OT_TRY(walk_attrs(c, &s, n, depth));
    }
    for (size_t k = 0; k < p->n_output; k++) OT_TRY(read_name(c, &s, p->output[k]->name, p->name));
    return OT_OK;
}

static ot_status walk_attrs(collector *c, const scope *outer, const Onnx__NodeProto *p,
                            unsigned depth)
{
    for (size_t k = 0; k < p->n_attribute; k++) {
        const Onnx__AttributeProto *a = p->attribute[k];
        if (a->g) OT_TRY(walk_graph(c, outer, a->g, depth + 1));
        for (size_t j = 0; j < a->n_graphs; j++)
            OT_TRY(walk_graph(c, outer, a->graphs[j], depth + 1));
    }
    return OT_OK;
}

ot_status ot_import_captures(ot_importer *im, const Onnx__NodeProto *p, const char *label,
                             ot_id **out, uint32_t *n)
{
    *out = NULL;
    *n = 0;
    bool any = false;
    for (size_t k = 0; k < p->n_attribute; k++)
        any = any || p->attribute[k]->g || p->attribute[k]->n_graphs;
    if (!any) return OT_OK;
    collector c = {.im = im, .label = label, .seen = ot_map_new(im->scratch)};
    if (!c.seen) return nomem(&c);
    OT_TRY(walk_attrs(&c, NULL, p, 0));
    *out = ot_memdup(im->m->arena, c.list, c.n * sizeof *c.list);
    if (!*out) return nomem(&c);
    *n = c.n;
    return OT_OK;
}
