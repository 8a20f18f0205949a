/* How many random cases of one kind a test takes. Under a sanitizer each takes several times as
 * long, and shows faults of memory, not of numbers: a third of them. */
#ifndef TEST_CASES_H
#define TEST_CASES_H

#ifdef OT_SANITIZED
#define CASES(n) (((n) + 2) / 3)
#else
#define CASES(n) (n)
#endif

#endif
