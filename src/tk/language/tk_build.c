/* Kernels that grow: the lists that the parser and code (ot_kb_...) append to.
 *
 *   ot_kb_for --> stmts: ... FOR           open: [FOR]  every statement gets the innermost open
 *                                          block as parent;
 *   ot_kb_load --> stmts: ... FOR LOAD     open: [FOR]  the END tells its opener where it is, and
 *                                          the other way round
 *   ot_kb_end --> stmts: ... FOR LOAD END  open: []
 *
 * Nothing is judged here but memory: a wrong index or size is stored as it came (a number of
 * dims no further than there is room), and ot_kernel_verify finds it. A builder's statements get
 * the line and column that they have when they are printed.
 */
#include "tk_internal.h"

/* ---- lists ---- */

bool tk_builder_init(ot_kernel_builder *b)
{
    ot_arena *a = ot_arena_new();
    *b = (ot_kernel_builder){.k = a ? OT_NEW(a, ot_kernel) : NULL};
    if (!b->k) {
        ot_arena_free(a);
        return false;
    }
    b->k->arena = a;
    return true;
}

uint32_t tk_innermost(const ot_kernel_builder *b)
{
    return b->n_open > 0 ? b->open[b->n_open - 1] : OT_NONE;
}

static uint32_t no_memory(ot_kernel_builder *b)
{
    b->failed = true;
    return OT_NONE;
}

uint32_t tk_add_value(ot_kernel_builder *b, ot_tk_value v)
{
    ot_kernel *k = b->k;
    if (!OT_PUSH(k->arena, k->values, k->n_values, b->cap_values, v)) return no_memory(b);
    return k->n_values - 1;
}

/* The list in the kernel's memory; NULL stays NULL. */
static const void *keep(ot_kernel_builder *b, const void *list, size_t n, size_t size)
{
    if (!list) return NULL;
    void *own = ot_memdup(b->k->arena, list, n * size);
    if (!own) b->failed = true;
    return own;
}

uint32_t tk_add_stmt(ot_kernel_builder *b, ot_tk_stmt s)
{
    ot_kernel *k = b->k;
    s.parent = tk_innermost(b);
    s.out = keep(b, s.out, s.n_out, sizeof *s.out);
    s.in = keep(b, s.in, s.n_in, sizeof *s.in);
    if (s.operand) s.operand = keep(b, s.operand, s.n_in, sizeof *s.operand);
    if (s.same_part) s.same_part = keep(b, s.same_part, s.n_in, sizeof *s.same_part);
    if (s.over) s.over = keep(b, s.over, (size_t)s.n_out * s.n_in, sizeof *s.over);
    s.carried = keep(b, s.carried, s.n_out, sizeof *s.carried);
    s.ranges = keep(b, s.ranges, s.n_ranges, sizeof *s.ranges);
    s.attrs = s.n_attrs > 0 ? keep(b, s.attrs, s.n_attrs, sizeof *s.attrs) : NULL;
    if (b->failed || !OT_PUSH(k->arena, k->stmts, k->n_stmts, b->cap_stmts, s)) return no_memory(b);
    return k->n_stmts - 1;
}

uint32_t tk_open(ot_kernel_builder *b, ot_tk_stmt s)
{
    s.mate = OT_NONE;
    uint32_t at = tk_add_stmt(b, s);
    if (at == OT_NONE || !OT_PUSH(b->k->arena, b->open, b->n_open, b->cap_open, at))
        return no_memory(b);
    return at;
}

uint32_t tk_else(ot_kernel_builder *b, uint32_t line, uint32_t col)
{
    uint32_t opener = tk_innermost(b);
    uint32_t at = tk_add_stmt(
        b, (ot_tk_stmt){.op = OT_TK_ELSE, .line = line, .col = col, .mate = OT_NONE});
    if (at != OT_NONE) b->k->stmts[opener].mate = at;
    return at;
}

uint32_t tk_close(ot_kernel_builder *b, uint32_t line, uint32_t col)
{
    uint32_t opener = tk_innermost(b);
    b->n_open--;
    uint32_t at = tk_add_stmt(
        b, (ot_tk_stmt){.op = OT_TK_END, .line = line, .col = col, .mate = opener});
    if (at == OT_NONE) return OT_NONE;
    uint32_t other = b->k->stmts[opener].mate; /* the else branch, if any */
    b->k->stmts[other == OT_NONE ? opener : other].mate = at;
    return at;
}

void ot_kernel_free(ot_kernel *k)
{
    if (k) ot_arena_free(k->arena);
}

/* ---- types ---- */

/* A value of this type; name and strings copied. */
static ot_tk_value value_of(ot_kernel_builder *b, const char *name, ot_tk_kind kind,
                            const char *dtype, const int64_t *dims, uint32_t rank)
{
    ot_tk_value v = {.kind = kind,
                     .rank = rank,
                     .scope = OT_SCOPE_GM,
                     .multi = 1,
                     .base = OT_NONE,
                     .stmt = OT_NONE};
    v.name = ot_strdup(b->k->arena, name);
    v.dtype = tk_dtype_parse(dtype);
    if (!v.dtype) v.dtype = ot_strdup(b->k->arena, dtype);
    if (!v.name || !v.dtype) b->failed = true;
    for (uint32_t d = 0; d < rank && d < OT_TK_RANK_MAX; d++) v.dims[d] = dims[d];
    if (b->failed || !tk_type_bytes(v.dtype, v.dims, v.rank, &v.bytes)) v.bytes = 0;
    return v;
}

/* Append v with its statement. */
static uint32_t define(ot_kernel_builder *b, ot_tk_value v, ot_tk_op op)
{
    if (b->failed) return OT_NONE;
    v.stmt = b->k->n_stmts;
    uint32_t id = tk_add_value(b, v);
    if (id == OT_NONE ||
        tk_add_stmt(b, (ot_tk_stmt){.op = op, .out = &id, .n_out = 1, .mate = OT_NONE}) == OT_NONE)
        return OT_NONE;
    return id;
}

/* The variable as the open loop spells it; a copy when no open loop has it. */
static const char *loop_variable(ot_kernel_builder *b, const char *var)
{
    for (size_t k = b->n_open; k-- > 0;) {
        const char *own = b->k->stmts[b->open[k]].var;
        if (own && strcmp(own, var) == 0) return own;
    }
    const char *copy = ot_strdup(b->k->arena, var);
    if (!copy) b->failed = true;
    return copy;
}

/* *to: the same expression, each variable in one term. What overflows becomes one that no rule
 * allows. */
static bool keep_affine(ot_kernel_builder *b, const ot_tk_affine *from, ot_tk_affine *to)
{
    *to = (ot_tk_affine){.constant = from->constant};
    for (uint32_t k = 0; k < from->n && k < sizeof from->terms / sizeof *from->terms; k++) {
        const char *var = loop_variable(b, from->terms[k].var);
        if (!var) return false;
        if (!tk_affine_add(to, var, from->terms[k].coef)) to->constant = INT64_MIN;
    }
    tk_affine_tidy(to);
    return true;
}

static ot_tk_range *keep_ranges(ot_kernel_builder *b, const ot_tk_range *ranges, uint32_t n)
{
    ot_tk_range *own = OT_NEW_N(b->k->arena, ot_tk_range, n);
    if (!own) b->failed = true;
    for (uint32_t k = 0; own && k < n; k++)
        if (!keep_affine(b, &ranges[k].lo, &own[k].lo) ||
            !keep_affine(b, &ranges[k].hi, &own[k].hi))
            return NULL;
    return own;
}

/* ---- the builder's functions ---- */

ot_kernel_builder *ot_kernel_build(const char *name, const char *target)
{
    ot_kernel_builder start, *b;
    if (!tk_builder_init(&start)) return NULL;
    start.k->name = ot_strdup(start.k->arena, name);
    start.k->target = target ? ot_strdup(start.k->arena, target) : NULL;
    b = ot_memdup(start.k->arena, &start, sizeof start);
    if (b && b->k->name && (b->k->target || !target)) return b;
    ot_kernel_free(start.k);
    return NULL;
}

uint32_t ot_kb_param(ot_kernel_builder *b, const char *name, const char *dtype, const int64_t *dims,
                     uint32_t rank)
{
    ot_tk_value v = value_of(b, name, OT_TK_PARAM, dtype, dims, rank);
    return b->failed ? OT_NONE : tk_add_value(b, v);
}

uint32_t ot_kb_alloc(ot_kernel_builder *b, const char *name, const char *dtype, const int64_t *dims,
                     uint32_t rank, ot_tk_storage in)
{
    ot_tk_value v = value_of(b, name, OT_TK_BUFFER, dtype, dims, rank);
    v.scope = in.scope;
    v.align = in.align;
    v.multi = in.multi;
    return define(b, v, OT_TK_ALLOC);
}

uint32_t ot_kb_alias(ot_kernel_builder *b, const char *name, uint32_t base, const char *dtype,
                     const int64_t *dims, uint32_t rank)
{
    ot_tk_value v = value_of(b, name, OT_TK_ALIAS, dtype, dims, rank);
    v.base = base;
    if (base < b->k->n_values) v.scope = b->k->values[base].scope;
    return define(b, v, OT_TK_VIEW);
}

uint32_t ot_kb_subview(ot_kernel_builder *b, const char *name, uint32_t base,
                       const ot_tk_range *ranges)
{
    int64_t dims[OT_TK_RANK_MAX] = {0};
    if (base >= b->k->n_values) { /* nothing to take a part of: the verifier will say so */
        ot_tk_value none = value_of(b, name, OT_TK_SUBVIEW, "u8", dims, 0);
        none.base = base;
        return define(b, none, OT_TK_VIEW);
    }
    const ot_tk_value *whole = &b->k->values[base];
    uint32_t rank = whole->rank < OT_TK_RANK_MAX ? whole->rank : OT_TK_RANK_MAX;
    ot_tk_range *own = keep_ranges(b, ranges, rank);
    for (uint32_t d = 0; own && d < rank; d++)
        if (!tk_extent(&own[d], &dims[d])) dims[d] = 0;
    ot_tk_value v = value_of(b, name, OT_TK_SUBVIEW, whole->dtype, dims, rank);
    v.scope = whole->scope;
    v.base = base;
    v.ranges = own;
    return define(b, v, OT_TK_VIEW);
}

static bool append(ot_kernel_builder *b, ot_tk_stmt s)
{
    s.mate = OT_NONE;
    return !b->failed && tk_add_stmt(b, s) != OT_NONE;
}

bool ot_kb_load(ot_kernel_builder *b, uint32_t dst, uint32_t src, const ot_tk_range *ranges,
                uint32_t n_ranges)
{
    ot_tk_range *own = ranges ? keep_ranges(b, ranges, n_ranges) : NULL;
    return append(b, (ot_tk_stmt){.op = OT_TK_LOAD,
                                  .pipe = OT_PIPE_DMA_IN,
                                  .out = &dst,
                                  .n_out = 1,
                                  .in = &src,
                                  .n_in = 1,
                                  .ranges = own,
                                  .n_ranges = n_ranges});
}

bool ot_kb_store(ot_kernel_builder *b, uint32_t dst, const ot_tk_range *ranges, uint32_t n_ranges,
                 uint32_t src)
{
    ot_tk_range *own = ranges ? keep_ranges(b, ranges, n_ranges) : NULL;
    return append(b, (ot_tk_stmt){.op = OT_TK_STORE,
                                  .pipe = OT_PIPE_DMA_OUT,
                                  .out = &dst,
                                  .n_out = 1,
                                  .in = &src,
                                  .n_in = 1,
                                  .ranges = own,
                                  .n_ranges = n_ranges});
}

bool ot_kb_copy(ot_kernel_builder *b, uint32_t dst, uint32_t src)
{
    const ot_kernel *k = b->k;
    ot_pipe pipe = OT_PIPE_DMA_IN;
    if (dst < k->n_values && src < k->n_values)
        pipe = ot_tk_copy_pipe(k->values[src].scope, k->values[dst].scope);
    return append(
        b, (ot_tk_stmt){
               .op = OT_TK_COPY, .pipe = pipe, .out = &dst, .n_out = 1, .in = &src, .n_in = 1});
}

bool ot_kb_compute(ot_kernel_builder *b, ot_pipe pipe, const char *op, const uint32_t *out,
                   uint32_t n_out, const uint32_t *in, uint32_t n_in)
{
    const char *name = ot_strdup(b->k->arena, op);
    if (!name) b->failed = true;
    return append(b, (ot_tk_stmt){.op = OT_TK_COMPUTE,
                                  .pipe = pipe,
                                  .name = name,
                                  .out = out,
                                  .n_out = n_out,
                                  .in = in,
                                  .n_in = n_in});
}

bool ot_kb_attr(ot_kernel_builder *b, const char *name, const double *values, uint32_t n, bool list)
{
    ot_kernel *k = b->k;
    if (b->failed || k->n_stmts == 0 || n > OT_TK_RANK_MAX) return false;
    ot_tk_stmt *s = &k->stmts[k->n_stmts - 1];
    ot_tk_attr a = {.name = ot_strdup(k->arena, name), .n = n, .list = list};
    ot_tk_attr *all = OT_NEW_N(k->arena, ot_tk_attr, s->n_attrs + 1u);
    if (!a.name || !all) b->failed = true;
    if (b->failed) return false;
    memcpy(a.values, values, n * sizeof *values);
    for (uint32_t j = 0; j < s->n_attrs; j++) all[j] = s->attrs[j];
    all[s->n_attrs++] = a;
    s->attrs = all;
    return true;
}

bool ot_kb_for(ot_kernel_builder *b, const char *var, int64_t lo, int64_t hi, int64_t step)
{
    const char *own = ot_strdup(b->k->arena, var);
    if (!own) b->failed = true;
    return !b->failed &&
           tk_open(b,
                   (ot_tk_stmt){.op = OT_TK_FOR, .var = own, .lo = lo, .hi = hi, .step = step}) !=
               OT_NONE;
}

bool ot_kb_end(ot_kernel_builder *b)
{
    if (b->n_open == 0) b->failed = true;
    return !b->failed && tk_close(b, 0, 0) != OT_NONE;
}

/* ---- for readers of other texts ---- */

uint32_t ot_kb_put_value(ot_kernel_builder *b, ot_tk_value v)
{
    const char *dtype = tk_dtype_parse(v.dtype);
    b->placed = true;
    v.name = ot_strdup(b->k->arena, v.name);
    v.dtype = dtype ? dtype : ot_strdup(b->k->arena, v.dtype);
    if (!v.name || !v.dtype) b->failed = true;
    if (b->failed || !tk_type_bytes(v.dtype, v.dims, v.rank, &v.bytes)) v.bytes = 0;
    return b->failed ? OT_NONE : tk_add_value(b, v);
}

uint32_t ot_kb_put_stmt(ot_kernel_builder *b, ot_tk_stmt s)
{
    b->placed = true;
    if (b->n_open == 0 && (s.op == OT_TK_END || s.op == OT_TK_ELSE)) b->failed = true;
    if (b->failed) return OT_NONE;
    switch (s.op) {
    case OT_TK_FOR:
    case OT_TK_WHILE:
    case OT_TK_IF: return tk_open(b, s);
    case OT_TK_ELSE: return tk_else(b, s.line, s.col);
    case OT_TK_END: return tk_close(b, s.line, s.col);
    default: s.mate = s.op == OT_TK_YIELD ? tk_innermost(b) : OT_NONE; return tk_add_stmt(b, s);
    }
}

ot_tk_value *ot_kb_at(ot_kernel_builder *b, uint32_t v) { return &b->k->values[v]; }

uint32_t ot_kb_n_stmts(const ot_kernel_builder *b) { return b->k->n_stmts; }

bool ot_tk_is_value_name(const char *name) { return tk_is_name(name) && !tk_is_keyword(name); }

/* ---- the end ---- */

/* Where each value and statement stands in the printed text: the head is line 1, then params,
 * then statements. */
static void number_lines(ot_kernel *k)
{
    uint32_t line = 1, depth = 1;
    for (uint32_t v = 0; v < k->n_values; v++) {
        if (k->values[v].kind != OT_TK_PARAM) continue;
        k->values[v].line = ++line;
        k->values[v].col = 3 + (uint32_t)strlen("param ");
    }
    for (uint32_t s = 0; s < k->n_stmts; s++) {
        ot_tk_stmt *st = &k->stmts[s];
        if (st->op == OT_TK_END) depth--;
        st->line = ++line;
        st->col = 2 * depth + 1;
        if (st->op == OT_TK_FOR) depth++;
        if (st->op != OT_TK_ALLOC && st->op != OT_TK_VIEW) continue;
        ot_tk_value *v = &k->values[st->out[0]];
        v->line = line;
        v->col = st->col + (uint32_t)strlen(v->kind == OT_TK_SUBVIEW ? "subview " : "alloc ");
    }
}

ot_kernel *ot_kb_finish(ot_kernel_builder *b)
{
    ot_kernel *k = b->k;
    if (b->failed || b->n_open > 0) {
        ot_kernel_free(k);
        return NULL;
    }
    if (!b->placed) number_lines(k);
    return k;
}

void ot_kb_drop(ot_kernel_builder *b)
{
    if (b) ot_kernel_free(b->k);
}
