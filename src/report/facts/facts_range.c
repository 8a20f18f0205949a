/* What holds over a range of sizes, as facts and as the terminal shows it. */
#include "facts.h"
#include "facts_range.h"

#include "base/json.h"

static bool copy_text(ot_arena *a, const char **text)
{
    if (!*text) return true;
    *text = ot_strdup(a, *text);
    return *text != NULL;
}

static bool copy_side(ot_arena *a, ot_bounds_side *s)
{
    return copy_text(a, &s->live_at) && copy_text(a, &s->growth_at) && copy_text(a, &s->why);
}

static void text(ot_fact_entry *e, uint32_t *n, const char *id, const char *title,
                 const char *value)
{
    if (value) e[(*n)++] = (ot_fact_entry){id, title, value, OT_ABSENT, ""};
}

static void bytes(ot_fact_entry *e, uint32_t *n, const char *id, const char *title, int64_t value)
{
    if (value > 0) e[(*n)++] = (ot_fact_entry){id, title, NULL, (double)value, "bytes"};
}

/* As a table of a report. */
static bool make_entries(ot_facts *f)
{
    const ot_bounds_side *u = &f->range->untiled, *t = &f->range->tiled;
    ot_fact_entry e[18];
    uint32_t n = 0;
    text(e, &n, "sizes", "Range", f->range->text);
    text(e, &n, "untiled-verdict", "Untiled", ot_bounds_verdict_name(u->verdict));
    text(e, &n, "untiled-why", "Untiled, why unknown", u->why);
    bytes(e, &n, "untiled-live-bytes", "Untiled, live at once", u->live_bytes);
    text(e, &n, "untiled-live-at", "Untiled, at", u->live_at);
    bytes(e, &n, "untiled-growth-bytes", "Untiled, peak resident growth (predicted)",
          u->growth_bytes);
    text(e, &n, "untiled-growth-at", "Untiled, resident growth at", u->growth_at);
    bytes(e, &n, "untiled-process-bytes", "Untiled, whole process (predicted)", u->process_bytes);
    text(e, &n, "tiled-verdict", "Tiled", ot_bounds_verdict_name(t->verdict));
    text(e, &n, "tiled-why", "Tiled, why unknown", t->why);
    bytes(e, &n, "tiled-live-bytes", "Tiled, live at once", t->live_bytes);
    text(e, &n, "tiled-live-at", "Tiled, at", t->live_at);
    bytes(e, &n, "tiled-growth-bytes", "Tiled, peak resident growth (predicted)", t->growth_bytes);
    text(e, &n, "tiled-growth-at", "Tiled, resident growth at", t->growth_at);
    bytes(e, &n, "tiled-process-bytes", "Tiled, whole process (predicted)", t->process_bytes);
    f->range_entries = ot_memdup(f->arena, e, n * sizeof *e);
    f->n_range_entries = n;
    return f->range_entries != NULL;
}

ot_status ot_facts_add_bounds(ot_facts *f, const ot_bounds_facts *r, ot_diag *d)
{
    ot_bounds_facts *copy = ot_memdup(f->arena, r, sizeof *r);
    if (!copy || !copy_text(f->arena, &copy->text) || !copy_side(f->arena, &copy->untiled) ||
        !copy_side(f->arena, &copy->tiled))
        return ot_fail_nomem(d);
    f->range = copy;
    return make_entries(f) ? OT_OK : ot_fail_nomem(d);
}

/* "untiled at most 1.2 GiB at 1x3x2160x3840 (proved), process up to 2.1 GiB (predicted)" */
static void print_side(const char *name, const ot_bounds_side *s, FILE *f)
{
    char bytes[32], process[32];
    fprintf(f, "  range: %-7s ", name);
    if (s->verdict == OT_BOUNDS_UNKNOWN) {
        fprintf(f, "unknown: %s", s->why);
        if (s->live_at)
            fprintf(f, " (%s at %s was seen)\n",
                    ot_format_bytes((double)s->live_bytes, bytes, sizeof bytes), s->live_at);
        else
            fputc('\n', f);
        return;
    }
    fprintf(f, "at most %s live at %s (%s)",
            ot_format_bytes((double)s->live_bytes, bytes, sizeof bytes), s->live_at,
            ot_bounds_verdict_name(s->verdict));
    if (s->growth_bytes > 0)
        fprintf(f, "; resident growth up to %s, whole process %s, at %s (predicted)",
                ot_format_bytes((double)s->growth_bytes, bytes, sizeof bytes),
                ot_format_bytes((double)s->process_bytes, process, sizeof process), s->growth_at);
    fputc('\n', f);
}

void ot_bounds_print(const ot_bounds_facts *r, FILE *f)
{
    fputc('\n', f);
    print_side("untiled", &r->untiled, f);
    print_side("tiled", &r->tiled, f);
}

static void put_side(ot_json *j, const char *name, const ot_bounds_side *s)
{
    ot_json_open(j, name);
    ot_json_put_text(j, "verdict", ot_bounds_verdict_name(s->verdict));
    if (s->live_at) {
        ot_json_put_int(j, "peak_bytes", s->live_bytes);
        ot_json_put_text(j, "peak_at", s->live_at);
    }
    if (s->growth_at) {
        ot_json_put_int(j, "growth_bytes", s->growth_bytes);
        ot_json_put_text(j, "growth_at", s->growth_at);
        ot_json_put_int(j, "process_bytes", s->process_bytes);
    }
    if (s->why) ot_json_put_text(j, "why", s->why);
    ot_json_close(j);
}

void ot_bounds_put(const ot_bounds_facts *r, ot_json *j)
{
    ot_json_open(j, "range");
    if (r->text) ot_json_put_text(j, "sizes", r->text);
    put_side(j, "untiled", &r->untiled);
    put_side(j, "tiled", &r->tiled);
    ot_json_close(j);
}
