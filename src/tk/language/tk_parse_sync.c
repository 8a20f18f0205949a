/* The parser of order between transfers and pipes: streams, barriers, fences.
 *
 *   load a <- x[...] stream=in        a transfer that runs beside what follows
 *   wait in [keep=N]                  until all (but the last N) transfers of that stream are done
 *   barrier b arrive=2                arrivals that a phase takes
 *   arrive[.PIPE] b                   the pipe (all of them) did what came before
 *   wait[.PIPE] b                     until the phase has its arrivals
 *   fence                             every pipe waits for every other
 *
 * The words are none of the language's: in front of '=' and ',' they are a buffer's name.
 */
#include "tk_internal.h"

ot_status tk_parse_stream(tk_parser *p, ot_tk_stmt *s)
{
    if (!tk_accept_setting(p, "stream", true)) return p->lx.r.status;
    s->stream = ot_strdup(p->b.k->arena, p->lx.name);
    if (!s->stream) return tk_fail_nomem(&p->lx);
    tk_lex_next(&p->lx);
    return p->lx.r.status;
}

/* NAME arrive=N, after `barrier`. */
static ot_status parse_barrier(tk_parser *p, ot_tk_stmt s)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(tk_any_name(p, "a name"));
    ot_tk_value v = tk_new_value(p, &p->words[1], OT_TK_BUFFER);
    v.scope = OT_SCOPE_BARRIER;
    v.rank = 1;
    v.dims[0] = 1;
    v.dtype = tk_dtype_parse("u64");
    v.bytes = 8;
    OT_TRY(tk_expect_word(lx, "arrive"));
    OT_TRY(tk_expect(lx, '='));
    uint32_t line = lx->r.tok_line, col = lx->r.tok_col;
    OT_TRY(tk_expect_int(lx, &v.arrive));
    if (v.arrive < 1 || v.arrive > 1024)
        return tk_fail_at(lx, line, col,
                          "the barrier '%s' takes 1 to 1024 arrivals [barrier-count]", v.name);
    OT_TRY(tk_attributes(p, &v));
    s.op = OT_TK_ALLOC;
    return tk_define(p, &v, s);
}

/* The pipe behind the dot of `wait.vector`. */
static ot_status parse_pipe(tk_parser *p, const char *word, ot_tk_stmt *s)
{
    const char *dot = strchr(word, '.');
    if (!dot) return OT_OK;
    s->explicit_pipe = true;
    if (tk_pipe_parse(dot + 1, strlen(dot + 1), &s->pipe)) return OT_OK;
    return tk_fail_at(&p->lx, s->line, s->col,
                      "'%s' is no pipe (vector cube scalar dma_in dma_out)", dot + 1);
}

static bool is_barrier(const tk_parser *p, uint32_t id)
{
    return id != OT_NONE && p->b.k->values[id].scope == OT_SCOPE_BARRIER;
}

/* wait NAME, arrive NAME: a barrier, or for wait a stream. */
static ot_status parse_event(tk_parser *p, const char *word, ot_tk_stmt *s)
{
    tk_lexer *lx = &p->lx;
    OT_TRY(parse_pipe(p, word, s));
    if (lx->tok != TK_NAME || tk_is_keyword(lx->name))
        return tk_expected(lx, "a barrier or a stream");
    uint32_t id = ot_map_get(p->names, lx->name);
    if (s->op == OT_TK_ARRIVE || is_barrier(p, id)) {
        OT_TRY(tk_old_name(p, &id));
        s->in = &id;
        s->n_in = 1;
        return tk_add(p, s);
    }
    s->stream = ot_strdup(p->b.k->arena, lx->name);
    if (!s->stream) return tk_fail_nomem(lx);
    tk_lex_next(lx);
    if (tk_accept_setting(p, "keep", false)) OT_TRY(tk_expect_int(lx, &s->keep));
    if (lx->r.status != OT_OK) return lx->r.status;
    return tk_add(p, s);
}

static bool is_word(const char *word, const char *what)
{
    size_t n = strlen(what);
    return strncmp(word, what, n) == 0 && (word[n] == '\0' || word[n] == '.');
}

ot_status tk_parse_sync(tk_parser *p, const char *word, ot_tk_stmt *s, bool *known)
{
    *known = true;
    if (strcmp(word, "barrier") == 0 && p->lx.tok == TK_NAME) return parse_barrier(p, *s);
    if (strcmp(word, "fence") == 0) {
        s->op = OT_TK_FENCE;
        return tk_add(p, s);
    }
    if (p->lx.tok == TK_NAME && (is_word(word, "wait") || is_word(word, "arrive"))) {
        s->op = is_word(word, "wait") ? OT_TK_WAIT : OT_TK_ARRIVE;
        return parse_event(p, word, s);
    }
    *known = false;
    return OT_OK;
}
