/* A gate for changes of a model: limits on the figures of a report, and on what they are of a
 * report before (the baseline). */
#ifndef OT_REPORT_COMPARE_GATE_H
#define OT_REPORT_COMPARE_GATE_H

#include "report/facts/facts.h"

/* What must hold; negative: not asked for. */
typedef struct ot_gate_limits {
    /* bytes: live tensors, what the process grows by, the whole process */
    double peak, growth, process;
    /* fractions that a figure may be above the baseline's */
    double time_regression, peak_regression;
} ot_gate_limits;

#define OT_GATE_CHECKS 5

typedef struct ot_gate_check {
    const char *figure;       /* id of the card: "peak-memory", "process", "time" */
    const char *title, *unit; /* "Peak memory", "bytes" */
    /* limit: the most that value may be; baseline: OT_ABSENT where the limit is absolute */
    double value, baseline, limit;
    double allowed; /* fraction above the baseline; OT_ABSENT likewise */
    /* why the figure, or the baseline's, is not known, or is one that others come to; "": it is */
    const char *unknown;
    bool at_least; /* value is what is known of it */
    bool passed;   /* never what is not known */
} ot_gate_check;

typedef struct ot_gate {
    /* names of what is judged and of the file compared with (NULL: none), borrowed */
    const char *model, *baseline;
    /* the baseline's model, where it has another name: figures of two models may be compared */
    const char *other_model; /* borrowed; NULL: none, or the same */
    const char *range;       /* of sizes: absolute limits hold over all of it; NULL: one size */
    bool measured;           /* time and peak are measured, else predicted */
    ot_gate_check checks[OT_GATE_CHECKS];
    uint32_t n_checks;
    /* measured: the first output that is not the original's, and why; NULL: all are the same */
    const char *differs, *why;
} ot_gate;

/* Some limit is asked for; some limit needs a baseline. */
bool ot_gate_asks(const ot_gate_limits *l);
bool ot_gate_needs_baseline(const ot_gate_limits *l);
/* Judge `now`, whose tiled model counts (the untiled one where nothing is tiled), by limits;
 * base: NULL where none needs it. Texts of `out` are of the facts. Fails: OT_E_INPUT where
 * the two reports are of different targets or runtimes, or one of them is measured and the other
 * predicted. A figure above its limit, or one that is not known, is no failure here. */
ot_status ot_gate_judge(const ot_facts *now, const ot_facts *base, const char *baseline,
                        const ot_gate_limits *l, ot_diag *d, ot_gate *out) OT_MUST_USE;
/* One line a check. */
ot_status ot_gate_print(const ot_gate *g, FILE *f) OT_MUST_USE;
/* One JSON object: docs/json.md. */
ot_status ot_gate_json(const ot_gate *g, FILE *f) OT_MUST_USE;
/* OT_OK, or OT_E_BUDGET with every check that did not pass in one line. */
ot_status ot_gate_result(const ot_gate *g, ot_diag *d) OT_MUST_USE;

#endif
