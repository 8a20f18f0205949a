/* Text of the program: lines with their indent, names, messages. */
#include "kgen_internal.h"

#include <stdarg.h>

ot_status(kgen_fail)(const kgen *g, const char *rule, const char *fmt, ...)
{
    const ot_tk_site at = {g->path, &g->k->stmts[g->pc < g->k->n_stmts ? g->pc : 0], g->d};
    va_list args;
    va_start(args, fmt);
    ot_status s = ot_tk_vfail_at(&at, rule, fmt, args);
    va_end(args);
    return s;
}

const char *kgen_text(kgen *g, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *text = n < 0 ? NULL : ot_alloc(g->a, (size_t)n + 1);
    if (text) vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    if (text) return text;
    g->failed = true;
    return "";
}

void kgen_line(kgen *g, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(g->f, "%*s", 4 * g->indent, "");
    vfprintf(g->f, fmt, args);
    fputc('\n', g->f);
    va_end(args);
}

void kgen_open(kgen *g, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(g->f, "%*s", 4 * g->indent, "");
    vfprintf(g->f, fmt, args);
    fputs(" {\n", g->f);
    va_end(args);
    g->indent++;
}

void kgen_block(kgen *g)
{
    kgen_line(g, "{");
    g->indent++;
}

void kgen_close(kgen *g)
{
    g->indent--;
    kgen_line(g, "}");
}

const char *kgen_name(kgen *g, const char *name, uint32_t id)
{
    char *text = ot_strdup(g->a, kgen_text(g, "%s_%u", name, id));
    if (!text) {
        g->failed = true;
        return "";
    }
    for (char *c = text; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '_';
    return text;
}

const char *kgen_term(kgen *g, const char *sum, const char *factor, int64_t coef)
{
    const char *text = coef == 1 ? factor : kgen_text(g, "%s * %lld", factor, (long long)coef);
    if (coef == 0 || strcmp(factor, "0") == 0) return sum;
    return *sum == '\0' || strcmp(sum, "0") == 0 ? text : kgen_text(g, "%s + %s", sum, text);
}

void kgen_dense(const int64_t *dims, uint32_t rank, int64_t *stride)
{
    int64_t n = 1;
    for (uint32_t d = rank; d-- > 0; n *= dims[d]) stride[d] = n;
}
