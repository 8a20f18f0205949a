/* The graph itself: edits, order and uses, operator facts, the verifier, drawings.
 *
 * Oracles are written here the plain way (quadratic uses, position checks) and share no code
 * with src/onnx/graph/. */
#include "ir_check.h"

/* Order, uses and producers against definitions. */
static void check_order_and_uses(const ot_graph *g)
{
    uint32_t *pos = calloc(g->n_nodes + 1, sizeof *pos);
    bool *is_there = calloc(g->n_nodes + 1, sizeof *is_there);
    uint32_t live = 0;
    assert_non_null(pos);
    assert_non_null(is_there);
    for (uint32_t k = 0; k < g->n_order; k++) {
        assert_false(is_there[g->order[k]]);
        is_there[g->order[k]] = true;
        pos[g->order[k]] = k;
    }
    for (ot_id n = 0; n < g->n_nodes; n++) {
        live += !g->nodes[n].dead;
        assert_int_equal(is_there[n], !g->nodes[n].dead);
    }
    assert_int_equal(live, g->n_order);
    for (ot_id v = 0; v < g->n_values; v++) {
        uint32_t found = 0;
        for (uint32_t k = 0; k < g->n_order; k++) {
            const ot_node *n = &g->nodes[g->order[k]];
            bool reads = false;
            for (uint32_t j = 0; j < n->n_in; j++) reads |= n->in[j] == v;
            for (uint32_t j = 0; j < n->n_captured; j++) reads |= n->captured[j] == v;
            if (!reads) continue;
            assert_true(found < g->values[v].n_uses);
            assert_int_equal(g->values[v].uses[found++], g->order[k]);
            ot_id p = g->values[v].producer;
            if (p != OT_NONE) assert_true(pos[p] < k);
        }
        assert_int_equal(found, g->values[v].n_uses);
    }
    free(pos);
    free(is_there);
}

/* ---- graph.c ---- */

static void test_edit(void **state)
{
    (void)state;
    ot_diag d = {0};
    ot_model *m = ot_model_new(&d);
    m->opset = 17;
    ot_graph *g = m->graph;
    int64_t dims[2] = {2, 3};
    ot_id x = ot_value_new(g, "x", OT_F32, 2, dims), y = ot_value_new(g, "y", OT_F32, -1, NULL);
    ot_id z = ot_value_new(g, "z", OT_DT_UNKNOWN, 0, NULL);
    dims[0] = 99; /* dims were copied */
    assert_int_equal(g->values[x].dims[0], 2);
    assert_int_equal(g->values[x].producer, OT_NONE);
    g->values[x].is_input = true;
    g->inputs = &x;
    g->n_inputs = 1;
    g->values[z].is_output = true;
    g->outputs = &z;
    g->n_outputs = 1;
    int64_t pads[2] = {1, -1};
    ot_attr at[3] = {ot_mk_ints(m->arena, "pads", pads, 2), ot_mk_float("alpha", 0.5f),
                     ot_mk_str("mode", "edge")};
    pads[0] = 7; /* copied too */
    ot_id in1[1] = {x}, in2[2] = {y, OT_NONE};
    ot_id a = ot_node_new(
        g, &(ot_node_def){
               .op = "Relu", .name = "a", .in = {in1, 1}, .out = {&y, 1}, .attrs = {at, 3}});
    ot_id b = ot_node_new(
        g,
        &(ot_node_def){
            .op = "Gelu", .domain = "com.microsoft", .name = "b", .in = {in2, 2}, .out = {&z, 1}});
    assert_int_equal(g->nodes[a].op, OT_OP_Relu);
    assert_int_equal(g->nodes[a].version, 17);
    assert_int_equal(g->nodes[b].op, OT_OP_OPAQUE);
    assert_int_equal(g->values[z].producer, b);
    size_t n;
    const int64_t *got = ot_attr_ints(&g->nodes[a], "pads", &n);
    assert_int_equal(n, 2);
    assert_int_equal(got[0], 1);
    assert_null(ot_attr_ints(&g->nodes[a], "alpha", &n)); /* another kind */
    assert_int_equal(n, 0);
    assert_int_equal(ot_attr_int(&g->nodes[a], "axis", -5), -5);
    assert_true(ot_attr_float(&g->nodes[a], "alpha", 0.f) == 0.5f);
    assert_string_equal(ot_attr_str(&g->nodes[a], "mode", ""), "edge");
    assert_int_equal(ot_assure(g, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_verify(g), OT_OK);
    check_order_and_uses(g);

    assert_int_equal(ot_replace_uses(g, y, x), OT_OK); /* now a is dead code */
    assert_int_equal(g->nodes[b].in[0], x);
    assert_int_equal(g->props & OT_P_USES, 0);
    ot_node_remove(g, a);
    assert_int_equal(g->values[y].producer, OT_NONE);
    assert_int_equal(ot_assure(g, OT_P_USES), OT_OK);
    assert_int_equal(g->n_order, 1);
    assert_int_equal(g->values[y].n_uses, 0);
    assert_int_equal(ot_verify(g), OT_OK);
    ot_model_free(m);
    ot_model_free(NULL);
}

static void test_consts(void **state)
{
    (void)state;
    ot_model *m = ot_model_new(NULL);
    int64_t two = 2, data[2] = {3, -4}, none = 0;
    ot_id c = ot_const_i64(m->graph, "c", data, 1, &two);
    data[0] = 0;
    const ot_value *v = &m->graph->values[c];
    assert_int_equal(v->known_n, 2);
    assert_int_equal(v->known[0], 3);
    assert_int_equal(((const int64_t *)v->init->data)[1], -4);
    assert_int_equal(v->init->bytes, 16);
    float f = 1.5f;
    ot_id s = ot_const_f32(m->graph, "s", &f, 0, NULL);
    assert_int_equal(m->graph->values[s].init->bytes, 4);
    ot_id e = ot_const_f32(m->graph, "e", NULL, 1, &none);
    assert_int_equal(m->graph->values[e].init->bytes, 0);
    assert_int_equal(ot_verify(m->graph), OT_OK);
    ot_model_free(m);
}

static void test_fresh_names(void **state)
{
    (void)state;
    ot_model *m = ot_model_new(NULL);
    assert_string_equal(ot_fresh_name(m, "tile"), "tile");
    assert_string_equal(ot_fresh_name(m, "tile"), "tile_1");
    assert_int_not_equal(ot_value_new(m->graph, "tile_2", OT_F32, -1, NULL), OT_NONE);
    assert_string_equal(ot_fresh_name(m, "tile"), "tile_3"); /* tile_2 is taken */
    ot_map *seen = ot_map_new(m->arena);
    for (int k = 0; k < 20000; k++) { /* quadratic work would be felt here */
        const char *s = ot_fresh_name(m, "n");
        assert_int_equal(ot_map_get(seen, s), OT_NONE);
        assert_true(ot_map_put(seen, s, 1));
    }
    ot_model_free(m);
}

/* ---- topo.c ---- */

static void test_order_branches(void **state)
{
    (void)state;
    /* the long branch first, whichever comes first in the file; constants right before their reader
     */
    expect_order(
        "input %x init %w:float32[1] output %o"
        "%s=Conv(%x,%w) \"skip\"\n %a=Relu(%x) \"c1\"\n %b=Relu(%a) \"c2\"\n %k=Constant() \"k\"\n"
        "%m=Add(%s,%b) \"add\"\n %o=Mul(%k,%m) \"mul\"\n",
        "c1 c2 skip add k mul");
    /* a file in any order; ties by file order */
    expect_order("input %x output %o %o=Concat(%q2,%p2) \"cat\"\n %q2=Relu(%q) \"q2\"\n "
                 "%p2=Relu(%p) \"p2\"\n"
                 "%p=Relu(%x) \"p\"\n %q=Relu(%x) \"q\"\n",
                 "q q2 p p2 cat");
    /* an early exit comes before the rest of the trunk; dead branches last and kept */
    expect_order("input %x output %deep output %exit\n %a=Relu(%x) \"a\"\n %b=Relu(%a) \"b\"\n "
                 "%deep=Relu(%b) \"deep\"\n"
                 "%exit=Exp(%a) \"exit\"\n %d1=Relu(%x) \"d1\"\n %d2=Relu(%d1) \"d2\"\n",
                 "a exit b deep d1 d2");
    /* a chain of constants belongs to its reader as well */
    expect_order("input %x output %o\n %c=Constant() \"c\"\n %d=Cast(%c) \"d\"\n %a=Relu(%x) "
                 "\"a\"\n %b=Relu(%a) \"b\"\n"
                 "%o=Add(%d,%b) \"o\"\n",
                 "a b c d o");
    /* captured values are inputs */
    expect_order("input %x output %o\n %i=If(%x) {e=opaque} captures(%t) \"if\"\n %o=Relu(%i) "
                 "\"o\"\n %t=Exp(%x) \"t\"\n",
                 "t if o");
}

/* Build x -> random DAG with n nodes; every node reads 1..3 earlier values, some nodes nothing. */
static char *random_graph(uint32_t seed, int n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    uint32_t s = seed * 2654435761u + 1;
    fputs("model ir 8 opset 17 graph g { input %v0 \n", f);
    int *perm = malloc((size_t)n * sizeof *perm);
    assert_non_null(perm);
    for (int k = 0; k < n; k++) perm[k] = k + 1;
    for (int k = n - 1; k > 0; k--) { /* the file lists nodes in any order */
        int j = (int)(rng_next(&s) % (uint32_t)(k + 1)), t = perm[k];
        perm[k] = perm[j];
        perm[j] = t;
    }
    for (int k = 0; k < n; k++) {
        int id = perm[k];
        uint32_t reads = rng_next(&s) % 4;
        fprintf(f, "%%v%d = Sum(", id);
        for (uint32_t j = 0; j < reads; j++)
            fprintf(f, "%s%%v%u", j ? "," : "", rng_next(&s) % (uint32_t)id);
        fprintf(f, ") \"n%d\"\n", id);
    }
    for (int k = 0; k < 3; k++) fprintf(f, "output %%v%u ", rng_next(&s) % (uint32_t)(n + 1));
    fputs("}", f);
    fclose(f);
    free(perm);
    return text;
}

static void test_order_random(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 150; seed++) {
        char *text = random_graph(seed, 2 + (int)(seed % 40));
        ot_model *m = parse(text);
        check_order_and_uses(m->graph);
        assert_int_equal(ot_verify(m->graph), OT_OK);
        free(round_trip(m->graph)); /* sorting a sorted graph changes nothing */
        /* and after removing a node nobody needs */
        for (ot_id n = 0; n < m->graph->n_nodes; n++) {
            const ot_value *v = &m->graph->values[m->graph->nodes[n].out[0]];
            if (v->n_uses || v->is_output) continue;
            ot_node_remove(m->graph, n);
            break;
        }
        assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
        check_order_and_uses(m->graph);
        ot_model_free(m);
        free(text);
    }
}

/* Two chains of n nodes and one join; far too deep for recursion. */
static void test_order_deep(void **state)
{
    (void)state;
    const uint32_t n = 100000;
    ot_model *m = ot_model_new(NULL);
    ot_graph *g = m->graph;
    ot_id x = ot_value_new(g, "x", OT_F32, -1, NULL), ends[2], join;
    g->values[x].is_input = true;
    g->inputs = &x;
    g->n_inputs = 1;
    for (int c = 0; c < 2; c++) {
        ot_id at = x;
        for (uint32_t k = 0; k < n + (uint32_t)c; k++) {
            ot_id next = ot_value_new(g, ot_format(m->arena, "v%d_%u", c, k), OT_F32, -1, NULL);
            assert_int_not_equal(
                ot_node_new(
                    g, &(ot_node_def){.op = "Relu", .name = "", .in = {&at, 1}, .out = {&next, 1}}),
                OT_NONE);
            at = next;
        }
        ends[c] = at;
    }
    join = ot_value_new(g, "join", OT_F32, -1, NULL);
    ot_id last = ot_node_new(
        g, &(ot_node_def){.op = "Add", .name = "", .in = {ends, 2}, .out = {&join, 1}});
    g->values[join].is_output = true;
    g->outputs = &join;
    g->n_outputs = 1;
    assert_int_equal(ot_topo_sort(g), OT_OK);
    assert_int_equal(g->n_order, 2 * n + 2);
    /* the longer chain */
    for (uint32_t k = 0; k < n + 1; k++) assert_int_equal(g->order[k], n + k);
    for (uint32_t k = 0; k < n; k++) assert_int_equal(g->order[n + 1 + k], k);
    assert_int_equal(g->order[2 * n + 1], last);
    assert_int_equal(ot_verify(g), OT_OK);
    ot_model_free(m);
}

static void test_cycle(void **state)
{
    (void)state;
    /* c and d are on the cycle; b is before it, e behind it */
    const char *text = "model ir 8 opset 17 graph g { input %x output %e\n %b=Relu(%x) \"nb\"\n "
                       "%c=Add(%b,%d) \"nc\"\n"
                       "%d=Relu(%c) \"nd\"\n %e=Relu(%d) \"ne\"\n }";
    ot_diag d = {0};
    ot_model *m = NULL;
    assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_E_INPUT);
    assert_non_null(strstr(d.message, "cycle"));
    assert_true(strstr(d.message, "'nc'") || strstr(d.message, "'nd'"));
    parse_fails("model ir 8 opset 17 graph g { output %x %x = Relu(%x) }", "cycle");
}

static void test_undefined(void **state)
{
    (void)state;
    ot_diag d = {0};
    ot_model *m = ot_model_new(&d);
    ot_id v[2] = {ot_value_new(m->graph, "ghost", OT_F32, -1, NULL),
                  ot_value_new(m->graph, "y", OT_F32, -1, NULL)};
    assert_int_not_equal(
        ot_node_new(m->graph,
                    &(ot_node_def){.op = "Relu", .name = "r", .in = {v, 1}, .out = {v + 1, 1}}),
        OT_NONE);
    assert_int_equal(ot_topo_sort(m->graph), OT_E_INPUT);
    assert_non_null(strstr(d.message, "'r' (Relu)"));
    assert_non_null(strstr(d.message, "'ghost'"));
    assert_int_equal(m->graph->props & (OT_P_ORDER | OT_P_USES), 0);
    ot_model_free(m);
}

/* ---- opinfo.c ---- */

static void test_opinfo(void **state)
{
    (void)state;
    assert_int_equal(ot_op_find("Conv"), OT_OP_Conv);
    assert_int_equal(ot_op_find("Trilu"), OT_OP_Trilu);
    assert_int_equal(ot_op_find("conv"), OT_OP_OPAQUE);
    assert_int_equal(ot_op_find("Con"), OT_OP_OPAQUE);
    assert_int_equal(ot_op_find(""), OT_OP_OPAQUE);
    assert_int_equal(ot_op_find("(opaque)"), OT_OP_OPAQUE);
    /* no name twice */
    for (int k = 1; k < OT_OP_COUNT; k++) assert_int_equal(ot_op_find(ot_op_name((ot_op)k)), k);
    assert_int_equal(ot_op_access(OT_OP_Softmax), OT_ACC_SOFTMAX);
    assert_int_equal(ot_op_cost(OT_OP_Exp), OT_COST_TRANS);
    assert_int_equal(ot_op_access(OT_OP_OPAQUE), OT_ACC_BARRIER);
    assert_int_equal(ot_dtype_bits(OT_F16), 16);
    assert_int_equal(ot_dtype_bits(OT_C128), 128);
    assert_int_equal(ot_dtype_bits(OT_I4), 4);
    assert_int_equal(ot_dtype_bits(OT_STRING), 0);
    assert_int_equal(ot_dtype_bits((ot_dtype)99), 0);
    assert_string_equal(ot_dtype_name(OT_BF16), "bfloat16");
    assert_int_equal(ot_dtype_parse("uint8"), OT_U8);
    assert_int_equal(ot_dtype_parse("float"), OT_DT_UNKNOWN);
    for (int t = 1; t <= OT_I2; t++)
        assert_int_equal(ot_dtype_parse(ot_dtype_name((ot_dtype)t)), t);
}

static void test_sizes(void **state)
{
    (void)state;
    int64_t dims[3] = {3, 5, 7}, n;
    ot_value v = {.dtype = OT_F16, .rank = 3, .dims = dims};
    assert_true(ot_value_bytes(&v, &n));
    assert_int_equal(n, 210);
    v.dtype = OT_I4;
    assert_true(ot_value_bytes(&v, &n));
    assert_int_equal(n, 53); /* 105 half bytes */
    v.dtype = OT_STRING;
    assert_false(ot_value_bytes(&v, &n));
    dims[1] = OT_DIM_UNKNOWN;
    assert_false(ot_value_is_static(&v));
    assert_false(ot_value_elems(&v, &n));
    dims[0] = dims[1] = dims[2] = INT64_MAX / 2;
    assert_false(ot_value_elems(&v, &n));
    v.rank = 0;
    assert_true(ot_value_elems(&v, &n));
    assert_int_equal(n, 1);
    v.rank = -1;
    assert_false(ot_value_is_static(&v));
}

/* ---- verify.c: break one thing at a time ---- */

typedef void (*breaker)(ot_graph *g);

static void br_nothing(ot_graph *g) { (void)g; }
static void br_name(ot_graph *g) { vof(g, "y")->name = "x"; }
static void br_empty_name(ot_graph *g) { vof(g, "y")->name = ""; }
static void br_rank(ot_graph *g) { vof(g, "y")->rank = OT_RANK_MAX + 1; }
static void br_dim(ot_graph *g) { vof(g, "y")->dims[1] = -2; }
static void br_init_shape(ot_graph *g) { vof(g, "w")->dims[0] = 3; }
static void br_init_dtype(ot_graph *g) { vof(g, "w")->dtype = OT_I32; }
static void br_init_bytes(ot_graph *g) { ((ot_tensor *)(uintptr_t)vof(g, "w")->init)->bytes = 7; }
static void br_known(ot_graph *g)
{
    static const int64_t k[3] = {1, 2, 3};
    vof(g, "y")->known = k;
    vof(g, "y")->known_n = 3;
}
static void br_input_flag(ot_graph *g) { vof(g, "x")->is_input = false; }
static void br_extra_input(ot_graph *g) { vof(g, "w")->is_input = true; }
static void br_output_flag(ot_graph *g) { vof(g, "u")->is_output = false; }
static void br_output_id(ot_graph *g) { g->outputs[0] = 1000; }
static void br_operand(ot_graph *g) { nof(g, "relu")->in[0] = 1000; }
static void br_omitted_ok(ot_graph *g) { nof(g, "loop")->captured[0] = OT_NONE; }
static void br_two_producers(ot_graph *g) { nof(g, "relu")->out[0] = val(g, "y"); }
static void br_producer(ot_graph *g) { vof(g, "z")->producer = node_named(g, "add"); }
static void br_stale_producer(ot_graph *g) { vof(g, "x")->producer = node_named(g, "add"); }
static void br_order_swap(ot_graph *g)
{
    ot_id t = g->order[0];
    g->order[0] = g->order[1];
    g->order[1] = t;
}
static void br_order_short(ot_graph *g) { g->n_order--; }
static void br_order_twice(ot_graph *g) { g->order[2] = g->order[0]; }
static void br_dead_in_order(ot_graph *g) { nof(g, "relu")->dead = true; }
static void br_uses_missing(ot_graph *g) { vof(g, "w")->n_uses = 1; }
static void br_uses_extra(ot_graph *g)
{
    static ot_id two[2];
    two[0] = vof(g, "x")->uses[0];
    two[1] = node_named(g, "relu");
    vof(g, "x")->uses = two;
    vof(g, "x")->n_uses = 2;
}
static void br_uses_order(ot_graph *g)
{
    ot_id *u = vof(g, "w")->uses, t = u[0];
    u[0] = u[1];
    u[1] = t;
}
static void br_attr_twice(ot_graph *g) { nof(g, "add")->attrs[1].name = "a"; }
static void br_attr_value(ot_graph *g)
{
    nof(g, "add")->attrs[1].kind = OT_ATTR_INTS, nof(g, "add")->attrs[1].n = 3;
}
static void br_op(ot_graph *g) { nof(g, "add")->op = OT_OP_Mul; }
static void br_op_domain(ot_graph *g) { nof(g, "add")->domain = "other"; }
static void br_removed(ot_graph *g) { vof(g, "w")->removed = true; }
static void br_undefined(ot_graph *g) { vof(g, "w")->init = NULL; }
static void br_body_parent(ot_graph *g) { body_of(g)->parent = NULL; }
static void br_body_out_type(ot_graph *g) { vof(body_of(g), "bo")->dtype = OT_DT_UNKNOWN; }
static void br_body_out_rank(ot_graph *g) { vof(body_of(g), "bo")->rank = -1; }
static void br_body_capture(ot_graph *g) { nof(g, "loop")->n_captured = 0; }
static void br_body_order(ot_graph *g) { body_of(g)->n_order = 0; }
static void br_body_shadow(ot_graph *g)
{
    ot_graph *b = body_of(g);
    assert_int_not_equal(ot_const_f32(b, "u", (float[]){1}, 0, NULL), OT_NONE);
}
static void br_body_unknown_outer(ot_graph *g)
{
    ot_id v = ot_value_new(body_of(g), "nowhere", OT_F32, -1, NULL);
    body_of(g)->values[v].is_outer = true;
}
static void br_outer_on_top(ot_graph *g) { vof(g, "w")->is_outer = true, vof(g, "w")->init = NULL; }

static void test_verify(void **state)
{
    (void)state;
    static const breaker all[] = {br_name,
                                  br_empty_name,
                                  br_rank,
                                  br_dim,
                                  br_init_shape,
                                  br_init_dtype,
                                  br_init_bytes,
                                  br_known,
                                  br_input_flag,
                                  br_extra_input,
                                  br_output_flag,
                                  br_output_id,
                                  br_operand,
                                  br_omitted_ok,
                                  br_two_producers,
                                  br_producer,
                                  br_stale_producer,
                                  br_order_swap,
                                  br_order_short,
                                  br_order_twice,
                                  br_dead_in_order,
                                  br_uses_missing,
                                  br_uses_extra,
                                  br_uses_order,
                                  br_attr_twice,
                                  br_attr_value,
                                  br_op,
                                  br_op_domain,
                                  br_removed,
                                  br_undefined,
                                  br_body_parent,
                                  br_body_out_type,
                                  br_body_out_rank,
                                  br_body_capture,
                                  br_body_order,
                                  br_body_shadow,
                                  br_body_unknown_outer,
                                  br_outer_on_top};
    for (size_t k = 0; k <= sizeof all / sizeof *all; k++) {
        ot_model *m = parse(sound);
        ot_diag d = {0};
        m->diag = &d;
        if (k)
            all[k - 1](m->graph);
        else
            br_nothing(m->graph);
        ot_status st = ot_verify(m->graph);
        if (k == 0 ? st != OT_OK : st != OT_E_INPUT)
            fail_msg("case %zu: status %d, '%s'", k, (int)st, d.message);
        if (k && !d.message[0]) fail_msg("case %zu has no message", k);
        ot_model_free(m);
    }
}

static void test_replace_in_body(void **state)
{
    (void)state;
    ot_model *m = parse(sound);
    ot_graph *g = m->graph;
    float two[2] = {5, 6};
    int64_t dim = 2;
    ot_id w2 = ot_const_f32(g, "w2", two, 1, &dim);
    assert_int_equal(ot_replace_uses(g, val(g, "w"), w2), OT_OK);
    assert_int_equal(g->nodes[node_named(g, "add")].in[1], w2);
    assert_int_equal(nof(g, "loop")->captured[0], w2);
    const ot_graph *b = body_of(g);
    assert_true(b->values[b->nodes[node_named(b, "mul")].in[1]].is_outer);
    assert_string_equal(b->values[b->nodes[node_named(b, "mul")].in[1]].name, "w2");
    assert_int_equal(ot_assure(g, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_assure(body_of(g), OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_verify(g), OT_OK);
    assert_int_equal(g->values[val(g, "w")].n_uses, 0);
    assert_int_equal(g->values[w2].n_uses, 2);
    free(round_trip(g));
    ot_model_free(m);

    m = parse("model ir 8 opset 17 graph g { input %x output %o %o=If(%x) {e=opaque} captures(%x) "
              "\"if\" }");
    ot_diag d = {0};
    m->diag = &d;
    ot_id y = ot_const_f32(m->graph, "y", two, 1, &dim);
    assert_int_equal(ot_replace_uses(m->graph, val(m->graph, "x"), y), OT_E_INPUT);
    assert_non_null(strstr(d.message, "'if'"));
    ot_model_free(m);
}

/* ---- dot.c ---- */

static void test_dot(void **state)
{
    (void)state;
    ot_model *m = parse("model ir 8 opset 17 graph \"a\\\"b\" { input %x : float32[2,?] init %w : "
                        "float32[1] output %z\n"
                        "%y : float32[2,3] = Add(%x, %w) \"n\\\"1\\n\"\n %z = NonZero(%y) "
                        "\"two\"\n %k = Unique(%y) \"three\"\n }");
    uint32_t region[3] = {4, OT_NONE, OT_NONE};
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_int_equal(ot_dot_print(m->graph, region, f), OT_OK);
    fclose(f);
    assert_non_null(strstr(text, "digraph \"a\\\"b\""));
    assert_non_null(
        strstr(text, "n0 [label=\"Add\\nn\\\"1?\\n1 constant\\nregion 4\", fillcolor="));
    assert_non_null(strstr(text, "n0 -> n1 [label=\"2x3\"]"));
    assert_non_null(strstr(text, "v0 -> n0 [label=\"2x?\"]"));
    assert_non_null(strstr(text, "n2 [label=\"Unique\\nthree\", color="));
    assert_null(strstr(text, "n1 [label=\"NonZero\\ntwo\", fillcolor"));
    free(text);
    ot_model_free(m);
}

/* What is done to a model after a clone of it was taken is undone: shapes, readers, nodes that
 * went and came, names. */
static void test_restore(void **state)
{
    (void)state;
    ot_model *clone,
        *m = parse("model ir 8 opset 17 graph g { input %x : float32[?,3]\n init %w : float32[3]\n"
                   "%y = Add(%x, %w)\n %z = Relu(%y)\n output %z\n }");
    ot_graph *g = m->graph;
    char *before = print(g);
    const int32_t opset = m->opset;
    assert_int_equal(ot_model_clone(m, &clone), OT_OK);
    for (int again = 0; again < 2; again++) {
        const ot_id x = ot_value_find(g, "x"), y = ot_value_find(g, "y"), z = ot_value_find(g, "z");
        const ot_id added = ot_value_new(g, "added", OT_F32, 2, (const int64_t[]){2, 3});
        assert_int_not_equal(added, OT_NONE);
        assert_int_not_equal(
            ot_node_new(
                g, &(ot_node_def){.op = "Neg", .name = "neg", .in = {&y, 1}, .out = {&added, 1}}),
            OT_NONE);
        assert_int_equal(ot_replace_uses(g, y, added), OT_OK);
        ot_node_remove(g, g->values[z].producer);
        assert_int_equal(ot_value_set_shape(g, x, 2, (const int64_t[]){2, 3}), OT_OK);
        m->opset = 13;
        assert_int_equal(ot_model_adopt(m, clone), OT_OK);
        char *after = print(g);
        assert_string_equal(after, before);
        free(after);
        assert_int_equal(m->opset, opset);
        assert_int_equal(ot_value_find(g, "added"), OT_NONE);
        check_order_and_uses(g);
        assert_int_equal(ot_verify(g), OT_OK);
    }
    free(before);
    ot_model_free(clone);
    ot_model_free(m);
}

/* A sketch is the model; its fresh names are none of the model's, which does not get them. */
static void test_sketch(void **state)
{
    (void)state;
    ot_model *sketch, *m = parse("model ir 8 opset 17 graph g { input %x : float32[2,3]\n"
                                 "%y = Relu(%x)\n %z = Add(%y, %x)\n output %z\n }");
    ot_graph *g = m->graph;
    assert_int_equal(ot_assure(g, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_not_equal(ot_value_new(g, "~2", OT_F32, 2, (const int64_t[]){2, 3}), OT_NONE);
    char *before = print(g);
    assert_int_equal(ot_model_sketch(m, &sketch), OT_OK);
    char *same = print(sketch->graph);
    assert_string_equal(same, before);
    check_order_and_uses(sketch->graph);
    const char *names[3];
    for (int k = 0; k < 3; k++) {
        names[k] = ot_fresh_name(sketch, "tile/r0/x");
        assert_non_null(names[k]);
        assert_string_not_equal(names[k], "~2");
        for (int j = 0; j < k; j++) assert_string_not_equal(names[j], names[k]);
        assert_int_equal(ot_map_get(m->names, names[k]), OT_NONE);
        const ot_id v = ot_value_new(sketch->graph, names[k], OT_F32, 2, (const int64_t[]){2, 3});
        assert_int_equal(ot_value_find(sketch->graph, names[k]), v);
        assert_int_equal(ot_map_get(m->names, names[k]), OT_NONE);
    }
    char *after = print(g);
    assert_string_equal(after, before);
    free(before);
    free(same);
    free(after);
    ot_model_free(sketch);
    ot_model_free(m);
}

/* With the readers it is known whether anything is quantized; in a copy, too, and after an edit. */
static void test_quantizes(void **state)
{
    (void)state;
    ot_model *m = parse("model ir 8 opset 13\ngraph g {\n input %x : float32[4]\n"
                        " init %s : float32[1] = [0.5]\n init %z : uint8[1] = [0]\n"
                        " %q = QuantizeLinear(%x, %s, %z)\n %y = DequantizeLinear(%q, %s, %z)\n"
                        " output %y\n}\n"),
             *copy = NULL;
    assert_int_equal(ot_assure(m->graph, OT_P_USES), OT_OK);
    assert_true(m->graph->quantizes);
    assert_int_equal(ot_model_clone(m, &copy), OT_OK);
    assert_int_equal(ot_assure(copy->graph, OT_P_USES), OT_OK);
    assert_true(copy->graph->quantizes);
    ot_graph *g = copy->graph;
    assert_int_equal(ot_replace_uses(g, ot_value_find(g, "q"), ot_value_find(g, "z")), OT_OK);
    ot_node_remove(g, g->order[0]);
    assert_int_equal(ot_assure(g, OT_P_USES), OT_OK);
    assert_false(g->quantizes);
    ot_model_free(copy);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantizes),       cmocka_unit_test(test_edit),
        cmocka_unit_test(test_consts),          cmocka_unit_test(test_fresh_names),
        cmocka_unit_test(test_order_branches),  cmocka_unit_test(test_order_random),
        cmocka_unit_test(test_order_deep),      cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_undefined),       cmocka_unit_test(test_opinfo),
        cmocka_unit_test(test_sizes),           cmocka_unit_test(test_verify),
        cmocka_unit_test(test_replace_in_body), cmocka_unit_test(test_dot),
        cmocka_unit_test(test_restore),         cmocka_unit_test(test_sketch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
