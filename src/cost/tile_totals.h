/* What a tiling of a region adds up to: one definition of every quantity, for a few tiles that
 * stand for all and for all tiles.
 *
 *   windows of tiles looked at          per dim                     per region (product over the
 *                                                                   dims)
 *   first x 1, middle x (n-2), last x 1 ot_extents of values,  -->  ot_node_sums: times, runs,
 *                                                                   MACs, working set
 *   or every tile x 1                   ot_node_cut of nodes        ot_totals: the same, and what
 *                                                                   crosses the region's border
 *
 * Windows of different dims are independent, so the sum over a grid of tiles is the product of
 * sums per dim. The search's trials (interval_figures.c) feed three tiles of every dim while a
 * walk goes down; a built region (region_figures.c) feeds all of them. Nodes are added backwards
 * in both. Nothing here depends on the order in which the readers of a value come.
 */
#ifndef OT_COST_TILE_TOTALS_H
#define OT_COST_TILE_TOTALS_H

#include "cost.h"

/* Extents along one dim over all tiles, relative to the whole axis. */
typedef struct ot_extents {
    double sum; /* over the tiles */
    double max; /* of the largest tile */
    /* of values: what is cut out of the tiles' windows for readers that want less than is there,
     * sum over tiles */
    double crop;
} ot_extents;

/* Of what has no axis cut in the dim: all of it in every tile. */
static inline ot_extents ot_extents_whole(double tiles)
{
    return (ot_extents){.sum = tiles, .max = 1};
}
/* Take in a tile, which stands for `weight` tiles, with a window of `length` elements. Until
 * ot_extents_finish, e is in elements. */
static inline void ot_extents_add(ot_extents *e, int64_t length, double weight)
{
    e->sum += (double)length * weight;
    if ((double)length > e->max) e->max = (double)length;
}
/* All tiles are in; the axis has `whole` elements. */
static inline void ot_extents_finish(ot_extents *e, int64_t whole)
{
    e->sum /= (double)whole;
    e->max /= (double)whole;
    e->crop /= (double)whole;
}
/* Windows with these extents overlap their neighbours'. */
static inline bool ot_extents_overlap(const ot_extents *e) { return e->sum > 1 + 1e-6; }

/* What the readers of a value want of it in one tile. Zero: nobody wants anything. */
typedef struct ot_wanted {
    ot_win hull;
    int64_t equal; /* elements that readers of exactly this hull want, each reader counted */
} ot_wanted;

/* The value is made as `made`, which contains the hull. Returns how many more elements have to
 * be cut out for readers of less. */
static inline int64_t ot_wanted_made(ot_wanted *w, ot_win made)
{
    if (w->hull.lo == made.lo && w->hull.hi == made.hi) return 0;
    int64_t cut = w->equal;
    *w = (ot_wanted){.hull = made};
    return cut;
}
/* One more reader wants `win`. Returns likewise. */
static inline int64_t ot_wanted_add(ot_wanted *w, ot_win win)
{
    int64_t cut = 0;
    if (win.lo >= win.hi) return 0;
    if (w->hull.lo >= w->hull.hi)
        w->hull = win;
    else
        cut = ot_wanted_made(w, (ot_win){ot_min(w->hull.lo, win.lo), ot_max(w->hull.hi, win.hi)});
    if (win.lo != w->hull.lo || win.hi != w->hull.hi) return cut + win.hi - win.lo;
    w->equal += win.hi - win.lo;
    return cut;
}

/* One node along one dim. */
typedef struct ot_node_cut {
    int8_t axis;     /* lead axis, or OT_AX_SUM, or negative: not cut */
    double tiles;    /* of the dim */
    ot_extents made; /* its share of the node's work */
    /* [n_in] sum over the tiles of what it reads of that operand, relative to the operand's axis */
    double *read;
    ot_extents *out; /* [n_out] of its outputs, set by the caller once all tiles are in */
} ot_node_cut;

/* Begin: no tile is in. in_axis: [n_in] as ot_access_axis says. read and out are set by the
 * caller before. */
void ot_node_cut_start(ot_node_cut *x, const ot_node *n, int8_t axis, const int8_t *in_axis,
                       double tiles);
/* Take in a tile that stands for `weight` tiles; t: its windows, an empty `made` when the node
 * is not used in it. */
void ot_node_cut_add(ot_node_cut *x, const ot_node *n, const int8_t *in_axis, const ot_op_tile *t,
                     double weight);
/* All tiles are in: from elements to what is relative. lead: output that `axis` is of. */
void ot_node_cut_finish(ot_node_cut *x, const ot_graph *g, const ot_node *n, uint32_t lead,
                        const int8_t *in_axis);

/* What all tilings of a node have in common. */
typedef struct ot_node_facts {
    const ot_node *node;
    uint32_t pos;
    uint32_t n_dims; /* along which the region is cut */
    double compute;  /* seconds of the whole node on its own */
    /* bytes of activations that every tile reads whole and packs anew; 0: packs nothing */
    double whole_reads;
    bool is_free;  /* merged into another node, or moves nothing */
    bool in_place; /* overwrites an operand that dies here */
    /* [n_in + n_out] of its operands and outputs; 0: absent, unused, or a constant read whole,
     * which counts with the weights */
    const double *bytes;
} ot_node_facts;

/* A node as a region has it. */
typedef struct ot_node_use {
    uint32_t pos, lead; /* in the sequence; output asked */
    uint32_t n_dims;
    const int8_t *const *in_axis; /* [n_dims] arrays [n_in] */
    const bool *later;            /* [n_in] a node behind this one reads the operand, too */
} ot_node_use;
/* bytes: [n_in + n_out] room for the facts' array. */
ot_node_facts ot_node_facts_of(const ot_seq *s, const ot_target *t, const ot_node_use *u,
                               double *bytes);

/* What the nodes of a region add up to in all tiles. Starts as zero. */
typedef struct ot_node_sums {
    double t_fast, t_mid, t_slow; /* seconds if the working set sits in that memory */
    double nodes;                 /* executions */
    double transfers;             /* see ot_totals */
    double macs;                  /* with what is computed twice */
    double ws;                    /* bytes: most that are live in the largest tile */
} ot_node_sums;

/* Add a node; the nodes behind it in the region are in. cut: [f->n_dims], 0: the node whole,
 * once. before, after: bytes live in the largest tile when it starts (its operands, and what
 * others behind it still read), when it has run. */
void ot_sums_add_node(ot_node_sums *x, const ot_seq *s, const ot_target *t, const ot_node_facts *f,
                      const ot_node_cut *const *cut, double before, double after);

/* Bytes of v over all tiles. e: [n_dims]. */
static inline double ot_tiles_bytes(const ot_seq *s, ot_id v, const ot_extents *e, uint32_t n_dims)
{
    double b = (double)s->bytes[v];
    for (uint32_t d = 0; d < n_dims; d++) b *= e[d].sum;
    return b;
}

/* Begin the totals of a region cut in n_dims. */
void ot_totals_start(ot_totals *x, uint32_t n_dims);
/* A value read inside and made outside whose windows are cut. axis, e: [n_dims] cut axis or
 * negative, extents. */
void ot_totals_add_input(ot_totals *x, const ot_seq *s, const ot_target *t, ot_id v,
                         const int8_t *axis, const ot_extents *e);
/* A value made inside and read outside. axis: its cut axis in the first dim. */
void ot_totals_add_output(ot_totals *x, const ot_seq *s, const ot_target *t, ot_id v, int8_t axis);
/* Take over what the nodes add up to; innermost: cut axis of the sink in the last dim, tile:
 * elements of a tile there. Until now `outermost` says where the first dim's axis lies, from now
 * on whether pieces are contiguous. ws takes second slots in. */
void ot_totals_finish(ot_totals *x, const ot_target *t, const ot_node_sums *sums,
                      const ot_value *sink, int8_t innermost, int64_t tile);

#endif
