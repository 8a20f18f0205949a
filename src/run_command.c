/* run: read a model and its inputs, run it, write its outputs.
 *
 *   import --> arrays: given ones are read, the others made up --> session --> run, run, ... --> files --> figures
 *
 * The shapes of the arrays bind the model's free dimensions, so that memory can be planned. Output files are all on the disk
 * before the first is visible.
 */
#include "run_command.h"

#include "engine.h"
#include "export/out_file.h"
#include "model_io.h"
#include "pipeline.h"
#include "report/json.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>

typedef struct work {
    const ot_run_request *r;
    ot_diag *d;
    ot_arena *a;
    ot_model *m;
    ot_session *s;
    ot_nd *given;              /* [r n_inputs] */
    ot_nd *arrays;             /* [g n_inputs] of each graph input; no data for initializers */
    ot_shape_binding *shapes;  /* [n_shapes] */
    size_t n_shapes;
    ot_override *overrides;    /* [n_overrides] */
    size_t n_overrides;
    ot_nd *out;                /* [g n_outputs] */
    double *ms;                /* [repeat] */
    uint32_t repeat;
} work;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- reading ---- */

static ot_status load(work *w)
{
    ot_run run = {.diag = w->d, .source = {.path = w->r->model}};
    ot_status s = ot_run_load(&run);
    w->m = run.model; /* the run holds nothing else yet */
    return s;
}

/* ", a, b" for a message; only as many names as fit. */
static const char *input_names(const work *w, char *buf, size_t size)
{
    const ot_graph *g = w->m->graph;
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < g->n_inputs && at < size; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (v->init && !v->overridable) continue;
        int n = snprintf(buf + at, size - at, "%s'%s'", at ? ", " : "", v->name);
        at += n < 0 ? 0 : (size_t)n;
    }
    if (at >= size) memcpy(buf + size - 4, "...", 4);
    return buf;
}

/* The graph input of that name. */
static ot_status find_input(const work *w, const char *name, uint32_t *out)
{
    const ot_graph *g = w->m->graph;
    char names[600];
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (strcmp(v->name, name) != 0) continue;
        *out = k;
        if (!v->init || v->overridable) return OT_OK;
        return ot_fail(w->d, OT_E_USAGE, "--input %.200s: this is an initializer, which cannot be given before IR version 4",
                       name);
    }
    return ot_fail(w->d, OT_E_USAGE, "--input %.200s: the model has no input of that name; it has %s", name,
                   *input_names(w, names, sizeof names) ? names : "none");
}

static const char *dims_text(int32_t rank, const int64_t *dims, char *buf, size_t n)
{
    size_t at = (size_t)snprintf(buf, n, "[");
    for (int32_t k = 0; k < rank && at < n; k++) {
        int more = dims[k] < 0 ? snprintf(buf + at, n - at, "%s?", k ? "," : "")
                               : snprintf(buf + at, n - at, "%s%lld", k ? "," : "", (long long)dims[k]);
        at += more < 0 ? 0 : (size_t)more;
    }
    if (at < n) snprintf(buf + at, n - at, "]");
    return buf;
}

/* Does the array of `file` suit the input? */
static ot_status check_given(const work *w, const ot_value *v, const ot_nd *a, const char *file)
{
    char takes[400], has[400];
    bool fits = v->rank < 0 || v->rank == (int32_t)a->rank;
    if (!v->is_tensor) return ot_fail(w->d, OT_E_INPUT, "input '%.200s' is no tensor: it cannot be given", v->name);
    if (v->dtype != OT_DT_UNKNOWN && v->dtype != a->dtype)
        return ot_fail(w->d, OT_E_INPUT, "input '%.200s' is %s, but '%.300s' holds %s", v->name, ot_dtype_name(v->dtype),
                       file, ot_dtype_name(a->dtype));
    for (int32_t k = 0; k < v->rank && fits; k++) fits = v->dims[k] == OT_DIM_UNKNOWN || v->dims[k] == a->dims[k];
    if (fits) return OT_OK;
    return ot_fail(w->d, OT_E_INPUT, "input '%.200s' has shape %s, but '%.300s' has %s", v->name,
                   dims_text(v->rank, v->dims, takes, sizeof takes), file,
                   dims_text((int32_t)a->rank, a->dims, has, sizeof has));
}

static ot_status read_given(work *w)
{
    const ot_graph *g = w->m->graph;
    for (size_t k = 0; k < w->r->n_inputs; k++) {
        const ot_run_input *in = &w->r->inputs[k];
        uint32_t at = 0;
        OT_TRY(find_input(w, in->name, &at));
        const ot_value *v = &g->values[g->inputs[at]];
        OT_TRY(ot_npy_read(in->file, w->d, &w->given[k]));
        OT_TRY(check_given(w, v, &w->given[k], in->file));
        w->arrays[at] = w->given[k];
        if (v->init) w->overrides[w->n_overrides++] = (ot_override){v->name, w->given[k]};
    }
    return OT_OK;
}

/* ---- making up ---- */

/* The next number of a sequence of 64-bit numbers (splitmix64). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Floats from [0,1), integers 0 or 1, booleans true. */
static void fill_random(ot_nd *a, uint64_t state)
{
    int64_t n;
    size_t size = ot_dtype_bytes(a->dtype);
    if (!ot_nd_elems(a, &n)) OT_BUG("an array in memory cannot be counted");
    for (int64_t k = 0; k < n; k++) {
        uint64_t bits = next_random(&state), one = bits >> 63;
        float f = (float)(bits >> 40) * 0x1p-24f;
        double d = (double)(bits >> 11) * 0x1p-53;
        uint16_t h = a->dtype == OT_F16 ? ot_f32_to_f16(f) : ot_f32_to_bf16(f);
        const void *from = &one; /* little-endian: the low bytes */
        if (a->dtype == OT_BOOL) one = 1;
        if (a->dtype == OT_F32) from = &f;
        if (a->dtype == OT_F64) from = &d;
        if (a->dtype == OT_F16 || a->dtype == OT_BF16) from = &h;
        memcpy((char *)a->data + (size_t)k * size, from, size);
    }
}

static const ot_shape_binding *shape_of(const work *w, const char *name)
{
    for (size_t k = 0; k < w->r->n_shapes; k++)
        if (strcmp(w->r->shapes[k].input, name) == 0) return &w->r->shapes[k];
    return NULL;
}

/* Dims of an input that is not given: --shape, else what the model states, 1 where it states nothing. */
static ot_status choose_dims(const work *w, const ot_value *v, int64_t *dims, uint32_t *rank)
{
    const ot_shape_binding *b = shape_of(w, v->name);
    if (!v->is_tensor || ot_dtype_bytes(v->dtype) == 0 || ot_dtype_bytes(v->dtype) > 8)
        return ot_fail(w->d, OT_E_INPUT, "input '%.200s' is %s, for which nothing can be made up: give it with --input",
                       v->name, v->is_tensor ? ot_dtype_name(v->dtype) : "no tensor");
    if (b) {
        *rank = b->rank;
        memcpy(dims, b->dims, b->rank * sizeof *dims);
        return OT_OK;
    }
    if (v->rank < 0)
        return ot_fail(w->d, OT_E_INPUT, "input '%.200s' has no known rank: give it with --input, or --shape", v->name);
    *rank = (uint32_t)v->rank;
    for (int32_t k = 0; k < v->rank; k++) dims[k] = v->dims[k] == OT_DIM_UNKNOWN ? 1 : v->dims[k];
    return OT_OK;
}

static ot_status make_up(work *w)
{
    const ot_graph *g = w->m->graph;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        int64_t dims[OT_RANK_MAX];
        uint32_t rank = 0;
        if (v->init || w->arrays[k].data) continue;
        OT_TRY(choose_dims(w, v, dims, &rank));
        OT_TRY(ot_nd_new(&w->arrays[k], v->dtype, rank, dims, w->d));
        fill_random(&w->arrays[k], w->r->seed ^ (uint64_t)k << 32);
    }
    return OT_OK;
}

/* The arrays bind the inputs' dimensions; --shape of an input that does not exist, or is given otherwise, says so there. */
static ot_status bind_shapes(work *w)
{
    const ot_graph *g = w->m->graph;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        const ot_nd *a = &w->arrays[k];
        if (v->init || !a->data) continue;
        w->shapes[w->n_shapes++] = (ot_shape_binding){v->name, a->rank, a->dims};
    }
    for (size_t k = 0; k < w->r->n_shapes; k++) w->shapes[w->n_shapes++] = w->r->shapes[k];
    return OT_OK;
}

static ot_status prepare(work *w)
{
    const ot_graph *g = w->m->graph;
    w->repeat = w->r->repeat ? w->r->repeat : 1;
    w->given = OT_NEW_N(w->a, ot_nd, w->r->n_inputs + 1);
    w->arrays = OT_NEW_N(w->a, ot_nd, g->n_inputs + 1u);
    w->shapes = OT_NEW_N(w->a, ot_shape_binding, g->n_inputs + w->r->n_shapes + 1);
    w->overrides = OT_NEW_N(w->a, ot_override, w->r->n_inputs + 1);
    w->out = OT_NEW_N(w->a, ot_nd, g->n_outputs + 1u);
    w->ms = OT_NEW_N(w->a, double, w->repeat);
    if (!w->given || !w->arrays || !w->shapes || !w->overrides || !w->out || !w->ms) return ot_fail_nomem(w->d);
    OT_TRY(read_given(w));
    OT_TRY(make_up(w));
    return bind_shapes(w);
}

/* ---- running ---- */

static ot_status run_all(work *w)
{
    const ot_run_request *r = w->r;
    ot_session_options o = {.threads = r->threads, .reference = r->reference, .shapes = w->shapes, .n_shapes = w->n_shapes,
                            .overrides = w->overrides, .n_overrides = w->n_overrides};
    OT_TRY(ot_session_new(w->m, &o, w->d, &w->s));
    uint32_t n = ot_session_inputs(w->s);
    ot_nd *in = OT_NEW_N(w->a, ot_nd, n + 1u);
    const ot_graph *g = w->m->graph;
    uint32_t at = 0;
    if (!in) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < g->n_inputs && at < n; k++)
        if (&g->values[g->inputs[k]] == ot_session_input(w->s, at)) in[at++] = w->arrays[k];
    for (uint32_t k = 0; k < w->repeat; k++) {
        double start = now();
        for (uint32_t j = 0; j < g->n_outputs; j++) w->out[j] = (ot_nd){0};
        OT_TRY(ot_session_run(w->s, in, w->out, w->d));
        w->ms[k] = (now() - start) * 1e3;
    }
    return OT_OK;
}

/* ---- writing ---- */

typedef struct file {
    const char *path;
    const ot_nd *array;
} file;

/* D/<k>.npy; the tensors of a sequence are D/<k>-<i>.npy. */
static ot_status list_files(work *w, file **out, size_t *n)
{
    size_t cap = 0;
    *out = NULL;
    *n = 0;
    for (uint32_t k = 0; k < w->m->graph->n_outputs; k++) {
        const ot_nd *a = &w->out[k];
        size_t items = a->list ? a->list->n : 1;
        for (size_t i = 0; i < items; i++) {
            file f = {.array = a->list ? &a->list->items[i] : a};
            f.path = a->list ? ot_format(w->a, "%s/%u-%zu.npy", w->r->output_dir, k, i)
                             : ot_format(w->a, "%s/%u.npy", w->r->output_dir, k);
            if (!f.path || !OT_PUSH(w->a, *out, *n, cap, f)) return ot_fail_nomem(w->d);
        }
    }
    return OT_OK;
}

static ot_status write_files(work *w, const file *files, size_t n, ot_out *outs)
{
    size_t opened = 0;
    ot_status s = OT_OK;
    for (; opened < n && s == OT_OK; opened++) {
        const file *f = &files[opened];
        s = ot_out_open(&outs[opened], f->path, w->a, w->d);
        if (s == OT_OK) s = ot_npy_put(&outs[opened].sink, f->array, f->path, w->d);
        if (s == OT_OK) s = ot_out_seal(&outs[opened]);
    }
    for (size_t k = 0; k < n && s == OT_OK; k++) s = ot_out_publish(&outs[k]);
    for (size_t k = 0; k < opened; k++) ot_out_close(&outs[k]);
    return s;
}

static ot_status write_outputs(work *w)
{
    file *files;
    size_t n;
    if (!w->r->output_dir) return OT_OK;
    if (mkdir(w->r->output_dir, 0777) != 0 && errno != EEXIST)
        return ot_fail(w->d, OT_E_SYSTEM, "cannot make folder '%.300s': %s", w->r->output_dir, strerror(errno));
    OT_TRY(list_files(w, &files, &n));
    ot_out *outs = OT_NEW_N(w->a, ot_out, n + 1);
    return outs ? write_files(w, files, n, outs) : ot_fail_nomem(w->d);
}

/* ---- saying ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void json_outputs(const work *w, FILE *f)
{
    fputs("\"outputs\": [", f);
    for (uint32_t k = 0; k < w->m->graph->n_outputs; k++) {
        const ot_nd *a = &w->out[k];
        fprintf(f, "%s\n  {\"name\": ", k ? "," : "");
        ot_json_string(ot_session_output(w->s, k)->name, f);
        fprintf(f, ", \"dtype\": \"%s\", \"shape\": ", ot_dtype_name(a->dtype));
        if (a->list) {
            fprintf(f, "null, \"length\": %zu}", a->list->n);
            continue;
        }
        for (uint32_t j = 0; j < a->rank; j++) fprintf(f, "%s%lld", j ? ", " : "[", (long long)a->dims[j]);
        fputs(a->rank ? "]}" : "[]}", f);
    }
    fputs("]", f);
}

static void print_json(const work *w, const ot_session_figures *x, FILE *f)
{
    uint32_t n;
    const ot_node_time *t = ot_session_times(w->s, &n);
    fputs("{\"ms_min\": ", f);
    ot_json_number(w->ms[0], f);
    fputs(", \"ms_p50\": ", f);
    ot_json_number(w->ms[w->repeat / 2], f);
    fprintf(f,
            ", \"runs\": %u, \"peak_bytes\": %lld, \"planned_peak_bytes\": %lld, \"weight_bytes\": %lld, \"threads\": %u,\n",
            w->repeat, (long long)x->peak, (long long)x->planned_peak, (long long)x->weight_bytes,
            w->r->threads ? w->r->threads : 1);
    fputs("\"nodes\": [", f);
    for (uint32_t k = 0; k < n; k++) {
        fprintf(f, "%s\n  {\"name\": ", k ? "," : "");
        ot_json_string(t[k].name, f);
        fputs(", \"op\": ", f);
        ot_json_string(t[k].op, f);
        fputs(", \"ms\": ", f);
        ot_json_number(t[k].seconds * 1e3, f);
        fputs("}", f);
    }
    fputs("],\n", f);
    json_outputs(w, f);
    fputs("}\n", f);
}

static void print_table(const work *w, const ot_session_figures *x, FILE *f)
{
    char a[32], b[32], c[400];
    uint32_t n;
    const ot_node_time *t = ot_session_times(w->s, &n);
    fprintf(f, "time     %s least, %s median of %u\n", ot_format_seconds(w->ms[0] * 1e-3, a, sizeof a),
            ot_format_seconds(w->ms[w->repeat / 2] * 1e-3, b, sizeof b), w->repeat);
    fprintf(f, "memory   %s of values at the most, %s of them planned", ot_format_bytes((double)x->peak, a, sizeof a),
            ot_format_bytes((double)x->planned_peak, b, sizeof b));
    fprintf(f, "; weights %s\n", ot_format_bytes((double)x->weight_bytes, a, sizeof a));
    if (w->r->verbose) fprintf(f, "nodes    %u run, %u computed before; %u values not as planned\n", x->n_nodes, x->n_folded, x->n_mispredicted);
    for (uint32_t k = 0; w->r->verbose && k < n; k++)
        fprintf(f, "node     %-10s %s %s\n", ot_format_seconds(t[k].seconds, a, sizeof a), t[k].op, t[k].name);
    for (uint32_t k = 0; k < w->m->graph->n_outputs; k++) {
        const ot_nd *o = &w->out[k];
        const char *name = ot_session_output(w->s, k)->name;
        if (o->list)
            fprintf(f, "output %u %s: sequence of %zu\n", k, name, o->list->n);
        else
            fprintf(f, "output %u %s: %s %s\n", k, name, ot_dtype_name(o->dtype),
                    dims_text((int32_t)o->rank, o->dims, c, sizeof c));
    }
}

static ot_status say(work *w)
{
    ot_session_figures x;
    ot_session_figures_get(w->s, &x);
    qsort(w->ms, w->repeat, sizeof *w->ms, by_value);
    if (w->r->json)
        print_json(w, &x, stdout);
    else if (!w->r->quiet)
        print_table(w, &x, stdout);
    return ferror(stdout) ? OT_E_SYSTEM : OT_OK;
}

static ot_status run_command(work *w)
{
    OT_TRY(load(w));
    OT_TRY(prepare(w));
    OT_TRY(run_all(w));
    OT_TRY(write_outputs(w));
    return say(w);
}

ot_status ot_run_command(const ot_run_request *r, ot_diag *d)
{
    work w = {.r = r, .d = d, .a = ot_arena_new()};
    ot_status s = w.a ? run_command(&w) : ot_fail_nomem(d);
    ot_session_free(w.s);
    for (uint32_t k = 0; w.arrays && k < w.m->graph->n_inputs; k++) {
        bool given = false;
        for (size_t j = 0; j < r->n_inputs; j++) given = given || (w.given[j].data && w.given[j].data == w.arrays[k].data);
        if (!given) ot_nd_release(&w.arrays[k]);
    }
    for (size_t j = 0; w.given && j < r->n_inputs; j++) ot_nd_release(&w.given[j]);
    ot_model_free(w.m);
    ot_arena_free(w.a);
    return s;
}
