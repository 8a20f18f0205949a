/* Facts about operators (from ops.def), element types, and sizes of values.
 *
 * One line of ops.def gives all that is data about an operator: the enum of ir.h and the table
 * below are the same lines expanded differently, so they cannot disagree. Index 0 is
 * OT_OP_OPAQUE: everything unknown.
 */
#include "ir.h"

#define MANY OT_OP_MANY
static const ot_op_row op_rows[OT_OP_COUNT] = {
    /* len 0: no operator name matches it */
    {"(opaque)", 0, OT_ACC_BARRIER, OT_COST_OTHER, 0, MANY, MANY, 0, 0, OT_TYPES_ANY},
#define OP(name, relation, shape, cost, min_in, max_in, max_out, place, weights, types) \
    {#name,  sizeof #name - 1, OT_ACC_##relation, OT_COST_##cost, min_in,               \
     max_in, max_out,          OT_OVER_##place,   weights,        OT_TYPES_##types},
#include "ops.def"
#undef OP
};
#undef MANY

/* A scan of a fixed table: called once per node when a graph is built, never inside a pass. */
ot_op ot_op_find(const char *op_type)
{
    size_t len = strlen(op_type);
    for (int k = OT_OP_OPAQUE + 1; k < OT_OP_COUNT; k++)
        if (op_rows[k].len == len && op_rows[k].name[0] == op_type[0] &&
            memcmp(op_rows[k].name, op_type, len) == 0)
            return (ot_op)k;
    return OT_OP_OPAQUE;
}

ot_op ot_op_of(const char *domain, const char *op_type)
{
    const ot_op op = ot_op_find(op_type);
    const bool own = op == OT_OP_Moments || op == OT_OP_NormFactors || op == OT_OP_GatherRows;
    return strcmp(domain, own ? OT_TILE_DOMAIN : "") == 0 ? op : OT_OP_OPAQUE;
}

const ot_op_row *ot_op_row_of(ot_op op)
{
    return &op_rows[(unsigned)op < OT_OP_COUNT ? op : OT_OP_OPAQUE];
}

const char *ot_op_name(ot_op op) { return ot_op_row_of(op)->name; }
ot_access_kind ot_op_access(ot_op op) { return ot_op_row_of(op)->access; }
ot_cost_kind ot_op_cost(ot_op op) { return ot_op_row_of(op)->cost; }
bool ot_op_is_view(ot_op op) { return ot_op_row_of(op)->place == OT_OVER_VIEW; }
bool ot_op_over(ot_op op, uint32_t in)
{
    return in < 3 && (ot_op_row_of(op)->place >> in & 1) != 0;
}

/* ---- element types ---- */

typedef struct ot_dtype_row {
    const char *name; /* as numpy and its extension types spell it */
    uint32_t bits;    /* 0: no fixed size */
} ot_dtype_row;

static const ot_dtype_row dtype_rows[] = {
    [OT_DT_UNKNOWN] = {"unknown", 0},
    [OT_F32] = {"float32", 32},
    [OT_U8] = {"uint8", 8},
    [OT_I8] = {"int8", 8},
    [OT_U16] = {"uint16", 16},
    [OT_I16] = {"int16", 16},
    [OT_I32] = {"int32", 32},
    [OT_I64] = {"int64", 64},
    [OT_STRING] = {"string", 0},
    [OT_BOOL] = {"bool", 8},
    [OT_F16] = {"float16", 16},
    [OT_F64] = {"float64", 64},
    [OT_U32] = {"uint32", 32},
    [OT_U64] = {"uint64", 64},
    [OT_C64] = {"complex64", 64},
    [OT_C128] = {"complex128", 128},
    [OT_BF16] = {"bfloat16", 16},
    [OT_F8E4M3FN] = {"float8_e4m3fn", 8},
    [OT_F8E4M3FNUZ] = {"float8_e4m3fnuz", 8},
    [OT_F8E5M2] = {"float8_e5m2", 8},
    [OT_F8E5M2FNUZ] = {"float8_e5m2fnuz", 8},
    [OT_U4] = {"uint4", 4},
    [OT_I4] = {"int4", 4},
    [OT_F4E2M1] = {"float4_e2m1fn", 4},
    [OT_F8E8M0] = {"float8_e8m0fnu", 8},
    [OT_U2] = {"uint2", 2},
    [OT_I2] = {"int2", 2},
};

#define N_DTYPES (sizeof dtype_rows / sizeof *dtype_rows)

uint32_t ot_dtype_bits(ot_dtype t) { return (unsigned)t < N_DTYPES ? dtype_rows[t].bits : 0; }

const char *ot_operators_name(ot_operators which)
{
    static const char *const names[] = {"", "whole", "parts", "regions"};
    return names[which];
}

const char *ot_dtype_name(ot_dtype t)
{
    return dtype_rows[(unsigned)t < N_DTYPES ? t : OT_DT_UNKNOWN].name;
}

ot_dtype ot_dtype_parse(const char *name)
{
    for (unsigned t = 0; t < N_DTYPES; t++)
        if (strcmp(dtype_rows[t].name, name) == 0) return (ot_dtype)t;
    return OT_DT_UNKNOWN;
}

/* ---- sizes ---- */

ot_id ot_value_only_reader(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    return x->is_output || x->n_uses != 1 || g->nodes[x->uses[0]].n_captured > 0 ? OT_NONE
                                                                                 : x->uses[0];
}

bool ot_value_is_static(const ot_value *v)
{
    if (v->rank < 0) return false;
    for (int32_t k = 0; k < v->rank; k++)
        if (v->dims[k] < 0) return false;
    return true;
}

bool ot_value_elems(const ot_value *v, int64_t *out)
{
    return ot_value_is_static(v) && ot_product(v->dims, (size_t)v->rank, out);
}

bool ot_value_bytes(const ot_value *v, int64_t *out)
{
    int64_t elems, bits = ot_dtype_bits(v->dtype);
    if (bits == 0 || !ot_value_elems(v, &elems)) return false;
    if (bits < 8) { /* sub-byte elements are packed, the last byte is whole */
        int64_t per_byte = 8 / bits;
        *out = elems / per_byte + (elems % per_byte != 0);
        return true;
    }
    return ot_mul_i64(elems, bits / 8, out);
}

/* Images have their own letters; other ranks count their axes. */
const char *ot_axis_name(int32_t rank, int axis)
{
    static const char *const image[] = {"N", "C", "H", "W"};
    static const char *const volume[] = {"N", "C", "D", "H", "W"};
    static const char *const counted[] = {"a0", "a1", "a2",  "a3",  "a4",  "a5",  "a6",  "a7",
                                          "a8", "a9", "a10", "a11", "a12", "a13", "a14", "a15"};
    if (axis < 0 || axis >= rank || axis >= OT_RANK_MAX) return "?";
    if (rank == 4) return image[axis];
    if (rank == 5) return volume[axis];
    return counted[axis];
}
