/* Pairs of instructions that one instruction does as well.
 *
 *     x * sigmoid(x)        silu(x)              one pass less over the block, and one register
 *     x * sigmoid(x * c)    swish(x, c)
 *     x * y + z             mul_add(x, y, z)
 *     x * y - c             mul_add(x, y, -c)
 *     x / 2^k               x * 2^-k             exact
 *     x * (1 + erf(x / sqrt 2)) * 0.5, in any order and grouping     gelu(x)
 *
 * Only where nothing else needs what lies between: else it would be computed twice.
 */
#include "chain_build.h"

#include <math.h>

typedef ot_chain_build_cell cell;

static bool is_code(const ot_chain_build *b, uint32_t k, ot_chain_code code)
{
    return b->cells[k].kind == OT_CHAIN_RESULT && b->cells[k].code == code;
}

/* Made by this instruction, for one reader. */
static bool is_inner(const ot_chain_build *b, uint32_t k, ot_chain_code code)
{
    return is_code(b, k, code) && b->cells[k].uses == 1;
}

static bool is_number(const ot_chain_build *b, uint32_t k, float f)
{
    return ot_chain_is_constant(b, k) && b->cells[k].cell.constant.f == f;
}

/* The number as some exporter rounds it. */
static bool is_near(const ot_chain_build *b, uint32_t k, float f)
{
    return ot_chain_is_constant(b, k) && fabsf(b->cells[k].cell.constant.f - f) <= 3e-7f * f;
}

static void use(ot_chain_build *b, const cell *c, int by)
{
    for (uint32_t k = 0; k < ot_chain_codes[c->code].operands; k++)
        b->cells[c->in[k]].uses += (uint32_t)by;
}

/* Cell k becomes another instruction; what only it used is gone. */
static void become(ot_chain_build *b, uint32_t k, ot_chain_code code, uint32_t x, uint32_t y,
                   uint32_t z)
{
    cell *c = &b->cells[k];
    cell old = *c;
    c->code = code;
    c->in[0] = x;
    c->in[1] = y;
    c->in[2] = z;
    use(b, c, 1);
    use(b, &old, -1);
    for (uint32_t i = k; i-- > 0;) { /* operands come before */
        cell *o = &b->cells[i];
        if (o->kind != OT_CHAIN_RESULT || o->uses || o->code == OT_CH_COUNT) continue;
        use(b, o, -1);
        o->code = OT_CH_COUNT;
    }
}

/* x * sigmoid(...) */
static bool fuse_gate(ot_chain_build *b, uint32_t k, uint32_t x, uint32_t s)
{
    if (!is_inner(b, s, OT_CH_SIGMOID)) return false;
    uint32_t t = b->cells[s].in[0];
    if (t == x) {
        become(b, k, OT_CH_SILU, x, 0, 0);
        return true;
    }
    if (!is_inner(b, t, OT_CH_MUL)) return false;
    uint32_t u = b->cells[t].in[0], v = b->cells[t].in[1];
    if (u != x) {
        uint32_t swap = u;
        u = v;
        v = swap;
    }
    if (u != x || !ot_chain_is_constant(b, v) || !ot_chain_is_gate(b->cells[v].cell.constant.f))
        return false;
    become(b, k, OT_CH_SWISH, x, v, 0);
    return true;
}

/* 1 + erf(x / sqrt 2): x, or OT_NONE. */
static uint32_t doubled_normal(const ot_chain_build *b, uint32_t k)
{
    if (!is_inner(b, k, OT_CH_ADD)) return OT_NONE;
    const uint32_t *in = b->cells[k].in;
    uint32_t e = is_number(b, in[1], 1) ? in[0] : is_number(b, in[0], 1) ? in[1] : OT_NONE;
    if (e == OT_NONE || !is_inner(b, e, OT_CH_ERF)) return OT_NONE;
    uint32_t t = b->cells[e].in[0];
    in = b->cells[t].in;
    if (is_inner(b, t, OT_CH_DIV) && is_near(b, in[1], 1.41421356f)) return in[0];
    if (!is_inner(b, t, OT_CH_MUL)) return OT_NONE;
    return is_near(b, in[1], 0.70710678f)   ? in[0]
           : is_near(b, in[0], 0.70710678f) ? in[1]
                                            : OT_NONE;
}

/* A product of x, 0.5 and 1 + erf(x / sqrt 2). */
static bool fuse_gelu(ot_chain_build *b, uint32_t k)
{
    const uint32_t *in = b->cells[k].in;
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t pair = in[side], c = in[1 - side];
        if (!is_inner(b, pair, OT_CH_MUL)) continue;
        uint32_t factors[3] = {b->cells[pair].in[0], b->cells[pair].in[1], c};
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t x = doubled_normal(b, factors[i]), p = factors[(i + 1) % 3],
                     q = factors[(i + 2) % 3];
            if (x == OT_NONE) continue;
            if (!(p == x && is_number(b, q, 0.5f)) && !(q == x && is_number(b, p, 0.5f))) continue;
            become(b, k, OT_CH_GELU, x, 0, 0);
            return true;
        }
    }
    return false;
}

static void fuse_product(ot_chain_build *b, uint32_t k)
{
    const cell *c = &b->cells[k];
    if (fuse_gate(b, k, c->in[0], c->in[1]) || fuse_gate(b, k, c->in[1], c->in[0])) return;
    (void)fuse_gelu(b, k);
}

static void fuse_sum(ot_chain_build *b, uint32_t k)
{
    const cell *c = &b->cells[k];
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t m = c->in[side], z = c->in[1 - side];
        if (!is_inner(b, m, OT_CH_MUL) || m == z) continue;
        uint32_t x = b->cells[m].in[0], y = b->cells[m].in[1];
        become(b, k, OT_CH_MUL_ADD, x, y, z);
        return;
    }
}

/* x * y - c */
static void fuse_difference(ot_chain_build *b, uint32_t k)
{
    uint32_t m = b->cells[k].in[0], c = b->cells[k].in[1];
    if (!is_inner(b, m, OT_CH_MUL) || !ot_chain_is_constant(b, c)) return;
    c = ot_chain_constant(b, (ot_chain_cell){.constant.f = -b->cells[c].cell.constant.f});
    if (c != OT_NONE) become(b, k, OT_CH_MUL_ADD, b->cells[m].in[0], b->cells[m].in[1], c);
}

static void divide_by_power_of_two(ot_chain_build *b, uint32_t k)
{
    uint32_t by = b->cells[k].in[1];
    if (!ot_chain_is_constant(b, by)) return;
    int exponent;
    float f = b->cells[by].cell.constant.f, mantissa = frexpf(f, &exponent);
    if (fabsf(mantissa) != 0.5f || exponent < -120 || exponent > 120) return;
    by = ot_chain_constant(b, (ot_chain_cell){.constant.f = 1 / f});
    if (by != OT_NONE) become(b, k, OT_CH_MUL, b->cells[k].in[0], by, 0);
}

void ot_chain_fuse(ot_chain_build *b)
{
    for (uint32_t k = 0; k < b->n_cells; k++)
        if (b->cells[k].kind == OT_CHAIN_RESULT) use(b, &b->cells[k], 1);
    for (uint32_t k = 0; k < b->n_outputs; k++) b->cells[b->outputs[k]].uses++;
    for (uint32_t k = b->n_cells; k-- > 0;) { /* what nobody reads */
        cell *c = &b->cells[k];
        if (c->kind != OT_CHAIN_RESULT || c->uses) continue;
        use(b, c, -1);
        c->code = OT_CH_COUNT;
    }
    for (uint32_t k = 0; k < b->n_cells; k++) {
        if (is_code(b, k, OT_CH_DIV)) divide_by_power_of_two(b, k);
        if (is_code(b, k, OT_CH_MUL)) fuse_product(b, k);
    }
    for (uint32_t k = 0; k < b->n_cells; k++) {
        if (is_code(b, k, OT_CH_ADD))
            fuse_sum(b, k);
        else if (is_code(b, k, OT_CH_SUB))
            fuse_difference(b, k);
    }
}
