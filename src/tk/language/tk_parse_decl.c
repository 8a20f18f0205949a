/* The parser of what tile languages declare besides plain buffers.
 *
 *   size n <= 4096                         known when the kernel runs, planned at the bound
 *   size t = auto [multiple=16] <= 256     chosen by the planner; size t = 64: given
 *   pool P max=1M block=4K @shared         memory that is handed out in blocks: alloc a: 64x64 f16
 *                                          from P
 *   var i: i32 [= 1] [@local.var] [= 1]    one element, 0 when no value is given; init=1 says the
 *                                          same
 *   reducer r: 16 f32 op=sum [replication=all|none]
 *   descriptor d: u64 wgmma|tcgen05|utcmma|tcgen05.instruction
 *   check is_aligned(a, 256)               of the planned address, when the kernel is planned
 *   check address_of(a) == 4096
 *   block { ... }                          what is allocated inside is freed at its end
 *
 * The words are none of the language's: in front of '=' and ',' they are a buffer's name.
 */
#include "tk_internal.h"

#include <math.h>

/* ---- sizes ---- */

const ot_tk_size *tk_size_here(const tk_parser *p)
{
    const ot_kernel *k = p->b.k;
    for (uint32_t i = 0; i < k->n_sizes && p->lx.tok == TK_NAME; i++)
        if (strcmp(k->sizes[i].name, p->lx.name) == 0) return &k->sizes[i];
    return NULL;
}

ot_status tk_extent_here(tk_parser *p, int64_t *out, const char **which)
{
    const ot_tk_size *s = tk_size_here(p);
    if (which) *which = NULL;
    if (!s) return tk_expect_int(&p->lx, out);
    bool bounded = !s->is_auto && !s->is_fixed;
    if (bounded && !which)
        return tk_fail(&p->lx,
                       "'%s' is known when the kernel runs only: it stands in shapes and ends of "
                       "loops [size-window]",
                       s->name);
    *out = s->value;
    if (bounded) *which = s->name;
    tk_lex_next(&p->lx);
    return p->lx.r.status;
}

/* The value that the caller gives, else the bound. */
static ot_status bind_size(tk_parser *p, ot_tk_size *s)
{
    const ot_tk_binding *given = ot_tk_binding_of(p->given, p->n_given, s->name);
    s->value = given ? given->value : s->bound;
    if (s->value < 1 || (s->value > s->bound && !s->is_fixed))
        return tk_fail_at(&p->lx, s->line, s->col,
                          "'%s' is %lld, but 1 to %lld are allowed [size-bound]", s->name,
                          (long long)s->value, (long long)s->bound);
    return OT_OK;
}

/* NAME <= N, NAME = auto [multiple=N] <= N, NAME = N [multiple=N] */
static ot_status parse_size(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    ot_kernel *k = p->b.k;
    if (k->n_stmts > 0 || k->n_values > 0)
        return tk_fail(lx, "sizes come before all params and statements");
    if (k->n_sizes == OT_TK_SIZES_MAX) return tk_fail(lx, "more than %d sizes", OT_TK_SIZES_MAX);
    if (tk_size_here(p)) return tk_fail(lx, "'%s' is a size already", lx->name);
    ot_tk_size s = {.line = lx->r.tok_line, .col = lx->r.tok_col, .multiple = 1};
    p->n_words = 0;
    OT_TRY(tk_any_name(p, "a name"));
    s.name = p->words[0].name;
    if (tk_accept(lx, '=')) {
        s.is_auto = tk_accept_word(lx, "auto");
        s.is_fixed = !s.is_auto;
        s.multiple = 16; /* what matrix units and DMA like */
        if (s.is_fixed) OT_TRY(tk_expect_int(lx, &s.bound));
        if (s.is_fixed) s.multiple = ot_min(s.multiple, ot_max(1, s.bound));
        s.asks = s.is_auto;
        if (tk_accept_setting(p, "multiple", false)) {
            OT_TRY(tk_expect_int(lx, &s.multiple));
            s.asks = false;
        }
    }
    if (!s.is_fixed) {
        OT_TRY(tk_expect(lx, 'l'));
        OT_TRY(tk_expect_int(lx, &s.bound));
    }
    if (s.bound < 1 || s.bound > (int64_t)1 << 40 || s.multiple < 1 || s.multiple > s.bound)
        return tk_fail_at(lx, s.line, s.col,
                          "the bound of '%s' is 1 to 2^40, and at least its multiple [size-bound]",
                          s.name);
    OT_TRY(bind_size(p, &s));
    return OT_PUSH(k->arena, k->sizes, k->n_sizes, p->cap_sizes, s) ? lx->r.status
                                                                    : tk_fail_nomem(lx);
}

/* ---- pools ---- */

static ot_status parse_pool(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    ot_kernel *k = p->b.k;
    ot_tk_value memory = {0};
    if (k->n_stmts > 0) return tk_fail(lx, "pools come before all statements");
    if (k->n_pools == OT_TK_POOLS_MAX) return tk_fail(lx, "more than %d pools", OT_TK_POOLS_MAX);
    ot_tk_pool x = {.line = lx->r.tok_line, .col = lx->r.tok_col, .block = 1};
    p->n_words = 0;
    OT_TRY(tk_any_name(p, "a name"));
    x.name = p->words[0].name;
    for (uint32_t i = 0; i < k->n_pools; i++)
        if (strcmp(k->pools[i].name, x.name) == 0)
            return tk_fail_at(lx, x.line, x.col, "'%s' is a pool already", x.name);
    OT_TRY(tk_expect_word(lx, "max"));
    OT_TRY(tk_expect(lx, '='));
    OT_TRY(tk_expect_int(lx, &x.max));
    if (tk_accept_word(lx, "block")) {
        OT_TRY(tk_expect(lx, '='));
        OT_TRY(tk_expect_int(lx, &x.block));
    }
    OT_TRY(tk_scope(p, &memory));
    x.scope = memory.scope;
    if (x.block < 1 || x.max < x.block || x.max % x.block != 0 || x.max > (int64_t)1 << 50)
        return tk_fail_at(lx, x.line, x.col,
                          "the pool '%s' has a whole number of blocks, at least one [pool-blocks]",
                          x.name);
    return OT_PUSH(k->arena, k->pools, k->n_pools, p->cap_pools, x) ? lx->r.status
                                                                    : tk_fail_nomem(lx);
}

/* ---- values ---- */

static ot_tk_value new_kind(tk_parser *p, ot_scope scope)
{
    ot_tk_value v = tk_new_value(p, &p->words[1], OT_TK_BUFFER);
    v.scope = scope;
    v.rank = 1;
    v.dims[0] = 1;
    return v;
}

static ot_status parse_dtype(tk_parser *p, ot_tk_value *v)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(tk_expect(lx, ':'));
    v->dtype = lx->tok == TK_NAME ? tk_dtype_parse(lx->name) : NULL;
    if (!v->dtype) return tk_expected(lx, "an element type such as f32");
    if (!tk_type_bytes(v->dtype, v->dims, v->rank, &v->bytes)) v->bytes = 0;
    tk_lex_next(lx);
    return lx->r.status;
}

/* = N, init=N */
static ot_status parse_init(tk_parser *p, ot_tk_value *v)
{
    tk_lexer *lx = &p->lx;
    bool word = tk_is_word(lx, "init");
    if (!word && !tk_is(lx, '=')) return OT_OK;
    const tk_lexer before = *lx;
    if (word) tk_lex_next(lx);
    if (!tk_accept(lx, '=') ||
        (lx->tok != TK_INT && lx->tok != TK_FLOAT && !tk_is(lx, '-') && !tk_is_word(lx, "inf"))) {
        if (!word) return tk_expected(lx, "a number");
        *lx = before; /* a buffer that is called init */
        return lx->r.status;
    }
    bool minus = tk_accept(lx, '-');
    v->init = lx->tok == TK_INT     ? (double)lx->value
              : lx->tok == TK_FLOAT ? lx->number
                                    : (double)INFINITY;
    if (minus) v->init = -v->init;
    tk_lex_next(lx);
    return lx->r.status;
}

static ot_status parse_var(tk_parser *p, ot_tk_stmt s)
{
    OT_TRY(tk_any_name(p, "a name"));
    ot_tk_value v = new_kind(p, OT_SCOPE_VAR);
    OT_TRY(parse_dtype(p, &v));
    OT_TRY(parse_init(p, &v));
    if (tk_is(&p->lx, '@')) {
        uint32_t line = p->lx.r.tok_line, col = p->lx.r.tok_col;
        OT_TRY(tk_scope(p, &v));
        if (v.scope != OT_SCOPE_VAR)
            return tk_fail_at(&p->lx, line, col, "the var '%s' is in local.var [var-scope]",
                              v.name);
        OT_TRY(parse_init(p, &v));
    }
    OT_TRY(tk_attributes(p, &v));
    s.op = OT_TK_ALLOC;
    return tk_define(p, &v, s);
}

/* WORD=one of the names; *which its number. */
static ot_status parse_choice(tk_parser *p, const char *word, const char *const *names, int n,
                              int *which)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(tk_expect_word(lx, word));
    OT_TRY(tk_expect(lx, '='));
    for (*which = 0; *which < n; ++*which)
        if (tk_accept_word(lx, names[*which])) return lx->r.status;
    return tk_fail(lx, "%s is %s, %s%s%s [reducer-op]", word, names[0], names[1], n > 2 ? ", " : "",
                   n > 2 ? names[2] : "");
}

static ot_status parse_reducer(tk_parser *p, ot_tk_stmt s)
{
    static const char *const ops[] = {"sum", "max", "min"}, *const copies[] = {"all", "none"};
    int which;
    OT_TRY(tk_any_name(p, "a name"));
    ot_tk_value v = new_kind(p, OT_SCOPE_REDUCER);
    OT_TRY(tk_expect(&p->lx, ':'));
    OT_TRY(tk_type(p, &v));
    OT_TRY(parse_choice(p, "op", ops, 3, &which));
    v.reduction = (ot_tk_reduction)(OT_TK_SUM + which);
    if (tk_accept_setting(p, "replication", true)) {
        which = tk_is_word(&p->lx, copies[0]) ? 0 : tk_is_word(&p->lx, copies[1]) ? 1 : 2;
        if (which == 2) return tk_fail(&p->lx, "replication is all or none [reducer-replication]");
        v.replication = which ? OT_TK_REPLICATION_NONE : OT_TK_REPLICATION_ALL;
        tk_lex_next(&p->lx);
    }
    OT_TRY(tk_attributes(p, &v));
    s.op = OT_TK_ALLOC;
    return tk_define(p, &v, s);
}

static ot_status parse_descriptor(tk_parser *p, ot_tk_stmt s)
{
    static const struct {
        const char *name;
        ot_tk_descriptor kind;
    } kinds[] = {{"wgmma", OT_TK_WGMMA},
                 {"tcgen05", OT_TK_TCGEN05},
                 {"utcmma", OT_TK_TCGEN05},
                 {"tcgen05.instruction", OT_TK_TCGEN05_INSTRUCTION}};
    tk_lexer *lx = &p->lx;
    OT_TRY(tk_any_name(p, "a name"));
    ot_tk_value v = new_kind(p, OT_SCOPE_DESCRIPTOR);
    OT_TRY(parse_dtype(p, &v));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !v.descriptor; k++)
        if (tk_accept_word(lx, kinds[k].name)) v.descriptor = kinds[k].kind;
    if (!v.descriptor)
        return tk_fail(
            lx,
            "a descriptor is for wgmma, tcgen05 (utcmma) or tcgen05.instruction [descriptor-kind]");
    OT_TRY(tk_attributes(p, &v));
    s.op = OT_TK_ALLOC;
    return tk_define(p, &v, s);
}

/* ---- checks ---- */

/* is_aligned(NAME, N), address_of(NAME) == N */
static ot_status parse_check(tk_parser *p, ot_tk_stmt s)
{
    tk_lexer *lx = &p->lx;
    uint32_t id;
    bool aligned = tk_is_word(lx, "is_aligned");
    if (!aligned && !tk_is_word(lx, "address_of"))
        return tk_expected(lx, "is_aligned(NAME, N) or address_of(NAME) == N");
    s.op = OT_TK_CHECK;
    s.name = aligned ? "is_aligned" : "address_of";
    tk_lex_next(lx);
    OT_TRY(tk_expect(lx, '('));
    OT_TRY(tk_old_name(p, &id));
    if (aligned) OT_TRY(tk_expect(lx, ','));
    if (!aligned) {
        OT_TRY(tk_expect(lx, ')'));
        OT_TRY(tk_expect(lx, '='));
        OT_TRY(tk_expect(lx, '='));
    }
    OT_TRY(tk_expect_int(lx, &s.keep));
    if (aligned) OT_TRY(tk_expect(lx, ')'));
    s.in = &id;
    s.n_in = 1;
    return tk_add(p, &s);
}

/* ---- blocks ---- */

static ot_status open_scope(tk_parser *p)
{
    if (p->n_scopes == OT_TK_DEPTH_MAX)
        return tk_fail(&p->lx, "blocks nest more than %d deep", OT_TK_DEPTH_MAX);
    p->scopes[p->n_scopes].n_open = p->b.n_open;
    p->scopes[p->n_scopes++].n_stmts = p->b.k->n_stmts;
    return tk_expect(&p->lx, '{');
}

/* Is value v freed by a statement of this block? */
static bool is_freed(const ot_kernel *k, uint32_t v, uint32_t from, uint32_t parent)
{
    for (uint32_t i = k->values[v].stmt + 1; i < k->n_stmts; i++) {
        const ot_tk_stmt *s = &k->stmts[i];
        if (s->op == OT_TK_FREE && s->parent == parent && i >= from &&
            ot_tk_root(k, s->in[0], NULL) == v)
            return true;
    }
    return false;
}

ot_status tk_close_scope(tk_parser *p, bool *closed)
{
    ot_kernel *k = p->b.k;
    *closed = p->n_scopes > 0 && p->scopes[p->n_scopes - 1].n_open == p->b.n_open;
    if (!*closed) return OT_OK;
    ot_tk_stmt s = tk_new_stmt(p, OT_TK_FREE);
    uint32_t from = p->scopes[--p->n_scopes].n_stmts, parent = tk_innermost(&p->b);
    for (uint32_t i = k->n_stmts; i-- > from;) {
        const ot_tk_stmt *a = &k->stmts[i];
        if (a->op != OT_TK_ALLOC || a->parent != parent) continue;
        uint32_t v = a->out[0];
        /* barriers are not freed, tensor memory by those who took it */
        ot_scope scope = k->values[v].scope;
        if (scope == OT_SCOPE_BARRIER || scope == OT_SCOPE_TMEM || is_freed(k, v, from, parent))
            continue;
        s.in = &v;
        s.n_in = 1;
        OT_TRY(tk_add(p, &s));
    }
    tk_lex_next(&p->lx);
    return p->lx.r.status;
}

ot_status tk_parse_declaration(tk_parser *p, const char *word, ot_tk_stmt *s, bool *known)
{
    static const struct {
        const char *word;
        ot_status (*parse)(tk_parser *, ot_tk_stmt);
    } words[] = {{"var", parse_var},
                 {"reducer", parse_reducer},
                 {"descriptor", parse_descriptor},
                 {"check", parse_check}};
    *known = true;
    if (strcmp(word, "block") == 0 && tk_is(&p->lx, '{')) return open_scope(p);
    if (p->lx.tok == TK_NAME) {
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            if (strcmp(words[k].word, word) == 0) return words[k].parse(p, *s);
        if (strcmp(word, "size") == 0) return parse_size(p);
        if (strcmp(word, "pool") == 0) return parse_pool(p);
    }
    *known = false;
    return OT_OK;
}
