/* Plans of runs: how the memory lies decides which values are numbers, which are computed once a
 * run, which need copying.
 *
 *   dims [N, C/8, H, W, 8]  1. extents of 1 go; dims are sorted and turned so that output 0
 *                           is walked through forwards
 *   x    [., .,  8W, 8, 1]  2. neighbours that every array walks through as one become one: [N,
 *        C/8, H*W, 8]
 *   bias [0, 8,   0, 0, 1]  3. the last two are rows and cols: here H*W rows of 8
 *
 *   an array, seen from rows and cols         is
 *   does not move                             one number
 *   moves along cols only, same for all rows  computed once a run: eight values, repeated over a
 *                                             register
 *   as dense as a block                       used where it lies (outputs larger than caches:
 *                                             written past them)
 *   else                                      copied to a register, block by block
 *
 * Short cols make blocks of many rows; long ones blocks of one row, whose rows are an outer dim
 * then.
 */
#include "chain_plan.h"

#define SHORT_COLS 128 /* up to so many, blocks are whole rows */

/* ---- dims ---- */

static void gather(ot_chain_schedule *p, uint32_t rank, const int64_t *dims,
                   const ot_chain_array *in, const ot_chain_array *out, ot_chain_dim *d,
                   uint32_t *n)
{
    const ot_chain *c = p->c;
    p->n_arrays = c->n_inputs + c->n_outputs;
    for (uint32_t a = 0; a < p->n_arrays; a++) {
        bool is_in = a < c->n_inputs;
        uint32_t cell = is_in ? a : c->outputs[a - c->n_inputs];
        p->base[a] = is_in ? in[a].data : out[a - c->n_inputs].data;
        p->size[a] = ot_chain_size(c->cells[cell].type);
    }
    *n = 0;
    for (uint32_t k = 0; k < rank; k++) {
        if (dims[k] == 1) continue;
        ot_chain_dim *to = &d[(*n)++];
        to->n = dims[k];
        for (uint32_t a = 0; a < p->n_arrays; a++)
            to->strides[a] = a < c->n_inputs ? in[a].strides[k] : out[a - c->n_inputs].strides[k];
    }
}

/* The order of elements is ours to choose: output 0 from its first byte to its last. */
static void straighten(ot_chain_schedule *p, ot_chain_dim *d, uint32_t n)
{
    uint32_t o = p->c->n_inputs; /* output 0 */
    for (uint32_t k = 0; k < n; k++) {
        if (d[k].strides[o] >= 0) continue;
        for (uint32_t a = 0; a < p->n_arrays; a++) {
            p->base[a] += (d[k].n - 1) * d[k].strides[a] * p->size[a];
            d[k].strides[a] = -d[k].strides[a];
        }
    }
    for (uint32_t k = 1; k < n; k++) {
        ot_chain_dim moved = d[k];
        uint32_t at = k;
        for (; at > 0 && d[at - 1].strides[o] < moved.strides[o]; at--) d[at] = d[at - 1];
        d[at] = moved;
    }
}

static uint32_t merge(const ot_chain_schedule *p, ot_chain_dim *d, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n; k++) {
        bool joins = kept > 0;
        for (uint32_t a = 0; joins && a < p->n_arrays; a++)
            joins = d[kept - 1].strides[a] == d[k].strides[a] * d[k].n;
        if (!joins) {
            d[kept++] = d[k];
            continue;
        }
        int64_t n_before = d[kept - 1].n;
        d[kept - 1] = d[k];
        d[kept - 1].n *= n_before;
    }
    return kept;
}

/* Rows and cols from the last dims. */
static void split(ot_chain_schedule *p, const ot_chain_dim *d, uint32_t n, bool by_rows)
{
    int64_t elems = 1;
    for (uint32_t k = 0; k < n; k++) elems *= d[k].n;
    p->by_rows = by_rows;
    p->rows = p->cols = (ot_chain_dim){.n = 1};
    if (n > 0) p->cols = d[--n];
    if (by_rows) p->rows = d[--n];
    p->n_outer = n;
    p->is_large = elems >= OT_CHAIN_LARGE / 4;
    p->n_runs = 1;
    for (uint32_t k = 0; k < n; k++) {
        p->outer[k] = d[k];
        p->n_runs *= d[k].n;
    }
}

/* ---- places ---- */

static uint16_t new_place(ot_chain_schedule *p, ot_chain_where where, uint32_t size, bool keep)
{
    p->places[p->n_places] = (ot_chain_storage){
        .where = (uint8_t)where, .size = (uint8_t)size, .keep = keep};
    return (uint16_t)p->n_places++;
}

static ot_chain_move *push(ot_chain_schedule *p, bool keep, ot_chain_move m)
{
    ot_chain_move *to = keep ? &p->setup[p->n_setup++] : &p->body[p->n_body++];
    *to = m;
    return to;
}

static bool is_dense(const ot_chain_schedule *p, uint32_t a)
{
    return p->cols.strides[a] == 1 && (p->rows.n == 1 || p->rows.strides[a] == p->cols.n);
}

/* Registers are loaded just before they are first needed. */
static void need(ot_chain_schedule *p, uint16_t place)
{
    ot_chain_storage *at = &p->places[place];
    if (at->where != OT_CHAIN_NOWHERE) return;
    uint32_t a = place; /* inputs come first */
    at->where = OT_CHAIN_REGISTER;
    at->keep = p->rows.n > 1 && p->rows.strides[a] == 0;
    push(p, at->keep,
         (ot_chain_move){
             .kind = at->keep ? OT_CHAIN_CYCLE : OT_CHAIN_LOAD, .to = place, .array = (uint16_t)a});
}

static void place_inputs(ot_chain_schedule *p)
{
    const ot_chain *c = p->c;
    uint32_t first = c->n_inputs + c->n_constants, n = first + c->n_steps;
    p->n_places = p->n_setup = p->n_body = 0;
    for (uint32_t k = 0; k < n; k++)
        new_place(p, OT_CHAIN_NOWHERE, ot_chain_size(c->cells[k].type), false);
    for (uint32_t k = 0; k < first; k++) {
        ot_chain_storage *at = &p->places[k];
        bool still = k >= c->n_inputs || (p->rows.strides[k] == 0 && p->cols.strides[k] == 0);
        if (still)
            *at = (ot_chain_storage){.where = OT_CHAIN_NUMBER, .size = at->size, .keep = true};
        else if (is_dense(p, k))
            *at = (ot_chain_storage){
                .where = OT_CHAIN_MEMORY, .size = at->size, .index = (uint16_t)k};
    }
}

/* A number that an instruction does not take as one; `spread` remembers the registers that hold
 * it already. */
static uint16_t spread_out(ot_chain_schedule *p, uint16_t place, uint16_t *spread)
{
    if (!spread[place]) {
        spread[place] = new_place(p, OT_CHAIN_REGISTER, p->places[place].size, true);
        push(p, true,
             (ot_chain_move){.kind = OT_CHAIN_SPREAD, .to = spread[place], .in = {place, 0, 0}});
    }
    return spread[place];
}

/* The move of one step; its class follows from those of its operands. */
static void place_step(ot_chain_schedule *p, const ot_chain_step *s, uint16_t to, uint16_t *spread)
{
    const ot_chain_code_info *info = &ot_chain_codes[s->code];
    ot_chain_move m = {.kind = OT_CHAIN_COMPUTE, .code = s->code, .amount = 2, .to = to};
    bool keep = true, numbers = true;
    unsigned single = 0;
    for (uint32_t k = 0; k < info->operands; k++) {
        m.in[k] = s->in[k];
        need(p, m.in[k]);
        keep = keep && p->places[m.in[k]].keep;
        if (p->places[m.in[k]].where == OT_CHAIN_NUMBER)
            single |= 1u << k;
        else
            numbers = false;
    }
    ot_chain_storage *at = &p->places[to];
    at->keep = keep;
    at->where = numbers ? OT_CHAIN_NUMBER : OT_CHAIN_REGISTER;
    if (numbers) {
        m.amount = 0;
    } else {
        if (keep) m.amount = 1;
        if (s->code == OT_CH_MUL_ADD && (single & 3u) == 1) { /* the number is the second factor */
            uint16_t swap = m.in[0];
            m.in[0] = m.in[1];
            m.in[1] = swap;
            single ^= 3u;
        }
        m.single = (uint8_t)ot_chain_singles(s->code, single);
        for (uint32_t k = 0; k < info->operands; k++)
            if ((single & ~(unsigned)m.single) >> k & 1u) m.in[k] = spread_out(p, m.in[k], spread);
    }
    push(p, keep, m);
}

/* Does a move after `def` read memory that output array `a` overwrites? */
static bool is_read_later(const ot_chain_schedule *p, uint32_t def, uint32_t a)
{
    for (uint32_t k = def + 1; k < p->n_body; k++) {
        const ot_chain_move *m = &p->body[k];
        if (m->kind == OT_CHAIN_LOAD && p->base[m->array] == p->base[a]) return true;
        if (m->kind != OT_CHAIN_COMPUTE) continue;
        for (uint32_t i = 0; i < ot_chain_codes[m->code].operands; i++) {
            const ot_chain_storage *in = &p->places[m->in[i]];
            if (in->where == OT_CHAIN_MEMORY && in->index < p->c->n_inputs &&
                p->base[in->index] == p->base[a])
                return true;
        }
    }
    return false;
}

/* Memory that this run neither reads nor could keep in a cache: half the traffic when it is not
 * fetched before it is written. */
static bool streams(const ot_chain_schedule *p, uint32_t a)
{
    if (!p->is_large || p->size[a] != 4 || !is_dense(p, a)) return false;
    for (uint32_t k = 0; k < p->c->n_inputs; k++)
        if (p->base[k] == p->base[a]) return false;
    return true;
}

static void place_outputs(ot_chain_schedule *p)
{
    const ot_chain *c = p->c;
    uint32_t n_compute = p->n_body;
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        uint32_t a = c->n_inputs + k, def = 0;
        uint16_t place = c->outputs[k];
        ot_chain_storage *at = &p->places[place];
        while (def < n_compute && p->body[def].to != place) def++;
        if (!at->keep && streams(p, a)) {
            push(p, false,
                 (ot_chain_move){
                     .kind = OT_CHAIN_STREAM, .in = {place, 0, 0}, .array = (uint16_t)a});
            continue;
        }
        if (!at->keep && is_dense(p, a) && !is_read_later(p, def, a)) {
            at->where = OT_CHAIN_MEMORY;
            at->index = (uint16_t)a;
            continue;
        }
        bool number = at->where == OT_CHAIN_NUMBER;
        push(p, false,
             (ot_chain_move){.kind = number ? OT_CHAIN_STORE_NUMBER : OT_CHAIN_STORE,
                             .in = {place, 0, 0},
                             .array = (uint16_t)a});
    }
}

/* ---- registers ---- */

static uint32_t places_read(const ot_chain_move *m)
{
    if (m->kind == OT_CHAIN_COMPUTE) return ot_chain_codes[m->code].operands;
    return m->kind == OT_CHAIN_LOAD || m->kind == OT_CHAIN_CYCLE ? 0 : 1;
}

/* Registers that are taken, and how many there ever were. */
typedef struct pool {
    bool taken[OT_CHAIN_PLACES];
    uint32_t most;
} pool;

static void take(pool *r, ot_chain_storage *at)
{
    uint16_t k = 0;
    while (r->taken[k]) k++;
    r->taken[k] = true;
    at->index = k;
    if (k + 1u > r->most) r->most = k + 1u;
}

static void release_operands(ot_chain_schedule *p, pool *r, uint32_t k, bool same_size)
{
    const ot_chain_move *m = &p->body[k];
    for (uint32_t i = 0; i < places_read(m); i++) {
        const ot_chain_storage *in = &p->places[m->in[i]];
        if (in->where != OT_CHAIN_REGISTER || in->keep || in->last != k) continue;
        if (same_size == (in->size == p->places[m->to].size)) r->taken[in->index] = false;
    }
}

static void assign_registers(ot_chain_schedule *p)
{
    pool r = {.most = 0};
    for (uint32_t k = 0; k < p->n_places; k++) {
        ot_chain_storage *at = &p->places[k];
        if (at->where == OT_CHAIN_REGISTER && at->keep) take(&r, at);
    }
    for (uint32_t k = 0; k < p->n_body; k++)
        for (uint32_t i = 0; i < places_read(&p->body[k]); i++)
            p->places[p->body[k].in[i]].last = (uint16_t)k;
    for (uint32_t k = 0; k < p->n_body; k++) {
        const ot_chain_move *m = &p->body[k];
        bool makes = m->kind == OT_CHAIN_COMPUTE || m->kind == OT_CHAIN_LOAD;
        if (!makes) continue;
        ot_chain_storage *to = &p->places[m->to];
        /* the result may take their place: elements of one size do not overtake */
        release_operands(p, &r, k, true);
        if (to->where == OT_CHAIN_REGISTER) take(&r, to);
        release_operands(p, &r, k, false);
    }
    p->n_registers = r.most;
}

/* ---- the plan ---- */

/* false: rows do not fit into a register. */
static bool lay_out(ot_chain_schedule *p)
{
    const ot_chain *c = p->c;
    uint16_t spread[OT_CHAIN_PLACES] = {0};
    uint32_t first = c->n_inputs + c->n_constants;
    place_inputs(p);
    for (uint32_t k = 0; k < c->n_steps; k++)
        place_step(p, &c->steps[k], (uint16_t)(first + k), spread);
    place_outputs(p);
    assign_registers(p);
    int64_t elems = OT_CHAIN_BYTES / 4 / (int64_t)ot_max(p->n_registers, 1);
    elems = ot_min(elems & ~15, OT_CHAIN_BLOCK_MAX);
    p->register_bytes = elems * 4;
    if (p->by_rows && p->cols.n > elems / 2) return false;
    p->block = p->by_rows ? elems / p->cols.n : elems;
    p->n_blocks = ot_ceil_div(p->by_rows ? p->rows.n : p->cols.n, p->block);
    return true;
}

bool ot_chain_plan_make(ot_chain_schedule *p, const ot_chain *c, uint32_t rank, const int64_t *dims,
                        const ot_chain_array *in, const ot_chain_array *out)
{
    ot_chain_dim d[OT_CHAIN_RANK];
    uint32_t n;
    for (uint32_t k = 0; k < rank; k++)
        if (dims[k] <= 0) return false;
    if (c->n_outputs == 0) return false;
    p->c = c;
    gather(p, rank, dims, in, out, d, &n);
    straighten(p, d, n);
    n = merge(p, d, n);
    if (n > 1 && d[n - 1].n <= SHORT_COLS) {
        split(p, d, n, true);
        if (lay_out(p)) return true;
    }
    split(p, d, n, false);
    return lay_out(p);
}
