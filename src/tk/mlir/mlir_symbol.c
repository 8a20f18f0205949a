/* Names of the text and what they stand for; values and statements of the kernel.
 *
 *   %alloc_0 -> symbol {value 3} -> kernel value "alloc_0"  %0 -> "_0"  a name that comes again in
 *                                                                       another block ->
 *                                                                       "alloc_0$2"
 */
#include "mlir_internal.h"

ot_status ml_nomem(ml_parser *p)
{
    if (p->lx.r.status == OT_OK) p->lx.r.status = ot_fail_nomem(p->lx.r.d);
    p->lx.tok = ML_BAD;
    return p->lx.r.status;
}

ot_tk_stmt ml_stmt(const ml_parser *p, ot_tk_op op)
{
    return (ot_tk_stmt){
        .op = op, .line = p->lx.r.tok_line, .col = p->lx.r.tok_col, .mate = OT_NONE};
}

const char *ml_token_name(ml_parser *p)
{
    const ml_lexer *lx = &p->lx;
    bool sigil = lx->tok == ML_VALUE || lx->tok == ML_SYMBOL || lx->tok == ML_LABEL;
    return ot_format(p->a, "%.*s", (int)(lx->r.len - (sigil ? 1 : 0)),
                     lx->r.text + lx->r.at + (sigil ? 1 : 0));
}

/* ---- what is visible ---- */

ot_status ml_define(ml_parser *p, const char *name, uint32_t line, uint32_t col, ml_symbol s)
{
    if (!name) return ml_nomem(p);
    if (ot_map_get(p->by_name, name) != OT_NONE)
        return ml_fail_at(&p->lx, line, col, "'%%%s' is defined already", name);
    s.name = name;
    s.block = p->block;
    if (!OT_PUSH(p->a, p->symbols, p->n_symbols, p->cap_symbols, s)) return ml_nomem(p);
    if (!ot_map_put(p->by_name, name, (uint32_t)p->n_symbols - 1) ||
        !ot_map_put(p->m->names, name, 1))
        return ml_nomem(p);
    return OT_OK;
}

ot_status ml_close_scope(ml_parser *p, size_t n)
{
    while (p->n_symbols > n)
        if (!ot_map_put(p->by_name, p->symbols[--p->n_symbols].name, OT_NONE)) return ml_nomem(p);
    return OT_OK;
}

ot_status ml_use(ml_parser *p, uint32_t *symbol)
{
    if (p->lx.tok != ML_VALUE) return ml_expected(&p->lx, "a value");
    const char *name = ml_token_name(p);
    if (!name) return ml_nomem(p);
    *symbol = ot_map_get(p->by_name, name);
    const size_t length = strlen(name);
    if (*symbol == OT_NONE && length > 2 && strcmp(name + length - 2, "#0") == 0)
        *symbol = ot_map_get(p->by_name, ot_format(p->a, "%.*s", (int)length - 2, name));
    if (*symbol == OT_NONE) return ml_fail(&p->lx, "'%%%s' is not defined here", name);
    ml_next(&p->lx);
    return p->lx.r.status;
}

ot_status ml_use_list(ml_parser *p, ml_operands *o)
{
    o->n = 0;
    if (p->lx.tok != ML_VALUE) return p->lx.r.status;
    do {
        if (o->n == ML_LIST_MAX) return ml_fail(&p->lx, "more than %d operands", ML_LIST_MAX);
        o->lines[o->n] = p->lx.r.tok_line;
        o->cols[o->n] = p->lx.r.tok_col;
        OT_TRY(ml_use(p, &o->symbols[o->n]));
        o->n++;
    } while (ml_accept(&p->lx, ','));
    return p->lx.r.status;
}

/* ---- results ---- */

ot_status ml_expect_results(ml_parser *p, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->results.n; k++) count += p->results.at[k].n;
    if (count == n) return OT_OK;
    if (p->results.n == 0) return ml_fail(&p->lx, "%u results without a name", n);
    return ml_fail_at(&p->lx, p->results.at[0].line, p->results.at[0].col,
                      "%u names for %u results", count, n);
}

ot_status ml_define_result(ml_parser *p, uint32_t k, ml_symbol s)
{
    uint32_t g = 0;
    while (k >= p->results.at[g].n) k -= p->results.at[g++].n;
    const char *name = p->results.at[g].name;
    if (p->results.at[g].n > 1) { /* %0#1; %0 is the first */
        const char *own = ot_format(p->a, "%s#%u", name, k);
        OT_TRY(ml_define(p, own, p->results.at[g].line, p->results.at[g].col, s));
        if (k > 0) return OT_OK;
    }
    return ml_define(p, name, p->results.at[g].line, p->results.at[g].col, s);
}

ot_status ml_define_scalars(ml_parser *p)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->results.n; k++) count += p->results.at[k].n;
    for (uint32_t k = 0; k < count; k++)
        OT_TRY(ml_define_result(p, k, (ml_symbol){.value = OT_NONE}));
    return OT_OK;
}

/* ---- the kernel ---- */

/* A name of the kernel language, that no value has. NULL when memory ran out. */
static const char *own_name(ml_parser *p, const char *name)
{
    char *text = ot_format(p->a, "%s", name);
    if (!text) return NULL;
    for (char *c = text; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
              *c == '.' || *c == '$'))
            *c = '_';
    if (!ot_tk_is_value_name(text)) text = ot_format(p->a, "_%s", text);
    return text;
}

ot_status ml_add_value(ml_parser *p, const char *name, ot_tk_kind kind, const ot_tk_value *like,
                       uint32_t *id)
{
    ot_tk_value v = *like;
    const char *own = own_name(p, name);
    if (p->n_values >= ML_ITEMS_MAX) return ml_fail(&p->lx, "more than %u values", ML_ITEMS_MAX);
    if (!own) return ml_nomem(p);
    v.name = own; /* the first of a name keeps it */
    for (uint32_t k = p->n_values; v.name && ot_map_get(p->taken, v.name) != OT_NONE; k++)
        v.name = ot_format(p->a, "%s$%u", own, k);
    if (!v.name || !ot_map_put(p->taken, v.name, 1)) return ml_nomem(p);
    v.kind = kind;
    *id = ot_kb_put_value(p->b, v);
    p->n_values++;
    return *id == OT_NONE ? ml_nomem(p) : OT_OK;
}

ot_status ml_add_stmt(ml_parser *p, ot_tk_stmt s, uint32_t *id)
{
    if (ot_kb_n_stmts(p->b) >= ML_ITEMS_MAX)
        return ml_fail(&p->lx, "more than %u statements", ML_ITEMS_MAX);
    uint32_t own = ot_kb_put_stmt(p->b, s);
    if (id) *id = own;
    return own == OT_NONE ? ml_nomem(p) : OT_OK;
}

ot_tk_value ml_value_of(const ml_parser *p, const ml_type *t)
{
    ot_tk_value v = {.line = t->line,
                     .col = t->col,
                     .rank = t->rank,
                     .dtype = t->dtype,
                     .scope = t->scope,
                     .multi = 1,
                     .base = OT_NONE};
    memcpy(v.dims, t->dims, sizeof v.dims);
    v.stmt = ot_kb_n_stmts(p->b);
    return v;
}

ot_status ml_add_view(ml_parser *p, const char *name, uint32_t base, bool part, uint32_t *id)
{
    const ot_tk_value *whole = ot_kb_at(p->b, base);
    ot_tk_stmt s = ml_stmt(p, OT_TK_VIEW);
    ot_tk_value v = {.line = s.line,
                     .col = s.col,
                     .rank = whole->rank,
                     .dtype = whole->dtype,
                     .scope = whole->scope,
                     .multi = 1,
                     .base = base,
                     .stmt = ot_kb_n_stmts(p->b)};
    memcpy(v.dims, whole->dims, sizeof v.dims);
    if (part) { /* which one, nobody knows; it is less than all, so that a write leaves some */
        uint32_t cut = 0;
        while (cut + 1 < v.rank && v.dims[cut] == 1) cut++;
        if (v.dims[cut] > 1) v.dims[cut]--;
        ot_tk_range *all = OT_NEW_N(p->a, ot_tk_range, v.rank);
        if (!all) return ml_nomem(p);
        for (uint32_t d = 0; d < v.rank; d++) all[d].hi.constant = v.dims[d];
        v.ranges = all;
    }
    OT_TRY(ml_add_value(p, name, part ? OT_TK_SUBVIEW : OT_TK_ALIAS, &v, id));
    s.out = id;
    s.n_out = 1;
    return ml_add_stmt(p, s, NULL);
}

/* The tensor that reads without another output go to. */
static ot_status find_sink(ml_parser *p)
{
    if (p->sink != OT_NONE) return OT_OK;
    const ot_tk_value v = {.line = 1,
                           .col = 1,
                           .rank = 1,
                           .dims = {1},
                           .dtype = "i8",
                           .scope = OT_SCOPE_GM,
                           .multi = 1,
                           .base = OT_NONE,
                           .stmt = OT_NONE};
    return ml_add_value(p, "elsewhere", OT_TK_PARAM, &v, &p->sink);
}

ot_status ml_add_read(ml_parser *p, uint32_t v, const ot_tk_stmt *at)
{
    OT_TRY(find_sink(p));
    return ml_add_stmt(p,
                       (ot_tk_stmt){.op = OT_TK_STORE,
                                    .line = at->line,
                                    .col = at->col,
                                    .pipe = OT_PIPE_DMA_OUT,
                                    .in = &v,
                                    .n_in = 1,
                                    .out = &p->sink,
                                    .n_out = 1,
                                    .mate = OT_NONE},
                       NULL);
}
