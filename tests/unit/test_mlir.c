/* Kernels in MLIR: what is refused, with line and column; types and strides; what is planned is
 * read again with the same places; texts that are cut off or damaged anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine/target/target.h"
#include "tk/mlir/mlir.h"

#include <stdio.h>

#define UB "memref<16x16xf16, #hivm.address_space<ub>>"
#define GM "memref<16x16xf16, #hivm.address_space<gm>>"

static ot_status read_text(const char *text, size_t n, ot_diag *d, ot_mlir **m)
{
    *d = (ot_diag){0};
    const ot_mlir_options o = {.mode = OT_MEM_BOTH};
    return ot_mlir_parse("k.mlir", text, n, &o, d, m);
}

static void plan(const ot_mlir *m, ot_mem_plan **p)
{
    ot_diag d = {0};
    ot_target target;
    ot_mem_options o = {.threads = 1};
    assert_true(ot_target_load("ascend-a2", 0, &d, &target) == OT_OK);
    const ot_tk_machine t = ot_target_tk_machine(&target);
    if (ot_mem_plan_kernel(ot_mlir_kernel(m), "k.mlir", &t, &o, &d, p) != OT_OK)
        fail_msg("%s", d.message);
    ot_target_free(&target);
}

static char *written(const char *whole, const ot_mlir *m, const ot_mem_plan *p, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    assert_true(f != NULL);
    size_t from = 0;
    assert_true(ot_mlir_write(m, p, &from, f) == OT_OK);
    fputs(whole + from, f);
    assert_true(fclose(f) == 0);
    return text;
}

/* ---- refused ---- */

static const struct {
    const char *text, *message;
} REFUSED[] = {
    {"", "k.mlir:1:1: no function with a body"},
    {"module {", "k.mlir:1:9: expected '}', found the end of the text"},
    {"func.func @k() {\n  %a = memref.alloc() : memref<16xf16>\n  return\n}",
     "k.mlir:2:25: memref.alloc without #hivm.address_space<...>: in which memory?"},
    {"func.func @k() {\n  %a = memref.alloc() : " GM "\n  return\n}",
     "k.mlir:2:25: memref.alloc in gm: global memory is memref_ext.alloc_workspace"},
    {"func.func @k() {\n  %a = memref.alloc() : memref<?xf16, #hivm.address_space<ub>>\n  "
     "return\n}",
     "k.mlir:2:25: a memref of unknown size cannot be planned"},
    {"func.func @k() {\n  %a = memref.alloc() : memref<4xindex, #hivm.address_space<ub>>\n  "
     "return\n}",
     "k.mlir:2:25: elements of a type that has no size here"},
    {"func.func @k() {\n  %a = memref.alloc() : memref<4xf16, #hivm.address_space<nowhere>>\n  "
     "return\n}",
     "k.mlir:2:59: expected an address space (gm, ub, cbuf, ca, cb, cc, bt, fp), found 'nowhere'"},
    {"func.func @k() {\n  %a = memref.alloc() : memref<99999999999999999999xf16, "
     "#hivm.address_space<ub>>\n  return\n}",
     "k.mlir:2:32: a dimension does not fit 64 bits"},
    {"func.func @k() {\n  %a = memref.alloc() : memref<9000000000x9000000000xf16, "
     "#hivm.address_space<ub>>\n  return\n}",
     "k.mlir:2:8: the size of 'a' does not fit 64 bits"},
    {"func.func @k() {\n  %a = memref.alloc() : " UB
     "\n  annotation.mark %a {hivm.multi_buffer = 2 : i32} : " UB
     "\n  annotation.mark %a {hivm.multi_buffer = 4 : i32} : " UB "\n  return\n}",
     "k.mlir:4:43: '%a' has a mark already: 2 buffers, not 4"},
    {"func.func @k() {\n  linalg.generic ins(%a : f16)\n  return\n}",
     "k.mlir:2:3: 'linalg.generic' is not in the subset that is read"},
    {"func.func @k() {\n  linalg.fill\n  return\n}",
     "k.mlir:2:3: linalg.fill without ins(...) and outs(...)"},
    {"func.func @k() {\n  scope.return\n}", "k.mlir:2:3: scope.return ends a scope.scope"},
    {"func.func @k() {\n  scope.scope : () -> (i32) {\n    scope.return\n  }\n}",
     "k.mlir:4:3: 0 values returned, 1 wanted"},
    {"func.func @k(%a: i32) {\n  scope.scope : (i32) -> () {\n    scope.return\n  }\n}",
     "k.mlir:2:3: a scope with operands is not in the subset that is read"},
    {"func.func @k() {\n  scope.scope : () -> () {\n    return\n  }\n}",
     "k.mlir:3:5: return inside of a region"},
    {"func.func @k(%c: i1) {\n  scf.if %c {\n    scope.scope : () -> () {\n      scf.yield\n    "
     "}\n  "
     "}\n}",
     "k.mlir:5:5: scf.yield outside of a loop's or a branch's region"},
    {"func.func @k() {\n  scope.scope : () -> () {\n    %a = memref.alloc() : " UB
     "\n    scope.return\n  }\n  hivm.hir.debug %a : " UB "\n}",
     "k.mlir:6:18: '%a' is not defined here"},
    {"func.func @k(%c: index) {\n  %d = memref.dim %c, %c : " UB "\n}",
     "k.mlir:2:28: '%c' is no memref"},
    {"func.func @k() {\n  \"hivm.hir.vadd\"() : () -> ()\n}",
     "k.mlir:2:3: an operation in its generic form is not in the subset that is read"},
    {"func.func @k() {\n  hivm.hir.frobnicate\n}",
     "k.mlir:2:3: 'hivm.hir.frobnicate' is not in the subset that is read"},
    {"func.func @k() {\n  hivm.hir.vadd ins(%a : " UB ") outs(%a : " UB ")\n}",
     "k.mlir:2:21: '%a' is not defined here"},
    {"func.func @k(%a: i32, %a: i32) {\n}", "k.mlir:1:23: '%a' is defined already"},
    {"func.func @k(%t: tensor<4xf32>) {\n  %a = memref.alloc() : " UB
     "\n  hivm.hir.load ins(%t : tensor<4xf32>) outs(%a : " UB ")\n}",
     "k.mlir:3:26: an operand that is neither memref nor scalar"},
    {"func.func @k() {\n  %c = arith.constant 0 : index\n  scf.for %i = %c to %c step %c {\n    "
     "scf.yield %c : index\n  }\n}",
     "k.mlir:4:5: 1 values yielded, 0 wanted"},
    {"func.func @k(%c: index, %x: " GM ") {\n  %a = memref.alloc() : " UB "\n"
     "  %r = scf.for %i = %c to %c step %c iter_args(%v = %a) -> (" UB ") {\n    scf.yield %x : " GM
     "\n  }\n}",
     "k.mlir:4:15: '%x' is not planned, but what it becomes is"},
    {"func.func @k() {\n  %a = memref.alloc() : " UB
     "\n  annotation.mark %a {hivm.multi_buffer = 99 : i32} : " UB "\n}",
     "k.mlir:3:43: 1 to 16 buffers are allowed"},
    {"func.func @k(%c: i64) {\n  %a = hivm.hir.pointer_cast(%c) : " UB "\n}",
     "k.mlir:2:30: the address '%c' is no constant from 0"},
    {"func.func @k(%w: memref<?xi8>, %c: index) {\n  %a = memref_ext.alloc_workspace() from %w "
     "offset = [%c] : from memref<?xi8> to " GM "\n  %b = memref_ext.alloc_workspace() : " GM "\n}",
     "k.mlir:3:8: workspaces with and without an offset in one function"},
    {"func.func @k() attributes {hivm.func_core_type = #hivm.func_core_type<AIC>} {\n"
     "  %a = memref.alloc() : " UB "\n"
     "  annotation.mark %a {hivm.tightly_coupled_buffer = #hivm.tightly_coupled_buffer<4>} : " UB
     "\n}",
     "k.mlir:3:3: '%a' lies where another function's tightly coupled buffer does: not in the "
     "subset that is read"},
    {"func.func @k() {\n  %a, %b = memref.alloc() : " UB "\n}",
     "k.mlir:2:3: 2 names for 1 results"},
    {"func.func @k() {\n  cf.br ^bb1\n}", "k.mlir:3:1: the block '^bb1' is not defined"},
    {"func.func @k() {\n  cf.br ^bb1\n^bb1:\n  cf.br ^bb2\n^bb1:\n^bb2:\n  return\n}",
     "k.mlir:5:1: the block '^bb1' is there already"},
    {"func.func @k(%c: i32) {\n  cf.br ^bb1(%c : i32)\n^bb1:\n  return\n}",
     "k.mlir:3:5: 0 arguments, but a branch passes 1"},
    {"func.func @k(%c: i1) {\n  scf.if %c {\n    cf.br ^bb1\n  }\n^bb1:\n  return\n}",
     "k.mlir:3:11: a branch inside of a region"},
    {"func.func @k(%c: i1) {\n  %a = memref.alloc() : " UB "\n  cf.br ^bb1(%a : " UB ")\n"
     "^bb1(%v: " UB "):\n  %b = memref.alloc() : " UB "\n"
     "  cf.cond_br %c, ^bb1(%b : " UB "), ^bb2\n^bb2:\n  return\n}",
     "k.mlir:6:71: '%b' is allocated in the loop that carries it around: this is not in the "
     "subset that is read"},
    {"func.func @k() {\n  %s = \"unfinished\n}", "k.mlir:2:8: the string has no end"},
    {"func.func @k() {\n  return \001\n}", "k.mlir:2:10: byte 0x01 has no meaning here"},
    {"module attributes {a = [(} {\n}", "k.mlir:1:26: expected the end of a bracket, found '}'"},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof REFUSED / sizeof *REFUSED; k++) {
        ot_diag d;
        ot_mlir *m;
        assert_true(read_text(REFUSED[k].text, strlen(REFUSED[k].text), &d, &m) == OT_E_INPUT);
        if (strcmp(d.message, REFUSED[k].message) != 0)
            fail_msg("'%s', not '%s' for\n%s", d.message, REFUSED[k].message, REFUSED[k].text);
        ot_mlir_free(m);
    }
}

/* A place cannot be shared where both values are wanted later: addresses alone make no copy. */
static void refuses_copies(void **state)
{
    (void)state;
    static const char text[] = "func.func @k(%x: " GM ", %y: " GM ", %c: i1) {\n"
                               "  %a = memref.alloc() : " UB "\n"
                               "  %b = memref.alloc() : " UB "\n"
                               "  hivm.hir.load ins(%x : " GM ") outs(%a : " UB ")\n"
                               "  hivm.hir.load ins(%x : " GM ") outs(%b : " UB ")\n"
                               "  %r = scf.if %c -> (" UB ") {\n"
                               "    scf.yield %a : " UB "\n"
                               "  } else {\n"
                               "    scf.yield %b : " UB "\n"
                               "  }\n"
                               "  hivm.hir.vadd ins(%a, %b : " UB ", " UB ") outs(%r : " UB ")\n"
                               "  hivm.hir.vadd ins(%a, %b : " UB ", " UB ") outs(%b : " UB ")\n"
                               "  hivm.hir.store ins(%b : " UB ") outs(%y : " GM ")\n"
                               "  hivm.hir.store ins(%r : " UB ") outs(%y : " GM ")\n"
                               "  return\n}\n";
    ot_diag d;
    ot_mlir *m;
    ot_mem_plan *p;
    assert_true(read_text(text, strlen(text), &d, &m) == OT_OK);
    plan(m, &p);
    assert_true(ot_mlir_check_plan(m, p, &d) == OT_E_INPUT);
    assert_non_null(strstr(d.message, "cannot share a place, and addresses alone make no copy"));
    ot_mem_plan_free(p);
    ot_mlir_free(m);
}

/* ---- read ---- */

/* Bytes of types. */
static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        int64_t bytes;
        ot_scope scope;
    } types[] = {
        {"memref<i32, #hivm.address_space<ub>>", 4, OT_SCOPE_UB},
        {"memref<4x8xbf16, #hivm.address_space<cbuf>>", 64, OT_SCOPE_L1},
        {"memref<20xi1, #hivm.address_space<ub>>", 3, OT_SCOPE_UB},
        {"memref<4x8xf32, strided<[8, 1]>, #hivm.address_space<cc>>", 128, OT_SCOPE_L0C},
        {"memref<4x8xf32, strided<[16, 1], offset: 4>, #hivm.address_space<ub>>", 4 * (3 * 16 + 8),
         OT_SCOPE_UB},
        {"memref<1024xf16, strided<[2]>, #hivm.address_space<ub>>", 2 * 2047, OT_SCOPE_UB},
        {"memref<16x16xf16,\n  #hivm.address_space<ca>>", 512, OT_SCOPE_L0A},
    };
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        char text[400];
        ot_diag d;
        ot_mlir *m;
        snprintf(
            text, sizeof text,
            "func.func @k() {\n  %%0 = memref.alloc() : %s // %s\n  return loc(\"a.py\":1:2)\n}",
            types[k].type, "{ not ' read");
        if (read_text(text, strlen(text), &d, &m) != OT_OK) fail_msg("%s", d.message);
        const ot_tk_value *v = &ot_mlir_kernel(m)->values[0];
        assert_true(v->bytes == types[k].bytes && v->scope == types[k].scope &&
                    strcmp(v->name, "_0") == 0);
        ot_mlir_free(m);
    }
}

static const char WHOLE[] =
    "#map = affine_map<(d0)[s0] -> (d0 * 4 + s0)>\n"
    "module attributes {hacc.target = #hacc.target<\"Ascend910B1\">} {\n"
    "  func.func @k(%x: " GM ", %y: " GM " {hacc.arg_type = #hacc.arg_type<output>}, %c: i1) {\n"
    "    %c0 = arith.constant 0 : index\n"
    "    %c9 = arith.constant 9 : index\n"
    "    %c2 = arith.constant 2 : index\n"
    "    %f = arith.constant -1.5e+3 : f32\n"
    "    %acc = memref.alloc() : " UB "\n"
    "    hivm.hir.vbrc ins(%f : f32) outs(%acc : " UB ") broadcast_dims = [0, 1]\n"
    "    %r:2 = scf.for %i = %c0 to %c9 step %c2 iter_args(%a = %acc, %n = %c0) -> (" UB
    ", index) {\n"
    "      %t = memref.alloc() : " UB "\n"
    "      annotation.mark %t {hivm.multi_buffer = 2 : i32} : " UB "\n"
    "      %j = affine.apply #map(%i)[%n]\n"
    "      %p = memref.subview %t[%j, 0] [4, 16] [1, 1] : " UB
    " to memref<4x16xf16, strided<[16, 1], offset: ?>, #hivm.address_space<ub>>\n"
    "      hivm.hir.load ins(%x : " GM ") outs(%t : " UB
    ") left_padding_num = %c0 : index init_out_buffer = false\n"
    "      hivm.hir.vmuls ins(%p, %f : memref<4x16xf16, strided<[16, 1], offset: ?>, "
    "#hivm.address_space<ub>>, f32) outs(%p : memref<4x16xf16, "
    "strided<[16, 1], offset: ?>, #hivm.address_space<ub>>)\n"
    "      %s = memref.load %t[%i, %c0] : " UB "\n"
    "      memref.store %s, %t[%c0, %c0] : " UB "\n"
    "      %u = memref.alloc() : " UB "\n"
    "      %tmp = memref.alloc() : " UB "\n"
    "      hivm.hir.vreduce <sum> ins(%t : " UB ") outs(%u : " UB ") temp_buffer(%tmp : " UB
    ") reduce_dims = [0]\n"
    "      hivm.hir.vadd ins(%a, %u : " UB ", " UB ") outs(%a : " UB ")\n"
    "      %m = arith.addi %n, %c2 : index\n"
    "      %cmp = arith.cmpi slt, %m, %c9 : index\n"
    "      scf.if %cmp {\n"
    "        hivm.hir.pipe_barrier[<PIPE_ALL>]\n"
    "      }\n"
    "      scf.yield %a, %m : " UB ", index\n"
    "    }\n"
    "    hivm.hir.store ins(%r#0 : " UB ") outs(%y : " GM ") atomic = <none>\n"
    "    return\n"
    "  }\n"
    "}\n";

/* Trips, slots; read, planned, written and read again it has the same places. */
static void round_trip(void **state)
{
    (void)state;
    ot_diag d;
    ot_mlir *m, *again;
    ot_mem_plan *p, *q;
    size_t n, n2;
    bool counted = false;
    if (read_text(WHOLE, strlen(WHOLE), &d, &m) != OT_OK) fail_msg("%s", d.message);
    const ot_kernel *k = ot_mlir_kernel(m);
    for (uint32_t i = 0; i < k->n_stmts; i++)
        counted = counted || (k->stmts[i].op == OT_TK_FOR && k->stmts[i].hi == 5);
    assert_true(counted);
    plan(m, &p);
    assert_true(ot_mlir_check_plan(m, p, &d) == OT_OK);
    char *text = written(WHOLE, m, p, &n);
    assert_true(strstr(text, "memref.alloc") == NULL);
    assert_true(read_text(text, n, &d, &again) == OT_OK);
    plan(again, &q);
    assert_true(p->lifetimes->n_buffers == q->lifetimes->n_buffers);
    for (uint32_t b = 0; b < p->lifetimes->n_buffers; b++)
        assert_true(p->multi[b] == q->multi[b] &&
                    memcmp(p->offsets[b], q->offsets[b], p->multi[b] * sizeof(int64_t)) == 0);
    char *text2 = written(text, again, q, &n2);
    assert_true(n == n2 && memcmp(text, text2, n) == 0);
    free(text);
    free(text2);
    ot_mem_plan_free(p);
    ot_mem_plan_free(q);
    ot_mlir_free(m);
    ot_mlir_free(again);
}

/* A buffer of no elements is placed, too, and what is placed so is read and written again. */
static void no_elements(void **state)
{
    (void)state;
    static const char text[] = "func.func @k() {\n"
                               "  %a = memref.alloc() : memref<0x16xf16, #hivm.address_space<ub>>\n"
                               "  return\n}\n";
    char *last = NULL;
    for (int turn = 0; turn < 3; turn++) {
        ot_diag d;
        ot_mlir *m;
        ot_mem_plan *p;
        size_t n;
        const char *from = last ? last : text;
        if (read_text(from, strlen(from), &d, &m) != OT_OK) fail_msg("%s", d.message);
        plan(m, &p);
        char *now = written(from, m, p, &n);
        assert_non_null(strstr(now, "hivm.hir.pointer_cast(%c0_i64) : memref<0x16xf16"));
        if (last) assert_string_equal(now, last);
        ot_mem_plan_free(p);
        ot_mlir_free(m);
        free(last);
        last = now;
    }
    free(last);
}

/* A name that comes again in another region is another buffer. */
static void same_names(void **state)
{
    (void)state;
    static const char text[] = "func.func @for(%c: i1, %x: " GM ") {\n"
                               "  scf.if %c {\n    %for = memref.alloc() : " UB
                               "\n    hivm.hir.load ins(%x : " GM ") outs(%for : " UB ")\n"
                               "  } else {\n    %for = memref.alloc() : " UB
                               "\n    hivm.hir.load ins(%x : " GM ") outs(%for : " UB ")\n  }\n"
                               "  %for = memref.alloc() : " UB "\n  return\n}\n";
    ot_diag d;
    ot_mlir *m;
    if (read_text(text, strlen(text), &d, &m) != OT_OK) fail_msg("%s", d.message);
    const ot_kernel *k = ot_mlir_kernel(m);
    assert_true(k->n_values == 3 && strcmp(k->values[0].name, "_for") == 0 &&
                strcmp(k->values[1].name, "_for$1") == 0);
    ot_mlir_free(m);
}

/* Cut off, or with one byte changed, anywhere: one line with its place, or a text that can be
 * planned. */
static void damaged(void **state)
{
    (void)state;
    char text[sizeof WHOLE];
    for (size_t k = 0; k < 2 * strlen(WHOLE); k++) {
        static const char with[] = "%{<(:0=x\n\"";
        ot_diag d;
        ot_mlir *m;
        size_t n = strlen(WHOLE), at = k / 2;
        memcpy(text, WHOLE, sizeof text);
        if (k % 2)
            n = at;
        else
            text[at] = with[at % (sizeof with - 1)];
        ot_status s = read_text(text, n, &d, &m);
        if (s == OT_OK) {
            ot_mlir_free(m);
            continue;
        }
        unsigned line, col;
        assert_true(s == OT_E_INPUT && sscanf(d.message, "k.mlir:%u:%u: ", &line, &col) == 2 &&
                    !strchr(d.message, '\n'));
    }
}

static void loc_form(void **state)
{
    (void)state;
    ot_diag d = {.message = "a b/k.mlir:2:3: ub overflow, requires 8 bits"},
            other = {.message = "elsewhere: x"};
    ot_mlir_loc("a b/k.mlir", &d);
    ot_mlir_loc("a b/k.mlir", &other);
    assert_true(strcmp(d.message, "loc(\"a b/k.mlir\":2:3): error: ub overflow, requires 8 bits") ==
                0);
    assert_true(strcmp(other.message, "elsewhere: x") == 0);
}

/* The function as it is written with its addresses; to be freed. */
static char *written_function(const char *text, size_t n, const ot_mlir_function *at)
{
    const ot_mlir_options o = {.mode = OT_MEM_BOTH, .function = at};
    ot_diag d = {0};
    ot_mlir *m;
    ot_mem_plan *p;
    char *out = NULL;
    size_t from = at->at, length;
    if (ot_mlir_parse("k.mlir", text, n, &o, &d, &m) != OT_OK) fail_msg("%s", d.message);
    assert_true(ot_mlir_kernel(m)->stmts[0].line > at->line);
    plan(m, &p);
    FILE *f = open_memstream(&out, &length);
    assert_true(f != NULL && ot_mlir_write(m, p, &from, f) == OT_OK && fclose(f) == 0);
    ot_mem_plan_free(p);
    ot_mlir_free(m);
    return out;
}

/* A file takes one reading: of a function that was found nothing else is read, but the token
 * behind it. All other bytes may be what no text has. */
static void a_function_is_read_alone(void **state)
{
    (void)state;
    static const char text[] = "module {\n func.func private @far(memref<?xi8>)\n"
                               " func.func @a(%x : " GM ") {\n  %t = memref.alloc() : " UB "\n"
                               "  hivm.hir.load ins(%x : " GM ") outs(%t : " UB ")\n  return\n }\n"
                               " func.func @b(%x : " GM ") {\n  %t = memref.alloc() : " UB "\n"
                               "  %u = memref.alloc() : " UB "\n"
                               "  hivm.hir.load ins(%x : " GM ") outs(%t : " UB ")\n"
                               "  hivm.hir.load ins(%x : " GM ") outs(%u : " UB ")\n  return\n }\n"
                               " func.func @c(%x : " GM
                               ") {\n  return\n }\n func.func @d() {\n  return\n }\n}\n";
    const char *const casts[] = {"%c0_i64)", "%c512_i64)"};
    ot_mlir_functions l = {.arena = ot_arena_new()};
    ot_diag d = {0};
    assert_true(ot_mlir_find("k.mlir", text, strlen(text), &d, &l) == OT_OK && l.n == 4);
    for (size_t k = 0; k < 2; k++) {
        char damaged[sizeof text];
        const size_t end = l.at[k + 1].at + strlen("func.func");
        assert_true(strncmp(text + l.at[k].at, "func.func @", 11) == 0);
        memset(damaged, 1, sizeof damaged);
        memcpy(damaged + l.at[k].at, text + l.at[k].at, end - l.at[k].at);
        char *whole = written_function(text, strlen(text), &l.at[k]);
        char *alone = written_function(damaged, strlen(text), &l.at[k]);
        assert_string_equal(whole, alone);
        assert_non_null(strstr(alone, casts[k]));
        free(whole);
        free(alone);
    }
    ot_arena_free(l.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),    cmocka_unit_test(refuses_copies),
        cmocka_unit_test(sizes),      cmocka_unit_test(round_trip),
        cmocka_unit_test(same_names), cmocka_unit_test(damaged),
        cmocka_unit_test(loc_form),   cmocka_unit_test(a_function_is_read_alone),
        cmocka_unit_test(no_elements)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
