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

/* From the largest: each has at least as many work-items as rows, or columns. Fractions are of an
 * H200 (docs/log/devices.md). */
static const dg_tiles SHAPES[] = {
    {128, 128, 8, 8, 1, 0.57, {false}}, {64, 128, 8, 8, 1, 0.56, {false}},
    {128, 64, 8, 4, 1, 0.52, {false}},  {64, 64, 8, 4, 1, 0.51, {false}},
    {32, 128, 4, 8, 1, 0.49, {false}},  {32, 64, 4, 4, 1, 0.44, {false}},
    {32, 32, 4, 4, 1, 0.40, {false}},   {64, 64, 8, 4, 2, 0.48, {false}},
    {32, 64, 4, 4, 2, 0.42, {false}},   {32, 64, 4, 4, 4, 0.40, {false}},
    {32, 32, 4, 4, 4, 0.36, {false}},   {32, 32, 4, 4, 8, 0.34, {false}},
};

/* Elements between those of one depth and the next in shared memory: banks differ where a
 * work-item's neighbours write below each other. */
static uint32_t pitch(const dg_tiles *t, dg_side side)
{
    return (side == DG_ROWS ? t->rows : t->cols) + (t->deep[side] ? 4 : 0);
}

static uint32_t extent(const dg_tiles *t, dg_side side)
{
    return side == DG_ROWS ? t->rows : t->cols;
}

uint32_t dg_tile_loads(const dg_tiles *t, dg_side side)
{
    return extent(t, side) * dg_tile_depth(t) / dg_tile_items(t);
}

int64_t dg_tile_across(const dg_tiles *t, dg_side side, uint32_t n)
{
    return t->deep[side] ? (int64_t)n * dg_tile_items(t) / dg_tile_depth(t) : 0;
}

int64_t dg_tile_down(const dg_tiles *t, dg_side side, uint32_t n)
{
    return t->deep[side] ? 0 : (int64_t)n * dg_tile_items(t) / extent(t, side);
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
           fmax(groups * chunk, units * (CHUNK_LATENCY + chunk));
}

static int64_t shared_bytes(const dg_tiles *t)
{
    int64_t floats = 2 * dg_tile_depth(t) * (int64_t)(pitch(t, DG_ROWS) + pitch(t, DG_COLS));
    if (t->slices > 1) floats += (int64_t)t->rows * t->cols;
    return floats * (int64_t)sizeof(float);
}

bool dg_tiles_choose(const dg_build *b, const dg_tiled *x, dg_tiles *t)
{
    const ot_dg_target *d = b->target;
    const bool always = d->layout.tiles == OT_DG_ALWAYS;
    const bool deep[2] = {t->deep[0], t->deep[1]};
    const double plain = PLAIN_SLOWER * x->plain * (double)(x->depth * x->taps);
    double best = always ? INFINITY : plain;
    bool found = false;
    if (d->layout.tiles == OT_DG_NEVER || (!always && d->layout.together <= 1)) return false;
    for (size_t k = 0; k < sizeof SHAPES / sizeof *SHAPES; k++) {
        dg_tiles s = SHAPES[k];
        memcpy(s.deep, deep, sizeof deep);
        const double work = work_of(b, &s, x);
        if (dg_tile_items(&s) > d->group_most || shared_bytes(&s) > d->shared_bytes || work >= best)
            continue;
        if (x->fits && !x->fits(x->of, s.rows)) continue;
        best = work;
        *t = s;
        found = true;
    }
    if (!found || d->steps_most == 0) return found;
    /* chunks and their depth; what follows */
    return (double)dg_tile_chunks(t, x) * (DG_SLICE + 1) + 200 < (double)d->steps_most;
}

void dg_tiles_count(dg_build *b, const dg_tiles *t, const dg_tiled *x, ot_dtype type)
{
    const double chunks = (double)dg_tile_chunks(t, x);
    const dg_access a[3] = {{type, chunks * dg_tile_loads(t, DG_ROWS), 1, 0, 1},
                            {type, chunks * dg_tile_loads(t, DG_COLS), 1, 0, 1},
                            {type, t->tall * t->wide, 1, 0, 1}};
    dg_count(b, a, 3, (double)groups_of(t, x) * dg_tile_items(t));
}

/* ---- text ---- */

void dg_tiles_open(dg_build *b, const dg_tiles *t)
{
    const uint32_t beside = t->cols / t->wide, base = dg_tile_items(t) / t->slices;
    static const char names[] = "ab";
    for (int s = DG_ROWS; s <= DG_COLS; s++) {
        const uint32_t n = t->deep[s] ? dg_tile_depth(t) : extent(t, (dg_side)s);
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

void dg_tiles_sums(dg_build *b, const dg_tiles *t, const dg_tiled *x,
                   void (*fetch)(dg_build *b, const void *state), const void *state)
{
    const char *n = dg_num(b, dg_tile_chunks(t, x));
    /* registers hold chunk `chunk`, once there is one; one barrier is enough: who comes to write a
     * half again has met all others after they read it */
    dg_line(b, "for (int chunk = -1; chunk < %s; chunk++) {", n);
    dg_line(b, "const int turn = (chunk & 1) * %u;", dg_tile_depth(t));
    stash(b, t, DG_ROWS);
    stash(b, t, DG_COLS);
    dg_meet(b);
    dg_line(b, "if (chunk + 1 < %s) {", n);
    fetch(b, state);
    dg_line(b, "}\nif (chunk >= 0) {");
    multiply(b, t);
    dg_line(b, "}\n}");
    if (t->slices > 1) merge_slices(b, t);
}

void dg_tiles_cols(dg_build *b, const dg_tiles *t)
{
    dg_line(b, t->slices > 1 ? "if (slice == 0) {" : "{");
    dg_line(b, "float sums[%u];", t->tall * t->wide);
    for (uint32_t j = 0; j < t->tall; j++)
        for (uint32_t l = 0; l < t->wide; l++)
            dg_line(b, "sums[%u] = acc%u.s%u;", j * t->wide + l, j, l);
    dg_line(b, "for (int l = 0; l < %u; l++) {", t->wide);
}

void dg_tiles_rows(dg_build *b, const dg_tiles *t)
{
    dg_line(b, "for (int j = 0; j < %u; j++) {", t->tall);
}

void dg_tiles_end(dg_build *b, const dg_tiles *t)
{
    (void)t;
    dg_line(b, "}\n}\n}");
}

const char *dg_tile_sum(dg_build *b, const dg_tiles *t)
{
    return dg_fmt(b, "sums[j * %u + l]", t->wide);
}
