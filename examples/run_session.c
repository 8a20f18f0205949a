/* Example: run a model with the library.
 *
 *   run_session MODEL.onnx [threads]
 *
 * Fills the inputs with 0.5 (integers with 1; dimensions that the model leaves free are 1), runs
 * twice, the second time into memory of its own where the outputs' dimensions are fixed, and
 * prints each output's sum. Both runs must agree.
 */
#include <onnx_tile.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS_MAX 64

static size_t element_bytes(int32_t type)
{
    switch (type) {
    case ONNX_TILE_UINT8:
    case ONNX_TILE_INT8:
    case ONNX_TILE_BOOL: return 1;
    case ONNX_TILE_UINT16:
    case ONNX_TILE_INT16:
    case ONNX_TILE_FLOAT16:
    case ONNX_TILE_BFLOAT16: return 2;
    case ONNX_TILE_FLOAT32:
    case ONNX_TILE_INT32:
    case ONNX_TILE_UINT32: return 4;
    default: return 8;
    }
}

static size_t element_count(const onnx_tile_tensor *t)
{
    size_t n = 1;
    for (int32_t k = 0; k < t->rank; k++) n *= (size_t)(t->dims[k] < 1 ? 1 : t->dims[k]);
    return n;
}

/* 0.5, or 1 for what has no fractions (little-endian). */
static void fill(void *data, const onnx_tile_tensor *t, size_t n)
{
    size_t size = element_bytes(t->type);
    float half = 0.5f;
    double dhalf = 0.5;
    uint64_t one = t->type == ONNX_TILE_FLOAT16    ? 0x3800
                   : t->type == ONNX_TILE_BFLOAT16 ? 0x3f00
                                                   : 1;
    for (size_t k = 0; k < n; k++) {
        const void *from = t->type == ONNX_TILE_FLOAT32   ? (void *)&half
                           : t->type == ONNX_TILE_FLOAT64 ? (void *)&dhalf
                                                          : (void *)&one;
        memcpy((char *)data + k * size, from, size);
    }
}

static double sum_of(const void *data, const onnx_tile_tensor *t)
{
    size_t n = element_count(t);
    double sum = 0;
    for (size_t k = 0; k < n && t->type == ONNX_TILE_FLOAT32; k++)
        sum += (double)((const float *)data)[k];
    for (size_t k = 0; k < n && t->type == ONNX_TILE_INT64; k++)
        sum += (double)((const int64_t *)data)[k];
    return sum;
}

/* Memory for every input, bound; input[k] is to be freed. */
static onnx_tile_status bind_inputs(onnx_tile_session *s, void **input)
{
    for (uint32_t k = 0; k < onnx_tile_session_input_count(s) && k < TENSORS_MAX; k++) {
        onnx_tile_tensor t;
        onnx_tile_status st = onnx_tile_session_input(s, k, &t);
        if (st != ONNX_TILE_OK) return st;
        size_t n = element_count(&t);
        for (int32_t j = 0; j < t.rank; j++)
            if (t.dims[j] < 1) t.dims[j] = 1;
        input[k] = calloc(n + 1, element_bytes(t.type));
        if (!input[k]) return ONNX_TILE_NOMEM;
        fill(input[k], &t, n);
        st = onnx_tile_session_bind_input(s, k, input[k], t.dims,
                                          (uint32_t)(t.rank < 0 ? 0 : t.rank));
        if (st != ONNX_TILE_OK) return st;
    }
    return ONNX_TILE_OK;
}

/* Bind memory for the outputs of fixed dimensions; output[k] is to be freed. */
static onnx_tile_status bind_outputs(onnx_tile_session *s, void **output)
{
    for (uint32_t k = 0; k < onnx_tile_session_output_count(s) && k < TENSORS_MAX; k++) {
        onnx_tile_tensor t;
        onnx_tile_status st = onnx_tile_session_output(s, k, &t);
        if (st != ONNX_TILE_OK) return st;
        int fixed = t.rank >= 0;
        for (int32_t j = 0; j < t.rank; j++) fixed = fixed && t.dims[j] > 0;
        if (!fixed) continue;
        size_t bytes = element_count(&t) * element_bytes(t.type);
        output[k] = malloc(bytes);
        if (!output[k]) return ONNX_TILE_NOMEM;
        st = onnx_tile_session_bind_output(s, k, output[k], bytes);
        if (st != ONNX_TILE_OK) return st;
    }
    return ONNX_TILE_OK;
}

static onnx_tile_status sums(onnx_tile_session *s, double *out)
{
    for (uint32_t k = 0; k < onnx_tile_session_output_count(s) && k < TENSORS_MAX; k++) {
        onnx_tile_tensor t;
        const void *data;
        onnx_tile_status st = onnx_tile_session_result(s, k, &t, &data);
        if (st != ONNX_TILE_OK) return st;
        out[k] = sum_of(data, &t);
        printf("%s: %d dimensions, sum %.9g\n", t.name, (int)t.rank, out[k]);
    }
    return ONNX_TILE_OK;
}

int main(int argc, char **argv)
{
    onnx_tile_session *s;
    void *input[TENSORS_MAX] = {0}, *output[TENSORS_MAX] = {0};
    double first[TENSORS_MAX] = {0}, second[TENSORS_MAX] = {0};

    if (argc < 2) {
        fprintf(stderr, "usage: run_session MODEL.onnx [threads]\n");
        return 2;
    }
    if (onnx_tile_session_create(&s) != ONNX_TILE_OK) return 4;
    onnx_tile_status st = onnx_tile_session_set_threads(s, argc > 2 ? (uint32_t)atoi(argv[2]) : 1);
    if (st == ONNX_TILE_OK) st = onnx_tile_session_load_file(s, argv[1]);
    if (st == ONNX_TILE_OK) st = bind_inputs(s, input);
    if (st == ONNX_TILE_OK) st = onnx_tile_session_run(s);
    if (st == ONNX_TILE_OK) st = sums(s, first);
    if (st == ONNX_TILE_OK) st = bind_outputs(s, output);
    if (st == ONNX_TILE_OK) st = onnx_tile_session_run(s);
    if (st == ONNX_TILE_OK) st = sums(s, second);
    int rc = (int)st;
    if (st != ONNX_TILE_OK) fprintf(stderr, "run_session: %s\n", onnx_tile_session_error(s));
    for (int k = 0; k < TENSORS_MAX && st == ONNX_TILE_OK; k++)
        if (first[k] != second[k]) rc = 1; /* both are sums of the same numbers in the same order */
    onnx_tile_session_free(s);
    for (int k = 0; k < TENSORS_MAX; k++) {
        free(input[k]);
        free(output[k]);
    }
    return rc;
}
