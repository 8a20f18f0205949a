/* Modules, functions, statements.
 *
 *   #map = affine_map<...>                         skipped, as all attributes are
 *   module attributes {...} {
 *     func.func private @other(memref<?xi8>)       a declaration
 *     func.func @kernel(%x: memref<16xf16, #hivm.address_space<gm>>) attributes {...} { statements
 *     }  the one that is planned
 *   }
 *
 *
 *
 */
#include "mlir_internal.h"

/* ---- scalars ---- */

/* arith.constant 5 : index */
static ot_status parse_constant(ml_parser *p)
{
    ml_lexer *lx = &p->lx;
    ml_type t;
    ml_symbol s = {.value = OT_NONE};
    bool negative = ml_accept(lx, '-');
    if (ml_is(lx, '{')) OT_TRY(ml_skip_brackets(lx));
    if (lx->tok == ML_INT) {
        s.has_number = true;
        s.number = negative ? -lx->value : lx->value;
    } else if (ml_is_word(lx, "true")) {
        s.is_true = true;
    } else if (lx->tok != ML_FLOAT && !ml_is_word(lx, "false")) {
        return ml_expected(lx, "a number");
    }
    ml_next(lx);
    if (ml_accept(lx, ':')) OT_TRY(ml_parse_type(lx, &t));
    OT_TRY(ml_expect_results(p, 1));
    return ml_define_result(p, 0, s);
}

/* arith.cmpi slt, %a, %b : i32; arith.index_cast %a : i32 to index */
static ot_status parse_arith(ml_parser *p)
{
    ml_lexer *lx = &p->lx;
    ml_type t;
    uint32_t symbol;
    while (!ml_is(lx, ':')) {
        if (lx->r.status != OT_OK) return lx->r.status;
        if (lx->tok == ML_VALUE) {
            OT_TRY(ml_use(p, &symbol));
            if (p->symbols[symbol].is_memref)
                return ml_fail(lx, "arithmetic of a memref is not in the subset that is read");
        } else if (ml_is(lx, '<') || ml_is(lx, '{')) {
            OT_TRY(ml_skip_brackets(lx));
        } else if (ml_is(lx, ',') ||
                   (lx->tok == ML_WORD && !memchr(lx->r.text + lx->r.at, '.', lx->r.len))) {
            ml_next(lx);
        } else {
            return ml_expected(lx, "an operand or ':'");
        }
    }
    do {
        ml_next(lx);
        OT_TRY(ml_parse_type(lx, &t));
        if (t.kind != ML_SCALAR_TYPE)
            return ml_fail_at(lx, t.line, t.col,
                              "arithmetic of scalars only is in the subset that is read");
    } while (ml_is(lx, ',') || ml_is_word(lx, "to"));
    return ml_define_scalars(p);
}

/* affine.apply affine_map<()[s0] -> (s0 * 2)>()[%a] */
static ot_status parse_affine(ml_parser *p)
{
    ml_lexer *lx = &p->lx;
    if (lx->tok == ML_ATTR)
        ml_next(lx);
    else
        OT_TRY(ml_expect_word(lx, "affine_map"));
    if (ml_is(lx, '<')) OT_TRY(ml_skip_brackets(lx));
    if (!ml_is(lx, '(')) return ml_expected(lx, "'('");
    OT_TRY(ml_skip_brackets(lx));
    if (ml_is(lx, '[')) OT_TRY(ml_skip_brackets(lx));
    OT_TRY(ml_expect_results(p, 1));
    return ml_define_scalars(p);
}

/* ---- statements ---- */

/* `%a, %b:2 =` */
static ot_status parse_results(ml_parser *p)
{
    ml_lexer *lx = &p->lx;
    p->results.n = 0;
    if (lx->tok != ML_VALUE) return lx->r.status;
    do {
        uint32_t k = p->results.n;
        if (k == ML_LIST_MAX) return ml_fail(lx, "more than %d results", ML_LIST_MAX);
        if (lx->tok != ML_VALUE) return ml_expected(lx, "a value");
        p->results.at[k].name = ml_token_name(p);
        p->results.at[k].n = 1;
        p->results.at[k].line = lx->r.tok_line;
        p->results.at[k].col = lx->r.tok_col;
        if (!p->results.at[k].name) return ml_nomem(p);
        ml_next(lx);
        if (ml_accept(lx, ':')) {
            if (lx->tok != ML_INT || lx->value < 1 || lx->value > ML_LIST_MAX)
                return ml_expected(lx, "a number of results");
            p->results.at[k].n = (uint32_t)lx->value;
            ml_next(lx);
        }
        p->results.n++;
    } while (ml_accept(lx, ','));
    return ml_expect(lx, '=');
}

static bool begins(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

static ot_status statement(ml_parser *p)
{
    ml_lexer *lx = &p->lx;
    bool known;
    OT_TRY(parse_results(p));
    ot_tk_stmt at = ml_stmt(p, OT_TK_COMPUTE);
    size_t start = lx->r.at;
    if (lx->tok == ML_STRING)
        return ml_fail(lx, "an operation in its generic form is not in the subset that is read");
    if (lx->tok != ML_WORD) return ml_expected(lx, "an operation");
    const char *op = ml_token_name(p);
    if (!op) return ml_nomem(p);
    ml_next(lx);
    OT_TRY(ml_memref_stmt(p, op, start, at, &known));
    if (!known) OT_TRY(ml_flow_stmt(p, op, at, &known));
    if (known) {
    } else if (strcmp(op, "arith.constant") == 0) {
        OT_TRY(parse_constant(p));
    } else if (begins(op, "arith.")) {
        OT_TRY(parse_arith(p));
    } else if (strcmp(op, "affine.apply") == 0 || strcmp(op, "affine.min") == 0 ||
               strcmp(op, "affine.max") == 0) {
        OT_TRY(parse_affine(p));
    } else if (strcmp(op, "linalg.fill") == 0) {
        OT_TRY(ml_hivm_stmt(p, op, at));
    } else if (begins(op, "hivm.hir.")) {
        OT_TRY(ml_hivm_stmt(p, op + strlen("hivm.hir."), at));
    } else {
        return ml_fail_at(lx, at.line, at.col, "'%s' is not in the subset that is read", op);
    }
    if (ml_accept_word(lx, "loc") && ml_is(lx, '(')) return ml_skip_brackets(lx);
    return lx->r.status;
}

ot_status ml_statements(ml_parser *p)
{
    while (p->lx.r.status == OT_OK && !ml_is(&p->lx, '}')) {
        if (p->lx.tok == ML_END) return ml_expected(&p->lx, "'}'");
        if (p->lx.tok == ML_LABEL)
            return ml_fail(&p->lx, "blocks with labels are not in the subset that is read");
        OT_TRY(statement(p));
    }
    return p->lx.r.status;
}

/* ---- functions ---- */

/* `(%a: type {...}, ...)`, `(type, ...)` of a declaration. */
static ot_status parse_arguments(ml_parser *p)
{
    ml_lexer *lx = &p->lx;
    ml_type t;
    OT_TRY(ml_expect(lx, '('));
    while (!ml_is(lx, ')')) {
        const char *name = NULL;
        uint32_t line = lx->r.tok_line, col = lx->r.tok_col;
        if (lx->tok == ML_VALUE) {
            name = ml_token_name(p);
            if (!name) return ml_nomem(p);
            ml_next(lx);
            OT_TRY(ml_expect(lx, ':'));
        }
        OT_TRY(ml_parse_type(lx, &t));
        if (ml_is(lx, '{')) OT_TRY(ml_skip_brackets(lx));
        if (name)
            OT_TRY(ml_define(p, name, line, col,
                             (ml_symbol){.value = OT_NONE, .is_memref = t.kind == ML_MEMREF_TYPE}));
        if (ml_accept_word(lx, "loc")) OT_TRY(ml_skip_brackets(lx));
        if (!ml_is(lx, ')')) OT_TRY(ml_expect(lx, ','));
    }
    ml_next(lx);
    return lx->r.status;
}

static ot_status parse_result_types(ml_parser *p)
{
    ml_type t;
    if (!ml_accept(&p->lx, 'r')) return OT_OK;
    return ml_is(&p->lx, '(') ? ml_skip_brackets(&p->lx) : ml_parse_type(&p->lx, &t);
}

static ot_status parse_function(ml_parser *p)
{
    ml_lexer *lx = &p->lx;
    uint32_t line = lx->r.tok_line, col = lx->r.tok_col;
    ml_next(lx);
    if (!ml_accept_word(lx, "private") && !ml_accept_word(lx, "public"))
        (void)ml_accept_word(lx, "nested");
    if (lx->tok != ML_SYMBOL) return ml_expected(lx, "the function's name");
    const char *name = ml_token_name(p);
    if (!name) return ml_nomem(p);
    ml_next(lx);
    OT_TRY(parse_arguments(p));
    OT_TRY(parse_result_types(p));
    if (ml_accept_word(lx, "attributes")) {
        if (!ml_is(lx, '{')) return ml_expected(lx, "'{'");
        OT_TRY(ml_skip_brackets(lx));
    }
    if (!ml_is(lx, '{')) return ml_close_scope(p, 0); /* a declaration */
    if (p->has_function)
        return ml_fail_at(lx, line, col, "a second function with a body: one is planned");
    p->has_function = true;
    p->m->body = lx->r.at + 1;
    char own[ML_NAME_MAX + 2];
    snprintf(own, sizeof own, "%s", name);
    for (char *c = own; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
              (c > own && *c >= '0' && *c <= '9')))
            *c = '_';
    if (!(p->b = ot_kernel_build(*own ? own : "kernel", "ascend-a2"))) return ml_nomem(p);
    ml_next(lx);
    OT_TRY(ml_statements(p));
    OT_TRY(ml_expect(lx, '}'));
    return ml_close_scope(p, 0);
}

/* ---- the file ---- */

/* #map = affine_map<...> */
static ot_status parse_alias(ml_parser *p)
{
    ml_next(&p->lx);
    OT_TRY(ml_expect(&p->lx, '='));
    if (p->lx.tok != ML_WORD && p->lx.tok != ML_ATTR) return ml_expected(&p->lx, "an attribute");
    ml_next(&p->lx);
    return ml_is(&p->lx, '<') || ml_is(&p->lx, '(') ? ml_skip_brackets(&p->lx) : p->lx.r.status;
}

/* Functions and aliases up to `}` of the module, or the end. */
static ot_status parse_items(ml_parser *p, bool in_module)
{
    ml_lexer *lx = &p->lx;
    while (lx->r.status == OT_OK && lx->tok != ML_END && !(in_module && ml_is(lx, '}'))) {
        if (lx->tok == ML_ATTR)
            OT_TRY(parse_alias(p));
        else if (ml_is_word(lx, "func.func"))
            OT_TRY(parse_function(p));
        else if (ml_is_word(lx, "module") && !in_module) {
            ml_next(lx);
            if (lx->tok == ML_SYMBOL) ml_next(lx);
            if (ml_accept_word(lx, "attributes")) {
                if (!ml_is(lx, '{')) return ml_expected(lx, "'{'");
                OT_TRY(ml_skip_brackets(lx));
            }
            OT_TRY(ml_expect(lx, '{'));
            OT_TRY(parse_items(p, true));
            OT_TRY(ml_expect(lx, '}'));
        } else
            return ml_expected(lx, in_module ? "func.func" : "module or func.func");
        if (ml_accept_word(lx, "loc") && ml_is(lx, '(')) OT_TRY(ml_skip_brackets(lx));
    }
    return lx->r.status;
}

static ot_status parse_all(ml_parser *p, ot_diag *d)
{
    OT_TRY(parse_items(p, false));
    if (!p->has_function) return ml_fail(&p->lx, "no function with a body");
    p->m->k = ot_kb_finish(p->b);
    p->b = NULL;
    if (!p->m->k) return ml_nomem(p);
    return ot_kernel_verify(p->m->k, p->m->path, d);
}

ot_status ot_mlir_parse(const char *path, const char *text, size_t n, ot_mem_part mode, ot_diag *d,
                        ot_mlir **out)
{
    ot_arena *a = ot_arena_new();
    ot_mlir *m = a ? OT_NEW(a, ot_mlir) : NULL;
    ml_parser *p = a ? OT_NEW(a, ml_parser) : NULL;
    *out = NULL;
    if (!m || !p || !(m->names = ot_map_new(a)) || !(p->by_name = ot_map_new(a)) ||
        !(p->taken = ot_map_new(a))) {
        ot_arena_free(a);
        return ot_fail_nomem(d);
    }
    m->arena = p->a = a;
    m->path = path;
    m->text = text;
    m->n = n;
    p->m = m;
    p->mode = mode;
    p->sink = OT_NONE;
    ml_lex_init(&p->lx, path, text, n, d);
    ot_status s = parse_all(p, d);
    ot_kb_drop(p->b);
    if (s == OT_OK)
        *out = m;
    else
        ot_mlir_free(m);
    return s;
}

ot_kernel *ot_mlir_kernel(const ot_mlir *m) { return m->k; }

void ot_mlir_free(ot_mlir *m)
{
    if (!m) return;
    ot_kernel_free(m->k);
    ot_arena_free(m->arena);
}
