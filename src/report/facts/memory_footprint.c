/* The footprint of a plan on a terminal, and in JSON.
 *
 *   footprint of ub: 193536 of 196608 bytes
 *     lines    alive  buffers  4 KiB more there
 *     8         4096        1  fit at 65536
 *     9-10     69632        3  fit at 193536: 1024 bytes higher
 *     14      194560        6  fit, if others move
 *     15      196608        7  take the place of b (4096)
 *     most is alive in line 15: a x2 (131072), c (61440), b (4096)
 *     4 KiB less, if these go: b (4096)
 *     with 192512 bytes: reuse, level 1, 2 pairs across pipes
 *     with 200704 bytes: as now
 */
#include "facts_number.h"
#include "memory_results.h"

#define NAME      40
#define SHOWN_MAX 12 /* buffers of a list on a terminal */

/* ---- terminal ---- */

/* a x2 (65536), b (4096) and 3 more */
static void print_buffers(const ot_footprint_buffer *list, uint32_t n, FILE *f)
{
    for (uint32_t i = 0; i < n && i < SHOWN_MAX; i++) {
        char name[NAME + 4], slots[16] = "";
        ot_fact_short(list[i].name, NAME, name);
        if (list[i].slots > 1) snprintf(slots, sizeof slots, " x%u", list[i].slots);
        fprintf(f, "%s%s%s (%lld)", i ? ", " : "", name, slots, (long long)list[i].bytes);
    }
    if (n > SHOWN_MAX) fprintf(f, " and %u more", n - SHOWN_MAX);
}

static void print_next(const ot_footprint_line *x, FILE *f)
{
    switch (x->next) {
    case OT_NEXT_HOLE: fprintf(f, "fit at %lld", (long long)x->offset); break;
    case OT_NEXT_GROWS:
        fprintf(f, "fit at %lld: %lld bytes higher", (long long)x->offset, (long long)x->growth);
        break;
    case OT_NEXT_MOVES: fputs("fit, if others move", f); break;
    case OT_NEXT_GOES:
        if (x->n_goes == 0) fprintf(f, "lack %lld bytes", (long long)x->missing);
        if (x->n_goes > 0) fputs("take the place of ", f);
        print_buffers(x->goes, x->n_goes, f);
        break;
    }
    fputc('\n', f);
}

static void format_lines(const ot_footprint_line *x, char *text, size_t room)
{
    if (x->line == x->last_line)
        snprintf(text, room, "%u", x->line);
    else
        snprintf(text, room, "%u-%u", x->line, x->last_line);
}

static void print_lines(const ot_footprint_scope *s, FILE *f)
{
    char lines[32];
    size_t width = 5;
    for (uint32_t i = 0; i < s->n_lines; i++) {
        format_lines(&s->lines[i], lines, sizeof lines);
        if (strlen(lines) > width) width = strlen(lines);
    }
    fprintf(f, "    %-*s  %10s  %7s  4 KiB more there\n", (int)width, "lines", "alive", "buffers");
    for (uint32_t i = 0; i < s->n_lines; i++) {
        const ot_footprint_line *x = &s->lines[i];
        format_lines(x, lines, sizeof lines);
        fprintf(f, "    %-*s  %10lld  %7u  ", (int)width, lines, (long long)x->live, x->n_buffers);
        print_next(x, f);
    }
}

static bool is_same(const ot_scope_plan *a, const ot_scope_plan *b)
{
    return a->mode == b->mode && a->level == b->level && a->n_cross_pipe == b->n_cross_pipe &&
           a->n_upgraded == b->n_upgraded;
}

static void print_price(const ot_footprint_price *x, const ot_scope_plan *now, FILE *f)
{
    if (x->capacity == 0) return;
    fprintf(f, "    with %lld bytes: ", (long long)x->capacity);
    if (!x->fits) {
        fputs(x->certain ? "nothing fits\n" : "no plan found\n", f);
        return;
    }
    if (is_same(&x->plan, now)) {
        fputs("as now\n", f);
        return;
    }
    fputs(ot_mem_mode_name(x->plan.mode), f);
    if (x->plan.level != OT_LEVEL_NONE) fprintf(f, ", level %d", (int)x->plan.level);
    fprintf(f, ", %u pair%s across pipes", x->plan.n_cross_pipe,
            x->plan.n_cross_pipe == 1 ? "" : "s");
    if (x->plan.n_upgraded > 0) fprintf(f, ", %u doubled", x->plan.n_upgraded);
    fputs(x->certain ? "\n" : ", or better\n", f);
}

static void print_scope(const ot_footprint_scope *s, FILE *f)
{
    const ot_scope_plan *p = s->plan;
    char lines[32];
    fprintf(f, "\n  footprint of %s: %lld", ot_scope_name(p->scope), (long long)p->height);
    if (p->capacity > 0) fprintf(f, " of %lld", (long long)p->capacity);
    fputs(" bytes\n", f);
    print_lines(s, f);
    format_lines(&s->lines[s->peak], lines, sizeof lines);
    fprintf(f, "    most is alive in line %s: ", lines);
    print_buffers(s->at_peak, s->n_at_peak, f);
    if (s->n_goes > 0) {
        fputs("\n    4 KiB less, if these go: ", f);
        print_buffers(s->goes, s->n_goes, f);
    }
    fputc('\n', f);
    print_price(&s->less, p, f);
    print_price(&s->more, p, f);
}

void ot_memory_footprint_print(const ot_memory_results *r, FILE *f)
{
    for (uint32_t s = 0; s < r->footprint.n_scopes; s++) print_scope(&r->footprint.scopes[s], f);
}

/* ---- JSON ---- */

static void put_buffers(const char *key, const ot_footprint_buffer *list, uint32_t n, ot_json *j)
{
    ot_json_list(j, key);
    for (uint32_t i = 0; i < n; i++) {
        ot_json_open(j, NULL);
        ot_json_put_text(j, "name", list[i].name);
        ot_json_put_int(j, "bytes", list[i].bytes);
        ot_json_put_int(j, "slots", list[i].slots);
        ot_json_close(j);
    }
    ot_json_close(j);
}

static void put_line(const ot_footprint_line *x, ot_json *j)
{
    const bool placed = x->next == OT_NEXT_HOLE || x->next == OT_NEXT_GROWS;
    ot_json_open(j, NULL);
    ot_json_put_int(j, "line", x->line);
    ot_json_put_int(j, "last_line", x->last_line);
    ot_json_put_int(j, "live_bytes", x->live);
    ot_json_put_int(j, "buffers", x->n_buffers);
    ot_json_put_text(j, "next", ot_footprint_next_name(x->next));
    if (placed) ot_json_put_int(j, "offset_bytes", x->offset);
    if (x->next == OT_NEXT_GROWS) ot_json_put_int(j, "growth_bytes", x->growth);
    if (x->next == OT_NEXT_GOES) {
        ot_json_put_int(j, "missing_bytes", x->missing);
        put_buffers("goes", x->goes, x->n_goes, j);
    }
    ot_json_close(j);
}

static void put_price(const char *key, const ot_footprint_price *x, ot_json *j)
{
    if (x->capacity == 0) {
        ot_json_put_null(j, key);
        return;
    }
    ot_json_open(j, key);
    ot_json_put_int(j, "capacity_bytes", x->capacity);
    ot_json_put_truth(j, "fits", x->fits);
    ot_json_put_truth(j, "certain", x->certain);
    if (x->fits) {
        ot_json_put_int(j, "height_bytes", x->plan.height);
        ot_json_put_text(j, "mode", ot_mem_mode_name(x->plan.mode));
        if (x->plan.level == OT_LEVEL_NONE)
            ot_json_put_null(j, "level");
        else
            ot_json_put_int(j, "level", (int)x->plan.level);
        ot_json_put_int(j, "doubled", x->plan.n_upgraded);
        ot_json_put_int(j, "cross_pipe", x->plan.n_cross_pipe);
    }
    ot_json_close(j);
}

static void put_scope(const ot_footprint_scope *s, ot_json *j)
{
    ot_json_open(j, NULL);
    ot_json_put_text(j, "scope", ot_scope_name(s->plan->scope));
    ot_json_put_int(j, "step_bytes", OT_FOOTPRINT_STEP);
    ot_json_list(j, "lines");
    for (uint32_t i = 0; i < s->n_lines; i++) put_line(&s->lines[i], j);
    ot_json_close(j);
    ot_json_put_int(j, "peak_line", s->lines[s->peak].line);
    ot_json_put_int(j, "peak_bytes", s->lines[s->peak].live);
    put_buffers("at_peak", s->at_peak, s->n_at_peak, j);
    put_buffers("goes", s->goes, s->n_goes, j);
    put_price("less", &s->less, j);
    put_price("more", &s->more, j);
    ot_json_close(j);
}

void ot_memory_footprint_json(const ot_memory_results *r, ot_json *j)
{
    ot_json_list(j, "footprint");
    for (uint32_t s = 0; s < r->footprint.n_scopes; s++) put_scope(&r->footprint.scopes[s], j);
    ot_json_close(j);
}
