/* The place in a text that an error speaks of. */
#ifndef OT_COMMANDS_ERROR_PLACE_H
#define OT_COMMANDS_ERROR_PLACE_H

#include "base/base.h"

/* Below a message "path:line:col: ..." (or `loc("path":line:col): ...`): the line of the file at
 * `path`, a caret under the column, and a note with the other line that the message names as
 * "line N". Prints nothing where the message names no place in that file, or the file is not a
 * regular one. Bytes that are no printable ASCII are shown as '?', blanks as ' '. */
void ot_print_error_place(FILE *f, const char *path, const char *message);

#endif
