/* The bound of a range: terms, then classes of sizes, then each class's largest size looked at.
 * See size_bounds.h. */
#include "size_bounds.h"

#include "onnx/import/model_io.h"
#include "alloc_sim/alloc_sim.h"
#include "transform/transform.h"
#include "tile_classes.h"

/* of what is predicted: up to 8 % more was measured (scripts/bounds_truth.py, six models) */
#define SPARE 0.10
/* sizes between, simulated, too: an allocator's regions do not grow evenly */
#define PROBES 6

typedef struct bounding {
    const ot_bounds_case *c;
    ot_arena *a;
    ot_size_terms *terms;
    ot_size_table table;
    ot_term **inputs; /* [g->n_inputs][rank] */
    ot_size_var vars[OT_SIZE_VARS_MAX];
    const char *names[OT_SIZE_VARS_MAX]; /* of the file; NULL: it has none */
    uint32_t n_vars;
    int64_t *values; /* [terms] */
    ot_bounds_facts *out;
} bounding;

const char *ot_bounds_verdict_name(ot_bounds_verdict v)
{
    static const char *const names[] = {"none", "proved", "exceeds", "unknown"};
    return names[v];
}

static ot_status nomem(const bounding *x) { return ot_fail_nomem(x->c->diag); }

static const ot_graph *file(const bounding *x) { return x->c->file->graph; }

static const ot_size_range *range_of(const bounding *x, const char *input)
{
    for (size_t k = 0; k < x->c->n; k++)
        if (strcmp(x->c->ranges[k].input, input) == 0) return &x->c->ranges[k];
    return NULL;
}

/* ---- variables ---- */

/* The variable of a dynamic dimension: dimensions of one name, and one range, are one. OT_NONE:
 * there are too many. */
static uint32_t variable(bounding *x, const ot_size_var *v, const char *name)
{
    for (uint32_t k = 0; name && k < x->n_vars; k++)
        if (x->names[k] && strcmp(x->names[k], name) == 0 && memcmp(&x->vars[k], v, sizeof *v) == 0)
            return k;
    if (x->n_vars == OT_SIZE_VARS_MAX) return OT_NONE;
    x->vars[x->n_vars] = *v;
    x->names[x->n_vars] = name;
    return x->n_vars++;
}

/* number [rank]: variable of each dimension of input k that has one. */
static bool number_dims(bounding *x, uint32_t k, uint32_t *number)
{
    const ot_value *v = &file(x)->values[file(x)->inputs[k]];
    const ot_size_range *r = range_of(x, v->name);
    for (uint32_t d = 0; r && d < r->rank; d++) {
        number[d] = OT_NONE;
        if (r->dims[d].lo == r->dims[d].hi) continue;
        number[d] = variable(x, &r->dims[d], ot_dim_name(v, d));
        if (number[d] == OT_NONE) return false;
    }
    return true;
}

/* *ok false: more dynamic dimensions than are told apart. */
static ot_status make_terms(bounding *x, bool *ok)
{
    const ot_graph *g = file(x);
    uint32_t(*number)[OT_RANK_MAX] = ot_alloc_n(x->a, g->n_inputs + 1u, sizeof *number);
    x->inputs = OT_NEW_N(x->a, ot_term *, g->n_inputs + 1u);
    if (!number || !x->inputs) return nomem(x);
    *ok = true;
    for (uint32_t k = 0; k < g->n_inputs && *ok; k++) *ok = number_dims(x, k, number[k]);
    if (!*ok) return OT_OK;
    x->terms = ot_size_terms_new(x->a, x->vars, x->n_vars);
    if (!x->terms) return nomem(x);
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_size_range *r = range_of(x, g->values[g->inputs[k]].name);
        if (!r) continue;
        x->inputs[k] = OT_NEW_N(x->a, ot_term, r->rank + 1u);
        if (!x->inputs[k]) return nomem(x);
        for (uint32_t d = 0; d < r->rank; d++)
            x->inputs[k][d] = number[k][d] == OT_NONE ? ot_term_const(x->terms, r->dims[d].lo)
                                                      : ot_term_var(x->terms, number[k][d]);
    }
    OT_TRY(ot_size_table_fill(g, x->terms, x->inputs, x->a, &x->table));
    x->values = OT_NEW_N(x->a, int64_t, ot_size_n_terms(x->terms) + 1);
    return x->values ? OT_OK : nomem(x);
}

/* ---- one size ---- */

/* "1x3x256x256", with names where there are several inputs. NULL: no memory. */
static const char *size_text(const bounding *x, const int64_t *at)
{
    const ot_graph *g = file(x);
    char *text = ot_strdup(x->a, "");
    ot_size_values(x->terms, at, x->values);
    for (uint32_t k = 0; text && k < g->n_inputs; k++) {
        const ot_size_range *r = range_of(x, g->values[g->inputs[k]].name);
        if (!r) continue;
        if (x->c->n > 1) text = ot_format(x->a, "%s%s%s=", text, *text ? "," : "", r->input);
        for (uint32_t d = 0; text && d < r->rank; d++)
            text = ot_format(x->a, "%s%s%lld", text, d ? "x" : "",
                             (long long)x->values[x->inputs[k][d]]);
    }
    return text;
}

/* Bindings of all inputs that have a range, at a size. */
static ot_status bindings_of(const bounding *x, const int64_t *at, ot_shape_binding **out)
{
    const ot_graph *g = file(x);
    size_t n = 0;
    *out = OT_NEW_N(x->a, ot_shape_binding, x->c->n + 1);
    if (!*out) return nomem(x);
    ot_size_values(x->terms, at, x->values);
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_size_range *r = range_of(x, g->values[g->inputs[k]].name);
        if (!r) continue;
        int64_t *dims = OT_NEW_N(x->a, int64_t, r->rank + 1u);
        if (!dims) return nomem(x);
        for (uint32_t d = 0; d < r->rank; d++) dims[d] = x->values[x->inputs[k][d]];
        (*out)[n++] = (ot_shape_binding){
            .input = r->input, .rank = r->rank, .dims = dims, .option = "--range"};
    }
    return OT_OK;
}

/* m's shapes at a size; *ok false with a word in *why: it does not take that. */
static ot_status infer_at(const bounding *x, ot_model *m, const int64_t *at, bool *ok,
                          const char **why)
{
    ot_shape_binding *bind;
    ot_diag aside = {0}, *told = m->diag;
    OT_TRY(bindings_of(x, at, &bind));
    m->diag = &aside;
    ot_status s = ot_infer_shapes(m->graph, bind, x->c->n);
    if (s == OT_OK) s = ot_assure(m->graph, OT_P_ORDER | OT_P_USES);
    m->diag = told;
    if (s == OT_E_NOMEM) return nomem(x);
    *ok = s == OT_OK;
    if (*ok || !why) return OT_OK;
    *why = ot_format(x->a, "it does not take %s (%.300s)", size_text(x, at), aside.message);
    return *why ? OT_OK : nomem(x);
}

static ot_status bound_copy(const bounding *x, const int64_t *at, ot_model **m, bool *ok,
                            const char **why)
{
    OT_TRY(ot_model_clone(x->c->file, m));
    ot_status s = infer_at(x, *m, at, ok, why);
    if (s == OT_OK && *ok) return OT_OK;
    ot_model_free(*m);
    *m = NULL;
    return s;
}

static ot_status takes_size(void *context, const int64_t *at, bool *takes)
{
    const bounding *x = context;
    ot_model *m = NULL;
    *takes = false;
    OT_TRY(bound_copy(x, at, &m, takes, NULL));
    ot_model_free(m);
    return OT_OK;
}

/* Extents that only the Reshape behind states: of a Slice, which begins where the iteration
 * says, and of pieces that are joined. */
static void fix_windows(ot_graph *g)
{
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        for (uint32_t j = 0; j < n->n_attrs; j++)
            if (n->attrs[j].kind == OT_ATTR_GRAPH && n->attrs[j].g) fix_windows(n->attrs[j].g);
        if (n->op != OT_OP_Reshape || n->in[0] == OT_NONE) continue;
        ot_value *from = &g->values[n->in[0]], *to = &g->values[n->out[0]];
        const ot_id by = from->producer;
        if (by == OT_NONE || ot_value_is_static(from) || from->rank != to->rank) continue;
        if (g->nodes[by].op == OT_OP_Slice ||
            strcmp(g->nodes[by].op_type, "ConcatFromSequence") == 0)
            from->dims = to->dims;
    }
}

/* What c->plan makes of the model, with the extents of a size; whole: the model at that size. */
static ot_status write_tiled(const bounding *x, const ot_model *whole, const int64_t *at,
                             ot_model **out)
{
    bool ok = false;
    const char *why = NULL;
    OT_TRY(ot_model_clone(x->c->file, out));
    ot_graph *g = (*out)->graph;
    const uint32_t n = g->n_values;
    ot_status s = ot_fold_dynamic(g, x->c->planned->graph);
    if (s == OT_OK) s = ot_transform_dynamic(g, x->c->planned->graph, x->c->plan);
    for (ot_id v = 0; s == OT_OK && v < n;
         v++) /* joined pieces are as long as the value that they are */
        if (ot_value_is_static(&whole->graph->values[v]))
            s = ot_value_set_shape(g, v, whole->graph->values[v].rank,
                                   whole->graph->values[v].dims);
    if (s == OT_OK) s = infer_at(x, *out, at, &ok, &why);
    if (s == OT_OK && !ok)
        s = ot_fail(x->c->diag, OT_E_INPUT, "--range: the tiled model: %.500s", why);
    if (s != OT_OK) {
        ot_model_free(*out);
        *out = NULL;
        return s;
    }
    fix_windows(g);
    return OT_OK;
}

/* ---- what a size takes ---- */

/* The first reason counts. why NULL: no memory. */
static ot_status note_unknown(const bounding *x, ot_bounds_side *side, const char *why)
{
    if (!why) return nomem(x);
    if (side->verdict == OT_BOUNDS_UNKNOWN) return OT_OK;
    side->verdict = OT_BOUNDS_UNKNOWN;
    side->why = why;
    return OT_OK;
}

static ot_status unknown_both(const bounding *x, const char *why)
{
    OT_TRY(note_unknown(x, &x->out->untiled, why));
    return note_unknown(x, &x->out->tiled, why);
}

/* Take in what m, one form of the model at a size, holds and makes its process grow by. needed:
 * the proof asks for this size. */
static ot_status look(const bounding *x, ot_model *m, bool in_branch, bool needed,
                      const int64_t *at, ot_bounds_side *side)
{
    ot_live_bytes live;
    ot_sim_figures f = {0};
    OT_TRY(ot_live_bytes_of(m->graph, &live));
    if (live.unknown && !needed) return OT_OK;
    if (live.unknown)
        OT_TRY(note_unknown(x, side,
                            ot_format(x->a, "the size of '%.200s' is not known", live.unknown)));
    if (!side->live_at || live.peak > side->live_bytes) {
        side->live_bytes = live.peak;
        side->live_at = size_text(x, at);
    }
    if (!ot_runtime_grows(x->c->target->runtime) || live.unknown)
        return side->live_at ? OT_OK : nomem(x);
    if (in_branch) {
        OT_TRY(ot_branch(m, false));
        OT_TRY(ot_assure(m->graph, OT_P_ORDER | OT_P_USES));
    }
    if (ot_sim_growth_most(m->graph, x->c->target->runtime, false, OT_SIM_ORDERS, &f) != OT_OK)
        return nomem(x);
    if (ot_dbg['P'])
        fprintf(stderr, "> Size: %s: %lld live, %lld resident growth\n", size_text(x, at),
                (long long)live.peak, (long long)f.growth);
    if (f.n_unknown == 0) {
        side->process_bytes = ot_max(side->process_bytes, ot_process_bytes(&f));
        if (f.growth > side->growth_bytes) {
            side->growth_bytes = f.growth;
            side->growth_at = size_text(x, at);
            if (!side->growth_at) return nomem(x);
        }
    }
    return side->live_at ? OT_OK : nomem(x);
}

/* No extent is longer than its term says; *value: one that is. */
static const char *beyond_terms(const bounding *x, const ot_graph *whole, const int64_t *at)
{
    ot_size_values(x->terms, at, x->values);
    for (ot_id v = 0; v < x->table.n_values; v++) {
        const ot_value *y = &whole->values[v];
        if (!x->table.dims[v] || y->rank != file(x)->values[v].rank) continue;
        for (int32_t k = 0; k < y->rank; k++)
            if (x->table.dims[v][k] != OT_NONE && y->dims[k] > x->values[x->table.dims[v][k]])
                return y->name;
    }
    return NULL;
}

/* Look at both forms at a size. *ok false with *why: the model does not take it. */
static ot_status look_at(bounding *x, const int64_t *at, bool needed, bool *ok, const char **why)
{
    ot_model *whole = NULL, *tiled = NULL;
    const bool same = x->c->plan->n_regions == 0 && !x->c->plan->in_branch;
    OT_TRY(bound_copy(x, at, &whole, ok, why));
    if (!*ok) return OT_OK;
    x->out->n_sizes++;
    const char *wrong = beyond_terms(x, whole->graph, at);
    ot_status s = OT_OK;
    if (wrong)
        s = unknown_both(
            x,
            ot_format(x->a, "the extents of '%.200s' are not what they were thought to be", wrong));
    if (s == OT_OK && !same) s = write_tiled(x, whole, at, &tiled);
    if (s == OT_OK && !same) s = look(x, tiled, x->c->plan->in_branch, needed, at, &x->out->tiled);
    if (s == OT_OK) s = look(x, whole, false, needed, at, &x->out->untiled);
    ot_model_free(tiled);
    ot_model_free(whole);
    return s;
}

/* ---- the proof ---- */

static bool has_subgraph(const ot_node *n)
{
    return n->op == OT_OP_Loop || n->op == OT_OP_If || n->op == OT_OP_Scan;
}

/* No value falls where a dynamic dimension grows: else *why. */
static ot_status check_terms(const bounding *x, const char **why)
{
    const ot_graph *g = file(x);
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        const char *label = n->name[0]                         ? n->name
                            : n->n_out && n->out[0] != OT_NONE ? g->values[n->out[0]].name
                                                               : n->op_type;
        if (has_subgraph(n)) {
            *why = ot_format(x->a, "what the subgraphs of %s '%.200s' take is not known",
                             n->op_type, label);
            return *why ? OT_OK : nomem(x);
        }
        for (uint32_t o = 0; o < n->n_out; o++) {
            const ot_value *v = n->out[o] == OT_NONE ? NULL : &g->values[n->out[o]];
            const ot_term *d = v ? x->table.dims[n->out[o]] : NULL;
            bool falls = false, none = v && !v->is_const && (!d || v->dtype == OT_DT_UNKNOWN);
            if (!v || v->is_const) continue;
            for (int32_t a = 0; d && a < v->rank; a++) {
                none |= d[a] == OT_NONE;
                falls |= ot_term_falls(x->terms, d[a]);
            }
            if (!none && !falls) continue;
            *why = ot_format(
                x->a,
                none ? "the size of what %s '%.200s' makes is computed of data, or in a way that "
                       "has no rule"
                     : "what %s '%.200s' makes may be smaller where the input is larger",
                n->op_type, label);
            return *why ? OT_OK : nomem(x);
        }
    }
    return OT_OK;
}

/* The sizes that the last tiles of the regions ask for. */
static ot_status look_at_classes(bounding *x)
{
    ot_tile_sizes sizes = {0};
    const ot_plan *p = x->c->plan;
    for (uint32_t k = 0; k < p->n_regions; k++) {
        if (ot_tile_sizes_add(x->c->planned->graph, &p->regions[k], &x->table, takes_size, x, x->a,
                              &sizes) != OT_OK)
            return nomem(x);
        if (!sizes.why) continue;
        const ot_graph *g = file(x);
        const ot_node *n = &g->nodes[p->regions[k].nodes[0].node];
        OT_TRY(note_unknown(x, &x->out->tiled,
                            ot_format(x->a, "%s, in the region that begins with '%.200s'",
                                      sizes.why, n->name[0] ? n->name : n->op_type)));
        sizes.why = NULL;
    }
    for (size_t k = 0; k < sizes.n; k++) {
        bool ok = true, again = false;
        for (size_t j = 0; j < k && !again; j++)
            again = memcmp(sizes.at[j], sizes.at[k], x->n_vars * sizeof **sizes.at) == 0;
        if (!again) OT_TRY(look_at(x, sizes.at[k], true, &ok, NULL));
    }
    return OT_OK;
}

/* Sizes between, for the process. */
static ot_status look_between(bounding *x)
{
    uint64_t seed = 1;
    int64_t at[OT_SIZE_VARS_MAX];
    for (int k = 0; k < PROBES; k++) {
        bool ok = true;
        for (uint32_t v = 0; v < x->n_vars; v++) {
            const uint64_t count = (uint64_t)((x->vars[v].hi - x->vars[v].lo) / x->vars[v].step) +
                                   1;
            const uint64_t i = k == 0 ? 0 : k == 1 ? count / 2 : ot_next_random(&seed) % count;
            at[v] = x->vars[v].lo + (int64_t)i * x->vars[v].step;
        }
        OT_TRY(look_at(x, at, false, &ok, NULL));
    }
    return OT_OK;
}

/* The process is told with something to spare. With a budget, a size that takes more decides it;
 * nothing that is unknown keeps to one. */
static void judge(const bounding *x, ot_bounds_side *side)
{
    const int64_t budget = x->c->budget;
    const int64_t spare = (int64_t)(SPARE * (double)side->growth_bytes);
    side->growth_bytes += spare;
    side->process_bytes += spare;
    if (side->verdict == OT_BOUNDS_NONE) side->verdict = OT_BOUNDS_PROVED;
    if (budget > 0 && (side->live_bytes > budget || side->process_bytes > budget))
        side->verdict = OT_BOUNDS_EXCEEDS;
}

static ot_status bound(bounding *x)
{
    const char *why = NULL;
    int64_t upper[OT_SIZE_VARS_MAX] = {0};
    bool ok = true;
    OT_TRY(make_terms(x, &ok));
    if (!ok) return unknown_both(x, "there are more dynamic dimensions than are told apart");
    OT_TRY(check_terms(x, &why));
    if (why) OT_TRY(unknown_both(x, why));
    for (uint32_t v = 0; v < x->n_vars; v++) upper[v] = x->vars[v].hi;
    why = NULL;
    OT_TRY(look_at(x, upper, true, &ok, &why));
    if (!ok) OT_TRY(unknown_both(x, why));
    if (x->out->tiled.verdict != OT_BOUNDS_UNKNOWN) OT_TRY(look_at_classes(x));
    OT_TRY(look_between(x));
    judge(x, &x->out->untiled);
    judge(x, &x->out->tiled);
    if (x->c->plan->n_regions == 0 && !x->c->plan->in_branch) x->out->tiled = x->out->untiled;
    return OT_OK;
}

/* The ranges as on the command line, with a space between two. NULL: no memory. */
static const char *range_text(const bounding *x)
{
    char *text = ot_strdup(x->a, "");
    for (size_t k = 0; text && k < x->c->n; k++) {
        const ot_size_range *r = &x->c->ranges[k];
        text = ot_format(x->a, "%s%s%s=", text, k ? " " : "", r->input);
        for (uint32_t d = 0; text && d < r->rank; d++) {
            const ot_size_var *v = &r->dims[d];
            text = ot_format(x->a, "%s%s%lld", text, d ? "," : "", (long long)v->lo);
            if (text && v->lo < v->hi) text = ot_format(x->a, "%s:%lld", text, (long long)v->hi);
            if (text && v->lo < v->hi && v->step > 1)
                text = ot_format(x->a, "%s:%lld", text, (long long)v->step);
        }
    }
    return text;
}

ot_status ot_bounds_compute(const ot_bounds_case *c, ot_arena *a, ot_bounds_facts *out)
{
    bounding x = {.c = c, .a = a, .out = out};
    *out = (ot_bounds_facts){.text = range_text(&x)};
    return out->text ? bound(&x) : nomem(&x);
}
