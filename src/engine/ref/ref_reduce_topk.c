/* TopK: the K largest or smallest elements of every lane, and where they stood.
 *
 * Every element becomes an integer key whose order is the order of the elements (largest first),
 * so one comparison serves all types and NaN has a place, too: above all numbers. Of equal
 * elements the first comes first. `sorted` = 0 allows any order: this one.
 */
#include "ref_reduce.h"

#include <math.h>

typedef struct ranked {
    uint64_t key; /* smaller: earlier in the result */
    int64_t index;
} ranked;

/* Integers of unsigned order from smallest to largest element. */
static uint64_t key_of_float(double v)
{
    uint64_t bits;
    if (v == 0) v = 0; /* -0 is 0 */
    if (isnan(v)) return UINT64_MAX;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}
static uint64_t key_of_int(int64_t v, bool is_u64)
{
    return is_u64 ? (uint64_t)v : (uint64_t)v ^ UINT64_C(1) << 63;
}

static int by_key(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void rank_lane(const ot_rm_lanes *l, bool is_u64, bool want_largest, ranked *r)
{
    for (int64_t j = 0; j < l->len; j++) {
        uint64_t key = l->f ? key_of_float(l->f[j]) : key_of_int(l->i[j], is_u64);
        r[j] = (ranked){.key = want_largest ? ~key : key, .index = j};
    }
    qsort(r, (size_t)l->len, sizeof *r, by_key);
}

/* K: an attribute in version 1, an input since 10. */
static ot_status read_k(ot_call *c, int64_t size, int64_t *k)
{
    *k = ot_attr_int(c->node, "k", -1);
    if (c->node->version >= 10) {
        int64_t n;
        OT_TRY(ot_rm_need_kind(c, 1, REF_INT));
        if (!ot_nd_elems(c->in[1], &n) || n != 1)
            return ot_call_fail(c, "input 1 (K) is not one number");
        *k = ot_nd_int(c->in[1], 0);
    }
    if (*k >= 0 && *k <= size) return OT_OK;
    return ot_call_fail(c, "%lld elements of an axis of size %lld", (long long)*k, (long long)size);
}

/* Lane (o, i) of the outputs, from the sorted lane. */
static void store_lane(ot_call *c, const ot_rm_lanes *l, const ranked *r, int64_t k, int64_t o,
                       int64_t i)
{
    for (int64_t j = 0; j < k; j++) {
        int64_t to = (o * k + j) * l->inner + i;
        if (ot_rm_wants(c, 1)) ot_rm_store_i(c->out[1], to, 1, 1, &r[j].index);
        if (!ot_rm_wants(c, 0)) continue;
        if (l->f)
            ot_rm_store_f(c->out[0], to, 1, 1, &l->f[r[j].index]);
        else
            ot_rm_store_i(c->out[0], to, 1, 1, &l->i[r[j].index]);
    }
}

ot_status ot_rm_topk(ot_call *c)
{
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT | REF_INT));
    const ot_nd *a = c->in[0];
    bool want_largest = ot_attr_int(c->node, "largest", 1) != 0;
    uint32_t axis = 0;
    int64_t k = 0, dims[OT_RANK_MAX];
    if (a->rank == 0) return ot_call_fail(c, "input 0 is a scalar");
    OT_TRY(ot_rm_axis(c, ot_attr_int(c->node, "axis", -1), a->rank, &axis));
    OT_TRY(read_k(c, a->dims[axis], &k));
    memcpy(dims, a->dims, sizeof dims);
    dims[axis] = k;
    OT_TRY(ot_call_output(c, 0, a->dtype, a->rank, dims));
    OT_TRY(ot_call_output(c, 1, OT_I64, a->rank, dims));
    ot_rm_lanes l;
    OT_TRY(ot_rm_lanes_new(&l, c, a, axis, axis + 1));
    size_t bytes;
    if (__builtin_mul_overflow((size_t)l.len + 1, sizeof(ranked), &bytes))
        return ot_call_fail(c, "input 0 is too large");
    if (l.outer == 0) return OT_OK;
    ranked *r = ot_call_scratch(c, bytes);
    if (!r) return ot_fail_nomem(c->diag);
    for (int64_t o = 0; o < l.outer; o++) {
        for (int64_t i = 0; i < l.inner; i++) {
            if (l.f)
                ot_rm_load_f(a, ot_rm_lane_at(&l, o, i), l.inner, l.len, l.f);
            else
                ot_rm_load_i(a, ot_rm_lane_at(&l, o, i), l.inner, l.len, l.i);
            rank_lane(&l, a->dtype == OT_U64, want_largest, r);
            store_lane(c, &l, r, k, o, i);
        }
    }
    return OT_OK;
}
