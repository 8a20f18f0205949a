/* One option of the command line: what it is, and the reading of its value into ot_options. */
#ifndef OT_COMMANDS_OPTION_VALUES_H
#define OT_COMMANDS_OPTION_VALUES_H

#include "options.h"

/* Dump letters in pass order; see docs/onnx-tile.1. */
#define DUMP_LETTERS "ICSARWDGTLMPX"
#define COUNT_MAX    4096

#define NEED_ENGINE "the native engine"

/* What `run`, `bench` and `calibrate` need: nothing, in a build that has the engine. */
#ifdef OT_ENGINE
#define RUN_NEEDS NULL
#else
#define RUN_NEEDS NEED_ENGINE
#endif

typedef enum option_kind {
    FLAG,     /* bool set to true */
    OFF_FLAG, /* bool set to false */
    FILENAME,
    NAME, /* of something in the file */
    FOLDER,
    TARGET,
    SIZE,
    COUNT,
    PERCENT,
    GOAL,
    ORT_OPERATORS,
    STORE,
    FORM,
    SHAPE,
    DESIGN,
    RANGE,
    MODE,
    MEM_PLAN,
    TIME,
    EMIT,
    AXIS,
    RUNTIME,
    INPUT,
    OUTPUT, /* a file; of run: NAME=FILE */
    INPUT_TYPE,
    SCALE,
    EXTENT,
    SEED,
    VERIFY, /* nothing, or "all" attached */
    HELP,   /* nothing, or a topic attached */
    SHELL,
    REPORT,
    DEVICE,
    SOURCE,
    ITEMS,
    LETTERS
} option_kind;

/* What an option is about: see topic_table. */
typedef enum option_subject {
    RESULTS,
    MACHINE,
    AIMS,
    LIMITS,
    SIZES,
    RUNNING,
    BUFFERS,
    ANSWERS,
    TOPIC_COUNT
} option_subject;

typedef struct option {
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* what the help calls it; NULL: takes none */
    option_kind kind;
    const char *dflt; /* parsed first; NULL: zero */
    size_t offset;
    unsigned commands; /* bits of option_table.h */
    option_subject topic;
    const char *help; /* NULL: not listed (for tests) */
} option;

/* Reads `text` into the place of option o in *out; `text` is NULL exactly for options without a
 * value. Fails: OT_E_USAGE, naming the option, the value and the rule; OT_E_NOMEM. */
ot_status option_set(ot_diag *d, const option *o, const char *text, ot_options *out) OT_MUST_USE;
/* The option takes a value that is attached to it, or none. */
bool option_value_may_lack(const option *o);
/* OT_E_USAGE: `what` needs a part that this build does not have. */
ot_status option_needs(ot_diag *d, const char *what, const char *needs) OT_MUST_USE;
/* Decimal digits only, at most max. */
bool option_count(const char *text, int64_t max, int64_t *out);

#endif
