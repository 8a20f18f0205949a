/* The graph itself: edits, order and uses, operator facts, the verifier, text and drawings.
 *
 * Oracles are written here the plain way (quadratic uses, position checks, nearest half by exhaustive
 * search, published splitmix64 numbers)
 * and share no code with src/ir/.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ir/ir.h"

/* ---- helpers ---- */

static ot_model *parse(const char *text)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_status st = ot_text_parse(text, strlen(text), &d, &m);
    if (st != OT_OK) fail_msg("%s\nin:\n%s", d.message, text);
    m->diag = NULL;
    return m;
}

static void parse_fails(const char *text, const char *part)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_E_INPUT);
    if (!strstr(d.message, part)) fail_msg("message '%s' lacks '%s'", d.message, part);
}

static char *print(const ot_graph *g)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    assert_int_equal(ot_text_print(g, f), OT_OK);
    fclose(f);
    return text;
}

/* parse(print(g)) prints the same; returns the text, to be freed. */
static char *round_trip(const ot_graph *g)
{
    char *first = print(g);
    ot_model *m = parse(first);
    char *second = print(m->graph);
    assert_string_equal(first, second);
    ot_model_free(m);
    free(second);
    return first;
}

static ot_id val(const ot_graph *g, const char *name)
{
    ot_id v = ot_value_find(g, name);
    assert_int_not_equal(v, OT_NONE);
    return v;
}

static ot_id node_named(const ot_graph *g, const char *name)
{
    for (ot_id k = 0; k < g->n_nodes; k++)
        if (!strcmp(g->nodes[k].name, name)) return k;
    fail_msg("no node '%s'", name);
    return OT_NONE;
}

static uint32_t rng_next(uint32_t *s) /* xorshift */
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    *s ^= *s << 5;
    return *s;
}

/* Names of the nodes in order, joined by spaces. */
static char *order_of(const ot_graph *g)
{
    size_t n = 1;
    for (uint32_t k = 0; k < g->n_order; k++) n += strlen(g->nodes[g->order[k]].name) + 1;
    char *s = calloc(1, n);
    assert_non_null(s);
    for (uint32_t k = 0; k < g->n_order; k++) {
        if (k) strcat(s, " ");
        strcat(s, g->nodes[g->order[k]].name);
    }
    return s;
}

static void expect_order(const char *body, const char *want)
{
    char *text = NULL;
    assert_true(asprintf(&text, "model ir 8 opset 17 graph t { %s }", body) > 0);
    ot_model *m = parse(text);
    char *got = order_of(m->graph);
    assert_string_equal(got, want);
    free(got);
    free(text);
    ot_model_free(m);
}

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
    ot_attr at[3] = {ot_mk_ints(m->arena, "pads", pads, 2), ot_mk_float("alpha", 0.5f), ot_mk_str("mode", "edge")};
    pads[0] = 7; /* copied too */
    ot_id in1[1] = {x}, in2[2] = {y, OT_NONE};
    ot_id a = ot_node_new(g, "Relu", "", "a", in1, 1, &y, 1, at, 3);
    ot_id b = ot_node_new(g, "Gelu", "com.microsoft", "b", in2, 2, &z, 1, NULL, 0);
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
    /* the long branch first, whichever comes first in the file; constants right before their reader */
    expect_order("input %x init %w:float32[1] output %o"
                 "%s=Conv(%x,%w) \"skip\"\n %a=Relu(%x) \"c1\"\n %b=Relu(%a) \"c2\"\n %k=Constant() \"k\"\n"
                 "%m=Add(%s,%b) \"add\"\n %o=Mul(%k,%m) \"mul\"\n",
                 "c1 c2 skip add k mul");
    /* a file in any order; ties by file order */
    expect_order("input %x output %o %o=Concat(%q2,%p2) \"cat\"\n %q2=Relu(%q) \"q2\"\n %p2=Relu(%p) \"p2\"\n"
                 "%p=Relu(%x) \"p\"\n %q=Relu(%x) \"q\"\n",
                 "q q2 p p2 cat");
    /* an early exit comes before the rest of the trunk; dead branches last and kept */
    expect_order("input %x output %deep output %exit\n %a=Relu(%x) \"a\"\n %b=Relu(%a) \"b\"\n %deep=Relu(%b) \"deep\"\n"
                 "%exit=Exp(%a) \"exit\"\n %d1=Relu(%x) \"d1\"\n %d2=Relu(%d1) \"d2\"\n",
                 "a exit b deep d1 d2");
    /* a chain of constants belongs to its reader as well */
    expect_order("input %x output %o\n %c=Constant() \"c\"\n %d=Cast(%c) \"d\"\n %a=Relu(%x) \"a\"\n %b=Relu(%a) \"b\"\n"
                 "%o=Add(%d,%b) \"o\"\n",
                 "a b c d o");
    /* captured values are inputs */
    expect_order("input %x output %o\n %i=If(%x) {e=opaque} captures(%t) \"if\"\n %o=Relu(%i) \"o\"\n %t=Exp(%x) \"t\"\n",
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
        for (uint32_t j = 0; j < reads; j++) fprintf(f, "%s%%v%u", j ? "," : "", rng_next(&s) % (uint32_t)id);
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
            assert_int_not_equal(ot_node_new(g, "Relu", "", "", &at, 1, &next, 1, NULL, 0), OT_NONE);
            at = next;
        }
        ends[c] = at;
    }
    join = ot_value_new(g, "join", OT_F32, -1, NULL);
    ot_id last = ot_node_new(g, "Add", "", "", ends, 2, &join, 1, NULL, 0);
    g->values[join].is_output = true;
    g->outputs = &join;
    g->n_outputs = 1;
    assert_int_equal(ot_topo_sort(g), OT_OK);
    assert_int_equal(g->n_order, 2 * n + 2);
    for (uint32_t k = 0; k < n + 1; k++) assert_int_equal(g->order[k], n + k); /* the longer chain */
    for (uint32_t k = 0; k < n; k++) assert_int_equal(g->order[n + 1 + k], k);
    assert_int_equal(g->order[2 * n + 1], last);
    assert_int_equal(ot_verify(g), OT_OK);
    ot_model_free(m);
}

static void test_cycle(void **state)
{
    (void)state;
    /* c and d are on the cycle; b is before it, e behind it */
    const char *text = "model ir 8 opset 17 graph g { input %x output %e\n %b=Relu(%x) \"nb\"\n %c=Add(%b,%d) \"nc\"\n"
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
    ot_id v[2] = {ot_value_new(m->graph, "ghost", OT_F32, -1, NULL), ot_value_new(m->graph, "y", OT_F32, -1, NULL)};
    assert_int_not_equal(ot_node_new(m->graph, "Relu", "", "r", v, 1, v + 1, 1, NULL, 0), OT_NONE);
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
    for (int k = 1; k < OT_OP_COUNT; k++) assert_int_equal(ot_op_find(ot_op_name((ot_op)k)), k); /* no name twice */
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
    for (int t = 1; t <= OT_I2; t++) assert_int_equal(ot_dtype_parse(ot_dtype_name((ot_dtype)t)), t);
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

static const char *const sound =
    "model ir 8 opset 17 graph g { input %x : float32[2,2] init %w : float32[2] = [1, 2]\n"
    "%y : float32[2,2] = Add(%x, %w) {a=1, b=2} \"add\"\n"
    "%z : float32[2,2] = Loop(_, _, %y) {body=graph b {\n"
    "  input %bi : int64[] input %bc : bool[] input %bx : float32[2,2] outer %w : float32[2]\n"
    "  %bo : float32[2,2] = Mul(%bx, %w) \"mul\"\n %bk : bool[] = Identity(%bc) output %bk output %bo }} \"loop\"\n"
    "%u : float32[2,2] = Relu(%z) \"relu\"\n output %u }";

typedef void (*breaker)(ot_graph *g);

static ot_graph *body_of(ot_graph *g) { return g->nodes[node_named(g, "loop")].attrs[0].g; }
static ot_value *vof(ot_graph *g, const char *name) { return &g->values[val(g, name)]; }
static ot_node *nof(ot_graph *g, const char *name) { return &g->nodes[node_named(g, name)]; }

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
static void br_attr_value(ot_graph *g) { nof(g, "add")->attrs[1].kind = OT_ATTR_INTS, nof(g, "add")->attrs[1].n = 3; }
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
        if (k == 0 ? st != OT_OK : st != OT_E_INPUT) fail_msg("case %zu: status %d, '%s'", k, (int)st, d.message);
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

    m = parse("model ir 8 opset 17 graph g { input %x output %o %o=If(%x) {e=opaque} captures(%x) \"if\" }");
    ot_diag d = {0};
    m->diag = &d;
    ot_id y = ot_const_f32(m->graph, "y", two, 1, &dim);
    assert_int_equal(ot_replace_uses(m->graph, val(m->graph, "x"), y), OT_E_INPUT);
    assert_non_null(strstr(d.message, "'if'"));
    ot_model_free(m);
}

/* ---- text ---- */

static void test_text_print(void **state)
{
    (void)state;
    ot_model *m = parse("# comment\nmodel ir 8 opset 17 graph \"my graph\" {\n"
                        "input %x : float32[1,?] input %\"odd \\\"n\\xc2\\xb7\\n\" : ? input %s : opaque\n"
                        "input init %p : float32[1] = [0.1]\n"
                        "init %w : float32[2,2] = [1, -0.0, inf, nan] init %big : int64[4,5] = fill -3\n"
                        "init %e : float32[0,7] init %sp : opaque init %str : string[3]\n"
                        "%a/b : float32[], _ = Dropout(%x, _) {f=1e-7, i=-9223372036854775808, s=\"q\\x00\\\"\", l=[], fl=[1, 2.5],"
                        " fe=floats[], st=[\"u\", \"\"], se=strings[], t=tensor uint8[2] = [0, 255], o=opaque} \"name\"\n"
                        "%q = \"com.microsoft\"::Gelu@1(%a/b)\n"
                        "%\"r s\" = Relu@6(%q)\n"
                        "output %\"r s\" output %a/b }");
    char *got = round_trip(m->graph);
    assert_string_equal(got,
                        "model ir 8 opset 17\n"
                        "graph \"my graph\" {\n"
                        "  input %x : float32[1,?]\n"
                        "  input %\"odd \\\"n\\xc2\\xb7\\n\"\n"
                        "  input %s : opaque\n"
                        "  input init %p : float32[1] = [0.100000001]\n"
                        "  init %w : float32[2,2] = [1.0, -0.0, inf, nan]\n"
                        "  init %big : int64[4,5] = fill -3\n"
                        "  init %e : float32[0,7] = []\n"
                        "  init %sp : opaque\n"
                        "  init %str : string[3]\n"
                        "  %a/b : float32[], _ = Dropout(%x, _) {f=1.00000001e-07, i=-9223372036854775808, s=\"q\\x00\\\"\","
                        " l=[], fl=[1.0, 2.5], fe=floats[], st=[\"u\", \"\"], se=strings[], t=tensor uint8[2] = [0, 255], o=opaque}"
                        " \"name\"\n"
                        "  %q = \"com.microsoft\"::Gelu@1(%a/b)\n"
                        "  %\"r s\" = Relu@6(%q)\n"
                        "  output %\"r s\"\n"
                        "  output %a/b\n"
                        "}\n");
    const ot_graph *g = m->graph;
    assert_true(g->values[val(g, "p")].overridable);
    assert_false(g->values[val(g, "s")].is_tensor);
    assert_int_equal(g->values[val(g, "x")].dims[1], OT_DIM_UNKNOWN);
    assert_int_equal(g->nodes[node_named(g, "name")].source, 0);
    assert_int_equal(g->nodes[2].version, 6);
    assert_int_equal(m->weight_bytes, 4 + 16 + 160);
    free(got);
    ot_model_free(m);
}

static void test_text_bodies(void **state)
{
    (void)state;
    ot_model *m = parse(sound);
    const ot_graph *g = m->graph;
    assert_int_equal(nof(m->graph, "loop")->n_captured, 1);
    assert_int_equal(nof(m->graph, "loop")->captured[0], val(g, "w"));
    assert_int_equal(g->values[val(g, "w")].n_uses, 2);
    free(round_trip(g));
    ot_model_free(m);
    /* two levels: the middle body passes the value on; forward references to what comes later in the file */
    m = parse("model ir 8 opset 17 graph g { input %x : float32[1] output %o\n"
              "%o = If(%x) {b=graph { outer %late %p : float32[1] = If(%late) {b=graph in { outer %late\n"
              "%q : float32[1] = Relu(%late) output %q }} output %p }} \"if\"\n %late = Relu(%x) \"late\"\n }");
    char *order = order_of(m->graph);
    assert_string_equal(order, "late if");
    free(order);
    free(round_trip(m->graph));
    ot_model_free(m);
}

/* The half-precision number next to x by trying all of them; ties go to the even code. */
static uint16_t nearest_half(double x)
{
    uint32_t best = 0x7c00;
    double least = fabs(x) - 65536; /* infinity stands where the next number would be */
    least = fabs(least);
    for (uint32_t code = 0; code < 0x7c00; code++) {
        int exp = (int)(code >> 10);
        double y = exp ? (1 + (code & 1023) / 1024.0) * pow(2, exp - 15) : (code & 1023) / 1024.0 * pow(2, -14);
        double off = fabs(fabs(x) - y);
        if (off < least || (off == least && code % 2 == 0 && best % 2 == 1)) {
            least = off;
            best = code;
        }
    }
    if (fabs(x) >= 65536) best = 0x7c00;
    return (uint16_t)(best | (x < 0 ? 0x8000u : 0u));
}

/* Every half-precision number survives, and decimal literals round to the nearest one. */
static void test_text_half(void **state)
{
    (void)state;
    ot_model *m = ot_model_new(NULL);
    m->ir_version = 8;
    int64_t dim = 16;
    for (uint32_t base = 0; base < 65536; base += 16) {
        ot_tensor *t = OT_NEW(m->arena, ot_tensor);
        uint16_t *data = OT_NEW_N(m->arena, uint16_t, 16);
        for (uint32_t k = 0; k < 16; k++) data[k] = (uint16_t)(base + k);
        *t = (ot_tensor){.dtype = OT_F16, .rank = 1, .dims = &dim, .data = data, .bytes = 32};
        ot_id v = ot_value_new(m->graph, ot_format(m->arena, "h%u", base), OT_F16, 1, &dim);
        m->graph->values[v].init = t;
    }
    char *text = round_trip(m->graph);
    ot_model *back = parse(text);
    for (uint32_t code = 0; code < 65536; code++) {
        char name[16];
        snprintf(name, sizeof name, "h%u", code / 16 * 16);
        uint16_t got = ((const uint16_t *)back->graph->values[val(back->graph, name)].init->data)[code % 16];
        bool nan = (code & 0x7c00) == 0x7c00 && (code & 0x3ff);
        if (nan)
            assert_true((got & 0x7c00) == 0x7c00 && (got & 0x3ff));
        else
            assert_int_equal(got, code);
    }
    ot_model_free(back);
    ot_model_free(m);
    free(text);
    static const double samples[] = {1e-8,   2.98e-8, 5.97e-8, 6.1e-5, 0.1, 1.0009765625, 1.00048828125,
                                     1.0005, 2049,    65519.9, 65520,  1e9, -0.333};
    for (size_t k = 0; k < sizeof samples / sizeof *samples; k++) {
        char buf[128];
        snprintf(buf, sizeof buf, "model ir 8 opset 17 graph g { init %%h : float16[] = [%.17g] }", samples[k]);
        m = parse(buf);
        assert_int_equal(*(const uint16_t *)m->graph->values[0].init->data, nearest_half(samples[k]));
        ot_model_free(m);
    }
}

static void test_text_contents(void **state)
{
    (void)state;
    ot_model *m = parse(
        "model ir 8 opset 17 graph g { init %r : float32[4] = random 0 init %i : int8[3] = random 0\n"
        "init %s : float32[2] = random 0 * 0.5 init %j : int32[2] = random 0 init %b : float32[1] = data \"AACAPw==\"\n"
        "init %big : float32[20] = random 1 init %u : uint64[1] = [18446744073709551615]\n"
        "init %m : int64[1] = [-9223372036854775808] init %c : complex64[2] = bits 0x5 init %bf : bfloat16[2] = [1.5, -3]\n"
        "init %d : float64[1] = [0.1] init %x : float32[4] = [-3.40282347e+38, -3.41e38, 1.40129846e-45,"
        " 0.49999997] init %f8 : float8_e4m3fn[1] = [200] }");
    const ot_graph *g = m->graph;
    /* splitmix64 from seed 0 begins e220a8397b1dcdaf 6e789e6aa1b965f4 (published test vector) */
    const float *r = g->values[val(g, "r")].init->data;
    assert_true(r[0] == (float)0xe220a8 / 8388608.0f - 1.0f);
    assert_true(r[1] == (float)0x6e789e / 8388608.0f - 1.0f);
    const int8_t *i8 = g->values[val(g, "i")].init->data;
    assert_int_equal(i8[0], (int8_t)0xe2);
    const float *s = g->values[val(g, "s")].init->data;
    assert_true(s[0] == r[0] * 0.5f);
    const int32_t *i32 = g->values[val(g, "j")].init->data;
    assert_int_equal(i32[0], 0xe - 8);
    assert_true(*(const float *)g->values[val(g, "b")].init->data == 1.0f);
    assert_true(*(const uint64_t *)g->values[val(g, "u")].init->data == UINT64_MAX);
    assert_true(*(const double *)g->values[val(g, "d")].init->data == 0.1);
    assert_int_equal(*(const uint16_t *)g->values[val(g, "bf")].init->data, 0x3fc0);
    const float *x = g->values[val(g, "x")].init->data; /* nine digits of the largest float are a little above it */
    assert_true(x[0] == -3.40282347e+38f && x[1] == -INFINITY && x[2] == 0x1p-149f && x[3] == 0x1.fffffep-2f);
    assert_null(g->values[val(g, "c")].init->data);
    /* the hash of a large tensor: FNV-1a, computed here */
    uint64_t h = 0xcbf29ce484222325u;
    const unsigned char *p = g->values[val(g, "big")].init->data;
    for (int k = 0; k < 80; k++) h = (h ^ p[k]) * 0x100000001b3u;
    char want[64];
    snprintf(want, sizeof want, "%%big : float32[20] = bits 0x%016llx\n", (unsigned long long)h);
    char *text = round_trip(g);
    if (!strstr(text, want)) fail_msg("no '%s' in %s", want, text);
    free(text);
    ot_model_free(m);
}

static void test_text_errors(void **state)
{
    (void)state;
    parse_fails("", "1:1: expected 'model");
    parse_fails("model ir 8 opset 17 graph g {", "1:30: expected a declaration");
    parse_fails("model ir 8 opset 17 graph g {\n input %x input %x }", "2:17: value 'x' is already defined in line 2");
    parse_fails("model ir 8 opset 17 graph g {\n\n output %y }", "3:9: value 'y' is not defined");
    parse_fails("model ir 8 opset 17 graph g { %y = Relu(%y2) }", "1:41: value 'y2' is not defined");
    parse_fails("model ir 8 opset 17 graph g { input %x : float31 }", "unknown element type 'float31'");
    parse_fails("model ir 8 opset 17 graph g { input %x : float32[-1] }", "negative dimension");
    parse_fails("model ir 8 opset 17 graph g { input %x : float32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] }", "16 dimensions");
    parse_fails("model ir 8 opset 17 graph g { init %x : float32[2] = [1] }", "needs 2 elements");
    parse_fails("model ir 8 opset 17 graph g { init %x : float32[1] = [1, 2] }", "more than the 1");
    parse_fails("model ir 8 opset 17 graph g { init %x : uint8[1] = [256] }", "does not fit uint8");
    parse_fails("model ir 8 opset 17 graph g { init %x : int8[1] = [-129] }", "does not fit int8");
    parse_fails("model ir 8 opset 17 graph g { init %x : bool[1] = [2] }", "does not fit bool");
    parse_fails("model ir 8 opset 17 graph g { init %x : float32[?] = [2] }", "fixed dimensions");
    parse_fails("model ir 8 opset 17 graph g { init %x : float32[4000000000,4000000000] }", "too large");
    parse_fails("model ir 8 opset 17 graph g { init %x : float32[1000000000] = fill 0 }", "more than 1073741824 bytes");
    parse_fails("model ir 8 opset 17 graph g { init %x : string[1] = [1] }", "cannot be written");
    parse_fails("model ir 8 opset 17 graph g { input %x output %y %y = Relu(%x) {a=1, a=2} }", "attribute 'a' is given twice");
    parse_fails("model ir 8 opset 17 graph g { outer %x }", "'outer' belongs into a body");
    parse_fails("model ir 8 opset 17 graph g { input %x output %y %y = If(%x) {b=graph { output %x }} }", "declared with 'outer'");
    parse_fails("model ir 8 opset 17 graph g { input %x output %y %y = If(%x) {b=graph { init %x : float32[] output %x }} }",
                "hides a value");
    parse_fails("model ir 8 opset 17 graph g { } x", "end of the text");
    parse_fails("model ir 8 opset 17 graph g { %x = Relu() {a=99999999999999999999} }", "too large number");
    parse_fails("model ir 8 opset 17 graph g { %x = Relu() {a=9223372036854775808} }", "does not fit 64 bits");
    parse_fails("model ir 8 opset 17 graph g { %x = Relu() {a=[1, \"s\"]} }", "a string in a list of numbers");
    parse_fails("model ir 8 opset 17 graph g { %\"\" = Relu() }", "cannot be empty");
    parse_fails("model ir 8 opset 17 graph g { %\"a\n\" = Relu() }", "closing quote");
    char deep[4096] = "model ir 8 opset 17 ";
    for (int k = 0; k < 60; k++) strcat(deep, "graph { %x = If() {b=");
    parse_fails(deep, "nested deeper than 32");
}

/* Cut the text at every byte, then change bytes: an error or a model, never anything else (run under ASan, too). */
static void test_text_garbage(void **state)
{
    (void)state;
    size_t n = strlen(sound);
    uint32_t s = 12345;
    for (size_t k = 0; k < n + 4000; k++) {
        size_t len = k < n ? k : n;
        char *copy = malloc(len + 1);
        assert_non_null(copy);
        memcpy(copy, sound, len); /* exact size: reading behind the end is seen by ASan */
        static const char spice[] = "%\"{}()[]=,:_?@#x0-.\\\xff";
        for (int j = 0; k >= n && j < 1 + (int)(k % 3); j++) copy[rng_next(&s) % n] = spice[rng_next(&s) % (sizeof spice)];
        ot_diag d = {0};
        ot_model *m = NULL;
        ot_status st = ot_text_parse(copy, len, &d, &m);
        if (st == OT_OK) {
            free(round_trip(m->graph));
            ot_model_free(m);
        } else {
            assert_int_equal(st, OT_E_INPUT);
            assert_true(d.message[0] != 0);
        }
        free(copy);
    }
}

/* Let every allocation fail in turn: OT_E_NOMEM, no crash, no leak (under ASan), until it succeeds. */
static int allocations_left;

static void *failing_hook(void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return allocations_left-- > 0 ? realloc(ptr, new_size) : NULL;
}

static void test_text_no_memory(void **state)
{
    (void)state;
    ot_status st = OT_E_NOMEM;
    int k = 0;
    ot_set_alloc_hook(failing_hook);
    for (; st != OT_OK && k < 10000; k++) {
        ot_diag d = {0};
        ot_model *m = NULL;
        allocations_left = k;
        st = ot_text_parse(sound, strlen(sound), &d, &m);
        if (st == OT_OK)
            ot_model_free(m);
        else if (st != OT_E_NOMEM)
            break;
    }
    ot_set_alloc_hook(NULL);
    assert_int_equal(st, OT_OK);
    assert_true(k > 5);
}

/* ---- dot.c ---- */

static void test_dot(void **state)
{
    (void)state;
    ot_model *m = parse("model ir 8 opset 17 graph \"a\\\"b\" { input %x : float32[2,?] init %w : float32[1] output %z\n"
                        "%y : float32[2,3] = Add(%x, %w) \"n\\\"1\\n\"\n %z = NonZero(%y) \"two\"\n %k = TopK(%y) \"three\"\n }");
    uint32_t region[3] = {4, OT_NONE, OT_NONE};
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_int_equal(ot_dot_print(m->graph, region, f), OT_OK);
    fclose(f);
    assert_non_null(strstr(text, "digraph \"a\\\"b\""));
    assert_non_null(strstr(text, "n0 [label=\"Add\\nn\\\"1?\\n1 constant\\nregion 4\", fillcolor="));
    assert_non_null(strstr(text, "n0 -> n1 [label=\"2x3\"]"));
    assert_non_null(strstr(text, "v0 -> n0 [label=\"2x?\"]"));
    assert_non_null(strstr(text, "n2 [label=\"TopK\\nthree\", color="));
    assert_null(strstr(text, "n1 [label=\"NonZero\\ntwo\", fillcolor"));
    free(text);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edit),           cmocka_unit_test(test_consts),       cmocka_unit_test(test_fresh_names),
        cmocka_unit_test(test_order_branches), cmocka_unit_test(test_order_random), cmocka_unit_test(test_order_deep),
        cmocka_unit_test(test_cycle),          cmocka_unit_test(test_undefined),    cmocka_unit_test(test_opinfo),
        cmocka_unit_test(test_sizes),          cmocka_unit_test(test_verify),       cmocka_unit_test(test_replace_in_body),
        cmocka_unit_test(test_text_print),     cmocka_unit_test(test_text_bodies),  cmocka_unit_test(test_text_half),
        cmocka_unit_test(test_text_contents),  cmocka_unit_test(test_text_errors),  cmocka_unit_test(test_text_garbage),
        cmocka_unit_test(test_text_no_memory), cmocka_unit_test(test_dot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
