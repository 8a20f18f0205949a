/* Convolutions whose maps are plain tensors, for those who read them so.
 *
 *   blocked    x --> Conv --> v in blocks --> change --> v --> tiles, Concat, Resize
 *                                 v is there twice while it is changed
 *   plain      x --> Conv --> v --> tiles, Concat, Resize
 *
 * A runtime computes a convolution in blocks where it knows the weights, so those of these
 * convolutions are handed on as unpacked ones are (transform/unpacked_weights.c), however small
 * they are. Which of them pay is found by trying, those of the largest maps first: all from a size
 * on, then one after the other. ResNet-50 at 640 x 640: the first convolution alone, which a
 * region reads; growth 53 -> 28 MB.
 */
#include "candidates.h"

#include "transform/transform.h"

#define MOST_TRIES  24
#define MOST_NODES  24000 /* that are written and simulated, in all tries of a lap */
#define LEAST_PART  16    /* of the growth that a map takes at least */
#define PLAIN_SAVES 0.95  /* of the score, by all of them */
#define ONE_SAVES   0.985 /* by each */
#define HOLDS       0.97  /* of the process, by all of them */

typedef struct large_map {
    ot_id weights;
    int64_t bytes; /* of what its convolutions read or make, the largest */
} large_map;

/* A search among the maps of a graph. */
typedef struct plain_search {
    ot_candidates *x;
    const ot_region_set *won, *best, *at; /* sets: before, with `least`, of the last score */
    large_map *all;                       /* [n] the largest first */
    uint32_t n, tries, most;
    ot_id *now; /* [n_now] weights that are tried */
    uint32_t n_now;
    int64_t least; /* what the best of them score */
} plain_search;

static int64_t map_bytes(const ot_graph *g, ot_id v)
{
    int64_t bytes;
    return v != OT_NONE && ot_value_bytes(&g->values[v], &bytes) ? bytes : 0;
}

static int by_size(const void *a, const void *b)
{
    const large_map *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->weights < y->weights ? -1 : x->weights > y->weights;
}

/* Weights of convolutions with maps of `from` bytes or more that are not read as they are yet. */
static void find_maps(plain_search *q, int64_t from)
{
    const ot_candidates *x = q->x;
    const ot_graph *g = x->g;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (n->op != OT_OP_Conv || n->n_in < 2 || n->in[1] == OT_NONE || n->n_out == 0) continue;
        const int64_t bytes = ot_max(map_bytes(g, n->in[0]), map_bytes(g, n->out[0])),
                      weights = map_bytes(g, n->in[1]);
        const bool is_read = x->how.unpacked_from > 0 && weights >= x->how.unpacked_from;
        uint32_t at = 0;
        if (bytes < from || is_read || !ot_may_unpack(g, n->in[1])) continue;
        while (at < q->n && q->all[at].weights != n->in[1]) at++;
        if (at == q->n) q->all[q->n++] = (large_map){.weights = n->in[1]};
        q->all[at].bytes = ot_max(q->all[at].bytes, bytes);
    }
    qsort(q->all, q->n, sizeof *q->all, by_size);
}

/* *bytes: the least score of a set with the weights that are tried now, and q->at, which one. What
 * is too slow scores INT64_MAX. */
static ot_status score_now(plain_search *q, int64_t *bytes)
{
    static const ot_region_set NONE = {0};
    ot_candidates *x = q->x;
    *bytes = INT64_MAX;
    x->how.plain = q->now;
    x->how.n_plain = q->n_now;
    for (size_t k = 0; k < x->n_kept + 2; k++) {
        const ot_region_set *set = k == 0 ? q->best : k == 1 ? &NONE : &x->kept[k - 2];
        int64_t now;
        if (k > 0 && (set == q->best || (k == 1 && q->best->n == 0))) continue;
        q->tries++;
        OT_TRY(ot_candidates_score_to(x, set->all, set->n, *bytes, &now));
        x->unpacked_s = x->packing_seconds;
        if (now >= *bytes || !ot_set_in_time(x, set, NULL)) continue;
        *bytes = now;
        q->at = set;
    }
    return OT_OK;
}

/* All of maps from a size on: the size with which the score is least. */
static ot_status try_sizes(plain_search *q)
{
    uint32_t best = 0;
    for (int k = 1; k <= 3 && q->n > 1; k++) {
        const int64_t from = q->all[0].bytes >> k;
        int64_t bytes;
        uint32_t n = 0;
        for (; n < q->n && q->all[n].bytes >= from; n++) q->now[n] = q->all[n].weights;
        if (n < 2 || n == q->n_now) continue;
        q->n_now = n;
        OT_TRY(score_now(q, &bytes));
        if (bytes == INT64_MAX || (double)bytes > PLAIN_SAVES * (double)q->least) continue;
        q->least = bytes;
        q->best = q->at;
        best = n;
    }
    for (uint32_t k = 0; k < best; k++) q->now[k] = q->all[k].weights;
    q->n_now = best;
    return OT_OK;
}

/* Those that the score does not need, the smallest maps first: they take time. */
static ot_status leave_out(plain_search *q)
{
    for (uint32_t k = q->n_now; k-- > 0 && q->tries < q->most;) {
        const ot_id out = q->now[k];
        int64_t bytes;
        for (uint32_t j = k + 1; j < q->n_now; j++) q->now[j - 1] = q->now[j];
        q->n_now--;
        OT_TRY(score_now(q, &bytes));
        if (bytes <= q->least) {
            q->least = bytes;
            q->best = q->at;
            continue;
        }
        for (uint32_t j = q->n_now++; j > k; j--) q->now[j] = q->now[j - 1];
        q->now[k] = out;
    }
    return OT_OK;
}

static bool is_tried(const plain_search *q, ot_id weights)
{
    bool any = false;
    for (uint32_t k = 0; k < q->n_now; k++) any |= q->now[k] == weights;
    return any;
}

static ot_status take_in(plain_search *q)
{
    for (uint32_t k = 0; k < q->n && q->tries < q->most; k++) {
        int64_t bytes;
        if (is_tried(q, q->all[k].weights)) continue;
        q->now[q->n_now++] = q->all[k].weights;
        OT_TRY(score_now(q, &bytes));
        if (bytes == INT64_MAX || (double)bytes > ONE_SAVES * (double)q->least) {
            q->n_now--;
            continue;
        }
        q->least = bytes;
        q->best = q->at;
    }
    return OT_OK;
}

ot_status ot_candidates_plain_maps(ot_candidates *x, ot_region_set *won)
{
    ot_sim_figures f;
    const double seconds = x->unpacked_s;
    plain_search q = {.x = x, .won = won, .best = won, .least = won->bytes};
    q.most = (uint32_t)ot_min(MOST_TRIES, MOST_NODES / (x->g->n_order + won->n + 1u));
    if (!ot_candidates_unpack(x) || q.most == 0) return OT_OK;
    OT_TRY(ot_candidates_simulate(x, won->all, won->n, &f));
    const int64_t process = ot_process_bytes(&f);
    q.all = OT_NEW_N(x->arena, large_map, x->g->n_order + 1u);
    q.now = OT_NEW_N(x->arena, ot_id, x->g->n_order + 1u);
    if (!q.all || !q.now) return ot_fail_nomem(x->g->model->diag);
    find_maps(&q, f.growth / LEAST_PART);
    OT_TRY(try_sizes(&q));
    OT_TRY(leave_out(&q));
    OT_TRY(take_in(&q));
    const bool pays = q.n_now > 0 && (double)q.least <= PLAIN_SAVES * (double)won->bytes;
    x->how.plain = pays ? q.now : NULL;
    x->how.n_plain = pays ? q.n_now : 0;
    if (pays) OT_TRY(ot_candidates_simulate(x, q.best->all, q.best->n, &f));
    if (ot_dbg['P'])
        fprintf(stderr, "> Plain maps: %u of %u: %.2f MB -> %.2f MB, process %.2f MB -> %.2f MB\n",
                q.n_now, q.n, (double)won->bytes / 1048576.0, (double)q.least / 1048576.0,
                (double)process / 1048576.0, (double)ot_process_bytes(&f) / 1048576.0);
    if (!pays || (double)ot_process_bytes(&f) > HOLDS * (double)process) {
        x->how.n_plain = 0;
        x->unpacked_s = seconds;
        return OT_OK;
    }
    x->unpacked_s = x->packing_seconds;
    ot_region_set found = {.all = OT_NEW_N(x->arena, ot_region, x->n_pool + 1u)};
    if (!found.all) return ot_fail_nomem(x->g->model->diag);
    for (; found.n < q.best->n; found.n++) found.all[found.n] = q.best->all[found.n];
    found.gain = q.best->gain;
    found.bytes = q.least;
    *won = found;
    return x->o.max_tensor ? OT_OK
                           : ot_candidates_climb_below(x, won, ot_process_bytes(&f), f.growth);
}
