/* Attributes of nodes that say the same, held once.
 *
 *   node --> attribute kernel_shape = 3, 3 --.              node --.
 *   node --> attribute kernel_shape = 3, 3 --|-- shared --> node --+--> kernel_shape = 3, 3
 *   node --> attribute kernel_shape = 3, 3 --'              node --'
 *
 * A message of an attribute is larger than a node's, and large graphs repeat few of them. What is
 * shared lies in the model's arena with all that it holds: numbers and short texts. Attributes that
 * hold tensors, graphs or types, whose messages say who they are, stay what they were.
 */
#include "import.h"

#define MOST_BYTES  1024u /* of an attribute as it is written, all of whose parts are small */
#define FIRST_SLOTS 64u

typedef struct shared {
    uint64_t hash;
    Onnx__AttributeProto *p; /* NULL: free */
} shared;

typedef struct sharing {
    ot_arena *a; /* where shared ones lie */
    ot_arena *scratch;
    shared *slots; /* [n_slots] a power of 2, at most half of them taken */
    size_t n_slots, n;
} sharing;

/* All that it holds is small, and nobody asks which message it is. */
static bool is_plain(const Onnx__AttributeProto *p)
{
    const Onnx__AttributeProto__AttributeType type = ot_attr_type(p);
    if (type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT &&
        type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT &&
        type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS &&
        type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS &&
        type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING)
        return false;
    if (p->base.n_unknown_fields > 0 || p->t || p->g || p->sparse_tensor || p->tp ||
        p->n_strings > 0 || p->n_tensors > 0 || p->n_graphs > 0 || p->n_sparse_tensors > 0 ||
        p->n_type_protos > 0 || p->ref_attr_name)
        return false;
    return ot_pb_is_small(p) && ot_pb_is_small(p->name) && ot_pb_is_small(p->doc_string) &&
           ot_pb_is_small(p->s.data) && ot_pb_is_small(p->floats) && ot_pb_is_small(p->ints);
}

static bool says_same(const Onnx__AttributeProto *p, const uint8_t *bytes, size_t n)
{
    uint8_t other[MOST_BYTES];
    return protobuf_c_message_get_packed_size(&p->base) == n &&
           protobuf_c_message_pack(&p->base, other) == n && memcmp(other, bytes, n) == 0;
}

static bool grow(sharing *x)
{
    const size_t n = x->n_slots ? 2 * x->n_slots : FIRST_SLOTS;
    shared *slots = OT_NEW_N(x->scratch, shared, n);
    if (!slots) return false;
    for (size_t k = 0; k < x->n_slots; k++) {
        size_t at = x->slots[k].hash & (n - 1);
        if (!x->slots[k].p) continue;
        while (slots[at].p) at = (at + 1) & (n - 1);
        slots[at] = x->slots[k];
    }
    x->slots = slots;
    x->n_slots = n;
    return true;
}

/* *p, which is plain: the one that says the same. false: no memory. */
static bool share(sharing *x, Onnx__AttributeProto **p)
{
    uint8_t bytes[MOST_BYTES];
    const size_t n = protobuf_c_message_get_packed_size(&(*p)->base);
    if (n > sizeof bytes) return true;
    protobuf_c_message_pack(&(*p)->base, bytes);
    if (2 * x->n >= x->n_slots && !grow(x)) return false;
    const uint64_t hash = ot_hash_bytes(0, bytes, n);
    size_t at = hash & (x->n_slots - 1);
    while (x->slots[at].p && (x->slots[at].hash != hash || !says_same(x->slots[at].p, bytes, n)))
        at = (at + 1) & (x->n_slots - 1);
    if (!x->slots[at].p) {
        Onnx__AttributeProto *own = ot_pb_pool(x->a, bytes, n);
        if (!own) return false;
        x->slots[at] = (shared){hash, own};
        x->n++;
    }
    ot_pb_free(&(*p)->base);
    *p = x->slots[at].p;
    return true;
}

ot_status ot_share_attributes(const Onnx__GraphProto *g, ot_arena *a, ot_diag *d)
{
    sharing x = {.a = a, .scratch = ot_arena_new()};
    bool ok = x.scratch != NULL;
    for (size_t k = 0; ok && k < g->n_node; k++)
        for (size_t j = 0; ok && j < g->node[k]->n_attribute; j++) {
            Onnx__AttributeProto **p = &g->node[k]->attribute[j];
            if (!ot_pb_pools(*p) && is_plain(*p)) ok = share(&x, p);
        }
    ot_arena_free(x.scratch);
    return ok ? OT_OK : ot_fail_nomem(d);
}

void ot_unshare_attributes(const Onnx__GraphProto *g)
{
    for (size_t k = 0; k < g->n_node; k++) {
        Onnx__NodeProto *n = g->node[k];
        size_t own = 0;
        for (size_t j = 0; j < n->n_attribute; j++)
            if (!ot_pb_pools(n->attribute[j])) n->attribute[own++] = n->attribute[j];
        n->n_attribute = own;
    }
}
