/* Inside the readers of pairs: the list that CSV (pack_pairs.c) and JSON (pack_json.c) fill. */
#ifndef OT_PACK_PACK_PAIRS_H
#define OT_PACK_PACK_PAIRS_H

#include "base/reader.h"
#include "pack_cells.h"

typedef struct pack_pairs {
    ot_pack_file *file;
    ot_diag *d;
    ot_map *rows; /* name -> row of the table */
    ot_pack_pair *pairs;
    size_t n, cap;
    int64_t sum; /* of weights */
    bool nomem;
} pack_pairs;

ot_status pack_pairs_begin(pack_pairs *s) OT_MUST_USE;
/* NULL, or what is wrong with the pair; *word: the name that it is wrong with, "" if none. */
const char *pack_pairs_add(pack_pairs *s, const char *first, const char *second, int64_t weight,
                           const char **word);
/* The list becomes the file's. */
void pack_pairs_end(pack_pairs *s);

/* pack_json.c */
ot_status pack_pairs_json(pack_pairs *s, const char *path, const char *text, size_t n) OT_MUST_USE;

#endif
