/* The body of a vector function: which element of which argument is read and written when.
 *
 *   scf.for %i = %c0 to %c4096 step %c64 {          a block that repeats
 *     %v = memref.subview %x[%i] [64] [1] : ...     a place: 64 elements from i on
 *     %0 = vector.transfer_read %v[%c0], ...        x is read there
 *     vector.transfer_write %1, %w[%c0] ...         y is written at the same place
 *   }                                               y may lie where x does
 *
 * Where all reads of x come before all writes of y in one block, and what an iteration writes no
 * later one reads, y takes the place of x. Whatever else touches an argument may do anything
 * with it. */
#include "mlir_vector.h"

#define ACCESSES_MAX 4096
#define BODY         0 /* the block of the function itself */

typedef struct dim {
    uint32_t loop; /* the block whose variable it begins at; BODY: at a number */
    int64_t at, size;
} dim;

typedef struct place {
    bool known;
    dim dims[OT_TK_RANK_MAX];
} place;

typedef struct block {
    uint32_t parent;
    bool is_loop, counted; /* counted: the numbers are known, with at least one iteration */
    int64_t lo, hi, step;
} block;

typedef enum kind { NOTHING, NUMBER, VARIABLE, VIEW } kind;

typedef struct symbol {
    kind kind;
    int64_t number;
    uint32_t block; /* VARIABLE */
    uint32_t arg;   /* VIEW */
    bool reduced;   /* VIEW: it has fewer dimensions than its argument */
    place place;    /* VIEW */
} symbol;

typedef struct access {
    uint32_t arg, block;
    bool writes, covers; /* covers: every element of the place */
    place place;
} access;

typedef struct scan {
    ml_lexer lx;
    ot_arena *a;
    ot_map *names; /* -> index into symbols */
    symbol *symbols;
    size_t n_symbols, cap_symbols;
    block *blocks;
    size_t n_blocks, cap_blocks;
    access *accesses;
    size_t n_accesses, cap_accesses;
    uint32_t at; /* block */
    uint32_t n_args;
    ml_type types[ML_LIST_MAX];
    bool escapes[ML_LIST_MAX];
    bool lost, nomem; /* nothing can be said */
} scan;

/* ---- names ---- */

static const char *token_text(scan *s)
{
    const char *t = ot_format(s->a, "%.*s", (int)s->lx.r.len, s->lx.r.text + s->lx.r.at);
    if (!t) s->nomem = true;
    return t;
}

static void define(scan *s, const char *name, symbol x)
{
    if (!name || !OT_PUSH(s->a, s->symbols, s->n_symbols, s->cap_symbols, x) ||
        !ot_map_put(s->names, name, (uint32_t)s->n_symbols - 1))
        s->nomem = true;
}

/* The value that the current token names, skipped. */
static symbol use(scan *s)
{
    if (s->lx.tok != ML_VALUE) {
        s->lost = true;
        return (symbol){.kind = NOTHING};
    }
    const char *name = token_text(s);
    const uint32_t k = name ? ot_map_get(s->names, name) : OT_NONE;
    ml_next(&s->lx);
    return k == OT_NONE ? (symbol){.kind = NOTHING} : s->symbols[k];
}

static void escape(scan *s, const symbol *x)
{
    if (x->kind == VIEW) s->escapes[x->arg] = true;
}

static bool is_around(const scan *s, uint32_t outer, uint32_t b)
{
    for (; b != BODY; b = s->blocks[b].parent)
        if (b == outer) return true;
    return outer == BODY;
}

/* ---- pieces of statements ---- */

static void expect(scan *s, int punct)
{
    if (!ml_accept(&s->lx, punct)) s->lost = true;
}

/* [%i, 0, 5]: at most OT_TK_RANK_MAX numbers and values. */
static uint32_t read_list(scan *s, symbol *list)
{
    uint32_t n = 0;
    expect(s, '[');
    while (!s->lost && !ml_is(&s->lx, ']')) {
        if (n == OT_TK_RANK_MAX) {
            s->lost = true;
        } else if (s->lx.tok == ML_INT) {
            list[n++] = (symbol){.kind = NUMBER, .number = s->lx.value};
            ml_next(&s->lx);
        } else {
            list[n] = use(s);
            escape(s, &list[n++]);
        }
        if (!ml_is(&s->lx, ']')) expect(s, ',');
    }
    expect(s, ']');
    return n;
}

/* {in_bounds = [true], permutation_map = ...}: is the order of dimensions another one? */
static bool read_settings(scan *s)
{
    bool permuted = false;
    if (!ml_is(&s->lx, '{')) return false;
    const size_t from = s->lx.r.at;
    if (ml_skip_brackets(&s->lx) != OT_OK) s->lost = true;
    for (size_t k = from; k + 11 <= s->lx.r.at; k++)
        permuted = permuted || memcmp(s->lx.r.text + k, "permutation", 11) == 0;
    return permuted;
}

/* Dimensions of vector<1x64xf32> or memref<...>, and their number; false: not all are numbers. */
static bool read_shape(scan *s, const char *word, int64_t *dims, uint32_t *rank)
{
    ml_lexer *lx = &s->lx;
    *rank = 0;
    if (!ml_accept_word(lx, word) || !ml_is(lx, '<')) {
        s->lost = true;
        return false;
    }
    ml_lexer look = *lx;
    bool known = true;
    look.in_shape = true;
    ml_next(&look);
    for (size_t k = 0; look.tok == ML_DIMS && k < look.r.len; k++) {
        const size_t from = k;
        while (look.r.text[look.r.at + k] != 'x') k++;
        if (*rank == OT_TK_RANK_MAX) {
            s->lost = true;
            return false;
        }
        known = ot_digits_value(look.r.text + look.r.at + from, k - from, &dims[*rank]) && known;
        ++*rank;
    }
    known = known && (look.tok == ML_DIMS || look.tok == ML_WORD);
    if (ml_skip_brackets(lx) != OT_OK) s->lost = true;
    return known;
}

/* ---- places ---- */

static place all_of(const ml_type *t)
{
    place p = {.known = t->is_static && t->layout == 0 && t->dtype};
    for (uint32_t d = 0; p.known && d < t->rank; d++) p.dims[d] = (dim){BODY, 0, t->dims[d]};
    return p;
}

/* From `base` on by one index more; false: not known. */
static bool moved(const scan *s, dim *base, const symbol *by)
{
    if (by->kind == NUMBER && by->number == 0) return true;
    if (base->loop != BODY) return false;
    if (by->kind == NUMBER) return ot_add_i64(base->at, by->number, &base->at);
    if (by->kind != VARIABLE || base->at != 0 || !is_around(s, by->block, s->at)) return false;
    base->loop = by->block;
    return true;
}

/* %v = memref.subview %x[%i] [64] [1] : T to U */
static void read_subview(scan *s, const char *result)
{
    symbol at[OT_TK_RANK_MAX], size[OT_TK_RANK_MAX], stride[OT_TK_RANK_MAX];
    int64_t dims[OT_TK_RANK_MAX];
    uint32_t rank = 0, own = 0;
    ml_next(&s->lx);
    symbol x = use(s);
    const uint32_t n = read_list(s, at), n2 = read_list(s, size), n3 = read_list(s, stride);
    (void)read_settings(s);
    expect(s, ':');
    (void)read_shape(s, "memref", dims, &rank);
    if (!ml_accept_word(&s->lx, "to")) s->lost = true;
    (void)read_shape(s, "memref", dims, &own);
    if (x.kind != VIEW || s->lost || !result) return;
    place *p = &x.place;
    p->known = p->known && !x.reduced && n == s->types[x.arg].rank && n2 == n && n3 == n;
    for (uint32_t d = 0; p->known && d < n; d++) {
        p->known = moved(s, &p->dims[d], &at[d]) && size[d].kind == NUMBER &&
                   stride[d].kind == NUMBER && stride[d].number == 1;
        p->dims[d].size = size[d].number;
    }
    x.reduced = x.reduced || own != rank;
    define(s, result, x);
}

static bool all_zero(const symbol *index, uint32_t n)
{
    for (uint32_t d = 0; d < n; d++)
        if (index[d].kind != NUMBER || index[d].number != 0) return false;
    return true;
}

/* The view's place, moved by `index`, where elements [dims] are; n_dims OT_NONE: one element. All
 * of the view stands for a vector at its beginning. */
static place place_of(const scan *s, const symbol *x, const symbol *index, uint32_t n,
                      const int64_t *dims, uint32_t n_dims)
{
    place p = x->place;
    const uint32_t rank = s->types[x->arg].rank;
    const bool zero = all_zero(index, n), one = n_dims == OT_NONE;
    if (!zero && (x->reduced || n != rank || (!one && n_dims != n))) p.known = false;
    for (uint32_t d = 0; p.known && d < rank; d++) {
        if (!zero) p.known = moved(s, &p.dims[d], &index[d]);
        if (one || !zero) p.dims[d].size = one ? 1 : dims[d];
        p.known = p.known && is_around(s, p.dims[d].loop, s->at);
    }
    return p;
}

static void add_access(scan *s, const symbol *x, const place *p, int64_t elements, access is)
{
    int64_t size = 1;
    if (x->kind != VIEW || s->lost) return;
    is.arg = x->arg;
    is.block = s->at;
    is.place = *p;
    bool fits = p->known;
    for (uint32_t d = 0; fits && d < s->types[x->arg].rank; d++)
        fits = ot_mul_i64(size, p->dims[d].size, &size);
    is.covers = is.covers && fits && elements == size;
    for (uint32_t b = s->at; b != BODY; b = s->blocks[b].parent)
        if (!s->blocks[b].is_loop) escape(s, x); /* who knows when */
    if (s->n_accesses == ACCESSES_MAX)
        s->lost = true;
    else if (!OT_PUSH(s->a, s->accesses, s->n_accesses, s->cap_accesses, is))
        s->nomem = true;
}

/* vector.transfer_read %v[%c0], %pad, %mask {...} : memref, vector
 * vector.transfer_write %1, %v[%c0], %mask {...} : vector, memref */
static void read_transfer(scan *s, bool writes)
{
    symbol index[OT_TK_RANK_MAX];
    int64_t dims[OT_TK_RANK_MAX], other[OT_TK_RANK_MAX];
    uint32_t rank = 0, n_other = 0, more = 0;
    ml_next(&s->lx);
    if (writes) {
        const symbol value = use(s);
        escape(s, &value);
        expect(s, ',');
    }
    const symbol x = use(s);
    const uint32_t n = read_list(s, index);
    for (; ml_accept(&s->lx, ','); more++) {
        const symbol value = use(s);
        escape(s, &value);
    }
    const bool permuted = read_settings(s);
    expect(s, ':');
    bool known = writes ? read_shape(s, "vector", dims, &rank) : true;
    if (!writes) (void)read_shape(s, "memref", other, &n_other);
    expect(s, ',');
    if (!writes) known = read_shape(s, "vector", dims, &rank);
    if (writes) (void)read_shape(s, "memref", other, &n_other);
    if (x.kind != VIEW || s->lost) return;
    int64_t elements = 1;
    for (uint32_t d = 0; known && d < rank; d++) known = ot_mul_i64(elements, dims[d], &elements);
    place p = place_of(s, &x, index, n, dims, rank);
    p.known = p.known && known && (!permuted || all_zero(index, n));
    add_access(s, &x, &p, elements, (access){.writes = writes, .covers = writes && more == 0});
}

/* %0 = memref.load %x[%i] : T; memref.store %0, %x[%i] : T */
static void read_element(scan *s, bool writes)
{
    symbol index[OT_TK_RANK_MAX];
    ml_next(&s->lx);
    if (writes) {
        const symbol value = use(s);
        escape(s, &value);
        expect(s, ',');
    }
    const symbol x = use(s);
    const uint32_t n = read_list(s, index);
    if (x.kind != VIEW || s->lost) return;
    const place p = place_of(s, &x, index, n, NULL, OT_NONE);
    add_access(s, &x, &p, 1, (access){.writes = writes, .covers = writes});
}

/* ---- blocks ---- */

static void open_block(scan *s, block b)
{
    b.parent = s->at;
    if (!OT_PUSH(s->a, s->blocks, s->n_blocks, s->cap_blocks, b)) {
        s->nomem = true;
        return;
    }
    s->at = (uint32_t)s->n_blocks - 1;
}

/* scf.for %i = %lo to %hi step %step [iter_args(...) -> (...)] [: i32] { */
static void read_for(scan *s)
{
    ml_next(&s->lx);
    const char *var = s->lx.tok == ML_VALUE ? token_text(s) : NULL;
    (void)use(s);
    expect(s, '=');
    const symbol lo = use(s);
    if (!ml_accept_word(&s->lx, "to")) s->lost = true;
    const symbol hi = use(s);
    if (!ml_accept_word(&s->lx, "step")) s->lost = true;
    const symbol step = use(s);
    while (!s->lost && s->lx.r.status == OT_OK && s->lx.tok != ML_END && !ml_is(&s->lx, '{')) {
        if (s->lx.tok == ML_VALUE) {
            const symbol x = use(s);
            escape(s, &x);
        } else
            ml_next(&s->lx);
    }
    expect(s, '{');
    if (s->lost) return;
    block b = {.is_loop = true, .lo = lo.number, .hi = hi.number, .step = step.number};
    b.counted = lo.kind == NUMBER && hi.kind == NUMBER && step.kind == NUMBER && b.step > 0 &&
                b.lo >= 0 && b.lo < b.hi;
    open_block(s, b);
    if (!s->nomem) define(s, var, (symbol){.kind = VARIABLE, .block = s->at});
}

/* The word is an operation's name, or part of what is not looked at. */
static void read_word(scan *s, const char *result)
{
    ml_lexer *lx = &s->lx;
    if (ml_is_word(lx, "arith.constant")) {
        ml_next(lx);
        if (result && lx->tok == ML_INT)
            define(s, result, (symbol){.kind = NUMBER, .number = lx->value});
    } else if (ml_is_word(lx, "memref.subview")) {
        read_subview(s, result);
    } else if (ml_is_word(lx, "vector.transfer_read")) {
        read_transfer(s, false);
    } else if (ml_is_word(lx, "vector.transfer_write")) {
        read_transfer(s, true);
    } else if (ml_is_word(lx, "memref.load")) {
        read_element(s, false);
    } else if (ml_is_word(lx, "memref.store")) {
        read_element(s, true);
    } else if (ml_is_word(lx, "scf.for")) {
        read_for(s);
    } else {
        ml_next(lx);
    }
}

static void read_value(scan *s)
{
    const char *name = token_text(s);
    const symbol x = use(s);
    if (!ml_accept(&s->lx, '=')) {
        escape(s, &x);
        return;
    }
    define(s, name, (symbol){.kind = NOTHING});
    if (s->lx.tok == ML_WORD) read_word(s, name);
}

static void read_body(scan *s)
{
    ml_lexer *lx = &s->lx;
    open_block(s, (block){.parent = BODY});
    s->at = BODY;
    for (ml_next(lx); !s->lost && !s->nomem && lx->r.status == OT_OK;) {
        if (lx->tok == ML_VALUE) {
            read_value(s);
        } else if (lx->tok == ML_WORD) {
            read_word(s, NULL);
        } else if (ml_is(lx, '}') && s->at == BODY) {
            return;
        } else if (lx->tok == ML_END || lx->tok == ML_LABEL) {
            break;
        } else {
            if (ml_is(lx, '{')) open_block(s, (block){.is_loop = false});
            if (ml_is(lx, '}')) s->at = s->blocks[s->at].parent;
            lx->in_shape = ml_is(lx, '<');
            ml_next(lx);
        }
    }
    s->lost = true;
}

/* (%x: type {...}, ...) */
static void read_arguments(scan *s)
{
    expect(s, '(');
    while (!s->lost && !s->nomem && !ml_is(&s->lx, ')')) {
        const char *name = s->lx.tok == ML_VALUE ? token_text(s) : NULL;
        const uint32_t k = s->n_args++;
        if (k == ML_LIST_MAX) s->lost = true;
        (void)use(s);
        expect(s, ':');
        if (s->lost || ml_parse_type(&s->lx, &s->types[k]) != OT_OK) {
            s->lost = true;
            return;
        }
        (void)read_settings(s);
        if (s->types[k].kind == ML_MEMREF_TYPE)
            define(s, name, (symbol){.kind = VIEW, .arg = k, .place = all_of(&s->types[k])});
        if (!ml_is(&s->lx, ')')) expect(s, ',');
    }
}

/* ---- what follows ---- */

static bool same_place(const place *a, const place *b, uint32_t rank)
{
    bool same = a->known && b->known;
    for (uint32_t d = 0; same && d < rank; d++)
        same = a->dims[d].loop == b->dims[d].loop && a->dims[d].at == b->dims[d].at &&
               a->dims[d].size == b->dims[d].size;
    return same;
}

static bool runs_once(const block *b) { return b->counted && b->hi - b->lo <= b->step; }

/* The dimension that loop b moves along; OT_NONE: none, or more than one. */
static uint32_t dim_of(const scan *s, const access *x, uint32_t b)
{
    uint32_t found = OT_NONE, n = 0;
    for (uint32_t d = 0; d < s->types[x->arg].rank; d++)
        if (x->place.dims[d].loop == b) {
            found = d;
            n++;
        }
    return n == 1 ? found : OT_NONE;
}

/* Does this write, with its loops, reach every element? */
static bool writes_all(const scan *s, const access *x)
{
    const ml_type *t = &s->types[x->arg];
    if (!x->writes || !x->covers) return false;
    for (uint32_t b = x->block; b != BODY; b = s->blocks[b].parent)
        if (!s->blocks[b].counted) return false;
    for (uint32_t d = 0; d < t->rank; d++) {
        const dim *p = &x->place.dims[d];
        const block *b = &s->blocks[p->loop];
        const bool whole = p->loop == BODY
                               ? p->at == 0 && p->size == t->dims[d]
                               : dim_of(s, x, p->loop) == d && b->lo == 0 && b->hi == t->dims[d] &&
                                     b->step == p->size && t->dims[d] % p->size == 0;
        if (!whole) return false;
    }
    return true;
}

/* No two iterations of the loops around x touch one element. ascending: and each touches elements
 * behind those of all before it. */
static bool goes_on(const scan *s, const access *x, bool ascending)
{
    const ml_type *t = &s->types[x->arg];
    uint32_t last = t->rank, inner = OT_NONE; /* dimension of the loop inside of the one at hand */
    for (uint32_t b = x->block; b != BODY; b = s->blocks[b].parent) {
        if (runs_once(&s->blocks[b])) continue;
        const uint32_t d = dim_of(s, x, b);
        if (!s->blocks[b].counted || d == OT_NONE || s->blocks[b].step < x->place.dims[d].size)
            return false;
        if (inner == OT_NONE) {
            inner = d;
        } else if (ascending && (d > last || x->place.dims[d].size != 1)) {
            return false;
        }
        last = d;
    }
    for (uint32_t d = 0; ascending && inner != OT_NONE && d < t->rank; d++) {
        const dim *p = &x->place.dims[d];
        if (d < inner && p->size != 1) return false;
        if (d > inner && (p->loop != BODY || p->size != t->dims[d])) return false;
    }
    return true;
}

static bool same_extents(const ml_type *a, const ml_type *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++) same = a->dims[d] == b->dims[d];
    return same;
}

/* May argument o lie where argument i does? */
static bool lies_over(const scan *s, const ml_effects *e, uint32_t o, uint32_t i)
{
    const ml_type *to = &s->types[o], *from = &s->types[i];
    const access *first = NULL;
    if (o == i || !e->whole[o] || e->reads[o] || !e->reads[i] || e->writes[i]) return false;
    if (!to->is_static || !from->is_static || !to->dtype || !from->dtype) return false;
    const uint32_t bits = ot_tk_dtype_bits(to->dtype), wide = ot_tk_dtype_bits(from->dtype);
    if (bits > wide || (bits < wide && bits % 8 != 0) || !same_extents(to, from)) return false;
    bool once = true, written = false;
    for (size_t k = 0; k < s->n_accesses; k++) {
        const access *x = &s->accesses[k];
        if (x->arg != o && x->arg != i) continue;
        if (!first) first = x;
        if (x->block != first->block || (written && x->arg == i)) return false;
        written = written || x->arg == o;
        for (uint32_t b = x->block; b != BODY; b = s->blocks[b].parent)
            once = once && runs_once(&s->blocks[b]);
        if (!once && !same_place(&x->place, &first->place, to->rank)) return false;
    }
    return first && (once || goes_on(s, first, bits < wide));
}

static ot_status conclude(const scan *s, ot_arena *a, const ml_effects **out)
{
    const uint32_t n = s->n_args;
    ml_effects *e = OT_NEW(a, ml_effects);
    if (!e || !(e->over = OT_NEW_N(a, bool, (size_t)n *n + 1))) return OT_E_NOMEM;
    e->n = n;
    for (uint32_t k = 0; k < n; k++) e->reads[k] = e->writes[k] = s->escapes[k];
    for (size_t k = 0; k < s->n_accesses; k++) {
        const access *x = &s->accesses[k];
        if (x->writes)
            e->writes[x->arg] = true;
        else
            e->reads[x->arg] = true;
        e->whole[x->arg] = e->whole[x->arg] || (!s->escapes[x->arg] && writes_all(s, x));
    }
    for (uint32_t k = 0; k < n; k++) e->whole[k] = e->whole[k] && !e->reads[k];
    for (uint32_t o = 0; o < n; o++)
        for (uint32_t i = 0; i < n; i++) e->over[(size_t)o * n + i] = lies_over(s, e, o, i);
    *out = e;
    return OT_OK;
}

ot_status ml_find_effects(const ml_lexer *arguments, const ml_lexer *body, ot_arena *a,
                          const ml_effects **out)
{
    ot_diag d = {0}; /* what is wrong is said where the text is read */
    *out = NULL;
    ot_arena *own = ot_arena_new();
    scan *s = own ? OT_NEW(own, scan) : NULL;
    ot_status st = OT_E_NOMEM;
    if (s && (s->names = ot_map_new(own))) {
        s->a = own;
        s->lx = *arguments;
        s->lx.r.d = &d;
        read_arguments(s);
        s->lx = *body;
        s->lx.r.d = &d;
        if (!s->lost && !s->nomem) read_body(s);
        st = s->nomem ? OT_E_NOMEM : s->lost ? OT_OK : conclude(s, a, out);
    }
    ot_arena_free(own);
    return st;
}
