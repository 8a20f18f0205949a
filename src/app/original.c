/* What a tiled file was before. For the engine the tiles of other runtimes are slow: loops that
 * hand parts on, and copies of all of them. From their form alone they cannot always be taken
 * back, so the file says what it was: its graph as .ot text, where
 *
 *   init %conv.weight : float32[64,3,7,7] = stored "tile/r0/conv.weight"
 *
 * says which constant of the tiled graph, bodies included, has the contents. So the text has some
 * hundred bytes a node. In front of it stands the mark of the tiled graph (import/notes.c): what
 * somebody changed since is not what the text says any more.
 *
 *   write   clone before selection -> tiled graph: where are its constants? -> text
 *   read    text -> graph; its constants are those of the tiled graph -> the model adopts it
 *
 * (of a weight in pieces "tile/piece/w/0", "tile/piece/w/1" ..., which follow each other: stored
 * "tile/piece/w"; transform/weight_pieces.c).
 *
 * Nodes with graphs of the file's own (If, Loop) and calls of functions are in the text by their
 * results only, and are taken from the tiled graph, where they stand unchanged.
 */
#include "original.h"

#include "onnx/graph/text.h"
#include "onnx/import/model_io.h"
#include "transform/transform.h"

/* A constant of the tiled graph or of a body in it. */
typedef struct stored {
    const void *key; /* where its contents are */
    const char *name;
    const ot_tensor *tensor;
    size_t order; /* in which they were collected */
} stored;

typedef struct work {
    ot_arena *a;
    ot_model *m; /* the tiled one */
    ot_map *by_name;
    stored *all; /* [n] */
    size_t n, cap;
    bool ambiguous;  /* two constants of one name */
    bool has_pieces; /* some are pieces of others: each that is not found is looked for in them */
} work;

/* ---- constants of the tiled graph ---- */

static const void *key_of(const ot_tensor *t)
{
    return t->data ? t->data : t->packed ? (const void *)t->packed : t->proto;
}

static bool is_piece(const char *name)
{
    return strncmp(name, OT_PIECE_PREFIX, sizeof OT_PIECE_PREFIX - 1) == 0;
}

static ot_status add_stored(work *w, const char *name, const ot_tensor *t)
{
    bool fresh;
    if (!ot_map_add(w->by_name, name, (uint32_t)w->n, &fresh)) return ot_fail_nomem(w->m->diag);
    if (!fresh) {
        w->ambiguous = w->ambiguous || w->all[ot_map_get(w->by_name, name)].key != key_of(t);
        return OT_OK;
    }
    const stored x = {key_of(t), name, t, w->n};
    w->has_pieces = w->has_pieces || is_piece(name);
    return OT_PUSH(w->a, w->all, w->n, w->cap, x) ? OT_OK : ot_fail_nomem(w->m->diag);
}

static bool is_constant_node(const ot_graph *g, ot_id n)
{
    return !g->nodes[n].dead && g->nodes[n].op == OT_OP_Constant;
}

/* What the file has under the name of v; NULL: no constant. Of Constant nodes in bodies nobody has
 * asked yet what they make. */
static const ot_tensor *written(const ot_graph *g, const ot_value *v)
{
    if (v->removed || v->is_outer) return NULL;
    if (v->producer != OT_NONE) {
        if (!is_constant_node(g, v->producer)) return NULL;
        const ot_attr *a = ot_attr_find(&g->nodes[v->producer], "value");
        return a && a->kind == OT_ATTR_TENSOR ? a->t : NULL;
    }
    return !(g->props & OT_P_USES) || v->n_uses > 0 ? v->init : NULL;
}

/* Of g and the bodies in it; bodies that the importer left in the file's form are read. */
static ot_status collect(work *w, ot_graph *g)
{
    for (ot_id v = 0; v < g->n_values; v++) {
        const ot_tensor *t = written(g, &g->values[v]);
        if (t) OT_TRY(add_stored(w, g->values[v].name, t));
    }
    for (ot_id id = 0; id < g->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        for (uint32_t k = 0; !n->dead && k < n->n_attrs; k++) {
            ot_graph *body = n->attrs[k].g;
            if (!ot_attr_has_graph(w->m, &n->attrs[k])) continue;
            if (n->attrs[k].kind != OT_ATTR_GRAPH)
                OT_TRY(ot_import_body(w->m, &n->attrs[k], g, &body));
            OT_TRY(collect(w, body));
        }
    }
    return OT_OK;
}

static ot_status open_work(work *w, ot_model *m)
{
    *w = (work){.a = ot_arena_new(), .m = m};
    w->by_name = w->a ? ot_map_new(w->a) : NULL;
    return w->by_name ? collect(w, m->graph) : ot_fail_nomem(m->diag);
}

static int by_key(const void *a, const void *b)
{
    const stored *x = a, *y = b;
    const uintptr_t p = (uintptr_t)x->key, q = (uintptr_t)y->key;
    return p != q ? (p < q ? -1 : 1) : strcmp(x->name, y->name);
}

static bool fits(const ot_tensor *a, const ot_tensor *b)
{
    int64_t n, m;
    return a->dtype == b->dtype && ot_product(a->dims, a->rank, &n) &&
           ot_product(b->dims, b->rank, &m) && n == m;
}

/* Requires the list to be sorted. Contents that were made anew, but equal, are found, too: of
 * several the first that was collected, wherever they lie. */
static const stored *find_stored(const work *w, const ot_tensor *t)
{
    size_t low = 0, high = w->n;
    const uintptr_t key = (uintptr_t)key_of(t);
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if ((uintptr_t)w->all[mid].key < key)
            low = mid + 1;
        else
            high = mid;
    }
    for (size_t k = low; key && k < w->n && (uintptr_t)w->all[k].key == key; k++)
        if (fits(w->all[k].tensor, t)) return &w->all[k];
    const stored *equal = NULL;
    for (size_t k = 0; t->data && k < w->n; k++) {
        const ot_tensor *x = w->all[k].tensor;
        if (equal && equal->order < w->all[k].order) continue;
        if (x->data && x->bytes == t->bytes && fits(x, t) &&
            memcmp(x->data, t->data, t->bytes) == 0)
            equal = &w->all[k];
    }
    return equal;
}

/* Piece k of the constant that is called `base`; NULL: there is none. */
static const stored *piece_of(const work *w, const char *base, size_t n, unsigned k)
{
    char name[1024];
    const int length = snprintf(name, sizeof name, "%.*s/%u", (int)n, base, k);
    const uint32_t at = length > 0 && (size_t)length < sizeof name ? ot_map_get(w->by_name, name)
                                                                   : OT_NONE;
    return at == OT_NONE ? NULL : &w->all[at];
}

/* The pieces of `base` have the contents of t, one after the other. */
static bool are_pieces(const work *w, const char *base, size_t n, const ot_tensor *t)
{
    size_t at = 0;
    for (unsigned k = 0; at < t->bytes; k++) {
        const stored *x = piece_of(w, base, n, k);
        if (!x || !x->tensor->data || x->tensor->dtype != t->dtype || x->tensor->bytes == 0 ||
            x->tensor->bytes > t->bytes - at)
            return false;
        const char *here = (const char *)t->data + at;
        if (x->tensor->data != here && memcmp(x->tensor->data, here, x->tensor->bytes) != 0)
            return false;
        at += x->tensor->bytes;
    }
    return true;
}

/* What pieces with the contents of t are called, without their numbers; NULL: there are none. */
static const char *find_pieces(const work *w, const ot_tensor *t)
{
    for (size_t k = 0; w->has_pieces && k < w->n && t->data && t->bytes > 0; k++) {
        const char *name = w->all[k].name, *number = strrchr(name, '/');
        if (is_piece(name) && number && strcmp(number, "/0") == 0 &&
            are_pieces(w, name, (size_t)(number - name), t))
            return ot_format(w->a, "%.*s", (int)(number - name), name);
    }
    return NULL;
}

/* ---- writing ---- */

/* m as it is, in m's own tables: for as long as nobody edits these. Who takes over another model
 * (ot_model_adopt) takes new ones. */
static ot_status share(ot_model *m, ot_model **out)
{
    ot_model *x = ot_model_like(m);
    *out = NULL;
    if (!x) return ot_fail_nomem(m->diag);
    *x->graph = *m->graph;
    x->graph->model = x;
    x->graph->proto = NULL;
    x->graph->by_name = ot_map_copy(x->arena, m->graph->by_name);
    x->names = ot_map_copy(x->arena, m->names);
    if (x->names && x->graph->by_name) {
        *out = x;
        return OT_OK;
    }
    ot_model_free(x);
    return ot_fail_nomem(m->diag);
}

ot_status ot_run_keep_original(ot_run *r)
{
    ot_model_free(r->original);
    r->original = NULL;
    if (r->options.emit_engine) return OT_OK;
    /* shapes of the others are inferred anew while they are planned */
    return r->options.keep_dynamic ? ot_model_clone(r->model, &r->original)
                                   : share(r->model, &r->original);
}

ot_status ot_run_part_original(ot_run *r)
{
    if (!r->original || r->original->graph->nodes != r->model->graph->nodes) return OT_OK;
    ot_model_free(r->original);
    r->original = NULL;
    return ot_model_clone(r->model, &r->original);
}

static bool is_fill(const ot_tensor *t)
{
    const size_t size = ot_dtype_bits(t->dtype) / 8;
    return size > 0 && t->bytes > size &&
           memcmp(t->data, (const char *)t->data + size, t->bytes - size) == 0;
}

/* What the text says of a constant: its contents, or which one of the file has them. *known false:
 * neither. */
static ot_status refer(const work *w, const ot_tensor **t, bool *known)
{
    int64_t n;
    if (!*known || !ot_product((*t)->dims, (*t)->rank, &n)) return OT_OK;
    const bool plain = (*t)->data && ot_dtype_bits((*t)->dtype) >= 8;
    const stored *x = n > 0 || !plain ? find_stored(w, *t) : NULL;
    const char *name = x ? x->name : plain && n > 0 ? find_pieces(w, *t) : NULL;
    if (!name) {
        *known = plain && (n <= OT_TEXT_BRIEF || is_fill(*t));
        return OT_OK;
    }
    ot_tensor *named = OT_NEW(w->a, ot_tensor);
    if (!named) return ot_fail_nomem(w->m->diag);
    *named = **t;
    named->data = NULL;
    named->stored = name;
    *t = named;
    return OT_OK;
}

static bool is_taken(const ot_node *n)
{
    bool taken = n->calls_function;
    for (uint32_t k = 0; k < n->n_attrs; k++) taken |= n->attrs[k].kind == OT_ATTR_OPAQUE;
    return taken;
}

/* The node of g that makes what `n` of `of` makes first, unchanged; NULL: there is none. */
static const ot_node *same_node(const ot_graph *g, const ot_graph *of, const ot_node *n)
{
    ot_id v = n->n_out > 0 && n->out[0] != OT_NONE ? ot_value_find(g, of->values[n->out[0]].name)
                                                   : OT_NONE;
    if (v == OT_NONE || g->values[v].producer == OT_NONE) return NULL;
    const ot_node *same = &g->nodes[g->values[v].producer];
    return !same->dead && same->proto && strcmp(same->op_type, n->op_type) == 0 &&
                   strcmp(same->domain, n->domain) == 0 && same->n_in == n->n_in &&
                   same->n_out == n->n_out && same->n_attrs == n->n_attrs
               ? same
               : NULL;
}

static ot_status refer_node(const work *w, ot_graph *g, ot_node *n, bool *known)
{
    *known = *known && (!is_taken(n) || same_node(w->m->graph, g, n));
    if (n->n_attrs == 0) return OT_OK;
    ot_attr *attrs = ot_memdup(w->a, n->attrs, n->n_attrs * sizeof *attrs);
    if (!attrs) return ot_fail_nomem(w->m->diag);
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        *known = *known && attrs[k].kind != OT_ATTR_GRAPH;
        if (attrs[k].kind == OT_ATTR_TENSOR) OT_TRY(refer(w, &attrs[k].t, known));
    }
    n->attrs = attrs;
    return OT_OK;
}

static ot_status refer_all(const work *w, ot_graph *g, bool *known)
{
    for (ot_id v = 0; v < g->n_values && *known; v++) {
        ot_value *x = &g->values[v];
        if (!x->is_tensor && x->producer == OT_NONE) *known = false; /* sparse, sequences */
        if (x->init && x->producer == OT_NONE && !x->removed) OT_TRY(refer(w, &x->init, known));
    }
    for (ot_id n = 0; n < g->n_nodes && *known; n++)
        if (!g->nodes[n].dead) OT_TRY(refer_node(w, g, &g->nodes[n], known));
    return OT_OK;
}

static ot_status print(const ot_graph *g, ot_model *m)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    ot_status s = f ? ot_text_print_brief(g, f) : OT_E_NOMEM;
    if (f && fclose(f) != 0) s = OT_E_NOMEM;
    m->original = s == OT_OK ? ot_strdup(m->arena, text) : NULL;
    free(text);
    return m->original ? OT_OK : ot_fail_nomem(m->diag);
}

/* What the tiles were made for. */
static ot_status note_goal(ot_model *m, const ot_plan_options *o)
{
    m->goal = o->goal == OT_GOAL_TIME ? "time"
                                      : ot_format(m->arena, "memory %.6g", o->max_slowdown);
    return m->goal ? OT_OK : ot_fail_nomem(m->diag);
}

static ot_status note(const work *w, ot_model *original, const ot_plan_options *o)
{
    bool known = !w->ambiguous;
    qsort(w->all, w->n, sizeof *w->all, by_key);
    for (size_t k = 0; k < w->n; k++)
        if (!ot_map_put(w->by_name, w->all[k].name, (uint32_t)k)) return ot_fail_nomem(w->m->diag);
    OT_TRY(refer_all(w, original->graph, &known));
    if (!known) return OT_OK;
    OT_TRY(note_goal(w->m, o));
    return print(original->graph, w->m);
}

/* The original as the tiled graph's constants are: with norms folded where they are there. */
static ot_status prepare(const ot_run *r, ot_model *of)
{
    of->source = r->model->source; /* borrowed: contents are read there */
    if (of == r->unbound) OT_TRY(ot_infer_shapes(of->graph, NULL, 0));
    OT_TRY(ot_assure(of->graph, OT_P_ORDER | OT_P_USES));
    if (r->selection.plan->folds_norms && (of->graph->props & OT_P_SHAPES))
        OT_TRY(ot_fold_norms(of->graph, true));
    OT_TRY(ot_assure(of->graph, OT_P_ORDER | OT_P_USES));
    return ot_assure(r->model->graph, OT_P_ORDER | OT_P_USES);
}

/* What is not understood of a file, its own subgraphs for one, is no failure here. */
static ot_status forgive(ot_model *m, ot_status s)
{
    if (s == OT_OK || s == OT_E_NOMEM) return s;
    *m->diag = (ot_diag){0};
    return OT_OK;
}

ot_status ot_run_note_original(ot_run *r)
{
    ot_model *of = r->selection.stays_dynamic && r->unbound ? r->unbound : r->original;
    work w = {.a = NULL};
    r->model->original = NULL;
    if (!of || !r->model->runtime) return OT_OK;
    ot_status s = prepare(r, of);
    if (s == OT_OK) s = open_work(&w, r->model);
    if (s == OT_OK) s = note(&w, of, &r->options.plan);
    ot_arena_free(w.a);
    return forgive(r->model, s);
}

/* ---- reading ---- */

static const char tiled[] = "the model is tiled for another runtime, and slower here than its "
                            "original: give that one";
static const char changed[] = "the model is tiled for another runtime, and was changed since: give "
                              "its original, which is faster here";

static bool has_tiles(const ot_graph *g)
{
    for (ot_id n = 0; n < g->n_nodes; n++)
        if (!g->nodes[n].dead && strncmp(g->nodes[n].name, "tile/r", 6) == 0) return true;
    return false;
}

/* t with the contents that the file has in pieces, as they lie there if they follow each other;
 * *out NULL: it does not have them. Fails: OT_E_NOMEM. */
static ot_status join(const work *w, const ot_tensor *t, const ot_tensor **out)
{
    const size_t n = strlen(t->stored);
    const int64_t bits = ot_dtype_bits(t->dtype);
    int64_t elems, bytes, at = 0, size;
    const char *first = NULL;
    bool follow = true;
    *out = NULL;
    if (bits < 8 || !ot_product(t->dims, t->rank, &elems) || !ot_mul_i64(elems, bits / 8, &bytes) ||
        bytes == 0)
        return OT_OK;
    for (unsigned k = 0; at < bytes; k++, at += size) {
        const stored *x = piece_of(w, t->stored, n, k);
        if (!x || !x->tensor->data || x->tensor->dtype != t->dtype || x->tensor->bytes == 0 ||
            x->tensor->bytes > (uint64_t)(bytes - at))
            return OT_OK;
        size = (int64_t)x->tensor->bytes;
        if (k == 0) first = x->tensor->data;
        follow = follow && x->tensor->data == first + at;
    }
    char *data = follow ? NULL : ot_alloc_n(w->m->arena, (size_t)bytes, 1);
    ot_tensor *x = OT_NEW(w->m->arena, ot_tensor);
    if (!x || !(follow || data)) return ot_fail_nomem(w->m->diag);
    at = 0;
    for (unsigned k = 0; !follow && at < bytes; k++) {
        const ot_tensor *piece = piece_of(w, t->stored, n, k)->tensor;
        memcpy(data + at, piece->data, piece->bytes);
        at += (int64_t)piece->bytes;
    }
    *x = *t;
    x->data = follow ? first : data;
    x->bytes = (size_t)bytes;
    x->stored = NULL;
    *out = x;
    return OT_OK;
}

/* The contents that the text says are elsewhere. *found false: they are not. */
static ot_status resolve(const work *w, const ot_tensor **t, bool *found)
{
    if (!(*t)->stored) return OT_OK;
    const uint32_t at = ot_map_get(w->by_name, (*t)->stored);
    if (at == OT_NONE && *found) {
        const ot_tensor *joined;
        OT_TRY(join(w, *t, &joined));
        *found = joined != NULL;
        if (joined) *t = joined;
        return OT_OK;
    }
    *found = *found && at != OT_NONE && fits(w->all[at].tensor, *t);
    if (!*found) return OT_OK;
    ot_tensor *x = ot_memdup(w->m->arena, w->all[at].tensor, sizeof *x);
    if (!x) return ot_fail_nomem(w->m->diag);
    x->rank = (*t)->rank;
    x->dims = (*t)->dims;
    *t = x;
    return OT_OK;
}

/* Attributes that are not in the text. */
static void take_node(const work *w, const ot_graph *g, ot_node *n, bool *found)
{
    const ot_node *same = same_node(w->m->graph, g, n);
    *found = *found && same;
    if (!*found) return;
    n->attrs = same->attrs;
    n->proto = same->proto;
    n->calls_function = same->calls_function;
}

static ot_status resolve_all(const work *w, ot_graph *g, bool *found)
{
    for (ot_id v = 0; v < g->n_values && *found; v++)
        if (g->values[v].init) OT_TRY(resolve(w, &g->values[v].init, found));
    for (ot_id id = 0; id < g->n_nodes && *found; id++) {
        ot_node *n = &g->nodes[id];
        for (uint32_t k = 0; k < n->n_attrs; k++)
            if (n->attrs[k].kind == OT_ATTR_TENSOR) OT_TRY(resolve(w, &n->attrs[k].t, found));
        const bool called = n->op == OT_OP_OPAQUE && n->n_attrs == 0;
        if (is_taken(n) || (called && same_node(w->m->graph, g, n))) take_node(w, g, n, found);
    }
    return OT_OK;
}

/* *found: m was the model of that text, and is again. */
static ot_status restore(ot_model *m, const char *text, bool *found)
{
    ot_diag own = {0};
    ot_model *x = NULL;
    work w;
    ot_status s = ot_text_parse(text, strlen(text), &own, &x);
    *found = s == OT_OK;
    if (s != OT_OK) return s == OT_E_NOMEM ? ot_fail_nomem(m->diag) : OT_OK;
    x->diag = m->diag;
    s = open_work(&w, m);
    if (s == OT_OK) s = resolve_all(&w, x->graph, found);
    ot_arena_free(w.a);
    if (s != OT_OK || !*found) {
        ot_model_free(x);
        return s;
    }
    m->lender = x;
    m->weight_bytes = x->weight_bytes;
    return ot_model_adopt(m, x); /* no memory, or nothing fails */
}

/* Files of versions that did not say it, and what nobody understands: memory, as tiles are for. */
static void read_goal(const ot_model *m, ot_original *out)
{
    static const char memory[] = "memory ";
    const char *goal = ot_import_note(m, OT_NOTE_GOAL);
    out->goal = goal && strcmp(goal, "time") == 0 ? OT_GOAL_TIME : OT_GOAL_MEMORY;
    out->max_slowdown = OT_MAX_SLOWDOWN;
    if (!goal || strncmp(goal, memory, sizeof memory - 1) != 0) return;
    const double x = strtod(goal + sizeof memory - 1, NULL);
    if (x >= 0 && x <= 10) out->max_slowdown = x;
}

ot_status ot_restore_original(ot_model *m, ot_original *out)
{
    const char *runtime = ot_import_note(m, OT_NOTE_RUNTIME);
    const char *text = ot_import_note(m, OT_NOTE_ORIGINAL);
    *out = (ot_original){0};
    const ot_runtime *r = runtime ? ot_runtime_named(runtime) : NULL;
    if (!runtime || (r && ot_runtime_in_classes(r)) || !(text || has_tiles(m->graph))) return OT_OK;
    out->why = tiled;
    if (!text) return OT_OK;
    read_goal(m, out);
    char *end;
    bool found = false;
    const uint64_t mark = strtoull(text, &end, 16);
    out->why = changed;
    if (end == text || *end != '\n' || mark != ot_import_mark(m)) return OT_OK;
    const ot_status s = restore(m, end + 1, &found);
    out->restored = found && s == OT_OK;
    OT_TRY(forgive(m, s));
    out->why = out->restored ? NULL : tiled;
    return OT_OK;
}

ot_status ot_run_original(ot_model *m, FILE *f, ot_original *out)
{
    OT_TRY(ot_restore_original(m, out));
    if (out->why && f) fprintf(f, "onnx-tile: warning: %s\n", out->why);
    return OT_OK;
}
