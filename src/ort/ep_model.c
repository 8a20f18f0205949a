/* A graph of ONNX Runtime's, walked through its C interface, as an ONNX file in memory.
 *
 *     nodes          operator, operands by name, attributes
 *     initializers   constants that nodes read; the bytes of large ones stay where the runtime has
 *                    them (onnx_tile_lent)
 *     inputs         of the graph, or of the node that stands for it; what can be overridden is one
 *     value_info     types and shapes of what nodes make, as the runtime knows them
 *
 * Numbers are those of onnx.proto.
 */
#include "ep_model.h"

#include "ort_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of messages. */
enum { MODEL_IR = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8, OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE = 13
};
enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_TYPE = 4,
    NODE_ATTR = 5,
    NODE_DOMAIN = 7
};
enum {
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TYPE = 20
};
enum {
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_OUTSIDE = 13,
    TENSOR_WHERE = 14
};
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2, WHERE_OUTSIDE = 1 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2 };
enum { TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, TYPE_ELEM = 1, TYPE_SHAPE = 2, SHAPE_DIM = 1 };
enum { DIM_VALUE = 1, DIM_NAME = 2 };

/* Bytes from which on contents are lent. What kernels read on the way beside their weights, as
 * biases and scales, is smaller. */
enum { LENT_LEAST = 16 << 10 };

enum { IR_VERSION = 10, TYPE_STRING = 8, ATTR_MOST = 1 << 28 /* bytes of an attribute */ };

/* An operator that nobody has, for nodes that cannot be told. */
#define UNTOLD_DOMAIN "onnx_tile.runtime"
#define UNTOLD_TYPE   "Untold"

/* Names that have been met; those of the runtime, which outlive it. */
typedef struct name_set {
    const char **slots; /* [cap] NULL: free */
    size_t n, cap;      /* a power of two */
} name_set;

typedef struct writer {
    const ep_tables *t;
    const ort_graph *g;
    ort_bytes *b;
    ep_pieces *pieces;
    const ort_node **nodes; /* [n_nodes] */
    size_t n_nodes;
    bool defaults; /* are constants, too */
    name_set told; /* inputs, initializers and outputs */
} writer;

/* ---- sets of names ---- */

static size_t slot_of(const name_set *s, const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *c = name; *c; c++) h = (h ^ (uint8_t)*c) * 0x100000001b3u;
    size_t at = (size_t)(h ^ h >> 32) & (s->cap - 1);
    while (s->slots[at] && strcmp(s->slots[at], name) != 0) at = (at + 1) & (s->cap - 1);
    return at;
}

static bool make_room(name_set *s)
{
    name_set wider = {.n = s->n, .cap = s->cap ? 2 * s->cap : 256};
    if (s->n * 2 < s->cap) return true;
    wider.slots = calloc(wider.cap, sizeof *wider.slots);
    if (!wider.slots) return false;
    for (size_t k = 0; k < s->cap; k++)
        if (s->slots[k]) wider.slots[slot_of(&wider, s->slots[k])] = s->slots[k];
    free(s->slots);
    *s = wider;
    return true;
}

/* *is_new: it was not there. */
static ort_status *add_name(writer *w, const char *name, bool *is_new)
{
    if (!make_room(&w->told)) return ep_no_memory(w->t);
    const size_t at = slot_of(&w->told, name);
    *is_new = !w->told.slots[at];
    w->told.n += *is_new;
    w->told.slots[at] = name;
    return NULL;
}

/* ---- lists ---- */

/* Inputs or outputs of the graph. */
static ort_status *graph_values(const writer *w, int count_at, int values_at,
                                const ort_value_info ***out, size_t *n)
{
    *out = NULL;
    TRY_ORT(CALL(w->t->api, count_at, ort_graph_count)(w->g, n));
    *out = calloc(*n + 1, sizeof **out);
    if (!*out) return ep_no_memory(w->t);
    return CALL(w->t->api, values_at, ort_graph_values)(w->g, *out, *n);
}

/* ---- types ---- */

static ort_status *put_dims(const writer *w, const ort_shape *s, size_t rank)
{
    const ort_api *api = w->t->api;
    int64_t dims[ONNX_TILE_RANK_MAX];
    const char *names[ONNX_TILE_RANK_MAX];
    TRY_ORT(CALL(api, ORT_SHAPE_DIMS, ort_shape_dims)(s, dims, rank));
    TRY_ORT(CALL(api, ORT_SHAPE_NAMES, ort_shape_names)(s, names, rank));
    const size_t shape = ort_open(w->b, TYPE_SHAPE);
    for (size_t k = 0; k < rank; k++) {
        const size_t dim = ort_open(w->b, SHAPE_DIM);
        if (dims[k] >= 0)
            ort_put_int(w->b, DIM_VALUE, dims[k]);
        else if (names[k] && *names[k])
            ort_put_text(w->b, DIM_NAME, names[k]);
        ort_close(w->b, dim);
    }
    ort_close(w->b, shape);
    return NULL;
}

static ort_status *put_tensor_type(const writer *w, const ort_shape *s)
{
    const ort_api *api = w->t->api;
    int type = 0;
    size_t rank = 0;
    TRY_ORT(CALL(api, ORT_SHAPE_TYPE, ort_shape_type)(s, &type));
    TRY_ORT(CALL(api, ORT_SHAPE_RANK, ort_shape_rank)(s, &rank));
    const size_t at = ort_open(w->b, TYPE_TENSOR);
    ort_put_int(w->b, TYPE_ELEM, type);
    if (ep_is_ranked(w->t, s, rank)) TRY_ORT(put_dims(w, s, rank));
    ort_close(w->b, at);
    return NULL;
}

/* A type that the engine is not given, whatever it holds. */
static void put_other_type(const writer *w)
{
    const size_t sequence = ort_open(w->b, TYPE_SEQUENCE), type = ort_open(w->b, TYPE_ELEM);
    const size_t tensor = ort_open(w->b, TYPE_TENSOR);
    ort_put_int(w->b, TYPE_ELEM, TYPE_STRING);
    ort_close(w->b, tensor);
    ort_close(w->b, type);
    ort_close(w->b, sequence);
}

static ort_status *put_value(const writer *w, uint32_t field, const ort_value_info *v)
{
    const char *name;
    const ort_shape *shape;
    TRY_ORT(ep_value_name(w->t, v, &name));
    TRY_ORT(ep_value_shape(w->t, v, &shape));
    if (!shape && field == GRAPH_VALUE) return NULL;
    const size_t at = ort_open(w->b, field);
    ort_put_text(w->b, VALUE_NAME, name);
    const size_t inner = ort_open(w->b, VALUE_TYPE);
    if (shape)
        TRY_ORT(put_tensor_type(w, shape));
    else
        put_other_type(w);
    ort_close(w->b, inner);
    ort_close(w->b, at);
    return NULL;
}

/* ---- tensors ---- */

static ort_status *put_shape(const writer *w, const ort_shape *s, int *type)
{
    const ort_api *api = w->t->api;
    int64_t dims[ONNX_TILE_RANK_MAX];
    size_t rank = 0;
    TRY_ORT(CALL(api, ORT_SHAPE_TYPE, ort_shape_type)(s, type));
    TRY_ORT(CALL(api, ORT_SHAPE_RANK, ort_shape_rank)(s, &rank));
    if (rank > ONNX_TILE_RANK_MAX)
        return ort_failure(api, "a constant has more than 16 dimensions", NULL);
    TRY_ORT(CALL(api, ORT_SHAPE_DIMS, ort_shape_dims)(s, dims, rank));
    for (size_t k = 0; k < rank; k++) ort_put_int(w->b, TENSOR_DIMS, dims[k]);
    ort_put_int(w->b, TENSOR_TYPE, *type);
    return NULL;
}

/* Contents that stay where they are. */
static ort_status *lend(const writer *w, const char *name, const void *data, size_t n)
{
    char number[24];
    snprintf(number, sizeof number, "%zu", w->pieces->n);
    if (!ep_pieces_add(w->pieces, name, data, n)) return ep_no_memory(w->t);
    const size_t entry = ort_open(w->b, TENSOR_OUTSIDE);
    ort_put_text(w->b, ENTRY_KEY, "location");
    ort_put_text(w->b, ENTRY_VALUE, number);
    ort_close(w->b, entry);
    ort_put_int(w->b, TENSOR_WHERE, WHERE_OUTSIDE);
    return NULL;
}

/* Dimensions, type and bytes of a constant. name: of an initializer, whose contents stay where they
 * are if they are large; NULL: it is none. */
static ort_status *put_contents(const writer *w, const ort_value *v, const char *name)
{
    const ort_api *api = w->t->api;
    ort_shape *s;
    int type = 0;
    size_t n = 0;
    const void *data = NULL;
    TRY_ORT(CALL(api, ORT_TENSOR_SHAPE, ort_tensor_shape)(v, &s));
    ort_status *st = put_shape(w, s, &type);
    CALL(api, ORT_RELEASE_SHAPE, ort_release_shape)(s);
    TRY_ORT(st);
    TRY_ORT(CALL(api, ORT_TENSOR_BYTES, ort_tensor_size)(v, &n));
    TRY_ORT(CALL(api, ORT_CONST_DATA, ort_const_data)(v, &data));
    if (name && n >= LENT_LEAST) return lend(w, name, data, n);
    ort_put_data(w->b, TENSOR_RAW, data, n);
    return NULL;
}

/* ---- attributes ---- */

/* Bytes of an attribute; *out is the caller's to free. */
static ort_status *read_attr(const writer *w, const ort_attr *a, int kind, void **out, size_t *n)
{
    const ort_api *api = w->t->api;
    for (size_t cap = 4096; cap <= ATTR_MOST; cap *= 8) {
        *out = malloc(cap);
        if (!*out) return ep_no_memory(w->t);
        ort_status *st = CALL(api, ORT_ATTR_READ, ort_attr_read)(a, kind, *out, cap, n);
        if (!st && *n <= cap) return NULL;
        if (st) CALL(api, ORT_RELEASE_STATUS, ort_release_status)(st);
        free(*out);
        *out = NULL;
        if (*n <= cap) break;
    }
    return ort_failure(api, "an attribute is too large, or cannot be read", NULL);
}

static ort_status *put_tensor_attr(const writer *w, const ort_attr *a)
{
    ort_value *v = NULL;
    TRY_ORT(CALL(w->t->api, ORT_ATTR_AS_TENSOR, ort_attr_as_tensor)(a, &v));
    const size_t at = ort_open(w->b, ATTR_T);
    ort_status *st = put_contents(w, v, NULL);
    ort_close(w->b, at);
    CALL(w->t->api, ORT_RELEASE_VALUE, ort_release_value)(v);
    return st;
}

/* What is read of an attribute, as the fields of its kind. Strings end in a 0 byte each. */
static void put_read(const writer *w, int kind, const char *data, size_t n)
{
    ort_bytes *b = w->b;
    int64_t i;
    float f;
    for (size_t k = 0; (kind == ORT_ATTR_INT || kind == ORT_ATTR_INTS) && k + sizeof i <= n;
         k += sizeof i) {
        memcpy(&i, data + k, sizeof i);
        ort_put_int(b, kind == ORT_ATTR_INT ? ATTR_I : ATTR_INTS, i);
    }
    for (size_t k = 0; (kind == ORT_ATTR_FLOAT || kind == ORT_ATTR_FLOATS) && k + sizeof f <= n;
         k += sizeof f) {
        memcpy(&f, data + k, sizeof f);
        ort_put_float(b, kind == ORT_ATTR_FLOAT ? ATTR_F : ATTR_FLOATS, f);
    }
    if (kind == ORT_ATTR_STRING) ort_put_data(b, ATTR_S, data, n);
    for (size_t k = 0, end; kind == ORT_ATTR_STRINGS && k < n; k = end + 1) {
        end = k + strnlen(data + k, n - k);
        ort_put_data(b, ATTR_STRINGS, data + k, end - k);
    }
}

/* The number that the file has for a kind; 0: none that is written. */
static int file_kind(int kind)
{
    static const int numbers[] = {
        [ORT_ATTR_INT] = 2,    [ORT_ATTR_INTS] = 7,    [ORT_ATTR_FLOAT] = 1, [ORT_ATTR_FLOATS] = 6,
        [ORT_ATTR_STRING] = 3, [ORT_ATTR_STRINGS] = 8, [ORT_ATTR_TENSOR] = 4};
    return kind > 0 && kind <= ORT_ATTR_TENSOR ? numbers[kind] : 0;
}

static ort_status *put_attr(const writer *w, const ort_attr *a)
{
    const char *name;
    int kind = 0;
    void *data = NULL;
    size_t n = 0;
    TRY_ORT(CALL(w->t->api, ORT_ATTR_NAME, ort_attr_name)(a, &name));
    TRY_ORT(CALL(w->t->api, ORT_ATTR_KIND, ort_attr_kind)(a, &kind));
    if (kind != ORT_ATTR_TENSOR) TRY_ORT(read_attr(w, a, kind, &data, &n));
    const size_t at = ort_open(w->b, NODE_ATTR);
    ort_put_text(w->b, ATTR_NAME, name);
    ort_put_int(w->b, ATTR_TYPE, file_kind(kind));
    ort_status *st = kind == ORT_ATTR_TENSOR ? put_tensor_attr(w, a) : NULL;
    if (data) put_read(w, kind, data, n);
    ort_close(w->b, at);
    free(data);
    return st;
}

/* ---- nodes ---- */

static ort_status *put_names(const writer *w, uint32_t field, const ort_node *n, int count_at,
                             int values_at)
{
    const ort_value_info **values;
    const char *name;
    size_t count = 0;
    ort_status *st = ep_node_values(w->t, n, count_at, values_at, &values, &count);
    for (size_t k = 0; !st && k < count; k++) {
        st = ep_value_name(w->t, values[k], &name);
        if (!st) ort_put_text(w->b, field, name);
    }
    free(values);
    return st;
}

static ort_status *attrs_of(const writer *w, const ort_node *n, const ort_attr ***out,
                            size_t *count)
{
    *out = NULL;
    TRY_ORT(CALL(w->t->api, ORT_NODE_ATTR_COUNT, ort_node_count)(n, count));
    *out = calloc(*count + 1, sizeof **out);
    if (!*out) return ep_no_memory(w->t);
    return CALL(w->t->api, ORT_NODE_ATTRS, ort_node_attrs)(n, *out, *count);
}

/* Can all of the node be written? */
static ort_status *is_told(const writer *w, const ort_node *n, const ort_attr *const *attrs,
                           size_t count, bool *out)
{
    size_t graphs = 0;
    int kind = 0;
    TRY_ORT(CALL(w->t->api, ORT_NODE_GRAPH_COUNT, ort_node_count)(n, &graphs));
    *out = graphs == 0;
    for (size_t k = 0; *out && k < count; k++) {
        TRY_ORT(CALL(w->t->api, ORT_ATTR_KIND, ort_attr_kind)(attrs[k], &kind));
        *out = file_kind(kind) != 0;
    }
    return NULL;
}

static ort_status *put_told(const writer *w, const ort_node *n, const ort_attr *const *attrs,
                            size_t count)
{
    const char *type, *domain;
    TRY_ORT(CALL(w->t->api, ORT_NODE_TYPE, ort_node_text)(n, &type));
    TRY_ORT(CALL(w->t->api, ORT_NODE_DOMAIN, ort_node_text)(n, &domain));
    ort_put_text(w->b, NODE_TYPE, type);
    ort_put_text(w->b, NODE_DOMAIN, domain);
    for (size_t k = 0; k < count; k++) TRY_ORT(put_attr(w, attrs[k]));
    return NULL;
}

static ort_status *put_untold(const writer *w, const ort_node *n)
{
    ort_put_text(w->b, NODE_TYPE, UNTOLD_TYPE);
    ort_put_text(w->b, NODE_DOMAIN, UNTOLD_DOMAIN);
    return put_names(w, NODE_INPUT, n, ORT_NODE_IMPLICIT_COUNT, ORT_NODE_IMPLICIT);
}

static ort_status *put_node(const writer *w, const ort_node *n)
{
    const ort_attr **attrs;
    size_t count = 0;
    bool told = false;
    const size_t at = ort_open(w->b, GRAPH_NODE);
    ort_status *st = put_names(w, NODE_INPUT, n, ORT_NODE_INPUT_COUNT, ORT_NODE_INPUTS);
    if (!st) st = put_names(w, NODE_OUTPUT, n, ORT_NODE_OUTPUT_COUNT, ORT_NODE_OUTPUTS);
    TRY_ORT(st);
    st = attrs_of(w, n, &attrs, &count);
    if (!st) st = is_told(w, n, attrs, count, &told);
    if (!st) st = told ? put_told(w, n, attrs, count) : put_untold(w, n);
    ort_close(w->b, at);
    free(attrs);
    return st;
}

/* ---- values of the graph ---- */

static ort_status *put_initializer(const writer *w, const char *name, const ort_value *v)
{
    const size_t at = ort_open(w->b, GRAPH_INITIALIZER);
    ort_put_text(w->b, TENSOR_NAME, name);
    TRY_ORT(put_contents(w, v, name));
    ort_close(w->b, at);
    return NULL;
}

static ort_status *is_string(const writer *w, const ort_value *v, bool *out)
{
    ort_shape *s;
    int type = 0;
    TRY_ORT(CALL(w->t->api, ORT_TENSOR_SHAPE, ort_tensor_shape)(v, &s));
    ort_status *st = CALL(w->t->api, ORT_SHAPE_TYPE, ort_shape_type)(s, &type);
    CALL(w->t->api, ORT_RELEASE_SHAPE, ort_release_shape)(s);
    *out = type == TYPE_STRING;
    return st;
}

static ort_status *is_constant(const writer *w, const ort_value_info *v, bool *out)
{
    TRY_ORT(CALL(w->t->api, ORT_VALUE_IS_CONSTANT, ort_value_is)(v, out));
    return *out || !w->defaults ? NULL
                                : CALL(w->t->api, ORT_VALUE_IS_OPTIONAL, ort_value_is)(v, out);
}

/* A constant that is met for the first time; strings, which the engine is not given, as inputs. */
static ort_status *put_constant(writer *w, const ort_value_info *v)
{
    const ort_value *value = NULL;
    const char *name;
    bool constant = false, is_new = false, text = false;
    if (!v) return NULL;
    TRY_ORT(ep_value_name(w->t, v, &name));
    if (!*name) return NULL;
    TRY_ORT(is_constant(w, v, &constant));
    if (!constant) return NULL;
    TRY_ORT(add_name(w, name, &is_new));
    if (!is_new) return NULL;
    TRY_ORT(CALL(w->t->api, ORT_VALUE_INITIALIZER, ort_value_initializer)(v, &value));
    if (value) TRY_ORT(is_string(w, value, &text));
    return value && !text ? put_initializer(w, name, value) : put_value(w, GRAPH_INPUT, v);
}

static ort_status *put_constants(writer *w, int count_at, int values_at)
{
    for (size_t k = 0; k < w->n_nodes; k++) {
        const ort_value_info **values;
        size_t n = 0;
        ort_status *st = ep_node_values(w->t, w->nodes[k], count_at, values_at, &values, &n);
        for (size_t j = 0; !st && j < n; j++) st = put_constant(w, values[j]);
        free(values);
        TRY_ORT(st);
    }
    return NULL;
}

/* One of the inputs or outputs; of the graph's own, constants are none, and no inputs that have
 * been told as constants. */
static ort_status *put_end(writer *w, uint32_t field, const ort_value_info *v, bool of_graph)
{
    const char *name;
    bool constant = false, is_new = false;
    TRY_ORT(ep_value_name(w->t, v, &name));
    if (of_graph) TRY_ORT(is_constant(w, v, &constant));
    if (constant) return NULL;
    TRY_ORT(add_name(w, name, &is_new));
    return is_new || field == GRAPH_OUTPUT ? put_value(w, field, v) : NULL;
}

static ort_status *put_ends(writer *w, const ort_node *ends, uint32_t field)
{
    const bool in = field == GRAPH_INPUT;
    const ort_value_info **values;
    size_t n = 0;
    ort_status *st = ends ? ep_node_values(w->t, ends,
                                           in ? ORT_NODE_INPUT_COUNT : ORT_NODE_OUTPUT_COUNT,
                                           in ? ORT_NODE_INPUTS : ORT_NODE_OUTPUTS, &values, &n)
                          : graph_values(w, in ? ORT_GRAPH_INPUT_COUNT : ORT_GRAPH_OUTPUT_COUNT,
                                         in ? ORT_GRAPH_INPUTS : ORT_GRAPH_OUTPUTS, &values, &n);
    for (size_t k = 0; !st && k < n; k++) st = put_end(w, field, values[k], !ends);
    free(values);
    return st;
}

/* Types of what a node makes and nobody has told yet. */
static ort_status *put_made(writer *w, const ort_node *n)
{
    const ort_value_info **values;
    size_t count = 0;
    ort_status *st = ep_node_values(w->t, n, ORT_NODE_OUTPUT_COUNT, ORT_NODE_OUTPUTS, &values,
                                    &count);
    for (size_t k = 0; !st && k < count; k++) {
        const char *name;
        bool is_new = false;
        st = ep_value_name(w->t, values[k], &name);
        if (!st && *name) st = add_name(w, name, &is_new);
        if (!st && is_new) st = put_value(w, GRAPH_VALUE, values[k]);
    }
    free(values);
    return st;
}

static ort_status *put_graph(writer *w, const ort_node *ends)
{
    const size_t at = ort_open(w->b, MODEL_GRAPH);
    ort_put_text(w->b, GRAPH_NAME, "graph");
    for (size_t k = 0; k < w->n_nodes; k++) TRY_ORT(put_node(w, w->nodes[k]));
    TRY_ORT(put_constants(w, ORT_NODE_INPUT_COUNT, ORT_NODE_INPUTS));
    TRY_ORT(put_constants(w, ORT_NODE_IMPLICIT_COUNT, ORT_NODE_IMPLICIT));
    TRY_ORT(put_ends(w, ends, GRAPH_INPUT));
    TRY_ORT(put_ends(w, ends, GRAPH_OUTPUT));
    for (size_t k = 0; k < w->n_nodes; k++) TRY_ORT(put_made(w, w->nodes[k]));
    ort_close(w->b, at);
    return NULL;
}

static ort_status *put_opsets(const writer *w)
{
    size_t n = 0;
    TRY_ORT(CALL(w->t->api, ORT_GRAPH_OPSET_COUNT, ort_graph_count)(w->g, &n));
    const char **domains = calloc(n + 1, sizeof *domains);
    int64_t *versions = calloc(n + 1, sizeof *versions);
    ort_status *st = domains && versions ? CALL(w->t->api, ORT_GRAPH_OPSETS,
                                                ort_graph_opsets)(w->g, domains, versions, n)
                                         : ep_no_memory(w->t);
    for (size_t k = 0; !st && k < n; k++) {
        const size_t at = ort_open(w->b, MODEL_OPSET);
        ort_put_text(w->b, OPSET_DOMAIN, domains[k]);
        ort_put_int(w->b, OPSET_VERSION, versions[k]);
        ort_close(w->b, at);
    }
    const size_t at = ort_open(w->b, MODEL_OPSET);
    ort_put_text(w->b, OPSET_DOMAIN, UNTOLD_DOMAIN);
    ort_put_int(w->b, OPSET_VERSION, 1);
    ort_close(w->b, at);
    free(domains);
    free(versions);
    return st;
}

ort_status *ep_model_write(const ep_tables *t, const ort_graph *g, const ort_node *ends,
                           bool defaults, ep_model *out)
{
    *out = (ep_model){0};
    writer w = {.t = t, .g = g, .b = &out->bytes, .pieces = &out->pieces, .defaults = defaults};
    ort_put_int(w.b, MODEL_IR, IR_VERSION);
    ort_status *st = ep_graph_nodes(t, g, &w.nodes, &w.n_nodes);
    if (!st) st = put_opsets(&w);
    if (!st) st = put_graph(&w, ends);
    free(w.nodes);
    free(w.told.slots);
    return !st && w.b->failed ? ep_no_memory(t) : st;
}

void ep_model_free(ep_model *m)
{
    ep_pieces_free(&m->pieces);
    ort_bytes_free(&m->bytes);
    *m = (ep_model){0};
}
