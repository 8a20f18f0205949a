/* Graphs from text, and what tests of the graph ask of them. */
#ifndef TEST_IR_CHECK_H
#define TEST_IR_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "onnx/graph/ir.h"

/* ---- helpers ---- */

static inline ot_model *parse(const char *text)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_status st = ot_text_parse(text, strlen(text), &d, &m);
    if (st != OT_OK) fail_msg("%s\nin:\n%s", d.message, text);
    m->diag = NULL;
    return m;
}

static inline void parse_fails(const char *text, const char *part)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_E_INPUT);
    if (!strstr(d.message, part)) fail_msg("message '%s' lacks '%s'", d.message, part);
}

static inline char *print(const ot_graph *g)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    assert_int_equal(ot_text_print(g, f), OT_OK);
    fclose(f);
    return text;
}

/* parse(print(g)) prints the same; returns the text, to be freed. */
static inline char *round_trip(const ot_graph *g)
{
    char *first = print(g);
    ot_model *m = parse(first);
    char *second = print(m->graph);
    assert_string_equal(first, second);
    ot_model_free(m);
    free(second);
    return first;
}

static inline ot_id val(const ot_graph *g, const char *name)
{
    ot_id v = ot_value_find(g, name);
    assert_int_not_equal(v, OT_NONE);
    return v;
}

static inline ot_id node_named(const ot_graph *g, const char *name)
{
    for (ot_id k = 0; k < g->n_nodes; k++)
        if (!strcmp(g->nodes[k].name, name)) return k;
    fail_msg("no node '%s'", name);
    return OT_NONE;
}

static inline uint32_t rng_next(uint32_t *s) /* xorshift */
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    *s ^= *s << 5;
    return *s;
}

/* Names of the nodes in order, joined by spaces. */
static inline char *order_of(const ot_graph *g)
{
    size_t n = 1;
    for (uint32_t k = 0; k < g->n_order; k++) n += strlen(g->nodes[g->order[k]].name) + 1;
    char *s = calloc(1, n);
    assert_non_null(s);
    for (uint32_t k = 0; k < g->n_order; k++) {
        if (k) strcat(s, " ");
        strcat(s, g->nodes[g->order[k]].name);
    }
    return s;
}

static inline void expect_order(const char *body, const char *want)
{
    char *text = NULL;
    assert_true(asprintf(&text, "model ir 8 opset 17 graph t { %s }", body) > 0);
    ot_model *m = parse(text);
    char *got = order_of(m->graph);
    assert_string_equal(got, want);
    free(got);
    free(text);
    ot_model_free(m);
}

static const char *const sound =
    "model ir 8 opset 17 graph g { input %x : float32[2,2] init %w : float32[2] = [1, 2]\n"
    "%y : float32[2,2] = Add(%x, %w) {a=1, b=2} \"add\"\n"
    "%z : float32[2,2] = Loop(_, _, %y) {body=graph b {\n"
    "  input %bi : int64[] input %bc : bool[] input %bx : float32[2,2] outer %w : float32[2]\n"
    "  %bo : float32[2,2] = Mul(%bx, %w) \"mul\"\n %bk : bool[] = Identity(%bc) output %bk output "
    "%bo }} \"loop\"\n"
    "%u : float32[2,2] = Relu(%z) \"relu\"\n output %u }";

static inline ot_graph *body_of(ot_graph *g) { return g->nodes[node_named(g, "loop")].attrs[0].g; }
static inline ot_value *vof(ot_graph *g, const char *name) { return &g->values[val(g, name)]; }
static inline ot_node *nof(ot_graph *g, const char *name) { return &g->nodes[node_named(g, name)]; }

#endif
