/* MatMulNBits by its definition (ref_nbits.h). */
#include "ref_nbits.h"

static ot_status read_attributes(ot_call *c, ot_nbits *p)
{
    p->k = ot_attr_int(c->node, "K", 0);
    p->n = ot_attr_int(c->node, "N", 0);
    p->bits = ot_attr_int(c->node, "bits", 4);
    p->block = ot_attr_int(c->node, "block_size", 0);
    if (p->k < 1 || p->n < 1 || p->k > INT32_MAX || p->n > INT32_MAX)
        return ot_call_fail(c, "K %lld and N %lld must be in [1, 2^31)", (long long)p->k,
                            (long long)p->n);
    if (p->bits != 2 && p->bits != 4 && p->bits != 8)
        return ot_call_fail(c, "bits is %lld, must be 2, 4 or 8", (long long)p->bits);
    if (p->block < 16 || p->block > INT32_MAX / 8 || (p->block & (p->block - 1)) != 0)
        return ot_call_fail(c, "block_size %lld is no power of 2 from 16 on", (long long)p->block);
    p->blocks = ot_ceil_div(p->k, p->block);
    return OT_OK;
}

/* Input k has the elements of these dims, in whatever shape. */
static ot_status check_count(ot_call *c, uint32_t k, int64_t x, int64_t y, int64_t z)
{
    const ot_nd *a = ot_num_in(c, k);
    int64_t want;
    if (!ot_product((int64_t[]){x, y, z}, 3, &want))
        return ot_call_fail(c, "the weights are too large");
    if (!a || ot_num_count(a) == want) return OT_OK;
    return ot_call_fail(c, "input %u has %lld elements, must have %lld", k,
                        (long long)ot_num_count(a), (long long)want);
}

ot_status ot_nbits_open(ot_call *c, ot_nbits *p)
{
    *p = (ot_nbits){0};
    OT_TRY(ot_call_need(c, 3));
    OT_TRY(read_attributes(c, p));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    OT_TRY(ot_num_type(c, 1, OT_NUM_BIT(OT_U8)));
    OT_TRY(ot_num_same_type(c, 2, 0));
    OT_TRY(ot_num_same_type(c, 5, 0));
    if (ot_num_in(c, 4)) return ot_call_fail(c, "input 4, g_idx, is not supported");
    p->a = c->in[0];
    p->b = c->in[1]->data;
    p->scale = c->in[2];
    p->zero = ot_num_in(c, 3);
    p->bias = ot_num_in(c, 5);
    p->zero_step = ot_ceil_div(p->blocks * p->bits, 8);
    if (p->a->rank < 1 || p->a->dims[p->a->rank - 1] != p->k)
        return ot_call_fail(c, "the rows of A do not have K %lld elements", (long long)p->k);
    if (!ot_product(p->a->dims, p->a->rank - 1, &p->rows)) return ot_call_fail(c, "A is too large");
    OT_TRY(check_count(c, 1, p->n, p->blocks, p->block * p->bits / 8));
    OT_TRY(check_count(c, 2, p->n, p->blocks, 1));
    OT_TRY(check_count(c, 5, p->n, 1, 1));
    if (!p->zero) return OT_OK;
    if (p->zero->dtype != OT_U8) OT_TRY(ot_num_same_type(c, 3, 0));
    return check_count(c, 3, p->n, p->zero->dtype == OT_U8 ? p->zero_step : p->blocks, 1);
}

void ot_nbits_dims(const ot_nbits *p, int64_t *dims)
{
    memcpy(dims, p->a->dims, p->a->rank * sizeof *dims);
    dims[p->a->rank - 1] = p->n;
}

ot_status ot_ref_matmul_nbits(ot_call *c)
{
    ot_nbits p;
    int64_t dims[OT_RANK_MAX];
    OT_TRY(ot_nbits_open(c, &p));
    ot_nbits_dims(&p, dims);
    OT_TRY(ot_call_output(c, 0, p.a->dtype, p.a->rank, dims));
    for (int64_t i = 0; ot_num_out(c, 0) && i < p.rows * p.n; i++) {
        int64_t row = i / p.n, column = i % p.n;
        double sum = p.bias ? ot_nd_double(p.bias, column) : 0;
        for (int64_t k = 0; k < p.k; k++) {
            int64_t block = k / p.block;
            int q = ot_nbits_element(ot_nbits_block(&p, column, block), p.bits, k % p.block);
            sum += ot_nd_double(p.a, row * p.k + k) *
                   (((double)q - ot_nbits_zero(&p, column, block)) *
                    ot_nbits_scale(&p, column, block));
        }
        ot_num_put(c->out[0], i, sum);
    }
    return OT_OK;
}
