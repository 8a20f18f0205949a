/* Verifier, rules of special values: vars, tensor memory, reducers, descriptors, shared memory
 * without `dyn`, pools.
 *
 *   reducer    raw --fill--> takes updates of its operation --finalize--> may be read (and filled
 *              again)
 *   tmem       128 lanes x a power of two of columns (32 to 512); taken in numbers that never grow,
 *              freed in its block by the warp
 *              that took it; touched by matrix operations and copies only
 *
 * Statements are taken in the order of the text. A message ends with the rule's name in brackets.
 */
#include "tk_internal.h"

#include <inttypes.h>

#define STATIC_SHARED_MAX (48 << 10) /* bytes of one buffer that no launch sizes */
#define TMEM_COLUMN       512        /* bytes: 128 lanes of 32 bits */

static const char *const REDUCTIONS[] = {"?", "sum", "max", "min"};

/* ---- by themselves ---- */

static ot_status check_tmem(const tk_check *c, const ot_tk_value *v)
{
    int64_t columns = v->bytes / TMEM_COLUMN;
    if (v->rank != 2 || v->dims[0] != 128 || v->bytes % TMEM_COLUMN != 0)
        return tk_bad_value(c, v,
                            "tensor memory has 128 lanes of 32-bit columns: '%s' is 128 rows of "
                            "whole columns [tmem-lanes]",
                            v->name);
    if (columns < 32 || columns > 512 || (columns & (columns - 1)) != 0)
        return tk_bad_value(c, v,
                            "'%s' takes %" PRId64
                            " columns: 32, 64, 128, 256 or 512 are allowed [tmem-columns]",
                            v->name, columns);
    return v->multi == 1 ? OT_OK
                         : tk_bad_value(c, v,
                                        "tensor memory has no slots: '%s' has multi=%" PRIu32
                                        " [tmem-columns]",
                                        v->name, v->multi);
}

static ot_status check_descriptor(const tk_check *c, const ot_tk_value *v)
{
    const char *want = v->descriptor == OT_TK_TCGEN05_INSTRUCTION ? "u32" : "u64";
    if ((unsigned)v->descriptor > OT_TK_TCGEN05_INSTRUCTION || !v->descriptor)
        return tk_bad_value(c, v, "'%s' is a descriptor of no known kind [descriptor-kind]",
                            v->name);
    return strcmp(v->dtype, want) == 0
               ? OT_OK
               : tk_bad_value(c, v, "the descriptor '%s' is %s [descriptor-type]", v->name, want);
}

static ot_status check_pool(const tk_check *c, const ot_tk_value *v)
{
    if (v->pool > c->k->n_pools || !c->k->pools)
        return tk_bad_value(c, v, "'%s' is of a pool that does not exist", v->name);
    if (v->scope != c->k->pools[v->pool - 1].scope)
        return tk_bad_value(c, v, "'%s' is not in the memory of its pool", v->name);
    return v->multi == 1
               ? OT_OK
               : tk_bad_value(c, v,
                              "what a pool hands out has one slot: '%s' has multi=%" PRIu32
                              " [pool-multi]",
                              v->name, v->multi);
}

ot_status tk_check_kind(const tk_check *c, const ot_tk_value *v)
{
    bool own = v->kind == OT_TK_BUFFER;
    if (!own && (v->pool || v->warp || v->dynamic || v->init != 0))
        return tk_bad_value(c, v, "'%s' is no allocated buffer", v->name);
    if (v->scope == OT_SCOPE_TMEM && own) OT_TRY(check_tmem(c, v));
    if (v->warp && v->scope != OT_SCOPE_TMEM)
        return tk_bad_value(c, v, "'%s' is no tensor memory: no warp takes it [tmem-warp]",
                            v->name);
    if (v->pool) OT_TRY(check_pool(c, v));
    if (v->dynamic && v->scope != OT_SCOPE_SHARED)
        return tk_bad_value(c, v, "'%s' is not in shared memory", v->name);
    if (own && v->scope == OT_SCOPE_SHARED && !v->dynamic && !v->pool &&
        v->bytes * v->multi > STATIC_SHARED_MAX)
        return tk_bad_value(c, v,
                            "'%s' takes %" PRId64 " bytes: without a launch's word shared memory "
                            "has %d, with @shared.dyn more [static-shared]",
                            v->name, v->bytes * v->multi, STATIC_SHARED_MAX);
    bool var = own && v->scope == OT_SCOPE_VAR;
    if (var && (v->rank != 1 || v->dims[0] != 1 || v->multi != 1))
        return tk_bad_value(c, v, "the var '%s' has one element [var-element]", v->name);
    if ((!var && v->init != 0) || v->init != v->init)
        return tk_bad_value(c, v, "'%s' is no var, but has a first value", v->name);
    bool reducer = own && v->scope == OT_SCOPE_REDUCER;
    if (reducer != (v->reduction != OT_TK_NO_REDUCTION) || (unsigned)v->reduction > OT_TK_MIN ||
        (!reducer && v->replication))
        return tk_bad_value(c, v, "a reducer has an operation, others have none: '%s' [reducer-op]",
                            v->name);
    bool descriptor = own && v->scope == OT_SCOPE_DESCRIPTOR;
    if (descriptor) return check_descriptor(c, v);
    return v->descriptor ? tk_bad_value(c, v, "'%s' is no descriptor [descriptor-kind]", v->name)
                         : OT_OK;
}

/* ---- tensor memory ---- */

ot_status tk_check_kind_alloc(tk_check *c, uint32_t v)
{
    const ot_tk_value *x = &c->k->values[v];
    if (x->scope != OT_SCOPE_TMEM) return OT_OK;
    int64_t columns = x->bytes / TMEM_COLUMN;
    if (c->columns && columns > c->columns)
        return tk_bad_stmt(c,
                           "'%s' takes %" PRId64 " columns after %" PRId64
                           ": from one allocation to the next the number never grows [tmem-growth]",
                           x->name, columns, c->columns);
    c->columns = columns;
    return OT_OK;
}

ot_status tk_check_kind_free(const tk_check *c, const ot_tk_stmt *s)
{
    const ot_tk_value *x = &c->k->values[c->root[s->in[0]]];
    if (x->scope != OT_SCOPE_TMEM)
        return s->warp ? tk_bad_stmt(c, "'%s' is no tensor memory: no warp frees it [tmem-warp]",
                                     x->name)
                       : OT_OK;
    if (s->warp == x->warp) return OT_OK;
    return tk_bad_stmt(
        c, "'%s' is freed by warp %" PRId64 ", but warp %" PRId64 " took it [tmem-warp]", x->name,
        (int64_t)(s->warp ? s->warp - 1 : 0), (int64_t)(x->warp ? x->warp - 1 : 0));
}

ot_status tk_check_kind_end(const tk_check *c, uint32_t shown)
{
    for (uint32_t i = shown; i < c->n_shown; i++) {
        uint32_t v = c->shown[i];
        const ot_tk_value *x = &c->k->values[v];
        if (x->kind != OT_TK_BUFFER || x->scope != OT_SCOPE_TMEM || c->freed_by[v] != OT_NONE)
            continue;
        return tk_bad_value(
            c, x, "the tensor memory '%s' is never freed: it must be, in its block [tmem-free]",
            x->name);
    }
    return OT_OK;
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(name, names[k]) == 0) return true;
    return false;
}

static const ot_tk_value *root_of(const tk_check *c, uint32_t v)
{
    return &c->k->values[c->root[v]];
}

static ot_status check_tmem_use(const tk_check *c, const ot_tk_stmt *s, uint32_t v, uint32_t other)
{
    static const char *const products[] = {"mma", "mmad", "matmul", "accumulate"};
    const ot_tk_value *x = root_of(c, v);
    if (x->scope != OT_SCOPE_TMEM) return OT_OK;
    if (s->op == OT_TK_COMPUTE && s->pipe == OT_PIPE_CUBE && is_one_of(s->name, products, 4))
        return OT_OK;
    ot_scope to = other == OT_NONE ? OT_SCOPE_COUNT : root_of(c, other)->scope;
    if (s->op == OT_TK_COPY &&
        (to == OT_SCOPE_FRAGMENT || to == OT_SCOPE_LOCAL || to == OT_SCOPE_SHARED))
        return OT_OK;
    return tk_bad_stmt(c,
                       "'%s' is tensor memory: cube.mma, mmad, matmul, accumulate and copies from "
                       "and to registers or shared memory touch it [tmem-access]",
                       x->name);
}

/* ---- reducers ---- */

static bool reads(const ot_tk_stmt *s, const tk_check *c, uint32_t root)
{
    for (uint32_t k = 0; k < s->n_in; k++)
        if (c->root[s->in[k]] == root) return true;
    return false;
}

static ot_status check_update(tk_check *c, const ot_tk_stmt *s, uint32_t root)
{
    static const char *const sums[] = {"add", "accumulate", "mmad", "mma", "fma"};
    const ot_tk_value *x = &c->k->values[root];
    const char *op = REDUCTIONS[x->reduction];
    bool fits = s->op == OT_TK_COMPUTE && reads(s, c, root) &&
                (x->reduction == OT_TK_SUM ? is_one_of(s->name, sums, 5)
                                           : strcmp(s->name, op) == 0);
    if (!fits)
        return tk_bad_stmt(c,
                           "'%s' is a reducer of %s: it changes by fill, by %s of itself and "
                           "something, and by finalize [reducer-op]",
                           x->name, op, x->reduction == OT_TK_SUM ? "add" : op);
    if (c->reducer[root] == TK_FILLED) return OT_OK;
    return tk_bad_stmt(c, "'%s' takes updates after fill only, and before finalize [reducer-fill]",
                       x->name);
}

static ot_status check_reducer_write(tk_check *c, const ot_tk_stmt *s, uint32_t root)
{
    const ot_tk_value *x = &c->k->values[root];
    if (s->op == OT_TK_COMPUTE && strcmp(s->name, "fill") == 0) {
        const ot_tk_attr *a = ot_tk_attr_find(s, "value");
        if (x->reduction == OT_TK_SUM && a && a->values[0] != 0)
            return tk_bad_stmt(
                c, "a sum begins with 0: '%s' is filled with something else [reducer-identity]",
                x->name);
        if (x->reduction != OT_TK_SUM && !a)
            return tk_bad_stmt(
                c, "a %s begins with a limit: fill '%s' with value=%sinf [reducer-identity]",
                REDUCTIONS[x->reduction], x->name, x->reduction == OT_TK_MAX ? "-" : "");
        c->reducer[root] = TK_FILLED;
        return OT_OK;
    }
    if (s->op == OT_TK_COMPUTE && strcmp(s->name, "finalize") == 0) {
        if (c->reducer[root] != TK_FILLED || !reads(s, c, root))
            return tk_bad_stmt(c, "'%s' is finalized once, after its fill [reducer-fill]", x->name);
        c->reducer[root] = TK_FINAL;
        return OT_OK;
    }
    return check_update(c, s, root);
}

static ot_status check_reducer_read(const tk_check *c, const ot_tk_stmt *s, uint32_t root)
{
    for (uint32_t k = 0; k < s->n_out; k++)
        if (c->root[s->out[k]] == root) return OT_OK; /* an update, looked at before */
    if (c->reducer[root] == TK_FINAL) return OT_OK;
    return tk_bad_stmt(
        c, "'%s' holds partial results: finalize it before it is read [reducer-finalize]",
        c->k->values[root].name);
}

/* ---- descriptors ---- */

static ot_status check_descriptor_use(const tk_check *c, const ot_tk_stmt *s, uint32_t v,
                                      bool write)
{
    const ot_tk_value *x = root_of(c, v);
    if (x->scope != OT_SCOPE_DESCRIPTOR) return OT_OK;
    bool makes = s->op == OT_TK_COMPUTE && s->pipe == OT_PIPE_SCALAR &&
                 strcmp(s->name, "describe") == 0;
    if (write && makes && x->descriptor == OT_TK_TCGEN05_INSTRUCTION && s->n_in == 0) return OT_OK;
    if (write && makes && s->n_in == 1 && root_of(c, s->in[0])->scope == OT_SCOPE_SHARED)
        return OT_OK;
    if (!write && s->op == OT_TK_COMPUTE && s->pipe == OT_PIPE_CUBE) return OT_OK;
    return tk_bad_stmt(c,
                       "'%s' is a descriptor: scalar.describe of shared memory makes it, cube "
                       "operations read it [descriptor-use]",
                       x->name);
}

/* ---- all of them ---- */

ot_status tk_check_kind_use(tk_check *c, const ot_tk_stmt *s)
{
    bool moves = s->op == OT_TK_LOAD || s->op == OT_TK_STORE || s->op == OT_TK_COPY;
    if (!moves && s->op != OT_TK_COMPUTE) return OT_OK;
    for (uint32_t k = 0; k < s->n_out; k++) {
        uint32_t root = c->root[s->out[k]];
        OT_TRY(check_tmem_use(c, s, s->out[k], moves ? s->in[0] : OT_NONE));
        OT_TRY(check_descriptor_use(c, s, s->out[k], true));
        if (c->k->values[root].scope == OT_SCOPE_REDUCER && c->k->values[root].kind == OT_TK_BUFFER)
            OT_TRY(check_reducer_write(c, s, root));
    }
    for (uint32_t k = 0; k < s->n_in; k++) {
        uint32_t root = c->root[s->in[k]];
        OT_TRY(check_tmem_use(c, s, s->in[k], moves ? s->out[0] : OT_NONE));
        OT_TRY(check_descriptor_use(c, s, s->in[k], false));
        if (c->k->values[root].scope == OT_SCOPE_REDUCER && c->k->values[root].kind == OT_TK_BUFFER)
            OT_TRY(check_reducer_read(c, s, root));
    }
    for (uint32_t k = 0; moves && k < 2; k++) {
        const ot_tk_value *x = root_of(c, k ? s->in[0] : s->out[0]),
                          *y = root_of(c, k ? s->out[0] : s->in[0]);
        if (x->scope == OT_SCOPE_HOST && (y->scope != OT_SCOPE_GM || s->op != OT_TK_COPY))
            return tk_bad_stmt(
                c, "'%s' is in host memory: only copy moves it, from and to gm [host-copy]",
                x->name);
    }
    for (uint32_t k = 0; !moves && k < s->n_in; k++)
        if (root_of(c, s->in[k])->scope == OT_SCOPE_HOST)
            return tk_bad_stmt(
                c, "'%s' is in host memory: only copy moves it, from and to gm [host-copy]",
                root_of(c, s->in[k])->name);
    return OT_OK;
}
