/* Kernels as text, in one way only: two blanks per block, a statement a line, the params first,
 * the attributes in the order align, multi, offset, the places of storages without alloc last.
 * Reading the text and printing it again gives the same bytes.
 *
 * requires a kernel that ot_kernel_verify accepts.
 */
#include "tk_internal.h"

#include <inttypes.h>

typedef struct printer {
    const ot_kernel *k;
    FILE *f;
    uint32_t depth;
} printer;

static const char *name_of(const printer *p, uint32_t v) { return p->k->values[v].name; }

static void print_names(const printer *p, const uint32_t *ids, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) fprintf(p->f, "%s%s", k ? ", " : "", name_of(p, ids[k]));
}

static void print_type(const printer *p, const ot_tk_value *v)
{
    bool sized = false;
    for (uint32_t d = 0; d < v->rank; d++) sized = sized || v->sizes[d];
    for (uint32_t d = 0; d < v->rank; d++) {
        fputs(sized ? d ? ", " : "[" : d ? "x" : "", p->f);
        if (v->sizes[d])
            fputs(v->sizes[d], p->f);
        else
            fprintf(p->f, "%" PRId64, v->dims[d]);
    }
    fprintf(p->f, "%s %s", sized ? "]" : "", v->dtype);
}

/* Terms, then the constant: 16*i-1, -j, 0. */
static void print_affine(const printer *p, const ot_tk_affine *a)
{
    for (uint32_t k = 0; k < a->n; k++) {
        int64_t coef = a->terms[k].coef;
        if (coef < 0)
            fputc('-', p->f);
        else if (k > 0)
            fputc('+', p->f);
        if (coef != 1 && coef != -1) fprintf(p->f, "%" PRId64 "*", coef < 0 ? -coef : coef);
        fputs(a->terms[k].var, p->f);
    }
    if (a->n == 0)
        fprintf(p->f, "%" PRId64, a->constant);
    else if (a->constant != 0)
        fprintf(p->f, "%+" PRId64, a->constant);
}

static void print_ranges(const printer *p, const ot_tk_range *ranges, uint32_t n)
{
    if (!ranges) return;
    for (uint32_t k = 0; k < n; k++) {
        fputs(k ? ", " : "[", p->f);
        print_affine(p, &ranges[k].lo);
        fputc(':', p->f);
        print_affine(p, &ranges[k].hi);
    }
    fputc(']', p->f);
}

/* The shortest text that reads as this number. */
static void print_number(const printer *p, double x)
{
    char text[40];
    if (x != x || x - x != 0) {
        fputs(x < 0 ? "-inf" : "inf", p->f);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    fputs(text, p->f);
}

static void print_attrs(const printer *p, const ot_tk_stmt *s)
{
    for (uint32_t k = 0; k < s->n_attrs; k++) {
        const ot_tk_attr *a = &s->attrs[k];
        fprintf(p->f, "%s%s=%s", k + s->n_in > 0 ? ", " : "", a->name, a->list ? "[" : "");
        for (uint32_t j = 0; j < a->n; j++) {
            if (j > 0) fputs(", ", p->f);
            print_number(p, a->values[j]);
        }
        if (a->list) fputc(']', p->f);
    }
}

/* wait, arrive, fence */
static void print_sync(const printer *p, const ot_tk_stmt *s)
{
    fputs(s->op == OT_TK_WAIT ? "wait" : s->op == OT_TK_ARRIVE ? "arrive" : "fence", p->f);
    if (s->op == OT_TK_FENCE) return;
    if (s->explicit_pipe) fprintf(p->f, ".%s", ot_pipe_name(s->pipe));
    fprintf(p->f, " %s", s->stream ? s->stream : name_of(p, s->in[0]));
    if (s->keep > 0) fprintf(p->f, " keep=%" PRId64, s->keep);
}

/* A var, a reducer or a descriptor. */
static void print_kind(const printer *p, const ot_tk_value *v)
{
    static const char *const ops[] = {"", "sum", "max", "min"},
                             *const copies[] = {"", " replication=all", " replication=none"},
                             *const kinds[] = {"", "wgmma", "tcgen05", "tcgen05.instruction"};
    if (v->scope == OT_SCOPE_VAR) {
        fprintf(p->f, "var %s: %s", v->name, v->dtype);
        if (v->init != 0) fputs(" = ", p->f);
        if (v->init != 0) print_number(p, v->init);
    } else if (v->scope == OT_SCOPE_REDUCER) {
        fprintf(p->f, "reducer %s: ", v->name);
        print_type(p, v);
        fprintf(p->f, " op=%s%s", ops[v->reduction], copies[v->replication]);
    } else {
        fprintf(p->f, "descriptor %s: %s %s", v->name, v->dtype, kinds[v->descriptor]);
    }
}

static void print_alloc(const printer *p, const ot_tk_value *v)
{
    if (v->scope == OT_SCOPE_BARRIER) {
        fprintf(p->f, "barrier %s arrive=%" PRId64, v->name, v->arrive);
        for (uint32_t k = 0; k < v->n_offsets; k++)
            fprintf(p->f, "%s%" PRId64, k ? "," : " offset=", v->offsets[k]);
        return;
    }
    if (v->scope == OT_SCOPE_VAR || v->scope == OT_SCOPE_REDUCER ||
        v->scope == OT_SCOPE_DESCRIPTOR) {
        print_kind(p, v);
        for (uint32_t k = 0; k < v->n_offsets; k++)
            fprintf(p->f, "%s%" PRId64, k ? "," : " offset=", v->offsets[k]);
        return;
    }
    fprintf(p->f, "%s %s: ", v->workspace ? "workspace" : "alloc", v->name);
    print_type(p, v);
    if (v->pool)
        fprintf(p->f, " from %s", p->k->pools[v->pool - 1].name);
    else if (!v->workspace)
        fprintf(p->f, " @%s%s", ot_scope_name(v->scope), v->dynamic ? ".dyn" : "");
    if (v->align > 0) fprintf(p->f, " align=%" PRId64, v->align);
    if (v->multi > 1) fprintf(p->f, " multi=%" PRIu32, v->multi);
    for (uint32_t k = 0; k < v->n_offsets; k++)
        fprintf(p->f, "%s%" PRId64, k ? "," : " offset=", v->offsets[k]);
    if (v->warp) fprintf(p->f, " warp=%" PRIu32, v->warp - 1);
    if (v->with) fprintf(p->f, " with=%s", name_of(p, v->with - 1));
    if (v->keep) fputs(v->keep == OT_TK_KEEP_ALL ? " unique" : " hold", p->f);
}

/* Where a storage without alloc lies; what: "place", "place yield". */
static void print_place(const printer *p, const ot_tk_value *v, const char *what,
                        const int64_t *offsets, uint32_t n)
{
    if (n == 0) return;
    fprintf(p->f, "  %s %s: ", what, v->name);
    print_type(p, v);
    fprintf(p->f, " @%s", ot_scope_name(v->scope));
    if (n > 1) fprintf(p->f, " multi=%" PRIu32, n);
    for (uint32_t k = 0; k < n; k++) fprintf(p->f, "%s%" PRId64, k ? "," : " offset=", offsets[k]);
    fputc('\n', p->f);
}

static void print_places(const printer *p)
{
    for (uint32_t v = 0; v < p->k->n_values; v++) {
        const ot_tk_value *x = &p->k->values[v];
        if (x->kind == OT_TK_CARRIED || x->kind == OT_TK_RESULT)
            print_place(p, x, "place", x->offsets, x->n_offsets);
        if (x->kind == OT_TK_CARRIED) print_place(p, x, "place yield", x->waits, x->n_waits);
    }
}

static void print_view(const printer *p, const ot_tk_value *v)
{
    if (v->kind == OT_TK_ALIAS) {
        fprintf(p->f, "alias %s = %s: ", v->name, name_of(p, v->base));
        print_type(p, v);
    } else {
        fprintf(p->f, "subview %s = %s", v->name, name_of(p, v->base));
        print_ranges(p, v->ranges, p->k->values[v->base].rank);
    }
}

static void print_move(const printer *p, const ot_tk_stmt *s)
{
    fputs(s->op == OT_TK_LOAD ? "load " : s->op == OT_TK_STORE ? "store " : "copy", p->f);
    if (s->op == OT_TK_COPY && s->explicit_pipe) fprintf(p->f, ".%s", ot_pipe_name(s->pipe));
    if (s->op == OT_TK_COPY) fputc(' ', p->f);
    fputs(name_of(p, s->out[0]), p->f);
    if (s->op == OT_TK_STORE) print_ranges(p, s->ranges, s->n_ranges);
    fprintf(p->f, " <- %s", name_of(p, s->in[0]));
    if (s->op == OT_TK_LOAD) print_ranges(p, s->ranges, s->n_ranges);
    if (s->stream) fprintf(p->f, " stream=%s", s->stream);
}

static void print_opener(const printer *p, const ot_tk_stmt *s)
{
    const char *condition = s->has_condition ? name_of(p, s->in[s->n_in - 1]) : "?";
    print_names(p, s->out, s->n_out);
    if (s->n_out > 0) fputs(" = ", p->f);
    if (s->op == OT_TK_FOR) {
        fprintf(p->f, "%sfor %s in %" PRId64 "..", s->parallel ? "parallel " : "", s->var, s->lo);
        if (s->hi < 0)
            fputc('?', p->f);
        else if (s->hi_size)
            fputs(s->hi_size, p->f);
        else
            fprintf(p->f, "%" PRId64, s->hi);
        if (s->step != 1) fprintf(p->f, " step %" PRId64, s->step);
    } else {
        fprintf(p->f, "%s (%s)", s->op == OT_TK_WHILE ? "while" : "if", condition);
    }
    for (uint32_t k = 0; s->op != OT_TK_IF && k < s->n_out; k++)
        fprintf(p->f, "%s%s = %s", k ? ", " : " carry (", name_of(p, s->carried[k]),
                name_of(p, s->in[k]));
    fputs(s->op != OT_TK_IF && s->n_out > 0 ? ") {" : " {", p->f);
}

static void print_stmt(const printer *p, const ot_tk_stmt *s)
{
    switch (s->op) {
    case OT_TK_ALLOC: print_alloc(p, &p->k->values[s->out[0]]); return;
    case OT_TK_FREE:
        fprintf(p->f, "free %s", name_of(p, s->in[0]));
        if (s->warp) fprintf(p->f, " warp=%" PRIu32, s->warp - 1);
        return;
    case OT_TK_CHECK:
        fprintf(p->f,
                strcmp(s->name, "is_aligned") == 0 ? "check is_aligned(%s, %" PRId64 ")"
                                                   : "check address_of(%s) == %" PRId64,
                name_of(p, s->in[0]), s->keep);
        return;
    case OT_TK_VIEW: print_view(p, &p->k->values[s->out[0]]); return;
    case OT_TK_LOAD:
    case OT_TK_STORE:
    case OT_TK_COPY: print_move(p, s); return;
    case OT_TK_COMPUTE:
        print_names(p, s->out, s->n_out);
        fprintf(p->f, " = %s.%s(", ot_pipe_name(s->pipe), s->name);
        print_names(p, s->in, s->n_in);
        print_attrs(p, s);
        fputc(')', p->f);
        return;
    case OT_TK_FOR:
    case OT_TK_WHILE:
    case OT_TK_IF: print_opener(p, s); return;
    case OT_TK_ELSE: fputs("} else {", p->f); return;
    case OT_TK_YIELD:
        fputs("yield (", p->f);
        print_names(p, s->in, s->n_in);
        fputc(')', p->f);
        return;
    case OT_TK_END: fputc('}', p->f); return;
    case OT_TK_WAIT:
    case OT_TK_ARRIVE:
    case OT_TK_FENCE: print_sync(p, s); return;
    }
}

ot_status ot_kernel_print(const ot_kernel *k, FILE *f)
{
    printer p = {k, f, 1};
    fprintf(f, "kernel %s", k->name);
    if (k->target) fprintf(f, " target \"%s\"", k->target);
    if (k->explicit_sync) fputs(" sync=explicit", f);
    fputs(" {\n", f);
    for (uint32_t i = 0; i < k->n_sizes; i++)
        if (!k->sizes[i].is_auto && !k->sizes[i].is_fixed)
            fprintf(f, "  size %s <= %" PRId64 "\n", k->sizes[i].name, k->sizes[i].bound);
    for (uint32_t i = 0; i < k->n_pools; i++)
        fprintf(f, "  pool %s max=%" PRId64 " block=%" PRId64 " @%s\n", k->pools[i].name,
                k->pools[i].max, k->pools[i].block, ot_scope_name(k->pools[i].scope));
    for (uint32_t v = 0; v < k->n_values; v++) {
        if (k->values[v].kind != OT_TK_PARAM) continue;
        fprintf(f, "  %s %s: ", k->values[v].empty ? "empty" : "param", k->values[v].name);
        print_type(&p, &k->values[v]);
        fprintf(f, " @%s\n", ot_scope_name(k->values[v].scope));
    }
    for (uint32_t s = 0; s < k->n_stmts; s++) {
        ot_tk_op op = k->stmts[s].op;
        if (op == OT_TK_END || op == OT_TK_ELSE) p.depth--;
        for (uint32_t d = 0; d < p.depth; d++) fputs("  ", f);
        print_stmt(&p, &k->stmts[s]);
        fputc('\n', f);
        if (op == OT_TK_FOR || op == OT_TK_WHILE || op == OT_TK_IF || op == OT_TK_ELSE) p.depth++;
    }
    print_places(&p);
    fputs("}\n", f);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
