/* Compiled programs on disk, in a folder of the user's own. Private to the engine. */
#ifndef OT_ENGINE_GPU_PROGRAM_CACHE_H
#define OT_ENGINE_GPU_PROGRAM_CACHE_H

#include "base/base.h"

/* Bytes; of a key: all that the program depends on. */
typedef struct ot_bytes {
    const void *data;
    size_t n;
} ot_bytes;

/* The folder `name` under that of the user's caches, made where it is missing, for nobody else to
 * enter. NULL: there is none that is the user's alone, or no memory. */
char *ot_cache_folder(const char *name, ot_arena *a);
/* The program that was kept at `path` under this key. False: there is none, or what is there is no
 * file of the user's own, is not whole, or is kept under another key. */
bool ot_program_read(const char *path, ot_bytes key, ot_arena *a, ot_bytes *program) OT_MUST_USE;
/* Keep it, on the disk before it can be seen; what cannot be written is not kept. */
void ot_program_write(const char *path, ot_bytes key, ot_bytes program, ot_arena *a);

#endif
