/* Read a model from .ot text (docs/ot-format.md): recursive descent over the tokens of text_lex.c.
 *
 *   model  := "model" "ir" INT "opset" INT graph
 *   graph  := "graph" [word] "{" { decl | node } "}"
 *   node   := [ out { "," out } "=" ] op "(" [ operand { "," operand } ] ")" [ "{" attrs "}" ] [
 *          captures ] [ STRING ]
 *
 * A value may be read above the line that defines it: a reference makes the value, with the
 * place of the reference noted, and what is still undefined at the closing brace is reported
 * there. A body says `outer` for each value it reads from outside; the enclosing graph then
 * refers to it. The result is like an imported model: producers, uses and order are set, and
 * ot_verify has accepted it. Texts come from anyone: nesting, ranks and the bytes of contents
 * are limited.
 */
#include <math.h>

#include "text.h"

#define VERSION_MAX 100000

/* What the parser knows about a value besides the value itself. */
typedef struct ot_mark {
    bool defined;
    uint32_t line, col; /* of the definition, or of the first reference before it */
} ot_mark;

typedef struct ot_scope {
    struct ot_scope *up;
    ot_graph *g;
    ot_mark *marks; /* [g->n_values] */
    size_t n_marks, cap_marks;
    size_t cap_inputs, cap_outputs;
} ot_scope;

typedef struct ot_parser {
    ot_lexer lx;
    ot_model *m;
    ot_arena *scratch; /* lists of one statement, marks */
    int64_t budget;    /* bytes of contents that may still be made */
    unsigned depth;    /* of nested graphs */
} ot_parser;

typedef struct ot_type {
    bool opaque;
    ot_dtype dtype;
    int32_t rank;
    int64_t dims[OT_RANK_MAX];
} ot_type;

static ot_status parse_graph(ot_parser *p, ot_scope *up, ot_graph **out);

static ot_status nomem(const ot_parser *p) { return ot_fail_nomem(p->m->diag); }

/* ---- values and types ---- */

static ot_status new_value(ot_parser *p, ot_scope *s, const char *name, ot_mark mark, ot_id *out)
{
    *out = ot_value_new(s->g, name, OT_DT_UNKNOWN, -1, NULL);
    if (*out == OT_NONE || !OT_PUSH(p->scratch, s->marks, s->n_marks, s->cap_marks, mark))
        return nomem(p);
    return OT_OK;
}

/* The value of that name, made when it is met for the first time. */
static ot_status refer(ot_parser *p, ot_scope *s, const char *name, uint32_t line, uint32_t col,
                       ot_id *out)
{
    *out = ot_value_find(s->g, name);
    return *out != OT_NONE ? OT_OK : new_value(p, s, name, (ot_mark){false, line, col}, out);
}

/* [ ":" type ] */
static ot_status parse_type(ot_parser *p, ot_type *t)
{
    ot_lexer *lx = &p->lx;
    *t = (ot_type){.rank = -1};
    if (ot_lex_accept_word(lx, "opaque")) {
        t->opaque = true;
        return lx->r.status;
    }
    if (!ot_lex_accept(lx, '?')) {
        if (lx->tok != OT_TOK_NAME) return ot_lex_fail(lx, "expected an element type");
        t->dtype = ot_dtype_parse(lx->str);
        if (t->dtype == OT_DT_UNKNOWN) return ot_lex_fail(lx, "unknown element type '%s'", lx->str);
        ot_lex_next(lx);
    }
    if (!ot_lex_accept(lx, '[')) return lx->r.status;
    t->rank = 0;
    while (!ot_lex_is(lx, ']')) {
        if (t->rank && !ot_lex_accept(lx, ','))
            return ot_lex_fail(lx, "expected ',' or ']' in a shape");
        if (t->rank == OT_RANK_MAX) return ot_lex_fail(lx, "more than %d dimensions", OT_RANK_MAX);
        int64_t dim = OT_DIM_UNKNOWN;
        if (!ot_lex_accept(lx, '?')) {
            if (lx->tok == OT_TOK_INT && lx->neg) return ot_lex_fail(lx, "negative dimension");
            OT_TRY(ot_lex_i64(lx, &dim));
        }
        t->dims[t->rank++] = dim;
    }
    return ot_lex_expect(lx, ']');
}

/* %name [ ":" type ], not defined before. */
static ot_status parse_def(ot_parser *p, ot_scope *s, ot_id *out, ot_type *t)
{
    ot_lexer *lx = &p->lx;
    if (lx->tok != OT_TOK_VALUE) return ot_lex_fail(lx, "expected a value (%%name)");
    uint32_t line = lx->r.tok_line, col = lx->r.tok_col;
    const char *name = lx->str;
    OT_TRY(refer(p, s, name, line, col, out));
    if (s->marks[*out].defined)
        return ot_lex_fail(lx, "value '%s' is already defined in line %u", name,
                           s->marks[*out].line);
    s->marks[*out] = (ot_mark){true, line, col};
    ot_lex_next(lx);
    *t = (ot_type){.rank = -1};
    if (!ot_lex_accept(lx, ':')) return lx->r.status;
    OT_TRY(parse_type(p, t));
    s->g->values[*out].dtype = t->dtype;
    s->g->values[*out].is_tensor = !t->opaque;
    return ot_value_set_shape(s->g, *out, t->rank, t->dims);
}

/* [ "=" contents ] for a value or attribute of type t; the type must be complete. */
static ot_status parse_tensor(ot_parser *p, const ot_type *t, const ot_tensor **out)
{
    ot_lexer *lx = &p->lx;
    bool complete = t->dtype != OT_DT_UNKNOWN && t->rank >= 0 && !t->opaque;
    for (int32_t k = 0; k < t->rank; k++) complete &= t->dims[k] >= 0;
    if (!complete) return ot_lex_fail(lx, "a constant needs an element type and fixed dimensions");
    ot_tensor *x = OT_NEW(p->m->arena, ot_tensor);
    int64_t *dims = ot_memdup(p->m->arena, t->dims, (size_t)t->rank * sizeof *dims);
    if (!x || !dims) return nomem(p);
    x->dtype = t->dtype;
    x->rank = (uint32_t)t->rank;
    x->dims = dims;
    int64_t n, bits;
    if (!ot_product(dims, x->rank, &n) || !ot_mul_i64(n, ot_dtype_bits(t->dtype), &bits))
        return ot_lex_fail(lx, "tensor too large");
    x->bytes = (size_t)(bits / 8 + (bits % 8 != 0));
    *out = x;
    return ot_lex_accept(lx, '=') ? ot_text_parse_contents(lx, x, &p->budget) : lx->r.status;
}

/* ---- declarations ---- */

static ot_status parse_init(ot_parser *p, ot_scope *s, ot_id v, const ot_type *t)
{
    if (t->opaque) return OT_OK; /* a sparse initializer: known to exist, nothing more */
    const ot_tensor *x;
    OT_TRY(parse_tensor(p, t, &x));
    s->g->values[v].init = x;
    if (!s->g->parent && p->m->weight_bytes <= SIZE_MAX - x->bytes) p->m->weight_bytes += x->bytes;
    return OT_OK;
}

static ot_status parse_input(ot_parser *p, ot_scope *s)
{
    ot_graph *g = s->g;
    ot_id v;
    ot_type t;
    bool has_init = ot_lex_accept_word(&p->lx, "init");
    OT_TRY(parse_def(p, s, &v, &t));
    if (!OT_PUSH(p->m->arena, g->inputs, g->n_inputs, s->cap_inputs, v)) return nomem(p);
    g->values[v].is_input = true;
    if (!has_init && !ot_lex_is(&p->lx, '=')) return p->lx.r.status;
    OT_TRY(parse_init(p, s, v, &t));
    g->values[v].overridable = p->m->ir_version >= 4 && g->values[v].init;
    return OT_OK;
}

static ot_status parse_output(ot_parser *p, ot_scope *s)
{
    ot_lexer *lx = &p->lx;
    ot_graph *g = s->g;
    if (lx->tok != OT_TOK_VALUE) return ot_lex_fail(lx, "expected a value (%%name)");
    ot_id v;
    OT_TRY(refer(p, s, lx->str, lx->r.tok_line, lx->r.tok_col, &v));
    if (!OT_PUSH(p->m->arena, g->outputs, g->n_outputs, s->cap_outputs, v)) return nomem(p);
    g->values[v].is_output = true;
    ot_lex_next(lx);
    return lx->r.status;
}

static ot_status parse_decl(ot_parser *p, ot_scope *s)
{
    ot_lexer *lx = &p->lx;
    ot_id v;
    ot_type t;
    if (ot_lex_accept_word(lx, "input")) return parse_input(p, s);
    if (ot_lex_accept_word(lx, "output")) return parse_output(p, s);
    if (ot_lex_accept_word(lx, "init")) {
        OT_TRY(parse_def(p, s, &v, &t));
        return parse_init(p, s, v, &t);
    }
    if (!s->up) return ot_lex_fail(lx, "'outer' belongs into a body");
    ot_lex_next(lx);
    OT_TRY(parse_def(p, s, &v, &t));
    s->g->values[v].is_outer = true;
    return OT_OK;
}

/* ---- attributes ---- */

typedef struct ot_list {
    ot_attr_kind kind;    /* INTS until something else is met */
    bool fixed;           /* the text gave the kind */
    int64_t *ints;        /* [n]; while all elements are integers */
    float *floats;        /* [n]; while all elements are numbers */
    const char **strings; /* [n] */
    size_t n, n_ints, n_strings;
    size_t cap_ints, cap_floats, cap_strings;
} ot_list;

/* Is the current token a floating-point literal? */
static bool float_token(const ot_lexer *lx, float *out)
{
    if (ot_lex_word(lx, "nan"))
        *out = NAN;
    else if (ot_lex_word(lx, "inf"))
        *out = INFINITY;
    else if (lx->tok == OT_TOK_FLOAT)
        *out = ot_text_narrow(lx->d);
    else
        return false;
    return true;
}

static ot_status parse_string_elem(ot_parser *p, ot_list *l)
{
    ot_lexer *lx = &p->lx;
    if (l->fixed && l->kind != OT_ATTR_STRINGS)
        return ot_lex_fail(lx, "a string in a list of numbers");
    if (l->n && l->kind != OT_ATTR_STRINGS) return ot_lex_fail(lx, "a string in a list of numbers");
    if (memchr(lx->str, 0, lx->len))
        return ot_lex_fail(lx, "a string of a list cannot hold a zero byte");
    l->kind = OT_ATTR_STRINGS;
    if (!OT_PUSH(p->m->arena, l->strings, l->n_strings, l->cap_strings, lx->str)) return nomem(p);
    l->n++;
    ot_lex_next(lx);
    return lx->r.status;
}

static ot_status parse_elem(ot_parser *p, ot_list *l)
{
    ot_lexer *lx = &p->lx;
    float f;
    int64_t i = 0;
    if (lx->tok == OT_TOK_STRING) return parse_string_elem(p, l);
    if (l->kind == OT_ATTR_STRINGS) return ot_lex_fail(lx, "expected a string");
    if (float_token(lx, &f)) {
        if (l->fixed && l->kind == OT_ATTR_INTS) return ot_lex_fail(lx, "expected an integer");
        l->kind = OT_ATTR_FLOATS;
        ot_lex_next(lx);
    } else {
        OT_TRY(ot_lex_i64(lx, &i));
        f = (float)i;
    }
    if (!OT_PUSH(p->m->arena, l->ints, l->n_ints, l->cap_ints, i)) return nomem(p);
    if (!OT_PUSH(p->m->arena, l->floats, l->n, l->cap_floats, f)) return nomem(p);
    return lx->r.status;
}

/* [ "ints" | "floats" | "strings" ] "[" elements "]" */
static ot_status parse_list(ot_parser *p, ot_attr *a)
{
    ot_lexer *lx = &p->lx;
    ot_list l = {.kind = OT_ATTR_INTS};
    if (ot_lex_word(lx, "floats")) l.kind = OT_ATTR_FLOATS;
    if (ot_lex_word(lx, "strings")) l.kind = OT_ATTR_STRINGS;
    l.fixed = lx->tok == OT_TOK_NAME;
    if (l.fixed) ot_lex_next(lx);
    OT_TRY(ot_lex_expect(lx, '['));
    while (!ot_lex_is(lx, ']')) {
        if (l.n && !ot_lex_accept(lx, ',')) return ot_lex_fail(lx, "expected ',' or ']' in a list");
        OT_TRY(parse_elem(p, &l));
    }
    a->kind = l.kind;
    a->n = l.n;
    static const int64_t none = 0; /* an empty list still points somewhere */
    if (l.kind == OT_ATTR_INTS)
        a->ints = l.n ? l.ints : &none;
    else if (l.kind == OT_ATTR_FLOATS)
        a->floats = l.floats;
    else
        a->strings = l.strings;
    return ot_lex_expect(lx, ']');
}

static ot_status parse_word_attr(ot_parser *p, ot_scope *s, ot_attr *a)
{
    ot_lexer *lx = &p->lx;
    if (ot_lex_word(lx, "ints") || ot_lex_word(lx, "floats") || ot_lex_word(lx, "strings"))
        return parse_list(p, a);
    if (ot_lex_word(lx, "graph")) {
        a->kind = OT_ATTR_GRAPH;
        return parse_graph(p, s, &a->g);
    }
    if (ot_lex_accept_word(lx, "tensor")) {
        ot_type t;
        OT_TRY(parse_type(p, &t));
        a->kind = OT_ATTR_TENSOR;
        return parse_tensor(p, &t, &a->t);
    }
    if (ot_lex_accept_word(lx, "opaque")) return lx->r.status;
    return ot_lex_fail(lx, "unknown attribute value '%s'", lx->str);
}

/* name "=" value */
static ot_status parse_attr(ot_parser *p, ot_scope *s, ot_attr *a)
{
    ot_lexer *lx = &p->lx;
    bool named = lx->tok == OT_TOK_NAME || lx->tok == OT_TOK_STRING;
    if (!named || memchr(lx->str, 0, lx->len))
        return ot_lex_fail(lx, "expected the name of an attribute");
    *a = (ot_attr){.name = lx->str};
    ot_lex_next(lx);
    OT_TRY(ot_lex_expect(lx, '='));
    if (float_token(lx, &a->f)) {
        a->kind = OT_ATTR_FLOAT;
    } else if (lx->tok == OT_TOK_INT) {
        a->kind = OT_ATTR_INT;
        return ot_lex_i64(lx, &a->i);
    } else if (lx->tok == OT_TOK_STRING) {
        a->kind = OT_ATTR_STRING;
        a->s = lx->str;
        a->n = lx->len;
    } else if (ot_lex_is(lx, '[')) {
        return parse_list(p, a);
    } else if (lx->tok == OT_TOK_NAME) {
        return parse_word_attr(p, s, a);
    } else {
        return ot_lex_fail(lx, "expected the value of attribute '%s'", a->name);
    }
    ot_lex_next(lx);
    return lx->r.status;
}

/* ---- nodes ---- */

typedef struct ot_draft {
    ot_id *out, *in, *captured;
    uint32_t n_out, n_in, n_captured;
    size_t cap_out, cap_in, cap_captured, cap_attrs;
    ot_attr *attrs;
    uint32_t n_attrs;
    const char *domain, *op_type, *name;
    int64_t version; /* -1: not given */
} ot_draft;

static ot_status parse_outs(ot_parser *p, ot_scope *s, ot_draft *d)
{
    ot_lexer *lx = &p->lx;
    do {
        ot_id v = OT_NONE;
        ot_type t;
        if (!ot_lex_accept_word(lx, "_")) OT_TRY(parse_def(p, s, &v, &t));
        if (!OT_PUSH(p->scratch, d->out, d->n_out, d->cap_out, v)) return nomem(p);
    } while (ot_lex_accept(lx, ','));
    return ot_lex_expect(lx, '=');
}

/* "(" [ operand { "," operand } ] ")"; an operand may be `_` when that is allowed. */
static ot_status parse_operands(ot_parser *p, ot_scope *s, bool may_omit, ot_id **list, uint32_t *n,
                                size_t *cap)
{
    ot_lexer *lx = &p->lx;
    OT_TRY(ot_lex_expect(lx, '('));
    while (!ot_lex_is(lx, ')')) {
        if (*n && !ot_lex_accept(lx, ','))
            return ot_lex_fail(lx, "expected ',' or ')' after an operand");
        ot_id v = OT_NONE;
        if (!(may_omit && ot_lex_accept_word(lx, "_"))) {
            if (lx->tok != OT_TOK_VALUE)
                return ot_lex_fail(lx, "expected an operand (%%name or _)");
            OT_TRY(refer(p, s, lx->str, lx->r.tok_line, lx->r.tok_col, &v));
            ot_lex_next(lx);
        }
        if (!OT_PUSH(p->scratch, *list, *n, *cap, v)) return nomem(p);
    }
    return ot_lex_expect(lx, ')');
}

/* [ STRING "::" ] word [ "@" INT ] */
static ot_status parse_op(ot_parser *p, ot_draft *d)
{
    ot_lexer *lx = &p->lx;
    for (;;) {
        bool word = lx->tok == OT_TOK_NAME || lx->tok == OT_TOK_STRING;
        if (!word || lx->len == 0 || memchr(lx->str, 0, lx->len))
            return ot_lex_fail(lx, "expected an operator");
        d->op_type = lx->str;
        ot_lex_next(lx);
        if (d->domain || !ot_lex_accept(lx, 'S')) break;
        d->domain = d->op_type;
    }
    if (!d->domain || strcmp(d->domain, "ai.onnx") == 0) d->domain = "";
    d->version = -1;
    if (!ot_lex_accept(lx, '@')) return lx->r.status;
    if (lx->tok == OT_TOK_INT && (lx->neg || lx->u > VERSION_MAX))
        return ot_lex_fail(lx, "version out of range");
    return ot_lex_i64(lx, &d->version);
}

static ot_status parse_attrs(ot_parser *p, ot_scope *s, ot_draft *d)
{
    ot_lexer *lx = &p->lx;
    if (!ot_lex_accept(lx, '{')) return lx->r.status;
    while (!ot_lex_is(lx, '}')) {
        if (d->n_attrs && !ot_lex_accept(lx, ','))
            return ot_lex_fail(lx, "expected ',' or '}' after an attribute");
        ot_attr a;
        OT_TRY(parse_attr(p, s, &a));
        if (!OT_PUSH(p->scratch, d->attrs, d->n_attrs, d->cap_attrs, a)) return nomem(p);
    }
    return ot_lex_expect(lx, '}');
}

static ot_status build_node(ot_parser *p, ot_scope *s, const ot_draft *d)
{
    ot_id id = ot_node_new(s->g, &(ot_node_def){.op = d->op_type,
                                                .domain = d->domain,
                                                .name = d->name,
                                                .in = {d->in, d->n_in},
                                                .out = {d->out, d->n_out},
                                                .attrs = {d->attrs, d->n_attrs}});
    if (id == OT_NONE) return nomem(p);
    ot_node *n = &s->g->nodes[id];
    n->source = id;
    if (d->version >= 0) n->version = (int32_t)d->version;
    if (d->n_captured) {
        n->captured = ot_memdup(p->m->arena, d->captured, d->n_captured * sizeof *d->captured);
        if (!n->captured) return nomem(p);
        n->n_captured = d->n_captured;
    }
    return OT_OK;
}

static ot_status parse_node(ot_parser *p, ot_scope *s)
{
    ot_lexer *lx = &p->lx;
    ot_draft d = {.name = ""};
    if (lx->tok == OT_TOK_VALUE || ot_lex_word(lx, "_")) OT_TRY(parse_outs(p, s, &d));
    OT_TRY(parse_op(p, &d));
    OT_TRY(parse_operands(p, s, true, &d.in, &d.n_in, &d.cap_in));
    OT_TRY(parse_attrs(p, s, &d));
    if (ot_lex_accept_word(lx, "captures"))
        OT_TRY(parse_operands(p, s, false, &d.captured, &d.n_captured, &d.cap_captured));
    if (lx->tok == OT_TOK_STRING && lx->r.tok_line == lx->last_line) {
        if (memchr(lx->str, 0, lx->len))
            return ot_lex_fail(lx, "a node name cannot hold a zero byte");
        d.name = lx->str;
        ot_lex_next(lx);
    }
    OT_TRY(lx->r.status);
    return build_node(p, s, &d);
}

/* ---- graphs ---- */

/* What was referred to must be defined by now; what a body takes from outside becomes a
 * reference there. */
static ot_status close_scope(ot_parser *p, ot_scope *s)
{
    ot_lexer *lx = &p->lx;
    if (!s->marks) return OT_OK; /* no values at all */
    for (ot_id v = 0; v < s->g->n_values; v++) {
        const ot_value *val = &s->g->values[v];
        if (!s->marks[v].defined) {
            lx->r.tok_line = s->marks[v].line;
            lx->r.tok_col = s->marks[v].col;
            return ot_lex_fail(lx, "value '%s' is not defined in this graph%s", val->name,
                               s->up ? " (a value from outside is declared with 'outer')" : "");
        }
        ot_id outside;
        if (val->is_outer)
            OT_TRY(refer(p, s->up, val->name, s->marks[v].line, s->marks[v].col, &outside));
    }
    return ot_topo_sort(s->g);
}

/* "graph" [ word ] "{" ... "}" */
static ot_status parse_graph(ot_parser *p, ot_scope *up, ot_graph **out)
{
    ot_lexer *lx = &p->lx;
    if (!ot_lex_accept_word(lx, "graph")) return ot_lex_fail(lx, "expected 'graph'");
    if (++p->depth > OT_TEXT_NEST_MAX)
        return ot_lex_fail(lx, "graphs nested deeper than %d", OT_TEXT_NEST_MAX);
    const char *name = "";
    if (lx->tok == OT_TOK_NAME || lx->tok == OT_TOK_STRING) {
        if (memchr(lx->str, 0, lx->len))
            return ot_lex_fail(lx, "a graph name cannot hold a zero byte");
        name = lx->str;
        ot_lex_next(lx);
    }
    OT_TRY(ot_lex_expect(lx, '{'));
    ot_scope s = {.up = up, .g = up ? ot_graph_new(p->m, up->g, name) : p->m->graph};
    if (!s.g) return nomem(p);
    s.g->name = name;
    while (!ot_lex_is(lx, '}')) {
        if (lx->tok == OT_TOK_NAME && ot_text_is_keyword(lx->str))
            OT_TRY(parse_decl(p, &s));
        else if (lx->tok == OT_TOK_VALUE || lx->tok == OT_TOK_NAME || lx->tok == OT_TOK_STRING)
            OT_TRY(parse_node(p, &s));
        else
            return ot_lex_fail(lx, "expected a declaration, a node or '}'");
    }
    OT_TRY(close_scope(p, &s));
    OT_TRY(ot_lex_expect(lx, '}'));
    p->depth--;
    *out = s.g;
    return OT_OK;
}

/* least: an opset of 0 is none of the standard's; no file has an IR version of 0. */
static ot_status parse_version(ot_parser *p, const char *word, uint64_t least, int64_t *out)
{
    ot_lexer *lx = &p->lx;
    if (!ot_lex_accept_word(lx, word)) return ot_lex_fail(lx, "expected '%s'", word);
    if (lx->tok == OT_TOK_INT && (lx->neg || lx->u < least || lx->u > VERSION_MAX))
        return ot_lex_fail(lx, "version out of range");
    return ot_lex_i64(lx, out);
}

static ot_status parse_model(ot_parser *p)
{
    ot_lexer *lx = &p->lx;
    int64_t opset;
    if (!ot_lex_accept_word(lx, "model")) return ot_lex_fail(lx, "expected 'model ir N opset N'");
    OT_TRY(parse_version(p, "ir", 1, &p->m->ir_version));
    OT_TRY(parse_version(p, "opset", 0, &opset));
    p->m->opset = (int32_t)opset;
    ot_graph *g;
    OT_TRY(parse_graph(p, NULL, &g));
    if (lx->tok != OT_TOK_END) return ot_lex_fail(lx, "expected the end of the text");
    return ot_verify(g);
}

/* establishes ORDER and USES in every graph. Fails: OT_E_INPUT with line:column (or naming node
 * and value, for rules of the whole graph), OT_E_NOMEM. */
ot_status ot_text_parse(const char *text, size_t n, ot_diag *diag, ot_model **out)
{
    if (n >= UINT32_MAX) return ot_fail(diag, OT_E_INPUT, "1:1: text larger than 4 GiB");
    ot_parser p = {.m = ot_model_new(diag), .scratch = ot_arena_new(), .budget = OT_TEXT_DATA_MAX};
    ot_status st = OT_E_NOMEM;
    if (p.m && p.scratch) {
        ot_lex_init(&p.lx, text, n, p.m->arena, diag);
        st = parse_model(&p);
    } else {
        st = ot_fail_nomem(diag);
    }
    ot_arena_free(p.scratch);
    if (st == OT_OK) p.m->shaped = true; /* a text is of a graph as we had it */
    if (st == OT_OK)
        *out = p.m;
    else
        ot_model_free(p.m);
    return st;
}
