/* Operators as device kernels in OpenCL C, GLSL or CUDA C: text, buffers, numbers; nothing is
 * compiled here.
 *
 *   Conv, Relu, Add(r)     one group: a head that makes a number for each element of the result,
 *                          then element-wise nodes in registers
 *     |
 *     v
 *   text      the function without its name; equal texts are one function, whatever the sizes:
 *             those are numbers
 *   numbers   extents, strides, pads of this very group, which the function reads from a table
 *   args      values that it reads and writes; each with its first element, so that a window moves
 *             without another text
 *
 * Arrays have any strides: a tile's window is read where it lies, a tile is written to its
 * place. Kernels compute float16 and bfloat16 in float32 and round what they store. What has no
 * kernel says why, and its caller runs it elsewhere.
 */
#ifndef OT_ENGINE_GPU_SHADERS_SHADERS_H
#define OT_ENGINE_GPU_SHADERS_SHADERS_H

#include "engine/core/engine.h"

/* work-items of a GPU's unit that hide what loads take, where each makes many sums */
#define OT_DG_UNIT_ITEMS 512
#define OT_DG_ARGS_MAX   24 /* values that one kernel reads or writes */

typedef enum ot_dg_dialect { OT_DG_OPENCL, OT_DG_GLSL, OT_DG_CUDA } ot_dg_dialect;

/* Is a layout taken where it makes fewer transactions, nowhere, or everywhere it can be? */
typedef enum ot_dg_choice { OT_DG_WHERE_IT_PAYS, OT_DG_NEVER, OT_DG_ALWAYS } ot_dg_choice;

/* How a device reaches its memory, and which layouts kernels may take for it (dg_access.c). */
typedef struct ot_dg_layout {
    /* work-items whose loads are one: a GPU's subgroup; 1: each loads by itself, in vectors; 0:
     * as 1 */
    uint32_t together;
    /* work-items that keep all units of a GPU busy: where there would be fewer, each gets less to
     * do; 0: any number does */
    int64_t busy;
    uint32_t sector; /* bytes that move as one: a cache line, a sector of one; 0: 64 */
    /* constant weights in blocks of output channels, [O/b][...][b]: those of a work-item are
     * neighbours */
    ot_dg_choice packs;
    /* channels of an activation side by side where that pays, [C/block][...][block]; 0: nowhere */
    uint32_t block;
    /* a work-item's elements lie apart, so that those of neighbouring work-items are neighbours */
    ot_dg_choice spreads;
    /* a row of a reduction or normalisation is a work-group's, which adds up what its work-items
     * found; else a work-item's */
    ot_dg_choice shares_rows;
    /* blocks of a convolution's or product's operands in memory that a work-group shares */
    ot_dg_choice tiles;
    /* the same by matrix instructions, where the device has them */
    ot_dg_choice matrices;
} ot_dg_layout;

/* What text is for. */
typedef struct ot_dg_target {
    ot_dg_dialect dialect;
    bool has_f64, has_i64;      /* computes in float64, in 64-bit integers */
    bool has_shorts, has_bytes; /* reads and writes elements of two bytes, of one */
    uint32_t args_most;         /* arrays of one kernel; 0: OT_DG_ARGS_MAX */
    int64_t steps_most;         /* iterations of all loops of a work-item; 0: as many as it takes */
    bool has_matrices;   /* CUDA: mma of 16 x 8 x 16 half precision, of 16 x 8 x 8 TF32; cp.async */
    uint32_t group_most; /* work-items of a work-group, */
    int64_t shared_bytes; /* and memory that they share; 0: work-groups share nothing */
    ot_dg_layout layout;
} ot_dg_target;

/* Nodes that run as one. */
typedef struct ot_dg_group {
    /* [n_nodes] in the order in which they compute; all but the first are element-wise
     * (ot_dg_is_element) */
    const ot_node *const *nodes;
    uint32_t n_nodes;
    /* by value id: dtype, dims, strides of what nodes read and make; data: contents of constants
     * (dense), else NULL */
    const ot_nd *arrays;
    /* [n_stores] what is stored; everything else that nodes make stays in registers */
    const ot_id *stores;
    uint32_t n_stores;
} ot_dg_group;

/* A constant of groups x maps x depth rewritten as [groups][blocks][depth][block], where a
 * group's last maps are filled up with zeros. */
typedef struct ot_dg_packing {
    uint32_t block;         /* maps side by side; 0: as it is */
    int64_t groups, maps;   /* maps: of a group */
    int64_t map_stride;     /* elements between maps; */
    int64_t depth_dims[2];  /* the depth: its outer and inner extent, as it is written, */
    int64_t depth_steps[2]; /* and elements between neighbours along each */
} ot_dg_packing;

typedef struct ot_dg_arg {
    ot_id value;
    /* value == OT_NONE: contents made for this kernel (dense), to be uploaded */
    const ot_nd *table;
    int64_t first;      /* elements of the value to skip */
    ot_dg_packing pack; /* block != 0: it reads the value (a constant) rewritten so */
    bool written;
} ot_dg_arg;

typedef struct ot_dg_shader {
    const char *text; /* "(args) { ... }"; GLSL: declarations and main */
    size_t n_text;
    /* [n_args] a pointer and a long, the first element, each; before them the table of numbers
     * and its first */
    const ot_dg_arg *args;
    uint32_t n_args;
    const int32_t *numbers; /* [n_numbers] */
    uint32_t n_numbers;
    int64_t items;        /* work-items that have something to do */
    uint32_t group_items; /* of a work-group */
    int64_t shared_bytes; /* of the array "pool" of each work-group; 0: it has none */
    /* CUDA: registers are to leave room for so many on a unit; 0: not said */
    uint32_t groups_on_unit;
    /* of the elements that it reads and of those that it writes, each once, as far as that is
     * known before it runs */
    int64_t bytes;
    double operations;         /* arithmetic, roughly: multiply-adds of products count two */
    double transactions;       /* of memory, predicted (dg_access.c); 0: not analysed */
    double transactions_plain; /* the same without a layout of the device's */
    double transactions_ideal; /* as if every one moved nothing but what is asked */
    bool spreads;
} ot_dg_shader;

typedef struct ot_dg_code {
    const ot_dg_shader *kernels; /* [n] to run one after the other; 0: `why` */
    uint32_t n;
    const char *why; /* the group has no kernel: static or in the arena */
} ot_dg_code;

/* Elements of the packed array. false: more than can be counted. */
bool ot_dg_packed_elems(const ot_dg_packing *p, int64_t *out);
/* Rewrites elements of `size` bytes from `from` into `to`, which has ot_dg_packed_elems of them. */
void ot_dg_pack(const ot_dg_packing *p, size_t size, const void *from, void *to);

/* What stands before the functions of a program: static, or in the arena. NULL: out of memory. */
const char *ot_dg_prelude(const ot_dg_target *t, ot_arena *a);
/* What stands before the name of each function of a program, "__kernel void "; NULL: a program
 * has one, main, and says so itself. */
const char *ot_dg_function_head(const ot_dg_target *t);
/* The group's kernels, in arena a. Fails: OT_E_NOMEM. */
ot_status ot_dg_generate(const ot_dg_group *g, const ot_dg_target *t, ot_arena *a, ot_diag *d,
                         ot_dg_code *out) OT_MUST_USE;
/* Can the node stand behind others in a group, or in a group of its like? By operator and
 * attributes; arrays: as in ot_dg_group. */
bool ot_dg_is_element(const ot_node *n, const ot_nd *arrays);
/* Activations in blocks of channels (dg_blocks.c). Does a group with this head store its results
 * so? arrays: as in ot_dg_group. */
bool ot_dg_makes_blocks(const ot_node *head, const ot_nd *arrays);
/* Does it read input k so; and is that what the head is fastest with? head: of the group that
 * node n is part of, or n itself. */
bool ot_dg_reads_blocks(const ot_node *head, const ot_node *n, uint32_t k, const ot_nd *arrays);
bool ot_dg_wants_blocks(const ot_node *head, uint32_t k);
/* Do blocks of so many channels make fewer transactions than rows, for what loads and stores both?
 */
bool ot_dg_blocks_pay(const ot_dg_layout *l, uint32_t block);
/* May element-wise nodes follow this one in its group? */
bool ot_dg_takes_posts(const ot_node *n);
/* Output `out` of a Slice, Split or Expand as a window of its input 0, which needs no kernel:
 * *view has dims and strides, *first the elements to skip. false: it is none, or not known. */
bool ot_dg_view(const ot_node *n, uint32_t out, const ot_nd *arrays, ot_nd *view, int64_t *first);
/* A value, and how it lies in memory. */
typedef struct ot_dg_array {
    ot_id v;
    const ot_nd *x;
} ot_dg_array;
/* A kernel that copies `from` to `to`: equal dims and types, any strides. */
ot_status ot_dg_copy(const ot_dg_target *t, ot_dg_array from, ot_dg_array to, ot_arena *a,
                     ot_diag *d, ot_dg_code *out) OT_MUST_USE;

#endif
