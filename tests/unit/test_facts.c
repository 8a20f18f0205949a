/* The facts of planned models against the graph and the plan, and against definitions spelled
 * out here without their code.
 *
 *   random graphs --planned, forced on both goals, small memory--> facts --> depth, edges, what
 *   exists in tiles, the Pareto front,
 *                                                                           memory maps, cards,
 *                                                                           roofline, candidates
 *   small graphs with one thing in them --> parts that are summed, unknown shapes, what would lift
 *   a barrier
 */
#include "cost/cost.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>

#include "report/facts/facts_build.h"

static uint64_t rng;

static uint32_t next_random(uint32_t n) { return (uint32_t)(ot_next_random(&rng) % n); }

/* A chain with skips on [1,c,h,h]; now and then an operator that nothing passes. */
static void random_text(char *buf, size_t size, uint32_t n)
{
    uint32_t h = 32u << next_random(3), c = 4u << next_random(3);
    int len = snprintf(
        buf, size, "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,%u,%u,%u]\n", c, h, h);
    for (uint32_t k = 0; k < n; k++)
        len += snprintf(buf + len, size - (size_t)len,
                        "  init %%w%u : float32[%u,%u,3,3] = random %u\n", k, c, c, k + 1);
    for (uint32_t k = 0; k < n; k++) {
        static const char *const plain[] = {"Relu", "Sigmoid", "Neg"};
        uint32_t kind = next_random(7);
        len += snprintf(buf + len, size - (size_t)len, "  %%v%u = ", k + 1);
        if (kind < 2)
            len += snprintf(buf + len, size - (size_t)len, "%s(%%v%u)\n", plain[next_random(3)], k);
        else if (kind < 4)
            len += snprintf(buf + len, size - (size_t)len, "Add(%%v%u, %%v%u)\n", k,
                            next_random(k + 1));
        else if (kind == 4 && next_random(3) == 0)
            len += snprintf(buf + len, size - (size_t)len, "LpNormalization(%%v%u) {axis=%u}\n", k,
                            1 + next_random(3));
        else
            len += snprintf(buf + len, size - (size_t)len, "Conv(%%v%u, %%w%u) {pads=[1,1,1,1]}\n",
                            k, k);
    }
    len += snprintf(buf + len, size - (size_t)len, "  output %%v%u\n", n);
    if (n > 3 && next_random(2))
        len += snprintf(buf + len, size - (size_t)len, "  output %%v%u\n", n / 2);
    snprintf(buf + len, size - (size_t)len, "}\n");
}

typedef struct planned {
    ot_model *m;
    ot_plan *p;
    ot_facts *f;
    ot_target t;
    ot_plan_options o;
} planned;

static ot_target small_target(void)
{
    ot_target t = {.name = "small",
                   .fast_bytes = 1 << 17,
                   .granule = 64,
                   .cores = 1,
                   .is_cache = next_random(2) == 0,
                   .bw_fast = 100e9,
                   .bw_mid = 20e9,
                   .bw_slow = 2e9,
                   .rate_conv = 400e9,
                   .rate_conv_depthwise = 20e9,
                   .rate_conv_pointwise = 40e9,
                   .rate_gemm = 50e9,
                   .rate_elem = 5e9,
                   .rate_trans = 1e9,
                   .rate_reduce = 5e9,
                   .rate_pool = 5e9,
                   .node_overhead = 1e-7,
                   .loop_overhead = 1e-7,
                   .region_overhead = 1e-6};
    t.double_buffer = next_random(2) == 0;
    t.runtime = ot_runtime_of(t.is_cache, false);
    return t;
}

static void plan_text(const char *text, ot_plan_options o, bool engine, planned *x)
{
    static ot_diag d;
    d = (ot_diag){0};
    *x = (planned){.t = small_target(), .o = o};
    x->o.detail = true;
    if (engine) ot_target_set_engine(&x->t);
    if (ot_text_parse(text, strlen(text), &d, &x->m) != OT_OK)
        fail_msg("%s in\n%s", d.message, text);
    assert_int_equal(ot_infer_shapes(x->m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_plan_graph(x->m->graph, &x->t, &x->o, &x->p), OT_OK);
    assert_int_equal(ot_facts_from_plan(x->m->graph, x->p, &x->t, &x->o, "m.onnx", NULL,
                                        OT_FACTS_INSPECT, &x->f),
                     OT_OK);
}

static void drop(planned *x)
{
    ot_facts_free(x->f);
    ot_plan_free(x->p);
    ot_model_free(x->m);
}

/* Index of the fact that a graph node has, by its first output's name; OT_NONE. */
static uint32_t fact_of(const planned *x, ot_id producer)
{
    if (producer == OT_NONE) return OT_NONE;
    const char *name = x->m->graph->values[x->m->graph->nodes[producer].out[0]].name;
    for (uint32_t k = 0; k < x->f->n_nodes; k++)
        if (strcmp(x->f->nodes[k].name, name) == 0) return k;
    return OT_NONE;
}

static ot_id node_called(const planned *x, const char *name)
{
    const ot_graph *g = x->m->graph;
    for (uint32_t k = 0; k < g->n_nodes; k++)
        if (strcmp(g->values[g->nodes[k].out[0]].name, name) == 0) return k;
    fail_msg("no node makes %s", name);
    return OT_NONE;
}

/* ---- nodes and edges ---- */

static uint32_t depth_of(const planned *x, ot_id node)
{
    const ot_graph *g = x->m->graph;
    uint32_t depth = 0;
    for (uint32_t k = 0; k < g->nodes[node].n_in; k++) {
        ot_id v = g->nodes[node].in[k], made = v == OT_NONE ? OT_NONE : g->values[v].producer;
        if (made == OT_NONE || g->values[v].is_const) continue;
        uint32_t above = depth_of(x, made) + 1;
        if (above > depth) depth = above;
    }
    return depth;
}

static bool has_edge(const ot_facts *f, uint32_t from, uint32_t to, const char *value)
{
    for (uint32_t k = 0; k < f->n_edges; k++)
        if (f->edges[k].from == from && f->edges[k].to == to &&
            strcmp(f->edges[k].value, value) == 0)
            return true;
    return false;
}

/* Every reader in one region with the node that makes it, and no graph output. */
static bool only_in_tiles(const planned *x, ot_id v)
{
    const ot_graph *g = x->m->graph;
    const ot_value *val = &g->values[v];
    if (val->producer == OT_NONE || val->is_output || val->n_uses == 0) return false;
    uint32_t region = x->f->nodes[fact_of(x, val->producer)].region;
    for (uint32_t k = 0; k < val->n_uses; k++)
        if (x->f->nodes[fact_of(x, val->uses[k])].region != region) return false;
    return region != OT_NONE;
}

static ot_id value_called(const planned *x, const char *name)
{
    for (ot_id v = 0; v < x->m->graph->n_values; v++)
        if (strcmp(x->m->graph->values[v].name, name) == 0) return v;
    fail_msg("no value %s", name);
    return OT_NONE;
}

static void check_graph(const planned *x)
{
    const ot_graph *g = x->m->graph;
    const ot_facts *f = x->f;
    uint32_t expected = 0;
    assert_int_equal(f->n_nodes, g->n_order);
    for (uint32_t k = 0; k < f->n_nodes; k++) {
        ot_id id = node_called(x, f->nodes[k].name);
        assert_int_equal(f->nodes[k].depth, depth_of(x, id));
        for (uint32_t j = 0; j < g->nodes[id].n_in; j++) {
            const ot_value *v = &g->values[g->nodes[id].in[j]];
            if (v->is_const || v->init) continue;
            uint32_t from = fact_of(x, v->producer);
            assert_true(from == OT_NONE ? v->is_input : from < k);
            assert_true(has_edge(f, from, k, v->name));
            expected++;
        }
    }
    for (uint32_t k = 0; k < g->n_outputs; k++, expected++)
        assert_true(has_edge(f, fact_of(x, g->values[g->outputs[k]].producer), OT_NONE,
                             g->values[g->outputs[k]].name));
    assert_int_equal(f->n_edges, expected);
    for (uint32_t k = 0; k < f->n_edges; k++) {
        int64_t elems;
        ot_id v = value_called(x, f->edges[k].value);
        assert_true(ot_value_elems(&g->values[v], &elems));
        assert_true(f->edges[k].bytes == 4.0 * (double)elems);
        assert_int_equal(f->edges[k].in_tiles, only_in_tiles(x, v));
    }
}

/* ---- regions and candidates ---- */

static bool dominated(const ot_fact_region *r, uint32_t k)
{
    const ot_fact_candidate *c = &r->candidates[k];
    for (uint32_t j = 0; j < r->n_candidates; j++) {
        const ot_fact_candidate *b = &r->candidates[j];
        if (b->time <= c->time && b->traffic <= c->traffic &&
            (b->time < c->time || b->traffic < c->traffic))
            return true;
    }
    return false;
}

static void check_candidates(const planned *x, const ot_fact_region *r)
{
    const ot_fact_candidate *first = &r->candidates[0];
    assert_true(r->n_candidates > 0 && first->chosen);
    assert_int_equal(first->n_dims, r->n_dims);
    assert_string_equal(first->form, r->form);
    assert_true(first->time == r->time_tiled && first->traffic == r->traffic &&
                first->working_set == r->working_set);
    for (uint32_t d = 0; d < r->n_dims; d++) {
        assert_string_equal(first->axes[d], r->axes[d]);
        assert_int_equal(first->tiles[d], r->tiles[d]);
        assert_int_equal(first->tile[d], r->tile[d]);
    }
    for (uint32_t k = 0; k < r->n_candidates; k++) {
        const ot_fact_candidate *c = &r->candidates[k];
        assert_int_equal(c->chosen, k == 0);
        assert_int_equal(c->fits, c->working_set <= x->t.fast_bytes);
        assert_int_equal(c->on_front, !dominated(r, k));
        assert_true(strlen(c->reason) > 8);
        if (k > 1) assert_true(c->time >= c[-1].time);
        assert_true(c->time > 0 && c->traffic >= 0 && c->working_set > 0);
        for (uint32_t d = 0; d < c->n_dims; d++) assert_true(c->tiles[d] > 1 && c->tile[d] > 0);
        for (uint32_t j = 0; j < k; j++) { /* none twice */
            const ot_fact_candidate *b = &r->candidates[j];
            bool same = b->n_dims == c->n_dims;
            for (uint32_t d = 0; d < c->n_dims && same; d++)
                same = strcmp(b->axes[d], c->axes[d]) == 0 && b->tile[d] == c->tile[d];
            if (same && j == 0) fail_msg("the chosen tiling is there twice");
        }
    }
}

static void check_regions(const planned *x)
{
    const ot_facts *f = x->f;
    assert_int_equal(f->n_regions, x->p->n_regions);
    uint32_t inside = 0, members = 0;
    for (uint32_t k = 0; k < f->n_nodes; k++) inside += f->nodes[k].region != OT_NONE;
    for (uint32_t k = 0; k < f->n_regions; k++) {
        const ot_fact_region *r = &f->regions[k];
        const ot_region *p = &x->p->regions[k];
        members += r->n_nodes;
        assert_int_equal(r->id, p->id);
        assert_int_equal(r->n_nodes, p->n_nodes);
        for (uint32_t j = 0; j < r->n_nodes; j++) {
            assert_int_equal(f->nodes[r->nodes[j]].region, k);
            assert_int_equal(node_called(x, f->nodes[r->nodes[j]].name), p->nodes[j].node);
            assert_true(j == 0 || r->nodes[j] > r->nodes[j - 1]);
        }
        for (uint32_t d = 0; d < r->n_dims; d++)
            assert_int_equal(r->tiles[d], (r->extent[d] + r->tile[d] - 1) / r->tile[d]);
        assert_true(r->time_tiled == p->time_tiled && r->time_untiled == p->time_untiled &&
                    r->traffic == p->traffic);
        assert_true(fabs(r->fill - (double)p->working_set / (double)x->t.fast_bytes) < 1e-12);
        check_candidates(x, r);
    }
    assert_int_equal(inside, members);
    assert_int_equal(f->n_barriers, x->p->n_barriers);
    for (uint32_t k = 0; k < f->n_barriers; k++)
        assert_int_equal(f->nodes[f->barriers[k].node].barrier, k);
}

/* ---- maps, cards, roofline ---- */

static void check_map(const ot_fact_map *m)
{
    int64_t top = 0, most = 0;
    for (uint32_t k = 0; k < m->n_boxes; k++) {
        const ot_fact_box *b = &m->boxes[k];
        top = ot_max(top, b->offset + b->size);
        assert_true(b->offset >= 0 && b->size > 0 && b->lower < b->upper);
        for (uint32_t j = 0; j < k; j++) {
            const ot_fact_box *a = &m->boxes[j];
            bool meet = a->lower < b->upper && b->lower < a->upper;
            meet = meet && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
            if (meet) fail_msg("%s: %s and %s overlap", m->id, a->name, b->name);
        }
    }
    for (int64_t t = 0; t <= m->steps + 1; t++) {
        int64_t live = 0;
        for (uint32_t k = 0; k < m->n_boxes; k++)
            if (m->boxes[k].lower <= t && t < m->boxes[k].upper) live += m->boxes[k].size;
        most = ot_max(most, live);
    }
    assert_int_equal(m->height, top);
    assert_true(m->lower_bound <= m->height && m->lower_bound >= most);
}

/* Every slot of the list of places is drawn, at its offset. */
static void check_places(const ot_fact_region *r, const ot_fact_map *m)
{
    char id[32];
    snprintf(id, sizeof id, "region-%u", r->id);
    assert_string_equal(m->id, id);
    assert_true(r->n_places > 0 && r->arena == m->height);
    for (uint32_t k = 0; k < r->n_places; k++)
        for (uint32_t s = 0; s < r->places[k].n; s++) {
            bool drawn = false;
            for (uint32_t b = 0; b < m->n_boxes; b++)
                drawn |= m->boxes[b].offset == r->places[k].offsets[s] &&
                         m->boxes[b].size >= r->places[k].bytes;
            if (!drawn) fail_msg("%s: slot %u of %s is not in the map", id, s, r->places[k].name);
        }
}

static void check_figures(const planned *x)
{
    const ot_facts *f = x->f;
    uint32_t values = 0, alone = 0;
    assert_int_equal(f->n_maps, 2 + (x->t.double_buffer ? f->n_regions : 0));
    for (uint32_t k = 0; k < f->n_maps; k++) check_map(&f->maps[k]);
    for (uint32_t k = 2; k < f->n_maps; k++) check_places(&f->regions[k - 2], &f->maps[k]);
    for (ot_id v = 0; v < x->m->graph->n_values; v++) {
        const ot_value *val = &x->m->graph->values[v];
        if (val->is_const || val->init || (val->producer == OT_NONE && !val->is_input)) continue;
        values++;
        alone += val->n_uses > 0 && only_in_tiles(x, v);
    }
    assert_int_equal(f->maps[0].n_boxes, values);
    assert_int_equal(f->maps[1].n_boxes, values - alone + f->n_regions);
    for (uint32_t k = 0; k < f->n_cards; k++) {
        const ot_fact_card *c = &f->cards[k];
        if (c->before > 0) assert_true(fabs(c->ratio * c->before - c->after) <= 1e-9 * c->after);
        assert_true(c->bound < 0 || (c->bound <= c->before && c->bound <= c->after));
        assert_int_equal(c->bound >= 0, strstr(c->note, "the limit is") != NULL);
    }
    for (uint32_t k = 0; k < f->n_points; k++) {
        const ot_fact_point *p = &f->points[k];
        assert_true(fabs(p->intensity * p->bytes - p->operations) <= 1e-9 * p->operations);
        assert_true(fabs(p->rate * p->seconds - p->operations) <= 1e-9 * p->operations);
        assert_true(p->attained > 0);
    }
}

static void facts_tell_what_was_planned(void **state)
{
    (void)state;
    uint32_t regions = 0, scored = 0, in_tiles = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        char text[8192];
        planned x;
        rng = seed;
        random_text(text, sizeof text, 3 + next_random(12));
        ot_plan_options o = {.goal = next_random(2) ? OT_GOAL_TIME : OT_GOAL_MEMORY,
                             .max_slowdown = 0.2,
                             .force = next_random(2)};
        bool engine = next_random(2);
        print_message("seed %llu\n", (unsigned long long)seed);
        plan_text(text, o, engine, &x);
        check_graph(&x);
        check_regions(&x);
        check_figures(&x);
        regions += x.f->n_regions;
        for (uint32_t k = 0; k < x.f->n_regions; k++) scored += x.f->regions[k].n_candidates;
        for (uint32_t k = 0; k < x.f->n_edges; k++) in_tiles += x.f->edges[k].in_tiles;
        drop(&x);
    }
    assert_true(regions > 20 && scored > 10 * regions && in_tiles > 20);
}

/* ---- one thing each ---- */

static void reductions_at_the_end_are_named(void **state)
{
    (void)state;
    planned x;
    rng = 1;
    plan_text("model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,256,256]\n  init %w : "
              "float32[8,8,3,3] = random 1\n"
              "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Relu(%a)\n  %y = "
              "GlobalAveragePool(%b)\n  output %y\n}\n",
              (ot_plan_options){.force = true}, true, &x);
    assert_int_equal(x.f->n_regions, 1);
    assert_int_equal(x.f->regions[0].n_sums, 1);
    assert_string_equal(x.f->nodes[x.f->regions[0].sums[0].node].op, "GlobalAveragePool");
    assert_true(x.f->regions[0].n_candidates > 5);
    drop(&x);
}

static void unknown_shapes_are_absent(void **state)
{
    (void)state;
    planned x;
    rng = 1;
    plan_text("model ir 8 opset 17\ngraph g {\n  input %x : float32[?,8]\n  %a = Relu(%x)\n  %y = "
              "Neg(%a)\n  output %y\n}\n",
              (ot_plan_options){0}, false, &x);
    assert_string_equal(x.f->nodes[0].shape, "?x8");
    for (uint32_t k = 0; k < x.f->n_edges; k++) assert_true(x.f->edges[k].bytes == OT_ABSENT);
    assert_int_equal(x.f->maps[0].n_boxes, 0);
    assert_int_equal(x.f->n_barriers, 2);
    for (uint32_t k = 0; k < x.f->n_barriers; k++)
        assert_string_equal(x.f->barriers[k].reason_id, "input-shape");
    drop(&x);
}

static void barriers_say_what_lifts_them(void **state)
{
    (void)state;
    assert_non_null(strstr(ot_reason_lift(OT_WHY_SOFTMAX_OPSET), "opset 13"));
    assert_int_equal(ot_facts_bound(3, 2, 1), OT_BOUND_COMPUTE);
    assert_int_equal(ot_facts_bound(2, 3, 1), OT_BOUND_BANDWIDTH);
    assert_int_equal(ot_facts_bound(1, 2, 3), OT_BOUND_OVERHEAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_tell_what_was_planned),
        cmocka_unit_test(reductions_at_the_end_are_named),
        cmocka_unit_test(unknown_shapes_are_absent),
        cmocka_unit_test(barriers_say_what_lifts_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
