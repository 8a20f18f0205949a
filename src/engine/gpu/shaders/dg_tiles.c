/* Products in blocks of shared memory (dg_tiles.h). */
#include "dg_tiles.h"

#include <math.h>

/* ---- what is chosen ---- */

/* A work-group's barrier and what it waits for of a chunk's loads, in the time of a work-item's
 * products, as dg_work counts it. */
#define CHUNK_LATENCY 36000.0
#define PRODUCT       (1 / 3.0) /* the same, of a product at a device's best */
#define LAUNCH_CHUNKS 4         /* what a kernel does beside its sums, in chunks */
#define PLAIN_SLOWER  1.3       /* than dg_work says: of kernels without shared memory */

/* From the largest; chunk: dg_tiles.alone. Each has at least as many work-items as rows, or
 * columns. Fractions and times are of an H200 (docs/devices.md). */
#define MATRIX(of_rows, of_cols, of_tall, of_wide, of_slices, best, of_steps, of_stages, chunk) \
    {                                                                                           \
        .rows = (of_rows), .cols = (of_cols), .tall = (of_tall), .wide = (of_wide),             \
        .slices = (of_slices), .fraction = (best), .steps = (of_steps), .stages = (of_stages),  \
        .alone = (chunk)                                                                        \
    }
#define PLAIN(rows, cols, tall, wide, slices, best) \
    MATRIX(rows, cols, tall, wide, slices, best, 0, 0, 0)
static const dg_tiles SHAPES[] = {
    PLAIN(128, 128, 8, 8, 1, 0.57), PLAIN(64, 128, 8, 8, 1, 0.56), PLAIN(128, 64, 8, 4, 1, 0.52),
    PLAIN(64, 64, 8, 4, 1, 0.51),   PLAIN(32, 128, 4, 8, 1, 0.49), PLAIN(32, 64, 4, 4, 1, 0.44),
    PLAIN(32, 32, 4, 4, 1, 0.40),   PLAIN(64, 64, 8, 4, 2, 0.48),  PLAIN(32, 64, 4, 4, 2, 0.42),
    PLAIN(32, 64, 4, 4, 4, 0.40),   PLAIN(32, 32, 4, 4, 4, 0.36),  PLAIN(32, 32, 4, 4, 8, 0.34),
};
/* The same with matrix instructions: float32, half of that. */
static const dg_tiles MATRICES[] = {
    MATRIX(128, 128, 64, 32, 1, 0.76, 1, 5, 100000), MATRIX(128, 64, 32, 32, 1, 0.64, 1, 5, 60000),
    MATRIX(64, 128, 32, 32, 1, 0.72, 2, 4, 124000),  MATRIX(64, 64, 32, 32, 1, 0.64, 1, 6, 44000),
    MATRIX(64, 64, 32, 32, 1, 0.72, 2, 4, 80000),    MATRIX(128, 64, 32, 32, 2, 0.48, 1, 5, 80000),
    MATRIX(64, 64, 32, 32, 2, 0.48, 1, 5, 56000),    MATRIX(32, 64, 32, 32, 2, 0.48, 1, 6, 48000),
    MATRIX(32, 64, 32, 32, 4, 0.44, 1, 6, 68000),    MATRIX(32, 32, 32, 32, 4, 0.40, 1, 7, 60000),
    MATRIX(32, 32, 32, 32, 8, 0.48, 1, 5, 104000),
};
static const dg_tiles HALVES[] = {
    MATRIX(128, 128, 64, 64, 1, 3.96, 2, 4, 184000),
    MATRIX(128, 128, 64, 32, 1, 3.52, 2, 4, 148000),
    MATRIX(128, 64, 32, 32, 1, 2.60, 2, 4, 108000),
    MATRIX(64, 128, 32, 32, 1, 2.00, 2, 4, 124000),
    MATRIX(64, 64, 32, 32, 1, 2.00, 2, 4, 76000),
    MATRIX(64, 64, 32, 32, 1, 1.48, 1, 6, 48000),
    MATRIX(64, 64, 32, 32, 2, 1.68, 1, 5, 76000),
    MATRIX(32, 64, 32, 32, 4, 0.72, 1, 6, 84000),
    MATRIX(32, 32, 32, 32, 4, 0.80, 1, 7, 88000),
    MATRIX(32, 32, 32, 32, 8, 0.92, 1, 5, 116000),
};

/* Elements between those of one depth and the next in shared memory: banks differ where a
 * work-item's neighbours write below each other. */
static uint32_t pitch(const dg_tiles *t, dg_side side)
{
    return dg_tile_extent(t, side) + (t->deep[side] ? 4 : 0);
}

/* Neighbours in memory of a chunk, and loads that they take. */
static uint32_t row_loads(const dg_tiles *t, dg_side side)
{
    const uint32_t row = t->deep[side] ? dg_tile_words(t) : dg_tile_extent(t, side);
    return t->quads[side] ? row / 4 : row;
}

uint32_t dg_tile_loads(const dg_tiles *t, dg_side side)
{
    return dg_tile_extent(t, side) * dg_tile_words(t) / dg_tile_items(t) / (t->quads[side] ? 4 : 1);
}

int64_t dg_tile_across(const dg_tiles *t, dg_side side, uint32_t n)
{
    return t->deep[side] ? (int64_t)n * dg_tile_items(t) / row_loads(t, side) : 0;
}

int64_t dg_tile_down(const dg_tiles *t, dg_side side, uint32_t n)
{
    return t->deep[side] ? 0 : (int64_t)n * dg_tile_items(t) / row_loads(t, side) * dg_in_word(t);
}

static int64_t groups_of(const dg_tiles *t, const dg_tiled *x)
{
    return ot_ceil_div(x->rows, t->rows) * ot_ceil_div(x->cols, t->cols) * x->times;
}

/* Time, as dg_work has it: units work on chunks one after the other where they are busy; else each
 * waits for what it loads. */
static double work_of(const dg_build *b, const dg_tiles *t, const dg_tiled *x)
{
    const double units = (double)b->target->layout.busy / OT_DG_UNIT_ITEMS,
                 groups = (double)groups_of(t, x);
    const double chunk = PRODUCT * t->rows * t->cols * dg_tile_depth(t) / t->fraction;
    return (double)(dg_tile_chunks(t, x) + LAUNCH_CHUNKS) *
               fmax(groups * chunk, units * (t->steps ? t->alone : CHUNK_LATENCY + chunk)) +
           (t->steps ? units * x->begins : 0);
}

static int64_t shared_bytes(const dg_tiles *t)
{
    int64_t words = 2 * dg_tile_depth(t) * (int64_t)(pitch(t, DG_ROWS) + pitch(t, DG_COLS));
    if (t->steps)
        words = (int64_t)t->stages * (dg_matrix_words(t, DG_ROWS) + dg_matrix_words(t, DG_COLS));
    if (t->slices > 1) words += (int64_t)t->rows * t->cols;
    return words * (int64_t)sizeof(float);
}

/* What stands in the text of a kernel is no more; matrices' is asked for at the launch. */
#define SHARED_IN_TEXT (48 << 10)

static int64_t shared_most(const ot_dg_target *d, const dg_tiles *t)
{
    return t->steps ? d->shared_bytes : ot_min(d->shared_bytes, SHARED_IN_TEXT);
}

/* How words of operands come into shared memory. */
static void set_words(dg_tiles *t, const dg_tiled *x)
{
    t->in_word = x->dtype == OT_F32 ? 1 : 2;
    for (int k = DG_ROWS; k <= DG_COLS; k++) {
        const dg_side side = (dg_side)k;
        if (t->in_word > 1 && x->deep_halves[k]) t->deep[k] = true;
        const uint32_t quads = dg_tile_extent(t, side) * dg_tile_words(t) / 4;
        t->quads[k] = x->quads[k] && (t->in_word == 1 || t->deep[k]) &&
                      quads % dg_tile_items(t) == 0;
        t->direct[k] = t->in_word == 1 || t->quads[k];
    }
}

/* The best of n shapes, if it is better than *best. */
static bool choose_of(const dg_build *b, const dg_tiled *x, const dg_tiles *shapes, size_t n,
                      double *best, dg_tiles *t)
{
    const bool deep[2] = {t->deep[0], t->deep[1]};
    bool found = false;
    for (size_t k = 0; k < n; k++) {
        dg_tiles s = shapes[k];
        memcpy(s.deep, deep, sizeof deep);
        s.dtype = x->dtype;
        if (s.steps) set_words(&s, x);
        const double work = work_of(b, &s, x);
        if (dg_tile_items(&s) > b->target->group_most ||
            shared_bytes(&s) > shared_most(b->target, &s) || work >= *best)
            continue;
        if (x->fits && !s.deep[DG_ROWS] && !x->fits(x->of, s.rows)) continue;
        *best = work;
        *t = s;
        found = true;
    }
    return found;
}

bool dg_tiles_choose(const dg_build *b, const dg_tiled *x, dg_tiles *t)
{
    const ot_dg_target *d = b->target;
    const bool always = d->layout.tiles == OT_DG_ALWAYS,
               matrices = d->has_matrices && d->layout.matrices != OT_DG_NEVER &&
                          (x->dtype == OT_F32 || x->dtype == OT_F16 || x->dtype == OT_BF16);
    const double plain = PLAIN_SLOWER * x->plain * (double)(x->depth * x->taps);
    double best = always ? INFINITY : plain;
    bool found = false;
    if (d->layout.tiles == OT_DG_NEVER || (!always && d->layout.together <= 1)) return false;
    if (!matrices || d->layout.matrices != OT_DG_ALWAYS)
        found = choose_of(b, x, SHAPES, sizeof SHAPES / sizeof *SHAPES, &best, t);
    if (matrices && x->dtype == OT_F32)
        found |= choose_of(b, x, MATRICES, sizeof MATRICES / sizeof *MATRICES, &best, t);
    else if (matrices)
        found |= choose_of(b, x, HALVES, sizeof HALVES / sizeof *HALVES, &best, t);
    if (!found || d->steps_most == 0) return found;
    /* chunks and their depth; what follows */
    return (double)dg_tile_chunks(t, x) * (DG_SLICE + 1) + 200 < (double)d->steps_most;
}

void dg_tiles_count(dg_build *b, const dg_tiles *t, const dg_tiled *x, ot_dtype type)
{
    const double chunks = (double)dg_tile_chunks(t, x);
    const double words = chunks * dg_in_word(t);
    const dg_access a[3] = {
        {type, words * dg_tile_loads(t, DG_ROWS) * (t->quads[0] ? 4 : 1), 1, 0, 1},
        {type, words * dg_tile_loads(t, DG_COLS) * (t->quads[1] ? 4 : 1), 1, 0, 1},
        {type, t->tall * t->wide / (t->steps ? DG_SUBGROUP : 1), 1, 0, 1}};
    dg_count(b, a, 3, (double)groups_of(t, x) * dg_tile_items(t));
}

/* ---- text ---- */

void dg_tiles_open(dg_build *b, const dg_tiles *t)
{
    const uint32_t beside = t->cols / t->wide, base = dg_tile_items(t) / t->slices;
    static const char names[] = "ab";
    if (t->steps) {
        dg_matrix_open(b, t);
        return;
    }
    for (int s = DG_ROWS; s <= DG_COLS; s++) {
        const uint32_t n = t->deep[s] ? dg_tile_depth(t) : dg_tile_extent(t, (dg_side)s);
        dg_shared(b, "float", dg_fmt(b, "s%c", names[s]),
                  2 * dg_tile_depth(t) * pitch(t, (dg_side)s));
        dg_line(b, "const int %c%c = me %% %u, %c%c = me / %u;", t->deep[s] ? 'k' : 'r', names[s],
                n, t->deep[s] ? 'r' : 'k', names[s], n);
        for (uint32_t k = 0; k < dg_tile_loads(t, (dg_side)s); k++)
            dg_line(b, "float f%c%u = 0;", names[s], k);
    }
    if (t->slices > 1) dg_shared(b, "float", "sm", (int64_t)t->rows * t->cols);
    dg_line(b, "const int slice = me / %u, mine = me %% %u, tx = mine %% %u, ty = mine / %u;", base,
            base, beside, beside);
}

void dg_tile_load(dg_build *b, const dg_tiles *t, dg_side side, uint32_t n, uint32_t k,
                  const char *inside, uint32_t arg, const char *index)
{
    if (t->steps)
        dg_matrix_load(b, t, side, n, k, inside, arg, index);
    else
        dg_line(b, "f%c%u = %s ? %s : 0;", "ab"[side], n, inside, dg_load(b, arg, index));
}

/* What was loaded goes into the half of shared memory whose turn it is. */
static void stash(dg_build *b, const dg_tiles *t, dg_side side)
{
    const char name = side == DG_ROWS ? 'a' : 'b';
    for (uint32_t n = 0; n < dg_tile_loads(t, side); n++)
        dg_line(b, "s%c[(turn + k%c + %lld) * %u + r%c + %lld] = f%c%u;", name, name,
                (long long)dg_tile_down(t, side, n), pitch(t, side), name,
                (long long)dg_tile_across(t, side, n), name, n);
}

/* The chunk in shared memory. */
static void multiply(dg_build *b, const dg_tiles *t)
{
    const uint32_t beside = t->cols / t->wide;
    const char *x = "";
    for (uint32_t l = 0; l < t->wide; l++)
        x = dg_fmt(b, "%s%ssb[at + %u]", x, l ? ", " : "", l * beside);
    const char *from = t->slices > 1 ? dg_fmt(b, "turn + slice * %u", DG_SLICE) : "turn";
    dg_line(b, "const int from = %s;\nunrolled\nfor (int k = 0; k < %u; k++) {", from, DG_SLICE);
    dg_line(b, "const int at = (from + k) * %u + tx;", pitch(t, DG_COLS));
    dg_line(b, "const %s w = near%u(sa, (from + k) * %u + ty * %u);", dg_vector(b, t->tall),
            t->tall, pitch(t, DG_ROWS), t->tall);
    dg_line(b, "const %s x = lanes%u(%s);", dg_vector(b, t->wide), t->wide, x);
    for (uint32_t j = 0; j < t->tall; j++) dg_line(b, "acc%u = madd(w.s%u, x, acc%u);", j, j, j);
    dg_line(b, "}");
}

/* Sums of the slices into those of slice 0. */
static void merge_slices(dg_build *b, const dg_tiles *t)
{
    const uint32_t base = dg_tile_items(t) / t->slices;
    for (int reads = 0; reads < 2; reads++) {
        if (!reads) dg_line(b, "for (int z = 1; z < %u; z++) {", t->slices);
        dg_line(b, "if (slice == %s) {", reads ? "0" : "z");
        for (uint32_t j = 0; j < t->tall; j++)
            for (uint32_t l = 0; l < t->wide; l++)
                dg_line(b, reads ? "%s += %s;" : "%2$s = %1$s;", dg_fmt(b, "acc%u.s%u", j, l),
                        dg_fmt(b, "sm[%u + mine]", (j * t->wide + l) * base));
        dg_line(b, "}");
        dg_meet(b);
    }
    dg_line(b, "}");
}

static void open_sums(dg_build *b, const dg_tiles *t, const char *const *first)
{
    for (uint32_t j = 0; j < t->tall; j++) {
        const char *from = first ? first[j] : "0";
        if (first && t->slices > 1) from = dg_fmt(b, "slice == 0 ? %s : 0", from);
        dg_line(b, "%s acc%u = splat%u(%s);", dg_vector(b, t->wide), j, t->wide, from);
    }
}

void dg_tiles_sums(dg_build *b, const dg_tiles *t, const dg_tiled *x, const dg_tile_text *text)
{
    const char *n = dg_num(b, dg_tile_chunks(t, x));
    if (t->steps) {
        dg_matrix_sums(b, t, x, text);
        return;
    }
    text->start(b, text->of);
    open_sums(b, t, text->first);
    /* registers hold chunk `chunk`, once there is one; one barrier is enough: who comes to write a
     * half again has met all others after they read it */
    dg_line(b, "for (int chunk = -1; chunk < %s; chunk++) {", n);
    dg_line(b, "const int turn = (chunk & 1) * %u;", dg_tile_depth(t));
    stash(b, t, DG_ROWS);
    stash(b, t, DG_COLS);
    dg_meet(b);
    dg_line(b, "if (chunk + 1 < %s) {", n);
    text->fetch(b, text->of);
    dg_line(b, "}\nif (chunk >= 0) {");
    multiply(b, t);
    dg_line(b, "}\n}");
    if (t->slices > 1) merge_slices(b, t);
}

/* Sums of a work-item along its columns, along its rows: with matrices, of an instruction pairs
 * of columns, in rows 8 apart. */
static uint32_t own_cols(const dg_tiles *t) { return t->steps ? t->wide / 4 : t->wide; }
static uint32_t own_rows(const dg_tiles *t) { return t->steps ? t->tall / 8 : t->tall; }

void dg_tiles_cols(dg_build *b, const dg_tiles *t)
{
    dg_line(b, t->slices > 1 ? "if (slice == 0) {" : "{");
    if (!t->steps) dg_line(b, "float sums[%u];", t->tall * t->wide);
    for (uint32_t j = 0; j < t->tall && !t->steps; j++)
        for (uint32_t l = 0; l < t->wide; l++)
            dg_line(b, "sums[%u] = acc%u.s%u;", j * t->wide + l, j, l);
    dg_line(b, "%sfor (int l = 0; l < %u; l++) {", t->steps ? "unrolled\n" : "", own_cols(t));
}

void dg_tiles_rows(dg_build *b, const dg_tiles *t)
{
    dg_line(b, "%sfor (int j = 0; j < %u; j++) {", t->steps ? "unrolled\n" : "", own_rows(t));
}

void dg_tiles_end(dg_build *b, const dg_tiles *t)
{
    (void)t;
    dg_line(b, "}\n}\n}");
}

const char *dg_tile_sum(dg_build *b, const dg_tiles *t)
{
    if (t->steps)
        return dg_fmt(b, "acc[(j / 2 * %u + l / 2) * 4 + j %% 2 * 2 + l %% 2]", t->wide / 8);
    return dg_fmt(b, "sums[j * %u + l]", t->wide);
}

const char *dg_tile_col(dg_build *b, const dg_tiles *t)
{
    if (t->steps) return "tx + l / 2 * 8 + l % 2";
    return dg_fmt(b, "tx + l * %u", t->cols / t->wide);
}

const char *dg_tile_row(dg_build *b, const dg_tiles *t)
{
    if (t->steps) return "ty + j / 2 * 16 + j % 2 * 8";
    return dg_fmt(b, "ty * %u + j", t->tall);
}
