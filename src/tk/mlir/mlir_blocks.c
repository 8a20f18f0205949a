/* Branches between the blocks of a function, and allocations that are seen outside of the region
 * that makes them.
 *
 *   cf.cond_br %c, ^bb1(%a : T), ^bb2            if ? { if ? { bb1 } else { bb2 } }
 *   ^bb1(%x : T): ... cf.br ^bb3(%b : T)         if ? { bb3 }
 *   ^bb2: ... cf.br ^bb3(%a : T)                 %x is %a; %y is %a or %b
 *   ^bb3(%y : T): ... return
 *
 * A kernel has no jumps, so it gets every path that the text has, and some more: a block is run
 * or not, two that never follow one another are the branches of one `if`, and what a branch
 * backwards spans is a loop. What is alive on a path of the text is alive in the kernel.
 *
 * An argument is an address: it may be any buffer that a branch passes. Who reads it reads all
 * of them, who writes it writes a part of each. What may be passed is found by reading the body
 * again until nothing new comes.
 */
#include "mlir_internal.h"

/* ---- what symbols may be ---- */

ot_status ml_merge(ml_parser *p, ml_symbol *into, const ml_symbol *from)
{
    uint32_t *all = OT_NEW_N(p->a, uint32_t, into->n_also + from->n_also + 2);
    uint32_t n = 0;
    if (!all) return ml_nomem(p);
    for (uint32_t k = 0; k < into->n_also; k++) all[n++] = into->also[k];
    for (uint32_t k = 0; k <= from->n_also && from->value != OT_NONE; k++) {
        uint32_t v = k == 0 ? from->value : from->also[k - 1], j = 0;
        if (into->value == OT_NONE) into->value = v;
        while (j < n && all[j] != v) j++;
        if (v != into->value && j == n) all[n++] = v;
    }
    if (n >= ML_LIST_MAX) return ml_fail(&p->lx, "a name that may be more than %d", ML_LIST_MAX);
    into->also = all;
    into->n_also = n;
    into->is_part = into->is_part || from->is_part;
    into->is_memref = into->is_memref || from->is_memref;
    return OT_OK;
}

/* The allocation that a value is, or is a view of; OT_NONE: none. *part: of a part. */
static uint32_t cast_of(const ml_parser *p, uint32_t v, bool *part)
{
    for (const ot_tk_value *x; (x = ot_kb_at(p->b, v))->base != OT_NONE; v = x->base)
        *part = *part || x->kind == OT_TK_SUBVIEW;
    for (size_t k = 0; k < p->m->n_casts; k++)
        if (p->m->casts[k].value == v) return (uint32_t)k;
    return OT_NONE;
}

static ot_status no_root(ml_parser *p, const ml_symbol *s)
{
    return ml_fail(&p->lx,
                   "'%%%s' leads out of its region, and is neither an allocation nor a view of one",
                   s->name);
}

/* The same as an index into casts. */
static ot_status rooted(ml_parser *p, uint32_t symbol, ml_symbol *out)
{
    const ml_symbol s = p->symbols[symbol];
    *out = (ml_symbol){.name = s.name, .value = OT_NONE, .is_memref = s.is_memref};
    for (uint32_t k = 0; s.value != OT_NONE && k <= s.n_also; k++) {
        ml_symbol one = {.is_part = s.is_part};
        one.value = cast_of(p, k == 0 ? s.value : s.also[k - 1], &one.is_part);
        if (one.value == OT_NONE) return no_root(p, &s);
        OT_TRY(ml_merge(p, out, &one));
    }
    return OT_OK;
}

/* Indices into casts become ids. */
static ot_status seen_here(ml_parser *p, ml_symbol *s)
{
    uint32_t *also = OT_NEW_N(p->a, uint32_t, s->n_also + 1u);
    const ml_passes *o = p->passes;
    if (!also) return ml_nomem(p);
    if (!o->hoist || s->value == OT_NONE) { /* this reading counts for nothing */
        s->value = OT_NONE;
        s->n_also = 0;
        return OT_OK;
    }
    for (uint32_t k = 0; k < s->n_also; k++) also[k] = p->hoisted[s->also[k]];
    s->value = p->hoisted[s->value];
    s->also = also;
    return OT_OK;
}

ot_status ml_rooted(ml_parser *p, uint32_t symbol, ml_symbol *out)
{
    OT_TRY(rooted(p, symbol, out));
    if (!p->passes->hoist) p->passes->again = true;
    return seen_here(p, out);
}

ot_status ml_seen_behind(ml_parser *p, uint32_t symbol, uint32_t first, ml_symbol *out)
{
    const ml_symbol s = p->symbols[symbol];
    *out = (ml_symbol){.name = s.name, .value = OT_NONE, .is_memref = s.is_memref};
    for (uint32_t k = 0; s.value != OT_NONE && k <= s.n_also; k++) {
        ml_symbol one = {.value = k == 0 ? s.value : s.also[k - 1], .is_part = s.is_part};
        const ot_tk_value *x;
        while (one.value >= first && (x = ot_kb_at(p->b, one.value))->base != OT_NONE) {
            one.is_part = one.is_part || x->kind == OT_TK_SUBVIEW;
            one.value = x->base;
        }
        if (one.value >= first) {
            one.value = cast_of(p, one.value, &one.is_part);
            if (one.value == OT_NONE) return no_root(p, &s);
            if (!p->passes->hoist) p->passes->again = true;
            OT_TRY(seen_here(p, &one));
        }
        OT_TRY(ml_merge(p, out, &one));
    }
    return OT_OK;
}

ot_status ml_hoist(ml_parser *p)
{
    ml_passes *o = p->passes;
    if (!o->hoist) return OT_OK;
    p->hoisted = OT_NEW_N(p->a, uint32_t, o->n_hoisted + 1);
    if (!p->hoisted) return ml_nomem(p);
    for (size_t k = 0; k < o->n_hoisted; k++) {
        ot_tk_value v = o->hoisted[k];
        ot_tk_stmt s = ml_stmt(p, OT_TK_ALLOC);
        if (v.rank == 0) { /* no bytes */
            p->hoisted[k] = OT_NONE;
            continue;
        }
        s.line = v.line;
        s.col = v.col;
        v.stmt = ot_kb_n_stmts(p->b);
        OT_TRY(ml_add_value(p, v.name, OT_TK_BUFFER, &v, &p->hoisted[k]));
        s.out = &p->hoisted[k];
        s.n_out = 1;
        OT_TRY(ml_add_stmt(p, s, NULL));
    }
    return OT_OK;
}

/* ---- loops and pairs ---- */

/* Branches backwards as spans [lo, hi] of blocks, such that two are disjoint or one holds the
 * other. Returns their number. */
static size_t find_loops(const ml_passes *o, uint32_t *lo, uint32_t *hi)
{
    size_t n = 0;
    for (uint32_t b = 0; b < o->n_blocks; b++)
        for (size_t k = 0; k < o->blocks[b]->n_to; k++) {
            uint32_t to = o->blocks[b]->to[k];
            if (to > b) continue;
            lo[n] = to;
            hi[n++] = b;
        }
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                if (lo[i] < lo[j] && lo[j] <= hi[i] && hi[i] < hi[j]) {
                    hi[i] = hi[j];
                    moved = true;
                }
    }
    return n;
}

/* Do branches forwards lead from block b to the next? */
static bool reaches_next(const ml_passes *o, uint32_t b)
{
    for (size_t k = 0; k < o->blocks[b]->n_to; k++)
        if (o->blocks[b]->to[k] == b + 1) return true;
    return false;
}

static size_t n_branches(const ml_passes *o)
{
    size_t n = 1;
    for (size_t b = 0; b < o->n_blocks; b++) n += o->blocks[b]->n_to;
    return n;
}

ot_status ml_order_blocks(ml_parser *p)
{
    ml_passes *o = p->passes;
    uint32_t *lo = OT_NEW_N(p->a, uint32_t, n_branches(o));
    uint32_t *hi = OT_NEW_N(p->a, uint32_t, n_branches(o));
    if (!lo || !hi) return ml_nomem(p);
    size_t n = find_loops(o, lo, hi);
    for (size_t k = 0; k < n; k++) {
        o->blocks[lo[k]]->n_opens++;
        o->blocks[hi[k]]->n_closes++;
    }
    for (uint32_t b = 1; b + 1 < o->n_blocks; b++) {
        ml_block *first = o->blocks[b], *second = o->blocks[b + 1];
        if (first->pair == 2 || first->n_closes > 0 || second->n_opens > 0) continue;
        if (reaches_next(o, b)) continue;
        first->pair = 1;
        second->pair = 2;
    }
    o->ordered = true;
    return OT_OK;
}

/* ---- blocks ---- */

static ot_status find_block(ml_parser *p, const char *label, uint32_t *b)
{
    ml_passes *o = p->passes;
    for (*b = 0; *b < o->n_blocks; ++*b)
        if (strcmp(o->blocks[*b]->label, label) == 0) return OT_OK;
    ml_block *x = OT_NEW(p->a, ml_block);
    if (!x || !OT_PUSH(p->a, o->blocks, o->n_blocks, o->cap_blocks, x)) return ml_nomem(p);
    x->label = label;
    return OT_OK;
}

static ot_status put(ml_parser *p, ot_tk_op op) { return ml_add_stmt(p, ml_stmt(p, op), NULL); }

/* The end of the block under way. */
static ot_status close_block(ml_parser *p)
{
    if (p->block == 0 || !p->passes->ordered) return OT_OK;
    const ml_block *b = p->passes->blocks[p->block];
    if (b->pair != 1) OT_TRY(put(p, OT_TK_END));
    if (b->pair == 2) OT_TRY(put(p, OT_TK_END));
    for (uint32_t k = 0; k < b->n_closes; k++) OT_TRY(put(p, OT_TK_END));
    return OT_OK;
}

static ot_status open_block(ml_parser *p)
{
    const ml_block *b = p->passes->blocks[p->block];
    if (!p->passes->ordered) return OT_OK;
    for (uint32_t k = 0; k < b->n_opens; k++) OT_TRY(put(p, OT_TK_WHILE));
    OT_TRY(put(p, b->pair == 2 ? OT_TK_ELSE : OT_TK_IF));
    return b->pair == 1 ? put(p, OT_TK_IF) : OT_OK;
}

/* The first label of a body: what was before it is block 0. */
static ot_status begin(ml_parser *p)
{
    uint32_t entry;
    if (p->passes->n_blocks == 0) {
        OT_TRY(find_block(p, "", &entry));
        p->passes->blocks[0]->is_defined = true;
    }
    if (!p->passes->ordered) p->passes->again = true;
    return OT_OK;
}

/* `(%a : T, ...)` */
static ot_status block_arguments(ml_parser *p, ml_block *b)
{
    ml_type t;
    uint32_t n = 0;
    while (!ml_is(&p->lx, ')')) {
        if (n == ML_LIST_MAX) return ml_fail(&p->lx, "more than %d arguments", ML_LIST_MAX);
        if (p->lx.tok != ML_VALUE) return ml_expected(&p->lx, "a value");
        const char *name = ml_token_name(p);
        uint32_t line = p->lx.r.tok_line, col = p->lx.r.tok_col;
        ml_symbol s = {.value = OT_NONE};
        if (b->is_defined && n < b->n_args) s = b->args[n];
        OT_TRY(seen_here(p, &s));
        ml_next(&p->lx);
        OT_TRY(ml_expect(&p->lx, ':'));
        OT_TRY(ml_parse_type(&p->lx, &t));
        s.is_memref = t.kind == ML_MEMREF_TYPE;
        OT_TRY(ml_define(p, name, line, col, s));
        n++;
        if (!ml_is(&p->lx, ')')) OT_TRY(ml_expect(&p->lx, ','));
    }
    if (b->n_args != n && (b->is_defined || b->n_args > 0))
        return ml_fail(&p->lx, "%u arguments, but a branch passes %u", n, b->n_args);
    b->n_args = n;
    ml_next(&p->lx);
    return p->lx.r.status;
}

/* In the first reading blocks take their places in the order of the text. */
static ot_status place_block(ml_parser *p, uint32_t found)
{
    ml_passes *o = p->passes;
    ml_block *b = o->blocks[found];
    if (o->ordered) return OT_OK;
    if (b->is_defined) return ml_fail(&p->lx, "the block '^%s' is there already", b->label);
    uint32_t place = p->block + 1;
    o->blocks[found] = o->blocks[place];
    o->blocks[place] = b;
    for (size_t k = 0; k < o->n_blocks; k++)
        for (size_t j = 0; j < o->blocks[k]->n_to; j++) {
            uint32_t *to = &o->blocks[k]->to[j];
            *to = *to == found ? place : *to == place ? found : *to;
        }
    return OT_OK;
}

ot_status ml_label(ml_parser *p)
{
    uint32_t b;
    const char *label = ml_token_name(p);
    if (!label) return ml_nomem(p);
    if (p->n_regions + p->n_scopes > 0)
        return ml_fail(&p->lx, "a region of one block only is in the subset that is read");
    OT_TRY(begin(p));
    OT_TRY(find_block(p, label, &b));
    OT_TRY(close_block(p));
    OT_TRY(place_block(p, b));
    p->block++;
    ml_block *x = p->passes->blocks[p->block];
    OT_TRY(open_block(p));
    x->at = p->lx.r.at;
    ml_next(&p->lx);
    if (ml_accept(&p->lx, '('))
        OT_TRY(block_arguments(p, x));
    else if (x->n_args > 0)
        return ml_fail(&p->lx, "0 arguments, but a branch passes %u", x->n_args);
    x->is_defined = true;
    return ml_expect(&p->lx, ':');
}

ot_status ml_close_blocks(ml_parser *p)
{
    OT_TRY(close_block(p));
    for (size_t k = 0; k < p->passes->n_blocks; k++)
        if (!p->passes->blocks[k]->is_defined)
            return ml_fail(&p->lx, "the block '^%s' is not defined", p->passes->blocks[k]->label);
    return OT_OK;
}

/* ---- branches ---- */

/* A branch backwards passes an allocation of the loop itself: it would be written anew while the
 * old one is still read. */
static ot_status check_back(ml_parser *p, const ml_block *to, const ml_symbol *s)
{
    for (uint32_t k = 0; s->value != OT_NONE && k <= s->n_also; k++)
        if (p->m->casts[k == 0 ? s->value : s->also[k - 1]].at > to->at)
            return ml_fail(&p->lx,
                           "'%%%s' is allocated in the loop that carries it around: this is not "
                           "in the subset that is read",
                           s->name);
    return OT_OK;
}

static ot_status pass_on(ml_parser *p, ml_block *to, bool back, const ml_operands *o)
{
    if (to->is_defined && to->n_args != o->n)
        return ml_fail(&p->lx, "%u values for the %u arguments of '^%s'", o->n, to->n_args,
                       to->label);
    for (uint32_t k = 0; k < o->n; k++) {
        ml_symbol s;
        const uint32_t had = k < to->n_args ? to->args[k].n_also : 0;
        if (k >= to->n_args) to->args[k] = (ml_symbol){.value = OT_NONE};
        const bool none = to->args[k].value == OT_NONE, was_part = to->args[k].is_part;
        OT_TRY(rooted(p, o->symbols[k], &s));
        if (back) OT_TRY(check_back(p, to, &s));
        OT_TRY(ml_merge(p, &to->args[k], &s));
        if (had != to->args[k].n_also || none != (to->args[k].value == OT_NONE) ||
            was_part != to->args[k].is_part)
            p->passes->again = true;
    }
    to->n_args = o->n;
    return OT_OK;
}

/* ^bb1(%a, %b : T, U) */
static ot_status successor(ml_parser *p)
{
    ml_operands o = {.n = 0};
    ml_type t;
    uint32_t to;
    if (p->lx.tok != ML_LABEL) return ml_expected(&p->lx, "a block");
    const char *label = ml_token_name(p);
    if (!label) return ml_nomem(p);
    OT_TRY(find_block(p, label, &to));
    ml_next(&p->lx);
    if (ml_accept(&p->lx, '(')) {
        OT_TRY(ml_use_list(p, &o));
        if (o.n > 0) OT_TRY(ml_expect(&p->lx, ':'));
        for (uint32_t k = 0; k < o.n; k++) {
            if (k > 0) OT_TRY(ml_expect(&p->lx, ','));
            OT_TRY(ml_parse_type(&p->lx, &t));
        }
        OT_TRY(ml_expect(&p->lx, ')'));
    }
    ml_block *from = p->passes->blocks[p->block];
    if (!p->passes->ordered && !OT_PUSH(p->a, from->to, from->n_to, from->cap_to, to))
        return ml_nomem(p);
    return pass_on(p, p->passes->blocks[to], p->passes->ordered && to <= p->block, &o);
}

ot_status ml_branch(ml_parser *p, const char *op)
{
    uint32_t symbol;
    if (p->n_regions + p->n_scopes > 0) return ml_fail(&p->lx, "a branch inside of a region");
    OT_TRY(begin(p));
    if (strcmp(op, "cf.cond_br") == 0) {
        OT_TRY(ml_use(p, &symbol));
        if (ml_accept_word(&p->lx, "weights")) OT_TRY(ml_skip_brackets(&p->lx));
        OT_TRY(ml_expect(&p->lx, ','));
        OT_TRY(successor(p));
        OT_TRY(ml_expect(&p->lx, ','));
    }
    OT_TRY(successor(p));
    if (ml_is(&p->lx, '{')) OT_TRY(ml_skip_brackets(&p->lx));
    return ml_is(&p->lx, '}') || p->lx.tok == ML_LABEL || ml_is_word(&p->lx, "loc")
               ? OT_OK
               : ml_expected(&p->lx, "a block behind the branch");
}
