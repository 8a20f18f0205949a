/* One line an operator, for a person (inspect --table).
 *
 *   operator                      makes          MACs  parameters   memory      time  tiled
 *   Conv             /conv1/Conv  1x64x112x112  118 M       9.4 K  3.1 MiB   4.10 ms  r0
 *   Relu             /relu/Relu   1x64x112x112      0           0  3.1 MiB     fused  r0
 *   ...
 *   53 operators                                4.09 G      25.6 M            61.2 ms  49 of them
 */
#include "facts.h"
#include "facts_number.h"

#include <math.h>

#define CELL 48

enum { OP, NAME, MAKES, MACS, PARAMETERS, MEMORY, TIME, TILED, COLUMNS };

typedef char row_cells[COLUMNS][CELL];

static const bool IS_RIGHT[COLUMNS] = {
    [MACS] = true, [PARAMETERS] = true, [MEMORY] = true, [TIME] = true};

/* "0", "118", "9.4 K", "4.09 G"; "-": not known. */
static void count_text(double x, char *out)
{
    static const char *const units[] = {"", " K", " M", " G", " T", " P"};
    size_t k = 0;
    while (x >= 999.5 && k + 1 < sizeof units / sizeof *units) {
        x /= 1000;
        k++;
    }
    if (x < 0)
        snprintf(out, CELL, "-");
    else
        snprintf(out, CELL, "%.*f%s", k == 0 || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x, units[k]);
}

static void bytes_text(double x, char *out)
{
    if (x < 0)
        snprintf(out, CELL, "-");
    else
        ot_format_bytes(x, out, CELL);
}

static void seconds_text(double x, char *out)
{
    if (x < 0)
        snprintf(out, CELL, "-");
    else
        ot_format_seconds(x, out, CELL);
}

static void fill_row(const ot_facts *f, const ot_fact_node *n, row_cells c)
{
    ot_fact_short(n->op, 20, c[OP]);
    ot_fact_short(n->name, 28, c[NAME]);
    ot_fact_short(*n->shape ? n->shape : "-", 20, c[MAKES]);
    count_text(n->macs, c[MACS]);
    count_text(n->parameters, c[PARAMETERS]);
    bytes_text(n->out_bytes, c[MEMORY]);
    if (n->is_fused)
        snprintf(c[TIME], CELL, "fused");
    else
        seconds_text(n->time, c[TIME]);
    if (n->region != OT_NONE)
        snprintf(c[TILED], CELL, "r%u", f->regions[n->region].id);
    else
        snprintf(c[TILED], CELL, "no");
}

/* All together: a parameter that several read counts once. */
static void fill_total(const ot_facts *f, row_cells c)
{
    uint32_t tiled = 0;
    double macs = 0, time = 0;
    for (uint32_t k = 0; k < f->n_nodes; k++) {
        const ot_fact_node *n = &f->nodes[k];
        tiled += n->region != OT_NONE;
        macs = n->macs < 0 || macs < 0 ? OT_ABSENT : macs + n->macs;
        time = n->time < 0 || time < 0 ? OT_ABSENT : time + n->time;
    }
    memset(c, 0, sizeof(row_cells));
    snprintf(c[OP], CELL, "%u operator%s", f->n_nodes, f->n_nodes == 1 ? "" : "s");
    count_text(macs, c[MACS]);
    count_text(f->totals.parameters, c[PARAMETERS]);
    seconds_text(time, c[TIME]);
    snprintf(c[TILED], CELL, "%u of them", tiled);
}

static void print_row(row_cells c, const size_t *width, FILE *f)
{
    size_t pending = 0; /* spaces that something follows */
    for (size_t k = 0; k < COLUMNS; k++) {
        if (width[k] == 0) continue;
        const size_t used = strlen(c[k]), left = width[k] - used;
        if (IS_RIGHT[k]) pending += left;
        if (used > 0) fprintf(f, "%*s%s", (int)pending, "", c[k]);
        pending = (used > 0 ? 0 : pending + (IS_RIGHT[k] ? used : 0)) + 2;
        if (!IS_RIGHT[k]) pending += left;
    }
    fputc('\n', f);
}

/* Columns that leave lines which a terminal does not hold, in this order. */
static void narrow(size_t *width, size_t columns)
{
    static const size_t LEAVE[] = {PARAMETERS, MAKES, NAME};
    size_t sum = 0;
    for (size_t k = 0; k < COLUMNS; k++) sum += width[k] + 2;
    for (size_t k = 0; k < sizeof LEAVE / sizeof *LEAVE && sum > columns + 2; k++) {
        sum -= width[LEAVE[k]] + 2;
        width[LEAVE[k]] = 0;
    }
}

ot_status ot_results_nodes(const ot_facts *f, size_t columns, FILE *out)
{
    static const char *const titles[COLUMNS] = {"operator",   "name",   "makes", "MACs",
                                                "parameters", "memory", "time",  "tiled"};
    size_t width[COLUMNS] = {0};
    const size_t n = (size_t)f->n_nodes + 2; /* titles before, the total behind */
    char name[84], target[44];

    row_cells *rows = calloc(n, sizeof *rows);
    if (!rows) return OT_E_NOMEM;
    for (size_t k = 0; k < COLUMNS; k++) snprintf(rows[0][k], CELL, "%s", titles[k]);
    for (uint32_t k = 0; k < f->n_nodes; k++) fill_row(f, &f->nodes[k], rows[k + 1]);
    fill_total(f, rows[n - 1]);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            if (strlen(rows[i][k]) > width[k]) width[k] = strlen(rows[i][k]);
    if (columns > 0) narrow(width, columns);

    fprintf(out, "%s for %s on %s\n", ot_fact_short(*f->model ? f->model : "model", 80, name),
            f->runtime, ot_fact_short(f->target, 40, target));
    if (*f->design) {
        fputs("figures are for ", out);
        ot_put_shown(f->design, out);
        fputc('\n', out);
    }
    fputs("memory is what an operator makes; its time is predicted, untiled\n\n", out);
    for (size_t i = 0; i < n; i++) print_row(rows[i], width, out);
    free(rows);
    return ferror(out) ? OT_E_SYSTEM : OT_OK;
}
