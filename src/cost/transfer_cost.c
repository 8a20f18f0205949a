/* Graph inputs and results on their way between host and device, for runtimes that keep them on
 * the host (ot_runtime.moves_tiles) and targets that say what a transfer takes.
 *
 *   whole  upload | kernels | download  who reads an input first, and who makes a result, pays for
 *          it: tiled or not
 *
 *   in tiles  up 0 | up 1 | up 2 |                of inputs that one node reads, by windows, and of
 *                                                 results that nobody reads:
 *                  | k 0 | k 1 | k 2 |            the longest of the three rows hides the others,
 *                                                 but for the first tile
 *                        | down 0 | down 1 | ...  on its way in and the last one on its way out
 */
#include "cost.h"

#include <math.h>

static bool counts(const ot_target *t)
{
    return t->runtime->moves_tiles && t->transfers.upload > 0;
}

static double upload_seconds(const ot_target *t, double bytes, double times)
{
    return bytes / t->transfers.upload + times * t->transfers.upload_start;
}

static double download_seconds(const ot_target *t, double bytes, double times)
{
    return bytes / t->transfers.download + times * t->transfers.download_start;
}

static bool is_on_host(const ot_seq *s, ot_id v)
{
    return v != OT_NONE && s->act[v] && s->g->values[v].is_input && s->def[v] == OT_NONE;
}

static bool reads_first(const ot_seq *s, uint32_t p, ot_id v)
{
    const ot_value *x = &s->g->values[v];
    for (uint32_t u = 0; u < x->n_uses; u++) {
        const uint32_t at = s->pos[x->uses[u]];
        if (at != OT_NONE && at < p) return false;
    }
    return true;
}

static bool is_before(const ot_node *n, uint32_t k)
{
    for (uint32_t j = 0; j < k; j++)
        if (n->in[j] == n->in[k]) return true;
    return false;
}

double ot_cost_transfers(const ot_seq *s, uint32_t p, const ot_target *t)
{
    const ot_node *n = &s->g->nodes[s->node[p]];
    double seconds = 0;
    if (!counts(t)) return 0;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (is_on_host(s, n->in[k]) && !is_before(n, k) && reads_first(s, p, n->in[k]))
            seconds += upload_seconds(t, (double)s->bytes[n->in[k]], 1);
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE && s->g->values[n->out[k]].is_output)
            seconds += download_seconds(t, (double)s->bytes[n->out[k]], 1);
    return seconds;
}

void ot_streams_add_input(ot_totals *x, const ot_seq *s, const ot_target *t, ot_id v,
                          double windows, double largest)
{
    const double whole = (double)s->bytes[v];
    if (!counts(t) || !is_on_host(s, v) || s->g->values[v].n_uses != 1) return;
    if (2 * largest > OT_STREAM_PART_MOST * whole || windows > OT_STREAM_MOVES_MOST * whole) return;
    x->up_bytes += windows;
    x->up_whole += upload_seconds(t, whole, 1);
    x->n_up++;
}

void ot_streams_add_output(ot_totals *x, const ot_seq *s, const ot_target *t, ot_id v, int8_t axis)
{
    const ot_value *val = &s->g->values[v];
    if (!counts(t) || axis < 0 || !val->is_output || val->n_uses > 0) return;
    x->down_bytes += (double)s->bytes[v];
    x->n_down++;
}

double ot_cost_streams(const ot_target *t, const ot_totals *x, double kernels)
{
    if (x->transfers <= 0) return kernels;
    const double up = x->n_up ? upload_seconds(t, x->up_bytes, x->n_up * x->tiles) : 0;
    double whole = x->transfers - x->up_whole, down = 0;
    if (x->n_down && 2 <= OT_STREAM_PART_MOST * x->tiles) {
        down = download_seconds(t, x->down_bytes, x->n_down * x->tiles);
        whole -= download_seconds(t, x->down_bytes, x->n_down);
    }
    if (whole < 0) whole = 0; /* rounding */
    const double longest = fmax(kernels, fmax(up, down));
    return whole + longest + (up + kernels + down - longest) / x->tiles;
}
