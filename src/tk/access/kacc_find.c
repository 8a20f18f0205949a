/* Findings: what takes more than it has to, what that costs, what would help. */
#include "kacc_internal.h"

/* elements, and statements, that are looked at for all pads */
#define PAD_STEPS_MAX (INT64_C(1) << 27)
#define PAD_BYTES_MAX (INT64_C(1) << 40) /* of a buffer */

typedef struct finder {
    const ot_kernel *k;
    const ot_tk_machine *t;
    ot_arena *a;
    ot_kaccess_finding *list; /* [n] */
    size_t n, cap;
    uint32_t n_walks;
    int64_t steps;   /* that the search for pads may take */
    int64_t *taken;  /* [n_values] wavefronts of each shared buffer */
    int64_t *excess; /* of them too many */
} finder;

const char *ot_kaccess_kind_name(ot_kaccess_kind k)
{
    static const char *const names[] = {"bank-conflict", "uncoalesced", "granule"};
    return names[k];
}

const char *ot_kaccess_unit_name(ot_kaccess_kind k)
{
    static const char *const names[] = {"wavefronts", "sectors", "granules"};
    return names[k];
}

/* Which way a walk of this memory is to be looked at; false: in none. Lanes: the target has
 * them; DMA: of windows, between memories. */
static bool kind_of(const finder *f, const kacc_walk *w, ot_kaccess_kind *kind)
{
    bool shared = f->k->values[w->root].scope == OT_SCOPE_SHARED, lanes = f->t->access.lanes > 0;
    const ot_tk_stmt *s = &f->k->stmts[w->stmt];
    *kind = shared ? OT_KACCESS_BANKS : lanes ? OT_KACCESS_SECTORS : OT_KACCESS_GRANULES;
    if (lanes) return true;
    return !shared && f->t->granule > 1 && s->op != OT_TK_COMPUTE;
}

/* ---- advice ---- */

/* The walked axis along which elements lie one behind the other; rank: none. */
static uint32_t dense_axis(const kacc_walk *w)
{
    uint32_t d = w->rank;
    while (d > 0 && (w->stride[d - 1] != w->width || w->extent[d - 1] == 1)) d--;
    return d > 0 ? d - 1 : w->rank;
}

/* The last walked axis that has more than one element. */
static uint32_t last_axis(const kacc_walk *w)
{
    uint32_t d = w->rank;
    while (d > 0 && w->extent[d - 1] == 1) d--;
    return d > 0 ? d - 1 : 0;
}

/* For global memory: another layout, longer rows, other extents. NULL when memory ran out. */
static const char *advice_of(const finder *f, const kacc_walk *w, int64_t unit)
{
    uint32_t last = last_axis(w), dense = dense_axis(w);
    int64_t step = w->stride[last], elements = unit / w->width, run = w->extent[last] * w->width;
    const char *name = f->k->values[w->root].name;
    if (w->rank == 0 || elements < 1)
        return ot_format(f->a, "elements are larger than what is moved at once");
    if (step != w->width && step != 0)
        return ot_format(f->a,
                         "layout: neighbours lie %lld bytes apart; with %s turned so that this "
                         "axis is its last one they lie side by side",
                         (long long)step, name);
    if (dense < w->rank && run % unit != 0)
        return ot_format(f->a,
                         "extents: runs of %lld elements; multiples of %lld fill what is moved",
                         (long long)w->extent[last], (long long)elements);
    if (last > 0 && w->stride[last - 1] % unit != 0)
        return ot_format(
            f->a, "padding: rows of %s are %lld bytes apart; %lld would begin where a unit does",
            name, (long long)w->stride[last - 1],
            (long long)(ot_ceil_div(w->stride[last - 1], unit) * unit));
    return ot_format(f->a, "extents: windows begin inside of a unit of %lld elements",
                     (long long)elements);
}

/* ---- findings ---- */

static double seconds_of(const finder *f, const ot_kaccess_finding *x)
{
    double rate = x->kind == OT_KACCESS_BANKS ? f->t->access.bw_shared : f->t->bw_slow;
    return rate > 0 ? (double)(x->taken - x->least) * (double)x->unit / rate : 0;
}

static bool look(void *self, const kacc_walk *w)
{
    finder *f = self;
    ot_kaccess_kind kind;
    kacc_sum sum;
    if (!kind_of(f, w, &kind)) return true;
    f->n_walks++;
    if (!kacc_count(w, kind, f->t, &sum)) return false;
    if (kind == OT_KACCESS_BANKS) {
        f->taken[w->root] += sum.taken;
        f->excess[w->root] += sum.taken - sum.least;
    }
    if (sum.taken <= sum.least) return true;
    const ot_tk_stmt *s = &f->k->stmts[w->stmt];
    ot_kaccess_finding x = {.kind = kind,
                            .stmt = w->stmt,
                            .value = w->value,
                            .line = s->line,
                            .col = s->col,
                            .name = f->k->values[w->value].name,
                            .write = w->write,
                            .least = sum.least,
                            .taken = sum.taken,
                            .off = sum.off,
                            .is_part = sum.is_part};
    x.unit = kind == OT_KACCESS_BANKS     ? f->t->access.bank_bytes * f->t->access.banks
             : kind == OT_KACCESS_SECTORS ? f->t->access.sector
                                          : f->t->granule;
    x.seconds = seconds_of(f, &x);
    if (kind != OT_KACCESS_BANKS && !(x.advice = advice_of(f, w, x.unit))) return false;
    return OT_PUSH(f->a, f->list, f->n, f->cap, x);
}

/* ---- padding ---- */

static bool takes_descriptor(const ot_kernel *k, const ot_tk_stmt *s)
{
    for (uint32_t j = 0; j < s->n_in + s->n_out; j++)
        if (k->values[ot_tk_root(k, j < s->n_in ? s->in[j] : s->out[j - s->n_in], NULL)].scope ==
            OT_SCOPE_DESCRIPTOR)
            return true;
    return false;
}

/* May this buffer's rows be longer? Nothing may want its very shape: other names of all of it,
 * loops that carry it, given places. */
static bool may_pad(const ot_kernel *k, uint32_t v)
{
    const ot_tk_value *x = &k->values[v];
    if (x->kind != OT_TK_BUFFER || x->scope != OT_SCOPE_SHARED || x->rank < 2 ||
        x->bytes > PAD_BYTES_MAX || x->n_offsets > 0 || x->sizes[x->rank - 1])
        return false;
    for (uint32_t o = 0; o < k->n_values; o++)
        if (k->values[o].kind == OT_TK_ALIAS && ot_tk_root(k, o, NULL) == v) return false;
    for (uint32_t i = 0; i < k->n_stmts; i++) {
        const ot_tk_stmt *s = &k->stmts[i];
        bool carries = s->op == OT_TK_FOR || s->op == OT_TK_WHILE || s->op == OT_TK_IF ||
                       s->op == OT_TK_YIELD;
        for (uint32_t j = 0; carries && j < s->n_in; j++)
            if (ot_tk_root(k, s->in[j], NULL) == v) return false;
        if (s->op == OT_TK_COMPUTE && takes_descriptor(k, s)) /* it says where whole tiles lie */
            for (uint32_t j = 0; j < s->n_in + s->n_out; j++)
                if (ot_tk_root(k, j < s->n_in ? s->in[j] : s->out[j - s->n_in], NULL) == v)
                    return false;
    }
    return true;
}

typedef struct pad_sum {
    const ot_tk_machine *t;
    uint32_t value;
    int64_t taken;
    int64_t *steps; /* left */
} pad_sum;

static int64_t elements_of(const kacc_walk *w)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < w->rank; d++)
        if (!ot_mul_i64(n, w->extent[d], &n)) return KACC_TIMES;
    return ot_min(n, KACC_TIMES);
}

static bool add_wavefronts(void *self, const kacc_walk *w)
{
    pad_sum *p = self;
    kacc_sum sum;
    *p->steps -= w->root == p->value ? elements_of(w) : 1;
    if (w->root != p->value || *p->steps < 0) return true;
    if (!kacc_count(w, OT_KACCESS_BANKS, p->t, &sum)) return false;
    p->taken += sum.taken;
    return true;
}

/* The shortest padding with the fewest wavefronts; 0: none is better. */
static bool best_pad(finder *f, uint32_t v, int64_t *pads, ot_kaccess_pad *out)
{
    uint32_t bits = ot_tk_dtype_bits(f->k->values[v].dtype);
    int64_t most = f->t->access.banks * f->t->access.bank_bytes * 8 / (bits > 8 ? bits : 8);
    *out = (ot_kaccess_pad){.value = v, .before = f->taken[v], .after = f->taken[v]};
    for (int64_t p = 1; p < most; p++) {
        pad_sum sum = {.t = f->t, .value = v, .steps = &f->steps};
        pads[v] = p;
        if (!kacc_walks(f->k, pads, add_wavefronts, &sum, NULL)) return false;
        if (f->steps < 0) break; /* this one was not counted to its end */
        if (sum.taken < out->after) {
            out->after = sum.taken;
            out->elements = p;
        }
        if (out->after <= f->taken[v] - f->excess[v]) break;
    }
    pads[v] = 0;
    return true;
}

/* Pads of all buffers with conflicts, and the advice of their findings. */
static bool find_pads(finder *f, ot_kaccess_report *out)
{
    int64_t *pads = OT_NEW_N(f->a, int64_t, (size_t)f->k->n_values + 1);
    ot_kaccess_pad *list = NULL;
    size_t n = 0, cap = 0;
    if (!pads) return false;
    for (uint32_t v = 0; v < f->k->n_values; v++) {
        const char *advice;
        ot_kaccess_pad p = {.value = v};
        if (f->excess[v] <= 0) continue;
        if (may_pad(f->k, v) && !best_pad(f, v, pads, &p)) return false;
        const ot_tk_value *x = &f->k->values[v];
        int64_t row = x->dims[x->rank - 1];
        if (p.elements > 0) {
            advice = ot_format(f->a,
                               "padding: rows of %s with %lld elements for %lld: %lld wavefronts "
                               "of all its accesses for %lld",
                               x->name, (long long)(row + p.elements), (long long)row,
                               (long long)p.after, (long long)p.before);
            if (!OT_PUSH(f->a, list, n, cap, p)) return false;
        } else {
            advice = ot_format(
                f->a, "layout: no padding of %s helps; let neighbours take its last axis", x->name);
        }
        for (size_t j = 0; j < f->n; j++)
            if (f->list[j].kind == OT_KACCESS_BANKS &&
                ot_tk_root(f->k, f->list[j].value, NULL) == v)
                f->list[j].advice = advice;
        if (!advice) return false;
    }
    out->pads = list;
    out->n_pads = (uint32_t)n;
    return true;
}

ot_status ot_kaccess_analyse(const ot_kernel *k, const ot_tk_machine *t, ot_arena *a, ot_diag *d,
                             ot_kaccess_report *out)
{
    finder f = {.k = k, .t = t, .a = a, .steps = PAD_STEPS_MAX};
    *out = (ot_kaccess_report){0};
    f.taken = OT_NEW_N(a, int64_t, (size_t)k->n_values + 1);
    f.excess = OT_NEW_N(a, int64_t, (size_t)k->n_values + 1);
    if (!f.taken || !f.excess || !kacc_walks(k, NULL, look, &f, &out->n_skipped) ||
        !find_pads(&f, out))
        return ot_fail_nomem(d);
    out->findings = f.list;
    out->n_findings = (uint32_t)f.n;
    out->n_walks = f.n_walks;
    return OT_OK;
}
