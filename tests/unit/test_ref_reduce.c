/* Reference kernels: reductions, positions, normalisations. */
#include "ref_math_check.h"

/* ---- reductions ---- */

static void reductions(void **state)
{
    (void)state;
    const char *x = "float32[2,3] = [1, -2, 3, -4, 5, -6]";
    one(11, x, "ReduceSum(%a) {axes=[1]}", "float32[2,1] = [2, -5]");
    one(11, x, "ReduceSum(%a) {axes=[-2], keepdims=0}", "float32[3] = [-3, 3, -3]");
    one(11, x, "ReduceSum(%a)", "float32[1,1] = [-3]");
    one(11, x, "ReduceSum(%a) {keepdims=0}", "float32[] = [-3]");
    two(13, x, "int64[1] = [1]", "ReduceSum(%a, %b)", "float32[2,1] = [2, -5]");
    two(13, x, "int64[0] = []", "ReduceSum(%a, %b)", "float32[1,1] = [-3]");
    two(13, x, "int64[0] = []", "ReduceSum(%a, %b) {noop_with_empty_axes=1}", x);
    one(18, x, "ReduceSumSquare(%a) {noop_with_empty_axes=1}",
        "float32[2,3] = [1, 4, 9, 16, 25, 36]");
    one(13, x, "ReduceMean(%a) {axes=[1]}", "float32[2,1] = [0.6666667, -1.6666667]");
    one(13, x, "ReduceMax(%a) {axes=[0]}", "float32[1,3] = [1, 5, 3]");
    one(13, x, "ReduceMin(%a) {axes=[1], keepdims=0}", "float32[2] = [-2, -6]");
    one(13, x, "ReduceProd(%a) {axes=[1], keepdims=0}", "float32[2] = [-6, 120]");
    one(13, x, "ReduceL1(%a) {axes=[1], keepdims=0}", "float32[2] = [6, 15]");
    one(13, x, "ReduceL2(%a) {axes=[1], keepdims=0}", "float32[2] = [3.7416574, 8.7749644]");
    one(13, x, "ReduceSumSquare(%a) {axes=[1], keepdims=0}", "float32[2] = [14, 77]");
    one(13, x, "ReduceLogSum(%a) {axes=[1], keepdims=0}", "float32[2] = [0.6931472, nan]");
    one(13, "float32[2,2] = [1000, 1000, -inf, -inf]", "ReduceLogSumExp(%a) {axes=[1], keepdims=0}",
        "float32[2] = [1000.6931472, -inf]");
    one(13, "float32[] = [7]", "ReduceSum(%a)", "float32[] = [7]");
    one(13, "float32[3] = [1, nan, 3]", "ReduceMax(%a)", "float32[1] = [nan]");
    one(13, "float16[3] = [60000, 60000, -60000]", "ReduceSum(%a)", "float16[1] = [60000]");
    one(20, "bool[2,2] = [0, 1, 0, 0]", "ReduceMax(%a) {noop_with_empty_axes=0}",
        "bool[1,1] = [1]");
    two(20, "bool[2,2] = [0, 1, 0, 0]", "int64[1] = [1]", "ReduceMin(%a, %b)",
        "bool[2,1] = [0, 0]");
}

static void reductions_of_integers(void **state)
{
    (void)state;
    one(13, "int32[3] = [2147483647, 1, 1]", "ReduceSum(%a)", "int32[1] = [-2147483647]");
    one(13, "int32[2] = [2147483647, 2147483647]", "ReduceMean(%a)", "int32[1] = [2147483647]");
    one(13, "int32[3] = [-3, -3, -1]", "ReduceMean(%a)", "int32[1] = [-2]");
    one(13, "uint64[2] = [0xffffffffffffffff, 1]", "ReduceMax(%a)",
        "uint64[1] = [0xffffffffffffffff]");
    one(13, "int8[2] = [-128, 3]", "ReduceMin(%a)", "int8[1] = [-128]");
    one(13, "int64[2] = [-9223372036854775808, 5]", "ReduceL1(%a)",
        "int64[1] = [-9223372036854775803]");
    one(13, "int32[2] = [3, -4]", "ReduceL2(%a)", "int32[1] = [5]");
    one(13, "int32[2] = [3, -4]", "ReduceProd(%a)", "int32[1] = [-12]");
    one(13, "int32[2] = [3, 100]", "ReduceLogSum(%a)", "int32[1] = [4]");
}

static void reductions_of_nothing(void **state)
{
    (void)state;
    const char *f = "float32[2,0] = []", *i = "int32[2,0] = []", *axis = "int64[1] = [1]";
    two(20, f, axis, "ReduceSum(%a, %b)", "float32[2,1] = [0, 0]");
    two(20, f, axis, "ReduceProd(%a, %b)", "float32[2,1] = [1, 1]");
    two(20, f, axis, "ReduceMax(%a, %b)", "float32[2,1] = [-inf, -inf]");
    two(20, f, axis, "ReduceMin(%a, %b) {keepdims=0}", "float32[2] = [inf, inf]");
    two(20, f, axis, "ReduceMean(%a, %b)", "float32[2,1] = [nan, nan]");
    two(20, f, axis, "ReduceLogSumExp(%a, %b)", "float32[2,1] = [-inf, -inf]");
    two(20, f, axis, "ReduceL2(%a, %b)", "float32[2,1] = [0, 0]");
    two(20, f, "int64[1] = [0]", "ReduceSum(%a, %b)", "float32[1,0] = []");
    two(20, i, axis, "ReduceMax(%a, %b)", "int32[2,1] = [-2147483648, -2147483648]");
    two(20, i, axis, "ReduceMin(%a, %b)", "int32[2,1] = [2147483647, 2147483647]");
    two(20, "uint8[0] = []", "int64[1] = [0]", "ReduceMin(%a, %b)", "uint8[1] = [255]");
    two(20, "int64[0] = []", "int64[1] = [0]", "ReduceMin(%a, %b)",
        "int64[1] = [9223372036854775807]");
    two(20, "bool[0] = []", "int64[1] = [0]", "ReduceMin(%a, %b)", "bool[1] = [1]");
    no(20, i, axis, "ReduceMean(%a, %b)", "mean of no integers");
    no(13, "float32[2] = [1, 2]", NULL, "ReduceMean(%a) {axes=[1]}", "axis 1");
    no(13, "float32[2] = [1, 2]", NULL, "ReduceMean(%a) {axes=[0, -1]}", "twice");
}

static void positions(void **state)
{
    (void)state;
    const char *x = "float32[2,3] = [1, 3, 3, 2, 0, 0]";
    one(13, x, "ArgMax(%a) {axis=1}", "int64[2,1] = [1, 0]");
    one(13, x, "ArgMax(%a) {axis=-1, keepdims=0, select_last_index=1}", "int64[2] = [2, 0]");
    one(13, x, "ArgMin(%a) {axis=1, keepdims=0}", "int64[2] = [0, 1]");
    one(13, x, "ArgMin(%a) {axis=1, select_last_index=1}", "int64[2,1] = [0, 2]");
    one(13, x, "ArgMax(%a)", "int64[1,3] = [1, 0, 0]");
    one(13, "uint64[2] = [1, 0xffffffffffffffff]", "ArgMax(%a)", "int64[1] = [1]");
    no(13, "float32[2,0] = []", NULL, "ArgMax(%a) {axis=1}", "no elements");
    one(13, "float32[0,2] = []", "ArgMax(%a) {axis=1}", "int64[0,1] = []");
    no(13, x, NULL, "ArgMax(%a) {axis=2}", "axis 2");
}

static void softmax_and_relatives(void **state)
{
    (void)state;
    const char *x = "float32[1,2,2] = [0, 1, 2, 1000]";
    one(13, "float32[2,2] = [0, 1, 2, 1000]", "Softmax(%a)",
        "float32[2,2] = [0.2689414, 0.7310586, 0, 1]");
    one(13, x, "Softmax(%a) {axis=1}", "float32[1,2,2] = [0.1192029, 0, 0.8807971, 1]");
    one(11, "float32[1,2,2] = [0, 0, 0, 0]", "Softmax(%a)",
        "float32[1,2,2] = [0.25, 0.25, 0.25, 0.25]");
    one(11, "float32[1,2,2] = [0, 0, 0, 0]", "Softmax(%a) {axis=2}",
        "float32[1,2,2] = [0.5, 0.5, 0.5, 0.5]");
    one(13, x, "LogSoftmax(%a) {axis=1}", "float32[1,2,2] = [-2.126928, -999, -0.1269280, 0]");
    one(13, "float32[2,3] = [1, 3, 3, 2, 0, 0]", "Hardmax(%a)",
        "float32[2,3] = [0, 1, 0, 1, 0, 0]");
    one(11, x, "Hardmax(%a)", "float32[1,2,2] = [0, 0, 0, 1]");
    one(13, "float32[2,0] = []", "Softmax(%a)", "float32[2,0] = []");
    one(13, "float32[] = [3]", "Softmax(%a)", "float32[] = [1]");
    no(13, x, NULL, "Softmax(%a) {axis=3}", "axis 3");
    one(1, "float32[2,2] = [3, 4, 0, 0]", "LpNormalization(%a)", "float32[2,2] = [0.6, 0.8, 0, 0]");
    one(1, "float32[2,2] = [3, -4, 1, 0]", "LpNormalization(%a) {axis=0, p=1}",
        "float32[2,2] = [0.75, -1, 0.25, 0]");
    no(1, x, NULL, "LpNormalization(%a) {p=3}", "p = 3");
}

static void cumulative_sums(void **state)
{
    (void)state;
    const char *x = "int32[2,3] = [1, 2, 3, 4, 5, 6]", *axis = "int64[] = [1]";
    two(14, x, axis, "CumSum(%a, %b)", "int32[2,3] = [1, 3, 6, 4, 9, 15]");
    two(14, x, axis, "CumSum(%a, %b) {exclusive=1}", "int32[2,3] = [0, 1, 3, 0, 4, 9]");
    two(14, x, axis, "CumSum(%a, %b) {reverse=1}", "int32[2,3] = [6, 5, 3, 15, 11, 6]");
    two(14, x, axis, "CumSum(%a, %b) {reverse=1, exclusive=1}", "int32[2,3] = [5, 3, 0, 11, 6, 0]");
    two(14, x, "int32[1] = [-2]", "CumSum(%a, %b)", "int32[2,3] = [1, 2, 3, 5, 7, 9]");
    two(14, "float64[2] = [0.5, 0.25]", "int32[] = [0]", "CumSum(%a, %b)",
        "float64[2] = [0.5, 0.75]");
    no(14, x, "int64[] = [2]", "CumSum(%a, %b)", "axis 2");
    no(14, x, "int64[2] = [0, 1]", "CumSum(%a, %b)", "not one number");
}

static void top_k(const char *x, const char *k, const char *attrs, const char *values,
                  const char *indices)
{
    char text[2000];
    snprintf(text, sizeof text,
             "init %%x : %s\ninit %%k : %s\n%%y, %%i = TopK(%%x, %%k)%s\ninit %%wy : %s\ninit %%wi "
             ": %s\n"
             "output %%y\noutput %%wy\noutput %%i\noutput %%wi",
             x, k, attrs, values, indices);
    right(11, text);
}

static void largest_and_smallest(void **state)
{
    (void)state;
    const char *x = "float32[2,4] = [1, 3, 3, -0.0, 2, 0, inf, 0]", *two_of = "int64[1] = [2]";
    top_k(x, two_of, "", "float32[2,2] = [3, 3, inf, 2]", "int64[2,2] = [1, 2, 2, 0]");
    top_k(x, two_of, "{largest=0}", "float32[2,2] = [-0.0, 1, 0, 0]", "int64[2,2] = [3, 0, 1, 3]");
    top_k("int64[3,1] = [-9223372036854775808, 5, 9223372036854775807]", two_of, "{axis=0}",
          "int64[2,1] = [9223372036854775807, 5]", "int64[2,1] = [2, 1]");
    top_k("uint64[2] = [0xffffffffffffffff, 5]", two_of, "{largest=0, sorted=0}",
          "uint64[2] = [5, 0xffffffffffffffff]", "int64[2] = [1, 0]");
    top_k("float32[3] = [-1, -2, nan]", "int64[1] = [3]", "", "float32[3] = [nan, -1, -2]",
          "int64[3] = [2, 0, 1]");
    top_k("float32[2] = [-0.0, 0.0]", "int64[1] = [1]", "", "float32[1] = [-0.0]",
          "int64[1] = [0]");
    top_k(x, "int64[1] = [0]", "", "float32[2,0] = []", "int64[2,0] = []");
    one(1, "float32[3] = [1, 3, 2]", "TopK(%a) {k=2}", "float32[2] = [3, 2]");
    no(11, x, "int64[1] = [5]", "TopK(%a, %b)", "5 elements of an axis of size 4");
    no(11, x, "int64[1] = [-1]", "TopK(%a, %b)", "-1 elements");
    no(11, "float32[] = [1]", "int64[1] = [1]", "TopK(%a, %b)", "scalar");
}

/* ---- normalisations ---- */

static void layers(void **state)
{
    (void)state;
    right(17, "init %x : float32[2,2] = [1, 3, 5, 9]\ninit %s : float32[2] = [1, 2]\ninit %b : "
              "float32[2] = [0, 10]\n"
              "%y, %m, %i = LayerNormalization(%x, %s, %b) {epsilon=0.0}\n"
              "init %wy : float32[2,2] = [-1, 12, -1, 12]\ninit %wm : float32[2,1] = [2, 7]\ninit "
              "%wi : float32[2,1] = [1, 0.5]\n"
              "output %y\noutput %wy\noutput %m\noutput %wm\noutput %i\noutput %wi");
    right(17, "init %x : float16[1,2,2] = [1, 3, 1, 3]\ninit %s : float16[1,2,1] = [1, 2]\n"
              "%y, %m = LayerNormalization(%x, %s) {axis=1, epsilon=3.0}\n"
              "init %wy : float16[1,2,2] = [-0.5, 0.5, -1, 1]\ninit %wm : float32[1,1,1] = [2]\n"
              "output %y\noutput %wy\noutput %m\noutput %wm");
    right(17, "init %x : float32[2,0] = []\ninit %s : float32[1] = [1]\n%y = "
              "LayerNormalization(%x, %s)\noutput %y\noutput %x");
    two(23, "float32[2,2] = [1, 7, 0, 0]", "float32[2] = [1, 2]",
        "RMSNormalization(%a, %b) {epsilon=0.0001}", "float32[2,2] = [0.1999996, 2.7999944, 0, 0]");
    two(23, "float16[1,2] = [1, 7]", "float32[2] = [1, 2]",
        "RMSNormalization(%a, %b) {epsilon=0.0}", "float32[1,2] = [0.2, 2.8]");
    no(17, "float32[2,2] = [1, 7, 0, 0]", "float32[3] = [1, 2, 3]", "LayerNormalization(%a, %b)",
       "do not agree");
    no(17, "float32[2,2] = [1, 7, 0, 0]", "float32[2] = [1, 2]",
       "LayerNormalization(%a, %b) {stash_type=7}", "stash_type");
}

static void instances_and_groups(void **state)
{
    (void)state;
    three(6, "float32[1,2,2] = [1, 3, 5, 9]", "float32[2] = [1, 2]", "float32[2] = [0, 10]",
          "InstanceNormalization(%a, %b, %c) {epsilon=0.0}", "float32[1,2,2] = [-1, 1, 8, 12]");
    const char *x = "float32[1,4,1] = [1, 3, 5, 9]";
    three(21, x, "float32[4] = [1, 2, 3, 4]", "float32[4] = [0, 0, 0, 1]",
          "GroupNormalization(%a, %b, %c) {num_groups=2, epsilon=0.0}",
          "float32[1,4,1] = [-1, 2, -3, 5]");
    three(18, x, "float32[2] = [1, 2]", "float32[2] = [0, 10]",
          "GroupNormalization(%a, %b, %c) {num_groups=2, epsilon=0.0}",
          "float32[1,4,1] = [-1, 1, 8, 12]");
    one(13, "float32[2,1,1,2] = [1, 3, 1, 3]", "MeanVarianceNormalization(%a)",
        "float32[2,1,1,2] = [-1, 1, -1, 1]");
    one(13, "float32[2,2] = [1, 2, 3, 6]", "MeanVarianceNormalization(%a) {axes=[0]}",
        "float32[2,2] = [-1, -1, 1, 1]");
    no(13, "float32[2,2] = [1, 2, 3, 6]", NULL, "MeanVarianceNormalization(%a)", "axis 2");
    char text[1000];
    for (int groups = 0; groups <= 3; groups += 3) {
        snprintf(text, sizeof text,
                 "init %%x : %s\ninit %%s : float32[4] = fill 1\n%%y = GroupNormalization(%%x, "
                 "%%s, %%s) {num_groups=%d}\noutput %%y",
                 x, groups);
        refused(21, text, "num_groups");
    }
}

/* ---- strides and axes, against the plainest of loops ---- */

#define RANDOM_RANK 5

typedef struct random_array {
    uint32_t rank;
    int64_t dims[RANDOM_RANK];
    int64_t data[4000];
} random_array;

/* Element at an index of the output, aligned at the end; size 1 stands still. */
static int64_t aligned(const random_array *a, const int64_t *index, uint32_t rank)
{
    int64_t at = 0;
    for (uint32_t d = 0; d < a->rank; d++)
        at = at * a->dims[d] + (a->dims[d] == 1 ? 0 : index[rank - a->rank + d]);
    return a->data[at];
}

static size_t print_array(char *text, size_t size, const char *name, const random_array *a)
{
    size_t at = (size_t)snprintf(text, size, "init %%%s : int64[", name);
    int64_t n = 1;
    for (uint32_t d = 0; d < a->rank; d++) {
        at += (size_t)snprintf(text + at, size - at, "%s%lld", d ? "," : "", (long long)a->dims[d]);
        n *= a->dims[d];
    }
    at += (size_t)snprintf(text + at, size - at, "] = [");
    for (int64_t k = 0; k < n; k++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", k ? "," : "", (long long)a->data[k]);
    return at + (size_t)snprintf(text + at, size - at, "]\n");
}

static bool count_up(int64_t *index, const int64_t *dims, uint32_t rank)
{
    for (uint32_t d = rank; d-- > 0;) {
        if (++index[d] < dims[d]) return true;
        index[d] = 0;
    }
    return false;
}

static void random_broadcasts(void **state)
{
    (void)state;
    uint64_t seed = 20240717;
    print_message("seed %llu\n", (unsigned long long)seed);
    static char text[39000];
    for (int round = 0; round < 200; round++) {
        random_array ops[3], want = {.rank = (uint32_t)(ot_next_random(&seed) % (RANDOM_RANK + 1))};
        int64_t index[RANDOM_RANK] = {0}, n = 0;
        for (uint32_t d = 0; d < want.rank; d++)
            want.dims[d] = 1 + (int64_t)(ot_next_random(&seed) % 4);
        if (want.rank && ot_next_random(&seed) % 8 == 0)
            want.dims[want.rank - 1] = 3 + (int64_t)(ot_next_random(&seed) % 5);
        for (int k = 0; k < 3; k++) { /* the first has the full shape */
            random_array *a = &ops[k];
            a->rank = k ? (uint32_t)(ot_next_random(&seed) % (want.rank + 1)) : want.rank;
            int64_t size = 1;
            for (uint32_t d = 0; d < a->rank; d++) {
                a->dims[d] = k && ot_next_random(&seed) % 2 ? 1
                                                            : want.dims[want.rank - a->rank + d];
                size *= a->dims[d];
            }
            for (int64_t i = 0; i < size; i++) a->data[i] = (int64_t)(ot_next_random(&seed) % 1000);
        }
        do {
            int64_t best = aligned(&ops[0], index, want.rank);
            for (int k = 1; k < 3; k++) best = ot_max(best, aligned(&ops[k], index, want.rank));
            want.data[n++] = best;
        } while (count_up(index, want.dims, want.rank));
        size_t at = 0;
        const char *names[] = {"a", "b", "c"};
        for (int k = 0; k < 3; k++)
            at += print_array(text + at, sizeof text - at, names[k], &ops[k]);
        at += print_array(text + at, sizeof text - at, "w", &want);
        snprintf(text + at, sizeof text - at, "%%y = Max(%%c, %%a, %%b)\noutput %%y\noutput %%w");
        right(13, text);
    }
}

static void random_reductions(void **state)
{
    (void)state;
    uint64_t seed = 20240718;
    print_message("seed %llu\n", (unsigned long long)seed);
    static char text[39000];
    for (int round = 0; round < 200; round++) {
        random_array a = {.rank = 1 + (uint32_t)(ot_next_random(&seed) % RANDOM_RANK)},
                     want = {.rank = a.rank};
        bool reduced[RANDOM_RANK];
        int64_t index[RANDOM_RANK] = {0}, n = 0;
        char axes[100] = "";
        for (uint32_t d = 0; d < a.rank; d++) {
            a.dims[d] = 1 + (int64_t)(ot_next_random(&seed) % 4);
            reduced[d] = ot_next_random(&seed) % 2;
            want.dims[d] = reduced[d] ? 1 : a.dims[d];
            if (reduced[d])
                snprintf(axes + strlen(axes), sizeof axes - strlen(axes), "%s%d",
                         axes[0] ? "," : "", (int)d);
        }
        do {
            int64_t to = 0;
            for (uint32_t d = 0; d < a.rank; d++)
                to = to * want.dims[d] + (reduced[d] ? 0 : index[d]);
            a.data[n] = (int64_t)(ot_next_random(&seed) % 2000) - 1000;
            want.data[to] += a.data[n++];
        } while (count_up(index, a.dims, a.rank));
        size_t at = print_array(text, sizeof text, "a", &a);
        at += print_array(text + at, sizeof text - at, "w", &want);
        snprintf(text + at, sizeof text - at,
                 "init %%axes : int64[%d] = [%s]\n%%y = ReduceSum(%%a, %%axes) "
                 "{noop_with_empty_axes=1}\noutput %%y\noutput %%w",
                 axes[0] ? (int)(strlen(axes) + 1) / 2 : 0, axes);
        right(13, text);
    }
}

/* Rows are longer than one buffer. */
static void long_rows(void **state)
{
    (void)state;
    right(13, "init %x : float32[2,1000] = random 3\ninit %r : float32[1000,2] = random 4\n"
              "%a = Add(%x, %x)\n%b = Sub(%a, %x)\noutput %b\noutput %x");
    right(13, "init %x : float64[3,700] = fill 0.5\n%s = ReduceSum(%x) {noop_with_empty_axes=0}\n"
              "init %w : float64[1,1] = [1050]\noutput %s\noutput %w");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions),
        cmocka_unit_test(reductions_of_integers),
        cmocka_unit_test(reductions_of_nothing),
        cmocka_unit_test(positions),
        cmocka_unit_test(softmax_and_relatives),
        cmocka_unit_test(cumulative_sums),
        cmocka_unit_test(largest_and_smallest),
        cmocka_unit_test(layers),
        cmocka_unit_test(instances_and_groups),
        cmocka_unit_test(random_broadcasts),
        cmocka_unit_test(random_reductions),
        cmocka_unit_test(long_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
