/* The target `host`: this machine's caches and cores, with modest rates per core.
 *
 * Capacities are read from /sys (cpu0's cache entries), else from sysconf, else assumed. Virtual
 * machines report absurd caches (a whole socket's L3 for one core), so both levels are capped:
 *
 *   fast = private L2 of one core (at most 4 MiB), whatever the thread count
 *   mid  = shared L3                             (at most 32 MiB)
 *
 * Rates are assumptions by vector width. Better ones, for the native engine, are those that
 * `calibrate` left in a file:
 *
 *   ONNX_TILE_CACHE   off: none;  a path: that file;  not set:
 *                     ${XDG_CACHE_HOME:-~/.cache}/onnx-tile/host.xml
 *
 * They count on the same processor, for as many threads as were measured or fewer.
 */
#include "target_internal.h"

#include <sched.h>
#include <unistd.h>

#define KIB        1024LL
#define MIB        (1024LL * 1024)
#define L2_DEFAULT (1 * MIB)
#define L2_CAP     (4 * MIB)
#define L3_CAP     (32 * MIB)
#define WIDE_RATE  110e9 /* multiply-accumulates per second of a core with units of 512 bits */

/* First line of a small file into buf; false when it cannot be read. */
static bool read_line(const char *path, char *buf, int n)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool ok = fgets(buf, n, f) != NULL;
    fclose(f);
    if (ok) buf[strcspn(buf, "\n")] = '\0';
    return ok;
}

/* Size of cpu0's unified or data cache of a level as /sys tells it; 0 when it does not. */
static int64_t sysfs_cache(int level)
{
    for (int k = 0; k < 8; k++) {
        char path[96], text[64];
        int64_t size;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", k);
        if (!read_line(path, text, sizeof text)) return 0;
        if (atoi(text) != level) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", k);
        if (!read_line(path, text, sizeof text) || strcmp(text, "Instruction") == 0) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", k);
        if (read_line(path, text, sizeof text) && ot_parse_size(text, &size)) return size;
    }
    return 0;
}

static int64_t cache_bytes(int level, int sysconf_name, int64_t fallback, int64_t cap)
{
    int64_t size = sysfs_cache(level);
    if (size <= 0) size = sysconf(sysconf_name);
    if (size <= 0) size = fallback;
    return ot_min(size, cap);
}

static uint32_t core_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n <= OT_TARGET_CORES_MAX ? (uint32_t)n : 1;
}

/* Whether AVX-512 runs in halves of 256 bits: AMD's Zen 4 (family 25; its predecessors have none).
 */
static bool runs_in_halves(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_cpu_is("amd") && __builtin_cpu_is("amdfam19h");
#else
    return false;
#endif
}

/* Multiply-accumulates per second that one core reaches in dense kernels. */
static double core_mac_rate(void)
{
#if defined(__x86_64__) || defined(__i386__)
    if (__builtin_cpu_supports("avx512f") && !runs_in_halves()) return WIDE_RATE;
    if (__builtin_cpu_supports("avx2")) return 53e9;
    return 8e9;
#elif defined(__aarch64__)
    return 20e9;
#else
    return 4e9;
#endif
}

void ot_target_host(uint32_t threads, ot_target *t)
{
    /* what is no product */
    const double mac = core_mac_rate(), other = runs_in_halves() ? 2 * mac : mac;
    long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES);

    *t = (ot_target){
        .name = "host",
        .fast_bytes = cache_bytes(2, _SC_LEVEL2_CACHE_SIZE, L2_DEFAULT, L2_CAP),
        .granule = 64,
        .is_cache = true,
        .mid_bytes = cache_bytes(3, _SC_LEVEL3_CACHE_SIZE, 0, L3_CAP),
        .vector_lanes = ot_cpu_lanes(),
        .runtime = ot_runtime_with_lanes(&ot_runtime_onnxruntime, ot_cpu_lanes()),
        /* one core; measured with a CPU runtime: copies and sums on data in L2, in L3 and beyond */
        .bw_fast = 95e9,
        .bw_mid = 29e9,
        .bw_slow = 15.5e9,
        .rate_conv = mac,
        /* few channels: bound by loads, whatever the width of products */
        .conv_few = WIDE_RATE / mac,
        .rate_conv_depthwise = mac < other * 0.55 ? mac : other * 0.55,
        .rate_conv_pointwise = mac,
        .rate_gemm = mac * 0.85,
        .rate_elem = other / 12,
        .rate_trans = other / 32,
        .rate_reduce = other / 25,
        .rate_pool = other / 22,
        .memory_bytes = page > 0 && pages > 0 ? (int64_t)page * pages : 0,
        .scopes = {[OT_SCOPE_GM] = {.alignment = 64}}, /* a cache line */
    };
    if (t->mid_bytes <= t->fast_bytes) {
        t->mid_bytes = 0;
        t->bw_mid = t->bw_slow;
    }
    ot_target_fill_overheads(t, false);
    ot_target_scale(t, threads ? threads : core_count());
}

/* ---- the cached calibration ---- */

bool ot_target_cache_path(char *path, size_t size)
{
    const char *own = getenv("ONNX_TILE_CACHE"), *cache = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int n;
    if (own && *own) {
        if (strcmp(own, "off") == 0) return false;
        n = snprintf(path, size, "%s", own);
    } else if (cache && *cache == '/') {
        n = snprintf(path, size, "%s/onnx-tile/host.xml", cache);
    } else if (home && *home == '/') {
        n = snprintf(path, size, "%s/.cache/onnx-tile/host.xml", home);
    } else {
        return false;
    }
    return n > 0 && (size_t)n < size;
}

/* Text after "key : " of the first line of that key; false when the line is of another key. */
static bool take_field(const char *line, const char *key, char *out, size_t size)
{
    size_t n = strlen(key);
    if (*out || strncmp(line, key, n) != 0 || !strchr("\t :", line[n])) return false;
    const char *value = strchr(line, ':');
    if (!value) return false;
    value += 1 + strspn(value + 1, " \t");
    snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
    return true;
}

/* Only what every text file may contain. */
static void make_printable(char *text)
{
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
}

void ot_target_cpu(char *cpu, size_t size)
{
    char line[512], name[80] = "", family[8] = "", model[8] = "", stepping[8] = "";
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f) && line[0] != '\n')
        if (!take_field(line, "model name", name, sizeof name) &&
            !take_field(line, "cpu family", family, sizeof family) &&
            !take_field(line, "model", model, sizeof model) &&
            !take_field(line, "CPU implementer", family, sizeof family) &&
            !take_field(line, "CPU part", model, sizeof model))
            (void)take_field(line, "stepping", stepping, sizeof stepping);
    if (f) fclose(f);
    snprintf(cpu, size, "%s (%s/%s/%s)", *name ? name : "processor", family, model, stepping);
    make_printable(cpu);
}

bool ot_target_is_here(const ot_target *t)
{
    char cpu[sizeof t->cpu];
    if (strcmp(t->name, "host") == 0) return true;
    ot_target_cpu(cpu, sizeof cpu);
    return strcmp(cpu, t->cpu) == 0;
}

/* `part` of the whole's bandwidth, or what so many cores get one by one where that is known. */
static double shared_bandwidth(double whole, double core, double part, uint32_t threads)
{
    double sum = core * threads;
    return core <= 0 ? whole * part : sum < whole ? sum : whole;
}

void ot_target_use_threads(ot_target *t, uint32_t threads)
{
    if (threads == 0 || threads >= t->cores) return;
    double part = (double)threads / t->cores;
    double *rates[] = {&t->bw_fast,
                       &t->rate_conv,
                       &t->rate_conv_depthwise,
                       &t->rate_conv_pointwise,
                       &t->rate_conv_winograd,
                       &t->rate_gemm,
                       &t->rate_elem,
                       &t->rate_trans,
                       &t->rate_reduce,
                       &t->rate_pool};
    for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) *rates[k] *= part;
    t->bw_mid = shared_bandwidth(t->bw_mid, t->bw_mid_core, part, threads);
    t->bw_slow = shared_bandwidth(t->bw_slow, t->bw_slow_core, part, threads);
    t->cores = threads;
}

bool ot_target_use_calibration(ot_target *t, uint32_t threads, char *note, size_t size)
{
    char path[4096], cpu[sizeof t->cpu];
    ot_target found = {0};
    ot_diag d = {0};
    snprintf(note, size, "built-in estimates");
    if (strcmp(t->name, "host") != 0 || !ot_target_cache_path(path, sizeof path) ||
        access(path, F_OK) != 0)
        return false;
    if (ot_target_read_xml(path, &d, &found) != OT_OK) {
        snprintf(note, size, "built-in estimates (the cached calibration is not valid: %s)",
                 d.message);
        return false;
    }
    ot_target_cpu(cpu, sizeof cpu);
    if (strcmp(cpu, found.cpu) != 0) {
        snprintf(note, size,
                 "built-in estimates (the cached calibration is of another processor: %s)",
                 found.cpu);
        ot_target_free(&found);
        return false;
    }
    if ((threads ? threads : core_count()) > found.cores) {
        snprintf(note, size, "built-in estimates (the cached calibration is of %u threads)",
                 found.cores);
        ot_target_free(&found);
        return false;
    }
    snprintf(note, size, "calibrated with %u threads on %s", found.cores, found.cpu);
    ot_target_free(&found); /* the engine needs no factors of other runtimes */
    ot_target_fill_scopes(&found);
    ot_target_use_threads(&found, threads ? threads : core_count());
    *t = found;
    return true;
}
