/* Where values are: a view of a view of a buffer, as spans of bytes.
 *
 *   buffer b      [....................................]     one span: its slot
 *   subview s     [..[====]......[====]......[====]....]     a span for each row
 *   alias a of s     |====        ====        ==|            the first bytes of s, in its order
 *
 * Loop variables have the values of the iterations that are under way.
 */
#include "krun_internal.h"

int64_t krun_affine(const krun *m, const ot_tk_affine *a)
{
    int64_t x = a->constant;
    for (uint32_t t = 0; t < a->n; t++) {
        for (uint32_t i = m->k->stmts[m->pc].parent; i != OT_NONE; i = m->k->stmts[i].parent) {
            const ot_tk_stmt *s = &m->k->stmts[i];
            if (s->op != OT_TK_FOR || strcmp(s->var, a->terms[t].var) != 0) continue;
            x += a->terms[t].coef * (s->lo + m->loops[i].turn * s->step);
            break;
        }
    }
    return x;
}

static bool push(krun *m, krun_spans *s, int64_t at, int64_t n)
{
    krun_span *last = s->n > 0 ? &s->at[s->n - 1] : NULL;
    if (n == 0) return true;
    s->bytes += n;
    if (last &&
        ((at < 0 && last->at < 0) || (at >= 0 && last->at >= 0 && last->at + last->n == at))) {
        last->n += n;
        return true;
    }
    krun_span x = {at, n, s->bytes - n};
    return OT_PUSH(m->a, s->at, s->n, s->cap, x);
}

static void clear(krun_spans *s)
{
    s->n = 0;
    s->bytes = 0;
}

/* Bytes [from, from + n) of the list `base`, appended to *out. */
static bool push_part(krun *m, const krun_spans *base, int64_t from, int64_t n, krun_spans *out)
{
    size_t low = 0, high = base->n; /* the last span that starts at or before `from` */
    while (low + 1 < high) {
        size_t mid = (low + high) / 2;
        if (base->at[mid].start <= from)
            low = mid;
        else
            high = mid;
    }
    for (; n > 0 && low < base->n; low++) {
        const krun_span *s = &base->at[low];
        int64_t skip = from - s->start, take = ot_min(n, s->n - skip);
        if (!push(m, out, s->at < 0 ? -1 : s->at + skip, take)) return false;
        from += take;
        n -= take;
    }
    return true;
}

/* Elements [lo, lo + n) of a row of `dim`, whose first is element `first` of the tensor. */
typedef struct row {
    int64_t first, dim, lo, n;
    int64_t width; /* bytes of an element */
    bool outside;  /* the whole row is */
} row;

static bool push_row(krun *m, const krun_spans *base, const row *r, krun_spans *out)
{
    const int64_t lo = r->lo, n = r->n, width = r->width;
    int64_t from = ot_max(0, ot_min(lo, r->dim)), to = ot_max(from, ot_min(lo + n, r->dim));
    if (r->outside) from = to = lo + n;
    int64_t before = ot_min(n, ot_max(0, from - lo));
    return push(m, out, -1, before * width) &&
           (from >= to ||
            push_part(m, base, (r->first + from) * width, (to - from) * width, out)) &&
           push(m, out, -1, (n - before - (r->outside ? 0 : to - from)) * width);
}

/* The window [lo, lo + extent) of a tensor x whose bytes are `base`. */
static bool window(krun *m, const krun_spans *base, const ot_tk_value *x, const int64_t *lo,
                   const int64_t *extent, krun_spans *out)
{
    int64_t width = ot_tk_dtype_bits(x->dtype) / 8, at[OT_TK_RANK_MAX] = {0};
    uint32_t last = x->rank - 1;
    clear(out);
    for (;;) {
        row r = {.dim = x->dims[last], .lo = lo[last], .n = extent[last], .width = width};
        for (uint32_t d = 0; d < last; d++) {
            int64_t i = lo[d] + at[d];
            r.outside = r.outside || i < 0 || i >= x->dims[d];
            r.first = (r.first + i) * x->dims[d + 1];
        }
        if (!push_row(m, base, &r, out)) return false;
        uint32_t d = last;
        while (d > 0 && ++at[d - 1] == extent[d - 1]) at[--d] = 0;
        if (d == 0) return true;
    }
}

void krun_cut(krun_spans *s, int64_t n)
{
    while (s->n > 0 && s->at[s->n - 1].start >= n) s->n--;
    if (s->n > 0) s->at[s->n - 1].n = ot_min(s->at[s->n - 1].n, n - s->at[s->n - 1].start);
    s->bytes = ot_min(s->bytes, n);
}

int64_t krun_slot(const krun *m, uint32_t buffer)
{
    const ot_buffer *b = &m->plan->lifetimes->buffers[buffer];
    int64_t turn = b->loop == OT_NONE ? 0 : ot_max(0, m->loops[b->loop].turn);
    return m->plan->offsets[buffer][turn % m->plan->multi[buffer]];
}

/* The bytes of a param or buffer. */
static ot_status locate_root(krun *m, krun_operand *o)
{
    const ot_tk_value *x = krun_value(m, o->root);
    int64_t at = 0;
    clear(&o->spans);
    if (x->kind == OT_TK_PARAM) {
        o->memory = &m->params[o->root];
    } else {
        o->memory = &m->memories[x->scope];
        at = krun_slot(m, m->plan->lifetimes->buffer_of[o->root]);
    }
    return push(m, &o->spans, at, x->bytes) ? OT_OK : ot_fail_nomem(m->d);
}

/* One view: o->spans are its base's, and become its own. */
static ot_status step(krun *m, const ot_tk_value *view, krun_operand *o)
{
    const ot_tk_value *base = krun_value(m, view->base);
    int64_t lo[OT_TK_RANK_MAX];
    if (view->kind == OT_TK_ALIAS) {
        krun_cut(&o->spans, view->bytes);
        return OT_OK;
    }
    for (uint32_t d = 0; d < view->rank; d++) {
        lo[d] = krun_affine(m, &view->ranges[d].lo);
        if (lo[d] < 0 || lo[d] + view->dims[d] > base->dims[d])
            return krun_fail(
                m, "subview-bounds",
                "the subview '%s' leaves '%s' in this iteration: [%lld:%lld] of %lld in axis %u",
                view->name, base->name, (long long)lo[d], (long long)(lo[d] + view->dims[d]),
                (long long)base->dims[d], d);
    }
    if (!window(m, &o->spans, base, lo, view->dims, &m->scratch[0])) return ot_fail_nomem(m->d);
    krun_spans own = o->spans;
    o->spans = m->scratch[0];
    m->scratch[0] = own;
    return OT_OK;
}

ot_status krun_locate(krun *m, uint32_t v, krun_operand *o)
{
    uint32_t chain[80], n = 0; /* views of views: at most 64 deep */
    o->value = v;
    o->root = ot_tk_root(m->k, v, NULL);
    OT_TRY(locate_root(m, o));
    for (uint32_t at = v; at != o->root; at = krun_value(m, at)->base) chain[n++] = at;
    while (n-- > 0) OT_TRY(step(m, krun_value(m, chain[n]), o));
    return OT_OK;
}

ot_status krun_window(krun *m, krun_operand *o, const ot_tk_range *ranges)
{
    const ot_tk_value *x = krun_value(m, o->value);
    int64_t lo[OT_TK_RANK_MAX], extent[OT_TK_RANK_MAX];
    if (!ranges) return OT_OK;
    for (uint32_t d = 0; d < x->rank; d++) {
        lo[d] = krun_affine(m, &ranges[d].lo);
        extent[d] = krun_affine(m, &ranges[d].hi) - lo[d];
    }
    if (!window(m, &o->spans, x, lo, extent, &m->scratch[1])) return ot_fail_nomem(m->d);
    krun_spans own = o->spans;
    o->spans = m->scratch[1];
    m->scratch[1] = own;
    return OT_OK;
}
