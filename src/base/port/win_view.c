/* Of base/file_view.h on Windows: a file that is mapped cannot be shortened there, so a view is
 * never damaged. What cannot be read any more (a share that is gone) ends the program. */
#include "port.h"
#include "win_names.h"

#include "base/file_view.h"

#include <windows.h>

struct ot_file_view {
    void *data;
    bool written; /* into the file */
};

static ot_status map(int fd, size_t size, bool written, ot_file_view **out)
{
    ot_file_view *v = calloc(1, sizeof *v);
    if (!v) return OT_E_NOMEM;
    HANDLE m = CreateFileMappingW((HANDLE)_get_osfhandle(fd), NULL,
                                  written ? PAGE_READWRITE : PAGE_READONLY,
                                  (DWORD)((uint64_t)size >> 32), (DWORD)size, NULL);
    v->data = m ? MapViewOfFile(m, written ? FILE_MAP_WRITE : FILE_MAP_READ, 0, 0, size) : NULL;
    v->written = written;
    if (!v->data) (void)ot_port_failed();
    if (m) CloseHandle(m); /* the view keeps it */
    if (!v->data) {
        free(v);
        return errno == ENOMEM ? OT_E_NOMEM : OT_E_SYSTEM;
    }
    *out = v;
    return OT_OK;
}

ot_status ot_file_view_new(int fd, size_t size, ot_file_view **out)
{
    return map(fd, size, false, out);
}

ot_status ot_file_view_write(int fd, size_t size, ot_file_view **out)
{
    return map(fd, size, true, out);
}

const void *ot_file_view_data(const ot_file_view *v) { return v->data; }
void *ot_file_view_place(ot_file_view *v) { return v->written ? v->data : NULL; }

bool ot_file_view_damaged(const ot_file_view *v)
{
    (void)v;
    return false;
}

void ot_file_view_free(ot_file_view *v)
{
    if (!v) return;
    UnmapViewOfFile(v->data);
    free(v);
}
