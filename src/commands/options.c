/* The command line.
 *
 * OPTIONS[] below is the only list of options: the parser reads argv by it, --help prints it, and
 * defaults are its `dflt` texts run through the same parser, so that the help cannot tell another
 * story than the program.
 *
 *   {"goal", 0, "time|memory", GOAL, "time", offsetof(...), MODELS, "what to minimise"}
 *     name  short   value       kind  default   place       commands       help
 *
 * Commands and options that need parts this build does not have are in the tables too: they are
 * recognised and answered with what they need.
 */
#include "option_values.h"

static const struct {
    const char *name;
    ot_command command;
    const char *needs; /* part that is missing; NULL: the command works */
    const char *usage, *help;
} COMMANDS[] = {
    {"", OT_CMD_OPTIMISE, NULL, "MODEL -o OUT [options]", "tile the model where it pays"},
    {"inspect", OT_CMD_INSPECT, NULL, "inspect MODEL [options]", "regions, barriers, predicted figures; writes no model"},
    {"explain", OT_CMD_EXPLAIN, NULL, "explain MODEL [options]", "where memory goes, what tiling makes of it, what is in the way"},
    {"plan-memory", OT_CMD_PLAN_MEMORY, NULL, "plan-memory FILE [-o OUT]",
     "place the buffers of a kernel (.tk, .mlir) or a table (.csv)"},
    {"run", OT_CMD_RUN, RUN_NEEDS, "run MODEL [options]", "run a model natively"},
    {"bench", OT_CMD_BENCH, RUN_NEEDS, "bench MODEL [TILED]", "measure a model and its tiled form side by side"},
    {"calibrate", OT_CMD_CALIBRATE, RUN_NEEDS, "calibrate [-o T.xml]", "measure this machine"},
    {"run-kernel", OT_CMD_RUN_KERNEL, RUN_NEEDS, "run-kernel K.tk [options]", "plan a tile kernel (.tk) and run it"},
    {"devices", OT_CMD_DEVICES, NULL, "devices", "GPUs and the like that there are here, and why an API has none"},
    {"compare", OT_CMD_COMPARE, NULL, "compare A.xml B.xml -o OUT.html", "what changed between two reports"},
};
#define N_COMMANDS (sizeof COMMANDS / sizeof *COMMANDS)

static const char *command_name(ot_command command)
{
    for (size_t k = 0; k < N_COMMANDS; k++)
        if (COMMANDS[k].command == command) return COMMANDS[k].name;
    return "";
}

/* Commands that take an option, a bit each. */
enum {
    OPTIMISE = 1 << OT_CMD_OPTIMISE,
    MODELS = OPTIMISE | 1 << OT_CMD_INSPECT | 1 << OT_CMD_EXPLAIN,
    MEMORY = 1 << OT_CMD_PLAN_MEMORY,
    RUN = 1 << OT_CMD_RUN,
    BENCH = 1 << OT_CMD_BENCH,
    CALIBRATE = 1 << OT_CMD_CALIBRATE,
    COMPARE = 1 << OT_CMD_COMPARE,
    KERNEL = 1 << OT_CMD_RUN_KERNEL,
    DEVICES = 1 << OT_CMD_DEVICES,
    PLANNERS = MODELS | MEMORY,
    TILERS = MODELS | BENCH,
    RUNNERS = RUN | BENCH,
    WORKERS = PLANNERS | RUNNERS | CALIBRATE,
    EVERY = WORKERS | COMPARE | KERNEL | DEVICES,
    WRITERS = OPTIMISE | MEMORY | CALIBRATE | COMPARE
};

#define AT(member) offsetof(ot_options, member)
static const option OPTIONS[] = {
    {"output", 'o', "OUT", TEXT, NULL, AT(output), WRITERS, "file to write; - is stdout, .ot writes the text form"},
    {"target", 0, "NAME|FILE.xml", TEXT, "host", AT(target), PLANNERS | BENCH | KERNEL,
     "machine to plan for; a kernel that names one has that"},
    {"list-targets", 0, NULL, FLAG, NULL, AT(list_targets), EVERY, "list the targets and exit"},
    {"list-runtimes", 0, NULL, FLAG, NULL, AT(list_runtimes), EVERY, "list the runtimes and exit"},
    {"threads", 0, "N", COUNT, NULL, AT(threads), WORKERS,
     "workers that share a node (the target's own count when not given), a search or a run (1)"},
    {"json", 0, NULL, FLAG, NULL, AT(json), PLANNERS | RUNNERS | KERNEL | DEVICES, "results as JSON on stdout"},
    {"report", 0, "F.html|.xml|.json|.csv", REPORT, NULL, 0, PLANNERS | BENCH, "write a report of what was found; repeatable"},
    {"debug", 'd', "LETTERS", LETTERS, NULL, 0, PLANNERS, "dump passes to stderr (letters of " DUMP_LETTERS ")"},
    {"quiet", 'q', NULL, FLAG, NULL, AT(quiet), EVERY, "print no table"},
    {"verbose", 'v', NULL, FLAG, NULL, AT(verbose), EVERY, "print the time of each pass"},
    {"help", 'h', NULL, FLAG, NULL, AT(help), EVERY, "print this and exit"},
    {"version", 0, NULL, FLAG, NULL, AT(version), EVERY, "print the version and exit"},

    {"runtime", 0, "NAME", RUNTIME, NULL, AT(runtime), TILERS,
     "who runs the model, of --list-runtimes (the target's own when not given)"},
    {"l2", 0, "SIZE", SIZE, NULL, AT(l2_bytes), TILERS, "capacity of the fast memory, in place of the target's"},
    {"weight-memory", 0, "SIZE", SIZE, NULL, AT(weight_bytes), TILERS,
     "capacity of a memory for weights beside the fast one: what a region reads in every tile takes nothing of that then"},
    {"shape", 0, "INPUT=D,D,...", SHAPE, NULL, 0, MODELS | RUNNERS, "bind the dimensions of an input; repeatable"},
    {"keep-dynamic", 0, NULL, FLAG, NULL, AT(keep_dynamic), MODELS,
     "free dimensions stay free: one result for every size, planned at --design"},
    {"design", 0, "INPUT=D,D,...", DESIGN, NULL, 0, MODELS, "size of an input to plan for; repeatable, implies --keep-dynamic"},
    {"range", 0, "INPUT=D,LO:HI,...", RANGE, NULL, 0, MODELS,
     "sizes of an input (LO:HI, LO:HI:STEP or D) to prove the largest peak for; repeatable, implies --keep-dynamic"},
    {"goal", 0, "time|memory", GOAL, "time", AT(plan.goal), TILERS, "what to minimise (explain: memory)"},
    {"memory-budget", 0, "SIZE", SIZE, NULL, AT(plan.memory_budget), TILERS, "peak memory that must not be passed, else exit 3"},
    {"max-tensor", 0, "SIZE", SIZE, NULL, AT(plan.max_tensor), TILERS, "no tensor may be larger, whatever the goal, else exit 3"},
    {"max-slowdown", 0, "PCT", PERCENT, "10", AT(plan.max_slowdown), TILERS, "slowdown allowed with --goal memory, in percent"},
    {"emit", 0, "onnx|engine|ort-engine", EMIT, "onnx", AT(emit_engine), TILERS,
     "operators to write: standard ONNX, the engine's own (bench: engine), or one that runs in ONNX Runtime and holds these"},
    {"force", 0, NULL, FLAG, NULL, AT(plan.force), TILERS, "tile every legal region, even at a predicted loss"},
    {"bit-exact", 0, NULL, FLAG, NULL, AT(plan.bit_exact), TILERS,
     "nothing that adds up in another order than the runtime would: no sums, means or normalisations over cut axes"},
    {"verify", 0, NULL, VERIFY, NULL, AT(verify), OPTIMISE,
     "run original and result, compare the outputs; --verify=all: inner values, too"},
    {"dump-dir", 0, "D", TEXT, NULL, AT(dump_dir), MODELS, "write the graph after each pass to D/NN-pass.ot and .dot"},
    {"no-tie-break", 0, NULL, OFF_FLAG, NULL, AT(plan.tie_break), TILERS, NULL},
    {"no-streams", 0, NULL, FLAG, NULL, AT(plan.no_streams), TILERS, NULL},
    {"form", 0, "scan|unrolled|loop-peeled|loop-window|loop|prescan|stream", FORM, NULL, AT(plan.force_form), TILERS, NULL},

    {"input", 0, "NAME=F.npy|F.pb", INPUT, NULL, 0, RUNNERS | KERNEL,
     "array for an input; repeatable (random numbers for the others)"},
    {"seed", 0, "N", SEED, "0", AT(seed), RUNNERS, "of the random numbers"},
    {"output-dir", 0, "D", TEXT, NULL, AT(output_dir), RUN | KERNEL,
     "write the outputs to D/0.npy, D/1.npy... (kernels: D/NAME.npy)"},
    {"repeat", 0, "N", COUNT, NULL, AT(repeat), RUNNERS | KERNEL,
     "runs of each model (run: 1, bench: for some seconds), timed runs on a device"},
    {"reference", 0, NULL, FLAG, NULL, AT(reference), RUN, "slow and obvious kernels only"},
    {"trace", 0, "F.json", TEXT, NULL, AT(trace), RUNNERS | KERNEL,
     "write a trace of one more run (bench: of each model) for chrome://tracing"},
    {"stats", 0, NULL, FLAG, NULL, AT(stats), KERNEL, "what each memory held, what pipes did, what was never freed"},
    {"device", 0, "cpu|opencl|opencl:N", DEVICE, NULL, AT(device), KERNEL, "where to run: in the interpreter, on an OpenCL device"},
    {"emit-source", 0, "F.cl|F.cu", SOURCE, NULL, AT(source), KERNEL,
     "write the planned kernel as OpenCL C or CUDA C (and run it with --device only)"},
    {"work-items", 0, "N", ITEMS, NULL, AT(work_items), KERNEL, "of a device's work-group, to 1024 (1 on CPUs, else 64)"},

    {"size", 0, "NAME=N", EXTENT, NULL, 0, MEMORY | KERNEL, "value of a kernel's size (run-kernel: others follow from the inputs)"},
    {"capacity", 0, "SIZE", SIZE, NULL, AT(memory.capacity), MEMORY | KERNEL,
     "bytes that must do, else exit 3 (.tk, .mlir: of every scope but gm; .csv: the least without it)"},
    {"fast-memory", 0, "SIZE", SIZE, NULL, AT(memory.fast_capacity), MEMORY | KERNEL,
     "capacity of the scope l2 of a .tk, in place of the target's"},
    {"mode", 0, "auto|sequential|reuse|search", MODE, "auto", AT(memory.mode), MEMORY | KERNEL,
     "sequential: nothing shares; reuse: .tk by pipes, .csv largest first"},
    {"mem-plan-mode", 0, "both|local|workspace", MEM_PLAN, "both", AT(memory.part), MEMORY,
     "of .tk and .mlir: plan the memories of the device, buffers in global memory (workspaces), or both"},
    {"time-limit", 0, "S", TIME, NULL, AT(memory.time_limit), MEMORY | KERNEL,
     "seconds that a search may take (a fixed number of steps when not given)"},
    {"analyse", 0, NULL, FLAG, NULL, AT(analyse), MEMORY,
     "of .tk: bank conflicts, uncoalesced accesses, granules filled in part; what they cost, what would help"},
    {"apply", 0, NULL, FLAG, NULL, AT(apply), MEMORY, "with --analyse: pad the shared buffers in what is written"},
    {"svg", 0, "F.svg", TEXT, NULL, AT(svg), MEMORY, "draw the plan as a map: time by offset"},
    {"no-inplace", 0, NULL, FLAG, NULL, AT(memory.lifetimes.no_in_place), MEMORY | KERNEL, "no output takes the place of an input"},
    {"restrict-inplace", 0, NULL, FLAG, NULL, AT(memory.lifetimes.restrict_in_place), MEMORY | KERNEL,
     "in place only where the instruction set overlaps exactly"},
    {"workspace-reuse", 0, NULL, FLAG, NULL, AT(memory.workspace_reuse), MEMORY | KERNEL,
     "buffers in global memory may share, too"},
};
#define N_OPTIONS (sizeof OPTIONS / sizeof *OPTIONS)

/* ---- words ---- */

static ot_status set_defaults(ot_diag *d, ot_options *out)
{
    for (size_t k = 0; k < N_OPTIONS; k++) {
        const option *o = &OPTIONS[k];
        if (o->kind == OFF_FLAG) *(bool *)((char *)out + o->offset) = true;
        if (o->dflt) OT_TRY(option_set(d, o, o->dflt, out));
    }
    out->emit_given = false;
    return OT_OK;
}

/* Edits between two short words, for the hint. */
static size_t distance(const char *a, size_t n, const char *b)
{
    enum { MAX = 32 };
    size_t row[MAX], m = strlen(b);
    if (n >= MAX || m >= MAX) return MAX;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shift ? change : shift;
        }
    }
    return row[m];
}

static ot_status fail_unknown(ot_diag *d, const char *arg)
{
    const char *name = arg + strspn(arg, "-"), *best = NULL;
    size_t n = strcspn(name, "="), best_distance = 3;

    for (size_t k = 0; k < N_OPTIONS && n > 1; k++) {
        size_t e = distance(name, n, OPTIONS[k].name);
        if (strncmp(name, OPTIONS[k].name, n) == 0) e = 1;
        if (OPTIONS[k].help && e < best_distance) {
            best = OPTIONS[k].name;
            best_distance = e;
        }
    }
    if (best) return ot_fail(d, OT_E_USAGE, "unknown option '%.80s': did you mean '--%s'?", arg, best);
    return ot_fail(d, OT_E_USAGE, "unknown option '%.80s': see 'onnx-tile --help'", arg);
}

/* "--name", "--name=value", "-x", "-xVALUE". *value: text attached to the word, or NULL. */
static const option *find_option(const char *arg, const char **value)
{
    *value = NULL;
    if (arg[1] != '-') {
        for (size_t k = 0; k < N_OPTIONS; k++) {
            if (!OPTIONS[k].letter || OPTIONS[k].letter != arg[1]) continue;
            if (arg[2] && !OPTIONS[k].value) return NULL;
            if (arg[2]) *value = arg + 2;
            return &OPTIONS[k];
        }
        return NULL;
    }
    size_t n = strcspn(arg + 2, "=");
    for (size_t k = 0; k < N_OPTIONS; k++) {
        if (strlen(OPTIONS[k].name) != n || strncmp(OPTIONS[k].name, arg + 2, n) != 0) continue;
        if (arg[2 + n] == '=') *value = arg + 2 + n + 1;
        return &OPTIONS[k];
    }
    return NULL;
}

static ot_status take_positional(ot_diag *d, const char *arg, ot_options *o)
{
    const char *what = o->command == OT_CMD_PLAN_MEMORY || o->command == OT_CMD_RUN_KERNEL ? "file"
                       : o->command == OT_CMD_COMPARE                                      ? "report"
                                                                                           : "model";
    if (o->command == OT_CMD_CALIBRATE || o->command == OT_CMD_DEVICES)
        return ot_fail(d, OT_E_USAGE, "%s takes no file: '%.80s'", command_name(o->command), arg);
    if (!*arg) return ot_fail(d, OT_E_USAGE, "the %s's name is empty", what);
    if ((o->command == OT_CMD_BENCH || o->command == OT_CMD_COMPARE) && o->model && !o->second) {
        o->second = arg;
        return OT_OK;
    }
    if (o->second) return ot_fail(d, OT_E_USAGE, "two %ss at a time: '%.80s' is one more", what, arg);
    if (o->model) return ot_fail(d, OT_E_USAGE, "one %s at a time: '%.80s' and '%.80s'", what, o->model, arg);
    o->model = arg;
    return OT_OK;
}

/* An option of another command. */
static ot_status fail_elsewhere(ot_diag *d, const option *opt, ot_command command)
{
    if ((command == OT_CMD_INSPECT || command == OT_CMD_EXPLAIN) && opt->letter == 'o')
        return ot_fail(d, OT_E_USAGE, "'%s' writes no model: leave out -o", command_name(command));
    unsigned commands = opt->commands == KERNEL ? KERNEL : opt->commands & ~(unsigned)KERNEL; /* where to look for it first */
    for (size_t k = 1; k < N_COMMANDS; k++)
        if (commands == 1u << COMMANDS[k].command)
            return ot_fail(d, OT_E_USAGE, "--%s is for 'onnx-tile %s' only", opt->name, COMMANDS[k].name);
    if (commands == RUNNERS) return ot_fail(d, OT_E_USAGE, "--%s is for 'onnx-tile run' and 'bench' only", opt->name);
    return ot_fail(d, OT_E_USAGE, "--%s is not for '%s'", opt->name, command_name(command));
}

static ot_status parse_words(int argc, char **argv, int k, ot_diag *d, ot_options *o)
{
    bool only_positional = false;

    for (; k < argc; k++) {
        const char *arg = argv[k], *value;
        if (only_positional || arg[0] != '-' || !arg[1]) {
            OT_TRY(take_positional(d, arg, o));
            continue;
        }
        if (strcmp(arg, "--") == 0) {
            only_positional = true;
            continue;
        }
        const option *opt = find_option(arg, &value);
        if (!opt) return fail_unknown(d, arg);
        if (!(opt->commands & 1u << o->command)) return fail_elsewhere(d, opt, o->command);
        if (!opt->value && value && opt->kind != VERIFY) return ot_fail(d, OT_E_USAGE, "--%s takes no value", opt->name);
        if (opt->value && !value) {
            if (++k == argc) return ot_fail(d, OT_E_USAGE, "--%s needs a value: %s", opt->name, opt->value);
            value = argv[k];
        }
        OT_TRY(option_set(d, opt, value, o));
    }
    return OT_OK;
}

static bool is_stdout(const char *path) { return path && strcmp(path, "-") == 0; }

/* --emit and --runtime say the same twice, or one of them says it. */
static ot_status settle_runtime(ot_diag *d, ot_options *o)
{
    if (!o->runtime) return OT_OK;
    bool engine = strcmp(o->runtime, "engine") == 0;
    if (o->emit_given && o->emit_engine != engine)
        return ot_fail(d, OT_E_USAGE, "--runtime %s and --emit %s contradict each other: leave one out", o->runtime,
                       o->in_operator   ? "ort-engine"
                       : o->emit_engine ? "engine"
                                        : "onnx");
    o->emit_engine = engine;
    return OT_OK;
}

/* --verify runs the engine at one size. What else does not go with free dimensions the pipeline knows. */
static ot_status check_dynamic(ot_diag *d, const ot_options *o)
{
    if (!o->keep_dynamic || !o->verify) return OT_OK;
    return ot_fail(d, OT_E_USAGE,
                   "--keep-dynamic does not go with --verify, which is for one size: bind the dimensions with --shape instead");
}

/* What is for the interpreter, what for devices. */
static ot_status check_device(ot_diag *d, const ot_options *o)
{
    bool device = o->device && strcmp(o->device, "cpu") != 0;
    if (o->command != OT_CMD_RUN_KERNEL) return OT_OK;
    if (o->trace && (device || o->source))
        return ot_fail(d, OT_E_USAGE, "--trace is the interpreter's: leave out --device and --emit-source");
    if (o->repeat > 0 && !device) return ot_fail(d, OT_E_USAGE, "--repeat times a device: add --device opencl");
    if (o->work_items > 0 && !device && !o->source)
        return ot_fail(d, OT_E_USAGE, "--work-items is for devices: add --device opencl or --emit-source F.cl");
    if (o->source && o->device && !device)
        return ot_fail(d, OT_E_USAGE, "--emit-source writes a device's program, which --device cpu does not run: leave out one");
    return OT_OK;
}

/* What the words mean together. */
static ot_status check_together(ot_diag *d, const ot_options *o)
{
    if (o->help || o->version || o->list_targets || o->list_runtimes) return OT_OK;
    if (o->command == OT_CMD_CALIBRATE || o->command == OT_CMD_DEVICES) return OT_OK;
    if (!o->model && (o->command == OT_CMD_PLAN_MEMORY || o->command == OT_CMD_RUN_KERNEL))
        return ot_fail(d, OT_E_USAGE, "no file given: see 'onnx-tile --help'");
    if (o->command == OT_CMD_COMPARE) {
        if (!o->model || !o->second) return ot_fail(d, OT_E_USAGE, "compare needs two reports: compare A.xml B.xml -o OUT.html");
        return o->output ? OT_OK : ot_fail(d, OT_E_USAGE, "no output given: add -o OUT.html");
    }
    OT_TRY(check_device(d, o));
    if (!o->model) return ot_fail(d, OT_E_USAGE, "no model given: see 'onnx-tile --help'");
    if (o->command == OT_CMD_OPTIMISE && !o->output)
        return ot_fail(d, OT_E_USAGE, "no output given: add -o OUT, or use 'onnx-tile inspect'");
    if (o->json && is_stdout(o->output)) return ot_fail(d, OT_E_USAGE, "--json and -o - both want stdout");
    if (o->json && is_stdout(o->svg)) return ot_fail(d, OT_E_USAGE, "--json and --svg - both want stdout");
    if (is_stdout(o->trace) && !o->quiet) return ot_fail(d, OT_E_USAGE, "--trace - and the results both want stdout: add -q");
    if (is_stdout(o->trace) && o->json) return ot_fail(d, OT_E_USAGE, "--json and --trace - both want stdout");
    for (size_t k = 0; k < o->n_reports; k++)
        if ((o->output && strcmp(o->reports[k], o->output) == 0) || (o->svg && strcmp(o->reports[k], o->svg) == 0))
            return ot_fail(d, OT_E_USAGE, "--report and another option both want '%.80s'", o->reports[k]);
    if (o->apply && !o->analyse) return ot_fail(d, OT_E_USAGE, "--apply is for what --analyse finds: add --analyse");
    if (o->apply && !o->output) return ot_fail(d, OT_E_USAGE, "--apply writes the padded kernel: add -o OUT.tk");
    if (o->svg && o->output && strcmp(o->svg, o->output) == 0)
        return ot_fail(d, OT_E_USAGE, "-o and --svg both want '%.80s'", o->svg);
    return OT_OK;
}

static bool asks_help(int argc, char **argv)
{
    for (int k = 1; k < argc; k++)
        if (strcmp(argv[k], "--help") == 0 || strcmp(argv[k], "-h") == 0) return true;
    return false;
}

ot_status ot_options_parse(int argc, char **argv, ot_diag *d, ot_options *o)
{
    int first = 1;

    memset(o, 0, sizeof *o);
    o->arena = ot_arena_new();
    if (!o->arena) return ot_fail_nomem(d);
    OT_TRY(set_defaults(d, o));
    for (size_t k = 1; k < N_COMMANDS && argc > 1; k++) {
        if (strcmp(argv[1], COMMANDS[k].name) != 0) continue;
        o->command = COMMANDS[k].command;
        first = 2;
        if (o->command == OT_CMD_PLAN_MEMORY || o->command == OT_CMD_RUN_KERNEL)
            o->target = NULL; /* the kernel's own goes before the default */
        if (o->command == OT_CMD_BENCH) o->emit_engine = true;
        if (o->command == OT_CMD_EXPLAIN) o->plan.goal = OT_GOAL_MEMORY;
        if (!COMMANDS[k].needs) continue;
        if (!asks_help(argc, argv)) return option_needs(d, COMMANDS[k].name, COMMANDS[k].needs);
        o->help = true;
        return OT_OK;
    }
    OT_TRY(parse_words(argc, argv, first, d, o));
    OT_TRY(settle_runtime(d, o));
    OT_TRY(check_dynamic(d, o));
    return check_together(d, o);
}

void ot_options_free(ot_options *o) { ot_arena_free(o->arena); }

/* ---- help ---- */

/* Headings, and the commands that take what stands below one unless its line says otherwise. */
static const struct {
    unsigned commands;
    const char *heading;
} SECTIONS[] = {
    {EVERY, "options (sizes take K, M, G; a MODEL, FILE or OUT of - is stdin or stdout)"},
    {TILERS, "of tiling, inspect, explain and bench"},
    {RUNNERS, "of run and bench"},
    {MEMORY | KERNEL, "of plan-memory and run-kernel"},
};
#define N_SECTIONS (sizeof SECTIONS / sizeof *SECTIONS)

/* The heading of SECTIONS under which an option stands. */
static size_t section_of(const option *o)
{
    if ((o->commands & MODELS) && (o->commands & ~(unsigned)(TILERS | RUN))) return 0;
    return o->commands & MODELS ? 1 : o->commands & RUNNERS ? 2 : 3;
}

/* " (not inspect, run)": where the commands of an option are not those of its heading. */
static void help_exceptions(const char *word, unsigned commands, FILE *f)
{
    const char *before = word;
    if (!commands) return;
    fputs(" (", f);
    for (size_t k = 0; k < N_COMMANDS; k++) {
        if (!(commands & 1u << COMMANDS[k].command)) continue;
        fprintf(f, "%s%s", before, *COMMANDS[k].name ? COMMANDS[k].name : "tiling");
        before = ", ";
    }
    fputc(')', f);
}

static void help_options(size_t section, FILE *f)
{
    fprintf(f, "\n%s:\n", SECTIONS[section].heading);
    for (size_t k = 0; k < N_OPTIONS; k++) {
        const option *o = &OPTIONS[k];
        char word[64];
        if (!o->help || section_of(o) != section) continue;
        snprintf(word, sizeof word, "%s--%s%s%s", o->letter ? (char[]){'-', o->letter, ',', ' ', 0} : "    ", o->name,
                 o->value ? " " : "", o->value ? o->value : "");
        fprintf(f, "  %-30s %s", word, o->help);
        if (o->dflt) fprintf(f, " (default: %s)", o->dflt);
        help_exceptions("not ", SECTIONS[section].commands & ~o->commands, f);
        help_exceptions("also ", o->commands & ~SECTIONS[section].commands, f);
        fputc('\n', f);
    }
}

ot_status ot_options_help(FILE *f)
{
    fprintf(f, "onnx-tile: run chains of an ONNX model tile by tile: same results, less memory "
               "traffic\n\n");
    for (size_t k = 0; k < N_COMMANDS; k++)
        fprintf(f, "  onnx-tile %-26s %s%s%s%s\n", COMMANDS[k].usage, COMMANDS[k].help, COMMANDS[k].needs ? " (needs " : "",
                COMMANDS[k].needs ? COMMANDS[k].needs : "", COMMANDS[k].needs ? ")" : "");
    for (size_t k = 0; k < N_SECTIONS; k++) help_options(k, f);
    fprintf(f, "\nexit: 0 done, 1 the input is wrong, 2 usage, 3 a budget or limit cannot be kept, 4 the "
               "system failed\n");
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
