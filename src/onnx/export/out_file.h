/* Where output goes: buffered bytes, and files that appear whole or not at all. For whoever
 * writes files; knows no format. */
#ifndef OT_ONNX_EXPORT_OUT_FILE_H
#define OT_ONNX_EXPORT_OUT_FILE_H

#include "base/base.h"
#include "base/signals.h"

/* ---- sink.c: where bytes go ---- */

/* A buffered file descriptor, or a block of memory. The first failure sticks. */
typedef struct ot_sink {
    ot_diag *d;
    const char *path; /* for messages */
    int fd;           /* -1: memory only */
    char *buffer;     /* [cap]; owned by whoever set it */
    size_t n;         /* bytes waiting in buffer */
    size_t cap;
    uint64_t total;             /* bytes put so far */
    const ot_signal_hold *hold; /* of signals that give it up; NULL: none are held */
    ot_status status;
} ot_sink;

void ot_sink_put(ot_sink *s, const void *bytes, size_t n);
/* Write what waits; returns the sticky status. */
ot_status ot_sink_flush(ot_sink *s) OT_MUST_USE;

/* ---- out_file.c: a file that appears whole or not at all ---- */

typedef struct ot_out {
    ot_sink sink;
    const char *path; /* final place, links resolved */
    const char *temp; /* temporary file in the same folder; NULL when written to directly or gone */
    bool direct;      /* pipe, device or stdout */
    int dir_fd;       /* of the folder, for fsync; -1 when it cannot be opened or is not needed */
    bool owns_fd;
    ot_signal_hold hold; /* from open to close */
} ot_out;

/* Refuses a path that ot_out_open would refuse for its folder: that is none, or is not there, or
 * path is one itself. For who has much to do before writing; touches nothing. */
ot_status ot_out_check(const char *path, ot_diag *d) OT_MUST_USE;
/* Prepare writing to `path`. Strings and buffer live in `a`. Signals that end the program wait
 * until it is closed, and make writing fail; files are closed in reverse order of opening. */
ot_status ot_out_open(ot_out *o, const char *path, ot_arena *a, ot_diag *d) OT_MUST_USE;
/* Flush and fsync; the data is safe but not yet visible. */
ot_status ot_out_seal(ot_out *o) OT_MUST_USE;
/* Rename into place and fsync the folder. */
ot_status ot_out_publish(ot_out *o) OT_MUST_USE;
/* Close, and remove the temporary file if it was not published. Safe after any of the above. */
void ot_out_close(ot_out *o);

/* All of that: a file of n bytes, whole or not at all; "-": stdout. */
ot_status ot_out_write(const char *path, const char *bytes, size_t n, ot_diag *d) OT_MUST_USE;

#endif
