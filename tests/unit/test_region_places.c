/* Where the buffers of a region are put: pipes share memory only when they must, and what that
 * stalls. */
#include "region_rig.h"

/* Do two buffers of the kernel lie over each other? */
static bool any_share(const ot_kernel *k)
{
    for (uint32_t v = 0; v < k->n_values; v++)
        for (uint32_t u = 0; u < v; u++)
            for (uint32_t i = 0; i < k->values[v].n_offsets; i++)
                for (uint32_t j = 0; j < k->values[u].n_offsets; j++) {
                    const ot_tk_value *a = &k->values[v], *b = &k->values[u];
                    bool in_place = a->offsets[i] == b->offsets[j] && a->bytes == b->bytes &&
                                    a->multi == b->multi;
                    if (!in_place && a->offsets[i] < b->offsets[j] + b->bytes &&
                        b->offsets[j] < a->offsets[i] + a->bytes)
                        return true;
                }
    return false;
}

/* With DMA: nothing shares where all fits side by side, less and less is apart in smaller
 * memories, down to the least that the search finds; without DMA the places are as low as it
 * gets. */
static void pipes_share_when_they_must(void **state)
{
    (void)state;
    rig x;
    uint32_t apart = 0, shared = 0;
    open_model(&x, CHAIN);
    cut(&x, 2, 2, 8, 3, 2, OT_FORM_UNROLLED);
    x.r.weights_stay = true;
    x.r.overlap = false;
    ot_region_memory least;
    assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &least, NULL), OT_OK);
    for (int64_t room = 2 * least.height; room >= least.height;
         room -= ot_max(64, least.height / 40)) {
        ot_region_memory m;
        ot_kernel *k = NULL;
        x.t.fast_bytes = room;
        x.t.double_buffer = true;
        assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &m, &k), OT_OK);
        assert_int_equal(m.height, least.height);
        assert_in_range(m.arena, m.lower_bound, room);
        assert_true(m.stall == 0); /* its transfers wait for the operators anyway */
        bool share = any_share(k);
        assert_true(share || m.level == OT_LEVEL_NONE);
        if (m.level == OT_LEVEL_NONE)
            assert_true(!share && m.cross_pipe == 0 && m.mode == OT_MEM_SEQUENTIAL);
        apart += !share;
        shared += share;
        ot_kernel_free(k);
        x.t.double_buffer = false;
        assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &m, &k), OT_OK);
        assert_int_equal(m.arena, least.height);
        ot_kernel_free(k);
    }
    print_message("%u plans apart, %u shared\n", apart, shared);
    assert_true(apart > 0);
    done(&x);
}

/* Load, two operations, store, a second each; what the second makes lies over the load's first
 * slot, or apart.
 *
 *          0  1  2  3  4  5  6  7  8  9
 *   load   0  1  .  .  .  .  2          of tile 2 waits until the result of tile 1 has left the
 *                                       place; apart: at 2
 *   b         0     1           2
 *   c            0     1           2    c waits for the store of the tile before: one slot
 *   store           0     1           2
 */
static void sharing_stalls_the_pipes(void **state)
{
    (void)state;
    static const char *const format =
        "kernel k { param x: 3x64 f32 @gm\nparam y: 3x64 f32 @gm\nfor t in 0..%d {\n"
        "alloc a: 1x64 f32 @l2 multi=2 offset=0,256\nload a <- x[t:t+1, 0:64]\n"
        "alloc b: 1x64 f32 @l2 offset=512\nb = vector.exp(a)\n"
        "alloc c: 1x64 f32 @l2 offset=%d\nc = vector.softmax(b)\nstore y[t:t+1, 0:64] <- c\n}\n}\n";
    static const struct {
        int tiles, offset;
        double stall;
    } cases[] = {{3, 768, 0}, {3, 0, 2}, {2, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1000];
        ot_diag d = {0};
        ot_kernel *k = NULL;
        ot_mem_plan *p = NULL;
        const ot_target machine = scratchpad();
        const ot_tk_machine t = ot_target_tk_machine(&machine);
        const ot_mem_options o = {.threads = 1, .lifetimes = {.no_in_place = true}};
        double seconds[32], stall = -1;
        for (size_t s = 0; s < 32; s++) seconds[s] = 1;
        snprintf(text, sizeof text, format, cases[i].tiles, cases[i].offset);
        if (ot_kernel_parse("k.tk", text, strlen(text), &d, &k) != OT_OK) fail_msg("%s", d.message);
        if (ot_mem_plan_kernel(k, "k.tk", &t, &o, &d, &p) != OT_OK) fail_msg("%s", d.message);
        assert_in_range(k->n_stmts, 1, 31);
        assert_int_equal(ot_region_stall(k, p, seconds, &d, &stall), OT_OK);
        if (stall != cases[i].stall) fail_msg("case %zu: %g s, not %g", i, stall, cases[i].stall);
        ot_mem_plan_free(p);
        ot_kernel_free(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipes_share_when_they_must),
        cmocka_unit_test(sharing_stalls_the_pipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
