/* run-kernel: read a kernel and its inputs, plan it, run it, write what it wrote. */
#include "run_kernel.h"

#include "base/json.h"
#include "onnx/export/out_file.h"
#include "kernel_file.h"
#include "kernel_tune.h"
#include "tk/interpreter/interpreter.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#define TUNE_REPEAT 3 /* timed launches of each trial */

typedef struct work {
    const ot_kernel_request *r;
    ot_diag *d;
    ot_arena *a;
    const char *path; /* for messages */
    char *text;       /* [n_text] */
    size_t n_text;
    ot_mem_text m;
    ot_kernel *k;
    ot_mem_plan *plan;
    ot_nd *read;           /* [n_inputs] */
    ot_krun_array *inputs; /* [n_inputs] of the same memory */
    ot_krun_result *x;     /* of the interpreter */
    /* of a device: one of the two, or neither where only the source was wanted */
    ot_kd_result *device;
    ot_kernel_device on;          /* the request's, and what is tried */
    ot_kd_facts facts;            /* of the device, */
    uint32_t items;               /* and of its work-groups */
    ot_kernel_tuning tuning;      /* with --tune */
    const ot_kernel_trial *trial; /* its sizes come first; NULL: none */
    const ot_krun_array *outputs; /* [n_outputs] of the one that ran */
    uint32_t n_outputs;
} work;

/* ---- types: .npy has no bfloat16, such values travel as 16-bit integers ---- */

static const struct {
    const char *name;
    ot_dtype type;
} TYPES[] = {{"f32", OT_F32}, {"f16", OT_F16},   {"f64", OT_F64},  {"i8", OT_I8},   {"i16", OT_I16},
             {"i32", OT_I32}, {"i64", OT_I64},   {"u8", OT_U8},    {"u16", OT_U16}, {"u32", OT_U32},
             {"u64", OT_U64}, {"bool", OT_BOOL}, {"bf16", OT_BF16}};
#define N_TYPES (sizeof TYPES / sizeof *TYPES)

static const char *type_name(ot_dtype t)
{
    for (size_t k = 0; k < N_TYPES; k++)
        if (TYPES[k].type == t) return TYPES[k].name;
    return "?";
}

static ot_dtype type_of(const char *name)
{
    size_t k = 0;
    while (strcmp(TYPES[k].name, name) != 0) k++;
    return TYPES[k].type;
}

/* ---- reading ---- */

static const ot_tk_value *param_of(const work *w, const char *name)
{
    for (uint32_t v = 0; v < w->k->n_values; v++)
        if (strcmp(w->k->values[v].name, name) == 0) return &w->k->values[v];
    return NULL;
}

static ot_status read_inputs(work *w)
{
    size_t n = w->r->n_inputs;
    w->read = OT_NEW_N(w->a, ot_nd, n + 1);
    w->inputs = OT_NEW_N(w->a, ot_krun_array, n + 1);
    if (!w->read || !w->inputs) return ot_fail_nomem(w->d);
    for (size_t k = 0; k < n; k++) {
        const ot_run_input *in = &w->r->inputs[k];
        ot_nd *a = &w->read[k];
        ot_krun_array *to = &w->inputs[k];
        OT_TRY(ot_npy_read(in->file, w->d, a));
        if (a->rank > OT_TK_RANK_MAX || !a->data)
            return ot_fail(w->d, OT_E_INPUT, "'%.300s' has more than %d dimensions, or no numbers",
                           in->file, OT_TK_RANK_MAX);
        *to = (ot_krun_array){
            .name = in->name, .dtype = type_name(a->dtype), .rank = a->rank, .data = a->data};
        const ot_tk_value *x = param_of(w, in->name);
        if (x && strcmp(x->dtype, "bf16") == 0 && a->dtype == OT_U16) to->dtype = "bf16";
        for (uint32_t d = 0; d < a->rank; d++) to->dims[d] = a->dims[d];
        if (a->rank == 0) to->dims[to->rank++] = 1;
    }
    return OT_OK;
}

/* The sizes that the inputs' shapes tell, behind those that are tried or given. */
static ot_status find_sizes(work *w, ot_tk_binding **out, uint32_t *n)
{
    size_t cap = 0, count = 0;
    *out = NULL;
    for (uint32_t i = 0; w->trial && i < w->tuning.n_sizes; i++)
        if (!OT_PUSH(w->a, *out, count, cap, w->trial->sizes[i])) return ot_fail_nomem(w->d);
    for (size_t i = 0; i < w->r->n_sizes; i++)
        if (!OT_PUSH(w->a, *out, count, cap, w->r->sizes[i])) return ot_fail_nomem(w->d);
    for (size_t i = 0; i < w->r->n_inputs; i++) {
        const ot_tk_value *x = param_of(w, w->inputs[i].name);
        for (uint32_t d = 0; x && d < x->rank && x->rank == w->inputs[i].rank; d++) {
            if (!x->sizes[d] || ot_tk_binding_of(*out, count, x->sizes[d])) continue;
            ot_tk_binding b = {ot_strdup(w->a, x->sizes[d]), w->inputs[i].dims[d]};
            if (!b.name || !OT_PUSH(w->a, *out, count, cap, b)) return ot_fail_nomem(w->d);
        }
    }
    *n = (uint32_t)count;
    return OT_OK;
}

static ot_status plan(work *w)
{
    ot_tk_binding *sizes = NULL;
    uint32_t n_sizes = 0;
    ot_tk_machine t;
    OT_TRY(ot_kernel_machine(w->k, w->path, w->r->target, w->d, &t));
    ot_status s = find_sizes(w, &sizes, &n_sizes);
    w->m = (ot_mem_text){
        .path = w->path, .text = w->text, .n = w->n_text, .target = &t, .options = &w->r->plan};
    w->m.given = sizes;
    w->m.n_given = n_sizes;
    ot_kernel *k = NULL;
    ot_mem_plan *made = NULL;
    if (s == OT_OK) s = ot_mem_plan_text(&w->m, w->a, w->d, &k, &made);
    if (s != OT_OK) return s; /* what was read stays */
    ot_kernel_free(w->k);
    ot_mem_plan_free(w->plan);
    w->k = k;
    w->plan = made;
    return OT_OK;
}

static ot_status load(work *w)
{
    OT_TRY(ot_read_text(w->r->path, w->a, w->d, &w->text, &w->n_text));
    return ot_kernel_parse(w->path, w->text, w->n_text, w->d, &w->k);
}

static ot_status run_on_device(work *w)
{
    ot_kernel_device_job j = {.kernel = w->k,
                              .path = w->path,
                              .plan = w->plan,
                              .inputs = w->inputs,
                              .n_inputs = (uint32_t)w->r->n_inputs};
    ot_kd_free(w->device);
    w->device = NULL;
    OT_TRY(ot_kernel_device_run(&w->on, &j, w->d));
    w->facts = j.facts;
    w->items = j.items;
    w->device = j.result;
    if (!w->device) return OT_OK;
    w->outputs = w->device->outputs;
    w->n_outputs = w->device->n_outputs;
    return OT_OK;
}

static ot_status interpret(work *w)
{
    ot_krun_request q = {.inputs = w->inputs,
                         .n_inputs = (uint32_t)w->r->n_inputs,
                         .restricted = w->r->plan.lifetimes.restrict_in_place,
                         .events = w->r->trace != NULL};
    OT_TRY(ot_krun(w->k, w->path, w->plan, &q, w->d, &w->x));
    w->outputs = w->x->outputs;
    w->n_outputs = w->x->n_outputs;
    return OT_OK;
}

/* A source alone is written without a run: nobody asked for results, unless a device is named. */
static ot_status run(work *w)
{
    return w->r->on.source || ot_kernel_device_wanted(&w->r->on) ? run_on_device(w) : interpret(w);
}

/* ---- tuning ---- */

/* Plan and run as t says. A trial that does not fit, or that the device refuses, is none. */
static ot_status run_trial(void *of, ot_kernel_trial *t)
{
    work *w = of;
    ot_diag *told = w->d, aside = {0};
    w->d = &aside;
    w->trial = t;
    w->on.items = t->items;
    ot_status s = plan(w);
    if (s == OT_OK) s = run_on_device(w);
    w->d = told;
    t->seconds = s == OT_OK ? w->device->seconds : INFINITY;
    return s == OT_E_NOMEM ? ot_fail_nomem(told) : OT_OK;
}

/* What was planned has run; the fastest of what is tried runs once more, for its results. */
static ot_status tune(work *w)
{
    const ot_kernel_request *r = w->r;
    const ot_kernel_tuner by = {.of = w,
                                .run = run_trial,
                                .items = w->items,
                                .items_most = w->facts.items_most,
                                .keeps_items = r->on.items > 0,
                                .given = r->sizes,
                                .n_given = r->n_sizes};
    w->on.source = NULL;
    OT_TRY(ot_kernel_tune(w->k, w->device->seconds, &by, w->a, w->d, &w->tuning));
    w->on.source = r->on.source;
    w->trial = &w->tuning.trials[w->tuning.best];
    w->on.items = w->trial->items;
    OT_TRY(plan(w));
    return run_on_device(w);
}

/* ---- writing ---- */

static ot_status put_array(const work *w, const ot_krun_array *x, ot_out *out)
{
    ot_nd a = {.data = (void *)x->data};
    bool bf16 = strcmp(x->dtype, "bf16") == 0;
    ot_nd_set_dense(&a, bf16 ? OT_U16 : type_of(x->dtype), x->rank, x->dims);
    return ot_npy_put(&out->sink, &a, x->name, w->d);
}

/* A name with slashes is a file in no other folder. */
static const char *file_name(const work *w, const char *name)
{
    char *path = ot_format(w->a, "%s/%s.npy", w->r->output_dir, name);
    for (char *c = path ? path + strlen(w->r->output_dir) + 1 : NULL; c && *c; c++)
        if (*c == '/') *c = '_';
    return path;
}

static ot_status write_outputs(const work *w)
{
    uint32_t n = w->n_outputs, opened = 0;
    ot_status s = OT_OK;
    if (!w->r->output_dir || !w->outputs) return OT_OK;
    if (mkdir(w->r->output_dir, 0777) != 0 && errno != EEXIST)
        return ot_fail(w->d, OT_E_SYSTEM, "cannot make folder '%.300s': %s", w->r->output_dir,
                       strerror(errno));
    ot_out *outs = OT_NEW_N(w->a, ot_out, n + 1u);
    if (!outs) return ot_fail_nomem(w->d);
    for (; opened < n && s == OT_OK; opened++) {
        const char *path = file_name(w, w->outputs[opened].name);
        s = path ? ot_out_open(&outs[opened], path, w->a, w->d) : ot_fail_nomem(w->d);
        if (s == OT_OK) s = put_array(w, &w->outputs[opened], &outs[opened]);
        if (s == OT_OK) s = ot_out_seal(&outs[opened]);
    }
    for (uint32_t k = 0; k < n && s == OT_OK; k++) s = ot_out_publish(&outs[k]);
    while (opened > 0) ot_out_close(&outs[--opened]);
    return s;
}

static ot_status write_trace(const work *w)
{
    char *text = NULL;
    size_t n = 0;
    if (!w->r->trace || !w->x) return OT_OK;
    FILE *f = open_memstream(&text, &n);
    if (!f) return ot_fail_nomem(w->d);
    ot_status s = ot_krun_trace(w->k, w->x, f);
    if (fclose(f) != 0 || s != OT_OK) s = ot_fail_nomem(w->d);
    if (s == OT_OK) s = ot_out_write(w->r->trace, text, n, w->d);
    free(text);
    return s;
}

/* ---- saying ---- */

static void print_outputs(const work *w)
{
    for (uint32_t k = 0; k < w->n_outputs; k++) {
        const ot_krun_array *o = &w->outputs[k];
        printf("output   %s: %s [", o->name, o->dtype);
        for (uint32_t d = 0; d < o->rank; d++)
            printf("%s%lld", d ? "," : "", (long long)o->dims[d]);
        fputs("]", stdout);
        if (w->x && w->x->unwritten[k] > 0)
            printf(", %lld bytes of it never written: 0 there", (long long)w->x->unwritten[k]);
        fputc('\n', stdout);
    }
}

static void print_device(const work *w)
{
    printf("device   %s: %lld work-group%s of %u items, %.6f s\n", w->facts.name,
           (long long)w->device->n_groups, w->device->n_groups == 1 ? "" : "s", w->items,
           w->device->seconds);
}

static void print_trial(const work *w, const ot_kernel_trial *t)
{
    for (uint32_t k = 0; k < w->tuning.n_sizes; k++)
        printf("%s = %lld, ", t->sizes[k].name, (long long)t->sizes[k].value);
    printf("%u work item%s: %.6f s", t->items, t->items == 1 ? "" : "s", t->seconds);
}

static void print_tuning(const work *w)
{
    const ot_kernel_tuning *x = &w->tuning;
    if (x->n_trials == 0) return;
    fputs("planned  ", stdout);
    print_trial(w, &x->trials[0]);
    printf("\nfastest  ");
    if (x->best == 0)
        printf("that, of %zu tried\n", x->n_trials);
    else
        print_trial(w, &x->trials[x->best]), printf(", of %zu tried\n", x->n_trials);
    printf("options ");
    for (uint32_t k = 0; k < x->n_sizes; k++)
        printf(" --size %s=%lld", x->trials[x->best].sizes[k].name,
               (long long)x->trials[x->best].sizes[k].value);
    printf(" --work-items %u\n", x->trials[x->best].items);
}

static void print_stats(const work *w)
{
    const ot_krun_result *x = w->x;
    for (uint32_t k = 0; k < w->m.n_notes; k++) printf("chosen   %s\n", w->m.notes[k]);
    if (w->device) print_device(w);
    if (!x) return;
    printf("run      %lld statements\n", (long long)x->steps);
    for (uint32_t k = 0; k < x->n_scopes; k++)
        printf(
            "memory   %-10s peak %lld, freed %lld, still allocated %lld bytes; planned in %lld\n",
            ot_scope_name(x->scopes[k].scope), (long long)x->scopes[k].peak,
            (long long)x->scopes[k].freed, (long long)x->scopes[k].allocated,
            (long long)x->scopes[k].height);
    for (int p = 0; p < OT_PIPE_COUNT; p++)
        if (x->pipes[p].operations > 0)
            printf("pipe     %-10s %lld operations, %lld bytes\n", ot_pipe_name((ot_pipe)p),
                   (long long)x->pipes[p].operations, (long long)x->pipes[p].bytes);
    for (uint32_t k = 0; k < x->n_leaks; k++) {
        const ot_tk_value *v = &w->k->values[x->leaks[k].value];
        printf("leak     line %u: '%s' (%lld bytes of %s) is never freed\n", v->line, v->name,
               (long long)x->leaks[k].bytes, ot_scope_name(v->scope));
    }
}

static void json_memory(const work *w, ot_json *j)
{
    ot_json_list(j, "memories");
    for (uint32_t k = 0; k < w->x->n_scopes; k++) {
        const ot_krun_scope *s = &w->x->scopes[k];
        ot_json_open(j, NULL);
        ot_json_put_text(j, "scope", ot_scope_name(s->scope));
        ot_json_put_int(j, "allocated_bytes", s->allocated);
        ot_json_put_int(j, "peak_bytes", s->peak);
        ot_json_put_int(j, "freed_bytes", s->freed);
        ot_json_put_int(j, "height_bytes", s->height);
        ot_json_close(j);
    }
    ot_json_close(j);
}

static void json_run(const work *w, ot_json *j)
{
    const ot_krun_result *x = w->x;
    ot_json_put_int(j, "statements", x->steps);
    json_memory(w, j);
    ot_json_list(j, "pipes");
    for (int p = 0; p < OT_PIPE_COUNT; p++) {
        ot_json_open(j, NULL);
        ot_json_put_text(j, "pipe", ot_pipe_name((ot_pipe)p));
        ot_json_put_int(j, "operations", x->pipes[p].operations);
        ot_json_put_int(j, "bytes", x->pipes[p].bytes);
        ot_json_close(j);
    }
    ot_json_close(j);
}

static void json_leaks(const work *w, ot_json *j)
{
    ot_json_list(j, "leaks");
    for (uint32_t k = 0; k < w->x->n_leaks; k++) {
        ot_json_open(j, NULL);
        ot_json_put_text(j, "name", w->k->values[w->x->leaks[k].value].name);
        ot_json_put_int(j, "line", w->k->values[w->x->leaks[k].value].line);
        ot_json_put_int(j, "bytes", w->x->leaks[k].bytes);
        ot_json_close(j);
    }
    ot_json_close(j);
}

static void json_device(const work *w, ot_json *j)
{
    ot_json_put_text(j, "device_name", w->facts.name);
    ot_json_put_int(j, "groups", w->device->n_groups);
    ot_json_put_int(j, "items", w->items);
    ot_json_put_number(j, "time_seconds", w->device->seconds);
}

static void json_tuning(const work *w, ot_json *j)
{
    const ot_kernel_tuning *x = &w->tuning;
    if (x->n_trials == 0) return;
    ot_json_list(j, "tried");
    for (size_t k = 0; k < x->n_trials; k++) {
        const ot_kernel_trial *t = &x->trials[k];
        ot_json_open(j, NULL);
        ot_json_open(j, "sizes");
        for (uint32_t i = 0; i < x->n_sizes; i++)
            ot_json_put_int(j, t->sizes[i].name, t->sizes[i].value);
        ot_json_close(j);
        ot_json_put_int(j, "items", t->items);
        if (isfinite(t->seconds)) ot_json_put_number(j, "time_seconds", t->seconds);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_put_int(j, "fastest", (int64_t)x->best);
}

static void print_json(const work *w)
{
    ot_json j = {.f = stdout};
    ot_json_open(&j, NULL);
    ot_json_put_text(&j, "kernel", w->k->name);
    ot_json_list(&j, "chosen");
    for (uint32_t k = 0; k < w->m.n_notes; k++) ot_json_put_text(&j, NULL, w->m.notes[k]);
    ot_json_close(&j);
    if (w->x) json_run(w, &j);
    if (w->device) json_device(w, &j);
    json_tuning(w, &j);
    ot_json_list(&j, "outputs");
    for (uint32_t k = 0; k < w->n_outputs; k++) {
        ot_json_open(&j, NULL);
        ot_json_put_text(&j, "name", w->outputs[k].name);
        ot_json_put_text(&j, "dtype", w->outputs[k].dtype);
        if (w->x) ot_json_put_int(&j, "unwritten_bytes", w->x->unwritten[k]);
        ot_json_close(&j);
    }
    ot_json_close(&j);
    if (w->x) json_leaks(w, &j);
    ot_json_close(&j);
}

static ot_status all(work *w)
{
    OT_TRY(load(w));
    OT_TRY(read_inputs(w));
    OT_TRY(plan(w));
    OT_TRY(run(w));
    if (w->r->tune) OT_TRY(tune(w));
    OT_TRY(write_outputs(w));
    OT_TRY(write_trace(w));
    if (w->r->json) {
        print_json(w);
    } else if (!w->r->quiet) {
        print_outputs(w);
        print_tuning(w);
        if (w->r->stats) print_stats(w);
    }
    return ferror(stdout) ? OT_E_SYSTEM : OT_OK;
}

ot_status ot_run_kernel(const ot_kernel_request *r, ot_diag *d)
{
    work w = {.r = r,
              .d = d,
              .a = ot_arena_new(),
              .path = strcmp(r->path, "-") == 0 ? "stdin" : r->path,
              .on = r->on};
    if (r->tune && w.on.repeat == 0) w.on.repeat = TUNE_REPEAT;
    ot_status s = w.a ? all(&w) : ot_fail_nomem(d);
    ot_krun_free(w.x);
    ot_kd_free(w.device);
    for (size_t k = 0; w.read && k < r->n_inputs; k++) ot_nd_release(&w.read[k]);
    ot_mem_plan_free(w.plan);
    ot_kernel_free(w.k);
    ot_arena_free(w.a);
    return s;
}
