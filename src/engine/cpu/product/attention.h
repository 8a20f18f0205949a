/* Attention of a block of queries: softmax(scale * Q K' + mask) V, without an array of all scores.
 *
 *              queries, 16 a panel
 *              0..15   16..31
 *   keys 0     scores of one panel against one chunk of keys: they stay in the first cache level
 *     ..       [chunk][16] --> largest so far, exp, sums --> Y' [v_size][16] = Y' * exp(before -
 *              now) + V' * weights
 *   keys 252   the next chunk
 *
 * Operands of 16 bits are widened where they are copied, the result is rounded once. Everything
 * is computed with queries side by side: largest elements, sums and factors are vectors of
 * queries, and the weights lie as the second product reads them. Each query goes through the
 * same operations wherever its block begins, so results depend neither on blocks nor on threads.
 * Softmax is ONNX's: a query whose scores are all minus infinity, or one of which is plus
 * infinity or NaN, becomes NaN (blind_zero says otherwise of the former).
 */
#ifndef OT_ENGINE_CPU_PRODUCT_ATTENTION_H
#define OT_ENGINE_CPU_PRODUCT_ATTENTION_H

#include "engine/core/engine.h"
#include "fusion/attention_rule.h"

/* Element (i, j) is data[i * row + j * column]. */
typedef struct ot_attention_matrix {
    const void *data;
    int64_t row, column;
    ot_dtype type; /* float32 (or not said), float16, bfloat16 */
} ot_attention_matrix;

/* The matrix without its first rows and columns. */
static inline ot_attention_matrix ot_attention_from(ot_attention_matrix m, int64_t row,
                                                    int64_t column)
{
    int64_t size = ot_dtype_is_half(m.type) ? 2 : 4;
    m.data = m.data ? (const char *)m.data + (row * m.row + column * m.column) * size : NULL;
    return m;
}

typedef struct ot_attention_job {
    int64_t queries, keys, size, v_size; /* keys, queries >= 1 */
    ot_attention_matrix q, k, v;         /* [queries, size], [keys, size], [keys, v_size] */
    ot_attention_matrix mask;            /* [queries, keys], steps of 0 repeat; data NULL: none */
    void *y;                             /* [queries, v_size] of the type of q */
    int64_t y_row;
    float scale;
    int64_t seen; /* causal: query i sees the keys before seen + i; 0: all are seen */
    /* queries that see nothing but minus infinity become zero, as operators named Attention say,
     * and not NaN */
    bool blind_zero;
} ot_attention_job;

/* Floats of scratch for calls of so many panels, of arrays of that type; -1: more than can be
 * counted. */
int64_t ot_attention_scratch(ot_dtype type, int64_t panels, int64_t size, int64_t v_size);
/* On the calling thread. scratch: aligned to 64 bytes. */
void ot_attention_run(const ot_attention_job *j, float *scratch);

#endif
