/* Arrays that stay in their files: mapped where they are large, whether a model reads or writes
 * them.
 *
 *   F.npy         a header that says type and shape, then elements
 *   F.raw, F.bin  elements and nothing else: dense, row-major, little-endian
 *   F.pb          a TensorProto: read as a whole, never written
 */
#ifndef OT_ENGINE_CORE_ARRAY_FILE_H
#define OT_ENGINE_CORE_ARRAY_FILE_H

#include "base/file_view.h"
#include "engine.h"
#include "onnx/export/out_file.h"

/* ---- names ---- */

bool ot_path_ends(const char *path, const char *ending);
/* Elements and nothing else, by its name. */
bool ot_path_is_raw(const char *path);
/* Both lead to the same file, or would: what does not exist yet lies in the same folder under the
 * same name. */
bool ot_same_file(const char *a, const char *b);

/* ---- npy.c ---- */

typedef struct ot_npy_form {
    ot_dtype dtype; /* OT_DT_UNKNOWN: one that is not supported */
    uint32_t rank;
    int64_t dims[OT_RANK_MAX];
    int64_t at; /* where elements begin */
    bool fortran;
} ot_npy_form;

/* Open a file for reading. Fails: OT_E_INPUT (there is none), OT_E_SYSTEM. */
ot_status ot_npy_open(const char *path, ot_diag *d, FILE **out) OT_MUST_USE;
/* What the header says, from the beginning of the file. OT_E_INPUT. */
ot_status ot_npy_head(FILE *f, const char *path, ot_diag *d, ot_npy_form *out) OT_MUST_USE;
/* Booleans of a file become 0 and 1; other types stay. */
void ot_npy_mend_bools(ot_nd *a, int64_t bytes);
/* The header of an array of that type and these dimensions: a multiple of 64 bytes. OT_E_INPUT:
 * .npy has no such type. */
ot_status ot_npy_put_head(ot_sink *sink, const ot_nd *a, const char *what, ot_diag *d) OT_MUST_USE;

/* ---- array_file.c ---- */

/* An array that was read, or is mapped. */
typedef struct ot_array_in {
    ot_nd array;
    ot_file_view *view; /* NULL: read, and the array has memory of its own */
    const char *path;
    /* of a view: which file this is, and how long it has to be */
    uint64_t device, inode;
    int64_t bytes;
} ot_array_in;

/* Map a file of OT_MAPPED_MIN bytes or more whose elements lie as they are needed, where `maps`;
 * read any other. raw: type and dimensions of a raw file; NULL: as raw files are none. Fails:
 * OT_E_INPUT (the file or its length is wrong), OT_E_SYSTEM, OT_E_NOMEM. */
#define OT_MAPPED_MIN ((int64_t)1 << 20)
ot_status ot_array_in_open(ot_array_in *in, const char *path, const ot_nd *raw, bool maps,
                           ot_diag *d) OT_MUST_USE;
/* OT_E_INPUT: the file has become shorter, or unreadable, since it was mapped. */
ot_status ot_array_in_check(const ot_array_in *in, ot_diag *d) OT_MUST_USE;
void ot_array_in_close(ot_array_in *in);

/* A file that becomes an array. Its memory is that of the file, or none: then it is to be put. */
typedef struct ot_array_out {
    ot_out file;
    ot_nd array; /* data NULL: not mapped */
    ot_file_view *view;
    int64_t bytes; /* of the file, with that */
    const char *path;
} ot_array_out;

/* A file for an array of the type and dimensions of *form, of full size and mapped where that can
 * be. Fails: OT_E_SYSTEM (no room, not to be written), OT_E_INPUT (a type that the format lacks).
 */
ot_status ot_array_out_open(ot_array_out *o, const char *path, const ot_nd *form, ot_arena *a,
                            ot_diag *d) OT_MUST_USE;
/* What is not mapped: a dense array of that form. */
ot_status ot_array_out_fill(ot_array_out *o, const ot_nd *array, ot_diag *d) OT_MUST_USE;
/* All of that for an array that is there already, up to the seal. */
ot_status ot_array_out_put(ot_array_out *o, const char *path, const ot_nd *array, ot_arena *a,
                           ot_diag *d) OT_MUST_USE;
/* All is written: the file is complete on the disk, and not to be seen yet. */
ot_status ot_array_out_seal(ot_array_out *o, ot_diag *d) OT_MUST_USE;
/* It is there under its name (ot_out_publish); or nothing of it stays. */
ot_status ot_array_out_publish(ot_array_out *o) OT_MUST_USE;
void ot_array_out_close(ot_array_out *o);

#endif
