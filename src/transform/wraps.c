/* Circular padding moves to the front. What a chain of convolutions wraps around again and again
 * keeps every tile waiting for both ends of every value; wrapped once, by all that the chain will
 * ask for, its values are plain windows.
 *
 *     x --wrap 1--> . --Conv--> a --wrap 1--> . --Conv--> b         a, b of E rows
 *     x --wrap 2--> . --Conv--> a'             --Conv--> b         a' of E + 2: a's ends, again
 *
 * A value behind a wrap is a window of a periodic one, as long as what makes it does the same at
 * every row: element-wise operators, windows without padding of their own. So rows beyond its ends
 * are what a wrap would have put there, and are computed again. That is done along axis 2, the one
 * that is outermost in memory; what wraps around others stays where it is, for it is not cut there.
 * A wrap is a Pad of mode wrap, or a Concat of a Slice of the end, all, and a Slice of the
 * beginning.
 */
#include "transform.h"

#include "onnx/import/model_io.h"

#define AXIS         2
#define SHARE        8  /* no more than that part of an axis is computed again */
#define SINCE        13 /* opset */
#define PADS_OPERAND 1

/* Rows beyond the ends of a value. */
typedef struct rows {
    int64_t before, behind;
} rows;

/* A node that wraps x around along AXIS. */
typedef struct wrap {
    ot_id x; /* OT_NONE: it does not */
    rows by;
    bool goes; /* its result is a window of x with rows beyond its ends */
} wrap;

typedef struct moving {
    ot_graph *g;
    ot_arena *a;
    wrap *wraps;     /* [n_nodes] */
    int64_t *stride; /* [n_nodes] rows of operands for one of the result; 0: it is no such node */
    int8_t **follow; /* [n_nodes][n_in] their axis along AXIS, with that */
    int64_t *period; /* [n_values] 0: it is not known to be periodic */
    rows *want;      /* [n_values] the most that readers want */
    rows *held;      /* [n_values] of `now` */
    ot_id *now;      /* [n_values] the value with these rows; OT_NONE: it is as it was */
    bool *plain;     /* [n_values] the value itself is made of that by a Slice */
} moving;

static ot_status nomem(const moving *m) { return ot_fail_nomem(m->g->model->diag); }

/* ---- wraps ---- */

static bool is_map(const ot_value *v)
{
    return v->is_tensor && v->rank > AXIS && ot_value_is_static(v) && v->dims[AXIS] > 1;
}

/* Pads of n at both ends of each axis of x, into pads [2 * rank], and where those of AXIS stand in
 * operand 1, which has so many axes. */
static bool read_pads(const ot_graph *g, const ot_node *n, int64_t *pads, uint32_t *at,
                      uint32_t *n_at)
{
    const ot_value *x = &g->values[n->in[0]];
    int64_t axes[OT_RANK_MAX], list[2 * OT_RANK_MAX];
    size_t n_axes = 0, n_list = 0;
    const ot_value *v = n->n_in > PADS_OPERAND ? &g->values[n->in[PADS_OPERAND]] : NULL;
    const ot_value *by = n->n_in > 3 && n->in[3] != OT_NONE ? &g->values[n->in[3]] : NULL;
    if (!v || v->overridable || !v->init ||
        !ot_tensor_ints(v->init, list, 2 * OT_RANK_MAX, &n_list))
        return false;
    if (by &&
        (by->overridable || !by->init || !ot_tensor_ints(by->init, axes, OT_RANK_MAX, &n_axes)))
        return false;
    for (int32_t d = 0; !by && d < x->rank; d++) axes[n_axes++] = d;
    if (n_list != 2 * n_axes) return false;
    memset(pads, 0, 2 * (size_t)x->rank * sizeof *pads);
    *n_at = (uint32_t)n_axes;
    for (uint32_t k = 0; k < n_axes; k++) {
        const int64_t d = axes[k] < 0 ? axes[k] + x->rank : axes[k];
        if (d < 0 || d >= x->rank || list[k] < 0 || list[n_axes + k] < 0) return false;
        pads[d] = list[k];
        pads[x->rank + d] = list[n_axes + k];
        if (d == AXIS) *at = k;
    }
    return true;
}

static void find_pad(const ot_graph *g, const ot_node *n, wrap *w)
{
    const ot_value *x = n->in[0] == OT_NONE ? NULL : &g->values[n->in[0]];
    int64_t pads[2 * OT_RANK_MAX];
    uint32_t at, n_at;
    if (strcmp(ot_attr_str(n, "mode", ""), "wrap") != 0 || !x || !is_map(x) ||
        !read_pads(g, n, pads, &at, &n_at))
        return;
    const rows by = {pads[AXIS], pads[x->rank + AXIS]};
    if (by.before + by.behind == 0 || ot_max(by.before, by.behind) > x->dims[AXIS]) return;
    *w = (wrap){.x = n->in[0], .by = by};
}

/* v is rows [*lo, *hi) of x, and of nothing else but AXIS less than all. */
static bool is_rows(const ot_graph *g, ot_id v, ot_id x, int64_t *lo, int64_t *hi)
{
    const ot_value *part = &g->values[v], *all = &g->values[x];
    int8_t in_axis[8], out_axis[1];
    ot_win in[8];
    ot_why why;
    if (part->producer == OT_NONE) return false;
    const ot_node *n = &g->nodes[part->producer];
    if (n->op != OT_OP_Slice || n->in[0] != x || n->n_in > 8 || !is_map(all) ||
        part->rank != all->rank || !ot_value_is_static(part))
        return false;
    for (int32_t d = 0; d < all->rank; d++)
        if (d != AXIS && part->dims[d] != all->dims[d]) return false;
    ot_op_tile t = {.need = {0, part->dims[AXIS]}, .in = in};
    if (!ot_access_axis(g, n, 0, AXIS, in_axis, out_axis, &why) ||
        !ot_access_window(g, n, 0, AXIS, &t, &why) || t.in[0].hi - t.in[0].lo != part->dims[AXIS])
        return false;
    *lo = t.in[0].lo;
    *hi = t.in[0].hi;
    return true;
}

/* Concat of the end of x, x, and its beginning; one of the two may lack. */
static void find_concat(const ot_graph *g, const ot_node *n, wrap *w)
{
    const ot_value *y = &g->values[n->out[0]];
    int64_t axis = ot_attr_int(n, "axis", 0);
    if (axis < 0) axis += y->rank;
    if (axis != AXIS || n->n_in < 2 || n->n_in > 3) return;
    for (uint32_t m = 0; m < n->n_in && m < 2; m++) {
        const ot_id x = n->in[m];
        rows by = {0, 0};
        int64_t lo, hi;
        bool fits = m + 2 >= n->n_in;
        const int64_t extent = is_map(&g->values[x]) ? g->values[x].dims[AXIS] : 0;
        if (fits && m == 1) {
            fits = is_rows(g, n->in[0], x, &lo, &hi) && hi == extent;
            by.before = fits ? hi - lo : 0;
        }
        if (fits && m + 1 < n->n_in) {
            fits = is_rows(g, n->in[m + 1], x, &lo, &hi) && lo == 0;
            by.behind = fits ? hi : 0;
        }
        if (!fits) continue;
        *w = (wrap){.x = x, .by = by};
        return;
    }
}

/* ---- nodes that do the same at every row ---- */

/* A Slice that says nothing of AXIS. */
static bool slices_elsewhere(const ot_graph *g, const ot_node *n)
{
    int64_t axes[OT_RANK_MAX];
    size_t n_axes = 0;
    const ot_value *v = n->n_in > 3 && n->in[3] != OT_NONE ? &g->values[n->in[3]] : NULL;
    if (!v || v->overridable || !v->init || !ot_tensor_ints(v->init, axes, OT_RANK_MAX, &n_axes))
        return false;
    for (size_t k = 0; k < n_axes; k++)
        if (axes[k] == AXIS || axes[k] + g->values[n->in[0]].rank == AXIS) return false;
    return true;
}

static bool may_follow(const ot_graph *g, const ot_node *n)
{
    int64_t axis = ot_attr_int(n, "axis", 0);
    if (n->n_out == 0 || n->out[0] == OT_NONE || !is_map(&g->values[n->out[0]])) return false;
    for (uint32_t o = 1; o < n->n_out; o++)
        if (n->out[o] != OT_NONE) return false;
    if (axis < 0) axis += g->values[n->out[0]].rank;
    switch (ot_op_access(n->op)) {
    case OT_ACC_POINTWISE:
    case OT_ACC_CONV:
    case OT_ACC_QUANT:
    case OT_ACC_PAD: return true;
    case OT_ACC_POOL: return ot_attr_int(n, "ceil_mode", 0) == 0;
    case OT_ACC_SLICE: return n->op == OT_OP_Slice && slices_elsewhere(g, n);
    case OT_ACC_CONCAT: return axis != AXIS;
    default: return n->op == OT_OP_BatchNormalization;
    }
}

/* Rows of operands for one of the result, of operands that follow AXIS, which it pads at neither
 * end; 0: it is not so. follow: [n_in + n_out], of which the first are filled; windows: two of
 * each operand. */
static int64_t stride_of(const ot_graph *g, const ot_node *n, int8_t *follow, ot_win *windows)
{
    ot_win *first = windows, *in = windows + n->n_in;
    ot_why why;
    if (!may_follow(g, n) || !ot_access_axis(g, n, 0, AXIS, follow, follow + n->n_in, &why))
        return 0;
    const int64_t extent = g->values[n->out[0]].dims[AXIS];
    int64_t stride = 0;
    ot_op_tile all = {.need = {0, extent}, .in = first}, one = {.need = {1, 2}, .in = in};
    if (!ot_access_window(g, n, 0, AXIS, &all, &why) ||
        !ot_access_window(g, n, 0, AXIS, &one, &why) || all.pad_lo != 0 || all.pad_hi != 0)
        return 0;
    const bool moves = n->op == OT_OP_Pad || n->op == OT_OP_Slice;
    for (uint32_t j = 0; j < n->n_in; j++) {
        if (n->in[j] == OT_NONE || follow[j] < 0) continue;
        if (follow[j] != AXIS || first[j].lo != 0 || (stride != 0 && in[j].lo != stride)) return 0;
        if (moves && g->values[n->in[j]].dims[AXIS] != extent) return 0;
        stride = in[j].lo;
    }
    return ot_max(stride, 0);
}

/* The period of what n makes of operands that have one; 0: it has none. */
static int64_t period_of(const moving *m, const ot_node *n, int64_t stride, const int8_t *follow)
{
    int64_t period = 0;
    for (uint32_t j = 0; j < n->n_in; j++) {
        if (n->in[j] == OT_NONE || follow[j] != AXIS) continue;
        const int64_t of = m->period[n->in[j]]; /* 0 of constants */
        if (of == 0 || (period != 0 && of != period)) return 0;
        period = of;
    }
    return period % stride == 0 ? period / stride : 0;
}

/* n computes something of known rows. */
static bool is_looked_at(const ot_node *n)
{
    return !n->is_static && n->n_captured == 0 && n->n_in > 0 && n->n_out > 0 &&
           n->out[0] != OT_NONE && ot_access_known(n);
}

/* n, where it wraps something around. */
static wrap wrap_of(const ot_graph *g, const ot_node *n)
{
    wrap w = {.x = OT_NONE};
    if (n->op == OT_OP_Pad) find_pad(g, n, &w);
    if (n->op == OT_OP_Concat) find_concat(g, n, &w);
    return w;
}

bool ot_wraps_any(const ot_graph *g)
{
    bool any = false;
    for (uint32_t k = 0; k < g->n_order && !any && g->model->opset >= SINCE; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        any = is_looked_at(n) && wrap_of(g, n).x != OT_NONE;
    }
    return any;
}

static ot_status find_nodes(moving *m)
{
    const ot_graph *g = m->g;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        wrap *w = &m->wraps[id];
        w->x = OT_NONE;
        if (!is_looked_at(n)) continue;
        *w = wrap_of(g, n);
        if (w->x != OT_NONE) {
            m->period[n->out[0]] = g->values[w->x].dims[AXIS];
            continue;
        }
        m->follow[id] = OT_NEW_N(m->a, int8_t, (size_t)n->n_in + n->n_out);
        ot_win *windows = OT_NEW_N(m->a, ot_win, 2 * (size_t)n->n_in);
        if (!m->follow[id] || !windows) return nomem(m);
        m->stride[id] = stride_of(g, n, m->follow[id], windows);
        if (m->stride[id] > 0) m->period[n->out[0]] = period_of(m, n, m->stride[id], m->follow[id]);
    }
    return OT_OK;
}

/* ---- rows that are wanted ---- */

static void want(moving *m, ot_id v, rows by)
{
    m->want[v].before = ot_max(m->want[v].before, by.before);
    m->want[v].behind = ot_max(m->want[v].behind, by.behind);
}

/* A subgraph reads v, or the graph's caller does: under its name. */
static bool is_named(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    for (uint32_t u = 0; u < x->n_uses; u++)
        if (g->nodes[x->uses[u]].n_captured > 0) return true;
    return x->is_output;
}

static uint32_t find_rows(moving *m)
{
    const ot_graph *g = m->g;
    uint32_t n_going = 0;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        wrap *w = &m->wraps[id];
        if (w->x == OT_NONE && m->stride[id] == 0) continue;
        const rows by = m->want[n->out[0]];
        if (w->x != OT_NONE) {
            const int64_t extent = g->values[w->x].dims[AXIS];
            const rows all = {w->by.before + by.before, w->by.behind + by.behind};
            w->goes = m->period[w->x] == extent && !is_named(g, n->out[0]) &&
                      (all.before + all.behind) <= extent / SHARE;
            if (w->goes) want(m, w->x, all);
            n_going += w->goes;
        } else if (by.before + by.behind > 0) {
            const rows in = {by.before * m->stride[id], by.behind * m->stride[id]};
            for (uint32_t j = 0; j < n->n_in; j++)
                if (n->in[j] != OT_NONE && m->follow[id][j] == AXIS) want(m, n->in[j], in);
        }
    }
    return n_going;
}

/* ---- writing ---- */

/* A value like v with so many rows. */
static ot_status new_rows(const moving *m, ot_id v, int64_t n, ot_id *out)
{
    const ot_value like = m->g->values[v];
    int64_t dims[OT_RANK_MAX];
    const char *base = ot_format(m->g->model->arena, "tile/wrap/%s", like.name),
               *name = base ? ot_fresh_name(m->g->model, base) : NULL;
    memcpy(dims, like.dims, (size_t)like.rank * sizeof *dims);
    dims[AXIS] = n;
    *out = name ? ot_value_new(m->g, name, like.dtype, like.rank, dims) : OT_NONE;
    return *out == OT_NONE ? nomem(m) : OT_OK;
}

/* Rows [lo, hi) of `from`, as *out or, where that is OT_NONE, a new value like v. */
static ot_status slice(const moving *m, ot_id from, int64_t lo, int64_t hi, ot_id v, ot_id *out)
{
    const int64_t axis = AXIS;
    ot_id in[4] = {from, OT_NONE, OT_NONE, OT_NONE};
    if (*out == OT_NONE) OT_TRY(new_rows(m, v, hi - lo, out));
    OT_TRY(ot_const_ints(m->g, "tile/wrap/starts", &lo, 1, &in[1]));
    OT_TRY(ot_const_ints(m->g, "tile/wrap/ends", &hi, 1, &in[2]));
    OT_TRY(ot_const_ints(m->g, "tile/wrap/axes", &axis, 1, &in[3]));
    const char *name = ot_fresh_name(m->g->model, "tile/wrap/slice");
    const ot_node_def def = {.op = "Slice", .name = name, .in = {in, 4}, .out = {out, 1}};
    return name && ot_node_new(m->g, &def) != OT_NONE ? OT_OK : nomem(m);
}

/* v with these rows beyond its ends. */
static ot_status fetch(moving *m, ot_id v, rows by, ot_id *out)
{
    const rows held = m->held[v];
    *out = v;
    if (m->now[v] == OT_NONE) return OT_OK;
    const int64_t lo = held.before - by.before,
                  hi = lo + by.before + m->g->values[v].dims[AXIS] + by.behind;
    const bool plain = by.before + by.behind == 0;
    *out = m->now[v];
    if (lo == 0 && held.behind == by.behind) return OT_OK;
    *out = plain ? v : OT_NONE;
    if (plain && m->plain[v]) return OT_OK;
    m->plain[v] |= plain;
    return slice(m, m->now[v], lo, hi, v, out);
}

/* Node id makes `to` in place of its result v. */
static void make_instead(moving *m, ot_id id, ot_id v, ot_id to, rows held)
{
    ot_node *n = &m->g->nodes[id];
    n->out[0] = to;
    n->proto = NULL;
    m->g->values[to].producer = id;
    m->g->values[to].out_index = 0;
    m->g->values[v].producer = OT_NONE;
    m->now[v] = to;
    m->held[v] = held;
}

/* Pad id pads AXIS by so much. */
static ot_status set_pads(const moving *m, ot_id id, rows by)
{
    int64_t pads[2 * OT_RANK_MAX], list[2 * OT_RANK_MAX];
    uint32_t at = 0, n = 0;
    size_t n_list = 0;
    const ot_node was = m->g->nodes[id];
    if (!read_pads(m->g, &was, pads, &at, &n) ||
        !ot_tensor_ints(m->g->values[was.in[PADS_OPERAND]].init, list, 2 * OT_RANK_MAX, &n_list))
        OT_BUG("the pads of a Pad are not known any more");
    list[at] = by.before;
    list[n + at] = by.behind;
    ot_id to;
    OT_TRY(ot_const_ints(m->g, "tile/wrap/pads", list, (int64_t)n_list, &to));
    m->g->nodes[id].in[PADS_OPERAND] = to;
    m->g->nodes[id].proto = NULL;
    return OT_OK;
}

/* A wrap that goes: its result is its operand, but for what it wraps around other axes. */
static ot_status drop_wrap(moving *m, ot_id id)
{
    const wrap *w = &m->wraps[id];
    const ot_node was = m->g->nodes[id];
    const ot_id v = was.out[0], x = m->now[w->x];
    const rows held = {m->held[w->x].before - w->by.before, m->held[w->x].behind - w->by.behind};
    int64_t pads[2 * OT_RANK_MAX], others = 0;
    uint32_t at, n_at;
    ot_id to = x;
    if (was.op == OT_OP_Pad && read_pads(m->g, &was, pads, &at, &n_at))
        for (int32_t d = 0; d < m->g->values[v].rank; d++)
            if (d != AXIS) others += pads[d] + pads[m->g->values[v].rank + d];
    if (others == 0) {
        ot_node_remove(m->g, id);
        m->now[v] = to;
        m->held[v] = held;
        return OT_OK;
    }
    OT_TRY(set_pads(m, id, (rows){0, 0}));
    OT_TRY(new_rows(m, v, m->g->values[x].dims[AXIS], &to));
    m->g->nodes[id].in[0] = x;
    make_instead(m, id, v, to, held);
    return OT_OK;
}

/* A wrap that stays wraps around more. */
static ot_status widen_wrap(moving *m, ot_id id, rows by)
{
    const wrap *w = &m->wraps[id];
    const ot_node was = m->g->nodes[id];
    const ot_id v = was.out[0];
    const rows all = {w->by.before + by.before, w->by.behind + by.behind};
    const int64_t extent = m->g->values[w->x].dims[AXIS];
    ot_id to, in[3] = {OT_NONE, OT_NONE, OT_NONE};
    uint32_t n = 0;
    OT_TRY(new_rows(m, v, all.before + extent + all.behind, &to));
    if (was.op == OT_OP_Pad) {
        OT_TRY(set_pads(m, id, all));
        OT_TRY(fetch(m, w->x, (rows){0, 0}, &in[0]));
        m->g->nodes[id].in[0] = in[0];
        make_instead(m, id, v, to, by);
        return OT_OK;
    }
    ot_id x;
    OT_TRY(fetch(m, w->x, (rows){0, 0}, &x));
    if (all.before > 0) OT_TRY(slice(m, x, extent - all.before, extent, v, &in[n++]));
    in[n++] = x;
    if (all.behind > 0) OT_TRY(slice(m, x, 0, all.behind, v, &in[n++]));
    const ot_attr axis = ot_mk_int("axis", AXIS);
    const char *name = ot_fresh_name(m->g->model, "tile/wrap/concat");
    const ot_node_def def = {
        .op = "Concat", .name = name, .in = {in, n}, .out = {&to, 1}, .attrs = {&axis, 1}};
    ot_node_remove(m->g, id);
    if (!name || ot_node_new(m->g, &def) == OT_NONE) return nomem(m);
    m->now[v] = to;
    m->held[v] = by;
    return OT_OK;
}

/* Operands as they are now: with the rows that the node wants of those that follow AXIS. */
static ot_status take_operands(moving *m, ot_id id, rows by)
{
    for (uint32_t j = 0; j < m->g->nodes[id].n_in; j++) {
        const ot_id v = m->g->nodes[id].in[j];
        ot_id to;
        if (v == OT_NONE || m->now[v] == OT_NONE) continue;
        const bool follows = m->follow[id] && m->follow[id][j] == AXIS;
        OT_TRY(fetch(m, v, follows ? by : (rows){0, 0}, &to));
        if (to == v) continue;
        m->g->nodes[id].in[j] = to;
        m->g->nodes[id].proto = NULL;
    }
    return OT_OK;
}

static ot_status write_node(moving *m, ot_id id)
{
    const ot_node was = m->g->nodes[id];
    const wrap *w = &m->wraps[id];
    const rows by = was.n_out > 0 && was.out[0] != OT_NONE ? m->want[was.out[0]] : (rows){0, 0};
    const int64_t stride = m->stride[id];
    if (was.dead) return OT_OK;
    if (w->x != OT_NONE && w->goes) return drop_wrap(m, id);
    if (by.before + by.behind == 0) return take_operands(m, id, (rows){0, 0});
    if (w->x != OT_NONE) return widen_wrap(m, id, by);
    const ot_id v = was.out[0];
    ot_id to;
    OT_TRY(take_operands(m, id, (rows){by.before * stride, by.behind * stride}));
    OT_TRY(new_rows(m, v, by.before + m->g->values[v].dims[AXIS] + by.behind, &to));
    make_instead(m, id, v, to, by);
    return OT_OK;
}

/* Slices that one Concat alone reads, which goes, or is written anew. */
static void drop_slices(moving *m, ot_id id)
{
    const ot_graph *g = m->g;
    const ot_node *n = &g->nodes[id];
    const wrap *w = &m->wraps[id];
    const rows by = m->want[n->out[0]];
    if (!w->goes && by.before + by.behind == 0) return;
    for (uint32_t j = 0; j < n->n_in; j++) {
        const ot_value *v = &g->values[n->in[j]];
        if (n->in[j] != w->x && v->n_uses == 1 && !v->is_output) ot_node_remove(m->g, v->producer);
    }
}

static ot_status write_all(moving *m, uint32_t n_values)
{
    ot_graph *g = m->g;
    const uint32_t n_order = g->n_order;
    ot_id *order = ot_memdup(m->a, g->order, n_order * sizeof *order);
    bool *named = OT_NEW_N(m->a, bool, n_values + 1u);
    if (!order || !named) return nomem(m);
    for (ot_id v = 0; v < n_values; v++) named[v] = is_named(g, v);
    for (uint32_t k = 0; k < n_order; k++)
        if (m->wraps[order[k]].x != OT_NONE && g->nodes[order[k]].op == OT_OP_Concat)
            drop_slices(m, order[k]);
    for (uint32_t k = 0; k < n_order; k++) OT_TRY(write_node(m, order[k]));
    for (ot_id v = 0; v < n_values; v++) {
        ot_id to;
        if (named[v] && m->now[v] != OT_NONE) OT_TRY(fetch(m, v, (rows){0, 0}, &to));
    }
    g->props &= ~(unsigned)(OT_P_ORDER | OT_P_USES);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}

ot_status ot_move_wraps(ot_graph *g, uint32_t *n)
{
    ot_arena *a = ot_arena_new();
    const uint32_t n_values = g->n_values;
    moving m = {.g = g, .a = a};
    *n = 0;
    if (!a) return ot_fail_nomem(g->model->diag);
    m.wraps = OT_NEW_N(a, wrap, g->n_nodes + 1u);
    m.stride = OT_NEW_N(a, int64_t, g->n_nodes + 1u);
    m.follow = OT_NEW_N(a, int8_t *, g->n_nodes + 1u);
    m.period = OT_NEW_N(a, int64_t, n_values + 1u);
    m.want = OT_NEW_N(a, rows, n_values + 1u);
    m.held = OT_NEW_N(a, rows, n_values + 1u);
    m.now = OT_NEW_N(a, ot_id, n_values + 1u);
    m.plain = OT_NEW_N(a, bool, n_values + 1u);
    const bool ok = m.wraps && m.stride && m.follow && m.period && m.want && m.held && m.now &&
                    m.plain;
    ot_status s = ok ? OT_OK : nomem(&m);
    for (ot_id v = 0; ok && v < n_values; v++) m.now[v] = OT_NONE;
    if (s == OT_OK && g->model->opset >= SINCE) {
        s = find_nodes(&m);
        if (s == OT_OK) *n = find_rows(&m);
        if (s == OT_OK && *n > 0) s = write_all(&m, n_values);
    }
    ot_arena_free(a);
    return s;
}
