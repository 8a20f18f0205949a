/* Ask the slice relation about one node and print the answers as JSON lines.
 *
 *   tile_one MODEL NODE_INDEX OUT_INDEX REQUEST...
 *
 * A request is one tile: "axis=lo:hi" or several, separated by commas. For each request one line:
 *
 *   {"refused": "why", "axis": 2}           an axis or window that cannot be made
 *   {"axes": [{axis, need, made, in_axis, out_axis, in, pad_lo, pad_hi, extra}],
 *    "kind": "clone"|"forward", "forward": k, "attrs": [...], "operands": [...], "drop": [...]}
 *
 * The Python side (access_ops.py) builds the tile's model from it and runs both in ONNX Runtime.
 * Values that are not changed by the tool ("keep": true) are taken from the original node there.
 */
#include <inttypes.h>

#include "ops/ops.h"
#include "onnx/import/model_io.h"

static void print_string(const char *s, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\' || c < 0x20 || c > 0x7e)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_ints(const int64_t *v, size_t n)
{
    putchar('[');
    for (size_t i = 0; i < n; i++) printf("%s%" PRId64, i ? "," : "", v[i]);
    putchar(']');
}

static void print_tensor(const ot_tensor *t)
{
    printf("{\"dtype\":%d,\"dims\":", (int)t->dtype);
    print_ints(t->dims, t->rank);
    printf(",\"hex\":\"");
    for (size_t i = 0; t->data && i < t->bytes; i++)
        printf("%02x", ((const unsigned char *)t->data)[i]);
    printf("\"}");
}

static void print_attr(const ot_attr *a)
{
    printf("{\"name\":");
    print_string(a->name, strlen(a->name));
    if (a->proto)
        printf(",\"keep\":true");
    else if (a->kind == OT_ATTR_INT)
        printf(",\"i\":%" PRId64, a->i);
    else if (a->kind == OT_ATTR_FLOAT)
        printf(",\"f\":%.9g", (double)a->f);
    else if (a->kind == OT_ATTR_INTS) {
        printf(",\"ints\":");
        print_ints(a->ints, a->n);
    } else if (a->kind == OT_ATTR_STRING) {
        printf(",\"s\":");
        print_string(a->s, a->n);
    } else if (a->kind == OT_ATTR_TENSOR) {
        printf(",\"t\":");
        print_tensor(a->t);
    }
    putchar('}');
}

static void print_cut(const ot_node *n, const ot_tile_axis *x, const int8_t *in_axis,
                      const int8_t *out_axis)
{
    const ot_op_tile *t = x->tile;
    printf("{\"axis\":%u,\"need\":[%" PRId64 ",%" PRId64 "],\"made\":[%" PRId64 ",%" PRId64 "]",
           x->axis, t->need.lo, t->need.hi, t->made.lo, t->made.hi);
    printf(",\"pad_lo\":%" PRId64 ",\"pad_hi\":%" PRId64 ",\"extra\":%" PRId64 ",\"in_axis\":[",
           t->pad_lo, t->pad_hi, t->extra);
    for (uint32_t i = 0; i < n->n_in; i++) printf("%s%d", i ? "," : "", in_axis[i]);
    printf("],\"out_axis\":[");
    for (uint32_t i = 0; i < n->n_out; i++) printf("%s%d", i ? "," : "", out_axis[i]);
    printf("],\"in\":[");
    for (uint32_t i = 0; i < n->n_in; i++)
        printf("%s[%" PRId64 ",%" PRId64 "]", i ? "," : "", t->in[i].lo, t->in[i].hi);
    printf("]}");
}

static void print_adapted(const ot_node *n, const ot_adapted *a)
{
    printf("],\"kind\":\"%s\",\"forward\":%u,\"attrs\":[",
           a->kind == OT_ADAPT_FORWARD ? "forward" : "clone", a->forward);
    for (uint32_t i = 0; i < a->n_attrs; i++) {
        if (i) putchar(',');
        print_attr(&a->attrs[i]);
    }
    printf("],\"operands\":[");
    for (uint32_t i = 0; i < a->n_operands; i++) {
        printf("%s{\"input\":%u,\"omit\":%s", i ? "," : "", a->operands[i].input,
               a->operands[i].omit ? "true" : "false");
        if (a->operands[i].tensor) {
            printf(",\"tensor\":");
            print_tensor(a->operands[i].tensor);
        }
        putchar('}');
    }
    printf("],\"drop\":[");
    for (uint32_t i = 0; i < n->n_in; i++)
        printf("%s%s", i ? "," : "", a->drop && a->drop[i] ? "true" : "false");
    printf("]}\n");
}

static bool refused(unsigned axis, const char *why)
{
    printf("{\"refused\":");
    print_string(why, strlen(why));
    printf(",\"axis\":%u}\n", axis);
    return true;
}

/* One request: parse, ask, print. false when the request itself is malformed or memory ran out. */
static bool answer(const ot_graph *g, const ot_node *n, uint32_t out_index, const char *request,
                   ot_arena *arena)
{
    ot_tile_axis cut[8] = {0};
    int8_t *in_axis[8], *out_axis[8];
    uint32_t n_cut = 0;
    for (const char *s = request; *s && n_cut < 8; n_cut++) {
        unsigned axis = 0;
        int64_t lo = 0, hi = 0;
        int used = 0;
        if (sscanf(s, "%u=%" SCNd64 ":%" SCNd64 "%n", &axis, &lo, &hi, &used) != 3) return false;
        s += used + (s[used] == ',');
        ot_op_tile *t = OT_NEW(arena, ot_op_tile);
        in_axis[n_cut] = OT_NEW_N(arena, int8_t, n->n_in + 1);
        out_axis[n_cut] = OT_NEW_N(arena, int8_t, n->n_out + 1);
        if (!t || !in_axis[n_cut] || !out_axis[n_cut]) return false;
        t->in = OT_NEW_N(arena, ot_win, n->n_in + 1);
        if (!t->in) return false;
        t->need = (ot_win){lo, hi};
        ot_why why = OT_WHY_NONE;
        if (!ot_access_axis(g, n, out_index, axis, in_axis[n_cut], out_axis[n_cut], &why))
            return refused(axis, ot_reason_sentence(why));
        if (!ot_access_window(g, n, out_index, axis, t, &why))
            return refused(axis, ot_reason_sentence(why));
        cut[n_cut] = (ot_tile_axis){out_index, axis, t};
    }
    ot_adapted a;
    if (ot_tile_adapt(g, n, cut, n_cut, arena, &a) != OT_OK) return false;
    printf("{\"axes\":[");
    for (uint32_t i = 0; i < n_cut; i++) {
        if (i) putchar(',');
        print_cut(n, &cut[i], in_axis[i], out_axis[i]);
    }
    print_adapted(n, &a);
    return true;
}

static int fail(const ot_diag *d)
{
    fprintf(stderr, "tile_one: %s\n", d->message);
    return 1;
}

int main(int argc, char **argv)
{
    static ot_diag diag;
    ot_model *m = NULL;
    if (argc < 5) {
        fprintf(stderr, "usage: tile_one MODEL NODE_INDEX OUT_INDEX axis=lo:hi[,axis=lo:hi]...\n");
        return 2;
    }
    if (ot_import_file(argv[1], &diag, &m) != OT_OK) return fail(&diag);
    if (ot_raise_undo(m) != OT_OK) return fail(&diag); /* the file's own node is asked for */
    if (ot_infer_shapes(m->graph, NULL, 0) != OT_OK) return fail(&diag);
    uint32_t node = (uint32_t)strtoul(argv[2], NULL, 10),
             out_index = (uint32_t)strtoul(argv[3], NULL, 10);
    int rc = node < m->graph->n_nodes ? 0 : 2;
    ot_arena *arena = ot_arena_new();
    for (int i = 4; rc == 0 && i < argc; i++) {
        if (!arena || !answer(m->graph, &m->graph->nodes[node], out_index, argv[i], arena)) {
            fprintf(stderr, "tile_one: bad request '%s'\n", argv[i]);
            rc = 2;
        }
    }
    ot_arena_free(arena);
    ot_model_free(m);
    return rc;
}
