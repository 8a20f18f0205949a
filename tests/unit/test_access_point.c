/* Slice relation of the operators without windows: element-wise, normalisation, softmax,
 * reductions, products, quantisation; of movement: test_access_move.c. Cases say which axes must
 * be cut ('1') and which refused ('0'); access_check.h runs tiles of each and compares them with
 * the whole; access_eval.h holds the slow operators.
 */
#include "access_check.h"

/* ---- element-wise ---- */

static void test_broadcast_random(void **state)
{
    static const char *const types[] = {"Add", "Where", "PRelu", "Max", "Less", "Mean", "Relu"};
    static const uint32_t arity[] = {2, 3, 2, 4, 2, 3, 1};
    (void)state;
    seed(1);
    for (int i = 0; i < 150; i++) {
        size_t t = (size_t)rnd(7);
        kase *c = new_case(types[t], 13);
        int32_t rank = 1 + (int32_t)rnd(4);
        int64_t d[ARR_RANK] = {0};
        for (int32_t a = 0; a < rank; a++) d[a] = 1 + rnd(5);
        for (uint32_t k = 0; k < arity[t]; k++) {
            int32_t own = k == 0 ? rank : (int32_t)rnd(rank + 1);
            int64_t od[ARR_RANK] = {0};
            for (int32_t a = 0; a < own; a++) od[a] = k > 0 && rnd(3) == 0 ? 1 : d[rank - own + a];
            operand(c, own, od);
        }
        build(c);
        for (int32_t a = 0; a < rank; a++) {
            cut x;
            assert_true(ask(c, (uint32_t)a, &x));
            for (uint32_t k = 0; k < c->n_in; k++) {
                int32_t own = a - (rank - c->in[k].rank);
                bool varies = own >= 0 && (c->in[k].d[own] > 1 || d[a] == 1);
                assert_int_equal(x.in_axis[k], varies ? own : OT_AX_WHOLE);
            }
        }
        check(c, &"1111"[4 - rank]);
    }
}

static void test_point_parameters(void **state)
{
    (void)state;
    seed(2);
    kase *c = new_case("Clip", 13); /* [1] is a scalar, not the last axis */
    IN(c, 3, 4), IN(c, 1), scalar_in(c);
    check(c, "11");
    c = new_case("Clip", 13);
    IN(c, 3, 4), omitted(c), scalar_in(c);
    check(c, "11");
    c = new_case("CastLike", 15);
    IN(c, 3, 4), IN(c, 5, 7, 2);
    check(c, "11");
    c = new_case("SwiGLU", 28);
    IN(c, 3, 4), IN(c, 3, 4);
    check(c, "11");
    c = new_case("Dropout", 13);
    c->n_out = 2; /* the mask is cut as well */
    IN(c, 2, 3, 4), scalar_in(c);
    build(c);
    cut x;
    assert_true(ask(c, 1, &x));
    assert_int_equal(x.out_axis[1], 1);
    check(c, "111");
    for (int64_t training = 0; training < 2; training++) {
        c = new_case("Dropout", 13);
        IN(c, 2, 3), scalar_in(c), ints_in(c, 1, &training);
        check(c, training ? "00" : "11");
    }
}

static void test_legacy_broadcast(void **state)
{
    (void)state;
    seed(3);
    kase *c = new_case("Add", 6);
    IN(c, 2, 3, 4, 5), IN(c, 3);
    attr_i(c, "broadcast", 1), attr_i(c, "axis", 1);
    build(c);
    cut x;
    assert_true(ask(c, 1, &x));
    assert_int_equal(x.in_axis[1], 0);
    check(c, "1111");
    c = new_case("Add", 6);
    IN(c, 2, 3, 4), IN(c, 3, 4);
    attr_i(c, "broadcast", 1);
    check(c, "111");
}

/* ---- normalisations ---- */

static void test_norms(void **state)
{
    (void)state;
    seed(4);
    kase *c = new_case("BatchNormalization", 15);
    IN(c, 2, 3, 4, 5), IN(c, 3), IN(c, 3), IN(c, 3), IN(c, 3);
    check(c, "1111");
    c = new_case("BatchNormalization", 15);
    IN(c, 2, 3, 4), IN(c, 3), IN(c, 3), IN(c, 3), IN(c, 3);
    attr_i(c, "training_mode", 1);
    check(c, "000");
    c = new_case("BatchNormalization", 6); /* is_test = 0 */
    IN(c, 2, 3, 4), IN(c, 3), IN(c, 3), IN(c, 3), IN(c, 3);
    check(c, "000");
    c = new_case("InstanceNormalization", 6);
    IN(c, 2, 3, 4, 5), IN(c, 3), IN(c, 3);
    check(c, "1100");
    c = new_case("GroupNormalization", 21);
    IN(c, 3, 4, 2, 2), IN(c, 4), IN(c, 4);
    attr_i(c, "num_groups", 2);
    check(c, "1000");
    c = new_case("LRN", 13);
    IN(c, 2, 5, 3, 4);
    attr_i(c, "size", 3);
    check(c, "1011");
    c = new_case("LpNormalization", 1);
    IN(c, 2, 3, 4);
    attr_i(c, "axis", 1);
    check(c, "101");
    c = new_case("MeanVarianceNormalization", 13);
    IN(c, 2, 3, 4, 5);
    attr_ints(c, "axes", (int64_t[]){0, 2, -1}, 3);
    check(c, "0100");
}

static void test_layer_norm(void **state)
{
    (void)state;
    seed(5);
    kase *c = new_case("LayerNormalization", 17);
    IN(c, 2, 3, 4, 5), IN(c, 4, 5), IN(c, 5);
    attr_i(c, "axis", -2);
    c->n_out = 2; /* Mean follows */
    build(c);
    cut x;
    assert_true(ask(c, 1, &x));
    assert_int_equal(x.out_axis[1], 1);
    check(c, "1100");
    c = new_case("LayerNormalization", 17);
    IN(c, 6, 5), IN(c, 5);
    check(c, "10");
    c = new_case("RMSNormalization", 23); /* a scale that varies along a free axis is cut too */
    IN(c, 2, 3, 5), IN(c, 3, 5);
    check(c, "110");
}

static void test_softmax(void **state)
{
    (void)state;
    seed(6);
    for (int64_t a = -4; a < 4; a++) {
        char now[] = "1111", then[] = "0000";
        int64_t at = a < 0 ? a + 4 : a;
        now[at] = '0';
        for (int64_t i = 0; i < at; i++) then[i] = '1';
        kase *c = new_case("Softmax", 13);
        IN(c, 2, 3, 4, 2);
        attr_i(c, "axis", a);
        check(c, now);
        c = new_case("Softmax", 12);
        IN(c, 2, 3, 4, 2);
        attr_i(c, "axis", a);
        check(c, then);
    }
    kase *c = new_case("Softmax", 11); /* defaults */
    IN(c, 4, 3, 2);
    check(c, "100");
    c = new_case("Softmax", 17);
    IN(c, 4, 3, 2);
    check(c, "110");
}

/* ---- reductions ---- */

static void test_reduce_random(void **state)
{
    (void)state;
    seed(7);
    for (int i = 0; i < 80; i++) {
        bool by_input = rnd(2), keep = rnd(2);
        kase *c = new_case("ReduceSum", by_input ? 13 : 11);
        int32_t rank = 2 + (int32_t)rnd(3), kept = 0;
        int64_t d[ARR_RANK] = {0}, axes[ARR_RANK];
        size_t n_axes = 0;
        char expect[ARR_RANK + 1] = "";
        for (int32_t a = 0; a < rank; a++) {
            bool cut_out = rnd(2) || (a == rank - 1 && n_axes == 0);
            d[a] = 1 + rnd(4);
            if (cut_out) axes[n_axes++] = rnd(2) ? a : a - rank;
            if (keep || !cut_out) expect[kept++] = cut_out ? '0' : '1';
        }
        operand(c, rank, d);
        if (by_input)
            ints_in(c, (int64_t)n_axes, axes);
        else
            attr_ints(c, "axes", axes, n_axes);
        attr_i(c, "keepdims", keep);
        check(c, expect);
    }
}

static void test_reduce_special(void **state)
{
    (void)state;
    seed(8);
    kase *c = new_case("ReduceMean", 13); /* no axes: all */
    IN(c, 3, 4);
    check(c, "00");
    c = new_case("ReduceSum", 13);
    IN(c, 3, 4);
    attr_i(c, "noop_with_empty_axes", 1);
    check(c, "11");
    c = new_case("ReduceSum", 13); /* axes that only a run knows */
    IN(c, 3, 4), INTS(c, 1);
    c->constant[1] = false;
    check(c, "00");
    for (int64_t a = -3; a < 3; a++) {
        char expect[] = "111";
        expect[a < 0 ? a + 3 : a] = '0';
        c = new_case("ArgMax", 13);
        IN(c, 2, 3, 4);
        attr_i(c, "axis", a);
        check(c, expect);
        c = new_case("ArgMax", 13);
        IN(c, 2, 3, 4);
        attr_i(c, "axis", a), attr_i(c, "keepdims", 0);
        check(c, "11");
        c = new_case("CumSum", 14);
        IN(c, 2, 3, 4), INTS(c, a);
        check(c, expect);
    }
}

/* ---- products ---- */

static void test_matmul_random(void **state)
{
    (void)state;
    seed(9);
    for (int i = 0; i < 120; i++) {
        kase *c = new_case("MatMul", 13);
        int32_t ra = 1 + (int32_t)rnd(4), rb = 1 + (int32_t)rnd(4);
        int64_t batch[2], d[ARR_RANK] = {0}, M = 1 + rnd(4), K = 1 + rnd(3), N = 1 + rnd(4);
        if (ra == 1 && rb == 1) ra = 2;
        batch[0] = 1 + rnd(3), batch[1] = 1 + rnd(3);
        for (int32_t a = 0; a < ra - 2; a++) d[a] = rnd(3) ? batch[a + 4 - ra] : 1;
        if (ra > 1) d[ra - 2] = M;
        d[ra - 1] = K;
        operand(c, ra, d);
        for (int32_t a = 0; a < rb - 2; a++) d[a] = rnd(3) ? batch[a + 4 - rb] : 1;
        d[rb == 1 ? 0 : rb - 2] = K;
        if (rb > 1) d[rb - 1] = N;
        operand(c, rb, d);
        build(c);
        check(c, &"1111"[4 - c->full[0].rank]);
    }
}

static void test_matmul_roles(void **state)
{
    (void)state;
    seed(10);
    kase *c = new_case("MatMul", 13);
    IN(c, 2, 1, 4, 3), IN(c, 5, 3, 6); /* batch 2 and 5 from one operand each */
    build(c);
    static const int8_t want[4][2] = {{0, -1}, {-1, 0}, {2, -1}, {-1, 2}};
    for (uint32_t a = 0; a < 4; a++) {
        cut x;
        assert_true(ask(c, a, &x));
        assert_int_equal(x.in_axis[0], want[a][0]);
        assert_int_equal(x.in_axis[1], want[a][1]);
    }
    check(c, "1111");
    c = new_case("MatMulInteger", 13); /* zero point per row, per column */
    IN(c, 4, 3), IN(c, 3, 5), IN(c, 4), IN(c, 5);
    check(c, "11");
    c = new_case("MatMulInteger", 13);
    IN(c, 2, 4, 3), IN(c, 2, 3, 5), IN(c, 2, 4, 1), IN(c, 2, 1, 5);
    check(c, "111");
    c = new_case("QLinearMatMul", 13);
    IN(c, 4, 3), IN(c, 4), IN(c, 4), IN(c, 3, 5), IN(c, 5), scalar_in(c), scalar_in(c), IN(c, 1);
    check(c, "11");
}

static void test_gemm(void **state)
{
    static const int64_t c_dims[][2] = {{0, 0}, {0, 5}, {1, 5}, {4, 1}, {4, 5}, {1, 1}};
    static const int32_t c_rank[] = {0, 1, 2, 2, 2, 2};
    (void)state;
    seed(11);
    for (int i = 0; i < 28; i++) {
        kase *c = new_case("Gemm", 13);
        bool ta = i & 1, tb = i & 2;
        int shape = i / 4;
        operand(c, 2, ta ? (int64_t[]){3, 4} : (int64_t[]){4, 3});
        operand(c, 2, tb ? (int64_t[]){5, 3} : (int64_t[]){3, 5});
        if (shape < 6)
            operand(c, c_rank[shape], c_rank[shape] == 1 ? &c_dims[shape][1] : c_dims[shape]);
        attr_i(c, "transA", ta), attr_i(c, "transB", tb);
        check(c, "11");
    }
}

static void test_einsum(void **state)
{
    (void)state;
    seed(12);
    kase *c = new_case("Einsum", 12);
    IN(c, 2, 3, 4), IN(c, 2, 5, 4);
    c->attrs[c->n_attrs++] = ot_mk_str("equation", "bij, bkj -> bik");
    check(c, "111");
    c = new_case("Einsum", 12);
    IN(c, 2, 3, 4), IN(c, 4), IN(c, 3, 2);
    c->attrs[c->n_attrs++] = ot_mk_str("equation", "abc,c,bz->za");
    check(c, "11");
    static const char *const refused[] = {"ij,jj->ij",    "...i,ij->ij", "i1,ij->ij", "ij->ij",
                                          "ij,jk,kl->ij", "ij,jk->ikl",  "ij,jk->ii", "ij,jk->iz"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        c = new_case("Einsum", 12);
        IN(c, 3, 3), IN(c, 3, 3);
        c->attrs[c->n_attrs++] = ot_mk_str("equation", "ij,jk->ik");
        build(c); /* then ask about another equation on the same shapes */
        ot_node *n = &c->model->graph->nodes[c->node];
        n->attrs[0] = ot_mk_str("equation", refused[i]);
        cut x;
        if (ask(c, 1, &x)) fail_msg("Einsum '%s' cut", refused[i]);
        drop(c);
    }
    c = new_case("Einsum", 12); /* implicit result: labels that occur once, in alphabetical order */
    IN(c, 5, 3), IN(c, 3, 4);
    c->attrs[c->n_attrs++] = ot_mk_str("equation", "zj,ja->az");
    build(c);
    c->model->graph->nodes[c->node].attrs[0] = ot_mk_str("equation", "zj,ja");
    cut x;
    assert_true(ask(c, 0, &x));
    assert_true(x.in_axis[0] == OT_AX_WHOLE && x.in_axis[1] == 1);
    assert_true(ask(c, 1, &x));
    assert_true(x.in_axis[0] == 0 && x.in_axis[1] == OT_AX_WHOLE);
    drop(c);
}

static void test_attention(void **state)
{
    (void)state;
    seed(13);
    for (int mask = 0; mask < 5; mask++) {
        static const int64_t dims[5][4] = {
            {3, 5}, {1, 3, 5}, {2, 1, 3, 5}, {1, 4, 3, 5}, {2, 4, 1, 5}};
        static const int32_t rank[5] = {2, 3, 4, 4, 4};
        kase *c = new_case("Attention", 23);
        IN(c, 2, 4, 3, 2), IN(c, 2, 4, 5, 2), IN(c, 2, 4, 5, 3);
        operand(c, rank[mask], dims[mask]);
        check(c, "1110");
    }
    kase *c = new_case("Attention", 23); /* grouped heads share keys */
    IN(c, 2, 4, 3, 2), IN(c, 2, 2, 5, 2), IN(c, 2, 2, 5, 3);
    check(c, "1010");
    c = new_case("Attention", 23);
    IN(c, 2, 4, 3, 2), IN(c, 2, 4, 5, 2), IN(c, 2, 4, 5, 3);
    attr_i(c, "is_causal", 1);
    check(c, "1100");
    c = new_case("Attention", 23); /* a cache */
    IN(c, 2, 4, 3, 2), IN(c, 2, 4, 5, 2), IN(c, 2, 4, 5, 3), omitted(c), IN(c, 2, 4, 1, 2),
        IN(c, 2, 4, 1, 3);
    check(c, "0000");
}

/* ---- quantisation ---- */

static void test_quant(void **state)
{
    (void)state;
    seed(14);
    kase *c = new_case("QuantizeLinear", 13);
    IN(c, 2, 3, 4), scalar_in(c), scalar_in(c);
    check(c, "111");
    c = new_case("DequantizeLinear", 13);
    IN(c, 2, 3, 4), IN(c, 3), IN(c, 3);
    check(c, "111");
    c = new_case("QuantizeLinear", 13);
    IN(c, 2, 3, 4), IN(c, 4);
    attr_i(c, "axis", -1);
    build(c);
    cut x;
    assert_true(ask(c, 2, &x));
    assert_int_equal(x.in_axis[1], 0);
    ot_why why = OT_WHY_NONE;
    ot_win in[3];
    ot_op_tile one = {.need = {1, 2}, .in = in}, two = {.need = {1, 3}, .in = in};
    assert_false(ot_access_window(c->model->graph, &c->model->graph->nodes[c->node], 0, 2, &one,
                                  &why)); /* a scale of one element */
    assert_int_equal(why, OT_WHY_QUANT_ONE);
    assert_true(
        ot_access_window(c->model->graph, &c->model->graph->nodes[c->node], 0, 2, &two, &why));
    assert_true(ot_access_window(c->model->graph, &c->model->graph->nodes[c->node], 0, 1, &one,
                                 &why)); /* another axis */
    check(c, "111");
    c = new_case("QuantizeLinear", 21);
    IN(c, 2, 4), IN(c, 1);
    attr_i(c, "axis", 1), attr_i(c, "block_size", 2);
    check(c, "00");
}

/* ---- malformed nodes ---- */

static void test_shapes_that_disagree(void **state)
{
    (void)state;
    seed(21);
    static const char *const types[] = {"Add",     "Transpose", "MatMul", "BatchNormalization",
                                        "Reshape", "Concat",    "Softmax"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        kase *c = new_case(types[i], 13);
        IN(c, 4, 4);
        if (i == 3)
            IN(c, 4), IN(c, 4), IN(c, 4), IN(c, 4);
        else if (i == 4)
            INTS(c, 4, 4);
        else if (i != 1 && i != 6)
            IN(c, 4, 4);
        if (i == 5) attr_i(c, "axis", 1);
        build(c);
        ot_graph *g = c->model->graph;
        g->values[node_of(c)->out[0]].dims[0] = 3; /* as a wrong value_info may say */
        cut x;
        if (ask(c, 0, &x)) fail_msg("%s cut although its shapes disagree", types[i]);
        if (i == 0) { /* one operand fits, the other does not broadcast */
            g->values[node_of(c)->in[0]].dims[0] = 3;
            assert_false(ask(c, 0, &x));
        }
        drop(c);
    }
}

static ot_attr random_attr(ot_arena *a)
{
    static const char *const names[] = {"axis",    "keepdims",  "broadcast", "transA",
                                        "spatial", "is_causal", "block_size"};
    static const char *const eqs[] = {
        "ij,jk->ik", "a", "->", ",,", "ij->ji", "i.", "abcdefghijklmnopqrstuvwxyz", ""};
    int64_t v[5];
    for (int i = 0; i < 5; i++) v[i] = rnd(9) - 4;
    if (rnd(4) == 0) return ot_mk_str("equation", eqs[rnd(8)]);
    if (rnd(3) == 0) return ot_mk_ints(a, rnd(2) ? "perm" : "axes", v, (size_t)rnd(6));
    return ot_mk_int(names[rnd(7)], v[0]);
}

/* The kinds that this program tests. */
static bool ours(ot_op op)
{
    switch (ot_op_access(op)) {
    case OT_ACC_POINTWISE:
    case OT_ACC_NORM:
    case OT_ACC_SOFTMAX:
    case OT_ACC_REDUCE:
    case OT_ACC_MATMUL:
    case OT_ACC_GEMM:
    case OT_ACC_QUANT:
    case OT_ACC_TRANSPOSE:
    case OT_ACC_RESHAPE:
    case OT_ACC_EXPAND:
    case OT_ACC_CONCAT:
    case OT_ACC_SPLIT:
    case OT_ACC_GATHER:
    case OT_ACC_TILE:
    case OT_ACC_CUMSUM:
    case OT_ACC_EINSUM:
    case OT_ACC_ATTENTION:
    case OT_ACC_BARRIER:
    case OT_ACC_SHAPE: return true;
    default: return false;
    }
}

/* Whatever a node looks like: no crash, and answers that stay inside the operands. */
static void random_node(ot_model *m)
{
    ot_graph *g = m->graph;
    ot_id in[IN_MAX], out[OUT_MAX];
    ot_attr attrs[3];
    int64_t d[ARR_RANK] = {0};
    uint32_t n_in = (uint32_t)rnd(IN_MAX), n_out = 1 + (uint32_t)rnd(OUT_MAX),
             n_attrs = (uint32_t)rnd(4);
    ot_op type = OT_OP_Add;
    do type = (ot_op)(1 + rnd(OT_OP_COUNT - 1));
    while (!ours(type));
    for (uint32_t k = 0; k < n_in + n_out; k++) {
        int32_t rank = (int32_t)rnd(5);
        for (int32_t a = 0; a < rank; a++) d[a] = rnd(20) == 0 ? 0 : 1 + rnd(3);
        ot_id v = rnd(5) == 0 ? OT_NONE : ot_value_new(g, ot_fresh_name(m, "v"), OT_F32, rank, d);
        *(k < n_in ? &in[k] : &out[k - n_in]) = v;
    }
    if (n_in > 1 && rnd(2)) {
        int64_t n = rnd(4), v[4] = {rnd(5) - 2, rnd(3), rnd(3), 1};
        in[1] = ot_const_i64(g, ot_fresh_name(m, "c"), v, 1, &n);
    }
    for (uint32_t k = 0; k < n_attrs; k++) attrs[k] = random_attr(m->arena);
    m->opset = (int32_t)(1 + rnd(24));
    ot_id id = ot_node_new(g, &(ot_node_def){.op = ot_op_name(type),
                                             .name = "n",
                                             .in = {in, n_in},
                                             .out = {out, n_out},
                                             .attrs = {attrs, n_attrs}});
    const ot_node *n = &g->nodes[id];
    for (uint32_t o = 0; o < n_out + 1; o++)
        for (uint32_t a = 0; a < 5; a++) {
            int8_t in_axis[IN_MAX], out_axis[OUT_MAX];
            ot_win win[IN_MAX];
            ot_why why = OT_WHY_NONE;
            ot_adapted ad;
            if (o >= n_out || !ot_access_axis(g, n, o, a, in_axis, out_axis, &why)) continue;
            ot_op_tile t = {.in = win};
            random_window(g->values[out[o]].dims[a], &t.need.lo, &t.need.hi);
            for (uint32_t k = 0; k < n_in; k++)
                assert_true(in_axis[k] < 0 || in_axis[k] < g->values[in[k]].rank);
            if (!window_both(g, n, o, a, &t, &why)) continue;
            for (uint32_t k = 0; k < n_in; k++)
                if (in_axis[k] >= 0)
                    assert_true(win[k].lo >= 0 && win[k].hi <= g->values[in[k]].dims[in_axis[k]]);
            ot_tile_axis one = {o, a, &t};
            assert_int_equal(ot_tile_adapt(g, n, &one, 1, m->arena, &ad), OT_OK);
        }
}

static void test_random_nodes(void **state)
{
    (void)state;
    seed(22);
    for (int i = 0; i < 300; i++) {
        ot_model *m = ot_model_new(NULL);
        assert_non_null(m);
        for (int k = 0; k < 100; k++) random_node(m);
        ot_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast_random),
        cmocka_unit_test(test_point_parameters),
        cmocka_unit_test(test_legacy_broadcast),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_reduce_random),
        cmocka_unit_test(test_reduce_special),
        cmocka_unit_test(test_matmul_random),
        cmocka_unit_test(test_matmul_roles),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_einsum),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_quant),
        cmocka_unit_test(test_shapes_that_disagree),
        cmocka_unit_test(test_random_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
