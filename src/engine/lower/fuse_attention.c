/* Attention written out in nodes, as one step.
 *
 *   Q --(Transpose)--+
 *                    MatMul --> Mul, Div by a number --> Add (mask) --> Softmax --> MatMul --(Transpose)--> Y
 *   K --(Transpose)--+                                                             /
 *   V --(Transpose)----------------------------------------------------------------
 *
 * What lies between exists for one panel of queries and one chunk of keys at a time (attention.h): the scores, by far the
 * largest arrays of such a network, are never stored. Transposes that nobody else needs become other strides of the operands. Not
 * fused: what somebody else reads an inner value of, and few queries, for which panels would be mostly empty.
 *
 * Pieces of the work are blocks of queries of one matrix of the batch; in a tile of Q, V or heads (a window) they are the
 * tile's.
 */
#include "engine/product/attention.h"
#include "engine/rows/fast_rows.h"
#include "lower.h"

enum {
    RANK_LEAST = 2,
    QUERIES_LEAST = 8,
    PARTS_MAX = 12 /* units of one attention */
};

/* Where the axes of an operand are: batch axes, row, column. */
typedef struct operand {
    uint32_t axis[OT_RANK_MAX]; /* of the array; OT_NONE: repeated */
} operand;

typedef struct attention_plan {
    uint32_t rank;
    int64_t dims[OT_RANK_MAX]; /* of the batch: [rank - 2] */
    int64_t batch, queries, keys, size, v_size;
    float scale;
    bool masked;
    operand q, k, v, mask, y;
    int64_t blocks;  /* of queries, of each matrix of the batch */
    int64_t scratch; /* floats of a thread */
    uint32_t threads;
} attention_plan;

/* ---- running ---- */

/* Operand o of item i of the batch. */
static ot_attention_matrix matrix_at(const attention_plan *p, const operand *o, const ot_nd *a, int64_t i)
{
    ot_attention_matrix m = {.data = a->data};
    uint32_t n = p->rank - 2;
    for (uint32_t k = n; k-- > 0; i /= p->dims[k])
        if (o->axis[k] != OT_NONE) m.data += i % p->dims[k] * a->strides[o->axis[k]];
    if (o->axis[n] != OT_NONE) m.row = a->strides[o->axis[n]];
    if (o->axis[n + 1] != OT_NONE) m.column = a->strides[o->axis[n + 1]];
    return m;
}

static void run_block(const ot_call *c, const attention_plan *p, int64_t piece, float *scratch)
{
    int64_t i = piece / p->blocks, panels = ot_ceil_div(p->queries, OT_ATTENTION_PANEL);
    int64_t first = panels * (piece % p->blocks) / p->blocks * OT_ATTENTION_PANEL,
            end = ot_min(p->queries, panels * (piece % p->blocks + 1) / p->blocks * OT_ATTENTION_PANEL);
    ot_attention_matrix y = matrix_at(p, &p->y, c->out[0], i);
    ot_attention_job j = {.queries = end - first, .keys = p->keys, .size = p->size, .v_size = p->v_size, .scale = p->scale};
    j.q = matrix_at(p, &p->q, c->in[0], i);
    j.k = matrix_at(p, &p->k, c->in[1], i);
    j.v = matrix_at(p, &p->v, c->in[2], i);
    j.q.data += first * j.q.row;
    if (p->masked) {
        j.mask = matrix_at(p, &p->mask, c->in[3], i);
        j.mask.data += first * j.mask.row;
    }
    j.y = (float *)(uintptr_t)y.data + first * y.row;
    j.y_row = y.row;
    ot_attention_run(&j, scratch);
}

static ot_status run_attention(ot_call *c)
{
    const attention_plan *p = c->plan;
    int64_t pieces = p->batch * p->blocks;
    int threads = (int)p->threads;
    (void)threads; /* without OpenMP */
    OT_TRY(ot_call_place(c, 0));
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < pieces; i++) run_block(c, p, i, (float *)c->work + ot_rows_worker() * p->scratch);
    return OT_OK;
}

/* ---- finding it ---- */

typedef struct pattern {
    uint32_t parts[PARTS_MAX], n;
    ot_id q, k, v, mask, y, scores, weights; /* mask: OT_NONE without one */
    operand of_q, of_k, of_v, of_mask, of_y;
    float scale;
} pattern;

/* A node of that operator that makes v, a float32 array that only unit `reader` reads; OT_NONE. */
static uint32_t made_by(const lw_pass *l, ot_id v, ot_op op, uint32_t reader)
{
    uint32_t u = v == OT_NONE ? OT_NONE : l->v[v].maker;
    if (u == OT_NONE || !lw_is_f32(l, v) || lw_only_reader(l, v) != reader) return OT_NONE;
    const lw_unit *m = &l->units[u];
    return m->kind == LW_NODE && m->nodes[0]->op == op && m->n_out >= 1 && m->out[0] == v ? u : OT_NONE;
}

static uint32_t rank_of(const lw_pass *l, ot_id v) { return l->v[v].slot->fore.rank; }

static int64_t dim_of(const lw_pass *l, ot_id v, uint32_t axis) { return l->v[v].slot->fore.dims[axis]; }

/* Follow scalar factors up from v, which unit `reader` reads, to the product Q K'. */
static bool find_product(const lw_pass *l, pattern *p, ot_id v, uint32_t reader)
{
    p->scale = 1;
    for (uint32_t links = 0; links < 3; links++) {
        uint32_t u = made_by(l, v, OT_OP_MatMul, reader);
        if (u != OT_NONE) {
            p->q = l->units[u].in[0];
            p->k = l->units[u].in[1];
            p->scores = v;
            p->parts[p->n++] = u;
            return l->units[u].n_in == 2 && p->q != p->k && lw_is_f32(l, p->q) && lw_is_f32(l, p->k);
        }
        float factor;
        bool divides = false;
        u = made_by(l, v, OT_OP_Mul, reader);
        if (u == OT_NONE) {
            u = made_by(l, v, OT_OP_Div, reader);
            divides = true;
        }
        if (u == OT_NONE || l->units[u].n_in != 2) return false;
        const ot_id *in = l->units[u].in;
        bool second = lw_scalar(l, in[1], &factor);
        if (!second && (divides || !lw_scalar(l, in[0], &factor))) return false;
        p->scale *= divides ? 1 / factor : factor;
        p->parts[p->n++] = u;
        v = in[second ? 0 : 1];
        reader = u;
    }
    return false;
}

/* From the input of Softmax up: a mask on either side of an Add, or none. */
static bool find_scores(const lw_pass *l, pattern *p, ot_id v, uint32_t reader)
{
    uint32_t add = made_by(l, v, OT_OP_Add, reader), n = p->n;
    p->mask = OT_NONE;
    if (add == OT_NONE) return find_product(l, p, v, reader);
    for (uint32_t side = 0; side < 2; side++) {
        p->n = n;
        p->parts[p->n++] = add;
        p->mask = l->units[add].in[1 - side];
        if (lw_is_f32(l, p->mask) && find_product(l, p, l->units[add].in[side], add) && p->mask != p->scores) return true;
    }
    return false;
}

/* Axes of an operand that is broadcast to `rank` axes with batch dims of the scores; false: it does not fit. */
static bool align(const lw_pass *l, ot_id v, ot_id to, uint32_t repeat_from, operand *o)
{
    uint32_t rank = rank_of(l, to), own = rank_of(l, v);
    if (own > rank) return false;
    for (uint32_t k = 0; k < rank; k++) {
        o->axis[k] = k + own < rank ? OT_NONE : k + own - rank;
        if (o->axis[k] != OT_NONE && k < repeat_from && dim_of(l, v, o->axis[k]) == 1) o->axis[k] = OT_NONE;
        if (o->axis[k] != OT_NONE && k < repeat_from && dim_of(l, v, o->axis[k]) != dim_of(l, to, k)) return false;
    }
    return true;
}

/* Axis of the array that axis k of the result of a Transpose is. */
static bool read_perm(const lw_pass *l, uint32_t u, uint32_t *perm)
{
    size_t n;
    const lw_unit *unit = &l->units[u];
    const int64_t *a = ot_attr_ints(unit->nodes[0], "perm", &n);
    uint32_t rank = rank_of(l, unit->out[0]);
    if (unit->n_in < 1 || !lw_is_f32(l, unit->in[0]) || rank_of(l, unit->in[0]) != rank || (a && n != rank)) return false;
    for (uint32_t k = 0; k < rank; k++) {
        if (a && (a[k] < 0 || a[k] >= rank)) return false;
        perm[k] = a ? (uint32_t)a[k] : rank - 1 - k;
        if (dim_of(l, unit->in[0], perm[k]) != dim_of(l, unit->out[0], k)) return false;
    }
    return true;
}

/* A Transpose of an operand that only unit `reader` reads becomes strides. */
static void take_transpose(const lw_pass *l, pattern *p, ot_id *v, operand *o, uint32_t rank, uint32_t reader)
{
    uint32_t perm[OT_RANK_MAX], u = made_by(l, *v, OT_OP_Transpose, reader);
    if (u == OT_NONE || !read_perm(l, u, perm)) return;
    for (uint32_t k = 0; k < rank; k++)
        if (o->axis[k] != OT_NONE) o->axis[k] = perm[o->axis[k]];
    *v = l->units[u].in[0];
    p->parts[p->n++] = u;
}

/* A Transpose that alone reads the result, when elements of a row stay neighbours. */
static void give_transpose(const lw_pass *l, pattern *p, uint32_t rank)
{
    uint32_t perm[OT_RANK_MAX], u = lw_only_reader(l, p->y);
    if (u == OT_NONE || l->units[u].kind != LW_NODE || l->units[u].nodes[0]->op != OT_OP_Transpose) return;
    if (!lw_is_f32(l, l->units[u].out[0]) || !read_perm(l, u, perm) || perm[rank - 1] != rank - 1) return;
    for (uint32_t k = 0; k < rank; k++) p->of_y.axis[perm[k]] = k;
    p->y = l->units[u].out[0];
    p->parts[p->n++] = u;
}

/* Shapes that the kernel takes, before Transposes are looked at. */
static bool fits(const lw_pass *l, pattern *p)
{
    uint32_t rank = rank_of(l, p->scores);
    if (rank < RANK_LEAST || rank_of(l, p->q) < RANK_LEAST || rank_of(l, p->k) < RANK_LEAST || rank_of(l, p->v) < RANK_LEAST ||
        rank_of(l, p->y) != rank)
        return false;
    if (!lw_same_dims(l, p->scores, p->weights) || dim_of(l, p->scores, rank - 2) < QUERIES_LEAST) return false;
    for (uint32_t k = 0; k + 1 < rank; k++)
        if (dim_of(l, p->scores, k) != dim_of(l, p->y, k)) return false;
    if (dim_of(l, p->v, rank_of(l, p->v) - 2) != dim_of(l, p->scores, rank - 1) ||
        dim_of(l, p->k, rank_of(l, p->k) - 1) != dim_of(l, p->scores, rank - 1) ||
        dim_of(l, p->k, rank_of(l, p->k) - 2) != dim_of(l, p->q, rank_of(l, p->q) - 1) ||
        dim_of(l, p->v, rank_of(l, p->v) - 1) != dim_of(l, p->y, rank - 1))
        return false;
    if (!align(l, p->q, p->scores, rank - 1, &p->of_q) || !align(l, p->k, p->scores, rank - 2, &p->of_k) ||
        !align(l, p->v, p->y, rank - 2, &p->of_v) || !align(l, p->y, p->y, 0, &p->of_y))
        return false;
    uint32_t swap = p->of_k.axis[rank - 1]; /* the product reads K' */
    p->of_k.axis[rank - 1] = p->of_k.axis[rank - 2];
    p->of_k.axis[rank - 2] = swap;
    return p->mask == OT_NONE || align(l, p->mask, p->scores, rank, &p->of_mask);
}

static bool find(const lw_pass *l, uint32_t softmax, pattern *p)
{
    const lw_unit *s = &l->units[softmax];
    *p = (pattern){.mask = OT_NONE};
    if (s->kind != LW_NODE || s->nodes[0]->op != OT_OP_Softmax || s->n_in != 1) return false;
    if (!lw_is_f32(l, s->in[0]) || !lw_is_f32(l, s->out[0])) return false;
    uint32_t rank = rank_of(l, s->in[0]), last = lw_only_reader(l, s->out[0]);
    int64_t axis = ot_attr_int(s->nodes[0], "axis", s->nodes[0]->version < 13 ? 1 : -1);
    if (rank < RANK_LEAST || (axis != -1 && axis != (int64_t)rank - 1) || last == OT_NONE) return false;
    const lw_unit *m = &l->units[last];
    if (m->kind != LW_NODE || m->nodes[0]->op != OT_OP_MatMul || m->n_in != 2 || m->in[0] != s->out[0] || m->in[1] == s->out[0] ||
        !lw_is_f32(l, m->in[1]) || !lw_is_f32(l, m->out[0]))
        return false;
    p->weights = s->out[0];
    p->v = m->in[1];
    p->y = m->out[0];
    p->parts[p->n++] = last;
    p->parts[p->n++] = softmax;
    if (!find_scores(l, p, s->in[0], softmax) || !lw_same_dims(l, p->scores, s->in[0]) || !fits(l, p)) return false;
    uint32_t first = p->parts[p->n - 1];
    if (p->v != p->q && p->v != p->k) take_transpose(l, p, &p->v, &p->of_v, rank, last);
    take_transpose(l, p, &p->q, &p->of_q, rank, first);
    take_transpose(l, p, &p->k, &p->of_k, rank, first);
    give_transpose(l, p, rank);
    return true;
}

/* ---- units and steps ---- */

static bool make_plan(const lw_pass *l, const pattern *p, attention_plan *out)
{
    const ot_nd *scores = &l->v[p->scores].slot->fore;
    uint32_t n = scores->rank - 2;
    ot_id q = p->q, v = p->v;
    *out = (attention_plan){.rank = scores->rank,
                            .queries = scores->dims[n],
                            .keys = scores->dims[n + 1],
                            .scale = p->scale,
                            .masked = p->mask != OT_NONE,
                            .q = p->of_q,
                            .k = p->of_k,
                            .v = p->of_v,
                            .mask = p->of_mask,
                            .y = p->of_y};
    memcpy(out->dims, scores->dims, n * sizeof *out->dims);
    out->size = dim_of(l, q, p->of_q.axis[n + 1]);
    out->v_size = dim_of(l, v, p->of_v.axis[n + 1]);
    if (!ot_product(out->dims, n, &out->batch)) return false;
    int64_t panels = ot_ceil_div(out->queries, OT_ATTENTION_PANEL), most = ot_attention_panels(out->size, out->v_size);
    double scores_all = (double)out->batch * (double)out->queries * (double)out->keys;
    out->threads = lw_threads(l, scores_all * (double)(out->size + out->v_size));
    int64_t pieces = 3 * (int64_t)out->threads; /* so many share evenly */
    out->blocks = ot_ceil_div(panels, most);
    if (out->threads > 1 && out->blocks * out->batch < pieces) out->blocks = ot_min(panels, ot_ceil_div(pieces, out->batch));
    out->scratch = ot_attention_scratch(ot_ceil_div(panels, out->blocks), out->size, out->v_size);
    return out->scratch > 0;
}

ot_status lw_fuse_attention(lw_pass *l)
{
    for (uint32_t u = 0; u < l->n_units; u++) {
        pattern p;
        attention_plan plan, *own;
        if (!find(l, u, &p) || !make_plan(l, &p, &plan)) continue;
        ot_id in[4] = {p.q, p.k, p.v, p.mask};
        own = ot_memdup(l->a, &plan, sizeof plan);
        if (!own) return ot_fail_nomem(l->p->s->d);
        OT_TRY(lw_merge(l, p.parts, p.n, LW_ATTENTION, in, plan.masked ? 4 : 3, &p.y, 1, own));
    }
    return OT_OK;
}

ot_status lw_write_attention(lw_pass *l, lw_unit *u)
{
    const attention_plan *p = u->plan;
    ot_id in[4], out;
    ot_step *step = NULL;
    for (uint32_t k = 0; k < u->n_in; k++) OT_TRY(lw_need(l, u->in[k], LW_ANY_PLAIN, LW_PLAIN, &in[k]));
    OT_TRY(lw_make(l, u->out[0], LW_PLAIN, &out));
    OT_TRY(lw_push(l, u->nodes[0], run_attention, p, in, u->n_in, &out, 1, &step));
    return ot_mul_i64(p->scratch * (int64_t)sizeof(float), p->threads, &step->work) ? OT_OK : ot_fail_nomem(l->p->s->d);
}
