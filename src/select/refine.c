/* How the set of regions that won is written, and whether it wins over the untiled model.
 *
 *   unjoined tiles     large values stay in pieces between regions
 *   blocks             residual networks read what regions make in blocks; sets were found so
 *   views              regions read blocked values through views
 *   weights in pieces  each is packed while a model loads, and let go of before the next
 *   deferred packing   weights are packed when they are used
 *   hidden extents     the runtime does not know what values take
 *   unpacked weights   convolutions read them as they are
 *   plain maps         convolutions do so, for who reads what they make (plain_maps.c)
 *   branch             the graph is a branch, in which the runtime keeps no block for its tensors
 *
 * The model as it is stays unless what is written takes less by a margin that depends on how well
 * the runtime's memory is predicted (ot_runtime_margins).
 */
#include "candidates.h"

#include "ops/ops.h"
#include "transform/transform.h"

#define BRANCH_SAVES   0.95 /* of what the same plan takes without the branch */
#define UNJOINED_SAVES 0.95 /* of what the same plan takes when all values are joined */
/* of what the same plan takes without views, in the order that is thought likely */
#define VIEWS_TAKE     1.05
#define HIDDEN_SAVES   0.9       /* of what the same plan takes where extents are stated */
#define HIDDEN_ABOUT   1.02      /* processes that are taken to hold as much: it has more nodes */
#define DEFERRED_SAVES (2 << 20) /* bytes that packing weights late must save */
#define PIECES_SAVE    0.95      /* of the process that reads weights whole */
/* of what is best with fewer of them, or none: it takes time */
#define UNPACKED_SAVES 0.95
#define UNPACKED_SURE  0.97 /* of the process, if runs take most of what packing leaves free */
/* Graphs of more stay no branch: an unrolled RWKV of 73,000 nodes loads in 25 s, as a branch not in
 * 8 minutes. */
#define MOST_IN_BRANCH 30000
/* What so many nodes take is known no better than such a part of the process: the gain that a plan
 * is written for. */
#define MANY_NODES  30000
#define NODES_ABOUT 8

bool ot_candidates_sequences(const ot_candidates *x) { return ot_runtime_sequences(x->t->runtime); }

/* Memory patterns are escaped by a branch that reads a sequence. */
bool ot_candidates_branch(const ot_candidates *x)
{
    return ot_candidates_sequences(x) && x->g->n_order <= MOST_IN_BRANCH && ot_branch_fits(x->g) &&
           (x->file_graph == x->g || ot_branch_fits(x->file_graph));
}

/* It normalises over maps, be that one operator or decomposed. */
static bool normalises(const ot_graph *g)
{
    bool any = g->model->n_decomposed > 0;
    for (uint32_t k = 0; k < g->n_order && !any; k++) {
        const ot_op op = g->nodes[g->order[k]].op;
        any = op == OT_OP_InstanceNormalization || op == OT_OP_GroupNormalization;
    }
    return any;
}

/* In half precision; a Cast at the border of what is computed in float32 (transform/widen.c)
 * does not. */
static bool computes_half(const ot_graph *g, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_out && !n->is_static && n->op != OT_OP_Cast; k++)
        if (n->out[k] != OT_NONE && g->values[n->out[k]].dtype == OT_F16) return true;
    return false;
}

/* Part of what the untiled model scores that a plan must not exceed. */
static double least_win(const ot_candidates *x)
{
    const ot_graph *g = x->g;
    const ot_runtime_margins *m = &x->t->runtime->margins;
    for (uint32_t k = 0; k < g->n_order; k++)
        if (computes_half(g, &g->nodes[g->order[k]])) return m->wins_half;
    for (uint32_t k = 0; k < g->n_order; k++)
        if (g->nodes[g->order[k]].op == OT_OP_QuantizeLinear ||
            g->nodes[g->order[k]].op == OT_OP_QLinearConv)
            return m->wins_bytes;
    return normalises(g) ? m->wins_norms : m->wins;
}

/* Large values may stay in pieces between regions (transform/unjoined_tiles.c): the largest
 * alone, or those half, a quarter as large. Pieces that are not joined are copied once more for
 * each window that they are part of: fewer of them, where that saves as much. */
static ot_status try_unjoined(ot_candidates *x, ot_region_set *won)
{
    const int64_t largest = ot_largest_tensor(x->g).bytes;
    int64_t from = 0, least = won->bytes;
    if (won->n < 2 || !ot_candidates_sequences(x)) return OT_OK;
    for (int k = 0; k < 3 && largest >> k > 0; k++) {
        int64_t bytes;
        x->how.unjoined_from = largest >> k;
        OT_TRY(ot_candidates_score(x, won->all, won->n, &bytes));
        if ((double)bytes >= (from ? 0.98 : UNJOINED_SAVES) * (double)least) continue;
        least = bytes;
        from = x->how.unjoined_from;
    }
    if (ot_dbg['P'])
        fprintf(stderr, "> Unjoined tiles from %lld: %.2f MB -> %.2f MB\n", (long long)from,
                (double)won->bytes / 1048576.0, (double)least / 1048576.0);
    x->how.unjoined_from = from;
    won->bytes = least;
    return OT_OK;
}

/* Copies of results in blocks (transform/blocked_results.c), unless less is taken without. They
 * cost no time that counts: a sum in blocks saves the change of a layout, which is as much. */
static ot_status try_blocks(ot_candidates *x, ot_region_set *won)
{
    int64_t bytes;
    if (won->n == 0 || !x->how.blocks) return OT_OK;
    x->how.blocks = false;
    OT_TRY(ot_candidates_score(x, won->all, won->n, &bytes));
    x->how.blocks = won->bytes <= bytes;
    if (ot_dbg['P'])
        fprintf(stderr, "> Results in blocks: %.2f MB -> %.2f MB\n", (double)bytes / 1048576.0,
                (double)won->bytes / 1048576.0);
    if (!x->how.blocks) won->bytes = bytes;
    return OT_OK;
}

/* Views of what the regions read in blocks (transform/plain_views.c), unless the order that they
 * make is the worse one. Without, a session takes an order by chance. */
static ot_status try_views(ot_candidates *x, ot_region_set *won)
{
    int64_t bytes;
    if (won->n == 0 || !x->t->runtime->plain_views || x->g->model->dynamic_dims) return OT_OK;
    x->how.views = true;
    OT_TRY(ot_candidates_score(x, won->all, won->n, &bytes));
    x->how.views = (double)bytes <= VIEWS_TAKE * (double)won->bytes;
    if (ot_dbg['P'])
        fprintf(stderr, "> Views: %.2f MB -> %.2f MB\n", (double)won->bytes / 1048576.0,
                (double)bytes / 1048576.0);
    if (x->how.views) won->bytes = bytes;
    return OT_OK;
}

/* Large weights in pieces (transform/weight_pieces.c). They take no time, and what is held while a
 * model loads is lower, so they come before what does take time. */
static ot_status try_pieces(ot_candidates *x, ot_region_set *won)
{
    const int64_t each = x->t->runtime->piece_bytes;
    ot_sim_figures whole, split;
    if (!x->how.data_file || x->g->model->dynamic_dims || ot_count_split(x->g, each) == 0)
        return OT_OK;
    OT_TRY(ot_candidates_simulate(x, won->all, won->n, &whole));
    x->how.piece_bytes = each;
    OT_TRY(ot_candidates_simulate(x, won->all, won->n, &split));
    const int64_t bytes = ot_score_bytes(&split, &x->base);
    if (ot_dbg['P'])
        fprintf(stderr, "> Weights in pieces: %.2f MB -> %.2f MB, process %.2f MB -> %.2f MB\n",
                (double)won->bytes / 1048576.0, (double)bytes / 1048576.0,
                (double)ot_process_bytes(&whole) / 1048576.0,
                (double)ot_process_bytes(&split) / 1048576.0);
    if (bytes <= won->bytes &&
        (double)ot_process_bytes(&split) <= PIECES_SAVE * (double)ot_process_bytes(&whole)) {
        won->bytes = bytes;
        return OT_OK;
    }
    x->how.piece_bytes = 0;
    return OT_OK;
}

/* Weights that are packed when they are used (transform/deferred_packing.c), all but small ones:
 * the more of them, the more time that takes. They are tried with the regions that won, and
 * where no region did. */
static ot_status try_deferred(ot_candidates *x, ot_region_set *won)
{
    static const int64_t FROM[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
    const double most = x->o.max_slowdown * x->untiled_s + won->gain;
    int64_t from = 0, least = won->bytes;
    if (x->t->runtime->deferred_seconds <= 0) return OT_OK;
    for (size_t k = 0; k < sizeof FROM / sizeof *FROM; k++) {
        int64_t bytes;
        x->how.defer_from = FROM[k];
        OT_TRY(ot_candidates_score(x, won->all, won->n, &bytes));
        if (x->packing_seconds > most || bytes > least - (from ? 1 : DEFERRED_SAVES)) continue;
        least = bytes;
        from = x->how.defer_from;
    }
    if (ot_dbg['P'])
        fprintf(stderr, "> Deferred packing from %lld: %.2f MB -> %.2f MB\n", (long long)from,
                (double)won->bytes / 1048576.0, (double)least / 1048576.0);
    x->how.defer_from = from;
    won->bytes = least;
    return OT_OK;
}

ot_status ot_candidates_climb_below(ot_candidates *x, ot_region_set *won, int64_t process,
                                    int64_t growth)
{
    const ot_region_set before = *won;
    ot_sim_figures f;
    OT_TRY(ot_candidates_climb(x, won));
    OT_TRY(ot_candidates_simulate(x, won->all, won->n, &f));
    if ((double)ot_process_bytes(&f) > HIDDEN_ABOUT * (double)process || f.growth > growth)
        *won = before;
    return OT_OK;
}

/* Extents that the runtime does not know, and once more sets of regions: others pay then. What is
 * in the way is a Slice of each input. */
static ot_status try_hidden(ot_candidates *x, ot_region_set *won)
{
    int64_t bytes;
    ot_sim_figures stated, hidden;
    if (!ot_candidates_hide(x, won->n)) return OT_OK;
    OT_TRY(ot_candidates_simulate(x, won->all, won->n, &stated));
    x->how.hidden = true;
    OT_TRY(ot_candidates_simulate(x, won->all, won->n, &hidden));
    bytes = ot_score_bytes(&hidden, &x->base);
    x->how.hidden = (double)bytes <= HIDDEN_SAVES * (double)won->bytes &&
                    (double)ot_process_bytes(&hidden) <=
                        HIDDEN_ABOUT * (double)ot_process_bytes(&stated);
    if (ot_dbg['P'])
        fprintf(stderr, "> Hidden extents: %.2f MB -> %.2f MB\n", (double)won->bytes / 1048576.0,
                (double)bytes / 1048576.0);
    if (!x->how.hidden) return OT_OK;
    won->bytes = bytes;
    return x->o.max_tensor
               ? OT_OK
               : ot_candidates_climb_below(x, won, ot_process_bytes(&hidden), INT64_MAX);
}

bool ot_candidates_unpack(const ot_candidates *x)
{
    return x->t->runtime->unpacked.windows > 0 && x->how.branch;
}

/* The set that holds least with unpacked weights, of *won and of what tighter limits on time found:
 * *least bytes, if it is in time and that is less by enough. x->how says which weights. */
static ot_status best_unpacked(ot_candidates *x, const ot_region_set *won, int64_t *least,
                               const ot_region_set **best)
{
    *best = NULL;
    for (size_t k = 0; k <= x->n_kept; k++) {
        const ot_region_set *set = k < x->n_kept ? &x->kept[k] : won;
        int64_t bytes;
        OT_TRY(ot_candidates_score(x, set->all, set->n, &bytes));
        x->unpacked_s = x->packing_seconds;
        if (!ot_set_in_time(x, set, NULL) || (double)bytes > UNPACKED_SAVES * (double)*least)
            continue;
        *least = bytes;
        *best = set;
    }
    return OT_OK;
}

/* The process holds less with unpacked weights even if runs take three quarters of the memory that
 * packing them left free, not the usual one (measured, U-Net of a ResNet-34: predicted 392 -> 363
 * MB, both 372; ResNet-50: 237 -> 184, measured 231 -> 199). */
static bool saves_surely(const ot_sim_figures *packed, const ot_sim_figures *unpacked)
{
    const int64_t free_bytes = packed->reused * OT_SIM_REUSED,
                  more = (ot_min(free_bytes, packed->growth) - packed->reused) * 2 / 3;
    return (double)ot_process_bytes(unpacked) <
           UNPACKED_SURE * (double)(ot_process_bytes(packed) - ot_max(more, 0));
}

/* Weights of convolutions that are not packed: the smaller ones are left so, too, the longer it
 * takes. Then once more sets of regions: what is in several bodies was packed for each. */
static ot_status try_unpacked(ot_candidates *x, ot_region_set *won)
{
    static const int64_t FROM[] = {64 << 20, 16 << 20, 4 << 20, 1 << 20, 256 << 10};
    enum { N_FROM = sizeof FROM / sizeof *FROM };
    int64_t from = 0, least = won->bytes;
    ot_sim_figures f, packed;
    if (!ot_candidates_unpack(x) || !x->how.data_file || x->g->model->dynamic_dims ||
        !ot_has_unpacked(x->g, FROM[N_FROM - 1]))
        return OT_OK;
    ot_region_set found = {.all = OT_NEW_N(x->arena, ot_region, x->n_pool + 1u)};
    if (!found.all) return ot_fail_nomem(x->g->model->diag);
    for (size_t k = 0; k < N_FROM; k++) {
        const ot_region_set *best;
        if (!ot_has_unpacked(x->g, FROM[k])) continue;
        x->how.unpacked_from = FROM[k];
        OT_TRY(best_unpacked(x, won, &least, &best));
        if (!best) continue;
        from = FROM[k];
        for (uint32_t j = 0; j < best->n; j++) found.all[j] = best->all[j];
        found = (ot_region_set){.all = found.all, .n = best->n, .gain = best->gain, .bytes = least};
    }
    if (ot_dbg['P'])
        fprintf(stderr, "> Unpacked weights from %lld: %.2f MB -> %.2f MB\n", (long long)from,
                (double)won->bytes / 1048576.0, (double)least / 1048576.0);
    x->how.unpacked_from = 0;
    x->unpacked_s = 0;
    if (from == 0) return OT_OK;
    OT_TRY(ot_candidates_simulate(x, won->all, won->n, &packed));
    x->how.unpacked_from = from;
    OT_TRY(ot_candidates_simulate(x, found.all, found.n, &f));
    if (ot_dbg['P'])
        fprintf(stderr, "> Unpacked: process %.2f MB -> %.2f MB, %.2f MB free\n",
                (double)ot_process_bytes(&packed) / 1048576.0,
                (double)ot_process_bytes(&f) / 1048576.0,
                (double)packed.reused * OT_SIM_REUSED / 1048576.0);
    if (!saves_surely(&packed, &f)) {
        x->how.unpacked_from = 0;
        return OT_OK;
    }
    *won = found;
    x->unpacked_s = x->packing_seconds;
    return x->o.max_tensor ? OT_OK
                           : ot_candidates_climb_below(x, won, ot_process_bytes(&f), f.growth);
}

bool ot_candidates_lost(const ot_candidates *x)
{
    const int64_t process = ot_process_bytes(&x->untiled);
    return x->g->n_order > MANY_NODES && x->untiled.growth < process / NODES_ABOUT;
}

/* The winner, with or without the branch, is compared with the graph that is only a branch. */
static ot_status judge(ot_candidates *x, ot_region_set *won)
{
    const int64_t untiled = x->base.untiled;
    int64_t none, without = INT64_MAX;
    const double part = least_win(x);
    const bool may_branch = x->how.branch, may_hide = x->how.hidden;
    const int64_t unpacked_from = x->how.unpacked_from;
    const uint32_t n_plain = x->how.n_plain;
    bool in_branch = may_branch;
    OT_TRY(ot_candidates_score(x, NULL, 0, &none));
    if (may_branch) {
        x->how.branch = x->how.hidden = false;
        OT_TRY(ot_candidates_score(x, won->all, won->n, &without));
    }
    if (in_branch && (double)won->bytes > BRANCH_SAVES * (double)without) {
        in_branch = false;
        won->bytes = without;
    }
    if (won->n > 0 && (double)won->bytes > part * (double)none) {
        *won = (ot_region_set){.all = won->all, .bytes = none};
        in_branch = may_branch && none < untiled;
    }
    x->how.branch = in_branch;
    x->how.hidden = in_branch && may_hide;
    x->how.unpacked_from = in_branch ? unpacked_from : 0;
    x->how.n_plain = in_branch ? n_plain : 0;
    if ((double)won->bytes <= part * (double)untiled && !ot_candidates_lost(x)) return OT_OK;
    /* it has to be */
    if (x->o.max_tensor && ot_largest_tensor(x->g).bytes > x->o.max_tensor) return OT_OK;
    *won = (ot_region_set){.all = won->all, .bytes = untiled};
    x->how.branch = x->how.hidden = false;
    x->how.defer_from = x->how.unpacked_from = x->how.piece_bytes = 0;
    x->how.n_plain = 0;
    return OT_OK;
}

ot_status ot_candidates_refine(ot_candidates *x, ot_region_set *won)
{
    OT_TRY(try_blocks(x, won));
    OT_TRY(try_unjoined(x, won));
    OT_TRY(try_views(x, won));
    OT_TRY(try_pieces(x, won));
    OT_TRY(try_deferred(x, won));
    OT_TRY(try_hidden(x, won));
    OT_TRY(try_unpacked(x, won));
    OT_TRY(ot_candidates_plain_maps(x, won));
    OT_TRY(judge(x, won));
    return ot_candidates_first_block(x, won);
}
