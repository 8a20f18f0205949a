/* Arrays larger than memory: a run holds a window of their rows.
 *
 *   axis 2 of [1, 3, H, W]     rows 0            w            H
 *                              |..... gone .....|=== here ===|... not yet ...|
 *
 * An array has addresses for all of its elements, so that implementations read and write it as any
 * other; what lies there is a matter of rows along one axis:
 *
 *   a mapped file   pages come by themselves; those behind the tiles that run are given back
 *   a reader        rows are asked for before a step reads them, and forgotten behind the tiles
 *   a writer        rows are handed on when all of a row is written, in order, each once
 *
 * What a step reads is found by the addresses of its operands, whatever windows and views lie
 * between. One lock an array: tiles may run in several threads.
 */
#ifndef OT_ENGINE_CORE_ROW_WINDOW_H
#define OT_ENGINE_CORE_ROW_WINDOW_H

#include "base/signals.h"
#include "engine.h"

typedef struct ot_row_window ot_row_window;

/* Who has the rows. [first, end): rows along the axis; `rows` is dense, of the array's dimensions
 * but for that axis. Returns 0, else the run fails. Called from any thread of the session, one
 * call at a time for an array. */
typedef struct ot_row_reader {
    int (*read)(void *of, int64_t first, int64_t end, void *rows);
    void *of;
} ot_row_reader;
typedef struct ot_row_writer {
    int (*write)(void *of, int64_t first, int64_t end, const void *rows);
    void *of;
} ot_row_writer;

/* An array that lies in a mapped file: `name` is that of the model's value. The memory stays the
 * caller's. */
ot_status ot_row_window_mapped(const ot_nd *array, const char *name, bool written, ot_diag *d,
                               ot_row_window **out) OT_MUST_USE;
/* An array of the type and dimensions of *form, which has no memory: addresses are reserved.
 * OT_E_NOMEM: so many are not to be had. */
ot_status ot_row_window_read(const ot_nd *form, uint32_t axis, const char *name, ot_row_reader by,
                             ot_diag *d, ot_row_window **out) OT_MUST_USE;
ot_status ot_row_window_write(const ot_nd *form, uint32_t axis, const char *name, ot_row_writer by,
                              ot_diag *d, ot_row_window **out) OT_MUST_USE;
void ot_row_window_free(ot_row_window *w); /* accepts NULL */
/* The array, with its memory or addresses. */
const ot_nd *ot_row_window_array(const ot_row_window *w);

/* ---- of a session ---- */

typedef struct ot_row_windows {
    ot_row_window **all; /* [n] */
    uint32_t n;
    const ot_signal_hold *hold; /* a run ends when one of these signals waits; NULL: none do */
} ot_row_windows;

/* Runs from now on bind arrays of *w (ot_session_run); borrowed until they are others. NULL: none.
 */
void ot_session_row_windows(ot_session *s, const ot_row_windows *w);

/* ---- for whoever runs steps; w may be NULL ---- */

/* A run begins: nothing is there yet, nothing written. OT_E_NOMEM. `threads`: that run tiles. */
ot_status ot_row_windows_begin(const ot_row_windows *w, uint32_t threads, ot_diag *d) OT_MUST_USE;
/* Others read the output that is written at `data`: its rows stay until the run ends. */
void ot_row_windows_keep(const ot_row_windows *w, const void *data);
/* `a` is read: its rows are there when this returns, until the tile of `worker` ends; worker
 * UINT32_MAX: of no tile. Fails: OT_E_SYSTEM (the reader). */
ot_status ot_row_windows_need(const ot_row_windows *w, const ot_nd *a, uint32_t worker,
                              ot_diag *d) OT_MUST_USE;
/* All of `a`, which may be a part of an output, is written. `again`: and may be so once more. */
ot_status ot_row_windows_wrote(const ot_row_windows *w, const ot_nd *a, bool again,
                               ot_diag *d) OT_MUST_USE;
/* The worker begins a tile, and ends it. */
void ot_row_windows_enter(const ot_row_windows *w, uint32_t worker);
void ot_row_windows_leave(const ot_row_windows *w, uint32_t worker);
/* A signal waits that ends the program: OT_E_SYSTEM. */
ot_status ot_row_windows_stop(const ot_row_windows *w, ot_diag *d) OT_MUST_USE;
/* The run ends well: what writers have not been given yet is handed on. */
ot_status ot_row_windows_end(const ot_row_windows *w, ot_diag *d) OT_MUST_USE;

#endif
