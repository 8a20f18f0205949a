/* Text for a person in the columns of a terminal. */
#include "wrap.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define DEEPER  4
#define COMMAND "onnx-tile "

size_t ot_terminal_columns(FILE *f)
{
    struct winsize w;
    return ot_terminal_draws(f) && ioctl(fileno(f), TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

FILE *ot_wrap_open(ot_wrap *x, FILE *out)
{
    *x = (ot_wrap){.out = out, .columns = ot_terminal_columns(out)};
    if (x->columns > 0) x->kept = open_memstream(&x->text, &x->n);
    return x->kept ? x->kept : out;
}

ot_status ot_wrap_close(ot_wrap *x)
{
    bool written = true;
    if (x->kept) {
        written = !ferror(x->kept);
        if (fclose(x->kept) != 0 || !x->text) written = false;
        if (written) ot_wrap_text(x->text, x->columns, x->out);
        free(x->text);
        *x = (ot_wrap){.out = x->out};
    }
    return !written ? OT_E_NOMEM : ferror(x->out) ? OT_E_SYSTEM : OT_OK;
}

static bool begins_character(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

/* Bytes of a line of n that fit: up to its last space within the columns, past its first word. */
static size_t fits(const char *line, size_t n, size_t columns)
{
    size_t used = 0, end = 0, k = 0;
    bool word = false;
    for (; k < n && used <= columns; k++) {
        if (line[k] == ' ' && word) end = k;
        word |= line[k] != ' ';
        used += begins_character(line[k]);
    }
    if (used <= columns) return n;
    if (end > 0) {
        while (line[end - 1] == ' ') end--;
        return end;
    }
    while (k < n && line[k] != ' ') k++;
    return k;
}

static void wrap_line(const char *line, size_t n, size_t columns, FILE *out)
{
    const size_t margin = strspn(line, " "), deeper = margin + DEEPER,
                 indent = deeper < columns / 2 ? deeper : 0;
    const bool whole = strncmp(line + margin, COMMAND, strlen(COMMAND)) == 0;
    size_t at = 0;
    do {
        const size_t left = at > 0 ? indent : 0,
                     take = whole ? n : fits(line + at, n - at, columns - left);
        fprintf(out, "%*s%.*s\n", (int)left, "", (int)take, line + at);
        at += take;
        while (at < n && line[at] == ' ') at++;
    } while (at < n);
}

void ot_wrap_text(const char *text, size_t columns, FILE *out)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        wrap_line(text, n, columns, out);
    }
}
