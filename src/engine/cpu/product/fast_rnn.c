/* LSTM, GRU, RNN in float32 with their usual activations: what depends on the input alone is one
 * product for all times at once.
 *
 *   x [seq * batch, input] * W'  + Wb + Rb  -->  gates [seq * batch, G * hidden]  one product
 *   time t:  gates[t] += h * R'  -->  activations  -->  h, Y[t]                    a small one each
 *
 * GRU keeps its third gate apart: its share of the state is weighed by the reset gate before or
 * after the product. Of sequences of unequal length those that have ended keep their state; their
 * outputs are 0. Other activations, clips, coupled gates, and whatever the operator refuses: the
 * reference.
 */
#include "engine/core/half.h"
#include "engine/cpu/chain/chain_math.h"
#include "fast_product.h"
#include "engine/core/session.h"

#include <strings.h>

typedef enum cell { CELL_RNN = 1, CELL_GRU = 3, CELL_LSTM = 4 } cell; /* number of gates */

typedef struct recurrence {
    cell cell;
    int64_t directions, seq, batch, input, hidden, width; /* width: of all gates */
    bool batch_first, reverse, before_reset;
    const float *x, *w, *r, *bias, *h0, *c0, *peep; /* NULL where omitted */
    const int32_t *lens;                            /* [batch] or NULL: all of length seq */
    float *y, *y_h, *y_c;                           /* NULL where not wanted */
    float *gates;                                   /* [seq * batch][width], rows as those of x */
    /* [batch][width] GRU: R h + Rb; or [batch][hidden]: R (r * h) */
    float *state;
    float *h, *c;  /* [batch][hidden] */
    float *panels; /* R packed, or NULL */
    bool vectors;  /* panels are for products of vectors */
    float *now;    /* [batch][width] gates of one step where sequences have lengths */
} recurrence;

/* ---- what is done here ---- */

static bool usual_activations(const ot_node *n, cell kind)
{
    static const char *const usual[3][3] = {
        {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const ot_attr *names = ot_attr_find(n, "activations");
    size_t row = kind == CELL_RNN ? 0 : kind == CELL_GRU ? 1 : 2;
    if (!names) return true;
    if (names->kind != OT_ATTR_STRINGS) return false;
    for (size_t k = 0; k < names->n; k++)
        if (strcasecmp(names->strings[k], usual[row][k % (row + 1)]) != 0) return false;
    return true;
}

static bool usual_attributes(const ot_node *n, recurrence *s)
{
    const char *direction = ot_attr_str(n, "direction", "forward");
    const ot_attr *names = ot_attr_find(n, "activations");
    size_t per = s->cell == CELL_RNN ? 1 : s->cell == CELL_GRU ? 2 : 3;
    s->reverse = strcmp(direction, "reverse") == 0;
    s->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    if (!s->reverse && s->directions == 1 && strcmp(direction, "forward") != 0) return false;
    s->batch_first = ot_attr_int(n, "layout", 0) != 0;
    s->before_reset = ot_attr_int(n, "linear_before_reset", 0) != 0;
    if (names && names->n != 0 && names->n != per * (size_t)s->directions) return false;
    return usual_activations(n, s->cell) && ot_attr_int(n, "input_forget", 0) == 0 &&
           !(ot_attr_float(n, "clip", 0) > 0);
}

/* Input k, dense float32 of these dims, in *out; omitted: NULL, if it may be. */
static bool take(const ot_call *c, uint32_t k, bool may_miss, uint32_t rank, const int64_t *dims,
                 const float **out)
{
    const ot_nd *a = ot_num_in(c, k);
    *out = a ? a->data : NULL;
    return a ? ot_nd_same_shape(a, OT_F32, rank, dims) : may_miss;
}

static bool take_lengths(const ot_call *c, recurrence *s)
{
    const ot_nd *lens = ot_num_in(c, 4);
    if (!lens) return true;
    s->lens = lens->data;
    if (!ot_nd_same_shape(lens, OT_I32, 1, &s->batch)) return false;
    for (int64_t b = 0; b < s->batch; b++)
        if (s->lens[b] < 0 || s->lens[b] > s->seq) return false;
    return true;
}

static bool usual_operands(const ot_call *c, recurrence *s)
{
    const ot_nd *x = ot_num_in(c, 0), *r = ot_num_in(c, 2);
    if (!x || !r || x->rank != 3 || r->rank != 3) return false;
    s->seq = x->dims[s->batch_first ? 1 : 0];
    s->batch = x->dims[s->batch_first ? 0 : 1];
    s->input = x->dims[2];
    s->hidden = r->dims[2];
    if (s->seq < 1 || s->batch < 1 || s->input < 1 || s->hidden < 1 || s->hidden > INT32_MAX)
        return false;
    s->width = s->hidden * (int64_t)s->cell;
    int64_t d = s->directions, w_dims[3] = {d, s->width, s->input},
            r_dims[3] = {d, s->width, s->hidden};
    int64_t b_dims[2] = {d, 2 * s->width},
            state[3] = {s->batch_first ? s->batch : d, s->batch_first ? d : s->batch, s->hidden};
    int64_t p_dims[2] = {d, 3 * s->hidden};
    if (ot_attr_int(c->node, "hidden_size", s->hidden) != s->hidden || !take_lengths(c, s))
        return false;
    return take(c, 0, false, 3, x->dims, &s->x) && take(c, 1, false, 3, w_dims, &s->w) &&
           take(c, 2, false, 3, r_dims, &s->r) && take(c, 3, true, 2, b_dims, &s->bias) &&
           take(c, 5, true, 3, state, &s->h0) &&
           (s->cell != CELL_LSTM ||
            (take(c, 6, true, 3, state, &s->c0) && take(c, 7, true, 2, p_dims, &s->peep)));
}

/* ---- memory ---- */

static ot_status open_outputs(ot_call *c, recurrence *s)
{
    int64_t d = s->directions,
            state[3] = {s->batch_first ? s->batch : d, s->batch_first ? d : s->batch, s->hidden};
    int64_t y[4] = {s->seq, d, s->batch, s->hidden},
            y_batch_first[4] = {s->batch, s->seq, d, s->hidden};
    float **data[3] = {&s->y, &s->y_h, &s->y_c};
    for (uint32_t k = 0; k < c->n_out && k < 3; k++) {
        const int64_t *dims = k > 0 ? state : s->batch_first ? y_batch_first : y;
        OT_TRY(ot_call_output(c, k, OT_F32, k > 0 ? 3 : 4, dims));
        *data[k] = ot_num_out(c, k) ? ot_num_out(c, k)->data : NULL;
    }
    return OT_OK;
}

enum {
    VECTORS_MAX = 2, /* sequences that are multiplied one after the other */
    PACKED_STEPS = 6 /* steps from which packing R for that pays */
};

static ot_status open_scratch(ot_call *c, recurrence *s)
{
    int64_t rows, gates, states, extra, panels = 0;
    s->vectors = s->batch <= VECTORS_MAX && s->seq >= PACKED_STEPS;
    if (s->vectors || (s->batch > 1 && ot_panels_pay()))
        panels = ot_panels_size(s->hidden, s->width);
    if (!ot_mul_i64(s->seq, s->batch, &rows) || !ot_mul_i64(rows, s->width, &gates) ||
        !ot_mul_i64(s->batch, s->hidden, &states) || !ot_mul_i64(s->batch, s->width, &extra))
        return OT_E_NOMEM;
    if (!(s->gates = ot_num_scratch(c, gates, sizeof *s->gates)) ||
        !(s->h = ot_num_scratch(c, states, sizeof *s->h)) ||
        !(s->c = ot_num_scratch(c, states, sizeof *s->c)) ||
        !(s->state = ot_num_scratch(c, extra, sizeof *s->state)))
        return OT_E_NOMEM;
    if (s->lens && !(s->now = ot_num_scratch(c, extra, sizeof *s->now))) return OT_E_NOMEM;
    s->panels = panels > 0 ? ot_num_scratch(c, panels, sizeof *s->panels) : NULL;
    return panels > 0 && !s->panels ? OT_E_NOMEM : OT_OK;
}

/* ---- products ---- */

/* The transpose of a row-major matrix with rows of n. */
static ot_matrix transposed(const float *data, int64_t n)
{
    return (ot_matrix){.data = data, .row_step = 1, .column_step = n, .ld = n, .transposed = true};
}

/* All times: gates = x W' + biases. Of GRU's third gate Rb is left out: it belongs to the
 * state's share. */
static ot_status from_input(ot_call *c, const recurrence *s, int64_t d)
{
    int64_t rows = s->seq * s->batch, both = s->cell == CELL_GRU ? 2 * s->hidden : s->width;
    const float *bias = s->bias ? s->bias + d * 2 * s->width : NULL;
    for (int64_t i = 0; bias && i < rows; i++)
        for (int64_t k = 0; k < s->width; k++)
            s->gates[i * s->width + k] = bias[k] + (k < both ? bias[s->width + k] : 0);
    ot_product_job j = {.m = rows,
                        .n = s->width,
                        .k = s->input,
                        .ldc = s->width,
                        .c = s->gates,
                        .alpha = 1,
                        .add = bias != NULL};
    j.a = (ot_matrix){.data = s->x, .row_step = s->input, .column_step = 1, .ld = s->input};
    j.b = transposed(s->w + d * s->width * s->input, s->input);
    return ot_product_shared(c, &j);
}

/* to [batch, columns] (rows ldc apart) += from [batch, hidden] * R' of gates [first, first +
 * columns). */
static ot_status from_state(const recurrence *s, int64_t d, int64_t first, int64_t columns,
                            const float *from, float *to, int64_t ldc)
{
    ot_product_job j = {
        .m = s->batch, .n = columns, .k = s->hidden, .ldc = ldc, .c = to, .alpha = 1, .add = true};
    j.a = (ot_matrix){.data = from, .row_step = s->hidden, .column_step = 1, .ld = s->hidden};
    j.b = transposed(s->r + (d * s->width + first) * s->hidden, s->hidden);
    if (first % OT_PANEL == 0 && s->panels) j.panels = s->panels + first * s->hidden;
    if (!j.panels || !s->vectors) return ot_product_run(&j);
    for (int64_t b = 0; b < s->batch; b++)
        ot_panels_add_vector(from + b * s->hidden, j.panels, to + b * ldc, columns, s->hidden);
    return OT_OK;
}

/* ---- activations: n units of one sequence ---- */

OT_CLONES static void activate_rnn(float *h, const float *g, int64_t n)
{
    cm_limits l = cm_make_limits();
    for (int64_t j = 0; j < n; j++) h[j] = cm_tanh(g[j], l);
}

/* Gates i, o, f look at the cell by peepholes, o at the new one. */
OT_CLONES static void activate_peeping(float *restrict h, float *restrict c,
                                       const float *restrict g, const float *restrict p, int64_t n)
{
    cm_limits l = cm_make_limits();
    for (int64_t j = 0; j < n; j++) {
        float i = cm_sigmoid(g[j] + p[j] * c[j], l),
              f = cm_sigmoid(g[2 * n + j] + p[2 * n + j] * c[j], l);
        c[j] = f * c[j] + i * cm_tanh(g[3 * n + j], l);
        h[j] = cm_sigmoid(g[n + j] + p[n + j] * c[j], l) * cm_tanh(c[j], l);
    }
}

/* Gates i, o, f, c. */
OT_CLONES static void activate_lstm(float *restrict h, float *restrict c, const float *restrict g,
                                    int64_t n)
{
    cm_limits l = cm_make_limits();
    for (int64_t j = 0; j < n; j++) {
        float i = cm_sigmoid(g[j], l), o = cm_sigmoid(g[n + j], l), f = cm_sigmoid(g[2 * n + j], l);
        c[j] = f * c[j] + i * cm_tanh(g[3 * n + j], l);
        h[j] = o * cm_tanh(c[j], l);
    }
}

/* Gates z, r in place; `reset` receives r h. */
OT_CLONES static void activate_gru_first(float *restrict reset, float *restrict g,
                                         const float *restrict h, int64_t n)
{
    cm_limits l = cm_make_limits();
    for (int64_t j = 0; j < n; j++) {
        g[j] = cm_sigmoid(g[j], l);
        g[n + j] = cm_sigmoid(g[n + j], l);
        reset[j] = g[n + j] * h[j];
    }
}

/* `state`: the state's share of the third gate, weighed already unless by_reset. */
OT_CLONES static void activate_gru_last(float *restrict h, const float *restrict g,
                                        const float *restrict state, bool by_reset, int64_t n)
{
    cm_limits l = cm_make_limits();
    for (int64_t j = 0; j < n; j++) {
        float share = by_reset ? g[n + j] * state[j] : state[j];
        float new = cm_tanh(g[2 * n + j] + share, l);
        h[j] = new + g[j] * (h[j] - new);
    }
}

/* ---- one time ---- */

/* Has sequence b ended before step k? */
static bool has_ended(const recurrence *s, int64_t b, int64_t k)
{
    return s->lens && k >= s->lens[b];
}

/* Step k of all sequences. g: gates of sequence 0, those of the others `step` floats apart. */
static ot_status gru_time(recurrence *s, int64_t d, int64_t k, float *g, int64_t step)
{
    int64_t n = s->hidden;
    const float *bias = s->bias ? s->bias + d * 2 * s->width + s->width + 2 * n : NULL;
    float *reset = s->state + s->batch * n;
    OT_TRY(from_state(s, d, 0, 2 * n, s->h, g, step));
    for (int64_t b = 0; b < s->batch; b++) {
        activate_gru_first(reset + b * n, g + b * step, s->h + b * n, n);
        for (int64_t j = 0; j < n; j++) s->state[b * n + j] = bias ? bias[j] : 0;
    }
    OT_TRY(from_state(s, d, 2 * n, n, s->before_reset ? s->h : reset, s->state, n));
    for (int64_t b = 0; b < s->batch; b++)
        if (!has_ended(s, b, k))
            activate_gru_last(s->h + b * n, g + b * step, s->state + b * n, s->before_reset, n);
    return OT_OK;
}

static ot_status one_time(recurrence *s, int64_t d, int64_t k, float *g, int64_t step)
{
    int64_t n = s->hidden;
    if (s->cell == CELL_GRU) return gru_time(s, d, k, g, step);
    OT_TRY(from_state(s, d, 0, s->width, s->h, g, step));
    for (int64_t b = 0; b < s->batch; b++) {
        float *h = s->h + b * n, *c = s->c + b * n;
        if (has_ended(s, b, k)) continue;
        if (s->cell == CELL_RNN)
            activate_rnn(h, g + b * step, n);
        else if (s->peep)
            activate_peeping(h, c, g + b * step, s->peep + d * 3 * n, n);
        else
            activate_lstm(h, c, g + b * step, n);
    }
    return OT_OK;
}

/* ---- sequences ---- */

/* Place of the state of direction d, sequence b. */
static int64_t state_at(const recurrence *s, int64_t d, int64_t b)
{
    return (s->batch_first ? b * s->directions + d : d * s->batch + b) * s->hidden;
}

static void load_state(recurrence *s, int64_t d)
{
    size_t bytes = (size_t)s->hidden * sizeof(float);
    memset(s->h, 0, (size_t)s->batch * bytes);
    memset(s->c, 0, (size_t)s->batch * bytes);
    for (int64_t b = 0; b < s->batch; b++) {
        if (s->h0) memcpy(s->h + b * s->hidden, s->h0 + state_at(s, d, b), bytes);
        if (s->c0) memcpy(s->c + b * s->hidden, s->c0 + state_at(s, d, b), bytes);
    }
}

static void store_state(const recurrence *s, int64_t d)
{
    size_t bytes = (size_t)s->hidden * sizeof(float);
    for (int64_t b = 0; b < s->batch; b++) {
        if (s->y_h) memcpy(s->y_h + state_at(s, d, b), s->h + b * s->hidden, bytes);
        if (s->y_c) memcpy(s->y_c + state_at(s, d, b), s->c + b * s->hidden, bytes);
    }
}

/* Sequences of unequal length that run backwards begin at times of their own. */
static int64_t time_of(const recurrence *s, bool backwards, int64_t b, int64_t k)
{
    int64_t len = s->lens ? s->lens[b] : s->seq;
    return !backwards || k >= len ? k : len - 1 - k;
}

/* Results of step k, at the time of each sequence; 0 after its end. */
static void store_step(const recurrence *s, int64_t d, bool backwards, int64_t k)
{
    size_t bytes = (size_t)s->hidden * sizeof *s->y;
    for (int64_t b = 0; s->y && b < s->batch; b++) {
        int64_t t = time_of(s, backwards, b, k);
        int64_t row = s->batch_first ? (b * s->seq + t) * s->directions + d
                                     : (t * s->directions + d) * s->batch + b;
        if (has_ended(s, b, k))
            memset(s->y + row * s->hidden, 0, bytes);
        else
            memcpy(s->y + row * s->hidden, s->h + b * s->hidden, bytes);
    }
}

/* Gates of step k side by side. */
static void gather_gates(const recurrence *s, bool backwards, int64_t k, int64_t step,
                         int64_t to_next)
{
    for (int64_t b = 0; b < s->batch; b++)
        memcpy(s->now + b * s->width, s->gates + b * step + time_of(s, backwards, b, k) * to_next,
               (size_t)s->width * sizeof *s->now);
}

static ot_status run_direction(ot_call *c, recurrence *s, int64_t d)
{
    bool backwards = s->reverse || d == 1;
    int64_t step = s->batch_first ? s->seq * s->width : s->width,
            to_next = s->batch_first ? s->width : s->batch * s->width;
    OT_TRY(from_input(c, s, d));
    if (s->panels)
        ot_panels_pack(s->panels, s->r + d * s->width * s->hidden,
                       &(ot_matrix_layout){s->hidden, s->width, 1, s->hidden}, 0,
                       ot_ceil_div(s->width, OT_PANEL));
    load_state(s, d);
    for (int64_t k = 0; k < s->seq; k++) {
        if (s->lens) {
            gather_gates(s, backwards, k, step, to_next);
            OT_TRY(one_time(s, d, k, s->now, s->width));
        } else {
            OT_TRY(one_time(s, d, k, s->gates + time_of(s, backwards, 0, k) * to_next, step));
        }
        store_step(s, d, backwards, k);
    }
    store_state(s, d);
    return OT_OK;
}

static ot_status run(ot_call *c, cell kind, ot_op_fn reference)
{
    recurrence s = {.cell = kind};
    if (!usual_attributes(c->node, &s) || !usual_operands(c, &s)) return reference(c);
    OT_TRY(open_outputs(c, &s));
    OT_TRY(open_scratch(c, &s));
    for (int64_t d = 0; d < s.directions; d++) OT_TRY(run_direction(c, &s, d));
    return OT_OK;
}

ot_status ot_fast_rnn(ot_call *c)
{
    return ot_call_is_half(c) ? ot_call_widened(c, ot_fast_rnn, 0) : run(c, CELL_RNN, ot_ref_rnn);
}

ot_status ot_fast_gru(ot_call *c)
{
    return ot_call_is_half(c) ? ot_call_widened(c, ot_fast_gru, 0) : run(c, CELL_GRU, ot_ref_gru);
}

ot_status ot_fast_lstm(ot_call *c)
{
    return ot_call_is_half(c) ? ot_call_widened(c, ot_fast_lstm, 0)
                              : run(c, CELL_LSTM, ot_ref_lstm);
}
