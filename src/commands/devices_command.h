/* devices: what there is to run models and kernels on, and why an API has nothing. */
#ifndef OT_COMMANDS_DEVICES_COMMAND_H
#define OT_COMMANDS_DEVICES_COMMAND_H

#include "base/base.h"

/* A table, or with json one object, on stdout; quiet: nothing. Fails with OT_E_NOMEM; no device
 * at all is no failure. */
ot_status ot_devices_command(bool json, bool quiet, ot_diag *d) OT_MUST_USE;

#endif
