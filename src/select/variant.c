/* Copies of the model with edits made.
 *
 *   file --clone--> [widened] --> plain --clone--> decomposed --> ...
 *
 * What is made depends on the graph alone: two copies get the same names and numbers.
 */
#include "variant.h"

#include "onnx/import/model_io.h"
#include "ops/dynamic_dims.h"
#include "ops/quirks.h"
#include "tiling/forms.h"
#include "transform/transform.h"

#define LARGE           0.1 /* of the untiled model's peak: what is made again must be as large */
#define SEQUENCES_SINCE 13  /* opset */

/* ---- plain variants ---- */

/* A copy of m that may be edited: contents of tensors are read from the file for that. */
static ot_status copy_of(const ot_model *m, ot_diag *d, ot_model **out)
{
    OT_TRY(ot_model_clone(m, out));
    (*out)->diag = d;
    (*out)->source = m->source; /* borrowed: nothing frees it here */
    return OT_OK;
}

/* Shapes as far as the file says; loops that hand sequences on are of opset 13. */
static ot_status infer_dynamic(ot_model *m)
{
    OT_TRY(ot_infer_shapes(m->graph, NULL, 0));
    OT_TRY(ot_assure(m->graph, OT_P_ORDER | OT_P_USES));
    if (m->opset >= SEQUENCES_SINCE) return OT_OK;
    OT_TRY(ot_raise_operands(m));
    OT_TRY(ot_infer_shapes(m->graph, NULL, 0));
    return ot_assure(m->graph, OT_P_ORDER | OT_P_USES);
}

/* What a process of the file takes at the design size, before its types are changed. */
static ot_status simulate_file(ot_variant_group *x, const ot_model *m)
{
    ot_variant at = {.model = NULL};
    ot_sim_figures f = {0};
    if (!ot_runtime_simulates(x->r->target->runtime)) return OT_OK;
    OT_TRY(ot_model_clone(m, &at.model));
    at.model->diag = x->r->diag;
    ot_status s = ot_sizes_bind(x->r, &at);
    if (s == OT_OK && ot_sim_growth(at.design->graph, x->r->target->runtime, false, &f) != OT_OK)
        s = ot_fail_nomem(x->r->diag);
    ot_variant_close(&at, NULL);
    if (s != OT_OK || f.n_unknown > 0) return s;
    x->of_file = f;
    return OT_OK;
}

static ot_status widen(ot_variant_group *x, ot_model *m, bool *any)
{
    if (x->is_dynamic) {
        OT_TRY(simulate_file(x, m));
        OT_TRY(ot_widen(m->graph, any));
        if (*any) OT_TRY(ot_widen_drop_casts(m->graph));
        return *any ? ot_infer_shapes(m->graph, NULL, 0) : OT_OK;
    }
    OT_TRY(ot_widen(m->graph, any));
    return *any ? ot_infer_shapes(m->graph, x->r->sizes.shapes, x->r->sizes.n_shapes) : OT_OK;
}

static ot_status open_plain(ot_variant_group *x, bool *any)
{
    const ot_select_request *r = x->r;
    ot_variant *v = &x->v[OT_VARIANT_PLAIN];
    const bool given = r->unbound && x->is_dynamic;
    v->is_made = true;
    if (!given && !x->is_widened) {
        v->model = r->model;
    } else {
        OT_TRY(copy_of(given ? r->unbound : r->model, r->diag, &v->model));
        if (given) {
            v->model->source = r->model->source;
            OT_TRY(infer_dynamic(v->model));
        }
    }
    if (x->is_widened) {
        OT_TRY(widen(x, v->model, any));
        if (!*any) return OT_OK;
        OT_TRY(ot_assure(v->model->graph, OT_P_ORDER | OT_P_USES));
    }
    return x->is_dynamic ? ot_sizes_bind(r, v) : OT_OK;
}

ot_status ot_group_open(const ot_select_request *r, bool is_dynamic, bool widened,
                        ot_variant_group *out, bool *any)
{
    *out = (ot_variant_group){
        .r = r, .file = r->model, .is_dynamic = is_dynamic, .is_widened = widened};
    for (int k = 0; k < OT_VARIANT_KINDS; k++)
        out->v[k] = (ot_variant){.kind = (ot_variant_kind)k, .slowdown = -1};
    *any = !widened;
    const ot_status s = open_plain(out, any);
    if (s != OT_OK || !*any) ot_group_close(out);
    return s;
}

void ot_variant_close(ot_variant *v, const ot_model *file)
{
    ot_candidates_close(v->c);
    ot_model_free(v->large);
    ot_model_free(v->small);
    ot_model_free(v->design);
    if (v->model != file) ot_model_free(v->model);
    v->c = NULL;
    v->large = v->small = v->design = v->model = NULL;
}

void ot_group_close(ot_variant_group *x)
{
    /* the plain one last: the others borrow from it */
    for (int k = OT_VARIANT_KINDS; k-- > 0;) ot_variant_close(&x->v[k], x->file);
}

/* ---- edits ---- */

/* Decomposed, a normalisation would not come out as the runtime makes it of the model as it is: the
 * one of them that is right is not what people compare with. */
static bool differs_decomposed(const ot_graph *g, uint32_t by)
{
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (ot_quirk_hits(OT_QUIRK_LONG_SUM, by, n->op_type) && ot_is_long_sum(g, n)) return true;
    }
    return false;
}

/* Large values to make again, the largest first, since what is kept of a larger one hides what a
 * smaller one saves. Whether that takes too long is known when plans are made. */
static uint32_t pick_again(ot_remat_norm *all, uint32_t n, int64_t least, uint32_t most,
                           uint32_t *out)
{
    uint32_t picked = 0;
    while (n > 0 && picked < most) {
        uint32_t best = 0;
        for (uint32_t k = 1; k < n; k++)
            if (all[k].bytes > all[best].bytes) best = k;
        if (all[best].bytes < least) break;
        out[picked++] = all[best].split;
        all[best] = all[--n];
    }
    return picked;
}

/* m's normalisations are decomposed: what they read is made again. *n: how many. */
static ot_status make_again(ot_model *m, int64_t least, uint32_t most, uint32_t *n)
{
    uint32_t picked[OT_REMAT_MAX];
    ot_remat_norm *all = OT_NEW_N(m->arena, ot_remat_norm, m->n_decomposed + 1u);
    if (!all) return ot_fail_nomem(m->diag);
    *n = ot_rematerialise_find_norms(m->graph, all, m->n_decomposed);
    *n = pick_again(all, *n, least, most, picked);
    return *n > 0 ? ot_rematerialise_norms(m->graph, picked, *n) : OT_OK;
}

/* Which values late readers make again. */
typedef struct skips {
    ot_remat_kind kind;
    const ot_graph *planned; /* at one size; NULL: the model's graph */
    int64_t least;           /* bytes that it saves to make one again */
    uint32_t most;
    const ot_sim_figures *held_by; /* who must hold them when it grows last; NULL: nobody */
} skips;

static bool is_held(const ot_sim_figures *by, ot_id v)
{
    bool held = !by;
    for (uint32_t k = 0; by && k < by->n_held; k++) held |= by->held[k] == v;
    return held;
}

/* Values of g that late readers make again. */
static ot_status pick_skips(const ot_graph *g, const skips *x, ot_id picked[OT_REMAT_MAX],
                            uint32_t *n)
{
    ot_remat_skip all[OT_REMAT_MAX];
    uint32_t found = 0;
    *n = 0;
    OT_TRY(ot_rematerialise_find_skips(g, x->kind, all, OT_REMAT_MAX, &found));
    for (uint32_t k = 0; k < found && *n < x->most && all[k].bytes >= x->least; k++)
        if (is_held(x->held_by, all[k].value)) picked[(*n)++] = all[k].value;
    return OT_OK;
}

static ot_status make_skips(ot_model *m, const skips *x, uint32_t *n)
{
    const ot_graph *planned = x->planned ? x->planned : m->graph;
    ot_id picked[OT_REMAT_MAX];
    OT_TRY(pick_skips(planned, x, picked, n));
    return *n > 0 ? ot_rematerialise_skips(m->graph, planned, x->kind, picked, *n) : OT_OK;
}

static bool is_one(ot_variant_kind kind)
{
    return kind == OT_VARIANT_AGAIN_ONE || kind == OT_VARIANT_SKIPS_ONE ||
           kind == OT_VARIANT_POOLED_ONE || kind == OT_VARIANT_WAITING_ONE;
}

static bool is_waiting(ot_variant_kind kind)
{
    return kind == OT_VARIANT_WAITING || kind == OT_VARIANT_WAITING_ONE;
}

static bool is_pooled(ot_variant_kind kind)
{
    return kind == OT_VARIANT_POOLED || kind == OT_VARIANT_POOLED_ONE;
}

static bool is_skips(ot_variant_kind kind)
{
    return kind == OT_VARIANT_SKIPS || kind == OT_VARIANT_SKIPS_ONE;
}

static skips skips_of(const ot_variant_group *x, ot_variant_kind kind)
{
    const ot_variant *plain = &x->v[OT_VARIANT_PLAIN];
    return (skips){.kind = is_pooled(kind)    ? OT_REMAT_POOLED
                           : is_waiting(kind) ? OT_REMAT_DEEP
                                              : OT_REMAT_WAITS,
                   .planned = x->is_dynamic ? plain->design->graph : NULL,
                   .least = (int64_t)(LARGE * (double)plain->c->own->untiled.peak_bytes),
                   .most = is_one(kind) ? 1 : OT_REMAT_MAX,
                   .held_by = is_waiting(kind) ? &x->last : NULL};
}

/* The kind's edits may find something in g: large graphs are not copied for nothing. */
static ot_status may_edit(const ot_variant_group *x, ot_variant_kind kind, const ot_graph *g,
                          bool *any)
{
    ot_id picked[OT_REMAT_MAX];
    uint32_t n = 0;
    if (kind == OT_VARIANT_WRAPS)
        *any = ot_wraps_any(g);
    else if (!is_pooled(kind) && !is_skips(kind) && !is_waiting(kind))
        *any = ot_decompose_any(g, kind != OT_VARIANT_NO_SOFTMAX);
    else {
        const skips how = skips_of(x, kind);
        OT_TRY(pick_skips(g, &how, picked, &n));
        *any = n > 0;
    }
    return OT_OK;
}

/* Make the kind's edits in m, a copy of the plain variant's graph; *n: of how many things. */
static ot_status edit(const ot_variant_group *x, ot_variant_kind kind, ot_model *m, uint32_t *n)
{
    const skips how = skips_of(x, kind);
    uint32_t norms;
    *n = 0;
    if (kind == OT_VARIANT_WRAPS) return ot_move_wraps(m->graph, n);
    if (is_pooled(kind)) return make_skips(m, &how, n);
    /* where values of the whole graph have one block that is placed before it runs */
    if (is_skips(kind) && !ot_runtime_places_all(x->r->target->runtime)) return OT_OK;
    if (is_skips(kind) || is_waiting(kind)) {
        OT_TRY(make_skips(m, &how, n));
        return *n > 0 ? ot_decompose_norms(m->graph, true, &norms) : OT_OK;
    }
    OT_TRY(ot_decompose_norms(m->graph, kind != OT_VARIANT_NO_SOFTMAX, &norms));
    *n = norms;
    if (kind == OT_VARIANT_AGAIN || kind == OT_VARIANT_AGAIN_ONE)
        OT_TRY(make_again(m, how.least, how.most, n));
    return OT_OK;
}

/* With dynamic shapes: values that wait are made again in the file's graph. */
static ot_status make_dynamic_waiting(ot_variant_group *x, ot_variant *v)
{
    const skips how = skips_of(x, v->kind);
    uint32_t n;
    OT_TRY(copy_of(x->v[OT_VARIANT_PLAIN].model, x->r->diag, &v->model));
    OT_TRY(make_skips(v->model, &how, &n));
    if (n > 0) return ot_sizes_bind(x->r, v);
    ot_model_free(v->model);
    v->model = NULL;
    return OT_OK;
}

/* With dynamic shapes: the normalisations that are such at every size, decomposed in the file's
 * graph, and that at its sizes. */
static ot_status make_dynamic(ot_variant_group *x, ot_variant *v)
{
    const ot_variant *plain = &x->v[OT_VARIANT_PLAIN];
    ot_norm *norms;
    uint32_t n;
    if (is_waiting(v->kind)) return x->r->sizes.n_ranges > 0 ? OT_OK : make_dynamic_waiting(x, v);
    if (v->kind != OT_VARIANT_DECOMPOSED || x->r->sizes.n_ranges > 0) return OT_OK;
    OT_TRY(ot_decompose_find_dynamic(plain->design->graph, plain->model->graph, plain->model->arena,
                                     &norms, &n));
    if (n == 0) return OT_OK;
    OT_TRY(copy_of(plain->model, x->r->diag, &v->model));
    OT_TRY(ot_decompose_these(v->model->graph, norms, n));
    return ot_sizes_bind(x->r, v);
}

ot_status ot_group_make(ot_variant_group *x, ot_variant_kind kind)
{
    ot_variant *v = &x->v[kind], *plain = &x->v[OT_VARIANT_PLAIN];
    const ot_target *t = x->r->target;
    uint32_t n;
    if (v->is_made) return OT_OK;
    v->is_made = true;
    const bool exact = kind == OT_VARIANT_WRAPS;
    if ((t->bit_exact && !exact) || plain->model->graph->n_nodes == 0) return OT_OK;
    if (x->is_dynamic) return make_dynamic(x, v);
    if (!exact && differs_decomposed(plain->model->graph, t->runtime->bit)) return OT_OK;
    bool any;
    OT_TRY(may_edit(x, kind, plain->model->graph, &any));
    if (!any) return OT_OK;
    OT_TRY(copy_of(plain->model, x->r->diag, &v->model));
    OT_TRY(edit(x, kind, v->model, &n));
    if (n > 0) return OT_OK;
    ot_model_free(v->model);
    v->model = NULL;
    return OT_OK;
}

/* A region of the set reduces node id in parts. */
static bool in_parts(const ot_region_set *s, ot_id id)
{
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_region *r = &s->all[k];
        for (uint32_t i = 0; i < r->n_nodes; i++)
            for (uint32_t d = 0; r->nodes[i].node == id && d < r->n_dims; d++)
                if (r->nodes[i].lead_axis[d] == OT_AX_SUM) return true;
    }
    return false;
}

bool ot_variant_softmax_idle(const ot_variant *v)
{
    const ot_model *m = v->model;
    bool any = false;
    for (uint32_t k = 0; k < m->n_decomposed; k++) {
        const ot_id max = m->decomposed[k].parts[0];
        if (m->graph->nodes[max].op != OT_OP_ReduceMax) continue;
        any = true;
        if (in_parts(&v->last.set, max)) return false;
    }
    return any;
}
