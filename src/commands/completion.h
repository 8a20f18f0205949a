/* Completion of shells: what they share. Scripts are made from the tables of options. */
#ifndef OT_COMMANDS_COMPLETION_H
#define OT_COMMANDS_COMPLETION_H

#include "option_table.h"

/* Which files are the value of an option. */
typedef enum completion_files { FILES_NONE, FILES_ALL, FILES_XML, FILES_FOLDERS } completion_files;
completion_files completion_files_of(const option *o);
/* "cpu|opencl" is words, "F.html|.xml" and "INPUT=D" are not. */
bool completion_lists_words(const option *o);
/* Words that an option takes, with spaces between them; targets and runtimes by their names. */
ot_status completion_words(const option *o, FILE *f) OT_MUST_USE;

ot_status completion_zsh(FILE *f) OT_MUST_USE;
ot_status completion_fish(FILE *f) OT_MUST_USE;

#endif
