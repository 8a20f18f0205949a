/* Verifier, rules of values: names, types, attributes, views, windows.
 *
 * A window is what `load` and `store` move: the ranges may reach over the tensor's border (a
 * tile's halo), but their extents are the same in every iteration and the buffer has room for
 * them. A subview lies inside its base.
 *
 *     x: 64 rows    -1 |..[======]....................| 64   load a <- x[16*i-1:16*i+17]  extent 18
 */
#include "tk_internal.h"

#include <inttypes.h>

/* ---- one value ---- */

static ot_status check_type(const tk_check *c, const ot_tk_value *v)
{
    int64_t bytes, all;
    if (v->rank < 1 || v->rank > OT_TK_RANK_MAX)
        return tk_bad_value(c, v, "'%s' has %" PRIu32 " dimensions: 1 to %d are allowed", v->name,
                            v->rank, OT_TK_RANK_MAX);
    for (uint32_t d = 0; d < v->rank; d++)
        if (v->dims[d] < 1)
            return tk_bad_value(
                c, v, "dimension %" PRIu32 " of '%s' is %" PRId64 ": at least 1 is allowed", d,
                v->name, v->dims[d]);
    if (ot_tk_dtype_bits(v->dtype) == 0)
        return tk_bad_value(c, v, "'%s' has the unknown element type '%s'", v->name,
                            v->dtype ? v->dtype : "");
    if (!tk_type_bytes(v->dtype, v->dims, v->rank, &bytes) ||
        !ot_mul_i64(bytes, OT_TK_MULTI_MAX, &all))
        return tk_bad_value(c, v, "the size of '%s' does not fit 64 bits", v->name);
    if (bytes != v->bytes)
        return tk_bad_value(c, v, "'%s' has %" PRId64 " bytes, but says %" PRId64, v->name, bytes,
                            v->bytes);
    if ((unsigned)v->scope >= OT_SCOPE_COUNT)
        return tk_bad_value(c, v, "'%s' is in no known memory", v->name);
    return OT_OK;
}

/* No offset is negative or reaches beyond 64 bits. */
static ot_status check_offsets(const tk_check *c, const ot_tk_value *v, const int64_t *offsets,
                               uint32_t n)
{
    int64_t end;
    if (n > OT_TK_MULTI_MAX)
        return tk_bad_value(c, v, "'%s' has more than %d offsets", v->name, OT_TK_MULTI_MAX);
    for (uint32_t k = 0; k < n; k++)
        if (offsets[k] < 0 || !ot_add_i64(offsets[k], v->bytes, &end))
            return tk_bad_value(c, v, "'%s' has an offset that is negative or too large", v->name);
    return OT_OK;
}

static ot_status check_attributes(const tk_check *c, const ot_tk_value *v)
{
    bool carries = v->kind == OT_TK_CARRIED || v->kind == OT_TK_RESULT; /* they may have places */
    if (v->multi < 1 || v->multi > OT_TK_MULTI_MAX)
        return tk_bad_value(c, v, "'%s' has multi=%" PRIu32 ": 1 to %d are allowed", v->name,
                            v->multi, OT_TK_MULTI_MAX);
    if (v->align < 0) return tk_bad_value(c, v, "'%s' has a negative alignment", v->name);
    if (v->n_offsets != 0 && v->n_offsets != v->multi && !carries)
        return tk_bad_value(c, v, "'%s' has %" PRIu32 " offsets for %" PRIu32 " slots", v->name,
                            v->n_offsets, v->multi);
    OT_TRY(check_offsets(c, v, v->offsets, v->n_offsets));
    OT_TRY(check_offsets(c, v, v->waits, v->n_waits));
    if (v->n_waits != 0 && v->kind != OT_TK_CARRIED)
        return tk_bad_value(c, v, "nothing is yielded to '%s'", v->name);
    if (v->workspace && v->scope != OT_SCOPE_GM)
        return tk_bad_value(c, v, "the workspace '%s' is not in gm", v->name);
    if (v->empty && v->kind != OT_TK_PARAM)
        return tk_bad_value(c, v, "'%s' is no tensor that the caller gets", v->name);
    bool barrier = v->kind == OT_TK_BUFFER && v->scope == OT_SCOPE_BARRIER;
    if (barrier != (v->arrive != 0) ||
        (barrier && (v->arrive < 1 || v->arrive > 1024 || v->multi != 1 || v->bytes != 8)))
        return tk_bad_value(c, v, "the barrier '%s' takes 1 to 1024 arrivals [barrier-count]",
                            v->name);
    OT_TRY(tk_check_kind(c, v));
    if (v->kind == OT_TK_BUFFER && v->scope == OT_SCOPE_HOST)
        return tk_bad_value(c, v, "'%s' is in host memory: only params are there [host-param]",
                            v->name);
    if (v->kind == OT_TK_BUFFER) return OT_OK;
    if (v->multi != 1 || v->align != 0 || (v->n_offsets != 0 && !carries) || v->workspace)
        return tk_bad_value(c, v, "'%s' is no allocated buffer, but has its attributes", v->name);
    if (v->kind == OT_TK_PARAM && v->scope != OT_SCOPE_GM && v->scope != OT_SCOPE_HOST)
        return tk_bad_value(c, v, "the param '%s' is in %s: params are in gm", v->name,
                            ot_scope_name(v->scope));
    return OT_OK;
}

ot_status tk_check_value(const tk_check *c, const ot_tk_value *v)
{
    if (!tk_is_name(v->name) || tk_is_keyword(v->name))
        return tk_bad_value(c, v, "'%s' is no name, or a word of the language",
                            v->name ? v->name : "");
    if (ot_map_get(c->names, v->name) != OT_NONE) {
        const ot_tk_value *other = &c->k->values[ot_map_get(c->names, v->name)];
        return tk_bad_value(c, v, "'%s' is defined already, in line %" PRIu32, v->name,
                            other->line);
    }
    OT_TRY(check_type(c, v));
    OT_TRY(check_attributes(c, v));
    bool view = v->kind == OT_TK_ALIAS || v->kind == OT_TK_SUBVIEW;
    if (!view && v->base != OT_NONE)
        return tk_bad_value(c, v, "'%s' is no view, but has a base", v->name);
    if (v->kind != OT_TK_SUBVIEW && v->ranges)
        return tk_bad_value(c, v, "'%s' is no subview, but has ranges", v->name);
    return OT_OK;
}

bool tk_same_type(const ot_tk_value *a, const ot_tk_value *b)
{
    if (a->rank != b->rank || a->scope != b->scope || a->rank > OT_TK_RANK_MAX || !a->dtype ||
        !b->dtype)
        return false;
    return memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 &&
           strcmp(a->dtype, b->dtype) == 0;
}

const char *tk_type_text(const ot_tk_value *v, char buf[TK_TYPE_TEXT])
{
    size_t n = 0; /* at most 8 * 21 bytes of dims */
    for (uint32_t d = 0; d < v->rank && d < OT_TK_RANK_MAX; d++)
        n += (size_t)snprintf(buf + n, TK_TYPE_TEXT - n, "%s%" PRId64, d ? "x" : "", v->dims[d]);
    snprintf(buf + n, TK_TYPE_TEXT - n, " %.16s @%s", v->dtype ? v->dtype : "?",
             ot_scope_name(v->scope));
    return buf;
}

/* ---- affine expressions ---- */

/* The open loop with this variable, or NULL. */
static const ot_tk_stmt *loop_of(const tk_check *c, const char *var)
{
    for (uint32_t b = c->n_blocks; b-- > 0;) {
        const ot_tk_stmt *s = &c->k->stmts[c->blocks[b].opener];
        if (s->op == OT_TK_FOR && (s->var == var || strcmp(s->var, var) == 0)) return s;
    }
    return NULL;
}

/* Adds the magnitude of n * times to *sum; false on overflow. */
static bool add_magnitude(int64_t n, int64_t times, int64_t *sum)
{
    int64_t product;
    return n != INT64_MIN && ot_mul_i64(n < 0 ? -n : n, times, &product) &&
           ot_add_i64(*sum, product, sum);
}

static ot_status check_affine(const tk_check *c, const ot_tk_affine *a)
{
    uint32_t max = sizeof a->terms / sizeof *a->terms;
    int64_t reach = 0; /* no iteration makes the expression or a part of it larger */
    if (a->n > max)
        return tk_bad_stmt(c, "an expression with more than %" PRIu32 " loop variables", max);
    bool fits = add_magnitude(a->constant, 1, &reach);
    for (uint32_t k = 0; k < a->n; k++) {
        const char *var = a->terms[k].var;
        const ot_tk_stmt *loop = var ? loop_of(c, var) : NULL;
        if (!loop)
            return tk_bad_stmt(c, "'%s' is no variable of a loop around this", var ? var : "");
        if (a->terms[k].coef == 0) return tk_bad_stmt(c, "the factor of '%s' is 0", var);
        for (uint32_t j = 0; j < k; j++)
            if (strcmp(a->terms[j].var, var) == 0)
                return tk_bad_stmt(c, "'%s' twice in one expression", var);
        fits = fits && add_magnitude(a->terms[k].coef, ot_max(loop->hi, 1), &reach);
    }
    return fits ? OT_OK : tk_bad_stmt(c, "a range's bound does not fit 64 bits in every iteration");
}

/* Extent of range d: the same in every iteration and at least 1. */
static ot_status check_range(const tk_check *c, const ot_tk_range *r, uint32_t d, int64_t *extent)
{
    OT_TRY(check_affine(c, &r->lo));
    OT_TRY(check_affine(c, &r->hi));
    if (!tk_extent(r, extent))
        return tk_bad_stmt(c, "range %" PRIu32 " has no constant extent (hi - lo)", d);
    if (*extent < 1)
        return tk_bad_stmt(c, "range %" PRIu32 " has the extent %" PRId64 ": at least 1 is allowed",
                           d, *extent);
    return OT_OK;
}

/* ---- views and windows ---- */

static ot_status check_subview(const tk_check *c, const ot_tk_value *v, const ot_tk_value *base)
{
    if (v->rank != base->rank || !v->dtype || strcmp(v->dtype, base->dtype) != 0 || !v->ranges)
        return tk_bad_stmt(c, "the subview '%s' has not the rank and element type of '%s'", v->name,
                           base->name);
    for (uint32_t d = 0; d < v->rank; d++) {
        const ot_tk_range *r = &v->ranges[d];
        int64_t extent;
        OT_TRY(check_range(c, r, d, &extent));
        bool constant = r->lo.n == 0;
        if (extent > base->dims[d] ||
            (constant && (r->lo.constant < 0 || r->hi.constant > base->dims[d])))
            return tk_bad_stmt(c,
                               "range %" PRIu32 " of '%s' leaves '%s', which has %" PRId64 " there",
                               d, v->name, base->name, base->dims[d]);
        if (extent != v->dims[d])
            return tk_bad_stmt(c, "dimension %" PRIu32 " of '%s' is not its range's extent", d,
                               v->name);
    }
    return OT_OK;
}

ot_status tk_check_view(const tk_check *c, const ot_tk_value *v)
{
    const ot_tk_value *base = &c->k->values[v->base];
    if (!v->name) return tk_bad_stmt(c, "a view without a name");
    if (v->scope != base->scope)
        return tk_bad_stmt(c, "the view '%s' is not in the memory of '%s'", v->name, base->name);
    if (v->kind == OT_TK_SUBVIEW) return check_subview(c, v, base);
    if (v->bytes > base->bytes)
        return tk_bad_stmt(
            c, "the alias '%s' (%" PRId64 " bytes) is larger than '%s' (%" PRId64 " bytes)",
            v->name, v->bytes, base->name, base->bytes);
    return OT_OK;
}

ot_status tk_check_window(const tk_check *c, const ot_tk_value *tensor, const ot_tk_value *buffer)
{
    const ot_tk_stmt *s = &c->k->stmts[c->at];
    int64_t extents[OT_TK_RANK_MAX], moved = 0, room = 0;
    if (s->ranges) {
        if (s->n_ranges != tensor->rank)
            return tk_bad_stmt(c, "%" PRIu32 " ranges for '%s', which has %" PRIu32 " dimensions",
                               s->n_ranges, tensor->name, tensor->rank);
        for (uint32_t d = 0; d < tensor->rank; d++)
            OT_TRY(check_range(c, &s->ranges[d], d, &extents[d]));
    } else {
        memcpy(extents, tensor->dims, sizeof extents);
    }
    if (!ot_product(extents, tensor->rank, &moved) ||
        !ot_product(buffer->dims, buffer->rank, &room))
        return tk_bad_stmt(c, "the window's number of elements does not fit 64 bits");
    if (moved > room)
        return tk_bad_stmt(c, "%" PRId64 " elements of '%s' are moved, but '%s' has %" PRId64,
                           moved, tensor->name, buffer->name, room);
    return OT_OK;
}
