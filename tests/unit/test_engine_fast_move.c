/* Fast kernels of data movement, resampling and integers against the reference kernels: nodes
 * with random attributes on random arrays, the same session run once with either kernel, by one
 * thread and by three. */
#include "engine_node_case.h"

#include "engine/cpu/move/box.h"
#include "engine/cpu/move/fast_move.h"

#define ROUNDS 60

static void transposes(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[6], perm[6];
        node_case t = new_case(OT_OP_Transpose, 13);
        uint32_t rank = any_dims(0, 6, dims);
        add_input(&t, any_type(), rank, dims);
        for (uint32_t k = 0; k < rank; k++) {
            uint32_t j = (uint32_t)below(k + 1);
            perm[k] = perm[j];
            perm[j] = k;
        }
        if (rank > 0 && below(4)) {
            char list[100];
            snprintf(t.attrs, sizeof t.attrs, "perm=%s",
                     ot_dims_text(rank, perm, list, sizeof list));
        }
        check_both(&t);
    }
}

static void slices(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[5], starts[5], ends[5], axes[5], steps[5], n = 0;
        node_case t = new_case(OT_OP_Slice, 13);
        uint32_t rank = any_dims(1, 5, dims);
        add_input(&t, any_type(), rank, dims);
        for (uint32_t k = 0; k < rank; k++) {
            if (below(3) == 0) continue;
            starts[n] = below(8)        ? between(-dims[k] - 2, dims[k] + 2)
                        : between(0, 1) ? INT64_MAX
                                        : INT64_MIN;
            ends[n] = below(4)        ? between(-dims[k] - 2, dims[k] + 2)
                      : between(0, 1) ? INT64_MAX
                                      : INT64_MIN;
            steps[n] = below(3) ? 1 : between(-3, 3);
            if (steps[n] == 0 && below(4)) steps[n] = 2;
            axes[n++] = below(2) ? k : (int64_t)k - (int64_t)rank;
        }
        add_list(&t, n, starts);
        add_list(&t, n, ends);
        add_list(&t, n, axes);
        if (below(2)) add_list(&t, n, steps);
        check_both(&t);
    }
}

static void splits(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[4], parts[3];
        node_case t = new_case(OT_OP_Split, 13);
        uint32_t rank = any_dims(1, 4, dims), axis = (uint32_t)below(rank);
        t.n_out = 3;
        add_input(&t, any_type(), rank, dims);
        parts[0] = between(0, dims[axis]);
        parts[1] = between(0, dims[axis] - parts[0]);
        parts[2] = dims[axis] - parts[0] - parts[1] + !below(20);
        if (below(4)) add_list(&t, 3, parts);
        snprintf(t.attrs, sizeof t.attrs, "axis=%d", (int)axis - (below(2) ? (int)rank : 0));
        check_both(&t);
    }
}

static void concats(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[4], n = between(1, 5);
        node_case t = new_case(OT_OP_Concat, 13);
        ot_dtype type = any_type();
        uint32_t rank = any_dims(1, 4, dims), axis = (uint32_t)below(rank);
        for (int64_t k = 0; k < n; k++) {
            dims[axis] = between(0, 9);
            add_input(&t, type, rank, dims);
        }
        snprintf(t.attrs, sizeof t.attrs, "axis=%d", (int)axis - (below(2) ? (int)rank : 0));
        check_both(&t);
    }
}

static void expansions(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[4], want[5];
        node_case t = new_case(OT_OP_Expand, 13);
        uint32_t rank = any_dims(0, 3, dims);
        want[0] = between(1, 6);
        for (uint32_t k = 0; k < rank; k++) {
            want[k + 1] = below(2) ? dims[k] : 1;
            if (!below(3)) dims[k] = 1;
            if (!below(60)) want[k + 1]++;
        }
        add_input(&t, any_type(), rank, dims);
        uint32_t skip = (uint32_t)below(rank + 2);
        add_list(&t, rank + 1 - skip, want + skip);
        check_both(&t);
    }
}

static void tiles(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[4], repeats[4];
        node_case t = new_case(OT_OP_Tile, 13);
        uint32_t rank = any_dims(0, 4, dims);
        for (uint32_t k = 0; k < rank; k++) repeats[k] = below(20) ? between(1, 3) : below(2);
        add_input(&t, any_type(), rank, dims);
        add_list(&t, rank, repeats);
        check_both(&t);
    }
}

static void depth_and_space(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t b = between(1, 4),
                dims[4] = {between(1, 3), between(1, 9), between(1, 20), between(1, 40)};
        node_case t = new_case(below(2) ? OT_OP_DepthToSpace : OT_OP_SpaceToDepth, 13);
        if (t.op == OT_OP_DepthToSpace)
            dims[1] *= b * b;
        else
            dims[2] *= b, dims[3] *= b;
        if (!below(20)) dims[1 + below(3)]++;
        add_input(&t, any_type(), 4, dims);
        snprintf(t.attrs, sizeof t.attrs, "blocksize=%d%s", (int)b,
                 t.op == OT_OP_DepthToSpace && below(2) ? ", mode=\"CRD\"" : "");
        check_both(&t);
    }
}

static void pads(void **state)
{
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    (void)state;
    for (int i = 0; i < 3 * ROUNDS; i++) {
        int64_t dims[5], list[10];
        node_case t = new_case(OT_OP_Pad, 19);
        ot_dtype type = any_type();
        uint32_t rank = any_dims(1, 5, dims);
        add_input(&t, type, rank, dims);
        for (uint32_t k = 0; k < 2 * rank; k++)
            list[k] = below(3) ? below(4) : between(-2, below(6) ? 3 : 50);
        add_list(&t, 2 * rank, list);
        if (below(2)) add_input(&t, type, 0, NULL);
        snprintf(t.attrs, sizeof t.attrs, "mode=\"%s\"", modes[below(4)]);
        check_both(&t);
    }
}

static void gathers(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[4], at[3];
        node_case t = new_case(below(2) ? OT_OP_Gather : OT_OP_GatherElements, 13);
        uint32_t rank = any_dims(1, 4, dims), axis = (uint32_t)below(rank), n = any_dims(0, 2, at);
        add_input(&t, any_type(), rank, dims);
        snprintf(t.attrs, sizeof t.attrs, "axis=%d", (int)axis - (below(2) ? (int)rank : 0));
        if (t.op == OT_OP_Gather) {
            add_index(&t, n, at, dims[axis]);
        } else {
            int64_t size = dims[axis];
            for (uint32_t k = 0; k < rank; k++)
                dims[k] = k == axis ? between(0, 20) : between(ot_min(1, dims[k]), dims[k]);
            add_index(&t, rank, dims, size);
        }
        check_both(&t);
    }
}

static void gathers_nd(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[4], at[6], least = INT64_MAX;
        node_case t = new_case(OT_OP_GatherND, 13);
        uint32_t rank = any_dims(1, 4, dims), batch = (uint32_t)below(rank),
                 n = batch + (uint32_t)below(2);
        for (uint32_t k = 0; k < n; k++) at[k] = k < batch ? dims[k] : between(1, 9);
        at[n] = between(1, rank - batch);
        for (uint32_t k = batch; k < batch + at[n]; k++) least = ot_min(least, dims[k]);
        add_input(&t, any_type(), rank, dims);
        add_index(&t, n + 1, at, least);
        snprintf(t.attrs, sizeof t.attrs, "batch_dims=%u", batch);
        check_both(&t);
    }
}

/* ---- numbers ---- */

static void casts(void **state)
{
    static const ot_dtype types[] = {OT_F32, OT_F16, OT_I64, OT_I32, OT_U8, OT_I8, OT_BOOL, OT_F64};
    (void)state;
    for (int i = 0; i < 3 * ROUNDS; i++) {
        int64_t dims[3];
        node_case t = new_case(OT_OP_Cast, 19);
        uint32_t rank = any_dims(0, 3, dims);
        ot_nd *a = add_input(&t, types[below(8)], rank, dims);
        int64_t n;
        assert_true(ot_nd_elems(a, &n));
        /* huge, subnormal, halfway, infinite, no number */
        for (int64_t k = 0; k < n && a->dtype == OT_F32; k++) {
            uint32_t bits = (uint32_t)below(INT64_C(1) << 31) << 1 | (uint32_t)below(2);
            if (below(2)) bits = (bits & 0x8001ffffu) | (uint32_t)between(100, 145) << 23;
            if (!below(4)) bits &= 0xfffff000u;
            memcpy((char *)a->data + 4 * k, &bits, sizeof bits);
        }
        snprintf(t.attrs, sizeof t.attrs, "to=%d", (int)types[below(8)]);
        check_both(&t);
    }
}

/* Dims that broadcast to `dims`, into `to`; returns their rank. */
static uint32_t shrunk(uint32_t rank, const int64_t *dims, int64_t *to)
{
    uint32_t skip = (uint32_t)below(rank + 1) * !below(3);
    for (uint32_t k = skip; k < rank; k++) to[k - skip] = below(3) ? dims[k] : 1;
    return rank - skip;
}

static void integers(void **state)
{
    static const ot_op ops[] = {OT_OP_Add,  OT_OP_Sub,         OT_OP_Mul,     OT_OP_Equal,
                                OT_OP_Less, OT_OP_LessOrEqual, OT_OP_Greater, OT_OP_GreaterOrEqual};
    (void)state;
    for (int i = 0; i < 3 * ROUNDS; i++) {
        int64_t dims[4], part[4];
        node_case t = new_case(ops[below(8)], 16);
        ot_dtype type = below(2) ? OT_I64 : below(5) ? OT_I32 : OT_F32;
        uint32_t rank = any_dims(0, 4, dims), n = shrunk(rank, dims, part);
        add_input(&t, type, n, part);
        n = shrunk(rank, dims, part);
        if (n > 0 && !below(20)) part[0]++;
        ot_nd *b = add_input(&t, type, n, part);
        int64_t elems, a_elems;
        assert_true(ot_nd_elems(b, &elems));
        assert_true(ot_nd_elems(&t.in[0], &a_elems));
        /* some are equal */
        if (elems <= a_elems && below(2))
            memcpy(b->data, t.in[0].data, (size_t)elems * ot_dtype_bytes(type));
        check_both(&t);
    }
}

static void wheres(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[4], part[4];
        node_case t = new_case(OT_OP_Where, 16);
        ot_dtype type = any_type();
        uint32_t rank = any_dims(0, 4, dims), n = shrunk(rank, dims, part);
        add_input(&t, OT_BOOL, n, part);
        n = shrunk(rank, dims, part);
        add_input(&t, type, n, part);
        n = shrunk(rank, dims, part);
        add_input(&t, type, n, part);
        check_both(&t);
    }
}

/* ---- resampling ---- */

static const char *one_of(const char *const *names, int64_t n) { return names[below(n)]; }

/* Attributes of a Resize of all modes; roi, scales and sizes for the last two axes, at times for
 * others. */
static void random_resize(node_case *t, uint32_t rank, const int64_t *dims)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"}, *const policies[] = {
                                                                           "stretch", "not_larger",
                                                                           "not_smaller"};
    static const char *const transforms[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    static const double usual[] = {2, 2, 3, 4, 0.5, 1, 1.5, 2.7, 0.3};
    const char *mode = t->in[0].dtype == OT_F32 ? one_of(modes, 3) : "nearest",
               *transform = one_of(transforms, 7);
    bool by_sizes = !below(3), antialias = !below(6);
    int n = snprintf(t->attrs, sizeof t->attrs,
                     "mode=\"%s\", coordinate_transformation_mode=\"%s\", nearest_mode=\"%s\", "
                     "extrapolation_value=7.5",
                     mode, transform, one_of(roundings, 4));
    if (antialias && strcmp(mode, "nearest") != 0)
        n += snprintf(t->attrs + n, sizeof t->attrs - (size_t)n, ", antialias=1");
    if (!below(4))
        n += snprintf(t->attrs + n, sizeof t->attrs - (size_t)n,
                      ", exclude_outside=1, cubic_coeff_a=-0.5");
    if (by_sizes)
        (void)snprintf(t->attrs + n, sizeof t->attrs - (size_t)n,
                       ", keep_aspect_ratio_policy=\"%s\"", one_of(policies, 3));
    int64_t sizes[5], n_roi = 2 * rank, n_scales = rank;
    float scales[5], roi[10];
    for (uint32_t k = 0; k < rank; k++) {
        bool changes = k + 2 >= rank ? below(5) > 0 : !below(5);
        scales[k] = changes ? (float)usual[below(9)] : 1;
        sizes[k] = ot_max(1, (int64_t)(scales[k] * (float)dims[k]));
        roi[k] = (float)below(3) / 8;
        roi[rank + k] = (float)(9 - below(3)) / 8;
    }
    if (strcmp(transform, "tf_crop_and_resize") == 0)
        memcpy(add_input(t, OT_F32, 1, &n_roi)->data, roi, (size_t)n_roi * sizeof *roi);
    else
        omit_input(t);
    if (by_sizes) {
        omit_input(t);
        add_list(t, rank, sizes);
    } else {
        memcpy(add_input(t, OT_F32, 1, &n_scales)->data, scales, (size_t)n_scales * sizeof *scales);
    }
}

static void resizes(void **state)
{
    (void)state;
    for (int i = 0; i < 6 * ROUNDS; i++) {
        int64_t dims[5];
        node_case t = new_case(OT_OP_Resize, below(2) ? 18 : 19);
        uint32_t rank = any_dims(1, 5, dims);
        t.tolerance = add_input(&t, below(4) ? OT_F32 : any_type(), rank, dims)->dtype == OT_F32
                          ? 1e-6
                          : 0;
        random_resize(&t, rank, dims);
        check_both(&t);
    }
}

static void old_resizes(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t dims[4] = {1, between(1, 5), between(1, 20), between(1, 20)}, four = 4;
        node_case t = new_case(below(2) ? OT_OP_Resize : OT_OP_Upsample, 0);
        t.opset = t.op == OT_OP_Resize ? 10 : 9;
        t.tolerance = 1e-6;
        add_input(&t, OT_F32, 4, dims);
        float *scales = add_input(&t, OT_F32, 1, &four)->data;
        scales[0] = scales[1] = 1;
        scales[2] = (float)between(1, 3);
        scales[3] = (float)between(2, 7) / 2;
        if (below(2)) (void)snprintf(t.attrs, sizeof t.attrs, "mode=\"linear\"");
        check_both(&t);
    }
}

/* Arrays blocked by channel and windows of wider rows give what dense plain arrays give. */
static void blocked_resizes(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t dims[4] = {between(1, 2), between(1, 20), between(1, 30), between(1, 30)};
        uint32_t block = below(2) ? 8 : 16, threads = below(2) ? 1 : 3;
        node_case t = new_case(OT_OP_Resize, 19);
        ot_diag d = {0};
        ot_arena *a = ot_arena_new();
        const ot_resize *r;
        const ot_nd *in[4];
        char text[4000];
        add_input(&t, OT_F32, 4, dims);
        random_resize(&t, 4, dims);
        case_text(&t, text, sizeof text);
        ot_model *m = NULL;
        if (ot_text_parse(text, strlen(text), &d, &m) != OT_OK) fail_msg("%s: %s", text, d.message);
        for (uint32_t k = 0; k < t.n_in; k++) in[k] = t.omitted[k] ? NULL : &t.in[k];
        assert_int_equal(ot_resize_new(a, &m->graph->nodes[0], &t.in[0], in, t.n_in, &r), OT_OK);
        if (r && ot_resize_blocked_ok(r, OT_F32)) {
            ot_nd x = t.in[0], y, got, bx = x, by;
            int64_t out[4];
            for (uint32_t k = 0; k < 4; k++) out[k] = r->axes[k].out;
            int64_t wide_x = dims[3] + 3, wide_y = out[3] + 2, blocks = ot_ceil_div(dims[1], block);
            assert_int_equal(ot_nd_new(&y, OT_F32, 4, out, &d), OT_OK);
            assert_int_equal(ot_nd_new(&got, OT_F32, 4, out, &d), OT_OK);
            by = y;
            bx.chan_block = by.chan_block = block;
            bx.data = malloc((size_t)(dims[0] * blocks * dims[2] * wide_x * block) * sizeof(float));
            by.data = malloc((size_t)(dims[0] * blocks * out[2] * wide_y * block) * sizeof(float));
            void *scratch = malloc((size_t)ot_max(ot_resize_scratch(r, OT_F32, block, threads),
                                                  ot_resize_scratch(r, OT_F32, 0, 1)));
            assert_true(bx.data && by.data && scratch);
            bx.strides[3] = by.strides[3] = block;
            bx.strides[2] = wide_x * block;
            by.strides[2] = wide_y * block;
            bx.strides[1] = bx.strides[2] * dims[2];
            by.strides[1] = by.strides[2] * out[2];
            bx.strides[0] = bx.strides[1] * blocks;
            by.strides[0] = by.strides[1] * blocks;
            ot_resize_run(r, &y, &x, scratch, 1);
            ot_box_relayout(&bx, &x, 1);
            ot_resize_run(r, &by, &bx, scratch, threads);
            ot_box_relayout(&got, &by, 1);
            same_arrays(text, &got, &y, 1e-6);
            free(bx.data);
            free(by.data);
            free(scratch);
            ot_nd_release(&y);
            ot_nd_release(&got);
        }
        ot_model_free(m);
        ot_arena_free(a);
        for (uint32_t k = 0; k < t.n_in; k++) free(t.in[k].data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposes),
        cmocka_unit_test(slices),
        cmocka_unit_test(splits),
        cmocka_unit_test(concats),
        cmocka_unit_test(expansions),
        cmocka_unit_test(tiles),
        cmocka_unit_test(pads),
        cmocka_unit_test(depth_and_space),
        cmocka_unit_test(gathers),
        cmocka_unit_test(gathers_nd),
        cmocka_unit_test(resizes),
        cmocka_unit_test(old_resizes),
        cmocka_unit_test(casts),
        cmocka_unit_test(integers),
        cmocka_unit_test(blocked_resizes),
        cmocka_unit_test(wheres),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
