/* --device of run and bench: the device that sessions run on, and what is told of it. */
#ifndef OT_COMMANDS_MODEL_DEVICE_H
#define OT_COMMANDS_MODEL_DEVICE_H

#include "base/json.h"
#include "engine/gpu/device_session.h"
#include "report/facts/facts.h"

typedef struct ot_model_device {
    ot_device *dev; /* NULL: the host */
    ot_device_laid laid;
    ot_backend place; /* of laid: this struct is not moved */
    bool checks;
    bool recorded;
    /* bytes per second that large uploads, downloads and copies reach; 0: not measured */
    double peak[3];
} ot_model_device;

typedef struct ot_device_request {
    const char *name; /* NULL or "cpu": none; else as ot_device_parse takes it */
    int64_t budget;   /* bytes that buffers may take; 0: all */
    /* memory of activations is filled before each run; Vulkan under its validation layer */
    bool checks;
} ot_device_request;

/* To be closed after the sessions on it. OT_E_USAGE: there is no such device, in one line. */
ot_status ot_model_device_open(const ot_device_request *r, ot_diag *d,
                               ot_model_device *out) OT_MUST_USE;
/* OT_E_SYSTEM, where it checks: something of the device was not given back (a line each on
 * stderr), or the validation layer found something. */
ot_status ot_model_device_close(ot_model_device *x, ot_diag *d) OT_MUST_USE;
/* Of ot_session_options; NULL: the host. */
const ot_backend *ot_model_device_backend(const ot_model_device *x);
/* The session's figures on the device: lines, each opened by `indent`; a JSON object "device". */
void ot_model_device_print(const ot_model_device *x, const ot_session *s, const char *indent,
                           FILE *f);
void ot_model_device_json(const ot_model_device *x, const ot_session *s, ot_json *j);
/* What the n devices, all the same one, do from now on is recorded: a trace for
 * chrome://tracing, "profile" in the JSON, reports. Measures what transfers reach before. */
ot_status ot_model_device_record(ot_model_device *x, uint32_t n, ot_diag *d) OT_MUST_USE;
/* Of n places, 2 at the most, [n] names. */
ot_status ot_model_device_trace(const ot_model_device *x, const char *const *names, uint32_t n,
                                const char *path, ot_diag *d) OT_MUST_USE;
/* What was recorded, and the session's figures, for reports; in a. side: "original", "tiled". */
ot_status ot_model_device_facts(const ot_model_device *x, const ot_session *s, const char *side,
                                ot_arena *a, ot_diag *d, ot_bench_device *out) OT_MUST_USE;

#endif
