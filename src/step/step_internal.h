/* Private to src/step/. Rows of a value in step t are counted from t times its rows of a step: the
 * same numbers in every step.
 *
 *        kept                 fresh
 *   [win.lo ... -lag) [-lag ........ rows - lag)      at hand in a step
 *                                   [..........       made in the next ones
 */
#ifndef OT_STEP_INTERNAL_H
#define OT_STEP_INTERNAL_H

#include "geometry/axis_flow.h"
#include "step.h"

typedef struct step_value {
    bool used;    /* it has rows, and some output needs it */
    bool anew;    /* nothing of it is kept: each step makes all rows that are read */
    int64_t rows; /* of a step */
    int64_t lag;  /* rows that the steps so far should have made and have not: >= 0, or anew */
    ot_win win;   /* all rows that are read in a step; of values that are kept, to the last made */
    /* the reference's rows that must be there before row 0 is read; 0: no more than its own */
    int64_t since;
    int64_t out_lag; /* of outputs: as lag */
    int64_t most;    /* of outputs: rows that there are at most beside those of its scale */
} step_value;

/* Operand of a node that has rows. */
typedef struct step_read {
    bool is_read;
    ot_win need; /* rows that the written node reads */
    ot_win from; /* rows that these are made of: more where some are repeated or mirrored */
    bool low,
        high; /* it reads rows before the first, or behind the last, that count as `outside` */
} step_read;

typedef struct step_node {
    bool used;
    bool has_rows, runs;
    ot_win make;     /* rows of its outputs */
    ot_win made;     /* what the written node makes: more, of some resampling */
    step_read *read; /* [n_in] */
    ot_outside outside;
    ot_op_tile tile;
    ot_adapted how;
} step_node;

typedef struct step_model {
    ot_model *m; /* what is written: at a large size, with as many steps as it takes */
    ot_graph *g;
    ot_axis_flow *flow;
    ot_arena *a;
    int64_t rows;       /* of the reference in a step */
    int64_t place;      /* the step for which nodes are written */
    step_value *values; /* [n_values] */
    step_node *nodes;   /* [n_nodes] */
    uint32_t n_values;  /* of the model as it was */
    bool counts;        /* it matters where rows lie */
    bool *told;         /* [n_outputs] an output says which rows there are */
} step_model;

/* "node '<name>' (Op): why" as OT_E_INPUT. */
ot_status step_refuse(const step_model *p, ot_id node, const char *why);

/* ---- step_model.c: which rows are made and read ---- */

/* Requires m as it was read, flow, rows. Fails: OT_E_INPUT, OT_E_NOMEM. */
ot_status step_plan_rows(step_model *p) OT_MUST_USE;
/* Nodes for a step at p->place. Requires that m has shapes there. Fails: as above. */
ot_status step_plan_nodes(step_model *p) OT_MUST_USE;

/* ---- step_border.c ---- */

/* Fill low and high of all reads. Fails: OT_E_INPUT, OT_E_NOMEM. */
ot_status step_find_borders(step_model *p) OT_MUST_USE;

/* ---- step_write.c ---- */

typedef struct step_writer {
    step_model *p;
    ot_graph *g;
    ot_step_facts *facts;
    size_t cap_states;
    ot_id *now;        /* [n_values] its rows at hand in a step; of others, itself */
    ot_map *made;      /* "<what>" -> value that is made once */
    ot_id first, seen; /* counters: the reference's rows before this step, and all there are; [1] */
} step_writer;

ot_status step_write_model(step_model *p, ot_step_facts *facts) OT_MUST_USE;

/* A node with one result of this type. in: [n]. */
ot_status step_op(step_writer *w, const char *op, const ot_id *in, uint32_t n, ot_attr_list attrs,
                  ot_tensor_type type, ot_id *out) OT_MUST_USE;
/* The same with result y, which no node makes yet. */
ot_status step_op_into(step_writer *w, const char *op, const ot_id *in, uint32_t n,
                       ot_attr_list attrs, ot_id y) OT_MUST_USE;
ot_status step_value_new(step_writer *w, const char *base, ot_tensor_type type,
                         ot_id *out) OT_MUST_USE;
/* A value as v, with this many rows. */
ot_status step_like(step_writer *w, ot_id v, uint32_t axis, int64_t rows, ot_id *out) OT_MUST_USE;
ot_status step_ints(step_writer *w, const char *name, const int64_t *v, int64_t n,
                    ot_id *out) OT_MUST_USE;
/* Rows [lo, hi) of x, whose first row along the axis is `base`. */
ot_status step_cut(step_writer *w, ot_id x, uint32_t axis, int64_t base, ot_win rows,
                   ot_id *out) OT_MUST_USE;
/* The same as value y, which no node makes yet. */
ot_status step_cut_into(step_writer *w, ot_id x, uint32_t axis, int64_t base, ot_win rows,
                        ot_id y) OT_MUST_USE;
ot_status step_join(step_writer *w, ot_id a, ot_id b, uint32_t axis, ot_id *out) OT_MUST_USE;
ot_status step_new_input(step_writer *w, const char *base, ot_tensor_type type,
                         ot_id *out) OT_MUST_USE;
/* `made` becomes an output of that name, which is *out then. */
ot_status step_new_output(step_writer *w, const char *base, ot_id made, ot_id *out) OT_MUST_USE;
/* A state of this type, "state.<name>", at first 0, with its next value to be told. */
ot_status step_state(step_writer *w, const char *name, ot_tensor_type type, ot_id *out) OT_MUST_USE;
ot_status step_next(step_writer *w, ot_id state, ot_id next) OT_MUST_USE;

/* ---- step_counters.c ---- */

ot_status step_counters(step_writer *w) OT_MUST_USE;
/* Where row 0 of this step's window of v lies among all its rows, less `at`; [1]. */
ot_status step_place(step_writer *w, ot_id v, int64_t at, ot_id *out) OT_MUST_USE;
/* How many rows of v there are, as far as is known; [1]. */
ot_status step_extent(step_writer *w, ot_id v, ot_id *out) OT_MUST_USE;
/* Operand j of node id as the node reads it, of x, rows `from`: rows `need`, with those
 * outside replaced. */
ot_status step_outside(step_writer *w, ot_id id, uint32_t j, ot_id x, ot_id *out) OT_MUST_USE;
/* Averages that node id, `was` before, has made of operands with zeros outside, as its result:
 * those that leave these out. */
ot_status step_leave_out(step_writer *w, ot_id id, const ot_node *was, ot_id made) OT_MUST_USE;
/* The output that says which rows of output y there are. */
ot_status step_tell(step_writer *w, ot_id y, ot_id *out) OT_MUST_USE;

/* ---- step_runs.c ---- */

/* Node id, which runs along the axis, with its state. in: its operand 0 in this step. */
ot_status step_run_node(step_writer *w, ot_id id, ot_id in) OT_MUST_USE;

#endif
