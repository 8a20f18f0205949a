/* Fast kernels of scattering, selection, pools and other operators against the reference kernels:
 * nodes with random attributes on random arrays, by one thread and by three. */
#include "engine_node_case.h"

#include "engine/cpu/move/fast_move.h"

#define ROUNDS 60

static const ot_dtype integers[] = {OT_I8, OT_U8, OT_I16, OT_U16, OT_I32, OT_U32, OT_I64, OT_U64};

static ot_dtype float_or_int(void)
{
    static const ot_dtype types[] = {OT_F32, OT_F32, OT_I32, OT_I64, OT_F16, OT_U8};
    return types[below(6)];
}

static void put_attrs(node_case *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(t->attrs, sizeof t->attrs, fmt, args);
    va_end(args);
}

/* ---- scattering ---- */

static const char *a_reduction(void)
{
    static const char *const names[] = {"none", "none", "add", "mul", "min", "max"};
    return names[below(6)];
}

static void scatters(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int64_t dims[4], part[4];
        node_case t = new_case(OT_OP_ScatterElements, 18);
        uint32_t rank = any_dims(1, 4, dims), axis = (uint32_t)below(rank);
        ot_dtype type = float_or_int();
        const char *how = type == OT_F16 ? "none" : a_reduction();
        t.tolerance = type == OT_F32 && strcmp(how, "none") != 0 ? 1e-4 : 0;
        if (strcmp(how, "mul") == 0 && type == OT_F32) how = "add"; /* products without bound */
        add_input(&t, type, rank, dims);
        for (uint32_t k = 0; k < rank; k++)
            part[k] = k == axis ? between(0, 30) : between(ot_min(1, dims[k]), dims[k]);
        add_index(&t, rank, part, dims[axis]);
        if (!below(30)) part[0]++;
        add_input(&t, type, rank, part);
        put_attrs(&t, "axis=%d, reduction=\"%s\"", (int)axis - (below(2) ? (int)rank : 0), how);
        check_both(&t);
    }
}

static void scatters_nd(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int64_t dims[4], at[6], updates[8], least = INT64_MAX;
        node_case t = new_case(OT_OP_ScatterND, 18);
        uint32_t rank = any_dims(1, 4, dims), n = (uint32_t)below(3), u = 0;
        ot_dtype type = float_or_int();
        const char *how = type == OT_F16 ? "none" : a_reduction();
        t.tolerance = type == OT_F32 && strcmp(how, "none") != 0 ? 1e-4 : 0;
        if (strcmp(how, "mul") == 0 && type == OT_F32) how = "max";
        for (uint32_t k = 0; k < n; k++) updates[u++] = at[k] = between(1, 9);
        at[n] = between(1, rank);
        for (uint32_t k = 0; k < rank; k++) {
            if (k < at[n])
                least = ot_min(least, dims[k]);
            else
                updates[u++] = dims[k];
        }
        add_input(&t, type, rank, dims);
        add_index(&t, n + 1, at, least);
        if (u > 0 && !below(30)) updates[u - 1]++;
        add_input(&t, type, u, updates);
        put_attrs(&t, "reduction=\"%s\"", how);
        check_both(&t);
    }
}

/* ---- making ---- */

static void triangles(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[4];
        node_case t = new_case(OT_OP_Trilu, 14);
        add_input(&t, any_type(), any_dims(1, 4, dims), dims);
        if (below(2)) {
            ot_nd *k = add_input(&t, OT_I64, 0, NULL);
            *(int64_t *)k->data = below(8) ? between(-45, 45) : below(2) ? INT64_MAX : INT64_MIN;
        }
        put_attrs(&t, "upper=%d", (int)below(2));
        check_both(&t);
    }
}

static void eyes(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[2];
        node_case t = new_case(OT_OP_EyeLike, 9);
        add_input(&t, any_type(), any_dims(2, 2, dims), dims);
        put_attrs(&t, "k=%d, dtype=%d", (int)between(-45, 45),
                  (int)(below(2) ? OT_F32 : any_type()));
        check_both(&t);
    }
}

static void one_hots(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[3], two = 2;
        node_case t = new_case(OT_OP_OneHot, below(2) ? 11 : 9);
        uint32_t rank = any_dims(0, 3, dims);
        int64_t depth = between(1, 40);
        add_index(&t, rank, dims, depth + below(2));
        *(int64_t *)add_input(&t, OT_I64, 0, NULL)->data = depth;
        add_input(&t, any_type(), 1, &two);
        put_attrs(&t, "axis=%d", (int)between(-(int64_t)rank - 1, rank));
        check_both(&t);
    }
}

static void ranges(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        node_case t = new_case(OT_OP_Range, 11);
        bool whole = below(2);
        for (int k = 0; k < 3; k++) {
            ot_nd *a = add_input(&t, whole ? OT_I64 : OT_F32, 0, NULL);
            int64_t v = k == 2 ? between(-9, 9) : between(-3000, 3000);
            if (whole)
                *(int64_t *)a->data = below(40) ? v : INT64_MAX;
            else
                *(float *)a->data = below(40) ? (float)v / 4 : INFINITY;
        }
        check_both(&t);
    }
}

/* ---- selecting ---- */

static void places(void **state)
{
    static const ot_dtype types[] = {OT_F32, OT_BOOL, OT_U8, OT_I32, OT_I64, OT_F16};
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[4], n;
        node_case t = new_case(OT_OP_NonZero, 13);
        ot_nd *a = add_input(&t, types[below(6)], any_dims(0, 4, dims), dims);
        assert_true(ot_nd_elems(a, &n));
        size_t size = ot_dtype_bytes(a->dtype);
        for (int64_t k = 0; k < n; k++)
            if (below(2)) memset((char *)a->data + (size_t)k * size, 0, size);
        check_both(&t);
    }
}

static void uniques(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[3], n;
        node_case t = new_case(OT_OP_Unique, 11);
        ot_nd *a = add_input(&t, below(2) ? OT_F32 : integers[below(8)], any_dims(1, 3, dims),
                             dims);
        t.n_out = 4;
        assert_true(ot_nd_elems(a, &n));
        for (int64_t k = 0; k < n && a->dtype == OT_F32; k++)
            ((float *)a->data)[k] = below(9) ? (float)between(-20, 20) / 4 : below(2) ? -0.0f : NAN;
        put_attrs(&t, "sorted=%d", (int)below(2));
        check_both(&t);
    }
}

static void suppressions(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t batches = between(1, 2), classes = between(1, 3), n = between(0, 90);
        node_case t = new_case(OT_OP_NonMaxSuppression, 11);
        ot_nd *boxes = add_input(&t, OT_F32, 3, (int64_t[]){batches, n, 4});
        for (int64_t k = 0; k < 4 * batches * n; k++)
            ((float *)boxes->data)[k] = (float)between(0, 40) / 40;
        ot_nd *scores = add_input(&t, OT_F32, 3, (int64_t[]){batches, classes, n});
        for (int64_t k = 0; k < batches * classes * n; k++)
            ((float *)scores->data)[k] = (float)below(30) / 30; /* some alike */
        *(int64_t *)add_input(&t, OT_I64, 0, NULL)->data = below(9) ? between(0, 12) : INT64_MAX;
        *(float *)add_input(&t, OT_F32, 0, NULL)->data = (float)below(below(20) ? 10 : 13) / 10;
        if (below(2)) *(float *)add_input(&t, OT_F32, 0, NULL)->data = (float)below(10) / 10;
        put_attrs(&t, "center_point_box=%d", (int)below(2));
        check_both(&t);
    }
}

/* ---- numbers ---- */

static void narrow_and_wide(void **state)
{
    static const ot_op ops[] = {OT_OP_Add,  OT_OP_Sub,         OT_OP_Mul,     OT_OP_Equal,
                                OT_OP_Less, OT_OP_LessOrEqual, OT_OP_Greater, OT_OP_GreaterOrEqual};
    (void)state;
    for (int i = 0; i < 3 * ROUNDS; i++) {
        int64_t dims[3], n;
        node_case t = new_case(ops[below(8)], 16);
        ot_dtype type = below(4) ? integers[below(8)] : OT_F64;
        uint32_t rank = any_dims(0, 3, dims);
        for (int k = 0; k < 2; k++) {
            ot_nd *a = add_input(&t, type, rank, dims);
            assert_true(ot_nd_elems(a, &n));
            for (int64_t j = 0; j < n && type == OT_F64; j++)
                ((double *)a->data)[j] = (double)between(-50, 50) / 8;
            if (rank > 0 && below(2)) dims[below(rank)] = 1;
        }
        check_both(&t);
    }
}

static void clips(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[3];
        node_case t = new_case(OT_OP_Clip, 13);
        ot_dtype type = integers[below(8)];
        add_input(&t, type, any_dims(0, 3, dims), dims);
        if (below(4))
            add_input(&t, type, 0, NULL);
        else
            omit_input(&t);
        if (below(4)) add_input(&t, type, 0, NULL);
        check_both(&t);
    }
}

static void integer_reductions(void **state)
{
    static const ot_op ops[] = {OT_OP_ReduceSum, OT_OP_ReduceMax, OT_OP_ReduceMin};
    (void)state;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int64_t dims[4];
        node_case t = new_case(ops[below(3)], 18);
        uint32_t rank = any_dims(1, 4, dims);
        add_input(&t, below(2) ? OT_I32 : OT_I64, rank, dims);
        if (below(4)) add_list(&t, 1, (int64_t[]){below(rank)});
        check_both(&t);
    }
}

static void running_sums(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int64_t dims[4];
        node_case t = new_case(OT_OP_CumSum, 14);
        uint32_t rank = any_dims(1, 4, dims);
        t.tolerance = 1e-6;
        add_input(&t, OT_F32, rank, dims);
        *(int64_t *)add_input(&t, OT_I64, 0, NULL)->data = between(-(int64_t)rank, rank - 1);
        put_attrs(&t, "exclusive=%d, reverse=%d", (int)below(2), (int)below(2));
        check_both(&t);
    }
}

static void rotations(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        bool flat = below(2), ids = below(2);
        int64_t batch = between(1, 3), heads = between(1, 4), n = between(1, 20),
                half = between(1, 20), size = 2 * half + (below(2) ? 0 : 2 * below(4)), rows = 30;
        node_case t = new_case(OT_OP_OPAQUE, 23);
        t.name = "RotaryEmbedding";
        t.tolerance = 1e-4; /* of products up to 10^4 */
        add_input(&t, OT_F32, flat ? 3 : 4,
                  flat ? (int64_t[]){batch, n, heads * size} : (int64_t[]){batch, heads, n, size});
        for (int k = 0; k < 2; k++)
            add_input(&t, OT_F32, ids ? 2 : 3,
                      ids ? (int64_t[]){rows, half} : (int64_t[]){batch, n, half});
        if (ids) {
            ot_nd *at = add_input(&t, OT_I64, 2, (int64_t[]){batch, n});
            for (int64_t k = 0; k < batch * n; k++)
                ((int64_t *)at->data)[k] = below(400) ? below(rows) : rows;
        }
        put_attrs(&t, "interleaved=%d, num_heads=%d, rotary_embedding_dim=%d", (int)below(2),
                  flat ? (int)heads : 0, (int)(2 * half));
        check_both(&t);
    }
}

/* ---- windows ---- */

/* n random numbers of [lo, hi] as an attribute, behind what is there. */
static void add_ints(node_case *t, const char *name, uint32_t n, int64_t lo, int64_t hi)
{
    int64_t v[6];
    char list[100];
    size_t have = strlen(t->attrs);
    for (uint32_t k = 0; k < n; k++) v[k] = between(lo, hi);
    (void)snprintf(t->attrs + have, sizeof t->attrs - have, "%s%s=%s", have ? ", " : "", name,
                   ot_dims_text(n, v, list, sizeof list));
}

static void max_pools(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * ROUNDS; i++) {
        node_case t = new_case(OT_OP_MaxPool, 12);
        uint32_t axes = (uint32_t)between(1, 3);
        int64_t dims[5] = {between(1, 2), between(1, 5), between(1, 25), between(1, 25),
                           between(1, 9)};
        ot_dtype type = below(2) ? OT_F32 : below(2) ? OT_U8 : OT_I8;
        t.n_out = (uint32_t)between(1, 2);
        add_input(&t, type, 2 + axes, dims);
        add_ints(&t, "kernel_shape", axes, 1, 4);
        add_ints(&t, "dilations", axes, 1, 3);
        add_ints(&t, "strides", axes, 1, 3);
        if (below(3)) add_ints(&t, "pads", 2 * axes, 0, 3);
        strcat(t.attrs, below(2) ? ", ceil_mode=1" : ", ceil_mode=0");
        if (t.n_out == 2 && below(2)) strcat(t.attrs, ", storage_order=1");
        check_both(&t);
    }
}

static void columns_to_images(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        node_case t = new_case(OT_OP_OPAQUE, 18);
        uint32_t axes = (uint32_t)between(1, 3);
        int64_t image[3], block[3], pads[6], strides[3], dilations[3], taps = 1, places = 1;
        char list[3][100];
        for (uint32_t k = 0; k < axes; k++) {
            block[k] = between(1, 3);
            dilations[k] = between(1, 2);
            strides[k] = between(1, 3);
            pads[k] = between(0, 2);
            pads[axes + k] = between(0, 2);
            image[k] = between(5, 14);
            int64_t room = image[k] + pads[k] + pads[axes + k] - (block[k] - 1) * dilations[k] - 1;
            taps *= block[k];
            places *= room / strides[k] + 1;
        }
        t.name = "Col2Im";
        t.tolerance = 1e-6;
        add_input(&t, OT_F32, 3, (int64_t[]){between(1, 2), taps * between(1, 4), places});
        add_list(&t, axes, image);
        add_list(&t, axes, block);
        put_attrs(&t, "pads=%s, strides=%s, dilations=%s",
                  ot_dims_text(2 * axes, pads, list[0], sizeof list[0]),
                  ot_dims_text(axes, strides, list[1], sizeof list[1]),
                  ot_dims_text(axes, dilations, list[2], sizeof list[2]));
        check_both(&t);
    }
}

static void transposed_convolutions(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        node_case t = new_case(OT_OP_ConvTranspose, 11);
        uint32_t axes = (uint32_t)between(1, 3);
        int64_t group = between(1, 2), channels = group * between(6, 12), maps = between(1, 5),
                x[5] = {between(1, 2), channels, between(1, 6), between(1, 6), between(1, 6)},
                w[5] = {channels, maps, between(1, 3), between(1, 3), between(1, 3)}, n;
        t.tolerance = 1e-5;
        add_input(&t, OT_F32, 2 + axes, x);
        ot_nd *wt = add_input(&t, OT_F32, 2 + axes, w);
        assert_true(ot_nd_elems(wt, &n));
        for (int64_t k = 0; k < n; k++) ((float *)wt->data)[k] /= 100;
        if (below(2)) add_input(&t, OT_F32, 1, (int64_t[]){maps * group});
        add_ints(&t, "strides", axes, 1, 3);
        add_ints(&t, "dilations", axes, 1, 3);
        if (below(2)) add_ints(&t, "pads", 2 * axes, 0, 1);
        strcat(t.attrs, group == 2 ? ", group=2" : ", group=1");
        check_both(&t);
    }
}

static void unpools(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        node_case t = new_case(OT_OP_MaxUnpool, 11);
        int64_t dims[4] = {between(1, 2), between(1, 4), between(1, 9), between(1, 9)},
                n = dims[0] * dims[1] * dims[2] * dims[3];
        add_input(&t, OT_F32, 4, dims);
        ot_nd *at = add_input(&t, OT_I64, 4, dims);
        for (int64_t k = 0; k < n; k++) /* seldom out of range */
            ((int64_t *)at->data)[k] = below(1000) ? below(4 * n) : 4 * n;
        put_attrs(&t, "kernel_shape=[2,2], strides=[2,2]");
        check_both(&t);
    }
}

static void roi_pools(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        node_case t = new_case(OT_OP_OPAQUE, 1);
        int64_t n = between(0, 6), images = between(1, 2);
        t.name = "MaxRoiPool";
        add_input(&t, OT_F32, 4,
                  (int64_t[]){images, between(1, 4), between(1, 30), between(1, 30)});
        float *v = add_input(&t, OT_F32, 2, (int64_t[]){n, 5})->data;
        for (int64_t k = 0; k < 5 * n; k++)
            v[k] = k % 5 == 0 ? (float)below(below(30) ? images : 3) : (float)between(-20, 200) / 4;
        put_attrs(&t, "pooled_shape=[%d,%d], spatial_scale=%s", (int)between(1, 7),
                  (int)between(1, 7), below(2) ? "1.0" : "0.5");
        check_both(&t);
    }
}

static void affine_grids(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        node_case t = new_case(OT_OP_OPAQUE, 20);
        uint32_t axes = below(2) ? 2 : 3;
        int64_t size[5] = {between(1, 3), 2, between(1, 12), between(1, 12), between(1, 12)};
        t.name = "AffineGrid";
        t.tolerance = 1e-6;
        add_input(&t, OT_F32, 3, (int64_t[]){size[0], axes, axes + 1});
        add_list(&t, 2 + axes, size);
        put_attrs(&t, "align_corners=%d", (int)below(2));
        check_both(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scatters),
        cmocka_unit_test(scatters_nd),
        cmocka_unit_test(triangles),
        cmocka_unit_test(eyes),
        cmocka_unit_test(one_hots),
        cmocka_unit_test(ranges),
        cmocka_unit_test(places),
        cmocka_unit_test(uniques),
        cmocka_unit_test(suppressions),
        cmocka_unit_test(narrow_and_wide),
        cmocka_unit_test(clips),
        cmocka_unit_test(integer_reductions),
        cmocka_unit_test(running_sums),
        cmocka_unit_test(rotations),
        cmocka_unit_test(max_pools),
        cmocka_unit_test(columns_to_images),
        cmocka_unit_test(transposed_convolutions),
        cmocka_unit_test(unpools),
        cmocka_unit_test(roi_pools),
        cmocka_unit_test(affine_grids),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
