/* What a file says of itself beside its graph, and whether the graph is still the one of which it
 * was said.
 *
 * The mark is a hash of operators, names, attributes and the heads of constants: what other
 * programs add without changing what is computed (types of values, documentation, where contents
 * are stored) is not in it, and contents of weights are not either: new ones are those of the
 * graph that it was, too.
 */
#include "import.h"
#include "model_io.h"

#define SMALL 256 /* bytes of integers (shapes, bounds of tiles) whose contents are in the mark */

static uint64_t mix(uint64_t h, const void *data, size_t n)
{
    const uint64_t length = n;
    return ot_hash_bytes(n ? ot_hash_bytes(h, data, n) : h, &length, sizeof length);
}

/* As many bytes on every machine. */
static uint64_t mix_count(uint64_t h, uint64_t n) { return mix(h, &n, sizeof n); }

static uint64_t mix_text(uint64_t h, const char *s) { return mix(h, s, s ? strlen(s) : 0); }

static uint64_t mix_texts(uint64_t h, char *const *list, size_t n)
{
    for (size_t k = 0; k < n; k++) h = mix_text(h, list[k]);
    return mix_count(h, n);
}

static uint64_t mix_names(uint64_t h, Onnx__ValueInfoProto *const *list, size_t n)
{
    for (size_t k = 0; k < n; k++) h = mix_text(h, list[k]->name);
    return mix_count(h, n);
}

static uint64_t mix_node(uint64_t h, const Onnx__NodeProto *n)
{
    const char *domain = n->domain && strcmp(n->domain, "ai.onnx") == 0 ? "" : n->domain;
    h = mix_text(mix_text(mix_text(h, n->op_type), domain), n->name);
    return mix_texts(mix_texts(h, n->input, n->n_input), n->output, n->n_output);
}

static uint64_t mix_attribute(uint64_t h, const Onnx__AttributeProto *a)
{
    const int64_t i = a->has_i ? a->i : 0;
    const float f = a->has_f ? a->f : 0;
    h = mix(mix(mix_text(h, a->name), &i, sizeof i), &f, sizeof f);
    if (a->has_s) h = mix(h, a->s.data, a->s.len);
    h = mix(h, a->ints, a->n_ints * sizeof *a->ints);
    h = mix(h, a->floats, a->n_floats * sizeof *a->floats);
    for (size_t k = 0; k < a->n_strings; k++) h = mix(h, a->strings[k].data, a->strings[k].len);
    return h;
}

static uint64_t mix_tensor(uint64_t h, const Onnx__TensorProto *t)
{
    const int32_t type = t->has_data_type ? t->data_type : 0;
    int64_t elems, bytes;
    h = mix(mix_text(h, t->name), t->dims, t->n_dims * sizeof *t->dims);
    h = mix(h, &type, sizeof type);
    if (type != OT_I64 || !ot_proto_nominal_bytes(t, &elems, &bytes) || bytes > SMALL) return h;
    if (t->has_raw_data) return mix(h, t->raw_data.data, t->raw_data.len);
    return mix(h, t->int64_data, t->n_int64_data * sizeof *t->int64_data);
}

static ot_status visit(void *ctx, const ProtobufCMessage *msg)
{
    uint64_t *h = ctx;
    if (msg->descriptor == &onnx__node_proto__descriptor) {
        *h = mix_node(*h, (const Onnx__NodeProto *)(const void *)msg);
    } else if (msg->descriptor == &onnx__attribute_proto__descriptor) {
        *h = mix_attribute(*h, (const Onnx__AttributeProto *)(const void *)msg);
    } else if (msg->descriptor == &onnx__tensor_proto__descriptor) {
        *h = mix_tensor(*h, (const Onnx__TensorProto *)(const void *)msg);
    } else if (msg->descriptor == &onnx__graph_proto__descriptor) {
        const Onnx__GraphProto *g = (const Onnx__GraphProto *)(const void *)msg;
        *h = mix_names(mix_names(*h, g->input, g->n_input), g->output, g->n_output);
    }
    return OT_OK;
}

uint64_t ot_proto_mark(const Onnx__GraphProto *g)
{
    uint64_t h = 0;
    return ot_pb_walk(&g->base, visit, &h) == OT_OK ? h : 0;
}

uint64_t ot_import_mark(const ot_model *m)
{
    const ot_source *s = m->source;
    return s && s->model && s->model->graph ? ot_proto_mark(s->model->graph) : 0;
}

const char *ot_import_note(const ot_model *m, const char *key)
{
    const ot_source *s = m->source;
    for (size_t k = 0; s && s->model && k < s->model->n_metadata_props; k++) {
        const Onnx__StringStringEntryProto *e = s->model->metadata_props[k];
        if (e->key && e->value && strcmp(e->key, key) == 0) return e->value;
    }
    return NULL;
}
