/* Weights in the forms that implementations want: packed once, shared by all schedules of a
 * session, which owns them. */
#ifndef OT_ENGINE_CORE_PACKED_WEIGHTS_H
#define OT_ENGINE_CORE_PACKED_WEIGHTS_H

#include "engine.h"

/* Write packed->data from packed->source, which it may overwrite if it is `own`: it is given
 * back next. */
struct ot_packed;
typedef ot_status (*ot_packed_fill)(ot_session *s, const struct ot_packed *packed, bool own);

typedef struct ot_packed {
    struct ot_packed *next;
    const void *source; /* contents that it was made from */
    uint64_t form;      /* hash of everything else that it depends on */
    void *data;
    void (*free)(void *data);
    ot_packed_fill fill; /* NULL: data holds what it should */
    const void *how;     /* for fill; lives as long as the session */
} ot_packed;

/* What was kept under these keys, or NULL. */
void *ot_packed_find(const ot_session *s, const void *source, uint64_t form);
/* Keep data (owned from now on, also when this fails). */
ot_status ot_packed_keep(ot_session *s, const void *source, uint64_t form, void *data,
                         void (*free)(void *)) OT_MUST_USE;
/* The same for data that is filled when all schedules of the session are made
 * (session/weight_release.c); source is a constant's contents, or what was kept before. */
ot_status ot_packed_later(ot_session *s, const void *source, uint64_t form, void *data,
                          void (*free)(void *), ot_packed_fill fill, const void *how) OT_MUST_USE;
/* All of a session's; accepts NULL. */
void ot_packed_free(ot_packed *list);

#endif
