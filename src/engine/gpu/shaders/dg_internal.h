/* Private to devicegen/: a kernel under construction.
 *
 *   dg_num(b, 17)         "p3": number 3 of the table; 0 and 1 stand in the text, where compilers
 *                         make use of them
 *   dg_index(b, v, c)     "o0 + c0 * p1 + c1": where the element of value v with these coordinates
 *                         is, behind its pointer b0
 *   dg_load, dg_store     the element as a number of the type that is computed in
 */
#ifndef OT_ENGINE_GPU_SHADERS_DG_INTERNAL_H
#define OT_ENGINE_GPU_SHADERS_DG_INTERNAL_H

#include "shaders.h"

#define DG_NUMBERS_MAX 4096
#define DG_VARS_MAX    160 /* results in registers of one group */

typedef struct dg_text {
    char *s; /* [n], zero-terminated */
    size_t n, cap;
} dg_text;

typedef struct dg_build {
    ot_arena *a;
    const ot_dg_group *g;
    const ot_dg_target *target;
    bool starved;    /* memory ran out somewhere */
    const char *why; /* first reason against a kernel; NULL: none so far */
    dg_text body;
    ot_dg_arg args[OT_DG_ARGS_MAX];
    ot_nd arrays[OT_DG_ARGS_MAX];    /* as this kernel sees them */
    int64_t touched[OT_DG_ARGS_MAX]; /* elements of each that it reads or writes */
    /* indices count from here on (dg_from); NULL: from the first element */
    const char *from[OT_DG_ARGS_MAX];
    uint32_t n_args;
    /* The coordinate `chan` (text) of channels is chan_lane of block chan_block: nothing is
     * divided to find it in arrays in blocks. NULL: none. */
    const char *chan, *chan_block, *chan_lane;
    int32_t *numbers;
    size_t n_numbers, cap_numbers;
    double transactions[3]; /* of a kernel: as it is made, plain, ideal */
    bool spreads;
    uint32_t group_items; /* of a kernel whose work-groups share memory (dg_begin_group); 0 */
    dg_text shared;       /* its declarations */
    int64_t pool_bytes;   /* of dg_shared_pool; 0 */
    uint32_t groups_on_unit;
    ot_dg_shader *done; /* [n_done] */
    size_t n_done, cap_done;
} dg_build;

/* How the elements of a type are held, and what they are computed in. */
typedef struct dg_type {
    const char *held, *computed;
    bool is_float, is_unsigned;
    uint32_t bits; /* of `computed` */
} dg_type;
bool dg_type_of(ot_dtype t, dg_type *out);

/* A part of a value. */
typedef struct dg_view {
    ot_id v;
    ot_nd x;       /* dims, strides, type as they are to be seen */
    int64_t first; /* elements to skip */
} dg_view;

/* ---- dg_text.c ---- */

/* Formatted text in the arena. "" when memory ran out. */
const char *dg_fmt(dg_build *b, const char *fmt, ...) OT_PRINTF(2, 3);
/* One line of the body. */
void dg_line(dg_build *b, const char *fmt, ...) OT_PRINTF(2, 3);
void dg_append(dg_build *b, dg_text *t, const char *s);
/* This group has no kernel, because; returns false. */
bool dg_refuse(dg_build *b, const char *why);
/* A work-item's loops make so many iterations, inner ones included; false: more than the device
 * makes, and the group is refused. */
bool dg_steps(dg_build *b, double iterations);
/* A number of the table as text. Beyond 32 bits: the group is refused. */
const char *dg_num(dg_build *b, int64_t value);
/* Argument for value v, seen as array x (NULL: as the group has it); its number. */
uint32_t dg_arg(dg_build *b, ot_id v, const ot_nd *x, bool written);
/* The same for a part of a value. */
uint32_t dg_arg_at(dg_build *b, const dg_view *p, bool written);
/* Argument for contents that are made for this kernel: dense, in the arena. */
uint32_t dg_table(dg_build *b, ot_dtype t, int64_t n, const void *data);
/* The kernel reads no more than so many of its elements. */
void dg_reads_at_most(dg_build *b, uint32_t arg, int64_t elements);
/* Argument for constant v packed so: it is seen as dense, [groups *
 * blocks][depth_dims[0]][depth_dims[1]][block]. */
uint32_t dg_packed(dg_build *b, ot_id v, const ot_dg_packing *p);
/* First element plus coordinates (text, [rank of the array]) times strides. */
const char *dg_index(dg_build *b, uint32_t arg, const char *const *coords);
/* The same in the order in which elements of x lie, where that is in blocks of channels:
 * neighbours are neighbours' work. */
void dg_split_as(dg_build *b, const char *prefix, const ot_nd *x, const char **coords);
/* Lines that take the work-item's number `i` apart: coords[k] (text) of an array of these dims;
 * those of extent 1 are "0". */
void dg_split(dg_build *b, const char *prefix, uint32_t rank, const int64_t *dims,
              const char **coords);
/* "const int i = work_item(); if (i >= items) return;" */
void dg_begin(dg_build *b, int64_t items);
/* A kernel of so many work-groups, `i`, of `items` work-items each, `me`, that share memory. */
void dg_begin_group(dg_build *b, int64_t groups, uint32_t items);
/* Shared memory of n elements of a type of the language's under this name. */
void dg_shared(dg_build *b, const char *type, const char *name, int64_t n);
/* CUDA: "pool", words of so many bytes, whose size is the launch's. */
void dg_shared_pool(dg_build *b, int64_t bytes);
/* A line: all work-items of the group have come here, and each sees what the others shared. */
void dg_meet(dg_build *b);
/* Time of so many work-items that each make lanes x block sums, up to a factor: loads, which take
 * as long as four multiply-adds, and multiply-adds; items that leave units idle cost as those that
 * do not. */
double dg_work(const dg_build *b, double items, uint32_t lanes, uint32_t block);
/* The kernel is complete; a new one begins. items: work-items; group_items: of a work-group, where
 * the device's work-items load one by one and share no memory. */
void dg_end(dg_build *b, int64_t items, uint32_t group_items, double operations);

/* some are the file's word: nothing is read outside of an array because of them */
#define DG_CONTRADICT "shapes that contradict each other"
/* Is x, aligned at the last axis, repeated to these dims? */
bool dg_broadcasts(const ot_nd *x, uint32_t rank, const int64_t *dims);
static inline bool dg_same_dims(const ot_nd *x, const ot_nd *y)
{
    return x->rank == y->rank && !memcmp(x->dims, y->dims, x->rank * sizeof *x->dims);
}

static inline const ot_nd *dg_nd(const dg_build *b, ot_id v) { return &b->g->arrays[v]; }
/* Input k of the node, OT_NONE where it is left out. */
static inline ot_id dg_in(const ot_node *n, uint32_t k) { return k < n->n_in ? n->in[k] : OT_NONE; }
/* Integers of constant operand k (int64 or int32, any rank): into out, at most `most`; false:
 * not constant, or too many. */
bool dg_const_ints(const dg_build *b, const ot_node *n, uint32_t k, int64_t *out, uint32_t most,
                   uint32_t *count);

/* ---- dg_blocks.c: activations in blocks of channels ---- */

/* Has x holes between its elements, in the order in which they lie? */
bool dg_is_whole(const ot_nd *x);
/* x with its channels as two axes, blocks and those of a block: the latter last where `last`.
 * What comes of it is an array of plain strides. */
ot_nd dg_unblock(const ot_nd *x, uint32_t block, bool last);
/* Output channels that a convolution makes in a vector when its arrays lie in blocks; 0: it has
 * no such kernel. w: weights. */
uint32_t dg_block_of(const ot_nd *w, int64_t maps);

/* ---- dg_access.c: what an access costs ---- */

/* What one instruction of a work-item loads or stores: `lanes` elements, and the next work-item's.
 */
typedef struct dg_access {
    ot_dtype type;
    double times;        /* of a work-item */
    uint32_t lanes;      /* elements */
    int64_t lane_stride; /* elements between them; 0: all the same, */
    int64_t item_stride; /* between those of neighbouring work-items */
} dg_access;

/* Transactions of a work-item. */
double dg_transactions(const ot_dg_layout *l, const dg_access *x);
/* The same if its elements were neighbours. */
double dg_transactions_ideal(const ot_dg_layout *l, const dg_access *x);
/* The kernel under construction makes these accesses; plain: as many that it would make without
 * a layout of the device's. */
void dg_count(dg_build *b, const dg_access *x, uint32_t n, double items);
void dg_count_plain(dg_build *b, const dg_access *x, uint32_t n, double items);
/* Do a work-item's elements lie apart (ot_dg_layout.spreads)? The same n accesses of either kind.
 */
bool dg_spreads(const dg_build *b, const dg_access *x, const dg_access *spread, uint32_t n);
/* Constants of so many bytes may be filled up without a limit; larger ones grow by a quarter at
 * the most. */
#define DG_FILL_SMALL (1 << 16)
/* Is v a constant that is packed (ot_dg_layout.packs)? What is read of it either way. */
bool dg_packs(const dg_build *b, ot_id v, const dg_access *plain, const dg_access *packed);

/* ---- dg_dialect.c: what languages say differently ---- */

/* A line: from now on indices of `arg` count from element `at` (text), whose place is called
 * `name`; at NULL: no longer. Places near each other are then constants, where languages have
 * pointers. */
void dg_from(dg_build *b, uint32_t arg, const char *name, const char *at);
/* Element at `index` of argument `arg`, as a number. */
const char *dg_load(dg_build *b, uint32_t arg, const char *index);
/* The same as it lies in memory, to be read or written. */
const char *dg_place(dg_build *b, uint32_t arg, const char *index);
void dg_store(dg_build *b, uint32_t arg, const char *index, const char *value);
/* "float8": so many lanes; their members are .s0, .s1, ... */
const char *dg_vector(dg_build *b, uint32_t lanes);
/* Neighbours of an array of float32 or float16 from `index` on; store: of float32. */
const char *dg_load_lanes(dg_build *b, uint32_t arg, uint32_t lanes, const char *index);
void dg_store_lanes(dg_build *b, uint32_t arg, uint32_t lanes, const char *index,
                    const char *value);
/* A float that reads back as the same number; an integer as type t computes it. */
const char *dg_float(dg_build *b, double v, bool is_double);
const char *dg_int(dg_build *b, const dg_type *t, int64_t v);
const char *dg_double_suffix(const dg_build *b); /* of literals */
/* Does the expression call what the language has in float alone? */
bool dg_lacks_in_double(const dg_build *b, const char *text);
#define DG_FLOAT_ALONE "a function that the device has in float32 alone"
/* Arguments of the function under construction and the beginning of its body: its numbers p0,
 * p1, ... */
void dg_open_function(dg_build *b, dg_text *text, uint32_t group_items);

/* ---- dg_element.c: element-wise nodes ---- */

/* What nodes of a group compute, element by element. */
typedef struct dg_element {
    uint32_t rank;
    const int64_t *dims;
    /* [rank] of the element; NULL: operands that are like the result are read at `linear` */
    const char *const *coords;
    /* text: number of the element, row by row; only where all arrays allow it */
    const char *linear;
    ot_id vars[DG_VARS_MAX]; /* values in registers */
    const char *names[DG_VARS_MAX];
    uint32_t n_vars;
} dg_element;

/* Node n on the element: a line for its result, which becomes a variable. */
bool dg_element_node(dg_build *b, dg_element *e, const ot_node *n);
/* Name of value v in registers, or its load. NULL: the group was refused. */
const char *dg_element_value(dg_build *b, dg_element *e, ot_id v);
void dg_element_var(dg_build *b, dg_element *e, ot_id v, const char *name);
/* All nodes from number `first` on, then the stores. */
bool dg_element_rest(dg_build *b, dg_element *e, uint32_t first);
/* Kernel of a group of element-wise nodes without a head. */
bool dg_chain(dg_build *b);

/* ---- dg_window.c: convolutions and pools as windows over at most three spatial axes ---- */

typedef struct dg_window {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], lo[3], hi[3];
    uint32_t n; /* spatial axes of the model; those before are 1 */
} dg_window;

/* weights: NULL for pools. false: refused. */
bool dg_window_read(dg_build *b, const ot_node *n, const ot_nd *x, const ot_nd *weights,
                    const ot_nd *y, dg_window *w);
/* Elements of `in`, with N, C and three spatial axes, that some window reaches: steps may pass
 * some by. */
int64_t dg_window_elements(const ot_nd *in, const dg_window *w);
/* Has a convolution one bias for each of so many maps, or none? */
bool dg_is_bias(const dg_build *b, const ot_node *n, int64_t maps);
/* x with N, C and three spatial axes: those that it lacks have extent 1. */
ot_nd dg_five_axes(const ot_nd *x);

/* ---- heads: each makes one or more kernels, or refuses ---- */

bool dg_conv(dg_build *b, const ot_node *n);           /* dg_conv.c */
bool dg_conv_transpose(dg_build *b, const ot_node *n); /* dg_window.c */
bool dg_pool(dg_build *b, const ot_node *n);
bool dg_product(dg_build *b, const ot_node *n); /* dg_product.c: MatMul, Gemm */
bool dg_reduce(dg_build *b, const ot_node *n);  /* dg_rows.c: reductions, global pools, ArgMax */
bool dg_softmax(dg_build *b, const ot_node *n);
bool dg_arg_reduce(dg_build *b, const ot_node *n);
bool dg_norm(dg_build *b, const ot_node *n);    /* dg_norm.c */
bool dg_moments(dg_build *b, const ot_node *n); /* dg_moments.c */
bool dg_norm_factors(dg_build *b, const ot_node *n);
bool dg_resize(dg_build *b, const ot_node *n); /* dg_resize.c */
bool dg_concat(dg_build *b, const ot_node *n); /* dg_move.c */
bool dg_views(dg_build *b, const ot_node *n);  /* Slice, Split, Transpose, Expand */
bool dg_pad(dg_build *b, const ot_node *n);
bool dg_gather(dg_build *b, const ot_node *n);
bool dg_block(dg_build *b, const ot_node *n);  /* DepthToSpace, SpaceToDepth */
bool dg_repeat(dg_build *b, const ot_node *n); /* Tile */
bool dg_reshape(dg_build *b, const ot_node *n);
/* One kernel that copies `read` to `write`: equal dims, types of equal size. */
bool dg_copy_kernel(dg_build *b, dg_view read, dg_view write);

#endif
