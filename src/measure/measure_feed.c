/* Arrays for the inputs of a model: read from files, made up, or those of another model with the
 * same inputs.
 *
 *   graph inputs   x           y       w (initializer, overridable)
 *   --input        F.npy       -       G.npy
 *   arrays         as read     random  as read            shapes: x, y, w as their arrays have them
 *                                      overrides: w
 *
 * The shapes of the arrays bind the model's dynamic dimensions, so that memory can be planned.
 */
#include "measure.h"

#include "base/half_float.h"
#include "engine/core/session.h"
#include "ops/guessed_size.h"

typedef struct work {
    const ot_graph *g;
    const ot_feed_request *r;
    ot_diag *d;
    ot_feed *f;
    ot_guessed_sizes sizes;
} work;

/* ---- given ---- */

/* "'a', 'b'" for a message; only as many names as fit. */
static const char *input_names(const ot_graph *g, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < g->n_inputs && at < size; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (v->init && !v->overridable) continue;
        int n = snprintf(buf + at, size - at, "%s'%s'", at ? ", " : "", v->name);
        at += n < 0 ? 0 : (size_t)n;
    }
    if (at >= size) memcpy(buf + size - 4, "...", 4);
    return buf;
}

/* The graph input of that name. */
static ot_status find_input(const work *w, const char *name, uint32_t *out)
{
    char names[600];
    for (uint32_t k = 0; k < w->g->n_inputs; k++) {
        const ot_value *v = &w->g->values[w->g->inputs[k]];
        if (strcmp(v->name, name) != 0) continue;
        *out = k;
        if (!v->init || v->overridable) return OT_OK;
        return ot_fail(
            w->d, OT_E_USAGE,
            "--input %.200s: this is an initializer, which cannot be given before IR version 4",
            name);
    }
    return ot_fail(w->d, OT_E_USAGE,
                   "--input %.200s: the model has no input of that name; it has %s", name,
                   *input_names(w->g, names, sizeof names) ? names : "none");
}

/* What the user binds the input to; NULL: nothing. */
static const ot_shape_binding *binding_of(const ot_shape_binding *all, size_t n, const char *name)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(all[k].input, name) == 0) return &all[k];
    return NULL;
}

static const ot_shape_binding *shape_of(const ot_feed_request *r, const char *name)
{
    return binding_of(r->shapes, r->n_shapes, name);
}

/* Does the array of `file` suit the input? */
static ot_status check_given(const work *w, const ot_value *v, const ot_nd *a, const char *file)
{
    char takes[400], has[400];
    bool fits = v->rank < 0 || v->rank == (int32_t)a->rank;
    if (!v->is_tensor)
        return ot_fail(w->d, OT_E_INPUT, "input '%.200s' is no tensor: it cannot be given",
                       v->name);
    if (v->dtype != OT_DT_UNKNOWN && v->dtype != a->dtype)
        return ot_fail(w->d, OT_E_INPUT, "input '%.200s' is %s, but '%.300s' holds %s", v->name,
                       ot_dtype_name(v->dtype), file, ot_dtype_name(a->dtype));
    const ot_shape_binding *asked = shape_of(w->r, v->name);
    bool replace = asked && asked->replace && asked->rank == a->rank &&
                   (uint32_t)v->rank == a->rank;
    int64_t dims[OT_RANK_MAX];
    for (int32_t k = 0; k < v->rank; k++) {
        dims[k] = v->dims[k] != OT_DIM_UNKNOWN && replace ? asked->dims[k] : v->dims[k];
        fits = fits && (dims[k] == OT_DIM_UNKNOWN || dims[k] == a->dims[k]);
    }
    if (fits) return OT_OK;
    return ot_fail(w->d, OT_E_INPUT, "input '%.200s' has shape %s, but '%.300s' has %s", v->name,
                   ot_dims_text(v->rank, dims, takes, sizeof takes), file,
                   ot_dims_text((int32_t)a->rank, a->dims, has, sizeof has));
}

/* Type and dimensions of a raw file: what the model and --shape say of its input. */
static ot_status raw_form(const work *w, const ot_value *v, ot_nd *out)
{
    const ot_shape_binding *b = shape_of(w->r, v->name);
    const int64_t *dims = b ? b->dims : v->dims;
    const int64_t rank = b ? (int64_t)b->rank : v->is_tensor ? v->rank : -1;
    bool known = rank >= 0 && v->dtype != OT_DT_UNKNOWN;
    for (int64_t k = 0; k < rank && known; k++) known = dims[k] != OT_DIM_UNKNOWN;
    if (!known)
        return ot_fail(w->d, OT_E_USAGE,
                       "--input %.200s: a raw file has no shape of its own: give --shape "
                       "%.200s=D,D,...",
                       v->name, v->name);
    memset(out, 0, sizeof *out);
    ot_nd_set_dense(out, v->dtype, (uint32_t)rank, dims);
    return OT_OK;
}

/* The array of a file: mapped where that is asked for, and the model's input. */
static ot_status open_given(const work *w, const ot_value *v, uint32_t at, const char *path)
{
    ot_nd *a = &w->f->arrays[at], raw;
    ot_array_in *in = &w->f->files[at];
    const bool is_raw = ot_path_is_raw(path);
    if (!is_raw && (!w->r->maps || v->init)) return ot_npy_read(path, w->d, a);
    if (is_raw) OT_TRY(raw_form(w, v, &raw));
    OT_TRY(ot_array_in_open(in, path, is_raw ? &raw : NULL, w->r->maps && !v->init, w->d));
    *a = in->array;
    in->array.block = NULL; /* the feed's array has it now */
    return OT_OK;
}

static ot_status read_given(const work *w)
{
    for (size_t k = 0; k < w->r->n_inputs; k++) {
        const ot_run_input *in = &w->r->inputs[k];
        uint32_t at = 0;
        OT_TRY(find_input(w, in->name, &at));
        const ot_value *v = &w->g->values[w->g->inputs[at]];
        ot_nd *a = &w->f->arrays[at];
        if (a->data) return ot_fail(w->d, OT_E_USAGE, "--input %.200s: given twice", in->name);
        OT_TRY(open_given(w, v, at, in->file));
        OT_TRY(check_given(w, v, a, in->file));
        if (v->init) w->f->overrides[w->f->n_overrides++] = (ot_override){v->name, *a};
    }
    return OT_OK;
}

/* ---- made up ---- */

/* Floats from 0 to below 1; integers 0 or 1, which most index inputs accept; booleans true. */
static void fill_random(ot_nd *a, uint64_t state)
{
    int64_t n = 0;
    size_t size = ot_dtype_bytes(a->dtype);
    if (!ot_nd_elems(a, &n)) return;
    for (int64_t k = 0; k < n; k++) {
        uint64_t bits = ot_next_random(&state);
        uint64_t one = bits & 1;
        float f = (float)(bits >> 40) * 0x1p-24f;
        double d = (double)(bits >> 11) * 0x1p-53;
        uint16_t h = a->dtype == OT_F16 ? ot_f32_to_f16(f) : ot_f32_to_bf16(f);
        const void *from = &one; /* little-endian: the low bytes */
        if (a->dtype == OT_BOOL) one = 1;
        if (a->dtype == OT_F32) from = &f;
        if (a->dtype == OT_F64) from = &d;
        if (a->dtype == OT_F16 || a->dtype == OT_BF16) from = &h;
        memcpy((char *)a->data + (size_t)k * size, from, size);
    }
}

/* Dims of an input that is not given: --shape, else what the model states, else the size that is
 * guessed for all inputs together; 1 where none fits. */
static ot_status choose_dims(const work *w, const ot_value *v, int64_t *dims, uint32_t *rank)
{
    const ot_shape_binding *b = binding_of(w->sizes.all, w->sizes.n, v->name);
    if (!v->is_tensor || ot_dtype_bytes(v->dtype) == 0 || ot_dtype_bytes(v->dtype) > 8)
        return ot_fail(
            w->d, OT_E_INPUT,
            "input '%.200s' is %s, for which nothing can be made up: give it with --input", v->name,
            v->is_tensor ? ot_dtype_name(v->dtype) : "no tensor");
    if (b) {
        *rank = b->rank;
        memcpy(dims, b->dims, b->rank * sizeof *dims);
        return OT_OK;
    }
    if (v->rank < 0)
        return ot_fail(w->d, OT_E_INPUT,
                       "input '%.200s' has no known rank: give it with --input, or --shape",
                       v->name);
    *rank = (uint32_t)v->rank;
    for (int32_t k = 0; k < v->rank; k++) dims[k] = v->dims[k] == OT_DIM_UNKNOWN ? 1 : v->dims[k];
    return OT_OK;
}

/* Sizes for all inputs: of the arrays that are there, asked for, or guessed. */
static ot_status choose_sizes(work *w, ot_arena *a)
{
    const ot_graph *g = w->g;
    size_t n = 0;
    ot_shape_binding *given = OT_NEW_N(a, ot_shape_binding, w->r->n_shapes + g->n_inputs + 1u);
    if (!given) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        const ot_nd *x = &w->f->arrays[k];
        if (!v->init && x->data)
            given[n++] = (ot_shape_binding){.input = v->name, .rank = x->rank, .dims = x->dims};
    }
    for (size_t k = 0; k < w->r->n_shapes; k++)
        if (!binding_of(given, n, w->r->shapes[k].input)) given[n++] = w->r->shapes[k];
    OT_TRY(ot_guess_sizes(g->model, given, n, NULL, a, &w->sizes));
    w->f->guessed = w->sizes.all + n;
    w->f->n_guessed = w->sizes.n - n;
    return OT_OK;
}

static ot_status make_up(const work *w)
{
    for (uint32_t k = 0; k < w->g->n_inputs; k++) {
        const ot_value *v = &w->g->values[w->g->inputs[k]];
        int64_t dims[OT_RANK_MAX];
        uint32_t rank = 0;
        if (v->init || w->f->arrays[k].data) continue;
        OT_TRY(choose_dims(w, v, dims, &rank));
        OT_TRY(ot_nd_new(&w->f->arrays[k], v->dtype, rank, dims, w->d));
        fill_random(&w->f->arrays[k], w->r->seed ^ (uint64_t)k << 32);
    }
    return OT_OK;
}

/* ---- feeds ---- */

static ot_status new_tables(ot_feed *f, const ot_graph *g, size_t n_shapes, size_t n_overrides,
                            ot_arena *a, ot_diag *d)
{
    *f = (ot_feed){.arrays = OT_NEW_N(a, ot_nd, g->n_inputs + 1u),
                   .files = OT_NEW_N(a, ot_array_in, g->n_inputs + 1u),
                   .shapes = OT_NEW_N(a, ot_shape_binding, g->n_inputs + n_shapes + 1),
                   .overrides = ot_alloc_n(a, n_overrides + 1, sizeof *f->overrides)};
    if (!f->arrays || !f->files || !f->shapes || !f->overrides) return ot_fail_nomem(d);
    f->n = g->n_inputs;
    return OT_OK;
}

/* Every array binds its input's dimensions, and replaces them where r (maybe NULL) asks for that.
 */
static void bind_arrays(const ot_graph *g, const ot_feed_request *r, ot_feed *f)
{
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        const ot_nd *a = &f->arrays[k];
        const ot_shape_binding *asked = r ? shape_of(r, v->name) : NULL;
        if (!v->init && a->data)
            f->shapes[f->n_shapes++] = (ot_shape_binding){v->name, a->rank, a->dims,
                                                          asked && asked->replace, NULL};
    }
}

/* One of the first n shapes is the same. */
static bool repeats(const ot_feed *f, size_t n, const ot_shape_binding *b)
{
    for (size_t k = 0; k < n; k++) {
        const ot_shape_binding *x = &f->shapes[k];
        if (strcmp(x->input, b->input) == 0 && x->rank == b->rank &&
            memcmp(x->dims, b->dims, b->rank * sizeof *b->dims) == 0)
            return true;
    }
    return false;
}

ot_status ot_feed_new(const ot_graph *g, const ot_feed_request *r, ot_arena *a, ot_diag *d,
                      ot_feed *out)
{
    work w = {.g = g, .r = r, .d = d, .f = out};
    OT_TRY(new_tables(out, g, r->n_shapes, r->n_inputs, a, d));
    OT_TRY(read_given(&w));
    OT_TRY(choose_sizes(&w, a));
    OT_TRY(make_up(&w));
    bind_arrays(g, r, out);
    /* One of no input, or another one than an array's, is refused with the rest. */
    const size_t n_arrays = out->n_shapes;
    for (size_t k = 0; k < r->n_shapes; k++)
        if (!repeats(out, n_arrays, &r->shapes[k])) out->shapes[out->n_shapes++] = r->shapes[k];
    return OT_OK;
}

static ot_status check_adopted(const ot_value *v, const ot_nd *a, ot_diag *d)
{
    char takes[400], has[400];
    bool fits = v->dtype == OT_DT_UNKNOWN || v->dtype == a->dtype;
    fits = fits && (v->rank < 0 || v->rank == (int32_t)a->rank);
    for (int32_t k = 0; k < v->rank && fits; k++)
        fits = v->dims[k] == OT_DIM_UNKNOWN || v->dims[k] == a->dims[k];
    if (fits) return OT_OK;
    return ot_fail(
        d, OT_E_INPUT, "input '%.200s' of the tiled model is %s %s, but the original's array %s %s",
        v->name, ot_dtype_name(v->dtype), ot_dims_text(v->rank, v->dims, takes, sizeof takes),
        ot_dtype_name(a->dtype), ot_dims_text((int32_t)a->rank, a->dims, has, sizeof has));
}

static const ot_nd *array_of(const ot_graph *from, const ot_feed *f, const char *name)
{
    for (uint32_t k = 0; k < from->n_inputs; k++)
        if (strcmp(from->values[from->inputs[k]].name, name) == 0) return &f->arrays[k];
    return NULL;
}

ot_status ot_feed_adopt(const ot_graph *g, const ot_graph *from, const ot_feed *f, ot_arena *a,
                        ot_diag *d, ot_feed *out)
{
    OT_TRY(new_tables(out, g, 0, f->n_overrides, a, d));
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        const ot_nd *array = array_of(from, f, v->name);
        if (array && array->data) {
            OT_TRY(check_adopted(v, array, d));
            ot_nd_share(&out->arrays[k], array);
        } else if (!v->init)
            return ot_fail(d, OT_E_INPUT,
                           "input '%.200s' of the tiled model is none of the original's", v->name);
        if (v->init && out->arrays[k].data)
            out->overrides[out->n_overrides++] = (ot_override){v->name, out->arrays[k]};
    }
    bind_arrays(g, NULL, out);
    return OT_OK;
}

void ot_feed_say_guess(const ot_feed *f, FILE *out)
{
    char dims[400];
    if (f->n_guessed == 0) return;
    fputs("size     ", out);
    for (size_t k = 0; k < f->n_guessed; k++) {
        const ot_shape_binding *b = &f->guessed[k];
        fputs(k ? ", " : "", out);
        ot_put_shown(b->input, out);
        fprintf(out, " %s", ot_dims_text(b->rank, b->dims, dims, sizeof dims));
    }
    fputs(": none is given, --shape INPUT=D,D,... says another\n", out);
}

ot_status ot_feed_check(const ot_feed *f, ot_diag *d)
{
    for (uint32_t k = 0; k < f->n; k++) OT_TRY(ot_array_in_check(&f->files[k], d));
    return OT_OK;
}

void ot_feed_release_inputs(ot_feed *f)
{
    for (uint32_t k = 0; f->arrays && k < f->n; k++) {
        bool needed = false;
        for (size_t j = 0; j < f->n_overrides; j++)
            needed = needed ||
                     (f->arrays[k].data && f->overrides[j].array.data == f->arrays[k].data);
        if (!needed) ot_nd_release(&f->arrays[k]);
    }
}

void ot_feed_release(ot_feed *f)
{
    for (uint32_t k = 0; f->arrays && k < f->n; k++) {
        ot_nd_release(&f->arrays[k]);
        if (f->files) ot_array_in_close(&f->files[k]);
    }
    *f = (ot_feed){0};
}
