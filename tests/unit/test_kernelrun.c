/* The interpreter of kernels: what it computes, on random kernels against an evaluation of their
 * own; what it refuses, line by line. */
#include "kernel_check.h"

#include "tk/interpreter/interpreter.h"

#include <math.h>

/* ---- running a text ---- */

static ot_tk_machine roomy(int64_t ub)
{
    ot_tk_machine t = {0};
    for (int s = 0; s < OT_SCOPE_COUNT; s++) {
        t.scopes[s].bytes = s == OT_SCOPE_GM ? 0 : s == OT_SCOPE_UB ? ub : 1 << 20;
        t.scopes[s].alignment = 4;
    }
    return t;
}

static ot_status run_text(const char *text, const ot_krun_array *in, uint32_t n_in, int64_t ub,
                          ot_diag *d, ot_krun_result **r)
{
    ot_kernel *k = parse(text);
    ot_tk_machine t = roomy(ub);
    ot_mem_plan *p = NULL;
    ot_mem_options o = {.threads = 1};
    ot_krun_request q = {.inputs = in, .n_inputs = n_in, .events = true};
    *r = NULL;
    ot_status s = ot_mem_plan_kernel(k, "k.tk", &t, &o, d, &p);
    if (s == OT_OK) s = ot_krun(k, "k.tk", p, &q, d, r);
    ot_mem_plan_free(p);
    ot_kernel_free(k);
    return s;
}

static float X[64];

static ot_krun_array input_x(void)
{
    for (int i = 0; i < 64; i++) X[i] = (float)(i - 20);
    return (ot_krun_array){.name = "x", .dtype = "f32", .rank = 2, .dims = {8, 8}, .data = X};
}

#define HEAD "kernel k {\n  param x: 8x8 f32 @gm\n  param y: 8x8 f32 @gm\n"

/* ---- what it refuses ---- */

static const struct {
    const char *body, *message;
} REFUSED[] = {
    {"alloc a: 8x8 f32 @ub\nstore y <- a\n",
     "k.tk:5:1: 'a' is read, but nothing has written its byte 0 [unwritten]"},
    {"alloc a: 8x8 f32 @ub\nload a <- x[0:4, 0:8]\nstore y <- a\n",
     "k.tk:6:1: 'a' is read, but nothing has written its byte 128 [unwritten]"},
    {"alloc a: 8x8 f32 @ub\nload a <- y\nstore y <- a\n",
     "k.tk:5:1: 'y' is read, but nothing has written its byte 0 [unwritten]"},
    {"alloc a: 8x8 f32 @ub\nload a <- x\nfor i in 0..2 {\nalloc b: 8x8 f32 @ub\nif (a) {\nload b "
     "<- x\n}\nstore y <- b\nfree b\n}\n",
     NULL},
    {"alloc a: 8x8 f32 @ub\nload a <- x\na = vector.frobnicate(a)\n",
     "k.tk:6:1: run-kernel does not know the operation 'frobnicate' [operation]"},
    {"alloc a: 8x8 f32 @ub\nload a <- x\na = vector.add(a)\n",
     "add takes 2 operands, not 1 [operands]"},
    {"alloc a: 8x8 f32 @ub\nalloc b: 8x4 f32 @ub\nload a <- x\nb = vector.relu(a)\n",
     "k.tk:7:1: relu makes 8x8, but 'b' is 8x4 [shape]"},
    {"alloc a: 8x8 f32 @ub\nalloc b: 3x8 f32 @ub\nalloc c: 8x8 f32 @ub\nload a <- x\nload b <- "
     "x[0:3, 0:8]\nc = vector.add(a, b)\n",
     "do not fit each other: 8 and 3 elements along an axis [broadcast]"},
    {"alloc a: 8x8 f32 @ub\nalloc b: 8x1 f32 @ub\nload a <- x\nb = vector.reduce_sum(a, axis=2)\n",
     "axis is from -2 to 1, for 'a' has 2 axes [axis]"},
    {"alloc a: 8x8 f32 @ub\nload a <- x\na = cube.matmul(a, a)\n",
     "k.tk:6:1: 'a' and 'a' share bytes, and matmul reads one while it writes the other [overlap]"},
    {"alloc a: 8x8 f32 @ub\nload a <- x\nsubview s = a[0:4, 0:8]\nsubview t = a[2:6, 0:8]\nt = "
     "vector.relu(s)\n",
     "share bytes, and relu reads one while it writes the other [overlap]"},
    {"alloc a: 8x8 f32 @ub\nload a <- x\nif (?) {\n}\n",
     "k.tk:6:1: '?' cannot be run: nobody knows which way to go [unknown-condition]"},
    {"for i in 0..? {\n}\n", "k.tk:4:1: '?' cannot be run: nobody knows how often [unknown-trips]"},
    {"alloc a: 8x8 f32 @ub\nload a <- x\nfor i in 0..6 {\nsubview s = a[2*i:2*i+2, 0:8]\nstore "
     "y[0:2, 0:8] <- s\n}\n",
     "k.tk:8:1: the subview 's' leaves 'a' in this iteration: [8:10] of 8 in axis 0 "
     "[subview-bounds]"},
    {"alloc a: 8x8 f4e2m1 @ub\nstore y <- a\n",
     "'a' is of a type that run-kernel does not compute in [run-type]"},
    /* streams */
    {"alloc a: 8x8 f32 @ub\nalloc b: 8x8 f32 @ub\nload a <- x stream=s\nb = vector.relu(a)\nwait "
     "s\nstore y <- b\n",
     "k.tk:7:1: race: the kernel reads 'a' here, and nothing orders that after line 6, where s "
     "writes 'a' in the same bytes [race]"},
    {"alloc a: 8x8 f32 @ub\nload a <- x\nstore y <- a stream=s\na = vector.fill(value=1)\nwait s\n",
     "k.tk:7:1: race: the kernel writes 'a' here, and nothing orders that after line 6, where s "
     "reads 'a' in the same bytes [race]"},
    {"alloc a: 8x8 f32 @ub\nload a <- x stream=s\nstore y <- a stream=t\n",
     "race: t reads 'a' here, and nothing orders that after line 5, where s writes 'a'"},
    {"alloc a: 8x8 f32 @ub\nload a <- x stream=s\nload a <- x stream=s\nwait s keep=1\nstore y <- "
     "a\n",
     "k.tk:8:1: race: the kernel reads 'a'"},
    {"alloc a: 8x8 f32 @ub\nload a <- x stream=s\nfence\nstore y <- a\n", NULL},
    /* parallel iterations */
    {"parallel for i in 0..4 {\nalloc a: 2x8 f32 @ub\nload a <- x[i:i+2, 0:8]\nstore y[i:i+2, 0:8] "
     "<- a\n}\n",
     "k.tk:7:1: race: 'y' is written here, and 'y' in the same bytes is written in line 7 by "
     "another iteration of the parallel loop [race-parallel]"},
    {"parallel for i in 0..8 step 2 {\nalloc a: 2x8 f32 @ub\nload a <- x[i:i+2, 0:8]\nstore "
     "y[i:i+2, 0:8] <- a\n}\n",
     NULL},
    /* barriers */
    {"barrier b arrive=2\narrive b\nwait b\n",
     "k.tk:6:1: 'b' never opens here: it takes 2 arrivals, and in this phase there are 1 "
     "[barrier-deadlock]"},
    {"barrier b arrive=2\nfor i in 0..3 {\narrive b\narrive b\nwait b\n}\n", NULL},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        char text[1000];
        ot_diag d = {0};
        ot_krun_result *r;
        ot_krun_array x = input_x();
        snprintf(text, sizeof text, HEAD "%s}\n", REFUSED[i].body);
        ot_status s = run_text(text, &x, 1, 1 << 20, &d, &r);
        ot_krun_free(r);
        if (!REFUSED[i].message && s != OT_OK) fail_msg("%s\n%s", d.message, text);
        if (!REFUSED[i].message) continue;
        if (s != OT_E_INPUT || !strstr(d.message, REFUSED[i].message))
            fail_msg("'%s', not '%s' in\n%s", d.message, REFUSED[i].message, text);
    }
}

/* With sync=explicit only barriers, fences and streams order pipes. */
static void orders_pipes(void **state)
{
    (void)state;
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"load a <- x\nb = vector.relu(a)\n", "k.tk:7:1: race: vector reads 'a' here, and nothing "
                                              "orders that after line 6, where dma_in writes 'a'"},
        {"load a <- x\narrive.dma_in f\nwait.vector f\nb = vector.relu(a)\narrive.vector "
         "f\nwait.dma_out f\nwait.dma_out f\nstore y <- b\n",
         NULL},
        {"load a <- x\narrive.dma_in f\nwait.vector f\nb = vector.relu(a)\nstore y <- b\n",
         "k.tk:10:1: race: dma_out reads 'b' here, and nothing orders that after line"},
        {"load a <- x\nfence\nb = vector.relu(a)\nload a <- x\n",
         "k.tk:9:1: race: dma_in writes 'a' here, and nothing orders that after line 8, where "
         "vector reads 'a'"},
        {"load a <- x\nfence\nb = vector.relu(a)\nfence\nstore y <- b\nload a <- x\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1000];
        ot_diag d = {0};
        ot_krun_result *r;
        ot_krun_array x = input_x();
        snprintf(text, sizeof text,
                 "kernel k sync=explicit { param x: 8x8 f32 @gm\nparam y: 8x8 f32 @gm\nbarrier f "
                 "arrive=1\nalloc a: 8x8 f32 @ub\nalloc b: 8x8 f32 @ub\n%s}\n",
                 cases[i].body);
        ot_status s = run_text(text, &x, 1, 1 << 20, &d, &r);
        ot_krun_free(r);
        if (!cases[i].message ? s != OT_OK
                              : s != OT_E_INPUT || !strstr(d.message, cases[i].message))
            fail_msg("'%s', not '%s' in\n%s", d.message, cases[i].message ? cases[i].message : "",
                     text);
    }
}

/* A buffer whose transfer is still under way keeps its memory: with room for one and a half
 * buffers nothing else may go there. */
static void transfers_keep_memory(void **state)
{
    (void)state;
    const char *text = HEAD "  alloc a: 8x8 f32 @ub\n  load a <- x\n  store y <- a stream=s\n  "
                            "alloc b: 8x8 f32 @ub\n  load b <- x\n"
                            "  b = vector.relu(b)\n  wait s\n  store y <- b\n}\n";
    const char *waits = HEAD "  alloc a: 8x8 f32 @ub\n  load a <- x\n  store y <- a stream=s\n  "
                             "wait s\n  alloc b: 8x8 f32 @ub\n  load b <- x\n"
                             "  b = vector.relu(b)\n  store y <- b\n}\n";
    ot_diag d = {0}, e = {0};
    ot_krun_result *r;
    ot_krun_array x = input_x();
    assert_int_equal(run_text(text, &x, 1, 384, &d, &r), OT_E_BUDGET);
    if (run_text(waits, &x, 1, 384, &e, &r) != OT_OK) fail_msg("%s", e.message);
    assert_int_equal(r->scopes[0].height, 256);
    assert_int_equal(r->scopes[0].peak, 512);
    assert_int_equal(r->scopes[0].allocated, 512);
    assert_int_equal(r->n_leaks, 2);
    assert_int_equal(r->n_outputs, 1);
    assert_int_equal(r->unwritten[0], 0);
    ot_krun_free(r);
}

/* ---- random kernels ---- */

#define N_OPS 14 /* of a body */

typedef struct step {
    int op;        /* into OPS */
    int in[2], to; /* buffers */
    int fresh;     /* `to` is allocated here */
} step;

static const struct {
    const char *text; /* of the call, with %s for operands */
    int n_in;
} OPS[] = {
    {"vector.relu(%s)", 1},      {"vector.add(%s, %s)", 2},  {"vector.sub(%s, %s)", 2},
    {"vector.mul(%s, %s)", 2},   {"vector.max(%s, %s)", 2},  {"vector.muls(%s, value=0.5)", 1},
    {"vector.transpose(%s)", 1}, {"cube.matmul(%s, %s)", 2}, {"vector.neg(%s)", 1}};
enum { RELU, ADD, SUB, MUL, MAX, HALF, TURN, PRODUCT, NEG, N_KINDS };

typedef struct program {
    step steps[N_OPS];
    int n_steps, n_buffers, trips;
    bool streams, multi;
    int carries; /* buffer whose value is added up over the iterations; -1: none */
} program;

static program random_program(void)
{
    program p = {.n_buffers = 2,
                 .trips = 1 + (int)below(4),
                 .streams = below(2),
                 .multi = below(2),
                 .carries = below(2) ? 0 : -1};
    p.n_steps = 3 + (int)below(N_OPS - 3);
    for (int s = 0; s < p.n_steps; s++) {
        step *x = &p.steps[s];
        x->op = (int)below(N_KINDS);
        for (int k = 0; k < 2; k++) x->in[k] = (int)below((uint32_t)p.n_buffers);
        bool in_place = x->op != TURN && x->op != PRODUCT;
        x->fresh = below(3) > 0 || !in_place;
        x->to = x->fresh ? p.n_buffers++ : 2 + (int)below((uint32_t)p.n_buffers - 1);
        if (x->to >= p.n_buffers) x->fresh = 1, x->to = p.n_buffers++;
    }
    if (p.carries >= 0) p.carries = (int)below((uint32_t)p.n_buffers);
    return p;
}

/* Buffers 0 and 1 are loaded from x and w, the last is stored. */
static char *text_of(const program *p)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    fprintf(f,
            "kernel k {\n  param x: %dx4x4 f32 @gm\n  param w: 4x4 f32 @gm\n  param y: %dx4x4 f32 "
            "@gm\n  param z: 4x4 f32 @gm\n",
            p->trips, p->trips);
    if (p->carries >= 0)
        fprintf(f,
                "  alloc zero: 4x4 f32 @ub\n  zero = vector.fill()\n  total = for i in 0..%d carry "
                "(sum = zero) {\n",
                p->trips);
    else
        fprintf(f, "  for i in 0..%d {\n", p->trips);
    const char *multi = p->multi ? " multi=2" : "";
    fprintf(f,
            "  alloc b0: 4x4 f32 @ub%s\n  alloc b1: 4x4 f32 @ub\n  load b0 <- x[i:i+1, 0:4, "
            "0:4]%s\n  load b1 <- w%s\n%s",
            multi, p->streams ? " stream=in1" : "", p->streams ? " stream=in1" : "",
            p->streams ? "  wait in1\n" : "");
    for (int s = 0; s < p->n_steps; s++) {
        const step *x = &p->steps[s];
        char a[8], b[8];
        snprintf(a, sizeof a, "b%d", x->in[0]);
        snprintf(b, sizeof b, "b%d", x->in[1]);
        if (x->fresh) fprintf(f, "  alloc b%d: 4x4 f32 @ub\n", x->to);
        fprintf(f, "  b%d = ", x->to);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        fprintf(f, OPS[x->op].text, a, b);
#pragma GCC diagnostic pop
        fputc('\n', f);
    }
    fprintf(f, "  store y[i:i+1, 0:4, 0:4] <- b%d%s\n", p->n_buffers - 1,
            p->streams ? " stream=out" : "");
    if (p->streams) fputs("  wait out\n", f);
    if (p->carries >= 0)
        fprintf(f, "  alloc next: 4x4 f32 @ub\n  next = vector.add(sum, b%d)\n  yield (next)\n",
                p->carries);
    fprintf(f, "  }\n%s%s}\n", p->streams ? "  wait out\n" : "",
            p->carries >= 0 ? "  store z <- total\n" : "");
    fclose(f);
    return text;
}

/* The same program on arrays of its own. */
static void evaluate(const program *p, const float *x, const float *w, float *y, float *z)
{
    static float b[N_OPS + 3][16];
    memset(z, 0, 16 * sizeof *z);
    for (int i = 0; i < p->trips; i++) {
        memcpy(b[0], x + 16 * i, sizeof b[0]);
        memcpy(b[1], w, sizeof b[1]);
        for (int s = 0; s < p->n_steps; s++) {
            const step *t = &p->steps[s];
            float r[16];
            const float *u = b[t->in[0]], *v = b[t->in[1]];
            for (int e = 0; e < 16; e++) {
                float sum = 0;
                for (int k = 0; k < 4; k++) sum += u[e / 4 * 4 + k] * v[k * 4 + e % 4];
                const float results[] = {[RELU] = u[e] < 0 ? 0 : u[e],
                                         [ADD] = u[e] + v[e],
                                         [SUB] = u[e] - v[e],
                                         [MUL] = u[e] * v[e],
                                         [MAX] = u[e] > v[e] ? u[e] : v[e],
                                         [HALF] = u[e] * 0.5f,
                                         [TURN] = u[e % 4 * 4 + e / 4],
                                         [PRODUCT] = sum,
                                         [NEG] = -u[e]};
                r[e] = results[t->op];
            }
            memcpy(b[t->to], r, sizeof r);
        }
        memcpy(y + 16 * i, b[p->n_buffers - 1], sizeof b[0]);
        for (int e = 0; e < 16 && p->carries >= 0; e++) z[e] += b[p->carries][e];
    }
}

static void same(const char *name, const float *want, const ot_krun_array *got, uint32_t n,
                 const char *text)
{
    const float *v = got->data;
    assert_string_equal(got->name, name);
    for (uint32_t i = 0; i < n; i++)
        if (v[i] != want[i] && !(isnan(v[i]) && isnan(want[i])))
            fail_msg("%s[%u] is %g, not %g in\n%s", name, i, (double)v[i], (double)want[i], text);
}

/* In plenty of memory, and in the least that a plan finds: the same numbers, bit by bit. */
static void random_kernels(void **state)
{
    (void)state;
    seed_from_environment();
    uint32_t shared = 0;
    for (int round = 0; round < 1500; round++) {
        program p = random_program();
        char *text = text_of(&p);
        float x[64], w[16], y[64] = {0}, z[16];
        for (int i = 0; i < 64; i++) x[i] = (float)((int)below(17) - 8) / 4;
        for (int i = 0; i < 16; i++) w[i] = (float)((int)below(17) - 8) / 4;
        ot_krun_array in[] = {
            {.name = "x", .dtype = "f32", .rank = 3, .dims = {p.trips, 4, 4}, .data = x},
            {.name = "w", .dtype = "f32", .rank = 2, .dims = {4, 4}, .data = w}};
        evaluate(&p, x, w, y, z);
        for (int64_t room = 1 << 16; room >= 192; room = room > 1024 ? 1024 : room - 64) {
            ot_diag d = {0};
            ot_krun_result *r;
            ot_status s = run_text(text, in, 2, room, &d, &r);
            if (s == OT_E_BUDGET) break;
            if (s != OT_OK) fail_msg("%s\n%s", d.message, text);
            same("y", y, &r->outputs[0], 16 * (uint32_t)p.trips, text);
            if (p.carries >= 0) same("z", z, &r->outputs[1], 16, text);
            shared += room <= 1024;
            ot_krun_free(r);
        }
        free(text);
    }
    print_message("%u runs in small memories\n", shared);
    assert_true(shared > 1000);
}

/* ---- damaged kernels ---- */

/* Most of what runs, in few lines. */
static const char BUSY[] =
    "kernel k {\n  size n <= 16\n  pool P max=8K block=64 @ub\n  param x: [n, 8] f32 @gm\n  param "
    "w: 8x8 f16 @gm\n"
    "  param im: 1x2x6x6 i8 @gm\n  empty y: [n, 8] f32 @gm\n  empty z: 1x3x4x4 i32 @gm\n  var "
    "count: i32 = 1\n"
    "  barrier b arrive=1\n  reducer s: 2x1 f32 op=sum\n  s = vector.fill()\n  alloc zero: 2x8 f32 "
    "@ub\n"
    "  zero = vector.fill(value=0)\n  total = for i in 0..n step 2 carry (acc = zero) {\n"
    "    alloc t: 2x8 f32 @ub multi=2\n    load t <- x[i:i+2, 0:8] stream=s1\n    alloc h: 8x8 f16 "
    "from P\n    load h <- w\n"
    "    wait s1\n    arrive b\n    wait b\n    alloc m: 2x8 f32 @ub\n    m = cube.matmul(t, h, "
    "transpose_b=1)\n"
    "    subview left = m[0:2, 2:6]\n    alloc r: 2x1 f32 @ub\n    r = vector.reduce_max(left, "
    "axis=1)\n    s = vector.add(s, r)\n"
    "    alias flat = m: 16 f32\n    flat = vector.exp(flat)\n    store y[i:i+2, 0:8] <- m "
    "stream=s2\n    wait s2 keep=0\n"
    "    if (count) {\n      count = scalar.add(count, count)\n    }\n    alloc next: 2x8 f32 @ub\n"
    "    next = vector.add(acc, m)\n    yield (next)\n  }\n  s = vector.finalize(s)\n  block {\n"
    "    alloc im1: 1x2x6x6 i8 @ub\n    load im1 <- im\n    alloc k1: 3x2x3x3 i8 @ub\n    k1 = "
    "vector.iota(start=-3, step=2)\n"
    "    alloc c: 1x3x4x4 i32 @ub\n    c = cube.conv(im1, k1, pad=0, stride=1)\n    alloc p: "
    "1x3x2x2 i32 @ub\n"
    "    p = vector.maxpool(c, kernel=2, stride=2)\n    alloc u: 1x3x4x4 i32 @ub\n    u = "
    "vector.transpose(c, perm=[0, 1, 3, 2])\n"
    "    store z <- u\n  }\n}\n";

/* Run it with zeros for its params; what is too large is left. Returns OT_E_USAGE for that. */
static ot_status run_zeros(const ot_kernel *k, ot_diag *d)
{
    static uint8_t zeros[1 << 16];
    ot_krun_array in[8];
    uint32_t n = 0;
    for (uint32_t v = 0; v < k->n_values; v++) {
        const ot_tk_value *x = &k->values[v];
        if (x->bytes > (int64_t)sizeof zeros) return OT_E_USAGE;
        if (x->kind != OT_TK_PARAM || x->empty || n == 8) continue;
        in[n] = (ot_krun_array){.name = x->name, .dtype = x->dtype, .rank = x->rank, .data = zeros};
        memcpy(in[n++].dims, x->dims, sizeof x->dims);
    }
    ot_tk_machine t = roomy(1 << 18);
    ot_mem_plan *p = NULL;
    ot_krun_result *r = NULL;
    ot_mem_options o = {.threads = 1};
    ot_krun_request q = {.inputs = in, .n_inputs = n, .step_limit = 3000};
    ot_status s = ot_mem_plan_kernel(k, "k.tk", &t, &o, d, &p);
    if (s == OT_OK) s = ot_krun(k, "k.tk", p, &q, d, &r);
    ot_krun_free(r);
    ot_mem_plan_free(p);
    return s;
}

/* Every answer is a result or a line with its place: no crash, no access outside (sanitizers look).
 */
static void damage_is_answered(void **state)
{
    (void)state;
    seed_from_environment();
    uint32_t ran = 0, refused = 0;
    size_t n = strlen(BUSY);
    for (int round = 0; round < 6000; round++) {
        char text[sizeof BUSY + 8];
        ot_diag d = {0}, e = {0};
        ot_kernel *k = NULL;
        memcpy(text, BUSY, n + 1);
        for (uint32_t edits = round ? 1 + below(2) : 0; edits > 0;) { /* mostly other numbers */
            char *at = text + below((uint32_t)n);
            if (*at >= '0' && *at <= '9')
                *at = (char)('0' + below(10)), edits--;
            else if (below(40) == 0)
                *at = BUSY[below((uint32_t)n)], edits--;
        }
        if (ot_kernel_parse("k.tk", text, n, &d, &k) == OT_OK) {
            ot_status s = run_zeros(k, &e);
            if (round == 0 && s != OT_OK) fail_msg("%s", e.message);
            if (s == OT_OK) ran++;
            if (s == OT_E_INPUT && strncmp(e.message, "k.tk:", 5) == 0) refused++;
            if (s == OT_E_INPUT && strncmp(e.message, "k.tk:", 5) != 0)
                fail_msg("%s\n%s", e.message, text);
            if (s == OT_E_NOMEM || s == OT_E_SYSTEM) fail_msg("status %d\n%s", s, text);
        }
        ot_kernel_free(k);
    }
    print_message("%u damaged kernels ran, %u were refused while they ran\n", ran, refused);
    assert_true(ran > 100 && refused > 100);
}

/* ---- element types ---- */

/* Conversions of every type at its edges, as C and IEEE 754 have them. */
static void types_round(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        float x;
        uint64_t bits;
    } cases[] = {{"f16", 65504, 0x7bff},
                 {"f16", 65520, 0x7c00},
                 {"f16", 65519, 0x7bff},
                 {"f16", 5.9604645e-8f, 1},
                 {"f16", 2.9802322e-8f, 0},
                 {"f16", 1.0009766f, 0x3c01},
                 {"f16", 1.0004883f, 0x3c00},
                 {"f16", -2, 0xc000},
                 {"f16", 6.0975552e-5f, 0x3ff},
                 {"bf16", 1.00390625f, 0x3f80},
                 {"bf16", 1.01171875f, 0x3f82},
                 {"bf16", 3.4e38f, 0x7f80},
                 {"i8", 127.9f, 127},
                 {"i8", 200, 127},
                 {"i8", -200, 0x80},
                 {"i8", -1.9f, 0xff},
                 {"u8", -3, 0},
                 {"u8", 255.5f, 255},
                 {"i32", 3e9f, 0x7fffffff},
                 {"i32", NAN, 0},
                 {"bool", 0.25f, 1},
                 {"u16", 70000, 65535},
                 {"i16", -40000, 0x8000},
                 {"f16", INFINITY, 0x7c00}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        ot_diag d = {0};
        ot_krun_result *r;
        ot_krun_array x = {
            .name = "x", .dtype = "f32", .rank = 1, .dims = {1}, .data = &cases[i].x};
        uint64_t got = 0;
        snprintf(text, sizeof text,
                 "kernel k {\nparam x: 1 f32 @gm\nempty y: 1 %s @gm\nalloc a: 1 f32 @ub\nalloc b: "
                 "1 %s @ub\nload a <- x\n"
                 "b = vector.cast(a)\nstore y <- b\n}\n",
                 cases[i].type, cases[i].type);
        if (run_text(text, &x, 1, 1 << 16, &d, &r) != OT_OK) fail_msg("%s\n%s", d.message, text);
        memcpy(&got, r->outputs[0].data, ot_tk_dtype_bits(cases[i].type) / 8);
        if (got != cases[i].bits)
            fail_msg("%s of %g is 0x%llx, not 0x%llx", cases[i].type, (double)cases[i].x,
                     (unsigned long long)got, (unsigned long long)cases[i].bits);
        ot_krun_free(r);
    }
}

/* Every allocation that fails is an answer, and nothing leaks (sanitizers look). */
static int64_t allowed;

static void *failing(void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size == 0) return free(ptr), NULL;
    return allowed-- > 0 ? realloc(ptr, new_size) : NULL;
}

static void out_of_memory(void **state)
{
    (void)state;
    const char *text = HEAD "  alloc a: 8x8 f32 @ub\n  alloc b: 8x8 f32 @ub\n  load a <- x "
                            "stream=s\n  wait s\n  b = cube.matmul(a, a)\n  store y <- b\n}\n";
    ot_kernel *k = parse(text);
    ot_tk_machine t = roomy(1 << 16);
    ot_mem_plan *p = NULL;
    ot_diag d = {0};
    ot_mem_options o = {.threads = 1};
    ot_krun_array x = input_x();
    ot_krun_request q = {.inputs = &x, .n_inputs = 1, .events = true};
    assert_int_equal(ot_mem_plan_kernel(k, "k.tk", &t, &o, &d, &p), OT_OK);
    ot_status s = OT_E_NOMEM;
    for (int64_t n = 0; s == OT_E_NOMEM && n < 1000; n++) {
        ot_krun_result *r = NULL;
        d = (ot_diag){0};
        allowed = n;
        ot_set_alloc_hook(failing);
        s = ot_krun(k, "k.tk", p, &q, &d, &r);
        ot_krun_free(r);
        ot_set_alloc_hook(NULL);
    }
    assert_int_equal(s, OT_OK);
    ot_mem_plan_free(p);
    ot_kernel_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),
        cmocka_unit_test(orders_pipes),
        cmocka_unit_test(transfers_keep_memory),
        cmocka_unit_test(random_kernels),
        cmocka_unit_test(damage_is_answered),
        cmocka_unit_test(types_round),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
