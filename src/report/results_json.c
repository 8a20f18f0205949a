/* Results as one JSON object, for programs. Keys are a promise: see docs/onnx-tile.1.
 *
 * Names come from strangers' models: quotes, control characters and broken UTF-8 are escaped or
 * replaced (U+FFFD), and numbers that JSON has no word for (NaN, infinity) become 0.
 */
#include "results.h"

#include <math.h>

/* Length of the valid UTF-8 sequence at s (at least 2), or 0. */
static size_t utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } kinds[] = {{0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t k = 0; k < 3; k++) {
        if ((s[0] & kinds[k].mask) != kinds[k].lead) continue;
        uint32_t code = (uint32_t)(s[0] & (unsigned char)~kinds[k].mask);
        for (size_t j = 1; j <= k + 1; j++) {
            if ((s[j] & 0xc0) != 0x80) return 0;
            code = code << 6 | (s[j] & 0x3fu);
        }
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        return code < kinds[k].least || code > 0x10ffff || surrogate ? 0 : k + 2;
    }
    return 0;
}

static void put_string(const char *text, FILE *f)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', f);
    while (*s) {
        size_t n = 1;
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(f, "\\u%04x", *s);
        else if (*s < 0x80)
            fputc(*s, f);
        else if ((n = utf8_length(s)) != 0)
            fwrite(s, 1, n, f);
        else {
            fputs("\\ufffd", f);
            n = 1;
        }
        s += n;
    }
    fputc('"', f);
}

static void put_number(double v, FILE *f)
{
    fprintf(f, "%.12g", isfinite(v) ? v : 0.0);
}

static void put_names(const char *const *names, uint32_t n, FILE *f)
{
    fputc('[', f);
    for (uint32_t k = 0; k < n; k++) {
        if (k) fputs(", ", f);
        put_string(names[k], f);
    }
    fputc(']', f);
}

static void put_figures(const char *key, const ot_figures *v, FILE *f)
{
    fprintf(f, "  \"%s\": {\"time_s\": ", key);
    put_number(v->time_s, f);
    fprintf(f, ", \"peak_bytes\": %lld, \"traffic_bytes\": ", (long long)v->peak_bytes);
    put_number(v->traffic_bytes, f);
    fputs("},\n", f);
}

static void put_region(const ot_result_region *r, FILE *f)
{
    fprintf(f, "{\"id\": %u, \"nodes\": ", r->id);
    put_names(r->nodes, r->n_nodes, f);
    fputs(", \"axes\": ", f);
    put_names(r->axes, r->n_dims, f);
    fputs(", \"tiles\": [", f);
    for (uint32_t d = 0; d < r->n_dims; d++) fprintf(f, "%s%u", d ? ", " : "", r->tiles[d]);
    fputs("], \"form\": ", f);
    put_string(r->form, f);
    fprintf(f, ", \"working_set_bytes\": %lld, \"time_untiled_s\": ", (long long)r->working_set);
    put_number(r->time_untiled, f);
    fputs(", \"time_tiled_s\": ", f);
    put_number(r->time_tiled, f);
    fputs(", \"benefit_s\": ", f);
    put_number(r->benefit, f);
    fputs(", \"mac_ratio\": ", f);
    put_number(r->mac_ratio, f);
    fputs(", \"traffic_bytes\": ", f);
    put_number(r->traffic, f);
    fputc('}', f);
}

/* Between list items: a new line, and a comma after the first. */
static void put_separator(uint32_t k, FILE *f)
{
    fputs(k ? ",\n    " : "\n    ", f);
}

static void put_lists(const ot_results *r, FILE *f)
{
    fputs("  \"regions\": [", f);
    for (uint32_t k = 0; k < r->n_regions; k++) {
        put_separator(k, f);
        put_region(&r->regions[k], f);
    }
    fputs("],\n  \"barriers\": [", f);
    for (uint32_t k = 0; k < r->n_barriers; k++) {
        put_separator(k, f);
        fputs("{\"node\": ", f);
        put_string(r->barriers[k].node, f);
        fputs(", \"op\": ", f);
        put_string(r->barriers[k].op, f);
        fputs(", \"reason\": ", f);
        put_string(r->barriers[k].reason, f);
        fputc('}', f);
    }
    fputs("],\n  \"refused\": [", f);
    for (uint32_t k = 0; k < r->n_refused; k++) {
        put_separator(k, f);
        fputs("{\"nodes\": ", f);
        put_names(r->refused[k].nodes, r->refused[k].n_nodes, f);
        fputs(", \"reason\": ", f);
        put_string(r->refused[k].reason, f);
        fputc('}', f);
    }
    fputs("]\n}\n", f);
}

ot_status ot_results_json(const ot_results *r, FILE *f)
{
    double before = r->untiled.time_s, after = r->tiled.time_s;

    fputs("{\n  \"model\": ", f);
    put_string(r->model, f);
    fputs(",\n  \"target\": {\"name\": ", f);
    put_string(r->target, f);
    fprintf(f, ", \"l2_bytes\": %lld},\n", (long long)r->fast_bytes);
    put_figures("untiled", &r->untiled, f);
    put_figures("tiled", &r->tiled, f);
    fputs("  \"compulsory_bytes\": ", f);
    put_number(r->compulsory_bytes, f);
    fputs(",\n  \"activation_sum_bytes\": ", f);
    put_number(r->activation_sum, f);
    fputs(",\n  \"benefit_s\": ", f);
    put_number(before - after, f);
    fputs(",\n  \"speedup\": ", f);
    put_number(after > 0 ? before / after : 1.0, f);
    fputs(",\n", f);
    put_lists(r, f);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
