/* How every writer of a report prints numbers and names. */
#ifndef OT_REPORT_FACTS_FACTS_NUMBER_H
#define OT_REPORT_FACTS_FACTS_NUMBER_H

#include "facts.h"

/* Whole numbers below 2^53 to the last digit, others as "%.9g"; "." whatever the locale. Returns
 * buffer. */
#define FACT_NUMBER_SIZE 32
const char *ot_fact_number(double x, char buffer[FACT_NUMBER_SIZE]);
/* The same with so many digits that count, 17 at most. */
const char *ot_fact_digits(double x, int digits, char buffer[FACT_NUMBER_SIZE]);
/* UTF-8 as XML 1.0 can hold it: other bytes and characters become U+FFFD. In arena a; NULL when
 * memory ran out. */
char *ot_fact_clean(ot_arena *a, const char *text);
/* Printable ASCII of text for a terminal, at most `width` (6 or more) characters: a longer one
 * loses its middle to "..", since the end of a name tells more. out holds width + 1. Returns
 * out. */
const char *ot_fact_short(const char *text, size_t width, char *out);
/* text with its first letter as a capital, in arena a; NULL when memory ran out. */
const char *ot_fact_capital(ot_arena *a, const char *text);

#endif
