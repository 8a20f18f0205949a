/* Headline: one card a figure, the untiled model's bar above the tiled one's on the same scale,
 * the least that is possible as a dashed line through both.
 *
 *   Peak memory
 *   4.1 x less
 *   before |#################:#########|  98.3 MiB
 *   after  |######           :         |  24.1 MiB
 *   - - lower bound 12 MiB
 */
#include "html.h"

#include <math.h>

#define BAR_HEIGHT 16
#define CHART      44
#define SAME       0.005 /* ratios this near to 1 are no change */

static void put_bar(html *h, double y, const char *cls, double percent)
{
    html_open_class(h, "rect", cls);
    html_attrf(h, "y", "%g", y);
    html_attrf(h, "width", "%.2f%%", percent);
    html_attrf(h, "height", "%d", BAR_HEIGHT);
    html_attr(h, "rx", "2");
    html_close(h);
}

static void put_bars(html *h, const ot_fact_card *c)
{
    double most = c->before > c->after ? c->before : c->after;
    if (c->bound > most) most = c->bound;
    if (!(most > 0)) most = 1;
    html_open(h, "svg");
    html_attr(h, "aria-hidden", "true");
    put_bar(h, 3, "track", 100);
    put_bar(h, 25, "track", 100);
    if (c->before > 0) put_bar(h, 3, "before", 100 * c->before / most);
    if (c->after > 0) put_bar(h, 25, "after", 100 * c->after / most);
    if (c->bound >= 0) {
        html_open_class(h, "line", "limit");
        html_attrf(h, "x1", "%.2f%%", 99.5 * c->bound / most);
        html_attrf(h, "x2", "%.2f%%", 99.5 * c->bound / most);
        html_attrf(h, "y2", "%d", CHART);
        html_close(h);
    }
    html_close(h);
}

static void put_figure(html *h, const ot_fact_card *c, double x)
{
    if (c->at_least) html_text(h, "at least ");
    if (x < 0)
        html_text(h, "not known");
    else
        html_number(h, x, c->unit);
}

static void put_value(html *h, const char *label_class, const char *label, const char *value_class,
                      const ot_fact_card *c, double x)
{
    html_leaf(h, "span", label_class, label);
    html_open_class(h, "span", value_class);
    put_figure(h, c, x);
    html_close(h);
}

/* "4.1 x" less and "2.3 x" as much from twice on, "24 %" less or more below; returns the word. */
static const char *ratio_words(double ratio, char *shown, size_t size)
{
    const bool less = ratio < 1;
    const double times = less ? 1 / ratio : ratio;
    if (fabs(ratio - 1) <= SAME) {
        snprintf(shown, size, "same");
        return "";
    }
    if (times < 2) {
        snprintf(shown, size, "%.0f %%", 100 * fabs(1 - ratio));
        return less ? "less" : "more";
    }
    snprintf(shown, size, "%.*f x", times < 9.95 && fabs(times - round(times)) >= 0.05 ? 1 : 0,
             times);
    return less ? "less" : "as much";
}

static void put_ratio(html *h, const ot_fact_card *c)
{
    char shown[32];
    const char *word = c->ratio > 0 ? ratio_words(c->ratio, shown, sizeof shown) : "";
    html_open_class(h, "div", c->ratio > 0 && !*word ? "ratio same" : "ratio");
    if (c->ratio <= 0) {
        put_figure(h, c, c->after);
    } else {
        html_value(h, c->ratio, shown);
        if (*word) html_leaf(h, "small", c->ratio < 1 ? "less" : "more", word);
    }
    html_close(h);
}

static void put_card(html *h, const ot_fact_card *c)
{
    html_open_class(h, "div", "card panel");
    html_attr(h, "data-card", c->id);
    html_leaf(h, "h3", NULL, c->title);
    put_ratio(h, c);
    if (c->before >= 0) {
        html_open_class(h, "div", "pair");
        put_value(h, "l1", "before", "v1", c, c->before);
        put_bars(h, c);
        put_value(h, "l2", "after", "v2", c, c->after);
        html_close(h);
    }
    html_open_class(h, "p", "note");
    if (c->bound >= 0) {
        html_open_class(h, "svg", "key");
        html_attr(h, "aria-hidden", "true");
        html_open_class(h, "path", "limit");
        html_attr(h, "d", "M7 0V14");
        html_close(h);
        html_close(h);
        html_text(h, "lower bound ");
        html_number(h, c->bound, c->unit);
        if (*c->note) html_text(h, " \xc2\xb7 ");
    }
    html_text(h, c->note);
    html_close(h);
    html_close(h);
}

void html_card_list(html *h, const ot_fact_card *cards, uint32_t n)
{
    html_open_class(h, "div", "cards");
    for (uint32_t k = 0; k < n; k++) put_card(h, &cards[k]);
    html_close(h);
}

void html_cards(html *h)
{
    const ot_facts *f = h->f;
    if (!f->n_cards) return;
    html_section(h, "cards", "What it brings", NULL);
    html_card_list(h, f->cards, f->n_cards);
    html_close(h);
}
