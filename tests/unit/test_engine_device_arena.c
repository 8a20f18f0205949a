/* What a device of the engine holds, as it is simulated: by hand, and beside what sessions on a
 * device lay out for random networks, as they are and tiled. The second half is skipped where
 * there is no device.
 *
 * OT_SEED=7: that seed; OT_SEEDS=50: so many.
 */
#include "cases.h"
#include "engine_graphs.h"
#include "engine_device_rig.h"
#include "tiled_graph.h"

#include "alloc_sim/alloc_sim.h"
#include "select/select.h"

#define KIB INT64_C(1024)

static int64_t simulated(const ot_graph *g, const ot_runtime *r)
{
    ot_sim_figures f;
    if (ot_sim_growth(g, r, true, &f) != OT_OK) fail_msg("out of memory");
    assert_int_equal(f.n_unknown, 0);
    return f.growth;
}

/* ---- by hand: values of 4 KiB ---- */

#define INPUT "input %x : float32[1,4,16,16]\ninit %w : float32[4,4,1,1] = random 1\n"

static void check_held(const char *text, int64_t bytes)
{
    ot_diag d = {0};
    ot_model *m = text_model(text, &d);
    if (ot_infer_shapes(m->graph, NULL, 0) != OT_OK) fail_msg("%s", d.message);
    const int64_t held = simulated(m->graph, &ot_runtime_engine_device);
    if (held != bytes)
        fail_msg("%lld bytes, not %lld\n%s", (long long)held, (long long)bytes, text);
    ot_model_free(m);
}

static void values_are_held(void **state)
{
    (void)state;
    /* an input and a result; what runs as one keeps nothing between */
    check_held(INPUT "%a = Relu(%x)\n%y = Neg(%a)\noutput %y\n", 8 * KIB);
    check_held(INPUT "%a = Conv(%x, %w)\n%b = Relu(%a)\n%y = Add(%b, %x)\noutput %y\n", 8 * KIB);
    /* two convolutions in a row, and one that is read once more behind them */
    check_held(INPUT "%a = Conv(%x, %w)\n%b = Conv(%a, %w)\n%y = Conv(%b, %w)\noutput %y\n",
               8 * KIB);
    check_held(INPUT "%a = Conv(%x, %w)\n%b = Conv(%a, %w)\n%c = Conv(%b, %w)\n%y = Concat(%c, %a) "
                     "{axis=1}\noutput %y\n",
               16 * KIB);
    /* a window, another shape: no memory of their own, but what they look at lives on */
    check_held(INPUT "init %s : int64[2] = [4, 256]\n%a = Conv(%x, %w)\n%r = Reshape(%a, %s)\n%b = "
                     "Transpose(%r) {perm=[1, 0]}\n"
                     "%y = Neg(%b)\noutput %y\n",
               8 * KIB);
    check_held(INPUT
               "%a = Conv(%x, %w)\n%h, %l = Split(%a) {axis=1}\n%y = Add(%h, %l)\noutput %y\n",
               8 * KIB);
    /* results stay until they are read for the last time; sizes are whole lines */
    check_held(INPUT "%y = Conv(%x, %w)\n%z = GlobalAveragePool(%y)\noutput %y\noutput %z\n",
               8 * KIB);
    check_held("input %x : float32[3]\n%y = Neg(%x)\noutput %y\n", 512);
}

/* ---- plans for less of it ---- */

/* What plans for goal memory come to, of what the untiled model takes. */
static double planned_part(const char *text, double max_slowdown)
{
    ot_diag d = {0};
    ot_target t;
    ot_plan *p = NULL;
    const ot_plan_options o = {.goal = OT_GOAL_MEMORY, .max_slowdown = max_slowdown};
    ot_model *m = text_model(text, &d);
    if (ot_infer_shapes(m->graph, NULL, 0) != OT_OK ||
        ot_target_load("cpu-generic", 1, &d, &t) != OT_OK)
        fail_msg("%s", d.message);
    if (ot_target_set_runtime(&t, "engine-device", &d) != OT_OK) fail_msg("%s", d.message);
    if (ot_plan_graph(m->graph, &t, &o, &p) != OT_OK ||
        ot_select_plan(m->graph, &t, &o, true, &p) != OT_OK)
        fail_msg("%s", d.message);
    assert_int_equal(p->untiled.growth_bytes, simulated(m->graph, &ot_runtime_engine_device));
    const double part = (double)p->tiled.growth_bytes / (double)p->untiled.growth_bytes;
    if (p->n_regions > 0) { /* what is promised is what is written */
        if (ot_fold_static(m->graph, p) != OT_OK || ot_transform_tiles(m->graph, p) != OT_OK)
            fail_msg("%s", m->diag->message);
        if (ot_assure(m->graph, OT_P_ORDER | OT_P_USES) != OT_OK) fail_msg("%s", m->diag->message);
        assert_int_equal(p->tiled.growth_bytes, simulated(m->graph, &ot_runtime_engine_device));
    }
    ot_plan_free(p);
    ot_model_free(m);
    return part;
}

static void plans_take_less(void **state)
{
    (void)state;
    /* convolutions of one size, where every two values are as much as any two: only all of them
     * together help */
    assert_true(
        planned_part(
            "input %x : float32[1,3,180,320]\ninit %u : float32[64,3,3,3] = random 1\n"
            "init %w : float32[64,64,3,3] = random 2\ninit %v : float32[3,64,3,3] = random 3\n"
            "%a = Conv(%x, %u) {pads=[1, 1, 1, 1]}\n%b = Conv(%a, %w) {pads=[1, 1, 1, 1]}\n"
            "%c = Conv(%b, %w) {pads=[1, 1, 1, 1]}\n%d = Conv(%c, %w) {pads=[1, 1, 1, 1]}\n"
            "%y = Conv(%d, %v) {pads=[1, 1, 1, 1]}\noutput %y\n",
            0.1) < 0.3);
    /* random networks: never more */
    static graph g;
    uint32_t less = 0;
    for (unsigned seed = 1; seed <= CASES(40); seed++) {
        graph_make(&g, seed, true);
        const double part = planned_part(g.text, 100);
        if (part > 1) fail_msg("seed %u: x%.3f\n%s", seed, part, g.text);
        less += part < 0.9;
    }
    assert_true(less > 0);
    print_message("%u of %d take less\n", less, CASES(40));
}

/* ---- beside sessions ---- */

static double off; /* the worst so far, of what a session holds */

/* *off_most: by so much it may be off, of what the session holds. */
static void compare(ot_model *m, const char *text, uint64_t seed, bool tiled, double most)
{
    ot_diag d = {0};
    ot_session *s = NULL;
    ot_device_figures f;
    if (ot_assure(m->graph, OT_P_ORDER | OT_P_USES) != OT_OK) fail_msg("%s", m->diag->message);
    const int64_t held = simulated(m->graph, &ot_runtime_engine_device);
    if (ot_session_new(m, &(ot_session_options){.place = &place}, &d, &s) != OT_OK)
        fail_msg("%s", d.message);
    ot_device_figures_get(s, &f);
    const double by = fabs((double)held / (double)f.arena_live - 1);
    if (f.n_host == 0 && by > off) off = by;
    if (f.n_host == 0 && by > most)
        fail_msg("seed %llu%s: %lld bytes, not %lld\n%s", (unsigned long long)seed,
                 tiled ? ", tiled" : "", (long long)held, (long long)f.arena_live, text);
    ot_session_free(s);
}

static void sessions_hold_as_much(void **state)
{
    NEEDS_DEVICE(state);
    const char *many = getenv("OT_SEEDS");
    const unsigned n = many ? (unsigned)atoi(many) : CASES(12);
    static graph g;
    for (unsigned seed = first_seed; seed < first_seed + n; seed++) {
        ot_diag d = {0};
        graph_make(&g, seed, true);
        for (int tiled = 0; tiled < 2; tiled++) {
            ot_model *m = text_model(g.text, &d);
            if (tiled) (void)tile_graph(m, 6000);
            if (!tiled && ot_infer_shapes(m->graph, NULL, 0) != OT_OK) fail_msg("%s", d.message);
            compare(m, g.text, seed, tiled, 0.05);
            ot_model_free(m);
        }
    }
    print_message("at most %.1f %% off\n", 100 * off);
}

int main(void)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(values_are_held),
        cmocka_unit_test(plans_take_less),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_hold_as_much),
    };
    int failed = cmocka_run_group_tests_name("by hand", alone, NULL, NULL);
    return failed + cmocka_run_group_tests_name("sessions", tests, open_device, close_device);
}
