/* Nobody computes what nobody reads: values become the parts of them that are read.
 *
 *     x --Conv--> a --Relu--> b --Slice [-1:]--> y
 *     x --Slice [E-3:]--> . --Conv--> a' --Relu--> b' --> y       a', b' [.., 1]
 *
 * The windows are narrow_find.c's, and nodes are written for them as for tiles (ops/adapt.c): each
 * result is the same numbers from the same operands. What has become narrower has a name of its
 * own, "tile/part/<name>"; what readers want less of than there is goes through a Slice.
 *
 * requires ORDER, USES, SHAPES of static extents; keeps them.
 */
#include "narrow.h"

#include "transform_internal.h"

#define SLICE_HAS_INPUTS 10

/* Nodes being written. */
typedef struct writer {
    nr_graph *x;
    ot_graph *g;
    ot_id *now;   /* [x->n_values] the value that holds what is made of it; itself */
    ot_map *cuts; /* "<value>;<lo>,<hi>;..." -> Slice of it */
} writer;

static ot_status nomem(const writer *w) { return ot_fail_nomem(w->g->model->diag); }

static const char *fresh(const writer *w, const char *name)
{
    const char *base = ot_format(w->g->model->arena, "tile/part/%s", name);
    return base ? ot_fresh_name(w->g->model, base) : NULL;
}

static ot_status new_value(const writer *w, const ot_value *like, const int64_t *dims, ot_id *out)
{
    const ot_value v = *like; /* the table may move */
    const char *name = fresh(w, v.name);
    *out = name ? ot_value_new(w->g, name, v.dtype, v.rank, dims) : OT_NONE;
    return *out == OT_NONE ? nomem(w) : OT_OK;
}

static ot_status new_node(const writer *w, const char *name, ot_node_def *def)
{
    def->name = fresh(w, name);
    return def->name && ot_node_new(w->g, def) != OT_NONE ? OT_OK : nomem(w);
}

/* ---- parts of values ---- */

/* What there is of v, as windows of the original. */
static void held(const nr_graph *x, ot_id v, ot_win *at)
{
    const ot_value *value = &x->g->values[v];
    for (int32_t d = 0; d < value->rank; d++)
        at[d] = x->made[v].at ? x->made[v].at[d] : (ot_win){0, value->dims[d]};
}

static const char *cut_key(const writer *w, ot_id v, const ot_win *at, int32_t rank)
{
    char text[32 + OT_RANK_MAX * 48];
    size_t n = (size_t)snprintf(text, sizeof text, "%u", v);
    for (int32_t d = 0; d < rank; d++)
        n += (size_t)snprintf(text + n, sizeof text - n, ";%lld,%lld", (long long)at[d].lo,
                              (long long)at[d].hi);
    return ot_strdup(w->x->a, text);
}

/* Slice of `from`, of what is held of the original v: its part `at`, in *out or a new value. */
static ot_status slice(const writer *w, ot_id v, const ot_win *at, ot_id *out)
{
    const ot_value like = w->g->values[v];
    ot_arena *a = w->g->model->arena;
    ot_win from[OT_RANK_MAX];
    int64_t lo[OT_RANK_MAX], hi[OT_RANK_MAX], axes[OT_RANK_MAX], dims[OT_RANK_MAX], n = 0;
    held(w->x, v, from);
    for (int32_t d = 0; d < like.rank; d++) {
        dims[d] = at[d].hi - at[d].lo;
        if (at[d].lo == from[d].lo && at[d].hi == from[d].hi) continue;
        axes[n] = d;
        lo[n] = at[d].lo - from[d].lo;
        hi[n++] = at[d].hi - from[d].lo;
    }
    if (*out == OT_NONE) OT_TRY(new_value(w, &like, dims, out));
    ot_id in[4] = {w->now[v], OT_NONE, OT_NONE, OT_NONE};
    if (w->g->model->opset < SLICE_HAS_INPUTS) {
        const ot_attr list[3] = {ot_mk_ints(a, "axes", axes, (size_t)n),
                                 ot_mk_ints(a, "starts", lo, (size_t)n),
                                 ot_mk_ints(a, "ends", hi, (size_t)n)};
        for (int k = 0; k < 3; k++)
            if (list[k].kind != OT_ATTR_INTS) return nomem(w);
        return new_node(
            w, like.name,
            &(ot_node_def){.op = "Slice", .in = {in, 1}, .out = {out, 1}, .attrs = {list, 3}});
    }
    OT_TRY(ot_const_ints(w->g, "tile/part/starts", lo, n, &in[1]));
    OT_TRY(ot_const_ints(w->g, "tile/part/ends", hi, n, &in[2]));
    OT_TRY(ot_const_ints(w->g, "tile/part/axes", axes, n, &in[3]));
    return new_node(w, like.name, &(ot_node_def){.op = "Slice", .in = {in, 4}, .out = {out, 1}});
}

/* The part `at` of the original v: what there is, or a Slice of it, which all who want it share. */
static ot_status part(const writer *w, ot_id v, const ot_win *at, ot_id *out)
{
    const int32_t rank = w->g->values[v].rank;
    ot_win from[OT_RANK_MAX];
    bool same = true;
    held(w->x, v, from);
    for (int32_t d = 0; d < rank; d++) same &= at[d].lo == from[d].lo && at[d].hi == from[d].hi;
    *out = w->now[v];
    if (same) return OT_OK;
    const char *key = cut_key(w, v, at, rank);
    if (!key) return nomem(w);
    if ((*out = ot_map_get(w->cuts, key)) != OT_NONE) return OT_OK;
    OT_TRY(slice(w, v, at, out));
    return ot_map_put(w->cuts, key, *out) ? OT_OK : nomem(w);
}

/* ---- nodes ---- */

static ot_status operand(const writer *w, ot_id id, uint32_t j, ot_id *out)
{
    const ot_id v = w->g->nodes[id].in[j];
    ot_win at[OT_RANK_MAX];
    *out = v;
    if (v == OT_NONE) return OT_OK;
    if (!nr_operand(w->x, id, j, at)) OT_BUG("a node reads nothing of an operand that it keeps");
    return part(w, v, at, out);
}

/* Where output o of node id goes: *out is the value itself where all of it is made. unused: what
 * nobody reads gets a value, too. */
static ot_status result(const writer *w, ot_id id, uint32_t o, bool unused, ot_id *out)
{
    const ot_node n = w->g->nodes[id];
    const nr_node *to = &w->x->nodes[id];
    int64_t dims[OT_RANK_MAX];
    *out = n.out[o];
    if (*out == OT_NONE) return OT_OK;
    const ot_value *v = &w->g->values[*out];
    const bool read = w->x->need[*out].any;
    if (!read && !unused) *out = OT_NONE;
    if (*out == OT_NONE || (read && !nr_is_narrow(w->x, *out))) return OT_OK;
    for (int32_t d = 0; d < v->rank; d++)
        dims[d] = read ? ot_win_len(w->x->made[n.out[o]].at[d]) : v->dims[d];
    for (uint32_t k = 0; k < to->n_axes && !read; k++)
        if (to->in_axis[k][n.n_in + o] >= 0)
            dims[to->in_axis[k][n.n_in + o]] = ot_win_len(to->axes[k].tile->made);
    return new_value(w, v, dims, out);
}

/* The node hands operand j on as it is. */
static ot_status forward(const writer *w, ot_id id, uint32_t j)
{
    const ot_node n = w->g->nodes[id];
    const ot_id v = n.out[w->x->nodes[id].lead];
    ot_id from;
    OT_TRY(operand(w, id, j, &from));
    if (nr_is_narrow(w->x, v)) {
        w->now[v] = from;
        return OT_OK;
    }
    ot_node_remove(w->g, id);
    return new_node(w, n.name[0] ? n.name : n.op_type,
                    &(ot_node_def){.op = "Identity", .in = {&from, 1}, .out = {&v, 1}});
}

/* Operands of the adapted node ([*n] in *list). */
static ot_status operands(const writer *w, ot_id id, const ot_adapted *to, ot_id **list,
                          uint32_t *n)
{
    const ot_node was = w->g->nodes[id];
    const uint32_t all = ot_adapted_room(to, was.n_in);
    ot_id *in = OT_NEW_N(w->x->a, ot_id, all + 1u);
    if (!in) return nomem(w);
    *list = in;
    *n = 0;
    for (uint32_t j = 0; j < all; j++) {
        const ot_operand *changed = ot_adapted_operand(to, j);
        if (!changed && j < was.n_in && to->drop && to->drop[j]) continue;
        ot_id *at = &in[(*n)++];
        *at = OT_NONE;
        if (changed && !changed->omit) {
            const char *name = fresh(w, "operand");
            const ot_tensor *t = changed->tensor;
            *at = name ? ot_value_new(w->g, name, t->dtype, (int32_t)t->rank, t->dims) : OT_NONE;
            if (*at == OT_NONE) return nomem(w);
            w->g->values[*at].init = t;
            w->g->values[*at].is_const = true;
        } else if (!changed && j < was.n_in) {
            OT_TRY(operand(w, id, j, at));
        }
    }
    while (*n > 0 && in[*n - 1] == OT_NONE) (*n)--;
    return OT_OK;
}

/* The indices of a PICK, counted from the first row that is read. */
static ot_status new_indices(const writer *w, ot_id id, ot_id *out)
{
    const ot_node n = w->g->nodes[id];
    const nr_node *to = &w->x->nodes[id];
    const ot_value v = w->g->values[n.in[1]];
    const int64_t extent = w->g->values[n.in[0]].dims[to->along];
    int64_t *data = OT_NEW_N(w->x->a, int64_t, OT_KNOWN_MAX);
    const char *name = fresh(w, v.name);
    if (!data || !name) return nomem(w);
    const int64_t count = nr_known(&v, data);
    for (int64_t k = 0; k < count; k++)
        data[k] = (data[k] < 0 ? data[k] + extent : data[k]) - to->picked.lo;
    *out = ot_const_i64(w->g, name, data, v.rank, v.dims);
    return *out == OT_NONE ? nomem(w) : OT_OK;
}

/* Results of the node, and the written node, which takes its place. */
static ot_status replace(const writer *w, ot_id id, const ot_adapted *to, ot_id *in, uint32_t n_in)
{
    const ot_node was = w->g->nodes[id];
    const bool all = ot_makes_all_outputs(&was);
    ot_id *out = OT_NEW_N(w->x->a, ot_id, was.n_out + 1u);
    uint32_t n_out = was.n_out;
    if (!out) return nomem(w);
    for (uint32_t o = 0; o < was.n_out; o++) {
        OT_TRY(result(w, id, o, all, &out[o]));
        if (out[o] != OT_NONE && w->x->need[was.out[o]].any) w->now[was.out[o]] = out[o];
    }
    while (n_out > 0 && out[n_out - 1] == OT_NONE) n_out--;
    ot_node_remove(w->g, id);
    return new_node(w, was.name[0] ? was.name : was.op_type,
                    &(ot_node_def){.op = to->op_type ? to->op_type : was.op_type,
                                   .domain = was.domain,
                                   .in = {in, n_in},
                                   .out = {out, n_out},
                                   .attrs = {to->attrs, to->n_attrs}});
}

static ot_status write_cut(const writer *w, ot_id id)
{
    const ot_node was = w->g->nodes[id];
    const nr_node *to = &w->x->nodes[id];
    ot_adapted how;
    ot_id *in = NULL;
    uint32_t n_in = 0;
    if (ot_tile_adapt(w->g, &was, to->axes, to->n_axes, w->g->model->arena, &how) != OT_OK)
        return nomem(w);
    if (how.kind == OT_ADAPT_FORWARD) return forward(w, id, how.forward);
    OT_TRY(operands(w, id, &how, &in, &n_in));
    if (to->kind == NR_PICK) OT_TRY(new_indices(w, id, &in[1]));
    return replace(w, id, &how, in, n_in);
}

/* Each result that is read is a Slice by itself. */
static ot_status write_split(const writer *w, ot_id id)
{
    const ot_node was = w->g->nodes[id];
    const int32_t along = w->x->nodes[id].along;
    ot_node_remove(w->g, id);
    for (uint32_t o = 0; o < was.n_out; o++) {
        const ot_id v = was.out[o];
        ot_win at[OT_RANK_MAX];
        if (!w->x->need[v].any) continue;
        const int64_t from = nr_split_start(w->g, &was, o, along);
        for (int32_t d = 0; d < w->g->values[v].rank; d++) at[d] = w->x->need[v].at[d];
        at[along] = (ot_win){at[along].lo + from, at[along].hi + from};
        if (nr_is_narrow(w->x, v)) {
            OT_TRY(part(w, was.in[0], at, &w->now[v]));
        } else {
            ot_id out = v;
            OT_TRY(slice(w, was.in[0], at, &out));
        }
    }
    return OT_OK;
}

/* Something of what the node makes or reads has become narrower. */
static bool has_changed(const nr_graph *x, ot_id id)
{
    const ot_node *n = &x->g->nodes[id];
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->out[o] != OT_NONE && nr_is_narrow(x, n->out[o])) return true;
    for (uint32_t j = 0; j < n->n_in; j++)
        if (n->in[j] != OT_NONE && nr_is_narrow(x, n->in[j])) return true;
    return false;
}

/* What shape arithmetic computes of values that have become narrower, or are no more. */
static ot_status fold(const writer *w, ot_id id)
{
    const ot_node n = w->g->nodes[id];
    bool gone = false;
    for (uint32_t j = 0; j < n.n_in; j++) {
        const ot_value *v = n.in[j] == OT_NONE ? NULL : &w->g->values[n.in[j]];
        gone |= v && (nr_is_narrow(w->x, n.in[j]) ||
                      (v->producer == OT_NONE && !v->init && !v->is_input && !v->is_outer));
    }
    if (!gone) return OT_OK;
    ot_node_remove(w->g, id);
    for (uint32_t o = 0; o < n.n_out; o++)
        if (n.out[o] != OT_NONE) OT_TRY(rw_fold_value(w->g, n.out[o]));
    return OT_OK;
}

static ot_status write_node(const writer *w, ot_id id)
{
    const nr_kind kind = w->x->nodes[id].kind;
    switch (kind) {
    case NR_UNREAD: ot_node_remove(w->g, id); return OT_OK;
    case NR_FOLDED: return fold(w, id);
    case NR_WHOLE: return OT_OK;
    default: break;
    }
    if (!has_changed(w->x, id)) return OT_OK;
    return kind == NR_SPLIT ? write_split(w, id) : write_cut(w, id);
}

/* ---- what it saves ---- */

/* The part of v that is made. */
static double share_made(const nr_graph *x, ot_id v)
{
    double share = 1;
    if (!nr_is_narrow(x, v)) return 1;
    for (int32_t d = 0; d < x->g->values[v].rank; d++)
        share *= (double)ot_win_len(x->made[v].at[d]) / (double)x->g->values[v].dims[d];
    return share;
}

/* Of nodes that run, and that outputs depend on. */
static void count(const nr_graph *x, ot_narrowed *out)
{
    const ot_graph *g = x->g;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        const bool unread = x->nodes[id].kind == NR_UNREAD;
        double least = 1;
        if (!x->live[id] || n->is_static) continue;
        for (uint32_t o = 0; o < n->n_out; o++) {
            int64_t bytes;
            if (n->out[o] == OT_NONE) continue;
            const double share = unread ? 0 : share_made(x, n->out[o]);
            least = share < least ? share : least;
            if (!ot_value_bytes(&g->values[n->out[o]], &bytes)) continue;
            out->all_bytes += (double)bytes;
            out->unread_bytes += (double)bytes * (1 - share);
        }
        const double macs = ot_node_macs(g, n);
        out->all_macs += macs;
        out->unread_macs += macs * (1 - least);
        out->n_nodes += least < 1;
    }
}

/* An initializer, or what a Constant makes, which runtimes take for one. */
static bool is_constant(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    if (x->producer != OT_NONE) return g->nodes[x->producer].op == OT_OP_Constant;
    return x->init && !x->is_input;
}

static ot_status write_all(const writer *w)
{
    ot_graph *g = w->g;
    const uint32_t n_order = g->n_order, n_values = w->x->n_values;
    ot_id *order = ot_memdup(w->x->a, g->order, n_order * sizeof *order);
    bool *was_read = OT_NEW_N(w->x->a, bool, n_values + 1u);
    if (!order || !was_read) return nomem(w);
    for (ot_id v = 0; v < n_values; v++) {
        w->now[v] = v;
        was_read[v] = g->values[v].n_uses > 0;
    }
    for (uint32_t k = 0; k < n_order; k++) OT_TRY(write_node(w, order[k]));
    /* what went on as it was under another name */
    for (uint32_t k = 0; k < n_order; k++)
        if (!g->nodes[order[k]].dead && w->x->nodes[order[k]].kind > NR_FOLDED &&
            has_changed(w->x, order[k]))
            ot_node_remove(g, order[k]);
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    for (ot_id v = 0; v < n_values; v++)
        if (was_read[v] && is_constant(g, v)) ot_value_drop_unread(g, v);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}

/* What is read, and whether enough is not: else out->n_nodes is 0. */
static ot_status look(ot_graph *g, ot_arena *a, nr_graph *x, ot_narrowed *out)
{
    *out = (ot_narrowed){0};
    if (!a) return ot_fail_nomem(g->model->diag);
    OT_TRY(nr_find(g, a, x));
    count(x, out);
    if (out->unread_macs < OT_NARROW_PAYS * out->all_macs &&
        out->unread_bytes < OT_NARROW_PAYS * out->all_bytes)
        out->n_nodes = 0;
    return OT_OK;
}

ot_status ot_find_unread(ot_graph *g, ot_narrowed *out)
{
    ot_arena *a = ot_arena_new();
    nr_graph x;
    const ot_status s = look(g, a, &x, out);
    ot_arena_free(a);
    return s;
}

ot_status ot_narrow(ot_graph *g, ot_narrowed *out)
{
    ot_arena *a = ot_arena_new();
    nr_graph x;
    ot_status s = look(g, a, &x, out);
    if (s == OT_OK && out->n_nodes > 0) {
        writer w = {&x, g, OT_NEW_N(a, ot_id, g->n_values + 1u), ot_map_new(a)};
        s = w.now && w.cuts ? write_all(&w) : ot_fail_nomem(g->model->diag);
    }
    ot_arena_free(a);
    return s;
}
