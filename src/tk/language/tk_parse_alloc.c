/* The parser of buffers and views of them.
 *
 *   alloc NAME: TYPE @SCOPE [multi=N ...] [warp=N] [with=NAME] [unique | hold]
 *   alloc NAME: TYPE from POOL             workspace NAME: TYPE
 *   alias NAME = BASE: TYPE                subview NAME = BASE[ranges]
 */
#include "tk_internal.h"

/* @SCOPE, or from POOL */
static ot_status parse_memory(tk_parser *p, ot_tk_value *v)
{
    tk_lexer *lx = &p->lx;
    const ot_kernel *k = p->b.k;
    if (!tk_accept_word(lx, "from")) return tk_scope(p, v);
    for (uint32_t i = 0; i < k->n_pools && !v->pool; i++)
        if (tk_is_word(lx, k->pools[i].name)) v->pool = i + 1;
    if (!v->pool) return tk_expected(lx, "the name of a pool");
    v->scope = k->pools[v->pool - 1].scope;
    tk_lex_next(lx);
    return lx->r.status;
}

ot_status tk_parse_warp(tk_parser *p, uint32_t *warp)
{
    int64_t n = 0;
    uint32_t line = p->lx.r.tok_line, col = p->lx.r.tok_col;
    OT_TRY(tk_expect_int(&p->lx, &n));
    if (n > 1023) return tk_fail_at(&p->lx, line, col, "warps are 0 to 1023 [tmem-warp]");
    *warp = (uint32_t)n + 1;
    return OT_OK;
}

/* `unique` or `hold`, and not the output of the next statement. */
static ot_tk_keep parse_keep(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    const tk_lexer before = *lx;
    const bool unique = tk_is_word(lx, "unique");
    if (!unique && !tk_is_word(lx, "hold")) return OT_TK_KEEP_LIVE;
    tk_lex_next(lx);
    if (!tk_is(lx, '=') && !tk_is(lx, ',')) return unique ? OT_TK_KEEP_ALL : OT_TK_KEEP_LOOP;
    *lx = before;
    return OT_TK_KEEP_LIVE;
}

/* `with=NAME`: an alloc of the same memory. */
static ot_status parse_with(tk_parser *p, ot_tk_value *v)
{
    tk_lexer *lx = &p->lx;
    uint32_t line = lx->r.tok_line, col = lx->r.tok_col, other;
    OT_TRY(tk_old_name(p, &other));
    const ot_tk_value *x = &p->b.k->values[other];
    if (x->kind != OT_TK_BUFFER || x->scope != v->scope || x->pool != v->pool)
        return tk_fail_at(lx, line, col, "'%s' is no alloc in the memory of '%s' [with-alloc]",
                          x->name, v->name);
    if (x->multi != v->multi)
        return tk_fail_at(lx, line, col, "'%s' has multi=%u, '%s' multi=%u [with-multi]", x->name,
                          x->multi, v->name, v->multi);
    v->with = other + 1;
    return OT_OK;
}

ot_status tk_parse_alloc(tk_parser *p, bool workspace)
{
    ot_tk_stmt s = tk_new_stmt(p, OT_TK_ALLOC);
    tk_lex_next(&p->lx);
    OT_TRY(tk_any_name(p, "a name"));
    ot_tk_value v = tk_new_value(p, &p->words[0], OT_TK_BUFFER);
    v.workspace = workspace;
    OT_TRY(tk_expect(&p->lx, ':'));
    OT_TRY(tk_type(p, &v));
    if (!workspace) OT_TRY(parse_memory(p, &v));
    OT_TRY(tk_attributes(p, &v));
    if (tk_accept_setting(p, "warp", false)) OT_TRY(tk_parse_warp(p, &v.warp));
    if (tk_accept_setting(p, "with", true)) OT_TRY(parse_with(p, &v));
    v.keep = parse_keep(p);
    return p->lx.r.status == OT_OK ? tk_define(p, &v, s) : p->lx.r.status;
}

/* NAME = BASE: a view's beginning. */
static ot_status parse_view(tk_parser *p, ot_tk_kind kind, ot_tk_value *v)
{
    tk_lex_next(&p->lx);
    OT_TRY(tk_any_name(p, "a name"));
    *v = tk_new_value(p, &p->words[0], kind);
    OT_TRY(tk_expect(&p->lx, '='));
    OT_TRY(tk_old_name(p, &v->base));
    v->scope = p->b.k->values[v->base].scope;
    return OT_OK;
}

ot_status tk_parse_alias(tk_parser *p)
{
    ot_tk_stmt s = tk_new_stmt(p, OT_TK_VIEW);
    ot_tk_value v;
    OT_TRY(parse_view(p, OT_TK_ALIAS, &v));
    OT_TRY(tk_expect(&p->lx, ':'));
    OT_TRY(tk_type(p, &v));
    return tk_define(p, &v, s);
}

ot_status tk_parse_subview(tk_parser *p)
{
    ot_tk_stmt s = tk_new_stmt(p, OT_TK_VIEW);
    ot_tk_value v;
    OT_TRY(parse_view(p, OT_TK_SUBVIEW, &v));
    const ot_tk_value *base = &p->b.k->values[v.base];
    OT_TRY(tk_ranges(p));
    if (p->n_ranges != base->rank)
        return tk_fail_at(&p->lx, s.line, s.col, "%u ranges for '%s', which has %u dimensions",
                          p->n_ranges, base->name, base->rank);
    v.dtype = base->dtype;
    v.rank = base->rank;
    for (uint32_t d = 0; d < v.rank; d++)
        if (!tk_extent(&p->ranges[d], &v.dims[d])) v.dims[d] = 0; /* the verifier will say so */
    if (!tk_type_bytes(v.dtype, v.dims, v.rank, &v.bytes)) v.bytes = 0;
    v.ranges = ot_memdup(p->b.k->arena, p->ranges, p->n_ranges * sizeof *p->ranges);
    return v.ranges ? tk_define(p, &v, s) : tk_fail_nomem(&p->lx);
}
