/* The model message around the graph: versions, imports, everything else as it came.
 */
#include "export.h"

#define UNCONST(type, p) ((type)(uintptr_t)(p))

typedef struct imports {
    ot_exporter *ex;
    Onnx__OperatorSetIdProto **list; /* [n] */
    size_t n, cap;
} imports;

static bool imported(const imports *im, const char *domain)
{
    for (size_t k = 0; k < im->n; k++) {
        const char *have = im->list[k]->domain ? im->list[k]->domain : "";
        if (strcmp(have, "ai.onnx") == 0) have = "";
        if (strcmp(have, domain) == 0) return true;
    }
    return false;
}

static ot_status add_import(imports *im, const char *domain, int64_t version)
{
    Onnx__OperatorSetIdProto *o = OT_NEW(im->ex->a, Onnx__OperatorSetIdProto);
    if (!o) return ot_fail_nomem(im->ex->d);
    onnx__operator_set_id_proto__init(o);
    o->domain = UNCONST(char *, domain);
    o->has_version = 1;
    o->version = version;
    return OT_PUSH(im->ex->a, im->list, im->n, im->cap, o) ? OT_OK : ot_fail_nomem(im->ex->d);
}

/* The file's imports; that of the standard domain follows m->opset when it was raised. */
static ot_status take_imports(imports *im, const Onnx__ModelProto *old)
{
    const ot_model *m = im->ex->m;
    for (size_t k = 0; old && k < old->n_opset_import; k++) {
        Onnx__OperatorSetIdProto *o = old->opset_import[k];
        bool standard = !o->domain || !o->domain[0] || strcmp(o->domain, "ai.onnx") == 0;
        if (standard && im->ex->raised) {
            Onnx__OperatorSetIdProto *raised = ot_memdup(im->ex->a, o, sizeof *o);
            if (!raised) return ot_fail_nomem(im->ex->d);
            raised->has_version = 1;
            raised->version = m->opset;
            o = raised;
        }
        if (!OT_PUSH(im->ex->a, im->list, im->n, im->cap, o)) return ot_fail_nomem(im->ex->d);
    }
    if (old || m->opset <= 0) return OT_OK;
    return add_import(im, "", m->opset);
}

/* Domains of nodes that were made here: imported as version 1 unless the file did. */
static ot_status add_new_domains(imports *im, const ot_graph *g)
{
    for (ot_id id = 0; id < g->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        if (n->dead || n->proto) continue;
        if (n->source == OT_NONE && n->domain[0] && !imported(im, n->domain))
            OT_TRY(add_import(im, n->domain, n->version > 0 ? n->version : 1));
        for (uint32_t k = 0; k < n->n_attrs; k++)
            if (n->attrs[k].kind == OT_ATTR_GRAPH && n->attrs[k].g)
                OT_TRY(add_new_domains(im, n->attrs[k].g));
    }
    return OT_OK;
}

/* The file's own entries, and one of ours in the place of an earlier one of that name; value NULL:
 * none. */
static ot_status put_entry(ot_exporter *ex, Onnx__ModelProto *p, const char *key, const char *value)
{
    size_t n = p->n_metadata_props, at = 0;
    Onnx__StringStringEntryProto *e = OT_NEW(ex->a, Onnx__StringStringEntryProto), **list;
    list = OT_NEW_N(ex->a, Onnx__StringStringEntryProto *, n + 1);
    if (!e || !list) return ot_fail_nomem(ex->d);
    onnx__string_string_entry_proto__init(e);
    e->key = UNCONST(char *, key);
    e->value = UNCONST(char *, value);
    for (size_t k = 0; k < n; k++)
        if (!p->metadata_props[k]->key || strcmp(p->metadata_props[k]->key, key) != 0)
            list[at++] = p->metadata_props[k];
    if (value) list[at++] = e;
    p->metadata_props = list;
    p->n_metadata_props = at;
    return OT_OK;
}

/* What the model was before it was tiled: true of this graph alone, whose mark it has. */
static ot_status put_original(ot_exporter *ex, Onnx__ModelProto *p)
{
    const ot_model *m = ex->m;
    if (!m->runtime && !m->step) return OT_OK; /* nothing was changed */
    const char *text = m->original
                           ? ot_format(ex->a, "%016llx\n%s",
                                       (unsigned long long)ot_proto_mark(p->graph), m->original)
                           : NULL;
    if (m->original && !text) return ot_fail_nomem(ex->d);
    OT_TRY(put_entry(ex, p, OT_NOTE_GOAL, text ? m->goal : NULL));
    return put_entry(ex, p, OT_NOTE_ORIGINAL, text);
}

ot_status ot_export_model(ot_exporter *ex, const Onnx__ModelProto **out)
{
    static const char producer[] = "onnx-tile";
    Onnx__ModelProto *p = OT_NEW(ex->a, Onnx__ModelProto);
    if (!p) return ot_fail_nomem(ex->d);
    const Onnx__ModelProto *old = ex->src ? ex->src->model : NULL;
    onnx__model_proto__init(p);
    if (old)
        *p = *old;
    else
        p->producer_name = UNCONST(char *, producer);
    p->has_ir_version = 1;
    p->ir_version = ex->m->ir_version;
    imports im = {.ex = ex};
    OT_TRY(take_imports(&im, old));
    OT_TRY(add_new_domains(&im, ex->m->graph));
    p->n_opset_import = im.n;
    p->opset_import = im.list;
    /* for whom the model was tiled */
    if (ex->m->runtime) OT_TRY(put_entry(ex, p, OT_NOTE_RUNTIME, ex->m->runtime));
    if (ex->m->step) OT_TRY(put_entry(ex, p, "onnx_tile.step", ex->m->step));
    const Onnx__GraphProto *g;
    OT_TRY(ot_export_graph(ex, ex->m->graph, &g));
    p->graph = UNCONST(Onnx__GraphProto *, g);
    *out = p;
    return put_original(ex, p);
}
