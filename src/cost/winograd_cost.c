/* Cost model, the engine's 3x3 convolutions: which of them take Winograd's algorithm, and how
 * long that takes.
 *
 *   Conv, stride 1 --> spec of a run, --> ot_winograd_guess_for  pays?  cycles, growth of weights
 *                      room for weights   (the engine's own function)
 *
 *   untiled    the whole map, all threads at it
 *   tiled      the mean tile, on one thread, times the number of tiles: blocks of m x m outputs
 *              that a tile fills in part are
 *              computed whole, and each strip reads the transformed weights again
 *
 * Room is given in the order of nodes, as in a session of the untiled model. A tiled convolution
 * has the room of the untiled one: what others leave over when tiles take smaller blocks is not
 * counted on. A cycle multiplies two vectors; rate_conv_winograd is multiply-adds per second of
 * these products.
 */
#include "cost.h"

#include "fusion/winograd_rule.h"

#include <math.h>

/* Floats of a vector that the target's engine computes with. */
static int64_t block_of(const ot_target *t)
{
    bool here = *t->cpu || strcmp(t->name, "host") == 0;
    return here ? ot_cpu_lanes() : t->runtime->conv.block;
}

static bool all_are(const ot_node *n, const char *name, int64_t x)
{
    size_t count;
    const int64_t *a = ot_attr_ints(n, name, &count);
    for (size_t k = 0; a && k < count; k++)
        if (a[k] != x) return false;
    return true;
}

/* The same of a dilated one, as the engine takes it apart (wino_conv.c): in float32, dilated alike
 * both ways. */
static bool take_apart(const ot_graph *g, const ot_node *n, ot_winograd_sizes *s)
{
    size_t count;
    const int64_t *a = ot_attr_ints(n, "dilations", &count);
    if (!a || count != 2 || all_are(n, "dilations", 1)) return true;
    const int64_t d = a[0];
    if (d < 1 || a[1] != d || g->values[n->in[0]].dtype != OT_F32) return false;
    s->pad_top = ot_max(0, (s->out_h + 2 * d - s->in_h) / 2);
    s->pad_left = ot_max(0, (s->out_w + 2 * d - s->in_w) / 2);
    return ot_winograd_take_apart(s, d);
}

/* The convolution of `batch` maps to h x w outputs; whole: of the model, with the zeros around it.
 * A dilated one is described as a whole alone. */
static bool describe(const ot_graph *g, const ot_node *n, int64_t batch, int64_t h, int64_t w,
                     bool whole, ot_winograd_sizes *s)
{
    if (n->op != OT_OP_Conv || n->n_in < 2 || n->in[0] == OT_NONE || n->in[1] == OT_NONE)
        return false;
    const ot_value *x = &g->values[n->in[0]], *k = &g->values[n->in[1]];
    if (!ot_dtype_is_real(x->dtype) || x->rank != 4 || k->rank != 4 || k->dims[2] != 3 ||
        k->dims[3] != 3)
        return false;
    if (ot_attr_int(n, "group", 1) != 1 || !all_are(n, "strides", 1) ||
        !(whole || all_are(n, "dilations", 1)))
        return false;
    *s = (ot_winograd_sizes){.batch = batch,
                             .in_channels = k->dims[1],
                             .out_channels = k->dims[0],
                             .out_h = h,
                             .out_w = w,
                             .in_h = whole ? x->dims[2] : h + 2,
                             .in_w = whole ? x->dims[3] : w + 2,
                             .threads = 1};
    s->pad_top = ot_max(0, (h + 2 - s->in_h) / 2);
    s->pad_left = ot_max(0, (w + 2 - s->in_w) / 2);
    return take_apart(g, n, s);
}

/* The node of the group of the convolution at p that reads v; NULL: v is the group's result. */
static const ot_node *next_part(const ot_seq *s, uint32_t p, ot_id v)
{
    const ot_value *x = &s->g->values[v];
    for (uint32_t u = 0; u < x->n_uses; u++) {
        uint32_t q = s->pos[x->uses[u]];
        if (q != OT_NONE && s->head[q] == p) return &s->g->nodes[x->uses[u]];
    }
    return NULL;
}

/* What works on the result in the same pass is no more than a residual, then an activation that
 * Winograd's code knows. */
static bool posts_fit(const ot_seq *s, uint32_t p)
{
    const ot_node *n = &s->g->nodes[s->node[p]];
    bool residual = false, activation = false;
    while ((n = next_part(s, p, n->out[0]))) {
        if (n->op == OT_OP_BatchNormalization || ot_cost_has_constant(s, n)) {
            if (n->op == OT_OP_Clip && activation) return false;
            activation |= n->op == OT_OP_Clip;
        } else if (n->op == OT_OP_Add || n->op == OT_OP_Sum) {
            if (residual || activation) return false;
            residual = true;
        } else if (n->op == OT_OP_Relu || n->op == OT_OP_Clip || n->op == OT_OP_LeakyRelu) {
            if (activation) return false;
            activation = true;
        } else {
            return false;
        }
    }
    return true;
}

double ot_cost_winograd_work(const ot_graph *g, const ot_node *n)
{
    ot_winograd_sizes spec;
    if (n->n_out < 1 || n->out[0] == OT_NONE) return 0;
    const ot_value *y = &g->values[n->out[0]];
    if (y->rank != 4 || !describe(g, n, y->dims[0], y->dims[2], y->dims[3], true, &spec)) return 0;
    ot_winograd_guess guess = ot_winograd_guess_for(&spec, ot_cpu_lanes(), OT_WINOGRAD_ROOM);
    return guess.pays ? guess.cycles * 2 * (double)ot_cpu_lanes() : 0;
}

/* Seconds of a run; 0: it is a direct one. *growth: see ot_winograd_growth. */
static double seconds_of(const ot_target *t, const ot_winograd_sizes *spec, int64_t room,
                         int64_t *growth)
{
    int64_t block = block_of(t);
    ot_winograd_guess guess = ot_winograd_guess_for(spec, block, room);
    *growth = guess.growth;
    if (!guess.pays) return 0;
    double rate = t->rate_conv_winograd > 0 ? t->rate_conv_winograd
                                            : t->rate_conv / t->runtime->conv.direct_part;
    return guess.cycles * (double)spec->threads * 2 * (double)block / rate;
}

void ot_cost_winograd_fill(ot_seq *s, const ot_target *t)
{
    const ot_graph *g = s->g;
    int64_t room = OT_WINOGRAD_ROOM, growth;
    for (uint32_t p = 0; p < s->n; p++) {
        const ot_node *n = &g->nodes[s->node[p]];
        ot_winograd_sizes spec;
        s->wino_room[p] = -1;
        if (!t->runtime->conv.winograd || s->on_bytes[p] || n->n_out < 1 || n->out[0] == OT_NONE)
            continue;
        const ot_value *y = &g->values[n->out[0]];
        if (y->rank != 4 || !describe(g, n, y->dims[0], y->dims[2], y->dims[3], true, &spec))
            continue;
        if (s->act[n->in[1]] || !posts_fit(s, p)) continue;
        spec.threads = t->cores > 1 ? t->cores : 1;
        bool pays = seconds_of(t, &spec, room, &growth) > 0;
        s->wino_room[p] = pays ? growth + 1 : 0;
        room -= pays ? growth : 0;
    }
}

double ot_cost_winograd(const ot_seq *s, uint32_t p, const ot_target *t, const ot_share *cut,
                        uint32_t n_dims)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    ot_winograd_sizes spec;
    int64_t growth;
    if (s->wino_room[p] < 0) return 0;
    const ot_value *y = &g->values[n->out[0]];
    double e[4] = {(double)y->dims[0], (double)y->dims[1], (double)y->dims[2], (double)y->dims[3]},
           tiles = 1;
    for (uint32_t d = 0; d < n_dims; d++) {
        tiles *= cut[d].tiles;
        if (cut[d].axis >= 0 && cut[d].axis < 4) e[cut[d].axis] *= cut[d].made / cut[d].tiles;
    }
    bool whole = e[2] >= (double)y->dims[2] && e[3] >= (double)y->dims[3];
    if (n_dims > 0 && !all_are(n, "dilations", 1)) return 0; /* bodies take them as direct ones */
    if (e[1] < (double)y->dims[1]) return 0; /* tiles of maps have weights of their own */
    if (!describe(g, n, ot_max(1, llround(e[0])), ot_max(1, llround(e[2])),
                  ot_max(1, llround(e[3])), whole, &spec))
        return 0;
    if (n_dims == 0 || t->one_tile) spec.threads = t->cores > 1 ? t->cores : 1;
    return tiles * seconds_of(t, &spec, ot_max(s->wino_room[p] - 1, 0), &growth);
}
