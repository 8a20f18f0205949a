/* The command line: words --> ot_options, by the tables of option_table.c. */
#include "option_table.h"

#include <unistd.h>

static const char *command_name(ot_command command)
{
    for (size_t k = 0; k < n_commands; k++)
        if (command_table[k].command == command) return command_table[k].name;
    return "";
}

/* ---- words ---- */

static ot_status set_defaults(ot_diag *d, ot_options *out)
{
    for (size_t k = 0; k < n_options; k++) {
        const option *o = &option_table[k];
        if (o->kind == OFF_FLAG) *(bool *)((char *)out + o->offset) = true;
        if (o->dflt) OT_TRY(option_set(d, o, o->dflt, out));
    }
    out->emit_given = out->goal_given = false;
    out->operators = OT_OPERATORS_NONE;
    out->gate.peak_regression = out->gate.time_regression = -1; /* not asked for; 0 would be */
    return OT_OK;
}

static ot_status fail_unknown(ot_diag *d, const char *arg)
{
    const char *name = arg + strspn(arg, "-");
    ot_nearest near = ot_nearest_to(name, strcspn(name, "="));
    for (size_t k = 0; k < n_options; k++)
        if (option_table[k].help)
            ot_nearest_try(&near, option_table[k].name, strlen(option_table[k].name));
    if (!near.best)
        return ot_fail(d, OT_E_USAGE, "unknown option '%.80s': see 'onnx-tile --help'", arg);
    return ot_fail(d, OT_E_USAGE, "unknown option '%.80s': did you mean '--%s'?", arg, near.best);
}

/* "--name", "--name=value", "-x", "-xVALUE". *value: text attached to the word, or NULL. */
static const option *find_option(const char *arg, const char **value)
{
    *value = NULL;
    if (arg[1] != '-') {
        for (size_t k = 0; k < n_options; k++) {
            if (!option_table[k].letter || option_table[k].letter != arg[1]) continue;
            if (arg[2] && !option_table[k].value) return NULL;
            if (arg[2]) *value = arg + 2;
            return &option_table[k];
        }
        return NULL;
    }
    size_t n = strcspn(arg + 2, "=");
    for (size_t k = 0; k < n_options; k++) {
        if (strlen(option_table[k].name) != n || strncmp(option_table[k].name, arg + 2, n) != 0)
            continue;
        if (arg[2 + n] == '=') *value = arg + 2 + n + 1;
        return &option_table[k];
    }
    return NULL;
}

static ot_status take_positional(ot_diag *d, const char *arg, ot_options *o)
{
    const char *what = o->command == OT_CMD_PLAN_MEMORY || o->command == OT_CMD_RUN_KERNEL ? "file"
                       : o->command == OT_CMD_COMPARE ? "report"
                                                      : "model";
    if (o->command == OT_CMD_CALIBRATE || o->command == OT_CMD_DEVICES)
        return ot_fail(d, OT_E_USAGE, "%s takes no file: '%.80s'", command_name(o->command), arg);
    if (!*arg) return ot_fail(d, OT_E_USAGE, "the %s's name is empty", what);
    if ((o->command == OT_CMD_BENCH || o->command == OT_CMD_COMPARE) && o->model && !o->second) {
        o->second = arg;
        return OT_OK;
    }
    if (o->second)
        return ot_fail(d, OT_E_USAGE, "two %ss at a time: '%.80s' is one more", what, arg);
    if (o->model)
        return ot_fail(
            d, OT_E_USAGE, "one %s at a time: '%.80s' and '%.80s'%s", what, o->model, arg,
            o->command == OT_CMD_OPTIMISE && !o->output ? "; -o OUT says where to write" : "");
    o->model = arg;
    return OT_OK;
}

/* An option of another command. */
static ot_status fail_elsewhere(ot_diag *d, const option *opt, ot_command command)
{
    if ((command == OT_CMD_INSPECT || command == OT_CMD_EXPLAIN || command == OT_CMD_GATE) &&
        opt->letter == 'o')
        return ot_fail(d, OT_E_USAGE, "'%s' writes no model: leave out -o", command_name(command));
    /* where to look for it first */
    unsigned commands = opt->commands == KERNEL ? KERNEL : opt->commands & ~(unsigned)KERNEL;
    for (size_t k = 1; k < n_commands; k++)
        if (commands == 1u << command_table[k].command)
            return ot_fail(d, OT_E_USAGE, "--%s is for 'onnx-tile %s' only", opt->name,
                           command_table[k].name);
    if (commands == RUNNERS)
        return ot_fail(d, OT_E_USAGE, "--%s is for 'onnx-tile run' and 'bench' only", opt->name);
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
        if (!opt->value && value && !option_value_may_lack(opt))
            return ot_fail(d, OT_E_USAGE, "--%s takes no value", opt->name);
        if (opt->value && !value) {
            if (++k == argc)
                return ot_fail(d, OT_E_USAGE, "--%s needs a value: %s", opt->name, opt->value);
            value = argv[k];
        }
        OT_TRY(option_set(d, opt, value, o));
    }
    return OT_OK;
}

static bool is_stdout(const char *path) { return path && strcmp(path, "-") == 0; }

static bool names_device(const ot_options *o) { return o->device && strcmp(o->device, "cpu") != 0; }

/* --emit and --runtime say the same twice, or one of them says it; what bench tiles for a device
 * is for the engine there. */
static ot_status choose_runtime(ot_diag *d, ot_options *o)
{
    if (o->command == OT_CMD_BENCH && names_device(o) && o->emit_engine && !o->runtime)
        o->runtime = ot_runtime_engine_device.name;
    if (!o->runtime) return OT_OK;
    const ot_runtime *r = ot_runtime_named(o->runtime);
    const bool engine = ot_runtime_in_classes(r);
    if (o->emit_given && (o->emit_engine != engine || (o->in_operator && !r->gives_form)))
        return ot_fail(d, OT_E_USAGE,
                       "--runtime %s and --emit %s contradict each other: leave one out",
                       o->runtime,
                       o->in_operator   ? "ort-engine"
                       : o->emit_engine ? "engine"
                                        : "onnx");
    o->emit_engine = engine;
    return OT_OK;
}

/* What becomes operators is asked of --emit ort-engine alone. */
static ot_status choose_operators(ot_diag *d, ot_options *o)
{
    if (o->operators != OT_OPERATORS_NONE && !o->in_operator)
        return ot_fail(d, OT_E_USAGE,
                       "--ort-operators is for operators of ONNX Runtime: add --emit ort-engine");
    if (o->in_operator && o->operators == OT_OPERATORS_NONE) o->operators = OT_OPERATORS_WHOLE;
    return OT_OK;
}

/* --emit step and --axis go together, and nothing is tiled then. */
static ot_status check_step(ot_diag *d, const ot_options *o)
{
    if (o->step.input && !o->emit_step)
        return ot_fail(d, OT_E_USAGE, "--axis is for steps along an axis: add --emit step");
    if (!o->emit_step) return OT_OK;
    if (o->command != OT_CMD_OPTIMISE)
        return ot_fail(d, OT_E_USAGE,
                       "--emit step writes a model: it is for onnx-tile MODEL -o OUT");
    if (!o->step.input)
        return ot_fail(d, OT_E_USAGE, "--emit step needs --axis INPUT:AXIS, the axis of its rows");
    if (o->runtime || o->verify || o->keep_dynamic || o->n_reports > 0 || o->plan.memory_budget > 0)
        return ot_fail(d, OT_E_USAGE,
                       "--emit step tiles nothing: leave out --runtime, --verify, --report, sizes "
                       "to plan for and budgets");
    return OT_OK;
}

static ot_status check_calibrate(ot_diag *d, const ot_options *o)
{
    if (!names_device(o)) return OT_OK;
    if (!o->output)
        return ot_fail(
            d, OT_E_USAGE,
            "the cache is for this machine: add -o T.xml for what is measured of --device %s",
            o->device);
    return o->threads ? ot_fail(d, OT_E_USAGE,
                                "--threads are of this machine: leave them out with --device %s",
                                o->device)
                      : OT_OK;
}

/* What is for the interpreter, what for devices. */
static ot_status check_device(ot_diag *d, const ot_options *o)
{
    bool device = names_device(o);
    if (o->device_memory > 0 && !device)
        return ot_fail(d, OT_E_USAGE,
                       "--device-memory is a device's: add --device opencl (here, --memory-budget "
                       "plans for one)");
    if (o->device_check && !device)
        return ot_fail(d, OT_E_USAGE, "--device-check looks at a device: add --device opencl");
    if (o->command != OT_CMD_RUN_KERNEL) return OT_OK;
    if (o->trace && (device || o->source))
        return ot_fail(d, OT_E_USAGE,
                       "--trace is the interpreter's: leave out --device and --emit-source");
    if (o->repeat > 0 && !device)
        return ot_fail(d, OT_E_USAGE, "--repeat times a device: add --device opencl");
    if (o->tune && !device)
        return ot_fail(d, OT_E_USAGE, "--tune measures on a device: add --device opencl");
    if (o->work_items > 0 && !device && !o->source)
        return ot_fail(d, OT_E_USAGE,
                       "--work-items is for devices: add --device opencl or --emit-source F.cl");
    if (o->source && o->device && !device)
        return ot_fail(d, OT_E_USAGE,
                       "--emit-source writes a device's program, which --device cpu does not run: "
                       "leave out one");
    return OT_OK;
}

static ot_status check_gate(ot_diag *d, ot_options *o)
{
    o->gate.peak = o->max_peak ? (double)o->max_peak : OT_ABSENT;
    o->gate.process = o->max_process ? (double)o->max_process : OT_ABSENT;
    o->gate.growth = o->max_growth ? (double)o->max_growth : OT_ABSENT;
    if (!ot_gate_asks(&o->gate))
        return ot_fail(d, OT_E_USAGE, "gate needs a limit: see 'onnx-tile --help=limits'");
    if (ot_gate_needs_baseline(&o->gate) && !o->baseline)
        return ot_fail(d, OT_E_USAGE,
                       "a limit on regressions needs a baseline: add --baseline F.xml");
    if (!ot_gate_needs_baseline(&o->gate) && o->baseline)
        return ot_fail(
            d, OT_E_USAGE,
            "--baseline is for --max-time-regression and --max-peak-regression: add one of them");
    return OT_OK;
}

/* What the words mean together. */
static ot_status check_together(ot_diag *d, ot_options *o)
{
    if (ot_options_ask(o)) return OT_OK;
    if (o->command == OT_CMD_CALIBRATE) return check_calibrate(d, o);
    if (o->n_outputs > 0 && o->output_dir)
        return ot_fail(d, OT_E_USAGE,
                       "--output names a file of each output, --output-dir a folder of all: leave "
                       "one out");
    if (o->command == OT_CMD_DEVICES) return OT_OK;
    if (!o->model && (o->command == OT_CMD_PLAN_MEMORY || o->command == OT_CMD_RUN_KERNEL))
        return ot_fail(d, OT_E_USAGE, "no file given: see 'onnx-tile --help'");
    if (o->command == OT_CMD_COMPARE) {
        if (!o->model || !o->second)
            return ot_fail(d, OT_E_USAGE,
                           "compare needs two reports: compare A.xml B.xml -o OUT.html");
        return o->output || o->markdown
                   ? OT_OK
                   : ot_fail(d, OT_E_USAGE, "no output given: add -o OUT.html, or --markdown");
    }
    OT_TRY(check_device(d, o));
    if (!o->model) return ot_fail(d, OT_E_USAGE, "no model given: see 'onnx-tile --help'");
    if (o->command == OT_CMD_GATE) OT_TRY(check_gate(d, o));
    if (o->table && (o->json || o->quiet))
        return ot_fail(d, OT_E_USAGE,
                       "--table is for people: leave it out with --%s; --report F.json has "
                       "a list of nodes",
                       o->json ? "json" : "quiet");
    if (o->command == OT_CMD_OPTIMISE && !o->output)
        return ot_fail(d, OT_E_USAGE, "no output given: add -o OUT, or use 'onnx-tile inspect'");
    if (o->command == OT_CMD_PASSES && !o->output)
        return ot_fail(d, OT_E_USAGE, "no folder given: add -o DIR");
    if (o->command == OT_CMD_PASSES && is_stdout(o->output))
        return ot_fail(d, OT_E_USAGE, "passes writes several models: -o names a folder");
    OT_TRY(check_step(d, o));
    if (o->json && o->bioimage)
        return ot_fail(d, OT_E_USAGE, "--json and --bioimage both want stdout");
    if (o->json && is_stdout(o->output))
        return ot_fail(d, OT_E_USAGE, "--json and -o - both want stdout");
    if (o->json && is_stdout(o->svg))
        return ot_fail(d, OT_E_USAGE, "--json and --svg - both want stdout");
    if (is_stdout(o->trace) && !o->quiet)
        return ot_fail(d, OT_E_USAGE, "--trace - and the results both want stdout: add -q");
    if (is_stdout(o->trace) && o->json)
        return ot_fail(d, OT_E_USAGE, "--json and --trace - both want stdout");
    for (size_t k = 0; k < o->n_reports; k++)
        if ((o->output && strcmp(o->reports[k], o->output) == 0) ||
            (o->svg && strcmp(o->reports[k], o->svg) == 0))
            return ot_fail(d, OT_E_USAGE, "--report and another option both want '%.80s'",
                           o->reports[k]);
    if (o->apply && !o->analyse)
        return ot_fail(d, OT_E_USAGE, "--apply is for what --analyse finds: add --analyse");
    if (o->apply && !o->output)
        return ot_fail(d, OT_E_USAGE, "--apply writes the padded kernel: add -o OUT.tk");
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

/* The command that argv[1] names, where it names one. *first: the word after it. */
static ot_status take_command(int argc, char **argv, ot_diag *d, ot_options *o, int *first)
{
    *first = 1;
    for (size_t k = 1; k < n_commands && argc > 1; k++) {
        if (strcmp(argv[1], command_table[k].name) != 0) continue;
        o->command = command_table[k].command;
        *first = 2;
        if (o->command == OT_CMD_PLAN_MEMORY || o->command == OT_CMD_RUN_KERNEL)
            o->target = NULL; /* the kernel's own goes before the default */
        if (o->command == OT_CMD_BENCH) o->emit_engine = true;
        if (o->command == OT_CMD_EXPLAIN) o->plan.goal = OT_GOAL_MEMORY;
        if (!command_table[k].needs) return OT_OK;
        if (!asks_help(argc, argv))
            return option_needs(d, command_table[k].name, command_table[k].needs);
        o->help = true;
        return OT_OK;
    }
    return OT_OK;
}

/* The command that a first word, no file, was to be; NULL: it is near none. */
static const char *meant_command(const char *word)
{
    ot_nearest near = ot_nearest_to(word, strlen(word));
    if (*word == '-' || strpbrk(word, "./") || access(word, F_OK) == 0) return NULL;
    for (size_t k = 1; k < n_commands; k++)
        ot_nearest_try(&near, command_table[k].name, strlen(command_table[k].name));
    return near.best;
}

static ot_status parse_all(int argc, char **argv, ot_diag *d, ot_options *o)
{
    int first;
    OT_TRY(set_defaults(d, o));
    OT_TRY(take_command(argc, argv, d, o, &first));
    if (o->help) return OT_OK;
    OT_TRY(parse_words(argc, argv, first, d, o));
    OT_TRY(choose_runtime(d, o));
    OT_TRY(choose_operators(d, o));
    return check_together(d, o);
}

/* "help" and "help TOPIC" are --help and --help=TOPIC, unless a file is called that. */
static bool asks_in_a_word(int argc, char **argv)
{
    return argc >= 2 && argc <= 3 && strcmp(argv[1], "help") == 0 && access("help", F_OK) != 0;
}

ot_status ot_options_parse(int argc, char **argv, ot_diag *d, ot_options *o)
{
    memset(o, 0, sizeof *o);
    o->arena = ot_arena_new();
    if (!o->arena) return ot_fail_nomem(d);
    if (asks_in_a_word(argc, argv)) {
        o->help = true;
        o->help_topic = argc == 3 ? argv[2] : NULL;
        return OT_OK;
    }
    ot_status s = parse_all(argc, argv, d, o);
    if (s != OT_E_USAGE || o->command != OT_CMD_OPTIMISE) return s;
    const char *meant = meant_command(argc > 1 ? argv[1] : "");
    if (!meant) return s;
    *d = (ot_diag){0}; /* what follows from that is not the reason */
    return ot_fail(d, OT_E_USAGE, "unknown command '%.80s': did you mean '%s'?", argv[1], meant);
}

bool ot_options_ask(const ot_options *o)
{
    return o->help || o->version || o->list_targets || o->list_runtimes || o->completion != NULL ||
           o->dump_target != NULL;
}

void ot_options_free(ot_options *o) { ot_arena_free(o->arena); }
