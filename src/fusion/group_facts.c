/* Questions about values of a view that the recogniser and the rules of runtimes share. */
#include "fusion.h"

bool ot_group_is_real(const ot_group_view *v, ot_id value, ot_group_shape *s)
{
    int64_t n;
    if (value == OT_NONE || !v->shape(v->of, value, s)) return false;
    return ot_dtype_is_real(s->dtype) && s->rank <= 8 && ot_product(s->dims, s->rank, &n) &&
           n > 0 && n < INT64_MAX / 64;
}

bool ot_group_is_f32(const ot_group_view *v, ot_id value, ot_group_shape *s)
{
    return ot_group_is_real(v, value, s) && s->dtype == OT_F32;
}

bool ot_group_same_dims(const ot_group_view *v, ot_id a, ot_id b)
{
    ot_group_shape x, y;
    if (a == OT_NONE || b == OT_NONE || !v->shape(v->of, a, &x) || !v->shape(v->of, b, &y))
        return false;
    for (uint32_t k = 0; x.rank == y.rank && k < x.rank; k++)
        if (x.dims[k] != y.dims[k]) return false;
    return x.rank == y.rank;
}

uint32_t ot_group_only_reader(const ot_group_view *v, ot_id value)
{
    uint32_t n;
    const uint32_t *places = v->readers(v->of, value, &n);
    return n != 1 || v->is_kept(v->of, value) ? OT_NONE : places[0];
}

ot_id ot_group_operand(const ot_group_view *v, uint32_t place, uint32_t k)
{
    uint32_t n;
    const ot_id *in = v->operands(v->of, place, &n);
    return k < n ? in[k] : OT_NONE;
}

bool ot_group_shape_of(const ot_group_view *v, ot_id value, ot_group_shape *s)
{
    return value != OT_NONE && v->shape(v->of, value, s);
}

bool ot_group_origin_shape(const ot_group_view *v, const ot_group_origin *o, uint32_t k,
                           ot_group_shape *s)
{
    ot_id value = k < o->n->n_in ? o->n->in[k] : OT_NONE;
    if (value == OT_NONE || o->g == v->g) return ot_group_shape_of(v, value, s);
    const ot_value *x = &o->g->values[value];
    if (!x->is_tensor || x->is_sequence || !ot_value_is_static(x)) return false;
    *s = (ot_group_shape){x->dtype, (uint32_t)x->rank, x->dims};
    return true;
}

bool ot_group_origin_const(const ot_group_view *v, const ot_group_origin *o, uint32_t k)
{
    ot_id value = k < o->n->n_in ? o->n->in[k] : OT_NONE;
    return value != OT_NONE && (o->place == OT_NONE || v->is_const(v->of, value));
}

int64_t ot_group_count(const ot_group_shape *s)
{
    int64_t n;
    return ot_product(s->dims, s->rank, &n) ? n : 0;
}
