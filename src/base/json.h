/* Values of JSON for the writers of results (private to the program). */
#ifndef OT_REPORT_JSON_H
#define OT_REPORT_JSON_H

#include "base.h"

/* With its quotes; escaped, so that any bytes give valid JSON. */
void ot_json_string(const char *text, FILE *f);
/* Up to 12 digits; 0 for what is not finite. */
void ot_json_number(double v, FILE *f);

#endif
