/* Where bytes go: small pieces are gathered in a buffer, large ones go straight through.
 *
 * A failure sticks, so that the packer need not test every put; the caller asks once, at the flush.
 */
#include "out_file.h"

#include <errno.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 24) /* between two looks at waiting signals */

/* Read a byte of every page: where a mapped file has become shorter, zeros are there from now on
 * (base/file_view.h), which the system, that wanted to read them for us, could not know. */
static void touch(const char *bytes, size_t n)
{
    for (size_t k = 0; k < n; k += 4096) (void)*(const volatile char *)(bytes + k);
}

static void write_all(ot_sink *s, const char *bytes, size_t n)
{
    bool touched = false;
    while (n > 0 && s->status == OT_OK) {
        if (s->hold && ot_signals_wait(s->hold)) {
            s->status = ot_fail(s->d, OT_E_SYSTEM, "writing '%s' was stopped by a signal", s->path);
            return;
        }
        ssize_t done = write(s->fd, bytes, n < PIECE ? n : PIECE);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && errno == EFAULT && !touched) {
            touch(bytes, n);
            touched = true;
            continue;
        }
        if (done < 0) {
            s->status = ot_fail(s->d, OT_E_SYSTEM, "cannot write '%s': %s", s->path,
                                strerror(errno));
            return;
        }
        bytes += done;
        n -= (size_t)done;
    }
}

void ot_sink_put(ot_sink *s, const void *bytes, size_t n)
{
    if (s->status != OT_OK || n == 0) return;
    s->total += n;
    if (n > s->cap - s->n) {
        if (s->fd < 0) OT_BUG("a message is larger than it was measured");
        write_all(s, s->buffer, s->n);
        s->n = 0;
    }
    if (n > s->cap) {
        write_all(s, bytes, n);
        return;
    }
    memcpy(s->buffer + s->n, bytes, n);
    s->n += n;
}

ot_status ot_sink_flush(ot_sink *s)
{
    if (s->fd >= 0) {
        write_all(s, s->buffer, s->n);
        s->n = 0;
    }
    return s->status;
}
