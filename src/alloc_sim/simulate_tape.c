/* What one iteration of a loop takes and gives back, to be done again.
 *
 *   iteration   1            2              3        4 ... n
 *   body        makes the    is simulated   the tape of what 2 took from the arena and gave back,
 *               pattern      and taped      in that order
 *
 * Where pieces are kept, the arena is another before each iteration, but what a body asks of it
 * is the same: for thousands of iterations, its steps are looked at twice.
 */
#include "simulate_run.h"

#define ATTEMPTS 4 /* to tape an iteration, before a loop is simulated without */

ot_sim_tape *ot_tape_begin(ot_sim_tape *t)
{
    if (!t || t->attempts == ATTEMPTS || ot_dbg['P']) return NULL;
    t->attempts++;
    t->n = t->n_slots = 0;
    t->is_broken = t->keeps = false;
    return t;
}

static void add(ot_simulator *x, ot_tape_kind kind, uint32_t slot, uint32_t at, int64_t bytes)
{
    ot_sim_tape *t = x->tape;
    if (!OT_PUSH(x->a, t->entries, t->n, t->cap, ((ot_tape_entry){kind, slot, at, bytes, NULL})))
        t->is_broken = t->no_memory = true;
}

void ot_tape_take(ot_simulator *x, int64_t bytes, bool roomy, uint32_t chunk)
{
    if (!x->tape) return;
    if (!OT_PUSH(x->a, x->tape->slots, x->tape->n_slots, x->tape->cap_slots, chunk))
        x->tape->is_broken = x->tape->no_memory = true;
    else
        add(x, roomy ? OT_TAPE_TAKE_ROOMY : OT_TAPE_TAKE, (uint32_t)x->tape->n_slots - 1, 0, bytes);
}

/* Slot of a chunk that the iteration took and still has; it has it no more. OT_NONE: it did not
 * take it. */
static uint32_t leave_slot(ot_sim_tape *t, uint32_t chunk)
{
    for (size_t k = t->n_slots; k-- > 0;) {
        if (t->slots[k] != chunk) continue;
        t->slots[k] = OT_NONE;
        return (uint32_t)k;
    }
    return OT_NONE;
}

/* The chunk goes where `kind` says. */
static void add_end(ot_simulator *x, ot_tape_kind kind, uint32_t chunk, uint32_t at)
{
    if (!x->tape) return;
    const uint32_t slot = leave_slot(x->tape, chunk);
    add(x, kind, slot, at, 0);
    if (slot == OT_NONE) x->tape->is_broken = true;
}

void ot_tape_release(ot_simulator *x, uint32_t chunk) { add_end(x, OT_TAPE_RELEASE, chunk, 0); }

void ot_tape_keep(ot_simulator *x, uint32_t chunk)
{
    add_end(x, OT_TAPE_KEEP, chunk, 0);
    if (x->tape) x->tape->keeps = true;
}

bool ot_tape_keeps(const ot_sim_tape *t) { return t->is_done && t->keeps; }

void ot_tape_insert(ot_simulator *x, ot_sim_pieces *to, uint32_t chunk)
{
    add_end(x, OT_TAPE_INSERT, chunk, 0);
    if (x->tape && !x->tape->is_broken) x->tape->entries[x->tape->n - 1].to = to;
}

void ot_tape_hand(ot_simulator *x, uint32_t chunk, uint32_t at)
{
    if (chunk != OT_NONE) add_end(x, OT_TAPE_HAND, chunk, at);
}

void ot_tape_look(ot_simulator *x)
{
    if (x->tape) add(x, OT_TAPE_LOOK, OT_NONE, 0, 0);
}

void ot_tape_break(ot_simulator *x)
{
    if (x->tape) x->tape->is_broken = true;
}

ot_status ot_tape_end(ot_sim_tape *t)
{
    if (!t) return OT_OK;
    /* what the iteration took and left behind is there once, for all of them */
    for (size_t k = 0; k < t->n_slots; k++) t->is_broken |= t->slots[k] != OT_NONE;
    t->is_done = !t->is_broken;
    return t->no_memory ? OT_E_NOMEM : OT_OK;
}

static ot_status replay_entry(ot_simulator *x, const ot_tape_entry *e, const ot_sim_visit *v)
{
    uint32_t *chunk = e->slot == OT_NONE ? NULL : &v->tape->slots[e->slot];
    switch (e->kind) {
    case OT_TAPE_TAKE:
        *chunk = ot_chunk_take(x->memory, e->bytes);
        return *chunk == OT_NONE ? OT_E_NOMEM : OT_OK;
    case OT_TAPE_TAKE_ROOMY:
        *chunk = ot_chunk_take_roomy(x->memory, e->bytes);
        return *chunk == OT_NONE ? OT_E_NOMEM : OT_OK;
    case OT_TAPE_RELEASE: ot_chunk_release(x->memory, *chunk); return OT_OK;
    case OT_TAPE_KEEP:
        return OT_PUSH(x->a, v->kept->chunks, v->kept->n, v->kept->cap, *chunk) ? OT_OK
                                                                                : OT_E_NOMEM;
    case OT_TAPE_INSERT:
        return OT_PUSH(x->a, e->to->chunks, e->to->n, e->to->cap, *chunk) ? OT_OK : OT_E_NOMEM;
    case OT_TAPE_HAND: v->into[e->at] = *chunk; return OT_OK;
    case OT_TAPE_LOOK: ot_sim_look(x); return OT_OK;
    }
    return OT_OK;
}

ot_status ot_tape_replay(ot_simulator *x, const ot_sim_visit *v)
{
    const ot_sim_tape *t = v->tape;
    for (size_t k = 0; k < t->n; k++) OT_TRY(replay_entry(x, &t->entries[k], v));
    return OT_OK;
}
