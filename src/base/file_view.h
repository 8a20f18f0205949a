/* Files in memory that others may shorten meanwhile. */
#ifndef OT_BASE_FILE_VIEW_H
#define OT_BASE_FILE_VIEW_H

#include "base.h"

/* A file mapped for reading, guarded: where the file has become shorter, or cannot be read any
 * more, zeros are read, instead of a signal that ends the process, and the view is damaged from
 * then on. A handler of SIGBUS stays installed from the first view on; what it does not know it
 * hands to the handler that was there before. */
typedef struct ot_file_view ot_file_view;

/* View the first `size` bytes (at least 1) of a file. Fails with errno set: OT_E_NOMEM,
 * OT_E_SYSTEM (no message). */
ot_status ot_file_view_new(int fd, size_t size, ot_file_view **out) OT_MUST_USE;
const void *ot_file_view_data(const ot_file_view *v);
/* The same of a file that has that size and is open for reading and writing: what is written into
 * memory is written into the file. Where the file has become shorter, or has no room, it is lost,
 * and the view is damaged. */
ot_status ot_file_view_write(int fd, size_t size, ot_file_view **out) OT_MUST_USE;
/* Where to write; NULL: it is for reading. */
void *ot_file_view_place(ot_file_view *v);
/* Zeros were read in the place of bytes of the file. */
bool ot_file_view_damaged(const ot_file_view *v);
void ot_file_view_free(ot_file_view *v); /* accepts NULL */

#endif
