/* One input as a model that a session of the public API loads, and runs twice.
 *
 *   bytes --import--> is it small? --load_memory--> bind inputs --run, run--> read all results
 *
 * LLVMFuzzerTestOneInput is libFuzzer's entry (`make fuzz`). Whatever is wrong with an input
 * must end in a status and one line, in bounded memory and time (fuzz_bounds.h); results must be
 * memory that can be read.
 */
#include "onnx_tile.h"

#include "fuzz_bounds.h"
#include "onnx/import/model_io.h"

#define INPUTS_MAX 16
#define SIDE       3 /* of dynamic dimensions */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Read once by itself: whether running it is a matter of moments. */
static bool is_small(const uint8_t *data, size_t size)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_status s = ot_import_memory(data, size, NULL, &d, &m);
    if (s == OT_OK) s = ot_infer_shapes(m->graph, NULL, 0);
    bool ok = s == OT_OK && fuzz_is_small(m->graph);
    ot_model_free(m);
    return ok;
}

static void expect_line(onnx_tile_status s, const onnx_tile_session *x)
{
    fuzz_expect_line((ot_status)s, onnx_tile_session_error(x));
}

/* An array for input k; dynamic dimensions are SIDE. Returned in *data, which the caller frees. */
static bool bind_input(onnx_tile_session *s, uint32_t k, void **data)
{
    onnx_tile_tensor t;
    int64_t n = 1;
    if (onnx_tile_session_input(s, k, &t) != ONNX_TILE_OK || t.rank < 0) return false;
    uint32_t bits = ot_dtype_bits((ot_dtype)t.type);
    for (int32_t j = 0; j < t.rank; j++) {
        if (t.dims[j] < 0) t.dims[j] = SIDE;
        if (__builtin_mul_overflow(n, t.dims[j], &n) || n > ALIVE_MAX / 16) return false;
    }
    if (bits < 8) return false;
    *data = calloc((size_t)n + 1, bits / 8);
    if (!*data) return false;
    fuzz_fill(*data, (ot_dtype)t.type, n);
    onnx_tile_status st = onnx_tile_session_bind_input(s, k, *data, t.dims, (uint32_t)t.rank);
    expect_line(st, s);
    return st == ONNX_TILE_OK;
}

/* Touch every byte. */
static void read_results(onnx_tile_session *s)
{
    static volatile uint8_t sink;
    for (uint32_t k = 0; k < onnx_tile_session_output_count(s); k++) {
        onnx_tile_tensor t;
        const void *data;
        int64_t n = 1;
        if (onnx_tile_session_result(s, k, &t, &data) != ONNX_TILE_OK) continue;
        for (int32_t j = 0; j < t.rank; j++) n *= t.dims[j];
        n = n * ot_dtype_bits((ot_dtype)t.type) / 8;
        for (int64_t j = 0; j < n; j++) sink = (uint8_t)(sink ^ ((const uint8_t *)data)[j]);
    }
}

static void run(onnx_tile_session *s)
{
    void *data[INPUTS_MAX] = {NULL};
    uint32_t n = onnx_tile_session_input_count(s);
    bool bound = n <= INPUTS_MAX;
    for (uint32_t k = 0; bound && k < n; k++) bound = bind_input(s, k, &data[k]);
    for (int again = 0; bound && again < 2; again++) {
        onnx_tile_status st = onnx_tile_session_run(s);
        expect_line(st, s);
        if (st != ONNX_TILE_OK) break;
        read_results(s);
    }
    onnx_tile_session_free(s);
    for (uint32_t k = 0; k < INPUTS_MAX; k++) free(data[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    onnx_tile_session *s = NULL;
    fuzz_begin();
    if (!is_small(data, size) || onnx_tile_session_create(&s) != ONNX_TILE_OK) return 0;
    onnx_tile_status st = onnx_tile_session_set_threads(s, 1 + size % 2);
    if (st == ONNX_TILE_OK) st = onnx_tile_session_load_memory(s, data, size, NULL);
    expect_line(st, s);
    if (st == ONNX_TILE_OK)
        run(s);
    else
        onnx_tile_session_free(s);
    if (atomic_load(&fuzz_alive) != 0) OT_BUG("a session keeps memory");
    return 0;
}
