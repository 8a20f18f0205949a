/* Lowering: from one step a node to fused steps on arrays in the layouts that their implementations
 * like. Private to the engine.
 *
 *   steps        Conv  BN  Relu  Sigmoid  Mul  Concat    one a node, as schedule.c made them
 *     | fuse
 *   units       [Conv BN Relu] [Sigmoid Mul] [Concat]    lower.c, fuse_*.c
 *     | lay out
 *   steps'      relayout, conv, chain, relayout, Concat  write_units.c; versions of values
 *               (units/units.h) made where somebody
 *                                                        needs them
 */
#ifndef OT_ENGINE_LOWER_LOWER_H
#define OT_ENGINE_LOWER_LOWER_H

#include "engine/cpu/chain/chain.h"
#include "engine/cpu/units/units.h"
#include "fusion/fusion.h"

/* ---- group_view.c ---- */

/* The units as the recogniser of groups sees them, as they are when it asks. */
ot_group_view lw_group_view(const lw_pass *l);

/* ---- lower.c, fuse_chain.c: DequantizeLinear as a part of other units ---- */

/* DequantizeLinear nodes whose results nobody reads any more are gone. Finds readers before and
 * after. */
ot_status lw_drop_dequantized(lw_pass *l) OT_MUST_USE;
/* The DequantizeLinear unit that makes v of 8-bit numbers with one constant scale
 * (ot_chain_quantizer has it); OT_NONE. */
uint32_t lw_dequantizer(const lw_pass *l, ot_id v);

/* ---- write_units.c ---- */

/* Results and what subgraphs read: the plain version, too, right after v was made. */
ot_status lw_finish(lw_pass *l, ot_id v) OT_MUST_USE;
/* Write all units. */
ot_status lw_write(lw_pass *l) OT_MUST_USE;

/* ---- one file each: finding units (fuse) and writing them (write); those of convolutions and
 * pools: conv.h ---- */

ot_status lw_fuse_conv(lw_pass *l) OT_MUST_USE;  /* fuse_conv.c */
ot_status lw_fuse_qconv(lw_pass *l) OT_MUST_USE; /* fuse_qconv.c */
ot_status lw_write_qconv(lw_pass *l, lw_unit *u) OT_MUST_USE;
ot_status lw_fuse_int8(lw_pass *l) OT_MUST_USE;   /* fuse_int8.c */
ot_status lw_fuse_qmove(lw_pass *l) OT_MUST_USE;  /* fuse_qmove.c */
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
ot_status lw_fuse_tiles(lw_pass *l) OT_MUST_USE; /* fuse_tiles.c */
ot_status lw_write_tiles(lw_pass *l, lw_unit *u) OT_MUST_USE;
ot_status lw_write_tile_in(lw_pass *l, lw_unit *u) OT_MUST_USE;
ot_status lw_write_tile_out(lw_pass *l, lw_unit *u) OT_MUST_USE;
/* The implementation of operators of domain onnx_tile before lowering takes them out: it
 * refuses. */
ot_status ot_run_tile_op(ot_call *c);
/* Where v is to be written when nothing but a Deslice reads it: a window of the buffer, from now
 * on a plain version of v. OT_NONE: there is no such place. */
ot_status lw_tile_place(lw_pass *l, ot_id v, ot_id *place) OT_MUST_USE;

/* ---- product_pack.c ---- */

/* Products that will read a constant in panels: those panels, to be filled later. */
ot_status ot_pack_products(ot_session *s) OT_MUST_USE;
/* Does the step read its input k in panels? */
bool ot_reads_panels(const ot_step *step, uint32_t k);
/* When panels are filled and constants are released: tell the implementations. */
void ot_point_at_panels(ot_session *s);

#endif
