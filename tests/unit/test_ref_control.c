/* Reference kernels of control flow, sequences and optionals, against results worked out by hand.
 */
#include "ref_check.h"

/* ---- If ---- */

static void branches(void **state)
{
    (void)state;
    const char *text = "input init %%c : bool[1] = [%d]\ninit %%x : float32[2] = [1, 2]\n"
                       "%%y : float32[?] = If(%%c) {then_branch=graph t {\nouter %%x : "
                       "float32[2]\n%%a : float32[2] = Add(%%x, %%x)\noutput %%a\n},\n"
                       "else_branch=graph e {\nouter %%x : float32[2]\n%%b : float32[2] = "
                       "Neg(%%x)\noutput %%b\n}}";
    char body[700];
    snprintf(body, sizeof body, text, 1);
    ref_makes(17, body, "float32[2] = [2, 4]");
    snprintf(body, sizeof body, text, 0);
    ref_makes(17, body, "float32[2] = [-1, -2]");
    ref_fails(17,
              "input init %c : bool[2] = [1, 1]\n%y : float32[] = If(%c) {then_branch=graph t "
              "{\n%a : float32[] = Constant() {value_float=1.0}\n"
              "output %a\n}, else_branch=graph e {\n%b : float32[] = Constant() "
              "{value_float=2.0}\noutput %b\n}}",
              "not a single bool");
    ref_fails(17, "input init %c : bool[] = [1]\n%y : float32[] = If(%c)", "");
}

/* ---- Loop ---- */

/* acc' = acc + trip, scanned; goes on while acc' < 20 */
#define BODY                                                                                  \
    " {body=graph step {\ninput %i : int64[]\ninput %go : bool[]\ninput %a : int64[]\nouter " \
    "%most : int64[]\n"                                                                       \
    "%next : int64[] = Add(%a, %i)\n%again : bool[] = Less(%next, %most)\n%k : int64[] = "    \
    "Identity(%next)\n"                                                                       \
    "output %again\noutput %next\noutput %k\n}}\n"
#define LOOP "init %most : int64[] = [20]\ninput init %start : int64[] = [5]\n"

static void loops(void **state)
{
    (void)state;
    ref_right(17, LOOP "input init %m : int64[] = [3]\ninput init %c : bool[] = [1]\n%y : int64[], "
                       "%s : int64[?] = Loop(%m, %c, %start)" BODY
                       "init %Y : int64[] = [8]\ninit %S : int64[3] = [5, 6, 8]\noutput %y\noutput "
                       "%Y\noutput %s\noutput %S");
    ref_right(
        17, LOOP
        "input init %m : int64[] = [100]\n%y : int64[], %s : int64[?] = Loop(%m, _, %start)" BODY
        "init %Y : int64[] = [20]\ninit %S : int64[6] = [5, 6, 8, 11, 15, 20]\noutput %y\noutput "
        "%Y\noutput %s\noutput %S");
    ref_right(17, LOOP
              "input init %c : bool[] = [1]\n%y : int64[], %s : int64[?] = Loop(_, %c, %start)" BODY
              "init %Y : int64[] = [20]\ninit %S : int64[6] = [5, 6, 8, 11, 15, 20]\noutput "
              "%y\noutput %Y\noutput %s\noutput %S");
    ref_right(
        17,
        LOOP "input init %m : int64[] = [0]\n%y : int64[], %s : int64[?] = Loop(%m, _, %start)" BODY
             "init %Y : int64[] = [5]\ninit %S : int64[0] = []\noutput %y\noutput %Y\noutput "
             "%s\noutput %S");
    ref_right(17, LOOP "input init %m : int64[] = [3]\ninput init %c : bool[] = [0]\n%y : int64[], "
                       "%s : int64[?] = Loop(%m, %c, %start)" BODY
                       "init %Y : int64[] = [5]\ninit %S : int64[0] = []\noutput %y\noutput "
                       "%Y\noutput %s\noutput %S");
    ref_right(17, LOOP "input init %m : int64[] = [-4]\n_, %s : int64[?] = Loop(%m, _, %start)" BODY
                       "init %S : int64[0] = []\noutput %s\noutput %S");
}

/* More slices than there is room for at first, of a number nobody knows; and more than a trip
 * count allows memory for. */
static void scan_outputs_grow(void **state)
{
    (void)state;
    const char *body =
        "{body=graph step {\ninput %i : int64[]\ninput %go : bool[]\nouter %most : int64[]\n"
        "%again : bool[] = Less(%i, %most)\n%k : int64[1,1] = Reshape(%i, %shape)\nouter %shape : "
        "int64[2]\noutput %again\noutput %k\n}}";
    const char *trips[] = {"_", "%m", "%huge"};
    for (size_t k = 0; k < 3; k++) {
        char text[1500];
        snprintf(text, sizeof text,
                 "init %%most : int64[] = [39]\ninit %%shape : int64[2] = [1, 1]\ninput init %%m : "
                 "int64[] = [1000]\n"
                 "input init %%huge : int64[] = [9223372036854775807]\n%%s : int64[?,?,?] = "
                 "Loop(%s, _) %s\n"
                 "%%got = Shape(%%s)\n%%sum = ReduceSum(%%s) {keepdims=0}\ninit %%Got : int64[3] = "
                 "[40, 1, 1]\ninit %%Sum : int64[] = [780]\n"
                 "output %%got\noutput %%Got\noutput %%sum\noutput %%Sum",
                 trips[k], body);
        ref_right(17, text);
    }
}

static void nested_loops_and_sequences(void **state)
{
    (void)state;
    ref_makes(
        17,
        "init %m : int64[] = [3]\ninit %x : float32[2] = [1, 2]\n%e : opaque = SequenceEmpty()\n"
        "%l : opaque = Loop(%m, _, %e) {body=graph step {\ninput %i : int64[]\ninput %go : "
        "bool[]\ninput %in : opaque\nouter %x : float32[2]\n"
        "%again : bool[] = Identity(%go)\n%f : float32[] = Cast(%i) {to=1}\n%p : float32[2] = "
        "Mul(%x, %f)\n"
        "%out : opaque = SequenceInsert(%in, %p)\noutput %again\noutput %out\n}}\n%y = "
        "ConcatFromSequence(%l) {axis=0, new_axis=1}",
        "float32[3,2] = [0, 0, 1, 2, 2, 4]");
    ref_makes(17,
              "init %m : int64[] = [3]\ninit %zero : int64[] = [0]\n"
              "%y : int64[?] = Loop(%m, _) {body=graph outer {\ninput %i : int64[]\ninput %go : "
              "bool[]\nouter %m : int64[]\nouter %zero : int64[]\n"
              "%sum : int64[] = Loop(%m, _, %zero) {body=graph inner {\ninput %j : int64[]\ninput "
              "%go2 : bool[]\ninput %a : int64[]\nouter %i : int64[]\n"
              "%ij : int64[] = Mul(%i, %j)\n%b : int64[] = Add(%a, %ij)\n%go3 : bool[] = "
              "Identity(%go2)\noutput %go3\noutput %b\n}}\n"
              "%again : bool[] = Identity(%go)\noutput %again\noutput %sum\n}}",
              "int64[3] = [0, 3, 6]");
}

static void loops_refused(void **state)
{
    (void)state;
    /* the third trip divides by zero: what the first two made is freed */
    ref_fails(17,
              "init %m : int64[] = [9]\ninit %two : int64[] = [2]\ninit %start : int64[] = [1]\n"
              "%z : int64[], %y : int64[?] = Loop(%m, _, %start) {body=graph step {\ninput %i : "
              "int64[]\ninput %go : bool[]\ninput %a : int64[]\n"
              "outer %two : int64[]\n%d : int64[] = Sub(%two, %i)\n%q : int64[] = Div(%a, "
              "%d)\n%again : bool[] = Identity(%go)\n"
              "output %again\noutput %q\noutput %d\n}}",
              "division of an integer by zero");
    ref_fails(17,
              "init %m : int64[] = [3]\ninit %one : int64[1] = [1]\n"
              "%y : int64[?,?] = Loop(%m, _) {body=graph step {\ninput %i : int64[]\ninput %go : "
              "bool[]\nouter %one : int64[1]\n"
              "%d : int64[1] = Mul(%one, %i)\n%s : int64[?] = ConstantOfShape(%d)  {value=tensor "
              "int64[1] = [7]}\n%again : bool[] = Identity(%go)\n"
              "output %again\noutput %s\n}}",
              "differ in type or shape");
    ref_fails(17,
              "init %m : int64[] = [3]\n%y : int64[?] = Loop(%m, _) {body=graph step {\ninput %i : "
              "int64[]\ninput %go : bool[]\n"
              "%s : int64[] = Identity(%i)\n%t : int64[] = Identity(%i)\noutput %s\noutput %t\n}}",
              "not a single bool");
    ref_fails(17,
              "init %m : int64[] = [3]\n%y : int64[], %z : int64[] = Loop(%m, _) {body=graph step "
              "{\ninput %i : int64[]\ninput %go : bool[]\n"
              "%again : bool[] = Identity(%go)\n%t : int64[] = Identity(%i)\noutput %again\noutput "
              "%t\n}}\noutput %z",
              "2 outputs");
    ref_fails(17,
              "init %m : int64[2] = [3, 3]\n%y : int64[] = Loop(%m, _) {body=graph step {\ninput "
              "%i : int64[]\ninput %go : bool[]\n"
              "%again : bool[] = Identity(%go)\n%t : int64[] = Identity(%i)\noutput %again\noutput "
              "%t\n}}",
              "2 elements");
}

/* ---- Scan ---- */

#define SUM                                                                                        \
    " body=graph step {\ninput %a : float32[?]\ninput %b : float32[?]\n%c : float32[?] = Add(%a, " \
    "%b)\n%d : float32[?] = Neg(%c)\noutput %c\noutput %d\n}}\n"
#define SCAN "init %a0 : float32[2] = [0, 10]\ninput init %x : float32[3,2] = [1, 2, 3, 4, 5, 6]\n"

static void scans(void **state)
{
    (void)state;
    ref_right(11, SCAN "%y : float32[?], %s : float32[?,?] = Scan(%a0, %x) {num_scan_inputs=1," SUM
                       "init %Y : float32[2] = [9, 22]\ninit %S : float32[3,2] = [-1, -12, -4, "
                       "-16, -9, -22]\noutput %y\noutput %Y\noutput %s\noutput %S");
    ref_right(11, SCAN "%y : float32[?], %s : float32[?,?] = Scan(%a0, %x) {num_scan_inputs=1, "
                       "scan_input_directions=[1], scan_output_directions=[1]," SUM
                       "init %Y : float32[2] = [9, 22]\ninit %S : float32[3,2] = [-9, -22, -8, "
                       "-20, -5, -16]\noutput %y\noutput %Y\noutput %s\noutput %S");
    ref_right(11,
              "init %a0 : float32[2] = [0, 10]\ninput init %x : float32[2,3] = [1, 3, 5, 2, 4, 6]\n"
              "%y : float32[?], %s : float32[?,?] = Scan(%a0, %x) {num_scan_inputs=1, "
              "scan_input_axes=[1], scan_output_axes=[-1]," SUM
              "init %Y : float32[2] = [9, 22]\ninit %S : float32[2,3] = [-1, -4, -9, -12, -16, "
              "-22]\noutput %y\noutput %Y\noutput %s\noutput %S");
    ref_right(11, "init %a0 : float32[2] = [0, 10]\ninput init %x : float32[0,2] = []\n"
                  "%y : float32[?], %s : float32[?,?] = Scan(%a0, %x) {num_scan_inputs=1," SUM
                  "init %Y : float32[2] = [0, 10]\ninit %S : float32[0,2] = []\noutput %y\noutput "
                  "%Y\noutput %s\noutput %S");
    ref_fails(11, SCAN "%y : float32[?], %s : float32[?,?] = Scan(%a0, %x) {num_scan_inputs=3," SUM,
              "num_scan_inputs");
    ref_fails(11,
              SCAN "%y : float32[?], %s : float32[?,?] = Scan(%a0, %x) {num_scan_inputs=1, "
                   "scan_input_axes=[2]," SUM,
              "axis 2");
    ref_fails(11,
              SCAN "%y : float32[?], %s : float32[?,?] = Scan(%a0, %x) {num_scan_inputs=1, "
                   "scan_output_axes=[3]," SUM "output %s",
              "axis 3");
    ref_fails(11,
              SCAN "init %w : float32[2,2] = [0, 0, 0, 0]\n%y : float32[?] = Scan(%x, %w) "
                   "{num_scan_inputs=2," SUM,
              "long");
}

/* Two sequences in a batch, of 2 steps and of 1. */
static void scans_of_a_batch(void **state)
{
    (void)state;
    const char *in = "init %a0 : float32[2,1] = [0, 10]\ninput init %x : float32[2,2,1] = [1, 2, "
                     "3, 4]\ninput init %len : int64[2] = [2, 1]\n";
    char text[1500];
    snprintf(
        text, sizeof text,
        "%s%%y : float32[?,?], %%s : float32[?,?,?] = Scan(%%len, %%a0, %%x) {num_scan_inputs=1,%s"
        "init %%Y : float32[2,1] = [3, 13]\ninit %%S : float32[2,2,1] = [-1, -3, -13, 0]\noutput "
        "%%y\noutput %%Y\noutput %%s\noutput %%S",
        in, SUM);
    ref_right(8, text);
    snprintf(text, sizeof text,
             "%s%%y : float32[?,?], %%s : float32[?,?,?] = Scan(_, %%a0, %%x) {num_scan_inputs=1, "
             "directions=[1],%s"
             "init %%Y : float32[2,1] = [3, 17]\ninit %%S : float32[2,2,1] = [-2, -3, -14, "
             "-17]\noutput %%y\noutput %%Y\noutput %%s\noutput %%S",
             in, SUM);
    ref_right(8, text);
    snprintf(
        text, sizeof text,
        "init %%a0 : float32[2,1] = [0, 10]\ninput init %%x : float32[2,2,1] = [1, 2, 3, 4]\ninput "
        "init %%len : int64[2] = [2, 3]\n"
        "%%y : float32[?,?], %%s : float32[?,?,?] = Scan(%%len, %%a0, %%x) {num_scan_inputs=1,%s",
        SUM);
    ref_fails(8, text, "length 3");
}

/* ---- sequences ---- */

#define SEQ                                                                                       \
    "init %a : int32[1] = [1]\ninit %b : int32[2] = [2, 3]\n%s : opaque = SequenceConstruct(%a, " \
    "%b)\n"

static void sequences(void **state)
{
    (void)state;
    ref_makes(17, SEQ "%t : opaque = SequenceInsert(%s, %a)\n%y = ConcatFromSequence(%t) {axis=0}",
              "int32[4] = [1, 2, 3, 1]");
    ref_makes(17,
              SEQ "input init %p : int64[] = [-1]\n%t : opaque = SequenceInsert(%s, %a, %p)\n%y = "
                  "ConcatFromSequence(%t) {axis=-1}",
              "int32[4] = [1, 1, 2, 3]");
    ref_makes(17, SEQ "%t : opaque = SequenceErase(%s)\n%y = ConcatFromSequence(%t) {axis=0}",
              "int32[1] = [1]");
    ref_makes(17,
              SEQ "input init %p : int32[] = [0]\n%t : opaque = SequenceErase(%s, %p)\n%y = "
                  "SequenceLength(%t)",
              "int64[] = [1]");
    ref_makes(17, SEQ "input init %p : int64[] = [-1]\n%y = SequenceAt(%s, %p)",
              "int32[2] = [2, 3]");
    ref_makes(17, SEQ "%t : opaque = Identity(%s)\n%y = SequenceLength(%t)", "int64[] = [2]");
    ref_makes(17, "%s : opaque = SequenceEmpty() {dtype=6}\n%y = SequenceLength(%s)",
              "int64[] = [0]");
    ref_makes(17,
              "init %a : int32[2] = [1, 2]\n%s : opaque = SequenceConstruct(%a, %a)\n%y = "
              "ConcatFromSequence(%s) {axis=1, new_axis=1}",
              "int32[2,2] = [1, 1, 2, 2]");
    ref_fails(17, SEQ "input init %p : int64[] = [2]\n%y = SequenceAt(%s, %p)",
              "position 2 in a sequence of 2");
    ref_fails(17,
              SEQ "input init %p : int64[] = [-3]\n%t : opaque = SequenceInsert(%s, %a, %p)\n%y = "
                  "SequenceLength(%t)",
              "position -3");
    ref_fails(
        17,
        SEQ
        "init %f : float32[1] = [0]\n%t : opaque = SequenceInsert(%s, %f)\n%y = SequenceLength(%t)",
        "float32");
    ref_fails(17, SEQ "%y = ConcatFromSequence(%s) {axis=0, new_axis=1}", "element 1");
    ref_fails(17, SEQ "%y = ConcatFromSequence(%s)", "axis");
    ref_fails(17, SEQ "%y = SequenceLength(%a)", "no sequence");
    ref_fails(17, SEQ "%y = Add(%s, %a)", "a sequence");
    ref_fails(17, "%s : opaque = SequenceEmpty()\n%y = ConcatFromSequence(%s) {axis=0}", "empty");
    ref_fails(
        17,
        "%s : opaque = SequenceEmpty()\n%t : opaque = SequenceErase(%s)\n%y = SequenceLength(%t)",
        "a sequence of 0");
}

#define TO_SPLIT "input init %x : int32[5,1] = [1, 2, 3, 4, 5]\n"

static void splits_to_sequences(void **state)
{
    (void)state;
    ref_makes(
        17,
        TO_SPLIT
        "init %p : int64[] = [-1]\n%s : opaque = SplitToSequence(%x)\n%y = SequenceAt(%s, %p)",
        "int32[1,1] = [5]");
    ref_makes(17,
              TO_SPLIT "init %p : int64[] = [1]\n%s : opaque = SplitToSequence(%x) "
                       "{keepdims=0}\n%y = SequenceAt(%s, %p)",
              "int32[1] = [2]");
    ref_makes(17,
              TO_SPLIT "init %p : int64[] = [2]\ninput init %n : int64[] = [2]\n%s : opaque = "
                       "SplitToSequence(%x, %n) {keepdims=0}\n%y = SequenceAt(%s, %p)",
              "int32[1,1] = [5]");
    ref_makes(17,
              TO_SPLIT "init %p : int64[] = [1]\ninput init %n : int64[3] = [1, 3, 1]\n%s : opaque "
                       "= SplitToSequence(%x, %n)\n%y = SequenceAt(%s, %p)",
              "int32[3,1] = [2, 3, 4]");
    ref_fails(17,
              TO_SPLIT "input init %n : int64[2] = [1, 3]\n%s : opaque = SplitToSequence(%x, "
                       "%n)\n%y = SequenceLength(%s)",
              "its parts have 4");
    ref_fails(17,
              TO_SPLIT "input init %n : int64[2] = [6, -1]\n%s : opaque = SplitToSequence(%x, "
                       "%n)\n%y = SequenceLength(%s)",
              "does not fit");
    ref_fails(17,
              TO_SPLIT "input init %n : int64[] = [0]\n%s : opaque = SplitToSequence(%x, %n)\n%y = "
                       "SequenceLength(%s)",
              "parts of 0");
}

static void maps(void **state)
{
    (void)state;
    ref_makes(17,
              "init %a : int32[1] = [1]\ninit %b : int32[2] = [2, 3]\n%s : opaque = "
              "SequenceConstruct(%a, %b)\n"
              "%t : opaque = SequenceMap(%s, %a) {body=graph each {\ninput %u : int32[?]\ninput %v "
              ": int32[?]\n%w : int32[?] = Add(%u, %v)\noutput %w\n}}\n"
              "%y = ConcatFromSequence(%t) {axis=0}",
              "int32[3] = [2, 3, 4]");
    ref_fails(17,
              "init %a : int32[1] = [1]\n%s : opaque = SequenceConstruct(%a, %a)\n%r : opaque = "
              "SequenceConstruct(%a)\n"
              "%t : opaque = SequenceMap(%s, %r) {body=graph each {\ninput %u : int32[?]\ninput %v "
              ": int32[?]\n%w : int32[?] = Add(%u, %v)\noutput %w\n}}\n"
              "%y = SequenceLength(%t)",
              "differ in length");
}

static void optionals(void **state)
{
    (void)state;
    ref_makes(18,
              "init %a : int32[1] = [1]\n%o : opaque = Optional(%a)\n%y = OptionalGetElement(%o)",
              "int32[1] = [1]");
    ref_makes(18,
              "init %a : int32[1] = [1]\n%o : opaque = Optional(%a)\n%y = OptionalHasElement(%o)",
              "bool[] = [1]");
    ref_makes(18, "%o : opaque = Optional()\n%y = OptionalHasElement(%o)", "bool[] = [0]");
    ref_makes(18, "%y = OptionalHasElement()", "bool[] = [0]");
    ref_makes(
        18,
        SEQ
        "%o : opaque = Optional(%s)\n%t : opaque = OptionalGetElement(%o)\n%y = SequenceLength(%t)",
        "int64[] = [2]");
    ref_fails(18, "%o : opaque = Optional()\n%y = OptionalGetElement(%o)", "empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches),
        cmocka_unit_test(loops),
        cmocka_unit_test(scan_outputs_grow),
        cmocka_unit_test(nested_loops_and_sequences),
        cmocka_unit_test(loops_refused),
        cmocka_unit_test(scans),
        cmocka_unit_test(scans_of_a_batch),
        cmocka_unit_test(sequences),
        cmocka_unit_test(splits_to_sequences),
        cmocka_unit_test(maps),
        cmocka_unit_test(optionals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
