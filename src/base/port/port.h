/* POSIX as far as this program uses it, on Windows: `PLATFORM=windows` puts this header before
 * every file (-include), and src/base/port/include/ has headers that Windows lacks.
 *
 *   names     UTF-8, "/" between folders; "\" is taken from the command line, too
 *   files     bytes as they are (no "\r\n"); a rename replaces; folders can be opened as such
 *   streams   open_memstream by a file of the system's that vanishes when it is closed
 *   signals   Ctrl-C waits while a file is half written (win_signals.c)
 *   libraries dlopen finds none under the names of Linux: there are no devices
 *
 * Other sources know nothing of it. */
#ifndef OT_BASE_PORT_PORT_H
#define OT_BASE_PORT_PORT_H

/* names of ours, too; include/unistd.h has the last three for who asks for them */
#define tell   ot_port_unused_tell
#define access ot_port_unused_access
#define read   ot_port_unused_read
#define write  ot_port_unused_write
#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#undef tell
#undef access
#undef read
#undef write
#include <limits.h>
#include <process.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

/* ---- files: win_files.c ---- */

#define O_CLOEXEC   _O_NOINHERIT
#define O_NOCTTY    0
#define O_NONBLOCK  0
#define O_NOFOLLOW  0x01000000
#define O_DIRECTORY 0x02000000
#define O_PATH      0x04000000
#define S_IFLNK     0120000
#define S_ISLNK(m)  (((m)&0170000) == S_IFLNK)
#define S_ISSOCK(m) 0
#define F_GETFD     1

struct ot_port_stat {
    dev_t st_dev;
    uint64_t st_ino;
    uint32_t st_mode, st_nlink;
    int64_t st_size;
    struct timespec st_mtim, st_ctim;
};

int ot_port_open(const char *path, int flags, ...);
int ot_port_openat(int folder, const char *name, int flags, ...);
int ot_port_stat_of(const char *path, struct ot_port_stat *st);
int ot_port_lstat(const char *path, struct ot_port_stat *st);
int ot_port_fstat(int fd, struct ot_port_stat *st);
int ot_port_access(const char *path, int mode);
int ot_port_rename(const char *from, const char *to);
int ot_port_unlink(const char *path);
int ot_port_mkdir(const char *path, int mode);
char *ot_port_realpath(const char *path, char *room);
int ot_port_fsync(int fd);
int ot_port_fchmod(int fd, unsigned mode);
int ot_port_fcntl(int fd, int what);
ssize_t ot_port_pread(int fd, void *bytes, size_t n, int64_t at);

/* ---- memory ---- */

/* What is aligned elsewhere is memory that devices pin: there are none, and free() takes it. */
#define aligned_alloc(alignment, n) malloc(n)

/* ---- streams: win_streams.c ---- */

FILE *ot_port_fopen(const char *path, const char *mode);
FILE *ot_port_memstream(char **text, size_t *n);
int ot_port_fclose(FILE *f);

/* ---- the system: win_system.c ---- */

enum {
    _SC_PAGESIZE = 1,
    _SC_PHYS_PAGES,
    _SC_NPROCESSORS_ONLN,
    _SC_LEVEL2_CACHE_SIZE,
    _SC_LEVEL3_CACHE_SIZE
};
#define GRND_NONBLOCK 0
#define MADV_DONTNEED 0
#define RTLD_NOW      0
#define RTLD_LOCAL    0
#define SIGPIPE       13
#define SIGXFSZ       25
#define POLLERR       1

typedef uint32_t sigset_t; /* unused: win_signals.c stands for base/signals.c */

typedef struct ot_port_cpus {
    uint64_t bits;
} ot_port_cpus;

struct pollfd {
    int fd;
    short events, revents;
};

/* The window of a console: ioctl of nothing else. */
struct winsize {
    unsigned short ws_row, ws_col;
};
#define TIOCGWINSZ 0

long ot_port_sysconf(int what);
int ot_port_window(int fd, struct winsize *w);
ssize_t ot_port_random(void *bytes, size_t n, unsigned flags);
void *ot_port_dlopen(const char *name, int flags);
void *ot_port_dlsym(void *library, const char *name);
int ot_port_dlclose(void *library);
const char *ot_port_dlerror(void);
int ot_port_affinity(ot_port_cpus *set);
/* Whether one that reads has left is told by writing alone. */
static inline int ot_port_poll(const struct pollfd *p, int n, int wait)
{
    (void)p;
    (void)n;
    (void)wait;
    return 0;
}
/* Pages of a file go by themselves. */
static inline int ot_port_madvise(const void *p)
{
    (void)p;
    return 0;
}

/* The program: the main of win_main.c calls it with arguments in UTF-8. */
int ot_program_main(int argc, char **argv);

#ifndef OT_PORT_ITSELF /* files of the port see what the system has */
#undef stat
#undef fstat
#undef lstat
#define stat                         ot_port_stat
#define ot_port_stat(path, st)       ot_port_stat_of(path, st)
#define fstat                        ot_port_fstat
#define lstat                        ot_port_lstat
#define open                         ot_port_open
#define openat                       ot_port_openat
#define rename                       ot_port_rename
#define unlink                       ot_port_unlink
#define mkdir                        ot_port_mkdir
#define realpath                     ot_port_realpath
#define fsync                        ot_port_fsync
#define fchmod                       ot_port_fchmod
#define fcntl                        ot_port_fcntl
#define pread                        ot_port_pread
#define fopen                        ot_port_fopen
#define fclose                       ot_port_fclose
#define open_memstream               ot_port_memstream
#define sysconf                      ot_port_sysconf
#define getrandom                    ot_port_random
#define ioctl(fd, what, w)           ot_port_window(fd, w)
#define ino_t                        uint64_t
#define dlopen                       ot_port_dlopen
#define dlsym                        ot_port_dlsym
#define dlclose                      ot_port_dlclose
#define dlerror                      ot_port_dlerror
#define cpu_set_t                    ot_port_cpus
#define sched_getaffinity(p, n, set) ot_port_affinity(set)
#define CPU_COUNT(set)               __builtin_popcountll((set)->bits)
#define poll                         ot_port_poll
#define madvise(p, n, what)          ot_port_madvise(p)
#define main                         ot_program_main
#endif
#endif
