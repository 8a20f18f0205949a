/* Names -> ids: an open-addressing table in an arena.
 *
 * Names come from strangers' files, and a table whose hash can be predicted can be filled with
 * names that all collide (quadratic time). So the hash is keyed (SipHash-1-3) with a key drawn
 * at random: on Linux the bytes that the kernel gives each process, for graphs are copied by the
 * thousand, and a draw takes as long as a hundred look-ups; elsewhere drawn per table. The key
 * changes no result: a table is only ever asked by key, never walked, so the program's output
 * stays deterministic. */
#include "base.h"

#ifdef __linux__
#include <sys/auxv.h>
#endif
#include <sys/random.h>

typedef struct slot {
    const char *key; /* borrowed; NULL = free */
    /* where it belongs, and what skips most comparisons; a table that grows asks no key again */
    uint32_t hash;
    uint32_t value;
} slot;

struct ot_map {
    ot_arena *arena;
    uint64_t key[2];
    slot *slots; /* [cap], cap a power of two; kept at most 3/4 full */
    size_t cap;
    size_t n;
    bool shared;          /* other maps read the slots, too */
    uint64_t initials[4]; /* bit c % 64 of c / 64: a key begins with c */
};

static uint64_t rotl(uint64_t x, int by) { return x << by | x >> (64 - by); }

/* Names are hashed millions of times in a run: inlined, the state stays in registers. */
static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13);
    v[1] ^= v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16);
    v[3] ^= v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21);
    v[3] ^= v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17);
    v[1] ^= v[2];
    v[2] = rotl(v[2], 32);
}

/* 32 bits are enough for a table of ids. */
static uint32_t hash_of(const ot_map *m, const char *s)
{
    uint64_t v[4] = {
        m->key[0] ^ UINT64_C(0x736f6d6570736575), m->key[1] ^ UINT64_C(0x646f72616e646f6d),
        m->key[0] ^ UINT64_C(0x6c7967656e657261), m->key[1] ^ UINT64_C(0x7465646279746573)};
    size_t n = strlen(s), k = 0;
    for (; k + 8 <= n; k += 8) {
        uint64_t word;
        memcpy(&word, s + k, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)n << 56;
    for (int shift = 0; k < n; k++, shift += 8) last |= (uint64_t)(unsigned char)s[k] << shift;
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int round = 0; round < 3; round++) sip_round(v);
    return (uint32_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
}

static void take_key(ot_map *m)
{
#ifdef __linux__
    const void *given = (const void *)getauxval(AT_RANDOM); /* 16 bytes */
    if (given) {
        memcpy(m->key, given, sizeof m->key);
        return;
    }
#endif
    if (getrandom(m->key, sizeof m->key, GRND_NONBLOCK) != (ssize_t)sizeof m->key)
        m->key[0] = (uint64_t)(uintptr_t)m; /* early boot or a sandbox: the address must do */
}

ot_map *ot_map_new(ot_arena *a)
{
    ot_map *m = OT_NEW(a, ot_map);
    if (!m) return NULL;
    m->arena = a;
    m->cap = 16;
    m->slots = OT_NEW_N(a, slot, m->cap);
    if (!m->slots) return NULL;
    take_key(m);
    return m;
}

ot_map *ot_map_copy(ot_arena *a, ot_map *m)
{
    m->shared = true;
    ot_map *x = ot_memdup(a, m, sizeof *m);
    if (x) x->arena = a;
    return x;
}

/* Slots that the map may write to; those that others read stay as they are. */
static bool own_slots(ot_map *m)
{
    if (!m->shared) return true;
    slot *slots = ot_memdup(m->arena, m->slots, m->cap * sizeof *slots);
    if (!slots) return false;
    m->slots = slots;
    m->shared = false;
    return true;
}

/* The slot of `key`: its own, or the free one where it belongs. */
static slot *find(slot *slots, size_t cap, uint32_t hash, const char *key)
{
    for (size_t k = hash & (cap - 1);; k = (k + 1) & (cap - 1)) {
        slot *s = &slots[k];
        if (!s->key || (s->hash == hash && strcmp(s->key, key) == 0)) return s;
    }
}

static bool enlarge(ot_map *m, size_t cap)
{
    slot *slots = OT_NEW_N(m->arena, slot, cap);
    if (!slots) return false;
    for (size_t k = 0; k < m->cap; k++) {
        if (!m->slots[k].key) continue;
        size_t at = m->slots[k].hash & (cap - 1);
        while (slots[at].key) at = (at + 1) & (cap - 1); /* no two keys are equal */
        slots[at] = m->slots[k];
    }
    m->slots = slots;
    m->cap = cap;
    m->shared = false;
    return true;
}

static bool fits(size_t n, size_t cap) { return n <= cap / 4 * 3; }

bool ot_map_reserve(ot_map *m, size_t n)
{
    size_t cap = m->cap;
    while (!fits(n, cap)) {
        if (cap > SIZE_MAX / 2) return false;
        cap *= 2;
    }
    return cap == m->cap || enlarge(m, cap);
}

/* The slot of `key`, which is put in if it is not there; NULL when memory ran out. */
static slot *claim(ot_map *m, const char *key, bool *fresh)
{
    const uint32_t hash = hash_of(m, key);
    slot *s = find(m->slots, m->cap, hash, key);
    *fresh = !s->key;
    if (s->key) return s;
    const slot *before = m->slots;
    if (fits(m->n + 1, m->cap) ? !own_slots(m) : !ot_map_reserve(m, m->n + 1)) return NULL;
    if (m->slots != before) s = find(m->slots, m->cap, hash, key);
    *s = (slot){.key = key, .hash = hash};
    const unsigned char initial = (unsigned char)key[0];
    m->initials[initial / 64] |= UINT64_C(1) << initial % 64;
    m->n++;
    return s;
}

bool ot_map_put(ot_map *m, const char *key, uint32_t value)
{
    bool fresh;
    const slot *s = claim(m, key, &fresh);
    if (!s) return false;
    const size_t at = (size_t)(s - m->slots);
    if (!own_slots(m)) return false;
    m->slots[at].value = value;
    return true;
}

bool ot_map_add(ot_map *m, const char *key, uint32_t value, bool *fresh)
{
    slot *s = claim(m, key, fresh);
    if (s && *fresh) s->value = value;
    return s != NULL;
}

uint32_t ot_map_get(const ot_map *m, const char *key)
{
    const slot *s = find(m->slots, m->cap, hash_of(m, key), key);
    return s->key ? s->value : OT_NONE;
}

bool ot_map_has_initial(const ot_map *m, char initial)
{
    const unsigned char c = (unsigned char)initial;
    return (m->initials[c / 64] >> c % 64 & 1) != 0;
}

/* ---- contents ---- */

uint64_t ot_hash_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    if (h == 0) h = 0xcbf29ce484222325u;
    for (size_t k = 0; k < n; k++) h = (h ^ p[k]) * 0x100000001b3u;
    return h;
}
