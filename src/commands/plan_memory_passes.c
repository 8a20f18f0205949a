/* plan-memory: a kernel's text after each pass, for reports.
 *
 *   as written --> sizes and memories --> lifetimes, in place --> places
 */
#include "plan_memory_work.h"

#define TEXT_MAX ((size_t)1 << 20) /* larger kernels are not shown */

/* Of all buffers; the same for all memories. */
typedef struct ages {
    int64_t from, to;
} ages;

static ages ages_of(const ot_mem_plan *p)
{
    ages t = {INT64_MAX, 0};
    for (uint32_t b = 0; b < p->lifetimes->n_buffers; b++) {
        const ot_buffer *u = &p->lifetimes->buffers[b];
        if (u->n_live > 0) t.from = ot_min(t.from, u->live[0].lower);
        if (u->n_live > 0) t.to = ot_max(t.to, u->live[u->n_live - 1].upper);
    }
    return t;
}

/* The next slot of a buffer, above all that are there; false: memory ran out, or too many bytes. */
static bool add_box(ot_memory_work *w, ot_map_plot *m, size_t *cap, ot_map_box box)
{
    size_t n = m->n;
    ot_map_box *boxes = (ot_map_box *)m->boxes;
    if (!box.name || !OT_PUSH(w->r->arena, boxes, n, *cap, box)) return false;
    m->boxes = boxes;
    m->n = (uint32_t)n;
    m->height = ot_max(m->height, box.offset + box.size);
    return true;
}

static const char *slot_name(ot_memory_work *w, const char *name, uint32_t slot, uint32_t slots)
{
    return slots > 1 ? ot_format(w->r->arena, "%s[%u]", name, slot) : ot_strdup(w->r->arena, name);
}

/* Each alloc at a place of its own, for as long as the kernel runs. */
static bool put_allocs(ot_memory_work *w, const ot_kernel *k, ot_scope scope, ages t,
                       ot_map_plot *m)
{
    size_t cap = 0;
    for (uint32_t v = 0; v < k->n_values; v++) {
        const ot_tk_value *x = &k->values[v];
        if (x->kind != OT_TK_BUFFER || x->scope != scope) continue;
        for (uint32_t slot = 0; slot < ot_max(x->multi, 1); slot++)
            if (!add_box(w, m, &cap,
                         (ot_map_box){slot_name(w, x->name, slot, x->multi), t.from, t.to,
                                      m->height, x->bytes, 0}))
                return false;
    }
    return true;
}

/* What shares a storage once, while it is alive, one above the other. */
static bool put_storages(ot_memory_work *w, const ot_kernel *k, const ot_mem_plan *p,
                         ot_scope scope, ot_map_plot *m)
{
    size_t cap = 0;
    for (uint32_t b = 0; b < p->lifetimes->n_buffers; b++) {
        const ot_buffer *u = &p->lifetimes->buffers[b];
        for (uint32_t slot = 0; u->scope == scope && slot < p->multi[b]; slot++) {
            const char *name = slot_name(w, k->values[u->values[0]].name, slot, p->multi[b]);
            const int64_t at = m->height;
            for (uint32_t j = 0; j < u->n_live; j++)
                if (!add_box(
                        w, m, &cap,
                        (ot_map_box){name, u->live[j].lower, u->live[j].upper, at, u->size, 0}))
                    return false;
        }
    }
    return true;
}

static ot_map_plot *draw(ot_memory_work *w, const ot_kernel *k, const ot_mem_plan *p, bool merged)
{
    const ages t = ages_of(p);
    ot_map_plot *plots = OT_NEW_N(w->r->arena, ot_map_plot, p->n_scopes + 1u);
    for (uint32_t s = 0; plots && s < p->n_scopes; s++) {
        const ot_scope scope = p->scopes[s].scope;
        plots[s] = ot_memory_plot_of(&p->scopes[s], ot_scope_name(scope), "statement");
        plots[s].height = 0;
        plots[s].from = t.from;
        plots[s].to = t.to;
        if (!(merged ? put_storages(w, k, p, scope, &plots[s])
                     : put_allocs(w, k, scope, t, &plots[s])))
            return NULL;
    }
    return plots;
}

/* ---- texts ---- */

/* The kernel as text; NULL: no memory. */
static char *print(const ot_kernel *k)
{
    char *bytes = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&bytes, &n);
    if (!f) return NULL;
    ot_status s = ot_kernel_print(k, f);
    if (fclose(f) == 0 && s == OT_OK) return bytes;
    free(bytes);
    return NULL;
}

/* The buffer that the line allocates; OT_NONE: it allocates none. */
static uint32_t allocated(const ot_kernel *k, const ot_mem_plan *p, const char *line)
{
    line += strspn(line, " ");
    const char *words[] = {"alloc ", "workspace ", "reducer ", "var "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strncmp(line, words[i], strlen(words[i])) != 0) continue;
        const char *name = line + strlen(words[i]);
        const size_t n = strcspn(name, ": \n");
        for (uint32_t b = 0; b < p->lifetimes->n_buffers; b++) {
            const ot_buffer *u = &p->lifetimes->buffers[b];
            for (uint32_t j = 0; j < u->n_values; j++) {
                const char *own = k->values[u->values[j]].name;
                if (strlen(own) == n && memcmp(own, name, n) == 0) return b;
            }
        }
    }
    return OT_NONE;
}

/* "  # statements 9 to 11; one place for a, b" */
static void put_comment(const ot_kernel *k, const ot_buffer *u, FILE *f)
{
    fputs("  #", f);
    for (uint32_t j = 0; j < u->n_live; j++)
        fprintf(f, "%s %lld to %lld", j ? "," : " statements", (long long)u->live[j].lower,
                (long long)u->live[j].upper - 1);
    if (u->n_live == 0) fputs(" never alive", f);
    for (uint32_t j = 0; u->n_values > 1 && j < u->n_values; j++)
        fprintf(f, "%s%s", j ? ", " : "; one place for ", k->values[u->values[j]].name);
}

/* The text with the lifetime of each buffer behind its alloc; NULL: no memory. */
static char *comment(const ot_kernel *k, const ot_mem_plan *p, const char *text)
{
    char *bytes = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&bytes, &n);
    if (!f) return NULL;
    while (*text) {
        const size_t length = strcspn(text, "\n");
        const uint32_t b = allocated(k, p, text);
        fwrite(text, 1, length, f);
        if (b != OT_NONE) put_comment(k, &p->lifetimes->buffers[b], f);
        fputc('\n', f);
        text += length + (text[length] == '\n');
    }
    if (fclose(f) == 0) return bytes;
    free(bytes);
    return NULL;
}

static bool add(ot_memory_work *w, ot_memory_pass pass, const char *text, const ot_map_plot *plots,
                uint32_t n)
{
    if (!text || !(pass.text = ot_strdup(w->r->arena, text))) return false;
    pass.plots = plots;
    pass.n_plots = plots ? n : 0;
    w->r->passes[w->r->n_passes++] = pass;
    return true;
}

ot_status ot_memory_keep_passes(ot_memory_work *w, ot_kernel *k, const ot_mem_plan *p)
{
    const ot_memory_pass written = {"written", "As written", "The text that was read.", 0, 0, 0},
                         chosen = {"chosen",
                                   "Sizes and memories",
                                   "Sizes, shapes and memories that the text leaves open are "
                                   "chosen. Nothing is known of lifetimes: every buffer has a "
                                   "place of its own.",
                                   0,
                                   0,
                                   0},
                         merged = {"merged",
                                   "Lifetimes and in place",
                                   "From the first write to the last read; outputs take the "
                                   "places of inputs that nobody reads any more.",
                                   0,
                                   0,
                                   0},
                         placed = {"placed",
                                   "Places",
                                   "Buffers that are not needed at one time share bytes. The maps "
                                   "are those of the section above.",
                                   0,
                                   0,
                                   0};
    if (!w->run->keep_maps || w->n_input > TEXT_MAX) return OT_OK;
    char *input = ot_format(w->r->arena, "%.*s", (int)w->n_input, w->input);
    char *before = print(k), *noted = before ? comment(k, p, before) : NULL, *after = NULL;
    const ot_map_plot *apart = draw(w, k, p, false), *stacked = draw(w, k, p, true);
    w->r->passes = OT_NEW_N(w->r->arena, ot_memory_pass, 4);
    bool ok = w->r->passes && apart && stacked && input;
    ok = ok && add(w, written, input, NULL, 0) && add(w, chosen, before, apart, p->n_scopes) &&
         add(w, merged, noted, stacked, p->n_scopes);
    ot_mem_plan_apply(p, k);
    if (ok) after = print(k);
    ok = ok && add(w, placed, after, NULL, 0);
    free(before);
    free(noted);
    free(after);
    return ok ? OT_OK : ot_fail_nomem(w->d);
}
