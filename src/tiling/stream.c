/* Which rows each step of a streaming region makes and keeps, from the slice relations alone.
 *
 * Steps are taken in order. A step is told how many rows of each output must be there at its
 * end; walking the nodes backwards, each node makes the rows that its readers lack and nothing
 * ahead of that:
 *
 *   make(v, t)  = [ready(v, t-1), most that a reader of v wants in step t)
 *                 as late as possible: values lag behind their inputs
 *   kept(v, t)  = [least that a reader of v wants in step t or later, ready(v, t-1))
 *
 * The steps of the rows at the border are not like the others. The longest run of steps that are
 * alike is the steady part; what comes before it becomes one step, and so does what comes
 * behind. With line buffers, they stay steps of their own, and the rows that the first one would
 * have to make at once are made in steps before it: what is ready then is what is ready in the
 * steady part, moved back.
 */
#include "stream.h"

/* Entries of windows that are held for the steps of one region. */
#define ENTRIES_MAX 400000
#define OPERANDS    16 /* of an operator that may make more rows than it is asked for */

typedef struct stepper {
    const ot_graph *g;
    const ot_region *r;
    ot_arena *a;
    int64_t *ready;        /* [n_values] rows made so far */
    int64_t *due;          /* [n_values] rows that must be there when the step at hand ends */
    bool *again;           /* [n_nodes] is_made_again, of all steps */
    ot_window_rule *rules; /* [n_nodes] of their windows, where they are cut */
    /* [n_values] rows that are to be there by then although nobody asks; NULL: none */
    int64_t *ahead;
} stepper;

static ot_status nomem(const stepper *x) { return ot_fail_nomem(x->g->model->diag); }

static int64_t extent_of(const stepper *x, uint32_t v)
{
    const ot_rvalue *rv = &x->r->values[v];
    return x->g->values[rv->value].dims[rv->axis[0]];
}

/* Made anew wherever somebody wants it, never kept: a runtime merges it with its readers, and
 * rows put together would stand between. */
static bool is_made_again(const stepper *x, uint32_t i)
{
    const ot_rnode *rn = &x->r->nodes[i];
    const ot_node *n = &x->g->nodes[rn->node];
    return n->op == OT_OP_DequantizeLinear && n->n_out == 1 && !x->r->values[rn->out[0]].is_output;
}

static void widen(ot_win *a, ot_win b)
{
    if (ot_win_empty(b)) return;
    *a = ot_win_empty(*a) ? b : (ot_win){ot_min(a->lo, b.lo), ot_max(a->hi, b.hi)};
}

/* Steps of their own in front of the first tile. */
static bool is_fine(const ot_region *r) { return r->rolling || r->in_classes; }

/* ---- what can stream at all ---- */

static bool can_stream(const stepper *x, ot_why *why)
{
    const ot_region *r = x->r;
    *why = OT_WHY_STREAM_ONE_AXIS;
    if (r->n_dims != 1 && !r->rolling) return false;
    *why = OT_WHY_STREAM_WHOLE;
    for (uint32_t v = r->n_inputs; v < r->n_values; v++)
        if (r->values[v].axis[0] < 0) return false;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_rnode *rn = &r->nodes[i];
        if (rn->lead_axis[0] < 0) return false;
        for (uint32_t j = 0; j < x->g->nodes[rn->node].n_in; j++) {
            uint32_t v = rn->in[j];
            if (v != OT_NONE && v >= r->n_inputs && rn->in_axis[0][j] != r->values[v].axis[0])
                return false;
        }
    }
    return true;
}

/* ---- one step ---- */

/* Where boundary b of the sink axis lies on the axis of value v. */
static int64_t boundary_of(const stepper *x, int64_t b, uint32_t v)
{
    return (int64_t)((__int128)b * extent_of(x, v) / x->r->dims[0].extent);
}

/* What node i reads to make t->made. */
static void note_reads(stepper *x, uint32_t i, const ot_op_tile *t, ot_tile_windows *w)
{
    const ot_rnode *rn = &x->r->nodes[i];
    for (uint32_t j = 0; j < x->g->nodes[rn->node].n_in; j++) {
        uint32_t v = rn->in[j];
        int8_t axis = rn->in_axis[0][j];
        if (v == OT_NONE || x->r->values[v].axis[0] < 0) continue;
        ot_win in = axis == x->r->values[v].axis[0] ? t->in[j] : (ot_win){0, extent_of(x, v)};
        widen(&w->need[v], in);
        if (!ot_win_empty(in)) x->due[v] = ot_max(x->due[v], in.hi);
    }
}

/* Asked for all that it makes, node i makes just that. Steps that were moved back may cut a
 * resampling elsewhere than its tiles may be cut. */
static bool makes_just(const stepper *x, uint32_t i, ot_op_tile *t)
{
    const ot_win made = t->need = t->made;
    ot_why why;
    return ot_window_by_rule(&x->rules[i], t, &why) && t->made.lo == made.lo &&
           t->made.hi == made.hi;
}

/* The same, where it makes more than it was asked for; t stays as it is. An operator with very
 * many operands has none that are resampled. */
static bool makes_no_more(const stepper *x, uint32_t i, const ot_op_tile *t)
{
    ot_win in[OPERANDS];
    ot_op_tile again = *t;
    if (t->made.lo == t->need.lo && t->made.hi == t->need.hi) return true;
    if (x->g->nodes[x->r->nodes[i].node].n_in > OPERANDS) return true;
    again.in = in;
    return makes_just(x, i, &again);
}

/* The rows that node i makes in this step, and what it reads for that. in: storage of its windows.
 */
static bool make_rows(stepper *x, uint32_t i, ot_tile_windows *w, ot_win *in, ot_why *why)
{
    const ot_rnode *rn = &x->r->nodes[i];
    const ot_node *n = &x->g->nodes[rn->node];
    const bool again = x->again[i];
    ot_op_tile *t = &w->ops[i];
    int64_t top = 0, before = x->ready[rn->out[rn->lead_out[0]]];
    *t = (ot_op_tile){.in = in};
    for (uint32_t o = 0; o < n->n_out; o++) {
        if (rn->out[o] == OT_NONE) continue;
        top = ot_max(top, x->due[rn->out[o]]);
        if (again) widen(&t->need, w->need[rn->out[o]]);
    }
    if (!again) t->need = (ot_win){before, ot_max(before, top)};
    if (ot_win_empty(t->need)) {
        t->made = t->need;
        return true;
    }
    if (!ot_window_by_rule(&x->rules[i], t, why)) return false;
    *why = OT_WHY_STREAM_ROWS;
    /* rows that are there already would be made once more */
    if (!again && t->made.lo < before) return false;
    if (is_fine(x->r) ? !makes_just(x, i, t) : !makes_no_more(x, i, t)) return false;
    for (uint32_t o = 0; o < n->n_out; o++)
        if (rn->out[o] != OT_NONE) x->ready[rn->out[o]] = again ? 0 : t->made.hi;
    note_reads(x, i, t, w);
    return true;
}

/* Fill w for the step that ends at this boundary of the sink: all but where `made` and `kept`
 * begin. */
static bool take_step(stepper *x, int64_t boundary, ot_tile_windows *w, ot_why *why)
{
    const ot_region *r = x->r;
    ot_win *in = w->ops[r->n_nodes].in;
    size_t n_in = 0;
    for (uint32_t v = 0; v < r->n_values; v++) {
        w->need[v] = w->made[v] = w->piece[v] = w->kept[v] = (ot_win){0, 0};
        x->due[v] = x->ready[v];
        if (v >= r->n_inputs) w->kept[v] = (ot_win){x->ready[v], x->ready[v]};
        if (r->values[v].is_output) x->due[v] = ot_max(x->ready[v], boundary_of(x, boundary, v));
        if (x->ahead) x->due[v] = ot_max(x->due[v], x->ahead[v]);
    }
    for (uint32_t i = 0; i < r->n_nodes; i++) n_in += x->g->nodes[r->nodes[i].node].n_in;
    memset(in, 0, n_in * sizeof *in);
    for (uint32_t i = r->n_nodes; i-- > 0;) {
        n_in -= x->g->nodes[r->nodes[i].node].n_in;
        if (!make_rows(x, i, w, in + n_in, why)) return false;
    }
    for (uint32_t v = 0; v < r->n_values; v++) {
        if (v < r->n_inputs)
            w->made[v] = w->need[v];
        else
            w->made[v] = (ot_win){w->kept[v].hi, x->ready[v]};
        if (r->values[v].is_output) w->piece[v] = w->made[v];
    }
    for (uint32_t i = 0; i < r->n_nodes; i++)
        if (x->again[i]) w->made[r->nodes[i].out[0]] = w->ops[i].made;
    return true;
}

/* ---- all steps ---- */

static ot_status new_steps(stepper *x, uint32_t n, ot_tile_windows **out)
{
    *out = OT_NEW_N(x->a, ot_tile_windows, n + 1u);
    if (!*out) return nomem(x);
    for (uint32_t k = 0; k < n; k++) {
        OT_TRY(ot_tile_windows_new(x->g, x->r, x->a, &(*out)[k]));
        (*out)[k].kept = OT_NEW_N(x->a, ot_win, x->r->n_values + 1u);
        if (!(*out)[k].kept) return nomem(x);
    }
    return OT_OK;
}

/* What step w has of input v when rows that were brought stay: least: of what it and those
 * behind it want; ready: rows brought before. */
static void keep_input(ot_tile_windows *w, uint32_t v, int64_t least, int64_t ready)
{
    const ot_win need = w->need[v];
    w->kept[v] = (ot_win){ot_min(least, ready), ready};
    w->made[v] = (ot_win){w->kept[v].lo, ot_max(ready, need.hi)};
    if (ot_win_empty(w->kept[v]) && !ot_win_empty(need))
        w->made[v].lo = ot_max(ready, least); /* rows that nobody wants lie between */
    if (ot_win_empty(w->made[v])) w->made[v] = w->kept[v];
}

/* Rows of inputs, brought once each. before: [n] scratch. */
static void keep_inputs(const stepper *x, ot_tile_windows *steps, uint32_t n, int64_t *before)
{
    for (uint32_t v = 0; v < x->r->n_inputs; v++) {
        int64_t ready = 0, least = INT64_MAX;
        if (x->r->values[v].axis[0] < 0) continue;
        for (uint32_t k = 0; k < n; k++) {
            before[k] = ready;
            if (!ot_win_empty(steps[k].need[v])) ready = ot_max(ready, steps[k].need[v].hi);
        }
        for (uint32_t k = n; k-- > 0;) {
            if (!ot_win_empty(steps[k].need[v])) least = ot_min(least, steps[k].need[v].lo);
            keep_input(&steps[k], v, least, before[k]);
        }
    }
}

/* Rows are kept until nobody wants them any more. */
static ot_status find_kept(stepper *x, ot_tile_windows *steps, uint32_t n)
{
    const ot_region *r = x->r;
    int64_t *least = OT_NEW_N(x->a, int64_t, r->n_values + 1u),
            *before = OT_NEW_N(x->a, int64_t, n + 1u);
    if (!least || !before) return nomem(x);
    if (r->rolling) keep_inputs(x, steps, n, before);
    for (uint32_t v = 0; v < r->n_values; v++) least[v] = INT64_MAX;
    for (uint32_t k = n; k-- > 0;) {
        ot_tile_windows *w = &steps[k];
        for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
            if (x->again[r->values[v].node]) continue;
            if (!ot_win_empty(w->need[v])) least[v] = ot_min(least[v], w->need[v].lo);
            w->kept[v].lo = ot_min(least[v], w->kept[v].hi);
            w->made[v].lo = w->kept[v].lo;
        }
    }
    return OT_OK;
}

/* ---- the steps before the first row of the sink ---- */

/* What the first of the steady steps has ready, and how much each of them adds. */
typedef struct pace {
    int64_t *ready, *rows; /* [n_values]; 0: of what is made anew, and of inputs */
    uint32_t at;           /* number of that step, */
    uint32_t before;       /* with so many before the first tile of the sink */
} pace;

static ot_status find_pace(const stepper *x, const ot_tile_windows *steps, ot_tile_run run,
                           ot_arena *a, pace *p)
{
    const ot_region *r = x->r;
    *p = (pace){OT_NEW_N(a, int64_t, r->n_values + 1u), OT_NEW_N(a, int64_t, r->n_values + 1u),
                run.first, 0};
    if (!p->ready || !p->rows) return nomem(x);
    int64_t most = run.first + 1;
    for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
        if (is_made_again(x, r->values[v].node)) continue;
        p->ready[v] = steps[run.first].made[v].hi;
        p->rows[v] = steps[run.first + 1].made[v].hi - p->ready[v];
        if (p->rows[v] > 0) most = ot_max(most, ot_ceil_div(p->ready[v], p->rows[v]));
    }
    p->before = (uint32_t)(most - run.first - 1);
    p->at += p->before;
    return OT_OK;
}

/* Rows that are there at the end of step k, which is not behind the first steady one. */
static void look_ahead(stepper *x, const pace *p, uint32_t k)
{
    for (uint32_t v = 0; v < x->r->n_values; v++)
        x->ahead[v] = ot_max(0, p->ready[v] - (int64_t)(p->at - k) * p->rows[v]);
}

/* Steps that end at ends [n] of the sink. p: NULL, or what the first of them make. */
static ot_status take_steps(stepper *x, const int64_t *ends, uint32_t n, const pace *p,
                            ot_tile_windows **steps, bool *legal, ot_why *why)
{
    int64_t *ahead = OT_NEW_N(x->a, int64_t, x->r->n_values + 1u);
    x->ready = OT_NEW_N(x->a, int64_t, x->r->n_values + 1u);
    x->due = OT_NEW_N(x->a, int64_t, x->r->n_values + 1u);
    x->again = OT_NEW_N(x->a, bool, x->r->n_nodes + 1u);
    x->rules = OT_NEW_N(x->a, ot_window_rule, x->r->n_nodes + 1u);
    if (!x->ready || !x->due || !x->again || !x->rules || !ahead) return nomem(x);
    for (uint32_t i = 0; i < x->r->n_nodes; i++) {
        const ot_rnode *rn = &x->r->nodes[i];
        x->again[i] = is_made_again(x, i);
        x->rules[i] = ot_window_rule_of(x->g, &x->g->nodes[rn->node], rn->lead_out[0],
                                        (uint32_t)rn->lead_axis[0]);
    }
    OT_TRY(new_steps(x, n, steps));
    *legal = true;
    for (uint32_t k = 0; k < n && *legal; k++) {
        x->ahead = p && k <= p->at ? ahead : NULL;
        if (x->ahead) look_ahead(x, p, k);
        *legal = take_step(x, ends[k], &(*steps)[k], why);
    }
    return *legal ? find_kept(x, *steps, n) : OT_OK;
}

ot_status ot_stream_at(const ot_graph *g, const ot_region *r, ot_arena *a, const int64_t *ends,
                       uint32_t n, ot_tile_windows **steps, ot_why *why)
{
    stepper x = {.g = g, .r = r, .a = a};
    bool legal = can_stream(&x, why);
    if (legal) OT_TRY(take_steps(&x, ends, n, NULL, steps, &legal, why));
    if (!legal) *steps = NULL;
    return OT_OK;
}

/* The longest run of steps that are alike, the earliest of these. */
static ot_status steady_run(const stepper *x, const ot_tile_windows *steps, uint32_t n,
                            ot_tile_run *best)
{
    const ot_form_tiles t = {.g = x->g, .r = x->r, .arena = x->a};
    *best = (ot_tile_run){0, 1};
    for (uint32_t k = 0; k < n;) {
        uint32_t end = k + 1;
        bool same = true;
        while (end < n) {
            if (x->r->rolling) /* no body is written for them */
                same = ot_windows_alike(&t, 0, &steps[k], &steps[end]);
            else
                OT_TRY(ot_tiles_alike(&t, 0, &steps[k], &steps[end], x->a, &same));
            if (!same) break;
            end++;
        }
        if (end - k > best->count) *best = (ot_tile_run){k, end - k};
        k = end;
    }
    return OT_OK;
}

/* A run of several steps hands on as many rows as it takes: the step behind it gets these. */
static bool hand_over(const stepper *x, ot_stream *s, ot_tile_run run, ot_why *why)
{
    *why = OT_WHY_STREAM_ROWS;
    if (run.count < 2 || run.first + run.count == s->n) return true;
    ot_tile_windows *next = &s->steps[run.first + run.count];
    for (uint32_t v = x->r->n_inputs; v < x->r->n_values; v++) {
        int64_t rows = ot_win_len(s->steps[run.first].kept[v]);
        if (ot_win_len(next->kept[v]) > rows) return false;
        if (is_made_again(x, x->r->values[v].node)) continue;
        next->kept[v].lo = next->made[v].lo = next->kept[v].hi - rows;
    }
    return true;
}

/* Ends of the steps when the first `run.first` tiles become one step, and those behind the run
 * another; returns how many. */
static uint32_t ends_of(const ot_dim *d, ot_tile_run run, int64_t *ends)
{
    uint32_t n = 0;
    for (uint32_t k = run.first ? run.first : 1; k < run.first + run.count; k++)
        ends[n++] = k * d->tile;
    if (run.first + run.count < d->n_tiles) ends[n++] = (run.first + run.count) * d->tile;
    ends[n++] = d->extent;
    return n;
}

/* Single steps around the run. */
static ot_status set_runs(stepper *x, ot_stream *s, bool *legal, ot_why *why)
{
    ot_tile_run run;
    OT_TRY(steady_run(x, s->steps, s->n, &run));
    *why = OT_WHY_NONE_ALIKE;
    *legal = run.count >= 2 &&
             (is_fine(x->r) || (run.first <= 1 && s->n - run.first - run.count <= 1));
    if (!*legal) return OT_OK;
    s->runs = OT_NEW_N(x->a, ot_tile_run, s->n - run.count + 1u);
    if (!s->runs) return nomem(x);
    for (uint32_t k = 0; k < s->n; k += s->runs[s->n_runs++].count)
        s->runs[s->n_runs] = k == run.first ? run : (ot_tile_run){k, 1};
    *legal = hand_over(x, s, run, why);
    return OT_OK;
}

/* Where the steady part lies when every tile is a step, and its pace. a: of the pace. */
static ot_status find_steady(stepper *x, int64_t *ends, ot_arena *a, ot_tile_run *run, pace *p,
                             bool *legal, ot_why *why)
{
    const ot_dim *d = &x->r->dims[0];
    ot_tile_windows *steps = NULL;
    for (uint32_t k = 0; k < d->n_tiles; k++)
        ends[k] = ot_min((int64_t)(k + 1) * d->tile, d->extent);
    OT_TRY(take_steps(x, ends, d->n_tiles, NULL, &steps, legal, why));
    if (!*legal) return OT_OK;
    OT_TRY(steady_run(x, steps, d->n_tiles, run));
    *why = OT_WHY_NONE_ALIKE;
    *legal = run->count >= 2;
    return *legal ? find_pace(x, steps, *run, a, p) : OT_OK;
}

/* With as many steps before the first tile as the region lags. */
static ot_status roll(stepper *x, const pace *p, ot_stream *s, bool *legal, ot_why *why)
{
    const ot_dim *d = &x->r->dims[0];
    int64_t *ends = OT_NEW_N(x->a, int64_t, d->n_tiles + p->before + 1u);
    if (!ends) return nomem(x);
    *why = OT_WHY_MANY_NODES;
    *legal = ((uint64_t)d->n_tiles + p->before) * ((uint64_t)x->r->n_nodes + x->r->n_values) <=
             ENTRIES_MAX;
    if (!*legal) return OT_OK;
    for (uint32_t k = 0; k < p->before; k++) ends[s->n++] = 0;
    for (uint32_t k = 0; k < d->n_tiles; k++)
        ends[s->n++] = ot_min((int64_t)(k + 1) * d->tile, d->extent);
    OT_TRY(take_steps(x, ends, s->n, p, &s->steps, legal, why));
    return *legal ? set_runs(x, s, legal, why) : OT_OK;
}

static ot_status find_steps(const ot_graph *g, const ot_region *r, ot_arena *a, ot_stream *out,
                            bool *legal, ot_why *why)
{
    stepper x = {.g = g, .r = r, .a = a};
    ot_tile_run run;
    pace p;
    *out = (ot_stream){0};
    *legal = can_stream(&x, why);
    if (!*legal) return OT_OK;
    *why = OT_WHY_MANY_NODES;
    *legal = (uint64_t)r->dims[0].n_tiles * ((uint64_t)r->n_nodes + r->n_values) <= ENTRIES_MAX;
    if (!*legal) return OT_OK;
    int64_t *ends = OT_NEW_N(a, int64_t, r->dims[0].n_tiles + 1u);
    x.a = ot_arena_new();
    ot_status st = ends && x.a ? find_steady(&x, ends, a, &run, &p, legal, why) : nomem(&x);
    ot_arena_free(x.a);
    x.a = a;
    if (st != OT_OK || !*legal) return st;
    if (is_fine(r)) return roll(&x, &p, out, legal, why);
    out->n = ends_of(&r->dims[0], run, ends);
    OT_TRY(take_steps(&x, ends, out->n, NULL, &out->steps, legal, why));
    return *legal ? set_runs(&x, out, legal, why) : OT_OK;
}

ot_status ot_stream_steps(const ot_graph *g, const ot_region *r, ot_arena *a, ot_stream *out,
                          bool *legal, ot_why *why)
{
    ot_stream_memo *m = r->memo;
    if (!m) return find_steps(g, r, a, out, legal, why);
    if (!m->is_known) OT_TRY(find_steps(g, r, m->a, &m->steps, &m->legal, &m->why));
    m->is_known = true;
    *out = m->steps;
    *legal = m->legal;
    *why = m->why;
    return OT_OK;
}
