/* The rule by which outputs of two models are the same, for a test that compares it with Python's.
 *
 *   noise_rule < CASES      a case a line: HALF A.npy B.npy AGAIN.npy...
 *
 * HALF is 0 or 1; A and B are an output of the original and of the other model, AGAIN that of the
 * original run again. Prints a line a case: same, noise or differs.
 */
#include "measure/measure.h"

static bool read_array(const char *path, ot_nd *out)
{
    ot_diag d = {0};
    if (ot_npy_read(path, &d, out) == OT_OK) return true;
    fprintf(stderr, "%s\n", d.message);
    return false;
}

/* The words of a line; false: an array is missing. */
static bool judge(char *line)
{
    ot_nd a = {0}, b = {0}, again;
    ot_difference noise = {0};
    const bool half = strcmp(strtok(line, " "), "1") == 0;
    bool ok = read_array(strtok(NULL, " "), &a) && read_array(strtok(NULL, " "), &b);
    const ot_difference found = ok ? ot_compare(&a, &b, half) : (ot_difference){0};
    for (const char *path; ok && (path = strtok(NULL, " "));) {
        ok = read_array(path, &again);
        if (!ok) break;
        const ot_difference x = ot_compare(&a, &again, half);
        ot_noise_add(&noise, &x);
        ot_nd_release(&again);
    }
    if (ok) puts(found.same ? "same" : ot_noise_covers(&noise, &found) ? "noise" : "differs");
    ot_nd_release(&a);
    ot_nd_release(&b);
    return ok;
}

int main(void)
{
    static char line[1 << 14];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (!judge(line)) return 1;
    }
    return 0;
}
