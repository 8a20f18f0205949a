/* Writing a model: to a file (with a data file beside it when needed), or to memory.
 *
 *   build message -> plan the data file -> measure -> write both to temporary files -> rename both
 *
 * The data file has a name by its contents and is renamed first: a reader that finds a model finds
 * its data, whoever else writes the same model and wherever that fails. Both files are complete and
 * on disk before either becomes visible. Data that a replaced model had stays: another model may
 * have it, too.
 */
#include "export.h"

#include <limits.h>
#include <sys/stat.h>

#define MESSAGE_MAX ((uint64_t)INT32_MAX) /* protobuf's limit: 2 GiB - 1 */

/* What will be written. */
typedef struct job {
    ot_exporter ex;
    const Onnx__ModelProto *message;
    ot_store *store; /* NULL: no tensor is replaced */
    ot_pb_writer writer;
    uint64_t size; /* of the message */
    bool lends;    /* contents that were lent stay where they are */
} job;

static ot_status measure(job *j)
{
    j->writer.subst = j->store ? ot_store_subst : NULL;
    j->writer.ctx = j->store;
    return ot_pb_measure(&j->writer, &j->message->base, &j->size) ? OT_OK : ot_fail_nomem(j->ex.d);
}

/* Fill everything but the arena. base: what the data file is called after; to_file: one can be
 * written where the model merely does better with it. */
static ot_status prepare(job *j, const ot_model *m, const char *base, bool to_file)
{
    j->ex.m = m;
    j->ex.d = m->diag;
    j->ex.src = m->source;
    j->writer.a = j->ex.a;
    j->ex.raised = j->ex.src && m->opset != j->ex.src->opset && ot_export_changed(&j->ex);
    OT_TRY(ot_export_model(&j->ex, &j->message));
    if (m->operators == OT_OPERATORS_WHOLE) {
        OT_TRY(ot_export_operator(&j->ex, j->message, &j->message));
        return measure(j);
    }
    if (m->operators != OT_OPERATORS_NONE) OT_TRY(ot_export_parts(&j->ex, j->message, &j->message));
    const bool apart = m->data_file && to_file;
    const bool inside = !m->has_external && j->ex.src && j->ex.src->is_lent && !j->lends;
    if (m->has_external || apart || inside)
        OT_TRY(ot_store_plan(&j->ex, &j->message->base, inside && !apart ? NULL : base, apart,
                             &j->store));
    OT_TRY(measure(j));
    if (j->size <= MESSAGE_MAX) return OT_OK;
    OT_TRY(ot_store_plan(&j->ex, &j->message->base, base, true, &j->store));
    OT_TRY(measure(j));
    if (j->size <= MESSAGE_MAX) return OT_OK;
    return ot_fail(m->diag, OT_E_INPUT,
                   "the model would pass 2 GiB even with its weights in a data file");
}

/* ---- files ---- */

/* Is what `path` names one of the files the input's weights are mapped from? */
static bool is_input_data(const ot_source *s, const char *path)
{
    struct stat st;
    if (!s || !s->maps || stat(path, &st) != 0) return false;
    for (const ot_mapping *map = s->maps; map; map = map->next)
        if (map->device == st.st_dev && map->inode == st.st_ino) return true;
    return false;
}

static ot_status check_target(const job *j, const char *path)
{
    if (!is_input_data(j->ex.src, path)) return OT_OK;
    return ot_fail(
        j->ex.d, OT_E_INPUT,
        "writing '%s' would destroy external data of the input model; choose another name", path);
}

static ot_status write_data(job *j, const char *path, ot_out *o)
{
    struct stat st; /* a link that someone put there could point anywhere */
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return ot_fail(j->ex.d, OT_E_INPUT,
                       "cannot put external data into '%s': it is no regular file", path);
    OT_TRY(check_target(j, path));
    OT_TRY(ot_out_open(o, path, j->ex.a, j->ex.d));
    ot_store_write(j->store, &o->sink);
    return ot_out_seal(o);
}

static ot_status write_files(job *j, ot_out *model, ot_out *data)
{
    if (ot_store_has_data(j->store)) {
        if (model->direct)
            return ot_fail(j->ex.d, OT_E_INPUT,
                           "cannot write to '%s': the model needs a file for its external data "
                           "beside it, so the "
                           "output must be a regular file",
                           model->sink.path);
        const char *slash = strrchr(model->path, '/');
        char *path = ot_format(j->ex.a, "%.*s%s", slash ? (int)(slash + 1 - model->path) : 0,
                               model->path, ot_store_location(j->store));
        if (!path) return ot_fail_nomem(j->ex.d);
        if (!ot_store_is_in(j->store, path)) OT_TRY(write_data(j, path, data));
    }
    ot_pb_emit(&j->writer, &j->message->base, &model->sink);
    OT_TRY(ot_out_seal(model));
    if (model->sink.total != j->size) OT_BUG("a model was not written as measured");
    return OT_OK;
}

/* Both files are written; they get their names if what they hold is true. */
static ot_status publish(const ot_model *m, ot_out *model, ot_out *data)
{
    OT_TRY(ot_import_check(m, OT_OK, m->diag));
    OT_TRY(ot_out_publish(data));
    return ot_out_publish(model);
}

static ot_status export_file(job *j, const ot_model *m, const char *path)
{
    ot_out model, data = {.dir_fd = -1};
    OT_TRY(ot_out_open(&model, path, j->ex.a, m->diag));
    const char *slash = strrchr(model.path, '/');
    ot_status st = prepare(j, m, slash ? slash + 1 : model.path, !model.direct);
    if (st == OT_OK) st = check_target(j, model.path);
    if (st == OT_OK) st = write_files(j, &model, &data);
    st = st == OT_OK ? publish(m, &model, &data) : ot_import_check(m, st, m->diag);
    ot_out_close(&data);
    ot_out_close(&model);
    return st;
}

ot_status ot_export_file(const ot_model *m, const char *path)
{
    job j = {.ex = {.a = ot_arena_new()}};
    if (!j.ex.a) return ot_fail_nomem(m->diag);
    ot_status st = export_file(&j, m, path);
    ot_arena_free(j.ex.a);
    return st;
}

/* ---- memory ---- */

ot_status ot_export_bodies(const ot_model *m, ot_body_visit visit, void *ctx)
{
    job j = {.ex = {.a = ot_arena_new(), .visit = visit, .visit_ctx = ctx}};
    if (!j.ex.a) return ot_fail_nomem(m->diag);
    ot_status st = prepare(&j, m, "data", false);
    ot_arena_free(j.ex.a);
    return st;
}

static ot_status export_memory(job *j, const ot_model *m, void **bytes, size_t *n)
{
    OT_TRY(prepare(j, m, "data", false));
    if (ot_store_has_data(j->store))
        return ot_fail(
            m->diag, OT_E_INPUT,
            "the model needs a file for its external data; it cannot be written to memory");
    char *block = malloc(j->size ? (size_t)j->size : 1);
    if (!block) return ot_fail_nomem(m->diag);
    ot_sink s = {.d = m->diag, .path = "memory", .fd = -1, .buffer = block, .cap = (size_t)j->size};
    ot_pb_emit(&j->writer, &j->message->base, &s);
    if (s.total != j->size) OT_BUG("a model was not written as measured");
    ot_status st = ot_import_check(m, OT_OK, m->diag);
    if (st != OT_OK) {
        free(block);
        return st;
    }
    *bytes = block;
    *n = (size_t)j->size;
    return OT_OK;
}

static ot_status to_memory(const ot_model *m, bool lends, void **bytes, size_t *n)
{
    job j = {.ex = {.a = ot_arena_new()}, .lends = lends};
    if (!j.ex.a) return ot_fail_nomem(m->diag);
    ot_status st = export_memory(&j, m, bytes, n);
    ot_arena_free(j.ex.a);
    return st;
}

ot_status ot_export_memory(const ot_model *m, void **bytes, size_t *n)
{
    return to_memory(m, false, bytes, n);
}

ot_status ot_export_lent(const ot_model *m, void **bytes, size_t *n)
{
    return to_memory(m, true, bytes, n);
}
