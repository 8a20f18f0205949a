#include "base.h"

#include <stdlib.h>

const char *ot_temp_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}
