/* What changed between two reports: after a change of the code, of the target or of the model.
 *
 *   a.xml --xml_read.c--> facts --.                       nodes     by name (k-th of a name to the
 *                                                                   k-th)
 *                                  +--> pairs of things    regions   by shared nodes, the largest
 *                                                                    share first
 *   b.xml --xml_read.c--> facts --'         |              the rest  by id
 *                                           v
 *                                  compare_page.c: one page
 *
 * A region keeps no name from one plan to the next, so two regions belong together when they
 * hold the same nodes, mostly.
 */
#include "compare.h"

#include "onnx/export/out_file.h"
#include "report/facts/facts_table.h"

/* ---- pairs by name ---- */

typedef struct named_list {
    const void *items;
    uint32_t n;
    size_t size, name; /* of an item; where it has its name */
} named_list;

static const char *name_at(const named_list *l, uint32_t k)
{
    return fact_text_at((const char *)l->items + k * l->size, l->name);
}

/* Names may come again: the k-th of a name is the counterpart of the k-th. */
static ot_status pair_by_name(ot_arena *a, const named_list *before, const named_list *after,
                              compare_list *out)
{
    ot_map *map = ot_map_new(a);
    uint32_t *next = OT_NEW_N(a, uint32_t, after->n);
    bool *taken = OT_NEW_N(a, bool, after->n);
    out->pairs = ot_alloc_n(a, (size_t)before->n + after->n, sizeof *out->pairs);
    if (!map || !next || !taken || !out->pairs) return OT_E_NOMEM;
    for (uint32_t k = after->n; k-- > 0;) {
        next[k] = ot_map_get(map, name_at(after, k));
        if (!ot_map_put(map, name_at(after, k), k)) return OT_E_NOMEM;
    }
    for (uint32_t k = 0; k < before->n; k++) {
        uint32_t found = ot_map_get(map, name_at(before, k));
        out->pairs[out->n++] = (compare_pair){k, found};
        if (found == OT_NONE) continue;
        taken[found] = true;
        if (!ot_map_put(map, name_at(before, k), next[found])) return OT_E_NOMEM;
    }
    for (uint32_t k = 0; k < after->n; k++)
        if (!taken[k]) out->pairs[out->n++] = (compare_pair){OT_NONE, k};
    return OT_OK;
}

#define NAMED(f, member, type, key) \
    (&(named_list){(f)->member, (f)->n_##member, sizeof(type), offsetof(type, key)})
#define PAIR(c, member, type, key, out)                          \
    pair_by_name((c)->a, NAMED((c)->side[0], member, type, key), \
                 NAMED((c)->side[1], member, type, key), &(c)->out)

/* ---- regions ---- */

typedef struct overlap {
    uint32_t before, after, shared;
} overlap;

static int by_regions(const void *x, const void *y)
{
    const overlap *a = x, *b = y;
    if (a->before != b->before) return a->before < b->before ? -1 : 1;
    return a->after < b->after ? -1 : a->after > b->after;
}

static int by_share(const void *x, const void *y)
{
    const overlap *a = x, *b = y;
    if (a->shared != b->shared) return a->shared > b->shared ? -1 : 1;
    return by_regions(x, y);
}

/* Pairs of regions that share nodes, with how many, the largest share first; at most nodes.n of
 * them. */
static uint32_t find_overlaps(const comparison *c, overlap *list)
{
    uint32_t n = 0, kept = 0;
    for (uint32_t k = 0; k < c->nodes.n; k++) {
        compare_pair p = c->nodes.pairs[k];
        if (p.before == OT_NONE || p.after == OT_NONE) continue;
        overlap o = {c->side[0]->nodes[p.before].region, c->side[1]->nodes[p.after].region, 1};
        if (o.before != OT_NONE && o.after != OT_NONE) list[n++] = o;
    }
    if (n == 0) return 0;
    qsort(list, n, sizeof *list, by_regions);
    for (uint32_t k = 1; k < n; k++) {
        if (by_regions(&list[kept], &list[k]) == 0)
            list[kept].shared++;
        else
            list[++kept] = list[k];
    }
    qsort(list, kept + 1, sizeof *list, by_share);
    return kept + 1;
}

static ot_status pair_regions(comparison *c)
{
    uint32_t before = c->side[0]->n_regions, after = c->side[1]->n_regions;
    overlap *list = OT_NEW_N(c->a, overlap, c->nodes.n);
    bool *taken = OT_NEW_N(c->a, bool, after);
    c->regions.pairs = ot_alloc_n(c->a, (size_t)before + after, sizeof *c->regions.pairs);
    c->shared = ot_alloc_n(c->a, (size_t)before + after, sizeof *c->shared);
    if (!list || !taken || !c->regions.pairs || !c->shared) return OT_E_NOMEM;
    for (uint32_t k = 0; k < before; k++)
        c->regions.pairs[c->regions.n++] = (compare_pair){k, OT_NONE};
    uint32_t n = find_overlaps(c, list);
    for (uint32_t k = 0; k < n; k++) {
        compare_pair *p = &c->regions.pairs[list[k].before];
        if (p->after != OT_NONE || taken[list[k].after]) continue;
        p->after = list[k].after;
        c->shared[list[k].before] = list[k].shared;
        taken[list[k].after] = true;
    }
    for (uint32_t k = 0; k < after; k++)
        if (!taken[k]) c->regions.pairs[c->regions.n++] = (compare_pair){OT_NONE, k};
    return OT_OK;
}

bool ot_compare_same_tiling(const ot_fact_region *a, const ot_fact_region *b)
{
    if (a->n_dims != b->n_dims || strcmp(a->form, b->form) != 0) return false;
    for (uint32_t d = 0; d < a->n_dims; d++)
        if (strcmp(a->axes[d], b->axes[d]) != 0 || a->tiles[d] != b->tiles[d]) return false;
    return true;
}

/* ---- figures ---- */

double ot_compare_figure(const ot_fact_card *card)
{
    if (!card) return OT_ABSENT;
    return card->after >= 0 ? card->after : card->before;
}

const ot_fact_card *ot_compare_card(const comparison *c, int side, uint32_t k)
{
    return k == OT_NONE ? NULL : &c->side[side]->cards[k];
}

/* ---- nodes ---- */

const char *const ot_compare_change_words[COMPARE_CHANGES] = {"",
                                                              "newly tiled",
                                                              "no longer tiled",
                                                              "in another region",
                                                              "tiled anew",
                                                              "only in the model after",
                                                              "only in the model before"};

static compare_change change_of(const comparison *c, compare_pair p)
{
    if (p.before == OT_NONE) return COMPARE_NEW;
    if (p.after == OT_NONE) return COMPARE_GONE;
    uint32_t before = c->side[0]->nodes[p.before].region, after = c->side[1]->nodes[p.after].region;
    if (before == OT_NONE && after == OT_NONE) return COMPARE_SAME;
    if (before == OT_NONE) return COMPARE_TILED;
    if (after == OT_NONE) return COMPARE_UNTILED;
    /* the first pairs are the regions before, in order */
    if (c->regions.pairs[before].after != after) return COMPARE_MOVED;
    return ot_compare_same_tiling(&c->side[0]->regions[before], &c->side[1]->regions[after])
               ? COMPARE_SAME
               : COMPARE_RETILED;
}

static ot_status find_changes(comparison *c)
{
    c->change = OT_NEW_N(c->a, compare_change, c->nodes.n);
    if (!c->change) return OT_E_NOMEM;
    for (uint32_t k = 0; k < c->nodes.n; k++) {
        c->change[k] = change_of(c, c->nodes.pairs[k]);
        c->n_changes[c->change[k]]++;
    }
    return OT_OK;
}

static ot_status find_pairs(comparison *c)
{
    OT_TRY(PAIR(c, cards, ot_fact_card, id, cards));
    OT_TRY(PAIR(c, nodes, ot_fact_node, name, nodes));
    OT_TRY(PAIR(c, target_entries, ot_fact_entry, id, target));
    OT_TRY(PAIR(c, environment, ot_fact_entry, id, environment));
    OT_TRY(PAIR(c, memory_entries, ot_fact_entry, id, memory));
    OT_TRY(PAIR(c, maps, ot_fact_map, id, maps));
    OT_TRY(pair_regions(c));
    return find_changes(c);
}

/* ---- the command ---- */

typedef ot_status comparison_writer(const comparison *c, FILE *out);

static ot_status write_whole(const comparison *c, comparison_writer *write, const char *path,
                             ot_diag *d)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);
    ot_status st = memory ? write(c, memory) : OT_E_NOMEM;
    if (memory && fclose(memory) != 0) st = OT_E_NOMEM;
    if (st == OT_OK)
        st = ot_out_write(path, text, n, d);
    else
        st = ot_fail_nomem(d);
    free(text);
    return st;
}

static ot_status compare(comparison *c, comparison_writer *write, const char *output, ot_diag *d)
{
    ot_fact_kind before = c->side[0]->kind, after = c->side[1]->kind;
    if (before != after)
        return ot_fail(
            d, OT_E_INPUT,
            "%s is a report of %s, %s one of %s: only reports of one command can be compared",
            c->path[0], ot_fact_kind_name(before), c->path[1], ot_fact_kind_name(after));
    ot_status st = find_pairs(c);
    return st == OT_OK ? write_whole(c, write, output, d) : ot_fail_nomem(d);
}

static ot_status compare_files(const char *before, const char *after, comparison_writer *write,
                               const char *output, ot_diag *d)
{
    ot_facts *f[2] = {NULL, NULL};
    ot_arena *a = ot_arena_new();
    ot_status st = a ? ot_report_read(before, d, &f[0]) : ot_fail_nomem(d);
    if (st == OT_OK) st = ot_report_read(after, d, &f[1]);
    if (st == OT_OK) {
        comparison c = {.side = {f[0], f[1]}, .path = {before, after}, .a = a};
        st = compare(&c, write, output, d);
    }
    ot_facts_free(f[0]);
    ot_facts_free(f[1]);
    ot_arena_free(a);
    return st;
}

ot_status ot_compare_reports(const char *before, const char *after, const char *output, ot_diag *d)
{
    return compare_files(before, after, ot_compare_write, output, d);
}

ot_status ot_compare_summary(const char *before, const char *after, const char *output, ot_diag *d)
{
    return compare_files(before, after, ot_compare_markdown, output, d);
}
