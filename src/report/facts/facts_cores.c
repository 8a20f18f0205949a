/* The second level of a region: what its program takes of the memories of the cores, and its
 * operators' blocks in them. */
#include "facts_build.h"

static const char *dims_text(ot_arena *a, const int64_t *dims, uint32_t rank)
{
    char text[OT_TK_RANK_MAX * 21 + 1] = "1";
    size_t n = 0;
    for (uint32_t k = 0; k < rank; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", k ? "x" : "",
                              (long long)dims[k]);
    return ot_strdup(a, text);
}

static bool copy_blocks(ot_arena *a, const ot_lowered_region *p, ot_fact_region *to)
{
    ot_fact_block *list = OT_NEW_N(a, ot_fact_block, p->n_inner + 1u);
    for (uint32_t k = 0; list && k < p->n_inner; k++) {
        const ot_inner_op *x = &p->inner[k];
        list[k] = (ot_fact_block){.node = ot_strdup(a, x->node),
                                  .operation = x->operation,
                                  .unit = x->unit,
                                  .extent = dims_text(a, x->extent, x->rank),
                                  .block = dims_text(a, x->block, x->rank),
                                  .depth = x->depth,
                                  .depth_block = x->depth_block,
                                  .n_blocks = x->n_blocks,
                                  .bytes = x->bytes,
                                  .granules_saved = x->granules_saved,
                                  .time = x->time};
        if (!list[k].node || !list[k].extent || !list[k].block) return false;
    }
    to->blocks = list;
    to->n_blocks = list ? p->n_inner : 0;
    return list != NULL;
}

/* "9 operations in 24 blocks: ub 120 KiB of 192 KiB, l1 ..." */
static const char *cores_text(ot_arena *a, const ot_lowered_region *p)
{
    int64_t blocks = 0;
    for (uint32_t k = 0; k < p->n_inner; k++) blocks += p->inner[k].n_blocks;
    const char *text = ot_format(a, "%u operation%s in %lld block%s", p->n_inner,
                                 p->n_inner == 1 ? "" : "s", (long long)blocks,
                                 blocks == 1 ? "" : "s");
    const char *before = ": ";
    for (uint32_t s = 0; text && s < p->n_scopes; s++) {
        char height[32], room[32];
        const ot_scope_plan *x = &p->scopes[s];
        if (x->scope == OT_SCOPE_L2 || x->scope == OT_SCOPE_GM) continue;
        ot_format_bytes((double)x->height, height, sizeof height);
        ot_format_bytes((double)x->capacity, room, sizeof room);
        text = x->capacity > 0
                   ? ot_format(a, "%s%s%s %s of %s", text, before, ot_scope_name(x->scope), height,
                               room)
                   : ot_format(a, "%s%s%s %s", text, before, ot_scope_name(x->scope), height);
        before = ", ";
    }
    return text;
}

ot_status ot_facts_add_cores(ot_facts *f, const ot_graph *g, const ot_target *t,
                             const ot_region *from, ot_fact_region *to)
{
    ot_lowered_region p;
    ot_diag own = {0};
    to->cores = "";
    if (!ot_target_has_cores(t)) return OT_OK;
    ot_arena *a = ot_arena_new();
    if (!a) return ot_fail_nomem(g->model->diag);
    ot_status s = ot_region_lower(g, from, t, OT_LOWER_BLOCKS | OT_LOWER_ONE_KIND, a, &own, &p);
    bool ok = s != OT_E_NOMEM;
    if (s == OT_OK && p.n_inner > 0) {
        to->scopes = ot_memdup(f->arena, p.scopes, p.n_scopes * sizeof *p.scopes);
        to->n_scopes = to->scopes ? p.n_scopes : 0;
        to->cores = cores_text(f->arena, &p);
        ok = to->scopes && to->cores && copy_blocks(f->arena, &p, to);
    } else if (s == OT_OK) {
        to->cores = p.kernel ? "" : ot_format(f->arena, "not lowered: %s", p.why);
        ok = to->cores != NULL;
    }
    ot_kernel_free(p.kernel);
    ot_arena_free(a);
    return ok ? OT_OK : ot_fail_nomem(g->model->diag);
}
