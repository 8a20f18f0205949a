/* What a node, a tile and a region cost beside their work: models with next to no work.
 *
 *   chain    200 products of 4x4 matrices                           a node = time / 200
 *   loop     While of 1000 tiles, 1 product each; 9 products each   a node = difference / 8000, a
 *                                                                   tile = the rest
 *   regions  40 Whiles one after the other, a tile for each thread  a region = time / 40 less its
 *            tiles and nodes
 *
 * Weights of 1/4 keep the values as large as they are. Products are not merged with one another.
 * There are more nodes of tiles than others: where the loop can be measured and its nodes cost
 * less than those of the chain, they count.
 *
 * On a device a node is a launch; what a run costs besides (its transfers, the last wait) is
 * that of a chain of one node. What loops read and make is made and read there: tiles of inputs
 * and results would be moved.
 */
#include "calibrate.h"

#define TINY_NODES  200
#define TILES       1000
#define LONG_BODY   9
#define REGIONS     40
#define NODE_MOST   20e-6
#define TILE_MOST   50e-6
#define REGION_MOST 100e-6
#define DEVICE_MOST 50 /* times these: launches pass through a driver */

typedef struct request {
    int64_t tiles, nodes; /* of a loop; nodes of a chain */
    bool on_device;
} request;
typedef void (*graph_writer)(FILE *f, const request *r);

/* Seconds of the graph that `write` writes. */
static ot_status seconds_of(const ot_calibration *c, graph_writer write, int64_t tiles,
                            int64_t nodes, uint32_t threads, double *out, ot_diag *d)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return ot_fail_nomem(d);
    write(f, &(request){tiles, nodes, c->dev});
    ot_status s = fclose(f) == 0 ? ot_measure_graph(c, text, threads, out, d) : ot_fail_nomem(d);
    free(text);
    return s;
}

/* ---- graphs ---- */

static void write_chain(FILE *f, const request *r)
{
    fputs("input %v0 : float32[4,4]\ninit %w : float32[4,4] = fill 0.25\n", f);
    for (int64_t k = 0; k < r->nodes; k++)
        fprintf(f, "%%v%lld = MatMul(%%v%lld, %%w)\n", (long long)k + 1, (long long)k);
    fprintf(f, "output %%v%lld\n", (long long)r->nodes);
}

/* "[0, 1, 2...]" */
static void write_starts(FILE *f, int64_t n)
{
    for (int64_t k = 0; k < n; k++) fprintf(f, "%s%lld", k ? ", " : "[", (long long)k);
    fputc(']', f);
}

/* Region number `id`: Alloc, and a While over the rows of %from. */
static void write_region(FILE *f, long long id, const char *from, const request *r)
{
    const long long n = r->tiles, nodes = r->nodes;
    fprintf(f, "%%a%lld : float32[%lld,4] = \"onnx_tile\"::Alloc@1() {shape=[%lld, 4], dtype=1}\n",
            id, n, n);
    fprintf(f,
            "%%y%lld : float32[%lld,4] = \"onnx_tile\"::While@1(%%a%lld) {count=%lld, body=graph "
            "body%lld {\n",
            id, n, id, n, id);
    fprintf(f,
            "input %%i%lld : int64[]\ninput %%b%lld : float32[%lld,4]\nouter %%%s : "
            "float32[%lld,4]\nouter %%w : float32[4,4]\n",
            id, id, n, from, n);
    fprintf(f,
            "%%r%lld_0 : float32[1,4] = \"onnx_tile\"::Slice@1(%%%s, %%i%lld) {axes=[0], "
            "sizes=[1], starts=",
            id, from, id);
    write_starts(f, n);
    fputs("}\n", f);
    for (long long k = 0; k < nodes; k++)
        fprintf(f, "%%r%lld_%lld : float32[1,4] = MatMul(%%r%lld_%lld, %%w)\n", id, k + 1, id, k);
    fprintf(f,
            "%%o%lld : float32[%lld,4] = \"onnx_tile\"::Deslice@1(%%r%lld_%lld, %%b%lld, %%i%lld) "
            "{axes=[0], starts=",
            id, n, id, nodes, id, id);
    write_starts(f, n);
    fprintf(f, "}\noutput %%o%lld\n}}\n", id);
}

/* `count` regions, each on the result of the one before. */
static void write_regions(FILE *f, long long count, const request *r)
{
    char from[24] = "x";
    fprintf(f, "input %%%s : float32[%lld,4]\ninit %%w : float32[4,4] = fill 0.25\n",
            r->on_device ? "v" : from, (long long)r->tiles);
    if (r->on_device) fputs("%x = MatMul(%v, %w)\n", f);
    for (long long k = 0; k < count; k++) {
        write_region(f, k, from, r);
        snprintf(from, sizeof from, "y%lld", k);
    }
    if (r->on_device) fprintf(f, "%%z = MatMul(%%%s, %%w)\n", from);
    fprintf(f, "output %%%s\n", r->on_device ? "z" : from);
}

static void write_loop(FILE *f, const request *r) { write_regions(f, 1, r); }
static void write_many(FILE *f, const request *r) { write_regions(f, REGIONS, r); }

/* ---- overheads ---- */

/* A machine that is busy with other things makes threads wait for milliseconds: that is not the
 * engine's overhead. */
static double within(double seconds, double least, double most)
{
    return seconds < least ? least : seconds > most ? most : seconds;
}

static ot_status measure_loops(ot_calibration *c, double times, ot_diag *d)
{
    ot_target *t = &c->target;
    double of_one, of_many, of_regions;
    OT_TRY(seconds_of(c, write_loop, TILES, 1, 1, &of_one, d));
    OT_TRY(seconds_of(c, write_loop, TILES, LONG_BODY, 1, &of_many, d));
    OT_TRY(seconds_of(c, write_many, c->threads, 1, c->threads, &of_regions, d));
    t->node_overhead = within((of_many - of_one) / (TILES * (LONG_BODY - 1)), 50e-9,
                              t->node_overhead);
    t->loop_overhead = within(of_one / TILES - t->node_overhead, 50e-9, TILE_MOST * times);
    t->region_overhead = within(of_regions / REGIONS - t->loop_overhead - t->node_overhead, 1e-6,
                                REGION_MOST * times);
    return OT_OK;
}

ot_status ot_measure_overheads(ot_calibration *c, ot_diag *d)
{
    const double times = c->dev ? DEVICE_MOST : 1;
    ot_diag ignored = {0};
    double took, of_one = 0;
    OT_TRY(seconds_of(c, write_chain, 0, TINY_NODES, 1, &took, d));
    if (c->dev) OT_TRY(seconds_of(c, write_chain, 0, 1, 1, &of_one, d));
    c->target.node_overhead = within((took - of_one) / (TINY_NODES - (c->dev ? 1 : 0)), 50e-9,
                                     NODE_MOST * times);
    ot_status s = measure_loops(c, times, &ignored);
    if (s == OT_E_INPUT) {
        if (c->log)
            fprintf(c->log, "onnx-tile: overheads of loops are estimates: %s\n", ignored.message);
        return OT_OK;
    }
    return s == OT_OK ? OT_OK : ot_fail(d, s, "%s", ignored.message);
}
