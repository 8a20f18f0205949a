/* The text form: printed, read again, refused; the nearest half by exhaustive search. */
#include "ir_check.h"

/* ---- text ---- */

static void test_text_print(void **state)
{
    (void)state;
    ot_model *m = parse(
        "# comment\nmodel ir 8 opset 17 graph \"my graph\" {\n"
        "input %x : float32[1,?] input %\"odd \\\"n\\xc2\\xb7\\n\" : ? input %s : opaque\n"
        "input init %p : float32[1] = [0.1]\n"
        "init %w : float32[2,2] = [1, -0.0, inf, nan] init %big : int64[4,5] = fill -3\n"
        "init %e : float32[0,7] init %sp : opaque init %str : string[3]\n"
        "%a/b : float32[], _ = Dropout(%x, _) {f=1e-7, i=-9223372036854775808, s=\"q\\x00\\\"\", "
        "l=[], fl=[1, 2.5],"
        " fe=floats[], st=[\"u\", \"\"], se=strings[], t=tensor uint8[2] = [0, 255], o=opaque} "
        "\"name\"\n"
        "%q = \"com.microsoft\"::Gelu@1(%a/b)\n"
        "%\"r s\" = Relu@6(%q)\n"
        "output %\"r s\" output %a/b }");
    char *got = round_trip(m->graph);
    assert_string_equal(got, "model ir 8 opset 17\n"
                             "graph \"my graph\" {\n"
                             "  input %x : float32[1,?]\n"
                             "  input %\"odd \\\"n\\xc2\\xb7\\n\"\n"
                             "  input %s : opaque\n"
                             "  input init %p : float32[1] = [0.100000001]\n"
                             "  init %w : float32[2,2] = [1.0, -0.0, inf, nan]\n"
                             "  init %big : int64[4,5] = fill -3\n"
                             "  init %e : float32[0,7] = []\n"
                             "  init %sp : opaque\n"
                             "  init %str : string[3]\n"
                             "  %a/b : float32[], _ = Dropout(%x, _) {f=1.00000001e-07, "
                             "i=-9223372036854775808, s=\"q\\x00\\\"\","
                             " l=[], fl=[1.0, 2.5], fe=floats[], st=[\"u\", \"\"], se=strings[], "
                             "t=tensor uint8[2] = [0, 255], o=opaque}"
                             " \"name\"\n"
                             "  %q = \"com.microsoft\"::Gelu@1(%a/b)\n"
                             "  %\"r s\" = Relu@6(%q)\n"
                             "  output %\"r s\"\n"
                             "  output %a/b\n"
                             "}\n");
    const ot_id p = val(m->graph, "p"); /* an input may be free where its default is not */
    assert_int_equal(ot_value_set_shape(m->graph, p, 1, (const int64_t[]){OT_DIM_UNKNOWN}), OT_OK);
    free(round_trip(m->graph));
    const ot_graph *g = m->graph;
    assert_true(g->values[val(g, "p")].overridable);
    assert_false(g->values[val(g, "s")].is_tensor);
    assert_int_equal(g->values[val(g, "x")].dims[1], OT_DIM_UNKNOWN);
    assert_int_equal(g->nodes[node_named(g, "name")].source, 0);
    assert_int_equal(g->nodes[2].version, 6);
    assert_int_equal(m->weight_bytes, 4 + 16 + 160);
    free(got);
    ot_model_free(m);
}

static void test_text_bodies(void **state)
{
    (void)state;
    ot_model *m = parse(sound);
    const ot_graph *g = m->graph;
    assert_int_equal(nof(m->graph, "loop")->n_captured, 1);
    assert_int_equal(nof(m->graph, "loop")->captured[0], val(g, "w"));
    assert_int_equal(g->values[val(g, "w")].n_uses, 2);
    free(round_trip(g));
    ot_model_free(m);
    /* two levels: the middle body passes the value on; forward references to what comes later in
     * the file */
    m = parse(
        "model ir 8 opset 17 graph g { input %x : float32[1] output %o\n"
        "%o = If(%x) {b=graph { outer %late %p : float32[1] = If(%late) {b=graph in { outer %late\n"
        "%q : float32[1] = Relu(%late) output %q }} output %p }} \"if\"\n %late = Relu(%x) "
        "\"late\"\n }");
    char *order = order_of(m->graph);
    assert_string_equal(order, "late if");
    free(order);
    free(round_trip(m->graph));
    ot_model_free(m);
}

/* The half-precision number next to x by trying all of them; ties go to the even code. */
static uint16_t nearest_half(double x)
{
    uint32_t best = 0x7c00;
    double least = fabs(x) - 65536; /* infinity stands where the next number would be */
    least = fabs(least);
    for (uint32_t code = 0; code < 0x7c00; code++) {
        int exp = (int)(code >> 10);
        double y = exp ? (1 + (code & 1023) / 1024.0) * pow(2, exp - 15)
                       : (code & 1023) / 1024.0 * pow(2, -14);
        double off = fabs(fabs(x) - y);
        if (off < least || (off == least && code % 2 == 0 && best % 2 == 1)) {
            least = off;
            best = code;
        }
    }
    if (fabs(x) >= 65536) best = 0x7c00;
    return (uint16_t)(best | (x < 0 ? 0x8000u : 0u));
}

/* Every half-precision number survives, and decimal literals round to the nearest one. */
static void test_text_half(void **state)
{
    (void)state;
    ot_model *m = ot_model_new(NULL);
    m->ir_version = 8;
    int64_t dim = 16;
    for (uint32_t base = 0; base < 65536; base += 16) {
        ot_tensor *t = OT_NEW(m->arena, ot_tensor);
        uint16_t *data = OT_NEW_N(m->arena, uint16_t, 16);
        for (uint32_t k = 0; k < 16; k++) data[k] = (uint16_t)(base + k);
        *t = (ot_tensor){.dtype = OT_F16, .rank = 1, .dims = &dim, .data = data, .bytes = 32};
        ot_id v = ot_value_new(m->graph, ot_format(m->arena, "h%u", base), OT_F16, 1, &dim);
        m->graph->values[v].init = t;
    }
    char *text = round_trip(m->graph);
    ot_model *back = parse(text);
    for (uint32_t code = 0; code < 65536; code++) {
        char name[16];
        snprintf(name, sizeof name, "h%u", code / 16 * 16);
        uint16_t got =
            ((const uint16_t *)back->graph->values[val(back->graph, name)].init->data)[code % 16];
        bool nan = (code & 0x7c00) == 0x7c00 && (code & 0x3ff);
        if (nan)
            assert_true((got & 0x7c00) == 0x7c00 && (got & 0x3ff));
        else
            assert_int_equal(got, code);
    }
    ot_model_free(back);
    ot_model_free(m);
    free(text);
    static const double samples[] = {1e-8,         2.98e-8,       5.97e-8, 6.1e-5, 0.1,
                                     1.0009765625, 1.00048828125, 1.0005,  2049,   65519.9,
                                     65520,        1e9,           -0.333};
    for (size_t k = 0; k < sizeof samples / sizeof *samples; k++) {
        char buf[128];
        snprintf(buf, sizeof buf, "model ir 8 opset 17 graph g { init %%h : float16[] = [%.17g] }",
                 samples[k]);
        m = parse(buf);
        assert_int_equal(*(const uint16_t *)m->graph->values[0].init->data,
                         nearest_half(samples[k]));
        ot_model_free(m);
    }
}

static void test_text_contents(void **state)
{
    (void)state;
    ot_model *m = parse(
        "model ir 8 opset 17 graph g { init %r : float32[4] = random 0 init %i : int8[3] = random "
        "0\n"
        "init %s : float32[2] = random 0 * 0.5 init %j : int32[2] = random 0 init %b : float32[1] "
        "= data \"AACAPw==\"\n"
        "init %big : float32[20] = random 1 init %u : uint64[1] = [18446744073709551615]\n"
        "init %m : int64[1] = [-9223372036854775808] init %c : complex64[2] = bits 0x5 init %bf : "
        "bfloat16[2] = [1.5, -3]\n"
        "init %d : float64[1] = [0.1] init %x : float32[4] = [-3.40282347e+38, -3.41e38, "
        "1.40129846e-45,"
        " 0.49999997] init %f8 : float8_e4m3fn[1] = [200] }");
    const ot_graph *g = m->graph;
    /* splitmix64 from seed 0 begins e220a8397b1dcdaf 6e789e6aa1b965f4 (published test vector) */
    const float *r = g->values[val(g, "r")].init->data;
    assert_true(r[0] == (float)0xe220a8 / 8388608.0f - 1.0f);
    assert_true(r[1] == (float)0x6e789e / 8388608.0f - 1.0f);
    const int8_t *i8 = g->values[val(g, "i")].init->data;
    assert_int_equal(i8[0], (int8_t)0xe2);
    const float *s = g->values[val(g, "s")].init->data;
    assert_true(s[0] == r[0] * 0.5f);
    const int32_t *i32 = g->values[val(g, "j")].init->data;
    assert_int_equal(i32[0], 0xe - 8);
    assert_true(*(const float *)g->values[val(g, "b")].init->data == 1.0f);
    assert_true(*(const uint64_t *)g->values[val(g, "u")].init->data == UINT64_MAX);
    assert_true(*(const double *)g->values[val(g, "d")].init->data == 0.1);
    assert_int_equal(*(const uint16_t *)g->values[val(g, "bf")].init->data, 0x3fc0);
    /* nine digits of the largest float are a little above it */
    const float *x = g->values[val(g, "x")].init->data;
    assert_true(x[0] == -3.40282347e+38f && x[1] == -INFINITY && x[2] == 0x1p-149f &&
                x[3] == 0x1.fffffep-2f);
    assert_null(g->values[val(g, "c")].init->data);
    /* the hash of a large tensor: FNV-1a, computed here */
    uint64_t h = 0xcbf29ce484222325u;
    const unsigned char *p = g->values[val(g, "big")].init->data;
    for (int k = 0; k < 80; k++) h = (h ^ p[k]) * 0x100000001b3u;
    char want[64];
    snprintf(want, sizeof want, "%%big : float32[20] = bits 0x%016llx\n", (unsigned long long)h);
    char *text = round_trip(g);
    if (!strstr(text, want)) fail_msg("no '%s' in %s", want, text);
    free(text);
    ot_model_free(m);
}

static void test_text_errors(void **state)
{
    (void)state;
    parse_fails("model ir 0 opset 17\ngraph g {\n}\n", "1:10: version out of range");
    parse_fails("", "1:1: expected 'model");
    parse_fails("model ir 8 opset 17 graph g {", "1:30: expected a declaration");
    parse_fails("model ir 8 opset 17 graph g {\n input %x input %x }",
                "2:17: value 'x' is already defined in line 2");
    parse_fails("model ir 8 opset 17 graph g {\n\n output %y }", "3:9: value 'y' is not defined");
    parse_fails("model ir 8 opset 17 graph g { %y = Relu(%y2) }",
                "1:41: value 'y2' is not defined");
    parse_fails("model ir 8 opset 17 graph g { input %x : float31 }",
                "unknown element type 'float31'");
    parse_fails("model ir 8 opset 17 graph g { input %x : float32[-1] }", "negative dimension");
    parse_fails(
        "model ir 8 opset 17 graph g { input %x : float32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] }",
        "16 dimensions");
    parse_fails("model ir 8 opset 17 graph g { init %x : float32[2] = [1] }", "needs 2 elements");
    parse_fails("model ir 8 opset 17 graph g { init %x : float32[1] = [1, 2] }", "more than the 1");
    parse_fails("model ir 8 opset 17 graph g { init %x : uint8[1] = [256] }", "does not fit uint8");
    parse_fails("model ir 8 opset 17 graph g { init %x : int8[1] = [-129] }", "does not fit int8");
    parse_fails("model ir 8 opset 17 graph g { init %x : bool[1] = [2] }", "does not fit bool");
    parse_fails("model ir 8 opset 17 graph g { init %x : float32[?] = [2] }", "fixed dimensions");
    parse_fails("model ir 8 opset 17 graph g { init %x : float32[4000000000,4000000000] }",
                "too large");
    parse_fails("model ir 8 opset 17 graph g { init %x : float32[1000000000] = fill 0 }",
                "more than 1073741824 bytes");
    parse_fails("model ir 8 opset 17 graph g { init %x : string[1] = [1] }", "cannot be written");
    parse_fails("model ir 8 opset 17 graph g { input %x output %y %y = Relu(%x) {a=1, a=2} }",
                "attribute 'a' is given twice");
    parse_fails("model ir 8 opset 17 graph g { outer %x }", "'outer' belongs into a body");
    parse_fails(
        "model ir 8 opset 17 graph g { input %x output %y %y = If(%x) {b=graph { output %x }} }",
        "declared with 'outer'");
    parse_fails("model ir 8 opset 17 graph g { input %x output %y %y = If(%x) {b=graph { init %x : "
                "float32[] output %x }} }",
                "hides a value");
    parse_fails("model ir 8 opset 17 graph g { } x", "end of the text");
    parse_fails("model ir 8 opset 17 graph g { %x = Relu() {a=99999999999999999999} }",
                "too large number");
    parse_fails("model ir 8 opset 17 graph g { %x = Relu() {a=9223372036854775808} }",
                "does not fit 64 bits");
    parse_fails("model ir 8 opset 17 graph g { %x = Relu() {a=[1, \"s\"]} }",
                "a string in a list of numbers");
    parse_fails("model ir 8 opset 17 graph g { %\"\" = Relu() }", "cannot be empty");
    parse_fails("model ir 8 opset 17 graph g { %\"a\n\" = Relu() }", "closing quote");
    char deep[4096] = "model ir 8 opset 17 ";
    for (int k = 0; k < 60; k++) strcat(deep, "graph { %x = If() {b=");
    parse_fails(deep, "nested deeper than 32");
}

/* Cut the text at every byte, then change bytes: an error or a model, never anything else (run
 * under ASan, too). */
static void test_text_garbage(void **state)
{
    (void)state;
    size_t n = strlen(sound);
    uint32_t s = 12345;
    for (size_t k = 0; k < n + 4000; k++) {
        size_t len = k < n ? k : n;
        char *copy = malloc(len + 1);
        assert_non_null(copy);
        memcpy(copy, sound, len); /* exact size: reading behind the end is seen by ASan */
        static const char spice[] = "%\"{}()[]=,:_?@#x0-.\\\xff";
        for (int j = 0; k >= n && j < 1 + (int)(k % 3); j++)
            copy[rng_next(&s) % n] = spice[rng_next(&s) % (sizeof spice)];
        ot_diag d = {0};
        ot_model *m = NULL;
        ot_status st = ot_text_parse(copy, len, &d, &m);
        if (st == OT_OK) {
            free(round_trip(m->graph));
            ot_model_free(m);
        } else {
            assert_int_equal(st, OT_E_INPUT);
            assert_true(d.message[0] != 0);
        }
        free(copy);
    }
}

/* Let every allocation fail in turn: OT_E_NOMEM, no crash, no leak (under ASan), until it succeeds.
 */
static int allocations_left;

static void *failing_hook(void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return allocations_left-- > 0 ? realloc(ptr, new_size) : NULL;
}

static void test_text_no_memory(void **state)
{
    (void)state;
    ot_status st = OT_E_NOMEM;
    int k = 0;
    ot_set_alloc_hook(failing_hook);
    for (; st != OT_OK && k < 10000; k++) {
        ot_diag d = {0};
        ot_model *m = NULL;
        allocations_left = k;
        st = ot_text_parse(sound, strlen(sound), &d, &m);
        if (st == OT_OK)
            ot_model_free(m);
        else if (st != OT_E_NOMEM)
            break;
    }
    ot_set_alloc_hook(NULL);
    assert_int_equal(st, OT_OK);
    assert_true(k > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_print),     cmocka_unit_test(test_text_bodies),
        cmocka_unit_test(test_text_half),      cmocka_unit_test(test_text_contents),
        cmocka_unit_test(test_text_errors),    cmocka_unit_test(test_text_garbage),
        cmocka_unit_test(test_text_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
