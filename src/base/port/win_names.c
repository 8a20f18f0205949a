/* Names and errors of Windows. */
#include "port.h"
#include "win_names.h"

#include <windows.h>

wchar_t *ot_port_wide(const char *text)
{
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *w = n > 0 ? malloc((size_t)n * sizeof *w) : NULL;
    if (!w || MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, w, n) != n) {
        errno = n > 0 && !w ? ENOMEM : ENOENT;
        free(w);
        return NULL;
    }
    return w;
}

char *ot_port_narrow(const wchar_t *text)
{
    int n = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *s = n > 0 ? malloc((size_t)n) : NULL;
    if (!s || WideCharToMultiByte(CP_UTF8, 0, text, -1, s, n, NULL, NULL) != n) {
        errno = n > 0 && !s ? ENOMEM : EINVAL;
        free(s);
        return NULL;
    }
    for (char *c = s; *c; c++)
        if (*c == '\\') *c = '/';
    return s;
}

int ot_port_failed(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME: errno = ENOENT; break;
    case ERROR_DIRECTORY: errno = ENOTDIR; break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: errno = EEXIST; break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_WRITE_PROTECT: errno = EACCES; break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY: errno = ENOMEM; break;
    case ERROR_DISK_FULL: errno = ENOSPC; break;
    case ERROR_INVALID_HANDLE: errno = EBADF; break;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA: errno = EPIPE; break;
    case ERROR_FILENAME_EXCED_RANGE: errno = ENAMETOOLONG; break;
    default: errno = EIO;
    }
    return -1;
}

wchar_t *ot_port_path_of(void *handle)
{
    static const wchar_t LONG_PATH[] = L"\\\\?\\", SHARE[] = L"\\\\?\\UNC\\";
    const size_t mark = sizeof LONG_PATH / sizeof *LONG_PATH - 1,
                 share = sizeof SHARE / sizeof *SHARE - 1;
    DWORD n = GetFinalPathNameByHandleW(handle, NULL, 0, FILE_NAME_NORMALIZED);
    wchar_t *path = n ? malloc(((size_t)n + 1) * sizeof *path) : NULL;
    if (!path) {
        if (!n) (void)ot_port_failed();
        return NULL;
    }
    DWORD got = GetFinalPathNameByHandleW(handle, path, n + 1, FILE_NAME_NORMALIZED);
    if (got == 0 || got > n) {
        (void)ot_port_failed();
        free(path);
        return NULL;
    }
    if (wcsncmp(path, SHARE, share) == 0) { /* \\?\UNC\server\x is \\server\x */
        memmove(path + 1, path + share - 1, (wcslen(path) - share + 2) * sizeof *path);
        path[0] = L'\\';
    } else if (wcsncmp(path, LONG_PATH, mark) == 0) {
        memmove(path, path + mark, (wcslen(path) - mark + 1) * sizeof *path);
    }
    return path;
}
