/* A comparison in GitHub's Markdown, for comments on changes: the headline, what became of
 * nodes, the regions that are not as they were.
 *
 * Names are strangers' texts: they stand in code spans, where nothing is read as markup, a link
 * or a mention.
 */
#include "compare.h"

enum { CELL = 64, REGIONS_SHOWN = 20 };

/* A code span in a cell of a table: one line, no backquote, no bar. */
static void put_code(const char *text, FILE *f)
{
    fputc('`', f);
    if (!*text) fputc(' ', f); /* two backquotes would begin another span */
    for (const char *p = text; *p;) {
        size_t n = ot_utf8_printable(p);
        if (n == 0)
            fputc('?', f);
        else if (*p == '`')
            fputc('\'', f);
        else
            fprintf(f, *p == '|' ? "\\%.*s" : "%.*s", (int)n, p);
        p += n ? n : 1;
    }
    fputc('`', f);
}

static void put_figure(double x, const char *unit, FILE *f)
{
    char text[CELL];
    fprintf(f, " %s |", x < 0 ? "-" : html_format(x, unit, text, sizeof text));
}

static void put_card(const ot_fact_card *c, double x, FILE *f)
{
    char text[CELL];
    fprintf(f, " %s |", html_card_text(c, x, text, sizeof text));
}

/* "x0.50", "=" */
static void put_ratio(double before, double after, FILE *f)
{
    if (before < 0 || after < 0 || (before == 0 && after > 0))
        fputs(" |\n", f);
    else if (ot_compare_same(before, after))
        fputs(" = |\n", f);
    else
        fprintf(f, " x%.3g |\n", after / before);
}

static void put_headline(const comparison *c, FILE *f)
{
    fputs("| | before | after | |\n|---|---:|---:|---:|\n", f);
    for (uint32_t k = 0; k < c->cards.n; k++) {
        const ot_fact_card *before = ot_compare_card(c, 0, c->cards.pairs[k].before),
                           *after = ot_compare_card(c, 1, c->cards.pairs[k].after);
        const double x = ot_compare_figure(before), y = ot_compare_figure(after);
        const bool told = x >= 0 || y >= 0 || *c->side[0]->unknown_sizes ||
                          *c->side[1]->unknown_sizes;
        if (!before || !after || strcmp(before->unit, after->unit) != 0 || !told) continue;
        fprintf(f, "| %s |", after->title);
        put_card(before, x, f);
        put_card(after, y, f);
        put_ratio(x, y, f);
    }
}

static void put_changes(const comparison *c, FILE *f)
{
    const char *between = "\n";
    for (int k = COMPARE_TILED; k < COMPARE_CHANGES; k++) {
        if (c->n_changes[k] == 0) continue;
        fprintf(f, "%s%u node%s %s", between, c->n_changes[k], c->n_changes[k] == 1 ? "" : "s",
                ot_compare_change_words[k]);
        between = ", ";
    }
    fputs(*between == ',' ? ".\n" : c->nodes.n > 0 ? "\nThe same tiling.\n" : "", f);
}

/* "H 8 x W 4, loop-peeled" */
static void put_tiling(const ot_fact_region *r, FILE *f)
{
    if (!r) {
        fputs(" - |", f);
        return;
    }
    for (uint32_t d = 0; d < r->n_dims; d++)
        fprintf(f, "%s%s %u", d ? " x " : " ", r->axes[d], r->tiles[d]);
    fprintf(f, ", %s |", r->form);
}

static bool same_region(const ot_fact_region *a, const ot_fact_region *b)
{
    return a && b && a->n_nodes == b->n_nodes && ot_compare_same_tiling(a, b) &&
           ot_compare_same(a->time_tiled, b->time_tiled) && a->working_set == b->working_set;
}

static void put_regions(const comparison *c, FILE *f)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->regions.n; k++) {
        compare_pair p = c->regions.pairs[k];
        const ot_fact_region *a = p.before == OT_NONE ? NULL : &c->side[0]->regions[p.before];
        const ot_fact_region *b = p.after == OT_NONE ? NULL : &c->side[1]->regions[p.after];
        const ot_fact_region *r = b ? b : a;
        if (same_region(a, b) || n++ >= REGIONS_SHOWN) continue;
        if (n == 1)
            fputs("\n| region | tiling before | tiling after | time before | time after | "
                  "|\n|---|---|---|---:|---:|---:|\n",
                  f);
        fputs("| ", f);
        put_code(c->side[b ? 1 : 0]->nodes[r->nodes[0]].name, f);
        if (r->n_nodes > 1) fprintf(f, " and %u more", r->n_nodes - 1);
        fputs(" |", f);
        put_tiling(a, f);
        put_tiling(b, f);
        put_figure(a ? a->time_tiled : OT_ABSENT, "seconds", f);
        put_figure(b ? b->time_tiled : OT_ABSENT, "seconds", f);
        put_ratio(a ? a->time_tiled : OT_ABSENT, b ? b->time_tiled : OT_ABSENT, f);
    }
    if (n > REGIONS_SHOWN) fprintf(f, "\nand %u more regions that changed.\n", n - REGIONS_SHOWN);
}

static void put_side(const comparison *c, int side, FILE *f)
{
    const ot_facts *x = c->side[side];
    fputs(side ? "after: " : "before: ", f);
    put_code(html_file_name(x->model), f);
    if (x->target && *x->target) fputs(", target ", f), put_code(x->target, f);
    if (x->goal && *x->goal) fprintf(f, ", goal %s", x->goal);
    fprintf(f, " (%s)%s", x->measured ? "measured" : "predicted", side ? "\n\n" : "; ");
}

ot_status ot_compare_markdown(const comparison *c, FILE *out)
{
    fputs("### onnx-tile: ", out);
    put_code(html_file_name(c->side[1]->model), out);
    fputs("\n\n", out);
    put_side(c, 0, out);
    put_side(c, 1, out);
    put_headline(c, out);
    put_changes(c, out);
    put_regions(c, out);
    return ferror(out) ? OT_E_SYSTEM : OT_OK;
}
