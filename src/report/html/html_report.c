/* The page: head, header with the one sentence that says what was done, navigation with the
 * search box, sections, footer.
 *
 *   +------------------------------------------------+
 *   | onnx-tile 0.1.0, benefit report                |   header: model, sentence, target
 *   | resnet50.onnx                                  |
 *   | 3 regions tiled, 41 of 175 nodes; peak a -> b  |
 *   +-[Summary Regions Graph ...]------[find a node]-+   stays on top of the window
 *   | cards                                          |
 *   | regions ...                                    |
 *   +------------------------------------------------+
 *
 * Style and script are the two constants of the program, allowed by their hashes; the policy
 * forbids everything else: there is nothing to load, and markup that came from a model could do
 * nothing even if it got in.
 */
#include "html.h"

#define POLICY_MAX 512
#define TITLE_MAX  512

/* ---- head ---- */

static void put_meta(html *h, const char *attribute, const char *name, const char *content)
{
    html_open(h, "meta");
    html_attr(h, attribute, name);
    html_attr(h, "content", content);
    html_close(h);
}

/* A constant of the program, as it is. */
static void put_raw(html *h, const char *tag, const char *text)
{
    html_open(h, tag);
    if (!h->failed && xmlTextWriterWriteRaw(h->w, BAD_CAST text) < 0) h->failed = true;
    html_close(h);
}

const char *html_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

void html_head(html *h, const char *title)
{
    char policy[POLICY_MAX];
    snprintf(
        policy, sizeof policy,
        "default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'",
        ot_page_css_hash, ot_page_js_hash);
    html_open(h, "head");
    html_open(h, "meta");
    html_attr(h, "charset", "utf-8");
    html_close(h);
    put_meta(h, "http-equiv", "Content-Security-Policy", policy);
    put_meta(h, "name", "viewport", "width=device-width, initial-scale=1");
    put_meta(h, "name", "color-scheme", "light dark");
    put_meta(h, "name", "referrer", "no-referrer");
    html_leaf(h, "title", NULL, title);
    put_raw(h, "style", ot_page_css);
    html_close(h);
}

static void put_head(html *h)
{
    char title[TITLE_MAX];
    snprintf(title, sizeof title, "%s - onnx-tile %s report", html_file_name(h->f->model),
             ot_fact_kind_name(h->f->kind));
    html_head(h, title);
}

/* ---- patterns that drawings fill with ---- */

static void put_pattern(html *h, const char *id, const char *cls, const char *tag,
                        const char *attribute, const char *value)
{
    html_open_class(h, "pattern", cls);
    html_attr(h, "id", id);
    html_attr(h, "width", "6");
    html_attr(h, "height", "6");
    html_attr(h, "patternUnits", "userSpaceOnUse");
    html_open(h, "rect");
    html_attr(h, "width", "6");
    html_attr(h, "height", "6");
    html_close(h);
    html_open(h, tag);
    html_attr(h, attribute, value);
    if (strcmp(tag, "circle") == 0) {
        html_attr(h, "cy", "3");
        html_attr(h, "r", "1");
    }
    html_close(h);
    html_close(h);
}

void html_patterns(html *h)
{
    html_open_class(h, "svg", "defs");
    html_attr(h, "aria-hidden", "true");
    html_attr(h, "width", "0");
    html_attr(h, "height", "0");
    html_open(h, "defs");
    put_pattern(h, "hatch-bandwidth", "hatch-a", "path", "d", "M-1 1L1 -1M0 6L6 0M5 7L7 5");
    put_pattern(h, "hatch-overhead", "hatch-b", "circle", "cx", "3");
    put_pattern(h, "hatch-io", "hatch-d", "path", "d", "M0 3L6 3");
    put_pattern(h, "hatch-work", "hatch-e", "path", "d", "M3 0L3 6");
    html_close(h);
    html_close(h);
}

/* ---- header ---- */

static const ot_fact_card *card_of(const ot_facts *f, const char *id)
{
    for (uint32_t k = 0; k < f->n_cards; k++)
        if (strcmp(f->cards[k].id, id) == 0) return &f->cards[k];
    return NULL;
}

/* "; peak 98.3 MiB -> 24.1 MiB" */
static void put_change(html *h, const char *what, const ot_fact_card *c)
{
    if (!c || c->before < 0 || c->after < 0) return;
    html_textf(h, "; %s ", what);
    html_number(h, c->before, c->unit);
    html_leaf(h, "span", "arrow", "\xe2\x86\x92");
    html_number(h, c->after, c->unit);
}

static void put_tiled(html *h)
{
    const ot_facts *f = h->f;
    uint32_t inside = 0;
    for (uint32_t k = 0; k < f->n_regions; k++) inside += f->regions[k].n_nodes;
    html_open(h, "b");
    if (f->n_regions) {
        html_count(h, f->n_regions);
        html_text(h, f->n_regions == 1 ? " region tiled" : " regions tiled");
    } else
        html_text(h, "No region tiled");
    html_close(h);
    if (f->n_nodes) {
        html_text(h, ", ");
        html_count(h, inside);
        html_text(h, " of ");
        html_count(h, f->n_nodes);
        html_text(h, f->n_nodes == 1 ? " node" : " nodes");
    }
    const ot_fact_card *device = card_of(f, "device-memory"), *process = card_of(f, "process"),
                       *growth = card_of(f, "process-growth");
    if (device)
        put_change(h, "device memory", device);
    else if (process)
        put_change(h, "whole process", process);
    else
        put_change(h,
                   !growth                  ? "peak memory"
                   : f->totals.growth_title ? f->totals.growth_title
                                            : "peak resident growth",
                   growth ? growth : card_of(f, "peak-memory"));
    put_change(h, f->measured ? "measured time" : "predicted time", card_of(f, "time"));
    html_text(h, ".");
}

static void put_planned(html *h)
{
    const ot_facts *f = h->f;
    uint32_t buffers = 0, memories = f->n_scopes ? f->n_scopes : f->n_maps;
    for (uint32_t k = 0; k < f->n_scopes; k++) buffers += f->scopes[k].n_buffers;
    for (uint32_t k = 0; k < f->n_maps && f->n_scopes == 0; k++) buffers += f->maps[k].n_boxes;
    html_open(h, "b");
    if (buffers) html_count(h, buffers);
    html_text(h, !buffers       ? "Nothing to place"
                 : buffers == 1 ? " buffer placed"
                                : " buffers placed");
    html_close(h);
    if (buffers && memories) {
        html_text(h, " in ");
        html_count(h, memories);
        html_text(h, memories == 1 ? " memory" : " memories");
    }
    html_text(h, ".");
}

static void put_chip(html *h, const char *title, const char *text)
{
    if (!text || !*text) return;
    html_open(h, "li");
    html_leaf(h, "span", NULL, title);
    html_textf(h, " %s", text);
    html_close(h);
}

static void put_header(html *h)
{
    static const char *const kinds[] = {"tiling report", "inspection", "benchmark", "memory plan"};
    const ot_facts *f = h->f;
    html_open_class(h, "header", "top");
    html_open_class(h, "p", "overline");
    html_textf(h, "onnx-tile %s \xc2\xb7 %s", f->version, kinds[f->kind]);
    html_close(h);
    html_leaf(h, "h1", NULL, html_file_name(f->model));
    html_open_class(h, "p", "summary");
    if (f->kind == OT_FACTS_MEMORY)
        put_planned(h);
    else
        put_tiled(h);
    html_close(h);
    html_open_class(h, "ul", "chips");
    put_chip(h, "target", f->target);
    if (f->kind != OT_FACTS_MEMORY) put_chip(h, "runtime", f->runtime);
    if (f->design && *f->design)
        put_chip(h, f->design_guessed ? "planned for, as no size is given" : "planned for",
                 f->design);
    if (f->fast_bytes > 0) {
        html_open(h, "li");
        html_leaf(h, "span", NULL, "fast memory");
        html_text(h, " ");
        html_bytes(h, (double)f->fast_bytes);
        html_close(h);
    }
    if (f->kind != OT_FACTS_MEMORY) put_chip(h, "goal", f->goal);
    put_chip(h, "model", f->model ? html_file_name(f->model) : NULL); /* pages are passed on */
    put_chip(h, "written to", f->output ? html_file_name(f->output) : NULL);
    html_close(h);
    html_close(h);
}

/* ---- navigation ---- */

typedef struct part {
    const char *id, *title;
    bool is_there;
    void (*put)(html *h);
} part;

void html_search(html *h)
{
    html_open(h, "form");
    html_attr(h, "id", "search");
    html_attr(h, "role", "search");
    html_attr(h, "hidden", "hidden");
    html_open(h, "label");
    html_attr(h, "for", "query");
    html_text(h, "Find a node ");
    html_leaf(h, "kbd", NULL, "/");
    html_close(h);
    html_open(h, "input");
    html_attr(h, "type", "search");
    html_attr(h, "id", "query");
    html_attr(h, "autocomplete", "off");
    html_attr(h, "spellcheck", "false");
    html_attr(h, "placeholder", "part of its name");
    html_attr(h, "title", "Enter: next one, Shift+Enter: the one before, Esc: clear");
    html_close(h);
    html_open(h, "output");
    html_attr(h, "id", "found");
    html_attr(h, "for", "query");
    html_attr(h, "aria-live", "polite");
    html_close(h);
    html_close(h);
}

static void put_empty(html *h)
{
    const ot_facts *f = h->f;
    if (f->n_cards || f->n_nodes || f->n_maps || f->n_scopes || f->n_target_entries) return;
    html_open(h, "section");
    html_leaf(h, "p", "panel", "There is nothing to report: the model has no nodes.");
    html_close(h);
}

static void put_body(html *h)
{
    const ot_facts *f = h->f;
    const part parts[] = {
        {"cards", "Summary", f->n_cards > 0, html_cards},
        {"bench", "Measured", f->bench != NULL, html_bench},
        {"device", "Device", f->bench && f->bench->n_devices > 0, html_device},
        {"regions", "Regions", f->n_regions > 0, html_regions},
        {"explain", "Peak", f->n_peak > 0, html_explain},
        {"graph", "Graph", f->n_nodes > 0, html_graph},
        {"maps", "Memory", f->n_maps > 0, html_maps},
        {"passes", "Passes", f->n_passes > 0, html_passes},
        {"roofline", "Roofline", f->n_points > 0 && f->n_roofs > 0, html_roofline},
        {"barriers", "Not tiled", f->n_barriers + f->n_refusals > 0, html_barriers},
        {"target", f->kind == OT_FACTS_MEMORY ? "Plan" : "Target",
         f->n_target_entries + f->n_environment + f->n_memory_entries + f->n_scopes +
                 f->n_warnings >
             0,
         html_target},
    };
    const uint32_t n = (uint32_t)(sizeof parts / sizeof *parts);
    html_open(h, "body");
    html_open_class(h, "a", "skip");
    html_attr(h, "href", "#content");
    html_text(h, "To the report");
    html_close(h);
    html_patterns(h);
    put_header(h);
    html_navigation_open(h);
    for (uint32_t k = 0; k < n; k++)
        if (parts[k].is_there) html_navigation_link(h, parts[k].id, parts[k].title);
    html_navigation_close(h, h->f->n_nodes > 0);
    html_open(h, "main");
    html_attr(h, "id", "content");
    put_empty(h);
    for (uint32_t k = 0; k < n; k++)
        if (parts[k].is_there) parts[k].put(h);
    html_close(h);
    html_open(h, "footer");
    html_textf(h,
               "Made by onnx-tile %s. Every figure of this page is, exactly, in the XML and JSON "
               "reports of the same run.",
               f->version);
    html_close(h);
    put_raw(h, "script", ot_page_js);
    html_close(h);
}

/* ---- the file ---- */

/* What fails is seen by ferror at the end: told here, libxml2 would print it. */
static int write_file(void *context, const char *bytes, int n)
{
    fwrite(bytes, 1, (size_t)n, context);
    return n;
}

ot_status ot_report_html(const ot_facts *f, FILE *out)
{
    xmlOutputBufferPtr buffer = xmlOutputBufferCreateIO(write_file, NULL, out, NULL);
    html h = {.w = buffer ? xmlNewTextWriter(buffer) : NULL, .f = f};
    if (!h.w) {
        if (buffer) xmlOutputBufferClose(buffer);
        return OT_E_NOMEM;
    }
    if (xmlTextWriterWriteRaw(h.w, BAD_CAST "<!DOCTYPE html>\n") < 0) h.failed = true;
    html_open(&h, "html");
    html_attr(&h, "xmlns", "http://www.w3.org/1999/xhtml");
    html_attr(&h, "lang", "en");
    put_head(&h);
    put_body(&h);
    html_close(&h);
    if (xmlTextWriterFlush(h.w) < 0) h.failed = true;
    xmlFreeTextWriter(h.w);
    if (fflush(out) != 0 || ferror(out)) return OT_E_SYSTEM;
    return h.failed ? OT_E_NOMEM : OT_OK;
}
