/* The place in a text that an error speaks of.
 *
 *   onnx-tile: error: k.tk:6:14: 'b' was freed in line 5 [freed]
 *       6 |   store y <- b
 *         |              ^
 *   note: line 5
 *       5 |   free b
 */
#include "error_place.h"

#include <sys/stat.h>

#include "kernel_file.h"

#define SHOWN 160 /* columns of a line */

typedef struct place {
    unsigned line, col;
    const char *rest; /* of the message */
} place;

/* "path:6:14: rest", `loc("path":6:14): rest` */
static bool find_place(const char *path, const char *message, place *p)
{
    const size_t n = strlen(path);
    const bool loc = strncmp(message, "loc(\"", 5) == 0;
    const char *at = message + (loc ? 5 : 0);
    int used = 0;
    if (strncmp(at, path, n) != 0) return false;
    at += n;
    if (loc && *at++ != '"') return false;
    if (sscanf(at, ":%u:%u%n", &p->line, &p->col, &used) != 2 || used == 0) return false;
    p->rest = at + used;
    return p->line > 0 && p->col > 0;
}

/* The other line that the message names; 0: none. */
static unsigned other_line(const place *p)
{
    unsigned line;
    for (const char *at = p->rest; (at = strstr(at, "line ")); at++)
        if (sscanf(at, "line %u", &line) == 1 && line > 0 && line != p->line) return line;
    return 0;
}

/* Line `number` of the text without its end; NULL: there is none. */
static const char *find_line(const char *text, size_t n, unsigned number, size_t *length)
{
    const char *end = text + n, *at = text;
    for (unsigned k = 1; at && at < end; k++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        *length = (size_t)((next ? next : end) - at);
        if (k == number) return at;
        at = next ? next + 1 : NULL;
    }
    return NULL;
}

/* col 0: no caret. A long line is shown around it. */
static void print_line(FILE *f, const char *text, size_t n, unsigned number, unsigned col)
{
    size_t length;
    const char *line = find_line(text, n, number, &length);
    if (!line) return;
    const size_t from = col > SHOWN / 2 && length > SHOWN ? col - SHOWN / 2 : 0;
    fprintf(f, "%6u | ", number);
    for (size_t k = from; k < length && k < from + SHOWN; k++) {
        const unsigned char c = (unsigned char)line[k];
        fputc(c == '\t' || c == '\r' ? ' ' : c >= 0x20 && c < 0x7f ? c : '?', f);
    }
    fputc('\n', f);
    if (col > 0 && col <= length + 1) fprintf(f, "%6s | %*s^\n", "", (int)(col - 1 - from), "");
}

void ot_print_error_place(FILE *f, const char *path, const char *message)
{
    place p;
    struct stat st;
    if (!path || !find_place(path, message, &p)) return;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return;
    ot_arena *a = ot_arena_new();
    ot_diag d = {0};
    char *text;
    size_t n;
    if (a && ot_read_text(path, a, &d, &text, &n) == OT_OK) {
        print_line(f, text, n, p.line, p.col);
        const unsigned other = other_line(&p);
        size_t length;
        if (other > 0 && find_line(text, n, other, &length)) {
            fprintf(f, "note: line %u\n", other);
            print_line(f, text, n, other, 0);
        }
    }
    ot_arena_free(a);
}
