/* Operators of com.microsoft that are a standard operator with an activation merged in, as ONNX
 * Runtime's optimiser writes them into the models that it saves, read as what they were made of:
 *
 *   FusedConv(x, w, b, z) {activation, activation_params}   Conv(x, w, b), Add(.., z), Relu ...
 *   FusedGemm(a, b, c) {activation, activation_alpha ...}   Gemm(a, b, c), Relu ...
 *
 * So all that is known of these holds: which tilings there are, what they cost, how they run. The
 * runtime merges them again when it loads what is written. An activation that is not in the table
 * of node_writer.c leaves the node as it is.
 */
#include "node_writer.h"

#define OLDEST 7  /* opset whose Gemm broadcasts */
#define NO_SUM 11 /* opset from which on Gemm needs no summand */

static bool has(const ot_node *n, uint32_t k) { return k < n->n_in && n->in[k] != OT_NONE; }

static bool is_of(const ot_node *n, const char *op_type, uint32_t least, uint32_t most)
{
    if (n->dead || n->calls_function || strcmp(n->domain, "com.microsoft") != 0) return false;
    if (strcmp(n->op_type, op_type) != 0 || n->n_in < least || n->n_in > most) return false;
    for (uint32_t k = 0; k < least; k++)
        if (!has(n, k)) return false;
    return n->n_out == 1 && n->out[0] != OT_NONE && n->n_captured == 0;
}

static ot_activation activation_of_gemm(const ot_node *n)
{
    static const char *const names[2] = {"activation_alpha", "activation_beta"};
    ot_activation a = {.op = ot_attr_str(n, "activation", "")};
    while (a.n < 2 && ot_attr_find(n, names[a.n])) {
        a.params[a.n] = ot_attr_float(n, names[a.n], 0);
        a.n++;
    }
    return a;
}

/* Attributes of what is merged in. */
static const char *const MERGED[] = {"activation", NULL};

static ot_status write_conv(ot_graph *g, ot_id id)
{
    ot_node old;
    ot_attr *attrs;
    const ot_node_writer w = ot_writer_in_place_of(g, id, &old);
    ot_merged_conv c = {.in = {old.in, has(&old, 2) ? 3 : 2},
                        .sum = has(&old, 3) ? old.in[3] : OT_NONE,
                        .act = ot_activation_of_conv(&old)};
    OT_TRY(ot_write_attrs_of(&w, &old, MERGED, &attrs, &c.attrs.n));
    c.attrs.at = attrs;
    return ot_write_conv(&w, &c, old.out[0]);
}

static ot_status write_gemm(ot_graph *g, ot_id id)
{
    ot_node old;
    ot_attr *attrs;
    uint32_t n_attrs;
    const ot_node_writer w = ot_writer_in_place_of(g, id, &old);
    const ot_activation act = activation_of_gemm(&old);
    const ot_id_list in = {old.in, has(&old, 2) ? 3 : 2};
    ot_id y = old.out[0], at = act.op[0] ? OT_NONE : y;
    OT_TRY(ot_write_attrs_of(&w, &old, MERGED, &attrs, &n_attrs));
    OT_TRY(ot_write_node(&w, "Gemm", in, (ot_attr_list){attrs, n_attrs}, &at));
    return act.op[0] ? ot_write_activation(&w, &act, at, &y) : OT_OK;
}

ot_status ot_unfuse_nodes(ot_importer *im)
{
    ot_graph *g = im->g;
    const uint32_t n_nodes = g->n_nodes;
    for (ot_id id = 0; im->opset >= OLDEST && id < n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        if (is_of(n, "FusedConv", 2, 4)) {
            const ot_activation a = ot_activation_of_conv(n);
            if (ot_activation_is_known(&a, im->opset)) OT_TRY(write_conv(g, id));
        } else if (is_of(n, "FusedGemm", 2, 3)) {
            const ot_activation a = activation_of_gemm(n);
            const bool sums = has(n, 2) || im->opset >= NO_SUM;
            if (sums && ot_activation_is_known(&a, im->opset)) OT_TRY(write_gemm(g, id));
        }
    }
    return g->n_nodes > n_nodes ? ot_raise_constants(im) : OT_OK;
}
