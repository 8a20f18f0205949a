/* Inside of the HTML report: a page is written from top to bottom by sections that share this
 * writer.
 *
 *   html_report.c      head, style, script, order of the sections; page.css, page.js: embedded by
 *                      the Makefile
 *   html_write.c       this interface on libxml2's xmlTextWriter
 *   html_explain.c     where memory goes
 *   html_cards.c       headline
 *   html_graph.c       graph as SVG (html_layout.c: where nodes go)
 *   html_regions.c     region table
 *   html_candidates.c  candidates of a region: plot, heat map, text
 *   html_map.c         memory maps
 *   html_passes.c      a kernel's text after each pass
 *   html_roofline.c    roofline
 *   html_barriers.c    barriers and refusals, by reason
 *   html_tables.c      target, environment, scopes
 *   html_bench.c       measurements
 *   html_device.c      the profile of a device
 *   html_plot.c        axes of plots (html_plot.h)
 *   html_pieces.c      what sections share: headings, drawings, lists of names and of operators
 *
 * The page is XHTML and HTML at once (polyglot): parsers of both read the same tree, so tests
 * parse it strictly. Texts from models pass through html_text and html_attr only, which replace
 * what XML cannot hold and escape the rest; nothing from a model ever becomes a part of a tag,
 * of a style or of the script.
 *
 * Every number of the facts that a reader sees stands in <data value="...">: exact as the XML
 * report writes it (ot_fact_number), shown as people like it ("12.3 MiB"). Numbers in SVG
 * drawings stand in data-* attributes or <title> in the same manner, or are coordinates.
 */
#ifndef OT_REPORT_HTML_HTML_H
#define OT_REPORT_HTML_HTML_H

#include "report/facts/facts_number.h"

#include <libxml/xmlwriter.h>

#define HTML_DEPTH 64
enum { HTML_VOID = 1, HTML_LINE = 2 }; /* how an element ends: in "/>"; with a new line */

typedef struct html {
    xmlTextWriterPtr w;
    const ot_facts *f;
    bool failed; /* some write failed: memory, or the file; later calls do nothing */
    uint32_t depth;
    uint8_t how[HTML_DEPTH]; /* [depth] of the open elements */
} html;

/* Shapes of SVG and void elements of HTML end in "/>", everything else gets an end tag: HTML
 * wants it so. An <svg> gets its xmlns. */
void html_open(html *h, const char *tag);
void html_open_class(html *h, const char *tag, const char *cls);
/* Attributes directly after html_open. */
void html_attr(html *h, const char *name, const char *value);
void html_attrf(html *h, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void html_text(html *h, const char *text);
void html_textf(html *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
void html_close(html *h);
/* <tag class="cls">text</tag>; cls NULL: none. */
void html_leaf(html *h, const char *tag, const char *cls, const char *text);

/* <data value="number">shown</data>; "-" without <data> when absent (negative). */
void html_bytes(html *h, double bytes);      /* 12.3 MiB */
void html_seconds(html *h, double seconds);  /* 4.56 ms */
void html_count(html *h, double n);          /* 1 234 567, or 1.23 G above a million */
void html_percent(html *h, double fraction); /* 12.3 %; the value is the fraction */
void html_ratio(html *h, double x);          /* x0.123 */
/* By the unit of ot_fact_card and ot_fact_entry; else a count. */
void html_number(html *h, double x, const char *unit);
/* In words of one's own. */
void html_value(html *h, double x, const char *shown);
/* The same as plain text, for tooltips and labels of drawings; further units: "percent" (of the
 * fraction), "ratio", "tiny" (1.2e-09). */
const char *html_format(double x, const char *unit, char *buffer, size_t size);
/* A card's figure (before, after) as plain text: "12 MiB", "at least 12 MiB", "not known". */
const char *html_card_text(const ot_fact_card *c, double x, char *buffer, size_t size);

/* <section id="..."> with its heading and, unless NULL, a sentence that tells how to read it. */
void html_section(html *h, const char *id, const char *title, const char *lead);
/* <svg> of width x height units, as wide as its column; what stands in it follows, then html_close.
 */
void html_svg(html *h, const char *cls, double width, double height, const char *label);
/* <title>: the tooltip of the open shape, and what is read aloud; "\n" breaks its line. Directly
 * after html_open and html_attr. */
void html_tip(html *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* <div> around a table that scrolls in it, by keyboard too; label: what is read aloud. To be
 * closed. */
void html_scroll(html *h, const char *cls, const char *label);
/* One row of a table's head; "#..." marks a column of figures. NULL-terminated. Opens <thead>,
 * <tr> and closes them. */
void html_heads(html *h, const char *const *titles);
/* <dt>title</dt><dd>number</dd>, or nothing when absent. */
void html_fact(html *h, const char *title, double x, const char *unit);
/* <td> with a number, right-aligned. */
void html_cell(html *h, double x, const char *unit);
/* Bar of a cell, filled to that part; beyond 1, full and marked. */
void html_gauge(html *h, double fill);
/* <span class="tag bound-...">. */
void html_bound(html *h, ot_bound bound);

/* ---- what the page of compare (compare_page.c) has as well ---- */

void html_head(html *h, const char *title); /* <head> with policy, title, style */
void html_patterns(html *h);                /* the hidden drawing with the patterns */
void html_search(html *h);                  /* the search box */
void html_card_list(html *h, const ot_fact_card *cards, uint32_t n);
const char *html_file_name(const char *path); /* last part of a path */
/* html_map.c: one map of a kernel's memory, in a scale of its own. */
void html_kernel_map(html *h, const ot_fact_map *m);

/* With more regions than this, each has a table of its candidates but no drawings, and its
 * nodes' names only. */
#define HTML_REGIONS_FULL 100

/* The bar below the header: open, a link for each section, close; searched: with the search box. */
void html_navigation_open(html *h);
void html_navigation_link(html *h, const char *id, const char *title);
void html_navigation_close(html *h, bool searched);

/* Sections. Each writes one <section id="..."> with a heading, or nothing when the facts have
 * none of it. */
void html_cards(html *h);
void html_passes(html *h);
void html_explain(html *h); /* where memory goes */
void html_graph(html *h);
/* table; below it one <details> a region with its candidates (html_candidates) */
void html_regions(html *h);
void html_candidates(html *h, const ot_fact_region *r);
void html_candidates_legend(html *h); /* of the plots of all regions */
void html_maps(html *h);
void html_roofline(html *h);
void html_barriers(html *h); /* barriers and refusals */
/* target, environment, arena figures; scopes and warnings of plan-memory */
void html_target(html *h);
void html_bench(html *h);  /* measured times, bytes by level, outputs compared */
void html_device(html *h); /* what the devices of both models did */

/* "H 8 x W 4" of a tiling. Names of axes are cut when size is too small. */
const char *html_tiling(uint32_t n_dims, const char *const *axes, const uint32_t *tiles,
                        char *buffer, size_t size);
/* One part of a tiling, the d-th: "H 8", or " x W 4". */
void html_axis(html *h, uint32_t d, const char *axis, double n);
/* Operators of the nodes with their counts, most frequent first: "Conv 4, Relu 4, Add"; at most
 * `most` of them, then "others". */
void html_operators(html *h, const uint32_t *nodes, uint32_t n, uint32_t most);
/* What ends a list that was cut: "and others: N in all". N is a number of the XML report, what
 * is left of it would not be. */
void html_rest(html *h, double n);
/* <ul class="names"> of at most `most` nodes, then the rest. */
void html_names(html *h, const uint32_t *nodes, uint32_t n, uint32_t most);

/* ---- embedded by the Makefile, comments left out ---- */

extern const char ot_page_css[], ot_page_js[];
/* "sha256-...", for the Content-Security-Policy */
extern const char ot_page_css_hash[], ot_page_js_hash[];

#endif
