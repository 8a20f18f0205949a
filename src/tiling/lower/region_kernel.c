/* From a planned region to a kernel: the tile loop nest that the planner of buffers works on.
 *
 *   region r3, H in 14 tiles       kernel region_3 target "tlf-16m" {
 *                                    param x: 1x64x56x56 f32 @gm
 *      x --conv--relu--conv--y       param w0: 64x64x3x3 f32 @gm ...
 *                                    alloc w0_l2: 64x64x3x3 f32 @l2         weights that stay: once
 *                                    load w0_l2 <- w0
 *                                    for t0 in 0..14 {
 *                                      alloc x_tile: 1x64x8x56 f32 @l2 multi=2
 *                                      load x_tile <- x[0:1, 0:64, 4*t0-2:4*t0+6, 0:56]
 *                                      alloc conv_1: 1x64x6x56 f32 @l2
 *                                      conv_1 = cube.conv(x_tile, w0_l2)
 *                                      ...
 *                                      store y[0:1, 0:64, 4*t0:4*t0+4, 0:56] <- y_tile
 *
 * What gets a buffer, and for how long, is what the cost model counts (cost/region_figures.c):
 *
 *   input cut somewhere    loaded in every tile, right before its first reader; two slots where DMA
 *                          overlaps compute
 *                          (region.overlap).
 *                          Form scan on a cache: no buffer, the operators read slices of the outer
 *                          tensor
 *   input read whole       no buffer: its readers take it from where it is (K and V of attention)
 *   weights                one buffer each, loaded before the loops, when they stay
 *                          (region.weights_stay); else none: their
 *                          readers stream them, or find them in a memory of their own
 *   what an operator makes a buffer; an output of the region is stored right away, two slots as for
 *   inputs
 *   rows that are carried  form stream: a buffer for those of each value, there during the whole
 *                          loop; what is made stands behind them.
 *                          Line buffers (region.rolling): of inputs, too; readers take both where
 *                          they lie, and with the last of
 *                          them the rows that are wanted again become those of the next step.
 *                          Strips come one after the other:
 *                          the loop over columns is the outer one then
 *   reshapes               another name of their input where the tiles have the same bytes, else an
 *                          operator
 *   parts of a reduction   one per tile of the axes that are reduced, in front of the output's axes
 *   work memory            filled by `pack` from the input, read by the operator (column buffers,
 *                          other layouts)
 *
 * Every buffer has the size of the largest tile. Windows are affine in the loop variables: they
 * hold for tiles away from the borders (there the text reads outside the tensor; the tile is
 * really cut off), and exactly when there are two tiles.
 */
#include "region_lowering.h"

/* The computation that comes next is that of this node of the region; OT_NONE: of none. */
static bool next_is(lowering *l, uint32_t node)
{
    return OT_PUSH(l->a, l->nodes, l->n_nodes, l->cap_nodes, node);
}

/* ---- declarations ---- */

static uint32_t declare(lowering *l, const char *name, const char *suffix, const char *type,
                        const int64_t *dims, uint32_t rank)
{
    const char *own = ot_region_name(&l->names, name, suffix);
    return own ? ot_kb_param(l->b, own, type, dims, rank) : OT_NONE;
}

static uint32_t allocate(lowering *l, const char *name, const char *suffix, const char *type,
                         const int64_t *dims, uint32_t rank, uint32_t multi)
{
    const char *own = ot_region_name(&l->names, name, suffix);
    const ot_tk_storage in = {.scope = OT_SCOPE_L2, .multi = multi};
    return own ? ot_kb_alloc(l->b, own, type, dims, rank, in) : OT_NONE;
}

/* Slots of a tile that is loaded or stored: as the cost model counts them (ot_double_buffers). */
static uint32_t slots(const lowering *l) { return l->r->overlap ? 2 : 1; }

/* Shape of a constant; false when it is empty or unknown. */
static bool constant_shape(const ot_value *x, int64_t dims[OT_TK_RANK_MAX], uint32_t *rank,
                           const char **type)
{
    int64_t bytes;
    *type = ot_region_type_name(x->dtype);
    *rank = 1;
    if (!*type || !ot_value_bytes(x, &bytes) || bytes == 0 || !ot_value_elems(x, &dims[0]))
        return false;
    if (x->rank > 0 && x->rank <= OT_TK_RANK_MAX) {
        *rank = (uint32_t)x->rank;
        memcpy(dims, x->dims, *rank * sizeof *dims);
    }
    return true;
}

/* Does node i make anything in a tile? Not where nobody reads what it makes. */
static bool computes(const lowering *l, uint32_t i)
{
    const ot_rnode *x = &l->r->nodes[i];
    shape s;
    for (uint32_t o = 0; o < l->g->nodes[x->node].n_out; o++)
        if (x->out[o] != OT_NONE && lower_shape(l, x->out[o], &s)) return true;
    return false;
}

/* Constants that node i reads whole: parameters, each once. */
static ot_status declare_weights(lowering *l, uint32_t i)
{
    const ot_node *n = &l->g->nodes[l->r->nodes[i].node];
    if (!computes(l, i)) return OT_OK;
    for (uint32_t j = 0; j < n->n_in && !ot_op_is_view(n->op); j++) {
        ot_id v = n->in[j];
        int64_t dims[OT_TK_RANK_MAX];
        uint32_t rank;
        const char *type;
        if (v == OT_NONE || l->r->nodes[i].in[j] != OT_NONE) continue;
        const ot_value *x = &l->g->values[v];
        if (ot_map_get(l->weight_of, x->name) != OT_NONE || !constant_shape(x, dims, &rank, &type))
            continue;
        uint32_t p = declare(l, x->name, "", type, dims, rank);
        weight w = {v, p};
        if (p == OT_NONE || !ot_map_put(l->weight_of, x->name, l->n_weights)) return lower_nomem(l);
        if (!OT_PUSH(l->a, l->weights, l->n_weights, l->cap_weights, w)) return lower_nomem(l);
    }
    return OT_OK;
}

static ot_status declare_all(lowering *l)
{
    const ot_region *r = l->r;
    shape s;
    for (uint32_t v = 0; v < r->n_values; v++) {
        bool outer = v < r->n_inputs || r->values[v].is_output;
        l->param[v] = l->tile[v] = OT_NONE;
        if (!outer || !lower_shape(l, v, &s)) continue;
        l->param[v] = declare(l, l->g->values[r->values[v].value].name, "", s.type, s.whole,
                              s.rank);
        if (l->param[v] == OT_NONE) return lower_nomem(l);
    }
    for (uint32_t i = 0; i < r->n_nodes; i++) OT_TRY(declare_weights(l, i));
    return OT_OK;
}

/* Weights that stay move into the fast memory once. */
static ot_status load_weights(lowering *l)
{
    for (uint32_t k = 0; k < l->n_weights; k++) {
        weight *w = &l->weights[k];
        const ot_value *x = &l->g->values[w->value];
        int64_t dims[OT_TK_RANK_MAX];
        uint32_t rank;
        const char *type;
        if (!constant_shape(x, dims, &rank, &type)) continue;
        uint32_t buffer = allocate(l, x->name, "_l2", type, dims, rank, 1);
        if (buffer == OT_NONE || !ot_kb_load(l->b, buffer, w->at, NULL, 0)) return lower_nomem(l);
        w->at = buffer;
    }
    return OT_OK;
}

/* Rows that steps hand on: nothing at first. */
static ot_status declare_rows(lowering *l)
{
    for (uint32_t v = 0; v < l->r->n_values; v++) {
        shape s;
        if (l->kept[v] == 0 || !lower_shape(l, v, &s)) continue;
        for (uint32_t k = 0; k < s.rank; k++)
            if (s.dim[k] == 0) s.tile[k] = l->kept[v];
        l->rows[v] = allocate(l, l->g->values[l->r->values[v].value].name, "_rows", s.type, s.tile,
                              s.rank, 1);
        if (l->rows[v] == OT_NONE || !next_is(l, OT_NONE) ||
            !ot_kb_compute(l->b, OT_PIPE_VECTOR, "clear", &l->rows[v], 1, NULL, 0))
            return lower_nomem(l);
    }
    return OT_OK;
}

/* ---- the tile ---- */

/* Rows that are wanted again, from what the step has of value v to where the next one looks for
 * them. */
static ot_status keep_rows(lowering *l, uint32_t v)
{
    uint32_t from[2] = {l->tile[v], l->rows[v]};
    if (l->rows[v] == OT_NONE || l->tile[v] == OT_NONE) return OT_OK;
    return next_is(l, OT_NONE) && ot_kb_compute(l->b, OT_PIPE_VECTOR, "keep", &l->rows[v], 1, from,
                                                l->r->rolling ? 2 : 1)
               ? OT_OK
               : lower_nomem(l);
}

/* What holds region input v in a tile; brought in when it is wanted first. OT_NONE: it has no tile.
 */
static ot_status bring_input(lowering *l, uint32_t v, uint32_t *out)
{
    shape s;
    ot_tk_range ranges[OT_TK_RANK_MAX];
    bool in_place = !ot_runtime_brings_inputs(l->t->runtime, l->r->form);
    *out = l->tile[v];
    if (*out != OT_NONE || l->param[v] == OT_NONE) return OT_OK;
    if (!lower_is_cut(l, v) || in_place) {
        *out = l->tile[v] = l->param[v];
        return OT_OK;
    }
    if (!lower_shape(l, v, &s)) return OT_OK;
    *out = l->tile[v] = allocate(l, l->g->values[l->r->values[v].value].name, "_tile", s.type,
                                 s.tile, s.rank, slots(l));
    if (*out == OT_NONE) return lower_nomem(l);
    lower_ranges(l, v, &s, false, ranges);
    return ot_kb_load(l->b, *out, l->param[v], ranges, s.rank) ? OT_OK : lower_nomem(l);
}

/* Operand j of node i; OT_NONE: omitted, empty, or of no size. */
static ot_status operand(lowering *l, uint32_t i, uint32_t j, uint32_t *out)
{
    const ot_node *n = &l->g->nodes[l->r->nodes[i].node];
    uint32_t v = l->r->nodes[i].in[j];
    *out = OT_NONE;
    if (n->in[j] == OT_NONE) return OT_OK;
    if (v == OT_NONE) {
        uint32_t at = ot_map_get(l->weight_of, l->g->values[n->in[j]].name);
        if (at != OT_NONE) *out = l->weights[at].at;
        return OT_OK;
    }
    if (v < l->r->n_inputs) return bring_input(l, v, out);
    *out = l->tile[v];
    return OT_OK;
}

/* The pieces of output v leave the fast memory. */
static ot_status store_piece(lowering *l, uint32_t v, const shape *s)
{
    ot_tk_range to[OT_TK_RANK_MAX], part[OT_TK_RANK_MAX];
    uint32_t from = l->tile[v];
    bool all = true;
    lower_ranges(l, v, s, true, to);
    for (uint32_t k = 0; k < s->rank; k++) {
        part[k] = (ot_tk_range){.hi = {.constant = s->tile[k]}};
        if (s->dim[k] < 0) continue;
        const span_of_tiles *x = &l->span[s->dim[k]][v];
        part[k].lo.constant = x->inset;
        part[k].hi.constant = x->inset + x->piece;
        all = all && x->piece == s->tile[k];
    }
    if (!all) {
        const char *name = ot_region_name(&l->names, l->g->values[l->r->values[v].value].name,
                                          "_piece");
        from = name ? ot_kb_subview(l->b, name, from, part) : OT_NONE;
        if (from == OT_NONE) return lower_nomem(l);
    }
    return ot_kb_store(l->b, l->param[v], to, s->rank, from) ? OT_OK : lower_nomem(l);
}

/* Node i as another name of its input; *done false when it is an operator after all. */
static ot_status emit_view(lowering *l, uint32_t i, bool *done)
{
    const ot_rnode *rn = &l->r->nodes[i];
    const ot_node *n = &l->g->nodes[rn->node];
    shape to, from;
    int64_t a, b;
    uint32_t base, v = rn->out[0];
    *done = false;
    if (!ot_op_is_view(n->op) || n->n_in == 0 || rn->in[0] == OT_NONE || v == OT_NONE) return OT_OK;
    /* what it makes stands behind other rows */
    if (l->rows[v] != OT_NONE) return OT_OK;
    if (l->r->rolling && l->rows[rn->in[0]] != OT_NONE) return OT_OK; /* what it reads does */
    for (uint32_t o = 1; o < n->n_out; o++)
        if (rn->out[o] != OT_NONE) return OT_OK;
    if (!lower_shape(l, v, &to) || !lower_shape(l, rn->in[0], &from) ||
        !lower_tile_bytes(&to, &a) || !lower_tile_bytes(&from, &b))
        return OT_OK;
    OT_TRY(operand(l, i, 0, &base));
    bool outer = rn->in[0] < l->r->n_inputs && base == l->param[rn->in[0]];
    if (base == OT_NONE || a != b || outer) return OT_OK;
    const char *name = ot_region_name(&l->names, l->g->values[l->r->values[v].value].name, "_tile");
    l->tile[v] = name ? ot_kb_alias(l->b, name, base, to.type, to.tile, to.rank) : OT_NONE;
    if (l->tile[v] == OT_NONE) return lower_nomem(l);
    *done = true;
    return l->r->values[v].is_output ? store_piece(l, v, &to) : OT_OK;
}

/* Name of n's operation: its operator in lower case. One of another domain has a name of its own,
 * for what is known of the standard's does not hold for it. */
static const char *operation_name(lowering *l, const ot_node *n)
{
    char *s = ot_format(l->a, "%s%s", n->op == OT_OP_OPAQUE ? "contrib_" : "", n->op_type);
    for (char *c = s; c && *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    return s;
}

/* Scratch of node i, written from its input before it runs. */
static ot_status emit_work(lowering *l, uint32_t i, const uint32_t *in, uint32_t n_in,
                           uint32_t *out)
{
    const ot_rnode *rn = &l->r->nodes[i];
    const ot_node *n = &l->g->nodes[rn->node];
    double bytes = rn->work;
    for (uint32_t d = 0; d < l->r->n_dims; d++) bytes *= l->share[d][i];
    *out = OT_NONE;
    if (!(bytes >= 1) || bytes > 1e15 || n_in == 0) return OT_OK;
    int64_t dims[1] = {(int64_t)bytes};
    *out = allocate(l, n->name[0] ? n->name : n->op_type, "_work", "u8", dims, 1, 1);
    if (*out == OT_NONE) return lower_nomem(l);
    return next_is(l, OT_NONE) && ot_kb_compute(l->b, OT_PIPE_VECTOR, "pack", out, 1, in, 1)
               ? OT_OK
               : lower_nomem(l);
}

/* Append the buffers of carried rows that node i works on. */
static uint32_t add_rows(const lowering *l, uint32_t i, uint32_t *in, uint32_t n_in)
{
    const ot_rnode *rn = &l->r->nodes[i];
    const ot_node *n = &l->g->nodes[rn->node];
    for (uint32_t j = 0; l->r->rolling && j < n->n_in; j++)
        if (rn->in[j] != OT_NONE && l->rows[rn->in[j]] != OT_NONE)
            in[n_in++] = l->rows[rn->in[j]]; /* they come before what is new */
    for (uint32_t o = 0; !l->r->rolling && o < n->n_out; o++)
        if (rn->out[o] != OT_NONE && l->rows[rn->out[o]] != OT_NONE)
            in[n_in++] = l->rows[rn->out[o]]; /* before what is made */
    return n_in;
}

/* Line buffers: node i was the last to read these. */
static ot_status keep_read(lowering *l, uint32_t i)
{
    const ot_rnode *rn = &l->r->nodes[i];
    const ot_node *n = &l->g->nodes[rn->node];
    for (uint32_t j = 0; l->r->rolling && j < n->n_in; j++) {
        const uint32_t v = rn->in[j];
        bool again = v == OT_NONE || l->last[v] != i;
        for (uint32_t k = 0; k < j; k++) again |= rn->in[k] == v;
        if (!again) OT_TRY(keep_rows(l, v));
    }
    return OT_OK;
}

static ot_status emit_node(lowering *l, uint32_t i)
{
    const ot_rnode *rn = &l->r->nodes[i];
    const ot_node *n = &l->g->nodes[rn->node];
    uint32_t n_in = 0, n_out = 0, work;
    uint32_t *in = OT_NEW_N(l->a, uint32_t, 2 * n->n_in + n->n_out + 1u),
             *out = OT_NEW_N(l->a, uint32_t, n->n_out + 1u);
    const char *name = operation_name(l, n);
    shape s;
    bool done;
    if (!in || !out || !name) return lower_nomem(l);
    OT_TRY(emit_view(l, i, &done));
    if (done) return OT_OK;
    for (uint32_t j = 0; j < n->n_in; j++) {
        OT_TRY(operand(l, i, j, &in[n_in]));
        n_in += in[n_in] != OT_NONE;
    }
    OT_TRY(emit_work(l, i, in, n_in, &work));
    if (work != OT_NONE) in[n_in++] = work;
    for (uint32_t o = 0; o < n->n_out; o++) {
        uint32_t v = rn->out[o];
        if (v == OT_NONE || !lower_shape(l, v, &s)) continue;
        uint32_t multi = l->r->values[v].is_output ? slots(l) : 1;
        out[n_out] = allocate(l, l->g->values[n->out[o]].name, "_tile", s.type, s.tile, s.rank,
                              multi);
        if (out[n_out] == OT_NONE) return lower_nomem(l);
        l->tile[v] = out[n_out++];
    }
    n_in = add_rows(l, i, in, n_in);
    ot_cost_kind kind = ot_op_cost(n->op);
    ot_pipe pipe = kind == OT_COST_CONV || kind == OT_COST_GEMM ? OT_PIPE_CUBE : OT_PIPE_VECTOR;
    if (n_out == 0) return OT_OK;
    if (!next_is(l, i) || !ot_kb_compute(l->b, pipe, name, out, n_out, in, n_in))
        return lower_nomem(l);
    for (uint32_t o = 0; o < n->n_out; o++) {
        uint32_t v = rn->out[o];
        if (v != OT_NONE && !l->r->rolling) OT_TRY(keep_rows(l, v));
        if (v == OT_NONE || !l->r->values[v].is_output || l->tile[v] == OT_NONE ||
            !lower_shape(l, v, &s))
            continue;
        OT_TRY(store_piece(l, v, &s));
    }
    return keep_read(l, i);
}

/* ---- the nest ---- */

static ot_status emit_all(lowering *l)
{
    static const char *const variables[OT_DIMS_MAX] = {"t0", "t1", "t2"};
    const ot_region *r = l->r;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        l->var[d] = ot_region_name(&l->names, variables[d], ""); /* before all others */
        if (!l->var[d]) return lower_nomem(l);
        OT_TRY(lower_measure(l, d));
    }
    OT_TRY(declare_all(l));
    if (r->weights_stay && !ot_target_weights_apart(l->t, r->weight_bytes)) OT_TRY(load_weights(l));
    for (uint32_t d = 1; r->rolling && d < r->n_dims; d++)
        if (!ot_kb_for(l->b, l->var[d], 0, r->dims[d].n_tiles, 1)) return lower_nomem(l);
    OT_TRY(declare_rows(l));
    for (uint32_t d = 0; d < (r->rolling ? 1 : r->n_dims); d++)
        if (!ot_kb_for(l->b, l->var[d], 0, r->dims[d].n_tiles, 1)) return lower_nomem(l);
    for (uint32_t i = 0; i < r->n_nodes; i++) OT_TRY(emit_node(l, i));
    for (uint32_t d = 0; d < r->n_dims; d++)
        if (!ot_kb_end(l->b)) return lower_nomem(l);
    return OT_OK;
}

static bool prepare(lowering *l)
{
    char name[32];
    snprintf(name, sizeof name, "region_%u", l->r->id);
    l->a = ot_arena_new();
    if (!l->a || !ot_region_names_init(&l->names, l->a)) return false;
    l->weight_of = ot_map_new(l->a);
    l->param = OT_NEW_N(l->a, uint32_t, l->r->n_values + 1u);
    l->tile = OT_NEW_N(l->a, uint32_t, l->r->n_values + 1u);
    l->kept = OT_NEW_N(l->a, int64_t, l->r->n_values + 1u);
    l->rows = OT_NEW_N(l->a, uint32_t, l->r->n_values + 1u);
    l->last = ot_region_last_readers(l->g, l->r, l->a);
    if (!l->rows || !l->kept || !l->last) return false;
    for (uint32_t v = 0; v < l->r->n_values; v++) l->rows[v] = OT_NONE;
    l->b = ot_kernel_build(name, l->t->name[0] ? l->t->name : NULL);
    return l->weight_of && l->param && l->tile && l->b;
}

/* Copy what holds the values out of the scratch. */
static bool keep_held(const lowering *l, ot_region_held *h, ot_arena *a)
{
    ot_region_weight *w = OT_NEW_N(a, ot_region_weight, l->n_weights + 1u);
    h->value = ot_memdup(a, l->tile, (l->r->n_values + 1u) * sizeof *l->tile);
    h->rows = ot_memdup(a, l->rows, (l->r->n_values + 1u) * sizeof *l->rows);
    h->weights = w;
    h->n_weights = l->n_weights;
    double *work = OT_NEW_N(a, double, l->r->n_nodes + 1u);
    h->nodes = ot_memdup(a, l->nodes, l->n_nodes * sizeof *l->nodes);
    h->n_nodes = l->n_nodes;
    h->work = work;
    for (uint32_t i = 0; work && i < l->r->n_nodes; i++) {
        work[i] = ot_node_macs(l->g, &l->g->nodes[l->r->nodes[i].node]);
        for (uint32_t d = 0; d < l->r->n_dims; d++) work[i] *= l->share[d][i];
    }
    for (uint32_t k = 0; w && k < l->n_weights; k++)
        w[k] = (ot_region_weight){l->weights[k].value, l->weights[k].at};
    return h->value && h->rows && w && work && h->nodes;
}

ot_status ot_region_kernel_held(const ot_region_job *j, ot_region_held *h, ot_kernel **out)
{
    lowering l = {.g = j->g, .r = j->r, .t = j->t, .d = j->d};
    ot_status st = prepare(&l) ? emit_all(&l) : lower_nomem(&l);
    *out = NULL;
    if (st == OT_OK && h && !keep_held(&l, h, j->a)) st = lower_nomem(&l);
    if (st == OT_OK) {
        *out = ot_kb_finish(l.b);
        if (!*out) st = lower_nomem(&l);
    } else {
        ot_kb_drop(l.b);
    }
    ot_arena_free(l.a);
    return st;
}
