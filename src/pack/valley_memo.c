/* Failed states of the valley search. What a proof rests on is the state itself: a hash finds
 * the place of a state in the table, and what is stored there is compared byte for byte, so that
 * two states with one hash are two states.
 *
 *   tags    [mask + 1]  hash of the state at this place; 0: free; a state is looked for at 8
 *                       places from its hash on
 *   at      [mask + 1]  where its bytes lie, in units of 8 bytes
 *   blocks  | room, used | bytes ... | room, used | bytes ... |  taken as they are needed,
 *                                                                BLOCKS_MAX at most
 *
 * The bytes of a state are the items to come (the first id, then a bit an id up to the last) and
 * the floors of the sections that these items cover (in runs: length, change from the run
 * before). Everything that a failure follows from is in there: the items tell the sections, what
 * lies below the floors does not matter. Numbers have 7 bits a byte, the low ones first.
 *
 * When the blocks are full, or a state does not fit into one, it is not kept: then the search
 * may do work again, nothing else.
 */
#include "valley.h"

#define PLACES     8
#define UNIT       ((size_t)8)
#define BLOCK      ((size_t)1 << 18)
#define BLOCKS_MAX 128u /* 32 MiB a search */
#define TABLE_MIN  ((size_t)1 << 10)
#define TABLE_MAX  ((size_t)1 << 20)
#define NUMBER_MAX ((size_t)10) /* bytes of a number */

struct valley_memo {
    uint64_t *tags; /* [mask + 1] */
    uint32_t *at;   /* [mask + 1] */
    size_t mask;
    unsigned char *blocks[BLOCKS_MAX]; /* of BLOCK bytes */
    uint32_t n_blocks;
    size_t used;          /* bytes of the last block */
    unsigned char *bytes; /* of the state at hand; room for any */
};

typedef struct head {
    uint32_t room, used; /* bytes behind it */
} head;

bool valley_memo_make(valley *s)
{
    valley_memo *m = OT_NEW(s->arena, valley_memo);
    size_t places = TABLE_MIN;
    while (places < TABLE_MAX && places < (size_t)s->n * 2048) places *= 2;
    if (!m) return false;
    m->mask = places - 1;
    m->tags = OT_NEW_N(s->arena, uint64_t, places);
    m->at = OT_NEW_N(s->arena, uint32_t, places);
    m->bytes = OT_NEW_N(s->arena, unsigned char,
                        2 * NUMBER_MAX + s->n / 8 + 1 + 2 * NUMBER_MAX * s->n_sections);
    s->memo = m;
    return m->tags && m->at && m->bytes;
}

uint64_t valley_memo_hash(const valley *s, uint32_t lo, uint32_t hi)
{
    uint64_t h = valley_mix(((uint64_t)lo << 32) | hi);
    for (uint32_t t = lo; t < hi; t++)
        if (s->count[t] > 0) h = valley_mix(h ^ (uint64_t)s->floor[t] ^ s->rest_hash[t]) + t;
    if (s->rules & OT_PACK_COLLIDE) h &= 3;
    return h ? h : 1;
}

/* ---- a state as bytes ---- */

static unsigned char *put_number(unsigned char *p, uint64_t v)
{
    for (; v >= 128; v >>= 7) *p++ = (unsigned char)(v | 128);
    *p++ = (unsigned char)v;
    return p;
}

static unsigned char *put_items(unsigned char *p, const uint32_t *list, uint32_t n)
{
    uint32_t first = list[0], bits = list[n - 1] - first + 1;
    p = put_number(put_number(p, first), bits);
    memset(p, 0, bits / 8 + 1);
    for (uint32_t k = 0; k < n; k++)
        p[(list[k] - first) / 8] |= (unsigned char)(1u << (list[k] - first) % 8);
    return p + bits / 8 + 1;
}

static unsigned char *put_floors(unsigned char *p, const valley *s, uint32_t lo, uint32_t hi)
{
    int64_t before = 0;
    for (uint32_t t = lo; t < hi;) {
        uint64_t length = 0;
        int64_t floor = 0;
        for (; t < hi && (s->count[t] == 0 || length == 0 || s->floor[t] == floor); t++) {
            if (s->count[t] == 0) continue; /* no item to come covers it */
            floor = s->floor[t];
            length++;
        }
        if (length == 0) break;
        int64_t change = floor - before; /* floors are never negative: no overflow */
        p = put_number(put_number(p, length), (uint64_t)change << 1 ^ (uint64_t)(change >> 63));
        before = floor;
    }
    return p;
}

/* Bytes of the state, written to m->bytes. list: the items to come, ascending; n >= 1. */
static size_t write_state(const valley *s, const uint32_t *list, uint32_t n, uint32_t lo,
                          uint32_t hi)
{
    unsigned char *p = put_floors(put_items(s->memo->bytes, list, n), s, lo, hi);
    return (size_t)(p - s->memo->bytes);
}

/* ---- the table ---- */

static unsigned char *entry_at(const valley_memo *m, size_t place)
{
    size_t at = m->at[place] * UNIT;
    return m->blocks[at / BLOCK] + at % BLOCK;
}

static bool holds(const valley_memo *m, size_t place, size_t n)
{
    const unsigned char *e = entry_at(m, place);
    head h;
    memcpy(&h, e, sizeof h);
    return h.used == n && memcmp(e + sizeof h, m->bytes, n) == 0;
}

bool valley_memo_has(const valley *s, uint64_t h, const uint32_t *list, uint32_t n, uint32_t lo,
                     uint32_t hi)
{
    const valley_memo *m = s->memo;
    size_t bytes = 0;
    for (size_t k = 0; k < PLACES; k++) {
        size_t place = (h + k) & m->mask;
        if (m->tags[place] == 0) return false;
        if (m->tags[place] != h) continue;
        if (bytes == 0) bytes = write_state(s, list, n, lo, hi);
        if (holds(m, place, bytes)) return true;
    }
    return false;
}

/* New room for n bytes behind a head, at a place of the table. false: there is none, or memory
 * ran out (s->nomem). */
static bool take_room(valley *s, size_t place, size_t n)
{
    valley_memo *m = s->memo;
    head h = {0};
    size_t room = (n + UNIT - 1) / UNIT * UNIT;
    if (room + sizeof h > BLOCK) return false;
    if (m->n_blocks == 0 || m->used + sizeof h + room > BLOCK) {
        if (m->n_blocks == BLOCKS_MAX) return false;
        if (!(m->blocks[m->n_blocks] = OT_NEW_N(s->arena, unsigned char, BLOCK))) {
            s->nomem = s->cut = true;
            return false;
        }
        m->n_blocks++;
        m->used = 0;
    }
    h.room = (uint32_t)room;
    m->at[place] = (uint32_t)(((m->n_blocks - 1) * BLOCK + m->used) / UNIT);
    memcpy(entry_at(m, place), &h, sizeof h);
    m->used += sizeof h + room;
    return true;
}

static bool has_room(const valley_memo *m, size_t place, size_t n)
{
    head h;
    memcpy(&h, entry_at(m, place), sizeof h);
    return h.room >= n;
}

void valley_memo_add(valley *s, uint64_t h, const uint32_t *list, uint32_t n, uint32_t lo,
                     uint32_t hi)
{
    valley_memo *m = s->memo;
    size_t bytes = write_state(s, list, n, lo, hi), place = h & m->mask;
    for (size_t k = 0; k < PLACES; k++) {
        size_t next = (h + k) & m->mask;
        if (m->tags[next] == h && holds(m, next, bytes)) return;
        if (m->tags[next] != 0) continue;
        place = next;
        break;
    }
    /* no free place: the state displaces the first one, and takes its room where that is enough */
    if (!(m->tags[place] && has_room(m, place, bytes)) && !take_room(s, place, bytes)) return;
    unsigned char *e = entry_at(m, place);
    head at;
    memcpy(&at, e, sizeof at);
    at.used = (uint32_t)bytes;
    memcpy(e, &at, sizeof at);
    memcpy(e + sizeof at, m->bytes, bytes);
    m->tags[place] = h;
}
