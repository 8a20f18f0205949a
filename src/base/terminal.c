/* What may be drawn on a stream: https://no-color.org, and TERM=dumb for terminals that only print.
 */
#include "base.h"

#include <unistd.h>

bool ot_terminal_draws(FILE *f)
{
    const char *term = getenv("TERM");
    return isatty(fileno(f)) && !(term && strcmp(term, "dumb") == 0);
}

bool ot_terminal_colours(FILE *f)
{
    const char *none = getenv("NO_COLOR");
    return !(none && *none) && ot_terminal_draws(f);
}
