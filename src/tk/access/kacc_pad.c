/* Padding a kernel: longer rows of shared buffers, and a subview with the old name and shape.
 *
 *   alloc a: 32x32 f32 @shared          alloc a.pad: 32x33 f32 @shared
 *                                       subview a = a.pad[0:32, 0:32]
 */
#include "kernel_access.h"

/* All numbers of statements behind `at` are one more. */
static void shift(ot_kernel *k, uint32_t at)
{
    for (uint32_t i = 0; i < k->n_stmts; i++) {
        ot_tk_stmt *s = &k->stmts[i];
        if (s->mate != OT_NONE && s->mate > at) s->mate++;
        if (s->parent != OT_NONE && s->parent > at) s->parent++;
    }
    for (uint32_t v = 0; v < k->n_values; v++)
        if (k->values[v].stmt != OT_NONE && k->values[v].stmt > at) k->values[v].stmt++;
}

static bool is_taken(const ot_kernel *k, const char *name)
{
    for (uint32_t v = 0; v < k->n_values; v++)
        if (strcmp(k->values[v].name, name) == 0) return true;
    return false;
}

/* A name that no value has; NULL when memory ran out. */
static const char *pad_name(const ot_kernel *k, const char *name)
{
    const char *own = ot_format(k->arena, "%.240s.pad", name);
    for (uint32_t n = 2; own && is_taken(k, own); n++)
        own = ot_format(k->arena, "%.240s.pad%u", name, n);
    return own;
}

/* Room for one value and one statement more; false when memory ran out. */
static bool grow(ot_kernel *k)
{
    ot_tk_value *values = OT_NEW_N(k->arena, ot_tk_value, k->n_values + 1u);
    ot_tk_stmt *stmts = OT_NEW_N(k->arena, ot_tk_stmt, k->n_stmts + 1u);
    if (!values || !stmts) return false;
    memcpy(values, k->values, k->n_values * sizeof *values);
    memcpy(stmts, k->stmts, k->n_stmts * sizeof *stmts);
    k->values = values;
    k->stmts = stmts;
    return true;
}

static bool pad(ot_kernel *k, const ot_kaccess_pad *p)
{
    uint32_t at = k->values[p->value].stmt, id = k->n_values,
             *out = OT_NEW_N(k->arena, uint32_t, 2);
    ot_tk_range *all = OT_NEW_N(k->arena, ot_tk_range, OT_TK_RANK_MAX);
    const char *name = pad_name(k, k->values[p->value].name);
    if (!out || !all || !name || !grow(k)) return false;
    ot_tk_value *x = &k->values[p->value], *whole = &k->values[id];
    int64_t row = x->dims[x->rank - 1];
    *whole = *x;
    whole->name = name;
    whole->dims[x->rank - 1] = row + p->elements;
    whole->bytes = x->bytes / row * (row + p->elements); /* elements of whole bytes */
    for (uint32_t d = 0; d < x->rank; d++) all[d].hi.constant = x->dims[d];
    *x = (ot_tk_value){.name = x->name,
                       .kind = OT_TK_SUBVIEW,
                       .line = x->line,
                       .col = x->col,
                       .rank = x->rank,
                       .dtype = x->dtype,
                       .bytes = x->bytes,
                       .scope = x->scope,
                       .multi = 1,
                       .base = id,
                       .ranges = all,
                       .stmt = at + 1};
    memcpy(x->dims, whole->dims, sizeof x->dims);
    x->dims[x->rank - 1] = row;
    shift(k, at);
    x->stmt = at + 1;
    memmove(&k->stmts[at + 2], &k->stmts[at + 1], (k->n_stmts - at - 1) * sizeof *k->stmts);
    out[0] = id;
    out[1] = p->value;
    k->stmts[at + 1] = (ot_tk_stmt){.op = OT_TK_VIEW,
                                    .line = k->stmts[at].line,
                                    .col = k->stmts[at].col,
                                    .out = &out[1],
                                    .n_out = 1,
                                    .mate = OT_NONE,
                                    .parent = k->stmts[at].parent};
    k->stmts[at].out = &out[0];
    k->n_values++;
    k->n_stmts++;
    return true;
}

ot_status ot_kaccess_apply(ot_kernel *k, const ot_kaccess_pad *pads, uint32_t n, ot_diag *d)
{
    for (uint32_t j = 0; j < n; j++)
        if (!pad(k, &pads[j])) return ot_fail_nomem(d);
    return OT_OK;
}
