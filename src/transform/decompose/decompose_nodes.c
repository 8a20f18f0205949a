/* Nodes and constants that take the place of normalisations, written at any opset from 7 on. */
#include "decompose_internal.h"

#define SUM_HAS_AXES_INPUT    13
#define REDUCE_HAS_AXES_INPUT 18
/* before, Constant nodes hold floating point only; and before IR 4, constants are such nodes */
#define CONSTANT_OF_ANY_TYPE 9

static ot_status nomem(const decomp_writer *w) { return ot_fail_nomem(w->g->model->diag); }

static const char *name_of(const decomp_writer *w, const char *role)
{
    ot_model *m = w->g->model;
    if (m->is_sketch) return ot_fresh_name(m, "");
    const char *name = ot_format(m->arena, "%s/%s", w->base, role);
    return name ? ot_fresh_name(m, name) : NULL;
}

/* The node itself, named after def->name. */
static ot_status add_node(decomp_writer *w, const ot_node_def *def)
{
    const ot_op op = ot_op_find(def->op);
    const bool own = op == OT_OP_Moments || op == OT_OP_NormFactors || op == OT_OP_GatherRows;
    ot_node_def n = *def;
    n.name = name_of(w, def->name);
    if (own) n.domain = OT_TILE_DOMAIN;
    if (!n.name) return nomem(w);
    ot_id id = ot_node_new(w->g, &n);
    if (id == OT_NONE) return nomem(w);
    if (own) w->g->nodes[id].version = 1;
    if (w->n_nodes == sizeof w->nodes / sizeof *w->nodes)
        OT_BUG("a normalisation takes more nodes than there is room for");
    w->nodes[w->n_nodes++] = id;
    return OT_OK;
}

static ot_status add_value(decomp_writer *w, const char *role, ot_tensor_type type, ot_id *out)
{
    const char *tail = ot_join(w->g->model->arena, (const char *[]){role, "/out"}, 2),
               *name = tail ? name_of(w, tail) : NULL;
    if (!name) return nomem(w);
    *out = ot_value_new(w->g, name, type.dtype, type.rank, type.dims);
    return *out == OT_NONE ? nomem(w) : OT_OK;
}

ot_status decomp_op(decomp_writer *w, const ot_node_def *def, ot_tensor_type type, ot_id *out)
{
    ot_node_def n = *def;
    n.out = (ot_id_list){out, 1};
    if (*out == OT_NONE) OT_TRY(add_value(w, def->name, type, out));
    return add_node(w, &n);
}

ot_status decomp_pair(decomp_writer *w, const ot_node_def *def, ot_tensor_type type, ot_id out[2])
{
    ot_node_def n = *def;
    n.name = "factors";
    n.out = (ot_id_list){out, 2};
    OT_TRY(add_value(w, "factor", type, &out[0]));
    OT_TRY(add_value(w, "summand", type, &out[1]));
    return add_node(w, &n);
}

ot_status decomp_cast(decomp_writer *w, const char *role, ot_id x, ot_dtype to, ot_id *out)
{
    const ot_value v = w->g->values[x];
    const ot_attr at = ot_mk_int("to", to);
    *out = OT_NONE;
    return decomp_op(w,
                     &(ot_node_def){.op = "Cast", .name = role, .in = {&x, 1}, .attrs = {&at, 1}},
                     (ot_tensor_type){to, v.rank, v.dims}, out);
}

ot_status decomp_reduce(decomp_writer *w, const char *op_type, const char *role, ot_id x,
                        const int64_t *axes, size_t n, ot_id *out)
{
    const ot_value v = w->g->values[x];
    int64_t dims[OT_RANK_MAX];
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    for (size_t k = 0; k < n; k++) dims[axes[k]] = 1;
    ot_id in[2] = {x, OT_NONE};
    ot_attr attrs[2] = {ot_mk_int("keepdims", 1)};
    uint32_t n_in = 1, n_attrs = 1;
    if (w->g->model->opset >=
        (strcmp(op_type, "ReduceSum") == 0 ? SUM_HAS_AXES_INPUT : REDUCE_HAS_AXES_INPUT)) {
        OT_TRY(decomp_ints(w, "axes", axes, (int64_t)n, &in[n_in++]));
    } else {
        attrs[n_attrs] = ot_mk_ints(w->g->model->arena, "axes", axes, n);
        if (attrs[n_attrs++].kind != OT_ATTR_INTS) return nomem(w);
    }
    *out = OT_NONE;
    return decomp_op(
        w, &(ot_node_def){.op = op_type, .name = role, .in = {in, n_in}, .attrs = {attrs, n_attrs}},
        (ot_tensor_type){v.dtype, v.rank, dims}, out);
}

ot_status decomp_reshape(decomp_writer *w, const char *role, ot_id x, int32_t rank,
                         const int64_t *dims, ot_id *out)
{
    ot_id in[2] = {x, OT_NONE};
    int64_t shape[OT_RANK_MAX];
    /* a free batch stays what it is */
    for (int32_t k = 0; k < rank; k++) shape[k] = dims[k] < 0 ? 0 : dims[k];
    OT_TRY(decomp_ints(w, "shape", shape, rank, &in[1]));
    *out = OT_NONE;
    return decomp_op(w, &(ot_node_def){.op = "Reshape", .name = role, .in = {in, 2}},
                     (ot_tensor_type){w->g->values[x].dtype, rank, dims}, out);
}

/* ---- constants ---- */

/* Integers as float64, cast back: their number is small, and so are they. */
static ot_status ints_by_cast(decomp_writer *w, const char *role, const int64_t *data, int64_t n,
                              ot_id *out)
{
    double wide[OT_RANK_MAX];
    ot_id from;
    for (int64_t k = 0; k < n; k++) wide[k] = (double)data[k];
    OT_TRY(decomp_doubles(w, role, wide, 1, &n, &from));
    OT_TRY(decomp_cast(w, role, from, OT_I64, out));
    ot_value *v = &w->g->values[*out];
    int64_t *own = ot_memdup(w->g->model->arena, data, (size_t)n * sizeof *data);
    if (!own) return nomem(w);
    v->known = own;
    v->known_n = (uint32_t)n;
    v->is_const = true;
    w->g->nodes[w->nodes[w->n_nodes - 1]].is_static = true;
    return OT_OK;
}

ot_status decomp_ints(decomp_writer *w, const char *role, const int64_t *data, int64_t n,
                      ot_id *out)
{
    if (w->g->model->ir_version < 4 && w->g->model->opset < CONSTANT_OF_ANY_TYPE)
        return ints_by_cast(w, role, data, n, out);
    return ot_const_ints(w->g, ot_format(w->g->model->arena, "%s/%s", w->base, role), data, n, out);
}

ot_status decomp_doubles(decomp_writer *w, const char *role, const double *data, int32_t rank,
                         const int64_t *dims, ot_id *out)
{
    const char *name = name_of(w, role);
    if (!name) return nomem(w);
    *out = ot_const_f64(w->g, name, data, rank, dims);
    return *out == OT_NONE ? nomem(w) : OT_OK;
}

ot_status decomp_floats(decomp_writer *w, const char *role, const float *data, int32_t rank,
                        const int64_t *dims, ot_id *out)
{
    const char *name = name_of(w, role);
    if (!name) return nomem(w);
    *out = ot_const_f32(w->g, name, data, rank, dims);
    return *out == OT_NONE ? nomem(w) : OT_OK;
}
