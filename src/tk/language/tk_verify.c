/* The verifier: is this kernel what kernel.h promises?
 *
 * It runs after parsing and on kernels that code built, whatever they hold: indices are looked
 * at before they are used, and a value's fields before others rely on them. One walk over the
 * statements, which keeps
 *
 *   blocks   the open FOR, WHILE, IF; what a block defines is hidden when it ends
 *   state    of each value: not defined yet, visible, hidden
 *   freed    of each root: the statement that freed it. A branch starts with what was free before
 *            the `if`; after the `if`
 *            everything is free that either branch freed
 *
 *      if (s) { free a ... } else { ... a may be used ... } ... a may not be used
 *
 * Rules of single values and of windows are in tk_verify_value.c. Linear in the kernel (times
 * the nesting for frees).
 */
#include "tk_internal.h"

#include <inttypes.h>
#include <stdarg.h>

/* ---- messages ---- */

static ot_status bad_at(const tk_check *c, uint32_t line, uint32_t col, const char *fmt,
                        va_list args)
{
    char message[1024];
    vsnprintf(message, sizeof message, fmt, args);
    return ot_fail(c->d, OT_E_INPUT, "%s:%" PRIu32 ":%" PRIu32 ": %s", c->path, line, col, message);
}

ot_status(tk_bad_stmt)(const tk_check *c, const char *fmt, ...)
{
    const ot_tk_stmt *s = &c->k->stmts[c->at];
    va_list args;
    va_start(args, fmt);
    ot_status status = bad_at(c, s->line, s->col, fmt, args);
    va_end(args);
    return status;
}

ot_status(tk_bad_value)(const tk_check *c, const ot_tk_value *v, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ot_status status = bad_at(c, v->line, v->col, fmt, args);
    va_end(args);
    return status;
}

/* ---- uses ---- */

static const ot_tk_value *value(const tk_check *c, uint32_t v) { return &c->k->values[v]; }

static const char *name_of(const tk_check *c, uint32_t v)
{
    return value(c, v)->name ? value(c, v)->name : "?";
}

/* v is defined, visible and not freed. */
static ot_status use(const tk_check *c, uint32_t v)
{
    if (v >= c->k->n_values) return tk_bad_stmt(c, "a value that does not exist");
    if (c->state[v] == TK_UNSEEN && value(c, v)->kind == OT_TK_RESULT)
        return tk_bad_stmt(c, "'%s' is used before the end of the block that makes it",
                           name_of(c, v));
    if (c->state[v] == TK_UNSEEN)
        return tk_bad_stmt(c, "'%s' is used before its definition", name_of(c, v));
    if (c->state[v] == TK_HIDDEN)
        return tk_bad_stmt(c, "'%s' is used outside the block that defines it", name_of(c, v));
    uint32_t freed = c->freed_by[c->root[v]];
    if (freed != OT_NONE)
        return tk_bad_stmt(c, "'%s' is used after it was freed in line %" PRIu32, name_of(c, v),
                           c->k->stmts[freed].line);
    return OT_OK;
}

/* The same, and no barrier. */
static ot_status use_data(const tk_check *c, uint32_t v)
{
    OT_TRY(use(c, v));
    return tk_check_no_barrier(c, v);
}

static bool is_param(const tk_check *c, uint32_t v)
{
    return value(c, c->root[v])->kind == OT_TK_PARAM;
}

/* A use that no param allows. `role`: "yielded". */
static ot_status use_buffer(const tk_check *c, uint32_t v, const char *role)
{
    OT_TRY(use_data(c, v));
    return is_param(c, v) ? tk_bad_stmt(c, "the param '%s' cannot be %s", name_of(c, v), role)
                          : OT_OK;
}

static ot_status use_all(const tk_check *c, const uint32_t *ids, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) OT_TRY(use_data(c, ids[k]));
    return OT_OK;
}

/* ---- definitions ---- */

static uint32_t innermost_loop(const tk_check *c)
{
    for (uint32_t b = c->n_blocks; b-- > 0;)
        if (c->k->stmts[c->blocks[b].opener].op != OT_TK_IF) return c->blocks[b].opener;
    return OT_NONE;
}

/* Value v of this kind comes to be in statement `stmt`. */
static ot_status define(tk_check *c, uint32_t v, ot_tk_kind kind, uint32_t stmt)
{
    if (v >= c->k->n_values) return tk_bad_stmt(c, "a value that does not exist");
    const ot_tk_value *x = value(c, v);
    if (c->state[v] != TK_UNSEEN) return tk_bad_value(c, x, "'%s' is defined twice", name_of(c, v));
    if (x->kind != kind || x->stmt != stmt)
        return tk_bad_value(c, x, "'%s' says that it is defined elsewhere", name_of(c, v));
    OT_TRY(tk_check_value(c, x));
    if (!ot_map_put(c->names, x->name, v)) return ot_fail_nomem(c->d);
    bool view = kind == OT_TK_ALIAS || kind == OT_TK_SUBVIEW;
    c->state[v] = TK_VISIBLE;
    c->root[v] = view ? c->root[x->base] : v;
    c->views[v] = (uint8_t)(view ? c->views[x->base] + 1 : 0);
    c->loop[v] = innermost_loop(c);
    c->shown[c->n_shown++] = v;
    return OT_OK;
}

static ot_status define_params(tk_check *c)
{
    for (uint32_t v = 0; v < c->k->n_values; v++)
        if (value(c, v)->kind == OT_TK_PARAM) OT_TRY(define(c, v, OT_TK_PARAM, OT_NONE));
    return OT_OK;
}

static ot_status check_view(tk_check *c, uint32_t v)
{
    const ot_tk_value *x = value(c, v);
    if (x->kind != OT_TK_ALIAS && x->kind != OT_TK_SUBVIEW)
        return tk_bad_stmt(c, "'%s' is no view", name_of(c, v));
    OT_TRY(use_data(c, x->base));
    if (c->views[x->base] >= TK_VIEW_MAX)
        return tk_bad_stmt(c, "views of views more than %d deep", TK_VIEW_MAX);
    OT_TRY(tk_check_view(c, x));
    return define(c, v, x->kind, c->at);
}

/* ---- free ---- */

static ot_status check_free(tk_check *c, uint32_t v)
{
    if (v < c->k->n_values && c->state[v] == TK_VISIBLE) {
        uint32_t before = c->freed_by[c->root[v]];
        if (before != OT_NONE)
            return tk_bad_stmt(c, "'%s' is freed twice: before in line %" PRIu32, name_of(c, v),
                               c->k->stmts[before].line);
    }
    OT_TRY(use_buffer(c, v, "freed"));
    uint32_t root = c->root[v];
    if (value(c, root)->kind != OT_TK_BUFFER)
        return tk_bad_stmt(c, "'%s' leads to no allocated buffer: only those are freed",
                           name_of(c, v));
    if (c->loop[root] != innermost_loop(c))
        return tk_bad_stmt(c, "'%s' was allocated outside this loop: every iteration would free it",
                           name_of(c, v));
    OT_TRY(tk_check_kind_free(c, &c->k->stmts[c->at]));
    c->freed_by[root] = c->at;
    c->freed[c->n_freed++] = (tk_freed){root, c->at};
    return OT_OK;
}

/* ---- movement and operations ---- */

static ot_status check_load(tk_check *c, const ot_tk_stmt *s)
{
    uint32_t dst = s->out[0], src = s->in[0];
    OT_TRY(use_data(c, dst));
    OT_TRY(use_data(c, src));
    const ot_tk_value *to = value(c, dst), *from = value(c, src);
    if (is_param(c, dst))
        return tk_bad_stmt(c, "load writes the param '%s': only store does", to->name);
    if (s->pipe != OT_PIPE_DMA_IN) return tk_bad_stmt(c, "a load on another pipe than dma_in");
    if (from->scope != OT_SCOPE_GM && from->scope != OT_SCOPE_AUTO && from->scope == to->scope)
        return tk_bad_stmt(c, "load from '%s', which is in %s like '%s': this is a copy",
                           from->name, ot_scope_name(from->scope), to->name);
    return tk_check_window(c, from, to);
}

static ot_status check_store(tk_check *c, const ot_tk_stmt *s)
{
    uint32_t dst = s->out[0], src = s->in[0];
    OT_TRY(use_data(c, dst));
    OT_TRY(use_buffer(c, src, "stored"));
    const ot_tk_value *to = value(c, dst);
    if (s->pipe != OT_PIPE_DMA_OUT) return tk_bad_stmt(c, "a store on another pipe than dma_out");
    if (to->scope != OT_SCOPE_GM && to->scope != OT_SCOPE_AUTO)
        return tk_bad_stmt(c, "store to '%s', which is in %s, not in gm: this is a copy", to->name,
                           ot_scope_name(to->scope));
    return tk_check_window(c, to, value(c, src));
}

static ot_status check_copy(tk_check *c, const ot_tk_stmt *s)
{
    uint32_t dst = s->out[0], src = s->in[0];
    OT_TRY(use_data(c, dst));
    OT_TRY(use_data(c, src));
    const ot_tk_value *to = value(c, dst), *from = value(c, src);
    /* between devices: params are all there is */
    bool crosses = to->scope == OT_SCOPE_HOST || from->scope == OT_SCOPE_HOST;
    if (is_param(c, dst) && !crosses)
        return tk_bad_stmt(c, "copy writes the param '%s': only store does", to->name);
    if ((unsigned)s->pipe >= OT_PIPE_COUNT) return tk_bad_stmt(c, "a copy on no known pipe");
    if (!s->explicit_pipe && s->pipe != ot_tk_copy_pipe(from->scope, to->scope))
        return tk_bad_stmt(c, "a copy on another pipe than its memories'");
    if (s->ranges) return tk_bad_stmt(c, "a copy has no ranges");
    return tk_check_window(c, from, to);
}

static ot_status check_compute(tk_check *c, const ot_tk_stmt *s)
{
    if ((unsigned)s->pipe >= OT_PIPE_COUNT) return tk_bad_stmt(c, "an operation on no known pipe");
    if (!tk_is_name(s->name))
        return tk_bad_stmt(c, "'%s' is no name of an operation", s->name ? s->name : "");
    if (s->n_out == 0) return tk_bad_stmt(c, "an operation without an output");
    OT_TRY(use_all(c, s->in, s->n_in));
    for (uint32_t k = 0; k < s->n_out; k++) {
        uint32_t v = s->out[k];
        OT_TRY(use_data(c, v));
        if (is_param(c, v))
            return tk_bad_stmt(c, "an operation writes the param '%s': only store does",
                               name_of(c, v));
        if (c->written[v] == c->at + 1)
            return tk_bad_stmt(c, "'%s' is an output twice", name_of(c, v));
        c->written[v] = c->at + 1;
    }
    return OT_OK;
}

/* ---- blocks ---- */

static ot_status check_for(const tk_check *c, const ot_tk_stmt *s)
{
    if (!tk_is_name(s->var) || tk_is_keyword(s->var))
        return tk_bad_stmt(c, "'%s' is no name of a loop variable", s->var ? s->var : "");
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        const ot_tk_stmt *outer = &c->k->stmts[c->blocks[b].opener];
        if (outer->op == OT_TK_FOR && strcmp(outer->var, s->var) == 0)
            return tk_bad_stmt(c, "'%s' is the variable of the loop in line %" PRIu32 " already",
                               s->var, outer->line);
    }
    if (s->lo < 0 || s->lo > TK_COUNT_MAX || s->hi > TK_COUNT_MAX || (s->hi != -1 && s->hi < s->lo))
        return tk_bad_stmt(c, "loop bounds are 0 <= lo <= hi <= 2^62");
    if (s->step < 1 || s->step > TK_COUNT_MAX) return tk_bad_stmt(c, "a loop's step is 1 to 2^62");
    if (s->has_condition) return tk_bad_stmt(c, "a counted loop with a condition");
    return OT_OK;
}

/* The inits are there, and what is carried is of their types. */
static ot_status check_carried(const tk_check *c, const ot_tk_stmt *s)
{
    char had[TK_TYPE_TEXT], got[TK_TYPE_TEXT];
    for (uint32_t k = 0; k < s->n_out; k++) {
        OT_TRY(use_buffer(c, s->in[k], "carried"));
        if (s->carried[k] >= c->k->n_values)
            return tk_bad_stmt(c, "a carried value that does not exist");
        const ot_tk_value *init = value(c, s->in[k]), *x = value(c, s->carried[k]);
        if (!tk_same_type(init, x))
            return tk_bad_stmt(c, "'%s' is %s, its init %s", name_of(c, s->carried[k]),
                               tk_type_text(x, had), tk_type_text(init, got));
    }
    return OT_OK;
}

static ot_status open_block(tk_check *c, const ot_tk_stmt *s)
{
    bool loop = s->op != OT_TK_IF;
    uint32_t n_inits = loop ? s->n_out : 0;
    if (c->n_blocks == OT_TK_DEPTH_MAX)
        return tk_bad_stmt(c, "blocks nest more than %d deep", OT_TK_DEPTH_MAX);
    if (s->n_in != n_inits + (s->has_condition ? 1 : 0) || (n_inits > 0 && !s->carried))
        return tk_bad_stmt(c, "a block whose inits, carried values and results do not pair");
    if (s->op == OT_TK_FOR) OT_TRY(check_for(c, s));
    if (s->has_condition) OT_TRY(use_buffer(c, s->in[s->n_in - 1], "a condition"));
    if (loop) OT_TRY(check_carried(c, s));
    c->blocks[c->n_blocks++] = (tk_block){
        .opener = c->at, .shown = c->n_shown, .freed = c->n_freed};
    for (uint32_t k = 0; k < n_inits; k++) OT_TRY(define(c, s->carried[k], OT_TK_CARRIED, c->at));
    return OT_OK;
}

/* Has the branch or body yielded when it had to? */
static ot_status check_yielded(const tk_check *c, const tk_block *b)
{
    const ot_tk_stmt *s = &c->k->stmts[b->opener];
    if (s->n_out == 0 || b->yielded) return OT_OK;
    return tk_bad_stmt(c, "the block of line %" PRIu32 " ends without yield, but makes '%s'",
                       s->line, name_of(c, s->out[0]));
}

/* What the block defined is hidden from here on. */
static void hide(tk_check *c, const tk_block *b)
{
    while (c->n_shown > b->shown) c->state[c->shown[--c->n_shown]] = TK_HIDDEN;
}

static ot_status check_else(tk_check *c, const ot_tk_stmt *s)
{
    tk_block *b = c->n_blocks > 0 ? &c->blocks[c->n_blocks - 1] : NULL;
    if (!b || c->k->stmts[b->opener].op != OT_TK_IF || b->in_else)
        return tk_bad_stmt(c, "'else' without 'if', or a second one");
    if (c->k->stmts[b->opener].mate != c->at || s->n_out + s->n_in > 0)
        return tk_bad_stmt(c, "an 'else' that its 'if' does not know");
    OT_TRY(check_yielded(c, b));
    OT_TRY(tk_check_kind_end(c, b->shown));
    hide(c, b);
    for (uint32_t k = b->freed; k < c->n_freed; k++) c->freed_by[c->freed[k].root] = OT_NONE;
    b->freed_else = c->n_freed;
    b->in_else = true;
    b->yielded = false;
    return OT_OK;
}

static ot_status check_end(tk_check *c, const ot_tk_stmt *s)
{
    if (c->n_blocks == 0) return tk_bad_stmt(c, "an end without its block");
    const tk_block *b = &c->blocks[c->n_blocks - 1];
    const ot_tk_stmt *opener = &c->k->stmts[b->opener];
    const ot_tk_stmt *last = b->in_else ? &c->k->stmts[opener->mate] : opener;
    if (s->mate != b->opener || last->mate != c->at || s->n_out + s->n_in > 0)
        return tk_bad_stmt(c, "an end that its block does not know");
    OT_TRY(check_yielded(c, b));
    if (opener->op == OT_TK_IF && opener->n_out > 0 && !b->in_else)
        return tk_bad_stmt(c, "the 'if' of line %" PRIu32 " makes '%s' and has no else",
                           opener->line, name_of(c, opener->out[0]));
    OT_TRY(tk_check_kind_end(c, b->shown));
    hide(c, b);
    for (uint32_t k = b->freed; b->in_else && k < b->freed_else; k++) {
        uint32_t *by = &c->freed_by[c->freed[k].root];
        if (*by == OT_NONE) *by = c->freed[k].stmt;
    }
    c->n_blocks--;
    for (uint32_t k = 0; k < opener->n_out; k++)
        OT_TRY(define(c, opener->out[k], OT_TK_RESULT, b->opener));
    return OT_OK;
}

static ot_status check_yield(tk_check *c, const ot_tk_stmt *s)
{
    char had[TK_TYPE_TEXT], got[TK_TYPE_TEXT];
    tk_block *b = c->n_blocks > 0 ? &c->blocks[c->n_blocks - 1] : NULL;
    if (!b || c->k->stmts[b->opener].n_out == 0)
        return tk_bad_stmt(c, "yield in a block without results");
    const ot_tk_stmt *opener = &c->k->stmts[b->opener];
    if (s->mate != b->opener || s->n_out > 0)
        return tk_bad_stmt(c, "a yield that its block does not know");
    if (s->n_in != opener->n_out)
        return tk_bad_stmt(c, "%" PRIu32 " values yielded, %" PRIu32 " wanted", s->n_in,
                           opener->n_out);
    for (uint32_t k = 0; k < s->n_in; k++) {
        OT_TRY(use_buffer(c, s->in[k], "yielded"));
        if (opener->out[k] >= c->k->n_values) return tk_bad_stmt(c, "a result that does not exist");
        const ot_tk_value *x = value(c, s->in[k]), *want = value(c, opener->out[k]);
        if (!tk_same_type(x, want))
            return tk_bad_stmt(c, "'%s' is %s, but '%s' is %s", x->name, tk_type_text(x, got),
                               name_of(c, opener->out[k]), tk_type_text(want, had));
    }
    b->yielded = true;
    return OT_OK;
}

/* ---- statements ---- */

/* Lists are there, of the lengths that the kind of statement has; the parent is right. */
static ot_status check_shape(tk_check *c, const ot_tk_stmt *s)
{
    static const struct {
        uint32_t out, in; /* OT_NONE: any */
    } counts[] = {
        [OT_TK_ALLOC] = {1, 0},
        [OT_TK_FREE] = {0, 1},
        [OT_TK_VIEW] = {1, 0},
        [OT_TK_LOAD] = {1, 1},
        [OT_TK_STORE] = {1, 1},
        [OT_TK_COPY] = {1, 1},
        [OT_TK_COMPUTE] = {OT_NONE, OT_NONE},
        [OT_TK_FOR] = {OT_NONE, OT_NONE},
        [OT_TK_WHILE] = {OT_NONE, OT_NONE},
        [OT_TK_IF] = {OT_NONE, OT_NONE},
        [OT_TK_ELSE] = {0, 0},
        [OT_TK_YIELD] = {OT_NONE, OT_NONE},
        [OT_TK_END] = {0, 0},
        [OT_TK_WAIT] = {0, OT_NONE},
        [OT_TK_ARRIVE] = {0, 1},
        [OT_TK_FENCE] = {0, 0},
        [OT_TK_CHECK] = {0, 1},
    };
    if ((unsigned)s->op > OT_TK_CHECK) return tk_bad_stmt(c, "a statement of no known kind");
    bool out_ok = counts[s->op].out == OT_NONE || counts[s->op].out == s->n_out;
    bool in_ok = counts[s->op].in == OT_NONE || counts[s->op].in == s->n_in;
    if (!out_ok || !in_ok || (s->n_out > 0 && !s->out) || (s->n_in > 0 && !s->in))
        return tk_bad_stmt(c, "a statement with the wrong number of operands");
    if (!s->ranges != (s->n_ranges == 0)) return tk_bad_stmt(c, "ranges that are not there");
    if (s->ranges && s->op != OT_TK_LOAD && s->op != OT_TK_STORE && s->op != OT_TK_COPY)
        return tk_bad_stmt(c, "ranges on a statement that has none");
    OT_TRY(tk_check_attrs(c, s));
    OT_TRY(tk_check_stream(c, s));
    OT_TRY(tk_count_stream(c, s));
    const tk_block *b = c->n_blocks > 0 ? &c->blocks[c->n_blocks - 1] : NULL;
    uint32_t parent = b ? b->opener : OT_NONE;
    if (b && s->op == OT_TK_END) parent = c->k->stmts[b->opener].parent;
    if (s->parent != parent) return tk_bad_stmt(c, "a statement that names another parent block");
    if (b && b->yielded && s->op != OT_TK_ELSE && s->op != OT_TK_END)
        return tk_bad_stmt(c, "a statement after yield");
    return OT_OK;
}

static ot_status check_address(const tk_check *c, const ot_tk_stmt *s)
{
    OT_TRY(use(c, s->in[0]));
    bool aligned = s->name && strcmp(s->name, "is_aligned") == 0;
    if (!aligned && (!s->name || strcmp(s->name, "address_of") != 0))
        return tk_bad_stmt(c, "a check of no known kind");
    if (s->keep < (aligned ? 1 : 0)) return tk_bad_stmt(c, "an alignment of less than 1");
    if (is_param(c, s->in[0]) && !aligned)
        return tk_bad_stmt(c,
                           "the param '%s' lies where the caller has put it: nobody knows its "
                           "address [address-of]",
                           name_of(c, s->in[0]));
    return OT_OK;
}

static ot_status check_plain(tk_check *c, const ot_tk_stmt *s)
{
    switch (s->op) {
    case OT_TK_ALLOC:
        OT_TRY(define(c, s->out[0], OT_TK_BUFFER, c->at));
        return tk_check_kind_alloc(c, s->out[0]);
    case OT_TK_FREE: return check_free(c, s->in[0]);
    case OT_TK_VIEW:
        return s->out[0] < c->k->n_values ? check_view(c, s->out[0])
                                          : tk_bad_stmt(c, "a value that does not exist");
    case OT_TK_LOAD: return check_load(c, s);
    case OT_TK_STORE: return check_store(c, s);
    case OT_TK_COPY: return check_copy(c, s);
    case OT_TK_COMPUTE: return check_compute(c, s);
    case OT_TK_FOR:
    case OT_TK_WHILE:
    case OT_TK_IF: return open_block(c, s);
    case OT_TK_ELSE: return check_else(c, s);
    case OT_TK_YIELD: return check_yield(c, s);
    case OT_TK_END: return check_end(c, s);
    case OT_TK_WAIT:
    case OT_TK_ARRIVE:
    case OT_TK_FENCE:
        for (uint32_t k = 0; k < s->n_in; k++) OT_TRY(use(c, s->in[k]));
        return s->n_in <= 1 ? tk_check_sync(c, s) : tk_bad_stmt(c, "a wait for two things");
    case OT_TK_CHECK: return check_address(c, s);
    }
    return OT_OK;
}

static ot_status check_stmt(tk_check *c, const ot_tk_stmt *s)
{
    OT_TRY(check_shape(c, s));
    OT_TRY(check_plain(c, s));
    return tk_check_kind_use(c, s);
}

static ot_status check_all(tk_check *c)
{
    const ot_kernel *k = c->k;
    const ot_tk_value head = {.line = 1, .col = 1};
    if ((k->n_values > 0 && !k->values) || (k->n_stmts > 0 && !k->stmts))
        return tk_bad_value(c, &head, "lists that are not there");
    if (!tk_is_name(k->name))
        return tk_bad_value(c, &head, "'%s' is no name of a kernel", k->name ? k->name : "");
    if (k->target && !tk_is_string(k->target))
        return tk_bad_value(c, &head, "the target's name is empty, too long or not printable");
    OT_TRY(define_params(c));
    for (c->at = 0; c->at < k->n_stmts; c->at++) OT_TRY(check_stmt(c, &k->stmts[c->at]));
    if (c->n_blocks > 0) {
        c->at = c->blocks[c->n_blocks - 1].opener;
        return tk_bad_stmt(c, "the block has no end");
    }
    OT_TRY(tk_check_kind_end(c, 0));
    for (uint32_t v = 0; v < k->n_values; v++)
        if (c->state[v] == TK_UNSEEN)
            return tk_bad_value(c, &k->values[v], "no statement defines '%s'", name_of(c, v));
    return OT_OK;
}

/* Side arrays of the walk; false when memory ran out. */
static bool init(tk_check *c, ot_arena *a)
{
    size_t n = (size_t)c->k->n_values + 1;
    c->names = ot_map_new(a);
    c->state = OT_NEW_N(a, uint8_t, n);
    c->views = OT_NEW_N(a, uint8_t, n);
    c->root = OT_NEW_N(a, uint32_t, n);
    c->loop = OT_NEW_N(a, uint32_t, n);
    c->freed_by = OT_NEW_N(a, uint32_t, n);
    c->written = OT_NEW_N(a, uint32_t, n);
    c->shown = OT_NEW_N(a, uint32_t, n);
    c->reducer = OT_NEW_N(a, uint8_t, n);
    c->freed = OT_NEW_N(a, tk_freed, (size_t)c->k->n_stmts + 1);
    if (!c->names || !c->state || !c->views || !c->root || !c->loop || !c->freed_by ||
        !c->written || !c->shown || !c->freed || !c->reducer)
        return false;
    memset(c->freed_by, 0xff, n * sizeof *c->freed_by); /* OT_NONE */
    return true;
}

ot_status ot_kernel_verify(const ot_kernel *k, const char *path, ot_diag *d)
{
    tk_check c = {.k = k, .path = path, .d = d};
    ot_arena *a = ot_arena_new();
    ot_status s = a && init(&c, a) ? check_all(&c) : ot_fail_nomem(d);
    ot_arena_free(a);
    return s;
}
