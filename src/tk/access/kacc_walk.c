/* Statements to walks: where each operand lies, along which axes the lanes go, what loops add.
 *
 *   for i in 0..8 { load a <- x[16*i:16*i+16, 0:32] }      x: 64x32 f32
 *   x: extents 16, 32; strides 128, 4; an axis of 8 that shifts by 2048 bytes  a: extents 16, 32;
 *   strides 128, 4; 8 times
 *
 *   y = vector.transpose(a)          y: 32x16   a: extents 32, 16; strides 4, 128: neighbours are a
 *                                               row apart
 *   s = vector.reduce_sum(a, axis=1) s: 16x1    a: extent 16; stride 128; an axis of 32 that shifts
 *                                               by 4
 *   c = cube.matmul(a, b)            kacc_product.c
 */
#include "kacc_internal.h"

/* ---- where a value lies ---- */

static void rows(kacc_layout *p, int64_t pad)
{
    int64_t n = p->width;
    for (uint32_t d = p->rank; d-- > 0;) {
        p->stride[d] = n;
        n *= p->dims[d] + (d + 1 == p->rank ? pad : 0);
    }
}

/* p moves by so many strides. false: the numbers are too large. */
static bool add_affine(kacc_layout *p, const ot_tk_affine *a, int64_t stride)
{
    int64_t bytes;
    if (!ot_mul_i64(a->constant, stride, &bytes) || !ot_add_i64(p->start, bytes, &p->start))
        return false;
    for (uint32_t j = 0; j < a->n; j++) {
        uint32_t t = 0;
        while (t < p->n_terms && strcmp(p->terms[t].var, a->terms[j].var) != 0) t++;
        if (t == OT_TK_DEPTH_MAX) return false;
        if (t == p->n_terms) {
            p->terms[t].var = a->terms[j].var;
            p->terms[p->n_terms++].bytes = 0;
        }
        if (!ot_mul_i64(a->terms[j].coef, stride, &bytes) ||
            !ot_add_i64(p->terms[t].bytes, bytes, &p->terms[t].bytes))
            return false;
    }
    return true;
}

/* One row behind the other, without gaps? */
static bool is_dense(const kacc_layout *p)
{
    int64_t n = p->width;
    for (uint32_t d = p->rank; d-- > 0; n *= p->dims[d])
        if (p->dims[d] > 1 && p->stride[d] != n) return false;
    return true;
}

bool kacc_locate(const kacc_walker *w, uint32_t v, kacc_layout *p)
{
    const ot_tk_value *x = &w->k->values[v];
    uint32_t bits = ot_tk_dtype_bits(x->dtype);
    if (bits < 8) return false;
    if (x->kind == OT_TK_ALIAS || x->kind == OT_TK_SUBVIEW) {
        if (!kacc_locate(w, x->base, p)) return false;
    } else {
        *p = (kacc_layout){.root = v, .width = bits / 8, .rank = x->rank};
    }
    if (x->kind == OT_TK_SUBVIEW) {
        for (uint32_t d = 0; d < x->rank; d++)
            if (!add_affine(p, &x->ranges[d].lo, p->stride[d])) return false;
        memcpy(p->dims, x->dims, sizeof p->dims);
        return true;
    }
    if (x->kind == OT_TK_ALIAS && !is_dense(p)) return false;
    p->width = bits / 8;
    p->rank = x->rank;
    memcpy(p->dims, x->dims, sizeof p->dims);
    rows(p, w->pads && x->kind == OT_TK_BUFFER ? w->pads[v] : 0);
    return true;
}

/* ---- walks ---- */

/* The loop around statement `at` with this variable. */
static const ot_tk_stmt *loop_of(const kacc_walker *w, const char *var)
{
    for (uint32_t i = w->k->stmts[w->at].parent; i != OT_NONE; i = w->k->stmts[i].parent)
        if (w->k->stmts[i].op == OT_TK_FOR && strcmp(w->k->stmts[i].var, var) == 0)
            return &w->k->stmts[i];
    return NULL;
}

/* Iterations of a loop; of an unknown number: one. */
static int64_t trips(const ot_tk_stmt *s)
{
    return s->hi < 0 ? 1 : (s->hi - s->lo + s->step - 1) / s->step;
}

static kacc_axis *axis_of(kacc_walk *x, const ot_tk_stmt *loop)
{
    kacc_axis *a = &x->axes[x->n_axes++];
    *a = (kacc_axis){.count = trips(loop)};
    return a;
}

/* *sum += a * b, all below 2^60. */
static bool adds_up(int64_t *sum, int64_t a, int64_t b)
{
    int64_t product;
    if (a == INT64_MIN || b == INT64_MIN || !ot_mul_i64(a < 0 ? -a : a, b < 0 ? -b : b, &product))
        return false;
    return ot_add_i64(*sum, product, sum) && *sum < INT64_C(1) << 60;
}

/* Can every address and index be computed without care? */
static bool is_small(const kacc_walker *w, const kacc_layout *p, const kacc_walk *x,
                     const ot_tk_affine *first)
{
    int64_t reach = 0;
    bool ok = adds_up(&reach, p->start, 1);
    for (uint32_t d = 0; ok && d < x->rank; d++) ok = adds_up(&reach, x->extent[d], x->stride[d]);
    for (uint32_t a = 0; ok && a < x->n_axes; a++)
        ok = adds_up(&reach, x->axes[a].count, x->axes[a].shift);
    for (uint32_t t = 0; ok && t < p->n_terms; t++) {
        const ot_tk_stmt *loop = loop_of(w, p->terms[t].var);
        int64_t end;
        ok = loop && ot_add_i64(ot_max(loop->lo, loop->hi), loop->step, &end) &&
             adds_up(&reach, p->terms[t].bytes, end);
    }
    for (uint32_t d = 0; ok && first && d < x->rank; d++) {
        ok = adds_up(&reach, first[d].constant, 1);
        for (uint32_t t = 0; ok && t < first[d].n; t++) {
            const ot_tk_stmt *loop = loop_of(w, first[d].terms[t].var);
            int64_t end;
            ok = loop && ot_add_i64(ot_max(loop->lo, loop->hi), loop->step, &end) &&
                 adds_up(&reach, first[d].terms[t].coef, end);
        }
    }
    return ok;
}

/* What the loops around it do to it: each is an axis, or so many times the same. */
static void add_loops(const kacc_walker *w, kacc_walk *x, const kacc_layout *p,
                      const ot_tk_affine *first)
{
    x->times = 1;
    x->start += p->start;
    for (uint32_t d = 0; first && d < x->rank; d++) x->first[d] = first[d].constant;
    for (uint32_t i = w->k->stmts[w->at].parent; i != OT_NONE; i = w->k->stmts[i].parent) {
        const ot_tk_stmt *loop = &w->k->stmts[i];
        kacc_axis *a = NULL;
        if (loop->op != OT_TK_FOR) continue;
        for (uint32_t t = 0; t < p->n_terms; t++) {
            if (p->terms[t].bytes == 0 || loop_of(w, p->terms[t].var) != loop) continue;
            a = a ? a : axis_of(x, loop);
            a->shift += p->terms[t].bytes * loop->step;
            x->start += p->terms[t].bytes * loop->lo;
        }
        for (uint32_t d = 0; first && d < x->rank; d++)
            for (uint32_t t = 0; t < first[d].n; t++) {
                if (strcmp(first[d].terms[t].var, loop->var) != 0) continue;
                a = a ? a : axis_of(x, loop);
                a->first[d] += first[d].terms[t].coef * loop->step;
                x->first[d] += first[d].terms[t].coef * loop->lo;
            }
        if (!a && !ot_mul_i64(x->times, trips(loop), &x->times)) x->times = INT64_MAX;
    }
}

kacc_walk kacc_walk_of(const kacc_walker *w, uint32_t v, const kacc_layout *p, bool write)
{
    return (kacc_walk){
        .stmt = w->at, .value = v, .root = p->root, .write = write, .width = p->width};
}

/* Give it away, if the memory is one that is looked at. */
bool kacc_give(kacc_walker *w, kacc_walk *x, const kacc_layout *p, const ot_tk_affine *first)
{
    ot_scope s = w->k->values[p->root].scope;
    if (s != OT_SCOPE_SHARED && s != OT_SCOPE_GM) return true;
    if (!is_small(w, p, x, first)) {
        w->skipped++;
        return true;
    }
    add_loops(w, x, p, first);
    return w->visit(w->self, x);
}

/* A value, element by element; ranges: the window of it. */
static bool give_window(kacc_walker *w, uint32_t v, const ot_tk_range *ranges, bool write)
{
    kacc_layout p;
    ot_tk_affine first[OT_TK_RANK_MAX];
    if (!kacc_locate(w, v, &p)) {
        w->skipped++;
        return true;
    }
    kacc_walk x = kacc_walk_of(w, v, &p, write);
    x.rank = p.rank;
    memcpy(x.stride, p.stride, sizeof x.stride);
    memcpy(x.extent, p.dims, sizeof x.extent);
    if (!ranges) return kacc_give(w, &x, &p, NULL);
    x.is_window = true;
    for (uint32_t d = 0; d < p.rank; d++) {
        x.limit[d] = p.dims[d];
        x.each[d] = 1;
        x.extent[d] = ranges[d].hi.constant - ranges[d].lo.constant;
        first[d] = ranges[d].lo;
        if (!add_affine(&p, &ranges[d].lo, p.stride[d])) {
            w->skipped++;
            return true;
        }
    }
    return kacc_give(w, &x, &p, first);
}

/* ---- operations ---- */

bool kacc_give_broadcast(kacc_walker *w, uint32_t v, const int64_t *dims, uint32_t rank)
{
    kacc_layout p;
    bool ok = kacc_locate(w, v, &p) && p.rank <= rank;
    for (uint32_t j = 0; ok && j < p.rank; j++) {
        int64_t n = dims[rank - 1 - j];
        ok = p.dims[p.rank - 1 - j] == n || p.dims[p.rank - 1 - j] == 1;
    }
    if (!ok) {
        w->skipped++;
        return true;
    }
    kacc_walk x = kacc_walk_of(w, v, &p, false);
    x.rank = rank;
    memcpy(x.extent, dims, rank * sizeof *dims);
    for (uint32_t j = 0; j < p.rank; j++)
        x.stride[x.rank - 1 - j] = p.dims[p.rank - 1 - j] == 1 ? 0 : p.stride[p.rank - 1 - j];
    return kacc_give(w, &x, &p, NULL);
}

static bool give_transposed(kacc_walker *w, const ot_tk_stmt *s)
{
    kacc_layout p;
    const ot_tk_attr *perm = ot_tk_attr_find(s, "perm");
    bool ok = kacc_locate(w, s->in[0], &p) && (!perm || perm->n == p.rank);
    kacc_walk x = kacc_walk_of(w, s->in[0], &p, false);
    for (uint32_t d = 0; ok && d < p.rank; d++) {
        uint32_t from = perm ? (uint32_t)perm->values[d] : p.rank - 1 - d;
        ok = !perm || (perm->values[d] >= 0 && perm->values[d] < p.rank);
        if (!ok) break;
        x.extent[d] = p.dims[from];
        x.stride[d] = p.stride[from];
    }
    if (!ok) {
        w->skipped++;
        return true;
    }
    x.rank = p.rank;
    return kacc_give(w, &x, &p, NULL);
}

/* A lane makes an element of the result: the reduced axes come one after the other. places: all
 * but images and channels are. */
static bool give_reduced(kacc_walker *w, const ot_tk_stmt *s, bool places)
{
    kacc_layout p;
    bool reduced[OT_TK_RANK_MAX] = {false}, ok = kacc_locate(w, s->in[0], &p);
    const ot_tk_attr *axis = ot_tk_attr_find(s, "axis");
    for (uint32_t d = 2; ok && places && d < p.rank; d++) reduced[d] = true;
    if (ok && !axis && !places) reduced[p.rank - 1] = true;
    for (uint32_t j = 0; ok && axis && j < axis->n; j++) {
        double a = axis->values[j] < 0 ? axis->values[j] + p.rank : axis->values[j];
        ok = a >= 0 && a < p.rank;
        if (ok) reduced[(uint32_t)a] = true;
    }
    if (!ok) {
        w->skipped++;
        return true;
    }
    kacc_walk x = kacc_walk_of(w, s->in[0], &p, false);
    for (uint32_t d = 0; d < p.rank; d++) {
        if (reduced[d]) {
            x.axes[x.n_axes++] = (kacc_axis){.count = p.dims[d], .shift = p.stride[d]};
        } else {
            x.extent[x.rank] = p.dims[d];
            x.stride[x.rank++] = p.stride[d];
        }
    }
    if (x.rank == 0) x.extent[x.rank++] = 1;
    return kacc_give(w, &x, &p, NULL);
}

static bool among(const char *key, const char *const *names, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(names[k], key) == 0) return true;
    return false;
}

/* Operations whose lanes walk in no such way, or reach several elements at once. */
static bool is_other(const char *key)
{
    static const char *const names[] = {"im2col",   "img2col",      "softmax", "concat",
                                        "reshape",  "flatten",      "squeeze", "unsqueeze",
                                        "describe", "convtranspose"};
    return among(key, names, sizeof names / sizeof *names);
}

static bool give_compute(kacc_walker *w, const ot_tk_stmt *s)
{
    char key[OT_TK_OP_KEY];
    bool known = false;
    ot_tk_op_key(s->name, key);
    if (s->n_out == 1 && !kacc_give_product(w, s, key, &known)) return false;
    if (known) return give_window(w, s->out[0], NULL, true);
    if (s->pipe == OT_PIPE_CUBE || is_other(key) || s->n_out != 1) {
        w->skipped += s->n_in + s->n_out;
        return true;
    }
    const ot_tk_value *out = &w->k->values[s->out[0]];
    if (!give_window(w, s->out[0], NULL, true)) return false;
    if (strcmp(key, "transpose") == 0 && s->n_in == 1) return give_transposed(w, s);
    if (strncmp(key, "reduce", 6) == 0 && s->n_in == 1) return give_reduced(w, s, false);
    if (strcmp(key, "globalaveragepool") == 0 && s->n_in == 1) return give_reduced(w, s, true);
    for (uint32_t j = 0; j < s->n_in; j++)
        if (!kacc_give_broadcast(w, s->in[j], out->dims, out->rank)) return false;
    return true;
}

static bool give_stmt(kacc_walker *w, const ot_tk_stmt *s)
{
    switch (s->op) {
    case OT_TK_LOAD:
        return give_window(w, s->in[0], s->ranges, false) && give_window(w, s->out[0], NULL, true);
    case OT_TK_STORE:
        return give_window(w, s->in[0], NULL, false) && give_window(w, s->out[0], s->ranges, true);
    case OT_TK_COPY:
        return give_window(w, s->in[0], NULL, false) && give_window(w, s->out[0], NULL, true);
    case OT_TK_COMPUTE: return give_compute(w, s);
    default: return true;
    }
}

bool kacc_walks(const ot_kernel *k, const int64_t *pads, kacc_visit visit, void *self,
                uint32_t *skipped)
{
    kacc_walker w = {.k = k, .pads = pads, .visit = visit, .self = self};
    bool ok = true;
    for (w.at = 0; ok && w.at < k->n_stmts; w.at++) ok = give_stmt(&w, &k->stmts[w.at]);
    if (skipped) *skipped = w.skipped;
    return ok;
}
