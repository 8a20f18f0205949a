/* Inside of stage transform/: what its files share.
 *
 *   rewrite.c   the pass: regions one by one, dead nodes and constants, final sort
 *   emit.c      making nodes, constants and crops in a target graph
 *   weights.c   bringing constants (and the nodes that make them) into a body
 *   tile_nodes.c     the region's operators, once, for one tile's windows
 *   unrolled.c  tiles written out, and joining blocks of tiles by Concat
 *   loop.c      a block of tiles as one Scan or Loop, reassembled by Reshape (and Transpose)
 *   sequence_form.c loops that carry a sequence of pieces, for tiles cut in one dimension
 *   unjoined_tiles.c   values that stay in pieces between two of these, never joined
 *   stream_form.c   loops that carry the last rows of each value, too
 *   dynamic_form.c loops whose number of tiles is computed when the model runs
 *   nested_scan.c   Scans in Scans, for results of the graph
 *   scan.c      zero-copy inputs and outputs of a Scan
 *   prescan.c   windows of all tiles gathered ahead of a Scan
 *   window.c    crops that move with the iteration: tables of starts, dynamic slices
 *   while.c     the engine's form: tiles of one class after the other write their pieces in place
 *   parts.c     reductions over what the tiles cut: parts of tiles, put together behind them
 *   own_quantised.c, own_biases.c  constants that one operator alone is to read
 *   inlined.c   functions that a runtime writes out, written out in bodies
 *   one_name.c  constants that bodies capture have one name
 *   share_constants.c  what tiles read of a large constant, once for all regions
 *   fold_norms.c    BatchNormalizations become part of convolutions, once for all tiles
 *   deferred_packing.c  weights that a runtime packs when it uses them
 *   branch.c    the whole graph as a branch, for runtimes that keep a block for a graph's tensors
 *
 * Every form is the same picture: each dimension is split into runs of tiles, a block is a
 * product of runs, a block becomes a loop or is written out, and blocks are joined by Concat.
 *
 *          dim 1:  0 | 1 2 3 4 5 | 6           unrolled  every run is one tile
 *   dim 0: 0       A |    B      | C           peeled    one run of alike tiles, the rest single
 *          1,2,3   D |   loop    | E
 *          4       F |    G      | H           scan      one run of all tiles, nothing copied
 */
#ifndef OT_TRANSFORM_TRANSFORM_INTERNAL_H
#define OT_TRANSFORM_TRANSFORM_INTERNAL_H

#include "tiling/forms.h"
#include "transform.h"

/* end of a window that reaches the end of its axis, wherever that is */
#define OT_TO_END INT64_MAX
/* bytes; smaller constants stay with the nodes, whose patterns a runtime finds more easily so */
#define OT_OUTER_WEIGHT 1024

/* A graph that nodes are written to: the region's own graph, or a body. */
typedef struct rw_target {
    ot_graph *g;
    bool is_body;
    const char *label; /* part of names: "t0", "t1_2", "body" */
    ot_map *consts;    /* contents of a constant made here -> value */
    ot_map *crops;     /* (value, windows) of a crop made here -> value */
    /* bodies: name of a value of the enclosing graph -> where it is found here; a body reads few
     * of them */
    ot_map *from_outer;
    uint32_t n_outer; /* values of the enclosing graph when the body was begun */
} rw_target;

/* A value that stays in pieces (unjoined_tiles.c). */
typedef struct rw_pieces rw_pieces;

/* One region on its way. */
typedef struct rw_region {
    ot_graph *g;
    const ot_region *r;
    ot_arena *arena;            /* scratch of this region */
    bool force_loop;            /* use Loop where Scan would do */
    bool outer_weights;         /* bodies read large constants by name */
    bool looped_borders;        /* form loop: no tile lies in the outer graph */
    bool in_order;              /* form while: tiles run one at a time */
    bool slices_apart;          /* a Slice of the outer graph names two axes */
    bool nests_scans;           /* Scans in Scans write results where they belong */
    bool capture;               /* constants stay in the region's graph: bodies read them by name */
    rw_pieces **kept;           /* [values of g before the rewrite] NULL: joined; NULL: all are */
    const ot_form_tiles *tiles; /* sorted as the region's form wants them */
    rw_target top;              /* the region's graph */
} rw_region;

/* A product of runs. */
typedef struct rw_block {
    uint32_t first[OT_DIMS_MAX], count[OT_DIMS_MAX];
    uint32_t n_tiles; /* product of counts */
    bool looped;      /* written as a loop, else tile by tile */
    ot_id *out;       /* [n_values] what it produced for the region's outputs, or OT_NONE */
} rw_block;

/* One tile's operators. */
typedef struct rw_chain {
    rw_region *w;
    rw_target *t;
    const ot_tile_windows *win[OT_DIMS_MAX];
    bool *needed;        /* [n_values] */
    bool *used;          /* [n_nodes] */
    ot_adapted *adapted; /* [n_nodes] valid when used */
    /* [n_values] emitted value that covers the made windows, or OT_NONE; form stream: what the
     * node made */
    ot_id *val;
    bool to_end; /* windows reach the ends of their axes, whose extents are not known */
    /* [n_values] form stream: rows that the step before handed on, or OT_NONE. NULL in other
     * forms */
    ot_id *kept;
} rw_chain;

/* A window on one axis. */
typedef struct rw_cut {
    uint32_t axis;
    int64_t lo, hi; /* OT_TO_END: all behind lo */
} rw_cut;

/* Scans around the one that makes tiles, which write the result where it belongs
 * (nested_scan.c). */
typedef struct rw_nest {
    uint32_t n;                 /* 0: none */
    int64_t count[OT_RANK_MAX]; /* [n] steps of each, the outermost first */
    int64_t rest;               /* tiles of a step of the innermost */
} rw_nest;

/* A loop being written. */
typedef struct rw_loop {
    rw_region *w;
    const rw_block *b;
    rw_target body;
    bool scan;      /* Scan, else Loop */
    bool inside;    /* everything is cut inside the body, nothing in the outer graph */
    ot_id *scan_in; /* [n_scan] outer values that the Scan cuts along their first axis */
    ot_id *inputs;  /* [n_inputs] body inputs, in order */
    uint32_t n_scan, n_inputs;
    size_t cap_scan, cap_inputs;
    ot_id iter;     /* Loop: iteration number in the body */
    ot_map *tables; /* contents of a table -> its row in the body */
    rw_nest nest;
} rw_loop;

/* ---- rewrite.c ---- */

/* ot_transform_tiles; force_loop writes Loop where Scan would be chosen (for tests). planned:
 * the graph at the design size, as of ot_transform_dynamic; g itself where extents are fixed. */
ot_status rw_rewrite(ot_graph *g, const ot_graph *planned, const ot_plan *p,
                     bool force_loop) OT_MUST_USE;

/* ---- emit.c ---- */

ot_status rw_nomem(const rw_region *w);
/* Prepare t for writing to g. Fails: OT_E_NOMEM. */
ot_status rw_target_init(rw_region *w, rw_target *t, ot_graph *g, const char *label) OT_MUST_USE;
/* "tile/r<k>/<role>/<name>", made unique; NULL when memory ran out. role or name may be NULL. */
const char *rw_name(rw_region *w, const char *role, const char *name);
/* Name of a tile's slice or deslice: the value's name with the target's label. NULL when memory
 * ran out. */
const char *rw_labelled(rw_region *w, const rw_target *t, const char *value);
/* A new value named after role and name. */
ot_status rw_value(rw_region *w, rw_target *t, const char *role, const char *name,
                   ot_tensor_type type, ot_id *out) OT_MUST_USE;
/* A node with one output, named after role and def->name. *out: the output to use, or OT_NONE
 * for a new value of that type; def->out is not read. */
ot_status rw_op(rw_region *w, rw_target *t, const char *role, const ot_node_def *def,
                ot_tensor_type type, ot_id *out) OT_MUST_USE;
/* A constant holding tensor x (borrowed; must live as long as the model). Small equal constants
 * are shared. */
ot_status rw_const(rw_region *w, rw_target *t, const char *name, const ot_tensor *x,
                   ot_id *out) OT_MUST_USE;
/* A constant of int64; rank 0 (n 1), or rank 1. */
ot_status rw_const_i64(rw_region *w, rw_target *t, const char *name, const int64_t *data, size_t n,
                       bool scalar, ot_id *out) OT_MUST_USE;
/* A constant of int64, [n_rows, n]. */
ot_status rw_const_rows(rw_region *w, rw_target *t, const char *name, const int64_t *rows,
                        uint32_t n_rows, uint32_t n, ot_id *out) OT_MUST_USE;
/* The scalar true: the condition of a Loop, which some runtimes do not take for granted. */
ot_status rw_const_true(rw_region *w, rw_target *t, ot_id *out) OT_MUST_USE;
/* Reshape; *out as in rw_op. An extent that is not known stays the one that the same axis of
 * `in` has. No node when nothing changes and *out is OT_NONE. */
ot_status rw_reshape(rw_region *w, rw_target *t, const char *role, const char *name, ot_id in,
                     int32_t rank, const int64_t *dims, ot_id *out) OT_MUST_USE;
/* The windows `cuts` of value src. No node for whole axes; equal crops are made once. */
ot_status rw_crop(rw_region *w, rw_target *t, ot_id src, const rw_cut *cuts, uint32_t n,
                  const char *name, ot_id *out) OT_MUST_USE;
/* Concat; *out as in rw_op. */
ot_status rw_concat(rw_region *w, rw_target *t, const char *name, const ot_id *in, uint32_t n,
                    uint32_t axis, ot_id *out) OT_MUST_USE;

/* ---- weights.c ---- */

/* Where value v of the region's graph is found in the target: itself, a constant brought into
 * the body with the nodes that make it, or captured by name. */
ot_status rw_use(rw_region *w, rw_target *t, ot_id v, ot_id *out) OT_MUST_USE;
/* Whether bodies read this constant of the enclosing graph by name, and make one of their own of
 * it by a Reshape: it is large, and of a type that Reshape takes. */
bool rw_stays_outer(const ot_model *m, const ot_tensor *weight);
/* n's input k is the weight of a matrix product. ONNX Runtime packs it where it is captured, too,
 * one level down (not in a loop of a branch), and then no other copy stays. */
bool rw_packs_captured(const ot_graph *g, const ot_node *n, uint32_t k);
/* v becomes a value of the body that is read from the enclosing graph by name. */
ot_status rw_capture(rw_region *w, rw_target *t, ot_id v, ot_id *out) OT_MUST_USE;

/* ---- own_quantised.c ---- */

/* [g n_values] quantised weights that one product alone reads; NULL when memory ran out. Requires
 * USES; call before the first region is written. */
bool *rw_quantised_alone(const ot_graph *g, ot_arena *a);
/* Every product of g that reads one of those ([n_before]) gets one for itself. Makes ORDER, USES.
 * Fails: OT_E_NOMEM. */
ot_status rw_own_quantised(ot_graph *g, const bool *alone, uint32_t n_before) OT_MUST_USE;

/* ---- tile_nodes.c ---- */

/* Which values and nodes a tile needs, and how its nodes are written. Fills everything but `val`.
 */
ot_status rw_chain_plan(rw_chain *c, rw_region *w, rw_target *t,
                        const ot_tile_windows *const *win) OT_MUST_USE;
/* Whether the tile has a part of output v that is not empty (it may need v for other outputs all
 * the same). */
bool rw_has_piece(const rw_chain *c, uint32_t v);
/* Tiles with these windows have a part of no output: other tiles cover them all. */
bool rw_no_piece(rw_region *w, const ot_tile_windows *const *win);
/* Write the operators. Requires val of all needed region inputs; fills val of produced values. */
ot_status rw_chain_emit(rw_chain *c) OT_MUST_USE;
/* ---- unrolled.c ---- */

/* Write the block tile by tile into the region's graph; fills b->out. */
ot_status rw_unroll(rw_region *w, rw_block *b) OT_MUST_USE;
/* Join what the blocks (row-major in the grid of runs) made; the last nodes' outputs are the
 * region's outputs. */
ot_status rw_join(rw_region *w, const rw_block *blocks) OT_MUST_USE;

/* ---- loop.c ---- */

/* Write the block as a loop; fills b->out. final: the results are the region's outputs themselves.
 */
ot_status rw_loop_block(rw_region *w, rw_block *b, bool final) OT_MUST_USE;
bool rw_use_scan(const rw_region *w);
/* Begin a body: as a Loop that carries sequences, or as rw_use_scan says. */
ot_status rw_loop_open(rw_loop *l, rw_region *w, const rw_block *b, bool sequence) OT_MUST_USE;
/* A body input; rank 0 tensor until changed. */
ot_status rw_loop_input(rw_loop *l, const char *name, ot_dtype dtype, ot_id *out) OT_MUST_USE;
/* Make `val` of the region inputs that the chain needs available in the body. */
ot_status rw_loop_bring(rw_loop *l, rw_chain *c) OT_MUST_USE;
/* The node of a finished Loop. in: [n_carried + 2] trips, condition, what is carried; outs: [n +
 * 1] values of the body, the condition first, kept by the model; made: [n] what they become
 * outside, the carried ones first. Fails: OT_E_NOMEM. */
ot_status rw_loop_write(rw_loop *l, const ot_id *in, uint32_t n_carried, ot_id *outs,
                        const ot_id *made, uint32_t n) OT_MUST_USE;
/* A value that a body may hand out: made by a node of the body and handed out once. */
ot_status rw_loop_own(rw_loop *l, const char *name, ot_id *v) OT_MUST_USE;

/* Set the inputs and outputs of a body that is written. Fails: OT_E_NOMEM. */
ot_status rw_body_finish(rw_region *w, ot_graph *body, ot_id_list in, ot_id_list out) OT_MUST_USE;

/* ---- nested_scan.c ---- */

/* The Scans that write the loop's one result v, whose tiles have these dims; n 0: one is enough, or
 * the best that there is. Call when the body is written. */
void rw_nest_find(const rw_loop *l, uint32_t v, const int64_t *tile, rw_nest *out);
/* *shape, by which a body's result gets its extents, becomes that and the length of an empty
 * sequence, where the result of the graph, x, is worth that. Fails: OT_E_NOMEM. */
ot_status rw_read_sequence(rw_loop *l, rw_target *t, const ot_value *x, ot_id *shape) OT_MUST_USE;
/* Write the Scans of l->nest around the finished body; `to` of the region's graph is what they
 * make. Fails: OT_E_NOMEM. */
ot_status rw_nest_write(rw_loop *l, ot_id to) OT_MUST_USE;

/* ---- sequence_form.c ---- */

/* Write all runs as loops that append their pieces to sequences, and join those. */
ot_status rw_sequence(rw_region *w) OT_MUST_USE;
/* v is a sequence from now on. */
void rw_make_sequence(ot_graph *g, ot_id v);
/* A node whose one output is a sequence of dtype. */
ot_status rw_sequence_op(rw_region *w, rw_target *t, const ot_node_def *def, ot_dtype dtype,
                         ot_id *out) OT_MUST_USE;
/* An empty sequence for each output of the region; OT_NONE for other values. seq: [n_values]. */
ot_status rw_sequences_start(rw_region *w, ot_id *seq) OT_MUST_USE;
/* The region's outputs from sequences that hold all of their pieces. */
ot_status rw_sequences_join(rw_region *w, const ot_id *seq) OT_MUST_USE;

/* ---- unjoined_tiles.c ---- */

/* Which values of g stay in pieces when p's regions are written: *out: [g->n_values], NULL for
 * those that are joined; NULL where p keeps none. All live in arena a. Requires USES of g as it
 * was planned. Fails: OT_E_NOMEM. */
ot_status rw_pieces_choose(const ot_graph *g, const ot_plan *p, ot_arena *a,
                           rw_pieces ***out) OT_MUST_USE;
/* Output v of the region stays in pieces, which this sequence of its graph holds; false: it is
 * to be joined. */
bool rw_pieces_keep(const rw_region *w, uint32_t v, ot_id sequence);
/* Region input v is in pieces. */
bool rw_in_pieces(const rw_region *w, uint32_t v);
/* A body value that holds the made windows of such an input. Fails: OT_E_NOMEM. */
ot_status rw_pieces_window(rw_loop *l, uint32_t v, ot_id *out) OT_MUST_USE;

/* ---- stream_form.c ---- */

/* Write all steps as loops that carry the last rows of each value and append their pieces to
 * sequences. */
ot_status rw_stream(rw_region *w) OT_MUST_USE;
/* Rows [lo, hi) of region value v, which is made inside, in a step: of what was carried in
 * (c->kept), of what the step made, or of both. */
ot_status rw_stream_rows(rw_chain *c, uint32_t v, int64_t lo, int64_t hi, ot_id *out) OT_MUST_USE;

/* What a Loop of one iteration carries in where it hands rows of region value v on: a constant
 * without elements, of the right type. */
ot_status rw_no_rows(rw_region *w, uint32_t v, ot_id *out) OT_MUST_USE;
/* Put the nodes that make `rows` ([n_rows] results of the body, handed on) where ONNX Runtime
 * runs them early. Keeps ORDER. */
ot_status rw_stream_order(rw_loop *l, const ot_id *rows, uint32_t n_rows) OT_MUST_USE;

/* ---- dynamic_form.c ---- */

/* Write the region for every extent of its cut axis. */
ot_status rw_free(rw_region *w) OT_MUST_USE;

/* ---- dynamic_parts.c ---- */

/* In a body: *piece, part x of v (as its node makes it) as it goes into the sequence of v's parts.
 */
ot_status rw_free_part(rw_region *w, rw_target *t, uint32_t v, ot_id x, ot_id *piece) OT_MUST_USE;
/* In the body of a tile with windows win: *rows (float64, [1]), of what is reduced to v, that it
 * owns; c: its operators, written. */
ot_status rw_free_part_rows(rw_chain *c, const ot_tile_windows *win, uint32_t v,
                            ot_id *rows) OT_MUST_USE;
/* The same where one tile has all: they have no weight against others. */
ot_status rw_free_part_all(rw_region *w, rw_target *t, ot_id *rows) OT_MUST_USE;
/* Behind the loops: v from the sequences of its parts and of their rows; rows OT_NONE: parts
 * have no weight. tiles: how many there are, [1]. */
ot_status rw_free_combine(rw_region *w, uint32_t v, ot_id parts, ot_id rows,
                          ot_id tiles) OT_MUST_USE;

/* ---- while.c ---- */

/* Write the blocks ([n], row-major in the grid of classes) as the engine's operators; the
 * region's outputs are then there. */
ot_status rw_while(rw_region *w, const rw_block *blocks, uint32_t n) OT_MUST_USE;

/* ---- parts.c ---- */

/* Dimensions along which region value v is combined from parts; returns how many. */
uint32_t rw_part_dims(const rw_region *w, uint32_t v, uint32_t dims[OT_DIMS_MAX]);
bool rw_is_part(const rw_region *w, uint32_t v);
/* Type of the buffer that tiles write output v to: v's, with a slot per tile in front for each
 * of these. Its dims are `dims`. */
ot_value rw_buffer_type(const rw_region *w, uint32_t v, int64_t dims[OT_RANK_MAX]);
/* In a body: *part, what a tile with these windows reduced to v, as it is handed out, with
 * n_slots axes of one element in front. Nothing for other values. */
ot_status rw_part(rw_region *w, rw_target *t, const ot_tile_windows *const *win, uint32_t v,
                  uint32_t n_slots, ot_id *part) OT_MUST_USE;
/* Parts of v have a weight: means, and what goes with them. */
bool rw_part_has_weight(const rw_region *w, uint32_t v);
/* Behind the tiles: v from its parts [tiles, shape of v]. shares: [tiles, 1, ...] of all
 * elements, of v's type, where parts have a weight. */
ot_status rw_combine_by(rw_region *w, uint32_t v, ot_id parts, ot_id shares) OT_MUST_USE;
/* Elements of what is reduced to v that a tile with these windows owns, along the dims that have
 * parts. */
double rw_part_elements(const rw_region *w, const ot_tile_windows *const *win, uint32_t v);
/* Behind the tiles: v from all of its parts, which have n_slots axes in front. n: elements of
 * each part, in their order. */
ot_status rw_combine(rw_region *w, uint32_t v, ot_id parts, uint32_t n_slots,
                     const double *n) OT_MUST_USE;
/* Behind the blocks ([n]) of standard ONNX: v from the stacks of parts that they made
 * (b->out[v]: [tiles of b, shape of v]). */
ot_status rw_combine_blocks(rw_region *w, uint32_t v, const rw_block *blocks,
                            uint32_t n) OT_MUST_USE;

/* ---- scan.c ---- */

/* Input `out` of the body, like x but of these dims, which scans `stacked`. */
ot_status rw_scanned(rw_loop *l, const ot_value *x, const int64_t *dims, ot_id stacked,
                     ot_id *out) OT_MUST_USE;
/* A body input that holds tile i of region input v in iteration i. */
ot_status rw_scan_input(rw_loop *l, uint32_t v, ot_id *out) OT_MUST_USE;
/* ---- prescan.c ---- */

/* A body input that holds the made windows of region input v, which is cut: gathered in the
 * region's graph for all tiles of the block. */
ot_status rw_gathered_input(rw_loop *l, uint32_t v, ot_id *out) OT_MUST_USE;

/* ---- window.c ---- */

/* Tile i of the block (row-major) as tile numbers per dimension. */
void rw_tile_at(const rw_block *b, uint32_t i, uint32_t k[OT_DIMS_MAX]);
/* The body's row of a table with one row of `n` numbers per iteration. */
ot_status rw_table(rw_loop *l, const char *name, const int64_t *rows, uint32_t n,
                   ot_id *out) OT_MUST_USE;
/* A window that moves with the iteration: len[a] elements of axes[a], in iteration i from
 * lo[i * n + a] on. */
typedef struct rw_moving_window {
    uint32_t n, axes[OT_DIMS_MAX];
    int64_t len[OT_DIMS_MAX];
    int64_t *lo; /* [tiles of the block * n] */
} rw_moving_window;
/* In the body: that window of src, a value of the body. */
ot_status rw_moving_crop(rw_loop *l, ot_id src, const rw_moving_window *m, const char *name,
                         ot_id *out) OT_MUST_USE;
/* Where the body finds the made windows of region input v: captured, cut before the loop, or cut
 * in each iteration. */
ot_status rw_window_input(rw_loop *l, uint32_t v, ot_id *out) OT_MUST_USE;
/* The piece of output v out of what the chain made. */
ot_status rw_window_piece(rw_loop *l, uint32_t v, ot_id made, ot_id *out) OT_MUST_USE;

/* ---- fold.c ---- */

/* The known contents of v, whose producer is no more, become a constant. Fails: OT_E_NOMEM. */
ot_status rw_fold_value(ot_graph *g, ot_id v) OT_MUST_USE;

/* ---- share_constants.c ---- */

/* Nodes of g from number n_before on that compute the same large result of constants become one,
 * and are static. Requires ORDER, USES, SHAPES; keeps them. Fails: OT_E_NOMEM; OT_E_INPUT as
 * ot_replace_uses. */
ot_status rw_share_constants(ot_graph *g, uint32_t n_before) OT_MUST_USE;

/* ---- branch.c ---- */

/* [n_values] of g: the file's own subgraphs read it, by the name in their bytes. In a; NULL: no
 * memory. */
bool *rw_read_by_file(const ot_graph *g, ot_arena *a) OT_MUST_USE;

/* ---- hidden_extents.c ---- */

/* Large values of g, a branch, become such of whose extents the runtime knows nothing before it
 * runs. one: a scalar of g that is 1, as nobody can know. Requires that captured values are marked.
 * Clears ORDER, USES. Fails: OT_E_NOMEM. */
ot_status rw_hide_extents(ot_graph *g, ot_id one) OT_MUST_USE;

/* ---- unpacked_weights.c ---- */

/* Weights of g, a branch, that are marked as unpacked are handed on by a Reshape whose extents are
 * known when the model runs. one: as above. Requires USES, which is cleared, as is ORDER. Fails:
 * OT_E_NOMEM. */
ot_status rw_hide_weights(ot_graph *g, ot_id one) OT_MUST_USE;

/* Written by the rewriter, and no part of what it stands for: tiles and their loops. */
static inline bool rw_is_tile(const ot_node *n) { return n->source == OT_NONE; }

/* n reads `to` wherever it read `from`. */
static inline void rw_read_instead(ot_node *n, ot_id from, ot_id to)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] == from) n->in[k] = to;
    n->proto = NULL;
}

/* ---- blocked_results.c ---- */

/* Results of regions that convolutions read in this runtime's blocks, and sums beside them, as
 * copies in blocks. Requires ORDER, USES, SHAPES; keeps them. Fails: OT_E_NOMEM. */
ot_status rw_blocked_results(ot_graph *g, const ot_runtime *r) OT_MUST_USE;

/* ---- plain_views.c ---- */

/* Views of the blocked values that are read plain. Requires ORDER, USES, SHAPES; keeps them.
 * Fails: OT_E_NOMEM. */
ot_status rw_plain_views(ot_graph *g, const ot_runtime *r) OT_MUST_USE;

#endif
