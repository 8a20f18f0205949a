/* Geometry as text, as JSON, and as the fields of bioimage.io. */
#include "geometry.h"

static void print_axis(const ot_geometry_axis *x, FILE *f)
{
    fprintf(f, "  axis %u of axis %u: align %lld, scale %lld/%lld, offset %lld, halo %lld + %lld, ",
            x->axis, x->input_axis, (long long)x->align, (long long)x->num, (long long)x->den,
            (long long)x->offset, (long long)x->halo_lo, (long long)x->halo_hi);
    fprintf(f, "at least %lld rows, receptive field %lld", (long long)x->least,
            (long long)x->receptive_field);
    if (!x->any_extent)
        fprintf(f, "; of extents that are %lld modulo %lld", (long long)(x->extent % x->align),
                (long long)x->align);
    fputc('\n', f);
}

static void print_barrier(const ot_geometry_barrier *b, FILE *f)
{
    fprintf(f, "  in the way of axis %u: node ", b->input_axis);
    ot_put_shown(b->name, f);
    fputs(" (", f);
    ot_put_shown(b->op, f);
    fprintf(f, "), %s: ", ot_geometry_kind_name(b->kind));
    ot_put_shown(b->why, f);
    fputc('\n', f);
}

ot_status ot_geometry_print(const ot_geometry *g, FILE *f)
{
    for (uint32_t k = 0; k < g->n_pairs; k++) {
        const ot_geometry_pair *p = &g->pairs[k];
        fputs("output ", f);
        ot_put_shown(p->output, f);
        fputs(" of input ", f);
        ot_put_shown(p->input, f);
        fputc('\n', f);
        for (uint32_t j = 0; j < p->n_axes; j++) print_axis(&p->axes[j], f);
        for (uint32_t j = 0; j < p->n_barriers; j++) print_barrier(&p->barriers[j], f);
        if (p->n_axes + p->n_barriers == 0) fprintf(f, "  no axis can be cropped\n");
    }
    if (g->n_pairs == 0) fprintf(f, "no output has an axis of an input that can be cropped\n");
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

static void put_axis(ot_json *j, const ot_geometry_axis *x)
{
    ot_json_open(j, NULL);
    ot_json_put_int(j, "axis", x->axis);
    ot_json_put_int(j, "input_axis", x->input_axis);
    ot_json_put_int(j, "align", x->align);
    ot_json_put_int(j, "num", x->num);
    ot_json_put_int(j, "den", x->den);
    ot_json_put_int(j, "offset", x->offset);
    ot_json_put_int(j, "halo_lo", x->halo_lo);
    ot_json_put_int(j, "halo_hi", x->halo_hi);
    ot_json_put_int(j, "least", x->least);
    ot_json_put_int(j, "receptive_field", x->receptive_field);
    ot_json_put_truth(j, "any_extent", x->any_extent);
    ot_json_put_int(j, "extent", x->extent);
    ot_json_put_int(j, "output_extent", x->made);
    ot_json_close(j);
}

void ot_geometry_put(ot_json *j, const ot_geometry *g)
{
    ot_json_list(j, "inputs");
    for (uint32_t k = 0; k < g->n_inputs; k++) ot_json_put_text(j, NULL, g->inputs[k]);
    ot_json_close(j);
    ot_json_list(j, "outputs");
    for (uint32_t k = 0; k < g->n_pairs; k++) {
        const ot_geometry_pair *p = &g->pairs[k];
        ot_json_open(j, NULL);
        ot_json_put_text(j, "name", p->output);
        ot_json_put_text(j, "input", p->input);
        ot_json_list(j, "axes");
        for (uint32_t i = 0; i < p->n_axes; i++) put_axis(j, &p->axes[i]);
        ot_json_close(j);
        ot_json_list(j, "barriers");
        for (uint32_t i = 0; i < p->n_barriers; i++) {
            const ot_geometry_barrier *b = &p->barriers[i];
            ot_json_open(j, NULL);
            ot_json_put_text(j, "node", b->name);
            ot_json_put_text(j, "op", b->op);
            ot_json_put_text(j, "kind", ot_geometry_kind_name(b->kind));
            ot_json_put_text(j, "why", b->why);
            ot_json_put_int(j, "input_axis", b->input_axis);
            ot_json_close(j);
        }
        ot_json_close(j);
        ot_json_close(j);
    }
    ot_json_close(j);
}

ot_status ot_geometry_json(const ot_geometry *g, FILE *f)
{
    ot_json j = {.f = f};
    ot_json_open(&j, NULL);
    ot_geometry_put(&j, g);
    ot_json_close(&j);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

/* ---- bioimage.io ---- */

/* The axis of pair p that follows the output's axis, or the input's where of_input; NULL: none. */
static const ot_geometry_axis *find_axis(const ot_geometry_pair *p, uint32_t axis, bool of_input)
{
    for (uint32_t k = 0; k < p->n_axes; k++)
        if ((of_input ? p->axes[k].input_axis : p->axes[k].axis) == axis) return &p->axes[k];
    return NULL;
}

/* The smallest extents of an input that its outputs take, and the steps between them. */
static void put_input(ot_json *j, const ot_geometry *g, const char *input)
{
    uint32_t rank = 0;
    for (uint32_t k = 0; k < g->n_pairs; k++)
        if (strcmp(g->pairs[k].input, input) == 0) rank = g->pairs[k].input_rank;
    ot_json_open(j, NULL);
    ot_json_put_text(j, "id", input);
    ot_json_list(j, "axes");
    for (uint32_t a = 0; a < rank; a++) {
        int64_t least = 0, step = 0;
        for (uint32_t k = 0; k < g->n_pairs; k++) {
            const ot_geometry_axis *x = strcmp(g->pairs[k].input, input) == 0
                                            ? find_axis(&g->pairs[k], a, true)
                                            : NULL;
            if (!x) continue;
            least = ot_max(least, x->extent - (x->extent - x->least) / x->align * x->align);
            step = x->align; /* one for all outputs */
        }
        if (step == 0) continue;
        ot_json_open(j, NULL);
        ot_json_put_int(j, "axis", a);
        ot_json_put_int(j, "min", least);
        ot_json_put_int(j, "step", step);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_close(j);
}

/* halo, in rows of the output: what to cut off of both of its ends. offset: output rows = scale *
 * input rows + 2 offset. */
static void put_output(ot_json *j, const ot_geometry_pair *p)
{
    ot_json_open(j, NULL);
    ot_json_put_text(j, "id", p->output);
    ot_json_put_text(j, "reference", p->input);
    ot_json_list(j, "axes");
    for (uint32_t k = 0; k < p->n_axes; k++) {
        const ot_geometry_axis *x = &p->axes[k];
        const double scale = (double)x->num / (double)x->den,
                     offset = ((double)x->made - scale * (double)x->extent) / 2;
        const int64_t most = ot_max(x->halo_lo + ot_max(x->offset, 0), x->halo_hi);
        ot_json_open(j, NULL);
        ot_json_put_int(j, "axis", x->axis);
        ot_json_put_int(j, "reference_axis", x->input_axis);
        ot_json_put_number(j, "scale", scale);
        ot_json_put_number(j, "offset", offset);
        ot_json_put_int(j, "halo", ot_ceil_div(most * x->num, x->den));
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_close(j);
}

ot_status ot_geometry_bioimage(const ot_geometry *g, FILE *f)
{
    ot_json j = {.f = f};
    ot_json_open(&j, NULL);
    ot_json_list(&j, "inputs");
    for (uint32_t k = 0; k < g->n_inputs; k++) put_input(&j, g, g->inputs[k]);
    ot_json_close(&j);
    ot_json_list(&j, "outputs");
    for (uint32_t k = 0; k < g->n_pairs; k++) put_output(&j, &g->pairs[k]);
    ot_json_close(&j);
    ot_json_close(&j);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
