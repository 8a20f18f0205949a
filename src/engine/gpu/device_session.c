/* A session on a device: made, run, freed. */
#include "device_internal.h"

static ot_status take(dv_session *s, const char *name, int64_t bytes, ot_dev_slice *out)
{
    ot_device_error e;
    return bytes > 0 ? dv_told(s, ot_dev_take(s->heap, name, bytes, &e, out), &e) : OT_OK;
}

/* Weights and activations, all of the same heap. */
static ot_status take_memory(dv_session *s)
{
    const ot_device_arena *x = &s->top->arena;
    s->weights = OT_NEW_N(s->a, ot_dev_slice, s->n_blocks);
    s->arena = OT_NEW_N(s->a, ot_dev_slice, x->n_blocks + 1u);
    if (!s->weights || !s->arena) return ot_fail_nomem(s->s->d);
    for (uint32_t k = 0; k < s->n_blocks; k++)
        OT_TRY(take(s, "weights", s->block_bytes[k], &s->weights[k]));
    for (uint32_t k = 0; k < x->n_blocks; k++)
        OT_TRY(take(s, "activations", x->blocks[k].bytes, &s->arena[k]));
    s->n_windows = s->n_blocks + x->n_blocks;
    s->windows = OT_NEW_N(s->a, dv_mapping, s->n_windows + 1u);
    s->tickets = OT_NEW_N(s->a, ot_dev_ticket, s->top->p->g->n_values + 1u);
    if (!s->windows || !s->tickets) return ot_fail_nomem(s->s->d);
    s->figures.device_bytes = ot_dev_heap_count(s->heap).held;
    s->figures.arena_blocks = x->n_blocks;
    return OT_OK;
}

/* What the model takes is there: said before anything is compiled. */
static ot_status check_memory(const dv_session *s)
{
    char needs[32], weights[32], arena[32], largest[32], has[32], block[32];
    const ot_device_usage u = ot_device_use(s->dev);
    const int64_t most = ot_device_about(s->dev)->allocation_most;
    const int64_t rest = u.budget - u.used, each = most > 0 ? ot_min(most, rest) : rest;
    int64_t all, one = 0; /* the largest block */
    for (uint32_t k = 0; k < s->n_blocks; k++) one = ot_max(one, s->block_bytes[k]);
    for (uint32_t k = 0; k < s->top->arena.n_blocks; k++)
        one = ot_max(one, s->top->arena.blocks[k].bytes);
    if (!ot_add_i64(s->weight_bytes, s->top->arena.height, &all)) all = INT64_MAX;
    if (all <= rest && one <= each) return OT_OK;
    return ot_fail(s->s->d, OT_E_BUDGET,
                   "the model takes %s of device memory, %s of it weights and %s activations, %s "
                   "in one block; %s are there, %s in one block",
                   ot_format_bytes((double)all, needs, sizeof needs),
                   ot_format_bytes((double)s->weight_bytes, weights, sizeof weights),
                   ot_format_bytes((double)s->top->arena.height, arena, sizeof arena),
                   ot_format_bytes((double)one, largest, sizeof largest),
                   ot_format_bytes((double)rest, has, sizeof has),
                   ot_format_bytes((double)each, block, sizeof block));
}

static ot_status new_heap(dv_session *s)
{
    const ot_device_usage u = ot_device_use(s->dev);
    const ot_dev_heap_options o = {.name = "session",
                                   .kind = s->maps ? OT_DEV_MEM_UNIFIED : OT_DEV_MEM_DEVICE,
                                   .cap = ot_max(1, u.budget - u.used)};
    ot_device_error e;
    return dv_told(s, ot_dev_heap_new(s->dev, &o, &e, &s->heap), &e);
}

/* The rules of the engine's form: every window lies inside its tensor, so that kernels need not
 * look. */
static ot_status check_form(dv_session *s)
{
    const ot_schedule *p = s->s->top;
    ot_graph **bodies = OT_NEW_N(s->a, ot_graph *, p->g->n_nodes + 1u);
    bool any = false;
    if (!bodies) return ot_fail_nomem(s->s->d);
    for (uint32_t k = 0; k < p->n_steps; k++) {
        const ot_step *step = &p->steps[k];
        if (!ot_is_tile_op(step->node, "While") || step->n_bodies != 1) continue;
        ot_schedule_describe_outer(step->bodies[0].schedule);
        bodies[step->node - p->g->nodes] = step->bodies[0].schedule->g;
        any = true;
    }
    return any ? ot_check_tile_ops(p->g, bodies) : OT_OK;
}

static ot_status build(dv_session *s)
{
    ot_device_error e;
    s->top = OT_NEW(s->a, dv_schedule);
    if (!s->top) return ot_fail_nomem(s->s->d);
    *s->top = (dv_schedule){.s = s, .p = s->s->top};
    OT_TRY(check_form(s));
    OT_TRY(dv_describe(s->top));
    OT_TRY(dv_make_units(s->top));
    OT_TRY(dv_plan(s));
    s->figures.arena_bytes = s->top->arena.height;
    s->figures.arena_live = s->top->arena.live;
    s->figures.weight_bytes = s->weight_bytes;
    OT_TRY(check_memory(s));
    OT_TRY(dv_told(s, ot_dev_queue_new(s->dev, &e, &s->queue), &e));
    OT_TRY(new_heap(s));
    if (s->streams || !s->maps) OT_TRY(dv_need_mover(s));
    OT_TRY(dv_compile(s));
    OT_TRY(take_memory(s));
    return dv_send_weights(s);
}

static void give_memory(dv_session *s)
{
    for (uint32_t k = 0; s->weights && k < s->n_blocks; k++)
        if (s->weights[k].buffer.id) (void)!ot_dev_give(s->heap, s->weights[k], NULL);
    for (uint32_t k = 0; s->arena && k < s->top->arena.n_blocks; k++)
        if (s->arena[k].buffer.id) (void)!ot_dev_give(s->heap, s->arena[k], NULL);
    if (s->heap && ot_dev_heap_leaks(s->heap, stderr)) OT_BUG("memory that was not given back");
    ot_dev_heap_free(s->heap);
}

static void free_session(void *state)
{
    dv_session *s = state;
    ot_device_error e;
    if (!s) return;
    /* what fails here has been freed by the device, or is lost with it */
    if (s->queue.id) (void)!ot_dev_queue_free(s->dev, s->queue, &e);
    ot_dev_mover_free(s->mover);
    (void)!dv_windows_close(s, true);
    for (size_t k = 0; k < s->n_programs; k++)
        (void)!ot_dev_program_free(s->dev, s->programs[k], &e);
    give_memory(s);
    for (size_t k = 0; k < s->n_pinned; k++) ot_dev_unpin(s->dev, s->pinned[k]);
    ot_arena_free(s->a);
}

/* What the device's kernels are written in and may use. */
static ot_dg_target target_of(const ot_device_facts *f, const ot_dg_layout *layout)
{
    static const ot_dg_dialect dialects[OT_DEV_APIS] = {
        [OT_DEV_OPENCL] = OT_DG_OPENCL, [OT_DEV_VULKAN] = OT_DG_GLSL, [OT_DEV_CUDA] = OT_DG_CUDA};
    return (ot_dg_target){.dialect = dialects[f->api],
                          .has_f64 = f->has_f64,
                          .has_i64 = f->has_i64,
                          .has_shorts = f->has_shorts,
                          .has_bytes = f->has_bytes,
                          .has_matrices = f->has_matrices,
                          .args_most = f->slices_most - 1, /* the first is the table of numbers */
                          .steps_most = f->steps_most,
                          .group_most = f->items_most,
                          .shared_bytes = f->shared_bytes,
                          .layout = *layout};
}

static ot_status make_session(const ot_backend *place, ot_session *session, void **state)
{
    const ot_device_laid *laid = place->with;
    ot_device *dev = laid->dev;
    ot_arena *a = ot_arena_new();
    dv_session *s = a ? OT_NEW(a, dv_session) : NULL;
    *state = NULL;
    if (!s) {
        ot_arena_free(a);
        return ot_fail_nomem(session->d);
    }
    *s = (dv_session){.s = session,
                      .dev = dev,
                      .a = a,
                      .maps = dv_maps(ot_device_about(dev)),
                      .idle = true,
                      .poisons = laid->poisons,
                      .figures.layouts.layout = laid->layout};
    s->target = target_of(ot_device_about(dev), &laid->layout);
    ot_status st = build(s);
    if (st != OT_OK) {
        free_session(s);
        return st;
    }
    *state = s;
    return OT_OK;
}

static ot_status run_session(void *state) { return dv_run(state); }

ot_device_laid ot_device_suited(ot_device *dev)
{
    return (ot_device_laid){.dev = dev, .layout = ot_device_layout(ot_device_about(dev))};
}

ot_backend ot_device_backend(const ot_device_laid *laid)
{
    return (ot_backend){.make = make_session,
                        .run = run_session,
                        .free = free_session,
                        .with = (void *)(uintptr_t)laid};
}

void ot_device_figures_get(const ot_session *session, ot_device_figures *out)
{
    const dv_session *s = session->placed;
    *out = s->figures;
    out->fallbacks = s->fallbacks;
    out->n_fallbacks = (uint32_t)s->n_fallbacks;
    out->heap = s->heap;
    if (s->mover) out->moves = ot_dev_mover_count(s->mover);
}
