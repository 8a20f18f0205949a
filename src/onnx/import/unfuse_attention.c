/* Attention of com.microsoft over one input, as the transformers optimiser of ONNX Runtime writes
 * it, read as the operators that it was made of: the scores of some rows need no others then.
 *
 *   x [b,rows,wide] -> MatMul, Add -> Reshape, Transpose   queries, by the scale; keys; values
 *   MatMul(queries, keys') -> Add(mask, bias) -> Softmax -> MatMul(.., values) -> [b,rows,heads*v]
 *
 *   mask [b,keys]   0 where it is above zero, else mask_filter_value
 *   mask [b]        0 up to that many keys, else mask_filter_value
 *
 * Weights and biases are constants of float32. A cache, a causal mask or one of more axes leave the
 * node as it is, which is cut along the batch (ops/access_transformers.c).
 */
#include "model_io.h"
#include "node_writer.h"

#include <math.h>

#define OLDEST 11 /* opset that has Range */

enum { X, WEIGHTS, BIAS, MASK, PAST, SCORE_BIAS, PAST_ROWS };

/* One third of the weights. */
typedef struct part {
    int64_t from, width; /* its columns */
    float factor;
    bool keys; /* the product reads its transpose */
} part;

typedef struct attention {
    const ot_tensor *weights, *bias;
    part parts[3];
    int64_t heads;
    int32_t mask_rank; /* 0: no mask */
} attention;

static ot_id operand(const ot_node *n, uint32_t k) { return k < n->n_in ? n->in[k] : OT_NONE; }

/* Constant float32 of `rank` axes, its contents at hand; NULL: it is none. */
static const ot_tensor *constant(const ot_graph *g, ot_id id, uint32_t rank)
{
    const ot_value *v = id == OT_NONE ? NULL : &g->values[id];
    int64_t elems;
    if (!v || !v->init || v->overridable || v->init->dtype != OT_F32 || !v->init->data) return NULL;
    if (v->init->rank != rank || !ot_product(v->init->dims, rank, &elems) || elems < 1) return NULL;
    return (uint64_t)elems * sizeof(float) == v->init->bytes ? v->init : NULL;
}

/* Axes of a mask: the file says it, or what makes it; -1: not known. */
static int32_t rank_of(const ot_graph *g, ot_id id)
{
    const ot_value *v = &g->values[id];
    if (v->rank >= 0) return v->rank;
    if (v->producer == OT_NONE) return -1;
    const ot_node *n = &g->nodes[v->producer];
    if (strcmp(n->op_type, "Cast") == 0 && n->n_in == 1 && n->in[0] != OT_NONE)
        return g->values[n->in[0]].rank;
    if (strcmp(n->op_type, "EmbedLayerNormalization") == 0 && n->n_out > 1 && n->out[1] == id)
        return 1;
    return -1;
}

/* Columns of queries, keys and values. */
static bool read_parts(const ot_node *n, attention *a)
{
    size_t count = 0;
    const int64_t *sizes = ot_attr_ints(n, "qkv_hidden_sizes", &count), all = a->weights->dims[1];
    int64_t at = 0;
    if (sizes ? count != 3 : all % 3) return false;
    for (int k = 0; k < 3; k++) {
        const int64_t width = sizes ? sizes[k] : all / 3;
        if (width < 1 || width > all || width % a->heads) return false;
        a->parts[k] = (part){at, width, 1, k == 1};
        at += width;
    }
    const float scale = ot_attr_float(n, "scale", 0);
    const double each = (double)(a->parts[0].width / a->heads);
    a->parts[0].factor = scale != 0 ? scale : (float)(1 / sqrt(each));
    return at == all && a->parts[0].width == a->parts[1].width;
}

static bool reads(const ot_graph *g, const ot_node *n, attention *a)
{
    if (n->dead || n->calls_function || strcmp(n->domain, "com.microsoft") != 0) return false;
    if (strcmp(n->op_type, "Attention") != 0 || n->n_in < 2 || n->n_in > 7) return false;
    if (operand(n, X) == OT_NONE || operand(n, PAST) != OT_NONE || n->n_out < 1) return false;
    if (operand(n, PAST_ROWS) != OT_NONE || n->out[0] == OT_NONE) return false;
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return false;
    if (ot_attr_int(n, "unidirectional", 0) != 0 || ot_attr_int(n, "do_rotary", 0) != 0)
        return false;
    a->heads = ot_attr_int(n, "num_heads", 0);
    a->weights = constant(g, operand(n, WEIGHTS), 2);
    a->bias = constant(g, operand(n, BIAS), 1);
    a->mask_rank = operand(n, MASK) == OT_NONE ? 0 : rank_of(g, operand(n, MASK));
    if (a->heads < 1 || !a->weights || !a->bias || a->bias->dims[0] != a->weights->dims[1])
        return false;
    return a->mask_rank >= 0 && a->mask_rank <= 2 && read_parts(n, a);
}

/* ---- writing ---- */

static ot_status write(const ot_node_writer *w, const char *type, ot_id a, ot_id b, ot_id *y)
{
    return ot_write_node(w, type, (ot_id_list){(ot_id[]){a, b}, b == OT_NONE ? 1 : 2},
                         (ot_attr_list){0}, y);
}

static ot_status write_with(const ot_node_writer *w, const char *type, ot_id x, ot_attr attr,
                            ot_id *y)
{
    return ot_write_node(w, type, (ot_id_list){&x, 1}, (ot_attr_list){&attr, 1}, y);
}

/* x in another shape: 0 is an extent of its own there, -1 what is left. */
static ot_status write_shaped(const ot_node_writer *w, ot_id x, const int64_t *to, int64_t rank,
                              ot_id *y)
{
    ot_id shape;
    OT_TRY(ot_write_ints(w, "shape", to, rank, &shape));
    return write(w, "Reshape", x, shape, y);
}

/* The columns of part p, by its factor. */
static ot_status write_columns(const ot_node_writer *w, const ot_tensor *t, const part *p,
                               ot_id *out)
{
    const int64_t rows = t->rank == 2 ? t->dims[0] : 1, all = t->dims[t->rank - 1];
    const int64_t dims[2] = {rows, p->width};
    const char *name = ot_writer_name(w, t->rank == 2 ? "weights" : "bias");
    ot_arena *a = ot_arena_new();
    float *data = a ? ot_alloc_n(a, (size_t)rows * (size_t)p->width, sizeof *data) : NULL;
    for (int64_t r = 0; data && r < rows; r++) {
        float *row = data + r * p->width;
        memcpy(row, (const char *)t->data + (size_t)(r * all + p->from) * sizeof *row,
               (size_t)p->width * sizeof *row);
        for (int64_t k = 0; p->factor != 1 && k < p->width; k++) row[k] *= p->factor;
    }
    *out = data && name ? ot_const_f32(w->g, name, data, t->rank == 2 ? 2 : 1,
                                       t->rank == 2 ? dims : dims + 1)
                        : OT_NONE;
    ot_arena_free(a);
    return *out == OT_NONE ? ot_fail_nomem(w->g->model->diag) : OT_OK;
}

/* [b, heads, rows, each] of x; of keys [b, heads, each, rows]. */
static ot_status write_part(const ot_node_writer *w, const attention *a, const part *p, ot_id x,
                            ot_id *y)
{
    static const int64_t by_rows[4] = {0, 2, 1, 3}, by_each[4] = {0, 2, 3, 1};
    const int64_t split[4] = {0, 0, a->heads, p->width / a->heads};
    ot_id weights, bias, made = OT_NONE, sum = OT_NONE, apart = OT_NONE;
    OT_TRY(write_columns(w, a->weights, p, &weights));
    OT_TRY(write_columns(w, a->bias, p, &bias));
    OT_TRY(write(w, "MatMul", x, weights, &made));
    OT_TRY(write(w, "Add", made, bias, &sum));
    OT_TRY(write_shaped(w, sum, split, 4, &apart));
    return write_with(w, "Transpose", apart,
                      ot_mk_ints(w->g->model->arena, "perm", p->keys ? by_each : by_rows, 4), y);
}

/* *kept: a condition [b, 1, 1, keys], true where a key is not masked. */
static ot_status write_kept(const ot_node_writer *w, const attention *a, ot_id x, ot_id mask,
                            ot_id *kept)
{
    static const int64_t of_keys[4] = {0, 1, 1, -1}, of_length[4] = {-1, 1, 1, 1};
    const int64_t zero = 0, one = 1;
    ot_id apart = OT_NONE, wide = OT_NONE, none, step, sizes = OT_NONE, rows = OT_NONE,
          numbers = OT_NONE;
    OT_TRY(write_shaped(w, mask, a->mask_rank == 2 ? of_keys : of_length, 4, &apart));
    OT_TRY(write_with(w, "Cast", apart, ot_mk_int("to", OT_I64), &wide));
    const char *const names[2] = {ot_writer_name(w, "zero"), ot_writer_name(w, "one")};
    if (!names[0] || !names[1]) return ot_fail_nomem(w->g->model->diag);
    none = ot_const_i64(w->g, names[0], &zero, 0, NULL);
    if (none == OT_NONE) return ot_fail_nomem(w->g->model->diag);
    if (a->mask_rank == 2) return write(w, "Greater", wide, none, kept);
    step = ot_const_i64(w->g, names[1], &one, 0, NULL);
    if (step == OT_NONE) return ot_fail_nomem(w->g->model->diag);
    OT_TRY(write(w, "Shape", x, OT_NONE, &sizes));
    OT_TRY(write(w, "Gather", sizes, step, &rows));
    OT_TRY(ot_write_node(w, "Range", (ot_id_list){(ot_id[]){none, rows, step}, 3},
                         (ot_attr_list){0}, &numbers));
    return write(w, "Less", numbers, wide, kept);
}

static ot_status write_mask(const ot_node_writer *w, const attention *a, const ot_node *old,
                            ot_id *y)
{
    const float nothing = 0, least = ot_attr_float(old, "mask_filter_value", -10000);
    ot_id kept = OT_NONE, in[3];
    OT_TRY(write_kept(w, a, old->in[X], old->in[MASK], &kept));
    in[0] = kept;
    OT_TRY(ot_write_floats(w, "kept", &nothing, 0, &in[1]));
    OT_TRY(ot_write_floats(w, "masked", &least, 0, &in[2]));
    return ot_write_node(w, "Where", (ot_id_list){in, 3}, (ot_attr_list){0}, y);
}

static ot_status write_attention(ot_graph *g, ot_id id, const attention *a)
{
    static const int64_t back[4] = {0, 2, 1, 3};
    ot_node old;
    const ot_node_writer w = ot_writer_in_place_of(g, id, &old);
    const int64_t joined[3] = {0, 0, a->parts[2].width};
    ot_id of[3] = {OT_NONE, OT_NONE, OT_NONE}, scores = OT_NONE, mask = OT_NONE, shares = OT_NONE,
          mixed = OT_NONE, turned = OT_NONE, y = old.out[0];
    for (int k = 0; k < 3; k++) OT_TRY(write_part(&w, a, &a->parts[k], old.in[X], &of[k]));
    OT_TRY(write(&w, "MatMul", of[0], of[1], &scores));
    if (a->mask_rank > 0) {
        ot_id sum = OT_NONE;
        OT_TRY(write_mask(&w, a, &old, &mask));
        OT_TRY(write(&w, "Add", scores, mask, &sum));
        scores = sum;
    }
    if (operand(&old, SCORE_BIAS) != OT_NONE) {
        ot_id sum = OT_NONE;
        OT_TRY(write(&w, "Add", scores, old.in[SCORE_BIAS], &sum));
        scores = sum;
    }
    OT_TRY(write_with(&w, "Softmax", scores, ot_mk_int("axis", 3), &shares));
    OT_TRY(write(&w, "MatMul", shares, of[2], &mixed));
    OT_TRY(
        write_with(&w, "Transpose", mixed, ot_mk_ints(g->model->arena, "perm", back, 4), &turned));
    return write_shaped(&w, turned, joined, 3, &y);
}

ot_status ot_unfuse_attention(ot_importer *im)
{
    ot_graph *g = im->g;
    const uint32_t n_nodes = g->n_nodes;
    attention a;
    for (ot_id id = 0; im->opset >= OLDEST && id < n_nodes; id++)
        if (reads(g, &g->nodes[id], &a)) OT_TRY(write_attention(g, id, &a));
    return g->n_nodes > n_nodes ? ot_raise_constants(im) : OT_OK;
}
