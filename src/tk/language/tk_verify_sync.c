/* Verifier, rules of order: streams, barriers, fences, parallel loops; and of the settings of
 * operations.
 *
 * A message ends with the rule's name in brackets; docs/kernels/rules.md has all of them,
 * with a kernel that breaks each.
 */
#include "tk_internal.h"

#include <inttypes.h>

#define ATTRS_MAX 16 /* of one operation */
ot_status tk_check_no_barrier(const tk_check *c, uint32_t v)
{
    const ot_tk_value *x = &c->k->values[c->root[v]];
    if (x->scope != OT_SCOPE_BARRIER) return OT_OK;
    return tk_bad_stmt(c, "'%s' is a barrier: only arrive and wait touch it [barrier-use]",
                       x->name);
}

ot_status tk_check_stream(const tk_check *c, const ot_tk_stmt *s)
{
    bool moves = s->op == OT_TK_LOAD || s->op == OT_TK_STORE || s->op == OT_TK_COPY;
    if (s->parallel && (s->op != OT_TK_FOR || s->n_out > 0))
        return tk_bad_stmt(
            c, "a parallel loop carries nothing from one iteration to the next [parallel-carry]");
    if (!s->stream)
        return s->op == OT_TK_WAIT && s->n_in == 0 ? tk_bad_stmt(c, "a wait for nothing") : OT_OK;
    if (!moves && s->op != OT_TK_WAIT)
        return tk_bad_stmt(c, "a stream on a statement that moves nothing");
    if (!tk_is_name(s->stream) || tk_is_keyword(s->stream))
        return tk_bad_stmt(c, "'%s' is no name of a stream", s->stream);
    return OT_OK;
}

ot_status tk_count_stream(tk_check *c, const ot_tk_stmt *s)
{
    if (!s->stream || s->op == OT_TK_WAIT) return OT_OK;
    for (uint32_t k = 0; k < c->n_streams; k++)
        if (strcmp(c->streams[k], s->stream) == 0) return OT_OK;
    if (c->n_streams == OT_TK_STREAMS_MAX)
        return tk_bad_stmt(c, "more than %d streams [stream-count]", OT_TK_STREAMS_MAX);
    c->streams[c->n_streams++] = s->stream;
    return OT_OK;
}

/* Some transfer is in the stream: before this statement, or later in a loop around it. */
static bool stream_exists(tk_check *c, const char *stream)
{
    for (uint32_t k = 0; k < c->n_streams; k++)
        if (strcmp(c->streams[k], stream) == 0) return true;
    for (uint32_t i = c->at; i < c->k->n_stmts && c->n_blocks > 0; i++) {
        const ot_tk_stmt *s = &c->k->stmts[i];
        if (s->op == OT_TK_WAIT || !s->stream || strcmp(s->stream, stream) != 0) continue;
        return tk_count_stream(c, s) == OT_OK; /* the next wait need not look for it */
    }
    return false;
}

ot_status tk_check_sync(tk_check *c, const ot_tk_stmt *s)
{
    if (s->op == OT_TK_FENCE) return OT_OK;
    if (s->explicit_pipe && (unsigned)s->pipe >= OT_PIPE_COUNT)
        return tk_bad_stmt(c, "a statement on no known pipe");
    if (c->k->explicit_sync && !s->explicit_pipe)
        return tk_bad_stmt(c, "with sync=explicit it is one pipe that waits or arrives: write "
                              "wait.PIPE, arrive.PIPE [sync-pipe]");
    if (s->keep < 0 || (s->keep > 0 && !s->stream))
        return tk_bad_stmt(c, "a wait that keeps less than nothing");
    if (s->n_in == 0) {
        if (stream_exists(c, s->stream)) return OT_OK;
        return tk_bad_stmt(c, "no transfer is in the stream '%s' [wait-stream]", s->stream);
    }
    if (s->stream) return tk_bad_stmt(c, "a wait for two things");
    const ot_tk_value *x = &c->k->values[c->root[s->in[0]]];
    if (x->scope == OT_SCOPE_BARRIER) return OT_OK;
    return tk_bad_stmt(c, "'%s' is no barrier [barrier-use]", x->name);
}

ot_status tk_check_attrs(const tk_check *c, const ot_tk_stmt *s)
{
    if (!s->attrs != (s->n_attrs == 0)) return tk_bad_stmt(c, "settings that are not there");
    if (s->n_attrs > 0 && s->op != OT_TK_COMPUTE)
        return tk_bad_stmt(c, "settings on a statement that has none");
    if (s->n_attrs > ATTRS_MAX) return tk_bad_stmt(c, "more than %d settings", ATTRS_MAX);
    for (uint32_t k = 0; k < s->n_attrs; k++) {
        const ot_tk_attr *a = &s->attrs[k];
        if (!tk_is_name(a->name))
            return tk_bad_stmt(c, "'%s' is no name of a setting", a->name ? a->name : "");
        if (a->n < 1 || a->n > OT_TK_RANK_MAX || (!a->list && a->n != 1))
            return tk_bad_stmt(c, "'%s' has no numbers", a->name);
        for (uint32_t j = 0; j < a->n; j++)
            if (a->values[j] != a->values[j]) return tk_bad_stmt(c, "'%s' is no number", a->name);
        for (uint32_t j = 0; j < k; j++)
            if (strcmp(s->attrs[j].name, a->name) == 0)
                return tk_bad_stmt(c, "'%s' is set twice [setting-twice]", a->name);
    }
    return OT_OK;
}
