/* Names of memories. */
#include "scope.h"

#include <string.h>

static const char *const SCOPE_NAMES[OT_SCOPE_COUNT] = {
#define X(id, name, text) name,
    OT_SCOPES(X)
#undef X
};

const char *ot_scope_name(ot_scope s)
{
    return (unsigned)s < OT_SCOPE_COUNT ? SCOPE_NAMES[s] : "?";
}

/* Longer names of tile languages, read but never written. */
static const struct {
    const char *name;
    ot_scope scope;
} OTHER_NAMES[] = {{"global", OT_SCOPE_GM},
                   {"local.fragment", OT_SCOPE_FRAGMENT},
                   {"local.var", OT_SCOPE_VAR},
                   {"shared.barrier", OT_SCOPE_BARRIER},
                   {"shared.tmem", OT_SCOPE_TMEM},
                   {"cpu", OT_SCOPE_HOST},
                   {"npu", OT_SCOPE_GM}};

bool ot_scope_parse(const char *name, ot_scope *out)
{
    for (size_t k = 0; k < sizeof OTHER_NAMES / sizeof *OTHER_NAMES; k++)
        if (strcmp(OTHER_NAMES[k].name, name) == 0) return *out = OTHER_NAMES[k].scope, true;
    for (unsigned s = 0; s < OT_SCOPE_COUNT; s++) {
        if (strcmp(SCOPE_NAMES[s], name) != 0) continue;
        *out = (ot_scope)s;
        return true;
    }
    return false;
}
