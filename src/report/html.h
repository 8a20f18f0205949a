/* Inside of the HTML report: a page is written from top to bottom by sections that share this writer.
 *
 *   html_report.c   head, style, script, order of the sections      page.css, page.js: embedded by the Makefile
 *   html_write.c    this interface on libxml2's xmlTextWriter
 *   html_cards.c    headline      html_graph.c  graph as SVG (html_layout.c: where nodes go)
 *   html_regions.c  region table  html_candidates.c  candidates of a region: plot, heat map, text
 *   html_map.c      memory maps   html_roofline.c  roofline   html_tables.c  barriers, refusals, target, environment
 *
 * The page is XHTML and HTML at once (polyglot): parsers of both read the same tree, so tests parse it strictly. Texts from models
 * pass through html_text and html_attr only, which replace what XML cannot hold and escape the rest; nothing from a model ever
 * becomes a part of a tag, of a style or of the script.
 *
 * Every number of the facts that a reader sees stands in <data value="...">: exact as the XML report writes it (ot_fact_number),
 * shown as people like it ("12.3 MiB"). Numbers in SVG drawings stand in data-* attributes or <title> in the same manner, or are
 * coordinates.
 */
#ifndef OT_HTML_H
#define OT_HTML_H

#include "facts.h"

#include <libxml/xmlwriter.h>

typedef struct html {
    xmlTextWriterPtr w;
    const ot_facts *f;
    bool failed; /* some write failed: memory, or the file; later calls do nothing */
} html;

void html_open(html *h, const char *tag);
void html_open_class(html *h, const char *tag, const char *cls);
/* Attributes directly after html_open. */
void html_attr(html *h, const char *name, const char *value);
void html_attrf(html *h, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void html_text(html *h, const char *text);
void html_textf(html *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
void html_close(html *h);
/* <tag class="cls">text</tag>; cls NULL: none. */
void html_leaf(html *h, const char *tag, const char *cls, const char *text);

/* <data value="number">shown</data>; "-" without <data> when absent (negative). */
void html_bytes(html *h, double bytes);     /* 12.3 MiB */
void html_seconds(html *h, double seconds); /* 4.56 ms */
void html_count(html *h, double n);         /* 1 234 567, or 1.23 G above a million */
void html_percent(html *h, double fraction);/* 12.3 %; the value is the fraction */
void html_ratio(html *h, double x);         /* x0.123 */
/* By the unit of ot_fact_card and ot_fact_entry. */
void html_number(html *h, double x, const char *unit);
/* The same as plain text, for tooltips and labels of drawings. */
const char *html_format(double x, const char *unit, char *buffer, size_t size);

/* Sections. Each writes one <section id="..."> with a heading, or nothing when the facts have none of it. */
void html_cards(html *h);
void html_graph(html *h);
void html_regions(html *h);    /* table; below it one <details> a region with its candidates (html_candidates) */
void html_candidates(html *h, const ot_fact_region *r);
void html_maps(html *h);
void html_roofline(html *h);
void html_barriers(html *h);   /* barriers and refusals */
void html_target(html *h);     /* target, environment, arena figures; scopes and warnings of plan-memory */
void html_bench(html *h);      /* measured times, bytes by level, outputs compared */

/* ---- facts_number.c: as all writers print numbers ---- */

/* Shortest of "%.0f" (whole numbers below 2^53) and "%.9g"; "." whatever the locale. Returns buffer. */
#define FACT_NUMBER_SIZE 32
const char *ot_fact_number(double x, char buffer[FACT_NUMBER_SIZE]);
/* UTF-8 as XML 1.0 can hold it: other bytes and characters become U+FFFD. In arena a; NULL when memory ran out. */
char *ot_fact_clean(ot_arena *a, const char *text);

#endif
