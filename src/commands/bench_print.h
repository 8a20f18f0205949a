/* What bench found, as a table and as JSON (docs/json.md). */
#ifndef OT_COMMANDS_BENCH_PRINT_H
#define OT_COMMANDS_BENCH_PRINT_H

#include "model_device.h"

#include "report/facts/bench_facts.h"

/* A side on a device, in the order of the facts. */
typedef struct ot_bench_side_device {
    const ot_model_device *on; /* on->dev NULL: the host */
    const ot_session *session;
} ot_bench_side_device;

void ot_bench_print(const ot_bench_facts *b, const ot_bench_side_device at[2], FILE *f);
void ot_bench_json(const ot_bench_facts *b, const ot_bench_side_device at[2], FILE *f);

#endif
