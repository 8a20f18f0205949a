/* The tables of commands and options.
 *
 *   {"goal", 0, "time|memory", GOAL, "time", offsetof(...), TILERS, AIMS, "what to minimise"}
 *     name  short   value       kind  default   place       commands topic  help
 *
 * Defaults are texts that go through the same parser as what is given. Commands and options that
 * need parts this build does not have are in the tables too: they are recognised and answered
 * with what they need.
 */
#include "option_table.h"

const command_row command_table[] = {
    {"", OT_CMD_OPTIMISE, NULL, "MODEL -o OUT", "tile the model where it pays"},
    {"inspect", OT_CMD_INSPECT, NULL, "inspect MODEL", "regions, barriers, predicted figures"},
    {"explain", OT_CMD_EXPLAIN, NULL, "explain MODEL", "where memory goes, and what would help"},
    {"plan-memory", OT_CMD_PLAN_MEMORY, NULL, "plan-memory FILE",
     "place buffers: of .tk, .mlir or .csv"},
    {"run", OT_CMD_RUN, RUN_NEEDS, "run MODEL", "run a model natively"},
    {"bench", OT_CMD_BENCH, RUN_NEEDS, "bench MODEL [TILED]",
     "measure a model beside its tiled form"},
    {"calibrate", OT_CMD_CALIBRATE, RUN_NEEDS, "calibrate [-o T.xml]",
     "measure this machine or a device"},
    {"run-kernel", OT_CMD_RUN_KERNEL, RUN_NEEDS, "run-kernel K.tk",
     "plan a tile kernel and run it"},
    {"gate", OT_CMD_GATE, NULL, "gate MODEL|R.xml",
     "exit 3 where figures pass limits or a baseline"},
    {"geometry", OT_CMD_GEOMETRY, NULL, "geometry MODEL",
     "halo, alignment and scale for exact crops"},
    {"passes", OT_CMD_PASSES, NULL, "passes MODEL -o DIR",
     "norms and global pools over crops, in passes"},
    {"devices", OT_CMD_DEVICES, NULL, "devices", "GPUs and the like that are here"},
    {"compare", OT_CMD_COMPARE, NULL, "compare A.xml B.xml", "what changed between reports"},
};
const size_t n_commands = sizeof command_table / sizeof *command_table;

const option_topic topic_table[TOPIC_COUNT] = {
    [RESULTS] = {"results", "files, reports and what is printed", EVERY},
    [MACHINE] = {"machine", "where the model runs", TILERS},
    [AIMS] = {"aims", "what to plan for and write", TILERS},
    [LIMITS] = {"limits", "what must hold", GATE},
    [SIZES] = {"sizes", "dimensions of inputs", MODELS},
    [RUNNING] = {"running", "runs and measurements", RUNNERS | KERNEL},
    [BUFFERS] = {"buffers", "placing buffers", MEMORY | KERNEL},
    [ANSWERS] = {"answers", "about the program", EVERY},
};

#define AT(member) offsetof(ot_options, member)
const option option_table[] = {
    {"output", 'o', "OUT", OUTPUT, NULL, 0, WRITERS | RUN, RESULTS,
     "file to write; - is stdout; of passes: a folder"},
    {"report", 0, "F.html|.xml|.json|.csv", REPORT, NULL, 0, PLANNERS | BENCH, RESULTS,
     "write a report of what was found; repeatable"},
    {"json", 0, NULL, FLAG, NULL, AT(json),
     PLANNERS | RUNNERS | KERNEL | DEVICES | GEOMETRY | PASSES, RESULTS,
     "results as JSON on stdout"},
    {"bioimage", 0, NULL, FLAG, NULL, AT(bioimage), GEOMETRY, RESULTS,
     "the fields of bioimage.io: min, step, halo, scale, offset"},
    {"dump-dir", 0, "D", FOLDER, NULL, AT(dump_dir), MODELS, RESULTS,
     "write the graph after each pass to D/NN-pass.ot and .dot"},
    {"table", 0, NULL, FLAG, NULL, AT(table), INSPECT, RESULTS,
     "a line an operator: MACs, memory, time"},
    {"markdown", 0, NULL, FLAG, NULL, AT(markdown), COMPARE, RESULTS,
     "a summary for a comment on a change, to stdout or -o OUT.md"},
    {"svg", 0, "F.svg", FILENAME, NULL, AT(svg), MEMORY, RESULTS,
     "the plan as a map: time by offset"},
    {"debug", 'd', "LETTERS", LETTERS, NULL, 0, PLANNERS, RESULTS,
     "dump passes to stderr (letters of " DUMP_LETTERS ")"},
    {"single-file", 0, NULL, FLAG, NULL, AT(plan.single_file), TILERS, RESULTS,
     "weights stay in the model's file (goal memory maps a file of them)"},
    {"quiet", 'q', NULL, FLAG, NULL, AT(quiet), EVERY, RESULTS, "print no table"},
    {"verbose", 'v', NULL, FLAG, NULL, AT(verbose), EVERY, RESULTS, "print the time of each pass"},

    {"target", 0, "NAME|FILE.xml", TARGET, "host", AT(target), PLANNERS | BENCH | KERNEL, MACHINE,
     "machine to plan for; a kernel that names one has that"},
    {"runtime", 0, "NAME", RUNTIME, NULL, AT(runtime), TILERS, MACHINE,
     "who runs the model, of --list-runtimes (the target's own when not given)"},
    {"threads", 0, "N", COUNT, NULL, AT(threads), WORKERS, MACHINE,
     "workers that share a node (the target's own count when not given), a search or a run (1)"},
    {"l2", 0, "SIZE", SIZE, NULL, AT(l2_bytes), TILERS, MACHINE,
     "capacity of the fast memory, in place of the target's"},
    {"weight-memory", 0, "SIZE", SIZE, NULL, AT(weight_bytes), TILERS, MACHINE,
     "capacity of a memory for weights beside the fast one: what a region reads in every tile "
     "takes nothing of that then"},
    {"device", 0, "host|opencl|vulkan|cuda|NAME:N", DEVICE, NULL, AT(device),
     KERNEL | RUNNERS | CALIBRATE, MACHINE,
     "where to run: here (cpu, too), on a device of OpenCL or, models, of Vulkan or CUDA"},
    {"device-memory", 0, "SIZE", SIZE, NULL, AT(device_memory), RUNNERS, MACHINE,
     "memory that the model may take of --device, else exit 3 (default: all of it)"},

    {"goal", 0, "time|memory", GOAL, "time", AT(plan.goal), TILERS | RUN, AIMS,
     "what to minimise (explain: memory; run: no plan)"},
    {"memory-budget", 0, "SIZE", SIZE, NULL, AT(plan.memory_budget), TILERS, AIMS,
     "memory that the whole process must keep to, by prediction, else exit 3"},
    {"best-effort", 0, NULL, FLAG, NULL, AT(plan.best_effort), TILERS, AIMS,
     "where a budget is not surely kept: the least"},
    {"max-tensor", 0, "SIZE", SIZE, NULL, AT(plan.max_tensor), TILERS, AIMS,
     "no tensor may be larger, else exit 3"},
    {"max-slowdown", 0, "PCT", PERCENT, "10", AT(plan.max_slowdown), TILERS, AIMS,
     "slowdown allowed with --goal memory, in percent"},
    {"emit", 0, "onnx|engine|ort-engine|step", EMIT, "onnx", AT(emit_engine), TILERS, AIMS,
     "operators to write: standard ONNX, the engine's own (bench: engine), one of ONNX Runtime "
     "that holds these; step: see --axis"},
    {"ort-operators", 0, "whole|parts|regions", ORT_OPERATORS, "whole", AT(operators), TILERS, AIMS,
     "of --emit ort-engine: all in one operator; what the engine has, the rest is ONNX Runtime's; "
     "or tiled regions alone"},
    {"force", 0, NULL, FLAG, NULL, AT(plan.force), TILERS, AIMS,
     "tile every legal region, even at a predicted loss"},
    {"bit-exact", 0, NULL, FLAG, NULL, AT(plan.bit_exact), TILERS, AIMS,
     "nothing that adds up in another order than the runtime would: no sums, means or "
     "normalisations over cut axes"},
    {"verify", 0, NULL, VERIFY, NULL, AT(verify), OPTIMISE, AIMS,
     "run original and result, compare the outputs; --verify=all: inner values, too"},
    {"no-tie-break", 0, NULL, OFF_FLAG, NULL, AT(plan.tie_break), TILERS, AIMS, NULL},
    {"tie-glpk", 0, NULL, FLAG, NULL, AT(plan.tie_glpk), TILERS, AIMS, NULL},
    {"no-streams", 0, NULL, FLAG, NULL, AT(plan.no_streams), TILERS, AIMS, NULL},
    {"form", 0, "scan|unrolled|loop-peeled|loop|prescan|stream", FORM, NULL, AT(plan.force_form),
     TILERS, AIMS, NULL},

    {"max-peak", 0, "SIZE", SIZE, NULL, AT(max_peak), GATE, LIMITS,
     "most bytes of tensors that may live at one time, tiled"},
    {"max-process", 0, "SIZE", SIZE, NULL, AT(max_process), GATE, LIMITS,
     "most bytes that the whole process may take, from loading the model to the last run"},
    {"max-growth", 0, "SIZE", SIZE, NULL, AT(max_growth), GATE, LIMITS,
     "most bytes of peak resident growth: what running adds to the process"},
    {"max-peak-regression", 0, "PCT", PERCENT, NULL, AT(gate.peak_regression), GATE, LIMITS,
     "peak memory above the baseline's, in percent"},
    {"max-time-regression", 0, "PCT", PERCENT, NULL, AT(gate.time_regression), GATE, LIMITS,
     "time above the baseline's, in percent"},
    {"baseline", 0, "F.xml", FILENAME, NULL, AT(baseline), GATE, LIMITS,
     "report (--report F.xml) to compare with, of the same target and runtime"},

    {"shape", 0, "INPUT=D,D,...", SHAPE, NULL, 0, MODELS | RUNNERS | GEOMETRY | PASSES, SIZES,
     "bind the dimensions of an input; repeatable"},
    {"store", 0, "never|auto|always", STORE, "never", AT(store), PASSES, SIZES,
     "values that passes write for later ones: auto where that costs less"},
    {"keep-dynamic", 0, NULL, FLAG, NULL, AT(keep_dynamic), MODELS, SIZES,
     "dynamic dimensions stay dynamic: one result for every size, planned at --design; so by "
     "default, "
     "where nothing is said of sizes"},
    {"design", 0, "INPUT=D,D,...", DESIGN, NULL, 0, MODELS, SIZES,
     "size of an input to plan for; repeatable, implies --keep-dynamic"},
    {"range", 0, "INPUT=D,LO:HI,...", RANGE, NULL, 0, MODELS, SIZES,
     "sizes of an input (LO:HI, LO:HI:STEP or D) to prove the largest peak for; repeatable, "
     "implies --keep-dynamic"},
    {"axis", 0, "INPUT:AXIS[=K]", AXIS, NULL, AT(step), OPTIMISE, SIZES,
     "of --emit step: the axis that never ends, and how many rows of it a step takes (default: as "
     "few as the model can be cut in)"},
    {"size", 0, "NAME=N", EXTENT, NULL, 0, MEMORY | KERNEL, SIZES,
     "value of a kernel's size (run-kernel: others follow from the inputs)"},

    {"input", 0, "NAME=F.npy|F.raw|F.pb", INPUT, NULL, 0, RUNNERS | KERNEL, RUNNING,
     "array for an input; repeatable"},
    {"input-type", 0, "TYPE|INPUT=TYPE", INPUT_TYPE, NULL, 0, RUN, RUNNING,
     "an input comes as this type (uint8) and is converted tile by tile; repeatable"},
    {"scale", 0, "X|INPUT=X", SCALE, NULL, 0, RUN, RUNNING,
     "an input is multiplied by this (1/255), converted; repeatable"},
    {"seed", 0, "N", SEED, "0", AT(seed), RUNNERS, RUNNING, "of the random numbers"},
    {"output-dir", 0, "D", FOLDER, NULL, AT(output_dir), RUN | KERNEL, RUNNING,
     "write D/0.npy, ... (kernels: D/NAME.npy)"},
    {"repeat", 0, "N", COUNT, NULL, AT(repeat), RUNNERS | KERNEL, RUNNING,
     "runs of each model (run: 1, bench: for some seconds), timed runs on a device"},
    {"reference", 0, NULL, FLAG, NULL, AT(reference), RUN, RUNNING,
     "obvious, slow implementations of operators"},
    {"as-is", 0, NULL, FLAG, NULL, AT(as_is), RUNNERS, RUNNING, "keep tiles of other runtimes"},
    {"no-plan", 0, NULL, FLAG, NULL, AT(no_plan), RUNNERS, RUNNING,
     "such files run without any tiles"},
    {"trace", 0, "F.json", FILENAME, NULL, AT(trace), RUNNERS | KERNEL, RUNNING,
     "write a trace of one more run (bench: of each model) for chrome://tracing"},
    {"stats", 0, NULL, FLAG, NULL, AT(stats), KERNEL, RUNNING,
     "what each memory held, what pipes did, what was never freed"},
    {"emit-source", 0, "F.cl|F.cu", SOURCE, NULL, AT(source), KERNEL, RUNNING,
     "write the planned kernel as OpenCL C or CUDA C (and run it with --device only)"},
    {"work-items", 0, "N", ITEMS, NULL, AT(work_items), KERNEL, RUNNING,
     "of a device's work-group, to 1024 (1 on CPUs, else 64)"},

    {"capacity", 0, "SIZE", SIZE, NULL, AT(memory.capacity), MEMORY | KERNEL, BUFFERS,
     "bytes that must do, else exit 3 (.tk, .mlir: of every scope but gm; .csv: the least without "
     "it)"},
    {"fast-memory", 0, "SIZE", SIZE, NULL, AT(memory.fast_capacity), MEMORY | KERNEL, BUFFERS,
     "capacity of the scope l2 of a .tk, in place of the target's"},
    {"mode", 0, "auto|sequential|reuse|search", MODE, "auto", AT(memory.mode), MEMORY | KERNEL,
     BUFFERS, "sequential: nothing shares; reuse: .tk by pipes, .csv largest first"},
    {"mem-plan-mode", 0, "both|local|workspace", MEM_PLAN, "both", AT(memory.part), MEMORY, BUFFERS,
     "memories of the device, workspaces in global memory, or both"},
    {"time-limit", 0, "S", TIME, NULL, AT(memory.time_limit), MEMORY | KERNEL, BUFFERS,
     "seconds that a search may take (a fixed number of steps when not given)"},
    {"pairs", 0, "F.csv|F.json", FILENAME, NULL, AT(pairs), MEMORY, BUFFERS,
     "of .csv: what sharing bytes costs, made least after the height"},
    {"analyse", 0, NULL, FLAG, NULL, AT(analyse), MEMORY, BUFFERS,
     "of .tk: bank conflicts and accesses that take more than they have to"},
    {"function", 0, "NAME", NAME, NULL, AT(function), MEMORY, BUFFERS,
     "of .mlir: the one that is planned"},
    {"apply", 0, NULL, FLAG, NULL, AT(apply), MEMORY, BUFFERS,
     "with --analyse: pad what is written"},
    {"footprint", 0, NULL, FLAG, NULL, AT(footprint), MEMORY, BUFFERS,
     "bytes alive by line, what 4 KiB cost"},
    {"no-inplace", 0, NULL, FLAG, NULL, AT(memory.lifetimes.no_in_place), MEMORY | KERNEL, BUFFERS,
     "no output takes the place of an input"},
    {"restrict-inplace", 0, NULL, FLAG, NULL, AT(memory.lifetimes.restrict_in_place),
     MEMORY | KERNEL, BUFFERS, "in place only where the instruction set overlaps exactly"},
    {"workspace-reuse", 0, NULL, FLAG, NULL, AT(memory.workspace_reuse), MEMORY | KERNEL, BUFFERS,
     "buffers in global memory may share, too"},

    {"help", 'h', NULL, HELP, NULL, 0, EVERY, ANSWERS,
     "print help and exit; --help=TOPIC, --help=COMMAND, --help=all"},
    {"version", 0, NULL, FLAG, NULL, AT(version), EVERY, ANSWERS, "print the version and exit"},
    {"list-targets", 0, NULL, FLAG, NULL, AT(list_targets), EVERY, ANSWERS,
     "list the targets and exit"},
    {"list-runtimes", 0, NULL, FLAG, NULL, AT(list_runtimes), EVERY, ANSWERS,
     "list the runtimes and exit"},
    {"completion", 0, "bash|zsh|fish", SHELL, NULL, AT(completion), EVERY, ANSWERS,
     "print a script that completes the words of this program"},
};
const size_t n_options = sizeof option_table / sizeof *option_table;

const option_remark remark_table[] = {
    {"output", OPTIMISE, ".ot writes the text form"},
    {"output", RUN, "NAME=F.npy or NAME=F.raw, of an output; repeatable"},
    {"input", RUNNERS, "random numbers for the others"},
};
const size_t n_remarks = sizeof remark_table / sizeof *remark_table;

const char *command_word(const command_row *c) { return *c->name ? c->name : "tiling"; }
