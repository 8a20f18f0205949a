/* One node, tile by tile, against the slow operators of access_eval.h.
 *
 *   new_case -> IN / INTS / attr_* -> check      (or: build, ask, fill_window for single questions)
 *
 * check() asks every axis of output 0; where it can be cut,
 *   containment: the adapted node, run on the slices of its inputs, gives exactly the made window
 *   of the full result;
 *   tightness:   changing the first or last slab of a cut input's window changes the made window,
 *                and changing
 *                the slab just outside does not;
 * and random windows on several axes at once give the same. Included by one test program.
 */
#ifndef ACCESS_CHECK_H
#define ACCESS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "access_eval.h"
#include "window_check.h"
#include "ops/ops.h"

#define IN_MAX  8
#define OUT_MAX 3

typedef struct kase {
    const char *type;
    int32_t version;
    ot_attr attrs[4];
    uint32_t n_attrs;
    arr in[IN_MAX];
    bool constant[IN_MAX]; /* shapes, axes...: stored as initializers and never perturbed */
    uint32_t n_in, n_out;
    ot_arena *arena;
    /* filled by check() */
    arr full[OUT_MAX];
    ot_model *model;
    ot_id node;
} kase;

static uint64_t rng_state;

static int64_t rnd(int64_t n) /* 0 .. n-1 */
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return (int64_t)(rng_state % (uint64_t)n);
}

static void seed(uint64_t s)
{
    print_message("seed %llu\n", (unsigned long long)s);
    rng_state = s * 0x9E3779B97F4A7C15u + 1;
}

/* ---- building cases ---- */

static kase *new_case(const char *type, int32_t version)
{
    kase *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->type = type;
    c->version = version;
    c->n_out = 1;
    c->arena = ot_arena_new();
    assert_non_null(c->arena);
    return c;
}

static arr *operand(kase *c, int32_t rank, const int64_t *d)
{
    arr *a = &c->in[c->n_in++];
    arr_shape(a, rank, d);
    for (int64_t i = 0; i < arr_size(a); i++) a->v[i] = 1 + rnd(1000);
    return a;
}

#define IN(c, ...)                                                              \
    operand((c), (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
            (int64_t[]){__VA_ARGS__})

static inline void scalar_in(kase *c) { operand(c, 0, NULL); }

static inline void omitted(kase *c) { c->n_in++; }

static void ints_in(kase *c, int64_t n, const int64_t *v)
{
    arr *a = operand(c, 1, &n);
    memcpy(a->v, v, (size_t)n * sizeof *v);
    c->constant[c->n_in - 1] = true;
}

#define INTS(c, ...)                                                            \
    ints_in((c), (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
            (int64_t[]){__VA_ARGS__})

static void attr_i(kase *c, const char *name, int64_t v)
{
    c->attrs[c->n_attrs++] = ot_mk_int(name, v);
}

static void attr_ints(kase *c, const char *name, const int64_t *v, size_t n)
{
    c->attrs[c->n_attrs++] = ot_mk_ints(c->arena, name, v, n);
}

static void build(kase *c)
{
    ot_id in[IN_MAX], out[OUT_MAX];
    ev_op op = {c->type, c->version, c->attrs, c->n_attrs};
    ev_run(&op, c->in, c->n_in, c->full);
    c->model = ot_model_new(NULL);
    assert_non_null(c->model);
    c->model->opset = c->version;
    ot_graph *g = c->model->graph;
    for (uint32_t k = 0; k < c->n_in; k++) {
        const char *name = ot_format(c->model->arena, "in%u", k);
        const arr *a = &c->in[k];
        in[k] = OT_NONE;
        if (!a->present) continue;
        in[k] = c->constant[k] ? ot_const_i64(g, name, a->v, a->rank, a->d)
                               : ot_value_new(g, name, OT_F32, a->rank, a->d);
        assert_int_not_equal(in[k], OT_NONE);
    }
    for (uint32_t k = 0; k < c->n_out; k++) {
        assert_true(c->full[k].present);
        out[k] = ot_value_new(g, ot_format(c->model->arena, "out%u", k), OT_F32, c->full[k].rank,
                              c->full[k].d);
    }
    c->node = ot_node_new(g, &(ot_node_def){.op = c->type,
                                            .name = "n",
                                            .in = {in, c->n_in},
                                            .out = {out, c->n_out},
                                            .attrs = {c->attrs, c->n_attrs}});
    assert_int_not_equal(c->node, OT_NONE);
    g->nodes[c->node].version = c->version;
}

static void drop(kase *c)
{
    ot_model_free(c->model);
    ot_arena_free(c->arena);
    free(c);
}

/* ---- one tile ---- */

typedef struct cut {
    uint32_t axis;
    int8_t in_axis[IN_MAX], out_axis[OUT_MAX];
    ot_win in[IN_MAX];
    ot_op_tile tile;
} cut;

static const ot_node *node_of(const kase *c) { return &c->model->graph->nodes[c->node]; }

static bool ask(const kase *c, uint32_t axis, cut *x)
{
    ot_why why = OT_WHY_NONE;
    memset(x, 0, sizeof *x);
    x->axis = axis;
    bool ok = ot_access_axis(c->model->graph, node_of(c), 0, axis, x->in_axis, x->out_axis, &why);
    if (!ok) assert_int_not_equal(why, OT_WHY_NONE);
    return ok;
}

static void fill_window(const kase *c, cut *x, int64_t lo, int64_t hi)
{
    ot_why why = OT_WHY_NONE;
    x->tile = (ot_op_tile){.need = {lo, hi}, .in = x->in};
    bool ok = window_both(c->model->graph, node_of(c), 0, x->axis, &x->tile, &why);
    if (!ok && why == OT_WHY_QUANT_ONE) { /* of these, two are the least */
        if (lo > 0)
            lo--;
        else
            hi++;
        x->tile.need = (ot_win){lo, hi};
        ok = window_both(c->model->graph, node_of(c), 0, x->axis, &x->tile, &why);
    }
    if (!ok)
        fail_msg("%s axis %u [%d,%d): %s", c->type, x->axis, (int)lo, (int)hi,
                 ot_reason_sentence(why));
    assert_true(x->tile.made.lo <= lo && x->tile.made.hi >= hi);
    for (uint32_t k = 0; k < c->n_in; k++) {
        if (x->in_axis[k] < 0) continue;
        assert_true(x->in[k].lo >= 0 && x->in[k].lo <= x->in[k].hi);
        assert_true(x->in[k].hi <= c->in[k].d[x->in_axis[k]]);
    }
}

/* a[.., lo:hi, ..] on one axis; a and out may be the same. */
static void slice(arr *a, int32_t axis, ot_win w)
{
    arr *src = malloc(sizeof *src);
    int64_t ix[ARR_RANK] = {0}, d[ARR_RANK] = {0};
    *src = *a;
    memcpy(d, src->d, sizeof d);
    d[axis] = w.hi - w.lo;
    arr_shape(a, src->rank, d);
    for (int64_t f = 0; f < arr_size(a); f++) {
        unflatten(a, f, ix);
        ix[axis] += w.lo;
        a->v[f] = src->v[flatten(src, ix)];
    }
    free(src);
}

static void expect_same(const kase *c, const arr *got, const arr *want, uint32_t axis)
{
    if (got->rank != want->rank) fail_msg("%s axis %u: tile of rank %d", c->type, axis, got->rank);
    for (int32_t i = 0; i < want->rank; i++)
        if (got->d[i] != want->d[i])
            fail_msg("%s axis %u: tile extent %d of axis %d, wanted %d", c->type, axis,
                     (int)got->d[i], i, (int)want->d[i]);
    for (int64_t f = 0; f < arr_size(want); f++)
        if (got->v[f] != want->v[f])
            fail_msg("%s axis %u: element %d differs", c->type, axis, (int)f);
}

/* Operand list of the adapted node, from the slices and the changes. Returns their number. */
static uint32_t tile_operands(const kase *c, const cut *x, uint32_t n, const ot_adapted *ad,
                              arr *in)
{
    uint32_t n_in = c->n_in;
    memcpy(in, c->in, sizeof c->in);
    for (uint32_t k = 0; k < c->n_in; k++)
        for (uint32_t j = 0; j < n && !ad->drop[k]; j++)
            if (x[j].in_axis[k] >= 0) slice(&in[k], x[j].in_axis[k], x[j].in[k]);
    for (uint32_t j = 0; j < ad->n_operands; j++) {
        const ot_operand *o = &ad->operands[j];
        assert_true(!o->omit && o->input < IN_MAX);
        arr_shape(&in[o->input], (int32_t)o->tensor->rank, o->tensor->dims);
        memcpy(in[o->input].v, o->tensor->data, o->tensor->bytes);
        if (o->input >= n_in) n_in = o->input + 1;
    }
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n_in; k++)
        if (k >= c->n_in || !ad->drop[k]) in[kept++] = in[k];
    return kept;
}

/* Run the tile cut along x[0..n) and compare it with the slices of the full result. */
static void run_tile(const kase *c, const cut *x, uint32_t n)
{
    ot_tile_axis axes[ARR_RANK];
    ot_adapted ad;
    arr *in = calloc(IN_MAX, sizeof *in), *out = calloc(OUT_MAX, sizeof *out),
        *want = calloc(1, sizeof *want);
    for (uint32_t j = 0; j < n; j++) axes[j] = (ot_tile_axis){0, x[j].axis, &x[j].tile};
    assert_int_equal(ot_tile_adapt(c->model->graph, node_of(c), axes, n, c->arena, &ad), OT_OK);
    for (uint32_t k = 0; k < c->n_in; k++)
        for (uint32_t j = 0; j < n;
             j++) /* an empty window can only be an operand that is left out */
            if (x[j].in_axis[k] >= 0 && x[j].in[k].lo == x[j].in[k].hi) assert_true(ad.drop[k]);
    uint32_t n_in = tile_operands(c, x, n, &ad, in);
    if (ad.kind == OT_ADAPT_FORWARD) {
        uint32_t at = ad.forward;
        for (uint32_t k = 0; k < ad.forward; k++) at -= ad.drop[k];
        assert_in_range(at, 0, n_in - 1);
        out[0] = in[at];
    } else {
        ev_op op = {c->type, c->version, ad.attrs, ad.n_attrs};
        ev_run(&op, in, n_in, out);
    }
    for (uint32_t o = 0; o < c->n_out; o++) {
        bool follows = true;
        *want = c->full[o];
        for (uint32_t j = 0; j < n; j++) {
            if (x[j].out_axis[o] < 0)
                follows = false;
            else
                slice(want, x[j].out_axis[o], x[j].tile.made);
        }
        if (follows) expect_same(c, &out[o], want, x[0].axis);
    }
    free(in), free(out), free(want);
}

/* Does adding one to the slab `at` of operand k change the made window? */
static bool slab_matters(const kase *c, const cut *x, uint32_t k, int64_t at)
{
    arr *in = malloc(sizeof c->in), *out = calloc(OUT_MAX, sizeof *out), *ref = malloc(sizeof *ref);
    int64_t ix[ARR_RANK] = {0};
    ev_op op = {c->type, c->version, c->attrs, c->n_attrs};
    memcpy(in, c->in, sizeof c->in);
    for (int64_t f = 0; f < arr_size(&in[k]); f++) {
        unflatten(&in[k], f, ix);
        if (ix[x->in_axis[k]] == at) in[k].v[f] += 1;
    }
    ev_run(&op, in, c->n_in, out);
    *ref = c->full[0];
    slice(ref, (int32_t)x->axis, x->tile.made);
    slice(&out[0], (int32_t)x->axis, x->tile.made);
    bool differs = memcmp(ref->v, out[0].v, (size_t)arr_size(ref) * sizeof ref->v[0]) != 0;
    free(in), free(out), free(ref);
    return differs;
}

static void check_tight(const kase *c, const cut *x)
{
    for (uint32_t k = 0; k < c->n_in; k++) {
        if (x->in_axis[k] < 0 || c->constant[k] || x->in[k].lo == x->in[k].hi) continue;
        ot_win w = x->in[k];
        if (!slab_matters(c, x, k, w.lo) || !slab_matters(c, x, k, w.hi - 1))
            fail_msg("%s axis %u operand %u: window [%d,%d) is larger than needed", c->type,
                     x->axis, k, (int)w.lo, (int)w.hi);
        if (w.lo > 0) assert_false(slab_matters(c, x, k, w.lo - 1));
        if (w.hi < c->in[k].d[x->in_axis[k]]) assert_false(slab_matters(c, x, k, w.hi));
    }
}

/* ---- one case ---- */

static void random_window(int64_t extent, int64_t *lo, int64_t *hi)
{
    *lo = rnd(extent);
    *hi = *lo + 1 + rnd(extent - *lo);
}

/* Ask every axis of output 0; expect: '1' cut, '0' refused, '?' either. Consumes the case. */
static void check(kase *c, const char *expect)
{
    cut x[ARR_RANK];
    uint32_t n_ok = 0;
    int64_t lo, hi;
    if (!c->model) build(c);
    assert_int_equal(strlen(expect), c->full[0].rank);
    for (uint32_t a = 0; a < (uint32_t)c->full[0].rank; a++) {
        bool ok = ask(c, a, &x[n_ok]);
        if (expect[a] != '?' && ok != (expect[a] == '1'))
            fail_msg("%s (opset %d) axis %u: %s", c->type, c->version, a, ok ? "cut" : "refused");
        if (!ok) continue;
        for (int i = 0; i < 6; i++) {
            random_window(c->full[0].d[a], &lo, &hi);
            fill_window(c, &x[n_ok], lo, hi);
            run_tile(c, &x[n_ok], 1);
            check_tight(c, &x[n_ok]);
        }
        n_ok++;
    }
    for (int i = 0; i < 4 && n_ok > 1; i++) { /* several axes at once */
        cut y[ARR_RANK];
        uint32_t n = 0;
        for (uint32_t j = 0; j < n_ok; j++) {
            if (rnd(4) == 0) continue;
            y[n] = x[j];
            random_window(c->full[0].d[x[j].axis], &lo, &hi);
            fill_window(c, &y[n++], lo, hi);
        }
        for (uint32_t j = 0; j < n; j++) y[j].tile.in = y[j].in;
        if (n) run_tile(c, y, n);
    }
    drop(c);
}

#endif
