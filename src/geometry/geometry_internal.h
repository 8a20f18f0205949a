/* Private to src/geometry/, but for what axis_flow.h hands out. */
#ifndef OT_GEOMETRY_INTERNAL_H
#define OT_GEOMETRY_INTERNAL_H

#include "geometry.h"

/* ---- spread.c: which axis of each value moves with an axis of an input ---- */

typedef struct ot_spread {
    const ot_graph *g;
    const ot_graph *beside; /* the same at another size; NULL: none */
    int8_t *axis;           /* [n_values] OT_AX_WHOLE: none */
    /* [n_nodes] output whose axis is asked of a node, OT_NONE: no output moves */
    uint32_t *lead;
    int8_t **in_axis;              /* [n_nodes][n_in] what the slice relation says of it then */
    bool *reads;                   /* [n_values] computed of what the moving inputs hold */
    bool *sized;                   /* [n_values] computed of their extent */
    bool *behind;                  /* [n_values] computed of what a barrier has made */
    bool *stops;                   /* [n_nodes] is a barrier */
    ot_geometry_barrier *barriers; /* [n_barriers] in the order of nodes */
    uint32_t n_barriers;
    size_t cap_barriers;
    /* nodes that run along the axis and hand a state on (ot_runs_along) follow it; else they are
     * barriers. Set before it is filled */
    bool runs;
    bool is_spatial; /* some operator treats the axis as one of a picture */
    bool is_feature; /* weights are multiplied with it: another extent needs other weights */
} ot_spread;

/* Where `axis` of input `seed` goes, and which other inputs move with it. Requires SHAPES, ORDER,
 * USES, and `runs` of *out. Everything lives in a. Fails: OT_E_NOMEM. */
ot_status ot_spread_fill(const ot_graph *g, const ot_graph *beside, ot_id seed, uint32_t axis,
                         ot_arena *a, ot_spread *out) OT_MUST_USE;
/* Node n runs along the axis that its operand 0 moves with; with s->runs. */
bool ot_spread_runs(const ot_spread *s, const ot_node *n);

/* ---- barriers.c ---- */

/* Node n is the Reshape in front of a normalisation of groups, as exporters write it: Reshape,
 * InstanceNormalization, Reshape back. Returns the normalisation, OT_NONE: it is not; back (may be
 * NULL): what the last one makes. Requires USES. */
ot_id ot_group_norm_of(const ot_graph *g, ot_id n, ot_id *back);

/* Shape or Size: what it makes is the extents of what it reads. */
bool ot_reads_extents(const ot_node *n);
/* Find what stands in the way of s (reads, sized, behind, stops, barriers...). */
ot_status ot_spread_barriers(ot_spread *s, ot_arena *a) OT_MUST_USE;
/* Node n is one more, if it is none yet. why: static or in a. */
ot_status ot_spread_stop(ot_spread *s, ot_arena *a, ot_id n, ot_geometry_kind kind,
                         const char *why) OT_MUST_USE;

/* ---- row_map.c: the relation of one operand as a formula ---- */

/* Output row p * t + k needs operand rows [q * t + lo[k], q * t + hi[k]), less what lies
 * outside. */
typedef struct ot_row_map {
    int64_t p, q;
    const int64_t *lo, *hi; /* [p] */
    /* rows at the begin, and at the end, of the operand that output rows near the border read
     * beside those of the formula (mirrored ones) */
    int64_t begin, end;
} ot_row_map;

typedef enum ot_row_fit {
    OT_ROWS_FIT,
    OT_ROWS_SHORT, /* too few rows to see it */
    OT_ROWS_ODD    /* no such formula holds */
} ot_row_fit;

/* The relation of operand k of node n as s has it. Requires that s has a lead for it. */
ot_status ot_row_map_find(const ot_spread *s, ot_id n, uint32_t k, ot_arena *a, ot_row_map *out,
                          ot_row_fit *fit) OT_MUST_USE;
/* The relation of operand k of node n in s, another size, is m there: at both borders and in the
 * middle. a: scratch. Fails: OT_E_NOMEM. */
ot_status ot_row_map_holds(const ot_spread *s, ot_id n, uint32_t k, const ot_row_map *m,
                           ot_arena *a, bool *holds) OT_MUST_USE;
bool ot_row_map_equal(const ot_row_map *x, const ot_row_map *y);

/* ---- compose.c: from rows of a value back to rows of the inputs ---- */

/* The maps of all nodes that move, and what follows from them. */
typedef struct ot_flow {
    const ot_spread *s;
    const ot_row_map *const *map; /* [n_nodes][n_in] p is 0: none */
    int64_t *num, *den;           /* [n_values] rows : rows of the reference */
    int64_t align;                /* of crops, in rows of the reference */
    int64_t extent;               /* of the reference */
} ot_flow;

/* The crop of the reference that holds what rows [lo, hi) of v need: it begins at *begin or before
 * and ends at *end or behind, at least. first, last: rows of `input` that are read, outside of it
 * as well; may be NULL. need: scratch, [2 n_values]. */
void ot_flow_back(const ot_flow *f, ot_id v, ot_win rows, int64_t *need, ot_win *crop);
/* Rows of `input` that the last call found to be read. */
ot_win ot_flow_read(const int64_t *need, ot_id input);

#endif
