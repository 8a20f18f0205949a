/* Lines of cells, CSV as spreadsheets write it: what the tables (pack_csv.c) and the pairs
 * (pack_pairs.c) have in common. */
#ifndef OT_PACK_PACK_CELLS_H
#define OT_PACK_PACK_CELLS_H

#include "pack.h"

typedef struct pack_lines {
    const char *path; /* for messages */
    ot_diag *d;
    ot_arena *a;
    const char *at, *end; /* what is left of the text */
    uint32_t line;        /* number of the line that was taken last */
} pack_lines;

/* A trimmed cell; quoted ones with their quotes. */
typedef struct pack_cell {
    const char *at;
    size_t n;
} pack_cell;

/* A row under a header of `columns` cells, cell after cell. */
typedef struct pack_row {
    const char *at, *end; /* what is left of it */
    size_t columns, taken;
    bool ended;
} pack_row;

/* "path:line: ..."; OT_E_INPUT. */
OT_PRINTF(2, 3) ot_status pack_refuse(const pack_lines *r, const char *fmt, ...);
/* Of a copy of the text in the arena, without its byte order mark. Fails when a zero byte is in
 * it, which ends C strings early. */
ot_status pack_lines_begin(pack_lines *r, const char *text, size_t n) OT_MUST_USE;
/* The next line that is not blank, without its end; false at the end of the text. *crlf: how it
 * ends; may be NULL. */
bool pack_next_line(pack_lines *r, const char **text, size_t *n, bool *crlf);
/* Take the cell at *p (not past `end`) and step over the comma behind it. *more: another cell
 * follows. */
ot_status pack_next_cell(const pack_lines *r, const char **p, const char *end, pack_cell *out,
                         bool *more) OT_MUST_USE;
/* The next cell of a row, of column taken - 1; *any false at its end. Refuses more or fewer cells
 * than the header has. */
ot_status pack_row_next(const pack_lines *r, pack_row *w, pack_cell *out, bool *any) OT_MUST_USE;
/* What a cell says, zero-terminated, quotes resolved; NULL when memory ran out. */
char *pack_cell_text(const pack_lines *r, const pack_cell *c);

#endif
