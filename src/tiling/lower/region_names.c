/* Names of a model as names of a kernel.
 *
 * A model may call a value anything; a kernel knows letters, digits and a few marks, keeps its
 * words to itself and wants every name once:
 *
 *   /layer.0/conv:0        layer.0/conv_0
 *   /layer.0/conv_0        layer.0/conv_0_2       taken: the next number
 *   42                     v42
 *   for.x                  _for.x
 *
 * Long names keep their end, which tells more than the beginning.
 */
#include "region_names.h"

#define NAME_LEN_MAX 56 /* bytes of a model's name that are kept */

/* Words that the text of a kernel uses, also in front of a dot; a name like that gets an
 * underscore. */
static const char *const RESERVED[] = {
    "kernel",  "target", "param", "alloc",  "workspace", "load",  "store",  "copy",   "for",
    "in",      "step",   "while", "if",     "else",      "yield", "carry",  "free",   "alias",
    "subview", "multi",  "align", "offset", "vector",    "cube",  "scalar", "dma_in", "dma_out",
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_mark(char c) { return c == '.' || c == '$' || c == '/'; }

/* Legal characters of name's end, runs of others as one underscore; never empty. out:
 * NAME_LEN_MAX + 4 bytes. */
static void clean(const char *name, char *out)
{
    size_t n = strlen(name), k = n > NAME_LEN_MAX ? n - NAME_LEN_MAX : 0, used = 1;
    out[0] = '_'; /* dropped again when it is not needed */
    while (k < n && !is_letter(name[k]) && !is_digit(name[k])) k++;
    if (k == n || is_digit(name[k])) out[used++] = 'v';
    for (; k < n; k++) {
        if (is_letter(name[k]) || is_digit(name[k]) || is_mark(name[k]))
            out[used++] = name[k];
        else if (out[used - 1] != '_')
            out[used++] = '_';
    }
    while (used > 2 && out[used - 1] == '_') used--;
    out[used] = '\0';
    size_t word = strcspn(out + 1, ".");
    for (size_t w = 0; w < sizeof RESERVED / sizeof *RESERVED; w++)
        if (strlen(RESERVED[w]) == word && strncmp(out + 1, RESERVED[w], word) == 0) return;
    memmove(out, out + 1, used);
}

bool ot_region_names_init(ot_region_names *n, ot_arena *a)
{
    n->arena = a;
    n->used = ot_map_new(a);
    return n->used != NULL;
}

const char *ot_region_name(ot_region_names *n, const char *name, const char *suffix)
{
    char text[NAME_LEN_MAX + 4];
    clean(name, text);
    const char *base = ot_format(n->arena, "%s%s", text, suffix), *got = base;
    if (!base) return NULL;
    uint32_t number = ot_map_get(n->used, base);
    if (number != OT_NONE) {
        do {
            got = ot_format(n->arena, "%s_%u", base, number++);
            if (!got) return NULL;
        } while (ot_map_get(n->used, got) != OT_NONE);
        if (!ot_map_put(n->used, base, number)) return NULL;
    }
    return ot_map_put(n->used, got, 2) ? got : NULL;
}
