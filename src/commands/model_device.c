/* Which device a model runs on, and its figures as text and as JSON. */
#include "model_device.h"

#include "device/profile.h"
#include "onnx/export/out_file.h"

#include <math.h>

ot_status ot_model_device_open(const ot_device_request *r, ot_diag *d, ot_model_device *out)
{
    ot_dev_api api;
    uint32_t number;
    ot_device_error e;
    const ot_device_options o = {.budget = r->budget, .validate = r->checks};
    *out = (ot_model_device){0};
    if (!r->name || strcmp(r->name, "cpu") == 0) return OT_OK;
    if (!ot_device_parse(r->name, &api, &number))
        return ot_fail(d, OT_E_USAGE, "--device '%.100s' is no device", r->name);
    if (ot_device_open(api, number, &o, &e, &out->dev) != OT_OK) return ot_device_tell(&e, d);
    out->laid = ot_device_suited(out->dev);
    out->laid.poisons = out->checks = r->checks;
    out->place = ot_device_backend(&out->laid);
    return OT_OK;
}

static ot_status check(ot_device *dev, ot_diag *d)
{
    const char *first = "";
    const uint32_t left = ot_device_leaks(dev, stderr), found = ot_device_findings(dev, &first);
    if (found)
        return ot_fail(d, OT_E_SYSTEM, "the validation layer found %u things, the first: %.600s",
                       found, first);
    return left ? ot_fail(d, OT_E_SYSTEM, "%u things of the device were never freed", left) : OT_OK;
}

ot_status ot_model_device_close(ot_model_device *x, ot_diag *d)
{
    const ot_status s = x->dev && x->checks ? check(x->dev, d) : OT_OK;
    ot_device_close(x->dev);
    *x = (ot_model_device){0};
    return s;
}

const ot_backend *ot_model_device_backend(const ot_model_device *x)
{
    return x->dev ? &x->place : NULL;
}

/* What the buffers of the device took at the most, as the device counts them. */
static int64_t measured(const ot_model_device *x) { return ot_device_use(x->dev).peak; }

/* Nothing where no kernel could take a layout. */
static void print_layouts(const ot_device_layouts *v, const char *indent, FILE *f)
{
    char a[32], b[32];
    if (v->n_analysed == 0) return;
    fprintf(f,
            "%s         layouts: %u constants packed, %s, %s of it filled up; elements spread in "
            "%u of %u kernels\n",
            indent, v->n_packed, ot_format_bytes((double)v->packed_bytes, a, sizeof a),
            ot_format_bytes((double)v->filled, b, sizeof b), v->n_spread, v->n_analysed);
    if (v->n_blocked)
        fprintf(f, "%s         %u activations in blocks of %u channels, %s of them in all\n",
                indent, v->n_blocked, v->layout.block,
                ot_format_bytes((double)v->blocked_bytes, a, sizeof a));
    fprintf(f,
            "%s         transactions of %u bytes, of each of these once: %.3g predicted, %.3g "
            "without layouts (x%.2f)\n",
            indent, v->layout.sector, v->transactions, v->transactions_plain,
            v->transactions / v->transactions_plain);
}

void ot_model_device_print(const ot_model_device *x, const ot_session *s, const char *indent,
                           FILE *f)
{
    char a[32], b[32], c[32];
    ot_device_figures v;
    ot_device_figures_get(s, &v);
    const ot_device_facts *facts = ot_device_about(x->dev);
    fprintf(f, "%sdevice   %s:%u ", indent, ot_dev_api_name(facts->api), facts->number);
    ot_put_shown(facts->name, f);
    fputc('\n', f);
    fprintf(f, "%s         memory %s planned for activations, %s for weights; %s allocated\n",
            indent, ot_format_bytes((double)v.arena_bytes, a, sizeof a),
            ot_format_bytes((double)v.weight_bytes, b, sizeof b),
            ot_format_bytes((double)v.device_bytes, c, sizeof c));
    fprintf(f,
            "%s         %u nodes on the device, %u on the host; %u functions, %s in %s; %u "
            "launches a run\n",
            indent, v.n_device, v.n_host, v.n_programs, v.from_disk ? "read" : "compiled",
            ot_format_seconds(v.compile_seconds, a, sizeof a), v.n_launches);
    fprintf(f, "%s         %s in %u uploads, %s in %u downloads a run", indent,
            ot_format_bytes((double)v.uploaded, a, sizeof a), v.n_uploads,
            ot_format_bytes((double)v.downloaded, b, sizeof b), v.n_downloads);
    if (v.mapped_up + v.mapped_down > 0)
        fprintf(f, "; %s of it through maps",
                ot_format_bytes((double)(v.mapped_up + v.mapped_down), c, sizeof c));
    fputc('\n', f);
    if (x->checks)
        fprintf(f, "%s         checked: %s filled with NaN before each run%s\n", indent,
                ot_format_bytes((double)v.poisoned, a, sizeof a),
                facts->api == OT_DEV_VULKAN ? "; under the validation layer" : "");
    print_layouts(&v.layouts, indent, f);
    for (uint32_t k = 0; k < v.n_fallbacks; k++) {
        fprintf(f, "%s         on the host: %u ", indent, v.fallbacks[k].n);
        ot_put_shown(v.fallbacks[k].op, f);
        fprintf(f, " (%s), first '", v.fallbacks[k].why);
        ot_put_shown(v.fallbacks[k].node, f);
        fputs("'\n", f);
    }
}

static void put_layouts(const ot_device_layouts *v, ot_json *j)
{
    ot_json_open(j, "layouts");
    ot_json_put_int(j, "together", v->layout.together);
    ot_json_put_int(j, "busy_work_items", v->layout.busy);
    ot_json_put_int(j, "sector_bytes", v->layout.sector);
    ot_json_put_int(j, "packed_constants", v->n_packed);
    ot_json_put_int(j, "packed_bytes", v->packed_bytes);
    ot_json_put_int(j, "packed_filled_bytes", v->filled);
    ot_json_put_int(j, "block", v->layout.block);
    ot_json_put_int(j, "blocked_activations", v->n_blocked);
    ot_json_put_int(j, "blocked_bytes", v->blocked_bytes);
    ot_json_put_int(j, "kernels", v->n_kernels);
    ot_json_put_int(j, "analysed_kernels", v->n_analysed);
    ot_json_put_int(j, "spread_kernels", v->n_spread);
    ot_json_put_number(j, "transactions", v->transactions);
    ot_json_put_number(j, "transactions_plain", v->transactions_plain);
    ot_json_put_number(j, "transactions_ideal", v->transactions_ideal);
    ot_json_close(j);
}

/* Of the last run through maps; by the mover since the session was made. */
static void put_moves(const ot_device_figures *v, ot_json *j)
{
    ot_json_open(j, "moves");
    ot_json_put_int(j, "mapped_up_bytes", v->mapped_up);
    ot_json_put_int(j, "mapped_down_bytes", v->mapped_down);
    ot_json_put_int(j, "requests", (int64_t)v->moves.n_requests);
    ot_json_put_int(j, "transfers", (int64_t)v->moves.n_transfers);
    ot_json_put_int(j, "merged", (int64_t)v->moves.n_merged);
    ot_json_put_int(j, "requested_bytes", (int64_t)v->moves.bytes_asked);
    ot_json_put_int(j, "moved_bytes", (int64_t)v->moves.bytes_moved);
    ot_json_put_int(j, "waits_for_staging", (int64_t)v->moves.n_waits_for_staging);
    ot_json_close(j);
}

void ot_model_device_json(const ot_model_device *x, const ot_session *s, ot_json *j)
{
    ot_device_figures v;
    ot_device_figures_get(s, &v);
    const ot_device_facts *facts = ot_device_about(x->dev);
    ot_json_open(j, "device");
    ot_json_put_text(j, "api", ot_dev_api_name(facts->api));
    ot_json_put_int(j, "number", facts->number);
    ot_json_put_text(j, "name", facts->name);
    ot_json_put_int(j, "planned_bytes", v.arena_bytes + v.weight_bytes);
    ot_json_put_int(j, "arena_bytes", v.arena_bytes);
    ot_json_put_int(j, "arena_live_bytes", v.arena_live);
    ot_json_put_int(j, "arena_blocks", v.arena_blocks);
    ot_json_put_int(j, "weight_bytes", v.weight_bytes);
    ot_json_put_int(j, "held_bytes", v.device_bytes);
    ot_json_put_int(j, "peak_bytes", measured(x));
    ot_json_put_int(j, "nodes_on_device", v.n_device);
    ot_json_put_int(j, "nodes_on_host", v.n_host);
    ot_json_put_int(j, "functions", v.n_programs);
    ot_json_put_int(j, "launches", v.n_launches);
    if (x->checks) ot_json_put_int(j, "poisoned_bytes", v.poisoned);
    ot_json_put_int(j, "uploaded_bytes", v.uploaded);
    ot_json_put_int(j, "downloaded_bytes", v.downloaded);
    put_moves(&v, j);
    ot_json_put_number(j, "compile_seconds", v.compile_seconds);
    put_layouts(&v.layouts, j);
    ot_json_list(j, "fallbacks");
    for (uint32_t k = 0; k < v.n_fallbacks; k++) {
        ot_json_open(j, NULL);
        ot_json_put_text(j, "operator", v.fallbacks[k].op);
        ot_json_put_text(j, "node", v.fallbacks[k].node);
        ot_json_put_text(j, "why", v.fallbacks[k].why);
        ot_json_put_int(j, "nodes", v.fallbacks[k].n);
        ot_json_close(j);
    }
    ot_json_close(j);
    if (x->recorded) {
        ot_json_open(j, "profile");
        ot_device_profile_json(x->dev, &v.heap, 1, x->peak, j);
        ot_json_close(j);
    }
    ot_json_close(j);
}

/* ---- what it did ---- */

/* By a device of its own, so that nothing of it is in the figures of x. What fails is not
 * measured: the models may fill the device. */
static void measure_transfers(const ot_model_device *x, double peak[3])
{
    const ot_device_facts *f = ot_device_about(x->dev);
    const ot_device_options o = {0};
    ot_device_error e;
    ot_device *dev;
    if (ot_device_open(f->api, f->number, &o, &e, &dev) != OT_OK) return;
    const bool recorded = ot_device_profile_start(dev, &e) == OT_OK;
    if (ot_device_measure_bandwidth(dev, &e, peak) != OT_OK) memset(peak, 0, 3 * sizeof *peak);
    const ot_device_profile sum = ot_device_profile_sum(dev);
    for (int k = 0; k < 3 && recorded; k++) /* by the device's clock, as what is compared with it */
        if (peak[k] > 0) peak[k] = fmax(peak[k], sum.work[k].fastest);
    ot_device_close(dev);
}

ot_status ot_model_device_record(ot_model_device *x, uint32_t n, ot_diag *d)
{
    ot_device_error e;
    measure_transfers(x, x->peak);
    for (uint32_t k = 0; k < n; k++) {
        x[k].recorded = true;
        memcpy(x[k].peak, x[0].peak, sizeof x[k].peak);
        if (ot_device_profile_start(x[k].dev, &e) != OT_OK) return ot_device_tell(&e, d);
    }
    return OT_OK;
}

ot_status ot_model_device_trace(const ot_model_device *x, const char *const *names, uint32_t n,
                                const char *path, ot_diag *d)
{
    ot_device *devices[2];
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < n; k++) devices[k] = x[k].dev;
    ot_device_profile_trace(devices, names, n, f);
    ot_status s = fclose(f) == 0 ? ot_out_write(path, text, bytes, d) : ot_fail_nomem(d);
    free(text);
    return s;
}

/* ---- for reports ---- */

static double rate_of(int64_t bytes, double seconds)
{
    return seconds > 0 ? (double)bytes / seconds : OT_ABSENT;
}

static ot_status list_transfers(const ot_device_profile *sum, const double peak[3], ot_arena *a,
                                ot_diag *d, ot_bench_device *out)
{
    ot_bench_transfer *list = OT_NEW_N(a, ot_bench_transfer, OT_DEV_WORK_KERNEL);
    if (!list) return ot_fail_nomem(d);
    for (int k = 0; k < OT_DEV_WORK_KERNEL; k++) {
        if (sum->work[k].n == 0) continue;
        const double rate = rate_of(sum->work[k].bytes, sum->work[k].seconds);
        const bool known = k <= OT_DEV_WORK_COPY && peak[k] > 0 && rate >= 0;
        list[out->n_transfers++] = (ot_bench_transfer){
            .direction = ot_dev_work_name((ot_dev_work)k),
            .count = (int64_t)sum->work[k].n,
            .bytes = sum->work[k].bytes,
            .seconds = sum->work[k].seconds,
            .bandwidth = rate,
            .of_peak = known ? rate / peak[k] : OT_ABSENT};
    }
    out->transfers = list;
    return OT_OK;
}

static int by_seconds(const void *a, const void *b)
{
    const ot_bench_shader *x = a, *y = b;
    return x->seconds != y->seconds ? (x->seconds < y->seconds) - (x->seconds > y->seconds)
                                    : strcmp(x->name, y->name);
}

static ot_status list_kernels(ot_device *dev, ot_arena *a, ot_diag *d, ot_bench_device *out)
{
    uint32_t n;
    ot_device_kernel_sum *sums = ot_device_profile_kernels(dev, &n);
    ot_bench_shader *list = OT_NEW_N(a, ot_bench_shader, n + 1u);
    bool ok = list != NULL;
    for (uint32_t k = 0; ok && k < n; k++) {
        list[k] = (ot_bench_shader){ot_strdup(a, sums[k].name), (int64_t)sums[k].n, sums[k].bytes,
                                    sums[k].seconds, rate_of(sums[k].bytes, sums[k].seconds)};
        ok = list[k].name != NULL;
    }
    free(sums);
    if (!ok) return ot_fail_nomem(d);
    if (n) qsort(list, n, sizeof *list, by_seconds);
    out->kernels = list;
    out->n_kernels = n;
    return OT_OK;
}

static ot_status list_fallbacks(const ot_device_figures *v, ot_arena *a, ot_diag *d,
                                ot_bench_device *out)
{
    ot_bench_fallback *list = OT_NEW_N(a, ot_bench_fallback, v->n_fallbacks + 1u);
    if (!list) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < v->n_fallbacks; k++)
        list[k] = (ot_bench_fallback){v->fallbacks[k].op, v->fallbacks[k].node, v->fallbacks[k].why,
                                      v->fallbacks[k].n};
    out->fallbacks = list;
    out->n_fallbacks = v->n_fallbacks;
    return OT_OK;
}

ot_status ot_model_device_facts(const ot_model_device *x, const ot_session *s, const char *side,
                                ot_arena *a, ot_diag *d, ot_bench_device *out)
{
    ot_device_figures v;
    ot_device_figures_get(s, &v);
    const ot_device_facts *facts = ot_device_about(x->dev);
    const ot_device_profile sum = ot_device_profile_sum(x->dev);
    const bool analysed = v.layouts.n_analysed > 0;
    *out = (ot_bench_device){
        .side = side,
        .api = ot_dev_api_name(facts->api),
        .name = facts->name,
        .number = facts->number,
        .planned = v.arena_bytes + v.weight_bytes,
        .arena = v.arena_bytes,
        .live = v.arena_live,
        .weights = v.weight_bytes,
        .peak = sum.usage.peak,
        .budget = sum.usage.budget,
        .n_made = (int64_t)sum.usage.n_allocated,
        .n_freed = (int64_t)sum.usage.n_freed,
        .bytes_made = (int64_t)sum.usage.bytes_allocated,
        .bytes_freed = (int64_t)sum.usage.bytes_freed,
        .fragmentation = v.arena_bytes > 0 ? 1 - (double)v.arena_live / (double)v.arena_bytes
                                           : OT_ABSENT,
        .allocate_seconds = sum.usage.allocate_seconds,
        .span = sum.span_seconds,
        .busy = sum.busy_seconds,
        .compile_seconds = v.compile_seconds,
        .n_device = v.n_device,
        .n_host = v.n_host,
        .n_launches = v.n_launches,
        .n_packed = v.layouts.n_packed,
        .n_blocked = v.layouts.n_blocked,
        .n_spread = v.layouts.n_spread,
        .packed_bytes = v.layouts.packed_bytes,
        .filled = v.layouts.filled,
        .blocked_bytes = v.layouts.blocked_bytes,
        .transactions = analysed ? v.layouts.transactions : OT_ABSENT,
        .transactions_plain = analysed ? v.layouts.transactions_plain : OT_ABSENT,
        .transactions_ideal = analysed ? v.layouts.transactions_ideal : OT_ABSENT};
    OT_TRY(list_transfers(&sum, x->peak, a, d, out));
    OT_TRY(list_kernels(x->dev, a, d, out));
    return list_fallbacks(&v, a, d, out);
}
