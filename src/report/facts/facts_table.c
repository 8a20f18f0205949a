/* The tables of facts_table.h, one for each struct of the facts, in the order of facts.h.
 *
 * A new member of a struct needs a line here and an attribute in reports/benefit.xsd; the tests
 * compare the two. */
#include "facts_table.h"

#define FIELD(type, owner, name, member)                   \
    {                                                      \
        name, type, offsetof(owner, member), NULL, 0, NULL \
    }
#define FIELD_AS(type, owner, name, member, json)          \
    {                                                      \
        name, type, offsetof(owner, member), NULL, 0, json \
    }
#define ENUM(type, owner, name, member, list)                                          \
    {                                                                                  \
        name, type, offsetof(owner, member), list, sizeof(list) / sizeof *(list), NULL \
    }
#define END                               \
    {                                     \
        NULL, FACT_TEXT, 0, NULL, 0, NULL \
    }
#define LIST(owner, list, item, of, member)                                              \
    {                                                                                    \
        list, item, &(of), offsetof(owner, member), offsetof(owner, n_##member), 0, NULL \
    }
#define LIST_IF_ANY(owner, list, item, of, member)                                                 \
    {                                                                                              \
        list, item, &(of), offsetof(owner, member), offsetof(owner, n_##member), FACT_IF_ANY, NULL \
    }
#define LIST_AS(owner, list, item, of, member, rules, json)                                  \
    {                                                                                        \
        list, item, &(of), offsetof(owner, member), offsetof(owner, n_##member), rules, json \
    }
#define NO_MORE                         \
    {                                   \
        NULL, NULL, NULL, 0, 0, 0, NULL \
    }
#define MEMBERS(owner) \
    .has_members = true, .members = offsetof(owner, nodes), .n_members = offsetof(owner, n_nodes)
#define DIMS(owner)                                                                     \
    .has_dims = true, .n_dims = offsetof(owner, n_dims), .axes = offsetof(owner, axes), \
    .tiles = offsetof(owner, tiles), .tile = offsetof(owner, tile)

/* ---- names of enums ---- */

static const char *const KINDS[] = {"optimise", "inspect", "bench", "plan-memory"};
static const char *const BOUNDS[] = {"compute", "bandwidth", "overhead"};
static const char *const MODES[] = {"auto", "sequential", "reuse", "search"};
static const char *const LEVELS[] = {"0", "1", "2", "3", "none"};
#define X(id, name, text) name,
static const char *const SCOPES[] = {OT_SCOPES(X)};
#undef X

const char *ot_fact_kind_name(ot_fact_kind k) { return KINDS[k]; }

const char *ot_bound_name(ot_bound b) { return BOUNDS[b]; }

/* ---- items of lists ---- */

#define F(type, name, member) FIELD(type, ot_fact_card, name, member)
static const fact_field CARD_FIELDS[] = {
    F(FACT_TEXT, "id", id),         F(FACT_TEXT, "title", title),
    F(FACT_SOME, "unit", unit),     F(FACT_NUMBER, "before", before),
    F(FACT_NUMBER, "after", after), F(FACT_NUMBER, "bound", bound),
    F(FACT_NUMBER, "ratio", ratio), F(FACT_TRUTH, "at-least", at_least),
    F(FACT_SOME, "note", note),     END};
#undef F
static const fact_struct CARD = {.fields = CARD_FIELDS, .size = sizeof(ot_fact_card)};

#define F(type, name, member) FIELD(type, ot_fact_node, name, member)
static const fact_field NODE_FIELDS[] = {F(FACT_TEXT, "name", name),
                                         F(FACT_TEXT, "op", op),
                                         F(FACT_SOME, "shape", shape),
                                         F(FACT_U32, "depth", depth),
                                         F(FACT_REGION, "region", region),
                                         F(FACT_INDEX, "barrier", barrier),
                                         F(FACT_INDEX, "refusal", refusal),
                                         F(FACT_TRUTH, "fused", is_fused),
                                         F(FACT_NUMBER, "macs", macs),
                                         F(FACT_NUMBER, "parameters", parameters),
                                         F(FACT_NUMBER, "out-bytes", out_bytes),
                                         F(FACT_NUMBER, "traffic-bytes", traffic),
                                         F(FACT_NUMBER, "compute-seconds", compute),
                                         F(FACT_NUMBER, "memory-seconds", memory),
                                         F(FACT_NUMBER, "overhead-seconds", overhead),
                                         F(FACT_NUMBER, "time-seconds", time),
                                         F(FACT_NUMBER, "measured-seconds", measured),
                                         ENUM(FACT_NAME, ot_fact_node, "bound", bound, BOUNDS),
                                         END};
#undef F
static const fact_struct NODE = {
    .fields = NODE_FIELDS, .size = sizeof(ot_fact_node), .is_numbered = true};

#define F(type, name, member) FIELD(type, ot_fact_edge, name, member)
static const fact_field EDGE_FIELDS[] = {
    F(FACT_INDEX, "from", from),         F(FACT_INDEX, "to", to),
    F(FACT_TEXT, "value", value),        F(FACT_NUMBER, "bytes", bytes),
    F(FACT_TRUTH, "in-tiles", in_tiles), END};
#undef F
static const fact_struct EDGE = {.fields = EDGE_FIELDS, .size = sizeof(ot_fact_edge)};

#define F(type, name, member) FIELD(type, ot_fact_candidate, name, member)
static const fact_field CANDIDATE_FIELDS[] = {F(FACT_TEXT, "form", form),
                                              F(FACT_NUMBER, "time-seconds", time),
                                              F(FACT_NUMBER, "traffic-bytes", traffic),
                                              F(FACT_I64, "working-set-bytes", working_set),
                                              F(FACT_TRUTH, "fits", fits),
                                              F(FACT_TRUTH, "chosen", chosen),
                                              F(FACT_TRUTH, "on-front", on_front),
                                              F(FACT_TEXT, "reason", reason),
                                              END};
#undef F
static const fact_struct CANDIDATE = {
    .fields = CANDIDATE_FIELDS, .size = sizeof(ot_fact_candidate), DIMS(ot_fact_candidate)};

#define F(type, name, member) FIELD(type, ot_scope_plan, name, member)
static const fact_field SCOPE_FIELDS[] = {
    ENUM(FACT_OF_KERNEL, ot_scope_plan, "scope", scope, SCOPES),
    F(FACT_LIMIT, "capacity-bytes", capacity),
    F(FACT_I64, "height-bytes", height),
    F(FACT_I64, "lower-bound-bytes", lower_bound),
    F(FACT_I64, "sum-bytes", sum),
    ENUM(FACT_NAME, ot_scope_plan, "mode", mode, MODES),
    ENUM(FACT_LEVEL, ot_scope_plan, "level", level, LEVELS),
    F(FACT_U32, "buffers", n_buffers),
    F(FACT_U32, "rollbacks", rollbacks),
    F(FACT_U32, "restarts", restarts),
    F(FACT_U32, "doubled", n_upgraded),
    F(FACT_U32, "cross-pipe", n_cross_pipe),
    F(FACT_TRUTH, "proved", proved),
    F(FACT_TRUTH, "timed-out", timed_out),
    F(FACT_SOME, "reuse", reuse),
    END};
#undef F
const fact_struct FACTS_SCOPE = {.fields = SCOPE_FIELDS, .size = sizeof(ot_scope_plan)};

#define F(type, name, member) FIELD(type, ot_fact_block, name, member)
static const fact_field BLOCK_FIELDS[] = {F(FACT_TEXT, "name", node),
                                          F(FACT_TEXT, "operation", operation),
                                          F(FACT_TEXT, "unit", unit),
                                          F(FACT_TEXT, "extent", extent),
                                          F(FACT_TEXT, "block", block),
                                          F(FACT_I64, "depth", depth),
                                          F(FACT_I64, "depth-block", depth_block),
                                          F(FACT_I64, "blocks", n_blocks),
                                          F(FACT_I64, "moved-bytes", bytes),
                                          F(FACT_I64, "granules-saved-bytes", granules_saved),
                                          F(FACT_NUMBER, "moving-seconds", time),
                                          END};
#undef F
static const fact_struct BLOCK = {.fields = BLOCK_FIELDS, .size = sizeof(ot_fact_block)};

#define F(type, name, member) FIELD(type, ot_fact_region, name, member)
static const fact_field REGION_FIELDS[] = {
    F(FACT_U32, "id", id),
    F(FACT_TEXT, "form", form),
    F(FACT_I64, "working-set-bytes", working_set),
    F(FACT_I64, "working-set-bound-bytes", working_set_bound),
    F(FACT_I64, "capacity-bytes", capacity),
    F(FACT_NUMBER, "fill", fill),
    F(FACT_I64, "weight-bytes", weights),
    F(FACT_TRUTH, "weights-stay", weights_stay),
    F(FACT_NUMBER, "untiled-seconds", time_untiled),
    F(FACT_NUMBER, "tiled-seconds", time_tiled),
    F(FACT_SIGNED, "benefit-seconds", benefit),
    F(FACT_NUMBER, "mac-ratio", mac_ratio),
    F(FACT_NUMBER, "untiled-traffic-bytes", traffic_untiled),
    F(FACT_NUMBER, "traffic-bytes", traffic),
    F(FACT_NUMBER, "measured-untiled-seconds", measured_untiled),
    F(FACT_NUMBER, "measured-seconds", measured),
    F(FACT_NUMBER, "error", error),
    ENUM(FACT_DETAIL, ot_fact_region, "untiled-bound", bound_untiled, BOUNDS),
    ENUM(FACT_DETAIL, ot_fact_region, "bound", bound, BOUNDS),
    F(FACT_SOME, "residence", residence),
    F(FACT_SOME, "placement", placement),
    F(FACT_NUMBER, "stall-seconds", stall),
    F(FACT_SOME, "cores", cores),
    END};
#undef F
static const fact_field SUM_FIELDS[] = {FIELD(FACT_INDEX, ot_fact_sum, "node", node), END};
static const fact_struct SUM = {.fields = SUM_FIELDS, .size = sizeof(ot_fact_sum)};
static const fact_list REGION_LISTS[] = {
    LIST_AS(ot_fact_region, "sums", "sum", SUM, sums, FACT_NOT_IN_PLAN, NULL),
    LIST_AS(ot_fact_region, "candidates", "candidate", CANDIDATE, candidates, FACT_NOT_IN_PLAN,
            NULL),
    LIST_IF_ANY(ot_fact_region, "scopes", "scope", FACTS_SCOPE, scopes),
    LIST_IF_ANY(ot_fact_region, "blocks", "block", BLOCK, blocks), NO_MORE};
const fact_struct FACTS_REGION = {.fields = REGION_FIELDS,
                                  .lists = REGION_LISTS,
                                  .size = sizeof(ot_fact_region),
                                  MEMBERS(ot_fact_region),
                                  DIMS(ot_fact_region),
                                  .extent = offsetof(ot_fact_region, extent)};

static const fact_field BARRIER_FIELDS[] = {
    FIELD(FACT_INDEX, ot_fact_barrier, "node", node),
    FIELD(FACT_SOME, ot_fact_barrier, "reason-id", reason_id),
    FIELD(FACT_TEXT, ot_fact_barrier, "reason", reason),
    FIELD(FACT_SOME, ot_fact_barrier, "lift", lift), END};
const fact_struct FACTS_BARRIER = {
    .fields = BARRIER_FIELDS, .size = sizeof(ot_fact_barrier), .is_numbered = true};

static const fact_field REFUSAL_FIELDS[] = {
    FIELD(FACT_SOME, ot_fact_refusal, "reason-id", reason_id),
    FIELD(FACT_TEXT, ot_fact_refusal, "reason", reason),
    FIELD(FACT_SOME, ot_fact_refusal, "lift", lift), END};
const fact_struct FACTS_REFUSAL = {.fields = REFUSAL_FIELDS,
                                   .size = sizeof(ot_fact_refusal),
                                   .is_numbered = true,
                                   MEMBERS(ot_fact_refusal)};

#define F(type, name, member) FIELD(type, ot_fact_box, name, member)
static const fact_field BOX_FIELDS[] = {F(FACT_TEXT, "name", name),
                                        F(FACT_I64, "lower-step", lower),
                                        F(FACT_I64, "upper-step", upper),
                                        F(FACT_I64, "offset-bytes", offset),
                                        F(FACT_I64, "size-bytes", size),
                                        F(FACT_U32, "kind", kind),
                                        END};
#undef F
static const fact_struct BOX = {.fields = BOX_FIELDS, .size = sizeof(ot_fact_box)};

#define F(type, name, member) FIELD(type, ot_fact_map, name, member)
static const fact_field MAP_FIELDS[] = {F(FACT_TEXT, "id", id),
                                        F(FACT_TEXT, "title", title),
                                        F(FACT_TEXT, "time-label", time_label),
                                        F(FACT_I64, "steps", steps),
                                        F(FACT_I64, "height-bytes", height),
                                        F(FACT_I64, "lower-bound-bytes", lower_bound),
                                        F(FACT_LIMIT, "capacity-bytes", capacity),
                                        F(FACT_TRUTH, "proved", proved),
                                        END};
#undef F
static const fact_list MAP_LISTS[] = {LIST(ot_fact_map, "boxes", "box", BOX, boxes), NO_MORE};
static const fact_struct MAP = {
    .fields = MAP_FIELDS, .lists = MAP_LISTS, .size = sizeof(ot_fact_map)};

static const fact_field LINE_FIELDS[] = {FIELD(FACT_TEXT, ot_fact_line, "text", text),
                                         FIELD(FACT_TRUTH, ot_fact_line, "changed", changed), END};
static const fact_struct LINE = {.fields = LINE_FIELDS, .size = sizeof(ot_fact_line)};

static const fact_field PASS_FIELDS[] = {FIELD(FACT_TEXT, ot_fact_pass, "id", id),
                                         FIELD(FACT_TEXT, ot_fact_pass, "title", title),
                                         FIELD(FACT_TEXT, ot_fact_pass, "what", what), END};
static const fact_list PASS_LISTS[] = {LIST(ot_fact_pass, "lines", "line", LINE, lines),
                                       LIST(ot_fact_pass, "maps", "map", MAP, maps), NO_MORE};
static const fact_struct PASS = {
    .fields = PASS_FIELDS, .lists = PASS_LISTS, .size = sizeof(ot_fact_pass)};

static const fact_field ROOF_FIELDS[] = {
    FIELD(FACT_TEXT, ot_fact_roof, "id", id), FIELD(FACT_TEXT, ot_fact_roof, "title", title),
    FIELD(FACT_NUMBER, ot_fact_roof, "bytes-per-second", bandwidth),
    FIELD(FACT_NUMBER, ot_fact_roof, "operations-per-second", rate), END};
static const fact_struct ROOF = {.fields = ROOF_FIELDS, .size = sizeof(ot_fact_roof)};

#define F(type, name, member) FIELD(type, ot_fact_point, name, member)
static const fact_field POINT_FIELDS[] = {F(FACT_TEXT, "label", label),
                                          F(FACT_REGION, "region", region),
                                          F(FACT_TRUTH, "tiled", tiled),
                                          F(FACT_NUMBER, "operations", operations),
                                          F(FACT_NUMBER, "traffic-bytes", bytes),
                                          F(FACT_NUMBER, "time-seconds", seconds),
                                          F(FACT_NUMBER, "operations-per-byte", intensity),
                                          F(FACT_NUMBER, "operations-per-second", rate),
                                          F(FACT_NUMBER, "attained", attained),
                                          END};
#undef F
static const fact_struct POINT = {.fields = POINT_FIELDS, .size = sizeof(ot_fact_point)};

#define F(type, name, member) FIELD(type, ot_fact_alive, name, member)
static const fact_field ALIVE_FIELDS[] = {
    F(FACT_TEXT, "value", value),        F(FACT_SOME, "shape", shape),
    F(FACT_NUMBER, "bytes", bytes),      F(FACT_NUMBER, "share", share),
    F(FACT_INDEX, "maker", maker),       F(FACT_INDEX, "reader", reader),
    F(FACT_TRUTH, "in-tiles", in_tiles), END};
#undef F
static const fact_struct ALIVE = {.fields = ALIVE_FIELDS, .size = sizeof(ot_fact_alive)};

#define F(type, name, member) FIELD(type, ot_fact_obstacle, name, member)
static const fact_field OBSTACLE_FIELDS[] = {F(FACT_TEXT, "value", value),
                                             F(FACT_NUMBER, "bytes", bytes),
                                             F(FACT_INDEX, "node", node),
                                             F(FACT_SOME, "reason-id", reason_id),
                                             F(FACT_TEXT, "reason", reason),
                                             F(FACT_SOME, "lift", lift),
                                             END};
#undef F
static const fact_struct OBSTACLE = {.fields = OBSTACLE_FIELDS, .size = sizeof(ot_fact_obstacle)};

#define F(type, name, member) FIELD(type, ot_fact_cure, name, member)
static const fact_field CURE_FIELDS[] = {
    F(FACT_TEXT, "options", options), F(FACT_NUMBER, "growth-bytes", growth),
    F(FACT_NUMBER, "peak-bytes", peak), F(FACT_NUMBER, "time-seconds", time), END};
#undef F
static const fact_struct CURE = {.fields = CURE_FIELDS, .size = sizeof(ot_fact_cure)};

#define F(type, name, member) FIELD(type, ot_fact_entry, name, member)
static const fact_field ENTRY_FIELDS[] = {
    F(FACT_TEXT, "id", id),           F(FACT_TEXT, "title", title), F(FACT_SOME, "text", text),
    F(FACT_NUMBER, "number", number), F(FACT_SOME, "unit", unit),   END};
#undef F
static const fact_struct ENTRY = {.fields = ENTRY_FIELDS, .size = sizeof(ot_fact_entry)};

/* A list of plain texts. */
static const fact_field WARNING_FIELDS[] = {{"text", FACT_TEXT, 0, NULL, 0, NULL}, END};
static const fact_struct WARNING = {.fields = WARNING_FIELDS, .size = sizeof(const char *)};

/* ---- bench ---- */

#define F(type, name, member) FIELD(type, ot_bench_side, name, member)
static const fact_field SIDE_FIELDS[] = {F(FACT_TEXT, "name", name),
                                         F(FACT_TIME, "least-seconds", time.min),
                                         F(FACT_TIME, "median-seconds", time.p50),
                                         F(FACT_TIME, "p90-seconds", time.p90),
                                         F(FACT_TIME, "p99-seconds", time.p99),
                                         F(FACT_TIME, "predicted-seconds", predicted),
                                         F(FACT_I64, "planned-peak-bytes", figures.planned_peak),
                                         F(FACT_I64, "peak-bytes", figures.peak),
                                         F(FACT_I64, "weight-bytes", figures.weight_bytes),
                                         F(FACT_U32, "nodes", figures.n_nodes),
                                         F(FACT_U32, "folded", figures.n_folded),
                                         F(FACT_U32, "mispredicted", figures.n_mispredicted),
                                         F(FACT_NUMBER, "fast-operand-bytes", bytes.fast),
                                         F(FACT_NUMBER, "mid-operand-bytes", bytes.mid),
                                         F(FACT_NUMBER, "slow-operand-bytes", bytes.slow),
                                         F(FACT_U32, "unsized-operands", bytes.n_unsized),
                                         F(FACT_NUMBER, "cache-references", references),
                                         F(FACT_NUMBER, "cache-misses", misses),
                                         END};
#undef F
const fact_struct FACTS_BENCH_SIDE = {.fields = SIDE_FIELDS, .size = sizeof(ot_bench_side)};

#define F(type, name, member) FIELD(type, ot_bench_region, name, member)
static const fact_field BENCH_REGION_FIELDS[] = {
    F(FACT_U32, "region", id),
    F(FACT_TIME, "untiled-seconds", predicted[0]),
    F(FACT_TIME, "tiled-seconds", predicted[1]),
    F(FACT_TIME, "measured-untiled-seconds", measured[0]),
    F(FACT_TIME, "measured-seconds", measured[1]),
    END};
#undef F
const fact_struct FACTS_BENCH_REGION = {.fields = BENCH_REGION_FIELDS,
                                        .size = sizeof(ot_bench_region)};

#define F(type, name, member) FIELD(type, ot_bench_output, name, member)
static const fact_field OUTPUT_FIELDS[] = {F(FACT_TEXT, "name", name),
                                           F(FACT_TRUTH, "same", difference.same),
                                           F(FACT_TRUTH, "own-noise", difference.own_noise),
                                           F(FACT_NUMBER, "nmse", difference.nmse),
                                           F(FACT_NUMBER, "max-abs", difference.max_abs),
                                           F(FACT_NUMBER, "max-rel", difference.max_rel),
                                           F(FACT_MAYBE, "why", difference.why),
                                           END};
#undef F
const fact_struct FACTS_BENCH_OUTPUT = {.fields = OUTPUT_FIELDS, .size = sizeof(ot_bench_output)};

#define F(type, name, member) FIELD(type, ot_bench_transfer, name, member)
static const fact_field TRANSFER_FIELDS[] = {F(FACT_TEXT, "direction", direction),
                                             F(FACT_I64, "count", count),
                                             F(FACT_I64, "bytes", bytes),
                                             F(FACT_NUMBER, "time-seconds", seconds),
                                             F(FACT_NUMBER, "bytes-per-second", bandwidth),
                                             F(FACT_NUMBER, "of-peak", of_peak),
                                             END};
#undef F
static const fact_struct TRANSFER = {.fields = TRANSFER_FIELDS, .size = sizeof(ot_bench_transfer)};

#define F(type, name, member) FIELD(type, ot_bench_shader, name, member)
static const fact_field KERNEL_FIELDS[] = {F(FACT_TEXT, "name", name),
                                           F(FACT_I64, "count", count),
                                           F(FACT_I64, "bytes", bytes),
                                           F(FACT_NUMBER, "time-seconds", seconds),
                                           F(FACT_NUMBER, "bytes-per-second", bandwidth),
                                           END};
#undef F
static const fact_struct KERNEL = {.fields = KERNEL_FIELDS, .size = sizeof(ot_bench_shader)};

static const fact_field FALLBACK_FIELDS[] = {FIELD(FACT_TEXT, ot_bench_fallback, "operator", op),
                                             FIELD(FACT_TEXT, ot_bench_fallback, "node", node),
                                             FIELD(FACT_TEXT, ot_bench_fallback, "why", why),
                                             FIELD(FACT_U32, ot_bench_fallback, "nodes", n), END};
static const fact_struct FALLBACK = {.fields = FALLBACK_FIELDS, .size = sizeof(ot_bench_fallback)};

#define F(type, name, member) FIELD(type, ot_bench_device, name, member)
static const fact_field DEVICE_FIELDS[] = {F(FACT_TEXT, "side", side),
                                           F(FACT_TEXT, "api", api),
                                           F(FACT_U32, "number", number),
                                           F(FACT_TEXT, "name", name),
                                           F(FACT_I64, "planned-bytes", planned),
                                           F(FACT_I64, "arena-bytes", arena),
                                           F(FACT_I64, "arena-live-bytes", live),
                                           F(FACT_I64, "weight-bytes", weights),
                                           F(FACT_I64, "peak-bytes", peak),
                                           F(FACT_I64, "budget-bytes", budget),
                                           F(FACT_I64, "allocated", n_made),
                                           F(FACT_I64, "freed", n_freed),
                                           F(FACT_I64, "allocated-bytes", bytes_made),
                                           F(FACT_I64, "freed-bytes", bytes_freed),
                                           F(FACT_NUMBER, "fragmentation", fragmentation),
                                           F(FACT_NUMBER, "allocate-seconds", allocate_seconds),
                                           F(FACT_NUMBER, "compile-seconds", compile_seconds),
                                           F(FACT_NUMBER, "span-seconds", span),
                                           F(FACT_NUMBER, "busy-seconds", busy),
                                           F(FACT_U32, "nodes-on-device", n_device),
                                           F(FACT_U32, "nodes-on-host", n_host),
                                           F(FACT_U32, "launches", n_launches),
                                           F(FACT_U32, "packed-constants", n_packed),
                                           F(FACT_I64, "packed-bytes", packed_bytes),
                                           F(FACT_I64, "packed-filled-bytes", filled),
                                           F(FACT_U32, "blocked-activations", n_blocked),
                                           F(FACT_I64, "blocked-bytes", blocked_bytes),
                                           F(FACT_U32, "spread-kernels", n_spread),
                                           F(FACT_NUMBER, "transactions", transactions),
                                           F(FACT_NUMBER, "transactions-plain", transactions_plain),
                                           F(FACT_NUMBER, "transactions-ideal", transactions_ideal),
                                           END};
#undef F
static const fact_list DEVICE_LISTS[] = {
    LIST(ot_bench_device, "transfers", "transfer", TRANSFER, transfers),
    LIST(ot_bench_device, "kernels", "kernel", KERNEL, kernels),
    LIST(ot_bench_device, "fallbacks", "fallback", FALLBACK, fallbacks), NO_MORE};
static const fact_struct DEVICE = {
    .fields = DEVICE_FIELDS, .lists = DEVICE_LISTS, .size = sizeof(ot_bench_device)};

#define F(type, name, member) FIELD(type, ot_bench_facts, name, member)
static const fact_field BENCH_FIELDS[] = {F(FACT_TEXT, "model", model),
                                          F(FACT_MAYBE, "tiled-model", tiled),
                                          F(FACT_TEXT, "target", target),
                                          F(FACT_TRUTH, "other-machine", elsewhere),
                                          F(FACT_U32, "threads", threads),
                                          F(FACT_U32, "runs", runs),
                                          F(FACT_TRUTH, "counted", counted),
                                          F(FACT_TRUTH, "same", same),
                                          F(FACT_NUMBER, "region-error", region_error),
                                          F(FACT_I64, "resident-bytes", resident),
                                          END};
#undef F
static const fact_list BENCH_LISTS[] = {
    LIST_AS(ot_bench_facts, "bench-regions", "bench-region", FACTS_BENCH_REGION, regions, 0,
            "regions"),
    LIST_AS(ot_bench_facts, "bench-outputs", "bench-output", FACTS_BENCH_OUTPUT, outputs, 0,
            "outputs"),
    LIST_IF_ANY(ot_bench_facts, "devices", "device", DEVICE, devices), NO_MORE};
const fact_struct FACTS_BENCH_HEAD = {
    .fields = BENCH_FIELDS, .lists = BENCH_LISTS, .size = sizeof(ot_bench_facts)};

/* ---- the report ---- */

#define F(type, name, member) FIELD(type, ot_facts, name, member)
static const fact_field REPORT_FIELDS[] = {
    ENUM(FACT_NAME, ot_facts, "kind", kind, KINDS),
    F(FACT_TEXT, "tool-version", version),
    F(FACT_TEXT, "model", model),
    F(FACT_MAYBE, "output", output),
    F(FACT_MAYBE, "target", target),
    F(FACT_MAYBE, "runtime", runtime),
    F(FACT_MAYBE, "design", design),
    F(FACT_TRUTH, "design-guessed", design_guessed),
    FIELD(FACT_TRUTH, ot_facts, "stays-dynamic", stays_dynamic),
    F(FACT_SOME, "unknown-sizes", unknown_sizes),
    F(FACT_SOME, "missed", missed),
    F(FACT_SOME, "slow-nodes", slow_nodes),
    F(FACT_MAYBE, "goal", goal),
    F(FACT_I64, "fast-bytes", fast_bytes),
    F(FACT_REGION, "peak-region", peak_region),
    F(FACT_MAYBE, "command", command),
    F(FACT_TRUTH, "measured", measured),
    F(FACT_NUMBER, "region-error", region_error),
    END};
#undef F
#define L(list, item, of, member) LIST(ot_facts, list, item, of, member)
static const fact_list REPORT_LISTS[] = {L("cards", "card", CARD, cards),
                                         L("nodes", "node", NODE, nodes),
                                         L("edges", "edge", EDGE, edges),
                                         L("regions", "region", FACTS_REGION, regions),
                                         L("barriers", "barrier", FACTS_BARRIER, barriers),
                                         L("refusals", "refusal", FACTS_REFUSAL, refusals),
                                         L("maps", "map", MAP, maps),
                                         L("roofs", "roof", ROOF, roofs),
                                         L("points", "point", POINT, points),
                                         L("target-entries", "entry", ENTRY, target_entries),
                                         L("environment", "entry", ENTRY, environment),
                                         L("memory-entries", "entry", ENTRY, memory_entries),
                                         L("peak", "entry", ENTRY, peak),
                                         L("alive", "tensor", ALIVE, alive),
                                         L("obstacles", "obstacle", OBSTACLE, obstacles),
                                         L("cures", "cure", CURE, cures),
                                         {"range", "entry", &ENTRY,
                                          offsetof(ot_facts, range_entries),
                                          offsetof(ot_facts, n_range_entries), FACT_IF_ANY, NULL},
                                         L("scopes", "scope", FACTS_SCOPE, scopes),
                                         LIST_IF_ANY(ot_facts, "passes", "pass", PASS, passes),
                                         L("warnings", "warning", WARNING, warnings),
                                         NO_MORE};
#undef L
const fact_struct FACTS_REPORT = {
    .fields = REPORT_FIELDS, .lists = REPORT_LISTS, .size = sizeof(ot_facts)};
