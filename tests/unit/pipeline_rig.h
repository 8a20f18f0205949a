/* A run of the list of passes over a model that a test writes as text. */
#ifndef PIPELINE_RIG_H
#define PIPELINE_RIG_H

#include "report_check.h"

#include "app/pipeline.h"
#include "onnx/import/model_io.h"

/* Three convolutions with activations; their maps take 512 KiB each. */

static const char CHAIN[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,128,128]\n"
                            "  init %w : float32[8,8,3,3] = random 1 * 0.1\n"
                            "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Relu(%a)\n"
                            "  %c = Conv(%b, %w) {pads=[1,1,1,1]}\n  %d = Relu(%c)\n"
                            "  %y = Conv(%d, %w) {pads=[1,1,1,1]}\n  output %y\n}\n";

typedef struct piped {
    ot_diag diag;
    ot_run run;
} piped;

/* A run of the text, which lies in m.ot. */
static inline void start_run(piped *p, const char *text)
{
    put_file(in_folder("m.ot"), text);
    *p = (piped){0};
    p->run.diag = &p->diag;
    p->run.options = (ot_run_options){
        .target = "cpu-generic",
        .l2_bytes = 65536,
        .threads = 1,
        .plan = {.goal = OT_GOAL_TIME, .max_slowdown = 0.1, .tie_break = true, .force = true}};
    static char path[256]; /* one run at a time */
    snprintf(path, sizeof path, "%s", in_folder("m.ot"));
    p->run.source.path = path;
}

static inline void load(piped *p)
{
    if (ot_run_load(&p->run) != OT_OK) fail_msg("%s", p->diag.message);
}

static inline void tile(piped *p, bool plan_only)
{
    if (ot_run_tile(&p->run, plan_only) != OT_OK) fail_msg("%s", p->diag.message);
}

static inline void has_word(const char *text, const char *word)
{
    if (!strstr(text, word)) fail_msg("no '%s' in '%s'", word, text);
}

/* With free rows. */
static const char FREE[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,?,128]\n"
                           "  init %w : float32[8,8,3,3] = random 1 * 0.1\n"
                           "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Relu(%a)\n"
                           "  %y = Conv(%b, %w) {pads=[1,1,1,1]}\n  output %y\n}\n";

static inline int remove_it_all(void **state)
{
    unlink(in_folder("m.ot"));
    return remove_folder(state);
}

#endif
