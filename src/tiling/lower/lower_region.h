/* From a region to a kernel that runs: what lower_region.c (tiles), lower_ops.c (operators)
 * and inner_*.c (the second level) share. Private to memory/.
 *
 *   node Conv --lower_ops.c--> lowered_op conv(x, w, bias) with its settings --+-- one level: a
 *   statement
 *                                                                             `-- memories of the
 *                                                                             cores: a nest of
 *                                                                             blocks, inner_nest.c
 */
#ifndef OT_TILING_LOWER_LOWER_REGION_H
#define OT_TILING_LOWER_LOWER_REGION_H

#include "region_held.h"
#include "region_names.h"

#define PROG_IN_MAX   16 /* operands of an operation */
#define PROG_ATTR_MAX 6

/* A tile, or a part of it, as an operation sees it. */
typedef struct lowered_tensor {
    uint32_t v; /* value of the kernel; OT_NONE: omitted */
    uint32_t rank;
    int64_t dims[OT_TK_RANK_MAX];
    const char *type;
} lowered_tensor;

typedef struct lowered_attr {
    const char *name;
    uint32_t n;
    bool list;
    double values[OT_TK_RANK_MAX];
} lowered_attr;

/* How one axis of the output looks at the same axis of input 0: output o reads [o*stride -
 * pad_lo, ... + kernel*dilation). */
typedef struct lowered_window {
    /* kernel 0: it does not look through a window */
    int64_t kernel, stride, dilation, pad_lo, pad_hi;
} lowered_window;

/* One operation on tiles. */
typedef struct lowered_op {
    ot_pipe pipe;
    const char *name;
    lowered_tensor out, in[PROG_IN_MAX];
    uint32_t n_in;
    lowered_attr attrs[PROG_ATTR_MAX];
    uint32_t n_attrs;
    /* What a block of the output needs, for the second level: */
    bool cut[OT_TK_RANK_MAX]; /* the output may be made in blocks along this axis */
    /* axis of the input that follows it; -1: the input is wanted whole there */
    int8_t axis[PROG_IN_MAX][OT_TK_RANK_MAX];
    lowered_window window[OT_TK_RANK_MAX]; /* of input 0 */
} lowered_op;

/* Where a region's tiles are alike and move evenly: one loop of the lowered kernel. */
typedef struct lowered_run {
    uint32_t first, count;
    /* [n_values] by which made windows and pieces move from tile to tile */
    int64_t *step, *piece_step;
} lowered_run;

typedef struct lowered {
    const ot_graph *g;
    const ot_region *r;
    const ot_target *t;
    ot_diag *d;
    ot_arena *a; /* scratch */
    ot_kernel_builder *b;
    ot_region_names names;
    const ot_kernel *plan; /* the region's planned kernel: where its buffers are */
    const ot_region_held *held;
    const char *why; /* this region has no lowered kernel; NULL: so far it has */
    /* values of the kernel: */
    uint32_t *param; /* [region n_values] in slow memory; OT_NONE: none */
    /* [region n_values] parts of a reduction, in global memory: a slot per tile in front */
    lowered_tensor *parts;
    struct ot_region_param *params; /* [n_params] */
    uint32_t n_params;
    size_t cap_params;
    ot_map *constant_of;  /* name of a constant -> value of the kernel that holds it */
    lowered_tensor *tile; /* [region n_values] in the tile at hand; v OT_NONE: not there */
    /* [n_places] pairs: value of this kernel, value of the planned one whose offsets it takes */
    uint32_t *places;
    uint32_t n_places;
    size_t cap_places;
    /* tiles: */
    ot_tile_windows *windows[OT_DIMS_MAX]; /* [n_tiles] */
    lowered_run *runs[OT_DIMS_MAX];        /* [n_runs] */
    uint32_t n_runs[OT_DIMS_MAX];
    uint32_t at[OT_DIMS_MAX]; /* the run at hand */
    const char *var[OT_DIMS_MAX];
    /* form stream: */
    /* [region n_values] buffer of the rows that steps hand on; v OT_NONE: none */
    lowered_tensor *rows;
    uint32_t n_steps;
    /* [region n_values] last node of the region that reads the value, or OT_NONE */
    uint32_t *last;
    bool one_kind;      /* one run of each dimension is written */
    bool second;        /* operations are done in blocks in the cores' memories */
    uint32_t n_inner;   /* loops named so far */
    ot_inner_op *inner; /* [n_inner_ops] what the second level chose */
    uint32_t n_inner_ops;
    size_t cap_inner_ops;
    const char *node; /* name of the node at hand */
} lowered;

/* Why there is no lowered kernel; the first reason stays. Returns OT_OK: it is no failure. */
ot_status lowered_refuse(lowered *p, const char *why);
static inline ot_status lowered_nomem(const lowered *p) { return ot_fail_nomem(p->d); }
/* A new buffer; its dims are those of *like. *out OT_NONE never. */
ot_status lowered_alloc(lowered *p, const char *name, const char *suffix, ot_scope scope,
                        uint32_t multi, const lowered_tensor *like,
                        lowered_tensor *out) OT_MUST_USE;
/* Another name for all of x, with these dims. */
ot_status lowered_alias(lowered *p, const lowered_tensor *x, uint32_t rank, const int64_t *dims,
                        lowered_tensor *out) OT_MUST_USE;
/* The part [lo, lo + out->dims) of x; lo: affine over loops that are open. All of it: x itself. */
ot_status lowered_part(lowered *p, const lowered_tensor *x, const ot_tk_affine *lo,
                       const int64_t *dims, lowered_tensor *out) OT_MUST_USE;
/* One statement for the operation. */
ot_status lowered_statement(lowered *p, const lowered_op *op) OT_MUST_USE;
ot_status lowered_copy(lowered *p, const lowered_tensor *to,
                       const lowered_tensor *from) OT_MUST_USE;

/* x + n */
static inline ot_tk_affine lowered_plus(ot_tk_affine x, int64_t n)
{
    x.constant += n;
    return x;
}
/* The buffer takes the offsets and slots of a value of the planned kernel. */
ot_status lowered_place_as(lowered *p, uint32_t v, uint32_t planned) OT_MUST_USE;
/* The buffer of the planned kernel that holds region value v in a tile, or OT_NONE. */
uint32_t lowered_planned_buffer(const lowered *p, uint32_t v);

/* ---- lower_windows.c ---- */

/* Windows of all tiles along d, and which of them are alike: p->windows[d], p->runs[d]. */
ot_status lowered_find_runs(lowered *p, uint32_t d) OT_MUST_USE;
/* Of the runs along d the longest one alone. */
void lowered_keep_longest(lowered *p, uint32_t d);
/* Dims of region value v as the tensor that it is; false: no kernel has it. */
bool lowered_whole_shape(const lowered *p, uint32_t v, lowered_tensor *out);
/* Windows of the tile at hand along d; of the first one, where a loop is over several. */
const ot_tile_windows *lowered_windows(const lowered *p, uint32_t d);
/* Where something that is at `lo` in the run's first tile, and moves by `step`, is in this one. */
ot_tk_affine lowered_moving(const lowered *p, uint32_t d, int64_t lo, int64_t step);
/* The made window of region value v in this tile, or its piece: dims, and [OT_TK_RANK_MAX] where
 * it begins. false: there is nothing. */
bool lowered_tile_shape(const lowered *p, uint32_t v, bool piece, lowered_tensor *out,
                        ot_tk_affine *lo);

/* Rows of region value v along d that its tile's buffer holds in this tile; line buffers: what
 * is new in this step. */
ot_win lowered_tile_window(const lowered *p, uint32_t d, uint32_t v);

/* ---- lower_rows.c: form stream ---- */

/* Buffers for the rows that steps hand on, nothing in them; of the strip at hand. */
ot_status lowered_declare_rows(lowered *p) OT_MUST_USE;
/* Of the tile of region value v the part that its node makes; the rest was handed on. */
ot_status lowered_fresh_part(lowered *p, uint32_t v, lowered_tensor *out) OT_MUST_USE;
/* Line buffers: these rows of region value v, of the other axes [lo, lo + dims): where they lie,
 * or put together in global memory where some were handed on and others are new. */
ot_status lowered_rows_of(lowered *p, uint32_t v, ot_win rows, const ot_tk_affine *lo,
                          const int64_t *dims, lowered_tensor *out) OT_MUST_USE;
/* Node i has run, or has nothing to do in this step: what the next step is to find is put there. */
ot_status lowered_hand_on(lowered *p, uint32_t i) OT_MUST_USE;
/* Does the region stream, by steps that put rows together in the tile? Else (line buffers)
 * readers take both where they lie. */
static inline bool lowered_joins_rows(const lowered *p)
{
    return p->r->form == OT_FORM_STREAM && !p->r->rolling;
}

/* ---- lower_tile.c ---- */

/* A buffer for region value v, in the place that the planned kernel has for it. */
ot_status lowered_new_tile(lowered *p, uint32_t v, const lowered_tensor *like,
                           lowered_tensor *out) OT_MUST_USE;

/* The tiles of the runs at hand. */
ot_status lowered_put_tile(lowered *p) OT_MUST_USE;

/* ---- lower_parts.c ---- */

/* Do tiles make parts of region value v? */
bool lowered_is_part(const lowered *p, uint32_t v);
/* A slot per tile for them; like: the value. */
ot_status lowered_declare_parts(lowered *p, uint32_t v, const lowered_tensor *like) OT_MUST_USE;
/* What node i has made in this tile goes to its slot. */
ot_status lowered_keep_part(lowered *p, uint32_t i) OT_MUST_USE;
/* Behind the loops: the output of node i from its parts, where it has some. */
ot_status lowered_combine(lowered *p, uint32_t i) OT_MUST_USE;

/* ---- lower_ops.c ---- */

/* Element by element from one tile to another, or a part of one. */
ot_status lowered_move(lowered *p, const lowered_tensor *to,
                       const lowered_tensor *from) OT_MUST_USE;

/* Node i of the region in the tile at hand: in [n_in] its operands, out what it makes. Refuses
 * what it does not know. */
ot_status lowered_node(lowered *p, uint32_t i, const ot_adapted *ad, const lowered_tensor *in,
                       uint32_t n_in, const lowered_tensor *out) OT_MUST_USE;

/* ---- inner_nest.c ---- */

/* The operation in blocks that fit these. */
ot_status inner_op(lowered *p, const lowered_op *op) OT_MUST_USE;

#endif
