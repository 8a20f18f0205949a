/* One input as a model in the engine's own form (domain onnx_tile: Alloc, While, Slice, Deslice;
 * docs/engine-form.md).
 *
 *   bytes --import, shapes, rules of the form--> verify
 *         --export--> bytes --import, export--> the same bytes
 *         --session, poisoned--> run, run: the same results
 *
 * Bytes that begin with "model " are the text form. LLVMFuzzerTestOneInput is libFuzzer's entry
 * (`make fuzz`).
 */
#include "engine/core/engine.h"
#include "fuzz_bounds.h"
#include "onnx/import/model_io.h"

#define VALUES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_text(const uint8_t *data, size_t size)
{
    return size >= 6 && memcmp(data, "model ", 6) == 0;
}

static ot_status load(const uint8_t *data, size_t size, ot_diag *d, ot_model **m)
{
    if (!is_text(data, size)) return ot_import_memory(data, size, NULL, d, m);
    return ot_text_parse((const char *)data, size, d, m);
}

static bool has_form(const ot_graph *g)
{
    for (uint32_t k = 0; k < g->n_nodes; k++)
        if (ot_is_tile_op(&g->nodes[k], "While")) return true;
    return false;
}

/* The bytes that the model is written as; NULL: it cannot be (no memory, contents in other
 * files). The caller frees them. */
static void *written(const ot_model *m, size_t *n)
{
    void *bytes = NULL;
    return ot_export_memory(m, &bytes, n) == OT_OK ? bytes : NULL;
}

/* The model of what the tool wrote; NULL: no memory. */
static ot_model *read_back(const void *bytes, size_t n)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_status s = ot_import_memory(bytes, n, NULL, &d, &m);
    if (s == OT_E_INPUT) {
        fprintf(stderr, "%s\n", d.message);
        OT_BUG("the tool does not read its own output");
    }
    if (s == OT_OK) s = ot_infer_shapes(m->graph, NULL, 0);
    if (s == OT_OK) s = ot_check_tile_ops(m->graph, NULL);
    if (s == OT_E_INPUT) {
        fprintf(stderr, "%s\n", m->diag->message);
        OT_BUG("the form is not what it was when it was written");
    }
    if (s == OT_OK) return m;
    ot_model_free(m);
    return NULL;
}

/* Written, read and written again, the bytes are the same. Text may state as nodes (Constant) what
 * a file that is read holds as initializers: it is compared from its first reading on. */
static void round_trip(const ot_model *m, bool is_text)
{
    size_t n = 0, n2 = 0;
    void *bytes = written(m, &n), *other = NULL;
    ot_model *again = bytes ? read_back(bytes, n) : NULL;
    if (again && is_text) round_trip(again, false);
    if (again && !is_text) other = written(again, &n2);
    if (other && (n != n2 || memcmp(bytes, other, n) != 0))
        OT_BUG("a model changes when it is read and written");
    ot_model_free(again);
    free(bytes);
    free(other);
}

/* ---- running ---- */

typedef struct arrays {
    ot_nd in[VALUES_MAX], out[VALUES_MAX];
    void *first[VALUES_MAX]; /* copies of the first run's results */
} arrays;

static bool make_inputs(const ot_session *s, arrays *x)
{
    if (ot_session_inputs(s) > VALUES_MAX || ot_session_outputs(s) > VALUES_MAX) return false;
    for (uint32_t k = 0; k < ot_session_inputs(s); k++) {
        const ot_value *v = ot_session_input(s, k);
        ot_diag d = {0};
        int64_t n;
        if (!v->is_tensor || !ot_value_is_static(v) || ot_dtype_bits(v->dtype) < 8 ||
            v->dtype == OT_STRING)
            return false;
        if (!ot_value_bytes(v, &n) ||
            ot_nd_new(&x->in[k], v->dtype, (uint32_t)v->rank, v->dims, &d) != OT_OK)
            return false;
        fuzz_fill(x->in[k].data, v->dtype, n * 8 / ot_dtype_bits(v->dtype));
    }
    return true;
}

static int64_t bytes_of(const ot_nd *a)
{
    int64_t n = ot_dtype_bits(a->dtype) / 8;
    for (uint32_t k = 0; k < a->rank; k++) n *= a->dims[k];
    return a->list || !a->data || a->dtype == OT_STRING ? 0 : n;
}

/* Keep the results of the first run, compare those of the second. */
static void look_at(const ot_session *s, arrays *x, bool second)
{
    for (uint32_t k = 0; k < ot_session_outputs(s); k++) {
        size_t n = (size_t)bytes_of(&x->out[k]);
        if (second && x->first[k] && memcmp(x->first[k], x->out[k].data, n) != 0)
            OT_BUG("two runs give two results");
        if (second || n == 0) continue;
        x->first[k] = malloc(n);
        if (x->first[k]) memcpy(x->first[k], x->out[k].data, n);
    }
}

static void run(ot_session *s, ot_diag *d)
{
    static arrays x;
    memset(&x, 0, sizeof x);
    bool made = make_inputs(s, &x);
    for (int k = 0; made && k < 2; k++) {
        for (uint32_t j = 0; j < VALUES_MAX; j++) x.out[j] = (ot_nd){0};
        ot_status st = ot_session_run(s, x.in, x.out, d);
        fuzz_expect_line(st, d->message);
        if (st != OT_OK) break;
        look_at(s, &x, k > 0);
    }
    for (uint32_t k = 0; k < VALUES_MAX; k++) {
        ot_nd_release(&x.in[k]);
        free(x.first[k]);
    }
}

static void open_and_run(ot_model *m, uint32_t threads)
{
    ot_diag d = {0};
    ot_session *s = NULL;
    ot_session_options o = {.threads = threads, .poison = true};
    ot_status st = ot_session_new(m, &o, &d, &s);
    fuzz_expect_line(st, d.message);
    if (st == OT_OK) run(s, &d);
    ot_session_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    fuzz_begin();
    ot_status s = load(data, size, &d, &m);
    fuzz_expect_line(s, d.message);
    if (s == OT_OK && has_form(m->graph)) {
        s = ot_infer_shapes(m->graph, NULL, 0);
        bool small = s == OT_OK && fuzz_is_small(m->graph);
        if (s == OT_OK) s = ot_check_tile_ops(m->graph, NULL);
        if (s == OT_OK && ot_verify(m->graph) != OT_OK) OT_BUG("what was read does not verify");
        if (s == OT_OK) round_trip(m, is_text(data, size));
        if (small && s == OT_OK) open_and_run(m, 1 + (uint32_t)size % 3);
    }
    ot_model_free(m);
    return 0;
}
