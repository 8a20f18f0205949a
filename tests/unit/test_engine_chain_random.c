/* Chains of element-wise operators: random expressions over arrays of random strides against a
 * naive interpreter.
 *
 * They compute with small integers only, so that every order of operations is exact and results
 * are compared bit for bit. Arrays lie in larger ones, broadcast, run backwards, or are the
 * memory of an input; what lies between their elements must stay as it was.
 */
#include "seeded.h"

#include "engine/cpu/chain/chain.h"
#include "pool_check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXPRESSIONS 1500
#define NODES_MOST  14
#define INPUTS_MOST 5
#define VALUES_MOST (NODES_MOST + INPUTS_MOST)
#define LIMIT       1000000.0 /* of magnitudes: float is exact far beyond */

typedef struct term {
    ot_op op; /* OT_OP_OPAQUE: an input */
    uint32_t in[3];
    uint32_t n_in;
    bool is_mask;
    double most;
    ot_id id;
} term;

/* Often the newest: then it has one reader, which pairs of instructions that become one need. */
static uint32_t pick(const term *t, uint32_t n, bool mask)
{
    for (int tries = 0; tries < 50; tries++) {
        uint32_t k = draw(2) ? n - 1 : draw(n);
        if (t[k].is_mask == mask) return k;
    }
    return OT_NONE;
}

static bool make_term(term *t, uint32_t n)
{
    static const struct {
        ot_op op;
        uint32_t n_in;
        const char *types; /* result, operands */
    } kinds[] = {{OT_OP_Add, 2, "fff"},         {OT_OP_Sub, 2, "fff"},    {OT_OP_Mul, 2, "fff"},
                 {OT_OP_Mul, 2, "fff"},         {OT_OP_Max, 2, "fff"},    {OT_OP_Add, 2, "fff"},
                 {OT_OP_Min, 2, "fff"},         {OT_OP_PRelu, 2, "fff"},  {OT_OP_Neg, 1, "ff"},
                 {OT_OP_Abs, 1, "ff"},          {OT_OP_Relu, 1, "ff"},    {OT_OP_Sign, 1, "ff"},
                 {OT_OP_Where, 3, "fmff"},      {OT_OP_Where, 3, "mmmm"}, {OT_OP_Greater, 2, "mff"},
                 {OT_OP_LessOrEqual, 2, "mff"}, {OT_OP_Equal, 2, "mff"},  {OT_OP_And, 2, "mmm"},
                 {OT_OP_Xor, 2, "mmm"},         {OT_OP_Not, 1, "mm"},     {OT_OP_Identity, 1, "ff"},
                 {OT_OP_Cast, 1, "fm"}};
    uint32_t k = draw(sizeof kinds / sizeof *kinds);
    double a, b;
    *(t +
      n) = (term){.op = kinds[k].op, .n_in = kinds[k].n_in, .is_mask = kinds[k].types[0] == 'm'};
    for (uint32_t i = 0; i < kinds[k].n_in; i++) {
        t[n].in[i] = pick(t, n, kinds[k].types[i + 1] == 'm');
        if (t[n].in[i] == OT_NONE) return false;
    }
    a = t[t[n].in[0]].most;
    b = kinds[k].n_in > 1 ? t[t[n].in[1]].most : 0;
    if (t[n].op == OT_OP_Where) a = t[t[n].in[2]].most;
    t[n].most = fmax(fmax(a, b), 1);
    if (t[n].op == OT_OP_Mul || t[n].op == OT_OP_PRelu) t[n].most = fmax(a, 1) * fmax(b, 1);
    if (t[n].op == OT_OP_Add || t[n].op == OT_OP_Sub) t[n].most = a + b;
    return t[n].most <= LIMIT;
}

static double value_of(const term *t, const double *v)
{
    double x = v[t->in[0]], y = t->n_in > 1 ? v[t->in[1]] : 0, z = t->n_in > 2 ? v[t->in[2]] : 0;
    switch ((int)t->op) {
    case OT_OP_Add: return x + y;
    case OT_OP_Sub: return x - y;
    case OT_OP_Mul: return x * y;
    case OT_OP_Max: return x > y ? x : y;
    case OT_OP_Min: return x < y ? x : y;
    case OT_OP_PRelu: return x < 0 ? x * y : x;
    case OT_OP_Neg: return -x;
    case OT_OP_Abs: return fabs(x);
    case OT_OP_Relu: return x < 0 ? 0 : x;
    case OT_OP_Sign: return x > 0 ? 1 : x < 0 ? -1 : 0;
    case OT_OP_Where: return x != 0 ? y : z;
    case OT_OP_Greater: return x > y;
    case OT_OP_LessOrEqual: return x <= y;
    case OT_OP_Equal: return x == y;
    case OT_OP_And: return x != 0 && y != 0;
    case OT_OP_Xor: return x != y;
    case OT_OP_Not: return x == 0;
    default: return x; /* Identity, Cast of a mask */
    }
}

/* Memory of one array of an expression: the elements lie somewhere in it. */
typedef struct lay {
    bool is_mask;
    size_t bytes;
    int64_t start; /* element 0 */
    int64_t strides[OT_CHAIN_RANK];
    uint8_t *memory, *before; /* [bytes] as it is, as it was before the run */
} lay;

/* Random strides: dense in a random order of dims, with gaps, backwards, and (inputs) constant
 * along some dims. */
static void lay_out(lay *l, bool is_mask, uint32_t rank, const int64_t *dims, bool is_input)
{
    uint32_t order[OT_CHAIN_RANK];
    int64_t step = 1, least = 0;
    *l = (lay){.is_mask = is_mask};
    for (uint32_t k = 0; k < rank; k++) order[k] = rank - 1 - k;
    if (rank > 1 && draw(4) == 0)
        for (uint32_t k = 0; k < rank; k++) {
            uint32_t other = draw(rank), swap = order[k];
            order[k] = order[other];
            order[other] = swap;
        }
    uint32_t style = draw(4); /* 0: dense */
    bool still = is_input && draw(6) == 0;
    for (uint32_t k = 0; k < rank; k++) {
        uint32_t d = order[k];
        if (still || (is_input && style && draw(3) == 0)) continue; /* stride 0 */
        if (style == 3 && draw(3) == 0) step *= 2;
        if (style >= 2 && draw(3) == 0) step += draw(3);
        l->strides[d] = step;
        if (style >= 2 && draw(4) == 0) {
            l->strides[d] = -step;
            least -= (dims[d] - 1) * step;
        }
        step *= dims[d];
    }
    l->start = -least + draw(3);
    l->bytes = (size_t)(step + 8) * (is_mask ? 1 : 4);
    l->memory = malloc(l->bytes);
    l->before = malloc(l->bytes);
    for (size_t i = 0; i < l->bytes / (is_mask ? 1 : 4); i++) {
        if (is_mask)
            l->memory[i] = draw(2) ? 1 : 0;
        else
            ((float *)(void *)l->memory)[i] = (float)draw(9) - 4;
    }
    memcpy(l->before, l->memory, l->bytes);
}

static int64_t element(const lay *l, uint32_t rank, const int64_t *at)
{
    int64_t e = l->start;
    for (uint32_t k = 0; k < rank; k++) e += at[k] * l->strides[k];
    return e;
}

static double read_at(const lay *l, const uint8_t *memory, int64_t e)
{
    return l->is_mask ? memory[e] : (double)((const float *)(const void *)memory)[e];
}

typedef struct expression {
    term t[VALUES_MOST];
    uint32_t n_in, n;
    uint32_t outputs[OT_CHAIN_OUTPUTS], n_out;
    uint32_t rank;
    int64_t dims[OT_CHAIN_RANK];
    lay in[INPUTS_MOST], out[OT_CHAIN_OUTPUTS];
    int shares[OT_CHAIN_OUTPUTS]; /* input whose memory it is, or -1 */
    float constant;               /* input 0, where it is one */
    bool has_constant;
} expression;

static void draw_expression(expression *e)
{
    *e = (expression){.n_in = 1 + draw(INPUTS_MOST),
                      .has_constant = draw(3) == 0,
                      .constant = (float)draw(7) - 3};
    if (e->has_constant && e->n_in < 2) e->n_in = 2;
    for (uint32_t k = 0; k < e->n_in; k++)
        e->t[k] = (term){.is_mask = k > 1 && draw(4) == 0, .most = 4};
    e->n = e->n_in;
    uint32_t want = e->n + 1 + draw(NODES_MOST);
    for (int tries = 0; e->n < want && e->n < VALUES_MOST && (tries < 200 || e->n == e->n_in);
         tries++)
        if (make_term(e->t, e->n)) e->n++;
    e->n_out = 1 + draw(3);
    for (uint32_t k = 0; k < e->n_out; k++)
        e->outputs[k] = k == 0 ? e->n - 1 : e->n_in + draw(e->n - e->n_in);
    static const int64_t extents[] = {1, 2, 3, 5, 8, 16, 40, 129, 700, 2100};
    int64_t room = 6000;
    e->rank = draw(6);
    for (uint32_t k = 0; k < e->rank; k++) {
        do e->dims[k] = extents[draw(sizeof extents / sizeof *extents)];
        while (e->dims[k] > room);
        room /= e->dims[k];
    }
    if (draw(40) == 0 && e->rank) e->dims[draw(e->rank)] = 0;
    for (uint32_t k = 0; k < e->n_in; k++)
        lay_out(&e->in[k], e->t[k].is_mask, e->rank, e->dims, true);
}

static bool moves_everywhere(const lay *l, const expression *e)
{
    for (uint32_t k = 0; k < e->rank; k++)
        if (l->strides[k] == 0) return false;
    return true;
}

static void place_results(expression *e)
{
    bool used[INPUTS_MOST] = {false};
    for (uint32_t k = 0; k < e->n_out; k++) {
        e->shares[k] = -1;
        lay_out(&e->out[k], e->t[e->outputs[k]].is_mask, e->rank, e->dims, false);
        for (uint32_t i = e->has_constant; i < e->n_in && draw(2); i++) {
            if (used[i] || e->t[i].is_mask != e->t[e->outputs[k]].is_mask ||
                !moves_everywhere(&e->in[i], e))
                continue;
            used[i] = true;
            e->shares[k] = (int)i;
            break;
        }
    }
}

static const ot_chain *compile(expression *e, ot_model *m, ot_arena *a)
{
    ot_graph *g = m->graph;
    const ot_node *nodes[NODES_MOST];
    uint32_t n_nodes = 0;
    ot_id outputs[OT_CHAIN_OUTPUTS];
    static char names[VALUES_MOST][8];
    m->opset = 20;
    for (uint32_t k = 0; k < e->n; k++) {
        term *t = &e->t[k];
        snprintf(names[k], sizeof names[k], "v%u", k % 1000);
        if (k == 0 && e->has_constant)
            t->id = ot_const_f32(g, names[k], &e->constant, 0, NULL);
        else
            t->id = ot_value_new(g, names[k], t->is_mask ? OT_BOOL : OT_F32, -1, NULL);
        assert_int_not_equal(t->id, OT_NONE);
        if (k < e->n_in) continue;
        ot_id in[3];
        for (uint32_t i = 0; i < t->n_in; i++) in[i] = e->t[t->in[i]].id;
        ot_attr to = ot_mk_int("to", OT_F32);
        assert_int_not_equal(ot_node_new(g, &(ot_node_def){.op = ot_op_name(t->op),
                                                           .name = "",
                                                           .in = {in, t->n_in},
                                                           .out = {&t->id, 1},
                                                           .attrs = {&to, t->op == OT_OP_Cast}}),
                             OT_NONE);
    }
    for (uint32_t k = 0; k < g->n_nodes; k++) {
        nodes[n_nodes++] = &g->nodes[k];
        if (!ot_chain_takes(g, &g->nodes[k])) fail_msg("%s is not taken", g->nodes[k].op_type);
    }
    for (uint32_t k = 0; k < e->n_out; k++) outputs[k] = e->t[e->outputs[k]].id;
    const ot_chain *c;
    ot_diag d = {0};
    if (ot_chain_new(a, &(ot_chain_spec){g, nodes, n_nodes, outputs, e->n_out}, &d, &c) != OT_OK)
        fail_msg("%s", d.message);
    return c;
}

static ot_chain_array array_of(const lay *l)
{
    ot_chain_array a = {.data = l->memory + l->start * (l->is_mask ? 1 : 4)};
    memcpy(a.strides, l->strides, sizeof a.strides);
    return a;
}

/* Expected values into a copy of each output's memory; then all bytes must be equal. */
static void check_results(expression *e, uint64_t from)
{
    int64_t at[OT_CHAIN_RANK] = {0}, total = 1;
    for (uint32_t k = 0; k < e->rank; k++) total *= e->dims[k];
    lay *to[OT_CHAIN_OUTPUTS];
    uint8_t *want[OT_CHAIN_OUTPUTS];
    for (uint32_t k = 0; k < e->n_out; k++) {
        to[k] = e->shares[k] < 0 ? &e->out[k] : &e->in[e->shares[k]];
        want[k] = malloc(to[k]->bytes);
        memcpy(want[k], to[k]->before, to[k]->bytes);
    }
    for (int64_t i = 0; i < total; i++) {
        double v[VALUES_MOST];
        int64_t rest = i;
        for (uint32_t k = e->rank; k-- > 0;) {
            at[k] = rest % e->dims[k];
            rest /= e->dims[k];
        }
        for (uint32_t k = 0; k < e->n; k++) {
            if (k >= e->n_in)
                v[k] = value_of(&e->t[k], v);
            else if (k == 0 && e->has_constant)
                v[k] = (double)e->constant;
            else
                v[k] = read_at(&e->in[k], e->in[k].before, element(&e->in[k], e->rank, at));
        }
        for (uint32_t k = 0; k < e->n_out; k++) {
            int64_t place = element(to[k], e->rank, at);
            if (to[k]->is_mask)
                want[k][place] = v[e->outputs[k]] != 0;
            else
                ((float *)(void *)want[k])[place] = (float)v[e->outputs[k]];
        }
    }
    for (uint32_t k = 0; k < e->n_out; k++) {
        for (int64_t i = 0; i < (int64_t)(to[k]->bytes / (to[k]->is_mask ? 1 : 4)); i++)
            if (read_at(to[k], to[k]->memory, i) != read_at(to[k], want[k], i))
                fail_msg("seed %llu: output %u: place %lld is %g, not %g", (unsigned long long)from,
                         k, (long long)i, read_at(to[k], to[k]->memory, i),
                         read_at(to[k], want[k], i));
        free(want[k]);
    }
}

static void run_expression(uint32_t threads)
{
    static expression e;
    uint64_t from = seed;
    draw_expression(&e);
    place_results(&e);
    ot_diag d = {0};
    ot_model *m = ot_model_new(&d);
    ot_arena *a = ot_arena_new();
    const ot_chain *c = compile(&e, m, a);
    const ot_id *ids;
    uint32_t n_in = ot_chain_inputs(c, &ids);
    ot_chain_array in[OT_CHAIN_INPUTS], out[OT_CHAIN_OUTPUTS];
    for (uint32_t k = 0; k < n_in; k++) {
        uint32_t i = 0;
        while (e.t[i].id != ids[k]) i++;
        assert_true(i < e.n_in);
        in[k] = array_of(&e.in[i]);
    }
    for (uint32_t k = 0; k < e.n_out; k++)
        out[k] = array_of(e.shares[k] < 0 ? &e.out[k] : &e.in[e.shares[k]]);
    ot_chain_run(c, e.rank, e.dims, in, out, threads);
    check_results(&e, from);
    for (uint32_t k = 0; k < e.n_in; k++) free(e.in[k].memory), free(e.in[k].before);
    for (uint32_t k = 0; k < e.n_out; k++) free(e.out[k].memory), free(e.out[k].before);
    ot_arena_free(a);
    ot_model_free(m);
}

static void test_expressions(void **state)
{
    (void)state;
    for (int k = 0; k < EXPRESSIONS; k++) run_expression(k % 3 ? 1 : 3);
}

static int begin(void **state) { return start(state) | pool_start(state); }

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_expressions)};
    return cmocka_run_group_tests(tests, begin, pool_end);
}
