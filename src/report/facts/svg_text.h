/* Numbers, attributes and names as text of an SVG document. */
#ifndef OT_REPORT_SVG_TEXT_H
#define OT_REPORT_SVG_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* At most two digits behind the point, none that are zero. */
void ot_svg_put_number(double v, FILE *f);
/* ` name="v"` */
void ot_svg_put_attribute(const char *name, double v, FILE *f);
/* Escaped, at most max bytes; an ellipsis when something is left out. */
void ot_svg_put_text(const char *s, size_t max, FILE *f);
/* Width of a name in characters; those of East Asia and pictures are wide. */
size_t ot_svg_columns(const char *s);

#endif
