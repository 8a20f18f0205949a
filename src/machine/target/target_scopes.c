/* The memories of a target that kernels name, and what holds where a target says nothing.
 *
 *   scope     bytes                      alignment
 *   l2        the fast memory            64, a cache line
 *   gm        the slow memory, 0: all    256, what GPU and NPU allocators hand out
 *   others    0: no such memory          the unit that the hardware addresses, see STANDARD
 *
 * Every alignment is filled in, also that of a memory the target lacks, so that a kernel with a
 * size limit of its own can be planned for any target.
 */
#include "target_internal.h"

/* Bytes; of Atlas A2 for the memories of its cores. Shared memory: what bulk tensor copies ask
 * for; registers: of a vector; tensor memory: a column of 128 lanes. */
static const int64_t STANDARD[OT_SCOPE_COUNT] = {
    [OT_SCOPE_UB] = 32,      [OT_SCOPE_L1] = 32,        [OT_SCOPE_L0A] = 512,
    [OT_SCOPE_L0B] = 512,    [OT_SCOPE_L0C] = 512,      [OT_SCOPE_BT] = 64,
    [OT_SCOPE_FP] = 64,      [OT_SCOPE_L2] = 64,        [OT_SCOPE_SHARED] = 128,
    [OT_SCOPE_GM] = 256,     [OT_SCOPE_LOCAL] = 16,     [OT_SCOPE_FRAGMENT] = 16,
    [OT_SCOPE_VAR] = 4,      [OT_SCOPE_BARRIER] = 8,    [OT_SCOPE_TMEM] = 512,
    [OT_SCOPE_REDUCER] = 16, [OT_SCOPE_DESCRIPTOR] = 8, [OT_SCOPE_HOST] = 64,
    [OT_SCOPE_AUTO] = 1,
};

int64_t ot_target_scope_alignment(ot_scope s) { return STANDARD[s]; }

void ot_target_fill_scopes(ot_target *t)
{
    t->scopes[OT_SCOPE_L2].bytes = t->fast_bytes;
    t->scopes[OT_SCOPE_GM].bytes = t->memory_bytes;
    for (int s = 0; s < OT_SCOPE_COUNT; s++)
        if (t->scopes[s].alignment == 0) t->scopes[s].alignment = STANDARD[s];
}

ot_tk_machine ot_target_tk_machine(const ot_target *t)
{
    ot_tk_machine m = {
        .granule = t->granule, .is_cache = t->is_cache, .bw_slow = t->bw_slow, .access = t->access};
    memcpy(m.name, t->name, sizeof m.name);
    memcpy(m.scopes, t->scopes, sizeof m.scopes);
    return m;
}

void ot_target_set_l2(ot_target *t, int64_t bytes)
{
    t->fast_bytes = bytes;
    t->scopes[OT_SCOPE_L2].bytes = bytes;
}
