/* The debug mask, the only global state of the program.
 *
 * `-d RD` sets ot_dbg['R'] and ot_dbg['D'] before the first pass runs; passes only read it.
 */
#include "base.h"

bool ot_dbg[128];
