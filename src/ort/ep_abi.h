/* What ONNX Runtime and an execution provider in a library see of each other: what ort_abi.h is for
 * the operator.
 *
 *   CreateEpFactories(name, base, ...)   a factory: `struct OrtEpFactory`
 *     factory -> supported, create         a provider of one session: `struct OrtEp`
 *     ep -> capability(graph)              which nodes it takes
 *     ep -> compile(graphs, nodes)         `struct OrtNodeComputeInfo` of each part
 *
 * Entries and fields are those of version 23; newer runtimes read no further in our structures,
 * since these say so, and their tables grow at the end. Tables by index: positions in `struct
 * OrtApi` and `struct OrtEpApi`.
 *
 * Private to src/ort.
 */
#ifndef OT_ORT_EP_ABI_H
#define OT_ORT_EP_ABI_H

#include "ort_abi.h"

#include <stdbool.h>

/* The first version with graphs for providers in libraries: ONNX Runtime 1.23. */
#define ORT_VERSION_EP 23
/* The first one that tells a scalar from a tensor of unknown rank. */
#define ORT_VERSION_HAS_SHAPE 24

#define ORT_DEVICE_CPU   0
#define ORT_NOT_COMPILED 0 /* nothing is known of such a compiled model */

/* Theirs. */
typedef struct ort_graph ort_graph;
typedef struct ort_node ort_node;
typedef struct ort_value_info ort_value_info; /* a value of a graph */
typedef struct ort_type ort_type;
typedef struct ort_attr ort_attr;
typedef struct ort_pairs ort_pairs; /* keys and values */
typedef struct ort_device ort_device;
typedef struct ort_ep_device ort_ep_device;
typedef struct ort_support ort_support; /* where capability is told */
typedef struct ort_logger ort_logger;
typedef struct ort_compute_context ort_compute_context;
typedef struct ort_memory ort_memory;
typedef struct ort_allocator ort_allocator;
typedef struct ort_transfer ort_transfer;
typedef struct ort_stream ort_stream;
typedef struct ort_ep_api ort_ep_api;

/* Kinds of attributes; not ONNX's numbers. */
enum {
    ORT_ATTR_INT = 1,
    ORT_ATTR_INTS,
    ORT_ATTR_FLOAT,
    ORT_ATTR_FLOATS,
    ORT_ATTR_STRING,
    ORT_ATTR_STRINGS,
    ORT_ATTR_GRAPH,
    ORT_ATTR_TENSOR
};

/* Positions in the table, beside those of ort_abi.h. */
enum {
    ORT_TYPE_TENSOR = 55,
    ORT_SHAPE_NAMES = 63,
    ORT_RELEASE_VALUE = 96,
    ORT_ATTR_READ = 272,
    ORT_VALUE_NAME = 289,
    ORT_VALUE_TYPE = 290,
    ORT_PAIRS_ALL = 298,
    ORT_RELEASE_PAIRS = 300,
    ORT_DEVICE_TYPE = 307,
    ORT_GET_EP_API = 317,
    ORT_TENSOR_BYTES = 318,
    ORT_VALUE_INITIALIZER = 326,
    ORT_VALUE_IS_OPTIONAL = 329,
    ORT_VALUE_IS_CONSTANT = 331,
    ORT_VALUE_IS_OUTER = 332,
    ORT_GRAPH_PATH = 334,
    ORT_GRAPH_OPSET_COUNT = 336,
    ORT_GRAPH_OPSETS = 337,
    ORT_GRAPH_INPUT_COUNT = 338,
    ORT_GRAPH_INPUTS = 339,
    ORT_GRAPH_OUTPUT_COUNT = 340,
    ORT_GRAPH_OUTPUTS = 341,
    ORT_GRAPH_NODE_COUNT = 344,
    ORT_GRAPH_NODES = 345,
    ORT_NODE_TYPE = 350,
    ORT_NODE_DOMAIN = 351,
    ORT_NODE_INPUT_COUNT = 353,
    ORT_NODE_INPUTS = 354,
    ORT_NODE_OUTPUT_COUNT = 355,
    ORT_NODE_OUTPUTS = 356,
    ORT_NODE_IMPLICIT_COUNT = 357,
    ORT_NODE_IMPLICIT = 358,
    ORT_NODE_ATTR_COUNT = 359,
    ORT_NODE_ATTRS = 360,
    ORT_ATTR_AS_TENSOR = 362,
    ORT_ATTR_KIND = 363,
    ORT_ATTR_NAME = 364,
    ORT_NODE_GRAPH_COUNT = 365,
    ORT_CONST_DATA = 378,
    ORT_OPTION_PAIRS = 379,
    ORT_SHAPE_IS_KNOWN = 390 /* as of version ORT_VERSION_HAS_SHAPE */
};

/* Signatures of the functions above. */
typedef ort_status *(*ort_type_tensor)(const ort_type *t, const ort_shape **out); /* NULL: none */
typedef ort_status *(*ort_shape_names)(const ort_shape *s, const char **names, size_t n);
typedef void (*ort_release_value)(ort_value *v);
typedef ort_status *(*ort_attr_read)(const ort_attr *a, int kind, void *data, size_t n,
                                     size_t *out);
typedef ort_status *(*ort_value_name)(const ort_value_info *v, const char **out);
typedef ort_status *(*ort_value_type)(const ort_value_info *v, const ort_type **out);
typedef void (*ort_pairs_all)(const ort_pairs *p, const char *const **keys,
                              const char *const **values, size_t *n);
typedef void (*ort_release_pairs)(ort_pairs *p);
typedef int (*ort_device_type)(const ort_device *d);
typedef const ort_ep_api *(*ort_get_ep_api)(void);
typedef ort_status *(*ort_tensor_size)(const ort_value *v, size_t *out);
typedef ort_status *(*ort_value_initializer)(const ort_value_info *v, const ort_value **out);
typedef ort_status *(*ort_value_is)(const ort_value_info *v, bool *out);
typedef ort_status *(*ort_graph_count)(const ort_graph *g, size_t *out);
typedef ort_status *(*ort_graph_path)(const ort_graph *g, const char **out); /* "": no file */
typedef ort_status *(*ort_graph_opsets)(const ort_graph *g, const char **domains, int64_t *versions,
                                        size_t n);
typedef ort_status *(*ort_graph_values)(const ort_graph *g, const ort_value_info **out, size_t n);
typedef ort_status *(*ort_graph_nodes)(const ort_graph *g, const ort_node **out, size_t n);
typedef ort_status *(*ort_node_text)(const ort_node *n, const char **out);
typedef ort_status *(*ort_node_count)(const ort_node *n, size_t *out);
typedef ort_status *(*ort_node_values)(const ort_node *n, const ort_value_info **out, size_t count);
typedef ort_status *(*ort_node_attrs)(const ort_node *n, const ort_attr **out, size_t count);
typedef ort_status *(*ort_attr_as_tensor)(const ort_attr *a, ort_value **out);
typedef ort_status *(*ort_attr_kind)(const ort_attr *a, int *out);
typedef ort_status *(*ort_attr_name)(const ort_attr *a, const char **out);
typedef ort_status *(*ort_const_data)(const ort_value *v, const void **out);
typedef ort_status *(*ort_option_pairs)(const ort_options *o, ort_pairs **out);
typedef bool (*ort_shape_is_known)(const ort_shape *s);

/* `struct OrtEpFactory`, `struct OrtEp`, `struct OrtNodeComputeInfo`, `struct
 * OrtNodeFusionOptions`, as of version 23. What is NULL in ort_ep, the runtime does itself; of a
 * factory it asks for everything. */
typedef struct ort_ep_factory ort_ep_factory;
typedef struct ort_ep ort_ep;
typedef struct ort_compute_info ort_compute_info;

struct ort_ep_factory {
    uint32_t version;
    const char *(*name)(const ort_ep_factory *f);
    const char *(*vendor)(const ort_ep_factory *f);
    ort_status *(*supported)(ort_ep_factory *f, const ort_device *const *devices, size_t n,
                             ort_ep_device **out, size_t most, size_t *n_out);
    ort_status *(*create)(ort_ep_factory *f, const ort_device *const *devices,
                          const ort_pairs *const *metadata, size_t n, const ort_options *options,
                          const ort_logger *logger, ort_ep **out);
    void (*release)(ort_ep_factory *f, ort_ep *ep);
    uint32_t (*vendor_id)(const ort_ep_factory *f);
    const char *(*library_version)(const ort_ep_factory *f);
    ort_status *(*validate)(ort_ep_factory *f, const ort_device *const *devices, size_t n,
                            const char *compiled, int *out);
    ort_status *(*allocator)(ort_ep_factory *f, const ort_memory *m, const ort_pairs *options,
                             ort_allocator **out); /* *out NULL: the runtime's own */
    void (*release_allocator)(ort_ep_factory *f, ort_allocator *a);
    ort_status *(*transfer)(ort_ep_factory *f, ort_transfer **out); /* *out NULL: none is needed */
    bool (*has_streams)(const ort_ep_factory *f);
    ort_status *(*stream)(ort_ep_factory *f, const ort_memory *m, const ort_pairs *options,
                          ort_stream **out);
};

struct ort_ep {
    uint32_t version;
    const char *(*name)(const ort_ep *ep);
    ort_status *(*capability)(ort_ep *ep, const ort_graph *g, ort_support *out);
    ort_status *(*compile)(ort_ep *ep, const ort_graph **graphs, const ort_node **nodes, size_t n,
                           ort_compute_info **out, ort_node **contexts);
    void (*release_infos)(ort_ep *ep, ort_compute_info **infos, size_t n);
    ort_function unused[8];
};

struct ort_compute_info {
    uint32_t version;
    ort_status *(*create_state)(ort_compute_info *i, ort_compute_context *c, void **state);
    ort_status *(*compute)(ort_compute_info *i, void *state, ort_context *c);
    void (*release_state)(ort_compute_info *i, void *state);
};

typedef struct ort_fusion_options {
    uint32_t version;
    bool drop_constants; /* the part is not handed its constants, so they need not stay */
} ort_fusion_options;

/* `struct OrtEpApi`: its beginning. */
struct ort_ep_api {
    ort_status *(*create_device)(ort_ep_factory *f, const ort_device *device,
                                 const ort_pairs *metadata, const ort_pairs *options,
                                 ort_ep_device **out);
    void (*release_device)(ort_ep_device *d);
    ort_status *(*add_nodes)(ort_support *s, const ort_node *const *nodes, size_t n,
                             const ort_fusion_options *o);
};

#endif
