/* Long work that can be ended from outside, and that says how far it is.
 *
 *   who begins it    use(w) ... at("run", 3, 10) ... look() ... look() --> ends ... use(before)
 *   who helps        lend(w) ... look() ... lend(before)
 *   any thread       atomic_store(w->stop, 1)
 *
 * Work looks between pieces that are short. Once a watch has ended, each further look says so.
 */
#ifndef OT_BASE_WATCH_H
#define OT_BASE_WATCH_H

#include "base.h"

#include <stdatomic.h>

typedef enum ot_watch_end { OT_WATCH_GOES_ON = 0, OT_WATCH_STOPPED, OT_WATCH_LATE } ot_watch_end;

/* `stage` (static) is done to the fraction `done`. Anything but 0 ends the work. */
typedef int ot_watch_tell(void *of, const char *stage, double done);

typedef struct ot_watch {
    const atomic_int *stop; /* not 0: it is to end; set by any thread. NULL: nobody does */
    double seconds;         /* that it may take, from use() on; 0: any */
    ot_watch_tell *tell;    /* called by the thread that uses it, now and then; NULL: nobody asks */
    void *of;
    /* the rest is watch.c's: zero at first */
    const char *stage;
    double done, width; /* of the stage, and how much of it the running piece is */
    double until, told;
    uint64_t looks;   /* by the thread that uses it */
    atomic_int ended; /* ot_watch_end */
} ot_watch;

/* From now on what this thread does is watched by w (NULL: by nobody). Returns by whom it was. */
ot_watch *ot_watch_use(ot_watch *w);
/* The same for a thread that helps: it looks, and does not tell. */
ot_watch *ot_watch_lend(ot_watch *w);
/* By whom this thread's work is watched; NULL: nobody. */
ot_watch *ot_watch_here(void);

/* How far this thread's work is: piece k of n of the stage begins. Nothing in threads that help. */
void ot_watch_at(const char *stage, double k, double n);
/* Of the running piece, k of n parts are done. */
void ot_watch_part(double k, double n);
/* From now on the two above do nothing in this thread: what it does is part of the running piece.
 * Returns whether that was so before. */
bool ot_watch_inner(bool inner);
/* Cheap to call often. OT_OK, or OT_E_SYSTEM, with a line in d, where this thread's work is to
 * end. */
ot_status ot_watch_look(ot_diag *d) OT_MUST_USE;
ot_watch_end ot_watch_ended(const ot_watch *w);

#endif
