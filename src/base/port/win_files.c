/* Files of POSIX on Windows: descriptors of the C library, opened by the system's own calls.
 *
 * Others may read, rename and delete what is open here, as they may elsewhere. A folder is opened
 * as a handle without rights to its contents; names below it go through its path. */
#include "port.h"
#include "win_names.h"

#include <stdarg.h>
#include <windows.h>

#define PIECE ((size_t)1 << 30) /* bytes of one call */

static HANDLE handle_of(int fd) { return (HANDLE)_get_osfhandle(fd); }

static DWORD creation(int flags)
{
    if (flags & O_CREAT) {
        if (flags & O_EXCL) return CREATE_NEW;
        return flags & O_TRUNC ? CREATE_ALWAYS : OPEN_ALWAYS;
    }
    return flags & O_TRUNC ? TRUNCATE_EXISTING : OPEN_EXISTING;
}

static DWORD rights(int flags)
{
    if (flags & (O_DIRECTORY | O_PATH)) return FILE_READ_ATTRIBUTES;
    int way = flags & (O_RDONLY | O_WRONLY | O_RDWR);
    return way == O_RDWR     ? GENERIC_READ | GENERIC_WRITE
           : way == O_WRONLY ? GENERIC_WRITE
                             : GENERIC_READ;
}

/* A handle that fits the flags; INVALID_HANDLE_VALUE with errno set. */
static HANDLE open_wide(const wchar_t *path, int flags)
{
    const DWORD all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    DWORD how = FILE_FLAG_BACKUP_SEMANTICS; /* folders, too */
    if (flags & O_NOFOLLOW) how |= FILE_FLAG_OPEN_REPARSE_POINT;
    HANDLE h = CreateFileW(path, rights(flags), all, NULL, creation(flags),
                           how | FILE_ATTRIBUTE_NORMAL, NULL);
    if (h == INVALID_HANDLE_VALUE) {
        (void)ot_port_failed();
        return h;
    }
    FILE_ATTRIBUTE_TAG_INFO told;
    if (GetFileType(h) != FILE_TYPE_DISK ||
        !GetFileInformationByHandleEx(h, FileAttributeTagInfo, &told, sizeof told))
        return h;
    int wrong = 0;
    if ((flags & O_NOFOLLOW) && (told.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT))
        wrong = ELOOP;
    else if ((flags & O_DIRECTORY) && !(told.FileAttributes & FILE_ATTRIBUTE_DIRECTORY))
        wrong = ENOTDIR;
    if (!wrong) return h;
    CloseHandle(h);
    errno = wrong;
    return INVALID_HANDLE_VALUE;
}

static int open_path(const wchar_t *path, int flags)
{
    HANDLE h = open_wide(path, flags);
    if (h == INVALID_HANDLE_VALUE) return -1;
    int fd = _open_osfhandle((intptr_t)h, (flags & O_APPEND) | O_BINARY | O_NOINHERIT);
    if (fd < 0) CloseHandle(h);
    return fd;
}

int ot_port_open(const char *path, int flags, ...)
{
    wchar_t *wide = ot_port_wide(strcmp(path, "/dev/null") == 0 ? "NUL" : path);
    if (!wide) return -1;
    int fd = open_path(wide, flags);
    free(wide);
    return fd;
}

int ot_port_openat(int folder, const char *name, int flags, ...)
{
    wchar_t *at = ot_port_path_of(handle_of(folder)), *wide = at ? ot_port_wide(name) : NULL;
    int fd = -1;
    /* a "\" would leave the folder, a ":" name a stream of a file or a drive */
    if (wide && (wcschr(wide, L'\\') || wcschr(wide, L':') || wcschr(wide, L'/')))
        errno = ENOENT;
    else if (wide) {
        size_t n = wcslen(at), more = wcslen(wide);
        wchar_t *path = malloc((n + more + 2) * sizeof *path);
        if (path) {
            memcpy(path, at, n * sizeof *path);
            path[n] = L'\\';
            memcpy(path + n + 1, wide, (more + 1) * sizeof *path);
            fd = open_path(path, flags);
        }
        free(path);
    }
    free(wide);
    free(at);
    return fd;
}

/* Of 100 ns since 1601. */
static struct timespec time_of(FILETIME t)
{
    const uint64_t to_1970 = UINT64_C(116444736000000000);
    uint64_t n = (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
    n = n > to_1970 ? n - to_1970 : 0;
    return (struct timespec){.tv_sec = (time_t)(n / 10000000),
                             .tv_nsec = (long)(n % 10000000) * 100};
}

static int stat_handle(HANDLE h, struct ot_port_stat *st)
{
    BY_HANDLE_FILE_INFORMATION told;
    *st = (struct ot_port_stat){0};
    DWORD kind = GetFileType(h);
    if (kind == FILE_TYPE_CHAR || kind == FILE_TYPE_PIPE) {
        st->st_mode = (kind == FILE_TYPE_PIPE ? S_IFIFO : S_IFCHR) | 0666;
        return 0;
    }
    if (!GetFileInformationByHandle(h, &told)) return ot_port_failed();
    const bool link = (told.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0,
               folder = (told.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    st->st_mode = (uint32_t)(link     ? S_IFLNK
                             : folder ? S_IFDIR
                                      : S_IFREG) |
                  (told.dwFileAttributes & FILE_ATTRIBUTE_READONLY ? 0444 : 0666);
    st->st_nlink = told.nNumberOfLinks;
    st->st_dev = told.dwVolumeSerialNumber;
    st->st_ino = (uint64_t)told.nFileIndexHigh << 32 | told.nFileIndexLow;
    st->st_size = (int64_t)((uint64_t)told.nFileSizeHigh << 32 | told.nFileSizeLow);
    st->st_mtim = time_of(told.ftLastWriteTime);
    st->st_ctim = time_of(told.ftCreationTime);
    return 0;
}

static int stat_path(const char *path, bool follow, struct ot_port_stat *st)
{
    wchar_t *wide = ot_port_wide(strcmp(path, "/dev/null") == 0 ? "NUL" : path);
    if (!wide) return -1;
    HANDLE h = CreateFileW(
        wide, FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
        OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT),
        NULL);
    free(wide);
    if (h == INVALID_HANDLE_VALUE) return ot_port_failed();
    int r = stat_handle(h, st);
    CloseHandle(h);
    return r;
}

int ot_port_stat_of(const char *path, struct ot_port_stat *st) { return stat_path(path, true, st); }
int ot_port_lstat(const char *path, struct ot_port_stat *st) { return stat_path(path, false, st); }
int ot_port_fstat(int fd, struct ot_port_stat *st) { return stat_handle(handle_of(fd), st); }

int ot_port_access(const char *path, int mode)
{
    wchar_t *wide = ot_port_wide(path);
    int r = wide ? _waccess(wide, mode & (R_OK | W_OK)) : -1;
    free(wide);
    return r;
}

int ot_port_rename(const char *from, const char *to)
{
    wchar_t *a = ot_port_wide(from), *b = a ? ot_port_wide(to) : NULL;
    int r = -1;
    if (b)
        r = MoveFileExW(a, b, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)
                ? 0
                : ot_port_failed();
    free(a);
    free(b);
    return r;
}

int ot_port_unlink(const char *path)
{
    wchar_t *wide = ot_port_wide(path);
    int r = wide ? DeleteFileW(wide) ? 0 : ot_port_failed() : -1;
    free(wide);
    return r;
}

int ot_port_mkdir(const char *path, int mode)
{
    (void)mode; /* folders have what their parent has */
    wchar_t *wide = ot_port_wide(path);
    int r = wide ? _wmkdir(wide) : -1;
    free(wide);
    return r;
}

char *ot_port_realpath(const char *path, char *room)
{
    (void)room; /* always NULL here */
    int fd = ot_port_open(path, O_PATH);
    if (fd < 0) return NULL;
    wchar_t *wide = ot_port_path_of(handle_of(fd));
    _close(fd);
    char *real = wide ? ot_port_narrow(wide) : NULL;
    free(wide);
    return real;
}

/* Folders have nothing to be saved that a rename has not. */
int ot_port_fsync(int fd)
{
    struct ot_port_stat st;
    if (ot_port_fstat(fd, &st) != 0) return -1;
    if (S_ISDIR(st.st_mode)) return 0;
    return FlushFileBuffers(handle_of(fd)) ? 0 : ot_port_failed();
}

int ot_port_fchmod(int fd, unsigned mode)
{
    (void)fd;
    (void)mode; /* who may read is the folder's business */
    return 0;
}

/* F_GETFD alone: whether a descriptor is open. */
int ot_port_fcntl(int fd, int what)
{
    (void)what;
    if (handle_of(fd) != INVALID_HANDLE_VALUE) return 0;
    errno = EBADF;
    return -1;
}

ssize_t ot_port_pread(int fd, void *bytes, size_t n, int64_t at)
{
    OVERLAPPED where = {.Offset = (DWORD)(uint64_t)at, .OffsetHigh = (DWORD)((uint64_t)at >> 32)};
    DWORD got = 0;
    if (!ReadFile(handle_of(fd), bytes, (DWORD)(n < PIECE ? n : PIECE), &got, &where))
        return GetLastError() == ERROR_HANDLE_EOF ? 0 : ot_port_failed();
    return (ssize_t)got;
}
