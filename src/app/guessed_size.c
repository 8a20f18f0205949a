/* A size to plan for where nobody gives one: extents that such inputs usually have.
 *
 *   [N, 3, H, W]   1 x 3 x 1024 x 1024       two dynamic dimensions behind the batch: a map
 *   [N, 1, D, H, W]   1 x 1 x 128 x 128 x 128      three: a volume
 *   [N, 80, T], [N, T] of floats   1 x 80 x 4096    one: a line; of integers, tokens: 1024
 *
 * Where the model does not take them, or makes a tensor of them that nobody would wait for
 * (latents of an image are no image), smaller ones are tried, then one channel in place of three
 * where a map's channels are free, too. What is written takes every size: a guess that is far
 * off makes tiles that are too small or too large, and nothing wrong.
 *
 */
#include "pipeline.h"

#include "onnx/import/model_io.h"

static const struct {
    int64_t tokens, line, map, volume;
} USUAL[] = {{1024, 4096, 1024, 128}, {512, 2048, 640, 96}, {256, 1024, 512, 64},
             {128, 512, 256, 48},     {64, 256, 224, 32},   {32, 128, 128, 24},
             {16, 64, 64, 16}};
static const int64_t CHANNELS[] = {3, 1};
#define N_USUAL    (sizeof USUAL / sizeof *USUAL)
#define LARGEST    ((int64_t)512 << 20) /* bytes of one tensor */
#define N_CHANNELS (sizeof CHANNELS / sizeof *CHANNELS)

typedef struct guess {
    size_t usual, channels; /* which are tried */
    const char **names;     /* [n_names] of dynamic dimensions, and the extents that they have */
    int64_t *extents;
    size_t n_names;
} guess;

static bool is_free(const ot_value *v, uint32_t d) { return v->dims[d] == OT_DIM_UNKNOWN; }

/* Whether all that is behind the batch is free, of a map or more: then the first of it are
 * channels. */
static bool has_free_channels(const ot_value *v)
{
    for (uint32_t d = 1; d < (uint32_t)v->rank; d++)
        if (!is_free(v, d)) return false;
    return v->rank >= 4;
}

static int64_t usual_extent(const guess *x, const ot_value *v, uint32_t d)
{
    uint32_t n = 0;
    if (d == 0 && v->rank > 1) return 1;
    if (has_free_channels(v) && d == 1) return CHANNELS[x->channels];
    for (uint32_t k = v->rank > 1; k < (uint32_t)v->rank; k++) n += is_free(v, k);
    n -= has_free_channels(v);
    if (n >= 3) return USUAL[x->usual].volume;
    if (n == 2) return USUAL[x->usual].map;
    return v->dtype == OT_I64 || v->dtype == OT_I32 ? USUAL[x->usual].tokens : USUAL[x->usual].line;
}

/* The name of a dimension; NULL: none, or one that says nothing, as the batch has it as well as
 * others ("None"). */
static const char *name_of(const ot_value *v, uint32_t d)
{
    const char *name = ot_dim_name(v, d);
    for (uint32_t k = 0; name && k < (uint32_t)v->rank; k++) {
        const char *other = ot_dim_name(v, k);
        if (k != d && (k == 0 || d == 0) && other && strcmp(name, other) == 0) return NULL;
    }
    return name;
}

/* Dimensions that the file calls by one name are one. */
static int64_t extent_of(guess *x, const ot_value *v, uint32_t d)
{
    const char *name = name_of(v, d);
    const int64_t extent = usual_extent(x, v, d);
    if (!is_free(v, d)) return v->dims[d];
    for (size_t k = 0; name && k < x->n_names; k++)
        if (strcmp(x->names[k], name) == 0) return x->extents[k];
    if (name) {
        x->names[x->n_names] = name;
        x->extents[x->n_names++] = extent;
    }
    return extent;
}

/* Inputs that want a size and have none of the caller's. */
static bool is_asked(const ot_run *r, const ot_value *v)
{
    for (size_t k = 0; k < r->options.n_design; k++)
        if (strcmp(r->options.design[k].input, v->name) == 0) return false;
    return !v->init && v->is_tensor && !ot_value_is_static(v);
}

/* The caller's bindings and a guess of the others. */
static ot_status guess_all(const ot_run *r, guess *x, ot_arena *a, ot_shape_binding *bind,
                           size_t *n)
{
    const ot_graph *g = r->model->graph;
    x->n_names = 0;
    *n = 0;
    for (size_t k = 0; k < r->options.n_design; k++) bind[(*n)++] = r->options.design[k];
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (!is_asked(r, v)) continue;
        int64_t *dims = OT_NEW_N(a, int64_t, (uint32_t)v->rank + 1u);
        if (!dims) return ot_fail_nomem(r->diag);
        for (uint32_t d = 0; d < (uint32_t)v->rank; d++) dims[d] = extent_of(x, v, d);
        bind[(*n)++] = (ot_shape_binding){
            .input = v->name, .rank = (uint32_t)v->rank, .dims = dims, .option = "--design"};
    }
    return OT_OK;
}

/* Whether the model takes this size, as far as its operators say, and stays within bounds. */
static ot_status is_taken(const ot_run *r, const ot_shape_binding *bind, size_t n, bool *taken)
{
    ot_diag aside = {0};
    ot_model *m;
    OT_TRY(ot_model_clone(r->model, &m));
    m->diag = &aside;
    const ot_status s = ot_infer_shapes(m->graph, bind, n);
    *taken = s == OT_OK && ot_largest_tensor(m->graph).bytes <= LARGEST;
    ot_model_free(m);
    return s == OT_E_NOMEM ? ot_fail_nomem(r->diag) : OT_OK;
}

/* Dimensions of the inputs that are asked, or 0 where one of them has not even a rank. */
static size_t count_dims(const ot_run *r)
{
    const ot_graph *g = r->model->graph;
    size_t n = 0;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (!is_asked(r, v)) continue;
        if (v->rank <= 0) return 0;
        n += (size_t)v->rank;
    }
    return n;
}

ot_status ot_run_guess_design(ot_run *r)
{
    ot_arena *a = r->model->arena;
    const size_t n_dims = count_dims(r);
    guess x = {0};
    if (n_dims == 0) return OT_OK;
    ot_shape_binding *bind = OT_NEW_N(a, ot_shape_binding,
                                      r->options.n_design + r->model->graph->n_inputs);
    x.names = OT_NEW_N(a, const char *, n_dims);
    x.extents = OT_NEW_N(a, int64_t, n_dims);
    if (!bind || !x.names || !x.extents) return ot_fail_nomem(r->diag);
    for (size_t k = 0; k < N_USUAL * N_CHANNELS && !r->guessed; k++) {
        size_t n;
        x.usual = k % N_USUAL;
        x.channels = k / N_USUAL;
        OT_TRY(guess_all(r, &x, a, bind, &n));
        OT_TRY(is_taken(r, bind, n, &r->guessed));
        r->options.design = r->guessed ? bind : r->options.design;
        r->options.n_design = r->guessed ? n : r->options.n_design;
    }
    return OT_OK;
}
