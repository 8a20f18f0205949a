/* Random kernels as text: nested loops and branches, carried values (swapped, yielded twice,
 * unused), views, writes of parts, multi-buffers, several memories. Every one parses; a few ask
 * for a multi-buffer that keeps a value, which the lifetimes refuse. Same seed, same text. */
#ifndef KERNEL_GEN_H
#define KERNEL_GEN_H

#include <stdarg.h>

#include "tk/planmem/planmem.h"

typedef struct kg_value {
    char name[12];
    int64_t dims[2];
    uint32_t rank;
    const char *dtype;
    uint32_t width; /* bytes of an element */
    const char *scope;
    bool buffer, param, freed;
    uint32_t root, loop;
} kg_value;

typedef struct kg {
    uint64_t random;
    char *text;
    size_t n, cap;
    kg_value v[160];
    uint32_t n_values;
    uint32_t n_names;
    uint32_t loop, n_loops; /* number of the innermost one, from 1 */
    char vars[8][8];        /* open counted loops */
    int64_t limits[8];      /* their variables are below */
    uint32_t n_vars;
    int budget, depth;
    /* with writes of parts, views of parts, reads of what is not written, loops that never run */
    bool parts;
    bool multi;   /* with multi-buffers */
    uint32_t pad; /* buffers that nothing touches before each other one: those are far apart then */
    uint32_t n_pads;
} kg;

static uint64_t kg_rnd(kg *g, uint64_t n)
{
    g->random ^= g->random << 13;
    g->random ^= g->random >> 7;
    g->random ^= g->random << 17;
    return g->random % n;
}

static void kg_put(kg *g, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(g->text + g->n, g->cap - g->n, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= g->cap - g->n) abort();
    g->n += (size_t)n;
}

static void kg_indent(kg *g) { kg_put(g, "%*s", 2 * g->depth + 2, ""); }

static int64_t kg_elements(const kg_value *v)
{
    return v->rank == 1 ? v->dims[0] : v->dims[0] * v->dims[1];
}

static void kg_type(kg *g, const kg_value *v)
{
    if (v->rank == 1)
        kg_put(g, "%d %s", (int)v->dims[0], v->dtype);
    else
        kg_put(g, "%dx%d %s", (int)v->dims[0], (int)v->dims[1], v->dtype);
}

static bool kg_same(const kg_value *a, const kg_value *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 && strcmp(a->scope, b->scope) == 0;
}

/* A visible value, of the type of `like` unless NULL; OT_NONE: none. */
static uint32_t kg_pick(kg *g, const kg_value *like)
{
    uint32_t fit = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint32_t at = pass && fit ? (uint32_t)kg_rnd(g, fit) : 0;
        for (uint32_t i = 0; i < g->n_values; i++) {
            const kg_value *v = &g->v[i];
            if (v->param || g->v[v->root].freed || (like && !kg_same(v, like))) continue;
            if (!pass)
                fit++;
            else if (at-- == 0)
                return i;
        }
    }
    return OT_NONE;
}

static uint32_t kg_new(kg *g, const kg_value *type)
{
    if (g->n_values >= 150) return OT_NONE;
    kg_value *v = &g->v[g->n_values];
    *v = *type;
    snprintf(v->name, sizeof v->name, "v%u", g->n_names++);
    v->buffer = v->param = v->freed = false;
    v->root = g->n_values;
    v->loop = g->loop;
    return g->n_values++;
}

/* ---- statements ---- */

static uint32_t kg_alloc(kg *g, const kg_value *like)
{
    static const kg_value types[] = {
        {.dims = {8}, .rank = 1, .dtype = "f32", .width = 4},
        {.dims = {8}, .rank = 1, .dtype = "f32", .width = 4},
        {.dims = {2, 4}, .rank = 2, .dtype = "f32", .width = 4},
        {.dims = {4, 8}, .rank = 2, .dtype = "i8", .width = 1},
        {.dims = {16}, .rank = 1, .dtype = "f16", .width = 2},
        {.dims = {8}, .rank = 1, .dtype = "i32", .width = 4},
        {.dims = {3, 5}, .rank = 2, .dtype = "u8", .width = 1},
    };
    static const char *const scopes[] = {"ub", "ub", "ub", "ub", "l1", "gm"};
    kg_value type = like ? *like : types[kg_rnd(g, sizeof types / sizeof *types)];
    if (!like) type.scope = scopes[kg_rnd(g, sizeof scopes / sizeof *scopes)];
    uint32_t id = kg_new(g, &type);
    if (id == OT_NONE) return id;
    g->v[id].buffer = true;
    for (uint32_t i = 0; i < g->pad; i++) kg_put(g, "alloc pad%u: 1 i8 @bt\n", g->n_pads++);
    kg_indent(g);
    kg_put(g, "alloc %s: ", g->v[id].name);
    kg_type(g, &type);
    kg_put(g, " @%s", type.scope);
    if (kg_rnd(g, 6) == 0) kg_put(g, " align=%d", 1 << kg_rnd(g, 4));
    if (g->multi && kg_rnd(g, g->loop ? 4 : 12) == 0) kg_put(g, " multi=%d", 2 + (int)kg_rnd(g, 2));
    kg_put(g, "\n");
    return id;
}

static void kg_load(kg *g, uint32_t to)
{
    int64_t n = kg_elements(&g->v[to]);
    if (g->parts && kg_rnd(g, 5) == 0) n = 1 + (int64_t)kg_rnd(g, (uint64_t)n);
    kg_indent(g);
    kg_put(g, "load %s <- x[0:%d]\n", g->v[to].name, (int)n);
}

static void kg_store(kg *g, uint32_t from)
{
    kg_indent(g);
    kg_put(g, "store y[0:%d] <- %s\n", (int)(1 + kg_rnd(g, (uint64_t)kg_elements(&g->v[from]))),
           g->v[from].name);
}

/* A window of a buffer in gm is written. */
static void kg_store_part(kg *g, uint32_t to, uint32_t from)
{
    const kg_value *t = &g->v[to], *f = &g->v[from];
    if (strcmp(t->scope, "gm") != 0 || t->rank != 1) return;
    int64_t lo = (int64_t)kg_rnd(g, (uint64_t)t->dims[0]),
            n = 1 + (int64_t)kg_rnd(g, (uint64_t)(t->dims[0] - lo));
    if (!g->parts) lo = 0, n = t->dims[0];
    if (n > kg_elements(f)) return;
    kg_indent(g);
    kg_put(g, "store %s[%d:%d] <- %s\n", t->name, (int)lo, (int)(lo + n), f->name);
}

static void kg_copy(kg *g, uint32_t to, uint32_t from)
{
    if (kg_elements(&g->v[from]) > kg_elements(&g->v[to])) return;
    if (!g->parts && kg_elements(&g->v[from]) != kg_elements(&g->v[to])) return;
    kg_indent(g);
    kg_put(g, "copy %s <- %s\n", g->v[to].name, g->v[from].name);
}

static void kg_compute(kg *g, uint32_t to, uint32_t first)
{
    static const char *const ops[] = {
        "vector.relu",      "vector.add",    "vector.mul",  "vector.sub", "vector.exp",
        "vector.cast",      "vector.where",  "cube.mmad",   "vector.add", "vector.prelu",
        "vector.transpose", "vector.reduce", "cube.matmul", "scalar.set", "vector.split"};
    uint32_t n_in = 1 + (uint32_t)kg_rnd(g, 3);
    uint32_t second = kg_pick(g, NULL);
    bool two = second != to && kg_rnd(g, 10) == 0;
    kg_indent(g);
    kg_put(g, "%s%s%s = %s(", g->v[to].name, two ? ", " : "", two ? g->v[second].name : "",
           ops[kg_rnd(g, sizeof ops / sizeof *ops)]);
    for (uint32_t i = 0; i < n_in; i++) {
        uint32_t in = i == 0 && first != OT_NONE ? first
                                                 : kg_pick(g, kg_rnd(g, 3) ? &g->v[to] : NULL);
        kg_put(g, "%s%s", i ? ", " : "", g->v[in].name);
    }
    kg_put(g, ")\n");
}

static void kg_view(kg *g, uint32_t base)
{
    kg_value type = g->v[base];
    uint32_t root = type.root;
    bool part = g->parts && kg_rnd(g, 2) == 0;
    if (part) {
        int64_t rows = type.dims[0], lo = (int64_t)kg_rnd(g, (uint64_t)rows),
                n = 1 + (int64_t)kg_rnd(g, (uint64_t)(rows - lo));
        uint32_t var = g->n_vars ? (uint32_t)kg_rnd(g, g->n_vars) : 0;
        bool moves = g->n_vars && g->limits[var] <= rows && kg_rnd(g, 2);
        if (moves) n = 1;
        type.dims[0] = n;
        uint32_t id = kg_new(g, &type);
        if (id == OT_NONE) return;
        kg_indent(g);
        kg_put(g, "subview %s = %s[", g->v[id].name, g->v[base].name);
        if (moves)
            kg_put(g, "%s:%s+1", g->vars[var], g->vars[var]);
        else
            kg_put(g, "%d:%d", (int)lo, (int)(lo + n));
        if (type.rank == 2) kg_put(g, ", 0:%d", (int)type.dims[1]);
        kg_put(g, "]\n");
        g->v[id].root = root;
        return;
    }
    int64_t bytes = kg_elements(&type) * type.width;
    bool flat = kg_rnd(g, 2);
    if (flat) {
        type.rank = 1;
        type.dims[0] = bytes / type.width;
    }
    if (flat && g->parts && type.dims[0] > 1 && kg_rnd(g, 3) == 0) type.dims[0]--;
    uint32_t id = kg_new(g, &type);
    if (id == OT_NONE) return;
    kg_indent(g);
    kg_put(g, "alias %s = %s: ", g->v[id].name, g->v[base].name);
    kg_type(g, &type);
    kg_put(g, "\n");
    g->v[id].root = root;
}

static void kg_free(kg *g, uint32_t v)
{
    kg_value *root = &g->v[g->v[v].root];
    if (!root->buffer || root->loop != g->loop) return;
    kg_indent(g);
    kg_put(g, "free %s\n", g->v[v].name);
    root->freed = true;
}

static void kg_block(kg *g, int statements);

/* yield one value for each type; mostly of a fresh computation. */
static void kg_yield(kg *g, const kg_value *types, uint32_t n)
{
    char names[4][12];
    for (uint32_t j = 0; j < n; j++) {
        uint32_t v = kg_pick(g, &types[j]);
        if (v == OT_NONE || kg_rnd(g, 2)) {
            uint32_t fresh = kg_alloc(g, &types[j]);
            if (fresh != OT_NONE) {
                if (v == OT_NONE)
                    kg_load(g, fresh);
                else
                    kg_compute(g, fresh, v);
                v = fresh;
            }
        }
        if (v == OT_NONE) abort();
        memcpy(names[j], g->v[v].name, sizeof names[j]);
    }
    kg_indent(g);
    kg_put(g, "yield (");
    for (uint32_t j = 0; j < n; j++) kg_put(g, "%s%s", j ? ", " : "", names[j]);
    kg_put(g, ")\n");
}

/* Results: values after the block, named before it. */
static void kg_results(kg *g, const kg_value *types, uint32_t n, char (*names)[12], bool define)
{
    for (uint32_t j = 0; j < n; j++) {
        if (!define) {
            snprintf(names[j], sizeof names[j], "v%u", g->n_names++);
            kg_put(g, "%s%s%s", j ? ", " : "", names[j], j + 1 == n ? " = " : "");
            continue;
        }
        uint32_t id = kg_new(g, &types[j]);
        if (id == OT_NONE) return;
        g->n_names--;
        memcpy(g->v[id].name, names[j], sizeof names[j]);
    }
}

static void kg_head(kg *g, bool counted, uint32_t n_vars)
{
    if (!counted) {
        uint32_t c = kg_pick(g, NULL);
        kg_put(g, "while (%s)", c != OT_NONE && kg_rnd(g, 2) ? g->v[c].name : "?");
        return;
    }
    int lo = (int)kg_rnd(g, 2), hi = lo + (int)kg_rnd(g, 4);
    if (!g->parts && hi == lo) hi++;
    bool known = kg_rnd(g, 2);
    snprintf(g->vars[n_vars], sizeof g->vars[n_vars], "i%u", n_vars);
    g->limits[n_vars] = known ? hi : 1000;
    if (known)
        kg_put(g, "for i%u in %d..%d", n_vars, lo, hi);
    else
        kg_put(g, "for i%u in %d..?", n_vars, lo);
    g->n_vars++;
    if (kg_rnd(g, 6) == 0) kg_put(g, " step 2");
}

static void kg_loop(kg *g, int statements)
{
    kg_value types[4];
    char inits[4][12], results[4][12];
    bool counted = kg_rnd(g, 3) > 0;
    uint32_t n = (uint32_t)kg_rnd(g, 4), n_vars = g->n_vars, n_values, loop = g->loop;
    for (uint32_t j = 0; j < n; j++) {
        uint32_t v = kg_pick(g, j && kg_rnd(g, 2) ? &types[0] : NULL);
        types[j] = g->v[v];
        memcpy(inits[j], g->v[v].name, sizeof inits[j]);
    }
    kg_indent(g);
    kg_results(g, types, n, results, false);
    kg_head(g, counted, n_vars);
    n_values = g->n_values;
    g->loop = ++g->n_loops;
    for (uint32_t j = 0; j < n; j++) {
        uint32_t id = kg_new(g, &types[j]);
        kg_put(g, "%s%s = %s%s", j ? ", " : " carry (", g->v[id].name, inits[j],
               j + 1 == n ? ")" : "");
    }
    kg_put(g, " {\n");
    g->depth++;
    kg_block(g, statements);
    if (n) kg_yield(g, types, n);
    g->depth--;
    kg_indent(g);
    kg_put(g, "}\n");
    g->n_values = n_values;
    g->n_vars = n_vars;
    g->loop = loop;
    kg_results(g, types, n, results, true);
}

static void kg_if(kg *g, int statements)
{
    kg_value types[4];
    char results[4][12];
    bool freed[160], freed_then[160];
    uint32_t n = (uint32_t)kg_rnd(g, 3), n_values = g->n_values;
    for (uint32_t j = 0; j < n; j++) types[j] = g->v[kg_pick(g, NULL)];
    uint32_t c = kg_pick(g, NULL);
    kg_indent(g);
    kg_results(g, types, n, results, false);
    kg_put(g, "if (%s) {\n", kg_rnd(g, 2) ? g->v[c].name : "?");
    for (uint32_t i = 0; i < n_values; i++) freed[i] = g->v[i].freed;
    g->depth++;
    kg_block(g, statements);
    if (n) kg_yield(g, types, n);
    g->n_values = n_values;
    for (uint32_t i = 0; i < n_values; i++) freed_then[i] = g->v[i].freed, g->v[i].freed = freed[i];
    if (n || kg_rnd(g, 2)) {
        g->depth--;
        kg_indent(g);
        kg_put(g, "} else {\n");
        g->depth++;
        kg_block(g, statements);
        if (n) kg_yield(g, types, n);
        g->n_values = n_values;
    }
    for (uint32_t i = 0; i < n_values; i++) g->v[i].freed = g->v[i].freed || freed_then[i];
    g->depth--;
    kg_indent(g);
    kg_put(g, "}\n");
    kg_results(g, types, n, results, true);
}

static void kg_statement(kg *g)
{
    uint64_t what = kg_rnd(g, 20);
    if (what < 2 || g->n_values < 5) {
        uint32_t v = kg_alloc(g, NULL);
        if (v != OT_NONE && (kg_rnd(g, 4) || !g->parts)) kg_load(g, v);
        return;
    }
    uint32_t a = kg_pick(g, NULL), b = kg_pick(g, NULL);
    if (a == OT_NONE) return;
    if (what < 3) {
        kg_load(g, a);
    } else if (what < 5) {
        kg_store(g, a);
    } else if (what < 6) {
        kg_copy(g, a, b);
    } else if (what < 7) {
        kg_view(g, a);
    } else if (what < 8) {
        kg_store_part(g, a, b);
    } else if (what < 9 && kg_rnd(g, 3) == 0) {
        kg_free(g, a);
    } else if (what < 12 && g->depth < 3) {
        kg_loop(g, 1 + (int)kg_rnd(g, 5));
    } else if (what < 14 && g->depth < 3) {
        kg_if(g, (int)kg_rnd(g, 4));
    } else if (what < 17) {
        uint32_t fresh = kg_alloc(g, &g->v[b]);
        if (fresh != OT_NONE) kg_compute(g, fresh, b);
    } else {
        kg_compute(g, a, b);
    }
}

static void kg_block(kg *g, int statements)
{
    for (int i = 0; i < statements && g->budget > 0; i++, g->budget--) kg_statement(g);
}

/* A kernel of about `size` statements into text[cap]. */
static size_t kg_kernel(uint64_t seed, int size, bool parts, bool multi, uint32_t pad, char *text,
                        size_t cap)
{
    kg g = {.random = seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u,
            .text = text,
            .cap = cap,
            .parts = parts,
            .multi = multi,
            .budget = size,
            .pad = pad};
    if (!g.random) g.random = 1;
    kg_put(&g, "kernel k%u {\n  param x: 4096 i8 @gm\n  param y: 4096 i8 @gm\n", (unsigned)seed);
    for (int i = 0; i < 5; i++) {
        uint32_t v = kg_alloc(&g, NULL);
        if (kg_rnd(&g, 5) || !parts) kg_load(&g, v);
    }
    kg_block(&g, size);
    for (int i = 0; i < 2; i++) {
        uint32_t v = kg_pick(&g, NULL);
        if (v != OT_NONE) kg_store(&g, v);
    }
    kg_put(&g, "}\n");
    return g.n;
}

#endif
