/* Packed weights by what they were made of: a list of the session, newest first, searched when
 * schedules are made. */
#include "packed_weights.h"

#include "session.h"

void *ot_packed_find(const ot_session *s, const void *source, uint64_t form)
{
    for (const ot_packed *k = s->packed; k; k = k->next)
        if (k->source == source && k->form == form) return k->data;
    return NULL;
}

ot_status ot_packed_keep(ot_session *s, const void *source, uint64_t form, void *data,
                         void (*release)(void *))
{
    return ot_packed_later(s, source, form, data, release, NULL, NULL);
}

ot_status ot_packed_later(ot_session *s, const void *source, uint64_t form, void *data,
                          void (*release)(void *), ot_packed_fill fill, const void *how)
{
    ot_packed *k = OT_NEW(s->a, ot_packed);
    if (!k) {
        release(data);
        return ot_fail_nomem(s->d);
    }
    *k = (ot_packed){s->packed, source, form, data, release, fill, how};
    s->packed = k;
    return OT_OK;
}

void ot_packed_free(ot_packed *list)
{
    for (; list; list = list->next) list->free(list->data);
}
