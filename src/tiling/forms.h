/* The forms that a tiled region can be written in: which of its tiles look alike, what that
 * allows, and where pieces lie in memory.
 *
 *   dim 0: 0       A |    B    | C  peeled, loop, prescan   one run of alike tiles, the rest single
 *          1,2,3   D |   loop  | E
 *          4       F |    G    | H  scan      one run of all tiles, nothing copied
 *
 *   stream         stream.h
 *
 *   legality.c     windows and runs of a form, and whether it is possible
 *   form_memo.c    the same of regions that were looked at before
 *   scan_layout.c  when stacked tiles are the value itself in memory
 *   reassemble_types.c element types that its operators take
 *   captures.c     what a loop's body holds of its own, what it captures, and what it must not
 *   needs.c        what a form asks of who runs it
 */
#ifndef OT_TILING_FORMS_H
#define OT_TILING_FORMS_H

#include "region.h"

/* Tiles [first, first+count) of one dimension, written in one way. */
typedef struct ot_tile_run {
    uint32_t first, count;
} ot_tile_run;

typedef struct ot_dim_runs {
    /* windows: as many as tiles; form stream: as steps, which may be fewer */
    uint32_t n;
    ot_tile_windows *tiles; /* [n]; form while: sorted by class, not by place */
    uint32_t *tile;         /* [n] form while: number of each of these */
    ot_tile_run *runs;      /* [n_runs] in order, covering all tiles */
    uint32_t n_runs;
} ot_dim_runs;

/* The tiles of a region, sorted as a form wants them. g, r, arena: set by the caller, borrowed. */
typedef struct ot_form_tiles {
    const ot_graph *g;
    const ot_region *r;
    ot_arena *arena;
    ot_dim_runs dims[OT_DIMS_MAX];
} ot_form_tiles;

static inline bool ot_win_empty(ot_win a) { return a.lo >= a.hi; }
static inline int64_t ot_win_len(ot_win a) { return a.hi - a.lo; }

/* ---- legality.c ---- */

/* Compute windows and runs of t->r in form f into t->dims. *legal false (with *why) when the
 * form is not possible. Fails: OT_E_NOMEM. */
ot_status ot_form_prepare(ot_form_tiles *t, ot_form f, bool *legal, ot_why *why) OT_MUST_USE;

/* ---- form_memo.c ---- */

/* Prepared tiles of regions of one graph, and of copies of it: some MB at most. */
typedef struct ot_form_memo ot_form_memo;
ot_form_memo *ot_form_memo_new(ot_arena *a); /* NULL when memory ran out */
void ot_form_memo_free(ot_form_memo *m);     /* accepts NULL */
/* Another set is going to be asked for; what was given is given no more. Accepts NULL. */
void ot_form_memo_next(ot_form_memo *m);
/* As ot_form_prepare; m, unless it is NULL, is asked first, and what it does not know is put in.
 * t->dims may be m's, and stay as they are, until the next set. Fails: OT_E_NOMEM. */
ot_status ot_form_recall(ot_form_memo *m, ot_form_tiles *t, ot_form f, bool *legal,
                         ot_why *why) OT_MUST_USE;

/* ---- legality.c ---- */

/* Whether tiles (steps) with windows a and b of dimension d look alike: the same operators, the
 * same shapes, everything at the same place in what is there. scratch: any arena. Fails:
 * OT_E_NOMEM. */
ot_status ot_tiles_alike(const ot_form_tiles *t, uint32_t d, const ot_tile_windows *a,
                         const ot_tile_windows *b, ot_arena *scratch, bool *same) OT_MUST_USE;
/* The same as far as windows show it: attributes of operators may differ. */
bool ot_windows_alike(const ot_form_tiles *t, uint32_t d, const ot_tile_windows *a,
                      const ot_tile_windows *b);
/* kinds of tiles of one region in form while, each with a body of its own */
#define OT_CLASSES_MAX 64
/* Whether region r can be written in form f (r->form is not looked at) for somebody who lacks
 * what is set in `cannot` (OT_NEEDS_...); if not, *why says what is in the way. Requires SHAPES;
 * changes nothing. Fails: OT_E_NOMEM. */
ot_status ot_form_legal(const ot_graph *g, const ot_region *r, ot_form f, unsigned cannot,
                        bool *legal, ot_why *why) OT_MUST_USE;
/* The same for somebody who lacks nothing, with tiles as of ot_form_recall. */
ot_status ot_form_recall_legal(ot_form_memo *m, const ot_graph *g, const ot_region *r, ot_form f,
                               bool *legal, ot_why *why) OT_MUST_USE;
/* Whether the region's tiles can be collected in sequences: one dimension, opset 13 or newer,
 * types that sequences take. */
bool ot_sequence_fits(const ot_graph *g, const ot_region *r);

/* ---- scan_layout.c ---- */

#define OT_SCAN_SINCE 9 /* opset 8's Scan has a batch axis */

/* Shape of region value v as a tile holds it (made windows); of its piece. */
void ot_made_dims(const ot_graph *g, const ot_region *r, const ot_tile_windows *const *win,
                  uint32_t v, int64_t *dims);
void ot_piece_dims(const ot_graph *g, const ot_region *r, const ot_tile_windows *const *win,
                   uint32_t v, int64_t *dims);
/* A value's tile shape repeated over a block of count[d] tiles, [counts > 1 ..., tile dims ...],
 * against the value's own layout [..., count, tile dim, ...]. */
typedef struct ot_reassembly {
    uint32_t n;
    int64_t split[OT_RANK_MAX]; /* [n] the first */
    int64_t perm[OT_RANK_MAX];  /* [n] position in the first of each entry of the second */
    int64_t whole[OT_RANK_MAX]; /* [rank] the block's shape */
} ot_reassembly;
/* Of region value v, whose tiles have dims `tile`. Returns whether the two are the same in
 * memory, so that a Reshape alone restores the value. */
bool ot_reassemble_layout(const ot_graph *g, const ot_region *r, const uint32_t *count, uint32_t v,
                          const int64_t *tile, ot_reassembly *out);
/* Whether region input v can be handed to a Scan over the tiles [first, first + count) in slices
 * of its own memory. */
bool ot_scan_sliced(const ot_form_tiles *t, const uint32_t *first, const uint32_t *count,
                    uint32_t v);
/* Whether form scan pays for this region: results are written in place and some input is read in
 * place. */
bool ot_scan_legal(const ot_form_tiles *t, ot_why *why);
/* Whether a Scan over windows gathered ahead can do without anything captured. Fails: OT_E_NOMEM.
 */
ot_status ot_prescan_legal(const ot_form_tiles *t, bool *legal, ot_why *why) OT_MUST_USE;

/* ---- captures.c ---- */

/* How a body gets at a value of the enclosing graph. */
typedef enum ot_body_source {
    OT_BODY_INIT,  /* its contents become a constant of the body */
    OT_BODY_KNOWN, /* likewise, from what shape inference knows */
    /* the node that makes it is copied into the body, and what that reads is asked for in turn */
    OT_BODY_COPY,
    OT_BODY_CAPTURE /* read by name */
} ot_body_source;
ot_body_source ot_body_source_of(const ot_graph *g, ot_id v);
/* Whether constants that the region's operators read whole all become the body's own. Fails:
 * OT_E_NOMEM. */
ot_status ot_body_owns_constants(const ot_form_tiles *t, bool *owns) OT_MUST_USE;
/* Whether a loop over this region captures nothing that ONNX Runtime fails on; if it does, *why. */
bool ot_captures_safe(const ot_graph *g, const ot_region *r, ot_why *why);

/* ---- needs.c ---- */

/* Opset from which a Slice takes windows that move; before it, loops gather them by lists of
 * indices. */
#define OT_SLICE_HAS_INPUTS 10
/* From so many numbers of a map on, a sum of one after the other shows in a network's results
 * (quirk LONG_SUM). */
bool ot_is_long_sum(const ot_graph *g, const ot_node *n);

/* What the region asks when it is written in form f, for which t is prepared. Fails: OT_E_NOMEM. */
ot_status ot_form_needs(const ot_form_tiles *t, ot_form f, unsigned *needs) OT_MUST_USE;
/* Why a form is refused that needs these, the lowest bit of them first; OT_WHY_NONE for none. */
ot_why ot_needs_refusal(unsigned lacking);

#endif
