/* Sizes to plan for where nobody gives one (src/ops/guessed_size.c, dim_names.c): what each kind of
 * input gets, names that are shared, smaller sizes where the model takes no larger one, and models
 * of which nothing is guessed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "app/pipeline.h"
#include "onnx/import/model_io.h"
#include "stingy.h"
#include "wire.h"

#include "ops/guessed_size.h"

typedef struct guessed {
    ot_diag diag;
    ot_run run;
} guessed;

/* A graph of these lines; `design`: what the caller gives. */
static void read_run(guessed *g, const char *lines, const ot_shape_binding *design, size_t n)
{
    char text[4096];
    *g = (guessed){0};
    snprintf(text, sizeof text, "model ir 8 opset 17\ngraph g {\n%s}\n", lines);
    if (ot_text_parse(text, strlen(text), &g->diag, &g->run.model) != OT_OK)
        fail_msg("%s\n%s", g->diag.message, text);
    g->run.diag = &g->diag;
    g->run.options.design = design;
    g->run.options.n_design = n;
}

static ot_status guess(guessed *g)
{
    ot_run *r = &g->run;
    ot_guessed_sizes sizes;
    OT_TRY(ot_guess_sizes(r->model, r->options.design, r->options.n_design, "--design",
                          r->model->arena, &sizes));
    r->guessed = sizes.found;
    if (!sizes.found) return OT_OK;
    r->options.design = sizes.all;
    r->options.n_design = sizes.n;
    return OT_OK;
}

/* The guess as text, "x=1,3,1024,1024 z=..."; "" where there is none. */
static const char *guess_of(guessed *g)
{
    static char text[512];
    size_t used = 0;
    *text = '\0';
    if (guess(g) != OT_OK) fail_msg("%s", g->diag.message);
    if (!g->run.guessed) return text;
    for (size_t k = 0; k < g->run.options.n_design; k++) {
        const ot_shape_binding *b = &g->run.options.design[k];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=", k ? " " : "", b->input);
        for (uint32_t d = 0; d < b->rank; d++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", d ? "," : "",
                                     (long long)b->dims[d]);
    }
    return text;
}

static void expect_guess(const char *lines, const char *want)
{
    guessed g;
    read_run(&g, lines, NULL, 0);
    const char *got = guess_of(&g);
    if (strcmp(got, want) != 0) fail_msg("'%s', not '%s', of\n%s", got, want, lines);
    assert_int_equal(g.run.guessed, *want != '\0');
    ot_run_free(&g.run);
}

/* By rank, what is free of it, and the type of elements. */
static void each_kind_of_input(void **state)
{
    (void)state;
    static const struct {
        const char *input, *want;
    } cases[] = {
        {"float32[1,3,?,?]", "x=1,3,1024,1024"}, /* a map */
        {"float32[?,8,?,?]", "x=1,8,1024,1024"}, /* of any batch */
        {"float32[?,?,?,?]", "x=1,3,1024,1024"}, /* of channels that are free, too */
        {"float32[1,3,?,64]", "x=1,3,4096,64"},  /* one dynamic extent: a line */
        {"float32[?,80,?]", "x=1,80,4096"},      /* frames */
        {"float32[1,?]", "x=1,4096"},            /* samples */
        {"int64[1,?]", "x=1,1024"},              /* tokens */
        {"int32[?,?]", "x=1,1024"},
        {"float32[?]", "x=4096"}, /* no batch in front */
        {"int64[?]", "x=1024"},
        {"float32[1,1,?,?,?]", "x=1,1,128,128,128"}, /* a volume */
        {"float32[?,?,?,?,?]", "x=1,3,128,128,128"},
        {"float32[?,3,32,32]", "x=1,3,32,32"}, /* the batch alone */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char lines[256];
        snprintf(lines, sizeof lines, "  input %%x : %s\n  %%y = Identity(%%x)\n  output %%y\n",
                 cases[k].input);
        expect_guess(lines, cases[k].want);
    }
}

/* An input of a file whose dimensions are words: "n t". */
static wire named_value(const char *name, int type, const char *words)
{
    wire shape = W_NONE;
    while (*words) {
        const size_t n = strcspn(words, " ");
        shape = w_cat(shape, w_msg(1, w_bytes(2, words, n)));
        words += n + (words[n] == ' ');
    }
    return W(w_str(1, name), w_msg(2, w_msg(1, W(w_int(1, type), w_msg(2, shape)))));
}

/* A file of two inputs, x of floats and z of int64, whose dimensions have names. */
static void read_two(guessed *g, const char *x, const char *z)
{
    enum { FLOAT = 1, INT64 = 7 };
    *g = (guessed){.run.diag = NULL};
    const wire graph = W(
        w_msg(1, x_node("Relu", "x", "y", "relu", W_NONE)),
        w_msg(1, x_node("Neg", "z", "w", "neg", W_NONE)), w_str(2, "g"),
        w_msg(11, named_value("x", FLOAT, x)), w_msg(11, named_value("z", INT64, z)),
        w_msg(12, named_value("y", FLOAT, x)), w_msg(12, named_value("w", INT64, z)));
    const wire model = x_model(8, 17, graph);
    g->run.diag = &g->diag;
    if (ot_import_memory(model.data, model.n, NULL, &g->diag, &g->run.model) != OT_OK)
        fail_msg("%s", g->diag.message);
}

/* given: a binding of the caller's, or NULL. */
static void expect_beside(const ot_shape_binding *given, const char *x, const char *z,
                          const char *want)
{
    guessed g;
    read_two(&g, x, z);
    g.run.options.design = given;
    g.run.options.n_design = given ? 1 : 0;
    assert_string_equal(guess_of(&g), want);
    ot_run_free(&g.run);
    wire_reset();
}

static void expect_named(const char *x, const char *z, const char *want)
{
    expect_beside(NULL, x, z, want);
}

/* Dimensions of one name have one extent, whatever they would have alone; a name that the batch
 * has as well as others says nothing. */
static void names_of_dimensions(void **state)
{
    (void)state;
    expect_named("n t", "n u", "x=1,4096 z=1,1024");
    expect_named("n t", "n t", "x=1,4096 z=1,4096"); /* tokens as many as samples */
    expect_named("n c h w", "n h", "x=1,3,1024,1024 z=1,1024");
    expect_named("None None None None", "None None", "x=1,3,1024,1024 z=1,1024");
}

/* Extents of z once x has 2 x 3 x 48 x 40, "2,?"; also_z: z has a binding of its own. */
static void expect_bound(const char *x, const char *z, bool also_z, const char *want)
{
    static const int64_t dims[] = {2, 3, 48, 40}, own[] = {2, 7};
    const ot_shape_binding all[] = {{"x", 4, dims, false, NULL}, {"z", 2, own, false, NULL}};
    char got[64] = "";
    guessed g;
    read_two(&g, x, z);
    ot_graph *graph = g.run.model->graph;
    assert_int_equal(ot_infer_shapes(graph, all, also_z ? 2 : 1), OT_OK);
    for (const char *name = "zw"; *name; name++) { /* the input, and what follows from it */
        const ot_value *v = &graph->values[ot_value_find(graph, *name == 'z' ? "z" : "w")];
        for (int32_t d = 0; d < v->rank; d++) {
            const char *sep = d ? "," : "";
            const size_t n = strlen(got);
            if (v->dims[d] == OT_DIM_UNKNOWN)
                snprintf(got + n, sizeof got - n, "%s?", sep);
            else
                snprintf(got + n, sizeof got - n, "%s%lld", sep, (long long)v->dims[d]);
        }
        if (*name == 'z') strcat(got, " ");
    }
    assert_string_equal(got, want);
    ot_run_free(&g.run);
    wire_reset();
}

/* A size that is given for one input is that of others by the names of dimensions. */
static void names_of_given_sizes(void **state)
{
    (void)state;
    expect_bound("n c h w", "n h", false, "2,48 2,48");
    expect_bound("n c h w", "n t", false, "2,? 2,?");
    expect_bound("n c h w", "n h", true, "2,7 2,7"); /* its own counts */
    expect_bound("None None None None", "None None", false, "?,? ?,?");
}

/* What has a size already is not asked: fixed inputs, inputs with a value, those of the caller. */
static void what_is_not_asked(void **state)
{
    (void)state;
    static const int64_t dims[] = {2, 3, 48, 40};
    const ot_shape_binding given = {"x", 4, dims, false, "--design"};
    guessed g;
    expect_guess("  input %x : float32[1,3,8,8]\n  %y = Relu(%x)\n  output %y\n", "");
    read_run(&g,
             "  input %x : float32[?,3,?,?]\n  input %m : float32[?,3,?,?]\n"
             "  input %still : float32[1]\n  %a = Relu(%x)\n  %b = Relu(%m)\n"
             "  %c = Relu(%still)\n  output %a\n  output %b\n  output %c\n",
             &given, 1);
    assert_string_equal(guess_of(&g), "x=2,3,48,40 m=1,3,1024,1024");
    ot_run_free(&g.run);
    /* a name that is given counts for the others, too */
    expect_beside(&given, "n c h w", "n h", "x=2,3,48,40 z=2,48");
    /* all of them are given: there is nothing to guess */
    read_run(&g, "  input %x : float32[?,3,?,?]\n  %y = Relu(%x)\n  output %y\n", &given, 1);
    assert_string_equal(guess_of(&g), "");
    assert_ptr_equal(g.run.options.design, &given);
    assert_int_equal(g.run.options.n_design, 1);
    ot_run_free(&g.run);
    /* an input that nothing is known of */
    expect_guess("  input %x : float32\n  %y = Relu(%x)\n  output %y\n", "");
    expect_guess("  input %x : float32[1,3,?,?]\n  input %z : float32\n  %y = Relu(%x)\n"
                 "  %w = Relu(%z)\n  output %y\n  output %w\n",
                 "");
}

/* The largest guessed size that the model takes: its operators say which. */
static void smaller_where_it_must_be(void **state)
{
    (void)state;
    /* 4 x 222 x 222 numbers, and no others */
    expect_guess("  input %x : float32[?,3,?,?]\n  init %w : float32[4,3,3,3] = random 1\n"
                 "  init %s : int64[2] = [1,197136]\n  %c = Conv(%x, %w)\n"
                 "  %y = Reshape(%c, %s)\n  output %y\n",
                 "x=1,3,224,224");
    /* half a GiB is the most that a tensor may take: 512 maps of 1024 x 1024 would be two */
    expect_guess("  input %x : float32[?,256,?,?]\n  init %w : float32[512,256,1,1] = fill 1\n"
                 "  %y = Conv(%x, %w)\n  output %y\n",
                 "x=1,256,512,512");
    /* one channel where three are not taken */
    expect_guess("  input %x : float32[?,?,?,?]\n  init %w : float32[4,1,3,3] = random 1\n"
                 "  %y = Conv(%x, %w)\n  output %y\n",
                 "x=1,1,1024,1024");
    /* five of them are no usual number: none is found, and nothing changes */
    expect_guess("  input %x : float32[?,?,?,?]\n  init %w : float32[4,5,3,3] = random 1\n"
                 "  %y = Conv(%x, %w)\n  output %y\n",
                 "");
}

static void out_of_memory(void **state)
{
    (void)state;
    for (long n = 0;; n += 1 + n / 4) {
        guessed g;
        read_run(&g, "  input %x : float32[?,3,?,?]\n  %y = Relu(%x)\n  output %y\n", NULL, 0);
        ot_set_alloc_hook(stingy);
        allowed = n;
        const ot_status s = guess(&g);
        ot_set_alloc_hook(NULL);
        const bool found = g.run.guessed;
        ot_run_free(&g.run);
        if (s == OT_OK) {
            assert_true(found);
            assert_true(n > 2);
            return;
        }
        assert_int_equal(s, OT_E_NOMEM);
        assert_false(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_input),       cmocka_unit_test(names_of_dimensions),
        cmocka_unit_test(names_of_given_sizes),     cmocka_unit_test(what_is_not_asked),
        cmocka_unit_test(smaller_where_it_must_be), cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
