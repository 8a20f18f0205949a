/* Tensors and value descriptions: ot_tensor -> TensorProto, ot_value -> ValueInfoProto.
 *
 * Messages made here are shallow: they point into the IR and into the file's own messages, and
 * nothing is ever freed through them. A tensor that came from the file under another name (a
 * weight that moved into a body) is a copy of the TensorProto struct only; its elements are
 * shared.
 */
#include "export.h"

/* protobuf-c's structs hold plain pointers; the packer only reads through them. */
#define UNCONST(type, p) ((type)(uintptr_t)(p))

static bool same_dims(const Onnx__TensorProto *p, const ot_tensor *t)
{
    if (p->n_dims != t->rank) return false;
    for (uint32_t k = 0; k < t->rank; k++)
        if (p->dims[k] != t->dims[k]) return false;
    return true;
}

ot_status ot_export_tensor(ot_exporter *ex, const ot_tensor *t, const char *name,
                           const Onnx__TensorProto **out)
{
    const Onnx__TensorProto *old = t->proto;
    if (old && same_dims(old, t) && strcmp(old->name ? old->name : "", name) == 0) {
        *out = old;
        return OT_OK;
    }
    Onnx__TensorProto *p = OT_NEW(ex->a, Onnx__TensorProto);
    if (!p) return ot_fail_nomem(ex->d);
    if (old) {
        *p = *old;
    } else {
        onnx__tensor_proto__init(p);
        if (!t->data)
            return ot_fail(ex->d, OT_E_INPUT,
                           "tensor '%.160s': its contents are not held and cannot be written (the "
                           "text form of a model has those of small tensors only)",
                           name);
        p->has_data_type = 1;
        p->data_type = (int32_t)t->dtype;
        p->has_raw_data = 1;
        p->raw_data = (ProtobufCBinaryData){t->bytes, UNCONST(uint8_t *, t->data)};
    }
    p->name = name[0] ? UNCONST(char *, name) : NULL;
    p->n_dims = t->rank;
    p->dims = UNCONST(int64_t *, t->dims);
    *out = p;
    return OT_OK;
}

static Onnx__TensorShapeProto__Dimension *new_dim(ot_exporter *ex,
                                                  const Onnx__TensorShapeProto__Dimension *old)
{
    Onnx__TensorShapeProto__Dimension *d = OT_NEW(ex->a, Onnx__TensorShapeProto__Dimension);
    if (!d) return NULL;
    if (old)
        *d = *old;
    else
        onnx__tensor_shape_proto__dimension__init(d);
    return d;
}

/* Shape of v over `old` (may be NULL): dimensions that v knows are fixed, others stay as they were.
 */
static Onnx__TensorShapeProto *new_shape(ot_exporter *ex, const ot_value *v,
                                         const Onnx__TensorShapeProto *old)
{
    Onnx__TensorShapeProto *shape = OT_NEW(ex->a, Onnx__TensorShapeProto);
    size_t rank = (size_t)v->rank;
    Onnx__TensorShapeProto__Dimension **dims = OT_NEW_N(ex->a, Onnx__TensorShapeProto__Dimension *,
                                                        rank);
    if (!shape || !dims) return NULL;
    if (old)
        *shape = *old;
    else
        onnx__tensor_shape_proto__init(shape);
    if (old && old->n_dim != rank) old = NULL;
    for (size_t k = 0; k < rank; k++) {
        dims[k] = new_dim(ex, old ? old->dim[k] : NULL);
        if (!dims[k]) return NULL;
        /* of a number that the file states, nothing is known */
        if (v->dims[k] < 0 || v->is_unstated) {
            if (dims[k]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
                dims[k]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE__NOT_SET;
            continue;
        }
        dims[k]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dims[k]->dim_value = v->dims[k];
    }
    shape->n_dim = rank;
    shape->dim = dims;
    return shape;
}

/* `old` may be NULL; else its denotations and unknown fields stay. */
static const Onnx__ValueInfoProto *over(ot_exporter *ex, const ot_value *v,
                                        const Onnx__ValueInfoProto *old)
{
    Onnx__ValueInfoProto *info = OT_NEW(ex->a, Onnx__ValueInfoProto);
    Onnx__TypeProto *type = OT_NEW(ex->a, Onnx__TypeProto);
    Onnx__TypeProto__Tensor *tensor = OT_NEW(ex->a, Onnx__TypeProto__Tensor);
    if (!info || !type || !tensor) return NULL;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    const Onnx__TensorShapeProto *shape = NULL;
    if (old) *info = *old;
    if (old && old->type) {
        *type = *old->type;
        if (type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
            *tensor = *type->tensor_type;
            shape = tensor->shape;
        }
    }
    info->name = UNCONST(char *, v->name);
    if (v->dtype == OT_DT_UNKNOWN) return info;
    tensor->has_elem_type = 1;
    tensor->elem_type = (int32_t)v->dtype;
    if (v->rank >= 0 && !(tensor->shape = new_shape(ex, v, shape))) return NULL;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    info->type = type;
    return info;
}

/* seq(tensor(dtype)); the elements' shapes differ, so none is stated. */
static const Onnx__ValueInfoProto *sequence_info(ot_exporter *ex, const ot_value *v)
{
    Onnx__ValueInfoProto *info = OT_NEW(ex->a, Onnx__ValueInfoProto);
    Onnx__TypeProto *type = OT_NEW(ex->a, Onnx__TypeProto), *elem = OT_NEW(ex->a, Onnx__TypeProto);
    Onnx__TypeProto__Sequence *seq = OT_NEW(ex->a, Onnx__TypeProto__Sequence);
    Onnx__TypeProto__Tensor *tensor = OT_NEW(ex->a, Onnx__TypeProto__Tensor);
    if (!info || !type || !elem || !seq || !tensor) return NULL;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__init(elem);
    onnx__type_proto__sequence__init(seq);
    onnx__type_proto__tensor__init(tensor);
    tensor->has_elem_type = 1;
    tensor->elem_type = (int32_t)v->dtype;
    elem->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    elem->tensor_type = tensor;
    seq->elem_type = elem;
    type->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
    type->sequence_type = seq;
    info->name = UNCONST(char *, v->name);
    info->type = type;
    return info;
}

const Onnx__ValueInfoProto *ot_export_value_info(ot_exporter *ex, const ot_value *v)
{
    if (v->is_tensor) return over(ex, v, NULL);
    if (v->is_sequence) return sequence_info(ex, v);
    /* a sequence, map or optional: only a description from the file can tell its type */
    Onnx__ValueInfoProto *info = OT_NEW(ex->a, Onnx__ValueInfoProto);
    if (!info) return NULL;
    onnx__value_info_proto__init(info);
    if (v->proto) *info = *(const Onnx__ValueInfoProto *)v->proto;
    info->name = UNCONST(char *, v->name);
    return info;
}

const Onnx__ValueInfoProto *ot_export_static(ot_exporter *ex, const ot_value *v,
                                             const Onnx__ValueInfoProto *p)
{
    return v->is_tensor ? over(ex, v, p) : p;
}
