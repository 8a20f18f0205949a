/* Example: tile a model with the library.
 *
 *   optimise IN.onnx OUT.onnx [l2-bytes [REPORT.html]]
 *
 * Reads the model, plans for the lowest memory, writes the result, a report of it when asked
 * for, and prints its figures as JSON. Then does the same in memory and checks that both ways
 * give the same bytes.
 */
#include <onnx_tile.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A whole file in malloc'ed memory; NULL when it cannot be read. */
static void *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    long size;
    if (!f) return NULL;
    if (fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0) {
        fclose(f);
        return NULL;
    }
    void *bytes = malloc((size_t)size + 1);
    *n = (size_t)size;
    if (bytes && fread(bytes, 1, *n, f) != *n) {
        free(bytes);
        bytes = NULL;
    }
    fclose(f);
    return bytes;
}

static onnx_tile_status set_options(onnx_tile *t, int64_t l2)
{
    onnx_tile_status s = onnx_tile_set_target(t, "cpu-generic");
    if (s == ONNX_TILE_OK) s = onnx_tile_set_goal(t, ONNX_TILE_GOAL_MEMORY);
    if (s == ONNX_TILE_OK) s = onnx_tile_set_l2(t, l2);
    if (s == ONNX_TILE_OK) s = onnx_tile_keep_report(t, 1);
    return s;
}

/* File to file. */
static onnx_tile_status tile_file(onnx_tile *t, const char *in, const char *out)
{
    const char *json;
    onnx_tile_status s = onnx_tile_load_file(t, in);
    if (s == ONNX_TILE_OK) s = onnx_tile_optimise(t);
    if (s == ONNX_TILE_OK) s = onnx_tile_save_file(t, out);
    if (s == ONNX_TILE_OK) s = onnx_tile_results_json(t, &json);
    if (s == ONNX_TILE_OK) fputs(json, stdout);
    return s;
}

/* Memory to memory, with the same handle. */
static onnx_tile_status tile_memory(onnx_tile *t, const char *in, void **out, size_t *n)
{
    size_t size = 0;
    void *bytes = read_file(in, &size);
    onnx_tile_status s = onnx_tile_load_memory(t, bytes, bytes ? size : 1, NULL);
    free(bytes); /* the library keeps its own copy */
    if (s == ONNX_TILE_OK) s = onnx_tile_optimise(t);
    if (s == ONNX_TILE_OK) s = onnx_tile_save_memory(t, out, n);
    return s;
}

static int same_bytes(const char *path, const void *bytes, size_t n)
{
    size_t m = 0;
    void *file = read_file(path, &m);
    int same = file && m == n && memcmp(file, bytes, n) == 0;
    free(file);
    return same;
}

int main(int argc, char **argv)
{
    onnx_tile *t;
    void *bytes = NULL;
    size_t n = 0;

    if (argc < 3) {
        fprintf(stderr, "usage: %s IN.onnx OUT.onnx [l2-bytes [REPORT.html]]\n", argv[0]);
        return 2;
    }
    if (onnx_tile_create(&t) != ONNX_TILE_OK) return 4;
    onnx_tile_status s = set_options(t, argc > 3 ? atoll(argv[3]) : 0);
    if (s == ONNX_TILE_OK) s = tile_file(t, argv[1], argv[2]);
    if (s == ONNX_TILE_OK && argc > 4) s = onnx_tile_save_report(t, argv[4]);
    if (s == ONNX_TILE_OK) s = tile_memory(t, argv[1], &bytes, &n);
    if (s != ONNX_TILE_OK) fprintf(stderr, "%s: %s\n", argv[0], onnx_tile_error(t));
    int same = s == ONNX_TILE_OK && same_bytes(argv[2], bytes, n);
    if (s == ONNX_TILE_OK && !same) fprintf(stderr, "%s: file and memory differ\n", argv[0]);
    onnx_tile_free_bytes(bytes);
    onnx_tile_free(t);
    return same ? 0 : 1;
}
