/* Modules, functions, statements.
 *
 *   #map = affine_map<...>                         skipped, as all attributes are
 *   module attributes {...} {
 *     func.func private @other(memref<?xi8>)       a declaration
 *     func.func @kernel(%x: memref<16xf16, #hivm.address_space<gm>>) attributes {...} { statements
 *     }  the one that is planned
 *   }
 */
#include "mlir_vector.h"

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
    } else if (strcmp(op, "cf.br") == 0 || strcmp(op, "cf.cond_br") == 0) {
        OT_TRY(ml_branch(p, op));
    } else if (strcmp(op, "call") == 0 || strcmp(op, "func.call") == 0) {
        OT_TRY(ml_call(p, at));
    } else if (strcmp(op, "arith.select") == 0) {
        OT_TRY(ml_select(p));
    } else if (strcmp(op, "arith.constant") == 0) {
        OT_TRY(parse_constant(p));
    } else if (begins(op, "arith.") || begins(op, "math.")) {
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
        OT_TRY(p->lx.tok == ML_LABEL ? ml_label(p) : statement(p));
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

/* `{ statements }` of the function that is read. */
static ot_status parse_body(ml_parser *p, const char *name)
{
    ml_lexer *lx = &p->lx;
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
    OT_TRY(ml_hoist(p));
    OT_TRY(ml_statements(p));
    OT_TRY(ml_close_blocks(p));
    p->m->end = lx->r.at;
    return ml_expect(lx, '}');
}

/* attributes {...}: is hivm.vector_function among them? */
static ot_status parse_attributes(ml_parser *p, bool *vector)
{
    ml_lexer *lx = &p->lx;
    uint32_t depth = 0;
    *vector = p->is_cube = p->is_vector = false;
    if (!ml_accept_word(lx, "attributes")) return lx->r.status;
    if (!ml_is(lx, '{')) return ml_expected(lx, "'{'");
    for (ml_lexer look = *lx; look.r.status == OT_OK && look.tok != ML_END; ml_next(&look)) {
        if (ml_is(&look, '{')) depth++;
        if (ml_is(&look, '}') && --depth == 0) break;
        if (depth == 1 && ml_is_word(&look, "hivm.vector_function")) *vector = true;
        p->is_cube = p->is_cube || (depth == 1 && ml_is_word(&look, "AIC"));
        p->is_vector = p->is_vector || (depth == 1 && ml_is_word(&look, "AIV"));
    }
    return ml_skip_brackets(lx);
}

static ot_status parse_function(ml_parser *p)
{
    ml_lexer *lx = &p->lx;
    ot_mlir_function f = {.line = lx->r.tok_line, .col = lx->r.tok_col, .at = lx->r.at};
    ml_next(lx);
    if (!ml_accept_word(lx, "private") && !ml_accept_word(lx, "public"))
        (void)ml_accept_word(lx, "nested");
    if (lx->tok != ML_SYMBOL) return ml_expected(lx, "the function's name");
    const char *name = ml_token_name(p);
    if (!name) return ml_nomem(p);
    ml_next(lx);
    const ml_lexer arguments = *lx;
    OT_TRY(parse_arguments(p));
    OT_TRY(parse_result_types(p));
    OT_TRY(parse_attributes(p, &f.is_vector));
    if (!ml_is(lx, '{')) return ml_close_scope(p, 0); /* a declaration */
    if (p->list) {
        f.name = ot_strdup(p->list->arena, name);
        if (f.is_vector && ml_find_effects(&arguments, lx, p->list->arena, &f.effects) != OT_OK)
            return ml_nomem(p);
        if (!f.name || !OT_PUSH(p->list->arena, p->list->at, p->list->n, p->list->cap, f))
            return ml_nomem(p);
    }
    OT_TRY(!p->list && !p->has_function ? parse_body(p, name) : ml_skip_body(p));
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

/* memref.global "private" constant @name : memref<...> = value */
static ot_status parse_module_global(ml_parser *p)
{
    ml_lexer *lx = &p->lx;
    ml_type t;
    do ml_next(lx);
    while (lx->tok == ML_STRING || lx->tok == ML_WORD);
    if (lx->tok != ML_SYMBOL) return ml_expected(lx, "the name of a global");
    ml_next(lx);
    OT_TRY(ml_expect(lx, ':'));
    OT_TRY(ml_parse_type(lx, &t));
    if (!ml_accept(lx, '=')) return lx->r.status;
    ml_next(lx);
    return ml_is(lx, '<') ? ml_skip_brackets(lx) : lx->r.status;
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
        else if (ml_is_word(lx, "memref.global"))
            OT_TRY(parse_module_global(p));
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

/* The allocations of this reading are what the next has at its head. */
static ot_status keep_hoisted(ml_parser *p)
{
    ml_passes *o = p->passes;
    o->n_hoisted = 0;
    for (size_t k = 0; k < p->m->n_casts; k++) {
        const uint32_t v = p->m->casts[k].value;
        ot_tk_value x = v == OT_NONE ? (ot_tk_value){.rank = 0} : *ot_kb_at(p->b, v);
        if (v != OT_NONE) {
            x.multi = x.n_offsets > 0 ? x.n_offsets : 1; /* marks are read again */
            x.name = ot_strdup(p->a, x.name);
            x.dtype = ot_strdup(p->a, x.dtype);
            if (!x.name || !x.dtype) return ml_nomem(p);
        }
        if (!OT_PUSH(p->a, o->hoisted, o->n_hoisted, o->cap_hoisted, x)) return ml_nomem(p);
    }
    o->hoist = true;
    return o->n_blocks > 0 && !o->ordered ? ml_order_blocks(p) : OT_OK;
}

static ot_status parse_once(ml_parser *p, ot_diag *d)
{
    OT_TRY(p->wanted ? parse_function(p) : parse_items(p, false));
    if (p->list) return OT_OK;
    if (!p->has_function) return ml_fail(&p->lx, "no function with a body");
    if (p->passes->again) return keep_hoisted(p);
    p->m->k = ot_kb_finish(p->b);
    p->b = NULL;
    if (!p->m->k) return ml_nomem(p);
    return ot_kernel_verify(p->m->k, p->m->path, d);
}

/* Read as often as it takes. */
static ot_status parse_all(ml_parser *p, ot_diag *d)
{
    const ml_parser fresh = *p;
    ot_mlir *m = p->m;
    for (p->passes->again = true; p->passes->again;) {
        p->passes->again = false;
        *p = fresh;
        m->casts = NULL;
        m->n_casts = 0;
        if (!(m->names = ot_map_new(p->a)) || !(p->by_name = ot_map_new(p->a)) ||
            !(p->taken = ot_map_new(p->a)))
            return ot_fail_nomem(d);
        ml_lex_init(&p->lx, m, p->wanted, d);
        ot_status s = parse_once(p, d);
        ot_kb_drop(p->b);
        p->b = NULL;
        OT_TRY(s);
    }
    return OT_OK;
}

static ot_status read_text(const char *path, const char *text, size_t n, const ot_mlir_options *o,
                           ot_mlir_functions *list, ot_diag *d, ot_mlir **out)
{
    ot_arena *a = ot_arena_new();
    ot_mlir *m = a ? OT_NEW(a, ot_mlir) : NULL;
    ml_parser *p = a ? OT_NEW(a, ml_parser) : NULL;
    *out = NULL;
    if (!m || !p || !(p->passes = OT_NEW(a, ml_passes))) {
        ot_arena_free(a);
        return ot_fail_nomem(d);
    }
    m->arena = p->a = a;
    m->path = path;
    m->text = text;
    m->n = n;
    p->m = m;
    p->list = list;
    p->mode = o->mode;
    p->wanted = o->function;
    p->all = o->all;
    p->apart = o->apart;
    p->sink = OT_NONE;
    ot_status s = parse_all(p, d);
    if (s == OT_OK)
        *out = m;
    else
        ot_mlir_free(m);
    return s;
}

ot_status ot_mlir_parse(const char *path, const char *text, size_t n, const ot_mlir_options *o,
                        ot_diag *d, ot_mlir **out)
{
    return read_text(path, text, n, o, NULL, d, out);
}

ot_status ot_mlir_find(const char *path, const char *text, size_t n, ot_diag *d,
                       ot_mlir_functions *list)
{
    const ot_mlir_options o = {.mode = OT_MEM_BOTH};
    ot_mlir *m = NULL;
    OT_TRY(read_text(path, text, n, &o, list, d, &m));
    ot_mlir_free(m);
    return OT_OK;
}

ot_kernel *ot_mlir_kernel(const ot_mlir *m) { return m->k; }

void ot_mlir_free(ot_mlir *m)
{
    if (!m) return;
    ot_kernel_free(m->k);
    ot_arena_free(m->arena);
}
