/* Fields of protobuf messages, written one behind the other. Private to src/ort.
 *
 *     size_t at = ort_open(&b, 7);        message field 7 begins
 *     ort_put_text(&b, 2, "name");
 *     ort_close(&b, at);
 *
 * Lengths take five bytes, whatever they are, so that a message is written in one pass.
 */
#ifndef OT_ORT_ORT_BYTES_H
#define OT_ORT_ORT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ort_bytes {
    uint8_t *at; /* [n] malloc'ed */
    size_t n, cap;
    bool failed; /* memory ran out, or a length is too large; all that follows does nothing */
} ort_bytes;

void ort_put_int(ort_bytes *b, uint32_t field, int64_t value);
void ort_put_float(ort_bytes *b, uint32_t field, float value);
void ort_put_data(ort_bytes *b, uint32_t field, const void *data, size_t n);
void ort_put_text(ort_bytes *b, uint32_t field, const char *text);
size_t ort_open(ort_bytes *b, uint32_t field);
void ort_close(ort_bytes *b, size_t at);
void ort_bytes_free(ort_bytes *b); /* it is empty then */

#endif
