/* One text through the kernel language: whatever parses must print, and its print must parse to
 * the same print.
 *
 *   text --parse--> kernel --print--> text1 --parse--> kernel --print--> text2 == text1
 *
 * LLVMFuzzerTestOneInput is libFuzzer's entry (`make fuzz`). What does not parse must say so in
 * one line with its place.
 */
#include "tk/language/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* "k.tk:LINE:COL: rule", without control characters; anything else is our bug. */
static void expect_place(const ot_diag *d)
{
    unsigned line, col;
    if (sscanf(d->message, "k.tk:%u:%u: ", &line, &col) != 2 || line < 1 || col < 1)
        OT_BUG("a failure without its place");
    if (strchr(d->message, '\n')) OT_BUG("a failure in more than one line");
}

static char *print(const ot_kernel *k, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    if (!f || ot_kernel_print(k, f) != OT_OK || fclose(f) != 0)
        OT_BUG("a kernel cannot be printed");
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ot_diag d = {0}, d2 = {0};
    ot_kernel *k = NULL, *again = NULL;
    size_t n, n2;
    ot_status s = ot_kernel_parse("k.tk", (const char *)data, size, &d, &k);
    if (s == OT_E_INPUT)
        expect_place(&d);
    else if (s != OT_OK && s != OT_E_NOMEM)
        OT_BUG("a failure of another kind");
    if (s != OT_OK) return 0;
    char *text = print(k, &n);
    if (ot_kernel_parse("k.tk", text, n, &d2, &again) != OT_OK) {
        fprintf(stderr, "%s\n%s\n", text, d2.message);
        OT_BUG("the tool does not read its own kernel");
    }
    char *text2 = print(again, &n2);
    if (n != n2 || memcmp(text, text2, n) != 0) {
        fprintf(stderr, "%s\n--- became ---\n%s\n", text, text2);
        OT_BUG("a kernel changes when it is printed and read");
    }
    ot_kernel_free(k);
    ot_kernel_free(again);
    free(text);
    free(text2);
    return 0;
}
