/* Types of MLIR.
 *
 *   memref<16x256xf16, strided<[512, 1]>, #hivm.address_space<ub>>  16 rows of 256, 512 apart: 15 *
 *                                                                   512 + 256 elements from first
 *                                                                   to last
 *   index, i32, f16                                                 scalars
 *   !llvm.ptr, (i32) -> i32, tensor<4xf32>                          other: only the function may
 *                                                                   have them
 */
#include "mlir_internal.h"

static const struct {
    const char *name, *dtype;
} ELEMENTS[] = {
    {"f16", "f16"},       {"bf16", "bf16"}, {"f32", "f32"},  {"f64", "f64"},
    {"i1", "b1"},         {"i2", "i2"},     {"i4", "i4"},    {"i8", "i8"},
    {"i16", "i16"},       {"i32", "i32"},   {"i64", "i64"},  {"ui8", "u8"},
    {"si8", "i8"},        {"ui16", "u16"},  {"si16", "i16"}, {"ui32", "u32"},
    {"si32", "i32"},      {"ui64", "u64"},  {"si64", "i64"}, {"f8E4M3FN", "f8e4m3"},
    {"f8E5M2", "f8e5m2"},
};

/* The dialect's names, then those of the memories themselves. */
static const struct {
    const char *name;
    ot_scope scope;
} SPACES[] = {
    {"gm", OT_SCOPE_GM},   {"ub", OT_SCOPE_UB},   {"cbuf", OT_SCOPE_L1}, {"ca", OT_SCOPE_L0A},
    {"cb", OT_SCOPE_L0B},  {"cc", OT_SCOPE_L0C},  {"l1", OT_SCOPE_L1},   {"l0a", OT_SCOPE_L0A},
    {"l0b", OT_SCOPE_L0B}, {"l0c", OT_SCOPE_L0C}, {"bt", OT_SCOPE_BT},   {"fp", OT_SCOPE_FP},
};

static bool token_is(const ml_lexer *lx, const char *s)
{
    return lx->r.len == strlen(s) && memcmp(lx->r.text + lx->r.at, s, lx->r.len) == 0;
}

static ot_status read_dims(ml_lexer *lx, ml_type *t)
{
    for (size_t k = 0; k < lx->r.len; k++) { /* each dim ends with an x */
        int64_t n = 0;
        bool fits = true;
        if (t->rank == OT_TK_RANK_MAX)
            return ml_fail(lx, "more than %d dimensions", OT_TK_RANK_MAX);
        if (lx->r.text[lx->r.at + k] == '?') {
            t->is_static = false;
            n = -1;
            k++;
        }
        for (; lx->r.text[lx->r.at + k] != 'x'; k++)
            fits = fits && ot_mul_i64(n, 10, &n) &&
                   ot_add_i64(n, lx->r.text[lx->r.at + k] - '0', &n);
        if (!fits) return ml_fail(lx, "a dimension does not fit 64 bits");
        t->dims[t->rank++] = n;
    }
    ml_next(lx);
    return lx->r.status;
}

static ot_status read_element(ml_lexer *lx, ml_type *t)
{
    if (lx->tok != ML_WORD) return ml_expected(lx, "an element type");
    for (size_t k = 0; k < sizeof ELEMENTS / sizeof *ELEMENTS; k++)
        if (token_is(lx, ELEMENTS[k].name)) t->dtype = ELEMENTS[k].dtype;
    if (!t->dtype) t->is_static = false;
    ml_next(lx);
    if (ml_is(lx, '<')) OT_TRY(ml_skip_brackets(lx)); /* of elements that are no numbers */
    return lx->r.status;
}

/* strided<[512, 1], offset: ?>: strides into s, the rank of them; false in *known when one is no
 * number. */
static ot_status read_strides(ml_lexer *lx, int64_t s[OT_TK_RANK_MAX], uint32_t *n, bool *known)
{
    *n = 0;
    *known = true;
    ml_next(lx);
    OT_TRY(ml_expect(lx, '<'));
    OT_TRY(ml_expect(lx, '['));
    while (!ml_is(lx, ']')) {
        if (*n == OT_TK_RANK_MAX) return ml_fail(lx, "more than %d strides", OT_TK_RANK_MAX);
        bool number = lx->tok == ML_INT;
        if (!number && !ml_is(lx, '?')) return ml_expected(lx, "a stride");
        *known = *known && number;
        s[(*n)++] = number ? lx->value : 0;
        ml_next(lx);
        if (!ml_is(lx, ']')) OT_TRY(ml_expect(lx, ','));
    }
    ml_next(lx);
    if (ml_accept(lx, ',')) {
        OT_TRY(ml_expect_word(lx, "offset"));
        OT_TRY(ml_expect(lx, ':'));
        if (lx->tok != ML_INT && !ml_is(lx, '?')) return ml_expected(lx, "an offset");
        ml_next(lx);
    }
    return ml_expect(lx, '>');
}

/* Rows with gaps: all from the first element to the last. */
static ot_status stretch(ml_lexer *lx, ml_type *t, const int64_t *s, uint32_t n, bool known)
{
    int64_t dense = 1, span = 1;
    bool gaps = false;
    if (n != t->rank)
        return ml_fail_at(lx, t->line, t->col, "%u strides for %u dimensions", n, t->rank);
    if (!known) t->is_static = false;
    if (!t->is_static) t->layout = 1;
    if (!t->is_static) return OT_OK;
    for (uint32_t d = t->rank; d-- > 0;) {
        int64_t reach;
        if (t->dims[d] > 1 && s[d] != dense) gaps = true;
        if (!ot_mul_i64(t->dims[d] - 1, s[d], &reach) || !ot_add_i64(span, reach, &span) ||
            !ot_mul_i64(dense, t->dims[d], &dense))
            return ml_fail_at(lx, t->line, t->col, "the size of the memref does not fit 64 bits");
    }
    if (!gaps) return OT_OK;
    t->layout =
        ot_hash_bytes(ot_hash_bytes(2, t->dims, t->rank * sizeof *t->dims), s, n * sizeof *s) | 2;
    t->rank = 1;
    t->dims[0] = ot_max(span, dense);
    return OT_OK;
}

static ot_status read_space(ml_lexer *lx, ml_type *t)
{
    if (!token_is(lx, "#hivm.address_space")) return ml_expected(lx, "#hivm.address_space<...>");
    ml_next(lx);
    OT_TRY(ml_expect(lx, '<'));
    if (lx->tok != ML_WORD) return ml_expected(lx, "an address space");
    size_t k = 0;
    while (k < sizeof SPACES / sizeof *SPACES && !token_is(lx, SPACES[k].name)) k++;
    if (k == sizeof SPACES / sizeof *SPACES)
        return ml_expected(lx, "an address space (gm, ub, cbuf, ca, cb, cc, bt, fp)");
    t->scope = SPACES[k].scope;
    t->has_space = true;
    ml_next(lx);
    return ml_expect(lx, '>');
}

static ot_status read_memref(ml_lexer *lx, ml_type *t)
{
    int64_t strides[OT_TK_RANK_MAX];
    uint32_t n = 0;
    bool known = true, strided = false;
    t->kind = ML_MEMREF_TYPE;
    t->is_static = true;
    t->scope = OT_SCOPE_GM;
    ml_next(lx);
    lx->in_shape = true;
    OT_TRY(ml_expect(lx, '<'));
    if (lx->tok == ML_DIMS) OT_TRY(read_dims(lx, t));
    OT_TRY(read_element(lx, t));
    while (ml_accept(lx, ',')) {
        if (ml_is_word(lx, "strided")) {
            OT_TRY(read_strides(lx, strides, &n, &known));
            strided = true;
        } else if (lx->tok == ML_ATTR) {
            OT_TRY(read_space(lx, t));
        } else {
            return ml_expected(lx, "strided<...> or #hivm.address_space<...>");
        }
    }
    t->end = lx->r.at + 1;
    OT_TRY(ml_expect(lx, '>'));
    if (strided) OT_TRY(stretch(lx, t, strides, n, known));
    if (t->rank == 0) t->dims[t->rank++] = 1;
    return OT_OK;
}

static bool is_scalar(const ml_lexer *lx)
{
    if (token_is(lx, "index") || token_is(lx, "tf32")) return true;
    for (size_t k = 0; k < sizeof ELEMENTS / sizeof *ELEMENTS; k++)
        if (token_is(lx, ELEMENTS[k].name)) return true;
    if (lx->r.len < 2 || lx->r.text[lx->r.at] != 'i') return false;
    for (size_t k = 1; k < lx->r.len; k++)
        if (lx->r.text[lx->r.at + k] < '0' || lx->r.text[lx->r.at + k] > '9') return false;
    return true;
}

ot_status ml_parse_type(ml_lexer *lx, ml_type *t)
{
    *t = (ml_type){
        .kind = ML_OTHER_TYPE, .line = lx->r.tok_line, .col = lx->r.tok_col, .at = lx->r.at};
    if (lx->r.status != OT_OK) return lx->r.status;
    if (ml_is_word(lx, "memref")) return read_memref(lx, t);
    if (lx->tok != ML_WORD && !ml_is(lx, '(')) return ml_expected(lx, "a type");
    if (lx->tok == ML_WORD && is_scalar(lx)) t->kind = ML_SCALAR_TYPE;
    t->end = lx->r.at + lx->r.len;
    if (ml_is(lx, '(')) return ml_expected(lx, "a type that is no function");
    ml_next(lx);
    if (ml_is(lx, '<') && t->kind == ML_OTHER_TYPE) OT_TRY(ml_skip_brackets(lx));
    return lx->r.status;
}

ot_status ml_check_static(ml_lexer *lx, const ml_type *t)
{
    if (t->kind != ML_MEMREF_TYPE)
        return ml_fail_at(lx, t->line, t->col, "no memref: what is planned is one");
    if (!t->dtype)
        return ml_fail_at(lx, t->line, t->col, "elements of a type that has no size here");
    if (!t->is_static)
        return ml_fail_at(lx, t->line, t->col, "a memref of unknown size cannot be planned");
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->dims[d] < 1)
            return ml_fail_at(lx, t->line, t->col, "dimension %u has no elements", d);
    return OT_OK;
}
