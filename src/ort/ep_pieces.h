/* Contents of large constants, which the model that the engine is given has by number only. Private
 * to src/ort. */
#ifndef OT_ORT_EP_PIECES_H
#define OT_ORT_EP_PIECES_H

#include "onnx_tile.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct ep_piece {
    const char *name; /* the runtime's; of no use after ep_pieces_keep */
    const void *data; /* [bytes] the runtime's, or a copy, or while they are lent of a file */
    size_t bytes;
    bool is_own;     /* data is a copy */
    int32_t file;    /* they are in that one; -1: in none */
    uint64_t offset; /* in it */
} ep_piece;

/* A file that has contents, open as long as they are needed. */
typedef struct ep_file {
    char *path;
    int fd;
    struct stat was;
} ep_file;

typedef struct ep_pieces {
    ep_piece *at; /* [n] by their numbers */
    size_t n, cap;
    ep_file *files; /* [n_files] */
    size_t n_files;
    onnx_tile_lent *lent; /* [n] while they are lent; NULL */
} ep_pieces;

/* false: out of memory. */
bool ep_pieces_add(ep_pieces *p, const char *name, const void *data, size_t bytes);
/* From now on nothing of the runtime's is needed: what the file of the model has, or a file that it
 * names, is read there when it is lent; of what none has, as of what the runtime computed, there is
 * a copy. path: of the model; "": none. false: out of memory. */
bool ep_pieces_keep(ep_pieces *p, const char *path);
/* Bytes that the model's files have, once it knows of them, and all. */
void ep_pieces_count(const ep_pieces *p, size_t *in_files, size_t *all);
/* Find what of the runtime's contents the model's files have. false: out of memory. */
bool ep_pieces_find(ep_pieces *p, const char *path);
/* All contents in memory, p->lent, until ep_pieces_return; what a session has packed goes before.
 * NULL, or a file whose contents cannot be read any more; "": out of memory. */
const char *ep_pieces_lend(ep_pieces *p);
void ep_pieces_return(ep_pieces *p);
void ep_pieces_free(ep_pieces *p); /* they are empty then */

#endif
