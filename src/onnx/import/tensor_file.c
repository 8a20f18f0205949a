/* A file of one TensorProto (.pb), as the operator tests of ONNX hold inputs and outputs.
 *
 *   read -> scan -> unpack -> copy of the elements; the message itself is freed
 *
 * The same checks as for a model's tensors apply; external data is refused: a single tensor has
 * no folder.
 */
#include "import.h"
#include "model_io.h"

#include <errno.h>

static ot_status cannot_read(const char *path, ot_diag *d)
{
    bool users = errno == ENOENT || errno == ENOTDIR || errno == EISDIR || errno == ENAMETOOLONG ||
                 errno == ELOOP;
    return ot_fail(d, users ? OT_E_INPUT : OT_E_SYSTEM, "cannot read '%.300s': %s", path,
                   strerror(errno));
}

/* All bytes of the file. */
static ot_status read_file(const char *path, ot_arena *a, ot_diag *d, char **bytes, size_t *n)
{
    FILE *f = fopen(path, "re");
    size_t cap = 0;
    *bytes = NULL;
    *n = 0;
    if (!f) return cannot_read(path, d);
    ot_status s = OT_OK;
    for (;;) {
        if (*n == cap &&
            (cap > (size_t)INT32_MAX || !ot_grow(a, (void **)bytes, &cap, *n + 4096, 1))) {
            s = cap > (size_t)INT32_MAX
                    ? ot_fail(d, OT_E_INPUT, "'%.300s' is larger than 2 GiB", path)
                    : ot_fail_nomem(d);
            break;
        }
        size_t got = fread(*bytes + *n, 1, cap - *n, f);
        *n += got;
        if (got == 0) break;
    }
    if (s == OT_OK && ferror(f)) s = cannot_read(path, d);
    (void)fclose(f); /* read only */
    return s;
}

/* The elements, so that the message may go. */
static ot_status copy_tensor(const ot_tensor *t, const char *path, ot_arena *a, ot_diag *d,
                             const ot_tensor **out)
{
    ot_tensor *own = ot_memdup(a, t, sizeof *t);
    const bool narrow = ot_dtype_bits(t->dtype) > 0 && ot_dtype_bits(t->dtype) < 8;
    int64_t elems = 0;
    if (!ot_product(t->dims, t->rank, &elems)) return ot_fail_nomem(d);
    if (own && narrow) own->bytes = (size_t)elems;
    void *data = own ? ot_alloc(a, own->bytes) : NULL;
    int64_t *dims = own ? ot_memdup(a, t->dims, t->rank * sizeof *t->dims) : NULL;
    if (!data || !dims) return ot_fail_nomem(d);
    if (narrow ? !ot_tensor_unpack(t, data) : !ot_tensor_read(t, data))
        return ot_fail(d, OT_E_INPUT, "'%.300s': elements of type %s are not supported", path,
                       ot_dtype_name(t->dtype));
    own->data = data;
    own->dims = dims;
    own->packed = NULL;
    own->proto = NULL;
    *out = own;
    return OT_OK;
}

static ot_status from_message(const Onnx__TensorProto *p, const char *path, ot_arena *a, ot_diag *d,
                              const ot_tensor **out)
{
    if (p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return ot_fail(d, OT_E_INPUT, "'%.300s': its elements are in another file", path);
    /* the importer wants one; it holds the tensor until it is copied */
    ot_model *m = ot_model_new(d);
    ot_source src = {0};
    ot_importer im = {.m = m, .d = d, .src = &src};
    const ot_tensor *t;
    if (!m) return ot_fail_nomem(d);
    ot_status s = ot_import_tensor(&im, p, path, &t);
    if (s == OT_OK) s = copy_tensor(t, path, a, d, out);
    ot_model_free(m);
    return s;
}

ot_status ot_import_tensor_file(const char *path, ot_arena *a, ot_diag *d, const ot_tensor **out)
{
    char *bytes;
    size_t n;
    OT_TRY(read_file(path, a, d, &bytes, &n));
    if (n == 0) return ot_fail(d, OT_E_INPUT, "'%.300s' is empty", path);
    ot_diag scan = {0};
    if (ot_pb_scan((const uint8_t *)bytes, n, &onnx__tensor_proto__descriptor, &scan) != OT_OK)
        return ot_fail(d, OT_E_INPUT, "'%.300s' holds no tensor: %.300s", path, scan.message);
    Onnx__TensorProto *p = onnx__tensor_proto__unpack(NULL, n, (const uint8_t *)bytes);
    if (!p) return ot_fail(d, OT_E_INPUT, "'%.300s' holds no tensor", path);
    ot_status s = from_message(p, path, a, d, out);
    onnx__tensor_proto__free_unpacked(p, NULL);
    return s;
}
