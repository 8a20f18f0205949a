/* Constant right operands of products, packed once for all schedules.
 *
 *   MatMul, Gemm   A [m, k]   B [k, n] constant        m known, in the range where panels pay
 *                             `-- panels, shared by workers and classes of tiles; B itself is given
 *                             back if nobody else reads it
 *
 * The implementations would pack B at their first run, each for itself, and B would stay. What is
 * not known before the run still is. A constant whose contents are gone has the address of its
 * panels: implementations that find them do not look at it.
 */
#include "engine/cpu/product/fast_product.h"
#include "lower.h"
#include "engine/core/pool.h"

static bool is_gemm(const ot_step *step) { return step->run == ot_fast_gemm; }

/* Rows of A together; 0: they are not known, or do not lie one after another. */
static int64_t rows_of(const ot_schedule *p, const ot_step *step)
{
    const ot_nd *a = step->in_ids[0] == OT_NONE ? NULL : &p->at[step->in_ids[0]]->fore;
    int64_t m;
    if (!a || !ot_dtype_is_real(a->dtype) || a->rank < 2 || !ot_nd_is_dense(a) ||
        (is_gemm(step) && a->rank != 2))
        return 0;
    return ot_product(a->dims, a->rank - 1, &m) ? m : 0;
}

/* Will the step's product read B in panels? What it will be is *out, no memory yet. */
static bool describe(const ot_schedule *p, const ot_step *step, ot_product_panels *out)
{
    if ((step->run != ot_fast_matmul && !is_gemm(step)) || step->state.data) return false;
    if (step->n_in < 2 || step->in_ids[1] == OT_NONE) return false;
    ot_id v = step->in_ids[1];
    const ot_nd *b = step->in[1];
    int64_t m = rows_of(p, step);
    bool turned = is_gemm(step) && ot_attr_int(step->node, "transB", 0) != 0;
    if (is_gemm(step) && ot_attr_int(step->node, "transA", 0) != 0) return false;
    if (m < 1 || v >= p->g->n_values || !p->g->values[v].is_const || !b || !b->data ||
        b->dtype != p->at[step->in_ids[0]]->fore.dtype || b->rank != 2 || !ot_nd_is_dense(b) ||
        p->at[step->in_ids[0]]->fore.dims[p->at[step->in_ids[0]]->fore.rank - 1] != b->dims[turned])
        return false;
    *out = (ot_product_panels){
        .from = b->data, .type = b->dtype, .k = b->dims[turned], .n = b->dims[!turned]};
    out->row_step = turned ? 1 : out->n;
    out->column_step = turned ? out->k : 1;
    if (ot_dtype_is_half(b->dtype)) return ot_half_takes_panels(out->n, out->k);
    /* a row or column that is left over is computed from B as it is */
    if (turned && (m % OT_PRODUCT_ROWS == 1 || out->n % OT_PANEL == 1)) return false;
    return ot_product_takes_panels(m, out->n, out->k);
}

typedef struct pack_job {
    ot_product_panels *to;
    const void *source;
} pack_job;

static void pack_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const pack_job *j = job;
    ot_product_panels *p = j->to;
    (void)worker;
    if (p->type == OT_F32)
        ot_panels_pack(p->panels, j->source,
                       &(ot_matrix_layout){p->k, p->n, p->row_step, p->column_step}, first, end);
    else
        ot_half_panels_pack(p, j->source, first, end);
}

static ot_status fill(ot_session *s, const ot_packed *packed, bool own)
{
    ot_product_panels *p = packed->data;
    int64_t panels = (p->n + OT_PANEL - 1) / OT_PANEL;
    (void)own;
    pack_job j = {p, packed->source};
    ot_pool_share(s->threads, panels, 1, pack_share, &j);
    return OT_OK;
}

static ot_status pack_step(ot_session *s, const ot_schedule *p, ot_step *step)
{
    ot_product_panels want, *made;
    if (!describe(p, step, &want)) return OT_OK;
    const int64_t key[] = {want.k, want.n, want.row_step};
    uint64_t form = ot_hash_bytes(ot_hash_bytes(3, "panels", 6), key, sizeof key);
    made = ot_packed_find(s, want.from, form);
    if (!made) {
        made = ot_product_panels_new(&want);
        if (!made) return ot_fail_nomem(s->d);
        OT_TRY(ot_packed_later(s, want.from, form, made, free, fill, NULL));
        s->figures.weight_bytes += want.k * want.n * (int64_t)sizeof(float);
    }
    step->state.data = made; /* the session's: the step frees nothing */
    return OT_OK;
}

ot_status ot_pack_products(ot_session *s)
{
    for (const ot_schedule *p = s->all; p && !s->reference; p = p->next)
        for (uint32_t k = 0; k < p->n_steps; k++) OT_TRY(pack_step(s, p, &p->steps[k]));
    return OT_OK;
}

bool ot_reads_panels(const ot_step *step, uint32_t k)
{
    return k == 1 && step->state.data && (step->run == ot_fast_matmul || is_gemm(step));
}

void ot_point_at_panels(ot_session *s)
{
    for (uint32_t pass = 0; pass < 2; pass++) /* a constant may be in panels of two forms */
        for (const ot_schedule *p = s->all; p; p = p->next)
            for (uint32_t k = 0; k < p->n_steps; k++) {
                const ot_step *step = &p->steps[k];
                ot_product_panels *panels = step->state.data;
                if (!ot_reads_panels(step, 1)) continue;
                if (pass == 0 && !step->in[1]->data) panels->only = true;
                if (pass == 1 && panels->only) p->at[step->in_ids[1]]->nd.data = panels->panels;
            }
}
