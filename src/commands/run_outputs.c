/* Files of the outputs of a run. See run_outputs.h. */
#include "run_outputs.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ---- */

static ot_status find_output(const ot_run_outputs *o, const char *name, ot_diag *d, uint32_t *out)
{
    char names[600];
    size_t at = 0;
    names[0] = '\0';
    for (uint32_t k = 0; k < o->x->n_outputs; k++) {
        const ot_value *v = ot_session_output(o->x->s, k);
        *out = k;
        if (strcmp(v->name, name) == 0) return OT_OK;
        const int n = at < sizeof names ? snprintf(names + at, sizeof names - at, "%s'%s'",
                                                   k ? ", " : "", v->name)
                                        : 0;
        at += n < 0 ? 0 : (size_t)n;
    }
    if (at >= sizeof names) memcpy(names + sizeof names - 4, "...", 4);
    return ot_fail(d, OT_E_USAGE,
                   "--output %.200s: the model has no output of that name; it has %s", name,
                   names[0] ? names : "none");
}

/* A file is the place of one array, and not of one that is read meanwhile. */
static ot_status check_apart(const ot_run_outputs *o, size_t k, ot_diag *d)
{
    const ot_run_output *f = &o->r->files[k];
    for (size_t j = 0; j < o->r->n_reads; j++)
        if (ot_same_file(f->file, o->r->reads[j]))
            return ot_fail(d, OT_E_USAGE, "--output %.200s=%.300s: this file is read", f->name,
                           f->file);
    for (size_t j = 0; j < k; j++)
        if (ot_same_file(f->file, o->r->files[j].file))
            return ot_fail(d, OT_E_USAGE, "--output %.200s=%.300s: output '%.200s' goes there, too",
                           f->name, f->file, o->r->files[j].name);
    return OT_OK;
}

static ot_status name_files(ot_run_outputs *o, ot_diag *d)
{
    for (size_t k = 0; k < o->r->n_files; k++) {
        uint32_t at = 0;
        OT_TRY(find_output(o, o->r->files[k].name, d, &at));
        OT_TRY(check_apart(o, k, d));
        o->paths[at] = o->r->files[k].file;
    }
    return OT_OK;
}

static ot_status name_in_dir(ot_run_outputs *o, ot_diag *d)
{
    o->made_dir = mkdir(o->r->dir, 0777) == 0;
    if (!o->made_dir && errno != EEXIST)
        return ot_fail(d, OT_E_SYSTEM, "cannot make folder '%.300s': %s", o->r->dir,
                       strerror(errno));
    for (uint32_t k = 0; k < o->x->n_outputs; k++) {
        if (ot_session_output(o->x->s, k)->is_sequence) continue;
        o->paths[k] = ot_format(o->a, "%s/%u.npy", o->r->dir, k);
        if (!o->paths[k]) return ot_fail_nomem(d);
    }
    return OT_OK;
}

/* ---- before the run ---- */

/* The output is large enough for a mapping to pay, and of known shape. */
static bool is_mapped(const ot_value *v)
{
    int64_t bytes;
    return v->is_tensor && !v->is_sequence && ot_value_is_static(v) &&
           ot_dtype_bits(v->dtype) >= 8 && ot_dtype_bytes(v->dtype) > 0 &&
           ot_value_bytes(v, &bytes) && bytes >= OT_MAPPED_MIN;
}

static ot_status map_outputs(ot_run_outputs *o, ot_diag *d)
{
    for (uint32_t k = 0; k < o->x->n_outputs; k++) {
        const ot_value *v = ot_session_output(o->x->s, k);
        ot_nd form = {0};
        if (!o->paths[k] || !is_mapped(v)) continue;
        ot_nd_set_dense(&form, v->dtype, (uint32_t)v->rank, v->dims);
        ot_array_out *m = &o->mapped[o->n_mapped];
        o->of[o->n_mapped++] = k;
        OT_TRY(ot_array_out_open(m, o->paths[k], &form, o->a, d));
        if (m->view) ot_measured_place(o->x, k, &m->array);
    }
    return OT_OK;
}

ot_status ot_run_outputs_open(ot_run_outputs *o, const ot_run_output_request *r, ot_measured *x,
                              ot_arena *a, ot_diag *d)
{
    *o = (ot_run_outputs){.r = r, .x = x, .a = a};
    o->paths = ot_alloc_n(a, x->n_outputs + 1u, sizeof *o->paths);
    o->mapped = OT_NEW_N(a, ot_array_out, x->n_outputs + 1u);
    o->of = OT_NEW_N(a, uint32_t, x->n_outputs + 1u);
    if (!o->paths || !o->mapped || !o->of) return ot_fail_nomem(d);
    memset(o->paths, 0, (x->n_outputs + 1u) * sizeof *o->paths);
    OT_TRY(name_files(o, d));
    if (r->dir) OT_TRY(name_in_dir(o, d));
    return map_outputs(o, d);
}

/* ---- after it ---- */

/* Where output k was written in its file; NULL: it was not. */
static ot_array_out *mapped_of(const ot_run_outputs *o, uint32_t k)
{
    for (uint32_t j = 0; j < o->n_mapped; j++)
        if (o->of[j] == k && o->mapped[j].view && o->mapped[j].array.data == o->x->out[k].data)
            return &o->mapped[j];
    return NULL;
}

static ot_status put(ot_run_outputs *o, const char *path, const ot_nd *array, ot_diag *d)
{
    if (!path) return ot_fail_nomem(d);
    return ot_array_out_put(&o->put[o->n_put++], path, array, o->a, d);
}

/* Tensors of a sequence are D/<k>-<i>.npy. */
static ot_status put_output(ot_run_outputs *o, uint32_t k, ot_diag *d)
{
    const ot_nd *a = &o->x->out[k];
    const char *path = o->paths[k];
    if (a->list && path && !o->r->dir)
        return ot_fail(d, OT_E_INPUT,
                       "output '%.200s' is a sequence of tensors, which --output-dir writes",
                       ot_session_output(o->x->s, k)->name);
    for (size_t i = 0; a->list && o->r->dir && i < a->list->n; i++)
        OT_TRY(put(o, ot_format(o->a, "%s/%u-%zu.npy", o->r->dir, k, i), &a->list->items[i], d));
    if (a->list) return OT_OK;
    if (!path && o->r->dir) path = ot_format(o->a, "%s/%u.npy", o->r->dir, k);
    return path && !mapped_of(o, k) ? put(o, path, a, d) : OT_OK;
}

static ot_status seal(ot_run_outputs *o, ot_diag *d)
{
    size_t most = 1;
    for (uint32_t k = 0; k < o->x->n_outputs; k++)
        most += o->x->out[k].list ? o->x->out[k].list->n : 1;
    o->put = OT_NEW_N(o->a, ot_array_out, most);
    if (!o->put) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < o->x->n_outputs; k++) {
        ot_array_out *m = mapped_of(o, k);
        OT_TRY(m ? ot_array_out_seal(m, d) : put_output(o, k, d));
    }
    return OT_OK;
}

/* A mapped file that was not used (its view is still there) does not appear. */
static ot_status publish(ot_run_outputs *o)
{
    for (uint32_t k = 0; k < o->n_mapped; k++)
        if (!o->mapped[k].view && !o->mapped[k].file.direct)
            OT_TRY(ot_array_out_publish(&o->mapped[k]));
    for (size_t k = 0; k < o->n_put; k++) OT_TRY(ot_array_out_publish(&o->put[k]));
    o->done = true;
    return OT_OK;
}

ot_status ot_run_outputs_write(ot_run_outputs *o, ot_diag *d)
{
    OT_TRY(seal(o, d));
    return publish(o);
}

void ot_run_outputs_close(ot_run_outputs *o)
{
    while (o->n_put > 0) ot_array_out_close(&o->put[--o->n_put]);
    while (o->n_mapped > 0) ot_array_out_close(&o->mapped[--o->n_mapped]);
    if (o->made_dir && !o->done) (void)rmdir(o->r->dir);
    o->made_dir = false;
}
