/* The block of activations on a device: who lies where, how full it gets, what stays on the host
 * and what is made in its place. Random cases print their seed. */
#include "tiling/lower/device_arena.h"

#include "ir_check.h"
#include "ops/ops.h"

/* ---- the arena ---- */

static uint64_t rng;

static uint32_t below(uint32_t n) { return (uint32_t)(ot_next_random(&rng) % n); }

enum { VALUES = 12, UNITS = 9, LARGEST = 4096 /* a value, with two places */ };

typedef struct program {
    ot_device_arena arena;
    ot_device_memory value[VALUES];
    uint32_t n;
} program;

static void fill(program *p, ot_arena *a, bool moves)
{
    *p = (program){.arena.n_units = UNITS, .n = below(VALUES + 1)};
    for (uint32_t k = 0; k < p->n; k++) {
        p->value[k] = OT_DEVICE_UNUSED;
        p->value[k].bytes = 1 + below(2000);
        p->value[k].twice = moves && below(4) == 0;
        for (uint32_t t = below(4); t > 0; t--) ot_device_touch(&p->value[k], below(UNITS));
    }
    for (uint32_t k = 0; k < 2 * p->n; k++) /* whoever is named twice is there once */
        assert_int_equal(ot_device_arena_add(&p->arena, a, &p->value[k % p->n]), OT_OK);
}

static int64_t taken(const ot_device_memory *m) { return (m->bytes + 255) / 256 * 256; }

/* Bytes of p's values at that unit; each of them lies in its block, beside the others. */
static int64_t check_unit(const program *p, uint32_t unit)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_device_memory *x = &p->value[k];
        if (x->first == OT_NONE || (!x->twice && (unit < x->first || unit > x->last))) continue;
        const int64_t bytes = taken(x) * (x->twice ? 2 : 1);
        assert_true(x->offset >= 0 && x->offset % 256 == 0 && x->block < p->arena.n_blocks &&
                    x->offset + bytes <= p->arena.blocks[x->block].bytes);
        if (x->twice) assert_int_equal(x->turn, taken(x));
        for (uint32_t j = 0; j < k; j++) {
            const ot_device_memory *y = &p->value[j];
            if (y->first == OT_NONE || (!y->twice && (unit < y->first || unit > y->last))) continue;
            if (x->block == y->block && x->offset < y->offset + taken(y) * (y->twice ? 2 : 1) &&
                y->offset < x->offset + bytes)
                fail_msg("values %u and %u overlap at unit %u", j, k, unit);
        }
        sum += bytes;
    }
    return sum;
}

/* Blocks are full to their ends, and no larger than they may be. */
static void check_blocks(const ot_device_arena *x, int64_t most)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < x->n_blocks; k++) {
        assert_true(x->blocks[k].bytes > 0 && (most == 0 || x->blocks[k].bytes <= most));
        sum += x->blocks[k].bytes;
    }
    assert_int_equal(sum, x->height);
    assert_true(x->height >= x->live);
    if (most == 0) assert_true(x->n_blocks <= 1);
}

/* Does unit u use the bytes of value k for another value, or for the body that runs there? */
static bool is_used(const program *p, uint32_t k, const program *body, uint32_t loop, uint32_t u)
{
    const ot_device_memory *x = &p->value[k];
    const int64_t end = x->offset + taken(x);
    bool used = false;
    for (uint32_t j = 0; j < p->n; j++) {
        const ot_device_memory *y = &p->value[j];
        used |= j != k && y->first != OT_NONE && (y->twice || (y->first <= u && u <= y->last)) &&
                y->block == x->block && x->offset < y->offset + taken(y) * (y->twice ? 2 : 1) &&
                y->offset < end;
    }
    for (uint32_t b = 0; u == loop && b < body->arena.n_blocks; b++) {
        const ot_device_block *y = &body->arena.blocks[b];
        used |= y->block == x->block && x->offset < y->base + y->bytes && y->base < end;
    }
    return used;
}

static void check_neighbours(const program *p, uint32_t k, const program *body, uint32_t loop)
{
    uint32_t before, after, last = OT_NONE, first = OT_NONE;
    const ot_device_memory *x = &p->value[k];
    if (x->first == OT_NONE || x->twice) return;
    for (uint32_t u = 0; u < UNITS; u++) {
        const bool used = is_used(p, k, body, loop, u);
        if (used && u < x->first) last = u;
        if (used && u > x->last && first == OT_NONE) first = u;
    }
    ot_device_arena_neighbours(&p->arena, x, &before, &after);
    assert_int_equal(before, last);
    assert_int_equal(after, first);
}

/* Nobody who lives at that unit lies in the blocks of the body that runs there. */
static void check_apart(const program *top, const program *body, uint32_t loop)
{
    for (uint32_t b = 0; b < body->arena.n_blocks; b++) {
        const ot_device_block *in = &body->arena.blocks[b];
        assert_true(in->base >= 0 && in->block < top->arena.n_blocks &&
                    in->base + in->bytes <= top->arena.blocks[in->block].bytes);
        for (uint32_t k = 0; k < top->n; k++) {
            const ot_device_memory *x = &top->value[k];
            if (x->first == OT_NONE || loop < x->first || loop > x->last) continue;
            assert_true(x->block != in->block || x->offset + taken(x) <= in->base ||
                        x->offset >= in->base + in->bytes);
        }
    }
}

/* Returns the blocks of the graph. */
static uint32_t check_place(uint64_t seed, int64_t limit)
{
    ot_arena *a = ot_arena_new();
    ot_diag d = {0};
    program top, body;
    int64_t most = 0, most_body = 0;
    rng = seed;
    const uint32_t loop = below(UNITS);
    fill(&body, a, true);
    assert_int_equal(ot_device_arena_place(&body.arena, limit, a, &d), OT_OK);
    assert_int_equal(ot_device_arena_measure(&body.arena, a), OT_OK);
    fill(&top, a, false);
    assert_int_equal(ot_device_arena_add_body(&top.arena, a, &body.arena, loop), OT_OK);
    assert_int_equal(ot_device_arena_place(&top.arena, limit, a, &d), OT_OK);
    assert_int_equal(ot_device_arena_measure(&top.arena, a), OT_OK);
    for (uint32_t u = 0; u < UNITS; u++) most_body = ot_max(most_body, check_unit(&body, u));
    for (uint32_t u = 0; u < UNITS; u++)
        most = ot_max(most, check_unit(&top, u) + (u == loop ? most_body : 0));
    if (body.arena.live != most_body || top.arena.live != most)
        fail_msg("seed %llu: %lld of %lld, %lld of %lld live", (unsigned long long)seed,
                 (long long)body.arena.live, (long long)most_body, (long long)top.arena.live,
                 (long long)most);
    check_blocks(&body.arena, limit);
    check_blocks(&top.arena, limit);
    check_apart(&top, &body, loop);
    for (uint32_t k = 0; k < top.n; k++) check_neighbours(&top, k, &body, loop);
    const uint32_t n = top.arena.n_blocks;
    ot_arena_free(a);
    return n;
}

static void values_lie_beside_each_other(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) (void)check_place(seed, 0);
}

static void values_lie_whole_in_one_of_several_blocks(void **state)
{
    (void)state;
    uint32_t n = 0, several = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        n = check_place(seed, LARGEST + 100);
        several += n > 2;
    }
    assert_true(several > 30);
}

/* ---- what stays on the host ---- */

#define LOOP(work, size, starts)                                                                \
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[8,40]\n"                              \
    "  %y0 : float32[8,40] = \"onnx_tile\"::Alloc@1() {shape=[8,40], dtype=1}\n"                \
    "  %y : float32[8,40] = \"onnx_tile\"::While@1(%y0) {count=2, body=graph body {\n"          \
    "  input %i : int64[]\n  input %buffer : float32[8,40]\n  outer %x : float32[8,40]\n"       \
    "  %s : float32[8," size "] = \"onnx_tile\"::Slice@1(%x, %i) {axes=[1], sizes=[" size "], " \
    "starts=[" starts "]}\n" work                                                               \
    "  %next : float32[8,40] = \"onnx_tile\"::Deslice@1(%t, %buffer, %i) {axes=[1], "           \
    "starts=[" starts "]}\n  output %next\n}}\n"

typedef struct case_of {
    ot_model *m;
    ot_arena *a;
    ot_node_list top, body;
    ot_id *host_of;
} case_of;

static ot_node_list list_of(const ot_graph *g, ot_arena *a)
{
    ot_node_list l = {.g = g, .n = g->n_order};
    l.node = OT_NEW_N(a, const ot_node *, g->n_order + 1u);
    for (uint32_t k = 0; k < l.n; k++) l.node[k] = &g->nodes[g->order[k]];
    assert_int_equal(ot_node_list_fill(&l, a), OT_OK);
    return l;
}

static case_of open_case(const char *text)
{
    case_of c = {.m = parse(text), .a = ot_arena_new()};
    const ot_graph *bodies[8] = {0};
    if (ot_assure(c.m->graph, OT_P_ORDER | OT_P_USES) != OT_OK) fail_msg("%s", text);
    c.top = list_of(c.m->graph, c.a);
    for (uint32_t k = 0; k < c.top.n; k++)
        if (ot_is_tile_op(c.top.node[k], "While"))
            bodies[k] = ot_attr_find(c.top.node[k], "body")->g;
    for (uint32_t k = 0; k < c.top.n; k++)
        if (bodies[k]) c.body = list_of(bodies[k], c.a);
    assert_int_equal(ot_device_streams_find(&c.top, bodies, c.a, &c.host_of), OT_OK);
    return c;
}

static void close_case(case_of *c)
{
    ot_arena_free(c->a);
    ot_model_free(c->m);
}

/* x: the input stays on the host; y: what the loop fills is the result there. */
static void check_stays(const char *text, bool x, bool y)
{
    case_of c = open_case(text);
    const ot_graph *g = c.m->graph;
    const ot_id in = ot_value_find(g, "x"), buffer = ot_value_find(g, "y0");
    if (c.host_of[in] != (x ? in : OT_NONE)) fail_msg("the input of\n%s", text);
    if (c.host_of[buffer] != (y ? ot_value_find(g, "y") : OT_NONE))
        fail_msg("the result of\n%s", text);
    close_case(&c);
}

static void tiles_decide_what_stays(void **state)
{
    (void)state;
    check_stays(LOOP("  %t : float32[8,10] = Neg(%s)\n", "10", "0, 10") "  output %y\n}\n", true,
                true);
    /* two tiles are more than half */
    check_stays(LOOP("  %t : float32[8,11] = Neg(%s)\n", "11", "0, 11") "  output %y\n}\n", false,
                false);
    /* somebody else reads it */
    check_stays(LOOP("  %t : float32[8,10] = Neg(%s)\n", "10",
                     "0, 10") "  %z : float32[8,40] = Neg(%x)\n  output %y\n  output %z\n}\n",
                false, true);
    check_stays(LOOP("  %t : float32[8,10] = Neg(%s)\n", "10",
                     "0, 10") "  %z : float32[8,40] = Neg(%y)\n  output %y\n  output %z\n}\n",
                true, false);
}

static void tiles_are_made_in_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool placed;
    } of[] = {
        {LOOP("  %t : float32[8,10] = Neg(%s)\n", "10", "0, 10") "  output %y\n}\n", true},
        /* it is the window itself */
        {LOOP("  %t : float32[8,10] = Identity(%s)\n", "10", "0, 10") "  output %y\n}\n", false},
        {LOOP("  %t : float32[8,10] = Neg(%s)\n  %u : float32[8,10] = Neg(%t)\n", "10",
              "0, 10") "  output %y\n}\n",
         false}};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        case_of c = open_case(of[k].text);
        uint32_t placed = 0;
        for (uint32_t p = 0; p < c.body.n; p++) placed += ot_device_makes_in_place(&c.body, p);
        if (placed != (of[k].placed ? 1 : 0)) fail_msg("%s", of[k].text);
        close_case(&c);
    }
}

/* ---- who reads what ---- */

static void readers_are_listed_once_in_order(void **state)
{
    (void)state;
    case_of c = open_case("model ir 8 opset 17\ngraph g {\n  input %x : float32[4]\n"
                          "  %a : float32[4] = Neg(%x)\n  %b : float32[4] = Mul(%a, %a)\n"
                          "  %y : float32[4] = Add(%b, %a)\n  output %y\n}\n");
    const ot_graph *g = c.m->graph;
    const ot_id a = ot_value_find(g, "a"), b = ot_value_find(g, "b"), y = ot_value_find(g, "y");
    assert_int_equal(ot_list_readers(&c.top, a), 2);
    assert_int_equal(c.top.readers[c.top.first[a]], 1);
    assert_int_equal(c.top.readers[c.top.first[a] + 1], 2);
    assert_int_equal(ot_list_only_reader(&c.top, a), OT_NONE);
    assert_int_equal(ot_list_only_reader(&c.top, b), 2);
    assert_int_equal(ot_list_only_reader(&c.top, y), OT_NONE);
    assert_int_equal(c.top.maker[y], 2);
    assert_int_equal(c.top.maker[ot_value_find(g, "x")], OT_NONE);
    close_case(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_lie_beside_each_other),
        cmocka_unit_test(values_lie_whole_in_one_of_several_blocks),
        cmocka_unit_test(tiles_decide_what_stays),
        cmocka_unit_test(tiles_are_made_in_their_place),
        cmocka_unit_test(readers_are_listed_once_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
