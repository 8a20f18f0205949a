/* The estimate of three tiles, the figures of all tiles, and a sum over the grid of tiles that
 * is made here, over random regions.
 *
 *   three tiles  interval_figures.c  first, middle and last tile of every dim, while a walk goes
 *                down
 *   all tiles    region_figures.c    every tile of every dim, of the region built from the same
 *                                    interval
 *   grid         below               every tile of the grid, one after the other, with loops and
 *                                    nothing shared but the windows
 */
#include "cost/interval_figures.h"
#include "cost/region_figures.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t rng;

static uint32_t next_random(uint32_t n) { return (uint32_t)(ot_next_random(&rng) % n); }

enum { TEXT = 16384, NODES_MAX = 10 };

/* A random network with skips on [1,c,h,h]: h halves and doubles on the way. */
static void random_text(char *buf, uint32_t n)
{
    static const uint32_t sizes[] = {64, 48, 96, 60, 37, 128};
    uint32_t h[NODES_MAX + 1] = {sizes[next_random(6)]}, c = 4u << next_random(3);
    size_t len = (size_t)snprintf(
        buf, TEXT, "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,%u,%u,%u]\n", c, h[0],
        h[0]);
#define PUT(...) len += (size_t)snprintf(buf + len, TEXT - len, __VA_ARGS__)
    PUT("  init %%w : float32[%u,%u,3,3] = random 1\n  init %%u : float32[%u,%u,2,2] = random 2\n",
        c, c, c, c);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t skip = next_random(k + 1), kind = next_random(10);
        h[k + 1] = h[k];
        if (kind < 4 && h[skip] == h[k] && kind > 1)
            PUT("  %%v%u = Add(%%v%u, %%v%u)\n", k + 1, k, skip);
        else if (kind == 1)
            PUT("  %%v%u = Softmax(%%v%u) {axis=%u}\n", k + 1, k, 1 + next_random(3));
        else if (kind == 4 && h[k] % 2 == 0 && h[k] > 16) {
            PUT("  %%v%u = MaxPool(%%v%u) {kernel_shape=[2,2],strides=[2,2]}\n", k + 1, k);
            h[k + 1] = h[k] / 2;
        } else if (kind == 5 && h[k] % 2 == 0 && h[k] > 16) {
            PUT("  %%v%u = Conv(%%v%u, %%w) {pads=[1,1,1,1],strides=[2,2]}\n", k + 1, k);
            h[k + 1] = h[k] / 2;
        } else if (kind == 6 && h[k] < 100) {
            PUT("  %%v%u = ConvTranspose(%%v%u, %%u) {strides=[2,2]}\n", k + 1, k);
            h[k + 1] = h[k] * 2;
        } else if (kind == 7)
            PUT("  %%v%u = Conv(%%v%u, %%w) {pads=[2,2,2,2],dilations=[2,2]}\n", k + 1, k);
        else if (kind == 8 && h[skip] == h[k])
            PUT("  %%v%u = MatMul(%%v%u, %%v%u)\n", k + 1, k, skip);
        else if (kind == 9)
            PUT("  %%v%u = Relu(%%v%u)\n", k + 1, k);
        else
            PUT("  %%v%u = Conv(%%v%u, %%w) {pads=[1,1,1,1]}\n", k + 1, k);
    }
    PUT("  output %%v%u\n}\n", n);
#undef PUT
}

static ot_target small_target(void)
{
    ot_target t = {.fast_bytes = 1 << (12 + next_random(8)),
                   .granule = 64,
                   .cores = 1,
                   .is_cache = next_random(2) == 0,
                   .double_buffer = next_random(2) == 0,
                   .bw_fast = 100e9,
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
    t.runtime = ot_runtime_of(t.is_cache, false);
    return t;
}

/* ---- all that is compared ---- */

typedef struct sample {
    ot_arena *a;
    ot_seq s;
    ot_target t;
    ot_walk down, build; /* the trial's walk; that of the regions built meanwhile */
    ot_trial *tr;
    uint64_t seed;
    const char *text;
    ot_region r;
    ot_tile_windows **win; /* [n_dims][n_tiles] */
    ot_totals three, all;
    ot_node_sums sums3, sums;
} sample;

static void differ(const sample *x, const char *what, double a, double b)
{
    fail_msg("seed %llu, region [%u,%u], tiles %u x %u: %s is %.12g and %.12g\n%s",
             (unsigned long long)x->seed, x->r.first, x->r.last, x->r.dims[0].n_tiles,
             x->r.n_dims > 1 ? x->r.dims[1].n_tiles : 1, what, a, b, x->text);
}

static void windows_of_all_tiles(sample *x)
{
    ot_why why;
    x->win = OT_NEW_N(x->a, ot_tile_windows *, x->r.n_dims);
    for (uint32_t d = 0; d < x->r.n_dims; d++) {
        x->win[d] = OT_NEW_N(x->a, ot_tile_windows, x->r.dims[d].n_tiles);
        for (uint32_t k = 0; k < x->r.dims[d].n_tiles; k++) {
            assert_int_equal(ot_tile_windows_new(x->s.g, &x->r, x->a, &x->win[d][k]), OT_OK);
            assert_true(ot_tile_windows_get(x->s.g, &x->r, d, k, &x->win[d][k], &why));
        }
    }
}

static int64_t length(ot_win w) { return w.hi - w.lo; }

/* The tiles between the first and the last have windows of the same lengths, and leave the same
 * parts out. */
static bool are_alike(const sample *x, uint32_t d)
{
    const ot_region *r = &x->r;
    for (uint32_t k = 2; k + 1 < r->dims[d].n_tiles; k++) {
        const ot_tile_windows *a = &x->win[d][1], *b = &x->win[d][k];
        for (uint32_t v = 0; v < r->n_values; v++)
            if (length(a->made[v]) != length(b->made[v])) return false;
        for (uint32_t i = 0; i < r->n_nodes; i++)
            for (uint32_t j = 0; a->ops[i].in && j < x->s.g->nodes[r->nodes[i].node].n_in; j++) {
                uint32_t v = r->nodes[i].in[j];
                if (length(a->ops[i].in[j]) != length(b->ops[i].in[j])) return false;
                if (v != OT_NONE &&
                    a->ops[i].in[j].lo - a->made[v].lo != b->ops[i].in[j].lo - b->made[v].lo)
                    return false;
            }
    }
    return true;
}

/* Bytes that the working sets may differ by. above: values from outside that the first node does
 * not read; below: values with several readers. */
static void ws_slack(const sample *x, double *above, double *below)
{
    const ot_region *r = &x->r;
    *above = *below = 2;
    for (uint32_t v = 0; v < r->n_values; v++) {
        uint32_t readers = 0, first = OT_NONE;
        double b = (double)r->values[v].bytes;
        for (uint32_t i = r->n_nodes; i-- > 0;)
            for (uint32_t j = 0; j < x->s.g->nodes[r->nodes[i].node].n_in; j++)
                if (r->nodes[i].in[j] == v) readers++, first = i;
        for (uint32_t d = 0; d < r->n_dims; d++) {
            int64_t most = 0;
            if (r->values[v].axis[d] < 0) continue;
            for (uint32_t k = 0; k < r->dims[d].n_tiles; k++)
                most = ot_max(most, length(x->win[d][k].made[v]));
            b *= (double)most /
                 (double)x->s.g->values[r->values[v].value].dims[r->values[v].axis[d]];
        }
        if (v < r->n_inputs && first > 0) *above += b;
        if (readers > 1) *below += b;
    }
}

static double gap(double a, double b) { return fabs(a - b) / fmax(1e-30, fmax(fabs(a), fabs(b))); }

/* Three tiles against all. Returns the widest gap of what should be about equal. */
static double compare_estimate(const sample *x, bool alike)
{
    const ot_totals *a = &x->three, *b = &x->all;
    const struct {
        const char *what;
        double a, b;
        bool always; /* equal whatever the tiles look like */
    } rows[] = {
        {"t_fast", a->t_fast, b->t_fast, false},
        {"t_mid", a->t_mid, b->t_mid, false},
        {"t_slow", a->t_slow, b->t_slow, false},
        {"in_bytes", a->in_bytes, b->in_bytes, false},
        {"in_slow", a->in_slow, b->in_slow, false},
        {"in_seconds", a->in_seconds, b->in_seconds, false},
        {"runs", a->runs, b->runs, false},
        {"border_tile", a->border_tile, b->border_tile, false},
        {"macs", x->sums3.macs, x->sums.macs, false},
        {"halo", a->halo, b->halo, false},
        {"nodes", a->nodes, b->nodes, true},
        {"border_whole", a->border_whole, b->border_whole, true},
        {"out_bytes", a->out_bytes, b->out_bytes, true},
        {"out_seconds", a->out_seconds, b->out_seconds, true},
        {"out_kept", a->out_kept, b->out_kept, true},
        {"weights", a->weights, b->weights, true},
        {"tiles", a->tiles, b->tiles, true},
        {"row", (double)a->row, (double)b->row, true},
        {"inputs", a->n_inputs, b->n_inputs, true},
        {"outputs", a->n_outputs, b->n_outputs, true},
        {"chain", a->chain, b->chain, true},
        {"n_dims", a->n_dims, b->n_dims, true},
        {"outermost", a->outermost, b->outermost, true},
    };
    double widest = 0, above, below;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        double g = gap(rows[k].a, rows[k].b);
        if (g > 1e-9 && (alike || rows[k].always)) differ(x, rows[k].what, rows[k].a, rows[k].b);
        if (strcmp(rows[k].what, "halo") != 0) widest = fmax(widest, g);
    }
    ws_slack(x, &above, &below);
    if (alike && (x->sums3.ws > x->sums.ws + above || x->sums3.ws < x->sums.ws - below))
        differ(x, "ws", x->sums3.ws, x->sums.ws);
    return widest;
}

/* ---- the grid ---- */

/* Elements of the axis of v that tile k of dim d holds (or reads: win), and of the whole axis; 1
 * of 1 where it is not cut. */
static double part_of(const sample *x, uint32_t v, uint32_t d, ot_win win)
{
    int8_t axis = x->r.values[v].axis[d];
    return axis < 0 ? 1
                    : (double)length(win) / (double)x->s.g->values[x->r.values[v].value].dims[axis];
}

static double made_bytes(const sample *x, const uint32_t *tile, uint32_t v)
{
    double b = (double)x->r.values[v].bytes;
    for (uint32_t d = 0; d < x->r.n_dims; d++) b *= part_of(x, v, d, x->win[d][tile[d]].made[v]);
    return b;
}

static double read_bytes(const sample *x, const uint32_t *tile, uint32_t i, uint32_t j)
{
    uint32_t v = x->r.nodes[i].in[j];
    double b = (double)x->r.values[v].bytes;
    for (uint32_t d = 0; d < x->r.n_dims; d++)
        if (x->r.nodes[i].in_axis[d][j] >= 0)
            b *= part_of(x, v, d, x->win[d][tile[d]].ops[i].in[j]);
    return b;
}

/* Bytes that node i makes and that its readers want less of, along d. */
static double cropped_bytes(const sample *x, const uint32_t *tile, uint32_t i, uint32_t d)
{
    const ot_region *r = &x->r;
    const ot_tile_windows *w = &x->win[d][tile[d]];
    double sum = 0;
    for (uint32_t c = i + 1; c < r->n_nodes; c++)
        for (uint32_t j = 0; j < x->s.g->nodes[r->nodes[c].node].n_in; j++) {
            uint32_t v = r->nodes[c].in[j];
            if (v == OT_NONE || r->values[v].node != i || r->nodes[c].in_axis[d][j] < 0) continue;
            ot_win in = w->ops[c].in[j], made = w->made[v];
            if (length(in) <= 0 || (in.lo == made.lo && in.hi == made.hi)) continue;
            double b = (double)r->values[v].bytes * part_of(x, v, d, in);
            for (uint32_t e = 0; e < r->n_dims; e++)
                if (e != d) b *= part_of(x, v, e, x->win[e][tile[e]].made[v]);
            sum += b;
        }
    return sum;
}

/* Most bytes live in one tile, by running through it. */
static double run_tile(const sample *x, const uint32_t *tile)
{
    const ot_region *r = &x->r;
    double most = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        double live = 0;
        for (uint32_t v = 0; v < r->n_values; v++) {
            uint32_t from = v < r->n_inputs ? OT_NONE : r->values[v].node, to = from;
            bool cut = false;
            for (uint32_t d = 0; d < r->n_dims; d++) cut |= r->values[v].axis[d] >= 0;
            for (uint32_t c = 0; c < r->n_nodes; c++)
                for (uint32_t j = 0; j < x->s.g->nodes[r->nodes[c].node].n_in; j++)
                    if (r->nodes[c].in[j] == v)
                        from = from < c ? from : c, to = to == OT_NONE || to < c ? c : to;
            if (cut && from <= i && i <= to) live += made_bytes(x, tile, v);
        }
        const ot_node *n = &x->s.g->nodes[r->nodes[i].node];
        bool over = ot_op_access(n->op) == OT_ACC_POINTWISE ||
                    ot_op_access(n->op) == OT_ACC_SOFTMAX;
        /* perhaps it overwrites an operand */
        if (over) live -= made_bytes(x, tile, r->nodes[i].out[0]);
        most = fmax(most, live);
    }
    return most;
}

/* Sums over the grid against all tiles of every dim. */
static void compare_grid(const sample *x)
{
    const ot_region *r = &x->r;
    const ot_graph *g = x->s.g;
    const ot_target *t = &x->t;
    double in = 0, macs = 0, fast = 0, slow = 0, nodes = 0, most = 0;
    uint32_t tile[OT_DIMS_MAX] = {0}, n1 = r->n_dims > 1 ? r->dims[1].n_tiles : 1;
    for (tile[0] = 0; tile[0] < r->dims[0].n_tiles; tile[0]++)
        for (tile[1] = 0; tile[1] < n1; tile[1]++) {
            for (uint32_t v = 0; v < r->n_inputs; v++) {
                bool cut = r->values[v].axis[0] >= 0 ||
                           (r->n_dims > 1 && r->values[v].axis[1] >= 0);
                if (cut) in += made_bytes(x, tile, v);
            }
            most = fmax(most, run_tile(x, tile));
        }
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_node *n = &g->nodes[r->nodes[i].node];
        uint32_t pos = x->s.pos[r->nodes[i].node];
        double bytes = 0, work = 0, crop[OT_DIMS_MAX] = {0}, pack = 0;
        int64_t outs = x->s.elems[n->out[0]], ins = 0;
        for (uint32_t j = 0; j < n->n_in; j++)
            if (x->s.act[n->in[j]]) ins += x->s.elems[n->in[j]];
        for (tile[0] = 0; tile[0] < r->dims[0].n_tiles; tile[0]++)
            for (tile[1] = 0; tile[1] < n1; tile[1]++) {
                double share = 1;
                for (uint32_t d = 0; d < r->n_dims; d++) {
                    share *= part_of(x, r->nodes[i].out[0], d,
                                     x->win[d][tile[d]].made[r->nodes[i].out[0]]);
                    crop[d] += cropped_bytes(x, tile, i, d);
                }
                work += share;
                bytes += made_bytes(x, tile, r->nodes[i].out[0]);
                for (uint32_t j = 0; j < n->n_in; j++) {
                    uint32_t v = r->nodes[i].in[j];
                    if (v == OT_NONE) continue;
                    double b = read_bytes(x, tile, i, j);
                    bytes += b;
                    if (n->op == OT_OP_MatMul && t->runtime->packing == OT_PACK_SLOW &&
                        b >= (double)r->values[v].bytes)
                        pack += b / t->bw_slow;
                }
                nodes++;
            }
        macs += work * (double)ot_node_macs(g, n);
        double compute = ot_cost_compute(g, n, t, ot_node_macs(g, n), outs, ins) * work;
        double cut = 2 * fmax(crop[0], crop[1]);
        assert_false(x->s.fused[pos]);
        fast += ot_cost_overlap(t, compute, bytes / t->bw_fast) + cut / t->bw_fast + pack;
        slow += ot_cost_overlap(t, compute, bytes / t->bw_slow) + cut / t->bw_slow + pack;
    }
    if (gap(in, x->all.in_bytes) > 1e-9) differ(x, "in_bytes over the grid", in, x->all.in_bytes);
    if (gap(macs, x->sums.macs) > 1e-9) differ(x, "macs over the grid", macs, x->sums.macs);
    if (gap(nodes, x->all.nodes) > 1e-9) differ(x, "nodes over the grid", nodes, x->all.nodes);
    if (gap(fast, x->all.t_fast) > 1e-9) differ(x, "t_fast over the grid", fast, x->all.t_fast);
    if (gap(slow, x->all.t_slow) > 1e-9) differ(x, "t_slow over the grid", slow, x->all.t_slow);
    if (most > x->sums.ws + 1) differ(x, "ws in the grid", most, x->sums.ws);
}

/* ---- random regions ---- */

typedef struct tally {
    uint32_t regions, alike, held; /* compared; with alike tiles; whose working sets are the same */
    double widest;                 /* gap where tiles are not alike */
} tally;

/* The interval that the trial has visited, in the tiles of pair k. */
static void compare(sample *x, uint32_t k, tally *y)
{
    const pair *p = &x->tr->pairs[k];
    ot_choice c = {.first = x->down.lo,
                   .end = x->down.end,
                   .n_dims = x->tr->n_dims,
                   .out_index = x->tr->out_index};
    bool alike = true;
    ot_region_figures all;
    memcpy(c.axes, x->tr->axes, sizeof c.axes);
    for (uint32_t d = 0; d < c.n_dims; d++) c.tile[d] = x->tr->dim[d][p->c[d]].tile;
    assert_int_equal(ot_region_build(&x->s, &x->build, &c, x->a, &x->r), OT_OK);
    x->r.form = OT_FORM_UNROLLED;
    windows_of_all_tiles(x);
    for (uint32_t d = 0; d < c.n_dims; d++) alike = alike && are_alike(x, d);
    ot_trial_totals(x->tr, p, &x->three);
    x->sums3 = p->sums;
    assert_int_equal(ot_region_totals(&x->s, &x->t, 0, &x->r, &all), OT_OK);
    assert_true(all.possible);
    x->all = all.totals;
    x->sums = all.sums;
    double widest = compare_estimate(x, alike);
    compare_grid(x);
    y->regions++;
    y->alike += alike;
    y->held += fabs(x->sums3.ws - x->sums.ws) < 2;
    y->widest = fmax(y->widest, alike ? 0 : widest);
}

static void walk_down(sample *x, uint32_t end, const int8_t *axes, uint32_t n_dims, tally *y)
{
    ot_walk_start(&x->down, end, 0, axes, n_dims);
    ot_trial_start(x->tr, &x->down, 0, axes, n_dims);
    while (x->down.lo > 0) {
        int st = ot_walk_step(&x->down);
        if (!ot_trial_visit(x->tr, st)) return;
        if (st != OT_ST_IN) continue;
        uint32_t k = next_random(x->tr->n_pairs);
        if (!x->tr->pairs[k].dead) compare(x, k, y);
    }
}

static void sample_graph(uint64_t seed, tally *y)
{
    char text[TEXT];
    ot_diag d = {0};
    ot_model *m = NULL;
    rng = seed;
    random_text(text, 2 + next_random(NODES_MAX - 1));
    sample x = {.a = ot_arena_new(), .t = small_target(), .seed = seed, .text = text};
    ot_plan_options o = {.goal = OT_GOAL_TIME, .force = next_random(2)};
    if (ot_text_parse(text, strlen(text), &d, &m) != OT_OK)
        fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, d.message, text);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_seq_build(m->graph, x.a, &x.s), OT_OK);
    assert_int_equal(ot_cost_fill(&x.s, &x.t), OT_OK);
    assert_int_equal(ot_walk_new(&x.s, &x.down), OT_OK);
    assert_int_equal(ot_walk_new(&x.s, &x.build), OT_OK);
    x.tr = ot_trial_new(&x.s, &x.t, &o);
    assert_non_null(x.tr);
    for (uint32_t end = 0; end < x.s.n; end++) {
        int8_t sets[OT_AXIS_SETS_MAX][OT_DIMS_MAX];
        uint32_t dims[OT_AXIS_SETS_MAX], n = ot_candidate_axes(&x.s, &x.down, end, 0, sets, dims);
        for (uint32_t k = 0; k < n; k++)
            if (dims[k] < 3) walk_down(&x, end, sets[k], dims[k], y);
    }
    ot_arena_free(x.a);
    ot_model_free(m);
}

/* Tiles that are not alike: halos that reach over a border in more tiles than the first and the
 * last; tiles that strides and axes that do not divide make of two lengths in turn. The one in
 * the middle stands for all: it was off by a third at most. */
#define BOUND 0.35

static void three_tiles_all_tiles_and_grid(void **state)
{
    (void)state;
    tally y = {0};
    for (uint64_t seed = 1; seed <= 150; seed++) sample_graph(seed, &y);
    print_message("seeds 1 to 150: %u regions, %u of alike tiles, %u with the same working set, "
                  "gap else at most %.3f\n",
                  y.regions, y.alike, y.held, y.widest);
    assert_true(y.regions > 1000 && y.alike > y.regions / 4 && y.held > y.regions / 2);
    assert_true(y.widest <= BOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(three_tiles_all_tiles_and_grid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
