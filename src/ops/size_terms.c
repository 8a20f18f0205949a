/* Extents as terms of dynamic dimensions. See size_terms.h. */
#include "size_terms.h"

#include <math.h>

#define MOST (INT64_C(1) << 50)

typedef enum term_kind {
    T_CONST,
    T_VAR,
    T_ADD,
    T_SUB,
    T_MUL,
    T_DIV,
    T_MAX,
    T_MIN,
    T_SCALE
} term_kind;

/* where a dynamic dimension is larger, it may be larger, may be smaller */
enum { RISES = 1, FALLS = 2 };

typedef struct term {
    term_kind kind;
    ot_term a, b;
    int64_t v; /* T_CONST: the number; T_VAR: which */
    float by;  /* T_SCALE */
    unsigned ways;
    uint32_t vars;
    int64_t least, most;
    ot_term next; /* with the same hash */
} term;

#define BUCKETS 1024

struct ot_size_terms {
    ot_arena *a;
    ot_size_var vars[OT_SIZE_VARS_MAX];
    uint32_t n_vars;
    term *all; /* [n] operands before what is made of them */
    size_t n, cap;
    ot_term buckets[BUCKETS];
    bool failed;
};

ot_size_terms *ot_size_terms_new(ot_arena *a, const ot_size_var *vars, uint32_t n)
{
    ot_size_terms *s = OT_NEW(a, ot_size_terms);
    if (!s) return NULL;
    s->a = a;
    s->n_vars = n < OT_SIZE_VARS_MAX ? n : OT_SIZE_VARS_MAX;
    for (uint32_t k = 0; k < s->n_vars; k++) s->vars[k] = vars[k];
    for (uint32_t k = 0; k < BUCKETS; k++) s->buckets[k] = OT_NONE;
    return s;
}

uint32_t ot_size_n_vars(const ot_size_terms *s) { return s->n_vars; }

const ot_size_var *ot_size_var_at(const ot_size_terms *s, uint32_t k) { return &s->vars[k]; }

bool ot_size_failed(const ot_size_terms *s) { return s->failed; }

static bool same(const term *x, const term *y)
{
    return x->kind == y->kind && x->a == y->a && x->b == y->b && x->v == y->v &&
           memcmp(&x->by, &y->by, sizeof x->by) == 0;
}

/* The term x, made when it is new. Numbers beyond MOST: none. */
static ot_term intern(ot_size_terms *s, term x)
{
    if (x.least < -MOST || x.most > MOST || x.least > x.most) return OT_NONE;
    uint64_t h = ot_hash_bytes(0, &x.kind, sizeof x.kind);
    h = ot_hash_bytes(h, &x.a, sizeof x.a);
    h = ot_hash_bytes(h, &x.b, sizeof x.b);
    h = ot_hash_bytes(h, &x.v, sizeof x.v);
    h = ot_hash_bytes(h, &x.by, sizeof x.by);
    ot_term *bucket = &s->buckets[h % BUCKETS];
    for (ot_term t = *bucket; t != OT_NONE; t = s->all[t].next)
        if (same(&s->all[t], &x)) return t;
    x.next = *bucket;
    if (!OT_PUSH(s->a, s->all, s->n, s->cap, x)) {
        s->failed = true;
        return OT_NONE;
    }
    return *bucket = (ot_term)(s->n - 1);
}

ot_term ot_term_const(ot_size_terms *s, int64_t v)
{
    return intern(
        s, (term){.kind = T_CONST, .a = OT_NONE, .b = OT_NONE, .v = v, .least = v, .most = v});
}

ot_term ot_term_var(ot_size_terms *s, uint32_t k)
{
    const ot_size_var *x = &s->vars[k];
    if (x->lo == x->hi) return ot_term_const(s, x->lo);
    return intern(s, (term){.kind = T_VAR,
                            .a = OT_NONE,
                            .b = OT_NONE,
                            .v = k,
                            .ways = RISES,
                            .vars = 1u << k,
                            .least = x->lo,
                            .most = x->hi});
}

bool ot_term_is_const(const ot_size_terms *s, ot_term t, int64_t *v)
{
    if (t == OT_NONE || s->all[t].kind != T_CONST) return false;
    *v = s->all[t].v;
    return true;
}

static bool is(const ot_size_terms *s, ot_term t, int64_t v)
{
    int64_t have;
    return ot_term_is_const(s, t, &have) && have == v;
}

static bool both_const(const ot_size_terms *s, ot_term a, ot_term b)
{
    return s->all[a].kind == T_CONST && s->all[b].kind == T_CONST;
}

static unsigned turned(unsigned ways)
{
    return (ways & RISES ? FALLS : 0u) | (ways & FALLS ? RISES : 0u);
}

/* Two operands whose order does not matter in one order: constants behind. */
static void order(const ot_size_terms *s, ot_term *a, ot_term *b)
{
    const bool ca = s->all[*a].kind == T_CONST, cb = s->all[*b].kind == T_CONST;
    if (ca == cb ? *a <= *b : cb) return;
    ot_term t = *a;
    *a = *b;
    *b = t;
}

static term of(const ot_size_terms *s, term_kind kind, ot_term a, ot_term b)
{
    return (term){.kind = kind, .a = a, .b = b, .vars = s->all[a].vars | s->all[b].vars};
}

ot_term ot_term_add(ot_size_terms *s, ot_term a, ot_term b)
{
    if (a == OT_NONE || b == OT_NONE) return OT_NONE;
    order(s, &a, &b);
    const term x = s->all[a], y = s->all[b];
    if (both_const(s, a, b)) return ot_term_const(s, x.v + y.v);
    if (is(s, b, 0)) return a;
    if (x.kind == T_SUB && x.b == b) return x.a; /* (p - b) + b */
    if (y.kind == T_SUB && y.b == a) return y.a;
    if (x.kind == T_ADD && y.kind == T_CONST && s->all[x.b].kind == T_CONST)
        return ot_term_add(s, x.a, ot_term_const(s, s->all[x.b].v + y.v));
    term t = of(s, T_ADD, a, b);
    t.ways = x.ways | y.ways;
    t.least = x.least + y.least;
    t.most = x.most + y.most;
    return intern(s, t);
}

ot_term ot_term_sub(ot_size_terms *s, ot_term a, ot_term b)
{
    int64_t v;
    if (a == OT_NONE || b == OT_NONE) return OT_NONE;
    if (a == b) return ot_term_const(s, 0);
    if (ot_term_is_const(s, b, &v)) return ot_term_add(s, a, ot_term_const(s, -v));
    const term x = s->all[a], y = s->all[b];
    if (x.kind == T_ADD && x.a == b) return x.b; /* (b + p) - b */
    if (x.kind == T_ADD && x.b == b) return x.a;
    /* a - (a + v) */
    if (y.kind == T_ADD && y.a == a && ot_term_is_const(s, y.b, &v)) return ot_term_const(s, -v);
    if (x.kind == T_ADD && y.kind == T_ADD && x.a == y.a) return ot_term_sub(s, x.b, y.b);
    term t = of(s, T_SUB, a, b);
    t.ways = x.ways | turned(y.ways);
    t.least = x.least - y.most;
    t.most = x.most - y.least;
    return intern(s, t);
}

ot_term ot_term_mul(ot_size_terms *s, ot_term a, ot_term b)
{
    if (a == OT_NONE || b == OT_NONE) return OT_NONE;
    order(s, &a, &b);
    const term x = s->all[a], y = s->all[b];
    if (is(s, b, 0)) return b;
    if (is(s, b, 1)) return a;
    const int64_t ends[4][2] = {
        {x.least, y.least}, {x.least, y.most}, {x.most, y.least}, {x.most, y.most}};
    term t = of(s, T_MUL, a, b);
    for (int k = 0; k < 4; k++) {
        int64_t v;
        if (!ot_mul_i64(ends[k][0], ends[k][1], &v)) return OT_NONE;
        t.least = k ? ot_min(t.least, v) : v;
        t.most = k ? ot_max(t.most, v) : v;
    }
    if (both_const(s, a, b)) return ot_term_const(s, t.least);
    t.ways = x.least >= 0 && y.least >= 0 ? x.ways | y.ways : RISES | FALLS;
    return intern(s, t);
}

ot_term ot_term_div(ot_size_terms *s, ot_term a, ot_term b)
{
    if (a == OT_NONE || b == OT_NONE) return OT_NONE;
    const term x = s->all[a], y = s->all[b];
    if (x.least < 0 || y.least < 1) return OT_NONE;
    if (both_const(s, a, b)) return ot_term_const(s, x.v / y.v);
    if (is(s, b, 1)) return a;
    if (a == b) return ot_term_const(s, 1);
    if (x.kind == T_MUL && x.a == b) return x.b; /* (b * p) / b */
    if (x.kind == T_MUL && x.b == b) return x.a;
    term t = of(s, T_DIV, a, b);
    t.ways = x.ways | turned(y.ways);
    t.least = x.least / y.most;
    t.most = x.most / y.least;
    return intern(s, t);
}

static ot_term choose(ot_size_terms *s, ot_term a, ot_term b, term_kind kind)
{
    if (a == OT_NONE || b == OT_NONE) return OT_NONE;
    order(s, &a, &b);
    const term x = s->all[a], y = s->all[b];
    const bool max = kind == T_MAX;
    if (a == b) return a;
    if (x.least >= y.most) return max ? a : b;
    if (y.least >= x.most) return max ? b : a;
    term t = of(s, kind, a, b);
    t.ways = x.ways | y.ways;
    t.least = max ? ot_max(x.least, y.least) : ot_min(x.least, y.least);
    t.most = max ? ot_max(x.most, y.most) : ot_min(x.most, y.most);
    return intern(s, t);
}

ot_term ot_term_max(ot_size_terms *s, ot_term a, ot_term b) { return choose(s, a, b, T_MAX); }

ot_term ot_term_min(ot_size_terms *s, ot_term a, ot_term b) { return choose(s, a, b, T_MIN); }

/* As the shape rule of Resize computes it. */
static int64_t scaled(int64_t v, float by) { return (int64_t)floorf((float)v * by); }

ot_term ot_term_scale(ot_size_terms *s, ot_term a, float by)
{
    if (a == OT_NONE || !(by > 0) || by > 65536) return OT_NONE;
    const term x = s->all[a];
    if (x.least < 0 || (double)x.most * (double)by > (double)MOST) return OT_NONE;
    if (x.kind == T_CONST) return ot_term_const(s, scaled(x.v, by));
    if (by == floorf(by) && x.most * (int64_t)by < (1 << 24))
        return ot_term_mul(s, a, ot_term_const(s, (int64_t)by));
    if (by >= 0x1p-24f && x.most < (1 << 24) && frexpf(by, &(int){0}) == 0.5f && by < 1)
        return ot_term_div(s, a, ot_term_const(s, (int64_t)(1 / by)));
    term t = {.kind = T_SCALE, .a = a, .b = OT_NONE, .by = by, .vars = x.vars, .ways = x.ways};
    t.least = scaled(x.least, by);
    t.most = scaled(x.most, by);
    return intern(s, t);
}

int64_t ot_term_least(const ot_size_terms *s, ot_term t) { return s->all[t].least; }

int64_t ot_term_most(const ot_size_terms *s, ot_term t) { return s->all[t].most; }

bool ot_term_falls(const ot_size_terms *s, ot_term t)
{
    return t == OT_NONE || (s->all[t].ways & FALLS) != 0;
}

uint32_t ot_term_vars(const ot_size_terms *s, ot_term t)
{
    return t == OT_NONE ? 0 : s->all[t].vars;
}

/* One term, whose operands have theirs. */
static int64_t value_of(const term *x, const int64_t *have, const int64_t *at)
{
    const int64_t p = x->a == OT_NONE ? 0 : have[x->a], q = x->b == OT_NONE ? 0 : have[x->b];
    switch (x->kind) {
    case T_CONST: return x->v;
    case T_VAR: return at[x->v];
    case T_ADD: return p + q;
    case T_SUB: return p - q;
    case T_MUL: return p * q;
    case T_DIV: return p / q;
    case T_MAX: return ot_max(p, q);
    case T_MIN: return ot_min(p, q);
    case T_SCALE: return scaled(p, x->by);
    }
    return 0;
}

void ot_size_values(const ot_size_terms *s, const int64_t *at, int64_t *out)
{
    for (size_t k = 0; k < s->n; k++) out[k] = value_of(&s->all[k], out, at);
}

size_t ot_size_n_terms(const ot_size_terms *s) { return s->n; }
