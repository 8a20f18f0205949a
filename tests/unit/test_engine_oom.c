/* Running out of memory at every possible place: sessions of fused steps and of tiles, from the
 * text to the second run.
 *
 * The hook lets k allocations succeed and fails all later ones, for k = 0, 1, 2, ... until
 * everything succeeds. Each try must end with OT_E_NOMEM or OT_OK and give all memory back. What
 * oneDNN takes for itself is out of the hook's reach. A session may do without something that only
 * makes it faster: then the run succeeds, and its results are as they were.
 */
#include "engine_check.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic long allowed, live;

static void *failing_hook(void *ptr, size_t old_size, size_t new_size)
{
    if (new_size && atomic_fetch_sub(&allowed, 1) <= 0) return NULL;
    atomic_fetch_add(&live, (long)new_size - (long)(ptr ? old_size : 0));
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* Every kind of fused step: windows, all kinds of convolution, pools, chains, joins, products, a
 * body. */
static const char network[] =
    "input %x : float32[1,16,12,12]\ninit %w1 : float32[16,16,3,3] = random 1 * 0.1\ninit %s : "
    "float32[16] = random 2\n"
    "init %v : float32[16] = fill 0.7\ninit %wd : float32[16,1,3,3] = random 3 * 0.3\ninit %wt : "
    "float32[16,3,4,4] = random 4 * 0.2\n"
    "init %we : float32[16,16,1,1] = random 5 * 0.2\ninit %at : int64[1] = [2]\ninit %to : "
    "int64[1] = [10]\ninit %ax : int64[1] = [3]\n"
    "init %f : float32[] = [0.25]\n"
    "%a = Conv(%x, %w1) {pads=[1, 1, 1, 1]}\n%b = BatchNormalization(%a, %s, %s, %s, %v)\n%c = "
    "Add(%b, %x)\n%d = Relu(%c)\n"
    "%e = Conv(%d, %wd) {group=16, pads=[1, 1, 1, 1]}\n%g = Sigmoid(%e)\n%h = Mul(%e, %g)\n%i = "
    "Slice(%h, %at, %to, %ax)\n"
    "%j = Slice(%d, %at, %to, %ax)\n%k = Concat(%i, %j) {axis=1}\n%m = MaxPool(%k) "
    "{kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
    "%n = GlobalAveragePool(%h)\n%o = Conv(%n, %we)\n%p = HardSigmoid(%o)\n%q = Mul(%h, %p)\n"
    "%t = ConvTranspose(%q, %wt) {strides=[2, 2], pads=[1, 1, 1, 1]}\n%tr = Transpose(%i) "
    "{perm=[0, 1, 3, 2]}\n"
    "%u = MatMul(%i, %tr)\n%z = Mul(%u, %f)\n%sm = Softmax(%z) {axis=-1}\n%big = Tanh(%t)\n"
    "output %m\noutput %sm\noutput %big\n";

/* A region of the engine's form, its tiles run by two workers. */
static const char tiled[] = "input %x : float32[1,16,12,12]\ninit %w : float32[16,16,3,3] = random "
                            "1 * 0.1\ninit %w2 : float32[8,16,1,1] = random 2 * 0.1\n"
                            "%y0 = \"onnx_tile\"::Alloc@1() {shape=[1, 8, 10, 10], dtype=1}\n"
                            "%y = \"onnx_tile\"::While@1(%y0) {count=5, body=graph body {\n  input "
                            "%i : int64[]\n  input %buffer : float32[1,8,10,10]\n"
                            "  outer %x : float32[1,16,12,12]\n  outer %w : float32[16,16,3,3]\n  "
                            "outer %w2 : float32[8,16,1,1]\n"
                            "  %s = \"onnx_tile\"::Slice@1(%x, %i) {axes=[2], sizes=[4], "
                            "starts=[0, 2, 4, 6, 8]}\n  %c = Conv(%s, %w)\n  %r = Relu(%c)\n"
                            "  %d = Conv(%r, %w2)\n  %t = Softmax(%d) {axis=1}\n"
                            "  %next : float32[1,8,10,10] = \"onnx_tile\"::Deslice@1(%t, %buffer, "
                            "%i) {axes=[2], starts=[0, 2, 4, 6, 8]}\n  output %next\n}}\n"
                            "%z = Sigmoid(%y)\noutput %z\n";

/* A Loop whose body has fused steps of its own. */
static const char loop[] =
    "input %x : float32[1,16,12,12]\ninit %n : int64[] = [3]\ninit %w : float32[16,16,3,3] = "
    "random 1 * 0.1\n"
    "%y = Loop(%n, _, %x) {body=graph b {\n  input %i : int64[]\n  input %go : bool[]\n  input %a "
    ": float32[1,16,12,12]\n"
    "  outer %w : float32[16,16,3,3]\n  %c = Conv(%a, %w) {pads=[1, 1, 1, 1]}\n  %d = Sigmoid(%c)\n"
    "  %e : float32[1,16,12,12] = Mul(%d, %a)\n  %again : bool[] = Identity(%go)\n  output "
    "%again\n  output %e\n}}\noutput %y\n";

#define X_ELEMS (16 * 12 * 12)

typedef struct trial {
    const char *text;
    uint32_t threads;
    ot_nd in;
    double sum; /* of all results */
} trial;

static double sum_of(const ot_nd *a)
{
    double sum = 0;
    int64_t n = 0;
    assert_true(ot_nd_elems(a, &n));
    for (int64_t k = 0; k < n; k++) sum += (double)((const float *)a->data)[k];
    return sum;
}

static ot_status run_twice(trial *t, ot_session *s, ot_diag *d)
{
    for (int again = 0; again < 2; again++) {
        ot_nd out[3] = {{0}};
        OT_TRY(ot_session_run(s, &t->in, out, d));
        t->sum = 0;
        for (uint32_t k = 0; k < ot_session_outputs(s); k++) t->sum += sum_of(&out[k]);
    }
    return OT_OK;
}

static ot_status everything(trial *t, ot_diag *d)
{
    ot_model *m = NULL;
    ot_session *s = NULL;
    ot_session_options o = {.threads = t->threads};
    OT_TRY(ot_text_parse(t->text, strlen(t->text), d, &m));
    ot_status st = ot_session_new(m, &o, d, &s);
    if (st == OT_OK) st = run_twice(t, s, d);
    ot_session_free(s);
    ot_model_free(m);
    return st;
}

/* Returns how many allocations the whole takes. */
static long walk(const char *graph, uint32_t threads)
{
    static float x[X_ELEMS];
    static char text[8000];
    trial t = {.text = text, .threads = threads, .in = F32S(x, 1, 16, 12, 12)};
    ot_diag d = {0};
    for (int k = 0; k < X_ELEMS; k++) x[k] = (float)(k % 23) * 0.1f - 1;
    snprintf(text, sizeof text, "model ir 8 opset 17\ngraph main {\n%s\n}\n", graph);
    ot_set_alloc_hook(NULL);
    if (everything(&t, &d) != OT_OK) fail_msg("%s", d.message);
    double want = t.sum;
    ot_set_alloc_hook(failing_hook);
    long k = 0;
    for (;; k++) {
        d = (ot_diag){0};
        allowed = k;
        live = 0;
        ot_status st = everything(&t, &d);
        bool short_of = atomic_load(&allowed) < 0;
        if (live != 0)
            fail_msg("%ld bytes are not given back when allocation %ld fails", (long)live, k);
        if (st == OT_OK && fabs(t.sum - want) > 1e-4 * (1 + fabs(want)))
            fail_msg("allocation %ld fails, and the results change", k);
        if (st == OT_OK && !short_of) break;
        if (st != OT_OK && (st != OT_E_NOMEM || d.status != OT_E_NOMEM))
            fail_msg("allocation %ld fails: status %d, %s", k, st, d.message);
    }
    ot_set_alloc_hook(NULL);
    return k;
}

static void fused_steps(void **state)
{
    (void)state;
    assert_true(walk(network, 1) > 40);
    assert_true(walk(network, 2) > 40);
}

static void tiles(void **state)
{
    (void)state;
    assert_true(walk(tiled, 1) > 20);
    assert_true(walk(tiled, 2) > 20);
}

static void bodies(void **state)
{
    (void)state;
    assert_true(walk(loop, 1) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fused_steps), cmocka_unit_test(tiles),
                                       cmocka_unit_test(bodies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
