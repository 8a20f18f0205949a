/* The buffers that a runtime plans for the steps of a graph before it runs.
 *
 *   step     Conv   Add(a)   Relu      a result lies where an input of its shape dies, if the
 *   value    a      b        c         operator can: c where b was
 *   buffer   0      1        1
 *
 * else where an earlier value of exactly its shape lay, the last one that became free first (that
 * memory waits until then); else in memory of its own. Results of the graph never share.
 * (ONNX Runtime, allocation_planner.)
 */
#include "simulate.h"

typedef struct planner {
    const ot_graph *g;
    bool static_shape;
    ot_arena *a;
    ot_sim_schedule *p;
    uint32_t *freed; /* [n_freed] buffers that nobody reads any more, the latest last */
    uint32_t *first; /* [n_buffers] value that the buffer was made for */
    size_t n_freed, cap_freed, cap_first, n_first;
    uint32_t *left; /* [n_buffers] steps that still read it */
    size_t cap_left, n_left;
} planner;

static ot_status new_buffer(planner *m, ot_buffer_kind kind, uint32_t v)
{
    ot_sim_value *x = &m->p->values[v];
    ot_sim_buffer b = {kind, ot_max(x->bytes, 0), 0};
    x->buffer = (uint32_t)m->p->n_buffers;
    bool ok = OT_PUSH(m->a, m->p->buffers, m->p->n_buffers, m->p->cap_buffers, b) &&
              OT_PUSH(m->a, m->first, m->n_first, m->cap_first, v) &&
              OT_PUSH(m->a, m->left, m->n_left, m->cap_left, 0);
    return ok ? OT_OK : OT_E_NOMEM;
}

/* Extents as the runtime sees them: channel blocks padded, whatever the layout. */
static bool same_shape(const planner *m, uint32_t v, uint32_t w)
{
    const uint32_t n = m->g->n_values;
    const ot_sim_value *x = &m->p->values[v], *y = &m->p->values[w];
    const ot_value *a = &m->g->values[v % n], *b = &m->g->values[w % n];
    if (!m->static_shape || x->bytes != y->bytes || a->rank != b->rank || a->rank < 0) return false;
    for (int32_t k = 0; k < a->rank; k++)
        if (a->dims[k] < 0 ||
            (a->dims[k] != b->dims[k] && (k != 1 || x->is_blocked == y->is_blocked)))
            return false;
    return true; /* equal bytes and other extents: equal channels when padded */
}

/* Extents of the buffers that are planned for them: those of a product with a bias are a matrix's,
 * whatever rank the product has in the file. */
static bool same_planned(const planner *m, uint32_t v, uint32_t w)
{
    const ot_sim_value *x = &m->p->values[v], *y = &m->p->values[w];
    const ot_value *a = &m->g->values[v % m->g->n_values], *b = &m->g->values[w % m->g->n_values];
    const bool p = x->is_matrix && a->rank != 2, q = y->is_matrix && b->rank != 2;
    if (!p && !q) return same_shape(m, v, w);
    if (!m->static_shape || x->bytes != y->bytes || x->bytes < 0) return false;
    return (p || a->rank == 2) && (q || b->rank == 2) &&
           a->dims[a->rank - 1] == b->dims[b->rank - 1];
}

static void use_buffer(planner *m, uint32_t v, uint32_t b)
{
    m->p->values[v].buffer = b;
    m->left[b] += m->p->values[v].uses;
    m->p->buffers[b].uses += m->p->values[v].uses;
}

/* Where the first result goes, if it goes where something else lay. */
static uint32_t taken_over(planner *m, const ot_sim_step *s, uint32_t v)
{
    if (s->is_view && s->n_reads) return m->p->values[s->reads[0]].buffer;
    for (uint32_t k = 0; k < s->n_reads && k < 32; k++) {
        uint32_t b = m->p->values[s->reads[k]].buffer;
        if (!(s->over >> k & 1) || b == OT_NONE || m->p->buffers[b].kind != OT_BUFFER_PLANNED ||
            m->left[b] != 1)
            continue;
        if (same_shape(m, v, s->reads[k])) return b;
    }
    return OT_NONE;
}

static uint32_t waiting(planner *m, uint32_t v)
{
    for (size_t k = m->static_shape ? m->n_freed : 0; k-- > 0;) {
        uint32_t b = m->freed[k];
        if (!same_planned(m, v, m->first[b])) continue;
        memmove(&m->freed[k], &m->freed[k + 1], (m->n_freed - k - 1) * sizeof *m->freed);
        m->n_freed--;
        return b;
    }
    return OT_NONE;
}

/* v is what the Loop carried in the end: the first of its results, as many as it is handed. */
static bool carries(const ot_graph *g, const ot_node *loop, uint32_t v)
{
    for (uint32_t k = 0; k + 2 < loop->n_in && k < loop->n_out; k++)
        if (loop->out[k] == v && v < g->n_values) return true;
    return false;
}

static ot_status place(planner *m, const ot_sim_step *s, uint32_t k)
{
    const uint32_t v = s->writes[k];
    const ot_sim_value *x = &m->p->values[v];
    const ot_value *of = &m->g->values[v % m->g->n_values];
    uint32_t b = OT_NONE;
    const ot_node *by = s->node == OT_NONE ? NULL : &m->g->nodes[s->node];
    if (of->is_tensor && !x->is_result && by && by->op == OT_OP_Loop && carries(m->g, by, v)) {
        OT_TRY(new_buffer(m, OT_BUFFER_HANDED, v));
    } else if (!of->is_tensor) {
        OT_TRY(new_buffer(m, OT_BUFFER_PIECES, v));
    } else if (x->is_result) {
        OT_TRY(new_buffer(m, OT_BUFFER_RESULT, v));
    } else {
        if (k == 0 && s->is_view && s->n_reads && m->p->values[s->reads[0]].buffer == OT_NONE)
            return OT_OK; /* of what is not the run's */
        if (k == 0) b = taken_over(m, s, v);
        if (b == OT_NONE && x->bytes > 0) b = waiting(m, v);
        if (b == OT_NONE) OT_TRY(new_buffer(m, OT_BUFFER_PLANNED, v));
    }
    use_buffer(m, v, b == OT_NONE ? x->buffer : b);
    return OT_OK;
}

static ot_status give_back(planner *m, uint32_t b)
{
    if (b == OT_NONE || m->p->buffers[b].kind != OT_BUFFER_PLANNED || m->left[b] > 0) return OT_OK;
    return OT_PUSH(m->a, m->freed, m->n_freed, m->cap_freed, b) ? OT_OK : OT_E_NOMEM;
}

ot_status ot_sim_plan_buffers(ot_sim_schedule *p, bool static_shape, ot_arena *a)
{
    planner state = {.g = p->g, .static_shape = static_shape, .a = a, .p = p}, *m = &state;
    for (size_t at = 0; at < p->n; at++) {
        const ot_sim_step *s = &p->steps[at];
        if (s->is_gone) continue;
        for (uint32_t k = 0; k < s->n_writes; k++) OT_TRY(place(m, s, k));
        for (uint32_t k = 0; k < s->n_reads; k++) {
            uint32_t b = p->values[s->reads[k]].buffer;
            if (b == OT_NONE) continue;
            m->left[b]--;
            OT_TRY(give_back(m, b));
        }
        for (uint32_t k = 0; k < s->n_writes; k++)
            if (p->values[s->writes[k]].uses == 0)
                OT_TRY(give_back(m, p->values[s->writes[k]].buffer));
    }
    return OT_OK;
}
