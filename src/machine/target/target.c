/* Targets by name: a preset, this machine, or an XML file.
 *
 *   ot_target_load("h200")   --> presets (target_presets.c)
 *   ot_target_load("host")   --> caches and cores of this machine (target_host.c)
 *   ot_target_load("a.xml")  --> file (target_xml.c)
 *
 * What none of them says of the memories that kernels name, target_scopes.c fills in.
 */
#include "target_internal.h"

#include <stdarg.h>

#define HOST_DESCRIPTION "this machine: caches and cores from the system, modest rates per core"

/* Cores that saturate the shared memory of an ordinary machine. */
#define SHARED_CORES 4

void ot_target_scale(ot_target *t, uint32_t cores)
{
    double k = cores;
    double shared = cores < SHARED_CORES ? k : SHARED_CORES;

    t->cores = cores;
    t->bw_fast *= k;
    t->bw_mid *= shared;
    t->bw_slow *= shared;
    t->rate_conv *= k;
    t->rate_conv_depthwise *= k;
    t->rate_conv_pointwise *= k;
    t->rate_conv_winograd *= k;
    t->rate_gemm *= k;
    t->rate_elem *= k;
    t->rate_trans *= k;
    t->rate_reduce *= k;
    t->rate_pool *= k;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

static ot_status fail_unknown(const char *name, ot_diag *diag)
{
    size_t n;
    const ot_target_preset *p = ot_target_presets(&n);
    char names[512] = "host", hint[96];
    for (size_t k = 0; k < n; k++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, ", %s", p[k].target.name);
    }
    ot_nearest near = ot_nearest_to(name, strlen(name));
    ot_nearest_try_list(&near, names, ", ");
    return ot_fail(diag, OT_E_USAGE, "no target '%s': use one of %s, or a file that ends in .xml%s",
                   name, names, ot_nearest_hint(&near, "; ", hint, sizeof hint));
}

/* Everything but the defaults of scopes. */
static ot_status load(const char *name, uint32_t threads, ot_diag *diag, ot_target *t)
{
    size_t n;
    const ot_target_preset *p = ot_target_presets(&n);

    if (threads > OT_TARGET_CORES_MAX)
        return ot_fail(diag, OT_E_USAGE, "%u threads are more than %d", threads,
                       OT_TARGET_CORES_MAX);
    memset(t, 0, sizeof *t);
    if (strcmp(name, "host") == 0) {
        ot_target_host(threads, t);
        snprintf(t->description, sizeof t->description, "%s", HOST_DESCRIPTION);
        return OT_OK;
    }
    if (ends_with(name, ".xml")) {
        OT_TRY(ot_target_read_xml(name, diag, t));
        if (*t->cpu) ot_target_use_threads(t, threads); /* measured: fewer threads have less */
        if (threads) t->cores = threads;
        return OT_OK;
    }
    for (size_t k = 0; k < n; k++) {
        if (strcmp(p[k].target.name, name) != 0) continue;
        *t = p[k].target;
        ot_target_fill_overheads(t, true);
        if (p[k].per_core)
            ot_target_scale(t, threads ? threads : 1);
        else if (threads)
            t->cores = threads;
        return OT_OK;
    }
    return fail_unknown(name, diag);
}

ot_status ot_target_load(const char *name, uint32_t threads, ot_diag *diag, ot_target *t)
{
    OT_TRY(load(name, threads, diag, t));
    ot_target_fill_scopes(t);
    return OT_OK;
}

ot_status ot_target_list(FILE *f)
{
    size_t n;
    const ot_target_preset *p = ot_target_presets(&n);

    char note[512];
    ot_target host = {.name = "host"};
    bool calibrated = ot_target_use_calibration(&host, 0, note, sizeof note);

    int rc = fprintf(f, "%-16s %s%s%s\n", "host", HOST_DESCRIPTION,
                     calibrated ? "; for the engine " : "", calibrated ? note : "");
    for (size_t k = 0; k < n && rc >= 0; k++)
        rc = fprintf(f, "%-16s %s\n", p[k].target.name, p[k].target.description);
    return rc < 0 ? OT_E_SYSTEM : OT_OK;
}
