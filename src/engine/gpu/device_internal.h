/* Private to engine/gpu/: a program as a device runs it.
 *
 *   dv_schedule (top graph) --- dv_unit --- dv_schedule (body of a While: one, for all iterations)
 *      |                      |
 *      at[v] --> dv_value     kernels and the values they touch; or a step on the host; or a loop
 *
 * A dv_value is memory, or a window of another's: its first element moves from iteration to
 * iteration where it is a tile's.
 */
#ifndef OT_ENGINE_GPU_DEVICE_INTERNAL_H
#define OT_ENGINE_GPU_DEVICE_INTERNAL_H

#include "device_session.h"

#include "device/transfers.h"
#include "engine/core/session.h"
#include "engine/gpu/shaders/shaders.h"
#include "fusion/graph_view.h"
#include "tiling/lower/device_arena.h"

#define DV_ALIGN 256 /* of values and constants: rows of vectors and cache lines begin with them */

struct dv_schedule;

typedef enum dv_memory { DV_ARENA, DV_WEIGHTS } dv_memory;

typedef struct dv_value dv_value;
struct dv_value {
    /* dims, strides on the device; data: of a constant. dtype OT_DT_UNKNOWN: it lives on the
     * host alone */
    ot_nd nd;
    dv_value *of;         /* whose elements these are; NULL: its own */
    int64_t first;        /* elements of `of` to skip, */
    const int64_t *moves; /* [iterations] and so many more; NULL: none */
    /* where `of` is NULL: */
    const ot_nd *plain;              /* a constant's contents before it was rewritten as */
    ot_dg_packing pack;              /* this; NULL: it was not */
    const struct dv_schedule *owner; /* whose arena it lies in */
    dv_memory memory;
    bool used;     /* kernels touch it: it has memory on the device */
    bool uploaded; /* its contents come from the host: an input, or made there */
    /* it stays in this array of the host, and loops move tiles of it; NULL: it does not */
    ot_slot *host;
    ot_device_memory room; /* in its arena; a tile that moves has two, by turns */
    uint32_t block;        /* of the weights' memory, */
    int64_t offset;        /* and bytes in that */
};

/* What moves between host and device while a loop runs: windows of an input, or tiles of a result.
 */
typedef struct dv_stream {
    ot_slot *host;        /* of the graph: whose array it is, */
    const ot_nd *whole;   /* as it is planned, */
    const char *name;     /* and how it is called */
    bool is_result;       /* else an input */
    dv_value *tile;       /* dense, twice */
    ot_nd window;         /* the tile's dims, the array's strides */
    const int64_t *moves; /* [iterations] elements of the array before each tile; NULL: none */
    int64_t bytes;        /* of a tile */
    /* [bytes] on the host, by turns; NULL: an input's windows have no holes,
     * and the device takes them as they are */
    void *staging[2];
    ot_dev_event moved[2]; /* the last transfer of each turn */
    /* of a result: the iteration whose tile is in staging, or on its way to it; -1: none */
    int64_t waits[2];
} dv_stream;

typedef enum dv_kind {
    DV_NOTHING, /* views, Alloc */
    DV_KERNELS,
    DV_HOST,
    DV_TILES
} dv_kind;

/* An argument of a kernel. */
typedef struct dv_arg {
    dv_value *value;
    int64_t first;        /* elements to skip, */
    const int64_t *moves; /* and so many more in each iteration; NULL: none */
} dv_arg;

typedef struct dv_shader {
    const ot_dg_shader *k;
    const char *name;   /* of its nodes' operators, for profiles */
    dv_arg *args;       /* [k->n_args] */
    uint32_t function;  /* of the session's program */
    int64_t numbers_at; /* 32-bit numbers before its own in the table of all */
} dv_shader;

typedef struct dv_input {
    ot_id v; /* of the graph */
    /* the last unit before the one that reads it first that uses its bytes for something else;
     * OT_NONE: none, it is moved when the run begins */
    uint32_t behind;
} dv_input;

typedef struct dv_unit {
    dv_kind kind;
    ot_step *step; /* of the last node */
    uint32_t n_nodes;
    dv_shader *kernels; /* [n_kernels] */
    uint32_t n_kernels;
    dv_input *inputs; /* [n_inputs] of the graph: read here first */
    uint32_t n_inputs;
    ot_id *sends; /* [n_sends] inputs whose bytes are free behind it */
    uint32_t n_sends;
    bool after_results; /* it uses bytes of a result that left before */
    ot_id *uploads;     /* [n_uploads] of DV_HOST: what it makes for kernels, uploaded after it */
    uint32_t n_uploads;
    /* [n_downloads] before, of DV_HOST: values that the step reads; else after it: results of
     * the graph */
    ot_id *downloads;
    ot_id *from; /* [n_downloads] the dense value that each is read from */
    bool *stays; /* [n_downloads] of results: no later unit uses its bytes; NULL: not a result */
    uint32_t n_downloads;
    struct dv_schedule *body;
    int64_t count; /* iterations */
} dv_unit;

/* Who had the places of a turn last. */
typedef struct dv_turn {
    ot_dev_event loaded;   /* the windows are there */
    ot_dev_event computed; /* kernels have read the windows and made the tiles */
    ot_dev_event stored;   /* tiles have left */
} dv_turn;

typedef struct dv_session dv_session;

/* A block of the device's memory, mapped or not. */
typedef struct dv_mapping {
    ot_dev_map map; /* id 0: it is not */
    char *data;
} dv_mapping;

/* What the next command of the queue of kernels waits for. */
typedef enum dv_waits {
    DV_WAITS_LOADED, /* windows of a loop */
    DV_WAITS_STORED, /* tiles of a loop have left */
    DV_WAITS_UP,     /* inputs, and what the host made */
    DV_WAITS_DOWN,   /* results whose bytes it uses have left */
    DV_WAITS
} dv_waits;

typedef struct dv_schedule {
    dv_session *s;
    ot_schedule *p;
    struct dv_schedule *outer; /* NULL: top */
    dv_value **at;             /* [n_ids] */
    ot_nd *arrays;             /* [n_ids] what at[v]->nd says */
    uint32_t n_ids, cap_ids;
    ot_node_list list; /* places: steps; without those that are not needed */
    bool *made;        /* [steps] its unit is there */
    /* by value: the buffer that a Deslice puts it into, at once; OT_NONE */
    ot_id *placed_in;
    dv_unit *units; /* [n_units] */
    size_t n_units, cap_units;
    dv_stream *streams; /* [n_streams] of a body */
    size_t n_streams, cap_streams;
    bool on_host;          /* some unit runs on the host */
    ot_device_arena arena; /* of its values */
} dv_schedule;

struct dv_session {
    ot_session *s;
    ot_device *dev;
    ot_arena *a;
    dv_schedule *top;
    dv_value **constants; /* [n_constants] used by kernels, in the weights' memory, */
    size_t n_constants, cap_constants;
    dv_value **packed; /* [n_packed] and those of them that are rewritten */
    size_t n_packed, cap_packed;
    const ot_dg_shader **functions; /* [n_functions] kernels of different texts */
    size_t n_functions, cap_functions;
    int32_t *numbers; /* [n_numbers] of all kernels */
    size_t n_numbers, cap_numbers;
    int64_t numbers_offset; /* in the last block of weights */
    /* [n_blocks] of the weights' memory, as many as it takes where one buffer may not be as
     * large */
    int64_t *block_bytes;
    uint32_t n_blocks, cap_blocks;
    int64_t weight_bytes; /* of all blocks */
    ot_dev_heap *heap;    /* that the device's memory is taken from, as much as is asked */
    /* [n_blocks] and [top->arena.n_blocks]; NULL: not yet; buffer.id 0: nothing lies there */
    ot_dev_slice *weights, *arena;
    ot_dev_queue queue;         /* of kernels */
    ot_dev_mover *mover;        /* NULL: nothing has moved yet but through maps */
    ot_dev_queue loads, stores; /* the mover's, of uploads and downloads */
    ot_dev_ticket *tickets;     /* [values of the top graph] of inputs that move */
    dv_mapping *windows;        /* [n_windows] blocks of weights, then of the arena */
    uint32_t n_windows;
    bool maps;     /* they are used */
    bool idle;     /* no command runs that the host would have to wait for */
    bool streams;  /* tiles move */
    bool poisons;  /* the arena is filled before a run */
    void **pinned; /* [n_pinned] memory of the host, until the session ends */
    size_t n_pinned, cap_pinned;
    ot_dev_event last, stored; /* the last command of `queue`, the last download */
    ot_dev_event waits[DV_WAITS];
    dv_turn turns[2];         /* of the loop that runs: even and odd iterations */
    ot_dg_target target;      /* of the kernels' text */
    ot_dev_program *programs; /* [n_programs] one of all functions, or one of each */
    size_t n_programs;
    ot_device_fallback *fallbacks; /* [n] */
    size_t n_fallbacks, cap_fallbacks;
    ot_device_figures figures;
};

/* ---- device_values.c ---- */

/* Values of g as the device has them; which steps are needed, who makes and who reads what. */
ot_status dv_describe(dv_schedule *q) OT_MUST_USE;
/* A further value of the program, dense, like nd. */
ot_status dv_add(dv_schedule *q, const ot_nd *nd, ot_id *out) OT_MUST_USE;
/* v is `value` from now on. */
void dv_set(dv_schedule *q, ot_id v, dv_value *value);
/* Value v becomes a window of value `of`. */
ot_status dv_window(dv_schedule *q, ot_id v, dv_value *of, const ot_nd *nd, int64_t first,
                    const int64_t *moves) OT_MUST_USE;
dv_value *dv_root(dv_value *x);
static inline bool dv_known(const dv_schedule *q, ot_id v)
{
    return v != OT_NONE && q->arrays[v].dtype != OT_DT_UNKNOWN;
}

/* ---- device_groups.c ---- */

/* Steps that run as one: *group of each step that is the last of a group (places: steps); n 0:
 * it stands alone or is part of a later one. */
ot_status dv_find_groups(dv_schedule *q, ot_group **out) OT_MUST_USE;

/* ---- device_blocks.c ---- */

/* Before units are made: which values lie in blocks of channels. groups: of dv_find_groups. */
ot_status dv_choose_blocks(dv_schedule *q, const ot_group *groups) OT_MUST_USE;
/* v lies as the model has it: somebody else than kernels makes it. */
void dv_unblock(dv_schedule *q, ot_id v);

/* ---- device_units.c, device_tiles.c ---- */

ot_status dv_make_units(dv_schedule *q) OT_MUST_USE;
/* A unit of kernels. name: in profiles, lives as long as the session; moves: of arguments 0 and
 * 1 of each kernel, or NULL. */
ot_status dv_push_code(dv_schedule *q, ot_step *step, const char *name, uint32_t n_nodes,
                       const ot_dg_code *code, const int64_t *const moves[2]) OT_MUST_USE;
/* v in memory without holes: itself, or a copy that a further unit makes. */
ot_status dv_dense(dv_schedule *q, ot_step *step, ot_id v, ot_id *out) OT_MUST_USE;
/* Alloc, While, Slice, Deslice. */
ot_status dv_tile_unit(dv_schedule *q, ot_step *step) OT_MUST_USE;
/* In a body: results that are made where a Deslice would put them. */
ot_status dv_place_tiles(dv_schedule *q) OT_MUST_USE;
/* v lies where it would without its Deslice. */
ot_status dv_unplace(dv_schedule *q, ot_id v) OT_MUST_USE;
ot_status dv_fall_back(dv_session *s, const ot_node *n, const char *why) OT_MUST_USE;

/* ---- device_streams.c ---- */

/* Before units are made: inputs and results of the top graph that stay on the host (dv_value.host).
 */
ot_status dv_find_streams(dv_schedule *q) OT_MUST_USE;
/* In a body: windows of an input that stays on the host. y: the tile. */
ot_status dv_stream_in(dv_schedule *q, ot_id x, ot_id y, const ot_nd *window,
                       const int64_t *moves) OT_MUST_USE;
/* Does the tile t of a result that stays on the host lie in memory of its own, whole? Else it is
 * copied first. */
bool dv_has_own(const dv_schedule *q, ot_id t);
ot_status dv_stream_out(dv_schedule *q, ot_id t, ot_id y, const ot_nd *window,
                        const int64_t *moves) OT_MUST_USE;

/* ---- device_layout.c ---- */

/* Constant x as kernels read it: packed once for all that want it so. */
ot_status dv_packed_value(dv_session *s, const dv_value *x, const ot_dg_packing *pack,
                          dv_value **out) OT_MUST_USE;
/* Its contents, packed, in `to` of so many bytes. */
void dv_pack_contents(const dv_value *x, void *to);
/* What layouts change, of a kernel. */
void dv_count_layout(dv_session *s, const ot_dg_shader *k);
/* The same, of an activation in blocks of channels. */
void dv_count_blocks(dv_session *s, int64_t bytes);

/* ---- device_plan.c ---- */

/* Offsets of all values in the arena, of constants in the weights' memory. */
ot_status dv_plan(dv_session *s) OT_MUST_USE;

/* ---- device_code.c ---- */

ot_status dv_compile(dv_session *s) OT_MUST_USE;

/* ---- device_run.c ---- */

typedef struct dv_at {
    dv_session *s;
    const dv_schedule *q;
    int64_t i; /* iteration of a body; 0 */
} dv_at;

/* The memory of x in this iteration. */
ot_status dv_slice_of(const dv_at *r, const dv_value *x, ot_dev_slice *out) OT_MUST_USE;
/* The array that the host has of value v of the graph is as the plan says. */
ot_status dv_check_array(dv_session *s, const char *v, const ot_nd *array,
                         const ot_nd *planned) OT_MUST_USE;

/* ---- device_io.c: arrays between host and device ---- */

/* Do maps serve there? */
bool dv_maps(const ot_device_facts *f);
/* Bytes of what is placed behind so many that nobody uses. */
static inline int64_t dv_padding(int64_t bytes)
{
    return ot_ceil_div(bytes, DV_ALIGN) * DV_ALIGN - bytes;
}
/* Maps that no command can use beside; all of them. */
ot_status dv_windows_close(dv_session *s, bool all) OT_MUST_USE;
/* s->mover, loads, stores are there; commands can be given. */
ot_status dv_need_mover(dv_session *s) OT_MUST_USE;
/* Inputs whose bytes nobody has before; those whose bytes are free behind a unit. */
ot_status dv_send_first(dv_session *s) OT_MUST_USE;
ot_status dv_send_behind(const dv_at *r, const dv_unit *u) OT_MUST_USE;
/* The next command waits for what the unit reads, and for who had the bytes that it uses. */
ot_status dv_await_moves(dv_session *s, const dv_unit *u) OT_MUST_USE;
/* What a node on the host made. */
ot_status dv_send_made(const dv_at *r, const dv_unit *u) OT_MUST_USE;
/* Memory of the host for an array like x: the caller's, or the heap's. */
ot_status dv_make_array(dv_session *s, ot_slot *slot, const ot_nd *x) OT_MUST_USE;
/* What a node on the host reads is there. */
ot_status dv_fetch_operands(const dv_at *r, const dv_unit *u) OT_MUST_USE;
/* Results of the unit are on their way; but for those that stay until the run has ended and are
 * there then. */
ot_status dv_fetch_results(const dv_at *r, const dv_unit *u) OT_MUST_USE;
ot_status dv_fetch_last(dv_session *s) OT_MUST_USE;
ot_status dv_send_weights(dv_session *s) OT_MUST_USE;

/* ---- device_moves.c: a loop's streams while it runs ---- */

/* Results have arrays; tile 0 is on its way. */
ot_status dv_moves_begin(const dv_at *r, int64_t count) OT_MUST_USE;
/* Before and after the units of iteration r->i. */
ot_status dv_moves_load(const dv_at *r, int64_t count) OT_MUST_USE;
ot_status dv_moves_store(const dv_at *r) OT_MUST_USE;
/* When all loops have run: the last tiles go into their arrays; or, where something failed,
 * nowhere. */
ot_status dv_moves_end(dv_session *s, bool failed) OT_MUST_USE;

ot_status dv_run(dv_session *s) OT_MUST_USE;
/* The device's error as the session's. */
ot_status dv_told(dv_session *s, ot_status status, const ot_device_error *e);

#endif
