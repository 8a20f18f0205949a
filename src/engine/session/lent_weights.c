/* Constants whose contents were lent, in memory that its owner takes back as a session is made.
 *
 *   what was packed             nobody reads it any more: returned, before the next one is packed
 *   what steps read as it is    copied; arrays that lie in it, views among them, move along
 *
 * Small constants are not lent (docs/provider.md), so what implementations keep pointers to beside
 * their operands, as biases and scales, stays where it is; of products' panels the address is kept,
 * too.
 */
#include "session_make.h"

#include "engine/cpu/product/fast_product.h"
#include "engine/lower/lower.h"

#include "onnx/import/model_io.h"

typedef struct read_pieces {
    ot_lent *all; /* [n] sorted by address */
    size_t n, cap;
} read_pieces;

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const ot_lent *)a)->data,
                    y = (uintptr_t)((const ot_lent *)b)->data;
    return (x > y) - (x < y);
}

static void free_block(void *block) { ot_block_unref(block); }

/* ---- what is read ---- */

static bool is_within(const ot_lent *piece, const void *data)
{
    const char *at = data, *first = piece->data;
    return at >= first && at < first + piece->bytes;
}

/* Does a step read the piece, or a graph hand it out, or will something be packed from it? */
static bool is_wanted(const ot_session *s, const ot_lent *piece)
{
    for (const ot_packed *k = s->packed; k; k = k->next)
        if (k->fill && is_within(piece, k->source)) return true;
    for (const ot_schedule *p = s->all; p; p = p->next) {
        for (uint32_t k = 0; k < p->n_steps; k++)
            for (uint32_t j = 0; j < p->steps[k].n_in; j++) {
                const ot_nd *a = p->steps[k].in[j];
                if (a && is_within(piece, a->data) && !ot_reads_panels(&p->steps[k], j))
                    return true;
            }
        for (uint32_t k = 0; k < p->g->n_outputs; k++)
            if (is_within(piece, p->at[p->g->outputs[k]]->nd.data)) return true;
    }
    return false;
}

static bool add_piece(const ot_session *s, ot_arena *a, const ot_nd *nd, read_pieces *out)
{
    ot_lent piece;
    if (!nd || nd->block || !nd->data || !ot_import_lent_at(s->m, nd->data, &piece)) return true;
    return OT_PUSH(a, out->all, out->n, out->cap, piece);
}

/* Pieces that steps read; nothing is packed any more. */
static bool find_read(const ot_session *s, ot_arena *a, read_pieces *out)
{
    size_t kept = 0;
    for (const ot_schedule *p = s->all; p; p = p->next) {
        for (uint32_t k = 0; k < p->n_steps; k++)
            for (uint32_t j = 0; j < p->steps[k].n_in; j++)
                if (!ot_reads_panels(&p->steps[k], j) && !add_piece(s, a, p->steps[k].in[j], out))
                    return false;
        for (uint32_t k = 0; k < p->g->n_outputs; k++)
            if (!add_piece(s, a, &p->at[p->g->outputs[k]]->nd, out)) return false;
    }
    if (out->n) qsort(out->all, out->n, sizeof *out->all, by_address);
    for (size_t k = 0; k < out->n; k++)
        if (kept == 0 || out->all[kept - 1].data != out->all[k].data)
            out->all[kept++] = out->all[k];
    out->n = kept;
    return true;
}

/* ---- moving ---- */

/* Where data is when its piece is at `to`; NULL: nowhere. */
static void *moved(const ot_lent *piece, const void *data, char *to)
{
    if (!data || !is_within(piece, data)) return (void *)(uintptr_t)data;
    return to ? to + ((const char *)data - (const char *)piece->data) : NULL;
}

/* All that lies in the piece lies in `to`, or nowhere; the piece is its owner's. */
static void move_piece(ot_session *s, const ot_lent *piece, char *to)
{
    for (ot_schedule *p = s->all; p; p = p->next) {
        for (uint32_t k = 0; k < p->n_ids; k++) {
            ot_slot *slot = p->at[k];
            if (slot && !slot->nd.block) slot->nd.data = moved(piece, slot->nd.data, to);
        }
        for (ot_id v = 0; v < p->g->n_values; v++) {
            ot_tensor *t = (ot_tensor *)(uintptr_t)p->g->values[v].init;
            if (!t || !t->data || !is_within(piece, t->data)) continue;
            t->data = moved(piece, t->data, to);
            if (!to && p == s->top) s->figures.weight_bytes -= (int64_t)t->bytes;
        }
        for (uint32_t k = 0; k < p->n_steps; k++) {
            ot_product_panels *panels = p->steps[k].state.data;
            if (ot_reads_panels(&p->steps[k], 1)) panels->from = moved(piece, panels->from, to);
        }
    }
    ot_import_return(s->m, piece);
}

void ot_return_lent(ot_session *s, const void *data)
{
    ot_lent piece;
    if (ot_import_lent_at(s->m, data, &piece) && !is_wanted(s, &piece)) move_piece(s, &piece, NULL);
}

static ot_status adopt(ot_session *s, const ot_lent *piece)
{
    ot_block *block = ot_block_new(NULL, piece->bytes);
    if (!block) return ot_fail_nomem(s->d);
    memcpy(ot_block_data(block), piece->data, piece->bytes);
    OT_TRY(ot_packed_keep(s, ot_block_data(block), 0, block, free_block));
    move_piece(s, piece, ot_block_data(block));
    return OT_OK;
}

ot_status ot_adopt_lent(ot_session *s)
{
    ot_arena *a = ot_arena_new();
    read_pieces read = {0};
    ot_lent piece;
    ot_status st = a && find_read(s, a, &read) ? OT_OK : ot_fail_nomem(s->d);
    for (size_t k = 0; st == OT_OK && k < read.n; k++) st = adopt(s, &read.all[k]);
    for (ot_schedule *p = s->all; st == OT_OK && p; p = p->next)
        for (uint32_t k = 0; k < p->n_ids; k++)
            if (p->at[k] && !p->at[k]->nd.block &&
                ot_import_lent_at(s->m, p->at[k]->nd.data, &piece))
                move_piece(s, &piece, NULL);
    ot_arena_free(a);
    return st;
}
