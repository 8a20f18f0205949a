/* Lowering: from one step a node to fused steps on arrays in the layouts that their kernels like. Private to the engine.
 *
 *   steps        Conv  BN  Relu  Sigmoid  Mul  Concat        one a node, as prog.c made them
 *     | fuse
 *   units       [Conv BN Relu] [Sigmoid Mul] [Concat]        lower.c, fuse_*.c
 *     | lay out
 *   steps'      relayout, conv, chain, relayout, Concat      layout.c: versions of values made where somebody needs them
 *
 * A value may exist in several versions at once (a convolution reads it blocked by channel, a Reshape reads it plain); each
 * version has an id of its own from g->n_values on, but the dense plain one, which is the value's own slot: subgraphs
 * and callers find it there.
 */
#ifndef OT_ENGINE_LOWER_H
#define OT_ENGINE_LOWER_H

#include "engine/chain/chain.h"
#include "engine/core/session.h"

typedef enum lw_layout {
    LW_PLAIN = 0,  /* dense, row-major */
    LW_BLOCK,      /* blocked by channel, no holes */
    LW_PLAIN_VIEW, /* a window of a plain array */
    LW_BLOCK_VIEW, /* a window of a blocked array */
    LW_LAYOUTS
} lw_layout;

#define LW_BIT(layout) (1u << (layout))
#define LW_ANY_PLAIN   (LW_BIT(LW_PLAIN) | LW_BIT(LW_PLAIN_VIEW))
#define LW_ANY_BLOCK   (LW_BIT(LW_BLOCK) | LW_BIT(LW_BLOCK_VIEW))

typedef struct lw_value {
    bool is_static;            /* a tensor whose type and dims are known */
    bool pinned;               /* needed as it is in the model: a result, or read by a subgraph */
    const ot_value *x;         /* what the graph (or an enclosing one) says of it */
    ot_slot *slot;             /* the value's own */
    uint32_t maker;            /* unit, or OT_NONE: constant, input, outer */
    uint32_t first, n_readers; /* units that read it: readers[first ..], each once */
    ot_id version[LW_LAYOUTS];
    /* a window of another value (a Slice with constant bounds and steps of 1): `of` from `start` on; OT_NONE */
    ot_id of;
    const int64_t *start; /* [rank] */
} lw_value;

typedef enum lw_kind {
    LW_NODE = 0, /* as it was: dense plain operands */
    LW_CONV,
    LW_DECONV, /* ConvTranspose */
    LW_QCONV,  /* of 8-bit tensors */
    LW_POOL,
    LW_RESIZE,
    LW_ATTENTION,
    LW_CHAIN,
    LW_WINDOW, /* makes nothing: its value is a window of another */
    LW_CONCAT,
    LW_TILES,    /* Alloc and While */
    LW_TILE_IN,  /* onnx_tile.Slice */
    LW_TILE_OUT, /* onnx_tile.Deslice */
    LW_GONE      /* part of another unit */
} lw_kind;

typedef struct lw_unit {
    lw_kind kind;
    ot_step *step;         /* that it began as */
    const ot_node **nodes; /* [n_nodes] in order */
    uint32_t n_nodes;
    const ot_id *in, *out; /* [n_in], [n_out] values */
    uint32_t n_in, n_out;
    void *plan; /* what the kernel wants to know; kinds but LW_NODE */
} lw_unit;

typedef struct lw_pass {
    ot_prog *p;
    ot_arena *a;       /* of the session */
    ot_arena *scratch; /* dies with lowering */
    uint32_t block;    /* channels */
    lw_value *v;       /* [g n_values] */
    lw_unit *units;    /* [n_units] one for each step; fused ones at the place of their last node */
    uint32_t n_units;
    uint32_t *readers;
    ot_slot **ids; /* [n_ids] slots by id */
    size_t n_ids, cap_ids;
    ot_step *steps; /* [n_steps] the result */
    size_t n_steps, cap_steps;
} lw_pass;

/* ---- lower.c ---- */

/* The only unit that reads v, if v is nothing else; OT_NONE. */
uint32_t lw_only_reader(const lw_pass *l, ot_id v);
/* Who reads what, anew: a fuser made units read other values than their nodes do. */
ot_status lw_find_readers(lw_pass *l) OT_MUST_USE;
bool lw_is_f32(const lw_pass *l, ot_id v); /* static, float32, rank <= 8, not empty */
bool lw_same_dims(const lw_pass *l, ot_id a, ot_id b);
/* Contents of a constant float32 value in memory, or NULL. */
const float *lw_const_f32(const lw_pass *l, ot_id v);
/* DequantizeLinear nodes whose results nobody reads any more are gone. Finds readers before and after. */
ot_status lw_drop_dequantized(lw_pass *l) OT_MUST_USE;
/* The DequantizeLinear unit that makes v of 8-bit numbers with one constant scale (ot_chain_quantizer has it); OT_NONE. */
uint32_t lw_dequantizer(const lw_pass *l, ot_id v);
/* A constant of one element. */
bool lw_scalar(const lw_pass *l, ot_id v, float *out);
/* Units `parts` [n] become one at the last of them. */
ot_status lw_merge(lw_pass *l, const uint32_t *parts, uint32_t n, lw_kind kind, const ot_id *in, uint32_t n_in, const ot_id *out,
                   uint32_t n_out, void *plan) OT_MUST_USE;

/* How many threads share a step of so many multiply-adds: waking them up costs some microseconds. */
uint32_t lw_threads(const lw_pass *l, double work);

/* ---- layout.c: writing steps ---- */

/* A version of v that is one of `accept` (LW_BIT), made now if there is none: by a step that changes the layout to dense
 * `otherwise`. *id: what to read. */
ot_status lw_need(lw_pass *l, ot_id v, unsigned accept, lw_layout otherwise, ot_id *id) OT_MUST_USE;
/* Does v exist in this layout, or as a window of what exists so? */
bool lw_has(const lw_pass *l, ot_id v, unsigned layouts);
/* A plain window of that source has no holes. */
bool lw_stays_dense(const ot_nd *window, const ot_nd *source);
/* A new version of v; its id. */
ot_status lw_make(lw_pass *l, ot_id v, lw_layout layout, ot_id *id) OT_MUST_USE;
/* Append a step. ids are copied. */
ot_status lw_push(lw_pass *l, const ot_node *node, ot_kernel_fn run, const void *plan, const ot_id *in, uint32_t n_in,
                  const ot_id *out, uint32_t n_out, ot_step **step) OT_MUST_USE;
/* Results and what subgraphs read: the plain version, too, right after v was made. */
ot_status lw_finish(lw_pass *l, ot_id v) OT_MUST_USE;
/* Write all units. */
ot_status lw_write(lw_pass *l) OT_MUST_USE;

/* ---- one file each: finding units (fuse) and writing them (write) ---- */

ot_status lw_fuse_conv(lw_pass *l) OT_MUST_USE;                /* fuse_conv.c */
ot_status lw_write_conv(lw_pass *l, lw_unit *u) OT_MUST_USE;   /* dnnl_conv.c */
ot_status lw_write_deconv(lw_pass *l, lw_unit *u) OT_MUST_USE; /* deconv.c */
ot_status lw_fuse_qconv(lw_pass *l) OT_MUST_USE;               /* fuse_qconv.c */
ot_status lw_write_qconv(lw_pass *l, lw_unit *u) OT_MUST_USE;
ot_status lw_fuse_int8(lw_pass *l) OT_MUST_USE;  /* fuse_int8.c */
ot_status lw_fuse_qmove(lw_pass *l) OT_MUST_USE; /* fuse_qmove.c */
ot_status lw_fuse_pool(lw_pass *l) OT_MUST_USE;  /* dnnl_pool.c */
ot_status lw_write_pool(lw_pass *l, lw_unit *u) OT_MUST_USE;
ot_status lw_fuse_resize(lw_pass *l) OT_MUST_USE; /* fuse_resize.c */
ot_status lw_write_resize(lw_pass *l, lw_unit *u) OT_MUST_USE;
ot_status lw_fuse_attention(lw_pass *l) OT_MUST_USE; /* fuse_attention.c */
ot_status lw_write_attention(lw_pass *l, lw_unit *u) OT_MUST_USE;
ot_status lw_fuse_product(lw_pass *l) OT_MUST_USE;            /* fuse_product.c */
ot_status lw_fuse_chain(lw_pass *l) OT_MUST_USE;              /* fuse_chain.c */
ot_status lw_write_chain(lw_pass *l, lw_unit *u) OT_MUST_USE; /* run_chain.c */
ot_status lw_find_windows(lw_pass *l) OT_MUST_USE;            /* fuse_move.c */
ot_status lw_fuse_move(lw_pass *l) OT_MUST_USE;
ot_status lw_write_concat(lw_pass *l, lw_unit *u) OT_MUST_USE;
ot_status lw_fuse_tiles(lw_pass *l) OT_MUST_USE; /* tiles.c */
ot_status lw_write_tiles(lw_pass *l, lw_unit *u) OT_MUST_USE;
ot_status lw_write_tile_in(lw_pass *l, lw_unit *u) OT_MUST_USE;
ot_status lw_write_tile_out(lw_pass *l, lw_unit *u) OT_MUST_USE;
/* Where v is to be written when nothing but a Deslice reads it: a window of the buffer, from now on a plain version of v. OT_NONE:
 * there is no such place. */
ot_status lw_tile_place(lw_pass *l, ot_id v, ot_id *place) OT_MUST_USE;

/* ---- product_pack.c ---- */

/* Products that will read a constant in panels: those panels, to be filled later. */
ot_status ot_pack_products(ot_session *s) OT_MUST_USE;
/* Does the step read its input k in panels? */
bool ot_reads_panels(const ot_step *step, uint32_t k);
/* When panels are filled and constants are released: tell the kernels. */
void ot_point_at_panels(ot_session *s);

/* ---- packed weights, shared by all programs of a session ---- */

/* Write packed->data from packed->source, which it may overwrite if it is `own`: it is given back next. */
struct ot_packed;
typedef ot_status (*ot_packed_fill)(ot_session *s, const struct ot_packed *packed, bool own);

typedef struct ot_packed {
    struct ot_packed *next;
    const void *source; /* contents that it was made from */
    uint64_t form;      /* hash of everything else that it depends on */
    void *data;
    void (*free)(void *data);
    ot_packed_fill fill; /* NULL: data holds what it should */
    const void *how;     /* for fill; lives as long as the session */
} ot_packed;

/* What was kept under these keys, or NULL. */
void *ot_packed_find(const ot_session *s, const void *source, uint64_t form);
/* Keep data (owned from now on, also when this fails). */
ot_status ot_packed_keep(ot_session *s, const void *source, uint64_t form, void *data, void (*free)(void *)) OT_MUST_USE;
/* The same for data that is filled when all programs of the session are made (release.c); source is a constant's contents, or
 * what was kept before. */
ot_status ot_packed_later(ot_session *s, const void *source, uint64_t form, void *data, void (*free)(void *), ot_packed_fill fill,
                          const void *how) OT_MUST_USE;

#endif
