/* ConvTranspose as ordinary convolutions, one for each phase of the stride, or one for all
 * phases at once.
 *
 *   stride 2, kernel 4, pad 1:  y[0] y[1] y[2] y[3] ...  phase 0: y[2t]   = w[1] x[t] + w[3] x[t-1]
 *                                |    |    |    |        phase 1: y[2t+1] = w[0] x[t+1] + w[2] x[t]
 *
 *   part   x --conv (stride 1)--> [maps of the part] on the coarse grid --interleave--> y
 *
 * All phases in one part compute each channel of each phase together: fewer channels are padding
 * when there are few of them, but the taps of all phases are padded to one kernel. With very few
 * channels a part also takes the phases of two or four neighbours along the last axis, and its
 * convolution steps over so many inputs. The cheapest is taken for which oneDNN has fast
 * primitives; which it has depends on the instruction set (with AVX-512 none reads fewer than 16
 * channels from blocks), on the pads and on what follows. Where there are none the node is not
 * fused: fast_deconv.c has it. oneDNN's own deconvolution takes the way of the gradient and is
 * ten times slower where the stride is 2.
 */
#include "engine/cpu/move/box.h"
#include "conv.h"

#define PARTS_MAX 64

typedef struct part {
    conv_op *op;
    ot_nd temp;                  /* its result: blocked or plain, no data */
    int64_t phase[3], phases[3]; /* first phase and number of them, along each axis */
    /* inputs from one window to the next; as many strides are one period of phases */
    int64_t step[3];
    int64_t skip[3];  /* results before the first that is wanted */
    int64_t extra[3]; /* taps of 0 before the first */
} part;

struct deconv_setup {
    uint32_t n, n_axes;
    /* of input and result, and of the parts' results: LW_PLAIN or LW_BLOCK */
    lw_layout x, y, temps;
    int64_t maps, stride[3];
    int64_t temp_bytes, work;
    part parts[PARTS_MAX];
};

/* ---- taps of a phase ---- */

/* y[stride t + phase] reads x[t + shift - j] through w[first + j stride], j in [0, n). */
typedef struct taps {
    int64_t first, shift, n;
} taps;

static taps taps_of(const ot_window *w, uint32_t a, int64_t phase)
{
    int64_t s = w->stride[a], at = phase + w->lo[a];
    taps t = {at % s, at / s, 0};
    t.n = t.first < w->kernel[a] ? ot_ceil_div(w->kernel[a] - t.first, s) : 0;
    return t;
}

/* Inputs that phases [phase, phase + phases) read, relative to t: [*lo, *lo + *n). */
static void reach(const ot_window *w, uint32_t a, int64_t phase, int64_t phases, int64_t *lo,
                  int64_t *n)
{
    int64_t from = INT64_MAX, to = INT64_MIN;
    for (int64_t p = phase; p < phase + phases; p++) {
        taps t = taps_of(w, a, p);
        if (t.n == 0) continue;
        from = ot_min(from, t.shift - t.n + 1);
        to = ot_max(to, t.shift);
    }
    *lo = from == INT64_MAX ? 0 : from;
    *n = from == INT64_MAX ? 1 : to - from + 1;
}

/* For one input. */
static double cost_of(const lw_conv *k, const part *p, int64_t block)
{
    int64_t maps = k->maps;
    double taps_each = 1;
    for (uint32_t a = 0; a < k->win.n; a++) {
        int64_t lo, n;
        reach(&k->win, a, p->phase[a], p->phases[a], &lo, &n);
        maps *= p->phases[a];
        taps_each *= (double)n / (double)p->step[a];
    }
    return (double)(ot_ceil_div(maps, block) * block) * taps_each;
}

static int64_t phase_count(const lw_conv *k)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < k->win.n; a++) n *= k->win.stride[a];
    return n;
}

static void nth_phase(const lw_conv *k, int64_t i, int64_t *phase)
{
    for (uint32_t a = k->win.n; a-- > 0;) {
        phase[a] = i % k->win.stride[a];
        i /= k->win.stride[a];
    }
}

/* Can it be split into convolutions at all? */
static bool splits(const lw_conv *k)
{
    const ot_nd *y = &k->y_form;
    size_t fixed;
    if (k->group != 1 || k->win.n > 3 || k->win.same_upper || k->win.same_lower) return false;
    if (ot_attr_ints(k->node, "output_shape", &fixed) || phase_count(k) > PARTS_MAX) return false;
    for (uint32_t a = 0; a < k->win.n; a++) {
        if (k->win.dilation[a] != 1 || k->win.lo[a] < 0 || y->dims[a + 2] < k->win.stride[a])
            return false;
    }
    return true;
}

/* ---- parts ---- */

/* w[channel][map][taps...] of the model -> [phase, map][channel][kernel of the part...]. */
static void part_weights(const lw_conv *k, const float *weights, const part *p, const lw_conv *sub,
                         float *out)
{
    int64_t taps_n = 1, model_n = 1, phases = 1, phase[3], lo[3], n;
    for (uint32_t a = 0; a < k->win.n; a++) {
        taps_n *= sub->win.kernel[a];
        model_n *= k->win.kernel[a];
        phases *= p->phases[a];
        reach(&k->win, a, p->phase[a], p->phases[a], &lo[a], &n);
        lo[a] -= p->extra[a];
    }
    for (int64_t f = 0; f < phases; f++) {
        int64_t rest = f;
        for (uint32_t a = k->win.n; a-- > 0; rest /= p->phases[a])
            phase[a] = p->phase[a] + rest % p->phases[a];
        for (int64_t q = 0; q < taps_n; q++) {
            int64_t at = 0, step = 1, left = q;
            bool inside = true;
            for (uint32_t a = k->win.n; a-- > 0; left /= sub->win.kernel[a]) {
                taps t = taps_of(&k->win, a, phase[a]);
                int64_t j = t.shift - (lo[a] + left % sub->win.kernel[a]);
                inside = inside && j >= 0 && j < t.n;
                at += (t.first + j * k->win.stride[a]) * step;
                step *= k->win.kernel[a];
            }
            for (int64_t m = 0; m < k->maps; m++)
                for (int64_t c = 0; c < sub->channels; c++)
                    out[((f * k->maps + m) * sub->channels + c) * taps_n + q] =
                        inside ? weights[(c * k->maps + m) * model_n + at] : 0;
        }
    }
}

/* The convolution of a part without its weights, and the form of its result. false: sizes too
 * large to count. */
static bool open_part(const lw_pass *l, const lw_conv *k, const ot_nd *x, lw_layout temp, part *p,
                      lw_conv *sub)
{
    const ot_nd *y = &k->y_form;
    int64_t dims[5] = {x->dims[0], k->maps}, count;
    *sub = *k;
    sub->channels = x->dims[1];
    sub->transposed = false;
    for (uint32_t a = 0; a < k->win.n; a++) {
        int64_t lo;
        reach(&k->win, a, p->phase[a], p->phases[a], &lo, &sub->win.kernel[a]);
        sub->win.stride[a] = p->step[a];
        /* inputs that nobody wants, before and behind, are convolved all the same: primitives
         * take no negative pads */
        p->skip[a] = ot_ceil_div(ot_max(0, lo), p->step[a]);
        sub->win.lo[a] = p->skip[a] * p->step[a] - lo;
        int64_t wanted = p->skip[a] +
                         ot_ceil_div(y->dims[a + 2] - p->phase[a], k->win.stride[a] * p->step[a]);
        sub->win.out[a] = ot_max(
            wanted,
            ot_floor_div(sub->win.in[a] + sub->win.lo[a] - sub->win.kernel[a], p->step[a]) + 1);
        sub->win.hi[a] = 0;
        /* nor do they take pads as long as the kernel, behind: where the last results read
         * nothing, the kernel grows */
        int64_t behind = (sub->win.out[a] - 1) * p->step[a] + sub->win.kernel[a] - sub->win.in[a] -
                         sub->win.lo[a];
        p->extra[a] = ot_max(0, behind - sub->win.kernel[a] + 1);
        sub->win.kernel[a] += p->extra[a];
        sub->win.lo[a] += p->extra[a];
        sub->maps *= p->phases[a];
        dims[a + 2] = sub->win.out[a];
    }
    dims[1] = count = sub->maps;
    if (temp == LW_BLOCK)
        ot_nd_set_blocked(&p->temp, OT_F32, x->rank, dims, l->block);
    else
        ot_nd_set_dense(&p->temp, OT_F32, x->rank, dims);
    for (uint32_t a = 0; a < k->win.n; a++)
        if (!ot_mul_i64(count, sub->win.kernel[a], &count)) return false;
    return ot_mul_i64(count, sub->channels, &count) && ot_nd_span(&p->temp, &count);
}

static ot_status make_part(lw_pass *l, const lw_conv *k, const ot_nd *x, lw_layout temp, part *p)
{
    lw_conv sub;
    if (!open_part(l, k, x, temp, p, &sub)) return ot_fail_nomem(l->p->s->d);
    int64_t count = sub.maps * sub.channels, given = k->maps * sub.channels;
    for (uint32_t a = 0; a < k->win.n; a++) {
        count *= sub.win.kernel[a];
        given *= k->win.kernel[a];
    }
    ot_block *copy;
    const float *model = lw_conv_weights(k, given, &copy);
    float *weights = OT_NEW_N(l->scratch, float, count);
    sub.scale = OT_NEW_N(l->scratch, float, sub.maps);
    sub.shift = OT_NEW_N(l->scratch, float, sub.maps);
    bool ok = model && weights && sub.scale && sub.shift;
    if (ok) part_weights(k, model, p, &sub, weights);
    ot_block_unref(copy);
    if (!ok) return ot_fail_nomem(l->p->s->d);
    for (int64_t m = 0; m < sub.maps; m++) {
        sub.scale[m] = k->scale[m % k->maps];
        sub.shift[m] = k->shift[m % k->maps];
    }
    sub.weights = weights;
    sub.weights_type = OT_F32;
    sub.form = ot_hash_bytes(ot_hash_bytes(1, p->phase, sizeof p->phase), p->phases,
                             sizeof p->phases);
    sub.form = ot_hash_bytes(sub.form, k->win.lo, sizeof k->win.lo);
    sub.form = ot_hash_bytes(sub.form, p->step, sizeof p->step);
    return lw_conv_op(l, &sub, x, &p->temp, false, &p->op);
}

/* ---- choosing ---- */

/* One part for all phases of `wide` neighbours along the last axis. */
static part all_phases(const lw_conv *k, int64_t wide)
{
    part p = {.op = NULL};
    for (uint32_t a = 0; a < k->win.n; a++) {
        p.step[a] = a + 1 == k->win.n ? wide : 1;
        p.phases[a] = k->win.stride[a] * p.step[a];
    }
    return p;
}

/* Way 0: a part for each phase. Way i > 0: one part for all phases of 2^(i-1) neighbours. false:
 * there is no such way. */
#define WAYS 4

static bool split(const lw_conv *k, uint32_t way, deconv_setup *d)
{
    int64_t n = phase_count(k), one[3] = {1, 1, 1}, wide = (int64_t)1 << way >> 1;
    memset(d->parts, 0, sizeof d->parts);
    if (way > 0) {
        d->n = 1;
        d->parts[0] = all_phases(k, wide);
        return n * wide <= PARTS_MAX;
    }
    d->n = (uint32_t)n;
    for (int64_t i = 0; i < n; i++) {
        part *p = &d->parts[i];
        nth_phase(k, i, p->phase);
        memcpy(p->phases, one, sizeof one);
        memcpy(p->step, one, sizeof one);
    }
    return true;
}

/* The ways, the cheapest first, of equal ones the lower; their number. */
static uint32_t rank_ways(const lw_pass *l, const lw_conv *k, deconv_setup *d, uint32_t *ways)
{
    double costs[WAYS];
    uint32_t n = 0;
    for (uint32_t way = 0; way < WAYS; way++) {
        double cost = 0;
        uint32_t at = n;
        if (!split(k, way, d)) continue;
        for (uint32_t j = 0; j < d->n; j++) cost += cost_of(k, &d->parts[j], l->block);
        for (; at > 0 && costs[at - 1] > cost; at--) {
            costs[at] = costs[at - 1];
            ways[at] = ways[at - 1];
        }
        costs[at] = cost;
        ways[at] = way;
        n++;
    }
    return n;
}

static void input_in(const lw_pass *l, const lw_conv *k, lw_layout layout, ot_nd *x)
{
    lw_conv_in_layout(l, &k->x_form, layout, x);
}

static bool has_primitives(lw_pass *l, const lw_conv *k, deconv_setup *d)
{
    ot_nd x;
    lw_conv sub;
    input_in(l, k, d->x, &x);
    for (uint32_t j = 0; j < d->n; j++)
        if (!open_part(l, k, &x, d->temps, &d->parts[j], &sub) ||
            !lw_conv_takes(l, &sub, &x, &d->parts[j].temp, false))
            return false;
    return true;
}

/* The cheapest way that has primitives, and its layouts: parts in blocks first, then plain ones
 * (im2col). */
static bool choose(lw_pass *l, const lw_conv *k, deconv_setup *d)
{
    bool few = k->x_form.dims[1] < 8;
    uint32_t ways[WAYS], n = rank_ways(l, k, d, ways);
    const struct {
        lw_layout x, temps;
    } layouts[] = {{few ? LW_PLAIN : LW_BLOCK, LW_BLOCK},
                   {few ? LW_BLOCK : LW_PLAIN, LW_BLOCK},
                   {LW_PLAIN, LW_PLAIN}};
    for (uint32_t j = 0; j < n * 3; j++) {
        bool plain = j >= n * 2; /* 3 layouts: two of them for each way, then the third for each */
        uint32_t at = plain ? 2 : j % 2;
        if (!split(k, ways[plain ? j - n * 2 : j / 2], d)) continue;
        d->x = layouts[at].x;
        d->temps = layouts[at].temps;
        if (has_primitives(l, k, d)) return true;
    }
    return false;
}

bool lw_deconv_supported(lw_pass *l, const lw_conv *k)
{
    deconv_setup d;
    if (k->type != OT_F32) return lw_strips_supported(l, k);
    return splits(k) && choose(l, k, &d);
}

/* ---- running ---- */

/* Maps of one phase from the coarse grid to their places. base: the first of its channels in temp.
 */
static void interleave(const deconv_setup *d, const part *p, const ot_nd *temp,
                       const int64_t *phase, int64_t base, const ot_nd *y, uint32_t threads)
{
    uint32_t n = d->n_axes, rank = n + 3;
    /* plain: blocks of one channel */
    int64_t b = ot_max(1, temp->chan_block), dims[6], from[6], to[6], at = 0;
    const float *src = temp->data;
    dims[0] = y->dims[0];
    dims[1] = y->chan_block ? ot_ceil_div(d->maps, b) : 1;
    dims[rank - 1] = y->chan_block ? b : 1;
    from[0] = temp->strides[0];
    from[1] = temp->strides[1];
    to[0] = y->strides[0];
    to[1] = y->strides[1];
    from[rank - 1] = to[rank - 1] = 1;
    for (uint32_t a = 0; a < n; a++) {
        int64_t period = d->stride[a] * p->step[a];
        dims[a + 2] = ot_ceil_div(y->dims[a + 2] - phase[a], period);
        from[a + 2] = temp->strides[a + 2];
        to[a + 2] = y->strides[a + 2] * period;
        at += phase[a] * y->strides[a + 2];
        src += p->skip[a] * temp->strides[a + 2];
    }
    if (y->chan_block) {
        ot_box_copy((ot_box_shape){sizeof *src, rank, dims}, (float *)y->data + at, to,
                    src + base / b * temp->strides[1], from, threads);
        return;
    }
    for (int64_t m = 0; m < d->maps; m++)
        ot_box_copy((ot_box_shape){sizeof *src, rank, dims},
                    (float *)y->data + at + m * y->strides[1], to,
                    src + (base + m) / b * temp->strides[1] + (base + m) % b, from, threads);
}

bool lw_deconv_run(const deconv_setup *d, const ot_nd *x, const ot_nd *y, void *work,
                   uint32_t threads)
{
    for (uint32_t k = 0; k < d->n; k++) {
        const part *p = &d->parts[k];
        ot_nd temp = p->temp;
        temp.data = work;
        if (!lw_conv_run(p->op, x->data, temp.data, NULL, (char *)work + d->temp_bytes))
            return false;
        int64_t n = 1, phase[3];
        for (uint32_t a = 0; a < d->n_axes; a++) n *= p->phases[a];
        for (int64_t f = 0; f < n; f++) {
            int64_t rest = f;
            for (uint32_t a = d->n_axes; a-- > 0; rest /= p->phases[a])
                phase[a] = p->phase[a] + rest % p->phases[a];
            interleave(d, p, &temp, phase, f * d->maps, y, threads);
        }
    }
    return true;
}

static ot_status run_deconv(ot_call *c)
{
    OT_TRY(ot_call_place(c, 0));
    bool ok = lw_deconv_run(c->plan, c->in[0], c->out[0], c->work, c->threads);
    return ok ? OT_OK : ot_call_fail(c, "oneDNN failed");
}

int64_t lw_deconv_work(const deconv_setup *d) { return d->work; }

void lw_deconv_free(deconv_setup *d)
{
    for (uint32_t k = 0; d && k < d->n; k++) lw_conv_free(d->parts[k].op);
}

static void free_plan(void *data) { lw_deconv_free(data); }

/* Parts and their scratch. */
static ot_status prepare(lw_pass *l, const lw_conv *k, deconv_setup *d)
{
    int64_t most = 0, bytes;
    ot_nd x;
    input_in(l, k, d->x, &x);
    for (uint32_t j = 0; j < d->n; j++) {
        OT_TRY(make_part(l, k, &x, d->temps, &d->parts[j]));
        /* chosen because it has a primitive, which can only lack memory now */
        if (!d->parts[j].op || !ot_nd_span(&d->parts[j].temp, &bytes))
            return ot_fail_nomem(l->p->s->d);
        d->temp_bytes = ot_max(d->temp_bytes, ot_ceil_div(bytes, OT_ARENA_ALIGN) * OT_ARENA_ALIGN);
        most = ot_max(most, lw_conv_work(d->parts[j].op));
    }
    d->work = d->temp_bytes + most;
    return OT_OK;
}

static ot_status push(lw_pass *l, lw_unit *u, const lw_conv *k, deconv_setup *d)
{
    ot_id in, out;
    ot_step *step = NULL;
    OT_TRY(lw_need(l, k->x, LW_BIT(d->x), d->x, &in));
    OT_TRY(lw_make(l, k->y, d->y, &out));
    OT_TRY(
        lw_push(l, u->nodes[0], run_deconv, d, (ot_id_list){&in, 1}, (ot_id_list){&out, 1}, &step));
    step->state = (ot_op_state){d, free_plan};
    step->work = d->work;
    return OT_OK;
}

ot_status lw_deconv_op(lw_pass *l, const lw_conv *k, deconv_setup **out, lw_layout *lx,
                       lw_layout *ly)
{
    deconv_setup *d = *out = OT_NEW(l->a, deconv_setup);
    /* it had a way, which can only lack memory now */
    if (!d || !choose(l, k, d)) return ot_fail_nomem(l->p->s->d);
    d->n_axes = k->win.n;
    d->maps = k->maps;
    memcpy(d->stride, k->win.stride, sizeof d->stride);
    ot_status st = prepare(l, k, d);
    if (st != OT_OK) {
        lw_deconv_free(d);
        *out = NULL;
        return st;
    }
    bool together = d->n == 1 && d->parts[0].temp.dims[1] > k->maps;
    *lx = d->x;
    *ly = d->y = d->temps == LW_PLAIN || (together && k->maps % l->block) ? LW_PLAIN : LW_BLOCK;
    return OT_OK;
}

ot_status lw_write_deconv(lw_pass *l, lw_unit *u)
{
    const lw_conv *k = u->plan;
    deconv_setup *d;
    lw_layout lx, ly;
    if (k->type != OT_F32) return lw_write_strips(l, u);
    OT_TRY(lw_deconv_op(l, k, &d, &lx, &ly));
    ot_status st = push(l, u, k, d);
    if (st != OT_OK) lw_deconv_free(d);
    return st;
}
