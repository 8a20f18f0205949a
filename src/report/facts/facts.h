/* Stage report/: the facts of a report, one plain struct that every writer reads.
 *
 *   plan + graph + target --facts_plan.c---.
 *   arena layouts ----------facts_map.c----+-> ot_facts -+-> xml_report.c   F.xml (benefit.xsd)
 *   bench ------------------facts_bench.c--+             +-> html_*.c       F.html (one page)
 *   plan-memory ------------facts_memory.c-'             +-> json_report.c  F.json
 *                                                        +-> csv_report.c   F.csv (a row a region)
 *                                                        +-> results_table.c, results_json.c:
 *                                                            the terminal, --json
 *
 * Writers compute nothing that a reader sees as a number: what is shown is a member here, so
 * that the page and its machine twin cannot disagree. Absent figures are negative (OT_ABSENT)
 * and left out by the writers. Nothing here depends on the clock but what `bench` measured:
 * reports of the same input are equal byte by byte.
 */
#ifndef OT_REPORT_FACTS_FACTS_H
#define OT_REPORT_FACTS_FACTS_H

#include "bench_facts.h"
#include "tiling/lower/lowering.h"
#include "memory_results.h"
#include "tiling/plan.h"
#include "select/bounds/size_bounds.h"

#define OT_ABSENT (-1.0)

typedef enum ot_fact_kind {
    OT_FACTS_OPTIMISE,
    OT_FACTS_INSPECT,
    OT_FACTS_BENCH,
    OT_FACTS_MEMORY
} ot_fact_kind;
const char *ot_fact_kind_name(ot_fact_kind k); /* "optimise", "inspect", "bench", "plan-memory" */

/* What a node's predicted time is made of mostly. */
typedef enum ot_bound { OT_BOUND_COMPUTE, OT_BOUND_BANDWIDTH, OT_BOUND_OVERHEAD } ot_bound;
const char *ot_bound_name(ot_bound b); /* "compute", "bandwidth", "overhead" */

typedef struct ot_fact_node {
    const char *name; /* its own, or its first output's */
    const char *op;
    const char *shape; /* of its first output: "1x64x56x56"; "" when unknown */
    uint32_t depth;    /* longest path from an input, in nodes: the graph's layers */
    uint32_t region;   /* index into regions, or OT_NONE */
    uint32_t barrier;  /* index into barriers, or OT_NONE */
    uint32_t refusal;  /* index into refusals, or OT_NONE */
    bool is_fused;     /* the runtime merges it into its producer */
    double macs, out_bytes;
    double parameters; /* elements of weights that it reads, folded ones; no shapes, no indices */
    double traffic;    /* bytes through slow memory, untiled */
    double compute, memory, overhead; /* seconds, untiled, before they overlap */
    double time;                      /* predicted seconds, untiled */
    double measured;                  /* seconds of the original model in bench; OT_ABSENT */
    ot_bound bound;
} ot_fact_node;

/* A tensor from one node to another. */
typedef struct ot_fact_edge {
    uint32_t from, to; /* index into nodes; OT_NONE: graph input, graph output */
    const char *value;
    double bytes;  /* OT_ABSENT: unknown */
    bool in_tiles; /* exists in tiles only: both ends in one region and read nowhere else */
} ot_fact_edge;

/* One tiling of a region's operators that was scored. */
typedef struct ot_fact_candidate {
    uint32_t n_dims;
    const char *axes[OT_DIMS_MAX];
    uint32_t tiles[OT_DIMS_MAX];
    int64_t tile[OT_DIMS_MAX]; /* elements of a tile along each axis */
    const char *form;
    double time, traffic;
    int64_t working_set;
    bool fits; /* the working set is within the fast memory */
    bool chosen;
    /* no other candidate has less time or less traffic, and no more of the other */
    bool on_front;
    const char *reason; /* a sentence: why it won or lost */
} ot_fact_candidate;

/* A reduction at a region's end over an axis that is cut: every tile makes a part, and the parts
 * are combined after the tiles. */
typedef struct ot_fact_sum {
    uint32_t node; /* index into nodes */
} ot_fact_sum;

/* A buffer in a region's arena. */
typedef struct ot_fact_buffer {
    const char *name;
    int64_t bytes;          /* of a slot */
    const int64_t *offsets; /* [n] one a slot */
    uint32_t n;
} ot_fact_buffer;

/* An operator of a tile in blocks in the memories of the cores. */
typedef struct ot_fact_block {
    const char *node, *operation; /* operation: of the region's kernel */
    const char *unit;             /* "cube", "vector" */
    const char *extent, *block;   /* of the tile that it makes, of a block: "1x64x56x56" */
    int64_t depth, depth_block;   /* what a product sums up, and a block of that; 0: no product */
    int64_t n_blocks;
    int64_t bytes;          /* between the fast memory and the cores, of a tile */
    int64_t granules_saved; /* of these, by rows of whole DMA granules */
    double time;            /* seconds that moving takes */
} ot_fact_block;

typedef struct ot_fact_region {
    uint32_t id;
    const uint32_t *nodes; /* [n_nodes] index into nodes, topological order */
    uint32_t n_nodes;
    uint32_t n_dims;
    const char *axes[OT_DIMS_MAX];
    uint32_t tiles[OT_DIMS_MAX];
    int64_t tile[OT_DIMS_MAX], extent[OT_DIMS_MAX];
    const char *form;
    int64_t working_set, working_set_bound, capacity;
    double fill; /* working set / capacity */
    int64_t weights;
    bool weights_stay;
    double time_untiled, time_tiled, benefit;
    double mac_ratio, traffic_untiled, traffic;
    double measured_untiled, measured; /* seconds; OT_ABSENT */
    /* |predicted - measured| / measured of the tiled region; OT_ABSENT */
    double error;
    ot_bound bound_untiled, bound; /* of the sum of its nodes; bound: tiled */
    const ot_fact_sum *sums;       /* [n_sums] */
    uint32_t n_sums;
    const ot_fact_candidate *candidates; /* [n_candidates] chosen first, then by time */
    uint32_t n_candidates;
    /* Places of its buffers, on targets with DMA (arena 0: none): */
    int64_t arena;         /* bytes that they take */
    const char *placed_by; /* sequential, reuse, search */
    uint32_t reuse_level, cross_pipe;
    /* seconds that pipes wait for each other because of that; in time_tiled. OT_ABSENT: no
     * places */
    double stall;
    const struct ot_fact_buffer *places; /* [n_places] */
    uint32_t n_places;
    const char *placement; /* the same in words; "" */
    /* [n_scopes] memories of its program, on targets whose cores have some */
    const ot_scope_plan *scopes;
    uint32_t n_scopes;
    /* [n_blocks] its operators in them, in tiles of the most frequent kind */
    const ot_fact_block *blocks;
    uint32_t n_blocks;
    const char *cores;             /* the same in words; "": there are none */
    const struct ot_fact_map *map; /* the same drawn, in facts that are complete; NULL: none */
    /* of a cache, whose capacity is soft: what fits it and what streams through it; "": a
     * scratchpad */
    const char *residence;
} ot_fact_region;

typedef struct ot_fact_barrier {
    uint32_t node;         /* index into nodes */
    const char *reason_id; /* ops/reasons.def; "" in reports of older versions */
    const char *reason;    /* a sentence */
    const char *lift;      /* what would lift it; "" when nothing would */
} ot_fact_barrier;

typedef struct ot_fact_refusal {
    const uint32_t *nodes; /* [n_nodes] */
    uint32_t n_nodes;
    const char *reason_id, *reason, *lift; /* as above */
} ot_fact_refusal;

/* The plan as a whole, for the table and the JSON of a terminal (cards hold the same for reports).
 */
typedef struct ot_fact_totals {
    ot_figures untiled, tiled; /* predictions */
    /* what their growth_bytes are, where that is no process's growth; NULL: it is */
    const char *growth_title;
    const char *holder; /* with it: who holds so much */
    /* growth_bytes, process_bytes are predicted for the runtime, where sizes are known */
    bool predicts_growth, predicts_process;
    double compulsory_bytes;      /* that no plan can go below; OT_ABSENT: a prediction does */
    double activation_sum;        /* bytes that nodes make together: no buffer ever reused */
    ot_arena_figures activations; /* of the untiled model's activations in one memory */
    uint32_t n_unsized;           /* values of unknown size, not in the arena */
    uint32_t n_live_nodes;        /* of the untiled graph, folded ones included */
    int64_t memory_budget;        /* bytes that live tensors keep to; 0: any */
    int64_t max_tensor;           /* bytes that no tensor may take; 0: any */
    /* dynamic dimensions stay dynamic: all figures are of the design size */
    bool dynamic_dims;
    bool dynamic_untiled; /* which the runtime takes no tiles of */
    /* weights of so many bytes or more are packed when they are used; 0: none */
    int64_t defer_from;
    /* those of convolutions of so many bytes or more are not packed; 0: all are */
    int64_t unpacked_from;
    int64_t piece_bytes; /* large weights are read in pieces of so many bytes; 0: none are */
    int64_t first_block; /* bytes of a tensor that comes before the branch runs; 0: none does */
    uint32_t n_plain;    /* weights, beside these, that are not: maps that others read plain */
    /* written as a branch, in which the runtime keeps no block for the graph's tensors */
    bool in_branch;
    bool hides_extents; /* nor does the runtime know what they take before it runs */
    bool data_file;     /* weights are written to a file beside the model */
    /* nodes that compute what is read of them alone, or are gone, and what that leaves out:
     * multiply-adds, bytes of values; 0: none */
    uint32_t narrowed_nodes;
    uint32_t folded_nodes; /* that compute constants, which are in the file instead */
    double unread_macs, unread_bytes;
    double parameters; /* of all nodes, each weight once; where facts are complete */
} ot_fact_totals;

#define OT_FACT_LOADED_SHOWN (1 << 20) /* bytes by which a loaded model must differ to be told of */

/* A headline figure: before and after, and the least that is possible. */
typedef struct ot_fact_card {
    const char *id;              /* "process", "peak-memory", "time", ... */
    const char *title;           /* "Peak memory" */
    const char *unit;            /* "bytes", "seconds", "macs" */
    double before, after, bound; /* OT_ABSENT: none */
    double ratio;                /* after / before; OT_ABSENT when before is 0 */
    /* what the figure is, one sentence: predicted or measured, what the bound is */
    const char *note;
    bool at_least; /* before and after leave out values of unknown size */
} ot_fact_card;

typedef struct ot_fact_box {
    const char *name;
    int64_t lower, upper; /* steps, half-open */
    int64_t offset, size; /* bytes */
    /* 0 activation, 1 graph input or output, 2 working set of a region; of kernels: as
     * ot_map_box */
    uint32_t kind;
} ot_fact_box;

typedef struct ot_fact_map {
    /* "before", "after"; "region-3": a tile's buffers in the fast memory; of kernels: the
     * scope's name */
    const char *id;
    const char *title, *time_label;
    int64_t steps;            /* length of the time axis */
    const ot_fact_box *boxes; /* [n_boxes] */
    uint32_t n_boxes;
    int64_t height, lower_bound, capacity; /* bytes; capacity 0: none */
    bool proved;                           /* height is the least possible */
} ot_fact_map;

/* A line of a kernel's text; changed: by the pass that it is shown after. */
typedef struct ot_fact_line {
    const char *text;
    bool changed;
} ot_fact_line;

/* A kernel after a pass of plan-memory. */
typedef struct ot_fact_pass {
    const char *id, *title;
    const char *what; /* it does, one sentence */
    const ot_fact_line *lines;
    uint32_t n_lines;
    ot_fact_map *maps; /* [n_maps] one a memory, as it would be planned now; none: no map yet */
    uint32_t n_maps;
} ot_fact_pass;

/* Roofline: MAC or element operations a byte of slow-memory traffic against operations a second. */
typedef struct ot_fact_roof {
    const char *id, *title; /* "slow", "mid", "fast"; "conv", "gemm", ... */
    /* bytes/s of a slanted line, operations/s of a flat one; the other one OT_ABSENT */
    double bandwidth, rate;
} ot_fact_roof;

typedef struct ot_fact_point {
    const char *label; /* "region 0, untiled" */
    uint32_t region;   /* index into regions */
    bool tiled;
    double operations, bytes, seconds;
    double intensity, rate; /* operations / byte, operations / second */
    double attained;        /* rate / roof at that intensity */
} ot_fact_point;

/* A name and a value for the target and environment tables. number is OT_ABSENT for texts. */
typedef struct ot_fact_entry {
    const char *id, *title;
    const char *text; /* when number is OT_ABSENT */
    double number;
    /* "bytes", "bytes/s", "ops/s", "seconds", "count", "percent" (of a fraction) */
    const char *unit;
} ot_fact_entry;

/* What lives while the untiled model holds most. */
typedef struct ot_fact_alive {
    const char *value, *shape; /* "1x64x56x56"; "" of no tensor */
    double bytes;              /* 0: it lies in the place of an operand */
    double share;              /* of all that lives then */
    uint32_t maker;            /* index into nodes */
    uint32_t reader;           /* the last one; OT_NONE: there is none, it is an output */
    bool in_tiles;             /* with the plan it exists in tiles only */
} ot_fact_alive;

/* A tensor that is still whole where the tiled model holds most, and what keeps it so. */
typedef struct ot_fact_obstacle {
    const char *value;
    double bytes;
    uint32_t node; /* index into nodes: what the reason is about */
    /* as of ot_fact_barrier; reason_id "": no reason of the planner's */
    const char *reason_id, *reason, *lift;
} ot_fact_obstacle;

/* Options that were tried, and what the model tiled with them takes: less than it does now. */
typedef struct ot_fact_cure {
    const char *options;       /* as for a shell */
    double growth, peak, time; /* growth: OT_ABSENT where it is not known */
} ot_fact_cure;

typedef struct ot_facts {
    ot_arena *arena; /* owns everything here, itself included */
    ot_fact_kind kind;
    const char *version; /* of the tool */
    const char *model;   /* as given */
    const char *output;  /* tiled model; NULL: none written */
    const char *target, *goal;
    const char *runtime; /* name of what the model is made for; "": of no model (plan-memory) */
    /* with dynamic dimensions, "INPUT=D,D,..." for each input: the size of all figures; else "" */
    const char *design;
    bool design_guessed; /* chosen, in part at least, because the caller gave none */
    bool stays_dynamic;  /* the caller bound that size; what is written does not */
    /* which sizes are not known, as ot_unknown_sizes says it: figures of the model leave them out,
     * and those that have nothing else are OT_ABSENT. "": all are known */
    const char *unknown_sizes;
    /* what the engine runs by reference kernels, in words; "": nothing, or the model is for
     * another runtime */
    const char *slow_nodes;
    const char *missed; /* why the memory budget is not kept, with --best-effort; "": it is */
    int64_t fast_bytes;
    bool measured; /* there are times of bench */
    bool complete; /* everything that a report shows is here; else only what the terminal shows */
    ot_fact_totals totals;

    ot_fact_card *cards;
    uint32_t n_cards;
    ot_fact_node *nodes;
    uint32_t n_nodes; /* live nodes in topological order */
    ot_fact_edge *edges;
    uint32_t n_edges;
    ot_fact_region *regions;
    uint32_t n_regions;
    ot_fact_barrier *barriers;
    uint32_t n_barriers;
    ot_fact_refusal *refusals;
    uint32_t n_refusals;
    ot_fact_map *maps;
    uint32_t n_maps;
    ot_fact_roof *roofs;
    uint32_t n_roofs;
    ot_fact_point *points;
    uint32_t n_points;
    ot_fact_entry *target_entries;
    uint32_t n_target_entries;
    ot_fact_entry *environment;
    uint32_t n_environment;
    ot_fact_entry *memory_entries;
    uint32_t n_memory_entries; /* arena figures of the untiled model; of plan-memory: its totals */
    ot_fact_entry *peak;       /* where memory goes, in figures; of a model with nodes */
    uint32_t n_peak;
    size_t cap_peak;
    ot_fact_alive *alive; /* the largest first */
    uint32_t n_alive;
    ot_fact_obstacle *obstacles; /* likewise */
    uint32_t n_obstacles;
    ot_fact_cure *cures;
    uint32_t n_cures;
    size_t cap_cures;
    /* index into regions: the tiled model holds most while it runs; OT_NONE: while none does */
    uint32_t peak_region;
    const char *command; /* what makes the tiled model, as for a shell; NULL: nothing does */
    const ot_scope_plan *scopes;
    uint32_t n_scopes; /* plan-memory */
    ot_fact_pass *passes;
    uint32_t n_passes; /* plan-memory of a kernel's text */
    const char *const *warnings;
    uint32_t n_warnings;
    const ot_bench_facts *bench;  /* copied into the arena; NULL: not bench */
    double region_error;          /* median; OT_ABSENT */
    const ot_bounds_facts *range; /* NULL: no range was asked about */
    ot_fact_entry *range_entries; /* the same as a table */
    uint32_t n_range_entries;
} ot_facts;

/* A figure of the whole model as far as it is known: OT_ABSENT where sizes are not known and
 * nothing is left to count. */
static inline double ot_fact_known(const ot_facts *f, double x)
{
    return x > 0 || !*f->unknown_sizes ? x : OT_ABSENT;
}

/* ---- building ---- */

/* Nothing but kind and version; every list empty, every absent figure OT_ABSENT. */
ot_status ot_facts_new(ot_fact_kind kind, ot_diag *d, ot_facts **out) OT_MUST_USE;
/* A node's name, or that of its first output when it has none; its operator when that has none
 * either. */
const char *ot_fact_label(const ot_graph *g, const ot_node *n);
/* Facts of a planned model, before the graph is rewritten: THE record of regions, barriers and
 * refusals, which every writer reads. Requires ORDER, USES, SHAPES. p planned with
 * options.detail: all of it (complete); else nodes have names alone, and there are no edges,
 * candidates, cards, maps, roofs and tables. model: path as given, or NULL; output: tiled model;
 * NULL: none. *out is freed with ot_facts_free. */
ot_status ot_facts_from_plan(const ot_graph *g, const ot_plan *p, const ot_target *t,
                             const ot_plan_options *o, const char *model, const char *output,
                             ot_fact_kind kind, ot_facts **out) OT_MUST_USE;
/* Add what bench measured to the facts of its plan: cards of measured figures, regions' and
 * nodes' times. */
ot_status ot_facts_add_bench(ot_facts *f, const ot_bench_facts *b, ot_diag *d) OT_MUST_USE;
/* Add what holds over a range of sizes; copied. (facts_range.c) */
ot_status ot_facts_add_bounds(ot_facts *f, const ot_bounds_facts *r, ot_diag *d) OT_MUST_USE;
/* The second level of a region, on targets whose cores have memories (facts_cores.c). */
ot_status ot_facts_add_cores(ot_facts *f, const ot_graph *g, const ot_target *t,
                             const ot_region *from, ot_fact_region *to) OT_MUST_USE;

/* Facts of plan-memory: maps (r planned with keep_maps) and scopes. */
ot_status ot_facts_from_memory(const ot_memory_results *r, ot_diag *d, ot_facts **out) OT_MUST_USE;
void ot_facts_free(ot_facts *f); /* accepts NULL */

/* ---- facts_map.c ---- */

/* Layouts of the untiled model's activations and of the planned one's: f->maps. In the second a
 * region is one step, in which its working set lives; values that exist in tiles only are not
 * there. */
ot_status ot_facts_add_maps(ot_facts *f, const ot_graph *g, const ot_plan *p) OT_MUST_USE;

/* ---- results_table.c, results_nodes.c, results_json.c: the terminal ---- */

/* The table that a person reads. all: every barrier and refusal with its nodes, and the
 * activation sum (inspect); otherwise the most frequent ones. Rows of regions keep to that many
 * columns, 0: to none. */
ot_status ot_results_print(const ot_facts *f, bool all, size_t columns, FILE *out) OT_MUST_USE;
/* One line an operator, for facts that are complete; columns: 0: any, else what may leave does. */
ot_status ot_results_nodes(const ot_facts *f, size_t columns, FILE *out) OT_MUST_USE;
/* One JSON object; valid whatever the names contain. docs/json.md describes it. */
ot_status ot_results_json(const ot_facts *f, FILE *out) OT_MUST_USE;

/* ---- results_explain.c: where memory goes ---- */

/* In words and a table, for facts that are complete; columns: as of ot_results_print. */
ot_status ot_explain_print(const ot_facts *f, size_t columns, FILE *out) OT_MUST_USE;
ot_status ot_explain_json(const ot_facts *f, FILE *out) OT_MUST_USE;

/* ---- report.c: writing ---- */

/* Whether the name ends in .html, .xml, .json or .csv. */
bool ot_report_is_known(const char *path);
/* Write f to path in the format that its name ends in, whole or not at all. OT_E_SYSTEM naming
 * the file. */
ot_status ot_report_write(const ot_facts *f, const char *path, ot_diag *d) OT_MUST_USE;

/* Each writes one form to an open file; OT_E_NOMEM, OT_E_SYSTEM. */
ot_status ot_report_xml(const ot_facts *f, FILE *out) OT_MUST_USE;
ot_status ot_report_html(const ot_facts *f, FILE *out) OT_MUST_USE;
ot_status ot_report_json(const ot_facts *f, FILE *out) OT_MUST_USE;
ot_status ot_report_csv(const ot_facts *f, FILE *out) OT_MUST_USE;

/* ---- compare.c ---- */

/* Read two XML reports of the same kind and write what changed between them as one HTML page
 * ("-": stdout). OT_E_INPUT: a file that is no report, naming the rule it breaks. */
ot_status ot_compare_reports(const char *before, const char *after, const char *output,
                             ot_diag *d) OT_MUST_USE;
/* The same as a summary in Markdown, for a comment on a change. */
ot_status ot_compare_summary(const char *before, const char *after, const char *output,
                             ot_diag *d) OT_MUST_USE;

#endif
