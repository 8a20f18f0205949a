/* Names that others have uses for are these only where the header is asked for. */
#include_next <unistd.h>

#ifndef OT_BASE_PORT_UNISTD_H
#define OT_BASE_PORT_UNISTD_H

#ifndef OT_PORT_ITSELF
#define access ot_port_access
#endif
#define OT_PORT_PIECE ((size_t)1 << 30) /* bytes of one call */

static inline ssize_t read(int fd, void *bytes, size_t n)
{
    return _read(fd, bytes, (unsigned)(n < OT_PORT_PIECE ? n : OT_PORT_PIECE));
}

static inline ssize_t write(int fd, const void *bytes, size_t n)
{
    return _write(fd, bytes, (unsigned)(n < OT_PORT_PIECE ? n : OT_PORT_PIECE));
}

#endif
