/* Runs of chains: blocks shared out over threads, and the moves of each block.
 *
 *   thread 0            thread 1
 *   b0 b1 | b0 b1 | b0  b1 | b0 b1 | b0 b1        blocks of the runs, in the order of memory
 *   ^ setup           ^    ^ setup                 whenever a thread comes to another run
 *
 * A frame is what a thread has of its own: registers, numbers, and the address of each place.
 */
#include "chain_plan.h"

#include "engine/core/pool.h"

#define THREAD_WORK 65536.0 /* additions that are worth a thread */

typedef struct frame {
    const ot_chain_schedule *p;
    char *run[OT_CHAIN_ARRAYS]; /* first element of the run */
    void *at[OT_CHAIN_PLACES];
    ot_chain_cell numbers[OT_CHAIN_CELLS];
    int64_t first, rows, cols; /* of the block: first row (or col), extents */
    _Alignas(64) char registers[OT_CHAIN_BYTES];
} frame;

/* ---- moves ---- */

static ot_chain_grid grid_of(const frame *f, uint32_t array)
{
    const ot_chain_schedule *p = f->p;
    return (ot_chain_grid){f->rows, f->cols, p->rows.strides[array], p->cols.strides[array]};
}

static char *block_address(const frame *f, uint32_t array)
{
    const ot_chain_schedule *p = f->p;
    int64_t stride = p->by_rows ? p->rows.strides[array] : p->cols.strides[array];
    return f->run[array] + f->first * stride * p->size[array];
}

static void move(frame *f, const ot_chain_move *m)
{
    const ot_chain_schedule *p = f->p;
    bool stores = m->kind == OT_CHAIN_STORE || m->kind == OT_CHAIN_STORE_NUMBER;
    size_t size = p->places[stores ? m->in[0] : m->to].size;
    void *to = f->at[m->to], *from = f->at[m->in[0]];
    ot_chain_grid g;
    switch ((ot_chain_move_kind)m->kind) {
    case OT_CHAIN_COMPUTE: {
        int64_t n = m->amount == 0 ? 1 : m->amount == 1 ? p->block * p->cols.n : f->rows * f->cols;
        uint32_t operands = ot_chain_codes[m->code].operands;
        ot_chain_codes[m->code].run((ot_chain_code)m->code, m->single, to, from,
                                    operands > 1 ? f->at[m->in[1]] : NULL,
                                    operands > 2 ? f->at[m->in[2]] : NULL, n);
        break;
    }
    case OT_CHAIN_SPREAD: ot_chain_fill(to, from, p->register_bytes / 4, size); break;
    case OT_CHAIN_LOAD:
        g = grid_of(f, m->array);
        ot_chain_load(to, block_address(f, m->array), &g, size);
        break;
    case OT_CHAIN_CYCLE:
        g = (ot_chain_grid){1, p->cols.n, 0, p->cols.strides[m->array]};
        ot_chain_load(to, f->run[m->array], &g, size);
        ot_chain_repeat(to, p->cols.n, p->block * p->cols.n, size);
        break;
    case OT_CHAIN_STORE:
        g = grid_of(f, m->array);
        ot_chain_store(block_address(f, m->array), from, &g, size);
        break;
    case OT_CHAIN_STREAM:
        ot_chain_stream((float *)(void *)block_address(f, m->array), from, f->rows * f->cols);
        break;
    case OT_CHAIN_STORE_NUMBER:
        g = grid_of(f, m->array);
        ot_chain_fill_grid(block_address(f, m->array), from, &g, size);
        break;
    }
}

/* ---- frames ---- */

static void open_frame(frame *f, const ot_chain_schedule *p)
{
    const ot_chain *c = p->c;
    f->p = p;
    for (uint32_t k = 0; k < c->n_constants; k++)
        f->numbers[c->n_inputs + k] = c->cells[c->n_inputs + k];
    for (uint32_t k = 0; k < p->n_places; k++) {
        const ot_chain_storage *at = &p->places[k];
        f->at[k] = NULL;
        if (at->where == OT_CHAIN_REGISTER)
            f->at[k] = f->registers + at->index * p->register_bytes;
        else if (at->where == OT_CHAIN_NUMBER)
            f->at[k] = &f->numbers[k].constant;
    }
}

/* Run number `run`: addresses, and what holds for all its blocks. */
static void open_run(frame *f, int64_t run)
{
    const ot_chain_schedule *p = f->p;
    for (uint32_t a = 0; a < p->n_arrays; a++) f->run[a] = p->base[a];
    for (uint32_t k = p->n_outer; k-- > 0;) {
        const ot_chain_dim *d = &p->outer[k];
        int64_t i = run % d->n;
        run /= d->n;
        for (uint32_t a = 0; a < p->n_arrays; a++) f->run[a] += i * d->strides[a] * p->size[a];
    }
    for (uint32_t k = 0; k < p->c->n_inputs; k++)
        if (p->places[k].where == OT_CHAIN_NUMBER) f->at[k] = f->run[k];
    for (uint32_t k = 0; k < p->n_setup; k++) move(f, &p->setup[k]);
}

static void run_block(frame *f, int64_t block)
{
    const ot_chain_schedule *p = f->p;
    int64_t all = p->by_rows ? p->rows.n : p->cols.n;
    f->first = block * p->block;
    int64_t n = ot_min(p->block, all - f->first);
    f->rows = p->by_rows ? n : 1;
    f->cols = p->by_rows ? p->cols.n : n;
    for (uint32_t k = 0; k < p->n_places; k++)
        if (p->places[k].where == OT_CHAIN_MEMORY) f->at[k] = block_address(f, p->places[k].index);
    for (uint32_t k = 0; k < p->n_body; k++) move(f, &p->body[k]);
}

/* Blocks first ... last - 1 of all runs. */
static void run_blocks(const ot_chain_schedule *p, int64_t first, int64_t last)
{
    frame f;
    open_frame(&f, p);
    int64_t run = -1;
    for (int64_t k = first; k < last; k++) {
        if (k / p->n_blocks != run) {
            run = k / p->n_blocks;
            open_run(&f, run);
        }
        run_block(&f, k - run * p->n_blocks);
    }
    if (p->is_large) ot_chain_stream_end();
}

static void blocks_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    (void)worker;
    run_blocks(job, first, end);
}

void ot_chain_run(const ot_chain *c, uint32_t rank, const int64_t *dims, const ot_chain_array *in,
                  const ot_chain_array *out, uint32_t threads)
{
    ot_chain_schedule p;
    if (!ot_chain_plan_make(&p, c, rank, dims, in, out)) return;
    int64_t total = p.n_runs * p.n_blocks;
    double work = (double)p.n_runs * (double)p.rows.n * (double)p.cols.n * (c->work + 1);
    ot_pool_share((uint32_t)ot_min(threads, ot_min(total, (int64_t)(work / THREAD_WORK) + 1)),
                  total, 1, blocks_share, &p);
}
