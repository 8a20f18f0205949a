/* Statements that make memrefs, name them anew, mark them, and reach single elements.
 *
 *   memref.alloc, memref_ext.alloc_workspace    a buffer
 *   hivm.hir.pointer_cast(%c0)                  a buffer at a given place
 *   memref.cast, collapse_shape, expand_shape   another name
 *   memref.subview, view, reinterpret_cast      a part
 */
#include "mlir_internal.h"

static const char *result_name(const ml_parser *p)
{
    return p->results.n > 0 ? p->results.at[0].name : NULL;
}

/* No elements: it takes no memory. */
static bool is_empty(const ml_type *t)
{
    bool none = false;
    for (uint32_t d = 0; d < t->rank; d++) none = none || t->dims[d] == 0;
    return t->kind == ML_MEMREF_TYPE && t->is_static && none;
}

/* A buffer of type t, with its statement and its piece of text. */
static ot_status add_buffer(ml_parser *p, ot_tk_stmt at, const ml_type *t, ml_cast c,
                            const int64_t *offsets, uint32_t n_offsets)
{
    const char *name = result_name(p) ? result_name(p) : "unnamed";
    ml_symbol s = {.value = OT_NONE, .is_memref = true};
    const bool hoisted = p->passes->hoist && p->m->n_casts < p->passes->n_hoisted;
    if (p->results.n > 0) OT_TRY(ml_expect_results(p, 1));
    if (ot_mem_plans(p->mode, t->scope) && is_empty(t)) {
        c.value = OT_NONE;
        c.is_empty = !c.is_placed;
        c.type_at = t->at;
        c.type_end = c.end = t->end;
        if (!OT_PUSH(p->m->arena, p->m->casts, p->m->n_casts, p->cap_casts, c)) return ml_nomem(p);
    } else if (ot_mem_plans(p->mode, t->scope)) {
        OT_TRY(ml_check_static(&p->lx, t));
        ot_tk_value v = ml_value_of(p, t);
        v.line = at.line;
        v.col = at.col;
        v.workspace = t->scope == OT_SCOPE_GM;
        v.n_offsets = n_offsets;
        v.multi = n_offsets > 0 ? n_offsets : 1;
        if (n_offsets > 0) memcpy(v.offsets, offsets, n_offsets * sizeof *offsets);
        at.op = OT_TK_ALLOC;
        at.out = &s.value;
        at.n_out = 1;
        if (hoisted) {
            s.value = p->hoisted[p->m->n_casts];
        } else {
            OT_TRY(ml_add_value(p, name, OT_TK_BUFFER, &v, &s.value));
            OT_TRY(ml_add_stmt(p, at, NULL));
        }
        c.value = s.value;
        c.name = result_name(p);
        c.type_at = t->at;
        c.type_end = c.end = t->end;
        if (!OT_PUSH(p->m->arena, p->m->casts, p->m->n_casts, p->cap_casts, c)) return ml_nomem(p);
    }
    return p->results.n > 0 ? ml_define_result(p, 0, s) : OT_OK;
}

/* [0, %c4, 8]: numbers, INT64_MIN where one is not known. */
static ot_status number_list(ml_parser *p, int64_t *list, uint32_t *n)
{
    *n = 0;
    OT_TRY(ml_expect(&p->lx, '['));
    while (!ml_is(&p->lx, ']')) {
        uint32_t symbol;
        if (*n == OT_TK_RANK_MAX) return ml_fail(&p->lx, "more than %d numbers", OT_TK_RANK_MAX);
        list[*n] = INT64_MIN;
        if (p->lx.tok == ML_INT) {
            list[*n] = p->lx.value;
            ml_next(&p->lx);
        } else {
            OT_TRY(ml_use(p, &symbol));
            if (p->symbols[symbol].has_number) list[*n] = p->symbols[symbol].number;
        }
        ++*n;
        if (!ml_is(&p->lx, ']')) OT_TRY(ml_expect(&p->lx, ','));
    }
    return ml_expect(&p->lx, ']');
}

static ot_status parse_alloc(ml_parser *p, size_t start, ot_tk_stmt at)
{
    ml_type t;
    OT_TRY(ml_expect(&p->lx, '('));
    if (!ml_is(&p->lx, ')')) return ml_fail(&p->lx, "a memref of unknown size cannot be planned");
    ml_next(&p->lx);
    if (ml_is(&p->lx, '{')) OT_TRY(ml_skip_brackets(&p->lx));
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    if (!is_empty(&t)) OT_TRY(ml_check_static(&p->lx, &t));
    if (!t.has_space)
        return ml_fail_at(&p->lx, t.line, t.col,
                          "memref.alloc without #hivm.address_space<...>: in which memory?");
    if (t.scope == OT_SCOPE_GM)
        return ml_fail_at(&p->lx, t.line, t.col,
                          "memref.alloc in gm: global memory is memref_ext.alloc_workspace");
    return add_buffer(p, at, &t, (ml_cast){.at = start}, NULL, 0);
}

/* memref_ext.alloc_workspace() [from %arg [offset = [%c]]] : [from memref<?xi8> to] memref<...> */
static ot_status parse_workspace(ml_parser *p, size_t start, ot_tk_stmt at)
{
    ml_type t;
    uint32_t arg, n = 0;
    int64_t offsets[OT_TK_RANK_MAX];
    bool from = false;
    OT_TRY(ml_expect(&p->lx, '('));
    OT_TRY(ml_expect(&p->lx, ')'));
    if (ml_accept_word(&p->lx, "from")) {
        from = true;
        OT_TRY(ml_use(p, &arg));
        if (ml_accept_word(&p->lx, "offset")) { /* it is planned already */
            OT_TRY(ml_expect(&p->lx, '='));
            OT_TRY(number_list(p, offsets, &n));
            if (n < 1) return ml_fail(&p->lx, "a workspace has 1 to %d offsets", OT_TK_RANK_MAX);
        }
    }
    if (*(n > 0 ? &p->has_workspace : &p->has_placed) && ot_mem_plans(p->mode, OT_SCOPE_GM))
        return ml_fail_at(&p->lx, at.line, at.col,
                          "workspaces with and without an offset in one function");
    *(n > 0 ? &p->has_placed : &p->has_workspace) = true;
    OT_TRY(ml_expect(&p->lx, ':'));
    if (from) {
        OT_TRY(ml_expect_word(&p->lx, "from"));
        OT_TRY(ml_parse_type(&p->lx, &t));
        OT_TRY(ml_expect_word(&p->lx, "to"));
    }
    OT_TRY(ml_parse_type(&p->lx, &t));
    OT_TRY(ml_check_static(&p->lx, &t));
    if (t.scope != OT_SCOPE_GM) return ml_fail_at(&p->lx, t.line, t.col, "a workspace is in gm");
    if (n > 0) {
        OT_TRY(ml_expect_results(p, 1));
        return ml_define_result(p, 0, (ml_symbol){.value = OT_NONE, .is_memref = true});
    }
    return add_buffer(p, at, &t, (ml_cast){.at = start}, NULL, 0);
}

/* hivm.hir.pointer_cast(%c0, %c64) [] : memref<...> */
static ot_status parse_cast(ml_parser *p, size_t start, ot_tk_stmt at)
{
    ml_operands o;
    ml_type t;
    int64_t offsets[OT_TK_MULTI_MAX];
    OT_TRY(ml_expect(&p->lx, '('));
    OT_TRY(ml_use_list(p, &o));
    if (o.n < 1 || o.n > OT_TK_MULTI_MAX)
        return ml_fail(&p->lx, "a pointer_cast has 1 to %d addresses", OT_TK_MULTI_MAX);
    for (uint32_t k = 0; k < o.n; k++) {
        const ml_symbol *s = &p->symbols[o.symbols[k]];
        if (!s->has_number || s->number < 0)
            return ml_fail_at(&p->lx, o.lines[k], o.cols[k],
                              "the address '%%%s' is no constant from 0", s->name);
        offsets[k] = s->number;
    }
    OT_TRY(ml_expect(&p->lx, ')'));
    if (ml_is(&p->lx, '[')) OT_TRY(ml_skip_brackets(&p->lx));
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    if (!is_empty(&t)) OT_TRY(ml_check_static(&p->lx, &t));
    return add_buffer(p, at, &t, (ml_cast){.at = start, .is_placed = true}, offsets, o.n);
}

/* ---- other names ---- */

/* The type is next. place: of a part, in words: where it begins; NULL: not known. */
static ot_status make_view(ml_parser *p, uint32_t base, bool part, const char *place)
{
    ml_type t;
    uint32_t ids[ML_LIST_MAX], n;
    OT_TRY(ml_parse_type(&p->lx, &t));
    if (t.kind != ML_MEMREF_TYPE) return ml_fail_at(&p->lx, t.line, t.col, "a view is a memref");
    OT_TRY(ml_expect_results(p, 1));
    if (!p->symbols[base].is_memref)
        return ml_fail_at(&p->lx, t.line, t.col, "'%%%s' is no memref", p->symbols[base].name);
    ml_symbol s = {
        .value = OT_NONE, .is_memref = true, .is_part = part || p->symbols[base].is_part};
    if (place && part && !p->symbols[base].is_part &&
        !(s.window = ot_format(p->a, "%s %.*s", place, (int)(t.end - t.at), p->m->text + t.at)))
        return ml_nomem(p);
    OT_TRY(ml_values(p, base, false, ids, &n));
    for (uint32_t k = 0; k < n; k++) {
        ml_symbol one = {.is_memref = true};
        OT_TRY(ml_add_view(p, result_name(p), ids[k], part, &one.value));
        OT_TRY(ml_merge(p, &s, &one));
    }
    return ml_define_result(p, 0, s);
}

static bool all_are(const int64_t *list, uint32_t n, int64_t value)
{
    for (uint32_t k = 0; k < n; k++)
        if (list[k] != value) return false;
    return true;
}

/* memref.subview %x[offsets] [sizes] [strides] : type to type: one that takes all of x is another
 * name of it. */
static ot_status parse_subview(ml_parser *p)
{
    ml_type t;
    uint32_t base, n[3];
    int64_t list[3][OT_TK_RANK_MAX];
    OT_TRY(ml_use(p, &base));
    for (int k = 0; k < 3; k++) OT_TRY(number_list(p, list[k], &n[k]));
    if (ml_is(&p->lx, '{')) OT_TRY(ml_skip_brackets(&p->lx));
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    OT_TRY(ml_expect_word(&p->lx, "to"));
    bool all = t.is_static && t.layout == 0 && n[1] == t.rank && all_are(list[0], n[0], 0) &&
               all_are(list[2], n[2], 1);
    for (uint32_t k = 0; all && k < t.rank; k++) all = list[1][k] == t.dims[k];
    bool known = true;
    char place[32 * OT_TK_RANK_MAX] = "subview";
    for (uint32_t k = 0, at = 7; k < n[0]; k++) {
        known = known && list[0][k] != INT64_MIN;
        at += (uint32_t)snprintf(place + at, sizeof place - at, " %lld", (long long)list[0][k]);
    }
    known = known && t.layout == 0;
    return make_view(p, base, !all, known ? place : NULL);
}

/* memref.view %x[%offset][%sizes] : type to type */
static ot_status parse_byte_view(ml_parser *p)
{
    ml_type t;
    uint32_t base, n;
    int64_t offset[OT_TK_RANK_MAX], sizes[OT_TK_RANK_MAX];
    char place[32];
    OT_TRY(ml_use(p, &base));
    OT_TRY(number_list(p, offset, &n));
    OT_TRY(number_list(p, sizes, &n));
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    OT_TRY(ml_expect_word(&p->lx, "to"));
    snprintf(place, sizeof place, "bytes %lld", (long long)offset[0]);
    return make_view(p, base, true, offset[0] == INT64_MIN ? NULL : place);
}

/* memref.NAME %x ... : memref<...> to memref<...> */
static ot_status parse_view(ml_parser *p, bool part)
{
    ml_type t;
    uint32_t base;
    OT_TRY(ml_use(p, &base));
    if (ml_is(&p->lx, '(')) { /* memref.reshape %x(%sizes) : (memref, memref) -> memref */
        OT_TRY(ml_skip_brackets(&p->lx));
        OT_TRY(ml_expect(&p->lx, ':'));
        if (!ml_is(&p->lx, '(')) return ml_expected(&p->lx, "'('");
        OT_TRY(ml_skip_brackets(&p->lx));
        OT_TRY(ml_expect(&p->lx, 'r'));
        return make_view(p, base, false, NULL);
    }
    for (; !ml_is_word(&p->lx, "memref"); ml_next(&p->lx)) {
        if (p->lx.r.status != OT_OK) return p->lx.r.status;
        if (p->lx.tok == ML_END || ml_is(&p->lx, '}') || ml_is(&p->lx, '='))
            return ml_expected(&p->lx, "the type of the memref");
    }
    OT_TRY(ml_parse_type(&p->lx, &t));
    if (!ml_accept_word(&p->lx, "into")) OT_TRY(ml_expect_word(&p->lx, "to"));
    return make_view(p, base, part, NULL);
}

/* All that a symbol may be keeps its place: throughout the loop that it is allocated in, since
 * other iterations' stages use it at the same time, or throughout the kernel. */
static void hold_all(ml_parser *p, const ml_symbol *s, ot_tk_keep keep)
{
    for (uint32_t k = 0; s->value != OT_NONE && k <= s->n_also; k++) {
        uint32_t v = k == 0 ? s->value : s->also[k - 1];
        while (ot_kb_at(p->b, v)->base != OT_NONE) v = ot_kb_at(p->b, v)->base;
        ot_tk_value *x = ot_kb_at(p->b, v);
        if (keep > x->keep) x->keep = keep;
    }
}

/* From here on another core may have written it. */
static ot_status add_foreign_write(ml_parser *p, uint32_t symbol, ot_tk_stmt at)
{
    uint32_t ids[ML_LIST_MAX], n;
    OT_TRY(ml_values(p, symbol, true, ids, &n));
    if (n == 0) return OT_OK;
    const ot_scope scope = ot_kb_at(p->b, ids[0])->scope;
    if ((p->is_cube && scope == OT_SCOPE_UB) || (p->is_vector && scope == OT_SCOPE_L1))
        return ml_fail_at(&p->lx, at.line, at.col,
                          "'%%%s' lies where another function's tightly coupled buffer does: not "
                          "in the subset that is read",
                          p->symbols[symbol].name);
    at.op = OT_TK_COMPUTE;
    at.pipe = OT_PIPE_DMA_IN;
    at.name = "call";
    at.out = ids;
    at.n_out = n;
    return ml_add_stmt(p, at, NULL);
}

/* annotation.mark %x {hivm.multi_buffer = 2 : i32, hivm.preload_local_buffer = 1 : i32} [keys ...]
 * : type; other marks say nothing about memory. */
static ot_status parse_mark(ml_parser *p, const ot_tk_stmt *at)
{
    uint32_t symbol, depth = 0, line = 0, col = 0;
    int64_t slots = 0;
    bool coupled = false;
    ot_tk_keep keep = OT_TK_KEEP_LIVE;
    ml_type t;
    OT_TRY(ml_use(p, &symbol));
    if (ml_accept(&p->lx, ':')) { /* that it is there up to here */
        OT_TRY(ml_parse_type(&p->lx, &t));
        return ml_add_reads(p, symbol, at);
    }
    OT_TRY(ml_expect(&p->lx, '{'));
    for (depth = 1; depth > 0; ml_next(&p->lx)) {
        if (p->lx.tok == ML_END || p->lx.r.status != OT_OK) return ml_expected(&p->lx, "'}'");
        if (ml_is(&p->lx, '{')) depth++;
        if (ml_is(&p->lx, '}') && --depth == 0) continue;
        if (depth == 1 && keep == OT_TK_KEEP_LIVE &&
            ml_is_word(&p->lx, "hivm.preload_local_buffer"))
            keep = OT_TK_KEEP_LOOP;
        coupled = coupled || (depth == 1 && ml_is_word(&p->lx, "hivm.tightly_coupled_buffer"));
        if (coupled || (depth == 1 && ml_is_word(&p->lx, "mem_unique"))) keep = OT_TK_KEEP_ALL;
        if (depth != 1 || !ml_is_word(&p->lx, "hivm.multi_buffer")) continue;
        ml_next(&p->lx);
        OT_TRY(ml_expect(&p->lx, '='));
        line = p->lx.r.tok_line;
        col = p->lx.r.tok_col;
        if (p->lx.tok != ML_INT) return ml_expected(&p->lx, "the number of buffers");
        slots = p->lx.value;
    }
    while (!ml_is(&p->lx, ':')) { /* keys = [...] values = [...] */
        if (ml_is(&p->lx, '[')) {
            OT_TRY(ml_skip_brackets(&p->lx));
            continue;
        }
        if (!ml_is(&p->lx, '=') && !ml_is_word(&p->lx, "keys") && !ml_is_word(&p->lx, "values"))
            return ml_expected(&p->lx, "':'");
        ml_next(&p->lx);
    }
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    uint32_t v = p->symbols[symbol].value;
    if (keep) hold_all(p, &p->symbols[symbol], keep);
    if (coupled) OT_TRY(add_foreign_write(p, symbol, *at));
    if (line == 0 || v == OT_NONE) return OT_OK;
    while (ot_kb_at(p->b, v)->base != OT_NONE) v = ot_kb_at(p->b, v)->base;
    if (slots < 1 || slots > OT_TK_MULTI_MAX)
        return ml_fail_at(&p->lx, line, col, "1 to %d buffers are allowed", OT_TK_MULTI_MAX);
    /* as without a mark: level 1 may double it, and a mark that says so is written beside this
     * one */
    if (slots == 1) return OT_OK;
    size_t k = 0;
    while (k < p->m->n_casts && p->m->casts[k].value != v) k++;
    if (k == p->m->n_casts)
        return ml_fail_at(&p->lx, line, col, "'%%%s' is no allocation: mark that",
                          p->symbols[symbol].name);
    ot_tk_value *x = ot_kb_at(p->b, v);
    if (x->n_offsets > 0 && x->n_offsets != slots)
        return ml_fail_at(&p->lx, line, col, "%lld buffers, but %u addresses", (long long)slots,
                          x->n_offsets);
    if (p->m->casts[k].marked && x->multi != slots)
        return ml_fail_at(&p->lx, line, col, "'%%%s' has a mark already: %u buffers, not %lld",
                          p->symbols[symbol].name, x->multi, (long long)slots);
    x->multi = (uint32_t)slots;
    p->m->casts[k].marked = true;
    return OT_OK;
}

/* ---- single elements ---- */

static ot_status parse_load(ml_parser *p, const ot_tk_stmt *at)
{
    ml_type t;
    uint32_t from;
    OT_TRY(ml_use(p, &from));
    if (!ml_is(&p->lx, '[')) return ml_expected(&p->lx, "'['");
    OT_TRY(ml_skip_brackets(&p->lx));
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    OT_TRY(ml_expect_results(p, 1));
    OT_TRY(ml_add_reads(p, from, at));
    return ml_define_scalars(p);
}

static ot_status parse_store(ml_parser *p, ot_tk_stmt at)
{
    ml_type t;
    uint32_t what, to, ids[ML_LIST_MAX], parts[ML_LIST_MAX], n;
    OT_TRY(ml_use(p, &what));
    OT_TRY(ml_expect(&p->lx, ','));
    OT_TRY(ml_use(p, &to));
    if (!ml_is(&p->lx, '[')) return ml_expected(&p->lx, "'['");
    OT_TRY(ml_skip_brackets(&p->lx));
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    OT_TRY(ml_expect_results(p, 0));
    OT_TRY(ml_values(p, to, false, ids, &n));
    if (n == 0) return OT_OK;
    for (uint32_t k = 0; k < n; k++) OT_TRY(ml_add_view(p, "element", ids[k], true, &parts[k]));
    at.op = OT_TK_COMPUTE;
    at.pipe = OT_PIPE_SCALAR;
    at.name = "element";
    at.in = ids;
    at.n_in = n > 1 ? n : 0; /* what is not written stays as it was */
    at.out = parts;
    at.n_out = n;
    return ml_add_stmt(p, at, NULL);
}

/* memref.get_global @name : type: the caller's memory. */
static ot_status parse_global(ml_parser *p)
{
    ml_type t;
    if (p->lx.tok != ML_SYMBOL) return ml_expected(&p->lx, "the name of a global");
    ml_next(&p->lx);
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    OT_TRY(ml_expect_results(p, 1));
    return ml_define_result(p, 0, (ml_symbol){.value = OT_NONE, .is_memref = true});
}

/* memref.dim %x, %c : type: a size is part of the type, no byte is looked at. */
static ot_status parse_dim(ml_parser *p)
{
    ml_type t;
    uint32_t of, which;
    OT_TRY(ml_use(p, &of));
    OT_TRY(ml_expect(&p->lx, ','));
    OT_TRY(ml_use(p, &which));
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    if (!p->symbols[of].is_memref)
        return ml_fail_at(&p->lx, t.line, t.col, "'%%%s' is no memref", p->symbols[of].name);
    OT_TRY(ml_expect_results(p, 1));
    return ml_define_scalars(p);
}

/* memref.copy %from, %to : type to type */
static ot_status parse_copy(ml_parser *p, ot_tk_stmt at)
{
    ml_type from, to;
    uint32_t symbols[2], ids[2][ML_LIST_MAX], n[2], operand[2 * ML_LIST_MAX] = {0};
    ot_scope scopes[2];
    for (int k = 0; k < 2; k++) {
        if (k > 0) OT_TRY(ml_expect(&p->lx, ','));
        OT_TRY(ml_use(p, &symbols[k]));
        OT_TRY(ml_values(p, symbols[k], k == 1, ids[k], &n[k]));
        scopes[k] = n[k] == 0 ? OT_SCOPE_GM : ot_kb_at(p->b, ids[k][0])->scope;
    }
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &from));
    OT_TRY(ml_expect_word(&p->lx, "to"));
    OT_TRY(ml_parse_type(&p->lx, &to));
    OT_TRY(ml_expect_results(p, 0));
    if (n[1] == 0) return ml_add_reads(p, symbols[0], &at);
    at.op = OT_TK_COMPUTE;
    at.pipe = ot_tk_copy_pipe(scopes[0], scopes[1]);
    at.name = from.layout == to.layout && from.layout != 1 ? "copy" : "operation";
    at.operand = operand; /* each may be the first */
    uint32_t in[2 * ML_LIST_MAX];
    memcpy(in, ids[0], n[0] * sizeof *in);
    memcpy(in + n[0], ids[1], n[1] * sizeof *in);
    at.in = in;
    at.n_in = n[0] + (n[1] > 1 ? n[1] : 0); /* what is not written stays as it was */
    at.out = ids[1];
    at.n_out = n[1];
    return ml_add_stmt(p, at, NULL);
}

ot_status ml_memref_stmt(ml_parser *p, const char *op, size_t start, ot_tk_stmt at, bool *known)
{
    static const struct {
        const char *name;
        bool part;
    } views[] = {{"memref.cast", false},
                 {"memref.collapse_shape", false},
                 {"memref.expand_shape", false},
                 {"memref.memory_space_cast", false},
                 {"memref.reinterpret_cast", true},
                 {"memref.reshape", false}};
    *known = true;
    if (strcmp(op, "memref.alloc") == 0) return parse_alloc(p, start, at);
    if (strcmp(op, "memref_ext.alloc_workspace") == 0) return parse_workspace(p, start, at);
    if (strcmp(op, "hivm.hir.pointer_cast") == 0) return parse_cast(p, start, at);
    if (strcmp(op, "annotation.mark") == 0) return parse_mark(p, &at);
    if (strcmp(op, "memref.get_global") == 0) return parse_global(p);
    if (strcmp(op, "memref.subview") == 0) return parse_subview(p);
    if (strcmp(op, "memref.view") == 0) return parse_byte_view(p);
    if (strcmp(op, "memref.dim") == 0) return parse_dim(p);
    if (strcmp(op, "memref.copy") == 0) return parse_copy(p, at);
    if (strcmp(op, "memref.load") == 0) return parse_load(p, &at);
    if (strcmp(op, "memref.store") == 0) return parse_store(p, at);
    for (size_t k = 0; k < sizeof views / sizeof *views; k++)
        if (strcmp(op, views[k].name) == 0) return parse_view(p, views[k].part);
    *known = false;
    return OT_OK;
}
