/* Chains from nodes: cells, constants, and the final order.
 *
 *   nodes --chain_nodes.c--> cells in order of appearance --chain_fuse.c--> fewer --this file-->
 *   numbered:
 *
 *       0 ..            inputs      what each run must be given
 *       n_inputs ..     constants   known when the chain is made
 *       .. n_cells      results     one a step
 *
 * Every output is a result of its own: an output that is an input, a constant or another output
 * is copied by a step.
 */
#include "chain_build.h"

/* ---- cells ---- */

static uint32_t new_cell(ot_chain_build *b, const ot_chain_build_cell *c)
{
    if (b->n_cells == OT_CHAIN_CELLS || b->full) {
        b->full = true;
        return OT_NONE;
    }
    b->cells[b->n_cells] = *c;
    return b->n_cells++;
}

bool ot_chain_is_constant(const ot_chain_build *b, uint32_t cell)
{
    return cell != OT_NONE && b->cells[cell].kind == OT_CHAIN_CONSTANT;
}

uint32_t ot_chain_constant(ot_chain_build *b, ot_chain_cell c)
{
    return new_cell(b, &(ot_chain_build_cell){.kind = OT_CHAIN_CONSTANT, .cell = c});
}

static ot_chain_type type_of(ot_dtype t)
{
    switch ((int)t) {
    case OT_BOOL: return OT_CHAIN_MASK;
    case OT_U8: return OT_CHAIN_U8;
    case OT_I8: return OT_CHAIN_I8;
    case OT_F16: return OT_CHAIN_F16;
    case OT_BF16: return OT_CHAIN_BF16;
    default: return OT_CHAIN_FLOAT;
    }
}

/* ---- numbers of 16 bits: widened when they are read, rounded when they are stored or cast ---- */

/* The one instruction of that code on x. */
static uint32_t emit_once(ot_chain_build *b, ot_chain_code code, uint32_t x)
{
    for (uint32_t k = 0; k < b->n_cells; k++) {
        const ot_chain_build_cell *c = &b->cells[k];
        if (c->kind == OT_CHAIN_RESULT && c->code == code && c->in[0] == x) return k;
    }
    return ot_chain_emit(b, code, x, 0, 0);
}

static uint32_t widened(ot_chain_build *b, uint32_t x)
{
    if (x == OT_NONE || !ot_chain_is_half(b->cells[x].cell.type)) return x;
    return emit_once(b, b->cells[x].cell.type == OT_CHAIN_F16 ? OT_CH_FROM_F16 : OT_CH_FROM_BF16,
                     x);
}

/* As it will be stored; x is float. */
static uint32_t narrowed(ot_chain_build *b, ot_dtype t, uint32_t x)
{
    ot_chain_code from = t == OT_F16 ? OT_CH_FROM_F16 : OT_CH_FROM_BF16;
    if (x == OT_NONE) return x;
    const ot_chain_build_cell *c = &b->cells[x];
    if (c->kind == OT_CHAIN_RESULT && c->code == from) return c->in[0]; /* it was such a number */
    return emit_once(b, t == OT_F16 ? OT_CH_TO_F16 : OT_CH_TO_BF16, x);
}

uint32_t ot_chain_round(ot_chain_build *b, ot_dtype t, uint32_t x)
{
    return widened(b, narrowed(b, t, x));
}

/* ---- operands and instructions ---- */

uint32_t ot_chain_operand(ot_chain_build *b, ot_id value, bool is_channel)
{
    for (uint32_t k = b->n_made; !is_channel && k-- > 0;)
        if (b->made[k].value == value) return b->made[k].cell;
    ot_chain_type type = type_of(b->g->values[value].dtype);
    float f;
    if (ot_chain_known(b->g, value, &f)) {
        ot_chain_cell c = {.type = ot_chain_is_half(type) ? OT_CHAIN_FLOAT : type};
        if (type == OT_CHAIN_MASK)
            c.constant.m = f != 0;
        else
            c.constant.f = f;
        return ot_chain_constant(b, c);
    }
    for (uint32_t k = 0; k < b->n_cells; k++) {
        const ot_chain_build_cell *c = &b->cells[k];
        if (c->kind == OT_CHAIN_INPUT && c->value == value && c->is_channel == is_channel)
            return widened(b, k);
    }
    const ot_chain_build_cell input = {
        .kind = OT_CHAIN_INPUT, .cell.type = type, .value = value, .is_channel = is_channel};
    return widened(b, new_cell(b, &input));
}

uint32_t ot_chain_emit(ot_chain_build *b, ot_chain_code code, uint32_t x, uint32_t y, uint32_t z)
{
    const ot_chain_code_info *info = &ot_chain_codes[code];
    ot_chain_build_cell c = {.kind = OT_CHAIN_RESULT,
                             .cell.type = ot_chain_type_of(info->types[0]),
                             .code = code,
                             .in = {x, y, z}};
    const void *at[3] = {NULL, NULL, NULL};
    bool constant = true;
    for (uint32_t k = 0; k < info->operands; k++) {
        if (c.in[k] == OT_NONE) return OT_NONE;
        constant = constant && ot_chain_is_constant(b, c.in[k]);
        at[k] = &b->cells[c.in[k]].cell.constant;
    }
    if (!constant) return new_cell(b, &c);
    info->run(code, 0, &c.cell.constant, at[0], at[1], at[2], 1);
    return ot_chain_constant(b, c.cell);
}

/* ---- the whole ---- */

static uint32_t as_output(ot_chain_build *b, uint32_t cell)
{
    bool own = b->cells[cell].kind == OT_CHAIN_RESULT;
    for (uint32_t k = 0; k < b->n_outputs; k++) own = own && b->outputs[k] != cell;
    if (own) return cell;
    static const ot_chain_code copies[OT_CHAIN_TYPES] = {
        OT_CH_COPY, OT_CH_COPY_MASK, OT_CH_COPY_U8, OT_CH_COPY_I8, OT_CH_COPY_F16, OT_CH_COPY_BF16};
    ot_chain_type type = b->cells[cell].cell.type;
    /* not through ot_chain_emit: a copy of a constant is wanted here */
    return new_cell(b, &(ot_chain_build_cell){.kind = OT_CHAIN_RESULT,
                                              .cell.type = type,
                                              .code = copies[type],
                                              .in = {cell, 0, 0}});
}

static ot_status build(ot_chain_build *b, const ot_chain_spec *s, ot_diag *d)
{
    for (uint32_t k = 0; k < s->n_nodes; k++) {
        const ot_node *n = s->nodes[k];
        if (!ot_chain_takes(s->g, n)) OT_BUG("a node that no chain takes");
        uint32_t cell = ot_chain_node(b, n);
        b->made[b->n_made].value = n->out[0];
        b->made[b->n_made++].cell = cell;
    }
    if (s->n_outputs > OT_CHAIN_OUTPUTS)
        return ot_fail(d, OT_E_INPUT, "a chain of %u nodes has more than %d outputs", s->n_nodes,
                       OT_CHAIN_OUTPUTS);
    for (uint32_t k = 0; k < s->n_outputs && !b->full; k++) {
        uint32_t cell = ot_chain_operand(b, s->outputs[k], false);
        ot_dtype t = s->g->values[s->outputs[k]].dtype;
        if (ot_dtype_is_half(t)) cell = narrowed(b, t, cell);
        if (cell != OT_NONE) cell = as_output(b, cell);
        b->outputs[b->n_outputs++] = cell;
    }
    if (b->full)
        return ot_fail(d, OT_E_INPUT,
                       "a chain of %u nodes has more than %d instructions and operands", s->n_nodes,
                       OT_CHAIN_CELLS);
    return OT_OK;
}

/* Numbers of the cells that are left. */
typedef struct numbering {
    uint8_t of[OT_CHAIN_CELLS];
    uint32_t n[3]; /* of each ot_chain_cell_kind */
} numbering;

static bool is_left(const ot_chain_build_cell *c)
{
    return c->uses && (c->kind != OT_CHAIN_RESULT || c->code != OT_CH_COUNT);
}

static void number_cells(const ot_chain_build *b, numbering *m)
{
    uint32_t next[3];
    *m = (numbering){0};
    for (uint32_t k = 0; k < b->n_cells; k++) m->n[b->cells[k].kind] += is_left(&b->cells[k]);
    next[OT_CHAIN_INPUT] = 0;
    next[OT_CHAIN_CONSTANT] = m->n[OT_CHAIN_INPUT];
    next[OT_CHAIN_RESULT] = m->n[OT_CHAIN_INPUT] + m->n[OT_CHAIN_CONSTANT];
    for (uint32_t k = 0; k < b->n_cells; k++)
        if (is_left(&b->cells[k])) m->of[k] = (uint8_t)next[b->cells[k].kind]++;
}

static ot_status finish(ot_arena *a, const ot_chain_build *b, ot_diag *d, const ot_chain **out)
{
    numbering m;
    number_cells(b, &m);
    if (m.n[OT_CHAIN_INPUT] > OT_CHAIN_INPUTS)
        return ot_fail(d, OT_E_INPUT, "a chain of %u nodes reads more than %d arrays", b->n_made,
                       OT_CHAIN_INPUTS);
    ot_chain *c = OT_NEW(a, ot_chain);
    uint32_t n_cells = m.n[0] + m.n[1] + m.n[2];
    ot_chain_cell *cells = OT_NEW_N(a, ot_chain_cell, n_cells);
    ot_chain_step *steps = OT_NEW_N(a, ot_chain_step, m.n[OT_CHAIN_RESULT]);
    ot_id *inputs = OT_NEW_N(a, ot_id, m.n[OT_CHAIN_INPUT]);
    bool *is_channel = OT_NEW_N(a, bool, m.n[OT_CHAIN_INPUT]);
    if (!c || !cells || !steps || !inputs || !is_channel) return ot_fail_nomem(d);
    *c = (ot_chain){.n_inputs = m.n[OT_CHAIN_INPUT],
                    .n_constants = m.n[OT_CHAIN_CONSTANT],
                    .n_steps = m.n[OT_CHAIN_RESULT],
                    .n_outputs = b->n_outputs,
                    .cells = cells,
                    .steps = steps,
                    .inputs = inputs,
                    .is_channel = is_channel};
    for (uint32_t k = 0; k < b->n_cells; k++) {
        const ot_chain_build_cell *from = &b->cells[k];
        if (!is_left(from)) continue;
        uint32_t to = m.of[k];
        cells[to] = from->cell;
        if (from->kind == OT_CHAIN_INPUT) {
            inputs[to] = from->value;
            is_channel[to] = from->is_channel;
        } else if (from->kind == OT_CHAIN_RESULT) {
            ot_chain_step *s = &steps[to - c->n_inputs - c->n_constants];
            s->code = (uint8_t)from->code;
            for (uint32_t i = 0; i < ot_chain_codes[from->code].operands; i++)
                s->in[i] = m.of[from->in[i]];
            c->work += ot_chain_codes[from->code].work;
        }
    }
    for (uint32_t k = 0; k < b->n_outputs; k++) c->outputs[k] = m.of[b->outputs[k]];
    *out = c;
    return OT_OK;
}

/* ---- chains of one byte ---- */

static bool is_byte(ot_chain_type t) { return t == OT_CHAIN_U8 || t == OT_CHAIN_I8; }

/* Bytes made of one array of bytes: 256 results are all that there can be. */
static bool is_table(const ot_chain *c)
{
    return c->n_inputs == 1 && !c->is_channel[0] && c->n_outputs == 1 && c->n_steps > 1 &&
           is_byte(c->cells[0].type) && is_byte(c->cells[c->outputs[0]].type);
}

/* *chain becomes one instruction that looks its results up. */
static ot_status as_table(ot_arena *a, ot_diag *d, const ot_chain **chain)
{
    const ot_chain *from = *chain;
    uint8_t bytes[256], *table = ot_alloc(a, sizeof bytes);
    ot_chain *c = OT_NEW(a, ot_chain);
    ot_chain_cell *cells = OT_NEW_N(a, ot_chain_cell, 3);
    ot_chain_step *step = OT_NEW(a, ot_chain_step);
    if (!table || !c || !cells || !step) return ot_fail_nomem(d);
    for (int k = 0; k < 256; k++) bytes[k] = (uint8_t)k;
    ot_chain_run(from, 1, (int64_t[]){256}, &(ot_chain_array){.data = bytes, .strides = {1}},
                 &(ot_chain_array){.data = table, .strides = {1}}, 1);
    cells[0] = from->cells[0];
    cells[1] = (ot_chain_cell){.type = OT_CHAIN_U8, .constant.table = table};
    cells[2] = (ot_chain_cell){.type = from->cells[from->outputs[0]].type};
    *step = (ot_chain_step){.code = OT_CH_LOOK_UP, .in = {0, 1}};
    *c = (ot_chain){.n_inputs = 1,
                    .n_constants = 1,
                    .n_steps = 1,
                    .n_outputs = 1,
                    .cells = cells,
                    .steps = step,
                    .inputs = from->inputs,
                    .is_channel = from->is_channel,
                    .outputs = {2},
                    .work = ot_chain_codes[OT_CH_LOOK_UP].work};
    *chain = c;
    return OT_OK;
}

ot_status ot_chain_new(ot_arena *a, const ot_chain_spec *s, ot_diag *d, const ot_chain **out)
{
    *out = NULL;
    ot_arena *scratch = ot_arena_new();
    if (!scratch) return ot_fail_nomem(d);
    ot_chain_build *b = OT_NEW(scratch, ot_chain_build);
    ot_status status = OT_E_NOMEM;
    if (b) b->made = ot_alloc_n(scratch, s->n_nodes, sizeof *b->made);
    if (!b || !b->made) {
        status = ot_fail_nomem(d);
    } else {
        b->g = s->g;
        status = build(b, s, d);
    }
    if (status == OT_OK) {
        ot_chain_fuse(b);
        status = finish(a, b, d, out);
    }
    if (status == OT_OK && is_table(*out)) status = as_table(a, d, out);
    ot_arena_free(scratch);
    return status;
}

uint32_t ot_chain_inputs(const ot_chain *c, const ot_id **values)
{
    *values = c->inputs;
    return c->n_inputs;
}

bool ot_chain_is_channel(const ot_chain *c, uint32_t k)
{
    return k < c->n_inputs && c->is_channel[k];
}
