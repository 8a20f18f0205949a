/* Files of pairs: every way of writing one, and one line for every broken one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pack/pack.h"

static const char TABLE[] =
    "id,lower,upper,size\nb1,0,3,4\n\"b,2\",3,9,4\n3,3,9,4\n\xc3\xa9\xf0\x9f\x98\x80,1,2,3\n";

static ot_status read(const char *text, ot_diag *d, ot_pack_file **f)
{
    assert_int_equal(ot_pack_read_csv("t.csv", TABLE, sizeof TABLE - 1, d, f), OT_OK);
    return ot_pack_read_pairs(*f, "p", text, strlen(text), d);
}

/* What is read, as "0-1:3 0-2:1 ". */
static void gives(const char *text, const char *want)
{
    ot_diag d = {0};
    ot_pack_file *f = NULL;
    char got[200] = "";
    if (read(text, &d, &f) != OT_OK) fail_msg("%s", d.message);
    for (size_t k = 0; k < f->n_pairs; k++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%u-%u:%lld ", f->pairs[k].first,
                 f->pairs[k].second, (long long)f->pairs[k].weight);
    assert_string_equal(got, want);
    ot_pack_file_free(f);
}

static void fails(const char *text, const char *why)
{
    ot_diag d = {0};
    ot_pack_file *f = NULL;
    assert_int_equal(read(text, &d, &f), OT_E_INPUT);
    assert_string_equal(d.message, why);
    ot_pack_file_free(f);
}

static void csv(void **state)
{
    (void)state;
    gives("first,second,weight\nb1,\"b,2\",3\n\r\n3,b1,\n", "0-1:3 2-0:1 ");
    gives("\xef\xbb\xbfSecond, note, a\nb1,x,3\n", "2-0:1 ");
    gives("a,b,cost\n", "");
    gives("a,b,cost\nb1,3,0\nb1,3,549755813888\n", "0-2:0 0-2:549755813888 ");
    fails("", "p:1: the file is empty; a header like first,second,weight comes first");
    fails("first,weight\n",
          "p:1: the header has no column 'second'; it must name first and second");
    fails("a,b,first\n", "p:1: two columns mean 'first'");
    fails("a,b\nb1,b9\n", "p:2: no buffer of the table is called 'b9'");
    fails("a,b\nb1,b1\n", "p:2: a pair of one buffer: 'b1'");
    fails("a,b,weight\nb1,3,-1\n", "p:2: weight '-1' is not a whole number of at least 0");
    fails("a,b,weight\nb1,3,1.5\n", "p:2: weight '1.5' is not a whole number of at least 0");
    fails("a,b,weight\nb1,3,99999999999999999999\n",
          "p:2: weight '99999999999999999999' is not a whole number of at least 0");
    fails("a,b,weight\nb1,3,549755813888\n3,b1,1\n",
          "p:3: weights up to here add up to more than 2^39");
    fails("a,b\nb1\n", "p:2: 1 cells where the header has 2");
    fails("a,b\nb1,3,4\n", "p:2: more cells than the 2 columns of the header");
}

static void json(void **state)
{
    (void)state;
    gives("[]", "");
    gives(" [{\"first\": \"b1\", \"second\": \"b,2\", \"weight\": 3}, {\"second\": 3, \"first\": "
          "\"b1\"}]\n",
          "0-1:3 0-2:1 ");
    gives("{\"note\": [1, {\"a\": [true, null, -1.5e3]}], \"pairs\": [{\"first\": "
          "\"\\u00e9\\ud83d\\ude00\", "
          "\"second\": \"b\\u002c2\", \"cost\": 0, \"why\": {}}]}",
          "3-1:0 ");
    fails("[{\"first\": \"b1\"}]", "p:1:2: the pair has no 'second'");
    fails("[{\"first\": \"b1\", \"second\": \"x\"}]",
          "p:1:2: no buffer of the table is called 'x'");
    fails("[\n{\"first\": \"b1\", \"second\": \"3\", \"weight\": -2}]",
          "p:2:42: expected a weight, a whole number of at least 0, found '-2'");
    fails("{\"buffers\": []}", "p:1:15: the object has no list 'pairs'");
    fails("{\"pairs\": [], \"pairs\": []}", "p:1:24: two members are called 'pairs'");
    fails("[{\"first\": \"b1\", \"second\": \"3\"}",
          "p:1:32: expected ',' or ']', found the end of the text");
    fails("[] x", "p:1:4: expected the end of the text, found 'x'");
    fails("[{\"first\": \"b\\q\", \"second\": \"3\"}]",
          "p:1:12: an escape in a string that means nothing");
    fails("[{\"first\": \"b\\ud800\", \"second\": \"3\"}]",
          "p:1:12: an escape in a string that means nothing");
    fails("[{\"first\": \"b", "p:1:12: a string does not end on its line");
    fails("[{\"x\": ]}]", "p:1:8: expected a value, found ']'");
}

/* Lists in lists, deeper than any file has a use for, end in a line and not in the stack. */
static void deep(void **state)
{
    (void)state;
    char text[400] = "{\"x\": ";
    for (int k = 0; k < 100; k++) strcat(text, "[");
    fails(text, "p:1:72: more than 64 lists and objects in each other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv),
        cmocka_unit_test(json),
        cmocka_unit_test(deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
