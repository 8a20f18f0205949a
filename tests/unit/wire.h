/* ONNX files by hand: a small encoder of the protobuf wire format, for tests.
 *
 * It shares no code with protobuf-c or with our packer, so it is an oracle for both. Field
 * numbers are those of onnx.proto; messages are built inside out, fields in ascending order
 * where bytes are compared.
 */
#ifndef TEST_WIRE_H
#define TEST_WIRE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct wire {
    uint8_t *data;
    size_t n;
} wire;

/* Every message of a test, freed together. */
static void *wire_blocks[20000];
static size_t wire_n_blocks;

static inline void wire_reset(void)
{
    while (wire_n_blocks) free(wire_blocks[--wire_n_blocks]);
}

static inline wire w_cat(wire a, wire b)
{
    wire out = {malloc(a.n + b.n + 1), a.n + b.n};
    if (!out.data || wire_n_blocks == sizeof wire_blocks / sizeof *wire_blocks) abort();
    wire_blocks[wire_n_blocks++] = out.data;
    if (a.n) memcpy(out.data, a.data, a.n);
    if (b.n) memcpy(out.data + a.n, b.data, b.n);
    return out;
}

static inline wire w_join(const wire *parts, size_t n)
{
    wire out = {NULL, 0};
    for (size_t k = 0; k < n; k++) out = w_cat(out, parts[k]);
    return out;
}
#define W(...) w_join((wire[]){__VA_ARGS__}, sizeof((wire[]){__VA_ARGS__}) / sizeof(wire))
#define W_NONE ((wire){NULL, 0})

static inline wire w_varint(uint64_t v)
{
    uint8_t out[10];
    size_t n = 0;
    do {
        out[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    return w_cat((wire){out, n}, W_NONE);
}

static inline wire w_int(unsigned field, int64_t v)
{
    return w_cat(w_varint(field << 3), w_varint((uint64_t)v));
}

static inline wire w_bytes(unsigned field, const void *p, size_t n)
{
    return w_cat(w_cat(w_varint(field << 3 | 2), w_varint(n)), (wire){(uint8_t *)(uintptr_t)p, n});
}

static inline wire w_msg(unsigned field, wire m) { return w_bytes(field, m.data, m.n); }

static inline wire w_str(unsigned field, const char *s) { return w_bytes(field, s, strlen(s)); }

static inline wire w_float(unsigned field, float f)
{
    return w_cat(w_varint(field << 3 | 5), (wire){(uint8_t *)&f, 4});
}

/* "a b c" as repeated strings; "_" is an empty one. */
static inline wire w_words(unsigned field, const char *words)
{
    wire out = {NULL, 0};
    while (*words) {
        size_t n = strcspn(words, " ");
        out = w_cat(out, n == 1 && *words == '_' ? w_str(field, "") : w_bytes(field, words, n));
        words += n + (words[n] == ' ');
    }
    return out;
}

/* ---- ONNX messages (contents only; the caller adds the field number with w_msg) ---- */

/* Dims end with -9; a dim of -1 is left open. */
static inline wire x_value_info(const char *name, int type, const int64_t *dims)
{
    wire shape = {NULL, 0};
    for (; *dims != -9; dims++)
        shape = w_cat(shape, w_msg(1, *dims < 0 ? W_NONE : w_int(1, *dims)));
    return W(w_str(1, name), w_msg(2, w_msg(1, W(w_int(1, type), w_msg(2, shape)))));
}
#define DIMS(...) ((const int64_t[]){__VA_ARGS__, -9})

static inline wire x_tensor(const char *name, int type, const int64_t *dims, const void *raw,
                            size_t n)
{
    wire d = {NULL, 0};
    for (; *dims != -9; dims++) d = w_cat(d, w_int(1, *dims));
    return W(d, w_int(2, type), w_str(8, name), w_bytes(9, raw, n));
}

static inline wire x_external(const char *name, int type, const int64_t *dims,
                              const char *const *pairs)
{
    wire d = {NULL, 0}, e = {NULL, 0};
    for (; *dims != -9; dims++) d = w_cat(d, w_int(1, *dims));
    for (; *pairs; pairs += 2) e = w_cat(e, w_msg(13, W(w_str(1, pairs[0]), w_str(2, pairs[1]))));
    return W(d, w_int(2, type), w_str(8, name), e, w_int(14, 1));
}
#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline wire x_node(const char *op, const char *in, const char *out, const char *name,
                          wire attrs)
{
    return W(w_words(1, in), w_words(2, out), w_str(3, name), w_str(4, op), attrs);
}

static inline wire x_attr_int(const char *name, int64_t v)
{
    return w_msg(5, W(w_str(1, name), w_int(3, v), w_int(20, 2)));
}

static inline wire x_attr_graph(const char *name, wire g)
{
    return w_msg(5, W(w_str(1, name), w_msg(6, g), w_int(20, 5)));
}

static inline wire x_opset(const char *domain, int64_t version)
{
    return w_msg(8, W(*domain ? w_str(1, domain) : W_NONE, w_int(2, version)));
}

/* A model around a graph. */
static inline wire x_model(int64_t ir, int64_t opset, wire graph)
{
    return W(w_int(1, ir), w_msg(7, graph), x_opset("", opset));
}

#endif
