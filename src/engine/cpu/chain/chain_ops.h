/* Instructions of chains: what each does to blocks of elements. Private to chain*.c.
 *
 *      to[i] = op(a[i], b[i], c[i])      i < n;  an operand that is one number for the whole block
 *                                        is read at [0] only
 *
 * Values are float, masks: uint8_t, 0 or 1 (arrays of the caller may hold others: not 0 is
 * true), or quantized: uint8_t, int8_t. Of 16 bits are only what is read of arrays, before it is
 * widened, and what is written to them.
 */
#ifndef OT_ENGINE_CPU_CHAIN_CHAIN_OPS_H
#define OT_ENGINE_CPU_CHAIN_CHAIN_OPS_H

#include "chain.h"

/* CODE(name, function, operands, types, parameters, work)
 * types:      of the result, then of the operands: f float, m mask, u uint8_t, s int8_t, h float16,
 *             b bfloat16
 * parameters: operands, counted from the last, that are one number always (constants)
 * work:       per element, where an addition is 1
 * LOOK_UP:    bytes of either kind, and a number that is the address of 256 bytes */
/* clang-format off */
#define OT_CHAIN_CODES                           \
    CODE(COPY, plain, 1, "ff", 0, 1)             \
    CODE(NEG, plain, 1, "ff", 0, 1)              \
    CODE(ABS, plain, 1, "ff", 0, 1)              \
    CODE(SQRT, plain, 1, "ff", 0, 4)             \
    CODE(ROOT, plain, 1, "ff", 0, 5)             \
    CODE(RECIPROCAL, plain, 1, "ff", 0, 4)       \
    CODE(RELU, plain, 1, "ff", 0, 1)             \
    CODE(FLOOR, plain, 1, "ff", 0, 1)            \
    CODE(CEIL, plain, 1, "ff", 0, 1)             \
    CODE(ROUND, plain, 1, "ff", 0, 1)            \
    CODE(SIGN, plain, 1, "ff", 0, 2)             \
    CODE(SOFTSIGN, plain, 1, "ff", 0, 5)         \
    CODE(HARDSWISH, plain, 1, "ff", 0, 3)        \
    CODE(HARDSIGMOID, plain, 3, "ffff", 2, 2)    \
    CODE(CLIP, plain, 3, "ffff", 2, 2)           \
    CODE(THRESHOLD, plain, 2, "fff", 1, 1)       \
    CODE(SHRINK, plain, 3, "ffff", 2, 3)         \
    CODE(EXP, smooth, 1, "ff", 0, 9)             \
    CODE(LOG, smooth, 1, "ff", 0, 12)            \
    CODE(SIGMOID, smooth, 1, "ff", 0, 10)        \
    CODE(SILU, smooth, 1, "ff", 0, 10)           \
    CODE(SWISH, smooth, 2, "fff", 1, 11)         \
    CODE(TANH, smooth, 1, "ff", 0, 11)           \
    CODE(ERF, smooth, 1, "ff", 0, 14)            \
    CODE(GELU, smooth, 1, "ff", 0, 18)           \
    CODE(GELU_TANH, smooth, 1, "ff", 0, 18)      \
    CODE(SOFTPLUS, smooth, 1, "ff", 0, 14)       \
    CODE(MISH, smooth, 1, "ff", 0, 14)           \
    CODE(ELU, smooth, 2, "fff", 1, 9)            \
    CODE(SELU, smooth, 3, "ffff", 2, 9)          \
    CODE(CELU, smooth, 2, "fff", 1, 12)          \
    CODE(SIN, angle, 1, "ff", 0, 18)             \
    CODE(COS, angle, 1, "ff", 0, 18)             \
    CODE(ADD, pair, 2, "fff", 0, 1)              \
    CODE(SUB, pair, 2, "fff", 0, 1)              \
    CODE(MUL, pair, 2, "fff", 0, 1)              \
    CODE(DIV, pair, 2, "fff", 0, 4)              \
    CODE(MIN, pair, 2, "fff", 0, 2)              \
    CODE(MAX, pair, 2, "fff", 0, 2)              \
    CODE(PRELU, pair, 2, "fff", 0, 2)            \
    CODE(AT_LEAST, pair, 2, "fff", 0, 1)         \
    CODE(AT_MOST, pair, 2, "fff", 0, 1)          \
    CODE(POW, slow, 2, "fff", 0, 60)             \
    CODE(MOD, slow, 2, "fff", 0, 60)             \
    CODE(MUL_ADD, triple, 3, "ffff", 0, 1)       \
    CODE(WHERE, choice, 3, "fmff", 0, 2)         \
    CODE(WHERE_MASK, choice, 3, "mmmm", 0, 1)    \
    CODE(EQUAL, compare, 2, "mff", 0, 1)         \
    CODE(GREATER, compare, 2, "mff", 0, 1)       \
    CODE(GREATER_EQUAL, compare, 2, "mff", 0, 1) \
    CODE(LESS, compare, 2, "mff", 0, 1)          \
    CODE(LESS_EQUAL, compare, 2, "mff", 0, 1)    \
    CODE(IS_NAN, test, 1, "mf", 0, 1)            \
    CODE(IS_INF, test, 1, "mf", 0, 1)            \
    CODE(IS_PLUS_INF, test, 1, "mf", 0, 1)       \
    CODE(IS_MINUS_INF, test, 1, "mf", 0, 1)      \
    CODE(NOT_ZERO, test, 1, "mf", 0, 1)          \
    CODE(TO_FLOAT, to_float, 1, "fm", 0, 1)      \
    CODE(COPY_MASK, logic, 1, "mm", 0, 1)        \
    CODE(NOT, logic, 1, "mm", 0, 1)              \
    CODE(AND, logic, 2, "mmm", 0, 1)             \
    CODE(OR, logic, 2, "mmm", 0, 1)              \
    CODE(XOR, logic, 2, "mmm", 0, 1)             \
    CODE(SAME, logic, 2, "mmm", 0, 1)            \
    CODE(FROM_U8, from_u8, 3, "fuff", 2, 2)      \
    CODE(FROM_I8, from_i8, 3, "fsff", 2, 2)      \
    CODE(TO_U8, to_u8, 3, "ufff", 2, 6)          \
    CODE(TO_I8, to_i8, 3, "sfff", 2, 6)          \
    CODE(COPY_U8, copy_bytes, 1, "uu", 0, 1)     \
    CODE(COPY_I8, copy_bytes, 1, "ss", 0, 1)     \
    CODE(LOOK_UP, look_up, 2, "uuu", 1, 1)       \
    CODE(FROM_F16, half, 1, "fh", 0, 1)          \
    CODE(FROM_BF16, half, 1, "fb", 0, 1)         \
    CODE(TO_F16, half, 1, "hf", 0, 1)            \
    CODE(TO_BF16, half, 1, "bf", 0, 1)           \
    CODE(COPY_F16, half, 1, "hh", 0, 1)          \
    CODE(COPY_BF16, half, 1, "bb", 0, 1)
/* clang-format on */

typedef enum ot_chain_code {
#define CODE(name, function, operands, types, parameters, work) OT_CH_##name,
    OT_CHAIN_CODES
#undef CODE
        OT_CH_COUNT
} ot_chain_code;

/* Operand k is one number: bit k of `single`. Only combinations that ot_chain_singles allows. */
typedef void (*ot_chain_function)(ot_chain_code code, unsigned single, void *to, const void *a,
                                  const void *b, const void *c, int64_t n);

typedef struct ot_chain_code_info {
    ot_chain_function run;
    uint8_t operands, parameters, work;
    char types[5];
} ot_chain_code_info;

extern const ot_chain_code_info ot_chain_codes[OT_CH_COUNT];

/* Of the operands that are one number (bits of `single`), those that the instruction reads so;
 * the others must be spread out. */
unsigned ot_chain_singles(ot_chain_code code, unsigned single);

void ot_chain_plain(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                    const void *c, int64_t n);
void ot_chain_smooth(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                     const void *c, int64_t n);
void ot_chain_angle(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                    const void *c, int64_t n);
void ot_chain_pair(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                   const void *c, int64_t n);
void ot_chain_slow(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                   const void *c, int64_t n);
void ot_chain_triple(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                     const void *c, int64_t n);
void ot_chain_choice(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                     const void *c, int64_t n);
void ot_chain_compare(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                      const void *c, int64_t n);
void ot_chain_test(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                   const void *c, int64_t n);
void ot_chain_to_float(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                       const void *c, int64_t n);
void ot_chain_logic(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                    const void *c, int64_t n);
void ot_chain_from_u8(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                      const void *c, int64_t n);
void ot_chain_from_i8(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                      const void *c, int64_t n);
void ot_chain_to_u8(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                    const void *c, int64_t n);
void ot_chain_to_i8(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                    const void *c, int64_t n);
void ot_chain_half(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                   const void *c, int64_t n);
void ot_chain_copy_bytes(ot_chain_code code, unsigned single, void *to, const void *a,
                         const void *b, const void *c, int64_t n);
void ot_chain_look_up(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                      const void *c, int64_t n);

/* chain_move.c: rows * cols elements of `size` (1 or 4) bytes between memory, whose strides are
 * in elements, and a block. */
typedef struct ot_chain_grid {
    int64_t rows, cols, row_stride, col_stride;
} ot_chain_grid;

void ot_chain_load(void *to, const void *from, const ot_chain_grid *g, size_t size);
void ot_chain_store(void *to, const void *from, const ot_chain_grid *g, size_t size);
/* n floats past the caches, and the end of such writing by a thread. */
void ot_chain_stream(float *to, const float *from, int64_t n);
void ot_chain_stream_end(void);
/* One number to n places. */
void ot_chain_fill(void *to, const void *one, int64_t n, size_t size);
/* One number to a grid. */
void ot_chain_fill_grid(void *to, const void *one, const ot_chain_grid *g, size_t size);
/* The first `period` of n elements again and again. */
void ot_chain_repeat(void *to, int64_t period, int64_t n, size_t size);

/* chain.c. Cells are values: inputs, then constants, then results in the order of the code. */
#define OT_CHAIN_CELLS 192

typedef enum ot_chain_type {
    OT_CHAIN_FLOAT = 0,
    OT_CHAIN_MASK,
    OT_CHAIN_U8,
    OT_CHAIN_I8,
    OT_CHAIN_F16,
    OT_CHAIN_BF16,
    OT_CHAIN_TYPES
} ot_chain_type;

/* By its letter in the table of codes. */
static inline ot_chain_type ot_chain_type_of(char letter)
{
    static const char letters[OT_CHAIN_TYPES] = {'f', 'm', 'u', 's', 'h', 'b'};
    uint32_t t = 0;
    while (t + 1 < OT_CHAIN_TYPES && letters[t] != letter) t++;
    return (ot_chain_type)t;
}

static inline bool ot_chain_is_half(ot_chain_type t)
{
    return t == OT_CHAIN_F16 || t == OT_CHAIN_BF16;
}
static inline uint8_t ot_chain_size(ot_chain_type t)
{
    return t == OT_CHAIN_FLOAT ? 4 : ot_chain_is_half(t) ? 2 : 1;
}

typedef struct ot_chain_cell {
    ot_chain_type type;
    union {
        float f;
        uint8_t m;            /* types of one byte */
        const uint8_t *table; /* of LOOK_UP */
    } constant;
} ot_chain_cell;

typedef struct ot_chain_step {
    uint8_t code;  /* ot_chain_code */
    uint8_t in[3]; /* cells */
} ot_chain_step;

struct ot_chain {
    uint32_t n_inputs, n_constants, n_steps, n_outputs;
    const ot_chain_cell *cells;        /* [n_inputs + n_constants + n_steps] */
    const ot_chain_step *steps;        /* [n_steps] step k makes cell n_inputs + n_constants + k */
    const ot_id *inputs;               /* [n_inputs] */
    const bool *is_channel;            /* [n_inputs] */
    uint8_t outputs[OT_CHAIN_OUTPUTS]; /* cells: results, each another one */
    double work; /* per element: about 1 for an addition, 10 for an exponential */
};

#endif
