/* The parser of .tk kernels: statements and blocks.
 *
 *   kernel NAME [target "..."] { param...  statement... }
 *
 *   statement: alloc  workspace  alias  subview  free  load  store  copy  yield
 *                                                         begins with its word
 *              [names =] for | while | if ... { ... }     block
 *              names = PIPE.OP(...)                       operation
 *              place [yield] NAME: TYPE @SCOPE offset=N   no statement: a value's offsets
 *
 * Blocks nest through the builder's list of open blocks, not through recursion: a text cannot
 * use up the stack. Results and carried names are new values; their types follow from the inits
 * and, for `if`, from what is yielded first. All rules beyond syntax and the meaning of names
 * are checked at the end by ot_kernel_verify, on the whole kernel.
 */
#include "tk_internal.h"

/* ---- values ---- */

ot_tk_value tk_new_value(const tk_parser *p, const tk_word *w, ot_tk_kind kind)
{
    return (ot_tk_value){.name = w->name,
                         .kind = kind,
                         .line = w->line,
                         .col = w->col,
                         .scope = OT_SCOPE_GM,
                         .multi = 1,
                         .base = OT_NONE,
                         .stmt = kind == OT_TK_PARAM ? OT_NONE : p->b.k->n_stmts};
}

/* Append v under its name. */
ot_status tk_add_named(tk_parser *p, const ot_tk_value *v, uint32_t *id)
{
    if (p->b.k->n_values == TK_ITEMS_MAX)
        return tk_fail_at(&p->lx, v->line, v->col, "more than %u values", TK_ITEMS_MAX);
    *id = tk_add_value(&p->b, *v);
    return *id != OT_NONE && ot_map_put(p->names, v->name, *id) ? OT_OK : tk_fail_nomem(&p->lx);
}

ot_status tk_add(tk_parser *p, const ot_tk_stmt *s)
{
    return tk_add_stmt(&p->b, *s) != OT_NONE ? OT_OK : tk_fail_nomem(&p->lx);
}

/* The statement begins at the current token. */
ot_tk_stmt tk_new_stmt(const tk_parser *p, ot_tk_op op)
{
    return (ot_tk_stmt){
        .op = op, .line = p->lx.r.tok_line, .col = p->lx.r.tok_col, .mate = OT_NONE};
}

/* Append v and the statement that defines it. */
ot_status tk_define(tk_parser *p, const ot_tk_value *v, ot_tk_stmt s)
{
    uint32_t id;
    OT_TRY(tk_add_named(p, v, &id));
    s.out = &id;
    s.n_out = 1;
    return tk_add(p, &s);
}

/* ---- declarations ---- */

/* After the word `param` or `empty`. */
static ot_status parse_param(tk_parser *p, bool empty)
{
    uint32_t id;
    if (p->b.k->n_stmts > 0) return tk_fail(&p->lx, "params come before all statements");
    p->n_words = 0;
    OT_TRY(tk_any_name(p, "a name"));
    ot_tk_value v = tk_new_value(p, &p->words[0], OT_TK_PARAM);
    v.empty = empty;
    OT_TRY(tk_expect(&p->lx, ':'));
    OT_TRY(tk_type(p, &v));
    OT_TRY(tk_scope(p, &v));
    return tk_add_named(p, &v, &id);
}

/* ---- movement ---- */

/* A buffer whose shape is `auto` has that of what is moved into it first. */
static void take_shape(const tk_parser *p, uint32_t dst, uint32_t src)
{
    ot_tk_value *to = &p->b.k->values[dst];
    const ot_tk_value *from = &p->b.k->values[src];
    if (to->rank > 0 || to->kind != OT_TK_BUFFER) return;
    to->rank = from->rank;
    memcpy(to->dims, from->dims, sizeof to->dims);
    memcpy(to->sizes, from->sizes, sizeof to->sizes);
    for (uint32_t d = 0; d < p->n_ranges && d < to->rank; d++) {
        to->sizes[d] = NULL;
        if (!tk_extent(&p->ranges[d], &to->dims[d])) to->dims[d] = 0; /* the verifier will say so */
    }
    if (!tk_type_bytes(to->dtype, to->dims, to->rank, &to->bytes)) to->bytes = 0;
}

/* load DST <- SRC[window], store DST[window] <- SRC, copy[.PIPE] DST <- SRC */
static ot_status parse_move(tk_parser *p, ot_tk_op op)
{
    tk_lexer *lx = &p->lx;
    ot_tk_stmt s = tk_new_stmt(p, op);
    uint32_t dst, src;
    if (op == OT_TK_COPY && lx->r.len > 4) { /* after "copy." */
        s.explicit_pipe = true;
        if (!tk_pipe_parse(lx->name + 5, lx->r.len - 5, &s.pipe))
            return tk_expected(lx, "copy.PIPE (vector cube scalar dma_in dma_out)");
    }
    p->n_ranges = 0;
    tk_lex_next(lx);
    OT_TRY(tk_old_name(p, &dst));
    if (op == OT_TK_STORE && tk_is(lx, '[')) OT_TRY(tk_ranges(p));
    OT_TRY(tk_expect(lx, '<'));
    OT_TRY(tk_old_name(p, &src));
    if (op == OT_TK_LOAD && tk_is(lx, '[')) OT_TRY(tk_ranges(p));
    if (op == OT_TK_LOAD) s.pipe = OT_PIPE_DMA_IN;
    if (op == OT_TK_STORE) s.pipe = OT_PIPE_DMA_OUT;
    if (op == OT_TK_COPY && !s.explicit_pipe)
        s.pipe = ot_tk_copy_pipe(p->b.k->values[src].scope, p->b.k->values[dst].scope);
    s.out = &dst;
    s.in = &src;
    s.n_out = s.n_in = 1;
    s.ranges = p->n_ranges > 0 ? p->ranges : NULL;
    s.n_ranges = p->n_ranges;
    OT_TRY(tk_parse_stream(p, &s));
    take_shape(p, dst, src);
    return tk_add(p, &s);
}

static ot_status parse_free(tk_parser *p)
{
    ot_tk_stmt s = tk_new_stmt(p, OT_TK_FREE);
    uint32_t id;
    tk_lex_next(&p->lx);
    OT_TRY(tk_old_name(p, &id));
    s.in = &id;
    s.n_in = 1;
    if (tk_accept_setting(p, "warp", false)) OT_TRY(tk_parse_warp(p, &s.warp));
    return p->lx.r.status == OT_OK ? tk_add(p, &s) : p->lx.r.status;
}

/* ---- operations ---- */

/* PIPE.OP(...), after `names =`. */
static ot_status parse_compute(tk_parser *p, ot_tk_stmt *s)
{
    tk_lexer *lx = &p->lx;
    const char *dot = lx->tok == TK_NAME ? strchr(lx->name, '.') : NULL;
    s->op = OT_TK_COMPUTE;
    if (!dot || !tk_pipe_parse(lx->name, (size_t)(dot - lx->name), &s->pipe))
        return tk_expected(
            lx, "for, while, if or PIPE.OPERATION (pipes: vector cube scalar dma_in dma_out)");
    if (!tk_is_name(dot + 1)) return tk_expected(lx, "an operation after the pipe");
    s->name = ot_strdup(p->b.k->arena, dot + 1);
    uint32_t *out = OT_NEW_N(p->scratch, uint32_t, p->n_words);
    if (!s->name || !out) return tk_fail_nomem(lx);
    for (size_t k = 0; k < p->n_words; k++) {
        const tk_word *w = &p->words[k];
        if (w->id == OT_NONE)
            return tk_fail_at(
                lx, w->line, w->col,
                "'%s' is not defined before this line (operations write buffers that exist)",
                w->name);
        out[k] = w->id;
    }
    s->out = out;
    s->n_out = (uint32_t)p->n_words;
    tk_lex_next(lx);
    OT_TRY(tk_call(p));
    s->in = p->ids;
    s->n_in = (uint32_t)p->n_ids;
    s->attrs = p->attrs;
    s->n_attrs = (uint32_t)p->n_attrs;
    return tk_add(p, s);
}

/* ---- blocks ---- */

/* lo..hi [step N] */
static ot_status parse_bounds(tk_parser *p, ot_tk_stmt *s)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(tk_expect_int(lx, &s->lo));
    OT_TRY(tk_expect(lx, '.'));
    s->hi = -1;
    if (!tk_accept(lx, '?')) OT_TRY(tk_extent_here(p, &s->hi, &s->hi_size));
    s->step = 1;
    if (tk_accept_word(lx, "step")) OT_TRY(tk_extent_here(p, &s->step, NULL));
    return lx->r.status;
}

/* (s) or (?); *condition OT_NONE for the latter. */
static ot_status parse_condition(tk_parser *p, uint32_t *condition)
{
    *condition = OT_NONE;
    OT_TRY(tk_expect(&p->lx, '('));
    if (!tk_accept(&p->lx, '?')) OT_TRY(tk_old_name(p, condition));
    return tk_expect(&p->lx, ')');
}

/* [carry (acc = init, ...)]: names to p->words, inits to p->ids. */
static ot_status parse_carry(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    if (!tk_accept_word(lx, "carry")) return lx->r.status;
    OT_TRY(tk_expect(lx, '('));
    do {
        uint32_t init;
        OT_TRY(tk_any_name(p, "a name"));
        OT_TRY(tk_expect(lx, '='));
        OT_TRY(tk_old_name(p, &init));
        if (!OT_PUSH(p->scratch, p->ids, p->n_ids, p->cap_ids, init)) return tk_fail_nomem(lx);
    } while (tk_accept(lx, ','));
    return tk_expect(lx, ')');
}

/* Values for `n` words from `first` on, of the types of p->ids (`typed`) or of none yet; *ids is
 * in scratch. */
static ot_status new_values(tk_parser *p, size_t first, size_t n, ot_tk_kind kind, bool typed,
                            uint32_t **ids)
{
    *ids = OT_NEW_N(p->scratch, uint32_t, n);
    if (!*ids) return tk_fail_nomem(&p->lx);
    for (size_t k = 0; k < n; k++) {
        ot_tk_value v = tk_new_value(p, &p->words[first + k], kind);
        if (typed) {
            const ot_tk_value *init = &p->b.k->values[p->ids[k]];
            v.rank = init->rank;
            memcpy(v.dims, init->dims, sizeof v.dims);
            v.dtype = init->dtype;
            memcpy(v.sizes, init->sizes, sizeof v.sizes);
            v.bytes = init->bytes;
            v.scope = init->scope;
        }
        OT_TRY(tk_add_named(p, &v, &(*ids)[k]));
    }
    return OT_OK;
}

/* After the head: results, carried values, the statement, its block. */
static ot_status open_block(tk_parser *p, ot_tk_stmt *s, size_t n_results, uint32_t condition)
{
    tk_lexer *lx = &p->lx;
    uint32_t *results, *carried;
    bool loop = s->op != OT_TK_IF;
    size_t n_carried = p->n_words - n_results;
    if (loop && n_carried != n_results)
        return tk_fail_at(lx, s->line, s->col, "%zu results, but %zu carried values", n_results,
                          n_carried);
    if (p->b.n_open == OT_TK_DEPTH_MAX)
        return tk_fail_at(lx, s->line, s->col, "blocks nest more than %d deep", OT_TK_DEPTH_MAX);
    OT_TRY(new_values(p, 0, n_results, OT_TK_RESULT, loop, &results));
    OT_TRY(new_values(p, n_results, n_carried, OT_TK_CARRIED, loop, &carried));
    s->out = results;
    s->n_out = (uint32_t)n_results;
    if (loop) s->carried = carried;
    s->has_condition = condition != OT_NONE;
    if (s->has_condition && !OT_PUSH(p->scratch, p->ids, p->n_ids, p->cap_ids, condition))
        return tk_fail_nomem(lx);
    s->in = p->ids;
    s->n_in = (uint32_t)p->n_ids;
    if (tk_open(&p->b, *s) == OT_NONE) return tk_fail_nomem(lx);
    return tk_expect(lx, '{');
}

static ot_status parse_for(tk_parser *p, ot_tk_stmt *s)
{
    tk_lexer *lx = &p->lx;
    size_t n_results = p->n_words;
    s->op = OT_TK_FOR;
    tk_lex_next(lx);
    if (lx->tok != TK_NAME || tk_is_keyword(lx->name)) return tk_expected(lx, "a loop variable");
    s->var = ot_strdup(p->b.k->arena, lx->name);
    if (!s->var) return tk_fail_nomem(lx);
    tk_lex_next(lx);
    OT_TRY(tk_expect_word(lx, "in"));
    OT_TRY(parse_bounds(p, s));
    OT_TRY(parse_carry(p));
    return open_block(p, s, n_results, OT_NONE);
}

static ot_status parse_while(tk_parser *p, ot_tk_stmt *s)
{
    size_t n_results = p->n_words;
    uint32_t condition;
    s->op = OT_TK_WHILE;
    tk_lex_next(&p->lx);
    OT_TRY(parse_condition(p, &condition));
    OT_TRY(parse_carry(p));
    return open_block(p, s, n_results, condition);
}

static ot_status parse_if(tk_parser *p, ot_tk_stmt *s)
{
    uint32_t condition;
    s->op = OT_TK_IF;
    tk_lex_next(&p->lx);
    OT_TRY(parse_condition(p, &condition));
    return open_block(p, s, p->n_words, condition);
}

/* The results of an `if` have the types of what its first branch yields. */
static void type_results(ot_kernel *k, uint32_t opener, const uint32_t *ids, size_t n)
{
    const ot_tk_stmt *s = &k->stmts[opener];
    if (s->op != OT_TK_IF) return;
    for (size_t j = 0; j < n && j < s->n_out; j++) {
        ot_tk_value *r = &k->values[s->out[j]];
        const ot_tk_value *v = &k->values[ids[j]];
        if (r->rank > 0 || r == v) continue; /* known; or its own, which is an error */
        r->rank = v->rank;
        memcpy(r->dims, v->dims, sizeof r->dims);
        r->dtype = v->dtype;
        r->bytes = v->bytes;
        r->scope = v->scope;
    }
}

static ot_status parse_yield(tk_parser *p)
{
    ot_tk_stmt s = tk_new_stmt(p, OT_TK_YIELD);
    tk_lex_next(&p->lx);
    OT_TRY(tk_operands(p));
    s.mate = tk_innermost(&p->b);
    s.in = p->ids;
    s.n_in = (uint32_t)p->n_ids;
    if (s.mate != OT_NONE) type_results(p->b.k, s.mate, p->ids, p->n_ids);
    return tk_add(p, &s);
}

/* '}' [else {]: the current token is the '}'. */
static ot_status close_block(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    uint32_t line = lx->r.tok_line, col = lx->r.tok_col;
    const ot_tk_stmt *opener = &p->b.k->stmts[tk_innermost(&p->b)];
    bool may_else = opener->op == OT_TK_IF && opener->mate == OT_NONE;
    tk_lex_next(lx);
    if (may_else && tk_is_word(lx, "else")) {
        if (tk_else(&p->b, lx->r.tok_line, lx->r.tok_col) == OT_NONE) return tk_fail_nomem(lx);
        tk_lex_next(lx);
        return tk_expect(lx, '{');
    }
    return tk_close(&p->b, line, col) != OT_NONE ? lx->r.status : tk_fail_nomem(lx);
}

/* ---- statements ---- */

/* [yield] NAME: TYPE @SCOPE [multi=N] offset=N[,N...], after `place`: of a carried value or a
 * result, or of what is yielded to a carried value. No word of the language: before '=' and ','
 * it is a buffer's name. */
static ot_status parse_place(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    ot_tk_value place = {.multi = 1};
    char had[TK_TYPE_TEXT], given[TK_TYPE_TEXT];
    uint32_t id;
    if (p->b.n_open > 0)
        return tk_fail(lx, "'place' stands at the kernel's end, outside of blocks");
    bool waits = tk_accept_word(lx, "yield");
    uint32_t line = lx->r.tok_line, col = lx->r.tok_col;
    OT_TRY(tk_old_name(p, &id));
    ot_tk_value *v = &p->b.k->values[id];
    if (v->kind != OT_TK_CARRIED && (waits || v->kind != OT_TK_RESULT))
        return tk_fail_at(lx, line, col, "'%s' is no carried value%s", v->name,
                          waits ? "" : " and no result");
    OT_TRY(tk_expect(lx, ':'));
    OT_TRY(tk_type(p, &place));
    OT_TRY(tk_scope(p, &place));
    OT_TRY(tk_attributes(p, &place));
    if (!tk_same_type(v, &place))
        return tk_fail_at(lx, line, col, "'%s' is %s, its place %s", v->name, tk_type_text(v, had),
                          tk_type_text(&place, given));
    if (place.n_offsets == 0 || place.n_offsets != place.multi || place.align != 0)
        return tk_fail_at(lx, line, col,
                          "the place of '%s' has an offset for each slot and no alignment",
                          v->name);
    if (waits ? v->n_waits : v->n_offsets)
        return tk_fail_at(lx, line, col, "'%s' has two places", v->name);
    if (waits) v->n_waits = place.n_offsets;
    if (!waits) v->n_offsets = place.n_offsets;
    memcpy(waits ? v->waits : v->offsets, place.offsets, sizeof place.offsets);
    return lx->r.status;
}

/* names = ..., or a block without results; or a place */
static ot_status parse_named(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    ot_tk_stmt s = tk_new_stmt(p, OT_TK_COMPUTE);
    bool block = tk_is_word(lx, "for") || tk_is_word(lx, "while") || tk_is_word(lx, "if");
    if (!block) {
        do {
            OT_TRY(tk_any_name(p, "a statement"));
            if (p->n_words > 1 || tk_is(lx, '=') || tk_is(lx, ',')) continue;
            if (lx->tok == TK_NAME && strcmp(p->words[0].name, "place") == 0) return parse_place(p);
            if (tk_is_word(lx, "for") && strcmp(p->words[0].name, "parallel") == 0) {
                s.parallel = true;
                p->n_words = 0;
                return parse_for(p, &s);
            }
            if (lx->tok == TK_NAME && strcmp(p->words[0].name, "empty") == 0)
                return parse_param(p, true);
            bool known;
            OT_TRY(tk_parse_sync(p, p->words[0].name, &s, &known));
            if (!known) OT_TRY(tk_parse_declaration(p, p->words[0].name, &s, &known));
            if (known) return OT_OK;
        } while (tk_accept(lx, ','));
        OT_TRY(tk_expect(lx, '='));
        /* which carries nothing: the verifier will say so */
        s.parallel = tk_accept_word(lx, "parallel");
    }
    if (tk_is_word(lx, "for")) return parse_for(p, &s);
    if (tk_is_word(lx, "while")) return parse_while(p, &s);
    if (tk_is_word(lx, "if")) return parse_if(p, &s);
    return parse_compute(p, &s);
}

static ot_status parse_stmt(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    if (p->b.k->n_stmts == TK_ITEMS_MAX)
        return tk_fail(lx, "more than %u statements", TK_ITEMS_MAX);
    if (tk_is_word(lx, "alloc")) return tk_parse_alloc(p, false);
    if (tk_is_word(lx, "workspace")) return tk_parse_alloc(p, true);
    if (tk_is_word(lx, "alias")) return tk_parse_alias(p);
    if (tk_is_word(lx, "subview")) return tk_parse_subview(p);
    if (tk_is_word(lx, "load")) return parse_move(p, OT_TK_LOAD);
    if (tk_is_word(lx, "store")) return parse_move(p, OT_TK_STORE);
    if (lx->tok == TK_NAME && (strcmp(lx->name, "copy") == 0 || strncmp(lx->name, "copy.", 5) == 0))
        return parse_move(p, OT_TK_COPY);
    if (tk_is_word(lx, "free")) return parse_free(p);
    if (tk_is_word(lx, "yield")) return parse_yield(p);
    if (tk_is_word(lx, "else")) return tk_fail(lx, "'else' without 'if', or a second one");
    if (tk_is_word(lx, "param")) {
        if (p->b.k->n_stmts > 0) return tk_fail(lx, "params come before all statements");
        tk_lex_next(lx);
        return parse_param(p, false);
    }
    return parse_named(p);
}

static ot_status parse_head(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    ot_kernel *k = p->b.k;
    OT_TRY(tk_expect_word(lx, "kernel"));
    /* words of the language too: no one asks for it */
    if (lx->tok != TK_NAME) return tk_expected(lx, "the kernel's name");
    k->name = ot_strdup(k->arena, lx->name);
    if (!k->name) return tk_fail_nomem(lx);
    tk_lex_next(lx);
    if (tk_accept_word(lx, "target")) {
        if (lx->tok != TK_STRING) return tk_expected(lx, "a name in quotes");
        k->target = ot_strndup(k->arena, lx->r.text + lx->r.at + 1, lx->r.len - 2);
        if (!k->target) return tk_fail_nomem(lx);
        if (!tk_is_string(k->target))
            return tk_fail(lx, "a name in quotes is not empty, and printable without '\\'");
        tk_lex_next(lx);
    }
    if (tk_accept_word(lx, "sync")) {
        OT_TRY(tk_expect(lx, '='));
        OT_TRY(tk_expect_word(lx, "explicit"));
        k->explicit_sync = true;
    }
    return tk_expect(lx, '{');
}

static ot_status parse_all(tk_parser *p)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(parse_head(p));
    for (;;) {
        p->n_words = p->n_ids = p->n_attrs = 0;
        if (lx->tok == TK_END && p->b.n_open > 0) {
            const ot_tk_stmt *s = &p->b.k->stmts[tk_innermost(&p->b)];
            return tk_fail(lx, "the block of line %u has no '}'", s->line);
        }
        if (lx->tok == TK_END) return tk_fail(lx, "the kernel has no '}'");
        bool scope = false;
        if (tk_is(lx, '}')) OT_TRY(tk_close_scope(p, &scope));
        if (scope) continue;
        if (!tk_is(lx, '}'))
            OT_TRY(parse_stmt(p));
        else if (p->b.n_open > 0)
            OT_TRY(close_block(p));
        else
            break;
    }
    tk_lex_next(lx);
    return lx->tok == TK_END ? OT_OK : tk_expected(lx, "nothing after the kernel");
}

ot_status ot_kernel_parse(const char *path, const char *text, size_t n, ot_diag *d, ot_kernel **out)
{
    return ot_kernel_parse_sized(path, text, n, NULL, 0, d, out);
}

/* Each given size is there. */
static ot_status check_given(const tk_parser *p)
{
    for (uint32_t k = 0; k < p->n_given; k++) {
        uint32_t i = 0;
        while (i < p->b.k->n_sizes && strcmp(p->b.k->sizes[i].name, p->given[k].name) != 0) i++;
        if (i == p->b.k->n_sizes)
            return ot_fail(p->lx.r.d, OT_E_USAGE, "%s: the kernel has no size '%.100s'",
                           p->lx.r.path, p->given[k].name);
    }
    return OT_OK;
}

/* What is `auto` was loaded into. */
static ot_status check_shapes(tk_parser *p)
{
    for (uint32_t v = 0; v < p->b.k->n_values; v++) {
        const ot_tk_value *x = &p->b.k->values[v];
        if (x->kind == OT_TK_BUFFER && x->rank == 0)
            return tk_fail_at(&p->lx, x->line, x->col,
                              "nothing is loaded into '%s' that its shape could be [shape-auto]",
                              x->name);
    }
    return OT_OK;
}

ot_status ot_kernel_parse_sized(const char *path, const char *text, size_t n,
                                const ot_tk_binding *given, uint32_t n_given, ot_diag *d,
                                ot_kernel **out)
{
    tk_parser p = {.given = given, .n_given = n_given};
    *out = NULL;
    p.scratch = ot_arena_new();
    p.names = p.scratch ? ot_map_new(p.scratch) : NULL;
    if (!p.names || !tk_builder_init(&p.b)) {
        ot_arena_free(p.scratch);
        return ot_fail_nomem(d);
    }
    tk_lex_init(&p.lx, path, text, n, d);
    ot_status s = parse_all(&p);
    if (s == OT_OK) s = check_given(&p);
    if (s == OT_OK) s = check_shapes(&p);
    if (s == OT_OK) s = ot_kernel_verify(p.b.k, path, d);
    ot_arena_free(p.scratch);
    if (s == OT_OK)
        *out = p.b.k;
    else
        ot_kernel_free(p.b.k);
    return s;
}
