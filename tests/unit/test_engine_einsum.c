/* Einsum by products, sums and copies against the reference: random equations (batches,
 * broadcasts, diagonals, labels that are summed alone, ellipses, several operands), and each form
 * of models. */
#include "fast_check.h"

#include <time.h>

#include "engine/ref/ref_product.h"

enum { LETTERS = 7 };

/* Whole numbers from 0 to 2: no order of sums loses anything by cancellation. */
static ot_nd whole_array(uint32_t rank, const int64_t *dims)
{
    ot_nd a = fast_array(OT_F32, rank, dims);
    for (int64_t i = 0; i < fast_count(&a); i++) ((float *)a.data)[i] = (float)fast_random(3);
    return a;
}

typedef struct equation {
    int64_t extent[LETTERS];
    uint32_t n;        /* operands */
    char terms[4][16]; /* letters of each */
    bool dots[4];      /* begins with an ellipsis */
} equation;

static void draw_terms(equation *q)
{
    q->n = 1 + fast_random(4);
    uint32_t letters = 1 + fast_random(LETTERS);
    for (uint32_t l = 0; l < LETTERS; l++) q->extent[l] = 1 + fast_random(fast_random(4) ? 5 : 24);
    for (uint32_t k = 0; k < q->n; k++) {
        uint32_t rank = fast_random(5);
        for (uint32_t a = 0; a < rank; a++)
            q->terms[k][a] = (char)('a' + fast_random(letters)); /* twice: a diagonal */
        q->terms[k][rank] = '\0';
        q->dots[k] = fast_random(5) == 0;
    }
}

/* Different letters of the terms, in any order. */
static void draw_output(const equation *q, char *out, bool *dots)
{
    uint32_t n = 0;
    *dots = false;
    for (uint32_t k = 0; k < q->n; k++) {
        *dots = *dots || q->dots[k];
        for (const char *p = q->terms[k]; *p; p++) {
            if (memchr(out, *p, n) || fast_random(2)) continue;
            uint32_t at = fast_random(n + 1);
            memmove(out + at + 1, out + at, n - at);
            out[at] = *p;
            n++;
        }
    }
    out[n] = '\0';
}

static void write_equation(const equation *q, char *text, size_t size)
{
    char out[LETTERS + 1];
    bool dots;
    size_t at = 0;
    for (uint32_t k = 0; k < q->n; k++)
        at += (size_t)snprintf(text + at, size - at, "%s%s%s", k ? "," : "",
                               q->dots[k] ? "..." : "", q->terms[k]);
    draw_output(q, out, &dots);
    if (fast_random(6)) /* else the implicit output */
        snprintf(text + at, size - at, "->%s%s", dots ? "..." : "", out);
}

static void random_equation(uint32_t threads)
{
    equation q = {0};
    fast_run r = {.n_out = 1};
    char node[400], inputs[40] = "", text[200];
    draw_terms(&q);
    write_equation(&q, text, sizeof text);
    r.n_in = q.n;
    for (uint32_t k = 0; k < q.n; k++) {
        int64_t dims[16];
        uint32_t rank = 0;
        bool one = fast_random(8) == 0; /* an axis that broadcasts */
        if (q.dots[k]) {
            dims[rank++] = fast_random(2) ? 1 : 3;
            if (fast_random(2)) dims[rank++] = 2;
        }
        for (const char *p = q.terms[k]; *p; p++) dims[rank++] = q.extent[*p - 'a'];
        if (one && rank > 0 && !q.dots[k] && strlen(q.terms[k]) == 1) dims[0] = 1;
        r.in[k] = whole_array(rank, dims);
        snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), "%s%%%c", k ? ", " : "",
                 'a' + (int)k);
    }
    snprintf(node, sizeof node, "Einsum(%s) {equation = \"%s\"}", inputs, text);
    if (fast_try(&r, 13, node, threads, ot_ref_einsum) == OT_OK) {
        fast_end(&r);
        fast_twins(&r, 13, node, threads, ot_ref_einsum, 0);
    } else { /* both refuse, with the same line */
        char why[OT_DIAG_MAX];
        snprintf(why, sizeof why, "%s", r.b.d.message);
        fast_end(&r);
        assert_int_not_equal(fast_try(&r, 13, node, threads, NULL), OT_OK);
        assert_string_equal(r.b.d.message, why);
    }
    fast_close(&r);
}

static void test_random(void **state)
{
    (void)state;
    for (int k = 0; k < 3000; k++) random_equation(1 + fast_random(3));
}

/* ---- forms of models: each way through the kernel ---- */

static void form(const char *text, ot_nd a, ot_nd b, uint32_t threads)
{
    fast_run r = {.in = {a, b}, .n_in = b.data ? 2 : 1, .n_out = 1};
    char node[200];
    snprintf(node, sizeof node, "Einsum(%%a%s) {equation = \"%s\"}", b.data ? ", %b" : "", text);
    fast_twins(&r, 13, node, threads, ot_ref_einsum, 0);
    fast_close(&r);
}
#define A(...) \
    whole_array(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static void test_forms(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads < 4; threads += 2) {
        form("bij,bjk->bik", A(3, 40, 50), A(3, 50, 60), threads);
        form("bhid,bhjd->bhij", A(2, 3, 40, 16), A(2, 3, 50, 16), threads);
        form("bhid,bjhd->bihj", A(1, 4, 30, 16), A(1, 20, 4, 16), threads); /* strided result */
        form("hbwpc,hcd->hbwpd", A(4, 1, 6, 20, 8), A(4, 8, 8), threads);
        form("bij,bkj->ikb", A(5, 20, 30), A(5, 24, 30), threads);      /* the result is copied */
        form("abcd,cebf->aedf", A(6, 7, 8, 9), A(8, 5, 7, 4), threads); /* operands are copied */
        form("bchw,c->bhw", A(2, 20, 40, 60), A(20), threads);          /* a nest of loops */
        form("i,j->ij", A(70), A(3000), threads);
        form("bhd,bhd->bh", A(2, 20, 40), A(2, 20, 40), threads);
        form("ijkl->lkji", A(5, 6, 7, 8), (ot_nd){0}, threads);
        form("bii->bi", A(4, 30, 30), (ot_nd){0}, threads);
        form("bij->", A(4, 30, 50), (ot_nd){0}, threads);
        form("bij->j", A(4, 30, 50), (ot_nd){0}, threads);
        form("ij,k->", A(40, 30), A(50), threads);
    }
}

/* 16 bits are widened. */
static void test_half(void **state)
{
    (void)state;
    int64_t dims[2] = {9, 9};
    fast_run r = {
        .in = {fast_array(OT_F32, 2, dims), fast_array(OT_F32, 2, dims)}, .n_in = 2, .n_out = 1};
    for (int k = 0; k < 2; k++) {
        r.in[k].dtype = OT_F16;
        for (int i = 0; i < 81; i++)
            ((uint16_t *)r.in[k].data)[i] = (uint16_t)(0x3000 + fast_random(0x0c00));
    }
    fast_right(&r, 13, "Einsum(%a, %b) {equation = \"ij,kj->ik\"}", 1);
    assert_int_equal(r.out[0].dtype, OT_F16);
    double sum = 0;
    for (int j = 0; j < 9; j++) sum += ot_nd_double(&r.in[0], j) * ot_nd_double(&r.in[1], j);
    assert_true(fabs(ot_nd_double(&r.out[0], 0) - sum) <= 1e-3 * fabs(sum));
    fast_close(&r);
}

int main(void)
{
    const char *given = getenv("SEED");
    fast_state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)fast_state);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_half)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
