/* Known contents: evaluating small integer (and float) values while shapes are inferred.
 *
 * Exported models compute shapes with tensors:
 *
 *   x --Shape--> [?,64,28,28] --Gather 1--> 64 --Unsqueeze--> [64] --\
 *                                                  [?] ---------------Concat--> [?,64] --> Reshape
 *
 * Each element is known or not on its own, so a free batch does not hide the rest. Floats are
 * followed too (Cast, Mul by a scale, Floor, Cast back is how Resize sizes are written), rounded
 * after each step to their own precision. Contents without holes become value.known, those of
 * floats value.known_floats.
 *
 * Half precision: runtimes without half kernels compute in float32 and some leave out the rounding
 * between two operators. A Cast rounds, whoever runs it; a result of arithmetic that 16 bits cannot
 * hold counts as unknown.
 *
 * known_arith.c computes, known_move.c copies, known_tensor.c rounds and writes down; this file
 * holds storage and the helpers of the first two.
 */
#include "onnx/import/model_io.h"
#include "shape.h"

/* elements evaluated in one run; when spent, only vectors as short as shapes are \ followed */
#define BUDGET       (4 << 20)
#define SHAPE_LENGTH 32
/* most elements of an int8...uint32 constant worth following: these are mostly weights */
#define NARROW_MAX 64

bool ot_known_is_float(ot_dtype t)
{
    return t == OT_F32 || t == OT_F64 || t == OT_F16 || t == OT_BF16;
}

bool ot_known_is_int(ot_dtype t)
{
    switch ((int)t) {
    case OT_I64:
    case OT_I32:
    case OT_BOOL:
    case OT_U8:
    case OT_I8:
    case OT_U16:
    case OT_I16:
    case OT_U32: return true;
    default: return false;
    }
}

bool ot_known_fits(ot_dtype t, int64_t v)
{
    switch ((int)t) {
    case OT_I64: return true;
    case OT_I32: return v >= INT32_MIN && v <= INT32_MAX;
    case OT_BOOL: return v == 0 || v == 1;
    case OT_U8: return v >= 0 && v <= UINT8_MAX;
    case OT_I8: return v >= INT8_MIN && v <= INT8_MAX;
    case OT_U16: return v >= 0 && v <= UINT16_MAX;
    case OT_I16: return v >= INT16_MIN && v <= INT16_MAX;
    case OT_U32: return v >= 0 && v <= UINT32_MAX;
    default: return false;
    }
}

void ot_known_set_int(ot_known_buf *b, ot_dtype t, uint32_t e, int64_t v)
{
    b->ok[e] = ot_known_fits(t, v);
    if (b->ok[e]) b->i[e] = v;
}

void ot_known_set_float(ot_known_buf *b, ot_dtype t, uint32_t e, double v)
{
    b->ok[e] = v == v; /* a NaN counts as unknown */
    b->f[e] = ot_known_round(t, v);
}

void ot_known_set_result(ot_known_buf *b, ot_dtype t, uint32_t e, double v)
{
    ot_known_set_float(b, t, e, v);
    if ((t == OT_F16 || t == OT_BF16) && b->f[e] != (double)(float)v) b->ok[e] = false;
}

void ot_known_copy(ot_known_buf *b, uint32_t e, const ot_known *k, uint32_t s)
{
    b->ok[e] = ot_known_has(k, s) && (b->i != NULL) == (k->i != NULL);
    if (!b->ok[e]) return;
    if (b->i != NULL)
        b->i[e] = k->i[s];
    else
        b->f[e] = k->f[s];
}

void ot_known_unravel(const ot_value *v, uint32_t e, int64_t at[OT_RANK_MAX])
{
    int64_t rest = e;
    for (int32_t a = v->rank - 1; a >= 0; a--) {
        at[a] = rest % v->dims[a];
        rest /= v->dims[a];
    }
}

uint32_t ot_known_ravel(const ot_value *v, const int64_t *at)
{
    int64_t e = 0;
    for (int32_t a = 0; a < v->rank; a++) e = e * v->dims[a] + at[a];
    return (uint32_t)e;
}

uint32_t ot_known_broadcast(const ot_value *out, const ot_value *in, uint32_t e)
{
    int64_t at[OT_RANK_MAX], from[OT_RANK_MAX];
    ot_known_unravel(out, e, at);
    for (int32_t a = 0; a < in->rank; a++)
        from[a] = in->dims[a] == 1 ? 0 : at[out->rank - in->rank + a];
    return ot_known_ravel(in, from);
}

/* ---- storage ---- */

/* Elements of a value of this type that we follow; 0: none. */
static uint32_t limit_of(ot_dtype t)
{
    if (ot_known_is_float(t)) return OT_KNOWN_FLOAT_MAX;
    return ot_known_is_int(t) ? OT_KNOWN_MAX : 0;
}

static bool widen(ot_infer *c, const float *from, uint32_t n, ot_known *k)
{
    double *f = OT_NEW_N(c->scratch, double, n);
    if (f == NULL) return false;
    for (uint32_t e = 0; e < n; e++) f[e] = (double)from[e];
    *k = (ot_known){.n = n, .valid = true, .f = f};
    return true;
}

bool ot_known_of_tensor(ot_infer *c, const ot_tensor *t, ot_known *k)
{
    int64_t elems;
    size_t n = 0, max = limit_of(t->dtype);
    bool wide = t->dtype == OT_I64 || t->dtype == OT_I32 || t->dtype == OT_BOOL;
    if (!wide && ot_known_is_int(t->dtype)) max = NARROW_MAX;
    if (max == 0 || !ot_product(t->dims, t->rank, &elems) || elems > (int64_t)max) return true;
    if (ot_known_is_float(t->dtype)) {
        float f[OT_KNOWN_FLOAT_MAX];
        if (!ot_tensor_floats(t, f, OT_KNOWN_FLOAT_MAX, &n) || n != (size_t)elems) return true;
        return widen(c, f, (uint32_t)n, k);
    }
    int64_t *i = OT_NEW_N(c->keep, int64_t, (size_t)elems);
    if (i == NULL) return false;
    if (!ot_tensor_ints(t, i, (size_t)elems, &n) || n != (size_t)elems) return true;
    *k = (ot_known){.n = (uint32_t)n, .valid = true, .i = i};
    return true;
}

/* Contents of a Constant node. false: no memory. */
static bool of_constant(ot_infer *c, ot_known *k)
{
    for (uint32_t a = 0; a < c->n->n_attrs; a++) {
        const ot_attr *at = &c->n->attrs[a];
        if (strcmp(at->name, "value") == 0 && at->kind == OT_ATTR_TENSOR && at->t != NULL)
            return ot_known_of_tensor(c, at->t, k);
        if (strcmp(at->name, "value_int") == 0 && at->kind == OT_ATTR_INT) {
            int64_t *i = ot_memdup(c->keep, &at->i, sizeof at->i);
            if (i != NULL) *k = (ot_known){.n = 1, .valid = true, .i = i};
            return i != NULL;
        }
        if (strcmp(at->name, "value_ints") == 0 && at->kind == OT_ATTR_INTS &&
            at->n <= OT_KNOWN_MAX) {
            int64_t *i = OT_NEW_N(c->keep, int64_t, at->n);
            if (i == NULL) return false;
            if (at->n > 0) memcpy(i, at->ints, at->n * sizeof *i);
            *k = (ot_known){.n = (uint32_t)at->n, .valid = true, .i = i};
            return true;
        }
        if (strcmp(at->name, "value_float") == 0 && at->kind == OT_ATTR_FLOAT)
            return widen(c, &at->f, 1, k);
        if (strcmp(at->name, "value_floats") == 0 && at->kind == OT_ATTR_FLOATS &&
            at->n <= OT_KNOWN_FLOAT_MAX)
            return widen(c, at->floats, (uint32_t)at->n, k);
    }
    return true;
}

static bool alloc_buf(ot_infer *c, uint32_t n, bool floats, ot_known_buf *b)
{
    *b = (ot_known_buf){.n = n};
    b->ok = OT_NEW_N(c->scratch, bool, n);
    if (floats)
        b->f = OT_NEW_N(c->scratch, double, n);
    else
        b->i = OT_NEW_N(c->scratch, int64_t, n);
    return b->ok != NULL && (b->i != NULL || b->f != NULL);
}

/* Evaluate output k of c->n, whose value is v, into *known. */
static ot_status evaluate(ot_infer *c, uint32_t k, const ot_value *v, ot_known *known)
{
    int64_t n;
    ot_known_buf b;
    if (!ot_value_elems(v, &n) || limit_of(v->dtype) == 0 || n > (int64_t)limit_of(v->dtype))
        return OT_OK;
    if (n > SHAPE_LENGTH && c->spent + n > BUDGET) return OT_OK;
    c->spent += n;
    if (!alloc_buf(c, (uint32_t)n, ot_known_is_float(v->dtype), &b))
        return ot_fail_nomem(c->g->model->diag);
    if (!ot_known_move(c, k, v, &b) && !ot_known_arith(c, k, v, &b)) return OT_OK;
    bool holes = false;
    for (uint32_t e = 0; e < b.n; e++) holes = holes || !b.ok[e];
    *known = (ot_known){.n = b.n, .valid = true, .i = b.i, .f = b.f, .ok = holes ? b.ok : NULL};
    if (b.i == NULL || holes) return OT_OK;
    known->i = ot_memdup(c->keep, b.i, b.n * sizeof *b.i);
    return known->i == NULL ? ot_fail_nomem(c->g->model->diag) : OT_OK;
}

/* Operators that need no contents of their first input. */
static bool starts_chain(ot_op op)
{
    return op == OT_OP_Shape || op == OT_OP_Size || op == OT_OP_ConstantOfShape ||
           op == OT_OP_Concat;
}

/* Contents without holes outlive the run, with the value. */
static ot_status publish(ot_infer *c, ot_value *v, const ot_known *known)
{
    if (!known->valid || known->ok != NULL) return OT_OK;
    if (known->f != NULL) {
        v->known_floats = ot_memdup(c->keep, known->f, known->n * sizeof *known->f);
        if (v->known_floats == NULL && known->n > 0) return ot_fail_nomem(c->g->model->diag);
    }
    v->known = known->i;
    v->known_n = known->n;
    return OT_OK;
}

/* Outputs of an If have what shape_branches.c found in the branch that is taken. */
static ot_status publish_taken(ot_infer *c)
{
    for (uint32_t k = 0; k < c->n->n_out; k++) {
        const ot_id id = c->n->out[k];
        int64_t elems;
        if (id == OT_NONE || !c->known[id].valid) continue;
        ot_value *v = &c->g->values[id];
        const bool fits = ot_value_elems(v, &elems) && elems == (int64_t)c->known[id].n &&
                          elems <= (int64_t)limit_of(v->dtype) &&
                          ot_known_is_float(v->dtype) == (c->known[id].f != NULL);
        if (!fits) c->known[id] = (ot_known){0};
        OT_TRY(publish(c, v, &c->known[id]));
    }
    return OT_OK;
}

ot_status ot_known_propagate(ot_infer *c)
{
    const ot_node *n = c->n;
    if (n->op == OT_OP_If) return publish_taken(c);
    /* a Split whose parts would take quadratic time to place */
    if (n->n_out > OT_KNOWN_MAX) return OT_OK;
    if (n->op != OT_OP_Constant && !starts_chain(n->op) && ot_shape_known(c, 0) == NULL)
        return OT_OK;
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (n->out[k] == OT_NONE) continue;
        ot_value *v = &c->g->values[n->out[k]];
        ot_known *known = &c->known[n->out[k]];
        if (n->op == OT_OP_Constant) {
            if (!of_constant(c, known)) return ot_fail_nomem(c->g->model->diag);
        } else {
            OT_TRY(evaluate(c, k, v, known));
        }
        OT_TRY(publish(c, v, known));
    }
    return OT_OK;
}
