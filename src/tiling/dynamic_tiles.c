/* Tiles of a region at every size, from its tiles at one. See dynamic_tiles.h.
 *
 * The size that is looked at has inner tiles that look alike; whatever of them moves by the same
 * step from tile to tile does so everywhere, since no window of an operator that ot_access_axis
 * let in depends on an extent before it reaches the end of the axis. What reaches it is the last
 * tile: it begins where an inner one would, and every reader of a value reads to its end. Nor
 * does it matter to that whether rows are computed again or were handed on.
 */
#include "dynamic_tiles.h"

#include "ops/dynamic_dims.h"
#include "stream.h"

#define FIRST_MAX 4 /* tiles at the beginning with bodies of their own */
/* tiles that are seen to be alike; two where an axis has no more */
#define INNER 3
#define STEPS 48 /* steps of a stream within which they must become alike */
/* rows of the sink that are looked at behind a tile, at least, where operators crop */
#define AHEAD                    64
#define IDENTITY_TAKES_SEQUENCES 14 /* opset */
/* rows of the last tile wherever two values meet: one row would broadcast where the model fails */
#define ROWS_MIN 2

static bool is_cut(const ot_region *r, uint32_t v) { return r->values[v].axis[0] != OT_AX_WHOLE; }

static int64_t extent_of(const ot_graph *g, const ot_region *r, uint32_t v)
{
    return g->values[r->values[v].value].dims[r->values[v].axis[0]];
}

/* Tiles of a region as they are looked at. */
typedef struct looking {
    ot_form_tiles t; /* of the region below, in the graph that shows most */
    ot_region r;     /* with the extents of that graph */
    /* [n] the first tiles; of a stream, a first step, those that are alike, and one to the end */
    ot_tile_windows *x;
    /* first: the first inner one, with alike - 1 behind it that look the same */
    uint32_t n, first, alike;
    int64_t lead; /* where the first inner one begins on the sink's axis */
} looking;

static bool streams(const looking *l) { return l->r.form == OT_FORM_STREAM; }

/* The region in the larger graph, where that is known; tiles as large as planned. */
static void look_at(const ot_form_tiles *t, looking *l)
{
    const ot_graph *large = t->g->model->dynamic_dims->large;
    const ot_dim *dim = &t->r->dims[0];
    l->r = *t->r;
    l->t = (ot_form_tiles){.g = t->g, .r = &l->r, .arena = t->arena};
    for (uint32_t v = 0; large && v < l->r.n_values; v++)
        if (!ot_value_is_static(&large->values[l->r.values[v].value])) large = NULL;
    if (large) l->t.g = large;
    l->r.dims[0].extent = extent_of(l->t.g, t->r, dim->sink);
    l->r.dims[0].n_tiles = ot_tile_count(l->r.dims[0].extent, dim->tile);
    l->n = l->r.dims[0].n_tiles < FIRST_MAX + INNER ? l->r.dims[0].n_tiles : FIRST_MAX + INNER;
}

/* Windows of the first tiles, and where those begin that are alike: the earliest INNER, else
 * two. l->alike 0 with *why: none are. */
static ot_status find_inner(looking *l, ot_why *why)
{
    ot_arena *scratch = ot_arena_new();
    ot_status s = scratch ? OT_OK : ot_fail_nomem(l->t.g->model->diag);
    uint32_t alike = 0;
    l->x = OT_NEW_N(l->t.arena, ot_tile_windows, l->n + 1u);
    if (!l->x && s == OT_OK) s = ot_fail_nomem(l->t.g->model->diag);
    for (uint32_t k = 0; s == OT_OK && k < l->n && l->alike < INNER; k++) {
        bool same = false;
        s = ot_tile_windows_new(l->t.g, &l->r, l->t.arena, &l->x[k]);
        if (s == OT_OK && !ot_tile_windows_get(l->t.g, &l->r, 0, k, &l->x[k], why)) break;
        if (s == OT_OK && k > 0)
            s = ot_tiles_alike(&l->t, 0, &l->x[k - 1], &l->x[k], scratch, &same);
        *why = OT_WHY_NONE_ALIKE;
        alike = same ? alike + 1 : 0;
        if (alike == 0 || alike + 1 <= l->alike) continue;
        l->alike = alike + 1;
        l->first = k - alike;
    }
    l->lead = (int64_t)l->first * l->r.dims[0].tile;
    ot_arena_free(scratch);
    return s;
}

/* Steps [from, from + n) of x look the same, one by one. */
static ot_status steps_alike(const looking *l, const ot_tile_windows *x, uint32_t from, uint32_t n,
                             bool *same)
{
    ot_arena *scratch = ot_arena_new();
    ot_status s = scratch ? OT_OK : ot_fail_nomem(l->t.g->model->diag);
    *same = true;
    for (uint32_t k = from + 1; s == OT_OK && *same && k < from + n; k++)
        s = ot_tiles_alike(&l->t, 0, &x[k - 1], &x[k], scratch, same);
    ot_arena_free(scratch);
    return s;
}

/* Boundaries from, from + tile, ... on the sink's axis that lie inside of it, at most `most`,
 * and its end; returns how many in all. */
static uint32_t ends_from(const looking *l, int64_t from, uint32_t most, int64_t *ends)
{
    const ot_dim *d = &l->r.dims[0];
    uint32_t n = 0;
    for (int64_t at = from; n < most && at < d->extent; at += d->tile) ends[n++] = at;
    ends[n++] = d->extent;
    return n;
}

/* How many steps at the beginning are one: the first behind that are alike. *lead 0: none are,
 * *why. */
static ot_status find_lead(const looking *l, int64_t *lead, ot_why *why)
{
    const ot_dim *d = &l->r.dims[0];
    int64_t ends[STEPS + INNER + 1];
    const uint32_t n = ends_from(l, d->tile, STEPS + INNER, ends);
    ot_arena *scratch = ot_arena_new();
    ot_tile_windows *x = NULL;
    bool same = false;
    *lead = 0;
    ot_status s = scratch ? ot_stream_at(l->t.g, &l->r, scratch, ends, n, &x, why)
                          : ot_fail_nomem(l->t.g->model->diag);
    if (s == OT_OK && x) *why = OT_WHY_NONE_ALIKE;
    for (uint32_t k = 1; s == OT_OK && x && !same && k + INNER < n; k++) {
        s = steps_alike(l, x, k, INNER, &same);
        if (same) *lead = k * d->tile;
    }
    ot_arena_free(scratch);
    return s;
}

/* The last step takes over as many rows as inner ones do. */
static bool hand_over(const looking *l, ot_tile_windows *last)
{
    const ot_tile_windows *inner = &l->x[l->first];
    for (uint32_t v = l->r.n_inputs; v < l->r.n_values; v++) {
        const int64_t rows = ot_win_len(inner->kept[v]);
        if (ot_win_len(last->kept[v]) > rows) return false;
        if (rows > 0) last->kept[v].lo = last->made[v].lo = last->kept[v].hi - rows;
    }
    return true;
}

/* The same for the steps of a stream: a first one, INNER that are alike, and all behind these. */
static ot_status find_steady(looking *l, ot_why *why)
{
    int64_t ends[INNER + 2];
    bool same = false;
    *why = OT_WHY_NONE_ALIKE;
    if (l->r.dims[0].extent < 1) return OT_OK; /* the larger graph may have nothing left to cut */
    OT_TRY(find_lead(l, &l->lead, why));
    if (l->lead == 0) return OT_OK;
    const uint32_t n = ends_from(l, l->lead, INNER + 1, ends);
    if (n < INNER + 2) return OT_OK;
    OT_TRY(ot_stream_at(l->t.g, &l->r, l->t.arena, ends, n, &l->x, why));
    if (!l->x) return OT_OK;
    *why = OT_WHY_NONE_ALIKE;
    l->first = 1;
    OT_TRY(steps_alike(l, l->x, 1, INNER, &same));
    if (same && hand_over(l, &l->x[INNER + 1])) l->alike = INNER;
    return OT_OK;
}

/* Windows of what begins where the first inner tile does and ends at `hi` of the sink's axis;
 * *legal false: it cannot be cut there. a: a stream's windows live there. */
static ot_status part_to(const looking *l, int64_t hi, ot_arena *a, ot_tile_windows *w, bool *legal,
                         ot_why *why)
{
    const int64_t ends[] = {l->lead, hi, l->r.dims[0].extent};
    ot_tile_windows *x;
    if (!streams(l)) {
        *legal = ot_tile_windows_part(l->t.g, &l->r, 0, l->lead, hi, w, why);
        return OT_OK;
    }
    OT_TRY(ot_stream_at(l->t.g, &l->r, a, ends, 3, &x, why));
    *legal = x != NULL;
    if (x) *w = x[1];
    return OT_OK;
}

/* Rows from an inner tile to the next, for each cut value; false where they do not move alike. */
static bool fill_steps(const looking *l, int64_t *step)
{
    const ot_tile_windows *x = &l->x[l->first];
    bool any = false;
    for (uint32_t v = 0; v < l->r.n_values; v++) {
        if (!is_cut(&l->r, v)) continue;
        step[v] = x[1].made[v].lo - x[0].made[v].lo;
        if (l->alike > 2 && x[2].made[v].lo - x[1].made[v].lo != step[v]) return false;
        if (step[v] < 1 && !ot_win_empty(x[0].made[v])) return false;
        any |= v < l->r.n_inputs && step[v] > 0;
    }
    return any;
}

/* Tiles in front of the inner ones end before those do: nothing of them depends on where the
 * axis ends. */
static bool first_fit(const looking *l)
{
    for (uint32_t k = 0; k < l->first; k++)
        for (uint32_t v = 0; v < l->r.n_values; v++)
            if (is_cut(&l->r, v) && l->x[k].made[v].hi > l->x[l->first].made[v].hi) return false;
    return true;
}

/* The node reads its operands where the inner tile does, seen from where they begin. */
static bool reads_alike(const ot_form_tiles *t, uint32_t i, const ot_tile_windows *a,
                        const ot_tile_windows *b)
{
    const ot_rnode *rn = &t->r->nodes[i];
    const ot_op_tile *x = &a->ops[i], *y = &b->ops[i];
    if (ot_win_empty(x->need) != ot_win_empty(y->need)) return false;
    if (ot_win_empty(x->need) || rn->lead_axis[0] == OT_AX_WHOLE) return true;
    if (x->pad_lo != y->pad_lo) return false;
    for (uint32_t j = 0; j < t->g->nodes[rn->node].n_in; j++) {
        const uint32_t v = rn->in[j];
        if (rn->in_axis[0][j] == OT_AX_WHOLE) continue;
        /* read along another axis, too */
        if (v == OT_NONE || t->r->values[v].axis[0] != rn->in_axis[0][j]) return false;
        if (ot_win_empty(x->in[j]) || ot_win_empty(y->in[j])) return false;
        if (x->in[j].lo - a->made[v].lo != y->in[j].lo - b->made[v].lo) return false;
    }
    return true;
}

/* The last tile: from where an inner one would begin, to the end. */
static bool fill_last(const looking *l, ot_dynamic_tiles *out, ot_why *why)
{
    const ot_form_tiles *t = &l->t;
    const ot_region *r = &l->r;
    const ot_dim *dim = &r->dims[0];
    const ot_tile_windows *b = out->inner;
    const uint32_t at =
        streams(l)
            ? l->alike
            : l->alike -
                  1; /* inner ones before it; tiles: one less, so that rows are left in any case */
    ot_tile_windows *w = &out->last;
    if (streams(l)) {
        *w = l->x[l->first + l->alike];
    } else if (!ot_tile_windows_part(t->g, r, 0, l->lead + (int64_t)at * dim->tile, dim->extent, w,
                                     why)) {
        return false;
    }
    *why = OT_WHY_DYNAMIC_BORDER;
    for (uint32_t v = 0; v < r->n_values; v++) {
        if (!is_cut(r, v)) continue;
        if (ot_win_empty(w->made[v]) != ot_win_empty(b->made[v])) return false;
        if (ot_win_empty(b->made[v])) continue;
        const int64_t lo = b->made[v].lo + (int64_t)at * out->step[v];
        if (w->made[v].lo != lo) return false;
        if (w->kept && ot_win_len(w->kept[v]) != ot_win_len(b->kept[v])) return false;
        if (ot_win_empty(w->piece[v]) != ot_win_empty(b->piece[v])) return false;
        if (w->piece[v].lo - w->made[v].lo != b->piece[v].lo - b->made[v].lo &&
            !ot_win_empty(w->piece[v]))
            return false;
        w->made[v].hi = t->g->values[r->values[v].value].dims[r->values[v].axis[0]];
    }
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        if (!reads_alike(t, i, b, w)) return false;
        if (ot_win_empty(w->ops[i].need) || r->nodes[i].lead_axis[0] < 0) continue;
        const ot_end_border end = ot_access_end(t->g, &t->g->nodes[r->nodes[i].node],
                                                (uint32_t)r->nodes[i].lead_axis[0]);
        w->ops[i].pad_hi = end.pad_hi;
        w->ops[i].extra = end.extra;
    }
    return true;
}

/* Every operator makes row k of row k: all cut values are as long as each other. */
static bool keeps_rows(const ot_form_tiles *t, const ot_tile_windows *b)
{
    for (uint32_t i = 0; i < t->r->n_nodes; i++) {
        const ot_rnode *rn = &t->r->nodes[i];
        if (rn->lead_axis[0] == OT_AX_WHOLE || ot_win_empty(b->ops[i].need)) continue;
        if (ot_op_access(t->g->nodes[rn->node].op) == OT_ACC_SLICE) return false;
        for (uint32_t j = 0; j < t->g->nodes[rn->node].n_in; j++) {
            if (rn->in_axis[0][j] == OT_AX_WHOLE) continue;
            if (b->ops[i].in[j].lo != b->ops[i].made.lo || b->ops[i].in[j].hi != b->ops[i].made.hi)
                return false;
        }
    }
    return true;
}

/* Enough rows wherever values meet, and some of every output; in a stream, of every value. */
static bool has_rows(const ot_form_tiles *t, const ot_tile_windows *w, bool same)
{
    const ot_region *r = t->r;
    for (uint32_t v = r->n_inputs; v < r->n_values; v++)
        if (r->values[v].is_output && is_cut(r, v) && ot_win_empty(w->piece[v]))
            return false; /* parts: ot_tile_windows_part sees to it */
    for (uint32_t i = 0; i < r->n_nodes && r->form == OT_FORM_STREAM; i++)
        if (ot_win_empty(w->ops[i].made)) return false;
    for (uint32_t i = 0; i < r->n_nodes && !same; i++) {
        const ot_rnode *rn = &r->nodes[i];
        uint32_t met = 0;
        int64_t rows = INT64_MAX;
        if (rn->lead_axis[0] == OT_AX_WHOLE || ot_win_empty(w->ops[i].need)) continue;
        for (uint32_t j = 0; j < t->g->nodes[rn->node].n_in; j++) {
            if (rn->in_axis[0][j] == OT_AX_WHOLE) continue;
            met++;
            rows = ot_min(rows, ot_win_len(w->ops[i].in[j]));
        }
        if (met > 1 && rows < ROWS_MIN) return false;
    }
    return true;
}

/* Where operators crop so much that rows of their input make no row of theirs, an inner tile
 * ends inside its inputs and yet not inside all that is made of them: then there must be more of
 * the inputs behind it, by so many rows for each of these operators. */
static int64_t rows_ahead(const looking *l, uint32_t i)
{
    const ot_rnode *rn = &l->r.nodes[i];
    if (rn->lead_axis[0] < 0 || ot_win_empty(l->x[l->first].ops[i].need)) return 0;
    return ot_access_end(l->t.g, &l->t.g->nodes[rn->node], (uint32_t)rn->lead_axis[0]).ahead;
}

/* Extents at which all is there that a part made of rows of the sink up to `hi` reads, and that
 * is made of it; base: its windows. Where operators crop, so many more that rows_ahead is met.
 * *found false: there is not so much to look at. Raises need [n_inputs]. */
static ot_status look_behind(const looking *l, int64_t hi, const ot_tile_windows *base, ot_arena *a,
                             int64_t *need, bool *found)
{
    ot_tile_windows w = *base;
    ot_why why;
    uint32_t cropping = 0;
    for (uint32_t i = 0; i < l->r.n_nodes; i++) cropping += rows_ahead(l, i) > 0;
    *found = cropping == 0;
    if (cropping > 0) OT_TRY(ot_tile_windows_new(l->t.g, &l->r, a, &w));
    for (int64_t more = 1;
         !*found && more <= ot_max(2 * l->r.dims[0].tile, AHEAD) && hi + more < l->r.dims[0].extent;
         more++) {
        bool enough;
        OT_TRY(part_to(l, hi + more, a, &w, &enough, &why));
        for (uint32_t i = 0; i < l->r.n_nodes && enough; i++) {
            const int64_t rows = rows_ahead(l, i);
            enough = rows == 0 ||
                     w.ops[i].in[0].hi >= base->ops[i].in[0].hi + (rows + 1) * cropping;
        }
        *found = enough;
    }
    for (uint32_t v = 0; v < l->r.n_inputs; v++)
        if (is_cut(&l->r, v)) need[v] = ot_max(base->made[v].hi, w.made[v].hi);
    return OT_OK;
}

/* The shortest last tile behind no inner one: *rows of the sink with windows w. *found false:
 * there is none. */
static ot_status shortest(const looking *l, bool same, ot_arena *a, int64_t *rows,
                          ot_tile_windows *w, bool *found)
{
    const ot_dim *d = &l->r.dims[0];
    ot_why why;
    *found = false;
    OT_TRY(ot_tile_windows_new(l->t.g, &l->r, a, w));
    for (*rows = 0; !*found && *rows < 2 * d->tile && l->lead + *rows + 1 < d->extent;) {
        bool legal;
        OT_TRY(part_to(l, l->lead + ++*rows, a, w, &legal, &why));
        if (!legal && !streams(l)) return OT_OK;
        *found = legal && has_rows(&l->t, w, same);
    }
    return OT_OK;
}

/* Extents at which there are no inner tiles: the tiles at the beginning fit, and so does the
 * shortest last tile. a: scratch. */
static ot_status fill_least(const looking *l, ot_dynamic_tiles *out, ot_arena *a, bool *found)
{
    const ot_region *r = &l->r;
    int64_t *inner = OT_NEW_N(a, int64_t, r->n_inputs + 1u),
            *last = OT_NEW_N(a, int64_t, r->n_inputs + 1u), rows;
    ot_tile_windows w;
    if (!inner || !last) return ot_fail_nomem(l->t.g->model->diag);
    OT_TRY(shortest(l, out->same, a, &rows, &w, found));
    if (*found) OT_TRY(look_behind(l, l->lead + rows, &w, a, last, found));
    if (*found) OT_TRY(look_behind(l, l->lead + r->dims[0].tile, out->inner, a, inner, found));
    for (uint32_t v = 0; v < r->n_inputs && *found; v++) {
        if (!is_cut(r, v)) continue;
        const int64_t behind = inner[v] - out->inner->made[v].hi;
        int64_t least = ot_max(inner[v] - out->step[v], last[v]);
        for (uint32_t k = 0; k < l->first; k++) least = ot_max(least, l->x[k].made[v].hi + behind);
        out->least[v] = least;
    }
    return OT_OK;
}

/* The size that is planned for is long enough for tiles. */
static bool fits_design(const ot_form_tiles *t, const ot_dynamic_tiles *f)
{
    for (uint32_t v = 0; v < t->r->n_inputs; v++)
        if (is_cut(t->r, v) && extent_of(t->g, t->r, v) < f->least[v]) return false;
    return true;
}

/* Loops of tiles at the beginning can hand on the pieces of every output: where one of them adds
 * none, the sequence goes through an Identity, which takes sequences from opset 14 on. */
static bool hands_on_all(const looking *l)
{
    if (l->t.g->model->opset >= IDENTITY_TAKES_SEQUENCES) return true;
    for (uint32_t k = 0; k < l->first; k++)
        for (uint32_t v = l->r.n_inputs; v < l->r.n_values; v++)
            if (l->r.values[v].is_output && is_cut(&l->r, v) && ot_win_empty(l->x[k].piece[v]))
                return false;
    return true;
}

/* All that is said of the tiles, once those are found that are alike. */
static ot_status describe(const looking *l, ot_dynamic_tiles *out, bool *legal, ot_why *why)
{
    out->g = l->t.g;
    out->n_first = l->first;
    out->lead = l->lead;
    out->first = l->x;
    out->inner = &l->x[l->first];
    out->same = keeps_rows(&l->t, out->inner);
    *why = OT_WHY_DYNAMIC_FORM;
    if (!hands_on_all(l)) return OT_OK;
    *why = OT_WHY_DYNAMIC_STEP;
    if (!fill_steps(l, out->step)) return OT_OK;
    *why = OT_WHY_DYNAMIC_BORDER;
    if (!first_fit(l) || !fill_last(l, out, why)) return OT_OK;
    *why = OT_WHY_DYNAMIC_BORDER;
    ot_arena *scratch = ot_arena_new();
    ot_status s = scratch ? fill_least(l, out, scratch, legal) : ot_fail_nomem(l->t.g->model->diag);
    ot_arena_free(scratch);
    return s;
}

ot_status ot_dynamic_tiles_plan(const ot_form_tiles *t, ot_dynamic_tiles *out, bool *legal,
                                ot_why *why)
{
    looking l = {0};
    *out = (ot_dynamic_tiles){0};
    *legal = false;
    *why = OT_WHY_DYNAMIC_FORM;
    if (t->r->n_dims != 1) return OT_OK;
    *why = OT_WHY_DYNAMIC_FIXED;
    for (uint32_t v = 0; v < t->r->n_values; v++)
        if (ot_value_is_unranked(t->g, t->r->values[v].value)) return OT_OK;
    look_at(t, &l);
    OT_TRY(streams(&l) ? find_steady(&l, why) : find_inner(&l, why));
    if (l.alike == 0) return OT_OK;
    out->step = OT_NEW_N(t->arena, int64_t, l.r.n_values);
    out->least = OT_NEW_N(t->arena, int64_t, l.r.n_values);
    if (!out->step || !out->least) return ot_fail_nomem(t->g->model->diag);
    OT_TRY(ot_tile_windows_new(l.t.g, &l.r, t->arena, &out->last));
    OT_TRY(describe(&l, out, legal, why));
    if (*legal && !fits_design(t, out)) {
        *legal = false;
        *why = OT_WHY_NONE_ALIKE;
    }
    return OT_OK;
}
