/* Arrays: 16-bit floats, shapes, copies, sequences; files in NumPy's format, and what is wrong
 * with some. */
#include "engine_check.h"
#include "engine/core/array_file.h"
#include "onnx/export/out_file.h"

#include <math.h>
#include <unistd.h>

#include "wire.h"

static char folder[64];

static const char *at(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(n ? fwrite(bytes, 1, n, f) : 0, n);
    assert_int_equal(fclose(f), 0);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/onnx-tile-npy-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    (void)unlink(at("a.npy"));
    (void)unlink(at("a.pb"));
    return rmdir(folder);
}

/* ---- arrays ---- */

static void shapes(void **state)
{
    (void)state;
    ot_nd a = {0};
    int64_t n;
    ot_nd_set_dense(&a, OT_F32, 3, (int64_t[]){2, 1, 5});
    assert_true(ot_nd_is_dense(&a));
    assert_int_equal(a.strides[0], 5);
    a.strides[1] = 77; /* one row: where the next would be does not matter */
    assert_true(ot_nd_is_dense(&a));
    a.strides[0] = 6;
    assert_false(ot_nd_is_dense(&a));
    a.dims[2] = 0;
    assert_true(ot_nd_is_dense(&a));
    ot_nd_set_dense(&a, OT_F32, 2, (int64_t[]){INT64_MAX / 2, 3});
    assert_false(ot_nd_elems(&a, &n));
    assert_false(ot_nd_bytes(OT_F64, 1, (int64_t[]){INT64_MAX / 4}, &n));
    assert_false(ot_nd_bytes(OT_STRING, 1, (int64_t[]){1}, &n));
    assert_true(ot_nd_bytes(OT_I16, 2, (int64_t[]){0, 7}, &n) && n == 0);
    char buf[32];
    assert_string_equal(ot_dims_text(0, NULL, buf, sizeof buf), "[]");
    assert_string_equal(ot_dims_text(2, (int64_t[]){3, -1}, buf, sizeof buf), "[3,?]");
}

static void elements(void **state)
{
    (void)state;
    uint64_t big = UINT64_MAX;
    int8_t small = -5;
    uint8_t yes = 2;
    uint16_t half = 0xc000;
    ot_nd a = over(OT_U64, &big, 0, NULL);
    assert_true(ot_nd_double(&a, 0) == 18446744073709551616.0);
    a = over(OT_I8, &small, 0, NULL);
    assert_int_equal(ot_nd_int(&a, 0), -5);
    a = over(OT_BOOL, &yes, 0, NULL);
    assert_int_equal(ot_nd_int(&a, 0), 1);
    a = over(OT_F16, &half, 0, NULL);
    assert_true(ot_nd_double(&a, 0) == -2);
    a = over(OT_BF16, &half, 0, NULL);
    assert_true(ot_nd_double(&a, 0) == -2);
}

static void sequences_share(void **state)
{
    (void)state;
    ot_diag d = {0};
    ot_nd seq, item, copy, other;
    assert_int_equal(ot_nd_list_new(&seq, OT_F32, &d), OT_OK);
    assert_int_equal(ot_nd_new(&item, OT_F32, 1, (int64_t[]){2}, &d), OT_OK);
    ((float *)item.data)[0] = 1;
    ((float *)item.data)[1] = 2;
    for (int k = 0; k < 9; k++) assert_int_equal(ot_nd_list_push(&seq, &item, &d), OT_OK);
    assert_int_equal(item.block->refs, 10);
    ot_nd_share(&other, &seq);
    assert_int_equal(ot_nd_copy(&copy, &seq, NULL, &d), OT_OK);
    assert_int_equal(copy.list->n, 9);
    assert_ptr_not_equal(copy.list->items[8].data, item.data);
    CHECK_FLOATS(&copy.list->items[8], 1, 2);
    assert_int_equal(ot_nd_list_push(&copy, &seq, &d), OT_E_INPUT);
    ot_nd_release(&seq);
    assert_int_equal(item.block->refs, 10);
    ot_nd_release(&other);
    assert_int_equal(item.block->refs, 1);
    ot_nd_release(&copy);
    ot_nd_release(&item);
}

/* ---- files ---- */

/* Any byte but 0 is true, in a raw file as in .npy. */
static void raw_booleans_are_made_so(void **state)
{
    (void)state;
    static const uint8_t bytes[4] = {0, 1, 2, 0x5b};
    ot_diag d = {0};
    ot_array_in in;
    ot_nd form;
    ot_nd_set_dense(&form, OT_BOOL, 1, (int64_t[]){4});
    FILE *f = fopen(at("b.raw"), "we");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, f), sizeof bytes);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(ot_array_in_open(&in, at("b.raw"), &form, false, &d), OT_OK);
    assert_memory_equal(in.array.data, "\0\1\1\1", 4);
    ot_array_in_close(&in);
    assert_int_equal(unlink(at("b.raw")), 0);
}

static ot_status write_npy(const char *path, const ot_nd *a, ot_diag *d)
{
    ot_arena *arena = ot_arena_new();
    ot_out o;
    if (!arena) return ot_fail_nomem(d);
    ot_status s = ot_out_open(&o, path, arena, d);
    if (s == OT_OK) {
        s = ot_npy_put(&o.sink, a, path, d);
        if (s == OT_OK) s = ot_out_seal(&o);
        if (s == OT_OK) s = ot_out_publish(&o);
        ot_out_close(&o);
    }
    ot_arena_free(arena);
    return s;
}

static void files_are_read_back(void **state)
{
    (void)state;
    static const ot_dtype types[] = {OT_F32, OT_F64, OT_F16, OT_BF16, OT_I8,  OT_U8,  OT_I16,
                                     OT_U16, OT_I32, OT_U32, OT_I64,  OT_U64, OT_BOOL};
    static const int64_t dims[4][3] = {{2, 3, 4}, {5, 0, 0}, {7, 1, 0}, {0, 0, 0}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (uint32_t rank = 0; rank < 4; rank++) {
            ot_diag d = {0};
            ot_nd a, b;
            int64_t n, size = (int64_t)ot_dtype_bytes(types[t]);
            assert_int_equal(ot_nd_new(&a, types[t], rank, dims[3 - rank], &d), OT_OK);
            assert_true(ot_nd_elems(&a, &n));
            for (int64_t k = 0; k < n * size; k++)
                ((uint8_t *)a.data)[k] = (uint8_t)(types[t] == OT_BOOL ? k & 1 : k * 37 + 1);
            assert_int_equal(write_npy(at("a.npy"), &a, &d), OT_OK);
            assert_int_equal(ot_npy_read(at("a.npy"), &d, &b), OT_OK);
            assert_true(ot_nd_same_shape(&b, types[t], rank, a.dims));
            assert_memory_equal(a.data, b.data, (size_t)(n * size));
            ot_nd_release(&a);
            ot_nd_release(&b);
        }
}

/* No elements, and an extent of as many digits as there are. */
static void extents_of_nothing_are_read_back(void **state)
{
    (void)state;
    ot_diag d = {0};
    ot_nd a, b;
    assert_int_equal(ot_nd_new(&a, OT_F64, 2, (int64_t[]){0, INT64_MAX}, &d), OT_OK);
    assert_int_equal(write_npy(at("a.npy"), &a, &d), OT_OK);
    assert_int_equal(ot_npy_read(at("a.npy"), &d, &b), OT_OK);
    assert_true(ot_nd_same_shape(&b, OT_F64, 2, a.dims));
    ot_nd_release(&a);
    ot_nd_release(&b);
}

/* A file with this header and data; the length is filled in. */
static void put_npy(int version, const char *header, const void *data, size_t bytes)
{
    uint8_t file[4096] = "\x93NUMPY";
    size_t n = strlen(header), at_header = version > 1 ? 12 : 10;
    file[6] = (uint8_t)version;
    file[8] = (uint8_t)n;
    file[9] = (uint8_t)(n >> 8);
    memcpy(file + at_header, header, n);
    memcpy(file + at_header + n, data, bytes);
    put_file("a.npy", file, at_header + n + bytes);
}

static void headers_of_all_kinds(void **state)
{
    (void)state;
    static const float data[] = {0, 1, 2, 3, 4, 5};
    static const char *const good[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n",
        "{\"shape\": (2,3,), \"descr\":\"f4\", \"fortran_order\":False}",
        " { 'fortran_order' : False , 'shape' : ( 2L , 3L ) , 'descr' : '=f4' } "};
    for (size_t k = 0; k < sizeof good / sizeof *good; k++)
        for (int version = 1; version <= 3; version++) {
            ot_diag d = {0};
            ot_nd a;
            put_npy(version, good[k], data, sizeof data);
            if (ot_npy_read(at("a.npy"), &d, &a) != OT_OK) fail_msg("%s: %s", good[k], d.message);
            assert_int_equal(a.rank, 2);
            CHECK_FLOATS(&a, 0, 1, 2, 3, 4, 5);
            ot_nd_release(&a);
        }
    ot_diag d = {0};
    ot_nd a;
    put_npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", data, sizeof data);
    assert_int_equal(ot_npy_read(at("a.npy"), &d, &a), OT_OK);
    CHECK_FLOATS(&a, 0, 2, 4, 1, 3, 5);
    ot_nd_release(&a);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)",
        "[1]",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,3)}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,-3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (2,3)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,3)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,3)}",
        "{'descr': '', 'fortran_order': False, 'shape': (2,3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,3), 'x': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,4)}", /* more than there is */
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775808)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
    };
    float data[6] = {0};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        ot_diag d = {0};
        ot_nd a;
        put_npy(1, bad[k], data, sizeof data);
        if (ot_npy_read(at("a.npy"), &d, &a) != OT_E_INPUT) fail_msg("'%s' is read", bad[k]);
        assert_null(a.data);
    }
    static const struct {
        const char *bytes;
        size_t n;
    } cut[] = {{"", 0},
               {"\x93NUMPY", 6},
               {"\x93NUMPY\1\0\5", 9},
               {"\x93NUMPY\1\0\5\0ab", 12},
               {"\x93NUMPY\2\0\5\0\0", 11},
               {"\x93NUMPY\4\0\2\0{}", 12},
               {"\x93NUMPY\2\0\377\377\377\377{}", 14},
               {"NUMPY\1\0\2\0{}{}", 13}};
    for (size_t k = 0; k < sizeof cut / sizeof *cut; k++) {
        ot_diag d = {0};
        ot_nd a;
        put_file("a.npy", cut[k].bytes, cut[k].n);
        if (ot_npy_read(at("a.npy"), &d, &a) != OT_E_INPUT) fail_msg("cut file %zu is read", k);
    }
    ot_diag d = {0};
    ot_nd a;
    assert_int_equal(ot_npy_read(at("none.npy"), &d, &a), OT_E_INPUT);
}

static void tensor_files(void **state)
{
    (void)state;
    float data[] = {1, 2, 3};
    ot_diag d = {0};
    ot_nd a;
    wire t = x_tensor("t", OT_F32, DIMS(3, 1), data, sizeof data);
    put_file("a.pb", t.data, t.n);
    assert_int_equal(ot_npy_read(at("a.pb"), &d, &a), OT_OK);
    assert_int_equal(a.rank, 2);
    CHECK_FLOATS(&a, 1, 2, 3);
    ot_nd_release(&a);
    put_file("a.pb", t.data, t.n - 1);
    assert_int_equal(ot_npy_read(at("a.pb"), &d, &a), OT_E_INPUT);
    const wire bad[] = {
        x_tensor("t", OT_F32, DIMS(4), data, sizeof data), x_tensor("t", OT_STRING, DIMS(0), "", 0),
        x_external("t", OT_F32, DIMS(3), PAIRS("location", "x")), W_NONE, w_str(1, "")};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        d = (ot_diag){0};
        put_file("a.pb", bad[k].data, bad[k].n);
        if (ot_npy_read(at("a.pb"), &d, &a) != OT_E_INPUT) fail_msg("bad tensor %zu is read", k);
    }
    wire_reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(elements),
        cmocka_unit_test(sequences_share),
        cmocka_unit_test_setup_teardown(files_are_read_back, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(extents_of_nothing_are_read_back, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(raw_booleans_are_made_so, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(headers_of_all_kinds, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(bad_files_are_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(tensor_files, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
