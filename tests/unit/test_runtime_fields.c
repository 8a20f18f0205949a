/* Every number of a runtime counts: each field of each table is altered in turn, and some line or
 * byte that the tool writes about a small set of networks must be another one. A field that
 * changes nothing is dead, or lacks its network here.
 *
 *   table (const) --field altered in place--> tool, as from the command line --> JSON, model
 *                                                         compared with the same, not altered
 *
 * Fields that a table leaves out (0, false, none) may stay without effect in it. The rows below
 * are checked against runtime.h: a new field without a row fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <fcntl.h>
#include <sys/mman.h>

#define main tool_main
#include "commands/main.c"
#undef main

#include "runtime_field_rows.h"
#include "runtime_networks.h"

/* ---- what the tool says ---- */

typedef struct runtime_case {
    const char *network; /* ""; none: a question */
    const char *options;
} runtime_case;

static const runtime_case CASES[] = {
    {"convs", ""},
    {"convs", "--goal memory"},
    {"convs", "--force"},
    {"bn", ""},
    {"bn", "--goal memory"},
    {"norm", ""},
    {"norm", "--goal memory"},
    {"unet", ""},
    {"unet", "--goal memory"},
    {"transposed", ""},
    {"transposed", "--goal memory"},
    {"narrow", ""},
    {"narrow", "--goal memory"},
    {"narrow", "--force"},
    {"old", ""},
    {"old", "--force"},
    {"layouts", ""},
    {"layouts", "--goal memory"},
    {"slow", ""},
    {"overwriters", ""},
    {"selected", ""},
    {"half", ""},
    {"half", "--goal memory"},
    {"bytes", ""},
    {"bytes", "--goal memory"},
    {"bytes", "--force"},
    {"attention", ""},
    {"attention", "--goal memory"},
    {"attention", "--force"},
    {"batch", ""},
    {"batch", "--goal memory"},
    {"batch", "--force"},
    {"weights", "--goal memory"},
    {"weights", "--force"},
    {"convs", "--form loop-peeled --force"},
    {"convs", "--form scan --force"},
    {"batch", "--form unrolled --force"},
    {"convs", "--form loop --force"},
    {"convs", "--form prescan --force"},
    {"batch", "--form prescan --force"},
    {"batch", "--form loop --force"},
    {"unet", "--form loop-peeled --force"},
    {"layouts", "--force"},
    {"old", "--form loop-peeled --force"},
    {"old", "--form loop --force"},
    {"half", "--goal memory --bit-exact"},
    {"batch", "--form loop-peeled --force"},
    {"batch", "--form stream --force"},
    {"averaged", ""},
    {"averaged", "--force"},
    {"rows", ""},
    {"rows", "--force"},
    {"rows", "--form stream --force"},
    {"rows", "--goal memory"},
    {"style", ""},
    {"style", "--goal memory"},
    {"style", "--goal memory --max-slowdown 50"},
    {"norm", "--goal memory --max-slowdown 50"},
    {"unet", "--goal memory --max-slowdown 50"},
    {"unet", "--force --goal memory"},
    {"weights", "--goal memory --max-slowdown 50"},
    {"rows", "--form loop-peeled --force"},
    {"rows", "--form prescan --force"},
    {"rows", "--form loop --force"},
    {"rows", "--form prescan --force --goal memory"},
    {"convs", "--form loop --force --goal memory"},
    {"dynamic", "--keep-dynamic"},
    {"dynamic", "--shape x=1,8,256,64 --goal memory"},
    {"convs", "--report R"},
    {"", "--list-runtimes"},
};
#define N_CASES (sizeof CASES / sizeof *CASES)

static char folder[] = "/tmp/onnx-tile-fields-XXXXXX";

static uint64_t hash_file(const char *path, uint64_t h)
{
    char block[65536];
    FILE *f = fopen(path, "rb");
    for (size_t n; f && (n = fread(block, 1, sizeof block, f)) > 0;)
        for (size_t k = 0; k < n; k++) h = (h ^ (unsigned char)block[k]) * 1099511628211u;
    if (f) fclose(f);
    return h;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Status, output, model and report of one call, as a number. */
static uint64_t answer_of(char *const words[], int n, const char *model, const char *report)
{
    char out[64];
    snprintf(out, sizeof out, "%s/out", folder);
    unlink(model);
    unlink(report);
    fflush(stdout);
    fflush(stderr);
    const int one = dup(1), two = dup(2), file = open(out, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(one >= 0 && two >= 0 && file >= 0);
    dup2(file, 1);
    dup2(file, 2);
    const int rc = tool_main(n, (char **)words);
    fflush(stdout);
    fflush(stderr);
    dup2(one, 1);
    dup2(two, 2);
    close(one);
    close(two);
    close(file);
    return hash_file(report,
                     hash_file(model, hash_file(out, 14695981039346656037u + (uint64_t)rc)));
}

static uint64_t run_case(const runtime_case *c, const char *common)
{
    char text[1024], net[64], model[64], report[64], *words[64] = {"onnx-tile"};
    int n = 1;
    snprintf(net, sizeof net, "%s/%s.ot", folder, c->network);
    snprintf(model, sizeof model, "%s/tiled.ot", folder);
    if (*c->network) {
        words[n++] = net;
        words[n++] = "-o";
        words[n++] = model;
        words[n++] = "--json";
    }
    snprintf(text, sizeof text, "%s %s", *c->network ? common : "", c->options);
    snprintf(report, sizeof report, "%s/report.xml", folder);
    for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
        words[n++] = strcmp(w, "R") == 0 ? report : w;
    return answer_of(words, n, model, report);
}

/* ---- altering ---- */

static long page;

/* Tables are constant for everybody else. */
static void poke(const void *at, const void *bytes, size_t n)
{
    const uintptr_t from = (uintptr_t)at / (uintptr_t)page * (uintptr_t)page,
                    to = (uintptr_t)at + n;
    assert_int_equal(mprotect((void *)from, to - from, PROT_READ | PROT_WRITE), 0);
    memcpy((void *)(uintptr_t)at, bytes, n);
}

/* The k-th other value of a field; false: there are no more. */
static bool alter(field_kind what, size_t size, const void *was, int k, void *out)
{
    static const double TIMES[] = {1.5, 0, 0.5, 100};
    static const int64_t MORE[] = {1, -1, 7, 1000};
    memcpy(out, was, size);
    switch (what) {
    case BOOL: *(bool *)out = !*(const bool *)was; return k < 1;
    case REAL: *(double *)out = k < 4 ? *(const double *)was * TIMES[k] : 0; return k < 4;
    case INT:
        if (k < 4) *(int64_t *)out += MORE[k] * (*(const int64_t *)was >= 4096 ? 4096 : 1);
        return k < 4;
    case COUNT: *(uint32_t *)out -= 1; return k < 1;
    case SET:
        if (k < 32) *(uint32_t *)out &= ~(1u << k);
        return k < 32;
    case CHOICE: *(uint32_t *)out = (*(const uint32_t *)was + 1 + (uint32_t)k) % 3; return k < 2;
    case NUMBER: *(uint32_t *)out = k == 0 ? 1 : *(const uint32_t *)was * 4; return k < 2;
    case TEXT: *(const char **)out = k == 0 ? "altered" : NULL; return k < 2;
    case RULES: *(const ot_group_rules **)out = k == 0 ? NULL : &ot_device_rules; return k < 2;
    case OPERATOR: *(ot_op *)out = OT_OP_OPAQUE; return k < 1;
    case TABLE: return false;
    }
    return false;
}

static bool is_set(const void *at, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (((const unsigned char *)at)[k]) return true;
    return false;
}

/* ---- each field in turn ---- */

typedef struct subject {
    const ot_runtime *r;
    const char *common;
    uint64_t plain[N_CASES]; /* answers with nothing altered; 0: not asked yet */
    uint32_t hint;           /* the case that told the last field */
    uint32_t dead, calls, missed;
} subject;

static uint32_t dead; /* fields, of all runtimes */

/* before anything is altered */
static void ask_plain(subject *x, uint32_t k)
{
    if (!x->plain[k]) x->plain[k] = run_case(&CASES[k], x->common);
}

static bool differs(subject *x, uint32_t k)
{
    x->calls++;
    return run_case(&CASES[k], x->common) != x->plain[k];
}

/* Not shown by the networks here: they need larger ones, whose plans take too long for a test. */
static const char *const NEEDS_LARGER[] = {
    "onnxruntime ot_runtime maps_weights",     /* 1 MiB of weights; tests/e2e/data_file.sh */
    "onnxruntime ot_runtime piece_bytes",      /* 8 MiB; tests/e2e/weight_pieces.sh */
    "onnxruntime ot_runtime expands_columns",  /* weights that are not packed, in such a file: */
    "onnxruntime ot_unpacked_price pointwise", /* tests/e2e/unpacked_weights.sh, test_unpacked.c */
    "onnxruntime ot_unpacked_price windows",
    "onnxruntime ot_unpacked_price narrow",
    "onnxruntime ot_unpacked_price pixels",
    "onnxruntime ot_runtime bit", /* averages beside what they read, in quantized networks */
    "onnxruntime ot_runtime inlines_functions", /* tests/e2e/saved_tiles.sh, test_inlined.c */
    "onnxruntime ot_runtime_margins wins_decomposed",
    "openvino ot_runtime bit", /* sums over more than a million pixels */
    "openvino ot_runtime int8_groups",
    "openvino ot_runtime packing",
    "openvino ot_runtime deferred_seconds",
    "openvino ot_runtime_margins wins_norms",
    "openvino ot_runtime_margins wins_decomposed",
    "openvino price loop inputs_stay",
    "openvino price prescan outputs_scattered",
};

static bool needs_larger(const subject *x, const char *of, const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "%s %s %s", x->r->name, of, name);
    for (size_t k = 0; k < sizeof NEEDS_LARGER / sizeof *NEEDS_LARGER; k++)
        if (strcmp(NEEDS_LARGER[k], text) == 0) return true;
    return false;
}

/* At most 64 KiB; NULL: there is none. */
static char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = f ? calloc(1, 1 << 16) : NULL;
    if (text) text[fread(text, 1, (1 << 16) - 1, f)] = 0;
    if (f) fclose(f);
    return text;
}

/* Where each field told last, so that one call mostly does; what tells elsewhere now is found by
 * trying all cases. Lines of runtime_tellers.txt: "runtime | table | field | which other value |
 * network | options". SHOW=1 prints them anew. */
static char *tellers;

static const char *named(const char *text) { return *text ? text : "-"; }

static bool read_teller(const char *key, int *value, uint32_t *which)
{
    const size_t n = strlen(key);
    for (const char *at = tellers; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        char network[32] = "", options[96] = "";
        if (strncmp(at, key, n) != 0) continue;
        if (sscanf(at + n, " | %d | %31[^ |\n] | %95[^\n]", value, network, options) != 3) continue;
        for (uint32_t k = 0; k < N_CASES; k++)
            if (strcmp(named(CASES[k].network), network) == 0 &&
                strcmp(named(CASES[k].options), options) == 0) {
                *which = k;
                return true;
            }
    }
    return false;
}

/* One other value in place, one case. */
static bool tells(subject *x, const void *at, size_t size, const void *was, const void *other,
                  uint32_t k)
{
    ask_plain(x, k);
    poke(at, other, size);
    const bool told = differs(x, k);
    poke(at, was, size);
    if (told) x->hint = k;
    return told;
}

/* The field at `at`, of a table that x's runtime points to, altered. */
static void try_field(subject *x, const char *of, const char *name, const void *at, size_t size,
                      field_kind what)
{
    unsigned char was[64], other[64];
    if (what == TABLE || !is_set(at, size) || needs_larger(x, of, name)) return;
    memcpy(was, at, size);
    char key[128];
    snprintf(key, sizeof key, "%s | %s | %s", x->r->name, of, name);
    bool told = false;
    int told_by = 0;
    uint32_t c;
    if (read_teller(key, &told_by, &c) && alter(what, size, was, told_by, other))
        told = tells(x, at, size, was, other, c);
    x->missed += !told;
    for (int v = 0; !told && alter(what, size, was, v, other); v++) {
        if (memcmp(was, other, size) == 0) continue;
        told_by = v;
        for (uint32_t k = 0; !told && k < N_CASES; k++)
            told = tells(x, at, size, was, other, (x->hint + k) % N_CASES);
    }
    if (told && getenv("SHOW"))
        print_message("%s | %d | %s | %s\n", key, told_by, named(CASES[x->hint].network),
                      named(CASES[x->hint].options));
    if (!told) x->dead++, print_error("%s: %s.%s changes nothing\n", x->r->name, of, name);
}

/* A table that the runtime points to. */
static void try_struct(subject *x, const char *of, const void *base)
{
    for (size_t k = 0; k < N_FIELDS; k++)
        if (strcmp(FIELDS[k].of, of) == 0)
            try_field(x, of, FIELDS[k].name, (const char *)base + FIELDS[k].offset, FIELDS[k].size,
                      FIELDS[k].kind);
}

static void try_operators(subject *x, const char *of, const ot_op *ops, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        char name[64];
        snprintf(name, sizeof name, "%s", ot_op_name(ops[k]));
        try_field(x, of, name, &ops[k], sizeof *ops, OPERATOR);
    }
}

/* What stands in arrays. */
static void try_rows(subject *x)
{
    const ot_runtime *r = x->r;
    for (uint32_t k = 0; k < r->n_slow; k++) {
        char name[64];
        snprintf(name, sizeof name, "%s %s", ot_op_name(r->slow[k].op),
                 r->slow[k].mode ? r->slow[k].mode : "");
        try_field(x, "slow", name, &r->slow[k].factor, sizeof(double), REAL);
    }
    for (uint32_t k = 0; k < r->conv.n_few; k++) {
        try_field(x, "few", "part", &r->conv.few[k].part, sizeof(double), REAL);
        try_field(x, "few", "below", &r->conv.few[k].below, sizeof(int64_t), INT);
    }
    try_operators(x, "makes", r->blocks.makes, r->blocks.n_makes);
    try_operators(x, "keeps", r->blocks.keeps, r->blocks.n_keeps);
    try_operators(x, "overwriters", r->overwriters, r->n_overwriters);
    for (ot_form f = OT_FORM_SCAN; f < OT_FORM_COUNT; f++) {
        if (!ot_runtime_takes(r, f)) continue;
        char of[64];
        snprintf(of, sizeof of, "price %s", ot_form_name(f));
        for (size_t k = 0; k < N_FIELDS; k++)
            if (strcmp(FIELDS[k].of, "ot_form_price") == 0)
                try_field(x, of, FIELDS[k].name, (const char *)&r->price[f] + FIELDS[k].offset,
                          FIELDS[k].size, FIELDS[k].kind);
    }
}

static void check_runtime(const ot_runtime *r, const char *common, const char *overheads)
{
    subject x = {.r = r, .common = common};
    try_struct(&x, "ot_runtime", r);
    try_field(&x, "ot_runtime", "merges", &r->merges, sizeof r->merges, RULES);
    try_struct(&x, "ot_conv_habits", &r->conv);
    try_struct(&x, "ot_block_habits", &r->blocks);
    try_struct(&x, "ot_unpacked_price", &r->unpacked);
    try_struct(&x, "ot_runtime_margins", &r->margins);
    try_rows(&x);
    if (r->overheads) {
        x.common = overheads;
        memset(x.plain, 0, sizeof x.plain);
        try_struct(&x, "ot_overheads", r->overheads);
    }
    print_message("%s: %u calls, %u fields not told where runtime_tellers.txt says\n", r->name,
                  x.calls, x.missed);
    dead += x.dead;
}

#define TARGET                                                                                \
    "<target name='t' cores='1' vector-lanes='16' fuses='true'><fast bytes='262144' "         \
    "bandwidth='6e10' granule='64' cache='true' double-buffer='false'/><mid bytes='4194304' " \
    "bandwidth='2e10'/><slow bandwidth='2e9'/><rates conv='3e10' conv-depthwise='6e9' "       \
    "conv-pointwise='3e10' gemm='3e10' elementwise='3e9' transcendental='6e8' "               \
    "reduction='2e9' pooling='1e9'/><overheads node='1e-6' loop='2e-6' region='5e-6'/>"       \
    "</target>"

static void every_number_counts(void **state)
{
    (void)state;
    /* those whose figures were measured in the runtimes of others */
    static const struct {
        const char *name, *target, *options;
    } RUNTIMES_HERE[] = {
        {"onnxruntime", "cpu", "--runtime onnxruntime"},
        {"openvino", "cpu", "--runtime openvino"},
    };
    const size_t n = sizeof RUNTIMES_HERE / sizeof *RUNTIMES_HERE;
    char path[64];
    snprintf(path, sizeof path, "%s/cpu.xml", folder);
    write_file(path, TARGET);
    for (size_t k = 0; k < n; k++) {
        char common[128], overheads[128];
        const char *only = getenv("ONLY");
        if (only && strcmp(only, RUNTIMES_HERE[k].name) != 0) continue;
        snprintf(common, sizeof common, "--target %s/%s.xml %s", folder, RUNTIMES_HERE[k].target,
                 RUNTIMES_HERE[k].options);
        snprintf(overheads, sizeof overheads, "--target host --threads 1 %s",
                 RUNTIMES_HERE[k].options);
        const ot_runtime *r = ot_runtime_named(RUNTIMES_HERE[k].name);
        assert_non_null(r);
        check_runtime(r, common, overheads);
    }
    assert_int_equal(dead, 0);
}

/* ---- the rows are those of the header ---- */

static bool has_row(const char *of, const char *name, size_t n)
{
    for (size_t k = 0; k < N_FIELDS; k++)
        if (strcmp(FIELDS[k].of, of) == 0 && strlen(FIELDS[k].name) == n &&
            strncmp(FIELDS[k].name, name, n) == 0)
            return true;
    return false;
}

/* Comments become spaces. */
static void blank_comments(char *text)
{
    for (char *from = strstr(text, "/*"); from; from = strstr(from, "/*")) {
        char *to = strstr(from, "*/");
        assert_non_null(to);
        memset(from, ' ', (size_t)(to + 2 - from));
    }
}

/* Members of `of`: in its declarations, the words before a comma or the end. */
static uint32_t check_members(const char *text, const char *of)
{
    char head[64], tail[64];
    uint32_t n = 0;
    snprintf(head, sizeof head, "typedef struct %s {", of);
    snprintf(tail, sizeof tail, "} %s;", of);
    const char *at = strstr(text, head), *end = strstr(text, tail);
    assert_true(at && end);
    for (at += strlen(head); at < end; at++) {
        if (*at != ',' && *at != ';') continue;
        const char *last = at, *first;
        while (!isalnum((unsigned char)last[-1]) && last[-1] != '_') last--;
        for (first = last; isalnum((unsigned char)first[-1]) || first[-1] == '_';) first--;
        if (!has_row(of, first, (size_t)(last - first)))
            fail_msg("%s.%.*s has no row here", of, (int)(last - first), first);
        n++;
    }
    return n;
}

static void every_field_has_a_row(void **state)
{
    (void)state;
    static const char *const STRUCTS[] = {
        "ot_runtime",         "ot_conv_habits", "ot_block_habits",  "ot_form_price",
        "ot_runtime_margins", "ot_overheads",   "ot_unpacked_price"};
    char *text = read_text("src/machine/runtime/runtime.h");
    uint32_t n = 0;
    assert_non_null(text); /* tests run in the root of the sources */
    assert_true(strlen(text) > 1000);
    blank_comments(text);
    for (size_t k = 0; k < sizeof STRUCTS / sizeof *STRUCTS; k++)
        n += check_members(text, STRUCTS[k]);
    free(text);
    assert_int_equal(n, N_FIELDS);
}

static int start(void **state)
{
    (void)state;
    tellers = read_text("tests/unit/runtime_tellers.txt");
    page = sysconf(_SC_PAGESIZE);
    setenv("ONNX_TILE_CACHE", "off", 1);
    if (!mkdtemp(folder)) return -1;
    for (size_t k = 0; k < N_NETWORKS; k++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s.ot", folder, NETWORKS[k].name);
        write_file(path, NETWORKS[k].text);
    }
    return 0;
}

static int finish(void **state)
{
    (void)state;
    free(tellers);
    static const char *const FILES[] = {"cpu.xml", "out", "tiled.ot", "report.xml"};
    char path[64];
    for (size_t k = 0; k < N_NETWORKS + sizeof FILES / sizeof *FILES; k++) {
        const char *name = k < N_NETWORKS ? NETWORKS[k].name : FILES[k - N_NETWORKS];
        snprintf(path, sizeof path, "%s/%s%s", folder, name, k < N_NETWORKS ? ".ot" : "");
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_has_a_row),
        cmocka_unit_test(every_number_counts),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
