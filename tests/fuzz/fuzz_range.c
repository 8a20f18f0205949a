/* One input as options of sizes and a model: the options are parsed, the model is planned for
 * every size, written, and bounded over the range.
 *
 *   "--range=x=1,3,16:64,16:64:8\n--design=x=1,3,32,32\n" model  --options--> ranges, design
 *                                                                --tile--> plan, bound, model for
 *                                                                every size
 *                                                                            `--random sizes of
 *                                                                            the range--> live
 *                                                                            bytes <= proved
 *                                                                            bound
 *
 * Lines that begin with "--" are words of the command line, of those in WORDS; what follows is a
 * model, as bytes or text. LLVMFuzzerTestOneInput is libFuzzer's entry (`make fuzz`). Whatever
 * is wrong must end in a status and one line; what passes must verify and be readable again; a
 * bound that is called proved must hold.
 */
#include "ops/ops.h"
#include "app/pipeline.h"
#include "commands/options.h"
#include "onnx/import/model_io.h"

#define LINES_MAX  6
#define LINE_BYTES 400
#define SIZES      3     /* of the range, held against the bound */
#define LARGEST    20000 /* an extent: the arithmetic of sizes is the same above */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const WORDS[] = {"--range=", "--design=",      "--memory-budget=",
                                    "--goal=",  "--keep-dynamic", "--force",
                                    "--form=",  "--bit-exact"};
#define N_WORDS (sizeof WORDS / sizeof *WORDS)

static bool is_word(const char *line)
{
    for (size_t k = 0; k < N_WORDS; k++)
        if (strncmp(line, WORDS[k], strlen(WORDS[k])) == 0) return true;
    return false;
}

/* Lines of options at the beginning into argv behind what is there; returns the bytes that they
 * take. */
static size_t read_lines(const uint8_t *data, size_t size, char lines[][LINE_BYTES], char **argv,
                         int *argc)
{
    size_t at = 0;
    for (int k = 0; k < LINES_MAX && at + 2 < size && data[at] == '-' && data[at + 1] == '-'; k++) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        const size_t n = end ? (size_t)(end - (data + at)) : size - at;
        if (n >= LINE_BYTES) break;
        memcpy(lines[k], data + at, n);
        lines[k][n] = '\0';
        at += n + (end != NULL);
        if (is_word(lines[k])) argv[(*argc)++] = lines[k];
    }
    return at;
}

/* A failure has one line that says so; anything else is our bug. */
static void expect_line(ot_status s, const ot_diag *d)
{
    if (s == OT_OK || s == OT_E_NOMEM) return;
    if (!*d->message || strchr(d->message, '\n')) OT_BUG("a failure without its one line");
}

static ot_status load(const uint8_t *data, size_t size, ot_diag *d, ot_model **m)
{
    if (size >= 6 && memcmp(data, "model ", 6) == 0)
        return ot_text_parse((const char *)data, size, d, m);
    return ot_import_memory(data, size, NULL, d, m);
}

/* Sizes that take long are no more than sizes that do not. */
static bool are_small(const ot_options *o)
{
    for (size_t k = 0; k < o->n_ranges; k++)
        for (uint32_t d = 0; d < o->ranges[k].rank; d++)
            if (o->ranges[k].dims[d].hi > LARGEST) return false;
    for (size_t k = 0; k < o->n_design; k++)
        for (uint32_t d = 0; d < o->design[k].rank; d++)
            if (o->design[k].dims[d] > LARGEST) return false;
    return true;
}

/* The model at size number k of the ranges takes no more than what is proved of it, where it
 * takes that size. */
static void hold_against(const ot_model *file, const ot_run_options *o, const ot_bounds_side *bound,
                         uint32_t k)
{
    ot_shape_binding bind[LINES_MAX];
    int64_t dims[LINES_MAX][OT_RANK_MAX];
    ot_live_bytes live;
    ot_model *m = NULL;
    ot_diag d = {0};
    if (ot_model_clone(file, &m) != OT_OK) return;
    m->diag = &d;
    for (size_t j = 0; j < o->n_ranges; j++) {
        for (uint32_t r = 0; r < o->ranges[j].rank; r++) {
            const ot_size_var *x = &o->ranges[j].dims[r];
            dims[j][r] = x->lo + (x->hi - x->lo) / x->step * k / (SIZES - 1) * x->step;
        }
        bind[j] = (ot_shape_binding){o->ranges[j].input, o->ranges[j].rank, dims[j], false,
                                     "--range"};
    }
    ot_status s = ot_infer_shapes(m->graph, bind, o->n_ranges);
    if (s == OT_OK) s = ot_assure(m->graph, OT_P_ORDER | OT_P_USES);
    if (s == OT_OK) s = ot_live_bytes_of(m->graph, &live);
    if (s == OT_OK && !live.unknown && live.peak > bound->live_bytes) {
        fprintf(stderr, "%lld bytes are live, %lld at most were proved\n", (long long)live.peak,
                (long long)bound->live_bytes);
        OT_BUG("a proved bound does not hold");
    }
    ot_model_free(m);
}

/* What was written can be read. */
static void read_again(const ot_model *m, const ot_diag *d)
{
    void *bytes = NULL;
    size_t n = 0;
    ot_model *again = NULL;
    ot_diag other = {0};
    ot_status s = ot_export_memory(m, &bytes, &n);
    expect_line(s, d);
    if (s == OT_OK && ot_import_memory(bytes, n, NULL, &other, &again) == OT_E_INPUT) {
        fprintf(stderr, "%s\n", other.message);
        OT_BUG("the tool does not read its own output");
    }
    ot_model_free(again);
    free(bytes);
}

/* The model m, which the run frees, with these options. */
static void tile(ot_model *m, const ot_options *o, ot_diag *d)
{
    ot_model *file = NULL;
    ot_run run = {.diag = d,
                  .model = m,
                  .source = {.bytes = "", .n = 0},
                  .options = {.target = "cpu-generic",
                              .l2_bytes = 16 << 10,
                              .threads = 1,
                              .design = o->design,
                              .n_design = o->n_design,
                              .ranges = o->ranges,
                              .n_ranges = o->n_ranges,
                              .keep_dynamic = o->keep_dynamic,
                              .plan = o->plan}};
    ot_status s = ot_model_clone(m, &file);
    if (s == OT_OK) s = ot_run_tile(&run, false);
    expect_line(s, d);
    if (s == OT_OK && ot_verify(run.model->graph) != OT_OK) OT_BUG("the result does not verify");
    for (uint32_t k = 0; s == OT_OK && k < SIZES && o->n_ranges > 0; k++)
        if (run.selection.bounds.untiled.verdict == OT_BOUNDS_PROVED)
            hold_against(file, &run.options, &run.selection.bounds.untiled, k);
    if (s == OT_OK) read_again(run.model, d);
    ot_model_free(file);
    ot_run_free(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char program[] = "onnx-tile", command[] = "inspect", path[] = "model.onnx";
    char lines[LINES_MAX][LINE_BYTES], *argv[LINES_MAX + 4] = {program, command, path};
    int argc = 3;
    ot_diag d = {0};
    ot_options o;
    ot_model *m = NULL;
    const size_t at = read_lines(data, size, lines, argv, &argc);
    ot_status s = ot_options_parse(argc, argv, &d, &o);
    expect_line(s, &d);
    if (s == OT_OK && are_small(&o)) {
        s = load(data + at, size - at, &d, &m);
        expect_line(s, &d);
        if (s == OT_OK) tile(m, &o, &d);
    }
    ot_options_free(&o);
    return 0;
}
