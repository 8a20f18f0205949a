/* Maps of memory as SVG: time to the right, offsets upwards. */
#ifndef OT_REPORT_FACTS_MAP_SVG_H
#define OT_REPORT_FACTS_MAP_SVG_H

#include "tk/language/kernel.h"

typedef struct ot_map_box {
    const char *name;
    int64_t lower, upper, offset, size;
    uint32_t kind; /* colour and pattern: 0 none, 1 + ot_pipe */
} ot_map_box;

typedef struct ot_map_plot {
    const char *title;
    const char *time;        /* label of the time axis */
    int64_t from, to;        /* times that it shows at least; equal: those of the boxes */
    const ot_map_box *boxes; /* [n] */
    uint32_t n;
    int64_t height, lower_bound;
    int64_t capacity; /* 0: no line for it */
} ot_map_plot;

/* A self-contained SVG document, one map below the other. Names are escaped; deterministic;
 * below 5 MB whatever n is (the smallest boxes lose their tooltips, then go). */
ot_status ot_maps_svg(const ot_map_plot *plots, uint32_t n, const char *title, FILE *f) OT_MUST_USE;

#endif
