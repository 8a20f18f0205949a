/* The bytes of a fuzzer's input: a number that is the same for the same bytes, and the model that
 * they are, text or a file. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include "onnx/import/model_io.h"

#include <stdint.h>
#include <string.h>

static inline uint32_t fuzz_hash(const uint8_t *data, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t k = 0; k < size; k++) h = (h ^ data[k]) * 16777619u;
    return h ^ (h >> 15);
}

static inline ot_status fuzz_load(const uint8_t *data, size_t size, ot_diag *d, ot_model **m)
{
    if (size >= 6 && memcmp(data, "model ", 6) == 0)
        return ot_text_parse((const char *)data, size, d, m);
    return ot_import_memory(data, size, NULL, d, m);
}

#endif
