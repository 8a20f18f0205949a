/* From statements to points: the flow graph that lifetimes are computed on (drawing in
 * lifetime_internal.h).
 *
 * Loops test at the top once and then at the bottom, so that a value which every iteration
 * writes anew is not alive around the back edge only because it is read after the loop:
 *
 *   for, while:  copies of inits -> test -> body -> copies of yielded -> test -> exit -> copies to
 *                                    |       ^                            |        ^     results
 *                                    |       +----------------------------+        |
 *                                    +---------------------------------------------+  unless the
 *                                                                       body surely runs
 *   if:          test -> then -> jump -> end         jump has the position of the statement before
 *                  |                      ^          `else`: what only the else branch holds is
 *                  +---> else ------------+          not alive there
 *
 * Views are accesses of their root. A write by way of a view that is smaller than the root
 * writes a part.
 */
#include "lifetime_internal.h"

/* Bits of all elements, or -1 when that overflows. */
static int64_t value_bits(const ot_tk_value *v)
{
    int64_t n, bits;
    if (!ot_product(v->dims, v->rank, &n) || !ot_mul_i64(n, ot_tk_dtype_bits(v->dtype), &bits))
        return -1;
    return bits;
}

static bool covers_base(const ot_kernel *k, uint32_t v)
{
    const ot_tk_value *value = &k->values[v], *base = &k->values[value->base];
    return value->bytes == base->bytes && value_bits(value) == value_bits(base);
}

static int64_t elements(const ot_tk_value *v)
{
    int64_t n;
    return ot_product(v->dims, v->rank, &n) ? n : INT64_MAX;
}

/* Elements of a window; its bounds have equal terms. 0 when unknown. */
static int64_t window_elements(const ot_tk_range *r, uint32_t n)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t extent;
        if (r[i].lo.constant == INT64_MIN ||
            !ot_add_i64(r[i].hi.constant, -r[i].lo.constant, &extent))
            return 0;
        if (!ot_mul_i64(product, ot_max(extent, 0), &product)) return INT64_MAX;
    }
    return product;
}

/* Is the window all of v in every iteration? */
static bool window_covers(const ot_tk_value *v, const ot_tk_range *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (r[i].lo.n || r[i].hi.n || r[i].lo.constant > 0 || r[i].hi.constant < v->dims[i])
            return false;
    }
    return true;
}

/* Does the statement write all of its output's value (a view's part of the root is another
 * question)? */
static bool writes_all(const ot_kernel *k, const ot_tk_stmt *s)
{
    if (s->op == OT_TK_COMPUTE) return true;
    const ot_tk_value *out = &k->values[s->out[0]], *in = &k->values[s->in[0]];
    if (s->op == OT_TK_STORE && s->ranges) return window_covers(out, s->ranges, s->n_ranges);
    if (s->op == OT_TK_LOAD && s->ranges)
        return window_elements(s->ranges, s->n_ranges) >= elements(out);
    return elements(in) >= elements(out);
}

/* ---- emitting; all return false when memory ran out ---- */

typedef struct builder {
    lt_flow *f;
    uint32_t *ways;     /* [k->n_values] temporary of a carried value */
    uint32_t *test;     /* [k->n_stmts] of FOR, WHILE, IF: the first test */
    uint32_t *jump;     /* [k->n_stmts] of an IF with ELSE: end of the first branch */
    uint32_t *accessed; /* [f->n_vars] index + 1 of the last access */
    uint32_t loop, depth;
    bool ok;
} builder;

static uint32_t point(builder *b, uint32_t stmt)
{
    lt_flow *f = b->f;
    lt_point p = {.stmt = stmt,
                  .loop = b->loop,
                  .next = {(uint32_t)f->n_points + 1, OT_NONE},
                  .first_access = (uint32_t)f->n_accesses,
                  .to = OT_NONE,
                  .from = OT_NONE};
    b->ok = b->ok && f->n_points < UINT32_MAX - 2 &&
            OT_PUSH(f->arena, f->points, f->n_points, f->cap_points, p);
    return (uint32_t)f->n_points - 1;
}

/* Add an access to the last point. */
static void touch(builder *b, uint32_t var, uint32_t what)
{
    lt_flow *f = b->f;
    if (var == OT_NONE || !b->ok) return;
    uint32_t last = b->accessed[var];
    if (last && f->accesses[last - 1].point == f->n_points - 1) {
        f->accesses[last - 1].what |= what;
        return;
    }
    lt_access a = {(uint32_t)f->n_points - 1, var, what};
    b->ok = f->n_accesses < UINT32_MAX - 1 &&
            OT_PUSH(f->arena, f->accesses, f->n_accesses, f->cap_accesses, a);
    b->accessed[var] = (uint32_t)f->n_accesses;
    f->vars[var].n_access++;
}

static void read_value(builder *b, uint32_t v) { touch(b, b->f->var_of[v], LT_READ); }

static void write_value(builder *b, const ot_tk_stmt *s, uint32_t v)
{
    bool full = writes_all(b->f->k, s) && b->f->whole[v];
    touch(b, b->f->var_of[v], LT_WRITE | (full ? LT_FULL : 0));
}

/* A pair to merge if it can be: `from` is all of its variable. */
static void pair(builder *b, uint32_t to, uint32_t from, uint32_t rank)
{
    lt_flow *f = b->f;
    if (from == OT_NONE || !b->ok) return;
    lt_pair p = {to, from, b->depth, rank};
    b->ok = OT_PUSH(f->arena, f->pairs, f->n_pairs, f->cap_pairs, p);
}

/* The point `to <- from`; from OT_NONE: a param; whole: all of the variable. */
static void copy(builder *b, uint32_t stmt, uint32_t to, uint32_t from, bool whole, uint32_t rank)
{
    uint32_t p = point(b, stmt);
    touch(b, from, LT_READ);
    touch(b, to, LT_WRITE | LT_FULL);
    if (!b->ok) return;
    b->f->points[p].to = to;
    if (!whole) return;
    b->f->points[p].from = from;
    pair(b, to, from, rank);
}

/* Ranks: the way to the carried value, what is yielded, init, result. */
enum { RANK_WAY, RANK_YIELD, RANK_INIT, RANK_RESULT };

static bool runs_surely(const ot_tk_stmt *s)
{
    /* a size is at least 1 */
    return s->op == OT_TK_FOR && s->hi != -1 && s->lo < (s->hi_size ? 1 : s->hi);
}

static bool runs_once(const ot_tk_stmt *s)
{
    int64_t second;
    return runs_surely(s) && !s->hi_size &&
           (!ot_add_i64(s->lo, s->step, &second) || second >= s->hi);
}

static void open_loop(builder *b, uint32_t i)
{
    lt_flow *f = b->f;
    const ot_tk_stmt *s = &f->k->stmts[i];
    for (uint32_t j = 0; j < s->n_out; j++) {
        copy(b, i, f->var_of[s->carried[j]], f->var_of[s->in[j]], f->whole[s->in[j]], RANK_INIT);
    }
    b->test[i] = point(b, i);
    if (s->has_condition) read_value(b, s->in[s->n_in - 1]);
    f->body[i] = (uint32_t)f->n_points;
    b->loop = i;
    b->depth++;
}

static void close_loop(builder *b, uint32_t i)
{
    lt_flow *f = b->f;
    uint32_t opener = f->k->stmts[i].mate;
    const ot_tk_stmt *s = &f->k->stmts[opener];
    for (uint32_t j = 0; j < s->n_out; j++)
        copy(b, i, f->var_of[s->carried[j]], b->ways[s->carried[j]], true, RANK_WAY);
    f->latch[opener] = point(b, i);
    if (s->has_condition) read_value(b, s->in[s->n_in - 1]);
    if (!b->ok) return;
    b->loop = f->points[b->test[opener]].loop;
    b->depth--;
    uint32_t exit = point(b, i);
    if (!b->ok) return;
    if (!runs_once(s)) f->points[f->latch[opener]].next[1] = f->body[opener];
    if (!runs_surely(s)) f->points[b->test[opener]].next[1] = exit;
    for (uint32_t j = 0; j < s->n_out; j++)
        copy(b, i, f->var_of[s->out[j]], f->var_of[s->carried[j]], true, RANK_RESULT);
}

static void yield(builder *b, uint32_t i)
{
    lt_flow *f = b->f;
    const ot_tk_stmt *s = &f->k->stmts[i], *opener = &f->k->stmts[s->mate];
    point(b, i);
    for (uint32_t j = 0; j < s->n_in; j++) {
        uint32_t from = f->var_of[s->in[j]];
        bool whole = f->whole[s->in[j]];
        if (opener->op != OT_TK_IF) {
            copy(b, i, b->ways[opener->carried[j]], from, whole, RANK_YIELD);
            continue;
        }
        uint32_t r = f->var_of[opener->out[j]];
        if (f->vars[r].used)
            copy(b, i, r, from, whole, RANK_YIELD);
        else if (whole)
            pair(b, r, from, RANK_YIELD); /* nothing reads it: it has a place, but no copy */
    }
}

static void open_else(builder *b, uint32_t i)
{
    const lt_flow *f = b->f;
    uint32_t opener = f->k->stmts[f->k->stmts[i].mate].mate;
    b->jump[opener] = point(b, i - 1);
    uint32_t first = point(b, i);
    if (b->ok) f->points[b->test[opener]].next[1] = first;
}

static void close_if(builder *b, uint32_t i)
{
    const lt_flow *f = b->f;
    uint32_t opener = f->k->stmts[i].mate;
    uint32_t end = point(b, i);
    if (!b->ok) return;
    if (f->k->stmts[opener].mate == i)
        f->points[b->test[opener]].next[1] = end;
    else
        f->points[b->jump[opener]].next[0] = end;
}

/* A barrier and a var hold something where they are allocated. */
static bool is_set_up(const ot_kernel *k, const ot_tk_stmt *s)
{
    if (s->op != OT_TK_ALLOC) return false;
    ot_scope scope = k->values[s->out[0]].scope;
    return scope == OT_SCOPE_BARRIER || scope == OT_SCOPE_VAR;
}

static void emit(builder *b, uint32_t i)
{
    lt_flow *f = b->f;
    const ot_tk_stmt *s = &f->k->stmts[i];
    f->start[i] = (uint32_t)f->n_points;
    switch (s->op) {
    case OT_TK_ALLOC:
    case OT_TK_FREE:
        point(b, i);
        touch(b, f->var_of[s->op == OT_TK_ALLOC ? s->out[0] : s->in[0]],
              is_set_up(f->k, s) ? LT_WRITE | LT_FULL : LT_FORGET);
        break;
    case OT_TK_VIEW:
    case OT_TK_CHECK:
    case OT_TK_FENCE: point(b, i); break;
    case OT_TK_WAIT:
    case OT_TK_ARRIVE: /* a barrier counts what arrived: each changes it */
        point(b, i);
        for (uint32_t j = 0; j < s->n_in; j++) touch(b, f->var_of[s->in[j]], LT_READ | LT_WRITE);
        break;
    case OT_TK_LOAD:
    case OT_TK_STORE:
    case OT_TK_COPY:
    case OT_TK_COMPUTE:
        point(b, i);
        for (uint32_t j = 0; j < s->n_in; j++) read_value(b, s->in[j]);
        for (uint32_t j = 0; j < s->n_out; j++) write_value(b, s, s->out[j]);
        break;
    case OT_TK_FOR:
    case OT_TK_WHILE: open_loop(b, i); break;
    case OT_TK_IF:
        b->test[i] = point(b, i);
        if (s->has_condition) read_value(b, s->in[s->n_in - 1]);
        break;
    case OT_TK_ELSE: open_else(b, i); break;
    case OT_TK_YIELD: yield(b, i); break;
    case OT_TK_END:
        if (f->k->stmts[s->mate].op == OT_TK_IF)
            close_if(b, i);
        else
            close_loop(b, i);
        break;
    }
}

/* ---- variables ---- */

/* Which variables does a statement name? */
static void mark_used(lt_flow *f)
{
    for (uint32_t i = 0; i < f->k->n_stmts; i++) {
        const ot_tk_stmt *s = &f->k->stmts[i];
        bool defines = s->op == OT_TK_FOR || s->op == OT_TK_WHILE || s->op == OT_TK_IF ||
                       s->op == OT_TK_VIEW;
        for (uint32_t j = 0; j < s->n_in && s->op != OT_TK_VIEW; j++) {
            if (f->var_of[s->in[j]] != OT_NONE) f->vars[f->var_of[s->in[j]]].used = true;
        }
        for (uint32_t j = 0; j < s->n_out && !defines; j++) {
            if (f->var_of[s->out[j]] != OT_NONE) f->vars[f->var_of[s->out[j]]].used = true;
        }
    }
}

static bool new_var(lt_flow *f, uint32_t value, bool temporary)
{
    lt_var v = {.value = value, .temporary = temporary, .unwritten = OT_NONE, .unsure = OT_NONE};
    return f->n_vars < UINT32_MAX - 1 && OT_PUSH(f->arena, f->vars, f->n_vars, f->cap_vars, v);
}

static bool make_vars(lt_flow *f, uint32_t *ways)
{
    const ot_kernel *k = f->k;
    for (uint32_t v = 0; v < k->n_values; v++) {
        bool own = k->values[v].kind != OT_TK_PARAM && k->values[v].base == OT_NONE;
        f->var_of[v] = own ? (uint32_t)f->n_vars : OT_NONE;
        if (own && !new_var(f, v, false)) return false;
    }
    for (uint32_t v = 0; v < k->n_values; v++) f->whole[v] = k->values[v].base == OT_NONE;
    for (uint32_t i = 0; i < k->n_stmts; i++) {
        const ot_tk_stmt *s = &k->stmts[i];
        if (s->op == OT_TK_VIEW) { /* its base is known: a statement before defines it */
            uint32_t v = s->out[0], base = k->values[v].base;
            f->var_of[v] = f->var_of[base];
            f->whole[v] = f->whole[base] && covers_base(k, v);
        }
        for (uint32_t j = 0; j < s->n_out && (s->op == OT_TK_FOR || s->op == OT_TK_WHILE); j++) {
            ways[s->carried[j]] = (uint32_t)f->n_vars;
            if (!new_var(f, s->carried[j], true)) return false;
        }
    }
    return true;
}

/* The accesses of each variable, from those of each point. */
static bool sort_by_var(lt_flow *f)
{
    uint32_t *all = OT_NEW_N(f->arena, uint32_t, f->n_accesses);
    uint32_t *at = OT_NEW_N(f->arena, uint32_t, f->n_vars);
    if (!all || !at) return false;
    uint32_t first = 0;
    for (size_t v = 0; v < f->n_vars; v++) {
        at[v] = first;
        f->vars[v].access = all + first;
        first += f->vars[v].n_access;
    }
    for (size_t i = 0; i < f->n_accesses; i++) all[at[f->accesses[i].var]++] = (uint32_t)i;
    return true;
}

ot_status lt_points_build(lt_flow *f, const ot_kernel *k, ot_arena *a, ot_diag *d)
{
    *f = (lt_flow){.arena = a, .k = k};
    builder b = {.f = f, .loop = OT_NONE, .ok = true};
    f->var_of = OT_NEW_N(a, uint32_t, k->n_values);
    f->whole = OT_NEW_N(a, bool, k->n_values);
    f->start = OT_NEW_N(a, uint32_t, (size_t)k->n_stmts + 1);
    f->body = OT_NEW_N(a, uint32_t, k->n_stmts);
    f->latch = OT_NEW_N(a, uint32_t, k->n_stmts);
    b.ways = OT_NEW_N(a, uint32_t, k->n_values);
    b.test = OT_NEW_N(a, uint32_t, k->n_stmts);
    b.jump = OT_NEW_N(a, uint32_t, k->n_stmts);
    if (!f->var_of || !f->whole || !f->start || !f->body || !f->latch || !b.ways || !b.test ||
        !b.jump)
        return ot_fail_nomem(d);
    if (!make_vars(f, b.ways)) return ot_fail_nomem(d);
    b.accessed = OT_NEW_N(a, uint32_t, f->n_vars);
    if (!b.accessed) return ot_fail_nomem(d);
    mark_used(f);
    for (uint32_t i = 0; i < k->n_stmts && b.ok; i++) emit(&b, i);
    f->start[k->n_stmts] = (uint32_t)f->n_points;
    point(&b, k->n_stmts); /* behind the last */
    if (!b.ok || !sort_by_var(f)) return ot_fail_nomem(d);
    f->n_points--;
    return OT_OK;
}
