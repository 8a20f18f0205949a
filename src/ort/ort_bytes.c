/* Fields of protobuf messages. */
#include "ort_bytes.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, BYTES = 2, FIXED32 = 5, LENGTH = 5 /* bytes of a length */ };

/* Room for n more bytes; NULL: none. */
static uint8_t *grow(ort_bytes *b, size_t n)
{
    size_t need = 0, cap = b->cap ? b->cap : 1024;
    if (__builtin_add_overflow(b->n, n, &need)) b->failed = true;
    if (b->failed) return NULL;
    while (cap < need) cap += cap / 2;
    if (cap != b->cap) {
        uint8_t *at = realloc(b->at, cap);
        if (!at) {
            b->failed = true;
            return NULL;
        }
        b->at = at;
        b->cap = cap;
    }
    uint8_t *place = b->at + b->n;
    b->n = need;
    return place;
}

static void put(ort_bytes *b, const void *data, size_t n)
{
    uint8_t *to = grow(b, n);
    if (to && n) memcpy(to, data, n);
}

static void put_varint(ort_bytes *b, uint64_t value)
{
    uint8_t text[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) text[n++] = (uint8_t)(value | 0x80);
    text[n++] = (uint8_t)value;
    put(b, text, n);
}

static void put_key(ort_bytes *b, uint32_t field, uint32_t wire)
{
    put_varint(b, (uint64_t)field << 3 | wire);
}

void ort_put_int(ort_bytes *b, uint32_t field, int64_t value)
{
    put_key(b, field, VARINT);
    put_varint(b, (uint64_t)value);
}

void ort_put_float(ort_bytes *b, uint32_t field, float value)
{
    put_key(b, field, FIXED32);
    put(b, &value, sizeof value);
}

void ort_put_data(ort_bytes *b, uint32_t field, const void *data, size_t n)
{
    put_key(b, field, BYTES);
    put_varint(b, n);
    put(b, data, n);
}

void ort_put_text(ort_bytes *b, uint32_t field, const char *text)
{
    ort_put_data(b, field, text, strlen(text));
}

size_t ort_open(ort_bytes *b, uint32_t field)
{
    put_key(b, field, BYTES);
    grow(b, LENGTH);
    return b->n;
}

void ort_close(ort_bytes *b, size_t at)
{
    if (b->failed) return;
    size_t n = b->n - at;
    if (n >> (7 * LENGTH)) {
        b->failed = true;
        return;
    }
    for (size_t k = 0; k < LENGTH; k++, n >>= 7)
        b->at[at - LENGTH + k] = (uint8_t)((n & 0x7f) | (k + 1 < LENGTH ? 0x80 : 0));
}

void ort_bytes_free(ort_bytes *b)
{
    free(b->at);
    *b = (ort_bytes){0};
}
