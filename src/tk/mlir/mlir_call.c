/* Calls, selections, bodies that are skipped, and what a name that may be several buffers reads
 * and writes.
 *
 *   func.call @f(%a, %b) {...} : (T, U) -> ()     reads all of a and b, writes parts of them; of a
 *                                                 vector function of the text, what its body does
 *   %s = arith.select %c, %a, %b : T              a or b
 */
#include "mlir_vector.h"

/* A value of another block of the function is hidden here: the same view once more. */
static ot_status shown(ml_parser *p, const ml_symbol *s, uint32_t v, uint32_t *id)
{
    const ot_tk_value *x = ot_kb_at(p->b, v);
    bool part = x->kind == OT_TK_SUBVIEW;
    *id = v;
    if (s->block == p->block || x->base == OT_NONE) return OT_OK;
    uint32_t root = x->base;
    for (; ot_kb_at(p->b, root)->base != OT_NONE; root = ot_kb_at(p->b, root)->base)
        part = part || ot_kb_at(p->b, root)->kind == OT_TK_SUBVIEW;
    return ml_add_view(p, s->name, root, part, id);
}

ot_status ml_values(ml_parser *p, uint32_t symbol, bool writes, uint32_t *ids, uint32_t *n)
{
    const ml_symbol s = p->symbols[symbol];
    *n = 0;
    for (uint32_t k = 0; s.value != OT_NONE && k <= s.n_also; k++) {
        uint32_t v;
        OT_TRY(shown(p, &s, k == 0 ? s.value : s.also[k - 1], &v));
        if (writes && (s.n_also > 0 || (s.is_part && ot_kb_at(p->b, v)->base == OT_NONE)))
            OT_TRY(ml_add_view(p, s.name, v, true, &v));
        ids[(*n)++] = v;
    }
    return OT_OK;
}

ot_status ml_add_reads(ml_parser *p, uint32_t symbol, const ot_tk_stmt *at)
{
    uint32_t ids[ML_LIST_MAX], n;
    OT_TRY(ml_values(p, symbol, false, ids, &n));
    for (uint32_t k = 0; k < n; k++) OT_TRY(ml_add_read(p, ids[k], at));
    return OT_OK;
}

/* ---- calls ---- */

static ot_status add_call(ml_parser *p, const ml_operands *o, ot_tk_stmt at)
{
    uint32_t in[2 * ML_LIST_MAX], out[2 * ML_LIST_MAX], n = 0;
    for (uint32_t k = 0; k < o->n; k++) {
        uint32_t ids[ML_LIST_MAX], count;
        OT_TRY(ml_values(p, o->symbols[k], false, ids, &count));
        if (n + count > 2 * ML_LIST_MAX)
            return ml_fail_at(&p->lx, at.line, at.col, "more than %d buffers", 2 * ML_LIST_MAX);
        for (uint32_t j = 0; j < count; j++) {
            OT_TRY(ml_add_view(p, p->symbols[o->symbols[k]].name, ids[j], true, &out[n]));
            in[n++] = ids[j];
        }
    }
    if (n == 0) return OT_OK;
    at.op = OT_TK_COMPUTE;
    at.pipe = OT_PIPE_VECTOR;
    at.name = "call";
    at.in = in;
    at.out = out;
    at.n_in = at.n_out = n;
    return ml_add_stmt(p, at, NULL);
}

#define IDS_MAX (4 * ML_LIST_MAX)

/* Buffers that a call reads, or writes, and the argument that each is given for. */
typedef struct id_list {
    uint32_t at[IDS_MAX], argument[IDS_MAX], n;
} id_list;

static ot_status gather(ml_parser *p, const ml_operands *o, uint32_t k, bool writes, id_list *l)
{
    uint32_t ids[ML_LIST_MAX], n;
    OT_TRY(ml_values(p, o->symbols[k], writes, ids, &n));
    if (l->n + n > IDS_MAX) return ml_fail(&p->lx, "more than %d buffers", IDS_MAX);
    for (uint32_t j = 0; j < n; j++) {
        l->at[l->n] = ids[j];
        l->argument[l->n++] = k;
    }
    return OT_OK;
}

/* Are both all of their buffers, or the same part of them? */
static bool are_alike(const ml_symbol *a, const ml_symbol *b)
{
    if (a->n_also > 0 || b->n_also > 0) return false;
    if (!a->is_part && !b->is_part) return true;
    return a->window && b->window && strcmp(a->window, b->window) == 0;
}

/* A call of a function whose effects are known. */
static ot_status add_known_call(ml_parser *p, const ml_operands *o, const ml_effects *e,
                                ot_tk_stmt at)
{
    id_list in = {.n = 0}, out = {.n = 0};
    for (uint32_t k = 0; k < o->n; k++) {
        const uint32_t first = out.n;
        if (e->reads[k]) OT_TRY(gather(p, o, k, false, &in));
        if (!e->writes[k]) continue;
        OT_TRY(gather(p, o, k, true, &out));
        for (uint32_t j = first; j < out.n && !e->whole[k]; j++)
            OT_TRY(ml_add_view(p, p->symbols[o->symbols[k]].name, out.at[j], true, &out.at[j]));
    }
    if (out.n == 0) {
        for (uint32_t k = 0; k < in.n; k++) OT_TRY(ml_add_read(p, in.at[k], &at));
        return OT_OK;
    }
    bool *over = OT_NEW_N(p->a, bool, (size_t)out.n *in.n + 1);
    if (!over) return ml_nomem(p);
    for (uint32_t j = 0; j < out.n; j++)
        for (uint32_t k = 0; k < in.n; k++) {
            const uint32_t to = out.argument[j], from = in.argument[k];
            over[j * in.n + k] = e->over[(size_t)to * e->n + from] &&
                                 are_alike(&p->symbols[o->symbols[to]],
                                           &p->symbols[o->symbols[from]]);
        }
    at.op = OT_TK_COMPUTE;
    at.pipe = OT_PIPE_VECTOR;
    at.name = "call";
    at.in = in.at;
    at.n_in = in.n;
    at.out = out.at;
    at.n_out = out.n;
    at.over = over;
    return ml_add_stmt(p, at, NULL);
}

/* What the one function of that name does; NULL: there is none, there are several, or nobody
 * knows. */
static const ml_effects *effects_of(const ml_parser *p, const char *name)
{
    const ml_effects *found = NULL;
    uint32_t n = 0;
    for (size_t k = 0; p->all && k < p->all->n; k++) {
        if (strcmp(p->all->at[k].name, name) != 0) continue;
        found = p->all->at[k].effects;
        n++;
    }
    return n == 1 ? found : NULL;
}

ot_status ml_call(ml_parser *p, ot_tk_stmt at)
{
    ml_operands o;
    ml_type t;
    bool memref[ML_LIST_MAX] = {false};
    uint32_t n = 0;
    if (p->lx.tok != ML_SYMBOL) return ml_expected(&p->lx, "the function's name");
    const char *name = ml_token_name(p);
    if (!name) return ml_nomem(p);
    const ml_effects *e = effects_of(p, name);
    ml_next(&p->lx);
    OT_TRY(ml_expect(&p->lx, '('));
    OT_TRY(ml_use_list(p, &o));
    OT_TRY(ml_expect(&p->lx, ')'));
    if (ml_is(&p->lx, '{')) OT_TRY(ml_skip_brackets(&p->lx));
    OT_TRY(ml_expect(&p->lx, ':'));
    if (!ml_is(&p->lx, '(')) return ml_expected(&p->lx, "'('");
    OT_TRY(ml_skip_brackets(&p->lx));
    OT_TRY(ml_expect(&p->lx, 'r'));
    if (ml_accept(&p->lx, '(')) {
        while (!ml_is(&p->lx, ')')) {
            if (n == ML_LIST_MAX) return ml_fail(&p->lx, "more than %d types", ML_LIST_MAX);
            OT_TRY(ml_parse_type(&p->lx, &t));
            memref[n++] = t.kind == ML_MEMREF_TYPE;
            if (!ml_is(&p->lx, ')')) OT_TRY(ml_expect(&p->lx, ','));
        }
        ml_next(&p->lx);
    } else {
        OT_TRY(ml_parse_type(&p->lx, &t));
        memref[n++] = t.kind == ML_MEMREF_TYPE;
    }
    OT_TRY(e && e->n == o.n ? add_known_call(p, &o, e, at) : add_call(p, &o, at));
    if (p->results.n == 0) return p->lx.r.status;
    OT_TRY(ml_expect_results(p, n));
    for (uint32_t k = 0; k < n; k++)
        OT_TRY(ml_define_result(p, k, (ml_symbol){.value = OT_NONE, .is_memref = memref[k]}));
    return OT_OK;
}

/* ---- select ---- */

ot_status ml_select(ml_parser *p)
{
    ml_operands o;
    ml_type t;
    OT_TRY(ml_use_list(p, &o));
    if (o.n != 3) return ml_expected(&p->lx, "a condition and two values");
    if (ml_is(&p->lx, '{')) OT_TRY(ml_skip_brackets(&p->lx));
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    if (ml_accept(&p->lx, ',')) OT_TRY(ml_parse_type(&p->lx, &t));
    OT_TRY(ml_expect_results(p, 1));
    ml_symbol s = {.value = OT_NONE, .is_memref = t.kind == ML_MEMREF_TYPE};
    for (uint32_t k = 1; k < 3; k++) {
        ml_symbol one = p->symbols[o.symbols[k]];
        if (one.is_memref != s.is_memref)
            return ml_fail_at(&p->lx, o.lines[k], o.cols[k], "'%%%s' is %s memref", one.name,
                              one.is_memref ? "a" : "no");
        uint32_t ids[ML_LIST_MAX], n;
        OT_TRY(ml_values(p, o.symbols[k], false, ids, &n));
        one.also = ids + 1;
        if (n > 0) one.value = ids[0];
        OT_TRY(ml_merge(p, &s, &one));
    }
    return ml_define_result(p, 0, s);
}

/* ---- bodies ---- */

ot_status ml_skip_body(ml_parser *p)
{
    ml_lexer *lx = &p->lx;
    uint32_t depth = 0, line = lx->r.tok_line, col = lx->r.tok_col;
    do {
        if (lx->tok == ML_BAD) return lx->r.status;
        if (lx->tok == ML_END) return ml_fail_at(lx, line, col, "the function has no end");
        if (ml_is(lx, '{')) depth++;
        if (ml_is(lx, '}')) depth--;
        lx->in_shape = ml_is(lx, '<');
        ml_next(lx);
    } while (depth > 0 && lx->r.status == OT_OK);
    return lx->r.status;
}
