/* Weights that Constant nodes hold are initializers, as other files have them.
 *
 *   Constant {value = [64,3,3,3]} --> w --> Conv      =>      initializer w --> Conv
 *
 * PaddlePaddle's exporter writes all weights so. Runtimes make initializers of them while they
 * load the model; what looks for weights (a data file, normalisations folded into convolutions,
 * layouts) finds them so. Arrays of real numbers and of bytes, where nodes hold more of these than
 * initializers do. A model that nothing else changes is written back with its nodes
 * (ot_raise_undo).
 */
#include "import.h"

static bool is_weight_type(ot_dtype t)
{
    return ot_dtype_is_real(t) || t == OT_F64 || t == OT_I8 || t == OT_U8;
}

/* What Constant node n holds, if its result may be an initializer; NULL. */
static const ot_tensor *weights_of(const ot_graph *g, const ot_node *n)
{
    if (n->dead || n->op != OT_OP_Constant || n->n_out != 1 || n->out[0] == OT_NONE) return NULL;
    const ot_value *v = &g->values[n->out[0]];
    const ot_attr *a = n->n_attrs == 1 ? ot_attr_find(n, "value") : NULL;
    const ot_tensor *t = a && a->kind == OT_ATTR_TENSOR ? a->t : NULL;
    if (!t || v->is_output || v->init || t->rank < 1 || !is_weight_type(t->dtype)) return NULL;
    if (!ot_fits_stated(v, t)) return NULL; /* shape inference says what is followed */
    return v->dtype == OT_DT_UNKNOWN || v->dtype == t->dtype ? t : NULL;
}

/* Bytes that Constant nodes hold of weights. */
static int64_t bytes_in_nodes(const ot_importer *im)
{
    int64_t sum = 0;
    for (ot_id id = 0; id < im->src->n_nodes; id++) {
        const ot_tensor *t = weights_of(im->g, &im->g->nodes[id]);
        if (t && !ot_add_i64(sum, (int64_t)t->bytes, &sum)) return INT64_MAX;
    }
    return sum;
}

ot_status ot_lift_constants(ot_importer *im)
{
    ot_graph *g = im->g;
    const int64_t bytes = bytes_in_nodes(im);
    if (bytes <= (int64_t)im->m->weight_bytes) return OT_OK;
    if (bytes > INT64_MAX - (int64_t)im->m->weight_bytes)
        return ot_fail(im->d, OT_E_INPUT, "the constants are too large to be counted");
    im->m->weight_bytes += (size_t)bytes;
    im->src->has_lifted = true;
    for (ot_id id = 0; id < im->src->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        const ot_tensor *t = weights_of(g, n);
        if (!t) continue;
        const ot_id v = n->out[0];
        OT_TRY(ot_value_set_shape(g, v, (int32_t)t->rank, t->dims));
        g->values[v].dtype = t->dtype;
        g->values[v].init = t;
        ot_node_remove(g, id);
    }
    return OT_OK;
}
