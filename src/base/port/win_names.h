/* For the port alone: names as Windows has them, and errors as errno has them. */
#ifndef OT_BASE_PORT_WIN_NAMES_H
#define OT_BASE_PORT_WIN_NAMES_H

#include <stddef.h>
#include <wchar.h>

/* UTF-8 as UTF-16, from malloc; NULL with errno set: it is no UTF-8, or memory ran out. */
wchar_t *ot_port_wide(const char *text);
/* UTF-16 as UTF-8, from malloc, with "/" in place of "\"; NULL with errno set. */
char *ot_port_narrow(const wchar_t *text);
/* errno of GetLastError(); -1. */
int ot_port_failed(void);
/* Path of an open file or folder, from malloc, without the mark of long paths; NULL with errno. */
wchar_t *ot_port_path_of(void *handle);

#endif
