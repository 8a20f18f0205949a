/* RNN, GRU, LSTM: cells run over a sequence, forwards, backwards or both.
 *
 *   x[0]   x[1]   x[2]        one direction, one sequence of the batch:
 *    |      |      |           gate g, unit j:  sum W[g, j] x[t] + sum R[g, j] h[t-1] + Wb[g, j] +
 *                                               Rb[g, j]
 *   [h] -> [h] -> [h] -> Y_h   then the cell's activations; a sequence shorter than the longest
 *                              leaves zeros behind it
 *    |      |      |           (and is run backwards from its own end)
 *    Y[0]   Y[1]   Y[2]
 *
 * Inputs x, W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], sequence_lens, initial_h, then for LSTM
 * initial_c and peepholes P [D, 3*H]. layout 1 has the batch as the first axis of x, Y and the
 * states.
 */
#include "ref_product.h"

#include <math.h>

typedef enum cell { CELL_RNN = 1, CELL_GRU = 3, CELL_LSTM = 4 } cell; /* number of gates */

typedef struct rnn {
    cell cell;
    int64_t directions, seq, batch, input, hidden;
    bool batch_first, reverse, before_reset, input_forget;
    double clip; /* infinite: none */
    ot_activation act[2][3];
    const double *x, *w, *r, *bias, *h0, *c0, *peep; /* NULL where omitted, and zero then */
    const ot_nd *lens;
    double *y, *y_h, *y_c;
    double *gates, *h, *c, *reset; /* of one step: [gates * hidden], [hidden], [hidden], [hidden] */
} rnn;

/* ---- attributes ---- */

/* Each activation takes alpha and beta from the lists, in order, as far as it has them and the
 * lists go. */
static ot_status read_activations(ot_call *c, rnn *s)
{
    static const char *const defaults[3][3] = {
        {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const ot_attr *names = ot_attr_find(c->node, "activations"),
                  *alpha = ot_attr_find(c->node, "activation_alpha"),
                  *beta = ot_attr_find(c->node, "activation_beta");
    int64_t per = s->cell == CELL_RNN ? 1 : s->cell == CELL_GRU ? 2 : 3;
    size_t ia = 0, ib = 0;
    if (names && (names->kind != OT_ATTR_STRINGS || names->n == 0)) names = NULL;
    if (names && (int64_t)names->n != per * s->directions)
        return ot_call_fail(c, "%zu activations, must be %lld", names->n,
                            (long long)(per * s->directions));
    for (int64_t k = 0; k < per * s->directions; k++) {
        ot_activation *a = &s->act[k / per][k % per];
        const char *name = names ? names->strings[k] : defaults[per - 1][k % per];
        if (!ot_activation_find(name, a))
            return ot_call_fail(c, "activation '%s' is unknown", name);
        if (a->has_alpha && alpha && alpha->kind == OT_ATTR_FLOATS && ia < alpha->n)
            a->alpha = (double)alpha->floats[ia++];
        if (a->has_beta && beta && beta->kind == OT_ATTR_FLOATS && ib < beta->n)
            a->beta = (double)beta->floats[ib++];
    }
    return OT_OK;
}

static ot_status read_attributes(ot_call *c, rnn *s)
{
    const char *direction = ot_attr_str(c->node, "direction", "forward");
    s->reverse = strcmp(direction, "reverse") == 0;
    s->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    if (!s->reverse && s->directions == 1 && strcmp(direction, "forward") != 0)
        return ot_call_fail(c, "direction '%s' is unknown", direction);
    s->batch_first = ot_attr_int(c->node, "layout", 0) != 0;
    s->before_reset = ot_attr_int(c->node, "linear_before_reset", 0) != 0;
    s->input_forget = ot_attr_int(c->node, "input_forget", 0) != 0;
    s->clip = (double)ot_attr_float(c->node, "clip", 0);
    if (!(s->clip > 0)) s->clip = INFINITY;
    return read_activations(c, s);
}

/* ---- operands ---- */

static ot_status check_shapes(ot_call *c, rnn *s)
{
    const ot_nd *x = c->in[0], *r = c->in[2];
    OT_TRY(ot_num_rank(c, 0, 3));
    OT_TRY(ot_num_rank(c, 2, 3));
    s->seq = x->dims[s->batch_first ? 1 : 0];
    s->batch = x->dims[s->batch_first ? 0 : 1];
    s->input = x->dims[2];
    s->hidden = r->dims[2];
    int64_t gates, d = s->directions, h = s->hidden,
                   stated = ot_attr_int(c->node, "hidden_size", h);
    if (!ot_mul_i64(h, 8, &gates)) return ot_call_fail(c, "the hidden size is too large");
    gates = h * (int64_t)s->cell;
    if (stated != h)
        return ot_call_fail(c, "hidden_size is %lld, R has %lld", (long long)stated, (long long)h);
    int64_t w_dims[3] = {d, gates, s->input}, r_dims[3] = {d, gates, h}, b_dims[2] = {d, 2 * gates},
            p_dims[2] = {d, 3 * h};
    int64_t state[3] = {s->batch_first ? s->batch : d, s->batch_first ? d : s->batch, h};
    OT_TRY(ot_num_dims(c, 1, 3, w_dims));
    OT_TRY(ot_num_dims(c, 2, 3, r_dims));
    OT_TRY(ot_num_dims(c, 3, 2, b_dims));
    OT_TRY(ot_num_dims(c, 4, 1, &s->batch));
    OT_TRY(ot_num_dims(c, 5, 3, state));
    if (s->cell != CELL_LSTM) return OT_OK;
    OT_TRY(ot_num_dims(c, 6, 3, state));
    return ot_num_dims(c, 7, 2, p_dims);
}

/* Doubles of input k into *out when it is given. */
static ot_status load(ot_call *c, uint32_t k, const double **out)
{
    const ot_nd *a = ot_num_in(c, k);
    *out = a ? ot_num_doubles(c, a) : NULL;
    return a && !*out ? OT_E_NOMEM : OT_OK;
}

static ot_status load_operands(ot_call *c, rnn *s)
{
    OT_TRY(load(c, 0, &s->x));
    OT_TRY(load(c, 1, &s->w));
    OT_TRY(load(c, 2, &s->r));
    OT_TRY(load(c, 3, &s->bias));
    OT_TRY(load(c, 5, &s->h0));
    s->lens = ot_num_in(c, 4);
    if (s->cell == CELL_LSTM) {
        OT_TRY(load(c, 6, &s->c0));
        OT_TRY(load(c, 7, &s->peep));
    }
    for (int64_t b = 0; s->lens && b < s->batch; b++)
        if (ot_nd_int(s->lens, b) < 0 || ot_nd_int(s->lens, b) > s->seq)
            return ot_call_fail(c, "sequence_lens[%lld] is %lld, must be in [0, %lld]",
                                (long long)b, (long long)ot_nd_int(s->lens, b), (long long)s->seq);
    int64_t states, all;
    if (!ot_mul_i64(s->directions * s->batch, s->hidden, &states) ||
        !ot_mul_i64(states, s->seq, &all))
        return ot_call_fail(c, "the output is too large");
    if (!(s->y = ot_num_scratch(c, all, sizeof *s->y)) ||
        !(s->y_h = ot_num_scratch(c, states, sizeof *s->y_h)) ||
        !(s->y_c = ot_num_scratch(c, states, sizeof *s->y_c)) ||
        !(s->gates = ot_num_scratch(c, 4 * s->hidden, sizeof *s->gates)) ||
        !(s->h = ot_num_scratch(c, 3 * s->hidden, sizeof *s->h)))
        return OT_E_NOMEM;
    s->c = s->h + s->hidden;
    s->reset = s->c + s->hidden;
    return OT_OK;
}

/* ---- one step ---- */

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += a[k] * b[k];
    return sum;
}

/* W x + Wb of row `row` of direction d; R h + Rb of it. */
static double from_input(const rnn *s, int64_t d, int64_t row, const double *x)
{
    int64_t rows = (int64_t)s->cell * s->hidden;
    return dot(s->w + (d * rows + row) * s->input, x, s->input) +
           (s->bias ? s->bias[d * 2 * rows + row] : 0);
}

static double from_state(const rnn *s, int64_t d, int64_t row, const double *h)
{
    int64_t rows = (int64_t)s->cell * s->hidden;
    return dot(s->r + (d * rows + row) * s->hidden, h, s->hidden) +
           (s->bias ? s->bias[d * 2 * rows + rows + row] : 0);
}

static double activate(const rnn *s, const ot_activation *a, double v)
{
    return a->f(fmin(fmax(v, -s->clip), s->clip), a->alpha, a->beta);
}

static void step_rnn(rnn *s, int64_t d, const double *x)
{
    int64_t n = s->hidden;
    for (int64_t j = 0; j < n; j++)
        s->gates[j] = activate(s, &s->act[d][0],
                               from_input(s, d, j, x) + from_state(s, d, j, s->h));
    memcpy(s->h, s->gates, (size_t)n * sizeof *s->h);
}

/* Gates z, r, h. The reset gate weighs the state before it is multiplied by R, or
 * (linear_before_reset) the product. */
static void step_gru(rnn *s, int64_t d, const double *x)
{
    int64_t n = s->hidden;
    double *z = s->gates, *r = z + n, *h = r + n;
    for (int64_t j = 0; j < 2 * n; j++)
        z[j] = activate(s, &s->act[d][0], from_input(s, d, j, x) + from_state(s, d, j, s->h));
    for (int64_t j = 0; j < n; j++) s->reset[j] = r[j] * s->h[j];
    for (int64_t j = 0; j < n; j++) {
        int64_t row = 2 * n + j;
        double state;
        if (s->before_reset) {
            state = r[j] * from_state(s, d, row, s->h);
        } else {
            state = from_state(s, d, row, s->reset);
        }
        h[j] = activate(s, &s->act[d][1], from_input(s, d, row, x) + state);
    }
    for (int64_t j = 0; j < n; j++) s->h[j] = (1 - z[j]) * h[j] + z[j] * s->h[j];
}

/* Gates i, o, f, c; peepholes of i, o, f look at the cell (o at the new one). */
static void step_lstm(rnn *s, int64_t d, const double *x)
{
    int64_t n = s->hidden;
    const double *p = s->peep ? s->peep + d * 3 * n : NULL;
    double *g = s->gates;
    for (int64_t j = 0; j < 4 * n; j++) g[j] = from_input(s, d, j, x) + from_state(s, d, j, s->h);
    for (int64_t j = 0; j < n; j++) {
        double old = s->c[j], i = activate(s, &s->act[d][0], g[j] + (p ? p[j] * old : 0));
        double f = s->input_forget
                       ? 1 - i
                       : activate(s, &s->act[d][0], g[2 * n + j] + (p ? p[2 * n + j] * old : 0));
        s->c[j] = f * old + i * activate(s, &s->act[d][1], g[3 * n + j]);
        double o = activate(s, &s->act[d][0], g[n + j] + (p ? p[n + j] * s->c[j] : 0));
        const ot_activation *out = &s->act[d][2];
        s->h[j] = o * out->f(s->c[j], out->alpha, out->beta);
    }
}

/* ---- sequences ---- */

/* Place of the state of direction d, sequence b. */
static int64_t state_at(const rnn *s, int64_t d, int64_t b)
{
    return (s->batch_first ? b * s->directions + d : d * s->batch + b) * s->hidden;
}

static void run_sequence(rnn *s, int64_t d, int64_t b)
{
    int64_t n = s->hidden, len = s->lens ? ot_nd_int(s->lens, b) : s->seq, at = state_at(s, d, b);
    size_t bytes = (size_t)n * sizeof(double);
    bool backwards = s->reverse || d == 1;
    for (int64_t j = 0; j < n; j++) s->h[j] = s->h0 ? s->h0[at + j] : 0;
    for (int64_t j = 0; j < n; j++) s->c[j] = s->c0 ? s->c0[at + j] : 0;
    for (int64_t k = 0; k < len; k++) {
        int64_t t = backwards ? len - 1 - k : k;
        const double *x = s->x + (s->batch_first ? b * s->seq + t : t * s->batch + b) * s->input;
        if (s->cell == CELL_RNN)
            step_rnn(s, d, x);
        else if (s->cell == CELL_GRU)
            step_gru(s, d, x);
        else
            step_lstm(s, d, x);
        int64_t row = s->batch_first ? (b * s->seq + t) * s->directions + d
                                     : (t * s->directions + d) * s->batch + b;
        memcpy(s->y + row * n, s->h, bytes);
    }
    memcpy(s->y_h + at, s->h, bytes);
    memcpy(s->y_c + at, s->c, bytes);
}

static ot_status run_rnn(ot_call *c, cell kind)
{
    rnn s = {.cell = kind};
    OT_TRY(ot_call_need(c, 3));
    for (uint32_t k = 0; k < 8; k++) {
        OT_TRY(ot_num_type(c, k, k == 4 ? OT_NUM_BIT(OT_I32) : OT_NUM_FLOATS));
        if (k != 4) OT_TRY(ot_num_same_type(c, k, 0));
    }
    OT_TRY(read_attributes(c, &s));
    OT_TRY(check_shapes(c, &s));
    OT_TRY(load_operands(c, &s));
    for (int64_t d = 0; d < s.directions; d++)
        for (int64_t b = 0; b < s.batch; b++) run_sequence(&s, d, b);
    int64_t d = s.directions, n = s.hidden;
    int64_t time_first[4] = {s.seq, d, s.batch, n}, batch_first[4] = {s.batch, s.seq, d, n};
    int64_t state[3] = {s.batch_first ? s.batch : d, s.batch_first ? d : s.batch, n};
    ot_dtype t = c->in[0]->dtype;
    OT_TRY(ot_num_output(c, 0, t, 4, s.batch_first ? batch_first : time_first, s.y));
    OT_TRY(ot_num_output(c, 1, t, 3, state, s.y_h));
    return kind == CELL_LSTM ? ot_num_output(c, 2, t, 3, state, s.y_c) : OT_OK;
}

ot_status ot_ref_rnn(ot_call *c) { return run_rnn(c, CELL_RNN); }

ot_status ot_ref_gru(ot_call *c) { return run_rnn(c, CELL_GRU); }

ot_status ot_ref_lstm(ot_call *c) { return run_rnn(c, CELL_LSTM); }
