/* Streams: names in UTF-8, bytes as they are, and text in memory.
 *
 *   open_memstream  a file of the system's temporary folder, kept in memory while there is room
 *   fclose          of one of these: its bytes are read into *text, a 0 behind them */
#include "port.h"
#include "win_names.h"

#include <windows.h>

/* Streams into memory that are open. */
typedef struct memory_stream {
    FILE *f;
    char **text;
    size_t *n;
    struct memory_stream *next;
} memory_stream;

static memory_stream *open_streams;
static SRWLOCK lock = SRWLOCK_INIT;

/* "rb" of "re": nothing of these modes is text. */
FILE *ot_port_fopen(const char *path, const char *mode)
{
    wchar_t *wide = ot_port_wide(strcmp(path, "/dev/null") == 0 ? "NUL" : path), how[8];
    size_t n = 0;
    if (!wide) return NULL;
    for (; *mode && n < 4; mode++)
        if (*mode != 'e' && *mode != 'b') how[n++] = (wchar_t)*mode;
    how[n++] = L'b';
    how[n] = 0;
    FILE *f = _wfopen(wide, how);
    free(wide);
    return f;
}

static FILE *temporary(void)
{
    wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 1];
    if (!GetTempPathW(MAX_PATH, folder) || !GetTempFileNameW(folder, L"ot", 0, path)) {
        (void)ot_port_failed();
        return NULL;
    }
    return _wfopen(path, L"w+bTD"); /* gone when it is closed */
}

FILE *ot_port_memstream(char **text, size_t *n)
{
    memory_stream *m = calloc(1, sizeof *m);
    FILE *f = m ? temporary() : NULL;
    if (!f) {
        free(m);
        return NULL;
    }
    *text = NULL;
    *n = 0;
    *m = (memory_stream){.f = f, .text = text, .n = n};
    AcquireSRWLockExclusive(&lock);
    m->next = open_streams;
    open_streams = m;
    ReleaseSRWLockExclusive(&lock);
    return f;
}

/* The stream's entry, no longer in the list; NULL: it is an ordinary one. */
static memory_stream *take(FILE *f)
{
    memory_stream *found = NULL;
    AcquireSRWLockExclusive(&lock);
    for (memory_stream **m = &open_streams; *m; m = &(*m)->next)
        if ((*m)->f == f) {
            found = *m;
            *m = found->next;
            break;
        }
    ReleaseSRWLockExclusive(&lock);
    return found;
}

/* All bytes of the stream. */
static bool keep(memory_stream *m)
{
    if (ferror(m->f) || fflush(m->f) != 0 || _fseeki64(m->f, 0, SEEK_END) != 0) return false;
    int64_t end = _ftelli64(m->f);
    char *text = end >= 0 ? malloc((size_t)end + 1) : NULL;
    if (!text) return false;
    rewind(m->f);
    if (fread(text, 1, (size_t)end, m->f) != (size_t)end) {
        free(text);
        return false;
    }
    text[end] = '\0';
    *m->text = text;
    *m->n = (size_t)end;
    return true;
}

int ot_port_fclose(FILE *f)
{
    memory_stream *m = take(f);
    bool ok = !m || keep(m);
    free(m);
    int closed = fclose(f);
    if (!ok) errno = ENOMEM;
    return ok ? closed : EOF;
}
