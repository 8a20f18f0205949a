/* The text with addresses.
 *
 *   func.func @k(...) {
 *   + %c0_i64 = arith.constant 0 : i64                 each address once, ascending
 *   - %a = memref.alloc() : memref<16xf16, ...>
 *   + %a = hivm.hir.pointer_cast(%c0_i64, %c64_i64)    as many as the plan has slots
 *            : memref<16xf16, ...>
 *   + annotation.mark %a {hivm.multi_buffer = 2 : i32} where the planner has doubled it
 *            : memref<16xf16, ...>
 */
#include "mlir_internal.h"

/* ---- what addresses can say ---- */

ot_status ot_mlir_check_plan(const ot_mlir *m, const ot_mem_plan *p, ot_diag *d)
{
    const ot_kernel *k = m->k;
    const uint32_t *of = p->lifetimes->buffer_of;
    if (p->lifetimes->unwritten != OT_NONE) {
        const ot_tk_stmt *s = &k->stmts[p->lifetimes->unwritten_stmt];
        return ot_fail(d, OT_E_INPUT, "%s:%u:%u: '%s' is read before anything is written to it",
                       m->path, s->line, s->col, k->values[p->lifetimes->unwritten].name);
    }
    for (uint32_t i = 0; i < k->n_stmts; i++) {
        const ot_tk_stmt *s = &k->stmts[i];
        const ot_tk_stmt *opener = s->op == OT_TK_YIELD ? &k->stmts[s->mate] : s;
        bool loop = opener->op == OT_TK_FOR || opener->op == OT_TK_WHILE;
        if (s->op != OT_TK_YIELD && !loop) continue;
        for (uint32_t j = 0; j < opener->n_out; j++) {
            uint32_t to = loop ? opener->carried[j] : opener->out[j];
            if (of[s->in[j]] == of[to] && (!loop || of[to] == of[opener->out[j]])) continue;
            return ot_fail(
                d, OT_E_INPUT,
                "%s:%u:%u: '%s' and '%s' cannot share a place, and addresses alone make no copy",
                m->path, s->line, s->col, k->values[s->in[j]].name, k->values[to].name);
        }
    }
    return OT_OK;
}

static ot_status plan_once(const char *path, const char *text, size_t n, const ot_mlir_options *o,
                           const ot_tk_machine *t, const ot_mem_options *how, ot_diag *d,
                           ot_mlir **m, ot_mem_plan **p)
{
    *p = NULL;
    OT_TRY(ot_mlir_parse(path, text, n, o, d, m));
    OT_TRY(ot_mem_plan_kernel((*m)->k, path, t, how, d, p));
    return ot_mlir_check_plan(*m, *p, d);
}

ot_status ot_mlir_plan(const char *path, const char *text, size_t n, const ot_mlir_options *o,
                       const ot_tk_machine *t, const ot_mem_options *how, ot_diag *d, ot_mlir **out,
                       ot_mem_plan **plan)
{
    ot_mlir_options own = *o;
    ot_mlir *m = NULL;
    ot_status s = plan_once(path, text, n, &own, t, how, d, &m, plan);
    if (s == OT_E_INPUT && !own.apart && (!*plan || (*plan)->lifetimes->unwritten == OT_NONE)) {
        ot_diag other = {0};
        ot_mlir *again = NULL;
        ot_mem_plan *q = NULL;
        own.apart = true;
        ot_status second = plan_once(path, text, n, &own, t, how, &other, &again, &q);
        if (second == OT_OK || second == OT_E_NOMEM) {
            *d = other;
            s = second;
            ot_mem_plan_free(*plan);
            ot_mlir_free(m);
            m = again;
            *plan = q;
        } else {
            ot_mem_plan_free(q);
            ot_mlir_free(again);
        }
    }
    if (s != OT_OK) {
        ot_mem_plan_free(*plan);
        ot_mlir_free(m);
        m = NULL;
        *plan = NULL;
    }
    *out = m;
    return s;
}

/* ---- constants ---- */

typedef struct constant {
    int64_t value;
    const char *name; /* without the percent sign */
} constant;

typedef struct writer {
    const ot_mlir *m;
    const ot_mem_plan *p;
    ot_arena *a;
    constant *list; /* [n] ascending */
    size_t n, cap;
    FILE *f;
} writer;

static uint32_t buffer_of(const writer *w, const ml_cast *c)
{
    return w->p->lifetimes->buffer_of[c->value];
}

static int compare_constants(const void *pa, const void *pb)
{
    const constant *a = pa, *b = pb;
    return a->value < b->value ? -1 : a->value > b->value;
}

/* A name that the text does not have. */
static const char *constant_name(const writer *w, int64_t value)
{
    const char *name = ot_format(w->a, "c%lld_i64", (long long)value);
    for (uint32_t k = 0; name && ot_map_get(w->m->names, name) != OT_NONE; k++)
        name = ot_format(w->a, "c%lld_i64_%u", (long long)value, k);
    return name;
}

static bool collect(writer *w)
{
    for (size_t k = 0; k < w->m->n_casts; k++) {
        const ml_cast *c = &w->m->casts[k];
        if (c->is_empty && !OT_PUSH(w->a, w->list, w->n, w->cap, (constant){.value = 0}))
            return false;
        if (c->is_empty || c->is_placed) continue;
        const uint32_t b = buffer_of(w, c);
        for (uint32_t slot = 0; slot < w->p->multi[b]; slot++) {
            constant x = {.value = w->p->offsets[b][slot]};
            if (!OT_PUSH(w->a, w->list, w->n, w->cap, x)) return false;
        }
    }
    if (w->n > 1) qsort(w->list, w->n, sizeof *w->list, compare_constants);
    size_t kept = 0;
    for (size_t k = 0; k < w->n; k++)
        if (kept == 0 || w->list[kept - 1].value != w->list[k].value) w->list[kept++] = w->list[k];
    w->n = kept;
    for (size_t k = 0; k < w->n; k++)
        if (!(w->list[k].name = constant_name(w, w->list[k].value))) return false;
    return true;
}

static const char *name_of(const writer *w, int64_t value)
{
    const constant key = {.value = value};
    const constant *found = bsearch(&key, w->list, w->n, sizeof key, compare_constants);
    return found ? found->name : "";
}

/* ---- text ---- */

/* The blanks in front of the text's line at `at`. */
static int indent_at(const ot_mlir *m, size_t at, const char **blanks)
{
    size_t line = at, end;
    while (line > 0 && m->text[line - 1] != '\n') line--;
    for (end = line; end < at && (m->text[end] == ' ' || m->text[end] == '\t'); end++) {}
    *blanks = m->text + line;
    return (int)(end - line);
}

/* As the first line of the body begins. */
static void write_constants(const writer *w)
{
    const char *blanks;
    size_t first = w->m->body;
    while (first < w->m->n && strchr(" \t\r\n", w->m->text[first])) first++;
    int n = indent_at(w->m, first, &blanks);
    for (size_t k = 0; k < w->n; k++)
        fprintf(w->f, "\n%.*s%%%s = arith.constant %lld : i64", n, blanks, w->list[k].name,
                (long long)w->list[k].value);
}

static void write_cast(const writer *w, const ml_cast *c)
{
    const char *type = w->m->text + c->type_at, *blanks;
    int type_len = (int)(c->type_end - c->type_at), n = indent_at(w->m, c->at, &blanks);
    if (c->is_empty) {
        fprintf(w->f, "hivm.hir.pointer_cast(%%%s) : %.*s", name_of(w, 0), type_len, type);
        return;
    }
    uint32_t b = buffer_of(w, c), slots = w->p->multi[b];
    fputs("hivm.hir.pointer_cast(", w->f);
    for (uint32_t k = 0; k < slots; k++)
        fprintf(w->f, "%s%%%s", k ? ", " : "", name_of(w, w->p->offsets[b][k]));
    fprintf(w->f, ") : %.*s", type_len, type);
    if (slots > 1 && !c->marked && c->name)
        fprintf(w->f, "\n%.*sannotation.mark %%%s {hivm.multi_buffer = %u : i32} : %.*s", n, blanks,
                c->name, slots, type_len, type);
}

ot_status ot_mlir_write(const ot_mlir *m, const ot_mem_plan *p, size_t *from, FILE *f)
{
    writer w = {.m = m, .p = p, .a = ot_arena_new(), .f = f};
    if (!w.a || !collect(&w)) {
        ot_arena_free(w.a);
        return OT_E_NOMEM;
    }
    size_t at = m->body;
    fwrite(m->text + *from, 1, at - *from, f);
    write_constants(&w);
    for (size_t k = 0; k < m->n_casts; k++) {
        const ml_cast *c = &m->casts[k];
        if (c->is_placed) continue;
        fwrite(m->text + at, 1, c->at - at, f);
        write_cast(&w, c);
        at = c->end;
    }
    fwrite(m->text + at, 1, m->end - at, f);
    *from = m->end;
    ot_arena_free(w.a);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

void ot_mlir_loc(const char *path, ot_diag *d)
{
    size_t n = strlen(path);
    unsigned line, col;
    int used = 0;
    char text[OT_DIAG_MAX];
    if (strncmp(d->message, path, n) != 0 ||
        sscanf(d->message + n, ":%u:%u: %n", &line, &col, &used) != 2 || used == 0)
        return;
    snprintf(text, sizeof text, "loc(\"%s\":%u:%u): error: %s", path, line, col,
             d->message + n + used);
    snprintf(d->message, sizeof d->message, "%s", text);
}
