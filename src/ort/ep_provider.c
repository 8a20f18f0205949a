/* The native engine as an execution provider of ONNX Runtime, for models as they are: a library for
 * OrtApi::RegisterExecutionProviderLibrary (docs/provider.md).
 *
 *   CreateEpFactories            one factory: it offers the processor
 *   factory -> create            one provider for each session that asks for it, with its options
 *   capability(graph)            what the engine runs as fast is taken, in parts
 *   compile(graphs)              each part is planned, and becomes one node (ep_part.c)
 *
 * Knows the engine by include/onnx_tile.h only.
 */
#include "ep_part.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EP_NAME    "OnnxTile"
#define EP_VENDOR  "onnx-tile"
#define KEY_PREFIX "ep." EP_NAME "." /* of the provider's options among the session's */

/* The release that copies between its processor and a provider in a library, and has no node for
 * that. */
#define NOT_MIXING "1.23.0"

enum { SIZES = 4, SIZES_MOST = 64 };

typedef struct factory {
    ort_ep_factory ep; /* first: the runtime hands it back */
    ep_tables tables;
} factory;

typedef struct provider {
    ort_ep ep; /* first, too */
    ep_tables tables;
    ep_settings settings;
} provider;

/* ---- options ---- */

static bool read_count(const char *text, long most, uint32_t *out)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < 1 || value > most) return false;
    *out = (uint32_t)value;
    return true;
}

static bool read_percent(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && isfinite(*out) && *out >= 0 && *out <= 1000;
}

/* NULL: the option is set; else what is wrong. */
static const char *set_option(ep_settings *s, const char *key, const char *value)
{
    if (strcmp(key, "goal") == 0) {
        s->goal = strcmp(value, "memory") == 0 ? ONNX_TILE_GOAL_MEMORY : ONNX_TILE_GOAL_TIME;
        return strcmp(value, "memory") == 0 || strcmp(value, "time") == 0 ? NULL
                                                                          : "is time or memory";
    }
    if (strcmp(key, "budget") == 0)
        return onnx_tile_parse_size(value, &s->budget) == ONNX_TILE_OK ? NULL : "is a size, as 64M";
    if (strcmp(key, "max_slowdown") == 0)
        return read_percent(value, &s->max_slowdown) ? NULL : "is from 0 to 1000 percent";
    if (strcmp(key, "threads") == 0)
        return read_count(value, ORT_THREADS_LIMIT, &s->threads) ? NULL : "is from 1 to 4096";
    if (strcmp(key, "sizes") == 0)
        return read_count(value, SIZES_MOST, &s->sizes) ? NULL : "is from 1 to 64";
    return "is none of budget, goal, max_slowdown, sizes, threads";
}

/* The provider's among the session's options. */
static ort_status *read_options(const ep_tables *t, const ort_options *o, ep_settings *s)
{
    const char *const *keys, *const *values;
    const size_t prefix = strlen(KEY_PREFIX);
    char line[400];
    const char *wrong = NULL;
    size_t n = 0;
    ort_pairs *all = NULL;
    TRY_ORT(CALL(t->api, ORT_OPTION_PAIRS, ort_option_pairs)(o, &all));
    CALL(t->api, ORT_PAIRS_ALL, ort_pairs_all)(all, &keys, &values, &n);
    for (size_t k = 0; !wrong && k < n; k++) {
        if (strncasecmp(keys[k], KEY_PREFIX, prefix) != 0) continue;
        wrong = set_option(s, keys[k] + prefix, values[k]);
        if (wrong)
            snprintf(line, sizeof line, "option '%.80s' %s, not '%.80s'", keys[k] + prefix, wrong,
                     values[k]);
    }
    CALL(t->api, ORT_RELEASE_PAIRS, ort_release_pairs)(all);
    return wrong ? ort_failure(t->api, EP_NAME, line) : NULL;
}

/* ---- which nodes ---- */

/* Of each node, the number of the part that takes it; -1: it stays. */
static ort_status *number_parts(const ep_tables *t, ep_model *model, const char *const *outputs,
                                size_t n, int32_t *part)
{
    onnx_tile *tile = NULL;
    if (onnx_tile_create(&tile) != ONNX_TILE_OK) return ort_failure(t->api, "out of memory", NULL);
    bool ok = !ep_pieces_lend(&model->pieces);
    ok = ok && onnx_tile_load_lent(tile, model->bytes.at, model->bytes.n, model->pieces.lent,
                                   model->pieces.n) == ONNX_TILE_OK;
    ok = ok && onnx_tile_engine_parts(tile, outputs, n, part) == ONNX_TILE_OK;
    ort_status *st = ok ? NULL : ort_failure(t->api, EP_NAME, onnx_tile_error(tile));
    onnx_tile_free(tile);
    return st;
}

/* One call for the nodes of each part, in the order of their first nodes. */
static ort_status *tell_parts(const ep_tables *t, const ort_node *const *nodes, size_t n,
                              int32_t *part, const ort_node **of_part, ort_support *out)
{
    const ort_fusion_options options = {ORT_VERSION_EP, true};
    for (size_t k = 0; !t->mixes && k < n; k++)
        if (part[k] < 0) return NULL;
    for (size_t k = 0; k < n; k++) {
        const int32_t which = part[k];
        size_t count = 0;
        if (which < 0) continue;
        for (size_t j = k; j < n; j++) {
            if (part[j] != which) continue;
            of_part[count++] = nodes[j];
            part[j] = -1;
        }
        TRY_ORT(t->ep->add_nodes(out, of_part, count, &options));
    }
    return NULL;
}

static ort_status *take_parts(const ep_tables *t, const ort_graph *g, const ort_node *const *nodes,
                              size_t n, ort_support *out)
{
    const char **outputs = calloc(n + 1, sizeof *outputs);
    int32_t *part = calloc(n + 1, sizeof *part);
    const ort_node **of_part = calloc(n + 1, sizeof *of_part);
    ep_model model = {0};
    ort_status *st = outputs && part && of_part ? NULL : ort_failure(t->api, "out of memory", NULL);
    for (size_t k = 0; !st && k < n; k++) {
        st = ep_first_output(t, nodes[k], &outputs[k]);
        if (!outputs[k]) outputs[k] = "";
    }
    if (!st) st = ep_model_write(t, g, NULL, true, &model);
    if (!st) st = number_parts(t, &model, outputs, n, part);
    if (!st) st = tell_parts(t, nodes, n, part, of_part, out);
    ep_model_free(&model);
    free(outputs);
    free(part);
    free(of_part);
    return st;
}

/* Does a node read what another graph around this one has? */
static ort_status *reads_outer(const ep_tables *t, const ort_node *n, bool *out)
{
    const ort_value_info **values;
    size_t count = 0;
    ort_status *st = ep_node_values(t, n, ORT_NODE_INPUT_COUNT, ORT_NODE_INPUTS, &values, &count);
    for (size_t k = 0; !st && !*out && k < count; k++)
        if (values[k]) st = CALL(t->api, ORT_VALUE_IS_OUTER, ort_value_is)(values[k], out);
    free(values);
    return st;
}

/* Graphs inside of nodes stay with the runtime; 1.23 does not tell the node around them. */
static ort_status *capability(ort_ep *ep, const ort_graph *g, ort_support *out)
{
    const ep_tables *t = &((provider *)ep)->tables;
    const ort_node **nodes;
    size_t n = 0;
    bool outer = false;
    ort_status *st = ep_graph_nodes(t, g, &nodes, &n);
    for (size_t k = 0; !st && !outer && k < n; k++) st = reads_outer(t, nodes[k], &outer);
    if (!st && !outer && n > 0) st = take_parts(t, g, nodes, n, out);
    free(nodes);
    return st;
}

/* ---- a provider ---- */

static const char *ep_name(const ort_ep *ep) { return (void)ep, EP_NAME; }

static void release_infos(ort_ep *ep, ort_compute_info **infos, size_t n)
{
    (void)ep;
    for (size_t k = 0; k < n; k++) ep_part_free(infos[k]);
}

static ort_status *compile(ort_ep *ep, const ort_graph **graphs, const ort_node **nodes, size_t n,
                           ort_compute_info **out, ort_node **contexts)
{
    const provider *p = (const provider *)ep;
    (void)contexts;
    for (size_t k = 0; k < n; k++)
        TRY_ORT(ep_part_new(&p->tables, &p->settings, graphs[k], nodes[k], &out[k]));
    return NULL;
}

static ort_status *create(ort_ep_factory *f, const ort_device *const *devices,
                          const ort_pairs *const *metadata, size_t n, const ort_options *options,
                          const ort_logger *logger, ort_ep **out)
{
    const ep_tables *t = &((factory *)f)->tables;
    provider *p = calloc(1, sizeof *p);
    (void)devices, (void)metadata, (void)n, (void)logger;
    *out = NULL;
    if (!p) return ort_failure(t->api, "out of memory", NULL);
    p->ep = (ort_ep){.version = ORT_VERSION_EP,
                     .name = ep_name,
                     .capability = capability,
                     .compile = compile,
                     .release_infos = release_infos};
    p->tables = *t;
    p->settings = (ep_settings){.goal = ONNX_TILE_GOAL_MEMORY, .max_slowdown = -1, .sizes = SIZES};
    ort_status *st = read_options(t, options, &p->settings);
    if (st)
        free(p);
    else
        *out = &p->ep;
    return st;
}

static void release(ort_ep_factory *f, ort_ep *ep)
{
    (void)f;
    free(ep);
}

/* ---- the factory ---- */

static const char *factory_name(const ort_ep_factory *f) { return (void)f, EP_NAME; }
static const char *factory_vendor(const ort_ep_factory *f) { return (void)f, EP_VENDOR; }
static uint32_t factory_vendor_id(const ort_ep_factory *f) { return (void)f, 0; }
static const char *factory_version(const ort_ep_factory *f) { return (void)f, onnx_tile_version(); }

/* Memory is the runtime's, on the processor, and no model is compiled beforehand. */
static ort_status *validate(ort_ep_factory *f, const ort_device *const *devices, size_t n,
                            const char *compiled, int *out)
{
    (void)f, (void)devices, (void)n, (void)compiled;
    *out = ORT_NOT_COMPILED;
    return NULL;
}
static ort_status *allocator(ort_ep_factory *f, const ort_memory *m, const ort_pairs *options,
                             ort_allocator **out)
{
    (void)f, (void)m, (void)options;
    *out = NULL;
    return NULL;
}
static void release_allocator(ort_ep_factory *f, ort_allocator *a) { (void)f, (void)a; }
static ort_status *transfer(ort_ep_factory *f, ort_transfer **out)
{
    (void)f;
    *out = NULL;
    return NULL;
}
static bool has_streams(const ort_ep_factory *f) { return (void)f, false; }
static ort_status *stream(ort_ep_factory *f, const ort_memory *m, const ort_pairs *options,
                          ort_stream **out)
{
    (void)f, (void)m, (void)options;
    *out = NULL;
    return NULL;
}

/* The first processor. */
static ort_status *supported(ort_ep_factory *f, const ort_device *const *devices, size_t n,
                             ort_ep_device **out, size_t most, size_t *n_out)
{
    const ep_tables *t = &((factory *)f)->tables;
    *n_out = 0;
    for (size_t k = 0; k < n && *n_out == 0 && most > 0; k++) {
        if (CALL(t->api, ORT_DEVICE_TYPE, ort_device_type)(devices[k]) != ORT_DEVICE_CPU) continue;
        TRY_ORT(t->ep->create_device(f, devices[k], NULL, NULL, &out[0]));
        *n_out = 1;
    }
    return NULL;
}

/* What ONNX Runtime calls by these names when the library is registered. */
__attribute__((visibility("default"))) ort_status *
CreateEpFactories(const char *name, const ort_base *base, const ort_logger *logger,
                  ort_ep_factory **factories, size_t most, size_t *n);
__attribute__((visibility("default"))) ort_status *ReleaseEpFactory(ort_ep_factory *f);

ort_status *CreateEpFactories(const char *name, const ort_base *base, const ort_logger *logger,
                              ort_ep_factory **factories, size_t most, size_t *n)
{
    char line[200];
    const int minor = ort_minor_version(base);
    (void)name, (void)logger;
    *n = 0;
    if (minor < ORT_VERSION_EP) { /* asking for a table that it lacks makes the runtime print */
        snprintf(line, sizeof line, "ONNX Runtime %.40s is too old: 1.%d or newer is needed",
                 base->version(), ORT_VERSION_EP);
        return ort_failure(base->get_api(1), line, NULL);
    }
    const ort_api *api = base->get_api(ORT_VERSION_EP);
    factory *f = most > 0 ? calloc(1, sizeof *f) : NULL;
    if (!f) return ort_failure(api, "out of memory", NULL);
    f->ep = (ort_ep_factory){.version = ORT_VERSION_EP,
                             .name = factory_name,
                             .vendor = factory_vendor,
                             .supported = supported,
                             .create = create,
                             .release = release,
                             .vendor_id = factory_vendor_id,
                             .library_version = factory_version,
                             .validate = validate,
                             .allocator = allocator,
                             .release_allocator = release_allocator,
                             .transfer = transfer,
                             .has_streams = has_streams,
                             .stream = stream};
    f->tables = (ep_tables){.api = api,
                            .ep = CALL(api, ORT_GET_EP_API, ort_get_ep_api)(),
                            .knows_shapes = minor >= ORT_VERSION_HAS_SHAPE,
                            .mixes = strcmp(base->version(), NOT_MIXING) != 0};
    factories[0] = &f->ep;
    *n = 1;
    return NULL;
}

ort_status *ReleaseEpFactory(ort_ep_factory *f)
{
    free(f);
    return NULL;
}
