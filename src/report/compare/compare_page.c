/* The page of a comparison, in the language of the report's own page (html_report.c).
 *
 *   +-----------------------------------------------+
 *   | before.xml -> after.xml                       |  header: what is compared, the sentence that
 *                                                      says what changed
 *   | Predicted time 3.15 ms -> 1.58 ms (x0.5) ...  |
 *   +-[Headline Measured Regions Nodes ...]---------+
 *   | cards: figures of the tiled models            |
 *   | regions side by side, nodes that changed ...  |
 *   +-----------------------------------------------+
 */
#include "compare.h"

#include <math.h>

#define TITLE_MAX 512
#define SHOWN     64
#define SAME      1e-9 /* relative; reports hold nine digits */

bool ot_compare_same(double x, double y) { return fabs(x - y) <= SAME * fmax(fabs(x), fabs(y)); }

void ot_compare_figures(html *h, double before, double after, const char *unit)
{
    if (before < 0 && after < 0) {
        html_text(h, "-");
        return;
    }
    html_number(h, before, unit);
    if (before >= 0 && after >= 0 && ot_compare_same(before, after)) return;
    html_leaf(h, "span", "arrow", "\xe2\x86\x92");
    html_number(h, after, unit);
}

void ot_compare_ratio(html *h, double before, double after)
{
    double ratio = before > 0 && after >= 0 ? after / before : OT_ABSENT;
    bool same = ot_compare_same(before, after);
    html_open_class(h, "span", ratio < 0 || same ? "same" : ratio < 1 ? "less" : "more");
    html_ratio(h, ratio);
    html_close(h);
}

/* ---- header ---- */

static void put_sentence_part(const comparison *c, html *h, const char *id, const char *what,
                              uint32_t *n)
{
    for (uint32_t k = 0; k < c->cards.n; k++) {
        const ot_fact_card *before = ot_compare_card(c, 0, c->cards.pairs[k].before),
                           *after = ot_compare_card(c, 1, c->cards.pairs[k].after);
        if (!before || !after || strcmp(before->id, id) != 0 ||
            strcmp(before->unit, after->unit) != 0)
            continue;
        if (ot_compare_figure(before) < 0 || ot_compare_figure(after) < 0) continue;
        html_text(h, (*n)++ ? "; " : "");
        html_textf(h, "%s ", what);
        ot_compare_figures(h, ot_compare_figure(before), ot_compare_figure(after), before->unit);
        if (ot_compare_same(ot_compare_figure(before), ot_compare_figure(after))) {
            html_text(h, " as before");
        } else {
            html_text(h, " (");
            ot_compare_ratio(h, ot_compare_figure(before), ot_compare_figure(after));
            html_text(h, ")");
        }
    }
}

/* "; 3 nodes newly tiled, 1 no longer." */
static void put_changes(const comparison *c, html *h, uint32_t n)
{
    bool any = false;
    for (int k = COMPARE_TILED; k < COMPARE_CHANGES; k++) {
        if (c->n_changes[k] == 0) continue;
        html_textf(h, "%s%u node%s %s",
                   any ? ", "
                   : n ? "; "
                       : "",
                   c->n_changes[k], c->n_changes[k] == 1 ? "" : "s", ot_compare_change_words[k]);
        any = true;
    }
    if (!any && c->nodes.n > 0) html_text(h, n ? "; the same tiling." : "The same tiling.");
    if (any || (n && c->nodes.n == 0)) html_text(h, ".");
}

static void put_side(const comparison *c, html *h, int side)
{
    const ot_facts *f = c->side[side];
    html_open(h, "li");
    html_leaf(h, "span", NULL, side ? "after" : "before");
    html_textf(h, " %s", html_file_name(c->path[side]));
    html_textf(h, " \xc2\xb7 %s", html_file_name(f->model));
    if (f->target && *f->target) html_textf(h, " \xc2\xb7 %s", f->target);
    if (f->goal && *f->goal) html_textf(h, " \xc2\xb7 %s", f->goal);
    html_textf(h, " \xc2\xb7 onnx-tile %s", f->version);
    html_close(h);
}

static void put_header(const comparison *c, html *h)
{
    const char *before = html_file_name(c->side[0]->model),
               *after = html_file_name(c->side[1]->model);
    uint32_t n = 0;
    html_open_class(h, "header", "top");
    html_open_class(h, "p", "overline");
    html_textf(h, "onnx-tile \xc2\xb7 two reports of %s compared",
               ot_fact_kind_name(c->side[0]->kind));
    html_close(h);
    html_open(h, "h1");
    html_text(h, before);
    if (strcmp(before, after) != 0) html_textf(h, " \xe2\x86\x92 %s", after);
    html_close(h);
    html_open_class(h, "p", "summary");
    put_sentence_part(c, h, "measured-time", "Measured time", &n);
    if (n == 0) put_sentence_part(c, h, "time", "Predicted time", &n);
    uint32_t told = n;
    put_sentence_part(c, h, "process", n ? "whole process" : "Whole process", &n);
    if (n == told)
        put_sentence_part(c, h, "process-growth",
                          n ? "peak resident growth" : "Peak resident growth", &n);
    if (n == told) put_sentence_part(c, h, "peak-memory", n ? "peak memory" : "Peak memory", &n);
    put_changes(c, h, n);
    html_close(h);
    html_open_class(h, "ul", "chips");
    put_side(c, h, 0);
    put_side(c, h, 1);
    html_close(h);
    html_close(h);
}

/* ---- headline ---- */

/* "untiled 9.19 MiB -> 9.19 MiB; lower bound 3 MiB -> 2 MiB" */
static const char *note_of(const comparison *c, const ot_fact_card *before,
                           const ot_fact_card *after, bool *failed)
{
    char text[4][SHOWN];
    const char *unit = before->unit, *note = "";
    html_format(before->before, unit, text[0], SHOWN);
    html_format(after->before, unit, text[1], SHOWN);
    html_format(before->bound, unit, text[2], SHOWN);
    html_format(after->bound, unit, text[3], SHOWN);
    if (before->after >= 0 && before->before >= 0 && after->before >= 0)
        note = ot_compare_same(before->before, after->before)
                   ? ot_format(c->a, "untiled %s both times", text[0])
                   : ot_format(c->a, "untiled %s \xe2\x86\x92 %s", text[0], text[1]);
    if (note && before->bound >= 0 && after->bound >= 0 &&
        !ot_compare_same(before->bound, after->bound))
        note = ot_format(c->a, "%s%sbound %s before", note, *note ? "; " : "", text[2]);
    if (note && *after->note)
        note = ot_format(c->a, "%s%s%s", note, *note ? " \xc2\xb7 " : "", after->note);
    if (!note) *failed = true;
    return note ? note : "";
}

/* Cards of the two tiled models: the first as "before", the second as "after". */
static void put_cards(const comparison *c, html *h)
{
    ot_fact_card *cards = OT_NEW_N(c->a, ot_fact_card, c->cards.n);
    uint32_t n = 0;
    if (!cards) h->failed = true;
    for (uint32_t k = 0; cards && k < c->cards.n; k++) {
        const ot_fact_card *before = ot_compare_card(c, 0, c->cards.pairs[k].before),
                           *after = ot_compare_card(c, 1, c->cards.pairs[k].after);
        if (!before || !after || strcmp(before->unit, after->unit) != 0) continue;
        double x = ot_compare_figure(before), y = ot_compare_figure(after);
        if (x < 0 && y < 0) continue;
        cards[n++] = (ot_fact_card){.id = after->id,
                                    .title = after->title,
                                    .unit = after->unit,
                                    .before = x,
                                    .after = y,
                                    .bound = after->bound,
                                    .ratio = x > 0 && y >= 0 ? y / x : OT_ABSENT,
                                    .note = note_of(c, before, after, &h->failed)};
    }
    if (n == 0) return;
    html_section(h, "cards", "Headline",
                 "Figures of the tiled models: of the report before, and of the one after.");
    html_card_list(h, cards, n);
    html_close(h);
}

/* ---- page ---- */

typedef struct part {
    const char *id, *title;
    bool is_there;
    void (*put)(const comparison *c, html *h);
} part;

static void put_body(const comparison *c, html *h)
{
    const uint32_t changed = c->nodes.n - c->n_changes[COMPARE_SAME];
    const part parts[] = {
        {"cards", "Headline", c->cards.n > 0, put_cards},
        {"bench", "Measured", c->side[0]->bench && c->side[1]->bench, ot_compare_bench},
        {"regions", "Regions", c->regions.n > 0, ot_compare_regions},
        {"nodes", "Nodes", changed > 0, ot_compare_nodes},
        {"maps", "Memory", c->maps.n > 0, ot_compare_maps},
        {"target", "Target", c->target.n + c->environment.n + c->memory.n > 0, ot_compare_entries},
    };
    const uint32_t n = (uint32_t)(sizeof parts / sizeof *parts);
    html_open(h, "body");
    html_open_class(h, "a", "skip");
    html_attr(h, "href", "#content");
    html_text(h, "To the comparison");
    html_close(h);
    html_patterns(h);
    put_header(c, h);
    html_navigation_open(h);
    for (uint32_t k = 0; k < n; k++)
        if (parts[k].is_there) html_navigation_link(h, parts[k].id, parts[k].title);
    html_navigation_close(h, changed > 0);
    html_open(h, "main");
    html_attr(h, "id", "content");
    for (uint32_t k = 0; k < n; k++)
        if (parts[k].is_there) parts[k].put(c, h);
    html_close(h);
    html_open(h, "footer");
    html_textf(h, "Made by onnx-tile %s from two XML reports.", OT_VERSION);
    html_close(h);
    html_open(h, "script");
    if (!h->failed && xmlTextWriterWriteRaw(h->w, BAD_CAST ot_page_js) < 0) h->failed = true;
    html_close(h);
    html_close(h);
}

static int write_file(void *context, const char *bytes, int n)
{
    return fwrite(bytes, 1, (size_t)n, context) == (size_t)n ? n : -1;
}

ot_status ot_compare_write(const comparison *c, FILE *out)
{
    char title[TITLE_MAX];
    xmlOutputBufferPtr buffer = xmlOutputBufferCreateIO(write_file, NULL, out, NULL);
    html h = {.w = buffer ? xmlNewTextWriter(buffer) : NULL, .f = c->side[1]};
    if (!h.w) {
        if (buffer) xmlOutputBufferClose(buffer);
        return OT_E_NOMEM;
    }
    if (xmlTextWriterWriteRaw(h.w, BAD_CAST "<!DOCTYPE html>\n") < 0) h.failed = true;
    html_open(&h, "html");
    html_attr(&h, "xmlns", "http://www.w3.org/1999/xhtml");
    html_attr(&h, "lang", "en");
    snprintf(title, sizeof title, "%s and %s - onnx-tile comparison", html_file_name(c->path[0]),
             html_file_name(c->path[1]));
    html_head(&h, title);
    put_body(c, &h);
    html_close(&h);
    if (xmlTextWriterFlush(h.w) < 0) h.failed = true;
    xmlFreeTextWriter(h.w);
    if (ferror(out)) return OT_E_SYSTEM;
    return h.failed ? OT_E_NOMEM : OT_OK;
}
