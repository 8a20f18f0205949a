/* What runs a model, as the planner sees it: one table for each runtime, asked wherever plans
 * depend on who runs them.
 *
 *   target   the machine: capacities, bandwidths, rates        plan/target/
 *   runtime  who uses it: what is merged, moved, copied, held  runtime_onnxruntime.c,
 *            runtime_openvino.c, ...
 *
 * Nothing outside this folder tells runtimes apart by name: the code asks a field or a function,
 * each of one meaning. A new runtime is one file with its table and one row in runtime.c;
 * docs/runtimes.md says where the numbers come from.
 *
 * Factors are pure numbers, times are seconds, sizes are bytes.
 */
#ifndef OT_MACHINE_RUNTIME_RUNTIME_H
#define OT_MACHINE_RUNTIME_RUNTIME_H

#include "fusion/fusion.h"
#include "form.h"

#include "ops/ops.h"

/* How tiles reach the operators. */
typedef enum ot_motion {
    /* operators of the model copy windows out and reassemble pieces, one after the other */
    OT_MOTION_COPIED,
    /* transfers in and out of a scratchpad, beside the compute where the target double-buffers */
    OT_MOTION_DMA,
    /* windows are views, pieces are written in place; the cores share out tiles, each with a fast
     * memory of its own */
    OT_MOTION_VIEWS
} ot_motion;

/* Scratch of a transposed convolution. */
typedef enum ot_transposed {
    OT_TRANSPOSED_PLAIN, /* none */
    /* a matrix product into a column buffer for each sample, which is then summed into place */
    OT_TRANSPOSED_COLUMNS,
    /* a convolution for each phase of the stride, into an array of the result's size that is then
     * interleaved */
    OT_TRANSPOSED_PHASES
} ot_transposed;

/* Whence a matrix product packs a second factor that is an activation, anew in each tile. */
typedef enum ot_packing {
    OT_PACK_NONE,
    OT_PACK_SLOW, /* slow memory */
    OT_PACK_LEVEL /* the level it fits in */
} ot_packing;

/* An operator whose implementation is far from the rate of its class. */
typedef struct ot_op_factor {
    ot_op op;
    const char *mode; /* of attribute mode; NULL: any. The first row that holds counts */
    double factor;    /* times as long */
} ot_op_factor;

/* Convolutions that read few channels. */
typedef struct ot_few_channels {
    int64_t below; /* input channels of a group */
    double part;   /* of the rate that is reached */
} ot_few_channels;

/* What an implementation holds besides its operands and results. */
typedef enum ot_scratch_kind {
    OT_SCRATCH_VALUES, /* as many values of its result's size, until it is done */
    /* as many of what a standard function that is inlined makes: they are values of the graph */
    OT_SCRATCH_INLINED,
    /* of Where: each branch as far as the condition selects it, until they are merged */
    OT_SCRATCH_SELECTED
} ot_scratch_kind;

typedef struct ot_op_memory {
    ot_op op;
    ot_scratch_kind kind;
    uint32_t values;
} ot_op_memory;

/* Part of a convolution's time by which it is longer where its weights are not packed. */
typedef struct ot_unpacked_price {
    double pointwise, windows; /* windows of one element, of more; 0: they are always packed */
    double narrow;             /* in the place of windows, of fewer than 64 channels on a side */
    double pixels;             /* added: so many pixels over those of the result */
} ot_unpacked_price;

typedef struct ot_conv_habits {
    /* implementations compute output channels in blocks of so many, padding included; 0: no
     * blocks */
    int64_t block;
    bool blocks_input; /* input channels likewise, where no row of `few` holds */
    const ot_few_channels *few;
    uint32_t n_few;
    ot_transposed transposed;
    double transposed_part; /* of rate_conv that a transposed convolution reaches */
    /* of the rate of float32, on 8-bit tensors that are dequantized there; 0: there are no
     * such */
    double bytes_part;
    bool winograd; /* 3x3 convolutions may take Winograd's algorithm (winograd_cost.c) */
    /* of the rate of Winograd's products that a direct one reaches, where the target does not
     * tell */
    double direct_part;
} ot_conv_habits;

/* A layout of blocks of channels [N, C/b, H, W, b] besides the plain one. */
typedef struct ot_block_habits {
    bool has_blocks;
    /* [n_makes] operators whose result is blocked whatever they read; they read blocked tensors
     * as they are */
    const ot_op *makes;
    uint32_t n_makes;
    const ot_op *keeps; /* [n_keeps] hand blocks on when all they read is blocked */
    uint32_t n_keeps;
    bool chains_keep; /* so does every element-wise operator */
    int64_t least;    /* channels of an input that is blocked at all */
    /* bytes moved per byte of a tensor that changes into blocks, and back; */
    double into, out_of;
    /* these take as long in a cache: counted at the rate of slow memory */
    bool steady;
    /* bytes that a node holds of the other layout, per byte that it moves so */
    double copies;
    double border_into, border_out_of; /* where a region's border makes it plain */
    double crop;                       /* bytes moved per byte of a value cropped inside a region */
    double crop_blocked;               /* of a blocked one that is read as such */
    bool crop_readers;                 /* crop_blocked only where every reader takes blocks */
} ot_block_habits;

/* What it takes to start something, in seconds. */
typedef struct ot_overheads {
    double node;   /* each node that is executed */
    double loop;   /* each iteration of a Loop or Scan, besides its nodes */
    double region; /* each execution of a tiled region */
} ot_overheads;

/* What an output form takes besides the region's own nodes, where tiles are copied. */
typedef struct ot_form_price {
    bool copies;  /* windows are copied out */
    double nodes; /* operators beside the region's, for each window of a tile */
    bool loops;   /* a step of a Loop or Scan for each tile */
    /* bytes moved per byte of output to put pieces together, where these follow each other in
     * memory; */
    double reassemble;
    double scattered; /* where they do not */
    /* windows are cut, pieces put together in blocks: neither changes layout at the region's
     * border */
    bool joins_blocks;
    /* added where windows of several dimensions overlap: border tiles come by themselves */
    double cropped;
    /* bytes moved per byte of the windows of all tiles besides, to gather them ahead */
    double windows;
    /* Memory that a process takes while the form reassembles. */
    double inputs;    /* copies of the windows that tiles read, all tiles */
    bool inputs_stay; /* they are there as long as the model runs */
    /* times that the region's operators are written; 0: once for each tile */
    double written;
    double outputs;           /* copies of the outputs, where pieces follow each other in memory; */
    double outputs_scattered; /* where they do not */
    double outputs_grid;      /* in several dimensions */
    double tiles_grid;        /* working sets besides, in several dimensions */
    double tiles;             /* working sets besides */
    /* one more for each so many operators of the region where tiles differ; 0: none */
    uint32_t tiles_chain;
} ot_form_price;

/* Least gains in memory: the part of what a process of the untiled model grows by that a plan may
 * take at the most to be preferred. They are as far from 1 as predictions are off for a runtime.
 * Set where growth is simulated (ot_runtime_simulates). The first row that holds counts. */
typedef struct ot_runtime_margins {
    double wins_half;  /* graphs that compute in half precision */
    double wins_bytes; /* graphs of 8-bit integers */
    double wins_norms; /* graphs with an InstanceNormalization or GroupNormalization */
    double wins;       /* any other graph */
    /* the same graph decomposed or rematerialised, besides the row that holds for it */
    double wins_decomposed;
} ot_runtime_margins;

/* Where moves_tiles: an array stays on the host when two of its tiles take no more than that
 * part of it, and windows of an input, all together, move no more than so many times all of it. */
#define OT_STREAM_PART_MOST  0.5
#define OT_STREAM_MOVES_MOST 2.0

typedef struct ot_runtime {
    const char *name;  /* in target files and messages */
    const char *title; /* "Tiles run in ..." of reports */
    /* what it is, one line, where it can be asked for by --runtime; NULL: it follows from the
     * target alone */
    const char *summary;
    /* Asked for by name, it gives the engine's form to whatever runs that on the target
     * (ot_runtime_emitting); else it takes the place of the target's own runtime. */
    bool gives_form;
    /* OT_BY_... of quirks.h: whose behaviour the table of quirks speaks of; several: any of them
     * may run it; 0: it has none that plans depend on */
    uint32_t bit;

    /* ---- what runs as one (fusion/fusion.h) ---- */
    const ot_group_rules *merges; /* which nodes join a group; NULL: there are none */
    /* A group is one pass over memory: its nodes still compute, what only they read is not
     * stored, and no region cuts through it. Else what joins a convolution costs nothing of its
     * own. */
    bool one_pass;
    /* DequantizeLinear -> operator -> QuantizeLinear runs on integers whenever it finds the
     * three together: a region that begins or ends inside would leave float operators, with
     * other results. */
    bool int8_groups;
    /* and the float values in between take the bytes of integers (ot_value_beside_quantizer) */
    bool int8_width;

    /* ---- arithmetic ---- */
    const ot_op_factor *slow; /* [n_slow] */
    uint32_t n_slow;
    ot_conv_habits conv;
    /* numbers of 16 bits that implementations of float32 widen or round, against rate_elem; 0: that
     * takes no time */
    double half_part;
    /* part of the shorter of compute and memory time that the longer one does not hide */
    double overlap;

    /* ---- movement ---- */
    ot_block_habits blocks;
    ot_packing packing;
    /* bytes moved at the rate of slow memory per byte of K or V, for each block of panels of
     * queries */
    double attention_pack;
    double run_seconds; /* for each contiguous run of windows that are cut short */
    /* for each number of a window cut along the last axis, where loops gather by index (before
     * opset 10) */
    double gather_seconds;
    /* elements of each such row: registers that are filled in part; 0: not counted */
    int64_t row_loss;
    bool fills_granules; /* short runs fill their last granule in part: half of it on average */
    /* part of the time to fetch constants that fit the middle level which implementations do not
     * hide */
    double weights_seen;
    /* where the target does not say them of this runtime (target_runtime.c); NULL: a launch takes
     * what the device takes, and its target says that. Runtimes that share them start operators
     * alike: what a target says of one holds for the other */
    const ot_overheads *overheads;

    /* ---- forms ---- */
    unsigned forms;  /* bit set of 1 << ot_form: those that it accepts */
    unsigned cannot; /* bit set of OT_NEEDS_... (form.h): what it lacks or gets wrong */
    /* tiles of a region that may be written out one by one; 0: as many as the planner writes
     * anyway */
    uint32_t written_most;
    ot_motion motion;
    const ot_form_price *price; /* [OT_FORM_COUNT]; of the accepted forms */
    /* a Scan reads slices of the outer tensors where they lie */
    bool scan_in_place;
    /* a Scan in a Scan's body writes into the slice that the outer one is at
     * (transform/nested_scan.c) */
    bool nests_scans;
    /* dynamic dimensions may stay dynamic: it takes loops whose trip counts, windows that are
     * computed when the model runs (transform/dynamic_form.c) */
    bool keeps_dynamic;

    /* bodies read weights of the top graph by name; else they hold them, and the runtime those
     * twice */
    bool outer_weights;
    /* weights in a file beside the model are mapped, and then bodies hold references to them:
     * nothing of the model's file is copied while it is loaded */
    bool maps_weights;
    /* Tiles that are written out are cut by Slices that name a second axis, whole: ONNX Runtime
     * makes one Split of Slices that share out a tensor along one, and all pieces live from then
     * on. */
    bool slices_apart;
    /* form loop: border tiles, too, are steps of a Loop; else they are written out, which saves
     * bodies */
    bool looped_borders;
    /* half precision is computed in float32: what is tiled is written so (transform/widen.c) */
    bool widens;
    /* blocked values that regions read get a view of their own: else chance says when their
     * layout changes */
    bool plain_views;
    /* biases, slopes and factors are merged only where no other operator reads them: tiles that
     * are written out have one each */
    bool own_biases;
    /* functions that it has no implementation of become nodes whose names it gives twice where
     * bodies have them: there they are written out before */
    bool inlines_functions;

    /* ---- memory ---- */
    /* How its process grows, as alloc_sim/ simulates it; neither: not known. */
    bool chunk_arena; /* chunks of an arena, a block for the pattern of later runs */
    /* one block for all values, bodies of loops included, placed before it runs */
    bool one_block;
    /* the project's engine on a device: activations in one arena, inputs and results among them */
    bool device_arena;
    const char *growth_title; /* what that is, in words; NULL: what a process grows by */
    const char *holder;       /* with it: who holds so much, and what that is in a sentence */
    const char *growth_note;
    /* a BatchNormalization is folded into each convolution that is written: plans for less
     * memory fold it before */
    bool folds_norms;
    /* weights that are only known when the model runs are packed then, in memory that values
     * share, and so long it takes for each byte and reader; 0: it does not do so */
    double deferred_seconds;
    /* weights in a file beside the model that the runtime does not know are read there */
    ot_unpacked_price unpacked;
    /* it maps weights in such a file and packs them one after the other: large ones are written as
     * pieces of so many bytes; 0: they are not */
    int64_t piece_bytes;
    /* a matrix product in a loop of a branch packs the weight that it captures anew each time,
     * which takes as long as so many rows; 0: it does not */
    double captured_rows;
    /* such convolutions hold the columns of their input where the result has fewer pixels than
     * channels */
    bool expands_columns;
    /* What a process holds besides values and constants: for each operator that is written, for
     * each Loop or Scan. */
    int64_t node_bytes, loop_bytes;
    /* graph outputs lie in the caller's memory, and a merged group holds only what others read */
    bool own_outputs;
    /* Graph inputs and results are on the host: tiles of those that loops alone touch move
     * beside implementations, the others move whole. */
    bool moves_tiles;
    /* operators that may overwrite an equally large input that dies there (ops.def) do so */
    bool in_place;
    /* [n_overwriters] the implementations that do, where its process is simulated; NULL: all of
     * these */
    const ot_op *overwriters;
    uint32_t n_overwriters;
    const ot_op_memory *scratch; /* [n_scratch] those that hold more than operands and results */
    uint32_t n_scratch;

    /* ---- how far the planner goes for it ---- */
    double recompute;        /* times that a tiling may compute a node, summed over its tiles */
    double recompute_forced; /* with --force */
    /* times the predicted time of a tiled region, before that counts as a gain */
    double doubt;
    double short_rows; /* the same where rows are cut short */
    /* part of the model's time within which less memory is preferred; 0: time alone decides */
    double about;
    ot_runtime_margins margins;
} ot_runtime;

/* ---- the runtimes ---- */

extern const ot_runtime ot_runtime_onnxruntime; /* ONNX Runtime on a CPU */
/* the same where vectors hold 8 floats: in no list, see ot_runtime_with_lanes */
extern const ot_runtime ot_runtime_onnxruntime_8;
extern const ot_runtime ot_runtime_engine;        /* the project's engine on a cached CPU */
extern const ot_runtime ot_runtime_engine_device; /* the same on a device */
extern const ot_runtime ot_runtime_openvino;      /* OpenVINO on a CPU */
/* the same where vectors hold 8 floats, as above */
extern const ot_runtime ot_runtime_openvino_8;
/* runtimes on CPUs that take Loop, and neither Scan nor sequences */
extern const ot_runtime ot_runtime_loop;
extern const ot_runtime ot_runtime_portable; /* any runtime on a CPU */
/* Accelerators. Without a suffix: scratchpads with DMA. _plain: merges no nodes. _while: given
 * the engine's form (--emit engine). */
extern const ot_runtime ot_runtime_device, ot_runtime_device_plain, ot_runtime_device_while,
    ot_runtime_device_while_plain;
extern const ot_runtime ot_runtime_gpu, ot_runtime_gpu_plain; /* with a hardware cache */

/* All of them. */
#define OT_RUNTIMES 12
extern const ot_runtime *const ot_runtimes[OT_RUNTIMES];
/* By name; NULL: there is none. */
const ot_runtime *ot_runtime_named(const char *name);
/* By name, of those that --runtime takes; NULL: it is none of them, and `names` (size > 0) lists
 * them with commas. */
const ot_runtime *ot_runtime_asked(const char *name, char *names, size_t size);
/* Names and what they are, one a line: those that --runtime takes. Fails: OT_E_SYSTEM. */
ot_status ot_runtime_list(FILE *f) OT_MUST_USE;
/* What a target file means that names none: by fast memory (a cache or a scratchpad) and
 * attribute `fuses`. */
const ot_runtime *ot_runtime_of(bool cache, bool fuses);
/* The table of r on a CPU whose vectors hold so many floats (ot_cpu_lanes): blocks of channels
 * are as wide. r where it has no other. */
const ot_runtime *ot_runtime_with_lanes(const ot_runtime *r, uint32_t lanes);
/* What runs the engine's form where `r` runs standard ONNX, on that kind of fast memory. */
const ot_runtime *ot_runtime_emitting(const ot_runtime *r, bool cache);

/* ---- questions ---- */

static inline bool ot_runtime_fuses(const ot_runtime *r) { return r->merges != NULL; }
static inline bool ot_runtime_takes(const ot_runtime *r, ot_form f)
{
    return f != OT_FORM_NONE && (r->forms >> f & 1u) != 0;
}
/* It runs the engine's operators: a body for each class of alike tiles, reductions in parts. */
static inline bool ot_runtime_in_classes(const ot_runtime *r)
{
    return ot_runtime_takes(r, OT_FORM_WHILE);
}
/* So many tiles of a region may be written out one by one. */
static inline bool ot_runtime_writes_out(const ot_runtime *r, double tiles)
{
    return r->written_most == 0 || tiles <= r->written_most;
}
/* It drives a fast memory of that kind: transfers fill scratchpads, the others rely on a cache. */
static inline bool ot_runtime_drives(const ot_runtime *r, bool cache)
{
    return (r->motion == OT_MOTION_DMA) != cache;
}
/* There is one form only besides streams: no other can be asked for. */
static inline bool ot_runtime_one_form(const ot_runtime *r)
{
    const uint32_t tiles = r->forms & ~(1u << OT_FORM_STREAM);
    return (tiles & (tiles - 1)) == 0;
}
/* Windows of cut inputs are brought into a tile in this form; else it reads them where they lie. */
static inline bool ot_runtime_brings_inputs(const ot_runtime *r, ot_form f)
{
    return !(f == OT_FORM_SCAN && r->scan_in_place);
}
/* How many times as long the node takes as the rate of its class says. */
double ot_runtime_slowness(const ot_runtime *r, const ot_node *n);
/* Part of the rate of convolutions that one of so many output channels, and input channels for
 * each group, reaches; few: the target's factor on the parts of few input channels
 * (ot_target.conv_few). */
double ot_runtime_conv_part(const ot_runtime *r, int64_t out, int64_t in, double few);
/* Part of so many channels that is not padding of the implementations' blocks. */
double ot_runtime_block_fill(const ot_runtime *r, int64_t channels);
/* Its result is blocked whatever it reads, and it reads blocks. */
bool ot_runtime_makes_blocks(const ot_runtime *r, const ot_node *n);
/* It hands blocks on. */
bool ot_runtime_keeps_blocks(const ot_runtime *r, const ot_node *n);
/* What its process grows by can be simulated (alloc_sim/). */
static inline bool ot_runtime_grows(const ot_runtime *r) { return r->chunk_arena || r->one_block; }
/* It hands pieces on in sequences, which tiles of dynamic dimensions are written with. */
static inline bool ot_runtime_sequences(const ot_runtime *r)
{
    return !ot_runtime_in_classes(r) && (r->cannot & OT_NEEDS_SEQUENCE) == 0;
}
/* What it takes for values can be simulated, be that a process's memory or a device's. */
static inline bool ot_runtime_simulates(const ot_runtime *r)
{
    return ot_runtime_grows(r) || r->device_arena;
}
/* Every value has its place before the model runs. */
static inline bool ot_runtime_places_all(const ot_runtime *r)
{
    return r->one_block || r->device_arena;
}
/* It may write its result over an input of the same size that dies there: as plans count, which
 * tell apart neither implementations nor what is replaced by one of them. */
bool ot_runtime_in_place(const ot_runtime *r, const ot_node *n);
/* Its implementation does so with input `in`. */
bool ot_runtime_overwrites(const ot_runtime *r, const ot_node *n, uint32_t in);
/* What its implementation holds besides operands and results; NULL: nothing. */
const ot_op_memory *ot_runtime_scratch(const ot_runtime *r, const ot_node *n);

#endif
