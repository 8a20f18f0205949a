/* Planning a text: its sizes get values, its `@auto` buffers memories, then it is planned.
 *
 *   size t = auto multiple=16 <= 256     the largest multiple of 16 with which all fits; several:
 *                                        one after the other, the later ones at
 *                                        their least meanwhile. What fits is found by halving: a
 *                                        larger extent never takes less memory
 *   size t = auto <= 256                 the same, of what the target asks: rows of its buffers
 *                                        fill the unit that their memory addresses, and
 *                                        where transfers go by granules those, too
 *   size t = 256                         does not fit: the message says the largest multiple that
 *                                        does
 *   size n <= 4096                       planned at the bound; a given value changes shapes and
 *                                        loops, not places
 */
#include "planmem.h"

typedef struct solver {
    ot_mem_text *m;
    ot_arena *a;
    ot_tk_binding *values; /* [n] of the sizes that are solved */
    uint32_t n;
    /* sizes are those with which all memories do, whichever of them is planned then */
    ot_mem_part part;
} solver;

/* Read with these values, choose memories, plan. */
static ot_status plan_once(const solver *s, const ot_tk_binding *values, uint32_t n, ot_diag *d,
                           ot_kernel **k, ot_mem_plan **p)
{
    ot_mem_text *m = s->m;
    ot_mem_options o = *m->options;
    o.part = s->part;
    o.lifetimes.by_path = true; /* the text has the paths of the kernel, and no others */
    *k = NULL;
    *p = NULL;
    OT_TRY(ot_kernel_parse_sized(m->path, m->text, m->n, values, n, d, k));
    ot_status st = ot_mem_choose_scopes(*k, m->path, m->target, d, s->a, NULL, NULL);
    if (st == OT_OK) st = ot_mem_plan_kernel(*k, m->path, m->target, &o, d, p);
    if (st == OT_OK) return OT_OK;
    ot_kernel_free(*k);
    *k = NULL;
    return st;
}

/* Does it fit with value number i at v? OT_E_BUDGET is an answer, other failures are not. */
static ot_status try_value(solver *s, uint32_t i, int64_t v, bool *fits)
{
    ot_diag local = {0};
    ot_kernel *k;
    ot_mem_plan *p;
    s->values[i].value = v;
    ot_status st = plan_once(s, s->values, s->n, &local, &k, &p);
    *fits = st == OT_OK;
    ot_mem_plan_free(p);
    ot_kernel_free(k);
    return st == OT_E_NOMEM ? st : OT_OK;
}

/* The largest multiple from 1 to `most` times `unit` that fits, 0: none does. */
static ot_status largest(solver *s, uint32_t i, int64_t unit, int64_t most, int64_t *out)
{
    int64_t low = 0, high = most; /* low fits (or is 0), beyond high nothing does */
    bool fits;
    while (low < high) {
        int64_t mid = high == most ? high : low + (high - low + 1) / 2;
        OT_TRY(try_value(s, i, mid * unit, &fits));
        if (fits)
            low = mid;
        else
            high = mid - 1;
        if (fits && mid == most) break;
    }
    *out = low * unit;
    return OT_OK;
}

static ot_status note(solver *s, const char *text, size_t *cap)
{
    return text && OT_PUSH(s->a, s->m->notes, s->m->n_notes, *cap, text) ? OT_OK : OT_E_NOMEM;
}

/* ---- what the target asks ---- */

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* *unit: also a multiple of so many bytes in elements of `width`. */
static void ask(int64_t *unit, int64_t bytes, int64_t width)
{
    int64_t elements = width > 0 && bytes > width ? bytes / width : 1, lcm;
    if (ot_mul_i64(*unit / gcd(*unit, elements), elements, &lcm)) *unit = lcm;
}

static bool is_moved(const ot_kernel *k, uint32_t v)
{
    for (uint32_t i = 0; i < k->n_stmts; i++) {
        const ot_tk_stmt *s = &k->stmts[i];
        if ((s->op == OT_TK_LOAD && s->out[0] == v) || (s->op == OT_TK_STORE && s->in[0] == v))
            return true;
    }
    return false;
}

/* Of the buffers whose rows grow from kernel `small` to `large`. */
static int64_t ask_for_rows(const ot_tk_machine *t, const ot_kernel *small, const ot_kernel *large,
                            int64_t unit)
{
    for (uint32_t v = 0; v < small->n_values && v < large->n_values; v++) {
        const ot_tk_value *a = &small->values[v], *b = &large->values[v];
        if (a->kind != OT_TK_BUFFER || b->rank != a->rank ||
            a->dims[a->rank - 1] == b->dims[a->rank - 1])
            continue;
        int64_t width = ot_tk_dtype_bits(a->dtype) / 8;
        ask(&unit, t->scopes[a->scope].alignment, width);
        if (t->access.lanes == 0 && !t->is_cache && is_moved(small, v))
            ask(&unit, t->granule, width);
    }
    return unit;
}

/* The kernel with value number i at v, and memories for all; NULL: it is none then. */
static ot_status read_with(solver *s, uint32_t i, int64_t v, ot_kernel **k)
{
    ot_diag local = {0};
    const ot_mem_text *m = s->m;
    s->values[i].value = v;
    ot_status st = ot_kernel_parse_sized(m->path, m->text, m->n, s->values, s->n, &local, k);
    if (st == OT_OK) st = ot_mem_choose_scopes(*k, m->path, m->target, &local, s->a, NULL, NULL);
    if (st != OT_OK) {
        ot_kernel_free(*k);
        *k = NULL;
    }
    return st == OT_E_NOMEM ? st : OT_OK;
}

/* What value number i, of size x, has to be a multiple of. */
static ot_status find_multiple(solver *s, uint32_t i, const ot_tk_size *x, int64_t *unit)
{
    ot_kernel *small = NULL, *large = NULL;
    *unit = x->multiple;
    if (!x->asks || x->bound < 2 * x->multiple) return OT_OK;
    ot_status st = read_with(s, i, x->multiple, &small);
    if (st == OT_OK && small) st = read_with(s, i, 2 * x->multiple, &large);
    int64_t asked = large ? ask_for_rows(s->m->target, small, large, x->multiple) : x->multiple;
    if (asked <= x->bound) *unit = asked;
    s->values[i].value = *unit;
    ot_kernel_free(small);
    ot_kernel_free(large);
    return st;
}

/* ---- sizes ---- */

/* Values of all sizes that the planner chooses. */
static ot_status solve(solver *s, const ot_kernel *k, size_t *cap, ot_diag *d)
{
    for (uint32_t i = 0; i < k->n_sizes; i++) {
        const ot_tk_size *x = &k->sizes[i];
        if (!x->is_auto || ot_tk_binding_of(s->m->given, s->m->n_given, x->name)) continue;
        s->values[s->n++] = (ot_tk_binding){ot_strdup(s->a, x->name), x->multiple};
        if (!s->values[s->n - 1].name) return ot_fail_nomem(d);
    }
    for (uint32_t i = 0, at = 0; i < k->n_sizes; i++) {
        const ot_tk_size *x = &k->sizes[i];
        int64_t v, unit;
        if (at == s->n || strcmp(s->values[at].name, x->name) != 0) continue;
        if (find_multiple(s, at, x, &unit) != OT_OK ||
            largest(s, at, unit, x->bound / unit, &v) != OT_OK)
            return ot_fail_nomem(d);
        s->values[at].value = v > 0 ? v : unit; /* then planning says what is too large */
        const char *text = ot_format(
            s->a, "line %u: size %s is %lld: the largest multiple of %lld up to %lld that fits",
            x->line, x->name, (long long)s->values[at].value, (long long)unit, (long long)x->bound);
        if (v > 0 && note(s, text, cap) != OT_OK) return ot_fail_nomem(d);
        at++;
    }
    return OT_OK;
}

/* The plan does not fit: what would, of the sizes that the text fixes. */
static ot_status explain(solver *s, const ot_kernel *k, const ot_diag *overflow, ot_diag *d)
{
    for (uint32_t i = 0; i < k->n_sizes; i++) {
        const ot_tk_size *x = &k->sizes[i];
        int64_t v = 0;
        if (!x->is_fixed || x->bound <= x->multiple) continue;
        s->values[s->n++] = (ot_tk_binding){x->name, x->bound};
        ot_status st = largest(s, s->n - 1, x->multiple, (x->bound - 1) / x->multiple, &v);
        s->n--;
        if (st != OT_OK) return ot_fail_nomem(d);
        if (v == 0) continue;
        return ot_fail(
            d, OT_E_BUDGET,
            "%.700s; with %s = %lld, the largest multiple of %lld that does, it fits [size-fits]",
            overflow->message, x->name, (long long)v, (long long)x->multiple);
    }
    return ot_fail(d, OT_E_BUDGET, "%s", overflow->message);
}

/* Places do not depend on the sizes that are known later: the kernel with their values has those
 * of the kernel at the bounds. */
static ot_status bind(solver *s, ot_kernel **k, ot_diag *d)
{
    ot_tk_binding *all = OT_NEW_N(s->a, ot_tk_binding, s->n + s->m->n_given + 1u);
    ot_kernel *bound = NULL;
    if (!all) return ot_fail_nomem(d);
    memcpy(all, s->values, s->n * sizeof *all);
    if (s->m->n_given > 0) memcpy(all + s->n, s->m->given, s->m->n_given * sizeof *all);
    OT_TRY(ot_kernel_parse_sized(s->m->path, s->m->text, s->m->n, all, s->n + s->m->n_given, d,
                                 &bound));
    ot_status st = ot_mem_choose_scopes(bound, s->m->path, s->m->target, d, s->a, NULL, NULL);
    if (st != OT_OK) {
        ot_kernel_free(bound);
        return st;
    }
    /* chosen at the bound */
    for (uint32_t v = 0; v < bound->n_values; v++) bound->values[v].scope = (*k)->values[v].scope;
    for (uint32_t i = 0; i < bound->n_stmts; i++) bound->stmts[i].pipe = (*k)->stmts[i].pipe;
    ot_kernel_free(*k);
    *k = bound;
    return OT_OK;
}

/* The given values of sizes that are not bounded: those change what is planned. */
static void take_given(solver *s, const ot_kernel *k)
{
    for (uint32_t j = 0; j < s->m->n_given; j++)
        for (uint32_t i = 0; i < k->n_sizes; i++) {
            if (strcmp(k->sizes[i].name, s->m->given[j].name) != 0 ||
                (!k->sizes[i].is_auto && !k->sizes[i].is_fixed))
                continue;
            s->values[s->n++] = s->m->given[j];
        }
}

ot_status ot_mem_plan_text(ot_mem_text *m, ot_arena *a, ot_diag *d, ot_kernel **k, ot_mem_plan **p)
{
    solver s = {.m = m, .a = a, .part = OT_MEM_BOTH};
    ot_kernel *first = NULL;
    ot_diag local = {0};
    size_t cap = 0;
    const char **reasons = NULL;
    uint32_t n_reasons = 0;
    *k = NULL;
    *p = NULL;
    m->notes = NULL;
    m->n_notes = 0;
    OT_TRY(ot_kernel_parse_sized(m->path, m->text, m->n, m->given, m->n_given, d, &first));
    s.values = OT_NEW_N(a, ot_tk_binding, first->n_sizes + m->n_given + 2u);
    ot_status st = s.values ? solve(&s, first, &cap, d) : ot_fail_nomem(d);
    if (st == OT_OK) take_given(&s, first);
    if (st == OT_OK) {
        s.part = m->options->part;
        st = plan_once(&s, s.values, s.n, &local, k, p);
        s.part = OT_MEM_BOTH;
        if (st == OT_E_BUDGET)
            st = explain(&s, first, &local, d);
        else if (st != OT_OK)
            st = ot_fail(d, st, "%s", local.message);
    }
    if (st == OT_OK)
        st = ot_mem_choose_scopes(first, m->path, m->target, d, a, &reasons, &n_reasons);
    for (uint32_t i = 0; i < n_reasons && st == OT_OK; i++) st = note(&s, reasons[i], &cap);
    if (st == OT_OK && m->n_given > 0) st = bind(&s, k, d);
    ot_kernel_free(first);
    if (st == OT_OK) return OT_OK;
    ot_mem_plan_free(*p);
    ot_kernel_free(*k);
    *k = NULL;
    *p = NULL;
    return st;
}
