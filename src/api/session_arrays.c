/* Arrays of sessions that are no memory of the caller's: files, and rows that come and go.
 *
 *   input    a file, mapped when it is bound; or a reader, with addresses for all rows
 *   output   a file, made before each run and there after it; or a writer
 */
#include "session_handle.h"

#include "engine/core/array_file.h"
#include "engine/core/row_window.h"
#include "engine/core/session.h"

struct ot_session_arrays {
    ot_array_in *files;     /* [n_in] path NULL: none */
    ot_row_window **reads;  /* [n_in] NULL: memory of the caller's */
    const char **paths;     /* [n_out] NULL: none */
    ot_row_window **writes; /* [n_out] of writers; NULL: none */
    /* of the run: */
    ot_array_out *made;        /* [n_made] in the order of opening */
    uint32_t *made_of;         /* [n_made] outputs */
    ot_row_window **made_rows; /* [n_made] NULL: not mapped */
    uint32_t n_made;
    ot_row_windows windows;
    ot_arena *scratch;
};

static onnx_tile_status done(ot_status s) { return (onnx_tile_status)s; }

static onnx_tile_status misuse(onnx_tile_session *s, const char *message)
{
    return done(ot_fail(&s->diag, OT_E_USAGE, "%s", message));
}

/* ---- tables ---- */

static ot_status make_tables(onnx_tile_session *s)
{
    if (s->arrays) return OT_OK;
    ot_session_arrays *x = OT_NEW(s->a, ot_session_arrays);
    if (!x) return ot_fail_nomem(&s->diag);
    *x = (ot_session_arrays){.files = OT_NEW_N(s->a, ot_array_in, s->n_in + 1u),
                             .reads = OT_NEW_N(s->a, ot_row_window *, s->n_in + 1u),
                             .paths = OT_NEW_N(s->a, const char *, s->n_out + 1u),
                             .writes = OT_NEW_N(s->a, ot_row_window *, s->n_out + 1u),
                             .made = OT_NEW_N(s->a, ot_array_out, s->n_out + 1u),
                             .made_of = OT_NEW_N(s->a, uint32_t, s->n_out + 1u),
                             .made_rows = OT_NEW_N(s->a, ot_row_window *, s->n_out + 1u)};
    x->windows.all = OT_NEW_N(s->a, ot_row_window *, s->n_in + s->n_out + 1u);
    if (!x->files || !x->reads || !x->paths || !x->writes || !x->made || !x->made_of ||
        !x->made_rows || !x->windows.all)
        return ot_fail_nomem(&s->diag);
    s->arrays = x;
    return OT_OK;
}

void ot_session_arrays_drop_input(onnx_tile_session *s, uint32_t k)
{
    ot_session_arrays *x = s->arrays;
    if (!x) return;
    ot_row_window_free(x->reads[k]);
    x->reads[k] = NULL;
    ot_array_in_close(&x->files[k]);
    x->files[k] = (ot_array_in){0};
    s->in[k] = (ot_nd){0};
}

void ot_session_arrays_drop_output(onnx_tile_session *s, uint32_t k)
{
    ot_session_arrays *x = s->arrays;
    if (!x) return;
    ot_row_window_free(x->writes[k]);
    x->writes[k] = NULL;
    x->paths[k] = NULL;
    s->places[k] = (ot_nd){0};
}

bool ot_session_arrays_has_output(const onnx_tile_session *s, uint32_t k)
{
    return s->arrays && (s->arrays->paths[k] || s->arrays->writes[k]);
}

/* ---- binding ---- */

/* Input k can be bound: NULL, or what is in the way. */
static const char *wrong_input(const onnx_tile_session *s, uint32_t k)
{
    if (k >= s->n_in) return s->a ? "the model has no such input" : "no model is loaded";
    const ot_value *v = s->inputs[k];
    if (!v->is_tensor || v->dtype == OT_DT_UNKNOWN || v->dtype == OT_STRING ||
        ot_dtype_bits(v->dtype) < 8)
        return "the input is no tensor of a type that can be bound";
    return NULL;
}

/* Output k can be bound: NULL, or what is in the way. */
static const char *wrong_output(const onnx_tile_session *s, uint32_t k)
{
    if (k >= s->n_out) return s->a ? "the model has no such output" : "no model is loaded";
    const ot_value *v = s->outputs[k];
    if (!v->is_tensor || v->is_sequence || !ot_value_is_static(v) || ot_dtype_bits(v->dtype) < 8)
        return "the output is no tensor of fixed dimensions: it cannot be bound";
    return NULL;
}

/* Type and dimensions of input k: given, or the model's own. */
static ot_status form_of(onnx_tile_session *s, uint32_t k, const int64_t *dims, uint32_t rank,
                         ot_nd *out)
{
    const ot_value *v = s->inputs[k];
    memset(out, 0, sizeof *out);
    if (!dims && !ot_value_is_static(v))
        return ot_fail(&s->diag, OT_E_USAGE, "the input has dynamic dimensions: give its dims");
    if (dims && rank > OT_RANK_MAX)
        return ot_fail(&s->diag, OT_E_USAGE, "an array has at most 16 dimensions");
    for (uint32_t j = 0; dims && j < rank; j++)
        if (dims[j] < 0) return ot_fail(&s->diag, OT_E_USAGE, "a dimension is negative");
    ot_nd_set_dense(out, v->dtype, dims ? rank : (uint32_t)v->rank, dims ? dims : v->dims);
    return OT_OK;
}

static ot_status map_input(onnx_tile_session *s, uint32_t k, const char *path, const ot_nd *raw)
{
    ot_session_arrays *x = s->arrays;
    ot_array_in *f = &x->files[k];
    const char *copy = ot_strdup(s->a, path);
    if (!copy) return ot_fail_nomem(&s->diag);
    OT_TRY(ot_array_in_open(f, copy, raw, true, &s->diag));
    if (s->inputs[k]->dtype != f->array.dtype)
        return ot_fail(&s->diag, OT_E_INPUT, "input '%.200s' is %s, but '%.300s' holds %s",
                       s->inputs[k]->name, ot_dtype_name(s->inputs[k]->dtype), path,
                       ot_dtype_name(f->array.dtype));
    if (f->view)
        OT_TRY(ot_row_window_mapped(&f->array, s->inputs[k]->name, false, &s->diag, &x->reads[k]));
    s->in[k] = f->array;
    s->in[k].block = NULL; /* the file's array has it */
    return OT_OK;
}

onnx_tile_status onnx_tile_session_map_input(onnx_tile_session *s, uint32_t k, const char *path,
                                             const int64_t *dims, uint32_t rank)
{
    ot_nd raw;
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    const char *wrong = wrong_input(s, k);
    if (wrong) return misuse(s, wrong);
    if (!path || !*path) return misuse(s, "a file needs a path");
    const bool is_raw = ot_path_is_raw(path);
    ot_status st = make_tables(s);
    if (st == OT_OK && is_raw) st = form_of(s, k, dims, rank, &raw);
    if (st != OT_OK) return done(st);
    ot_session_arrays_drop_input(s, k);
    st = map_input(s, k, path, is_raw ? &raw : NULL);
    if (st != OT_OK) ot_session_arrays_drop_input(s, k);
    return done(st);
}

onnx_tile_status onnx_tile_session_read_input(onnx_tile_session *s, uint32_t k, const int64_t *dims,
                                              uint32_t rank, uint32_t axis,
                                              onnx_tile_read_rows *read, void *of)
{
    ot_nd form;
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    const char *wrong = wrong_input(s, k);
    if (wrong) return misuse(s, wrong);
    if (!read) return misuse(s, "an input needs who reads it");
    ot_status st = make_tables(s);
    if (st == OT_OK) st = form_of(s, k, dims, rank, &form);
    if (st != OT_OK) return done(st);
    ot_session_arrays_drop_input(s, k);
    ot_row_window **w = &s->arrays->reads[k];
    st = ot_row_window_read(&form, axis, s->inputs[k]->name, (ot_row_reader){read, of}, &s->diag,
                            w);
    if (st == OT_OK) s->in[k] = *ot_row_window_array(*w);
    return done(st);
}

onnx_tile_status onnx_tile_session_map_output(onnx_tile_session *s, uint32_t k, const char *path)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    const char *wrong = wrong_output(s, k);
    if (wrong) return misuse(s, wrong);
    if (!path || !*path) return misuse(s, "a file needs a path");
    const ot_status st = make_tables(s);
    const char *copy = st == OT_OK ? ot_strdup(s->a, path) : NULL;
    if (!copy) return done(ot_fail_nomem(&s->diag));
    ot_session_arrays_drop_output(s, k);
    s->arrays->paths[k] = copy;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_session_write_output(onnx_tile_session *s, uint32_t k, uint32_t axis,
                                                onnx_tile_write_rows *write, void *of)
{
    ot_nd form = {0};
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    const char *wrong = wrong_output(s, k);
    if (wrong) return misuse(s, wrong);
    if (!write) return misuse(s, "an output needs who writes it");
    ot_status st = make_tables(s);
    if (st != OT_OK) return done(st);
    const ot_value *v = s->outputs[k];
    ot_nd_set_dense(&form, v->dtype, (uint32_t)v->rank, v->dims);
    ot_session_arrays_drop_output(s, k);
    ot_row_window **w = &s->arrays->writes[k];
    st = ot_row_window_write(&form, axis, v->name, (ot_row_writer){write, of}, &s->diag, w);
    if (st == OT_OK) s->places[k] = *ot_row_window_array(*w);
    return done(st);
}

/* ---- runs ---- */

/* A file is the place of one array, and not of one that is read meanwhile. */
static ot_status check_apart(onnx_tile_session *s, uint32_t k)
{
    const ot_session_arrays *x = s->arrays;
    for (uint32_t j = 0; j < s->n_in; j++)
        if (x->files[j].path && ot_same_file(x->paths[k], x->files[j].path))
            return ot_fail(&s->diag, OT_E_USAGE, "output '%.200s' and input '%.200s' are one file",
                           s->outputs[k]->name, s->inputs[j]->name);
    for (uint32_t j = 0; j < k; j++)
        if (x->paths[j] && ot_same_file(x->paths[k], x->paths[j]))
            return ot_fail(&s->diag, OT_E_USAGE, "outputs '%.200s' and '%.200s' are one file",
                           s->outputs[j]->name, s->outputs[k]->name);
    return OT_OK;
}

/* The file of output k; small ones, too, are mapped. */
static ot_status make_file(onnx_tile_session *s, uint32_t k)
{
    ot_session_arrays *x = s->arrays;
    const ot_value *v = s->outputs[k];
    ot_nd form = {0};
    ot_nd_set_dense(&form, v->dtype, (uint32_t)v->rank, v->dims);
    const uint32_t at = x->n_made++;
    x->made_of[at] = k;
    x->made_rows[at] = NULL;
    OT_TRY(ot_array_out_open(&x->made[at], x->paths[k], &form, x->scratch, &s->diag));
    if (!x->made[at].view) return OT_OK; /* a pipe: put after the run */
    s->places[k] = x->made[at].array;
    return ot_row_window_mapped(&x->made[at].array, v->name, true, &s->diag, &x->made_rows[at]);
}

ot_status ot_session_arrays_begin(onnx_tile_session *s)
{
    ot_session_arrays *x = s->arrays;
    if (!x) return OT_OK;
    x->windows.n = 0;
    x->windows.hold = NULL;
    x->scratch = ot_arena_new();
    if (!x->scratch) return ot_fail_nomem(&s->diag);
    for (uint32_t k = 0; k < s->n_out; k++)
        if (x->paths[k]) OT_TRY(check_apart(s, k));
    for (uint32_t k = 0; k < s->n_out; k++)
        if (x->paths[k]) OT_TRY(make_file(s, k));
    for (uint32_t k = 0; k < s->n_in; k++)
        if (x->reads[k]) x->windows.all[x->windows.n++] = x->reads[k];
    for (uint32_t k = 0; k < s->n_out; k++)
        if (x->writes[k]) x->windows.all[x->windows.n++] = x->writes[k];
    for (uint32_t k = 0; k < x->n_made; k++)
        if (x->made_rows[k]) x->windows.all[x->windows.n++] = x->made_rows[k];
    if (x->n_made > 0) x->windows.hold = &x->made[0].file.hold;
    ot_session_row_windows(s->runs, x->windows.n > 0 ? &x->windows : NULL);
    return OT_OK;
}

/* All files are on the disk before the first is visible. */
static ot_status publish(onnx_tile_session *s)
{
    ot_session_arrays *x = s->arrays;
    for (uint32_t k = 0; k < s->n_in; k++) OT_TRY(ot_array_in_check(&x->files[k], &s->diag));
    for (uint32_t k = 0; k < x->n_made; k++) {
        const ot_nd *a = &s->out[x->made_of[k]];
        if (!x->made[k].view) OT_TRY(ot_array_out_fill(&x->made[k], a, &s->diag));
        OT_TRY(ot_array_out_seal(&x->made[k], &s->diag));
    }
    for (uint32_t k = 0; k < x->n_made; k++) OT_TRY(ot_array_out_publish(&x->made[k]));
    return OT_OK;
}

ot_status ot_session_arrays_end(onnx_tile_session *s, ot_status ran)
{
    ot_session_arrays *x = s->arrays;
    if (!x) return ran;
    ot_session_row_windows(s->runs, NULL);
    if (ran == OT_OK) ran = publish(s);
    while (x->n_made > 0) {
        x->n_made--;
        ot_row_window_free(x->made_rows[x->n_made]);
        s->places[x->made_of[x->n_made]] = (ot_nd){0};
        ot_array_out_close(&x->made[x->n_made]);
    }
    ot_arena_free(x->scratch);
    x->scratch = NULL;
    return ran;
}

void ot_session_arrays_free(onnx_tile_session *s)
{
    for (uint32_t k = 0; s->arrays && k < s->n_in; k++) ot_session_arrays_drop_input(s, k);
    for (uint32_t k = 0; s->arrays && k < s->n_out; k++) ot_session_arrays_drop_output(s, k);
    s->arrays = NULL;
}
