/* Accesses of random kernels: what the analysis counts, against an enumeration of every address
 * of every iteration; pads keep what a kernel computes and take fewer wavefronts. SEED=n repeats
 * a run. */
#include "seeded.h"

#include "machine/target/target.h"
#include "tk/access/kernel_access.h"

#include <math.h>

#define TEXT_MAX 8192
#define LANES    8192 /* elements of a statement, at the most */

/* ---- every address ---- */

typedef struct tally {
    int64_t taken, least, off;
} tally;

typedef struct enumeration {
    const ot_kernel *k;
    const ot_tk_machine *t;
    const int64_t *value_of; /* loop variables by statement */
    tally *sum;              /* [n_stmts][n_values][2] */
} enumeration;

static int64_t variable(const enumeration *e, uint32_t at, const char *name)
{
    for (uint32_t i = e->k->stmts[at].parent; i != OT_NONE; i = e->k->stmts[i].parent)
        if (e->k->stmts[i].op == OT_TK_FOR && strcmp(e->k->stmts[i].var, name) == 0)
            return e->value_of[i];
    fail_msg("no loop has %s", name);
    return 0;
}

static int64_t affine(const enumeration *e, uint32_t at, const ot_tk_affine *a)
{
    int64_t x = a->constant;
    for (uint32_t j = 0; j < a->n; j++) x += a->terms[j].coef * variable(e, at, a->terms[j].var);
    return x;
}

static int64_t width(const enumeration *e, uint32_t v)
{
    return ot_tk_dtype_bits(e->k->values[v].dtype) / 8;
}

/* Byte of element index[] in its buffer or param. */
static int64_t address(const enumeration *e, uint32_t at, uint32_t v, const int64_t *index)
{
    const ot_tk_value *x = &e->k->values[v];
    int64_t n = 0, base[OT_TK_RANK_MAX];
    if (x->kind == OT_TK_SUBVIEW) {
        for (uint32_t d = 0; d < x->rank; d++) base[d] = index[d] + affine(e, at, &x->ranges[d].lo);
        return address(e, at, x->base, base);
    }
    for (uint32_t d = 0; d < x->rank; d++) n = n * x->dims[d] + index[d];
    if (x->kind != OT_TK_ALIAS) return n * width(e, v);
    const ot_tk_value *b = &e->k->values[x->base];
    int64_t all = n;
    for (uint32_t d = b->rank; d-- > 0; all /= b->dims[d]) base[d] = all % b->dims[d];
    return address(e, at, x->base, base);
}

static int compare(const void *pa, const void *pb)
{
    const int64_t *a = pa, *b = pb;
    return *a < *b ? -1 : *a > *b;
}

static int64_t count_distinct(int64_t *list, int n)
{
    int64_t kept = 0;
    qsort(list, (size_t)n, sizeof *list, compare);
    for (int k = 0; k < n; k++) kept += k == 0 || list[k] != list[k - 1];
    return kept;
}

/* Lanes at[n], -1: not there. */
static void by_lanes(const enumeration *e, const int64_t *at, int n, int64_t w, bool shared,
                     tally *sum)
{
    for (int first = 0; first < n; first += (int)e->t->access.lanes) {
        int64_t bytes[64 * 8], words[64 * 8], load[64] = {0}, most = 0;
        int n_bytes = 0;
        for (int k = first; k < n && k < first + (int)e->t->access.lanes; k++)
            for (int64_t b = 0; b < w && at[k] >= 0; b++) bytes[n_bytes++] = at[k] + b;
        if (n_bytes == 0) continue;
        int64_t distinct_bytes = count_distinct(bytes, n_bytes),
                unit = shared ? e->t->access.bank_bytes : e->t->access.sector;
        for (int k = 0; k < n_bytes; k++) words[k] = bytes[k] / unit;
        int64_t n_words = count_distinct(words, n_bytes);
        for (int k = 0; k < n_bytes; k++)
            if (k == 0 || words[k] != words[k - 1]) load[words[k] % e->t->access.banks]++;
        for (int b = 0; b < 64; b++) most = ot_max(most, load[b]);
        sum->taken += shared ? most : n_words;
        sum->least += shared ? ot_ceil_div(ot_ceil_div(distinct_bytes, unit), e->t->access.banks)
                             : ot_ceil_div(distinct_bytes, unit);
    }
}

/* What lies one behind the other is moved together. */
static void by_granules(const enumeration *e, const int64_t *at, int n, int64_t w, tally *sum)
{
    int64_t g = e->t->granule, bytes = 0;
    for (int k = 0; k < n;) {
        if (at[k] < 0) { /* outside */
            k++;
            continue;
        }
        int64_t start = at[k], end = start;
        for (; k < n && (at[k] == end || at[k] < 0); k++) end += at[k] < 0 ? 0 : w;
        bytes += end - start;
        int64_t taken = (end - 1) / g - start / g + 1;
        sum->taken += taken;
        sum->off += taken - ot_ceil_div(end - start, g);
    }
    sum->least += ot_ceil_div(bytes, g);
}

static void access(const enumeration *e, uint32_t at, uint32_t v, bool write, const int64_t *list,
                   int n)
{
    ot_scope s = e->k->values[ot_tk_root(e->k, v, NULL)].scope;
    tally *sum = &e->sum[(at * e->k->n_values + v) * 2 + write];
    if (s != OT_SCOPE_SHARED && s != OT_SCOPE_GM) return;
    if (e->t->access.lanes > 0)
        by_lanes(e, list, n, width(e, v), s == OT_SCOPE_SHARED, sum);
    else if (s == OT_SCOPE_GM && e->k->stmts[at].op != OT_TK_COMPUTE)
        by_granules(e, list, n, width(e, v), sum);
}

/* All elements of a value, or of a window of it. */
static void in_order(const enumeration *e, uint32_t at, uint32_t v, const ot_tk_range *ranges,
                     bool write)
{
    const ot_tk_value *x = &e->k->values[v];
    int64_t list[LANES], index[OT_TK_RANK_MAX], n[OT_TK_RANK_MAX], all = 1,
                                                                   first[OT_TK_RANK_MAX] = {0};
    for (uint32_t d = 0; d < x->rank; d++) {
        if (ranges) first[d] = affine(e, at, &ranges[d].lo);
        n[d] = ranges ? affine(e, at, &ranges[d].hi) - first[d] : x->dims[d];
        all *= n[d];
    }
    assert_true(all <= LANES);
    for (int64_t j = 0; j < all; j++) {
        int64_t rest = j;
        bool there = true;
        for (uint32_t d = x->rank; d-- > 0; rest /= n[d]) index[d] = first[d] + rest % n[d];
        for (uint32_t d = 0; d < x->rank; d++)
            there = there && index[d] >= 0 && index[d] < x->dims[d];
        list[j] = there ? address(e, at, v, index) : -1;
    }
    access(e, at, v, write, list, (int)all);
}

/* Operand v of a result with these dims; turned: axes the other way round. */
static void broadcast(const enumeration *e, uint32_t at, uint32_t v, const ot_tk_value *out,
                      bool turned)
{
    const ot_tk_value *x = &e->k->values[v];
    int64_t list[LANES], all = 1;
    for (uint32_t d = 0; d < out->rank; d++) all *= out->dims[d];
    for (int64_t j = 0; j < all; j++) {
        int64_t rest = j, index[OT_TK_RANK_MAX], own[OT_TK_RANK_MAX];
        for (uint32_t d = out->rank; d-- > 0; rest /= out->dims[d]) index[d] = rest % out->dims[d];
        for (uint32_t d = 0; d < x->rank; d++) {
            int64_t i = turned ? index[x->rank - 1 - d] : index[out->rank - x->rank + d];
            own[d] = x->dims[d] == 1 ? 0 : i;
        }
        list[j] = address(e, at, v, own);
    }
    access(e, at, v, false, list, (int)all);
}

/* Rows of a 2-d value: lane r takes row r, one column after the other. */
static void reduce_rows(const enumeration *e, uint32_t at, uint32_t v)
{
    const ot_tk_value *x = &e->k->values[v];
    for (int64_t c = 0; c < x->dims[1]; c++) {
        int64_t list[LANES];
        for (int64_t r = 0; r < x->dims[0]; r++)
            list[r] = address(e, at, v, (const int64_t[]){r, c});
        access(e, at, v, false, list, (int)x->dims[0]);
    }
}

/* Elements of a result by lanes, for one step of what is summed up: index of the operand's
 * element, false: in the pads. */
typedef struct summed {
    const ot_tk_stmt *s;
    const ot_tk_value *x, *out;
    int64_t n[OT_TK_RANK_MAX]; /* [4] steps along each summed axis */
    int64_t stride, dilation, pad, group;
    uint32_t operand;
} summed;

static int64_t number(const ot_tk_stmt *s, const char *name, int64_t other)
{
    const ot_tk_attr *a = ot_tk_attr_find(s, name);
    return a ? (int64_t)a->values[0] : other;
}

static bool is_name(const ot_tk_stmt *s, const char *name) { return strcmp(s->name, name) == 0; }

/* Where lane `o` [out.rank] reads at step `k` [3] of the sum. */
static bool element(const summed *m, const int64_t *o, const int64_t *k, int64_t *index)
{
    const uint32_t r = m->out->rank;
    if (is_name(m->s, "matmul") || is_name(m->s, "mmad")) {
        bool left = m->operand == 0,
             turned = number(m->s, left ? "transpose_a" : "transpose_b", 0) != 0;
        int64_t row = left ? o[r - 2] : k[0], col = left ? k[0] : o[r - 1];
        for (uint32_t d = 0; d + 2 < m->x->rank; d++)
            index[d] = m->x->dims[d] == 1 ? 0 : o[d + r - m->x->rank];
        index[m->x->rank - 2] = turned ? col : row;
        index[m->x->rank - 1] = turned ? row : col;
        return true;
    }
    if (is_name(m->s, "conv") && m->operand == 1) {
        memcpy(index, (const int64_t[]){o[1], k[0], k[1], k[2]}, 4 * sizeof *index);
        return true;
    }
    index[0] = o[0];
    index[1] = is_name(m->s, "conv") ? o[1] / (m->out->dims[1] / m->group) * m->n[0] + k[0] : o[1];
    index[2] = o[2] * m->stride + k[1] * m->dilation - m->pad;
    index[3] = o[3] * m->stride + k[2] * m->dilation - m->pad;
    return index[2] >= 0 && index[2] < m->x->dims[2] && index[3] >= 0 && index[3] < m->x->dims[3];
}

static void summed_up(const enumeration *e, uint32_t at, uint32_t operand)
{
    const ot_tk_stmt *s = &e->k->stmts[at];
    summed m = {.s = s,
                .x = &e->k->values[s->in[operand]],
                .out = &e->k->values[s->out[0]],
                .operand = operand};
    const ot_tk_value *second = s->n_in > 1 ? &e->k->values[s->in[1]] : NULL;
    int64_t all = 1, index[OT_TK_RANK_MAX], o[OT_TK_RANK_MAX];
    m.stride = number(s, "stride", 1), m.dilation = number(s, "dilation", 1),
    m.pad = number(s, "pad", 0);
    m.group = number(s, "group", 1);
    m.n[0] = m.n[1] = m.n[2] = 1;
    if (is_name(s, "maxpool"))
        m.n[1] = m.n[2] = number(s, "kernel", 1);
    else if (is_name(s, "conv"))
        memcpy(m.n, second->dims + 1, 3 * sizeof *m.n);
    else
        m.n[0] = second->dims[second->rank - (number(s, "transpose_b", 0) ? 1 : 2)];
    for (uint32_t d = 0; d < m.out->rank; d++) all *= m.out->dims[d];
    assert_true(all <= LANES);
    for (int64_t step = 0; step < m.n[0] * m.n[1] * m.n[2]; step++) {
        const int64_t k[3] = {step / (m.n[1] * m.n[2]), step / m.n[2] % m.n[1], step % m.n[2]};
        int64_t list[LANES];
        for (int64_t j = 0; j < all; j++) {
            int64_t rest = j;
            for (uint32_t d = m.out->rank; d-- > 0; rest /= m.out->dims[d])
                o[d] = rest % m.out->dims[d];
            list[j] = element(&m, o, k, index) ? address(e, at, s->in[operand], index) : -1;
        }
        access(e, at, s->in[operand], false, list, (int)all);
    }
}

static void run(const enumeration *e, uint32_t from, uint32_t end);

static bool sums_up(const ot_tk_stmt *s, uint32_t operand)
{
    static const char *const names[] = {"matmul", "mmad", "conv", "maxpool"};
    for (size_t k = 0; k < 4; k++)
        if (is_name(s, names[k])) return operand < 2;
    return false;
}

static void step(const enumeration *e, uint32_t i)
{
    const ot_tk_stmt *s = &e->k->stmts[i];
    if (s->op == OT_TK_LOAD || s->op == OT_TK_STORE || s->op == OT_TK_COPY) {
        in_order(e, i, s->in[0], s->op == OT_TK_LOAD ? s->ranges : NULL, false);
        in_order(e, i, s->out[0], s->op == OT_TK_STORE ? s->ranges : NULL, true);
    } else if (s->op == OT_TK_COMPUTE) {
        in_order(e, i, s->out[0], NULL, true);
        for (uint32_t j = 0; j < s->n_in; j++) {
            if (sums_up(s, j))
                summed_up(e, i, j);
            else if (strcmp(s->name, "reduce_sum") == 0)
                reduce_rows(e, i, s->in[j]);
            else
                broadcast(e, i, s->in[j], &e->k->values[s->out[0]],
                          strcmp(s->name, "transpose") == 0);
        }
    } else if (s->op == OT_TK_FOR) {
        for (((int64_t *)e->value_of)[i] = s->lo; e->value_of[i] < s->hi;
             ((int64_t *)e->value_of)[i] += s->step)
            run(e, i + 1, s->mate);
    }
}

static void run(const enumeration *e, uint32_t from, uint32_t end)
{
    for (uint32_t i = from; i < end;
         i = e->k->stmts[i].op == OT_TK_FOR ? e->k->stmts[i].mate + 1 : i + 1)
        step(e, i);
}

/* ---- random kernels ---- */

typedef struct text {
    char s[TEXT_MAX];
    size_t n;
} text;

static void put(text *t, const char *fmt, ...) OT_PRINTF(2, 3);
static void put(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->s + t->n, TEXT_MAX - t->n, fmt, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < TEXT_MAX - t->n);
    t->n += (size_t)n;
}

/* "2*i-3:2*i+9" of `extent` elements. */
static void put_range(text *t, const char *const *vars, int n_vars, int extent)
{
    int from = below(12) - 3, coef = 1 + below(20);
    const char *var = n_vars > 0 && below(3) > 0 ? vars[below(n_vars)] : NULL;
    if (var)
        put(t, "%d*%s%+d:%d*%s%+d", coef, var, from, coef, var, from + extent);
    else
        put(t, "%d:%d", from, from + extent);
}

static const char *make(text *t, bool gpu)
{
    static const char *const types[] = {"f32", "f16", "i8", "f64"}, *const vars[] = {"i", "j"};
    const char *type = types[below(4)], *near = gpu ? "shared" : "ub";
    int r = 1 + below(40), c = 1 + below(40), n_vars = below(3), x0 = 1 + below(200),
        x1 = 1 + below(200);
    t->n = 0;
    put(t, "kernel k target \"%s\" {\n", gpu ? "h200" : below(2) ? "ascend-a2" : "tlf-16m");
    put(t, "  param x: %dx%d %s @gm\n  param y: %dx%d %s @gm\n", x0, x1, type, x0, x1,
        types[below(4)]);
    if (n_vars > 0) put(t, "  for i in %d..%d step %d {\n", below(3), 3 + below(6), 1 + below(3));
    if (n_vars > 1) put(t, "  for j in 0..%d {\n", 1 + below(5));
    put(t,
        "  alloc a: %dx%d %s @%s\n  alloc b: %dx%d f32 @%s\n  alloc c: %d f32 @%s\n  alloc s: %dx1 "
        "f32 @%s\n",
        r, c, type, near, c, r, near, c, near, r, near);
    put(t, "  load a <- x[");
    put_range(t, vars, n_vars, r);
    put(t, ", ");
    put_range(t, vars, n_vars, c);
    put(t, "]\n  b = vector.transpose(a)\n  s = vector.reduce_sum(a, axis=1)\n  c = "
           "vector.fill(value=1)\n  a = vector.add(a, c)\n  a = vector.mul(a, s)\n");
    int low = below(r), high = low + 1 + below(r - low);
    put(t, "  subview v = a[%d:%d, %d:%d]\n  alias f = a: %d %s\n", low, high, c / 3, c, r * c,
        type);
    put(t, "  store y[");
    put_range(t, vars, n_vars, high - low);
    put(t, ", ");
    put_range(t, vars, n_vars, c - c / 3);
    put(t, "] <- v\n  f = vector.relu(f)\n  alloc w: %dx%d %s @gm\n  copy w <- a\n", r, c, type);
    for (int k = 0; k < n_vars; k++) put(t, "  }\n");
    put(t, "}\n");
    return t->s;
}

/* Products and windows of shared buffers, some of them parts of others or in global memory. */
static const char *make_products(text *t)
{
    static const char *const types[] = {"f32", "f16", "i8", "f64"};
    const char *type = types[below(4)], *pipe = below(2) ? "cube" : "vector";
    int m = 1 + below(20), n = 1 + below(40), k = 1 + below(9), batch = 1 + below(3),
        b_turned = below(2), a_turned = below(2);
    int group = 1 + below(3), depth = 1 + below(3), maps = group * (1 + below(3)),
        kernel = 1 + below(3), size = 5 + below(9);
    int stride = 1 + below(2), dilation = 1 + below(2), pad = below(3),
        reach = (kernel - 1) * dilation + 1;
    int out = (size + 2 * pad - reach) / stride + 1,
        pooled = (size + 2 * pad - kernel) / stride + 1;
    t->n = 0;
    put(t, "kernel k target \"h200\" {\n  param x: %dx%d f16 @gm\n", 3 * m + k, 64);
    put(t, "  for i in 0..3 {\n    alloc big: %dx%dx%d %s @shared\n", batch, a_turned ? k : m,
        (a_turned ? m : k) + 7, type);
    put(t, "    subview a = big[0:%d, 0:%d, i:i+%d]\n", batch, a_turned ? k : m, a_turned ? m : k);
    put(t, "    alloc b: %dx%d %s @shared\n    alloc c: %dx%dx%d f32 @shared\n", b_turned ? n : k,
        b_turned ? k : n, type, batch, m, n);
    put(t, "    big = vector.fill(value=1)\n    b = vector.fill(value=1)\n    c = "
           "vector.fill(value=0)\n");
    put(t, "    c = %s.mmad(a, b, c, transpose_a=%d, transpose_b=%d)\n", pipe, a_turned, b_turned);
    put(t,
        "    alloc g: %dx%d f32 @shared\n    subview xs = x[i:i+%d, 0:%d]\n    alloc h: %dx%d %s "
        "@shared\n",
        m, n, m, k, k, n, type);
    put(t, "    h = vector.fill(value=2)\n    g = %s.matmul(xs, h)\n", pipe);
    put(t,
        "    alloc p: 2x%dx%dx%d %s @shared\n    alloc w: %dx%dx%dx%d %s @shared\n    alloc q: "
        "2x%dx%dx%d f32 @shared\n",
        group * depth, size, size, type, maps, depth, kernel, kernel, type, maps, out, out);
    put(t, "    p = vector.fill(value=1)\n    w = vector.fill(value=1)\n");
    put(t, "    q = %s.conv(p, w, stride=%d, dilation=%d, pad=%d, group=%d)\n", pipe, stride,
        dilation, pad, group);
    put(t,
        "    alloc r: 2x%dx%dx%d %s @shared\n    r = vector.maxpool(p, kernel=%d, stride=%d, "
        "pad=%d)\n  }\n}\n",
        group * depth, pooled, pooled, type, kernel, stride, pad);
    return t->s;
}

static ot_kernel *parse(const char *s)
{
    ot_diag d = {0};
    ot_kernel *k = NULL;
    if (ot_kernel_parse("k.tk", s, strlen(s), &d, &k) != OT_OK) fail_msg("%s in\n%s", d.message, s);
    return k;
}

static void check(const char *s)
{
    ot_diag d = {0};
    ot_kernel *k = parse(s);
    ot_target target;
    ot_arena *a = ot_arena_new();
    ot_kaccess_report r;
    assert_true(a && ot_target_load(k->target, 0, &d, &target) == OT_OK);
    const ot_tk_machine t = ot_target_tk_machine(&target);
    int64_t *vars = calloc(k->n_stmts, sizeof *vars);
    tally *sum = calloc((size_t)k->n_stmts * k->n_values * 2, sizeof *sum);
    assert_true(vars && sum);
    const enumeration e = {k, &t, vars, sum};
    run(&e, 0, k->n_stmts);
    assert_true(ot_kaccess_analyse(k, &t, a, &d, &r) == OT_OK);
    for (uint32_t j = 0; j < r.n_findings; j++) {
        const ot_kaccess_finding *f = &r.findings[j];
        tally *x = &sum[(f->stmt * k->n_values + f->value) * 2 + f->write];
        if (f->is_part || f->taken != x->taken || f->least != x->least || f->off != x->off)
            fail_msg(
                "line %u, %s: taken %lld, least %lld, off %lld; there are %lld, %lld, %lld in\n%s",
                f->line, f->name, (long long)f->taken, (long long)f->least, (long long)f->off,
                (long long)x->taken, (long long)x->least, (long long)x->off, s);
        x->taken = x->least;
    }
    for (uint32_t i = 0; i < k->n_stmts; i++)
        for (uint32_t j = 0; j < 2 * k->n_values; j++)
            if (sum[i * k->n_values * 2 + j].taken != sum[i * k->n_values * 2 + j].least)
                fail_msg("line %u, %s: not found, %lld for %lld in\n%s", k->stmts[i].line,
                         k->values[j / 2].name, (long long)sum[i * k->n_values * 2 + j].taken,
                         (long long)sum[i * k->n_values * 2 + j].least, s);
    free(vars);
    free(sum);
    ot_target_free(&target);
    ot_arena_free(a);
    ot_kernel_free(k);
}

static void enumerated(void **state)
{
    (void)state;
    static text t;
    for (int n = 0; n < 300; n++) check(make(&t, n % 2 == 0));
    for (int n = 0; n < 150; n++) check(make_products(&t));
}

/* ---- pads ---- */

static void padded(void **state)
{
    (void)state;
    static const char s[] =
        "kernel k target \"h200\" {\n  param x: 64x64 f32 @gm\n  param y: 64x64 f32 @gm\n  for i "
        "in 0..2 {\n"
        "    alloc a: 32x32 f32 @shared multi=2\n    alloc b: 32x32 f32 @shared\n    load a <- "
        "x[32*i:32*i+32, 0:32]\n"
        "    b = vector.transpose(a)\n    store y[0:32, 32*i:32*i+32] <- b\n    free a\n  }\n}\n";
    ot_diag d = {0};
    ot_kernel *k = parse(s), *again = NULL;
    ot_target target;
    ot_arena *a = ot_arena_new();
    ot_kaccess_report r, after;
    char *printed = NULL;
    size_t n;
    assert_true(ot_target_load("h200", 0, &d, &target) == OT_OK);
    const ot_tk_machine t = ot_target_tk_machine(&target);
    assert_true(ot_kaccess_analyse(k, &t, a, &d, &r) == OT_OK);
    assert_true(r.n_findings == 1 && r.n_pads == 1 && r.pads[0].elements == 1);
    assert_true(r.findings[0].taken == 2048 && r.findings[0].least == 64 &&
                strcmp(r.findings[0].name, "a") == 0);
    assert_true(ot_kaccess_apply(k, r.pads, r.n_pads, &d) == OT_OK);
    if (ot_kernel_verify(k, "k.tk", &d) != OT_OK) fail_msg("%s", d.message);
    FILE *f = open_memstream(&printed, &n);
    assert_true(f && ot_kernel_print(k, f) == OT_OK && fclose(f) == 0);
    assert_non_null(strstr(
        printed, "alloc a.pad: 32x33 f32 @shared multi=2\n    subview a = a.pad[0:32, 0:32]\n"));
    assert_true(ot_kernel_parse("k.tk", printed, n, &d, &again) == OT_OK);
    assert_true(ot_kaccess_analyse(again, &t, a, &d, &after) == OT_OK && after.n_findings == 0);
    free(printed);
    ot_kernel_free(again);
    ot_kernel_free(k);
    ot_arena_free(a);
    ot_target_free(&target);
}

/* Numbers as large as texts may have them. */
static void large(void **state)
{
    (void)state;
    static const char s[] =
        "kernel k target \"tlf-16m\" {\n  param x: 1000000000x1000000 f32 @gm\n  alloc a: 4x4 f32 "
        "@l2\n"
        "  for i in 0..1000000000 {\n    for j in 0..1000000000 {\n      load a <- x[i:i+4, "
        "j+999999999:j+1000000003]\n    }\n  }\n"
        "  for m in 0..4611686018427387904 {\n    load a <- x[m-4:m, 4-m:8-m]\n  }\n}\n";
    ot_diag d = {0};
    ot_kernel *k = NULL;
    ot_target target;
    ot_arena *a = ot_arena_new();
    ot_kaccess_report r;
    if (ot_kernel_parse("k.tk", s, strlen(s), &d, &k) != OT_OK) fail_msg("%s", d.message);
    assert_true(ot_target_load("tlf-16m", 0, &d, &target) == OT_OK);
    const ot_tk_machine t = ot_target_tk_machine(&target);
    assert_true(ot_kaccess_analyse(k, &t, a, &d, &r) == OT_OK);
    ot_kernel_free(k);
    ot_arena_free(a);
    ot_target_free(&target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(enumerated), cmocka_unit_test(padded),
                                       cmocka_unit_test(large)};
    return cmocka_run_group_tests(tests, start, NULL);
}
