/* Axes, marks and legends of plots: see html_plot.h.
 *
 * Ticks of bytes stand at multiples of powers of two (so that labels are "2 MiB", not "2.1
 * MiB"), of everything else at 1, 2, 5 times powers of ten; a logarithmic axis thins them out to
 * what fits.
 */
#include "html_plot.h"

#include <math.h>

#define ROOM      0.06 /* of a linear axis' span, at both ends */
#define LOG_ROOM  1.25 /* factor at both ends of a logarithmic one */
#define LOG_SPAN  4.0  /* spans above are logarithmic when that is left open */
#define TICKS_MAX 9

axis axis_fit(double low, double high, bool logarithmic, const char *unit, double at_low,
              double at_high)
{
    axis a = {.unit = unit, .at_low = at_low, .at_high = at_high};
    a.logarithmic = low > 0 && (logarithmic || high / low > LOG_SPAN);
    if (a.logarithmic) {
        a.low = low / LOG_ROOM;
        a.high = high * LOG_ROOM;
        return a;
    }
    double span = high - low;
    if (!(span > 1e-9 * fabs(high))) span = high > 0 ? high * 0.2 : 1;
    a.low = low - ROOM * span;
    a.high = high + ROOM * span;
    if (a.low < 0 && low >= 0) a.low = 0;
    return a;
}

double axis_at(const axis *a, double v)
{
    double part = a->logarithmic ? log(v / a->low) / log(a->high / a->low)
                                 : (v - a->low) / (a->high - a->low);
    return a->at_low + part * (a->at_high - a->at_low);
}

bool axis_shows(const axis *a, double v)
{
    return isfinite(v) && v >= a->low * (1 - 1e-9) && v <= a->high * (1 + 1e-9);
}

/* ---- ticks ---- */

/* The next round number that is not below step. */
static double round_step(double step, const char *unit)
{
    static const double steps[] = {1, 2, 5};
    if (strcmp(unit, "bytes") == 0) return exp2(ceil(log2(step) - 1e-9));
    double base = pow(10, floor(log10(step) + 1e-9));
    for (size_t k = 0; k < 3; k++)
        if (steps[k] * base >= step * (1 - 1e-9)) return steps[k] * base;
    return 10 * base;
}

static uint32_t linear_ticks(const axis *a, double *ticks)
{
    double step = round_step((a->high - a->low) / 6, a->unit);
    uint32_t n = 0;
    for (double k = ceil(a->low / step); n < TICKS_MAX && k * step <= a->high; k++)
        ticks[n++] = k * step;
    return n;
}

/* Powers of ten (of bytes: of two), thinned out to at most seven; 1-2-5 when there are few. */
static uint32_t log_ticks(const axis *a, double *ticks)
{
    bool bytes = strcmp(a->unit, "bytes") == 0;
    double base = bytes ? 2 : 10;
    int low = (int)ceil(log(a->low) / log(base) - 1e-9),
        high = (int)floor(log(a->high) / log(base) + 1e-9);
    int every = (high - low) / 7 + 1;
    uint32_t n = 0;
    if (!bytes && high - low < 2) {
        static const double parts[] = {1, 2, 5};
        for (int p = low - 1; p <= high; p++)
            for (size_t k = 0; k < 3 && n < TICKS_MAX; k++) {
                double v = parts[k] * pow(10, p);
                if (axis_shows(a, v)) ticks[n++] = v;
            }
        return n;
    }
    for (int p = low; p <= high && n < TICKS_MAX; p += every) ticks[n++] = pow(base, p);
    return n;
}

static uint32_t ticks_of(const axis *a, double *ticks)
{
    return a->logarithmic ? log_ticks(a, ticks) : linear_ticks(a, ticks);
}

/* ---- frame ---- */

static void put_line(html *h, const char *cls, double x1, double y1, double x2, double y2)
{
    html_open_class(h, "path", cls);
    html_attrf(h, "d", "M%.1f %.1fL%.1f %.1f", x1, y1, x2, y2);
    html_close(h);
}

void plot_text(html *h, const char *cls, double x, double y, const char *text)
{
    html_open_class(h, "text", cls);
    html_attrf(h, "x", "%.1f", x);
    html_attrf(h, "y", "%.1f", y);
    html_text(h, text);
    html_close(h);
}

void plot_frame(html *h, const axis *x, const axis *y, const char *x_name, const char *y_name)
{
    double ticks[TICKS_MAX];
    char label[64];
    uint32_t n = ticks_of(x, ticks);
    for (uint32_t k = 0; k < n; k++) {
        double at = axis_at(x, ticks[k]);
        put_line(h, "grid", at, y->at_low, at, y->at_high);
        plot_text(h, "dim middle", at, y->at_low + 16,
                  html_format(ticks[k], x->unit, label, sizeof label));
    }
    n = ticks_of(y, ticks);
    for (uint32_t k = 0; k < n; k++) {
        double at = axis_at(y, ticks[k]);
        put_line(h, "grid", x->at_low, at, x->at_high, at);
        plot_text(h, "dim end", x->at_low - 7, at + 4,
                  html_format(ticks[k], y->unit, label, sizeof label));
    }
    html_open_class(h, "path", "frame");
    html_attrf(h, "d", "M%.1f %.1fV%.1fH%.1f", x->at_low, y->at_high, y->at_low, x->at_high);
    html_close(h);
    plot_text(h, "end strong", x->at_high, y->at_low + 36, x_name);
    plot_text(h, "strong", x->at_low - 60 > 0 ? x->at_low - 60 : 0, y->at_high - 10, y_name);
}

/* ---- marks ---- */

void plot_circle(html *h, const char *cls, double x, double y, double r)
{
    html_open_class(h, "circle", cls);
    html_attrf(h, "cx", "%.1f", x);
    html_attrf(h, "cy", "%.1f", y);
    html_attrf(h, "r", "%g", r);
}

void plot_diamond(html *h, const char *cls, double x, double y, double r)
{
    html_open_class(h, "path", cls);
    html_attrf(h, "d", "M%.1f %.1fl%g %gl%g %gl%g %gz", x, y - r, r, r, -r, r, -r, -r);
}

void plot_star(html *h, const char *cls, double x, double y, double r)
{
    html_open_class(h, "path", cls);
    char d[400];
    size_t used = 0;
    for (int k = 0; k < 10; k++) {
        double angle = acos(-1) * k / 5, radius = k % 2 ? r * 0.45 : r;
        int n = snprintf(d + used, sizeof d - used, "%c%.1f %.1f", k ? 'L' : 'M',
                         x + radius * sin(angle), y - radius * cos(angle));
        used += n > 0 ? (size_t)n : 0;
    }
    html_attrf(h, "d", "%sz", d);
}

void plot_legend_key(html *h)
{
    html_open(h, "li");
    html_open_class(h, "svg", "key");
    html_attr(h, "aria-hidden", "true");
}

void plot_legend_text(html *h, const char *text)
{
    html_close(h);
    html_text(h, text);
    html_close(h);
}
