/* Activations in blocks of channels: which values lie so, by hand and in random networks, whose
 * results are those of the engine's reference kernels, on OpenCL, Vulkan and CUDA (a stub that
 * computes on the host, where there is none).
 *
 * OT_SEED=7: that seed; OT_SEEDS=50: so many. OT_DEVICE=vulkan: on that alone.
 */
#include "cuda_rig.h"
#include "engine_laid_rig.h"

static const ot_dg_layout BLOCKED = {.together = 1, .sector = 64, .block = 8};

/* ---- by hand ---- */

/* Networks of which so many values lie in blocks, of so many bytes. */
typedef struct blocked_nets {
    laid_nets nets;
    uint32_t values;
    int64_t bytes;
} blocked_nets;

static void add_blocked(blocked_nets *x, const char *text, uint32_t values, int64_t bytes)
{
    add_net(&x->nets, text);
    x->values += values;
    x->bytes += bytes;
}

/* Those do, and no others; results are right in any case. */
static void check_blocked(const blocked_nets *x)
{
    laid_want want;
    ot_device_figures f;
    want_of(&want, x->nets.text, 3);
    same_laid(&want, BLOCKED, &f);
    if (f.layouts.n_blocked != x->values || f.layouts.blocked_bytes < x->bytes ||
        f.layouts.blocked_bytes >= x->bytes + 128 * (x->values + 1))
        fail_msg("%u values of %lld bytes in blocks\n%s", f.layouts.n_blocked,
                 (long long)f.layouts.blocked_bytes, x->nets.text);
    assert_true(f.layouts.transactions < f.layouts.transactions_plain);
    want_done(&want);
}

#define INPUT  "input %x : float32[1,3,9,13]\n"
#define FIRST  "init %w : float32[16,3,3,3] = random 1\n%a = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n"
#define SECOND "init %v : float32[16,16,3,3] = random 2\n"
#define MAP    (16 * 9 * 13 * 4) /* bytes of %a */

static void chains_lie_in_blocks(void **state)
{
    NEEDS_DEVICE(state);
    static blocked_nets x;
    x = (blocked_nets){.values = 0};
    /* between convolutions, not at the ends */
    add_blocked(&x, INPUT FIRST SECOND "%y = Conv(%a, %v)\noutput %y\n", 1, MAP);
    /* what both parts of a residual add */
    add_blocked(
        &x,
        INPUT FIRST SECOND
        "%b = Conv(%a, %v) {pads=[1, 1, 1, 1]}\n%c = Add(%a, %b)\n%y = Conv(%c, %v)\noutput %y\n",
        2, 2 * MAP);
    /* depthwise, eight products at once; pools and what makes pictures larger hand blocks on */
    add_blocked(
        &x,
        INPUT FIRST SECOND
        "init %d : float32[16,1,3,3] = random 3\n%b = Conv(%a, %d) {group=16, pads=[1, 1, 1, 1]}\n"
        "%y = Conv(%b, %v)\noutput %y\n",
        2, 2 * MAP);
    add_blocked(
        &x,
        INPUT FIRST SECOND
        "%m = MaxPool(%a) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n%y = Conv(%m, %v)\noutput %y\n",
        2, 2 * MAP);
    /* a Concat of whole blocks */
    add_blocked(
        &x,
        INPUT FIRST
        "init %v : float32[8,32,1,1] = random 2\n%b = Sigmoid(%a)\n%t = Concat(%a, %b) {axis=1}\n"
        "%y = Conv(%t, %v)\noutput %y\n",
        3, 4 * MAP);
    /* batches, rows of one pixel, a volume */
    add_blocked(&x,
                "input %x : float32[2,8,4,1]\ninit %w : float32[8,8,3,1] = random 1\n%a = "
                "Conv(%x, %w) {pads=[1, 0, 1, 0]}\n"
                "%y = Conv(%a, %w)\noutput %y\n",
                1, 2 * 8 * 4 * 4);
    add_blocked(&x,
                "input %x : float32[1,2,4,5,6]\ninit %w : float32[8,2,3,3,3] = random 1\n"
                "init %v : float32[3,8,3,3,3] = random 2\n%a = Conv(%x, %w) {pads=[1, 1, 1, 1, "
                "1, 1]}\n%y = Conv(%a, %v)\noutput %y\n",
                1, 8 * 4 * 5 * 6 * 4);
    check_blocked(&x);
}

static void others_see_the_models_order(void **state)
{
    NEEDS_DEVICE(state);
    static blocked_nets x;
    x = (blocked_nets){.values = 0};
    /* what the graph hands out, what is no whole block, what nobody is faster with */
    add_blocked(&x, INPUT FIRST SECOND "%y = Conv(%a, %v)\noutput %y\noutput %a\n", 0, 0);
    add_blocked(&x,
                INPUT "init %w : float32[12,3,3,3] = random 1\n%a = Conv(%x, %w)\ninit %v : "
                      "float32[8,12,1,1] = random 2\n"
                      "%y = Conv(%a, %v)\noutput %y\n",
                0, 0);
    add_blocked(
        &x, INPUT FIRST "%m = MaxPool(%a) {kernel_shape=[2, 2]}\n%y = Tanh(%m)\noutput %y\n", 0, 0);
    /* a Reshape, a group of four channels, the host, a loop */
    add_blocked(&x,
                INPUT FIRST SECOND
                "init %s : int64[4] = [1, 16, 13, 9]\n%r = Reshape(%a, %s)\n%y = Conv(%a, %v)\n"
                "%z = Conv(%r, %v)\noutput %y\noutput %z\n",
                0, 0);
    add_blocked(&x,
                INPUT FIRST
                "init %v : float32[16,4,1,1] = random 2\n%y = Conv(%a, %v) {group=4}\noutput %y\n",
                0, 0);
    add_blocked(
        &x,
        INPUT FIRST SECOND
        "init %k : int64[1] = [3]\n%t, _ = TopK(%a, %k)\n%y = Conv(%a, %v)\noutput %y\noutput %t\n",
        0, 0);
    /* what the host makes; behind it, blocks again */
    add_blocked(
        &x,
        INPUT FIRST SECOND
        "init %k : int64[1] = [9]\n%t, _ = TopK(%a, %k)\n%b = Conv(%t, %v)\n%y = Conv(%b, %v)\n"
        "output %y\n",
        1, 16 * 7 * 7 * 4);
    check_blocked(&x);
}

/* ---- random networks ---- */

typedef struct network {
    char *text;
    size_t size, used;
    uint64_t *state;
    int n, c, h, w;    /* of the last value */
    int values, inits; /* so many were named: %v0, %v1 ...; %w0 ... */
    int alike[40], n_alike;
} network;

__attribute__((format(printf, 2, 3))) static void put(network *x, const char *f, ...)
{
    va_list args;
    va_start(args, f);
    x->used += (size_t)vsnprintf(x->text + x->used, x->size - x->used, f, args);
    va_end(args);
    assert_true(x->used < x->size);
}

/* A new last value, of this shape: those of its shape before it can be added to it. */
static void named(network *x, int c, int h, int w)
{
    if (c != x->c || h != x->h || w != x->w) x->n_alike = 0;
    x->c = c;
    x->h = h;
    x->w = w;
    x->alike[x->n_alike++] = ++x->values;
}

static void put_conv(network *x)
{
    static const int maps[] = {8, 16, 24, 16, 8, 12, 3, 5};
    const bool depthwise = pick(x->state, 0, 3) == 0;
    const int out = depthwise ? x->c : maps[pick(x->state, 0, 7)], k = x->h < 3 || x->w < 3   ? 1
                                                                       : pick(x->state, 0, 1) ? 3
                                                                                              : 1;
    const int stride = x->h > 8 && x->w > 8 ? pick(x->state, 1, 2) : 1,
              pad = k == 3 ? pick(x->state, 0, 1) : 0;
    const bool bias = pick(x->state, 0, 1);
    put(x, "init %%w%d : float32[%d,%d,%d,%d] = random %d * 0.3\n", x->inits, out,
        depthwise ? 1 : x->c, k, k, x->inits + 1);
    put(x, "init %%b%d : float32[%d] = random %d\n", x->inits, out, x->inits + 100);
    put(x, "%%v%d = Conv(%%v%d, %%w%d", x->values + 1, x->values, x->inits);
    if (bias) put(x, ", %%b%d", x->inits);
    put(x, ") {group=%d, strides=[%d, %d], pads=[%d, %d, %d, %d]}\n", depthwise ? x->c : 1, stride,
        stride, pad, pad, pad, pad);
    x->inits++;
    named(x, out, (x->h + 2 * pad - k) / stride + 1, (x->w + 2 * pad - k) / stride + 1);
}

static void put_between(network *x)
{
    const int last = x->values, next = last + 1;
    switch (pick(x->state, 0, 8)) {
    case 0:
        put(x, "%%v%d = Relu(%%v%d)\n", next, last);
        named(x, x->c, x->h, x->w);
        return;
    case 1:
        put(x, "%%v%d = Add(%%v%d, %%v%d)\n", next, last,
            x->alike[pick(x->state, 0, x->n_alike - 1)]);
        named(x, x->c, x->h, x->w);
        return;
    case 2: /* a factor of each channel, or of each column */
        put(x, "init %%w%d : float32[%s%d] = random %d\n", x->inits,
            pick(x->state, 0, 1) ? "1," : "", x->w, x->inits + 1);
        put(x, "%%v%d = Mul(%%v%d, %%w%d)\n", next, last, x->inits++);
        named(x, x->c, x->h, x->w);
        return;
    case 3:
        put(x, "init %%w%d : float32[%d,1,1] = random %d\n", x->inits, x->c, x->inits + 1);
        put(x, "%%v%d = PRelu(%%v%d, %%w%d)\n", next, last, x->inits++);
        named(x, x->c, x->h, x->w);
        return;
    case 4:
        if (x->h < 3 || x->w < 3) return;
        put(x, "%%v%d = %sPool(%%v%d) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]}\n",
            next, pick(x->state, 0, 1) ? "Max" : "Average", last);
        named(x, x->c, (x->h - 1) / 2 + 1, (x->w - 1) / 2 + 1);
        return;
    case 5:
        if (x->c > 40) return;
        put(x, "%%v%d = Concat(%%v%d, %%v%d) {axis=1}\n", next, last,
            x->alike[pick(x->state, 0, x->n_alike - 1)]);
        named(x, 2 * x->c, x->h, x->w);
        return;
    case 6:
        if (x->h > 12 || x->w > 24) return;
        put(x, "init %%w%d : float32[4] = [1, 1, 2, 2]\n", x->inits);
        put(x, "%%v%d = Resize(%%v%d, _, %%w%d) {mode=\"%s\"}\n", next, last, x->inits++,
            pick(x->state, 0, 1) ? "nearest" : "linear");
        named(x, x->c, 2 * x->h, 2 * x->w);
        return;
    case 7:
        if (x->c % 2) return;
        put(x, "%%v%d, %%u%d = Split(%%v%d) {axis=1}\n", next, next, last);
        named(x, x->c / 2, x->h, x->w);
        return;
    default: /* weighed by what its channels are in the mean */
        put(x,
            "%%g%d = GlobalAveragePool(%%v%d)\n%%s%d = Sigmoid(%%g%d)\n%%v%d = Mul(%%v%d, %%s%d)\n",
            last, last, last, last, next, last, last);
        named(x, x->c, x->h, x->w);
    }
}

static void put_network(network *x)
{
    x->n = pick(x->state, 1, 2);
    x->c = pick(x->state, 0, 1) ? 3 : 8;
    x->h = pick(x->state, 3, 14);
    x->w = pick(x->state, 1, 30);
    put(x, "input %%v0 : float32[%d,%d,%d,%d]\n", x->n, x->c, x->h, x->w);
    x->alike[x->n_alike++] = 0;
    put_conv(x);
    for (int k = pick(x->state, 2, 5); k > 0; k--) {
        for (int j = pick(x->state, 0, 2); j > 0; j--) put_between(x);
        put_conv(x);
    }
    if (pick(x->state, 0, 1))
        put(x, "init %%shape : int64[2] = [%d, -1]\n%%y = Reshape(%%v%d, %%shape)\noutput %%y\n",
            x->n, x->values);
    else
        put(x, "output %%v%d\n", x->values);
    if (pick(x->state, 0, 2) == 0) put(x, "output %%v%d\n", pick(x->state, 1, x->values - 1));
}

/* As many sums are different only in the order of their terms. */
static void random_networks(void **state)
{
    NEEDS_DEVICE(state);
    const char *many = getenv("OT_SEEDS");
    const unsigned n = many ? (unsigned)atoi(many) : 4;
    uint32_t blocked = 0;
    static laid_nets all;
    char text[8000];
    for (unsigned seed = first_seed; seed < first_seed + n; seed++) {
        uint64_t random = seed * 15485863u;
        laid_want want;
        ot_device_figures f;
        network x = {.text = text, .size = sizeof text, .state = &random};
        put_network(&x);
        add_net(&all, text);
        if (all.n < 4 && seed + 1 < first_seed + n) continue;
        want_of(&want, all.text, random);
        same_laid(&want, BLOCKED, &f);
        assert_int_equal(f.n_host, 0);
        blocked += f.layouts.n_blocked;
        want_done(&want);
        all.used = 0;
        all.n = 0;
    }
    if (!many) assert_true(blocked > n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_lie_in_blocks),
        cmocka_unit_test(others_see_the_models_order),
        cmocka_unit_test(random_networks),
    };
    cuda_load_stub();
    return RUN_ON_EVERY_DEVICE(tests);
}
