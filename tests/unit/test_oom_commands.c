/* Running out of memory at every possible place of a command: inspect with every report,
 * optimise to the engine's form, plan-memory of kernels and tables, run. Each through the
 * function that the program calls.
 *
 *   product: ot_alloc, ot_format, malloc, open_memstream, ... --linker's --wrap--> __wrap_...: the
 *   k-th fails, else __real_...
 *
 * A hook sees only the blocks that arenas take, a few dozen in a run; wrapped are all calls
 * between the product's files, thousands. The k-th fails alone, or with all after it, for k = 0,
 * 1, 2, ...: the status is OT_E_NOMEM, the diagnostic one line, arenas are given back (the
 * sanitizers see the rest), and no file is left but whole ones. What libxml2, GLPK and oneDNN
 * take for themselves is out of reach.
 */
#include "cases.h"
#include "app/pipeline.h"
#include "commands/plan_memory.h"
#include "commands/run_command.h"
#include "geometry/geometry.h"
#include "passes/passes.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- failing ---- */

static _Atomic long counted; /* allocations so far */
static _Atomic long live;    /* bytes of arenas */
static long failing = -1;    /* the first that fails; -1: none does */
static bool alone;           /* those after it succeed */
static _Atomic bool taken;   /* something failed */

static bool fails(void)
{
    long k = counted++;
    bool yes = failing >= 0 && (alone ? k == failing : k >= failing);
    if (yes) taken = true;
    return yes;
}

/* Wrap a function that returns NULL when memory ran out. */
#define WRAP(type, name, parameters, arguments) \
    type __real_##name parameters;              \
    type __wrap_##name parameters;              \
    type __wrap_##name parameters { return fails() ? NULL : __real_##name arguments; }

WRAP(void *, ot_alloc, (ot_arena * a, size_t size), (a, size))
WRAP(void *, ot_alloc_n, (ot_arena * a, size_t count, size_t size), (a, count, size))
WRAP(void *, ot_memdup, (ot_arena * a, const void *p, size_t bytes), (a, p, bytes))
WRAP(char *, ot_strdup, (ot_arena * a, const char *s), (a, s))
WRAP(char *, ot_strndup, (ot_arena * a, const char *s, size_t n), (a, s, n))
WRAP(ot_arena *, ot_arena_new, (void), ())
WRAP(void *, malloc, (size_t n), (n))
WRAP(void *, calloc, (size_t count, size_t n), (count, n))
WRAP(FILE *, open_memstream, (char **text, size_t *n), (text, n))

bool __real_ot_grow(ot_arena *a, void **items, size_t *cap, size_t want, size_t item_size);
bool __wrap_ot_grow(ot_arena *a, void **items, size_t *cap, size_t want, size_t item_size);
bool __wrap_ot_grow(ot_arena *a, void **items, size_t *cap, size_t want, size_t item_size)
{
    return !fails() && __real_ot_grow(a, items, cap, want, item_size);
}

char *__wrap_ot_format(ot_arena *a, const char *fmt, ...) OT_PRINTF(2, 3);
char *__wrap_ot_format(ot_arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *text = fails() ? NULL : __real_ot_alloc(a, (size_t)n + 1);
    if (text) vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return text;
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd) /* thousands of files, and none of them matters */
{
    (void)fd;
    return 0;
}

/* Arenas: counted, never failing here. */
static void *counting_hook(void *ptr, size_t old_size, size_t new_size)
{
    live += (long)new_size - (long)(ptr ? old_size : 0);
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* ---- files ---- */

static char folder[] = "/tmp/onnx-tile-oom-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[8][128];
    static unsigned k;
    char *path = paths[k++ % 8];
    snprintf(path, sizeof *paths, "%s/%s", folder, name);
    return path;
}

/* The model, the kernel, the table that commands read. */
static bool is_input(const char *name) { return strncmp(name, "in", 2) == 0; }

static int not_inputs(const struct dirent *e) { return e->d_name[0] != '.' || e->d_name[1] == 'o'; }

/* Every file that a command wrote: names and bytes, in the C library's memory. With `remove`
 * they are gone afterwards. */
static char *take_outputs(size_t *n)
{
    struct dirent **list;
    char *all = NULL;
    FILE *f = __real_open_memstream(&all, n);
    assert_non_null(f);
    int count = scandir(folder, &list, not_inputs, alphasort);
    for (int k = 0; k < count; k++) {
        char path[512], block[4096];
        size_t got;
        snprintf(path, sizeof path, "%s/%s", folder, list[k]->d_name);
        FILE *in = is_input(list[k]->d_name) ? NULL : fopen(path, "rb");
        if (in) {
            fprintf(f, "%s\n", list[k]->d_name);
            while ((got = fread(block, 1, sizeof block, in)) > 0) fwrite(block, 1, got, f);
            fclose(in);
            unlink(path);
        }
        free(list[k]);
    }
    free(list);
    assert_int_equal(fclose(f), 0);
    return all;
}

static void write_input(const char *name, const char *text)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

/* ---- the walk ---- */

typedef ot_status (*command)(const void *with, ot_diag *d);

typedef struct walk {
    const char *name;
    command run;
    const void *with;
    bool dense;          /* every allocation, however many */
    bool may_do_without; /* what only makes the engine faster may be missing: the results stay */
    bool (*same)(const char *want, const char *got, size_t n);
} walk;

static bool equal_bytes(const char *want, const char *got, size_t n)
{
    return memcmp(want, got, n) == 0;
}

/* True when the run did not run out of memory. */
static bool step(const walk *w, long k, const char *want, size_t n_want)
{
    ot_diag d = {0};
    size_t n;
    counted = 0;
    live = 0;
    taken = false;
    failing = k;
    ot_status s = w->run(w->with, &d);
    failing = -1;
    char *got = take_outputs(&n);
    if (live != 0)
        fail_msg("%s: %ld bytes are not given back when allocation %ld fails", w->name, (long)live,
                 k);
    if (strstr(got, ".tmp\n"))
        fail_msg("%s: a temporary file is left when allocation %ld fails", w->name, k);
    if (strchr(d.message, '\n'))
        fail_msg("%s, allocation %ld: more than a line: %s", w->name, k, d.message);
    if (s == OT_OK && taken && !w->may_do_without)
        fail_msg("%s: allocation %ld fails, and nobody says so", w->name, k);
    if (s == OT_OK && (n != n_want || !w->same(want, got, n)))
        fail_msg("%s: other results when allocation %ld fails", w->name, k);
    if (s != OT_OK && (s != OT_E_NOMEM || (d.status != OT_OK && d.status != OT_E_NOMEM)))
        fail_msg("%s: allocation %ld fails: status %d, %s", w->name, k, s, d.message);
    free(got);
    return !taken;
}

/* A walk of more allocations fails every so many of them only, unless ONNX_TILE_OOM_ALL is set
 * (a minute). */
#define RUNS CASES(300)

static void walk_all(const walk *w)
{
    ot_diag d = {0};
    size_t n;
    counted = 0;
    if (w->run(w->with, &d) != OT_OK) fail_msg("%s: %s", w->name, d.message);
    long total = counted, stride = getenv("ONNX_TILE_OOM_ALL") || w->dense || total < 2 * RUNS
                                       ? 1
                                       : total / RUNS | 1;
    char *want = take_outputs(&n);
    assert_true(n > 0 && total > 20);
    ot_set_alloc_hook(counting_hook);
    for (int a = 0; a < 2; a++) {
        alone = a != 0;
        /* the second pass between the places of the first */
        long k = a && stride > 1 ? stride / 2 : 0;
        while (!step(w, k, want, n)) k += stride;
    }
    ot_set_alloc_hook(NULL);
    free(want);
    print_message("%s: %ld allocations, every %ld.\n", w->name, total, stride);
}

/* ---- commands ---- */

static const char network[] =
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[2,8,32,32]\n  init %w : float32[8,8,3,3] "
    "= random 1 * 0.1\n"
    "  init %v : float32[8,8,3,3] = random 2 * 0.1\n  init %to : int64[4] = [2, 8, 16, 64]\n"
    "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Relu(%a)\n  %c = Conv(%b, %v) {pads=[1,1,1,1]}\n "
    " %d = Add(%c, %x)\n"
    "  %s = Shape(%b)\n  %z = Reshape(%d, %s)\n  %e = Softmax(%z) {axis=1}\n  %p = "
    "GlobalAveragePool(%e)\n"
    "  %n = NonZero(%p)\n  %y = Relu(%d)\n  output %y\n  output %p\n  output %n\n}\n";

/* Few nodes and few tilings: a plan of it is made hundreds of times. */
static const char small[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,16,16]\n  "
                            "init %w : float32[4,4,3,3] = random 1 * 0.1\n"
                            "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Relu(%a)\n  %s = "
                            "Shape(%a)\n  %y = Reshape(%b, %s)\n  %n = NonZero(%x)\n"
                            "  output %y\n  output %n\n}\n";

static const char to_run[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,32,32]\n  "
                             "init %w : float32[8,8,3,3] = random 1 * 0.1\n"
                             "  init %v : float32[8,8,3,3] = random 2 * 0.1\n  %a = Conv(%x, %w) "
                             "{pads=[1,1,1,1]}\n  %b = Relu(%a)\n"
                             "  %c = Conv(%b, %v) {pads=[1,1,1,1]}\n  %d = Add(%c, %x)\n  %e = "
                             "Softmax(%d) {axis=1}\n  %y = Transpose(%e) {perm=[0,2,3,1]}\n"
                             "  output %y\n}\n";

typedef struct tiling {
    const char *model;
    const char *output; /* NULL: inspect */
    ot_goal goal;
    bool emit_engine;
} tiling;

/* What the program does with the results of inspect and optimise. */
static ot_status write_all(const ot_run *run, ot_diag *d)
{
    static const char *const reports[] = {"out.html", "out.xml", "out.json", "out.csv"};
    FILE *f = fopen("/dev/null", "w");
    assert_non_null(f);
    ot_status s = OT_OK;
    for (size_t k = 0; k < 4 && s == OT_OK; k++)
        s = ot_report_write(run->facts, in_folder(reports[k]), d);
    if (s == OT_OK) s = ot_results_json(run->facts, f);
    if (s == OT_OK) s = ot_results_print(run->facts, true, 80, f);
    if (s == OT_OK) s = ot_results_print(run->facts, false, 0, f);
    if (s == OT_OK) s = ot_results_nodes(run->facts, 80, f);
    fclose(f);
    return s;
}

/* The results alone of a plan that was made before: every allocation of them, which at the end
 * of `tile` would take long. */
static ot_status report(const void *with, ot_diag *d)
{
    const ot_run *planned = with;
    ot_run run = *planned;
    ot_diag *before = run.model->diag;
    run.model->diag = d;
    ot_status s = ot_facts_from_plan(run.model->graph, run.selection.plan, &run.target,
                                     &run.options.plan, "in.ot", NULL, OT_FACTS_INSPECT,
                                     &run.facts);
    if (s == OT_OK) s = write_all(&run, d);
    ot_facts_free(run.facts);
    run.model->diag = before;
    return s;
}

static ot_status tile(const void *with, ot_diag *d)
{
    const tiling *t = with;
    ot_run run = {
        .diag = d,
        .source = {.path = in_folder(t->model)},
        .output = t->output ? in_folder(t->output) : NULL,
        .options = {.target = "cpu-generic",
                    .l2_bytes = 1 << 12,
                    .emit_engine = t->emit_engine,
                    .plan = {.goal = t->goal, .max_slowdown = 0.1, .force = true, .detail = true}}};
    ot_status s = ot_run_load(&run);
    if (s == OT_OK) s = ot_run_tile(&run, !t->output);
    if (s == OT_OK) s = write_all(&run, d);
    if (s == OT_OK && t->output) s = ot_run_save(&run);
    ot_run_free(&run);
    return s;
}

static void inspect_and_optimise(void **state)
{
    (void)state;
    static const tiling kinds[] = {{"in_small.ot", NULL, OT_GOAL_TIME, false},
                                   {"in_small.ot", NULL, OT_GOAL_MEMORY, false},
                                   {"in_small.ot", "out.onnx", OT_GOAL_TIME, false},
                                   {"in_small.ot", "out.ot", OT_GOAL_TIME, true}};
    static const char *const names[] = {"inspect", "inspect, goal memory", "optimise",
                                        "optimise --emit engine"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        walk_all(&(walk){.name = names[k], .run = tile, .with = &kinds[k], .same = equal_bytes});
}

static void reports_of_a_plan(void **state)
{
    (void)state;
    for (int goal = 0; goal < 2; goal++) {
        ot_diag d = {0};
        ot_run run = {.diag = &d,
                      .source = {.path = in_folder("in.ot")},
                      .options = {.target = "cpu-generic",
                                  .l2_bytes = 1 << 15,
                                  .plan = {.goal = goal ? OT_GOAL_MEMORY : OT_GOAL_TIME,
                                           .max_slowdown = 0.1,
                                           .detail = true}}};
        run.options.plan.force = !goal; /* with refusals, and without */
        if (ot_run_load(&run) != OT_OK || ot_run_tile(&run, true) != OT_OK)
            fail_msg("%s", d.message);
        ot_facts_free(run.facts);
        run.facts = NULL;
        walk_all(&(walk){.name = goal ? "reports, goal memory" : "reports",
                         .run = report,
                         .with = &run,
                         .dense = true,
                         .same = equal_bytes});
        ot_run_free(&run);
    }
}

static ot_status geometry(const void *with, ot_diag *d)
{
    (void)with;
    ot_run run = {.diag = d, .source = {.path = in_folder("in_small.ot")}};
    ot_geometry *g = NULL;
    ot_status s = ot_run_load(&run);
    if (s == OT_OK) s = ot_geometry_find(run.model, NULL, 0, &g);
    FILE *f = fopen(in_folder("out.json"), "w");
    assert_non_null(f);
    if (s == OT_OK) s = ot_geometry_json(g, f);
    if (s == OT_OK) s = ot_geometry_print(g, f);
    if (s == OT_OK) s = ot_geometry_bioimage(g, f);
    fclose(f);
    ot_geometry_free(g);
    ot_run_free(&run);
    return s;
}

static void geometry_of_a_model(void **state)
{
    (void)state;
    walk_all(&(walk){.name = "geometry", .run = geometry, .dense = true, .same = equal_bytes});
}

static const char pooled[] =
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,2,16,16]\n  init %s : float32[2] = [1, "
    "2]\n  init %b : float32[2] = [0, 1]\n  %n = InstanceNormalization(%x, %s, %b)\n  %p = "
    "GlobalAveragePool(%n)\n  %y = Mul(%n, %p)\n  output %y\n}\n";

static ot_status passes(const void *with, ot_diag *d)
{
    (void)with;
    ot_run run = {.diag = d, .source = {.path = in_folder("in_pooled.ot")}};
    ot_passes *p = NULL;
    ot_status s = ot_run_load(&run);
    if (s == OT_OK) s = ot_passes_write(run.model, NULL, 0, OT_STORE_ALWAYS, folder, &p);
    FILE *f = fopen(in_folder("out.json"), "w");
    assert_non_null(f);
    if (s == OT_OK) s = ot_passes_json(p, f);
    if (s == OT_OK) s = ot_passes_print(p, f);
    fclose(f);
    ot_passes_free(p);
    ot_run_free(&run);
    return s;
}

static void passes_of_a_model(void **state)
{
    (void)state;
    walk_all(&(walk){.name = "passes", .run = passes, .same = equal_bytes});
}

typedef struct packing {
    const char *input, *output;
    ot_mem_mode mode;
    int64_t capacity;
    bool analyse; /* and pad */
    const char *pairs;
} packing;

static ot_status pack(const void *with, ot_diag *d)
{
    const packing *p = with;
    ot_memory_results *r = NULL;
    ot_facts *facts = NULL;
    ot_memory_run run = {.path = in_folder(p->input),
                         .output = in_folder(p->output),
                         .svg = in_folder("out.svg"),
                         .pairs = p->pairs ? in_folder(p->pairs) : NULL,
                         .keep_maps = true,
                         .analyse = p->analyse,
                         .apply = p->analyse,
                         .footprint = !p->analyse && !strstr(p->input, ".csv"),
                         .plan = {.mode = p->mode, .capacity = p->capacity, .threads = 1}};
    OT_TRY(ot_plan_memory(&run, d, &r));
    r->seconds = 0; /* the only figure that differs from run to run */
    FILE *f = fopen(in_folder("out.json"), "w");
    assert_non_null(f);
    ot_status s = ot_facts_from_memory(r, d, &facts);
    if (s == OT_OK) s = ot_report_write(facts, in_folder("out.html"), d);
    if (s == OT_OK) s = ot_memory_results_json(r, f);
    if (s == OT_OK) s = ot_memory_results_print(r, 0, f);
    ot_facts_free(facts);
    fclose(f);
    ot_memory_results_free(r);
    return s;
}

static const char kernel[] =
    "kernel k target \"ascend-a2\" {\n  param x: 8x1024 i8 @gm\n  param y: 8x1024 i8 @gm\n  param "
    "z: 8x1024 i8 @gm\n"
    "  alloc acc: 64 f32 @ub\n  acc = vector.fill()\n  sum = for i in 0..8 carry (c = acc) {\n"
    "    alloc A: 1024 i8 @ub multi=2\n    alloc B: 512 i8 @ub\n    alloc C: 1024 i8 @ub\n    "
    "alloc D: 1024 i8 @ub multi=2\n"
    "    alloc next: 64 f32 @ub\n    alloc dead: 64 f32 @ub\n"
    "    load A <- x[i:i+1, 0:1024]\n    store y[i:i+1, 0:1024] <- A\n    B = vector.fill()\n    B "
    "= vector.relu(B)\n"
    "    C = vector.fill()\n    C = vector.relu(C)\n    load D <- z[i:i+1, 0:1024]\n    store "
    "z[i:i+1, 0:1024] <- D\n"
    "    next = vector.add(c, c)\n    dead = vector.fill()\n    yield (next)\n  }\n  sum = "
    "vector.exp(sum)\n}\n";

static const char turned[] =
    "kernel k target \"h200\" {\n  param x: 64x64 f32 @gm\n  param y: 64x64 f32 @gm\n  for i in "
    "0..2 {\n"
    "    alloc a: 32x32 f32 @shared multi=2\n    alloc b: 32x32 f32 @shared\n    load a <- x[1:33, "
    "32*i:32*i+32]\n"
    "    b = vector.transpose(a)\n    store y[0:32, 32*i:32*i+32] <- b\n  }\n}\n";

#define UB "memref<1024xi8, #hivm.address_space<ub>>"
#define GM "memref<1024xi8, #hivm.address_space<gm>>"
static const char mlir[] =
    "func.func @k(%x: " GM ", %y: " GM
    ") {\n  %c0 = arith.constant 0 : index\n  %c8 = arith.constant 8 : index\n"
    "  %c1 = arith.constant 1 : index\n  %s = memref.alloc() : " UB "\n  hivm.hir.load ins(%x : " GM
    ") outs(%s : " UB ")\n"
    "  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %s) -> (" UB
    ") {\n    %t = memref.alloc() : " UB "\n"
    "    annotation.mark %t {hivm.multi_buffer = 2 : i32} : " UB "\n    hivm.hir.load ins(%x : " GM
    ") outs(%t : " UB ")\n"
    "    hivm.hir.vadd ins(%a, %t : " UB ", " UB ") outs(%a : " UB ")\n    scf.yield %a : " UB
    "\n  }\n"
    "  hivm.hir.store ins(%r : " UB ") outs(%y : " GM ")\n  return\n}\n";

static const char table[] = "id,lower,upper,size,gaps\nb1,0,3,4,\nb2,3,9,4,\nb3,0,9,4,4-6\nb4,9,21,"
                            "4,\nb5,0,21,4,\nb6,2,7,9,\n";

static const char pairs_csv[] =
    "first,second,weight\nb1,b4,3\nb2,b4,1\nb1,b2,9\nb4,b6,2\nb1,b5,1\n";
static const char pairs_json[] =
    "{\"x\": [{}], \"pairs\": [{\"first\": \"b1\", \"second\": \"b4\", "
    "\"weight\": 3}, {\"first\": \"b2\", \"second\": \"b6\"}]}";

static void plan_memory(void **state)
{
    (void)state;
    static const packing cases[] = {{"in.tk", "out.tk", OT_MEM_AUTO, 3584, false, NULL},
                                    {"in.tk", "out.tk", OT_MEM_SEQUENTIAL, 0, false, NULL},
                                    {"in.tk", "out.tk", OT_MEM_REUSE, 3584, false, NULL},
                                    {"in.tk", "out.tk", OT_MEM_SEARCH, 0, false, NULL},
                                    {"in_turned.tk", "out.tk", OT_MEM_AUTO, 0, true, NULL},
                                    {"in.mlir", "out.mlir", OT_MEM_AUTO, 0, false, NULL},
                                    {"in.csv", "out.csv", OT_MEM_AUTO, 24, false, NULL},
                                    {"in.csv", "out.csv", OT_MEM_SEQUENTIAL, 0, false, NULL},
                                    {"in.csv", "out.csv", OT_MEM_REUSE, 0, false, NULL},
                                    {"in.csv", "out.csv", OT_MEM_SEARCH, 0, false, NULL},
                                    {"in.csv", "out.csv", OT_MEM_AUTO, 24, false, "in_pairs.csv"},
                                    {"in.csv", "out.csv", OT_MEM_AUTO, 0, false, "in_pairs.json"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char name[64];
        snprintf(name, sizeof name, "plan-memory %s, mode %s", cases[k].input,
                 ot_mem_mode_name(cases[k].mode));
        walk_all(&(walk){.name = name, .run = pack, .with = &cases[k], .same = equal_bytes});
    }
}

#ifdef OT_ENGINE
/* One array of float32, up to rounding: other kernels may have made it. */
static bool nearly(const char *want, const char *got, size_t n)
{
    size_t head = strlen("0.npy\n") + 128;
    if (n < head || memcmp(want, got, head) != 0) return false;
    for (size_t at = head; at + sizeof(float) <= n; at += sizeof(float)) {
        float a, b;
        memcpy(&a, want + at, sizeof a);
        memcpy(&b, got + at, sizeof b);
        if (!(fabsf(a - b) <= 1e-4f * (1 + fabsf(a)))) return false;
    }
    return true;
}

static ot_status run(const void *with, ot_diag *d)
{
    ot_run_request r = {.model = in_folder(with),
                        .output_dir = folder,
                        .trace = "/dev/null",
                        .seed = 1,
                        .repeat = 2,
                        .threads = 1,
                        .quiet = true};
    return ot_run_command(&r, d);
}

static void run_models(void **state)
{
    (void)state;
    ot_diag d = {0};
    if (tile(&(tiling){"in_run.ot", "in_tiled.onnx", OT_GOAL_TIME, true}, &d) != OT_OK)
        fail_msg("%s", d.message);
    size_t n;
    free(take_outputs(&n)); /* the reports of that */
    walk_all(&(walk){
        .name = "run", .run = run, .with = "in_run.ot", .may_do_without = true, .same = nearly});
    walk_all(&(walk){.name = "run, tiled",
                     .run = run,
                     .with = "in_tiled.onnx",
                     .may_do_without = true,
                     .same = nearly});
}
#endif

static int make_inputs(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    write_input("in.ot", network);
    write_input("in_small.ot", small);
    write_input("in_pooled.ot", pooled);
    write_input("in_run.ot", to_run);
    write_input("in.tk", kernel);
    write_input("in.csv", table);
    write_input("in_turned.tk", turned);
    write_input("in.mlir", mlir);
    write_input("in_pairs.csv", pairs_csv);
    write_input("in_pairs.json", pairs_json);
    return 0;
}

static int remove_inputs(void **state)
{
    (void)state;
    static const char *const names[] = {
        "in.ot",  "in_small.ot",  "in_pooled.ot", "in_run.ot",    "in_tiled.onnx", "in.tk",
        "in.csv", "in_turned.tk", "in.mlir",      "in_pairs.csv", "in_pairs.json"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) unlink(in_folder(names[k]));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inspect_and_optimise), cmocka_unit_test(reports_of_a_plan),
        cmocka_unit_test(geometry_of_a_model),  cmocka_unit_test(passes_of_a_model),
        cmocka_unit_test(plan_memory),
#ifdef OT_ENGINE
        cmocka_unit_test(run_models),
#endif
    };
    return cmocka_run_group_tests(tests, make_inputs, remove_inputs);
}
