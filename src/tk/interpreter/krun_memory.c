/* Memories of the machine: bytes, and who wrote each.
 *
 *   byte    7f 3a 00 91 cb cb  owner: the alloc, carried value or result by whose name it was
 *           written last
 *   owner    a  a  a  b  -  -  a read by another name finds that the plan (or the text) let
 *            something overwrite it
 *   writer   4  4  4  9        statement, for the message
 *
 * A param has its own memory, where it is enough to know what was written at all.
 */
#include "krun_internal.h"

#define POISON 0xcb

static ot_status not_there(krun *m, const krun_operand *o, int64_t at, int64_t byte)
{
    const char *name = krun_value(m, o->value)->name;
    uint32_t owner = o->memory->owner ? o->memory->owner[at] : 0;
    if (owner == 0)
        return krun_fail(m, "unwritten", "'%s' is read, but nothing has written its byte %lld",
                         name, (long long)byte);
    return krun_fail(
        m, "overwritten", "'%s' is read, but line %u has overwritten its byte %lld by '%s'", name,
        m->k->stmts[o->memory->writer[at]].line, (long long)byte, krun_value(m, owner - 1)->name);
}

ot_status krun_read(krun *m, const krun_operand *o, uint8_t *to)
{
    const krun_memory *mem = o->memory;
    for (size_t k = 0; k < o->spans.n; k++) {
        const krun_span *s = &o->spans.at[k];
        if (s->at < 0) {
            memset(to + s->start, 0, (size_t)s->n);
            continue;
        }
        for (int64_t i = s->at; i < s->at + s->n; i++)
            if (mem->owner ? mem->owner[i] != o->root + 1 : !mem->defined[i])
                return not_there(m, o, i, s->start + i - s->at);
        memcpy(to + s->start, mem->bytes + s->at, (size_t)s->n);
    }
    return OT_OK;
}

ot_status krun_write(krun *m, const krun_operand *o, const uint8_t *from)
{
    krun_memory *mem = o->memory;
    for (size_t k = 0; k < o->spans.n; k++) {
        const krun_span *s = &o->spans.at[k];
        if (s->at < 0) continue;
        memcpy(mem->bytes + s->at, from + s->start, (size_t)s->n);
        if (mem->defined) memset(mem->defined + s->at, 1, (size_t)s->n);
        for (int64_t i = s->at; i < s->at + s->n && mem->owner; i++) {
            mem->owner[i] = o->root + 1;
            mem->writer[i] = m->pc;
        }
    }
    return OT_OK;
}

/* ---- carried values ---- */

/* Bytes of o, then whether each is defined; what another buffer has overwritten is not. */
static void take(const krun_operand *o, uint8_t *to)
{
    int64_t n = o->spans.bytes;
    for (size_t k = 0; k < o->spans.n; k++) {
        const krun_span *s = &o->spans.at[k];
        for (int64_t i = 0; i < s->n; i++) {
            to[s->start + i] = o->memory->bytes[s->at + i];
            to[n + s->start + i] = o->memory->owner[s->at + i] == o->root + 1;
        }
    }
}

static void give(const krun *m, const krun_operand *o, const uint8_t *from)
{
    int64_t n = o->spans.bytes;
    for (size_t k = 0; k < o->spans.n; k++) {
        const krun_span *s = &o->spans.at[k];
        for (int64_t i = 0; i < s->n; i++) {
            o->memory->bytes[s->at + i] = from[s->start + i];
            o->memory->owner[s->at + i] = from[n + s->start + i] ? o->root + 1 : 0;
            o->memory->writer[s->at + i] = m->pc;
        }
    }
}

ot_status krun_carry(krun *m, const uint32_t *to, const uint32_t *from, uint32_t n)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < n; k++) bytes += 2 * krun_value(m, from[k])->bytes;
    if (!krun_room(m, &m->bytes, &m->cap_bytes, bytes)) return ot_fail_nomem(m->d);
    bytes = 0;
    for (uint32_t k = 0; k < n; k++) {
        OT_TRY(krun_locate(m, from[k], &m->moved));
        take(&m->moved, m->bytes + bytes);
        bytes += 2 * krun_value(m, from[k])->bytes;
    }
    bytes = 0;
    for (uint32_t k = 0; k < n; k++) {
        /* else nothing reads it */
        bool placed = m->plan->lifetimes->buffers[m->plan->lifetimes->buffer_of[to[k]]].n_live > 0;
        OT_TRY(krun_locate(m, to[k], &m->moved));
        if (placed) give(m, &m->moved, m->bytes + bytes);
        bytes += 2 * krun_value(m, from[k])->bytes;
    }
    return OT_OK;
}

void krun_forget(krun *m, uint32_t v)
{
    const ot_tk_value *x = krun_value(m, v);
    krun_memory *mem = &m->memories[x->scope];
    uint32_t buffer = m->plan->lifetimes->buffer_of[v];
    if (m->plan->lifetimes->buffers[buffer].n_live == 0) return;
    int64_t at = krun_slot(m, buffer);
    for (int64_t i = at; i < at + x->bytes; i++) {
        if (mem->owner[i] != v + 1) continue;
        mem->owner[i] = 0;
        mem->bytes[i] = POISON;
    }
}

/* ---- places of operands ---- */

bool krun_overlap(const krun_operand *a, const krun_operand *b)
{
    if (a->memory != b->memory) return false;
    for (size_t i = 0; i < a->spans.n; i++)
        for (size_t j = 0; j < b->spans.n && a->spans.at[i].at >= 0; j++) {
            const krun_span *x = &a->spans.at[i], *y = &b->spans.at[j];
            if (y->at >= 0 && x->at < y->at + y->n && y->at < x->at + x->n) return true;
        }
    return false;
}

bool krun_same_place(const krun_operand *a, const krun_operand *b)
{
    if (a->memory != b->memory || a->spans.n != b->spans.n) return false;
    for (size_t k = 0; k < a->spans.n; k++)
        if (a->spans.at[k].at != b->spans.at[k].at || a->spans.at[k].n != b->spans.at[k].n)
            return false;
    return true;
}
