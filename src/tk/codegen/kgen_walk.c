/* Statements one after the other, loops and branches as loops and branches of C.
 *
 *   r = for i in 0..96 step 32 carry (acc = zero) {     (acc's place) = zero
 *                                                       for (int t7 = 0; t7 < 3; t7++) { const int
 *                                                       i_7 = 0 + t7 * 32;
 *     yield (next)                                          (acc's place) = next }
 *   }                                                   (r's place) = acc
 *
 * A copy falls away where the planner has put both in one place. Conditions are read by every
 * item: all go the same way.
 */
#include "kgen_internal.h"

static void say(kgen *g, const ot_tk_stmt *s)
{
    const char *out = s->n_out > 0 ? kgen_value(g, s->out[0])->name : "",
               *in = s->n_in > 0 ? kgen_value(g, s->in[0])->name : "";
    switch (s->op) {
    case OT_TK_LOAD: kgen_line(g, "// line %u: load %s <- %s", s->line, out, in); break;
    case OT_TK_STORE: kgen_line(g, "// line %u: store %s <- %s", s->line, out, in); break;
    case OT_TK_COPY: kgen_line(g, "// line %u: copy %s <- %s", s->line, out, in); break;
    case OT_TK_COMPUTE:
        kgen_line(g, "// line %u: %s = %s.%s", s->line, out, ot_pipe_name(s->pipe), s->name);
        break;
    case OT_TK_WAIT:
        kgen_line(g, "// line %u: wait %s", s->line, s->stream ? s->stream : in);
        break;
    case OT_TK_FENCE: kgen_line(g, "// line %u: fence", s->line); break;
    case OT_TK_YIELD: kgen_line(g, "// line %u: yield", s->line); break;
    default: break;
    }
}

/* `const int goN = the first element is not 0`. */
static ot_status condition(kgen *g, uint32_t opener, bool declares)
{
    const ot_tk_stmt *s = &g->k->stmts[opener];
    kgen_operand o;
    if (!s->has_condition)
        return kgen_fail(g, "unknown-condition", "'?' cannot be run: nobody knows which way to go");
    OT_TRY(kgen_locate(g, s->in[s->n_in - 1], &o));
    OT_TRY(kgen_touch(g, &o, 1, NULL, (kgen_share){0}));
    ot_tk_class c = strcmp(o.dtype, "f64") == 0 ? OT_TK_F64
                    : ot_tk_is_float(o.dtype)   ? OT_TK_F32
                                                : OT_TK_I64;
    if (declares) kgen_line(g, "int go%u;", opener);
    kgen_block(g);
    kgen_pointer(g, &o, "a0", true, false);
    kgen_line(g, "go%u = %s != 0;", opener, kgen_get(g, o.dtype, c, "a0", kgen_index(g, &o, "0")));
    kgen_close(g);
    return OT_OK;
}

/* The condition stays pending where its barrier may have been passed in one branch only. */
static ot_status keep_condition(kgen *g, uint32_t opener)
{
    const ot_tk_stmt *s = &g->k->stmts[opener];
    kgen_operand o;
    OT_TRY(kgen_locate(g, s->in[s->n_in - 1], &o));
    return kgen_touch(g, &o, 1, NULL, (kgen_share){0});
}

/* ---- loops ---- */

static int64_t trips_of(const ot_tk_stmt *s)
{
    return s->hi <= s->lo ? 0 : (s->hi - s->lo + s->step - 1) / s->step;
}

static ot_status enter_for(kgen *g, const ot_tk_stmt *s)
{
    uint32_t id = g->pc;
    if (s->hi < 0)
        return kgen_fail(g, "unknown-trips", "'?' cannot be run: nobody knows how often");
    OT_TRY(kgen_carry(g, s->carried, s->in, s->n_out));
    kgen_flush(g);
    bool spread = id == g->spread;
    kgen_line(g, "// line %u: for %s%s", s->line, s->var, spread ? ": each group takes some" : "");
    if (spread)
        kgen_open(g, "for (int t%u = %s; t%u < %lld; t%u += %s)", id, g->dialect->group, id,
                  (long long)trips_of(s), id, g->dialect->groups);
    else
        kgen_open(g, "for (int t%u = 0; t%u < %lld; t%u++)", id, id, (long long)trips_of(s), id);
    const char *low = s->lo != 0 ? kgen_text(g, "%lld", (long long)s->lo) : "";
    kgen_line(g, "const int %s = %s;", kgen_name(g, s->var, id),
              kgen_term(g, low, kgen_text(g, "t%u", id), s->step));
    g->turn[id] = kgen_text(g, "t%u", id);
    return OT_OK;
}

static ot_status enter_while(kgen *g, const ot_tk_stmt *s)
{
    uint32_t id = g->pc;
    OT_TRY(kgen_carry(g, s->carried, s->in, s->n_out));
    kgen_flush(g);
    kgen_line(g, "// line %u: while", s->line);
    OT_TRY(condition(g, id, true));
    kgen_line(g, "int t%u = 0;", id);
    kgen_open(g, "while (go%u)", id);
    g->turn[id] = kgen_text(g, "t%u", id);
    return OT_OK;
}

/* The results are what was carried last, in the slot of the last iteration. */
static ot_status leave_loop(kgen *g, uint32_t opener)
{
    const ot_tk_stmt *s = &g->k->stmts[opener];
    kgen_flush(g);
    if (s->op == OT_TK_WHILE) {
        OT_TRY(condition(g, opener, false));
        kgen_line(g, "t%u++;", opener);
    }
    kgen_close(g);
    if (s->op == OT_TK_WHILE)
        g->turn[opener] = kgen_text(g, "(t%u > 0 ? t%u - 1 : 0)", opener, opener);
    else
        g->turn[opener] = kgen_text(g, "%lld", (long long)ot_max(0, trips_of(s) - 1));
    OT_TRY(kgen_carry(g, s->out, s->carried, s->n_out));
    g->turn[opener] = NULL;
    return OT_OK;
}

/* ---- branches ---- */

static ot_status enter_if(kgen *g, const ot_tk_stmt *s)
{
    kgen_flush(g);
    kgen_line(g, "// line %u: if", s->line);
    OT_TRY(condition(g, g->pc, true));
    kgen_open(g, "if (go%u)", g->pc);
    return OT_OK;
}

static ot_status other_branch(kgen *g, const ot_tk_stmt *s)
{
    uint32_t opener = g->pc;
    while (g->k->stmts[opener].op != OT_TK_IF || g->k->stmts[opener].mate != g->pc) opener--;
    (void)s;
    kgen_flush(g);
    kgen_close(g);
    kgen_open(g, "else");
    return keep_condition(g, opener);
}

static ot_status leave_if(kgen *g, uint32_t opener)
{
    kgen_flush(g);
    kgen_close(g);
    return keep_condition(g, opener);
}

/* ---- one statement ---- */

/* A var begins with its value. */
static ot_status set_up(kgen *g, uint32_t v)
{
    kgen_operand o;
    const ot_tk_value *x = kgen_value(g, v);
    if (x->scope != OT_SCOPE_VAR ||
        g->plan->lifetimes->buffers[g->plan->lifetimes->buffer_of[v]].n_live == 0)
        return OT_OK;
    OT_TRY(kgen_locate(g, v, &o));
    OT_TRY(kgen_touch(g, NULL, 0, &o, (kgen_share){0}));
    ot_tk_class c = ot_tk_is_float(x->dtype) && strcmp(x->dtype, "f64") != 0 ? OT_TK_F32
                                                                             : OT_TK_F64;
    if (c == OT_TK_F64 && strcmp(x->dtype, "f64") != 0) c = OT_TK_I64;
    kgen_line(g, "// line %u: var %s", x->line, x->name);
    kgen_open(g, "if (item == 0)");
    kgen_pointer(g, &o, "out", false, false);
    kgen_line(g, "%s", kgen_put(g, o.dtype, c, "out", "0", kgen_number(g, c, x->init)));
    kgen_close(g);
    return OT_OK;
}

static ot_status yield(kgen *g, const ot_tk_stmt *s)
{
    const ot_tk_stmt *opener = &g->k->stmts[s->mate];
    return kgen_carry(g, opener->op == OT_TK_IF ? opener->out : opener->carried, s->in, s->n_in);
}

static ot_status step(kgen *g)
{
    const ot_tk_stmt *s = &g->k->stmts[g->pc];
    say(g, s);
    switch (s->op) {
    case OT_TK_ALLOC: return set_up(g, s->out[0]);
    case OT_TK_LOAD:
    case OT_TK_STORE:
    case OT_TK_COPY: return kgen_move(g, s);
    case OT_TK_COMPUTE: return kgen_compute(g, s);
    case OT_TK_FOR: return enter_for(g, s);
    case OT_TK_WHILE: return enter_while(g, s);
    case OT_TK_IF: return enter_if(g, s);
    case OT_TK_ELSE: return other_branch(g, s);
    case OT_TK_YIELD: return yield(g, s);
    case OT_TK_END:
        return g->k->stmts[s->mate].op == OT_TK_IF ? leave_if(g, s->mate) : leave_loop(g, s->mate);
    case OT_TK_WAIT:
        if (s->stream) kgen_wait(g, s->stream);
        kgen_flush(g);
        break;
    case OT_TK_FENCE:
        kgen_wait(g, NULL);
        kgen_flush(g);
        break;
    case OT_TK_FREE:
    case OT_TK_VIEW:
    case OT_TK_ARRIVE: /* what is before it is done, or a barrier comes where that matters */
    case OT_TK_CHECK: break;
    }
    return OT_OK;
}

ot_status kgen_walk(kgen *g)
{
    for (g->pc = 0; g->pc < g->k->n_stmts; g->pc++) OT_TRY(step(g));
    kgen_wait(g, NULL); /* nothing goes on when the kernel is over */
    return OT_OK;
}
