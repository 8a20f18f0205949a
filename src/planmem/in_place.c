/* Which operation may write its output over an input.
 *
 * Two columns of sets of inputs: `general` asks only whether the operation has read an element (or all of them) before it
 * writes that place; `restricted` is what a vector instruction set allows when source and destination overlap exactly: one
 * instruction, one element in, one of the same width out. What takes several instructions, or changes the type, is not in it.
 *
 * Reductions, broadcasts, transposes, gathers, convolutions, pooling, matrix products, concatenation read an input after they
 * have written elsewhere, so they are not in the table, and neither is what it does not know.
 */
#include "lifetime_internal.h"

enum { NO = 0, FIRST = 1, SECOND = 2, BOTH = 3, THIRD = 4, THREE = 7 };

/* name, inputs in general, inputs when restricted */
#define RULES(X)                                                                                                                   \
    /* one instruction, one input */                                                                                               \
    X("abs", FIRST, FIRST)                                                                                                         \
    X("adds", FIRST, FIRST) X("exp", FIRST, FIRST) X("leakyrelu", FIRST, FIRST) X("ln", FIRST, FIRST) X("log", FIRST, FIRST)       \
        X("maxs", FIRST, FIRST) X("mins", FIRST, FIRST) X("muls", FIRST, FIRST) X("neg", FIRST, FIRST) X("not", FIRST, FIRST)      \
            X("reciprocal", FIRST, FIRST) X("relu", FIRST, FIRST) X("rsqrt", FIRST, FIRST)                                         \
                X("sqrt", FIRST, FIRST) /* one instruction, two inputs of one shape */                                             \
        X("add", BOTH, BOTH) X("and", BOTH, BOTH) X("div", BOTH, BOTH) X("max", BOTH, BOTH) X("min", BOTH, BOTH)                   \
            X("mul", BOTH, BOTH) X("or", BOTH, BOTH) X("sub", BOTH, BOTH) /* the matrix unit adds to what its accumulator holds */ \
        X("accumulate", FIRST, FIRST) X("mmad", THIRD, THIRD) /* nothing is computed: the same bytes under another name */         \
        X("dropout", FIRST, FIRST) X("flatten", FIRST, FIRST) X("identity", FIRST, FIRST) X("reshape", FIRST, FIRST)               \
            X("squeeze", FIRST, FIRST) X("unsqueeze", FIRST, FIRST) /* several instructions, or another type of the same width */  \
        X("acos", FIRST, NO) X("acosh", FIRST, NO) X("asin", FIRST, NO) X("asinh", FIRST, NO) X("atan", FIRST, NO)                 \
            X("atanh", FIRST, NO) X("batchnormalization", FIRST, NO) X("cast", FIRST, NO) X("ceil", FIRST, NO)                     \
                X("celu", FIRST, NO) X("clip", FIRST, NO) X("cos", FIRST, NO) X("cosh", FIRST, NO) X("elu", FIRST, NO)             \
                    X("erf", FIRST, NO) X("floor", FIRST, NO) X("gelu", FIRST, NO) X("hardsigmoid", FIRST, NO)                     \
                        X("hardswish", FIRST, NO) X("isinf", FIRST, NO) X("isnan", FIRST, NO) X("logsoftmax", FIRST, NO)           \
                            X("mish", FIRST, NO) X("prelu", FIRST, NO) X("round", FIRST, NO) X("selu", FIRST, NO)                  \
                                X("sigmoid", FIRST, NO) X("sign", FIRST, NO) X("silu", FIRST, NO) X("sin", FIRST, NO)              \
                                    X("sinh", FIRST, NO) X("softmax", FIRST, NO) X("softplus", FIRST, NO) X("softsign", FIRST, NO) \
                                        X("swish", FIRST, NO) X("tan", FIRST, NO) X("tanh", FIRST, NO)                             \
                                            X("thresholdedrelu", FIRST, NO) X("equal", BOTH, NO) X("greater", BOTH, NO)            \
                                                X("greaterorequal", BOTH, NO) X("less", BOTH, NO) X("lessorequal", BOTH, NO)       \
                                                    X("mean", BOTH, NO) X("mod", BOTH, NO) X("notequal", BOTH, NO)                 \
                                                        X("pow", BOTH, NO) X("sum", BOTH, NO) X("xor", BOTH, NO)                   \
                                                            X("fma", THREE, NO) X("madd", THREE, NO)                               \
                                                                X("select", SECOND | THIRD, NO) X("where", SECOND | THIRD, NO)

bool ot_in_place_rule(const char *op, uint32_t in, bool restricted)
{
    static const struct {
        const char *name;
        uint8_t general, restricted;
    } rules[] = {
#define X(name, general, restricted) {name, general, restricted},
        RULES(X)
#undef X
    };
    if (in > 2) return false;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (strcmp(rules[i].name, op) == 0) return (restricted ? rules[i].restricted : rules[i].general) >> in & 1;
    }
    return false;
}

/* One element of `a` for one of `b`, of one width: then nothing is broadcast, and exact overlap means element on element. */
static bool same_elements(const ot_tk_value *a, const ot_tk_value *b)
{
    int64_t n_a, n_b;
    return ot_tk_dtype_bits(a->dtype) == ot_tk_dtype_bits(b->dtype) && ot_product(a->dims, a->rank, &n_a) &&
           ot_product(b->dims, b->rank, &n_b) && n_a == n_b;
}

bool lt_in_place(const lt_flow *f, const ot_lifetime_options *o, uint32_t stmt, uint32_t to, uint32_t from)
{
    const ot_tk_stmt *s = &f->k->stmts[stmt];
    if (o->no_in_place || s->op != OT_TK_COMPUTE || s->n_out != 1) return false;
    if (f->var_of[s->out[0]] != to || !f->whole[s->out[0]]) return false;
    const ot_tk_value *out = &f->k->values[s->out[0]];
    bool reads = false;
    for (uint32_t j = 0; j < s->n_in; j++) {
        if (f->var_of[s->in[j]] != from) continue;
        reads = true;
        if (!f->whole[s->in[j]] || !ot_in_place_rule(s->name, j, o->restrict_in_place)) return false;
        if (!same_elements(out, &f->k->values[s->in[j]])) return false;
    }
    return reads;
}
