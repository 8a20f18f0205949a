/* The command that does what a run did, for somebody to copy: words as a shell takes them. */
#include "pipeline.h"

#include <stdarg.h>

typedef struct words {
    ot_arena *a;
    const char *text; /* NULL: no memory */
} words;

static void add(words *w, const char *fmt, ...) OT_PRINTF(2, 3);
static void add(words *w, const char *fmt, ...)
{
    char more[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(more, sizeof more, fmt, ap);
    va_end(ap);
    if (w->text) w->text = ot_format(w->a, "%s%s", w->text, more);
}

/* Characters that no shell reads as anything but themselves. */
static bool is_plain(const char *word)
{
    return *word &&
           word[strspn(
               word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%")] ==
               '\0';
}

/* "word", or "'it'\''s'" where a shell would read it otherwise. */
static void add_word(words *w, const char *word)
{
    if (is_plain(word)) {
        add(w, "%.1500s", word);
        return;
    }
    add(w, "'");
    for (; *word && w->text; word++) {
        if (*word == '\'')
            add(w, "'\\''");
        else
            add(w, "%c", *word);
    }
    add(w, "'");
}

/* " INPUT=D,D,...", as a word. */
static void add_shape(words *w, const ot_shape_binding *b)
{
    char dims[OT_RANK_MAX * 22] = "";
    size_t at = 0;
    for (uint32_t k = 0; k < b->rank && at < sizeof dims; k++) {
        int n = snprintf(dims + at, sizeof dims - at, "%s%lld", k ? "," : "",
                         (long long)b->dims[k]);
        at += n < 0 ? 0 : (size_t)n;
    }
    const char *both = ot_format(w->a, "%s=%s", b->input, dims);
    add(w, " ");
    if (both)
        add_word(w, both);
    else
        w->text = NULL;
}

const char *ot_run_command_text(const ot_run *r, ot_arena *a)
{
    const ot_run_options *o = &r->options;
    const char *given = r->source.path && strcmp(r->source.path, "-") != 0 ? r->source.path
                                                                           : "model.onnx";
    /* a name, and no option */
    const char *model = ot_format(a, "%s%s", *given == '-' ? "./" : "", given);
    if (!model) return NULL;
    size_t n = strlen(model), stem = n > 5 && strcmp(model + n - 5, ".onnx") == 0 ? n - 5 : n;
    const char *out = ot_format(a, "%.*s-tiled.onnx", (int)(stem < 4096 ? stem : 4096), model);
    words w = {a, "onnx-tile "};
    if (!out) return NULL;
    add_word(&w, model);
    add(&w, " -o ");
    add_word(&w, out);
    if (strcmp(o->target, "host") != 0) add(&w, " --target "), add_word(&w, o->target);
    if (o->emit_engine)
        add(&w, o->operators == OT_OPERATORS_NONE ? " --emit engine" : " --emit ort-engine");
    if (o->runtime && !ot_runtime_named(o->runtime)->gives_form)
        add(&w, " --runtime %s", o->runtime);
    if (o->operators > OT_OPERATORS_WHOLE)
        add(&w, " --ort-operators %s", ot_operators_name(o->operators));
    if (o->l2_bytes) add(&w, " --l2 %lld", (long long)o->l2_bytes);
    if (o->weight_bytes) add(&w, " --weight-memory %lld", (long long)o->weight_bytes);
    if (o->threads) add(&w, " --threads %u", o->threads);
    for (size_t k = 0; k < o->n_shapes; k++) add(&w, " --shape"), add_shape(&w, &o->shapes[k]);
    for (size_t k = 0; k < o->n_design; k++) add(&w, " --design"), add_shape(&w, &o->design[k]);
    add(&w, " --goal %s", o->plan.goal == OT_GOAL_MEMORY ? "memory" : "time");
    if (o->plan.max_slowdown != OT_MAX_SLOWDOWN)
        add(&w, " --max-slowdown %g", o->plan.max_slowdown * 100);
    if (o->plan.memory_budget) add(&w, " --memory-budget %lld", (long long)o->plan.memory_budget);
    if (o->plan.best_effort) add(&w, " --best-effort");
    if (o->plan.max_tensor) add(&w, " --max-tensor %lld", (long long)o->plan.max_tensor);
    if (o->plan.force) add(&w, " --force");
    if (o->plan.single_file) add(&w, " --single-file");
    return w.text;
}

const char *ot_run_shape_text(const ot_run *r, ot_arena *a)
{
    words w = {a, ""};
    for (size_t k = 0; k < r->options.n_design; k++)
        add(&w, k ? " --shape" : "--shape"), add_shape(&w, &r->options.design[k]);
    return w.text;
}

const char *ot_run_design_text(const ot_run *r, ot_arena *a)
{
    words w = {a, ""};
    for (size_t k = 0; k < r->options.n_design; k++) add_shape(&w, &r->options.design[k]);
    for (size_t k = 0; k < r->options.n_shapes; k++) add_shape(&w, &r->options.shapes[k]);
    return w.text ? w.text + strspn(w.text, " ") : NULL;
}
