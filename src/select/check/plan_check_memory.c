/* The checker's view of the fast memory: a working set is a claim that one tile's buffers fit
 * into so many bytes.
 *
 * The planner of buffers is asked for its arena once more, and its offsets are taken as
 * evidence, not as truth. Which buffers there are, how long they are and when they live is found
 * here, from the windows and the region's nodes alone:
 *
 *   node    conv   relu    add     buffers, in the order in which the tile needs them
 *   x_tile  |===|                  brought for its first reader, gone after its last one; two slots
 *                                  are held all the time
 *   conv        |==|               from its node to its last reader
 *   relu           |=====|         may lie over conv, which dies there: operators that read an
 *                                  element before they write it
 *   w       |===================|  constants that stay
 *
 * Then: as many as the kernel allocates, of the same sizes; no two share a byte while both live,
 * but for such a pair; their top is the working set; its bound is the most that lives at once,
 * alignment aside.
 */
#include "tiling/lower/lowering.h"
#include "plan_check.h"

typedef struct buffer {
    int64_t bytes;     /* of a slot */
    uint32_t slots;    /* that the tile needs */
    uint32_t from, to; /* region nodes; a buffer lives while either runs, and between */
    uint32_t one;      /* index of a buffer whose storage it shares (union-find) */
    const int64_t *at; /* [n_at] offsets of its slots */
    uint32_t n_at;
} buffer;

typedef struct checker {
    const ot_graph *g;
    const ot_region *r;
    const ot_target *t;
    const ot_check_extents *x;
    ot_arena *a;
    ot_diag *d;
    buffer *all; /* [n] */
    uint32_t n;
    size_t cap;
    uint32_t *in; /* [n_values] buffer that holds the value in a tile, or OT_NONE */
    /* [g->n_values] buffer of a constant that stays, or OT_NONE; the caller's */
    uint32_t *constant;
} checker;

static ot_status broken(const checker *c, const char *rule)
{
    return ot_fail(c->d, OT_E_INPUT, "plan check: region %u: %s", c->r->id, rule);
}

/* ---- sizes ---- */

/* Some step takes over rows of v. */
static bool is_kept(const checker *c, uint32_t v) { return c->x->kept && c->x->kept[v] > 0; }

/* Rows of v are kept once nobody reads it in the step any more. */
static bool is_wanted_later(const checker *c, uint32_t v) { return c->r->rolling && is_kept(c, v); }

/* Elements of v's largest tile, and the bits of each; false: it has no tile. */
static bool tile_size(const checker *c, uint32_t v, int64_t *elems, uint32_t *bits)
{
    const ot_rvalue *rv = &c->r->values[v];
    const ot_value *x = &c->g->values[rv->value];
    int64_t whole;
    if (!ot_value_elems(x, &whole) || whole == 0) return false;
    *elems = whole;
    for (uint32_t d = 0; d < c->r->n_dims; d++)
        if (rv->axis[d] >= 0) *elems = *elems / x->dims[rv->axis[d]] * c->x->most[d][v];
    /* float values inside a quantized group have the width of its integers */
    *bits = x->dtype == OT_F32 && rv->bytes == whole ? 8 : ot_dtype_bits(x->dtype);
    return *elems > 0 && *bits > 0;
}

static int64_t alignment(const checker *c)
{
    return ot_max(1, c->t->scopes[OT_SCOPE_L2].alignment);
}

static int64_t bytes_of(int64_t elems, uint32_t bits) { return ot_ceil_div(elems * bits, 8); }

static bool is_cut(const checker *c, uint32_t v)
{
    bool cut = false;
    for (uint32_t d = 0; d < c->r->n_dims; d++) cut |= c->r->values[v].axis[d] >= 0;
    return cut;
}

/* Bytes of the scratch of node i in the tile where that is most; 0: none. */
static int64_t scratch_bytes(const checker *c, uint32_t i)
{
    const ot_rnode *x = &c->r->nodes[i];
    double bytes = x->work;
    for (uint32_t d = 0; d < c->r->n_dims; d++)
        if (x->lead_axis[d] >= 0 || x->lead_axis[d] == OT_AX_SUM)
            bytes *= (double)c->x->done_most[d][i] / (double)ot_check_node_extent(c->g, x, d);
    return bytes >= 1 && bytes <= 1e15 ? (int64_t)bytes : 0;
}

/* ---- buffers and lifetimes ---- */

static ot_status add(checker *c, int64_t bytes, uint32_t slots, uint32_t from, uint32_t *index)
{
    buffer b = {.bytes = bytes, .slots = slots, .from = from, .to = from, .one = c->n};
    *index = c->n;
    return OT_PUSH(c->a, c->all, c->n, c->cap, b) ? OT_OK : ot_fail_nomem(c->d);
}

static void use(checker *c, uint32_t b, uint32_t i)
{
    if (b != OT_NONE && c->all[b].to < i) c->all[b].to = i;
}

static uint32_t slots_of(const checker *c) { return c->r->overlap ? 2 : 1; }

/* Node i makes something in a tile. */
static bool computes(const checker *c, uint32_t i)
{
    const ot_rnode *x = &c->r->nodes[i];
    int64_t elems;
    uint32_t bits;
    for (uint32_t o = 0; o < c->g->nodes[x->node].n_out; o++)
        if (x->out[o] != OT_NONE && tile_size(c, x->out[o], &elems, &bits)) return true;
    return false;
}

/* Constants that stay: brought before the first tile, for all of them. */
static ot_status add_constants(checker *c)
{
    const ot_region *r = c->r;
    const bool held = r->weights_stay && !ot_target_weights_apart(c->t, r->weight_bytes);
    for (uint32_t i = 0; i < r->n_nodes && held; i++) {
        const ot_node *n = &c->g->nodes[r->nodes[i].node];
        if (!computes(c, i)) continue;
        for (uint32_t k = 0; k < n->n_in && !ot_op_is_view(n->op); k++) {
            ot_id v = n->in[k];
            int64_t bytes;
            if (v == OT_NONE || r->nodes[i].in[k] != OT_NONE || c->constant[v] != OT_NONE) continue;
            const ot_value *x = &c->g->values[v];
            if (!ot_value_bytes(x, &bytes) || bytes == 0) continue;
            OT_TRY(add(c, bytes, 1, 0, &c->constant[v]));
            use(c, c->constant[v], r->n_nodes - 1);
        }
    }
    return OT_OK;
}

/* Operand k of node i is at hand in the tile. */
static ot_status bring(checker *c, uint32_t i, uint32_t k)
{
    uint32_t v = c->r->nodes[i].in[k], bits;
    int64_t elems;
    if (v == OT_NONE) return OT_OK;
    const bool brought = v < c->r->n_inputs && is_cut(c, v) &&
                         ot_runtime_brings_inputs(c->t->runtime, c->r->form);
    if (brought && c->in[v] == OT_NONE && tile_size(c, v, &elems, &bits))
        OT_TRY(add(c, bytes_of(elems, bits), slots_of(c), i, &c->in[v]));
    use(c, c->in[v], i);
    return OT_OK;
}

/* Node i as another name of what it reads; *done false: it computes after all. */
static ot_status rename_value(checker *c, uint32_t i, bool *done)
{
    const ot_rnode *x = &c->r->nodes[i];
    const ot_node *n = &c->g->nodes[x->node];
    int64_t to, from;
    uint32_t to_bits, from_bits;
    *done = false;
    if (!ot_op_is_view(n->op) || n->n_in == 0 || x->in[0] == OT_NONE || x->out[0] == OT_NONE)
        return OT_OK;
    if (is_kept(c, x->out[0]) || is_wanted_later(c, x->in[0])) return OT_OK;
    for (uint32_t o = 1; o < n->n_out; o++)
        if (x->out[o] != OT_NONE) return OT_OK;
    if (!tile_size(c, x->out[0], &to, &to_bits) || !tile_size(c, x->in[0], &from, &from_bits))
        return OT_OK;
    if (bytes_of(to, to_bits) != bytes_of(from, from_bits)) return OT_OK;
    OT_TRY(bring(c, i, 0));
    if (c->in[x->in[0]] == OT_NONE) return OT_OK; /* it is read where it lies, outside */
    c->in[x->out[0]] = c->in[x->in[0]];
    *done = true;
    return OT_OK;
}

static ot_status add_node(checker *c, uint32_t i)
{
    const ot_rnode *x = &c->r->nodes[i];
    const ot_node *n = &c->g->nodes[x->node];
    int64_t elems, scratch = scratch_bytes(c, i);
    uint32_t bits, b;
    bool done, reads = false;
    OT_TRY(rename_value(c, i, &done));
    if (done) return OT_OK;
    for (uint32_t k = 0; k < n->n_in; k++) {
        OT_TRY(bring(c, i, k));
        reads |= n->in[k] != OT_NONE;
    }
    if (scratch > 0 && reads) OT_TRY(add(c, scratch, 1, i, &b));
    for (uint32_t o = 0; o < n->n_out; o++) {
        uint32_t v = x->out[o];
        if (v == OT_NONE || !tile_size(c, v, &elems, &bits)) continue;
        OT_TRY(add(c, bytes_of(elems, bits), c->r->values[v].is_output ? slots_of(c) : 1, i,
                   &c->in[v]));
    }
    return OT_OK;
}

/* As the caller gave it. */
static void forget_constants(checker *c)
{
    for (uint32_t i = 0; i < c->r->n_nodes; i++) {
        const ot_node *n = &c->g->nodes[c->r->nodes[i].node];
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OT_NONE) c->constant[n->in[k]] = OT_NONE;
    }
}

/* Rows that steps hand on: there from the first step to the last. */
static ot_status add_rows(checker *c)
{
    for (uint32_t v = 0; c->x->kept && v < c->r->n_values; v++) {
        int64_t elems;
        uint32_t bits, b;
        if (!is_kept(c, v) || !tile_size(c, v, &elems, &bits)) continue;
        elems = elems / c->x->most[0][v] * c->x->kept[v];
        OT_TRY(add(c, bytes_of(elems, bits), 1, 0, &b));
        use(c, b, c->r->n_nodes - 1);
    }
    return OT_OK;
}

static ot_status find_buffers(checker *c)
{
    c->in = OT_NEW_N(c->a, uint32_t, c->r->n_values + 1u);
    if (!c->in) return ot_fail_nomem(c->d);
    memset(c->in, 0xff, (c->r->n_values + 1u) * sizeof *c->in);
    OT_TRY(add_constants(c));
    OT_TRY(add_rows(c));
    for (uint32_t i = 0; i < c->r->n_nodes; i++) OT_TRY(add_node(c, i));
    return OT_OK;
}

/* ---- the evidence ---- */

/* Offsets of the kernel's allocations, which come in the same order. */
static ot_status take_offsets(checker *c, const ot_kernel *k)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < k->n_values; v++) {
        const ot_tk_value *x = &k->values[v];
        if (x->kind != OT_TK_BUFFER) continue;
        if (n == c->n) return broken(c, "the kernel has a buffer that no tile needs");
        buffer *b = &c->all[n++];
        if (x->bytes != b->bytes) return broken(c, "a buffer has not the size of its largest tile");
        if (x->multi < b->slots || x->n_offsets < x->multi)
            return broken(c, "a buffer has too few slots");
        b->at = x->offsets;
        b->n_at = x->multi;
    }
    return n == c->n ? OT_OK : broken(c, "the kernel lacks a buffer");
}

static uint32_t storage(const checker *c, uint32_t b)
{
    while (c->all[b].one != b) b = c->all[b].one;
    return b;
}

/* Node i may write its result over operand k, element by element, when nobody reads that later. */
static bool may_overwrite(const checker *c, uint32_t i, uint32_t k, uint32_t to)
{
    const ot_rnode *x = &c->r->nodes[i];
    const ot_node *n = &c->g->nodes[x->node];
    int64_t elems, out;
    uint32_t bits, out_bits;
    if (k > 2 || !(ot_op_row_of(n->op)->place >> k & 1)) return false;
    for (uint32_t j = 0; j < n->n_in; j++) /* every way in which it reads that */
        if (x->in[j] != OT_NONE && c->in[x->in[j]] == c->in[x->in[k]] &&
            !(j <= 2 && ot_op_row_of(n->op)->place >> j & 1))
            return false;
    if (c->all[c->in[x->in[k]]].to != i || is_wanted_later(c, x->in[k])) return false;
    return tile_size(c, x->in[k], &elems, &bits) && tile_size(c, to, &out, &out_bits) &&
           elems == out && bits == out_bits;
}

/* Results that lie over an operand, where that is allowed, are one storage with it. */
static void join_storages(checker *c)
{
    for (uint32_t i = 0; i < c->r->n_nodes; i++) {
        const ot_rnode *x = &c->r->nodes[i];
        const ot_node *n = &c->g->nodes[x->node];
        if (n->n_out != 1 || x->out[0] == OT_NONE || c->in[x->out[0]] == OT_NONE) continue;
        const uint32_t to = c->in[x->out[0]];
        for (uint32_t k = 0; k < n->n_in; k++) {
            uint32_t from = x->in[k] == OT_NONE ? OT_NONE : c->in[x->in[k]];
            if (from == OT_NONE || from == to || c->all[from].at[0] != c->all[to].at[0]) continue;
            if (may_overwrite(c, i, k, x->out[0])) c->all[storage(c, to)].one = storage(c, from);
        }
    }
}

static bool share_bytes(const buffer *a, const buffer *b)
{
    for (uint32_t i = 0; i < a->n_at; i++)
        for (uint32_t j = 0; j < b->n_at; j++)
            if (a->at[i] < b->at[j] + b->bytes && b->at[j] < a->at[i] + a->bytes) return true;
    return false;
}

/* Slots that transfers fill while others are computed are held for all tiles. */
static bool is_held(const checker *c, const bool *held, uint32_t b) { return held[storage(c, b)]; }

/* Buffer b comes to life; those before it in the list may still live. */
static ot_status check_birth(checker *c, const bool *held, const uint32_t *alive, uint32_t n_alive,
                             uint32_t b)
{
    const buffer *x = &c->all[b];
    for (uint32_t k = 0; k < x->n_at; k++) {
        if (x->at[k] < 0 || x->at[k] % alignment(c) != 0)
            return broken(c, "a buffer is not aligned");
        for (uint32_t j = 0; j < k; j++)
            if (x->at[j] < x->at[k] + x->bytes && x->at[k] < x->at[j] + x->bytes)
                return broken(c, "slots share memory");
    }
    for (uint32_t k = 0; k < n_alive; k++) {
        const buffer *y = &c->all[alive[k]];
        const bool one = storage(c, alive[k]) == storage(c, b), lives = y->to >= x->from;
        if (one ? lives && y->to > x->from
                : (lives || is_held(c, held, alive[k]) || is_held(c, held, b)) && share_bytes(x, y))
            return broken(c, "buffers share memory while both live");
    }
    return OT_OK;
}

/* No two that live at once overlap. *top: bytes up to the end of the highest; *most: that live
 * at once; *padded: likewise, each slot with what alignment leaves unused behind it. */
static ot_status check_places(checker *c, int64_t *top, int64_t *most, int64_t *padded)
{
    uint32_t *alive = OT_NEW_N(c->a, uint32_t, c->n + 1u), n_alive = 0;
    bool *held = OT_NEW_N(c->a, bool, c->n + 1u);
    int64_t *change = OT_NEW_N(c->a, int64_t, c->r->n_nodes + 2u),
            *grown = OT_NEW_N(c->a, int64_t, c->r->n_nodes + 2u);
    const int64_t align = alignment(c);
    int64_t live = 0, taken = 0;
    uint32_t *from = OT_NEW_N(c->a, uint32_t, c->n + 1u), *to = OT_NEW_N(c->a, uint32_t, c->n + 1u);
    if (!alive || !held || !change || !grown || !from || !to) return ot_fail_nomem(c->d);
    *top = *most = *padded = 0;
    for (uint32_t b = 0; b < c->n; b++) from[b] = OT_NONE;
    for (uint32_t b = 0; b < c->n; b++) {
        const buffer *x = &c->all[b];
        uint32_t s = storage(c, b);
        held[s] |= x->slots > 1;
        if (from[s] == OT_NONE) from[s] = x->from, to[s] = x->to;
        from[s] = (uint32_t)ot_min(from[s], x->from);
        to[s] = (uint32_t)ot_max(to[s], x->to);
        for (uint32_t k = 0; k < x->n_at; k++) *top = ot_max(*top, x->at[k] + x->bytes);
    }
    for (uint32_t b = 0; b < c->n; b++) { /* in the order of birth */
        uint32_t kept = 0;
        for (uint32_t k = 0; k < n_alive; k++)
            if (c->all[alive[k]].to >= c->all[b].from || is_held(c, held, alive[k]))
                alive[kept++] = alive[k];
        n_alive = kept;
        OT_TRY(check_birth(c, held, alive, n_alive, b));
        alive[n_alive++] = b;
        if (storage(c, b) != b) continue;
        const int64_t bytes = c->all[b].bytes, slots = c->all[b].n_at,
                      rounded = ot_ceil_div(bytes, align) * align;
        const uint32_t start = held[b] ? 0 : from[b], end = held[b] ? c->r->n_nodes : to[b] + 1u;
        change[start] += bytes * slots, change[end] -= bytes * slots;
        grown[start] += rounded * slots, grown[end] -= rounded * slots;
    }
    for (uint32_t i = 0; i < c->r->n_nodes; i++) {
        *most = ot_max(*most, live += change[i]);
        *padded = ot_max(*padded, taken += grown[i]);
    }
    return OT_OK;
}

static ot_status check_arena(checker *c, const ot_region_memory *m, const ot_kernel *k)
{
    const ot_region *r = c->r;
    int64_t top = 0, most = 0, padded = 0;
    OT_TRY(find_buffers(c));
    OT_TRY(take_offsets(c, k));
    join_storages(c);
    OT_TRY(check_places(c, &top, &most, &padded));
    if (ot_target_hard_limit(c->t) && r->working_set > c->t->fast_bytes)
        return broken(c, "working set above the capacity of the fast memory");
    if (m->height != r->working_set || m->lower_bound != r->working_set_bound)
        return broken(c, "the working set is not the planned arena");
    if (m->stall != r->stall) return broken(c, "what pipes wait for is not what the places stall");
    if (top != m->arena || top < r->working_set_bound ||
        top > ot_max(r->working_set, c->t->fast_bytes))
        return broken(c, "the places are not those of the planned arena");
    if (r->working_set_bound < most || r->working_set_bound > padded ||
        r->working_set < r->working_set_bound)
        return broken(c, "the working set's bound is not what lives at once");
    return OT_OK;
}

ot_status ot_plan_check_memory(const ot_graph *g, const ot_region *r, const ot_target *t,
                               const ot_check_extents *x, uint32_t *constant, ot_arena *a,
                               ot_diag *d)
{
    checker c = {.g = g, .r = r, .t = t, .x = x, .a = a, .d = d, .constant = constant};
    ot_region_memory m;
    ot_kernel *k = NULL;
    ot_status st = ot_region_plan_memory(g, r, t, d, &m, &k);
    if (st == OT_OK) st = check_arena(&c, &m, k);
    forget_constants(&c);
    ot_kernel_free(k);
    return st;
}
