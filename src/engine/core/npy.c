/* Arrays in files: NumPy's .npy, and a TensorProto (.pb) through the importer.
 *
 *   \x93NUMPY  major minor  header length  {'descr': '<f4', 'fortran_order': False, 'shape': (1,
 *              3), }  elements
 *      6         1     1      2 (or 4)         a Python dictionary, these three keys in any order
 *
 * Elements are little-endian; Fortran order (first index fastest) is turned into C order.
 * bfloat16 has no name of its own in the format: NumPy's extension types write it as two plain
 * bytes, and so do we.
 */
#include "session.h"

#include "array_file.h"
#include "onnx/export/out_file.h"
#include "onnx/import/model_io.h"

#include <errno.h>

#define HEADER_MAX 65536u

/* ---- element types ---- */

static const struct {
    const char *descr;
    ot_dtype dtype;
} TYPES[] = {{"<f4", OT_F32}, {"<f8", OT_F64},  {"<f2", OT_F16},  {"|i1", OT_I8},  {"|u1", OT_U8},
             {"<i2", OT_I16}, {"<u2", OT_U16},  {"<i4", OT_I32},  {"<u4", OT_U32}, {"<i8", OT_I64},
             {"<u8", OT_U64}, {"|b1", OT_BOOL}, {"<V2", OT_BF16}, {"|V2", OT_BF16}};
#define N_TYPES (sizeof TYPES / sizeof *TYPES)

/* Types that NumPy does not have are written as they are held: values, or codes of floats. */
static const char *descr_of(ot_dtype t)
{
    for (size_t k = 0; k < N_TYPES; k++)
        if (TYPES[k].dtype == t) return TYPES[k].descr;
    switch ((int)t) {
    case OT_I4:
    case OT_I2: return "|i1";
    case OT_U4:
    case OT_U2: return "|u1";
    default: return ot_dtype_bytes(t) == 1 ? "|V1" : NULL;
    }
}

/* "<f4", also "f4", "=f4" and "|f4"; the order of bytes means nothing where there is one byte. */
static ot_dtype dtype_of(const char *descr)
{
    const char *kind = descr + (strchr("<=|", descr[0]) ? 1 : 0);
    for (size_t k = 0; descr[0] && k < N_TYPES; k++)
        if (strcmp(TYPES[k].descr + 1, kind) == 0) return TYPES[k].dtype;
    if (descr[0] == '>' && descr[1] && descr[2] == '1') return dtype_of(descr + 1);
    return strcmp(kind, "?") == 0 ? OT_BOOL : OT_DT_UNKNOWN;
}

/* ---- the header ---- */

typedef struct header {
    const char *at; /* in the text, which ends with a zero byte */
    ot_dtype dtype;
    char descr[16];
    bool fortran;
    uint32_t rank;
    int64_t dims[OT_RANK_MAX];
    unsigned seen; /* keys: 1 descr, 2 fortran_order, 4 shape */
} header;

static void skip_space(header *h) { h->at += strspn(h->at, " \t\r\n"); }

static bool take(header *h, const char *word)
{
    skip_space(h);
    size_t n = strlen(word);
    if (strncmp(h->at, word, n) != 0) return false;
    h->at += n;
    return true;
}

/* 'text' or "text" into buf. */
static bool take_quoted(header *h, char *buf, size_t size)
{
    skip_space(h);
    char quote = *h->at;
    const char *end = quote == '\'' || quote == '"' ? strchr(h->at + 1, quote) : NULL;
    if (!end || (size_t)(end - h->at) > size) return false;
    memcpy(buf, h->at + 1, (size_t)(end - h->at) - 1);
    buf[end - h->at - 1] = '\0';
    h->at = end + 1;
    return true;
}

/* "(3, 4)", "(3,)", "()" */
static bool take_shape(header *h)
{
    if (!take(h, "(")) return false;
    while (!take(h, ")")) {
        int64_t v = 0;
        size_t digits = strspn((skip_space(h), h->at), "0123456789");
        if (digits == 0 || h->rank == OT_RANK_MAX) return false;
        for (size_t k = 0; k < digits; k++)
            if (!ot_mul_i64(v, 10, &v) || !ot_add_i64(v, h->at[k] - '0', &v)) return false;
        h->dims[h->rank++] = v;
        h->at += digits;
        (void)take(h, "L"); /* Python 2 */
        if (!take(h, ",") && (skip_space(h), *h->at != ')')) return false;
    }
    return true;
}

static bool take_entry(header *h)
{
    char key[32];
    if (!take_quoted(h, key, sizeof key) || !take(h, ":")) return false;
    unsigned bit = strcmp(key, "descr") == 0           ? 1
                   : strcmp(key, "fortran_order") == 0 ? 2
                   : strcmp(key, "shape") == 0         ? 4
                                                       : 0;
    if (bit == 0 || (h->seen & bit)) return false;
    h->seen |= bit;
    if (bit == 1) {
        if (!take_quoted(h, h->descr, sizeof h->descr)) return false;
        h->dtype = dtype_of(h->descr);
        return true;
    }
    if (bit == 4) return take_shape(h);
    h->fortran = take(h, "True");
    return h->fortran || take(h, "False");
}

static bool parse_header(header *h)
{
    if (!take(h, "{")) return false;
    while (!take(h, "}")) {
        if (!take_entry(h)) return false;
        if (!take(h, ",") && (skip_space(h), *h->at != '}')) return false;
    }
    return h->seen == 7;
}

/* ---- reading ---- */

static ot_status bad(ot_diag *d, const char *path, const char *rule)
{
    return ot_fail(d, OT_E_INPUT, "'%.300s': %s", path, rule);
}

/* The header's text into buf [HEADER_MAX + 1]. */
static ot_status read_header(FILE *f, const char *path, ot_diag *d, char *buf)
{
    unsigned char head[12];
    if (fread(head, 1, 10, f) != 10 || memcmp(head, "\x93NUMPY", 6) != 0)
        return bad(d, path, "no .npy file");
    uint32_t n = head[8] | (uint32_t)head[9] << 8;
    if (head[6] < 1 || head[6] > 3)
        return bad(d, path, "an .npy file of a version that is not supported");
    if (head[6] > 1) {
        if (fread(head + 10, 1, 2, f) != 2) return bad(d, path, "its header is cut off");
        n |= (uint32_t)head[10] << 16 | (uint32_t)head[11] << 24;
    }
    if (n > HEADER_MAX) return bad(d, path, "its header is too long");
    if (fread(buf, 1, n, f) != n) return bad(d, path, "its header is cut off");
    buf[n] = '\0';
    return OT_OK;
}

/* In C order what the file holds in Fortran order. */
static ot_status to_c_order(ot_nd *a, ot_diag *d)
{
    ot_nd c;
    int64_t n, size = (int64_t)ot_dtype_bytes(a->dtype), at[OT_RANK_MAX] = {0};
    OT_TRY(ot_nd_new(&c, a->dtype, a->rank, a->dims, d));
    if (!ot_nd_elems(a, &n)) OT_BUG("an array in memory cannot be counted");
    for (int64_t i = 0; i < n; i++) { /* i counts in the file's order */
        int64_t to = 0;
        for (uint32_t k = 0; k < a->rank; k++) to += at[k] * c.strides[k];
        memcpy((char *)c.data + to * size, (const char *)a->data + i * size, (size_t)size);
        for (uint32_t k = 0; k < a->rank && ++at[k] == a->dims[k]; k++) at[k] = 0;
    }
    ot_nd_release(a);
    *a = c;
    return OT_OK;
}

void ot_npy_mend_bools(ot_nd *a, int64_t bytes)
{
    uint8_t *at = a->data;
    for (int64_t k = 0; a->dtype == OT_BOOL && k < bytes; k++) at[k] = at[k] != 0;
}

/* Never trust the header with memory: what it asks for must be there. */
static ot_status check_length(FILE *f, const char *path, int64_t bytes, ot_diag *d)
{
    long at = ftell(f);
    if (at < 0 || fseek(f, 0, SEEK_END) != 0) return OT_OK; /* a pipe */
    long end = ftell(f);
    if (end < 0 || fseek(f, at, SEEK_SET) != 0)
        return ot_fail(d, OT_E_SYSTEM, "cannot read '%.300s': %s", path, strerror(errno));
    return end - at < bytes ? bad(d, path, "it holds fewer elements than its shape asks for")
                            : OT_OK;
}

static ot_status read_elements(FILE *f, const char *path, const header *h, ot_diag *d, ot_nd *out)
{
    int64_t bytes;
    if (h->dtype == OT_DT_UNKNOWN)
        return ot_fail(d, OT_E_INPUT, "'%.300s': elements of type '%s' are not supported", path,
                       h->descr);
    if (!ot_nd_bytes(h->dtype, h->rank, h->dims, &bytes))
        return bad(d, path, "its shape asks for more bytes than can be counted");
    OT_TRY(check_length(f, path, bytes, d));
    OT_TRY(ot_nd_new(out, h->dtype, h->rank, h->dims, d));
    ot_status s = OT_OK;
    if (fread(out->data, 1, (size_t)bytes, f) != (size_t)bytes)
        s = ferror(f) ? ot_fail(d, OT_E_SYSTEM, "cannot read '%.300s': %s", path, strerror(errno))
                      : bad(d, path, "it holds fewer elements than its shape asks for");
    if (s == OT_OK) ot_npy_mend_bools(out, bytes);
    if (s == OT_OK && h->fortran && h->rank > 1) s = to_c_order(out, d);
    if (s != OT_OK) ot_nd_release(out);
    return s;
}

/* The header, behind which the file stands. */
static ot_status take_header(FILE *f, const char *path, ot_diag *d, header *h)
{
    char *text = ot_hook_alloc(NULL, 0, HEADER_MAX + 1);
    if (!text) return ot_fail_nomem(d);
    *h = (header){.at = text};
    ot_status s = read_header(f, path, d, text);
    if (s == OT_OK && !parse_header(h)) s = bad(d, path, "its header is malformed");
    (void)!ot_hook_alloc(text, HEADER_MAX + 1, 0);
    return s;
}

static ot_status read_npy(FILE *f, const char *path, ot_diag *d, ot_nd *out)
{
    header h;
    OT_TRY(take_header(f, path, d, &h));
    return read_elements(f, path, &h, d, out);
}

ot_status ot_npy_head(FILE *f, const char *path, ot_diag *d, ot_npy_form *out)
{
    header h;
    *out = (ot_npy_form){.dtype = OT_DT_UNKNOWN};
    OT_TRY(take_header(f, path, d, &h));
    const long at = ftell(f);
    *out = (ot_npy_form){.dtype = h.dtype, .rank = h.rank, .at = at, .fortran = h.fortran};
    memcpy(out->dims, h.dims, sizeof out->dims);
    return OT_OK;
}

static ot_status read_pb(const char *path, ot_diag *d, ot_nd *out)
{
    ot_arena *a = ot_arena_new();
    const ot_tensor *t;
    ot_status s = a ? ot_import_tensor_file(path, a, d, &t) : ot_fail_nomem(d);
    if (s == OT_OK) s = ot_nd_new(out, t->dtype, t->rank, t->dims, d);
    if (s == OT_OK && t->bytes) memcpy(out->data, t->data, t->bytes);
    if (s == OT_OK) ot_npy_mend_bools(out, (int64_t)t->bytes);
    ot_arena_free(a);
    return s;
}

ot_status ot_npy_open(const char *path, ot_diag *d, FILE **out)
{
    *out = fopen(path, "re");
    bool wrong = errno == ENOENT || errno == ENOTDIR || errno == EISDIR || errno == ENAMETOOLONG ||
                 errno == ELOOP;
    if (*out) return OT_OK;
    return ot_fail(d, wrong ? OT_E_INPUT : OT_E_SYSTEM, "cannot read '%.300s': %s", path,
                   strerror(errno));
}

ot_status ot_npy_read(const char *path, ot_diag *d, ot_nd *out)
{
    FILE *f;
    *out = (ot_nd){0};
    if (ot_path_ends(path, ".pb")) return read_pb(path, d, out);
    OT_TRY(ot_npy_open(path, d, &f));
    ot_status s = read_npy(f, path, d, out);
    (void)fclose(f); /* read only */
    return s;
}

/* ---- writing ---- */

/* The header with the padding that aligns the elements to 64 bytes; its length. 0: no such type. */
static size_t make_header(const ot_nd *a, char *buf, size_t size)
{
    char shape[OT_RANK_MAX * 24] = "";
    size_t at = 0;
    const char *descr = descr_of(a->dtype);
    if (!descr) return 0;
    for (uint32_t k = 0; k < a->rank; k++)
        at += (size_t)snprintf(shape + at, sizeof shape - at, "%s%lld%s", k ? ", " : "",
                               (long long)a->dims[k], a->rank == 1 ? "," : "");
    size_t n = 10 + (size_t)snprintf(buf + 10, size - 10,
                                     "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                                     descr, shape);
    while ((n + 1) % 64 != 0) buf[n++] = ' ';
    buf[n++] = '\n';
    memcpy(buf, "\x93NUMPY\x01", 8); /* version 1.0: the zero is the string's own */
    buf[8] = (char)((n - 10) & 0xff);
    buf[9] = (char)((n - 10) >> 8);
    return n;
}

ot_status ot_npy_put_head(ot_sink *sink, const ot_nd *a, const char *what, ot_diag *d)
{
    char buf[OT_RANK_MAX * 24 + 256];
    size_t n = make_header(a, buf, sizeof buf);
    if (n == 0)
        return ot_fail(d, OT_E_INPUT, "%.300s: an array of type %s cannot be written as .npy", what,
                       ot_dtype_name(a->dtype));
    ot_sink_put(sink, buf, n);
    return sink->status;
}

ot_status ot_npy_put(ot_sink *sink, const ot_nd *a, const char *what, ot_diag *d)
{
    int64_t bytes;
    if (!a->data || !ot_nd_is_dense(a) || !ot_nd_bytes(a->dtype, a->rank, a->dims, &bytes))
        return ot_fail(d, OT_E_INPUT, "%.300s: an array of type %s cannot be written as .npy", what,
                       ot_dtype_name(a->dtype));
    OT_TRY(ot_npy_put_head(sink, a, what, d));
    ot_sink_put(sink, a->data, (size_t)bytes);
    return sink->status;
}
