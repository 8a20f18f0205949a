/* Tiled models in the engine's form: random graphs, tiled in memory by the planner, against the
 * untiled reference; tables and bodies that break the form, refused by the session itself, whoever
 * made the model.
 */
#include "engine_graphs.h"
#include "tiled_graph.h"

#include "engine/ref/ref_number.h"

static void check_same(const graph *g, const graph_run *want, const graph_run *got,
                       const char *what, unsigned seed)
{
    for (int k = 0; k < g->outputs; k++) {
        double e = graph_error(&want->out[k], &got->out[k]);
        if (!(e <= GRAPH_NMSE))
            fail_msg("seed %u, %s: output %d has error %.2e\n%s", seed, what, k, e, g->text);
    }
}

/* Returns the number of regions. */
static uint32_t check_seed(unsigned seed)
{
    static const struct {
        bool reference;
        uint32_t threads;
        int64_t l2;
    } ways[] = {{true, 1, 12000}, {false, 1, 12000}, {false, 3, 12000}, {false, 3, 3000}};
    static graph g;
    uint32_t regions = 0;
    char what[100];
    graph_run ref;
    float *x = graph_reference(&g, seed, true, true, &ref);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        graph_run r = {.m = NULL};
        ot_session_options o = {
            .threads = ways[k].threads, .reference = ways[k].reference, .poison = (seed + k) % 2};
        ot_model *m = text_model(g.text, &r.d);
        regions += tile_graph(m, ways[k].l2);
        snprintf(what, sizeof what, "%s, %u threads%s, cache of %lld",
                 o.reference ? "reference" : "fast", o.threads, o.poison ? ", poisoned" : "",
                 (long long)ways[k].l2);
        if (graph_open(&r, m, o) != OT_OK)
            fail_msg("seed %u, %s: %s\n%s", seed, what, r.d.message, g.text);
        for (int again = 0; again < 2; again++) {
            if (graph_execute(&r, &g, x, true, again) != OT_OK)
                fail_msg("seed %u, %s: %s\n%s", seed, what, r.d.message, g.text);
            check_same(&g, &ref, &r, what, seed);
            graph_drop_outputs(&r);
        }
        graph_close(&r);
    }
    graph_close(&ref);
    free(x);
    return regions;
}

static void random_networks(void **state)
{
    (void)state;
    const char *one = getenv("OT_SEED"), *many = getenv("OT_SEEDS");
    unsigned first = one ? (unsigned)atoi(one) : 1,
             n = many  ? (unsigned)atoi(many)
                 : one ? 1
                       : 60,
             tiled = 0;
    print_message("seeds %u to %u\n", first, first + n - 1);
    for (unsigned seed = first; seed < first + n; seed++) tiled += check_seed(seed) > 0;
    print_message("%u graphs were tiled\n", tiled);
    assert_true(tiled * 2 >= n || n == 1);
}

/* ---- what the form forbids ---- */

/* Pieces of the model; NULL: as it should be. */
typedef struct broken {
    const char *count, *in_axes, *in_sizes, *in_starts, *out_axes, *out_starts, *iteration, *buffer,
        *alloc, *says;
} broken;

static const char *or_else(const char *given, const char *own) { return given ? given : own; }

/* y[4,6] = |x[4,6]|, two rows at a time. */
static void write_model(const broken *b, char *text, size_t size)
{
    snprintf(text, size,
             "  input %%x : float32[4,6]\n  %%y0 = \"onnx_tile\"::Alloc@1() {shape=%s, dtype=1} "
             "\"alloc\"\n"
             "  %%y = \"onnx_tile\"::While@1(%%y0) {%sbody=graph body {\n"
             "    input %%i : %s\n    input %%buffer : %s\n    outer %%x : float32[4,6]\n"
             "    %%s : float32[2,6] = \"onnx_tile\"::Slice@1(%%x, %%i) {axes=%s, sizes=%s, "
             "starts=%s} \"slice\"\n"
             "    %%a : float32[2,6] = Abs(%%s)\n"
             "    %%next : %s = \"onnx_tile\"::Deslice@1(%%a, %%buffer, %%i) {axes=%s, starts=%s} "
             "\"deslice\"\n"
             "    output %%next\n  }} \"while\"\n  output %%y",
             or_else(b->alloc, "[4, 6]"), or_else(b->count, "count=2, "),
             or_else(b->iteration, "int64[]"), or_else(b->buffer, "float32[4,6]"),
             or_else(b->in_axes, "[0]"), or_else(b->in_sizes, "[2]"),
             or_else(b->in_starts, "[0, 2]"), or_else(b->buffer, "float32[4,6]"),
             or_else(b->out_axes, "[0]"), or_else(b->out_starts, "[0, 2]"));
}

static void tables_are_checked(void **state)
{
    (void)state;
    static const broken cases[] = {
        {.in_starts = "[0, 3]", .says = "'slice' (Slice)"},
        {.in_starts = "[-1, 2]", .says = "'slice' (Slice)"},
        {.in_starts = "[0, 4611686018427387904]", .says = "'slice' (Slice)"},
        {.in_starts = "[0]", .says = "'slice' (Slice)"},
        {.in_starts = "[0, 1, 2]", .says = "'slice' (Slice)"},
        {.in_axes = "[2]", .says = "'slice' (Slice)"},
        {.in_axes = "[-1]", .says = "'slice' (Slice)"},
        {.in_axes = "[1]", .says = "(Deslice)"},
        {.in_axes = "[0, 0]",
         .in_sizes = "[2, 2]",
         .in_starts = "[2, 2, 2, 2]",
         .says = "'slice' (Slice)"},
        {.out_starts = "[0, 3]", .says = "'deslice' (Deslice)"},
        {.out_starts = "[0, -2]", .says = "'deslice' (Deslice)"},
        {.out_starts = "[2]", .says = "'deslice' (Deslice)"},
        {.out_axes = "[0, 0]", .out_starts = "[2, 2, 2, 2]", .says = "'deslice' (Deslice)"},
        {.out_axes = "[7]", .says = "'deslice' (Deslice)"},
        {.count = "count=0, ", .says = "'while' (While)"},
        {.count = "count=-1, ", .says = "'while' (While)"},
        {.count = "", .says = "'while' (While)"},
        {.count = "count=3, ", .says = "a row for each iteration"},
        {.count = "count=1, ", .says = "a row for each iteration"},
        {.count = "count=4611686018427387904, ", .says = "'while' (While)"},
        {.iteration = "float32[64]", .says = "iteration"},
        {.iteration = "int64[0]", .says = "iteration"},
        {.buffer = "float32[400,6]", .out_starts = "[0, 398]", .says = "'while' (While)"},
        {.buffer = "float64[4,6]", .says = "(Deslice)"},
        {.out_starts = "[1, 2]",
         .says = "'deslice' (onnx_tile::Deslice): iteration 1 writes elements of buffer 'y0' that "
                 "node 'deslice' writes in iteration 0"},
        {.out_starts = "[2, 2]", .says = "places must be disjoint"},
        {.alloc = "[2, 6]", .says = "'while' (While)"},
        {.alloc = "[4, 6, 1]", .says = "'while' (While)"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int reference = 0; reference < 2; reference++) {
            char text[2000];
            bench b;
            write_model(&cases[k], text, sizeof text);
            open_with(&b, text, (ot_session_options){.reference = reference, .threads = 2});
            if (b.status != OT_E_INPUT || !strstr(b.d.message, cases[k].says) ||
                strchr(b.d.message, '\n'))
                fail_msg("case %zu: status %d: %s", k, b.status, b.d.message);
            close_bench(&b);
        }
}

/* Two Whiles of one buffer [4,6], each of two tiles [2,3] of x. Places are those of both Whiles
 * together. */
static void chains_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *says;
    } cases[] = {
        {"0, 0, 2, 3", "0, 3, 2, 0", NULL},
        {"0, 0, 0, 3", "2, 0, 2, 3", NULL},
        {"0, 0, 2, 3", "0, 3, 1, 0",
         "iteration 1 writes elements of buffer 'y0' that node 'out_a' writes in iteration 0"},
        {"0, 0, 1, 2", "0, 3, 2, 0", "places must be disjoint"},
        {"0, 0, 0, 1", "2, 0, 2, 3", "'out_a' (onnx_tile::Deslice): iteration 1"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int reference = 0; reference < 2; reference++) {
            char text[3000];
            bench b;
            size_t at = (size_t)snprintf(text, sizeof text,
                                         "  input %%x : float32[4,6]\n  %%y0 = "
                                         "\"onnx_tile\"::Alloc@1() {shape=[4, 6], dtype=1}\n");
            for (int w = 0; w < 2; w++)
                at += (size_t)snprintf(text + at, sizeof text - at,
                                       "  %%y%d : float32[4,6] = \"onnx_tile\"::While@1(%%y%d) "
                                       "{count=2, body=graph b%d {\n"
                                       "    input %%i%d : int64[]\n    input %%b%d : "
                                       "float32[4,6]\n    outer %%x : float32[4,6]\n"
                                       "    %%s%d : float32[2,3] = \"onnx_tile\"::Slice@1(%%x, "
                                       "%%i%d) {axes=[0, 1], sizes=[2, 3], "
                                       "starts=[%s]}\n    %%a%d = Abs(%%s%d)\n"
                                       "    %%n%d : float32[4,6] = \"onnx_tile\"::Deslice@1(%%a%d, "
                                       "%%b%d, %%i%d) {axes=[0, 1], "
                                       "starts=[%s]} \"out_%c\"\n    output %%n%d\n  }}\n",
                                       w + 1, w, w, w, w, w, w,
                                       w ? cases[k].second : cases[k].first, w, w, w, w, w, w,
                                       w ? cases[k].second : cases[k].first, 'a' + w, w);
            (void)snprintf(text + at, sizeof text - at, "  output %%y2");
            open_with(&b, text, (ot_session_options){.reference = reference, .threads = 2});
            if (cases[k].says ? b.status != OT_E_INPUT || !strstr(b.d.message, cases[k].says) ||
                                    strchr(b.d.message, '\n')
                              : b.status != OT_OK)
                fail_msg("case %zu: status %d: %s", k, b.status, b.d.message);
            close_bench(&b);
        }
}

static void the_form_itself_runs(void **state)
{
    (void)state;
    float x[24];
    for (int k = 0; k < 24; k++) x[k] = (float)(k - 12);
    for (uint32_t way = 0; way < 6; way++) {
        const uint32_t threads = 1 + way / 2;
        const char *order = way % 2 ? "count=2, in_order=1, " : NULL;
        char text[2000];
        bench b;
        ot_nd in = F32S(x, 4, 6), out = {0};
        write_model(&(broken){.count = order}, text, sizeof text);
        open_with(&b, text, (ot_session_options){.threads = threads});
        if (b.status != OT_OK) fail_msg("%s", b.d.message);
        run_ok(&b, &in, &out);
        for (int k = 0; k < 24; k++) assert_true(((float *)out.data)[k] == fabsf(x[k]));
        close_bench(&b);
    }
}

/* Rows of y are those of |x| before and in each step: the kept row is read where it lies, or,
 * when the buffer is written before, from a copy. */
static void kept_rows_are_read_before_they_go(void **state)
{
    (void)state;
    float x[24];
    for (int k = 0; k < 24; k++) x[k] = (float)(k - 12);
    for (int late = 0; late < 2; late++) {
        char text[4000];
        bench b;
        ot_nd in = F32S(x, 1, 1, 4, 6), out = {0};
        const char *put = "    %c : float32[1,1,2,6] = Concat(%k, %a) {axis=2}\n",
                   *left = "    %l : float32[1,1,1,6] = \"onnx_tile\"::Deslice@1(%a, %rows, %i) "
                           "{axes=[2], starts=[0, 0, 0], again=1}\n";
        snprintf(text, sizeof text,
                 "  input %%x : float32[1,1,4,6]\n  %%y0 = \"onnx_tile\"::Alloc@1() {shape=[1, 1, "
                 "8, 6], dtype=1}\n"
                 "  %%r0 = \"onnx_tile\"::Alloc@1() {shape=[1, 1, 1, 6], dtype=1}\n"
                 "  %%y1 : float32[1,1,8,6], %%r1 : float32[1,1,1,6] = "
                 "\"onnx_tile\"::While@1(%%y0, %%r0) {count=1, carried=1, body=graph one {\n"
                 "    input %%i0 : int64[]\n    input %%b0 : float32[1,1,8,6]\n    input %%rows0 : "
                 "float32[1,1,1,6]\n    outer %%x : float32[1,1,4,6]\n"
                 "    %%s0 : float32[1,1,1,6] = \"onnx_tile\"::Slice@1(%%x, %%i0) {axes=[2], "
                 "sizes=[1], starts=[0]}\n"
                 "    %%a0 : float32[1,1,1,6] = Abs(%%s0)\n    %%c0 : float32[1,1,2,6] = "
                 "Concat(%%a0, %%a0) {axis=2}\n"
                 "    %%n0 : float32[1,1,8,6] = \"onnx_tile\"::Deslice@1(%%c0, %%b0, %%i0) "
                 "{axes=[2], starts=[0]}\n"
                 "    %%l0 : float32[1,1,1,6] = \"onnx_tile\"::Deslice@1(%%a0, %%rows0, %%i0) "
                 "{axes=[2], starts=[0], again=1}\n"
                 "    output %%n0\n    output %%l0\n  }}\n"
                 "  %%y2 : float32[1,1,8,6], %%r2 : float32[1,1,1,6] = "
                 "\"onnx_tile\"::While@1(%%y1, %%r1) {count=3, carried=1, body=graph more {\n"
                 "    input %%i : int64[]\n    input %%b : float32[1,1,8,6]\n    input %%rows : "
                 "float32[1,1,1,6]\n    outer %%x : float32[1,1,4,6]\n"
                 "    %%k : float32[1,1,1,6] = \"onnx_tile\"::Slice@1(%%rows, %%i) {axes=[2], "
                 "sizes=[1], starts=[0, 0, 0]}\n"
                 "    %%s : float32[1,1,1,6] = \"onnx_tile\"::Slice@1(%%x, %%i) {axes=[2], "
                 "sizes=[1], starts=[1, 2, 3]}\n"
                 "    %%a : float32[1,1,1,6] = Abs(%%s)\n%s%s"
                 "    %%n : float32[1,1,8,6] = \"onnx_tile\"::Deslice@1(%%c, %%b, %%i) {axes=[2], "
                 "starts=[2, 4, 6]}\n"
                 "    output %%n\n    output %%l\n  }}\n  output %%y2",
                 late ? left : put, late ? put : left);
        open_with(&b, text, (ot_session_options){.threads = 2});
        if (b.status != OT_OK) fail_msg("%s", b.d.message);
        run_ok(&b, &in, &out);
        for (int k = 0; k < 48; k++) {
            const int step = k / 12, row = k / 6 % 2 ? step : step > 0 ? step - 1 : 0;
            assert_true(((float *)out.data)[k] == fabsf(x[row * 6 + k % 6]));
        }
        close_bench(&b);
    }
}

/* Columns of a matrix are windows with holes: float32 products read them as they lie, those of
 * other types need them dense. */
static void products_of_windows_in_all_types(void **state)
{
    (void)state;
    static const ot_dtype types[] = {OT_F32, OT_F64, OT_F16, OT_BF16,
                                     OT_I32, OT_I64, OT_U32, OT_U64};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        for (int scaled = 0; scaled < 2; scaled++) {
            const char *t = ot_dtype_name(types[k]);
            double w[6] = {1, 2, 3, 4, 5, 6}, a[8] = {1, -1, 2, 0, 3, 1, 0, 4};
            char text[2000], x_data[64], w_data[48];
            bench b;
            if (types[k] == OT_U32 || types[k] == OT_U64) a[1] = 1;
            snprintf(text, sizeof text,
                     "  input %%x : %s[4,2]\n  input %%w : %s[2,3]\n  init %%two : %s[1] = [2]\n"
                     "  %%o = \"onnx_tile\"::Alloc@1() {shape=[4,3], dtype=%d}\n"
                     "  %%y = \"onnx_tile\"::While@1(%%o) {count=3, body=graph b {\n    outer %%x "
                     ": %s[4,2]\n"
                     "    outer %%w : %s[2,3]\n    outer %%two : %s[1]\n    input %%i : int64[]\n  "
                     "  input %%p : %s[4,3]\n"
                     "    %%c : %s[2,1] = \"onnx_tile\"::Slice@1(%%w, %%i) {axes=[1], starts=[0, "
                     "1, 2], sizes=[1]}\n"
                     "    %%m : %s[4,1] = MatMul(%%x, %%c)\n    %%d : %s[4,1] = %s\n"
                     "    %%q : %s[4,3] = \"onnx_tile\"::Deslice@1(%%d, %%p, %%i) {axes=[1], "
                     "starts=[0, 1, 2]}\n    output %%q\n"
                     "  }}\n  output %%y\n",
                     t, t, t, (int)types[k], t, t, t, t, t, t, t,
                     scaled ? "Mul(%m, %two)" : "Identity(%m)", t);
            ot_nd in[2] = {over(types[k], x_data, 2, (int64_t[]){4, 2}),
                           over(types[k], w_data, 2, (int64_t[]){2, 3})},
                  out = {0};
            for (int j = 0; j < 8; j++) ot_num_put(&in[0], j, a[j]);
            for (int j = 0; j < 6; j++) ot_num_put(&in[1], j, w[j]);
            open_with(&b, text, (ot_session_options){.threads = 1});
            if (b.status != OT_OK) fail_msg("%s", b.d.message);
            run_ok(&b, in, &out);
            for (int j = 0; j < 12; j++) {
                double want = (a[j / 3 * 2] * w[j % 3] + a[j / 3 * 2 + 1] * w[3 + j % 3]) *
                              (scaled ? 2 : 1);
                if (ot_nd_double(&out, j) != want)
                    fail_msg("%s%s: element %d: %g, not %g", t, scaled ? ", scaled" : "", j,
                             ot_nd_double(&out, j), want);
            }
            close_bench(&b);
        }
    }
}

/* Parts of the form that are missing, or in the wrong place. */
static void parts_are_checked(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"  %y0 : float32[4] = \"onnx_tile\"::Alloc@1() {shape=[4], dtype=1}\n"
         "  %y : float32[4] = \"onnx_tile\"::While@1(%y0) {count=2} \"while\"\n  output %y",
         "'while' (While): it has no body"},
        {"  input %x : float32[4]\n  %y : float32[4] = \"onnx_tile\"::While@1(%x) {count=1, "
         "body=graph b {\n    input %i : int64[]\n"
         "    input %b : float32[4]\n    %n : float32[4] = Neg(%b)\n    output %n\n  }} "
         "\"while\"\n  output %y",
         "'while' (While)"},
        {"  %y0 : float32[4] = \"onnx_tile\"::Alloc@1() {shape=[4], dtype=1}\n"
         "  %y : float32[4] = \"onnx_tile\"::While@1(%y0) {count=1, body=graph b {\n    input %i : "
         "int64[]\n"
         "    output %i\n  }} \"while\"\n  output %y",
         "'while' (While): its buffers do not match"},
        {"  %y0 : float32[4] = \"onnx_tile\"::Alloc@1() {shape=[4], dtype=1}\n"
         "  %y : float32[4] = \"onnx_tile\"::While@1(%y0) {count=1, body=graph b {\n    input %i : "
         "int64[]\n    input %b : float32[4]\n"
         "    output %b\n  }} \"while\"\n  %z = Neg(%y0)\n  output %y\n  output %z",
         "'while' (While)"},
        {"  input %x : float32[4]\n  input %i : int64[]\n  %y : float32[2] = "
         "\"onnx_tile\"::Slice@1(%x) {axes=[0], sizes=[2], starts=[1]} "
         "\"s\"\n  output %y",
         "'s' (Slice)"},
        {"  input %x : float32[?]\n  input %i : int64[]\n  %y : float32[2] = "
         "\"onnx_tile\"::Slice@1(%x, %i) {axes=[0], sizes=[2], "
         "starts=[1]} \"s\"\n  output %y",
         "'s' (Slice)"},
        /* the same buffer twice */
        {"  %y0 : float32[4] = \"onnx_tile\"::Alloc@1() {shape=[4], dtype=1}\n  init %t : "
         "float32[2] = [1, 2]\n"
         "  %y, %z = \"onnx_tile\"::While@1(%y0, %y0) {count=2, body=graph b {\n    input %i : "
         "int64[]\n"
         "    input %b : float32[4]\n    input %c : float32[4]\n    outer %t : float32[2]\n"
         "    %n : float32[4] = \"onnx_tile\"::Deslice@1(%t, %b, %i) {axes=[0], starts=[0, 2]}\n"
         "    %m : float32[4] = \"onnx_tile\"::Deslice@1(%t, %c, %i) {axes=[0], starts=[0, 2]}\n"
         "    output %n\n    output %m\n  }} \"while\"\n  output %y\n  output %z",
         "'while' (onnx_tile::While): it takes a buffer twice"},
        /* a tile that reads what others write */
        {"  %y0 : float32[4] = \"onnx_tile\"::Alloc@1() {shape=[4], dtype=1}\n"
         "  %y : float32[4] = \"onnx_tile\"::While@1(%y0) {count=2, body=graph b {\n    input %i : "
         "int64[]\n"
         "    input %b : float32[4]\n"
         "    %t : float32[2] = \"onnx_tile\"::Slice@1(%b, %i) {axes=[0], sizes=[2], starts=[2, "
         "0]}\n"
         "    %n : float32[4] = \"onnx_tile\"::Deslice@1(%t, %b, %i) {axes=[0], starts=[0, 2]}\n"
         "    output %n\n  }} \"while\"\n  output %y",
         "through Deslice alone"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bench b;
        open_with(&b, cases[k][0], (ot_session_options){.threads = 2});
        if (b.status != OT_E_INPUT || !strstr(b.d.message, cases[k][1]))
            fail_msg("case %zu: status %d: %s", k, b.status, b.d.message);
        close_bench(&b);
    }
}

/* A table that is short is met by an iteration that it has no row for, in a window outside of any
 * While. */
static void rows_that_are_not_there(void **state)
{
    (void)state;
    float x[] = {1, 2, 3, 4};
    int64_t i = 0;
    bench b;
    ot_nd in[2] = {F32S(x, 4), over(OT_I64, &i, 0, NULL)}, out = {0};
    open_text(&b, "  input %x : float32[4]\n  input %i : int64[]\n"
                  "  %s : float32[2] = \"onnx_tile\"::Slice@1(%x, %i) {axes=[0], sizes=[2], "
                  "starts=[2, 1]} \"s\"\n"
                  "  %y = Neg(%s)\n  output %y");
    run_ok(&b, in, &out);
    CHECK_FLOATS(&out, -3, -4);
    for (i = -1; i < 5; i += 3) {
        b.d = (ot_diag){0};
        out = (ot_nd){0};
        assert_int_equal(ot_session_run(b.s, in, &out, &b.d), OT_E_INPUT);
        assert_non_null(strstr(b.d.message, "there is no iteration"));
    }
    close_bench(&b);
}

/* Tiles that run at once view a value that lies on the heap: what a branch made. */
static void tiles_share_a_value_on_the_heap(void **state)
{
    (void)state;
    static const char text[] =
        "  input %x : float32[8,6]\n  input %p : bool[]\n  init %shape : int64[3] = [8, 2, 3]\n  "
        "init %back : int64[2] = [8, 6]\n"
        "  %h : float32[8,6] = If(%p) {then_branch=graph t {\n    outer %x : float32[8,6]\n    %t0 "
        ": float32[8,6] = Neg(%x)\n"
        "    output %t0\n  }, else_branch=graph f {\n    outer %x : float32[8,6]\n    %f0 : "
        "float32[8,6] = Abs(%x)\n    output %f0\n  }}\n"
        "  %y0 = \"onnx_tile\"::Alloc@1() {shape=[8, 6], dtype=1}\n"
        "  %y = \"onnx_tile\"::While@1(%y0) {count=8, body=graph body {\n    input %i : int64[]\n  "
        "  input %buffer : float32[8,6]\n"
        "    outer %h : float32[8,6]\n    outer %shape : int64[3]\n    outer %back : int64[2]\n"
        "    %a = Reshape(%h, %shape)\n    %b = Transpose(%a) {perm=[0, 2, 1]}\n    %c = "
        "Reshape(%b, %back)\n"
        "    %s = \"onnx_tile\"::Slice@1(%c, %i) {axes=[0], sizes=[1], starts=[0, 1, 2, 3, 4, 5, "
        "6, 7]}\n"
        "    %next : float32[8,6] = \"onnx_tile\"::Deslice@1(%s, %buffer, %i) {axes=[0], "
        "starts=[0, 1, 2, 3, 4, 5, 6, 7]}\n"
        "    output %next\n  }}\n  output %y";
    float x[48];
    bool yes = true;
    bench b;
    for (int k = 0; k < 48; k++) x[k] = (float)k;
    ot_nd in[2] = {F32S(x, 8, 6), over(OT_BOOL, &yes, 0, NULL)};
    open_with(&b, text, (ot_session_options){.threads = 3});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    for (int again = 0; again < 20; again++) {
        ot_nd out = {0};
        run_ok(&b, in, &out);
        for (int k = 0; k < 48; k++) /* columns 0 1 2 | 3 4 5 become 0 3 1 4 2 5 */
            assert_true(((float *)out.data)[k] == -(float)(k / 6 * 6 + k % 6 / 2 + k % 2 * 3));
    }
    assert_int_equal(b.s->heap.live, 48 * 4); /* the result, nothing else */
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_form_itself_runs),
        cmocka_unit_test(kept_rows_are_read_before_they_go),
        cmocka_unit_test(tables_are_checked),
        cmocka_unit_test(chains_are_checked),
        cmocka_unit_test(parts_are_checked),
        cmocka_unit_test(rows_that_are_not_there),
        cmocka_unit_test(tiles_share_a_value_on_the_heap),
        cmocka_unit_test(products_of_windows_in_all_types),
        cmocka_unit_test(random_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
