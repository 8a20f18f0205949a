/* The values of options: text --> places in ot_options, each kind by its own rule. */
#include "option_values.h"

#include "kernel_file.h"

#include "device/device.h"
#include "report/facts/facts.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

enum { HINT_MAX = 96 };

/* With the word of `list` ("time|memory") that the value was to be. */
static ot_status bad_choice(ot_diag *d, const option *o, const char *text, const char *list,
                            const char *rule)
{
    char hint[HINT_MAX];
    ot_nearest near = ot_nearest_to(text, strlen(text));
    ot_nearest_try_list(&near, list, "|, ");
    return ot_fail(d, OT_E_USAGE, "--%s '%.80s': %s%s", o->name, text, rule,
                   ot_nearest_hint(&near, "; ", hint, sizeof hint));
}

static ot_status bad_value(ot_diag *d, const option *o, const char *text, const char *rule)
{
    return bad_choice(d, o, text, "", rule);
}

bool option_value_may_lack(const option *o) { return o->kind == VERIFY || o->kind == HELP; }

ot_status option_needs(ot_diag *d, const char *what, const char *needs)
{
    return ot_fail(d, OT_E_USAGE, "'%s' needs %s, which this build does not have", what, needs);
}

bool option_count(const char *text, int64_t max, int64_t *out)
{
    int64_t v = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text)) return false;
        v = v * 10 + (*text - '0');
        if (v > max) return false;
    }
    *out = v;
    return true;
}

static ot_status parse_percent(ot_diag *d, const option *o, const char *text, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (*end == '%') end++;
    if (!isdigit((unsigned char)*text) || *end != '\0' || !(v >= 0 && v <= 1000))
        return bad_value(d, o, text, "must be a percentage from 0 to 1000");
    *out = v / 100;
    return OT_OK;
}

static ot_status parse_time(ot_diag *d, const option *o, const char *text, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (*end == 's') end++;
    if (text[strspn(text, "0123456789.s")] != '\0' || *end != '\0' || !(v >= 0.001 && v <= 1e6))
        return bad_value(d, o, text, "must be seconds from 0.001 to 1000000");
    *out = v;
    return OT_OK;
}

static ot_status parse_mode(ot_diag *d, const option *o, const char *text, ot_mem_mode *out)
{
    static const ot_mem_mode modes[] = {OT_MEM_AUTO, OT_MEM_SEQUENTIAL, OT_MEM_REUSE,
                                        OT_MEM_SEARCH};
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        if (strcmp(text, ot_mem_mode_name(modes[k])) != 0) continue;
        *out = modes[k];
        return OT_OK;
    }
    return bad_choice(d, o, text, o->value, "must be auto, sequential, reuse or search");
}

/* "a:0/b.c=1,3,224,224": the name ends at the last '='. */
static ot_status parse_shape(ot_diag *d, const option *o, const char *text, ot_options *out)
{
    const char *eq = strrchr(text, '=');
    int64_t dims[OT_RANK_MAX];
    uint32_t rank = 0;

    if (!eq || eq == text || !eq[1]) return bad_value(d, o, text, "must be INPUT=D,D,...");
    for (const char *p = eq + 1;; p++) {
        char digits[24];
        size_t n = strcspn(p, ",");
        if (rank == OT_RANK_MAX) return bad_value(d, o, text, "has too many dimensions");
        if (n == 0 || n >= sizeof digits)
            return bad_value(d, o, text, "has a dimension that is no number");
        memcpy(digits, p, n);
        digits[n] = '\0';
        if (!option_count(digits, INT32_MAX, &dims[rank]) || dims[rank] < 1)
            return bad_value(d, o, text, "has a dimension that is not from 1 to 2147483647");
        rank++;
        p += n;
        if (!*p) break;
    }
    ot_shape_binding b = {.input = ot_strndup(out->arena, text, (size_t)(eq - text)),
                          .rank = rank,
                          .dims = ot_memdup(out->arena, dims, rank * sizeof *dims),
                          .replace = true};
    if (!b.input || !b.dims) return ot_fail_nomem(d);
    const bool design = o->kind == DESIGN;
    const ot_shape_binding *have = design ? out->design : out->shapes;
    for (size_t k = 0; k < (design ? out->n_design : out->n_shapes); k++)
        if (strcmp(have[k].input, b.input) == 0)
            return bad_value(d, o, text, "binds an input twice");
    out->keep_dynamic |= design;
    if (design) { /* what the file fixes is not for it to choose */
        b.replace = false;
        b.option = "--design";
    }
    const bool ok = design ? OT_PUSH(out->arena, out->design, out->n_design, out->cap_design, b)
                           : OT_PUSH(out->arena, out->shapes, out->n_shapes, out->cap_shapes, b);
    return ok ? OT_OK : ot_fail_nomem(d);
}

/* INPUT:AXIS[=K]; names of inputs may have colons. */
static ot_status parse_axis(ot_diag *d, const option *o, const char *text, ot_options *all)
{
    ot_step_request *out = &all->step;
    const char *colon = strrchr(text, ':');
    char digits[24];
    if (!colon || colon == text) return bad_value(d, o, text, "must be INPUT:AXIS or INPUT:AXIS=K");
    const size_t n = strcspn(colon + 1, "=");
    const char *rows = colon[1 + n] ? colon + 2 + n : NULL;
    if (n >= sizeof digits) return bad_value(d, o, text, "has an axis that is no number");
    memcpy(digits, colon + 1, n);
    digits[n] = '\0';
    if (!option_count(digits, OT_RANK_MAX - 1, &out->axis))
        return bad_value(d, o, text, "has an axis that is not from 0 to 15");
    out->rows = 0;
    if (rows && (!option_count(rows, INT32_MAX, &out->rows) || out->rows < 1))
        return bad_value(d, o, text, "has rows of a step that are not from 1 to 2147483647");
    out->input = ot_strndup(all->arena, text, (size_t)(colon - text));
    return out->input ? OT_OK : ot_fail_nomem(d);
}

/* A number of `n` characters at p, from 1 on; false: it is none. */
static bool read_extent(const char *p, size_t n, int64_t *out)
{
    char digits[24];
    if (n == 0 || n >= sizeof digits) return false;
    memcpy(digits, p, n);
    digits[n] = '\0';
    return option_count(digits, INT32_MAX, out) && *out >= 1;
}

/* "256", "256:2160", "256:2160:32" of n characters; the largest becomes one that the steps
 * reach. NULL, or what is wrong. */
static const char *read_range(const char *p, size_t n, ot_size_var *out)
{
    const char *mid = memchr(p, ':', n),
               *rest = mid ? memchr(mid + 1, ':', n - (size_t)(mid + 1 - p)) : NULL;
    const char *end = p + n, *hi_end = rest ? rest : end;
    const char *what =
        "has a dimension that is not D, LO:HI or LO:HI:STEP, each from 1 to 2147483647";
    out->step = 1;
    if (!read_extent(p, (size_t)((mid ? mid : end) - p), &out->lo)) return what;
    out->hi = out->lo;
    if (mid && !read_extent(mid + 1, (size_t)(hi_end - mid - 1), &out->hi)) return what;
    if (rest && !read_extent(rest + 1, (size_t)(end - rest - 1), &out->step)) return what;
    if (out->lo > out->hi) return "has a range that ends before it begins";
    out->hi -= (out->hi - out->lo) % out->step;
    return NULL;
}

/* "x=1,3,256:2160,256:3840:32": the name ends at the last '='. */
static ot_status parse_range(ot_diag *d, const option *o, const char *text, ot_options *out)
{
    const char *eq = strrchr(text, '=');
    ot_size_var dims[OT_RANK_MAX];
    uint32_t rank = 0;
    if (!eq || eq == text || !eq[1]) return bad_value(d, o, text, "must be INPUT=D,LO:HI,...");
    for (const char *p = eq + 1;; p++) {
        const size_t n = strcspn(p, ",");
        if (rank == OT_RANK_MAX) return bad_value(d, o, text, "has too many dimensions");
        const char *wrong = read_range(p, n, &dims[rank++]);
        if (wrong) return bad_value(d, o, text, wrong);
        p += n;
        if (!*p) break;
    }
    ot_size_range r = {.input = ot_strndup(out->arena, text, (size_t)(eq - text)),
                       .rank = rank,
                       .dims = ot_memdup(out->arena, dims, rank * sizeof *dims)};
    if (!r.input || !r.dims) return ot_fail_nomem(d);
    for (size_t k = 0; k < out->n_ranges; k++)
        if (strcmp(out->ranges[k].input, r.input) == 0)
            return bad_value(d, o, text, "gives an input twice");
    out->keep_dynamic = true;
    return OT_PUSH(out->arena, out->ranges, out->n_ranges, out->cap_ranges, r) ? OT_OK
                                                                               : ot_fail_nomem(d);
}

/* "NAME=FILE": the name ends at the last '='. */
static ot_status parse_input(ot_diag *d, const option *o, const char *text, ot_options *out)
{
    const char *eq = strrchr(text, '=');
    if (!eq || eq == text || !eq[1])
        return bad_value(d, o, text, "must be NAME=F.npy, NAME=F.raw or NAME=F.pb");
    ot_run_input in = {ot_strndup(out->arena, text, (size_t)(eq - text)), eq + 1};
    if (!in.name) return ot_fail_nomem(d);
    for (size_t k = 0; k < out->n_inputs; k++)
        if (strcmp(out->inputs[k].name, in.name) == 0)
            return bad_value(d, o, text, "gives an input twice");
    return OT_PUSH(out->arena, out->inputs, out->n_inputs, out->cap_inputs, in) ? OT_OK
                                                                                : ot_fail_nomem(d);
}

/* "n=1000" */
static ot_status parse_extent(ot_diag *d, const option *o, const char *text, ot_options *out)
{
    const char *eq = strchr(text, '=');
    ot_tk_binding b = {0};
    if (!eq || eq == text || !option_count(eq + 1, INT32_MAX, &b.value) || b.value < 1)
        return bad_value(d, o, text, "must be NAME=N, with N from 1 to 2147483647");
    b.name = ot_strndup(out->arena, text, (size_t)(eq - text));
    if (!b.name) return ot_fail_nomem(d);
    for (size_t k = 0; k < out->n_sizes; k++)
        if (strcmp(out->sizes[k].name, b.name) == 0)
            return bad_value(d, o, text, "gives a size twice");
    return OT_PUSH(out->arena, out->sizes, out->n_sizes, out->cap_sizes, b) ? OT_OK
                                                                            : ot_fail_nomem(d);
}

static ot_status parse_letters(ot_diag *d, const option *o, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (!strchr(DUMP_LETTERS, *p)) return bad_value(d, o, text, "letters are " DUMP_LETTERS);
        ot_dbg[(unsigned char)*p & 127] = true;
    }
    return OT_OK;
}

static ot_status parse_form(ot_diag *d, const option *o, const char *text, ot_form *out)
{
    static const struct {
        const char *name;
        ot_form form;
    } forms[] = {{"scan", OT_FORM_SCAN},          {"unrolled", OT_FORM_UNROLLED},
                 {"loop-peeled", OT_FORM_PEELED}, {"loop", OT_FORM_LOOP},
                 {"prescan", OT_FORM_PRESCAN},    {"stream", OT_FORM_STREAM}};
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        if (strcmp(text, forms[k].name) != 0) continue;
        *out = forms[k].form;
        return OT_OK;
    }
    return bad_choice(d, o, text, o->value,
                      "must be scan, unrolled, loop-peeled, loop, prescan or stream");
}

static ot_status parse_operators(ot_diag *d, const option *o, const char *text, ot_operators *out)
{
    for (ot_operators k = OT_OPERATORS_WHOLE; k <= OT_OPERATORS_REGIONS; k++) {
        if (strcmp(text, ot_operators_name(k)) != 0) continue;
        *out = k;
        return OT_OK;
    }
    return bad_choice(d, o, text, o->value, "must be whole, parts or regions");
}

static ot_status parse_store(ot_diag *d, const option *o, const char *text, ot_passes_store *out)
{
    for (ot_passes_store k = OT_STORE_NEVER; k <= OT_STORE_ALWAYS; k++) {
        if (strcmp(text, ot_passes_store_name(k)) != 0) continue;
        *out = k;
        return OT_OK;
    }
    return bad_choice(d, o, text, o->value, "must be never, auto or always");
}

static ot_status parse_runtime(ot_diag *d, const option *o, const char *text, const char **out)
{
    char names[256], rule[320];
    const ot_runtime *r = ot_runtime_asked(text, names, sizeof names);
    if (r) {
        *out = r->name;
        return OT_OK;
    }
    snprintf(rule, sizeof rule, "must be one of %s; ort-engine is of --emit", names);
    return bad_choice(d, o, text, names, rule);
}

static ot_status parse_verify(ot_diag *d, const option *o, const char *text, ot_verify_mode *out)
{
    const char *needs = RUN_NEEDS;
    if (needs) return option_needs(d, "--verify", needs);
    if (text && strcmp(text, "all") != 0) return bad_value(d, o, text, "must be all, or left out");
    *out = text ? OT_VERIFY_ALL : OT_VERIFY_OUTPUTS;
    return OT_OK;
}

static ot_status parse_report(ot_diag *d, const option *o, const char *text, ot_options *out)
{
    if (!ot_report_is_known(text))
        return bad_value(d, o, text, "must end in .html, .xml, .json or .csv");
    for (size_t k = 0; k < out->n_reports; k++)
        if (strcmp(out->reports[k], text) == 0) return bad_value(d, o, text, "is given twice");
    return OT_PUSH(out->arena, out->reports, out->n_reports, out->cap_reports, text)
               ? OT_OK
               : ot_fail_nomem(d);
}

static ot_status parse_device(ot_diag *d, const option *o, const char *text, const char **out)
{
    ot_dev_api api;
    uint32_t number;
    bool here = strcmp(text, "cpu") == 0 || strcmp(text, "host") == 0;
    if (!here && !ot_device_parse(text, &api, &number))
        return bad_choice(d, o, text, o->value,
                          "must be host, cpu, opencl, vulkan or cuda, or one of them with :N");
    *out = here ? "cpu" : text;
    return OT_OK;
}

static ot_status parse_mem_plan(ot_diag *d, const option *o, const char *text, ot_mem_part *out)
{
    static const char *const modes[] = {"both", "local", "workspace"};
    for (int k = 0; k < 3; k++)
        if (strcmp(text, modes[k]) == 0) return *out = (ot_mem_part)k, OT_OK;
    return bad_choice(d, o, text, o->value, "must be both, local or workspace");
}

static ot_status parse_source(ot_diag *d, const option *o, const char *text, const char **out)
{
    size_t n = strlen(text);
    if (n < 4 || (strcmp(text + n - 3, ".cl") != 0 && strcmp(text + n - 3, ".cu") != 0))
        return bad_value(d, o, text, "must end in .cl (OpenCL C) or .cu (CUDA C)");
    *out = text;
    return OT_OK;
}

/* The form of the input that `text` names before its last '=', or of the only one; *value: what
 * follows. NULL: no memory. */
static ot_input_form *form_of(const char *text, ot_options *out, const char **value)
{
    const char *eq = strrchr(text, '=');
    const char *name = eq ? ot_strndup(out->arena, text, (size_t)(eq - text)) : NULL;
    if (eq && !name) return NULL;
    *value = eq ? eq + 1 : text;
    for (size_t k = 0; k < out->n_forms; k++) {
        const char *have = out->forms[k].name;
        if (name && have ? strcmp(name, have) == 0 : name == have) return &out->forms[k];
    }
    const ot_input_form f = {name, OT_DT_UNKNOWN, 0};
    return OT_PUSH(out->arena, out->forms, out->n_forms, out->cap_forms, f)
               ? &out->forms[out->n_forms - 1]
               : NULL;
}

static ot_status parse_input_type(ot_diag *d, const option *o, const char *text, ot_options *out)
{
    const char *value = text;
    ot_input_form *f = form_of(text, out, &value);
    if (!f) return ot_fail_nomem(d);
    if (f->type != OT_DT_UNKNOWN) return bad_value(d, o, text, "gives an input twice");
    f->type = ot_dtype_parse(value);
    if (f->type == OT_DT_UNKNOWN)
        return bad_value(d, o, text, "must end in a type like uint8, int16, float16 or float32");
    return OT_OK;
}

/* "0.5", "1/255" */
static ot_status parse_scale(ot_diag *d, const option *o, const char *text, ot_options *out)
{
    const char *value = text;
    char *end, *last;
    ot_input_form *f = form_of(text, out, &value);
    if (!f) return ot_fail_nomem(d);
    if (f->scale != 0) return bad_value(d, o, text, "gives an input twice");
    f->scale = strtod(value, &end);
    bool ok = end != value && !isspace((unsigned char)*value);
    if (ok && *end == '/') {
        f->scale /= strtod(end + 1, &last);
        ok = last != end + 1 && !isspace((unsigned char)end[1]);
        end = last;
    }
    if (ok && !*end && isfinite(f->scale) && f->scale != 0) return OT_OK;
    return bad_value(d, o, text, "must end in a number like 0.5 or 1/255, not 0");
}

/* A file; of run "NAME=FILE": the name ends at the last '='. */
static ot_status parse_output(ot_diag *d, const option *o, const char *text, ot_options *out)
{
    if (!*text) return bad_value(d, o, text, "must not be empty");
    if (out->command != OT_CMD_RUN) {
        out->output = text;
        return OT_OK;
    }
    const char *eq = strrchr(text, '=');
    if (!eq || eq == text || !eq[1] || strcmp(eq + 1, "-") == 0 || ot_ends_with(eq, ".pb"))
        return bad_value(d, o, text, "must be NAME=F.npy or NAME=F.raw");
    ot_run_output to = {ot_strndup(out->arena, text, (size_t)(eq - text)), eq + 1};
    if (!to.name) return ot_fail_nomem(d);
    for (size_t k = 0; k < out->n_outputs; k++)
        if (strcmp(out->outputs[k].name, to.name) == 0)
            return bad_value(d, o, text, "gives an output twice");
    return OT_PUSH(out->arena, out->outputs, out->n_outputs, out->cap_outputs, to)
               ? OT_OK
               : ot_fail_nomem(d);
}

ot_status option_set(ot_diag *d, const option *o, const char *text, ot_options *out)
{
    void *at = (char *)out + o->offset;
    int64_t n;

    switch (o->kind) {
    case FLAG: *(bool *)at = true; return OT_OK;
    case OFF_FLAG: *(bool *)at = false; return OT_OK;
    case FILENAME:
    case NAME:
    case FOLDER:
    case TARGET:
        if (!*text) return bad_value(d, o, text, "must not be empty");
        *(const char **)at = text;
        return OT_OK;
    case SIZE:
        if (!ot_parse_size(text, &n) || n < 1)
            return bad_value(d, o, text,
                             "must be a size like 512K, 16M, 1.5G or a number of bytes");
        *(int64_t *)at = n;
        return OT_OK;
    case COUNT:
        if (!option_count(text, COUNT_MAX, &n) || n < 1)
            return bad_value(d, o, text, "must be from 1 to 4096");
        *(uint32_t *)at = (uint32_t)n;
        return OT_OK;
    case PERCENT: return parse_percent(d, o, text, at);
    case GOAL:
        if (strcmp(text, "time") != 0 && strcmp(text, "memory") != 0)
            return bad_choice(d, o, text, o->value, "must be time or memory");
        *(ot_goal *)at = *text == 't' ? OT_GOAL_TIME : OT_GOAL_MEMORY;
        out->goal_given = true;
        return OT_OK;
    case ORT_OPERATORS: return parse_operators(d, o, text, at);
    case STORE: return parse_store(d, o, text, at);
    case FORM: return parse_form(d, o, text, at);
    case DESIGN:
    case SHAPE: return parse_shape(d, o, text, out);
    case RANGE: return parse_range(d, o, text, out);
    case MODE: return parse_mode(d, o, text, at);
    case MEM_PLAN: return parse_mem_plan(d, o, text, at);
    case TIME: return parse_time(d, o, text, at);
    case LETTERS: return parse_letters(d, o, text);
    case VERIFY: return parse_verify(d, o, text, at);
    case HELP:
        out->help = true;
        out->help_topic = text;
        return OT_OK;
    case SHELL:
        if (strcmp(text, "bash") != 0 && strcmp(text, "zsh") != 0 && strcmp(text, "fish") != 0)
            return bad_choice(d, o, text, o->value, "must be bash, zsh or fish");
        *(const char **)at = text;
        return OT_OK;
    case INPUT: return parse_input(d, o, text, out);
    case OUTPUT: return parse_output(d, o, text, out);
    case INPUT_TYPE: return parse_input_type(d, o, text, out);
    case SCALE: return parse_scale(d, o, text, out);
    case EXTENT: return parse_extent(d, o, text, out);
    case REPORT: return parse_report(d, o, text, out);
    case SEED:
        if (!option_count(text, INT64_MAX / 16, &n))
            return bad_value(d, o, text, "must be a number from 0 to 576460752303423487");
        *(uint64_t *)at = (uint64_t)n;
        return OT_OK;
    case EMIT:
        out->in_operator = strcmp(text, "ort-engine") == 0;
        out->emit_step = strcmp(text, "step") == 0;
        if (strcmp(text, "onnx") != 0 && strcmp(text, "engine") != 0 && !out->in_operator &&
            !out->emit_step)
            return bad_choice(d, o, text, o->value, "must be onnx, engine, ort-engine or step");
        /* the operator holds what the engine runs */
        *(bool *)at = strcmp(text, "engine") == 0 || out->in_operator;
        out->emit_given = true;
        return OT_OK;
    case AXIS: return parse_axis(d, o, text, out);
    case RUNTIME: return parse_runtime(d, o, text, at);
    case DEVICE: return parse_device(d, o, text, at);
    case SOURCE: return parse_source(d, o, text, at);
    case ITEMS:
        if (!option_count(text, 1024, &n) || n < 1)
            return bad_value(d, o, text, "must be from 1 to 1024");
        *(uint32_t *)at = (uint32_t)n;
        return OT_OK;
    }
    return OT_OK;
}
