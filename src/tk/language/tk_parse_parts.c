/* The pieces that statements are made of: names, types, attributes, affine ranges, lists.
 *
 *   1x16x18x64 f32     @ub     align=32 multi=2 offset=0,4096    [0:1, 16*i-1:16*i+17]  (a, b)
 *   tk_type            tk_scope  tk_attributes                   tk_ranges              tk_operands
 *
 * Only syntax and the meaning of names are judged here; whether sizes, counts and types make
 * sense is the verifier's business.
 */
#include "tk_internal.h"

#include <math.h>

/* ---- names ---- */

ot_status tk_old_name(tk_parser *p, uint32_t *id)
{
    tk_lexer *lx = &p->lx;
    if (lx->tok != TK_NAME || tk_is_keyword(lx->name))
        return tk_expected(lx, "the name of a buffer or param");
    *id = ot_map_get(p->names, lx->name);
    if (*id == OT_NONE) return tk_fail(lx, "'%s' is not defined before this line", lx->name);
    tk_lex_next(lx);
    return lx->r.status;
}

ot_status tk_any_name(tk_parser *p, const char *what)
{
    tk_lexer *lx = &p->lx;
    if (lx->tok != TK_NAME) return tk_expected(lx, what);
    if (tk_is_keyword(lx->name))
        return tk_fail(lx, "expected %s, found '%s', a word of the language", what, lx->name);
    tk_word w = {
        .id = ot_map_get(p->names, lx->name), .line = lx->r.tok_line, .col = lx->r.tok_col};
    w.name = w.id != OT_NONE ? p->b.k->values[w.id].name : ot_strdup(p->b.k->arena, lx->name);
    if (!w.name || !OT_PUSH(p->scratch, p->words, p->n_words, p->cap_words, w))
        return tk_fail_nomem(lx);
    tk_lex_next(lx);
    return lx->r.status;
}

ot_status tk_operands(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(tk_expect(lx, '('));
    if (tk_accept(lx, ')')) return lx->r.status;
    do {
        uint32_t id;
        OT_TRY(tk_old_name(p, &id));
        if (!OT_PUSH(p->scratch, p->ids, p->n_ids, p->cap_ids, id)) return tk_fail_nomem(lx);
    } while (tk_accept(lx, ','));
    return tk_expect(lx, ')');
}

bool tk_accept_setting(tk_parser *p, const char *word, bool names)
{
    tk_lexer *lx = &p->lx;
    if (!tk_is_word(lx, word)) return false;
    const tk_lexer before = *lx;
    tk_lex_next(lx);
    if (tk_accept(lx, '=') &&
        (names ? lx->tok == TK_NAME && !tk_is_keyword(lx->name) : lx->tok == TK_INT))
        return true;
    *lx = before;
    return false;
}

/* -0.5, 3, inf */
static ot_status parse_number(tk_parser *p, double *out)
{
    tk_lexer *lx = &p->lx;
    bool minus = tk_accept(lx, '-');
    if (lx->tok == TK_INT)
        *out = (double)lx->value;
    else if (lx->tok == TK_FLOAT)
        *out = lx->number;
    else if (tk_is_word(lx, "inf"))
        *out = (double)INFINITY;
    else
        return tk_expected(lx, "a number");
    if (minus) *out = -*out;
    tk_lex_next(lx);
    return lx->r.status;
}

/* NUMBER or [NUMBER, ...], after `name=`. */
static ot_status parse_setting(tk_parser *p, const char *name)
{
    tk_lexer *lx = &p->lx;
    ot_tk_attr a = {.name = ot_strdup(p->b.k->arena, name), .list = tk_accept(lx, '[')};
    if (!a.name) return tk_fail_nomem(lx);
    do {
        if (a.n == OT_TK_RANK_MAX) return tk_fail(lx, "more than %d numbers", OT_TK_RANK_MAX);
        OT_TRY(parse_number(p, &a.values[a.n++]));
    } while (a.list && tk_accept(lx, ','));
    if (a.list) OT_TRY(tk_expect(lx, ']'));
    return OT_PUSH(p->scratch, p->attrs, p->n_attrs, p->cap_attrs, a) ? OT_OK : tk_fail_nomem(lx);
}

ot_status tk_call(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(tk_expect(lx, '('));
    if (tk_accept(lx, ')')) return lx->r.status;
    do {
        const tk_lexer before = *lx;
        uint32_t id;
        if (lx->tok == TK_NAME) tk_lex_next(lx);
        if (lx->tok != TK_BAD && tk_accept(lx, '=')) {
            OT_TRY(parse_setting(p, before.name));
            continue;
        }
        if (lx->r.status != OT_OK) return lx->r.status;
        *lx = before;
        if (p->n_attrs > 0)
            return tk_expected(lx, "a setting such as axis=1: they follow the operands");
        OT_TRY(tk_old_name(p, &id));
        if (!OT_PUSH(p->scratch, p->ids, p->n_ids, p->cap_ids, id)) return tk_fail_nomem(lx);
    } while (tk_accept(lx, ','));
    return tk_expect(lx, ')');
}

/* ---- types ---- */

/* [n, 16, t] */
static ot_status parse_sized_dims(tk_parser *p, ot_tk_value *v)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(tk_expect(lx, '['));
    v->rank = 0;
    do {
        if (v->rank == OT_TK_RANK_MAX)
            return tk_fail(lx, "more than %d dimensions", OT_TK_RANK_MAX);
        OT_TRY(tk_extent_here(p, &v->dims[v->rank], &v->sizes[v->rank]));
        v->rank++;
    } while (tk_accept(lx, ','));
    return tk_expect(lx, ']');
}

/* 16 or 1x16x64; of an alloc also `auto`: the shape of what is loaded into it first */
static ot_status parse_dims(tk_parser *p, ot_tk_value *v)
{
    tk_lexer *lx = &p->lx;
    if (tk_is(lx, '[')) return parse_sized_dims(p, v);
    if (v->kind == OT_TK_BUFFER && tk_accept_word(lx, "auto")) return lx->r.status;
    if (lx->tok != TK_INT && lx->tok != TK_SHAPE)
        return tk_expected(lx, "dimensions such as 16x64");
    const char *text = lx->r.text + lx->r.at, *end = text + lx->r.len;
    for (v->rank = 0; text < end;) {
        size_t n = 0;
        while (text + n < end && text[n] != 'x') n++;
        if (v->rank == OT_TK_RANK_MAX)
            return tk_fail(lx, "more than %d dimensions", OT_TK_RANK_MAX);
        if (!ot_digits_value(text, n, &v->dims[v->rank++]))
            return tk_fail(lx, "dimension %u does not fit 64 bits", v->rank);
        text += n + (text + n < end);
    }
    tk_lex_next(lx);
    return lx->r.status;
}

ot_status tk_type(tk_parser *p, ot_tk_value *v)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(parse_dims(p, v));
    v->dtype = lx->tok == TK_NAME ? tk_dtype_parse(lx->name) : NULL;
    if (!v->dtype) return tk_expected(lx, "an element type such as f32");
    if (!tk_type_bytes(v->dtype, v->dims, v->rank, &v->bytes)) v->bytes = 0;
    tk_lex_next(lx);
    return lx->r.status;
}

ot_status tk_scope(tk_parser *p, ot_tk_value *v)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(tk_expect(lx, '@'));
    if (tk_accept_word(lx, "shared.dyn")) {
        v->scope = OT_SCOPE_SHARED;
        v->dynamic = true;
        return lx->r.status;
    }
    if (lx->tok != TK_NAME || !ot_scope_parse(lx->name, &v->scope))
        return tk_expected(
            lx, "a memory (ub l1 l0a l0b l0c bt fp l2 shared gm, local fragment tmem host auto)");
    tk_lex_next(lx);
    return lx->r.status;
}

static ot_status parse_offsets(tk_parser *p, ot_tk_value *v)
{
    tk_lexer *lx = &p->lx;
    do {
        if (v->n_offsets == OT_TK_MULTI_MAX)
            return tk_fail(lx, "more than %d offsets", OT_TK_MULTI_MAX);
        OT_TRY(tk_expect_int(lx, &v->offsets[v->n_offsets++]));
    } while (tk_accept(lx, ','));
    return lx->r.status;
}

ot_status tk_attributes(tk_parser *p, ot_tk_value *v)
{
    static const char *const words[] = {"align", "multi", "offset"};
    tk_lexer *lx = &p->lx;
    for (int last = -1; lx->tok == TK_NAME;) {
        int which = 0;
        while (which < 3 && strcmp(words[which], lx->name) != 0) which++;
        if (which == 3) break;
        if (which <= last)
            return tk_fail(lx, "'%s' again, or out of order: align, multi, offset", lx->name);
        last = which;
        tk_lex_next(lx);
        OT_TRY(tk_expect(lx, '='));
        uint32_t line = lx->r.tok_line, col = lx->r.tok_col;
        int64_t n = 0;
        if (which == 2)
            OT_TRY(parse_offsets(p, v));
        else
            OT_TRY(tk_expect_int(lx, &n));
        if (which < 2 && n < 1) return tk_fail_at(lx, line, col, "%s is at least 1", words[which]);
        if (which == 0) v->align = n;
        /* too many in any case */
        if (which == 1) v->multi = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    }
    return lx->r.status;
}

/* ---- affine ranges ---- */

static ot_status loop_variable(tk_parser *p, const char **var)
{
    tk_lexer *lx = &p->lx;
    const ot_kernel_builder *b = &p->b;
    if (lx->tok != TK_NAME || tk_is_keyword(lx->name))
        return tk_expected(lx, "an integer or a loop variable");
    *var = NULL;
    for (size_t k = b->n_open; k-- > 0 && !*var;) {
        const char *own = b->k->stmts[b->open[k]].var;
        if (own && strcmp(own, lx->name) == 0) *var = own;
    }
    if (!*var) return tk_fail(lx, "'%s' is no variable of a loop around this", lx->name);
    tk_lex_next(lx);
    return lx->r.status;
}

/* INT, VAR, INT*VAR or VAR*INT, times sign, added to *a. */
static ot_status parse_term(tk_parser *p, int64_t sign, ot_tk_affine *a)
{
    tk_lexer *lx = &p->lx;
    uint32_t line = lx->r.tok_line, col = lx->r.tok_col;
    const char *var = NULL;
    int64_t n = 1;
    if (lx->tok == TK_INT || tk_size_here(p)) {
        OT_TRY(tk_extent_here(p, &n, NULL));
        if (tk_accept(lx, '*')) OT_TRY(loop_variable(p, &var));
    } else {
        OT_TRY(loop_variable(p, &var));
        if (tk_accept(lx, '*')) OT_TRY(tk_extent_here(p, &n, NULL));
    }
    if (var && !tk_affine_add(a, var, sign * n))
        return tk_fail_at(lx, line, col, "too many loop variables, or too large a factor");
    if (!var && (!ot_add_i64(a->constant, sign * n, &a->constant) || a->constant == INT64_MIN))
        return tk_fail_at(lx, line, col, "the sum does not fit 64 bits");
    return lx->r.status;
}

static ot_status parse_affine(tk_parser *p, ot_tk_affine *a)
{
    tk_lexer *lx = &p->lx;
    int64_t sign = tk_accept(lx, '-') ? -1 : 1;
    *a = (ot_tk_affine){0};
    for (;;) {
        OT_TRY(parse_term(p, sign, a));
        if (!tk_is(lx, '+') && !tk_is(lx, '-')) break;
        sign = lx->punct == '-' ? -1 : 1;
        tk_lex_next(lx);
    }
    tk_affine_tidy(a);
    return lx->r.status;
}

ot_status tk_ranges(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    p->n_ranges = 0;
    OT_TRY(tk_expect(lx, '['));
    do {
        if (p->n_ranges == OT_TK_RANK_MAX)
            return tk_fail(lx, "more than %d ranges", OT_TK_RANK_MAX);
        ot_tk_range *r = &p->ranges[p->n_ranges++];
        OT_TRY(parse_affine(p, &r->lo));
        OT_TRY(tk_expect(lx, ':'));
        OT_TRY(parse_affine(p, &r->hi));
    } while (tk_accept(lx, ','));
    return tk_expect(lx, ']');
}
