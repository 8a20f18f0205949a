/* Text for a person, wrapped to the terminal that it goes to; elsewhere lines stay as they are. */
#ifndef OT_BASE_WRAP_H
#define OT_BASE_WRAP_H

#include "base.h"

typedef struct ot_wrap {
    FILE *out, *kept; /* kept: what is written until the end; NULL: nothing is wrapped */
    char *text;
    size_t n, columns;
} ot_wrap;

/* Columns of a terminal that draws; 0: it is none, or they are not known. */
size_t ot_terminal_columns(FILE *f);
/* A stream to write to until ot_wrap_close; x stays where it is until then. */
FILE *ot_wrap_open(ot_wrap *x, FILE *out);
/* Fails: OT_E_NOMEM, and OT_E_SYSTEM where `out` cannot be written. */
ot_status ot_wrap_close(ot_wrap *x) OT_MUST_USE;
/* A line of more columns breaks at a space and goes on four columns deeper. A word does not, nor
 * does a command, for somebody to copy. */
void ot_wrap_text(const char *text, size_t columns, FILE *out);

#endif
