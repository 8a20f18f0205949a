/* The kernel of a region that runs: the tiles as they are, borders and all, in the places of the
 * planned kernel.
 *
 *   planned kernel (region_kernel.c)              lowered kernel
 *
 *     for t0 in 0..14 {              { tile 0 }           borders: windows are shorter, operators
 *                                                         pad
 *       x_tile: 1x64x8x56  offset=0  for t0 in 1..13 { }  alike tiles that move evenly
 *       ...                          { tile 13 }
 *
 * A buffer of the lowered kernel is one of the planned kernel, cut to what the tile at hand has, at
 * its offset. So whoever runs the lowered kernel checks the plan: a place that another buffer has
 * taken too early shows as a wrong byte. Values that the planned kernel does not count (factors of
 * a normalisation, parts of a reduction) are workspace in global memory.
 *
 * What is reduced over a cut axis has a slot per tile there, and is combined behind the loops
 * (lower_parts.c).
 *
 * Form stream: a tile is a step, which finds rows that the one before it has handed on
 * (lower_rows.c).
 *
 * Not lowered: operators that lower_ops.c does not know. The caller is told why.
 */
#include "inner_nest.h"
#include "tiling/forms.h"
#include "lower_region.h"

ot_status lowered_refuse(lowered *p, const char *why)
{
    if (!p->why) p->why = why;
    return OT_OK;
}

/* ---- statements ---- */

ot_status lowered_alloc(lowered *p, const char *name, const char *suffix, ot_scope scope,
                        uint32_t multi, const lowered_tensor *like, lowered_tensor *out)
{
    const char *own = ot_region_name(&p->names, name, suffix);
    *out = *like;
    out->v = own ? ot_kb_alloc(p->b, own, like->type, like->dims, like->rank,
                               (ot_tk_storage){.scope = scope, .multi = multi})
                 : OT_NONE;
    return out->v == OT_NONE ? lowered_nomem(p) : OT_OK;
}

ot_status lowered_alias(lowered *p, const lowered_tensor *x, uint32_t rank, const int64_t *dims,
                        lowered_tensor *out)
{
    const char *own = ot_region_name(&p->names, "as", "");
    lowered_tensor y = {.rank = rank, .type = x->type};
    memcpy(y.dims, dims, rank * sizeof *dims);
    y.v = own ? ot_kb_alias(p->b, own, x->v, x->type, dims, rank) : OT_NONE;
    *out = y;
    return y.v == OT_NONE ? lowered_nomem(p) : OT_OK;
}

ot_status lowered_part(lowered *p, const lowered_tensor *x, const ot_tk_affine *lo,
                       const int64_t *dims, lowered_tensor *out)
{
    ot_tk_range ranges[OT_TK_RANK_MAX];
    bool all = true;
    for (uint32_t k = 0; k < x->rank; k++) {
        ranges[k] = (ot_tk_range){lo[k], lowered_plus(lo[k], dims[k])};
        all = all && lo[k].n == 0 && lo[k].constant == 0 && dims[k] == x->dims[k];
    }
    lowered_tensor y = *x;
    memcpy(y.dims, dims, x->rank * sizeof *dims);
    if (!all) {
        const char *own = ot_region_name(&p->names, "part", "");
        y.v = own ? ot_kb_subview(p->b, own, x->v, ranges) : OT_NONE;
        if (y.v == OT_NONE) return lowered_nomem(p);
    }
    *out = y;
    return OT_OK;
}

ot_status lowered_statement(lowered *p, const lowered_op *op)
{
    uint32_t in[PROG_IN_MAX], out[1] = {op->out.v}, n = 0;
    for (uint32_t k = 0; k < op->n_in; k++)
        if (op->in[k].v != OT_NONE) in[n++] = op->in[k].v;
    if (!ot_kb_compute(p->b, op->pipe, op->name, out, 1, in, n)) return lowered_nomem(p);
    for (uint32_t k = 0; k < op->n_attrs; k++)
        if (!ot_kb_attr(p->b, op->attrs[k].name, op->attrs[k].values, op->attrs[k].n,
                        op->attrs[k].list))
            return lowered_nomem(p);
    return OT_OK;
}

ot_status lowered_copy(lowered *p, const lowered_tensor *to, const lowered_tensor *from)
{
    return ot_kb_copy(p->b, to->v, from->v) ? OT_OK : lowered_nomem(p);
}

/* ---- declarations ---- */

static ot_status declare(lowered *p, ot_id value, bool is_output, lowered_tensor *x)
{
    const char *own = ot_region_name(&p->names, p->g->values[value].name, "");
    x->v = own ? ot_kb_param(p->b, own, x->type, x->dims, x->rank) : OT_NONE;
    const struct ot_region_param param = {value, x->v, is_output};
    if (x->v == OT_NONE || !OT_PUSH(p->a, p->params, p->n_params, p->cap_params, param))
        return lowered_nomem(p);
    return OT_OK;
}

static ot_status declare_constant(lowered *p, ot_id v)
{
    const ot_value *x = &p->g->values[v];
    lowered_tensor c = {.rank = 1, .dims = {1}, .type = ot_region_type_name(x->dtype)};
    int64_t elems;
    if (ot_map_get(p->constant_of, x->name) != OT_NONE || !c.type) return OT_OK;
    if (x->rank > OT_TK_RANK_MAX || !ot_value_elems(x, &elems) || elems == 0) return OT_OK;
    for (int32_t k = 0; k < x->rank; k++) c.dims[k] = x->dims[k];
    if (x->rank > 0) c.rank = (uint32_t)x->rank;
    OT_TRY(declare(p, v, false, &c));
    return ot_map_put(p->constant_of, x->name, c.v) ? OT_OK : lowered_nomem(p);
}

/* Whether an operator reads what operand j holds, not its numbers alone (a shape, axes, bounds). */
static bool reads_contents(const ot_node *n, uint32_t j)
{
    static const char *const numbers[] = {"Reshape",  "Squeeze", "Unsqueeze", "Expand",
                                          "Slice",    "Split",   "Pad",       "Resize",
                                          "Upsample", "Clip",    "Tile",      "Dropout"};
    if (j == 0) return true;
    if (strncmp(n->op_type, "Reduce", 6) == 0) return false;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (strcmp(n->op_type, numbers[k]) == 0) return false;
    return true;
}

static ot_status declare_all(lowered *p)
{
    for (uint32_t v = 0; v < p->r->n_values; v++) {
        lowered_tensor x;
        p->param[v] = p->parts[v].v = OT_NONE;
        if (v >= p->r->n_inputs && !p->r->values[v].is_output) continue;
        if (!lowered_whole_shape(p, v, &x)) {
            if (p->g->values[p->r->values[v].value].rank > OT_TK_RANK_MAX)
                return lowered_refuse(p, "a tensor of more than 8 axes");
            if (p->r->values[v].is_output) return lowered_refuse(p, "an output that no kernel has");
            continue;
        }
        OT_TRY(declare(p, p->r->values[v].value, p->r->values[v].is_output, &x));
        p->param[v] = x.v;
        if (lowered_is_part(p, v)) OT_TRY(lowered_declare_parts(p, v, &x));
    }
    for (uint32_t i = 0; i < p->r->n_nodes; i++) {
        const ot_node *n = &p->g->nodes[p->r->nodes[i].node];
        for (uint32_t j = 0; j < n->n_in; j++)
            if (n->in[j] != OT_NONE && p->r->nodes[i].in[j] == OT_NONE && reads_contents(n, j))
                OT_TRY(declare_constant(p, n->in[j]));
    }
    return OT_OK;
}

ot_status lowered_place_as(lowered *p, uint32_t v, uint32_t planned)
{
    return OT_PUSH(p->a, p->places, p->n_places, p->cap_places, v) &&
                   OT_PUSH(p->a, p->places, p->n_places, p->cap_places, planned)
               ? OT_OK
               : lowered_nomem(p);
}

uint32_t lowered_planned_buffer(const lowered *p, uint32_t v)
{
    if (p->held->value[v] == OT_NONE) return OT_NONE;
    uint32_t root = ot_tk_root(p->plan, p->held->value[v], NULL);
    return p->plan->values[root].kind == OT_TK_BUFFER ? root : OT_NONE;
}

/* Weights that stay are loaded once. */
static ot_status load_weights(lowered *p)
{
    for (uint32_t k = 0; k < p->held->n_weights; k++) {
        const ot_region_weight *w = &p->held->weights[k];
        const ot_value *x = &p->g->values[w->value];
        uint32_t from = ot_map_get(p->constant_of, x->name);
        if (from == OT_NONE || p->plan->values[w->at].kind != OT_TK_BUFFER) continue;
        const ot_tk_value *like = &p->plan->values[w->at];
        lowered_tensor c = {.rank = like->rank, .type = like->dtype}, buffer;
        memcpy(c.dims, like->dims, sizeof c.dims);
        OT_TRY(lowered_alloc(p, x->name, "_l2", OT_SCOPE_L2, 1, &c, &buffer));
        OT_TRY(lowered_place_as(p, buffer.v, w->at));
        if (!ot_kb_load(p->b, buffer.v, from, NULL, 0)) return lowered_nomem(p);
        if (!ot_map_put(p->constant_of, x->name, buffer.v)) return lowered_nomem(p);
    }
    return OT_OK;
}

/* Runs of the k-th loop's dimension and those inside. Strips of line buffers are around the
 * steps, which have rows of their own in each. */
static ot_status put_runs(lowered *p, uint32_t loop)
{
    const uint32_t n = p->r->n_dims, d = p->r->rolling ? (loop + 1) % n : loop;
    if (loop == n) return lowered_put_tile(p);
    if (d == 0 && p->r->form == OT_FORM_STREAM) OT_TRY(lowered_declare_rows(p));
    for (uint32_t k = 0; k < p->n_runs[d] && !p->why; k++) {
        const lowered_run *run = &p->runs[d][k];
        p->at[d] = k;
        if (!ot_kb_for(p->b, p->var[d], run->first, (int64_t)run->first + run->count, 1))
            return lowered_nomem(p);
        OT_TRY(put_runs(p, loop + 1));
        if (!ot_kb_end(p->b)) return lowered_nomem(p);
    }
    return OT_OK;
}

#define BODIES_BLOCKS 1000 /* that are written out in blocks */
#define BODIES_MAX    4000 /* operators that are written out */

static ot_status put_all(lowered *p)
{
    static const char *const variables[OT_DIMS_MAX] = {"t0", "t1", "t2"};
    int64_t bodies = p->r->n_nodes;
    for (uint32_t d = 0; d < p->r->n_dims; d++) {
        p->var[d] = ot_region_name(&p->names, variables[d], "");
        if (!p->var[d]) return lowered_nomem(p);
        OT_TRY(lowered_find_runs(p, d));
        if (p->one_kind) lowered_keep_longest(p, d);
        bodies *= p->n_runs[d];
        if (bodies > BODIES_MAX) return lowered_refuse(p, "tiles of too many kinds");
    }
    p->second = p->second && bodies <= BODIES_BLOCKS;
    OT_TRY(declare_all(p));
    if (p->why) return OT_OK;
    OT_TRY(load_weights(p));
    OT_TRY(put_runs(p, 0));
    for (uint32_t i = 0; i < p->r->n_nodes && !p->why; i++) OT_TRY(lowered_combine(p, i));
    return OT_OK;
}

static bool prepare(lowered *p)
{
    char name[32];
    snprintf(name, sizeof name, "program_%u", p->r->id);
    p->a = ot_arena_new();
    if (!p->a || !ot_region_names_init(&p->names, p->a)) return false;
    p->constant_of = ot_map_new(p->a);
    p->param = OT_NEW_N(p->a, uint32_t, p->r->n_values + 1u);
    p->parts = OT_NEW_N(p->a, lowered_tensor, p->r->n_values + 1u);
    p->tile = OT_NEW_N(p->a, lowered_tensor, p->r->n_values + 1u);
    p->rows = OT_NEW_N(p->a, lowered_tensor, p->r->n_values + 1u);
    p->last = ot_region_last_readers(p->g, p->r, p->a);
    p->b = ot_kernel_build(name, p->t->name[0] ? p->t->name : NULL);
    return p->constant_of && p->param && p->parts && p->tile && p->rows && p->last && p->b;
}

/* The offsets of the planned kernel. Shared memory is sized by the launch. */
static void give_places(const lowered *p, ot_kernel *k)
{
    for (uint32_t v = 0; v < k->n_values; v++)
        if (k->values[v].kind == OT_TK_BUFFER && k->values[v].scope == OT_SCOPE_SHARED)
            k->values[v].dynamic = true;
    for (uint32_t i = 0; i + 1 < p->n_places; i += 2) {
        ot_tk_value *to = &k->values[p->places[i]];
        const ot_tk_value *from = &p->plan->values[p->places[i + 1]];
        to->multi = to->n_offsets = from->n_offsets;
        memcpy(to->offsets, from->offsets, sizeof to->offsets);
    }
}

/* The rest of the plan: memories that the region's plan does not have. */
static ot_status place_rest(const lowered *p, ot_kernel *k, ot_lowered_region *out)
{
    ot_tk_machine t = ot_target_tk_machine(p->t);
    ot_mem_options o = {.mode = OT_MEM_AUTO, .threads = 1};
    ot_mem_plan *m = NULL;
    for (int s = 0; s < OT_SCOPE_COUNT; s++)
        if (t.scopes[s].alignment < 1) t.scopes[s].alignment = 1;
    if (p->second) t.scopes[OT_SCOPE_FRAGMENT].bytes = inner_capacity(p->t, OT_SCOPE_FRAGMENT);
    t.scopes[OT_SCOPE_L2].bytes = ot_max(t.scopes[OT_SCOPE_L2].bytes, out->memory.arena);
    OT_TRY(ot_kernel_verify(k, k->name, p->d));
    OT_TRY(ot_mem_plan_kernel(k, k->name, &t, &o, p->d, &m));
    out->n_scopes = m->n_scopes;
    memcpy(out->scopes, m->scopes, sizeof out->scopes);
    ot_mem_plan_apply(m, k);
    ot_mem_plan_free(m);
    return OT_OK;
}

/* What outlives the scratch. */
static ot_status keep_rest(const lowered *p, ot_arena *a, ot_lowered_region *out)
{
    out->why = p->why ? ot_strdup(a, p->why) : NULL;
    if (p->why && !out->why) return lowered_nomem(p);
    if (!out->kernel) return OT_OK;
    out->n_params = p->n_params;
    out->params = ot_memdup(a, p->params, p->n_params * sizeof *p->params);
    if (!out->params) return lowered_nomem(p);
    if (p->n_inner_ops == 0) return OT_OK;
    ot_inner_op *list = ot_memdup(a, p->inner, p->n_inner_ops * sizeof *p->inner);
    out->inner = list;
    out->n_inner = p->n_inner_ops;
    for (uint32_t k = 0; list && k < p->n_inner_ops; k++)
        if (!(list[k].node = ot_strdup(a, list[k].node))) return lowered_nomem(p);
    return list ? OT_OK : lowered_nomem(p);
}

/* requires a built region with its form set. Fails: OT_E_NOMEM, OT_E_INPUT (our bug),
 * OT_E_BUDGET (a block that was thought to fit). */
ot_status ot_region_lower(const ot_graph *g, const ot_region *r, const ot_target *t, unsigned how,
                          ot_arena *a, ot_diag *d, ot_lowered_region *out)
{
    ot_kernel *planned = NULL;
    ot_region_held held = {0};
    *out = (ot_lowered_region){0};
    OT_TRY(ot_region_plan_held(&(ot_region_job){g, r, t, a, d}, &out->memory, &held, &planned));
    lowered p = {.g = g,
                 .r = r,
                 .t = t,
                 .d = d,
                 .plan = planned,
                 .held = &held,
                 .second = (how & OT_LOWER_BLOCKS) && ot_target_has_cores(t),
                 .one_kind = (how & OT_LOWER_ONE_KIND) != 0};
    ot_status st = prepare(&p) ? put_all(&p) : lowered_nomem(&p);
    if (st == OT_OK && !p.why) {
        out->kernel = ot_kb_finish(p.b);
        if (!out->kernel) st = lowered_nomem(&p);
    } else {
        ot_kb_drop(p.b);
    }
    if (out->kernel) {
        give_places(&p, out->kernel);
        st = place_rest(&p, out->kernel, out);
    }
    if (st == OT_OK) st = keep_rest(&p, a, out);
    if (st != OT_OK) {
        ot_kernel_free(out->kernel);
        out->kernel = NULL;
    }
    ot_kernel_free(planned);
    ot_arena_free(p.a);
    return st;
}
