/* Sessions that share a model, so that threads run it at the same time: each has its own arrays,
 * memory for values, and threads; weights are held once.
 *
 *   loaded session --share--> session  --bind, run--> ...     thread 1
 *          |     `--share--> session  --bind, run--> ...      thread 2
 *          `-- owns the model, which stays until the last of them is freed
 */
#include "session_handle.h"

static onnx_tile_status refuse(onnx_tile_session *of, const char *why)
{
    return (onnx_tile_status)ot_fail(&of->diag, OT_E_USAGE, "%s", why);
}

onnx_tile_status onnx_tile_session_share(onnx_tile_session *of, onnx_tile_session **out)
{
    onnx_tile_session *s;
    if (!out) return ONNX_TILE_USAGE;
    *out = NULL;
    if (!of) return ONNX_TILE_USAGE;
    LOCKED(of);
    if (!of->a) return refuse(of, "no model is loaded");
    if (of->is_lent) return refuse(of, "the model's constants were lent: it is not shared");
    if (of->of)
        return refuse(of, "the session shares a model itself: share the one that loaded it");
    const ot_status ready = ot_api_session_for_all(of);
    if (ready != OT_OK) return (onnx_tile_status)ready;
    if (onnx_tile_session_create(&s) != ONNX_TILE_OK)
        return (onnx_tile_status)ot_fail_nomem(&of->diag);
    s->of = of;
    s->threads = of->threads;
    s->run_tasks = of->run_tasks;
    s->run_tasks_of = of->run_tasks_of;
    s->a = ot_arena_new();
    atomic_fetch_add(&of->users, 1);
    ot_status st = s->a ? ot_api_open_model(s) : ot_fail_nomem(&s->diag);
    if (st != OT_OK) {
        of->diag = s->diag;
        onnx_tile_session_free(s);
        return (onnx_tile_status)st;
    }
    *out = s;
    return ONNX_TILE_OK;
}

/* ---- long runs ---- */

onnx_tile_status onnx_tile_session_set_timeout(onnx_tile_session *s, double seconds)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    const char *wrong = ot_control_set_timeout(&s->control, seconds);
    return wrong ? refuse(s, wrong) : ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_session_set_progress(onnx_tile_session *s, onnx_tile_progress *tell,
                                                void *of)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    s->control.tell = tell;
    s->control.of = of;
    return ONNX_TILE_OK;
}

void onnx_tile_session_cancel(onnx_tile_session *s)
{
    if (s) atomic_store(&s->control.stop, 1);
}
