/* AttributeProto -> ot_attr.
 *
 * Numbers, strings and tensors become typed attributes that passes can read; everything else
 * (the user's subgraphs, sparse tensors, types, lists of tensors) stays OT_ATTR_OPAQUE: it
 * survives through its proto, and nothing looks inside.
 */
#include "import.h"

Onnx__AttributeProto__AttributeType ot_attr_type(const Onnx__AttributeProto *a)
{
    if (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED) return a->type;
    if (a->has_f) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    if (a->has_i) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    if (a->has_s) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    if (a->t) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    if (a->g) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    if (a->n_floats) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    if (a->n_ints) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    if (a->n_strings) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
    return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

static ot_status take_string(ot_importer *im, const Onnx__AttributeProto *p, ot_attr *a)
{
    a->s = ot_strndup(im->m->arena, (const char *)p->s.data, p->s.len);
    if (!a->s) return ot_fail_nomem(im->d);
    a->n = p->s.len;
    a->kind = OT_ATTR_STRING;
    return OT_OK;
}

static ot_status take_strings(ot_importer *im, const Onnx__AttributeProto *p, ot_attr *a)
{
    const char **list = OT_NEW_N(im->m->arena, const char *, p->n_strings);
    if (!list) return ot_fail_nomem(im->d);
    for (size_t k = 0; k < p->n_strings; k++) {
        list[k] = ot_strndup(im->m->arena, (const char *)p->strings[k].data, p->strings[k].len);
        if (!list[k]) return ot_fail_nomem(im->d);
    }
    a->strings = list;
    a->n = p->n_strings;
    a->kind = OT_ATTR_STRINGS;
    return OT_OK;
}

/* A broken tensor is an error in an operator we know; in any other it is that operator's business.
 */
static ot_status take_tensor(ot_importer *im, const Onnx__AttributeProto *p, const char *label,
                             bool standard, ot_attr *a)
{
    const char *where = ot_format(im->scratch, "%s: attribute '%.*s': tensor", label, OT_NAME_SHOWN,
                                  a->name);
    if (!where) return ot_fail_nomem(im->d);
    ot_diag *told = im->d;
    if (!standard) im->d = NULL;
    ot_status st = ot_import_tensor(im, p->t, where, &a->t);
    im->d = told;
    if (st == OT_OK) a->kind = OT_ATTR_TENSOR;
    if (st == OT_E_NOMEM) return ot_fail_nomem(im->d);
    return standard ? st : OT_OK;
}

static ot_status take(ot_importer *im, const Onnx__AttributeProto *p, const char *label,
                      bool standard, ot_attr *a)
{
    *a = (ot_attr){.name = ot_text(p->name), .kind = OT_ATTR_OPAQUE, .proto = p};
    if (p->ref_attr_name && p->ref_attr_name[0]) return OT_OK;
    switch ((int)ot_attr_type(p)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        a->i = p->i;
        a->kind = OT_ATTR_INT;
        return OT_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        a->f = p->f;
        a->kind = OT_ATTR_FLOAT;
        return OT_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        a->ints = p->ints;
        a->n = p->n_ints;
        a->kind = OT_ATTR_INTS;
        return OT_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        a->floats = p->floats;
        a->n = p->n_floats;
        a->kind = OT_ATTR_FLOATS;
        return OT_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING: return take_string(im, p, a);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS: return take_strings(im, p, a);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        return p->t ? take_tensor(im, p, label, standard, a) : OT_OK;
    default: return OT_OK;
    }
}

ot_status ot_import_attrs(ot_importer *im, const Onnx__NodeProto *p, const char *label,
                          bool standard, ot_attr **out)
{
    *out = OT_NEW_N(im->scratch, ot_attr, p->n_attribute);
    if (!*out) return ot_fail_nomem(im->d);
    for (size_t k = 0; k < p->n_attribute; k++)
        OT_TRY(take(im, p->attribute[k], label, standard, &(*out)[k]));
    return OT_OK;
}
