/* Reference kernels of data movement, against results worked out by hand from the operators'
 * definitions. */
#include "ref_check.h"

/* x = 0..n-1 of a shape */
#define X6 "init %x : float32[2,3] = [0, 1, 2, 3, 4, 5]\n"
#define V5 "init %x : int32[5] = [10, 11, 12, 13, 14]\n"

/* ---- shapes ---- */

static void reshape(void **state)
{
    (void)state;
    ref_makes(14, X6 "input init %s : int64[2] = [0, -1]\n%y = Reshape(%x, %s)",
              "float32[2,3] = [0, 1, 2, 3, 4, 5]");
    ref_makes(14, X6 "input init %s : int64[3] = [3, -1, 2]\n%y = Reshape(%x, %s)",
              "float32[3,1,2] = [0, 1, 2, 3, 4, 5]");
    ref_makes(1, X6 "%y = Reshape(%x) {shape=[6]}", "float32[6] = [0, 1, 2, 3, 4, 5]");
    ref_makes(14,
              "init %x : float32[0,3] = []\ninput init %s : int64[2] = [3, 0]\n%y = Reshape(%x, "
              "%s) {allowzero=1}",
              "float32[3,0] = []");
    ref_makes(
        14, "init %x : float32[0,3] = []\ninput init %s : int64[2] = [0, -1]\n%y = Reshape(%x, %s)",
        "float32[0,0] = []");
    ref_makes(14, "init %x : bool[1] = [1]\ninput init %s : int64[0] = []\n%y = Reshape(%x, %s)",
              "bool[] = [1]");
    ref_fails(14, X6 "input init %s : int64[2] = [-1, -1]\n%y = Reshape(%x, %s)", "-1");
    ref_fails(14, X6 "input init %s : int64[2] = [4, -1]\n%y = Reshape(%x, %s)", "6 elements");
    ref_fails(14, X6 "input init %s : int64[2] = [4, 2]\n%y = Reshape(%x, %s)", "shape");
    ref_fails(14, X6 "input init %s : int64[3] = [6, 1, 0]\n%y = Reshape(%x, %s)",
              "copies one that the input has not");
    ref_fails(14, X6 "input init %s : int64[1] = [-2]\n%y = Reshape(%x, %s)", "-2");
    ref_fails(14,
              "init %x : float32[0] = []\ninput init %s : int64[2] = [0, -1]\n%y = Reshape(%x, %s) "
              "{allowzero=1}",
              "allowzero");
    ref_fails(14, X6 "input init %s : int64[2] = [4611686018427387904, 4]\n%y = Reshape(%x, %s)",
              "larger than any memory");
}

static void other_views(void **state)
{
    (void)state;
    ref_makes(13, X6 "%y = Flatten(%x) {axis=0}", "float32[1,6] = [0, 1, 2, 3, 4, 5]");
    ref_makes(13, X6 "%y = Flatten(%x) {axis=2}", "float32[6,1] = [0, 1, 2, 3, 4, 5]");
    ref_makes(13, X6 "%y = Flatten(%x) {axis=-1}", "float32[2,3] = [0, 1, 2, 3, 4, 5]");
    ref_makes(13, "init %x : int8[] = [7]\n%y = Flatten(%x) {axis=0}", "int8[1,1] = [7]");
    ref_fails(13, X6 "%y = Flatten(%x) {axis=3}", "axis");
    ref_makes(13, "init %x : int8[1,2,1] = [7, 8]\n%y = Squeeze(%x)", "int8[2] = [7, 8]");
    ref_makes(
        13, "init %x : int8[1,2,1] = [7, 8]\ninput init %a : int64[1] = [-1]\n%y = Squeeze(%x, %a)",
        "int8[1,2] = [7, 8]");
    ref_makes(11, "init %x : int8[1,2,1] = [7, 8]\n%y = Squeeze(%x) {axes=[0]}",
              "int8[2,1] = [7, 8]");
    ref_fails(
        13, "init %x : int8[1,2,1] = [7, 8]\ninput init %a : int64[1] = [1]\n%y = Squeeze(%x, %a)",
        "not 1");
    ref_fails(
        13,
        "init %x : int8[1,2,1] = [7, 8]\ninput init %a : int64[2] = [0, -3]\n%y = Squeeze(%x, %a)",
        "twice");
    ref_makes(
        13,
        "init %x : int8[2] = [7, 8]\ninput init %a : int64[2] = [-1, 0]\n%y = Unsqueeze(%x, %a)",
        "int8[1,2,1] = [7, 8]");
    ref_makes(11, "init %x : int8[] = [7]\n%y = Unsqueeze(%x) {axes=[0, 1]}", "int8[1,1] = [7]");
    ref_fails(
        13,
        "init %x : int8[2] = [7, 8]\ninput init %a : int64[2] = [0, -3]\n%y = Unsqueeze(%x, %a)",
        "twice");
    ref_fails(13,
              "init %x : int8[2] = [7, 8]\ninput init %a : int64[1] = [2]\n%y = Unsqueeze(%x, %a)",
              "range");
    ref_makes(16, "init %x : uint16[2] = [7, 65535]\n%y = Identity(%x)", "uint16[2] = [7, 65535]");
    ref_makes(26, "init %x : float32[2] = [1, -2]\n%y = BitCast(%x) {to=6}",
              "int32[2] = [0x3f800000, -1073741824]");
    ref_fails(26, "init %x : float32[2] = [1, -2]\n%y = BitCast(%x) {to=7}", "cannot be read");
}

static void shape_and_size(void **state)
{
    (void)state;
    ref_makes(13, X6 "%y = Shape(%x)", "int64[2] = [2, 3]");
    ref_makes(15, X6 "%y = Shape(%x) {start=-1}", "int64[1] = [3]");
    ref_makes(15, X6 "%y = Shape(%x) {start=-9, end=-1}", "int64[1] = [2]");
    ref_makes(15, X6 "%y = Shape(%x) {start=1, end=9}", "int64[1] = [3]");
    ref_makes(15, X6 "%y = Shape(%x) {start=2, end=1}", "int64[0] = []");
    ref_makes(13, "init %x : int8[] = [1]\n%y = Shape(%x)", "int64[0] = []");
    ref_makes(13, X6 "%y = Size(%x)", "int64[] = [6]");
    ref_makes(13, "init %x : int8[3,0] = []\n%y = Size(%x)", "int64[] = [0]");
}

/* ---- boxes ---- */

static void transpose(void **state)
{
    (void)state;
    ref_makes(13, X6 "%y = Transpose(%x)", "float32[3,2] = [0, 3, 1, 4, 2, 5]");
    ref_makes(13, "init %x : bool[2,1,2] = [0, 1, 1, 1]\n%y = Transpose(%x) {perm=[2, 0, 1]}",
              "bool[2,2,1] = [0, 1, 1, 1]");
    ref_makes(
        13,
        "init %x : int16[2,2,2] = [0, 1, 2, 3, 4, 5, 6, 7]\n%y = Transpose(%x) {perm=[1, 0, 2]}",
        "int16[2,2,2] = [0, 1, 4, 5, 2, 3, 6, 7]");
    ref_makes(13, "init %x : float64[2,2] = [0, 1, 2, 3]\n%y = Transpose(%x)",
              "float64[2,2] = [0, 2, 1, 3]");
    ref_makes(13, "init %x : int8[] = [3]\n%y = Transpose(%x)", "int8[] = [3]");
    ref_makes(13, "init %x : int8[2,0] = []\n%y = Transpose(%x)", "int8[0,2] = []");
    ref_fails(13, X6 "%y = Transpose(%x) {perm=[0, 0]}", "given twice");
    ref_fails(13, X6 "%y = Transpose(%x) {perm=[0]}", "perm");
}

/* starts, ends, axes, steps of one dimension of V5 */
static void sliced(const char *start, const char *end, const char *step, const char *want)
{
    char text[800];
    snprintf(text, sizeof text,
             "init %%x : int32[5] = [10, 11, 12, 13, 14]\ninput init %%s : int64[1] = [%s]\ninput "
             "init %%e : int64[1] = [%s]\ninput init %%a : int64[1] = [-1]\n"
             "input init %%t : int64[1] = [%s]\n%%y = Slice(%%x, %%s, %%e, %%a, %%t)",
             start, end, step);
    ref_makes(13, text, want);
}

static void slice(void **state)
{
    (void)state;
    sliced("1", "4", "1", "int32[3] = [11, 12, 13]");
    sliced("-4", "-1", "2", "int32[2] = [11, 13]");
    sliced("-99", "99", "4", "int32[2] = [10, 14]");
    sliced("4", "-99", "-2", "int32[3] = [14, 12, 10]");
    sliced("9223372036854775807", "-9223372036854775808", "-9223372036854775808",
           "int32[1] = [14]");
    sliced("0", "9223372036854775807", "9223372036854775807", "int32[1] = [10]");
    sliced("3", "9223372036854775807", "-1", "int32[4] = [13, 12, 11, 10]");
    sliced("3", "2", "1", "int32[0] = []");
    sliced("5", "9", "1", "int32[0] = []");
    sliced("-99", "-100", "-1", "int32[1] = [10]");
    ref_makes(9, X6 "%y = Slice(%x) {starts=[1, 1], ends=[2, 3]}", "float32[1,2] = [4, 5]");
    ref_makes(9, X6 "%y = Slice(%x) {starts=[0], ends=[-1], axes=[1]}",
              "float32[2,2] = [0, 1, 3, 4]");
    ref_makes(13,
              X6 "input init %s : int32[2] = [-1, -1]\ninput init %e : int32[2] = [-9, -9]\ninput "
                 "init %t : int32[2] = [-1, -2]\n"
                 "%y = Slice(%x, %s, %e, _, %t)",
              "float32[2,2] = [5, 3, 2, 0]");
    ref_makes(13,
              "init %x : int8[0,1099511627776,1099511627776] = []\ninput init %s : int64[1] = "
              "[1099511627775]\n"
              "input init %e : int64[1] = [-1099511627777]\ninput init %a : int64[1] = [1]\ninput "
              "init %t : int64[1] = [-1099511627775]\n"
              "%z = Slice(%x, %s, %e, %a, %t)\n%y = Shape(%z)",
              "int64[3] = [0, 2, 1099511627776]");
}

static void slices_refused(void **state)
{
    (void)state;
    const char *four = V5 "input init %s : int64[1] = [0]\ninput init %e : int64[1] = [1]\n";
    char text[800];
    snprintf(text, sizeof text,
             "%sinput init %%a : int64[1] = [0]\ninput init %%t : int64[1] = [0]\n%%y = Slice(%%x, "
             "%%s, %%e, %%a, %%t)",
             four);
    ref_fails(13, text, "step 0 is 0");
    snprintf(text, sizeof text,
             "%sinput init %%a : int64[1] = [1]\n%%y = Slice(%%x, %%s, %%e, %%a)", four);
    ref_fails(13, text, "axis 1");
    snprintf(text, sizeof text,
             "%sinput init %%a : int64[2] = [0, 0]\n%%y = Slice(%%x, %%s, %%e, %%a)", four);
    ref_fails(13, text, "length");
    snprintf(text, sizeof text, "%s%%y = Slice(%%x, %%s)", four);
    ref_fails(13, text, "needed");
    ref_fails(9, X6 "%y = Slice(%x) {starts=[0, 0], ends=[1, 1], axes=[1, -1]}", "axis 1");
}

/* border: left, top, right, bottom; scale: height, width in place of right and bottom. */
static void test_crop(void **state)
{
    (void)state;
#define PICTURE "input init %x : float32[1,1,3,4] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n"
    ref_makes(7, PICTURE "%y = Crop(%x) {border=[1, 0, 2, 1]}", "float32[1,1,2,1] = [1, 5]");
    ref_makes(7, PICTURE "%y = Crop(%x) {border=[0, 0, 0, 0]}",
              "float32[1,1,3,4] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]");
    ref_makes(7, PICTURE "%y = Crop(%x) {border=[1, 1, 0, 0], scale=[1, 2]}",
              "float32[1,1,1,2] = [5, 6]");
    ref_fails(7, PICTURE "%y = Crop(%x) {border=[1, 1, 3, 0]}", "nothing is left");
    ref_fails(7, PICTURE "%y = Crop(%x) {border=[1, 1, 0, 0], scale=[3, 1]}", "nothing is left");
    ref_fails(7, PICTURE "%y = Crop(%x) {border=[1, -1, 0, 0]}", "wider than the picture");
    ref_fails(7, PICTURE "%y = Crop(%x) {border=[1, 1]}", "four borders");
    ref_fails(7, X6 "%y = Crop(%x) {border=[1, 1, 0, 0]}", "a picture");
}

static void split(void **state)
{
    (void)state;
    ref_right(13, V5 "input init %s : int64[3] = [1, 0, 4]\n%a, %b, %c = Split(%x, %s)\ninit %A : "
                     "int32[1] = [10]\ninit %B : int32[0] = []\n"
                     "init %C : int32[4] = [11, 12, 13, 14]\noutput %a\noutput %A\noutput "
                     "%b\noutput %B\noutput %c\noutput %C");
    ref_right(18, V5 "%a, %b = Split(%x) {num_outputs=2}\ninit %A : int32[3] = [10, 11, 12]\ninit "
                     "%B : int32[2] = [13, 14]\n"
                     "output %a\noutput %A\noutput %b\noutput %B");
    ref_right(11, X6 "%a, %b = Split(%x) {axis=-1, split=[2, 1]}\ninit %A : float32[2,2] = [0, 1, "
                     "3, 4]\ninit %B : float32[2,1] = [2, 5]\n"
                     "output %a\noutput %A\noutput %b\noutput %B");
    ref_right(13, X6 "%a, _, %b = Split(%x) {axis=1}\ninit %A : float32[2,1] = [0, 3]\ninit %B : "
                     "float32[2,1] = [2, 5]\n"
                     "output %a\noutput %A\noutput %b\noutput %B");
    ref_fails(13, V5 "%y, %z = Split(%x)\noutput %z", "equal");
    ref_fails(13, V5 "input init %s : int64[2] = [1, 3]\n%y, %z = Split(%x, %s)\noutput %z", "4");
    ref_fails(13, V5 "input init %s : int64[2] = [6, -1]\n%y, %z = Split(%x, %s)\noutput %z",
              "does not fit");
    ref_fails(13, V5 "input init %s : int64[1] = [5]\n%y, %z = Split(%x, %s)\noutput %z",
              "1 parts");
    ref_fails(18, V5 "%y, %z = Split(%x) {num_outputs=3}\noutput %z", "3");
}

static void concat(void **state)
{
    (void)state;
    ref_makes(13, X6 "init %z : float32[2,1] = [8, 9]\n%y = Concat(%x, %z, %x) {axis=-1}",
              "float32[2,7] = [0, 1, 2, 8, 0, 1, 2, 3, 4, 5, 9, 3, 4, 5]");
    ref_makes(13, X6 "init %z : float32[0,3] = []\n%y = Concat(%z, %x) {axis=0}",
              "float32[2,3] = [0, 1, 2, 3, 4, 5]");
    ref_makes(1, "init %x : int8[1,1] = [1]\n%y = Concat(%x, %x)", "int8[1,2] = [1, 1]");
    ref_fails(13, X6 "init %z : float32[3,1] = [8, 9, 7]\n%y = Concat(%x, %z) {axis=1}", "axis 0");
    ref_fails(13, X6 "init %z : int32[2,1] = [8, 9]\n%y = Concat(%x, %z) {axis=1}", "int32");
    ref_fails(13, X6 "%y = Concat(%x, %x)", "axis");
    ref_fails(13, "init %x : int8[] = [1]\n%y = Concat(%x, %x) {axis=0}", "axis");
}

static void expand(void **state)
{
    (void)state;
    ref_makes(
        13,
        "init %x : int16[2,1] = [1, 2]\ninput init %s : int64[3] = [2, 1, 2]\n%y = Expand(%x, %s)",
        "int16[2,2,2] = [1, 1, 2, 2, 1, 1, 2, 2]");
    ref_makes(
        13,
        "init %x : int16[2,2] = [1, 2, 3, 4]\ninput init %s : int64[1] = [1]\n%y = Expand(%x, %s)",
        "int16[2,2] = [1, 2, 3, 4]");
    ref_makes(13, "init %x : int16[] = [5]\ninput init %s : int64[2] = [0, 3]\n%y = Expand(%x, %s)",
              "int16[0,3] = []");
    ref_fails(13,
              "init %x : int16[2] = [1, 2]\ninput init %s : int64[1] = [3]\n%y = Expand(%x, %s)",
              "expanded to 3");
    ref_fails(13, "init %x : int16[1] = [1]\ninput init %s : int64[1] = [-3]\n%y = Expand(%x, %s)",
              "negative");
    ref_fails(13,
              "init %x : int16[1] = [1]\ninput init %s : int64[2] = [4611686018427387904, 4]\n%y = "
              "Expand(%x, %s)",
              "larger than any memory");
}

static void blocks_and_sequences(void **state)
{
    (void)state;
    const char *deep = "init %x : int8[1,8,1,1] = [0, 1, 2, 3, 4, 5, 6, 7]\n";
    char text[400];
    snprintf(text, sizeof text, "%s%%y = DepthToSpace(%%x) {blocksize=2}", deep);
    ref_makes(13, text, "int8[1,2,2,2] = [0, 2, 4, 6, 1, 3, 5, 7]");
    snprintf(text, sizeof text, "%s%%y = DepthToSpace(%%x) {blocksize=2, mode=\"CRD\"}", deep);
    ref_makes(13, text, "int8[1,2,2,2] = [0, 1, 2, 3, 4, 5, 6, 7]");
    snprintf(text, sizeof text,
             "%s%%z = DepthToSpace(%%x) {blocksize=2}\n%%y = SpaceToDepth(%%z) {blocksize=2}",
             deep);
    ref_makes(13, text, "int8[1,8,1,1] = [0, 1, 2, 3, 4, 5, 6, 7]");
    snprintf(text, sizeof text, "%s%%y = DepthToSpace(%%x) {blocksize=3}", deep);
    ref_fails(13, text, "9");
    snprintf(text, sizeof text, "%s%%y = DepthToSpace(%%x) {blocksize=0}", deep);
    ref_fails(13, text, "block");
    ref_makes(10,
              "init %x : int8[3,2] = [0, 1, 2, 3, 4, 5]\ninput init %l : int64[2] = [2, 3]\n%y = "
              "ReverseSequence(%x, %l)",
              "int8[3,2] = [2, 5, 0, 3, 4, 1]");
    ref_makes(10,
              "init %x : int8[2,3] = [0, 1, 2, 3, 4, 5]\ninput init %l : int64[2] = [1, 2]\n"
              "%y = ReverseSequence(%x, %l) {batch_axis=0, time_axis=1}",
              "int8[2,3] = [0, 1, 2, 4, 3, 5]");
    ref_fails(10,
              "init %x : int8[3,2] = [0, 1, 2, 3, 4, 5]\ninput init %l : int64[2] = [2, 4]\n%y = "
              "ReverseSequence(%x, %l)",
              "length 4");
}

/* ---- maps ---- */

/* [1 2 3] padded */
static void padded(const char *mode, const char *pads, const char *want)
{
    char text[400];
    snprintf(text, sizeof text,
             "init %%x : int32[3] = [1, 2, 3]\ninput init %%p : int64[2] = [%s]\n%%y = Pad(%%x, "
             "%%p) {mode=\"%s\"}",
             pads, mode);
    ref_makes(19, text, want);
}

static void pad(void **state)
{
    (void)state;
    padded("constant", "2, 1", "int32[6] = [0, 0, 1, 2, 3, 0]");
    padded("reflect", "2, 1", "int32[6] = [3, 2, 1, 2, 3, 2]");
    padded("reflect", "5, 0", "int32[8] = [2, 1, 2, 3, 2, 1, 2, 3]");
    padded("edge", "2, 1", "int32[6] = [1, 1, 1, 2, 3, 3]");
    padded("wrap", "4, 1", "int32[8] = [3, 1, 2, 3, 1, 2, 3, 1]");
    padded("constant", "-1, 1", "int32[3] = [2, 3, 0]");
    padded("reflect", "-1, 1", "int32[3] = [2, 3, 2]");
    padded("edge", "3, -2", "int32[4] = [1, 1, 1, 1]");
    padded("constant", "-5, 4", "int32[2] = [0, 0]");
    padded("constant", "-2, -1", "int32[0] = []");
    ref_makes(18,
              X6 "input init %p : int64[2] = [1, 0]\ninit %v : float32[] = [9]\ninput init %a : "
                 "int64[1] = [-1]\n%y = Pad(%x, %p, %v, %a)",
              "float32[2,4] = [9, 0, 1, 2, 9, 3, 4, 5]");
    ref_makes(2, X6 "%y = Pad(%x) {pads=[0, 1, 0, 0], value=7.0}",
              "float32[2,4] = [7, 0, 1, 2, 7, 3, 4, 5]");
    ref_makes(1, "init %x : float16[2] = [1, 2]\n%y = Pad(%x) {paddings=[1, 0], value=0.5}",
              "float16[3] = [0.5, 1, 2]");
    ref_fails(13, X6 "input init %p : int64[2] = [1, 0]\n%y = Pad(%x, %p)", "2 pads");
    ref_fails(13, X6 "input init %p : int64[4] = [0, -4, 0, 0]\n%y = Pad(%x, %p)", "do not suit");
    ref_fails(13, X6 "input init %p : int64[4] = [0, 9223372036854775807, 0, 0]\n%y = Pad(%x, %p)",
              "do not suit");
    ref_fails(13, X6 "input init %p : int64[4] = [0, -9223372036854775808, 0, 0]\n%y = Pad(%x, %p)",
              "do not suit");
    ref_fails(13, X6 "input init %p : int64[4] = [0, 0, 0, 0]\n%y = Pad(%x, %p) {mode=\"mirror\"}",
              "mirror");
    ref_fails(13, X6 "input init %p : int64[4] = [0, -3, 0, 5]\n%y = Pad(%x, %p) {mode=\"edge\"}",
              "no elements to pad with");
}

static void tile_and_crop(void **state)
{
    (void)state;
    ref_makes(13,
              "init %x : int8[1,2] = [1, 2]\ninput init %r : int64[2] = [2, 2]\n%y = Tile(%x, %r)",
              "int8[2,4] = [1, 2, 1, 2, 1, 2, 1, 2]");
    ref_makes(13, "init %x : int8[2] = [1, 2]\ninput init %r : int64[1] = [0]\n%y = Tile(%x, %r)",
              "int8[0] = []");
    ref_fails(13, "init %x : int8[2] = [1, 2]\ninput init %r : int64[1] = [-1]\n%y = Tile(%x, %r)",
              "-1 times");
    ref_fails(13,
              "init %x : int8[2] = [1, 2]\ninput init %r : int64[2] = [1, 1]\n%y = Tile(%x, %r)",
              "2 repeats");
    ref_fails(13,
              "init %x : int8[2] = [1, 2]\ninput init %r : int64[1] = [9223372036854775807]\n%y = "
              "Tile(%x, %r)",
              "times");
    ref_makes(18, V5 "input init %s : int64[1] = [2]\n%y = CenterCropPad(%x, %s)",
              "int32[2] = [11, 12]");
    ref_makes(18,
              "init %x : int8[2,2] = [1, 2, 3, 4]\ninput init %s : int64[1] = [5]\n%y = "
              "CenterCropPad(%x, %s) {axes=[-1]}",
              "int8[2,5] = [0, 1, 2, 0, 0, 0, 3, 4, 0, 0]");
}

/* ---- indices ---- */

static void gather(void **state)
{
    (void)state;
    ref_makes(13, X6 "input init %i : int64[1,2] = [-1, 0]\n%y = Gather(%x, %i) {axis=1}",
              "float32[2,1,2] = [2, 0, 5, 3]");
    ref_makes(13, X6 "input init %i : int32[] = [1]\n%y = Gather(%x, %i)",
              "float32[3] = [3, 4, 5]");
    ref_makes(13, "init %x : int8[0,2] = []\ninput init %i : int32[0] = []\n%y = Gather(%x, %i)",
              "int8[0,2] = []");
    ref_fails(13, X6 "input init %i : int64[1] = [2]\n%y = Gather(%x, %i)",
              "index 2 is out of range for 2 elements");
    ref_fails(13, X6 "input init %i : int64[1] = [-9223372036854775808]\n%y = Gather(%x, %i)",
              "out of range");
    ref_fails(13, "init %x : int8[0,2] = []\ninput init %i : int32[1] = [0]\n%y = Gather(%x, %i)",
              "out of range for 0");
    ref_makes(13, X6 "input init %i : int64[1,3] = [1, 0, -1]\n%y = GatherElements(%x, %i)",
              "float32[1,3] = [3, 1, 5]");
    ref_makes(13, X6 "input init %i : int64[2,1] = [2, -3]\n%y = GatherElements(%x, %i) {axis=1}",
              "float32[2,1] = [2, 3]");
    ref_fails(13, X6 "input init %i : int64[2,1] = [3, 0]\n%y = GatherElements(%x, %i) {axis=1}",
              "out of range");
    ref_fails(13, X6 "input init %i : int64[3,1] = [0, 0, 0]\n%y = GatherElements(%x, %i) {axis=1}",
              "axis 0");
    ref_makes(13, X6 "input init %i : int64[2,2] = [0, -1, 1, 0]\n%y = GatherND(%x, %i)",
              "float32[2] = [2, 3]");
    ref_makes(13, X6 "input init %i : int64[1,1] = [1]\n%y = GatherND(%x, %i)",
              "float32[1,3] = [3, 4, 5]");
    ref_makes(13, X6 "input init %i : int64[2,1] = [2, 0]\n%y = GatherND(%x, %i) {batch_dims=1}",
              "float32[2] = [2, 3]");
    ref_fails(13, X6 "input init %i : int64[1,3] = [0, 0, 0]\n%y = GatherND(%x, %i)",
              "3 coordinates");
    ref_fails(13, X6 "input init %i : int64[1,1] = [-3]\n%y = GatherND(%x, %i)", "out of range");
    ref_makes(11, X6 "input init %c : bool[2] = [0, 1]\n%y = Compress(%x, %c) {axis=1}",
              "float32[2,1] = [1, 4]");
    ref_makes(11, X6 "input init %c : bool[5] = [0, 1, 0, 0, 1]\n%y = Compress(%x, %c)",
              "float32[2] = [1, 4]");
    ref_fails(11, X6 "input init %c : bool[3] = [0, 1, 1]\n%y = Compress(%x, %c) {axis=0}",
              "3 conditions");
}

/* [1 2 3] of a type, updates of one place */
static void scattered(const char *type, const char *data, const char *updates,
                      const char *reduction, const char *want)
{
    char text[600], wanted[200];
    snprintf(
        text, sizeof text,
        "init %%x : %s[3] = [%s]\ninput init %%i : int64[3] = [1, 1, -2]\ninit %%u : %s[3] = [%s]\n"
        "%%y = ScatterElements(%%x, %%i, %%u) {reduction=\"%s\"}",
        type, data, type, updates, reduction);
    snprintf(wanted, sizeof wanted, "%s[3] = [%s]", type, want);
    ref_makes(18, text, wanted);
}

static void scatter(void **state)
{
    (void)state;
    scattered("int8", "1, 100, 3", "100, 1, 1", "add", "1, -54, 3");
    scattered("float32", "1, 2, 3", "2, 3, 4", "mul", "1, 48, 3");
    scattered("uint64", "1, 2, 3", "5, 0xffffffffffffffff, 6", "max", "1, 0xffffffffffffffff, 3");
    scattered("uint64", "1, 2, 3", "5, 0xffffffffffffffff, 6", "min", "1, 2, 3");
    scattered("int32", "1, 2, 3", "5, -6, 6", "min", "1, -6, 3");
    /* 2051, rounded once, to even */
    scattered("float16", "1, 2048, 3", "1, 1, 1", "add", "1, 2052, 3");
    ref_makes(9,
              X6 "input init %i : int64[1,2] = [2, 0]\ninit %u : float32[1,2] = [8, 9]\n%y = "
                 "Scatter(%x, %i, %u) {axis=1}",
              "float32[2,3] = [9, 1, 8, 3, 4, 5]");
    ref_fails(18,
              X6 "input init %i : int64[1,2] = [3, 0]\ninit %u : float32[1,2] = [8, 9]\n%y = "
                 "ScatterElements(%x, %i, %u) {axis=1}",
              "out of range");
    ref_fails(18,
              X6 "input init %i : int64[1,2] = [0, 0]\ninit %u : float32[1,1] = [8]\n%y = "
                 "ScatterElements(%x, %i, %u) {axis=1}",
              "axis 1");
    ref_fails(18,
              X6 "input init %i : int64[1,1] = [0]\ninit %u : float32[1,1] = [8]\n%y = "
                 "ScatterElements(%x, %i, %u) {reduction=\"avg\"}",
              "avg");
    ref_makes(18,
              X6 "input init %i : int64[1,1] = [-1]\ninit %u : float32[1,3] = [7, 8, 9]\n%y = "
                 "ScatterND(%x, %i, %u)",
              "float32[2,3] = [0, 1, 2, 7, 8, 9]");
    ref_makes(18,
              X6 "input init %i : int64[2,2] = [0, 1, 0, 1]\ninit %u : float32[2] = [7, 8]\n%y = "
                 "ScatterND(%x, %i, %u) {reduction=\"add\"}",
              "float32[2,3] = [0, 16, 2, 3, 4, 5]");
    ref_fails(18,
              X6 "input init %i : int64[1,1] = [2]\ninit %u : float32[1,3] = [7, 8, 9]\n%y = "
                 "ScatterND(%x, %i, %u)",
              "out of range");
    ref_fails(18,
              X6 "input init %i : int64[1,1] = [0]\ninit %u : float32[1,2] = [7, 8]\n%y = "
                 "ScatterND(%x, %i, %u)",
              "axis 1");
    ref_makes(24,
              "init %x : int8[2,3,1] = [0, 1, 2, 3, 4, 5]\ninit %u : int8[2,2,1] = [6, 7, 8, "
              "9]\ninput init %i : int64[2] = [1, 2]\n"
              "%y = TensorScatter(%x, %u, %i) {mode=\"circular\"}",
              "int8[2,3,1] = [0, 6, 7, 9, 4, 8]");
    ref_fails(24,
              "init %x : int8[2,3,1] = [0, 1, 2, 3, 4, 5]\ninit %u : int8[2,2,1] = [6, 7, 8, "
              "9]\ninput init %i : int64[2] = [1, 2]\n"
              "%y = TensorScatter(%x, %u, %i)",
              "write index 2");
}

/* ---- making ---- */

static void constants(void **state)
{
    (void)state;
    ref_makes(13, "%y = Constant() {value=tensor int16[2] = [1, -2]}", "int16[2] = [1, -2]");
    ref_makes(13, "%y = Constant() {value_float=1.5}", "float32[] = [1.5]");
    ref_makes(13, "%y = Constant() {value_floats=[1.5, 2.0]}", "float32[2] = [1.5, 2]");
    ref_makes(13, "%y = Constant() {value_int=-7}", "int64[] = [-7]");
    ref_makes(13, "%y = Constant() {value_ints=[3, 4]}", "int64[2] = [3, 4]");
    ref_fails(13, "%y = Constant() {value_string=\"a\"}", "value_string");
    ref_fails(13, "%y = Constant()", "no value");
    ref_makes(9, "input init %s : int64[2] = [2, 1]\n%y = ConstantOfShape(%s)",
              "float32[2,1] = [0, 0]");
    ref_makes(
        9, "input init %s : int64[0] = []\n%y = ConstantOfShape(%s) {value=tensor bool[1] = [1]}",
        "bool[] = [1]");
    ref_makes(9,
              "input init %s : int64[1] = [2]\n%y = ConstantOfShape(%s) {value=tensor bfloat16[1] "
              "= [1.5]}",
              "bfloat16[2] = [1.5, 1.5]");
    ref_fails(9, "input init %s : int64[1] = [-2]\n%y = ConstantOfShape(%s)", "negative");
    ref_fails(9, "input init %s : int64[2] = [4611686018427387904, 3]\n%y = ConstantOfShape(%s)",
              "larger than any memory");
    ref_fails(
        9,
        "input init %s : int64[1] = [1]\n%y = ConstantOfShape(%s) {value=tensor bool[2] = [1, 1]}",
        "one");
}

static void ranged(const char *type, const char *start, const char *limit, const char *delta,
                   const char *want)
{
    char text[400];
    snprintf(text, sizeof text,
             "input init %%a : %s[] = [%s]\ninput init %%b : %s[] = [%s]\ninput init %%c : %s[] = "
             "[%s]\n%%y = Range(%%a, %%b, %%c)",
             type, start, type, limit, type, delta);
    ref_makes(11, text, want);
}

static void range(void **state)
{
    (void)state;
    ranged("int64", "3", "9", "3", "int64[2] = [3, 6]");
    ranged("int32", "9", "3", "-4", "int32[2] = [9, 5]");
    ranged("int16", "3", "3", "1", "int16[0] = []");
    ranged("int64", "3", "9", "-1", "int64[0] = []");
    ranged("float32", "0.5", "2", "0.5", "float32[3] = [0.5, 1, 1.5]");
    ranged("float64", "1", "-1", "-0.75", "float64[3] = [1, 0.25, -0.5]");
    ranged("int64", "-9223372036854775808", "9223372036854775807", "9223372036854775807",
           "int64[3] = [-9223372036854775808, -1, 9223372036854775806]");
    const char *fmt = "input init %%a : %s[] = [%s]\ninput init %%b : %s[] = [%s]\ninput init %%c "
                      ": %s[] = [%s]\n%%y = Range(%%a, %%b, %%c)";
    char text[400];
    snprintf(text, sizeof text, fmt, "int64", "0", "int64", "5", "int64", "0");
    ref_fails(11, text, "step is 0");
    snprintf(text, sizeof text, fmt, "float32", "0", "float32", "inf", "float32", "1");
    ref_fails(11, text, "no end");
    snprintf(text, sizeof text, fmt, "int64", "-9223372036854775808", "int64",
             "9223372036854775807", "int64", "1");
    ref_fails(11, text, "larger than any memory");
}

static void matrices_and_windows(void **state)
{
    (void)state;
    ref_makes(9, X6 "%y = EyeLike(%x) {k=1, dtype=6}", "int32[2,3] = [0, 1, 0, 0, 0, 1]");
    ref_makes(9, X6 "%y = EyeLike(%x) {k=-1}", "float32[2,3] = [0, 0, 0, 1, 0, 0]");
    ref_fails(9, X6 "%y = EyeLike(%x) {dtype=8}", "type 8");
    ref_makes(14, X6 "%y = Trilu(%x)", "float32[2,3] = [0, 1, 2, 0, 4, 5]");
    ref_makes(14, X6 "input init %k : int64[] = [-1]\n%y = Trilu(%x, %k) {upper=0}",
              "float32[2,3] = [0, 0, 0, 3, 0, 0]");
    ref_makes(14, X6 "input init %k : int64[] = [9223372036854775807]\n%y = Trilu(%x, %k)",
              "float32[2,3] = [0, 0, 0, 0, 0, 0]");
    const char *hot = "init %i : int64[2] = [-1, 1]\ninput init %d : int64[] = [3]\ninit %v : "
                      "int8[2] = [4, 5]\n%y = OneHot(%i, %d, %v)";
    ref_makes(11, hot, "int8[2,3] = [4, 4, 5, 4, 5, 4]");
    ref_makes(9, hot, "int8[2,3] = [4, 4, 4, 4, 5, 4]");
    ref_makes(11,
              "init %i : float32[2] = [0, 7]\ninput init %d : float32[1] = [2]\ninit %v : int8[2] "
              "= [4, 5]\n%y = OneHot(%i, %d, %v) {axis=0}",
              "int8[2,2] = [5, 4, 4, 4]");
    ref_fails(11,
              "init %i : int64[1] = [0]\ninput init %d : int64[] = [-3]\ninit %v : int8[2] = [4, "
              "5]\n%y = OneHot(%i, %d, %v)",
              "depth");
    ref_makes(
        17,
        "input init %n : int64[] = [4]\n%z = HannWindow(%n)\n%o = Shape(%z)\n%y = CastLike(%z, %o)",
        "int64[4] = [0, 0, 1, 0]");
    ref_makes(17,
              "input init %n : int64[] = [3]\n%y = HannWindow(%n) {periodic=0, output_datatype=11}",
              "float64[3] = [0, 1, 0]");
    ref_makes(17, "input init %n : int64[] = [1]\n%y = BlackmanWindow(%n) {periodic=0}",
              "float32[1] = [1]");
    ref_fails(17, "input init %n : int64[] = [-1]\n%y = HammingWindow(%n)", "negative");
}

/* ---- selecting ---- */

static void select_elements(void **state)
{
    (void)state;
    ref_makes(13, "input init %x : float32[2,3] = [0, 1, 2, 0, 4, nan]\n%y = NonZero(%x)",
              "int64[2,4] = [0, 0, 1, 1, 1, 2, 1, 2]");
    ref_makes(13, "input init %x : bool[] = [1]\n%y = NonZero(%x)", "int64[1,1] = [0]");
    ref_makes(13, "input init %x : int8[2,0] = []\n%y = NonZero(%x)", "int64[2,0] = []");
    const char *x = "input init %x : float32[6] = [2, 1, nan, 1, nan, 3]\n";
    char text[700];
    snprintf(text, sizeof text,
             "%s%%y, %%f, %%i, %%c = Unique(%%x)\ninit %%Y : float32[4] = [1, 2, 3, nan]\ninit %%F "
             ": int64[4] = [1, 0, 5, 2]\n"
             "init %%I : int64[6] = [1, 0, 3, 0, 3, 2]\ninit %%C : int64[4] = [2, 1, 1, 2]\n"
             "output %%y\noutput %%Y\noutput %%f\noutput %%F\noutput %%i\noutput %%I\noutput "
             "%%c\noutput %%C",
             x);
    ref_right(11, text);
    snprintf(
        text, sizeof text,
        "%s%%y, _, %%i = Unique(%%x) {sorted=0}\ninit %%Y : float32[4] = [2, 1, nan, 3]\n"
        "init %%I : int64[6] = [0, 1, 2, 1, 2, 3]\noutput %%y\noutput %%Y\noutput %%i\noutput %%I",
        x);
    ref_right(11, text);
    ref_makes(11, "input init %x : int8[2,3] = [1, 0, 1, 2, 5, 2]\n%y = Unique(%x) {axis=1}",
              "int8[2,2] = [0, 1, 5, 2]");
    ref_makes(11, "input init %x : uint64[2] = [0xffffffffffffffff, 1]\n%y = Unique(%x)",
              "uint64[2] = [1, 0xffffffffffffffff]");
    ref_makes(11, "input init %x : int8[3,0] = []\n%y = Unique(%x) {axis=0}", "int8[1,0] = []");
}

static void boxes_that_overlap(void **state)
{
    (void)state;
    const char *in = "input init %b : float32[1,3,4] = [0, 0, 2, 2, 0, 0, 2, 1.9, 5, 5, 6, "
                     "6]\ninput init %s : float32[1,1,3] = [0.5, 0.9, 0.7]\n"
                     "input init %n : int64[] = [3]\ninput init %i : float32[] = [0.5]\ninput init "
                     "%t : float32[] = [0.4]\n";
    char text[700];
    snprintf(text, sizeof text, "%s%%y = NonMaxSuppression(%%b, %%s, %%n, %%i, %%t)", in);
    ref_makes(11, text, "int64[2,3] = [0, 0, 1, 0, 0, 2]");
    snprintf(text, sizeof text, "%s%%y = NonMaxSuppression(%%b, %%s)", in);
    ref_makes(11, text, "int64[0,3] = []");
    snprintf(text, sizeof text, "%s%%y = NonMaxSuppression(%%b, %%s, %%n, %%n)", in);
    ref_fails(11, text, "int64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshape),
        cmocka_unit_test(other_views),
        cmocka_unit_test(shape_and_size),
        cmocka_unit_test(transpose),
        cmocka_unit_test(slice),
        cmocka_unit_test(test_crop),
        cmocka_unit_test(slices_refused),
        cmocka_unit_test(split),
        cmocka_unit_test(concat),
        cmocka_unit_test(expand),
        cmocka_unit_test(blocks_and_sequences),
        cmocka_unit_test(pad),
        cmocka_unit_test(tile_and_crop),
        cmocka_unit_test(gather),
        cmocka_unit_test(scatter),
        cmocka_unit_test(constants),
        cmocka_unit_test(range),
        cmocka_unit_test(matrices_and_windows),
        cmocka_unit_test(select_elements),
        cmocka_unit_test(boxes_that_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
