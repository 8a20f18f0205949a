/* What ONNX Runtime and a library of custom operators see of each other: declared here, since
 * neither Debian nor the wheels on PyPI have its headers. Only what is used; numbers and fields
 * are those of its C interface, which grows at the end and never changes.
 *
 *   RegisterCustomOps(options, base)        base->get_api(version): a table of functions, NULL when
 *                                           that version is newer than the runtime
 *     api[CREATE_DOMAIN], api[ADD_OP]       the table by index: position of the function in `struct
 *                                           OrtApi` of onnxruntime_c_api.h
 *     op -> create, compute, destroy        `struct OrtCustomOp`: fields as of version 16, which
 *                                           newer runtimes read no further
 *
 * Private to src/ort.
 */
#ifndef OT_ORT_ORT_ABI_H
#define OT_ORT_ORT_ABI_H

#include <stddef.h>
#include <stdint.h>

/* The first version whose kernels can fail with a line: ONNX Runtime 1.16. */
#define ORT_VERSION_NEEDED 16
/* The first one whose operators can use its threads. */
#define ORT_VERSION_THREADS 17

/* Theirs; only pointers to them are handed on. */
typedef struct ort_status ort_status;
typedef struct ort_options ort_options;
typedef struct ort_domain ort_domain;
typedef struct ort_info ort_info;       /* of a node, while its kernel is made */
typedef struct ort_context ort_context; /* of one run of a kernel */
typedef struct ort_value ort_value;
typedef struct ort_op ort_op;       /* an operator, below */
typedef struct ort_shape ort_shape; /* type and dimensions of a tensor */

/* Types of elements have ONNX's numbers. */
#define ORT_TYPE_ANY     0
#define ORT_OPTIONAL     1
#define ORT_VARIADIC     2
#define ORT_MEMORY_PLAIN 0
#define ORT_FAIL         1

/* Positions of functions in the table. */
enum {
    ORT_CREATE_STATUS = 0,
    ORT_CREATE_DOMAIN = 26,
    ORT_DOMAIN_ADD = 27,
    ORT_OPTIONS_ADD = 28,
    ORT_TENSOR_DATA = 51,
    ORT_SHAPE_TYPE = 60,
    ORT_SHAPE_RANK = 61,
    ORT_SHAPE_DIMS = 62,
    ORT_TENSOR_SHAPE = 65,
    ORT_ATTRIBUTE_INT = 86,
    ORT_ATTRIBUTE_STRING = 87,
    ORT_INPUT_COUNT = 88,
    ORT_OUTPUT_COUNT = 89,
    ORT_INPUT = 90,
    ORT_OUTPUT = 91,
    ORT_RELEASE_STATUS = 93,
    ORT_RELEASE_SHAPE = 99,
    ORT_RELEASE_DOMAIN = 101,
    ORT_OPTION_EXISTS = 237,
    ORT_OPTION = 238,
    ORT_PARALLEL_FOR = 274 /* as of version ORT_VERSION_THREADS */
};

typedef void (*ort_function)(void);
typedef struct ort_api {
    ort_function at[391]; /* those of older versions are fewer */
} ort_api;

typedef struct ort_base {
    const ort_api *(*get_api)(uint32_t version);
    const char *(*version)(void);
} ort_base;

/* Signatures of the functions above, in their order. Statuses: NULL is success; others are the
 * caller's to hand on or to release. */
typedef ort_status *(*ort_create_status)(int code, const char *message);
typedef ort_status *(*ort_create_domain)(const char *name, ort_domain **out);
typedef ort_status *(*ort_domain_add)(ort_domain *d, const ort_op *op);
typedef ort_status *(*ort_options_add)(ort_options *o, ort_domain *d);
typedef ort_status *(*ort_tensor_data)(ort_value *v, void **out);
typedef ort_status *(*ort_shape_type)(const ort_shape *s, int *out);
typedef ort_status *(*ort_shape_rank)(const ort_shape *s, size_t *out);
typedef ort_status *(*ort_shape_dims)(const ort_shape *s, int64_t *dims, size_t n);
typedef ort_status *(*ort_tensor_shape)(const ort_value *v, ort_shape **out);
typedef ort_status *(*ort_attribute_int)(const ort_info *i, const char *name, int64_t *out);
typedef ort_status *(*ort_attribute_string)(const ort_info *i, const char *name, char *out,
                                            size_t *size); /* out NULL: the size, with a 0 byte */
typedef ort_status *(*ort_count)(const ort_context *c, size_t *out);
typedef ort_status *(*ort_input)(const ort_context *c, size_t k, const ort_value **out);
typedef ort_status *(*ort_output)(ort_context *c, size_t k, const int64_t *dims, size_t rank,
                                  ort_value **out);
typedef ort_status *(*ort_parallel_for)(const ort_context *c, void (*task)(void *job, size_t k),
                                        size_t n, size_t batches,
                                        void *job); /* batches 0: as many as there are threads */
typedef void (*ort_release_status)(ort_status *s);
typedef void (*ort_release_shape)(ort_shape *s);
typedef void (*ort_release_domain)(ort_domain *d);
typedef ort_status *(*ort_option_exists)(const ort_options *o, const char *key, int *out);
typedef ort_status *(*ort_option)(const ort_options *o, const char *key, char *out, size_t *size);

/* `struct OrtCustomOp`: one operator. Those with a version of their own (V2) are what
 * ORT_VERSION_NEEDED asks for. */
struct ort_op {
    uint32_t version;
    void *(*create_v1)(const ort_op *op, const ort_api *api, const ort_info *info);
    const char *(*name)(const ort_op *op);
    const char *(*provider)(const ort_op *op); /* NULL: the processor */
    int (*input_type)(const ort_op *op, size_t k);
    size_t (*n_inputs)(const ort_op *op);
    int (*output_type)(const ort_op *op, size_t k);
    size_t (*n_outputs)(const ort_op *op);
    void (*compute_v1)(void *kernel, ort_context *c);
    void (*destroy)(void *kernel);
    int (*input_kind)(const ort_op *op, size_t k);
    int (*output_kind)(const ort_op *op, size_t k);
    int (*input_memory)(const ort_op *op, size_t k);
    int (*least_inputs)(const ort_op *op);
    int (*inputs_alike)(const ort_op *op);
    int (*least_outputs)(const ort_op *op);
    int (*outputs_alike)(const ort_op *op);
    ort_status *(*create)(const ort_op *op, const ort_api *api, const ort_info *info,
                          void **kernel);
    ort_status *(*compute)(void *kernel, ort_context *c);
};

#endif
