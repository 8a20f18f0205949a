/* Operators whose output size depends on the data: NonZero, Unique, NonMaxSuppression. */
#include "ref_move.h"

/* ---- NonZero ---- */

/* Coordinates of the elements that are not 0, one column each, in row-major order. A scalar
 * counts as a list of one. */
ot_status ot_mv_non_zero(ot_call *c)
{
    int64_t pos[OT_RANK_MAX] = {0}, found = 0, column = 0;
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_type(c, 0, OT_NUM_ALL));
    const ot_nd *x = c->in[0];
    int64_t n = ot_num_count(x);
    uint32_t rank = x->rank ? x->rank : 1;
    for (int64_t i = 0; i < n; i++) found += ot_nd_double(x, i) != 0;
    OT_TRY(ot_call_output(c, 0, OT_I64, 2, (int64_t[2]){rank, found}));
    int64_t *y = c->out[0]->data;
    for (int64_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < rank && ot_nd_double(x, i) != 0; k++)
            y[k * found + column] = pos[k];
        column += ot_nd_double(x, i) != 0;
        (void)ot_num_next(x->rank, x->dims, pos);
    }
    return OT_OK;
}

/* ---- Unique ----
 *
 *   x       b a c a b                 rows: slices along the axis, or single elements
 *   sorted  a(1) a(3) b(0) b(4) c(2)  equal rows side by side, the first occurrence in front
 *   groups  [a: 1,3] [b: 0,4] [c: 2]  and, unless they stay sorted, put in the order of first
 *           occurrences: b a c
 */

typedef struct unique_rows {
    const ot_nd *data; /* [n, width] dense */
    int64_t width;
} unique_rows;

typedef struct unique_item {
    const unique_rows *rows;
    int64_t at;
} unique_item;

typedef struct unique_group {
    /* row that occurs first; items [from, from + count) of the sorted ones */
    int64_t first, from, count;
} unique_group;

/* NaN comes last and equals NaN, as in numpy. */
static int compare_elements(const ot_nd *a, int64_t i, int64_t j)
{
    if (ot_num_is(a->dtype, OT_NUM_FLOATS)) {
        double u = ot_nd_double(a, i), v = ot_nd_double(a, j);
        if (u != u || v != v) return (u != u) - (v != v);
        return (u > v) - (u < v);
    }
    int64_t u = ot_nd_int(a, i), v = ot_nd_int(a, j);
    if (a->dtype == OT_U64) return ((uint64_t)u > (uint64_t)v) - ((uint64_t)u < (uint64_t)v);
    return (u > v) - (u < v);
}

static int compare_rows(const unique_rows *rows, int64_t i, int64_t j)
{
    int order = 0;
    for (int64_t k = 0; k < rows->width && order == 0; k++)
        order = compare_elements(rows->data, i * rows->width + k, j * rows->width + k);
    return order;
}

static int compare_items(const void *p, const void *q)
{
    const unique_item *a = p, *b = q;
    int order = compare_rows(a->rows, a->at, b->at);
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

static int compare_groups(const void *p, const void *q)
{
    const unique_group *a = p, *b = q;
    return (a->first > b->first) - (a->first < b->first);
}

/* The slices of x along the axis as rows; without an axis, its elements. */
static ot_status unique_read(ot_call *c, bool flat, uint32_t axis, ot_nd *data, int64_t *n)
{
    const ot_nd *x = c->in[0];
    int64_t total = ot_num_count(x), dims[OT_RANK_MAX], from[OT_RANK_MAX];
    ot_nd turned = {0};
    *n = flat ? total : x->dims[axis];
    *data = *x;
    if (flat || total == 0) return OT_OK;
    for (uint32_t k = 0; k < x->rank; k++) {
        uint32_t a = k == 0 ? axis : k <= axis ? k - 1 : k;
        dims[k] = x->dims[a];
        from[k] = x->strides[a];
    }
    data->data = ot_num_scratch(c, total, ot_mv_size(x));
    if (!data->data) return OT_E_NOMEM;
    ot_nd_set_dense(&turned, x->dtype, x->rank, dims);
    ot_mv_copy(ot_mv_size(x), x->rank, dims, data->data, turned.strides, x->data, from);
    return OT_OK;
}

/* Equal rows among the sorted items; *n_groups of them. */
static ot_status unique_groups(ot_call *c, const unique_item *items, int64_t n, unique_group **out,
                               int64_t *n_groups)
{
    unique_group *g = *out = ot_num_scratch(c, n, sizeof *g);
    int64_t m = 0;
    if (!g) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || compare_rows(items[i].rows, items[i - 1].at, items[i].at) != 0)
            g[m++] = (unique_group){.first = items[i].at, .from = i};
        g[m - 1].count++;
    }
    if (!ot_attr_int(c->node, "sorted", 1) && m > 0) qsort(g, (size_t)m, sizeof *g, compare_groups);
    *n_groups = m;
    return OT_OK;
}

static ot_status unique_values(ot_call *c, bool flat, uint32_t axis, const unique_group *g,
                               int64_t m)
{
    const ot_nd *x = c->in[0];
    int64_t dims[OT_RANK_MAX];
    memcpy(dims, x->dims, sizeof dims);
    dims[flat ? 0 : axis] = m;
    OT_TRY(ot_call_output(c, 0, x->dtype, flat ? 1 : x->rank, dims));
    ot_nd *y = c->out[0];
    if (ot_num_count(y) == 0) return OT_OK;
    if (!flat) dims[axis] = 1;
    for (int64_t k = 0; k < m; k++) {
        if (flat)
            memcpy(ot_mv_at(y, k), ot_mv_at(x, g[k].first), ot_mv_size(x));
        else
            ot_mv_copy(ot_mv_size(x), x->rank, dims, ot_mv_at(y, k * y->strides[axis]), y->strides,
                       ot_mv_at(x, g[k].first * x->strides[axis]), x->strides);
    }
    return OT_OK;
}

/* first occurrence and count of each group, and the group of each row */
static ot_status unique_indices(ot_call *c, const unique_item *items, int64_t n,
                                const unique_group *g, int64_t m)
{
    OT_TRY(ot_call_output(c, 1, OT_I64, 1, &m));
    OT_TRY(ot_call_output(c, 2, OT_I64, 1, &n));
    OT_TRY(ot_call_output(c, 3, OT_I64, 1, &m));
    ot_nd *first = ot_num_out(c, 1), *group = ot_num_out(c, 2), *count = ot_num_out(c, 3);
    for (int64_t k = 0; k < m; k++) {
        if (first) ((int64_t *)first->data)[k] = g[k].first;
        if (count) ((int64_t *)count->data)[k] = g[k].count;
        for (int64_t i = 0; group && i < g[k].count; i++)
            ((int64_t *)group->data)[items[g[k].from + i].at] = k;
    }
    return OT_OK;
}

ot_status ot_mv_unique(ot_call *c)
{
    uint32_t axis = 0;
    int64_t n, m;
    ot_nd data;
    unique_group *groups;
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_type(c, 0, OT_NUM_ALL));
    bool flat = !ot_attr_find(c->node, "axis");
    if (!flat) OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 0), c->in[0]->rank, &axis));
    OT_TRY(unique_read(c, flat, axis, &data, &n));
    unique_rows rows = {.data = &data,
                        /* rows of no elements are equal */
                        .width = flat || n == 0 ? 1 : ot_num_count(c->in[0]) / n};
    unique_item *items = ot_num_scratch(c, n, sizeof *items);
    if (!items) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++) items[i] = (unique_item){&rows, i};
    if (n > 0) qsort(items, (size_t)n, sizeof *items, compare_items);
    OT_TRY(unique_groups(c, items, n, &groups, &m));
    OT_TRY(unique_values(c, flat, axis, groups, m));
    return unique_indices(c, items, n, groups, m);
}

/* ---- NonMaxSuppression ----
 *
 * Of each batch and class: take the box of the highest score, drop those that overlap it too
 * much, and so on.
 */

typedef struct nms_box {
    double y1, x1, y2, x2; /* y1 <= y2, x1 <= x2 */
    double score;
    int64_t at;
} nms_box;

typedef struct nms_options {
    int64_t per_class;
    double iou, score;
    bool has_score;
    int64_t batches, classes, boxes;
} nms_options;

static ot_status nms_number(ot_call *c, uint32_t k, double *v)
{
    const ot_nd *a = ot_num_in(c, k);
    OT_TRY(ot_num_type(c, k, OT_NUM_FLOATS));
    OT_TRY(ot_num_single(c, k));
    *v = a ? ot_nd_double(a, 0) : 0;
    return OT_OK;
}

static ot_status nms_read(ot_call *c, nms_options *o)
{
    OT_TRY(ot_call_need(c, 2));
    const ot_nd *scores = c->in[1];
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    OT_TRY(ot_num_type(c, 1, OT_NUM_FLOATS));
    OT_TRY(ot_num_rank(c, 0, 3));
    OT_TRY(ot_num_rank(c, 1, 3));
    *o = (nms_options){
        .batches = scores->dims[0], .classes = scores->dims[1], .boxes = scores->dims[2]};
    OT_TRY(ot_num_dims(c, 0, 3, (int64_t[3]){o->batches, o->boxes, 4}));
    if (ot_num_in(c, 2)) OT_TRY(ot_mv_scalar(c, 2, &o->per_class));
    OT_TRY(nms_number(c, 3, &o->iou));
    OT_TRY(nms_number(c, 4, &o->score));
    o->has_score = ot_num_in(c, 4);
    if (!(o->iou >= 0 && o->iou <= 1))
        return ot_call_fail(c, "iou_threshold %g is not between 0 and 1", o->iou);
    return OT_OK;
}

/* Corners in any order, or centre and size. */
static nms_box nms_box_at(const ot_nd *boxes, int64_t at, bool centre)
{
    double v[4];
    for (int64_t k = 0; k < 4; k++) v[k] = ot_nd_double(boxes, 4 * at + k);
    if (centre)
        return (nms_box){v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2, 0, 0};
    bool y = v[0] <= v[2], x = v[1] <= v[3];
    return (nms_box){y ? v[0] : v[2], x ? v[1] : v[3], y ? v[2] : v[0], x ? v[3] : v[1], 0, 0};
}

/* Intersection over union. */
static double nms_overlap(const nms_box *a, const nms_box *b)
{
    double h = (a->y2 < b->y2 ? a->y2 : b->y2) - (a->y1 > b->y1 ? a->y1 : b->y1);
    double w = (a->x2 < b->x2 ? a->x2 : b->x2) - (a->x1 > b->x1 ? a->x1 : b->x1);
    double both = h > 0 && w > 0 ? h * w : 0;
    double all = (a->y2 - a->y1) * (a->x2 - a->x1) + (b->y2 - b->y1) * (b->x2 - b->x1) - both;
    return both > 0 && all > 0 ? both / all : 0;
}

static int compare_boxes(const void *p, const void *q)
{
    const nms_box *a = p, *b = q;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* The boxes of one batch and class that stay, in front of list; returns their number. */
static int64_t nms_class(const ot_call *c, const nms_options *o, int64_t batch, int64_t cls,
                         nms_box *list)
{
    int64_t n = 0, kept = 0;
    bool centre = ot_attr_int(c->node, "center_point_box", 0) != 0;
    for (int64_t i = 0; i < o->boxes; i++) {
        double score = ot_nd_double(c->in[1], (batch * o->classes + cls) * o->boxes + i);
        if (score != score || (o->has_score && !(score > o->score))) continue;
        list[n] = nms_box_at(c->in[0], batch * o->boxes + i, centre);
        list[n].score = score;
        list[n++].at = i;
    }
    if (n > 0) qsort(list, (size_t)n, sizeof *list, compare_boxes);
    for (int64_t i = 0; i < n && kept < o->per_class; i++) {
        bool free = true;
        for (int64_t k = 0; k < kept && free; k++) free = nms_overlap(&list[i], &list[k]) <= o->iou;
        if (free) list[kept++] = list[i];
    }
    return kept;
}

ot_status ot_mv_non_max_suppression(ot_call *c)
{
    nms_options o;
    int64_t most, found = 0;
    OT_TRY(nms_read(c, &o));
    if (!ot_product((int64_t[3]){o.batches, o.classes, ot_max(0, ot_min(o.per_class, o.boxes))}, 3,
                    &most))
        return ot_call_fail(c, "too many boxes are wanted");
    nms_box *list = ot_num_scratch(c, o.boxes, sizeof *list);
    int64_t *kept = ot_num_scratch(c, most, 3 * sizeof *kept);
    if (!list || !kept) return OT_E_NOMEM;
    for (int64_t b = 0; b < o.batches && most > 0; b++)
        for (int64_t k = 0; k < o.classes; k++) {
            int64_t n = nms_class(c, &o, b, k, list);
            for (int64_t i = 0; i < n; i++, found++)
                memcpy(kept + 3 * found, (int64_t[3]){b, k, list[i].at}, 3 * sizeof *kept);
        }
    OT_TRY(ot_call_output(c, 0, OT_I64, 2, (int64_t[2]){found, 3}));
    if (found > 0) memcpy(c->out[0]->data, kept, (size_t)found * 3 * sizeof *kept);
    return OT_OK;
}
