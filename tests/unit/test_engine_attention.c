/* Attention as one step against sums in double: shapes, broadcasts, Transposes of operands and
 * result, factors, masks, and what Softmax says of infinities; what must not be fused; tiles. */
#include "fast_check.h"
#include "tiled_graph.h"

#include "engine/cpu/product/attention.h"
#include "select/search/plan_search.h"
#include "transform/transform.h"

/* Batch [b, h]; which of the operands repeat, and how they lie. */
typedef struct shape {
    int64_t b, h, queries, keys, size, v_size;
    /* the array is [b, position, h, size], and a Transpose is in the graph */
    bool q_lies, k_lies, v_lies, y_lies;
    bool k_whole, v_whole; /* one head for all */
    int scale;             /* none, Mul, Div, Mul from the left */
    int mask;              /* dims 1: bits of [b, h, queries, keys]; 16: none */
    double error;          /* that scores in float32 cause; 0: 2e-5 */
} shape;

/* Element (b, h, position, column) of an array that lies so. */
static int64_t at(bool lies, int64_t heads, int64_t length, int64_t size, const int64_t *p)
{
    int64_t row = lies ? (p[0] * length + p[2]) * heads + p[1]
                       : (p[0] * heads + p[1]) * length + p[2];
    return row * size + p[3];
}

static double mask_at(const shape *s, const float *mask, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (s->mask == 16) return 0;
    int64_t dims[4] = {s->b, s->h, s->queries, s->keys}, pos[4] = {b, h, i, j}, k = 0;
    for (int d = 0; d < 4; d++) k = s->mask & 1 << d ? k : k * dims[d] + pos[d];
    return (double)mask[k];
}

/* One query, by the definition. */
static void attend(const shape *s, const ot_nd *in, float scale, const int64_t *p, double *y)
{
    int64_t kh = s->k_whole ? 1 : s->h, vh = s->v_whole ? 1 : s->h;
    const float *q = in[0].data, *k = in[1].data, *v = in[2].data, *mask = in[3].data;
    double *w = test_malloc((size_t)s->keys * sizeof *w), most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < s->keys; j++) {
        w[j] = 0;
        for (int64_t d = 0; d < s->size; d++) {
            int64_t pq[4] = {p[0], p[1], p[2], d}, pk[4] = {p[0], s->k_whole ? 0 : p[1], j, d},
                    pd[4] = {pk[0], pk[1], d, j};
            /* without a Transpose K is [b, h, size, keys] */
            int64_t ak = s->k_lies ? at(true, kh, s->keys, s->size, pk)
                                   : at(false, kh, s->size, s->keys, pd);
            w[j] += (double)q[at(s->q_lies, s->h, s->queries, s->size, pq)] * (double)k[ak];
        }
        w[j] = w[j] * (double)scale + mask_at(s, mask, p[0], p[1], p[2], j);
        most = w[j] > most ? w[j] : most;
    }
    for (int64_t j = 0; j < s->keys; j++) sum += w[j] = exp(w[j] - most);
    for (int64_t d = 0; d < s->v_size; d++) {
        y[d] = 0;
        for (int64_t j = 0; j < s->keys; j++) {
            int64_t pv[4] = {p[0], s->v_whole ? 0 : p[1], j, d};
            y[d] += w[j] / sum * (double)v[at(s->v_lies, vh, s->keys, s->v_size, pv)];
        }
    }
    test_free(w);
}

static ot_nd make(bool lies, int64_t b, int64_t heads, int64_t length, int64_t size)
{
    return lies ? FAST_ARRAY(OT_F32, b, length, heads, size)
                : FAST_ARRAY(OT_F32, b, heads, length, size);
}

static void make_inputs(const shape *s, ot_nd *in)
{
    int64_t dims[4] = {s->b, s->h, s->queries, s->keys};
    for (int d = 0; d < 4; d++)
        if (s->mask & 1 << d || s->mask == 16) dims[d] = 1;
    in[0] = make(s->q_lies, s->b, s->h, s->queries, s->size);
    int64_t kh = s->k_whole ? 1 : s->h;
    in[1] = s->k_lies ? make(true, s->b, kh, s->keys, s->size)
                      : make(false, s->b, kh, s->size, s->keys);
    in[2] = make(s->v_lies, s->b, s->v_whole ? 1 : s->h, s->keys, s->v_size);
    in[3] = fast_array(OT_F32, 4, dims);
}

/* The graph; `reads`: another node, which may name %s (scores), %w (weights) and makes %z. */
static void write_graph(const shape *s, const ot_nd *in, const char *reads, char *text, size_t cap)
{
    char dims[4][100];
    for (int k = 0; k < 4; k++) ot_dims_text(in[k].rank, in[k].dims, dims[k], sizeof dims[k]);
    static const char *const scaled[] = {"%m = Identity(%s)", "%m = Mul(%s, %n)",
                                         "%m = Div(%s, %n)", "%m = Mul(%n, %s)"};
    snprintf(text, cap,
             "input %%a : float32%s\ninput %%b : float32%s\ninput %%c : float32%s\ninput %%d : "
             "float32%s\n"
             "init %%n : float32[] = [%s]\n%s\n%s\n%s\n%%s = MatMul(%%q, %%k)\n%s\n%s\n%%w = "
             "Softmax(%%%s) {axis=%d}\n%%x = "
             "MatMul(%%w, %%v)\n%s\n%s\noutput %%y\n%s",
             dims[0], dims[1], dims[2], dims[3], s->scale == 2 ? "4" : "0.25",
             s->q_lies ? "%q = Transpose(%a) {perm=[0,2,1,3]}" : "",
             s->k_lies ? "%k = Transpose(%b) {perm=[0,2,3,1]}" : "",
             s->v_lies ? "%v = Transpose(%c) {perm=[0,2,1,3]}" : "",
             s->scale ? scaled[s->scale] : "",
             s->mask == 16 ? ""
             : s->scale    ? "%o = Add(%m, %d)"
                           : "%o = Add(%d, %s)",
             s->mask != 16 ? "o"
             : s->scale    ? "m"
                           : "s",
             s->mask % 2 ? 3 : -1,
             s->y_lies ? "%y = Transpose(%x) {perm=[0,2,1,3]}" : "%y = Identity(%x)",
             reads ? reads : "", reads ? "output %z\n" : "");
    /* names of inputs where no Transpose stands between */
    const char *lies[] = {s->q_lies ? NULL : "%q", s->k_lies ? NULL : "%k",
                          s->v_lies ? NULL : "%v"};
    for (int k = 0; k < 3; k++)
        for (char *found = lies[k] ? strstr(text, lies[k]) : NULL; found;
             found = strstr(found, lies[k]))
            found[1] = (char)('a' + k);
}

/* Results of `threads` threads: right, and *first's bytes when it is set. Returns the number of
 * steps. */
static uint32_t run_one(const shape *s, const ot_nd *in, const char *text, uint32_t threads,
                        float **first, const char *what)
{
    bench b;
    ot_nd out[2] = {{0}};
    open_with(&b, text, (ot_session_options){.threads = threads});
    if (b.status != OT_OK) fail_msg("%s\n%s", b.d.message, text);
    uint32_t n = b.s->top->n_steps;
    run_ok(&b, in, out);
    const float *got = out[0].data;
    int64_t count = fast_count(&out[0]);
    assert_int_equal(count, s->b * s->h * s->queries * s->v_size);
    double *y = test_malloc((size_t)s->v_size * sizeof *y);
    float scale = s->scale ? 0.25f : 1.0f;
    for (int64_t i = 0; i < s->b * s->h * s->queries; i++) {
        int64_t p[4] = {i / s->queries / s->h, i / s->queries % s->h, i % s->queries, 0};
        attend(s, in, scale, p, y);
        for (; p[3] < s->v_size; p[3]++) {
            double have = (double)got[at(s->y_lies, s->h, s->queries, s->v_size, p)],
                   want = y[p[3]];
            if (!(fabs(have - want) <= (s->error > 0 ? s->error : 2e-5) ||
                  (isnan(have) && isnan(want))))
                fail_msg("%s, %u threads: query %d, column %d is %.9g, not %.9g\n%s", what, threads,
                         (int)i, (int)p[3], have, want, text);
        }
    }
    test_free(y);
    if (*first) {
        assert_memory_equal(*first, got, (size_t)count * sizeof *got);
    } else {
        *first = test_malloc((size_t)count * sizeof **first);
        memcpy(*first, got, (size_t)count * sizeof **first);
    }
    close_bench(&b);
    return n;
}

/* The same by one thread and by several; fused: all of it is one step. */
static void check(const shape *s, ot_nd *in, const char *reads, bool fused, const char *what)
{
    static char text[4000];
    float *first = NULL;
    write_graph(s, in, reads, text, sizeof text);
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        uint32_t n = run_one(s, in, text, threads, &first, what);
        if ((n <= 2) != fused) fail_msg("%s: %u steps\n%s", what, n, text);
    }
    test_free(first);
    for (int k = 0; k < 4; k++) test_free(in[k].data);
}

static shape random_shape(void)
{
    bool b[6];
    for (int k = 0; k < 6; k++) b[k] = fast_random(2);
    shape s = {.b = 1 + fast_random(2),
               .h = 1 + fast_random(3),
               .queries = 8 + fast_random(60),
               .keys = 1 + fast_random(90),
               .size = 1 + fast_random(40),
               .v_size = 1 + fast_random(40),
               .q_lies = b[0],
               .k_lies = b[1],
               .v_lies = b[2],
               .y_lies = b[3],
               .k_whole = b[4] && b[5],
               .v_whole = b[4] && !b[5]};
    s.scale = (int)fast_random(4);
    s.mask = (int)fast_random(17);
    if (fast_random(6) == 0) s.keys += 500; /* several chunks */
    return s;
}

static void random_shapes(void **state)
{
    (void)state;
    const char *given = getenv("OT_SEED");
    fast_state = given ? (uint64_t)atoi(given) : 1;
    print_message("seed %d\n", (int)fast_state);
    for (int round = 0; round < 120; round++) {
        shape s = random_shape();
        ot_nd in[4];
        char what[40];
        snprintf(what, sizeof what, "round %d", round);
        make_inputs(&s, in);
        check(&s, in, NULL, true, what);
    }
}

/* Blocks of several panels, shared out; more queries than a block holds. */
static void many_queries(void **state)
{
    (void)state;
    shape s = {.b = 1, .h = 1, .keys = 300, .size = 8, .v_size = 9, .scale = 1, .mask = 16};
    s.queries = OT_ATTENTION_PANEL * ot_attention_panels(s.size, s.v_size) + 21;
    ot_nd in[4];
    make_inputs(&s, in);
    check(&s, in, NULL, true, "many queries");
}

/* ---- infinities ---- */

/* Padding: keys that nobody sees, whole chunks of them first; one query that sees none. */
static void masked_keys(void **state)
{
    (void)state;
    for (int from = 0; from < 2; from++) {
        shape s = {.b = 1,
                   .h = 2,
                   .queries = 20,
                   .keys = 700,
                   .size = 8,
                   .v_size = 8,
                   .scale = 1,
                   .mask = 3};
        ot_nd in[4];
        make_inputs(&s, in);
        float *mask = in[3].data;
        for (int64_t i = 0; i < s.queries * s.keys; i++) {
            int64_t key = i % s.keys;
            mask[i] = (from ? key < 600 : key > 40) ? -INFINITY : 0.0f;
            if (i / s.keys == 7) mask[i] = -INFINITY;
        }
        check(&s, in, NULL, true, from ? "masked first" : "masked last");
    }
}

static void infinite_scores(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        shape s = {.b = 1,
                   .h = 1,
                   .queries = 18,
                   .keys = 300,
                   .size = 4,
                   .v_size = 6,
                   .scale = 0,
                   .mask = 3};
        ot_nd in[4];
        make_inputs(&s, in);
        ((float *)in[3].data)[5 * s.keys + 280] = k ? INFINITY : NAN;
        ((float *)in[3].data)[6 * s.keys + 3] = k ? INFINITY : NAN;
        check(&s, in, NULL, true, "infinite");
    }
}

/* exp of them would overflow; their distances are what counts. */
static void large_scores(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        shape s = {.b = 1,
                   .h = 1,
                   .queries = 33,
                   .keys = 600,
                   .size = 4,
                   .v_size = 6,
                   .scale = 3,
                   .mask = 7,
                   .error = 2e-3};
        ot_nd in[4];
        make_inputs(&s, in);
        for (int64_t j = 0; j < s.keys; j++)
            ((float *)in[3].data)[j] = (float)sign * 1024.0f * (float)(1 + j % 7);
        check(&s, in, NULL, true, "large");
    }
}

/* ---- what is not fused ---- */

static void inner_values_read_elsewhere(void **state)
{
    (void)state;
    static const char *const reads[] = {"%z = Relu(%s)", "%z = Relu(%w)", "%z = Relu(%m)",
                                        "%z = Relu(%o)"};
    for (size_t k = 0; k < 4; k++) {
        shape s = {.b = 1,
                   .h = 2,
                   .queries = 20,
                   .keys = 30,
                   .size = 8,
                   .v_size = 5,
                   .k_lies = true,
                   .scale = 1,
                   .mask = 7};
        ot_nd in[4];
        make_inputs(&s, in);
        check(&s, in, reads[k], false, reads[k]);
    }
    shape few = {
        .b = 1, .h = 2, .queries = 1, .keys = 30, .size = 8, .v_size = 5, .scale = 1, .mask = 16};
    ot_nd in[4];
    make_inputs(&few, in);
    check(&few, in, NULL, false, "one query");
}

/* Along another axis it is no attention. */
static void other_axis(void **state)
{
    (void)state;
    static const char text[] =
        "input %a : float32[2,20,8]\ninput %b : float32[2,8,20]\ninput %c : float32[2,20,4]\n"
        "%s = MatMul(%a, %b)\n%w = Softmax(%s) {axis=1}\n%y = MatMul(%w, %c)\noutput %y\n";
    ot_nd in[3] = {FAST_ARRAY(OT_F32, 2, 20, 8), FAST_ARRAY(OT_F32, 2, 8, 20),
                   FAST_ARRAY(OT_F32, 2, 20, 4)},
          out[2] = {{0}};
    bench b[2];
    for (int k = 0; k < 2; k++) {
        open_with(&b[k], text, (ot_session_options){.reference = k, .threads = 1});
        assert_int_equal(b[k].status, OT_OK);
        run_ok(&b[k], in, &out[k]);
    }
    assert_true(b[0].s->top->n_steps >= 3);
    for (int64_t i = 0; i < 160; i++)
        assert_true(fabs((double)((float *)out[0].data)[i] - (double)((float *)out[1].data)[i]) <
                    1e-5);
    for (int k = 0; k < 2; k++) close_bench(&b[k]);
    for (int k = 0; k < 3; k++) test_free(in[k].data);
}

/* ---- tiles ---- */

/* Is no step of a tile a Softmax by itself? */
static bool all_fused(const ot_session *s)
{
    for (const ot_schedule *p = s->all; p; p = p->next)
        for (uint32_t k = 0; k < p->n_steps; k++)
            if (p->steps[k].node->op == OT_OP_Softmax) return false;
    return true;
}

/* A tile of queries gives the bytes that the whole gives. */
static void tiled(void **state)
{
    (void)state;
    static char text[4000];
    shape s = {.b = 1,
               .h = 3,
               .queries = 250,
               .keys = 260,
               .size = 16,
               .v_size = 12,
               .scale = 1,
               .mask = 7};
    ot_nd in[4];
    float *first = NULL;
    make_inputs(&s, in);
    write_graph(&s, in, NULL, text, sizeof text);
    (void)run_one(&s, in, text, 1, &first, "whole");
    for (uint32_t threads = 1; threads <= 2; threads++) {
        bench b = {.status = OT_OK};
        ot_nd out = {0};
        b.m = text_model(text, &b.d);
        assert_true(tile_graph(b.m, 60000) > 0);
        ot_session_options o = {.threads = threads, .poison = true};
        if (ot_session_new(b.m, &o, &b.d, &b.s) != OT_OK) fail_msg("%s", b.d.message);
        assert_true(all_fused(b.s));
        run_ok(&b, in, &out);
        assert_memory_equal(out.data, first, (size_t)(s.h * s.queries * s.v_size) * sizeof *first);
        close_bench(&b);
    }
    test_free(first);
    for (int k = 0; k < 4; k++) test_free(in[k].data);
}

/* Sizes that cannot be counted are refused. */
static void scratch_sizes(void **state)
{
    (void)state;
    assert_true(ot_attention_scratch(OT_F32, 4, 64, 64) > 4 * 16 * 128);
    assert_int_equal(ot_attention_scratch(OT_F32, 4, INT64_MAX / 2, INT64_MAX / 2), -1);
    assert_int_equal(ot_attention_scratch(OT_F32, 4, INT64_MAX / 100, 8), -1);
    assert_int_equal(ot_attention_panels(INT64_MAX / 2, 8), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes), cmocka_unit_test(many_queries),
        cmocka_unit_test(masked_keys),   cmocka_unit_test(infinite_scores),
        cmocka_unit_test(large_scores),  cmocka_unit_test(inner_values_read_elsewhere),
        cmocka_unit_test(other_axis),    cmocka_unit_test(tiled),
        cmocka_unit_test(scratch_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
