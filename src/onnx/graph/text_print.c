/* Print a graph as .ot text (docs/ot-format.md): the language of the golden tests and of the dumps.
 *
 *   model ir 8 opset 17
 *   graph main {
 *     input %x : float32[1,3,224,224]
 *     init %w : float32[64,3,7,7] = bits 0x51c43b3b5a1c19b4
 *     %y : float32[1,64,112,112] = Conv(%x, %w) {strides=[2, 2]} "conv1"
 *     output %y
 *   }
 *
 * Declarations come in file order, nodes in topological order when there is one; analysis
 * results other than shapes are not printed. What is printed depends on the graph only: no
 * addresses, no hash order. Reading it back and printing again gives the same text. Everything
 * outside printable ASCII is escaped: names come from strangers.
 */
#include "text.h"

typedef struct ot_printer {
    FILE *f;
    int indent; /* spaces */
    bool brief; /* for programs */
} ot_printer;

static void print_graph(ot_printer *p, const ot_graph *g);

static void start_line(const ot_printer *p)
{
    if (!p->brief) fprintf(p->f, "%*s", p->indent, "");
}

static void print_contents(const ot_printer *p, const ot_tensor *t)
{
    ot_text_print_contents(p->f, t, p->brief ? OT_TEXT_BRIEF : OT_TEXT_INLINE);
}

static void print_word(const ot_printer *p, const char *s)
{
    if (ot_text_is_word(s, false))
        fputs(s, p->f);
    else
        ot_text_quote(p->f, s, strlen(s));
}

static void print_name(const ot_printer *p, const char *s)
{
    fputc('%', p->f);
    if (ot_text_is_word(s, true))
        fputs(s, p->f);
    else
        ot_text_quote(p->f, s, strlen(s));
}

static void print_ref(const ot_printer *p, const ot_graph *g, ot_id v)
{
    if (v == OT_NONE)
        fputc('_', p->f);
    else
        print_name(p, g->values[v].name);
}

static void print_dims(const ot_printer *p, int64_t rank, const int64_t *dims)
{
    fputc('[', p->f);
    for (int64_t k = 0; k < rank; k++) {
        if (k) fputc(',', p->f);
        if (dims[k] < 0)
            fputc('?', p->f);
        else
            fprintf(p->f, "%lld", (long long)dims[k]);
    }
    fputc(']', p->f);
}

/* " : type", or nothing when nothing is known. */
static void print_type(const ot_printer *p, const ot_value *v)
{
    if (!v->is_tensor) {
        fputs(" : opaque", p->f);
        return;
    }
    if (v->dtype == OT_DT_UNKNOWN && v->rank < 0) return;
    fprintf(p->f, " : %s", v->dtype == OT_DT_UNKNOWN ? "?" : ot_dtype_name(v->dtype));
    if (v->rank >= 0) print_dims(p, v->rank, v->dims);
}

/* ---- attributes ---- */

static void print_tensor(const ot_printer *p, const ot_tensor *t)
{
    fprintf(p->f, "tensor %s", t->dtype == OT_DT_UNKNOWN ? "?" : ot_dtype_name(t->dtype));
    print_dims(p, t->rank, t->dims);
    print_contents(p, t);
}

/* Lists say their kind when the elements cannot: an empty list of ints is "[]". */
static void print_list(const ot_printer *p, const ot_attr *a)
{
    if (a->n == 0 && a->kind == OT_ATTR_FLOATS) fputs("floats", p->f);
    if (a->n == 0 && a->kind == OT_ATTR_STRINGS) fputs("strings", p->f);
    fputc('[', p->f);
    for (size_t k = 0; k < a->n; k++) {
        if (k) fputs(", ", p->f);
        if (a->kind == OT_ATTR_INTS)
            fprintf(p->f, "%lld", (long long)a->ints[k]);
        else if (a->kind == OT_ATTR_FLOATS)
            ot_text_float(p->f, (double)a->floats[k], 9);
        else
            ot_text_quote(p->f, a->strings[k], strlen(a->strings[k]));
    }
    fputc(']', p->f);
}

static void print_attr(ot_printer *p, const ot_attr *a)
{
    print_word(p, a->name);
    fputc('=', p->f);
    switch (a->kind) {
    case OT_ATTR_INT: fprintf(p->f, "%lld", (long long)a->i); break;
    case OT_ATTR_FLOAT: ot_text_float(p->f, (double)a->f, 9); break;
    case OT_ATTR_STRING: ot_text_quote(p->f, a->s, a->n); break;
    case OT_ATTR_INTS:
    case OT_ATTR_FLOATS:
    case OT_ATTR_STRINGS: print_list(p, a); break;
    case OT_ATTR_TENSOR: print_tensor(p, a->t); break;
    case OT_ATTR_GRAPH: print_graph(p, a->g); break;
    case OT_ATTR_OPAQUE: fputs("opaque", p->f); break;
    }
}

/* ---- nodes ---- */

static void print_op(const ot_printer *p, const ot_graph *g, const ot_node *n)
{
    if (n->domain[0]) {
        ot_text_quote(p->f, n->domain, strlen(n->domain));
        fputs("::", p->f);
    }
    if (ot_text_is_keyword(n->op_type))
        ot_text_quote(p->f, n->op_type, strlen(n->op_type));
    else
        print_word(p, n->op_type);
    if (n->version != (n->domain[0] ? 0 : g->model->opset)) fprintf(p->f, "@%d", n->version);
}

/* Bodies say themselves what they capture; the user's own subgraphs are opaque, so the node says
 * it. */
static bool has_opaque(const ot_node *n)
{
    bool bodies = false, opaque = false;
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        bodies |= n->attrs[k].kind == OT_ATTR_GRAPH;
        opaque |= n->attrs[k].kind == OT_ATTR_OPAQUE;
    }
    return n->n_captured > 0 && (opaque || !bodies);
}

/* What follows from the operands need not be said: not of operators that we do not know. */
static bool states_type(const ot_node *n, const ot_value *v)
{
    return v->is_output || n->op == OT_OP_OPAQUE;
}

static void print_node(ot_printer *p, const ot_graph *g, const ot_node *n)
{
    start_line(p);
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (k) fputs(", ", p->f);
        print_ref(p, g, n->out[k]);
        if (n->out[k] != OT_NONE && (!p->brief || states_type(n, &g->values[n->out[k]])))
            print_type(p, &g->values[n->out[k]]);
    }
    if (n->n_out) fputs(" = ", p->f);
    print_op(p, g, n);
    fputc('(', p->f);
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (k) fputs(", ", p->f);
        print_ref(p, g, n->in[k]);
    }
    fputc(')', p->f);
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        fputs(k ? ", " : " {", p->f);
        print_attr(p, &n->attrs[k]);
    }
    if (n->n_attrs) fputc('}', p->f);
    if (has_opaque(n)) {
        fputs(" captures(", p->f);
        for (uint32_t k = 0; k < n->n_captured; k++) {
            if (k) fputs(", ", p->f);
            print_ref(p, g, n->captured[k]);
        }
        fputc(')', p->f);
    }
    if (n->name[0]) {
        fputc(' ', p->f);
        ot_text_quote(p->f, n->name, strlen(n->name));
    }
    fputc('\n', p->f);
}

/* ---- graphs ---- */

static void print_decl(const ot_printer *p, const char *keyword, const ot_value *v)
{
    start_line(p);
    fprintf(p->f, "%s ", keyword);
    print_name(p, v->name);
    if (v->init) { /* an input may leave open what its default has */
        fprintf(p->f, " : %s", ot_dtype_name(v->init->dtype));
        print_dims(p, v->init->rank, v->init->dims);
        print_contents(p, v->init);
    } else {
        print_type(p, v);
    }
    fputc('\n', p->f);
}

static void print_decls(const ot_printer *p, const ot_graph *g)
{
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        print_decl(p, v->init ? "input init" : "input", v);
    }
    for (ot_id id = 0; id < g->n_values; id++)
        if (g->values[id].is_outer) print_decl(p, "outer", &g->values[id]);
    for (ot_id id = 0; id < g->n_values; id++) {
        const ot_value *v = &g->values[id];
        if (v->is_input || v->is_outer || v->producer != OT_NONE || v->removed) continue;
        if (v->init || !v->is_tensor) print_decl(p, "init", v);
    }
}

static void print_graph(ot_printer *p, const ot_graph *g)
{
    fputs("graph ", p->f);
    print_word(p, g->name);
    fputs(" {\n", p->f);
    p->indent += 2;
    print_decls(p, g);
    bool ordered = g->props & OT_P_ORDER;
    for (uint32_t k = 0; k < (ordered ? g->n_order : g->n_nodes); k++) {
        const ot_node *n = &g->nodes[ordered ? g->order[k] : k];
        if (!n->dead) print_node(p, g, n);
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        start_line(p);
        fputs("output ", p->f);
        print_ref(p, g, g->outputs[k]);
        fputc('\n', p->f);
    }
    p->indent -= 2;
    start_line(p);
    fputc('}', p->f);
}

static ot_status print(ot_printer *p, const ot_graph *g)
{
    if (!g->parent)
        fprintf(p->f, "model ir %lld opset %d\n", (long long)g->model->ir_version, g->model->opset);
    print_graph(p, g);
    fputc('\n', p->f);
    return fflush(p->f) != 0 || ferror(p->f) ? OT_E_SYSTEM : OT_OK;
}

/* requires nothing (prints in topological order when ORDER holds). keeps everything. */
ot_status ot_text_print(const ot_graph *g, FILE *f) { return print(&(ot_printer){.f = f}, g); }

ot_status ot_text_print_brief(const ot_graph *g, FILE *f)
{
    return print(&(ot_printer){.f = f, .brief = true}, g);
}
