/* Attention (fusion/fusion.h) as one step.
 *
 * What lies between the operands and the result exists for one panel of queries and one chunk of
 * keys at a time (attention.h): the scores, by far the largest arrays of such a network, are
 * never stored. Transposes that nobody else needs are other strides of the operands.
 *
 * Pieces of the work are blocks of queries of one matrix of the batch; in a tile of Q, V or
 * heads (a window) they are the tile's.
 */
#include "engine/cpu/product/attention.h"
#include "engine/cpu/rows/fast_rows.h"
#include "lower.h"

typedef struct attention_setup {
    uint32_t rank;
    int64_t dims[OT_RANK_MAX]; /* of the batch: [rank - 2] */
    int64_t batch, queries, keys, size, v_size;
    float scale;
    bool masked;
    ot_group_axes q, k, v, mask, y;
    int64_t blocks;  /* of queries, of each matrix of the batch */
    int64_t scratch; /* floats of a thread */
    uint32_t threads;
} attention_setup;

/* ---- running ---- */

/* Operand o of item i of the batch. */
static ot_attention_matrix matrix_at(const attention_setup *p, const ot_group_axes *o,
                                     const ot_nd *a, int64_t i)
{
    ot_attention_matrix m = {.data = a->data, .type = a->dtype};
    uint32_t n = p->rank - 2;
    int64_t at = 0;
    for (uint32_t k = n; k-- > 0; i /= p->dims[k])
        if (o->axis[k] != OT_NONE) at += i % p->dims[k] * a->strides[o->axis[k]];
    m.data = (const char *)a->data + at * (int64_t)ot_dtype_bytes(a->dtype);
    if (o->axis[n] != OT_NONE) m.row = a->strides[o->axis[n]];
    if (o->axis[n + 1] != OT_NONE) m.column = a->strides[o->axis[n + 1]];
    return m;
}

static void run_block(const ot_call *c, const attention_setup *p, int64_t piece, float *scratch)
{
    int64_t i = piece / p->blocks, panels = ot_ceil_div(p->queries, OT_ATTENTION_PANEL);
    int64_t first = panels * (piece % p->blocks) / p->blocks * OT_ATTENTION_PANEL,
            end = ot_min(p->queries,
                         panels * (piece % p->blocks + 1) / p->blocks * OT_ATTENTION_PANEL);
    ot_attention_matrix y = matrix_at(p, &p->y, c->out[0], i);
    ot_attention_job j = {.queries = end - first,
                          .keys = p->keys,
                          .size = p->size,
                          .v_size = p->v_size,
                          .scale = p->scale};
    j.q = ot_attention_from(matrix_at(p, &p->q, c->in[0], i), first, 0);
    j.k = matrix_at(p, &p->k, c->in[1], i);
    j.v = matrix_at(p, &p->v, c->in[2], i);
    if (p->masked) j.mask = ot_attention_from(matrix_at(p, &p->mask, c->in[3], i), first, 0);
    j.y = (void *)(uintptr_t)ot_attention_from(y, first, 0).data;
    j.y_row = y.row;
    ot_attention_run(&j, scratch);
}

static void blocks_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const ot_call *c = job;
    const attention_setup *p = c->plan;
    for (int64_t i = first; i < end; i++)
        run_block(c, p, i, (float *)c->work + worker * p->scratch);
}

static ot_status run_attention(ot_call *c)
{
    const attention_setup *p = c->plan;
    OT_TRY(ot_call_place(c, 0));
    ot_pool_share_each(p->threads, p->batch * p->blocks, blocks_share, c);
    return OT_OK;
}

/* ---- units and steps ---- */

/* The engine reads factors now. */
static bool supported(void *ctx, const ot_group_view *v, const ot_group *x, uint32_t place,
                      ot_group_role role)
{
    float factor;
    if (!ot_engine_merges(NULL, v, x, place, role)) return false;
    return role != OT_ROLE_FACTOR ||
           lw_scalar(ctx, ot_group_operand(v, place, ot_group_factor(v, place)), &factor);
}

/* The product of all factors; Div's as 1 / factor. */
static float scale_of(const lw_pass *l, const ot_group_view *v, const ot_group *x)
{
    float scale = 1, factor = 1;
    for (uint32_t k = 0; k < x->n; k++) {
        uint32_t place = x->parts[k].place;
        if (x->parts[k].role != OT_ROLE_FACTOR) continue;
        if (!lw_scalar(l, ot_group_operand(v, place, ot_group_factor(v, place)), &factor))
            OT_BUG("a factor was known before");
        scale *= v->node(v->of, place)->op == OT_OP_Div ? 1 / factor : factor;
    }
    return scale;
}

static int64_t dim_of(const lw_pass *l, ot_id v, uint32_t axis)
{
    return l->v[v].slot->fore.dims[axis];
}

static bool make_plan(const lw_pass *l, const ot_attention_group *x, float scale,
                      attention_setup *out)
{
    const ot_nd *scores = &l->v[x->scores].slot->fore;
    uint32_t n = scores->rank - 2;
    *out = (attention_setup){.rank = scores->rank,
                             .queries = scores->dims[n],
                             .keys = scores->dims[n + 1],
                             .scale = scale,
                             .masked = x->mask != OT_NONE,
                             .q = x->of_q,
                             .k = x->of_k,
                             .v = x->of_v,
                             .mask = x->of_mask,
                             .y = x->of_y};
    memcpy(out->dims, scores->dims, n * sizeof *out->dims);
    out->size = dim_of(l, x->q, x->of_q.axis[n + 1]);
    out->v_size = dim_of(l, x->v, x->of_v.axis[n + 1]);
    if (!ot_product(out->dims, n, &out->batch)) return false;
    int64_t panels = ot_ceil_div(out->queries, OT_ATTENTION_PANEL),
            most = ot_attention_panels(out->size, out->v_size);
    double scores_all = (double)out->batch * (double)out->queries * (double)out->keys;
    out->threads = lw_threads(l, scores_all * (double)(out->size + out->v_size));
    int64_t pieces = 3 * (int64_t)out->threads; /* so many share evenly */
    out->blocks = ot_ceil_div(panels, most);
    if (out->threads > 1 && out->blocks * out->batch < pieces)
        out->blocks = ot_min(panels, ot_ceil_div(pieces, out->batch));
    out->scratch = ot_attention_scratch(l->v[x->q].slot->fore.dtype,
                                        ot_ceil_div(panels, out->blocks), out->size, out->v_size);
    return out->scratch > 0;
}

ot_status lw_fuse_attention(lw_pass *l)
{
    const ot_group_view v = lw_group_view(l);
    const ot_group_rules rules = {.name = "engine", .supported = supported, .ctx = l};
    for (uint32_t u = 0; u < l->n_units; u++) {
        ot_attention_group x;
        attention_setup plan, *own;
        uint32_t parts[OT_GROUP_PARTS];
        if (!ot_group_attention(&v, &rules, u, &x) ||
            !make_plan(l, &x, scale_of(l, &v, &x.group), &plan))
            continue;
        for (uint32_t k = 0; k < x.group.n; k++) parts[k] = x.group.parts[k].place;
        ot_id in[4] = {x.q, x.k, x.v, x.mask};
        own = ot_memdup(l->a, &plan, sizeof plan);
        if (!own) return ot_fail_nomem(l->p->s->d);
        OT_TRY(lw_merge(l, parts, x.group.n, LW_ATTENTION, (ot_id_list){in, plan.masked ? 4 : 3},
                        (ot_id_list){&x.y, 1}, own));
    }
    return OT_OK;
}

ot_status lw_write_attention(lw_pass *l, lw_unit *u)
{
    const attention_setup *p = u->plan;
    ot_id in[4], out;
    ot_step *step = NULL;
    for (uint32_t k = 0; k < u->n_in; k++)
        OT_TRY(lw_need(l, u->in[k], LW_ANY_PLAIN, LW_PLAIN, &in[k]));
    OT_TRY(lw_make(l, u->out[0], LW_PLAIN, &out));
    OT_TRY(lw_push(l, u->nodes[0], run_attention, p, (ot_id_list){in, u->n_in},
                   (ot_id_list){&out, 1}, &step));
    return ot_mul_i64(p->scratch * (int64_t)sizeof(float), p->threads, &step->work)
               ? OT_OK
               : ot_fail_nomem(l->p->s->d);
}
