/* The table of shape rules, by operator of ops.def, and the small helpers that rules share. */
#include "other_size.h"
#include "shape.h"

#include <stdarg.h>

#define ot_shape_stated NULL /* outputs as the file states them */

static const ot_shape_rule rules[OT_OP_COUNT] = {
    NULL, /* OT_OP_OPAQUE */
#define OP(name, relation, shape, ...) ot_shape_##shape,
#include "ops.def"
#undef OP
};

ot_shape_rule ot_shape_rule_of(ot_op op)
{
    return op > OT_OP_OPAQUE && op < OT_OP_COUNT ? rules[op] : NULL;
}

char *ot_shape_node_text(const ot_infer *c, char *buf, size_t size)
{
    const ot_node *n = c->n;
    if (n->name != NULL && n->name[0] != '\0') {
        snprintf(buf, size, "node '%s' (%s)", n->name, n->op_type);
        return buf;
    }
    const char *made = "?";
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) {
            made = c->g->values[n->out[k]].name;
            break;
        }
    snprintf(buf, size, "node making '%s' (%s)", made, n->op_type);
    return buf;
}

bool ot_node_lacks(const ot_node *n, char *why, size_t size)
{
    if (n->op == OT_OP_OPAQUE) return false;
    const ot_op_row *row = ot_op_row_of(n->op);
    if (n->n_in < row->min_in)
        return snprintf(why, size, "has %u inputs, needs %u", n->n_in, row->min_in), true;
    if (row->max_in != OT_OP_MANY && n->n_in > row->max_in)
        return snprintf(why, size, "has %u inputs, takes at most %u", n->n_in, row->max_in), true;
    if (row->max_out != OT_OP_MANY && n->n_out > row->max_out)
        return snprintf(why, size, "has %u outputs, makes at most %u", n->n_out, row->max_out),
               true;
    for (uint32_t k = 0; k < row->min_in; k++)
        if (n->in[k] == OT_NONE)
            return snprintf(why, size, "required input %u is omitted", k), true;
    return false;
}

ot_status(ot_shape_fail)(ot_infer *c, const char *fmt, ...)
{
    char text[OT_DIAG_MAX], node[OT_DIAG_MAX];
    if (!c->exact && c->other == NULL) return OT_E_INPUT; /* the driver forgets it */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    /* told with what was made for the old size */
    if (ot_size_note(c, text) || !c->exact) return OT_E_INPUT;
    return ot_fail(c->g->model->diag, OT_E_INPUT, "%s: %s",
                   ot_shape_node_text(c, node, sizeof node), text);
}

const ot_value *ot_shape_in(const ot_infer *c, uint32_t k)
{
    if (k >= c->n->n_in || c->n->in[k] == OT_NONE) return NULL;
    return &c->g->values[c->n->in[k]];
}

const ot_value *ot_shape_ranked(const ot_infer *c, uint32_t k)
{
    const ot_value *v = ot_shape_in(c, k);
    return v != NULL && v->rank >= 0 ? v : NULL;
}

const ot_known *ot_shape_known(const ot_infer *c, uint32_t k)
{
    if (k >= c->n->n_in || c->n->in[k] == OT_NONE) return NULL;
    const ot_known *known = &c->known[c->n->in[k]];
    return known->valid ? known : NULL;
}

const int64_t *ot_shape_ints(const ot_infer *c, uint32_t k, size_t *n)
{
    const ot_known *known = ot_shape_known(c, k);
    if (known == NULL || known->i == NULL || known->ok != NULL) return NULL;
    *n = known->n;
    return known->i;
}

bool ot_shape_int(const ot_infer *c, uint32_t k, int64_t *out)
{
    size_t n = 0;
    const int64_t *i = ot_shape_ints(c, k, &n);
    if (i == NULL || n != 1) return false;
    *out = i[0];
    return true;
}

ot_dtype ot_shape_dtype(const ot_infer *c, uint32_t k)
{
    const ot_value *v = ot_shape_in(c, k);
    return v == NULL ? OT_DT_UNKNOWN : v->dtype;
}

void ot_shape_set(ot_infer *c, uint32_t k, ot_dtype t, int32_t rank, const int64_t *d)
{
    if (k >= c->n->n_out) return;
    ot_shp *o = &c->out[k];
    o->dtype = t;
    o->rank = rank > OT_RANK_MAX ? -1 : rank;
    for (int32_t a = 0; a < o->rank; a++) o->d[a] = d == NULL ? OT_DIM_UNKNOWN : d[a];
}

void ot_shape_set_type(ot_infer *c, uint32_t k, ot_dtype t)
{
    if (k < c->n->n_out) c->out[k].dtype = t;
}

void ot_shape_set_like(ot_infer *c, uint32_t k, ot_dtype t, const ot_value *v)
{
    ot_shape_set(c, k, t, v == NULL ? -1 : v->rank, v == NULL ? NULL : v->dims);
}

ot_status ot_shape_axis(ot_infer *c, const char *what, int64_t axis, int32_t rank, uint32_t *out)
{
    if (axis < -rank || axis >= rank)
        return ot_shape_fail(c, "%s %lld is not in [%d, %d)", what, (long long)axis, -rank, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return OT_OK;
}

ot_status ot_shape_axes(ot_infer *c, const char *what, const int64_t *axes, size_t n, int32_t rank,
                        bool mask[OT_RANK_MAX])
{
    memset(mask, 0, OT_RANK_MAX * sizeof(bool));
    for (size_t k = 0; k < n; k++) {
        uint32_t a = 0;
        OT_TRY(ot_shape_axis(c, what, axes[k], rank, &a));
        if (mask[a]) return ot_shape_fail(c, "%s names axis %u twice", what, a);
        mask[a] = true;
    }
    return OT_OK;
}

void ot_shape_axes_of(const ot_infer *c, const char *attr, uint32_t k, bool *given,
                      const int64_t **axes, size_t *n)
{
    *axes = ot_attr_ints(c->n, attr, n);
    *given = *axes != NULL;
    if (*given) return;
    const ot_value *v = ot_shape_in(c, k);
    if (v == NULL) return;
    *given = true;
    *axes = ot_shape_ints(c, k, n);
    if (*axes != NULL) return;
    *n = SIZE_MAX;
    if (v->rank == 0) *n = 1;
    if (v->rank == 1 && v->dims[0] >= 0) *n = (size_t)v->dims[0];
}

bool ot_shape_broadcast(ot_shp *a, int32_t rank, const int64_t *d)
{
    if (rank > a->rank) {
        int32_t more = rank - a->rank;
        memmove(a->d + more, a->d, (size_t)a->rank * sizeof a->d[0]);
        for (int32_t k = 0; k < more; k++) a->d[k] = 1;
        a->rank = rank;
    }
    for (int32_t k = 0; k < rank; k++) {
        int64_t *x = &a->d[a->rank - rank + k];
        int64_t y = d[k];
        if (*x == y || y == 1) continue;
        if (*x == 1 || *x == OT_DIM_UNKNOWN)
            *x = y; /* an unknown dim is 1 or y: y either way */
        else if (y != OT_DIM_UNKNOWN)
            return false;
    }
    return true;
}

bool ot_shape_merge(int64_t *a, int64_t b)
{
    if (*a == OT_DIM_UNKNOWN) *a = b;
    return b == OT_DIM_UNKNOWN || *a == b;
}
