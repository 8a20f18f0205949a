/* Private to engine/session: making a session, of its own or beside another. */
#ifndef OT_ENGINE_SESSION_SESSION_MAKE_H
#define OT_ENGINE_SESSION_SESSION_MAKE_H

#include "engine/core/session.h"

/* of: NULL, or the session of m that this one is beside. */
ot_status ot_session_make(ot_model *m, const ot_session_options *o, ot_session *of, ot_diag *d,
                          ot_session **out) OT_MUST_USE;
/* s takes packed weights from `of`. */
ot_status ot_session_borrow(ot_session *s, const ot_session *of) OT_MUST_USE;
/* lent_weights.c: contents that were lent to the model (ot_import_lent) are not read any more; what
 * steps read of them is copied. When all weights are packed. */
ot_status ot_adopt_lent(ot_session *s) OT_MUST_USE;
/* What was lent at `data` is returned if nobody reads it any more and nothing is packed from it. */
void ot_return_lent(ot_session *s, const void *data);

#endif
