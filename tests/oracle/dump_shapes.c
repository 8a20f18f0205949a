/* Print what shape inference finds: one line `name dtype dims flags` per value of the top-level
 * graph.
 *
 *   dump_shapes MODEL [--shape INPUT=D,D,...]... [--known]
 *
 * dtype as numpy spells it, dims `1,3,?`, `-` for a scalar, `*` for an unknown rank; flags: c
 * is_const, k known contents, i graph input or initializer. --known adds the contents as
 * `=a,b,...`. Read by tests/oracle/shapes.py, which compares with onnx.shape_inference and with
 * what ONNX Runtime computes. Exit status as the tool's: 1 the model, 2 usage.
 */
#include "ops/ops.h"
#include "onnx/import/model_io.h"

#define MAX_BINDINGS 64

/* "name=1,3,224" into b; an empty list is a scalar. */
static bool parse_binding(ot_arena *a, const char *text, ot_shape_binding *b)
{
    const char *eq = strrchr(text, '=');
    int64_t *dims = OT_NEW_N(a, int64_t, OT_RANK_MAX);
    if (eq == NULL || dims == NULL) return false;
    b->input = ot_strndup(a, text, (size_t)(eq - text));
    b->dims = dims;
    b->rank = 0;
    for (const char *p = eq + 1; *p != '\0';) {
        char *end;
        if (b->rank == OT_RANK_MAX) return false;
        dims[b->rank++] = strtoll(p, &end, 10);
        if (end == p || (*end != ',' && *end != '\0')) return false;
        p = *end == ',' ? end + 1 : end;
    }
    return b->input != NULL;
}

static void print_value(const ot_value *v, bool with_known)
{
    printf("%s\t%s\t", v->name, ot_dtype_name(v->dtype));
    if (v->rank < 0) printf("*");
    if (v->rank == 0) printf("-");
    for (int32_t k = 0; k < v->rank; k++) {
        if (v->dims[k] < 0)
            printf("%s?", k > 0 ? "," : "");
        else
            printf("%s%lld", k > 0 ? "," : "", (long long)v->dims[k]);
    }
    printf("\t.%s%s%s%s", v->is_const ? "c" : "", v->known != NULL ? "k" : "",
           v->producer == OT_NONE ? "i" : "", v->is_tensor ? "" : "n");
    if (with_known && v->known != NULL) {
        printf("\t=");
        for (uint32_t k = 0; k < v->known_n; k++)
            printf("%s%lld", k > 0 ? "," : "", (long long)v->known[k]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    ot_arena *arena = ot_arena_new();
    ot_shape_binding bind[MAX_BINDINGS];
    size_t n_bind = 0;
    const char *path = NULL;
    bool with_known = false, usable = true;
    for (int k = 1; k < argc; k++) {
        if (strcmp(argv[k], "--known") == 0)
            with_known = true;
        else if (strcmp(argv[k], "--shape") == 0 && k + 1 < argc && n_bind < MAX_BINDINGS &&
                 parse_binding(arena, argv[k + 1], &bind[n_bind])) {
            n_bind++;
            k++;
        } else if (path == NULL && argv[k][0] != '-')
            path = argv[k];
        else
            usable = false;
    }
    if (arena == NULL || path == NULL || !usable) {
        fprintf(stderr, "usage: dump_shapes MODEL [--shape INPUT=D,D,...]... [--known]\n");
        return OT_E_USAGE;
    }
    ot_diag diag = {.status = OT_OK};
    ot_model *m = NULL;
    ot_status s = ot_import_file(path, &diag, &m);
    if (s == OT_OK) s = ot_infer_shapes(m->graph, bind, n_bind);
    if (s != OT_OK) fprintf(stderr, "%s\n", diag.message);
    for (uint32_t k = 0; s == OT_OK && k < m->graph->n_values; k++)
        print_value(&m->graph->values[k], with_known);
    ot_model_free(m);
    ot_arena_free(arena);
    return (int)s;
}
