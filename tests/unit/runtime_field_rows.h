/* The fields of a runtime's tables, as test_runtime_fields alters them: a row for each member of
 * the structures of runtime.h. */
#ifndef OT_TESTS_RUNTIME_FIELD_ROWS_H
#define OT_TESTS_RUNTIME_FIELD_ROWS_H

#include "machine/runtime/runtime.h"

/* COUNT: of rows; SET: of bits; CHOICE: of an enumeration; NUMBER: uint32_t. TABLE: a structure or
 * an array, whose members have rows, or are altered one by one below. */
typedef enum kind {
    BOOL,
    REAL,
    INT,
    COUNT,
    SET,
    CHOICE,
    NUMBER,
    TEXT,
    RULES,
    OPERATOR,
    TABLE
} field_kind;

typedef struct row {
    const char *of, *name;
    size_t offset, size;
    field_kind kind;
} row;

#define ROW(type, member, kind)                                                   \
    {                                                                             \
#type, #member, offsetof(type, member), sizeof(((type *)0)->member), kind \
    }
#define R(member, kind) ROW(ot_runtime, member, kind)
#define C(member, kind) ROW(ot_conv_habits, member, kind)
#define B(member, kind) ROW(ot_block_habits, member, kind)
#define P(member, kind) ROW(ot_form_price, member, kind)
#define M(member, kind) ROW(ot_runtime_margins, member, kind)
#define O(member, kind) ROW(ot_overheads, member, kind)
#define U(member, kind) ROW(ot_unpacked_price, member, kind)

static const row FIELDS[] = {
    R(name, TEXT),
    R(title, TEXT),
    R(summary, TEXT),
    R(gives_form, BOOL),
    R(bit, SET),
    R(merges, TABLE),
    R(one_pass, BOOL),
    R(int8_groups, BOOL),
    R(int8_width, BOOL),
    R(slow, TABLE),
    R(n_slow, COUNT),
    R(conv, TABLE),
    R(half_part, REAL),
    R(overlap, REAL),
    R(blocks, TABLE),
    R(packing, CHOICE),
    R(attention_pack, REAL),
    R(run_seconds, REAL),
    R(gather_seconds, REAL),
    R(row_loss, INT),
    R(fills_granules, BOOL),
    R(weights_seen, REAL),
    R(overheads, TABLE),
    R(forms, SET),
    R(cannot, SET),
    R(written_most, NUMBER),
    R(motion, CHOICE),
    R(price, TABLE),
    R(scan_in_place, BOOL),
    R(keeps_dynamic, BOOL),
    R(outer_weights, BOOL),
    R(maps_weights, BOOL),
    R(slices_apart, BOOL),
    R(nests_scans, BOOL),
    R(looped_borders, BOOL),
    R(widens, BOOL),
    R(plain_views, BOOL),
    R(own_biases, BOOL),
    R(inlines_functions, BOOL),
    R(chunk_arena, BOOL),
    R(one_block, BOOL),
    R(device_arena, BOOL),
    R(growth_title, TEXT),
    R(holder, TEXT),
    R(growth_note, TEXT),
    R(folds_norms, BOOL),
    R(deferred_seconds, REAL),
    R(captured_rows, REAL),
    R(unpacked, TABLE),
    R(piece_bytes, INT),
    R(expands_columns, BOOL),
    R(node_bytes, INT),
    R(loop_bytes, INT),
    R(own_outputs, BOOL),
    R(moves_tiles, BOOL),
    R(in_place, BOOL),
    R(overwriters, TABLE),
    R(n_overwriters, COUNT),
    R(scratch, TABLE),
    R(n_scratch, COUNT),
    R(recompute, REAL),
    R(recompute_forced, REAL),
    R(doubt, REAL),
    R(short_rows, REAL),
    R(about, REAL),
    R(margins, TABLE),
    C(block, INT),
    C(blocks_input, BOOL),
    C(few, TABLE),
    C(n_few, COUNT),
    C(transposed, CHOICE),
    C(transposed_part, REAL),
    C(bytes_part, REAL),
    C(winograd, BOOL),
    C(direct_part, REAL),
    B(has_blocks, BOOL),
    B(makes, TABLE),
    B(n_makes, COUNT),
    B(keeps, TABLE),
    B(n_keeps, COUNT),
    B(chains_keep, BOOL),
    B(least, INT),
    B(into, REAL),
    B(out_of, REAL),
    B(steady, BOOL),
    B(copies, REAL),
    B(border_into, REAL),
    B(border_out_of, REAL),
    B(crop, REAL),
    B(crop_blocked, REAL),
    B(crop_readers, BOOL),
    P(copies, BOOL),
    P(nodes, REAL),
    P(loops, BOOL),
    P(reassemble, REAL),
    P(scattered, REAL),
    P(joins_blocks, BOOL),
    P(cropped, REAL),
    P(windows, REAL),
    P(inputs, REAL),
    P(inputs_stay, BOOL),
    P(written, REAL),
    P(outputs, REAL),
    P(outputs_scattered, REAL),
    P(outputs_grid, REAL),
    P(tiles_grid, REAL),
    P(tiles, REAL),
    P(tiles_chain, NUMBER),
    M(wins_half, REAL),
    M(wins_bytes, REAL),
    M(wins_norms, REAL),
    M(wins, REAL),
    M(wins_decomposed, REAL),
    O(node, REAL),
    O(loop, REAL),
    O(region, REAL),
    U(pointwise, REAL),
    U(windows, REAL),
    U(narrow, REAL),
    U(pixels, REAL),
};
#define N_FIELDS (sizeof FIELDS / sizeof *FIELDS)

#endif
