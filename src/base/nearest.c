/* The name that a mistyped word was to be: fewest edits, at most two. */
#include "base.h"

enum { LONGEST = 32, NEAR_EDITS = 2, SHORT_WORD = 3 };

/* Insertions, deletions and changes that turn a[n] into b[m]; LONGEST: one of them is too long
 * to tell. */
static size_t edits_between(const char *a, size_t n, const char *b, size_t m)
{
    size_t row[LONGEST];
    if (n >= LONGEST || m >= LONGEST) return LONGEST;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shift ? change : shift;
        }
    }
    return row[m];
}

ot_nearest ot_nearest_to(const char *word, size_t n)
{
    return (ot_nearest){.word = word, .length = n, .edits = (n <= SHORT_WORD ? 1 : NEAR_EDITS) + 1};
}

void ot_nearest_try(ot_nearest *near, const char *name, size_t n)
{
    if (near->length < 2) return;
    bool begins = n > near->length && strncmp(near->word, name, near->length) == 0;
    size_t edits = begins ? 1 : edits_between(near->word, near->length, name, n);
    if (edits >= near->edits) return;
    near->best = name;
    near->best_length = n;
    near->edits = edits;
}

void ot_nearest_try_list(ot_nearest *near, const char *list, const char *separators)
{
    while (*list) {
        size_t n = strcspn(list, separators);
        ot_nearest_try(near, list, n);
        list += n + strspn(list + n, separators);
    }
}

const char *ot_nearest_hint(const ot_nearest *near, const char *before, char *buf, size_t size)
{
    *buf = '\0';
    if (near->best)
        snprintf(buf, size, "%sdid you mean '%.*s'?", before, (int)near->best_length, near->best);
    return buf;
}
