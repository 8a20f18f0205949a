/* Where the program begins on Windows: arguments in UTF-8 with "/" between folders, streams that
 * pass bytes as they are, a console that shows UTF-8. */
#include "port.h"
#include "win_names.h"

#include <windows.h>
/* after windows.h */
#include <shellapi.h>

int main(void)
{
    int n = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &n);
    char **words = wide ? calloc((size_t)n + 1, sizeof *words) : NULL;
    for (int k = 0; words && k < n; k++)
        if (!(words[k] = ot_port_narrow(wide[k]))) return 4; /* out of memory */
    if (!words) return 4;
    for (int fd = 0; fd <= 2; fd++) (void)_setmode(fd, _O_BINARY);
    SetConsoleOutputCP(CP_UTF8);
    return ot_program_main(n, words); /* the process ends here: nothing is freed */
}
