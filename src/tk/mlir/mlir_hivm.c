/* Operations of hivm.hir.
 *
 *   hivm.hir.vadd ins(%a, %b : memref<...>, memref<...>) outs(%c : memref<...>) broadcast = [0]
 *   hivm.hir.vcast ins(%a : ...) outs(%b : ...) temp_buffer(%t : ...) round_mode = <rint>
 *   hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]                   touches no memory
 *
 * The pipe follows from the operation, and with it what may share memory. A product adds to its
 * output unless it says that it begins: the first i1 among its inputs is `true`.
 */
#include "mlir_internal.h"

typedef struct op_row {
    const char *name;
    ot_pipe pipe;
    bool adds;   /* its output is an input, too */
    bool waits;  /* touches no memory */
    bool by_end; /* the pipe follows from where it goes */
} op_row;

static const op_row OPS[] = {
    {"load", OT_PIPE_DMA_IN, false, false, false},
    {"nd2nz", OT_PIPE_DMA_IN, false, false, false},
    {"store", OT_PIPE_DMA_OUT, false, false, false},
    {"nz2nd", OT_PIPE_DMA_OUT, false, false, false},
    {"fixpipe", OT_PIPE_DMA_OUT, false, false, false},
    {"copy", OT_PIPE_VECTOR, false, false, true},
    {"linalg.fill", OT_PIPE_VECTOR, false, false, false},
    {"mmadL1", OT_PIPE_CUBE, true, false, false},
    {"batchMmadL1", OT_PIPE_CUBE, true, false, false},
    {"matmul", OT_PIPE_CUBE, false, false, false},
    {"debug", OT_PIPE_SCALAR, false, true, false},
    {"set_flag", OT_PIPE_SCALAR, false, true, false},
    {"wait_flag", OT_PIPE_SCALAR, false, true, false},
    {"pipe_barrier", OT_PIPE_SCALAR, false, true, false},
    {"sync_block", OT_PIPE_SCALAR, false, true, false},
    {"sync_block_set", OT_PIPE_SCALAR, false, true, false},
    {"sync_block_wait", OT_PIPE_SCALAR, false, true, false},
    {"set_mask_norm", OT_PIPE_SCALAR, false, true, false},
    {"set_ffts_base_addr", OT_PIPE_SCALAR, false, true, false},
    {"get_block_idx", OT_PIPE_SCALAR, false, true, false},
    {"get_block_num", OT_PIPE_SCALAR, false, true, false},
    {"get_sub_block_idx", OT_PIPE_SCALAR, false, true, false},
    {"get_sub_block_num", OT_PIPE_SCALAR, false, true, false},
};

/* Names of vector operations, whose rules of in-place use the planner knows under other ones. */
static const struct {
    const char *name, *rule;
} RULES[] = {{"vrec", "reciprocal"},
             {"vsel", "select"},
             {"vpow", "pow"},
             {"mmadL1", "mmad"},
             {"batchMmadL1", "mmad"}};

typedef struct hivm_call {
    const op_row *row;
    op_row vector; /* of operations v... */
    const char *op;
    ml_operands ins, outs, temps;
    ml_type in_types[ML_LIST_MAX], out_types[ML_LIST_MAX];
    uint64_t broadcast; /* bit set of the dimensions that an input may be repeated along */
    bool begins;        /* an input is the constant true */
} hivm_call;

/* `(%a, %b : type, type)`; the bracket is next. types: NULL: not wanted. */
static ot_status operand_list(ml_parser *p, ml_operands *o, ml_type *types)
{
    ml_operands more;
    ml_type t;
    OT_TRY(ml_expect(&p->lx, '('));
    OT_TRY(ml_use_list(p, &more));
    OT_TRY(ml_expect(&p->lx, ':'));
    for (uint32_t k = 0; k < more.n; k++) {
        if (k > 0) OT_TRY(ml_expect(&p->lx, ','));
        OT_TRY(ml_parse_type(&p->lx, &t));
        bool is_memref = p->symbols[more.symbols[k]].is_memref;
        if (t.kind == ML_OTHER_TYPE)
            return ml_fail_at(&p->lx, t.line, t.col,
                              "an operand that is neither memref nor scalar");
        if ((t.kind == ML_MEMREF_TYPE) != is_memref)
            return ml_fail_at(&p->lx, t.line, t.col, "'%%%s' is %s memref",
                              p->symbols[more.symbols[k]].name, is_memref ? "a" : "no");
        if (o->n == ML_LIST_MAX) return ml_fail(&p->lx, "more than %d operands", ML_LIST_MAX);
        o->symbols[o->n] = more.symbols[k];
        if (types) types[o->n] = t;
        o->lines[o->n] = more.lines[k];
        o->cols[o->n++] = more.cols[k];
    }
    return ml_expect(&p->lx, ')');
}

/* What stands behind `word =`. */
static ot_status skip_setting(ml_parser *p)
{
    ml_type t;
    uint32_t symbol;
    ml_lexer *lx = &p->lx;
    (void)ml_accept(lx, '-');
    if (lx->tok == ML_VALUE) {
        OT_TRY(ml_use(p, &symbol));
        if (p->symbols[symbol].value != OT_NONE) return ml_fail(lx, "a buffer in a setting");
    } else if (ml_is(lx, '<') || ml_is(lx, '[')) {
        OT_TRY(ml_skip_brackets(lx));
    } else if (lx->tok == ML_ATTR || lx->tok == ML_WORD || lx->tok == ML_INT ||
               lx->tok == ML_FLOAT || lx->tok == ML_STRING) {
        bool attr = lx->tok == ML_ATTR;
        ml_next(lx);
        if (attr && ml_is(lx, '<')) OT_TRY(ml_skip_brackets(lx));
    } else {
        return ml_expected(lx, "a setting's value");
    }
    return ml_accept(lx, ':') ? ml_parse_type(lx, &t) : lx->r.status;
}

/* [0, 2]: dimensions */
static ot_status read_broadcast(ml_parser *p, hivm_call *c)
{
    ml_lexer *lx = &p->lx;
    OT_TRY(ml_expect(lx, '['));
    while (!ml_is(lx, ']')) {
        if (lx->tok != ML_INT || lx->value < 0 || lx->value > 63)
            return ml_expected(lx, "a dimension");
        c->broadcast |= UINT64_C(1) << lx->value;
        ml_next(lx);
        if (!ml_is(lx, ']')) OT_TRY(ml_expect(lx, ','));
    }
    return ml_expect(lx, ']');
}

/* `ins(...)`, `outs(...)`, `word = value`, `word(...)`, `word`. */
static ot_status word_clause(ml_parser *p, hivm_call *c)
{
    ml_lexer *lx = &p->lx;
    ml_operands *list = ml_is_word(lx, "ins")           ? &c->ins
                        : ml_is_word(lx, "outs")        ? &c->outs
                        : ml_is_word(lx, "temp_buffer") ? &c->temps
                                                        : NULL;
    const bool broadcast = ml_is_word(lx, "broadcast");
    ml_next(lx);
    if (list)
        return operand_list(p, list,
                            list == &c->ins    ? c->in_types
                            : list == &c->outs ? c->out_types
                                               : NULL);
    if (ml_accept(lx, '=')) return broadcast ? read_broadcast(p, c) : skip_setting(p);
    if (ml_is(lx, '(') || ml_is(lx, '[')) return ml_skip_brackets(lx);
    return lx->r.status;
}

/* A bare word without a dot belongs to the operation: statements have dots, but for `return` and
 * `call`. */
static bool is_clause_word(const ml_lexer *lx)
{
    return lx->tok == ML_WORD && !memchr(lx->r.text + lx->r.at, '.', lx->r.len) &&
           !ml_is_word(lx, "return") && !ml_is_word(lx, "call");
}

static ot_status read_clauses(ml_parser *p, hivm_call *c)
{
    ml_lexer *lx = &p->lx;
    ml_type t;
    uint32_t symbol;
    if (c->row->waits && lx->tok == ML_VALUE && strcmp(c->row->name, "set_ffts_base_addr") == 0)
        OT_TRY(ml_use(p, &symbol));
    while (lx->r.status == OT_OK) {
        if (is_clause_word(lx)) {
            OT_TRY(word_clause(p, c));
        } else if (ml_is(lx, '{') || ml_is(lx, '<') || ml_is(lx, '[')) {
            OT_TRY(ml_skip_brackets(lx));
        } else if (ml_accept(lx, 'r')) {
            OT_TRY(ml_parse_type(lx, &t));
            if (t.kind != ML_SCALAR_TYPE)
                return ml_fail_at(
                    lx, t.line, t.col,
                    "hivm.hir.%s makes a value that is no scalar: operations here write buffers",
                    c->op);
        } else {
            break;
        }
    }
    return lx->r.status;
}

static const op_row *find_row(hivm_call *c)
{
    for (size_t k = 0; k < sizeof OPS / sizeof *OPS; k++)
        if (strcmp(OPS[k].name, c->op) == 0) return &OPS[k];
    if (c->op[0] != 'v' || c->op[1] == '\0') return NULL;
    c->vector = (op_row){.name = c->op, .pipe = OT_PIPE_VECTOR};
    return &c->vector;
}

/* Of one dimension, one behind the other, to a narrower type. */
static bool is_narrow(const hivm_call *c)
{
    const ml_type *in = &c->in_types[0], *out = &c->out_types[0];
    if (c->ins.n != 1 || c->outs.n != 1 || !in->dtype || !out->dtype) return false;
    return in->kind == ML_MEMREF_TYPE && in->is_static && out->is_static && in->rank == 1 &&
           out->rank == 1 && in->layout == 0 && out->layout == 0 &&
           ot_tk_dtype_bits(out->dtype) < ot_tk_dtype_bits(in->dtype);
}

/* Is input k the part of its buffer that the output is of its own? Where nothing is repeated along
 * a dimension whose size only the run knows. */
static bool is_same_part(const ml_parser *p, const hivm_call *c, uint32_t k)
{
    if (c->outs.n != 1) return false;
    const ml_symbol *in = &p->symbols[c->ins.symbols[k]], *out = &p->symbols[c->outs.symbols[0]];
    const ml_type *t = &c->in_types[k];
    if (!in->window || !out->window || strcmp(in->window, out->window) != 0) return false;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->dims[d] < 0 && c->broadcast >> d & 1) return false;
    return true;
}

/* May element k of the input and of the output lie at one place? */
static bool is_laid_alike(const hivm_call *c, uint32_t k)
{
    return c->outs.n == 1 && c->in_types[k].layout == c->out_types[0].layout &&
           c->in_types[k].layout != 1;
}

/* The name by which the planner knows what may be overwritten; one that it does not know where
 * operands are missing in front. */
static const char *rule_name(const ml_parser *p, const hivm_call *c)
{
    bool gone = false;
    for (uint32_t k = 0; k < c->outs.n; k++)
        if (p->symbols[c->outs.symbols[k]].n_also > 0) return "operation";
    for (uint32_t k = 0; k < c->ins.n; k++) {
        bool planned = p->symbols[c->ins.symbols[k]].value != OT_NONE;
        if (planned && gone) return "operation";
        gone = gone || !planned;
    }
    if (strcmp(c->op, "vcast") == 0 && is_narrow(c)) return "narrow";
    for (size_t k = 0; k < sizeof RULES / sizeof *RULES; k++)
        if (strcmp(RULES[k].name, c->op) == 0) return RULES[k].rule;
    return c->row == &c->vector ? c->op + 1 : c->op;
}

#define IDS_MAX (4 * ML_LIST_MAX) /* buffers that an operation reads, or writes */

#define NO_OPERAND 9 /* one that no rule of in-place knows */

typedef struct id_list {
    uint32_t at[IDS_MAX], n;
    uint32_t operand[IDS_MAX]; /* which of the operation's each may be */
    bool same_part[IDS_MAX];
    uint32_t n_operands; /* of these, all told */
} id_list;

/* Ids of what is planned among the operands are added to the list; once: each once. c: of the
 * operation whose inputs they are; NULL: they are not. */
static ot_status gather(ml_parser *p, const ml_operands *o, bool writes, bool once, id_list *l,
                        const hivm_call *c)
{
    for (uint32_t k = 0; k < o->n; k++) {
        uint32_t ids[ML_LIST_MAX], n;
        OT_TRY(ml_values(p, o->symbols[k], writes, ids, &n));
        for (uint32_t i = 0; i < n; i++) {
            uint32_t j = once ? 0 : l->n;
            while (j < l->n && l->at[j] != ids[i]) j++;
            if (j < l->n) continue;
            if (l->n == IDS_MAX) return ml_fail(&p->lx, "more than %d buffers", IDS_MAX);
            l->same_part[l->n] = c && n == 1 && is_same_part(p, c, k);
            l->operand[l->n] = c && !l->same_part[l->n] && !is_laid_alike(c, k) ? NO_OPERAND
                                                                                : l->n_operands;
            l->at[l->n++] = ids[i];
        }
        l->n_operands += n > 0;
    }
    return OT_OK;
}

static ot_pipe pipe_of(const ml_parser *p, const hivm_call *c)
{
    if (!c->row->by_end || c->ins.n == 0 || c->outs.n == 0) return c->row->pipe;
    uint32_t from = p->symbols[c->ins.symbols[0]].value, to = p->symbols[c->outs.symbols[0]].value;
    return ot_tk_copy_pipe(from == OT_NONE ? OT_SCOPE_GM : ot_kb_at(p->b, from)->scope,
                           to == OT_NONE ? OT_SCOPE_GM : ot_kb_at(p->b, to)->scope);
}

static ot_status add_call(ml_parser *p, const hivm_call *c, ot_tk_stmt at)
{
    id_list in = {.n = 0}, out = {.n = 0};
    OT_TRY(gather(p, &c->ins, false, false, &in, c)); /* also twice: the rules count them */
    OT_TRY(gather(p, &c->outs, true, true, &out, NULL));
    const uint32_t n_results = out.n;
    bool several = false; /* what is not written stays as it was */
    for (uint32_t k = 0; k < c->outs.n; k++)
        several = several || p->symbols[c->outs.symbols[k]].n_also > 0;
    if ((c->row->adds && !c->begins) || several)
        OT_TRY(gather(p, &c->outs, false, true, &in, NULL));
    OT_TRY(gather(p, &c->temps, true, true, &out, NULL));
    if (out.n == 0) {
        for (uint32_t k = 0; k < in.n; k++) OT_TRY(ml_add_read(p, in.at[k], &at));
        return OT_OK;
    }
    at.op = OT_TK_COMPUTE;
    at.pipe = pipe_of(p, c);
    at.name = rule_name(p, c);
    at.in = in.at;
    at.operand = in.operand;
    at.same_part = in.same_part;
    at.n_scratch = n_results > 0 ? out.n - n_results : 0;
    at.n_in = in.n;
    at.out = out.at;
    at.n_out = out.n;
    return ml_add_stmt(p, at, NULL);
}

/* debug {settings} %x : type: x is looked at. */
static ot_status parse_debug(ml_parser *p, const ot_tk_stmt *at)
{
    ml_type t;
    uint32_t what;
    if (ml_is(&p->lx, '{')) OT_TRY(ml_skip_brackets(&p->lx));
    OT_TRY(ml_use(p, &what));
    OT_TRY(ml_expect(&p->lx, ':'));
    OT_TRY(ml_parse_type(&p->lx, &t));
    OT_TRY(ml_expect_results(p, 0));
    return ml_add_reads(p, what, at);
}

ot_status ml_hivm_stmt(ml_parser *p, const char *op, ot_tk_stmt at)
{
    hivm_call c = {.op = op};
    c.row = find_row(&c);
    if (!c.row)
        return ml_fail_at(&p->lx, at.line, at.col,
                          "'hivm.hir.%s' is not in the subset that is read", op);
    if (strcmp(op, "debug") == 0) return parse_debug(p, &at);
    OT_TRY(read_clauses(p, &c));
    if (!c.row->waits && c.ins.n + c.outs.n == 0)
        return ml_fail_at(&p->lx, at.line, at.col, "%s%s without ins(...) and outs(...)",
                          strchr(op, '.') ? "" : "hivm.hir.", op);
    for (uint32_t k = 0; k < c.ins.n; k++)
        c.begins = c.begins || p->symbols[c.ins.symbols[k]].is_true;
    OT_TRY(ml_define_scalars(p));
    return add_call(p, &c, at);
}
