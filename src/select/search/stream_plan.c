/* Regions that stream: intervals from their end down to where the walk stops, in steps of so
 * many rows.
 *
 *   bytes between nodes  ####  ######  #####  ##  ####  #     ends: of the whole sequence, and
 *                                                             where little is handed on
 *                                           ^         ^
 *   intervals            [======================]            from an end as far down as its rows
 *                                                            can be followed;
 *                        [================================]  else a half of that, a quarter
 *
 * Streaming computes nothing twice, so a longer interval is hardly ever worse: what grows is the
 * lag, and with it the rows that the first and the last step make at once. Therefore few
 * intervals are looked at, not all of them as for tiles. Which of the regions go together is
 * recombine.c's choice.
 */
#include "search.h"

#include "base/watch.h"

#include "tiling/stream.h"

#define ENDS_MAX 48
/* where rows are carried by loops: each costs a plan of its own (stage select/) */
#define ENDS_FEW  12
#define APART     200 /* ends are at least that part of the sequence from one another */
#define WORTH     0.25
#define HALVES    3        /* an interval, the end's half of it, a quarter */
#define WORK_MAX  10000000 /* windows of steps that are looked at for a graph, about */
#define ABOUT     1.05     /* memory, or time, that is taken to be the same */
#define STEPS_MIN 4        /* fewer steps hold too much each */
/* bytes of its largest value in a step, where more rows can be taken: a loop turns no faster */
#define STEP_MIN 8192
#define STRIPS   6 /* numbers of strips of columns that are tried */
/* what takes so many times the fast memory by estimate does not fit without its second slots
 * either */
#define FAR_OFF 1.5
#define ROOM    1.2 /* estimates are no finer */

typedef struct finder {
    const ot_seq *s;
    ot_walk *w;
    const ot_target *t;
    const ot_plan_options *o;
    ot_arena *arena; /* of the plan */
    ot_region_pool *pool;
    ot_steps_cache *seen;
    uint64_t work;
    uint32_t ends[ENDS_MAX], n_ends; /* positions after which little is handed on */
} finder;

/* Rows of a step of the sink that are worth a try. */
static const int64_t ROWS[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};

/* The runtime keeps rows where they lie and writes in place: a scratchpad. */
static bool has_line_buffers(const ot_target *t)
{
    return t->runtime->motion == OT_MOTION_DMA && !ot_runtime_in_classes(t->runtime);
}

/* What the region takes from outside and hands out is whole for the runtime: no group is torn. */
static bool is_whole(const finder *x, const ot_region *r)
{
    const ot_graph *g = x->s->g;
    for (uint32_t v = 0; x->t->runtime->int8_groups && v < r->n_values; v++) {
        ot_id id = r->values[v].value;
        if (v < r->n_inputs ? ot_value_is_dequantized(g, id)
                            : r->values[v].is_output &&
                                  ot_cost_torn(x->s, x->t, &g->nodes[g->values[id].producer], id))
            return false;
    }
    return true;
}

static void dump_rows(const ot_choice *c, const ot_region *r, bool fits)
{
    fprintf(stderr, "  [%u,%u] axis %d, %lld rows a step", c->first, c->end, c->axes[0],
            (long long)c->tile[0]);
    if (c->n_dims > 1) fprintf(stderr, ", %u strips", r->dims[1].n_tiles);
    fprintf(stderr, ": %.3f -> %.3f ms, peak %.1f MB, %lld bytes%s\n", r->time_untiled * 1e3,
            r->time_tiled * 1e3, (double)r->peak / 1048576.0, (long long)r->working_set,
            fits ? "" : ": too much");
}

/* The region with figures and planned memory; on a scratchpad with less beside its steps where
 * it does not fit. *fits false: nothing does. */
static ot_status fit(finder *x, ot_region *r, bool *fits)
{
    const bool hard = ot_target_hard_limit(x->t);
    *fits = false;
    for (unsigned how = 0; how <= (hard ? OT_FIT_STREAM | OT_FIT_SINGLE : 0u) && !*fits; how++) {
        if ((how & OT_FIT_SINGLE) && !x->t->double_buffer) continue;
        x->work += (uint64_t)r->dims[0].n_tiles * (r->n_nodes + r->n_values);
        OT_TRY(ot_region_exact(x->s, x->t, how, r));
        if (r->time_tiled < 0 && (double)r->working_set > FAR_OFF * (double)ot_target_room(x->t))
            return OT_OK;
        if (r->time_tiled < 0) continue;
        OT_TRY(ot_region_fit_memory(x->s, x->t, r));
        *fits = !hard || r->working_set <= ot_target_room(x->t);
    }
    return OT_OK;
}

/* What became of an interval in steps of some rows. */
typedef struct tried {
    bool legal;    /* it can be written, where it fits, */
    bool in_reach; /* and a plan of it alone keeps within the time allowed */
    int64_t bytes; /* that a step takes, 0: not known */
} tried;

/* What becomes of the interval in steps of c->tile[0] rows. */
static ot_status look(finder *x, const ot_choice *c, ot_steps_seen *out)
{
    ot_region *r = &out->r;
    ot_why why;
    *out = (ot_steps_seen){.c = *c};
    OT_TRY(ot_region_build(x->s, x->w, c, x->arena, r));
    ot_stream_memo memo = {.a = ot_arena_new()};
    if (!memo.a) return ot_fail_nomem(x->s->g->model->diag);
    r->form = OT_FORM_STREAM;
    r->memo = &memo;
    r->rolling = has_line_buffers(x->t);
    r->in_classes = ot_runtime_in_classes(x->t->runtime);
    x->work += (uint64_t)r->dims[0].n_tiles * (r->n_nodes + r->n_values);
    out->legal = r->n_nodes > 0 && r->dims[0].sink != OT_NONE && is_whole(x, r);
    ot_status s = OT_OK;
    if (out->legal && !r->rolling)
        s = ot_form_legal(x->s->g, r, r->form, x->t->runtime->cannot, &out->legal, &why);
    if (s == OT_OK && out->legal) s = fit(x, r, &out->fits);
    out->writes = out->fits;
    if (s == OT_OK && out->fits && r->rolling)
        s = ot_form_legal(x->s->g, r, r->form, x->t->runtime->cannot, &out->writes, &why);
    if (s == OT_OK && out->legal && ot_dbg['D']) dump_rows(c, r, out->fits);
    r->memo = NULL;
    ot_arena_free(memo.a);
    return s;
}

static bool same_rows(const ot_choice *a, const ot_choice *b)
{
    bool same = a->first == b->first && a->end == b->end && a->n_dims == b->n_dims;
    for (uint32_t d = 0; d < a->n_dims && same; d++)
        same = a->axes[d] == b->axes[d] && a->tile[d] == b->tile[d];
    return same;
}

/* The same, once for each interval and number of rows. */
static ot_status look_once(finder *x, const ot_choice *c, const ot_steps_seen **out)
{
    ot_steps_cache *seen = x->seen;
    const uint64_t before = x->work;
    ot_steps_seen now;
    for (size_t k = 0; k < seen->n; k++)
        if (same_rows(&seen->all[k].c, c)) {
            *out = &seen->all[k];
            x->work += seen->all[k].work;
            return OT_OK;
        }
    OT_TRY(look(x, c, &now));
    now.work = x->work - before;
    if (!OT_PUSH(x->arena, seen->all, seen->n, seen->cap, now))
        return ot_fail_nomem(x->s->g->model->diag);
    *out = &seen->all[seen->n - 1];
    return OT_OK;
}

/* The region in steps of c->tile[0] rows goes to the pool. */
static ot_status try_rows(finder *x, const ot_choice *c, tried *out)
{
    const ot_steps_seen *seen;
    OT_TRY(look_once(x, c, &seen));
    const ot_region *r = &seen->r;
    *out = (tried){.legal = seen->legal};
    if (!seen->legal) return OT_OK;
    out->bytes = r->working_set;
    out->in_reach = x->s->time[x->s->n] + r->time_tiled - r->time_untiled <=
                    ot_time_allowed(x->s, x->o);
    const bool asked = x->o->force_form == OT_FORM_STREAM;
    /* steps that hand on nothing are tiles */
    if (!seen->fits || (r->carried == 0 && (r->rolling || r->in_classes) && !asked)) return OT_OK;
    out->legal = seen->writes;
    if (!seen->writes) return OT_OK;
    return OT_PUSH(x->s->arena, x->pool->all, x->pool->n, x->pool->cap, *r)
               ? OT_OK
               : ot_fail_nomem(x->s->g->model->diag);
}

/* Bytes of the largest value that the interval makes. */
static int64_t largest_made(const finder *x, const ot_choice *c)
{
    int64_t most = 0;
    for (uint32_t p = c->first; p <= c->end; p++) {
        const ot_node *n = &x->s->g->nodes[x->s->node[p]];
        int64_t bytes;
        for (uint32_t o = 0; o < n->n_out; o++)
            if (n->out[o] != OT_NONE && ot_value_bytes(&x->s->g->values[n->out[o]], &bytes))
                most = ot_max(most, bytes);
    }
    return most;
}

/* A sound's samples and a text's tokens are short rows: steps of few of them would be thousands,
 * long to look at and longer to run. */
static bool is_tiny(int64_t largest, int64_t extent, int64_t rows)
{
    return largest / extent * rows < STEP_MIN && rows * 2 * STEPS_MIN <= extent;
}

/* Steps of all numbers of rows that the interval takes; of those of at least o->stream_rows rows
 * the first. out: what became of any of them, the bytes those of the fewest rows. */
static ot_status try_interval(finder *x, ot_choice *c, tried *out)
{
    const ot_value *sink = &x->s->g->values[x->s->g->nodes[x->s->node[c->end]].out[0]];
    const int64_t extent = sink->dims[c->axes[0]], largest = largest_made(x, c);
    *out = (tried){0};
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS && x->work < WORK_MAX; k++) {
        const uint32_t before = x->pool->n;
        tried of;
        if (ROWS[k] < x->o->search.stream_rows || ROWS[k] * STEPS_MIN > extent) continue;
        if (!has_line_buffers(x->t) && is_tiny(largest, extent, ROWS[k])) continue;
        c->tile[0] = ROWS[k];
        OT_TRY(ot_watch_look(x->s->g->model->diag));
        OT_TRY(try_rows(x, c, &of));
        if (out->bytes == 0) out->bytes = of.bytes;
        out->legal |= of.legal;
        out->in_reach |= of.in_reach;
        if (of.legal && x->o->search.stream_rows > 0) return OT_OK;
        /* more rows take more, and keep no more */
        if (of.bytes > 0 && x->pool->n == before) return OT_OK;
    }
    return OT_OK;
}

/* Lowest position that an interval from `end` along the axis may begin at. */
static uint32_t lowest_start(finder *x, uint32_t end, const int8_t *axes, uint32_t n_dims)
{
    uint32_t first = end + 1;
    ot_walk_start(x->w, end, 0, axes, n_dims);
    while (x->w->lo > 0 && x->w->n_pre_run <= 6)
        if (ot_walk_step(x->w) == OT_ST_IN && !ot_splits_fusion(x->s, x->w->lo)) first = x->w->lo;
    return first;
}

/* Nearest position from `first` on where an interval may begin: a node that goes in. */
static uint32_t start_from(finder *x, uint32_t first, uint32_t end, const int8_t *axes,
                           uint32_t n_dims)
{
    uint32_t best = end + 1;
    ot_walk_start(x->w, end, 0, axes, n_dims);
    while (x->w->lo > first)
        if (ot_walk_step(x->w) == OT_ST_IN && !ot_splits_fusion(x->s, x->w->lo)) best = x->w->lo;
    return best;
}

/* Strips of columns of the interval: the same region in steps of rows, strip by strip. whole:
 * bytes that whole rows take; strips of 1/n of their length take 1/n of that and more. */
static ot_status try_strips(finder *x, ot_choice *c, int64_t whole)
{
    const ot_value *sink = &x->s->g->values[x->s->g->nodes[x->s->node[c->end]].out[0]];
    int64_t tiles[OT_COUNTS_MAX];
    const uint32_t n = ot_candidate_tiles(sink->dims[c->axes[1]], STRIPS, false, tiles);
    for (uint32_t k = 0; k < n; k++) {
        tried of;
        c->tile[1] = tiles[k];
        if ((double)whole * (double)tiles[k] >
            ROOM * (double)ot_target_room(x->t) * (double)sink->dims[c->axes[1]])
            continue;
        OT_TRY(try_interval(x, c, &of));
    }
    return OT_OK;
}

/* The interval in whole rows, out: what became of it; in strips where these take too much. */
static ot_status try_first(finder *x, ot_choice c, tried *out)
{
    const uint32_t before = x->pool->n;
    const int32_t rank = x->s->g->values[x->s->g->nodes[x->s->node[c.end]].out[0]].rank;
    OT_TRY(try_interval(x, &c, out));
    if (!out->legal || x->pool->n > before || !has_line_buffers(x->t) || rank < 4 ||
        c.axes[0] != rank - 2)
        return OT_OK;
    c.n_dims = 2;
    c.axes[1] = (int8_t)(rank - 1);
    /* columns may not reach as far down */
    const uint32_t lowest = lowest_start(x, c.end, c.axes, 2);
    c.first = start_from(x, lowest > c.first ? lowest : c.first, c.end, c.axes, 2);
    return c.first < c.end ? try_strips(x, &c, out->bytes) : OT_OK;
}

/* Intervals that end at `end` along the axis, and begin as far down as it can be followed, or
 * half way where that cannot be written or takes too long: the first and the last step of a long
 * one hold much. With line buffers, wherever little is handed on. */
static ot_status try_axis(finder *x, uint32_t end, const int8_t *axis)
{
    const uint32_t lowest = lowest_start(x, end, axis, 1);
    ot_choice c = {.first = lowest, .end = end, .n_dims = 1, .axes = {axis[0]}};
    uint32_t before = OT_NONE;
    tried of = {0};
    for (uint32_t half = 0; half < HALVES && c.first < end && !of.in_reach; half++) {
        OT_TRY(try_first(x, c, &of));
        before = c.first;
        c.first = start_from(x, c.first + (end - c.first + 1) / 2, end, axis, 1);
    }
    for (uint32_t k = 0; has_line_buffers(x->t) && k < x->n_ends; k++) {
        c.first = start_from(x, x->ends[k] + 1, end, axis, 1);
        if (x->ends[k] < lowest || c.first >= end || c.first == before) continue;
        OT_TRY(try_first(x, c, &of));
        before = c.first;
    }
    return OT_OK;
}

static ot_status try_end(finder *x, uint32_t end)
{
    const ot_node *n = &x->s->g->nodes[x->s->node[end]];
    int8_t sets[OT_AXIS_SETS_MAX][OT_DIMS_MAX];
    uint32_t dims[OT_AXIS_SETS_MAX];
    if (n->n_out == 0 || n->out[0] == OT_NONE ||
        x->s->g->values[n->out[0]].n_uses + x->s->g->values[n->out[0]].is_output == 0)
        return OT_OK;
    const bool torn = x->t->runtime->int8_groups && ot_cost_torn(x->s, x->t, n, n->out[0]);
    if (torn && has_line_buffers(x->t)) return OT_OK; /* as every interval would find */
    const uint32_t n_sets = ot_candidate_axes(x->s, x->w, end, 0, sets, dims);
    for (uint32_t k = 0; k < n_sets; k++) {
        /* Rows of pictures, not columns: what is put together and carried is then long runs of
         * memory. */
        const int32_t rank = x->s->g->values[n->out[0]].rank;
        if (dims[k] != 1 || (rank >= 4 && sets[k][0] == rank - 1)) continue;
        /* pictures and channels keep nothing of one another */
        if (has_line_buffers(x->t) && rank >= 4 && sets[k][0] < 2) continue;
        OT_TRY(try_axis(x, end, sets[k]));
    }
    return OT_OK;
}

/* An interval may end here: a node that can be cut, with nothing behind it that is merged into it.
 */
static ot_status may_end(const finder *x, uint32_t p, bool *may)
{
    ot_why why;
    OT_TRY(ot_barrier_reason(x->s, x->s->node[p], &why));
    *may = why == OT_WHY_NONE && !ot_splits_fusion(x->s, p + 1);
    return OT_OK;
}

static int by_position(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Positions after which less is handed on than at their neighbours, where an interval may end.
 * worth: only behind the first that is live in some amount. all: [n] room for a sequence. */
static ot_status find_minima(const finder *x, bool worth, uint32_t *all, uint32_t *n)
{
    const ot_seq *s = x->s;
    int64_t live = 0;
    *n = 0;
    for (uint32_t p = 0; p < s->n; p++) {
        bool may;
        const int64_t here = s->cut[p + 1];
        live = ot_max(live, s->live[p]);
        if (worth && (double)live < WORTH * (double)s->peak) continue;
        if (s->cut[p] < here || (p + 1 < s->n && s->cut[p + 2] < here)) continue;
        OT_TRY(may_end(x, p, &may));
        if (may) all[(*n)++] = p;
    }
    return OT_OK;
}

/* Of positions all [n], the one after which least is handed on, the last of equal ones; none that
 * is nearer than `apart` to an end. OT_NONE: there is none. */
static uint32_t next_end(const finder *x, const uint32_t *all, uint32_t n, uint32_t apart)
{
    uint32_t best = OT_NONE;
    for (uint32_t k = 0; k < n; k++) {
        bool far = true;
        for (uint32_t j = 0; j < x->n_ends; j++)
            far &= llabs((long long)all[k] - (long long)x->ends[j]) >= apart;
        if (far && (best == OT_NONE || x->s->cut[all[k] + 1] <= x->s->cut[best + 1])) best = all[k];
    }
    return best;
}

/* The last position where an interval may end, and those after which least is handed on, in
 * order. Carried by loops, intervals that end near to one another are the same: their ends lie
 * apart. Where maps grow to the end, as a decoder's do, least is handed on where there is nothing
 * to gain: ends lie behind that, if there are too many to try them all. */
static ot_status find_ends(finder *x)
{
    const bool lines = has_line_buffers(x->t);
    const uint32_t most = lines ? ENDS_MAX : ENDS_FEW, apart = lines ? 1 : 1 + x->s->n / APART;
    uint32_t n, *all = OT_NEW_N(x->s->arena, uint32_t, x->s->n + 1u);
    x->n_ends = 0;
    if (!all) return ot_fail_nomem(x->s->g->model->diag);
    OT_TRY(find_minima(x, false, all, &n));
    if (!lines && n > most) OT_TRY(find_minima(x, true, all, &n));
    if (n > 0) x->ends[x->n_ends++] = all[n - 1];
    for (uint32_t p = 0; p != OT_NONE && x->n_ends < most;) {
        p = next_end(x, all, n, apart);
        if (p != OT_NONE) x->ends[x->n_ends++] = p;
    }
    qsort(x->ends, x->n_ends, sizeof *x->ends, by_position);
    return OT_OK;
}

/* Some other region takes in all of r's interval, and hardly more memory. */
static bool is_covered(const ot_region_pool *pool, uint32_t k)
{
    const ot_region *r = &pool->all[k];
    for (uint32_t j = 0; j < pool->n; j++) {
        const ot_region *q = &pool->all[j];
        const bool wider = q->first <= r->first && q->last >= r->last &&
                           q->last - q->first > r->last - r->first;
        if (wider && (double)q->peak <= (double)r->peak * ABOUT &&
            q->benefit >= r->benefit - q->time_untiled * (ABOUT - 1))
            return true;
    }
    return false;
}

/* Shorter regions that a longer one makes needless go. */
static void drop_covered(ot_region_pool *pool, uint32_t from)
{
    uint32_t kept = from;
    /* who covers is never covered by what it covers: any order will do */
    for (uint32_t k = from; k < pool->n; k++) {
        const ot_region r = pool->all[k];
        if (is_covered(pool, k)) continue;
        pool->all[k] = pool->all[kept];
        pool->all[kept++] = r;
    }
    pool->n = kept;
}

ot_status ot_stream_regions(const ot_seq *s, ot_walk *w, const ot_target *t,
                            const ot_plan_options *o, ot_arena *a, ot_steps_cache *seen,
                            ot_region_pool *pool)
{
    finder x = {.s = s, .w = w, .t = t, .o = o, .arena = a, .seen = seen, .pool = pool};
    const uint32_t before = pool->n;
    if (o->no_streams || !ot_runtime_takes(t->runtime, OT_FORM_STREAM)) return OT_OK;
    OT_TRY(find_ends(&x));
    for (uint32_t k = x.n_ends; k-- > 0 && x.work < WORK_MAX;) OT_TRY(try_end(&x, x.ends[k]));
    drop_covered(pool, before);
    return OT_OK;
}
