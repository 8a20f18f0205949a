/* Requests for transfers, ordered and merged before they are queued.
 *
 *   request, request, ...  --issue-->  order: priority, but nothing passes what it meets  -->
 *                          groups: ranges that touch become one
 *                                                                                                |
 *   upload and copy queue <---- one request as it is, several (and what CUDA wants pinned)
 *                               through the staging ring
 *   ----------+----> download queue
 *
 * What comes out is what the requests, one after the other in the order they were made, would
 * give. Host memory of a request is left alone until its ticket is done. A mover is for one
 * thread.
 */
#ifndef OT_DEVICE_TRANSFERS_H
#define OT_DEVICE_TRANSFERS_H

#include "device.h"

typedef struct ot_dev_mover ot_dev_mover;

typedef struct ot_dev_mover_options {
    /* ring that merged requests go through, and where transfers want pinned memory (facts.pins)
     * single ones that fit as well; 0: 4 MiB */
    int64_t staging_bytes;
    bool no_merge; /* every request by itself */
} ot_dev_mover_options;

typedef enum ot_dev_direction {
    OT_DEV_TO_DEVICE,
    OT_DEV_TO_HOST,
    OT_DEV_ON_DEVICE
} ot_dev_direction;
typedef enum ot_dev_priority {
    OT_DEV_LOW = -1,
    OT_DEV_NORMAL = 0,
    OT_DEV_HIGH = 1
} ot_dev_priority;

typedef struct ot_dev_request {
    ot_dev_direction direction;
    ot_dev_priority priority;
    /* of the device: to unless TO_HOST, from unless TO_DEVICE; equal bytes */
    ot_dev_slice to, from;
    const void *source; /* TO_DEVICE: [to.bytes] */
    /* TO_DEVICE: bytes behind `to` that nobody reads, which merging may write */
    int64_t room;
    void *sink;                /* TO_HOST: [from.bytes] */
    const ot_dev_after *after; /* events of other queues; read now. NULL: none */
} ot_dev_request;

typedef uint64_t ot_dev_ticket; /* of a request, from 1 */

typedef struct ot_dev_mover_stats {
    uint64_t n_requests, n_transfers; /* asked, queued */
    uint64_t n_merged;                /* requests that went with another */
    uint64_t bytes_asked, bytes_moved;
    uint64_t n_cancelled, n_waits_for_staging;
} ot_dev_mover_stats;

ot_status ot_dev_mover_new(ot_device *dev, const ot_dev_mover_options *o, ot_device_error *e,
                           ot_dev_mover **out) OT_MUST_USE;
/* Waits for what is under way; what was not issued never runs. Accepts NULL. */
void ot_dev_mover_free(ot_dev_mover *m);

/* Not queued before the next issue (which comes by itself after 256 requests, and with a wait). */
ot_status ot_dev_request_put(ot_dev_mover *m, const ot_dev_request *r, ot_device_error *e,
                             ot_dev_ticket *out) OT_MUST_USE;
/* Queue everything. When the device refuses one, that one fails, those that were not queued are
 * cancelled, and what is under way goes on. */
ot_status ot_dev_mover_issue(ot_dev_mover *m, ot_device_error *e) OT_MUST_USE;
/* Until the request is done. Its own failure, or OT_DEV_CANCELLED. */
ot_status ot_dev_ticket_wait(ot_dev_mover *m, ot_dev_ticket t, ot_device_error *e) OT_MUST_USE;
/* What a kernel waits for that uses what the request moves (serial 0: it is done, or failed).
 * Issues. TO_HOST: bytes may be in the ring until ot_dev_ticket_wait. */
ot_status ot_dev_ticket_event(ot_dev_mover *m, ot_dev_ticket t, ot_device_error *e,
                              ot_dev_event *out) OT_MUST_USE;
/* Until all is done; the first failure since the last call. */
ot_status ot_dev_mover_finish(ot_dev_mover *m, ot_device_error *e) OT_MUST_USE;
/* Requests that were not issued never run: their tickets are OT_DEV_CANCELLED. Returns how many. */
uint32_t ot_dev_mover_cancel(ot_dev_mover *m);
/* Its queues, for transfers that need none of this. */
void ot_dev_mover_queues(const ot_dev_mover *m, ot_dev_queue *up, ot_dev_queue *down);
ot_dev_mover_stats ot_dev_mover_count(const ot_dev_mover *m);

#endif
