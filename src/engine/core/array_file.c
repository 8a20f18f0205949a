/* Arrays in files, mapped. See array_file.h.
 *
 *   in    header | elements          one view; the array's memory is in it
 *   out   header | elements          a new file of full size beside the final one, mapped; a run
 *                                    writes elements; synced; renamed
 */
#include "array_file.h"

#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ---- */

bool ot_path_ends(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

bool ot_path_is_raw(const char *path)
{
    return ot_path_ends(path, ".raw") || ot_path_ends(path, ".bin");
}

/* Folder and name of a path that does not exist. */
static const char *split(const char *path, struct stat *folder)
{
    char text[4096];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (n >= sizeof text) return NULL;
    memcpy(text, path, n);
    memcpy(text + n, ".", 2);
    return n + 2 <= sizeof text && stat(text, folder) == 0 ? path + n : NULL;
}

bool ot_same_file(const char *a, const char *b)
{
    struct stat x, y;
    const bool has_a = stat(a, &x) == 0, has_b = stat(b, &y) == 0;
    if (has_a != has_b) return false;
    if (has_a) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    const char *name_a = split(a, &x), *name_b = split(b, &y);
    return name_a && name_b && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
           strcmp(name_a, name_b) == 0;
}

/* ---- in ---- */

static ot_status wrong(ot_diag *d, const char *path, const char *rule)
{
    return ot_fail(d, OT_E_INPUT, "'%.300s': %s", path, rule);
}

static ot_status cannot(ot_diag *d, const char *what, const char *path)
{
    return ot_fail(d, OT_E_SYSTEM, "cannot %s '%.300s': %s", what, path, strerror(errno));
}

/* The form of a raw file, and its length. */
static ot_status raw_form(const char *path, const ot_nd *raw, int64_t size, ot_diag *d,
                          ot_npy_form *out)
{
    char dims[400];
    int64_t bytes;
    if (!raw) return wrong(d, path, "a raw file cannot be given here");
    *out = (ot_npy_form){.dtype = raw->dtype, .rank = raw->rank};
    memcpy(out->dims, raw->dims, sizeof out->dims);
    if (!ot_nd_bytes(raw->dtype, raw->rank, raw->dims, &bytes))
        return wrong(d, path, "its shape asks for more bytes than can be counted");
    if (bytes == size) return OT_OK;
    return ot_fail(d, OT_E_INPUT, "'%.300s' holds %lld bytes, but %s of shape %s takes %lld", path,
                   (long long)size, ot_dtype_name(raw->dtype),
                   ot_dims_text(raw->rank, raw->dims, dims, sizeof dims), (long long)bytes);
}

/* Elements lie in the file as implementations read them. Booleans other than 0 and 1 have to be
 * made so. */
static bool is_mappable(const ot_npy_form *form, int64_t bytes)
{
    const int64_t size = (int64_t)ot_dtype_bytes(form->dtype);
    return size > 0 && form->dtype != OT_BOOL && !(form->fortran && form->rank > 1) &&
           form->at % size == 0 && bytes >= OT_MAPPED_MIN;
}

static ot_status map(ot_array_in *in, FILE *f, const ot_npy_form *form, int64_t bytes, ot_diag *d)
{
    struct stat st;
    if (fstat(fileno(f), &st) != 0) return cannot(d, "read", in->path);
    in->device = st.st_dev;
    in->inode = st.st_ino;
    in->bytes = form->at + bytes;
    const ot_status s = ot_file_view_new(fileno(f), (size_t)in->bytes, &in->view);
    if (s == OT_E_NOMEM) return ot_fail_nomem(d);
    if (s != OT_OK) return cannot(d, "map", in->path);
    in->array.data = (char *)(uintptr_t)ot_file_view_data(in->view) + form->at;
    ot_nd_set_dense(&in->array, form->dtype, form->rank, form->dims);
    return OT_OK;
}

static ot_status read_raw(ot_array_in *in, FILE *f, const ot_npy_form *form, ot_diag *d)
{
    int64_t bytes;
    OT_TRY(ot_nd_new(&in->array, form->dtype, form->rank, form->dims, d));
    if (!ot_nd_bytes(form->dtype, form->rank, form->dims, &bytes))
        OT_BUG("an array in memory cannot be counted");
    if (bytes == 0 || fread(in->array.data, 1, (size_t)bytes, f) == (size_t)bytes) {
        ot_npy_mend_bools(&in->array, bytes);
        return OT_OK;
    }
    const ot_status s = ferror(f) ? cannot(d, "read", in->path)
                                  : wrong(d, in->path, "it has become shorter while it was read");
    ot_nd_release(&in->array);
    return s;
}

/* The form of the file; *again: it is a regular one that can be read once more. */
static ot_status open_form(ot_array_in *in, FILE *f, const ot_nd *raw, ot_diag *d,
                           ot_npy_form *form)
{
    struct stat st;
    const bool is_raw = ot_path_is_raw(in->path);
    if (fstat(fileno(f), &st) != 0) return cannot(d, "read", in->path);
    if (!S_ISREG(st.st_mode)) return wrong(d, in->path, "it is no regular file");
    if (is_raw) return raw_form(in->path, raw, st.st_size, d, form);
    OT_TRY(ot_npy_head(f, in->path, d, form));
    int64_t bytes;
    if (form->dtype == OT_DT_UNKNOWN || !ot_nd_bytes(form->dtype, form->rank, form->dims, &bytes))
        return OT_OK; /* reading says so */
    return st.st_size - form->at < bytes
               ? wrong(d, in->path, "it holds fewer elements than its shape asks for")
               : OT_OK;
}

/* A pipe, too, is read. */
static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

ot_status ot_array_in_open(ot_array_in *in, const char *path, const ot_nd *raw, bool maps,
                           ot_diag *d)
{
    FILE *f;
    ot_npy_form form;
    int64_t bytes;
    *in = (ot_array_in){.path = path};
    const bool is_raw = ot_path_is_raw(path);
    if (!is_raw && (ot_path_ends(path, ".pb") || !is_regular(path)))
        return ot_npy_read(path, d, &in->array);
    OT_TRY(ot_npy_open(path, d, &f));
    ot_status s = open_form(in, f, raw, d, &form);
    maps = maps && s == OT_OK && ot_nd_bytes(form.dtype, form.rank, form.dims, &bytes) &&
           is_mappable(&form, bytes);
    if (maps)
        s = map(in, f, &form, bytes, d);
    else if (s == OT_OK && is_raw)
        s = read_raw(in, f, &form, d);
    (void)fclose(f); /* read only */
    return s == OT_OK && !maps && !is_raw ? ot_npy_read(path, d, &in->array) : s;
}

ot_status ot_array_in_check(const ot_array_in *in, ot_diag *d)
{
    struct stat st;
    if (!in->view) return OT_OK;
    /* less than a page: read as zeros, and no signal */
    const bool shorter = stat(in->path, &st) == 0 && st.st_dev == in->device &&
                         st.st_ino == in->inode && st.st_size < in->bytes;
    if (!shorter && !ot_file_view_damaged(in->view)) return OT_OK;
    return wrong(d, in->path, "it has become shorter, or unreadable, while it was in use");
}

void ot_array_in_close(ot_array_in *in)
{
    ot_nd_release(&in->array);
    ot_file_view_free(in->view);
    in->view = NULL;
}

/* ---- out ---- */

/* Blocks for all of the file, now: a disk that is full later is a signal in the middle of a run. */
static ot_status take_room(ot_array_out *o, int64_t bytes, ot_diag *d)
{
    int error;
    do error = posix_fallocate(o->file.sink.fd, 0, bytes);
    while (error == EINTR);
    errno = error;
    return error ? cannot(d, "write", o->path) : OT_OK;
}

static ot_status map_out(ot_array_out *o, int64_t bytes, ot_diag *d)
{
    int64_t total;
    const int64_t head = (int64_t)o->file.sink.total;
    if (!ot_add_i64(head, bytes, &total)) return ot_fail_nomem(d);
    OT_TRY(ot_sink_flush(&o->file.sink));
    OT_TRY(take_room(o, total, d));
    const ot_status s = ot_file_view_write(o->file.sink.fd, (size_t)total, &o->view);
    if (s == OT_E_NOMEM) return ot_fail_nomem(d);
    if (s != OT_OK) return cannot(d, "map", o->path);
    o->array.data = (char *)ot_file_view_place(o->view) + head;
    o->bytes = total;
    return OT_OK;
}

static ot_status begin_out(ot_array_out *o, const char *path, const ot_nd *form, ot_arena *a,
                           ot_diag *d)
{
    *o = (ot_array_out){.path = path, .file = {.dir_fd = -1}};
    ot_nd_set_dense(&o->array, form->dtype, form->rank, form->dims);
    OT_TRY(ot_out_open(&o->file, path, a, d));
    return ot_path_is_raw(path) ? OT_OK : ot_npy_put_head(&o->file.sink, &o->array, path, d);
}

ot_status ot_array_out_open(ot_array_out *o, const char *path, const ot_nd *form, ot_arena *a,
                            ot_diag *d)
{
    int64_t bytes;
    OT_TRY(begin_out(o, path, form, a, d));
    if (!ot_nd_bytes(form->dtype, form->rank, form->dims, &bytes))
        return wrong(d, path, "its shape asks for more bytes than can be counted");
    return o->file.direct || bytes == 0 ? OT_OK : map_out(o, bytes, d);
}

ot_status ot_array_out_fill(ot_array_out *o, const ot_nd *array, ot_diag *d)
{
    int64_t bytes;
    if (!array->data || !ot_nd_is_dense(array) ||
        !ot_nd_bytes(array->dtype, array->rank, array->dims, &bytes))
        return wrong(d, o->path, "what is to be written is no dense array");
    ot_sink_put(&o->file.sink, array->data, (size_t)bytes);
    return o->file.sink.status;
}

ot_status ot_array_out_put(ot_array_out *o, const char *path, const ot_nd *array, ot_arena *a,
                           ot_diag *d)
{
    OT_TRY(begin_out(o, path, array, a, d));
    OT_TRY(ot_array_out_fill(o, array, d));
    return ot_array_out_seal(o, d);
}

ot_status ot_array_out_seal(ot_array_out *o, ot_diag *d)
{
    struct stat st;
    if (o->view && (ot_file_view_damaged(o->view) || fstat(o->file.sink.fd, &st) != 0 ||
                    st.st_size < o->bytes))
        return ot_fail(d, OT_E_SYSTEM,
                       "cannot write '%.300s': it has become shorter, or its disk is full",
                       o->path);
    ot_file_view_free(o->view);
    o->view = NULL;
    o->array.data = NULL;
    return ot_out_seal(&o->file);
}

ot_status ot_array_out_publish(ot_array_out *o) { return ot_out_publish(&o->file); }

void ot_array_out_close(ot_array_out *o)
{
    ot_file_view_free(o->view);
    o->view = NULL;
    o->array.data = NULL;
    ot_out_close(&o->file);
}
