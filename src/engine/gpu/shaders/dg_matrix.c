/* Products in blocks of shared memory by matrix instructions of a subgroup (dg_tiles.h): 16 x 8
 * sums, 8 words deep.
 *
 *   chunk - STAGES + 1 ... chunk        on their way into shared memory, one stage each
 *   words of work-item 4 g + q          A: rows g, g + 8, words q, q + 4; B: column g, the same
 *   its sums                            rows g, g + 8, columns 2 q, 2 q + 1
 *
 * float16 and bfloat16 are exact. A float32 is the sum of two TF32 with 11 bits each; three
 * products of those make one with an error of 2^-22 or so, and what an instruction adds up, which
 * it does not round to the nearest, is 8 deep: all else is added as float32 should be. That has no
 * infinities: a block with a sum that is none or NaN is computed again, product by product.
 */
#include "dg_tiles.h"

static uint32_t apart(const dg_tiles *t, dg_side side)
{
    return t->deep[side] ? dg_tile_words(t) + 4 : dg_tile_extent(t, side) + 8;
}

uint32_t dg_matrix_words(const dg_tiles *t, dg_side side)
{
    return apart(t, side) * (t->deep[side] ? dg_tile_extent(t, side) : dg_tile_words(t));
}

const char *dg_matrix_place(dg_build *b, const dg_tiles *t, dg_side side, const char *at,
                            const char *k)
{
    return t->deep[side] ? dg_fmt(b, "(%s) * %u + %s", at, apart(t, side), k)
                         : dg_fmt(b, "(%s) * %u + %s", k, apart(t, side), at);
}

/* Splits a product, each way. */
static bool is_split(const dg_tiles *t) { return t->dtype == OT_F32; }

/* Where the work-item's loads of a side begin. */
static void open_side(dg_build *b, const dg_tiles *t, dg_side side)
{
    const char c = "ab"[side], *along = t->deep[side] ? "w" : "r",
               *other = t->deep[side] ? "r" : "w";
    const uint32_t each = t->quads[side] ? 4 : 1,
                   n = (t->deep[side] ? dg_tile_words(t) : dg_tile_extent(t, side)) / each;
    dg_line(b, "const int %s%c = me %% %u * %u, %s%c = me / %u;", along, c, n, each, other, c, n);
    dg_line(b, "const int k%c = w%c * %u, at_s%c = %s;", c, c, dg_in_word(t), c,
            dg_matrix_place(b, t, side, dg_fmt(b, "r%c", c), dg_fmt(b, "w%c", c)));
    for (uint32_t k = 0; k < dg_tile_loads(t, side) && !t->direct[side]; k++)
        dg_line(b, "uint f%c%u = 0;", c, k);
}

void dg_matrix_open(dg_build *b, const dg_tiles *t)
{
    const uint32_t beside = t->cols / t->wide, base = dg_tile_items(t) / t->slices,
                   of_a = t->stages * dg_matrix_words(t, DG_ROWS),
                   of_b = t->stages * dg_matrix_words(t, DG_COLS);
    dg_shared_pool(b, (of_a + of_b + (t->slices > 1 ? t->rows * t->cols : 0)) *
                          (int64_t)sizeof(uint32_t));
    if (t->tall * t->wide / DG_SUBGROUP <= 64)
        b->groups_on_unit = OT_DG_UNIT_ITEMS / dg_tile_items(t);
    dg_line(b, "uint *const sa = pool, *const sb = pool + %u;", of_a);
    if (t->slices > 1) dg_line(b, "float *const sm = (float *)pool + %u;", of_a + of_b);
    open_side(b, t, DG_ROWS);
    open_side(b, t, DG_COLS);
    dg_line(b, "const int slice = me / %u, mine = me %% %u, g = me %% 32 / 4, q = me %% 4;", base,
            base);
    dg_line(b, "const int tx = mine / 32 %% %u * %u + q * 2, ty = mine / 32 / %u * %u + g;", beside,
            t->wide, beside, t->tall);
    dg_line(b, "float acc[%u];", t->tall * t->wide / DG_SUBGROUP);
}

/* Words of shared memory from a work-item's first to number n. */
static uint32_t further(const dg_tiles *t, dg_side side, uint32_t n)
{
    const int64_t steps = dg_tile_across(t, side, n) + dg_tile_down(t, side, n) / dg_in_word(t);
    return (uint32_t)steps * apart(t, side);
}

void dg_matrix_load(dg_build *b, const dg_tiles *t, dg_side side, uint32_t n, uint32_t k,
                    const char *inside, uint32_t arg, const char *index)
{
    const char c = "ab"[side], *from = dg_place(b, arg, index);
    if (t->quads[side])
        dg_line(b, "bring4(&s%c[to_%c + %u], &%s, %s, ((ulong)b%u & 15) == 0);", c, c,
                further(t, side, n), from, inside, arg);
    else if (t->direct[side])
        dg_line(b, "bring(&s%c[to_%c + %u], &%s, %s);", c, c, further(t, side, n), from, inside);
    else
        dg_line(b, "f%c%u %s %s ? (uint)%s%s : 0u;", c, n, k ? "|=" : "=", inside, from,
                k ? " << 16" : "");
}

/* What was loaded into registers. */
static void stash(dg_build *b, const dg_tiles *t, dg_side side)
{
    const char c = "ab"[side];
    for (uint32_t n = 0; n < dg_tile_loads(t, side) && !t->direct[side]; n++)
        dg_line(b, "s%c[to_%c + %u] = f%c%u;", c, c, further(t, side, n), c, n);
}

/* Of the stage from which to read: the first column, or row, of the work-item's subgroup. */
static void multiply(dg_build *b, const dg_tiles *t)
{
    const uint32_t mats = t->tall / 16, nets = t->wide / 8;
    static const char *const names[] = {[OT_F32] = "split", [OT_F16] = "f16", [OT_BF16] = "bf16"};
    const char *name = names[t->dtype];
    dg_line(b, "unrolled\nfor (int step = 0; step < %u; step++) {", t->steps);
    dg_line(b, "const int k = (slice * %u + step) * 8 + q;", t->steps);
    dg_line(b, is_split(t) ? "uint x[%u][4];" : "uint x[%u][2];", nets);
    dg_line(b, "unrolled\nfor (int n = 0; n < %u; n++) {", nets);
    for (int half = 0; half < 2; half++) {
        const char *word = dg_fmt(
            b, "sb[from_b + %s]",
            dg_matrix_place(b, t, DG_COLS, "n * 8 + colg", half ? "(k + 4)" : "k"));
        if (is_split(t))
            dg_line(b, "tf32_pair(%s, x[n][%d], x[n][%d]);", word, half, half + 2);
        else
            dg_line(b, "x[n][%d] = %s;", half, word);
    }
    dg_line(b, "}\nunrolled\nfor (int m = 0; m < %u; m++) {\nuint w[%u];", mats,
            is_split(t) ? 8u : 4u);
    for (uint32_t e = 0; e < 4; e++) {
        const char *word = dg_fmt(b, "sa[from_a + %s]",
                                  dg_matrix_place(b, t, DG_ROWS,
                                                  e & 1 ? "m * 16 + 8 + ty" : "m * 16 + ty",
                                                  e & 2 ? "(k + 4)" : "k"));
        if (is_split(t))
            dg_line(b, "tf32_pair(%s, w[%u], w[%u]);", word, e, e + 4);
        else
            dg_line(b, "w[%u] = %s;", e, word);
    }
    dg_line(b,
            "unrolled\nfor (int n = 0; n < %u; n++) mma_%s(&acc[(m * %u + n) * 4], w, x[n]);\n}\n}",
            nets, name, nets);
}

/* The same without: for infinities and NaN. */
static void multiply_plainly(dg_build *b, const dg_tiles *t)
{
    const uint32_t mats = t->tall / 16, nets = t->wide / 8;
    dg_line(b, "for (int k = slice * %u; k < (slice + 1) * %u; k++) {", t->steps * 8, t->steps * 8);
    dg_line(b, "unrolled\nfor (int j = 0; j < %u; j++) {", 2 * mats);
    dg_line(b, "const float w = __uint_as_float(sa[from_a + %s]);",
            dg_matrix_place(b, t, DG_ROWS, dg_tile_row(b, t), "k"));
    dg_line(b,
            "unrolled\nfor (int l = 0; l < %u; l++)\n%s += w * __uint_as_float(sb[from_b + %s]);",
            2 * nets, dg_tile_sum(b, t), dg_matrix_place(b, t, DG_COLS, dg_tile_col(b, t), "k"));
    dg_line(b, "}\n}");
}

/* Sums of the slices into those of slice 0. */
static void merge_slices(dg_build *b, const dg_tiles *t)
{
    const uint32_t base = dg_tile_items(t) / t->slices, n = t->tall * t->wide / DG_SUBGROUP;
    dg_line(b, "for (int z = 1; z < %u; z++) {", t->slices);
    for (int reads = 0; reads < 2; reads++) {
        dg_line(b, "if (slice == %s) {\nunrolled\nfor (int e = 0; e < %u; e++)", reads ? "0" : "z",
                n);
        dg_line(b, reads ? "acc[e] += sm[e * %u + mine];\n}" : "sm[e * %u + mine] = acc[e];\n}",
                base);
        dg_meet(b);
    }
    dg_line(b, "}");
}

void dg_matrix_sums(dg_build *b, const dg_tiles *t, const dg_tiled *x, const dg_tile_text *text)
{
    const char *n = dg_num(b, dg_tile_chunks(t, x));
    const uint32_t ahead = t->stages - 1, size_a = dg_matrix_words(t, DG_ROWS),
                   size_b = dg_matrix_words(t, DG_COLS), sums = t->tall * t->wide / DG_SUBGROUP;
    dg_line(b, "const int colg = mine / 32 %% %u * %u + g;", t->cols / t->wide, t->wide);
    if (is_split(t)) dg_line(b, "for (int exact = 0; exact < 2; exact++) {");
    dg_line(b, "unrolled\nfor (int e = 0; e < %u; e++) acc[e] = 0;", sums);
    text->start(b, text->of);
    /* who comes to write a stage again has met all others after they read it */
    dg_line(b, "for (int chunk = -%u; chunk < %s; chunk++) {", ahead, n);
    dg_line(b, "const int to = (chunk + %u) %% %u, to_a = at_sa + to * %u, to_b = at_sb + to * %u;",
            ahead, t->stages, size_a, size_b);
    dg_line(b, "if (chunk >= 0) {\narrived(%u);", ahead - 1);
    dg_meet(b);
    dg_line(b, "}\nif (chunk + %u < %s) {", ahead, n);
    text->fetch(b, text->of);
    dg_line(b, "}\nsent();\nif (chunk >= 0) {");
    dg_line(b, "const int from = chunk %% %u, from_a = from * %u, from_b = from * %u;", t->stages,
            size_a, size_b);
    if (is_split(t)) dg_line(b, "if (exact == 0) {");
    multiply(b, t);
    if (is_split(t)) {
        dg_line(b, "} else {");
        multiply_plainly(b, t);
        dg_line(b, "}");
    }
    dg_line(b, "}");
    if (!t->direct[DG_ROWS] || !t->direct[DG_COLS]) {
        dg_line(b, "if (chunk + %u < %s) {", ahead, n);
        stash(b, t, DG_ROWS);
        stash(b, t, DG_COLS);
        dg_line(b, "}");
    }
    dg_line(b, "}");
    if (is_split(t)) {
        dg_line(b,
                "bool finite = true;\nunrolled\nfor (int e = 0; e < %u; e++) finite = finite && "
                "fabsf(acc[e]) < INFINITY;",
                sums);
        dg_line(b, "if (!any_of_group(!finite)) break;\n}");
    }
    if (t->slices > 1) merge_slices(b, t);
}
