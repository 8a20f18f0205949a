/* What is not tiled and why: barriers (nodes that no tile can pass) and refusals (groups that
 * could be tiled and are not), each gathered by reason, most frequent first.
 *
 *   12  reads all of its input at once            count, reason
 *       Softmax 11, TopK                          operators
 *       would be lifted by: ...
 *       > nodes                                   names, as many as the page has room for
 */
#include "html.h"

#define GROUPS_MOST 120  /* reasons shown one by one */
#define NAMES_MOST  50   /* of a group */
#define NAMES_ALL   6000 /* of all groups */
#define OPERATORS   8

/* One barrier or refusal. */
typedef struct cause {
    const char *reason, *lift;
    uint32_t index;        /* of the barrier or refusal */
    const uint32_t *nodes; /* [n_nodes] */
    uint32_t n_nodes;
} cause;

/* Causes [first, first + n) of the sorted list. */
typedef struct group {
    uint32_t first, n, n_nodes;
} group;

static int by_reason(const void *a, const void *b)
{
    const cause *x = a, *y = b;
    int order = strcmp(x->reason, y->reason);
    if (order == 0) order = strcmp(x->lift, y->lift);
    return order ? order : x->index < y->index ? -1 : 1;
}

static int by_size(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->n_nodes != y->n_nodes) return x->n_nodes > y->n_nodes ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* ---- one group ---- */

static void put_count(html *h, const cause *causes, const group *g, const char *noun)
{
    html_open_class(h, "span", "count");
    if (causes[g->first].n_nodes > 1 || g->n != g->n_nodes) {
        html_count(h, g->n);
        html_textf(h, " %s%s, ", noun, g->n == 1 ? "" : "s");
    }
    html_count(h, g->n_nodes);
    html_text(h, g->n_nodes == 1 ? " node" : " nodes");
    html_close(h);
}

static void put_names(html *h, const uint32_t *nodes, uint32_t n, uint32_t room)
{
    html_open_class(h, "details", "plain");
    if (n <= 3) html_attr(h, "open", "open");
    html_open(h, "summary");
    html_text(h, n == 1 ? "The node" : "The nodes");
    html_close(h);
    html_names(h, nodes, n, room);
    html_close(h);
}

static void put_group(html *h, const cause *causes, const group *g, const uint32_t *nodes,
                      const char *cls, const char *noun, uint32_t room)
{
    const cause *c = &causes[g->first];
    html_open(h, "div");
    html_attrf(h, "class", "panel group find %s%s", cls, room < g->n_nodes ? " cut" : "");
    put_count(h, causes, g, noun);
    html_leaf(h, "h4", NULL, c->reason);
    html_open_class(h, "p", "ops");
    html_operators(h, nodes, g->n_nodes, OPERATORS);
    html_close(h);
    if (*c->lift) {
        html_open_class(h, "p", "lift");
        html_leaf(h, "b", NULL, "In the model, this would lift it: ");
        html_text(h, c->lift);
        html_close(h);
    }
    if (room) put_names(h, nodes, g->n_nodes, room);
    html_close(h);
}

/* ---- all groups ---- */

/* Gather sorted causes by reason into groups [n returned], most nodes first. */
static uint32_t gather(const cause *causes, uint32_t n, group *groups)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < n; k++) {
        bool same = count && strcmp(causes[k].reason, causes[k - 1].reason) == 0 &&
                    strcmp(causes[k].lift, causes[k - 1].lift) == 0;
        if (!same) groups[count++] = (group){k, 0, 0};
        groups[count - 1].n++;
        groups[count - 1].n_nodes += causes[k].n_nodes;
    }
    qsort(groups, count, sizeof *groups, by_size);
    return count;
}

/* nodes: room for those of all causes. */
static void put_groups(html *h, cause *causes, uint32_t n, group *groups, uint32_t *nodes,
                       const char *cls, const char *noun)
{
    qsort(causes, n, sizeof *causes, by_reason);
    uint32_t n_groups = gather(causes, n, groups), room = NAMES_ALL;
    html_open_class(h, "div", "groups");
    for (uint32_t k = 0; k < n_groups && k < GROUPS_MOST; k++) {
        const group *g = &groups[k];
        uint32_t used = 0;
        for (uint32_t j = 0; j < g->n; j++) {
            const cause *c = &causes[g->first + j];
            memcpy(nodes + used, c->nodes, c->n_nodes * sizeof *nodes);
            used += c->n_nodes;
        }
        uint32_t most = g->n_nodes < NAMES_MOST ? g->n_nodes : NAMES_MOST;
        if (most > room) most = room;
        room -= most;
        put_group(h, causes, g, nodes, cls, noun, most);
    }
    if (n_groups > GROUPS_MOST) {
        html_open_class(h, "p", "quiet");
        html_text(h, "and more reasons, of which the XML report tells.");
        html_close(h);
    }
    html_close(h);
}

static void put_causes(html *h, cause *causes, uint32_t n, const char *cls, const char *noun)
{
    size_t total = 0;
    for (uint32_t k = 0; k < n; k++) total += causes[k].n_nodes;
    group *groups = calloc(n, sizeof *groups);
    uint32_t *nodes = calloc(total + 1, sizeof *nodes);
    if (groups && nodes)
        put_groups(h, causes, n, groups, nodes, cls, noun);
    else
        h->failed = true;
    free(groups);
    free(nodes);
}

static void put_barriers(html *h, cause *causes)
{
    const ot_facts *f = h->f;
    for (uint32_t k = 0; k < f->n_barriers; k++)
        causes[k] = (cause){f->barriers[k].reason, f->barriers[k].lift, k, &f->barriers[k].node, 1};
    html_leaf(h, "h3", NULL, "Barriers: no tile can pass these nodes");
    put_causes(h, causes, f->n_barriers, "barrier", "barrier");
}

static void put_refusals(html *h, cause *causes)
{
    const ot_facts *f = h->f;
    for (uint32_t k = 0; k < f->n_refusals; k++)
        causes[k] = (cause){f->refusals[k].reason, f->refusals[k].lift, k, f->refusals[k].nodes,
                            f->refusals[k].n_nodes};
    html_leaf(h, "h3", NULL, "Refusals: these could be tiled, and are not");
    put_causes(h, causes, f->n_refusals, "refusal", "group");
}

void html_barriers(html *h)
{
    const ot_facts *f = h->f;
    if (!f->n_barriers && !f->n_refusals) return;
    size_t most = f->n_barriers > f->n_refusals ? f->n_barriers : f->n_refusals;
    cause *causes = calloc(most, sizeof *causes);
    if (!causes) {
        h->failed = true;
        return;
    }
    html_section(h, "barriers", "What is not tiled, and why", NULL);
    if (f->n_barriers) put_barriers(h, causes);
    if (f->n_refusals) put_refusals(h, causes);
    html_close(h);
    free(causes);
}
