/* calibrate: measure this machine or a device, write a target file.
 *
 *   estimate of `host` -> capacities -> measured figures -> host-calibrated   -> -o FILE, or cache
 *   device             -> capacities -> measured figures -> opencl-calibrated -> -o FILE
 *
 * The file names the processor and the number of threads, or the device; nothing else of the
 * machine.
 */
#include "calibrate_command.h"

#include "model_device.h"

#include "onnx/export/out_file.h"
#include "measure/calibrate.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- where to ---- */

/* Folders of the path that are missing, for the user alone. */
static ot_status make_folders(char *path, ot_diag *d)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = '\0';
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
        if (failed)
            ot_fail(d, OT_E_SYSTEM, "cannot make folder '%.300s': %s", path, strerror(failed));
        *p = '/';
        if (failed) return OT_E_SYSTEM;
    }
    return OT_OK;
}

static ot_status choose_path(const ot_calibrate_request *r, char *path, size_t size, ot_diag *d)
{
    if (!r->output) {
        if (ot_target_cache_path(path, size)) return OT_OK;
        return ot_fail(
            d, OT_E_USAGE,
            "there is no cache to write to (ONNX_TILE_CACHE=off, or no home folder): use -o");
    }
    int n = snprintf(path, size, "%s", r->output);
    return n >= 0 && (size_t)n < size
               ? OT_OK
               : ot_fail(d, OT_E_USAGE, "the name of the output is too long");
}

/* ---- the file ---- */

static ot_status save(const ot_target *t, const char *path, ot_diag *d)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    ot_status s = f ? ot_target_save(t, f, d) : ot_fail_nomem(d);
    if (f && fclose(f) != 0 && s == OT_OK) s = ot_fail_nomem(d);
    if (s == OT_OK) s = ot_out_write(path, text, n, d);
    free(text);
    return s;
}

/* ---- figures ---- */

static void print_rate(FILE *f, const char *what, double rate, const char *unit)
{
    fprintf(f, "%-16s %8.2f %s\n", what, rate / 1e9, unit);
}

static void print_machine(const ot_calibration *c, FILE *f)
{
    const ot_target *t = &c->target;
    fprintf(f, "%s, %u thread%s\n\n", t->cpu, c->threads, c->threads == 1 ? "" : "s");
    print_rate(f, "L1", c->bw_l1, "GB/s");
    print_rate(f, "fast (L2)", t->bw_fast, "GB/s");
    if (t->mid_bytes) print_rate(f, "mid (L3)", t->bw_mid, "GB/s");
    print_rate(f, "slow", t->bw_slow, "GB/s");
    print_rate(f, "slow, one core", t->bw_slow_core, "GB/s");
}

static void print_device(const ot_calibration *c, FILE *f)
{
    const ot_transfer_costs *x = &c->target.transfers;
    char a[32], b[32];
    fprintf(f, "%s\n\n", c->target.description);
    print_rate(f, "upload", x->upload, "GB/s");
    print_rate(f, "download", x->download, "GB/s");
    fprintf(f, "%-16s upload %s, download %s\n", "transfers begin",
            ot_format_seconds(x->upload_start, a, sizeof a),
            ot_format_seconds(x->download_start, b, sizeof b));
    fprintf(f, "%-16s %11s\n", "fast", ot_format_bytes((double)c->target.fast_bytes, a, sizeof a));
    print_rate(f, "", c->target.bw_fast, "GB/s");
    print_rate(f, "slow", c->target.bw_slow, "GB/s");
}

static void print_figures(const ot_calibration *c, FILE *f)
{
    const ot_target *t = &c->target;
    char a[32], b[32], e[32];
    (c->dev ? print_device : print_machine)(c, f);
    print_rate(f, "convolution", t->rate_conv, "G multiply-adds/s");
    if (!c->dev)
        print_rate(f, "  winograd", t->rate_conv_winograd, "G multiply-adds/s of its products");
    print_rate(f, "  pointwise", t->rate_conv_pointwise, "G multiply-adds/s");
    print_rate(f, "  depthwise", t->rate_conv_depthwise, "G multiply-adds/s");
    print_rate(f, "matrix product", t->rate_gemm, "G multiply-adds/s");
    print_rate(f, "element-wise", t->rate_elem, "G elements/s");
    print_rate(f, "transcendental", t->rate_trans, "G elements/s");
    print_rate(f, "reduction", t->rate_reduce, "G elements/s");
    print_rate(f, "pooling", t->rate_pool, "G elements/s");
    fprintf(f, "overheads        %s %s, tile %s, region %s\n", c->dev ? "launch" : "node",
            ot_format_seconds(t->node_overhead, a, sizeof a),
            ot_format_seconds(t->loop_overhead, b, sizeof b),
            ot_format_seconds(t->region_overhead, e, sizeof e));
}

/* ---- the command ---- */

static ot_status describe(ot_calibration *c, uint32_t threads, ot_diag *d)
{
    ot_target *t = &c->target;
    OT_TRY(ot_target_load("host", threads, d, t));
    ot_target_set_engine(t);
    c->threads = t->cores;
    ot_target_cpu(t->cpu, sizeof t->cpu);
    snprintf(t->name, sizeof t->name, "host-calibrated");
    snprintf(t->description, sizeof t->description, "native engine on %s, %u thread%s", t->cpu,
             t->cores, t->cores == 1 ? "" : "s");
    return OT_OK;
}

static ot_status measure_machine(ot_calibration *c, uint32_t threads, ot_diag *d)
{
    OT_TRY(describe(c, threads, d));
    return ot_calibrate(c, d);
}

/* What files may contain of a name that a driver gives. */
static void make_printable(char *text)
{
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
}

static ot_status measure_device(ot_calibration *c, ot_diag *d)
{
    ot_target *t = &c->target;
    const ot_device_facts *f = ot_device_about(c->dev);
    const char *api = ot_dev_api_name(f->api);
    c->threads = 1;
    OT_TRY(ot_calibrate_device(c, d));
    snprintf(t->name, sizeof t->name, "%s-calibrated", api);
    snprintf(t->description, sizeof t->description, "%s on %.80s", api, f->name);
    make_printable(t->description);
    return OT_OK;
}

static ot_status finish(const ot_calibrate_request *r, ot_calibration *c, char *path, ot_diag *d)
{
    if (!r->output) OT_TRY(make_folders(path, d));
    OT_TRY(save(&c->target, path, d));
    if (r->quiet) return OT_OK;
    FILE *f = strcmp(path, "-") == 0 ? stderr : stdout;
    print_figures(c, f);
    if (f == stdout) printf("written to %s\n", path);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

ot_status ot_calibrate_command(const ot_calibrate_request *r, ot_diag *d)
{
    char path[4096];
    ot_model_device on;
    ot_calibration c = {.log = r->verbose ? stderr : NULL, .progress = r->progress};
    OT_TRY(choose_path(r, path, sizeof path, d));
    OT_TRY(ot_model_device_open(&(ot_device_request){.name = r->device}, d, &on));
    c.dev = on.dev;
    ot_status s = c.dev ? measure_device(&c, d) : measure_machine(&c, r->threads, d);
    ot_progress_end(c.progress);
    if (s == OT_OK) s = finish(r, &c, path, d);
    const ot_status closed = ot_model_device_close(&on, d);
    return s == OT_OK ? closed : s;
}
