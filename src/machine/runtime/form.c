/* Names of forms. */
#include "form.h"

const char *ot_form_name(ot_form f)
{
    static const char *names[] = {"none", "scan",    "unrolled", "loop-peeled",
                                  "loop", "prescan", "stream",   "while"};
    return (unsigned)f < sizeof names / sizeof *names ? names[f] : "none";
}
