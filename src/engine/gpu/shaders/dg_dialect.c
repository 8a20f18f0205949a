/* The languages that kernels are written in. One body serves all: its words (to_float, madd,
 * ...) are those of the preludes (dg_prelude.c), and what no word can say is here.
 *
 *   b0[i], vload8(0, b0 + i)              OpenCL C: arguments are pointers
 *   b0[i], lanes8(b0[i], b0[i + 1]...)    CUDA C: the same, without loads of vectors
 *   base0[first0 + i], lanes8(base0...)   GLSL: arguments are storage buffers, their first elements
 *                                         push constants
 */
#include "dg_internal.h"

#include <math.h>

const char *ot_dg_function_head(const ot_dg_target *t)
{
    static const char *const heads[] = {[OT_DG_OPENCL] = "__kernel void ",
                                        [OT_DG_CUDA] = "extern \"C\" __global__ void ",
                                        [OT_DG_GLSL] = NULL};
    return heads[t->dialect];
}

/* ---- elements ---- */

static bool is_opencl(const dg_build *b) { return b->target->dialect == OT_DG_OPENCL; }
static bool has_pointers(const dg_build *b) { return b->target->dialect != OT_DG_GLSL; }

/* "b0", or where indices count from. */
static const char *first_place(dg_build *b, uint32_t arg)
{
    return b->from[arg] && has_pointers(b) ? b->from[arg] : dg_fmt(b, "b%u", arg);
}

const char *dg_place(dg_build *b, uint32_t arg, const char *index)
{
    if (has_pointers(b)) return dg_fmt(b, "%s[%s]", first_place(b, arg), index);
    if (b->from[arg]) index = dg_fmt(b, "%s + %s", b->from[arg], index);
    return dg_fmt(b, "base%u[first%u + %s]", arg, arg, index);
}

const char *dg_load(dg_build *b, uint32_t arg, const char *index)
{
    const ot_dtype type = b->arrays[arg].dtype;
    dg_type t = {0};
    (void)dg_type_of(type, &t);
    if (type == OT_F16 && is_opencl(b))
        return dg_fmt(b, "vload_half(%s, %s)", index, first_place(b, arg));
    const char *at = dg_place(b, arg, index);
    if (type == OT_F16 && has_pointers(b)) return dg_fmt(b, "of_half(%s)", at);
    if (type == OT_BF16) return dg_fmt(b, "of_bf16(%s)", at);
    return strcmp(t.held, t.computed) == 0 ? at : dg_fmt(b, "to_%s(%s)", t.computed, at);
}

void dg_store(dg_build *b, uint32_t arg, const char *index, const char *value)
{
    const ot_dtype type = b->arrays[arg].dtype;
    dg_type t = {0};
    (void)dg_type_of(type, &t);
    if (type == OT_F16 && is_opencl(b)) {
        dg_line(b, "vstore_half(%s, %s, b%u);", value, index, arg);
        return;
    }
    if (type == OT_BF16) value = dg_fmt(b, "to_bf16(%s)", value);
    if (type == OT_BOOL) value = dg_fmt(b, "to_int((%s) != 0)", value);
    dg_line(b, "%s = to_%s(%s);", dg_place(b, arg, index), t.held, value);
}

const char *dg_vector(dg_build *b, uint32_t lanes)
{
    return lanes == 1 ? "float" : dg_fmt(b, "float%u", lanes);
}

const char *dg_load_lanes(dg_build *b, uint32_t arg, uint32_t lanes, const char *index)
{
    bool half = b->arrays[arg].dtype == OT_F16;
    if (is_opencl(b))
        return dg_fmt(b, "%s%u(0, %s + %s)", half ? "vload_half" : "vload", lanes,
                      first_place(b, arg), index);
    const char *text = "";
    for (uint32_t l = 0; l < lanes; l++)
        text = dg_fmt(b, "%s%s%s", text, l ? ", " : "",
                      dg_load(b, arg, dg_fmt(b, "%s + %u", index, l)));
    return dg_fmt(b, "lanes%u(%s)", lanes, text);
}

void dg_store_lanes(dg_build *b, uint32_t arg, uint32_t lanes, const char *index, const char *value)
{
    if (is_opencl(b)) {
        dg_line(b, "vstore%u(%s, 0, b%u + %s);", lanes, value, arg, index);
        return;
    }
    for (uint32_t l = 0; l < lanes; l++)
        dg_store(b, arg, dg_fmt(b, "%s + %u", index, l), dg_fmt(b, "%s.s%u", value, l));
}

/* ---- literals ---- */

const char *dg_float(dg_build *b, double v, bool is_double)
{
    if (isnan(v)) return "NAN";
    if (isinf(v)) return v > 0 ? "INFINITY" : "-INFINITY";
    const char *text = dg_fmt(b, is_double ? "%.17g" : "%.9g", v);
    return dg_fmt(b, "(%s%s%s)", text, strpbrk(text, ".e") ? "" : ".0",
                  is_double ? dg_double_suffix(b) : "f");
}

const char *dg_double_suffix(const dg_build *b)
{
    return b->target->dialect == OT_DG_GLSL ? "lf" : "";
}

const char *dg_int(dg_build *b, const dg_type *t, int64_t v)
{
    const char *suffix = t->bits == 64 ? "L" : "";
    /* no literal: a sign is an operator */
    bool least = v == (t->bits == 64 ? INT64_MIN : INT32_MIN);
    return dg_fmt(b, "to_%s(%lld%s%s)", t->computed, (long long)(v + least), suffix,
                  least ? " - 1" : "");
}

/* Functions of the standard that GLSL has for float alone. */
bool dg_lacks_in_double(const dg_build *b, const char *text)
{
    static const char *const functions[] = {"exp(",  "log(",   "erf(",   "sin(",
                                            "cos(",  "tan(",   "sinh(",  "cosh(",
                                            "tanh(", "power(", "expm1(", "log1p("};
    for (size_t k = 0; k < sizeof functions / sizeof *functions && b->target->dialect == OT_DG_GLSL;
         k++)
        if (strstr(text, functions[k])) return true;
    return false;
}

/* ---- functions ---- */

/* The type of an array's elements. `char` of CUDA C has the sign that the host's has. */
static const char *held(const dg_build *b, uint32_t arg)
{
    dg_type t = {.held = "int"};
    (void)dg_type_of(b->arrays[arg].dtype, &t);
    return b->arrays[arg].dtype == OT_I8 && b->target->dialect == OT_DG_CUDA ? "signed char"
                                                                             : t.held;
}

/* "__global const float *base0": array `k` under a name. */
static const char *pointer(dg_build *b, uint32_t k, const char *name)
{
    return dg_fmt(b, "%s%s%s *%s%u", is_opencl(b) ? "__global " : "",
                  b->args[k].written ? "" : "const ", held(b, k), name, k);
}

void dg_from(dg_build *b, uint32_t arg, const char *name, const char *at)
{
    b->from[arg] = NULL;
    if (!at) return;
    if (has_pointers(b))
        dg_line(b, "%s%s%s *%s = b%u + %s;", is_opencl(b) ? "__global " : "",
                b->args[arg].written ? "" : "const ", held(b, arg), name, arg, at);
    else
        dg_line(b, "const int %s = %s;", name, at);
    b->from[arg] = name;
}

static void open_pointers(dg_build *b, dg_text *text)
{
    dg_append(b, text, dg_fmt(b, "(%sconst int *p, const long n", is_opencl(b) ? "__global " : ""));
    for (uint32_t k = 0; k < b->n_args; k++)
        dg_append(b, text, dg_fmt(b, ", %s, const long first%u", pointer(b, k, "base"), k));
    dg_append(b, text, ")\n{\n");
    if (b->shared.n) dg_append(b, text, b->shared.s);
}

static void open_glsl(dg_build *b, dg_text *text, uint32_t group_items)
{
    dg_append(b, text,
              dg_fmt(b,
                     "layout(local_size_x = %u) in;\nlayout(push_constant) uniform Places { uint n",
                     group_items));
    for (uint32_t k = 0; k < b->n_args; k++) dg_append(b, text, dg_fmt(b, ", first%u", k));
    dg_append(b, text, "; };\nlayout(std430, binding = 0) readonly buffer Numbers { int p[]; };\n");
    for (uint32_t k = 0; k < b->n_args; k++)
        dg_append(b, text,
                  dg_fmt(b, "layout(std430, binding = %u) %sbuffer Array%u { %s base%u[]; };\n",
                         k + 1, b->args[k].written ? "" : "readonly ", k, held(b, k), k));
    if (b->shared.n) dg_append(b, text, b->shared.s);
    dg_append(b, text, "void main()\n{\n");
}

void dg_open_function(dg_build *b, dg_text *text, uint32_t group_items)
{
    if (has_pointers(b))
        open_pointers(b, text);
    else
        open_glsl(b, text, group_items);
    for (size_t k = 0; k < b->n_numbers;
         k++) /* before any store, which might be to the table as far as compilers know */
        dg_append(b, text, dg_fmt(b, "const int p%zu = p[n + %zu];\n", k, k));
    for (uint32_t k = 0; k < b->n_args && has_pointers(b); k++)
        dg_append(b, text, dg_fmt(b, "%s = base%u + first%u;\n", pointer(b, k, "b"), k, k));
}
