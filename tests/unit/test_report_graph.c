/* The report's graph and memory maps: layouts keep their promises on random graphs, every node
 * is drawn once, pages stay small and well-formed, and the maps tell what an obvious simulation
 * of the model tells. Random tests print their seed. */
#include "report/html/html.h"
#include "report/html/html_layout.h"
#include "report_sample.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SEEDS 60

static uint32_t below(uint64_t *state, uint32_t n) { return (uint32_t)(ot_next_random(state) % n); }

/* ---- layout ---- */

typedef struct drawing {
    ot_arena *a;
    layout l;
} drawing;

/* n boxes; box k reads up to `reads` of the `near` boxes before it. */
static drawing lay_out(uint64_t seed, uint32_t n, uint32_t reads, uint32_t near)
{
    drawing d = {.a = ot_arena_new()};
    uint64_t state = seed;
    assert_non_null(d.a);
    d.l = (layout){.n = n,
                   .gap_x = 18,
                   .gap_y = 26,
                   .row_max = 1 + below(&state, 9),
                   .max_width = below(&state, 2) ? 900 : 0};
    d.l.boxes = OT_NEW_N(d.a, layout_box, n + 1u);
    d.l.edges = OT_NEW_N(d.a, layout_edge, (size_t)n * reads + 1);
    for (uint32_t k = 0; k < n; k++) {
        d.l.boxes[k] = (layout_box){.w = 40 + below(&state, 100), .h = 20 + below(&state, 30)};
        for (uint32_t j = 0; k && j < reads; j++)
            if (below(&state, 4))
                d.l.edges[d.l.n_edges++] = (layout_edge){
                    .from = k - 1 - below(&state, k < near ? k : near), .to = k};
    }
    assert_int_equal(layout_run(&d.l, d.a), OT_OK);
    return d;
}

static void check_boxes(const layout *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const layout_box *a = &l->boxes[i];
        assert_true(a->x >= 0 && a->y >= 0 && a->x + a->w <= l->width && a->y + a->h <= l->height);
        for (uint32_t j = 0; j < i; j++) {
            const layout_box *b = &l->boxes[j];
            if (a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h &&
                b->y < a->y + a->h)
                fail_msg("boxes %u and %u lie upon each other", j, i);
        }
    }
}

static void check_edges(const layout *l)
{
    char route[LAYOUT_ROUTE];
    uint32_t stubs = 0;
    for (uint32_t e = 0; e < l->n_edges; e++) {
        const layout_box *a = &l->boxes[l->edges[e].from], *b = &l->boxes[l->edges[e].to];
        assert_true(b->rank > a->rank);
        assert_true(b->column > a->column || (b->column == a->column && b->y >= a->y + a->h));
        stubs += l->edges[e].stub;
        if (l->edges[e].stub) continue;
        assert_true(b->rank - a->rank <= LAYOUT_SPAN);
        assert_int_equal(layout_route(l, e, route)[0], 'M');
        double x, y;
        assert_int_equal(sscanf(route, "M%lf %lf", &x, &y), 2);
        assert_true(x >= a->x && x <= a->x + a->w && y == a->y + a->h);
    }
    assert_int_equal(stubs, l->n_stubs);
}

static void test_layout_random(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t state = seed;
        uint32_t n = below(&state, 200), reads = 1 + below(&state, 4), near = 1 + below(&state, 40);
        print_message("seed %llu\n", (unsigned long long)seed);
        drawing d = lay_out(seed, n, reads, near), again = lay_out(seed, n, reads, near);
        check_boxes(&d.l);
        check_edges(&d.l);
        if (n) assert_memory_equal(d.l.boxes, again.l.boxes, n * sizeof *d.l.boxes);
        assert_true(d.l.width == again.l.width && d.l.work == again.l.work);
        ot_arena_free(d.a);
        ot_arena_free(again.a);
    }
}

static void test_layout_small(void **unused)
{
    (void)unused;
    drawing none = lay_out(1, 0, 1, 1), one = lay_out(2, 1, 1, 1);
    assert_true(none.l.width == 0 && none.l.n_columns == 0);
    assert_int_equal(one.l.n_columns, 1);
    check_boxes(&one.l);
    ot_arena_free(none.a);
    ot_arena_free(one.a);
}

/* A long chain is wrapped into about a square; edges against the order are stubs, never lines. */
static void test_layout_chain(void **unused)
{
    (void)unused;
    drawing d = {.a = ot_arena_new()};
    d.l = (layout){.n = 4000, .n_edges = 4000, .gap_x = 18, .gap_y = 26, .row_max = 8};
    d.l.boxes = OT_NEW_N(d.a, layout_box, 4000);
    d.l.edges = OT_NEW_N(d.a, layout_edge, 4000);
    for (uint32_t k = 0; k < 4000; k++) {
        d.l.boxes[k] = (layout_box){.w = 150, .h = 36};
        d.l.edges[k] = (layout_edge){.from = k, .to = (k + 1) % 4000};
    }
    assert_int_equal(layout_run(&d.l, d.a), OT_OK);
    assert_int_equal(d.l.n_ranks, 4000);
    assert_int_equal(d.l.n_stubs, 1);
    assert_true(d.l.edges[3999].stub);
    assert_true(d.l.n_columns > 10 && d.l.width < 3 * d.l.height && d.l.height < 3 * d.l.width);
    check_boxes(&d.l);
    ot_arena_free(d.a);
}

/* The work is linear in what is laid out, whatever the shape of the graph. */
static void test_layout_work(void **unused)
{
    static const uint32_t sizes[] = {100, 2000, 8000, 32000}, nears[] = {1, 8, 1000000};
    (void)unused;
    for (int k = 0; k < 12; k++) {
        drawing d = lay_out(7, sizes[k % 4], 2, nears[k / 4]);
        assert_true(d.l.n_cells <= d.l.n + (uint64_t)d.l.n_edges * (LAYOUT_SPAN - 1));
        assert_true(d.l.work < 100 * ((uint64_t)d.l.n + d.l.n_cells + d.l.n_edges));
        ot_arena_free(d.a);
    }
}

/* ---- pages ---- */

static ot_facts *facts_of(uint64_t seed, uint32_t n, uint32_t reads, uint32_t near)
{
    ot_arena *a = ot_arena_new();
    ot_facts *f = OT_NEW(a, ot_facts);
    uint64_t state = seed;
    assert_non_null(f);
    *f = (ot_facts){.arena = a, .kind = OT_FACTS_OPTIMISE, .n_nodes = n};
    f->nodes = OT_NEW_N(a, ot_fact_node, n + 1u);
    f->edges = OT_NEW_N(a, ot_fact_edge, (size_t)n * (reads + 1) + 1);
    f->regions = OT_NEW_N(a, ot_fact_region, n + 1u);
    f->barriers = OT_NEW_N(a, ot_fact_barrier, n + 1u);
    for (uint32_t k = 0; k < n; k++) {
        f->nodes[k] = (ot_fact_node){
            .name = ot_format(a, "/model/decoder/layers.%u/self_attn/k_proj/n<%u>", k / 40, k),
            .op = "MatMul",
            .shape = "1x128x4096",
            .region = OT_NONE,
            .barrier = OT_NONE,
            .refusal = OT_NONE,
            .out_bytes = 1000.0 * k,
            .time = 1e-5,
            .measured = OT_ABSENT,
            .bound = (ot_bound)(k % 3)};
        if (below(&state, 50) == 0) {
            f->nodes[k].barrier = f->n_barriers;
            f->barriers[f->n_barriers++] = (ot_fact_barrier){k, "", "reads <all> of it", ""};
        }
        for (uint32_t j = 0; j < reads; j++) {
            uint32_t from = k && below(&state, 10) ? k - 1 - below(&state, k < near ? k : near)
                                                   : OT_NONE;
            f->edges[f->n_edges++] = (ot_fact_edge){from, k, "a&b", 1000.0 * below(&state, 100000),
                                                    false};
        }
    }
    /* intervals of the order are convex */
    for (uint32_t k = 0; k + 12 < n; k += 12 + below(&state, 30)) {
        uint32_t count = 1 + below(&state, 12), *ids = OT_NEW_N(a, uint32_t, count);
        for (uint32_t j = 0; j < count; j++) {
            ids[j] = k + j;
            f->nodes[k + j].region = f->n_regions;
        }
        f->regions[f->n_regions] = (ot_fact_region){.id = f->n_regions,
                                                    .residence = "",
                                                    .nodes = ids,
                                                    .n_nodes = count,
                                                    .n_dims = 1,
                                                    .axes = {"H"},
                                                    .tiles = {8},
                                                    .form = "while",
                                                    .time_untiled = 1e-3,
                                                    .time_tiled = 5e-4};
        f->n_regions++;
    }
    return f;
}

/* What `section` writes, as text and parsed strictly. Freed by the caller. */
static xmlDocPtr page_of(const ot_facts *f, void (*section)(html *), xmlBufferPtr *text)
{
    xmlBufferPtr b = xmlBufferCreate();
    html h = {.w = xmlNewTextWriterMemory(b, 0), .f = f};
    html_open(&h, "main");
    section(&h);
    html_close(&h);
    assert_false(h.failed);
    assert_int_equal(h.depth, 0);
    xmlFreeTextWriter(h.w);
    xmlDocPtr doc = xmlReadMemory((const char *)xmlBufferContent(b), xmlBufferLength(b), NULL,
                                  "UTF-8", XML_PARSE_NONET | XML_PARSE_HUGE);
    if (!doc) fail_msg("not well-formed");
    *text = b;
    return doc;
}

/* Elements with the attribute, below node; the names into seen. */
static uint32_t count_with(const xmlNode *node, const char *attribute, ot_map *seen, ot_arena *a)
{
    uint32_t n = 0;
    for (; node; node = node->next) {
        xmlChar *value = node->type == XML_ELEMENT_NODE ? xmlGetProp(node, BAD_CAST attribute)
                                                        : NULL;
        if (value) {
            const char *name = ot_strdup(a, (const char *)value);
            assert_int_equal(ot_map_get(seen, name), OT_NONE);
            assert_true(ot_map_put(seen, name, 1));
            n++;
        }
        xmlFree(value);
        if (node->type == XML_ELEMENT_NODE) n += count_with(node->children, attribute, seen, a);
    }
    return n;
}

static void check_page(ot_facts *f, size_t most)
{
    xmlBufferPtr text;
    xmlDocPtr doc = page_of(f, html_graph, &text);
    ot_arena *a = ot_arena_new();
    ot_map *names = ot_map_new(a), *ids = ot_map_new(a);
    assert_int_equal(count_with(xmlDocGetRootElement(doc), "data-name", names, a), f->n_nodes);
    for (uint32_t k = 0; k < f->n_nodes; k++)
        assert_int_equal(ot_map_get(names, f->nodes[k].name), 1);
    count_with(xmlDocGetRootElement(doc), "id", ids, a); /* no id twice */
    for (uint32_t r = 0; r < f->n_regions; r++)
        assert_int_equal(ot_map_get(ids, ot_format(a, "graph-region-%u", f->regions[r].id)), 1);
    if ((size_t)xmlBufferLength(text) > most) fail_msg("%d bytes", xmlBufferLength(text));
    ot_arena_free(a);
    xmlFreeDoc(doc);
    xmlBufferFree(text);
    ot_facts_free(f);
}

static void test_pages(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint64_t state = seed;
        print_message("seed %llu\n", (unsigned long long)seed);
        check_page(
            facts_of(seed, 1 + below(&state, 300), 1 + below(&state, 3), 1 + below(&state, 30)),
            3000000);
    }
    check_page(facts_of(1, 1, 1, 1), 20000);
    check_page(facts_of(2, 4000, 1, 1), 3000000);
    check_page(facts_of(4, 4000, 2, 4000), 3000000);
    check_page(facts_of(3, 4000, 2, 20), 3000000);
}

static void test_empty(void **unused)
{
    (void)unused;
    ot_facts f = {0};
    xmlBufferPtr text;
    xmlFreeDoc(page_of(&f, html_graph, &text));
    xmlBufferFree(text);
    xmlFreeDoc(page_of(&f, html_maps, &text));
    xmlBufferFree(text);
}

/* Names of a stranger's model are texts in the tree, nothing else. */
static void test_hostile(void **unused)
{
    (void)unused;
    for (int variant = 0; variant < 2; variant++) {
        ot_facts *f = report_sample(variant);
        xmlBufferPtr graph, maps;
        xmlDocPtr doc = page_of(f, html_graph, &graph), map = page_of(f, html_maps, &maps);
        for (int k = 0; k < 2; k++) {
            const char *text = (const char *)xmlBufferContent(k ? maps : graph);
            assert_null(strstr(text, "<script"));
            assert_null(strstr(text, "<img"));
            assert_null(strchr(text, 0x1b));
        }
        xmlFreeDoc(doc);
        xmlFreeDoc(map);
        xmlBufferFree(graph);
        xmlBufferFree(maps);
        ot_facts_free(f);
    }
}

/* ---- maps ---- */

typedef struct model {
    ot_diag diag;
    ot_model *m;
    ot_plan plan;
    uint32_t *step; /* [n_nodes] of the planned model, 1 .. n_steps */
    bool *inside;   /* [n_values] exists in tiles only */
    uint32_t n_steps;
} model;

/* n nodes Add in the order that they are made, each reading two values before it. */
static void make_model(model *x, uint64_t *state, uint32_t n)
{
    x->m = ot_model_new(&x->diag);
    assert_non_null(x->m);
    ot_graph *g = x->m->graph;
    ot_arena *a = x->m->arena;
    ot_id last[8];
    for (uint32_t k = 0; k < 8; k++) {
        int64_t dims[1] = {1 + below(state, 1000)};
        last[k] = ot_value_new(g, ot_format(a, "in%u", k), OT_F32, 1, dims);
        g->values[last[k]].is_input = true;
    }
    g->inputs = ot_memdup(a, last, sizeof last);
    g->n_inputs = 8;
    g->outputs = OT_NEW_N(a, ot_id, n + 1u);
    assert_non_null(g->outputs);
    for (uint32_t k = 0; k < n; k++) {
        int64_t dims[1] = {1 + below(state, 1000)};
        ot_id in[2] = {last[below(state, 8)], last[below(state, 8)]};
        ot_id out = ot_value_new(g, ot_format(a, "v%u", k), OT_F32, 1, dims);
        assert_int_not_equal(ot_node_new(g, &(ot_node_def){.op = "Add",
                                                           .name = ot_format(a, "n%u", k),
                                                           .in = {in, 2},
                                                           .out = {&out, 1}}),
                             OT_NONE);
        last[below(state, 8)] = out;
        g->values[out].is_output = below(state, 20) == 0;
        if (g->values[out].is_output) g->outputs[g->n_outputs++] = out;
    }
    assert_int_equal(ot_topo_sort(g), OT_OK);
    ot_confirm(g, OT_P_ORDER | OT_P_USES | OT_P_SHAPES);
}

/* Regions are intervals of the order. */
static void make_plan(model *x, uint64_t *state)
{
    ot_graph *g = x->m->graph;
    ot_arena *a = x->m->arena;
    x->plan.regions = OT_NEW_N(a, ot_region, g->n_order + 1u);
    x->step = OT_NEW_N(a, uint32_t, g->n_nodes + 1u);
    x->inside = OT_NEW_N(a, bool, g->n_values + 1u);
    for (uint32_t k = 0; k < g->n_order;) {
        uint32_t count = below(state, 3) ? 1 : 2 + below(state, 6);
        if (count > g->n_order - k) count = g->n_order - k;
        x->n_steps++;
        for (uint32_t j = 0; j < count; j++) x->step[g->order[k + j]] = x->n_steps;
        if (count > 1) {
            ot_region *r = &x->plan.regions[x->plan.n_regions];
            *r = (ot_region){.id = x->plan.n_regions++,
                             .n_nodes = count,
                             .n_values = count,
                             .working_set = 1 + below(state, 5000)};
            r->nodes = OT_NEW_N(a, ot_rnode, count);
            r->values = OT_NEW_N(a, ot_rvalue, count);
            for (uint32_t j = 0; j < count; j++) {
                ot_id node = g->order[k + j], v = g->nodes[node].out[0];
                bool leaves = g->values[v].is_output;
                for (uint32_t u = 0; u < g->values[v].n_uses; u++)
                    leaves = leaves || x->step[g->values[v].uses[u]] != x->n_steps;
                r->nodes[j].node = node;
                r->values[j] = (ot_rvalue){.value = v, .node = j, .is_output = leaves};
                x->inside[v] = !leaves;
            }
        }
        k += count;
    }
}

/* Bytes that lie there at a step, by looking at every value. */
static int64_t bytes_at(const model *x, bool tiled, int64_t step)
{
    const ot_graph *g = x->m->graph;
    int64_t sum = 0;
    for (ot_id v = 0; v < g->n_values; v++) {
        const ot_value *value = &g->values[v];
        int64_t born = 0, dead;
        if (tiled && x->inside[v]) continue;
        for (uint32_t k = 0; k < g->n_order && value->producer != OT_NONE; k++)
            if (g->order[k] == value->producer) born = tiled ? x->step[value->producer] : k + 1;
        dead = born;
        for (uint32_t u = 0; u < value->n_uses; u++)
            for (uint32_t k = 0; k < g->n_order; k++)
                if (g->order[k] == value->uses[u])
                    dead = ot_max(dead, tiled ? x->step[value->uses[u]] : k + 1);
        if (value->is_output) dead = INT64_MAX;
        if (born <= step && step <= dead) sum += value->dims[0] * 4;
    }
    for (uint32_t r = 0; tiled && r < x->plan.n_regions; r++)
        if (x->step[x->plan.regions[r].nodes[0].node] == step)
            sum += x->plan.regions[r].working_set;
    return sum;
}

static void check_map(const model *x, const ot_fact_map *m, bool tiled)
{
    ot_arena *a = ot_arena_new();
    ot_pack_item *items = OT_NEW_N(a, ot_pack_item, m->n_boxes + 1u);
    int64_t *offsets = OT_NEW_N(a, int64_t, m->n_boxes + 1u), most = 0;
    const char **names = OT_NEW_N(a, const char *, m->n_boxes + 1u);
    ot_diag d = {0};
    assert_int_equal(m->steps, (tiled ? x->n_steps : x->m->graph->n_order) + 2);
    for (uint32_t k = 0; k < m->n_boxes; k++) {
        const ot_fact_box *b = &m->boxes[k];
        items[k] = (ot_pack_item){.lower = b->lower,
                                  .upper = b->upper,
                                  .size = b->size,
                                  .alignment = 64,
                                  .fixed = -1,
                                  .hint = -1};
        offsets[k] = b->offset;
        names[k] = b->name;
        assert_true(b->offset + b->size <= m->height);
        ot_id v = ot_value_find(x->m->graph, b->name);
        assert_int_equal(v == OT_NONE, b->kind == 2);
        if (v == OT_NONE) continue;
        assert_false(tiled && x->inside[v]);
        assert_int_equal(b->kind,
                         x->m->graph->values[v].is_input || x->m->graph->values[v].is_output);
    }
    ot_pack_problem p = {items, m->n_boxes};
    if (ot_pack_check(&p, offsets, m->height, names, &d) != OT_OK) fail_msg("%s", d.message);
    for (int64_t s = 0; s < m->steps; s++) {
        int64_t sum = 0;
        for (uint32_t k = 0; k < m->n_boxes; k++)
            if (m->boxes[k].lower <= s && s < m->boxes[k].upper) sum += m->boxes[k].size;
        assert_int_equal(sum, bytes_at(x, tiled, s));
        most = ot_max(most, sum);
    }
    assert_true(m->lower_bound >= most && m->lower_bound <= m->height);
    ot_arena_free(a);
}

static void test_maps(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        uint64_t state = seed;
        model x = {0};
        print_message("seed %llu\n", (unsigned long long)seed);
        make_model(&x, &state, 1 + below(&state, 60));
        make_plan(&x, &state);
        ot_arena *a = ot_arena_new();
        ot_facts f = {.arena = a};
        assert_int_equal(ot_facts_add_maps(&f, x.m->graph, &x.plan), OT_OK);
        assert_int_equal(f.n_maps, 2);
        assert_string_equal(f.maps[0].id, "before");
        assert_string_equal(f.maps[1].id, "after");
        check_map(&x, &f.maps[0], false);
        check_map(&x, &f.maps[1], true);
        ot_arena_free(a);
        ot_model_free(x.m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_random), cmocka_unit_test(test_layout_small),
        cmocka_unit_test(test_layout_chain),  cmocka_unit_test(test_layout_work),
        cmocka_unit_test(test_pages),         cmocka_unit_test(test_empty),
        cmocka_unit_test(test_hostile),       cmocka_unit_test(test_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
