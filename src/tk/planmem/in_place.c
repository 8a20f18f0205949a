/* Which operation may write its output over an input.
 *
 * Two sets of inputs: `general` asks only whether the operation has read an element (or all of
 * them) before it writes that place; `restricted` is what a vector instruction set allows when
 * source and destination overlap exactly: one instruction, one element in, one of the same width
 * out. What takes several instructions, or changes the type, is not in it.
 *
 * Reductions, broadcasts, transposes, gathers, convolutions, pooling, matrix products,
 * concatenation read an input after they have written elsewhere, so they have no such inputs,
 * and neither has what it does not know.
 */
#include "lifetime_internal.h"

/* ONNX operators: inputs in general, as ops.def has them. */
enum {
    NONE = 0,
    FIRST = 1,
    SECOND = 2,
    BOTH = 3,
    THIRD = 4,
    BRANCHES = SECOND | THIRD,
    THREE = 7,
    VIEW = FIRST
};

typedef struct rule {
    const char *name;
    uint8_t inputs;
} rule;

static const rule operators[] = {
#define OP(name, relation, shape, cost, min_in, max_in, max_out, place, ...) {#name, place},
#include "ops.def"
#undef OP
};

/* Other operations of kernels that take several instructions, or make another type of the same
 * width. */
static const rule others[] = {
    {"silu", FIRST},
    {"notequal", BOTH},
    {"fma", THREE},
    {"madd", THREE},
    {"select", BRANCHES},
    /* elements in ascending order, each read before a narrower one is written at or below it */
    {"narrow", FIRST}};

/* One instruction, or none: these inputs also when restricted. */
static const rule instructions[] = {
    /* of one input */
    {"abs", FIRST},
    {"adds", FIRST},
    {"exp", FIRST},
    {"leakyrelu", FIRST},
    {"ln", FIRST},
    {"log", FIRST},
    {"maxs", FIRST},
    {"mins", FIRST},
    {"muls", FIRST},
    {"neg", FIRST},
    {"not", FIRST},
    {"reciprocal", FIRST},
    {"relu", FIRST},
    {"rsqrt", FIRST},
    {"sqrt", FIRST},
    /* of two inputs of one shape */
    {"add", BOTH},
    {"and", BOTH},
    {"div", BOTH},
    {"max", BOTH},
    {"min", BOTH},
    {"mul", BOTH},
    {"or", BOTH},
    {"sub", BOTH},
    /* the matrix unit adds to what its accumulator holds */
    {"accumulate", FIRST},
    {"mma", THIRD},
    {"mmad", THIRD},
    /* nothing is computed: the same bytes under another name */
    {"copy", FIRST},
    {"dropout", FIRST},
    {"finalize", FIRST},
    {"flatten", FIRST},
    {"identity", FIRST},
    {"reshape", FIRST},
    {"squeeze", FIRST},
    {"unsqueeze", FIRST},
};

/* Is `op` the name, in small letters? */
static bool is_name(const char *name, const char *op)
{
    for (; *name && *op == (*name >= 'A' && *name <= 'Z' ? *name - 'A' + 'a' : *name); name++) op++;
    return !*name && !*op;
}

static bool has(const rule *rules, size_t n, const char *op, uint32_t in)
{
    for (size_t i = 0; i < n; i++)
        if (is_name(rules[i].name, op)) return rules[i].inputs >> in & 1;
    return false;
}

#define COUNT(table) (sizeof(table) / sizeof *(table))

bool ot_in_place_rule(const char *op, uint32_t in, bool restricted)
{
    if (in > 2) return false;
    if (has(instructions, COUNT(instructions), op, in)) return true;
    return !restricted &&
           (has(operators, COUNT(operators), op, in) || has(others, COUNT(others), op, in));
}

/* One element of `a` for one of `b`, of one width (narrow: or a smaller one): then nothing is
 * broadcast, and exact overlap means element on element. */
static bool same_elements(const ot_tk_value *a, const ot_tk_value *b, bool narrow)
{
    int64_t n_a, n_b;
    const uint32_t wide = ot_tk_dtype_bits(b->dtype), own = ot_tk_dtype_bits(a->dtype);
    return (own == wide || (narrow && own < wide)) && ot_product(a->dims, a->rank, &n_a) &&
           ot_product(b->dims, b->rank, &n_b) && n_a == n_b;
}

bool lt_is_narrow(const ot_tk_stmt *s)
{
    return s->op == OT_TK_COMPUTE && is_name("narrow", s->name);
}

/* An operation with scratch may take several steps, which a single instruction does not. */
static bool allows(const ot_tk_stmt *s, uint32_t operand, bool restricted)
{
    if (s->n_scratch > 1) return false;
    return s->n_scratch == 1
               ? operand <= 2 && has(instructions, COUNT(instructions), s->name, operand)
               : ot_in_place_rule(s->name, operand, restricted);
}

bool lt_is_narrower(const ot_tk_value *to, const ot_tk_value *from)
{
    return ot_tk_dtype_bits(to->dtype) < ot_tk_dtype_bits(from->dtype);
}

/* The statement says itself which output may lie over which input: of all that are `to` and
 * `from`, each. */
static bool says_so(const lt_flow *f, const ot_tk_stmt *s, uint32_t to, uint32_t from)
{
    bool meets = false;
    for (uint32_t k = 0; k < s->n_out; k++) {
        for (uint32_t j = 0; j < s->n_in; j++) {
            const uint32_t out = s->out[k], in = s->in[j];
            if (f->var_of[out] != to || f->var_of[in] != from) continue;
            if (!s->over[k * s->n_in + j] || f->whole[out] != f->whole[in] ||
                (f->whole[out] && !same_elements(&f->k->values[out], &f->k->values[in], true)))
                return false;
            meets = true;
        }
    }
    return meets;
}

bool lt_in_place(const lt_flow *f, const ot_lifetime_options *o, uint32_t stmt, uint32_t to,
                 uint32_t from)
{
    const ot_tk_stmt *s = &f->k->stmts[stmt];
    if (o->no_in_place || s->op != OT_TK_COMPUTE) return false;
    if (s->over) return !o->restrict_in_place && says_so(f, s, to, from);
    if (s->n_out != 1 + s->n_scratch) return false;
    const bool whole = f->whole[s->out[0]];
    if (f->var_of[s->out[0]] != to || (!whole && !s->same_part)) return false;
    const ot_tk_value *out = &f->k->values[s->out[0]];
    bool reads = false;
    for (uint32_t j = 0; j < s->n_in; j++) {
        if (f->var_of[s->in[j]] != from) continue;
        reads = true;
        const ot_tk_value *in = &f->k->values[s->in[j]];
        const bool part = s->same_part && s->same_part[j];
        if (!allows(s, s->operand ? s->operand[j] : j, o->restrict_in_place)) return false;
        if (!part && !(whole && f->whole[s->in[j]] && same_elements(out, in, lt_is_narrow(s))))
            return false;
    }
    return reads;
}
