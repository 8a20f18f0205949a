/* Axes of the page's plots: where a value lies, and its frame with ticks.
 *
 *    at_high +-----------------+
 *            |      . value    |   linear, or logarithmic when the values span much
 *     at_low +-----------------+
 *            low             high
 */
#ifndef OT_REPORT_HTML_HTML_PLOT_H
#define OT_REPORT_HTML_HTML_PLOT_H

#include "html.h"

typedef struct axis {
    double low, high;       /* values at its ends; logarithmic: both above 0 */
    double at_low, at_high; /* places in the drawing */
    bool logarithmic;
    const char *unit;
} axis;

/* An axis that shows low to high with a little room at both ends. May low > 0 and the span ask
 * for it, it is logarithmic. */
axis axis_fit(double low, double high, bool logarithmic, const char *unit, double at_low,
              double at_high);
double axis_at(const axis *a, double value);
bool axis_shows(const axis *a, double value);
/* Grid lines with their labels, the frame, the names of the axes. The drawing's left and lower
 * margins hold the labels. */
void plot_frame(html *h, const axis *x, const axis *y, const char *x_name, const char *y_name);
/* Shapes around a centre; the shape is left open for its tooltip: html_close. */
void plot_circle(html *h, const char *cls, double x, double y, double r);
void plot_diamond(html *h, const char *cls, double x, double y, double r);
void plot_star(html *h, const char *cls, double x, double y, double r);
void plot_text(html *h, const char *cls, double x, double y, const char *text);
/* Opens a line of a legend: <li> with an empty svg.key of 14 x 14, left open for its shape. */
void plot_legend_key(html *h);
/* Closes the svg and the line, with its text. */
void plot_legend_text(html *h, const char *text);

#endif
