/* Names of pipes and element types, and what follows from them: sizes in bytes, the pipe of a copy.
 *
 *   gm --dma_in--> l1 --dma_in--> l0a, l0b, bt --cube--> l0c --dma_out--> gm, ub, l1
 *   gm --dma_in--> ub --vector--> ub --dma_out--> gm
 */
#include "tk_internal.h"

static const char *const PIPE_NAMES[OT_PIPE_COUNT] = {"vector", "cube", "scalar", "dma_in",
                                                      "dma_out"};

static const struct {
    const char *name;
    uint32_t bits;
} DTYPES[] = {
    {"f32", 32},   {"f16", 16},   {"bf16", 16}, {"f64", 64}, {"f8e4m3", 8}, {"f8e5m2", 8},
    {"f8e8m0", 8}, {"f4e2m1", 4}, {"i64", 64},  {"i32", 32}, {"i16", 16},   {"i8", 8},
    {"i4", 4},     {"i2", 2},     {"u64", 64},  {"u32", 32}, {"u16", 16},   {"u8", 8},
    {"u4", 4},     {"u2", 2},     {"b1", 1},    {"bool", 8}, {"c64", 64},   {"c128", 128},
};

const char *ot_pipe_name(ot_pipe p) { return (unsigned)p < OT_PIPE_COUNT ? PIPE_NAMES[p] : "?"; }

bool tk_pipe_parse(const char *name, size_t n, ot_pipe *out)
{
    for (unsigned p = 0; p < OT_PIPE_COUNT; p++) {
        if (strlen(PIPE_NAMES[p]) != n || memcmp(PIPE_NAMES[p], name, n) != 0) continue;
        *out = (ot_pipe)p;
        return true;
    }
    return false;
}

ot_pipe ot_tk_copy_pipe(ot_scope from, ot_scope to)
{
    if (from == OT_SCOPE_L0C) return OT_PIPE_DMA_OUT; /* the fixpipe */
    if (from == OT_SCOPE_HOST) return OT_PIPE_DMA_IN;
    if (to == OT_SCOPE_HOST) return OT_PIPE_DMA_OUT;
    if (from == OT_SCOPE_GM) return OT_PIPE_DMA_IN;
    if (to == OT_SCOPE_GM) return OT_PIPE_DMA_OUT;
    if (to == OT_SCOPE_L2 && from != OT_SCOPE_L2) return OT_PIPE_DMA_OUT; /* out of a core */
    return from == to ? OT_PIPE_VECTOR : OT_PIPE_DMA_IN;
}

/* Index in DTYPES, or their number. */
static size_t dtype_index(const char *name)
{
    size_t k = 0;
    while (k < sizeof DTYPES / sizeof *DTYPES && strcmp(DTYPES[k].name, name) != 0) k++;
    return k;
}

const char *tk_dtype_parse(const char *name)
{
    size_t k = dtype_index(name);
    return k < sizeof DTYPES / sizeof *DTYPES ? DTYPES[k].name : NULL;
}

uint32_t ot_tk_dtype_bits(const char *dtype)
{
    size_t k = dtype ? dtype_index(dtype) : sizeof DTYPES / sizeof *DTYPES;
    return k < sizeof DTYPES / sizeof *DTYPES ? DTYPES[k].bits : 0;
}

const ot_tk_attr *ot_tk_attr_find(const ot_tk_stmt *s, const char *name)
{
    for (uint32_t k = 0; k < s->n_attrs; k++)
        if (strcmp(s->attrs[k].name, name) == 0) return &s->attrs[k];
    return NULL;
}

bool tk_type_bytes(const char *dtype, const int64_t *dims, uint32_t rank, int64_t *out)
{
    int64_t elems, whole, bits = ot_tk_dtype_bits(dtype);
    if (bits == 0 || rank > OT_TK_RANK_MAX || !ot_product(dims, rank, &elems)) return false;
    /* eight elements at a time, so that only what does not fit in bytes overflows */
    return ot_mul_i64(elems / 8, bits, &whole) &&
           ot_add_i64(whole, (elems % 8 * bits + 7) / 8, out);
}

uint32_t ot_tk_root(const ot_kernel *k, uint32_t v, bool *partial)
{
    if (partial) *partial = false;
    for (uint32_t steps = 0; v < k->n_values && steps <= k->n_values; steps++) {
        const ot_tk_value *x = &k->values[v];
        if (x->kind != OT_TK_ALIAS && x->kind != OT_TK_SUBVIEW) break;
        if (partial && x->kind == OT_TK_SUBVIEW) *partial = true;
        v = x->base;
    }
    return v;
}
