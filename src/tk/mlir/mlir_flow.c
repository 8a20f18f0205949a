/* Control flow: scf.for, scf.while, scf.if, scf.yield, scf.condition, scope.scope, return.
 *
 *   %r = scf.for %i = %lo to %hi step %s iter_args(%a = %init) -> (memref<...>) {  r = for i in
 *   0..n carry (a = init) {
 *     scf.yield %b : memref<...>                                                      yield (b)
 *   }                                                                               }
 *
 *   scf.while (%a = %init) : (T) -> T { ... scf.condition(%c) %a : T } do { ^bb0(%b: T): ...
 *   scf.yield %x : T }
 *                                      \________ one body: it is run for the last time up to the
 *                                      condition only
 *
 * Scalars that are carried take no memory: they are names. Of a while loop's condition only what
 * it carries may be passed on.
 */
#include "mlir_internal.h"

/* ---- lists ---- */

/* `(type, ...)` or one type; its number. types: [ML_LIST_MAX]. */
static ot_status type_list(ml_parser *p, ml_type *types, uint32_t *n)
{
    *n = 0;
    if (!ml_accept(&p->lx, '(')) {
        *n = 1;
        return ml_parse_type(&p->lx, &types[0]);
    }
    while (!ml_is(&p->lx, ')')) {
        if (*n == ML_LIST_MAX) return ml_fail(&p->lx, "more than %d types", ML_LIST_MAX);
        OT_TRY(ml_parse_type(&p->lx, &types[(*n)++]));
        if (!ml_is(&p->lx, ')')) OT_TRY(ml_expect(&p->lx, ','));
    }
    ml_next(&p->lx);
    return p->lx.r.status;
}

/* `%a, %b : type, type` */
static ot_status typed_operands(ml_parser *p, ml_operands *o)
{
    ml_type t;
    OT_TRY(ml_use_list(p, o));
    if (o->n == 0) return OT_OK;
    OT_TRY(ml_expect(&p->lx, ':'));
    for (uint32_t k = 0; k < o->n; k++) {
        if (k > 0) OT_TRY(ml_expect(&p->lx, ','));
        OT_TRY(ml_parse_type(&p->lx, &t));
    }
    return OT_OK;
}

/* Is what is under way a scope's own statement, not one of a region in it? */
static bool in_scope(const ml_parser *p)
{
    return p->n_scopes > 0 && p->scopes[p->n_scopes - 1] == p->n_regions;
}

/* Operand k may be one of several buffers. */
static ot_status several(ml_parser *p, const ml_operands *o, uint32_t k)
{
    return ml_fail_at(&p->lx, o->lines[k], o->cols[k],
                      "'%%%s' may be one of several buffers: what is carried or yielded is one",
                      p->symbols[o->symbols[k]].name);
}

/* ---- loops that carry ---- */

typedef struct carrying {
    const char *names[ML_LIST_MAX]; /* of the arguments */
    uint32_t lines[ML_LIST_MAX], cols[ML_LIST_MAX];
    ml_operands inits;
    uint32_t carried[ML_LIST_MAX], results[ML_LIST_MAX]; /* [inits.n] ids; OT_NONE: not planned */
} carrying;

/* `(%a = %init, ...)`; the bracket is next. */
static ot_status read_carrying(ml_parser *p, carrying *c)
{
    c->inits.n = 0;
    OT_TRY(ml_expect(&p->lx, '('));
    while (!ml_is(&p->lx, ')')) {
        uint32_t k = c->inits.n;
        if (k == ML_LIST_MAX) return ml_fail(&p->lx, "more than %d carried values", ML_LIST_MAX);
        if (p->lx.tok != ML_VALUE) return ml_expected(&p->lx, "a value");
        c->names[k] = ml_token_name(p);
        c->lines[k] = p->lx.r.tok_line;
        c->cols[k] = p->lx.r.tok_col;
        if (!c->names[k]) return ml_nomem(p);
        ml_next(&p->lx);
        OT_TRY(ml_expect(&p->lx, '='));
        OT_TRY(ml_use(p, &c->inits.symbols[k]));
        c->inits.n++;
        if (!ml_is(&p->lx, ')')) OT_TRY(ml_expect(&p->lx, ','));
    }
    ml_next(&p->lx);
    return p->lx.r.status;
}

/* The loop's statement, with a carried value and a result for each init that is planned; its
 * region is open then. */
static ot_status open_loop(ml_parser *p, ot_tk_stmt s, carrying *c, ml_operands *condition)
{
    uint32_t in[ML_LIST_MAX], carried[ML_LIST_MAX], out[ML_LIST_MAX], n = 0,
                                                                      opener = ot_kb_n_stmts(p->b);
    if (p->n_regions == OT_TK_DEPTH_MAX)
        return ml_fail(&p->lx, "blocks nest more than %d deep", OT_TK_DEPTH_MAX);
    for (uint32_t k = 0; k < c->inits.n; k++) {
        uint32_t ids[ML_LIST_MAX], n_ids;
        OT_TRY(ml_values(p, c->inits.symbols[k], false, ids, &n_ids));
        const uint32_t init = n_ids > 0 ? ids[0] : OT_NONE;
        c->carried[k] = c->results[k] = OT_NONE;
        if (n_ids > 1) return several(p, &c->inits, k);
        if (init == OT_NONE) continue;
        ot_tk_value v = *ot_kb_at(p->b, init);
        v = (ot_tk_value){.line = c->lines[k],
                          .col = c->cols[k],
                          .rank = v.rank,
                          .dtype = v.dtype,
                          .scope = v.scope,
                          .multi = 1,
                          .base = OT_NONE,
                          .stmt = opener};
        memcpy(v.dims, ot_kb_at(p->b, init)->dims, sizeof v.dims);
        OT_TRY(ml_add_value(p, c->names[k], OT_TK_CARRIED, &v, &c->carried[k]));
        OT_TRY(ml_add_value(p, c->names[k], OT_TK_RESULT, &v, &c->results[k]));
        in[n] = init;
        carried[n] = c->carried[k];
        out[n++] = c->results[k];
    }
    s.in = in;
    s.out = out;
    s.carried = carried;
    s.n_in = s.n_out = n;
    OT_TRY(ml_add_stmt(p, s, NULL));
    p->regions[p->n_regions++] = (ml_region){
        .op = s.op, .n = c->inits.n, .carried = c->carried, .condition = condition};
    return OT_OK;
}

/* Argument k of a region, which stands for init k. */
static ot_status define_argument(ml_parser *p, const carrying *c, uint32_t k, const char *name)
{
    const ml_symbol *init = &p->symbols[c->inits.symbols[k]];
    return ml_define(p, name, c->lines[k], c->cols[k],
                     (ml_symbol){.value = c->carried[k],
                                 .is_memref = init->is_memref,
                                 .is_part = init->is_part});
}

/* The closing brace of a region. */
static ot_status close_region(ml_parser *p, size_t n_symbols)
{
    ot_tk_stmt end = ml_stmt(p, OT_TK_END);
    OT_TRY(ml_expect(&p->lx, '}'));
    p->n_regions--;
    OT_TRY(ml_add_stmt(p, end, NULL));
    return ml_close_scope(p, n_symbols);
}

/* ---- for ---- */

/* Iterations, -1: nobody knows. */
static int64_t count_trips(const ml_symbol *lo, const ml_symbol *hi, const ml_symbol *step)
{
    int64_t extent;
    if (!lo->has_number || !hi->has_number || !step->has_number || step->number < 1) return -1;
    if (hi->number <= lo->number) return 0;
    if (lo->number == INT64_MIN || !ot_add_i64(hi->number, -lo->number, &extent)) return -1;
    int64_t trips = extent / step->number + (extent % step->number != 0);
    return trips <= (INT64_C(1) << 60) ? trips : -1;
}

static ot_status parse_for(ml_parser *p, ot_tk_stmt s)
{
    carrying c = {.inits.n = 0};
    ml_results results = p->results;
    ml_type types[ML_LIST_MAX];
    uint32_t bounds[3], n_types = 0;
    static const char *const words[] = {NULL, "to", "step"};
    if (p->lx.tok != ML_VALUE) return ml_expected(&p->lx, "the loop's variable");
    const char *name = ml_token_name(p);
    uint32_t line = p->lx.r.tok_line, col = p->lx.r.tok_col;
    ml_next(&p->lx);
    OT_TRY(ml_expect(&p->lx, '='));
    for (int k = 0; k < 3; k++) {
        if (words[k]) OT_TRY(ml_expect_word(&p->lx, words[k]));
        OT_TRY(ml_use(p, &bounds[k]));
    }
    if (ml_accept_word(&p->lx, "iter_args")) {
        OT_TRY(read_carrying(p, &c));
        OT_TRY(ml_expect(&p->lx, 'r'));
        OT_TRY(type_list(p, types, &n_types));
    }
    if (n_types != c.inits.n)
        return ml_fail(&p->lx, "%u types for %u carried values", n_types, c.inits.n);
    if (ml_accept(&p->lx, ':')) OT_TRY(ml_parse_type(&p->lx, types));
    if (results.n > 0) OT_TRY(ml_expect_results(p, c.inits.n));
    s.op = OT_TK_FOR;
    s.var = ot_format(p->a, "i%u", p->n_loops++);
    if (!s.var) return ml_nomem(p);
    s.hi = count_trips(&p->symbols[bounds[0]], &p->symbols[bounds[1]], &p->symbols[bounds[2]]);
    s.step = 1;
    OT_TRY(open_loop(p, s, &c, NULL));
    size_t n_symbols = p->n_symbols;
    OT_TRY(ml_define(p, name, line, col, (ml_symbol){.value = OT_NONE}));
    for (uint32_t k = 0; k < c.inits.n; k++) OT_TRY(define_argument(p, &c, k, c.names[k]));
    OT_TRY(ml_expect(&p->lx, '{'));
    OT_TRY(ml_statements(p));
    OT_TRY(close_region(p, n_symbols));
    p->results = results;
    for (uint32_t k = 0; k < c.inits.n && results.n > 0; k++) {
        const ml_symbol *init = &p->symbols[c.inits.symbols[k]];
        OT_TRY(ml_define_result(p, k,
                                (ml_symbol){.value = c.results[k],
                                            .is_memref = init->is_memref,
                                            .is_part = init->is_part}));
    }
    return OT_OK;
}

/* ---- while ---- */

/* What the condition passes on, as the second region (and, in *result, what is behind the loop)
 * sees it: a carried value, or the address of an allocation. */
static ot_status find_passed(ml_parser *p, const carrying *c, const ml_operands *o, uint32_t j,
                             ml_symbol *passed, ml_symbol *result)
{
    const ml_symbol s = p->symbols[o->symbols[j]];
    *passed = *result = (ml_symbol){.value = OT_NONE, .is_memref = s.is_memref};
    if (s.value == OT_NONE) return OT_OK;
    for (uint32_t k = 0; k < c->inits.n; k++)
        if (c->carried[k] == s.value) {
            passed->value = s.value;
            result->value = c->results[k];
            passed->is_part = result->is_part = s.is_part;
            return OT_OK;
        }
    OT_TRY(ml_rooted(p, o->symbols[j], passed));
    *result = *passed;
    return OT_OK;
}

/* `do { ^bb0(%b: T, ...): statements }`. passed: [n] what the arguments are. */
static ot_status parse_do(ml_parser *p, const ml_symbol *passed, uint32_t n)
{
    ml_type t;
    uint32_t count = 0;
    OT_TRY(ml_expect_word(&p->lx, "do"));
    OT_TRY(ml_expect(&p->lx, '{'));
    if (p->lx.tok == ML_LABEL) {
        ml_next(&p->lx);
        OT_TRY(ml_expect(&p->lx, '('));
        for (; !ml_is(&p->lx, ')'); count++) {
            if (count == n) return ml_fail(&p->lx, "more arguments than scf.condition passes on");
            if (p->lx.tok != ML_VALUE) return ml_expected(&p->lx, "a value");
            const char *name = ml_token_name(p);
            OT_TRY(ml_define(p, name, p->lx.r.tok_line, p->lx.r.tok_col, passed[count]));
            ml_next(&p->lx);
            OT_TRY(ml_expect(&p->lx, ':'));
            OT_TRY(ml_parse_type(&p->lx, &t));
            if (!ml_is(&p->lx, ')')) OT_TRY(ml_expect(&p->lx, ','));
        }
        ml_next(&p->lx);
        OT_TRY(ml_expect(&p->lx, ':'));
    }
    if (count != n)
        return ml_fail(&p->lx, "%u arguments, but scf.condition passes on %u", count, n);
    return ml_statements(p);
}

static ot_status parse_while(ml_parser *p, ot_tk_stmt s)
{
    carrying c = {.inits.n = 0};
    ml_results results = p->results;
    ml_operands condition = {.n = 0};
    ml_type types[ML_LIST_MAX];
    uint32_t n_in = 0, n_out = 0;
    ml_symbol passed[ML_LIST_MAX], results_are[ML_LIST_MAX];
    if (ml_is(&p->lx, '(')) OT_TRY(read_carrying(p, &c));
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(type_list(p, types, &n_in));
    OT_TRY(ml_expect(&p->lx, 'r'));
    OT_TRY(type_list(p, types, &n_out));
    if (n_in != c.inits.n)
        return ml_fail(&p->lx, "%u types for %u carried values", n_in, c.inits.n);
    if (results.n > 0) OT_TRY(ml_expect_results(p, n_out));
    s.op = OT_TK_WHILE;
    OT_TRY(open_loop(p, s, &c, &condition));
    size_t n_symbols = p->n_symbols;
    for (uint32_t k = 0; k < c.inits.n; k++) OT_TRY(define_argument(p, &c, k, c.names[k]));
    OT_TRY(ml_expect(&p->lx, '{'));
    OT_TRY(ml_statements(p));
    ml_region *r = &p->regions[p->n_regions - 1];
    if (!r->has_condition) return ml_expected(&p->lx, "scf.condition");
    if (condition.n != n_out)
        return ml_fail(&p->lx, "scf.condition passes on %u values, %u are wanted", condition.n,
                       n_out);
    for (uint32_t j = 0; j < condition.n; j++)
        OT_TRY(find_passed(p, &c, &condition, j, &passed[j], &results_are[j]));
    r->condition = NULL;
    OT_TRY(ml_expect(&p->lx, '}'));
    OT_TRY(ml_close_scope(p, n_symbols));
    OT_TRY(parse_do(p, passed, condition.n));
    OT_TRY(close_region(p, n_symbols));
    p->results = results;
    for (uint32_t j = 0; j < condition.n && results.n > 0; j++)
        OT_TRY(ml_define_result(p, j, results_are[j]));
    return OT_OK;
}

static ot_status parse_condition(ml_parser *p)
{
    uint32_t symbol;
    ml_region *r = p->n_regions > 0 ? &p->regions[p->n_regions - 1] : NULL;
    if (!r || !r->condition || r->has_condition || in_scope(p))
        return ml_fail(&p->lx, "scf.condition ends the first region of scf.while");
    OT_TRY(ml_expect(&p->lx, '('));
    OT_TRY(ml_use(p, &symbol));
    OT_TRY(ml_expect(&p->lx, ')'));
    r->has_condition = true;
    OT_TRY(typed_operands(p, r->condition));
    return ml_is(&p->lx, '}') || ml_is_word(&p->lx, "loc")
               ? OT_OK
               : ml_expected(&p->lx, "'}' behind scf.condition");
}

/* ---- if ---- */

/* A result for each type that is planned. */
static ot_status open_if(ml_parser *p, ot_tk_stmt s, const ml_type *types, uint32_t n,
                         uint32_t *results)
{
    uint32_t out[ML_LIST_MAX], n_out = 0, opener = ot_kb_n_stmts(p->b);
    ml_symbol *merged = p->apart && n > 0 ? OT_NEW_N(p->a, ml_symbol, n) : NULL;
    if (p->n_regions == OT_TK_DEPTH_MAX)
        return ml_fail(&p->lx, "blocks nest more than %d deep", OT_TK_DEPTH_MAX);
    if (p->apart && n > 0 && !merged) return ml_nomem(p);
    for (uint32_t k = 0; k < n; k++) {
        if (merged) {
            merged[k] = (ml_symbol){.value = OT_NONE};
            continue;
        }
        bool local = types[k].kind == ML_MEMREF_TYPE && types[k].scope != OT_SCOPE_GM &&
                     p->mode != OT_MEM_WORKSPACE;
        results[k] = OT_NONE;
        if (!local) continue;
        OT_TRY(ml_check_static(&p->lx, &types[k]));
        ot_tk_value v = ml_value_of(p, &types[k]);
        v.stmt = opener;
        OT_TRY(ml_add_value(p, p->results.n > 0 ? p->results.at[0].name : "branch", OT_TK_RESULT,
                            &v, &results[k]));
        out[n_out++] = results[k];
    }
    s.op = OT_TK_IF;
    s.out = out;
    s.n_out = n_out;
    OT_TRY(ml_add_stmt(p, s, NULL));
    p->regions[p->n_regions++] = (ml_region){
        .op = OT_TK_IF, .n = n, .carried = results, .merged = merged, .first = p->n_values};
    return OT_OK;
}

static ot_status parse_if(ml_parser *p, ot_tk_stmt s)
{
    ml_results results = p->results;
    ml_type types[ML_LIST_MAX];
    uint32_t symbol, n = 0, *ids = OT_NEW_N(p->a, uint32_t, ML_LIST_MAX);
    if (!ids) return ml_nomem(p);
    OT_TRY(ml_use(p, &symbol));
    if (ml_accept(&p->lx, 'r')) OT_TRY(type_list(p, types, &n));
    if (results.n > 0) OT_TRY(ml_expect_results(p, n));
    OT_TRY(open_if(p, s, types, n, ids));
    size_t n_symbols = p->n_symbols;
    OT_TRY(ml_expect(&p->lx, '{'));
    OT_TRY(ml_statements(p));
    ot_tk_stmt other = ml_stmt(p, OT_TK_ELSE);
    if (!ml_is(&p->lx, '}')) return ml_expected(&p->lx, "'}'");
    ml_lexer before = p->lx;
    ml_next(&p->lx);
    if (ml_accept_word(&p->lx, "else")) {
        OT_TRY(ml_close_scope(p, n_symbols));
        OT_TRY(ml_add_stmt(p, other, NULL));
        OT_TRY(ml_expect(&p->lx, '{'));
        OT_TRY(ml_statements(p));
    } else if (p->lx.r.status == OT_OK) {
        p->lx = before;
    }
    const ml_symbol *merged = p->regions[p->n_regions - 1].merged;
    OT_TRY(close_region(p, n_symbols));
    p->results = results;
    for (uint32_t k = 0; k < n && results.n > 0; k++) {
        ml_symbol own = {.value = ids[k], .is_memref = types[k].kind == ML_MEMREF_TYPE};
        OT_TRY(ml_define_result(p, k, merged ? merged[k] : own));
    }
    return OT_OK;
}

/* ---- scope ---- */

/* scope.scope : () -> () { statements scope.return } {attributes}: which core runs them; for
 * memory they are statements like those around. */
static ot_status parse_scope(ml_parser *p, const ot_tk_stmt *at)
{
    ml_type types[ML_LIST_MAX];
    ml_symbol handed[ML_LIST_MAX];
    const ml_results results = p->results;
    uint32_t n = 0, n_out = 0;
    if (p->n_scopes == OT_TK_DEPTH_MAX)
        return ml_fail(&p->lx, "blocks nest more than %d deep", OT_TK_DEPTH_MAX);
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(type_list(p, types, &n));
    OT_TRY(ml_expect(&p->lx, 'r'));
    OT_TRY(type_list(p, types, &n_out));
    if (n > 0)
        return ml_fail_at(&p->lx, at->line, at->col,
                          "a scope with operands is not in the subset that is read");
    if (results.n > 0) OT_TRY(ml_expect_results(p, n_out));
    const size_t n_symbols = p->n_symbols;
    OT_TRY(ml_expect(&p->lx, '{'));
    p->scopes[p->n_scopes] = p->n_regions;
    p->n_scope_results[p->n_scopes] = 0;
    p->scope_results[p->n_scopes++] = handed;
    OT_TRY(ml_statements(p));
    p->n_scopes--;
    if (p->n_scope_results[p->n_scopes] != n_out)
        return ml_fail(&p->lx, "%u values returned, %u wanted", p->n_scope_results[p->n_scopes],
                       n_out);
    OT_TRY(ml_expect(&p->lx, '}'));
    if (ml_is(&p->lx, '{')) OT_TRY(ml_skip_brackets(&p->lx));
    OT_TRY(ml_close_scope(p, n_symbols));
    p->results = results;
    for (uint32_t k = 0; k < n_out && results.n > 0; k++) OT_TRY(ml_define_result(p, k, handed[k]));
    return OT_OK;
}

static ot_status parse_scope_return(ml_parser *p, const ot_tk_stmt *at)
{
    ml_operands o;
    if (!in_scope(p))
        return ml_fail_at(&p->lx, at->line, at->col, "scope.return ends a scope.scope");
    OT_TRY(typed_operands(p, &o));
    for (uint32_t k = 0; k < o.n; k++)
        p->scope_results[p->n_scopes - 1][k] = p->symbols[o.symbols[k]];
    p->n_scope_results[p->n_scopes - 1] = o.n;
    return ml_is(&p->lx, '}') || ml_is_word(&p->lx, "loc")
               ? OT_OK
               : ml_expected(&p->lx, "'}' behind scope.return");
}

/* ---- ends ---- */

static ot_status parse_yield(ml_parser *p, ot_tk_stmt s)
{
    ml_operands o;
    uint32_t in[ML_LIST_MAX], n = 0;
    const ml_region *r = p->n_regions > 0 ? &p->regions[p->n_regions - 1] : NULL;
    if (!r || r->condition || in_scope(p))
        return ml_fail(&p->lx, "scf.yield outside of a loop's or a branch's region");
    OT_TRY(typed_operands(p, &o));
    if (o.n != r->n)
        return ml_fail_at(&p->lx, s.line, s.col, "%u values yielded, %u wanted", o.n, r->n);
    for (uint32_t k = 0; k < o.n; k++) {
        uint32_t ids[ML_LIST_MAX], n_ids;
        if (r->merged) {
            ml_symbol one;
            OT_TRY(ml_seen_behind(p, o.symbols[k], r->first, &one));
            OT_TRY(ml_merge(p, &r->merged[k], &one));
            continue;
        }
        OT_TRY(ml_values(p, o.symbols[k], false, ids, &n_ids));
        const uint32_t v = n_ids > 0 ? ids[0] : OT_NONE;
        if (p->passes->again) continue; /* it is read once more */
        if (n_ids > 1) return several(p, &o, k);
        if ((v == OT_NONE) != (r->carried[k] == OT_NONE))
            return ml_fail_at(&p->lx, o.lines[k], o.cols[k],
                              "'%%%s' is %s planned, but what it becomes is%s",
                              p->symbols[o.symbols[k]].name, v == OT_NONE ? "not" : "",
                              v == OT_NONE ? "" : " not");
        if (v != OT_NONE) in[n++] = v;
    }
    if (n == 0) return OT_OK;
    s.op = OT_TK_YIELD;
    s.in = in;
    s.n_in = n;
    return ml_add_stmt(p, s, NULL);
}

static ot_status parse_return(ml_parser *p, const ot_tk_stmt *at)
{
    ml_operands o;
    if (p->n_regions + p->n_scopes > 0)
        return ml_fail_at(&p->lx, at->line, at->col, "return inside of a region");
    OT_TRY(typed_operands(p, &o));
    for (uint32_t k = 0; k < o.n; k++) OT_TRY(ml_add_reads(p, o.symbols[k], at));
    return ml_is(&p->lx, '}') || p->lx.tok == ML_LABEL || ml_is_word(&p->lx, "loc")
               ? OT_OK
               : ml_expected(&p->lx, "'}' behind return");
}

ot_status ml_flow_stmt(ml_parser *p, const char *op, ot_tk_stmt at, bool *known)
{
    *known = true;
    if (strcmp(op, "scf.for") == 0) return parse_for(p, at);
    if (strcmp(op, "scf.while") == 0) return parse_while(p, at);
    if (strcmp(op, "scf.if") == 0) return parse_if(p, at);
    if (strcmp(op, "scope.scope") == 0) return parse_scope(p, &at);
    if (strcmp(op, "scope.return") == 0) return parse_scope_return(p, &at);
    if (strcmp(op, "scf.yield") == 0) return parse_yield(p, at);
    if (strcmp(op, "scf.condition") == 0) return parse_condition(p);
    if (strcmp(op, "return") == 0 || strcmp(op, "func.return") == 0) return parse_return(p, &at);
    *known = false;
    return OT_OK;
}
