/* The commands and options of the program, as tables: the parser (options.c), --help (help.c)
 * and the completion of shells (completion.c) are made from them. */
#ifndef OT_COMMANDS_OPTION_TABLE_H
#define OT_COMMANDS_OPTION_TABLE_H

#include "option_values.h"

typedef struct command_row {
    const char *name; /* the word; "" for tiling, which has none */
    ot_command command;
    const char *needs;        /* part that is missing; NULL: the command works */
    const char *usage, *help; /* what follows the program's name; one line together */
} command_row;

/* Commands that take an option, a bit each. */
enum {
    OPTIMISE = 1 << OT_CMD_OPTIMISE,
    INSPECT = 1 << OT_CMD_INSPECT,
    MODELS = OPTIMISE | INSPECT | 1 << OT_CMD_EXPLAIN | 1 << OT_CMD_GATE,
    MEMORY = 1 << OT_CMD_PLAN_MEMORY,
    RUN = 1 << OT_CMD_RUN,
    BENCH = 1 << OT_CMD_BENCH,
    CALIBRATE = 1 << OT_CMD_CALIBRATE,
    COMPARE = 1 << OT_CMD_COMPARE,
    KERNEL = 1 << OT_CMD_RUN_KERNEL,
    DEVICES = 1 << OT_CMD_DEVICES,
    GATE = 1 << OT_CMD_GATE,
    GEOMETRY = 1 << OT_CMD_GEOMETRY,
    PASSES = 1 << OT_CMD_PASSES,
    PLANNERS = MODELS | MEMORY,
    TILERS = MODELS | BENCH,
    RUNNERS = RUN | BENCH,
    WORKERS = PLANNERS | RUNNERS | CALIBRATE,
    EVERY = WORKERS | COMPARE | KERNEL | DEVICES | GEOMETRY | PASSES,
    WRITERS = OPTIMISE | MEMORY | CALIBRATE | COMPARE | PASSES
};

/* A topic of --help; each fits on a screen of 24 lines. */
typedef struct option_topic {
    const char *name, *heading;
    unsigned commands; /* that take its options where those do not say otherwise */
} option_topic;

/* What is true of an option with some of its commands only. */
typedef struct option_remark {
    const char *name; /* the option's */
    unsigned commands;
    const char *text;
} option_remark;

extern const option_remark remark_table[];
extern const size_t n_remarks;
extern const command_row command_table[];
extern const size_t n_commands;
extern const option option_table[];
extern const size_t n_options;
extern const option_topic topic_table[TOPIC_COUNT]; /* by option.topic */

/* The word for a command in texts: "tiling" for the one that has no name. */
const char *command_word(const command_row *c);

#endif
