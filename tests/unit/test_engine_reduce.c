/* Fast kernels of reductions, ArgMax, ArgMin and TopK against loops in double: random shapes,
 * axes, threads, special values. */
#include "fast_check.h"

/* ---- reductions ---- */

static double reduce_list(const char *op, const double *v, int64_t n)
{
    double sum = 0, abs = 0, squares = 0, product = 1, most = -INFINITY, least = INFINITY, exps = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += v[i];
        abs += fabs(v[i]);
        squares += v[i] * v[i];
        product *= v[i];
        exps += exp(v[i]);
        most = fmax(most, v[i]);
        least = fmin(least, v[i]);
    }
    const char *f = op + strlen("Reduce");
    return !strcmp(f, "Sum")         ? sum
           : !strcmp(f, "Mean")      ? sum / (double)n
           : !strcmp(f, "Max")       ? most
           : !strcmp(f, "Min")       ? least
           : !strcmp(f, "Prod")      ? product
           : !strcmp(f, "L1")        ? abs
           : !strcmp(f, "L2")        ? sqrt(squares)
           : !strcmp(f, "LogSumExp") ? log(exps)
           : !strcmp(f, "LogSum")    ? log(sum)
                                     : squares;
}

/* By definition: every element goes to the list of its output. */
static double *reduce_by(const char *op, const ot_nd *a, const bool *reduced, int64_t *n_out)
{
    int64_t n = fast_count(a);
    double *v = fast_doubles(a), *list = test_malloc((size_t)n * sizeof *list),
           *want = test_malloc((size_t)n * sizeof *want);
    *n_out = 1;
    for (uint32_t d = 0; d < a->rank; d++) *n_out *= reduced[d] ? 1 : a->dims[d];
    for (int64_t o = 0; o < *n_out; o++) {
        int64_t have = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t to = 0;
            for (uint32_t d = 0; d < a->rank; d++)
                if (!reduced[d]) to = to * a->dims[d] + i / a->strides[d] % a->dims[d];
            if (to == o) list[have++] = v[i];
        }
        want[o] = reduce_list(op, list, have);
    }
    test_free(v);
    test_free(list);
    return want;
}

static void reductions(void **state)
{
    (void)state;
    const char *ops[] = {"ReduceSum",       "ReduceMean",  "ReduceMax", "ReduceMin",
                         "ReduceProd",      "ReduceL1",    "ReduceL2",  "ReduceLogSumExp",
                         "ReduceSumSquare", "ReduceLogSum"};
    for (int round = 0; round < 260; round++) {
        const char *op = ops[round % 10];
        uint32_t rank = 1 + fast_random(4), n_axes = 0, out_rank = 0;
        ot_dtype t = round % 10 < 4 && round % 10 != 1 && fast_random(2)
                         ? fast_random(2) ? OT_I32 : OT_I64
                         : OT_F32;
        int64_t dims[4], axes[4], out_dims[4], n_out;
        bool reduced[4], keep = fast_random(2),
                         attr = strcmp(op, "ReduceSum") != 0 && fast_random(2);
        for (uint32_t d = 0; d < rank; d++) dims[d] = 1 + fast_random(round % 10 == 4 ? 4 : 7);
        if (fast_random(4) == 0) dims[fast_random(rank)] = round % 10 == 4 ? 20 : 300;
        for (uint32_t d = 0; d < rank; d++) reduced[d] = fast_random(2);
        fast_run r = {.in = {fast_array(t, rank, dims)}, .n_in = 1, .n_out = 1};
        for (int64_t i = 0; round % 10 == 9 && i < fast_count(&r.in[0]); i++)
            ((float *)r.in[0].data)[i] += 3;
        char node[300], list[100] = "";
        for (uint32_t d = rank; d-- > 0;)
            if (reduced[d]) {
                axes[n_axes] = (int64_t)d - (fast_random(2) ? rank : 0);
                snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d",
                         n_axes ? ", " : "", (int)axes[n_axes]);
                n_axes++;
            }
        if (attr)
            snprintf(node, sizeof node,
                     n_axes ? "%s(%%a) {keepdims=%d, axes=[%s]}" : "%s(%%a) {keepdims=%d}", op,
                     keep, list);
        else
            snprintf(node, sizeof node,
                     n_axes ? "%s(%%a, %%b) {keepdims=%d}" : "%s(%%a) {keepdims=%d}", op, keep);
        if (!attr && n_axes) {
            r.in[r.n_in++] = FAST_ARRAY(OT_I64, n_axes);
            memcpy(r.in[1].data, axes, n_axes * sizeof *axes);
        }
        for (uint32_t d = 0; d < rank; d++) reduced[d] = reduced[d] || n_axes == 0;
        fast_right(&r, attr ? 13 : 18, node, fast_random(2) ? 3 : 1);
        for (uint32_t d = 0; d < rank; d++)
            if (!reduced[d] || keep) out_dims[out_rank++] = reduced[d] ? 1 : dims[d];
        double *want = reduce_by(op, &r.in[0], reduced, &n_out);
        fast_same(&r, 0, out_rank, out_dims, want, 3e-6, t == OT_F32 ? 2e-5 : 0);
        test_free(want);
        fast_close(&r);
    }
}

/* Many elements for several threads, long rows, long columns. */
static void large_reductions(void **state)
{
    (void)state;
    const char *ops[] = {"ReduceMean", "ReduceMax", "ReduceLogSumExp"};
    for (int round = 0; round < 6; round++) {
        bool reduced[3] = {round % 2 == 0, false, round % 2 == 1};
        char node[100];
        int64_t n_out, dims[3] = {reduced[0] ? 1 : 40, 3, reduced[2] ? 1 : 700};
        fast_run r = {.in = {FAST_ARRAY(OT_F32, 40, 3, 700)}, .n_in = 1, .n_out = 1};
        snprintf(node, sizeof node, "%s(%%a) {axes=[%d]}", ops[round % 3], reduced[0] ? 0 : 2);
        fast_right(&r, 13, node, 3);
        double *want = test_malloc(2100 * sizeof *want);
        n_out = 0;
        for (int64_t o = 0; o < dims[0] * 3 * dims[2]; o++) {
            double list[700];
            int64_t n = reduced[0] ? 40 : 700;
            for (int64_t i = 0; i < n; i++)
                list[i] = (double)((float *)r.in[0].data)[reduced[0] ? i * 2100 + o : o * 700 + i];
            want[n_out++] = reduce_list(ops[round % 3], list, n);
        }
        fast_same(&r, 0, 3, dims, want, 2e-6, 1e-6);
        test_free(want);
        fast_close(&r);
    }
}

static void reductions_of_specials(void **state)
{
    (void)state;
    const char *ops[] = {"ReduceMax", "ReduceMin", "ReduceLogSumExp", "ReduceLogSumExp",
                         "ReduceLogSumExp"};
    const double first[] = {NAN, NAN, INFINITY, -INFINITY, 500};
    const double want[] = {NAN, NAN, INFINITY, -INFINITY, 500 + 3.58351893845611}; /* log 36 */
    for (int axis = 0; axis < 2; axis++) {
        for (int i = 0; i < 5; i++) {
            fast_run r = {.in = {FAST_ARRAY(OT_F32, 36, 36)}, .n_in = 1, .n_out = 1};
            char node[100];
            float *x = r.in[0].data;
            for (int k = 0; k < 36; k++)
                x[axis ? k : k * 36] = i < 2 && k != 7 ? 1.0f : (float)first[i];
            snprintf(node, sizeof node, "%s(%%a) {axes=[%d], keepdims=0}", ops[i], axis);
            fast_right(&r, 13, node, 1);
            double got = (double)((float *)r.out[0].data)[0];
            if (isnan(want[i]) ? !isnan(got) : !(got == want[i] || fabs(got - want[i]) < 1e-4))
                fail_msg("%s: %g", r.what, got);
            assert_true(isfinite(((float *)r.out[0].data)[1]));
            fast_close(&r);
        }
    }
}

static void global_pools(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        fast_run r = {.n_in = 1, .n_out = 1};
        r.in[0] = FAST_ARRAY(OT_F32, 1 + fast_random(3), 1 + fast_random(30), 1 + fast_random(40),
                             1 + fast_random(40));
        bool reduced[4] = {false, false, true, true};
        int64_t n_out, dims[4] = {r.in[0].dims[0], r.in[0].dims[1], 1, 1};
        fast_right(&r, 13, round % 2 ? "GlobalMaxPool(%a)" : "GlobalAveragePool(%a)",
                   round % 3 ? 3 : 1);
        double *want = reduce_by(round % 2 ? "ReduceMax" : "ReduceMean", &r.in[0], reduced, &n_out);
        fast_same(&r, 0, 4, dims, want, 1e-6, 1e-6);
        test_free(want);
        fast_close(&r);
    }
}

/* ---- ArgMax, ArgMin, TopK ---- */

/* Few different values: equal ones are common. */
static void coarse(ot_nd *a)
{
    for (int64_t i = 0; i < fast_count(a); i++)
        ((float *)a->data)[i] = (float)fast_random(9) - 4.0f;
}

static void args(void **state)
{
    (void)state;
    for (int round = 0; round < 80; round++) {
        uint32_t rank = 1 + fast_random(4), axis = fast_random(rank), out_rank = 0;
        bool most = fast_random(2), last = fast_random(2), keep = fast_random(2);
        int64_t dims[4];
        char node[200];
        fast_run r = {.in = {lanes_array(rank, axis)}, .n_in = 1, .n_out = 1};
        if (fast_random(2)) coarse(&r.in[0]);
        if (fast_random(5) == 0) ((float *)r.in[0].data)[fast_count(&r.in[0]) / 2] = NAN;
        snprintf(node, sizeof node, "%s(%%a) {axis=%d, select_last_index=%d, keepdims=%d}",
                 most ? "ArgMax" : "ArgMin", (int)axis, last, keep);
        fast_right(&r, 13, node, fast_random(2) ? 3 : 1);
        const float *x = r.in[0].data;
        int64_t n = r.in[0].dims[axis], inner = r.in[0].strides[axis],
                lanes_n = fast_count(&r.in[0]) / n;
        double *want = test_malloc((size_t)lanes_n * sizeof *want);
        for (int64_t k = 0; k < lanes_n; k++) {
            const float *v = x + k / inner * n * inner + k % inner;
            int64_t best = 0;
            for (int64_t i = 1; i < n; i++) {
                float a = v[i * inner], b = v[best * inner];
                if ((most ? a > b : a < b) || (last && a == b)) best = i;
            }
            want[k] = (double)best;
        }
        for (uint32_t d = 0; d < rank; d++)
            if (d != axis || keep) dims[out_rank++] = d == axis ? 1 : r.in[0].dims[d];
        fast_same(&r, 0, out_rank, dims, want, 0, 0);
        test_free(want);
        fast_close(&r);
    }
}

static void top_k(void **state)
{
    (void)state;
    for (int round = 0; round < 80; round++) {
        uint32_t rank = 1 + fast_random(3), axis = fast_random(rank);
        bool largest = fast_random(2);
        int64_t dims[4];
        char node[200];
        fast_run r = {.in = {lanes_array(rank, axis)}, .n_in = 2, .n_out = 2};
        if (fast_random(2)) coarse(&r.in[0]);
        for (uint32_t j = fast_random(3) ? 0 : 1 + fast_random(40); j > 0; j--)
            ((float *)r.in[0].data)[fast_random((uint32_t)fast_count(&r.in[0]))] = NAN;
        int64_t n = r.in[0].dims[axis], inner = r.in[0].strides[axis],
                k = 1 + fast_random((uint32_t)(round % 2 ? n : ot_min(n, 10))),
                lanes_n = fast_count(&r.in[0]) / n;
        r.in[1] = FAST_ARRAY(OT_I64, 1);
        *(int64_t *)r.in[1].data = k;
        snprintf(node, sizeof node, "TopK(%%a, %%b) {axis=%d, largest=%d}", (int)axis, largest);
        fast_right(&r, 11, node, fast_random(2) ? 3 : 1);
        double *values = test_malloc((size_t)(lanes_n * k) * sizeof *values),
               *at = test_malloc((size_t)(lanes_n * k) * sizeof *at);
        bool *taken = test_malloc((size_t)n);
        for (int64_t l = 0; l < lanes_n; l++) {
            const float *v = (const float *)r.in[0].data + l / inner * n * inner + l % inner;
            memset(taken, 0, (size_t)n);
            for (int64_t j = 0; j < k; j++) { /* the best that is left, NaN above all */
                int64_t best = -1;
                for (int64_t i = 0; i < n; i++) {
                    float x = v[i * inner], b = best < 0 ? 0 : v[best * inner];
                    if (taken[i]) continue;
                    if (best < 0 || (largest ? (isnan(x) && !isnan(b)) || x > b
                                             : (isnan(b) && !isnan(x)) || x < b))
                        best = i;
                }
                taken[best] = true;
                values[(l / inner * k + j) * inner + l % inner] = (double)v[best * inner];
                at[(l / inner * k + j) * inner + l % inner] = (double)best;
            }
        }
        memcpy(dims, r.in[0].dims, sizeof dims);
        dims[axis] = k;
        fast_same(&r, 0, rank, dims, values, 0, 0);
        fast_same(&r, 1, rank, dims, at, 0, 0);
        test_free(values);
        test_free(at);
        test_free(taken);
        fast_close(&r);
    }
}

int main(void)
{
    const char *seed = getenv("OT_SEED");
    fast_state = seed ? strtoull(seed, NULL, 10) : 20240718;
    printf("seed %llu\n", (unsigned long long)fast_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions),
        cmocka_unit_test(large_reductions),
        cmocka_unit_test(reductions_of_specials),
        cmocka_unit_test(global_pools),
        cmocka_unit_test(args),
        cmocka_unit_test(top_k),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
