/* The table of reasons, looked up. */
#include "reasons.h"

static const struct {
    const char *name, *sentence, *lift;
    unsigned cures; /* OT_CURE_* */
} ROWS[OT_WHYS] = {
    [OT_WHY_NONE] = {"", "", "", 0},
#define REASON(id, name, sentence, lift)              [OT_WHY_##id] = {name, sentence, lift, 0},
#define REASON_TRIED(id, name, sentence, lift, cures) [OT_WHY_##id] = {name, sentence, lift, cures},
#include "reasons.def"
};

/* An id without a row would have no name; two rows of one id are an error of the compiler. */
enum {
#define REASON(id, name, sentence, lift) ROW_OF_##id,
#include "reasons.def"
    N_ROWS
};
_Static_assert(N_ROWS == OT_WHYS - 1, "each id of reasons.h needs one row in reasons.def");

static ot_why known(ot_why why) { return (unsigned)why < OT_WHYS ? why : OT_WHY_NONE; }

const char *ot_reason_name(ot_why why) { return ROWS[known(why)].name; }

const char *ot_reason_sentence(ot_why why) { return ROWS[known(why)].sentence; }

const char *ot_reason_lift(ot_why why) { return ROWS[known(why)].lift; }

unsigned ot_reason_cures(ot_why why) { return ROWS[known(why)].cures; }

const char *ot_reason_text(ot_arena *a, ot_reason r)
{
    const char *sentence = ot_reason_sentence(r.why), *number = strstr(sentence, "{ms}");
    if (!number) return sentence;
    return ot_format(a, "%.*s%.3f ms%s", (int)(number - sentence), sentence, 1e3 * r.seconds,
                     number + strlen("{ms}"));
}

ot_why ot_reason_find(const char *name)
{
    for (ot_why w = OT_WHY_NONE + 1; w < OT_WHYS; w++)
        if (strcmp(ROWS[w].name, name) == 0) return w;
    return OT_WHY_NONE;
}
