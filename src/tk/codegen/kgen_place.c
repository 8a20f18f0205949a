/* Where operands are: a view of a view of a buffer, as an address with strides.
 *
 *   buffer b      ub_bytes + 512 + t4 % 2 * 1024        its slot
 *   subview s     ... + i_4 * 64, strides of b           the part that loops move goes into the
 *                                                        address
 *   alias a of s  numbered anew: through a map, where s has gaps
 *
 * The bytes that an operand may touch in any iteration are known as well, for the order of
 * statements.
 */
#include "kgen_internal.h"

typedef struct affine {
    const char *text; /* " + i_3 * 8", or "": without the constant */
    int64_t constant, low, high, grain;
} affine;

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* The FOR around the current statement that a variable belongs to. */
static uint32_t loop_of(const kgen *g, const char *var)
{
    uint32_t i = g->k->stmts[g->pc].parent;
    while (i != OT_NONE && (g->k->stmts[i].op != OT_TK_FOR || strcmp(g->k->stmts[i].var, var) != 0))
        i = g->k->stmts[i].parent;
    return i;
}

/* The affine times `scale`: of elements or bytes. */
static affine affine_of(kgen *g, const ot_tk_affine *a, int64_t scale)
{
    affine x = {.text = "",
                .constant = a->constant * scale,
                .low = a->constant * scale,
                .high = a->constant * scale};
    for (uint32_t t = 0; t < a->n; t++) {
        uint32_t loop = loop_of(g, a->terms[t].var);
        int64_t coef = a->terms[t].coef * scale;
        if (loop == OT_NONE || coef == 0) continue;
        const ot_tk_stmt *s = &g->k->stmts[loop];
        int64_t trips = ot_max(1, (s->hi - s->lo + s->step - 1) / s->step);
        int64_t first = coef * s->lo, last = coef * (s->lo + (trips - 1) * s->step);
        x.low += ot_min(first, last);
        x.high += ot_max(first, last);
        x.grain = gcd(x.grain, coef);
        x.text = kgen_text(g, "%s + %s", x.text,
                           kgen_term(g, "", kgen_name(g, s->var, loop), coef));
    }
    return x;
}

/* ---- slots ---- */

const char *kgen_slot(kgen *g, uint32_t buffer, int64_t *constant, int64_t *low, int64_t *high)
{
    const ot_buffer *b = &g->plan->lifetimes->buffers[buffer];
    const int64_t *at = g->plan->offsets[buffer];
    uint32_t n = g->plan->multi[buffer];
    const char *turn = b->loop == OT_NONE ? NULL : g->turn[b->loop];
    *constant = *low = *high = at[0];
    if (n < 2 || !turn) return "";
    bool even = true;
    for (uint32_t k = 1; k < n; k++) {
        even = even && at[k] - at[k - 1] == at[1] - at[0];
        *low = ot_min(*low, at[k]);
        *high = ot_max(*high, at[k]);
    }
    if (even) return kgen_text(g, " + %s %% %u * %lld", turn, n, (long long)(at[1] - at[0]));
    const char *text = "0";
    for (uint32_t k = n; k-- > 1;)
        text = kgen_text(g, "(%s %% %u == %u ? %lld : %s)", turn, n, k, (long long)(at[k] - at[0]),
                         text);
    return kgen_text(g, " + %s", text);
}

static void locate_root(kgen *g, kgen_operand *o)
{
    const ot_tk_value *x = kgen_value(g, o->root);
    o->dynamic = o->origin = "";
    if (x->kind == OT_TK_PARAM) {
        o->memory = OT_SCOPE_COUNT + o->root;
        o->base = kgen_name(g, x->name, o->root);
        o->high = x->bytes;
    } else {
        o->memory = x->scope;
        o->is_local = g->is_local[x->scope];
        o->base = kgen_text(g, "%s_bytes", ot_scope_name(x->scope));
        o->dynamic = kgen_slot(g, g->plan->lifetimes->buffer_of[o->root], &o->constant, &o->low,
                               &o->high);
        for (uint32_t k = 0; k < g->plan->multi[g->plan->lifetimes->buffer_of[o->root]]; k++)
            o->grain = gcd(o->grain, g->plan->offsets[g->plan->lifetimes->buffer_of[o->root]][k]);
        o->high += x->bytes;
    }
    o->dtype = x->dtype;
    o->width = ot_tk_dtype_bits(x->dtype) / 8;
    o->rank = x->rank;
    memcpy(o->dims, x->dims, sizeof o->dims);
    kgen_dense(o->dims, o->rank, o->stride);
}

/* ---- views ---- */

static bool is_canonical(const kgen_operand *o)
{
    int64_t n = 1;
    for (uint32_t d = o->rank; d-- > 0; n *= o->dims[d])
        if (o->dims[d] > 1 && o->stride[d] != n) return false;
    return true;
}

bool kgen_is_dense(const kgen_operand *o) { return o->map_rank == 0 && is_canonical(o); }

/* The gaps of what an alias renames become its map, in elements of the alias's width. false:
 * they are not whole elements. */
static bool make_map(kgen_operand *o, uint32_t width)
{
    o->map_rank = o->rank;
    memcpy(o->map_dims, o->dims, sizeof o->map_dims);
    memcpy(o->map_stride, o->stride, sizeof o->map_stride);
    if (width == o->width) return true;
    if (width > o->width) {
        int64_t r = width / o->width;
        uint32_t last = o->rank - 1;
        if (o->map_stride[last] != 1 || o->map_dims[last] % r != 0) return false;
        o->map_dims[last] /= r;
        for (uint32_t d = 0; d < last; d++) {
            if (o->map_stride[d] % r != 0) return false;
            o->map_stride[d] /= r;
        }
        return true;
    }
    if (o->rank == OT_TK_RANK_MAX) return false;
    for (uint32_t d = 0; d < o->rank; d++) o->map_stride[d] *= o->width / width;
    o->map_dims[o->map_rank] = o->width / width;
    o->map_stride[o->map_rank++] = 1;
    return true;
}

static ot_status step_alias(kgen *g, const ot_tk_value *view, kgen_operand *o)
{
    uint32_t width = ot_tk_dtype_bits(view->dtype) / 8;
    bool fits = is_canonical(o) ? o->map_rank == 0 || width == o->width
                                : o->map_rank == 0 && make_map(o, width);
    if (!fits)
        return kgen_fail(g, "device-view",
                         "'%s' renames what has gaps in a way that no strides describe",
                         view->name);
    if (o->map_rank == 0)
        o->high = ot_min(o->high, o->high - kgen_elements(o) * o->width + view->bytes);
    o->dtype = view->dtype;
    o->width = width;
    o->rank = view->rank;
    memcpy(o->dims, view->dims, sizeof o->dims);
    kgen_dense(o->dims, o->rank, o->stride);
    return OT_OK;
}

/* Axis d begins at `lo`: the address, or the origin before a map, moves. */
static void move_axis(kgen *g, kgen_operand *o, uint32_t d, const ot_tk_affine *lo)
{
    affine x = affine_of(g, lo, o->stride[d] * (o->map_rank > 0 ? 1 : o->width));
    if (o->map_rank > 0) {
        o->origin = kgen_text(g, "%s + %lld%s", o->origin, (long long)x.constant, x.text);
        return;
    }
    o->constant += x.constant;
    o->dynamic = kgen_text(g, "%s%s", o->dynamic, x.text);
    o->grain = gcd(o->grain, gcd(x.constant, x.grain));
}

/* Bytes of the part [lo, lo + n) of every axis: from the first to the last that any iteration
 * touches. */
static void narrow(kgen *g, kgen_operand *o, const ot_tk_range *ranges, const int64_t *n)
{
    int64_t low = o->low, last = o->high, size = 0;
    if (o->map_rank > 0) return;
    for (uint32_t d = 0; d < o->rank; d++) size += (o->dims[d] - 1) * o->stride[d];
    last -= (size + 1) * o->width; /* where the last slot begins */
    for (uint32_t d = 0; d < o->rank; d++) {
        affine x = affine_of(g, &ranges[d].lo, 1);
        int64_t from = ot_max(0, ot_min(x.low, o->dims[d] - 1)),
                to = ot_max(0, ot_min(x.high + n[d] - 1, o->dims[d] - 1));
        low += from * o->stride[d] * o->width;
        last += to * o->stride[d] * o->width;
    }
    o->low = low;
    o->high = last + o->width;
}

static ot_status step_subview(kgen *g, const ot_tk_value *view, kgen_operand *o)
{
    const ot_tk_value *base = kgen_value(g, view->base);
    for (uint32_t d = 0; d < view->rank; d++) {
        affine x = affine_of(g, &view->ranges[d].lo, 1);
        if (x.low < 0 || x.high + view->dims[d] > o->dims[d])
            return kgen_fail(
                g, "subview-bounds",
                "the subview '%s' leaves '%s' in some iteration: [%lld:%lld] of %lld in axis %u",
                view->name, base->name, (long long)x.low, (long long)(x.high + view->dims[d]),
                (long long)o->dims[d], d);
    }
    narrow(g, o, view->ranges, view->dims);
    for (uint32_t d = 0; d < view->rank; d++) move_axis(g, o, d, &view->ranges[d].lo);
    memcpy(o->dims, view->dims, sizeof o->dims);
    return OT_OK;
}

ot_status kgen_locate(kgen *g, uint32_t v, kgen_operand *o)
{
    uint32_t chain[80], n = 0; /* views of views: at most 64 deep */
    *o = (kgen_operand){.value = v, .root = ot_tk_root(g->k, v, NULL)};
    locate_root(g, o);
    for (uint32_t at = v; at != o->root; at = kgen_value(g, at)->base) chain[n++] = at;
    while (n-- > 0) {
        const ot_tk_value *view = kgen_value(g, chain[n]);
        OT_TRY((view->kind == OT_TK_ALIAS ? step_alias : step_subview)(g, view, o));
    }
    if (o->grain % o->width != 0)
        return kgen_fail(g, "device-align",
                         "'%s' does not lie at a multiple of its elements' %u bytes",
                         kgen_value(g, v)->name, o->width);
    return OT_OK;
}

ot_status kgen_window(kgen *g, kgen_operand *o, const ot_tk_range *ranges)
{
    int64_t n[OT_TK_RANK_MAX];
    if (!ranges) return OT_OK;
    for (uint32_t d = 0; d < o->rank; d++) {
        affine x = affine_of(g, &ranges[d].lo, 1), end = affine_of(g, &ranges[d].hi, 1);
        n[d] = end.constant - x.constant; /* the same loops move both ends */
        if (x.low >= 0 && x.high + n[d] <= o->dims[d]) continue;
        o->first[d] = kgen_text(g, "%lld%s", (long long)x.constant, x.text);
        o->limit[d] = o->dims[d];
    }
    narrow(g, o, ranges, n);
    for (uint32_t d = 0; d < o->rank; d++) move_axis(g, o, d, &ranges[d].lo);
    memcpy(o->dims, n, o->rank * sizeof *n);
    return OT_OK;
}

/* ---- text ---- */

int64_t kgen_elements(const kgen_operand *o)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < o->rank; d++) n *= o->dims[d];
    return n;
}

void kgen_pointer(kgen *g, const kgen_operand *o, const char *name, bool reads, bool raw)
{
    const char *type = kgen_text(g, "%s%s%s *", reads ? "const " : "",
                                 o->is_local ? g->dialect->local : g->dialect->global,
                                 kgen_element(o->dtype, raw));
    if (strcmp(o->dtype, "f64") == 0 && !raw) g->uses_f64 = true;
    const char *constant = o->constant != 0 ? kgen_text(g, " + %lld", (long long)o->constant) : "";
    kgen_line(g, "%sconst %s = (%s)(%s%s%s);", type, name, type, o->base, o->dynamic, constant);
}

const char *kgen_index(kgen *g, const kgen_operand *o, const char *lin)
{
    if (o->map_rank == 0) return lin;
    const char *at = *o->origin ? kgen_text(g, "(%s%s)", lin, o->origin)
                                : kgen_text(g, "(%s)", lin),
               *text = "";
    int64_t inner = 1;
    for (uint32_t d = o->map_rank; d-- > 0; inner *= o->map_dims[d]) {
        if (o->map_dims[d] == 1) continue;
        const char *c = inner == 1 ? at : kgen_text(g, "%s / %lld", at, (long long)inner);
        text = kgen_term(g, text, kgen_text(g, "%s %% %lld", c, (long long)o->map_dims[d]),
                         o->map_stride[d]);
    }
    return *text ? text : "0";
}
