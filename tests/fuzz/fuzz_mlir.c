/* One text through the reader of MLIR: what it reads can be planned or does not fit, and the
 * planned text is read again with the same places.
 *
 *   text --parse--> kernel --plan--> offsets --write--> text1 --parse, plan, write--> text2 ==
 *   text1
 *
 * LLVMFuzzerTestOneInput is libFuzzer's entry (`make fuzz`). What is refused must say so in one
 * line with its place.
 */
#include "machine/target/target.h"
#include "tk/mlir/mlir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BUFFERS_MAX 64 /* planning more takes longer than a fuzzer has */

/* "k.mlir:LINE:COL: rule", without control characters; anything else is our bug. */
static void expect_place(const ot_diag *d)
{
    unsigned line, col;
    if (sscanf(d->message, "k.mlir:%u:%u: ", &line, &col) != 2 || line < 1 || col < 1)
        OT_BUG("a failure without its place");
    if (strchr(d->message, '\n')) OT_BUG("a failure in more than one line");
}

/* NULL: refused, too large for a fuzzer, or it does not fit. */
static char *planned(const char *text, size_t size, const ot_tk_machine *t, size_t *n)
{
    ot_diag d = {0};
    ot_mlir_functions all = {.arena = ot_arena_new()};
    ot_mlir_options how = {.mode = OT_MEM_BOTH, .all = &all};
    size_t from = 0;
    ot_mlir *m = NULL;
    ot_mem_plan *p = NULL;
    char *out = NULL;
    ot_mem_options o = {.threads = 1, .step_limit = 2000, .workspace_reuse = true};
    ot_diag unread = {0}; /* said again below */
    if (!all.arena || ot_mlir_find("k.mlir", text, size, &unread, &all) != OT_OK) how.all = NULL;
    ot_status s = ot_mlir_parse("k.mlir", text, size, &how, &d, &m);
    if (s == OT_E_INPUT)
        expect_place(&d);
    else if (s != OT_OK && s != OT_E_NOMEM)
        OT_BUG("a failure of another kind");
    if (s == OT_OK && ot_mlir_kernel(m)->n_values <= BUFFERS_MAX) {
        s = ot_mem_plan_kernel(ot_mlir_kernel(m), "k.mlir", t, &o, &d, &p);
        if (s == OT_OK) s = ot_mlir_check_plan(m, p, &d);
        if (s != OT_OK && s != OT_E_INPUT && s != OT_E_BUDGET && s != OT_E_NOMEM)
            OT_BUG("planning fails in another way");
        FILE *f = s == OT_OK ? open_memstream(&out, n) : NULL;
        bool ok = f && ot_mlir_write(m, p, &from, f) == OT_OK;
        ok = ok && fwrite(text + from, 1, size - from, f) == size - from; /* behind the function */
        if (f && (fclose(f) != 0 || !ok)) OT_BUG("a plan cannot be written");
    }
    ot_mem_plan_free(p);
    ot_mlir_free(m);
    ot_arena_free(all.arena);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static ot_tk_machine t;
    ot_target target;
    size_t n, n2;
    ot_diag d = {0};
    if (t.scopes[OT_SCOPE_UB].bytes == 0) {
        if (ot_target_load("ascend-a2", 0, &d, &target) != OT_OK) OT_BUG("no target");
        t = ot_target_tk_machine(&target);
        ot_target_free(&target);
    }
    char *text = planned((const char *)data, size, &t, &n);
    if (!text) return 0;
    char *text2 = planned(text, n, &t, &n2);
    if (!text2 || n != n2 || memcmp(text, text2, n) != 0) {
        fprintf(stderr, "%s\n--- became ---\n%s\n", text, text2 ? text2 : "nothing");
        OT_BUG("a planned text changes when it is planned again");
    }
    free(text);
    free(text2);
    return 0;
}
