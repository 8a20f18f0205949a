/* Results as a table, for a person.
 *
 *   resnet50.onnx for onnxruntime on host, fast memory 4.0 MiB
 *
 *                     before      after
 *   peak memory     98.0 MiB   24.5 MiB   x0.25
 *   ...
 *   region  nodes  from .. to      axis/tiles  form  working set   time                benefit ...
 *   r0         12  conv1 .. relu3  H/8         scan  1.9 MiB fits  12.1 ms -> 8.0 ms   4.1 ms ...
 *
 * Names come from strangers: control bytes are shown as '?', long names lose their middle.
 */
#include "facts.h"
#include "facts_number.h"
#include "facts_range.h"

#define CELL         96
#define NAME_WIDTH   22
#define GROUPS_SHOWN 6
#define MARGIN       2

/* ---- names ---- */

static void span_text(const ot_facts *f, const uint32_t *nodes, uint32_t n, char *out, size_t size)
{
    char first[NAME_WIDTH + 4], last[NAME_WIDTH + 4];
    if (n == 0) {
        snprintf(out, size, "-");
        return;
    }
    ot_fact_short(f->nodes[nodes[0]].name, NAME_WIDTH, first);
    ot_fact_short(f->nodes[nodes[n - 1]].name, NAME_WIDTH, last);
    if (n == 1)
        snprintf(out, size, "%s", first);
    else
        snprintf(out, size, "%s .. %s", first, last);
}

/* ---- headline ---- */

static void print_ratio(double before, double after, FILE *f)
{
    if (before > 0) fprintf(f, "   x%.2f", after / before);
    fputc('\n', f);
}

typedef char *(*formatter)(double, char *, size_t);

/* "24.5 MiB"; ">= 24.5 MiB" where values of unknown size come to that; "not known". */
static const char *figure_text(const ot_facts *r, double x, formatter format, char *out,
                               size_t size)
{
    char known[32];
    if (ot_fact_known(r, x) < 0) return "not known";
    snprintf(out, size, "%s%s", *r->unknown_sizes ? ">= " : "", format(x, known, sizeof known));
    return out;
}

/* "peak memory     98.0 MiB   24.5 MiB   x0.25" */
static void print_change(const ot_facts *r, const char *what, double before, double after,
                         formatter format, FILE *f)
{
    char a[40], b[40];
    fprintf(f, "%*s%-15s %12s %12s", MARGIN, "", what, figure_text(r, before, format, a, sizeof a),
            figure_text(r, after, format, b, sizeof b));
    print_ratio(before, after, f);
}

static void print_bytes(const ot_facts *r, const char *what, int64_t before, int64_t after, FILE *f)
{
    print_change(r, what, (double)before, (double)after, ot_format_bytes, f);
}

/* Nothing runs: the model's inputs are not read, or of them only the extents. */
static bool is_computed_before(const ot_facts *r)
{
    const ot_figures *x = &r->totals.untiled;
    return x->peak_bytes == 0 && x->time_s <= 0 && !*r->unknown_sizes;
}

/* The growth, taken apart. */
static void print_parts(const ot_facts *r, FILE *f)
{
    char a[40], b[40];
    const ot_figures *before = &r->totals.untiled, *after = &r->totals.tiled;
    const int64_t kept = before->growth_bytes - before->peak_bytes,
                  still = after->growth_bytes - after->peak_bytes;
    if (before->growth_bytes > 0 && after->growth_bytes > 0 && kept >= 0 && still >= 0 &&
        !r->totals.growth_title && !*r->unknown_sizes)
        fprintf(f, "%*sof the growth, %s before and %s after is what %s keeps beside peak memory\n",
                MARGIN, "", ot_format_bytes((double)kept, a, sizeof a),
                ot_format_bytes((double)still, b, sizeof b), r->runtime);
    const uint32_t n = r->totals.n_live_nodes;
    if (before->peak_bytes == 0 && before->time_s > 0 && !*r->unknown_sizes)
        fprintf(f, "%*sin %s nothing lives but inputs and results, which are the caller's\n",
                MARGIN, "", r->runtime);
    fprintf(f, "%*s%u node%s", MARGIN, "", n, n == 1 ? "" : "s");
    if (ot_fact_known(r, r->totals.activation_sum) >= 0)
        fprintf(f, ", which make%s %s%s", n == 1 ? "s" : "",
                figure_text(r, r->totals.activation_sum, ot_format_bytes, a, sizeof a),
                n == 1 ? "" : " together");
    fputs(is_computed_before(r) ? ", all of it before the first run\n" : "\n", f);
}

static void print_headline(const ot_facts *r, bool all, FILE *f)
{
    char a[40], name[84], target[44];
    ot_fact_short(*r->model ? r->model : "model", 80, name);
    fprintf(f, "%s for %s on %s, fast memory %s\n\n", name, r->runtime,
            ot_fact_short(r->target, 40, target),
            ot_format_bytes((double)r->fast_bytes, a, sizeof a));
    fprintf(f, "%*s%-15s %12s %12s\n", MARGIN, "", "(predicted)", "before", "after");
    const ot_figures *before = &r->totals.untiled, *after = &r->totals.tiled;
    if (r->totals.predicts_process && (before->process_bytes > 0 || *r->unknown_sizes))
        print_bytes(r, "whole process", before->process_bytes, after->process_bytes, f);
    if (before->growth_bytes > 0 || (*r->unknown_sizes && r->totals.predicts_growth)) {
        print_bytes(r, r->totals.growth_title ? r->totals.growth_title : "resident growth",
                    before->growth_bytes, after->growth_bytes, f);
        if (llabs((long long)(after->loaded_bytes - before->loaded_bytes)) > OT_FACT_LOADED_SHOWN)
            print_bytes(r, "model loaded", before->loaded_bytes, after->loaded_bytes, f);
    }
    print_bytes(r, "peak memory", before->peak_bytes, after->peak_bytes, f);
    if (r->totals.max_tensor > 0)
        print_bytes(r, "largest tensor", before->largest_bytes, after->largest_bytes, f);
    print_change(r, "bytes moved", before->traffic_bytes, after->traffic_bytes, ot_format_bytes, f);
    print_change(r, "time", before->time_s, after->time_s, ot_format_seconds, f);
    if (*r->missed) {
        char why[404];
        fprintf(f, "%*s%s\n", MARGIN, "", ot_fact_short(r->missed, 400, why));
    }
    if (*r->unknown_sizes) {
        char which[304];
        fprintf(f, "%*s%s: left out of the figures\n", MARGIN, "",
                ot_fact_short(r->unknown_sizes, 300, which));
    } else if (r->totals.compulsory_bytes >= 0) {
        fprintf(f, "%*sno plan can move less than %s (inputs, outputs and weights once)\n", MARGIN,
                "", ot_format_bytes(r->totals.compulsory_bytes, a, sizeof a));
    }
    if (all) print_parts(r, f);
}

/* ---- arena ---- */

static void print_arena_row(const char *what, int64_t bytes, const char *remark, FILE *f)
{
    char a[32];
    fprintf(f, "%*s%-30s %10s", MARGIN + 2, "", what, ot_format_bytes((double)bytes, a, sizeof a));
    fprintf(f, *remark ? "   %s\n" : "\n", remark);
}

static void print_arena(const ot_facts *r, FILE *f)
{
    const ot_arena_figures *a = &r->totals.activations;
    if (a->n_buffers == 0 || is_computed_before(r)) return;
    fprintf(f,
            "\n%*stensors of the untiled model in one memory, each at its own address (%u buffer%s",
            MARGIN, "", a->n_buffers, a->n_buffers == 1 ? "" : "s");
    if (r->totals.n_unsized) fprintf(f, "; %u of unknown size left out", r->totals.n_unsized);
    fputs("; what operators work in is not in it)\n", f);
    print_arena_row("side by side", a->naive, "", f);
    print_arena_row("most of them at one time", a->lower_bound, "no such layout is lower", f);
    print_arena_row("planned", a->planned, a->proved ? "the least of such layouts" : "", f);
    print_arena_row("planned, greedy by size", a->greedy, "", f);
    print_arena_row("planned, operators in place", a->in_place, "", f);
}

/* ---- regions ---- */

enum { REGION, NODES, SPAN, TILES, FORM, SET, AT_ONCE, TIME, BENEFIT, MACS, COLUMNS };

typedef char row_cells[COLUMNS][CELL];

static void tiles_text(const ot_fact_region *r, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t d = 0; d < r->n_dims && used < size; d++)
        used += (size_t)snprintf(out + used, size - used, "%s%s/%u", d ? " x " : "", r->axes[d],
                                 r->tiles[d]);
}

static void fill_row(const ot_facts *all, const ot_fact_region *r, row_cells c)
{
    char a[32], b[32];
    snprintf(c[REGION], CELL, "r%u", r->id);
    snprintf(c[NODES], CELL, "%u", r->n_nodes);
    span_text(all, r->nodes, r->n_nodes, c[SPAN], CELL);
    tiles_text(r, c[TILES], CELL);
    snprintf(c[FORM], CELL, "%s", r->form);
    ot_format_bytes((double)r->working_set, a, sizeof a);
    /* a cache's capacity is soft: a share of it says little, the lines below the table say what
     * streams */
    if (*r->residence)
        snprintf(c[SET], CELL, "%s %s", a, r->working_set <= r->capacity ? "fits" : "streams");
    else
        snprintf(c[SET], CELL, "%s (%.0f %%)", a,
                 all->fast_bytes > 0 ? 100.0 * (double)r->working_set / (double)all->fast_bytes
                                     : 0.0);
    ot_format_bytes((double)r->working_set_bound, c[AT_ONCE], CELL);
    ot_format_seconds(r->time_untiled, a, sizeof a);
    ot_format_seconds(r->time_tiled, b, sizeof b);
    snprintf(c[TIME], CELL, "%s -> %s", a, b);
    if (r->benefit < 0) {
        ot_format_seconds(-r->benefit, a, sizeof a);
        snprintf(c[BENEFIT], CELL, "-%s", a);
    } else {
        ot_format_seconds(r->benefit, c[BENEFIT], CELL);
    }
    snprintf(c[MACS], CELL, "x%.2f", r->mac_ratio);
}

static void print_row(row_cells c, const size_t *width, FILE *f)
{
    static const bool right[COLUMNS] = {false, true, false, false, false,
                                        true,  true, true,  true,  true};
    fprintf(f, "%*s", MARGIN, "");
    for (size_t k = 0; k < COLUMNS; k++) {
        int w = (int)width[k];
        if (w == 0) continue;
        const char *gap = k + 1 < COLUMNS ? "  " : "\n";
        if (right[k])
            fprintf(f, "%*s%s", w, c[k], gap);
        else
            fprintf(f, "%-*s%s", w, c[k], gap);
    }
}

/* What streams through a cache, region by region. */
static void print_residence(const ot_facts *r, bool all, FILE *f)
{
    uint32_t shown = 0, n = 0;
    for (uint32_t k = 0; k < r->n_regions; k++) {
        const ot_fact_region *x = &r->regions[k];
        if (!*x->residence ||
            (x->working_set <= x->capacity && (x->weights_stay || x->weights == 0)))
            continue;
        n++;
        if (!all && shown == GROUPS_SHOWN) continue;
        fprintf(f, "%*sr%u: %s\n", MARGIN, "", x->id, x->residence);
        shown++;
    }
    if (shown < n)
        fprintf(f, "%*s       and %u others ('onnx-tile inspect' lists them)\n", MARGIN, "",
                n - shown);
}

/* What the column "working set" counts and the peak does not. */
static void print_weights(const ot_facts *r, FILE *f)
{
    int64_t most = 0;
    char bytes[32];
    for (uint32_t k = 0; k < r->n_regions; k++) {
        const ot_fact_region *x = &r->regions[k];
        if (!*x->residence && x->weights_stay) most = x->weights > most ? x->weights : most;
    }
    if (most > 0)
        fprintf(f,
                "%*sworking sets hold weights beside the tiles, up to %s; peak memory is of values "
                "alone\n",
                MARGIN, "", ot_format_bytes((double)most, bytes, sizeof bytes));
}

/* The second level, region by region. */
static void print_cores(const ot_facts *r, bool all, FILE *f)
{
    uint32_t shown = 0, n = 0;
    for (uint32_t k = 0; k < r->n_regions; k++) {
        if (!*r->regions[k].cores || r->regions[k].n_blocks == 0) continue;
        if (all || shown < GROUPS_SHOWN)
            fprintf(f, "%*sr%u in the cores: %s\n", MARGIN, "", r->regions[k].id,
                    r->regions[k].cores);
        shown += all || shown < GROUPS_SHOWN;
        n++;
    }
    if (shown < n) fprintf(f, "%*s       and %u others in the cores\n", MARGIN, "", n - shown);
}

static void print_sums(const ot_facts *r, FILE *f)
{
    char name[84];
    for (uint32_t i = 0; i < r->n_regions; i++)
        for (uint32_t k = 0; k < r->regions[i].n_sums; k++) {
            const ot_fact_node *n = &r->nodes[r->regions[i].sums[k].node];
            ot_fact_short(n->name, 80, name);
            fprintf(f,
                    "%*sr%u ends in %s %s: every tile reduces its share, the parts are combined "
                    "after the tiles\n",
                    MARGIN, "", r->regions[i].id, n->op, name);
        }
}

/* Columns that leave rows which are longer than a terminal's lines, in this order. */
static const size_t LEAVE[] = {BENEFIT, NODES, SPAN, AT_ONCE, FORM};

static void narrow(size_t *width, size_t columns)
{
    size_t sum = MARGIN;
    for (size_t k = 0; k < COLUMNS; k++) sum += width[k] > 0 ? width[k] + 2 : 0;
    for (size_t k = 0; k < sizeof LEAVE / sizeof *LEAVE && sum > columns + 2; k++) {
        sum -= width[LEAVE[k]] > 0 ? width[LEAVE[k]] + 2 : 0;
        width[LEAVE[k]] = 0;
    }
}

/* A line of what left a region's row; the benefit is the difference of times. */
static void print_rest(row_cells c, const size_t *width, bool all, FILE *f)
{
    if (width[SPAN] > 0 && width[NODES] > 0) return;
    fprintf(f, "%*s", MARGIN + 8, "");
    if (width[NODES] == 0) fprintf(f, "%s node%s", c[NODES], strcmp(c[NODES], "1") ? "s" : "");
    if (width[SPAN] == 0) fprintf(f, ", %s", c[SPAN]);
    if (width[FORM] == 0) fprintf(f, ", %s", c[FORM]);
    if (all && width[AT_ONCE] == 0) fprintf(f, ", %s at once", c[AT_ONCE]);
    fputc('\n', f);
}

static ot_status print_regions(const ot_facts *r, bool all, size_t columns, FILE *f)
{
    static const char *const titles[COLUMNS] = {
        "region",      "nodes",   "from .. to", "axis/tiles", "form",
        "working set", "at once", "time",       "benefit",    "MACs"};
    size_t width[COLUMNS] = {0};

    if (r->n_regions == 0) return OT_OK;
    row_cells *rows = calloc((size_t)r->n_regions + 1, sizeof *rows);
    if (!rows) return OT_E_NOMEM;
    for (size_t k = 0; k < COLUMNS; k++) snprintf(rows[0][k], CELL, "%s", titles[k]);
    for (uint32_t k = 0; k < r->n_regions; k++) fill_row(r, &r->regions[k], rows[k + 1]);
    for (uint32_t i = 0; i <= r->n_regions; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            if (strlen(rows[i][k]) > width[k]) width[k] = strlen(rows[i][k]);
    if (!all) width[AT_ONCE] = 0; /* what is live at once, beside what was planned for it */
    if (columns > 0) narrow(width, columns);
    fputc('\n', f);
    for (uint32_t i = 0; i <= r->n_regions; i++) {
        print_row(rows[i], width, f);
        if (i > 0) print_rest(rows[i], width, all, f);
    }
    print_weights(r, f);
    print_residence(r, all, f);
    print_cores(r, all, f);
    print_sums(r, f);
    free(rows);
    return OT_OK;
}

/* ---- barriers and refusals, grouped ---- */

typedef struct group {
    const char *op, *reason; /* op NULL for refusals */
    uint32_t first;          /* index of its first member */
    uint32_t count;
} group;

static int by_count(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Groups of equal (op, reason), the largest first. *n in: rows, out: groups. */
static void make_groups(group *rows, uint32_t *n)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < *n; k++) {
        uint32_t j = 0;
        while (j < kept && !(strcmp(rows[j].reason, rows[k].reason) == 0 &&
                             (!rows[j].op || strcmp(rows[j].op, rows[k].op) == 0)))
            j++;
        if (j < kept)
            rows[j].count++;
        else
            rows[kept++] = rows[k];
    }
    qsort(rows, kept, sizeof *rows, by_count);
    *n = kept;
}

static const char *op_of(const ot_facts *f, uint32_t barrier)
{
    return f->nodes[f->barriers[barrier].node].op;
}

/* Names of a barrier group's members, several a line. */
static void print_members(const ot_facts *r, const group *b, FILE *f)
{
    size_t column = 0;
    for (uint32_t k = b->first; k < r->n_barriers; k++) {
        char name[64];
        if (strcmp(op_of(r, k), b->op) != 0 || strcmp(r->barriers[k].reason, b->reason) != 0)
            continue;
        ot_fact_short(r->nodes[r->barriers[k].node].name, 48, name);
        if (column == 0 || column + strlen(name) > 90)
            column = (size_t)fprintf(f, "%s         ", column ? "\n" : "") - 1;
        column += (size_t)fprintf(f, " %s", name);
    }
    fputc('\n', f);
}

static ot_status print_barriers(const ot_facts *r, bool all, FILE *f)
{
    uint32_t n = r->n_barriers;
    if (n == 0) return OT_OK;
    group *groups = calloc(n, sizeof *groups);
    if (!groups) return OT_E_NOMEM;
    for (uint32_t k = 0; k < n; k++) groups[k] = (group){op_of(r, k), r->barriers[k].reason, k, 1};
    make_groups(groups, &n);
    fprintf(f, "\n%*s%u barrier%s\n", MARGIN, "", r->n_barriers, r->n_barriers == 1 ? "" : "s");
    for (uint32_t k = 0; k < n && (all || k < GROUPS_SHOWN); k++) {
        char op[36];
        ot_fact_short(groups[k].op, 32, op);
        fprintf(f, "%*s%4u x %s: %s\n", MARGIN, "", groups[k].count, op, groups[k].reason);
        if (all) print_members(r, &groups[k], f);
    }
    if (!all && n > GROUPS_SHOWN)
        fprintf(f, "%*s       and %u other kinds ('onnx-tile inspect' lists them)\n", MARGIN, "",
                n - GROUPS_SHOWN);
    free(groups);
    return OT_OK;
}

static void print_refused(const ot_facts *r, bool all, FILE *f)
{
    uint32_t shown = all || r->n_refusals < GROUPS_SHOWN ? r->n_refusals : GROUPS_SHOWN;
    if (r->n_refusals == 0) return;
    fprintf(f, "\n%*snot tiled\n", MARGIN, "");
    for (uint32_t k = 0; k < shown; k++) {
        char span[CELL];
        span_text(r, r->refusals[k].nodes, r->refusals[k].n_nodes, span, sizeof span);
        fprintf(f, "%*s%4u node%s %s: %s\n", MARGIN, "", r->refusals[k].n_nodes,
                r->refusals[k].n_nodes == 1 ? " " : "s", span, r->refusals[k].reason);
    }
    if (shown < r->n_refusals)
        fprintf(f, "%*s       and %u others ('onnx-tile inspect' lists them)\n", MARGIN, "",
                r->n_refusals - shown);
}

static void print_design(const ot_facts *r, FILE *f)
{
    if (r->design_guessed) {
        fprintf(f, "\n%*sno size is given: planned for ", MARGIN, "");
        ot_put_shown(r->design, f);
        fputs(" (--design INPUT=D,D,... says another, --shape fixes one)\n", f);
    }
    if (r->stays_dynamic) {
        fprintf(f, "\n%*sdynamic dimensions stay dynamic, planned for ", MARGIN, "");
        ot_put_shown(r->design, f);
        fprintf(f, ": %s takes no more memory so, or less\n", r->runtime);
    }
    if (r->totals.dynamic_untiled)
        fprintf(f,
                "\n%*s%s takes no tiles of dynamic dimensions: bind them with --shape to have it "
                "tiled\n",
                MARGIN, "", r->runtime);
    fprintf(f,
            "\n%*sfor every size: figures are those of the design size, tiles are counted when the "
            "model runs\n",
            MARGIN, "");
}

static void print_slow(const ot_facts *r, FILE *f)
{
    char which[604];
    if (!*r->slow_nodes) return;
    fprintf(f, "\n%*sslow in the engine, which has only reference kernels for them: %s\n", MARGIN,
            "", ot_fact_short(r->slow_nodes, 600, which));
}

static void print_narrowed(const ot_fact_totals *t, FILE *f)
{
    char bytes[32];
    if (t->narrowed_nodes == 0) return;
    fprintf(f,
            "\n%*snot all is read of what %u node%s made: %s of values and %.4g multiply-adds are "
            "left out\n",
            MARGIN, "", t->narrowed_nodes, t->narrowed_nodes == 1 ? "" : "s",
            ot_format_bytes(t->unread_bytes, bytes, sizeof bytes), t->unread_macs);
}

ot_status ot_results_print(const ot_facts *r, bool all, size_t columns, FILE *f)
{
    print_headline(r, all, f);
    if (all) print_arena(r, f);
    OT_TRY(print_regions(r, all, columns, f));
    OT_TRY(print_barriers(r, all, f));
    print_refused(r, all, f);
    if (r->totals.dynamic_dims) print_design(r, f);
    if (r->range) ot_bounds_print(r->range, f);
    print_narrowed(&r->totals, f);
    if (r->totals.folded_nodes > 0)
        fprintf(f,
                "\n%*swhat %u nodes compute of constants is in the file: %s would compute it "
                "while it loads\n",
                MARGIN, "", r->totals.folded_nodes, r->runtime);
    print_slow(r, f);
    if (r->totals.in_branch)
        fprintf(f,
                "\n%*sruns as a branch, in which %s keeps no second block of memory for the "
                "graph's tensors\n",
                MARGIN, "", r->runtime);
    if (r->totals.hides_extents)
        fprintf(f,
                "\n%*sstates no extents of large values: %s keeps no buffer of one for the next "
                "of its shape\n",
                MARGIN, "", r->runtime);
    if (r->totals.defer_from > 0)
        fprintf(
            f,
            "\n%*sweights of %lld KiB and more are packed when they are used: %s holds them once\n",
            MARGIN, "", (long long)(r->totals.defer_from >> 10), r->runtime);
    if (r->totals.unpacked_from > 0)
        fprintf(
            f,
            "\n%*sweights of convolutions of %lld KiB and more are read as they are: %s does not "
            "pack them while it loads\n",
            MARGIN, "", (long long)(r->totals.unpacked_from >> 10), r->runtime);
    if (r->totals.piece_bytes > 0)
        fprintf(f, "\n%*slarge weights are read in pieces of %lld MiB: %s packs them one by one\n",
                MARGIN, "", (long long)(r->totals.piece_bytes >> 20), r->runtime);
    if (r->totals.n_plain > 0)
        fprintf(f,
                "\n%*sweights of %u more %s are read so, for who reads the maps: %s does not hold "
                "these in two layouts\n",
                MARGIN, "", r->totals.n_plain,
                r->totals.n_plain == 1 ? "convolution" : "convolutions", r->runtime);
    if (r->totals.data_file)
        fprintf(f,
                "\n%*sweights are in a file beside the model, which %s maps: nothing is copied "
                "while it loads (--single-file: one file)\n",
                MARGIN, "", r->runtime);
    if (r->n_regions == 0)
        fprintf(f, "\n%*snothing %sis worth tiling here\n", MARGIN, "",
                r->totals.narrowed_nodes > 0 ? "of the rest " : "");
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
