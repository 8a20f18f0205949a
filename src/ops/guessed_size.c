/* A size where nobody gives one: extents that such inputs usually have.
 *
 *   [N, 3, H, W]   1 x 3 x 1024 x 1024       two dynamic dimensions behind the batch: a map
 *   [N, 1, D, H, W]   1 x 1 x 128 x 128 x 128      three: a volume
 *   [N, 80, T], [N, T] of floats   1 x 80 x 4096    one: a line; of integers, tokens: 1024
 *
 * Where the model does not take them, or makes a tensor of them that nobody would wait for
 * (latents of an image are no image), smaller ones are tried, then one channel in place of three
 * where a map's channels are free, too. What is written takes every size: a guess that is far
 * off makes tiles that are too small or too large, and nothing wrong.
 */
#include "ops/guessed_size.h"

#include "ops/dim_names.h"

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
    const ot_model *m;
    const ot_shape_binding *given; /* [n_given] */
    size_t n_given;
    const char *option;
    size_t usual, channels; /* which are tried */
    ot_dim_names names;
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

static int64_t extent_of(guess *x, const ot_value *v, uint32_t d)
{
    if (!is_free(v, d)) return v->dims[d];
    const char *name = ot_dim_shared_name(v, d);
    const int64_t known = ot_dim_names_extent(&x->names, name);
    if (known != OT_DIM_UNKNOWN) return known;
    const int64_t extent = usual_extent(x, v, d);
    if (name) ot_dim_names_add(&x->names, name, extent);
    return extent;
}

/* Inputs that want a size and have none of the caller's. */
static bool is_asked(const guess *x, const ot_value *v)
{
    return !ot_binding_of(x->given, x->n_given, v) && !v->init && v->is_tensor &&
           !ot_value_is_static(v);
}

/* The caller's bindings and a guess of the others. */
static ot_status guess_all(guess *x, ot_arena *a, ot_shape_binding *bind, size_t *n)
{
    const ot_graph *g = x->m->graph;
    x->names.n = 0;
    ot_dim_names_take(&x->names, g, x->given, x->n_given);
    *n = 0;
    for (size_t k = 0; k < x->n_given; k++) bind[(*n)++] = x->given[k];
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (!is_asked(x, v)) continue;
        int64_t *dims = OT_NEW_N(a, int64_t, (uint32_t)v->rank + 1u);
        if (!dims) return ot_fail_nomem(x->m->diag);
        for (uint32_t d = 0; d < (uint32_t)v->rank; d++) dims[d] = extent_of(x, v, d);
        bind[(*n)++] = (ot_shape_binding){
            .input = v->name, .rank = (uint32_t)v->rank, .dims = dims, .option = x->option};
    }
    return OT_OK;
}

/* Whether the model takes this size, as far as its operators say, and stays within bounds. */
static ot_status is_taken(const guess *x, const ot_shape_binding *bind, size_t n, bool *taken)
{
    ot_diag aside = {0};
    ot_model *m;
    OT_TRY(ot_model_clone(x->m, &m));
    m->diag = &aside;
    const ot_status s = ot_infer_shapes(m->graph, bind, n);
    *taken = s == OT_OK && ot_largest_tensor(m->graph).bytes <= LARGEST;
    ot_model_free(m);
    return s == OT_E_NOMEM ? ot_fail_nomem(x->m->diag) : OT_OK;
}

/* Whether an input is asked for, and each that is has a rank. */
static bool can_guess(const guess *x)
{
    const ot_graph *g = x->m->graph;
    bool any = false;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (is_asked(x, v) && v->rank <= 0) return false;
        any |= is_asked(x, v);
    }
    return any;
}

ot_status ot_guess_sizes(const ot_model *m, const ot_shape_binding *given, size_t n_given,
                         const char *option, ot_arena *a, ot_guessed_sizes *out)
{
    guess x = {.m = m, .given = given, .n_given = n_given, .option = option};
    ot_shape_binding *bind = OT_NEW_N(a, ot_shape_binding, n_given + m->graph->n_inputs + 1);
    *out = (ot_guessed_sizes){.all = bind};
    if (!bind) return ot_fail_nomem(m->diag);
    if (n_given > 0) memcpy(bind, given, n_given * sizeof *bind);
    out->n = n_given;
    if (!can_guess(&x)) return OT_OK;
    OT_TRY(ot_dim_names_new(m->graph, a, &x.names));
    for (size_t k = 0; k < N_USUAL * N_CHANNELS && !out->found; k++) {
        size_t n;
        x.usual = k % N_USUAL;
        x.channels = k / N_USUAL;
        OT_TRY(guess_all(&x, a, bind, &n));
        OT_TRY(is_taken(&x, bind, n, &out->found));
        if (out->found) out->n = n;
    }
    return OT_OK;
}
